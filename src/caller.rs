//! Function sets and requests in, validated calls out: the path that the binary and the typed library
//! entry share.
//!
//! # What a call costs
//!
//! A model evaluates rows, one for each token of prompt and call. On a CPU a step of one row takes as
//! long as reading the weights, and each further row a fraction of that, so:
//!
//! - the rows of all requests in flight share their steps ([`CallOptions::n_parallel`]);
//! - the rows of what all prompts over a set begin with are evaluated once ([`crate::engine::prefix`]);
//! - text that the grammar forces is fed with the next step, not chosen token by token, and after the last
//!   choice not at all ([`crate::engine::decode`]);
//! - a smaller quantization makes the steps of few rows cheaper, those of many hardly.
//!
//! **Invariant:** a call that is returned was accepted by the grammar, parsed by serde and validated
//! against its definition.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::definitions::FunctionDef;
use crate::engine::batch::{Batch, Finished, Naming};
use crate::engine::decode::{
    Between, DecodeError, Generation, Limits, Opening, Sequence, Start, Turns, Watch,
};
use crate::engine::gate::{Random, Sampling, share};
use crate::engine::prefix::{self, N_PREFIXES, Prefixes, Store};
use crate::engine::{Backend, BackendError, Row, SequenceId, TokenId, count};
use crate::grammar::lower::{self, Options, Unsupported};
use crate::grammar::recognize::Recognizer;
use crate::grammar::{GrammarError, print};
use crate::grounding;
use crate::prompt::{CallCount, FunctionChoice, OptionalArguments, PromptError, PromptWriter};
use crate::schema::Undeclared;
use crate::validate::{FunctionCall, ValidateError, Validator};

/// The first of the sequences that calls are written in.
pub const FIRST_CALL: SequenceId = SequenceId(N_BESIDE);

/// Sequences that a caller needs beside those in flight.
pub const N_BESIDE: u32 = N_PREFIXES + 1;

/// Where a request is read that asks nothing.
const NEUTRAL: SequenceId = SequenceId(N_PREFIXES);

/// Cells that a call is taken to need beside its prompt when it is begun.
const ROOM_FOR_A_CALL: u32 = 96;

/// Functions that are offered together, compiled.
#[derive(Debug)]
pub struct FunctionSet {
    functions: Vec<FunctionDef>,
    gbnf: Rc<str>,
    start: Recognizer,
    validator: Validator,
    /// Whether more than one request comes over it.
    is_shared: Cell<bool>,
    /// The logarithms of the probabilities of names, by their tokens, where nothing is asked.
    neutral: RefCell<FxHashMap<Vec<TokenId>, f64>>,
    /// Tokens that every prompt over this set begins with, once they are known.
    prefix: OnceCell<Vec<TokenId>>,
    /// How many calls over it answer a request, once that is known.
    turns: OnceCell<Rc<Turns>>,
}

impl FunctionSet {
    /// Compiles the definitions into a grammar, its recognizer and a validator.
    ///
    /// A function whose schema cannot be expressed stays a choice; a request that chooses it fails. With
    /// `lenient` what cannot be expressed is left to the validator instead.
    ///
    /// Keys that the definitions do not declare are left out: a model would only make them up, and the grammar
    /// is smaller without them.
    ///
    /// # Errors
    /// [`GrammarError`] where there is no function, or the set is beyond a limit.
    pub fn compile(functions: Vec<FunctionDef>, lenient: bool) -> Result<Self, GrammarError> {
        let unsupported = if lenient { Unsupported::Widen } else { Unsupported::Keep };
        let options = Options { unsupported, undeclared: Undeclared::Omit };
        let calls = lower::calls(&functions, options)?;
        let start = Recognizer::new(&calls.grammar)?;
        let gbnf = print::gbnf(&calls.grammar).into();
        let validator = Validator::new(&functions, options);
        let (is_shared, prefix, turns) = (Cell::new(false), OnceCell::new(), OnceCell::new());
        let neutral = RefCell::default();
        Ok(Self { functions, gbnf, start, validator, is_shared, neutral, prefix, turns })
    }

    /// The definitions, in their order.
    #[must_use]
    pub fn functions(&self) -> &[FunctionDef] {
        &self.functions
    }

    /// Says that more than one request comes over this set, so that what their prompts begin with is
    /// evaluated once for all of them.
    pub fn share(&self) {
        self.is_shared.set(true);
    }
}

/// How calls are generated.
#[derive(Debug, Clone, Copy)]
pub struct CallOptions {
    /// Where a value is cut.
    pub limits: Limits,
    /// How free tokens are chosen.
    pub sampling: Sampling,
    /// Start of every random stream.
    pub seed: u64,
    /// Most requests in flight.
    pub n_parallel: NonZeroUsize,
    /// Whether text that the grammar forces is written without asking the model. Asking costs a step for each
    /// token, and lets one see what forcing changes.
    pub forcing: bool,
    /// Whether the model's choices are weighed against all that the grammar allowed, and how many others are
    /// told of each ([`Generation::choices`]).
    pub n_others: Option<usize>,
}

/// A request that has been answered.
#[derive(Debug)]
pub struct Answer {
    /// The validated calls in order: one, but where the configuration allows several, or none.
    pub calls: Vec<FunctionCall>,
    /// Optional arguments that the model gave and that were left out, by name.
    pub left_out: Vec<(String, Value)>,
    /// How it was generated.
    pub generation: Generation,
}

/// Takes those strings and numbers out of a call that do not stand in the request and without which it is valid too.
fn leave_out(
    call: &mut FunctionCall,
    request: &str,
    validator: &Validator,
) -> Vec<(String, Value)> {
    let Value::Object(arguments) = &call.parameters else { return Vec::new() };
    let is_made_up = |value: &Value| grounding::stands_in(request, value) == Some(false);
    let made_up = arguments.iter().filter(|(_, value)| is_made_up(value));
    let made_up: Vec<_> = made_up.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut left_out = Vec::new();
    for (name, value) in made_up {
        let mut arguments = call.parameters.clone();
        if let Value::Object(arguments) = &mut arguments {
            arguments.shift_remove(&name);
        }
        let text = json!({"name": call.name.as_str(), "arguments": arguments}).to_string();
        if let Ok(shorter) = validator.validate(&text) {
            *call = shorter;
            left_out.push((name, value));
        }
    }
    left_out
}

/// Why a request has no call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The prompt could not be written.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// Decoding stopped.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The generated text is no valid call.
    #[error("{}", with_causes(&**error))]
    Validate {
        /// What is wrong with it. No source: it is the message.
        error: Box<ValidateError>,
        /// How it was generated.
        generation: Box<Generation>,
    },
}

/// An error and what caused it, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl CallError {
    /// Whether the user asked to stop.
    #[must_use]
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Decode(DecodeError::Interrupted))
    }

    /// How the text was generated, where there is one.
    #[must_use]
    pub fn generation(&self) -> Option<&Generation> {
        match self {
            Self::Validate { generation, .. } => Some(generation),
            _ => None,
        }
    }
}

/// Watches nothing and never stops.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn is_interrupted(&self) -> bool {
        false
    }
    fn on_text(&mut self, _: u64, _: &[u8]) {}
}

/// A request to be answered.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its place among the requests, for the random stream and the answer.
    pub index: u64,
    /// The functions to choose from.
    pub set: Rc<FunctionSet>,
    /// What is asked.
    pub text: String,
}

/// A model that answers requests.
#[derive(Debug)]
pub struct Caller<B> {
    backend: B,
    writer: PromptWriter,
    options: CallOptions,
    prefixes: Prefixes,
    n_neutral_rows: u64,
}

impl<B: Backend> Caller<B> {
    /// A caller over a loaded model, which has sequences for all requests in flight and [`N_BESIDE`] more;
    /// `store` keeps prefixes between runs.
    #[must_use]
    pub fn new(
        backend: B,
        writer: PromptWriter,
        options: CallOptions,
        store: Option<Box<dyn Store>>,
    ) -> Self {
        Self { backend, writer, options, prefixes: Prefixes::with(store), n_neutral_rows: 0 }
    }

    /// The model.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The model alone; nothing of the requests is in its cache.
    ///
    /// # Errors
    /// [`CallError`] of the backend.
    pub fn into_backend(mut self) -> Result<B, CallError> {
        self.prefixes.forget(&mut self.backend)?;
        Ok(self.backend)
    }

    /// Rows that were evaluated for what prompts have in common.
    #[must_use]
    pub fn n_prefix_rows(&self) -> u64 {
        self.prefixes.n_rows()
    }

    /// Rows that were evaluated for names where nothing is asked.
    #[must_use]
    pub fn n_neutral_rows(&self) -> u64 {
        self.n_neutral_rows
    }

    /// Answers one request.
    ///
    /// # Errors
    /// [`CallError`]; the caller can be used further.
    pub fn call(&mut self, request: Request, watch: &mut dyn Watch) -> Result<Answer, CallError> {
        let mut answer = None;
        self.call_all(&mut std::iter::once(request), watch, &mut |_, one| answer = Some(one))?;
        answer.unwrap_or(Err(DecodeError::Interrupted.into()))
    }

    /// Answers requests, several at the same time, and hands each answer over as it is there: in any order.
    ///
    /// # Errors
    /// An interrupt; what was in flight has no answer then. Whatever is wrong with one request is its answer.
    pub fn call_all<'a>(
        &mut self,
        requests: &'a mut dyn Iterator<Item = Request>,
        watch: &'a mut dyn Watch,
        on_answer: &'a mut dyn FnMut(u64, Result<Answer, CallError>),
    ) -> Result<(), CallError> {
        let n = self.options.n_parallel.get();
        let mut run = Run {
            batch: Batch::new(FIRST_CALL, n),
            requests: requests.fuse(),
            waiting: None,
            in_flight: Vec::new(),
            alone: VecDeque::new(),
            watch,
            on_answer,
        };
        let result = self.work(&mut run);
        for (_, id) in run.batch.give_up() {
            self.end(id)?;
        }
        result
    }

    fn work(&mut self, run: &mut Run<'_, B>) -> Result<(), CallError> {
        loop {
            self.fill(run)?;
            if run.batch.is_empty() {
                return Ok(());
            }
            while let Some(naming) = run.batch.naming() {
                match self.neutral(run, &naming) {
                    Ok(neutral) => {
                        let (backend, watch) = (&mut self.backend, &mut *run.watch);
                        let taken = run.batch.take_name(backend, naming.id, &neutral, watch);
                        if let Some(finished) = taken {
                            self.answer(run, finished)?;
                        }
                    }
                    Err(error) => self.broken(run, error.into())?,
                }
            }
            match run.batch.step(&mut self.backend, self.prefixes.n_cells(), run.watch) {
                Ok(finished) => {
                    for one in finished {
                        self.answer(run, one)?;
                    }
                }
                Err(DecodeError::Interrupted) => return Err(DecodeError::Interrupted.into()),
                Err(error) => self.broken(run, error)?,
            }
        }
    }

    /// The logarithm of each name's probability where nothing is asked; none where it is not to be had.
    fn neutral(&mut self, run: &Run<'_, B>, naming: &Naming) -> Result<Vec<f64>, BackendError> {
        let request = run.in_flight.iter().find(|request| request.index == naming.index);
        let (Some(request), true) = (request, naming.is_first) else { return Ok(Vec::new()) };
        let set = &request.set;
        let is_known = |name: &Vec<TokenId>| set.neutral.borrow().contains_key(name);
        if !naming.names.iter().all(is_known) {
            let tokens = |text| self.tokens(set, text);
            let (Ok(prompt), Ok(mut neutral)) = (tokens(&request.text), tokens("")) else {
                tracing::debug!(index = request.index, "no prompt for an empty request");
                return Ok(Vec::new());
            };
            let turns = self.turns(set);
            neutral.extend(turns.none.iter().flat_map(|opening| &opening.opener));
            let n_common = prefix::common(&prompt, &neutral).len().min(neutral.len() - 1);
            let n_longest = naming.names.iter().map(Vec::len).max().unwrap_or_default();
            let n_cells = self.prefixes.n_cells() + run.batch.n_cells();
            self.backend.reserve(n_cells + count(neutral.len() - n_common + n_longest))?;
            self.backend.copy(naming.id, NEUTRAL, count(n_common))?;
            let mut n_fed = n_common;
            for name in naming.names.iter().filter(|name| !is_known(name)) {
                let log_p = self.log_p(&neutral, n_fed, name)?;
                set.neutral.borrow_mut().insert(name.clone(), log_p);
                n_fed = neutral.len() - 1;
                self.backend.truncate(NEUTRAL, count(n_fed))?;
            }
            self.backend.remove(NEUTRAL)?;
        }
        let known = set.neutral.borrow();
        Ok(naming.names.iter().filter_map(|name| known.get(name)).copied().collect())
    }

    /// The logarithm of the probability of `name` after a prompt, of which `n_fed` tokens are evaluated.
    fn log_p(
        &mut self,
        prompt: &[TokenId],
        n_fed: usize,
        name: &[TokenId],
    ) -> Result<f64, BackendError> {
        let tokens = prompt.iter().chain(name.iter().rev().skip(1).rev()).copied();
        let rows: Vec<Row> = (0..)
            .zip(tokens)
            .skip(n_fed)
            .map(|(position, token)| Row {
                token,
                position,
                sequence: NEUTRAL,
                logits: position + 1 >= count(prompt.len()),
            })
            .collect();
        self.n_neutral_rows += rows.len() as u64;
        let mut log_p = 0.0;
        let mut names = name.iter();
        for rows in rows.chunks(self.backend.max_rows()) {
            self.backend.decode(rows)?;
            for at in (0..rows.len()).filter(|at| rows[*at].logits) {
                let share = names.next().map_or(1.0, |id| share(self.backend.logits(at), *id));
                log_p += share.max(f64::MIN_POSITIVE).ln();
            }
        }
        Ok(log_p)
    }

    /// Begins requests as long as there is room.
    fn fill(&mut self, run: &mut Run<'_, B>) -> Result<(), CallError> {
        while let Some(id) = run.batch.free() {
            let is_alone = !run.alone.is_empty();
            if is_alone && !run.batch.is_empty() {
                break;
            }
            let waiting = if is_alone { None } else { run.waiting.take() };
            let (request, prompt) = if let Some(known) = waiting {
                known
            } else {
                let next = run.alone.pop_front().or_else(|| run.requests.next());
                let Some(request) = next else { break };
                match self.tokens(&request.set, &request.text) {
                    Ok(prompt) => (request, prompt),
                    Err(error) => {
                        (run.on_answer)(request.index, Err(error));
                        continue;
                    }
                }
            };
            let n_cells = self.prefixes.n_cells() + run.batch.n_cells();
            let needed = count(prompt.len()) + ROOM_FOR_A_CALL;
            if !run.batch.is_empty() && n_cells + needed > self.backend.max_cells() {
                run.waiting = Some((request, prompt));
                break;
            }
            match self.begin(id, &request, &prompt, run) {
                Ok(sequence) => {
                    let (backend, watch) = (&mut self.backend, &mut *run.watch);
                    let finished = run.batch.start(backend, request.index, sequence, watch);
                    run.in_flight.push(request);
                    if let Some(finished) = finished {
                        self.answer(run, finished)?;
                    }
                }
                Err(error) if error.is_interrupt() => return Err(error),
                Err(error) => {
                    self.end(id)?;
                    (run.on_answer)(request.index, Err(error));
                }
            }
            if is_alone {
                break;
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        id: SequenceId,
        request: &Request,
        prompt: &[TokenId],
        run: &Run<'_, B>,
    ) -> Result<Sequence<B::Gate>, CallError> {
        let set = &request.set;
        let gate = self.backend.gate(&set.gbnf).map_err(DecodeError::from)?;
        let is_shared = set.is_shared.get();
        // Finding the prefix renders two more prompts, which is for nothing where none is kept.
        if is_shared || self.prefixes.has_store() {
            let prefix = self.prefix(set)?;
            // A prompt that does not begin so has the date in it, or other marks.
            if prompt.starts_with(prefix)
                && prefix.len() < prompt.len()
                && (is_shared || self.prefixes.note(prefix))
            {
                let with = (run.batch.n_cells(), is_shared);
                let interrupted = || run.watch.is_interrupted();
                self.prefixes.hold(&mut self.backend, prefix, with, &interrupted)?;
            }
        }
        let n_shared = self.prefixes.lend(&mut self.backend, id, prompt)?;
        tracing::debug!(index = request.index, n_prompt = prompt.len(), n_shared, "prompt");
        let by_name = self.writer.config().function_choice == FunctionChoice::ByName
            && self.options.sampling == Sampling::Greedy
            && self.backend.copies_part();
        Ok(Sequence::new(Start {
            id,
            prompt,
            n_shared,
            recognizer: set.start.clone(),
            gate,
            sampling: self.options.sampling,
            random: Random::new(self.options.seed, request.index),
            limits: self.options.limits,
            forcing: self.options.forcing,
            turns: self.turns(set),
            request: &request.text,
            n_others: self.options.n_others,
            rivals: by_name.then(|| Rc::clone(&set.gbnf)),
        }))
    }

    fn answer(&mut self, run: &mut Run<'_, B>, finished: Finished) -> Result<(), CallError> {
        self.end(finished.id)?;
        let Some(at) = run.in_flight.iter().position(|one| one.index == finished.index) else {
            return Ok(());
        };
        let request = run.in_flight.swap_remove(at);
        let answer = finished.result.map_err(CallError::from).and_then(|generation| {
            let calls = generation.text.lines().map(|text| request.set.validator.validate(text));
            match calls.collect::<Result<Vec<_>, _>>() {
                Ok(mut calls) => {
                    let mut left_out = Vec::new();
                    if self.writer.config().optional_arguments == OptionalArguments::Grounded {
                        for call in &mut calls {
                            let validator = &request.set.validator;
                            left_out.extend(leave_out(call, &request.text, validator));
                        }
                    }
                    Ok(Answer { calls, left_out, generation })
                }
                Err(error) => {
                    let (error, generation) = (Box::new(error), Box::new(generation));
                    Err(CallError::Validate { error, generation })
                }
            }
        });
        (run.on_answer)(request.index, answer);
        Ok(())
    }

    /// A step failed: what was in flight is begun anew, one request at a time, so that only the one that
    /// cannot be decoded fails.
    fn broken(&mut self, run: &mut Run<'_, B>, error: DecodeError) -> Result<(), CallError> {
        let given_up = run.batch.give_up();
        for (_, id) in &given_up {
            self.end(*id)?;
        }
        self.prefixes.forget(&mut self.backend)?;
        let mut requests = std::mem::take(&mut run.in_flight);
        requests.sort_by_key(|request| request.index);
        if let [request] = requests.as_slice() {
            (run.on_answer)(request.index, Err(error.into()));
            return Ok(());
        }
        tracing::debug!(%error, n = requests.len(), "a step failed; its requests begin anew");
        run.alone.extend(requests);
        Ok(())
    }

    fn end(&mut self, id: SequenceId) -> Result<(), CallError> {
        self.prefixes.give_back(id);
        self.backend.remove(id).map_err(|error| DecodeError::from(error).into())
    }

    /// The whole text that the model reads for a request.
    ///
    /// # Errors
    /// [`CallError::Prompt`].
    pub fn prompt(&self, set: &FunctionSet, request: &str) -> Result<String, CallError> {
        Ok(self.writer.render(&set.functions, request)?.pieces.concat())
    }

    /// What every prompt over the set begins with.
    fn prefix<'s>(&self, set: &'s FunctionSet) -> Result<&'s [TokenId], CallError> {
        if set.prefix.get().is_none() {
            let one = self.tokens(set, "1")?;
            let other = self.tokens(set, "a")?;
            let _ = set.prefix.set(prefix::common(&one, &other).to_vec());
        }
        Ok(set.prefix.get().map_or(&[], Vec::as_slice))
    }

    /// How many calls over the set answer a request, and what stands around them.
    fn turns(&self, set: &FunctionSet) -> Rc<Turns> {
        let turns = || {
            let (frame, config) = (self.writer.frame(), self.writer.config());
            let tokens = |text: &str| self.backend.tokenize(text, true);
            let none = config.no_call.enabled.then(|| Opening {
                opener: tokens(frame.opener),
                none: tokens(&config.no_call.answer).first().copied(),
                threshold: config.no_call.threshold,
            });
            let many = || {
                let (next, closer) = (tokens(frame.between), tokens(frame.closer));
                let n = prefix::common(&next, &closer).len();
                let end = closer.get(n).filter(|_| n < next.len())?;
                Some(Between {
                    closer: closer[..n].to_vec(),
                    next: next[n..].to_vec(),
                    end: *end,
                    max_calls: config.many.max_calls,
                    recognizer: set.start.clone(),
                    gbnf: Rc::clone(&set.gbnf),
                })
            };
            let many = if config.calls == CallCount::Many { many() } else { None };
            Rc::new(Turns { none, many })
        };
        Rc::clone(set.turns.get_or_init(turns))
    }

    /// Tokens of the whole prompt for a request.
    fn tokens(&self, set: &FunctionSet, request: &str) -> Result<Vec<TokenId>, CallError> {
        let prompt = self.writer.render(&set.functions, request)?;
        let mut tokens: Vec<TokenId> =
            prompt.pieces.iter().flat_map(|piece| self.backend.tokenize(piece, true)).collect();
        let bos = self.backend.vocab().bos();
        tokens.splice(0..0, bos.filter(|bos| tokens.first() != Some(bos)));
        Ok(tokens)
    }
}

/// Requests on their way.
struct Run<'a, B: Backend> {
    batch: Batch<B::Gate>,
    requests: std::iter::Fuse<&'a mut dyn Iterator<Item = Request>>,
    /// One that there was no room for, with its prompt.
    waiting: Option<(Request, Vec<TokenId>)>,
    in_flight: Vec<Request>,
    /// Those that are begun anew, with nothing beside them.
    alone: VecDeque<Request>,
    watch: &'a mut dyn Watch,
    on_answer: &'a mut dyn FnMut(u64, Result<Answer, CallError>),
}
