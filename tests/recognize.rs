//! The recognizer on calls: what it takes, what it forces, how it closes a value.

use call_me_maybe::definitions;
use call_me_maybe::grammar::lower::{Unsupported, calls};
use call_me_maybe::grammar::recognize::Recognizer;

fn recognizer(definitions: &str) -> Recognizer {
    let functions = definitions::parse(definitions.as_bytes()).unwrap();
    let grammar = calls(&functions, Unsupported::Keep).unwrap().grammar;
    Recognizer::new(&grammar).unwrap()
}

const TWO: &str = r#"[
    {"name": "fn_sum", "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}},
    {"name": "fn_say", "parameters": {"text": {"type": "string"}}},
    {"name": "fn_bad", "parameters": {"text": {"type": "string", "pattern": "^a$"}}}
]"#;

#[track_caller]
fn check(so_far: &str, forced: &str, closing: &str, in_argument: bool, can_end: bool) {
    let mut text = recognizer(TWO);
    assert_eq!(text.push_all(so_far.as_bytes()), Ok(()), "{so_far}");
    assert_eq!(String::from_utf8(text.forced()).unwrap(), forced, "forced after {so_far}");
    assert_eq!(String::from_utf8_lossy(&text.closing()), closing, "closing after {so_far}");
    assert_eq!(text.in_argument(), in_argument, "in_argument after {so_far}");
    assert_eq!(text.can_end(), can_end, "can_end after {so_far}");
    assert_eq!(text.is_over(), can_end, "is_over after {so_far}");
}

#[test]
fn forced_and_closing_follow_the_text() {
    check("", r#"{"name": "fn_"#, "", false, false);
    check(r#"{"name": "fn_su"#, r#"m", "arguments": {"a": "#, "", false, false);
    check(r#"{"name": "fn_s"#, "", "", false, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": "#, "", "0", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": -"#, "", "0", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": 2"#, "", "", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": 2."#, "", "0", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": 2e+"#, "", "0", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": 2, "#, r#""b": "#, "", false, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "#, "\"", "\"\"", true, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "ab"#, "", "\"", true, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "a\"#, "", "\"\"", true, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "a\uD8"#, "", "00\\uDC00\"", true, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "ab""#, "}}", "", false, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "ab"}}"#, "", "", false, true);
    check(r#"{"name": "fn_bad"#, "\"}", "", false, false);
    check(r#"{"name": "fn_bad"}"#, "", "", false, true);
}
