//! [`Backend`] over llama.cpp: the only file that names `llama_cpp_2`.
//!
//! **Invariant:** llama.cpp is never given what makes it abort: a batch is at most `n_batch` rows,
//! a sampler that refused a token is not used again, an end token is never accepted.

pub mod quantize;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::OnceLock;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::context::session::LlamaStateSeqFlags;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_2::token_type::LlamaTokenAttr;
use self_cell::self_cell;

use super::vocab::Token;
use super::{Backend, BackendError, Gate, Row, SequenceId, TokenId, TokenKind, Vocab, count};
use crate::prompt::ModelText;

/// Rows of one step: a long prompt is decoded in steps short enough for Ctrl-C to be heard.
const N_BATCH: u32 = 128;

/// Most sequences that llama.cpp keeps apart (`LLAMA_MAX_SEQ`).
pub const MAX_SEQUENCES: u32 = 256;

/// Bytes of the KV cache beyond which no further sequence is begun.
const MAX_CACHE: u64 = 256 << 20;

/// The context grows by whole blocks of this many cells, llama.cpp's own padding.
const CELL_BLOCK: u32 = 256;

struct Context<'model>(LlamaContext<'model>);

self_cell!(
    struct Loaded {
        owner: LlamaModel,
        #[covariant]
        dependent: Context,
    }
);

/// A loaded model with its context.
pub struct Llama {
    loaded: Loaded,
    vocab: Vocab,
    text: ModelText,
    batch: LlamaBatch<'static>,
    n_ctx: u32,
    n_ctx_limit: u32,
    n_threads: i32,
    max_cells: u32,
    copies_part: bool,
    /// Whether a sequence is made of cells; a recurrent state is not.
    has_cells: bool,
    wants_logits: Vec<bool>,
    /// For each sequence, the one whose cells it begins with, and how many.
    lent: Vec<Option<(SequenceId, u32)>>,
}

impl std::fmt::Debug for Llama {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Llama")
            .field("n_ctx", &self.n_ctx)
            .field("n_threads", &self.n_threads)
            .finish_non_exhaustive()
    }
}

/// llama.cpp's own state of the process, made once; its log goes to `tracing` at debug level.
fn backend() -> Result<&'static LlamaBackend, String> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    BACKEND
        .get_or_init(|| {
            let enabled = tracing::enabled!(tracing::Level::DEBUG);
            llama_cpp_2::send_logs_to_tracing(
                llama_cpp_2::LogOptions::default().with_logs_enabled(enabled),
            );
            LlamaBackend::init().map_err(|error| error.to_string())
        })
        .as_ref()
        .map_err(Clone::clone)
}

/// CPU features that llama.cpp was built with, as it prints them itself.
#[must_use]
#[expect(unsafe_code, reason = "llama-cpp-2 has no call for it")]
pub fn system_info() -> String {
    // SAFETY: llama.cpp returns a pointer to a static string that ends in NUL.
    let text = unsafe { std::ffi::CStr::from_ptr(llama_cpp_sys_2::llama_print_system_info()) };
    text.to_string_lossy().into_owned()
}

fn load_model(path: &Path, params: &LlamaModelParams) -> Result<LlamaModel, BackendError> {
    let fail = |reason: String| BackendError::Load { path: path.display().to_string(), reason };
    LlamaModel::load_from_file(backend().map_err(fail)?, path, params).map_err(|error| {
        fail(format!(
            "{error}; it may be damaged or of an architecture that this llama.cpp does not know \
             (-vv shows its log)"
        ))
    })
}

/// A GGUF's tokens and llama.cpp's grammar sampler over them, without its weights: for grammars
/// and prompts that are to be looked at, not answered. A GGUF without tensors will do.
#[derive(Debug)]
pub struct Vocabulary {
    model: LlamaModel,
    vocab: Vocab,
    text: ModelText,
}

impl Vocabulary {
    /// Loads the vocabulary alone.
    ///
    /// # Errors
    /// [`BackendError::Load`] where the file has none that llama.cpp can use.
    pub fn load(path: &Path) -> Result<Self, BackendError> {
        let model = load_model(path, &LlamaModelParams::default().with_vocab_only(true))?;
        let vocab = read_vocab(&model);
        let text = read_text(&model, &vocab);
        Ok(Self { model, vocab, text })
    }

    /// The model's tokens.
    #[must_use]
    pub fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    /// What the prompt writer needs to know of the model.
    #[must_use]
    pub fn text(&self) -> &ModelText {
        &self.text
    }

    /// As [`Backend::tokenize`].
    #[must_use]
    pub fn tokenize(&self, text: &str, special: bool) -> Vec<TokenId> {
        tokenize(&self.model, text, special)
    }

    /// As [`Backend::gate`].
    ///
    /// # Errors
    /// [`BackendError::Grammar`] where the text is not taken.
    pub fn gate(&self, gbnf: &str) -> Result<LlamaGate, BackendError> {
        gate(&self.model, gbnf)
    }
}

fn tokenize(model: &LlamaModel, text: &str, special: bool) -> Vec<TokenId> {
    let tokens = model.vocab().tokenize(text.as_bytes(), false, special);
    tokens.into_iter().filter_map(own_id).collect()
}

fn gate(model: &LlamaModel, gbnf: &str) -> Result<LlamaGate, BackendError> {
    LlamaSampler::grammar(model, gbnf, "root")
        .map(LlamaGate)
        .map_err(|error| BackendError::Grammar { reason: error.to_string() })
}

impl Llama {
    /// Loads a GGUF with a small context, which grows with the work, for so many sequences at the same time;
    /// `n_threads` is at least 1.
    ///
    /// # Errors
    /// [`BackendError::Load`] where the file is no model that llama.cpp can run,
    /// [`BackendError::Context`] where there is no memory for it.
    pub fn load(path: &Path, n_threads: u32, n_sequences: u32) -> Result<Self, BackendError> {
        let n_sequences = n_sequences.clamp(1, MAX_SEQUENCES);
        let model = load_model(path, &LlamaModelParams::default())?;
        let vocab = read_vocab(&model);
        let text = read_text(&model, &vocab);
        let n_threads = i32::try_from(n_threads).unwrap_or(i32::MAX).max(1);
        let n_ctx = CELL_BLOCK;
        let n_ctx_limit = model.n_ctx_train().max(CELL_BLOCK);
        let max_cells = u32::try_from(MAX_CACHE / cell_bytes(&model)).unwrap_or(u32::MAX);
        let has_cells = !model.is_recurrent() && !model.is_hybrid();
        // Of a sliding window the cells before it may be gone, so that a part has too few.
        let copies_part = has_cells && attention(&model, "sliding_window").unwrap_or(0) == 0;
        let loaded =
            Loaded::try_new(model, |model| new_context(model, n_ctx, n_threads, n_sequences))?;
        Ok(Self {
            loaded,
            vocab,
            text,
            batch: LlamaBatch::new(N_BATCH as usize, 1),
            n_ctx,
            n_ctx_limit,
            n_threads,
            max_cells,
            copies_part,
            has_cells,
            wants_logits: Vec::new(),
            lent: vec![None; n_sequences as usize],
        })
    }

    /// What the prompt writer needs to know of the model.
    #[must_use]
    pub fn text(&self) -> &ModelText {
        &self.text
    }

    /// What a saved state depends on beside the model: the build, and how the context is made.
    #[must_use]
    pub fn state_settings(&self) -> String {
        let Self { n_threads, .. } = self;
        let build = option_env!("CALLME_BINDINGS").unwrap_or("unknown");
        format!("{build}; {}; {n_threads} threads; f16, {N_BATCH} rows", system_info())
    }

    /// Waits until all that was asked for is computed.
    pub fn synchronize(&mut self) {
        self.loaded.with_dependent_mut(|_, context| context.0.synchronize());
    }

    /// Cells of the KV cache now.
    #[must_use]
    pub fn n_ctx(&self) -> u32 {
        self.n_ctx
    }
}

fn new_context(
    model: &LlamaModel,
    n_ctx: u32,
    n_threads: i32,
    n_sequences: u32,
) -> Result<Context<'_>, BackendError> {
    let fail = |reason: String| BackendError::Context { n_ctx, reason };
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(n_ctx))
        .with_n_batch(N_BATCH)
        .with_n_ubatch(N_BATCH)
        .with_n_seq_max(n_sequences)
        .with_kv_unified(true)
        // On the CPU it is the slower one: steps over a prefix of 1,000 tokens took 11 % longer with
        // it (the stand-in on Zen 4, in one run).
        .with_flash_attention_policy(llama_cpp_sys_2::LLAMA_FLASH_ATTN_TYPE_DISABLED)
        .with_n_threads(n_threads)
        .with_n_threads_batch(n_threads)
        .with_no_perf(true);
    model
        .new_context(backend().map_err(fail)?, params)
        .map(Context)
        .map_err(|error| fail(format!("{error}; is there enough memory?")))
}

/// Bytes of the KV cache for one token.
fn cell_bytes(model: &LlamaModel) -> u64 {
    let per_head = || u64::try_from(model.n_embd()).unwrap_or(0) / u64::from(model.n_head()).max(1);
    let length = |key| attention(model, key).unwrap_or_else(per_head);
    // Both in 16 bits.
    let both = 2 * (length("key_length") + length("value_length"));
    (u64::from(model.n_layer()) * u64::from(model.n_head_kv()) * both).max(1)
}

/// A number that the file gives of the architecture's attention.
fn attention(model: &LlamaModel, key: &str) -> Option<u64> {
    let architecture = model.meta_val_str("general.architecture").ok()?;
    model.meta_val_str(&format!("{architecture}.attention.{key}")).ok()?.parse().ok()
}

fn read_vocab(model: &LlamaModel) -> Vocab {
    let vocab = model.vocab();
    let tokens = vocab
        .tokens()
        .map(|id| {
            let attr = vocab.attr(id);
            let special = LlamaTokenAttr::Control | LlamaTokenAttr::UserDefined;
            let unusable = LlamaTokenAttr::Unknown | LlamaTokenAttr::Unused;
            let is_end = vocab.is_eog(id);
            let kind = if attr.intersects(special) || is_end {
                TokenKind::Special
            } else if attr.intersects(unusable) {
                TokenKind::Unusable
            } else {
                TokenKind::Text
            };
            Token { bytes: vocab.token_to_piece(id, true, None), kind, is_end }
        })
        .collect();
    let bos = vocab.should_add_bos().then(|| vocab.bos()).and_then(own_id);
    Vocab::new(tokens, bos)
}

fn read_text(model: &LlamaModel, vocab: &Vocab) -> ModelText {
    let text_of = |token: LlamaToken| {
        let bytes = own_id(token).map(|id| vocab.bytes(id).to_vec()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let specials = vocab
        .specials()
        .filter_map(|bytes| std::str::from_utf8(bytes).ok())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect();
    ModelText {
        chat_template: model
            .chat_template(None)
            .ok()
            .and_then(|template| template.to_string().ok())
            .filter(|template| !template.trim().is_empty()),
        bos: text_of(model.vocab().bos()),
        eos: text_of(model.vocab().eos()),
        specials,
    }
}

/// `None` for llama.cpp's "no such token", -1.
fn own_id(token: LlamaToken) -> Option<TokenId> {
    u32::try_from(token.0).ok().map(TokenId)
}

fn their_id(token: TokenId) -> LlamaToken {
    LlamaToken::new(i32::try_from(token.0).unwrap_or(i32::MAX))
}

fn their_sequence(sequence: SequenceId) -> i32 {
    i32::try_from(sequence.0).unwrap_or(i32::MAX)
}

fn cache_error(error: impl std::fmt::Display) -> BackendError {
    BackendError::Cache { reason: error.to_string() }
}

impl Backend for Llama {
    type Gate = LlamaGate;

    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn tokenize(&self, text: &str, special: bool) -> Vec<TokenId> {
        tokenize(self.loaded.borrow_owner(), text, special)
    }

    fn gate(&self, gbnf: &str) -> Result<LlamaGate, BackendError> {
        gate(self.loaded.borrow_owner(), gbnf)
    }

    fn reserve(&mut self, n_cells: u32) -> Result<(), BackendError> {
        if n_cells <= self.n_ctx {
            return Ok(());
        }
        // Some room to spare, since growing copies all that is there.
        let n_ctx = n_cells.saturating_add(n_cells / 4).next_multiple_of(CELL_BLOCK);
        tracing::debug!(n_ctx, "context grows");
        let Self { loaded, n_threads, lent, has_cells, .. } = self;
        let n_sequences = count(lent.len());
        loaded.with_dependent_mut(|model, context| -> Result<(), BackendError> {
            let mut states = Vec::new();
            for (sequence, lender) in (0..).zip(lent.iter()) {
                // Cells that a sequence shares would be saved, and restored, once for each; a
                // recurrent state has no cells.
                let shared = lender.filter(|_| *has_cells);
                if let Some((_, n)) = shared {
                    context.0.kv_cache_seq_rm(sequence, None, Some(n)).map_err(cache_error)?;
                }
                if context.0.kv_cache_seq_pos_max(sequence) >= 0 {
                    let state = context.0.state_seq_get(sequence, LlamaStateSeqFlags::empty());
                    states.push((sequence, state.map_err(cache_error)?));
                }
            }
            *context = new_context(model, n_ctx, *n_threads, n_sequences)?;
            for (sequence, state) in &states {
                context.0.state_seq_set(state, *sequence).map_err(cache_error)?;
            }
            for (sequence, lender) in (0..).zip(lent.iter()) {
                if let Some((from, n)) = lender.filter(|_| *has_cells) {
                    context
                        .0
                        .kv_cache_seq_cp(their_sequence(from), sequence, None, Some(n))
                        .map_err(cache_error)?;
                }
            }
            Ok(())
        })?;
        self.n_ctx = n_ctx;
        Ok(())
    }

    fn max_tokens(&self) -> u32 {
        self.n_ctx_limit
    }

    fn max_cells(&self) -> u32 {
        self.max_cells
    }

    fn max_rows(&self) -> usize {
        N_BATCH as usize
    }

    fn decode(&mut self, rows: &[Row]) -> Result<(), BackendError> {
        let fail = |reason: String| BackendError::Decode { n_rows: rows.len(), reason };
        self.batch.clear();
        self.wants_logits.clear();
        for row in rows {
            let position = i32::try_from(row.position).map_err(|error| fail(error.to_string()))?;
            self.batch
                .add(their_id(row.token), position, &[their_sequence(row.sequence)], row.logits)
                .map_err(|error| fail(error.to_string()))?;
            self.wants_logits.push(row.logits);
        }
        let Self { loaded, batch, .. } = self;
        loaded
            .with_dependent_mut(|_, context| context.0.decode(batch))
            .map_err(|error| fail(error.to_string()))
    }

    fn logits(&self, index: usize) -> &[f32] {
        match (self.wants_logits.get(index), i32::try_from(index)) {
            (Some(true), Ok(index)) => self.loaded.borrow_dependent().0.get_logits_ith(index),
            _ => &[],
        }
    }

    fn copy(&mut self, from: SequenceId, to: SequenceId, n: u32) -> Result<(), BackendError> {
        self.remove(to)?;
        if let Some(lent) = self.lent.get_mut(to.0 as usize) {
            *lent = Some((from, n));
        }
        let (from, to) = (their_sequence(from), their_sequence(to));
        // A recurrent state has no parts: it is copied whole.
        let end = self.has_cells.then_some(n);
        self.loaded
            .with_dependent_mut(|_, context| context.0.kv_cache_seq_cp(from, to, None, end))
            .map_err(cache_error)
    }

    fn remove(&mut self, sequence: SequenceId) -> Result<(), BackendError> {
        for (to, lent) in (0..).map(SequenceId).zip(&mut self.lent) {
            // What begins with the cells of a removed sequence keeps them as its own.
            if to == sequence || lent.is_some_and(|(from, _)| from == sequence) {
                *lent = None;
            }
        }
        self.loaded
            .with_dependent_mut(|_, context| {
                context.0.kv_cache_seq_rm(their_sequence(sequence), None, None)
            })
            .map_err(cache_error)
    }

    fn truncate(&mut self, sequence: SequenceId, n: u32) -> Result<(), BackendError> {
        self.loaded
            .with_dependent_mut(|_, context| {
                context.0.kv_cache_seq_rm(their_sequence(sequence), Some(n), None)
            })
            .map_err(cache_error)
    }

    fn copies_part(&self) -> bool {
        self.copies_part
    }

    #[expect(unsafe_code, reason = "llama-cpp-2 gives no bytes otherwise")]
    fn save(&mut self, sequence: SequenceId) -> Result<Vec<u8>, BackendError> {
        let id = their_sequence(sequence);
        let flags = LlamaStateSeqFlags::empty();
        let context = &self.loaded.borrow_dependent().0;
        let mut state = vec![0; context.state_seq_get_size_ext(id, flags)];
        // SAFETY: the buffer has the size that was asked for.
        let n = unsafe { context.state_seq_get_data_ext(state.as_mut_ptr(), id, flags) };
        if n == state.len() { Ok(state) } else { Err(cache_error("the state has another size")) }
    }

    #[expect(unsafe_code, reason = "llama-cpp-2 takes no bytes otherwise")]
    fn restore(&mut self, sequence: SequenceId, state: &[u8], n: u32) -> Result<(), BackendError> {
        self.remove(sequence)?;
        let id = their_sequence(sequence);
        let is_taken = self.loaded.with_dependent_mut(|_, context| {
            // SAFETY: the state is one that `save` made of this model, build and settings: whoever keeps it
            // elsewhere than in memory has checked its sum.
            unsafe { context.0.state_seq_set_data_ext(state, id, LlamaStateSeqFlags::empty()) }
        });
        let last = self.loaded.borrow_dependent().0.kv_cache_seq_pos_max(id);
        if is_taken && u32::try_from(last + 1) == Ok(n) {
            return Ok(());
        }
        self.remove(sequence)?;
        Err(cache_error("a saved state is not taken"))
    }
}

/// llama.cpp's grammar sampler.
#[derive(Debug)]
pub struct LlamaGate(LlamaSampler);

impl LlamaGate {
    /// [`Gate::allows`] for several tokens, at once, which is cheaper.
    pub fn allows_each(&mut self, tokens: &[TokenId]) -> Vec<bool> {
        let data = tokens.iter().map(|token| LlamaTokenData::new(their_id(*token), 0.0, 0.0));
        let mut candidates = LlamaTokenDataArray::new(data.collect(), false);
        self.0.apply(&mut candidates);
        candidates.data.iter().map(|data| data.logit() == 0.0).collect()
    }
}

impl Gate for LlamaGate {
    fn allows(&mut self, token: TokenId) -> bool {
        self.allows_each(&[token]).first().is_some_and(|allowed| *allowed)
    }

    fn accept(&mut self, token: TokenId) -> bool {
        self.0.try_accept(their_id(token)).is_ok()
    }
}
