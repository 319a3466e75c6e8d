//! A request and the arguments of a call in; where their values stand in the request, and whether they do, out.
//!
//! Nothing here chooses a value. It tells what the model copied from what it made up, for the report, for optional
//! arguments that nobody asked for, and for the end of a list of calls.

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;

use crate::definitions::child;

/// A string or a number among a call's arguments, and where the request has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grounding {
    /// Its place in the arguments, a JSON pointer.
    pub pointer: String,
    /// The first characters of the request that are it, counted in code points from 0, the end excluded.
    pub in_prompt: Option<Range<usize>>,
}

/// Where the strings and numbers of a call's arguments stand in the request.
#[must_use]
pub fn grounding(prompt: &str, parameters: &Value) -> Vec<Grounding> {
    let mut found = Vec::new();
    ground(prompt, parameters, "", &mut found);
    found
}

fn ground(prompt: &str, value: &Value, pointer: &str, found: &mut Vec<Grounding>) {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Number(number) => number.as_str(),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                ground(prompt, item, &child(pointer, &index.to_string()), found);
            }
            return;
        }
        Value::Object(members) => {
            for (key, member) in members {
                ground(prompt, member, &child(pointer, key), found);
            }
            return;
        }
        Value::Null | Value::Bool(_) => return,
    };
    let is_number = value.is_number();
    // What is output for a whole number ends in `.0`, as few people write it.
    let whole = text.strip_suffix(".0").filter(|_| is_number);
    let in_prompt =
        [Some(text), whole].into_iter().flatten().find_map(|text| find(prompt, text, is_number));
    found.push(Grounding { pointer: pointer.to_owned(), in_prompt });
}

/// The first place of a text in the request, in characters.
fn find(prompt: &str, text: &str, is_number: bool) -> Option<Range<usize>> {
    let stands = |at: &usize| {
        let (before, after) = (&prompt[..*at], &prompt[at + text.len()..]);
        // Of `12.5` neither `12` nor `5` is a number of its own.
        let fraction = |rest: &str| {
            let mut rest = rest.chars();
            rest.next() == Some('.') && rest.next().is_some_and(|c| c.is_ascii_digit())
        };
        !is_number
            || !(before.ends_with(|c: char| c.is_ascii_digit() || c == '.')
                || after.starts_with(|c: char| c.is_ascii_digit())
                || fraction(after))
    };
    let mut places = prompt.match_indices(text).map(|(at, _)| at);
    let start = places.find(stands).filter(|_| !text.is_empty())?;
    let n_before = prompt[..start].chars().count();
    Some(n_before..n_before + text.chars().count())
}

/// Whether a string or a number stands in the request, in whatever case and with whatever blanks and marks; `None` of
/// other values.
#[must_use]
pub fn stands_in(request: &str, value: &Value) -> Option<bool> {
    match value {
        Value::String(text) => {
            let text = letters(text);
            Some(!text.is_empty() && letters(request).contains(&text))
        }
        Value::Number(_) => {
            let found =
                |request: &str| grounding(request, value).iter().any(|one| one.in_prompt.is_some());
            Some(found(request) || found(&without_separators(request)))
        }
        _ => None,
    }
}

/// Whether a call has a string or a number of the request that no earlier call has.
#[must_use]
pub fn adds(request: &str, earlier: &[Value], call: &Value) -> bool {
    let mut had = Vec::new();
    for call in earlier {
        each_scalar(&call["arguments"], &mut |value| had.push(value));
    }
    let mut adds = earlier.iter().all(|earlier| earlier["name"] != call["name"]);
    each_scalar(&call["arguments"], &mut |value| {
        adds |= !had.contains(&value) && stands_in(request, value) == Some(true);
    });
    adds
}

fn each_scalar<'v>(value: &'v Value, on_scalar: &mut dyn FnMut(&'v Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_scalar(item, on_scalar)),
        Value::Object(members) => members.values().for_each(|item| each_scalar(item, on_scalar)),
        scalar => on_scalar(scalar),
    }
}

fn letters(text: &str) -> String {
    let is_kept = |c: &char| !c.is_whitespace() && !"-_,.".contains(*c);
    text.chars().filter(is_kept).flat_map(char::to_lowercase).collect()
}

/// `1,000,000` as `1000000`.
fn without_separators(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_digit =
        |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_digit);
    let is_kept = |at: &usize| {
        chars[*at] != ',' || !is_digit(at.checked_sub(1)) || !is_digit(at.checked_add(1))
    };
    (0..chars.len()).filter(is_kept).map(|at| chars[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_found_in_the_request() {
        let prompt = "Añade 12.5 y 5 al texto «x/y», no 125 o 7.0";
        let parameters = json!({"a": 12.5, "b": 5.0, "c": 25, "whole": 7.0, "d": ["x/y", "z"], "a/b": {"e": true, "f": "125"}});
        let found: Vec<_> = grounding(prompt, &parameters)
            .into_iter()
            .map(|one| (one.pointer, one.in_prompt))
            .collect();
        let expected = [
            ("/a", Some(6..10)),
            ("/b", Some(13..14)),
            ("/c", None),
            ("/whole", Some(40..43)),
            ("/d/0", Some(25..28)),
            ("/d/1", None),
            ("/a~1b/f", Some(34..37)),
        ];
        assert_eq!(found, expected.map(|(pointer, range)| (pointer.to_owned(), range)));
    }

    #[test]
    fn a_value_stands_in_the_request_however_it_is_spelled() {
        let request = "Fly from New York to Rio on a 3-star ticket for 1,250,000 pesos, WAV please";
        for (value, expected) in [
            (json!("new-york"), Some(true)),
            (json!("wav"), Some(true)),
            (json!("3"), Some(true)),
            (json!(1_250_000.0), Some(true)),
            (json!(251), Some(false)),
            (json!("Economy"), Some(false)),
            (json!(""), Some(false)),
            (json!(true), None),
            (json!(["Rio"]), None),
        ] {
            assert_eq!(stands_in(request, &value), expected, "{value}");
        }
    }

    #[test]
    fn a_call_adds_what_the_request_has_and_no_other_call() {
        let call =
            |name: &str, a: Value| json!({"name": name, "arguments": {"a": a, "b": "made up"}});
        let earlier = [call("f", json!(5))];
        let request = "5 and 7";
        for (one, expected) in [
            (call("f", json!([7])), true),
            (call("f", json!(5)), false),
            (call("f", json!(9)), false),
            (call("g", json!(5)), true),
        ] {
            assert_eq!(adds(request, &earlier, &one), expected, "{one}");
        }
        assert!(adds("", &[], &earlier[0]), "the first call");
    }
}
