//! Verdicts to tables, and to JSON.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::judge::{Compiled, Judged, Verdict};

/// Reasons that a table lists.
const MAX_REASONS: usize = 40;

#[derive(Default)]
struct Counts {
    schemas: usize,
    compiled: usize,
    crashed: usize,
    not_loaded: usize,
    rejects_valid: usize,
    accepts_invalid: usize,
    undecided: usize,
    bad_walks: usize,
    few_walks: usize,
    pass: usize,
}

impl Counts {
    fn of<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        let mut counts = Self::default();
        for verdict in verdicts {
            counts.schemas += 1;
            counts.pass += usize::from(verdict.passes());
            match &verdict.result {
                Compiled::Refused(_) => {}
                Compiled::Crashed(_) => counts.crashed += 1,
                Compiled::Grammar(judged) => {
                    counts.compiled += 1;
                    counts.not_loaded += usize::from(judged.not_loaded.is_some());
                    counts.rejects_valid += usize::from(!judged.rejects_valid.is_empty());
                    counts.accepts_invalid += usize::from(!judged.accepts_invalid.is_empty());
                    counts.undecided += usize::from(judged.undecided > 0);
                    counts.bad_walks += usize::from(!judged.bad_walks.is_empty());
                    counts.few_walks += usize::from(judged.has_few_walks());
                }
            }
        }
        counts
    }

    #[expect(clippy::cast_precision_loss, reason = "a share to show")]
    fn pass_percent(&self) -> f64 {
        100.0 * self.pass as f64 / self.schemas.max(1) as f64
    }

    fn row(&self, name: &str) -> String {
        let Self { schemas, compiled, crashed, not_loaded, .. } = self;
        format!(
            "{name:<24}{schemas:>8}{compiled:>9}{crashed:>7}{not_loaded:>12}{:>9}{:>9}{:>11}{:>11}{:>11}{:>8.1}\n",
            self.rejects_valid,
            self.accepts_invalid,
            self.undecided,
            self.bad_walks,
            self.few_walks,
            self.pass_percent()
        )
    }

    fn json(&self) -> Value {
        json!({
            "schemas": self.schemas, "compiled": self.compiled, "crashed": self.crashed,
            "not_loaded": self.not_loaded, "rejects_valid": self.rejects_valid,
            "accepts_invalid": self.accepts_invalid, "undecided": self.undecided,
            "bad_walks": self.bad_walks, "few_walks": self.few_walks, "pass": self.pass,
            "pass_percent": self.pass_percent(),
        })
    }
}

/// A row for each subset, then with and without a valid instance, then all.
pub(crate) fn by_subset(verdicts: &[Verdict]) -> String {
    let mut text = format!(
        "{:<24}{:>8}{:>9}{:>7}{:>12}{:>9}{:>9}{:>11}{:>11}{:>11}{:>8}\n",
        "subset",
        "schemas",
        "compiled",
        "crash",
        "not loaded",
        "rejects",
        "accepts",
        "undecided",
        "bad walks",
        "few walks",
        "pass %"
    );
    for (name, counts) in groups(verdicts) {
        text.push_str(&counts.row(&name));
    }
    text
}

fn groups(verdicts: &[Verdict]) -> Vec<(String, Counts)> {
    let mut subsets: BTreeMap<&str, Vec<&Verdict>> = BTreeMap::new();
    for verdict in verdicts {
        subsets.entry(&verdict.subset).or_default().push(verdict);
    }
    let mut groups: Vec<(String, Counts)> = subsets
        .into_iter()
        .map(|(name, verdicts)| (name.to_owned(), Counts::of(verdicts)))
        .collect();
    let (with, without): (Vec<&Verdict>, Vec<&Verdict>) =
        verdicts.iter().partition(|verdict| verdict.has_valid);
    groups.push(("with a valid instance".to_owned(), Counts::of(with)));
    groups.push(("without".to_owned(), Counts::of(without)));
    groups.push(("all".to_owned(), Counts::of(verdicts)));
    groups
}

/// Why schemas do not pass, the most frequent first; each under the first reason that applies.
pub(crate) fn reasons(verdicts: &[Verdict]) -> Vec<(String, Vec<&Verdict>)> {
    let mut reasons: HashMap<String, Vec<&Verdict>> = HashMap::new();
    for verdict in verdicts {
        if let Some((reason, _)) = verdict.trouble() {
            reasons.entry(reason).or_default().push(verdict);
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by(|(a, x), (b, y)| y.len().cmp(&x.len()).then(a.cmp(b)));
    reasons
}

pub(crate) fn reason_table(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    let reasons = reasons(verdicts);
    for (reason, of) in reasons.iter().take(MAX_REASONS) {
        let id = of.first().map_or("", |verdict| &verdict.id);
        let _ = writeln!(text, "{:>6}  {reason}  (as {id})", of.len());
    }
    if let Some(rest) = reasons.get(MAX_REASONS..).filter(|rest| !rest.is_empty()) {
        let n: usize = rest.iter().map(|(_, of)| of.len()).sum();
        let _ = writeln!(text, "{n:>6}  {} more reasons", rest.len());
    }
    text
}

impl Verdict {
    /// Why it does not pass, and an example.
    pub(crate) fn trouble(&self) -> Option<(String, String)> {
        let judged = match &self.result {
            Compiled::Refused(reason) => {
                return Some((format!("refused: {reason}"), String::new()));
            }
            Compiled::Crashed(reason) => return Some(("crash".to_owned(), reason.clone())),
            Compiled::Grammar(judged) => judged,
        };
        let first = |texts: &[String]| texts.first().cloned();
        let named =
            |name: &str, example: Option<String>| example.map(|text| (name.to_owned(), text));
        named("accepts invalid", first(&judged.accepts_invalid))
            .or_else(|| named("rejects valid", first(&judged.rejects_valid)))
            .or_else(|| named("bad walk", first(&judged.bad_walks)))
            .or_else(|| named("llama.cpp does not load it", judged.not_loaded.clone()))
            .or_else(|| named("the validator cannot judge", judged.no_validator.clone()))
            .or_else(|| named("undecided", (judged.undecided > 0).then(String::new)))
            .or_else(|| named("too few walks end", judged.has_few_walks().then(String::new)))
    }
}

impl Judged {
    fn has_few_walks(&self) -> bool {
        self.n_walks < super::judge::MIN_WALKS
    }
}

/// Median, 99th percentile and largest of some times, with the id of that.
pub(crate) fn times(
    mut times: Vec<(Duration, &str)>,
) -> Option<(Duration, Duration, Duration, &str)> {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1));
    let (median, high, max) = (at(50)?, at(99)?, at(100)?);
    Some((median.0, high.0, max.0, max.1))
}

pub(crate) fn time_line(name: &str, of: Vec<(Duration, &str)>) -> String {
    let n = of.len();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    match times(of) {
        Some((median, high, max, id)) => format!(
            "{name:<34}median {:.3} ms, 99 % {:.2} ms, max {:.1} ms ({id}), of {n}\n",
            ms(median),
            ms(high),
            ms(max)
        ),
        None => format!("{name:<34}not measured\n"),
    }
}

/// Everything, for a program to read.
pub(crate) fn json(verdicts: &[Verdict]) -> Value {
    let groups: serde_json::Map<String, Value> =
        groups(verdicts).into_iter().map(|(name, counts)| (name, counts.json())).collect();
    let reasons: serde_json::Map<String, Value> = reasons(verdicts)
        .into_iter()
        .map(|(reason, of)| (reason, of.iter().map(|verdict| verdict.id.as_str()).collect()))
        .collect();
    let compile = verdicts.iter().map(|verdict| (verdict.compile, verdict.id.as_str())).collect();
    let compile = times(compile).map(|(median, high, max, id)| {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        json!({"median_ms": ms(median), "p99_ms": ms(high), "max_ms": ms(max), "max_id": id})
    });
    json!({"subsets": groups, "reasons": reasons, "compile": compile})
}
