//! How fast the recognizer is: compiling, long strings, forced texts, token masks.
//!
//! ```text
//! cargo bench --bench recognize -- [--vocab tokenizer.json|model.gguf] [FILE.json ...]
//! ```
//!
//! A file holds function definitions; without one the golden case `exercise` is taken. A vocabulary
//! is needed for the masks; a GGUF needs the engine.
#![allow(clippy::print_stdout, reason = "it prints a table")]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "figures are rounded when they are printed, and vocabularies are small"
)]

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use call_me_maybe::definitions;
use call_me_maybe::grammar::Grammar;
use call_me_maybe::grammar::lower::{Unsupported, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::grammar::recognize::mask::{TokenMask, TokenTrie};

/// Token texts by id.
type Tokens = Vec<Vec<u8>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut vocabulary = None;
    let mut files = Vec::new();
    // Cargo adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--vocab" => vocabulary = arguments.next(),
            _ => files.push(argument),
        }
    }
    if files.is_empty() {
        files
            .push(format!("{}/tests/golden/exercise/definitions.json", env!("CARGO_MANIFEST_DIR")));
    }
    compile_times()?;
    long_string()?;
    let tokens = vocabulary.as_deref().map(tokens).transpose()?;
    let mut masks = tokens.map(|tokens| Masks::new(&tokens));
    let mut forced = Vec::new();
    for file in &files {
        let functions = definitions::parse(&fs::read(file)?)?;
        let Ok(lowered) = calls(&functions, Unsupported::LeaveOut) else { continue };
        let start = Recognizer::new(&lowered.grammar)?;
        for seed in 1..=3 {
            walk(&start, seed, &mut forced, masks.as_mut());
        }
    }
    print("forced text", &mut forced);
    if let Some(masks) = &mut masks {
        print("token mask", &mut masks.times);
        print("clone", &mut masks.clones);
    }
    Ok(())
}

/// Definitions of as many functions as asked for.
fn many_functions(n: usize) -> String {
    let mut json = String::from("[");
    for index in 0..n {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(
            json,
            r#"{comma}{{"name": "fn_{}_{index}", "parameters": {{"text": {{"type": "string"}},
            "count": {{"type": "integer"}}, "kind": {{"type": "string", "enum": ["a{index}", "b", "c"]}}}}}}"#,
            ["open", "close", "start", "stop"][index % 4]
        );
    }
    json + "]"
}

/// A function whose argument is one of as many values as asked for.
fn long_enum(n: usize) -> String {
    let values: Vec<String> =
        (0..n).map(|i| format!(r#""value-{}-{i}""#, i * 7919 % 1000)).collect();
    let values = values.join(",");
    format!(
        r#"[{{"name": "fn_pick", "parameters": {{"v": {{"type": "string", "enum": [{values}]}}}}}}]"#
    )
}

fn compile_times() -> Result<(), Box<dyn Error>> {
    let many = format!("{}/tests/golden/many/definitions.json", env!("CARGO_MANIFEST_DIR"));
    let bounded =
        r#"[{"name": "fn_say", "parameters": {"v": {"type": "string", "maxLength": 2000}}}]"#;
    let cases = [
        ("many", fs::read_to_string(many)?),
        ("1000 functions", many_functions(1000)),
        ("5000 values", long_enum(5000)),
        ("maxLength 2000", bounded.to_owned()),
    ];
    for (name, json) in cases {
        let functions = definitions::parse(json.as_bytes())?;
        let grammar = calls(&functions, Unsupported::LeaveOut).map(|lowered| lowered.grammar);
        let Ok(grammar) = grammar else {
            println!("compile {name}: not supported by the schemas yet");
            continue;
        };
        println!("compile {name}: {:.2} ms", fastest(|| compile(&grammar)).as_secs_f64() * 1e3);
    }
    Ok(())
}

fn compile(grammar: &Grammar) {
    std::hint::black_box(Recognizer::new(grammar).is_ok());
}

/// The least of several times: whatever else the machine does only adds to it.
fn fastest(mut job: impl FnMut()) -> Duration {
    let once = |_| {
        let start = Instant::now();
        job();
        start.elapsed()
    };
    (0..9).map(once).min().unwrap_or_default()
}

fn long_string() -> Result<(), Box<dyn Error>> {
    let json = br#"[{"name": "fn_say", "parameters": {"text": {"type": "string"}}}]"#;
    let functions = definitions::parse(json)?;
    let grammar = calls(&functions, Unsupported::Keep)?.grammar;
    let mut start = Recognizer::new(&grammar)?;
    start.push_all(&start.forced()).map_err(|offset| format!("refused at {offset}"))?;
    let texts =
        [("ASCII", "The quick brown fox, 1234. "), ("mixed", "Ein \\\"süßer\\\" Fuchs: 狐 🦊\\n")];
    for (name, text) in texts {
        let text = text.repeat(10_000_000 / text.len());
        let time = fastest(|| {
            let mut at = start.clone();
            assert_eq!(std::hint::black_box(at.push_all(text.as_bytes())), Ok(()));
        });
        println!("string, {name}: {:.0} MB/s", text.len() as f64 / time.as_secs_f64() / 1e6);
    }
    Ok(())
}

struct Masks {
    tokens: Tokens,
    trie: TokenTrie,
    times: Vec<Duration>,
    clones: Vec<Duration>,
}

impl Masks {
    fn new(tokens: &Tokens) -> Self {
        let start = Instant::now();
        let trie = TokenTrie::new((0..).zip(tokens.iter().map(Vec::as_slice)));
        println!("trie of {} tokens: {:.0} ms", tokens.len(), start.elapsed().as_secs_f64() * 1e3);
        Self { tokens: tokens.clone(), trie, times: Vec::new(), clones: Vec::new() }
    }
}

/// Goes through a grammar by tokens drawn from the mask, or by bytes where there is no vocabulary.
fn walk(start: &Recognizer, seed: u64, forced: &mut Vec<Duration>, mut masks: Option<&mut Masks>) {
    let mut at = start.clone();
    let mut mask = TokenMask::default();
    let mut random = seed;
    let mut below = |n: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) as usize % n
    };
    for step in 0..100 {
        let begin = Instant::now();
        std::hint::black_box(at.forced());
        forced.push(begin.elapsed());
        let bytes = if let Some(masks) = &mut masks {
            let begin = Instant::now();
            at.mask_into(&masks.trie, &mut mask);
            masks.times.push(begin.elapsed());
            let begin = Instant::now();
            std::hint::black_box(at.clone());
            masks.clones.push(begin.elapsed());
            let n_allowed = mask.len();
            if n_allowed == 0 {
                break;
            }
            let id = mask.iter().nth(below(n_allowed)).unwrap_or(0);
            // As a model does, a value ends before long.
            let quote = masks.tokens.iter().position(|token| token == b"\"");
            let quote = quote.filter(|quote| step % 8 == 7 && mask.contains(*quote as u32));
            masks.tokens[quote.unwrap_or(id as usize)].clone()
        } else {
            let allowed: Vec<u8> = at.allowed().iter().collect();
            if allowed.is_empty() {
                break;
            }
            vec![allowed[below(allowed.len())]]
        };
        if at.push_all(&bytes).is_err() {
            println!("refused: {:?}", String::from_utf8_lossy(&bytes));
            break;
        }
    }
}

fn print(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    if times.is_empty() {
        return;
    }
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let mean = us(times.iter().sum()) / times.len() as f64;
    let at = |share: usize| us(times[(times.len() - 1) * share / 100]);
    println!(
        "{name}: mean {mean:.2} µs, p50 {:.2}, p99 {:.2}, max {:.2} ({} times)",
        at(50),
        at(99),
        at(100),
        times.len()
    );
}

fn tokens(path: &str) -> Result<Tokens, Box<dyn Error>> {
    if fs::read(path)?.starts_with(b"GGUF") {
        return gguf(path);
    }
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path)?)?;
    let vocab = json["model"]["vocab"].as_object().ok_or("no model.vocab")?;
    let bytes = byte_of_char();
    let mut tokens = Vec::new();
    for (text, id) in vocab {
        let id = usize::try_from(id.as_u64().ok_or("an id that is no number")?)?;
        tokens.resize(tokens.len().max(id + 1), Vec::new());
        let whole: Option<Vec<u8>> = text.chars().map(|c| bytes.get(&c).copied()).collect();
        tokens[id] = whole.unwrap_or_else(|| text.replace('▁', " ").into_bytes());
    }
    Ok(tokens)
}

/// The characters by which byte-level BPE writes bytes: printable ones stand for themselves, the
/// others are counted from U+0100 on.
fn byte_of_char() -> HashMap<char, u8> {
    let mut next = 0x100;
    let mut bytes = HashMap::new();
    for byte in 0..=u8::MAX {
        let itself = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let code = if itself { u32::from(byte) } else { next };
        next += u32::from(!itself);
        bytes.extend(char::from_u32(code).map(|c| (c, byte)));
    }
    bytes
}

#[cfg(feature = "engine")]
fn gguf(path: &str) -> Result<Tokens, Box<dyn Error>> {
    use call_me_maybe::engine::{TokenId, TokenKind, llama::Vocabulary};
    let vocabulary = Vocabulary::load(std::path::Path::new(path))?;
    let vocab = vocabulary.vocab();
    let ids = (0..u32::try_from(vocab.len())?).map(TokenId);
    let text =
        |id| if vocab.kind(id) == TokenKind::Text { vocab.bytes(id).to_vec() } else { vec![] };
    Ok(ids.map(text).collect())
}

#[cfg(not(feature = "engine"))]
fn gguf(_: &str) -> Result<Tokens, Box<dyn Error>> {
    Err("a GGUF needs the engine; give a tokenizer.json".into())
}
