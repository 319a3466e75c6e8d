//! ECMA-262 patterns to automata.

mod parse;
mod nfa;
mod determine;

use super::{Dfa, TooLarge};

/// Why a pattern has no automaton.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The text is no pattern.
    #[error("{what} at byte {offset}")]
    Syntax {
        /// Bytes before the place.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A construct that we do not express, or that no automaton can.
    #[error("{construct} at byte {offset} is not supported")]
    Unsupported {
        /// Bytes before the construct.
        offset: usize,
        /// What it is.
        construct: &'static str,
    },
    /// The automaton would be too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// The texts in which the pattern matches somewhere.
pub(super) fn pattern(pattern: &str) -> Result<Dfa, PatternError> {
    let node = parse::parse(pattern)?;
    Ok(determine::search(&node)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
