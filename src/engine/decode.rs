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
//! Where the answer may be none or several calls ([`Turns`]), the model decides so between the template's own
//! texts, outside the grammar; each call then begins at the grammar's start.
//!
//! **Invariant:** `text` is what the recognizer has seen, and the gate has accepted its tokens.
//! **Invariant:** nothing here can abort the process: every token is checked before it is accepted.

mod rivals;

use std::rc::Rc;
use std::time::{Duration, Instant};

use self::rivals::{Beginning, N_OTHERS, Rivals};
use super::gate::{self, Odds, Place, Random, Sampling};
use super::{Backend, BackendError, Gate, Row, SequenceId, TokenId, TokenKind, Vocab, count};
use crate::grammar::recognize::Recognizer;
use crate::grounding;

/// What generations tell and ask while they run.
pub trait Watch {
    /// Should the work stop?
    fn is_interrupted(&self) -> bool;
    /// The call of the prompt of that index so far, JSON that is not complete.
    fn on_text(&mut self, index: u64, text: &[u8]);
}

/// Most forced tokens at the right edge that are left to the model.
const HELD_BACK_LIMIT: usize = 4;

/// What stands before the name in every call.
pub(crate) const OPENING: &str = "{\"name\": ";

/// How much the logarithm of a name's probability, among all tokens, weighs against the odds of there being no
/// call: a model that would rather write another name has no function that fits. On every fourth case of
/// `irrelevance.dev` and `callsmall` the area under the curve is 0.75 with 0, 0.86 with 0.2, 0.87 with 0.3, 0.86
/// with 0.5 and 0.84 with 1.
const NAME_WEIGHT: f64 = 0.3;

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

/// How many calls a sequence may have, and what stands around them.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// Where there may be none.
    pub none: Option<Opening>,
    /// Where there may be several.
    pub many: Option<Between>,
}

/// The decision before the first call.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Fed before the first call; not part of the prompt's tokens.
    pub opener: Vec<TokenId>,
    /// What the answer without a call begins with.
    pub none: Option<TokenId>,
    /// There is no call from this [`Generation::none`] on, 0 to 1.
    pub threshold: f64,
}

/// The decision behind a call.
#[derive(Debug, Clone)]
pub struct Between {
    /// Fed behind a call, whatever comes next.
    pub closer: Vec<TokenId>,
    /// Fed before another call; not empty.
    pub next: Vec<TokenId>,
    /// What the model would write in place of the first of [`Self::next`] where no call follows.
    pub end: TokenId,
    /// Most calls.
    pub max_calls: u32,
    /// The recognizer at the start of a call.
    pub recognizer: Recognizer,
    /// The grammar.
    pub gbnf: Rc<str>,
}

/// What one sequence came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    /// The whole call, JSON; of several one a line, of none nothing.
    pub text: String,
    /// How likely it is that no function fits, 0 to 1, where there might have been no call: the probability of the
    /// answer that says so, and how unlikely the model held the name that it was left.
    pub none: Option<f64>,
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
    /// Other names that were begun to see whether they are likelier.
    pub n_rivals: u32,
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
    /// How many calls it may have.
    pub turns: Rc<Turns>,
    /// What is asked, which tells whether a further call has anything new to say.
    pub request: &'a str,
    /// How many others each choice is weighed against by name; `None` where choices are not weighed.
    pub n_others: Option<usize>,
    /// The grammar, where the likeliest whole name is sought. The backend must be able to
    /// [forget a sequence's end](Backend::copies_part).
    pub rivals: Option<Rc<str>>,
}

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Rows wait to be evaluated, then a token is to be chosen.
    Rows,
    /// Its cells from that many on are to be forgotten, then it is to be advanced again.
    Back(u32),
    /// One of [`Sequence::names`] is to be taken by [`Sequence::take_name`].
    Names,
    /// The text is complete.
    Done,
}

/// What a sequence waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Whether there is a call.
    Opening,
    /// Which of several names the call has.
    Naming,
    /// The next token of a call.
    Call,
    /// Whether there is another call.
    Between,
    /// Another call is to be begun.
    Next,
    /// Nothing more.
    Over,
}

/// What a call starts from.
#[derive(Debug, Clone)]
struct CallStart {
    gbnf: Rc<str>,
    recognizer: Recognizer,
    /// Tokens of earlier calls, choices of theirs, and cells before this one.
    n_tokens: usize,
    n_choices: usize,
    n_cells: u32,
}

/// A sequence that is being written.
#[derive(Debug)]
pub struct Sequence<G> {
    turns: Rc<Turns>,
    stage: Stage,
    request: String,
    /// Where each call begins.
    calls: Vec<usize>,
    id: SequenceId,
    recognizer: Recognizer,
    gate: G,
    sampling: Sampling,
    random: Random,
    limits: Limits,
    forcing: bool,
    n_others: Option<usize>,
    /// While the name of a call is sought, with what the call started from.
    rivals: Option<(Rivals, CallStart)>,
    seeks_names: bool,
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
        let stage = if start.turns.none.is_some() { Stage::Opening } else { Stage::Call };
        let n_opener = start.turns.none.as_ref().map_or(0, |opening| opening.opener.len());
        let rivals = start.rivals.map(|gbnf| {
            let recognizer = start.recognizer.clone();
            let n_cells = n_prompt + count(n_opener);
            let call = CallStart { gbnf, recognizer, n_tokens: 0, n_choices: 0, n_cells };
            (Rivals::default(), call)
        });
        Self {
            turns: start.turns,
            stage,
            request: start.request.to_owned(),
            calls: vec![0],
            id: start.id,
            recognizer: start.recognizer,
            gate: start.gate,
            sampling: start.sampling,
            random: start.random,
            limits: start.limits,
            forcing: start.forcing,
            n_others: start.n_others,
            seeks_names: rivals.is_some(),
            rivals,
            text: Vec::new(),
            pending: start.prompt[start.n_shared as usize..].to_vec(),
            n_past: start.n_shared,
            value: None,
            generation: Generation { n_prompt, n_shared: start.n_shared, ..Generation::default() },
            start: Instant::now(),
        }
    }

    /// The call so far, of several the last; it can end inside a character.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text[self.call_start()..]
    }

    fn call_start(&self) -> usize {
        self.calls.last().copied().unwrap_or_default()
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
    /// [`DecodeError::Disagreement`], and [`BackendError::Grammar`] where another call is begun.
    pub fn advance<B: Backend<Gate = G>>(&mut self, backend: &B) -> Result<Progress, DecodeError> {
        match self.stage {
            Stage::Opening | Stage::Between => return Ok(Progress::Rows),
            Stage::Naming => return Ok(Progress::Names),
            Stage::Over => return Ok(Progress::Done),
            Stage::Call => {}
            Stage::Next => self.begin_next(backend)?,
        }
        if let Some(progress) = self.settle_name(backend)? {
            return Ok(progress);
        }
        let mut after = self.recognizer.clone();
        let mut bytes = Vec::new();
        let is_cut = self.over_limit();
        if is_cut {
            self.generation.cuts.push(self.cut());
            bytes = after.close_argument();
        }
        if self.forcing || is_cut {
            let mut forced = after.forced();
            if self.is_naming() || self.rivals.as_ref().is_some_and(|(rivals, _)| rivals.is_open())
            {
                forced.truncate(OPENING.len().saturating_sub(self.text().len()));
            }
            if after.push_all(&forced).is_ok() {
                bytes.extend_from_slice(&forced);
            }
        }
        let tokens = plain_tokens(backend, &bytes);
        let vocab = backend.vocab();
        if after.is_over() {
            self.count_forced(tokens.as_ref().map_or(bytes.len(), Vec::len));
            let turns = Rc::clone(&self.turns);
            return match (&turns.many, tokens) {
                (Some(between), Some(tokens)) if self.may_go_on(between, &bytes) => {
                    for token in tokens {
                        self.accept(vocab, token)?;
                    }
                    self.end_value();
                    self.pending.extend(&between.closer);
                    self.stage = Stage::Between;
                    Ok(Progress::Rows)
                }
                _ => {
                    self.text.extend_from_slice(&bytes);
                    self.recognizer = after;
                    self.drop_needless();
                    Ok(Progress::Done)
                }
            };
        }
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
        let turns = Rc::clone(&self.turns);
        match (self.stage, &turns.none, &turns.many) {
            (Stage::Opening, Some(opening), _) => {
                let none = opening.none.map_or(0.0, |token| gate::share(logits, token));
                self.pending.extend(&opening.opener);
                self.set_none(none, opening.threshold);
                return Ok(());
            }
            (Stage::Between, _, Some(between)) => {
                let logit = |id: TokenId| logits.get(id.index()).copied().unwrap_or(f32::MIN);
                let goes_on = logit(between.next[0]) > logit(between.end);
                self.stage = if goes_on { Stage::Next } else { Stage::Over };
                return Ok(());
            }
            _ => {}
        }
        let in_name = self.rivals.is_some() && self.name().is_none();
        let mut place = Place { recognizer: &self.recognizer, gate: &mut self.gate, vocab };
        let token = place
            .choose(logits, self.sampling, &mut self.random)
            .ok_or_else(|| DecodeError::NothingAllowed { text: lossy(&self.text) })?;
        self.generation.n_free += 1;
        if in_name || self.n_others.is_some() {
            let n_rivals = if in_name { N_OTHERS } else { 0 };
            let odds = place.odds(logits, token, n_rivals.max(self.n_others.unwrap_or(0)));
            self.note(vocab, logits, token, &odds, n_rivals);
        }
        if let (true, Some(opening), Some(none)) =
            (self.is_naming(), &turns.none, self.generation.none)
        {
            self.set_none(none_with(none, gate::share(logits, token)), opening.threshold);
            if self.stage == Stage::Over {
                return Ok(());
            }
        }
        self.accept(vocab, token)
    }

    /// Keeps what is told of a choice, and the `n_rivals` likeliest tokens that a name could have gone on with.
    fn note(
        &mut self,
        vocab: &Vocab,
        logits: &[f32],
        token: TokenId,
        odds: &Odds,
        n_rivals: usize,
    ) {
        let chosen = (token, odds.probability);
        let choice = |(token, probability): (TokenId, f64)| {
            let text = |id| lossy(vocab.bytes(id));
            let all = std::iter::once(&chosen).chain(&odds.others);
            let others = all.filter(|(id, _)| *id != token).map(|(id, p)| (text(*id), *p));
            let others = others.take(self.n_others?).collect();
            Some(Choice { at: self.text.len(), text: text(token), probability, others })
        };
        if let (Some((rivals, call)), true) = (&mut self.rivals, n_rivals > 0) {
            let others = odds.others.iter().take(n_rivals);
            let likely: Vec<_> = others.filter(|(_, p)| Rivals::is_likely(*p)).collect();
            // What all names have in common makes no difference.
            if rivals.is_open() || !likely.is_empty() {
                let share = gate::share(logits, token).max(f64::MIN_POSITIVE).ln();
                let logit = |id: TokenId| f64::from(logits[id.index()]);
                for other in likely {
                    let share = share + logit(other.0) - logit(token);
                    let before = &self.generation.tokens[call.n_tokens..];
                    let choices = &self.generation.choices[call.n_choices..];
                    rivals.keep(Beginning {
                        log_p: rivals.log_p + share,
                        tokens: [before, &[other.0]].concat(),
                        choices: choices.iter().cloned().chain(choice(*other)).collect(),
                        none: self.generation.none.map(|none| none_with(none, share.exp())),
                    });
                }
                rivals.log_p += share;
            }
        }
        self.generation.choices.extend(choice(chosen));
    }

    /// Where the name is whole or hopeless: writes another, or says that one of several is to be taken.
    fn settle_name<B: Backend<Gate = G>>(
        &mut self,
        backend: &B,
    ) -> Result<Option<Progress>, DecodeError> {
        let is_whole = self.name().is_some();
        let is_settled = |(rivals, _): &mut (Rivals, _)| is_whole || rivals.is_hopeless();
        let Some((mut rivals, call)) = self.rivals.take_if(is_settled) else { return Ok(None) };
        if !rivals.is_open() {
            return Ok(None);
        }
        if let Some(name) = self.name() {
            rivals.keep_whole(
                name,
                Beginning {
                    log_p: rivals.log_p,
                    tokens: self.generation.tokens[call.n_tokens..].to_vec(),
                    choices: self.generation.choices[call.n_choices..].to_vec(),
                    none: self.generation.none,
                },
            );
        }
        let progress = if let Some(beginning) = rivals.next() {
            self.generation.n_rivals += 1;
            self.rewrite(backend, &call, beginning)?
        } else {
            self.stage = Stage::Naming;
            Progress::Names
        };
        self.rivals = Some((rivals, call));
        Ok(Some(progress))
    }

    /// The tokens of the names of which one is to be taken, each from the start of its call; whether that is the first
    /// call. None but after [`Progress::Names`].
    #[must_use]
    pub fn names(&self) -> Option<Vec<Vec<TokenId>>> {
        let (rivals, _) = self.rivals.as_ref().filter(|_| self.stage == Stage::Naming)?;
        Some(rivals.names().map(<[TokenId]>::to_vec).collect())
    }

    /// Whether it writes its first call.
    #[must_use]
    pub fn is_in_first_call(&self) -> bool {
        self.calls.len() == 1
    }

    /// Takes one of [`Self::names`], given the logarithm of each one's probability where nothing is asked; none given is
    /// 0.
    ///
    /// # Errors
    /// [`BackendError::Grammar`].
    pub fn take_name<B: Backend<Gate = G>>(
        &mut self,
        backend: &B,
        neutral: &[f64],
    ) -> Result<Progress, DecodeError> {
        self.stage = Stage::Call;
        let Some((rivals, call)) = self.rivals.take() else { return Ok(Progress::Rows) };
        match rivals.best(neutral) {
            Some(best) if best.tokens != self.generation.tokens[call.n_tokens..] => {
                self.rewrite(backend, &call, best)
            }
            _ => self.advance(backend),
        }
    }

    /// Writes a beginning of the call in the place of what is written.
    fn rewrite<B: Backend<Gate = G>>(
        &mut self,
        backend: &B,
        call: &CallStart,
        beginning: Beginning,
    ) -> Result<Progress, DecodeError> {
        let written = self.generation.tokens.split_off(call.n_tokens);
        let n_same = written.iter().zip(&beginning.tokens).take_while(|(a, b)| a == b).count();
        let n_cells = self.n_past.min(call.n_cells + count(n_same));
        self.generation.n_rows += self.n_past - n_cells;
        self.n_past = n_cells;
        self.pending.clear();
        self.text.truncate(self.call_start());
        self.recognizer = call.recognizer.clone();
        self.gate = backend.gate(&call.gbnf)?;
        for token in beginning.tokens {
            self.accept(backend.vocab(), token)?;
        }
        self.pending.drain(..(n_cells - call.n_cells) as usize);
        self.generation.choices.truncate(call.n_choices);
        self.generation.choices.extend(beginning.choices);
        self.generation.none = beginning.none;
        Ok(Progress::Back(n_cells))
    }

    /// The name of the call, as JSON has it between its quotes, once it is whole.
    fn name(&self) -> Option<&[u8]> {
        let rest = self.text().get(OPENING.len() + 1..)?;
        rest.iter().position(|b| *b == b'"').map(|end| &rest[..end])
    }

    /// Whether the text is in the name of the first call, whose every token is weighed where there may be no call.
    fn is_naming(&self) -> bool {
        self.generation.none.is_some() && self.calls.len() == 1 && self.name().is_none()
    }

    fn set_none(&mut self, none: f64, threshold: f64) {
        self.generation.none = Some(none);
        self.stage = if none >= threshold { Stage::Over } else { Stage::Call };
        if self.stage == Stage::Over {
            self.text.clear();
            self.generation.choices.clear();
        }
    }

    /// Whether another call may follow the one that `rest` completes.
    fn may_go_on(&self, between: &Between, rest: &[u8]) -> bool {
        let call = [self.text(), rest].concat();
        count(self.calls.len()) < between.max_calls && self.adds_something(&call)
    }

    /// Whether a call says something of the request that no earlier one says. A model that has run out of calls
    /// goes on with values that it makes up, or with those that it has had.
    fn adds_something(&self, call: &[u8]) -> bool {
        if self.calls.len() == 1 {
            return true;
        }
        let parse = |call: &[u8]| serde_json::from_slice(call).unwrap_or_default();
        let earlier: Vec<serde_json::Value> = self.earlier_calls().map(parse).collect();
        grounding::adds(&self.request, &earlier, &parse(call))
    }

    fn earlier_calls(&self) -> impl Iterator<Item = &[u8]> {
        // Each ends in a line break.
        self.calls.windows(2).map(|ends| &self.text[ends[0]..ends[1] - 1])
    }

    /// Drops the last call where it adds nothing to the earlier ones.
    fn drop_needless(&mut self) {
        if !self.adds_something(self.text()) {
            let end = self.call_start() - 1;
            self.text.truncate(end);
            self.calls.pop();
            self.value = None;
            self.generation.choices.retain(|choice| choice.at < end);
            self.generation.values.retain(|value| value.end <= end);
        }
    }

    fn begin_next<B: Backend<Gate = G>>(&mut self, backend: &B) -> Result<(), DecodeError> {
        let turns = Rc::clone(&self.turns);
        if let Some(between) = &turns.many {
            self.pending.extend(&between.next);
            self.recognizer = between.recognizer.clone();
            self.gate = backend.gate(&between.gbnf)?;
            self.text.push(b'\n');
            self.calls.push(self.text.len());
            let call = CallStart {
                gbnf: Rc::clone(&between.gbnf),
                recognizer: between.recognizer.clone(),
                n_tokens: self.generation.tokens.len(),
                n_choices: self.generation.choices.len(),
                n_cells: self.n_tokens(),
            };
            self.rivals = self.seeks_names.then(|| (Rivals::default(), call));
        }
        self.stage = Stage::Call;
        Ok(())
    }

    /// The finished generation.
    #[must_use]
    pub fn finish(mut self) -> Generation {
        self.end_value();
        self.generation.text = lossy(&self.text);
        self.generation.n_rows += self.n_past - self.generation.n_shared;
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

/// [`Generation::none`], once a token of the name has been chosen that has this probability among all.
fn none_with(none: f64, name: f64) -> f64 {
    let odds = none / (1.0 - none).max(f64::MIN_POSITIVE);
    let odds = odds * name.max(f64::MIN_POSITIVE).powf(-NAME_WEIGHT);
    odds / (1.0 + odds)
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
