//! The decode loop over a scripted model: what it writes, what it evaluates, where it stops.
//!
//! The vocabulary has a token for every byte, whose id is that byte, and [`MORE`]. The script says
//! what the model would like to write next; longer tokens of it score higher, and the special
//! tokens, which must never be chosen, always score highest.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::rc::Rc;

use call_me_maybe::caller::{
    CallError, CallOptions, Caller, FIRST_CALL as CALL, FunctionSet, Request, Unwatched,
};
use call_me_maybe::confidence::Confidence;
use call_me_maybe::definitions::{self, FunctionDef};
use call_me_maybe::engine::batch::Batch;
use call_me_maybe::engine::decode::{
    self, Between, Cut, DecodeError, Generation, Limits, Opening, Sequence, Start, Turns,
};
use call_me_maybe::engine::gate::{Place, Random, Sampling};
use call_me_maybe::engine::prefix::{self, Prefixes, Store};
use call_me_maybe::engine::vocab::Token;
use call_me_maybe::engine::{
    Backend, BackendError, Gate, Row, SequenceId, TokenId, TokenKind, Vocab,
};
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::prompt::{ModelText, PromptWriter, PromptsConfig};

/// Calls in flight at most.
const N_CALLS: usize = 8;

/// Tokens of several bytes, from id 256 on.
const MORE: [&str; 11] =
    ["\":", "\",", "\"}}", "}}", " \"", " \"/", " -", "ab", "é", "]}}", "\"]}}"];

/// Special tokens, after [`MORE`]. The first is found by the tokenizer even where specials are not
/// asked for, as llama.cpp finds `USER_DEFINED` ones.
const SPECIALS: [(&str, TokenKind, bool); 4] = [
    ("<tool>", TokenKind::Special, false),
    ("<|end|>", TokenKind::Special, true),
    ("a", TokenKind::Special, false),
    ("<unk>", TokenKind::Unusable, false),
];

fn vocab(more: &[&str]) -> Vocab {
    let text = |bytes: &[u8]| Token { bytes: bytes.to_vec(), kind: TokenKind::Text, is_end: false };
    let bytes = (0..=255).map(|byte| text(&[byte]));
    let more = more.iter().map(|more| text(more.as_bytes()));
    let specials =
        SPECIALS.iter().map(|&(bytes, kind, is_end)| Token { bytes: bytes.into(), kind, is_end });
    Vocab::new(bytes.chain(more).chain(specials).collect(), None)
}

/// The bytes that may come after a text, with their probabilities.
type Odds = fn(&str) -> &'static [(u8, f32)];

/// What the model would write after a text.
type Script = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// A model that writes `text`, whatever it is asked.
fn wants(text: &str) -> Script {
    let text = text.as_bytes().to_vec();
    Box::new(move |so_far| text.strip_prefix(so_far).unwrap_or_default().to_vec())
}

/// A model that writes `value` over and over in the value of each parameter named, and `0"` after.
fn fills(values: &[(&str, &str)]) -> Script {
    let own = |(key, value): &(&str, &str)| (format!("\"{key}\": "), (*value).to_owned());
    let values: Vec<(String, String)> = values.iter().map(own).collect();
    Box::new(move |so_far| {
        let mut text = so_far.to_vec();
        // The space after a key may be the model's to write.
        if text.ends_with(b"\":") {
            text.push(b' ');
        }
        let after = |key: &str| {
            let windows = text.windows(key.len());
            windows.rev().position(|window| window == key.as_bytes())
        };
        let values = values.iter().filter_map(|(key, value)| Some((after(key)?, value)));
        let Some((n_written, value)) = values.min_by_key(|(n_written, _)| *n_written) else {
            return Vec::new();
        };
        let (opening, rest) = value.split_once('…').unwrap_or(("", value));
        let whole = format!("{opening}{}", rest.repeat(400)).into_bytes();
        [&text[so_far.len()..], &whole[n_written..]].concat()
    })
}

#[expect(clippy::struct_excessive_bools, reason = "each is a way to be")]
struct Scripted {
    vocab: Rc<Vocab>,
    start: Recognizer,
    script: Script,
    /// Logits in the script's place.
    noise: Option<f32>,
    /// Logits of the special tokens, which nothing may choose.
    special: f32,
    refused: BTreeSet<TokenId>,
    forcing: bool,
    turns: Rc<Turns>,
    n_others: Option<usize>,
    /// The bytes that may come after a text, prompt included, with their probabilities.
    odds: Odds,
    rivals: bool,
    /// The logarithms of names' probabilities where nothing is asked, in the order in which they are written.
    neutral: Vec<f64>,
    n_prompt: usize,
    /// Of single sequences.
    n_prompts: BTreeMap<u32, usize>,
    max_rows: usize,
    copies_part: bool,
    n_ctx: u32,
    max_cells: u32,
    /// Cells asked for, and how many of a sequence's are another's.
    n_reserved: u32,
    n_lent: Vec<u32>,
    /// Fails the step of this index.
    broken_step: Option<usize>,
    /// Only once.
    mends: bool,
    /// Fails every step with such a row.
    refuses_token: Option<TokenId>,
    steps: Vec<Vec<Row>>,
    /// Tokens of each sequence.
    cells: Vec<Vec<TokenId>>,
    /// Of the last step's rows that asked for them.
    logits: BTreeMap<usize, Vec<f32>>,
}

impl Scripted {
    fn new(functions: &[FunctionDef], script: Script) -> Self {
        let grammar = calls(functions, Options::DECLARED).unwrap().grammar;
        Self {
            vocab: Rc::new(vocab(&MORE)),
            start: Recognizer::new(&grammar).unwrap(),
            script,
            noise: None,
            special: 99.0,
            refused: BTreeSet::new(),
            forcing: true,
            turns: Rc::default(),
            n_others: None,
            odds: |_| &[],
            rivals: false,
            neutral: Vec::new(),
            n_prompt: PROMPT.len(),
            n_prompts: BTreeMap::new(),
            max_rows: 128,
            copies_part: true,
            n_ctx: 10_000,
            max_cells: 10_000,
            n_reserved: 0,
            n_lent: vec![0; CALL.0 as usize + N_CALLS],
            broken_step: None,
            mends: false,
            refuses_token: None,
            steps: Vec::new(),
            cells: vec![Vec::new(); CALL.0 as usize + N_CALLS],
            logits: BTreeMap::new(),
        }
    }

    fn n_tokens(&self, text: &str) -> u32 {
        u32::try_from(self.vocab.longest_match(text.as_bytes()).unwrap().len()).unwrap()
    }

    /// The tokens of the first call that were evaluated.
    fn evaluated(&self) -> Vec<&[u8]> {
        self.evaluated_of(CALL)
    }

    fn evaluated_of(&self, sequence: SequenceId) -> Vec<&[u8]> {
        let n_prompt = *self.n_prompts.get(&sequence.0).unwrap_or(&self.n_prompt);
        let cells = &self.cells[sequence.0 as usize][n_prompt..];
        cells.iter().map(|id| self.vocab.bytes(*id)).collect()
    }

    /// The logits after the first `n` tokens of a sequence.
    fn wanted(&self, sequence: SequenceId, n: usize) -> Vec<f32> {
        let bytes = |tokens: &[TokenId]| -> Vec<u8> {
            tokens.iter().flat_map(|id| self.vocab.bytes(*id)).copied().collect()
        };
        let all = &self.cells[sequence.0 as usize][..n];
        let odds = (self.odds)(&String::from_utf8_lossy(&bytes(all)));
        if !odds.is_empty() {
            let mut logits = vec![-99.0; self.vocab.len()];
            for (byte, p) in odds {
                logits[usize::from(*byte)] = p.ln();
            }
            return logits;
        }
        let n_prompt = *self.n_prompts.get(&sequence.0).unwrap_or(&self.n_prompt);
        let so_far = bytes(&all[n_prompt.min(n)..]);
        let wish = (self.script)(&so_far);
        let ids = (0..self.vocab.len()).map(|id| TokenId(u32::try_from(id).unwrap()));
        let logit = |id| {
            let bytes = self.vocab.bytes(id);
            let len = u16::try_from(bytes.len()).unwrap();
            match self.noise {
                Some(noise) => noise,
                None if self.vocab.kind(id) != TokenKind::Text => self.special,
                None if wish.starts_with(bytes) => 9.0 + f32::from(len),
                None => -f32::from(len) - f32::from(bytes[0]) / 256.0,
            }
        };
        ids.map(logit).collect()
    }
}

impl Backend for Scripted {
    type Gate = ScriptedGate;

    fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    fn tokenize(&self, text: &str, special: bool) -> Vec<TokenId> {
        let n = if special { 2 } else { 1 };
        let found = SPECIALS[..n].iter().enumerate().filter_map(|(i, (special, ..))| {
            let at = text.find(special)?;
            Some((at, special.len(), TokenId(u32::try_from(256 + MORE.len() + i).unwrap())))
        });
        match found.min_by_key(|(at, ..)| *at) {
            None => self.vocab.longest_match(text.as_bytes()).unwrap(),
            Some((at, len, id)) => {
                let mut tokens = self.vocab.longest_match(&text.as_bytes()[..at]).unwrap();
                tokens.push(id);
                tokens.extend(self.tokenize(&text[at + len..], special));
                tokens
            }
        }
    }

    fn gate(&self, _: &str) -> Result<ScriptedGate, BackendError> {
        let (recognizer, vocab) = (self.start.clone(), Rc::clone(&self.vocab));
        Ok(ScriptedGate { recognizer, vocab, refused: self.refused.clone() })
    }

    fn reserve(&mut self, n_cells: u32) -> Result<(), BackendError> {
        if n_cells <= self.n_ctx {
            self.n_reserved = self.n_reserved.max(n_cells);
            return Ok(());
        }
        Err(BackendError::Context { n_ctx: n_cells, reason: "scripted".into() })
    }

    fn max_tokens(&self) -> u32 {
        self.n_ctx
    }

    fn max_cells(&self) -> u32 {
        self.max_cells
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn decode(&mut self, rows: &[Row]) -> Result<(), BackendError> {
        assert!(!rows.is_empty() && rows.len() <= self.max_rows);
        let is_refused = rows.iter().any(|row| Some(row.token) == self.refuses_token);
        if is_refused || self.broken_step == Some(self.steps.len()) {
            if self.mends {
                self.broken_step = None;
            }
            return Err(BackendError::Decode { n_rows: rows.len(), reason: "scripted".into() });
        }
        for row in rows {
            let cells = &mut self.cells[row.sequence.0 as usize];
            assert_eq!(row.position as usize, cells.len(), "rows follow each other");
            cells.push(row.token);
        }
        let n_cells: usize = self.cells.iter().map(Vec::len).sum();
        let n_lent: u32 = self.n_lent.iter().sum();
        assert!(n_cells <= (self.n_reserved + n_lent) as usize, "no room was made");
        self.steps.push(rows.to_vec());
        let asked = rows.iter().enumerate().filter(|(_, row)| row.logits);
        self.logits = asked
            .map(|(index, row)| (index, self.wanted(row.sequence, row.position as usize + 1)))
            .collect();
        Ok(())
    }

    fn logits(&self, index: usize) -> &[f32] {
        self.logits.get(&index).map_or(&[], Vec::as_slice)
    }

    fn copy(&mut self, from: SequenceId, to: SequenceId, n: u32) -> Result<(), BackendError> {
        let from = &self.cells[from.0 as usize];
        assert!(self.copies_part || n as usize == from.len(), "copied whole");
        self.cells[to.0 as usize] = from[..n as usize].to_vec();
        self.n_lent[to.0 as usize] = n;
        Ok(())
    }

    fn remove(&mut self, sequence: SequenceId) -> Result<(), BackendError> {
        self.cells[sequence.0 as usize].clear();
        self.n_lent[sequence.0 as usize] = 0;
        Ok(())
    }

    fn truncate(&mut self, sequence: SequenceId, n: u32) -> Result<(), BackendError> {
        assert!(self.copies_part, "kept whole");
        self.cells[sequence.0 as usize].truncate(n as usize);
        Ok(())
    }

    fn save(&mut self, sequence: SequenceId) -> Result<Vec<u8>, BackendError> {
        let cells = &self.cells[sequence.0 as usize];
        Ok(cells.iter().flat_map(|token| token.0.to_le_bytes()).collect())
    }

    fn restore(&mut self, sequence: SequenceId, state: &[u8], n: u32) -> Result<(), BackendError> {
        let tokens = state
            .chunks_exact(4)
            .map(|bytes| TokenId(u32::from_le_bytes(bytes.try_into().unwrap())));
        self.cells[sequence.0 as usize] = tokens.collect();
        assert_eq!(self.cells[sequence.0 as usize].len(), n as usize);
        Ok(())
    }

    fn copies_part(&self) -> bool {
        self.copies_part
    }
}

struct ScriptedGate {
    recognizer: Recognizer,
    vocab: Rc<Vocab>,
    refused: BTreeSet<TokenId>,
}

impl Gate for ScriptedGate {
    fn allows(&mut self, token: TokenId) -> bool {
        !self.refused.contains(&token) && self.recognizer.accepts(self.vocab.bytes(token))
    }

    fn accept(&mut self, token: TokenId) -> bool {
        self.allows(token) && self.recognizer.push_all(self.vocab.bytes(token)).is_ok()
    }
}

const PROMPT: &str = "Do it:";

fn functions(definitions: &str) -> Vec<FunctionDef> {
    definitions::parse(definitions.as_bytes()).unwrap()
}

fn sequence(
    backend: &Scripted,
    id: SequenceId,
    prompt: &[TokenId],
    limit: u32,
) -> Sequence<ScriptedGate> {
    Sequence::new(Start {
        id,
        prompt,
        n_shared: 0,
        recognizer: backend.start.clone(),
        gate: backend.gate("").unwrap(),
        sampling: Sampling::Greedy,
        random: Random::new(0, 0),
        limits: Limits { max_value_tokens: limit },
        forcing: backend.forcing,
        turns: Rc::clone(&backend.turns),
        request: "Say hi, then sum 1 and 2",
        n_others: backend.n_others,
        rivals: backend.rivals.then(|| "".into()),
    })
}

fn run_with(
    backend: &mut Scripted,
    limit: u32,
    watch: &mut dyn decode::Watch,
) -> Result<Generation, DecodeError> {
    let prompt: Vec<TokenId> =
        PROMPT.bytes().cycle().take(backend.n_prompt).map(|byte| TokenId(byte.into())).collect();
    let sequence = sequence(backend, CALL, &prompt, limit);
    let mut batch = Batch::new(CALL, 1);
    let mut finished: Vec<_> = batch.start(backend, 0, sequence, watch).into_iter().collect();
    loop {
        if let Some(finished) = finished.pop() {
            return finished.result;
        }
        while let Some(naming) = batch.naming() {
            let neutral = backend.neutral.clone();
            assert!(naming.names.len() > 1);
            if let Some(finished) = batch.take_name(backend, naming.id, &neutral, watch) {
                return finished.result;
            }
        }
        finished = batch.step(backend, 0, watch)?;
    }
}

fn run(backend: &mut Scripted) -> Result<Generation, DecodeError> {
    run_with(backend, 200, &mut Unwatched)
}

const TWO: &str = r#"[
    {"name": "fn_sum", "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}},
    {"name": "fn_say", "parameters": {"text": {"type": "string"}}}
]"#;

fn byte(byte: u8) -> TokenId {
    TokenId(byte.into())
}

/// What a model that writes `script` comes to where calls are divided by `;&` and ended by `;.`.
fn several(script: &str, max_calls: u32) -> (Generation, String) {
    let mut backend = Scripted::new(&functions(TWO), wants(script));
    let many = Between {
        closer: vec![byte(b';')],
        next: vec![byte(b'&')],
        end: byte(b'.'),
        max_calls,
        recognizer: backend.start.clone(),
        gbnf: "".into(),
    };
    backend.turns = Rc::new(Turns { none: None, many: Some(many) });
    backend.n_others = Some(1);
    let generation = run(&mut backend).unwrap();
    let evaluated = String::from_utf8(backend.evaluated().concat()).unwrap();
    (generation, evaluated)
}

const SAY: &str = r#"{"name": "fn_say", "arguments": {"text": "hi"}}"#;
const SUM: &str = r#"{"name": "fn_sum", "arguments": {"a": 1, "b": 2}}"#;

/// `fn_sum` begins better and ends worse than `fn_say`.
fn fork(text: &str) -> &'static [(u8, f32)] {
    match text {
        _ if text.ends_with("fn_s") => &[(b'u', 0.55), (b'a', 0.4), (b'e', 0.05)],
        _ if text.ends_with("fn_su") => &[(b'b', 0.9), (b'm', 0.1)],
        _ => &[],
    }
}

fn says_or_sums() -> Script {
    Box::new(|so_far| {
        let so_far = so_far.strip_prefix(b";").unwrap_or(so_far);
        let whole = if so_far.starts_with(b"{\"name\": \"fn_sa") { SAY } else { SUM };
        whole.as_bytes().strip_prefix(so_far).unwrap_or_default().to_vec()
    })
}

#[test]
fn the_likeliest_whole_name_is_taken() {
    let run_with = |rivals, neutral: &[f64], none| {
        let mut backend = Scripted::new(&functions(TWO), says_or_sums());
        backend.odds = fork;
        backend.special = -99.0;
        backend.n_others = Some(1);
        (backend.rivals, backend.neutral) = (rivals, neutral.to_vec());
        let (opener, dot) = (vec![byte(b';')], Some(byte(b'.')));
        let opening = |threshold| Opening { opener, none: dot, threshold };
        backend.turns = Rc::new(Turns { none: Option::map(none, opening), many: None });
        let generation = run(&mut backend).unwrap();
        let evaluated = String::from_utf8(backend.evaluated().concat()).unwrap();
        assert!(generation.text.starts_with(evaluated.trim_start_matches(';')), "{evaluated}");
        generation
    };
    let by_token = run_with(false, &[], None);
    assert_eq!((by_token.text.as_str(), by_token.n_rivals), (SUM, 0));
    let by_name = run_with(true, &[], None);
    assert_eq!((by_name.text.as_str(), by_name.n_rivals), (SAY, 1));
    let fork = &by_name.choices[0];
    assert_eq!((fork.at, fork.others.as_slice().len()), (SAY.find("ay").unwrap(), 1));
    assert!((fork.probability - 0.4 / 0.95).abs() < 1e-3, "{fork:?}");
    assert_eq!(fork.others[0].0, "u");
    assert_eq!(by_name.values.len(), 1);
    // ln(0.055) + 4 is above ln(0.4), for what is likely where nothing is asked counts against a name.
    let weighed = run_with(true, &[-8.0, 0.0], None);
    assert_eq!((weighed.text.as_str(), weighed.n_rivals), (SUM, 1));
    let evaluated = run_with(true, &[0.0, -8.0], Some(0.99));
    assert_eq!(evaluated.text, SAY);
    // `fn_say` is the likelier name, so that there is no call is less likely than with `fn_sum`.
    let sum = run_with(false, &[], Some(0.99)).none.unwrap();
    assert!(evaluated.none.unwrap() < sum, "{:?} {sum}", evaluated.none);
}

#[test]
fn a_name_that_others_begin_with_is_found() {
    let definitions = r#"[{"name": "get", "parameters": {}}, {"name": "get_all", "parameters": {}},
        {"name": "get_all_of", "parameters": {}}]"#;
    let cases: [(Odds, &str, u32); 3] = [
        (|text| if text.ends_with("get") { &[(b'"', 0.5), (b'_', 0.4)] } else { &[] }, "get", 1),
        (
            |text| match text {
                _ if text.ends_with("get") => &[(b'"', 0.1), (b'_', 0.9)],
                _ if text.ends_with("all") => &[(b'"', 0.6), (b'_', 0.4)],
                _ => &[],
            },
            "get_all",
            2,
        ),
        // What would come next is not among the names.
        (
            |text| match text {
                _ if text.ends_with("get") => &[(b'"', 0.3), (b'_', 0.7)],
                _ if text.ends_with("get_") => &[(b'a', 0.05), (b'b', 0.95)],
                _ => &[],
            },
            "get",
            1,
        ),
    ];
    for (odds, expected, n_rivals) in cases {
        let script: Script = Box::new(|so_far| {
            let names = ["get_all_of", "get_all", "get"];
            let call =
                |name: &str| format!("{{\"name\": \"{name}\", \"arguments\": {{}}}}").into_bytes();
            let calls = names.into_iter().map(call);
            calls
                .rev()
                .find_map(|call| Some(call.strip_prefix(so_far)?.to_vec()))
                .unwrap_or_default()
        });
        let mut backend = Scripted::new(&functions(definitions), script);
        (backend.odds, backend.special, backend.rivals) = (odds, -99.0, true);
        let generation = run(&mut backend).unwrap();
        assert_eq!(generation.text, format!("{{\"name\": \"{expected}\", \"arguments\": {{}}}}"));
        assert_eq!(generation.n_rivals, n_rivals, "{expected}");
    }
}

#[test]
fn names_are_sought_in_every_call() {
    let mut backend = Scripted::new(&functions(TWO), wants(&format!("{SUM};&{SAY};.")));
    backend.special = -99.0;
    backend.odds = |text| if text.contains('&') { fork(text) } else { &[] };
    let many = Between {
        closer: vec![byte(b';')],
        next: vec![byte(b'&')],
        end: byte(b'.'),
        max_calls: 2,
        recognizer: backend.start.clone(),
        gbnf: "".into(),
    };
    backend.turns = Rc::new(Turns { none: None, many: Some(many) });
    backend.rivals = true;
    let generation = run(&mut backend).unwrap();
    assert_eq!(generation.text, format!("{SUM}\n{SAY}"));
    assert_eq!(generation.n_rivals, 1);
}

#[test]
fn calls_follow_each_other_until_the_model_ends_them() {
    let script = format!("{SAY};&{SUM};.");
    let (generation, evaluated) = several(&script, 9);
    assert_eq!(generation.text, format!("{SAY}\n{SUM}"));
    assert_eq!(evaluated, format!("{SAY};&{SUM};"), "all but the end is evaluated");
    let ends: Vec<_> = generation.values.iter().map(|value| value.end).collect();
    let second = SAY.len() + 1;
    let end = |text: &str, value: &str| text.find(value).unwrap() + value.len();
    assert_eq!(
        ends,
        [end(SAY, "\"hi\""), second + end(SUM, "\"a\": 1,"), second + end(SUM, "\"b\": 2}")]
    );
    let places = generation.choices.iter().map(|choice| choice.at);
    assert!(places.clone().any(|at| at > second), "the second call's choices are weighed too");
    assert!(places.is_sorted());
}

#[test]
fn no_more_calls_are_written_than_allowed() {
    let (generation, evaluated) = several(&format!("{SAY};&{SUM};&{SAY};."), 2);
    assert_eq!(generation.text, format!("{SAY}\n{SUM}"));
    assert!(!evaluated.ends_with(';'), "the last call's end is not evaluated: {evaluated}");
}

#[test]
fn a_call_that_is_repeated_ends_the_answer() {
    let (generation, _) = several(&format!("{SAY};&{SUM};&{SAY};."), 9);
    assert_eq!(generation.text, format!("{SAY}\n{SUM}"));
    let is_within = |at: usize| at < generation.text.len();
    assert!(generation.choices.iter().all(|choice| is_within(choice.at)));
    assert!(generation.values.iter().all(|value| is_within(value.end)));
}

#[test]
fn there_is_no_call_from_the_threshold_on() {
    for (script, threshold, expected) in
        [("None".to_owned(), 0.9, ""), (format!("&{SAY}"), 0.9, SAY), (format!("&{SAY}"), 0.0, "")]
    {
        let mut backend = Scripted::new(&functions(TWO), wants(&script));
        backend.special = -9.0;
        let opening = Opening { opener: vec![byte(b'&')], none: Some(byte(b'N')), threshold };
        backend.turns = Rc::new(Turns { none: Some(opening), many: None });
        let generation = run(&mut backend).unwrap();
        assert_eq!(generation.text, expected, "{script} {threshold}");
        let none = generation.none.unwrap();
        assert_eq!(none > 0.9, script == "None", "{none}");
        assert_eq!(backend.evaluated().is_empty(), expected.is_empty(), "nothing more is read");
    }
}

/// Writes `text` over `definitions` and compares all the counts: `prefilled` and `forced` are the
/// texts that no model step is spent on, `free` the tokens that the model chooses.
#[track_caller]
fn check(definitions: &str, text: &str, prefilled: &[&str], forced: &[&str], free: &[&str]) {
    let mut backend = Scripted::new(&functions(definitions), wants(text));
    let generation = run(&mut backend).unwrap();
    assert_eq!(generation.text, text);
    let n_tokens = |texts: &[&str]| texts.iter().map(|text| backend.n_tokens(text)).sum::<u32>();
    assert_eq!(generation.n_prefilled, n_tokens(prefilled), "prefilled");
    assert_eq!(generation.n_forced, n_tokens(forced), "forced");
    assert_eq!(generation.n_free as usize, free.len(), "free");
    assert_eq!(generation.cuts, []);
    // One step for each free token, and the last one is not evaluated any more.
    assert_eq!(backend.steps.len(), free.len());
    for step in &backend.steps {
        let logits: Vec<bool> = step.iter().map(|row| row.logits).collect();
        assert!(logits.iter().rev().skip(1).all(|logits| !logits) && logits.ends_with(&[true]));
    }
    let mut evaluated = backend.evaluated().into_iter();
    if let Some((_, evaluated_free)) = free.split_last() {
        for token in evaluated_free {
            assert!(evaluated.any(|bytes| bytes == token.as_bytes()), "{token:?} in its order");
        }
    }
    assert_eq!(evaluated.next(), None, "nothing is evaluated after the last free token but one");
}

#[test]
fn forced_text_costs_no_model_step() {
    check(
        TWO,
        r#"{"name": "fn_sum", "arguments": {"a": 2, "b": 31}}"#,
        &[r#"{"name": "fn_s"#],
        &[r#"m", "arguments": {"a":"#, r#" "b":"#],
        &["u", " ", "2", ",", " ", "3", "1", "}}"],
    );
}

#[test]
fn a_token_may_cross_into_the_value_and_out_of_it() {
    check(
        TWO,
        r#"{"name": "fn_sum", "arguments": {"a": -5, "b": 7}}"#,
        &[r#"{"name": "fn_s"#],
        &[r#"m", "arguments": {"a":"#, r#" "b":"#],
        &["u", " -", "5", ",", " ", "7", "}}"],
    );
    for (value, first) in [("/ab", " \"/"), ("a/", " \"")] {
        let text = format!(r#"{{"name": "fn_say", "arguments": {{"text": "{value}"}}}}"#);
        let rest: &[&str] = if value == "/ab" { &["ab"] } else { &["a", "/"] };
        let free = [&["a", first], rest, &["\"}}"]].concat();
        check(TWO, &text, &[r#"{"name": "fn_s"#], &[r#"y", "arguments": {"text":"#], &free);
    }
}

#[test]
fn text_after_the_last_choice_is_written_and_not_evaluated() {
    let functions = functions(TWO);
    let text = r#"{"name": "fn_say", "arguments": {"text": "hi"}}"#;
    let mut backend = Scripted::new(&functions, wants(text));
    // Without the tokens that cross into it the end is forced.
    backend.vocab = Rc::new(vocab(&["\":", "\",", "}}", " \"", " \"/"]));
    let generation = run(&mut backend).unwrap();
    assert_eq!(generation.text, text);
    // The space and the quote before the value are held back for ` "/`.
    assert_eq!(generation.n_free, 5, "a, the quote, h, i, the quote");
    assert_eq!(
        generation.n_forced,
        backend.n_tokens(r#"y", "arguments": {"text":"#) + backend.n_tokens("}}")
    );
    assert_eq!(backend.evaluated().last(), Some(&&b"i"[..]));
}

#[test]
fn what_leaves_no_choice_needs_no_model() {
    for (definitions, text) in [
        (r#"[{"name": "fn_stop", "parameters": {}}]"#, r#"{"name": "fn_stop", "arguments": {}}"#),
        (
            r#"[{"name": "fn_go", "parameters": {"to": {"enum": ["é\n"]}, "n": {"const": 12}}}]"#,
            r#"{"name": "fn_go", "arguments": {"to": "é\n", "n": 12}}"#,
        ),
    ] {
        let mut backend = Scripted::new(&functions(definitions), wants(""));
        let generation = run(&mut backend).unwrap();
        assert_eq!(generation.text, text);
        assert_eq!((generation.n_free, generation.n_forced, backend.steps.len()), (0, 0, 0));
    }
}

#[test]
fn the_name_of_an_only_function_takes_no_model_step() {
    check(
        r#"[{"name": "fn_say", "parameters": {"text": {"type": "string"}}}]"#,
        r#"{"name": "fn_say", "arguments": {"text": "é"}}"#,
        &[r#"{"name": "fn_say", "arguments": {"text":"#],
        &[],
        &[" \"", "é", "\"}}"],
    );
}

#[test]
fn without_forcing_every_token_is_the_models() {
    let text = r#"{"name": "fn_say", "arguments": {"text": "é"}}"#;
    let mut backend = Scripted::new(&functions(TWO), wants(text));
    backend.forcing = false;
    let generation = run(&mut backend).unwrap();
    assert_eq!(generation.text, text);
    let n_tokens = backend.n_tokens(text);
    assert_eq!((generation.n_free, generation.n_forced, generation.n_prefilled), (n_tokens, 0, 0));
}

#[test]
fn choices_are_weighed_against_all_that_is_allowed() {
    let text = r#"{"name": "fn_sum", "arguments": {"a": 1, "b": 2}}"#;
    let mut backend = Scripted::new(&functions(TWO), wants(text));
    backend.n_others = Some(2);
    let generation = run(&mut backend).unwrap();
    assert_eq!(generation.choices.len(), generation.n_free as usize);
    let first = &generation.choices[0];
    // Both functions begin alike; what remains is `u` of fn_sum and `a` of fn_say.
    assert_eq!((first.text.as_str(), &text[first.at - 1..first.at]), ("u", "s"));
    let others: Vec<&str> = first.others.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(others, ["a"]);
    let sum = first.probability + first.others[0].1;
    assert!((sum - 1.0).abs() < 1e-9 && first.probability > 0.9, "{first:?}");
    for choice in &generation.choices {
        assert!(text[choice.at..].starts_with(&choice.text), "{choice:?}");
        assert!(choice.others.len() <= 2);
        assert!(choice.others.is_sorted_by(|(_, one), (_, other)| one >= other), "{choice:?}");
    }
    let values: Vec<_> = generation.values.iter().map(|one| one.parameter.as_str()).collect();
    assert_eq!(values, ["a", "b"]);
    let confidence = Confidence::of(&generation, &["fn_sum", "fn_say"].into_iter()).remove(0);
    let product: f64 = confidence.arguments.iter().map(|one| one.probability).product();
    assert!((confidence.function * product * confidence.end - confidence.call).abs() < 1e-9);
    assert_eq!(confidence.runner_up.unwrap().name, "fn_say");

    let mut unweighed = Scripted::new(&functions(TWO), wants(text));
    let generation = run(&mut unweighed).unwrap();
    assert_eq!((generation.text.as_str(), generation.choices), (text, Vec::new()));
}

#[test]
fn a_choice_that_the_tokenizer_would_have_divided_otherwise_is_kept_and_counted() {
    let definitions = r#"[{"name": "abc", "parameters": {}}, {"name": "x", "parameters": {}}]"#;
    let text = r#"{"name": "abc", "arguments": {}}"#;
    let mut backend = Scripted::new(&functions(definitions), wants(text));
    assert_eq!(run(&mut backend).unwrap().n_divided, 0, "the model writes `ab`");
    // Without that token of its own the model writes `a`, and `bc` is forced.
    let mut backend = Scripted::new(&functions(definitions), wants(text));
    backend.refused.insert(TokenId(256 + 7));
    let generation = run(&mut backend).unwrap();
    assert_eq!(
        (generation.text.as_str(), generation.n_divided),
        (text, 0),
        "over after the choice"
    );
    let definitions = definitions.replace("{}}", r#"{"n": {"type": "integer"}}}"#);
    let text = r#"{"name": "abc", "arguments": {"n": 5}}"#;
    let mut backend = Scripted::new(&functions(&definitions), wants(text));
    backend.refused.insert(TokenId(256 + 7));
    let generation = run(&mut backend).unwrap();
    assert_eq!((generation.text.as_str(), generation.n_divided), (text, 1));
}

#[test]
fn the_text_of_a_marker_is_forced_as_plain_tokens() {
    let definitions =
        r#"[{"name": "<tool><|end|>", "parameters": {"<tool>": {"type": "boolean"}}}]"#;
    let text = r#"{"name": "<tool><|end|>", "arguments": {"<tool>": true}}"#;
    let mut backend = Scripted::new(&functions(definitions), wants(text));
    let generation = run(&mut backend).unwrap();
    assert_eq!(generation.text, text);
    let kinds = backend.cells[1].iter().map(|id| backend.vocab.kind(*id));
    assert_eq!(kinds.filter(|kind| *kind != TokenKind::Text).count(), 0);
}

/// A function with `parameters`, whose model fills them as [`fills`] says, each cut at `limit`.
#[track_caller]
fn check_cut(
    parameters: &str,
    values: &[(&str, &str)],
    limit: u32,
    arguments: &str,
    cut: &[&str],
) -> Generation {
    let functions = functions(&format!(r#"[{{"name": "f", "parameters": {parameters}}}]"#));
    let mut backend = Scripted::new(&functions, fills(values));
    let generation = run_with(&mut backend, limit, &mut Unwatched).unwrap();
    assert_eq!(generation.text, format!(r#"{{"name": "f", "arguments": {arguments}}}"#));
    let cuts = cut.iter().map(|parameter| Cut { parameter: (*parameter).into(), limit });
    assert_eq!(generation.cuts, cuts.collect::<Vec<_>>());
    generation
}

#[test]
fn a_string_is_cut_where_it_can_be_closed() {
    let text = r#"{"t": {"type": "string"}}"#;
    // The quote that opens it is the first token of a value.
    check_cut(text, &[("t", "\"…x")], 4, r#"{"t": "xxx"}"#, &["t"]);
    check_cut(text, &[("t", "\"…x")], 1, r#"{"t": ""}"#, &["t"]);
    // Two bytes, one token; and four tokens, which are waited for.
    check_cut(text, &[("t", "\"…é")], 3, r#"{"t": "éé"}"#, &["t"]);
    check_cut(text, &[("t", "\"…🦀")], 3, r#"{"t": "🦀"}"#, &["t"]);
    // A backslash alone is never closed as if it escaped the quote.
    check_cut(text, &[("t", "\"…\\n")], 2, r#"{"t": "\n"}"#, &["t"]);
    check_cut(text, &[("t", "\"…\\u00e9")], 4, r#"{"t": "\u00e9"}"#, &["t"]);
    // What ends in time is not cut.
    check_cut(text, &[("t", "\"xx\"}}…")], 4, r#"{"t": "xx"}"#, &[]);
}

#[test]
fn numbers_arrays_and_objects_are_cut_legally() {
    let number = r#"{"n": {"type": "number"}}"#;
    check_cut(number, &[("n", "7")], 4, r#"{"n": 7777}"#, &["n"]);
    check_cut(number, &[("n", "-…7")], 1, r#"{"n": -7}"#, &["n"]);
    check_cut(number, &[("n", "1.…5")], 3, r#"{"n": 1.5}"#, &["n"]);
    check_cut(number, &[("n", "1e-…5")], 3, r#"{"n": 1e-5}"#, &["n"]);
    let list =
        r#"{"l": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}}"#;
    check_cut(list, &[("l", "[[\"…x")], 5, r#"{"l": [["xx"]]}"#, &["l"]);
    check_cut(list, &[("l", "[[\"x\"]…, [\"y\"]")], 10, r#"{"l": [["x"], [""]]}"#, &["l"]);
    let object = r#"{"o": {"type": "object", "properties": {"t": {"type": "string"}, "u": {"type": "integer"}}, "required": ["t"]}}"#;
    check_cut(object, &[("o", "{\"t\": \"…x")], 12, r#"{"o": {"t": "xxxxxxx"}}"#, &["o"]);
    let any = r#"{"v": {}}"#;
    check_cut(any, &[("v", "…[")], 4, r#"{"v": [[[[]]]]}"#, &["v"]);
    check_cut(any, &[("v", "{\"k\": [\"…x")], 10, r#"{"v": {"k": ["xxx"]}}"#, &["v"]);
}

#[test]
fn arguments_after_a_cut_are_written_by_the_model() {
    let three = r#"{"a": {"type": "string"}, "b": {"type": "number"}, "c": {"type": "string"}}"#;
    let generation = check_cut(
        three,
        &[("a", "\"…x"), ("b", "5"), ("c", "\"y\"}}…")],
        3,
        r#"{"a": "xx", "b": 555, "c": "y"}"#,
        &["a", "b"],
    );
    assert!(generation.n_free > 6);
    let optional = r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}"#;
    check_cut(optional, &[("a", "\"…x"), ("b", "7")], 3, r#"{"a": "xx", "b": 777}"#, &["a", "b"]);
}

#[test]
fn a_cut_names_its_parameter() {
    for key in ["a,b", "q\"k", "back\\slash", "x\": y", "\": \"", "é\n", "", "end\\"] {
        let escaped = serde_json::to_string(key).unwrap();
        let inner = &escaped[1..escaped.len() - 1];
        let both = format!(r#"{{{escaped}: {{"type": "string"}}, "z": {{"type": "string"}}}}"#);
        check_cut(
            &both,
            &[(inner, "\"…: "), ("z", "\"…\\\": ")],
            4,
            &format!(r#"{{{escaped}: ": :", "z": "\": "}}"#),
            &[key, "z"],
        );
    }
    // A value that begins with a token that looks like the end of a key.
    let functions = functions(r#"[{"name": "f", "parameters": {"t": {"type": "string"}}}]"#);
    let mut backend = Scripted::new(&functions, fills(&[("t", "\"…: ")]));
    backend.vocab = Rc::new(vocab(&["\": "]));
    let generation = run_with(&mut backend, 3, &mut Unwatched).unwrap();
    assert_eq!(generation.text, r#"{"name": "f", "arguments": {"t": ": : "}}"#);
    assert_eq!(generation.cuts, [Cut { parameter: "t".into(), limit: 3 }]);
}

#[test]
fn refused_candidates_make_room_for_the_next() {
    let text = r#"{"name": "fn_say", "arguments": {"text": "ab"}}"#;
    let mut backend = Scripted::new(&functions(TWO), wants(text));
    let ab = TokenId(256 + 7);
    assert_eq!(backend.vocab.bytes(ab), b"ab");
    backend.refused = BTreeSet::from([ab]);
    assert_eq!(run(&mut backend).unwrap().text, text);
    assert!(!backend.cells[1].contains(&ab));
}

#[test]
fn a_gate_that_refuses_forced_text_is_a_disagreement() {
    let mut backend = Scripted::new(&functions(TWO), wants(""));
    backend.refused = BTreeSet::from([TokenId(b'n'.into())]);
    let error = run(&mut backend).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"llama.cpp's sampler refuses "n" after "{\"", which the grammar takes"#
    );
    assert!(backend.steps.is_empty());
}

#[test]
fn where_nothing_is_allowed_there_is_an_error() {
    let error = r#"no token of the model continues the call "{\"name\": \"fn_s""#;
    let two = r#"[{"name": "fn_sk", "parameters": {}}, {"name": "fn_sq", "parameters": {}}]"#;
    let mut backend = Scripted::new(&functions(two), wants(""));
    backend.refused = BTreeSet::from([TokenId(b'k'.into()), TokenId(b'q'.into())]);
    assert_eq!(run(&mut backend).unwrap_err().to_string(), error);
    for noise in [f32::NAN, -f32::NAN] {
        let mut backend = Scripted::new(&functions(TWO), wants(""));
        backend.noise = Some(noise);
        assert_eq!(run(&mut backend).unwrap_err().to_string(), error);
    }
}

#[test]
fn equal_logits_go_to_the_lowest_id() {
    for noise in [0.0, -7.5, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        let mut backend = Scripted::new(&functions(TWO), wants(""));
        backend.noise = Some(noise);
        // `a` before `u`; then in the string space before all others, until it is cut.
        let generation = run_with(&mut backend, 3, &mut Unwatched).unwrap();
        assert_eq!(generation.text, r#"{"name": "fn_say", "arguments": {"text": "  "}}"#);
    }
    let place_vocab = vocab(&[]);
    let mut logits = vec![-1.0; place_vocab.len()];
    logits[usize::from(b'u')] = 0.0;
    logits[usize::from(b'a')] = -0.0;
    let mut backend = Scripted::new(&functions(TWO), wants(""));
    backend.vocab = Rc::new(place_vocab);
    assert_eq!(
        choose(&backend, r#"{"name": "fn_s"#, &logits, Sampling::Greedy, 0),
        Some(TokenId(97))
    );
    logits[usize::from(b'!')] = -0.0;
    backend.refused = BTreeSet::from([TokenId(b'a'.into())]);
    assert_eq!(
        choose(&backend, r#"{"name": "fn_s"#, &logits, Sampling::Greedy, 0),
        Some(TokenId(117))
    );
}

/// What [`Place::choose`] gives after `so_far`.
fn choose(
    backend: &Scripted,
    so_far: &str,
    logits: &[f32],
    sampling: Sampling,
    seed: u64,
) -> Option<TokenId> {
    let mut recognizer = backend.start.clone();
    recognizer.push_all(so_far.as_bytes()).unwrap();
    let mut gate = ScriptedGate {
        recognizer: recognizer.clone(),
        vocab: Rc::clone(&backend.vocab),
        refused: backend.refused.clone(),
    };
    let mut place = Place { recognizer: &recognizer, gate: &mut gate, vocab: &backend.vocab };
    place.choose(logits, sampling, &mut Random::new(seed, 0))
}

/// The tokens that the grammar takes after `so_far`, by asking of each.
fn allowed(backend: &Scripted, so_far: &str) -> Vec<TokenId> {
    let mut recognizer = backend.start.clone();
    recognizer.push_all(so_far.as_bytes()).unwrap();
    let ids = (0..u32::try_from(backend.vocab.len()).unwrap()).map(TokenId);
    ids.filter(|id| {
        backend.vocab.kind(*id) == TokenKind::Text
            && !backend.refused.contains(id)
            && recognizer.accepts(backend.vocab.bytes(*id))
    })
    .collect()
}

/// Numbers that look random and are the same in every run.
fn noise(seed: u32, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let next = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        f32::from(u16::try_from(state >> 16).unwrap()) / 4096.0
    });
    next.skip(8).take(n).collect()
}

/// Every pair of letters and digits, and a few that end a value.
fn pairs() -> Vec<String> {
    let letters: Vec<char> = ('a'..='z').chain('0'..='9').chain(" -.,\"}]é".chars()).collect();
    letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}"))).collect()
}

#[test]
fn the_walk_and_the_mask_choose_what_a_whole_mask_would() {
    let pairs = pairs();
    let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
    let mut backend = Scripted::new(&functions(TWO), wants(""));
    backend.vocab = Rc::new(vocab(&pairs));
    let call = |rest: &str| format!(r#"{{"name": "fn_{rest}"#);
    let mut n_deep = 0;
    for so_far in [
        call("s"),
        call(r#"sum", "arguments": {"a": "#),
        call(r#"sum", "arguments": {"a": 1"#),
        call(r#"sum", "arguments": {"a": -"#),
        call(r#"sum", "arguments": {"a": 1.0e"#),
        call(r#"say", "arguments": {"text": "x"#),
        call(r#"say", "arguments": {"text": "x\"#),
        call(r#"say", "arguments": {"text": "x\u1"#),
    ] {
        for seed in 0..40 {
            let mut logits = noise(seed, backend.vocab.len());
            if seed % 4 == 0 {
                logits.iter_mut().step_by(3).for_each(|logit| *logit = f32::NAN);
            }
            let mut allowed = allowed(&backend, &so_far);
            backend.refused = allowed.iter().copied().filter(|id| id.0 % 7 == seed % 7).collect();
            allowed.retain(|id| !backend.refused.contains(id) && !logits[id.index()].is_nan());
            let best = allowed.iter().copied().reduce(|best, id| {
                if logits[id.index()] > logits[best.index()] { id } else { best }
            });
            let n_higher = |id: TokenId| logits.iter().filter(|x| **x > logits[id.index()]).count();
            n_deep += usize::from(best.is_some_and(|best| n_higher(best) >= 64));
            assert_eq!(
                choose(&backend, &so_far, &logits, Sampling::Greedy, 0),
                best,
                "{so_far} {seed}"
            );
            backend.refused.clear();
        }
    }
    assert!(n_deep > 30, "{n_deep} choices needed the mask");
}

/// Draws often after `so_far` and compares with the softmax over what is allowed, by chi-square.
#[track_caller]
fn check_draws(backend: &Scripted, so_far: &str, logits: &[f32], temperature: f32) {
    let allowed = allowed(backend, so_far);
    let weight = |id: &TokenId| f64::from(logits[id.index()] / temperature).exp();
    let total: f64 = allowed.iter().map(weight).sum();
    let n_draws = 4000_u32;
    let mut counts = vec![0_u32; backend.vocab.len()];
    for seed in 0..n_draws {
        let sampling = Sampling::Temperature { temperature };
        let id = choose(backend, so_far, logits, sampling, seed.into()).unwrap();
        counts[id.index()] += 1;
    }
    assert_eq!(allowed.iter().map(|id| counts[id.index()]).sum::<u32>(), n_draws);
    let chi_square: f64 = allowed
        .iter()
        .map(|id| {
            let expected = f64::from(n_draws) * weight(id) / total;
            (f64::from(counts[id.index()]) - expected).powi(2) / expected
        })
        .sum();
    // Mean n - 1, deviation sqrt(2 (n - 1)): five deviations.
    let freedom = f64::from(u32::try_from(allowed.len()).unwrap() - 1);
    assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0, "{chi_square} of {freedom}");
}

#[test]
fn a_draw_is_one_from_the_masked_softmax() {
    let mut backend = Scripted::new(&functions(TWO), wants(""));
    let so_far = r#"{"name": "fn_sum", "arguments": {"a": 1"#;
    let mut logits = noise(3, backend.vocab.len());
    for logit in &mut logits {
        *logit /= 8.0;
    }
    check_draws(&backend, so_far, &logits, 0.7);
    check_draws(&backend, so_far, &logits, 2.0);
    // All that is refused is far likelier: the walk ends and the mask is drawn from.
    for id in allowed(&backend, so_far) {
        logits[id.index()] -= 12.0;
    }
    check_draws(&backend, so_far, &logits, 1.5);
    backend.refused = BTreeSet::from([TokenId(b'2'.into()), TokenId(b','.into())]);
    check_draws(&backend, so_far, &logits, 1.5);
}

#[test]
fn a_low_temperature_finds_what_is_allowed_however_unlikely() {
    let backend = Scripted::new(&functions(TWO), wants(""));
    let mut logits = vec![0.0; backend.vocab.len()];
    logits[usize::from(b'!')] = 90.0;
    logits[usize::from(b'u')] = 1.0;
    for temperature in [1.0, 0.05, 1e-3, 1e-30] {
        let sampling = Sampling::Temperature { temperature };
        let chosen = choose(&backend, r#"{"name": "fn_s"#, &logits, sampling, 5);
        assert!(chosen.is_some(), "{temperature}");
        if temperature < 0.05 {
            assert_eq!(chosen, Some(TokenId(b'u'.into())), "{temperature}");
        }
    }
    for noise in [f32::INFINITY, f32::NEG_INFINITY] {
        let sampling = Sampling::Temperature { temperature: 1.0 };
        let logits = vec![noise; backend.vocab.len()];
        let chosen = choose(&backend, r#"{"name": "fn_s"#, &logits, sampling, 5);
        assert!([Some(TokenId(b'a'.into())), Some(TokenId(b'u'.into()))].contains(&chosen));
    }
    let nan = vec![f32::NAN; backend.vocab.len()];
    let sampling = Sampling::Temperature { temperature: 1.0 };
    assert_eq!(choose(&backend, r#"{"name": "fn_s"#, &nan, sampling, 5), None);
}

/// Keeps every text that it is shown.
struct Texts(Vec<String>);

impl decode::Watch for Texts {
    fn is_interrupted(&self) -> bool {
        false
    }
    fn on_text(&mut self, _: u64, text: &[u8]) {
        self.0.push(String::from_utf8_lossy(text).into_owned());
    }
}

/// Is interrupted when it is asked for the last of so many times.
struct After(std::cell::Cell<usize>);

impl decode::Watch for After {
    fn is_interrupted(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
    fn on_text(&mut self, _: u64, _: &[u8]) {}
}

#[test]
fn a_long_prompt_is_evaluated_in_chunks_and_can_be_interrupted_between_them() {
    let text = r#"{"name": "fn_say", "arguments": {"text": "é"}}"#;
    let mut backend = Scripted::new(&functions(TWO), wants(text));
    backend.n_prompt = 1000;
    let mut watch = Texts(Vec::new());
    assert_eq!(run_with(&mut backend, 200, &mut watch).unwrap().text, text);
    assert_eq!(watch.0[0], r#"{"name": "fn_s"#);
    assert_eq!(watch.0.last().unwrap(), text);
    let sizes: Vec<usize> = backend.steps.iter().map(Vec::len).collect();
    assert_eq!(sizes[..7], [128; 7]);
    let n_prefilled = backend.n_tokens(r#"{"name": "fn_s"#) as usize;
    assert_eq!(sizes[7], 1000 + n_prefilled - 7 * 128);
    let wanted: Vec<usize> = (0..)
        .zip(backend.steps.iter().flatten())
        .filter(|(_, row)| row.logits)
        .map(|(n, _)| n)
        .collect();
    assert_eq!(wanted[0], 1000 + n_prefilled - 1, "no logits within the prompt");
    for n in 1..9 {
        let mut backend = Scripted::new(&functions(TWO), wants(text));
        backend.n_prompt = 1000;
        let error = run_with(&mut backend, 200, &mut After(n.into())).unwrap_err();
        assert!(matches!(error, DecodeError::Interrupted));
        assert_eq!(backend.steps.len(), n - 1, "asked before every step");
    }
}

#[test]
fn a_prompt_beyond_the_context_fails_before_it_is_evaluated() {
    let mut backend = Scripted::new(&functions(TWO), wants(""));
    backend.n_ctx = 8;
    let needed = backend.n_tokens(r#"{"name": "fn_s"#) + u32::try_from(PROMPT.len()).unwrap();
    let error = run(&mut backend).unwrap_err().to_string();
    assert_eq!(error, format!("{needed} tokens are needed, and the model's context holds 8"));
    assert!(backend.steps.is_empty());
}

fn tokens(text: &str) -> Vec<TokenId> {
    text.bytes().map(|byte| TokenId(byte.into())).collect()
}

#[test]
fn a_prefix_is_decoded_once_and_lent_as_far_as_it_goes() {
    let mut backend = Scripted::new(&functions(TWO), wants(""));
    backend.max_rows = 4;
    let mut prefix = Prefixes::default();
    let held = tokens("tools: a, b\n");
    for _ in 0..2 {
        prefix.hold(&mut backend, &held, (0, true), &|| false).unwrap();
        assert_eq!((prefix.n_cells(), backend.steps.len()), (12, 3));
        assert_eq!(backend.cells[0], held);
        assert!(
            backend.steps.iter().flatten().all(|row| !row.logits && row.sequence == SequenceId(0))
        );
    }
    for (prompt, shared, copied_whole) in [
        ("tools: a, b\nhi", 12, 12),
        ("tools: a, b\n", 11, 0),
        ("tools: a, c\nhi", 10, 0),
        ("tools: a, b", 10, 0),
        ("t", 0, 0),
        ("", 0, 0),
        ("none", 0, 0),
    ] {
        for copies_part in [true, false] {
            backend.copies_part = copies_part;
            backend.cells[CALL.0 as usize] = tokens("left over");
            let n = prefix.lend(&mut backend, CALL, &tokens(prompt)).unwrap();
            assert_eq!(n, if copies_part { shared } else { copied_whole }, "{prompt:?}");
            assert_eq!(backend.cells[CALL.0 as usize], held[..n as usize], "{prompt:?}");
            prefix.give_back(CALL);
        }
    }
    let other = tokens("others");
    prefix.hold(&mut backend, &other, (0, true), &|| false).unwrap();
    assert_eq!((&backend.cells[0], backend.steps.len()), (&other, 5));
    assert_eq!(prefix::common(&held, &tokens("tools: none")), tokens("tools: "));
    assert_eq!(prefix::common(&held, &held), held);
}

#[test]
fn a_prefix_that_could_not_be_decoded_leaves_nothing_behind() {
    let mut backend = Scripted::new(&functions(TWO), wants(""));
    backend.max_rows = 4;
    let mut prefix = Prefixes::default();
    let held = tokens("tools: a, b\n");
    let asked = std::cell::Cell::new(0);
    let second = || {
        asked.set(asked.get() + 1);
        asked.get() == 2
    };
    let error = prefix.hold(&mut backend, &held, (0, true), &second).unwrap_err();
    assert!(matches!(error, DecodeError::Interrupted));
    assert!(prefix.n_cells() == 0 && backend.cells[0].is_empty());
    backend.broken_step = Some(2);
    let error = prefix.hold(&mut backend, &held, (0, true), &|| false).unwrap_err();
    assert_eq!(error.to_string(), "llama.cpp could not decode 4 rows: scripted");
    assert!(prefix.n_cells() == 0 && backend.cells[0].is_empty());
    backend.n_ctx = 5;
    prefix.hold(&mut backend, &held, (0, true), &|| false).unwrap_err();
    assert!(prefix.n_cells() == 0 && backend.cells[0].is_empty());
}

#[test]
fn a_caller_shares_the_prefix_and_goes_on_after_a_failure() {
    let definitions = r#"[
        {"name": "fn_say", "parameters": {"text": {"type": "string"}}},
        {"name": "fn_bad", "parameters": {"text": {"type": "string", "disallow": "^a$"}}}
    ]"#;
    let functions = functions(definitions);
    let say = r#"{"name": "fn_say", "arguments": {"text": "é"}}"#;
    for (script, expected) in
        [(wants(say), Ok(say)), (wants(r#"{"name": "fn_bad"}"#), Err("disallow"))]
    {
        let mut backend = Scripted::new(&functions, script);
        let writer = PromptWriter::new(&ModelText::default(), &PromptsConfig::default()).unwrap();
        let rendered = writer.render(&functions, "Say é").unwrap().pieces.concat();
        backend.n_prompt = backend.tokenize(&rendered, true).len();
        let options = CallOptions {
            limits: Limits { max_value_tokens: 20 },
            forcing: true,
            n_others: None,
            sampling: Sampling::Greedy,
            seed: 0,
            n_parallel: NonZeroUsize::MIN,
        };
        let n_prompt = u32::try_from(backend.n_prompt).unwrap();
        let mut caller = Caller::new(backend, writer, options, None);
        let set = Rc::new(FunctionSet::compile(functions.clone(), false).unwrap());
        set.share();
        for _ in 0..2 {
            let request = Request { index: 0, set: Rc::clone(&set), text: "Say é".into() };
            match (caller.call(request, &mut Unwatched), expected) {
                (Ok(answer), Ok(text)) => {
                    assert_eq!(answer.generation.text, text);
                    assert_eq!(answer.calls[0].name.as_str(), "fn_say");
                    assert_eq!(answer.generation.n_prompt, n_prompt);
                    // Up to the request itself.
                    let before = rendered.find("Say é").unwrap();
                    let tail = u32::try_from(rendered.len() - before).unwrap();
                    let rest = n_prompt - answer.generation.n_shared;
                    assert!(rest <= tail && rest + 2 >= tail - 2, "{rest} {tail}");
                }
                (Err(error), Err(keyword)) => {
                    assert!(error.to_string().contains(keyword), "{error}");
                    assert!(matches!(error, CallError::Validate { .. }) && !error.is_interrupt());
                    assert_eq!(error.generation().unwrap().text, r#"{"name": "fn_bad"}"#);
                }
                (found, _) => panic!("{found:?}"),
            }
        }
    }
}

/// The prefixes that it was asked for, and those that it has.
#[derive(Debug, Default, Clone)]
struct Shelf(Rc<std::cell::RefCell<BTreeMap<Vec<TokenId>, Vec<u8>>>>);

impl Store for Shelf {
    fn load(&mut self, tokens: &[TokenId]) -> Option<Vec<u8>> {
        self.0.borrow().get(tokens).filter(|state| !state.is_empty()).cloned()
    }
    fn note(&mut self, tokens: &[TokenId]) -> bool {
        self.0.borrow_mut().insert(tokens.to_vec(), Vec::new()).is_some()
    }
    fn save(&mut self, tokens: &[TokenId], state: &[u8]) {
        self.0.borrow_mut().insert(tokens.to_vec(), state.to_vec());
    }
}

#[test]
fn prefixes_come_back_from_memory_and_from_the_store() {
    let mut backend = Scripted::new(&functions(TWO), wants(""));
    let shelf = Shelf::default();
    let mut prefixes = Prefixes::with(Some(Box::new(shelf.clone())));
    let sets: Vec<Vec<TokenId>> = (0..7).map(|n| tokens(&format!("{n}: tools"))).collect();
    for (n, set) in sets.iter().enumerate() {
        prefixes.hold(&mut backend, set, (0, n % 2 == 0), &|| false).unwrap();
    }
    // One is in the cache, since none is in use; those that are worth it are parked.
    assert_eq!((prefixes.n_cells(), backend.steps.len()), (8, 7));
    assert_eq!(shelf.0.borrow().len(), 7);
    for set in &sets {
        prefixes.hold(&mut backend, set, (0, true), &|| false).unwrap();
        assert_eq!(
            prefixes.lend(&mut backend, CALL, &[set.as_slice(), &tokens("a")].concat()).unwrap(),
            8
        );
        prefixes.give_back(CALL);
    }
    assert_eq!(backend.steps.len(), 7, "nothing is decoded twice");
    // With all places in use a further prefix waits for none.
    for (n, set) in (0..).zip(&sets[..4]) {
        prefixes.hold(&mut backend, set, (0, true), &|| false).unwrap();
        let prompt = [set.as_slice(), &tokens("a")].concat();
        assert_eq!(prefixes.lend(&mut backend, SequenceId(CALL.0 + n), &prompt).unwrap(), 8);
    }
    prefixes.hold(&mut backend, &sets[4], (0, true), &|| false).unwrap();
    let prompt = [sets[4].as_slice(), &tokens("a")].concat();
    assert_eq!(prefixes.lend(&mut backend, SequenceId(CALL.0 + 4), &prompt).unwrap(), 0);
    assert_eq!(prefixes.n_cells(), 32);
}

/// A prompt's index, and its call or error.
type Found = (u64, Result<String, String>);

/// Requests of one set that are all answered with the same call.
fn answers(
    backend: Scripted,
    functions: &[FunctionDef],
    requests: &[&str],
    n_parallel: usize,
) -> (Vec<Found>, Vec<Vec<Row>>) {
    let writer = PromptWriter::new(&ModelText::default(), &PromptsConfig::default()).unwrap();
    let options = CallOptions {
        limits: Limits { max_value_tokens: 20 },
        forcing: true,
        n_others: None,
        sampling: Sampling::Greedy,
        seed: 0,
        n_parallel: NonZeroUsize::new(n_parallel).unwrap(),
    };
    let set = Rc::new(FunctionSet::compile(functions.to_vec(), false).unwrap());
    let mut caller = Caller::new(backend, writer, options, None);
    let mut found = Vec::new();
    let mut all = (0..).zip(requests).map(|(index, text)| Request {
        index,
        set: Rc::clone(&set),
        text: (*text).to_owned(),
    });
    let mut on_answer = |index, answer: Result<call_me_maybe::caller::Answer, CallError>| {
        let text = answer.map(|answer| answer.generation.text).map_err(|error| error.to_string());
        found.push((index, text));
    };
    caller.call_all(&mut all, &mut Unwatched, &mut on_answer).unwrap();
    let steps = caller.backend().steps.clone();
    assert!(caller.backend().cells.iter().all(Vec::is_empty), "nothing is left in the cache");
    found.sort();
    (found, steps)
}

/// A model of [`answers`] whose prompts have the length that they really have.
fn scripted_for(functions: &[FunctionDef], text: &str, requests: &[&str]) -> Scripted {
    let mut backend = Scripted::new(functions, wants(text));
    let writer = PromptWriter::new(&ModelText::default(), &PromptsConfig::default()).unwrap();
    let len = |request: &str| {
        let prompt = writer.render(functions, request).unwrap().pieces.concat();
        backend.tokenize(&prompt, true).len()
    };
    let lens: BTreeSet<usize> = requests.iter().map(|request| len(request)).collect();
    assert_eq!(lens.len(), 1, "one length for all");
    backend.n_prompt = lens.into_iter().next().unwrap();
    backend
}

#[test]
fn requests_in_flight_share_their_steps_and_get_the_same_calls() {
    let functions = functions(TWO);
    let text = r#"{"name": "fn_say", "arguments": {"text": "é"}}"#;
    let requests = ["Say 1", "Say 2", "Say 3", "Say 4", "Say 5"];
    let expected: Vec<_> = (0..5).map(|index| (index, Ok(text.to_owned()))).collect();
    let run = |n_parallel, max_cells| {
        let mut backend = scripted_for(&functions, text, &requests);
        backend.max_cells = max_cells;
        let (found, steps) = answers(backend, &functions, &requests, n_parallel);
        assert_eq!(found, expected, "{n_parallel}");
        steps
    };
    let alone = run(1, 10_000);
    assert_eq!(run(2, 1), alone, "one at a time where there is no room for two");
    let n_rows = |steps: &[Vec<Row>]| steps.iter().map(Vec::len).sum::<usize>();
    for n_parallel in [2, 5, 8] {
        let steps = run(n_parallel, 10_000);
        assert_eq!(n_rows(&steps), n_rows(&alone), "the same rows");
        assert!(steps.len() < alone.len(), "{n_parallel}: {} {}", steps.len(), alone.len());
        // The first is answered as soon as if it were alone.
        let n_first = alone.len() / requests.len();
        let is_of_first = |step: &Vec<Row>| step.iter().any(|row| row.sequence == CALL);
        assert!(steps[..n_first].iter().all(is_of_first), "{n_parallel}");
    }
}

#[test]
fn names_are_weighed_against_those_of_an_empty_request() {
    let functions = functions(TWO);
    let requests = ["Say 1", "Say 2", "Say 3"];
    for (asked, neutral, expected) in [(0.5, 0.9, SAY), (0.5, 0.3, SUM), (0.9, 0.9, SUM)] {
        let mut backend = scripted_for(&functions, "", &requests);
        backend.script = says_or_sums();
        backend.special = -99.0;
        backend.odds = match (asked > 0.5, neutral > 0.5) {
            (false, true) => {
                |text| odds(text, &[(b'u', 0.5), (b'a', 0.4)], &[(b'u', 0.9), (b'a', 0.1)])
            }
            (false, false) => {
                |text| odds(text, &[(b'u', 0.5), (b'a', 0.4)], &[(b'u', 0.3), (b'a', 0.7)])
            }
            _ => |text| odds(text, &[(b'u', 0.9), (b'a', 0.04)], &[(b'u', 0.9), (b'a', 0.1)]),
        };
        let (found, steps) = answers(backend, &functions, &requests, 2);
        let expected: Vec<_> = (0..3).map(|index| (index, Ok(expected.to_owned()))).collect();
        assert_eq!(found, expected, "{asked} {neutral}");
        let is_neutral = |step: &&Vec<Row>| step.iter().any(|row| row.sequence.0 + 1 == CALL.0);
        let n_neutral = steps.iter().filter(is_neutral).count();
        assert_eq!(n_neutral > 0, asked < 0.6, "only where a name is unsure");
        let once = steps.iter().rev().take(steps.len() / 2).all(|step| !is_neutral(&step));
        assert!(once, "once for all requests over the set");
    }
}

fn odds(
    text: &str,
    asked: &'static [(u8, f32)],
    neutral: &'static [(u8, f32)],
) -> &'static [(u8, f32)] {
    match text.ends_with("fn_s") {
        true if text.contains("Say ") => asked,
        true => neutral,
        false => &[],
    }
}

#[test]
fn a_long_prompt_makes_no_short_one_wait_for_the_first_call() {
    let functions = functions(TWO);
    let text = r#"{"name": "fn_say", "arguments": {"text": "é"}}"#;
    let mut backend = Scripted::new(&functions, wants(text));
    let ids = [CALL, SequenceId(CALL.0 + 1)];
    backend.n_prompts = BTreeMap::from([(ids[0].0, 1000), (ids[1].0, 20)]);
    let mut batch = Batch::new(CALL, 2);
    for (index, id) in (0..).zip(ids) {
        let prompt = vec![TokenId(b'a'.into()); backend.n_prompts[&id.0]];
        let sequence = sequence(&backend, id, &prompt, 20);
        assert!(batch.start(&mut backend, index, sequence, &mut Unwatched).is_none());
    }
    let mut order = Vec::new();
    while order.len() < 2 {
        for finished in batch.step(&mut backend, 0, &mut Unwatched).unwrap() {
            backend.remove(finished.id).unwrap();
            order.push((finished.index, backend.steps.len()));
        }
    }
    let n_alone = 1000usize.div_ceil(backend.max_rows);
    assert_eq!(order[0].0, 1);
    assert!(order[0].1 < n_alone, "{order:?}");
}

#[test]
fn a_step_that_fails_costs_no_other_request_its_call() {
    let functions = functions(TWO);
    let text = r#"{"name": "fn_say", "arguments": {"text": "é"}}"#;
    let requests = ["Say 1", "Say 2", "Say 3"];
    // Whichever step it is: what was in flight is begun anew, and the step is not broken twice.
    for broken in 0..12 {
        let mut backend = scripted_for(&functions, text, &requests);
        backend.broken_step = Some(broken);
        backend.mends = true;
        let (found, _) = answers(backend, &functions, &requests, 3);
        let expected: Vec<_> = (0..3).map(|index| (index, Ok(text.to_owned()))).collect();
        assert_eq!(found, expected, "{broken}");
    }
    // A request that cannot be decoded is alone when it fails.
    let mut backend = scripted_for(&functions, text, &requests);
    backend.refuses_token = Some(TokenId(b'2'.into()));
    let (found, _) = answers(backend, &functions, &requests, 3);
    assert_eq!(found[0].1.as_deref(), Ok(text));
    assert!(found[1].1.as_ref().unwrap_err().contains("could not decode"), "{found:?}");
    assert_eq!(found[2].1.as_deref(), Ok(text));
}
