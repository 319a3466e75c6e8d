//! JSON's lexical rules, as `serde_json` reads them back, and values as text.
//!
//! **Invariant:** the same rule has the same text in every grammar.

use std::collections::BTreeSet;
use std::io;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use crate::grammar::{Class, Expr, Rule, RuleName};

/// The rules that do not depend on the functions, in the order they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lexical {
    /// Any value.
    Value,
    /// An object with any keys and values.
    Object,
    /// An array of any values.
    Array,
    Number,
    Integer,
    Boolean,
    Null,
    String,
    Char,
    Escape,
    /// A character that must be escaped, the shortest way.
    Escaped,
    Hex,
}

impl Lexical {
    const ALL: [Self; 12] = [
        Self::Value,
        Self::Object,
        Self::Array,
        Self::Number,
        Self::Integer,
        Self::Boolean,
        Self::Null,
        Self::String,
        Self::Char,
        Self::Escape,
        Self::Escaped,
        Self::Hex,
    ];

    pub(super) fn name(self) -> RuleName {
        // They stand in every grammar many times, so their names are made once.
        static NAMES: LazyLock<[RuleName; Lexical::ALL.len()]> =
            LazyLock::new(|| Lexical::ALL.map(|rule| RuleName(rule.text().into())));
        NAMES[self as usize].clone()
    }

    fn text(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Object => "object",
            Self::Array => "array",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Null => "null",
            Self::String => "string",
            Self::Char => "char",
            Self::Escape => "escape",
            Self::Escaped => "escaped",
            Self::Hex => "hex",
        }
    }

    /// The rules that this one uses.
    fn uses(self) -> Vec<Self> {
        match self {
            Self::Value => {
                vec![
                    Self::Object,
                    Self::Array,
                    Self::String,
                    Self::Number,
                    Self::Boolean,
                    Self::Null,
                ]
            }
            Self::Object => vec![Self::Value, Self::String],
            Self::Array => vec![Self::Value],
            Self::String => vec![Self::Char],
            Self::Char => vec![Self::Escape],
            Self::Escape | Self::Escaped => vec![Self::Hex],
            Self::Number | Self::Integer | Self::Boolean | Self::Null | Self::Hex => Vec::new(),
        }
    }

    fn expr(self) -> Expr {
        let digit = || Expr::Class(Class::of(&[('0', '9')]));
        // RFC 8259, section 6: no leading zeros.
        let positive = || Expr::Class(Class::of(&[('1', '9')])).then(digit().any_times());
        let rule = |rule: Self| Expr::Rule(rule.name());
        match self {
            Self::Value => rule(Self::String)
                .or(rule(Self::Number))
                .or(rule(Self::Boolean))
                .or(rule(Self::Null))
                .or(rule(Self::Array))
                .or(rule(Self::Object)),
            Self::Object => map(rule(Self::String), rule(Self::Value)),
            Self::Array => array(rule(Self::Value)),
            Self::Number => {
                let whole = Expr::literal("0").or(positive());
                let fraction = Expr::literal(".").then(digit().at_least_once());
                let sign = Expr::Class(Class::of(&[('+', '+'), ('-', '-')])).optional();
                let exponent = Expr::Class(Class::of(&[('e', 'e'), ('E', 'E')]))
                    .then(sign)
                    .then(digit().at_least_once());
                Expr::literal("-")
                    .optional()
                    .then(whole)
                    .then(fraction.optional())
                    .then(exponent.optional())
            }
            // No `-0`: `serde_json` reads it as a float.
            Self::Integer => Expr::literal("0").or(Expr::literal("-").optional().then(positive())),
            Self::Boolean => Expr::literal("true").or(Expr::literal("false")),
            Self::Null => Expr::literal("null"),
            Self::String => {
                let quote = || Expr::literal("\"");
                quote().then(rule(Self::Char).any_times()).then(quote())
            }
            // RFC 8259, section 7; U+007F is legal raw there, but no terminal shows it.
            Self::Char => {
                let plain =
                    Class::but(&[('"', '"'), ('\\', '\\'), ('\0', '\u{1f}'), ('\u{7f}', '\u{7f}')]);
                Expr::Class(plain).or(Expr::literal("\\").then(rule(Self::Escape)))
            }
            Self::Escape => {
                let single = [
                    ('"', '"'),
                    ('\\', '\\'),
                    ('/', '/'),
                    ('b', 'b'),
                    ('f', 'f'),
                    ('n', 'n'),
                    ('r', 'r'),
                    ('t', 't'),
                ];
                let hex = || rule(Self::Hex);
                let d = || Expr::Class(Class::of(&[('d', 'd'), ('D', 'D')]));
                let not_d = [('0', '9'), ('a', 'c'), ('A', 'C'), ('e', 'f'), ('E', 'F')];
                let plain = Expr::Class(Class::of(&not_d)).then(hex()).then(hex()).then(hex());
                let below = d().then(Expr::Class(Class::of(&[('0', '7')]))).then(hex()).then(hex());
                // A high surrogate, then a low one; `serde_json` refuses either alone.
                let high = Class::of(&[('8', '9'), ('a', 'b'), ('A', 'B')]);
                let low = Class::of(&[('c', 'f'), ('C', 'F')]);
                let pair = d()
                    .then(Expr::Class(high))
                    .then(hex())
                    .then(hex())
                    .then(Expr::literal("\\u"))
                    .then(d())
                    .then(Expr::Class(low))
                    .then(hex())
                    .then(hex());
                let unit = plain.or(below).or(pair);
                Expr::Class(Class::of(&single)).or(Expr::literal("u").then(unit))
            }
            Self::Escaped => {
                let short = Class::of(&[
                    ('"', '"'),
                    ('\\', '\\'),
                    ('b', 'b'),
                    ('f', 'f'),
                    ('n', 'n'),
                    ('r', 'r'),
                    ('t', 't'),
                ]);
                let low = Expr::Class(Class::of(&[('0', '1')])).then(rule(Self::Hex));
                let delete =
                    Expr::literal("7").then(Expr::Class(Class::of(&[('f', 'f'), ('F', 'F')])));
                let code = Expr::literal("u00").then(low.or(delete));
                Expr::literal("\\").then(Expr::Class(short).or(code))
            }
            Self::Hex => Expr::Class(Class::of(&[('0', '9'), ('a', 'f'), ('A', 'F')])),
        }
    }
}

/// The names of all of them, used or not, so that no other rule takes one.
pub(super) fn names() -> impl Iterator<Item = RuleName> {
    Lexical::ALL.into_iter().map(Lexical::name)
}

/// The rules of `used` and all that they use.
pub(super) fn rules(mut used: BTreeSet<Lexical>) -> Vec<Rule> {
    let mut open: Vec<Lexical> = used.iter().copied().collect();
    while let Some(rule) = open.pop() {
        open.extend(rule.uses().into_iter().filter(|inner| used.insert(*inner)));
    }
    used.into_iter().map(|rule| Rule::new(rule.name(), rule.expr())).collect()
}

/// `[]`, or items with `", "` between them.
pub(super) fn array(item: Expr) -> Expr {
    Expr::literal("[").then(list(item)).then(Expr::literal("]"))
}

/// `{}`, or members with `", "` between them.
pub(super) fn map(key: Expr, value: Expr) -> Expr {
    let member = key.then(Expr::literal(": ")).then(value);
    Expr::literal("{").then(list(member)).then(Expr::literal("}"))
}

fn list(item: Expr) -> Expr {
    let more = Expr::literal(", ").then(item.clone()).any_times();
    item.then(more).optional()
}

/// A value as the grammar writes it: `", "` and `": "` between, non-ASCII raw, as few escapes as
/// JSON allows.
pub(super) fn json_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Spaced);
    // Writing a `Value` to memory has no way to go wrong, and its text is UTF-8.
    let _ = value.serialize(&mut serializer);
    String::from_utf8(bytes).unwrap_or_default()
}

/// One space after a comma and a colon, as Python's `json.dumps` has it and as models were trained.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
