//! Tells the crate what it was built from: commit, llama.cpp bindings, target, CPU.
//!
//! Each becomes an environment variable of the compilation that `src/version.rs` reads; one that cannot be
//! found out stays unset. No git, or no repository, is not an error.
//!
//! **Invariant:** no network, and nothing written.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the binary is made from, below the package's root: git's word `-dirty` speaks of these alone, and
/// cargo runs this script again when one of them changes.
const SOURCES: [&str; 6] =
    ["src", "build.rs", "Cargo.toml", "Cargo.lock", "config", "models/catalog.json"];

/// The CPU features that matter to llama.cpp's kernels, in rustc's spelling.
const FEATURES: [&str; 13] = [
    "sse4.2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avxvnni",
    "avx512f",
    "avx512vbmi",
    "avx512vnni",
    "avx512bf16",
    "neon",
    "dotprod",
    "i8mm",
];

fn main() {
    for source in SOURCES.iter().filter(|source| Path::new(source).exists()) {
        println!("cargo:rerun-if-changed={source}");
    }
    if let Some(commit) = commit() {
        println!("cargo:rustc-env=CALLME_COMMIT={commit}");
    }
    if let Some(version) = locked_version("llama-cpp-2") {
        println!("cargo:rustc-env=CALLME_BINDINGS={version}");
    }
    if let Ok(target) = env::var("TARGET") {
        println!("cargo:rustc-env=CALLME_TARGET={target}");
    }
    println!("cargo:rustc-env=CALLME_CPU={}", cpu());
    println!("cargo:rustc-env=CALLME_CPU_FEATURES={}", features());
}

/// The short hash of the commit, with `-dirty` where a source differs from it.
fn commit() -> Option<String> {
    // A package unpacked inside another repository is none of that repository's commits.
    let root = fs::canonicalize(git(&["rev-parse", "--show-toplevel"])?).ok()?;
    if root != fs::canonicalize(env::var_os("CARGO_MANIFEST_DIR")?).ok()? {
        return None;
    }
    // Git says where these are, since in a worktree `.git` is a file. A commit or a checkout changes the
    // first or the second; the others stand in where there is no reflog. A path that does not exist would
    // make cargo run this script every time.
    let branch = git(&["rev-parse", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        let path = git(&["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|path| !name.is_empty() && Path::new(path).is_file()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let mut status = vec!["--no-optional-locks", "status", "--porcelain", "--"];
    status.extend(SOURCES);
    let dirty = if git(&status)?.is_empty() { "" } else { "-dirty" };
    Some(format!("{commit}{dirty}"))
}

/// What git prints, without the white space around it; `None` where it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The version of a package in `Cargo.lock`: the line after its name.
fn locked_version(package: &str) -> Option<String> {
    let lock = fs::read_to_string("Cargo.lock").ok()?;
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// The value of `-C target-cpu`, the last one where there are several, as rustc takes it.
fn cpu() -> String {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let cpu = flags.split('\x1f').filter_map(|flag| flag.split_once("target-cpu=")).next_back();
    cpu.map_or("generic", |(_, name)| name).to_owned()
}

/// Those of `FEATURES` that rustc compiles for, in their order.
fn features() -> String {
    let all = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let has = |feature: &&str| all.split(',').any(|one| one == *feature);
    FEATURES.into_iter().filter(has).collect::<Vec<_>>().join(" ")
}
