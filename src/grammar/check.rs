//! Finds what llama.cpp would refuse with no more than "null", or widen in silence.
//!
//! **Invariant:** a grammar that passes is loaded by llama.cpp with exactly the language that
//! [`super::recognize`] takes it to have.

use super::outline::{Kind, Outline, Property};
use super::{Expr, Grammar, GrammarError, Repeat, Rule};

/// Checks that every rule is defined, reachable, finite and free of left recursion, and that
/// llama.cpp keeps every bound.
///
/// # Errors
///
/// The first thing found, with the rule's name.
pub fn check(grammar: &Grammar) -> Result<(), GrammarError> {
    let outline = Outline::new(grammar.rules())?;
    let reached = outline.reached();
    if let Some(rule) = reached.iter().position(|reached| !reached) {
        return Err(GrammarError::UnreachableRule { name: grammar.rules()[rule].name.clone() });
    }
    sound(&outline, &reached, grammar.rules())
}

/// The grammar of those rules that `root` leads to, checked.
///
/// # Errors
///
/// As [`Grammar::new`] and [`check`].
pub(super) fn checked(rules: Vec<Rule>) -> Result<Grammar, GrammarError> {
    let grammar = Grammar::new(rules)?;
    let outline = Outline::new(grammar.rules())?;
    let reached = outline.reached();
    sound(&outline, &reached, grammar.rules())?;
    Ok(grammar.only(&reached))
}

/// Whether the rules that are reached have a language that llama.cpp takes to be the same.
fn sound(outline: &Outline, reached: &[bool], rules: &[Rule]) -> Result<(), GrammarError> {
    let name = |rule: usize| rules[rule].name.clone();
    let all = || (0..rules.len()).filter(|rule| reached[*rule]);
    let mut numbered = Numbered::new(outline);
    all().try_for_each(|rule| numbered.rule(rule, &rules[rule]))?;
    let nullable = outline.with(Property::Empty);
    if let Some(rule) = all().find(|rule| repeats_empty(outline, *rule, &nullable)) {
        return Err(GrammarError::EmptyRepeat { name: name(rule) });
    }
    if let Some(rule) = left_recursive(outline, all(), &nullable) {
        return Err(GrammarError::LeftRecursion { name: name(rule) });
    }
    let finite = outline.with(Property::Ends);
    match all().find(|rule| !finite[*rule]) {
        Some(rule) => Err(GrammarError::EndlessRule { name: name(rule) }),
        None => Ok(()),
    }
}

/// The rules that llama.cpp has numbered so far, as it reads what [`super::print`] writes.
struct Numbered<'o> {
    outline: &'o Outline,
    is_named: Vec<bool>,
    n_rules: u64,
}

impl<'o> Numbered<'o> {
    fn new(outline: &'o Outline) -> Self {
        Self { outline, is_named: vec![false; outline.n_rules()], n_rules: 0 }
    }

    fn rule(&mut self, number: usize, rule: &Rule) -> Result<(), GrammarError> {
        self.name(number);
        self.read(self.outline.rule(number), false, rule).map(|_| ())
    }

    fn name(&mut self, rule: usize) {
        self.n_rules += u64::from(!std::mem::replace(&mut self.is_named[rule], true));
    }

    /// Reads an expression and gives what a repetition of it would count (`parse_sequence`,
    /// `n_prev_rules`): 1, for a group as many as were numbered within.
    fn read(&mut self, part: usize, grouped: bool, rule: &Rule) -> Result<u64, GrammarError> {
        let outline = self.outline;
        let before = self.n_rules;
        self.n_rules += u64::from(grouped);
        match outline.kind(part) {
            Kind::Terminal => {}
            Kind::Rule(number) => self.name(number),
            Kind::Concat => {
                for part in outline.children(part) {
                    let grouped = matches!(outline.kind(part), Kind::Concat | Kind::Choice);
                    self.read(part, grouped, rule)?;
                }
            }
            Kind::Choice => {
                for part in outline.children(part) {
                    self.read(part, outline.kind(part) == Kind::Choice, rule)?;
                }
            }
            Kind::Repeat(repeat) => {
                let is_one = matches!(outline.kind(part + 1), Kind::Terminal | Kind::Rule(_));
                let n_rules = self.read(part + 1, !is_one, rule)?;
                let times = repeat.max().filter(|max| *max > 0).unwrap_or(repeat.min().max(1));
                if u64::from(times) * n_rules > u64::from(Repeat::LIMIT) {
                    let name = rule.name.clone();
                    return Err(GrammarError::RepeatTooLarge { name, n_rules, times });
                }
                self.n_rules += repeat.max().map_or(1, |max| u64::from(max - repeat.min()));
            }
        }
        Ok(if grouped { (self.n_rules - before).max(1) } else { 1 })
    }
}

/// At most as many rules as llama.cpp counts for what a repetition repeats: the group itself, those
/// it makes for groups and repetitions inside, and names that it may meet for the first time.
pub(super) fn n_rules(expr: &Expr) -> u64 {
    fn inside(expr: &Expr) -> u64 {
        own_rules(expr) + expr.children().iter().map(inside).sum::<u64>()
    }
    n_repeated(expr, inside(expr))
}

/// The rules of an expression without its parts.
pub(super) fn own_rules(expr: &Expr) -> u64 {
    match expr {
        Expr::Literal(_) | Expr::Class(_) => 0,
        Expr::Rule(_) | Expr::Concat(_) | Expr::Choice(_) => 1,
        Expr::Repeat(_, repeat) => {
            repeat.max().map_or(1, |max| u64::from(max - repeat.min())).max(1)
        }
    }
}

/// [`n_rules`] of an expression that with its parts has so many.
pub(super) fn n_repeated(expr: &Expr, n_rules: u64) -> u64 {
    if matches!(expr, Expr::Rule(_)) { 1 } else { n_rules.max(1) }
}

/// How often something of so many rules may be repeated at most for llama.cpp to keep the bound.
pub(super) fn most_times(n_rules: u64) -> usize {
    usize::try_from(u64::from(Repeat::LIMIT) / n_rules.max(1)).unwrap_or(usize::MAX)
}

fn repeats_empty(outline: &Outline, rule: usize, nullable: &[bool]) -> bool {
    outline.inside(outline.rule(rule)).any(|part| match outline.kind(part) {
        Kind::Repeat(repeat) => {
            repeat.max().is_none() && outline.has(part + 1, Property::Empty, nullable)
        }
        _ => false,
    })
}

/// The rules that an expression may begin with.
fn first_rules(outline: &Outline, part: usize, nullable: &[bool], found: &mut Vec<usize>) {
    match outline.kind(part) {
        Kind::Terminal => {}
        Kind::Rule(rule) => found.push(rule),
        Kind::Concat => {
            for part in outline.children(part) {
                first_rules(outline, part, nullable, found);
                if !outline.has(part, Property::Empty, nullable) {
                    break;
                }
            }
        }
        Kind::Choice | Kind::Repeat(_) => {
            outline.children(part).for_each(|part| first_rules(outline, part, nullable, found));
        }
    }
}

/// A rule that may begin with itself.
fn left_recursive(
    outline: &Outline,
    rules: impl Iterator<Item = usize>,
    nullable: &[bool],
) -> Option<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Closed,
    }
    // Depth first without recursion: a rule met again while it is still open begins with itself.
    let mut states = vec![State::New; outline.n_rules()];
    for start in rules {
        let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut next = (states[start] == State::New).then_some(start);
        loop {
            if let Some(rule) = next.take() {
                states[rule] = State::Open;
                let mut firsts = Vec::new();
                first_rules(outline, outline.rule(rule), nullable, &mut firsts);
                open.push((rule, firsts));
            }
            let Some((rule, firsts)) = open.last_mut() else { break };
            match firsts.pop() {
                None => {
                    states[*rule] = State::Closed;
                    open.pop();
                }
                Some(first) => match states[first] {
                    State::New => next = Some(first),
                    State::Open => return Some(first),
                    State::Closed => {}
                },
            }
        }
    }
    None
}
