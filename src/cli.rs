//! The command line's words: flags and subcommands as they are typed, nothing else.
//!
//! **Invariant:** no I/O and no defaults here. A flag that was not given is `None`;
//! [`crate::config`] says what that means.
//! **Invariant:** a flag's first line is its `-h` text and stays under 80 columns; `--help`
//! adds the default, the unit and the interplay.

#![expect(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    reason = "the docs of a flag are its help, which shows backticks as they are"
)]

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::eval::Scoring;
use crate::prompt::CallCount;

const EXIT_STATUS: &str = "\
Exit status:
  0    every prompt has its result (also when stdout was closed by its reader)
  1    the run finished, but some prompts failed or were cut at a limit; the
       summary names them
  2    it could not run: usage, a file, the model
  130  interrupted by Ctrl-C    } what was finished is kept in OUTPUT.partial;
  143  ended by SIGTERM         } a second signal leaves at once";

const CHECK_HELP: &str = "\
Prints a line for each text to stdout: ok, or not and why, with the place. A
refused text is shown on stderr with a mark under its first wrong byte.

Exit status: 0 all texts are legal calls, 1 some are not, 2 it could not run";

const BENCH_HELP: &str = "\
Each run is a process of its own. Prints a table to stdout: calls/s over all
prompts without loading; of ref., the share of the speed at which this model
reads a prompt; forced, the tokens that the grammar left no choice about.

Exit status: 0 measured, 2 it could not run";

const EVAL_HELP: &str = "\
Prints to stdout, by category and in all, how many cases are right and the 95 %
interval of the share (Wilson); then why the others are wrong, the most frequent
reason first; with -v each of them. A case is right by the rules of the Berkeley
function-calling leaderboard; a prompt of the exercise, where its parameters
are. For these, function and parameters are counted besides.

Exit status: 0 scored, 1 scored, but some prompts failed or were cut at a limit,
2 it could not run, 130 or 143 interrupted; what was finished is kept";

const EXPLAIN_HELP: &str = "\
Prints to stdout a line for each step: what the model chose with its
probability among all that the grammar allowed, and the likeliest others;
what the grammar forced is marked so. Then the call, how sure each part of it
is, and which of its values do not stand in the prompt.

Exit status: 0 explained, 1 there is no call or it was cut, 2 it could not run,
130 or 143 interrupted";

const EXAMPLES: &str = "\
Examples:
  callme
        reads data/input/, writes data/output/function_calls.json
  callme --functions_definition tools.json --input prompts.json --output -
        other files, the result to stdout
  echo '\"Add 20 and 22\"' | callme --input - --output calls.jsonl
        a prompt from stdin, JSON lines with errors to a file
  callme --functions_definition tools.json --emit-grammar
        the grammar that the calls are written under; loads no model
  callme check --functions_definition tools.json calls.jsonl
        are these legal calls of the functions?
  callme bench --models qwen3-0.6b-q8_0 --quantize Q4_0 --plot chart.svg
        how fast, how large, how right: two quantizations compared
  callme eval --cases labelled.jsonl --compare data/output/eval-before.json
        how many calls are right, and what changed since an earlier run
  callme explain 'Add 20 and 22'
        what the model weighed at each step of its call
  callme model fetch
        the default model, once; a run itself never touches the network";

/// Turns natural-language requests into schema-valid function calls.
///
/// Reads function definitions and prompts, lets a small local model write one
/// call for each prompt under a grammar made from the definitions, and writes
/// the calls in input order. The run never touches the network.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(
    name = "callme",
    version,
    max_term_width = 80,
    disable_version_flag = true,
    after_help = "\
Exit status: 0 done, 1 some prompts failed or cut, 2 could not run, 130 or
143 interrupted
--help says more, with examples",
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_STATUS}"),
)]
pub struct Args {
    /// Another job than the run.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The flags of the run.
    #[command(flatten)]
    pub run: RunArgs,

    /// Look for models in DIR first
    ///
    /// `model fetch` writes there. Models are looked for in DIR, in
    /// $CALLME_MODELS, in models/ of the current directory, then in the
    /// user's data folder.
    /// [default: none]
    #[arg(
        long,
        alias = "models_dir",
        value_name = "DIR",
        global = true,
        help_heading = "Model",
        verbatim_doc_comment
    )]
    pub models_dir: Option<PathBuf>,

    /// Say more: tokens and time of each prompt
    ///
    /// Adds, for each prompt, the tokens that the model chose, those that the
    /// grammar forced, and the time. -v also shows informational messages,
    /// -vv debug messages and llama.cpp's log, -vvv everything. $RUST_LOG,
    /// where set, decides about messages instead.
    /// [default: warnings and errors]
    #[arg(
        long,
        short,
        action = ArgAction::Count,
        global = true,
        conflicts_with = "quiet",
        help_heading = "Terminal",
        verbatim_doc_comment
    )]
    pub verbose: u8,

    /// Say only what went wrong
    ///
    /// No calls, no progress and no closing line on stderr; errors and the
    /// prompts that failed are still named.
    /// [default: off]
    #[arg(long, short, global = true, help_heading = "Terminal", verbatim_doc_comment)]
    pub quiet: bool,

    /// Print the version
    ///
    /// -V prints it alone; --version adds the commit, the llama-cpp-2 version
    /// and the CPU features that llama.cpp was built with.
    #[arg(
        long,
        short = 'V',
        action = ArgAction::Version,
        help_heading = "Terminal",
        verbatim_doc_comment
    )]
    version: Option<bool>,
}

/// The flags of the run; all optional, and none goes with a subcommand.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub struct RunArgs {
    /// Function definitions, a JSON file (- is stdin)
    ///
    /// Read liberally: a list of {"name", "description", "parameters"} with
    /// parameters in short form or as JSON Schema, OpenAI tools, an MCP
    /// tools/list result, or the older fn_name/args_names/args_types.
    /// Also spelled --functions-definition.
    /// [default: data/input/functions_definition.json]
    #[arg(
        long = "functions_definition",
        alias = "functions-definition",
        value_name = "FILE",
        help_heading = "Files",
        verbatim_doc_comment
    )]
    pub functions_definition: Option<PathBuf>,

    /// Prompts, JSON or JSON lines (- is stdin)
    ///
    /// [{"prompt": "..."}], ["..."], or one such object or string a line. An
    /// object may carry "functions" of its own and an "id".
    /// [default: data/input/function_calling_tests.json]
    #[arg(long, value_name = "FILE", help_heading = "Files", verbatim_doc_comment)]
    pub input: Option<PathBuf>,

    /// Where the calls go, JSON or .jsonl (- is stdout)
    ///
    /// One JSON array of {"prompt", "name", "parameters"} in input order; a
    /// prompt that failed has "name": null. A name that ends in .jsonl or
    /// .ndjson gets one object a line instead, with "id" and "error" where
    /// there is one. Folders are created; an existing file stays whole until
    /// the new one replaces it.
    /// [default: data/output/function_calls.json]
    #[arg(long, value_name = "FILE", help_heading = "Files", verbatim_doc_comment)]
    pub output: Option<PathBuf>,

    /// Write what is known of each call to FILE, JSON lines
    ///
    /// One line a prompt: the call, how likely the model held the call, its
    /// function (and which one was next) and each argument, among all that the
    /// grammar allowed; where its strings and numbers stand in the prompt, in
    /// characters; tokens, milliseconds, and what went wrong. The probability
    /// is that of the tokens that were chosen: another way to divide a text
    /// into tokens counts in so far as the grammar makes them one.
    /// [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Files", verbatim_doc_comment)]
    pub report: Option<PathBuf>,

    /// Refuse calls that the model held less likely than P, 0 to 1
    ///
    /// The prompt then fails, with "name": null; the error, and --report, tell
    /// the call. callme eval shows what share is right at which probability.
    /// [default: off]
    #[arg(
        long,
        alias = "min_confidence",
        value_name = "P",
        value_parser = probability,
        help_heading = "Model",
        verbatim_doc_comment
    )]
    pub min_confidence: Option<f64>,

    /// How the model is asked: system text, examples, limits
    ///
    /// Where the default file is not there, the built-in configuration
    /// serves; a file given here must exist.
    /// Also spelled --prompts-config.
    /// [default: config/prompts.json]
    #[arg(
        long = "prompts_config",
        alias = "prompts-config",
        value_name = "FILE",
        help_heading = "Files",
        verbatim_doc_comment
    )]
    pub prompts_config: Option<PathBuf>,

    /// Print the grammar of the functions to stdout and stop
    ///
    /// Reads --functions_definition only and loads no model. gbnf is
    /// llama.cpp's notation; svg a railroad diagram, for a browser; json the
    /// rules as data: {"rules": [{"name", "comment", "argument", "expr"}]},
    /// an expr being one of {"literal": TEXT}, {"class": {"ranges":
    /// [[FIRST, LAST]], "negated"}}, {"rule": NAME}, {"concat": LIST},
    /// {"choice": LIST} and {"repeat": {"expr", "min", "max"}}. A function
    /// whose schema has no grammar is a comment in it, and the exit status is
    /// then 1. Keys that a schema allows without declaring them are in it; a
    /// run leaves them out.
    /// [default: off; the format, gbnf]
    #[arg(
        long,
        alias = "emit_grammar",
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "gbnf",
        help_heading = "Files",
        hide_possible_values = true,
        verbatim_doc_comment
    )]
    pub emit_grammar: Option<GrammarFormat>,

    /// The model and how it decodes.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// The flags of whatever asks a model: which one, and how it decodes.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub struct AskArgs {
    /// Leave what has no grammar to the validator
    ///
    /// Without it a function whose schema asserts such a thing cannot be
    /// called. With it the keyword is named in a warning and not enforced
    /// while decoding; a call that breaks it fails its prompt.
    /// [default: off]
    #[arg(long, help_heading = "Model", verbatim_doc_comment)]
    pub lenient: bool,

    /// A model of the catalogue, a GGUF file, or auto
    ///
    /// auto is the first of the catalogue's order that is present; `callme
    /// model list` shows them.
    /// [default: the configuration's, which is auto]
    #[arg(long, value_name = "NAME-OR-PATH", help_heading = "Model", verbatim_doc_comment)]
    pub model: Option<String>,

    /// Threads that compute
    ///
    /// [default: the physical cores that this process may use]
    #[arg(long, value_name = "N", help_heading = "Model", verbatim_doc_comment)]
    pub threads: Option<NonZeroUsize>,

    /// Prompts that are answered at the same time, 1 to 250
    ///
    /// They share the model's steps, which is what makes a batch fast. Fewer
    /// are in flight where their cache would take more than 256 MiB. With 1
    /// a call does not depend on what else runs; with more, a tie of the
    /// model's may fall otherwise.
    /// [default: 16]
    #[arg(
        long,
        value_name = "N",
        value_parser = parallel,
        help_heading = "Model",
        verbatim_doc_comment
    )]
    pub parallel: Option<NonZeroUsize>,

    /// Keep what prompts begin with in DIR, for the next run
    ///
    /// The system text and the functions, as the model has read them: some
    /// 10 MB for each set of functions that was used twice, 1 GiB in all.
    /// [default: the user's cache folder, callme]
    #[arg(
        long,
        alias = "prefix_cache",
        value_name = "DIR",
        help_heading = "Model",
        verbatim_doc_comment
    )]
    pub prefix_cache: Option<PathBuf>,

    /// Neither read nor write kept beginnings of prompts
    ///
    /// [default: off]
    #[arg(
        long,
        alias = "no_prefix_cache",
        conflicts_with = "prefix_cache",
        help_heading = "Model",
        verbatim_doc_comment
    )]
    pub no_prefix_cache: bool,

    /// How many calls answer a prompt: one or many
    ///
    /// many is as many as the model writes, in the order of the prompt; a
    /// record is then {"prompt", "calls": [{"name", "parameters"}]}.
    /// [default: the configuration's, which is one]
    #[arg(
        long,
        value_name = "HOW-MANY",
        help_heading = "Model",
        hide_possible_values = true,
        verbatim_doc_comment
    )]
    pub calls: Option<CallCount>,

    /// Let the model answer that no function fits
    ///
    /// Such a prompt has "name": null, or no "calls", and no error; the
    /// threshold is the configuration's.
    /// [default: the configuration's, which is off]
    #[arg(long, alias = "no_call", help_heading = "Model", verbatim_doc_comment)]
    pub no_call: bool,

    /// Tokens at most for the value of one argument
    ///
    /// A longer value is cut there and closed legally; the prompt is reported
    /// as cut, and the exit status is 1.
    /// [default: the configuration's, which is 512]
    #[arg(
        long,
        alias = "max_value_tokens",
        value_name = "N",
        help_heading = "Model",
        verbatim_doc_comment
    )]
    pub max_value_tokens: Option<NonZeroU32>,

    /// Randomness of the model's choices, 0 and up
    ///
    /// 0 is greedy: the same input, build and threads give the same bytes.
    /// [default: 0]
    #[arg(
        long,
        value_name = "T",
        value_parser = temperature,
        allow_negative_numbers = true,
        help_heading = "Model",
        verbatim_doc_comment
    )]
    pub temperature: Option<f32>,

    /// Seed of the random choices
    ///
    /// Of no effect while the temperature is 0.
    /// [default: 0]
    #[arg(long, value_name = "N", help_heading = "Model", verbatim_doc_comment)]
    pub seed: Option<u64>,
}

/// What `--emit-grammar` can print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GrammarFormat {
    /// llama.cpp's grammar notation.
    Gbnf,
    /// The rules as data.
    Json,
    /// A railroad diagram.
    Svg,
}

/// The jobs beside the run.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Command {
    /// List, fetch or locate models
    #[command(subcommand)]
    Model(ModelCommand),
    /// Tell whether JSON texts are legal calls of the functions
    Check(CheckArgs),
    /// Measure and compare models and quantizations
    Bench(BenchArgs),
    /// Score the calls for labelled cases, and compare runs
    Eval(EvalArgs),
    /// Show what the model saw and what it weighed at each step
    Explain(ExplainArgs),
}

/// What is explained.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = EXPLAIN_HELP)]
pub struct ExplainArgs {
    /// The request
    #[arg(value_name = "PROMPT")]
    pub prompt: String,

    /// Function definitions, a JSON file (- is stdin)
    ///
    /// [default: data/input/functions_definition.json]
    #[arg(
        long = "functions_definition",
        alias = "functions-definition",
        value_name = "FILE",
        help_heading = "Files",
        verbatim_doc_comment
    )]
    pub functions_definition: Option<PathBuf>,

    /// How the model is asked: system text, examples, limits
    ///
    /// [default: config/prompts.json]
    #[arg(
        long = "prompts_config",
        alias = "prompts-config",
        value_name = "FILE",
        help_heading = "Files",
        verbatim_doc_comment
    )]
    pub prompts_config: Option<PathBuf>,

    /// Show the whole text that the model reads first
    #[arg(long, alias = "show_prompt")]
    pub show_prompt: bool,

    /// Others to show beside each choice
    ///
    /// [default: 3]
    #[arg(long, value_name = "N", verbatim_doc_comment)]
    pub others: Option<usize>,

    /// The model and how it decodes.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// What is scored.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(after_help = EVAL_HELP)]
pub struct EvalArgs {
    /// Labelled cases, JSON or JSON lines (- is stdin); may be repeated
    ///
    /// {"id", "category", "prompt", "functions", "expected"}, where expected is
    /// [{FUNCTION: {PARAMETER: [RIGHT VALUES]}}], "" among the values meaning
    /// that it may be left out, or a call {"name", "arguments"}; or {"prompt",
    /// "name", "parameters", "accept"}, the exercise's, over the functions of
    /// --functions_definition. Of cases with the same id the first counts.
    #[arg(
        long,
        value_name = "FILE",
        required = true,
        help_heading = "Files",
        verbatim_doc_comment
    )]
    pub cases: Vec<PathBuf>,

    /// Function definitions of the cases that have none (- is stdin)
    ///
    /// [default: data/input/functions_definition.json]
    #[arg(
        long = "functions_definition",
        alias = "functions-definition",
        value_name = "FILE",
        help_heading = "Files",
        verbatim_doc_comment
    )]
    pub functions_definition: Option<PathBuf>,

    /// How the model is asked: system text, examples, limits
    ///
    /// [default: config/prompts.json]
    #[arg(
        long = "prompts_config",
        alias = "prompts-config",
        value_name = "FILE",
        help_heading = "Files",
        verbatim_doc_comment
    )]
    pub prompts_config: Option<PathBuf>,

    /// Score the calls of FILE; no model runs (- is stdin)
    ///
    /// {"id", "calls": [{"name", "arguments"}]}, or records of a run, or what
    /// eval wrote. Records without "id" are taken in the order of the cases. A
    /// record with "error" and without a call is no answer; no call without an
    /// error says that no function fits.
    /// [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Files", verbatim_doc_comment)]
    pub predictions: Option<PathBuf>,

    /// The JSON file for every record and the figures; must not exist
    ///
    /// Nothing is ever written over an earlier run.
    /// [default: data/output/eval-TIME.json, UTC]
    #[arg(long, value_name = "FILE", help_heading = "Files", verbatim_doc_comment)]
    pub output: Option<PathBuf>,

    /// Compare with the file of an earlier run, case by case
    ///
    /// Names the cases that were fixed and those that were broken, with the p
    /// value of a two-sided sign test: how likely so uneven a split were by
    /// chance.
    /// [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Files", verbatim_doc_comment)]
    pub compare: Option<PathBuf>,

    /// How much like the label a call must be: strict or lenient
    ///
    /// lenient takes 1 for 1.0 and compares strings without blanks, marks and
    /// case at any depth, and gives several calls to answers in the best way.
    /// Figures of others are strict.
    /// [default: strict]
    #[arg(
        long,
        value_name = "HOW",
        help_heading = "Scoring",
        hide_possible_values = true,
        verbatim_doc_comment
    )]
    pub scoring: Option<Scoring>,

    /// The model and how it decodes.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// What is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// Models: names, GGUF files, or a folder of them
    ///
    /// The first is what the others are compared with.
    /// [default: auto]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', verbatim_doc_comment)]
    pub models: Vec<String>,

    /// Quantizations to measure too, made where they are missing
    ///
    /// By llama.cpp's own quantizer from --from, into the folder of fetched
    /// models: Q8_0,Q5_K_M,Q4_K_M,Q4_0,IQ4_NL,Q3_K_M for instance.
    /// [default: none]
    #[arg(long, value_name = "TYPES", value_delimiter = ',', verbatim_doc_comment)]
    pub quantize: Vec<String>,

    /// The model that quantizations are made from
    ///
    /// [default: the first of --models]
    #[arg(long, value_name = "NAME-OR-PATH", requires = "quantize", verbatim_doc_comment)]
    pub from: Option<String>,

    /// Function definitions, a JSON file
    ///
    /// [default: data/input/functions_definition.json]
    #[arg(
        long = "functions_definition",
        alias = "functions-definition",
        value_name = "FILE",
        verbatim_doc_comment
    )]
    pub functions_definition: Option<PathBuf>,

    /// Prompts; with "name" and "parameters" they are scored
    ///
    /// Read as for a run. "accept" may list other parameters that are right.
    /// [default: data/input/function_calling_tests.json]
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub input: Option<PathBuf>,

    /// How the model is asked
    ///
    /// [default: config/prompts.json]
    #[arg(
        long = "prompts_config",
        alias = "prompts-config",
        value_name = "FILE",
        verbatim_doc_comment
    )]
    pub prompts_config: Option<PathBuf>,

    /// Runs of each model, after one to warm up
    ///
    /// [default: 3]
    #[arg(long, value_name = "N", verbatim_doc_comment)]
    pub repeat: Option<NonZeroUsize>,

    /// Threads that compute
    ///
    /// [default: the physical cores that this process may use]
    #[arg(long, value_name = "N", verbatim_doc_comment)]
    pub threads: Option<NonZeroUsize>,

    /// Prompts that are answered at the same time
    ///
    /// [default: 16]
    #[arg(long, value_name = "N", value_parser = parallel, verbatim_doc_comment)]
    pub parallel: Option<NonZeroUsize>,

    /// Keep what prompts begin with in DIR, between the runs
    ///
    /// [default: nothing is kept]
    #[arg(long, alias = "prefix_cache", value_name = "DIR", verbatim_doc_comment)]
    pub prefix_cache: Option<PathBuf>,

    /// Write every run's figures as JSON (- is stdout)
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub json: Option<PathBuf>,

    /// Write the medians as CSV (- is stdout)
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub csv: Option<PathBuf>,

    /// Draw speed against size as SVG (- is stdout)
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub plot: Option<PathBuf>,

    /// Serve as the process of one run
    #[arg(long, hide = true)]
    pub worker: bool,
}

/// What is checked against what.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(after_help = CHECK_HELP)]
pub struct CheckArgs {
    /// The texts: a call, a list, or one a line (- is stdin)
    ///
    /// {"name", "arguments"} or the records that a run writes, {"prompt",
    /// "name", "parameters"}: one, a JSON array of them, or JSON lines.
    /// [default: -]
    #[arg(value_name = "FILE", verbatim_doc_comment)]
    pub file: Option<PathBuf>,

    /// Function definitions, a JSON file (- is stdin)
    ///
    /// Read as for a run.
    /// [default: data/input/functions_definition.json]
    #[arg(
        long = "functions_definition",
        alias = "functions-definition",
        value_name = "FILE",
        verbatim_doc_comment
    )]
    pub functions_definition: Option<PathBuf>,

    /// Only this function; its arguments alone are a call too
    #[arg(long, value_name = "NAME", conflicts_with = "grammar", verbatim_doc_comment)]
    pub function: Option<String>,

    /// Check the bytes as they are
    ///
    /// Each line must be a call as the grammar writes it: its white space, its
    /// order of keys, its spelling of numbers. Without this a text is read and
    /// written anew first, which changes nothing that it says.
    /// [default: off]
    #[arg(long, verbatim_doc_comment)]
    pub exact: bool,

    /// A GBNF file in place of definitions
    ///
    /// The bytes of the whole file are then one text, JSON or not, but for a
    /// line end at its end; --exact is implied.
    /// [default: none]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "functions_definition",
        verbatim_doc_comment
    )]
    pub grammar: Option<PathBuf>,

    /// A model whose vocabulary the grammar's tokens are of
    ///
    /// Needed only for a grammar with token terminals; the
    /// weights are not read.
    /// [default: none]
    #[arg(long, value_name = "NAME-OR-PATH", requires = "grammar", verbatim_doc_comment)]
    pub model: Option<String>,
}

/// What to do about models.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ModelCommand {
    /// Show the catalogue: names, sizes, licences, and what is present
    List,
    /// Fetch a model and check its SHA-256
    Fetch {
        /// A name of the catalogue [default: the catalogue's first]
        name: Option<String>,
    },
    /// Make another quantization of a model
    Quantize {
        /// The model: a name, or a GGUF file; best one that is not quantized yet
        #[arg(value_name = "IN")]
        from: String,
        /// The quantization: Q8_0, Q5_K_M, Q4_K_M, Q4_0, IQ4_NL, Q3_K_M, ...
        #[arg(long, value_name = "TYPE")]
        to: String,
        /// The file to write [default: IN's name with TYPE, in the folder of fetched models]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Print where a model's file is
    Path {
        /// A name of the catalogue, or auto [default: auto]
        name: Option<String>,
    },
}

impl Args {
    /// Reads a whole command line, the program's name first.
    ///
    /// `long_version` is what `--version` prints after the program's name.
    ///
    /// # Errors
    /// A usage error, or the text of `--help` or `--version`: clap's error carries the text, the
    /// stream that it belongs on and the exit status.
    pub fn parse_from_os(
        words: impl IntoIterator<Item = OsString>,
        long_version: &'static str,
    ) -> Result<Self, clap::Error> {
        let mut command =
            Self::command().version(env!("CARGO_PKG_VERSION")).long_version(long_version);
        let matches = command.try_get_matches_from_mut(with_format_joined(words))?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// `--emit-grammar svg` as `--emit-grammar=svg`: the format may be left out, so clap takes it from
/// the same word only, and would take the next one for a subcommand.
fn with_format_joined(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for word in words {
        let is_format =
            word.to_str().is_some_and(|word| GrammarFormat::from_str(word, false).is_ok());
        match joined.last_mut() {
            Some(flag) if is_format && (*flag == "--emit-grammar" || *flag == "--emit_grammar") => {
                flag.push("=");
                flag.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

fn parallel(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().and_then(NonZeroUsize::new);
    number.filter(|n| n.get() <= 250).ok_or_else(|| "not a number from 1 to 250".to_owned())
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("not a number from 0 to 1".to_owned()),
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("not a number of 0 or more".to_owned()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::parse_from_os(line.split_whitespace().map(OsString::from), "0.0.0 test")
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn both_spellings_mean_the_same() {
        for (left, right) in [
            ("callme --functions_definition f", "callme --functions-definition f"),
            ("callme --prompts_config f", "callme --prompts-config=f"),
            ("callme --models_dir f", "callme --models-dir f"),
            ("callme --max_value_tokens 9", "callme --max-value-tokens 9"),
            ("callme --emit_grammar", "callme --emit-grammar=gbnf"),
            ("callme --emit-grammar svg", "callme --emit-grammar=svg"),
            ("callme --emit_grammar json -q", "callme -q --emit_grammar=json"),
            ("callme --models-dir d model list", "callme model list --models-dir d"),
            ("callme -vv model path", "callme model path --verbose --verbose"),
        ] {
            assert_eq!(parse(left).unwrap(), parse(right).unwrap(), "{left}");
            assert_ne!(parse(left).unwrap(), parse("callme").unwrap(), "{left}");
        }
    }

    #[test]
    fn short_help_lines_fit_80_columns() {
        let help = parse("callme -h").unwrap_err().to_string();
        for line in help.lines() {
            assert!(line.chars().count() < 80, "{line}");
        }
    }
}
