//! Definitions: what is read, and what each mistake is told.

use call_me_maybe::definitions::{self, DefinitionError};
use serde_json::{Value, json};

/// The names and parameters that come out, or the error.
#[track_caller]
fn check(file: &[u8], expected: &str) {
    let found = match definitions::parse(file) {
        Ok(functions) => functions
            .iter()
            .map(|function| format!("{} {} {}", function.place, function.name, function.parameters))
            .collect::<Vec<_>>()
            .join("\n"),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(found, expected);
}

#[track_caller]
fn check_parameters(parameters: &str, expected: &str) {
    let file = format!(r#"{{"name": "f", "parameters": {parameters}}}"#);
    check(file.as_bytes(), expected);
}

const NONE: &str = r#"{"type":"object","properties":{},"required":[]}"#;
const ONE: &str = r#"{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}"#;

#[test]
fn a_list_may_be_wrapped_or_a_single_function() {
    check(b"[]", "");
    check(b"\xef\xbb\xbf[\r\n]\r\n", "");
    for (file, place) in [
        (r#"[{"name": "f", "parameters": {"a": {"type": "float"}}}]"#, "/0"),
        (r#"{"name": "f", "parameters": {"a": {"type": "float"}}}"#, ""),
        (r#"{"tools": [{"name": "f", "parameters": {"a": {"type": "float"}}}]}"#, "/tools/0"),
        (
            r#"{"functions": [{"name": "f", "parameters": {"a": {"type": "float"}}}]}"#,
            "/functions/0",
        ),
        (
            r#"{"result": {"tools": [{"name": "f", "parameters": {"a": {"type": "float"}}}]}}"#,
            "/result/tools/0",
        ),
        (r#"[{"fn_name": "f", "args_names": ["a"], "args_types": {"a": "float"}}]"#, "/0"),
    ] {
        check(file.as_bytes(), &format!("{place} f {ONE}"));
    }
    check(br#"{"tools": []}"#, "");
}

#[test]
fn no_parameters_have_several_spellings() {
    for parameters in ["{}", "null"] {
        check_parameters(parameters, &format!(" f {NONE}"));
    }
    check(br#"[{"name": "f"}]"#, &format!("/0 f {NONE}"));
    check(br#"[{"fn_name": "f"}]"#, &format!("/0 f {NONE}"));
    check_parameters(r#"{"type": "dict"}"#, r#" f {"type":"object"}"#);
}

#[test]
fn the_short_format_is_told_from_a_schema() {
    let short = |map: &str| {
        let map: Value = serde_json::from_str(map).unwrap();
        let names: Vec<&String> = map.as_object().unwrap().keys().collect();
        format!(" f {}", json!({"type": "object", "properties": map, "required": names}))
    };
    for map in [
        r#"{"type":{"type":"string"}}"#,
        r#"{"properties":{"type":"string"}}"#,
        r#"{"items":{"type":"string"}}"#,
        r#"{"required":{"type":"boolean"}}"#,
        r#"{"enum":{"type":"string"},"const":{"enum":[1]},"not":{}}"#,
        r#"{"type":{"type":"string"},"properties":{"type":"object"},"items":{"items":{}}}"#,
        r#"{"title":{"description":"a title"}}"#,
    ] {
        check_parameters(map, &short(map));
    }
    for schema in [
        r#"{"type":"object","properties":{"a":{}}}"#,
        r#"{"type":["object","null"],"properties":{"a":{}}}"#,
        r#"{"properties":{"a":{"type":"string"},"b":true}}"#,
        r#"{"required":["a"]}"#,
        r#"{"anyOf":[{"required":["a"]}]}"#,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{}}}"##,
        r#"{"type":"string"}"#,
        r#"{"description":"nothing","additionalProperties":false}"#,
    ] {
        check_parameters(schema, &format!(" f {schema}"));
    }
}

#[test]
fn python_type_names_become_json_types_in_schemas_only() {
    check_parameters(
        r#"{"type":"dict","properties":{"int":{"type":["str","None"]},"l":{"type":"list","items":{"type":"tuple","items":[{"type":"bool"}]}},"m":{"type":"dict","additionalProperties":{"anyOf":[{"type":"float"},{"type":"NoneType"}]}},"v":{"enum":["int",{"type":"int"}],"const":{"type":"str"},"default":{"type":"str"},"examples":[{"type":"str"}]},"u":{"type":"decimal"}}}"#,
        r#" f {"type":"object","properties":{"int":{"type":["string","null"]},"l":{"type":"array","items":{"type":"array","items":[{"type":"boolean"}]}},"m":{"type":"object","additionalProperties":{"anyOf":[{"type":"number"},{"type":"null"}]}},"v":{"enum":["int",{"type":"int"}],"const":{"type":"str"},"default":{"type":"str"},"examples":[{"type":"str"}]},"u":{"type":"decimal"}}}"#,
    );
}

#[test]
fn bytes_and_syntax_have_a_place() {
    check(
        b"[\"\xff\"]",
        "error: not UTF-8: the first bad byte is at offset 2; save the file as UTF-8",
    );
    check(
        b" \r\n",
        "error: the file is empty; write a JSON array of function definitions, or [] for none",
    );
    check(b"[\r\n  {,}]", "error: not JSON: key must be a string at line 2, column 4");
    check(b"[{}", "error: not JSON: EOF while parsing a list at line 1, column 3");
    check(b"[],", "error: not JSON: trailing characters at line 1, column 3");
    let deep = "[".repeat(1000);
    check(deep.as_bytes(), "error: not JSON: recursion limit exceeded at line 1, column 128");
}

#[test]
fn each_mistake_is_told_apart() {
    for (file, expected) in [
        ("7", "top level: expected an array of function definitions, found a number"),
        (r#"{"tools": {}}"#, "/tools: expected an array of function definitions, found an object"),
        (
            r#"["f"]"#,
            "/0: expected a function definition, an object with a \"name\", found a string",
        ),
        (
            r#"[{"type": "function", "function": "f"}]"#,
            "/0/function: expected a function definition, an object with a \"name\", found a string",
        ),
        ("[{}]", r#"/0: the function has no "name"; add one, such as "name": "fn_greet""#),
        (
            r#"[{"type": "function", "function": {}}]"#,
            r#"/0/function: the function has no "name"; add one, such as "name": "fn_greet""#,
        ),
        (r#"[{"name": 1}]"#, "/0/name: the function's name must be a string, found a number"),
        (
            r#"[{"name": ""}]"#,
            "/0/name: the function's name is empty; write the name that the call shall carry",
        ),
        (
            r#"[{"name": "f", "description": []}]"#,
            "/0/description: the description must be a string, found an array; remove it or put it in quotes",
        ),
        (
            r#"[{"name": "f", "parameters": []}]"#,
            r#"/0/parameters: the parameters must be an object, {"a": {"type": "number"}} or a JSON Schema, found an array; for no parameters write {}"#,
        ),
        (
            r#"[{"name": "f", "parameters": {"a": "number"}}]"#,
            r#"/0/parameters/a: the parameter "a" must be described by an object, such as "a": {"type": "number"}, found a string"#,
        ),
        (
            r#"[{"name": "f", "parameters": {"a/b": {"type": "number"}, "description": "x"}}]"#,
            r#"/0/parameters/description: the parameter "description" must be described by an object, such as "description": {"type": "number"}, found a string"#,
        ),
        (
            r#"[{"name": "f"}, {"name": "g"}, {"fn_name": "f"}]"#,
            r#"/2: the function name "f" is already taken by /0; rename one"#,
        ),
        (
            r#"[{"fn_name": "f", "args_names": "a"}]"#,
            r#"/0/args_names: args_names must be an array of strings, such as ["a", "b"], found a string"#,
        ),
        (
            r#"[{"fn_name": "f", "args_names": [1]}]"#,
            r#"/0/args_names/0: args_names must be an array of strings, such as ["a", "b"], found a number"#,
        ),
        (
            r#"[{"fn_name": "f", "args_names": ["a"]}]"#,
            r#"/0/args_names/0: args_names has "a", which args_types lacks; add its type there"#,
        ),
        (
            r#"[{"fn_name": "f", "args_names": ["a", "a"], "args_types": {"a": "int"}}]"#,
            r#"/0/args_names/1: args_names has "a" twice; remove one"#,
        ),
        (
            r#"[{"fn_name": "f", "args_names": [], "args_types": {"a": "int"}}]"#,
            r#"/0/args_types/a: args_types has "a", which args_names lacks; add it there or remove it here"#,
        ),
        (
            r#"[{"fn_name": "f", "args_names": ["a"], "args_types": {"a": 1}}]"#,
            r#"/0/args_types/a: args_types must map names to type names, such as {"a": "float"}, found a number"#,
        ),
        (
            r#"[{"fn_name": "f", "args_types": []}]"#,
            r#"/0/args_types: args_types must map names to type names, such as {"a": "float"}, found an array"#,
        ),
    ] {
        check(file.as_bytes(), &format!("error: {expected}"));
    }
}

#[test]
fn a_pointer_leads_back_into_the_file() {
    let file = r#"[
        {"name": "short", "parameters": {"a": {"type": "number"}}},
        {"type": "function", "function": {"name": "nested", "parameters": {"type": "object"}}},
        {"name": "mcp", "inputSchema": {"type": "object"}},
        {"fn_name": "old", "args_names": ["a"], "args_types": {"a": "int"}}
    ]"#;
    let functions = definitions::parse(file.as_bytes()).unwrap();
    for (index, pointer, expected) in [
        (0, "/properties/a/type", "/0/parameters/a/type"),
        (0, "/properties", "/0/parameters"),
        (0, "/required", "/0/parameters"),
        (0, "", "/0/parameters"),
        (1, "/properties/a/type", "/1/function/parameters/properties/a/type"),
        (2, "/properties/a", "/2/inputSchema/properties/a"),
        (3, "/properties/a/type", "/3/args_types/a"),
        (3, "/required", "/3/args_types"),
    ] {
        assert_eq!(functions[index].pointer_in_file(pointer), expected);
    }
}

#[test]
fn a_tool_is_what_chat_templates_are_given() {
    let file = br#"[{"name": "f", "description": "d", "parameters": {"a": {"type": "int"}}}, {"name": "g"}]"#;
    let functions = definitions::parse(file).unwrap();
    assert_eq!(
        functions[0].tool().to_string(),
        r#"{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}"#
    );
    assert_eq!(functions[1].tool()["function"].get("description"), None);
}

#[test]
fn a_records_own_functions_have_its_place() {
    let error = definitions::from_value(&json!([{"name": ""}]), "/4/functions").unwrap_err();
    assert!(
        matches!(error, DefinitionError::Malformed { pointer, .. } if pointer == "/4/functions/0/name")
    );
}

#[test]
fn an_enum_on_a_required_array_of_single_items_moves_to_the_items() {
    for (written, expected) in [
        (
            r#"{"type":"array","items":{"type":"string"},"enum":["a","b"]}"#,
            r#"{"type":"array","items":{"type":"string","enum":["a","b"]}}"#,
        ),
        (r#"{"type":"list","enum":["a"]}"#, r#"{"type":"array","items":{"enum":["a"]}}"#),
        // As the standard has it, these say something.
        (r#"{"type":"array","enum":[["a"],[]]}"#, r#"{"type":"array","enum":[["a"],[]]}"#),
        (
            r#"{"type":"array","items":{"enum":["b"]},"enum":["a"]}"#,
            r#"{"type":"array","items":{"enum":["b"]},"enum":["a"]}"#,
        ),
    ] {
        let object = |schema: &str, required: &str| {
            format!(r#"{{"type":"object","properties":{{"p":{schema}}},"required":[{required}]}}"#)
        };
        check_parameters(&object(written, r#""p""#), &format!(" f {}", object(expected, r#""p""#)));
        // In the short form everything is required.
        check_parameters(
            &format!(r#"{{"p":{written}}}"#),
            &format!(" f {}", object(expected, r#""p""#)),
        );
    }
    // Without it the object is valid, so the schema may be meant.
    let optional = r#"{"type":"object","properties":{"p":{"type":"array","enum":["a"]}}}"#;
    check_parameters(optional, &format!(" f {optional}"));
}
