//! Bytes received -> a bar on a terminal, or plain lines.
//!
//! **Invariant:** no control sequence is written where stderr is no terminal.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::super::size;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A bar on stderr, redrawn in place.
    Bar,
    /// A line for each tenth of the file.
    Lines,
    /// Nothing but what is fetched and where it went.
    None,
}

impl Progress {
    /// A bar where stderr is a terminal, else lines.
    #[must_use]
    pub fn of_stderr() -> Self {
        if io::stderr().is_terminal() { Self::Bar } else { Self::Lines }
    }
}

/// The one who tells the user: lines to a log, and how far the file is.
pub(super) struct Meter<'a> {
    log: &'a mut dyn Write,
    progress: Progress,
    bar: Option<ProgressBar>,
    total: Option<u64>,
    tenths: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(log: &'a mut dyn Write, progress: Progress) -> Self {
        Self { log, progress, bar: None, total: None, tenths: 0 }
    }

    /// Writes a line. A log that takes no more does not end the fetch.
    pub(super) fn say(&mut self, text: &str) {
        let Self { log, bar, .. } = self;
        let mut write = || drop(writeln!(log, "{text}").and_then(|()| log.flush()));
        match bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Begins to count: `done` bytes are there, of `total` where that is known.
    pub(super) fn start(&mut self, done: u64, total: Option<u64>) {
        self.total = total;
        self.tenths = total.map_or(0, |total| tenths(done, total));
        if self.progress == Progress::Bar {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
            let known = "{wide_bar} {decimal_bytes} of {decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";
            let unknown = "{spinner} {decimal_bytes}, {decimal_bytes_per_sec}";
            if let Ok(style) = ProgressStyle::with_template(total.map_or(unknown, |_| known)) {
                bar.set_style(style);
            }
            bar.set_position(done);
            bar.reset_eta();
            self.bar = Some(bar);
        }
    }

    /// Tells that `done` bytes are there.
    pub(super) fn at(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
        let Some(total) = self.total else { return };
        let tenths = tenths(done, total);
        if self.progress == Progress::Lines && tenths > self.tenths {
            self.tenths = tenths;
            self.say(&format!("  {:3} % of {}", tenths * 10, size(total)));
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Meter<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Meter").field("progress", &self.progress).finish_non_exhaustive()
    }
}

fn tenths(done: u64, total: u64) -> u64 {
    done.saturating_mul(10).checked_div(total).unwrap_or(0)
}
