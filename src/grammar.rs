//! Grammar.
pub mod lower;
pub mod check;
pub mod print;
pub mod recognize;
