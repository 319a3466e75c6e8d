//! A pattern's tree to an automaton whose states may have several ways on.

use std::collections::HashMap;

use super::parse::{Look, Node};
use crate::regular::alphabet::{ANY, Set};
use crate::regular::{LIMIT, TooLarge};

/// Most states and ways; each code point of a bounded repetition takes two.
const NFA_LIMIT: usize = 5 * LIMIT;

/// A state: what is needed to go on, and where to.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A code point of the set of that number.
    Class(u32, u32),
    /// Nothing; any of several ways on.
    Split(Vec<u32>),
    Start(u32),
    End(u32),
    Boundary(bool, u32),
    /// The lookahead of that number.
    Ahead(u32, u32),
    /// The lookbehind of that number.
    Behind(u32, u32),
    /// The pattern is complete.
    Match,
}

/// The states of one pattern.
#[derive(Debug, Default)]
pub(super) struct Nfa<'n> {
    pub(super) steps: Vec<Step>,
    /// Every set that some step takes, each once; the first is that of all code points.
    pub(super) sets: Vec<Set>,
    /// What must (or must not) follow.
    pub(super) aheads: Vec<(&'n Node, bool)>,
    /// What must (or must not) stand before.
    pub(super) behinds: Vec<(&'n Node, bool)>,
    numbers: HashMap<&'n [(char, char)], u32>,
    n_ways: usize,
}

impl<'n> Nfa<'n> {
    /// The automaton and its first state; with `search`, the pattern may begin anywhere.
    pub(super) fn new(node: &'n Node, search: bool) -> Result<(Self, u32), TooLarge> {
        let mut nfa = Self { sets: vec![vec![ANY]], ..Self::default() };
        let end = nfa.push(Step::Match)?;
        let start = nfa.add(node, end)?;
        if !(search && nfa.may_begin_late(start)) {
            return Ok((nfa, start));
        }
        let split = nfa.push(Step::Split(Vec::new()))?;
        let skip = nfa.push(Step::Class(0, split))?;
        nfa.steps[split as usize] = Step::Split(vec![start, skip]);
        Ok((nfa, split))
    }

    fn push(&mut self, step: Step) -> Result<u32, TooLarge> {
        if let Step::Split(ways) = &step {
            self.n_ways += ways.len();
        }
        if self.steps.len() + self.n_ways > NFA_LIMIT {
            return Err(TooLarge);
        }
        self.steps.push(step);
        u32::try_from(self.steps.len() - 1).map_err(|_| TooLarge)
    }

    /// Adds the states of a node, which lead to `next`, and gives the first.
    fn add(&mut self, node: &'n Node, next: u32) -> Result<u32, TooLarge> {
        match node {
            Node::Empty => Ok(next),
            Node::Class(set) => {
                let set = self.set(set)?;
                self.push(Step::Class(set, next))
            }
            Node::Concat(parts) => {
                parts.iter().rev().try_fold(next, |next, part| self.add(part, next))
            }
            Node::Choice(parts) => {
                let ways: Result<Vec<u32>, TooLarge> =
                    parts.iter().map(|part| self.add(part, next)).collect();
                self.push(Step::Split(ways?))
            }
            Node::Repeat(inner, min, None) => {
                let split = self.push(Step::Split(Vec::new()))?;
                let again = self.add(inner, split)?;
                self.steps[split as usize] = Step::Split(vec![again, next]);
                // The last of the required ones is the one that repeats.
                let mut at = if *min == 0 { split } else { again };
                for _ in 1..*min {
                    at = self.add(inner, at)?;
                }
                Ok(at)
            }
            Node::Repeat(inner, min, Some(max)) => {
                let mut at = next;
                for _ in *min..*max {
                    // Straight to the end, not through the repetitions left out.
                    let more = self.add(inner, at)?;
                    at = self.push(Step::Split(vec![more, next]))?;
                }
                for _ in 0..*min {
                    at = self.add(inner, at)?;
                }
                Ok(at)
            }
            Node::Look(look) => {
                let step = match look {
                    Look::Start => Step::Start(next),
                    Look::End => Step::End(next),
                    Look::Boundary(is) => Step::Boundary(*is, next),
                    Look::Ahead(inner, is) => {
                        Step::Ahead(number(&mut self.aheads, inner, *is), next)
                    }
                    Look::Behind(inner, is) => {
                        Step::Behind(number(&mut self.behinds, inner, *is), next)
                    }
                };
                self.push(step)
            }
        }
    }

    fn set(&mut self, set: &'n Set) -> Result<u32, TooLarge> {
        if let Some(number) = self.numbers.get(set.as_slice()) {
            return Ok(*number);
        }
        let number = u32::try_from(self.sets.len()).map_err(|_| TooLarge)?;
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        Ok(number)
    }

    /// Whether the pattern can match behind the start of the text; looks are taken to hold.
    fn may_begin_late(&self, start: u32) -> bool {
        let mut seen = vec![false; self.steps.len()];
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            if std::mem::replace(&mut seen[state as usize], true) {
                continue;
            }
            match &self.steps[state as usize] {
                Step::Class(..) | Step::Match => return true,
                Step::Start(_) => {}
                Step::Split(ways) => open.extend(ways),
                Step::End(next)
                | Step::Boundary(_, next)
                | Step::Ahead(_, next)
                | Step::Behind(_, next) => open.push(*next),
            }
        }
        false
    }
}

/// The number of a look in the list, where a repetition may have put it before.
fn number<'n>(list: &mut Vec<(&'n Node, bool)>, inner: &'n Node, is: bool) -> u32 {
    let known = list.iter().position(|(node, _)| std::ptr::eq(*node, inner));
    let number = known.unwrap_or_else(|| {
        list.push((inner, is));
        list.len() - 1
    });
    u32::try_from(number).unwrap_or(u32::MAX)
}
