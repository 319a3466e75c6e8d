//! The run as a person sees it on stderr.
//!
//! On a terminal the call that is being written is drawn in gray, one line redrawn in place, then
//! printed whole. Elsewhere, in a log or a pipe, a line at each tenth of the prompts shows that
//! the run goes on: calls there would be thousands of lines that the output file has anyway, and
//! nothing at all would make a long run look hung. `--verbose` adds each call and its cost to both.
//!
//! **Invariant:** no carriage return and no escape sequence where stderr is no terminal; no color
//! where `NO_COLOR` is set, no redrawing where `TERM` is `dumb`.
//! **Invariant:** the drawn line never wraps, so that redrawing it leaves nothing behind.
//! **Invariant:** a stderr that cannot be written ends no run.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthChar;

use crate::definitions::FunctionDef;
use crate::output::Record;

use super::{CallReport, Summary, escape, partial, whole};

const CLEAR_LINE: &str = "\r\x1b[K";
const GRAY: &str = "\x1b[90m";
const RED: &str = "\x1b[31m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Prompts with a problem that the end names one by one.
const MAX_PROBLEMS: usize = 20;

/// How much is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Only what went wrong.
    Quiet,
    /// The calls and the closing line.
    #[default]
    Normal,
    /// Tokens and time of each prompt, too.
    Verbose,
}

/// What stderr, or stdout, is and can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// A person looks at it.
    pub terminal: bool,
    /// A line can be drawn again in place.
    pub redraws: bool,
    /// Color is welcome.
    pub color: bool,
    /// Columns; `None` asks the terminal each time, since it can be resized.
    pub width: Option<usize>,
    /// The shortest time between two drawings.
    pub every: Duration,
}

/// Tells of a run on stderr.
#[derive(Debug)]
pub struct Terminal<W: Write = io::Stderr> {
    out: W,
    look: Look,
    verbosity: Verbosity,
    n_prompts: usize,
    n_finished: usize,
    last_drawn: Option<Instant>,
    /// A line that is not printed whole stands on the terminal.
    line_is_open: bool,
    /// What to say of each prompt with a problem, the first of them.
    problems: Vec<String>,
    n_problems: usize,
}

impl Look {
    /// Of this process's stderr, `TERM` and `NO_COLOR`.
    #[must_use]
    pub fn of_stderr() -> Self {
        Self::of(io::stderr().is_terminal())
    }

    /// The same of stdout.
    #[must_use]
    pub fn of_stdout() -> Self {
        Self::of(io::stdout().is_terminal())
    }

    fn of(terminal: bool) -> Self {
        let redraws = terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            terminal,
            redraws,
            color: redraws && !no_color,
            width: None,
            every: Duration::from_millis(50),
        }
    }

    fn columns(&self) -> usize {
        let asked =
            || terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| width.0.into());
        // One column stays free: a full line makes some terminals wrap.
        self.width.or_else(asked).unwrap_or(80).saturating_sub(1).max(1)
    }

    fn paint<'a>(&self, color: &str, text: &'a str) -> Cow<'a, str> {
        if self.color { format!("{color}{text}{PLAIN}").into() } else { text.into() }
    }

    /// What needs no attention; line ends stay.
    #[must_use]
    pub fn dim(&self, text: &str) -> String {
        self.paint(DIM, text).into_owned()
    }

    /// A mark under what is wrong.
    #[must_use]
    pub fn mark(&self, mark: &str) -> String {
        self.paint(RED, mark).into_owned()
    }

    /// `error: ` and what went wrong, one line.
    #[must_use]
    pub fn error_line(&self, message: &str) -> String {
        format!("{} {}\n", self.paint(RED, "error:"), escape(message))
    }
}

impl Terminal {
    /// Of this process's stderr.
    #[must_use]
    pub fn new(verbosity: Verbosity) -> Self {
        Self::with(io::stderr(), Look::of_stderr(), verbosity)
    }
}

impl<W: Write> Terminal<W> {
    /// Of anything that can be written.
    pub fn with(out: W, look: Look, verbosity: Verbosity) -> Self {
        Self {
            out,
            look,
            verbosity,
            n_prompts: 0,
            n_finished: 0,
            last_drawn: None,
            line_is_open: false,
            problems: Vec::new(),
            n_problems: 0,
        }
    }

    /// Starts a run of so many prompts.
    pub fn begin(&mut self, n_prompts: usize) {
        self.n_prompts = n_prompts;
        self.n_finished = 0;
        self.problems.clear();
        self.n_problems = 0;
    }

    /// Draws the call of prompt `index` as far as it is written.
    ///
    /// Cheap to call at every token: most calls return at once. Before the first character the
    /// line says which prompt is being read.
    pub fn draw(&mut self, index: usize, functions: &[FunctionDef], text: &str) {
        if !self.look.redraws || self.verbosity == Verbosity::Quiet {
            return;
        }
        if self.last_drawn.is_some_and(|last| last.elapsed() < self.look.every) {
            return;
        }
        let mut line = partial(text, functions);
        if line.is_empty() {
            line = format!("{}/{} …", index + 1, self.n_prompts);
        }
        let line = fit(&line, self.look.columns());
        let line = self.look.paint(GRAY, &line);
        // One write, so that the line never flickers; the rest of the old line goes last.
        self.put(&format!("\r{line}\x1b[K"));
        self.line_is_open = true;
        self.last_drawn = Some(Instant::now());
    }

    /// Tells what became of prompt `index`.
    pub fn finished(&mut self, index: usize, record: &Record, report: &CallReport) {
        self.n_finished += 1;
        let problem = problem(record, report);
        if let Some(problem) = &problem {
            self.n_problems += 1;
            if self.problems.len() < MAX_PROBLEMS {
                let prompt = escape(&record.prompt);
                let prompt = fit(&prompt, 40);
                self.problems.push(format!("prompt {} \"{prompt}\": {problem}", index + 1));
            }
        }
        let verbose = self.verbosity == Verbosity::Verbose;
        if verbose || (self.look.terminal && self.verbosity == Verbosity::Normal) {
            for call in record.calls.as_slice() {
                self.line(&whole(call.name.as_str(), &call.parameters));
            }
            match problem {
                _ if !record.calls.as_slice().is_empty() => {}
                Some(problem) => {
                    let problem = format!("prompt {}: {problem}", index + 1);
                    self.line(&self.look.paint(RED, &problem));
                }
                None => self.line(&format!("prompt {}: no function fits", index + 1)),
            }
        } else if self.verbosity == Verbosity::Normal {
            self.tenth();
        }
        if verbose {
            self.line(&cost(index, report));
        }
    }

    /// A line whenever another tenth of the prompts is done; the closing line tells the last.
    fn tenth(&mut self) {
        let tenth = |n: usize| n * 10 / self.n_prompts.max(1);
        let (done, all) = (self.n_finished, self.n_prompts);
        if done < all && tenth(done) > tenth(done - 1) {
            self.line(&format!("{done}/{all} prompts"));
        }
    }

    /// Tells of something odd that ends nothing.
    pub fn warn(&mut self, message: &str) {
        if self.verbosity != Verbosity::Quiet {
            self.line(&format!("warning: {}", escape(message)));
        }
    }

    /// Tells where the finished part of an interrupted run is; `None` means on stdout.
    pub fn interrupted(&mut self, n_kept: usize, kept_in: Option<&Path>) {
        let place = kept_in.map_or("stdout".into(), |path| path.display().to_string());
        let all = self.n_prompts;
        self.line(&format!(
            "interrupted: {n_kept} of {all} prompts are kept in {}",
            escape(&place)
        ));
    }

    /// Names the prompts with problems, then closes with calls, seconds, calls a second and the
    /// file that has the calls; `None` means stdout.
    pub fn end(&mut self, summary: &Summary, written_to: Option<&Path>) {
        for problem in std::mem::take(&mut self.problems) {
            self.line(&problem);
        }
        if self.n_problems > MAX_PROBLEMS {
            self.line(&format!("and {} prompts more", self.n_problems - MAX_PROBLEMS));
        }
        if self.verbosity != Verbosity::Quiet {
            let place = written_to.map_or(String::new(), |path| {
                format!("; written to {}", escape(&path.display().to_string()))
            });
            self.line(&(closing(summary) + &place));
            if let (Verbosity::Verbose, Some(first)) = (self.verbosity, summary.first) {
                self.line(&format!("the first call {:.2} s after the start", first.as_secs_f64()));
            }
        }
        self.clear();
    }

    fn line(&mut self, line: &str) {
        self.clear();
        self.put(&format!("{line}\n"));
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.line_is_open) {
            self.put(CLEAR_LINE);
        }
    }

    fn put(&mut self, text: &str) {
        // Nobody may be there to read; the output is what counts.
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

impl<W: Write> Drop for Terminal<W> {
    /// An error message that follows starts on a line of its own.
    fn drop(&mut self) {
        self.clear();
    }
}

fn problem(record: &Record, report: &CallReport) -> Option<String> {
    let reason = report.error.as_ref().or(record.error.as_ref());
    match reason {
        Some(reason) if report.error.is_some() || report.cut => Some(escape(reason).into_owned()),
        _ => report.cut.then(|| "a value was cut at its limit of tokens".to_owned()),
    }
}

fn cost(index: usize, report: &CallReport) -> String {
    format!(
        "  prompt {}: tokens: {} chosen, {} forced; {:.2} s",
        index + 1,
        report.n_tokens_free,
        report.n_tokens_forced,
        report.elapsed.as_secs_f64()
    )
}

fn closing(summary: &Summary) -> String {
    let Summary { calls, failed, cut, elapsed, .. } = summary;
    let calls_word = if *calls == 1 { "call" } else { "calls" };
    let (seconds, rate) = (elapsed.as_secs_f64(), summary.calls_per_s());
    let count = |n: usize, what: &str| if n > 0 { format!("; {n} {what}") } else { String::new() };
    format!(
        "{calls} {calls_word} in {seconds:.1} s, {rate:.2} calls a second{}{}",
        count(*failed, "failed"),
        count(*cut, "cut at a limit")
    )
}

/// At most `columns` wide: the beginning, an ellipsis and the end, where the news is.
///
/// Characters are counted one by one. A terminal that joins some, emoji for one, needs less.
fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    let width = |c: char| c.width().unwrap_or(0);
    if text.chars().map(width).sum::<usize>() <= columns {
        return text.into();
    }
    let room = columns.saturating_sub(1);
    let head = take(text.chars(), room / 3);
    let tail: Vec<char> = take(text.chars().rev(), room - room / 3);
    head.into_iter().chain(['…']).chain(tail.into_iter().rev()).collect::<String>().into()
}

fn take(chars: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// Where log lines go: stderr, each on a line of its own, also over a line that is being drawn.
///
/// Whatever a message quotes is escaped.
#[derive(Debug, Clone, Copy)]
pub struct LogLines {
    look: Look,
}

impl LogLines {
    /// Of this process's stderr.
    #[must_use]
    pub fn new() -> Self {
        Self { look: Look::of_stderr() }
    }

    fn render(self, message: &[u8]) -> String {
        let text = String::from_utf8_lossy(message);
        let clear = if self.look.redraws { CLEAR_LINE } else { "" };
        format!("{clear}{}\n", escape(text.trim_end()))
    }
}

impl Default for LogLines {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for LogLines {
    /// One message, as `tracing_subscriber` hands them over.
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(self.render(message).as_bytes())?;
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::definitions;
    use crate::output::Calls;
    use crate::validate::FunctionCall;

    const LOG: Look = Look {
        terminal: false,
        redraws: false,
        color: false,
        width: Some(40),
        every: Duration::ZERO,
    };
    const SCREEN: Look = Look { terminal: true, redraws: true, color: true, ..LOG };

    fn record(name: &str, parameters: &str) -> Record {
        let definition = serde_json::json!([{ "name": name, "parameters": {} }]).to_string();
        Record {
            prompt: "Ring\u{1b}[2J\ntwice".to_owned(),
            id: None,
            calls: Calls::One((!name.is_empty()).then(|| FunctionCall {
                name: definitions::parse(definition.as_bytes()).unwrap().remove(0).name,
                parameters: serde_json::from_str(parameters).unwrap(),
            })),
            error: None,
        }
    }

    fn cost_of(n: usize) -> CallReport {
        CallReport {
            n_tokens_free: n,
            n_tokens_forced: 2 * n,
            elapsed: Duration::from_millis(10 * n as u64),
            ..CallReport::default()
        }
    }

    /// All that a run of `n` prompts writes; each is drawn twice and calls `fn_ring(times=2.0)`.
    fn run(look: Look, verbosity: Verbosity, n: usize) -> String {
        let mut out = Vec::new();
        let mut terminal = Terminal::with(&mut out, look, verbosity);
        terminal.begin(n);
        let mut summary = Summary::default();
        for index in 0..n {
            let report = cost_of(index + 1);
            terminal.draw(index, &[], "");
            terminal.draw(index, &[], r#"{"name": "fn_ring", "arguments": {"times"#);
            terminal.finished(index, &record("fn_ring", r#"{"times": 2.0}"#), &report);
            summary.add(&report);
        }
        summary.elapsed = Duration::from_millis(500);
        terminal.end(&summary, None);
        drop(terminal);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_terminal_sees_the_call_grow_and_then_whole() {
        let drawn = "\r\x1b[90m1/1 …\x1b[0m\x1b[K\r\x1b[90mfn_ring(times\x1b[0m\x1b[K\r\x1b[K";
        let end = "1 call in 0.5 s, 2.00 calls a second\n";
        assert_eq!(run(SCREEN, Verbosity::Normal, 1), format!("{drawn}fn_ring(times=2.0)\n{end}"));
        assert_eq!(
            run(SCREEN, Verbosity::Verbose, 1),
            format!(
                "{drawn}fn_ring(times=2.0)\n  prompt 1: tokens: 1 chosen, 2 forced; 0.01 s\n{end}"
            )
        );
        let no_color = Look { color: false, ..SCREEN };
        let plain = drawn.replace("\x1b[90m", "").replace("\x1b[0m", "");
        assert_eq!(
            run(no_color, Verbosity::Normal, 1),
            format!("{plain}fn_ring(times=2.0)\n{end}")
        );
        let dumb = Look { redraws: false, ..no_color };
        assert_eq!(run(dumb, Verbosity::Normal, 1), format!("fn_ring(times=2.0)\n{end}"));
        assert_eq!(run(SCREEN, Verbosity::Quiet, 1), "");
    }

    #[test]
    fn a_log_sees_tenths_and_no_control_character() {
        assert_eq!(
            run(LOG, Verbosity::Normal, 3),
            "1/3 prompts\n2/3 prompts\n3 calls in 0.5 s, 6.00 calls a second\n"
        );
        let lines = run(LOG, Verbosity::Normal, 2_000);
        assert_eq!(lines.lines().count(), 10);
        assert!(lines.starts_with("200/2000 prompts\n"), "{lines}");
        assert_eq!(
            run(LOG, Verbosity::Verbose, 1),
            "fn_ring(times=2.0)\n  prompt 1: tokens: 1 chosen, 2 forced; 0.01 s\n1 call in 0.5 s, 2.00 calls a second\n"
        );
        assert_eq!(run(LOG, Verbosity::Quiet, 30), "");
        assert_eq!(run(LOG, Verbosity::Normal, 0), "0 calls in 0.5 s, 0.00 calls a second\n");
    }

    #[test]
    fn prompts_with_problems_are_named_at_the_end() {
        for (verbosity, closing) in [
            (
                Verbosity::Normal,
                "23 calls in 1.0 s, 23.00 calls a second; 22 failed; 1 cut at a limit; written to out/a\\u001bb.json\n",
            ),
            (Verbosity::Quiet, ""),
        ] {
            let mut out = Vec::new();
            let mut terminal = Terminal::with(&mut out, LOG, verbosity);
            terminal.begin(0);
            let cut = CallReport { cut: true, ..CallReport::default() };
            terminal.finished(0, &record("fn_ring", "{}"), &cut);
            let error = Some("bad\nluck".to_owned());
            let failed = CallReport { error, ..CallReport::default() };
            for index in 1..23 {
                terminal.finished(index, &record("", "{}"), &failed);
            }
            let elapsed = Duration::from_secs(1);
            let summary = Summary { calls: 23, failed: 22, cut: 1, elapsed, first: None };
            terminal.end(&summary, Some(Path::new("out/a\u{1b}b.json")));
            drop(terminal);
            let text = String::from_utf8(out).unwrap();
            let prompt = r#""Ring\u001b[2J\ntwice""#;
            let first = format!("prompt 1 {prompt}: a value was cut at its limit of tokens\n");
            let second = format!("prompt 2 {prompt}: bad\\nluck\n");
            let (problems, rest) = text.split_at(text.find("prompt 1 ").unwrap());
            assert!(!problems.contains("bad"), "{text}");
            assert!(rest.starts_with(&format!("{first}{second}")), "{text}");
            assert!(rest.ends_with(&format!("and 3 prompts more\n{closing}")), "{text}");
        }
    }

    #[test]
    fn a_failure_is_seen_at_once_on_a_terminal() {
        let mut out = Vec::new();
        let mut terminal = Terminal::with(&mut out, SCREEN, Verbosity::Normal);
        terminal.begin(2);
        let error = Some("\u{9b}luck".to_owned());
        terminal.finished(0, &record("", "{}"), &CallReport { error, ..CallReport::default() });
        terminal.finished(1, &record("", "{}"), &CallReport::default());
        terminal.warn("odd\u{202e}");
        terminal.interrupted(2, Some(Path::new("out\n.partial")));
        drop(terminal);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\x1b[31mprompt 1: \\u009bluck\x1b[0m\nprompt 2: no function fits\nwarning: odd\\u202e\ninterrupted: 2 of 2 prompts are kept in out\\n.partial\n"
        );
    }

    #[test]
    fn a_line_fits_any_terminal() {
        for (text, columns, expected) in [
            ("fn_a(x=1)", 9, "fn_a(x=1)"),
            ("fn_a(x=1)", 8, "fn…(x=1)"),
            ("fn_a(x=1)", 2, "…)"),
            ("fn_a(x=1)", 1, "…"),
            ("刺刺刺刺刺", 9, "刺…刺刺刺"),
            ("刺刺刺刺刺", 10, "刺刺刺刺刺"),
            ("e\u{301}e\u{301}", 2, "e\u{301}e\u{301}"),
        ] {
            assert_eq!(fit(text, columns), expected);
        }
        for columns in 1..60 {
            let long = "fn_tell(text=\"🦔 刺 and so on".repeat(9);
            let width: usize = fit(&long, columns).chars().map(|c| c.width().unwrap()).sum();
            assert!(width <= columns);
        }
    }

    #[test]
    fn drawing_is_limited_in_rate() {
        let mut out = Vec::new();
        let look = Look { every: Duration::from_secs(3_600), ..SCREEN };
        let mut terminal = Terminal::with(&mut out, look, Verbosity::Normal);
        for _ in 0..9 {
            terminal.draw(0, &[], "{\"name\": \"fn");
        }
        drop(terminal);
        assert_eq!(String::from_utf8(out).unwrap(), "\r\x1b[90mfn\x1b[0m\x1b[K\r\x1b[K");
    }

    #[test]
    fn log_lines_are_escaped_and_stand_alone() {
        let message = b" WARN a\x1b[31m\nb \xff\n";
        assert_eq!(LogLines { look: LOG }.render(message), " WARN a\\u001b[31m\\nb \u{fffd}\n");
        assert!(LogLines { look: SCREEN }.render(message).starts_with("\r\x1b[K WARN"));
    }
}
