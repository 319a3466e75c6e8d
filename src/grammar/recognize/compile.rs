//! A [`Grammar`] as deterministic automata that call each other, by subset construction.
//!
//! A subset construction can take exponentially many states. Where it takes many more than the
//! nondeterministic automaton has, the rest of that part is left as it is: a state that jumps to
//! several others stands for a subset, and the text is then read in several threads.
//!
//! **Invariant:** the number of states and the time are linear in the size of the nondeterministic
//! automaton, which is linear in the grammar's text.

use rustc_hash::FxHashMap;

use super::automaton::{Automaton, ByteMap, Call, DEAD, Extra, Row, StateId};
use super::bytes::ByteSet;
use super::nfa::{self, END, Nfa, NfaId, PartId, Step};
use crate::grammar::Grammar;

/// Members of all subsets of a part that are always kept.
const SMALL_PART: usize = 1 << 14;
/// Members of all subsets of a part for each of its states beyond that.
const MEMBERS_PER_STATE: usize = 32;

/// Compiles a checked grammar.
pub(super) fn compile(grammar: &Grammar) -> Automaton {
    let nfa = nfa::build(grammar);
    let mut builder = Builder::new(&nfa);
    builder.need_part(0);
    let mut done = 0;
    while let Some(&part) = builder.parts.get(done) {
        done += 1;
        builder.part(part);
    }
    builder.finish()
}

/// What a deterministic state stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// Being in any of these, what they reach without a byte included; rising.
    Subset(Box<[NfaId]>),
    /// Being in this one; what it reaches without a byte are other states.
    One(NfaId),
    /// Being in any of these, each a state of its own.
    Several(Box<[NfaId]>),
}

/// A state as it is built; the ranges are into the builder's lists.
#[derive(Debug, Default)]
struct Draft {
    edges: std::ops::Range<usize>,
    calls: std::ops::Range<usize>,
    jumps: std::ops::Range<usize>,
    is_final: bool,
}

struct Builder<'n> {
    nfa: &'n Nfa,
    known: FxHashMap<Key, StateId>,
    /// States of single members, by member.
    singles: Vec<StateId>,
    /// In the order of their numbers; those from `drafts.len()` on are not built yet.
    keys: Vec<Key>,
    drafts: Vec<Draft>,
    edges: Vec<(u8, u8, StateId)>,
    /// `start` is filled in by the end.
    calls: Vec<Call>,
    jumps: Vec<StateId>,
    /// The parts in the order in which they are met, and their first states.
    parts: Vec<PartId>,
    starts: Vec<StateId>,
    is_needed: Vec<bool>,
    /// Members that the current part has, distinct and in all subsets.
    n_distinct: usize,
    n_members: usize,
    /// When a member was last met: in a closure, in a part.
    met: Vec<u32>,
    closure: u32,
    met_in_part: Vec<u32>,
    current_part: u32,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    open: Vec<NfaId>,
    members: Vec<NfaId>,
    edges: Vec<(u8, u8, NfaId)>,
    calls: Vec<(PartId, NfaId)>,
    buckets: Vec<Vec<NfaId>>,
}

impl<'n> Builder<'n> {
    fn new(nfa: &'n Nfa) -> Self {
        Self {
            nfa,
            known: FxHashMap::default(),
            singles: vec![DEAD; nfa.len()],
            keys: Vec::new(),
            drafts: Vec::new(),
            edges: Vec::new(),
            calls: Vec::new(),
            jumps: Vec::new(),
            parts: Vec::new(),
            starts: vec![DEAD; nfa.parts.len()],
            is_needed: vec![false; nfa.parts.len()],
            n_distinct: 0,
            n_members: 0,
            met: vec![0; nfa.len()],
            closure: 0,
            met_in_part: vec![0; nfa.len()],
            current_part: 0,
            scratch: Scratch::default(),
        }
    }

    fn need_part(&mut self, part: PartId) {
        if !std::mem::replace(&mut self.is_needed[part as usize], true) {
            self.parts.push(part);
        }
    }

    fn part(&mut self, part: PartId) {
        (self.n_distinct, self.n_members) = (0, 0);
        self.current_part += 1;
        let start = self.nfa.parts[part as usize].start;
        self.starts[part as usize] = self.state(&mut vec![start]);
        while self.drafts.len() < self.keys.len() {
            self.build(self.drafts.len());
        }
    }

    fn is_large(&self) -> bool {
        self.n_members > SMALL_PART + MEMBERS_PER_STATE * self.n_distinct
    }

    /// The state for being in any of these.
    fn state(&mut self, members: &mut Vec<NfaId>) -> StateId {
        members.sort_unstable();
        members.dedup();
        if let [member] = members[..] {
            if self.singles[member as usize] == DEAD {
                let key = if self.is_large() { Key::One(member) } else { self.subset(members) };
                self.singles[member as usize] = self.number(key);
            }
            return self.singles[member as usize];
        }
        let key = if self.is_large() {
            Key::Several(members.as_slice().into())
        } else {
            self.subset(members)
        };
        self.number(key)
    }

    fn number(&mut self, key: Key) -> StateId {
        if let Some(state) = self.known.get(&key) {
            return *state;
        }
        let state = StateId::try_from(self.keys.len()).unwrap_or(DEAD);
        self.keys.push(key.clone());
        self.known.insert(key, state);
        state
    }

    /// All that is reached without a byte; what does nothing itself is left out.
    fn subset(&mut self, members: &[NfaId]) -> Key {
        self.closure += 1;
        let open = &mut self.scratch.open;
        open.clear();
        open.extend(members);
        let mut subset = Vec::new();
        while let Some(member) = open.pop() {
            if std::mem::replace(&mut self.met[member as usize], self.closure) == self.closure {
                continue;
            }
            let mut does_something = member == END;
            for step in self.nfa.steps(member) {
                match step {
                    Step::Empty(to) => open.push(to),
                    Step::Byte(..) | Step::Call(..) => does_something = true,
                }
            }
            if std::mem::replace(&mut self.met_in_part[member as usize], self.current_part)
                != self.current_part
            {
                self.n_distinct += 1;
            }
            self.n_members += 1;
            if does_something {
                subset.push(member);
            }
        }
        subset.sort_unstable();
        Key::Subset(subset.into())
    }

    fn build(&mut self, index: usize) {
        let key = self.keys[index].clone();
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.edges.clear();
        scratch.calls.clear();
        let (first_edge, first_call, first_jump) =
            (self.edges.len(), self.calls.len(), self.jumps.len());
        let (members, jumps): (&[NfaId], &[NfaId]) = match &key {
            Key::Subset(members) => (members, &[]),
            Key::One(member) => (std::slice::from_ref(member), &[]),
            Key::Several(members) => (&[], members),
        };
        let mut jumps = jumps.to_vec();
        for member in members {
            for step in self.nfa.steps(*member) {
                match step {
                    Step::Byte(first, last, to) => scratch.edges.push((first, last, to)),
                    Step::Call(part, to) => scratch.calls.push((part, to)),
                    // What a subset reaches without a byte is in it.
                    Step::Empty(to) if matches!(key, Key::One(_)) => jumps.push(to),
                    Step::Empty(_) => {}
                }
            }
        }
        for jump in jumps {
            let to = self.state(&mut vec![jump]);
            self.jumps.push(to);
        }
        self.add_edges(&mut scratch);
        scratch.calls.sort_unstable();
        for calls in scratch.calls.chunk_by(|(a, _), (b, _)| a == b) {
            let part = calls[0].0;
            scratch.members.clear();
            scratch.members.extend(calls.iter().map(|(_, to)| *to));
            let back = self.state(&mut scratch.members);
            let argument = self.nfa.parts[part as usize].argument;
            self.need_part(part);
            self.calls.push(Call { start: DEAD, back, part, argument });
        }
        let open = std::mem::take(&mut self.scratch.open);
        self.scratch = Scratch { open, ..scratch };
        self.drafts.push(Draft {
            edges: first_edge..self.edges.len(),
            calls: first_call..self.calls.len(),
            jumps: first_jump..self.jumps.len(),
            is_final: members.contains(&END),
        });
    }

    /// Cuts overlapping ranges into disjoint ones, each with all targets.
    fn add_edges(&mut self, scratch: &mut Scratch) {
        if let [(first, last, to)] = scratch.edges[..] {
            scratch.members.clear();
            scratch.members.push(to);
            let to = self.state(&mut scratch.members);
            self.edges.push((first, last, to));
            return;
        }
        let mut is_cut = [false; 257];
        for (first, last, _) in &scratch.edges {
            is_cut[usize::from(*first)] = true;
            is_cut[usize::from(*last) + 1] = true;
        }
        // The range that a byte is in, and the first bytes of the ranges.
        let mut range_of = [0_usize; 256];
        let mut firsts = Vec::new();
        for byte in 0..=u8::MAX {
            if is_cut[usize::from(byte)] {
                firsts.push(byte);
            }
            range_of[usize::from(byte)] = firsts.len();
        }
        scratch.buckets.resize_with(scratch.buckets.len().max(firsts.len() + 1), Vec::new);
        for (first, last, to) in &scratch.edges {
            for range in range_of[usize::from(*first)]..=range_of[usize::from(*last)] {
                scratch.buckets[range].push(*to);
            }
        }
        let first_edge = self.edges.len();
        for (index, &first) in firsts.iter().enumerate() {
            let bucket = &mut scratch.buckets[index + 1];
            if bucket.is_empty() {
                continue;
            }
            let to = self.state(bucket);
            bucket.clear();
            let last = firsts.get(index + 1).map_or(u8::MAX, |next| next - 1);
            match self.edges[first_edge..].last_mut() {
                Some((_, end, before)) if *before == to && end.checked_add(1) == Some(first) => {
                    *end = last;
                }
                _ => self.edges.push((first, last, to)),
            }
        }
    }

    fn finish(mut self) -> Automaton {
        // The state of `END` alone, to which a call in last place leads back.
        let end = self.singles[END as usize];
        let mut calls = std::mem::take(&mut self.calls);
        for call in &mut calls {
            call.start = self.starts[call.part as usize];
        }
        let is_last = |call: &Call| call.back == end && !call.argument;
        let jumps_of = |draft: &Draft| {
            let last = calls[draft.calls.clone()].iter().filter(|call| is_last(call));
            let mut jumps: Vec<StateId> = self.jumps[draft.jumps.clone()].to_vec();
            jumps.extend(last.map(|call| call.start));
            jumps
        };
        // A state that does nothing but jump to one other is that other.
        let mut same: Vec<StateId> = Vec::new();
        for (state, draft) in (0..).zip(&self.drafts) {
            let only = match jumps_of(draft)[..] {
                [to] if draft.edges.is_empty()
                    && !draft.is_final
                    && calls[draft.calls.clone()].iter().all(is_last) =>
                {
                    to
                }
                _ => state,
            };
            same.push(only);
        }
        let is_plain =
            |draft: &Draft| draft.calls.is_empty() && draft.jumps.is_empty() && !draft.is_final;
        let n_plain = self.drafts.iter().filter(|draft| is_plain(draft)).count();
        let mut numbers = Vec::with_capacity(self.drafts.len());
        let (mut plain, mut other) = (0, index(n_plain));
        for draft in &self.drafts {
            let next = if is_plain(draft) { &mut plain } else { &mut other };
            numbers.push(*next);
            *next += 1;
        }
        let number = |mut state: StateId| {
            // No circle: it would be left recursion.
            while same[state as usize] != state {
                state = same[state as usize];
            }
            numbers[state as usize]
        };
        let mut tables = Automaton {
            start: number(self.starts[0]),
            n_plain: index(n_plain),
            names: self.nfa.parts.iter().map(|part| part.name.clone()).collect(),
            ..Automaton::default()
        };
        let mut order: Vec<usize> = (0..self.drafts.len()).collect();
        order.sort_unstable_by_key(|state| numbers[*state]);
        let mut maps: FxHashMap<Vec<(u8, u8, u8)>, u32> = FxHashMap::default();
        for draft in order.into_iter().map(|state| &self.drafts[state]) {
            let first_target = index(tables.targets.len());
            tables.targets.push(DEAD);
            let mut ranges = Vec::new();
            for &(first, last, to) in &self.edges[draft.edges.clone()] {
                let own = &tables.targets[first_target as usize..];
                let to = number(to);
                // Not the class of the bytes that are refused.
                let class = own.iter().skip(1).position(|target| *target == to);
                let class = class.map_or(own.len(), |class| class + 1);
                if class == own.len() {
                    tables.targets.push(to);
                }
                ranges.push((first, last, u8::try_from(class).unwrap_or(0)));
            }
            let map = *maps.entry(ranges).or_insert_with_key(|ranges| {
                tables.maps.push(byte_map(ranges));
                index(tables.maps.len() - 1)
            });
            tables.rows.push(Row { map, first_target });
            if is_plain(draft) {
                continue;
            }
            let (first_call, first_jump) = (index(tables.calls.len()), index(tables.jumps.len()));
            let own = calls[draft.calls.clone()].iter().filter(|call| !is_last(call));
            tables.calls.extend(own.map(|call| Call {
                start: number(call.start),
                back: number(call.back),
                ..*call
            }));
            tables.jumps.extend(jumps_of(draft).into_iter().map(number));
            tables.extras.push(Extra {
                calls: first_call..index(tables.calls.len()),
                jumps: first_jump..index(tables.jumps.len()),
                is_final: draft.is_final,
            });
        }
        tables
    }
}

/// A byte of well-formed UTF-8 is one of 243, so a class is below 256.
fn byte_map(ranges: &[(u8, u8, u8)]) -> ByteMap {
    let mut map = ByteMap { classes: [0; 256], set: ByteSet::default(), ranges: ranges.to_vec() };
    for &(first, last, class) in ranges {
        map.set.insert_range(first, last);
        map.classes[usize::from(first)..=usize::from(last)].fill(class);
    }
    map
}

fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
