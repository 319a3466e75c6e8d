//! Models, prompts and functions in, measured figures out.
//!
//! Each run is a process of its own, so that its memory and its start are its own; the rounds go through
//! all models in turn, so that what else the machine does meets all of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::Sets;
use super::{read_functions, tell, version};
use crate::bench::{self, ModelFigures, Report, RunFigures, ratio};
use crate::caller::{self, Answer, CallOptions, FIRST_CALL, Unwatched};
use crate::config::BenchConfig;
use crate::engine::llama::Llama;
use crate::engine::llama::quantize::{Quantization, is_quantized, quantize, tensor_types};
use crate::engine::prefix;
use crate::engine::{Backend, Limits, Row, Sampling, TokenId};
use crate::input;
use crate::load::{self, LoadOptions};
use crate::models;
use crate::output;
use crate::report::{Exit, Verbosity};

/// Tokens of the measured prompt, as llama.cpp's own bench has it.
const N_PROMPT: usize = 512;

/// Tokens of the measured generation.
const N_GENERATED: usize = 32;

/// What the process of one run tells the one that started it.
#[derive(Debug, Serialize, Deserialize)]
struct RunResult {
    figures: RunFigures,
    /// For each prompt the call's name and parameters.
    calls: Vec<Option<(String, Value)>>,
    n_threads: u32,
}

/// A model to be measured.
struct Candidate {
    path: PathBuf,
    requantized_from: Option<String>,
}

pub(super) fn bench(config: &BenchConfig) -> anyhow::Result<Exit> {
    if config.worker {
        let result = measure(config)?;
        output::print(&serde_json::to_string(&result)?)?;
        return Ok(Exit::Done);
    }
    // Whatever is wrong with the input is told before anything is measured.
    let functions = read_functions(&config.functions)?;
    let bytes = config.input.read()?;
    let requests = input::parse(&bytes).with_context(|| config.input.to_string())?;
    ensure!(!requests.is_empty(), "{}: no prompts to measure with", config.input);
    ensure!(
        !functions.is_empty() || requests.iter().all(|one| one.functions.is_some()),
        super::no_functions(&config.functions)
    );
    let labels = labels(&bytes, requests.len());
    let candidates = candidates(config)?;
    let mut results: Vec<Vec<RunResult>> = candidates.iter().map(|_| Vec::new()).collect();
    for round in 0..=config.n_runs.get() {
        for (candidate, results) in candidates.iter().zip(&mut results) {
            let name = stem(&candidate.path);
            let which = if round == 0 { "to warm up".to_owned() } else { format!("run {round}") };
            tell(config.verbosity, &format!("{name}: {which}"));
            let result = in_process(config, &candidate.path).with_context(|| name.clone())?;
            if round > 0 {
                results.push(result);
            }
        }
    }
    let report = report(config, &candidates, &results, &labels)?;
    output::print(&report.table())?;
    let write = |path: &Option<PathBuf>, text: &dyn Fn() -> anyhow::Result<String>| match path {
        Some(path) if path == Path::new("-") => {
            output::print(&text()?).map(|_| ()).map_err(Into::into)
        }
        Some(path) => std::fs::write(path, text()?).with_context(|| path.display().to_string()),
        None => Ok(()),
    };
    write(&config.json, &|| Ok(report.json()?))?;
    write(&config.csv, &|| Ok(report.csv()))?;
    write(&config.plot, &|| Ok(bench::svg(&report)?))?;
    Ok(Exit::Done)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The models asked for, then the quantizations, made where they are missing.
fn candidates(config: &BenchConfig) -> anyhow::Result<Vec<Candidate>> {
    let dirs = models::search_dirs(config.models_dir.as_deref());
    let mut paths = Vec::new();
    for name in &config.models {
        let folder = Path::new(name);
        if folder.is_dir() {
            let entries = std::fs::read_dir(folder).with_context(|| name.clone())?;
            let files: Result<Vec<_>, _> =
                entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>();
            let mut files = files.with_context(|| name.clone())?;
            files.retain(|path| path.extension().is_some_and(|extension| extension == "gguf"));
            files.sort();
            ensure!(!files.is_empty(), "{name}: no GGUF file in this folder");
            paths.extend(files);
        } else {
            paths.push(models::locate(name, &dirs)?);
        }
    }
    let from = match &config.from {
        Some(from) => models::locate(from, &dirs)?,
        None => paths.first().cloned().ok_or_else(|| anyhow!("no model to measure"))?,
    };
    let mut found: Vec<Candidate> =
        paths.into_iter().map(|path| Candidate { path, requantized_from: None }).collect();
    let maker = Maker {
        models_dir: config.models_dir.as_deref(),
        threads: config.threads,
        verbosity: config.verbosity,
    };
    for name in &config.quantize {
        let quantization: Quantization = name.parse()?;
        let path = maker.make(&from, quantization, None)?;
        if !found.iter().any(|candidate| candidate.path == path) {
            let requantized_from = is_quantized(&from)?.then(|| stem(&from));
            found.push(Candidate { path, requantized_from });
        }
    }
    Ok(found)
}

/// `callme model quantize`.
pub(super) fn quantize_model(
    from: &str,
    to: &str,
    output: Option<PathBuf>,
    models_dir: Option<&Path>,
    verbosity: Verbosity,
) -> anyhow::Result<Exit> {
    let quantization: Quantization = to.parse()?;
    let from = models::locate(from, &models::search_dirs(models_dir))?;
    let maker = Maker { models_dir, threads: None, verbosity };
    if let Some(output) = output.as_ref().filter(|output| output.exists()) {
        bail!("{}: there is such a file; remove it or name another", output.display());
    }
    let path = maker.make(&from, quantization, output)?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

/// Makes files of other quantizations.
struct Maker<'a> {
    models_dir: Option<&'a Path>,
    threads: Option<std::num::NonZeroUsize>,
    verbosity: Verbosity,
}

impl Maker<'_> {
    /// The file of a quantization, made if it is not there.
    fn make(
        &self,
        from: &Path,
        quantization: Quantization,
        output: Option<PathBuf>,
    ) -> anyhow::Result<PathBuf> {
        let path = output.unwrap_or_else(|| {
            let name = quantized_name(&stem(from), quantization.name());
            models::fetch_dir(self.models_dir).join(format!("{name}.gguf"))
        });
        ensure!(path != from, "{}: is {} already", from.display(), quantization.name());
        if path.is_file() {
            return Ok(path);
        }
        let tell = |text: String| tell(self.verbosity, &text);
        tell(format!("making {}", path.display()));
        if is_quantized(from)? {
            let types: Vec<String> =
                tensor_types(from)?.into_iter().map(|(name, _)| name).collect();
            let (from, types) = (from.display(), types.join(", "));
            tell(format!(
                "requantized: {from} holds {types}, so more is lost than from full weights"
            ));
        }
        quantize(from, &path, quantization, load::threads(self.threads))?;
        tell(format!("{}: {}", stem(&path), bench::type_shares(&tensor_types(&path)?, 0.0)));
        Ok(path)
    }
}

/// A model's name with another quantization in place of its own, if that is in it.
fn quantized_name(name: &str, to: &str) -> String {
    let is_type = |word: &str| {
        let word = word.to_ascii_lowercase();
        let rest = word.strip_prefix("iq").or_else(|| word.strip_prefix('q'));
        matches!(word.as_str(), "f16" | "bf16" | "f32" | "fp16")
            || rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let base = match name.rsplit_once(['-', '.']) {
        Some((base, last)) if is_type(last) => base,
        _ => name,
    };
    format!("{base}-{}", to.to_ascii_lowercase())
}

fn in_process(config: &BenchConfig, model: &Path) -> anyhow::Result<RunResult> {
    let mut command = Command::new(std::env::current_exe().context("finding this program")?);
    command.arg("bench").arg("--worker").arg("--quiet").arg("--models").arg(model);
    let mut flag = |name: &str, value: Option<&dyn AsRef<std::ffi::OsStr>>| {
        if let Some(value) = value {
            command.arg(name).arg(value);
        }
    };
    let path = |path: Option<&Path>| path.map(Path::to_owned);
    let number = |n: Option<std::num::NonZeroUsize>| n.map(|n| n.to_string());
    for (name, value) in [
        ("--functions_definition", path(config.functions.path())),
        ("--input", path(config.input.path())),
        ("--prompts_config", config.prompts_config.clone()),
        ("--prefix-cache", config.prefix_cache.clone()),
    ] {
        flag(name, value.as_ref().map(|value| value as &dyn AsRef<std::ffi::OsStr>));
    }
    for (name, value) in
        [("--threads", number(config.threads)), ("--parallel", number(config.parallel))]
    {
        flag(name, value.as_ref().map(|value| value as &dyn AsRef<std::ffi::OsStr>));
    }
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("starting a run")?;
    ensure!(output.status.success(), "the run ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("reading what the run says")
}

/// The work of one process: one run, then the model's own speeds.
fn measure(config: &BenchConfig) -> anyhow::Result<RunResult> {
    let begin = Instant::now();
    let functions = read_functions(&config.functions)?;
    let bytes = config.input.read()?;
    let requests = input::parse(&bytes).with_context(|| config.input.to_string())?;
    let model = config.models.first().ok_or_else(|| anyhow!("no model to measure"))?;
    let options = LoadOptions {
        models_dir: config.models_dir.clone(),
        threads: config.threads,
        prompts: config.prompts.clone(),
        calls: CallOptions {
            limits: Limits { max_value_tokens: config.prompts.limits.max_value_tokens },
            sampling: Sampling::Greedy,
            seed: 0,
            n_parallel: config.parallel.unwrap_or(load::DEFAULT_PARALLEL),
            forcing: true,
            n_others: None,
        },
        prefix_cache: config.prefix_cache.clone(),
    };
    let loading = Instant::now();
    let mut caller = load::load(model, &options)?;
    let load_s = loading.elapsed().as_secs_f64();
    let start = Instant::now();
    let sets = Sets::new(&functions, &requests, false);
    let mut sets = sets.map_err(|reason| anyhow!("{}: {reason}", config.functions))?;
    let mut calls: Vec<Option<(String, Value)>> = requests.iter().map(|_| None).collect();
    let (mut first_call_s, mut n_rows, mut n_forced, mut n_free) = (None, 0, 0, 0);
    let mut asked = requests.iter().enumerate().filter_map(|(index, request)| {
        // A set without a grammar is a prompt without a call.
        let set = sets.of(index, request).ok()?;
        Some(caller::Request { index: index as u64, set, text: request.prompt.clone() })
    });
    caller.call_all(&mut asked, &mut Unwatched, &mut |index, answer| {
        first_call_s.get_or_insert_with(|| begin.elapsed().as_secs_f64());
        let generation = match &answer {
            Ok(answer) => Some(&answer.generation),
            Err(error) => error.generation(),
        };
        if let Some(generation) = generation {
            n_rows += u64::from(generation.n_rows);
            n_forced += u64::from(generation.n_forced);
            n_free += u64::from(generation.n_free);
        }
        let place = calls.get_mut(usize::try_from(index).unwrap_or(usize::MAX));
        if let (Ok(Answer { calls, .. }), Some(place)) = (answer, place) {
            let call = calls.into_iter().next();
            *place = call.map(|call| (call.name.to_string(), call.parameters));
        }
    })?;
    let wall_s = start.elapsed().as_secs_f64();
    let n_rows = n_rows + caller.n_prefix_rows() + caller.n_neutral_rows();
    let peak_bytes = peak_bytes();
    let mut backend = caller.into_backend()?;
    let prompt_tokens_per_s = prompt_rate(&mut backend)?;
    let generation_tokens_per_s = generation_rate(&mut backend)?;
    let n_calls = u32::try_from(requests.len()).unwrap_or(u32::MAX);
    Ok(RunResult {
        figures: RunFigures {
            load_s,
            first_call_s: first_call_s.unwrap_or_default(),
            wall_s,
            calls_per_s: f64::from(n_calls) / wall_s,
            n_rows,
            prompt_tokens_per_s,
            generation_tokens_per_s,
            reference_share: ratio(n_rows, 1) / wall_s / prompt_tokens_per_s,
            forced_share: ratio(n_forced, (n_forced + n_free).max(1)),
            peak_bytes,
        },
        calls,
        n_threads: load::threads(config.threads),
    })
}

/// Text tokens from the middle of the vocabulary, where the usual words are.
fn some_tokens(backend: &Llama, n: usize) -> Vec<TokenId> {
    let sorted = backend.vocab().sorted();
    sorted.iter().cycle().skip(sorted.len() / 2).step_by(7).take(n).copied().collect()
}

fn prompt_rate(backend: &mut Llama) -> anyhow::Result<f64> {
    let tokens = some_tokens(backend, N_PROMPT);
    backend.reserve(u32::try_from(N_PROMPT)?)?;
    let mut rates = Vec::new();
    for _ in 0..3 {
        backend.remove(FIRST_CALL)?;
        let start = Instant::now();
        prefix::decode(backend, FIRST_CALL, &tokens, 0, &|| false)?;
        backend.synchronize();
        rates.push(ratio(N_PROMPT as u64, 1) / start.elapsed().as_secs_f64());
    }
    backend.remove(FIRST_CALL)?;
    Ok(bench::Spread::of(rates).map_or(0.0, |spread| spread.max))
}

fn generation_rate(backend: &mut Llama) -> anyhow::Result<f64> {
    let tokens = some_tokens(backend, N_GENERATED);
    let start = Instant::now();
    for (position, token) in (0..).zip(tokens) {
        backend.decode(&[Row { token, position, sequence: FIRST_CALL, logits: true }])?;
        let _ = backend.logits(0).first();
    }
    let rate = ratio(N_GENERATED as u64, 1) / start.elapsed().as_secs_f64();
    backend.remove(FIRST_CALL)?;
    Ok(rate)
}

/// The kernel's high-water mark of this process's resident memory.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// What a prompt's right answers are.
struct Label {
    name: String,
    parameters: Vec<Value>,
}

/// The labels of the prompts; empty where they have none.
fn labels(bytes: &[u8], n: usize) -> Vec<Label> {
    let label = |record: &Value| {
        let name = record.get("name")?.as_str()?.to_owned();
        let mut parameters = vec![record.get("parameters")?.clone()];
        parameters
            .extend(record.get("accept").and_then(Value::as_array).into_iter().flatten().cloned());
        Some(Label { name, parameters })
    };
    let labels: Option<Vec<Label>> = match serde_json::from_slice(bytes) {
        Ok(Value::Array(records)) => records.iter().map(label).collect(),
        _ => String::from_utf8_lossy(bytes)
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| label(&serde_json::from_str(line).ok()?))
            .collect(),
    };
    labels.filter(|labels| labels.len() == n).unwrap_or_default()
}

impl Label {
    fn is_met(&self, call: Option<&(String, Value)>) -> bool {
        call.is_some_and(|(name, parameters)| {
            *name == self.name && self.parameters.iter().any(|right| is_same(right, parameters))
        })
    }
}

/// Whether two values are equal, numbers by their value.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}

fn report(
    config: &BenchConfig,
    candidates: &[Candidate],
    results: &[Vec<RunResult>],
    labels: &[Label],
) -> anyhow::Result<Report> {
    let calls =
        |results: &Vec<RunResult>| results.first().map(|run| run.calls.clone()).unwrap_or_default();
    let reference = results.first().map(calls).unwrap_or_default();
    let share = |n: usize, of: usize| ratio(n as u64, of.max(1) as u64);
    let mut models = Vec::new();
    for (index, (candidate, results)) in candidates.iter().zip(results).enumerate() {
        let own = calls(results);
        let n_agreeing = own.iter().zip(&reference).filter(|(own, other)| own == other).count();
        let n_right =
            labels.iter().zip(&own).filter(|(label, call)| label.is_met(call.as_ref())).count();
        let file = &candidate.path;
        models.push(ModelFigures {
            model: stem(file),
            file_bytes: std::fs::metadata(file).with_context(|| file.display().to_string())?.len(),
            tensor_types: tensor_types(file)?,
            requantized_from: candidate.requantized_from.clone(),
            runs: results.iter().map(|run| run.figures).collect(),
            agreement: (index > 0).then(|| share(n_agreeing, own.len())),
            score: (!labels.is_empty()).then(|| share(n_right, labels.len())),
            n_failed: own.iter().filter(|call| call.is_none()).count(),
        });
    }
    let n_threads = results.iter().flatten().map(|run| run.n_threads).next().unwrap_or(0);
    Ok(Report {
        build: version().lines().map(str::to_owned).collect(),
        cpu: cpu(),
        n_threads,
        n_parallel: config.parallel.unwrap_or(load::DEFAULT_PARALLEL).get(),
        n_prompts: reference.len(),
        files: [config.functions.to_string(), config.input.to_string()],
        models,
    })
}

/// The processor's own name.
fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantization_takes_the_place_of_another_in_the_name() {
        for (name, expected) in [
            ("qwen2.5-coder-0.5b-q4_k_m", "qwen2.5-coder-0.5b-q4_0"),
            ("Qwen3-0.6B-Q8_0", "Qwen3-0.6B-q4_0"),
            ("model.f16", "model-q4_0"),
            ("smollm2-135m", "smollm2-135m-q4_0"),
        ] {
            assert_eq!(quantized_name(name, "Q4_0"), expected);
        }
    }

    #[test]
    fn labels_are_met_by_value() {
        let lines =
            br#"[{"prompt": "p", "name": "f", "parameters": {"a": 2}, "accept": [{"a": [1]}]}]"#;
        let labels = labels(lines, 1);
        let call =
            |text: &str| Some(("f".to_owned(), serde_json::from_str(text).unwrap_or_default()));
        for (text, expected) in
            [(r#"{"a": 2.0}"#, true), (r#"{"a": [1.0]}"#, true), (r#"{"a": 3}"#, false)]
        {
            assert_eq!(labels[0].is_met(call(text).as_ref()), expected, "{text}");
        }
        assert!(super::labels(b"[{\"prompt\": \"p\"}]", 1).is_empty());
    }
}
