//! The JSON pointer of the place where a text breaks off.

use crate::definitions::child;

/// The pointer of the value that the text breaks off in; of the innermost container where it
/// breaks off between values. What is no JSON leads nowhere in particular.
pub(super) fn at_end(text: &[u8]) -> String {
    let mut open: Vec<Container> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let end = match byte {
            b'{' => {
                open.push(Container::Object { key: None, in_value: false });
                at + 1
            }
            b'[' => {
                open.push(Container::Array { index: 0 });
                at + 1
            }
            b'}' | b']' => {
                open.pop();
                at + 1
            }
            b',' => {
                match open.last_mut() {
                    Some(Container::Object { key, in_value }) => (*key, *in_value) = (None, false),
                    Some(Container::Array { index }) => *index += 1,
                    None => {}
                }
                at + 1
            }
            b':' => {
                if let Some(Container::Object { in_value, .. }) = open.last_mut() {
                    *in_value = true;
                }
                at + 1
            }
            b'"' => {
                let end = string_end(text, at);
                if let (Some(Container::Object { key, in_value: false }), Some(end)) =
                    (open.last_mut(), end)
                {
                    *key = serde_json::from_slice(&text[at..end]).ok();
                }
                end.unwrap_or(text.len())
            }
            _ => at + 1,
        };
        at = end;
    }
    open.iter().fold(String::new(), |pointer, container| match container {
        Container::Object { key: Some(key), in_value: true } => child(&pointer, key),
        Container::Object { .. } => pointer,
        Container::Array { index } => child(&pointer, &index.to_string()),
    })
}

enum Container {
    Object { key: Option<String>, in_value: bool },
    Array { index: usize },
}

/// Where the string that begins at `start` ends; `None` where the text ends first.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(super::at_end(text.as_bytes()), expected);
    }

    #[test]
    fn the_pointer_leads_to_where_the_text_breaks_off() {
        check("", "");
        check("12", "");
        check(r#"{"a": "#, "/a");
        check(r#"{"a": 1"#, "/a");
        check(r#"{"a": 1, "b"#, "");
        check(r#"{"a": 1, "b""#, "");
        check(r#"{"a/~": {"b": [1, {"c": "x,]}\""#, "/a~1~0/b/1/c");
        check(r#"{"a": [1, [2], "#, "/a/2");
        check(r#"{"a": {}, "b": "#, "/b");
        check(r#"{"a": "\"#, "/a");
    }
}
