//! Labelled cases, and a model or predictions, to verdicts: figures to stdout, every record to a new file.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};

use super::{Ended, Run, no_functions, read_functions, tell, version};
use crate::config::{AskConfig, CallsFrom, EvalConfig};
use crate::definitions::FunctionDef;
use crate::eval::{self, Call, Case, Comparison, Earlier, ModelFile, Prediction, Report, Summary};
use crate::interrupt::Interrupt;
use crate::models;
use crate::output::{self, Record};
use crate::report::{Exit, Terminal, Verbosity};
use crate::validate::FunctionCall;

/// Where runs are kept, relative to the current directory.
const FOLDER: &str = "data/output";

pub(super) fn eval(config: &EvalConfig) -> anyhow::Result<Exit> {
    let time = utc(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let cases = cases(config)?;
    let shared = if cases.iter().any(|case| case.request.functions.is_none()) {
        let functions = read_functions(&config.functions)?;
        ensure!(!functions.is_empty(), no_functions(&config.functions));
        functions
    } else {
        Vec::new()
    };
    let earlier = earlier(config)?;
    let predictions = match &config.calls {
        CallsFrom::Predictions(source) => {
            let (predictions, n_unknown) =
                eval::predictions(&source.read()?, &cases).with_context(|| source.to_string())?;
            if n_unknown > 0 {
                tell(
                    config.verbosity,
                    &format!("{source}: {n_unknown} predictions are for no case"),
                );
            }
            Some(predictions)
        }
        CallsFrom::Model(_) => None,
    };
    let (path, file) = create(config.output.as_deref(), &time)?;
    let mut report = Report {
        time,
        build: version().lines().map(str::to_owned).collect(),
        cases: config.cases.iter().map(ToString::to_string).collect(),
        predictions: None,
        model: None,
        config: None,
        elapsed_s: None,
        scoring: config.scoring,
        summary: Summary::of(&[]),
        comparison: None,
        n_cases: cases.len(),
        records: Vec::new(),
    };
    let answered = match (&config.calls, predictions) {
        (CallsFrom::Model(ask), _) => answer(config, ask, &shared, &cases, &path, &mut report),
        (CallsFrom::Predictions(source), predictions) => {
            report.predictions = Some(source.to_string());
            Ok((predictions.unwrap_or_default(), Exit::Done))
        }
    };
    let written = answered.and_then(|(predictions, exit)| {
        // An interrupted run has answers for the first of the cases alone.
        let pairs = cases.iter().zip(predictions);
        let scored = pairs.map(|(case, one)| eval::score(case, &shared, one, config.scoring));
        report.records = scored.collect();
        report.summary = Summary::of(&report.records);
        report.comparison =
            earlier.map(|(with, earlier)| Comparison::of(with, &earlier, &report.records));
        write(&report, file).with_context(|| format!("writing {}", path.display()))?;
        Ok(exit)
    });
    let exit = written.inspect_err(|_| {
        // It is empty or cut off, and it is ours.
        let _ = fs::remove_file(&path);
    })?;
    if report.predictions.is_some() {
        let n = report.records.len();
        tell(config.verbosity, &format!("{n} cases scored; written to {}", path.display()));
    }
    output::print(&report.text(config.verbosity == Verbosity::Verbose))?;
    Ok(exit)
}

/// The cases of all files; of those with the same id the first.
fn cases(config: &EvalConfig) -> anyhow::Result<Vec<Case>> {
    let (mut all, mut seen, mut n_again) = (Vec::new(), HashSet::new(), 0);
    for source in &config.cases {
        let stem = source.path().and_then(Path::file_stem).unwrap_or("stdin".as_ref());
        let cases = eval::cases(&source.read()?, &stem.to_string_lossy());
        for case in cases.with_context(|| source.to_string())? {
            if seen.insert(case.id.to_string()) {
                all.push(case);
            } else {
                n_again += 1;
            }
        }
    }
    if n_again > 0 {
        tell(config.verbosity, &format!("{n_again} cases left out: their ids came before"));
    }
    let names: Vec<String> = config.cases.iter().map(ToString::to_string).collect();
    ensure!(!all.is_empty(), "{}: no cases; give at least one", names.join(", "));
    Ok(all)
}

fn earlier(config: &EvalConfig) -> anyhow::Result<Option<(String, Earlier)>> {
    let Some(source) = &config.compare else { return Ok(None) };
    let earlier: Earlier = serde_json::from_slice(&source.read()?)
        .with_context(|| format!("{source}: not a file that callme eval wrote"))?;
    ensure!(
        earlier.scoring == config.scoring,
        "{source}: its --scoring was another; score both alike"
    );
    Ok(Some((source.to_string(), earlier)))
}

/// Lets a model answer the cases, and reports which one and how.
fn answer(
    config: &EvalConfig,
    ask: &AskConfig,
    shared: &[FunctionDef],
    cases: &[Case],
    path: &Path,
    report: &mut Report,
) -> anyhow::Result<(Vec<Prediction>, Exit)> {
    let requests: Vec<_> = cases.iter().map(|case| case.request.clone()).collect();
    let mut terminal = Terminal::new(config.verbosity);
    terminal.begin(requests.len());
    let interrupt = Interrupt::listen().context("taking over Ctrl-C")?;
    let mut run = Run::new(terminal, interrupt);
    let exit = match run.answer(ask, (&config.functions, shared), &requests)? {
        Ended::Whole => {
            run.terminal.end(&run.summary, Some(path));
            run.summary.exit()
        }
        Ended::Interrupted => {
            run.terminal.interrupted(run.records.len(), Some(path));
            Exit::Interrupted(run.interrupt.signal().ok_or_else(|| anyhow!("interrupted"))?)
        }
    };
    report.model = Some(model_file(ask)?);
    report.config = Some(asked(ask));
    report.elapsed_s = Some(run.summary.elapsed.as_secs_f64());
    let predictions = run.records.into_iter().zip(&run.lines).map(|(record, line)| Prediction {
        probability: line.probability(),
        no_call: line.no_call(),
        ..Prediction::from(record)
    });
    Ok((predictions.collect(), exit))
}

impl From<Record> for Prediction {
    /// A failure is no answer; a record without a call and without an error says that no function fits.
    fn from(record: Record) -> Self {
        let Record { calls, error, .. } = record;
        let call = |one: &FunctionCall| Call {
            name: one.name.to_string(),
            parameters: one.parameters.clone(),
        };
        let calls: Vec<Call> = calls.as_slice().iter().map(call).collect();
        let calls = (error.is_none() || !calls.is_empty()).then_some(calls);
        Self { calls, error, ..Self::default() }
    }
}

/// A file that was not there before: the one that is asked for, else one named for the time.
fn create(given: Option<&Path>, time: &str) -> anyhow::Result<(PathBuf, File)> {
    let is_there = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    let stem = format!("eval-{}", time.replace([':', '-'], ""));
    let mut n = 0;
    loop {
        n += 1;
        let path = given.map_or_else(
            || {
                let again = if n == 1 { String::new() } else { format!("-{n}") };
                Path::new(FOLDER).join(format!("{stem}{again}.json"))
            },
            Path::to_owned,
        );
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("output {}", path.display()))?;
        }
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if is_there(&error) && given.is_none() => {}
            Err(error) if is_there(&error) => {
                return Err(anyhow!(
                    "--output {}: is there already, and no run is written over another; name a new file",
                    path.display()
                ));
            }
            Err(error) => return Err(error).with_context(|| format!("output {}", path.display())),
        }
    }
}

fn write(report: &Report, file: File) -> anyhow::Result<()> {
    let mut out = BufWriter::new(file);
    serde_json::to_writer_pretty(&mut out, report)?;
    out.write_all(b"\n")?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

fn model_file(ask: &AskConfig) -> anyhow::Result<ModelFile> {
    let path = models::locate(&ask.model, &models::search_dirs(ask.models_dir.as_deref()))?;
    Ok(ModelFile {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        file_size_bytes: fs::metadata(&path).with_context(|| path.display().to_string())?.len(),
        sha256: models::hash_file(&path)?,
    })
}

/// How the model was asked, as far as it can change a call.
fn asked(ask: &AskConfig) -> Value {
    json!({
        "prompts": ask.prompts,
        "threads": ask.threads,
        "parallel": ask.parallel,
        "max_value_tokens": ask.max_value_tokens,
        "temperature": ask.temperature,
        "seed": ask.seed,
        "lenient": ask.lenient,
    })
}

/// A time since 1970 as RFC 3339 has it, in seconds of UTC.
fn utc(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // The year is taken to begin in March, so that the odd day is its last: days since 1 March of the year 0,
    // in 400-year cycles of 146,097 days; 153 days are five months from March on.
    let days = days + 719_468;
    let (cycle, of_cycle) = (days / 146_097, days % 146_097);
    let of_cycle_year =
        (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * of_cycle_year + of_cycle_year / 4 - of_cycle_year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = 400 * cycle + of_cycle_year + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(Duration::from_secs(seconds)), expected);
        }
    }
}
