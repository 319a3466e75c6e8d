//! The places where the grammar is narrower than the schema, as listed in `schema.rs`, and where it is
//! wider.

use call_me_maybe::definitions;
use call_me_maybe::grammar::lower::{Options, Unsupported, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::schema::Undeclared;
use call_me_maybe::validate::Validator;

/// Whether the grammar takes the arguments, and whether they are valid by JSON Schema.
fn judge(parameters: &str, options: Options, arguments: &str) -> (bool, bool) {
    let file = format!(r#"[{{"name": "f", "inputSchema": {parameters}}}]"#);
    let functions = definitions::parse(file.as_bytes()).unwrap();
    let validator = jsonschema::validator_for(&functions[0].parameters).unwrap();
    let grammar = calls(&functions, options).unwrap().grammar;
    let mut text = Recognizer::new(&grammar).unwrap();
    let call = format!(r#"{{"name": "f", "arguments": {arguments}}}"#);
    let taken = text.push_all(call.as_bytes()).is_ok() && text.can_end();
    (taken, validator.is_valid(&serde_json::from_str(arguments).unwrap()))
}

/// `taken` is in the grammar and `left_out` is not, though both are valid.
#[track_caller]
fn check(parameters: &str, taken: &str, left_out: &str) {
    assert_eq!(judge(parameters, Options::LEGAL, taken), (true, true), "{taken}");
    assert_eq!(judge(parameters, Options::LEGAL, left_out), (false, true), "{left_out}");
}

/// As one property, `a`.
#[track_caller]
fn check_property(schema: &str, taken: &str, left_out: &str) {
    let parameters = format!(r#"{{"type": "object", "properties": {{"a": {schema}}}}}"#);
    check(&parameters, &format!(r#"{{"a": {taken}}}"#), &format!(r#"{{"a": {left_out}}}"#));
}

/// A run writes `taken`; `left_out` is legal and not written.
#[track_caller]
fn check_run(parameters: &str, taken: &str, left_out: &str) {
    assert_eq!(judge(parameters, Options::LEGAL, taken), (true, true), "{taken}");
    assert_eq!(judge(parameters, Options::DECLARED, taken), (true, true), "{taken}");
    assert_eq!(judge(parameters, Options::LEGAL, left_out), (true, true), "{left_out}");
    assert_eq!(judge(parameters, Options::DECLARED, left_out), (false, true), "{left_out}");
}

#[test]
fn property_order_is_the_definitions() {
    let two =
        r#"{"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}"#;
    check(two, r#"{"b": "x", "a": "y"}"#, r#"{"a": "y", "b": "x"}"#);
    check(two, r#"{"b": "x", "c": 1}"#, r#"{"c": 1, "b": "x"}"#);
    let undeclared =
        r#"{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["z", "a"]}"#;
    check(undeclared, r#"{"a": null, "z": 1}"#, r#"{"z": 1, "a": null}"#);
}

#[test]
fn white_space_is_fixed() {
    check_property(r#"{"type": "array"}"#, "[1, 2]", "[1,2]");
    check_property(r#"{"type": "array"}"#, "[]", "[ ]");
}

#[test]
fn an_integer_is_digits() {
    check_property(r#"{"type": "integer"}"#, "100", "1e2");
    check_property(r#"{"type": "integer"}"#, "1", "1.0");
    check_property(r#"{"type": "integer"}"#, "0", "-0");
}

#[test]
fn a_bounded_number_has_no_exponent() {
    check_property(r#"{"type": "number", "maximum": 5000}"#, "1000", "1e3");
    check_property(r#"{"type": "number", "multipleOf": 0.5}"#, "0.5", "5e-1");
    check_property(r#"{"type": "number", "minimum": -5}"#, "0", "-0");
    check_property(r#"{"type": "number", "not": {"const": 1}}"#, "20", "2e1");
}

#[test]
fn listed_values_are_written_as_listed() {
    check_property(r#"{"enum": [1, "é"]}"#, "1", "1.0");
    check_property(r#"{"enum": [1, "é"]}"#, r#""é""#, r#""\u00e9""#);
    check_property(r#"{"const": {"a": 1, "b": 2}}"#, r#"{"a": 1, "b": 2}"#, r#"{"b": 2, "a": 1}"#);
}

#[test]
fn where_the_characters_matter_they_are_spelled_the_shortest_way() {
    check_property(r#"{"type": "string", "pattern": "^[a-c/]$"}"#, r#""a""#, r#""\u0061""#);
    check_property(r#"{"type": "string", "pattern": "^[a-c/]$"}"#, r#""/""#, r#""\/""#);
    let open = r#"{"type": "object", "properties": {"a": {"type": "null"}}}"#;
    check(open, r#"{"b": 1}"#, r#"{"\u0062": 1}"#);
}

#[test]
fn delete_is_escaped() {
    check_property(r#"{"type": "string"}"#, r#""\u007f""#, "\"\u{7f}\"");
}

#[test]
fn a_run_writes_no_undeclared_keys() {
    let open = r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#;
    check_run(open, r#"{"a": "x"}"#, r#"{"a": "x", "b": 1}"#);
    check_run(r#"{"type": "object"}"#, "{}", r#"{"a": 1}"#);
    // Where the values have a schema of their own, someone meant them to be written.
    let described =
        r#"{"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "null"}}"#;
    assert_eq!(judge(described, Options::DECLARED, r#"{"b": null}"#), (true, true));
    let nested = r#"{"type": "object", "properties": {"free": {"type": "object"}}}"#;
    assert_eq!(judge(nested, Options::DECLARED, r#"{"free": {"b": 1}}"#), (true, true));
}

#[test]
fn in_a_run_a_keyword_without_type_means_its_type() {
    let object =
        r#"{"type": "object", "properties": {"a": {"properties": {"k": {"type": "null"}}}}}"#;
    check_run(object, r#"{"a": {"k": null}}"#, r#"{"a": "no object"}"#);
    let array = r#"{"type": "object", "properties": {"a": {"items": {"type": "null"}}}}"#;
    check_run(array, r#"{"a": [null]}"#, r#"{"a": "no array"}"#);
    let string = r#"{"type": "object", "properties": {"a": {"pattern": "^a"}}}"#;
    check_run(string, r#"{"a": "ab"}"#, r#"{"a": 1}"#);
    let number = r#"{"type": "object", "properties": {"a": {"minimum": 5}}}"#;
    check_run(number, r#"{"a": 6.5}"#, r#"{"a": "no number"}"#);
}

#[test]
fn an_integer_of_draft_4_may_be_written_with_a_fraction_by_others() {
    // Draft 4 alone says that 1.0 is no integer; we never write it.
    let old = r#"{"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}"#;
    assert_eq!(judge(old, Options::LEGAL, "1"), (true, true));
    assert_eq!(judge(old, Options::LEGAL, "1.0"), (false, false));
}

/// The grammar takes the call, and only the validator refuses it.
#[track_caller]
fn check_wider(parameters: &str, options: Options, arguments: &str) {
    let file = format!(r#"[{{"name": "f", "inputSchema": {parameters}}}]"#);
    let functions = definitions::parse(file.as_bytes()).unwrap();
    let call = format!(r#"{{"name": "f", "arguments": {arguments}}}"#);
    let mut text = Recognizer::new(&calls(&functions, options).unwrap().grammar).unwrap();
    assert!(text.push_all(call.as_bytes()).is_ok() && text.can_end(), "{arguments}");
    assert!(Validator::new(&functions, options).validate(&call).is_err(), "{arguments}");
}

#[test]
fn a_repeated_undeclared_key_is_left_to_the_validator() {
    // The last one counts, so the object has one member only.
    check_wider(r#"{"type": "object", "minProperties": 2}"#, Options::LEGAL, r#"{"a": 1, "a": 2}"#);
}

#[test]
fn depth_beyond_what_serde_reads_is_left_to_the_validator() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    check_wider(r#"{"type": "array"}"#, Options::LEGAL, &deep);
}

#[test]
fn lenient_leaves_to_the_validator_what_has_no_grammar() {
    let lenient = Options { unsupported: Unsupported::Widen, undeclared: Undeclared::Allow };
    let unique = r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#;
    check_wider(unique, lenient, r#"["a", "a"]"#);
}
