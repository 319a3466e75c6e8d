//! One sequence, from its prompt's tokens to the text of a whole call.
//!
//! A [`Sequence`] is moved on in three steps, which [`Batch`](super::Batch) interleaves for many:
//! [`Sequence::advance`] writes the text that the grammar forces, [`Sequence::next_rows`] gives the
//! rows to evaluate, [`Sequence::choose`] takes one free token from the logits.
//!
//! Forced text is tokenised as the model's tokenizer would and fed with the next step as rows
//! without logits. Its last tokens are held back where a longer token of the vocabulary could reach
//! into the free text that follows: there the model must see the choice. Text after the last free
//! byte is written and never evaluated.
//!
//! **Invariant:** `text` is what the recognizer has seen, and the gate has accepted its tokens.
//! **Invariant:** nothing here can abort the process: every token is checked before it is accepted.

use std::time::{Duration, Instant};

use super::gate::{Odds, Place, Random, Sampling};
use super::{Backend, BackendError, Gate, Row, SequenceId, TokenId, TokenKind, Vocab, count};
use crate::grammar::recognize::Recognizer;

/// What generations tell and ask while they run.
pub trait Watch {
    /// Should the work stop?
    fn is_interrupted(&self) -> bool;
    /// The call of the prompt of that index so far, JSON that is not complete.
    fn on_text(&mut self, index: u64, text: &[u8]);
}

/// Most forced tokens at the right edge that are left to the model.
const HELD_BACK_LIMIT: usize = 4;

/// Tokens over the limit that a value may take to reach a place where it closes without a made-up
/// digit or half an escape.
const CLOSING_SLACK: u32 = 8;

/// Where a generation is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most tokens in the value of one argument.
    pub max_value_tokens: u32,
}

/// A value that was closed at the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The parameter's name.
    pub parameter: String,
    /// The limit, in tokens.
    pub limit: u32,
}

/// A token that the model chose, and how it weighed it against all others that the grammar allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Where its text begins in the call, in bytes.
    pub at: usize,
    /// Its text, as far as it is UTF-8.
    pub text: String,
    /// 0 to 1.
    pub probability: f64,
    /// The likeliest others with their probabilities, in order.
    pub others: Vec<(String, f64)>,
}

/// An argument's value within the text of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSpan {
    /// The parameter's name.
    pub parameter: String,
    /// Where the value ends, in bytes.
    pub end: usize,
}

/// What one sequence came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    /// The whole call, JSON.
    pub text: String,
    /// Tokens of the prompt.
    pub n_prompt: u32,
    /// Tokens of the prompt that were in the cache already.
    pub n_shared: u32,
    /// Tokens that the model chose.
    pub n_free: u32,
    /// Tokens that the grammar forced after the model's first choice, decoded or not.
    pub n_forced: u32,
    /// Forced tokens before the model's first choice; they are decoded with the prompt.
    pub n_prefilled: u32,
    /// Places where the model's tokenizer would have divided a chosen token and the forced text after it
    /// otherwise: the choice was the model's own and is kept.
    pub n_divided: u32,
    /// Rows that were evaluated for this sequence alone: of its prompt, and of the call up to its last
    /// choice.
    pub n_rows: u32,
    /// Tokens of the call that were chosen or fed, in order; what follows the last choice has none.
    pub tokens: Vec<TokenId>,
    /// The model's choices in order, where they were to be weighed.
    pub choices: Vec<Choice>,
    /// The values of the arguments up to the last choice, in order.
    pub values: Vec<ValueSpan>,
    /// Values closed at the limit.
    pub cuts: Vec<Cut>,
    /// From the first row to the last byte.
    pub elapsed: Duration,
}

/// Why a sequence has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// No token of the vocabulary continues the text.
    #[error("no token of the model continues the call {text:?}")]
    NothingAllowed {
        /// The text so far.
        text: String,
    },
    /// The recognizer and llama.cpp's sampler disagree on a token that was chosen or forced.
    #[error("llama.cpp's sampler refuses {piece:?} after {text:?}, which the grammar takes")]
    Disagreement {
        /// The text so far.
        text: String,
        /// The token's bytes.
        piece: String,
    },
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// What a new sequence starts from.
#[derive(Debug)]
pub struct Start<'a, G> {
    /// Its place in the cache.
    pub id: SequenceId,
    /// All tokens of the prompt.
    pub prompt: &'a [TokenId],
    /// How many of them are in the cache for this sequence; fewer than all.
    pub n_shared: u32,
    /// The recognizer at the start of the call.
    pub recognizer: Recognizer,
    /// The backend's sampler at the start of the call.
    pub gate: G,
    /// How free tokens are chosen.
    pub sampling: Sampling,
    /// This prompt's random numbers.
    pub random: Random,
    /// Where to stop.
    pub limits: Limits,
    /// Whether forced text is written without asking the model.
    pub forcing: bool,
    /// How many others each choice is weighed against by name; `None` where choices are not weighed.
    pub n_others: Option<usize>,
}

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Rows wait to be evaluated, then a token is to be chosen.
    Rows,
    /// The text is complete.
    Done,
}

/// A sequence that is being written.
#[derive(Debug)]
pub struct Sequence<G> {
    id: SequenceId,
    recognizer: Recognizer,
    gate: G,
    sampling: Sampling,
    random: Random,
    limits: Limits,
    forcing: bool,
    n_others: Option<usize>,
    text: Vec<u8>,
    /// Tokens that wait for their row.
    pending: Vec<TokenId>,
    n_past: u32,
    /// Tokens in the argument's value that the text is in, and where that value begins.
    value: Option<(u32, usize)>,
    generation: Generation,
    start: Instant,
}

impl<G: Gate> Sequence<G> {
    /// A sequence at the start of its call.
    #[must_use]
    pub fn new(start: Start<'_, G>) -> Self {
        let n_prompt = count(start.prompt.len());
        Self {
            id: start.id,
            recognizer: start.recognizer,
            gate: start.gate,
            sampling: start.sampling,
            random: start.random,
            limits: start.limits,
            forcing: start.forcing,
            n_others: start.n_others,
            text: Vec::new(),
            pending: start.prompt[start.n_shared as usize..].to_vec(),
            n_past: start.n_shared,
            value: None,
            generation: Generation {
                text: String::new(),
                n_prompt,
                n_shared: start.n_shared,
                n_free: 0,
                n_forced: 0,
                n_prefilled: 0,
                n_divided: 0,
                n_rows: 0,
                tokens: Vec::new(),
                choices: Vec::new(),
                values: Vec::new(),
                cuts: Vec::new(),
                elapsed: Duration::ZERO,
            },
            start: Instant::now(),
        }
    }

    /// The call so far; it can end inside a character.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Its place in the cache.
    #[must_use]
    pub fn id(&self) -> SequenceId {
        self.id
    }

    /// Cells of the cache that this sequence has or is about to fill, the shared ones not counted.
    #[must_use]
    pub fn n_own_cells(&self) -> u32 {
        self.n_tokens() - self.generation.n_shared
    }

    /// Tokens of the prompt and the call so far.
    #[must_use]
    pub fn n_tokens(&self) -> u32 {
        self.n_past + count(self.pending.len())
    }

    /// Rows that are still to be evaluated before its next token.
    #[must_use]
    pub fn n_waiting(&self) -> usize {
        self.pending.len()
    }

    /// Whether rows of its prompt are still to be evaluated, so that nothing is written yet.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        self.generation.n_free == 0
    }

    /// Writes what the grammar forces, and closes a value that reached its limit.
    ///
    /// # Errors
    /// [`DecodeError::Disagreement`].
    pub fn advance<B: Backend<Gate = G>>(&mut self, backend: &B) -> Result<Progress, DecodeError> {
        let mut after = self.recognizer.clone();
        let mut bytes = Vec::new();
        let is_cut = self.over_limit();
        if is_cut {
            self.generation.cuts.push(self.cut());
            bytes = after.close_argument();
        }
        if self.forcing || is_cut {
            let forced = after.forced();
            if after.push_all(&forced).is_ok() {
                bytes.extend_from_slice(&forced);
            }
        }
        let tokens = plain_tokens(backend, &bytes);
        if after.is_over() {
            self.count_forced(tokens.map_or(bytes.len(), |tokens| tokens.len()));
            self.text.extend_from_slice(&bytes);
            self.recognizer = after;
            return Ok(Progress::Done);
        }
        let vocab = backend.vocab();
        if let Some(mut tokens) = tokens {
            // What closes a value is not left to the model, which would go on with it.
            if !is_cut {
                tokens.truncate(tokens.len() - held_back(vocab, &after, &tokens));
            }
            self.count_forced(tokens.len());
            if self.is_divided(backend, &tokens) {
                self.generation.n_divided += 1;
            }
            for token in tokens {
                self.accept(vocab, token)?;
            }
        } else if is_cut {
            return Err(DecodeError::NothingAllowed { text: lossy(&self.text) });
        }
        if is_cut {
            self.recognizer = after;
            if !self.recognizer.in_argument() {
                self.end_value();
            }
        }
        Ok(Progress::Rows)
    }

    /// The next rows to evaluate, at most `limit`; logits are asked of the very last one only.
    pub fn next_rows(&mut self, limit: usize) -> Vec<Row> {
        let n = self.pending.len().min(limit);
        let is_last = n == self.pending.len();
        let rows = (self.n_past..)
            .zip(self.pending.drain(..n))
            .enumerate()
            .map(|(index, (position, token))| Row {
                token,
                position,
                sequence: self.id,
                logits: is_last && index + 1 == n,
            })
            .collect();
        self.n_past += count(n);
        rows
    }

    /// Takes the next token from the logits of this sequence's last row.
    ///
    /// # Errors
    /// [`DecodeError::NothingAllowed`], [`DecodeError::Disagreement`].
    pub fn choose(&mut self, vocab: &Vocab, logits: &[f32]) -> Result<(), DecodeError> {
        let mut place = Place { recognizer: &self.recognizer, gate: &mut self.gate, vocab };
        let token = place
            .choose(logits, self.sampling, &mut self.random)
            .ok_or_else(|| DecodeError::NothingAllowed { text: lossy(&self.text) })?;
        self.generation.n_free += 1;
        if let Some(n_others) = self.n_others {
            let Odds { probability, others } = place.odds(logits, token, n_others);
            let text = |id| lossy(vocab.bytes(id));
            let others = others.into_iter().map(|(id, p)| (text(id), p)).collect();
            let choice = Choice { at: self.text.len(), text: text(token), probability, others };
            self.generation.choices.push(choice);
        }
        self.accept(vocab, token)
    }

    /// The finished generation.
    #[must_use]
    pub fn finish(mut self) -> Generation {
        self.end_value();
        self.generation.text = lossy(&self.text);
        self.generation.n_rows = self.n_past - self.generation.n_shared;
        self.generation.elapsed = self.start.elapsed();
        self.generation
    }

    fn accept(&mut self, vocab: &Vocab, token: TokenId) -> Result<(), DecodeError> {
        let bytes = vocab.bytes(token);
        if !self.gate.accept(token) || !self.recognizer.accepts(bytes) {
            return Err(DecodeError::Disagreement { text: lossy(&self.text), piece: lossy(bytes) });
        }
        self.pending.push(token);
        self.generation.tokens.push(token);
        // Byte by byte, since a value can begin or end anywhere in a token.
        for &byte in bytes {
            self.recognizer.push(byte);
            self.text.push(byte);
            if !self.recognizer.in_argument() {
                self.end_value();
            } else if self.value.is_none() {
                self.value = Some((0, self.text.len()));
            }
        }
        match &mut self.value {
            Some((n, start)) if *start < self.text.len() => *n += 1,
            _ => {}
        }
        Ok(())
    }

    /// Whether the value that the text is in is long enough and stands at a place to close it.
    fn over_limit(&self) -> bool {
        let Some((n, _)) = self.value else { return false };
        let limit = self.limits.max_value_tokens;
        if n < limit || n >= limit.saturating_add(CLOSING_SLACK) {
            return n >= limit;
        }
        let closing = self.recognizer.closing();
        // After a backslash the first of two quotes would be the escaped one.
        closing.iter().all(|b| b"\"]}".contains(b)) && !closing.starts_with(b"\"\"")
    }

    fn end_value(&mut self) {
        if let Some((_, start)) = self.value.take() {
            let parameter = key_before(&self.text[..start]);
            self.generation.values.push(ValueSpan { parameter, end: self.text.len() });
        }
    }

    fn cut(&self) -> Cut {
        let start = self.value.map_or(0, |(_, start)| start);
        Cut { parameter: key_before(&self.text[..start]), limit: self.limits.max_value_tokens }
    }

    /// Whether the model's tokenizer would divide the last chosen token and these after it otherwise.
    fn is_divided<B: Backend<Gate = G>>(&self, backend: &B, forced: &[TokenId]) -> bool {
        let is_after_choice = self.generation.n_free > 0 && !forced.is_empty();
        let Some(chosen) = self.pending.last().filter(|_| is_after_choice) else { return false };
        let tokens: Vec<TokenId> = std::iter::once(chosen).chain(forced).copied().collect();
        let bytes: Vec<u8> =
            tokens.iter().flat_map(|token| backend.vocab().bytes(*token)).copied().collect();
        plain_tokens(backend, &bytes).is_some_and(|canonical| canonical != tokens)
    }

    fn count_forced(&mut self, n: usize) {
        let counter = if self.generation.n_free == 0 {
            &mut self.generation.n_prefilled
        } else {
            &mut self.generation.n_forced
        };
        *counter += count(n);
    }
}

/// Tokens of text that must stay text: where the model's tokenizer makes a marker of it, the
/// marker is split after its first character. `None` where no tokens give the bytes back.
pub fn plain_tokens<B: Backend>(backend: &B, bytes: &[u8]) -> Option<Vec<TokenId>> {
    let vocab = backend.vocab();
    let Ok(text) = std::str::from_utf8(bytes) else { return vocab.longest_match(bytes) };
    let tokens = backend.tokenize(text, false);
    let is_plain = tokens.iter().all(|token| vocab.kind(*token) == TokenKind::Text);
    let given_back: usize = tokens.iter().map(|token| vocab.bytes(*token).len()).sum();
    let is_same = given_back == bytes.len()
        && tokens.iter().flat_map(|token| vocab.bytes(*token)).eq(bytes.iter());
    if is_plain && is_same { Some(tokens) } else { vocab.longest_match(bytes) }
}

/// How many of the last forced tokens are left to the model, because a longer token that begins
/// like them could reach into the free text after.
fn held_back(vocab: &Vocab, after: &Recognizer, tokens: &[TokenId]) -> usize {
    let mut suffix = Vec::new();
    let mut n_held_back = 0;
    for (n, token) in (1..=HELD_BACK_LIMIT).zip(tokens.iter().rev()) {
        suffix.splice(0..0, vocab.bytes(*token).iter().copied());
        let longer = vocab.with_prefix(&suffix, 0..vocab.sorted().len());
        let crosses = vocab.sorted()[longer].iter().any(|id| {
            let rest = &vocab.bytes(*id)[suffix.len()..];
            !rest.is_empty() && after.accepts(rest)
        });
        if crosses {
            n_held_back = n;
        }
    }
    n_held_back
}

/// The key that a JSON text ends with, its colon behind it.
fn key_before(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let json = text.trim_end_matches([':', ' ']);
    let is_escaped =
        |at: usize| json[..at].bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
    let quotes = json.rmatch_indices('"').map(|(at, _)| at).filter(|at| !is_escaped(*at));
    quotes.skip(1).find_map(|at| serde_json::from_str(&json[at..]).ok()).unwrap_or_default()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
