//! Prefixes on disk, so that the next run over the same functions starts at once.
//!
//! A file holds the state that llama.cpp gave for one prefix, under a name made of all that the state
//! depends on: the model file, llama.cpp's build, the settings and the tokens. A prefix is written when it
//! is used the second time, in one run or two: the first use leaves an empty file.
//!
//! **Invariant:** a state is handed out only if its SHA-256 is right; llama.cpp does not check what it loads.
//! **Invariant:** nothing that goes wrong here ends a run; it costs the time that the file would have saved.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::engine::TokenId;
use crate::engine::prefix::Store;
use crate::models::hex;

/// Bytes of all files together; the least recently used ones are removed beyond that.
pub const MAX_BYTES: u64 = 1 << 30;

/// The first line of a file.
const MAGIC: &[u8] = b"callme prefix 1\n";

/// The ending of the files' names.
const EXTENSION: &str = "prefix";

/// Prefixes in a folder.
#[derive(Debug)]
pub struct PrefixCache {
    dir: PathBuf,
    /// What the states depend on beside their tokens.
    identity: Vec<u8>,
    max_bytes: u64,
}

impl PrefixCache {
    /// A cache in `dir` for the model at `model`; `settings` is whatever else a state depends on.
    ///
    /// # Errors
    /// Where the model file cannot be looked at.
    pub fn new(dir: PathBuf, model: &Path, settings: &str) -> std::io::Result<Self> {
        let model = model.canonicalize()?;
        let found = fs::metadata(&model)?;
        let modified = found.modified()?.duration_since(SystemTime::UNIX_EPOCH);
        let identity = format!(
            "{}\0{}\0{}\0{settings}\0",
            model.display(),
            found.len(),
            modified.map_or(0, |time| time.as_nanos()),
        );
        Ok(Self { dir, identity: identity.into_bytes(), max_bytes: MAX_BYTES })
    }

    /// The same with another bound on the bytes of all files together.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
    }

    /// The folder of the user's caches for this program, where the platform has one.
    #[must_use]
    pub fn user_dir() -> Option<PathBuf> {
        use etcetera::BaseStrategy;
        let base = etcetera::choose_base_strategy().ok()?;
        Some(base.cache_dir().join("callme"))
    }

    fn path(&self, tokens: &[TokenId]) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(&self.identity);
        for token in tokens {
            hash.update(token.0.to_le_bytes());
        }
        self.dir.join(hex(&hash.finalize())).with_extension(EXTENSION)
    }

    fn write(&self, path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.dir)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the files that were not used for longest.
    fn shrink(&self) -> std::io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == EXTENSION) {
                let found = entry.metadata()?;
                files.push((found.modified()?, found.len(), entry.path()));
            }
        }
        files.sort();
        let mut n_bytes: u64 = files.iter().map(|(_, len, _)| len).sum();
        for (_, len, path) in files {
            if n_bytes <= self.max_bytes {
                break;
            }
            fs::remove_file(path)?;
            n_bytes -= len;
        }
        Ok(())
    }
}

impl Store for PrefixCache {
    fn load(&mut self, tokens: &[TokenId]) -> Option<Vec<u8>> {
        let path = self.path(tokens);
        let bytes = fs::read(&path).ok().filter(|bytes| !bytes.is_empty())?;
        let state = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_at_checked(32))
            .filter(|(sum, state)| Sha256::digest(state).as_slice() == *sum)
            .map(|(_, state)| state.to_vec());
        if state.is_none() {
            tracing::warn!(path = %path.display(), "the prefix file is damaged; it is made anew");
            return None;
        }
        // The order in which files are removed is that of their use.
        if let Ok(file) = fs::File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        state
    }

    fn note(&mut self, tokens: &[TokenId]) -> bool {
        let path = self.path(tokens);
        if path.exists() {
            return true;
        }
        told(&path, self.write(&path, &[]));
        false
    }

    fn save(&mut self, tokens: &[TokenId], state: &[u8]) {
        let path = self.path(tokens);
        let sum = Sha256::digest(state);
        let written = self.write(&path, &[MAGIC, sum.as_slice(), state]);
        told(&path, written.and_then(|()| self.shrink()));
    }
}

fn told(path: &Path, result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::info!(path = %path.display(), %error, "a prefix is not kept");
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn tokens(first: u32) -> Vec<TokenId> {
        (first..first + 5).map(TokenId).collect()
    }

    /// A cache in a folder of its own, for a model file beside it.
    fn cache(settings: &str) -> (tempfile::TempDir, PrefixCache) {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model.gguf");
        fs::write(&model, "weights").unwrap();
        let cache = PrefixCache::new(folder.path().join("cache"), &model, settings).unwrap();
        (folder, cache)
    }

    fn files(cache: &PrefixCache) -> Vec<PathBuf> {
        let mut paths: Vec<_> =
            fs::read_dir(&cache.dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    #[test]
    fn a_state_comes_back_for_the_same_model_settings_and_tokens_alone() {
        let (folder, mut one) = cache("a");
        assert_eq!(one.load(&tokens(0)), None);
        assert!(!one.note(&tokens(0)), "the first use");
        assert_eq!(one.load(&tokens(0)), None);
        assert!(one.note(&tokens(0)), "the second use");
        one.save(&tokens(0), b"state");
        assert_eq!(one.load(&tokens(0)).as_deref(), Some(&b"state"[..]));
        assert_eq!(one.load(&tokens(1)), None);
        let model = folder.path().join("model.gguf");
        let same = |settings| PrefixCache::new(one.dir.clone(), &model, settings).unwrap();
        assert!(same("a").load(&tokens(0)).is_some());
        assert_eq!(same("b").load(&tokens(0)), None);
        fs::write(&model, "other weights").unwrap();
        assert_eq!(same("a").load(&tokens(0)), None, "another model under the same name");
    }

    #[test]
    fn a_damaged_file_is_not_handed_out_and_is_replaced() {
        let (_folder, mut cache) = cache("");
        cache.save(&tokens(0), b"a state of some length");
        let path = files(&cache).remove(0);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert_eq!(cache.load(&tokens(0)), None, "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(cache.load(&tokens(0)), None, "{at} bytes");
        }
        cache.save(&tokens(0), b"anew");
        assert_eq!(cache.load(&tokens(0)).as_deref(), Some(&b"anew"[..]));
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let (_folder, cache) = cache("");
        let mut cache = cache.with_max_bytes(350);
        let state = [0; 50];
        let old = SystemTime::UNIX_EPOCH;
        for first in 0..4 {
            cache.save(&tokens(first), &state);
            let path = cache.path(&tokens(first));
            let age = old + std::time::Duration::from_secs(first.into());
            fs::File::options().append(true).open(path).unwrap().set_modified(age).unwrap();
        }
        // Each takes 98 bytes; the fourth made the first go.
        assert_eq!(cache.load(&tokens(0)), None);
        assert!(cache.load(&tokens(1)).is_some());
        cache.save(&tokens(9), &state);
        assert!(cache.load(&tokens(1)).is_some(), "it has just been used");
        assert_eq!(cache.load(&tokens(2)), None);
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing_but_time() {
        let (folder, _) = cache("");
        let model = folder.path().join("model.gguf");
        let mut cache = PrefixCache::new(model.join("no folder"), &model, "").unwrap();
        assert!(!cache.note(&tokens(0)));
        cache.save(&tokens(0), b"state");
        assert_eq!(cache.load(&tokens(0)), None);
    }
}
