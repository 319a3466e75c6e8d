//! Measured runs in; a table, JSON, CSV and a chart out.
//!
//! **Invariant:** a figure that was not measured is `None`, and shown as `-`.

mod plot;

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

pub use plot::{PlotError, svg};

/// What one run over the prompts took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Loading the model, seconds.
    pub load_s: f64,
    /// From the start of loading to the first call, seconds.
    pub first_call_s: f64,
    /// All prompts, loading not counted, seconds.
    pub wall_s: f64,
    /// Calls a second over `wall_s`.
    pub calls_per_s: f64,
    /// Rows that were evaluated for prompts and calls, those of shared prefixes included.
    pub n_rows: u64,
    /// Tokens of the prompt a second: 512 tokens in one sequence.
    pub prompt_tokens_per_s: f64,
    /// Tokens a second when one sequence is written alone, without a grammar.
    pub generation_tokens_per_s: f64,
    /// `n_rows / wall_s` as a share of `prompt_tokens_per_s`.
    pub reference_share: f64,
    /// Of the tokens after the model's first choice, those that the grammar forced.
    pub forced_share: f64,
    /// The largest resident memory of the process, bytes.
    pub peak_bytes: Option<u64>,
}

/// A model's figures over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFigures {
    /// The file's name without its ending.
    pub model: String,
    /// The file's size.
    pub file_bytes: u64,
    /// Types of its tensors and their bytes, the largest first.
    pub tensor_types: Vec<(String, u64)>,
    /// What it was made from, where this command made it of a file that was quantized already.
    pub requantized_from: Option<String>,
    /// One of each repetition; a warm-up came before.
    pub runs: Vec<RunFigures>,
    /// Share of the calls that equal those of the first model.
    pub agreement: Option<f64>,
    /// Share of the labelled prompts that were answered right.
    pub score: Option<f64>,
    /// Prompts without a call.
    pub n_failed: usize,
}

/// What identifies machine and build, and the models' figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Package, commit, bindings, CPU flags.
    pub build: Vec<String>,
    /// The processor's own name.
    pub cpu: String,
    /// Threads that computed.
    pub n_threads: u32,
    /// Prompts in flight.
    pub n_parallel: usize,
    /// Prompts.
    pub n_prompts: usize,
    /// The files of functions and prompts.
    pub files: [String; 2],
    /// In the order asked for.
    pub models: Vec<ModelFigures>,
}

/// The middle of some numbers, and how far they spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// How many lie off the median by more than three times the median deviation, and by over 5 %.
    pub n_outliers: usize,
}

impl Spread {
    /// Of at least one number.
    #[must_use]
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut numbers: Vec<f64> = numbers.into_iter().collect();
        numbers.sort_by(f64::total_cmp);
        let (min, max) = (*numbers.first()?, *numbers.last()?);
        let median = middle(&numbers);
        let mut deviations: Vec<f64> = numbers.iter().map(|one| (one - median).abs()).collect();
        deviations.sort_by(f64::total_cmp);
        let most = (3.0 * middle(&deviations)).max(0.05 * median.abs());
        let n_outliers = deviations.iter().filter(|one| **one > most).count();
        Some(Self { median, min, max, n_outliers })
    }
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

impl ModelFigures {
    /// One figure over all runs.
    #[must_use]
    pub fn spread(&self, figure: impl Fn(&RunFigures) -> f64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(figure))
    }

    fn median(&self, figure: impl Fn(&RunFigures) -> f64) -> Option<f64> {
        self.spread(figure).map(|spread| spread.median)
    }

    fn peak_bytes(&self) -> Option<u64> {
        self.runs.iter().filter_map(|run| run.peak_bytes).max()
    }
}

/// Tensor types with their shares of the bytes, those of at least so many percent.
#[must_use]
pub fn type_shares(types: &[(String, u64)], least: f64) -> String {
    let all: u64 = types.iter().map(|(_, bytes)| bytes).sum();
    let share = |bytes: &u64| ratio(100 * bytes, all.max(1));
    let large = types.iter().filter(|(_, bytes)| share(bytes) >= least);
    let texts: Vec<String> =
        large.map(|(name, bytes)| format!("{name} {:.0} %", share(bytes))).collect();
    texts.join(", ")
}

/// One number as a share of another.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a share to show")]
pub fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// The columns: a heading and how a model's value is written.
type Column = (&'static str, fn(&ModelFigures) -> String);

const COLUMNS: [Column; 12] = [
    ("model", |m| m.model.clone()),
    ("MB", |m| format!("{:.0}", ratio(m.file_bytes, 1_000_000))),
    ("load s", |m| number(m.median(|run| run.load_s), 2)),
    ("first call s", |m| number(m.median(|run| run.first_call_s), 2)),
    ("prompt tok/s", |m| number(m.median(|run| run.prompt_tokens_per_s), 0)),
    ("gen tok/s", |m| number(m.median(|run| run.generation_tokens_per_s), 1)),
    ("calls/s", |m| number(m.median(|run| run.calls_per_s), 2)),
    ("of ref. %", |m| number(m.median(|run| 100.0 * run.reference_share), 0)),
    ("forced %", |m| number(m.median(|run| 100.0 * run.forced_share), 0)),
    ("peak MB", |m| number(m.peak_bytes().map(|bytes| ratio(bytes, 1_000_000)), 0)),
    ("agree %", |m| number(m.agreement.map(|share| 100.0 * share), 1)),
    ("score %", |m| number(m.score.map(|share| 100.0 * share), 1)),
];

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
}

impl Report {
    /// For the terminal: a line a model, below it what the files are made of, and what machine this is.
    #[must_use]
    pub fn table(&self) -> String {
        let mut rows: Vec<Vec<String>> =
            vec![COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect()];
        rows.extend(self.models.iter().map(|m| COLUMNS.iter().map(|(_, of)| of(m)).collect()));
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                let _ = write!(line, "  {cell:>width$}");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push('\n');
        for model in &self.models {
            let from = model.requantized_from.as_ref();
            let from = from.map_or(String::new(), |from| format!("; requantized from {from}"));
            let _ =
                writeln!(text, "{}: {}{from}", model.model, type_shares(&model.tensor_types, 1.0));
            if let Some(Spread { min, max, n_outliers, .. }) = model.spread(|run| run.calls_per_s) {
                let n = model.runs.len();
                let outliers =
                    if n_outliers > 0 { format!(", {n_outliers} far off") } else { String::new() };
                let _ = writeln!(text, "  calls/s {min:.2} to {max:.2} in {n} runs{outliers}");
            }
            if model.n_failed > 0 {
                let _ = writeln!(text, "  {} prompts without a call", model.n_failed);
            }
        }
        let Self { cpu, n_threads, n_parallel, n_prompts, files: [functions, prompts], .. } = self;
        let _ = writeln!(text, "\n{n_prompts} prompts of {prompts}, functions of {functions}");
        let _ = writeln!(text, "{cpu}, {n_threads} threads, {n_parallel} prompts in flight");
        for line in &self.build {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// A line a model, the medians.
    #[must_use]
    pub fn csv(&self) -> String {
        let quoted = |cell: String| {
            if cell.contains(['"', ',', '\n']) {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else if cell == "-" {
                String::new()
            } else {
                cell
            }
        };
        let head: Vec<String> = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut text = head.join(",") + "\n";
        for model in &self.models {
            let cells: Vec<String> = COLUMNS.iter().map(|(_, of)| quoted(of(model))).collect();
            text.push_str(&(cells.join(",") + "\n"));
        }
        text
    }

    /// Everything, every run by itself.
    ///
    /// # Errors
    /// None is known; serde's, if there is one.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn report() -> Report {
        let run = |wall_s: f64| RunFigures {
            load_s: 0.5,
            first_call_s: 1.0,
            wall_s,
            calls_per_s: 110.0 / wall_s,
            n_rows: 8_000,
            prompt_tokens_per_s: 200.0,
            generation_tokens_per_s: 25.0,
            reference_share: 8_000.0 / wall_s / 200.0,
            forced_share: 0.61,
            peak_bytes: Some(600_000_000),
        };
        let model = |name: &str, file_bytes| ModelFigures {
            model: name.to_owned(),
            file_bytes,
            tensor_types: vec![("Q5_0".into(), 300), ("F32".into(), 1)],
            requantized_from: None,
            runs: vec![run(50.0), run(55.0), run(80.0)],
            agreement: None,
            score: Some(0.9),
            n_failed: 1,
        };
        Report {
            build: vec!["0.1.0".into()],
            cpu: "a CPU".into(),
            n_threads: 2,
            n_parallel: 16,
            n_prompts: 110,
            files: ["f.json".into(), "p.json".into()],
            models: vec![model("one", 491_000_000), model("two, \"b\"", 300_000_000)],
        }
    }

    #[test]
    fn the_spread_has_the_middle_and_counts_what_is_far_off() {
        let spread = Spread::of([3.0, 1.0, 2.0, 2.1, 90.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.1, min: 1.0, max: 90.0, n_outliers: 1 });
        let even = Spread::of([2.0, 4.0]).unwrap();
        assert!((even.median - 3.0).abs() < 1e-9);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_table_has_a_line_for_each_model() {
        let table = report().table();
        let mut lines = table.lines();
        assert!(lines.next().unwrap().starts_with("model      MB  load s"));
        let one: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(
            one,
            ["one", "491", "0.50", "1.00", "200", "25.0", "2.00", "73", "61", "600", "-", "90.0"]
        );
        assert!(table.contains("one: Q5_0 100 %\n  calls/s 1.38 to 2.20 in 3 runs"), "{table}");
    }

    #[test]
    fn csv_quotes_what_must_be() {
        let csv = report().csv();
        assert!(csv.lines().nth(2).unwrap().starts_with("\"two, \"\"b\"\"\",300,"), "{csv}");
        assert!(csv.lines().all(|line| line.matches(',').count() >= COLUMNS.len() - 1));
    }

    #[test]
    fn json_has_every_run() {
        let json: serde_json::Value = serde_json::from_str(&report().json().unwrap()).unwrap();
        assert_eq!(json["models"][0]["runs"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn a_chart_names_every_model() {
        let svg = svg(&report()).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<String> = document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .filter_map(|node| node.text().map(|text| text.trim().to_owned()))
            .collect();
        for name in ["one", "two, \"b\"", "calls a second", "file size, MB"] {
            assert!(texts.iter().any(|text| text == name), "{name}: {texts:?}");
        }
    }
}
