//! llama.cpp beside us, where it is built in: does it load a grammar, and how long does its own
//! converter take.

use std::time::Duration;

/// A vocabulary without weights.
#[cfg(feature = "engine")]
pub(crate) struct Engine(Option<call_me_maybe::engine::llama::Vocabulary>);

#[cfg(feature = "engine")]
impl Engine {
    /// With the vocabulary that `make test` writes, where it is.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = path.join("models/test/vocab-qwen2.gguf");
        if !path.is_file() {
            return Ok(Self(None));
        }
        Ok(Self(Some(call_me_maybe::engine::llama::Vocabulary::load(&path)?)))
    }

    pub(crate) fn note(&self) -> &'static str {
        match self.0 {
            Some(_) => "llama.cpp loads each grammar with a vocabulary of 151,936 tokens.",
            None => {
                "NOT LOADED BY llama.cpp: models/test/vocab-qwen2.gguf is missing; make test makes it."
            }
        }
    }

    pub(crate) fn load(&self, gbnf: &str) -> Option<String> {
        self.0.as_ref()?.gate(gbnf).err().map(|error| error.to_string())
    }

    #[expect(clippy::unused_self, reason = "the one without llama.cpp has the same methods")]
    pub(crate) fn convert(&self, schema: &str) -> Option<Duration> {
        let time = || {
            let start = std::time::Instant::now();
            let grammar = llama_cpp_2::json_schema_to_grammar(schema);
            let elapsed = start.elapsed();
            grammar.ok().map(|_| elapsed)
        };
        // As ours is measured: the fastest of three.
        let first = time()?;
        if first > Duration::from_millis(20) {
            return Some(first);
        }
        [Some(first), time(), time()].into_iter().flatten().min()
    }
}

/// There is none in this build.
#[cfg(not(feature = "engine"))]
pub(crate) struct Engine;

#[cfg(not(feature = "engine"))]
#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "it stands for llama.cpp's")]
impl Engine {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn note(&self) -> &'static str {
        "NOT LOADED BY llama.cpp: this was built without the feature `engine`."
    }

    pub(crate) fn load(&self, _: &str) -> Option<String> {
        None
    }

    pub(crate) fn convert(&self, _: &str) -> Option<Duration> {
        None
    }
}
