//! Generated text to a [`FunctionCall`]: read by serde, then checked against the function's JSON
//! Schema by an independent validator.
//!
//! **Invariant:** a call that comes out is valid against the definition as the user wrote it,
//! whatever the grammar allowed. Nothing is repaired: the parameters are those of the text, in its
//! order.
//! **Invariant:** only the text of numbers changes, and only so: where the schema says `number`,
//! `.0` is appended to one without `.`, `e` and `E`. No digit is lost, and the value is the same.

use std::collections::HashMap;

use jsonschema::PatternOptions;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::definitions::{FunctionDef, FunctionName};
use crate::grammar::lower;
use crate::schema::{Draft, Items, NodeId, Schema, SchemaError};

/// A call that is valid against the definition of its function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionCall {
    /// The function.
    pub name: FunctionName,
    /// The arguments: an object, in the order of the text.
    pub parameters: Value,
}

/// Why a text is not a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// Not JSON, or not an object of a `name` and `arguments`.
    #[error("the text is not a call")]
    NotACall(#[source] serde_json::Error),
    /// A name that no definition has.
    #[error("there is no function {name:?}")]
    UnknownFunction {
        /// The name in the text.
        name: String,
    },
    /// The schema of the function cannot be expressed, so it cannot be called.
    #[error("{:?} cannot be called: {error}", name.as_str())]
    Refused {
        /// The function.
        name: FunctionName,
        /// The keyword, and its JSON pointer in the user's file.
        error: SchemaError,
    },
    /// The validator cannot read the schema of the function.
    #[error("{:?} cannot be called: its schema at {pointer} cannot be checked: {message}", name.as_str())]
    Schema {
        /// The function.
        name: FunctionName,
        /// JSON pointer in the user's file.
        pointer: String,
        /// What the validator says.
        message: String,
    },
    /// A name without arguments.
    #[error("the call of {:?} has no arguments", name.as_str())]
    NoArguments {
        /// The function.
        name: FunctionName,
    },
    /// The arguments are not valid against the schema.
    #[error("the arguments of {:?} are not valid at {pointer:?}: {message}", name.as_str())]
    Invalid {
        /// The function.
        name: FunctionName,
        /// JSON pointer inside the arguments.
        pointer: String,
        /// What the validator says.
        message: String,
    },
}

/// Checks calls of a list of functions; each schema is compiled once.
///
/// ```
/// use call_me_maybe::grammar::lower::Options;
/// use call_me_maybe::validate::Validator;
///
/// let file = br#"[{"name": "fn_wait", "parameters": {"seconds": {"type": "number"}}}]"#;
/// let validator = Validator::new(&call_me_maybe::definitions::parse(file)?, Options::LEGAL);
/// let call = validator.validate(r#"{"name": "fn_wait", "arguments": {"seconds": 12}}"#)?;
/// assert_eq!(call.parameters.to_string(), r#"{"seconds":12.0}"#);
/// assert!(validator.validate(r#"{"name": "fn_wait", "arguments": {"seconds": "12"}}"#).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Validator {
    functions: HashMap<String, Function>,
}

#[derive(Debug)]
struct Function {
    name: FunctionName,
    check: Result<Check, Trouble>,
}

#[derive(Debug)]
struct Check {
    validator: jsonschema::Validator,
    schema: Schema,
}

/// Why a function cannot be checked, and so not be called.
#[derive(Debug)]
enum Trouble {
    Refused(SchemaError),
    Schema { pointer: String, message: String },
}

/// Most bytes of a compiled pattern; `^\p{L}{1,250}$` takes more than the engine's default of 10 MiB.
const PATTERN_BYTES: usize = 64 << 20;

/// The text of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<'a> {
    name: String,
    #[serde(borrow, default, deserialize_with = "present")]
    arguments: Option<&'a RawValue>,
}

/// A value that is there, also where it is `null`.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Validator {
    /// Compiles the schemas. A schema that is no good is an error of its function's calls alone.
    #[must_use]
    pub fn new(functions: &[FunctionDef], options: lower::Options) -> Self {
        let functions = functions.iter().map(|function| {
            let check = check(function, options);
            (function.name.to_string(), Function { name: function.name.clone(), check })
        });
        Self { functions: functions.collect() }
    }

    /// Reads one whole call, `{"name": …, "arguments": {…}}`, and checks it.
    ///
    /// # Errors
    ///
    /// [`ValidateError::Refused`] where a function was chosen whose schema cannot be expressed; the
    /// others mean that the text did not come from the functions' grammar, or that grammar and
    /// schema disagree.
    pub fn validate(&self, text: &str) -> Result<FunctionCall, ValidateError> {
        let text: Text = serde_json::from_str(text).map_err(ValidateError::NotACall)?;
        let Some(Function { name, check }) = self.functions.get(&text.name) else {
            return Err(ValidateError::UnknownFunction { name: text.name });
        };
        let name = name.clone();
        let Check { validator, schema } = match check {
            Ok(check) => check,
            Err(Trouble::Refused(error)) => {
                return Err(ValidateError::Refused { name, error: error.clone() });
            }
            Err(Trouble::Schema { pointer, message }) => {
                let (pointer, message) = (pointer.clone(), message.clone());
                return Err(ValidateError::Schema { name, pointer, message });
            }
        };
        let Some(arguments) = text.arguments else {
            return Err(ValidateError::NoArguments { name });
        };
        // Read whole first: this finds syntax errors and bounds the depth for `as_written`.
        let _: Value = serde_json::from_str(arguments.get()).map_err(ValidateError::NotACall)?;
        let parameters = as_written(arguments).map_err(ValidateError::NotACall)?;
        let invalid =
            |pointer, message| ValidateError::Invalid { name: name.clone(), pointer, message };
        if let Err(error) = validator.validate(&parameters) {
            return Err(invalid(error.instance_path().as_str().to_owned(), error.to_string()));
        }
        Ok(FunctionCall { name, parameters: with_fractions(parameters, schema, Schema::ROOT) })
    }
}

fn check(function: &FunctionDef, options: lower::Options) -> Result<Check, Trouble> {
    let schema = lower::parse(function, options)
        .map_err(|error| Trouble::Refused(error.in_file(function)))?;
    let validator = jsonschema::options()
        .with_draft(match Draft::of(&function.parameters) {
            Draft::Draft4 => jsonschema::Draft::Draft4,
            Draft::Draft7 => jsonschema::Draft::Draft7,
            Draft::Draft201909 => jsonschema::Draft::Draft201909,
            Draft::Draft202012 => jsonschema::Draft::Draft202012,
        })
        .should_validate_formats(true)
        .with_pattern_options(
            PatternOptions::fancy_regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES),
        )
        .build(&function.parameters)
        .map_err(|error| Trouble::Schema {
            pointer: function.pointer_in_file(error.instance_path().as_str()),
            message: error.to_string(),
        })?;
    Ok(Check { validator, schema })
}

/// Reads a value whose numbers keep their text to the letter.
///
/// `serde_json` alone makes `1e+5` of `1E5`, also with `arbitrary_precision`.
fn as_written(raw: &RawValue) -> Result<Value, serde_json::Error> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let members: Members = serde_json::from_str(text)?;
            let members = members.0.into_iter();
            let members = members.map(|(key, raw)| Ok((key, as_written(raw)?)));
            members.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            items.into_iter().map(as_written).collect::<Result<_, _>>().map(Value::Array)
        }
        Some(b'-' | b'0'..=b'9') => {
            Ok(Value::Number(Number::from_string_unchecked(text.to_owned())))
        }
        _ => serde_json::from_str(text),
    }
}

/// The members of an object in the order of the text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// Appends `.0` to numbers without a fraction where the schema says `number`.
fn with_fractions(value: Value, schema: &Schema, id: NodeId) -> Value {
    let node = schema.node(id);
    match value {
        Value::Number(number) if node.decimal => Value::Number(with_fraction(number)),
        Value::Array(items) => {
            let mut kinds = node.arrays.iter();
            let kind = match node.arrays.as_slice() {
                [one] => Some(one),
                _ => kinds.find(|kind| schema.is_array(kind, &items)),
            };
            let Some(kind) = kind else { return Value::Array(items) };
            let items = items.into_iter().enumerate().map(|(index, item)| {
                match (kind.prefix.get(index), &kind.items) {
                    (Some(id), _) | (None, Items::Each(id)) => with_fractions(item, schema, *id),
                    (None, Items::Contains { good, bad, .. }) => {
                        let id = if schema.contains(*good, &item) { good } else { bad };
                        with_fractions(item, schema, *id)
                    }
                    (None, Items::None | Items::Distinct(_)) => item,
                }
            });
            Value::Array(items.collect())
        }
        Value::Object(members) => {
            let mut kinds = node.objects.iter();
            let kind = match node.objects.as_slice() {
                [one] => Some(one),
                _ => kinds.find(|kind| schema.is_object(kind, &members)),
            };
            let Some(kind) = kind else { return Value::Object(members) };
            let members = members.into_iter().map(|(key, inner)| match schema.member(kind, &key) {
                Some(id) => {
                    let inner = with_fractions(inner, schema, id);
                    (key, inner)
                }
                None => (key, inner),
            });
            Value::Object(members.collect())
        }
        other => other,
    }
}

fn with_fraction(number: Number) -> Number {
    let text = number.as_str();
    if text.contains(['.', 'e', 'E']) {
        return number;
    }
    Number::from_string_unchecked(format!("{text}.0"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that goes wrong shall say so and stop")]

    use super::*;
    use crate::definitions::parse;

    /// The parameters that come out, or the error, for the arguments of `f`.
    #[track_caller]
    fn check(parameters: &str, arguments: &str, expected: &str) {
        let file = format!(r#"[{{"name": "f", "parameters": {parameters}}}]"#);
        let validator = Validator::new(&parse(file.as_bytes()).unwrap(), lower::Options::LEGAL);
        let text = format!(r#"{{"name": "f", "arguments": {arguments}}}"#);
        let found = match validator.validate(&text) {
            Ok(call) => call.parameters.to_string(),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_number_gets_a_fraction_and_keeps_its_digits() {
        for (written, expected) in [
            ("2", "2.0"),
            ("-0", "-0.0"),
            ("-0.1", "-0.1"),
            ("1e-9", "1e-9"),
            ("1E5", "1E5"),
            ("1e5", "1e5"),
            ("2.50", "2.50"),
            ("123456789012345678901234567890", "123456789012345678901234567890.0"),
            ("0.1234567890123456789012345678901", "0.1234567890123456789012345678901"),
            ("1e400", "1e400"),
        ] {
            let (arguments, expected) =
                (format!(r#"{{"a":{written}}}"#), format!(r#"{{"a":{expected}}}"#));
            check(r#"{"a": {"type": "number"}}"#, &arguments, &expected);
        }
    }

    #[test]
    fn an_integer_stays_digits() {
        let integer = r#"{"a": {"type": "integer"}}"#;
        check(
            integer,
            r#"{"a": 123456789012345678901234567890}"#,
            r#"{"a":123456789012345678901234567890}"#,
        );
        check(integer, r#"{"a": -7}"#, r#"{"a":-7}"#);
        check(
            integer,
            r#"{"a": 7.5}"#,
            r#"error: the arguments of "f" are not valid at "/a": 7.5 is not of type "integer""#,
        );
    }

    #[test]
    fn the_schema_says_which_numbers_get_a_fraction() {
        check(
            r#"{"a": {"type": "array", "items": {"type": "number"}}}"#,
            r#"{"a": [1, 2.5, 3]}"#,
            r#"{"a":[1.0,2.5,3.0]}"#,
        );
        check(
            r#"{"o": {"type": "object", "properties": {"x": {"type": "number"}, "n": {"type": "integer"}}}}"#,
            r#"{"o": {"x": 1, "n": 1}}"#,
            r#"{"o":{"x":1.0,"n":1}}"#,
        );
        check(
            r#"{"m": {"type": "object", "additionalProperties": {"type": "number"}}}"#,
            r#"{"m": {"k": 1}}"#,
            r#"{"m":{"k":1.0}}"#,
        );
        check(r#"{"a": {"type": ["number", "null"]}}"#, r#"{"a": 1}"#, r#"{"a":1.0}"#);
        check(r#"{"a": {"type": ["number", "integer"]}}"#, r#"{"a": 1}"#, r#"{"a":1}"#);
        check(r#"{"a": {"type": "number", "enum": [1, 2]}}"#, r#"{"a": 1}"#, r#"{"a":1}"#);
        check(r#"{"a": {}}"#, r#"{"a": [1, {"b": 2E3}]}"#, r#"{"a":[1,{"b":2E3}]}"#);
    }

    #[test]
    fn parameters_keep_the_order_of_the_text() {
        check(
            r#"{"zeta": {"type": "string"}, "items": {"type": "string"}, "type": {"type": "string"}}"#,
            r#"{"zeta": "", "items": "}}", "type": "\"\\\n\u00e9"}"#,
            r#"{"zeta":"","items":"}}","type":"\"\\\né"}"#,
        );
    }

    #[test]
    fn what_is_no_valid_call_is_an_error() {
        let string = r#"{"a": {"type": "string"}}"#;
        check(
            string,
            r#"{"a": 1}"#,
            r#"error: the arguments of "f" are not valid at "/a": 1 is not of type "string""#,
        );
        check(
            string,
            "{}",
            r#"error: the arguments of "f" are not valid at "": "a" is a required property"#,
        );
        check(
            string,
            "[]",
            r#"error: the arguments of "f" are not valid at "": [] is not of type "object""#,
        );
        check(
            r#"{"a": {"type": "string", "disallow": 3}}"#,
            r#"{"a": "abc"}"#,
            r#"error: "f" cannot be called: /0/parameters/a/disallow: "disallow" is not supported"#,
        );
        let validator = Validator::new(
            &parse(br#"{"name": "f", "parameters": {"a": {"type": "what"}}}"#).unwrap(),
            lower::Options::LEGAL,
        );
        let error = |text: &str| validator.validate(text).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"name": "f"}"#),
            r#""f" cannot be called: /parameters/a/type: "type" has the unknown type "what""#
        );
        assert_eq!(error(r#"{"name": "g"}"#), r#"there is no function "g""#);
        assert_eq!(error(r#"{"name": "f""#), "the text is not a call");
    }

    /// `serde_json`'s `arbitrary_precision` shows its private struct to code that is not aware of
    /// it.
    #[test]
    fn the_validator_reads_numbers_of_any_precision() {
        let schema = serde_json::json!({"properties": {"items": {"type": "number", "minimum": 5}}});
        let validator = jsonschema::validator_for(&schema).unwrap();
        for (text, valid) in [
            (r#"{"items": 5}"#, true),
            (r#"{"items": 4.999999999999999999999999999}"#, false),
            (r#"{"items": 123456789012345678901234567890}"#, true),
            (r#"{"items": 1e400}"#, true),
            (r#"{"items": -1e400}"#, false),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(validator.is_valid(&value), valid, "{text}");
        }
    }
}
