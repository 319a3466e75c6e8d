//! Function definitions to a [`Grammar`] whose `root` is one whole call:
//! `{"name": "fn_add_numbers", "arguments": {"a": 2, "b": 3.5}}`.
//!
//! **Invariant:** every text of the grammar is JSON that `serde_json` reads, and its arguments are
//! valid against the schema of the function it names.
//! **Invariant:** white space is `", "` and `": "`, nothing else; properties are in the
//! definition's order.
//! **Invariant:** the grammar is unambiguous, without left recursion, and its size is linear in the
//! schema's. Only this file and those beside it know JSON's lexical rules.

mod lexical;
mod names;
#[cfg_attr(not(test), expect(dead_code, reason = "for the strings and numbers of schemas"))]
mod terminal;
#[cfg_attr(not(test), expect(dead_code, reason = "for the strings and numbers of schemas"))]
mod automaton;

use std::collections::BTreeSet;

use serde_json::Value;

use self::lexical::{Lexical, json_text};
use self::names::Names;
use super::check::check;
use super::{Expr, Grammar, GrammarError, Rule, RuleName};
use crate::definitions::{FunctionDef, FunctionName};
use crate::schema::{self, Property, Schema, SchemaError};

/// Most characters of a description in a comment.
const MAX_COMMENT: usize = 100;

/// What becomes of a function whose schema cannot be expressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// Its name can be chosen, and the call ends right after it: `{"name": "fn_bad"}`. So the model
    /// still makes the choice, and the one prompt fails with the reason.
    Keep,
    /// It is a comment that gives the reason.
    LeaveOut,
}

/// A grammar and the functions whose arguments it does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct CallGrammar {
    /// The grammar of one call.
    pub grammar: Grammar,
    /// Functions whose schema cannot be expressed, in the order of the definitions.
    pub refused: Vec<(FunctionName, SchemaError)>,
}

/// The grammar of one call of one of the functions.
///
/// ```
/// use call_me_maybe::grammar::lower::{Unsupported, calls};
/// use call_me_maybe::grammar::recognize::Recognizer;
///
/// let file = br#"[{"name": "fn_wait", "parameters": {"seconds": {"type": "integer"}}}]"#;
/// let functions = call_me_maybe::definitions::parse(file)?;
/// let recognizer = Recognizer::new(&calls(&functions, Unsupported::Keep)?.grammar)?;
/// assert!(recognizer.accepts(br#"{"name": "fn_wait", "arguments": {"seconds": 12}}"#));
/// assert!(!recognizer.accepts(br#"{"name": "fn_wait", "arguments": {"seconds": 1.5}}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`GrammarError::NoFunctions`] where there is no function, or [`Unsupported::LeaveOut`] leaves
/// none; the others would be an error of this module.
pub fn calls(
    functions: &[FunctionDef],
    unsupported: Unsupported,
) -> Result<CallGrammar, GrammarError> {
    let mut lower = Lower { rules: Vec::new(), names: Names::default(), lexical: BTreeSet::new() };
    let (mut productions, mut refused, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for function in functions {
        let name = function.name.as_str().escape_debug();
        let _span = tracing::info_span!("function", %name).entered();
        match schema::parse(&function.parameters) {
            Ok(schema) => productions.push(Expr::Rule(lower.function(function, &schema))),
            Err(error) => {
                match unsupported {
                    Unsupported::Keep => {
                        productions.push(Expr::Rule(lower.name_alone(function, &error)));
                    }
                    Unsupported::LeaveOut => {
                        left_out.push(self::left_out(function, &error));
                    }
                }
                refused.push((function.name.clone(), error));
            }
        }
    }
    if productions.is_empty() {
        return Err(GrammarError::NoFunctions { refused });
    }
    let call = Rule::new(RuleName("call".to_owned()), Expr::Choice(productions));
    let root =
        Expr::literal("{\"name\": ").then(Expr::Rule(call.name.clone())).then(Expr::literal("}"));
    let root = Rule { comment: left_out, ..Rule::new(RuleName::root(), root) };
    let mut rules = vec![root, call];
    rules.append(&mut lower.rules);
    rules.extend(lexical::rules(lower.lexical));
    let grammar = Grammar::new(rules)?;
    check(&grammar)?;
    Ok(CallGrammar { grammar, refused })
}

/// What a comment says of a function whose schema cannot be expressed.
#[must_use]
pub fn left_out(function: &FunctionDef, error: &SchemaError) -> String {
    format!("{}: left out: {}", function.name, error.in_file(function))
}

struct Lower {
    rules: Vec<Rule>,
    names: Names,
    lexical: BTreeSet<Lexical>,
}

impl Lower {
    /// The rule of one function: its name, quoted, then its arguments.
    fn function(&mut self, function: &FunctionDef, schema: &Schema) -> RuleName {
        let name = self.names.fresh(&[function.name.as_str()], "function");
        let at = self.reserve(&name);
        let head = format!("{}, \"arguments\": ", json_text(&Value::from(function.name.as_str())));
        let arguments = match schema {
            Schema::Object(properties) => self.object(properties, &name, true),
            // The keys are free here, so the whole object is what a limit cuts.
            other => Expr::Rule(self.argument(&name, "arguments", other)),
        };
        self.rules[at].comment = comment(function);
        self.rules[at].expr = Expr::literal(head).then(arguments);
        name
    }

    /// The rule of a function whose arguments cannot be expressed: its name, quoted.
    fn name_alone(&mut self, function: &FunctionDef, error: &SchemaError) -> RuleName {
        let name = self.names.fresh(&[function.name.as_str()], "function");
        let expr = Expr::Literal(json_text(&Value::from(function.name.as_str())));
        let mut comment = comment(function);
        comment.push(format!("no arguments: {}", error.in_file(function)));
        self.rules.push(Rule { comment, ..Rule::new(name.clone(), expr) });
        name
    }

    /// The rule of one argument's value.
    fn argument(&mut self, parent: &RuleName, key: &str, schema: &Schema) -> RuleName {
        let name = self.names.fresh(&[parent.as_str(), key], "argument");
        let at = self.reserve(&name);
        self.rules[at].expr = self.value(schema, &name);
        self.rules[at].argument = true;
        name
    }

    /// An expression for a value; `name` is that of the rule around it.
    fn value(&mut self, schema: &Schema, name: &RuleName) -> Expr {
        match schema {
            Schema::Any => self.lexical(Lexical::Any(1)),
            Schema::Null => self.lexical(Lexical::Null),
            Schema::Boolean => self.lexical(Lexical::Boolean),
            Schema::Integer => self.lexical(Lexical::Integer),
            Schema::Number => self.lexical(Lexical::Number),
            Schema::String => self.lexical(Lexical::String),
            Schema::Values(values) => {
                let texts: BTreeSet<String> = values.iter().map(json_text).collect();
                let in_order = values.iter().map(json_text);
                let mut left = texts;
                Expr::Choice(in_order.filter(|text| left.remove(text)).map(Expr::Literal).collect())
            }
            Schema::Array(None) => Expr::literal("[]"),
            Schema::Array(Some(items)) if **items == Schema::Any => self.lexical(Lexical::AnyArray),
            Schema::Array(Some(items)) => {
                let item = self.part(items, name, "item");
                lexical::array(item)
            }
            Schema::Map(values) if **values == Schema::Any => self.lexical(Lexical::AnyObject),
            Schema::Map(values) => {
                let key = self.lexical(Lexical::String);
                let value = self.part(values, name, "value");
                lexical::map(key, value)
            }
            Schema::Object(properties) => self.object(properties, name, false),
            Schema::Union(parts) => {
                // Every integer is a number; both would be ambiguous.
                let number = parts.contains(&Schema::Number);
                let parts = parts.iter().filter(|part| !number || **part != Schema::Integer);
                Expr::Choice(parts.map(|part| self.value(part, name)).collect())
            }
        }
    }

    /// A value inside another: a rule of its own where it is more than a name.
    fn part(&mut self, schema: &Schema, parent: &RuleName, key: &str) -> Expr {
        match schema {
            Schema::Values(_)
            | Schema::Object(_)
            | Schema::Union(_)
            | Schema::Array(Some(_))
            | Schema::Map(_) => {
                let name = self.names.fresh(&[parent.as_str(), key], "value");
                let at = self.reserve(&name);
                self.rules[at].expr = self.value(schema, &name);
                Expr::Rule(name)
            }
            _ => self.value(schema, parent),
        }
    }

    /// An object: the properties in order, of which the optional ones may be missing.
    ///
    /// Where some property is required, those before the first required one bring their comma
    /// behind them and those after it in front. Where none is, each may be the first, and a rule
    /// for what may follow it keeps the size linear.
    fn object(&mut self, properties: &[Property], name: &RuleName, arguments: bool) -> Expr {
        let members: Vec<Expr> = properties
            .iter()
            .map(|property| {
                let value = if arguments {
                    Expr::Rule(self.argument(name, &property.name, &property.schema))
                } else {
                    self.part(&property.schema, name, &property.name)
                };
                let key = json_text(&Value::from(property.name.as_str()));
                Expr::literal(format!("{key}: ")).then(value)
            })
            .collect();
        let comma = || Expr::literal(", ");
        let Some(first) = properties.iter().position(|property| property.required) else {
            return self.optional_members(properties, members, name);
        };
        let mut expr = Expr::literal("{");
        for (index, (property, member)) in properties.iter().zip(members).enumerate() {
            expr = match index.cmp(&first) {
                std::cmp::Ordering::Less => expr.then(member.then(comma()).optional()),
                std::cmp::Ordering::Equal => expr.then(member),
                std::cmp::Ordering::Greater if property.required => expr.then(comma()).then(member),
                std::cmp::Ordering::Greater => expr.then(comma().then(member).optional()),
            };
        }
        expr.then(Expr::literal("}"))
    }

    fn optional_members(
        &mut self,
        properties: &[Property],
        members: Vec<Expr>,
        name: &RuleName,
    ) -> Expr {
        // From the last to the first: `after` is what may follow the member at hand.
        let mut after: Option<Expr> = None;
        let mut starts = Vec::new();
        let mut rules = Vec::new();
        for (index, member) in members.into_iter().enumerate().rev() {
            let start = match &after {
                None => member.clone(),
                Some(after) => member.clone().then(after.clone()),
            };
            starts.push(start);
            let mut rest = Expr::literal(", ").then(member).optional();
            if let Some(after) = after {
                rest = rest.then(after);
            }
            after = index.checked_sub(1).map(|before| {
                let key = format!("after {}", properties[before].name);
                let rule = Rule::new(self.names.fresh(&[name.as_str(), &key], "after"), rest);
                let reference = Expr::Rule(rule.name.clone());
                rules.push(rule);
                reference
            });
        }
        if starts.is_empty() {
            return Expr::literal("{}");
        }
        self.rules.extend(rules.into_iter().rev());
        starts.reverse();
        let members = if starts.len() == 1 { starts.remove(0) } else { Expr::Choice(starts) };
        Expr::literal("{").then(members.optional()).then(Expr::literal("}"))
    }

    fn lexical(&mut self, rule: Lexical) -> Expr {
        self.lexical.insert(rule);
        Expr::Rule(rule.name())
    }

    /// A place for a rule, so that it stands before the rules it uses.
    fn reserve(&mut self, name: &RuleName) -> usize {
        self.rules.push(Rule::new(name.clone(), Expr::Concat(Vec::new())));
        self.rules.len() - 1
    }
}

/// The function's real name and what it does, for readers.
fn comment(function: &FunctionDef) -> Vec<String> {
    let first = function.description.as_deref().unwrap_or_default().trim().lines().next();
    match first {
        Some(line) if !line.is_empty() => {
            let cut = line.char_indices().nth(MAX_COMMENT).map(|(index, _)| &line[..index]);
            let line = cut.map_or(line.to_owned(), |start| format!("{start}…"));
            vec![format!("{}: {line}", function.name)]
        }
        _ => vec![function.name.to_string()],
    }
}
