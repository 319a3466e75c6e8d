//! A request in, what a model read and weighed on the way to its call out.

use std::fmt::Write as _;
use std::rc::Rc;

use anyhow::{Context, anyhow, ensure};

use super::answer::{cut_error, options};
use super::{no_functions, read_functions};
use crate::caller::{FunctionSet, Request, with_causes};
use crate::confidence::Confidence;
use crate::config::ExplainConfig;
use crate::engine::decode::{Generation, Watch};
use crate::grounding::grounding;
use crate::interrupt::Interrupt;
use crate::load;
use crate::output;
use crate::report::{Exit, Look, escape, whole};

/// Columns of a choice before the others.
const WIDTH: usize = 28;

pub(super) fn explain(config: &ExplainConfig) -> anyhow::Result<Exit> {
    let functions = read_functions(&config.functions)?;
    ensure!(!functions.is_empty(), no_functions(&config.functions));
    let set = FunctionSet::compile(functions, config.ask.lenient);
    let set =
        Rc::new(set.map_err(|error| anyhow!("{}: {}", config.functions, with_causes(&error)))?);
    let mut caller = load::load(&config.ask.model, &options(&config.ask))?;
    let look = Look::of_stdout();
    let mut text = String::new();
    if config.show_prompt {
        let prompt = caller.prompt(&set, &config.prompt)?;
        // Marks are for nobody, line ends for everybody.
        let lines: Vec<_> = prompt.lines().map(escape).collect();
        let _ = writeln!(text, "{}\n", look.dim(&lines.join("\n")));
    }
    let request = Request { index: 0, set: Rc::clone(&set), text: config.prompt.clone() };
    let interrupt = Interrupt::listen().context("taking over Ctrl-C")?;
    let answer = caller.call(request, &mut Heard(&interrupt));
    if let Some(signal) = interrupt.signal() {
        return Ok(Exit::Interrupted(signal));
    }
    let generation = match &answer {
        Ok(answer) => Some(&answer.generation),
        Err(error) => error.generation(),
    };
    if let Some(generation) = generation {
        text.push_str(&steps(generation, look));
    }
    let exit = match &answer {
        Ok(answer) => {
            let names = set.functions().iter().map(|function| function.name.as_str());
            let confidences = Confidence::of(&answer.generation, &names);
            if let Some(none) = answer.generation.none {
                let _ = writeln!(text, "\n{} sure that no function fits", percent(none));
            }
            for (at, call) in answer.calls.iter().enumerate() {
                let _ = writeln!(text, "\n{}", whole(call.name.as_str(), &call.parameters));
                if let Some(confidence) = confidences.get(at) {
                    text.push_str(&parts(confidence));
                }
                let values = grounding(&config.prompt, &call.parameters);
                for one in values.iter().filter(|one| one.in_prompt.is_none()) {
                    let _ = writeln!(text, "{} does not stand in the prompt", escape(&one.pointer));
                }
            }
            for (name, value) in &answer.left_out {
                let argument = format!("{name}={value}");
                let _ = writeln!(
                    text,
                    "left out, as it is optional and not in the prompt: {}",
                    escape(&argument)
                );
            }
            if answer.calls.is_empty() {
                text.push_str("\nno function fits\n");
            }
            if let Some(cut) = cut_error(&answer.generation) {
                let _ = writeln!(text, "{}", escape(&cut));
                Exit::SomeFailed
            } else {
                Exit::Done
            }
        }
        Err(error) => {
            let _ = writeln!(text, "\nno call: {}", escape(&with_causes(error)));
            Exit::SomeFailed
        }
    };
    output::print(&text)?;
    Ok(exit)
}

struct Heard<'a>(&'a Interrupt);

impl Watch for Heard<'_> {
    fn is_interrupted(&self) -> bool {
        self.0.is_set()
    }
    fn on_text(&mut self, _: u64, _: &[u8]) {}
}

/// A line for each choice, and for what the grammar forced between two of them.
fn steps(generation: &Generation, look: Look) -> String {
    let Generation { text, choices, .. } = generation;
    let mut out = String::new();
    let mut done = 0;
    for choice in choices {
        forced(&mut out, text.get(done..choice.at).unwrap_or_default(), look);
        let chosen = quoted(&choice.text);
        let _ = write!(out, "{:>7}  {chosen:WIDTH$}", percent(choice.probability));
        for (other, probability) in &choice.others {
            let _ = write!(out, "  {} {}", percent(*probability), quoted(other));
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        done = choice.at + choice.text.len();
    }
    forced(&mut out, text.get(done..).unwrap_or_default(), look);
    out
}

fn forced(out: &mut String, text: &str, look: Look) {
    if !text.is_empty() {
        let _ = writeln!(out, "{}", look.dim(&format!(" forced  {}", quoted(text))));
    }
}

/// Visible also where it is blank.
fn quoted(text: &str) -> String {
    format!("`{}`", escape(text))
}

fn percent(probability: f64) -> String {
    format!("{:.1} %", 100.0 * probability)
}

/// How sure the call and its parts are.
fn parts(confidence: &Confidence) -> String {
    let mut text =
        format!("{} sure: function {}", percent(confidence.call), percent(confidence.function));
    if let Some(other) = &confidence.runner_up {
        let _ = write!(text, " (next {} {})", escape(&other.name), percent(other.probability));
    }
    for argument in &confidence.arguments {
        let _ = write!(text, ", {} {}", escape(&argument.name), percent(argument.probability));
    }
    if confidence.end < 1.0 {
        let _ = write!(text, ", nothing more {}", percent(confidence.end));
    }
    text.push('\n');
    text
}
