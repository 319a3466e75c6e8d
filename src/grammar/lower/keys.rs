//! Keys of members that are not named: any string but a few, as a tree of what those begin with.
//!
//! Whatever leaves the tree may go on in any spelling, so one rule for each set of characters that stay
//! in it serves the whole grammar: `not-a ::= [^a…] char* | escaped char*`. Where one name is left, the
//! rule for what is not the rest of it does so too, as functions share the names of their parameters:
//! `but-ab ::= ("a" ("b" not-these | not-b)? | not-a)?`.

use super::Lower;
use super::lexical::Lexical;
use super::prefix::one_of;
use crate::grammar::{Class, Expr, Rule, RuleName};

/// Parentheses nest at most this deep before a rule of its own begins.
const MAX_NESTING: usize = 12;

/// Longest name, in bytes, that goes into a tree, since building one recurses along the names.
const MAX_NAME: usize = 2_000;

/// Whether the names can be told apart by their characters as they stand, and none is very long.
pub(super) fn are_plain(names: &[String]) -> bool {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    names.iter().all(|name| name.len() <= MAX_NAME && name.chars().all(plain))
}

/// The inside of a JSON string that is none of the names, which are plain, sorted and not few of one.
pub(super) fn all_but(lower: &mut Lower, names: &[&str], name: &RuleName) -> Expr {
    below(lower, names, 0, name)
}

/// What may follow where all of the names begin alike and this is the rest of each.
fn below(lower: &mut Lower, rests: &[&str], nesting: usize, name: &RuleName) -> Expr {
    let is_name = rests.first().is_some_and(|rest| rest.is_empty());
    let mut open = if is_name { &rests[1..] } else { rests };
    let mut productions = Vec::new();
    let mut firsts = Vec::new();
    while let Some(first) = open.first().and_then(|rest| rest.chars().next()) {
        let n = open.partition_point(|rest| rest.starts_with(first));
        let inner: Vec<&str> = open[..n].iter().map(|rest| &rest[first.len_utf8()..]).collect();
        let rest = if let [rest] = inner.as_slice() {
            lower.but(rest)
        } else if nesting >= MAX_NESTING {
            let rule = lower.names.fresh(&[name.as_str(), "rest"], "rest");
            let at = lower.reserve(&rule);
            lower.rules[at].expr = below(lower, &inner, 0, name);
            Expr::Rule(rule)
        } else {
            below(lower, &inner, nesting + 1, name)
        };
        productions.push(Expr::literal(first).then(rest));
        firsts.push(first);
        open = &open[n..];
    }
    productions.push(lower.leaving(&firsts));
    let any = one_of(productions);
    if is_name { any } else { any.optional() }
}

impl Lower {
    /// Any rest of a string but this one.
    fn but(&mut self, rest: &str) -> Expr {
        // Each rule holds so many characters and refers to the next; the last is made first.
        let starts: Vec<usize> =
            rest.char_indices().step_by(MAX_NESTING).map(|(at, _)| at).collect();
        let mut rules = Vec::new();
        let mut expr = self.leaving(&[]);
        let mut end = rest.len();
        for start in starts.into_iter().rev() {
            let name = if let Some(known) = self.but.get(&rest[start..]) {
                known.clone()
            } else {
                for first in rest[start..end].chars().rev() {
                    let stays = Expr::literal(first).then(expr);
                    expr = stays.or(self.leaving(&[first])).optional();
                }
                let name = self.names.fresh(&["but", &rest[start..]], "this");
                self.but.insert(rest[start..].to_owned(), name.clone());
                rules.push(Rule::new(name.clone(), expr));
                name
            };
            expr = Expr::Rule(name);
            end = start;
        }
        self.shared.extend(rules.into_iter().rev());
        expr
    }

    /// The rest of a string whose next character is none of these.
    fn leaving(&mut self, firsts: &[char]) -> Expr {
        let key: String = firsts.iter().collect();
        if let Some(rule) = self.leaving.get(&key) {
            return Expr::Rule(rule.clone());
        }
        let rule = self.names.fresh(&["not", &key], "these");
        let mut ranges = vec![('"', '"'), ('\\', '\\'), ('\0', '\u{1f}'), ('\u{7f}', '\u{7f}')];
        ranges.extend(firsts.iter().map(|c| (*c, *c)));
        let rest = self.lexical(Lexical::Char).any_times();
        let raw = Expr::Class(Class::but(&ranges)).then(rest.clone());
        let expr = raw.or(self.lexical(Lexical::Escaped).then(rest));
        self.shared.push(Rule::new(rule.clone(), expr));
        self.leaving.insert(key, rule.clone());
        Expr::Rule(rule)
    }
}
