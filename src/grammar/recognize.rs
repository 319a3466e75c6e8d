//! Does a grammar accept a text, and what may come next? Bytes in, no model.
//!
//! A pushdown recognizer: each rule is compiled once to a deterministic automaton over bytes whose
//! states may also call other rules. Where the text stands is a small set of pairs of a state and a
//! stack of return states; stacks share their lower parts, so a clone costs a few counters.
//!
//! **Invariant:** `push` takes a byte exactly when some text of the grammar begins with all bytes
//! taken so far and that one; so there is always a way to the end, and ill-formed UTF-8 is never
//! taken.
//! **Invariant:** a refused byte or text leaves the state as it was.
//! **Invariant:** a call in last place leaves no mark on the stack, save that of an argument's
//! rule; so the stack is as deep as the text is nested, not as long as it is.

mod bytes;
mod compile;
mod place;

use std::sync::Arc;

pub use self::bytes::ByteSet;
use self::compile::{Automaton, Call, StateId, compile};
pub use self::place::Place;
use super::check::check;
use super::{Grammar, GrammarError};

/// Where a text stands in a grammar; starts before its first byte.
///
/// ```
/// use call_me_maybe::grammar::{lower, recognize::Recognizer};
///
/// let file = br#"[{"name": "fn_wait", "parameters": {"seconds": {"type": "integer"}}}]"#;
/// let functions = call_me_maybe::definitions::parse(file)?;
/// let mut text = Recognizer::new(&lower::calls(&functions, lower::Options::LEGAL)?.grammar)?;
///
/// assert_eq!(text.forced(), br#"{"name": "fn_wait", "arguments": {"seconds": "#);
/// assert_eq!(text.push_all(br#"{"name": "fn_wait", "arguments": {"seconds": -"#), Ok(()));
/// assert!(text.in_argument() && !text.push(b'0'));
/// assert_eq!(text.closing(), b"1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recognizer {
    automaton: Arc<Automaton>,
    position: Position,
}

/// All the ways in which the text so far can be read.
#[derive(Debug, Clone, Default)]
struct Position {
    /// Each in a state that can take a byte; no two equal.
    threads: Vec<Thread>,
    /// Whether the text so far is a whole text of the grammar.
    whole: bool,
}

/// One way to read the text so far.
#[derive(Debug, Clone)]
struct Thread {
    state: StateId,
    stack: Stack,
}

/// The calls that are not finished, the innermost first.
#[derive(Debug, Clone, Default)]
struct Stack(Option<Arc<Frame>>);

#[derive(Debug)]
struct Frame {
    /// Where to go on once the called rule is complete.
    back: StateId,
    /// Whether the called rule is an argument's value.
    argument: bool,
    below: Stack,
}

impl Recognizer {
    /// Compiles a grammar.
    ///
    /// # Errors
    ///
    /// Whatever [`check`] finds.
    pub fn new(grammar: &Grammar) -> Result<Self, GrammarError> {
        check(grammar)?;
        let automaton = Arc::new(compile(grammar));
        let mut position = Position::default();
        position.enter(&automaton, automaton.start, Stack::default());
        Ok(Self { automaton, position })
    }

    /// Takes the byte; `false` where no text of the grammar goes on with it.
    pub fn push(&mut self, byte: u8) -> bool {
        match self.position.after(&self.automaton, byte) {
            Some(next) => {
                self.position = next;
                true
            }
            None => false,
        }
    }

    /// Whether all of the bytes would be taken; none at all always are.
    #[must_use]
    pub fn accepts(&self, bytes: &[u8]) -> bool {
        match self.walk(bytes) {
            Walk::Refused(_) => false,
            Walk::Within(..) | Walk::To(_) => true,
        }
    }

    /// Takes all of the bytes or none.
    ///
    /// # Errors
    ///
    /// The offset of the first byte that is refused.
    pub fn push_all(&mut self, bytes: &[u8]) -> Result<(), usize> {
        match self.walk(bytes) {
            Walk::Refused(offset) => return Err(offset),
            Walk::Within(_) if bytes.is_empty() => {}
            Walk::Within(state) => {
                self.position.threads[0].state = state;
                self.position.whole = false;
            }
            Walk::To(position) => self.position = position,
        }
        Ok(())
    }

    /// Whether the text so far is a whole text of the grammar.
    #[must_use]
    pub fn can_end(&self) -> bool {
        self.position.whole
    }

    /// Whether the text so far is whole and no byte may follow.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.position.whole && self.position.threads.is_empty()
    }

    /// The bytes that may come next.
    #[must_use]
    pub fn allowed(&self) -> ByteSet {
        self.position.allowed(&self.automaton)
    }

    /// The longest text that every way on begins with; empty where there is a choice.
    ///
    /// It stops where the text can end, as the end is a choice too.
    #[must_use]
    pub fn forced(&self) -> Vec<u8> {
        let mut forced = Vec::new();
        let mut position = self.position.clone();
        while let (false, Some(byte)) = (position.whole, position.allowed(&self.automaton).only()) {
            let Some(next) = position.after(&self.automaton, byte) else { break };
            position = next;
            forced.push(byte);
        }
        forced
    }

    /// Whether the text is inside the value of an argument: at its start, or where it can go on.
    ///
    /// After `12` a number can go on and can be complete; that is inside.
    #[must_use]
    pub fn in_argument(&self) -> bool {
        self.position.threads.iter().any(|thread| thread.stack.in_argument())
    }

    /// The shortest bytes that complete the argument's value that the text is in; printable ASCII
    /// where there is a choice.
    ///
    /// Empty outside a value, and where it can be complete already.
    #[must_use]
    pub fn closing(&self) -> Vec<u8> {
        let inside = self.position.threads.iter().filter(|thread| thread.stack.in_argument());
        // A value that can be complete already has a way on that is outside it.
        let complete = self.position.whole
            || self.position.threads.iter().any(|thread| !thread.stack.in_argument());
        let cheapest = inside.min_by_key(|thread| thread.cost(&self.automaton));
        match cheapest {
            Some(thread) if !complete => thread.closing(&self.automaton),
            _ => Vec::new(),
        }
    }

    /// Completes the argument's value that the text is in with [`Recognizer::closing`], and rules
    /// out that it goes on: after `12` no digit may follow. Gives the bytes that were added.
    pub fn close_argument(&mut self) -> Vec<u8> {
        let closing = self.closing();
        for byte in &closing {
            let taken = self.push(*byte);
            debug_assert!(taken, "a completion is always taken");
        }
        let inside = |thread: &Thread| thread.stack.in_argument();
        if self.position.whole || !self.position.threads.iter().all(inside) {
            self.position.threads.retain(|thread| !inside(thread));
        }
        closing
    }

    fn walk(&self, bytes: &[u8]) -> Walk {
        let automaton = &*self.automaton;
        // Most tokens stay inside one string or one literal: no stack changes, no memory is taken.
        let mut rest = bytes.iter().enumerate();
        let mut position = Position::default();
        if let [thread] = self.position.threads.as_slice() {
            let mut state = thread.state;
            loop {
                let Some((offset, byte)) = rest.next() else { return Walk::Within(state) };
                match automaton.next(state, *byte) {
                    None => return Walk::Refused(offset),
                    Some(next) if automaton.only_takes_bytes(next) => state = next,
                    Some(next) => {
                        position.enter(automaton, next, thread.stack.clone());
                        break;
                    }
                }
            }
        } else {
            let Some((_, byte)) = rest.next() else { return Walk::To(self.position.clone()) };
            match self.position.after(automaton, *byte) {
                None => return Walk::Refused(0),
                Some(next) => position = next,
            }
        }
        for (offset, byte) in rest {
            match position.after(automaton, *byte) {
                None => return Walk::Refused(offset),
                Some(next) => position = next,
            }
        }
        Walk::To(position)
    }
}

/// Where some bytes lead.
enum Walk {
    /// Nowhere: the byte at this offset is refused.
    Refused(usize),
    /// To this state of the only thread, with the same stack.
    Within(StateId),
    /// There.
    To(Position),
}

impl Position {
    fn allowed(&self, automaton: &Automaton) -> ByteSet {
        let mut set = ByteSet::default();
        for thread in &self.threads {
            for edge in automaton.edges(thread.state) {
                set.insert_range(edge.first, edge.last);
            }
        }
        set
    }

    fn after(&self, automaton: &Automaton, byte: u8) -> Option<Self> {
        let mut next = Self::default();
        let mut taken = false;
        for thread in &self.threads {
            if let Some(state) = automaton.next(thread.state, byte) {
                taken = true;
                next.enter(automaton, state, thread.stack.clone());
            }
        }
        taken.then_some(next)
    }

    /// Adds a state and all that it leads to without a byte.
    ///
    /// The recursion ends: a checked grammar has no left recursion and repeats nothing empty.
    fn enter(&mut self, automaton: &Automaton, state: StateId, stack: Stack) {
        for &Call { rule, back, argument, last } in automaton.calls(state) {
            let inner = if last && !argument {
                stack.clone()
            } else {
                Stack(Some(Arc::new(Frame { back, argument, below: stack.clone() })))
            };
            self.enter(automaton, rule, inner);
        }
        if automaton.is_final(state) {
            match &stack.0 {
                None => self.whole = true,
                Some(frame) => self.enter(automaton, frame.back, frame.below.clone()),
            }
        }
        let known = |thread: &Thread| thread.state == state && thread.stack == stack;
        if !automaton.edges(state).is_empty() && !self.threads.iter().any(known) {
            self.threads.push(Thread { state, stack });
        }
    }
}

impl Thread {
    /// Fewest bytes that complete the argument's value.
    fn cost(&self, automaton: &Automaton) -> u32 {
        let mut cost = automaton.cost(self.state);
        let mut stack = &self.stack;
        while let Some(frame) = &stack.0 {
            if frame.argument {
                break;
            }
            cost = cost.saturating_add(automaton.cost(frame.back));
            stack = &frame.below;
        }
        cost
    }

    fn closing(&self, automaton: &Automaton) -> Vec<u8> {
        let mut bytes = Vec::new();
        automaton.cheapest(self.state, &mut bytes);
        let mut stack = &self.stack;
        while let Some(frame) = &stack.0 {
            if frame.argument {
                break;
            }
            automaton.cheapest(frame.back, &mut bytes);
            stack = &frame.below;
        }
        bytes
    }
}

impl Stack {
    fn in_argument(&self) -> bool {
        let mut stack = self;
        while let Some(frame) = &stack.0 {
            if frame.argument {
                return true;
            }
            stack = &frame.below;
        }
        false
    }
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self, other);
        loop {
            match (&a.0, &b.0) {
                (None, None) => return true,
                (Some(x), Some(y)) if Arc::ptr_eq(x, y) => return true,
                (Some(x), Some(y)) if x.back == y.back && x.argument == y.argument => {
                    (a, b) = (&x.below, &y.below);
                }
                _ => return false,
            }
        }
    }
}

impl Drop for Frame {
    /// Frees a deep stack in a loop, where the compiler's own code would recurse.
    fn drop(&mut self) {
        let mut below = self.below.0.take();
        while let Some(mut frame) = below.and_then(Arc::into_inner) {
            below = frame.below.0.take();
        }
    }
}
