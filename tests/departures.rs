//! The places where the grammar is narrower than the schema, as listed in `schema.rs`: each value here is
//! valid by JSON Schema and never generated.

use call_me_maybe::definitions;
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::Recognizer;

/// `taken` is generated and `left_out` is not, though both are valid against `parameters`.
#[track_caller]
fn check(parameters: &str, taken: &str, left_out: &str) {
    let file = format!(r#"[{{"name": "f", "parameters": {parameters}}}]"#);
    let functions = definitions::parse(file.as_bytes()).unwrap();
    let validator = jsonschema::validator_for(&functions[0].parameters).unwrap();
    for arguments in [taken, left_out] {
        let value = serde_json::from_str(arguments).unwrap();
        assert!(validator.is_valid(&value), "{arguments} is valid by the standard");
    }
    let grammar = calls(&functions, Options::LEGAL).unwrap().grammar;
    let recognizes = |arguments: &str| {
        let mut text = Recognizer::new(&grammar).unwrap();
        let call = format!(r#"{{"name": "f", "arguments": {arguments}}}"#);
        text.push_all(call.as_bytes()).is_ok() && text.can_end()
    };
    assert!(recognizes(taken), "{taken}");
    assert!(!recognizes(left_out), "{left_out}");
}

#[test]
fn undeclared_keys_are_never_generated() {
    let open = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#;
    check(open, r#"{"a": "x"}"#, r#"{"a": "x", "b": 1}"#);
}

#[test]
fn property_order_is_the_definitions() {
    let two = r#"{"b": {"type": "string"}, "a": {"type": "string"}}"#;
    check(two, r#"{"b": "x", "a": "y"}"#, r#"{"a": "y", "b": "x"}"#);
    let undeclared =
        r#"{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["z", "a"]}"#;
    check(undeclared, r#"{"a": null, "z": 1}"#, r#"{"z": 1, "a": null}"#);
}

#[test]
fn white_space_is_fixed() {
    let one = r#"{"a": {"type": "array", "items": {"type": "integer"}}}"#;
    check(one, r#"{"a": [1, 2]}"#, r#"{"a": [1,2]}"#);
    check(one, r#"{"a": []}"#, r#"{"a": [ ]}"#);
    check(one, r#"{"a": []}"#, "{\n\"a\": []}");
}

#[test]
fn properties_without_type_mean_an_object() {
    let object = r#"{"a": {"properties": {"k": {"type": "null"}}, "required": ["k"]}}"#;
    check(object, r#"{"a": {"k": null}}"#, r#"{"a": "no object"}"#);
    check(r#"{"a": {"items": {"type": "null"}}}"#, r#"{"a": [null]}"#, r#"{"a": "no array"}"#);
}

#[test]
fn any_value_nests_sixteen_deep() {
    let nested = |depth: usize| format!(r#"{{"a": {}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    check(r#"{"a": {}}"#, &nested(16), &nested(17));
}

#[test]
fn an_integer_is_digits() {
    check(r#"{"a": {"type": "integer"}}"#, r#"{"a": 100}"#, r#"{"a": 1e2}"#);
    check(r#"{"a": {"type": "integer"}}"#, r#"{"a": 1}"#, r#"{"a": 1.0}"#);
    check(r#"{"a": {"type": "integer"}}"#, r#"{"a": 0}"#, r#"{"a": -0}"#);
}

#[test]
fn listed_values_are_written_as_listed() {
    check(r#"{"a": {"enum": [1, "é"]}}"#, r#"{"a": 1}"#, r#"{"a": 1.0}"#);
    check(r#"{"a": {"enum": [1, "é"]}}"#, r#"{"a": "é"}"#, r#"{"a": "\u00e9"}"#);
}

#[test]
fn delete_is_escaped() {
    check(r#"{"a": {"type": "string"}}"#, r#"{"a": "\u007f"}"#, "{\"a\": \"\u{7f}\"}");
}

#[test]
fn an_open_object_at_the_top_takes_no_arguments() {
    check(r#"{"type": "object"}"#, "{}", r#"{"a": 1}"#);
}
