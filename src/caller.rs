//! A function set and a request in, a validated call out: the path that the binary and the typed
//! library entry share.
//!
//! **Invariant:** a call that is returned was accepted by the grammar, parsed by serde and validated
//! against its definition.

use crate::definitions::FunctionDef;
use crate::engine::decode::{self, DecodeError, Generation, Limits, Sequence, Start, Watch};
use crate::engine::gate::{Random, Sampling};
use crate::engine::prefix::{self, Prefix};
use crate::engine::{Backend, SequenceId, TokenId};
use crate::grammar::lower::{self, Options, Unsupported};
use crate::grammar::recognize::Recognizer;
use crate::grammar::{GrammarError, print};
use crate::prompt::{PromptError, PromptWriter};
use crate::schema::Undeclared;
use crate::validate::{FunctionCall, ValidateError, Validator};

/// The sequence that a call is written in.
const CALL: SequenceId = SequenceId(1);

/// Functions that are offered together, compiled.
#[derive(Debug)]
pub struct FunctionSet {
    functions: Vec<FunctionDef>,
    gbnf: String,
    start: Recognizer,
    validator: Validator,
    /// Tokens that every prompt over this set begins with, once they are known.
    prefix: Option<Vec<TokenId>>,
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
        let gbnf = print::gbnf(&calls.grammar);
        let validator = Validator::new(&functions, options);
        Ok(Self { functions, gbnf, start, validator, prefix: None })
    }

    /// The definitions, in their order.
    #[must_use]
    pub fn functions(&self) -> &[FunctionDef] {
        &self.functions
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
}

/// A request that has been answered.
#[derive(Debug)]
pub struct Answer {
    /// The validated call.
    pub call: FunctionCall,
    /// How it was generated.
    pub generation: Generation,
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
    fn on_text(&mut self, _: &[u8]) {}
}

/// A model that answers requests.
#[derive(Debug)]
pub struct Caller<B> {
    backend: B,
    writer: PromptWriter,
    options: CallOptions,
    prefix: Prefix,
}

impl<B: Backend> Caller<B> {
    /// A caller over a loaded model.
    #[must_use]
    pub fn new(backend: B, writer: PromptWriter, options: CallOptions) -> Self {
        Self { backend, writer, options, prefix: Prefix::default() }
    }

    /// Keeps in the cache what all prompts over `set` begin with, and makes room for `longest`, the
    /// longest request expected. Worth it from the second request on.
    ///
    /// # Errors
    /// [`CallError`] of the prompt, the backend, or an interrupt.
    pub fn share(
        &mut self,
        set: &mut FunctionSet,
        longest: &str,
        watch: &mut dyn Watch,
    ) -> Result<(), CallError> {
        if set.prefix.is_none() {
            let one = self.tokens(set, "1")?;
            let other = self.tokens(set, "a")?;
            set.prefix = Some(prefix::common(&one, &other).to_vec());
        }
        let tokens = set.prefix.as_deref().unwrap_or_default();
        // The last call is read; its cells are room.
        self.backend.remove(CALL).map_err(DecodeError::from)?;
        let n_cells = self.tokens(set, longest)?.len() + ROOM_FOR_A_CALL;
        // A request beyond the model's context fails by itself, later.
        let _ = self.backend.reserve(u32::try_from(n_cells).unwrap_or(u32::MAX));
        self.prefix.hold(&mut self.backend, tokens, &|| watch.is_interrupted())?;
        Ok(())
    }

    /// Answers one request; `index` is its place in the batch, for the random stream.
    ///
    /// # Errors
    /// [`CallError`]; the caller can be used further.
    pub fn call(
        &mut self,
        set: &FunctionSet,
        request: &str,
        index: u64,
        watch: &mut dyn Watch,
    ) -> Result<Answer, CallError> {
        let prompt = self.tokens(set, request)?;
        let n_shared = self.prefix.lend(&mut self.backend, CALL, &prompt)?;
        tracing::debug!(n_prompt = prompt.len(), n_shared, "prompt");
        let sequence = Sequence::new(Start {
            id: CALL,
            prompt: &prompt,
            n_shared,
            recognizer: set.start.clone(),
            gate: self.backend.gate(&set.gbnf).map_err(DecodeError::from)?,
            sampling: self.options.sampling,
            random: Random::new(self.options.seed, index),
            limits: self.options.limits,
        });
        let n_other_cells = u32::try_from(self.prefix.len()).unwrap_or(u32::MAX) - n_shared;
        let generation = decode::run(&mut self.backend, sequence, n_other_cells, watch)?;
        match set.validator.validate(&generation.text) {
            Ok(call) => Ok(Answer { call, generation }),
            Err(error) => Err(CallError::Validate {
                error: Box::new(error),
                generation: Box::new(generation),
            }),
        }
    }

    /// Tokens of the whole prompt for a request.
    fn tokens(&self, set: &FunctionSet, request: &str) -> Result<Vec<TokenId>, CallError> {
        let prompt = self.writer.render(&set.functions, request)?;
        let mut tokens: Vec<TokenId> =
            prompt.pieces.iter().flat_map(|piece| self.backend.tokenize(piece, true)).collect();
        if let Some(bos) = self.backend.vocab().bos()
            && tokens.first() != Some(&bos)
        {
            tokens.insert(0, bos);
        }
        Ok(tokens)
    }
}

/// Cells kept free for a call when room is made ahead.
const ROOM_FOR_A_CALL: usize = 192;
