//! Prompts as people write them, and what is said about those that cannot be read.

use call_me_maybe::input::{InputError, Request, parse};

/// `expected` is one line a request, `prompt | id | names of its own functions`, or the error.
#[track_caller]
fn check(input: impl AsRef<[u8]>, expected: &str) {
    let found = match parse(input.as_ref()) {
        Ok(requests) => requests.iter().map(line).collect::<Vec<_>>().join("\n"),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(found, expected);
}

fn line(request: &Request) -> String {
    let mut parts = vec![format!("{:?}", request.prompt)];
    parts.extend(request.id.as_ref().map(ToString::to_string));
    parts.extend(request.functions.as_ref().map(|functions| {
        let names: Vec<_> = functions.iter().map(|function| function.name.as_str()).collect();
        names.join(" ")
    }));
    parts.join(" | ")
}

#[test]
fn every_shape_is_read() {
    check(r#"[{"prompt": "Add 20 and 22"}, {"prompt": ""}]"#, "\"Add 20 and 22\"\n\"\"");
    check(r#"["one", {"prompt": "two"}]"#, "\"one\"\n\"two\"");
    check("[]", "");
    check(" [ \r\n ] \r\n", "");
    check(r#"{"prompt": "alone"}"#, "\"alone\"");
    check("{\n  \"prompt\":\n    \"over lines\"\n}\n", "\"over lines\"");
    check(r#""a bare string""#, "\"a bare string\"");
    check("{\"prompt\": \"one\"}\n{\"prompt\": \"two\"}", "\"one\"\n\"two\"");
    check("\"one\"\n\n  {\"prompt\": \"two\"}  \n \t \n\"three\"\n", "\"one\"\n\"two\"\n\"three\"");
}

#[test]
fn byte_order_mark_and_crlf_are_fine() {
    check("\u{feff}[\"one\"]\r\n", "\"one\"");
    check("\u{feff}\"one\"\r\n\r\n\"two\"\r\n", "\"one\"\n\"two\"");
    check("{\r\n\"prompt\": \"a\\r\\nb\"\r\n}", "\"a\\r\\nb\"");
}

#[test]
fn prompts_survive_byte_for_byte() {
    for prompt in
        ["  blanks  ", "}}\"\\", "a\u{200b}b\u{202e}", "\u{1f994} 刺", "\u{0}\u{1b}[31m", ""]
    {
        let input = serde_json::to_vec(&[prompt]).unwrap();
        assert_eq!(parse(&input).unwrap()[0].prompt, prompt);
    }
    // A line separator of Unicode is no line end of JSON lines.
    check("\"a\u{2028}b\"\n\"c\u{85}d\"", "\"a\\u{2028}b\"\n\"c\\u{85}d\"");
}

#[test]
fn a_record_may_carry_an_id_and_functions() {
    check(
        r#"[{"id": 123456789012345678901234567890, "prompt": "a"}, {"id": "x", "prompt": "b"},
            {"id": null, "prompt": "c"}, {"id": -0.10, "prompt": "d"}, {"id": false, "prompt": "e"}]"#,
        "\"a\" | 123456789012345678901234567890\n\"b\" | \"x\"\n\"c\" | null\n\"d\" | -0.10\n\"e\" | false",
    );
    let functions = r#"[{"name": "fn_ring", "parameters": {}}]"#;
    check(format!(r#"{{"prompt": "a", "functions": {functions}}}"#), "\"a\" | fn_ring");
    check(format!(r#"[{{"prompt": "a", "tools": {functions}}}]"#), "\"a\" | fn_ring");
    check(r#"[{"prompt": "a", "functions": null}]"#, "\"a\"");
    check(r#"[{"prompt": "a", "name": "fn_ring", "note": [1]}]"#, "\"a\"");
}

#[test]
fn syntax_errors_have_line_and_column() {
    check("[\n  {\n    \"prompt\" \"hi\"\n  }\n]", "error: line 3, column 14: expected `:`");
    check("[\n  {\"prompt\": \"hi\"},\n]", "error: line 3, column 1: trailing comma");
    check("{\n  \"prompt\": \"hi\",,\n}", "error: line 2, column 18: key must be a string");
    check("[\"one\"] [\"two\"]", "error: line 1, column 9: trailing characters");
    check("[\"one\"]\n[\"two\"]", "error: line 2, column 1: trailing characters");
    check("[\"one\"", "error: line 1, column 6: EOF while parsing a list");
    check("say hi to everyone", "error: line 1, column 1: expected value");
    // In characters, not bytes.
    check("[\"é刺\" 1]", "error: line 1, column 7: expected `,` or `]`");
    // JSON lines: the line of the file.
    check("\"one\"\n\n{\"prompt\" 2}\n", "error: line 3, column 11: expected `:`");
    check("\"one\"\r\n\"two\r\n", "error: line 2, column 4: EOF while parsing a string");
    check(r#"["\ud800"]"#, "error: line 1, column 9: unexpected end of hex escape");
    // A broken first line is told as such.
    check("{\"prompt\" 2}\n\"two\"", "error: line 1, column 11: expected `:`");
}

#[test]
fn records_that_are_no_prompts_are_named() {
    check(
        "[{}]",
        "error: /0 (record 1): no \"prompt\"; give each record one, or remove the record",
    );
    check(
        "{\"text\": 1}",
        "error: the record: no \"prompt\"; give each record one, or remove the record",
    );
    check(r#"["a", {"prompt": null}]"#, "error: /1 (record 2): \"prompt\" is null, not a string");
    check("\"a\"\n{\"prompt\": [\"b\"]}", "error: line 2: \"prompt\" is a list, not a string");
    check(
        "[\"a\", 4]",
        "error: /1 (record 2): a number is no prompt; give an object with \"prompt\", or a string",
    );
    check(
        "true",
        "error: the record: a boolean is no prompt; give an object with \"prompt\", or a string",
    );
    check(
        "\"a\"\n[\"b\"]",
        "error: line 2: a list is no prompt; give an object with \"prompt\", or a string",
    );
    check(
        r#"[{"prompt": "a", "id": {}}]"#,
        "error: /0 (record 1): \"id\" is an object; give a string, a number, true, false or null",
    );
}

#[test]
fn functions_of_a_record_are_refused_at_their_place() {
    for (input, place) in [
        (r#"["a", {"prompt": "b", "functions": [{"parameters": {}}]}]"#, "/1/functions/0"),
        (r#"{"prompt": "b", "tools": [{"parameters": {}}]}"#, "/tools/0"),
        (
            "\"a\"\n{\"prompt\": \"b\", \"functions\": [{\"parameters\": {}}]}",
            "line 2, /functions/0",
        ),
    ] {
        let error = parse(input.as_bytes()).unwrap_err();
        assert!(matches!(error, InputError::Functions(_)), "{error:?}");
        assert!(error.to_string().contains(place), "{error}");
    }
}

#[test]
fn not_text_and_nothing_have_their_own_messages() {
    check(b"[\"a\xff\"]", "error: not UTF-8 at byte 3; save the file as UTF-8");
    check(b"\xff\xfe[\0", "error: not UTF-8 at byte 0; save the file as UTF-8");
    check(b"\xef\xbb\xbf[\"a\xff\"]", "error: not UTF-8 at byte 6; save the file as UTF-8");
    for nothing in ["", " \r\n\t", "\u{feff}", "\u{feff}\n"] {
        check(nothing, "error: empty; an empty list of prompts is written []");
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let deep = format!("[{{\"prompt\": \"a\", \"x\": {}", "[".repeat(1_000_000));
    let error = parse(deep.as_bytes()).unwrap_err().to_string();
    assert!(error.ends_with("recursion limit exceeded"), "{error}");
}
