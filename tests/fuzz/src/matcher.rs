//! What a grammar means, by trying every way: too simple to be wrong, and for short texts only.

use std::collections::{BTreeSet, HashMap, HashSet};

use call_me_maybe::grammar::{Class, Expr, Grammar, RuleName};

/// A grammar on one text.
#[derive(Debug)]
pub struct Matcher<'a> {
    rules: HashMap<&'a RuleName, &'a Expr>,
    root: &'a Expr,
    /// Rules that have a text at all; a class may hold no character.
    productive: HashSet<&'a RuleName>,
}

impl<'a> Matcher<'a> {
    /// Takes a grammar that passes the check: left recursion would not end.
    #[must_use]
    pub fn new(grammar: &'a Grammar) -> Self {
        let rules: HashMap<_, _> = grammar.rules().iter().map(|r| (&r.name, &r.expr)).collect();
        let mut productive = HashSet::new();
        loop {
            let before = productive.len();
            for (name, expr) in &rules {
                if has_text(expr, &productive) {
                    productive.insert(*name);
                }
            }
            if productive.len() == before {
                break;
            }
        }
        Self { root: &grammar.rules()[0].expr, rules, productive }
    }

    /// Whether the text is one of the grammar's.
    #[must_use]
    pub fn is_whole(&self, text: &[u8]) -> bool {
        Run { matcher: self, text, ends: HashMap::new(), begins: HashMap::new() }
            .ends(self.root, 0)
            .contains(&text.len())
    }

    /// Whether some text of the grammar begins with this one.
    #[must_use]
    pub fn begins(&self, text: &[u8]) -> bool {
        Run { matcher: self, text, ends: HashMap::new(), begins: HashMap::new() }
            .begins(self.root, 0)
    }
}

fn has_text(expr: &Expr, productive: &HashSet<&RuleName>) -> bool {
    match expr {
        Expr::Literal(_) => true,
        Expr::Class(class) => holds_any(class, &[(0, 0xd7ff), (0xe000, 0x0010_ffff)]),
        Expr::Rule(name) => productive.contains(name),
        Expr::Concat(parts) => parts.iter().all(|part| has_text(part, productive)),
        Expr::Choice(parts) => parts.iter().any(|part| has_text(part, productive)),
        Expr::Repeat(inner, repeat) => repeat.min() == 0 || has_text(inner, productive),
    }
}

struct Run<'a> {
    matcher: &'a Matcher<'a>,
    text: &'a [u8],
    ends: HashMap<(&'a RuleName, usize), BTreeSet<usize>>,
    begins: HashMap<(&'a RuleName, usize), bool>,
}

impl<'a> Run<'a> {
    /// The places where a text of the expression that begins at `from` can end.
    fn ends(&mut self, expr: &'a Expr, from: usize) -> BTreeSet<usize> {
        match expr {
            Expr::Literal(literal) => self.text[from..]
                .starts_with(literal.as_bytes())
                .then_some(from + literal.len())
                .into_iter()
                .collect(),
            Expr::Class(class) => first_char(&self.text[from..])
                .filter(|c| holds_any(class, &[(u32::from(*c), u32::from(*c))]))
                .map(|c| from + c.len_utf8())
                .into_iter()
                .collect(),
            Expr::Rule(name) => {
                if let Some(known) = self.ends.get(&(name, from)) {
                    return known.clone();
                }
                let found = self.ends(self.matcher.rules[name], from);
                self.ends.insert((name, from), found.clone());
                found
            }
            Expr::Concat(parts) => {
                parts.iter().fold(BTreeSet::from([from]), |starts, part| self.each(part, &starts))
            }
            Expr::Choice(parts) => parts.iter().flat_map(|part| self.ends(part, from)).collect(),
            Expr::Repeat(inner, repeat) => {
                let (mut found, mut starts) = (BTreeSet::new(), BTreeSet::from([from]));
                let mut times = 0;
                while !starts.is_empty() && repeat.max().is_none_or(|max| times <= max) {
                    if times >= repeat.min() {
                        found.extend(&starts);
                    }
                    starts = self.each(inner, &starts);
                    times += 1;
                }
                found
            }
        }
    }

    fn each(&mut self, expr: &'a Expr, starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        starts.iter().flat_map(|start| self.ends(expr, *start)).collect()
    }

    /// Whether some text of the expression begins with all that follows `from`.
    fn begins(&mut self, expr: &'a Expr, from: usize) -> bool {
        let rest = &self.text[from..];
        match expr {
            Expr::Literal(literal) => literal.as_bytes().starts_with(rest),
            Expr::Class(class) => holds_any(class, &chars_beginning(rest)),
            Expr::Rule(name) => {
                if let Some(known) = self.begins.get(&(name, from)) {
                    return *known;
                }
                let found = self.begins(self.matcher.rules[name], from);
                self.begins.insert((name, from), found);
                found
            }
            Expr::Concat(parts) => {
                let mut starts = BTreeSet::from([from]);
                for (index, part) in parts.iter().enumerate() {
                    let rest = &parts[index + 1..];
                    if rest.iter().all(|part| has_text(part, &self.matcher.productive))
                        && starts.iter().any(|start| self.begins(part, *start))
                    {
                        return true;
                    }
                    starts = self.each(part, &starts);
                }
                starts.contains(&self.text.len())
            }
            Expr::Choice(parts) => parts.iter().any(|part| self.begins(part, from)),
            Expr::Repeat(inner, repeat) => {
                let mut starts = BTreeSet::from([from]);
                let mut times = 0;
                while !starts.is_empty() {
                    if times >= repeat.min() && starts.contains(&self.text.len()) {
                        return true;
                    }
                    if repeat.max().is_some_and(|max| times == max) {
                        return false;
                    }
                    if starts.iter().any(|start| self.begins(inner, *start)) {
                        return true;
                    }
                    starts = self.each(inner, &starts);
                    times += 1;
                }
                false
            }
        }
    }
}

fn first_char(bytes: &[u8]) -> Option<char> {
    (1..=bytes.len().min(4))
        .find_map(|n| std::str::from_utf8(&bytes[..n]).ok())
        .and_then(|text| text.chars().next())
}

/// The code points whose UTF-8 begins with all of the bytes.
fn chars_beginning(bytes: &[u8]) -> Vec<(u32, u32)> {
    let Some((first, others)) = bytes.split_first() else {
        return vec![(0, 0xd7ff), (0xe000, 0x10_ffff)];
    };
    let (lead, n_bytes, legal): (u8, usize, &[(u32, u32)]) = match first {
        0..0x80 => (*first, 1, &[(0, 0x7f)]),
        0xc0..0xe0 => (first & 0x1f, 2, &[(0x80, 0x7ff)]),
        0xe0..0xf0 => (first & 0x0f, 3, &[(0x800, 0xd7ff), (0xe000, 0xffff)]),
        0xf0..0xf8 => (first & 0x07, 4, &[(0x1_0000, 0x10_ffff)]),
        _ => return Vec::new(),
    };
    if bytes.len() > n_bytes || others.iter().any(|byte| byte & 0xc0 != 0x80) {
        return Vec::new();
    }
    let code = others.iter().fold(u32::from(lead), |code, byte| code << 6 | u32::from(byte & 0x3f));
    let shift = 6 * (n_bytes - bytes.len());
    let (low, high) = (code << shift, ((code + 1) << shift) - 1);
    legal
        .iter()
        .map(|(first, last)| (low.max(*first), high.min(*last)))
        .filter(|(first, last)| first <= last)
        .collect()
}

/// Whether the class holds a code point of the ranges.
fn holds_any(class: &Class, ranges: &[(u32, u32)]) -> bool {
    let listed = |code: u32| {
        let mut all = class.ranges().iter();
        all.find(|(first, last)| (u32::from(*first)..=u32::from(*last)).contains(&code))
    };
    ranges.iter().any(|(first, last)| {
        let mut code = *first;
        while code <= *last {
            match listed(code) {
                Some(_) if !class.is_negated() => return true,
                // The next one that this range does not hold.
                Some((_, end)) => code = u32::from(*end) + 1,
                None if class.is_negated() => return true,
                None => {
                    let starts = class.ranges().iter().map(|(start, _)| u32::from(*start));
                    match starts.filter(|start| *start > code).min() {
                        Some(next) => code = next,
                        None => break,
                    }
                }
            }
        }
        false
    })
}
