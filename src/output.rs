//! Result records in; a file of JSON or JSON lines, or stdout, out.
//!
//! **Invariant:** one entry a record, in the order given, with exactly the keys `prompt`, `name`,
//! `parameters`, or `prompt` and `calls` where there may be several; JSON lines have `id` and `error` besides,
//! where there is one.
//! **Invariant:** numbers keep their text, other text is written raw, never as `\u` escapes
//! beyond what JSON demands.
//! **Invariant:** an existing file is whole until the new one, complete and on the disk, takes
//! its name; between [`OutputFile::create`] and then, nothing of ours lies about.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::prompt::CallCount;
use crate::validate::FunctionCall;

/// What became of one prompt, as the output tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The prompt, byte for byte.
    pub prompt: String,
    /// The id that came with the prompt.
    pub id: Option<Value>,
    /// What it led to.
    pub calls: Calls,
    /// Why there is no call, or what is wrong with it.
    pub error: Option<String>,
}

/// The calls of one prompt; none where it failed or no function fits.
#[derive(Debug, Clone, PartialEq)]
pub enum Calls {
    /// Where there is at most one.
    One(Option<FunctionCall>),
    /// Where there may be several.
    Many(Vec<FunctionCall>),
}

impl Calls {
    /// Those of an answer.
    #[must_use]
    pub fn new(calls: Vec<FunctionCall>, count: CallCount) -> Self {
        match count {
            CallCount::One => Self::One(calls.into_iter().next()),
            CallCount::Many => Self::Many(calls),
        }
    }

    /// All of them, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[FunctionCall] {
        match self {
            Self::One(call) => call.as_slice(),
            Self::Many(calls) => calls,
        }
    }
}

/// Where the records go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file, or what else has a path.
    Path(PathBuf),
}

impl Target {
    /// The path, unless it is stdout.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::Path(path) => Some(path),
        }
    }
}

/// Whether anyone read what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// All of it went out.
    Whole,
    /// The reader closed its end before the last byte, as `head` does; no error.
    ReaderLeft,
}

/// Why the output cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A folder stands where the file should.
    #[error("output {}: is a directory; name a file in it", path.display())]
    Directory {
        /// The output's path.
        path: PathBuf,
    },
    /// A folder of the path is there as something else.
    #[error("output {}: {} is not a directory", path.display(), file.display())]
    ThroughAFile {
        /// The output's path.
        path: PathBuf,
        /// The part of it that is no folder.
        file: PathBuf,
    },
    /// The system refuses; tried before any work is done.
    #[error("output {}: {what}", path.display())]
    Refused {
        /// The output's path.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Writing stopped, on a full disk for one; a file of that name is as it was.
    #[error("writing {name}")]
    Write {
        /// The output's path, or `<stdout>`.
        name: String,
        /// What the system says.
        source: io::Error,
    },
}

/// An output that has been tried and is yet to be written.
#[derive(Debug)]
pub struct OutputFile {
    destination: Destination,
    format: Format,
}

/// What writes a file's content, and flushes it.
type Content<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

#[derive(Debug)]
enum Destination {
    Stdout,
    /// A device or a pipe, written in place: a rename would replace it.
    Direct(PathBuf),
    Replace(Replaced),
}

/// A regular file, there or to be.
#[derive(Debug)]
struct Replaced {
    /// As the user wrote it, for messages.
    shown: PathBuf,
    /// With every symbolic link followed: the name that is replaced.
    path: PathBuf,
    /// Of the file that is there.
    existing: Option<fs::Metadata>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Array,
    Lines,
}

impl OutputFile {
    /// Tries the place: makes parent folders, and a temporary file that is removed at once.
    ///
    /// # Errors
    /// [`OutputError`], all but `Write`.
    pub fn create(target: &Target) -> Result<Self, OutputError> {
        let Target::Path(path) = target else {
            return Ok(Self { destination: Destination::Stdout, format: Format::Array });
        };
        Ok(Self { destination: Destination::find(path)?, format: Format::of(path) })
    }

    /// Writes the records and gives the file its name.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn finish(self, records: &[Record]) -> Result<Written, OutputError> {
        self.destination.write(&|out| write_records(out, records, self.format))
    }

    /// Writes a line of JSON for each and gives the file its name, whatever it ends in.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn finish_lines(self, lines: &[impl Serialize]) -> Result<Written, OutputError> {
        self.destination.write(&|out| write_lines(out, lines))
    }

    /// The same of an interrupted run, to `OUTPUT.partial`.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn keep_partial_lines(self, lines: &[impl Serialize]) -> Result<(), OutputError> {
        self.destination.keep_partial(&|out| write_lines(out, lines)).map(|_| ())
    }

    /// Writes the records of an interrupted run to `OUTPUT.partial`, in the same format.
    ///
    /// Returns that path, or `None` where the output is no file and the records went there.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn keep_partial(self, records: &[Record]) -> Result<Option<PathBuf>, OutputError> {
        self.destination.keep_partial(&|out| write_records(out, records, self.format))
    }
}

impl Destination {
    fn find(path: &Path) -> Result<Self, OutputError> {
        let refused = |what, source| OutputError::Refused { path: path.to_owned(), what, source };
        if path == Path::new("/dev/stdout") {
            return Ok(Self::Stdout);
        }
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.file_name().is_none() {
            return Err(OutputError::Directory { path: path.to_owned() });
        }
        let existing = match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(OutputError::Directory { path: path.to_owned() });
            }
            // A pipe's open would wait for a reader, so it is left for the end.
            Ok(found) if !found.is_file() || is_descriptor(path) => {
                return Ok(Self::Direct(path.to_owned()));
            }
            Ok(found) => {
                // A rename would get round the file's own write protection.
                OpenOptions::new()
                    .write(true)
                    .open(path)
                    .map_err(|source| refused("cannot be written", source))?;
                Some(found)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(through_a_file(path, error));
            }
            Err(error) => return Err(refused("cannot be looked at", error)),
        };
        let target = follow_links(path).map_err(|source| refused("cannot be followed", source))?;
        let file = Replaced { shown: path.to_owned(), path: target, existing };
        fs::create_dir_all(file.folder()).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                through_a_file(&file.path, error)
            }
            _ => refused("its folder cannot be made", error),
        })?;
        file.temporary().map_err(|source| refused("no file can be made in its folder", source))?;
        Ok(Self::Replace(file))
    }

    fn keep_partial(&self, content: Content<'_>) -> Result<Option<PathBuf>, OutputError> {
        match self {
            Self::Replace(file) => {
                let partial = file.partial();
                partial.replace(content)?;
                Ok(Some(partial.shown))
            }
            other => other.write(content).map(|_| None),
        }
    }

    fn write(&self, content: Content<'_>) -> Result<Written, OutputError> {
        match self {
            Self::Stdout => to_stdout(content),
            Self::Direct(path) => {
                // Appending is writing for a device or a pipe, and keeps what a log has.
                let result = OpenOptions::new()
                    .append(true)
                    .open(path)
                    .and_then(|file| content(&mut BufWriter::new(file)));
                written(result, &path.display().to_string())
            }
            Self::Replace(file) => file.replace(content),
        }
    }
}

impl Replaced {
    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// A file beside the target with the permissions that a new file gets; dropped, it is gone.
    fn temporary(&self) -> io::Result<tempfile::NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".callme-").suffix(".tmp");
        #[cfg(unix)]
        let builder = {
            use std::os::unix::fs::PermissionsExt;
            // The process's umask takes its part away.
            builder.permissions(fs::Permissions::from_mode(0o666))
        };
        builder.tempfile_in(self.folder())
    }

    fn replace(&self, content: Content<'_>) -> Result<Written, OutputError> {
        let result = (|| {
            let mut file = self.temporary()?;
            content(&mut BufWriter::new(file.as_file_mut()))?;
            if let Some(existing) = &self.existing {
                take_after(file.as_file(), existing)?;
            }
            file.as_file().sync_all()?;
            file.persist(&self.path).map_err(|error| error.error)?;
            // The new name itself; not every system lets a folder be opened for this.
            if let Ok(folder) = File::open(self.folder()) {
                folder.sync_all().ok();
            }
            Ok(())
        })();
        written(result, &self.shown.display().to_string())
    }

    fn partial(&self) -> Self {
        let add = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".partial");
            PathBuf::from(name)
        };
        let shown = add(&self.shown);
        Self { path: shown.clone(), shown, existing: self.existing.clone() }
    }
}

/// Whether the path is another name of something that the caller opened, to a file maybe: its
/// writer would not see a replacement.
fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stderr")
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
}

/// Gives a new file the owner, as far as the system allows, and the permissions of the old one.
fn take_after(file: &File, old: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            fchown(file, Some(old.uid()), Some(old.gid())).ok();
        }
    }
    file.set_permissions(old.permissions())
}

/// The path with its symbolic links followed, also where the last one points to nothing yet.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // Linux's own limit on a chain of links.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn through_a_file(path: &Path, source: io::Error) -> OutputError {
    match path.ancestors().skip(1).find(|part| part.is_file()) {
        Some(file) => OutputError::ThroughAFile { path: path.to_owned(), file: file.to_owned() },
        None => OutputError::Refused {
            path: path.to_owned(),
            what: "its folder cannot be made",
            source,
        },
    }
}

/// Prints a text to stdout.
///
/// # Errors
/// [`OutputError::Write`]; a reader that left is none.
pub fn print(text: &str) -> Result<Written, OutputError> {
    to_stdout(|out| out.write_all(text.as_bytes()))
}

fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Written, OutputError> {
    // Buffered whole lines would be flushed one by one by `Stdout` itself.
    let mut out = BufWriter::new(io::stdout().lock());
    written(write(&mut out).and_then(|()| out.flush()), "<stdout>")
}

fn written(result: io::Result<()>, name: &str) -> Result<Written, OutputError> {
    match result {
        Ok(()) => Ok(Written::Whole),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::ReaderLeft),
        Err(source) => Err(OutputError::Write { name: name.to_owned(), source }),
    }
}

impl Format {
    fn of(path: &Path) -> Self {
        let lines = path.extension().is_some_and(|extension| {
            extension.eq_ignore_ascii_case("jsonl") || extension.eq_ignore_ascii_case("ndjson")
        });
        if lines { Self::Lines } else { Self::Array }
    }
}

/// An entry of the JSON array.
#[derive(Serialize)]
struct Entry<'a> {
    prompt: &'a str,
    #[serde(flatten)]
    calls: Keys<'a>,
}

/// What an entry has beside its prompt.
#[derive(Serialize)]
#[serde(untagged)]
enum Keys<'a> {
    One(&'a FunctionCall),
    None { name: (), parameters: Map<String, Value> },
    Many { calls: &'a [FunctionCall] },
}

/// A line of JSON lines.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(flatten)]
    entry: Entry<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

fn write_lines(out: &mut dyn Write, lines: &[impl Serialize]) -> io::Result<()> {
    for line in lines {
        serde_json::to_writer(&mut *out, line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn write_records(mut out: &mut dyn Write, records: &[Record], format: Format) -> io::Result<()> {
    let entry = |record| {
        let Record { prompt, calls, .. }: &Record = record;
        let calls = match calls {
            Calls::One(Some(call)) => Keys::One(call),
            Calls::One(None) => Keys::None { name: (), parameters: Map::new() },
            Calls::Many(calls) => Keys::Many { calls },
        };
        Entry { prompt, calls }
    };
    match format {
        Format::Array => {
            let entries: Vec<_> = records.iter().map(entry).collect();
            serde_json::to_writer_pretty(&mut out, &entries)?;
            out.write_all(b"\n")?;
        }
        Format::Lines => {
            for record in records {
                let line = Line {
                    id: record.id.as_ref(),
                    entry: entry(record),
                    error: record.error.as_deref(),
                };
                serde_json::to_writer(&mut out, &line)?;
                out.write_all(b"\n")?;
            }
        }
    }
    out.flush()
}
