//! `<name>.gguf.part`: bytes in, hashed on the way -> `<name>.gguf`.
//!
//! **Invariant:** while a [`PartFile`] lives, no other process writes to it.
//! **Invariant:** the hash covers exactly the bytes that the file holds.
//! **Invariant:** a part file that cannot be resumed, or that is empty, is gone when its [`PartFile`] is.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::{Model, ModelError};

/// Bytes that are read or written at once.
pub(super) const BLOCK: usize = 128 * 1024;

/// The partial file of one model, locked.
pub(super) struct PartFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    hasher: Sha256,
    len: u64,
    /// Bytes that the folder was checked to have room for.
    expected: u64,
    /// Whether what was received is of use to a later run.
    resumable: bool,
    finished: bool,
}

impl PartFile {
    /// Opens or makes `<target>.part` and locks it. The file counts as empty until [`resume`](Self::resume) is called.
    pub(super) fn open(target: &Path) -> Result<Self, ModelError> {
        let mut path = target.as_os_str().to_owned();
        path.push(".part");
        let path = PathBuf::from(path);
        let file = open_locked(&path)?;
        Ok(Self {
            file,
            path,
            target: target.to_owned(),
            hasher: Sha256::new(),
            len: 0,
            expected: 0,
            resumable: false,
            finished: false,
        })
    }

    /// Where the partial file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are there.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes that a later run can go on from.
    pub(super) fn kept(&self) -> u64 {
        if self.resumable { self.len } else { 0 }
    }

    /// Goes on from what an earlier run left, and lets a later run do so.
    #[cfg(feature = "fetch")]
    pub(super) fn resume(&mut self) -> Result<(), ModelError> {
        self.resumable = true;
        let mut hasher = Sha256::new();
        self.len = hash(&mut self.file, &mut hasher)
            .map_err(|source| ModelError::Read { path: self.path.clone(), source })?;
        self.hasher = hasher;
        Ok(())
    }

    /// Throws away what is there.
    pub(super) fn restart(&mut self) -> Result<(), ModelError> {
        self.hasher = Sha256::new();
        self.len = 0;
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map(drop).map_err(|e| ModelError::write(&self.path, 0, e))
    }

    /// Checks that the folder has room for a file of `total` bytes in all.
    pub(super) fn check_space(&mut self, total: u64) -> Result<(), ModelError> {
        self.expected = total;
        let needed = total.saturating_sub(self.len);
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        match free_space(folder) {
            Some(free) if free < needed => {
                Err(ModelError::NoSpace { folder: folder.to_owned(), needed, free: Some(free) })
            }
            _ => Ok(()),
        }
    }

    /// Appends a block.
    pub(super) fn write(&mut self, block: &[u8]) -> Result<(), ModelError> {
        if let Err(source) = self.file.write_all(block) {
            // Some of the block may have been written: back to where the hash is.
            let _ = self.file.set_len(self.len);
            let needed = self.expected.saturating_sub(self.len);
            return Err(ModelError::write(&self.path, needed.max(block.len() as u64), source));
        }
        self.hasher.update(block);
        self.len += block.len() as u64;
        Ok(())
    }

    /// Checks the hash and gives the file its name; where the hash is wrong, the file is removed.
    pub(super) fn finish(mut self, model: &Model) -> Result<(), ModelError> {
        let got = hex(&self.hasher.finalize_reset());
        if got != model.sha256 {
            self.resumable = false;
            let (name, expected) = (model.name.clone(), model.sha256.clone());
            return Err(ModelError::WrongHash { name, expected, got });
        }
        // A power cut after the rename must not leave a named file without its bytes.
        self.file.sync_all().map_err(|e| ModelError::write(&self.path, 0, e))?;
        fs::rename(&self.path, &self.target).map_err(|e| ModelError::write(&self.target, 0, e))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.finished && self.kept() == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The SHA-256 of a file, in hex.
pub(crate) fn hash_file(path: &Path) -> Result<String, ModelError> {
    let mut hasher = Sha256::new();
    File::open(path)
        .and_then(|mut file| hash(&mut file, &mut hasher))
        .map_err(|source| ModelError::Read { path: path.to_owned(), source })?;
    Ok(hex(&hasher.finalize()))
}

/// Feeds a file from its beginning, and tells how many bytes that were.
fn hash(file: &mut File, hasher: &mut Sha256) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut block = vec![0; BLOCK];
    let mut len = 0;
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(len),
            Ok(n) => {
                hasher.update(&block[..n]);
                len += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(unix)]
fn open_locked(path: &Path) -> Result<File, ModelError> {
    use std::os::unix::fs::MetadataExt;

    let write = |e: io::Error| ModelError::write(path, 0, e);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(write)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        // Some network file systems have no locks; there, two fetches at once end in a wrong hash, not in a wrong file.
        Ok(()) | Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            return Err(ModelError::Busy { path: path.to_owned() });
        }
        Err(error) => return Err(write(error.into())),
    }
    // Its last owner may have renamed or removed the file between the two calls.
    let inode = |meta: fs::Metadata| (meta.dev(), meta.ino());
    let ours = file.metadata().map(inode).map_err(write)?;
    match fs::metadata(path).map(inode) {
        Ok(there) if there == ours => Ok(file),
        _ => Err(ModelError::Busy { path: path.to_owned() }),
    }
}

#[cfg(windows)]
fn open_locked(path: &Path) -> Result<File, ModelError> {
    use std::os::windows::fs::OpenOptionsExt;

    /// `FILE_SHARE_DELETE`: the file can be renamed while it is open, and not opened once more.
    const SHARE_DELETE: u32 = 4;
    /// `ERROR_SHARING_VIOLATION`.
    const SHARING_VIOLATION: i32 = 32;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).share_mode(SHARE_DELETE);
    options.open(path).map_err(|error| match error.raw_os_error() {
        Some(SHARING_VIOLATION) => ModelError::Busy { path: path.to_owned() },
        _ => ModelError::write(path, 0, error),
    })
}

#[cfg(not(any(unix, windows)))]
fn open_locked(path: &Path) -> Result<File, ModelError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(|e| ModelError::write(path, 0, e))
}

/// Bytes that this user can still write in a folder, where the platform tells.
#[cfg(unix)]
fn free_space(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

#[cfg(not(unix))]
fn free_space(_: &Path) -> Option<u64> {
    None
}
