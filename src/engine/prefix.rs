//! What the prompts over one function set begin with, decoded once and lent to each of them.
//!
//! A few prefixes lie in the cache, each in a sequence of its own, and prompts begin with copies of their
//! cells. Cells that nobody uses slow every step down, so a prefix without a sequence in flight is parked in
//! host memory when another is needed, and comes back from there; a [`Store`] keeps them between runs.
//!
//! **Invariant:** `tokens` of a slot are exactly what the cache holds for it.

use super::{Backend, DecodeError, Row, SequenceId, TokenId, count};

/// Prefixes in the cache at the same time; their sequences are the first ones.
pub const N_PREFIXES: u32 = 4;

/// Bytes of parked prefixes; the least recently used ones are forgotten beyond that.
const MAX_PARKED: usize = 128 << 20;

/// Keeps prefixes between runs.
pub trait Store: std::fmt::Debug {
    /// The saved state of a prefix, if it is there and whole.
    fn load(&mut self, tokens: &[TokenId]) -> Option<Vec<u8>>;
    /// Takes note of a use, and says whether there was one before.
    fn note(&mut self, tokens: &[TokenId]) -> bool;
    /// Keeps the state of a prefix.
    fn save(&mut self, tokens: &[TokenId], state: &[u8]);
}

/// The prefixes in the cache and in host memory.
#[derive(Debug, Default)]
pub struct Prefixes {
    slots: [Slot; N_PREFIXES as usize],
    parked: Vec<Parked>,
    clock: u64,
    n_rows: u64,
    store: Option<Box<dyn Store>>,
}

/// A place for a prefix; without tokens nothing is in it.
#[derive(Debug, Default)]
struct Slot {
    tokens: Vec<TokenId>,
    last_use: u64,
    /// Whether it is worth parking.
    keep: bool,
    /// The sequences in flight that begin with its cells.
    users: Vec<SequenceId>,
}

#[derive(Debug)]
struct Parked {
    tokens: Vec<TokenId>,
    state: Vec<u8>,
    last_use: u64,
}

impl Prefixes {
    /// With a place to keep prefixes in between runs.
    #[must_use]
    pub fn with(store: Option<Box<dyn Store>>) -> Self {
        Self { store, ..Self::default() }
    }

    /// Cells that the prefixes take.
    #[must_use]
    pub fn n_cells(&self) -> u32 {
        self.slots.iter().map(|slot| count(slot.tokens.len())).sum()
    }

    /// Rows that were evaluated for prefixes.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Whether prefixes are kept between runs.
    #[must_use]
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Whether a prefix that one prompt begins with is worth holding: it was used in an earlier run.
    pub fn note(&mut self, tokens: &[TokenId]) -> bool {
        self.store.as_mut().is_some_and(|store| store.note(tokens))
    }

    /// Makes the cache hold `tokens`, from wherever they are kept, or by decoding them. `n_other_cells` are
    /// taken by others; `keep` says that further prompts will begin so. Where no place is free, nothing
    /// happens.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`] where `interrupted` says so, else what the backend says. The
    /// prefix is not held then.
    pub fn hold<B: Backend>(
        &mut self,
        backend: &mut B,
        tokens: &[TokenId],
        (n_other_cells, keep): (u32, bool),
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), DecodeError> {
        self.clock += 1;
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.tokens == tokens) {
            (slot.last_use, slot.keep) = (self.clock, keep);
            return Ok(());
        }
        self.park_idle(backend)?;
        let Some(at) = self.slots.iter().position(|slot| slot.tokens.is_empty()) else {
            return Ok(());
        };
        let id = slot_id(at);
        backend.reserve(self.n_cells() + count(tokens.len()) + n_other_cells)?;
        if let Err(error) = self.fill(backend, id, tokens, interrupted) {
            backend.remove(id)?;
            return Err(error);
        }
        let slot = &mut self.slots[at];
        slot.tokens = tokens.to_vec();
        (slot.last_use, slot.keep) = (self.clock, keep);
        Ok(())
    }

    fn fill<B: Backend>(
        &mut self,
        backend: &mut B,
        id: SequenceId,
        tokens: &[TokenId],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), DecodeError> {
        let n = count(tokens.len());
        if let Some(at) = self.parked.iter().position(|parked| parked.tokens == tokens) {
            let parked = self.parked.swap_remove(at);
            if backend.restore(id, &parked.state, n).is_ok() {
                return Ok(());
            }
        }
        if let Some(state) = self.store.as_mut().and_then(|store| store.load(tokens)) {
            if backend.restore(id, &state, n).is_ok() {
                tracing::debug!(n, "prefix from disk");
                return Ok(());
            }
        }
        // Another prefix may begin alike.
        let mut n_there = 0;
        if backend.copies_part() {
            let (at, n) = self.longest(backend, &tokens[..tokens.len() - 1]);
            if n > 0 {
                backend.copy(slot_id(at), id, count(n))?;
            }
            n_there = n;
        }
        decode(backend, id, &tokens[n_there..], count(n_there), interrupted)?;
        self.n_rows += (tokens.len() - n_there) as u64;
        if let Some(store) = &mut self.store {
            store.save(tokens, &backend.save(id)?);
        }
        Ok(())
    }

    /// Takes every prefix without a sequence in flight out of the cache.
    fn park_idle<B: Backend>(&mut self, backend: &mut B) -> Result<(), DecodeError> {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.users.is_empty() && !slot.tokens.is_empty() {
                let Slot { tokens, last_use, keep, .. } = std::mem::take(slot);
                if keep {
                    let state = backend.save(slot_id(at))?;
                    self.parked.push(Parked { tokens, state, last_use });
                }
                backend.remove(slot_id(at))?;
            }
        }
        self.parked.sort_by_key(|parked| parked.last_use);
        let mut n_bytes: usize = self.parked.iter().map(|parked| parked.state.len()).sum();
        while n_bytes > MAX_PARKED {
            n_bytes -= self.parked.remove(0).state.len();
        }
        Ok(())
    }

    /// Lets sequence `to` begin with what it shares with `prompt`, and says how many tokens that
    /// is: never the whole prompt, since its last token must be decoded for its logits.
    ///
    /// # Errors
    /// What the backend says.
    pub fn lend<B: Backend>(
        &mut self,
        backend: &mut B,
        to: SequenceId,
        prompt: &[TokenId],
    ) -> Result<u32, DecodeError> {
        let most = prompt.len().saturating_sub(1);
        let (at, n) = self.longest(backend, &prompt[..most]);
        if n == 0 {
            backend.remove(to)?;
        } else {
            backend.copy(slot_id(at), to, count(n))?;
            self.slots[at].users.push(to);
        }
        Ok(count(n))
    }

    /// The slot that holds most of what the tokens begin with, and how many of them can be copied.
    fn longest<B: Backend>(&self, backend: &B, tokens: &[TokenId]) -> (usize, usize) {
        let usable = |at: usize| {
            let held = &self.slots[at].tokens;
            let shared = common(held, tokens).len();
            if shared == held.len() || backend.copies_part() { shared } else { 0 }
        };
        let each = (0..self.slots.len()).map(|at| (at, usable(at)));
        each.max_by_key(|(_, n)| *n).unwrap_or_default()
    }

    /// Sequence `of` is over.
    pub fn give_back(&mut self, of: SequenceId) {
        for slot in &mut self.slots {
            slot.users.retain(|user| *user != of);
        }
    }

    /// Forgets what is in the cache, which is not to be trusted any more.
    ///
    /// # Errors
    /// What the backend says.
    pub fn forget<B: Backend>(&mut self, backend: &mut B) -> Result<(), DecodeError> {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            *slot = Slot::default();
            backend.remove(slot_id(at))?;
        }
        Ok(())
    }
}

fn slot_id(at: usize) -> SequenceId {
    SequenceId(count(at))
}

/// Evaluates tokens of a sequence from a position on, without logits, in steps as large as may be.
///
/// # Errors
/// [`DecodeError::Interrupted`] where `interrupted` says so, else what the backend says.
pub fn decode<B: Backend>(
    backend: &mut B,
    sequence: SequenceId,
    tokens: &[TokenId],
    mut position: u32,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), DecodeError> {
    for chunk in tokens.chunks(backend.max_rows()) {
        if interrupted() {
            return Err(DecodeError::Interrupted);
        }
        let rows: Vec<Row> = (position..)
            .zip(chunk)
            .map(|(position, &token)| Row { token, position, sequence, logits: false })
            .collect();
        position += count(chunk.len());
        backend.decode(&rows)?;
    }
    Ok(())
}

/// The tokens that two prompts begin with in common.
#[must_use]
pub fn common<'a>(a: &'a [TokenId], b: &[TokenId]) -> &'a [TokenId] {
    &a[..a.iter().zip(b).take_while(|(a, b)| a == b).count()]
}
