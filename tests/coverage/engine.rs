//! llama.cpp beside us, where it is built in: does it load a grammar, and how long does its own
//! converter take.
//!
//! The converter runs in a child process, as some schemas overflow its stack.

use std::path::Path;
use std::time::Duration;

/// What the child writes for a schema that the converter refuses.
#[cfg(feature = "engine")]
const REFUSED: &str = "refused";

/// A vocabulary without weights, and the child.
#[cfg(feature = "engine")]
pub(crate) struct Engine {
    vocabulary: Option<call_me_maybe::engine::llama::Vocabulary>,
    converter: std::cell::RefCell<Option<Converter>>,
    /// Schemas that the converter ended the process on.
    n_crashes: std::cell::Cell<usize>,
}

#[cfg(feature = "engine")]
struct Converter {
    child: std::process::Child,
    schemas: std::process::ChildStdin,
    answers: std::io::BufReader<std::process::ChildStdout>,
}

#[cfg(feature = "engine")]
impl Engine {
    /// With the vocabulary of a GGUF, where the file is.
    pub(crate) fn new(vocabulary: &Path) -> anyhow::Result<Self> {
        let vocabulary = vocabulary
            .is_file()
            .then(|| call_me_maybe::engine::llama::Vocabulary::load(vocabulary))
            .transpose()?;
        Ok(Self { vocabulary, converter: None.into(), n_crashes: 0.into() })
    }

    pub(crate) fn note(&self) -> String {
        match &self.vocabulary {
            Some(vocabulary) => {
                format!("llama.cpp loads each grammar, with {} tokens.", vocabulary.vocab().len())
            }
            None => "NOT LOADED BY llama.cpp: no vocabulary; `make test` makes one, --vocab names another."
                .to_owned(),
        }
    }

    pub(crate) fn load(&self, gbnf: &str) -> Option<String> {
        self.vocabulary.as_ref()?.gate(gbnf).err().map(|error| error.to_string())
    }

    pub(crate) fn convert(&self, schema: &str) -> Option<Duration> {
        use std::io::{BufRead, Write};

        let mut converter = self.converter.borrow_mut();
        if converter.is_none() {
            *converter = Some(Converter::start().ok()?);
        }
        let Converter { schemas, answers, .. } = converter.as_mut()?;
        let mut answer = String::new();
        let asked = writeln!(schemas, "{schema}").and_then(|()| schemas.flush());
        if asked.and_then(|()| answers.read_line(&mut answer)).is_ok_and(|n| n > 0) {
            return answer.trim().parse().ok().map(Duration::from_nanos);
        }
        self.n_crashes.set(self.n_crashes.get() + 1);
        if let Some(mut ended) = converter.take() {
            let _ = ended.child.wait();
        }
        None
    }

    /// Schemas that the converter ended its process on.
    pub(crate) fn n_crashes(&self) -> usize {
        self.n_crashes.get()
    }
}

#[cfg(feature = "engine")]
impl Converter {
    fn start() -> std::io::Result<Self> {
        use std::process::{Command, Stdio};

        let mut child = Command::new(std::env::current_exe()?)
            .arg("--convert")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let none = || std::io::Error::other("no pipe");
        let schemas = child.stdin.take().ok_or_else(none)?;
        let answers = std::io::BufReader::new(child.stdout.take().ok_or_else(none)?);
        Ok(Self { child, schemas, answers })
    }
}

#[cfg(feature = "engine")]
impl Drop for Converter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child: a schema a line in, its nanoseconds a line out.
#[cfg(feature = "engine")]
pub(crate) fn convert_lines() -> std::io::Result<()> {
    use std::io::{BufRead, Write};

    for schema in std::io::stdin().lock().lines() {
        let schema = schema?;
        let time = || {
            let start = std::time::Instant::now();
            let grammar = llama_cpp_2::json_schema_to_grammar(&schema);
            let elapsed = start.elapsed();
            grammar.ok().map(|_| elapsed)
        };
        // As ours is measured: the fastest of three, unless it is long anyway.
        let mut fastest = time();
        if fastest.is_some_and(|first| first < Duration::from_millis(20)) {
            fastest = [fastest, time(), time()].into_iter().flatten().min();
        }
        let mut out = std::io::stdout().lock();
        match fastest {
            Some(time) => writeln!(out, "{}", time.as_nanos())?,
            None => writeln!(out, "{REFUSED}")?,
        }
        out.flush()?;
    }
    Ok(())
}

/// There is none in this build.
#[cfg(not(feature = "engine"))]
pub(crate) struct Engine;

#[cfg(not(feature = "engine"))]
#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "it stands for llama.cpp's")]
impl Engine {
    pub(crate) fn new(_: &Path) -> anyhow::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn note(&self) -> String {
        "NOT LOADED BY llama.cpp: this was built without the feature `engine`.".to_owned()
    }

    pub(crate) fn load(&self, _: &str) -> Option<String> {
        None
    }

    pub(crate) fn convert(&self, _: &str) -> Option<Duration> {
        None
    }

    pub(crate) fn n_crashes(&self) -> usize {
        0
    }
}

#[cfg(not(feature = "engine"))]
#[expect(clippy::unnecessary_wraps, reason = "it stands for llama.cpp's")]
pub(crate) fn convert_lines() -> std::io::Result<()> {
    Ok(())
}
