//! A JSON text and a grammar to the spelling of the text that the grammar takes, or to the place
//! where every spelling ends.
//!
//! A grammar of ours fixes what JSON leaves free: white space, the order of declared keys, how a
//! number or a character is spelled. So a value is written anew, with the recognizer as the guide,
//! and is legal if one of its spellings is taken. What is tried:
//!
//! - White space is `", "` and `": "`, and none elsewhere.
//! - The members of an object come in every order that the grammar may take; each comes once, and
//!   one that stands there twice comes twice.
//! - A number is tried as written, then in every other usual spelling of the same value: without
//!   a fraction that is zero (`1.0` as `1`), with one (`1` as `1.0`), as plain digits (`1e3` as
//!   `1000`, `5e-5` as `0.00005`) and with an exponent (`1000` as `1e3`). Texts are compared, so no
//!   digit is rounded; `-0` counts as `0`, as JSON Schema compares values.
//! - A string and a key are tried in the shortest spelling, then with each character in the first
//!   spelling that the grammar takes, then as written.
//!
//! **Invariant:** nothing is lost: a spelling has the members, the items, the characters and the
//! values of the numbers of the text that it stands for.
//! **Invariant:** the answer is exact within [`MAX_STEPS`], and where they do not suffice it is
//! [`Outcome::Undecided`], never "no".
//! **Invariant:** no I/O here.

mod document;
mod spelling;
mod search;
mod members;
mod pointer;
mod calls;

pub use self::calls::{call, texts};
pub use self::document::{Document, DocumentError, MAX_DEPTH};
pub use self::search::{MAX_STEPS, Ranks, spell};

use crate::grammar::recognize::Recognizer;
use crate::grammar::recognize::expected::Expected;

/// What became of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The grammar takes it, spelled so.
    Accepted(String),
    /// The grammar takes no spelling of it.
    Refused(Refusal),
    /// The steps did not suffice to tell.
    Undecided,
}

/// The furthest place that a spelling came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The bytes that were taken; the first wrong one would follow them.
    pub taken: Vec<u8>,
    /// The wrong byte and what was to follow it; empty where the text ended too early.
    pub rest: Vec<u8>,
    /// What would have been right there.
    pub expected: Vec<Expected>,
    /// JSON pointer of the value that was being written, where the text is JSON.
    pub pointer: String,
}

impl Refusal {
    /// What would have been right, in words: `` `, "unit": "` or a digit ``.
    #[must_use]
    pub fn expected_words(&self) -> String {
        let mut words: Vec<String> = self.expected.iter().map(ToString::to_string).collect();
        let last = words.pop().unwrap_or_default();
        if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) }
    }
}

/// What may come after the text so far; where that is only a quote, the keys or names that it may
/// begin.
fn expected(at: &Recognizer) -> Vec<Expected> {
    let expected = at.expected();
    let [Expected::Text { text: quote, is_cut: false }] = expected.as_slice() else {
        return expected;
    };
    let mut next = at.clone();
    if !quote.ends_with('"') || next.push_all(quote.as_bytes()).is_err() {
        return expected;
    }
    let texts = next.expected().into_iter().map(|one| match one {
        Expected::Text { text, is_cut } => {
            Some(Expected::Text { text: format!("{quote}{text}"), is_cut })
        }
        other @ Expected::More(_) => Some(other),
        // The beginning of some string, of which nothing is known.
        _ => None,
    });
    texts.collect::<Option<_>>().unwrap_or(expected)
}

/// Whether a grammar takes exactly these bytes; `recognizer` stands before the first of them.
///
/// # Errors
///
/// [`Refusal`] of the first byte that is not taken.
pub fn exact(recognizer: &Recognizer, bytes: &[u8]) -> Result<(), Refusal> {
    let mut at = recognizer.clone();
    let offset = match at.push_all(bytes) {
        Ok(()) if at.can_end() => return Ok(()),
        Ok(()) => bytes.len(),
        Err(offset) => {
            let taken = at.push_all(&bytes[..offset]);
            debug_assert_eq!(taken, Ok(()), "they were taken before");
            offset
        }
    };
    let (taken, rest) = bytes.split_at(offset);
    Err(Refusal {
        taken: taken.to_vec(),
        rest: rest.to_vec(),
        expected: expected(&at),
        pointer: pointer::at_end(taken),
    })
}
