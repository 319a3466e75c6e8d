//! Golden grammars: `golden/<case>/definitions.json` must print as `grammar.gbnf`; each line of
//! `accept.jsonl` is recognized and validated, each line of `reject.jsonl` is refused.
//!
//! `undeclared.jsonl`, where there is one, has lines that are legal and that a run never writes.
//!
//! `UPDATE_GOLDEN=1` rewrites `grammar.gbnf`, never the other files.

use std::fs;
use std::path::Path;

use call_me_maybe::definitions;
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::print::gbnf;
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::validate::{ValidateError, Validator};

#[track_caller]
fn check(case: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case);
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let functions = definitions::parse(read("definitions.json").as_bytes()).unwrap();
    let lowered = calls(&functions, Options::LEGAL).unwrap();

    let text = gbnf(&lowered.grammar);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(folder.join("grammar.gbnf"), &text).unwrap();
    }
    assert_eq!(
        text,
        read("grammar.gbnf"),
        "{case}: run with UPDATE_GOLDEN=1 and look at the difference"
    );

    let start = Recognizer::new(&lowered.grammar).unwrap();
    let validator = Validator::new(&functions, Options::LEGAL);
    let (accept, reject) = (read("accept.jsonl"), read("reject.jsonl"));
    assert!(!accept.is_empty() && !reject.is_empty(), "{case}: both files have lines");
    for line in accept.lines() {
        let mut recognizer = start.clone();
        for (offset, byte) in line.bytes().enumerate() {
            assert!(recognizer.allowed().contains(byte), "{case}: {line}: byte {offset}");
            assert!(recognizer.push(byte), "{case}: {line}: byte {offset}");
        }
        assert!(recognizer.can_end(), "{case}: {line}: the end");
        assert!(start.accepts(line.as_bytes()), "{case}: {line}: at once");
        match validator.validate(line) {
            Ok(_) => {}
            Err(ValidateError::Refused { name, .. }) => {
                assert!(lowered.refused.iter().any(|(refused, _)| *refused == name));
                assert!(!line.contains("arguments"), "{case}: {line}");
            }
            Err(error) => panic!("{case}: {line}: {error}"),
        }
    }
    let run = Recognizer::new(&calls(&functions, Options::DECLARED).unwrap().grammar).unwrap();
    let is_whole = |start: &Recognizer, line: &str| {
        let mut recognizer = start.clone();
        recognizer.push_all(line.as_bytes()).is_ok() && recognizer.can_end()
    };
    for line in accept.lines() {
        assert!(is_whole(&run, line), "{case}: {line}: in a run");
    }
    for line in fs::read_to_string(folder.join("undeclared.jsonl")).unwrap_or_default().lines() {
        assert!(is_whole(&start, line), "{case}: {line}: legal");
        assert!(!is_whole(&run, line), "{case}: {line}: in a run");
    }
    for line in reject.lines() {
        let mut recognizer = start.clone();
        let whole = recognizer.push_all(line.as_bytes()).is_ok() && recognizer.can_end();
        assert!(!whole, "{case}: {line}: recognized");
    }
}

macro_rules! cases {
    ($($case:ident)*) => {
        $(#[test] fn $case() { check(stringify!($case)); })*

        #[test]
        fn every_folder_is_a_case() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
            let mut found: Vec<String> = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| !name.contains('.'))
                .collect();
            found.sort();
            let mut cases = vec![$(stringify!($case)),*];
            cases.sort_unstable();
            assert_eq!(found, cases);
        }
    };
}

cases! {
    additional_properties any_value arguments_map deep enums exercise forms many names nested
    no_parameters nullable numbers optional strings unsupported
}
