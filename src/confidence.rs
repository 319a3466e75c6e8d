//! The weighed choices of a generation in; how sure the model was of the function, of each argument and of the
//! whole call, out.
//!
//! The probability of a part is that of all choices that made it, each renormalized over what the grammar
//! allowed there; what the grammar forced is sure. An argument's includes the choice to give it at all.
//!
//! **Invariant:** the product of the function's, the arguments' and the end's is the call's.

use serde::Serialize;
use serde_json::Value;

use crate::engine::decode::{Choice, Generation, OPENING, ValueSpan};

/// How sure a call is. Probabilities are 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confidence {
    /// Of the whole call.
    pub call: f64,
    /// Of the function's name.
    pub function: f64,
    /// The function that was likeliest instead.
    pub runner_up: Option<RunnerUp>,
    /// Of each argument up to the last choice, in order; those after it were forced.
    pub arguments: Vec<ArgumentConfidence>,
    /// Of there being no further argument.
    pub end: f64,
}

/// A function, or several that begin alike, that was not chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunnerUp {
    /// Its name; where several begin alike so far, that beginning and `…`.
    pub name: String,
    /// 0 to 1.
    pub probability: f64,
}

/// How sure an argument is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArgumentConfidence {
    /// The parameter's name.
    pub name: String,
    /// 0 to 1.
    pub probability: f64,
}

impl Confidence {
    /// Of each call of a generation whose choices were weighed, of one whose were not none; `names` are those of all
    /// functions that were offered.
    #[must_use]
    pub fn of<'a>(
        generation: &Generation,
        names: &(impl Iterator<Item = &'a str> + Clone),
    ) -> Vec<Self> {
        let Generation { text, choices, values, n_free, .. } = generation;
        if choices.is_empty() && *n_free > 0 {
            return Vec::new();
        }
        let mut start = 0;
        let calls = text.lines().map(|text| {
            let range = start..start + text.len();
            start = range.end + 1;
            let choices = choices.iter().filter(|choice| range.contains(&choice.at));
            let choices = choices.map(|one| Choice { at: one.at - range.start, ..one.clone() });
            let values = values.iter().filter(|one| range.start < one.end && one.end <= range.end);
            let values = values.map(|one| ValueSpan { end: one.end - range.start, ..one.clone() });
            Self::of_call(text, &choices.collect::<Vec<_>>(), &values.collect::<Vec<_>>(), names)
        });
        calls.collect()
    }

    fn of_call<'a>(
        text: &str,
        choices: &[Choice],
        values: &[ValueSpan],
        names: &(impl Iterator<Item = &'a str> + Clone),
    ) -> Self {
        let name_end = name_end(text);
        let argument = |name: &String| ArgumentConfidence { name: name.clone(), probability: 1.0 };
        let mut found = Self {
            call: 1.0,
            function: 1.0,
            runner_up: None,
            arguments: values.iter().map(|value| argument(&value.parameter)).collect(),
            end: 1.0,
        };
        for choice in choices {
            found.call *= choice.probability;
            if choice.at < name_end {
                let begun = text.get(..choice.at).and_then(|text| text.strip_prefix(OPENING));
                for (other, probability) in &choice.others {
                    let probability = found.function * probability;
                    let best = found.runner_up.as_ref().map_or(0.0, |best| best.probability);
                    if probability <= best {
                        break;
                    }
                    let begun = begun.map(|begun| format!("{begun}{other}")).unwrap_or_default();
                    // A shorter token on the way to the chosen name tells of no other function.
                    if !text[OPENING.len()..name_end].starts_with(&begun) {
                        let name = runner_up(&begun, names.clone());
                        found.runner_up = Some(RunnerUp { name, probability });
                    }
                }
                found.function *= choice.probability;
            } else if let Some(at) = values.iter().position(|value| choice.at < value.end) {
                found.arguments[at].probability *= choice.probability;
            } else {
                found.end *= choice.probability;
            }
        }
        found
    }
}

/// Where the name of the function ends, its quotation mark included.
fn name_end(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(OPENING) else { return 0 };
    let mut names = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    match names.next() {
        Some(Ok(_)) => OPENING.len() + names.byte_offset(),
        _ => 0,
    }
}

/// The one function whose name, as JSON, begins so; else that beginning.
fn runner_up<'a>(begun: &str, names: impl Iterator<Item = &'a str>) -> String {
    // A token may reach beyond the name.
    let whole = begun[1.min(begun.len())..].find('"').map(|at| &begun[..at + 2]);
    let begun = whole.unwrap_or(begun);
    let mut fitting = names.filter(|name| Value::from(*name).to_string().starts_with(begun));
    match (fitting.next(), fitting.next()) {
        (Some(name), None) => name.to_owned(),
        _ => format!("{}…", begun.trim_start_matches('"')),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn generation(
        text: &str,
        choices: &[(&str, f64, &str, f64)],
        ends: &[(&str, &str)],
    ) -> Generation {
        let mut at = 0;
        let choices: Vec<Choice> = choices
            .iter()
            .map(|&(piece, probability, other, p)| {
                at += text[at..].find(piece).unwrap();
                let others = vec![(other.to_owned(), p)];
                let choice = Choice { at, text: piece.to_owned(), probability, others };
                at += piece.len();
                choice
            })
            .collect();
        let values = ends
            .iter()
            .map(|(parameter, value)| {
                let end = text.find(value).unwrap() + value.len();
                ValueSpan { parameter: (*parameter).to_owned(), end }
            })
            .collect();
        let n_free = u32::try_from(choices.len()).unwrap();
        Generation { text: text.to_owned(), n_free, choices, values, ..Generation::default() }
    }

    #[test]
    fn every_choice_counts_for_its_part() {
        let text = r#"{"name": "get_time", "arguments": {"zone": "UTC", "h": 12}}"#;
        let choices = [
            ("get", 0.5, "add", 0.4),
            ("time", 0.5, "tide\", ", 0.4),
            ("UTC", 0.5, "x", 0.1),
            (", \"h", 0.25, "}", 0.75),
            ("12", 0.5, "1", 0.5),
            ("}}", 1.0, "", 0.0),
        ];
        let generation = generation(text, &choices, &[("zone", "\"UTC\""), ("h", "12}")]);
        let names = ["get_time", "get_tide", "add_one", "add_two"];
        let found = Confidence::of(&generation, &names.into_iter()).remove(0);
        assert_eq!((found.function, found.end, found.call), (0.25, 1.0, 0.015_625));
        let probabilities: Vec<_> = found.arguments.iter().map(|one| one.probability).collect();
        assert_eq!(probabilities, [0.5, 0.125]);
        assert_eq!(found.runner_up.unwrap(), RunnerUp { name: "add…".into(), probability: 0.4 });
        let choices = [("get", 1.0, "add", 0.0), ("time", 0.5, "tide\", ", 0.4)];
        let found =
            Confidence::of(&self::generation(text, &choices, &[]), &names.into_iter()).remove(0);
        let runner_up = RunnerUp { name: "get_tide".into(), probability: 0.4 };
        assert_eq!(found.runner_up.unwrap(), runner_up);
    }

    #[test]
    fn choices_that_were_not_weighed_say_nothing() {
        let text = r#"{"name": "f", "arguments": {}}"#.to_owned();
        let sure = Generation { text, ..Generation::default() };
        assert!(Confidence::of(&sure, &std::iter::empty())[0].call >= 1.0, "all was forced");
        let generation = Generation { n_free: 2, ..sure };
        assert_eq!(Confidence::of(&generation, &std::iter::empty()), []);
    }
}
