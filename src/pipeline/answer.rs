//! Requests in, records out, by a model: the part of the pipeline that needs the engine.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::anyhow;
use serde_json::{Map, Value};

use super::{Ended, Run};
use crate::caller::{Answer, CallError, CallOptions, FunctionSet, with_causes};
use crate::config::RunConfig;
use crate::definitions::FunctionDef;
use crate::engine::decode::{Generation, Limits, Watch};
use crate::engine::gate::Sampling;
use crate::input::Request;
use crate::interrupt::Interrupt;
use crate::load::{self, LoadOptions};
use crate::output::Record;
use crate::report::{CallReport, Terminal};

impl Run {
    /// Answers the requests one after the other.
    pub(super) fn answer(
        &mut self,
        config: &RunConfig,
        functions: Vec<FunctionDef>,
        requests: &[Request],
    ) -> anyhow::Result<Ended> {
        let mut shared = FunctionSet::compile(functions, config.lenient);
        if let Err(error) = &shared
            && requests.iter().any(|request| request.functions.is_none())
        {
            return Err(anyhow!("{}: {}", config.functions, with_causes(error)));
        }
        let mut caller = load::load(&config.model, &options(config))?;
        let start = Instant::now();
        if let Ok(set) = &mut shared
            && let Some(longest) = longest_over_shared(requests)
        {
            let mut watch = self.watch(0, &[]);
            match caller.share(set, longest, &mut watch) {
                Err(error) if error.is_interrupt() => return Ok(Ended::Interrupted),
                // Every prompt over these functions will say the same.
                Err(error) => tracing::debug!(%error, "no shared prefix"),
                Ok(()) => {}
            }
        }
        for (index, request) in requests.iter().enumerate() {
            let own =
                request.functions.clone().map(|own| FunctionSet::compile(own, config.lenient));
            let answered = match own.as_ref().unwrap_or(&shared) {
                Err(error) => Err(Failure { reason: with_causes(error), report: None }),
                Ok(set) => {
                    let mut watch = self.watch(index, set.functions());
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

    fn watch<'a>(&'a mut self, index: usize, functions: &'a [FunctionDef]) -> Drawing<'a> {
        Drawing { terminal: &mut self.terminal, interrupt: &self.interrupt, index, functions }
    }

    fn finished(&mut self, index: usize, request: &Request, answered: Result<Answer, Failure>) {
        let mut record = Record {
            prompt: request.prompt.clone(),
            id: request.id.clone(),
            name: None,
            parameters: Value::Object(Map::new()),
            error: None,
        };
        let report = match answered {
            Ok(Answer { call, generation }) => {
                record.name = Some(call.name);
                record.parameters = call.parameters;
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
        Self { reason: with_causes(&error), report: error.generation().map(report) }
    }
}

/// Draws the call as it grows, and hears Ctrl-C.
struct Drawing<'a> {
    terminal: &'a mut Terminal,
    interrupt: &'a Interrupt,
    index: usize,
    functions: &'a [FunctionDef],
}

impl Watch for Drawing<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    fn on_text(&mut self, text: &[u8]) {
        self.terminal.draw(self.index, self.functions, &String::from_utf8_lossy(text));
    }
}

fn options(config: &RunConfig) -> LoadOptions {
    let sampling = if config.temperature > 0.0 {
        Sampling::Temperature { temperature: config.temperature }
    } else {
        Sampling::Greedy
    };
    let limits = Limits { max_value_tokens: config.max_value_tokens };
    LoadOptions {
        models_dir: config.models_dir.clone(),
        threads: config.threads,
        prompts: config.prompts.clone(),
        calls: CallOptions { limits, sampling, seed: config.seed },
    }
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
