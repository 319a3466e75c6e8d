//! llama.cpp's sampler against our recognizer, token by token, along walks through many grammars.
//!
//! The grammars are those of the golden cases and, where they lie beside the repository, of shared
//! function sets and schemas. `CALLME_AGREEMENT_GRAMMARS` says how many of all; a few by default.

use std::fs;
use std::path::{Path, PathBuf};

use call_me_maybe::definitions::{self, FunctionDef, FunctionName};
use call_me_maybe::engine::llama::Vocabulary;
use call_me_maybe::engine::{Gate, TokenId, TokenKind, Vocab};
use call_me_maybe::grammar::Grammar;
use call_me_maybe::grammar::lower::{Options, Unsupported, calls};
use call_me_maybe::grammar::print::gbnf;
use call_me_maybe::grammar::recognize::Recognizer;

use crate::coverage::{cases, sets};
use crate::llama::Numbers;

/// Grammars of a quick run.
const N_GRAMMARS: usize = 24;
/// Tokens of one walk.
const N_STEPS: usize = 24;
/// Tokens asked at each step: at random, and like the chosen one.
const N_ASKED: usize = 32;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The grammar of definitions; none where none of them is supported.
fn grammar(functions: &[FunctionDef]) -> Option<Grammar> {
    let options = Options { unsupported: Unsupported::LeaveOut, ..Options::LEGAL };
    calls(functions, options).ok().map(|calls| calls.grammar)
}

fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with(end)));
    paths.sort();
    paths
}

/// Grammars by name: the golden ones, then those of the shared schemas.
fn grammars(n: usize) -> Vec<(String, Grammar)> {
    let mut found = Vec::new();
    for folder in files(&root().join("tests/golden"), "") {
        let Ok(json) = fs::read(folder.join("definitions.json")) else { continue };
        let Ok(functions) = definitions::parse(&json) else { continue };
        found.extend(grammar(&functions).map(|grammar| (folder.display().to_string(), grammar)));
    }
    let shared = root().join("../shared/data");
    let mut sets = Vec::new();
    sets.push(sets::lists(&shared.join("bfcl")).unwrap_or_default());
    let servers = sets::lists(&shared.join("mcp")).unwrap_or_default();
    let tools = servers.into_iter().flat_map(|(_, tools)| tools);
    sets.push(tools.map(|tool| (tool.name.to_string(), vec![tool])).collect());
    let mut schemas = Vec::new();
    for file in cases::files(&shared.join("jsonschema/maskbench"), ".jsonl.gz").unwrap_or_default()
    {
        for case in cases::of_file(&file).unwrap() {
            let schema = serde_json::from_str(case.schema.get()).unwrap();
            let name = FunctionName::new("f").unwrap();
            schemas.push((case.id, vec![FunctionDef::new(name, None, &schema)]));
        }
    }
    sets.push(schemas);
    // From all over each set, the same in every run.
    let n_each = n.saturating_sub(found.len()).div_ceil(sets.len());
    for set in sets {
        let step = (set.len() / n_each.max(1)).max(1);
        let each = set.into_iter().step_by(step);
        let with_grammar = each.filter_map(|(name, list)| Some((name, grammar(&list)?)));
        found.extend(with_grammar.take(n_each));
    }
    found.truncate(n);
    found
}

/// Tokens that begin like the chosen one, or are its beginning and something else.
fn near_misses(vocab: &Vocab, chosen: TokenId, numbers: &mut Numbers) -> Vec<TokenId> {
    let bytes = vocab.bytes(chosen);
    let all = 0..vocab.sorted().len();
    let near = |_| {
        let n_shared = 1 + numbers.below(bytes.len());
        let range = vocab.with_prefix(&bytes[..n_shared], all.clone());
        vocab.sorted()[range.start + numbers.below(range.len())]
    };
    (0..N_ASKED).map(near).collect()
}

/// Whether some well-formed UTF-8 begins with the bytes.
fn begins_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

#[test]
#[ignore = "needs a GGUF in models/"]
#[expect(clippy::print_stdout, reason = "the counts are what `--nocapture` is for")]
fn the_sampler_takes_what_the_recognizer_takes() {
    let vocabulary = Vocabulary::load(&root().join("models/test/vocab-qwen2.gguf")).unwrap();
    let vocab = vocabulary.vocab();
    let n = std::env::var("CALLME_AGREEMENT_GRAMMARS").ok().and_then(|n| n.parse().ok());
    let mut numbers = Numbers(5);
    let (mut n_checks, mut n_stricter) = (0_usize, 0_usize);
    let mut disagreements = Vec::new();
    let grammars = grammars(n.unwrap_or(N_GRAMMARS));
    for (name, grammar) in &grammars {
        let mut gate = vocabulary.gate(&gbnf(grammar)).unwrap();
        let mut text = Recognizer::new(grammar).unwrap();
        let mut so_far = Vec::new();
        for _ in 0..N_STEPS {
            let mask = text.mask(vocab.trie());
            let allowed = mask.len();
            let Some(chosen) = mask.iter().nth(numbers.below(allowed)).map(TokenId) else { break };
            let mut asked = near_misses(vocab, chosen, &mut numbers);
            asked.push(chosen);
            let random = (0..N_ASKED).map(|_| vocab.sorted()[numbers.below(vocab.sorted().len())]);
            asked.extend(random);
            for (id, theirs) in asked.iter().zip(gate.allows_each(&asked)) {
                assert_eq!(vocab.kind(*id), TokenKind::Text);
                let ours = text.accepts(vocab.bytes(*id));
                assert_eq!(ours, mask.contains(id.0), "{name}: the mask");
                n_checks += 1;
                let whole = [&so_far[..], vocab.bytes(*id)].concat();
                // llama.cpp's decoder lets ill-formed UTF-8 through.
                if theirs && !ours && !begins_utf8(&whole) {
                    n_stricter += 1;
                } else if theirs != ours {
                    let whole = String::from_utf8_lossy(&whole).into_owned();
                    disagreements.push(format!("{name}: ours {ours}, theirs {theirs}: {whole:?}"));
                }
            }
            assert!(gate.accept(chosen), "{name}: the chosen token");
            text.push_all(vocab.bytes(chosen)).unwrap();
            so_far.extend_from_slice(vocab.bytes(chosen));
        }
    }
    let n_grammars = grammars.len();
    println!("{n_grammars} grammars, {n_checks} checks, {n_stricter} stricter on ill-formed UTF-8");
    assert!(n_grammars >= 15 && n_checks >= n_grammars * 150, "{n_grammars}: {n_checks}");
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}
