//! Bytes to a small grammar, a short text, and a vocabulary.

use std::collections::HashSet;

use arbitrary::{Result, Unstructured};
use call_me_maybe::grammar::{Class, Expr, Grammar, Repeat, Rule, RuleName};

/// Characters of every length in UTF-8, with neighbors in the first byte.
const CHARS: [char; 8] = ['a', 'b', 'c', 'é', 'è', '\u{800}', '\u{ffff}', '🙂'];
/// Parts of one grammar.
const BUDGET: usize = 40;

/// A grammar with what is asked of it.
#[derive(Debug)]
pub struct Case {
    /// It may be unsound.
    pub grammar: Grammar,
    /// Any bytes, but mostly characters that the grammar has.
    pub text: Vec<u8>,
    /// Tokens, some without bytes and some the same.
    pub tokens: Vec<Vec<u8>>,
}

/// Draws all of it.
///
/// # Errors
///
/// Where the bytes are not enough.
pub fn case(data: &[u8]) -> Result<Case> {
    let mut u = Unstructured::new(data);
    let text = text(&mut u, 10)?;
    let n_tokens = u.int_in_range(0..=8)?;
    let tokens = (0..n_tokens).map(|_| self::text(&mut u, 4)).collect::<Result<_>>()?;
    let mut draw = Draw { u, left: BUDGET, n_around: 0 };
    // The value of an argument uses no rule that uses arguments, and text stands around it.
    let all = ["root", "r", "s", "x", "y", "z"];
    let inner = ["y", "z"];
    let value = Expr::literal("a").then(reference("value")).then(Expr::literal("b"));
    let mut rules = vec![
        rule("root", draw.expr(&all, 0)?),
        rule("r", draw.expr(&all, 0)?),
        rule("s", draw.expr(&all, 0)?),
        rule("x", value),
        Rule { argument: true, ..rule("value", draw.expr(&inner, 0)?) },
        rule("y", draw.expr(&inner, 0)?),
        rule("z", draw.expr(&inner, 0)?),
    ];
    let reachable = reachable(&rules);
    rules.retain(|rule| reachable.contains(&rule.name));
    let grammar = Grammar::new(rules).expect("root is first and names differ");
    Ok(Case { grammar, text, tokens })
}

fn name(name: &str) -> RuleName {
    RuleName::new(name).expect("only letters")
}

fn reference(rule: &str) -> Expr {
    Expr::Rule(name(rule))
}

fn rule(rule: &str, expr: Expr) -> Rule {
    Rule::new(name(rule), expr)
}

fn reachable(rules: &[Rule]) -> HashSet<RuleName> {
    let mut found = HashSet::new();
    let mut open = vec![RuleName::root()];
    while let Some(name) = open.pop() {
        let rule = rules.iter().find(|rule| rule.name == name);
        open.extend(rule.into_iter().flat_map(|rule| rule.expr.names()).cloned());
        found.insert(name);
        open.retain(|name| !found.contains(name));
    }
    found
}

fn text(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<u8>> {
    let n_chars = u.int_in_range(0..=most)?;
    let mut text = Vec::new();
    for _ in 0..n_chars {
        if u.ratio(1, 12)? {
            text.push(u.arbitrary()?);
        } else {
            let mut buffer = [0; 4];
            text.extend(u.choose(&CHARS)?.encode_utf8(&mut buffer).bytes());
        }
    }
    if u.ratio(1, 6)? {
        // Within a character, perhaps.
        text.pop();
    }
    Ok(text)
}

struct Draw<'a> {
    u: Unstructured<'a>,
    /// Parts that may still be drawn.
    left: usize,
    /// Repetitions around the part that is drawn.
    n_around: u32,
}

impl Draw<'_> {
    fn expr(&mut self, rules: &[&str], depth: usize) -> Result<Expr> {
        if self.left == 0 || depth > 5 || self.u.is_empty() {
            return Ok(Expr::literal("c"));
        }
        self.left -= 1;
        Ok(match self.u.int_in_range(0..=9)? {
            0 | 1 => {
                let n_chars = self.u.int_in_range(1..=3)?;
                let chars = (0..n_chars).map(|_| self.u.choose(&CHARS).copied());
                Expr::Literal(chars.collect::<Result<_>>()?)
            }
            2 => Expr::Class(self.class()?),
            3 | 4 => reference(self.u.choose(rules)?),
            5 | 6 => Expr::Concat(self.exprs(rules, depth, 0)?),
            7 => Expr::Choice(self.exprs(rules, depth, 1)?),
            _ => {
                // Six levels of {3,6} are 46,656 times in very many ways: a text of a few thousand
                // bytes then takes seconds.
                let most = 3_u32.saturating_sub(self.n_around);
                let min = self.u.int_in_range(0..=most)?;
                let max = match self.u.int_in_range(0..=most + 1)? {
                    0 => None,
                    more => Some(min + more - 1),
                };
                let repeat = Repeat::new(min, max).expect("small and in order");
                self.n_around += 1;
                let inner = self.expr(rules, depth + 1);
                self.n_around -= 1;
                Expr::Repeat(Box::new(inner?), repeat)
            }
        })
    }

    fn exprs(&mut self, rules: &[&str], depth: usize, least: usize) -> Result<Vec<Expr>> {
        let n_parts = self.u.int_in_range(least..=3)?;
        (0..n_parts).map(|_| self.expr(rules, depth + 1)).collect()
    }

    fn class(&mut self) -> Result<Class> {
        let n_ranges = self.u.int_in_range(0..=2)?;
        let mut ranges = Vec::new();
        for _ in 0..n_ranges {
            let (one, other) = (*self.u.choose(&CHARS)?, *self.u.choose(&CHARS)?);
            ranges.push((one.min(other), one.max(other)));
        }
        if ranges.is_empty() {
            ranges.push(('\0', char::MAX));
        }
        Ok(if self.u.ratio(1, 3)? { Class::but(&ranges) } else { Class::of(&ranges) })
    }
}
