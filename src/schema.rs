//! JSON Schema as a closed enum, [`Schema`]: what the grammar can express, and nothing else.
//!
//! **Invariant:** every value that a [`Schema`] describes is valid against the JSON Schema it was
//! parsed from.
//! **Invariant:** an assertion keyword of any draft that is not expressed is a [`SchemaError`] with
//! its JSON pointer, never a silent widening. Annotations, keys that no draft defines and unknown
//! format names assert nothing and are passed over, as the standard says (JSON Schema 2020-12 core,
//! section 6.5).
//!
//! # Known departures
//!
//! The grammar is narrower than the schema in these places; each line names the test that shows it.
//!
//! - Keys that are not declared are never generated where properties are declared
//!   (`departures::undeclared_keys_are_never_generated`).
//! - Properties come in the order of the definition
//!   (`departures::property_order_is_the_definitions`).
//! - White space is fixed to `", "` and `": "` (`departures::white_space_is_fixed`).
//! - Without a `type`, `properties` means an object and `items` an array
//!   (`departures::properties_without_type_mean_an_object`).
//! - Where any value is allowed, it nests at most 16 deep
//!   (`departures::any_value_nests_sixteen_deep`).
//! - An integer has no fraction and no exponent, though `1.0` is one by the standard
//!   (`departures::an_integer_is_digits`).
//! - The members of `enum` and `const` are written as listed: `1` is not `1.0`, and no escape is
//!   another's equal
//!   (`departures::listed_values_are_written_as_listed`).
//! - A raw U+007F is written as an escape (`departures::delete_is_escaped`).
//! - The arguments are an object; a function whose schema declares none takes none
//!   (`departures::an_open_object_at_the_top_takes_no_arguments`).

use serde_json::{Map, Value};

use crate::definitions::keywords::{Keyword, near_miss};
use crate::definitions::{FunctionDef, child, kind};

/// Schemas nested deeper than this are refused; no real one comes near.
pub const MAX_DEPTH: usize = 64;

const TYPES: &[&str] = &["null", "boolean", "integer", "number", "string", "array", "object"];

/// What a value may be.
#[derive(Debug, Clone, PartialEq)]
pub enum Schema {
    /// Any JSON value.
    Any,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number without fraction.
    Integer,
    /// A number.
    Number,
    /// A string.
    String,
    /// Exactly one of these values, as `enum` and `const` list them; never empty.
    Values(Vec<Value>),
    /// An array of any length; without an item schema it is empty.
    Array(Option<Box<Schema>>),
    /// An object with these properties, in this order, and no others.
    Object(Vec<Property>),
    /// An object with any keys, whose values all have one schema.
    Map(Box<Schema>),
    /// One of several types; never empty, and no two of the same type.
    Union(Vec<Schema>),
}

/// One declared property of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// The key.
    pub name: String,
    /// What its value may be.
    pub schema: Schema,
    /// Whether every object has it.
    pub required: bool,
}

/// Why a schema cannot be expressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: \"{}\" {reason}", pointer.escape_debug(), keyword.escape_debug())]
pub struct SchemaError {
    /// The keyword that is at fault.
    pub keyword: String,
    /// Where it stands: a JSON pointer inside the schema, or after [`SchemaError::in_file`] inside
    /// the file.
    pub pointer: String,
    /// What is the matter with it.
    pub reason: SchemaProblem,
}

impl SchemaError {
    /// The same, with the pointer in the user's file in place of the one inside `parameters`.
    #[must_use]
    pub fn in_file(&self, function: &FunctionDef) -> Self {
        Self { pointer: function.pointer_in_file(&self.pointer), ..self.clone() }
    }
}

/// What is the matter with a keyword; reads on after the keyword's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaProblem {
    /// An assertion that the grammar cannot express.
    #[error("is not supported")]
    Unsupported,
    /// No type of JSON.
    #[error("has the unknown type {name:?}")]
    UnknownType {
        /// The name as it stands.
        name: String,
    },
    /// The keyword's value has the wrong form.
    #[error("must be {expected}, found {found}")]
    Malformed {
        /// The form that the standard asks for.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// The keyword leaves no value at all.
    #[error("leaves no value that would be valid")]
    Unsatisfiable,
    /// Arguments that are no object.
    #[error("must make the arguments an object")]
    ArgumentsNotAnObject,
    /// Nested too deep.
    #[error("nests deeper than {MAX_DEPTH} schemas")]
    TooDeep,
}

/// Reads the schema of a function's arguments: an object, empty where none are declared.
///
/// ```
/// use call_me_maybe::schema::{Schema, parse};
///
/// let schema = serde_json::json!({"properties": {"n": {"type": "integer", "minimum": 1}}});
/// let error = parse(&schema).unwrap_err();
/// assert_eq!(error.to_string(), "/properties/n/minimum: \"minimum\" is not supported");
/// ```
///
/// # Errors
///
/// [`SchemaError`] names the keyword that cannot be expressed and its JSON pointer.
pub fn parse(parameters: &Value) -> Result<Schema, SchemaError> {
    let mut parser = Parser::default();
    let schema = parser.arguments(parameters);
    parser.tell();
    schema
}

/// [`parse`] for one who comes second: what there is to tell was told then.
pub(crate) fn parse_again(parameters: &Value) -> Result<Schema, SchemaError> {
    Parser::default().arguments(parameters)
}

fn error(keyword: &str, pointer: &str, reason: SchemaProblem) -> SchemaError {
    SchemaError { keyword: keyword.to_owned(), pointer: child(pointer, keyword), reason }
}

/// An error of a whole schema, named after the key that it stands under.
fn error_at(pointer: &str, reason: SchemaProblem) -> SchemaError {
    let key = pointer.rsplit('/').next().unwrap_or_default();
    let keyword = key.replace("~1", "/").replace("~0", "~");
    SchemaError { keyword, pointer: pointer.to_owned(), reason }
}

fn malformed(keyword: &str, pointer: &str, expected: &'static str, found: &Value) -> SchemaError {
    error(keyword, pointer, SchemaProblem::Malformed { expected, found: kind(found) })
}

#[derive(Default)]
struct Parser {
    /// Keys that no draft defines.
    n_unknown: usize,
    /// The pointers of those that look like a keyword, with the keyword.
    near_misses: Vec<(String, &'static str)>,
}

impl Parser {
    fn arguments(&mut self, parameters: &Value) -> Result<Schema, SchemaError> {
        if !matches!(parameters, Value::Object(_) | Value::Bool(true)) {
            return Err(error("type", "", SchemaProblem::ArgumentsNotAnObject));
        }
        let schema = self.schema(parameters, "", 0)?;
        match schema {
            Schema::Map(values) if *values == Schema::Any => Ok(Schema::Object(Vec::new())),
            Schema::Any => Ok(Schema::Object(Vec::new())),
            Schema::Object(_) | Schema::Map(_) => Ok(schema),
            _ => {
                let keyword = ["type", "enum", "const"]
                    .into_iter()
                    .find(|key| parameters.get(key).is_some())
                    .unwrap_or("type");
                Err(error(keyword, "", SchemaProblem::ArgumentsNotAnObject))
            }
        }
    }

    /// Passes on what is no error and yet worth a word.
    fn tell(&self) {
        if self.n_unknown > 0 {
            tracing::debug!(
                n_keys = self.n_unknown,
                "keys that no draft of JSON Schema defines are ignored"
            );
        }
        for (pointer, keyword) in &self.near_misses {
            tracing::warn!(
                pointer = %pointer.escape_debug(),
                keyword,
                "an unknown key in a schema looks like a misspelt keyword"
            );
        }
    }

    fn schema(
        &mut self,
        schema: &Value,
        pointer: &str,
        depth: usize,
    ) -> Result<Schema, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(error_at(pointer, SchemaProblem::TooDeep));
        }
        let map = match schema {
            Value::Object(map) => map,
            Value::Bool(true) => return Ok(Schema::Any),
            Value::Bool(false) => return Err(error_at(pointer, SchemaProblem::Unsatisfiable)),
            other => {
                let (expected, found) = ("a schema", kind(other));
                return Err(error_at(pointer, SchemaProblem::Malformed { expected, found }));
            }
        };
        self.refuse_unsupported(map, pointer)?;
        if map.contains_key("enum") || map.contains_key("const") {
            return values(map, pointer);
        }
        let mut parts = Vec::new();
        for name in types(map, pointer)? {
            let part = match name {
                "null" => Schema::Null,
                "boolean" => Schema::Boolean,
                "integer" => Schema::Integer,
                "number" => Schema::Number,
                "string" => Schema::String,
                "array" => self.array(map, pointer, depth)?,
                "object" => self.object(map, pointer, depth)?,
                other => {
                    let reason = SchemaProblem::UnknownType { name: other.to_owned() };
                    return Err(error("type", pointer, reason));
                }
            };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        Ok(match parts.pop() {
            None => Schema::Any,
            Some(only) if parts.is_empty() => only,
            Some(last) => {
                parts.push(last);
                Schema::Union(parts)
            }
        })
    }

    /// Passes over what asserts nothing, and refuses what we cannot express.
    fn refuse_unsupported(
        &mut self,
        map: &Map<String, Value>,
        pointer: &str,
    ) -> Result<(), SchemaError> {
        for (key, value) in map {
            match Keyword::of(key, value) {
                Keyword::Expressed | Keyword::Annotation => {}
                Keyword::Assertion => return Err(error(key, pointer, SchemaProblem::Unsupported)),
                Keyword::Unknown => {
                    self.n_unknown += 1;
                    if let Some(keyword) = near_miss(key) {
                        self.near_misses.push((child(pointer, key), keyword));
                    }
                }
            }
        }
        Ok(())
    }

    fn array(
        &mut self,
        map: &Map<String, Value>,
        pointer: &str,
        depth: usize,
    ) -> Result<Schema, SchemaError> {
        let items = match map.get("items") {
            None => Some(Schema::Any),
            Some(Value::Bool(false)) => None,
            // A list is the tuple of draft 4.
            Some(Value::Array(_)) => {
                return Err(error("items", pointer, SchemaProblem::Unsupported));
            }
            Some(items) => Some(self.schema(items, &child(pointer, "items"), depth + 1)?),
        };
        Ok(Schema::Array(items.map(Box::new)))
    }

    fn object(
        &mut self,
        map: &Map<String, Value>,
        pointer: &str,
        depth: usize,
    ) -> Result<Schema, SchemaError> {
        let required = required(map, pointer)?;
        let none = Map::new();
        let declared = match map.get("properties") {
            None => &none,
            Some(Value::Object(declared)) => declared,
            Some(other) => return Err(malformed("properties", pointer, "an object", other)),
        };
        // `None`: other keys are not allowed.
        let others = match map.get("additionalProperties") {
            None | Some(Value::Bool(true)) => Some(Schema::Any),
            Some(Value::Bool(false)) => None,
            Some(schema) => {
                Some(self.schema(schema, &child(pointer, "additionalProperties"), depth + 1)?)
            }
        };
        if !declared.is_empty() && others.as_ref().is_some_and(|schema| *schema != Schema::Any) {
            return Err(error("additionalProperties", pointer, SchemaProblem::Unsupported));
        }
        let mut properties = Vec::new();
        let place = child(pointer, "properties");
        for (name, schema) in declared {
            let required = required.contains(&name.as_str());
            if *schema == Value::Bool(false) && !required {
                continue;
            }
            let schema = self.schema(schema, &child(&place, name), depth + 1)?;
            properties.push(Property { name: name.clone(), schema, required });
        }
        for name in required.into_iter().filter(|name| !declared.contains_key(*name)) {
            let Some(schema) = others.clone() else {
                return Err(error("required", pointer, SchemaProblem::Unsatisfiable));
            };
            properties.push(Property { name: name.to_owned(), schema, required: true });
        }
        Ok(match others {
            Some(schema) if properties.is_empty() && declared.is_empty() => {
                Schema::Map(Box::new(schema))
            }
            _ => Schema::Object(properties),
        })
    }
}

/// The types that `type` names, or that other keywords imply; none at all means any value.
fn types<'a>(map: &'a Map<String, Value>, pointer: &str) -> Result<Vec<&'a str>, SchemaError> {
    match map.get("type") {
        Some(Value::String(name)) => Ok(vec![name]),
        Some(Value::Array(names)) if !names.is_empty() => names
            .iter()
            .map(|name| {
                name.as_str().ok_or_else(|| {
                    malformed("type", pointer, "a string or an array of strings", name)
                })
            })
            .collect(),
        Some(other) => Err(malformed("type", pointer, "a string or an array of strings", other)),
        None => {
            let object = ["properties", "required", "additionalProperties"];
            if object.iter().any(|key| map.contains_key(*key)) {
                Ok(vec!["object"])
            } else if map.contains_key("items") {
                Ok(vec!["array"])
            } else {
                Ok(Vec::new())
            }
        }
    }
}

fn required<'a>(map: &'a Map<String, Value>, pointer: &str) -> Result<Vec<&'a str>, SchemaError> {
    let mut names = Vec::new();
    match map.get("required") {
        None => {}
        Some(Value::Array(list)) => {
            for name in list {
                let name = name
                    .as_str()
                    .ok_or_else(|| malformed("required", pointer, "an array of strings", name))?;
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Some(other) => return Err(malformed("required", pointer, "an array of strings", other)),
    }
    Ok(names)
}

/// The members of `enum`, or the `const`, that the other keywords beside it allow.
fn values(map: &Map<String, Value>, pointer: &str) -> Result<Schema, SchemaError> {
    let (keyword, listed) = match (map.get("enum"), map.get("const")) {
        (Some(Value::Array(members)), _) => ("enum", members.clone()),
        (Some(other), _) => return Err(malformed("enum", pointer, "an array", other)),
        (None, Some(value)) => ("const", vec![value.clone()]),
        (None, None) => ("enum", Vec::new()),
    };
    if let Some(name) = types(map, pointer)?.into_iter().find(|name| !TYPES.contains(name)) {
        let reason = SchemaProblem::UnknownType { name: name.to_owned() };
        return Err(error("type", pointer, reason));
    }
    let beside: Map<String, Value> = map
        .iter()
        .filter(|(key, value)| *key != keyword && Keyword::of(key, value) == Keyword::Expressed)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut members: Vec<Value> = Vec::with_capacity(listed.len());
    let allowed = if beside.is_empty() {
        None
    } else {
        let validator = jsonschema::validator_for(&Value::Object(beside))
            .map_err(|_| error(keyword, pointer, SchemaProblem::Unsupported))?;
        Some(validator)
    };
    for member in listed {
        let fits = allowed.as_ref().is_none_or(|validator| validator.is_valid(&member));
        if fits && !members.contains(&member) {
            members.push(member);
        }
    }
    if members.is_empty() {
        return Err(error(keyword, pointer, SchemaProblem::Unsatisfiable));
    }
    Ok(Schema::Values(members))
}
