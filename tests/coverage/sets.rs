//! Real function sets: how many of the functions compile, and how long a thousand take.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use call_me_maybe::definitions::{self, FunctionDef, FunctionName};
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::print::gbnf;
use serde_json::Value;

use super::cases;

/// Functions of the large set.
const N_LARGE: usize = 1_000;
/// The large set is compiled so often; the fastest counts.
const N_RUNS: usize = 5;

/// The function lists of a folder: whole files of definitions, and the `functions` of each line.
pub(crate) fn lists(folder: &Path) -> anyhow::Result<Vec<(String, Vec<FunctionDef>)>> {
    let mut lists = Vec::new();
    for file in cases::files(folder, ".json")? {
        let name = file.display().to_string();
        let functions = definitions::parse(&std::fs::read(&file)?).context(name.clone())?;
        lists.push((name, functions));
    }
    for file in cases::files(folder, ".jsonl")? {
        for (index, line) in std::fs::read_to_string(&file)?.lines().enumerate() {
            let name = format!("{}:{}", file.display(), index + 1);
            let line: Value = serde_json::from_str(line).context(name.clone())?;
            let functions = definitions::from_value(&line["functions"], "/functions");
            lists.push((name.clone(), functions.context(name)?));
        }
    }
    Ok(lists)
}

/// The functions of a list that have no grammar, with the reason.
pub(crate) fn refused(functions: &[FunctionDef]) -> Vec<String> {
    match calls(functions, Options::LEGAL) {
        Ok(calls) => {
            let refused = calls.refused.iter();
            refused.map(|(name, error)| format!("{name}: {error}")).collect()
        }
        // A list may be empty; there is nothing to call then.
        Err(_) if functions.is_empty() => Vec::new(),
        Err(error) => vec![error.to_string()],
    }
}

pub(crate) fn table(folders: &[PathBuf]) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut all = Vec::new();
    for folder in folders {
        if !folder.is_dir() {
            let _ = writeln!(text, "{}: not here", folder.display());
            continue;
        }
        let (mut n, mut bad) = (0, Vec::new());
        for (name, functions) in lists(folder)? {
            n += functions.len();
            bad.extend(refused(&functions).into_iter().map(|reason| format!("  {name}: {reason}")));
            all.extend(functions);
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(text, "{name}: {} of {n} functions compile", n - bad.len());
        for line in bad.iter().take(20) {
            let _ = writeln!(text, "{line}");
        }
    }
    if let Some(time) = large(&all) {
        let ms = time.as_secs_f64() * 1e3;
        let _ = writeln!(text, "{N_LARGE} functions to GBNF: {ms:.1} ms");
    }
    Ok(text)
}

/// The time of a set of real functions under names of their own.
fn large(functions: &[FunctionDef]) -> Option<Duration> {
    if functions.is_empty() {
        return None;
    }
    let renamed = functions.iter().cycle().take(N_LARGE).enumerate().map(|(index, function)| {
        let mut renamed = function.clone();
        renamed.name = FunctionName::new(format!("{}_{index}", function.name))?;
        Some(renamed)
    });
    let renamed: Vec<FunctionDef> = renamed.collect::<Option<_>>()?;
    let times = (0..N_RUNS).map(|_| {
        let start = Instant::now();
        let grammar = calls(&renamed, Options::LEGAL).map(|calls| gbnf(&calls.grammar));
        std::hint::black_box(&grammar);
        start.elapsed()
    });
    times.min()
}
