//! A schema to a grammar, the grammar to a text, the text to the validator.
#![no_main]

use arbitrary::Unstructured;
use call_me_maybe::definitions::FunctionDef;
use call_me_maybe::grammar::lower::{Options, Unsupported, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::grammar::{parse, print};
use call_me_maybe::schema::Undeclared;
use call_me_maybe::validate::{ValidateError, Validator};
use fuzz::walk;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const WIDEN: Options = Options { unsupported: Unsupported::Widen, undeclared: Undeclared::Allow };
/// Bytes for the walks over each grammar, after one by the bytes of the input.
const WALKS: [usize; 5] = [0, 60, 60, 200, 600];

fuzz_target!(|data: &[u8]| {
    let Some((functions, choices)) = fuzz::schemas::functions(data) else { return };
    if std::env::var_os("CALLME_FUZZ_SHOW").is_some() {
        functions.iter().for_each(|function| eprintln!("{}", function.parameters));
    }
    for options in [Options::LEGAL, Options::DECLARED, WIDEN] {
        check(&functions, options, choices);
    }
});

fn check(functions: &[FunctionDef], options: Options, choices: &[u8]) {
    let lowered = match calls(functions, options) {
        Ok(lowered) => lowered,
        Err(error) => {
            assert!(functions.is_empty(), "no grammar: {error}");
            return;
        }
    };
    if options == WIDEN && lowered.widened.is_empty() {
        // The same grammar as `LEGAL`'s.
        return;
    }
    let gbnf = print::gbnf(&lowered.grammar);
    let read = match parse::gbnf(&gbnf, None) {
        Ok(read) => read,
        Err(error) => panic!("what is printed is not read: {error}\n{gbnf}"),
    };
    assert_eq!(print::gbnf(&read), gbnf, "what is printed is read as something else");
    fuzz::llama::load(&gbnf);
    let start = match Recognizer::new(&lowered.grammar) {
        Ok(start) => start,
        Err(error) => panic!("what is lowered is not sound: {error}\n{gbnf}"),
    };
    let validator = Validator::new(functions, options);
    let more = WALKS.iter().enumerate().map(|(salt, len)| walk::expand(choices, salt, *len));
    for choices in std::iter::once(choices.to_vec()).chain(more) {
        let Some(text) = walk::walk(&start, &mut Unstructured::new(&choices)) else { continue };
        let text = String::from_utf8(text).expect("a text is UTF-8");
        if let Err(error) = serde_json::from_str::<Value>(&text) {
            assert!(error.to_string().contains("recursion limit"), "not JSON: {error}: {text}");
            continue;
        }
        match validator.validate(&text) {
            Ok(_) | Err(ValidateError::Refused { .. } | ValidateError::Schema { .. }) => {}
            Err(error) => {
                let departs = walk::repeats_key(&text)
                    || !lowered.widened.is_empty()
                    || functions.iter().any(misjudged);
                assert!(departs, "{options:?}: {error}: {text}");
            }
        }
    }
}

/// Whether the validator is known to judge the schema by another standard: `\b` is between ASCII word
/// characters and others in ECMA-262, between letters of any script and others in the validator.
fn misjudged(function: &FunctionDef) -> bool {
    let schema = function.parameters.to_string();
    schema.contains(r"\\b") || schema.contains(r"\\B")
}
