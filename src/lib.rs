//! Natural-language requests in, schema-valid function calls out, with a small local model.

pub mod definitions;
pub mod schema;
pub mod grammar;
pub mod models;
pub mod config;
pub mod prompt;
pub mod input;
pub mod engine;
pub mod validate;
pub mod output;
pub mod report;
pub mod cli;
pub mod pipeline;
