//! Schemas: what is refused, and how.

use call_me_maybe::grammar::lower::{self, calls};
use call_me_maybe::schema::{Options, parse};

/// `expected` is "ok" or the error.
#[track_caller]
fn check(schema: &str, expected: &str) {
    let found = match parse(&serde_json::from_str(schema).unwrap(), Options::STRICT) {
        Ok(_) => "ok".to_owned(),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(found, expected, "{schema}");
}

/// As a required property of the arguments.
#[track_caller]
fn check_property(schema: &str, expected: &str) {
    check(
        &format!(r#"{{"type": "object", "properties": {{"p": {schema}}}, "required": ["p"]}}"#),
        expected,
    );
}

#[test]
fn what_cannot_be_expressed_is_refused_with_its_place() {
    for (schema, expected) in [
        (r#"{"disallow": "string"}"#, r#"/properties/p/disallow: "disallow" is not supported"#),
        (
            r#"{"type": "array", "uniqueItems": true, "items": {"type": "string"}}"#,
            r#"/properties/p/uniqueItems: "uniqueItems" is not supported for items that are not a short list of values"#,
        ),
        (
            r#"{"not": {"type": "string", "format": "date"}}"#,
            r#"/properties/p/not/format: "format" is not supported where its opposite is needed (in not, if, oneOf or contains)"#,
        ),
        (
            r#"{"not": {"enum": [[1, 2], []]}}"#,
            r#"/properties/p/not/enum: "enum" is not supported where its opposite is needed (in not, if, oneOf or contains)"#,
        ),
        (
            r#"{"type": "array", "uniqueItems": true, "items": {"enum": [1, 1.0]}}"#,
            r#"/properties/p/uniqueItems: "uniqueItems" is not supported for items that are not a short list of values"#,
        ),
        (
            r#"{"type": "string", "pattern": "(a)\\1"}"#,
            r#"/properties/p/pattern: "pattern" cannot be written as a grammar: a backreference at byte 3 is not supported"#,
        ),
        (
            r#"{"$ref": "https://example.com/x"}"#,
            r#"/properties/p/$ref: "$ref" refers to "https://example.com/x", which is not in this schema; put the schema under "$defs""#,
        ),
        (
            r##"{"$ref": "#/properties/p"}"##,
            r#"/properties/p: "p" refers to itself without a property or an item between"#,
        ),
        (
            r#"{"type": "number", "multipleOf": 12345677}"#,
            r#"/properties/p: "p" cannot be written as a grammar: multipleOf 12345677 has more than 4096 remainders"#,
        ),
    ] {
        check_property(schema, &format!("error: {expected}"));
    }
}

#[test]
fn what_other_keywords_make_void_is_no_error() {
    for schema in [
        r#"{"type": "integer", "pattern": "(a)\\1"}"#,
        r#"{"type": "string", "uniqueItems": true}"#,
        r#"{"type": "array", "uniqueItems": true, "maxItems": 1}"#,
        r#"{"type": "string", "minLength": 1, "not": {"type": "integer", "multipleOf": 2}}"#,
        r#"{"type": "string", "$defs": {"x": {"$ref": "https://example.com/x"}}}"#,
    ] {
        check_property(schema, "ok");
    }
}

#[test]
fn annotations_and_unknown_keys_assert_nothing() {
    check_property(
        r#"{"type": "null", "title": "t", "description": "d", "default": 1, "examples": [2], "deprecated": true,
            "readOnly": true, "writeOnly": true, "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$comment": "c", "contentEncoding": "base64", "contentMediaType": "text/html",
            "$defs": {"x": {"disallow": 1}}, "definitions": {"x": 7}, "x-order": 1, "nullable": true,
            "format": "int64", "widget": {"pattern": 1}}"#,
        "ok",
    );
}

#[test]
fn malformed_keywords_are_told() {
    for (schema, expected) in [
        ("3", r#"/properties/p: "p" must be a schema, found a number"#),
        ("false", r#"/properties/p: "p" leaves no value that would be valid"#),
        (
            r#"{"type": []}"#,
            r#"/properties/p/type: "type" must be a string or an array of strings, found an array"#,
        ),
        (
            r#"{"type": [1]}"#,
            r#"/properties/p/type: "type" must be a string or an array of strings, found a number"#,
        ),
        (r#"{"type": "text"}"#, r#"/properties/p/type: "type" has the unknown type "text""#),
        (
            r#"{"type": "text", "enum": ["a"]}"#,
            r#"/properties/p/type: "type" has the unknown type "text""#,
        ),
        (r#"{"enum": {}}"#, r#"/properties/p/enum: "enum" must be an array, found an object"#),
        (r#"{"enum": []}"#, r#"/properties/p: "p" leaves no value that would be valid"#),
        (
            r#"{"enum": [1], "const": 2}"#,
            r#"/properties/p: "p" leaves no value that would be valid"#,
        ),
        (
            r#"{"type": "integer", "minimum": 5, "maximum": 4}"#,
            r#"/properties/p: "p" leaves no value that would be valid"#,
        ),
        (
            r#"{"type": "object", "properties": {"q": {"enum": [], "x": 1}}, "required": ["q"]}"#,
            r#"/properties/p/properties/q: "q" leaves no value that would be valid"#,
        ),
        (
            r#"{"properties": []}"#,
            r#"/properties/p/properties: "properties" must be an object, found an array"#,
        ),
        (
            r#"{"required": 1}"#,
            r#"/properties/p/required: "required" must be an array of strings, found a number"#,
        ),
        (
            r#"{"required": [1]}"#,
            r#"/properties/p/required: "required" must be an array of strings, found a number"#,
        ),
        (
            r#"{"properties": {"x/~": 1}, "required": ["x/~"]}"#,
            r#"/properties/p/properties/x~1~0: "x/~" must be a schema, found a number"#,
        ),
        (r#"{"items": 1}"#, r#"/properties/p/items: "items" must be a schema, found a number"#),
        (
            r#"{"additionalProperties": 1}"#,
            r#"/properties/p/additionalProperties: "additionalProperties" must be a schema, found a number"#,
        ),
        (
            r#"{"minLength": -1}"#,
            r#"/properties/p/minLength: "minLength" must be an integer from 0, found a number"#,
        ),
        (
            r#"{"minimum": "1"}"#,
            r#"/properties/p/minimum: "minimum" must be a number, found a string"#,
        ),
        (
            r#"{"multipleOf": 0}"#,
            r#"/properties/p/multipleOf: "multipleOf" must be a number above 0, found another"#,
        ),
        (
            r#"{"pattern": "["}"#,
            r#"/properties/p/pattern: "pattern" cannot be written as a grammar: a class that nothing closes at byte 0"#,
        ),
        (r#"{"anyOf": {}}"#, r#"/properties/p/anyOf: "anyOf" must be an array, found an object"#),
    ] {
        check_property(schema, &format!("error: {expected}"));
    }
}

#[test]
fn arguments_may_be_anything() {
    for schema in [
        "{}",
        "true",
        r#"{"type": "array"}"#,
        r#"{"enum": [{}]}"#,
        r#"{"type": ["object", "null"]}"#,
    ] {
        check(schema, "ok");
    }
    check("[]", "error: : the schema must be a schema, found an array");
    check("false", "error: : the schema leaves no value that would be valid");
}

#[test]
fn depth_has_a_limit() {
    let nested = |depth: usize| {
        let (open, close) = (r#"{"items":"#.repeat(depth), "}".repeat(depth));
        serde_json::from_str(&format!("{open}{{}}{close}")).unwrap()
    };
    assert!(parse(&nested(120), Options::STRICT).is_ok());
    // serde reads 128 levels from a text; a library user's value may be deeper.
    let mut deep = serde_json::json!({});
    for _ in 0..1_000 {
        deep = serde_json::json!({"items": deep, "minItems": 1});
    }
    let error = parse(&deep, Options::STRICT).unwrap_err();
    assert_eq!(
        (error.keyword.as_str(), error.reason.to_string().as_str()),
        ("items", "nests deeper than 128 schemas")
    );
}

#[test]
fn what_makes_too_large_a_grammar_is_named() {
    let file =
        br#"[{"name": "f", "inputSchema": {"type": "object", "properties": {"p": {"type": "object",
        "properties": {"q": {}}, "minProperties": 100000}}}}, {"name": "g"}]"#;
    let functions = call_me_maybe::definitions::parse(file).unwrap();
    let lowered = calls(&functions, lower::Options::LEGAL).unwrap();
    let errors: Vec<String> = lowered.refused.iter().map(|(_, error)| error.to_string()).collect();
    assert_eq!(errors, [r#"/properties/p: "p" makes a grammar that is too large"#]);
}

#[test]
fn what_is_widened_is_told() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
            "other": {"$ref": "https://example.com/x"},
        },
    });
    let schema = parse(&schema, Options { lenient: true, ..Options::STRICT }).unwrap();
    let widened: Vec<&str> = schema.widened().iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(widened, ["/properties/tags/uniqueItems", "/properties/other/$ref"]);
}
