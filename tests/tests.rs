//! Tests.

mod prompt;
