//! Files of labelled cases, and of predictions for them, to [`Case`]s and [`Prediction`]s.
//!
//! **Invariant:** every error names its place and the way out; a label is understood as a whole or refused.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::berkeley::{Answer, Rule};
use super::exercise::Label;
use super::{Call, Case, Expected, Prediction};
use crate::definitions::child;
use crate::input::{self, InputError, Place, type_name};

/// Why a file of cases or predictions cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// It has no prompts, functions or JSON.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Something else stands where a label or a call should.
    #[error("{place}: {found} is not what belongs here; give {wanted}")]
    Unlike {
        /// Line and pointer.
        place: String,
        /// The JSON type that stands there.
        found: &'static str,
        /// What would be right.
        wanted: &'static str,
    },
    /// A case says nothing of what is right.
    #[error("{place}: no label; give \"expected\", or \"name\" and \"parameters\"")]
    NoLabel {
        /// Which record.
        place: Place,
    },
    /// A prediction has no calls.
    #[error("{place}: no call; give \"calls\", a list, or \"name\" and \"parameters\"")]
    NoCalls {
        /// Which record.
        place: Place,
    },
    /// Two predictions for a case.
    #[error("{place}: the id {id} is predicted twice; leave one out")]
    Twice {
        /// Which record.
        place: Place,
        /// The id, as JSON.
        id: String,
    },
    /// Some predictions name their case and some do not.
    #[error(
        "{place}: no \"id\", which the first record has; give one to all, or to none for the order of the cases"
    )]
    NoId {
        /// Which record.
        place: Place,
    },
}

const CALL: &str = "{FUNCTION: {PARAMETER: [VALUES]}}, or a call {\"name\", \"arguments\"}";

/// Reads a file of cases; `stem`, the file's name without its ending, stands in for ids and categories that
/// records do not have.
///
/// # Errors
/// [`LabelError`], at the first record that is no case.
pub fn cases(bytes: &[u8], stem: &str) -> Result<Vec<Case>, LabelError> {
    let records = input::records(bytes)?.into_iter().enumerate();
    records.map(|(index, (place, record))| case(record, place, stem, index)).collect()
}

fn case(record: Value, place: Place, stem: &str, index: usize) -> Result<Case, LabelError> {
    let Value::Object(mut record) = record else {
        input::request(record, place)?;
        return Err(LabelError::NoLabel { place });
    };
    let category = match record.shift_remove("category") {
        None | Some(Value::Null) => None,
        Some(Value::String(category)) => Some(category),
        Some(other) => {
            return Err(unlike(place.of_key("category"), &other, "a string, or leave it out"));
        }
    };
    for key in ["functions", "tools"] {
        if let Some(functions) = record.get_mut(key) {
            drop_notes(functions);
        }
    }
    let rule = |n| Rule::of(category.as_deref().unwrap_or_default(), n);
    let label = [record.shift_remove("expected"), record.shift_remove("name")];
    let parameters = [record.shift_remove("parameters"), record.shift_remove("accept")];
    let expected = match (label, parameters) {
        ([Some(expected), _], _) => {
            let answers = answers(&expected, &place.of_key("expected"))?;
            Expected::Calls { rule: rule(answers.len()), answers }
        }
        ([None, Some(Value::String(name))], [Some(first), others]) => {
            let mut parameters = vec![first];
            match others {
                None | Some(Value::Null) => {}
                Some(Value::Array(others)) => parameters.extend(others),
                Some(other) => {
                    let wanted = "a list of other right parameters, or leave it out";
                    return Err(unlike(place.of_key("accept"), &other, wanted));
                }
            }
            Expected::Exercise(Label { name, parameters })
        }
        ([None, Some(other)], _) if !other.is_string() => {
            return Err(unlike(place.of_key("name"), &other, "the function's name, a string"));
        }
        // Such a category is a label by itself.
        _ if category.as_ref().is_some_and(|category| category.contains("relevance")) => {
            Expected::Calls { rule: rule(0), answers: Vec::new() }
        }
        _ => return Err(LabelError::NoLabel { place }),
    };
    let mut request = input::request(Value::Object(record), place)?;
    let id = request.id.get_or_insert_with(|| format!("{stem}/{index}").into()).clone();
    Ok(Case { id, category: category.unwrap_or_else(|| stem.to_owned()), request, expected })
}

/// Removes what a converter notes of the type that a schema had before, as in `"x-old-type": "tuple"`: it says
/// nothing of the function, and a model would read it.
fn drop_notes(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| {
                !(key.starts_with("x-") && key.ends_with("-type") && value.is_string())
            });
            members.values_mut().for_each(drop_notes);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_notes),
        _ => {}
    }
}

fn unlike(place: String, found: &Value, wanted: &'static str) -> LabelError {
    LabelError::Unlike { place, found: type_name(found), wanted }
}

fn answers(expected: &Value, place: &str) -> Result<Vec<Answer>, LabelError> {
    match expected {
        Value::Array(all) => {
            let all = all.iter().enumerate();
            all.map(|(index, one)| answer(one, &child(place, &index.to_string()))).collect()
        }
        one => Ok(vec![answer(one, place)?]),
    }
}

fn answer(value: &Value, place: &str) -> Result<Answer, LabelError> {
    let Value::Object(object) = value else { return Err(unlike(place.to_owned(), value, CALL)) };
    let arguments = object.get("arguments").or_else(|| object.get("parameters"));
    if let (Some(Value::String(name)), Some(Value::Object(arguments))) =
        (object.get("name"), arguments)
    {
        let only = |(name, value): (&String, &Value)| (name.clone(), vec![as_option(value)]);
        return Ok(Answer { name: name.clone(), options: arguments.iter().map(only).collect() });
    }
    let mut members = object.iter();
    let (Some((name, Value::Object(parameters))), None) = (members.next(), members.next()) else {
        return Err(unlike(place.to_owned(), value, CALL));
    };
    let place = child(place, name);
    let options = |(parameter, options): (&String, &Value)| match options {
        Value::Array(options) => Ok((parameter.clone(), options.clone())),
        other => Err(unlike(child(&place, parameter), other, "the list of right values")),
    };
    let options = parameters.iter().map(options).collect::<Result<_, _>>()?;
    Ok(Answer { name: name.clone(), options })
}

/// A value as the only option: the members of an object, also of those in a list, are lists of options.
fn as_option(value: &Value) -> Value {
    let listed = |members: &Map<String, Value>| {
        members
            .iter()
            .map(|(key, value)| (key.clone(), Value::Array(vec![value.clone()])))
            .collect()
    };
    match value {
        Value::Object(members) => Value::Object(listed(members)),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                item.as_object().map_or_else(|| item.clone(), |one| Value::Object(listed(one)))
            })
            .collect(),
        other => other.clone(),
    }
}

/// Reads a file of predictions: one for each case, in their order, and how many are for no case.
///
/// Records with an `id` go to the case of that id, others to the case of their place, if they have its prompt and
/// no keys but `prompt`, `name` and `parameters`. What `callme eval` has written is read too.
///
/// # Errors
/// [`LabelError`], at the first record that is no prediction.
pub fn predictions(bytes: &[u8], cases: &[Case]) -> Result<(Vec<Prediction>, usize), LabelError> {
    let mut records = input::records(bytes)?;
    if let [(Place::Whole, Value::Object(report))] = records.as_mut_slice() {
        if let Some(Value::Array(inner)) = report.get_mut("records").map(Value::take) {
            let inner = inner.into_iter().enumerate();
            records = inner.map(|(index, record)| (Place::Element(index), record)).collect();
        }
    }
    let has_id = records.first().is_some_and(|(_, record)| record.get("id").is_some());
    let mut by_key: HashMap<String, Prediction> = HashMap::new();
    for (index, (place, record)) in records.into_iter().enumerate() {
        let Value::Object(mut record) = record else {
            let wanted = "an object with \"calls\", or \"name\" and \"parameters\"";
            return Err(unlike(place.to_string(), &record, wanted));
        };
        let (key, problem) = match record.get("id") {
            Some(id) if has_id => (id.to_string(), None),
            None if has_id => return Err(LabelError::NoId { place }),
            _ => (index.to_string(), cases.get(index).and_then(|case| misplaced(&record, case))),
        };
        let mut prediction = prediction(&mut record, place)?;
        if let Some(problem) = problem {
            prediction = Prediction { error: Some(problem.to_owned()), ..Prediction::default() };
        }
        if by_key.insert(key.clone(), prediction).is_some() {
            return Err(LabelError::Twice { place, id: key });
        }
    }
    let key = |(index, case): (usize, &Case)| {
        if has_id { case.id.to_string() } else { index.to_string() }
    };
    let none =
        || Prediction { error: Some("none for this case".to_owned()), ..Prediction::default() };
    let keys = cases.iter().enumerate().map(key);
    let found = keys.map(|key| by_key.remove(&key).unwrap_or_else(none)).collect();
    Ok((found, by_key.len()))
}

/// What is wrong with a record that stands where the case's should.
fn misplaced(record: &Map<String, Value>, case: &Case) -> Option<&'static str> {
    if !record.keys().eq(["prompt", "name", "parameters"]) {
        return Some("its keys are not prompt, name and parameters");
    }
    (record["prompt"] != case.request.prompt.as_str()).then_some("it has another prompt")
}

fn prediction(record: &mut Map<String, Value>, place: Place) -> Result<Prediction, LabelError> {
    let error = record.get("error").and_then(Value::as_str).map(str::to_owned);
    let calls = match (record.shift_remove("calls"), record.get("name")) {
        (Some(Value::Array(calls)), _) => {
            let pointer = place.of_key("calls");
            let calls = calls.into_iter().enumerate();
            calls
                .map(|(index, one)| call(one, &child(&pointer, &index.to_string())))
                .collect::<Result<_, _>>()?
        }
        (Some(Value::Null), _) | (None, Some(Value::Null)) => Vec::new(),
        (None, None) if error.is_some() => Vec::new(),
        (Some(other), _) => return Err(unlike(place.of_key("calls"), &other, "a list of calls")),
        (None, Some(_)) => {
            vec![call(Value::Object(std::mem::take(record)), &place.to_string())?]
        }
        (None, None) => return Err(LabelError::NoCalls { place }),
    };
    let calls = Some(calls).filter(|calls: &Vec<Call>| error.is_none() || !calls.is_empty());
    let probability = record.get("probability").and_then(Value::as_f64);
    let no_call = record.get("no_call").and_then(Value::as_f64);
    Ok(Prediction { calls, error, probability, no_call })
}

fn call(value: Value, place: &str) -> Result<Call, LabelError> {
    let Value::Object(mut object) = value else {
        return Err(unlike(place.to_owned(), &value, "a call {\"name\", \"arguments\"}"));
    };
    let name = object.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = object.shift_remove("arguments").or_else(|| object.shift_remove("parameters"));
    let parameters = match arguments {
        // As `OpenAI` has them.
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other.unwrap_or_else(|| Map::new().into()),
    };
    Ok(Call { name, parameters })
}
