//! `callme eval`: the rules by hand, the same verdicts as the scripts beside the repository, and the command.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use call_me_maybe::definitions::{self, FunctionDef};
use call_me_maybe::eval::{Call, Prediction, Reason, Scored, Scoring, cases, predictions, score};
use serde_json::{Map, Value, json};

use crate::cli::{callme, compare};
use crate::coverage::cases::Random;
use crate::coverage::shared;

/// The reasons in strict and in lenient scoring, `right` where there is none; one word where they are the same.
fn verdicts(case: &Value, calls: Option<&Value>) -> String {
    let case = &cases(case.to_string().as_bytes(), "c").unwrap()[0];
    let prediction = calls.map_or(Prediction::default(), |calls| {
        let line = json!({"id": case.id, "calls": calls}).to_string();
        predictions(line.as_bytes(), std::slice::from_ref(case)).unwrap().0.remove(0)
    });
    let [strict, lenient] = [Scoring::Strict, Scoring::Lenient].map(|scoring| {
        let Scored { right, reason, .. } = score(case, &[], prediction.clone(), scoring);
        assert_eq!(right, reason.is_none());
        reason.map_or("right", call_me_maybe::eval::Reason::name)
    });
    if strict == lenient { strict.to_owned() } else { format!("{strict}, {lenient}") }
}

/// `schema` is of the parameter `a`, which is required unless `""` is among its options.
#[track_caller]
fn check(schema: &str, options: &str, value: &str, expected: &str) {
    let [schema, options, value]: [Value; 3] =
        [schema, options, value].map(|text| serde_json::from_str(text).unwrap());
    let parameters = json!({"type": "object", "properties": {"a": schema}});
    let functions = json!([{"name": "f", "parameters": parameters}]);
    let case = json!({"prompt": "", "functions": functions, "expected": [{"f": {"a": options}}]});
    let calls = json!([{"name": "f", "arguments": {"a": value}}]);
    assert_eq!(verdicts(&case, Some(&calls)), expected, "{options} {value}");
}

const STRING: &str = r#"{"type": "string"}"#;
const INTEGER: &str = r#"{"type": "integer"}"#;
const NUMBER: &str = r#"{"type": "number"}"#;
const BOOLEAN: &str = r#"{"type": "boolean"}"#;

#[test]
fn strings_are_compared_without_typography() {
    check(STRING, r#"["San Francisco, CA"]"#, r#""san-francisco_ca.""#, "right");
    check(STRING, r#"["it\"s"]"#, r#""It's""#, "right");
    check(STRING, r#"["San Francisco"]"#, r#""San Francisco!""#, "wrong_value");
    check(STRING, r#"["ab"]"#, r#""a\tb""#, "wrong_value");
    check(STRING, r#"["5"]"#, "5", "wrong_type");
    check(STRING, r#"["x", null]"#, "null", "wrong_type, right");
    check(STRING, r#"["", null]"#, "null", "right");
    // What is left of it is as good as left out.
    check(STRING, r#"["", "x"]"#, r#"" - ""#, "right");
}

#[test]
fn an_integer_is_a_number_and_no_number_is_an_integer() {
    check(NUMBER, "[5.0]", "5", "right");
    check(NUMBER, "[5]", "5.0", "right");
    check(INTEGER, "[5]", "5.0", "wrong_type, right");
    check(INTEGER, "[1]", "true", "wrong_type");
    check(BOOLEAN, "[true]", "1", "wrong_type");
    check(BOOLEAN, "[false]", "true", "wrong_value");
    check(INTEGER, "[100000000000000000000]", "100000000000000000001", "wrong_value");
    check(NUMBER, "[1e400]", "1e400", "right");
}

#[test]
fn what_is_not_declared_is_a_string_or_like_the_first_option() {
    check("{}", r#"["tx"]"#, r#""T.x""#, "right");
    check("{}", "[7]", "7", "right");
    check("{}", r#"["", 7]"#, "7.0", "wrong_type, right");
    // A variable in place of a list: it stands as it is.
    let list = r#"{"type": "array", "items": {"type": "integer"}}"#;
    check(list, r#"["data"]"#, r#""data""#, "right");
    check(list, r#"["data"]"#, r#""Data""#, "wrong_value, right");
    check(r#"{"type": ["string", "null"]}"#, r#"["a"]"#, r#""A""#, "wrong_value, right");
}

#[test]
fn lists_are_compared_item_by_item() {
    let (strings, numbers) = (
        r#"{"type": "array", "items": {"type": "string"}}"#,
        r#"{"type": "array", "items": {"type": "number"}}"#,
    );
    check(strings, r#"[["x"], ["ab", "C."]]"#, r#"["A b", "c"]"#, "right");
    check(strings, r#"[["ab", "c"]]"#, r#"["c", "ab"]"#, "wrong_value");
    check(strings, r#"["", ["x"]]"#, "[]", "right");
    check(strings, r#"[["1"]]"#, "[1]", "wrong_item_type");
    check(numbers, "[[1.0, 3.0]]", "[1, 3]", "wrong_item_type, right");
    check(numbers, "[[1, 3]]", "[1, 3]", "right");
    check(numbers, "[[1, 3]]", "[1.0, 3.0]", "right");
    check(
        r#"{"type": "array", "items": {"type": "array"}}"#,
        r#"[[["a"]]]"#,
        r#"[["A"]]"#,
        "wrong_value, right",
    );
}

#[test]
fn members_of_objects_have_options_of_their_own() {
    let object = r#"{"type": "object", "properties": {}}"#;
    let options = r#"[{"u": ["X y"], "v": ["", 1]}]"#;
    check(object, options, r#"{"u": "xy"}"#, "right");
    check(object, options, r#"{"u": "xy", "v": 1}"#, "right");
    check(object, options, r#"{"u": "xy", "v": 2}"#, "wrong_value");
    check(object, options, r#"{"v": 1}"#, "wrong_value");
    check(object, options, r#"{"u": "xy", "w": 1}"#, "wrong_value");
    check(object, r#"[{"u": [{"w": ["a"]}]}]"#, r#"{"u": {"w": "a"}}"#, "wrong_value, right");
    let list = r#"{"type": "array", "items": {"type": "object"}}"#;
    let options = r#"[[{"u": ["x"]}, {"u": ["y"]}]]"#;
    check(list, options, r#"[{"u": "X"}, {"u": "Y"}]"#, "right");
    check(list, options, r#"[{"u": "Y"}, {"u": "X"}]"#, "wrong_value");
    check(list, options, r#"[{"u": "X"}]"#, "wrong_value");
}

const FUNCTIONS: &str = r#"[
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string", "x-old-type": "str"},
        "b": {"type": "integer"}, "c": {"type": "integer"}}, "required": ["a"]}},
    {"name": "g", "parameters": {"type": "object", "properties": {}}}]"#;

#[track_caller]
fn check_calls(category: &str, expected: &str, calls: &str, verdict: &str) {
    let [functions, expected]: [Value; 2] =
        [FUNCTIONS, expected].map(|text| serde_json::from_str(text).unwrap());
    let mut case = json!({"prompt": "", "functions": functions, "expected": expected});
    if !category.is_empty() {
        case["category"] = category.into();
    }
    let calls: Option<Value> = serde_json::from_str(calls).ok();
    assert_eq!(verdicts(&case, calls.as_ref()), verdict, "{category} {expected} {calls:?}");
}

#[test]
fn a_call_has_the_name_and_the_arguments_of_its_answer() {
    let answer = r#"[{"f": {"a": ["x"], "b": [1], "c": ["", 2]}}]"#;
    for (call, verdict) in [
        (r#"{"name": "f", "arguments": {"a": "x", "b": 1}}"#, "right"),
        (r#"{"name": "f", "arguments": {"a": "x", "b": 1, "c": 2}}"#, "right"),
        (r#"{"name": "f", "arguments": {"a": "x", "b": 1, "c": 3}}"#, "wrong_value"),
        (r#"{"name": "f", "arguments": {"b": 1}}"#, "missing_required"),
        (r#"{"name": "f", "arguments": {"a": "x"}}"#, "missing_argument"),
        (r#"{"name": "f", "arguments": {"a": "x", "b": 1, "d": 2}}"#, "unexpected_argument"),
        (r#"{"name": "f", "arguments": []}"#, "bad_arguments"),
        (r#"{"name": "f", "arguments": "{\"a\": \"x\", \"b\": 1}"}"#, "right"),
        (r#"{"name": "f", "arguments": "{"}"#, "bad_arguments"),
        (r#"{"name": "f"}"#, "missing_required"),
        (r#"{"name": "g", "arguments": {}}"#, "wrong_function"),
        (r#"{"name": null, "arguments": {}}"#, "wrong_function"),
    ] {
        check_calls("", answer, &format!("[{call}]"), verdict);
    }
    check_calls("", answer, "[]", "wrong_count");
    check_calls("", answer, "none", "no_prediction");
    check_calls("", r#"[{"h": {}}]"#, r#"[{"name": "h"}]"#, "bad_record");
    // An argument that the label has and the function has not.
    let call = r#"[{"name": "g", "arguments": {"a": 1}}]"#;
    check_calls("", r#"[{"g": {"a": [1]}}]"#, call, "unexpected_argument");
}

#[test]
fn the_category_says_how_many_calls_there_are() {
    let (x, y) = (
        r#"{"name": "f", "arguments": {"a": "x", "b": 1}}"#,
        r#"{"name": "f", "arguments": {"a": "y"}}"#,
    );
    let two = r#"[{"f": {"a": ["x"], "b": ["", 1]}}, {"f": {"a": ["y"]}}]"#;
    check_calls("live_parallel", two, &format!("[{x}, {y}]"), "right");
    check_calls("parallel", two, &format!("[{y}, {x}]"), "right");
    check_calls("", two, &format!("[{y}, {x}]"), "right");
    check_calls("parallel", two, &format!("[{y}, {y}]"), "unmatched_answer");
    check_calls("parallel", two, &format!("[{y}]"), "wrong_count");
    // The first answer takes the call that only it fits, unless it can make room.
    let greedy = r#"[{"f": {"a": ["x", "y"], "b": ["", 1]}}, {"f": {"a": ["y"]}}]"#;
    check_calls("parallel", greedy, &format!("[{y}, {x}]"), "unmatched_answer, right");
    check_calls("irrelevance", "[]", "[]", "right");
    check_calls("", "[]", "[]", "right");
    check_calls("", "[]", &format!("[{x}]"), "called");
    check_calls("live_irrelevance", "[]", "none", "no_prediction");
    check_calls("live_relevance", "[]", &format!("[{x}]"), "right");
    check_calls("live_relevance", "[]", "[]", "no_call");
}

#[test]
fn one_call_is_a_label_too() {
    let label = r#"{"name": "f", "arguments": {"a": "x", "b": 1}}"#;
    check_calls("", label, &format!("[{label}]"), "right");
    check_calls("", label, r#"[{"name": "f", "parameters": {"a": "X.", "b": 1}}]"#, "right");
    check_calls("", label, r#"[{"name": "f", "parameters": {"a": "x"}}]"#, "missing_argument");
    let nested = json!({"o": {"k": [1, 2]}, "l": [{"k": "v"}]});
    let functions = json!([{"name": "f", "parameters": {"o": {"type": "object"}, "l": {"type": "array", "items": {"type": "object"}}}}]);
    let call = json!({"name": "f", "parameters": nested});
    let case = json!({"prompt": "", "functions": functions, "expected": call});
    assert_eq!(verdicts(&case, Some(&json!([call]))), "right");
}

#[test]
fn notes_of_a_converter_are_not_shown_to_a_model() {
    let case = json!({"prompt": "", "expected": [], "functions": serde_json::from_str::<Value>(FUNCTIONS).unwrap()});
    let case = &cases(case.to_string().as_bytes(), "c").unwrap()[0];
    let functions = case.request.functions.as_ref().unwrap();
    assert!(!functions[0].tool().to_string().contains("x-old-type"));
    assert_eq!((case.id.as_str(), case.category.as_str()), (Some("c/0"), "c"));
}

#[test]
fn labels_and_predictions_that_are_none_are_told_with_their_place() {
    let good = r#"{"id": 1, "prompt": "p", "expected": []}"#;
    for (line, error) in [
        ("{", "line 2, column 1: EOF while parsing an object"),
        ("7", "line 2: a number is no prompt; give an object with \"prompt\", or a string"),
        (r#""p""#, "line 2: no label; give \"expected\", or \"name\" and \"parameters\""),
        (
            r#"{"expected": []}"#,
            "line 2: no \"prompt\"; give each record one, or remove the record",
        ),
        (
            r#"{"prompt": "p", "name": "f"}"#,
            "line 2: no label; give \"expected\", or \"name\" and \"parameters\"",
        ),
        (
            r#"{"prompt": "p", "expected": ["f"]}"#,
            "line 2, /expected/0: a string is not what belongs here; give {FUNCTION: {PARAMETER: [VALUES]}}, or a call {\"name\", \"arguments\"}",
        ),
        (
            r#"{"prompt": "p", "expected": [{"f": {"a/b": 1}}]}"#,
            "line 2, /expected/0/f/a~1b: a number is not what belongs here; give the list of right values",
        ),
        (
            r#"{"prompt": "p", "name": null, "parameters": {}}"#,
            "line 2, /name: null is not what belongs here; give the function's name, a string",
        ),
        (
            r#"{"prompt": "p", "category": 1, "expected": []}"#,
            "line 2, /category: a number is not what belongs here; give a string, or leave it out",
        ),
    ] {
        let found = cases(format!("{good}\n{line}\n").as_bytes(), "c").unwrap_err();
        assert_eq!(found.to_string(), error);
    }
    let cases = cases(good.as_bytes(), "c").unwrap();
    for (file, error) in [
        (
            r#"[{"id": 1}]"#,
            "/0 (record 1): no call; give \"calls\", a list, or \"name\" and \"parameters\"",
        ),
        (
            "{\"id\": 1, \"calls\": []}\n{\"id\": 1, \"name\": null}",
            "line 2: the id 1 is predicted twice; leave one out",
        ),
        (
            "{\"id\": 1, \"calls\": []}\n{\"calls\": []}",
            "line 2: no \"id\", which the first record has; give one to all, or to none for the order of the cases",
        ),
        (
            r#"[{"id": 1, "calls": [7]}]"#,
            "/0/calls/0: a number is not what belongs here; give a call {\"name\", \"arguments\"}",
        ),
        (
            r#"[{"id": 1, "calls": {}}]"#,
            "/0/calls: an object is not what belongs here; give a list of calls",
        ),
    ] {
        let found = predictions(file.as_bytes(), &cases).unwrap_err();
        assert_eq!(found.to_string(), error);
    }
}

#[test]
fn predictions_are_found_by_id_or_place() {
    let file = br#"[{"id": "a", "prompt": "p", "expected": []}, {"id": 2, "prompt": "q", "expected": []}]"#;
    let cases = cases(file, "c").unwrap();
    let call = || Call { name: "f".to_owned(), parameters: json!({}) };
    let read = |file: &str| predictions(file.as_bytes(), &cases).unwrap();
    let [none, one] = [vec![], vec![call()]].map(Prediction::calls);
    let failed =
        |error: &str| Prediction { error: Some(error.to_owned()), ..Prediction::default() };
    assert_eq!(
        read("{\"id\": 2, \"name\": \"f\", \"parameters\": {}}\n{\"id\": \"x\", \"name\": null}\n"),
        (vec![failed("none for this case"), one.clone()], 1)
    );
    assert_eq!(
        read(
            r#"{"records": [{"id": 2, "calls": [], "right": true}, {"id": "a", "calls": null, "error": "no"}]}"#
        ),
        (vec![failed("no"), none.clone()], 0)
    );
    assert_eq!(
        read(
            r#"[{"prompt": "p", "name": "f", "parameters": {}}, {"prompt": "p", "name": "f", "parameters": {}}]"#
        ),
        (vec![one, failed("it has another prompt")], 0)
    );
    assert_eq!(
        read(
            r#"[{"prompt": "p", "name": null, "parameters": {}}, {"prompt": "q", "parameters": {}, "name": "f"}]"#
        ),
        (vec![none, failed("its keys are not prompt, name and parameters")], 0)
    );
}

// The scripts beside the repository.

/// The script of that name, where it and a Python to run it are there; else says what is missing.
fn script(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/tools").join(name);
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    if path.is_file() && has_python {
        return Some(path);
    }
    let missing = if has_python { path.display().to_string() } else { "python3".to_owned() };
    let _ = writeln!(std::io::stderr(), "skipped: there is no {missing}");
    None
}

fn python(arguments: &[&Path]) -> Vec<u8> {
    let output = Command::new("python3").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A value that the label takes; `""` among options of an object's member leaves it out.
fn value_of(option: &Value, random: &mut Random) -> Value {
    match option {
        Value::Object(members) => {
            let member = |(key, options): (&String, &Value)| {
                let options = options.as_array().cloned().unwrap_or_else(|| vec![options.clone()]);
                let chosen = options.get(random.below(options.len()))?;
                (chosen != "").then(|| (key.clone(), chosen.clone()))
            };
            Value::Object(members.iter().filter_map(member).collect())
        }
        Value::Array(items) => items.iter().map(|item| value_of(item, random)).collect(),
        other => other.clone(),
    }
}

fn right_calls(expected: &Value, random: &mut Random) -> Vec<Value> {
    let mut calls = Vec::new();
    for answer in expected.as_array().unwrap() {
        let (name, parameters) = answer.as_object().unwrap().iter().next().unwrap();
        let mut arguments = Map::new();
        for (parameter, options) in parameters.as_object().unwrap() {
            let options = options.as_array().unwrap();
            let option = options[random.below(options.len())].clone();
            // A parameter that may be left out may also be given so.
            if option != "" || random.once_in(20) {
                arguments.insert(parameter.clone(), value_of(&option, random));
            }
        }
        calls.push(json!({"name": name, "arguments": arguments}));
    }
    calls
}

fn integer(number: &serde_json::Number) -> Value {
    serde_json::from_str(&format!("{:.0}", number.as_f64().unwrap())).unwrap()
}

/// Another value, near enough to be right now and then.
fn mutated(value: &Value, random: &mut Random) -> Value {
    let odd = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-2.5),
        json!("x"),
        json!(""),
        json!([]),
        json!({}),
    ];
    match (value, random.below(9)) {
        (_, 0) => odd[random.below(odd.len())].clone(),
        (value, 1) => json!([value]),
        (Value::String(text), 2) => json!(text.to_uppercase()),
        (Value::String(text), 3) => json!(text.replace(' ', "_").replace(',', "")),
        (Value::String(text), 4) => json!(format!("{text}.")),
        (Value::String(text), 5) => json!(text.replace('\'', "\"")),
        (Value::String(text), 6) => json!(format!("{text}!")),
        (Value::String(text), _) => {
            text.parse::<f64>().map_or(json!(text.trim_end_matches('s')), |n| json!(n))
        }
        (Value::Number(number), 2 | 3) => {
            serde_json::from_str(&format!("{number}.0")).unwrap_or_else(|_| integer(number))
        }
        (Value::Number(number), 4) => json!(number.to_string()),
        (Value::Number(number), 5) => json!(number.as_f64().unwrap() + 1.0),
        (Value::Number(number), _) => integer(number),
        (Value::Bool(truth), 2..=4) => json!(i32::from(*truth)),
        (Value::Bool(truth), 5) => json!(truth.to_string()),
        (Value::Bool(truth), _) => json!(!truth),
        (Value::Array(items), 2) => items.iter().rev().cloned().collect(),
        (Value::Array(items), 3) => items.iter().skip(1).cloned().collect(),
        (Value::Array(items), _) => {
            let at = random.below(items.len());
            let mut items = items.clone();
            if let Some(item) = items.get_mut(at) {
                *item = mutated(item, random);
            }
            items.into()
        }
        (Value::Object(members), kind) => {
            let mut members = members.clone();
            let key = members.keys().nth(random.below(members.len())).cloned();
            match (key, kind) {
                (Some(key), 2) => _ = members.shift_remove(&key),
                (_, 3) => _ = members.insert("another".to_owned(), json!(1)),
                (Some(key), _) => members[&key] = mutated(&members[&key].clone(), random),
                (None, _) => {}
            }
            members.into()
        }
        (Value::Null, _) => json!("null"),
    }
}

fn mutate(calls: &mut Vec<Value>, record: &Value, random: &mut Random) {
    let functions = record["functions"].as_array().unwrap();
    let Some(function) = functions.get(random.below(functions.len())) else { return };
    if calls.is_empty() || random.once_in(12) {
        calls.push(json!({"name": function["name"], "arguments": {}}));
        return;
    }
    let at = random.below(calls.len());
    let kind = random.below(16);
    let call = &mut calls[at];
    // One that was mutated into something else is left as it is.
    let Some(arguments) = call["arguments"].as_object().cloned() else { return };
    let key = arguments.keys().nth(random.below(arguments.len())).cloned();
    match (kind, key) {
        (0, _) => calls.clear(),
        (1, _) => calls.reverse(),
        (2, _) => _ = calls.remove(at),
        (3, _) => calls.push(calls[at].clone()),
        (4, _) => call["name"] = function["name"].clone(),
        (5, _) => call["name"] = json!(call["name"].as_str().unwrap_or_default().replace('.', "_")),
        (6, _) => call["arguments"] = json!(Value::Object(arguments).to_string()),
        (7, _) => call["arguments"] = [json!([]), json!("{"), json!(null)][random.below(3)].clone(),
        (8, _) => call["arguments"]["bogus"] = json!(1),
        (9, _) => {
            let properties = function["parameters"]["properties"].as_object();
            for name in properties.into_iter().flat_map(Map::keys) {
                if !arguments.contains_key(name) {
                    call["arguments"][name] = json!("");
                }
            }
        }
        (10 | 11, Some(key)) => _ = call["arguments"].as_object_mut().unwrap().shift_remove(&key),
        (_, Some(key)) => call["arguments"][&key] = mutated(&arguments[&key], random),
        (_, None) => {}
    }
}

#[test]
fn verdicts_and_reasons_are_those_of_the_script() {
    let (Some(folder), Some(script)) = (shared("bfcl"), script("score_bfcl.py")) else { return };
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files.extend(shared("extra").map(|folder| folder.join("sealtools.jsonl")));
    let random = &mut Random::new(5);
    let (mut records, mut answers) = (String::new(), String::new());
    let mut n = 0;
    for line in files.iter().flat_map(|path| {
        fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    }) {
        let mut record: Value = serde_json::from_str(&line).unwrap();
        if random.once_in(40) {
            record["category"] = json!("live_relevance");
        }
        let is_empty = record["expected"].as_array().unwrap().is_empty();
        let all: &[usize] = if is_empty { &[0, 1] } else { &[0, 0, 1, 1, 1, 1, 1, 2, 2, 3] };
        for n_mutations in all {
            n += 1;
            record["id"] = json!(format!("case {n}"));
            let mut calls = right_calls(&record["expected"], random);
            for _ in 0..*n_mutations {
                mutate(&mut calls, &record, random);
            }
            writeln!(records, "{record}").unwrap();
            if !random.once_in(100) {
                writeln!(answers, "{}", json!({"id": record["id"], "calls": calls})).unwrap();
            }
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    fs::write(path("cases.jsonl"), &records).unwrap();
    fs::write(path("answers.jsonl"), &answers).unwrap();
    let cases = cases(records.as_bytes(), "cases").unwrap();
    let (answers, n_unknown) = predictions(answers.as_bytes(), &cases).unwrap();
    assert_eq!(n_unknown, 0);
    let mut n_by_reason: HashMap<String, usize> = HashMap::new();
    for scoring in [Scoring::Strict, Scoring::Lenient] {
        let [pred, failures] = ["--pred", "--failures"].map(Path::new);
        let (answers_file, out, data) =
            (path("answers.jsonl"), path("failures"), path("cases.jsonl"));
        let mut arguments: Vec<&Path> = vec![&script, pred, &answers_file, failures, &out, &data];
        if scoring == Scoring::Lenient {
            arguments.push(Path::new("--lenient"));
        }
        python(&arguments);
        let theirs: HashMap<String, Value> = fs::read_to_string(&out)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|failure| (failure["id"].as_str().unwrap().to_owned(), failure))
            .collect();
        for (case, answer) in cases.iter().zip(&answers) {
            let own = score(case, &[], answer.clone(), scoring);
            let failure = theirs.get(case.id.as_str().unwrap());
            let their_reason = failure.map(|failure| failure["reason"].as_str().unwrap());
            let own_reason = own.reason.map(call_me_maybe::eval::Reason::name);
            assert_eq!(own_reason, their_reason, "{scoring:?} {own:?}\n{failure:?}");
            let reason = own_reason.unwrap_or("right").to_owned();
            *n_by_reason.entry(format!("{scoring:?} {reason}")).or_default() += 1;
        }
    }
    // What is never seen is not compared. No record of the files is a bad one.
    assert!(cases.len() > 5_000, "{}", cases.len());
    assert!(n_by_reason.len() >= 2 * 14, "{n_by_reason:?}");
    assert!(n_by_reason.values().all(|n| *n > 5), "{n_by_reason:?}");
}

#[test]
fn grades_are_those_of_the_script() {
    let (Some(folder), Some(script)) = (shared("callme"), script("grade_calls.py")) else { return };
    let functions_of = |name: &str| -> (PathBuf, Vec<FunctionDef>) {
        let path = folder.join(name);
        let functions = definitions::parse(&fs::read(&path).unwrap()).unwrap();
        (path, functions)
    };
    let random = &mut Random::new(7);
    let scratch = tempfile::tempdir().unwrap();
    let output = scratch.path().join("output.json");
    let mut totals = [0; 2];
    for (labels, functions) in [
        ("public11.json", "public_functions.json"),
        ("many110.json", "public_functions.json"),
        ("mixed_dev.json", "mixed_functions.json"),
    ] {
        let labels = folder.join(labels);
        let (functions_file, functions) = functions_of(functions);
        let text = fs::read(&labels).unwrap();
        let cases = cases(&text, "labels").unwrap();
        let right: Vec<Value> = serde_json::from_slice(&text).unwrap();
        for _ in 0..12 {
            let mutated = |label: &Value| {
                let (mut name, mut parameters) =
                    (label["name"].clone(), label["parameters"].clone());
                match random.below(8) {
                    0 => name = right[random.below(right.len())]["name"].clone(),
                    1 | 2 => parameters = mutated(&parameters, random),
                    _ => {}
                }
                let prompt =
                    if random.once_in(30) { json!("another") } else { label["prompt"].clone() };
                json!({"prompt": prompt, "name": name, "parameters": parameters})
            };
            let answers: Vec<Value> = right.iter().map(mutated).collect();
            fs::write(&output, json!(answers).to_string()).unwrap();
            let theirs: Value =
                serde_json::from_slice(&python(&[&script, &output, &labels, &functions_file]))
                    .unwrap();
            let answers = predictions(json!(answers).to_string().as_bytes(), &cases).unwrap().0;
            let mut own = [0; 2];
            for (case, answer) in cases.iter().zip(answers) {
                let scored = score(case, &functions, answer, Scoring::Strict);
                let grade = scored.grade.unwrap();
                assert_eq!(scored.right, grade.parameters);
                own[0] += usize::from(grade.function);
                own[1] += usize::from(grade.parameters);
            }
            assert_eq!(json!(own), json!([theirs["function"], theirs["strict"]]));
            totals = [0, 1].map(|index| totals[index] + own[index]);
        }
    }
    assert!(totals[0] > totals[1] + 20 && totals[1] > 0, "{totals:?}");
}

// The command.

const CASES: &str = r#"{"id": "one", "category": "simple", "prompt": "Ring twice", "functions": [{"name": "ring", "parameters": {"times": {"type": "integer"}}}], "expected": [{"ring": {"times": [2]}}]}
{"id": "two", "category": "simple", "prompt": "Ring thrice", "functions": [{"name": "ring", "parameters": {"times": {"type": "integer"}}}], "expected": {"name": "ring", "parameters": {"times": 3}}}
{"id": "none", "category": "irrelevance", "prompt": "Sing", "functions": [{"name": "ring", "parameters": {"times": {"type": "integer"}}}], "expected": []}
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("cases.jsonl", CASES),
        (
            "old.jsonl",
            "{\"id\": \"two\", \"calls\": [{\"name\": \"ring\", \"arguments\": {\"times\": 3.0}}]}\n{\"id\": \"none\", \"calls\": []}\n",
        ),
        (
            "new.jsonl",
            "{\"id\": \"one\", \"name\": \"ring\", \"parameters\": {\"times\": 2}}\n{\"id\": \"two\", \"name\": \"ring\", \"parameters\": {\"times\": 3}}\n{\"id\": \"none\", \"name\": \"ring\", \"parameters\": {\"times\": 1}}\n",
        ),
        ("functions.json", r#"[{"name": "ring", "parameters": {"times": {"type": "integer"}}}]"#),
        (
            "exercise.json",
            r#"[{"prompt": "Ring twice", "name": "ring", "parameters": {"times": 2}, "accept": [{"times": 3}]}]"#,
        ),
        ("calls.json", r#"[{"prompt": "Ring twice", "name": "ring", "parameters": {"times": 3}}]"#),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[track_caller]
fn check_command(folder: &Path, arguments: &str, expected: (i32, &str, &str)) {
    let words = arguments.split_whitespace();
    let output = callme(folder).arg("eval").args(words).output().unwrap();
    compare(folder, arguments, &output, expected);
}

#[test]
fn a_run_is_scored_and_compared() {
    let folder = folder();
    let folder = folder.path();
    let old = "\
category     right     of  share %  95 % interval
simple           0      2      0.0    0.0 to 65.8
irrelevance      1      1    100.0   20.7 to 100.0
all              1      3     33.3    6.1 to 79.2

  wrong  reason
      1  no_prediction
      1  wrong_type

one: no_prediction: none for this case
two: wrong_type: times: 3.0 is of type number, declared integer
";
    let arguments = "-v --cases cases.jsonl --predictions old.jsonl --output a/old.json";
    check_command(folder, arguments, (0, old, "3 cases scored; written to a/old.json\n"));
    let new = "\
category     right     of  share %  95 % interval
simple           2      2    100.0   34.2 to 100.0
irrelevance      0      1      0.0    0.0 to 79.3
all              2      3     66.7   20.8 to 93.9

  wrong  reason
      1  called

3 cases paired with a/old.json
2 fixed, 1 broken, two-sided sign test p = 1.0000
  fixed   one
  fixed   two
  broken  none
";
    let arguments =
        "-q --cases cases.jsonl --cases cases.jsonl --predictions new.jsonl --compare a/old.json";
    check_command(folder, arguments, (0, new, ""));
    check_command(folder, arguments, (0, new, ""));
    let written: Vec<_> = fs::read_dir(folder.join("data/output")).unwrap().collect();
    assert_eq!(written.len(), 2, "each run has a file of its own");
    let text = fs::read_to_string(written[0].as_ref().unwrap().path()).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["summary"]["all"]["n_right"], 2);
    assert_eq!(report["records"][2]["reason"], "called");
    assert_eq!(report["records"][2]["calls"][0]["parameters"], json!({"times": 1}));
    assert_eq!(report["comparison"]["broken"], json!(["none"]));

    // What was written is read again, and scored in the other way.
    let arguments = "-q --cases cases.jsonl --predictions a/old.json --scoring lenient";
    let lenient = "…all              2      3 …no_prediction\n";
    check_command(folder, arguments, (0, lenient, ""));
    let stderr = "error: a/old.json: its --scoring was another; score both alike\n";
    check_command(folder, &format!("{arguments} --compare a/old.json"), (2, "", stderr));
}

#[test]
fn a_failure_is_no_answer_however_it_is_written() {
    let cases = cases(CASES.as_bytes(), "cases").unwrap();
    for record in [
        r#"{"id": "none", "calls": [], "error": "out of memory"}"#,
        r#"{"id": "none", "calls": null, "error": "out of memory"}"#,
        r#"{"id": "none", "name": null, "parameters": {}, "error": "out of memory"}"#,
        r#"{"id": "none", "error": "out of memory"}"#,
    ] {
        let (mut found, _) = predictions(record.as_bytes(), &cases).unwrap();
        let scored = score(&cases[2], &[], found.remove(2), Scoring::Strict);
        assert_eq!(scored.reason.map(Reason::name), Some("no_prediction"), "{record}");
        assert_eq!(scored.error.as_deref(), Some("out of memory"), "{record}");
    }
}

#[test]
fn prompts_of_the_exercise_have_two_figures() {
    let folder = folder();
    let arguments =
        "--cases exercise.json --functions_definition functions.json --predictions calls.json";
    let table = "\
category  right     of  share %  95 % interval
exercise      1      1    100.0   20.7 to 100.0
all           1      1    100.0   20.7 to 100.0

category  function  parameters
exercise       1/1         1/1
all            1/1         1/1
";
    let stderr = "1 cases scored; written to data/output/eval-…Z.json\n";
    check_command(folder.path(), arguments, (0, table, stderr));
}

#[test]
fn what_cannot_be_scored_is_told() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("bad.jsonl"), "{\"prompt\": \"p\"}\n").unwrap();
    fs::write(folder.join("empty.json"), "[]").unwrap();
    for (arguments, stderr) in [
        ("", "error: the following required arguments were not provided:\n  --cases <FILE>…"),
        ("--cases no.jsonl", "error: --cases no.jsonl: no such file (looked for DIR/no.jsonl)\n"),
        ("--cases empty.json", "error: empty.json: no cases; give at least one\n"),
        (
            "--cases bad.jsonl",
            "error: bad.jsonl: the record: no label; give \"expected\", or \"name\" and \"parameters\"\n",
        ),
        (
            "--cases exercise.json",
            "error: no data/input/functions_definition.json here (looked for DIR/data/input/functions_definition.json); give another with --functions_definition FILE\n",
        ),
        (
            "--cases cases.jsonl --predictions bad.jsonl",
            "error: bad.jsonl: the record: no call; give \"calls\", a list, or \"name\" and \"parameters\"\n",
        ),
        (
            "--cases cases.jsonl --predictions new.jsonl --output new.jsonl",
            "error: --output new.jsonl: is there already, and no run is written over another; name a new file\n",
        ),
        (
            "--cases cases.jsonl --predictions new.jsonl --output -",
            "error: --output -: the tables go to stdout; name a file\n",
        ),
        (
            "--cases cases.jsonl --predictions new.jsonl --model auto",
            "error: with --predictions no model runs, so flags of the model and --prompts_config say nothing; leave them out\n",
        ),
        (
            "--cases cases.jsonl --predictions new.jsonl --compare new.jsonl",
            "error: new.jsonl: not a file that callme eval wrote: …",
        ),
        (
            "--cases - --predictions -",
            "error: both --cases and --predictions are -, and stdin can be read only once\n",
        ),
    ] {
        check_command(folder, arguments, (2, "", stderr));
    }
    // A run that cannot begin leaves no file.
    let output = callme(folder).args(["eval", "--cases", "cases.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(fs::read_dir(folder.join("data/output")).unwrap().next().is_none());
    assert!(!fs::read(folder.join("new.jsonl")).unwrap().is_empty());
}

#[test]
fn the_help_fits_80_columns() {
    let folder = folder();
    let output = callme(folder.path()).args(["eval", "--help"]).output().unwrap();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
