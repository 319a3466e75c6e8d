//! Tests.

mod fetch;
