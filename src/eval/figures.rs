//! Scored cases in; accuracy with its interval, ranked reasons, a comparison with an earlier run, and their text, out.
//!
//! **Invariant:** pure functions of the records, so that every figure can be computed anew from a file.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Grade, Reason, Scored, Scoring};
use crate::report::escape;

/// Right ones among so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many are right.
    pub n_right: u32,
    /// How many there are.
    pub n: u32,
}

impl Tally {
    fn of(verdicts: impl Iterator<Item = bool>) -> Self {
        let count =
            |Self { n_right, n }, right| Self { n_right: n_right + u32::from(right), n: n + 1 };
        verdicts.fold(Self::default(), count)
    }

    /// The share that is right, 0 to 1; 0 of none.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.n_right) / f64::from(self.n.max(1))
    }

    /// The 95 % interval of the share after Wilson (1927), which also holds for few cases and near 0 and 1.
    #[must_use]
    pub fn interval(self) -> [f64; 2] {
        const Z: f64 = 1.959_963_984_540_054;
        if self.n == 0 {
            return [0.0, 1.0];
        }
        let (p, n) = (self.share(), f64::from(self.n));
        let middle = p + Z * Z / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        [((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0)]
    }
}

/// The figures of a category, or of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// Right verdicts.
    #[serde(flatten)]
    pub right: Tally,
    /// Their share, 0 to 1.
    pub share: f64,
    /// The 95 % interval of the share.
    pub interval: [f64; 2],
    /// Of the exercise's prompts, how many have the right function and parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grades: Option<Grades>,
}

/// What is right about the calls for the exercise's prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "they are those of `Grade`")]
pub struct Grades {
    pub function: Tally,
    pub parameters: Tally,
}

impl Category {
    fn of(name: &str, scored: &[&Scored]) -> Self {
        let right = Tally::of(scored.iter().map(|one| one.right));
        let grades = || scored.iter().filter_map(|one| one.grade);
        let tally = |of: fn(Grade) -> bool| Tally::of(grades().map(of));
        let grades = Grades {
            function: tally(|grade| grade.function),
            parameters: tally(|grade| grade.parameters),
        };
        let grades = (grades.function.n > 0).then_some(grades);
        Self {
            name: name.to_owned(),
            right,
            share: right.share(),
            interval: right.interval(),
            grades,
        }
    }
}

/// A reason and how often it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ranked {
    /// The reason.
    pub reason: Reason,
    /// How many cases are wrong for it.
    pub n: usize,
}

/// Cases whose calls the model held about equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reliability {
    /// The least probability, and the one that is too much; of the last tenth 1 is in it.
    pub probability: [f64; 2],
    /// Right verdicts.
    #[serde(flatten)]
    pub right: Tally,
    /// The mean probability of these calls: of a calibrated model it is the share that is right.
    pub mean_probability: f64,
}

impl Reliability {
    /// One for each tenth of the probabilities that has a case.
    fn of(scored: &[Scored]) -> Vec<Self> {
        let tenths = (0..10).map(f64::from).filter_map(|tenth| {
            let probability = [tenth / 10.0, (tenth + 1.0) / 10.0];
            let is_last = probability[1] >= 1.0;
            let is_in = |p: f64| p >= probability[0] && (p < probability[1] || is_last);
            let own = || scored.iter().filter(|one| one.probability.is_some_and(is_in));
            let right = Tally::of(own().map(|one| one.right));
            let sum: f64 = own().filter_map(|one| one.probability).sum();
            let mean_probability = sum / f64::from(right.n);
            (right.n > 0).then_some(Self { probability, right, mean_probability })
        });
        tenths.collect()
    }
}

/// What a threshold of the probability that no function fits comes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TradeOff {
    /// There is no call from this probability on.
    pub threshold: f64,
    /// Cases where no function fits, and how many would have no call: rightly.
    pub none_fits: Tally,
    /// Cases that a function fits, and how many would have no call: wrongly.
    pub one_fits: Tally,
}

impl TradeOff {
    const THRESHOLDS: [f64; 10] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99];

    /// For each threshold; none where no case might have had no call.
    fn of(scored: &[Scored]) -> Vec<Self> {
        let known = || scored.iter().filter_map(|one| Some((one, one.no_call?)));
        let fits_none = |one: &Scored| match one.reason {
            Some(reason) => reason == Reason::Called,
            None => one.calls.as_ref().is_some_and(Vec::is_empty),
        };
        if known().next().is_none() {
            return Vec::new();
        }
        let at = |threshold: f64| {
            let tally = |none: bool| {
                let own = known().filter(|(one, _)| fits_none(one) == none);
                Tally::of(own.map(|(_, probability)| probability >= threshold))
            };
            Self { threshold, none_fits: tally(true), one_fits: tally(false) }
        };
        Self::THRESHOLDS.map(at).to_vec()
    }
}

/// The figures of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Every case.
    pub all: Category,
    /// In the order in which the cases name them.
    pub categories: Vec<Category>,
    /// Why cases are wrong, the most frequent reason first.
    pub reasons: Vec<Ranked>,
    /// Whether likelier calls are right more often.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reliability: Vec<Reliability>,
    /// What other thresholds of `--no-call` would have given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_call: Vec<TradeOff>,
}

impl Summary {
    /// Of scored cases.
    #[must_use]
    pub fn of(scored: &[Scored]) -> Self {
        let (mut names, mut reasons) = (Vec::new(), Vec::<Ranked>::new());
        for one in scored {
            if !names.contains(&&one.category) {
                names.push(&one.category);
            }
            match (one.reason, reasons.iter_mut().find(|ranked| Some(ranked.reason) == one.reason))
            {
                (_, Some(ranked)) => ranked.n += 1,
                (Some(reason), None) => reasons.push(Ranked { reason, n: 1 }),
                (None, None) => {}
            }
        }
        reasons.sort_by_key(|ranked| (Reverse(ranked.n), ranked.reason));
        let all: Vec<&Scored> = scored.iter().collect();
        let category = |name: &&String| {
            let own = all.iter().copied().filter(|one| one.category == **name);
            Category::of(name, &own.collect::<Vec<_>>())
        };
        let categories = names.iter().map(category).collect();
        let reliability = Reliability::of(scored);
        let no_call = TradeOff::of(scored);
        Self { all: Category::of("all", &all), categories, reasons, reliability, no_call }
    }

    /// Tables for the terminal.
    #[must_use]
    pub fn table(&self) -> String {
        let rows = || self.categories.iter().chain([&self.all]);
        let width = rows().map(|one| escape(&one.name).chars().count()).max().unwrap_or(0).max(8);
        let mut text = format!("{:width$}  right     of  share %  95 % interval\n", "category");
        // Writing to a String cannot fail.
        for Category { name, right, share, interval: [low, high], .. } in rows() {
            let [share, low, high] = [share, low, high].map(|share| 100.0 * share);
            let (name, Tally { n_right, n }) = (escape(name), right);
            let _ = writeln!(
                text,
                "{name:width$}  {n_right:>5}  {n:>5}  {share:>7.1}  {low:>5.1} to {high:.1}"
            );
        }
        let cell = |tally: &Tally| format!("{}/{}", tally.n_right, tally.n);
        if rows().any(|one| one.grades.is_some()) {
            let _ = writeln!(text, "\n{:width$}  function  parameters", "category");
        }
        for Category { name, grades, .. } in rows() {
            let Some(Grades { function, parameters }) = grades else { continue };
            let [function, parameters] = [function, parameters].map(cell);
            let name = escape(name);
            let _ = writeln!(text, "{name:width$}  {function:>8}  {parameters:>10}");
        }
        if !self.reasons.is_empty() {
            let _ = writeln!(text, "\n{:>7}  reason", "wrong");
        }
        for Ranked { reason, n } in &self.reasons {
            let _ = writeln!(text, "{n:>7}  {}", reason.name());
        }
        if !self.reliability.is_empty() {
            text.push_str("\nprobability    right     of  share %  mean probability %\n");
        }
        for one in &self.reliability {
            let ([low, high], Tally { n_right, n }) = (one.probability, one.right);
            let (share, mean) = (100.0 * one.right.share(), 100.0 * one.mean_probability);
            let _ = writeln!(
                text,
                "{low:.1} to {high:.1}   {n_right:>7}  {n:>5}  {share:>7.1}  {mean:>18.1}"
            );
        }
        if !self.no_call.is_empty() {
            text.push_str("\nno call from    where none fits    where one does\n");
        }
        for TradeOff { threshold, none_fits, one_fits } in &self.no_call {
            let [none_fits, one_fits] = [none_fits, one_fits].map(cell);
            let _ = writeln!(text, "{threshold:<12}  {none_fits:>17}  {one_fits:>17}");
        }
        text
    }
}

/// Of an earlier run's file, what a comparison needs.
#[derive(Debug, Deserialize)]
pub struct Earlier {
    /// How it was scored.
    pub scoring: Scoring,
    records: Vec<EarlierRecord>,
}

#[derive(Debug, Deserialize)]
struct EarlierRecord {
    id: Value,
    right: bool,
}

/// Two runs, case by case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The earlier file.
    pub with: String,
    /// Cases of both runs.
    pub n_paired: usize,
    /// Cases of one run alone.
    pub n_unpaired: usize,
    /// Right now and wrong before.
    pub fixed: Vec<Value>,
    /// Wrong now and right before.
    pub broken: Vec<Value>,
    /// Of the two-sided sign test over these.
    pub p_value: f64,
}

impl Comparison {
    /// Of the earlier run, whose file is called so, with this one.
    #[must_use]
    pub fn of(with: String, earlier: &Earlier, scored: &[Scored]) -> Self {
        let mut before: HashMap<String, bool> =
            earlier.records.iter().map(|one| (one.id.to_string(), one.right)).collect();
        let (mut fixed, mut broken, mut n_paired) = (Vec::new(), Vec::new(), 0);
        for Scored { id, right, .. } in scored {
            let Some(was_right) = before.remove(&id.to_string()) else { continue };
            n_paired += 1;
            match (was_right, right) {
                (false, true) => fixed.push(id.clone()),
                (true, false) => broken.push(id.clone()),
                _ => {}
            }
        }
        let p_value = sign_test(fixed.len(), broken.len());
        let n_unpaired = before.len() + scored.len() - n_paired;
        Self { with, n_paired, n_unpaired, fixed, broken, p_value }
    }

    /// For the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { with, n_paired, n_unpaired, fixed, broken, p_value } = self;
        let mut text = format!("\n{n_paired} cases paired with {}", escape(with));
        let _ = match n_unpaired {
            0 => writeln!(text),
            n => writeln!(text, ", {n} in one of the two alone"),
        };
        let p_value =
            if *p_value < 0.000_1 { "< 0.0001".to_owned() } else { format!("= {p_value:.4}") };
        let (n_fixed, n_broken) = (fixed.len(), broken.len());
        let _ =
            writeln!(text, "{n_fixed} fixed, {n_broken} broken, two-sided sign test p {p_value}");
        for (what, ids) in [("fixed", fixed), ("broken", broken)] {
            for id in ids {
                let _ = writeln!(text, "  {what:6}  {}", shown(id));
            }
        }
        text
    }
}

/// The probability that of so many changes one side has so few or fewer, were both as likely; two-sided, exact.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of cases")]
pub fn sign_test(one: usize, other: usize) -> f64 {
    let n = one + other;
    // As a logarithm, since 2^-n is 0 beyond some thousand changes.
    let mut term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = term.exp();
    for k in 1..=one.min(other) {
        term += ((n - k + 1) as f64 / k as f64).ln();
        tail += term.exp();
    }
    (2.0 * tail).min(1.0)
}

/// A file that a run was made with.
#[derive(Debug, Clone, Serialize)]
pub struct ModelFile {
    /// Its name, without folders.
    pub name: String,
    /// Its size.
    pub file_size_bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// What the file of a run has: what was run on what, the figures, and every record.
#[derive(Debug, Serialize)]
pub struct Report {
    /// When it began, UTC.
    pub time: String,
    /// Package, commit, bindings, CPU flags.
    pub build: Vec<String>,
    /// The files of cases.
    pub cases: Vec<String>,
    /// The file of predictions, where no model ran.
    pub predictions: Option<String>,
    /// The model, where one ran.
    pub model: Option<ModelFile>,
    /// How the model was asked.
    pub config: Option<Value>,
    /// Seconds of the prompts, loading the model left out.
    pub elapsed_s: Option<f64>,
    /// How it was scored.
    pub scoring: Scoring,
    /// The figures.
    pub summary: Summary,
    /// Against an earlier run.
    pub comparison: Option<Comparison>,
    /// Cases that there were; fewer have a record where the run was interrupted.
    pub n_cases: usize,
    /// Every case that was answered, in order.
    pub records: Vec<Scored>,
}

impl Report {
    /// The tables, with each failure behind them if `each` says so.
    #[must_use]
    pub fn text(&self, each: bool) -> String {
        let n = self.records.len();
        let mut text = match self.n_cases {
            n_cases if n < n_cases => format!("interrupted: {n} of {n_cases} cases\n\n"),
            _ => String::new(),
        };
        text.push_str(&self.summary.table());
        if each && self.summary.all.right.n_right < self.summary.all.right.n {
            text.push('\n');
        }
        for one in self.records.iter().filter(|one| each && !one.right) {
            let reason = one.reason.map_or("", Reason::name);
            let detail = one.detail.as_ref().or(one.error.as_ref()).map_or("", String::as_str);
            let line = format!("{}: {reason}: {}", shown(&one.id), escape(detail));
            let _ = writeln!(text, "{}", line.trim_end_matches(": "));
        }
        text.push_str(&self.comparison.as_ref().map_or(String::new(), Comparison::text));
        text
    }
}

/// An id as the terminal has it.
fn shown(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), |id| escape(id).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        // By hand: 0 of 10 has z² / (n + z²) above, 8 of 10 is the textbook's 0.490 to 0.943.
        for (n_right, n, [low, high]) in [
            (0, 0, [0.0, 1.0]),
            (0, 10, [0.0, 0.2775]),
            (8, 10, [0.4902, 0.9433]),
            (10, 10, [0.7225, 1.0]),
            (50, 100, [0.4038, 0.5962]),
        ] {
            let found = Tally { n_right, n }.interval();
            let is_near = (found[0] - low).abs() < 1e-4 && (found[1] - high).abs() < 1e-4;
            assert!(is_near, "{n_right} of {n}: {found:?}");
        }
    }

    #[test]
    fn the_sign_test_is_exact() {
        // By hand: 2 (C(n,0) + … + C(n,k)) / 2^n.
        for (one, other, expected) in [
            (0, 0, 1.0),
            (3, 3, 1.0),
            (5, 0, 2.0 / 32.0),
            (1, 9, 2.0 * 11.0 / 1024.0),
            (8, 2, 2.0 * 56.0 / 1024.0),
        ] {
            let found = sign_test(one, other);
            assert!((found - expected).abs() < 1e-12, "{one} {other}: {found}");
        }
        let many = sign_test(1_100, 900);
        assert!((8e-6..9e-6).contains(&many), "{many}");
    }

    #[test]
    fn cases_are_counted_by_the_tenth_of_their_probability() {
        let scored = |probability: Option<f64>, right| Scored {
            id: Value::Null,
            category: "c".to_owned(),
            prompt: String::new(),
            calls: None,
            error: None,
            probability,
            no_call: None,
            right,
            reason: None,
            detail: None,
            grade: None,
        };
        let all = [
            scored(Some(1.0), true),
            scored(Some(0.95), true),
            scored(Some(0.9), false),
            scored(Some(0.0), false),
            scored(None, true),
        ];
        let found: Vec<_> = Reliability::of(&all)
            .into_iter()
            .map(|one| (one.probability, one.right, (one.mean_probability * 100.0).round()))
            .collect();
        let tally = |n_right, n| Tally { n_right, n };
        assert_eq!(found, [([0.0, 0.1], tally(0, 1), 0.0), ([0.9, 1.0], tally(2, 3), 95.0)]);
        let table = Summary::of(&all).table();
        assert!(
            table.ends_with("0.9 to 1.0         2      3     66.7                95.0\n"),
            "{table}"
        );
        assert!(!Summary::of(&all[4..]).table().contains("probability"));
    }
}
