//! Rule names after functions, parameters and keys.
//!
//! **Invariant:** a name is given out once, and never one of `root`, `call` and the lexical rules.

use std::collections::HashSet;

use super::lexical;
use crate::grammar::RuleName;

/// Longest name before a number is added; deep schemas would otherwise make longer ones.
const MAX_LEN: usize = 60;

/// The names given out so far.
#[derive(Debug)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Default for Names {
    fn default() -> Self {
        let mut taken: HashSet<String> = lexical::names().map(|name| name.to_string()).collect();
        taken.extend(["root".to_owned(), "call".to_owned()]);
        Self { taken }
    }
}

impl Names {
    /// A new name made of `parts`; whatever llama.cpp does not allow in a name becomes `-`, and a
    /// part with nothing left becomes `fallback`.
    pub(super) fn fresh(&mut self, parts: &[&str], fallback: &str) -> RuleName {
        let parts: Vec<String> = parts
            .iter()
            .map(|part| {
                let words = part.split(|c: char| !c.is_ascii_alphanumeric());
                let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
                if words.is_empty() { fallback.to_owned() } else { words.join("-") }
            })
            .collect();
        let mut base = parts.join("-");
        base.truncate(MAX_LEN);
        let base = base.trim_end_matches('-');
        let mut name = base.to_owned();
        let mut n = 2_u32;
        while !self.taken.insert(name.clone()) {
            name = format!("{base}-{n}");
            n += 1;
        }
        RuleName(name)
    }
}
