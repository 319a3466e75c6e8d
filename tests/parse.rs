//! GBNF text read as a grammar: what is taken, what it comes to, and what is refused where.

use std::fs;
use std::path::Path;

use call_me_maybe::definitions;
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::parse::{NESTING_LIMIT, Token, gbnf};
use call_me_maybe::grammar::print;
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::grammar::{Class, Expr, Grammar, Rule};
use serde_json::Value;

/// A model's vocabulary of five tokens.
fn vocabulary(token: Token<'_>) -> Option<Vec<u8>> {
    match token {
        Token::Text("<think>") | Token::Id(7) => Some(b"<think>".to_vec()),
        Token::Id(8) => Some(vec![0xe2, 0x82]),
        Token::Id(9) => Some(Vec::new()),
        _ => None,
    }
}

/// What a text is read as, printed, or why it is not.
#[track_caller]
fn check(text: &str, expected: &str) {
    let read = match gbnf(text, None) {
        Ok(grammar) => print::gbnf(&grammar),
        Err(error) => error.to_string(),
    };
    assert_eq!(read, expected, "{text}");
}

#[track_caller]
fn check_root(production: &str, expected: &str) {
    check(&format!("root ::= {production}"), &format!("root ::= {expected}\n"));
}

#[track_caller]
fn accepts(text: &str, pass: &[&str], fail: &[&str]) {
    let grammar = gbnf(text, None).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let start = Recognizer::new(&grammar).unwrap();
    let is_whole = |line: &str| {
        let mut recognizer = start.clone();
        recognizer.push_all(line.as_bytes()).is_ok() && recognizer.can_end()
    };
    for line in pass {
        assert!(is_whole(line), "{text}\nmust accept {line:?}");
    }
    for line in fail {
        assert!(!is_whole(line), "{text}\nmust refuse {line:?}");
    }
}

#[test]
fn every_construct_is_read() {
    check_root(r#""a" "b" | "c""#, r#""a" "b" | "c""#);
    check_root(r#""\x41\u00e9\U0001F600\n\r\t\\\"\[\]\-""#, r#""Aé😀\n\r\t\\\"[]-""#);
    check_root("\"a\nb\"", r#""a\nb""#);
    check_root("[a-cx]", "[a-cx]");
    check_root(r"[^\]\\\n-]", r"[^\]\\\n\-]");
    check_root("[-a]", r"[\-a]");
    check_root("[a^]", r"[a\x5E]");
    check_root(r"[\u0000-\U0010FFFF]", ".");
    check_root(r#"[^"\uD800-\uDFFF]"#, r#"[^"]"#);
    check_root(r"[^\uD800-\uDFFF]", ".");
    check_root(r"[a-\uFFFFFFFF]", "[a-\u{ffff}FFFF]");
    check_root(r"[a-\UFFFFFFFF]", "[a-\u{10ffff}]");
    check_root("...", ". . .");
    check_root(r#""a"?"b"*"c"+"#, r#""a"? "b"* "c"+"#);
    check_root(r#""a"{2} "b"{2,} "c"{0,3} "d" { 1 , 2 }"#, r#""a"{2} "b"{2,} "c"{0,3} "d"{1,2}"#);
    check_root(r#""a"{0} "b"{0,1} "c"{0,} "d"{1,}"#, r#""a"{0} "b"? "c"* "d"+"#);
    check_root(r#""a"+?"#, r#"("a"+)?"#);
    check_root(r#"(("a" "b"))* (("c"))"#, r#"("a" "b")* "c""#);
    check_root(r#""a" | ("b" | "c")"#, r#""a" | ("b" | "c")"#);
}

#[test]
fn blanks_comments_and_lines_stand_where_llama_cpp_lets_them() {
    check("\n\t root ::= \n\n \"a\" # why\r\n\r x ::= \"x1\"\n", "root ::= \"a\"\n");
    check("root ::= \"a\" |\n  # one more\n  \"b\"", "root ::= \"a\" | \"b\"\n");
    check(
        "root ::= ( # open\n\"a\"\r\n\"b\"\n+\n|\n\n\"c\"\n)\n",
        "root ::= \"a\" \"b\"+ | \"c\"\n",
    );
    check("root::=a-1\ra-1::=\"x\"", "root ::= a-1\na-1 ::= \"x\"\n");
    check(
        "# of root\n#\n#  deep\nroot ::= \"a\"\n# last",
        "# of root\n# \n#  deep\nroot ::= \"a\"\n",
    );
    check("", "line 1, column 1: the first rule is not \"root\"");
}

#[test]
fn nothing_is_a_production() {
    check_root(r#""a" | "#, r#""a" | """#);
    check_root(r#"("a" | | "b")"#, r#""a" | "" | "b""#);
    check_root("", "\"\"");
    check_root("()", "\"\"");
    check_root(r#""" "a" """#, "\"a\"");
    check_root("()*", "\"\"");
    accepts("root ::= \"a\" (\"b\" | ) \"c\"", &["ac", "abc"], &["a", "abbc"]);
    accepts("root ::= x \"!\" x\nx ::= \"a\" | \"\"", &["!", "a!", "!a", "a!a"], &["", "aa!"]);
    accepts("root ::= \"\"", &[""], &["a"]);
    check(
        "root ::= \"a\" |\nx ::= \"b\"",
        "line 2, column 3: expected the end of the rule (a rule goes on in the next line after `|`, \
         so write an empty last production as \"\"), found `:`",
    );
}

#[test]
fn root_comes_first_and_what_it_does_not_reach_is_dropped() {
    check(
        "b ::= \"b\"\n# not used\nx ::= y\ny ::= x \"y\" | \"z\"\n# the start\nroot ::= a b\na ::= \"a\"",
        "# the start\nroot ::= a b\nb ::= \"b\"\na ::= \"a\"\n",
    );
}

#[test]
fn endless_repetitions_of_what_may_be_empty_keep_their_language() {
    check_root("([x]*)*", "[x]*");
    check_root(r#"("a"? "b"?)+"#, r#"("a" "b"? | "b")*"#);
    check_root(r#"("" | "a"){2,}"#, "\"a\"*");
    check(
        "root ::= ws* \"a\"\nws ::= \" \"* nil*\nnil ::= \"\"",
        "root ::= ws-some* \"a\"\nws-some ::= \" \"+\n",
    );
    accepts("root ::= (x y)* \"!\"\nx ::= \"a\"?\ny ::= x | \"b\"{0,2}", &["!", "aabba!"], &["c!"]);
    accepts("root ::= ((\"a\"?){3})*", &["", "aaaaaaa"], &["b"]);
}

#[test]
fn problems_are_told_with_their_place() {
    for (text, expected) in [
        ("root ::= \"a", "line 1, column 10: `\"` is not closed"),
        ("root ::= [a", "line 1, column 10: `[` is not closed"),
        ("root ::= [a-", "line 1, column 10: `[` is not closed"),
        ("root ::= (\n\"a\"", "line 1, column 10: `(` is not closed"),
        ("root ::= \"a\"{2", "line 1, column 13: `{` is not closed"),
        ("root ::= <a", "line 1, column 10: `<` is not closed"),
        (
            "root ::= ( \"a\" }",
            "line 1, column 16: expected `)` for the `(` of line 1, column 10, found `}`",
        ),
        (
            "root ::= \"é\" )",
            "line 1, column 14: expected a terminal, a name, `|` or the end of the rule, found `)`",
        ),
        ("root = \"a\"", "line 1, column 6: expected `::=`, found `=`"),
        ("root", "line 1, column 5: expected `::=`, found the end of the text"),
        ("root ::= \"a\"\n_ ::= \"b\"", "line 2, column 1: expected the name of a rule, found `_`"),
        (
            "root ::= a_b",
            "line 1, column 11: expected the end of the rule (names are of letters, digits and `-`), \
             found `_`",
        ),
        (
            r#"root ::= "\q""#,
            r#"line 1, column 11: unknown escape `\q`; known are \n \r \t \\ \" \[ \] \- \xHH \uHHHH and \UHHHHHHHH"#,
        ),
        (r#"root ::= "\x4""#, "line 1, column 14: expected 2 hexadecimal digits, found `\\\"`"),
        (
            r"root ::= [\u12",
            "line 1, column 15: expected 4 hexadecimal digits, found the end of the text",
        ),
        (
            r#"root ::= "\uD83D""#,
            "line 1, column 11: U+D83D is not a character: no UTF-8 text has it",
        ),
        (
            "root ::= []",
            "line 1, column 10: an empty class matches no character; write \"\" for nothing or . for any character",
        ),
        (
            "root ::= [z-a]",
            "line 1, column 11: the range ends before it begins; write the smaller character first, or - last",
        ),
        (
            "root ::= \"a\0\"",
            "line 1, column 12: a NUL character, at which llama.cpp stops reading; write \\x00",
        ),
        ("root ::= *", "line 1, column 10: nothing stands before this to repeat"),
        ("root ::= \"\"+", "line 1, column 12: nothing stands before this to repeat"),
        ("root ::= \"a\"{0}?", "line 1, column 16: nothing stands before this to repeat"),
        ("root ::= \"a\" | {2}", "line 1, column 16: nothing stands before this to repeat"),
        (
            "root ::= \"a\"{,5}",
            "line 1, column 14: expected a number (write {0,5}, not {,5}), found `,`",
        ),
        ("root ::= \"a\"{2;}", "line 1, column 15: expected `,` or `}`, found `;`"),
        ("root ::= \"a\"{2,x}", "line 1, column 16: expected a number or `}`, found `x`"),
        (
            "root ::= \"a\"{3,2}",
            "line 1, column 13: at least 3 and at most 2 repetitions contradict each other",
        ),
        (
            "root ::= \"a\"{0,2001}",
            "line 1, column 16: 2001 repetitions exceed llama.cpp's limit of 2000; split them over nested groups or rules",
        ),
        (
            "root ::= \"a\"{99999999999999999999}",
            "line 1, column 14: 99999999999999999999 repetitions exceed llama.cpp's limit of 2000; split them over nested groups or rules",
        ),
        (
            "root ::= (\"a\"? \"b\"?){700}",
            "line 1, column 21: 3 rules repeated 700 times exceed llama.cpp's limit of 2000; give what is repeated a rule of its own",
        ),
        (
            "root ::= ((\"a\"{100}){100}){100}",
            "line 1, column 27: the repetition comes to 1000000 characters, the limit is 200000; give what is repeated a rule of its own",
        ),
        ("root ::= a b\na ::= \"x\"", "line 1, column 12: the rule b is not defined"),
        ("root ::= \"a\"\nx ::= y", "line 2, column 7: the rule y is not defined"),
        (
            "root ::= \"a\"\n\nroot ::= \"b\"",
            "line 3, column 1: the rule root is defined in line 1 already; join them with |",
        ),
        ("root ::= x\nx ::= x \"a\" | \"b\"", "line 2, column 1: the rule x is left-recursive"),
        ("root ::= x\nx ::= \"a\" x", "line 1, column 1: the rule root can never be completed"),
        ("x ::= \"a\"", "line 1, column 1: the first rule is not \"root\""),
    ] {
        check(text, expected);
    }
}

#[test]
fn llama_cpp_counts_groups_by_the_rules_that_they_make() {
    // The names are known by then, so each group is one rule.
    check("a ::= \"a\"\nroot ::= a (a a a){2000}", "root ::= a (a a a){2000}\na ::= \"a\"\n");
    // Rules of their own are the way out that the errors name.
    accepts(
        "root ::= c{3}\nc ::= b{100}\nb ::= a{100}\na ::= \"a\"{20}",
        &[&"a".repeat(600_000)],
        &[&"a".repeat(599_999)],
    );
}

#[test]
fn nesting_has_a_limit_and_no_depth_overflows_the_stack() {
    let nested = |n: usize| format!("root ::= {}\"a\"{}", "(".repeat(n), ")".repeat(n));
    check(&nested(NESTING_LIMIT), "root ::= \"a\"\n");
    for text in [nested(NESTING_LIMIT + 1), nested(60_000), nested(60_000).replace(')', "")] {
        check(
            &text,
            "line 1, column 266: more than 256 groups and repetitions inside each other; \
             give an inner group a rule of its own",
        );
    }
    check(
        &format!("root ::= \"a\"{}", "?".repeat(60_000)),
        "line 1, column 269: more than 256 groups and repetitions inside each other; \
         give an inner group a rule of its own",
    );
    let deep = format!("root ::= {}\"a\"{}", "(\"b\" | ".repeat(128), ")?".repeat(128));
    accepts(&deep, &["", "a", "b"], &["aa"]);
}

#[test]
fn token_terminals_are_the_text_of_the_models_token() {
    let read = |production: &str| match gbnf(&format!("root ::= {production}"), Some(&vocabulary)) {
        Ok(grammar) => print::gbnf(&grammar),
        Err(error) => error.to_string(),
    };
    assert_eq!(read("<think>+ <[7]>"), "root ::= \"<think>\"+ \"<think>\"\n");
    assert_eq!(read("<[9]> \"a\""), "root ::= \"a\"\n");
    assert_eq!(read("<none>"), "line 1, column 10: `<none>` is not a token of the model");
    assert_eq!(
        read("<[99999999999]>"),
        "line 1, column 12: `<[99999999999]>` is not a token of the model"
    );
    assert_eq!(
        read("<[8]>"),
        "line 1, column 10: `<[8]>` is a token of incomplete UTF-8; write the whole text as a literal"
    );
    assert_eq!(read("<[x]>"), "line 1, column 12: expected a token's number, found `x`");
    assert_eq!(read("!a"), "line 1, column 11: expected `<`, found `a`");
    let negated = "line 1, column 10: `!<think>`, all tokens but one, is not supported; \
                   write the texts that may stand here";
    assert_eq!(read("!<think>*"), negated);
    check("root ::= !<think>*", negated);
    let no_model = "names a token of a model; give the model with --model";
    check("root ::= <think>", &format!("line 1, column 10: `<think>` {no_model}"));
    check("root ::= \"a\" <[7]>", &format!("line 1, column 14: `<[7]>` {no_model}"));
}

/// Rules as text can tell them: without comments and what is an argument's value, a choice of one production is
/// that production, and a class is its characters, not its ranges.
fn as_written(grammar: &Grammar) -> Vec<Rule> {
    fn plain(expr: &Expr) -> Expr {
        let all = |parts: &[Expr]| parts.iter().map(plain).collect();
        match expr {
            Expr::Choice(parts) if parts.len() == 1 => plain(&parts[0]),
            Expr::Choice(parts) => Expr::Choice(all(parts)),
            Expr::Concat(parts) => Expr::Concat(all(parts)),
            Expr::Repeat(inner, repeat) => Expr::Repeat(Box::new(plain(inner)), *repeat),
            Expr::Class(class) => {
                let mut ranges = class.ranges().to_vec();
                ranges.sort_unstable();
                let mut joined: Vec<(char, char)> = Vec::new();
                for (first, last) in ranges {
                    match joined.last_mut() {
                        Some((_, end)) if u32::from(*end) + 1 == u32::from(first) => *end = last,
                        _ => joined.push((first, last)),
                    }
                }
                let class = if class.is_negated() { Class::but } else { Class::of };
                Expr::Class(class(&joined))
            }
            other => other.clone(),
        }
    }
    let rule = |rule: &Rule| Rule::new(rule.name.clone(), plain(&rule.expr));
    grammar.rules().iter().map(rule).collect()
}

#[test]
fn golden_grammars_come_back_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut n_cases = 0;
    for case in fs::read_dir(folder).unwrap() {
        let case = case.unwrap().path();
        let Ok(text) = fs::read_to_string(case.join("grammar.gbnf")) else { continue };
        let read = gbnf(&text, None).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        assert_eq!(print::gbnf(&read), text, "{}", case.display());
        let functions = definitions::parse(&fs::read(case.join("definitions.json")).unwrap());
        let lowered = calls(&functions.unwrap(), Options::LEGAL).unwrap();
        assert_eq!(as_written(&read), as_written(&lowered.grammar), "{}", case.display());
        n_cases += 1;
    }
    assert!(n_cases > 10, "{n_cases}");
}

/// llama.cpp's own cases, where they are at hand.
fn shared(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/jsonschema/llama.cpp");
    folder.join(name)
}

#[test]
fn llama_cpps_own_cases_come_out_right() {
    let Ok(lines) = fs::read_to_string(shared("grammar_strings.jsonl")) else { return };
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let list = |key: &str| -> Vec<&str> {
            case[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
        };
        accepts(case["grammar"].as_str().unwrap(), &list("pass"), &list("fail"));
    }
}

#[test]
fn llama_cpps_own_grammars_are_read() {
    let Ok(folder) = fs::read_dir(shared("grammars")) else { return };
    let mut n_grammars = 0;
    for path in folder.map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "gbnf") {
            let text = fs::read_to_string(&path).unwrap();
            let read = gbnf(&text, None).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            Recognizer::new(&read).unwrap();
            // What is printed is read as the same.
            let again = gbnf(&print::gbnf(&read), None).unwrap();
            assert_eq!(print::gbnf(&again), print::gbnf(&read), "{}", path.display());
            n_grammars += 1;
        }
    }
    assert!(n_grammars >= 8, "{n_grammars}");
}
