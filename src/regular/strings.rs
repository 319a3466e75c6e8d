//! Finite sets of strings to automata, and back.

use std::collections::{HashMap, VecDeque};

use super::alphabet::ordinal;
use super::{Dfa, State};

/// The automaton of exactly these strings.
///
/// The strings come sorted, so a state is complete as soon as a string leaves it, and complete
/// states with the same future are joined at once (J. Daciuk et al., "Incremental construction of
/// minimal acyclic finite-state automata", 2000).
pub(super) fn of_strings<'s>(strings: impl IntoIterator<Item = &'s str>) -> Dfa {
    let mut strings: Vec<&str> = strings.into_iter().collect();
    strings.sort_unstable();
    strings.dedup();
    let mut complete = Complete::default();
    // The states along the last string, each with the character that leads on from it.
    let mut path: Vec<(State, char)> = Vec::new();
    let mut end = State::default();
    for string in strings {
        let shared = path.iter().zip(string.chars()).take_while(|((_, c), d)| c == d).count();
        close(&mut path, &mut end, shared, &mut complete);
        for c in string.chars().skip(shared) {
            path.push((std::mem::take(&mut end), c));
        }
        end.accepting = true;
    }
    close(&mut path, &mut end, 0, &mut complete);
    let start = complete.number(end);
    in_order(&complete.states, start)
}

/// Completes the states behind the first `keep`; `end` becomes the one after them.
fn close(path: &mut Vec<(State, char)>, end: &mut State, keep: usize, complete: &mut Complete) {
    while path.len() > keep {
        let Some((mut before, c)) = path.pop() else { return };
        let to = complete.number(std::mem::take(end));
        match before.edges.last_mut() {
            Some((_, last, target)) if *target == to && ordinal(*last) + 1 == ordinal(c) => {
                *last = c;
            }
            _ => before.edges.push((c, c, to)),
        }
        *end = before;
    }
}

/// The states whose future is known, each once.
#[derive(Default)]
struct Complete {
    states: Vec<State>,
    numbers: HashMap<State, u32>,
}

impl Complete {
    fn number(&mut self, state: State) -> u32 {
        if let Some(number) = self.numbers.get(&state) {
            return *number;
        }
        let number = u32::try_from(self.states.len()).unwrap_or(u32::MAX);
        self.states.push(state.clone());
        self.numbers.insert(state, number);
        number
    }
}

/// The states numbered breadth first from `start`.
fn in_order(states: &[State], start: u32) -> Dfa {
    let mut numbers = vec![u32::MAX; states.len()];
    numbers[start as usize] = 0;
    let mut n_numbers = 1;
    let mut open = VecDeque::from([start]);
    let mut ordered = Vec::new();
    while let Some(state) = open.pop_front() {
        let mut state = states[state as usize].clone();
        for (_, _, to) in &mut state.edges {
            let number = &mut numbers[*to as usize];
            if *number == u32::MAX {
                *number = n_numbers;
                n_numbers += 1;
                open.push_back(*to);
            }
            *to = *number;
        }
        ordered.push(state);
    }
    Dfa { states: ordered }
}

/// All texts in the order of their code points, if there are at most `limit`.
pub(super) fn strings(dfa: &Dfa, limit: usize) -> Option<Vec<String>> {
    if let Some((_, None)) = dfa.lengths() {
        return None;
    }
    let mut found = Vec::new();
    let mut text = String::new();
    // Along the text so far: the state, and the next edge and code point to follow.
    let mut path: Vec<(u32, usize, Option<char>)> = vec![(0, 0, None)];
    let mut entered = true;
    while let Some((state, edge, c)) = path.last_mut() {
        let state = &dfa.states[*state as usize];
        if entered && state.accepting {
            if found.len() == limit {
                return None;
            }
            found.push(text.clone());
        }
        let Some(&(first, last, to)) = state.edges.get(*edge) else {
            path.pop();
            text.pop();
            entered = false;
            continue;
        };
        let next = c.map_or(first, |c| super::alphabet::character(ordinal(c) + 1));
        if next == last {
            *edge += 1;
            *c = None;
        } else {
            *c = Some(next);
        }
        text.push(next);
        path.push((to, 0, None));
        entered = true;
    }
    Some(found)
}
