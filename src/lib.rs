//! Natural-language requests in, schema-valid function calls out, with a small local model.
//!
//! ```text
//! function definitions ──► Schema ──► Grammar ──► GBNF text ─────────────┐
//!                                                                       ▼
//! requests ──► the model's own chat template ──► tokens ──► decoding under the grammar ──► text
//!                                                                                           │
//!                      output records ◄── FunctionCall ◄── serde and a JSON Schema validator ◄┘
//! ```
//!
//! Three entries, from the least to the most of one's own:
//!
//! - `typed::TypedCaller`: Rust types in, values of these types out.
//! - [`caller`] with `load`: definitions as data in, validated calls and their counts out.
//! - [`pipeline`]: files in, files out; the binary is this and nothing else.
//!
//! ```
//! use call_me_maybe::grammar::lower::{self, Options};
//! use call_me_maybe::{definitions, grammar::print};
//!
//! let functions = definitions::parse(
//!     br#"[{"name": "ring", "description": "Ring a bell.", "parameters": {"times": {"type": "integer"}}}]"#,
//! )?;
//! let calls = lower::calls(&functions, Options::LEGAL)?;
//! assert!(print::gbnf(&calls.grammar).starts_with(r#"root ::= "{\"name\": " call "}""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`mod@bench`] measures how fast that is, [`eval`] how often it is right, [`confidence`] how sure one call is.
//!
//! The modules stand in reading order, and each uses only those above it.
//!
//! **Invariant:** the model makes every choice; the grammar only removes what would break the format.
//! **Invariant:** what is returned as a call was accepted by the grammar, read by serde and validated
//! against its definition.
//! **Invariant:** no network outside [`models`], and there only to fetch.
//!
//! # Features
//!
//! - `engine` (default): llama.cpp, and with it `engine::llama`, `load` and `typed::TypedCaller`. Without
//!   it definitions, grammars, the recognizer and the validator build with no C++ compiler.
//! - `fetch` (default): fetching models over HTTPS. Without it pip still brings those that are on `PyPI`.
//! - `cuda`, `vulkan`, `metal`: handed on to llama.cpp.

pub mod definitions;
pub mod regular;
pub mod schema;
pub mod grammar;
pub mod models;
pub mod prompt;
pub mod input;
pub mod grounding;
pub mod engine;
pub mod validate;
pub mod check;
pub mod caller;
pub mod confidence;
pub mod prefix_cache;
#[cfg(feature = "engine")]
pub mod load;
pub mod typed;
pub mod version;
pub mod interrupt;
pub mod output;
pub mod report;
pub mod bench;
pub mod eval;
pub mod cli;
pub mod config;
pub mod pipeline;

// The library example of the README compiles.
#[cfg(all(doctest, feature = "engine"))]
#[doc = include_str!("../README.md")]
struct Readme;
