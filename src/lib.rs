//! Natural-language requests in, schema-valid function calls out, with a small local model.

pub mod cli;
pub mod config;
pub mod definitions;
pub mod engine;
pub mod grammar;
pub mod input;
pub mod models;
pub mod output;
pub mod pipeline;
pub mod prompt;
pub mod report;
pub mod schema;
pub mod validate;
