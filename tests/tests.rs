//! Tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that goes wrong shall say so and stop"
)]

mod definitions;
mod departures;
mod golden;
mod grammar;
mod properties;
mod recognize;
mod schema;
