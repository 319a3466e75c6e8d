//! Python's methods and filters on strings that may carry marks.
//!
//! Questions (`startswith`, `find`, `isdigit`, …) are asked of the text without marks; what cuts a
//! text (`strip`, `split`, …) keeps the marks around what remains. Everything else goes to
//! minijinja's own Python methods as it is.

use std::ops::Range;

use minijinja::{
    Error, ErrorKind, State, Value,
    value::{Kwargs, ValueKind, from_args},
};
use minijinja_contrib::pycompat::unknown_method_callback as pycompat;

use super::marks::{Marks, Traced};

/// Methods whose answer is about the text, not a part of it.
const QUESTIONS: &[&str] = &[
    "count",
    "endswith",
    "find",
    "isalnum",
    "isalpha",
    "isascii",
    "isdigit",
    "islower",
    "isnumeric",
    "isspace",
    "isupper",
    "rfind",
    "startswith",
];

/// The method of a value that minijinja does not know.
pub(crate) fn call(
    marks: Marks,
    state: &mut State,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return match (value.kind(), name) {
            (ValueKind::Map, "copy") => Ok(value.clone()),
            _ => pycompat(state, value, name, args),
        };
    };
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<String>,) = from_args(args)?;
            strip(marks, text, chars.as_deref(), name != "rstrip", name != "lstrip")
        }
        "split" | "rsplit" | "splitlines" => {
            let traced = read(marks, text)?;
            let args: Vec<Value> = args.iter().map(|arg| unmarked(marks, arg)).collect();
            let parts = match name {
                "split" => split(&traced.text, &args)?,
                "rsplit" => rsplit(&traced.text, &args)?,
                _ => split_lines(&traced.text, &args)?,
            };
            Ok(parts.into_iter().map(|part| Value::from(marks.write(&traced, part))).collect())
        }
        "removeprefix" | "removesuffix" => {
            let (affix,): (String,) = from_args(args)?;
            let (affix, traced) = (marks.strip(&affix), read(marks, text)?);
            let part = if name == "removeprefix" {
                traced.text.len() - traced.text.strip_prefix(&affix).unwrap_or(&traced.text).len()
                    ..traced.text.len()
            } else {
                0..traced.text.strip_suffix(&affix).unwrap_or(&traced.text).len()
            };
            Ok(Value::from(marks.write(&traced, part)))
        }
        _ if QUESTIONS.contains(&name) => {
            let args: Vec<Value> = args.iter().map(|arg| unmarked(marks, arg)).collect();
            pycompat(state, &unmarked(marks, value), name, &args)
        }
        _ => pycompat(state, value, name, args),
    }
}

/// The filter `trim`.
pub(crate) fn trim(marks: Marks, value: &Value, chars: Option<&str>) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => strip(marks, text, chars, true, true),
        None => strip(marks, &value.to_string(), chars, true, true),
    }
}

/// The filters `length` and `count`.
pub(crate) fn length(marks: Marks, value: &Value) -> Result<usize, Error> {
    match value.as_str() {
        Some(text) => Ok(marks.strip(text).chars().count()),
        None => value.len().or(value.is_undefined().then_some(0)).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidOperation,
                format!("a value of type {} has no length", value.kind()),
            )
        }),
    }
}

/// The filter `dictsort`, which must not sort by marks.
pub(crate) fn dictsort(marks: Marks, value: &Value, kwargs: &Kwargs) -> Result<Value, Error> {
    let by_value = kwargs.get::<Option<String>>("by")?.as_deref() == Some("value");
    let reverse = kwargs.get::<Option<bool>>("reverse")?.unwrap_or(false);
    let case_sensitive = kwargs.get::<Option<bool>>("case_sensitive")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let mut pairs = Vec::new();
    for key in value.try_iter()? {
        let item = value.get_item(&key)?;
        let by = unmarked(marks, if by_value { &item } else { &key });
        let by = match by.as_str() {
            Some(text) if !case_sensitive => Value::from(text.to_lowercase()),
            _ => by,
        };
        pairs.push((by, Value::from(vec![key, item])));
    }
    pairs.sort_by(|(a, _), (b, _)| if reverse { b.cmp(a) } else { a.cmp(b) });
    Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
}

/// The value, or its text without marks; so are the items of a tuple, as in `startswith(("a",
/// "b"))`.
fn unmarked(marks: Marks, value: &Value) -> Value {
    match (value.as_str(), value.kind()) {
        (Some(text), _) if marks.occur_in(text) => Value::from(marks.strip(text)),
        (None, ValueKind::Seq) => match value.try_iter() {
            Ok(items) => items.map(|item| unmarked(marks, &item)).collect(),
            Err(_) => value.clone(),
        },
        _ => value.clone(),
    }
}

fn read(marks: Marks, text: &str) -> Result<Traced, Error> {
    marks.read(text).map_err(|_| {
        Error::new(ErrorKind::InvalidOperation, "the template cuts a text in the middle")
    })
}

fn strip(
    marks: Marks,
    text: &str,
    chars: Option<&str>,
    left: bool,
    right: bool,
) -> Result<Value, Error> {
    let traced = read(marks, text)?;
    let chars = chars.map(|chars| marks.strip(chars));
    let out = |c: char| chars.as_deref().map_or_else(|| is_space(c), |chars| chars.contains(c));
    let full = traced.text.as_str();
    let start = if left { full.len() - full.trim_start_matches(out).len() } else { 0 };
    let end = if right { start + full[start..].trim_end_matches(out).len() } else { full.len() };
    Ok(Value::from(marks.write(&traced, start..end)))
}

/// Python's white space is Unicode's and the four separators U+001C to U+001F.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&c)
}

/// Arguments `(sep=None, maxsplit=-1)`, by place or by name.
fn split_arguments(args: &[Value]) -> Result<(Option<String>, usize), Error> {
    let (sep, most, kwargs): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
    let sep = match sep {
        Some(sep) => Some(sep),
        None => kwargs.get::<Option<Value>>("sep")?,
    };
    let most = match most {
        Some(most) => Some(most),
        None => kwargs.get::<Option<i64>>("maxsplit")?,
    };
    kwargs.assert_all_used()?;
    let sep = sep.filter(|sep| !sep.is_none()).map(|sep| sep.to_string());
    if sep.as_deref() == Some("") {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    Ok((sep, usize::try_from(most.unwrap_or(-1)).unwrap_or(usize::MAX)))
}

fn split(text: &str, args: &[Value]) -> Result<Vec<Range<usize>>, Error> {
    let (sep, most) = split_arguments(args)?;
    let Some(sep) = sep else {
        return Ok(words(text, most));
    };
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(&sep).take(most) {
        parts.push(start..at);
        start = at + sep.len();
    }
    parts.push(start..text.len());
    Ok(parts)
}

fn rsplit(text: &str, args: &[Value]) -> Result<Vec<Range<usize>>, Error> {
    let (sep, most) = split_arguments(args)?;
    let Some(sep) = sep else {
        return if most == usize::MAX {
            Ok(words(text, most))
        } else {
            Err(Error::new(ErrorKind::InvalidOperation, "rsplit with a maximum needs a separator"))
        };
    };
    let mut parts = Vec::new();
    let mut end = text.len();
    for (at, _) in text.rmatch_indices(&sep).take(most) {
        parts.push(at + sep.len()..end);
        end = at;
    }
    parts.push(0..end);
    parts.reverse();
    Ok(parts)
}

/// Runs without white space; after `most` splits the rest is one part, its trailing white space
/// included.
fn words(text: &str, most: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = text.len() - text.trim_start_matches(is_space).len();
    while at < text.len() {
        let end = match text[at..].find(is_space) {
            Some(length) if parts.len() < most => at + length,
            _ => text.len(),
        };
        parts.push(at..end);
        at = text.len() - text[end..].trim_start_matches(is_space).len();
    }
    parts
}

fn split_lines(text: &str, args: &[Value]) -> Result<Vec<Range<usize>>, Error> {
    let (keep, kwargs): (Option<bool>, Kwargs) = from_args(args)?;
    let keep = match keep {
        Some(keep) => keep,
        None => kwargs.get::<Option<bool>>("keepends")?.unwrap_or(false),
    };
    kwargs.assert_all_used()?;
    let ends = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}'
                ..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some((length, end)) = text[start..].match_indices(ends).next() {
        let at = start + length;
        let end = if text[at..].starts_with("\r\n") { 2 } else { end.len() };
        parts.push(start..if keep { at + end } else { at });
        start = at + end;
    }
    if start < text.len() {
        parts.push(start..text.len());
    }
    Ok(parts)
}
