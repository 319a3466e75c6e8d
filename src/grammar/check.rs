//! Finds what llama.cpp would refuse with no more than "null", or widen in silence.
//!
//! **Invariant:** a grammar that passes is loaded by llama.cpp with exactly the language that
//! [`super::recognize`] takes it to have.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Expr, Grammar, GrammarError, Repeat, Rule, RuleName};

/// Checks that every rule is defined, reachable, finite and free of left recursion, and that
/// llama.cpp keeps every bound.
///
/// # Errors
///
/// The first thing found, with the rule's name.
pub fn check(grammar: &Grammar) -> Result<(), GrammarError> {
    let rules: FxHashMap<&RuleName, &Rule> = grammar.rules().iter().map(|r| (&r.name, r)).collect();
    let mut numbered = Numbered::default();
    for rule in grammar.rules() {
        parts(&rule.expr, &rule.name)?;
        numbered.names.insert(&rule.name);
        numbered.read(&rule.expr, false, rule)?;
    }
    reachable(grammar, &rules)?;
    let nullable = fixpoint(grammar, may_be_empty);
    for rule in grammar.rules() {
        if repeats_empty(&rule.expr, &nullable) {
            return Err(GrammarError::EmptyRepeat { name: rule.name.clone() });
        }
    }
    left_recursion(grammar, &rules, &nullable)?;
    let finite = fixpoint(grammar, may_end);
    match grammar.rules().iter().find(|rule| !finite.contains(&rule.name)) {
        Some(rule) => Err(GrammarError::EndlessRule { name: rule.name.clone() }),
        None => Ok(()),
    }
}

/// No empty part.
fn parts(expr: &Expr, rule: &RuleName) -> Result<(), GrammarError> {
    let empty = match expr {
        Expr::Literal(text) => text.is_empty(),
        Expr::Class(class) => {
            class.is_empty() || class.ranges().iter().any(|(first, last)| first > last)
        }
        Expr::Choice(parts) => parts.is_empty(),
        Expr::Concat(_) | Expr::Rule(_) | Expr::Repeat(..) => false,
    };
    if empty {
        return Err(GrammarError::EmptyPart { name: rule.clone() });
    }
    expr.children().iter().try_for_each(|part| parts(part, rule))
}

/// The rules that llama.cpp has numbered so far, as it reads what [`super::print`] writes.
#[derive(Default)]
struct Numbered<'a> {
    names: FxHashSet<&'a RuleName>,
    /// Those that it makes for groups and repetitions.
    n_made: u64,
}

impl<'a> Numbered<'a> {
    fn count(&self) -> u64 {
        self.n_made + u64::try_from(self.names.len()).unwrap_or(u64::MAX)
    }

    /// Reads an expression and gives what a repetition of it would count (`parse_sequence`,
    /// `n_prev_rules`): 1, for a group as many as were numbered within.
    fn read(&mut self, expr: &'a Expr, grouped: bool, rule: &'a Rule) -> Result<u64, GrammarError> {
        let before = self.count();
        self.n_made += u64::from(grouped);
        match expr {
            Expr::Literal(_) | Expr::Class(_) => {}
            Expr::Rule(name) => {
                self.names.insert(name);
            }
            Expr::Concat(parts) => {
                for part in parts {
                    let grouped = matches!(part, Expr::Concat(_) | Expr::Choice(_));
                    self.read(part, grouped, rule)?;
                }
            }
            Expr::Choice(parts) => {
                for part in parts {
                    self.read(part, matches!(part, Expr::Choice(_)), rule)?;
                }
            }
            Expr::Repeat(inner, repeat) => {
                let is_one = matches!(**inner, Expr::Literal(_) | Expr::Class(_) | Expr::Rule(_));
                let n_rules = self.read(inner, !is_one, rule)?;
                let times = repeat.max().filter(|max| *max > 0).unwrap_or(repeat.min().max(1));
                if u64::from(times) * n_rules > u64::from(Repeat::LIMIT) {
                    let name = rule.name.clone();
                    return Err(GrammarError::RepeatTooLarge { name, n_rules, times });
                }
                self.n_made += repeat.max().map_or(1, |max| u64::from(max - repeat.min()));
            }
        }
        Ok(if grouped { (self.count() - before).max(1) } else { 1 })
    }
}

/// At most as many rules as llama.cpp counts for what a repetition repeats: the group itself, those
/// it makes for groups and repetitions inside, and names that it may meet for the first time.
pub(super) fn n_rules(expr: &Expr) -> u64 {
    fn inside(expr: &Expr) -> u64 {
        let own = match expr {
            Expr::Literal(_) | Expr::Class(_) => 0,
            Expr::Rule(_) | Expr::Concat(_) | Expr::Choice(_) => 1,
            Expr::Repeat(_, repeat) => {
                repeat.max().map_or(1, |max| u64::from(max - repeat.min())).max(1)
            }
        };
        own + expr.children().iter().map(inside).sum::<u64>()
    }
    if matches!(expr, Expr::Rule(_)) { 1 } else { inside(expr).max(1) }
}

/// How often something may be repeated at most for llama.cpp to keep the bound.
pub(super) fn most_times(expr: &Expr) -> usize {
    usize::try_from(u64::from(Repeat::LIMIT) / n_rules(expr).max(1)).unwrap_or(usize::MAX)
}

fn reachable(grammar: &Grammar, rules: &FxHashMap<&RuleName, &Rule>) -> Result<(), GrammarError> {
    let mut seen = FxHashSet::default();
    let mut open: Vec<&Rule> = grammar.rules().first().into_iter().collect();
    while let Some(rule) = open.pop() {
        if seen.insert(&rule.name) {
            for name in rule.expr.names() {
                let Some(used) = rules.get(name) else {
                    let (name, rule) = (name.clone(), rule.name.clone());
                    return Err(GrammarError::UndefinedRule { name, rule });
                };
                open.push(used);
            }
        }
    }
    match grammar.rules().iter().find(|rule| !seen.contains(&rule.name)) {
        Some(rule) => Err(GrammarError::UnreachableRule { name: rule.name.clone() }),
        None => Ok(()),
    }
}

/// The rules for which `holds` follows from the rules already found.
pub(super) fn fixpoint(
    grammar: &Grammar,
    holds: fn(&Expr, &FxHashSet<RuleName>) -> bool,
) -> FxHashSet<RuleName> {
    fn pass<'a>(
        rules: impl Iterator<Item = &'a Rule>,
        found: &mut FxHashSet<RuleName>,
        holds: fn(&Expr, &FxHashSet<RuleName>) -> bool,
    ) {
        for rule in rules {
            if !found.contains(&rule.name) && holds(&rule.expr, found) {
                found.insert(rule.name.clone());
            }
        }
    }
    let mut found = FxHashSet::default();
    // Ours stand before those they use, people's often after; a pass each way serves both.
    for turn in 0.. {
        let before = found.len();
        if turn % 2 == 0 {
            pass(grammar.rules().iter().rev(), &mut found, holds);
        } else {
            pass(grammar.rules().iter(), &mut found, holds);
        }
        let is_stable = found.len() == before;
        if is_stable || found.len() == grammar.rules().len() {
            break;
        }
    }
    found
}

pub(super) fn may_be_empty(expr: &Expr, nullable: &FxHashSet<RuleName>) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Class(_) => false,
        Expr::Rule(name) => nullable.contains(name),
        Expr::Concat(parts) => parts.iter().all(|part| may_be_empty(part, nullable)),
        Expr::Choice(parts) => parts.iter().any(|part| may_be_empty(part, nullable)),
        Expr::Repeat(inner, repeat) => repeat.min() == 0 || may_be_empty(inner, nullable),
    }
}

fn may_end(expr: &Expr, finite: &FxHashSet<RuleName>) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Class(_) => true,
        Expr::Rule(name) => finite.contains(name),
        Expr::Concat(parts) => parts.iter().all(|part| may_end(part, finite)),
        Expr::Choice(parts) => parts.iter().any(|part| may_end(part, finite)),
        Expr::Repeat(inner, repeat) => repeat.min() == 0 || may_end(inner, finite),
    }
}

fn repeats_empty(expr: &Expr, nullable: &FxHashSet<RuleName>) -> bool {
    if let Expr::Repeat(inner, repeat) = expr {
        if repeat.max().is_none() && may_be_empty(inner, nullable) {
            return true;
        }
    }
    expr.children().iter().any(|part| repeats_empty(part, nullable))
}

/// The rules that an expression may begin with.
fn first_names<'a>(expr: &'a Expr, nullable: &FxHashSet<RuleName>, found: &mut Vec<&'a RuleName>) {
    match expr {
        Expr::Literal(_) | Expr::Class(_) => {}
        Expr::Rule(name) => found.push(name),
        Expr::Concat(parts) => {
            for part in parts {
                first_names(part, nullable, found);
                if !may_be_empty(part, nullable) {
                    break;
                }
            }
        }
        Expr::Choice(parts) => parts.iter().for_each(|part| first_names(part, nullable, found)),
        Expr::Repeat(inner, _) => first_names(inner, nullable, found),
    }
}

fn left_recursion(
    grammar: &Grammar,
    rules: &FxHashMap<&RuleName, &Rule>,
    nullable: &FxHashSet<RuleName>,
) -> Result<(), GrammarError> {
    // Depth first without recursion: a rule met again while it is still open begins with itself.
    let mut closed: FxHashSet<&RuleName> = FxHashSet::default();
    for start in grammar.rules() {
        let mut open: Vec<(&RuleName, Vec<&RuleName>)> = Vec::new();
        let enter = |name| {
            let mut firsts = Vec::new();
            if let Some(rule) = rules.get(name) {
                first_names(&rule.expr, nullable, &mut firsts);
            }
            (name, firsts)
        };
        open.push(enter(&start.name));
        while let Some((name, firsts)) = open.last_mut() {
            let name = *name;
            match firsts.pop() {
                None => {
                    closed.insert(name);
                    open.pop();
                }
                Some(next) if closed.contains(next) => {}
                Some(next) if open.iter().any(|(name, _)| *name == next) => {
                    return Err(GrammarError::LeftRecursion { name: next.clone() });
                }
                Some(next) => open.push(enter(next)),
            }
        }
    }
    Ok(())
}
