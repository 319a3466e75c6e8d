//! Tests.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod cli;
mod input;
mod interrupt;
mod output;
