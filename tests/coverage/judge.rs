//! A schema with its instances to a verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use call_me_maybe::check::{Document, Outcome, Ranks, spell};
use call_me_maybe::definitions::{FunctionDef, FunctionName};
use call_me_maybe::grammar::GrammarError;
use call_me_maybe::grammar::lower::{CallGrammar, Options, calls};
use call_me_maybe::grammar::print::gbnf;
use call_me_maybe::grammar::recognize::Recognizer;
use serde_json::Value;

use super::cases::{Case, Instance, Random};
use super::walk::walk;

/// Walks that are tried and that must be judged.
pub(crate) const WALKS: (usize, usize) = (12, 5);
/// Fewest walks that the validator must have taken.
pub(crate) const MIN_WALKS: usize = 3;

/// What became of a schema.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) subset: String,
    pub(crate) id: String,
    /// Whether some instance is valid.
    pub(crate) has_valid: bool,
    pub(crate) result: Compiled,
    /// Schema text to GBNF text.
    pub(crate) compile: Duration,
    /// Most memory taken on the way.
    pub(crate) peak_bytes: usize,
    /// The same by llama.cpp's converter; `None` without the engine.
    pub(crate) theirs: Option<Duration>,
}

#[derive(Debug, Clone)]
pub(crate) enum Compiled {
    /// No grammar; why.
    Refused(String),
    /// A panic, ours wherever it is.
    Crashed(String),
    Grammar(Judged),
}

/// What its grammar does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    /// Valid instances that no spelling of is taken, with the reason.
    pub(crate) rejects_valid: Vec<String>,
    /// Invalid ones that are taken, as they are taken.
    pub(crate) accepts_invalid: Vec<String>,
    pub(crate) undecided: usize,
    pub(crate) n_walks: usize,
    /// Walks that the validator refuses, with the reason.
    pub(crate) bad_walks: Vec<String>,
    /// Why the validator cannot judge.
    pub(crate) no_validator: Option<String>,
    /// What llama.cpp says against it; `None` also without the engine.
    pub(crate) not_loaded: Option<String>,
}

impl Verdict {
    pub(crate) fn passes(&self) -> bool {
        matches!(&self.result, Compiled::Grammar(judged) if judged.is_good())
    }
}

impl Judged {
    fn is_good(&self) -> bool {
        self.rejects_valid.is_empty()
            && self.accepts_invalid.is_empty()
            && self.undecided == 0
            && self.bad_walks.is_empty()
            && self.n_walks >= MIN_WALKS
            && self.not_loaded.is_none()
    }
}

/// What judges beside us and where memory is counted; the quick tests go without.
pub(crate) trait Instruments {
    /// What llama.cpp says against a grammar.
    fn load(&self, gbnf: &str) -> Option<String>;
    /// The time of llama.cpp's own converter.
    fn convert(&self, schema: &str) -> Option<Duration>;
    /// Does the work and gives the most memory that it took.
    fn peak(&self, work: &mut dyn FnMut()) -> usize;
}

pub(crate) fn judge(case: &Case, seed: u64, instruments: &dyn Instruments) -> Verdict {
    let (mut peak_bytes, mut compile) = (0, Duration::ZERO);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut compiled = None;
        peak_bytes = instruments.peak(&mut || {
            let start = Instant::now();
            compiled = Some(grammar(case.schema.get()));
            compile = start.elapsed();
        });
        let (grammar, text) = match compiled {
            Some(Ok(compiled)) => compiled,
            Some(Err(reason)) => return Compiled::Refused(reason),
            None => return Compiled::Refused("not compiled".to_owned()),
        };
        // Cold the first time; most take so little that the caches decide.
        for _ in 0..if compile < Duration::from_millis(20) { 2 } else { 0 } {
            let start = Instant::now();
            let _ = std::hint::black_box(self::grammar(case.schema.get()));
            compile = compile.min(start.elapsed());
        }
        let not_loaded = instruments.load(&text);
        match Recognizer::new(&grammar.grammar) {
            Ok(start) => {
                Compiled::Grammar(Judged { not_loaded, ..judge_grammar(case, seed, &start) })
            }
            Err(error) => Compiled::Refused(format!("recognizer: {error}")),
        }
    }));
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Compiled::Crashed(text.unwrap_or_default())
    });
    Verdict {
        subset: case.subset.clone(),
        id: case.id.clone(),
        has_valid: case.instances.iter().any(|instance| instance.valid),
        result,
        compile,
        peak_bytes,
        theirs: instruments.convert(case.schema.get()),
    }
}

/// Compiles the schema of one function, `f`, from its text; the reason where that cannot be.
pub(crate) fn grammar(schema: &str) -> Result<(CallGrammar, String), String> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| format!("JSON: {error}"))?;
    let name = FunctionName::new("f").ok_or("name")?;
    let grammar = calls(&[FunctionDef::new(name, None, &schema)], Options::LEGAL)
        .map_err(|error| reason(&error))?;
    if let Some((_, error)) = grammar.refused.first() {
        return Err(format!("\"{}\" {}", error.keyword, error.reason));
    }
    let text = gbnf(&grammar.grammar);
    Ok((grammar, text))
}

/// Without the names of rules, so that equal reasons are counted together.
fn reason(error: &GrammarError) -> String {
    let text = error.to_string();
    let text: Vec<&str> =
        text.split(' ').map(|word| if word.contains('-') { "_" } else { word }).collect();
    format!("grammar: {}", text.join(" "))
}

/// Whether the rewriting of `1.0` to `1` changes the instance: draft 4 alone says that `1.0` is no integer.
fn is_told_by_its_fraction(schema: &Value, instance: &Instance) -> bool {
    let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let text = instance.data.get().as_bytes();
    let whole = |window: &[u8]| window[0].is_ascii_digit() && window[1..] == *b".0";
    draft.contains("draft-04") && text.windows(3).any(whole)
}

fn judge_grammar(case: &Case, seed: u64, start: &Recognizer) -> Judged {
    let mut judged = Judged::default();
    let Ok(schema) = serde_json::from_str::<Value>(case.schema.get()) else { return judged };
    let ranks = Ranks::of([&schema]);
    for instance in &case.instances {
        match (instance.valid, outcome(start, instance.data.get(), &ranks)) {
            (_, Outcome::Undecided) => judged.undecided += 1,
            (false, Outcome::Accepted(_)) if is_told_by_its_fraction(&schema, instance) => {}
            (false, Outcome::Accepted(text)) => {
                judged.accepts_invalid.push(format!("{}: {text}", instance.description));
            }
            (true, Outcome::Refused(refusal)) => judged.rejects_valid.push(format!(
                "{}: {}: expected {}, found {}",
                instance.description,
                refusal.pointer,
                refusal.expected_words(),
                String::from_utf8_lossy(&refusal.rest).chars().take(30).collect::<String>(),
            )),
            _ => {}
        }
    }
    let validator = match jsonschema::options().should_validate_formats(true).build(&schema) {
        Ok(validator) => validator,
        Err(error) => {
            judged.no_validator = Some(error.to_string());
            return judged;
        }
    };
    let mut random = Random::new(seed);
    for index in 0..WALKS.0 {
        if judged.n_walks == WALKS.1 {
            break;
        }
        let Some(text) = walk(start, &mut random, [60, 150, 400][index % 3]) else { continue };
        judged.n_walks += 1;
        let text = String::from_utf8_lossy(&text);
        let value: Value = match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(error) => {
                judged.bad_walks.push(format!("{error}: {text}"));
                continue;
            }
        };
        if let Err(error) = validator.validate(&value["arguments"]) {
            judged.bad_walks.push(format!("{}: {error}: {text}", error.schema_path()));
        }
    }
    judged
}

/// What becomes of an instance as the arguments of `f`.
pub(crate) fn outcome(start: &Recognizer, instance: &str, ranks: &Ranks) -> Outcome {
    match Document::call("\"f\"", instance, ["name", "arguments"]) {
        Ok(document) => spell(&document, start, ranks),
        // Deeper than any parser of calls would read.
        Err(_) => Outcome::Undecided,
    }
}
