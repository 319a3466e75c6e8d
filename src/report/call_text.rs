//! The text of a call, whole or still being written, in the form `fn_ring(times=2, who="Ann")`.
//!
//! **Invariant:** any text at all, cut anywhere, gives a line and no panic; what is no call is
//! shown as it is. This is for reading only: nothing parses the result.
//! **Invariant:** the result is escaped for the terminal.

use serde_json::Value;

use crate::definitions::FunctionDef;

use super::escape::{escape, push};

/// The line for the first part of `{"name": …, "arguments": {…}}`.
///
/// `functions` tells which arguments are numbers: these get the `.0` that the output has.
///
/// ```
/// # use call_me_maybe::{definitions, report};
/// let functions = definitions::parse(
///     br#"[{"name": "fn_area", "parameters": {"w": {"type": "number"}, "h": {"type": "number"}}}]"#,
/// )?;
/// let text = r#"{"name": "fn_area", "arguments": {"w": 4, "h"#;
/// assert_eq!(report::partial(text, &functions), "fn_area(w=4.0, h");
/// # Ok::<(), definitions::DefinitionError>(())
/// ```
#[must_use]
pub fn partial(text: &str, functions: &[FunctionDef]) -> String {
    let mut scan = Scan { rest: text, out: String::new(), depth: 0 };
    match scan.call(functions) {
        Ok(()) | Err(Stop::End) => scan.out,
        Err(Stop::Other) => escape(text).into_owned(),
    }
}

/// The line for a finished call.
#[must_use]
pub fn whole(name: &str, parameters: &Value) -> String {
    let mut out = escape(name).into_owned();
    out.push('(');
    let members =
        parameters.as_object().into_iter().flatten().map(|(key, value)| (Some(key), value));
    // Arguments that are no object have no key.
    let whole = (!parameters.is_object()).then_some((None, parameters));
    for (index, (key, value)) in members.chain(whole).enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        if let Some(key) = key {
            out.push_str(&escape(key));
            out.push('=');
        }
        let text = value.to_string();
        let mut scan = Scan { rest: &text, out, depth: 0 };
        // The text of a Value is whole, so the scan comes to its end.
        let _ = scan.value(None);
        out = scan.out;
    }
    out.push(')');
    out
}

/// Why a scan stops early.
enum Stop {
    /// The text ends here so far.
    End,
    /// This is no call.
    Other,
}

struct Scan<'a> {
    rest: &'a str,
    out: String,
    /// Open lists and objects.
    depth: usize,
}

/// As deep as `serde_json` reads.
const MAX_DEPTH: usize = 128;

impl<'a> Scan<'a> {
    fn call(&mut self, functions: &[FunctionDef]) -> Result<(), Stop> {
        self.expect('{')?;
        let (key, _) = self.string()?;
        if key != "name" {
            return Err(Stop::Other);
        }
        self.expect(':')?;
        let name = self.word()?;
        self.expect(',')?;
        self.string()?;
        self.expect(':')?;
        self.peek()?;
        self.out.push('(');
        let parameters =
            functions.iter().find(|function| function.name.as_str() == name).map(|f| &f.parameters);
        if self.peek()? != '{' {
            self.value(parameters)?;
            self.out.push(')');
            return Ok(());
        }
        self.expect('{')?;
        let mut first = true;
        while self.peek()? != '}' {
            if !first {
                self.expect(',')?;
                self.peek()?;
                self.out.push_str(", ");
            }
            first = false;
            let key = self.word()?;
            self.expect(':')?;
            self.out.push('=');
            self.value(property(parameters, &key))?;
        }
        self.out.push(')');
        Ok(())
    }

    /// The next character that is no blank.
    fn peek(&mut self) -> Result<char, Stop> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.chars().next().ok_or(Stop::End)
    }

    fn expect(&mut self, wanted: char) -> Result<(), Stop> {
        if self.peek()? != wanted {
            return Err(Stop::Other);
        }
        self.rest = &self.rest[wanted.len_utf8()..];
        Ok(())
    }

    /// A string's meaning, and its text with the quotes.
    fn string(&mut self) -> Result<(String, &'a str), Stop> {
        if self.peek()? != '"' {
            return Err(Stop::Other);
        }
        let raw = quoted(self.rest).ok_or(Stop::End)?;
        self.rest = &self.rest[raw.len()..];
        // A string that JSON refuses is shown as it stands.
        let text = serde_json::from_str(raw).unwrap_or_else(|_| raw.trim_matches('"').to_owned());
        Ok((text, raw))
    }

    /// Shows a name, also an unfinished one, without its quotes.
    fn word(&mut self) -> Result<String, Stop> {
        if self.peek()? == '"' && quoted(self.rest).is_none() {
            let text = unfinished(self.rest);
            self.out.push_str(&escape(&text));
            return Err(Stop::End);
        }
        let (text, _) = self.string()?;
        self.out.push_str(&escape(&text));
        Ok(text)
    }

    /// Shows a value as the JSON it is; `schema` is its part of the parameters, where known.
    fn value(&mut self, schema: Option<&Value>) -> Result<(), Stop> {
        match self.peek()? {
            '"' => {
                let Some(raw) = quoted(self.rest) else {
                    self.copy(self.rest.len());
                    return Err(Stop::End);
                };
                self.copy(raw.len());
                Ok(())
            }
            '[' => self.list(']', |scan| scan.value(schema.and_then(|it| it.get("items")))),
            '{' => self.list('}', |scan| {
                let (key, raw) = scan.string()?;
                for c in raw.chars() {
                    push(&mut scan.out, c);
                }
                scan.expect(':')?;
                scan.out.push_str(": ");
                scan.value(property(schema, &key))
            }),
            _ => self.scalar(schema),
        }
    }

    /// A list or an object: brackets, and commas between the `items`.
    fn list(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Stop::Other);
        }
        self.copy(1);
        for index in 0.. {
            let next = self.peek()?;
            if next == close {
                break;
            }
            if index > 0 {
                self.expect(',')?;
                self.peek()?;
                self.out.push_str(", ");
            }
            item(self)?;
        }
        self.depth -= 1;
        self.copy(1);
        Ok(())
    }

    /// A number or a bare word, which only what follows can end.
    fn scalar(&mut self, schema: Option<&Value>) -> Result<(), Stop> {
        let ends = |c: char| ",:{}[]\"".contains(c) || c.is_ascii_whitespace();
        let end = self.rest.find(ends);
        let text = &self.rest[..end.unwrap_or(self.rest.len())];
        if text.is_empty() {
            return Err(Stop::Other);
        }
        self.copy(text.len());
        if end.is_none() {
            return Err(Stop::End);
        }
        let is_number = schema.and_then(|it| it.get("type")).is_some_and(|it| it == "number");
        if is_number && !text.contains(['.', 'e', 'E']) {
            self.out.push_str(".0");
        }
        Ok(())
    }

    fn copy(&mut self, n_bytes: usize) {
        let (text, rest) = self.rest.split_at(n_bytes);
        for c in text.chars() {
            push(&mut self.out, c);
        }
        self.rest = rest;
    }
}

fn property<'a>(schema: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    schema?.get("properties")?.get(key)
}

/// The string that `text` begins with, its quotes included, if it is closed.
fn quoted(text: &str) -> Option<&str> {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(&text[..=index]),
            _ => {}
        }
    }
    None
}

/// The meaning of an open string so far; an escape that is not whole yet is left out.
fn unfinished(text: &str) -> String {
    // The longest escape is a surrogate pair of 12 bytes.
    (0..12.min(text.len()))
        .filter_map(|n| text.get(..text.len() - n))
        .find_map(|text| serde_json::from_str(&format!("{text}\"")).ok())
        .unwrap_or_else(|| text.trim_start_matches('"').to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::definitions;

    const CALLS: [(&str, &str); 6] = [
        (
            r#"{"name": "fn_mix", "arguments": {"x": 2, "n": 3, "s": "a, b}"}}"#,
            r#"fn_mix(x=2.0, n=3, s="a, b}")"#,
        ),
        (
            r#"{"name": "fn_mix", "arguments": {"p": {"x": -4, "y": [1, 2]}, "l": [5, [6.5]]}}"#,
            r#"fn_mix(p={"x": -4.0, "y": [1, 2]}, l=[5.0, [6.5]])"#,
        ),
        (r#"{"name": "fn_none", "arguments": {}}"#, "fn_none()"),
        (
            r#"{"name": "fn_mix", "arguments": {"s": "\\ \" \n \ud83e\udd94 刺 {[,", "b": true, "z": null}}"#,
            r#"fn_mix(s="\\ \" \n \ud83e\udd94 刺 {[,", b=true, z=null)"#,
        ),
        (
            "{\"name\": \"fn\\u001b\u{202e}\", \"arguments\": {\"k\\n\": \"\u{9b}\"}}",
            r#"fn\u001b\u202e(k\n="\u009b")"#,
        ),
        (
            r#"{"name":"fn_mix","arguments":{"x":1e5,"s":"","l":[]}}"#,
            r#"fn_mix(x=1e5, s="", l=[])"#,
        ),
    ];

    fn functions() -> Vec<FunctionDef> {
        let number = r#"{"type": "number"}"#;
        let text = format!(
            r#"[{{"name": "fn_mix", "parameters": {{"type": "object", "properties": {{
                "x": {number}, "n": {{"type": "integer"}}, "s": {{"type": "string"}},
                "p": {{"type": "object", "properties": {{"x": {number}}}}},
                "l": {{"type": "array", "items": {number}}}}}}}}}]"#
        );
        definitions::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_whole_text_gives_the_whole_line() {
        for (text, expected) in CALLS {
            assert_eq!(partial(text, &functions()), expected);
        }
    }

    #[test]
    fn every_prefix_gives_a_part_of_the_line() {
        for (text, whole) in CALLS {
            let mut longest = 0;
            for (end, _) in text.char_indices() {
                let line = partial(&text[..end], &functions());
                assert!(whole.starts_with(&line), "{} gave {line}", &text[..end]);
                // A joint of an escape may take a few characters back, no more.
                assert!(line.len() + 12 >= longest, "{} gave {line}", &text[..end]);
                longest = longest.max(line.len());
            }
            assert!(longest + 2 >= whole.len(), "{longest} of {whole}");
        }
    }

    #[test]
    fn unfinished_lines_are_the_issues_own() {
        let area = br#"[{"name": "fn_add_numbers", "parameters": {"a": {"type": "number"}}}]"#;
        let functions = definitions::parse(area).unwrap();
        for (text, expected) in [
            ("", ""),
            ("{\"na", ""),
            ("{\"name\": \"fn_a", "fn_a"),
            ("{\"name\": \"fn_add_numbers\", \"arguments\": {\"a\": 2", "fn_add_numbers(a=2"),
            ("{\"name\": \"fn_add_numbers\", \"arguments\": {\"a\": 2,", "fn_add_numbers(a=2.0"),
            (
                "{\"name\": \"fn_add_numbers\", \"arguments\": {\"a\": 2, \"b",
                "fn_add_numbers(a=2.0, b",
            ),
        ] {
            assert_eq!(partial(text, &functions), expected);
        }
    }

    #[test]
    fn what_is_no_call_is_shown_escaped() {
        for text in
            ["no", "[1]", "{\"nome\": 1}", "{\"name\" \"f\"}", "{\"name\": 3", "{\"a\": }", "}}"]
        {
            assert_eq!(partial(text, &[]), text);
        }
        assert_eq!(partial("\u{1b}c", &[]), r"\u001bc");
        let deep = format!("{{\"name\": \"f\", \"arguments\": {{\"a\": {}", "[".repeat(100_000));
        assert_eq!(partial(&deep, &[]), deep);
    }

    #[test]
    fn a_finished_call_is_the_same_line() {
        for (text, expected) in CALLS {
            let value: Value = serde_json::from_str(text).unwrap();
            let parameters = &value["arguments"];
            let line = whole(value["name"].as_str().unwrap(), parameters);
            // The output's numbers have their `.0` already; here they are as the model wrote them.
            let plain = partial(&value.to_string(), &[]);
            assert_eq!(line, plain, "{expected}");
        }
    }
}
