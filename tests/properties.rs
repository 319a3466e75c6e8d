//! Walks over grammars: whatever bytes are chosen, the text is JSON and the validator takes it.

use std::fs;
use std::path::{Path, PathBuf};

use call_me_maybe::definitions::{self, FunctionDef};
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::validate::{ValidateError, Validator};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A small generator of our own, so that a seed means the same walk for ever (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }
}

/// Walks to the end of a text of the grammar: at most `n_free` bytes by chance, then what closes it.
fn walk(start: &Recognizer, random: &mut Random, n_free: usize) -> Vec<u8> {
    let mut at = start.clone();
    let mut text = Vec::new();
    while !at.is_over() {
        if text.len() >= n_free {
            if at.in_argument() {
                let closing = at.close_argument();
                assert!(!at.in_argument(), "closed: {}", String::from_utf8_lossy(&text));
                text.extend(closing);
                continue;
            }
            if at.can_end() {
                break;
            }
        }
        let forced = at.forced();
        if !forced.is_empty() {
            assert!(at.accepts(&forced));
            assert_eq!(at.push_all(&forced), Ok(()));
            text.extend(forced);
            continue;
        }
        let allowed: Vec<u8> = at.allowed().iter().collect();
        assert!(allowed.len() > 1 || at.can_end(), "one way on is forced");
        // Half of the time something that opens or ends a part, or strings would go on to the limit.
        let marks: Vec<u8> =
            allowed.iter().copied().filter(|byte| b"\"\\,}]{[:.eE-".contains(byte)).collect();
        let from = if !marks.is_empty() && random.below(2) == 0 { &marks } else { &allowed };
        let byte = from[random.below(from.len())];
        assert!(at.accepts(&[byte]) && at.push(byte));
        text.push(byte);
    }
    text
}

/// Walks over the grammar of the functions; gives how many of them cannot be called.
#[track_caller]
fn check(functions: &[FunctionDef], seed: u64, n_walks: usize) -> usize {
    let lowered = calls(functions, Options::LEGAL).unwrap();
    let start = Recognizer::new(&lowered.grammar).unwrap();
    let validator = Validator::new(functions, Options::LEGAL);
    let mut random = Random(seed);
    for index in 0..n_walks {
        let n_free = [0, 80, 300][index % 3];
        let bytes = walk(&start, &mut random, n_free);
        assert!(start.accepts(&bytes));
        let text = String::from_utf8(bytes).expect("a text is UTF-8");
        let _: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        match validator.validate(&text) {
            Ok(_) | Err(ValidateError::Refused { .. }) => {}
            Err(error) => panic!("{text}: {error}"),
        }
    }
    lowered.refused.len()
}

#[test]
fn walks_over_the_golden_grammars_are_valid_calls() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut n_cases = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path().join("definitions.json");
        if file.exists() {
            check(&definitions::parse(&fs::read(file).unwrap()).unwrap(), 0x5eed, 30);
            n_cases += 1;
        }
    }
    assert!(n_cases > 10);
}

/// The real sets beside the repository, where they are.
fn shared(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(folder);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn walks_over_the_real_sets_are_valid_calls() {
    let files =
        shared("mcp").into_iter().chain(shared("callme")).chain(shared("callme/old_format"));
    let is_json = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "json");
    let no_functions =
        ["many110.json", "mixed_dev.json", "public11.json", "function_calling_tests.json"];
    for file in files.filter(is_json) {
        if no_functions.iter().any(|name| file.ends_with(name)) {
            continue;
        }
        let functions = definitions::parse(&fs::read(&file).unwrap()).unwrap();
        for (index, function) in functions.iter().enumerate() {
            check(std::slice::from_ref(function), index as u64 + 1, 3);
        }
        check(&functions, 7, 12);
    }
    for file in shared("bfcl").iter().filter(|file| file.ends_with("callsmall.jsonl")) {
        for line in fs::read_to_string(file).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let functions = definitions::from_value(&record["functions"], "/functions").unwrap();
            check(&functions, 11, 6);
        }
    }
}

/// Schemas of every kind that the grammar expresses.
fn schema() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!({"type": "string", "description": "text"})),
        Just(json!({"type": ["number", "null"]})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": ["integer", "boolean", "number"]})),
        Just(json!({"type": "boolean", "x-note": 1})),
        Just(json!({"type": "null"})),
        prop::collection::vec(".{0,3}", 1..4).prop_map(|members| json!({"enum": members})),
        any::<i64>().prop_map(|value| json!({"const": [value, {"k": null}]})),
    ];
    scalar.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner
                .clone()
                .prop_map(|value| json!({"type": "object", "additionalProperties": value})),
            object(inner),
        ]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let member = (prop_oneof!["[a-c]{1,2}", ".{0,3}"], value, any::<bool>());
    prop::collection::vec(member, 0..5).prop_map(|members| {
        let required: Vec<&String> =
            members.iter().filter(|(_, _, required)| *required).map(|(key, _, _)| key).collect();
        let properties: serde_json::Map<String, Value> =
            members.iter().map(|(key, value, _)| (key.clone(), value.clone())).collect();
        json!({"type": "object", "properties": properties, "required": required})
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2),
        ..ProptestConfig::default()
    })]

    #[test]
    fn walks_over_random_definitions_are_valid_calls(
        parameters in prop::collection::vec((".{1,4}", object(schema())), 1..4),
        seed in 1_u64..,
    ) {
        let mut seen = std::collections::HashSet::new();
        let functions: Vec<Value> = parameters
            .into_iter()
            .filter(|(name, _)| seen.insert(name.clone()))
            .map(|(name, parameters)| json!({"name": name, "parameters": parameters}))
            .collect();
        let functions = definitions::from_value(&Value::Array(functions), "").unwrap();
        prop_assert_eq!(check(&functions, seed, 6), 0);
    }
}
