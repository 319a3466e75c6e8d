//! The JSON Schema Test Suite and llama.cpp's own cases, beside the repository, against a ratchet.
//!
//! `suite/ratchet.tsv` says of each case what becomes of it: `pass`, `refused` (the schema has no
//! grammar) or `rejects-valid` (some valid instance has no spelling that is taken). A case that
//! does worse than it says fails the test; `UPDATE_RATCHET=1` writes it anew. That an invalid
//! instance is taken fails always, but for the strings of [`THEIRS_IS_STRICTER`].

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use call_me_maybe::check::{Outcome, Ranks, exact};
use call_me_maybe::grammar::recognize::Recognizer;
use serde::Deserialize;
use serde_json::Value;

use crate::coverage::{cases, judge, shared};

/// Strings that llama.cpp's cases refuse and we take, with the reason.
const THEIRS_IS_STRICTER: &[(&str, &str, &str)] = &[
    ("min 0", "100000000000000000000000000000000", SIXTEEN),
    ("min 2", "12345678900000000", SIXTEEN),
    ("integer", "12345678901234567  ", SIXTEEN),
    (
        "object properties",
        "{ \"number\": 1600, \"street_name\": \"Pennsylvania\", \"street_type\":\"Avenue\", \"direction\":\"NW\"}",
        "keys that are not declared are allowed where nothing forbids them",
    ),
    ("min+max items", "1", "without a type, these keywords say nothing of what is no array"),
];

const SIXTEEN: &str = "it writes at most 16 digits, and no schema says so";

/// What becomes of a case, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    RejectsValid,
    Refused,
    Pass,
}

impl State {
    const ALL: [(Self, &str); 3] =
        [(Self::RejectsValid, "rejects-valid"), (Self::Refused, "refused"), (Self::Pass, "pass")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).unwrap().1
    }

    fn of(name: &str) -> Self {
        Self::ALL.iter().find(|(_, other)| *other == name).unwrap().0
    }
}

fn ratchet() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/ratchet.tsv")
}

/// Compares the cases of one suite, whose names begin so, with the ratchet.
fn compare(suite: &str, found: &BTreeMap<String, State>) {
    let text = fs::read_to_string(ratchet()).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    let mut known: BTreeMap<String, State> =
        lines.map(|(case, state)| (case.to_owned(), State::of(state))).collect();
    if std::env::var_os("UPDATE_RATCHET").is_some() {
        known.retain(|case, _| !case.starts_with(suite));
        known.extend(found.iter().map(|(case, state)| (case.clone(), *state)));
        let mut text = String::new();
        for (case, state) in &known {
            writeln!(text, "{case}\t{}", state.name()).unwrap();
        }
        fs::write(ratchet(), text).unwrap();
        return;
    }
    let mut worse = String::new();
    for (case, state) in found {
        let before = known.get(case).copied().unwrap_or(State::Refused);
        if *state < before {
            writeln!(worse, "{case}: {}, was {}", state.name(), before.name()).unwrap();
        }
    }
    assert!(worse.is_empty(), "worse than tests/suite/ratchet.tsv says:\n{worse}");
}

/// The state of a schema with instances; adds invalid ones that are taken to `taken`.
fn state(schema: &str, instances: &[(bool, &str)], taken: &mut dyn FnMut(&str)) -> State {
    let Ok((grammar, _)) = judge::grammar(schema) else { return State::Refused };
    let start = Recognizer::new(&grammar.grammar).unwrap();
    let ranks = Ranks::of([&serde_json::from_str::<Value>(schema).unwrap()]);
    let mut state = State::Pass;
    for (valid, instance) in instances {
        match (valid, judge::outcome(&start, instance, &ranks)) {
            (true, Outcome::Accepted(_)) | (false, Outcome::Refused(_)) => {}
            (false, Outcome::Accepted(_)) => taken(instance),
            (_, _) => state = State::RejectsValid,
        }
    }
    state
}

/// The suite's draft 7 schemas do not name their draft.
fn with_draft(schema: &str, draft: &str) -> String {
    let named: Value = serde_json::from_str(schema).unwrap();
    match named {
        Value::Object(mut map) if !map.contains_key("$schema") => {
            map.insert("$schema".to_owned(), Value::from(draft));
            Value::Object(map).to_string()
        }
        _ => schema.to_owned(),
    }
}

fn test_suite(draft: &str, uri: &str) {
    let Some(folder) = shared("jsonschema/test-suite") else { return };
    let mut found = BTreeMap::new();
    let mut wrong = String::new();
    for case in cases::of_file(&folder.join(format!("{draft}.jsonl"))).unwrap() {
        let instances: Vec<(bool, &str)> =
            case.instances.iter().map(|one| (one.valid, one.data.get())).collect();
        let schema = with_draft(case.schema.get(), uri);
        let state = state(&schema, &instances, &mut |instance| {
            writeln!(wrong, "{}: {instance} by {schema}", case.id).unwrap();
        });
        found.insert(case.id, state);
    }
    assert!(found.len() > 200);
    assert!(wrong.is_empty(), "invalid instances are taken:\n{wrong}");
    compare(&format!("{draft}/"), &found);
}

#[test]
fn draft_2020_12_is_no_worse_than_it_was() {
    test_suite("draft2020-12", "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn draft_7_is_no_worse_than_it_was() {
    test_suite("draft7", "http://json-schema.org/draft-07/schema#");
}

#[derive(Deserialize)]
struct Strings {
    name: String,
    schema: String,
    pass: Vec<String>,
    fail: Vec<String>,
}

/// The value with our white space and everything else as it is: the order of keys too, which is
/// what some of the strings fail for.
fn spaced(value: &Value) -> String {
    let list = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", list(items.iter().map(spaced).collect())),
        Value::Object(members) => {
            let member =
                |(key, value)| format!("{}: {}", Value::from(String::as_str(key)), spaced(value));
            format!("{{{}}}", list(members.iter().map(member).collect()))
        }
        other => other.to_string(),
    }
}

#[test]
fn llama_cpps_strings_are_no_worse_than_they_were() {
    let Some(folder) = shared("jsonschema/llama.cpp") else { return };
    let file = fs::read_to_string(folder.join("schema_strings.jsonl")).unwrap();
    let mut found = BTreeMap::new();
    let mut wrong = String::new();
    for (index, line) in file.lines().enumerate() {
        let Strings { name, schema, pass, fail } = serde_json::from_str(line).unwrap();
        let pass: Vec<(bool, &str)> = pass.iter().map(|text| (true, text.as_str())).collect();
        let state = state(&schema, &pass, &mut |_| unreachable!("all of them are valid"));
        found.insert(format!("llama.cpp/{index:02} {name}"), state);
        let Ok((grammar, _)) = judge::grammar(&schema) else { continue };
        let start = Recognizer::new(&grammar.grammar).unwrap();
        for text in fail {
            // What is not JSON has no spelling at all.
            let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
            let call = format!(r#"{{"name": "f", "arguments": {}}}"#, spaced(&value));
            let mut listed = THEIRS_IS_STRICTER.iter();
            let is_listed = listed.any(|(case, known, _)| *case == name && *known == text);
            if exact(&start, call.as_bytes()).is_ok() && !is_listed {
                writeln!(wrong, "{name}: {text}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "strings that must fail are taken:\n{wrong}");
    compare("llama.cpp/", &found);
}

#[derive(Deserialize)]
struct Conversion {
    name: String,
    ok: bool,
    schema: String,
}

#[test]
fn llama_cpps_schemas_compile_as_they_did() {
    let Some(folder) = shared("jsonschema/llama.cpp") else { return };
    let file = fs::read_to_string(folder.join("schema_to_grammar.jsonl")).unwrap();
    let mut found = BTreeMap::new();
    let mut wrong = String::new();
    for (index, line) in file.lines().enumerate() {
        let Conversion { name, ok, schema } = serde_json::from_str(line).unwrap();
        let compiles = judge::grammar(&schema).is_ok();
        if compiles && !ok {
            writeln!(wrong, "{name}: {schema}").unwrap();
        }
        let state = if compiles { State::Pass } else { State::Refused };
        found.insert(format!("llama.cpp-schema/{index:02} {name}"), state);
    }
    assert!(wrong.is_empty(), "schemas that are none compile:\n{wrong}");
    compare("llama.cpp-schema/", &found);
}
