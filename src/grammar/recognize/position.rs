//! Where a text stands: in which states, and under which calls.
//!
//! Each way to read the text so far is a thread: a state and a stack of calls that are not
//! finished. Stacks share what they have in common, in both directions: below, as a list does, and
//! above, as threads in one state become one thread whose stack leads on in several ways (a
//! graph-structured stack).
//!
//! **Invariant:** there are at most four threads for each state: by whether the stack is empty and
//! whether it is inside an argument. So an ambiguous text takes polynomial time and memory.
//! **Invariant:** nothing here recurses: a stack may be as deep as memory allows.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::{SmallVec, smallvec};

use super::automaton::{Automaton, Call, DEAD, StateId};
use super::bytes::ByteSet;

/// All the ways in which the text so far can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Position {
    /// Each in a state that can take a byte; in rising order of their keys, no two of which equal.
    pub(super) threads: SmallVec<[Thread; 1]>,
    /// Whether the text so far is a whole text of the grammar.
    pub(super) whole: bool,
}

/// One way to read the text so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    pub(super) state: StateId,
    pub(super) stack: Stack,
}

/// The calls that are not finished, the innermost first.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack(Option<Arc<Frame>>);

/// The innermost call, or several of which it is any.
#[derive(Debug)]
struct Frame {
    links: SmallVec<[Link; 1]>,
    /// Of the content, whatever the order of the links.
    hash: u64,
    in_argument: bool,
}

#[derive(Debug, Clone)]
struct Link {
    call: Call,
    below: Stack,
}

impl Position {
    /// Before the first byte.
    pub(super) fn start(automaton: &Automaton) -> Self {
        let mut position = Self::default();
        position.enter(automaton, automaton.start, Stack::default());
        position
    }

    /// The bytes that may come next.
    pub(super) fn allowed(&self, automaton: &Automaton) -> ByteSet {
        match &self.threads[..] {
            [thread] => automaton.map(thread.state).set,
            threads => {
                let sets = threads.iter().map(|thread| &automaton.map(thread.state).set);
                sets.fold(ByteSet::default(), ByteSet::union)
            }
        }
    }

    /// Takes the byte, or leaves all as it is.
    pub(super) fn push(&mut self, automaton: &Automaton, byte: u8) -> bool {
        if let [thread] = &mut self.threads[..] {
            match automaton.next(thread.state, byte) {
                DEAD => return false,
                next if next < automaton.n_plain => {
                    thread.state = next;
                    self.whole = false;
                }
                next => {
                    let stack = std::mem::take(&mut thread.stack);
                    *self = Self::default();
                    self.enter(automaton, next, stack);
                }
            }
            return true;
        }
        let mut next: SmallVec<[(StateId, Stack); 8]> = SmallVec::new();
        for thread in &self.threads {
            match automaton.next(thread.state, byte) {
                DEAD => {}
                state => next.push((state, thread.stack.clone())),
            }
        }
        let several = next.len() > 1;
        let Some((state, stack)) = next.pop() else { return false };
        if several {
            next.push((state, stack));
            *self = Closure::of(automaton, next.into_iter());
        } else {
            *self = Self::default();
            self.enter(automaton, state, stack);
        }
        true
    }

    /// Makes of an empty position the one that a single state leads to without a byte.
    pub(super) fn enter(&mut self, automaton: &Automaton, mut state: StateId, mut stack: Stack) {
        // As long as there is one way on, nothing need be collected.
        while state >= automaton.n_plain {
            let is_final = automaton.is_final(state);
            let no_jumps = automaton.jumps(state).is_empty() && !automaton.has_edges(state);
            match (automaton.calls(state), is_final) {
                ([call], false) if no_jumps => {
                    stack = Stack::new(smallvec![Link { call: *call, below: stack }]);
                    state = call.start;
                }
                ([], true) if no_jumps => match stack.0.as_deref().map(|frame| &frame.links[..]) {
                    None => {
                        self.whole = true;
                        return;
                    }
                    Some([link]) => {
                        state = link.call.back;
                        stack = link.below.clone();
                    }
                    Some(_) => break,
                },
                _ => break,
            }
        }
        if state < automaton.n_plain {
            self.threads.push(Thread { state, stack });
        } else {
            *self = Closure::of(automaton, std::iter::once((state, stack)));
        }
    }
}

/// A stack while a position is built.
#[derive(Debug, Clone)]
enum Under {
    Old(Stack),
    /// The calls of this index that begin here.
    New(usize),
}

impl Under {
    /// A number that no other of the same closure has.
    fn key(&self) -> usize {
        match self {
            // Addresses of frames are even.
            Self::Old(stack) => stack.address(),
            Self::New(index) => index << 1 | 1,
        }
    }
}

/// The calls of one part that begin at one place: they are read once for all callers.
#[derive(Debug)]
struct NewFrame {
    start: StateId,
    in_argument: bool,
    links: SmallVec<[(Call, Under); 1]>,
}

/// Collects all that some states lead to without a byte.
struct Closure<'a> {
    automaton: &'a Automaton,
    /// All that was met; those from `done` on are still to be followed.
    met: Vec<(StateId, Under)>,
    /// The same for a quick search, once there are many.
    keys: FxHashSet<(StateId, usize)>,
    frames: Vec<NewFrame>,
    whole: bool,
}

/// So many are searched one by one.
const FEW: usize = 12;

impl<'a> Closure<'a> {
    fn of(automaton: &'a Automaton, states: impl Iterator<Item = (StateId, Stack)>) -> Position {
        let mut closure = Self {
            automaton,
            met: Vec::new(),
            keys: FxHashSet::default(),
            frames: Vec::new(),
            whole: false,
        };
        for (state, stack) in states {
            closure.meet(state, Under::Old(stack));
        }
        let mut done = 0;
        while let Some((state, under)) = closure.met.get(done).cloned() {
            done += 1;
            closure.follow(state, &under);
        }
        closure.finish()
    }

    fn meet(&mut self, state: StateId, under: Under) {
        let key = (state, under.key());
        if self.met.len() < FEW {
            if self.met.iter().any(|(state, under)| (*state, under.key()) == key) {
                return;
            }
        } else {
            if self.keys.is_empty() {
                self.keys = self.met.iter().map(|(state, under)| (*state, under.key())).collect();
            }
            if !self.keys.insert(key) {
                return;
            }
        }
        self.met.push((state, under));
    }

    fn in_argument(&self, under: &Under) -> bool {
        match under {
            Under::Old(stack) => stack.in_argument(),
            Under::New(index) => self.frames[*index].in_argument,
        }
    }

    fn follow(&mut self, state: StateId, under: &Under) {
        let automaton = self.automaton;
        for jump in automaton.jumps(state) {
            self.meet(*jump, under.clone());
        }
        for call in automaton.calls(state) {
            let in_argument = call.argument || self.in_argument(under);
            let known = self
                .frames
                .iter()
                .position(|frame| frame.start == call.start && frame.in_argument == in_argument);
            let index = known.unwrap_or_else(|| {
                let links = SmallVec::new();
                self.frames.push(NewFrame { start: call.start, in_argument, links });
                self.frames.len() - 1
            });
            let links = &mut self.frames[index].links;
            let is_link = |(other, below): &(Call, Under)| {
                other.back == call.back
                    && other.argument == call.argument
                    && below.key() == under.key()
            };
            if !links.iter().any(is_link) {
                links.push((*call, under.clone()));
            }
            self.meet(call.start, Under::New(index));
        }
        if automaton.is_final(state) {
            match under {
                Under::Old(Stack(None)) => self.whole = true,
                Under::Old(Stack(Some(frame))) => {
                    for link in &frame.links {
                        self.meet(link.call.back, Under::Old(link.below.clone()));
                    }
                }
                // Complete without a byte: the caller has a way past such a call.
                Under::New(_) => {}
            }
        }
    }

    fn finish(mut self) -> Position {
        let met = std::mem::take(&mut self.met);
        let mut threads: Vec<(StateId, Under)> =
            met.into_iter().filter(|(state, _)| self.automaton.has_edges(*state)).collect();
        let stacks = self.stacks(&threads);
        let stack = |under: &Under| match under {
            Under::Old(stack) => stack.clone(),
            Under::New(index) => stacks[*index].clone(),
        };
        let class = |(state, under): &(StateId, Under)| {
            let is_empty = matches!(under, Under::Old(Stack(None)));
            (*state, is_empty, self.in_argument(under))
        };
        threads.sort_by_key(class);
        let merged = threads.chunk_by(|a, b| class(a) == class(b)).map(|same| Thread {
            state: same[0].0,
            stack: match same {
                [(_, under)] => stack(under),
                several => Stack::any_of(several.iter().map(|(_, under)| stack(under))),
            },
        });
        Position { threads: merged.collect(), whole: self.whole }
    }

    /// The new frames that threads need as stacks, by index; a frame comes after those below it.
    fn stacks(&self, threads: &[(StateId, Under)]) -> Vec<Stack> {
        let mut stacks = vec![Stack::default(); self.frames.len()];
        let new = |under: &Under| match under {
            Under::Old(_) => None,
            Under::New(index) => Some(*index),
        };
        let mut open: Vec<usize> = threads.iter().filter_map(|(_, under)| new(under)).collect();
        while let Some(&index) = open.last() {
            let links = &self.frames[index].links;
            let n_open = open.len();
            if stacks[index].0.is_none() {
                let below = links.iter().filter_map(|(_, under)| new(under));
                open.extend(below.filter(|below| stacks[*below].0.is_none()));
            }
            if open.len() > n_open {
                continue;
            }
            open.pop();
            if stacks[index].0.is_none() {
                let link = |(call, under): &(Call, Under)| Link {
                    call: *call,
                    below: match under {
                        Under::Old(stack) => stack.clone(),
                        Under::New(below) => stacks[*below].clone(),
                    },
                };
                stacks[index] = Stack::new(links.iter().map(link).collect());
            }
        }
        stacks
    }
}

impl Thread {
    /// Fewest bytes that complete the argument's value, which the thread is in.
    pub(super) fn cost(&self, automaton: &Automaton) -> u32 {
        let costs = self.stack.costs(automaton);
        automaton.cost(self.state).saturating_add(self.stack.cost(&costs))
    }

    /// The bytes of [`Thread::cost`].
    pub(super) fn closing(&self, automaton: &Automaton) -> Vec<u8> {
        let costs = self.stack.costs(automaton);
        let mut bytes = Vec::new();
        automaton.cheapest(self.state, &mut bytes);
        let mut stack = &self.stack;
        while let Some(frame) = &stack.0 {
            let by_cost = |link: &&Link| link.cost(automaton, &costs);
            let Some(link) = frame.links.iter().min_by_key(by_cost) else { break };
            if link.call.argument {
                break;
            }
            automaton.cheapest(link.call.back, &mut bytes);
            stack = &link.below;
        }
        bytes
    }
}

impl Link {
    fn cost(&self, automaton: &Automaton, costs: &FxHashMap<usize, u32>) -> u32 {
        if self.call.argument {
            return 0;
        }
        automaton.cost(self.call.back).saturating_add(self.below.cost(costs))
    }
}

impl Stack {
    fn new(links: SmallVec<[Link; 1]>) -> Self {
        let in_argument = links.iter().any(|link| link.call.argument || link.below.in_argument());
        let hash = |link: &Link| {
            let mut hasher = FxHasher::default();
            (link.call.back, link.call.argument, link.below.hash()).hash(&mut hasher);
            // Sums of what differs in few bits shall differ in many.
            hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let hash = links.iter().map(hash).fold(1, u64::wrapping_add);
        Self(Some(Arc::new(Frame { links, hash, in_argument })))
    }

    /// The stack that is any of these; none is empty.
    fn any_of(stacks: impl Iterator<Item = Self>) -> Self {
        let mut links: SmallVec<[Link; 1]> = SmallVec::new();
        let mut known = FxHashSet::default();
        for stack in stacks {
            for link in stack.0.iter().flat_map(|frame| &frame.links) {
                if known.insert((link.call.back, link.call.argument, link.below.address())) {
                    links.push(link.clone());
                }
            }
        }
        Self::new(links)
    }

    /// Where the innermost frame lies; 0 for none.
    fn address(&self) -> usize {
        self.0.as_ref().map_or(0, |frame| Arc::as_ptr(frame).addr())
    }

    fn hash(&self) -> u64 {
        self.0.as_ref().map_or(0, |frame| frame.hash)
    }

    pub(super) fn in_argument(&self) -> bool {
        self.0.as_ref().is_some_and(|frame| frame.in_argument)
    }

    /// The parts that are open in the first way to read the text, the outermost first.
    pub(super) fn parts(&self) -> Vec<u32> {
        let mut parts = Vec::new();
        let mut stack = self;
        while let Some(link) = stack.0.as_ref().and_then(|frame| frame.links.first()) {
            parts.push(link.call.part);
            stack = &link.below;
        }
        parts.reverse();
        parts
    }

    /// Fewest bytes that complete the calls up to the argument's, by address of the frame.
    fn costs(&self, automaton: &Automaton) -> FxHashMap<usize, u32> {
        let mut costs = FxHashMap::default();
        let mut open: Vec<&Self> = vec![self];
        while let Some(&stack) = open.last() {
            let links = stack.0.as_ref().map_or(&[][..], |frame| &frame.links);
            let inside = || links.iter().filter(|link| !link.call.argument);
            let n_open = open.len();
            if !costs.contains_key(&stack.address()) {
                let below = inside().map(|link| &link.below);
                open.extend(below.filter(|below| !costs.contains_key(&below.address())));
            }
            if open.len() > n_open {
                continue;
            }
            open.pop();
            let cost = links.iter().map(|link| link.cost(automaton, &costs)).min();
            costs.insert(stack.address(), cost.unwrap_or(0));
        }
        costs
    }

    fn cost(&self, costs: &FxHashMap<usize, u32>) -> u32 {
        costs.get(&self.address()).copied().unwrap_or(0)
    }
}

impl Hash for Stack {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash());
    }
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        let mut open = vec![(self, other)];
        // A frame reached in several ways is compared once.
        let mut compared = HashSet::new();
        while let Some((a, b)) = open.pop() {
            let (Some(x), Some(y)) = (&a.0, &b.0) else {
                if a.0.is_some() || b.0.is_some() {
                    return false;
                }
                continue;
            };
            if ptr::eq(&raw const **x, &raw const **y)
                || !compared.insert((a.address(), b.address()))
            {
                continue;
            }
            if x.hash != y.hash || x.links.len() != y.links.len() {
                return false;
            }
            for link in &x.links {
                let same = |other: &&Link| {
                    (link.call.back, link.call.argument, link.below.hash())
                        == (other.call.back, other.call.argument, other.below.hash())
                };
                let Some(other) = y.links.iter().find(same) else { return false };
                open.push((&link.below, &other.below));
            }
        }
        true
    }
}

impl Eq for Stack {}

impl Drop for Frame {
    /// Frees a deep stack in a loop, where the compiler's own code would recurse.
    fn drop(&mut self) {
        let mut open = std::mem::take(&mut self.links);
        while let Some(link) = open.pop() {
            if let Some(mut frame) = link.below.0.and_then(Arc::into_inner) {
                open.append(&mut frame.links);
            }
        }
    }
}
