//! A call and the label of one of the exercise's prompts in; function and parameters, right or not, out.
//!
//! **Invariant:** a declared `number` is written with a fraction or an exponent, an `integer` without, or the call
//! is wrong.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::berkeley::called;
use super::equality::{is_equal, is_identical, kind};
use super::{Call, Miss, Reason, Scoring};
use crate::definitions::FunctionDef;

/// The right call of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// The function.
    pub name: String,
    /// Right parameters.
    pub parameters: Vec<Value>,
}

/// What is right about a call; each includes the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    /// The function, and arguments of its own names and types.
    pub function: bool,
    /// The parameters.
    pub parameters: bool,
}

pub(super) fn grade(
    label: &Label,
    calls: Option<&[Call]>,
    functions: &[FunctionDef],
    scoring: Scoring,
) -> (Grade, Result<(), Miss>) {
    let call = match function(label, calls, functions) {
        Ok(call) => call,
        Err(miss) => return (Grade::default(), Err(miss)),
    };
    let is_same = if scoring == Scoring::Strict { is_identical } else { is_equal };
    let is_right = label.parameters.iter().any(|right| is_same(right, &call.parameters));
    let grade = Grade { function: true, parameters: is_right };
    let detail = || {
        let wanted = label.parameters.first().map_or(String::new(), Value::to_string);
        format!("{}, expected {wanted}", call.parameters)
    };
    (grade, if is_right { Ok(()) } else { Miss::because(Reason::WrongValue, detail()) })
}

/// The one call, if it is of the right function and has its parameters.
fn function<'a>(
    label: &Label,
    calls: Option<&'a [Call]>,
    functions: &[FunctionDef],
) -> Result<&'a Call, Miss> {
    let call = match calls {
        None => return Miss::because(Reason::NoPrediction, ""),
        Some([]) => return Miss::because(Reason::NoCall, format!("expected {:?}", label.name)),
        Some([call]) => call,
        Some(calls) => {
            let detail = format!("made {}, expected 1", calls.len());
            return Miss::because(Reason::WrongCount, detail);
        }
    };
    let (definition, arguments) = called(call, &label.name, functions)?;
    let properties = definition.parameters.get("properties").and_then(Value::as_object);
    let declared = || properties.into_iter().flatten();
    if let Some((missing, _)) = declared().find(|(name, _)| !arguments.contains_key(*name)) {
        return Miss::because(Reason::MissingRequired, missing);
    }
    for (name, value) in arguments {
        let Some((_, schema)) = declared().find(|(other, _)| *other == name) else {
            return Miss::because(Reason::UnexpectedArgument, name);
        };
        let (found, wanted) = (kind(value), schema.get("type").and_then(Value::as_str));
        let is_checked = matches!(wanted, Some("number" | "integer" | "string" | "boolean"));
        if is_checked && wanted != Some(found) {
            let detail = format!(
                "{name}: {value} is of type {found}, declared {}",
                wanted.unwrap_or_default()
            );
            return Miss::because(Reason::WrongType, detail);
        }
    }
    Ok(call)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[track_caller]
    fn check(call: &str, expected: &str) {
        let functions = crate::definitions::parse(
            br#"[{"name": "add", "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}}]"#,
        );
        let right = serde_json::json!({"a": 2.0, "b": 3.0});
        let label = Label { name: "add".to_owned(), parameters: vec![right] };
        let call: Call = serde_json::from_str(call).unwrap();
        let (grade, verdict) =
            super::grade(&label, Some(&[call]), &functions.unwrap(), Scoring::Lenient);
        let reason = verdict.err().map_or("right", |miss| miss.reason.name());
        let found = [grade.function, grade.parameters].map(|is| if is { '+' } else { '-' });
        assert_eq!(format!("{} {reason}", String::from_iter(found)), expected);
    }

    #[test]
    fn a_call_is_graded_by_function_and_parameters() {
        let call = |parameters: &str| format!(r#"{{"name": "add", "parameters": {parameters}}}"#);
        check(&call(r#"{"b": 3.0, "a": 2e0}"#), "++ right");
        check(&call(r#"{"a": 1.0, "b": 3.0}"#), "+- wrong_value");
        check(&call(r#"{"a": 2, "b": 3.0}"#), "-- wrong_type");
        check(&call(r#"{"a": 2.0}"#), "-- missing_required");
        check(&call(r#"{"a": 2.0, "b": 3.0, "c": 0.0}"#), "-- unexpected_argument");
        check(&call("[]"), "-- bad_arguments");
        check(r#"{"name": "other", "parameters": {}}"#, "-- wrong_function");
    }
}
