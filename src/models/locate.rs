//! A name or a path, and folders -> the path of a GGUF file that is there.
//!
//! **Invariant:** nothing is written and the network is not touched.
//! **Invariant:** a path that is returned was a regular file that begins with `GGUF`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Catalog, Environment, ModelError, catalog};

/// The name that stands for the first model of the catalogue that is present.
pub const AUTO: &str = "auto";

/// The folders in which models are looked for, in order: `models_dir` (the `--models-dir` of the command line),
/// `$CALLME_MODELS`, `models` in the current folder, and `callme/models` in the user's data folder.
#[must_use]
pub fn search_dirs(models_dir: Option<&Path>) -> Vec<PathBuf> {
    search_dirs_in(models_dir, &Environment::read())
}

fn search_dirs_in(models_dir: Option<&Path>, environment: &Environment) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    let data = environment.data_dir.as_ref().map(|data| data.join("callme").join("models"));
    let all = [
        models_dir.map(Path::to_owned),
        environment.models_dir.clone(),
        Some(PathBuf::from("models")),
        data,
    ];
    for dir in all.into_iter().flatten() {
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    dirs
}

/// The folder that a model is fetched into: `models_dir`, else `$CALLME_MODELS`, else `models` in the current folder
/// where that is there, else `callme/models` in the user's data folder.
#[must_use]
pub fn fetch_dir(models_dir: Option<&Path>) -> PathBuf {
    fetch_dir_in(models_dir, Path::new("models").is_dir(), &Environment::read())
}

fn fetch_dir_in(models_dir: Option<&Path>, beside: bool, environment: &Environment) -> PathBuf {
    let asked = models_dir.or(environment.models_dir.as_deref()).map(Path::to_owned);
    let data = || environment.data_dir.as_ref().map(|data| data.join("callme").join("models"));
    asked.or_else(|| if beside { None } else { data() }).unwrap_or_else(|| PathBuf::from("models"))
}

/// Finds a model: [`AUTO`], a name of the catalogue, the stem of a `.gguf` file in one of `dirs`, or the path of a
/// file (what has a separator in it or ends in `.gguf`).
///
/// # Errors
///
/// [`ModelError::NoModel`] for [`AUTO`] with nothing present, [`ModelError::NotPresent`] for a name of the catalogue,
/// [`ModelError::Unknown`] for another name, [`ModelError::NotFound`] for a path, and [`ModelError::NotAFile`],
/// [`ModelError::NotGguf`] or [`ModelError::Read`] for something that is there and is no model.
pub fn locate(name_or_path: &str, dirs: &[PathBuf]) -> Result<PathBuf, ModelError> {
    let catalog = catalog()?;
    if name_or_path == AUTO {
        return first_present(&catalog, dirs);
    }
    let ends_in_gguf = Path::new(name_or_path).extension().is_some_and(|end| end == "gguf");
    if name_or_path.contains(std::path::is_separator) || ends_in_gguf {
        let path = PathBuf::from(name_or_path);
        // A bare file name is also looked for in the folders, once it is not in the current one.
        let found = if path.exists() { Some(path.clone()) } else { in_dirs(name_or_path, dirs) };
        return check_gguf(found.ok_or(ModelError::NotFound { path })?);
    }
    match in_dirs(&format!("{name_or_path}.gguf"), dirs) {
        Some(path) => check_gguf(path),
        None if catalog.get(name_or_path).is_some() => Err(ModelError::NotPresent {
            name: name_or_path.to_owned(),
            searched: dirs.to_vec(),
        }),
        None => Err(ModelError::Unknown {
            name: name_or_path.to_owned(),
            near: near(name_or_path, &catalog, dirs),
            searched: dirs.to_vec(),
        }),
    }
}

/// The stems of all `.gguf` files in `dirs` that are no model of the catalogue, with their paths, sorted in each.
#[must_use]
pub fn own_files(catalog: &Catalog, dirs: &[PathBuf]) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for dir in dirs {
        let mut here: Vec<(String, PathBuf)> = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "gguf") && path.is_file())
            .filter_map(|path| Some((path.file_stem()?.to_string_lossy().into_owned(), path)))
            .filter(|(stem, _)| catalog.get(stem).is_none())
            .collect();
        here.sort();
        here.retain(|(stem, _)| found.iter().all(|(earlier, _)| earlier != stem));
        found.append(&mut here);
    }
    found
}

/// The first of `dirs` that has this file.
pub(super) fn in_dirs(file_name: &str, dirs: &[PathBuf]) -> Option<PathBuf> {
    dirs.iter().map(|dir| dir.join(file_name)).find(|path| path.exists())
}

/// Checks that a path that exists is a GGUF file, by its first four bytes.
pub(super) fn check_gguf(path: PathBuf) -> Result<PathBuf, ModelError> {
    let read = |source| ModelError::Read { path: path.clone(), source };
    // Before it is opened: opening a named pipe would wait for a writer.
    let kind = fs::metadata(&path).map_err(read)?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "no regular file" };
        return Err(ModelError::NotAFile { path, what });
    }
    let mut start = Vec::new();
    File::open(&path).and_then(|file| file.take(32).read_to_end(&mut start)).map_err(read)?;
    let what = if start.starts_with(b"GGUF") {
        return Ok(path);
    } else if start.is_empty() {
        "the file is empty"
    } else if start.starts_with(b"version https://git-lfs") {
        "it is a Git LFS pointer, which stands for the model; `git lfs pull` brings the model itself"
    } else {
        "its first four bytes are not `GGUF`"
    };
    Err(ModelError::NotGguf { path, what })
}

fn first_present(catalog: &Catalog, dirs: &[PathBuf]) -> Result<PathBuf, ModelError> {
    match catalog.models().iter().find_map(|model| in_dirs(&model.file_name(), dirs)) {
        Some(path) => check_gguf(path),
        None => Err(ModelError::NoModel {
            names: catalog.models().iter().map(|model| model.name.clone()).collect(),
            own: own_files(catalog, dirs).into_iter().map(|(stem, _)| stem).collect(),
            searched: dirs.to_vec(),
        }),
    }
}

/// Names that the user may have meant, nearest first.
pub(super) fn near(name: &str, catalog: &Catalog, dirs: &[PathBuf]) -> Vec<String> {
    let known = catalog.models().iter().map(|model| model.name.clone());
    let own = own_files(catalog, dirs).into_iter().map(|(stem, _)| stem);
    let asked = name.to_ascii_lowercase();
    let mut near: Vec<(usize, String)> = known
        .chain(own)
        .map(|candidate| (distance(&asked, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(edits, candidate)| {
            let begins = asked.len() >= 3 && candidate.to_ascii_lowercase().starts_with(&asked);
            begins || *edits <= asked.chars().count() / 3
        })
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// Levenshtein's distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        for (a, b, expected) in [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn folders_in_order_and_once() {
        let environment = Environment {
            models_dir: Some("from-variable".into()),
            data_dir: Some("data".into()),
            ..Environment::default()
        };
        let data = Path::new("data").join("callme").join("models");
        let all = vec!["flag".into(), "from-variable".into(), "models".into(), data.clone()];
        assert_eq!(search_dirs_in(Some(Path::new("flag")), &environment), all);
        let once = vec!["models".into(), "from-variable".into(), data.clone()];
        assert_eq!(search_dirs_in(Some(Path::new("models")), &environment), once);
        let bare = Environment::default();
        assert_eq!(search_dirs_in(None, &bare), [PathBuf::from("models")]);

        assert_eq!(fetch_dir_in(Some(Path::new("flag")), true, &environment), Path::new("flag"));
        assert_eq!(fetch_dir_in(None, true, &environment), Path::new("from-variable"));
        let no_variable = Environment { models_dir: None, ..environment };
        assert_eq!(fetch_dir_in(None, true, &no_variable), Path::new("models"));
        assert_eq!(fetch_dir_in(None, false, &no_variable), data);
        assert_eq!(fetch_dir_in(None, false, &bare), Path::new("models"));
    }
}
