//! A call and the label of one of the exercise's prompts in; function, parameters and result, right or not, out.
//!
//! The result is what the exercise's own functions give for the call. Three of its five functions give the same
//! for different parameters; they are run here. This is the only place of the program that knows them, and it
//! knows them to grade: no prompt and no choice of a model comes near it.
//!
//! **Invariant:** a declared `number` is written with a fraction or an exponent, an `integer` without, or the call
//! is wrong.

use fancy_regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::berkeley::called;
use super::equality::{is_identical, kind};
use super::{Call, Miss, Reason, Scoring};
use crate::definitions::FunctionDef;

/// The right call of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// The function.
    pub name: String,
    /// Right parameters; the first give the right result.
    pub parameters: Vec<Value>,
}

/// What is right about a call; each includes the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    /// The function, and arguments of its own names and types.
    pub function: bool,
    /// What the call gives.
    pub result: bool,
    /// The parameters.
    pub strict: bool,
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
    let strict = label.parameters.iter().any(|right| is_identical(right, &call.parameters));
    let result = || {
        let wanted = result(&label.name, label.parameters.first()?)?;
        Some(is_identical(&result(&call.name, &call.parameters)?, &wanted))
    };
    let grade = Grade { function: true, strict, result: strict || result().unwrap_or(false) };
    let is_right = if scoring == Scoring::Strict { grade.strict } else { grade.result };
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

/// What a function gives, where it gives the same for different parameters.
fn result(name: &str, parameters: &Value) -> Option<Value> {
    let text = |name| parameters.get(name)?.as_str();
    match (name, parameters.as_object()?.len()) {
        ("fn_add_numbers", 2) => sum(parameters.get("a")?, parameters.get("b")?),
        ("fn_get_square_root", 1) => {
            let root = double(parameters.get("a")?)?.sqrt();
            Number::from_f64(root).map(Value::Number)
        }
        ("fn_substitute_string_with_regex", 3) => {
            substitute(text("regex")?, text("replacement")?, text("source_string")?)
                .map(Value::from)
        }
        _ => None,
    }
}

fn double(value: &Value) -> Option<f64> {
    value.as_number()?.as_str().parse().ok()
}

fn sum(a: &Value, b: &Value) -> Option<Value> {
    let sum = if kind(a) == "integer" && kind(b) == "integer" {
        let integer = |value: &Value| value.as_number()?.as_str().parse::<i128>().ok();
        Number::from_i128(integer(a)?.checked_add(integer(b)?)?)
    } else {
        Number::from_f64(double(a)? + double(b)?)
    };
    sum.map(Value::Number)
}

/// Python's `re.sub`; `None` where Python would raise, or this engine gives up.
fn substitute(pattern: &str, replacement: &str, source: &str) -> Option<String> {
    let regex = Regex::new(&from_python(pattern)?).ok()?;
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while at <= source.len() {
        let Some(captures) = regex.captures_from_pos(source, at).ok()? else { break };
        let found = captures.get(0)?;
        out.push_str(&source[copied..found.start()]);
        out.push_str(&expand(replacement, &captures, &regex)?);
        copied = found.end();
        // An empty match may touch the match before it, and is not found again.
        let next = source[copied..].chars().next().map_or(1, char::len_utf8);
        at = if found.start() == found.end() { copied + next } else { copied };
    }
    out.push_str(&source[copied..]);
    Some(out)
}

/// A pattern of Python's in this engine's spelling; `None` where Python refuses it.
fn from_python(pattern: &str) -> Option<String> {
    let (mut out, mut in_class) = (String::new(), false);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next()? {
                'Z' if !in_class => out.push_str(r"\z"),
                'b' if in_class => out.push_str(r"\x08"),
                letter
                    if letter.is_ascii_alphabetic() && !"AbBdDsSwWafnrtvxuU".contains(letter) =>
                {
                    return None;
                }
                other => out.extend(['\\', other]),
            },
            // What would be set operations is plain text to Python.
            '[' | '&' | '~' if in_class => out.extend(['\\', c]),
            '[' => {
                in_class = true;
                out.push('[');
                out.extend(rest.next_if_eq(&'^'));
                out.extend(rest.next_if_eq(&']').map(|_| r"\]"));
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            // Also before a line end that ends the text.
            '$' if !in_class => out.push_str(r"(?:$|(?=\n\z))"),
            _ => out.push(c),
        }
    }
    Some(out)
}

/// A replacement with its references to groups and its escapes resolved, as Python does.
fn expand(template: &str, captures: &Captures<'_, str>, regex: &Regex) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let escaped = after.chars().next()?;
        rest = &after[escaped.len_utf8()..];
        let group = match escaped {
            '1'..='9' => {
                let n = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
                rest = &after[n..];
                after[..n].parse().ok()?
            }
            'g' => {
                let (name, after) = rest.strip_prefix('<')?.split_once('>')?;
                rest = after;
                let named = || regex.capture_names().position(|known| known == Some(name));
                name.parse().ok().or_else(named)?
            }
            other => {
                match other {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    '\\' => out.push('\\'),
                    // The others are control characters, or errors.
                    _ if other.is_ascii_alphanumeric() => return None,
                    _ => out.extend(['\\', other]),
                }
                continue;
            }
        };
        if group >= captures.len() {
            return None;
        }
        out.push_str(captures.get(group).map_or("", |found| found.as_str()));
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn texts_are_substituted_as_python_does() {
        for (pattern, replacement, source, expected) in [
            (r"\d+", "N", "1 and 22", Some("N and N")),
            ("x*", "-", "abxd", Some("-a-b--d-")),
            ("", "-", "é", Some("-é-")),
            (r"(\w)(?P<two>\w)", r"\2\g<1>\g<two>\\", "abc", Some(r"bab\c")),
            (r"(a)|b", r"[\1]", "ab", Some("[a][]")),
            (r"(\w)\1", "", "aab", Some("b")),
            (r"b$", "$1", "b\n", Some("$1\n")),
            (r"b\Z", "", "b\n", Some("b\n")),
            ("[]a[&&]", "_", "]&x[", Some("__x_")),
            ("(?<=a)b(?!c)", "_", "abab", Some("a_a_")),
            (r"\p{L}", "_", "a", None),
            ("(", "_", "a", None),
            ("a", r"\2", "a", None),
            ("a", r"\q", "a", None),
        ] {
            let found = substitute(pattern, replacement, source);
            assert_eq!(found.as_deref(), expected, "{pattern} {replacement} {source}");
        }
    }

    #[track_caller]
    fn check(call: &str, expected: &str) {
        let functions = crate::definitions::parse(
            br#"[{"name": "fn_add_numbers", "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}}]"#,
        );
        let right = serde_json::json!({"a": 2.0, "b": 3.0});
        let label = Label { name: "fn_add_numbers".to_owned(), parameters: vec![right] };
        let call: Call = serde_json::from_str(call).unwrap();
        let (grade, verdict) =
            super::grade(&label, Some(&[call]), &functions.unwrap(), Scoring::Lenient);
        let reason = verdict.err().map_or("right", |miss| miss.reason.name());
        let Grade { function, result, strict } = grade;
        let found = [function, result, strict].map(|is| if is { '+' } else { '-' });
        assert_eq!(format!("{} {reason}", String::from_iter(found)), expected);
    }

    #[test]
    fn a_call_is_graded_by_function_result_and_parameters() {
        let call = |parameters: &str| {
            format!(r#"{{"name": "fn_add_numbers", "parameters": {parameters}}}"#)
        };
        check(&call(r#"{"b": 3.0, "a": 2e0}"#), "+++ right");
        check(&call(r#"{"a": 1.0, "b": 4.0}"#), "++- right");
        check(&call(r#"{"a": 1.0, "b": 3.0}"#), "+-- wrong_value");
        check(&call(r#"{"a": 2, "b": 3.0}"#), "--- wrong_type");
        check(&call(r#"{"a": 2.0}"#), "--- missing_required");
        check(&call(r#"{"a": 2.0, "b": 3.0, "c": 0.0}"#), "--- unexpected_argument");
        check(&call("[]"), "--- bad_arguments");
        check(r#"{"name": "other", "parameters": {}}"#, "--- wrong_function");
    }
}
