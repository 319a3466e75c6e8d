//! A [`Grammar`] as a JSON document, for programs.
//!
//! ```json
//! {"rules": [
//!   {"name": "root", "comment": ["what it is"], "argument": false,
//!    "expr": {"concat": [{"literal": "x"}, {"rule": "digits"}]}},
//!   {"name": "digits", "comment": [], "argument": true,
//!    "expr": {"repeat": {"expr": {"class": {"ranges": [["0", "9"]], "negated": false}},
//!                        "min": 1, "max": null}}}
//! ]}
//! ```
//!
//! The rules are in the grammar's order, `root` first. An expression is an object with one key:
//! `literal` (a text), `class` (inclusive ranges of characters, or all but these), `rule` (a name),
//! `concat` (expressions one after the other; of none, nothing), `choice` (one of these
//! expressions), `repeat` (`min` to `max` times; no `max` is any number). `argument` tells that the
//! rule is the value of one argument of the call.
//!
//! **Invariant:** the document holds all of the grammar.

use serde::Serialize;

use super::{Expr, Grammar};

#[derive(Serialize)]
struct DocumentFormat<'a> {
    rules: Vec<RuleFormat<'a>>,
}

#[derive(Serialize)]
struct RuleFormat<'a> {
    name: &'a str,
    comment: &'a [String],
    argument: bool,
    expr: ExprFormat<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ExprFormat<'a> {
    Literal(&'a str),
    Class { ranges: &'a [(char, char)], negated: bool },
    Rule(&'a str),
    Concat(Vec<Self>),
    Choice(Vec<Self>),
    Repeat { expr: Box<Self>, min: u32, max: Option<u32> },
}

/// The document, with indentation and an end of line.
///
/// # Errors
///
/// None that is known: all keys are text and a string takes all bytes.
pub fn json(grammar: &Grammar) -> serde_json::Result<String> {
    let rules = grammar.rules().iter().map(|rule| RuleFormat {
        name: rule.name.as_str(),
        comment: &rule.comment,
        argument: rule.argument,
        expr: format(&rule.expr),
    });
    let document = DocumentFormat { rules: rules.collect() };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn format(expr: &Expr) -> ExprFormat<'_> {
    match expr {
        Expr::Literal(text) => ExprFormat::Literal(text),
        Expr::Class(class) => {
            ExprFormat::Class { ranges: class.ranges(), negated: class.is_negated() }
        }
        Expr::Rule(name) => ExprFormat::Rule(name.as_str()),
        Expr::Concat(parts) => ExprFormat::Concat(parts.iter().map(format).collect()),
        Expr::Choice(parts) => ExprFormat::Choice(parts.iter().map(format).collect()),
        Expr::Repeat(inner, repeat) => ExprFormat::Repeat {
            expr: Box::new(format(inner)),
            min: repeat.min(),
            max: repeat.max(),
        },
    }
}
