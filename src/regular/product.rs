//! Two automata walked in step: intersection, union, difference.

use std::collections::HashMap;

use super::alphabet::{character, ordinal};
use super::{Dfa, LIMIT, State, TooLarge};

/// Which texts of two languages are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Both,
    Either,
    FirstOnly,
}

impl Keep {
    fn accepts(self, one: bool, other: bool) -> bool {
        match self {
            Self::Both => one && other,
            Self::Either => one || other,
            Self::FirstOnly => one && !other,
        }
    }

    /// Whether a text can still be kept that has left the automata in whose place `None` stands.
    fn is_open(self, one: Option<u32>, other: Option<u32>) -> bool {
        match self {
            Self::Both => one.is_some() && other.is_some(),
            Self::Either => one.is_some() || other.is_some(),
            Self::FirstOnly => one.is_some(),
        }
    }
}

/// A state of each automaton; `None` once the text has left it.
type Pair = (Option<u32>, Option<u32>);

pub(super) fn product(one: &Dfa, other: &Dfa, keep: Keep) -> Result<Dfa, TooLarge> {
    let start: Pair = (Some(0), Some(0));
    let mut pairs = vec![start];
    let mut numbers = HashMap::from([(start, 0_u32)]);
    let mut states: Vec<State> = Vec::new();
    while let Some(&pair) = pairs.get(states.len()) {
        let state = |dfa: &Dfa, state: Option<u32>| state.map(|s| dfa.states[s as usize].accepting);
        let accepting = keep.accepts(
            state(one, pair.0).unwrap_or_default(),
            state(other, pair.1).unwrap_or_default(),
        );
        let mut edges = Vec::new();
        for (first, last, to) in in_step(edges_of(one, pair.0), edges_of(other, pair.1)) {
            if !keep.is_open(to.0, to.1) {
                continue;
            }
            let next = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
            let number = *numbers.entry(to).or_insert(next);
            if number == next {
                if pairs.len() >= LIMIT {
                    return Err(TooLarge);
                }
                pairs.push(to);
            }
            edges.push((first, last, number));
        }
        states.push(State { accepting, edges });
    }
    Ok(Dfa::from_states(states))
}

fn edges_of(dfa: &Dfa, state: Option<u32>) -> &[(char, char, u32)] {
    state.map_or(&[], |state| &dfa.states[state as usize].edges)
}

/// The ranges in which neither list changes its target, with both targets.
fn in_step(
    mut one: &[(char, char, u32)],
    mut other: &[(char, char, u32)],
) -> Vec<(char, char, Pair)> {
    let mut ranges = Vec::new();
    let mut at = 0;
    loop {
        // What lies before `at` is done.
        let done = |edges: &[(char, char, u32)]| edges.first().is_some_and(|e| ordinal(e.1) < at);
        while done(one) {
            one = &one[1..];
        }
        while done(other) {
            other = &other[1..];
        }
        let from = |edges: &[(char, char, u32)]| edges.first().map(|e| ordinal(e.0).max(at));
        let Some(first) = [from(one), from(other)].into_iter().flatten().min() else {
            return ranges;
        };
        let mut last = u32::MAX;
        let mut target = |edges: &[(char, char, u32)]| {
            let edge = edges.first()?;
            if ordinal(edge.0) <= first {
                last = last.min(ordinal(edge.1));
                Some(edge.2)
            } else {
                last = last.min(ordinal(edge.0) - 1);
                None
            }
        };
        let to = (target(one), target(other));
        ranges.push((character(first), character(last), to));
        at = last + 1;
    }
}
