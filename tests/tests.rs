//! The integration tests: one binary, a module for each part.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that goes wrong shall say so and stop"
)]

#[cfg(feature = "engine")]
mod agreement;
mod check;
mod cli;
mod coverage;
#[cfg(unix)]
mod cpu_flags;
mod decode;
mod definitions;
mod departures;
mod draw;
mod eval;
mod fetch;
mod golden;
mod grammar;
mod input;
mod interrupt;
mod keywords;
#[cfg(feature = "engine")]
mod llama;
#[cfg(feature = "engine")]
mod model;
mod output;
mod parse;
mod prompt;
mod properties;
mod readme;
mod recognize;
mod regressions;
mod schema;
mod suite;
mod tidy;
#[cfg(feature = "engine")]
mod typed;
