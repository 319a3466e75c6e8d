//! JSON -> template values as Python would hold them, untrusted strings marked.
//!
//! **Invariant:** no `serde_json` value reaches minijinja, which would print its numbers as a
//! private struct.
//! **Invariant:** a number keeps its text. One that a Rust number cannot hold unchanged becomes a
//! [`NumberText`], which prints as itself but takes no part in arithmetic.

use std::{fmt, sync::Arc};

use minijinja::{
    Error, State, Value,
    value::{Enumerator, Object, ObjectRepr},
};
use serde_json::Value as Json;

use super::marks::Marks;

/// Keys of a JSON Schema that templates look up by name. They are no one's input, so they carry no
/// marks.
const KEYWORDS: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];

/// The values of `type`, which templates compare with.
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Methods that Python's `dict` has, which an attribute (`x.items`, not `x["items"]`) means
/// whatever the keys are.
const DICT_METHODS: &[&str] = &[
    "clear",
    "copy",
    "fromkeys",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
];

/// What the keys of an object are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Keywords of a JSON Schema.
    Schema,
    /// Names, each with a schema.
    Names,
    /// Anything: the user's own data.
    Data,
}

/// Arguments, or any other data: every string and every key is untrusted.
pub(crate) fn data(json: &Json, marks: Marks) -> Value {
    convert(json, marks, Place::Data)
}

/// A tool as templates are given it: the frame is ours, names, texts and schema values are
/// untrusted.
pub(crate) fn tool(json: &Json, marks: Marks) -> Value {
    match json {
        Json::Object(map) => dict(map.iter().map(|(key, value)| {
            let value = match (key.as_str(), value) {
                ("type", Json::String(text)) if text == "function" => Value::from(text.as_str()),
                ("function", function) => tool(function, marks),
                ("parameters", schema) => convert(schema, marks, Place::Schema),
                (_, other) => convert(other, marks, Place::Data),
            };
            (key.clone(), value)
        })),
        other => convert(other, marks, Place::Data),
    }
}

/// An ordered dictionary with these entries.
pub(crate) fn dict(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::from_object(Dict(entries.into_iter().collect()))
}

/// Calls `each` for every string and every key.
pub(crate) fn each_string<'a>(json: &'a Json, each: &mut impl FnMut(&'a str)) {
    match json {
        Json::String(text) => each(text),
        Json::Array(items) => items.iter().for_each(|item| each_string(item, each)),
        Json::Object(map) => {
            for (key, value) in map {
                each(key);
                each_string(value, each);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn convert(json: &Json, marks: Marks, place: Place) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => self::number(&number.to_string()),
        Json::String(text) => Value::from(marks.wrap(text)),
        Json::Array(items) => items.iter().map(|item| convert(item, marks, place)).collect(),
        Json::Object(map) => dict(map.iter().map(|(key, value)| match place {
            Place::Schema if KEYWORDS.contains(&key.as_str()) => {
                (key.clone(), keyword(key, value, marks))
            }
            Place::Data => (marks.wrap(key), convert(value, marks, Place::Data)),
            Place::Schema | Place::Names => (marks.wrap(key), convert(value, marks, Place::Schema)),
        })),
    }
}

fn keyword(key: &str, value: &Json, marks: Marks) -> Value {
    match (key, value) {
        ("type", Json::String(text)) if TYPES.contains(&text.as_str()) => {
            Value::from(text.as_str())
        }
        ("type", Json::Array(items)) => {
            items.iter().map(|item| keyword(key, item, marks)).collect()
        }
        ("properties" | "patternProperties" | "$defs" | "definitions", _) => {
            convert(value, marks, Place::Names)
        }
        ("const" | "default" | "enum" | "example" | "examples", _) => {
            convert(value, marks, Place::Data)
        }
        _ => convert(value, marks, Place::Schema),
    }
}

/// `serde_json` itself writes `1E5` and `1e5` as `1e+5`; no digit is lost.
fn number(text: &str) -> Value {
    if let Ok(integer) = text.parse::<i128>() {
        if integer.to_string() == text {
            return i64::try_from(integer).map_or_else(|_| Value::from(integer), Value::from);
        }
    } else if let Ok(float) = text.parse::<f64>() {
        if float.is_finite() && float_text(float) == text {
            return Value::from(float);
        }
    }
    Value::from_object(NumberText(text.to_owned()))
}

/// A dictionary in the order of its entries.
#[derive(Debug)]
struct Dict(Vec<(String, Value)>);

impl Object for Dict {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    /// Reached from `x.key` only, where Python prefers the method.
    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        match DICT_METHODS.iter().find(|&&method| method == key) {
            Some(&method) => {
                let object = Value::from_dyn_object(self.clone());
                Some(Value::from_object(BoundMethod { object, method }))
            }
            None => self.get_value(&Value::from(key)),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(key, _)| Value::from(key.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "{" } else { ", " })?;
            write!(f, "{}: {}", python_repr(&Value::from(key.as_str())), python_repr(value))?;
        }
        f.write_str(if self.0.is_empty() { "{}" } else { "}" })
    }
}

/// What `x.items` is in Python where `x` is a dictionary: something to call, and true.
#[derive(Debug)]
struct BoundMethod {
    object: Value,
    method: &'static str,
}

impl Object for BoundMethod {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        self.object.call_method(state, self.method, args)
    }
}

/// A number that only its text holds: `1.50`, `1e400`, `-0`, forty digits.
#[derive(Debug)]
pub(crate) struct NumberText(String);

impl NumberText {
    /// The number as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl Object for NumberText {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Python's `repr`, as far as values from JSON go.
fn python_repr(value: &Value) -> String {
    match value.as_str() {
        Some(text) => {
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            let mut out = String::from(quote);
            for c in text.chars() {
                match c {
                    '\\' => out.push_str("\\\\"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    c if c == quote => out.extend(['\\', c]),
                    c if c.is_ascii_control() => {
                        out.extend(format!("\\x{:02x}", u32::from(c)).chars());
                    }
                    c => out.push(c),
                }
            }
            out.push(quote);
            out
        }
        None => value.to_string(),
    }
}

/// How Python writes a finite float: shortest digits, an exponent from `1e+16` up and below `1e-4`.
pub(crate) fn float_text(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{float:?}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use super::{super::dumps::Dumps, *};

    fn dumps(value: &Value) -> String {
        Dumps::plain(Marks::USUAL).text(value).unwrap()
    }

    #[track_caller]
    fn keeps(json: &str) {
        let value: Json = serde_json::from_str(json).unwrap();
        assert_eq!(Marks::USUAL.strip(&dumps(&data(&value, Marks::USUAL))), json);
    }

    #[test]
    fn numbers_keep_their_text() {
        for number in [
            "5", "-5", "1.0", "1.50", "0.1", "-0", "-0.0", "1e-9", "1e+5", "1e+400", "1e-05",
            "1e+16", "123456.5",
        ] {
            keeps(number);
        }
        keeps("[123456789012345678901234567890, 99999999999999999999999999999999999999999999]");
    }

    #[test]
    fn strings_are_escaped_as_python_does() {
        keeps(
            r#"{"ü <&>'": "\"\\/\n\r\t\b\f\u0000\u001f 漢字 🦀", "items": [], "o": {}, "n": null, "t": true}"#,
        );
        keeps("\"\u{7f}\u{2028}\"");
    }

    #[test]
    fn schema_words_carry_no_marks_and_names_do() {
        let json = serde_json::json!({"type": "function", "function": {"name": "f", "parameters":
            {"type": "object", "properties": {"type": {"type": ["string", "null"], "enum": ["object"]}}}}});
        let text =
            dumps(&tool(&json, Marks::USUAL)).replace('\u{FDD0}', "[").replace('\u{FDD1}', "]");
        let schema = r#"{"[type]": {"type": ["string", "null"], "enum": ["[object]"]}}"#;
        let schema = format!(r#"{{"type": "object", "properties": {schema}}}"#);
        let function = format!(r#"{{"name": "[f]", "parameters": {schema}}}"#);
        let expected = format!(r#"{{"type": "function", "function": {function}}}"#);
        assert_eq!(text, expected);
    }

    #[test]
    fn floats_are_written_as_python_does() {
        for (float, text) in [
            (1.0, "1.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (0.0, "0.0"),
        ] {
            assert_eq!(float_text(float), text);
        }
    }
}
