//! Prompts: JSON or JSON lines in, `Request`s out.
//!
//! Read liberally: a list of records, a list of strings, a single record, or one record or string
//! a line; a byte-order mark and CRLF are fine. A record may carry functions of its own and an id.
//!
//! **Invariant:** no I/O here; the file's path is added by the caller.
//! **Invariant:** a prompt is kept byte for byte; nothing is trimmed or normalized.
//! **Invariant:** every error names its place: line and column for syntax, else the record.

use serde_json::{Map, Value};

use crate::definitions::{self, DefinitionError, FunctionDef};

/// One prompt and what came with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The request in natural language, as it was given; may be empty.
    pub prompt: String,
    /// The record's own id, a JSON scalar, handed through to JSON-lines output.
    pub id: Option<Value>,
    /// The record's own functions, in place of the run's.
    pub functions: Option<Vec<FunctionDef>>,
}

/// Why the prompts cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Bytes that are no UTF-8.
    #[error("not UTF-8 at byte {offset}; save the file as UTF-8")]
    NotUtf8 {
        /// Bytes before the first bad one.
        offset: usize,
    },
    /// Nothing, or white space alone.
    #[error("empty; an empty list of prompts is written []")]
    Empty,
    /// No JSON, or nested too deeply.
    #[error("line {line}, column {column}: {reason}")]
    Syntax {
        /// 1-based.
        line: usize,
        /// 1-based, in characters.
        column: usize,
        /// What the parser expected.
        reason: String,
    },
    /// Neither an object nor a string stands where a record should.
    #[error("{place}: {found} is no prompt; give an object with \"prompt\", or a string")]
    NotARecord {
        /// Which record.
        place: Place,
        /// The JSON type that stands there.
        found: &'static str,
    },
    /// An object without `prompt`.
    #[error("{place}: no \"prompt\"; give each record one, or remove the record")]
    NoPrompt {
        /// Which record.
        place: Place,
    },
    /// `prompt` is there and no string.
    #[error("{place}: \"prompt\" is {found}, not a string")]
    PromptNotAString {
        /// Which record.
        place: Place,
        /// The JSON type that stands there.
        found: &'static str,
    },
    /// An id that is an array or an object.
    #[error("{place}: \"id\" is {found}; give a string, a number, true, false or null")]
    IdNotAScalar {
        /// Which record.
        place: Place,
        /// The JSON type that stands there.
        found: &'static str,
    },
    /// A record's own functions cannot be read; the source names the place.
    #[error(transparent)]
    Functions(#[from] DefinitionError),
}

/// Where a record stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file is the record.
    Whole,
    /// An element of the list, counted from 0 as JSON pointers do.
    Element(usize),
    /// A line of JSON lines, counted from 1.
    Line(usize),
}

impl Place {
    /// The place of a key of this record, as [`FunctionDef::place`] has it.
    pub(crate) fn of_key(self, key: &str) -> String {
        match self {
            Self::Whole => format!("/{key}"),
            Self::Element(index) => format!("/{index}/{key}"),
            Self::Line(line) => format!("line {line}, /{key}"),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole => f.write_str("the record"),
            Self::Element(index) => write!(f, "/{index} (record {})", index + 1),
            Self::Line(line) => write!(f, "line {line}"),
        }
    }
}

/// Reads a whole file of prompts.
///
/// ```
/// let requests = call_me_maybe::input::parse(br#"[{"prompt": "Add 20 and 22", "id": 7}]"#)?;
/// assert_eq!(requests[0].prompt, "Add 20 and 22");
/// # Ok::<(), call_me_maybe::input::InputError>(())
/// ```
///
/// # Errors
/// [`InputError`], at the first record that is no JSON, else the first that is no prompt.
pub fn parse(bytes: &[u8]) -> Result<Vec<Request>, InputError> {
    records(bytes)?.into_iter().map(|(place, record)| request(record, place)).collect()
}

/// The records of a file, whatever they are, each with its place.
///
/// # Errors
/// [`InputError`] of the bytes and of the syntax.
pub(crate) fn records(bytes: &[u8]) -> Result<Vec<(Place, Value)>, InputError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| InputError::NotUtf8 { offset: error.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Err(InputError::Empty);
    }
    match serde_json::from_str(text) {
        Ok(Value::Array(records)) => {
            let records = records.into_iter().enumerate();
            Ok(records.map(|(index, record)| (Place::Element(index), record)).collect())
        }
        Ok(record) => Ok(vec![(Place::Whole, record)]),
        Err(_) if is_lines(text) => lines(text),
        Err(error) => Err(syntax(text, 1, &error)),
    }
}

/// Whether a text that is no single JSON value is meant as JSON lines: its first line is a value
/// of its own, and no list. Otherwise the error of the whole says more.
fn is_lines(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    !first.trim_ascii_start().starts_with('[') && serde_json::from_str::<Value>(first).is_ok()
}

fn lines(text: &str) -> Result<Vec<(Place, Value)>, InputError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(index, line)| {
            let record =
                serde_json::from_str(line).map_err(|error| syntax(line, index + 1, &error))?;
            Ok((Place::Line(index + 1), record))
        })
        .collect()
}

/// `text` begins at line `first_line` of the file.
fn syntax(text: &str, first_line: usize, error: &serde_json::Error) -> InputError {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let reason = message.strip_suffix(&position).unwrap_or(&message).to_owned();
    // serde_json counts bytes; an editor counts characters. Column 0 is the end of the line before.
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = &line.as_bytes()[..error.column().saturating_sub(1).min(line.len())];
    let column = String::from_utf8_lossy(before).chars().count() + 1;
    InputError::Syntax { line: first_line + error.line().saturating_sub(1), column, reason }
}

/// Reads one record.
///
/// # Errors
/// [`InputError`] of that record.
pub(crate) fn request(record: Value, place: Place) -> Result<Request, InputError> {
    let mut record = match record {
        Value::String(prompt) => return Ok(Request { prompt, id: None, functions: None }),
        Value::Object(record) => record,
        other => return Err(InputError::NotARecord { place, found: type_name(&other) }),
    };
    let prompt = match record.shift_remove("prompt") {
        Some(Value::String(prompt)) => prompt,
        Some(other) => {
            return Err(InputError::PromptNotAString { place, found: type_name(&other) });
        }
        None => return Err(InputError::NoPrompt { place }),
    };
    let id = match record.shift_remove("id") {
        Some(id @ (Value::Array(_) | Value::Object(_))) => {
            return Err(InputError::IdNotAScalar { place, found: type_name(&id) });
        }
        id => id,
    };
    let functions = own_functions(&mut record, place)?;
    if let Some(key) = record.keys().next() {
        tracing::debug!(%place, n_keys = record.len(), first = key, "keys ignored");
    }
    Ok(Request { prompt, id, functions })
}

/// `functions`, or `tools` where that is what the record has; null is as good as absent.
fn own_functions(
    record: &mut Map<String, Value>,
    place: Place,
) -> Result<Option<Vec<FunctionDef>>, InputError> {
    for key in ["functions", "tools"] {
        match record.shift_remove(key) {
            None | Some(Value::Null) => {}
            Some(value) => {
                return Ok(Some(definitions::from_value(&value, &place.of_key(key))?));
            }
        }
    }
    Ok(None)
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
