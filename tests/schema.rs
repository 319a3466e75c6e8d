//! Schemas: what is refused, and how.

use call_me_maybe::schema::{Options, parse};

#[track_caller]
fn check(schema: &str, expected: &str) {
    let found = match parse(&serde_json::from_str(schema).unwrap(), Options::STRICT) {
        Ok(schema) => format!("{schema:?}"),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(found, expected, "{schema}");
}

/// As a property of the arguments.
#[track_caller]
fn check_property(schema: &str, expected: &str) {
    check(&format!(r#"{{"type": "object", "properties": {{"p": {schema}}}}}"#), expected);
}

#[test]
fn every_other_assertion_of_any_draft_is_refused() {
    for (keyword, value) in [
        ("$ref", "\"#\""),
        ("$dynamicRef", "\"#x\""),
        ("$recursiveRef", "\"#\""),
        ("allOf", "[{}]"),
        ("anyOf", "[{}]"),
        ("oneOf", "[{}]"),
        ("not", "{}"),
        ("if", "{}"),
        ("then", "{}"),
        ("else", "{}"),
        ("multipleOf", "2"),
        ("maximum", "2"),
        ("exclusiveMaximum", "true"),
        ("minimum", "2"),
        ("exclusiveMinimum", "2"),
        ("maxLength", "2"),
        ("minLength", "2"),
        ("pattern", "\"a\""),
        ("maxItems", "2"),
        ("minItems", "2"),
        ("uniqueItems", "true"),
        ("contains", "{}"),
        ("maxContains", "2"),
        ("minContains", "2"),
        ("prefixItems", "[{}]"),
        ("additionalItems", "false"),
        ("unevaluatedItems", "false"),
        ("maxProperties", "2"),
        ("minProperties", "2"),
        ("patternProperties", "{}"),
        ("propertyNames", "{}"),
        ("dependentRequired", "{}"),
        ("dependentSchemas", "{}"),
        ("dependencies", "{}"),
        ("unevaluatedProperties", "false"),
        ("extends", "{}"),
        ("disallow", "\"string\""),
        ("divisibleBy", "2"),
        ("format", "\"date-time\""),
        ("format", "\"ipv4\""),
        ("format", "7"),
    ] {
        check_property(
            &format!(r#"{{"type": "string", "{keyword}": {value}}}"#),
            &format!("error: /properties/p/{keyword}: \"{keyword}\" is not supported"),
        );
        check(
            &format!(r#"{{"type": "object", "{keyword}": {value}}}"#),
            &format!("error: /{keyword}: \"{keyword}\" is not supported"),
        );
    }
}

#[test]
fn annotations_and_unknown_keys_assert_nothing() {
    check_property(
        r#"{"type": "null", "title": "t", "description": "d", "default": 1, "examples": [2], "deprecated": true,
            "readOnly": true, "writeOnly": true, "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$comment": "c", "$id": "i", "contentEncoding": "base64", "contentMediaType": "text/html",
            "$defs": {"x": {"minimum": 1}}, "definitions": {"x": false}, "x-order": 1, "nullable": true,
            "format": "int64", "widget": {"pattern": 1}}"#,
        r#"Object([Property { name: "p", schema: Null, required: false }])"#,
    );
}

#[test]
fn malformed_keywords_are_told() {
    for (schema, expected) in [
        ("3", r#"/properties/p: "p" must be a schema, found a number"#),
        ("false", "Object([])"),
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
            r#"{"type": ["null", "any"]}"#,
            r#"/properties/p/type: "type" has the unknown type "any""#,
        ),
        (
            r#"{"type": "text", "enum": ["a"]}"#,
            r#"/properties/p/type: "type" has the unknown type "text""#,
        ),
        (r#"{"enum": {}}"#, r#"/properties/p/enum: "enum" must be an array, found an object"#),
        (r#"{"enum": []}"#, r#"/properties/p/enum: "enum" leaves no value that would be valid"#),
        (
            r#"{"enum": [1], "const": 2}"#,
            r#"/properties/p/enum: "enum" leaves no value that would be valid"#,
        ),
        (
            r#"{"const": 2, "type": "string"}"#,
            r#"/properties/p/const: "const" leaves no value that would be valid"#,
        ),
        (
            r#"{"properties": []}"#,
            r#"/properties/p/properties: "properties" must be an object, found an array"#,
        ),
        (
            r#"{"required": true}"#,
            r#"/properties/p/required: "required" must be an array of strings, found a boolean"#,
        ),
        (
            r#"{"required": [1]}"#,
            r#"/properties/p/required: "required" must be an array of strings, found a number"#,
        ),
        (
            r#"{"required": ["x"], "additionalProperties": false}"#,
            r#"/properties/p/required: "required" leaves no value that would be valid"#,
        ),
        (
            r#"{"properties": {"x": false}, "required": ["x"]}"#,
            r#"/properties/p/properties/x: "x" leaves no value that would be valid"#,
        ),
        (
            r#"{"properties": {"x/~": 1}}"#,
            r#"/properties/p/properties/x~1~0: "x/~" must be a schema, found a number"#,
        ),
        (r#"{"items": [{}]}"#, r#"/properties/p/items: "items" is not supported"#),
        (r#"{"items": 1}"#, r#"/properties/p/items: "items" must be a schema, found a number"#),
        (
            r#"{"additionalProperties": 1}"#,
            r#"/properties/p/additionalProperties: "additionalProperties" must be a schema, found a number"#,
        ),
        (
            r#"{"properties": {"x": {}}, "additionalProperties": {"type": "null"}}"#,
            r#"/properties/p/additionalProperties: "additionalProperties" is not supported"#,
        ),
        (
            r#"{"properties": {"a/b~c": {"minimum": 1}}}"#,
            r#"/properties/p/properties/a~1b~0c/minimum: "minimum" is not supported"#,
        ),
    ] {
        let expected = if expected.starts_with('/') {
            format!("error: {expected}")
        } else {
            expected.to_owned()
        };
        check_property(schema, &expected);
    }
}

#[test]
fn arguments_are_an_object() {
    for none in [
        "{}",
        "true",
        r#"{"type": "object"}"#,
        r#"{"properties": {}}"#,
        r#"{"type": "object", "additionalProperties": false}"#,
    ] {
        check(none, "Object([])");
    }
    check(r#"{"type": "array"}"#, r#"error: /type: "type" must make the arguments an object"#);
    check(r#"{"enum": [{}]}"#, r#"error: /enum: "enum" must make the arguments an object"#);
    check(
        r#"{"type": ["object", "null"]}"#,
        r#"error: /type: "type" must make the arguments an object"#,
    );
    check("[]", r#"error: /type: "type" must make the arguments an object"#);
    check("false", r#"error: /type: "type" must make the arguments an object"#);
}

#[test]
fn depth_has_a_limit() {
    let nested = |depth: usize| {
        let (open, close) = (r#"{"items":"#.repeat(depth), "}".repeat(depth));
        serde_json::from_str(&format!(r#"{{"properties":{{"p":{open}{{}}{close}}}}}"#)).unwrap()
    };
    assert!(parse(&nested(63)).is_ok());
    let error = parse(&nested(64)).unwrap_err();
    assert_eq!(
        (error.keyword.as_str(), error.reason.to_string().as_str()),
        ("items", "nests deeper than 64 schemas")
    );
}
