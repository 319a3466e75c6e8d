//! A [`Grammar`] as GBNF text, one rule a line, `root` first.
//!
//! **Invariant:** only this file writes quotes and escapes of GBNF, and llama.cpp's parser
//! (`llama-grammar.cpp`, `parse_char`) knows every escape it writes.
//! **Invariant:** nothing in a name, a comment or a literal can end its line, begin a rule, or
//! reach a terminal as a control character.

use std::fmt::Write as _;

use super::{Class, Expr, Grammar, Repeat};

/// The text that llama.cpp loads and people read.
#[must_use]
pub fn gbnf(grammar: &Grammar) -> String {
    // Most rules are shorter.
    let mut text = String::with_capacity(128 * grammar.rules().len());
    for rule in grammar.rules() {
        for line in &rule.comment {
            push_comment(&mut text, line);
        }
        text.push_str(rule.name.as_str());
        text.push_str(" ::= ");
        expr(&mut text, &rule.expr, Around::Rule);
        text.push('\n');
    }
    text
}

/// A comment line of a GBNF text, its end of line included.
#[must_use]
pub fn comment(line: &str) -> String {
    let mut text = String::new();
    push_comment(&mut text, line);
    text
}

fn push_comment(text: &mut String, line: &str) {
    text.push_str("# ");
    if line.bytes().all(|b| matches!(b, b' '..=b'~')) {
        text.push_str(line);
    } else {
        text.extend(line.chars().map(|c| if is_hidden(c) { ' ' } else { c }));
    }
    text.push('\n');
}

/// What stands around an expression, from what binds least to what binds most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Around {
    Rule,
    Choice,
    Concat,
    Repeat,
}

fn expr(text: &mut String, this: &Expr, around: Around) {
    match this {
        Expr::Literal(literal) => {
            text.push('"');
            let plain = |c: char| matches!(c, ' '..='~') && c != '"' && c != '\\';
            for run in literal.split_inclusive(|c| !plain(c)) {
                let before = run.trim_end_matches(|c| !plain(c));
                text.push_str(before);
                run[before.len()..].chars().for_each(|c| char_in(text, c, &['"', '\\']));
            }
            text.push('"');
        }
        Expr::Class(set) => class(text, set),
        Expr::Rule(name) => text.push_str(name.as_str()),
        // llama.cpp takes no repetition of an empty literal, but of a group of one.
        Expr::Concat(parts) if parts.is_empty() => {
            text.push_str(if around == Around::Repeat { "(\"\")" } else { "\"\"" });
        }
        Expr::Concat(parts) => joined(text, parts, " ", Around::Concat, around >= Around::Concat),
        Expr::Choice(parts) => joined(text, parts, " | ", Around::Choice, around >= Around::Choice),
        Expr::Repeat(inner, repeat) => {
            // GBNF has no repetition of a repetition without parentheses between them.
            let twice = around == Around::Repeat;
            if twice {
                text.push('(');
            }
            expr(text, inner, Around::Repeat);
            suffix(text, *repeat);
            if twice {
                text.push(')');
            }
        }
    }
}

fn joined(text: &mut String, parts: &[Expr], between: &str, inside: Around, grouped: bool) {
    if grouped {
        text.push('(');
    }
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push_str(between);
        }
        expr(text, part, inside);
    }
    if grouped {
        text.push(')');
    }
}

fn suffix(text: &mut String, repeat: Repeat) {
    let _ = match (repeat.min(), repeat.max()) {
        (0, Some(1)) => write!(text, "?"),
        (0, None) => write!(text, "*"),
        (1, None) => write!(text, "+"),
        (min, None) => write!(text, "{{{min},}}"),
        (min, Some(max)) if min == max => write!(text, "{{{min}}}"),
        (min, Some(max)) => write!(text, "{{{min},{max}}}"),
    };
}

fn class(text: &mut String, class: &Class) {
    const SPECIAL: &[char] = &['[', ']', '\\', '-', '^'];
    if *class == Class::any() {
        text.push('.');
        return;
    }
    text.push_str(if class.is_negated() { "[^" } else { "[" });
    for &(first, last) in class.ranges() {
        char_in(text, first, SPECIAL);
        if last > first {
            if u32::from(last) - u32::from(first) > 1 {
                text.push('-');
            }
            char_in(text, last, SPECIAL);
        }
    }
    text.push(']');
}

/// A character inside quotes or brackets; `special` ones and those that do not show are escaped.
fn char_in(text: &mut String, c: char, special: &[char]) {
    // Nearly all of them; a formatter for each would be most of the time that printing takes.
    if c.is_ascii_graphic() && !special.contains(&c) || c == ' ' {
        text.push(c);
        return;
    }
    let _ = match c {
        '\n' => write!(text, "\\n"),
        '\r' => write!(text, "\\r"),
        '\t' => write!(text, "\\t"),
        // The parser has no escape for this one but its number.
        '^' if special.contains(&c) => write!(text, "\\x5E"),
        _ if special.contains(&c) => write!(text, "\\{c}"),
        _ if is_hidden(c) => match u32::from(c) {
            code @ 0..=0xff => write!(text, "\\x{code:02X}"),
            code @ 0x100..=0xffff => write!(text, "\\u{code:04X}"),
            code => write!(text, "\\U{code:08X}"),
        },
        _ => write!(text, "{c}"),
    };
}

/// Controls, and marks that reorder or hide what stands around them.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
