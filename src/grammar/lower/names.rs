//! Rule names after functions, parameters and keys.
//!
//! **Invariant:** a name is given out once, and never one of `root`, `call` and the lexical rules.

use rustc_hash::{FxHashMap, FxHashSet};

use super::lexical;
use crate::grammar::RuleName;

/// Longest name before a number is added; deep schemas would otherwise make longer ones.
const MAX_LEN: usize = 60;

/// The names given out so far.
#[derive(Debug)]
pub(super) struct Names {
    taken: FxHashSet<RuleName>,
    /// The number to try next after a name that is taken.
    next: FxHashMap<String, u32>,
}

impl Default for Names {
    fn default() -> Self {
        let mut taken: FxHashSet<RuleName> = lexical::names().collect();
        taken.extend(["root", "call"].map(|name| RuleName(name.into())));
        Self { taken, next: FxHashMap::default() }
    }
}

impl Names {
    /// A new name made of `parts`; whatever llama.cpp does not allow in a name becomes `-`, and a
    /// part with nothing left becomes `fallback`.
    pub(super) fn fresh(&mut self, parts: &[&str], fallback: &str) -> RuleName {
        let mut base = String::new();
        for part in parts {
            let start = base.len();
            let words = part.split(|c: char| !c.is_ascii_alphanumeric());
            for word in words.filter(|word| !word.is_empty()) {
                if !base.is_empty() {
                    base.push('-');
                }
                base.push_str(word);
            }
            if base.len() == start {
                if !base.is_empty() {
                    base.push('-');
                }
                base.push_str(fallback);
            }
        }
        base.truncate(MAX_LEN);
        base.truncate(base.trim_end_matches('-').len());
        let name = RuleName(base.as_str().into());
        if self.taken.insert(name.clone()) {
            return name;
        }
        let next = self.next.entry(base).or_insert(2);
        loop {
            let numbered = RuleName(format!("{name}-{next}").into());
            *next += 1;
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}
