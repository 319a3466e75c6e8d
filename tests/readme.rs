//! README.md is true: its examples give what it shows, and its flags, statuses, models and files are there.
//!
//! A `console` block is commands behind `$ ` with their stdout; a line `…` stands for lines left out. A block
//! whose info string ends in a file name, as in `json prompts.jsonl`, is that file in the folder of the examples.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use call_me_maybe::models;

/// The model of the examples.
const MODEL: &str = "qwen2.5-coder-0.5b-q4_k_m";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// The fenced blocks of a text: info string and content.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut parts = text.split("\n```");
    parts.next();
    let mut found = Vec::new();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (info, content) = block.split_once('\n').unwrap();
        found.push((info.to_owned(), format!("{content}\n")));
    }
    found
}

/// The commands of the `console` blocks, each with its output.
fn examples() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (_, content) in blocks(&readme()).into_iter().filter(|(info, _)| info == "console") {
        for line in content.lines() {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push((command.to_owned(), String::new())),
                (None, Some((_, output))) => output.extend([line, "\n"]),
                (None, None) => panic!("output before a command: {line}"),
            }
        }
    }
    found
}

fn needs_a_model(command: &str) -> bool {
    !["--emit-grammar", "callme check", "--predictions"].iter().any(|word| command.contains(word))
}

/// A folder as a clone of the repository has it, with the files that the README shows.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("data/input")).unwrap();
    for name in ["functions_definition.json", "function_calling_tests.json"] {
        let name = Path::new("data/input").join(name);
        fs::copy(root().join(&name), folder.path().join(&name)).unwrap();
    }
    for (info, content) in blocks(&readme()) {
        if let Some((_, name)) = info.split_once(' ') {
            fs::write(folder.path().join(name), content).unwrap();
        }
    }
    folder
}

/// Equality, but for the lines that `…` stands for.
fn is_like(found: &[&str], shown: &[&str]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((&"…", rest)) => (0..=found.len()).any(|n| is_like(&found[n..], rest)),
        Some((line, rest)) => found.first() == Some(line) && is_like(&found[1..], rest),
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// Runs the examples that need a model, or the others, and returns how many there were.
#[cfg(unix)]
fn run_examples(with_model: bool) -> usize {
    let folder = folder();
    let models = folder.path().join("only");
    fs::create_dir(&models).unwrap();
    if with_model {
        let file = format!("{MODEL}.gguf");
        let model = root().join("models").join(&file).canonicalize().unwrap();
        std::os::unix::fs::symlink(model, models.join(file)).unwrap();
    }
    let mut path = cargo_bin("callme").parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let examples: Vec<_> = examples()
        .into_iter()
        .filter(|(command, _)| needs_a_model(command) == with_model)
        .collect();
    for (command, shown) in &examples {
        let output = Command::new("sh")
            .args(["-ec", command])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("HOME", folder.path())
            .env("CALLME_MODELS", &models)
            .env_remove("XDG_DATA_HOME")
            .env_remove("RUST_LOG")
            .output()
            .unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}\n{stderr}");
        assert!(
            is_like(&lines(&found), &lines(shown)),
            "{command}\nfound:\n{found}\nshown:\n{shown}"
        );
    }
    examples.len()
}

#[cfg(unix)]
#[test]
fn the_examples_without_a_model_give_what_is_shown() {
    assert!(run_examples(false) >= 3);
}

#[cfg(unix)]
#[test]
#[ignore = "needs a GGUF in models/"]
fn the_examples_with_a_model_give_what_is_shown() {
    assert!(run_examples(true) >= 2);
}

#[test]
fn left_out_lines_are_left_out_and_no_others() {
    for (found, shown, expected) in [
        ("a b c", "a b c", true),
        ("a b c", "a … c", true),
        ("a b c", "… b …", true),
        ("a b c", "a …", true),
        ("a b c", "a b", false),
        ("a b c", "b …", false),
        ("a b c", "a … b", false),
        ("a b c", "a … d …", false),
        ("ab c", "a … c", false),
    ] {
        let [found, shown] = [found, shown].map(|text| text.split(' ').collect::<Vec<_>>());
        assert_eq!(is_like(&found, &shown), expected, "{found:?} {shown:?}");
    }
}

/// The words that begin with two dashes.
fn flags(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '-' || c == '_';
    let words = text.split(|c: char| !is_part(c));
    words
        .filter(|word| word.starts_with("--") && word.len() > 3)
        .map(|word| word.trim_end_matches('-').to_owned())
        .collect()
}

#[test]
fn the_flags_are_those_of_the_help() {
    let help = |words: &[&str]| {
        let output = Command::new(cargo_bin("callme")).args(words).output().unwrap();
        flags(&String::from_utf8(output.stdout).unwrap())
    };
    let mut flags_of_help = help(&["--help"]);
    flags_of_help.extend(help(&["check", "--help"]));
    flags_of_help.extend(help(&["bench", "--help"]));
    flags_of_help.extend(help(&["eval", "--help"]));
    flags_of_help.extend(help(&["explain", "--help"]));
    flags_of_help.extend(help(&["model", "quantize", "--help"]));
    // Cargo has flags of its own.
    let text = readme().replace("cargo build --release", "").replace("cargo doc --open", "");
    assert_eq!(flags(&text), flags_of_help);
}

#[test]
fn the_exit_statuses_are_those_of_the_help() {
    let output = Command::new(cargo_bin("callme")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, statuses) = help.split_once("Exit status:\n").unwrap();
    let number = |text: &str| text.split_whitespace().next()?.parse::<u8>().ok();
    let expected: Vec<u8> = statuses.lines().filter_map(number).collect();
    let found: Vec<u8> =
        readme().lines().filter_map(|line| number(line.strip_prefix("| ")?)).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_models_are_in_the_catalogue() {
    let catalog = models::catalog().unwrap();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let text = readme();
    let named: Vec<&str> = text
        .split(|c: char| !is_part(c))
        .filter(|word| word.contains("b-q4_") || word.contains("b-q8_"))
        .collect();
    assert!(named.contains(&MODEL), "{named:?}");
    for name in named {
        assert!(catalog.get(name).is_some(), "{name}");
    }
    // The default and its stand-in have their sizes there.
    for model in catalog.fallback() {
        let shown = format!("`{}` ({} MB)", model.name, model.size_bytes.unwrap() / 1_000_000);
        assert!(text.replace('\n', " ").contains(&shown), "{shown}");
    }
}

#[test]
fn the_links_lead_to_files() {
    let text = readme();
    let places: Vec<PathBuf> = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .filter(|(place, _)| !place.starts_with('#') && !place.contains("://"))
        .map(|(place, _)| root().join(place))
        .collect();
    assert!(places.len() > 3);
    for place in places {
        assert!(place.exists(), "{}", place.display());
    }
}

#[test]
fn the_forms_of_functions_are_read() {
    let blocks = blocks(&readme());
    let (_, json) = blocks.iter().find(|(info, _)| info == "json").unwrap();
    let functions = call_me_maybe::definitions::parse(json.as_bytes()).unwrap();
    let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["f1", "f2", "f3", "f4", "f5"]);
}
