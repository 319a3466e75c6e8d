//! What happened to each prompt, and how it is told on the terminal.
//!
//! **Invariant:** nothing here writes to stdout.
//! **Invariant:** text that others wrote (prompts, names, values, messages that quote them)
//! reaches the terminal through [`escape`] alone.

mod escape;
mod call_text;
mod excerpt;
mod line;
mod terminal;

use std::time::Duration;

use serde_json::Value;

use crate::interrupt::Signal;

pub use call_text::{partial, whole};
pub use escape::escape;
pub use excerpt::excerpt;
pub use line::ReportLine;
pub use terminal::{LogLines, Look, Terminal, Verbosity};

/// The cost of one prompt, and what is wrong with its call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallReport {
    /// Tokens that the model chose.
    pub n_tokens_free: usize,
    /// Tokens that the grammar left no choice about.
    pub n_tokens_forced: usize,
    /// Tokens of the prompt that were computed for it, those of the shared prefix not counted.
    pub n_tokens_prefill: usize,
    /// From the first row of the prompt to the last token of the call.
    pub elapsed: Duration,
    /// The probability that no function fits, where there might have been no call.
    pub no_call: Option<f64>,
    /// Optional arguments that the model gave and that were left out, by name.
    pub left_out: Vec<(String, Value)>,
    /// A value was closed at the limit of its tokens.
    pub cut: bool,
    /// Why there is no call.
    pub error: Option<String>,
}

/// The run as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Prompts that were answered, failed ones included.
    pub calls: usize,
    /// Those of them without a call, because of an error.
    pub failed: usize,
    /// Those of them with a value that was cut.
    pub cut: usize,
    /// Of the whole run, loading the model left out.
    pub elapsed: Duration,
    /// From the start, loading the model included, to the first answer.
    pub first: Option<Duration>,
}

/// How a run ended; the exit status says it to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Every prompt has its result, or the reader of stdout left.
    Done,
    /// The run finished; some prompts failed or were cut.
    SomeFailed,
    /// It could not run.
    CouldNotRun,
    /// A signal ended it; what was finished is kept.
    Interrupted(Signal),
}

impl Summary {
    /// Counts one prompt.
    pub fn add(&mut self, report: &CallReport) {
        self.calls += 1;
        self.failed += usize::from(report.error.is_some());
        self.cut += usize::from(report.cut && report.error.is_none());
    }

    /// Of a run that went through all its prompts.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.failed + self.cut == 0 { Exit::Done } else { Exit::SomeFailed }
    }

    /// 0 where no time passed.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate to show")]
    pub fn calls_per_s(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.calls as f64 / seconds } else { 0.0 }
    }
}

impl Exit {
    /// The exit status.
    #[must_use]
    pub fn status(self) -> i32 {
        match self {
            Self::Done => 0,
            Self::SomeFailed => 1,
            Self::CouldNotRun => 2,
            Self::Interrupted(signal) => signal.status(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_each_prompt_once() {
        let mut summary = Summary::default();
        summary.add(&CallReport::default());
        assert_eq!(summary.exit(), Exit::Done);
        summary.add(&CallReport { cut: true, ..CallReport::default() });
        assert_eq!(summary.exit(), Exit::SomeFailed);
        let error = Some("no".to_owned());
        summary.add(&CallReport { cut: true, error, ..CallReport::default() });
        assert_eq!((summary.calls, summary.failed, summary.cut), (3, 1, 1));
    }

    #[test]
    fn statuses_are_those_of_the_help() {
        let exits = [
            Exit::Done,
            Exit::SomeFailed,
            Exit::CouldNotRun,
            Exit::Interrupted(Signal::Interrupt),
            Exit::Interrupted(Signal::Terminate),
        ];
        assert_eq!(exits.map(Exit::status), [0, 1, 2, 130, 143]);
    }
}
