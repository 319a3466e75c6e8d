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
//! [`typed`] is the entry for Rust types, [`caller`] the one for definitions as data; the binary
//! goes through [`pipeline`]. The modules stand in reading order, and each uses only those above it.
//!
//! **Invariant:** the model makes every choice; the grammar only removes what would break the format.
//! **Invariant:** no network outside [`models`], and there only to fetch.

pub mod definitions;
pub mod schema;
pub mod grammar;
pub mod models;
pub mod prompt;
pub mod input;
pub mod engine;
pub mod validate;
pub mod caller;
pub mod typed;
pub mod version;
pub mod interrupt;
pub mod output;
pub mod report;
pub mod cli;
pub mod config;
pub mod pipeline;
