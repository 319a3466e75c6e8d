//! The typed entry with a real model.

use std::path::Path;

use call_me_maybe::load::LoadOptions;
use call_me_maybe::typed::{TypedCaller, TypedError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Desk {
    /// Adds two numbers.
    Add { a: f64, b: f64 },
    /// Greets a person by name.
    Greet { name: String },
}

fn load(options: &LoadOptions) -> TypedCaller<Desk> {
    TypedCaller::load("qwen2.5-coder-0.5b-q4_k_m", options).unwrap()
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn requests_become_values() {
    let models_dir = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("models"));
    let mut options = LoadOptions { models_dir, ..LoadOptions::default() };
    let mut desk = load(&options);
    assert_eq!(desk.call("Add 20 and 22.5").unwrap(), Desk::Add { a: 20.0, b: 22.5 });
    assert_eq!(desk.call("Greet Ingrid").unwrap(), Desk::Greet { name: "Ingrid".to_owned() });
    drop(desk);

    options.calls.limits.max_value_tokens = 1;
    match load(&options).call("Greet Konstantinopolous Wintergartenmeier") {
        Err(TypedError::Cut { cut }) => assert_eq!(cut.limit, 1),
        other => panic!("{other:?}"),
    }
}
