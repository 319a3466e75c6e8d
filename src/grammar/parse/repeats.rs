//! Repetitions without end of what may be empty, as repetitions of what is not.
//!
//! `("a"? "b"?)*` becomes `("a" "b"? | "b")*`: the same texts, each in fewer ways. A rule that may
//! be empty gets a second one, `NAME-some`, for its texts that are not. What stands in several of the
//! new productions and is large becomes a rule, `NAME-part`.
//!
//! A repetition without end of another becomes one.
//!
//! **Invariant:** the language stays the same; a grammar without such repetitions stays as it is.
//! **Invariant:** a grammar of n parts becomes one of O(n log n), however its repetitions are nested.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::grammar::outline::{Outline, Property};
use crate::grammar::{Expr, Grammar, GrammarError, Repeat, Rule, RuleName};

/// Most expressions in a part that is copied, and most parts of a concatenation that is written out.
const FEW: usize = 16;

/// The rules without unbounded repetitions of what may be empty, `root` first.
///
/// # Errors
///
/// [`GrammarError::UndefinedRule`].
pub(super) fn without_empty(grammar: Grammar) -> Result<Vec<Rule>, GrammarError> {
    let outline = Outline::new(grammar.rules())?;
    let with = |property| {
        let names = grammar.rules().iter().map(|rule| rule.name.clone());
        let has = outline.with(property).into_iter();
        names.zip(has).filter(|(_, has)| *has).map(|(name, _)| name).collect()
    };
    let mut rewrite = Rewrite {
        nullable: with(Property::Empty),
        with_text: with(Property::HasText),
        names: grammar.rules().iter().map(|rule| rule.name.clone()).collect(),
        numbers: FxHashMap::default(),
        wanted: Vec::new(),
        some_of: FxHashMap::default(),
        parts: Vec::new(),
        within: RuleName::root(),
    };
    let mut rules = grammar.rules;
    for rule in &mut rules {
        rewrite.within = rule.name.clone();
        rewrite.repeats(&mut rule.expr);
    }
    let mut places = FxHashMap::default();
    let mut done = 0;
    loop {
        let first = places.len();
        rules.append(&mut rewrite.parts);
        places.extend((first..).zip(&rules[first..]).map(|(at, rule)| (rule.name.clone(), at)));
        let Some((name, of)) = rewrite.wanted.get(done).cloned() else { return Ok(rules) };
        let expr = places.get(&of).map(|at| rules[*at].expr.clone());
        rewrite.within = of;
        let some = expr.and_then(|expr| rewrite.some(expr)).unwrap_or(Expr::nothing());
        rules.push(Rule::new(name, some));
        done += 1;
    }
}

struct Rewrite {
    nullable: FxHashSet<RuleName>,
    with_text: FxHashSet<RuleName>,
    names: FxHashSet<RuleName>,
    /// Names tried so far for each beginning.
    numbers: FxHashMap<RuleName, usize>,
    /// Rules to be made, each with the rule whose non-empty texts it stands for.
    wanted: Vec<(RuleName, RuleName)>,
    /// The same, to be looked up.
    some_of: FxHashMap<RuleName, RuleName>,
    /// Rules made of parts, not yet among the others.
    parts: Vec<Rule>,
    /// The rule that is rewritten.
    within: RuleName,
}

impl Rewrite {
    fn repeats(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Literal(_) | Expr::Class(_) | Expr::Rule(_) => {}
            Expr::Choice(parts) => {
                for part in parts {
                    self.repeats(part);
                }
            }
            Expr::Concat(parts) => {
                for part in &mut *parts {
                    self.repeats(part);
                }
                // A repetition of nothing at all is gone, as the parser leaves out what is empty.
                parts.retain(|part| *part != Expr::nothing());
                if let [_] = parts.as_slice() {
                    *expr = parts.remove(0);
                }
            }
            Expr::Repeat(inner, repeat) => {
                self.repeats(inner);
                if **inner == Expr::nothing() {
                    *expr = Expr::nothing();
                } else if let Some(once) = repeated_once(inner, *repeat) {
                    *expr = once;
                } else if repeat.max().is_none() && may_be_empty(inner, &self.nullable) {
                    let inner = std::mem::replace(&mut **inner, Expr::nothing());
                    *expr = self
                        .some(inner)
                        .map_or(Expr::nothing(), |some| repeated(some, Repeat::ANY));
                }
            }
        }
    }

    /// The texts of an expression that are not empty; `None` where there are none.
    fn some(&mut self, expr: Expr) -> Option<Expr> {
        if !may_be_empty(&expr, &self.nullable) {
            return Some(expr);
        }
        match expr {
            Expr::Literal(_) | Expr::Class(_) => Some(expr),
            Expr::Rule(name) => {
                self.with_text.contains(&name).then(|| Expr::Rule(self.some_rule(name)))
            }
            // The first part that is not empty, and what follows it.
            Expr::Concat(parts) => {
                let parts = self.few_and_small(parts);
                choice((0..parts.len()).filter_map(|index| {
                    let first = self.some(parts[index].clone())?;
                    let mut all = vec![first];
                    let others = parts[index + 1..].iter();
                    all.extend(others.filter(|part| **part != Expr::nothing()).cloned());
                    Some(if let [_] = all.as_slice() { all.remove(0) } else { Expr::Concat(all) })
                }))
            }
            Expr::Choice(parts) => choice(parts.into_iter().filter_map(|part| self.some(part))),
            Expr::Repeat(inner, repeat) => {
                let inner = self.some(*inner)?;
                match repeat.max() {
                    Some(0) => None,
                    Some(1) => Some(inner),
                    max => {
                        // A bound that was legal is so from 1 too.
                        Some(repeated(inner, Repeat::new(1, max).unwrap_or(Repeat::SOME)))
                    }
                }
            }
        }
    }

    /// The same concatenation of parts that may be copied: each would else be written out twice at
    /// every level of nested repetitions, and in every production of a long concatenation.
    fn few_and_small(&mut self, mut parts: Vec<Expr>) -> Vec<Expr> {
        if parts.len() > FEW {
            let second = parts.split_off(parts.len() / 2);
            return vec![self.part(Expr::Concat(parts)), self.part(Expr::Concat(second))];
        }
        let small = |part: Expr| if is_small(&part) { part } else { self.part(part) };
        parts.into_iter().map(small).collect()
    }

    fn part(&mut self, expr: Expr) -> Expr {
        let name = self.fresh(&self.within.clone(), "part");
        if may_be_empty(&expr, &self.nullable) {
            self.nullable.insert(name.clone());
        }
        if may_have_text(&expr, &self.with_text) {
            self.with_text.insert(name.clone());
        }
        self.parts.push(Rule::new(name.clone(), expr));
        Expr::Rule(name)
    }

    fn some_rule(&mut self, of: RuleName) -> RuleName {
        if let Some(name) = self.some_of.get(&of) {
            return name.clone();
        }
        let name = self.fresh(&of, "some");
        self.some_of.insert(of.clone(), name.clone());
        self.wanted.push((name.clone(), of));
        name
    }

    fn fresh(&mut self, base: &RuleName, suffix: &str) -> RuleName {
        let base = RuleName(format!("{base}-{suffix}").into());
        let number = self.numbers.entry(base.clone()).or_default();
        loop {
            *number += 1;
            let name = match *number {
                1 => base.clone(),
                number => RuleName(format!("{base}-{number}").into()),
            };
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn repeated(mut inner: Expr, repeat: Repeat) -> Expr {
    repeated_once(&mut inner, repeat).unwrap_or_else(|| Expr::Repeat(Box::new(inner), repeat))
}

/// A repetition without end of another as one of them: `("a"+)+` has the texts of `"a"+`, each in one way.
fn repeated_once(inner: &mut Expr, outer: Repeat) -> Option<Expr> {
    let is_endless = |repeat: Repeat| repeat.max().is_none() && repeat.min() <= 1;
    match inner {
        Expr::Repeat(part, within) if is_endless(*within) && is_endless(outer) => {
            let is_some = (within.min(), outer.min()) == (1, 1);
            let part = Box::new(std::mem::replace(&mut **part, Expr::nothing()));
            Some(Expr::Repeat(part, if is_some { Repeat::SOME } else { Repeat::ANY }))
        }
        _ => None,
    }
}

/// A choice of what there is; `None` of nothing.
fn choice(productions: impl Iterator<Item = Expr>) -> Option<Expr> {
    productions.reduce(Expr::or)
}

fn is_small(expr: &Expr) -> bool {
    fn take(expr: &Expr, left: &mut usize) -> bool {
        *left > 0 && {
            *left -= 1;
            expr.children().iter().all(|part| take(part, left))
        }
    }
    take(expr, &mut FEW.clone())
}

fn may_be_empty(expr: &Expr, nullable: &FxHashSet<RuleName>) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Class(_) => false,
        Expr::Rule(name) => nullable.contains(name),
        Expr::Concat(parts) => parts.iter().all(|part| may_be_empty(part, nullable)),
        Expr::Choice(parts) => parts.iter().any(|part| may_be_empty(part, nullable)),
        Expr::Repeat(inner, repeat) => repeat.min() == 0 || may_be_empty(inner, nullable),
    }
}

/// Whether an expression has a text that is not empty.
fn may_have_text(expr: &Expr, found: &FxHashSet<RuleName>) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Class(_) => true,
        Expr::Rule(name) => found.contains(name),
        Expr::Concat(parts) | Expr::Choice(parts) => {
            parts.iter().any(|part| may_have_text(part, found))
        }
        Expr::Repeat(inner, repeat) => repeat.max() != Some(0) && may_have_text(inner, found),
    }
}
