//! Whole calls by models: two real ones, and tiny ones with random weights, which say anything at
//! all. `make test` fetches the ones and makes the others.

#[cfg(unix)]
mod command;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use call_me_maybe::caller::{
    Answer, CallError, CallOptions, Caller, FIRST_CALL, FunctionSet, N_BESIDE, Request, Unwatched,
};
use call_me_maybe::definitions::{self, FunctionDef};
use call_me_maybe::engine::decode::Limits;
use call_me_maybe::engine::gate::Sampling;
use call_me_maybe::engine::llama::{Llama, LlamaGate, Vocabulary};
use call_me_maybe::engine::prefix::Store;
use call_me_maybe::engine::{Backend, BackendError, Row, SequenceId, TokenId, TokenKind, Vocab};
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::input;
use call_me_maybe::load::{self, LoadOptions};
use call_me_maybe::models;
use call_me_maybe::prefix_cache::PrefixCache;
use call_me_maybe::prompt::{PromptWriter, PromptsConfig};
use call_me_maybe::validate::ValidateError;
use serde_json::{Value, json};

const SMOLLM2: &str = "smollm2-135m-q4_1";
const STAND_IN: &str = "qwen2.5-coder-0.5b-q4_k_m";
const GEMMA: &str = "gemma-3-270m-q4_k_m";
const TINY: [&str; 3] =
    ["models/test/tiny-qwen3.gguf", "models/test/tiny-gemma3.gguf", "models/test/tiny-mamba.gguf"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A model of the catalogue, or a file of the repository.
fn path(model: &str) -> PathBuf {
    if model.contains('/') {
        return root().join(model);
    }
    models::locate(model, &[root().join("models")]).unwrap()
}

/// A configuration that makes short prompts.
fn prompts() -> PromptsConfig {
    let json = r#"{"system": "Call the function that fits.", "examples": []}"#;
    PromptsConfig::parse(json, Path::new("test.json")).unwrap()
}

fn functions(definitions: &Value) -> Vec<FunctionDef> {
    definitions::parse(definitions.to_string().as_bytes()).unwrap()
}

fn two_functions() -> Vec<FunctionDef> {
    functions(&json!([
        {"name": "fn_add_numbers", "description": "Adds two numbers.",
            "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}},
        {"name": "fn_note", "description": "Notes a text.", "parameters": {"text": {"type": "string"}}},
    ]))
}

/// What a backend was told.
#[derive(Default)]
struct Seen {
    /// Positions and tokens evaluated for the sequence of the latest call.
    call: Vec<(u32, TokenId)>,
    /// Steps so far.
    n_steps: usize,
    /// For every growth of the context, whether a call had been begun.
    growths: Vec<bool>,
}

/// A model that is watched.
struct Spy {
    llama: Llama,
    seen: Rc<RefCell<Seen>>,
}

impl Backend for Spy {
    type Gate = LlamaGate;

    fn vocab(&self) -> &Vocab {
        self.llama.vocab()
    }
    fn tokenize(&self, text: &str, special: bool) -> Vec<TokenId> {
        self.llama.tokenize(text, special)
    }
    fn gate(&self, gbnf: &str) -> Result<LlamaGate, BackendError> {
        self.llama.gate(gbnf)
    }
    fn reserve(&mut self, n_cells: u32) -> Result<(), BackendError> {
        let before = self.llama.n_ctx();
        self.llama.reserve(n_cells)?;
        let mut seen = self.seen.borrow_mut();
        if self.llama.n_ctx() > before {
            let is_begun = !seen.call.is_empty();
            seen.growths.push(is_begun);
        }
        Ok(())
    }
    fn max_rows(&self) -> usize {
        self.llama.max_rows()
    }
    fn decode(&mut self, rows: &[Row]) -> Result<(), BackendError> {
        let mut seen = self.seen.borrow_mut();
        seen.n_steps += 1;
        let of_call = rows.iter().filter(|row| row.sequence == FIRST_CALL);
        seen.call.extend(of_call.map(|row| (row.position, row.token)));
        self.llama.decode(rows)
    }
    fn logits(&self, index: usize) -> &[f32] {
        self.llama.logits(index)
    }
    fn copy(&mut self, from: SequenceId, to: SequenceId, n: u32) -> Result<(), BackendError> {
        self.llama.copy(from, to, n)
    }
    fn remove(&mut self, sequence: SequenceId) -> Result<(), BackendError> {
        // What is removed after a call is still looked at.
        self.llama.remove(sequence)
    }
    fn truncate(&mut self, sequence: SequenceId, n: u32) -> Result<(), BackendError> {
        if sequence == FIRST_CALL {
            self.seen.borrow_mut().call.retain(|(position, _)| *position < n);
        }
        self.llama.truncate(sequence, n)
    }
    fn copies_part(&self) -> bool {
        self.llama.copies_part()
    }
    fn max_tokens(&self) -> u32 {
        self.llama.max_tokens()
    }
    fn max_cells(&self) -> u32 {
        self.llama.max_cells()
    }
    fn save(&mut self, sequence: SequenceId) -> Result<Vec<u8>, BackendError> {
        self.llama.save(sequence)
    }
    fn restore(&mut self, sequence: SequenceId, state: &[u8], n: u32) -> Result<(), BackendError> {
        self.llama.restore(sequence, state, n)
    }
}

fn asked(set: &Rc<FunctionSet>, request: &str, index: u64) -> Request {
    Request { index, set: Rc::clone(set), text: request.to_owned() }
}

/// The functions, offered to more than one request.
fn shared(functions: Vec<FunctionDef>) -> Rc<FunctionSet> {
    let set = FunctionSet::compile(functions, false).unwrap();
    set.share();
    Rc::new(set)
}

/// One call at a time.
fn options(sampling: Sampling, max_value_tokens: u32) -> CallOptions {
    let limits = Limits { max_value_tokens };
    CallOptions {
        limits,
        sampling,
        seed: 7,
        n_parallel: NonZeroUsize::MIN,
        forcing: true,
        n_others: None,
    }
}

/// A caller whose calls are checked.
struct Checked {
    caller: Caller<Spy>,
    seen: Rc<RefCell<Seen>>,
    vocabulary: Rc<Vocabulary>,
}

impl Checked {
    fn new(model: &str, sampling: Sampling, max_value_tokens: u32) -> Self {
        Self::with_options(model, options(sampling, max_value_tokens), 0)
    }

    fn with_options(model: &str, options: CallOptions, n_cells: u32) -> Self {
        // One thread: the tests run beside each other, and llama.cpp's threads wait by spinning.
        let mut llama = Llama::load(&path(model), 1, N_BESIDE + 1).unwrap();
        llama.reserve(n_cells).unwrap();
        let writer = PromptWriter::new(llama.text(), &prompts()).unwrap();
        let seen = Rc::new(RefCell::new(Seen::default()));
        let spy = Spy { llama, seen: Rc::clone(&seen) };
        let vocabulary = Rc::new(Vocabulary::load(&path(model)).unwrap());
        Self { caller: Caller::new(spy, writer, options, None), seen, vocabulary }
    }

    /// The call's text, once all is right with it.
    #[track_caller]
    fn text(&mut self, set: &Rc<FunctionSet>, request: &str, index: u64) -> String {
        self.seen.borrow_mut().call.clear();
        let result = self.caller.call(asked(set, request, index), &mut Unwatched);
        self.check(set, request, result)
    }

    #[track_caller]
    fn check(&self, set: &FunctionSet, request: &str, result: Result<Answer, CallError>) -> String {
        let lowered = calls(set.functions(), Options::LEGAL).unwrap();
        let generation = match result {
            Ok(Answer { calls, generation, .. }) => {
                let [call] = &calls[..] else { panic!("{request:?}: {calls:?}") };
                assert!(set.functions().iter().any(|function| function.name == call.name));
                generation
            }
            Err(CallError::Validate { error, generation }) => {
                let ValidateError::Refused { name, .. } = *error else {
                    panic!("{request:?}: {error}: {}", generation.text)
                };
                assert!(lowered.refused.iter().any(|(refused, _)| *refused == name));
                *generation
            }
            Err(error) => panic!("{request:?}: {error}"),
        };
        let mut recognizer = Recognizer::new(&lowered.grammar).unwrap();
        assert_eq!(recognizer.push_all(generation.text.as_bytes()), Ok(()), "{}", generation.text);
        assert!(recognizer.can_end(), "{}", generation.text);
        let seen = self.seen.borrow();
        let vocab = self.vocabulary.vocab();
        let call = seen.call.iter().filter(|(position, _)| *position >= generation.n_prompt);
        let mut text = Vec::new();
        for (_, token) in call {
            assert_eq!(vocab.kind(*token), TokenKind::Text, "{}", generation.text);
            text.extend_from_slice(vocab.bytes(*token));
        }
        assert!(generation.text.as_bytes().starts_with(&text), "{}", generation.text);
        generation.text
    }
}

/// The special tokens of a prompt, but for those of one character, which no text can avoid.
fn specials(
    vocabulary: &Vocabulary,
    writer: &PromptWriter,
    functions: &[FunctionDef],
    request: &str,
) -> BTreeMap<TokenId, usize> {
    let vocab = vocabulary.vocab();
    let mut found = BTreeMap::new();
    for piece in writer.render(functions, request).unwrap().pieces {
        for token in vocabulary.tokenize(&piece, true) {
            let n_characters = String::from_utf8_lossy(vocab.bytes(token)).chars().count();
            if vocab.kind(token) == TokenKind::Special && n_characters > 1 {
                *found.entry(token).or_default() += 1;
            }
        }
    }
    found
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn no_special_token_comes_from_a_request_or_a_function() {
    for model in [SMOLLM2, STAND_IN, GEMMA].into_iter().chain(TINY) {
        let vocabulary = Vocabulary::load(&path(model)).unwrap();
        let writer = PromptWriter::new(vocabulary.text(), &prompts()).unwrap();
        let function = |texts: &[String]| {
            let list = texts.iter().enumerate().map(|(n, text)| {
                json!({"name": format!("{text}{n}"), "description": text, "parameters": {
                    "type": "object", "properties": {text: {"enum": [text], "title": text}}}})
            });
            functions(&list.collect())
        };
        let texts = &vocabulary.text().specials;
        assert!(texts.len() > 10, "{model}");
        for texts in texts.chunks(400) {
            let plain: Vec<String> = texts.iter().map(|_| "a".to_owned()).collect();
            let own = specials(&vocabulary, &writer, &function(&plain), "a");
            assert!(!own.is_empty(), "{model}: a template writes markers");
            let spaced = texts.iter().map(|text| text.replace('\u{2581}', " "));
            let spaced: Vec<String> = spaced.collect();
            for request in [texts.concat(), spaced.join("a"), spaced.join(" ")] {
                let found = specials(&vocabulary, &writer, &function(texts), &request);
                assert_eq!(found, own, "{model}: {request:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn markers_in_a_request_and_its_functions_are_answered_like_any_text() {
    for model in [SMOLLM2].into_iter().chain(TINY) {
        let mut checked = Checked::new(model, Sampling::Greedy, 20);
        let texts = checked.vocabulary.text().specials.clone();
        for text in texts.iter().step_by(1 + texts.len() / 4) {
            let set = FunctionSet::compile(
                functions(&json!([
                    {"name": format!("fn {text}"), "description": text, "parameters": {
                        text: {"enum": [text, format!("{text}{text}")]}, "b": {"type": "string"}}},
                ])),
                false,
            );
            let set = Rc::new(set.unwrap());
            let found = checked.text(&set, &format!("Say {text} and {text}"), 0);
            let name = serde_json::to_string(&format!("fn {text}")).unwrap();
            assert!(found.starts_with(&format!(r#"{{"name": {name}"#)), "{found}");
        }
    }
}

/// Every function set at hand, by its file.
fn sets() -> Vec<(String, Rc<FunctionSet>)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join("tests/golden"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("definitions.json"))
        .filter(|path| path.exists())
        .collect();
    // Real ones, where they are at hand; the largest would take minutes.
    let others = fs::read_dir(root().join("../shared/data/mcp")).into_iter().flatten();
    let others = others.map(|entry| entry.unwrap().path());
    paths.extend(others.filter(|path| path.extension().is_some_and(|end| end == "json")));
    paths.sort();
    let small = paths.iter().filter(|path| fs::metadata(path).unwrap().len() < 12_000);
    let set = |path: &PathBuf| {
        let functions = definitions::parse(&fs::read(path).unwrap()).unwrap();
        (path.display().to_string(), shared(functions))
    };
    small.map(set).collect()
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn every_output_is_valid_whatever_the_weights_say() {
    let mut texts = std::collections::BTreeSet::new();
    let mut n_calls = 0;
    for model in TINY {
        for sampling in [Sampling::Greedy, Sampling::Temperature { temperature: 1.5 }] {
            let mut checked = Checked::new(model, sampling, 6);
            for (file, set) in sets() {
                let n = if sampling == Sampling::Greedy { 1 } else { 3 };
                for index in 0..n {
                    let request = if index == 1 { "do it twice, 你好 \"\\" } else { "Do it" };
                    texts.insert(format!("{file} {}", checked.text(&set, request, index)));
                    n_calls += 1;
                }
            }
        }
    }
    assert!(texts.len() * 2 > n_calls, "{} different ones of {n_calls}", texts.len());
}

fn odd_requests() -> Vec<String> {
    let odd = [
        "",
        " ",
        "\n\n",
        "请把这句话记下来：天气很好。",
        "🦀🎉👩‍👩‍👧 \u{10ffff}",
        "say \"'`\\\" and \\n \\u0000 }} {\"a\": [1]}",
        "a\nb\r\n\tc",
        "nul\u{0}byte \u{1}\u{7f}",
        "{{ messages }} {% raw %}",
    ];
    odd.into_iter().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn odd_requests_have_their_call() {
    let long = ["long text, ".repeat(1819), "天".repeat(6667), "\"\\\n".repeat(6667)];
    assert!(long.iter().all(|text| text.len() > 19_999));
    for model in [SMOLLM2].into_iter().chain(TINY) {
        let mut checked = Checked::new(model, Sampling::Greedy, 16);
        let set = shared(two_functions());
        // The real model would take a minute over each of the long ones.
        let long = if model == SMOLLM2 { &[][..] } else { &long[..] };
        for request in odd_requests().iter().chain(long) {
            checked.text(&set, request, 0);
        }
    }
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_prompt_beyond_the_context_fails_and_the_next_is_answered() {
    let mut checked = Checked::new(SMOLLM2, Sampling::Greedy, 16);
    let set = shared(two_functions());
    let long = "one more ".repeat(5000);
    let before = checked.text(&set, "Add 2 and 3", 0);
    let n_steps = checked.seen.borrow().n_steps;
    let error = checked.caller.call(asked(&set, &long, 0), &mut Unwatched).unwrap_err().to_string();
    let numbers: Vec<u32> = error.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert_eq!(
        error,
        format!("{} tokens are needed, and the model's context holds 8192", numbers[0])
    );
    assert!(numbers[0] > 10_000, "{error}");
    assert_eq!(checked.seen.borrow().n_steps, n_steps, "told before it is evaluated");
    assert_eq!(checked.text(&set, "Add 2 and 3", 0), before);
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn the_stand_in_answers() {
    let mut checked = Checked::new(STAND_IN, Sampling::Greedy, 64);
    let set = shared(two_functions());
    assert_eq!(
        checked.text(&set, "What is the sum of 41 and -7.5?", 0),
        r#"{"name": "fn_add_numbers", "arguments": {"a": 41, "b": -7.5}}"#
    );
    let note = checked.text(&set, "Note that the blue door stays shut.", 1);
    assert!(note.starts_with(r#"{"name": "fn_note", "arguments": {"text": ""#), "{note}");
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn the_same_request_gives_the_same_call_wherever_it_stands() {
    let requests = ["Add 4 and 9", "Note: milk", "", "天气很好"];
    for (model, sampling) in [
        (SMOLLM2, Sampling::Greedy),
        (TINY[0], Sampling::Greedy),
        (TINY[1], Sampling::Temperature { temperature: 0.8 }),
        (TINY[2], Sampling::Greedy),
    ] {
        let run = |order: &[usize]| -> BTreeMap<usize, String> {
            let mut checked = Checked::new(model, sampling, 12);
            let set = shared(two_functions());
            let mut texts = BTreeMap::new();
            for &n in order {
                let text = checked.text(&set, requests[n], n as u64);
                let before = texts.insert(n, text.clone());
                assert!(before.is_none_or(|before| before == text), "{model}: {n} twice: {text}");
            }
            texts
        };
        let forward = run(&[0, 1, 1, 2, 3]);
        assert_eq!(run(&[3, 2, 0, 1]), forward, "{model}");
    }
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_context_that_grows_during_a_call_changes_nothing() {
    // What is forced between two choices makes a call long, whatever the weights say.
    let long = |word: &str| format!("{word} of many words. ").repeat(70);
    let note = functions(&json!([{"name": "fn_note", "parameters": {
        "a": {"type": "boolean"}, "b": {"const": long("A text")},
        "c": {"type": "boolean"}, "d": {"const": long("Another")},
        "text": {"type": "string"}}}]));
    for model in TINY {
        for is_shared in [false, true] {
            let run = |n_cells: u32| {
                let sampling = Sampling::Temperature { temperature: 0.8 };
                let mut checked = Checked::with_options(model, options(sampling, 40), n_cells);
                let set = Rc::new(FunctionSet::compile(note.clone(), false).unwrap());
                if is_shared {
                    set.share();
                }
                let text = checked.text(&set, "Note it", 3);
                let seen = checked.seen.borrow();
                (text, seen.growths.iter().filter(|growth| **growth).count())
            };
            let (text, n_growths) = run(0);
            assert!(n_growths > 0, "{model}: it does not grow: {text}");
            assert_eq!(run(4096), (text, 0), "{model}");
        }
    }
}

/// The calls of some requests, by their index.
fn batch(
    model: &str,
    n_parallel: usize,
    cache: Option<&Path>,
    requests: &[(Rc<FunctionSet>, String)],
) -> (Vec<String>, u64) {
    let n_sequences = u32::try_from(n_parallel).unwrap() + N_BESIDE;
    let llama = Llama::load(&path(model), 1, n_sequences).unwrap();
    let writer = PromptWriter::new(llama.text(), &prompts()).unwrap();
    let options = CallOptions {
        limits: Limits { max_value_tokens: 12 },
        sampling: Sampling::Greedy,
        seed: 7,
        n_parallel: NonZeroUsize::new(n_parallel).unwrap(),
        forcing: true,
        n_others: None,
    };
    let store = cache.map(|dir| {
        let cache = PrefixCache::new(dir.to_owned(), &path(model), &llama.state_settings());
        Box::new(cache.unwrap()) as Box<dyn Store>
    });
    let mut caller = Caller::new(llama, writer, options, store);
    let mut texts = vec![String::new(); requests.len()];
    let mut asked = (0..).zip(requests).map(|(index, (set, request))| asked(set, request, index));
    let mut on_answer = |index: u64, answer: Result<Answer, CallError>| {
        texts[usize::try_from(index).unwrap()] = match answer {
            Ok(answer) => answer.generation.text,
            Err(error) => format!("error: {error}"),
        };
    };
    caller.call_all(&mut asked, &mut Unwatched, &mut on_answer).unwrap();
    (texts, caller.n_prefix_rows())
}

/// A call as text and as the tokens that were chosen or fed for it.
type Written = (String, Vec<TokenId>);

/// Where two calls part: after the same tokens (rounding), or after others of the same text.
fn parting((one, tokens): &Written, (other, other_tokens): &Written, vocab: &Vocab) -> String {
    let n_same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let before = |tokens: &[TokenId]| {
        let mut n_bytes = 0;
        let fits = |token: &&TokenId| {
            n_bytes += vocab.bytes(**token).len();
            n_bytes <= n_same
        };
        tokens.iter().take_while(fits).copied().collect::<Vec<_>>()
    };
    let (one_before, other_before) = (before(tokens), before(other_tokens));
    let n_tokens =
        one_before.iter().zip(&other_before).take_while(|(one, other)| one == other).count();
    let piece = |tokens: &[TokenId]| {
        let bytes = tokens.get(n_tokens).map_or(&[][..], |token| vocab.bytes(*token));
        String::from_utf8_lossy(bytes).into_owned()
    };
    if one_before.len().min(other_before.len()) == n_tokens {
        "rounding: the tokens before are the same".to_owned()
    } else {
        format!("written {:?} and chosen {:?} before", piece(tokens), piece(other_tokens))
    }
}

/// Some hundred calls with the text that the grammar forces written, and with all of it chosen.
#[test]
#[ignore = "needs a GGUF in models/"]
#[expect(clippy::print_stdout, reason = "the list is what one wants to read")]
fn forced_text_is_what_the_model_would_have_written() {
    let shared_data = root().join("../shared/data/callme");
    let mut sets = vec![(
        root().join("data/input/functions_definition.json"),
        root().join("data/input/function_calling_tests.json"),
    )];
    for (functions, prompts) in [("public", "many110"), ("mixed", "mixed_dev")] {
        let file = |name: String| shared_data.join(name);
        sets.push((file(format!("{functions}_functions.json")), file(format!("{prompts}.json"))));
    }
    let vocabulary = Vocabulary::load(&path(STAND_IN)).unwrap();
    let (mut n_calls, mut n_divided, mut differing) = (0, 0, Vec::new());
    for (functions, prompts) in sets.into_iter().filter(|(_, prompts)| prompts.exists()) {
        let set = shared(definitions::parse(&fs::read(functions).unwrap()).unwrap());
        let prompts = input::parse(&fs::read(prompts).unwrap()).unwrap();
        let mut run = |forcing| {
            let mut options = LoadOptions::default();
            options.calls = CallOptions { forcing, ..options.calls };
            options.calls.limits = Limits { max_value_tokens: 64 };
            let mut caller = load::load(path(STAND_IN).to_str().unwrap(), &options).unwrap();
            let mut requests = (0..).zip(&prompts).map(|(n, one)| asked(&set, &one.prompt, n));
            let mut written = BTreeMap::new();
            let mut on_answer = |index, answer: Result<Answer, CallError>| {
                let generation = answer.unwrap().generation;
                n_divided += generation.n_divided;
                written.insert(index, (generation.text, generation.tokens));
            };
            caller.call_all(&mut requests, &mut Unwatched, &mut on_answer).unwrap();
            written.into_values().collect::<Vec<Written>>()
        };
        let (forced, chosen) = (run(true), run(false));
        for ((forced, chosen), request) in forced.iter().zip(&chosen).zip(&prompts) {
            n_calls += 1;
            if forced.0 != chosen.0 {
                let why = parting(forced, chosen, vocabulary.vocab());
                let (prompt, [forced, chosen]) = (&request.prompt, [&forced.0, &chosen.0]);
                differing.push(format!("{prompt:?}\n  {forced}\n  {chosen}\n  {why}"));
            }
        }
    }
    println!(
        "{n_calls} calls, {} differ, {n_divided} places divided otherwise\n{}",
        differing.len(),
        differing.join("\n")
    );
    assert!(n_calls >= 11);
    assert!(differing.len() * 20 <= n_calls, "{} of {n_calls} differ", differing.len());
}

/// Requests over several sets, as they come.
fn mixed_requests() -> Vec<(Rc<FunctionSet>, String)> {
    let two = two_functions();
    let sets = [shared(two.clone()), shared(two[..1].to_vec()), shared(two[1..].to_vec())];
    let alone = two_functions().into_iter().rev().collect();
    let alone = Rc::new(FunctionSet::compile(alone, false).unwrap());
    let mut requests: Vec<_> = (0..9)
        .map(|n| (Rc::clone(&sets[n * 7 % sets.len()]), format!("Do it {n} times, please")))
        .collect();
    requests.push((alone, "Add 3 and 4".to_owned()));
    requests
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn requests_in_flight_get_the_calls_that_they_get_alone() {
    for model in [SMOLLM2].into_iter().chain(TINY) {
        let requests = mixed_requests();
        let (alone, _) = batch(model, 1, None, &requests);
        let (again, _) = batch(model, 1, None, &requests);
        assert_eq!(alone, again, "{model}");
        let (together, _) = batch(model, 5, None, &requests);
        let differing: Vec<_> =
            alone.iter().zip(&together).filter(|(one, other)| one != other).collect();
        // Rounding differs with what shares a step, so a tie can fall otherwise; which, depends on the CPU.
        assert!(differing.len() <= alone.len() / 3, "{model}: {differing:?}");
    }
}

#[test]
#[ignore = "needs a GGUF in models/"]
fn a_prefix_from_disk_gives_the_same_calls() {
    for model in TINY {
        let folder = tempfile::tempdir().unwrap();
        let requests = mixed_requests();
        let run = || batch(model, 3, Some(folder.path()), &requests);
        let (first, n_first) = run();
        let (second, n_second) = run();
        // The last is read in another way the second time, so it and what is beside it may round otherwise.
        let n_same = first.len() / 2;
        assert_eq!(first[..n_same], second[..n_same], "{model}");
        // The set of the last request is used the second time only now.
        assert!(n_first > 0 && n_second < n_first / 2, "{model}: {n_first} {n_second}");
        let (third, n_third) = run();
        assert_eq!((third, n_third), (second.clone(), 0), "{model}");
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(run(), (second, n_first + n_second), "{model}: damaged files are not used");
    }
}
