//! How much of JSON Schema the grammars hold, measured on files of schemas with instances.
//!
//! `cargo bench --bench coverage -- DIR` judges every schema of `DIR/*.jsonl` and `DIR/*.jsonl.gz` as
//! the parameters of one function: it must compile, llama.cpp must load the grammar, each
//! instance must come out right, and walks over the grammar must give valid documents. A valid
//! instance is taken if one of its spellings is, an invalid one must be refused in all; the
//! spellings are those of `call_me_maybe::check`. `--help` tells the flags.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a table is what it is for")]

mod cases;
mod engine;
mod judge;
mod sets;
mod table;
mod walk;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use peak_alloc::PeakAlloc;

use self::cases::{Case, Random};
use self::judge::{Compiled, Instruments, Verdict};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Measures which schemas have a grammar, and whether the grammars are right.
#[derive(Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct Flags {
    /// A folder of schemas with instances
    #[arg(default_value = "../shared/data/jsonschema/maskbench")]
    dir: PathBuf,
    /// Only files whose names begin so
    #[arg(long)]
    subset: Option<String>,
    /// Only schemas whose id holds this
    #[arg(long)]
    id: Option<String>,
    /// So many schemas, by chance
    #[arg(long)]
    sample: Option<usize>,
    /// Of the sample and the walks
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// List each schema that does not pass, with an example
    #[arg(long)]
    list: bool,
    /// Name each schema before it is judged
    #[arg(long)]
    verbose: bool,
    /// Print JSON in place of tables
    #[arg(long)]
    json: bool,
    /// Folders of real function sets, of which all must compile
    #[arg(long, default_values = ["../shared/data/mcp", "../shared/data/bfcl"])]
    sets: Vec<PathBuf>,
    /// The GGUF whose vocabulary llama.cpp loads grammars with
    #[arg(long, default_value = "models/test/vocab-qwen2.gguf")]
    vocab: PathBuf,
    /// Serve as the child that runs llama.cpp's converter
    #[arg(long, hide = true)]
    convert: bool,
    /// cargo bench passes it
    #[arg(long, hide = true)]
    bench: bool,
}

/// llama.cpp, where it is built in, and the counted memory.
struct Measured {
    engine: engine::Engine,
}

impl Instruments for Measured {
    fn load(&self, gbnf: &str) -> Option<String> {
        self.engine.load(gbnf)
    }

    fn convert(&self, schema: &str) -> Option<Duration> {
        self.engine.convert(schema)
    }

    fn peak(&self, work: &mut dyn FnMut()) -> usize {
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        work();
        MEMORY.peak_usage().saturating_sub(before)
    }
}

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(flags: &Flags) -> anyhow::Result<()> {
    if flags.convert {
        return Ok(engine::convert_lines()?);
    }
    let cases = read(flags)?;
    let measured = Measured { engine: engine::Engine::new(&flags.vocab)? };
    // A panic is a verdict; its text is in there.
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let mut verdicts = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        if flags.verbose {
            eprintln!("{}", case.id);
        }
        let verdict = judge::judge(case, flags.seed + index as u64, &measured);
        verdicts.push(verdict);
    }
    let _ = std::panic::take_hook();
    if flags.json {
        println!("{:#}", table::json(&verdicts));
    } else {
        print_tables(flags, &verdicts, &measured)?;
    }
    eprintln!("{} schemas in {:.0} s", verdicts.len(), start.elapsed().as_secs_f64());
    Ok(())
}

fn read(flags: &Flags) -> anyhow::Result<Vec<Case>> {
    let at = || format!("{}", flags.dir.display());
    let mut files = cases::files(&flags.dir, ".jsonl.gz").with_context(at)?;
    files.extend(cases::files(&flags.dir, ".jsonl").with_context(at)?);
    let mut cases = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if flags.subset.as_ref().is_none_or(|subset| name.starts_with(subset.as_str())) {
            cases.extend(cases::of_file(&file).with_context(|| file.display().to_string())?);
        }
    }
    if let Some(id) = &flags.id {
        cases.retain(|case| case.id.contains(id.as_str()));
    }
    if let Some(n) = flags.sample {
        cases = Random::new(flags.seed).sample(cases, n);
    }
    Ok(cases)
}

fn print_tables(flags: &Flags, verdicts: &[Verdict], measured: &Measured) -> anyhow::Result<()> {
    println!("{}", measured.engine.note());
    println!("\n{}", table::by_subset(verdicts));
    println!("{}", table::reason_table(verdicts));
    let compiled = || verdicts.iter().filter(|v| matches!(v.result, Compiled::Grammar(_)));
    let ours = |name: &str, of: &mut dyn Iterator<Item = &Verdict>| {
        let times: Vec<_> = of.map(|v| (v.compile, v.id.clone())).collect();
        table::time_line(name, times.iter().map(|(time, id)| (*time, id.as_str())).collect())
    };
    print!("{}", ours("schema text to GBNF, all", &mut verdicts.iter()));
    print!("{}", ours("schema text to GBNF, compiled", &mut compiled()));
    let both = || compiled().filter_map(|v| v.theirs.map(|theirs| (v, theirs)));
    let theirs = both().map(|(v, theirs)| (theirs, v.id.as_str())).collect();
    print!("{}", table::time_line("llama.cpp's converter, the same", theirs));
    println!("it ends its process on            {}", measured.engine.n_crashes());
    let faster = both().filter(|(v, theirs)| v.compile < *theirs).count();
    println!("ours is the faster on             {faster} of {}", both().count());
    let largest = verdicts.iter().max_by_key(|verdict| verdict.peak_bytes);
    if let Some(Verdict { peak_bytes, id, .. }) = largest {
        println!("most memory to compile one        {} kB ({id})", peak_bytes / 1_000);
    }
    println!("\n{}", sets::table(&flags.sets)?);
    if flags.list {
        for verdict in verdicts {
            if let Some((reason, example)) = verdict.trouble() {
                let example: String = example.chars().take(300).collect();
                println!("{}\t{reason}\t{}", verdict.id, example.replace(['\n', '\t'], " "));
            }
        }
    }
    Ok(())
}
