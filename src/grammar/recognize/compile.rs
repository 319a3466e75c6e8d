//! A [`Grammar`] as automata over bytes that call each other.
//!
//! Each rule becomes a nondeterministic automaton (Thompson's construction), then a deterministic
//! one (subsets of its states). A rule that is used in one place only, and is no argument's value,
//! is built in there: so a list of function names becomes one automaton that shares their
//! beginnings.
//!
//! **Invariant:** the ranges of a state's edges are disjoint and rising.
//! **Invariant:** every state has a finite cost: the fewest bytes that complete its rule.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use regex_syntax::utf8::Utf8Sequences;

use crate::grammar::{Class, Expr, Grammar, Rule, RuleName};

/// A state of the compiled grammar.
pub(super) type StateId = u32;

/// A compiled grammar.
#[derive(Debug, Default)]
pub(super) struct Automaton {
    pub(super) start: StateId,
    states: Vec<State>,
    edges: Vec<Edge>,
    calls: Vec<Call>,
}

#[derive(Debug)]
struct State {
    edges: Range<u32>,
    calls: Range<u32>,
    /// Whether the rule can be complete here.
    last: bool,
    cost: u32,
}

/// From one state to another by a byte of an inclusive range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) first: u8,
    pub(super) last: u8,
    to: StateId,
}

/// From one state to another by a text of a rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// First state of the called rule.
    pub(super) rule: StateId,
    /// Where to go on after it.
    pub(super) back: StateId,
    /// Whether the rule is an argument's value.
    pub(super) argument: bool,
    /// Whether nothing can follow at `back` but the end of the calling rule.
    pub(super) last: bool,
}

impl Automaton {
    pub(super) fn edges(&self, state: StateId) -> &[Edge] {
        let Range { start, end } = self.states[state as usize].edges;
        &self.edges[start as usize..end as usize]
    }

    pub(super) fn calls(&self, state: StateId) -> &[Call] {
        let Range { start, end } = self.states[state as usize].calls;
        &self.calls[start as usize..end as usize]
    }

    pub(super) fn is_final(&self, state: StateId) -> bool {
        self.states[state as usize].last
    }

    /// Whether a byte is all that leads on from the state.
    pub(super) fn only_takes_bytes(&self, state: StateId) -> bool {
        let state = &self.states[state as usize];
        state.calls.is_empty() && !state.last
    }

    pub(super) fn next(&self, state: StateId, byte: u8) -> Option<StateId> {
        let edge = self.edges(state).iter().find(|edge| byte <= edge.last)?;
        (edge.first <= byte).then_some(edge.to)
    }

    /// Fewest bytes that complete the state's rule.
    pub(super) fn cost(&self, state: StateId) -> u32 {
        self.states[state as usize].cost
    }

    /// Appends the fewest bytes that complete the state's rule.
    pub(super) fn cheapest(&self, state: StateId, bytes: &mut Vec<u8>) {
        // What is left to complete, the innermost last.
        let mut open = vec![state];
        while let Some(state) = open.pop() {
            if self.is_final(state) {
                continue;
            }
            let cost = self.cost(state);
            let good = |edge: &&Edge| self.cost(edge.to).saturating_add(1) == cost;
            let printable = |edge: &Edge| {
                (edge.first.max(b' ') <= edge.last.min(b'~')).then(|| edge.first.max(b' '))
            };
            let edges = || self.edges(state).iter().filter(good);
            let edge = edges()
                .find_map(|edge| printable(edge).map(|byte| (byte, edge.to)))
                .or_else(|| edges().next().map(|edge| (edge.first, edge.to)));
            let call = || self.calls(state).iter().find(|call| self.call_cost(call) == cost);
            if let Some((byte, to)) = edge {
                bytes.push(byte);
                open.push(to);
            } else if let Some(call) = call() {
                open.extend([call.back, call.rule]);
            }
        }
    }

    fn call_cost(&self, call: &Call) -> u32 {
        self.cost(call.rule).saturating_add(self.cost(call.back))
    }

    /// Computes the costs: from unknown downwards until none changes.
    fn price(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for id in (0..self.states.len()).rev() {
                let state = StateId::try_from(id).unwrap_or(StateId::MAX);
                let by_edge =
                    self.edges(state).iter().map(|edge| self.cost(edge.to).saturating_add(1));
                let by_call = self.calls(state).iter().map(|call| self.call_cost(call));
                let cost = by_edge.chain(by_call).min().unwrap_or(u32::MAX);
                let cost = if self.is_final(state) { 0 } else { cost };
                if cost < self.states[id].cost {
                    self.states[id].cost = cost;
                    changed = true;
                }
            }
        }
    }
}

/// Compiles a checked grammar.
pub(super) fn compile(grammar: &Grammar) -> Automaton {
    let rules: HashMap<&RuleName, &Rule> = grammar.rules().iter().map(|r| (&r.name, r)).collect();
    let mut n_uses: HashMap<&RuleName, usize> = HashMap::new();
    for rule in grammar.rules() {
        count(&rule.expr, &mut n_uses);
    }
    let root = RuleName::root();
    let inlined = |rule: &Rule| {
        !rule.argument && rule.name != root && n_uses.get(&rule.name).is_some_and(|n| *n == 1)
    };
    let mut automaton = Automaton::default();
    let mut starts: HashMap<&RuleName, StateId> = HashMap::new();
    let mut called: Vec<&RuleName> = Vec::new();
    for rule in grammar.rules().iter().filter(|rule| !inlined(rule)) {
        let mut nfa = Nfa::default();
        let (start, end) = (nfa.state(), nfa.state());
        nfa.add(&rule.expr, start, end, &|name| rules.get(name).copied().filter(|r| inlined(r)));
        starts.insert(&rule.name, automaton.determinize(&nfa, start, end, &rules, &mut called));
    }
    // Rules call rules that come later; only now is every start known.
    for (call, name) in automaton.calls.iter_mut().zip(called) {
        call.rule = starts.get(name).copied().unwrap_or_default();
    }
    for index in 0..automaton.calls.len() {
        let back = automaton.calls[index].back;
        automaton.calls[index].last = automaton.is_final(back)
            && automaton.edges(back).is_empty()
            && automaton.calls(back).is_empty();
    }
    automaton.start = starts.get(&root).copied().unwrap_or_default();
    automaton.price();
    automaton
}

fn count<'a>(expr: &'a Expr, n_uses: &mut HashMap<&'a RuleName, usize>) {
    match expr {
        Expr::Literal(_) | Expr::Class(_) => {}
        Expr::Rule(name) => *n_uses.entry(name).or_default() += 1,
        Expr::Concat(parts) | Expr::Choice(parts) => parts.iter().for_each(|p| count(p, n_uses)),
        // A repetition is written out below, so what it repeats may be used several times.
        Expr::Repeat(inner, repeat) => {
            count(inner, n_uses);
            if repeat.max().unwrap_or(repeat.min() + 1) > 1 {
                count(inner, n_uses);
            }
        }
    }
}

/// The automaton of one rule, before it is made deterministic.
#[derive(Default)]
struct Nfa<'a> {
    states: Vec<NfaState<'a>>,
}

#[derive(Default)]
struct NfaState<'a> {
    empty: Vec<usize>,
    edges: Vec<(u8, u8, usize)>,
    calls: Vec<(&'a RuleName, usize)>,
}

impl<'a> Nfa<'a> {
    fn state(&mut self) -> usize {
        self.states.push(NfaState::default());
        self.states.len() - 1
    }

    /// Adds ways from one state to another by the texts of an expression.
    fn add(
        &mut self,
        expr: &'a Expr,
        from: usize,
        to: usize,
        inlined: &impl Fn(&RuleName) -> Option<&'a Rule>,
    ) {
        match expr {
            Expr::Literal(text) => {
                let mut at = from;
                for (index, byte) in text.bytes().enumerate() {
                    let next = if index + 1 == text.len() { to } else { self.state() };
                    self.states[at].edges.push((byte, byte, next));
                    at = next;
                }
            }
            Expr::Class(class) => self.add_class(class, from, to),
            Expr::Rule(name) => match inlined(name) {
                Some(rule) => self.add(&rule.expr, from, to, inlined),
                None => self.states[from].calls.push((name, to)),
            },
            Expr::Concat(parts) if parts.is_empty() => self.states[from].empty.push(to),
            Expr::Concat(parts) => {
                let mut at = from;
                for (index, part) in parts.iter().enumerate() {
                    let next = if index + 1 == parts.len() { to } else { self.state() };
                    self.add(part, at, next, inlined);
                    at = next;
                }
            }
            Expr::Choice(parts) => {
                // States of its own at both ends, so that no production can be entered from
                // another.
                for part in parts {
                    let (start, end) = (self.state(), self.state());
                    self.states[from].empty.push(start);
                    self.add(part, start, end, inlined);
                    self.states[end].empty.push(to);
                }
            }
            Expr::Repeat(inner, repeat) => {
                let mut at = from;
                for _ in 0..repeat.min() {
                    let next = self.state();
                    self.add(inner, at, next, inlined);
                    at = next;
                }
                if let Some(max) = repeat.max() {
                    for _ in repeat.min()..max {
                        self.states[at].empty.push(to);
                        let next = self.state();
                        self.add(inner, at, next, inlined);
                        at = next;
                    }
                } else {
                    let (start, end) = (self.state(), self.state());
                    self.states[at].empty.push(start);
                    self.add(inner, start, end, inlined);
                    self.states[end].empty.push(start);
                    at = start;
                }
                self.states[at].empty.push(to);
            }
        }
    }

    fn add_class(&mut self, class: &Class, from: usize, to: usize) {
        for (first, last) in scalar_ranges(class) {
            for sequence in Utf8Sequences::new(first, last) {
                let ranges = sequence.as_slice();
                let mut at = from;
                for (index, range) in ranges.iter().enumerate() {
                    let next = if index + 1 == ranges.len() { to } else { self.state() };
                    self.states[at].edges.push((range.start, range.end, next));
                    at = next;
                }
            }
        }
    }

    /// All states reached without a byte.
    fn closure(&self, states: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut open: Vec<usize> = states.into_iter().collect();
        let mut closure = BTreeSet::new();
        while let Some(state) = open.pop() {
            if closure.insert(state) {
                open.extend(&self.states[state].empty);
            }
        }
        closure
    }
}

/// The code points of a class as inclusive ranges.
fn scalar_ranges(class: &Class) -> Vec<(char, char)> {
    if !class.is_negated() {
        return class.ranges().to_vec();
    }
    let mut ranges = class.ranges().to_vec();
    ranges.sort_unstable();
    let mut others = Vec::new();
    // `next`: the first code point that no range has taken or passed; none left after the last.
    let mut next = Some('\0');
    for (first, last) in ranges {
        if let Some(start) = next.filter(|start| *start < first) {
            let end = (start..first).next_back();
            others.extend(end.map(|end| (start, end)));
        }
        next = next.and_then(|start| (start.max(last)..=char::MAX).nth(usize::from(start <= last)));
    }
    others.extend(next.map(|start| (start, char::MAX)));
    others
}

impl Automaton {
    /// Adds the deterministic form of one rule and gives its first state.
    ///
    /// The rules it calls are pushed to `called`, in step with `self.calls`.
    fn determinize<'a>(
        &mut self,
        nfa: &Nfa<'a>,
        start: usize,
        end: usize,
        rules: &HashMap<&RuleName, &Rule>,
        called: &mut Vec<&'a RuleName>,
    ) -> StateId {
        let base = self.states.len();
        let id = |index: usize| StateId::try_from(base + index).unwrap_or(StateId::MAX);
        let mut subsets = Subsets::default();
        subsets.index(nfa.closure([start]));
        let mut done = 0;
        while let Some(subset) = subsets.list.get(done).cloned() {
            let (first_edge, first_call) = (len(&self.edges), len(&self.calls));
            for (first, last, targets) in
                disjoint(subset.iter().flat_map(|s| &nfa.states[*s].edges))
            {
                let to = id(subsets.index(nfa.closure(targets)));
                self.edges.push(Edge { first, last, to });
            }
            let mut calls: BTreeMap<&'a RuleName, Vec<usize>> = BTreeMap::new();
            for (name, to) in subset.iter().flat_map(|state| &nfa.states[*state].calls) {
                calls.entry(name).or_default().push(*to);
            }
            for (name, targets) in calls {
                let back = id(subsets.index(nfa.closure(targets)));
                let argument = rules.get(name).is_some_and(|rule| rule.argument);
                self.calls.push(Call { rule: 0, back, argument, last: false });
                called.push(name);
            }
            self.states.push(State {
                edges: first_edge..len(&self.edges),
                calls: first_call..len(&self.calls),
                last: subset.contains(&end),
                cost: u32::MAX,
            });
            done += 1;
        }
        id(0)
    }
}

fn len<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

/// Subsets of an automaton's states, numbered as they are met.
#[derive(Default)]
struct Subsets {
    list: Vec<BTreeSet<usize>>,
    known: HashMap<BTreeSet<usize>, usize>,
}

impl Subsets {
    fn index(&mut self, subset: BTreeSet<usize>) -> usize {
        if let Some(index) = self.known.get(&subset) {
            return *index;
        }
        let index = self.list.len();
        self.known.insert(subset.clone(), index);
        self.list.push(subset);
        index
    }
}

/// Overlapping ranges cut into disjoint ones, each with all targets; in rising order.
fn disjoint<'e>(
    edges: impl Iterator<Item = &'e (u8, u8, usize)>,
) -> Vec<(u8, u8, BTreeSet<usize>)> {
    let edges: Vec<_> = edges.collect();
    let mut cuts: BTreeSet<u16> = BTreeSet::new();
    for (first, last, _) in &edges {
        cuts.extend([u16::from(*first), u16::from(*last) + 1]);
    }
    let cuts: Vec<u16> = cuts.into_iter().collect();
    let mut ranges: Vec<(u8, u8, BTreeSet<usize>)> = Vec::new();
    for pair in cuts.windows(2) {
        let (Ok(first), Ok(last)) = (u8::try_from(pair[0]), u8::try_from(pair[1] - 1)) else {
            continue;
        };
        let over = edges.iter().filter(|(from, to, _)| *from <= first && last <= *to);
        let targets: BTreeSet<usize> = over.map(|(_, _, target)| *target).collect();
        match ranges.last_mut() {
            _ if targets.is_empty() => {}
            Some((_, end, before)) if *before == targets && u16::from(*end) + 1 == pair[0] => {
                *end = last;
            }
            _ => ranges.push((first, last, targets)),
        }
    }
    ranges
}
