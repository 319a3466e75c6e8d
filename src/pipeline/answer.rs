//! Requests in, records out, by a model: the part of the pipeline that needs the engine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Instant;

use anyhow::anyhow;
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::{Ended, Run};
use crate::caller::{self, Answer, CallError, CallOptions, FunctionSet, with_causes};
use crate::confidence::Confidence;
use crate::config::{AskConfig, Source};
use crate::definitions::FunctionDef;
use crate::engine::decode::{Generation, Limits, Watch};
use crate::engine::gate::Sampling;
use crate::input::Request;
use crate::interrupt::Interrupt;
use crate::load::{self, LoadOptions};
use crate::output::{Calls, Record};
use crate::prompt::CallCount;
use crate::report::{CallReport, ReportLine, Summary, Terminal, whole};

impl Run {
    /// Answers the requests, several at the same time; `source` is where the shared functions are from.
    pub(super) fn answer(
        &mut self,
        config: &AskConfig,
        (source, functions): (&Source, &[FunctionDef]),
        requests: &[Request],
    ) -> anyhow::Result<Ended> {
        let begin = Instant::now();
        let sets = Sets::new(functions, requests, config.lenient);
        let mut sets = sets.map_err(|reason| anyhow!("{source}: {reason}"))?;
        let mut caller = load::load(&config.model, &options(config))?;
        let interrupt = &self.interrupt;
        let desk = RefCell::new(Desk {
            terminal: &mut self.terminal,
            summary: &mut self.summary,
            records: &mut self.records,
            lines: &mut self.lines,
            min_confidence: self.min_confidence,
            count: config.prompts.calls,
            weighs: config.n_others.is_some(),
            waiting: BTreeMap::new(),
            functions,
            requests,
            begin,
            start: Instant::now(),
        });
        let mut in_order = requests.iter().enumerate().filter_map(|(index, request)| {
            let set = match sets.of(index, request) {
                Ok(set) => set,
                Err(reason) => {
                    desk.borrow_mut().answered(index, Err(Failure { reason, report: None }));
                    return None;
                }
            };
            Some(caller::Request { index: index as u64, set, text: request.prompt.clone() })
        });
        let mut watch = Drawing { desk: &desk, interrupt };
        let answered = caller.call_all(&mut in_order, &mut watch, &mut |index, answer| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            desk.borrow_mut().answered(index, answer.map_err(Failure::from));
        });
        match answered {
            Ok(()) => Ok(Ended::Whole),
            Err(error) if error.is_interrupt() => {
                desk.into_inner().leave();
                Ok(Ended::Interrupted)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The compiled functions of requests; the sets that these bring along, each as long as it is needed.
pub(super) struct Sets {
    lenient: bool,
    /// Of the requests without functions of their own, where there are any.
    shared: Option<Rc<FunctionSet>>,
    /// For each request with functions of its own, their text.
    keys: Vec<Option<Rc<str>>>,
    /// How many requests still need a set, and the set.
    known: FxHashMap<Rc<str>, (usize, Option<Compiled>)>,
}

/// A set, or why there is none.
pub(super) type Compiled = Result<Rc<FunctionSet>, String>;

impl Sets {
    /// Why the functions that requests share cannot be compiled is the error.
    pub(super) fn new(
        functions: &[FunctionDef],
        requests: &[Request],
        lenient: bool,
    ) -> Result<Self, String> {
        let key = |own: &Vec<FunctionDef>| -> Rc<str> {
            let tools: Vec<Value> = own.iter().map(FunctionDef::tool).collect();
            Value::Array(tools).to_string().into()
        };
        let keys: Vec<_> = requests.iter().map(|one| one.functions.as_ref().map(key)).collect();
        let mut known: FxHashMap<Rc<str>, (usize, Option<Compiled>)> = FxHashMap::default();
        for key in keys.iter().flatten() {
            known.entry(Rc::clone(key)).or_default().0 += 1;
        }
        let n_shared = keys.iter().filter(|key| key.is_none()).count();
        let compiled = || Self::compile(functions, n_shared > 1, lenient);
        let shared = (n_shared > 0).then(compiled).transpose()?;
        Ok(Self { lenient, shared, keys, known })
    }

    fn compile(functions: &[FunctionDef], is_shared: bool, lenient: bool) -> Compiled {
        let set = FunctionSet::compile(functions.to_vec(), lenient);
        let set = set.map_err(|error| with_causes(&error))?;
        if is_shared {
            set.share();
        }
        Ok(Rc::new(set))
    }

    /// The set of the request of that index, which asks once.
    pub(super) fn of(&mut self, index: usize, request: &Request) -> Compiled {
        let own = request.functions.as_deref().unwrap_or_default();
        let lenient = self.lenient;
        let Some(key) = self.keys[index].take() else {
            let shared = self.shared.clone();
            return shared.map_or_else(|| Self::compile(own, false, lenient), Ok);
        };
        let (n_left, known) = self.known.remove(&key).unwrap_or_default();
        let set = known.unwrap_or_else(|| Self::compile(own, n_left > 1, lenient));
        if n_left > 1 {
            self.known.insert(key, (n_left - 1, Some(set.clone())));
        }
        set
    }
}

/// Where answers arrive in any order and leave in that of the requests.
struct Desk<'a> {
    terminal: &'a mut Terminal,
    summary: &'a mut Summary,
    records: &'a mut Vec<Record>,
    lines: &'a mut Vec<ReportLine>,
    min_confidence: Option<f64>,
    count: CallCount,
    /// Whether choices are weighed, so that there are lines.
    weighs: bool,
    /// Answered before an earlier one.
    waiting: BTreeMap<usize, (Record, CallReport, Option<ReportLine>)>,
    functions: &'a [FunctionDef],
    requests: &'a [Request],
    /// Of the run, and of its first prompt.
    begin: Instant,
    start: Instant,
}

impl Desk<'_> {
    fn answered(&mut self, index: usize, answered: Result<Answer, Failure>) {
        self.summary.elapsed = self.start.elapsed();
        self.summary.first.get_or_insert_with(|| self.begin.elapsed());
        let mut record = self.blank(index);
        let mut confidences = Vec::new();
        let mut report = match answered {
            Ok(Answer { calls, left_out, generation }) => {
                let names = self.functions(index).iter().map(|function| function.name.as_str());
                confidences = Confidence::of(&generation, &names);
                record.calls = Calls::new(calls, self.count);
                record.error = cut_error(&generation);
                CallReport { left_out, ..report(&generation) }
            }
            Err(Failure { reason, report }) => {
                record.error = Some(reason.clone());
                CallReport { error: Some(reason), ..report.unwrap_or_default() }
            }
        };
        let refused = self.min_confidence.and_then(|min| {
            let mut calls = record.calls.as_slice().iter().zip(&confidences);
            let (call, confidence) = calls.find(|(_, one)| one.call < min)?;
            let (p, call) = (confidence.call, whole(call.name.as_str(), &call.parameters));
            Some(format!("its probability, {p:.3}, is below --min-confidence {min}: {call}"))
        });
        if refused.is_some() {
            report.error.clone_from(&refused);
        }
        // The line tells the call also where it is refused.
        let line = self.weighs.then(|| ReportLine::new(&record, &report, confidences));
        if refused.is_some() {
            record = Record { error: refused, ..self.blank(index) };
        }
        self.waiting.insert(index, (record, report, line));
        while let Some((record, report, line)) = self.waiting.remove(&self.records.len()) {
            self.summary.add(&report);
            self.terminal.finished(self.records.len(), &record, &report);
            self.records.push(record);
            self.lines.extend(line);
        }
    }

    /// The run ends here: what was answered after a gap keeps its place.
    fn leave(mut self) {
        for (index, (record, _, line)) in std::mem::take(&mut self.waiting) {
            while self.records.len() < index {
                let mut missing = self.blank(self.records.len());
                missing.error = Some("interrupted before it was answered".to_owned());
                if self.weighs {
                    self.lines.push(ReportLine::new(&missing, &CallReport::default(), Vec::new()));
                }
                self.records.push(missing);
            }
            self.records.push(record);
            self.lines.extend(line);
        }
    }

    /// Those that a request chooses from.
    fn functions(&self, index: usize) -> &[FunctionDef] {
        self.requests[index].functions.as_deref().unwrap_or(self.functions)
    }

    fn blank(&self, index: usize) -> Record {
        let request = &self.requests[index];
        Record {
            prompt: request.prompt.clone(),
            id: request.id.clone(),
            calls: Calls::new(Vec::new(), self.count),
            error: None,
        }
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

/// Draws the oldest call that is not finished as it grows, and hears Ctrl-C.
struct Drawing<'d, 'a> {
    desk: &'d RefCell<Desk<'a>>,
    interrupt: &'d Interrupt,
}

impl Watch for Drawing<'_, '_> {
    fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    fn on_text(&mut self, index: u64, text: &[u8]) {
        let desk = &mut *self.desk.borrow_mut();
        let oldest = desk.records.len();
        if index == oldest as u64 {
            let functions = desk.requests[oldest].functions.as_deref().unwrap_or(desk.functions);
            desk.terminal.draw(oldest, functions, &String::from_utf8_lossy(text));
        }
    }
}

pub(super) fn options(config: &AskConfig) -> LoadOptions {
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
        calls: CallOptions {
            limits,
            sampling,
            seed: config.seed,
            n_parallel: config.parallel.unwrap_or(load::DEFAULT_PARALLEL),
            forcing: true,
            n_others: config.n_others,
        },
        prefix_cache: config.prefix_cache.clone(),
    }
}

fn report(generation: &Generation) -> CallReport {
    CallReport {
        n_tokens_free: generation.n_free as usize,
        n_tokens_forced: generation.n_forced as usize,
        n_tokens_prefill: (generation.n_prompt - generation.n_shared + generation.n_prefilled)
            as usize,
        elapsed: generation.elapsed,
        no_call: generation.none,
        left_out: Vec::new(),
        cut: !generation.cuts.is_empty(),
        error: None,
    }
}

pub(super) fn cut_error(generation: &Generation) -> Option<String> {
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
