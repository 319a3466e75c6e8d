//! The values of single keywords, and what is wrong with them.

use serde_json::{Map, Value};

use super::constraint::{Constraint, Numbers};
use super::{SchemaError, SchemaProblem, error, malformed};
use crate::regular::number::{Bound, Decimal, Interval};

/// A schema of so many keys is read faster from end to end than by hashing.
const FEW_KEYS: usize = 8;

/// The value of a keyword.
pub(super) fn get<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if map.len() > FEW_KEYS {
        return map.get(key);
    }
    map.iter().find(|(other, _)| *other == key).map(|(_, value)| value)
}

/// The types that `type` names; `None` without it.
pub(super) fn types<'a>(
    map: &'a Map<String, Value>,
    pointer: &str,
) -> Result<Option<Vec<&'a str>>, SchemaError> {
    const EXPECTED: &str = "a string or an array of strings";
    match get(map, "type") {
        None => Ok(None),
        Some(Value::String(name)) => Ok(Some(vec![name])),
        Some(Value::Array(names)) if !names.is_empty() => names
            .iter()
            .map(|name| name.as_str().ok_or_else(|| malformed("type", pointer, EXPECTED, name)))
            .collect::<Result<_, _>>()
            .map(Some),
        Some(other) => Err(malformed("type", pointer, EXPECTED, other)),
    }
}

/// The type that other keywords mean where `type` is missing.
pub(super) fn implied_type(map: &Map<String, Value>) -> Option<&'static str> {
    let object = ["properties", "required", "additionalProperties", "patternProperties"];
    if object.iter().any(|key| get(map, key).is_some()) {
        Some("object")
    } else if get(map, "items").is_some() || get(map, "prefixItems").is_some() {
        Some("array")
    } else if get(map, "minLength").is_some()
        || get(map, "maxLength").is_some()
        || get(map, "pattern").is_some()
    {
        Some("string")
    } else if get(map, "minimum").is_some()
        || get(map, "maximum").is_some()
        || get(map, "multipleOf").is_some()
    {
        Some("number")
    } else {
        None
    }
}

/// Values of other types than these.
pub(super) fn all_but<'a>(names: &[&str]) -> Constraint<'a> {
    let mut whole = Constraint::any();
    for name in names {
        match *name {
            "null" => whole.null = false,
            "boolean" => whole.booleans = [false, false],
            "integer" => {
                let others = Numbers { integer: Some(false), ..Numbers::default() };
                whole.numbers.iter_mut().for_each(|numbers| *numbers = others.clone());
            }
            "number" => whole.numbers.clear(),
            "string" => whole.strings.clear(),
            "array" => whole.arrays.clear(),
            "object" => whole.objects.clear(),
            _ => return Constraint::none(),
        }
    }
    whole
}

pub(super) fn list<'a>(
    value: &'a Value,
    keyword: &str,
    pointer: &str,
) -> Result<&'a [Value], SchemaError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(malformed(keyword, pointer, "an array", other)),
    }
}

pub(super) fn map_of<'a>(
    value: Option<&'a Value>,
    keyword: &str,
    pointer: &str,
) -> Result<Option<&'a Map<String, Value>>, SchemaError> {
    match value {
        None => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(other) => Err(malformed(keyword, pointer, "an object", other)),
    }
}

/// A list of names, each once.
pub(super) fn strings<'a>(
    value: Option<&'a Value>,
    keyword: &str,
    pointer: &str,
) -> Result<Vec<&'a str>, SchemaError> {
    let mut names = Vec::new();
    match value {
        // Draft 3's flag of a property, which its object looks at.
        None | Some(Value::Bool(_)) => {}
        Some(Value::Array(list)) => {
            for name in list {
                let name = name
                    .as_str()
                    .ok_or_else(|| malformed(keyword, pointer, "an array of strings", name))?;
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Some(other) => return Err(malformed(keyword, pointer, "an array of strings", other)),
    }
    Ok(names)
}

pub(super) fn number(value: &Value, keyword: &str, pointer: &str) -> Result<Decimal, SchemaError> {
    match value {
        Value::Number(number) => number.as_str().parse::<Decimal>().map_err(|problem| {
            let message = problem.to_string();
            error(keyword, pointer, SchemaProblem::Number { message })
        }),
        other => Err(malformed(keyword, pointer, "a number", other)),
    }
}

/// A count; one beyond what a `usize` holds is as good as its maximum.
pub(super) fn count(value: &Value, keyword: &str, pointer: &str) -> Result<usize, SchemaError> {
    const EXPECTED: &str = "an integer from 0";
    let decimal = match value {
        Value::Number(number) => number.as_str().parse::<Decimal>().ok(),
        other => return Err(malformed(keyword, pointer, EXPECTED, other)),
    };
    match decimal {
        Some(decimal) if decimal.is_integer() && !decimal.is_negative() => {
            Ok(decimal.to_string().parse().unwrap_or(usize::MAX / 2))
        }
        _ => Err(malformed(keyword, pointer, EXPECTED, value)),
    }
}

/// Joins a bound to an interval.
pub(super) fn restrict(interval: &mut Interval, lower: bool, value: Decimal, exclusive: bool) {
    let bound = Some(if exclusive { Bound::exclusive(value) } else { Bound::inclusive(value) });
    let other =
        if lower { Interval { min: bound, max: None } } else { Interval { min: None, max: bound } };
    *interval = interval.and(&other);
}

/// What lies below and above an interval.
pub(super) fn outside(interval: &Interval) -> Vec<Interval> {
    let opposite = |bound: &Bound| {
        let value = bound.value.clone();
        Some(if bound.exclusive { Bound::inclusive(value) } else { Bound::exclusive(value) })
    };
    let below = interval.min.as_ref().map(|min| Interval { min: None, max: opposite(min) });
    let above = interval.max.as_ref().map(|max| Interval { min: opposite(max), max: None });
    below.into_iter().chain(above).collect()
}
