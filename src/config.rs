//! The flags as typed and `config/*.json` in, the job that is meant out.
//!
//! **Invariant:** every check that looks at two flags, or at a flag and a file, is here.
//! **Invariant:** a [`Job`] carries only what that job needs, so an illegal mix cannot be built.
//! **Invariant:** of the files, only the prompt configuration is read here.

mod source;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};

use crate::cli::{
    Args, AskArgs, BenchArgs, CheckArgs, Command, EvalArgs, ExplainArgs, GrammarFormat,
    ModelCommand, RunArgs,
};
use crate::eval::Scoring;
use crate::output::Target;
use crate::prefix_cache::PrefixCache;
use crate::prompt::config::{self as prompts, PromptsConfig};
use crate::report::Verbosity;

pub use source::{Source, SourceError};

const FUNCTIONS: &str = "data/input/functions_definition.json";
const INPUT: &str = "data/input/function_calling_tests.json";
const OUTPUT: &str = "data/output/function_calls.json";
const PROMPTS_CONFIG: &str = "config/prompts.json";

/// Others among which the next function is looked for.
const N_OTHERS: usize = 8;

/// Others that are shown beside a choice.
const DEFAULT_OTHERS: usize = 3;

/// Runs of a model that is measured.
const DEFAULT_RUNS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// What the command line asks for.
#[derive(Debug)]
pub enum Job {
    /// Calls for prompts.
    Run(Box<RunConfig>),
    /// The grammar of some functions, to stdout.
    EmitGrammar(GrammarConfig),
    /// Texts that may be legal calls.
    Check(CheckConfig),
    /// Something about models.
    Model(ModelJob),
    /// Models to measure.
    Bench(Box<BenchConfig>),
    /// Labelled cases to score.
    Eval(Box<EvalConfig>),
    /// A request to look at closely.
    Explain(Box<ExplainConfig>),
}

/// A request to look at closely.
#[derive(Debug)]
pub struct ExplainConfig {
    /// The request.
    pub prompt: String,
    /// The functions.
    pub functions: Source,
    /// Whether the text is shown that the model reads.
    pub show_prompt: bool,
    /// The model, and how it is asked.
    pub ask: AskConfig,
}

/// Labelled cases to score.
#[derive(Debug)]
pub struct EvalConfig {
    /// The cases; at least one file.
    pub cases: Vec<Source>,
    /// The functions of the cases that carry none of their own.
    pub functions: Source,
    /// Where calls come from.
    pub calls: CallsFrom,
    /// The file to write, which must not exist; else a new one.
    pub output: Option<PathBuf>,
    /// The file of an earlier run.
    pub compare: Option<Source>,
    /// How much like the label a call must be.
    pub scoring: Scoring,
    /// How much is told.
    pub verbosity: Verbosity,
}

/// Where the calls that are scored come from.
#[derive(Debug)]
pub enum CallsFrom {
    /// A model makes them.
    Model(Box<AskConfig>),
    /// They are there.
    Predictions(Source),
}

/// Models to measure, and with what.
#[derive(Debug)]
pub struct BenchConfig {
    /// The functions of the records that carry none of their own.
    pub functions: Source,
    /// The prompts.
    pub input: Source,
    /// How the models are asked, and the file that says so, where one was named.
    pub prompts: PromptsConfig,
    /// The file.
    pub prompts_config: Option<PathBuf>,
    /// Names, paths or folders; at least one.
    pub models: Vec<String>,
    /// Names of quantizations.
    pub quantize: Vec<String>,
    /// What those are made from; else the first model.
    pub from: Option<String>,
    /// Where models are looked for first.
    pub models_dir: Option<PathBuf>,
    /// Threads that compute; else the physical cores.
    pub threads: Option<NonZeroUsize>,
    /// Prompts in flight.
    pub parallel: Option<NonZeroUsize>,
    /// Runs of each model.
    pub n_runs: NonZeroUsize,
    /// Where what prompts begin with is kept between runs.
    pub prefix_cache: Option<PathBuf>,
    /// Where the figures go besides stdout.
    pub json: Option<PathBuf>,
    /// The same as CSV.
    pub csv: Option<PathBuf>,
    /// The same as a chart.
    pub plot: Option<PathBuf>,
    /// Whether this is the process of one run.
    pub worker: bool,
    /// How much is told on stderr.
    pub verbosity: Verbosity,
}

/// Texts to check.
#[derive(Debug)]
pub struct CheckConfig {
    /// The texts.
    pub texts: Source,
    /// What they are checked against.
    pub against: Against,
    /// How much is told on stderr.
    pub verbosity: Verbosity,
}

/// What texts are checked against.
#[derive(Debug)]
pub enum Against {
    /// Calls of some functions.
    Functions {
        /// The functions.
        functions: Source,
        /// The only one of them, whose arguments alone are a call too.
        function: Option<String>,
        /// The bytes must be as the grammar writes them.
        exact: bool,
    },
    /// A grammar of whatever is in it; the bytes must be as it has them.
    Grammar {
        /// The GBNF file.
        grammar: Source,
        /// The model that its tokens are of: a name of the catalogue, a path, or `auto`.
        model: Option<String>,
        /// Where models are looked for first.
        models_dir: Option<PathBuf>,
    },
}

/// A run.
#[derive(Debug)]
pub struct RunConfig {
    /// The functions of the records that carry none of their own.
    pub functions: Source,
    /// The prompts.
    pub input: Source,
    /// Where the calls go.
    pub output: Target,
    /// Where what is known of each call goes.
    pub report: Option<Target>,
    /// Calls that are less likely are refused; 0 to 1.
    pub min_confidence: Option<f64>,
    /// The model, and how it is asked.
    pub ask: AskConfig,
    /// How much is told on stderr.
    pub verbosity: Verbosity,
}

/// A model, and how it is asked.
#[derive(Debug)]
pub struct AskConfig {
    /// How the model is asked.
    pub prompts: PromptsConfig,
    /// The model: a name of the catalogue, a path, or `auto`.
    pub model: String,
    /// Where models are looked for first.
    pub models_dir: Option<PathBuf>,
    /// Threads that compute; else the physical cores.
    pub threads: Option<NonZeroUsize>,
    /// Requests in flight.
    pub parallel: Option<NonZeroUsize>,
    /// Where what prompts begin with is kept between runs.
    pub prefix_cache: Option<PathBuf>,
    /// Tokens at most for a value, at least 1.
    pub max_value_tokens: u32,
    /// 0 is greedy; finite, not negative.
    pub temperature: f32,
    /// Of the random choices.
    pub seed: u64,
    /// Whether what no grammar can express is left to the validator.
    pub lenient: bool,
    /// Whether choices are weighed, and how many others are told of each.
    pub n_others: Option<usize>,
}

/// A grammar to print.
#[derive(Debug)]
pub struct GrammarConfig {
    /// The functions it is made from.
    pub functions: Source,
    /// The notation.
    pub format: GrammarFormat,
    /// Whether what no grammar can express is left to the validator.
    pub lenient: bool,
}

/// What to do about models.
#[derive(Debug, PartialEq, Eq)]
pub enum ModelJob {
    /// Show the catalogue.
    List {
        /// Where models are looked for first.
        models_dir: Option<PathBuf>,
    },
    /// Get a model.
    Fetch {
        /// A name of the catalogue; else its first.
        name: Option<String>,
        /// Where it goes.
        models_dir: Option<PathBuf>,
        /// How much is told on stderr.
        verbosity: Verbosity,
    },
    /// Make another quantization of a model.
    Quantize {
        /// A name or a path.
        from: String,
        /// llama.cpp's name of the quantization.
        to: String,
        /// The file to write; else one in the folder of fetched models.
        output: Option<PathBuf>,
        /// Where models are looked for first, and where the file goes.
        models_dir: Option<PathBuf>,
        /// How much is told on stderr.
        verbosity: Verbosity,
    },
    /// Say where a model is.
    Path {
        /// A name of the catalogue, or `auto`; else that.
        name: Option<String>,
        /// Where models are looked for first.
        models_dir: Option<PathBuf>,
    },
}

/// Why the command line makes no job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Flags of the run beside a subcommand.
    #[error("the flags of a run do not go with the subcommand {0}; see callme {0} --help")]
    RunFlagsWithSubcommand(&'static str),
    /// Stdin can be read once.
    #[error("both {first} and {second} are -, and stdin can be read only once")]
    StdinTwice {
        /// A flag.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// The output would replace what is read.
    #[error("{written} {} is the file that {flag} reads; name another", path.display())]
    OutputIsInput {
        /// The flag of the output.
        written: &'static str,
        /// The output.
        path: PathBuf,
        /// The flag of the file.
        flag: &'static str,
    },
    /// Two files in one place.
    #[error("--output and --report both go to {place}; name another for one of them")]
    OutputIsReport {
        /// The place.
        place: String,
    },
    /// Scoring what is there, and flags that only a model heeds.
    #[error(
        "with --predictions no model runs, so flags of the model and --prompts_config say nothing; leave them out"
    )]
    ModelFlagsWithPredictions,
    /// Two jobs of one flag: the tables are on stdout.
    #[error("--output -: the tables go to stdout; name a file")]
    OutputIsStdout,
    /// The prompt configuration that was asked for cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The prompt configuration is not one; the source names the file and the place.
    #[error(transparent)]
    Prompts(#[from] prompts::ConfigError),
}

/// Turns what was typed into what is meant.
///
/// # Errors
/// [`ConfigError`].
pub fn job(args: Args) -> Result<Job, ConfigError> {
    let verbosity = verbosity(&args);
    let Args { command, run, models_dir, .. } = args;
    match command {
        Some(command) if run != RunArgs::default() => {
            Err(ConfigError::RunFlagsWithSubcommand(match command {
                Command::Model(_) => "model",
                Command::Check(_) => "check",
                Command::Bench(_) => "bench",
                Command::Eval(_) => "eval",
                Command::Explain(_) => "explain",
            }))
        }
        Some(Command::Bench(args)) => {
            Ok(Job::Bench(Box::new(bench_config(args, models_dir, verbosity)?)))
        }
        Some(Command::Eval(args)) => {
            Ok(Job::Eval(Box::new(eval_config(args, models_dir, verbosity)?)))
        }
        Some(Command::Explain(args)) => {
            Ok(Job::Explain(Box::new(explain_config(args, models_dir)?)))
        }
        Some(Command::Check(args)) => check_config(args, models_dir, verbosity).map(Job::Check),
        Some(Command::Model(command)) => Ok(Job::Model(match command {
            ModelCommand::List => ModelJob::List { models_dir },
            ModelCommand::Fetch { name } => ModelJob::Fetch { name, models_dir, verbosity },
            ModelCommand::Path { name } => ModelJob::Path { name, models_dir },
            ModelCommand::Quantize { from, to, output } => {
                ModelJob::Quantize { from, to, output, models_dir, verbosity }
            }
        })),
        None => match run.emit_grammar {
            Some(format) => Ok(Job::EmitGrammar(emit_grammar(run, format))),
            None => Ok(Job::Run(Box::new(run_config(run, models_dir, verbosity)?))),
        },
    }
}

/// How much is told on stderr.
#[must_use]
pub fn verbosity(args: &Args) -> Verbosity {
    match (args.quiet, args.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, 0) => Verbosity::Normal,
        (false, _) => Verbosity::Verbose,
    }
}

/// A whole command line of a run may have `--emit-grammar` put after it; only an output that is
/// a file would be a surprise.
fn emit_grammar(run: RunArgs, format: GrammarFormat) -> GrammarConfig {
    if run.output.is_some_and(|output| output != Path::new("-")) {
        tracing::warn!("the grammar goes to stdout; --output is not used");
    }
    let functions = functions(run.functions_definition);
    GrammarConfig { functions, format, lenient: run.ask.lenient }
}

fn check_config(
    args: CheckArgs,
    models_dir: Option<PathBuf>,
    verbosity: Verbosity,
) -> Result<CheckConfig, ConfigError> {
    let texts = Source::new("FILE", Some(args.file.unwrap_or_else(|| PathBuf::from("-"))), "-");
    let against = match args.grammar {
        Some(grammar) => Against::Grammar {
            grammar: Source::new("--grammar", Some(grammar), ""),
            model: args.model,
            models_dir,
        },
        None => Against::Functions {
            functions: functions(args.functions_definition),
            function: args.function,
            exact: args.exact,
        },
    };
    let (Against::Grammar { grammar: other, .. } | Against::Functions { functions: other, .. }) =
        &against;
    check_stdin([other, &texts])?;
    Ok(CheckConfig { texts, against, verbosity })
}

fn functions(given: Option<PathBuf>) -> Source {
    Source::new("--functions_definition", given, FUNCTIONS)
}

fn run_config(
    run: RunArgs,
    models_dir: Option<PathBuf>,
    verbosity: Verbosity,
) -> Result<RunConfig, ConfigError> {
    let functions = functions(run.functions_definition);
    let input = Source::new("--input", run.input, INPUT);
    let prompts = Source::file("--prompts_config", run.prompts_config, PROMPTS_CONFIG);
    let output = target(run.output.unwrap_or_else(|| PathBuf::from(OUTPUT)));
    let report = run.report.map(target);
    let sources = [&functions, &input, &prompts];
    check_stdin(sources)?;
    check(sources, "--output", &output)?;
    if let Some(report) = &report {
        check(sources, "--report", report)?;
        check_apart(&output, report)?;
    }
    let mut ask = ask(run.ask, &prompts, models_dir)?;
    let min_confidence = run.min_confidence;
    ask.n_others = (report.is_some() || min_confidence.is_some()).then_some(N_OTHERS);
    Ok(RunConfig { functions, input, output, report, min_confidence, ask, verbosity })
}

fn target(path: PathBuf) -> Target {
    if path == Path::new("-") { Target::Stdout } else { Target::Path(path) }
}

fn explain_config(
    args: ExplainArgs,
    models_dir: Option<PathBuf>,
) -> Result<ExplainConfig, ConfigError> {
    let functions = functions(args.functions_definition);
    let prompts = Source::file("--prompts_config", args.prompts_config, PROMPTS_CONFIG);
    let mut ask = ask(args.ask, &prompts, models_dir)?;
    ask.n_others = Some(args.others.unwrap_or(DEFAULT_OTHERS));
    Ok(ExplainConfig { prompt: args.prompt, functions, show_prompt: args.show_prompt, ask })
}

fn ask(
    args: AskArgs,
    prompts: &Source,
    models_dir: Option<PathBuf>,
) -> Result<AskConfig, ConfigError> {
    let mut prompts = prompts_config(prompts)?;
    prompts.calls = args.calls.unwrap_or(prompts.calls);
    prompts.no_call.enabled |= args.no_call;
    if let Some(dir) = models_dir.as_ref().filter(|dir| !dir.is_dir()) {
        // Another folder may have the model, or one of another name that nobody wanted.
        tracing::warn!(path = %dir.display(), "--models-dir names no folder");
    }
    let limits = &prompts.limits;
    let max_value_tokens = args.max_value_tokens.map_or(limits.max_value_tokens, NonZeroU32::get);
    Ok(AskConfig {
        model: args.model.unwrap_or_else(|| prompts.model.clone()),
        prompts,
        models_dir,
        threads: args.threads,
        parallel: args.parallel,
        prefix_cache: match args.prefix_cache {
            _ if args.no_prefix_cache => None,
            Some(dir) => Some(dir),
            None => PrefixCache::user_dir(),
        },
        max_value_tokens,
        temperature: args.temperature.unwrap_or(0.0),
        seed: args.seed.unwrap_or(0),
        lenient: args.lenient,
        n_others: None,
    })
}

fn bench_config(
    args: BenchArgs,
    models_dir: Option<PathBuf>,
    verbosity: Verbosity,
) -> Result<BenchConfig, ConfigError> {
    let prompts = Source::file("--prompts_config", args.prompts_config.clone(), PROMPTS_CONFIG);
    let prompts = prompts_config(&prompts)?;
    let auto = || vec![prompts.model.clone()];
    Ok(BenchConfig {
        // Each run reads them for itself, so neither is stdin.
        functions: Source::file("--functions_definition", args.functions_definition, FUNCTIONS),
        input: Source::file("--input", args.input, INPUT),
        models: if args.models.is_empty() { auto() } else { args.models },
        prompts,
        prompts_config: args.prompts_config,
        quantize: args.quantize,
        from: args.from,
        models_dir,
        threads: args.threads,
        parallel: args.parallel,
        n_runs: args.repeat.unwrap_or(DEFAULT_RUNS),
        prefix_cache: args.prefix_cache,
        json: args.json,
        csv: args.csv,
        plot: args.plot,
        worker: args.worker,
        verbosity,
    })
}

fn eval_config(
    args: EvalArgs,
    models_dir: Option<PathBuf>,
    verbosity: Verbosity,
) -> Result<EvalConfig, ConfigError> {
    let functions = functions(args.functions_definition);
    let cases: Vec<Source> =
        args.cases.into_iter().map(|path| Source::new("--cases", Some(path), "")).collect();
    let given = |flag, path| Source::new(flag, Some(path), "");
    let compare = args.compare.map(|path| given("--compare", path));
    let predictions = args.predictions.map(|path| given("--predictions", path));
    check_stdin(cases.iter().chain([&functions]).chain(&predictions).chain(&compare))?;
    if args.output.as_deref() == Some(Path::new("-")) {
        return Err(ConfigError::OutputIsStdout);
    }
    let calls = match predictions {
        Some(_) if args.ask != AskArgs::default() || args.prompts_config.is_some() => {
            return Err(ConfigError::ModelFlagsWithPredictions);
        }
        Some(predictions) => CallsFrom::Predictions(predictions),
        None => {
            let prompts = Source::file("--prompts_config", args.prompts_config, PROMPTS_CONFIG);
            let mut ask = ask(args.ask, &prompts, models_dir)?;
            ask.n_others = Some(0);
            CallsFrom::Model(Box::new(ask))
        }
    };
    let (output, scoring) = (args.output, args.scoring.unwrap_or_default());
    Ok(EvalConfig { cases, functions, calls, output, compare, scoring, verbosity })
}

/// Stdin is read once.
fn check_stdin<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Result<(), ConfigError> {
    let mut stdin = sources.into_iter().filter(|source| source.is_stdin());
    match (stdin.next(), stdin.next()) {
        (Some(first), Some(second)) => {
            Err(ConfigError::StdinTwice { first: first.flag(), second: second.flag() })
        }
        _ => Ok(()),
    }
}

/// Nothing that is read is replaced.
fn check(sources: [&Source; 3], written: &'static str, output: &Target) -> Result<(), ConfigError> {
    if let Target::Path(path) = output {
        let same = |source: &&Source| source.path().is_some_and(|read| is_same_file(read, path));
        if let Some(source) = sources.into_iter().find(same) {
            let (path, flag) = (path.clone(), source.flag());
            return Err(ConfigError::OutputIsInput { written, path, flag });
        }
    }
    Ok(())
}

fn check_apart(output: &Target, report: &Target) -> Result<(), ConfigError> {
    let place = match (output, report) {
        (Target::Stdout, Target::Stdout) => "stdout".to_owned(),
        (Target::Path(output), Target::Path(report))
            if is_same_file(output, report) || place(output) == place(report) =>
        {
            output.display().to_string()
        }
        _ => return Ok(()),
    };
    Err(ConfigError::OutputIsReport { place })
}

/// The built-in configuration serves where nobody asked for another.
fn prompts_config(source: &Source) -> Result<PromptsConfig, ConfigError> {
    match source.path() {
        Some(path) if !source.is_absent_default() => {
            // Read once more by `load`, for the words about a file that cannot be.
            source.read()?;
            Ok(PromptsConfig::load(path)?)
        }
        _ => Ok(PromptsConfig::default()),
    }
}

/// A path that may not be there yet, by the folder that it is in.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    match (folder, path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Devices are no files: `/dev/null` may be both.
fn is_same_file(left: &Path, right: &Path) -> bool {
    left.is_file()
        && matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn parse(line: &str) -> Result<Job, ConfigError> {
        let words = line.split_whitespace().map(OsString::from);
        job(Args::parse_from_os(words, "0.0.0 test").unwrap())
    }

    /// The run of a command line, over a configuration that says little.
    fn run(flags: &str) -> RunConfig {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.json");
        let text = r#"{"model": "theirs", "limits": {"max_value_tokens": 9}}"#;
        std::fs::write(&config, text).unwrap();
        match parse(&format!("callme --prompts_config {} {flags}", config.display())) {
            Ok(Job::Run(run)) => *run,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let run = run("");
        assert_eq!(run.functions.to_string(), FUNCTIONS);
        assert_eq!(run.input.to_string(), INPUT);
        assert_eq!(run.output, Target::Path(OUTPUT.into()));
        assert_eq!((run.ask.model.as_str(), run.ask.max_value_tokens), ("theirs", 9));
        assert_eq!((run.ask.models_dir, run.ask.threads), (None, None));
        assert_eq!((run.ask.temperature.to_bits(), run.ask.seed), (0, 0));
        assert_eq!(run.verbosity, Verbosity::Normal);
    }

    #[test]
    fn a_flag_goes_before_the_configuration() {
        let run = run("--model ours --max-value-tokens 7 --output - --input - -v --seed 3");
        assert_eq!((run.ask.model.as_str(), run.ask.max_value_tokens), ("ours", 7));
        assert_eq!((run.output, run.input.to_string()), (Target::Stdout, "<stdin>".to_owned()));
        assert_eq!((run.verbosity, run.ask.seed), (Verbosity::Verbose, 3));
    }

    #[test]
    fn each_job_has_its_own_variant() {
        let dir = || Some(PathBuf::from("d"));
        for (line, expected) in [
            ("callme model list --models-dir d", ModelJob::List { models_dir: dir() }),
            (
                "callme -q model fetch n",
                ModelJob::Fetch {
                    name: Some("n".to_owned()),
                    models_dir: None,
                    verbosity: Verbosity::Quiet,
                },
            ),
            ("callme --models-dir d model path", ModelJob::Path { name: None, models_dir: dir() }),
        ] {
            match parse(line) {
                Ok(Job::Model(found)) => assert_eq!(found, expected),
                other => panic!("{line}: {other:?}"),
            }
        }
        assert!(matches!(
            parse("callme --functions_definition f --emit-grammar"),
            Ok(Job::EmitGrammar(GrammarConfig { format: GrammarFormat::Gbnf, .. }))
        ));
    }
}
