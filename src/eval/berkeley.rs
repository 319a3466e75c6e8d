//! Calls and the answers of a case in; right or the reason out, by the rules of the Berkeley function-calling
//! leaderboard.
//!
//! One call is held against one answer: its name; all required parameters; no argument that the function or the
//! answer has not; each value of the declared type (an integer is a number, no declared type is a string) or of
//! the type of the first option, list items likewise one level deep; each value among the options, texts without
//! blanks, marks and case; and what is left out has the option `""`.
//!
//! **Invariant:** reasons come in the order in which the leaderboard checks, so that they can be compared.

use serde_json::{Map, Value};

use super::equality::{as_double, is_alike, is_equal, kind, squash};
use super::{Call, Miss, Reason, Scoring};
use crate::definitions::FunctionDef;

/// How calls are held against answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Right without a call.
    NoCall,
    /// Right with any call.
    AnyCall,
    /// One call against one answer.
    One,
    /// As many calls as answers, in any order.
    Several,
}

impl Rule {
    /// By the words of a category, else by the number of answers.
    #[must_use]
    pub fn of(category: &str, n_answers: usize) -> Self {
        if category.contains("irrelevance") {
            Self::NoCall
        } else if category.contains("relevance") {
            Self::AnyCall
        } else if category.contains("parallel") || n_answers > 1 {
            Self::Several
        } else if n_answers == 1 {
            Self::One
        } else {
            Self::NoCall
        }
    }
}

/// A call that is expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The function.
    pub name: String,
    /// Parameters, each with its options; `""` among them means that it may be left out.
    pub options: Vec<(String, Vec<Value>)>,
}

impl Answer {
    fn options(&self, parameter: &str) -> Option<&[Value]> {
        let found = self.options.iter().find(|(name, _)| name == parameter);
        found.map(|(_, options)| options.as_slice())
    }
}

fn is_may_omit(option: &Value) -> bool {
    option == ""
}

pub(super) fn judge(
    rule: Rule,
    answers: &[Answer],
    calls: &[Call],
    functions: &[FunctionDef],
    scoring: Scoring,
) -> Result<(), Miss> {
    let judge = Judge { functions, scoring };
    match (rule, calls, answers) {
        (Rule::NoCall, [], _) | (Rule::AnyCall, [_, ..], _) => Ok(()),
        (Rule::NoCall, ..) => {
            let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            Miss::because(Reason::Called, names.join(", "))
        }
        (Rule::AnyCall, ..) => Miss::because(Reason::NoCall, "at least one call expected"),
        _ if calls.len() != answers.len() => {
            let detail = format!("made {}, expected {}", calls.len(), answers.len());
            Miss::because(Reason::WrongCount, detail)
        }
        (Rule::One, [call], [answer]) => judge.call(call, answer),
        _ => judge.assign(calls, answers),
    }
}

struct Judge<'a> {
    functions: &'a [FunctionDef],
    scoring: Scoring,
}

impl Judge<'_> {
    fn call(&self, call: &Call, answer: &Answer) -> Result<(), Miss> {
        let (function, arguments) = called(call, &answer.name, self.functions)?;
        let required = function.parameters.get("required").and_then(Value::as_array);
        let mut required = required.into_iter().flatten().filter_map(Value::as_str);
        if let Some(missing) = required.find(|name| !arguments.contains_key(*name)) {
            return Miss::because(Reason::MissingRequired, missing);
        }
        let properties = function.parameters.get("properties");
        for (name, value) in arguments {
            let schema = properties.and_then(|properties| properties.get(name));
            let (Some(schema), Some(options)) = (schema, answer.options(name)) else {
                return Miss::because(Reason::UnexpectedArgument, name);
            };
            let is_same =
                self.scoring == Scoring::Lenient && options.iter().any(|one| is_same(value, one));
            if !is_same {
                argument(name, value, options, schema)?;
            }
        }
        let is_missing = |(name, options): &&(String, Vec<Value>)| {
            !arguments.contains_key(name) && !options.iter().any(is_may_omit)
        };
        match answer.options.iter().find(is_missing) {
            Some((name, options)) => Miss::because(
                Reason::MissingArgument,
                format!("{name}, expected one of {}", list(options)),
            ),
            None => Ok(()),
        }
    }

    /// Gives every answer a call of its own.
    ///
    /// In strict scoring each takes the first that fits it and is free, as the leaderboard has it, which can
    /// depend on the order of the calls; in lenient scoring an answer makes room for another where it can.
    fn assign(&self, calls: &[Call], answers: &[Answer]) -> Result<(), Miss> {
        let mut owners = vec![None; calls.len()];
        for (index, answer) in answers.iter().enumerate() {
            if !self.place(index, calls, answers, &mut owners, &mut vec![false; calls.len()]) {
                let misses = calls.iter().zip(&owners).enumerate().map(|(index, (call, owner))| {
                    match (owner, self.call(call, answer)) {
                        (None, Err(miss)) => {
                            format!("call {index}: {} {}", miss.reason.name(), miss.detail)
                        }
                        _ => format!("call {index} is another's"),
                    }
                });
                let misses: Vec<String> = misses.collect();
                let detail = format!("answer {index}: {}", misses.join("; "));
                return Miss::because(Reason::UnmatchedAnswer, detail);
            }
        }
        Ok(())
    }

    /// Finds an answer a call, by an augmenting path where calls may change their owners.
    fn place(
        &self,
        answer: usize,
        calls: &[Call],
        answers: &[Answer],
        owners: &mut [Option<usize>],
        tried: &mut [bool],
    ) -> bool {
        for index in 0..calls.len() {
            let is_taken = owners[index].is_some() && self.scoring == Scoring::Strict;
            if tried[index] || is_taken || self.call(&calls[index], &answers[answer]).is_err() {
                continue;
            }
            tried[index] = true;
            let has_room = match owners[index] {
                Some(owner) => self.place(owner, calls, answers, owners, tried),
                None => true,
            };
            if has_room {
                owners[index] = Some(answer);
                return true;
            }
        }
        false
    }
}

/// The function of a call that should be of the function of that name, and its arguments.
pub(super) fn called<'a>(
    call: &'a Call,
    name: &str,
    functions: &'a [FunctionDef],
) -> Result<(&'a FunctionDef, &'a Map<String, Value>), Miss> {
    if call.name != name {
        let detail = format!("{:?}, expected {name:?}", call.name);
        return Miss::because(Reason::WrongFunction, detail);
    }
    let Some(function) = functions.iter().find(|one| one.name.as_str() == name) else {
        return Miss::because(Reason::BadRecord, format!("{name:?} is not among the functions"));
    };
    match &call.parameters {
        Value::Object(arguments) => Ok((function, arguments)),
        other => Miss::because(Reason::BadArguments, format!("of type {}", kind(other))),
    }
}

/// The declared type; no kind of value where it is none, or a list.
fn declared(schema: &Value) -> &str {
    match schema.get("type") {
        None | Some(Value::Null) => "string",
        Some(Value::String(name)) => name,
        Some(_) => "",
    }
}

/// The type of the first option that is one.
fn first_kind(options: &[Value]) -> Option<&'static str> {
    options.iter().find(|option| !is_may_omit(option)).map(kind)
}

fn argument(name: &str, value: &Value, options: &[Value], schema: &Value) -> Result<(), Miss> {
    let wanted = declared(schema);
    let double;
    let value = if wanted == "number" && kind(value) == "integer" {
        double = as_double(value);
        &double
    } else {
        value
    };
    let item = schema.get("items").map_or("string", declared);
    let found = kind(value);
    let first = first_kind(options);
    if found == wanted {
        let items = value.as_array().filter(|_| wanted == "array");
        if items.is_some_and(|items| !options.iter().any(|option| items_fit(items, option, item))) {
            let detail = format!("{name}: {value} is not an array of {item}");
            return Miss::because(Reason::WrongItemType, detail);
        }
    } else if first != Some(found) {
        let detail = format!("{name}: {value} is of type {found}, declared {wanted}");
        return Miss::because(Reason::WrongType, detail);
    }
    // Where the options are of another type than declared, a variable for one, they stand as they are.
    let is_literal = found != wanted || first.is_some_and(|first| first != wanted);
    let fits = |option: &Value| match (value, option) {
        _ if is_literal => is_equal(value, option),
        (Value::Object(members), option) => object_fits(members, option),
        (Value::Array(items), option) => array_fits(items, option, item),
        (Value::String(value), Value::String(option)) => squash(value) == squash(option),
        _ => is_equal(value, option),
    };
    if options.iter().any(fits) {
        return Ok(());
    }
    Miss::because(Reason::WrongValue, format!("{name}: {value} not among {}", list(options)))
}

fn items_fit(items: &[Value], option: &Value, wanted: &str) -> bool {
    option.as_array().is_none_or(|option| {
        let first = first_kind(option);
        items.iter().map(kind).all(|found| found == wanted || Some(found) == first)
    })
}

/// An object's option has for each key the list of what may stand there.
fn object_fits(members: &Map<String, Value>, option: &Value) -> bool {
    let Value::Object(option) = option else { return false };
    members.iter().all(|(key, value)| match option.get(key) {
        Some(Value::Array(options)) => options.iter().any(|one| is_alike(value, one)),
        Some(only) => is_alike(value, only),
        None => false,
    }) && may_omit_the_rest(members, option)
}

fn may_omit_the_rest(members: &Map<String, Value>, option: &Map<String, Value>) -> bool {
    let may_omit =
        |options: &Value| options.as_array().is_some_and(|all| all.iter().any(is_may_omit));
    option.iter().all(|(key, options)| members.contains_key(key) || may_omit(options))
}

fn array_fits(items: &[Value], option: &Value, item: &str) -> bool {
    let Value::Array(option) = option else {
        // An empty list is as good as a list that is left out.
        return is_may_omit(option) && items.is_empty();
    };
    let fits = |(value, option): (&Value, &Value)| match value {
        Value::Object(members) if item == "object" => object_fits(members, option),
        _ => item != "object" && is_alike(value, option),
    };
    items.len() == option.len() && items.iter().zip(option).all(fits)
}

/// Lenient equality: numbers by value, texts squashed, options followed at any depth.
fn is_same(value: &Value, option: &Value) -> bool {
    match (value, option) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(_), Value::Number(_)) | (Value::String(_), Value::String(_)) => {
            is_alike(value, option)
        }
        (Value::Array(values), Value::Array(options)) => {
            values.len() == options.len()
                && values.iter().zip(options).all(|(value, option)| is_same(value, option))
        }
        (Value::Object(members), Value::Object(option)) => {
            members.iter().all(|(key, value)| {
                option.get(key).is_some_and(|options| {
                    let listed = options.as_array().into_iter().flatten();
                    listed.chain([options]).any(|one| is_same(value, one))
                })
            }) && may_omit_the_rest(members, option)
        }
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

fn list(options: &[Value]) -> String {
    let texts: Vec<String> = options.iter().map(Value::to_string).collect();
    texts.join(", ")
}
