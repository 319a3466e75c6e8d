//! Does a grammar accept a text, and what may come next? Bytes in, no model.
//!
//! A pushdown recognizer: each rule is compiled once to a deterministic automaton over bytes whose
//! states may also call other rules. Where the text stands is a small set of pairs of a state and a
//! stack of return states; stacks share their lower parts, so a clone costs a few counters.
//!
//! ```text
//! Grammar ──nfa──► one automaton ──compile──► tables (automaton) ◄── Position ◄── Recognizer
//!                                                    ▲                  │
//!                                   TokenTrie ──► mask ──► TokenMask    └──► expected
//! ```
//!
//! **Invariant:** `push` takes a byte exactly when some text of the grammar begins with all bytes
//! taken so far and that one; so there is always a way to the end, and ill-formed UTF-8 is never
//! taken.
//! **Invariant:** a refused byte or text leaves the state as it was.
//! **Invariant:** a call in last place leaves no mark on the stack, save that of an argument's
//! rule; so the stack is as deep as the text is nested, not as long as it is.

mod bytes;
mod nfa;
mod automaton;
mod compile;
mod position;
pub mod mask;
pub mod expected;

use std::sync::Arc;

use self::automaton::{Automaton, DEAD};
pub use self::bytes::ByteSet;
use self::compile::compile;
use self::expected::Expected;
use self::mask::{MaskCache, TokenMask, TokenTrie};
use self::position::{Position, Thread};
use super::check::check;
use super::{Grammar, GrammarError, RuleName};

/// Where a text stands in a grammar; starts before its first byte.
///
/// ```
/// use call_me_maybe::grammar::{lower, recognize::Recognizer};
///
/// let file = br#"[{"name": "fn_wait", "parameters": {"seconds": {"type": "integer"}}}]"#;
/// let functions = call_me_maybe::definitions::parse(file)?;
/// let mut text = Recognizer::new(&lower::calls(&functions, lower::Unsupported::Keep)?.grammar)?;
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
    masks: Arc<MaskCache>,
    position: Position,
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
        let position = Position::start(&automaton);
        Ok(Self { automaton, masks: Arc::default(), position })
    }

    /// Takes the byte; `false` where no text of the grammar goes on with it.
    pub fn push(&mut self, byte: u8) -> bool {
        self.position.push(&self.automaton, byte)
    }

    /// Whether all of the bytes would be taken; none at all always are.
    #[must_use]
    pub fn accepts(&self, bytes: &[u8]) -> bool {
        self.walk(bytes).is_ok()
    }

    /// Takes all of the bytes or none.
    ///
    /// # Errors
    ///
    /// The offset of the first byte that is refused.
    pub fn push_all(&mut self, bytes: &[u8]) -> Result<(), usize> {
        match self.walk(bytes)? {
            Walk::Within(state) => {
                self.position.threads[0].state = state;
                self.position.whole &= bytes.is_empty();
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
    /// It stops where the text can end, as the end is a choice too, and after 64 KiB.
    #[must_use]
    pub fn forced(&self) -> Vec<u8> {
        const LIMIT: usize = 1 << 16;
        let mut forced = Vec::new();
        let mut position = self.position.clone();
        while let (false, Some(byte)) = (position.whole, position.allowed(&self.automaton).only()) {
            if forced.len() == LIMIT || !position.push(&self.automaton, byte) {
                break;
            }
            forced.push(byte);
        }
        forced
    }

    /// The tokens whose bytes would all be taken.
    ///
    /// What was computed is kept with the compiled grammar, up to a bound, for its recognizers on
    /// all threads; it serves one trie at a time.
    #[must_use]
    pub fn mask(&self, trie: &TokenTrie) -> TokenMask {
        let mut mask = TokenMask::default();
        self.mask_into(trie, &mut mask);
        mask
    }

    /// Like [`Recognizer::mask`], into a mask that is there already.
    pub fn mask_into(&self, trie: &TokenTrie, mask: &mut TokenMask) {
        mask::fill(&self.masks, &self.automaton, &self.position, trie, mask);
    }

    /// What may come next, for people: texts as far as they are forced, kinds of characters, the
    /// end.
    #[must_use]
    pub fn expected(&self) -> Vec<Expected> {
        expected::after(self)
    }

    /// The rules that the text is inside of, the outermost first, in one of the ways to read it:
    /// inside an argument where there is such a way. Rules that were compiled into others do not
    /// show, those of arguments always do.
    #[must_use]
    pub fn open_rules(&self) -> Vec<&RuleName> {
        let threads = &self.position.threads;
        let inside = threads.iter().find(|thread| thread.stack.in_argument());
        let parts = inside.or(threads.first()).map(|thread| thread.stack.parts());
        let names = parts.into_iter().flatten();
        names.filter_map(|part| self.automaton.names.get(part as usize)?.as_ref()).collect()
    }

    /// The place of the text so far, as a key.
    #[must_use]
    pub fn place(&self) -> Place {
        Place(self.position.clone())
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
    /// Empty outside a value, and where it can be complete already. It stops after 64 KiB.
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

    fn walk(&self, bytes: &[u8]) -> Result<Walk, usize> {
        let automaton = &*self.automaton;
        let mut position;
        let mut done = 0;
        if let [thread] = &self.position.threads[..] {
            // Most tokens stay inside one string or one literal: no stack changes, no memory is
            // taken.
            let (n_bytes, state) = automaton.run(thread.state, bytes);
            if state == DEAD {
                return Err(n_bytes - 1);
            }
            if n_bytes == 0 || state < automaton.n_plain {
                return Ok(Walk::Within(state));
            }
            position = Position::default();
            position.enter(automaton, state, thread.stack.clone());
            done = n_bytes;
        } else {
            position = self.position.clone();
        }
        while let Some(byte) = bytes.get(done) {
            if let [thread] = &mut position.threads[..] {
                let (n_bytes, state) = automaton.run(thread.state, &bytes[done..]);
                done += n_bytes;
                if state == DEAD {
                    return Err(done - 1);
                }
                if state < automaton.n_plain {
                    thread.state = state;
                    position.whole = false;
                } else {
                    let stack = std::mem::take(&mut thread.stack);
                    position = Position::default();
                    position.enter(automaton, state, stack);
                }
            } else if position.push(automaton, *byte) {
                done += 1;
            } else {
                return Err(done);
            }
        }
        Ok(Walk::To(position))
    }
}

/// Where a text stands, apart from its recognizer: of use only beside others of the same one.
///
/// Equal places lead on in the same ways; the reverse does not always hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place(Position);

/// Where some bytes lead.
enum Walk {
    /// To this state of the only thread, with the same stack.
    Within(automaton::StateId),
    /// There.
    To(Position),
}
