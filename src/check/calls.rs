//! A file of calls to its texts, each with its place: one call, a list, or one a line.
//!
//! A call is `{"name", "arguments"}`, or a record of our own output, `{"prompt", "name",
//! "parameters"}`, whose `prompt`, `id` and `error` say nothing of the call; one of `--calls many`,
//! `{"prompt", "calls"}`, is as many texts as it has calls. Where the function is
//! known, its arguments alone are a call too.

use serde_json::value::RawValue;

use super::document::{Document, DocumentError, Members};
use crate::input::Place;

/// Keys of a record that are no part of the call.
const OTHER_KEYS: [&str; 3] = ["prompt", "id", "error"];

/// The texts of a file, as they stand there.
///
/// What is one JSON value as a whole is a list of calls or a call; else each line is one, if the
/// first is JSON.
#[must_use]
pub fn texts(file: &str) -> Vec<(Place, &str)> {
    let records = records(file).into_iter();
    records
        .flat_map(|(place, text)| several(text).into_iter().map(move |one| (place, one)))
        .collect()
}

/// The calls of a record that may have several; else the text itself.
fn several(text: &str) -> Vec<&str> {
    let calls = || {
        let Members(members) = serde_json::from_str(text).ok()?;
        let (_, calls) = members.iter().find(|(key, _)| key.get() == "\"calls\"")?;
        let is_other = |key: &RawValue| {
            let key: String = serde_json::from_str(key.get()).unwrap_or_default();
            key != "calls" && !OTHER_KEYS.contains(&key.as_str())
        };
        if members.iter().any(|(key, _)| is_other(key)) {
            return None;
        }
        let calls: Vec<&RawValue> = serde_json::from_str(calls.get()).ok()?;
        Some(calls.into_iter().map(RawValue::get).collect())
    };
    calls().unwrap_or_else(|| vec![text])
}

fn records(file: &str) -> Vec<(Place, &str)> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let whole: Result<&RawValue, _> = serde_json::from_str(file);
    if let Ok(whole) = whole {
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(whole.get()) {
            let items = items.into_iter().enumerate();
            return items.map(|(index, item)| (Place::Element(index), item.get())).collect();
        }
        return vec![(Place::Whole, whole.get())];
    }
    let lines = file.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let lines: Vec<_> = lines.map(|(index, line)| (Place::Line(index + 1), line)).collect();
    match lines.first() {
        Some((_, first)) if serde_json::from_str::<&RawValue>(first).is_ok() => lines,
        _ => vec![(Place::Whole, file)],
    }
}

/// Reads one text; `function` is the one whose arguments may stand alone.
///
/// # Errors
///
/// [`DocumentError`].
pub fn call(text: &str, function: Option<&str>) -> Result<Document, DocumentError> {
    if let Some((name, arguments, label)) = parts(text) {
        let is_other =
            |function| serde_json::from_str::<String>(name).ok().as_deref() != Some(function);
        if !function.is_some_and(is_other) {
            return Document::call(name, arguments, ["name", label]);
        }
    }
    match function {
        Some(function) => {
            let name = serde_json::Value::from(function).to_string();
            Document::arguments(&name, text)
        }
        None => Document::parse(text),
    }
}

/// Name, arguments and the key of these, where the text has both once and nothing else that counts.
fn parts(text: &str) -> Option<(&str, &str, &'static str)> {
    let Members(members) = serde_json::from_str(text).ok()?;
    let (mut name, mut arguments) = (None, None);
    for (key, value) in members {
        let key: String = serde_json::from_str(key.get()).ok()?;
        let label = match key.as_str() {
            "name" if name.is_none() => {
                name = Some(value.get());
                continue;
            }
            "arguments" => "arguments",
            "parameters" => "parameters",
            other if OTHER_KEYS.contains(&other) => continue,
            _ => return None,
        };
        if arguments.replace((value.get(), label)).is_some() {
            return None;
        }
    }
    let (arguments, label) = arguments?;
    Some((name?, arguments, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, expected: &[(Place, &str)]) {
        assert_eq!(texts(file), expected);
    }

    #[test]
    fn a_file_is_a_call_a_list_or_lines() {
        check("{\"a\": 1}\n", &[(Place::Whole, "{\"a\": 1}")]);
        check("\u{feff} [1,\n{}]", &[(Place::Element(0), "1"), (Place::Element(1), "{}")]);
        check("[]", &[]);
        check("{}\r\n\n{,\n", &[(Place::Line(1), "{}"), (Place::Line(3), "{,")]);
        check("{\n\"a\": }\n", &[(Place::Whole, "{\n\"a\": }\n")]);
        check("", &[(Place::Whole, "")]);
        check(
            r#"[{"prompt": "p", "calls": [{"a": 1}, 2]}, {"prompt": "q", "calls": []}, {"calls": 1}]"#,
            &[
                (Place::Element(0), r#"{"a": 1}"#),
                (Place::Element(0), "2"),
                (Place::Element(2), r#"{"calls": 1}"#),
            ],
        );
    }

    #[test]
    fn a_call_has_a_name_and_arguments() {
        for (text, expected) in [
            (r#"{"name": "f", "arguments": {}}"#, Some(("\"f\"", "{}", "arguments"))),
            (
                r#"{"prompt": "", "name": null, "parameters": {}}"#,
                Some(("null", "{}", "parameters")),
            ),
            (r#"{"name": "f"}"#, None),
            (r#"{"name": "f", "name": "f", "arguments": {}}"#, None),
            (r#"{"name": "f", "arguments": {}, "parameters": {}}"#, None),
            (r#"{"name": "f", "arguments": {}, "x": 1}"#, None),
            ("[]", None),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
        assert!(call(r#"{"a": 1}"#, Some("f")).is_ok());
        assert!(matches!(call("{", None), Err(DocumentError::Syntax(_))));
    }
}
