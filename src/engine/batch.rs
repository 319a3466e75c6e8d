//! Several sequences that are written at the same time: their rows share the steps.
//!
//! A step costs little more for many rows than for one, so each takes whatever every sequence has to
//! feed: those that are being written first, then prompts, the oldest first and in pieces where they are
//! long. So no prompt waits for another, and a long one holds up none.
//!
//! Until a first sequence is finished the oldest that one step can read has the steps nearly to itself:
//! someone may be waiting for a sign that it works, and the others lose little by it.
//!
//! **Invariant:** with one sequence the steps are those that it would make alone.

use super::decode::{DecodeError, Generation, Progress, Sequence, Watch};
use super::{Backend, BackendError, Gate, SequenceId, TokenId, count};

/// Rows of a step up to which others share it with the oldest sequence until a first one is finished.
const EARLY_ROWS: usize = 4;

/// Sequences in flight, each in a place of its own in the cache.
#[derive(Debug)]
pub struct Batch<G> {
    /// The place of the first.
    first: u32,
    slots: Vec<Option<Slot<G>>>,
    has_finished: bool,
}

#[derive(Debug)]
struct Slot<G> {
    index: u64,
    sequence: Sequence<G>,
}

/// A sequence of which one of several names is to be taken.
#[derive(Debug)]
pub struct Naming {
    /// The prompt's index.
    pub index: u64,
    /// Its place.
    pub id: SequenceId,
    /// Whether it is the first call's.
    pub is_first: bool,
    /// The tokens of each name, from the start of the call.
    pub names: Vec<Vec<TokenId>>,
}

/// A sequence that has left the batch.
#[derive(Debug)]
pub struct Finished {
    /// The prompt's index.
    pub index: u64,
    /// Its place, free again; what the cache holds there is the caller's to remove.
    pub id: SequenceId,
    /// What it came to.
    pub result: Result<Generation, DecodeError>,
}

impl<G: Gate> Batch<G> {
    /// Room for `n` sequences, in the places from `first` on.
    #[must_use]
    pub fn new(first: SequenceId, n: usize) -> Self {
        Self { first: first.0, slots: (0..n).map(|_| None).collect(), has_finished: false }
    }

    /// A place that nothing is written in.
    #[must_use]
    pub fn free(&self) -> Option<SequenceId> {
        let at = self.slots.iter().position(Option::is_none)?;
        Some(self.id(at))
    }

    /// Whether nothing is being written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    /// Cells of the cache that the sequences have, or are about to fill, for themselves.
    #[must_use]
    pub fn n_cells(&self) -> u32 {
        self.sequences().map(|slot| slot.sequence.n_own_cells()).sum()
    }

    /// Begins a sequence in its place; one that needs no model is finished at once.
    pub fn start<B: Backend<Gate = G>>(
        &mut self,
        backend: &mut B,
        index: u64,
        sequence: Sequence<G>,
        watch: &mut dyn Watch,
    ) -> Option<Finished> {
        let at = (sequence.id().0 - self.first) as usize;
        self.slots[at] = Some(Slot { index, sequence });
        self.advance(at, backend, watch)
    }

    /// A sequence that waits for [`Self::take_name`]; [`Self::step`] must not be called before.
    #[must_use]
    pub fn naming(&self) -> Option<Naming> {
        let name = |slot: &Slot<G>| {
            let Slot { index, sequence } = slot;
            let (id, is_first) = (sequence.id(), sequence.is_in_first_call());
            Some(Naming { index: *index, id, is_first, names: sequence.names()? })
        };
        self.sequences().find_map(name)
    }

    /// Takes one of a sequence's names, as [`Sequence::take_name`].
    pub fn take_name<B: Backend<Gate = G>>(
        &mut self,
        backend: &mut B,
        id: SequenceId,
        neutral: &[f64],
        watch: &mut dyn Watch,
    ) -> Option<Finished> {
        let at = (id.0 - self.first) as usize;
        let progress = self.slots[at].as_mut()?.sequence.take_name(backend, neutral);
        self.follow(at, progress, backend, watch)
    }

    /// Evaluates one step's rows and takes a token for each sequence that has fed all of its own.
    ///
    /// `n_other_cells` are held by others. Whoever is finished leaves the batch.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`], or what the backend says; the cache is then as it was or worse, so no
    /// sequence can go on.
    pub fn step<B: Backend<Gate = G>>(
        &mut self,
        backend: &mut B,
        n_other_cells: u32,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Finished>, DecodeError> {
        if watch.is_interrupted() {
            return Err(DecodeError::Interrupted);
        }
        backend.reserve(self.n_cells() + n_other_cells)?;
        let mut order: Vec<usize> =
            (0..self.slots.len()).filter(|at| self.slots[*at].is_some()).collect();
        let is_early = !self.has_finished;
        let max_rows = backend.max_rows();
        order.sort_by_key(|at| {
            self.slots[*at].as_ref().map(|Slot { index, sequence }| {
                let is_long = is_early && sequence.n_waiting() > max_rows;
                (sequence.is_reading(), is_long, *index)
            })
        });
        let mut rows = Vec::new();
        let mut complete = Vec::new();
        for at in order {
            let limit = if is_early && !rows.is_empty() { EARLY_ROWS } else { max_rows };
            let room = limit.saturating_sub(rows.len());
            if let (Some(slot), true) = (&mut self.slots[at], room > 0) {
                rows.extend(slot.sequence.next_rows(room));
                if rows.last().is_some_and(|row| row.logits) {
                    complete.push((at, rows.len() - 1));
                }
            }
        }
        backend.decode(&rows)?;
        let mut finished = Vec::new();
        for (at, row) in complete {
            let Some(Slot { sequence, .. }) = &mut self.slots[at] else { continue };
            let chosen = sequence.choose(backend.vocab(), backend.logits(row));
            finished.extend(match chosen {
                Ok(()) => self.advance(at, backend, watch),
                Err(error) => self.leave(at, Err(error)),
            });
        }
        Ok(finished)
    }

    /// Gives up all sequences and says of which prompts they were, the oldest first.
    pub fn give_up(&mut self) -> Vec<(u64, SequenceId)> {
        let ids = (self.first..).map(SequenceId);
        let slots = self.slots.iter_mut().zip(ids);
        let mut given_up: Vec<_> =
            slots.filter_map(|(slot, id)| Some((slot.take()?.index, id))).collect();
        given_up.sort_unstable_by_key(|(index, _)| *index);
        given_up
    }

    fn advance<B: Backend<Gate = G>>(
        &mut self,
        at: usize,
        backend: &mut B,
        watch: &mut dyn Watch,
    ) -> Option<Finished> {
        let progress = self.slots[at].as_mut()?.sequence.advance(backend);
        self.follow(at, progress, backend, watch)
    }

    fn follow<B: Backend<Gate = G>>(
        &mut self,
        at: usize,
        mut progress: Result<Progress, DecodeError>,
        backend: &mut B,
        watch: &mut dyn Watch,
    ) -> Option<Finished> {
        let Slot { index, sequence } = self.slots[at].as_mut()?;
        while let Ok(Progress::Back(n)) = progress {
            let forgotten = backend.truncate(sequence.id(), n).map_err(DecodeError::from);
            progress = forgotten.and_then(|()| sequence.advance(backend));
        }
        watch.on_text(*index, sequence.text());
        let (needed, limit) = (sequence.n_tokens(), backend.max_tokens());
        match progress {
            Ok(Progress::Rows) if needed > limit => {
                self.leave(at, Err(BackendError::ContextFull { needed, limit }.into()))
            }
            Ok(Progress::Rows | Progress::Back(_) | Progress::Names) => None,
            Ok(Progress::Done) => self.leave(at, Ok(())),
            Err(error) => self.leave(at, Err(error)),
        }
    }

    fn leave(&mut self, at: usize, result: Result<(), DecodeError>) -> Option<Finished> {
        let Slot { index, sequence } = self.slots[at].take()?;
        self.has_finished = true;
        Some(Finished { index, id: self.id(at), result: result.map(|()| sequence.finish()) })
    }

    fn id(&self, at: usize) -> SequenceId {
        SequenceId(self.first + count(at))
    }

    fn sequences(&self) -> impl Iterator<Item = &Slot<G>> {
        self.slots.iter().flatten()
    }
}
