//! Logits and a grammar in, one token out.
//!
//! Greedy decoding needs no mask over the whole vocabulary: the candidates are walked from the
//! highest logit down and the first that the grammar takes is the one a mask would have left on
//! top. With a temperature the same walk draws without replacement: a draw that is refused is
//! struck out and the next is drawn from the rest, which is a draw from the masked distribution.
//! Where the walk goes deep, the mask is computed by our recognizer over the vocabulary's trie.
//!
//! **Invariant:** a token is returned only if the recognizer and the backend's gate both take it.

use super::{Gate, TokenId, TokenKind, Vocab};
use crate::grammar::recognize::Recognizer;

/// Candidates tried before the recognizer computes the whole mask.
const WALK_LIMIT: usize = 64;

/// How a token is chosen among those allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// The highest logit; of equals, the lowest id.
    Greedy,
    /// Drawn from the softmax of the logits divided by the temperature.
    Temperature {
        /// Greater than 0.
        temperature: f32,
    },
}

/// A stream of random numbers (`SplitMix64`, Steele et al. 2014): one a prompt, from the seed and the
/// prompt's index, so that a result does not depend on what ran beside it.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of prompt `index` under `seed`.
    #[must_use]
    pub fn new(seed: u64, index: u64) -> Self {
        let mut random = Self(seed ^ index.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to 1, 1 excluded.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Where the text stands: what both judges of a token know.
#[derive(Debug)]
pub struct Place<'a, G> {
    /// Our recognizer.
    pub recognizer: &'a Recognizer,
    /// The backend's grammar sampler.
    pub gate: &'a mut G,
    /// The model's tokens.
    pub vocab: &'a Vocab,
}

/// How likely the model held a token, among those that were allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Odds {
    /// Of the token, 0 to 1.
    pub probability: f64,
    /// The likeliest others with theirs, in order.
    pub others: Vec<(TokenId, f64)>,
}

impl<G: Gate> Place<'_, G> {
    /// What the softmax of the logits, over all that the grammar allows, gives to `token` and to the
    /// `n_others` likeliest others. A token that leads to the same text, since the grammar forces what one of
    /// the two has more than the other, counts as `token`.
    #[must_use]
    pub fn odds(&self, logits: &[f32], token: TokenId, n_others: usize) -> Odds {
        let mut weights = weigh(logits, self.mask().into_iter(), 1.0);
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let of = |weight: f64| if total > 0.0 { weight / total } else { 0.0 };
        let mut probability = 0.0;
        weights.retain(|(id, weight)| {
            let is_same = *id == token || self.leads_to_the_same(token, *id);
            if is_same {
                probability += of(*weight);
            }
            !is_same
        });
        weights.sort_unstable_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
        weights.truncate(n_others);
        let others = weights.into_iter().map(|(id, weight)| (id, of(weight))).collect();
        Odds { probability, others }
    }

    fn leads_to_the_same(&self, one: TokenId, other: TokenId) -> bool {
        let (one, other) = (self.vocab.bytes(one), self.vocab.bytes(other));
        let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
        let Some(rest) = long.strip_prefix(short) else { return false };
        let mut after = self.recognizer.clone();
        after.push_all(short).is_ok() && after.forced().starts_with(rest)
    }

    fn allows(&mut self, id: TokenId) -> bool {
        self.vocab.kind(id) == TokenKind::Text
            && !self.vocab.bytes(id).is_empty()
            && self.recognizer.accepts(self.vocab.bytes(id))
            && self.gate.allows(id)
    }

    /// The token that `sampling` chooses among those allowed; `None` where none is.
    pub fn choose(
        &mut self,
        logits: &[f32],
        sampling: Sampling,
        random: &mut Random,
    ) -> Option<TokenId> {
        match sampling {
            Sampling::Greedy => self.choose_greedy(logits),
            Sampling::Temperature { temperature } => self.draw(logits, temperature, random),
        }
    }

    fn choose_greedy(&mut self, logits: &[f32]) -> Option<TokenId> {
        let first = argmax(logits)?;
        if self.allows(first) {
            return Some(first);
        }
        let walk = top(logits, WALK_LIMIT);
        if let Some(id) = walk.into_iter().skip(1).find(|id| self.allows(*id)) {
            return Some(id);
        }
        let mut allowed = self.mask();
        allowed.sort_by(|a, b| by_logit(logits, *a, *b));
        allowed
            .into_iter()
            .find(|id| logits.get(id.index()).is_some_and(|x| !x.is_nan()) && self.gate.allows(*id))
    }

    fn draw(&mut self, logits: &[f32], temperature: f32, random: &mut Random) -> Option<TokenId> {
        let all = (0u32..).map(TokenId).take(logits.len());
        let mut weights = weigh(logits, all, temperature);
        for _ in 0..WALK_LIMIT {
            // Beside what was struck out all others can weigh nothing.
            let Some(at) = draw_one(&weights, random) else { break };
            if self.allows(weights[at].0) {
                return Some(weights[at].0);
            }
            weights[at].1 = 0.0;
        }
        let mut masked = self.mask();
        loop {
            let weights = weigh(logits, masked.iter().copied(), temperature);
            let (id, _) = weights[draw_one(&weights, random)?];
            if self.gate.allows(id) {
                return Some(id);
            }
            masked.retain(|other| *other != id);
        }
    }

    /// Every text token that the recognizer takes, in the order of their ids.
    fn mask(&self) -> Vec<TokenId> {
        self.recognizer.mask(self.vocab.trie()).iter().map(TokenId).collect()
    }
}

/// The order in which candidates are tried: the higher logit first, of equals the lower id.
fn by_logit(logits: &[f32], a: TokenId, b: TokenId) -> std::cmp::Ordering {
    // The sum makes of -0 the 0 that it equals.
    let logit = |id: TokenId| logits[id.index()] + 0.0;
    logit(b).total_cmp(&logit(a)).then_with(|| a.cmp(&b))
}

/// The token with the highest logit; not-a-numbers of a damaged model never win.
fn argmax(logits: &[f32]) -> Option<TokenId> {
    let mut best: Option<(f32, usize)> = None;
    for (index, &logit) in logits.iter().enumerate() {
        if best.map_or(!logit.is_nan(), |(highest, _)| logit > highest) {
            best = Some((logit, index));
        }
    }
    best.and_then(|(_, index)| u32::try_from(index).ok()).map(TokenId)
}

/// The `n` highest, in order.
fn top(logits: &[f32], n: usize) -> Vec<TokenId> {
    let mut kept: Vec<TokenId> = Vec::with_capacity(2 * n);
    // All of those kept are above it, once there are n; an equal one that comes later is tried later.
    let mut bar = None;
    for (id, &logit) in (0u32..).map(TokenId).zip(logits) {
        if bar.map_or(!logit.is_nan(), |bar| logit > bar) {
            kept.push(id);
            if kept.len() == 2 * n {
                kept.select_nth_unstable_by(n, |a, b| by_logit(logits, *a, *b));
                kept.truncate(n);
                bar = kept.iter().map(|id| logits[id.index()]).reduce(f32::min);
            }
        }
    }
    kept.sort_by(|a, b| by_logit(logits, *a, *b));
    kept.truncate(n);
    kept
}

/// The softmax over `ids`, but for a common factor: the highest weighs 1.
fn weigh(
    logits: &[f32],
    ids: impl Iterator<Item = TokenId> + Clone,
    temperature: f32,
) -> Vec<(TokenId, f64)> {
    let numbers = ids.filter_map(|id| {
        let logit = *logits.get(id.index())?;
        (!logit.is_nan()).then_some((id, logit))
    });
    let highest = numbers.clone().fold(f32::NEG_INFINITY, |highest, (_, x)| highest.max(x));
    let weight = |logit: f32| {
        let difference = logit - highest;
        // Equal infinities have no difference.
        if difference.is_nan() { 1.0 } else { f64::from(difference / temperature).exp() }
    };
    numbers.map(|(id, logit)| (id, weight(logit))).collect()
}

/// What the softmax over all tokens gives to one of them, 0 to 1.
pub(crate) fn share(logits: &[f32], token: TokenId) -> f64 {
    let weights = weigh(logits, (0u32..).map(TokenId).take(logits.len()), 1.0);
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let own = weights.iter().find(|(id, _)| *id == token).map_or(0.0, |(_, weight)| *weight);
    if total > 0.0 { own / total } else { 0.0 }
}

/// Draws an index by weight; `None` where all weights are 0.
fn draw_one(weights: &[(TokenId, f64)], random: &mut Random) -> Option<usize> {
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let mut left = random.unit() * total;
    let mut last = None;
    for (index, (_, weight)) in weights.iter().enumerate() {
        if *weight > 0.0 {
            last = Some(index);
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
    }
    last
}
