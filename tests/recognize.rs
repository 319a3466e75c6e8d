//! The recognizer on calls: what it takes, what it forces, how it closes a value; and on random
//! grammars, against a matcher that is too simple to be wrong.

use std::collections::BTreeSet;

use call_me_maybe::definitions;
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::mask::TokenTrie;
use call_me_maybe::grammar::recognize::{ByteSet, Recognizer};
use call_me_maybe::grammar::{Class, Expr, Grammar, Repeat, Rule, RuleName};
use proptest::prelude::*;

fn recognizer(definitions: &str) -> Recognizer {
    let functions = definitions::parse(definitions.as_bytes()).unwrap();
    let grammar = calls(&functions, Options::DECLARED).unwrap().grammar;
    Recognizer::new(&grammar).unwrap()
}

const TWO: &str = r#"[
    {"name": "fn_sum", "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}},
    {"name": "fn_say", "parameters": {"text": {"type": "string"}}},
    {"name": "fn_bad", "parameters": {"text": {"type": "string", "disallow": "^a$"}}}
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

fn name(text: &str) -> RuleName {
    RuleName::new(text).unwrap()
}

fn call(rule: &str) -> Expr {
    Expr::Rule(name(rule))
}

fn times(expr: Expr, min: u32, max: impl Into<Option<u32>>) -> Expr {
    Expr::Repeat(Box::new(expr), Repeat::new(min, max.into()).unwrap())
}

fn class(first: char, last: char) -> Expr {
    Expr::Class(Class::of(&[(first, last)]))
}

/// The recognizer of some rules, the first of them `root`.
fn of_rules(rules: Vec<(&str, Expr)>) -> Recognizer {
    let rules = rules.into_iter().map(|(rule, expr)| Rule::new(name(rule), expr)).collect();
    Recognizer::new(&Grammar::new(rules).unwrap()).unwrap()
}

#[track_caller]
fn check_texts(start: &Recognizer, texts: &[(String, bool)]) {
    for (text, expected) in texts {
        let mut at = start.clone();
        let whole = at.push_all(text.as_bytes()).is_ok() && at.can_end();
        assert_eq!(whole, *expected, "{}", text.chars().take(60).collect::<String>());
    }
}

#[test]
fn a_rule_with_exponentially_many_subsets_is_compiled() {
    let rule =
        class('a', 'z').any_times().then(Expr::literal("a")).then(times(class('a', 'z'), 25, 25));
    let start = of_rules(vec![("root", rule)]);
    let (a, b) = ("a".repeat(26), "b".repeat(25));
    check_texts(
        &start,
        &[
            (a.clone(), true),
            (format!("bba{b}"), true),
            (format!("bb{b}"), false),
            (format!("{}a{b}", "ab".repeat(300)), true),
            (format!("{}b{b}", "bb".repeat(300)), false),
        ],
    );
}

#[test]
fn nested_counts_are_not_multiplied_out() {
    let inner = times(times(times(Expr::literal("a"), 2000, 2000), 2000, 2000), 1000, 1000);
    let mut text = of_rules(vec![("root", inner.or(Expr::literal("b")))]);
    assert_eq!(text.push_all("a".repeat(10_000).as_bytes()), Ok(()));
    assert!(!text.can_end() && text.forced().starts_with(b"aaaa"));
    let many = times(times(class('a', 'b').then(Expr::literal("c").optional()), 0, 40), 0, 40);
    let start = of_rules(vec![("root", many)]);
    check_texts(
        &start,
        &[("acb".repeat(800), true), ("ab".repeat(800), true), ("ab".repeat(801), false)],
    );
}

#[test]
fn right_recursion_leaves_no_stack() {
    let rule = Expr::literal("a").then(call("s")).or(Expr::literal("b").then(call("s").optional()));
    let mut text = of_rules(vec![("root", call("s")), ("s", rule)]);
    let before = text.clone();
    assert_eq!(text.push_all(&b"a".repeat(1_000_000)), Ok(()));
    assert_eq!(text.place(), before.place());
    assert!(text.open_rules().is_empty() && text.push(b'b') && text.can_end());
}

#[test]
fn long_chains_of_rules_need_no_deep_stack() {
    // Each rule begins with the next one, which is used twice and so is called.
    let n_rules = 3000;
    let names: Vec<String> = (0..n_rules).map(|index| format!("r{index}")).collect();
    let mut rules = vec![("root", call("r0").then(class('x', 'y').any_times()))];
    for (rule, next) in names.iter().zip(&names[1..]) {
        let twice =
            call(next).then(class('a', 'b').any_times()).or(Expr::literal("-").then(call(next)));
        rules.push((rule, twice));
    }
    rules.push((&names[n_rules - 1], Expr::literal("c").then(class('d', 'e').any_times())));
    let mut text = of_rules(rules);
    assert_eq!(text.push_all(b"-cabababab"), Ok(()));
    assert!(text.can_end() && text.push(b'x') && !text.push(b'a'));
}

#[test]
fn ambiguity_grows_with_the_text_at_most() {
    // Three ways to read every level, and no byte tells which before the end.
    let level = |end: &str| Expr::literal("a").then(call("root")).then(Expr::literal(end));
    let root =
        level("b").or(level("c")).or(level("b").then(Expr::literal("b"))).or(Expr::literal("x"));
    let mut text = of_rules(vec![("root", root)]);
    assert_eq!(text.push_all("a".repeat(2000).as_bytes()), Ok(()));
    assert!(text.push(b'x'));
    let copy = text.clone();
    assert_eq!(text.push_all("b".repeat(2000).as_bytes()), Ok(()));
    assert!(text.can_end() && text.push(b'b') && text.can_end());
    assert_eq!(text.push_all("b".repeat(2000).as_bytes()), Err(1999));
    text = copy;
    assert_eq!(text.push_all("bcb".repeat(666).as_bytes()), Ok(()));
    assert!(!text.can_end());
    // Catalan many ways.
    let pair = Expr::literal("x")
        .or(Expr::literal("(").then(call("e")).then(call("e")).then(Expr::literal(")")));
    let e = pair.then(call("e").optional());
    let mut text = of_rules(vec![("root", call("e")), ("e", e)]);
    assert_eq!(text.push_all(format!("({})", "x".repeat(300)).as_bytes()), Ok(()));
    assert!(text.can_end());
}

/// The mask of the tokens, token by token.
#[track_caller]
fn check_mask(text: &Recognizer, tokens: &[Vec<u8>], trie: &TokenTrie) {
    let ids = (0u32..).zip(tokens);
    let taken = ids.filter(|(_, bytes)| !bytes.is_empty() && text.accepts(bytes));
    let expected: Vec<u32> = taken.map(|(id, _)| id).collect();
    assert_eq!(text.mask(trie).iter().collect::<Vec<u32>>(), expected);
    // And from what is kept.
    assert_eq!(text.mask(trie).iter().collect::<Vec<u32>>(), expected);
    assert_eq!(text.mask(trie).len(), expected.len());
}

#[test]
fn masks_hold_what_is_accepted_and_nothing_else() {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let texts = [
        "",
        "fn_",
        "fn_s",
        "sum",
        "say",
        "ab",
        "ab\"",
        "\"}",
        "\"}}",
        "\"}}}",
        "\", \"b",
        "12",
        "1, ",
        "-",
        "1.5e",
        ", \"b\": ",
        "\\u00",
        "\\uD83D\\uDE00",
        "\\\"",
        "é",
        "狐",
        "a very long token that is safe but for its length",
        "x\ny",
        "{\"name\": ",
        "say\", \"arguments\": {\"text\": \"a",
        "ab",
        "0}",
        "}}",
    ];
    tokens.extend(texts.iter().map(|text| text.as_bytes().to_vec()));
    tokens.extend([b"\xc3".to_vec(), b"\xa9\"".to_vec(), b"\xf0\x9f".to_vec(), b"a\xff".to_vec()]);
    let trie = TokenTrie::new((0..).zip(tokens.iter().map(Vec::as_slice)));
    let start = recognizer(TWO);
    for text in [
        r#"{"name": "fn_say", "arguments": {"text": "a\uD83D\uDE00b é"}}"#,
        r#"{"name": "fn_sum", "arguments": {"a": -12.5e+3, "b": 0}}"#,
        r#"{"name": "fn_bad"}"#,
    ] {
        let mut at = start.clone();
        check_mask(&at, &tokens, &trie);
        for byte in text.bytes() {
            assert!(at.push(byte));
            check_mask(&at, &tokens, &trie);
        }
        assert!(at.is_over() && at.mask(&trie).is_empty());
    }
    // Another vocabulary is not mixed up with the first.
    let other = TokenTrie::new([(3, &b"{\""[..]), (900, b"{"), (7, b"}"), (8, b"")]);
    assert_eq!(start.mask(&other).iter().collect::<Vec<u32>>(), [3, 900]);
    assert!(start.mask(&other).contains(900) && !start.mask(&other).contains(100_000));
    check_mask(&start, &tokens, &trie);
    // Safe characters are counted where a text may have only some.
    let some = of_rules(vec![("root", times(Expr::Class(Class::but(&[('"', '"')])), 0, 3))]);
    check_mask(&some, &tokens, &trie);
}

#[track_caller]
fn check_expected(so_far: &str, expected: &[&str]) {
    let mut text = recognizer(TWO);
    assert_eq!(text.push_all(so_far.as_bytes()), Ok(()), "{so_far}");
    let words: Vec<String> = text.expected().iter().map(ToString::to_string).collect();
    assert_eq!(words, expected, "after {so_far}");
}

#[test]
fn what_is_expected_is_said_in_words() {
    check_expected("", &["`{\"name\": \"fn_`"]);
    check_expected(r#"{"name": "fn_"#, &["`bad\"}`", "`s`"]);
    check_expected(
        r#"{"name": "fn_s"#,
        &[r#"`ay", "arguments": {"text": "`"#, r#"`um", "arguments": {"a": `"#],
    );
    check_expected(r#"{"name": "fn_sum", "arguments": {"a": "#, &["`-`", "a digit"]);
    check_expected(r#"{"name": "fn_sum", "arguments": {"a": -"#, &["a digit"]);
    check_expected(
        r#"{"name": "fn_sum", "arguments": {"a": 0"#,
        &[r#"`, "b": `"#, "`.`", "`E`", "`e`"],
    );
    check_expected(r#"{"name": "fn_say", "arguments": {"text": "a"#, &["`\"}}`", "a character"]);
    check_expected(r#"{"name": "fn_bad"}"#, &["the end"]);
}

#[test]
fn the_open_argument_has_a_name() {
    let mut text = recognizer(TWO);
    assert_eq!(text.push_all(br#"{"name": "fn_sum", "arguments": {"a": 1, "b": 2"#), Ok(()));
    let names: Vec<&str> = text.open_rules().iter().map(|rule| rule.as_str()).collect();
    assert!(names.contains(&"fn-sum-b"), "{names:?}");
}

#[test]
fn equal_places_are_equal_keys() {
    let start = recognizer(TWO);
    let after = |text: &str| {
        let mut at = start.clone();
        assert_eq!(at.push_all(text.as_bytes()), Ok(()), "{text}");
        at.place()
    };
    let say = |text: &str| after(&format!(r#"{{"name": "fn_say", "arguments": {{"text": "{text}"#));
    let set = std::collections::HashSet::from([say("a"), say("b"), say("é\\n"), say("")]);
    assert_eq!(set.len(), 1);
    assert!(!set.contains(&say("\\")) && !set.contains(&say("\"")));
    assert!(!set.contains(&after("")));
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
