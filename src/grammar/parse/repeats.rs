//! Repetitions without end of what may be empty, as repetitions of what is not.
//!
//! `("a"? "b"?)*` becomes `("a" "b"? | "b")*`: the same texts, each in fewer ways. A rule that may
//! be empty gets a second one, `NAME-some`, for its texts that are not.
//!
//! **Invariant:** the language stays the same; a grammar without such a repetition stays as it is.

use rustc_hash::FxHashSet;

use crate::grammar::check::{fixpoint, may_be_empty};
use crate::grammar::{Expr, Grammar, Repeat, Rule, RuleName};

/// The rules without unbounded repetitions of what may be empty, `root` first.
pub(super) fn without_empty(grammar: Grammar) -> Vec<Rule> {
    let mut rewrite = Rewrite {
        nullable: fixpoint(&grammar, may_be_empty),
        with_text: fixpoint(&grammar, may_have_text),
        names: grammar.rules().iter().map(|rule| rule.name.clone()).collect(),
        wanted: Vec::new(),
    };
    let mut rules = grammar.rules;
    for rule in &mut rules {
        rewrite.repeats(&mut rule.expr);
    }
    let mut done = 0;
    while let Some((name, of)) = rewrite.wanted.get(done).cloned() {
        let expr = rules.iter().find(|rule| rule.name == of).map(|rule| rule.expr.clone());
        let some = expr.and_then(|expr| rewrite.some(expr)).unwrap_or(Expr::nothing());
        rules.push(Rule::new(name, some));
        done += 1;
    }
    rules
}

struct Rewrite {
    nullable: FxHashSet<RuleName>,
    with_text: FxHashSet<RuleName>,
    names: FxHashSet<RuleName>,
    /// Rules to be made, each with the rule whose non-empty texts it stands for.
    wanted: Vec<(RuleName, RuleName)>,
}

impl Rewrite {
    fn repeats(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Literal(_) | Expr::Class(_) | Expr::Rule(_) => {}
            Expr::Concat(parts) | Expr::Choice(parts) => {
                for part in parts {
                    self.repeats(part);
                }
            }
            Expr::Repeat(inner, repeat) => {
                self.repeats(inner);
                if repeat.max().is_none() && may_be_empty(inner, &self.nullable) {
                    let inner = std::mem::replace(&mut **inner, Expr::nothing());
                    *expr = self.some(inner).map_or(Expr::nothing(), Expr::any_times);
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
            Expr::Concat(parts) => choice((0..parts.len()).filter_map(|index| {
                let first = self.some(parts[index].clone())?;
                let mut all = vec![first];
                let others = parts[index + 1..].iter();
                all.extend(others.filter(|part| **part != Expr::nothing()).cloned());
                Some(if let [_] = all.as_slice() { all.remove(0) } else { Expr::Concat(all) })
            })),
            Expr::Choice(parts) => choice(parts.into_iter().filter_map(|part| self.some(part))),
            Expr::Repeat(inner, repeat) => {
                let inner = self.some(*inner)?;
                match repeat.max() {
                    Some(0) => None,
                    Some(1) => Some(inner),
                    max => {
                        // A bound that was legal is so from 1 too.
                        let repeat = Repeat::new(1, max).unwrap_or(Repeat::SOME);
                        Some(Expr::Repeat(Box::new(inner), repeat))
                    }
                }
            }
        }
    }

    fn some_rule(&mut self, of: RuleName) -> RuleName {
        if let Some((name, _)) = self.wanted.iter().find(|(_, other)| *other == of) {
            return name.clone();
        }
        let mut name = of.clone();
        while !self.names.insert(name.clone()) {
            name = RuleName(format!("{name}-some").into());
        }
        self.wanted.push((name.clone(), of));
        name
    }
}

/// A choice of what there is; `None` of nothing.
fn choice(productions: impl Iterator<Item = Expr>) -> Option<Expr> {
    productions.reduce(Expr::or)
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
