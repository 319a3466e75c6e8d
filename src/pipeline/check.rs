//! Texts and functions, or a grammar, to a line for each text: is it a legal call?

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anyhow::{Context, anyhow, ensure};

use super::{no_functions, read_functions};
use crate::caller::with_causes;
use crate::check::{self, Document, Outcome, Ranks, Refusal};
use crate::config::{Against, CheckConfig};
use crate::definitions::FunctionDef;
use crate::grammar::lower::{self, CallGrammar, Options};
use crate::grammar::parse;
use crate::grammar::recognize::Recognizer;
use crate::input::Place;
use crate::output;
use crate::report::{Exit, Look, Verbosity, escape, excerpt};
use crate::validate::Validator;

/// Why a text is not legal.
enum Problem {
    /// The grammar ends before it.
    Refused(Refusal),
    /// Something else, in words.
    Other(String),
}

pub(super) fn check(config: &CheckConfig) -> anyhow::Result<Exit> {
    let texts = || config.texts.read();
    let mut spelled = "";
    let results = match &config.against {
        Against::Functions { functions, function, exact } => {
            let all = read_functions(functions)?;
            ensure!(!all.is_empty(), no_functions(functions));
            let calls =
                Calls::new(all, function.as_deref()).with_context(|| functions.to_string())?;
            let bytes = texts()?;
            if *exact {
                calls.exact_lines(&bytes)
            } else {
                spelled = ", spelled anew";
                calls.texts(&bytes)
            }
        }
        Against::Grammar { grammar, model, models_dir } => {
            let text = String::from_utf8(grammar.read()?)
                .map_err(|_| anyhow!("not UTF-8; save the file as UTF-8"))
                .with_context(|| grammar.to_string())?;
            let start = start(&text, model.as_deref(), models_dir.as_deref())
                .with_context(|| grammar.to_string())?;
            let bytes = texts()?;
            let result = check::exact(&start, &bytes)
                .or_else(|error| match bytes.strip_suffix(b"\n") {
                    // It may be the file's end of line, or the grammar's own.
                    Some(bytes) => check::exact(&start, bytes),
                    None => Err(error),
                })
                // No pointer leads into what need not be JSON.
                .map_err(|refusal| Problem::Refused(Refusal { pointer: String::new(), ..refusal }));
            vec![(Place::Whole, result)]
        }
    };
    tell(&results, spelled, config.verbosity)
}

/// A grammar file's recognizer.
fn start(
    text: &str,
    model: Option<&str>,
    models_dir: Option<&std::path::Path>,
) -> anyhow::Result<Recognizer> {
    let grammar = match model {
        None => parse::gbnf(text, None)?,
        Some(model) => with_vocabulary(text, model, models_dir)?,
    };
    Ok(Recognizer::new(&grammar)?)
}

#[cfg(feature = "engine")]
fn with_vocabulary(
    text: &str,
    model: &str,
    models_dir: Option<&std::path::Path>,
) -> anyhow::Result<crate::grammar::Grammar> {
    use crate::engine::TokenId;
    use crate::engine::llama::Vocabulary;
    use crate::models;

    let path = models::locate(model, &models::search_dirs(models_dir))?;
    let vocabulary = Vocabulary::load(&path)?;
    let vocab = vocabulary.vocab();
    let bytes = |token: parse::Token<'_>| {
        let id = match token {
            parse::Token::Id(id) => TokenId(id),
            parse::Token::Text(text) => match vocabulary.tokenize(text, true).as_slice() {
                [only] => *only,
                _ => return None,
            },
        };
        (id.index() < vocab.len()).then(|| vocab.bytes(id).to_vec())
    };
    Ok(parse::gbnf(text, Some(&bytes))?)
}

#[cfg(not(feature = "engine"))]
fn with_vocabulary(
    _: &str,
    _: &str,
    _: Option<&std::path::Path>,
) -> anyhow::Result<crate::grammar::Grammar> {
    Err(anyhow!("this callme was built without the feature `engine`, so it reads no vocabulary"))
}

/// The calls of some functions.
struct Calls {
    function: Option<String>,
    grammar: CallGrammar,
    start: Recognizer,
    ranks: Ranks,
    validator: Validator,
    definitions: Vec<FunctionDef>,
}

impl Calls {
    fn new(mut functions: Vec<FunctionDef>, function: Option<&str>) -> anyhow::Result<Self> {
        if let Some(name) = function {
            functions.retain(|function| function.name.as_str() == name);
            ensure!(!functions.is_empty(), "there is no function {name:?}");
        }
        let grammar = lower::calls(&functions, Options::LEGAL)?;
        Ok(Self {
            function: function.map(str::to_owned),
            start: Recognizer::new(&grammar.grammar)?,
            ranks: Ranks::of(functions.iter().map(|function| &function.parameters)),
            validator: Validator::new(&functions, Options::LEGAL),
            grammar,
            definitions: functions,
        })
    }

    /// Reads the texts, and writes each anew.
    fn texts(&self, bytes: &[u8]) -> Vec<(Place, Result<(), Problem>)> {
        let file = match std::str::from_utf8(bytes) {
            Ok(file) => file,
            Err(error) => {
                let problem = format!("not UTF-8 at byte {}", error.valid_up_to());
                return vec![(Place::Whole, Err(Problem::Other(problem)))];
            }
        };
        let texts = check::texts(file).into_iter();
        texts.map(|(place, text)| (place, self.text(text))).collect()
    }

    fn text(&self, text: &str) -> Result<(), Problem> {
        let document = check::call(text, self.function.as_deref())
            .map_err(|error| Problem::Other(with_causes(&error)))?;
        match check::spell(&document, &self.start, &self.ranks) {
            Outcome::Accepted(text) => self.valid(&document, &text),
            Outcome::Undecided => {
                let steps = check::MAX_STEPS;
                Err(Problem::Other(format!("undecided: too many spellings for {steps} steps")))
            }
            Outcome::Refused(refusal) => Err(self.why(refusal)),
        }
    }

    /// Takes each line as it is.
    fn exact_lines(&self, bytes: &[u8]) -> Vec<(Place, Result<(), Problem>)> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let only = lines.len() == 1;
        let place = |index| if only { Place::Whole } else { Place::Line(index + 1) };
        let lines = lines.into_iter().enumerate();
        lines.map(|(index, line)| (place(index), self.exact(line))).collect()
    }

    fn exact(&self, line: &[u8]) -> Result<(), Problem> {
        // The arguments alone are the call without what the function's name makes sure.
        let head = self.function.as_ref().map(|name| {
            let name = serde_json::Value::from(name.as_str());
            format!("{{\"name\": {name}, \"arguments\": ").into_bytes()
        });
        let head = head.filter(|head| !line.starts_with(head)).unwrap_or_default();
        let tail: &[u8] = if head.is_empty() { b"" } else { b"}" };
        let call = [&head, line, tail].concat();
        check::exact(&self.start, &call).map_err(|mut refusal| {
            refusal.taken.drain(..head.len().min(refusal.taken.len()));
            refusal.rest.truncate(line.len().saturating_sub(refusal.taken.len()));
            if !head.is_empty() {
                refusal.pointer = refusal.pointer.replacen("/arguments", "", 1);
            }
            self.why(refusal)
        })?;
        let text = String::from_utf8_lossy(&call);
        match Document::parse(&text) {
            Ok(document) => self.valid(&document, &text),
            Err(error) => Err(Problem::Other(with_causes(&error))),
        }
    }

    /// What only a parser and the validator see.
    fn valid(&self, document: &Document, text: &str) -> Result<(), Problem> {
        if let Some(pointer) = document.repeated_key() {
            return Err(Problem::Other(format!("{pointer}: the key is there twice")));
        }
        match self.validator.validate(text) {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(Problem::Other(format!("the grammar takes it, but {}", with_causes(&error))))
            }
        }
    }

    /// A function without a grammar has a better reason than where its calls end.
    fn why(&self, refusal: Refusal) -> Problem {
        let taken = String::from_utf8_lossy(&refusal.taken);
        let refused = self.grammar.refused.iter().find(|(name, _)| {
            let name = serde_json::Value::from(name.as_str());
            taken.starts_with(&format!("{{\"name\": {name}"))
        });
        match refused {
            Some((name, error)) => {
                let definition = self.definitions.iter().find(|function| function.name == *name);
                let error = definition.map_or(error.clone(), |function| error.in_file(function));
                Problem::Other(format!("{:?} cannot be called: {error}", name.as_str()))
            }
            None => Problem::Refused(refusal),
        }
    }
}

/// A line for each text to stdout, the refused ones to look at to stderr.
///
/// `spelled` is what a byte's number counts in, where that is not the file.
fn tell(
    results: &[(Place, Result<(), Problem>)],
    spelled: &str,
    verbosity: Verbosity,
) -> anyhow::Result<Exit> {
    let look = Look::of_stderr();
    let mut lines = String::new();
    let mut pictures = String::new();
    for (place, result) in results {
        let place = match place {
            Place::Whole => "the text".to_owned(),
            Place::Element(index) => format!("record {}", index + 1),
            Place::Line(line) => format!("line {line}"),
        };
        match result {
            // Writing to a String cannot fail.
            Ok(()) => {
                let _ = writeln!(lines, "{place}: ok");
            }
            Err(Problem::Other(reason)) => {
                let _ = writeln!(lines, "{place}: not ok: {}", escape(reason));
            }
            Err(Problem::Refused(refusal)) => {
                let words = refusal.expected_words();
                let at = if refusal.pointer.is_empty() {
                    String::new()
                } else {
                    format!("{}: ", refusal.pointer)
                };
                let reason = format!("{at}expected {words}");
                let _ = writeln!(lines, "{place}: not ok: {}", escape(&reason));
                let [line, mark] = excerpt(&refusal.taken, &refusal.rest);
                let byte = refusal.taken.len();
                let _ = writeln!(
                    pictures,
                    "{place}{spelled}, byte {byte}:\n  {line}\n  {}",
                    look.mark(&mark)
                );
            }
        }
    }
    let n_bad = results.iter().filter(|(_, result)| result.is_err()).count();
    output::print(&lines)?;
    if verbosity != Verbosity::Quiet {
        // Nobody may be there to read.
        let _ = io::stderr().write_all(pictures.as_bytes());
    }
    Ok(if n_bad == 0 { Exit::Done } else { Exit::SomeFailed })
}
