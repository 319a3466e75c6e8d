//! Function definitions: JSON in any of the accepted forms becomes a list of [`FunctionDef`]s.
//!
//! Each element is told apart on its own, so one list may mix forms: the exercise's short format
//! (`parameters` maps a name to a schema, all required), the tools of `OpenAI` (nested or flat), a
//! bare `{"name", "description", "parameters"}` with a JSON Schema, MCP's `inputSchema`, and the
//! older `fn_name`/`args_names`/`args_types`. The list may stand alone, under `tools` or
//! `functions`, under MCP's `result`, or be a single object.
//!
//! **Invariant:** no two functions of one list have the same name, and no name is empty.
//! **Invariant:** `parameters` is always a JSON Schema with JSON's type names; what the keywords
//! mean is not looked at here ([`crate::schema`] does that), so a schema we cannot express is no
//! error here.
//! **Invariant:** no I/O here; the caller adds the file's path to an error.

mod error;
pub(crate) mod keywords;
mod type_names;

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value, json};

pub use self::error::{DefinitionError, Problem};
use self::type_names::{is_json_schema, with_json_types};

/// The name of a function as its definition spells it; never empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct FunctionName(String);

impl FunctionName {
    /// Takes any text that is not empty; `None` for an empty one.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        (!name.is_empty()).then_some(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One function that the model may call.
///
/// ```
/// let file = br#"[{"name": "fn_wait", "parameters": {"seconds": {"type": "float"}}}]"#;
/// let functions = call_me_maybe::definitions::parse(file)?;
/// assert_eq!(functions[0].name.as_str(), "fn_wait");
/// assert_eq!(functions[0].parameters["properties"]["seconds"]["type"], "number");
/// let pointer = functions[0].pointer_in_file("/properties/seconds/type");
/// assert_eq!(pointer, "/0/parameters/seconds/type");
/// # Ok::<(), call_me_maybe::definitions::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionDef {
    /// What the model writes to choose this function.
    pub name: FunctionName,
    /// What the function does, for the model to read.
    pub description: Option<String>,
    /// JSON Schema of the arguments object, with JSON's type names.
    pub parameters: Value,
    /// JSON pointer of the definition in its file, such as `/3`.
    pub place: String,
    origin: Origin,
}

/// Where `parameters` came from, to find the way back into the file.
#[derive(Debug, Clone, PartialEq)]
enum Origin {
    /// The schema stands in the file at this pointer.
    Schema(String),
    /// A map of name to schema stands at this pointer; the object schema around it is ours.
    Short(String),
    /// The older format: the types stand at this pointer, by name.
    Types(String),
}

impl FunctionDef {
    /// A definition that comes from no file: `parameters` is a JSON Schema.
    #[must_use]
    pub fn new(name: FunctionName, description: Option<String>, parameters: &Value) -> Self {
        Self {
            name,
            description,
            parameters: with_json_types(parameters),
            place: String::new(),
            origin: Origin::Schema(String::new()),
        }
    }

    /// The definition in the form that chat templates are given:
    /// `{"type": "function", "function": {"name", "description", "parameters"}}`.
    ///
    /// A definition without a description has no such key.
    #[must_use]
    pub fn tool(&self) -> Value {
        let mut function = Map::new();
        function.insert("name".to_owned(), Value::from(self.name.as_str()));
        if let Some(description) = &self.description {
            function.insert("description".to_owned(), Value::from(description.as_str()));
        }
        function.insert("parameters".to_owned(), self.parameters.clone());
        json!({"type": "function", "function": function})
    }

    /// Whether the definition lists every argument there is, as the short and the older format do.
    #[must_use]
    pub fn lists_all(&self) -> bool {
        !matches!(self.origin, Origin::Schema(_))
    }

    /// JSON pointer in the user's file of a pointer inside `parameters`.
    ///
    /// Where the file has no such place (the `required` that the short format implies), it is the
    /// nearest place around it.
    #[must_use]
    pub fn pointer_in_file(&self, pointer: &str) -> String {
        match &self.origin {
            Origin::Schema(at) => format!("{at}{pointer}"),
            Origin::Short(at) => {
                let inner = pointer.strip_prefix("/properties").unwrap_or_default();
                format!("{at}{inner}")
            }
            Origin::Types(at) => {
                let inner = pointer.strip_prefix("/properties/").unwrap_or_default();
                match inner.split('/').next() {
                    Some(name) if !name.is_empty() => format!("{at}/{name}"),
                    _ => at.clone(),
                }
            }
        }
    }
}

/// Reads a whole definitions file; an empty list is no error.
///
/// # Errors
///
/// [`DefinitionError`] tells what is wrong, where, and the way out.
pub fn parse(bytes: &[u8]) -> Result<Vec<FunctionDef>, DefinitionError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| DefinitionError::NotUtf8 { offset: error.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(DefinitionError::Empty);
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| DefinitionError::syntax(&error))?;
    from_value(&value, "")
}

/// Reads definitions that stand inside another document, at the JSON pointer `place`.
///
/// # Errors
///
/// As [`parse`], without the ones about bytes and syntax.
pub fn from_value(value: &Value, place: &str) -> Result<Vec<FunctionDef>, DefinitionError> {
    let functions = match value {
        Value::Array(elements) => many(elements, place)?,
        Value::Object(object) => match list_of(object, place)? {
            Some((elements, place)) => many(elements, &place)?,
            None => vec![one(value, place)?],
        },
        other => return Err(at(place, Problem::NotFunctions { found: kind(other) })),
    };
    let mut first: HashMap<&FunctionName, &str> = HashMap::new();
    for function in &functions {
        if let Some(earlier) = first.insert(&function.name, &function.place) {
            return Err(DefinitionError::DuplicateName {
                name: function.name.clone(),
                first: earlier.to_owned(),
                second: function.place.clone(),
            });
        }
    }
    Ok(functions)
}

/// The pointer of a member of what stands at `pointer` (RFC 6901, section 3).
pub(crate) fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// What a JSON value is, for a message.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn at(pointer: &str, problem: Problem) -> DefinitionError {
    DefinitionError::Malformed { pointer: pointer.to_owned(), problem }
}

/// The list inside a wrapping object, with its pointer; `None` where the object is a function
/// itself.
fn list_of<'a>(
    object: &'a Map<String, Value>,
    place: &str,
) -> Result<Option<(&'a [Value], String)>, DefinitionError> {
    let is_function = ["name", "fn_name", "function"].iter().any(|key| object.contains_key(*key));
    let (object, place) = match object.get("result") {
        Some(Value::Object(result)) => (result, child(place, "result")),
        _ => (object, place.to_owned()),
    };
    for key in ["tools", "functions"] {
        match object.get(key) {
            Some(Value::Array(elements)) => return Ok(Some((elements, child(&place, key)))),
            Some(other) if !is_function => {
                return Err(at(&child(&place, key), Problem::NotFunctions { found: kind(other) }));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn many(elements: &[Value], place: &str) -> Result<Vec<FunctionDef>, DefinitionError> {
    elements
        .iter()
        .enumerate()
        .map(|(index, e)| one(e, &child(place, &index.to_string())))
        .collect()
}

fn one(value: &Value, place: &str) -> Result<FunctionDef, DefinitionError> {
    let Value::Object(outer) = value else {
        return Err(at(place, Problem::NotAnObject { found: kind(value) }));
    };
    // OpenAI's nested form; a `function` that is a sibling of `name` is something of the user's
    // own.
    let (object, inner) = match outer.get("function") {
        Some(Value::Object(function)) if !outer.contains_key("name") => {
            (function, child(place, "function"))
        }
        Some(other) if !outer.contains_key("name") => {
            let found = kind(other);
            return Err(at(&child(place, "function"), Problem::NotAnObject { found }));
        }
        _ => (outer, place.to_owned()),
    };
    let old = object.contains_key("fn_name") && !object.contains_key("name");
    let name = name(object, &inner, if old { "fn_name" } else { "name" })?;
    let description = match object.get("description") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            let found = kind(other);
            return Err(at(&child(&inner, "description"), Problem::DescriptionNotText { found }));
        }
    };
    let (parameters, origin) =
        if old { old_format(object, &inner)? } else { parameters(object, &inner)? };
    Ok(FunctionDef { name, description, parameters, place: place.to_owned(), origin })
}

fn name(
    object: &Map<String, Value>,
    place: &str,
    key: &str,
) -> Result<FunctionName, DefinitionError> {
    match object.get(key) {
        None => Err(at(place, Problem::NoName)),
        Some(Value::String(name)) => FunctionName::new(name.as_str())
            .ok_or_else(|| at(&child(place, key), Problem::EmptyName)),
        Some(other) => Err(at(&child(place, key), Problem::NameNotText { found: kind(other) })),
    }
}

/// `parameters`, or what MCP and others call it, as a JSON Schema.
fn parameters(
    object: &Map<String, Value>,
    place: &str,
) -> Result<(Value, Origin), DefinitionError> {
    let found = ["parameters", "inputSchema", "input_schema"]
        .iter()
        .find_map(|key| object.get(*key).map(|value| (*key, value)));
    let (key, map) = match found {
        None | Some((_, Value::Null)) => {
            return Ok((object_schema(&Map::new()), Origin::Short(place.to_owned())));
        }
        Some((key, Value::Object(map))) => (key, map),
        Some((key, other)) => {
            let found = kind(other);
            return Err(at(&child(place, key), Problem::ParametersNotAnObject { found }));
        }
    };
    let place = child(place, key);
    if key != "parameters" || is_json_schema(map) {
        let schema = with_json_types(&Value::Object(map.clone()));
        return Ok((schema, Origin::Schema(place)));
    }
    let mut properties = Map::new();
    for (name, schema) in map {
        if !schema.is_object() {
            let problem = Problem::ParameterNotASchema { name: name.clone(), found: kind(schema) };
            return Err(at(&child(&place, name), problem));
        }
        properties.insert(name.clone(), with_json_types(schema));
    }
    Ok((object_schema(&properties), Origin::Short(place)))
}

/// The older format's `args_names` and `args_types`.
fn old_format(
    object: &Map<String, Value>,
    place: &str,
) -> Result<(Value, Origin), DefinitionError> {
    let (names_at, types_at) = (child(place, "args_names"), child(place, "args_types"));
    let no_types = Map::new();
    let types = match object.get("args_types") {
        None | Some(Value::Null) => &no_types,
        Some(Value::Object(types)) => types,
        Some(other) => return Err(at(&types_at, Problem::ArgsTypes { found: kind(other) })),
    };
    let names: Vec<&str> = match object.get("args_names") {
        None => types.keys().map(String::as_str).collect(),
        Some(Value::Array(names)) => names
            .iter()
            .enumerate()
            .map(|(index, name)| {
                name.as_str().ok_or_else(|| {
                    let pointer = child(&names_at, &index.to_string());
                    at(&pointer, Problem::ArgsNames { found: kind(name) })
                })
            })
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(at(&names_at, Problem::ArgsNames { found: kind(other) })),
    };
    if let Some(extra) = types.keys().find(|name| !names.contains(&name.as_str())) {
        return Err(at(&child(&types_at, extra), Problem::NoArgName { name: extra.clone() }));
    }
    let mut properties = Map::new();
    for (index, name) in names.iter().enumerate() {
        let schema = match types.get(*name) {
            Some(Value::String(_)) => with_json_types(&json!({"type": types[*name]})),
            Some(schema @ Value::Object(_)) => with_json_types(schema),
            Some(other) => {
                return Err(at(&child(&types_at, name), Problem::ArgsTypes { found: kind(other) }));
            }
            None => {
                let pointer = child(&names_at, &index.to_string());
                return Err(at(&pointer, Problem::NoArgType { name: (*name).to_owned() }));
            }
        };
        if properties.insert((*name).to_owned(), schema).is_some() {
            let pointer = child(&names_at, &index.to_string());
            return Err(at(&pointer, Problem::ArgTwice { name: (*name).to_owned() }));
        }
    }
    Ok((object_schema(&properties), Origin::Types(types_at)))
}

/// An object schema in which every property is required.
fn object_schema(properties: &Map<String, Value>) -> Value {
    let required: Vec<Value> = properties.keys().map(|key| Value::from(key.as_str())).collect();
    with_json_types(&json!({"type": "object", "properties": properties, "required": required}))
}
