//! The one integration binary.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[cfg(unix)]
mod cpu_flags;
mod tidy;
