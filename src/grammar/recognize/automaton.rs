//! The tables of a compiled grammar: deterministic automata over bytes that call each other.
//!
//! **Invariant:** states below `n_plain` lead on by bytes alone; the others may also call, go on
//! without a byte, or be the end of a part.
//! **Invariant:** every state has a way to the end of its part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::OnceLock;

use super::bytes::ByteSet;
use crate::grammar::RuleName;

/// A state of the compiled grammar.
pub(super) type StateId = u32;

/// Where a byte that is refused leads.
pub(super) const DEAD: StateId = u32::MAX;

/// Most bytes of a completion: what takes more is nothing to wait for.
const CHEAPEST_LIMIT: usize = 1 << 16;

/// A compiled grammar.
#[derive(Debug, Default)]
pub(super) struct Automaton {
    pub(super) start: StateId,
    pub(super) n_plain: u32,
    pub(super) rows: Vec<Row>,
    /// Targets of all rows, [`DEAD`] the first of each.
    pub(super) targets: Vec<StateId>,
    pub(super) maps: Vec<ByteMap>,
    /// Of the states from `n_plain` on.
    pub(super) extras: Vec<Extra>,
    pub(super) calls: Vec<Call>,
    pub(super) jumps: Vec<StateId>,
    /// Rule names by part.
    pub(super) names: Vec<Option<RuleName>>,
    pub(super) costs: OnceLock<Vec<u32>>,
}

/// The edges of one state: `targets[first_target + map.classes[byte]]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) map: u32,
    pub(super) first_target: u32,
}

/// Bytes by what a state does with them; most states share theirs with many others.
#[derive(Debug)]
pub(super) struct ByteMap {
    /// 0 for bytes that are refused.
    pub(super) classes: [u8; 256],
    /// The bytes that are taken.
    pub(super) set: ByteSet,
    /// First byte, last byte, class; rising.
    pub(super) ranges: Vec<(u8, u8, u8)>,
}

/// What leads on from a state beside bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Extra {
    pub(super) calls: Range<u32>,
    pub(super) jumps: Range<u32>,
    pub(super) is_final: bool,
}

/// From one state to another by a text of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// First state of the part.
    pub(super) start: StateId,
    /// Where to go on after it.
    pub(super) back: StateId,
    /// The part's number.
    pub(super) part: u32,
    /// Whether the part is an argument's value.
    pub(super) argument: bool,
}

impl Automaton {
    pub(super) fn map(&self, state: StateId) -> &ByteMap {
        &self.maps[self.rows[state as usize].map as usize]
    }

    /// The state after a byte, or [`DEAD`].
    pub(super) fn next(&self, state: StateId, byte: u8) -> StateId {
        let row = self.rows[state as usize];
        let class = self.maps[row.map as usize].classes[usize::from(byte)];
        self.targets[row.first_target as usize + usize::from(class)]
    }

    /// Follows bytes for as long as the states are plain: how many, and the state they lead to.
    /// Every one but the last leads to a plain state; the last may lead anywhere, also to [`DEAD`].
    pub(super) fn run(&self, mut state: StateId, bytes: &[u8]) -> (usize, StateId) {
        let mut done = 0;
        while done < bytes.len() {
            let row = self.rows[state as usize];
            let classes = &self.maps[row.map as usize].classes;
            let targets = &self.targets[row.first_target as usize..];
            // Inside a string most bytes lead back to the same state. Where that is not plain,
            // other threads begin there.
            let is_plain = state < self.n_plain;
            let mut next = state;
            while let Some(byte) = bytes.get(done) {
                next = targets[usize::from(classes[usize::from(*byte)])];
                done += 1;
                if next != state || !is_plain {
                    break;
                }
            }
            state = next;
            if state >= self.n_plain {
                break;
            }
        }
        (done, state)
    }

    pub(super) fn has_edges(&self, state: StateId) -> bool {
        !self.map(state).ranges.is_empty()
    }

    /// First byte, last byte and target of each edge.
    pub(super) fn edges(&self, state: StateId) -> impl Iterator<Item = (u8, u8, StateId)> + '_ {
        let row = self.rows[state as usize];
        self.maps[row.map as usize].ranges.iter().map(move |&(first, last, class)| {
            (first, last, self.targets[row.first_target as usize + usize::from(class)])
        })
    }

    fn extra(&self, state: StateId) -> Option<&Extra> {
        self.extras.get(state.checked_sub(self.n_plain)? as usize)
    }

    pub(super) fn calls(&self, state: StateId) -> &[Call] {
        let range = self.extra(state).map_or(0..0, |extra| extra.calls.clone());
        &self.calls[range.start as usize..range.end as usize]
    }

    /// Where the state leads without a byte.
    pub(super) fn jumps(&self, state: StateId) -> &[StateId] {
        let range = self.extra(state).map_or(0..0, |extra| extra.jumps.clone());
        &self.jumps[range.start as usize..range.end as usize]
    }

    pub(super) fn is_final(&self, state: StateId) -> bool {
        self.extra(state).is_some_and(|extra| extra.is_final)
    }

    /// Fewest bytes that complete the state's part.
    pub(super) fn cost(&self, state: StateId) -> u32 {
        self.costs.get_or_init(|| self.price())[state as usize]
    }

    /// The costs of all states, the cheapest first (Knuth's generalization of Dijkstra's algorithm).
    fn price(&self) -> Vec<u32> {
        let n_states = self.rows.len();
        let ids = || (0..u32::MAX).take(n_states);
        // The states whose cost follows from that of another.
        let mut before: Vec<Vec<StateId>> = vec![Vec::new(); n_states];
        for state in ids() {
            let by_edge = self.edges(state).map(|(_, _, to)| to);
            let by_call = self.calls(state).iter().flat_map(|call| [call.start, call.back]);
            for to in by_edge.chain(by_call).chain(self.jumps(state).iter().copied()) {
                before[to as usize].push(state);
            }
        }
        let mut costs = vec![u32::MAX; n_states];
        let mut open: BinaryHeap<Reverse<(u32, StateId)>> =
            ids().filter(|state| self.is_final(*state)).map(|state| Reverse((0, state))).collect();
        while let Some(Reverse((cost, state))) = open.pop() {
            if costs[state as usize] <= cost {
                continue;
            }
            costs[state as usize] = cost;
            for &caller in &before[state as usize] {
                let cost = self.cheapest_step(caller, &costs);
                if cost < costs[caller as usize] {
                    open.push(Reverse((cost, caller)));
                }
            }
        }
        costs
    }

    fn cheapest_step(&self, state: StateId, costs: &[u32]) -> u32 {
        let cost = |state: StateId| costs[state as usize];
        let by_edge = self.edges(state).map(|(_, _, to)| cost(to).saturating_add(1));
        let by_call =
            self.calls(state).iter().map(|call| cost(call.start).saturating_add(cost(call.back)));
        let by_jump = self.jumps(state).iter().map(|to| cost(*to));
        by_edge.chain(by_call).chain(by_jump).min().unwrap_or(u32::MAX)
    }

    /// Appends the fewest bytes that complete the state's part.
    pub(super) fn cheapest(&self, state: StateId, bytes: &mut Vec<u8>) {
        // What is left to complete, the innermost last.
        let mut open = vec![state];
        while let Some(state) = open.pop() {
            if self.is_final(state) || bytes.len() >= CHEAPEST_LIMIT {
                continue;
            }
            let cost = self.cost(state);
            let edges = || {
                let good = |edge: &(u8, u8, StateId)| self.cost(edge.2).saturating_add(1) == cost;
                self.edges(state).filter(good)
            };
            let printable = |(first, last, to): (u8, u8, StateId)| {
                let byte = first.max(b' ');
                (byte <= last.min(b'~')).then_some((byte, to))
            };
            let edge = edges()
                .find_map(printable)
                .or_else(|| edges().next().map(|(first, _, to)| (first, to)));
            let call_cost =
                |call: &&Call| self.cost(call.start).saturating_add(self.cost(call.back));
            let call = || self.calls(state).iter().find(|call| call_cost(call) == cost);
            let jump = || self.jumps(state).iter().find(|to| self.cost(**to) == cost);
            if let Some((byte, to)) = edge {
                bytes.push(byte);
                open.push(to);
            } else if let Some(call) = call() {
                open.extend([call.back, call.start]);
            } else if let Some(to) = jump() {
                open.push(*to);
            }
        }
    }
}
