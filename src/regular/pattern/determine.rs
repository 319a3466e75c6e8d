//! A pattern's automaton made deterministic.
//!
//! A state is a set of threads, each a step of the pattern and the lookaheads that it still has to
//! see through, and where the lookbehinds stand. `^`, lookbehinds and the beginning of lookaheads
//! are settled on arrival; `$` and `\b` wait in the set until what comes next is known: a word's
//! code point, another, or the end of the text.
//!
//! **Invariant:** once a thread has matched and owes nothing, the text is accepted whatever follows,
//! and the state is the one that all such share.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::nfa::{Nfa, Step};
use super::parse::{Look, Node, WORD};
use crate::regular::alphabet::Alphabet;
use crate::regular::minimize::{Edge, minimal};
use crate::regular::{Dfa, LIMIT, TooLarge};

/// Most threads moved and edges made, which is a fraction of a second.
const WORK_LIMIT: usize = 10_000_000;

/// No state.
const DEAD: u32 = u32::MAX;

/// What stands before a place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Start,
    Word,
    Other,
}

const BEFORE: [Before; 3] = [Before::Start, Before::Word, Before::Other];

/// What stands after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    End,
    Word,
    Other,
}

/// Which texts are meant.
#[derive(Debug, Clone, Copy)]
struct Ends {
    /// Anything may stand before the match.
    search: bool,
    /// Anything may stand behind it.
    open: bool,
    /// What stands before the text.
    before: Before,
}

/// The texts in which the pattern matches somewhere.
pub(super) fn search(node: &Node) -> Result<Dfa, TooLarge> {
    determine(node, Ends { search: true, open: true, before: Before::Start })
}

fn determine(node: &Node, ends: Ends) -> Result<Dfa, TooLarge> {
    let (nfa, start) = Nfa::new(node, ends.search)?;
    let aheads = nfa.aheads.iter().map(|(inner, is)| ahead(inner, *is));
    let aheads = aheads.collect::<Result<Vec<_>, TooLarge>>()?;
    let behinds = nfa.behinds.iter().map(|(inner, _)| {
        determine(inner, Ends { search: true, open: false, before: Before::Start })
    });
    let behinds = behinds.collect::<Result<Vec<_>, TooLarge>>()?;
    let words = mentions(node, &|look| matches!(look, Look::Boundary(_)));
    let mut others: Vec<Vec<(char, char)>> = Vec::new();
    for dfa in aheads.iter().flatten().chain(&behinds) {
        for state in dfa.states() {
            others.extend(sets(&state.edges).into_iter().map(|(set, _)| set));
        }
    }
    if words {
        others.push(WORD.to_vec());
    }
    others.sort_unstable();
    others.dedup();
    let alphabet = Alphabet::new(nfa.sets.iter().chain(&others).map(Vec::as_slice));
    let mut is_word = vec![false; alphabet.len()];
    if words {
        alphabet.symbols(WORD).into_iter().for_each(|symbol| is_word[symbol as usize] = true);
    }
    let subsets = Subsets {
        symbols: nfa.sets.iter().map(|set| alphabet.symbols(set)).collect(),
        is_word,
        open: ends.open,
        aheads: aheads
            .iter()
            .map(|[start, word, other]| [start, word, other].map(|dfa| Table::new(dfa, &alphabet)))
            .collect(),
        behinds: behinds.iter().map(|dfa| Table::new(dfa, &alphabet)).collect(),
        stamps: vec![0; nfa.steps.len()],
        stamp: 0,
        seen: HashSet::new(),
        debts: vec![Vec::new()],
        known_debts: HashMap::from([(Vec::new(), 0)]),
        list: Vec::new(),
        known: HashMap::new(),
        work: 0,
        nfa,
    };
    subsets.run(start, ends.before, &alphabet)
}

/// What must follow a lookahead, for each thing that may stand before it.
fn ahead(inner: &Node, is: bool) -> Result<[Dfa; 3], TooLarge> {
    let after = |before| {
        let dfa = determine(inner, Ends { search: false, open: true, before })?;
        Ok(if is { dfa } else { dfa.complement() })
    };
    let start = after(Before::Start)?;
    if !mentions(inner, &|look| matches!(look, Look::Start | Look::Boundary(_))) {
        return Ok([start.clone(), start.clone(), start]);
    }
    Ok([start, after(Before::Word)?, after(Before::Other)?])
}

/// Whether some look in the node, also within another, is such.
fn mentions(node: &Node, such: &impl Fn(&Look) -> bool) -> bool {
    match node {
        Node::Empty | Node::Class(_) => false,
        Node::Concat(parts) | Node::Choice(parts) => parts.iter().any(|part| mentions(part, such)),
        Node::Repeat(inner, ..) => mentions(inner, such),
        Node::Look(look) => {
            such(look)
                || match look {
                    Look::Ahead(inner, _) | Look::Behind(inner, _) => mentions(inner, such),
                    Look::Start | Look::End | Look::Boundary(_) => false,
                }
        }
    }
}

/// The set of code points that leads to each target.
fn sets(edges: &[(char, char, u32)]) -> Vec<(Vec<(char, char)>, u32)> {
    let mut edges = edges.to_vec();
    edges.sort_unstable_by_key(|(first, _, to)| (*to, *first));
    edges
        .chunk_by(|one, other| one.2 == other.2)
        .map(|same| (same.iter().map(|(first, last, _)| (*first, *last)).collect(), same[0].2))
        .collect()
}

/// The automaton of a look, over the symbols of the pattern's alphabet.
struct Table {
    n_symbols: usize,
    targets: Vec<u32>,
    accepting: Vec<bool>,
    /// The state that accepts whatever follows.
    all: Option<u32>,
}

impl Table {
    fn new(dfa: &Dfa, alphabet: &Alphabet) -> Self {
        let n_symbols = alphabet.len();
        let mut targets = vec![DEAD; dfa.states().len() * n_symbols];
        let mut all = None;
        for (number, state) in (0_u32..).zip(dfa.states()) {
            for (set, to) in sets(&state.edges) {
                for symbol in alphabet.symbols(&set) {
                    targets[number as usize * n_symbols + symbol as usize] = to;
                }
            }
            if state.accepting && state.edges == [('\0', char::MAX, number)] {
                all = Some(number);
            }
        }
        let accepting = dfa.states().iter().map(|state| state.accepting).collect();
        Self { n_symbols, targets, accepting, all }
    }

    fn next(&self, state: u32, symbol: u32) -> u32 {
        if state == DEAD {
            return DEAD;
        }
        self.targets[state as usize * self.n_symbols + symbol as usize]
    }

    fn accepts(&self, state: u32) -> bool {
        state != DEAD && self.accepting[state as usize]
    }
}

/// A lookahead that is to be seen through: its number, what stood before it, the state of its automaton.
type Debt = (u32, u8, u32);

/// A step of the pattern, and the number of a list of debts.
type Thread = (u32, u32);

/// A set of threads, sorted, and the states of the lookbehinds; what stands before matters only
/// where a thread waits for what comes after.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subset {
    threads: Vec<Thread>,
    behinds: Vec<u32>,
    before: Option<u8>,
}

struct Subsets<'n> {
    nfa: Nfa<'n>,
    /// The symbols of each set of the pattern.
    symbols: Vec<Vec<u32>>,
    is_word: Vec<bool>,
    open: bool,
    aheads: Vec<[Table; 3]>,
    behinds: Vec<Table>,
    /// When each step was last met without debts.
    stamps: Vec<u32>,
    stamp: u32,
    /// The threads with debts met.
    seen: HashSet<Thread>,
    /// Lists of debts, each once; the first is empty.
    debts: Vec<Vec<Debt>>,
    known_debts: HashMap<Vec<Debt>, u32>,
    /// The subsets in the order in which they were met.
    list: Vec<Rc<Subset>>,
    known: HashMap<Rc<Subset>, u32>,
    work: usize,
}

impl Subsets<'_> {
    fn run(mut self, start: u32, before: Before, alphabet: &Alphabet) -> Result<Dfa, TooLarge> {
        let behinds: Vec<u32> = vec![0; self.behinds.len()];
        let threads = self.close(vec![(start, 0)], before, &behinds, None);
        // The state whose number is 0 is the start, even where it is the one that accepts all.
        let first = self.number(threads, before, behinds)?;
        let mut accepting = Vec::new();
        let mut edges: Vec<Edge> = Vec::new();
        let mut buckets: Vec<Vec<Thread>> = vec![Vec::new(); alphabet.len()];
        let mut done: Vec<(u32, u32)> = Vec::new();
        debug_assert_eq!(first, 0, "the first subset is the start");
        while let Some(subset) = self.list.get(accepting.len()).map(Rc::clone) {
            let from = u32::try_from(accepting.len()).unwrap_or(u32::MAX);
            let before = subset.before.map_or(Before::Other, |before| BEFORE[before as usize]);
            if self.is_all(&subset.threads) {
                accepting.push(true);
                for &symbol in &self.symbols[0] {
                    edges.push(Edge { from, symbol, to: from });
                }
                continue;
            }
            let waits = subset.before.is_some();
            let resolve = |this: &mut Self, after| {
                let threads = subset.threads.clone();
                this.close(threads, before, &subset.behinds, Some(after))
            };
            let at_end =
                if waits { resolve(&mut self, After::End) } else { subset.threads.clone() };
            accepting.push(at_end.iter().any(|thread| self.may_end(*thread)));
            if waits {
                for after in [After::Word, After::Other] {
                    let threads = resolve(&mut self, after);
                    self.spread(&threads, &mut buckets, Some(after == After::Word));
                }
            } else {
                self.spread(&subset.threads, &mut buckets, None);
            }
            done.clear();
            for symbol in (0_u32..).take(alphabet.len()) {
                if buckets[symbol as usize].is_empty() {
                    continue;
                }
                let threads = std::mem::take(&mut buckets[symbol as usize]);
                self.work += threads.len() + 1;
                // Symbols that move the threads alike lead to the same state.
                let alike = |(other, _): &&(u32, u32)| {
                    buckets[*other as usize] == threads
                        && self.is_word[*other as usize] == self.is_word[symbol as usize]
                        && self.behinds.is_empty()
                };
                let to = if let Some((_, to)) = done.iter().find(alike) {
                    *to
                } else {
                    let to = self.arrive(&threads, symbol, &subset.behinds)?;
                    done.push((symbol, to));
                    to
                };
                edges.push(Edge { from, symbol, to });
                buckets[symbol as usize] = threads;
            }
            buckets.iter_mut().for_each(Vec::clear);
            if self.work > WORK_LIMIT {
                return Err(TooLarge);
            }
        }
        Ok(minimal(&accepting, &edges, alphabet))
    }

    /// The subset behind a symbol.
    fn arrive(
        &mut self,
        threads: &[Thread],
        symbol: u32,
        behinds: &[u32],
    ) -> Result<u32, TooLarge> {
        let before = if self.is_word[symbol as usize] { Before::Word } else { Before::Other };
        let step = |(table, state): (&Table, &u32)| table.next(*state, symbol);
        let behinds: Vec<u32> = self.behinds.iter().zip(behinds).map(step).collect();
        let threads = self.close(threads.to_vec(), before, &behinds, None);
        self.number(threads, before, behinds)
    }

    fn number(
        &mut self,
        threads: Vec<Thread>,
        before: Before,
        behinds: Vec<u32>,
    ) -> Result<u32, TooLarge> {
        let waiting = |(step, _): &Thread| {
            matches!(self.nfa.steps[*step as usize], Step::End(_) | Step::Boundary(..))
        };
        let waits = threads.iter().any(waiting);
        let subset = if self.is_all(&threads) {
            Subset { threads, behinds: Vec::new(), before: None }
        } else {
            Subset { threads, behinds, before: waits.then_some(before as u8) }
        };
        if let Some(number) = self.known.get(&subset) {
            return Ok(*number);
        }
        if self.list.len() >= LIMIT {
            return Err(TooLarge);
        }
        let number = u32::try_from(self.list.len()).map_err(|_| TooLarge)?;
        let subset = Rc::new(subset);
        self.list.push(Rc::clone(&subset));
        self.known.insert(subset, number);
        Ok(number)
    }

    /// Whether these are the threads of the state that accepts whatever follows.
    fn is_all(&self, threads: &[Thread]) -> bool {
        self.open && matches!(threads, [(step, 0)] if self.is_match(*step))
    }

    fn is_match(&self, step: u32) -> bool {
        matches!(self.nfa.steps[step as usize], Step::Match)
    }

    /// Whether the thread has matched and every debt is paid at the end of the text.
    fn may_end(&self, (step, debts): Thread) -> bool {
        let paid = |&(number, before, state): &Debt| {
            self.aheads[number as usize][before as usize].accepts(state)
        };
        self.is_match(step) && self.debts[debts as usize].iter().all(paid)
    }

    /// Moves the threads over every symbol (of words, of others, of both) into its bucket.
    fn spread(&mut self, threads: &[Thread], buckets: &mut [Vec<Thread>], words: Option<bool>) {
        let all = self.is_all(threads);
        for &(step, debts) in threads {
            let (set, next) = match self.nfa.steps[step as usize] {
                Step::Class(set, next) => (set, next),
                // A match stays one until its debts are paid.
                Step::Match if all || (self.open && debts != 0) => (0, step),
                _ => continue,
            };
            for at in 0..self.symbols[set as usize].len() {
                let symbol = self.symbols[set as usize][at];
                if words.is_some_and(|words| words != self.is_word[symbol as usize]) {
                    continue;
                }
                self.work += 1;
                if let Some(debts) = self.pay(debts, symbol) {
                    buckets[symbol as usize].push((next, debts));
                }
            }
        }
    }

    /// The debts after a symbol; `None` where one can no longer be paid.
    fn pay(&mut self, debts: u32, symbol: u32) -> Option<u32> {
        if debts == 0 {
            return Some(0);
        }
        let mut left = Vec::new();
        for &(number, before, state) in &self.debts[debts as usize] {
            let table = &self.aheads[number as usize][before as usize];
            match table.next(state, symbol) {
                DEAD => return None,
                next if table.all == Some(next) => {}
                next => left.push((number, before, next)),
            }
        }
        Some(self.debts_number(left))
    }

    fn debts_number(&mut self, mut debts: Vec<Debt>) -> u32 {
        debts.sort_unstable();
        debts.dedup();
        if let Some(number) = self.known_debts.get(&debts) {
            return *number;
        }
        let number = u32::try_from(self.debts.len()).unwrap_or(u32::MAX);
        self.debts.push(debts.clone());
        self.known_debts.insert(debts, number);
        number
    }

    /// All threads that these lead to without a code point, sorted; with `after`, also through what
    /// waits for it. Only the match where one owes nothing and anything may follow.
    fn close(
        &mut self,
        mut open: Vec<Thread>,
        before: Before,
        behinds: &[u32],
        after: Option<After>,
    ) -> Vec<Thread> {
        self.stamp += 1;
        self.seen.clear();
        let mut closed = Vec::new();
        while let Some((step, debts)) = open.pop() {
            let new = if debts == 0 {
                std::mem::replace(&mut self.stamps[step as usize], self.stamp) != self.stamp
            } else {
                self.seen.insert((step, debts))
            };
            if !new {
                continue;
            }
            self.work += 1;
            match &self.nfa.steps[step as usize] {
                Step::Match if self.open && debts == 0 => return vec![(step, 0)],
                Step::Class(..) | Step::Match => closed.push((step, debts)),
                Step::Split(ways) => open.extend(ways.iter().rev().map(|way| (*way, debts))),
                Step::Start(next) if before == Before::Start => open.push((*next, debts)),
                Step::Start(_) => {}
                Step::End(next) if after == Some(After::End) => open.push((*next, debts)),
                Step::Boundary(is, next) if after.is_some() => {
                    let word = (before == Before::Word) != (after == Some(After::Word));
                    if word == *is {
                        open.push((*next, debts));
                    }
                }
                Step::End(_) | Step::Boundary(..) => {
                    if after.is_none() {
                        closed.push((step, debts));
                    }
                }
                &Step::Ahead(number, next) => {
                    let table = &self.aheads[number as usize][before as usize];
                    if table.all == Some(0) {
                        open.push((next, debts));
                    } else {
                        let mut more = self.debts[debts as usize].clone();
                        more.push((number, before as u8, 0));
                        let debts = self.debts_number(more);
                        open.push((next, debts));
                    }
                }
                Step::Behind(number, next) => {
                    let table = &self.behinds[*number as usize];
                    let (_, is) = self.nfa.behinds[*number as usize];
                    if table.accepts(behinds[*number as usize]) == is {
                        open.push((*next, debts));
                    }
                }
            }
        }
        closed.sort_unstable();
        closed
    }
}
