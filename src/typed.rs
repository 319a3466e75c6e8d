//! Rust types in, functions out; a call comes back as that type.
//!
//! An enum is a set of functions, one a variant; a struct is one function. Doc comments become the
//! descriptions that the model reads.
//!
//! ```
//! use call_me_maybe::definitions::FunctionName;
//! use call_me_maybe::typed::Functions;
//! use call_me_maybe::validate::FunctionCall;
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
//! #[serde(rename_all = "snake_case")]
//! enum Light {
//!     /// Set how bright the lamp is.
//!     SetBrightness { room: String, percent: i64 },
//!     /// Turn every lamp off.
//!     AllOff,
//! }
//!
//! let functions = Functions::<Light>::new()?;
//! assert_eq!(functions.definitions()[0].name.as_str(), "set_brightness");
//!
//! // What a model answers to "Half light in the kitchen, please":
//! let text = r#"{"name": "set_brightness", "arguments": {"room": "kitchen", "percent": 50}}"#;
//! let call = functions.validate(text)?;
//! assert_eq!(functions.read(&call)?, Light::SetBrightness { room: "kitchen".into(), percent: 50 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`TypedCaller`] puts such a type and a model together, and turns requests into values.

#[cfg(feature = "engine")]
mod call;

use std::marker::PhantomData;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::definitions::{self, DefinitionError, FunctionDef};
use crate::grammar::lower;
use crate::schema::{self, SchemaError};
use crate::validate::{FunctionCall, ValidateError, Validator};

#[cfg(feature = "engine")]
pub use call::{TypedCaller, TypedError};

/// Why a type is no set of functions, or a call is no value of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// Neither an externally tagged enum nor a struct.
    #[error(
        "{type_name} is neither a struct with named fields nor an externally tagged enum; its \
         JSON Schema is {schema}"
    )]
    NotFunctions {
        /// The Rust type.
        type_name: &'static str,
        /// What schemars makes of it.
        schema: String,
    },
    /// The schema of a variant is no definition.
    #[error("a function of the type cannot be defined")]
    Definition(#[source] DefinitionError),
    /// The grammar cannot express a field, for instance a set.
    #[error("the function {function} of {type_name} cannot be called")]
    Unsupported {
        /// The function.
        function: String,
        /// The Rust type.
        type_name: &'static str,
        /// The keyword of its JSON Schema that is at fault.
        #[source]
        source: Box<SchemaError>,
    },
    /// serde does not read the call as the type.
    #[error("the call {call} is no {type_name}")]
    Read {
        /// The call, as JSON.
        call: String,
        /// The Rust type.
        type_name: &'static str,
        /// What serde says.
        #[source]
        source: serde_json::Error,
    },
}

/// How serde writes one function of the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `{"field": …}`
    Struct,
    /// `{"variant": {"field": …}}`
    Variant,
    /// `"variant"`
    Unit,
}

/// The functions that a type stands for.
#[derive(Debug)]
pub struct Functions<T> {
    definitions: Vec<FunctionDef>,
    shapes: Vec<Shape>,
    validator: Validator,
    of: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> Functions<T> {
    /// The functions of `T`.
    ///
    /// # Errors
    /// [`TypeError::NotFunctions`] for a type of another shape, [`TypeError::Unsupported`] for a field
    /// that the grammar cannot express: it will never be called, so this says so at once.
    pub fn new() -> Result<Self, TypeError> {
        let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        let parts = functions_of(&schema).ok_or_else(|| TypeError::NotFunctions {
            type_name: std::any::type_name::<T>(),
            schema: schema.to_string(),
        })?;
        let (values, shapes): (Vec<Value>, Vec<Shape>) = parts.into_iter().unzip();
        let definitions =
            definitions::from_value(&Value::Array(values), "").map_err(TypeError::Definition)?;
        for function in &definitions {
            schema::parse(&function.parameters, schema::Options::STRICT).map_err(|source| {
                TypeError::Unsupported {
                    function: function.name.to_string(),
                    type_name: std::any::type_name::<T>(),
                    source: Box::new(source),
                }
            })?;
        }
        let validator = Validator::new(&definitions, lower::Options::LEGAL);
        Ok(Self { definitions, shapes, validator, of: PhantomData })
    }

    /// Their definitions, in the order of the variants.
    #[must_use]
    pub fn definitions(&self) -> &[FunctionDef] {
        &self.definitions
    }

    /// A generated text as a valid call.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn validate(&self, text: &str) -> Result<FunctionCall, ValidateError> {
        self.validator.validate(text)
    }

    /// A call as a value of the type.
    ///
    /// # Errors
    /// [`TypeError::Read`], for instance a number that the field's type does not hold.
    pub fn read(&self, call: &FunctionCall) -> Result<T, TypeError> {
        let at = self.definitions.iter().position(|function| function.name == call.name);
        let value = match at.map(|at| self.shapes[at]) {
            Some(Shape::Struct) => call.parameters.clone(),
            Some(Shape::Unit) => json!(call.name.as_str()),
            Some(Shape::Variant) | None => json!({ call.name.as_str(): call.parameters }),
        };
        // By way of the text: a buffered value with arbitrary precision is no plain number to serde.
        let text = value.to_string();
        serde_json::from_str(&text).map_err(|source| TypeError::Read {
            call: text,
            type_name: std::any::type_name::<T>(),
            source,
        })
    }
}

/// The definitions in a type's schema, as schemars writes enums and structs; `None` for other types.
fn functions_of(schema: &Value) -> Option<Vec<(Value, Shape)>> {
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        let of_each: Option<Vec<_>> = variants.iter().map(variants_of).collect();
        return of_each.map(|lists| lists.into_iter().flatten().collect());
    }
    if schema.get("enum").is_some() {
        return variants_of(schema);
    }
    let name = schema.get("title")?.as_str()?;
    (schema.get("type")? == "object" && schema.get("properties").is_some())
        .then(|| vec![(definition(name, schema, schema), Shape::Struct)])
}

fn variants_of(schema: &Value) -> Option<Vec<(Value, Shape)>> {
    let nothing = json!({ "type": "object", "properties": {} });
    let unit = |name: &str| (definition(name, schema, &nothing), Shape::Unit);
    if let Some(name) = schema.get("const") {
        return name.as_str().map(|name| vec![unit(name)]);
    }
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        return names.iter().map(|name| name.as_str().map(unit)).collect();
    }
    let properties = schema.get("properties")?.as_object()?;
    let (name, parameters) = properties.iter().next().filter(|_| properties.len() == 1)?;
    Some(vec![(definition(name, schema, parameters), Shape::Variant)])
}

/// A definition whose description is the variant's, else that of what it holds.
fn definition(name: &str, outer: &Value, parameters: &Value) -> Value {
    let description = outer.get("description").or_else(|| parameters.get("description"));
    let mut value = json!({ "name": name, "parameters": parameters });
    if let Some(description) = description {
        value["description"] = description.clone();
    }
    value
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Reminder {
        text: String,
        minutes: Option<u8>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    enum Calls {
        Add {
            a: f64,
            b: f64,
        },
        Remind(Reminder),
        Stop,
        /// Begin again.
        Restart,
    }

    #[track_caller]
    fn check<T: DeserializeOwned + JsonSchema + std::fmt::Debug + PartialEq>(text: &str, want: &T) {
        let functions = Functions::<T>::new().unwrap();
        let call = functions.validate(text).unwrap();
        assert_eq!(&functions.read(&call).unwrap(), want);
    }

    #[test]
    fn calls_come_back_as_the_type() {
        check(
            r#"{"name": "Add", "arguments": {"a": 2, "b": -0.5}}"#,
            &Calls::Add { a: 2.0, b: -0.5 },
        );
        let reminder = || Reminder { text: "tea".into(), minutes: Some(4) };
        check(
            r#"{"name": "Remind", "arguments": {"text": "tea", "minutes": 4}}"#,
            &Calls::Remind(reminder()),
        );
        check(r#"{"name": "Stop", "arguments": {}}"#, &Calls::Stop);
        check(r#"{"name": "Restart", "arguments": {}}"#, &Calls::Restart);
        check(r#"{"name": "Reminder", "arguments": {"text": "tea", "minutes": 4}}"#, &reminder());
    }

    #[test]
    fn a_type_that_is_no_function_says_so() {
        let error = Functions::<Vec<i64>>::new().unwrap_err().to_string();
        assert!(error.contains("neither a struct"), "{error}");
    }

    #[test]
    fn a_field_that_the_grammar_cannot_express_is_told_at_once() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Tags {
            tags: std::collections::BTreeSet<String>,
        }
        let Err(TypeError::Unsupported { function, source, .. }) = Functions::<Tags>::new() else {
            panic!("it was taken");
        };
        assert_eq!((function.as_str(), source.keyword.as_str()), ("Tags", "uniqueItems"));
    }

    #[test]
    fn doc_comments_become_descriptions() {
        let functions = Functions::<Calls>::new().unwrap();
        let descriptions: Vec<_> =
            functions.definitions().iter().map(|f| f.description.as_deref()).collect();
        assert_eq!(descriptions, [None, None, None, Some("Begin again.")]);
    }
}
