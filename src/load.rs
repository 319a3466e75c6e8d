//! The name of a model and how to ask it in, a [`Caller`] over the loaded model out: what the binary and
//! [`crate::typed::TypedCaller`] share.
//!
//! **Invariant:** the network is not touched; a model that is not present is an error that says which
//! command fetches it.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::caller::{CallOptions, Caller, N_BESIDE};
use crate::engine::llama::Llama;
use crate::engine::prefix::Store;
use crate::engine::{BackendError, Limits, Sampling};
use crate::models::{self, ModelError};
use crate::prefix_cache::PrefixCache;
use crate::prompt::config::PromptsConfig;
use crate::prompt::{PromptError, PromptWriter};

/// Requests in flight, where nobody says: what paid on 2 and 4 cores.
pub const DEFAULT_PARALLEL: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// How a model is loaded and asked. The default is that of the command line: the built-in
/// configuration, greedy, a thread for each physical core.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Where models are looked for before [`models::search_dirs`]'s other folders.
    pub models_dir: Option<PathBuf>,
    /// Threads that compute; else the physical cores that this process may use.
    pub threads: Option<NonZeroUsize>,
    /// How requests are put to the model. Its `model` and `limits` are not read here.
    pub prompts: PromptsConfig,
    /// How calls are generated.
    pub calls: CallOptions,
    /// Where what prompts begin with is kept between runs.
    pub prefix_cache: Option<PathBuf>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        let prompts = PromptsConfig::default();
        let limits = Limits { max_value_tokens: prompts.limits.max_value_tokens };
        let n_parallel = DEFAULT_PARALLEL;
        let sampling = Sampling::Greedy;
        let calls =
            CallOptions { limits, sampling, seed: 0, n_parallel, forcing: true, n_others: None };
        Self { models_dir: None, threads: None, prompts, calls, prefix_cache: None }
    }
}

/// Why there is no model to ask.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such model on this machine.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// llama.cpp does not load it.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// Its chat template or the configuration cannot be used.
    #[error("preparing the prompt")]
    Prompt(#[from] PromptError),
}

/// Loads a model: a name of the catalogue, the stem of a GGUF file in one of the model folders, a
/// path, or `auto`, the first of the catalogue's order that is present.
///
/// # Errors
/// [`LoadError`].
pub fn load(model: &str, options: &LoadOptions) -> Result<Caller<Llama>, LoadError> {
    let dirs = models::search_dirs(options.models_dir.as_deref());
    let path = models::locate(model, &dirs)?;
    tracing::info!(path = %path.display(), "model");
    let n_parallel = u32::try_from(options.calls.n_parallel.get()).unwrap_or(u32::MAX);
    let n_sequences = n_parallel.saturating_add(N_BESIDE);
    let model = Llama::load(&path, threads(options.threads), n_sequences)?;
    let writer = PromptWriter::new(model.text(), &options.prompts)?;
    let store = options.prefix_cache.as_ref().and_then(|dir| {
        let cache = PrefixCache::new(dir.clone(), &path, &model.state_settings());
        let cache = cache.inspect_err(|error| tracing::info!(%error, "no prefix cache"));
        cache.ok().map(|cache| Box::new(cache) as Box<dyn Store>)
    });
    Ok(Caller::new(model, writer, options.calls, store))
}

/// Physical cores, within what the cgroup or the affinity leaves.
#[must_use]
pub fn threads(asked: Option<NonZeroUsize>) -> u32 {
    let available = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let n = asked.map_or_else(|| num_cpus::get_physical().clamp(1, available), NonZeroUsize::get);
    u32::try_from(n).unwrap_or(u32::MAX)
}
