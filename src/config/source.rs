//! Where bytes come from: a file or stdin, with the flag that says so, for the messages.
//!
//! **Invariant:** every error names the file as it was given, and where a default was meant,
//! where it was looked for and the flag that gives another.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file or stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The flag, dashes included.
    flag: &'static str,
    from: From,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum From {
    Stdin,
    /// The file that was given.
    Given(PathBuf),
    /// No flag was given; relative to the current directory.
    Default(&'static str),
}

/// Why a source cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// No flag was given and the default file is not there.
    #[error("no {path} here (looked for {}); give another with {flag} FILE", looked_for.display())]
    NoDefault {
        /// The default.
        path: &'static str,
        /// Its absolute path.
        looked_for: PathBuf,
        /// The flag that gives another.
        flag: &'static str,
    },
    /// The file that was given is not there.
    #[error("{flag} {}: no such file (looked for {})", path.display(), looked_for.display())]
    NotFound {
        /// As it was given.
        path: PathBuf,
        /// Its absolute path.
        looked_for: PathBuf,
        /// The flag that gave it.
        flag: &'static str,
    },
    /// A folder.
    #[error("{flag} {}: is a directory, not a file", path.display())]
    Directory {
        /// As it was given, or the default.
        path: PathBuf,
        /// The flag that gives another.
        flag: &'static str,
    },
    /// The system refuses.
    #[error("{flag} {name}")]
    Read {
        /// As it was given, the default, or `<stdin>`.
        name: String,
        /// The flag that gives another.
        flag: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

impl Source {
    /// What was given for `flag`, `-` meaning stdin; else the default.
    pub(super) fn new(flag: &'static str, given: Option<PathBuf>, default: &'static str) -> Self {
        let from = match given {
            Some(path) if path == Path::new("-") => From::Stdin,
            Some(path) => From::Given(path),
            None => From::Default(default),
        };
        Self { flag, from }
    }

    /// As [`Source::new`], but `-` is a name like any other.
    pub(super) fn file(flag: &'static str, given: Option<PathBuf>, default: &'static str) -> Self {
        Self { flag, from: given.map_or(From::Default(default), From::Given) }
    }

    /// The flag that gives it, dashes included.
    pub(super) fn flag(&self) -> &'static str {
        self.flag
    }

    pub(super) fn is_stdin(&self) -> bool {
        self.from == From::Stdin
    }

    /// Nobody asked for this file, and it is not there.
    pub(super) fn is_absent_default(&self) -> bool {
        matches!(&self.from, From::Default(path) if !Path::new(path).exists())
    }

    /// The file, unless it is stdin.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.from {
            From::Stdin => None,
            From::Given(path) => Some(path),
            From::Default(path) => Some(Path::new(path)),
        }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn read(&self) -> Result<Vec<u8>, SourceError> {
        let flag = self.flag;
        let read = |source| SourceError::Read { name: self.to_string(), flag, source };
        let Some(path) = self.path() else {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map_err(read)?;
            return Ok(bytes);
        };
        if path.is_dir() {
            return Err(SourceError::Directory { path: path.to_owned(), flag });
        }
        std::fs::read(path).map_err(|source| {
            if source.kind() != io::ErrorKind::NotFound {
                return read(source);
            }
            let looked_for = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            match self.from {
                From::Default(path) => SourceError::NoDefault { path, looked_for, flag },
                _ => SourceError::NotFound { path: path.to_owned(), looked_for, flag },
            }
        })
    }
}

/// As messages name it: the path as it was given, or `<stdin>`.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            Some(path) => path.display().fmt(f),
            None => f.write_str("<stdin>"),
        }
    }
}
