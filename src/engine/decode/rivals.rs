//! The search for a call's name.
//!
//! Token by token a name is taken whose beginning the model likes and whose end it does not: it would go on with
//! `compare_strings`, and the grammar leaves it `compare_numbers`. So what a name could have gone on with is kept with
//! its probability among all tokens, and written too as long as that is not much below the likeliest whole name's,
//! which can only become less on the way: a best-first search.
//!
//! Then each name is weighed against how likely it is where nothing is asked: some functions are called at every
//! opportunity, the first of a list and the shortest names before others (contextual calibration, Zhao et al. 2021).

use super::Choice;
use crate::engine::TokenId;

/// Least probability, among what the grammar allows, of a token that is kept.
const MIN_PROBABILITY: f64 = 0.05;

/// How far, as a logarithm, a name may be below the likeliest and still win once it is weighed.
const MARGIN: f64 = 2.5;

/// Most names that are begun beside the first.
const MAX_TRIED: u32 = 4;

/// Others of a place that are looked at.
pub(super) const N_OTHERS: usize = 3;

/// How much the logarithm of a name's probability where nothing is asked counts against it. With the stand-in, of the
/// unsure names of `many110` and `mixed_dev` (30 and 14) it gives 26 and 14 right with 0, 28 and 14 with 0.3, and 30
/// and 14 from 0.5 to 1.
const NEUTRAL_WEIGHT: f64 = 0.5;

/// The beginning of a call up to a place in its name, or to the name's end.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    /// The sum of the logarithms of its tokens' probabilities.
    pub(super) log_p: f64,
    pub(super) tokens: Vec<TokenId>,
    /// Of its tokens, where choices are weighed.
    pub(super) choices: Vec<Choice>,
    /// [`Generation::none`](super::Generation::none) with them.
    pub(super) none: Option<f64>,
}

#[derive(Debug, Default)]
pub(super) struct Rivals {
    /// Of what is being written.
    pub(super) log_p: f64,
    /// Whole names.
    whole: Vec<(Vec<u8>, Beginning)>,
    open: Vec<Beginning>,
    n_tried: u32,
}

impl Rivals {
    /// Whether there is another name to compare with.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty() || !self.whole.is_empty()
    }

    /// Whether a token of that probability, among those that are allowed, is worth to be kept.
    pub(super) fn is_likely(probability: f64) -> bool {
        probability >= MIN_PROBABILITY
    }

    pub(super) fn keep(&mut self, beginning: Beginning) {
        self.open.push(beginning);
    }

    /// Keeps a whole name; of one that was written before with other tokens, the likelier.
    pub(super) fn keep_whole(&mut self, name: &[u8], beginning: Beginning) {
        match self.whole.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) if known.log_p >= beginning.log_p => {}
            Some((_, known)) => *known = beginning,
            None => self.whole.push((name.to_vec(), beginning)),
        }
    }

    /// Whether the name that is being written is too unlikely.
    pub(super) fn is_hopeless(&self) -> bool {
        self.log_p <= self.bar()
    }

    fn bar(&self) -> f64 {
        let likeliest = self.whole.iter().map(|(_, one)| one.log_p).reduce(f64::max);
        likeliest.map_or(f64::NEG_INFINITY, |log_p| log_p - MARGIN)
    }

    /// The likeliest of what is still to be written.
    pub(super) fn next(&mut self) -> Option<Beginning> {
        let bar = self.bar();
        self.open.retain(|one| one.log_p > bar);
        let of = |at: &usize| self.open[*at].log_p;
        let likeliest = (0..self.open.len()).max_by(|a, b| of(a).total_cmp(&of(b)))?;
        if self.n_tried == MAX_TRIED {
            return None;
        }
        self.n_tried += 1;
        let beginning = self.open.swap_remove(likeliest);
        self.log_p = beginning.log_p;
        Some(beginning)
    }

    /// The tokens of each whole name.
    pub(super) fn names(&self) -> impl Iterator<Item = &[TokenId]> {
        self.whole.iter().map(|(_, one)| one.tokens.as_slice())
    }

    /// The name to be taken, given the logarithm of each one's probability where nothing is asked.
    pub(super) fn best(self, neutral: &[f64]) -> Option<Beginning> {
        let neutral = neutral.iter().copied().chain(std::iter::repeat(0.0));
        let weighed = self.whole.into_iter().zip(neutral).map(|((_, one), neutral)| {
            let log_p = one.log_p - NEUTRAL_WEIGHT * neutral;
            (log_p, one)
        });
        weighed.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, one)| one)
    }
}
