//! A job in, its exit out: the one place that calls the stages in order.
//!
//! **Invariant:** whatever can be wrong with the input or the output's place is found before a model
//! is loaded.
//! **Invariant:** one record a prompt, in the order of the input; a failed prompt keeps its place.

#[cfg(feature = "engine")]
mod answer;
#[cfg(feature = "engine")]
mod bench;
mod check;
mod eval;
#[cfg(feature = "engine")]
mod explain;

use std::io::{self, Write as _};

use anyhow::{Context, anyhow, ensure};

use crate::cli::GrammarFormat;
use crate::config::{GrammarConfig, Job, ModelJob, RunConfig, Source};
use crate::definitions::{self, FunctionDef};
use crate::grammar::lower::{self, Options, Unsupported};
use crate::grammar::{GrammarError, document, draw, print};
use crate::input;
use crate::interrupt::Interrupt;
use crate::models::{self, FetchConfig, FetchRequest, Progress};
use crate::output::{self, OutputFile, Record, Written};
use crate::report::{Exit, ReportLine, Summary, Terminal, Verbosity, escape};
use crate::schema::Undeclared;
use crate::version;

/// Does a job.
///
/// # Errors
/// Why it could not be done, with the file and the place; a prompt that fails is no error.
pub fn run(job: Job) -> anyhow::Result<Exit> {
    match job {
        Job::Run(config) => answer_all(&config),
        Job::EmitGrammar(config) => emit_grammar(&config),
        Job::Check(config) => check::check(&config),
        Job::Model(job) => about_models(job),
        Job::Eval(config) => eval::eval(&config),
        #[cfg(feature = "engine")]
        Job::Bench(config) => bench::bench(&config),
        #[cfg(feature = "engine")]
        Job::Explain(config) => explain::explain(&config),
        #[cfg(not(feature = "engine"))]
        Job::Bench(_) | Job::Explain(_) => Err(anyhow!(NO_ENGINE)),
    }
}

#[cfg(not(feature = "engine"))]
const NO_ENGINE: &str = "this callme was built without the feature `engine`, so it runs no model";

/// What `--version` prints, with what llama.cpp says of the CPU features that it was built with.
#[must_use]
pub fn version() -> String {
    #[cfg(feature = "engine")]
    let info = Some(crate::engine::llama::system_info());
    #[cfg(not(feature = "engine"))]
    let info: Option<String> = None;
    version::long(info.as_deref())
}

/// A line on stderr, unless nothing is to be told.
fn tell(verbosity: Verbosity, text: &str) {
    if verbosity != Verbosity::Quiet {
        // Nobody may be there to read.
        let _ = writeln!(io::stderr(), "{}", escape(text));
    }
}

fn read_functions(source: &Source) -> anyhow::Result<Vec<FunctionDef>> {
    let bytes = source.read()?;
    let functions = definitions::parse(&bytes).with_context(|| source.to_string())?;
    Ok(functions)
}

fn emit_grammar(config: &GrammarConfig) -> anyhow::Result<Exit> {
    let functions = read_functions(&config.functions)?;
    ensure!(!functions.is_empty(), no_functions(&config.functions));
    let unsupported = if config.lenient { Unsupported::Widen } else { Unsupported::LeaveOut };
    let options = Options { unsupported, undeclared: Undeclared::Allow };
    match lower::calls(&functions, options) {
        Ok(calls) => {
            output::print(&match config.format {
                GrammarFormat::Gbnf => print::gbnf(&calls.grammar),
                GrammarFormat::Json => document::json(&calls.grammar)?,
                GrammarFormat::Svg => draw::svg(&calls.grammar),
            })?;
            Ok(if calls.refused.is_empty() { Exit::Done } else { Exit::SomeFailed })
        }
        // No grammar is left, but what was left out is still told.
        Err(GrammarError::NoFunctions { refused }) if config.format == GrammarFormat::Gbnf => {
            let mut text = String::new();
            for (function, (_, error)) in functions.iter().zip(&refused) {
                text.push_str(&print::comment(&lower::left_out(function, error)));
            }
            output::print(&text)?;
            Ok(Exit::SomeFailed)
        }
        Err(error) => Err(error).with_context(|| config.functions.to_string()),
    }
}

fn no_functions(source: &Source) -> String {
    format!("{source}: no functions; define at least one")
}

fn about_models(job: ModelJob) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    match job {
        ModelJob::List { models_dir } => {
            models::list(&models::search_dirs(models_dir.as_deref()), &mut text)?;
        }
        ModelJob::Path { name, models_dir } => {
            let dirs = models::search_dirs(models_dir.as_deref());
            models::path(name.as_deref(), &dirs, &mut text)?;
        }
        ModelJob::Fetch { name, models_dir, verbosity } => {
            return fetch(name, models_dir.as_deref(), verbosity);
        }
        #[cfg(feature = "engine")]
        ModelJob::Quantize { from, to, output, models_dir, verbosity } => {
            return bench::quantize_model(&from, &to, output, models_dir.as_deref(), verbosity);
        }
        #[cfg(not(feature = "engine"))]
        ModelJob::Quantize { .. } => return Err(anyhow!(NO_ENGINE)),
    }
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

fn fetch(
    name: Option<String>,
    models_dir: Option<&std::path::Path>,
    verbosity: Verbosity,
) -> anyhow::Result<Exit> {
    let request = FetchRequest { name, dir: models::fetch_dir(models_dir) };
    let mut config = FetchConfig::from_env();
    let mut log: Box<dyn std::io::Write> = Box::new(std::io::stderr());
    if verbosity == Verbosity::Quiet {
        config.progress = Progress::None;
        log = Box::new(std::io::sink());
    }
    let path = models::fetch_command(&models::catalog()?, &request, &config, &mut log)?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

fn answer_all(config: &RunConfig) -> anyhow::Result<Exit> {
    let functions = read_functions(&config.functions)?;
    let bytes = config.input.read()?;
    let requests = input::parse(&bytes).with_context(|| config.input.to_string())?;
    let need_functions = requests.iter().any(|request| request.functions.is_none());
    ensure!(!functions.is_empty() || !need_functions, no_functions(&config.functions));
    let output = OutputFile::create(&config.output)?;
    let report = config.report.as_ref().map(OutputFile::create).transpose()?;
    let mut terminal = Terminal::new(config.verbosity);
    terminal.begin(requests.len());
    if requests.is_empty() {
        let written = output.finish(&[])?;
        if let Some(report) = report {
            report.finish_lines(&[] as &[ReportLine])?;
        }
        terminal.end(&Summary::default(), config.output.path());
        return Ok(exit(written, &Summary::default()));
    }
    let interrupt = Interrupt::listen().context("taking over Ctrl-C")?;
    let mut run = Run::new(terminal, interrupt);
    run.min_confidence = config.min_confidence;
    let ended = run.answer(&config.ask, (&config.functions, &functions), &requests)?;
    match ended {
        Ended::Whole => {
            let written = output.finish(&run.records)?;
            if let Some(report) = report {
                report.finish_lines(&run.lines)?;
            }
            run.terminal.end(&run.summary, config.output.path());
            Ok(exit(written, &run.summary))
        }
        Ended::Interrupted => {
            let kept_in = output.keep_partial(&run.records)?;
            if let Some(report) = report {
                report.keep_partial_lines(&run.lines)?;
            }
            run.terminal.interrupted(run.records.len(), kept_in.as_deref());
            let signal = run.interrupt.signal().ok_or_else(|| anyhow!("interrupted"))?;
            Ok(Exit::Interrupted(signal))
        }
    }
}

fn exit(written: Written, summary: &Summary) -> Exit {
    match written {
        Written::Whole => summary.exit(),
        Written::ReaderLeft => Exit::Done,
    }
}

/// How the prompts came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "engine"), expect(dead_code, reason = "only the engine ends a run"))]
enum Ended {
    Whole,
    Interrupted,
}

/// A run on its way.
struct Run {
    terminal: Terminal,
    interrupt: Interrupt,
    /// Calls that are less likely are refused.
    min_confidence: Option<f64>,
    records: Vec<Record>,
    /// One for each record, where choices are weighed.
    lines: Vec<ReportLine>,
    summary: Summary,
}

impl Run {
    fn new(terminal: Terminal, interrupt: Interrupt) -> Self {
        let (records, lines, summary) = (Vec::new(), Vec::new(), Summary::default());
        Self { terminal, interrupt, min_confidence: None, records, lines, summary }
    }
}

#[cfg(not(feature = "engine"))]
#[expect(clippy::unused_self, reason = "it stands for the engine's")]
impl Run {
    fn answer(
        &mut self,
        _: &crate::config::AskConfig,
        _: (&Source, &[FunctionDef]),
        _: &[input::Request],
    ) -> anyhow::Result<Ended> {
        Err(anyhow!(NO_ENGINE))
    }
}
