//! A template value -> JSON text, as Python's `json.dumps` with `ensure_ascii=False` writes it.
//!
//! **Invariant:** marks inside strings come out as they went in.

use minijinja::{Error, ErrorKind, Value, value::ValueKind};
use serde_json::Value as Json;

use super::{
    marks::Marks,
    value::{NumberText, float_text},
};

/// The options of Python's `json.dumps` that templates use.
#[derive(Debug, Clone)]
pub(crate) struct Dumps {
    /// Text of one level of indentation; all on one line without it.
    pub(crate) indent: Option<String>,
    /// Between items, without the line break that an indentation adds.
    pub(crate) item_separator: String,
    /// Between a key and its value.
    pub(crate) key_separator: String,
    /// Keys in the order of their code points.
    pub(crate) sort_keys: bool,
    /// Sorting has to look through these.
    pub(crate) marks: Marks,
}

impl Dumps {
    /// All on one line with `", "` and `": "`, as models are trained to write calls.
    pub(crate) fn plain(marks: Marks) -> Self {
        Self {
            indent: None,
            item_separator: ", ".to_owned(),
            key_separator: ": ".to_owned(),
            sort_keys: false,
            marks,
        }
    }

    /// `json.dumps(value, ensure_ascii=False, …)`.
    pub(crate) fn text(&self, value: &Value) -> Result<String, Error> {
        let mut out = String::new();
        self.write(&mut out, value, 0)?;
        Ok(out)
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number_text(value)),
            ValueKind::String => out.push_str(&quoted(value.as_str().unwrap_or_default())),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?.map(|item| (None, item)).collect();
                self.container(out, ['[', ']'], items, depth)?;
            }
            ValueKind::Map => {
                let mut entries = Vec::new();
                for key in value.try_iter()? {
                    let text = match key.kind() {
                        ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
                        _ => self.text(&key)?,
                    };
                    entries.push((Some(text), value.get_item(&key)?));
                }
                if self.sort_keys {
                    entries.sort_by_cached_key(|(key, _)| {
                        key.as_deref().map(|key| self.marks.strip(key))
                    });
                }
                self.container(out, ['{', '}'], entries, depth)?;
            }
            kind => {
                let Some(number) = value.downcast_object_ref::<NumberText>() else {
                    let reason = format!("a value of type {kind} cannot be written as JSON");
                    return Err(Error::new(ErrorKind::BadSerialization, reason));
                };
                out.push_str(number.text());
            }
        }
        Ok(())
    }

    fn container(
        &self,
        out: &mut String,
        [open, close]: [char; 2],
        items: Vec<(Option<String>, Value)>,
        depth: usize,
    ) -> Result<(), Error> {
        let line = |out: &mut String, depth: usize| {
            if let Some(indent) = &self.indent {
                out.push('\n');
                out.push_str(&indent.repeat(depth));
            }
        };
        out.push(open);
        let empty = items.is_empty();
        for (i, (key, item)) in items.into_iter().enumerate() {
            if i > 0 {
                out.push_str(&self.item_separator);
            }
            line(out, depth + 1);
            if let Some(key) = key {
                out.push_str(&quoted(&key));
                out.push_str(&self.key_separator);
            }
            self.write(out, &item, depth + 1)?;
        }
        if !empty {
            line(out, depth);
        }
        out.push(close);
        Ok(())
    }
}

fn number_text(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    match f64::try_from(value.clone()) {
        Ok(float) if float.is_nan() => "NaN".to_owned(),
        Ok(float) if float.is_infinite() => {
            if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        }
        Ok(float) => float_text(float),
        Err(_) => value.to_string(),
    }
}

/// A JSON string; the same escapes as Python's, which leaves everything above U+001F but `"` and
/// `\` alone.
fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}
