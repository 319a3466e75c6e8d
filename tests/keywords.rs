//! Every keyword that the grammar expresses: texts that it takes and texts that it refuses, each as the
//! independent validator judges them too. What is narrower than the standard is in `departures.rs`.

use call_me_maybe::definitions::{FunctionDef, FunctionName};
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::validate::Validator;

/// `taken` and `refused` are arguments; the schema is the whole `parameters`.
#[track_caller]
fn check(schema: &str, taken: &[&str], refused: &[&str]) {
    let name = FunctionName::new("f").unwrap();
    let functions = [FunctionDef::new(name, None, &serde_json::from_str(schema).unwrap())];
    let lowered = calls(&functions, Options::LEGAL).unwrap();
    assert_eq!(lowered.refused, [], "{schema}");
    let recognizer = Recognizer::new(&lowered.grammar).unwrap();
    let validator = Validator::new(&functions, Options::LEGAL);
    for (arguments, expected) in
        taken.iter().map(|text| (text, true)).chain(refused.iter().map(|text| (text, false)))
    {
        let call = format!(r#"{{"name": "f", "arguments": {arguments}}}"#);
        let mut text = recognizer.clone();
        let found = text.push_all(call.as_bytes()).is_ok() && text.can_end();
        assert_eq!(found, expected, "{schema}: {arguments}");
        assert_eq!(validator.validate(&call).is_ok(), expected, "{schema}: {arguments}: validated");
    }
}

#[test]
fn types() {
    check("true", &["null", "1", r#""a""#, r#"[{"a": [true]}]"#], &[]);
    check(r#"{"type": "string"}"#, &[r#""""#, r#""\u00e9\n""#], &["1", "null"]);
    check(r#"{"type": ["integer", "null"]}"#, &["-12", "null"], &["1.5", "true"]);
    check(r#"{"type": ["integer", "number"]}"#, &["1", "1.5"], &[r#""1""#]);
    check(r#"{"type": "array"}"#, &["[]", "[1, [2]]"], &["{}"]);
    check(r#"{"type": "object"}"#, &["{}", r#"{"a": 1, "b": null}"#], &["[]"]);
}

#[test]
fn enum_and_const() {
    check(
        r#"{"enum": ["a", "ab", 1, null, [1, {"b": 2}], {"k": "v"}]}"#,
        &[r#""a""#, r#""ab""#, "1", "null", r#"[1, {"b": 2}]"#, r#"{"k": "v"}"#],
        &[r#""b""#, "2", "[1]", "{}", r#"{"k": "v", "l": 1}"#],
    );
    check(
        r#"{"enum": [1, "a", 2.5, -3], "type": "number", "minimum": 0}"#,
        &["1", "2.5"],
        &[r#""a""#, "-3", "2"],
    );
    check(r#"{"const": {"a": 1, "b": []}}"#, &[r#"{"a": 1, "b": []}"#], &[r#"{"a": 1}"#]);
    check(r#"{"enum": ["a", "b"], "not": {"const": "a"}}"#, &[r#""b""#], &[r#""a""#]);
}

#[test]
fn numbers() {
    check(
        r#"{"type": "integer", "minimum": 1, "maximum": 120}"#,
        &["1", "9", "10", "99", "119", "120"],
        &["0", "-1", "121", "1000", "01"],
    );
    check(r#"{"type": "integer", "maximum": -5}"#, &["-5", "-17"], &["-4", "0", "5"]);
    check(
        r#"{"type": "number", "minimum": 0, "exclusiveMaximum": 1}"#,
        &["0", "0.5", "0.999"],
        &["1", "1.0", "-0.1"],
    );
    check(
        r#"{"type": "number", "exclusiveMinimum": 0}"#,
        &["1e-9", "0.01", "7"],
        &["0", "0.00", "-1"],
    );
    check(
        r#"{"type": "number", "minimum": 0, "exclusiveMinimum": true, "$schema": "http://json-schema.org/draft-04/schema#"}"#,
        &["0.1"],
        &["0", "-1"],
    );
    check(r#"{"type": "integer", "multipleOf": 7}"#, &["0", "-7", "14", "7007"], &["1", "15"]);
    check(r#"{"type": "number", "multipleOf": 0.01}"#, &["1.25", "3", "1.50"], &["1.255"]);
    check(
        r#"{"type": "integer", "minimum": 123456789012345678901234567890}"#,
        &["123456789012345678901234567890", "1000000000000000000000000000000"],
        &["123456789012345678901234567889"],
    );
    check(r#"{"minimum": 5}"#, &["5", r#""text""#, "[]"], &["4"]);
}

#[test]
fn strings() {
    check(
        r#"{"type": "string", "minLength": 2, "maxLength": 3}"#,
        &[r#""ab""#, r#""\n\u00e9b""#, "\"é刺b\""],
        &[r#""a""#, r#""abcd""#],
    );
    check(
        r#"{"type": "string", "maxLength": 5000}"#,
        &[r#""""#, &format!("\"{}\"", "a".repeat(5000))],
        &[&format!("\"{}\"", "a".repeat(5001))],
    );
    check(
        r#"{"type": "string", "minLength": 2500}"#,
        &[&format!("\"{}\"", "a".repeat(2500))],
        &[&format!("\"{}\"", "a".repeat(2499))],
    );
    check(
        r#"{"type": "string", "pattern": "^[a-z]{2,4}(-\\d+)?$"}"#,
        &[r#""ab""#, r#""abcd-42""#],
        &[r#""a""#, r#""ab-""#, r#""AB""#],
    );
    check(r#"{"type": "string", "pattern": "b"}"#, &[r#""b""#, r#""abc""#], &[r#""""#, r#""ac""#]);
    check(r#"{"type": "string", "pattern": "^a|b$"}"#, &[r#""axx""#, r#""xxb""#], &[r#""xax""#]);
    check(
        r#"{"type": "string", "pattern": "^(?!no)[a-z]+$", "maxLength": 4}"#,
        &[r#""yes""#, r#""n""#],
        &[r#""nope""#, r#""yesno""#],
    );
    check(r#"{"type": "string", "pattern": "^\"\\\\$"}"#, &[r#""\"\\""#], &[r#""\"""#]);
    check(
        r#"{"type": "string", "format": "date"}"#,
        &[r#""2024-02-29""#, r#""1999-12-31""#],
        &[r#""2023-02-29""#, r#""2024-13-01""#, r#""today""#],
    );
    check(
        r#"{"type": "string", "format": "ipv4"}"#,
        &[r#""127.0.0.1""#],
        &[r#""256.0.0.1""#, r#""1.2.3""#],
    );
    check(r#"{"type": "string", "format": "no-such-format"}"#, &[r#""anything""#], &["1"]);
}

#[test]
fn arrays() {
    check(
        r#"{"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}"#,
        &["[1]", "[1, 2, 3]"],
        &["[]", "[1, 2, 3, 4]", r#"["a"]"#],
    );
    check(
        r#"{"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false}"#,
        &["[]", "[1]", r#"[1, "a"]"#],
        &[r#"["a"]"#, r#"[1, "a", 2]"#],
    );
    check(
        r#"{"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}}"#,
        &["[]", "[1]", "[1, null, null]"],
        &["[null]", "[1, 2]"],
    );
    check(
        r#"{"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 2, "items": {"type": "null"}}"#,
        &["[1, null]"],
        &["[1]", "[]"],
    );
    check(
        r#"{"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 10}}"#,
        &["[10]", "[1, 12, 3]"],
        &["[]", "[1, 2]"],
    );
    check(
        r#"{"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 1}, "minContains": 2, "maxContains": 2}"#,
        &["[1, 1]", "[2, 1, 2, 1]"],
        &["[1]", "[1, 1, 1]"],
    );
    check(
        r#"{"type": "array", "items": {"enum": ["a", "b", 3]}, "uniqueItems": true, "minItems": 2}"#,
        &[r#"["b", "a"]"#, r#"[3, "a", "b"]"#],
        &[r#"["a"]"#, r#"["a", "a"]"#, r#"["a", "b", "a"]"#],
    );
    check(
        r#"{"type": "array", "items": {"type": "integer"}, "maxItems": 4000}"#,
        &["[]", "[1, 2]"],
        &[r#"["a"]"#],
    );
    check(
        r#"{"type": "array", "items": {"type": "integer"}, "unevaluatedItems": false}"#,
        &["[1, 2]"],
        &[r#"["a"]"#],
    );
}

#[test]
fn objects() {
    let three = r#""properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}"#;
    check(
        &format!(
            r#"{{"type": "object", {three}, "required": ["b"], "additionalProperties": false}}"#
        ),
        &[
            r#"{"b": 1}"#,
            r#"{"a": 1, "b": 2}"#,
            r#"{"b": 2, "c": 3}"#,
            r#"{"a": 1, "b": 2, "c": 3}"#,
        ],
        &["{}", r#"{"a": 1}"#, r#"{"b": 1, "d": 2}"#, r#"{"b": "x"}"#],
    );
    check(
        &format!(r#"{{"type": "object", {three}, "additionalProperties": {{"type": "null"}}}}"#),
        &[
            "{}",
            r#"{"c": 1}"#,
            r#"{"a": 1, "c": 2, "d": null, "e": null}"#,
            r#"{"aa": null}"#,
            r#"{"": null}"#,
        ],
        &[r#"{"d": 1}"#, r#"{"a": null}"#, r#"{"a": 1, "a": null}"#],
    );
    check(
        &format!(
            r#"{{"type": "object", {three}, "minProperties": 2, "maxProperties": 2, "additionalProperties": false}}"#
        ),
        &[r#"{"a": 1, "b": 2}"#, r#"{"a": 1, "c": 2}"#],
        &["{}", r#"{"a": 1}"#, r#"{"a": 1, "b": 2, "c": 3}"#],
    );
    check(
        r#"{"type": "object", "minProperties": 1, "maxProperties": 2, "properties": {"a": {}}}"#,
        &[r#"{"a": 1}"#, r#"{"b": 1}"#, r#"{"a": 1, "b": 2}"#, r#"{"b": 1, "c": 2}"#],
        &["{}", r#"{"a": 1, "b": 1, "c": 1}"#],
    );
    check(
        r#"{"type": "object", "patternProperties": {"^i_": {"type": "integer"}, "_s$": {"type": "string"}}, "additionalProperties": false}"#,
        &["{}", r#"{"i_a": 1, "b_s": "x"}"#],
        &[r#"{"i_a": "x"}"#, r#"{"b": 1}"#, r#"{"i_s": 1}"#, r#"{"i_s": "x"}"#],
    );
    check(
        r#"{"type": "object", "properties": {"i_a": {"minimum": 5}}, "patternProperties": {"^i_": {"type": "integer"}}}"#,
        &[r#"{"i_a": 6, "i_b": 1, "c": "x"}"#],
        &[r#"{"i_a": 4}"#, r#"{"i_b": "x"}"#],
    );
    check(
        r#"{"type": "object", "propertyNames": {"pattern": "^[a-z]$"}, "additionalProperties": {"type": "integer"}}"#,
        &[r#"{"a": 1, "z": 2}"#],
        &[r#"{"ab": 1}"#, r#"{"A": 1}"#],
    );
    check(
        r#"{"type": "object", "required": ["x"]}"#,
        &[r#"{"x": null}"#, r#"{"x": 1, "y": 2}"#],
        &["{}", r#"{"y": 1}"#],
    );
    check(
        r#"{"type": "object", "properties": {"a b\"c": {"type": "null"}}, "additionalProperties": false}"#,
        &[r#"{"a b\"c": null}"#],
        &[r#"{"a": null}"#],
    );
}

#[test]
fn dependents() {
    let base =
        r#""type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false"#;
    check(
        &format!(r#"{{{base}, "dependentRequired": {{"a": ["b"]}}}}"#),
        &["{}", r#"{"b": 1}"#, r#"{"a": 1, "b": 2}"#],
        &[r#"{"a": 1}"#],
    );
    check(
        &format!(r#"{{{base}, "dependencies": {{"a": ["b"]}}}}"#),
        &[r#"{"b": 1}"#],
        &[r#"{"a": 1}"#],
    );
    check(
        &format!(
            r#"{{{base}, "dependentSchemas": {{"a": {{"properties": {{"b": {{"type": "null"}}}}}}}}}}"#
        ),
        &[r#"{"b": 1}"#, r#"{"a": 1, "b": null}"#],
        &[r#"{"a": 1, "b": 1}"#],
    );
}

#[test]
fn combinations() {
    check(
        r#"{"anyOf": [{"type": "string", "maxLength": 1}, {"type": "integer"}]}"#,
        &[r#""a""#, "3"],
        &[r#""ab""#, "null"],
    );
    check(
        r#"{"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 0}]}"#,
        &["10", "0", "-5"],
        &["5"],
    );
    check(
        r#"{"oneOf": [{"type": "integer", "multipleOf": 2}, {"type": "integer", "minimum": 3, "maximum": 3}]}"#,
        &["2", "3"],
        &["1", "5"],
    );
    check(
        r#"{"oneOf": [{"type": "integer", "minimum": 2}, {"type": "integer", "maximum": 4}]}"#,
        &["1", "5"],
        &["2", "3", "4"],
    );
    check(
        r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false}"#,
        &[r#"{"a": 1}"#, r#"{"b": 1}"#],
        &["{}", r#"{"a": 1, "b": 2}"#],
    );
    check(
        r#"{"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"a": {"minimum": 3}, "b": {"type": "null"}}}], "additionalProperties": true}"#,
        &[r#"{"a": 3, "b": null}"#],
        &["{}", r#"{"a": 2}"#, r#"{"a": 3, "b": 1}"#],
    );
    check(r#"{"not": {"type": ["string", "object"]}}"#, &["1", "[]"], &[r#""a""#, "{}"]);
    check(
        r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "not": {"required": ["a"]}}"#,
        &["{}", r#"{"b": 1}"#],
        &[r#"{"a": 1}"#],
    );
    check(
        r#"{"type": "string", "not": {"enum": ["no", "never"]}}"#,
        &[r#""yes""#, r#""n""#, r#""""#],
        &[r#""no""#, r#""never""#],
    );
    check(
        r#"{"type": "integer", "if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"maximum": 3}}"#,
        &["20", "3"],
        &["15", "5"],
    );
    check(
        r#"{"type": "object", "properties": {"kind": {"enum": ["x", "y"]}, "n": {}}, "required": ["kind"], "if": {"properties": {"kind": {"const": "x"}}}, "then": {"required": ["n"]}}"#,
        &[r#"{"kind": "x", "n": 1}"#, r#"{"kind": "y"}"#],
        &[r#"{"kind": "x"}"#],
    );
    check(
        r#"{"type": "object", "properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}], "unevaluatedProperties": false}"#,
        &[r#"{"a": 1, "b": 2}"#],
        &[r#"{"c": 1}"#],
    );
}

#[test]
fn references() {
    check(
        r##"{"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}, "minimum": 3}"##,
        &["3"],
        &["2", r#""a""#],
    );
    check(
        r##"{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}, "minimum": 3}"##,
        &["2"],
        &[r#""a""#],
    );
    check(
        r##"{"type": "object", "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["value"], "additionalProperties": false}"##,
        &[r#"{"value": 1}"#, r#"{"value": 1, "next": {"value": 2, "next": {"value": 3}}}"#],
        &[r#"{"value": 1, "next": {}}"#],
    );
    check(
        r##"{"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "null"}}}"##,
        &["null"],
        &["1"],
    );
    check(
        r##"{"$id": "https://example.com/root", "$ref": "item", "$defs": {"x": {"$id": "item", "$ref": "#/$defs/y", "$defs": {"y": {"type": "boolean"}}}}}"##,
        &["true"],
        &["1"],
    );
    check(
        r##"{"$ref": "#/$defs/a~1b%25c", "$defs": {"a/b%c": {"type": "null"}}}"##,
        &["null"],
        &["1"],
    );
}

#[test]
fn names_of_properties_are_no_keywords() {
    // `dependencies` as a keyword would mean draft 7, where siblings of `$ref` assert nothing.
    check(
        r##"{"type": "object", "properties": {"dependencies": {"type": "array"}, "v": {"$ref": "#/$defs/s", "maxLength": 3}}, "$defs": {"s": {"type": "string"}}, "additionalProperties": false}"##,
        &[r#"{"v": "abc"}"#],
        &[r#"{"v": "abcd"}"#],
    );
    check(
        r##"{"type": "object", "properties": {"default": {"$anchor": "x", "type": "string"}, "b": {"$ref": "#x"}}, "additionalProperties": false}"##,
        &[r#"{"b": "a"}"#],
        &[r#"{"b": 1}"#],
    );
    check(
        r#"{"type": "object", "properties": {"default": {"type": "number", "minimum": 1, "exclusiveMinimum": true}}, "additionalProperties": false}"#,
        &[r#"{"default": 1.5}"#],
        &[r#"{"default": 1}"#],
    );
    check(
        r##"{"$ref": "#/$defs/a%25b", "$defs": {"a%25b": {"type": "null"}, "a%b": {"type": "integer"}}}"##,
        &["1"],
        &["null"],
    );
}

#[test]
fn bounds_that_contradict_each_other_leave_other_types() {
    check(
        r#"{"type": ["string", "null"], "minLength": 2, "maxLength": 1}"#,
        &["null"],
        &[r#""""#, r#""a""#, r#""ab""#],
    );
    check(r#"{"type": ["integer", "null"], "minimum": 2, "maximum": 1}"#, &["null"], &["1", "2"]);
    check(
        r#"{"type": ["object", "null"], "minProperties": 2, "maxProperties": 1}"#,
        &["null"],
        &["{}"],
    );
}

#[test]
fn const_evaluates_nothing() {
    check(
        r#"{"anyOf": [{"type": "object", "const": {"a": 1}, "unevaluatedProperties": false}, {"type": "null"}]}"#,
        &["null"],
        &[r#"{"a": 1}"#],
    );
    check(
        r#"{"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}, "unevaluatedItems": false, "$schema": "https://json-schema.org/draft/2019-09/schema"}"#,
        &["[1]", "[1, null]"],
        &["[1, 2]"],
    );
    check(
        r#"{"type": "array", "additionalItems": true, "unevaluatedItems": false, "$schema": "https://json-schema.org/draft/2019-09/schema"}"#,
        &["[]"],
        &["[1]"],
    );
}

#[test]
fn what_real_sets_contain() {
    // Keys and formats that no draft defines.
    check(
        r#"{"type": "string", "format": "int64", "nullable": true, "x-order": 1}"#,
        &[r#""a""#],
        &["1"],
    );
    // Members of another type than declared.
    check(r#"{"type": "string", "enum": ["a", 1, null]}"#, &[r#""a""#], &["1", "null"]);
    // A property that can never be, and properties without a type.
    check(
        r#"{"type": "object", "properties": {"a": {"type": "object", "enum": ["x"]}, "b": {"description": "anything"}}, "additionalProperties": false}"#,
        &["{}", r#"{"b": [1]}"#],
        &[r#"{"a": "x"}"#, r#"{"a": {}}"#],
    );
    // Bounds beyond what llama.cpp counts.
    check(
        r#"{"type": "array", "items": {"type": "array", "items": {"type": "null"}, "maxItems": 100000}, "maxItems": 100000}"#,
        &["[[null], []]"],
        &["[null]"],
    );
}
