//! Grammars written by hand: what `check` finds, and the text that `print` writes.

use call_me_maybe::grammar::check::check as check_grammar;
use call_me_maybe::grammar::lower::{Options, Unsupported, calls};
use call_me_maybe::grammar::print::gbnf;
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::grammar::{Class, Expr, Grammar, GrammarError, Repeat, Rule, RuleName};

fn name(text: &str) -> RuleName {
    RuleName::new(text).unwrap()
}

fn rule(text: &str) -> Expr {
    Expr::Rule(name(text))
}

fn lit(text: &str) -> Expr {
    Expr::literal(text)
}

fn times(expr: Expr, min: u32, max: u32) -> Expr {
    Expr::Repeat(Box::new(expr), Repeat::new(min, Some(max)).unwrap())
}

fn grammar(rules: Vec<(&str, Expr)>) -> Grammar {
    Grammar::new(rules.into_iter().map(|(text, expr)| Rule::new(name(text), expr)).collect())
        .unwrap()
}

/// What `check` finds; `Recognizer::new` finds the same.
#[track_caller]
fn check(rules: Vec<(&str, Expr)>, expected: &str) {
    let grammar = grammar(rules);
    let found =
        check_grammar(&grammar).map_or_else(|error| error.to_string(), |()| "sound".to_owned());
    assert_eq!(found, expected);
    assert_eq!(Recognizer::new(&grammar).is_ok(), expected == "sound");
}

#[test]
fn unsound_grammars_are_found() {
    let a = || lit("a");
    check(vec![("root", rule("x"))], "the rule x, used in root, is not defined");
    check(vec![("root", a()), ("x", a())], "the rule x cannot be reached from root");
    check(
        vec![("root", a()), ("x", rule("y")), ("y", rule("x"))],
        "the rule x cannot be reached from root",
    );
    check(vec![("root", rule("root").then(a()).or(a()))], "the rule root is left-recursive");
    check(
        vec![("root", a().optional().then(rule("x"))), ("x", rule("root").or(a()))],
        "the rule root is left-recursive",
    );
    check(
        vec![("root", rule("x")), ("x", a().then(rule("x")))],
        "the rule root can never be completed",
    );
    check(
        vec![("root", a().optional().any_times())],
        "the rule root repeats without bound what may be empty",
    );
    check(vec![("root", lit(""))], "the rule root has an empty part");
    check(vec![("root", Expr::Choice(Vec::new()))], "the rule root has an empty part");
    check(vec![("root", Expr::Class(Class::of(&[('b', 'a')])))], "the rule root has an empty part");
    check(
        vec![("root", times(times(a(), 0, 50), 0, 50))],
        "the rule root repeats 51 rules 50 times; llama.cpp's limit is 2000",
    );
    check(vec![("root", times(rule("x"), 0, 2000)), ("x", a())], "sound");
    check(
        vec![("root", rule("x")), ("x", lit("(").then(rule("x").optional()).then(lit(")")))],
        "sound",
    );
    check(vec![("root", a().then(rule("root")).or(lit("b")))], "sound");
}

#[test]
fn bounds_that_llama_cpp_would_widen_are_refused() {
    assert_eq!(Repeat::new(0, Some(2001)), Err(GrammarError::RepeatTooLong { max: 2001 }));
    assert_eq!(Repeat::new(2001, None), Err(GrammarError::RepeatTooLong { max: 2001 }));
    assert_eq!(Repeat::new(3, Some(2)), Err(GrammarError::RepeatReversed { min: 3, max: 2 }));
    assert_eq!(
        Repeat::new(0, Some(2001)).unwrap_err().to_string(),
        "2001 repetitions exceed the limit of 2000"
    );
}

#[test]
fn names_and_roots_are_checked() {
    for bad in ["", "a_b", "a b", "é", "a.b"] {
        assert_eq!(RuleName::new(bad), None, "{bad}");
    }
    assert_eq!(Grammar::new(Vec::new()), Err(GrammarError::NoRoot));
    assert_eq!(Grammar::new(vec![Rule::new(name("x"), lit("a"))]), Err(GrammarError::NoRoot));
    let twice = vec![Rule::new(name("root"), lit("a")), Rule::new(name("root"), lit("a"))];
    assert_eq!(Grammar::new(twice), Err(GrammarError::DuplicateRule { name: name("root") }));
}

/// The text after `root ::= `.
#[track_caller]
fn prints(expr: Expr, expected: &str) {
    assert_eq!(gbnf(&grammar(vec![("root", expr)])), format!("root ::= {expected}\n"));
}

#[test]
fn text_is_grouped_and_escaped() {
    let (a, bc) = (|| lit("a"), || lit("bc"));
    prints(a().or(bc()).then(lit("d")), r#"("a" | "bc") "d""#);
    prints(a().then(bc()), r#""abc""#);
    prints(Expr::Concat(vec![a(), Expr::Concat(vec![bc(), a()])]), r#""a" ("bc" "a")"#);
    prints(a().or(bc()).any_times(), r#"("a" | "bc")*"#);
    prints(bc().any_times(), r#""bc"*"#);
    prints(a().then(rule("x")).at_least_once(), r#"("a" x)+"#);
    prints(times(a(), 2, 2), r#""a"{2}"#);
    prints(times(a(), 0, 3), r#""a"{0,3}"#);
    prints(Expr::Repeat(Box::new(a()), Repeat::new(2, None).unwrap()), r#""a"{2,}"#);
    prints(a().optional().any_times(), r#"("a"?)*"#);
    prints(
        lit("\"\\\n\r\t\u{0}\u{7f}é\u{202e}\u{e0001}'[]^-"),
        r#""\"\\\n\r\t\x00\x7Fé\u202E\U000E0001'[]^-""#,
    );
    let class = Class::but(&[
        ('^', '^'),
        ('[', ']'),
        ('-', '-'),
        ('a', 'c'),
        ('\u{0}', '\u{1f}'),
        ('"', '"'),
    ]);
    prints(Expr::Class(class), r#"[^\x5E\[-\]\-a-c\x00-\x1F"]"#);
}

#[test]
fn comments_cannot_leave_their_line() {
    let mut root = Rule::new(name("root"), lit("a"));
    root.comment = vec!["x\nroot ::= \"b\"\r\u{0}\u{1b}[2J\u{2028}y".to_owned(), String::new()];
    let text = gbnf(&Grammar::new(vec![root]).unwrap());
    assert_eq!(text, "# x root ::= \"b\"   [2J y\n# \nroot ::= \"a\"\n");
}

#[test]
fn a_function_left_out_is_a_commented_name() {
    let file = br#"[{"name": "fn_good", "parameters": {}}, {"name": "fn_bad", "parameters": {"n": {"disallow": 1}}}]"#;
    let functions = call_me_maybe::definitions::parse(file).unwrap();
    let lowered =
        calls(&functions, Options { unsupported: Unsupported::LeaveOut, ..Options::LEGAL })
            .unwrap();
    assert_eq!(
        gbnf(&lowered.grammar),
        "# fn_bad: left out: /1/parameters/n/disallow: \"disallow\" is not supported\n\
         root ::= \"{\\\"name\\\": \" call \"}\"\n\
         call ::= fn-good\n\
         # fn_good\n\
         fn-good ::= \"\\\"fn_good\\\", \\\"arguments\\\": {}\"\n"
    );
    assert_eq!(lowered.refused.len(), 1);
    assert_eq!(lowered.refused[0].1.pointer, "/properties/n/disallow");
    let error =
        calls(&functions[1..], Options { unsupported: Unsupported::LeaveOut, ..Options::LEGAL })
            .unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no function to choose from: fn_bad: /properties/n/disallow: \"disallow\" is not supported"
    );
    assert_eq!(calls(&[], Options::LEGAL), Err(GrammarError::NoFunctions { refused: Vec::new() }));
}
