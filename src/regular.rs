//! Regular languages over Unicode scalar values, as minimal deterministic automata: the patterns,
//! lengths and enumerations of JSON strings, and what is left of several of them together.
//!
//! **Invariant:** two [`Dfa`]s are equal exactly when their languages are.
//! **Invariant:** no construction makes more than [`LIMIT`] states where its input could ask for
//! more than it says in characters; the error says so at once instead of using up time and memory.
//! **Invariant:** no recursion as deep as a text or an automaton is long.

mod alphabet;
mod minimize;
mod product;
mod strings;
mod pattern;
pub mod number;
pub mod format;

use std::collections::HashMap;

use self::alphabet::{ANY, Alphabet};
use self::minimize::Edge;
pub use self::pattern::PatternError;
use self::product::{Keep, product};

/// Most states of an automaton before it is minimized.
pub const LIMIT: usize = 20_000;

/// The automaton would have more states than [`LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the automaton would have more than {LIMIT} states")]
pub struct TooLarge;

/// A language: a minimal deterministic automaton without useless states.
///
/// State 0 is the start; the edges of a state are sorted and disjoint, and no two that touch lead
/// to the same state.
///
/// ```
/// use call_me_maybe::regular::Dfa;
///
/// let names = Dfa::of_strings(["get", "put", "patch"]);
/// let short = names.intersect(&Dfa::with_length(0, Some(3))?)?;
/// assert_eq!(short.strings(10), Some(vec!["get".to_owned(), "put".to_owned()]));
/// assert!(names.complement().accepts("post"));
/// # Ok::<(), call_me_maybe::regular::TooLarge>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dfa {
    states: Vec<State>,
}

/// A state of a [`Dfa`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Whether a text may end here.
    pub accepting: bool,
    /// Inclusive ranges of code points, and the state that each leads to.
    pub edges: Vec<(char, char, u32)>,
}

impl Dfa {
    /// Any deterministic automaton, minimized: state 0 is the start, the edges of a state do not
    /// overlap.
    #[must_use]
    pub fn from_states(mut states: Vec<State>) -> Self {
        // What leads from one state to another is one set, and equal sets are one.
        let mut sets: Vec<Vec<(char, char)>> = Vec::new();
        let mut known: HashMap<Vec<(char, char)>, usize> = HashMap::new();
        let mut ways: Vec<(u32, usize, u32)> = Vec::new();
        for (from, state) in (0_u32..).zip(&mut states) {
            state.edges.sort_unstable_by_key(|(first, _, to)| (*to, *first));
            for same in state.edges.chunk_by(|one, other| one.2 == other.2) {
                let mut set = Vec::with_capacity(same.len());
                for (first, last, _) in same {
                    alphabet::push(&mut set, *first, *last);
                }
                let number = *known.entry(set).or_insert_with_key(|set| {
                    sets.push(set.clone());
                    sets.len() - 1
                });
                ways.push((from, number, same[0].2));
            }
        }
        let alphabet = Alphabet::new(sets.iter().map(Vec::as_slice));
        let symbols: Vec<Vec<u32>> = sets.iter().map(|set| alphabet.symbols(set)).collect();
        let edges: Vec<Edge> = ways
            .iter()
            .flat_map(|&(from, set, to)| {
                symbols[set].iter().map(move |&symbol| Edge { from, symbol, to })
            })
            .collect();
        let accepting: Vec<bool> = states.iter().map(|state| state.accepting).collect();
        minimize::minimal(&accepting, &edges, &alphabet)
    }

    /// The states, the start first.
    #[must_use]
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// All texts.
    #[must_use]
    pub fn any() -> Self {
        Self { states: vec![State { accepting: true, edges: vec![(ANY.0, ANY.1, 0)] }] }
    }

    /// No text.
    #[must_use]
    pub fn empty() -> Self {
        Self { states: vec![State::default()] }
    }

    /// Exactly these texts; as many states as they need.
    #[must_use]
    pub fn of_strings<'s>(strings: impl IntoIterator<Item = &'s str>) -> Self {
        strings::of_strings(strings)
    }

    /// The texts of `min` to `max` code points; `None` for no upper bound.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] for bounds from [`LIMIT`] on.
    pub fn with_length(min: u32, max: Option<u32>) -> Result<Self, TooLarge> {
        let last = max.unwrap_or(min);
        if last < min {
            return Ok(Self::empty());
        }
        if last as usize >= LIMIT {
            return Err(TooLarge);
        }
        let state = |length: u32| {
            let to = if length < last { Some(length + 1) } else { max.is_none().then_some(length) };
            State {
                accepting: length >= min,
                edges: to.into_iter().map(|to| (ANY.0, ANY.1, to)).collect(),
            }
        };
        Ok(Self { states: (0..=last).map(state).collect() })
    }

    /// The texts in which the ECMA-262 pattern matches somewhere, as JSON Schema's `pattern` means
    /// it: `^` and `$` are the ends of the text, and characters are code points.
    ///
    /// Groups, alternatives, repetition (lazy too), classes, properties, `\b`, lookaheads and
    /// lookbehinds are understood; backreferences are not, nor some looks within looks.
    ///
    /// ```
    /// use call_me_maybe::regular::Dfa;
    ///
    /// let slug = Dfa::pattern(r"^(?!-)[a-z\d-]{1,63}(?<!-)$")?;
    /// assert!(slug.accepts("call-me") && !slug.accepts("-call") && !slug.accepts("me-"));
    /// # Ok::<(), call_me_maybe::regular::PatternError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong with the pattern or not understood, and where; [`TooLarge`].
    pub fn pattern(pattern: &str) -> Result<Self, PatternError> {
        pattern::pattern(pattern)
    }

    /// The texts of both.
    ///
    /// # Errors
    ///
    /// [`TooLarge`].
    pub fn intersect(&self, other: &Self) -> Result<Self, TooLarge> {
        product(self, other, Keep::Both)
    }

    /// The texts of either.
    ///
    /// # Errors
    ///
    /// [`TooLarge`].
    pub fn union(&self, other: &Self) -> Result<Self, TooLarge> {
        product(self, other, Keep::Either)
    }

    /// The texts of this one that are not of the other.
    ///
    /// # Errors
    ///
    /// [`TooLarge`].
    pub fn minus(&self, other: &Self) -> Result<Self, TooLarge> {
        product(self, other, Keep::FirstOnly)
    }

    /// All other texts.
    #[must_use]
    pub fn complement(&self) -> Self {
        // What leaves this automaton ends in one more state, which it never leaves.
        let sink = u32::try_from(self.states.len()).unwrap_or(u32::MAX);
        let all_but = |state: &State| {
            let taken: Vec<_> = state.edges.iter().map(|&(first, last, _)| (first, last)).collect();
            let mut edges = state.edges.clone();
            let others = alphabet::complement(&alphabet::set_of(taken));
            edges.extend(others.into_iter().map(|(first, last)| (first, last, sink)));
            State { accepting: !state.accepting, edges }
        };
        let mut states: Vec<State> = self.states.iter().map(all_but).collect();
        states.push(State { accepting: true, edges: vec![(ANY.0, ANY.1, sink)] });
        Self::from_states(states)
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.len() == 1 && !self.states[0].accepting
    }

    /// Whether every text is one.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.states.len() == 1
            && self.states[0].accepting
            && self.states[0].edges == [(ANY.0, ANY.1, 0)]
    }

    /// Whether this text is one.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        let mut state = &self.states[0];
        for c in text.chars() {
            let at = state.edges.partition_point(|(_, last, _)| *last < c);
            match state.edges.get(at) {
                Some(&(first, _, to)) if first <= c => state = &self.states[to as usize],
                _ => return false,
            }
        }
        state.accepting
    }

    /// Code points of the shortest and of the longest text, which is `None` where there is no
    /// longest; `None` for the empty language.
    #[must_use]
    pub fn lengths(&self) -> Option<(usize, Option<usize>)> {
        // States are numbered breadth first, so the first accepting one need not be the nearest,
        // but distances are final in the order of the numbers.
        let mut shortest = vec![usize::MAX; self.states.len()];
        shortest[0] = 0;
        let mut n_before = vec![0_usize; self.states.len()];
        for (number, state) in self.states.iter().enumerate() {
            for (_, _, to) in &state.edges {
                let to = *to as usize;
                shortest[to] = shortest[to].min(shortest[number] + 1);
                n_before[to] += 1;
            }
        }
        let accepting = || (0..self.states.len()).filter(|state| self.states[*state].accepting);
        let min = accepting().map(|state| shortest[state]).min()?;
        // Every state leads to an end, so a cycle anywhere makes texts of any length.
        let mut longest = vec![0; self.states.len()];
        let mut open: Vec<usize> = if n_before[0] == 0 { vec![0] } else { Vec::new() };
        let mut n_done = 0;
        while let Some(number) = open.pop() {
            n_done += 1;
            for (_, _, to) in &self.states[number].edges {
                let to = *to as usize;
                longest[to] = longest[to].max(longest[number] + 1);
                n_before[to] -= 1;
                if n_before[to] == 0 {
                    open.push(to);
                }
            }
        }
        let max = accepting().map(|state| longest[state]).max();
        Some((min, max.filter(|_| n_done == self.states.len())))
    }

    /// All texts in the order of their code points, if there are at most `limit`.
    #[must_use]
    pub fn strings(&self, limit: usize) -> Option<Vec<String>> {
        strings::strings(self, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(first: char, last: char, to: u32) -> (char, char, u32) {
        (first, last, to)
    }

    #[test]
    fn languages_with_other_automata_are_equal() {
        // (ab)* with a useless state, a state twice, and ranges cut where nothing changes.
        let states = vec![
            State { accepting: true, edges: vec![edge('a', 'a', 1), edge('b', 'b', 3)] },
            State { accepting: false, edges: vec![edge('b', 'b', 2)] },
            State { accepting: true, edges: vec![edge('a', 'a', 1)] },
            State { accepting: false, edges: vec![edge('a', 'z', 3)] },
        ];
        let expected = vec![
            State { accepting: true, edges: vec![edge('a', 'a', 1)] },
            State { accepting: false, edges: vec![edge('b', 'b', 0)] },
        ];
        assert_eq!(Dfa::from_states(states).states(), expected);
        let cut = vec![State {
            accepting: true,
            edges: vec![
                edge('\0', 'f', 0),
                edge('g', '\u{d7ff}', 0),
                edge('\u{e000}', char::MAX, 0),
            ],
        }];
        assert_eq!(Dfa::from_states(cut), Dfa::any());
        assert_eq!(Dfa::from_states(Vec::new()), Dfa::empty());
        assert_eq!(
            Dfa::from_states(Dfa::with_length(3, None).unwrap().states),
            Dfa::with_length(3, None).unwrap()
        );
    }

    #[test]
    fn set_operations() {
        let abc = Dfa::of_strings(["a", "b", "c", "abc", ""]);
        let short = Dfa::with_length(0, Some(1)).unwrap();
        let one = abc.intersect(&short).unwrap();
        assert_eq!(one, Dfa::of_strings(["", "c", "b", "a"]));
        assert_eq!(abc.minus(&one).unwrap(), Dfa::of_strings(["abc"]));
        assert_eq!(one.union(&Dfa::of_strings(["abc", "a"])).unwrap(), abc);
        assert_eq!(abc.complement().complement(), abc);
        assert!(abc.union(&abc.complement()).unwrap().is_any());
        assert!(abc.intersect(&abc.complement()).unwrap().is_empty());
        assert_eq!(Dfa::any().complement(), Dfa::empty());
        assert_eq!(Dfa::empty().complement(), Dfa::any());
        assert_eq!(
            Dfa::with_length(3, None).unwrap().complement(),
            Dfa::with_length(0, Some(2)).unwrap()
        );
        assert!(!abc.accepts("ab") && abc.accepts("abc") && abc.accepts("") && !abc.accepts("é"));
    }

    #[track_caller]
    fn check_lengths(dfa: &Dfa, expected: Option<(usize, Option<usize>)>) {
        assert_eq!(dfa.lengths(), expected);
    }

    #[test]
    fn lengths_are_of_code_points() {
        check_lengths(&Dfa::empty(), None);
        check_lengths(&Dfa::any(), Some((0, None)));
        check_lengths(&Dfa::of_strings(["été", "a"]), Some((1, Some(3))));
        check_lengths(&Dfa::of_strings([""]), Some((0, Some(0))));
        check_lengths(&Dfa::with_length(2, Some(9)).unwrap(), Some((2, Some(9))));
        check_lengths(&Dfa::with_length(7, None).unwrap(), Some((7, None)));
        check_lengths(&Dfa::with_length(7, Some(6)).unwrap(), None);
    }

    #[test]
    fn strings_come_back_in_order() {
        let dfa = Dfa::of_strings(["b", "a", "", "ab", "\u{d7ff}", "\u{e000}"]);
        let expected = ["", "a", "ab", "b", "\u{d7ff}", "\u{e000}"].map(str::to_owned);
        assert_eq!(dfa.strings(6), Some(expected.to_vec()));
        assert_eq!(dfa.strings(5), None);
        assert_eq!(Dfa::any().strings(5), None);
        assert_eq!(Dfa::empty().strings(0), Some(Vec::new()));
        assert_eq!(Dfa::with_length(1, Some(1)).unwrap().strings(1_000), None);
    }

    #[test]
    fn bounds_beyond_the_limit_are_refused() {
        assert_eq!(Dfa::with_length(0, Some(20_000)), Err(TooLarge));
        assert_eq!(Dfa::with_length(20_000, None), Err(TooLarge));
        assert_eq!(Dfa::with_length(0, Some(19_999)).unwrap().states().len(), LIMIT);
        let long = Dfa::with_length(0, Some(300)).unwrap();
        let word = |c: char| {
            let one = vec![(c, c, 0_u32)];
            Dfa::from_states(vec![State { accepting: true, edges: one }])
        };
        assert_eq!(long.intersect(&word('x')).unwrap().states().len(), 301);
        assert_eq!(TooLarge.to_string(), "the automaton would have more than 20000 states");
    }
}
