//! A job in, its exit out: the one place that calls the stages in order.
//!
//! **Invariant:** whatever can be wrong with the input or the output's place is found before a model
//! is loaded.
//! **Invariant:** one record a prompt, in the order of the input; a failed prompt keeps its place.

use std::fmt::Write as _;

use anyhow::{Context, anyhow, ensure};

use crate::config::{GrammarConfig, Job, ModelJob, RunConfig, Source};
use crate::definitions::{self, FunctionDef};
use crate::grammar::lower::{self, Unsupported};
use crate::grammar::print;
use crate::input::{self, Request};
use crate::interrupt::Interrupt;
use crate::models::{self, FetchConfig, FetchRequest, Progress};
use crate::output::{self, OutputFile, Record, Written};
use crate::report::{CallReport, Exit, Summary, Terminal, Verbosity};

/// Does a job.
///
/// # Errors
/// Why it could not be done, with the file and the place; a prompt that fails is no error.
pub fn run(job: Job) -> anyhow::Result<Exit> {
    match job {
        Job::Run(config) => answer_all(&config),
        Job::EmitGrammar(config) => emit_grammar(&config),
        Job::Model(job) => about_models(job),
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
    let calls = lower::calls(&functions, Unsupported::LeaveOut)
        .with_context(|| config.functions.to_string())?;
    output::print(&print::gbnf(&calls.grammar))?;
    Ok(if calls.refused.is_empty() { Exit::Done } else { Exit::SomeFailed })
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
    let mut terminal = Terminal::new(config.verbosity);
    terminal.begin(requests.len());
    if requests.is_empty() {
        let written = output.finish(&[])?;
        terminal.end(&Summary::default());
        return Ok(exit(written, &Summary::default()));
    }
    let interrupt = Interrupt::listen().context("taking over Ctrl-C")?;
    let mut run = Run { terminal, interrupt, records: Vec::new(), summary: Summary::default() };
    match run.answer(config, functions, &requests)? {
        Ended::Whole => {
            let written = output.finish(&run.records)?;
            run.terminal.end(&run.summary);
            Ok(exit(written, &run.summary))
        }
        Ended::Interrupted => {
            let kept_in = output.keep_partial(&run.records)?;
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
    records: Vec<Record>,
    summary: Summary,
}

#[cfg(not(feature = "engine"))]
impl Run {
    fn answer(
        &mut self,
        _: &RunConfig,
        _: Vec<FunctionDef>,
        _: &[Request],
    ) -> anyhow::Result<Ended> {
        Err(anyhow!("this callme was built without the feature `engine`, so it runs no model"))
    }
}

#[cfg(feature = "engine")]
mod engine {
    use std::num::NonZeroUsize;
    use std::time::Instant;

    use super::*;
    use crate::caller::{Answer, CallError, CallOptions, Caller, FunctionSet};
    use crate::engine::decode::{Generation, Limits, Watch};
    use crate::engine::gate::Sampling;
    use crate::engine::llama::Llama;
    use crate::prompt::PromptWriter;

    impl Run {
        /// Answers the requests one after the other.
        pub(super) fn answer(
            &mut self,
            config: &RunConfig,
            functions: Vec<FunctionDef>,
            requests: &[Request],
        ) -> anyhow::Result<Ended> {
            let mut shared = FunctionSet::compile(functions);
            if let Err(error) = &shared
                && requests.iter().any(|request| request.functions.is_none())
            {
                return Err(anyhow!("{}: {}", config.functions, chain(error)));
            }
            let mut caller = load(config)?;
            let start = Instant::now();
            if let Ok(set) = &mut shared
                && let Some(longest) = longest_over_shared(requests)
            {
                let mut watch = self.watch(0, set.functions().to_vec());
                match caller.share(set, longest, &mut watch) {
                    Err(error) if error.is_interrupt() => return Ok(Ended::Interrupted),
                    // Every prompt over these functions will say the same.
                    Err(error) => tracing::debug!(%error, "no shared prefix"),
                    Ok(()) => {}
                }
            }
            for (index, request) in requests.iter().enumerate() {
                let own = request.functions.clone().map(FunctionSet::compile);
                let answered = match own.as_ref().unwrap_or(&shared) {
                    Err(error) => Err(Failure { reason: chain(error), report: None }),
                    Ok(set) => {
                        let mut watch = self.watch(index, set.functions().to_vec());
                        match caller.call(set, &request.prompt, index as u64, &mut watch) {
                            Err(error) if error.is_interrupt() => return Ok(Ended::Interrupted),
                            answered => answered.map_err(Failure::from),
                        }
                    }
                };
                self.summary.elapsed = start.elapsed();
                self.finished(index, request, answered);
            }
            Ok(Ended::Whole)
        }

        fn watch(&mut self, index: usize, functions: Vec<FunctionDef>) -> Drawing<'_> {
            Drawing { terminal: &mut self.terminal, interrupt: &self.interrupt, index, functions }
        }

        fn finished(&mut self, index: usize, request: &Request, answered: Result<Answer, Failure>) {
            let mut record = Record {
                prompt: request.prompt.clone(),
                id: request.id.clone(),
                name: None,
                parameters: serde_json::Map::new(),
                error: None,
            };
            let report = match answered {
                Ok(Answer { call, generation }) => {
                    record.name = Some(call.name);
                    if let serde_json::Value::Object(parameters) = call.parameters {
                        record.parameters = parameters;
                    }
                    record.error = cut_error(&generation);
                    report(&generation)
                }
                Err(Failure { reason, report }) => {
                    record.error = Some(reason.clone());
                    CallReport { error: Some(reason), ..report.unwrap_or_default() }
                }
            };
            self.summary.add(&report);
            self.terminal.finished(index, &record, &report);
            self.records.push(record);
        }
    }

    /// Why a prompt has no call, and what it cost.
    struct Failure {
        reason: String,
        report: Option<CallReport>,
    }

    impl From<CallError> for Failure {
        fn from(error: CallError) -> Self {
            Self { reason: chain(&error), report: error.generation().map(report) }
        }
    }

    /// Draws the call as it grows, and hears Ctrl-C.
    struct Drawing<'a> {
        terminal: &'a mut Terminal,
        interrupt: &'a Interrupt,
        index: usize,
        functions: Vec<FunctionDef>,
    }

    impl Watch for Drawing<'_> {
        fn is_interrupted(&self) -> bool {
            self.interrupt.is_set()
        }

        fn on_text(&mut self, text: &[u8]) {
            self.terminal.draw(self.index, &self.functions, &String::from_utf8_lossy(text));
        }
    }

    fn load(config: &RunConfig) -> anyhow::Result<Caller<Llama>> {
        let dirs = models::search_dirs(config.models_dir.as_deref());
        let path = models::locate(&config.model, &dirs)?;
        tracing::info!(path = %path.display(), "model");
        let model = Llama::load(&path, threads(config.threads))?;
        let writer =
            PromptWriter::new(model.text(), &config.prompts).context("preparing the prompt")?;
        let sampling = if config.temperature > 0.0 {
            Sampling::Temperature { temperature: config.temperature }
        } else {
            Sampling::Greedy
        };
        let limits = Limits { max_value_tokens: config.max_value_tokens };
        Ok(Caller::new(model, writer, CallOptions { limits, sampling, seed: config.seed }))
    }

    /// Physical cores, within what the cgroup or the affinity leaves.
    fn threads(asked: Option<NonZeroUsize>) -> u32 {
        let available = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let n =
            asked.map_or_else(|| num_cpus::get_physical().clamp(1, available), NonZeroUsize::get);
        u32::try_from(n).unwrap_or(u32::MAX)
    }

    /// The longest prompt of those over the shared functions; `None` where there are too few for a
    /// shared prefix to pay.
    fn longest_over_shared(requests: &[Request]) -> Option<&str> {
        let over_shared = || requests.iter().filter(|request| request.functions.is_none());
        over_shared().nth(1)?;
        over_shared().map(|request| request.prompt.as_str()).max_by_key(|prompt| prompt.len())
    }

    fn report(generation: &Generation) -> CallReport {
        CallReport {
            n_tokens_free: generation.n_free as usize,
            n_tokens_forced: generation.n_forced as usize,
            n_tokens_prefill: (generation.n_prompt - generation.n_shared + generation.n_prefilled)
                as usize,
            elapsed: generation.elapsed,
            cut: !generation.cuts.is_empty(),
            error: None,
        }
    }

    fn cut_error(generation: &Generation) -> Option<String> {
        let mut text = String::new();
        for cut in &generation.cuts {
            let and = if text.is_empty() { "" } else { "; " };
            let _ = write!(
                text,
                "{and}the value of {:?} was cut at {} tokens (--max-value-tokens)",
                cut.parameter, cut.limit
            );
        }
        (!text.is_empty()).then_some(text)
    }
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}
