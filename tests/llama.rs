//! The golden grammars in llama.cpp's own sampler, and that sampler against our recognizer.
//!
//! A vocabulary without weights is enough: `models/test/vocab-qwen2.gguf`, which `make test` makes.

use std::fs;
use std::path::{Path, PathBuf};

use call_me_maybe::definitions;
use call_me_maybe::engine::llama::{LlamaGate, Vocabulary};
use call_me_maybe::engine::{Gate, TokenId, TokenKind};
use call_me_maybe::grammar::lower::{Options, Unsupported, calls};
use call_me_maybe::grammar::print::gbnf;
use call_me_maybe::grammar::recognize::Recognizer;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn vocabulary() -> Vocabulary {
    Vocabulary::load(&root().join("models/test/vocab-qwen2.gguf")).unwrap()
}

struct Case {
    name: String,
    gbnf: String,
    start: Recognizer,
    accept: String,
    reject: String,
}

fn cases() -> Vec<Case> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root().join("tests/golden"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert!(folders.len() >= 16);
    folders.iter().map(|folder| case(folder)).collect()
}

fn case(folder: &Path) -> Case {
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    let functions = definitions::parse(read("definitions.json").as_bytes()).unwrap();
    let grammar = calls(&functions, Options::LEGAL).unwrap().grammar;
    Case {
        name: folder.file_name().unwrap().to_str().unwrap().to_owned(),
        // The same text as the stored one; `golden.rs` compares them.
        gbnf: read("grammar.gbnf"),
        start: Recognizer::new(&grammar).unwrap(),
        accept: read("accept.jsonl"),
        reject: read("reject.jsonl"),
    }
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % n.max(1)
    }
}

/// Tokens whose bytes, joined, are the text: as the tokenizer has it, one for each byte, the
/// longest at every place, and at random.
fn tokenizations(vocabulary: &Vocabulary, text: &str, numbers: &mut Numbers) -> Vec<Vec<TokenId>> {
    let vocab = vocabulary.vocab();
    let bytes = text.as_bytes();
    let mut all = vec![vocab.longest_match(bytes).unwrap()];
    let canonical = vocabulary.tokenize(text, false);
    if canonical.iter().all(|id| vocab.kind(*id) == TokenKind::Text) {
        all.push(canonical);
    }
    all.push(bytes.iter().flat_map(|byte| vocab.longest_match(&[*byte]).unwrap()).collect());
    for _ in 0..2 {
        let mut tokens = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let n = 1 + numbers.below(rest.len().min(9));
            tokens.push(vocab.longest_match(&rest[..n]).unwrap()[0]);
            rest = &rest[vocab.bytes(tokens[tokens.len() - 1]).len()..];
        }
        all.push(tokens);
    }
    for tokens in &all {
        assert!(tokens.iter().flat_map(|id| vocab.bytes(*id)).eq(bytes), "{text}");
    }
    all
}

/// How many of the tokens the gate takes; it is asked before each.
fn n_taken(gate: &mut LlamaGate, tokens: &[TokenId]) -> usize {
    let taken = tokens.iter().take_while(|id| {
        let is_allowed = gate.allows(**id);
        is_allowed && {
            assert!(gate.accept(**id), "allowed and refused");
            true
        }
    });
    taken.count()
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn golden_texts_are_taken_and_refused() {
    let vocabulary = vocabulary();
    let ids = (0..u32::try_from(vocabulary.vocab().len()).unwrap()).map(TokenId);
    let ends: Vec<TokenId> = ids.filter(|id| vocabulary.vocab().is_end(*id)).collect();
    assert!(!ends.is_empty());
    let mut numbers = Numbers(1);
    for Case { name, gbnf, accept, reject, .. } in cases() {
        for text in accept.lines() {
            for tokens in tokenizations(&vocabulary, text, &mut numbers) {
                let mut gate = vocabulary.gate(&gbnf).unwrap();
                let n = n_taken(&mut gate, &tokens);
                assert_eq!(n, tokens.len(), "{name}: {text}: token {n}");
                assert!(ends.iter().all(|end| gate.allows(*end)), "{name}: {text}: the end");
            }
        }
        for text in reject.lines() {
            for tokens in tokenizations(&vocabulary, text, &mut numbers) {
                let mut gate = vocabulary.gate(&gbnf).unwrap();
                let is_whole = n_taken(&mut gate, &tokens) == tokens.len();
                assert!(!is_whole || !ends.iter().any(|end| gate.allows(*end)), "{name}: {text}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn printed_grammars_are_taken_as_they_are() {
    let vocabulary = vocabulary();
    let mut n_taken = 0;
    for case in cases() {
        let path = root().join("tests/golden").join(&case.name).join("definitions.json");
        let functions = definitions::parse(&fs::read(path).unwrap()).unwrap();
        // Where no function is left there is no grammar.
        if let Ok(lowered) =
            calls(&functions, Options { unsupported: Unsupported::LeaveOut, ..Options::LEGAL })
        {
            vocabulary.gate(&gbnf(&lowered.grammar)).unwrap();
            n_taken += 1;
        }
    }
    assert!(n_taken >= 15, "{n_taken}");
    let error = vocabulary.gate("root ::= missing").unwrap_err().to_string();
    assert!(error.starts_with("llama.cpp does not accept the grammar: "), "{error}");
}

/// Whether some well-formed UTF-8 begins with the bytes.
fn begins_utf8(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn the_recognizer_and_the_sampler_agree_on_random_tokens() {
    let vocabulary = vocabulary();
    let vocab = vocabulary.vocab();
    let sorted = vocab.sorted();
    let mut numbers = Numbers(2);
    let (mut n_asked, mut n_allowed) = (0, 0);
    for Case { name, gbnf, start, .. } in cases() {
        for _ in 0..3 {
            let mut gate = vocabulary.gate(&gbnf).unwrap();
            let mut recognizer = start.clone();
            let mut text = Vec::new();
            for _ in 0..60 {
                let next: Vec<u8> = recognizer.allowed().iter().collect();
                if next.is_empty() {
                    break;
                }
                let mut allowed = Vec::new();
                for n in 0..10 {
                    // Half of them begin with a byte that is allowed, and some are that byte.
                    let byte = next[numbers.below(next.len())];
                    let range = vocab.with_prefix(&[byte], 0..sorted.len());
                    let id = match n {
                        0..4 => sorted[range.start + numbers.below(range.len())],
                        4..6 => vocab.longest_match(&[byte]).unwrap()[0],
                        _ => TokenId(u32::try_from(numbers.below(vocab.len())).unwrap()),
                    };
                    if vocab.kind(id) != TokenKind::Text {
                        continue;
                    }
                    let bytes = vocab.bytes(id);
                    let ours = recognizer.accepts(bytes);
                    let theirs = gate.allows(id);
                    let whole = [&text[..], bytes].concat();
                    // llama.cpp's decoder lets ill-formed UTF-8 through.
                    assert!(
                        ours == theirs || theirs && !begins_utf8(&whole),
                        "{name}: ours {ours}, theirs {theirs}: {:?}",
                        String::from_utf8_lossy(&whole)
                    );
                    n_asked += 1;
                    if ours {
                        allowed.push(id);
                    }
                }
                n_allowed += allowed.len();
                let Some(id) = allowed.get(numbers.below(allowed.len().max(1))) else { continue };
                assert!(gate.accept(*id));
                recognizer.push_all(vocab.bytes(*id)).unwrap();
                text.extend_from_slice(vocab.bytes(*id));
            }
        }
    }
    assert!(n_asked > 5000 && n_allowed > 2000, "{n_allowed} of {n_asked} allowed");
}
