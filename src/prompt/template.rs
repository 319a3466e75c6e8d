//! A Jinja template, compiled once and rendered as Hugging Face's `apply_chat_template` renders it
//! with Python's jinja2.
//!
//! minijinja is close to jinja2 already; this file sets what Hugging Face sets (blocks trimmed,
//! `tojson`, `raise_exception`, `strftime_now`, loop controls) and puts in the functions that have
//! to look through marks.
//!
//! **Invariant:** no file is read and nothing outside the context is seen, whatever the template
//! says; only `strftime_now` depends on the time.
//! **Invariant:** a template that does not end is stopped (see [`FUEL`]).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use minijinja::{
    Environment, Error, ErrorKind, Value,
    syntax::SyntaxConfig,
    value::{Kwargs, ValueKind},
};

use super::{dumps::Dumps, marks::Marks, methods, value::float_text};

/// The only template of an environment.
const NAME: &str = "chat";

/// Steps that one rendering may take: hundreds of times what the longest real prompts need, and a
/// few seconds at most.
const FUEL: u64 = 20_000_000;

/// A compiled template, for one pair of marks.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    environment: Environment<'static>,
}

impl Template {
    /// Compiles the text of a template.
    pub(crate) fn new(source: &str, marks: Marks) -> Result<Self, Error> {
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .keep_trailing_newline(false)
                .build()?,
        );
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(move |state, value, name, args| {
            methods::call(marks, state, value, name, args)
        });
        environment.add_filter("tojson", move |value: &Value, kwargs: Kwargs| {
            to_json(marks, value, &kwargs)
        });
        environment.add_filter("trim", move |value: &Value, chars: Option<&str>| {
            methods::trim(marks, value, chars)
        });
        environment.add_filter("length", move |value: &Value| methods::length(marks, value));
        environment.add_filter("count", move |value: &Value| methods::length(marks, value));
        environment.add_filter("dictsort", move |value: &Value, kwargs: Kwargs| {
            methods::dictsort(marks, value, &kwargs)
        });
        environment.add_test("iterable", |value: &Value| {
            !value.is_none() && minijinja::tests::is_iterable(value)
        });
        environment.set_formatter(|out, state, value| match f64::try_from(value.clone()) {
            Ok(float)
                if value.kind() == ValueKind::Number
                    && !value.is_integer()
                    && float.is_finite() =>
            {
                out.write_str(&float_text(float)).map_err(Error::from)
            }
            _ => minijinja::escape_formatter(out, state, value),
        });
        environment.add_function("raise_exception", |reason: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, reason))
        });
        environment
            .add_function("strftime_now", |format: String| strftime(&format, SystemTime::now()));
        environment.add_template_owned(NAME, source_text(source))?;
        Ok(Self { environment })
    }

    /// Renders the template with these variables.
    pub(crate) fn render(&self, context: &Value) -> Result<String, Error> {
        self.environment.get_template(NAME)?.render(context)
    }
}

/// The source as jinja2 reads it: any line break is `\n`. Hugging Face's `{% generation %}` only
/// marks a part for training.
fn source_text(source: &str) -> String {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    for (tag, replacement) in [("generation", "if true"), ("endgeneration", "endif")] {
        for (open, close) in [("{%", "%}"), ("{%-", "%}"), ("{%", "-%}"), ("{%-", "-%}")] {
            text = text.replace(
                &format!("{open} {tag} {close}"),
                &format!("{open} {replacement} {close}"),
            );
        }
    }
    text
}

/// Hugging Face's `tojson`: `json.dumps` with `ensure_ascii` false, and without the HTML escapes of
/// jinja2's own.
fn to_json(marks: Marks, value: &Value, kwargs: &Kwargs) -> Result<Value, Error> {
    let indent = match kwargs.get::<Option<Value>>("indent")? {
        Some(indent) if indent.kind() == ValueKind::String => Some(indent.to_string()),
        Some(indent) if !indent.is_none() => Some(" ".repeat(usize::try_from(indent)?)),
        _ => None,
    };
    let separators = match kwargs.get::<Option<Vec<String>>>("separators")?.as_deref() {
        Some([item, key]) => Some((item.clone(), key.clone())),
        Some(_) => {
            return Err(Error::new(ErrorKind::InvalidOperation, "tojson takes two separators"));
        }
        None => None,
    };
    if kwargs.get::<Option<bool>>("ensure_ascii")? == Some(true) {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "tojson does not know ensure_ascii=true",
        ));
    }
    let sort_keys = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let (item_separator, key_separator) = separators
        .unwrap_or_else(|| (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()));
    Dumps { indent, item_separator, key_separator, sort_keys, marks }.text(value).map(Value::from)
}

/// `datetime.now().strftime(format)`, in UTC, for the directives that chat templates use.
fn strftime(format: &str, now: SystemTime) -> Result<String, Error> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] =
        ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let month_name =
        usize::try_from(month - 1).ok().and_then(|i| MONTHS.get(i)).copied().unwrap_or_default();
    let day_name =
        usize::try_from(days % 7).ok().and_then(|i| DAYS.get(i)).copied().unwrap_or_default();
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = chars.next();
        let padded = directive != Some('-');
        if !padded {
            directive = chars.next();
        }
        let two = |number: u64| if padded { format!("{number:02}") } else { number.to_string() };
        let written = match directive {
            Some('Y') => year.to_string(),
            Some('y') => two(year % 100),
            Some('m') => two(month),
            Some('d') => two(day),
            Some('e') => format!("{day:2}"),
            Some('H') => two(hour),
            Some('I') => two((hour + 11) % 12 + 1),
            Some('M') => two(minute),
            Some('S') => two(second % 60),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('B') => month_name.to_owned(),
            Some('b' | 'h') => month_name[..3].to_owned(),
            Some('A') => day_name.to_owned(),
            Some('a') => day_name[..3].to_owned(),
            Some('F') => format!("{year}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{:02}", second % 60),
            Some('%') => "%".to_owned(),
            other => {
                let reason = format!(
                    "strftime_now does not know %{}",
                    other.map_or_else(String::new, String::from)
                );
                return Err(Error::new(ErrorKind::InvalidOperation, reason));
            }
        };
        out.push_str(&written);
    }
    Ok(out)
}

/// Year, month and day of a day counted from 1970-01-01, by the proleptic Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use serde_json::Value as Json;

    use super::{super::value, *};

    /// Every string untrusted, but neither keys nor what the cases compare with.
    fn marked(key: &str, json: &Json) -> Value {
        match json {
            Json::Array(items) => items.iter().map(|item| marked(key, item)).collect(),
            Json::Object(map) => {
                value::dict(map.iter().map(|(key, json)| (key.clone(), marked(key, json))))
            }
            Json::String(text) if key == "role" || key == "required" => Value::from(text.as_str()),
            _ => value::data(json, Marks::USUAL),
        }
    }

    /// Every case of `tests/prompt/jinja.jsonl` was rendered by `tests/prompt/reference.py`, so by
    /// jinja2 itself. The variables are marked as untrusted, which must not show.
    #[test]
    fn templates_render_as_jinja2_renders_them() {
        let cases = include_str!("../../tests/prompt/jinja.jsonl")
            .lines()
            .map(|line| line.parse::<Json>().unwrap());
        let mut failures = Vec::new();
        for case in cases {
            let source = case["template"].as_str().unwrap();
            let context = case["context"].as_object().unwrap().iter();
            let context = value::dict(context.map(|(key, json)| (key.clone(), marked(key, json))));
            let rendered =
                Template::new(source, Marks::USUAL).and_then(|template| template.render(&context));
            let rendered = rendered.map(|text| Marks::USUAL.read(&text).map(|traced| traced.text));
            match (rendered, case["expected"].as_str()) {
                (Ok(Ok(text)), Some(expected)) if text == expected => {}
                (Err(_), None) => {}
                (got, expected) => {
                    failures.push(format!("{case}\n     got {got:?}\nexpected {expected:?}\n"));
                }
            }
        }
        assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.concat());
    }

    #[test]
    fn dates_are_written_as_python_does() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        for (seconds, format, expected) in [
            (0, "%Y-%m-%d %H:%M:%S %A", "1970-01-01 00:00:00 Thursday"),
            (951_782_400, "%d %b %Y (%a)", "29 Feb 2000 (Tue)"),
            (
                1_735_689_599,
                "%-d %B %y, %I:%M %p, %F %T %%",
                "31 December 24, 11:59 PM, 2024-12-31 23:59:59 %",
            ),
        ] {
            assert_eq!(strftime(format, at(seconds)).unwrap(), expected);
        }
        assert!(strftime("%Q", at(0)).is_err());
    }

    #[test]
    fn a_template_that_does_not_end_is_stopped() {
        let source =
            "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}";
        let template = Template::new(source, Marks::USUAL).unwrap();
        assert_eq!(template.render(&Value::from(())).unwrap_err().kind(), ErrorKind::OutOfFuel);
    }

    #[test]
    fn hugging_faces_generation_tag_is_nothing() {
        let template =
            Template::new("a{%- generation -%} b {%- endgeneration %}c", Marks::USUAL).unwrap();
        assert_eq!(template.render(&Value::from(())).unwrap(), "abc");
    }
}
