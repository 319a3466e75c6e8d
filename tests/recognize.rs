//! The recognizer on calls: what it takes, what it forces, how it closes a value; and on random
//! grammars, against a matcher that is too simple to be wrong.

use std::collections::BTreeSet;

use call_me_maybe::definitions;
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::{ByteSet, Recognizer};
use call_me_maybe::grammar::{Class, Expr, Grammar, Repeat, Rule, RuleName};
use proptest::prelude::*;

fn recognizer(definitions: &str) -> Recognizer {
    let functions = definitions::parse(definitions.as_bytes()).unwrap();
    let grammar = calls(&functions, Options::LEGAL).unwrap().grammar;
    Recognizer::new(&grammar).unwrap()
}

const TWO: &str = r#"[
    {"name": "fn_sum", "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}},
    {"name": "fn_say", "parameters": {"text": {"type": "string"}}},
    {"name": "fn_bad", "parameters": {"text": {"type": "string", "pattern": "^a$"}}}
]"#;

#[track_caller]
fn check(so_far: &str, forced: &str, closing: &str, in_argument: bool, can_end: bool) {
    let mut text = recognizer(TWO);
    assert_eq!(text.push_all(so_far.as_bytes()), Ok(()), "{so_far}");
    assert_eq!(String::from_utf8(text.forced()).unwrap(), forced, "forced after {so_far}");
    assert_eq!(String::from_utf8_lossy(&text.closing()), closing, "closing after {so_far}");
    assert_eq!(text.in_argument(), in_argument, "in_argument after {so_far}");
    assert_eq!(text.can_end(), can_end, "can_end after {so_far}");
    assert_eq!(text.is_over(), can_end, "is_over after {so_far}");
}

#[test]
fn forced_and_closing_follow_the_text() {
    check("", r#"{"name": "fn_"#, "", false, false);
    check(r#"{"name": "fn_su"#, r#"m", "arguments": {"a": "#, "", false, false);
    check(r#"{"name": "fn_s"#, "", "", false, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": "#, "", "0", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": -"#, "", "0", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": 2"#, "", "", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": 2."#, "", "0", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": 2e+"#, "", "0", true, false);
    check(r#"{"name": "fn_sum", "arguments": {"a": 2, "#, r#""b": "#, "", false, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "#, "\"", "\"\"", true, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "ab"#, "", "\"", true, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "a\"#, "", "\"\"", true, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "a\uD8"#, "", "00\\uDC00\"", true, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "ab""#, "}}", "", false, false);
    check(r#"{"name": "fn_say", "arguments": {"text": "ab"}}"#, "", "", false, true);
    check(r#"{"name": "fn_bad"#, "\"}", "", false, false);
    check(r#"{"name": "fn_bad"}"#, "", "", false, true);
}

#[test]
fn a_refused_text_changes_nothing() {
    let mut text = recognizer(TWO);
    let good = br#"{"name": "fn_say", "arguments": {"text": "a"#;
    assert_eq!(text.push_all(good), Ok(()));
    assert_eq!(text.push_all("b\u{e9}\u{1}c".as_bytes()), Err(3));
    assert!(!text.push(b'\n') && !text.push(0x80) && !text.push(0xff));
    assert!(
        !text.accepts(b"\xc3\"") && !text.accepts(b"\xed\xa0\x80") && !text.accepts(b"\xc0\x80")
    );
    assert!(
        text.accepts(b"") && text.accepts(b"\xc3") && text.accepts("\u{10ffff}\"}}".as_bytes())
    );
    assert!(!text.accepts(b"\"}}}") && !text.accepts(b"\"}} "));
    assert_eq!(text.closing(), b"\"");
    assert_eq!(text.push_all(b"\"}}"), Ok(()));
    assert!(text.is_over() && text.allowed().is_empty());
    assert!(!text.push(b' ') && text.can_end());
    assert_eq!(text.push_all(b"x"), Err(0));
}

#[test]
fn close_argument_leaves_the_value_for_good() {
    let mut text = recognizer(TWO);
    assert_eq!(text.push_all(br#"{"name": "fn_sum", "arguments": {"a": 12"#), Ok(()));
    assert!(text.accepts(b"3") && text.in_argument());
    assert_eq!(text.close_argument(), b"");
    assert!(!text.accepts(b"3") && !text.in_argument());
    assert_eq!(text.forced(), br#", "b": "#);
    assert_eq!(text.push_all(br#", "b": -"#), Ok(()));
    assert_eq!(text.close_argument(), b"0");
    assert_eq!(text.forced(), b"}}");
    assert_eq!(text.close_argument(), b"");
}

#[test]
fn a_very_deep_text_needs_no_deep_stack() {
    let (open, close) = (Expr::literal("("), Expr::literal(")"));
    let inner = Rule::new(
        RuleName::new("inner").unwrap(),
        open.then(Expr::Rule(RuleName::new("inner").unwrap()).optional()).then(close),
    );
    let root = Rule::new(RuleName::root(), Expr::Rule(inner.name.clone()));
    let mut text = Recognizer::new(&Grammar::new(vec![root, inner]).unwrap()).unwrap();
    for _ in 0..200_000 {
        assert!(text.push(b'('));
    }
    let copy = text.clone();
    drop(text);
    assert!(copy.accepts(b"()))") && !copy.can_end());
}

#[test]
fn byte_sets_hold_every_byte() {
    let mut set = ByteSet::default();
    assert!(set.is_empty() && set.only().is_none());
    set.insert(255);
    assert_eq!(set.only(), Some(255));
    set.insert_range(62, 65);
    assert_eq!(set.iter().collect::<Vec<u8>>(), [62, 63, 64, 65, 255]);
    assert_eq!((set.len(), set.only()), (5, None));
    assert!(set.contains(64) && !set.contains(0));
}

/// The places where a text of the expression that begins at `from` can end.
fn ends(grammar: &Grammar, expr: &Expr, text: &str, from: usize) -> BTreeSet<usize> {
    match expr {
        Expr::Literal(literal) => text[from..]
            .starts_with(literal.as_str())
            .then_some(from + literal.len())
            .into_iter()
            .collect(),
        Expr::Class(class) => {
            let next = text[from..].chars().next();
            let listed =
                |c: &char| class.ranges().iter().any(|(first, last)| first <= c && c <= last);
            let next = next.filter(|c| listed(c) != class.is_negated());
            next.map(|c| from + c.len_utf8()).into_iter().collect()
        }
        Expr::Rule(name) => {
            let rule = grammar.rules().iter().find(|rule| rule.name == *name).unwrap();
            ends(grammar, &rule.expr, text, from)
        }
        Expr::Concat(parts) => parts.iter().fold(BTreeSet::from([from]), |starts, part| {
            starts.iter().flat_map(|start| ends(grammar, part, text, *start)).collect()
        }),
        Expr::Choice(parts) => {
            parts.iter().flat_map(|part| ends(grammar, part, text, from)).collect()
        }
        Expr::Repeat(inner, repeat) => {
            let mut found = BTreeSet::new();
            let mut starts = BTreeSet::from([from]);
            let mut times = 0;
            while !starts.is_empty() && repeat.max().is_none_or(|max| times <= max) {
                if times >= repeat.min() {
                    found.extend(&starts);
                }
                starts =
                    starts.iter().flat_map(|start| ends(grammar, inner, text, *start)).collect();
                times += 1;
            }
            found
        }
    }
}

/// Expressions over a, b, é and 🙂 that may use the rules named.
fn expr(rules: &'static [&'static str]) -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        "[abé]{1,2}".prop_map(Expr::Literal),
        Just(Expr::Class(Class::of(&[('a', 'é')]))),
        Just(Expr::Class(Class::but(&[('b', 'b'), ('a', 'a')]))),
        prop::sample::select(if rules.is_empty() { &["none"] } else { rules }).prop_map(|name| {
            if name == "none" {
                Expr::literal("b")
            } else {
                Expr::Rule(RuleName::new(name).unwrap())
            }
        }),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let repeat = (0_u32..3, 0_u32..3, any::<bool>());
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Concat),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Choice),
            (inner, repeat).prop_map(|(inner, (min, more, bounded))| {
                let repeat = Repeat::new(min, bounded.then_some(min + more)).unwrap();
                Expr::Repeat(Box::new(inner), repeat)
            }),
        ]
    })
}

/// All texts over the four characters up to this length.
fn texts(n_chars: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..n_chars {
        let longer = |text: &String| ["a", "b", "é", "🙂"].map(|c| format!("{text}{c}"));
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(3),
        max_global_rejects: 10_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_grammars_mean_what_they_say(root in expr(&["x", "y"]), x in expr(&["y"]), y in expr(&[])) {
        let rule = |name: &str, expr| Rule::new(RuleName::new(name).unwrap(), expr);
        // Some text stands between arguments, as in every call.
        let around = Expr::literal("a").then(Expr::Rule(RuleName::new("value").unwrap()));
        let value = Rule { argument: true, ..rule("value", x) };
        let rules = vec![rule("root", root), rule("x", around.then(Expr::literal("b"))), value, rule("y", y)];
        let grammar = Grammar::new(rules).unwrap();
        let recognizer = Recognizer::new(&grammar);
        prop_assume!(recognizer.is_ok());
        let start = recognizer.unwrap();
        let root = &grammar.rules()[0].expr;
        for text in texts(5) {
            let mut at = start.clone();
            let taken = at.push_all(text.as_bytes()).is_ok();
            let mut slow = start.clone();
            prop_assert_eq!(text.bytes().all(|byte| slow.push(byte)), taken);
            let whole = ends(&grammar, root, &text, 0).contains(&text.len());
            prop_assert_eq!(taken && at.can_end(), whole, "{}", text);
            prop_assert_eq!(start.accepts(text.as_bytes()), taken);
            if taken {
                prop_assert_eq!(at.is_over(), whole && at.allowed().is_empty());
                let forced = at.forced();
                prop_assert!(at.accepts(&forced));
                // There is always a way to the end: inside an argument to its end at least.
                prop_assert!(at.can_end() || !at.allowed().is_empty());
                let closing = at.close_argument();
                prop_assert!(start.accepts(&[text.as_bytes(), &closing].concat()));
                prop_assert!(!at.in_argument());
            }
        }
    }
}

#[test]
fn recognizers_go_to_other_threads() {
    fn check<T: Send + Sync + Clone>(_: &T) {}
    check(&recognizer(TWO));
}
