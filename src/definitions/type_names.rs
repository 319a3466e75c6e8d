//! Which form `parameters` has, Python's type names as JSON's, and an `enum` that stands in the wrong place.
//!
//! **Invariant:** a name is changed only where a `type` keyword stands in a schema position, never
//! inside `enum`, `const`, `default` or `examples`, and never as the name of a property.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::keywords::{Holds, is_keyword};

/// Deepest schema looked into; `schema::parse` refuses far shallower ones.
const MAX_DEPTH: usize = 256;

/// Tells a JSON Schema from the short format, a map of parameter names to schemas.
///
/// A parameter may be called `type`, `properties`, `items` or `required`; then the value is an
/// object that is a schema itself, where the keyword of that name would hold something else.
pub(super) fn is_json_schema(map: &Map<String, Value>) -> bool {
    let by_type = match map.get("type") {
        Some(Value::String(_)) => true,
        Some(Value::Array(types)) => types.iter().all(Value::is_string),
        _ => false,
    };
    let by_properties = match map.get("properties") {
        Some(Value::Object(inner)) => inner.values().all(|v| v.is_object() || v.is_boolean()),
        _ => false,
    };
    if by_type || by_properties {
        return true;
    }
    // Otherwise it is a schema when something cannot be a parameter and everything can be a
    // keyword; `{"a": "number"}` is a short format gone wrong, which must not pass as a schema
    // without parameters.
    map.values().any(|v| !v.is_object()) && map.keys().all(|key| is_keyword(key))
}

/// The schema with Python's type names replaced by JSON's.
pub(super) fn with_json_types(schema: &Value) -> Value {
    let mut schema = schema.clone();
    rename(&mut schema, 0);
    schema
}

fn rename(schema: &mut Value, depth: usize) {
    let Value::Object(map) = schema else { return };
    if depth == MAX_DEPTH {
        return;
    }
    // Draft 3's name for what no `type` says as well.
    if map.get("type").is_some_and(|name| name == "any") {
        map.shift_remove("type");
    }
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("type", Value::String(name)) => rename_type(name),
            ("type", Value::Array(names)) => {
                for name in names {
                    if let Value::String(name) = name {
                        rename_type(name);
                    }
                }
            }
            // A name that stands twice says nothing more, but validators refuse such a list.
            ("required", Value::Array(names)) => {
                let mut seen = HashSet::new();
                names.retain(|name| name.as_str().is_none_or(|name| seen.insert(name.to_owned())));
            }
            (key, value) => match (Holds::of(key, value), value) {
                (Holds::Named, Value::Object(schemas)) => {
                    for schema in schemas.values_mut() {
                        rename(schema, depth + 1);
                    }
                }
                (Holds::List, Value::Array(schemas)) => {
                    for schema in schemas {
                        rename(schema, depth + 1);
                    }
                }
                (Holds::Schema, schema) => rename(schema, depth + 1),
                _ => {}
            },
        }
    }
    // By the standard such an object could never be, so it was not meant.
    let required = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        for name in required.iter().filter_map(Value::as_str) {
            if let Some(Value::Object(property)) = properties.get_mut(name) {
                move_enum(property);
            }
        }
    }
}

/// Moves an `enum` of single items from an array to its items, where it was meant to stand.
fn move_enum(map: &mut Map<String, Value>) {
    let is_array = map.get("type").is_some_and(|name| name == "array");
    let Some(Value::Array(members)) = map.get("enum").filter(|_| is_array) else { return };
    if members.is_empty() || members.iter().any(Value::is_array) {
        return;
    }
    let members = Value::Array(members.clone());
    match map.get_mut("items") {
        Some(Value::Object(items)) if !items.contains_key("enum") => {
            items.insert("enum".to_owned(), members);
        }
        None => {
            map.insert("items".to_owned(), serde_json::json!({ "enum": members }));
        }
        Some(_) => return,
    }
    map.shift_remove("enum");
}

fn rename_type(name: &mut String) {
    let json = match name.as_str() {
        "int" => "integer",
        "float" => "number",
        "str" => "string",
        "bool" => "boolean",
        "list" | "tuple" => "array",
        "dict" => "object",
        "None" | "NoneType" => "null",
        _ => return,
    };
    json.clone_into(name);
}
