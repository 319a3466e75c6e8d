//! Prompts and grammars in, generated calls and their counts out.
//!
//! [`decode`] moves one sequence forward: the grammar's forced text first, then one free token from
//! the model's logits, chosen by [`gate`]. [`batch`] does it for several at the same time, and [`prefix`]
//! keeps what their prompts begin with. What the model is, is hidden behind [`Backend`]: [`llama`] is the
//! real one, tests script their own.
//!
//! **Invariant:** every token that is kept was taken by the gate of the backend (llama.cpp's grammar
//! sampler) *and* by our recognizer; where they disagree, the token is refused.
//! **Invariant:** no token of a kind other than [`TokenKind::Text`] is ever part of a call.

pub mod vocab;
pub mod gate;
pub mod decode;
pub mod batch;
pub mod prefix;
#[cfg(feature = "engine")]
pub mod llama;

pub use batch::Batch;
pub use decode::{Cut, DecodeError, Generation, Limits, Sequence};
pub use gate::Sampling;
pub use vocab::{TokenId, TokenKind, Vocab};

/// Index of a run in the KV cache (llama.cpp's `seq_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceId(pub u32);

/// One row of a decode step: a token at a position of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The token to evaluate.
    pub token: TokenId,
    /// Its place in the sequence, from 0.
    pub position: u32,
    /// The sequence that it belongs to.
    pub sequence: SequenceId,
    /// Whether the logits after this token are wanted.
    pub logits: bool,
}

/// Why a backend could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The model file could not be loaded.
    #[error("cannot load the model {path}: {reason}")]
    Load {
        /// The file.
        path: String,
        /// What llama.cpp or the system said.
        reason: String,
    },
    /// A context of this size could not be made.
    #[error("cannot make a context of {n_ctx} tokens: {reason}")]
    Context {
        /// Tokens asked for.
        n_ctx: u32,
        /// What is known of the cause.
        reason: String,
    },
    /// A sequence needs more tokens than the model was trained for.
    #[error("{needed} tokens are needed, and the model's context holds {limit}")]
    ContextFull {
        /// Tokens asked for.
        needed: u32,
        /// The model's `n_ctx_train`.
        limit: u32,
    },
    /// llama.cpp does not take the grammar.
    #[error("llama.cpp does not accept the grammar: {reason}")]
    Grammar {
        /// What is known of the cause.
        reason: String,
    },
    /// A decode step failed.
    #[error("llama.cpp could not decode {n_rows} rows: {reason}")]
    Decode {
        /// Rows of the step.
        n_rows: usize,
        /// What llama.cpp said.
        reason: String,
    },
    /// The KV cache could not be copied or cut.
    #[error("cannot change the KV cache: {reason}")]
    Cache {
        /// What llama.cpp said.
        reason: String,
    },
}

/// A model that can be asked for logits.
///
/// Sequences share one KV cache; `copy` and `remove` move whole spans of it.
pub trait Backend {
    /// The grammar sampler of this backend.
    type Gate: Gate;

    /// The model's tokens.
    fn vocab(&self) -> &Vocab;

    /// Tokens of a text; with `special`, markers such as `<|im_start|>` become their own token.
    fn tokenize(&self, text: &str, special: bool) -> Vec<TokenId>;

    /// A fresh grammar sampler at the start of `gbnf`'s `root`.
    ///
    /// # Errors
    /// [`BackendError::Grammar`] where the text is not taken.
    fn gate(&self, gbnf: &str) -> Result<Self::Gate, BackendError>;

    /// Makes room for `n_cells` tokens in all sequences together; what is there stays.
    ///
    /// # Errors
    /// [`BackendError::Context`] where memory does not allow it.
    fn reserve(&mut self, n_cells: u32) -> Result<(), BackendError>;

    /// Most tokens that one sequence may have.
    fn max_tokens(&self) -> u32;

    /// Cells that fit into the memory set aside for sequences in flight; one sequence alone may take more.
    fn max_cells(&self) -> u32;

    /// Most rows that one [`Backend::decode`] takes.
    fn max_rows(&self) -> usize;

    /// Evaluates the rows in one step.
    ///
    /// # Errors
    /// [`BackendError::Decode`].
    fn decode(&mut self, rows: &[Row]) -> Result<(), BackendError>;

    /// Logits after row `index` of the last step, one for each token of the vocabulary; empty where
    /// that row did not ask for them.
    fn logits(&self, index: usize) -> &[f32];

    /// Makes sequence `to` begin with the first `n` tokens of `from`.
    ///
    /// # Errors
    /// [`BackendError::Cache`].
    fn copy(&mut self, from: SequenceId, to: SequenceId, n: u32) -> Result<(), BackendError>;

    /// Forgets a sequence.
    ///
    /// # Errors
    /// [`BackendError::Cache`].
    fn remove(&mut self, sequence: SequenceId) -> Result<(), BackendError>;

    /// Forgets all of a sequence but its first `n` tokens; only where [`Self::copies_part`].
    ///
    /// # Errors
    /// [`BackendError::Cache`].
    fn truncate(&mut self, sequence: SequenceId, n: u32) -> Result<(), BackendError>;

    /// Whether `copy` may take fewer tokens than the sequence has. Recurrent models and sliding windows
    /// cannot.
    fn copies_part(&self) -> bool;

    /// The state of a sequence, for [`Backend::restore`] of the same model, build and settings.
    ///
    /// # Errors
    /// [`BackendError::Cache`].
    fn save(&mut self, sequence: SequenceId) -> Result<Vec<u8>, BackendError>;

    /// Puts a saved state, of `n` tokens, in the place of a sequence.
    ///
    /// # Errors
    /// [`BackendError::Cache`]; the sequence is empty then.
    fn restore(&mut self, sequence: SequenceId, state: &[u8], n: u32) -> Result<(), BackendError>;
}

/// A grammar sampler at some place in a text.
pub trait Gate {
    /// May `token` come next?
    fn allows(&mut self, token: TokenId) -> bool;

    /// Moves past `token`; false where it is refused, and the gate is then of no further use.
    #[must_use]
    fn accept(&mut self, token: TokenId) -> bool;
}

/// Tokens, rows or sequences as llama.cpp counts them; there are never as many as do not fit.
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
