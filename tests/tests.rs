//! Tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that goes wrong shall say so and stop"
)]

mod golden;
mod properties;
mod recognize;
