//! Sets of code points as terminals: as they are, and as the characters of a JSON string.

use crate::grammar::lower::lexical::Lexical;
use crate::grammar::lower::prefix::one_of;
use crate::grammar::{Class, Expr};

/// Whether the set holds every code point, where [`string_terminal`] refers to [`Lexical::Char`].
pub(super) fn is_any(ranges: &[(char, char)]) -> bool {
    ranges == [('\0', char::MAX)]
}

/// The code points as they are.
pub(super) fn plain_terminal(ranges: &[(char, char)]) -> Expr {
    if let [(first, last)] = ranges {
        if first == last {
            return Expr::literal(*first);
        }
    }
    Expr::Class(shortest(ranges))
}

/// The code points inside a JSON string, each spelled the shortest way; all of them, in any
/// spelling, are the rule [`Lexical::Char`].
pub(super) fn string_terminal(ranges: &[(char, char)]) -> Expr {
    if is_any(ranges) {
        return Expr::Rule(Lexical::Char.name());
    }
    let holds = |c: char| ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
    let mut productions = Vec::new();
    let raw = raw(ranges);
    if !raw.is_empty() {
        productions.push(plain_terminal(&raw));
    }
    if must_be_escaped().all(holds) {
        productions.push(Expr::Rule(Lexical::Escaped.name()));
        return one_of(productions);
    }
    let mut escapes = Vec::new();
    let short = [
        ('"', '"'),
        ('\\', '\\'),
        ('\u{8}', 'b'),
        ('\u{c}', 'f'),
        ('\n', 'n'),
        ('\r', 'r'),
        ('\t', 't'),
    ];
    let letters: Vec<_> =
        short.iter().filter(|(c, _)| holds(*c)).map(|(_, letter)| (*letter, *letter)).collect();
    if !letters.is_empty() {
        escapes.push(plain_terminal(&letters));
    }
    let mut hex = Vec::new();
    for high in [0, 1, 7] {
        let codes = (high * 16..high * 16 + 16).filter_map(char::from_u32);
        let is_hex = |c: &char| c.is_control() && short.iter().all(|(other, _)| other != c);
        let low: Vec<char> = codes
            .filter(|c| is_hex(c) && holds(*c))
            .filter_map(|c| char::from_digit(u32::from(c) % 16, 16))
            .flat_map(|digit| [digit, digit.to_ascii_uppercase()])
            .collect();
        if !low.is_empty() {
            let head = char::from_digit(high, 16).map(Expr::literal);
            let low = plain_terminal(&set_of(low));
            hex.extend(head.map(|head| head.then(low)));
        }
    }
    if !hex.is_empty() {
        escapes.push(Expr::literal("u00").then(one_of(hex)));
    }
    if !escapes.is_empty() {
        productions.push(Expr::literal("\\").then(one_of(escapes)));
    }
    one_of(productions)
}

/// The characters that do not stand in a string as they are.
fn must_be_escaped() -> impl Iterator<Item = char> {
    ('\0'..='\u{1f}').chain(['"', '\\', '\u{7f}'])
}

/// What of the set stands in a string as it is; U+007F could, but no terminal shows it.
fn raw(ranges: &[(char, char)]) -> Vec<(char, char)> {
    const PARTS: [(char, char); 4] = [(' ', '!'), ('#', '['), (']', '~'), ('\u{80}', char::MAX)];
    let mut raw = Vec::with_capacity(ranges.len() + 3);
    for (first, last) in ranges {
        let cut = PARTS.iter().map(|(start, end)| (*first.max(start), *last.min(end)));
        raw.extend(cut.filter(|(start, end)| start <= end));
    }
    raw
}

fn set_of(mut chars: Vec<char>) -> Vec<(char, char)> {
    chars.sort_unstable();
    chars.dedup();
    let mut set: Vec<(char, char)> = Vec::new();
    for c in chars {
        match set.last_mut() {
            Some((_, last)) if u32::from(*last) + 1 == u32::from(c) => *last = c,
            _ => set.push((c, c)),
        }
    }
    set
}

/// The class, by what it leaves out where that is less to read.
fn shortest(ranges: &[(char, char)]) -> Class {
    let mut others = Vec::with_capacity(ranges.len() + 1);
    let mut next = 0;
    for (first, last) in ranges {
        let first = u32::from(*first);
        // The hole of the surrogates is in no set and needs no mention.
        let before = if first == 0xe000 { 0xd7ff } else { first.saturating_sub(1) };
        let from = if next == 0xd800 { 0xe000 } else { next };
        if from < first {
            others.extend(char::from_u32(from).zip(char::from_u32(before)).filter(|(a, b)| a <= b));
        }
        next = u32::from(*last) + 1;
    }
    let to_end = ranges.last().is_some_and(|(_, last)| *last == char::MAX);
    if to_end && !others.is_empty() && others.len() <= ranges.len() {
        Class::but(&others)
    } else {
        Class::of(ranges)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::grammar::print::gbnf;
    use crate::grammar::{Grammar, Rule, RuleName};

    #[track_caller]
    fn check(terminal: fn(&[(char, char)]) -> Expr, ranges: &[(char, char)], expected: &str) {
        let rule = Rule::new(RuleName::root(), terminal(ranges));
        let text = gbnf(&Grammar::new(vec![rule]).unwrap());
        assert_eq!(text, format!("root ::= {expected}\n"));
    }

    #[test]
    fn classes_are_written_the_short_way() {
        check(plain_terminal, &[('a', 'a')], r#""a""#);
        check(plain_terminal, &[('0', '9'), ('a', 'f')], "[0-9a-f]");
        check(plain_terminal, &[('!', '/'), ('a', 'b')], "[!-/ab]");
        check(plain_terminal, &[('\0', '`'), ('{', char::MAX)], "[^a-z]");
        check(plain_terminal, &[('b', '\u{d7ff}')], "[b-\u{d7ff}]");
    }

    #[test]
    fn string_characters_are_spelled_one_way() {
        check(string_terminal, &[('\0', char::MAX)], "char");
        check(string_terminal, &[('a', 'z')], "[a-z]");
        check(string_terminal, &[('"', '"')], r#""\\\"""#);
        check(string_terminal, &[('\\', '\\')], r#""\\\\""#);
        check(string_terminal, &[('\n', '\n')], r#""\\n""#);
        check(string_terminal, &[('\u{7f}', '\u{7f}')], r#""\\u007" [Ff]"#);
        check(string_terminal, &[('\u{1}', '\u{1}')], r#""\\u0001""#);
        check(string_terminal, &[('\t', '\r')], r#""\\" ([fnrt] | "u000" [Bb])"#);
        check(
            string_terminal,
            &[('\0', '\t'), ('\u{b}', char::MAX)],
            r#"[^\x00-\x1F"\\\x7F] | "\\" (["\\bfrt] | "u00" ("0" [0-7BEFbef] | "1" [0-9A-Fa-f] | "7" [Ff]))"#,
        );
    }
}
