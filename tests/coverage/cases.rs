//! Files of schemas with instances, `*.jsonl` or `*.jsonl.gz`, to cases.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

/// A schema and what must be valid and invalid against it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The file's name up to its first dot.
    pub(crate) subset: String,
    pub(crate) id: String,
    /// As it is written.
    pub(crate) schema: Box<RawValue>,
    pub(crate) instances: Vec<Instance>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Instance {
    pub(crate) description: String,
    pub(crate) valid: bool,
    pub(crate) data: Box<RawValue>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    schema: Box<RawValue>,
    tests: Vec<Instance>,
}

/// The cases of a file, in its order.
pub(crate) fn of_file(path: &Path) -> std::io::Result<Vec<Case>> {
    let bytes = fs::read(path)?;
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
    } else {
        text = String::from_utf8(bytes).map_err(std::io::Error::other)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let subset = name.split('.').next().unwrap_or_default();
    let mut cases = Vec::new();
    for line in text.lines() {
        let Line { id, schema, tests } = serde_json::from_str(line)?;
        cases.push(Case { subset: subset.to_owned(), id, schema, instances: tests });
    }
    Ok(cases)
}

/// The files of a folder whose names end so, sorted.
pub(crate) fn files(folder: &Path, end: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Numbers that look random and are the same in every run (Marsaglia's xorshift).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A seed of 0 would give only zeros.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % n.max(1) as u64).unwrap_or_default()
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// So many of the items, in their order.
    pub(crate) fn sample<T>(&mut self, mut items: Vec<T>, n: usize) -> Vec<T> {
        let mut keep = vec![false; items.len()];
        let mut order: Vec<usize> = (0..items.len()).collect();
        for index in 0..n.min(items.len()) {
            let other = index + self.below(items.len() - index);
            order.swap(index, other);
            keep[order[index]] = true;
        }
        let mut keep = keep.into_iter();
        items.retain(|_| keep.next().unwrap_or_default());
        items
    }
}
