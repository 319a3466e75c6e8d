//! The command `callme`: parse, start tracing, run, map to the exit status.

use std::io::Write;
use std::process::ExitCode;

use call_me_maybe::cli::Args;
use call_me_maybe::report::{Exit, LogLines, Look, Verbosity};
use call_me_maybe::{config, output, pipeline};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let args = match Args::parse_from_os(std::env::args_os(), pipeline::version().leak()) {
        Ok(args) => args,
        Err(message) => return status(told(&message)),
    };
    start_tracing(&args);
    status(run(args).unwrap_or_else(|error| failed(&error)))
}

fn run(args: Args) -> anyhow::Result<Exit> {
    pipeline::run(config::job(args)?)
}

/// The text of `--help` and `--version` is a result and goes to stdout; a usage error is not.
fn told(message: &clap::Error) -> Exit {
    if message.use_stderr() {
        // clap colors it where stderr is a terminal. Nobody may be there to read.
        let _ = message.print();
        return Exit::CouldNotRun;
    }
    match output::print(&message.render().to_string()) {
        Ok(_) => Exit::Done,
        Err(error) => failed(&error.into()),
    }
}

fn failed(error: &anyhow::Error) -> Exit {
    let line = Look::of_stderr().error_line(&format!("{error:#}"));
    let _ = std::io::stderr().write_all(line.as_bytes());
    Exit::CouldNotRun
}

fn start_tracing(args: &Args) {
    let level = match (config::verbosity(args), args.verbose) {
        (Verbosity::Quiet, _) => "error",
        (_, 0) => "warn",
        (_, 1) => "info",
        (_, 2) => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(LogLines::new)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .init();
}

fn status(exit: Exit) -> ExitCode {
    // Every status of `Exit` fits; 2 would tell the worst if one did not.
    ExitCode::from(u8::try_from(exit.status()).unwrap_or(2))
}
