//! Texts and grammars to spellings and refusals.

use call_me_maybe::check::{Document, DocumentError, MAX_DEPTH, Outcome, Ranks, exact, spell};
use call_me_maybe::definitions::{FunctionDef, FunctionName};
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::grammar::{Class, Expr, Grammar, Repeat, Rule, RuleName};
use serde_json::{Value, json};

fn recognizer(parameters: &Value) -> Recognizer {
    let name = FunctionName::new("f").unwrap();
    let functions = [FunctionDef::new(name, None, parameters)];
    Recognizer::new(&calls(&functions, Options::DECLARED).unwrap().grammar).unwrap()
}

/// A grammar of which the given expression is the root.
fn root(expr: Expr) -> Recognizer {
    let grammar = Grammar::new(vec![Rule::new(RuleName::root(), expr)]).unwrap();
    Recognizer::new(&grammar).unwrap()
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted(text) => text.clone(),
        Outcome::Refused(refusal) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (taken, rest) = (text(&refusal.taken), text(&refusal.rest));
            format!("{taken} >< {rest} | {} | {}", refusal.expected_words(), refusal.pointer)
        }
        Outcome::Undecided => "undecided".to_owned(),
    }
}

/// What becomes of the text by a recognizer.
#[track_caller]
fn spelled(start: &Recognizer, text: &str, expected: &str) {
    let outcome = spell(&Document::parse(text).unwrap(), start, &Ranks::default());
    assert_eq!(told(&outcome), expected);
}

/// What becomes of the arguments of `f`; `~` is the beginning of the call.
#[track_caller]
fn check(parameters: &Value, arguments: &str, expected: &str) {
    let document = Document::call("\"f\"", arguments, ["name", "arguments"]).unwrap();
    let outcome = spell(&document, &recognizer(parameters), &Ranks::of([parameters]));
    assert_eq!(told(&outcome).replacen(r#"{"name": "f", "arguments": "#, "~", 1), expected);
}

#[test]
fn members_come_in_the_order_of_the_definition() {
    let parameters = json!({"properties": {"b": {"type": "integer"}, "a": {"type": "string"}, "c": {}},
        "required": ["a"]});
    check(&parameters, r#"{"c":[ ],"a":"x","b":1}"#, r#"~{"b": 1, "a": "x", "c": []}}"#);
    check(&parameters, r#"{"a":"x"}"#, r#"~{"a": "x"}}"#);
    check(&parameters, r#"{"c":null,"b":1}"#, r#"~{"b": 1, " >< c" | `a": "` | /arguments"#);
    check(
        &parameters,
        r#"{"a":"x","b":1.5}"#,
        r#"~{"b": 1 >< .5 | `, "a": "` or a digit | /arguments/b"#,
    );
    check(&parameters, r#"{"a":"x","d":1}"#, r#"~{"a": "x", " >< d" | `c": ` | /arguments"#);
    check(&parameters, "{}", r#"~{ >< } | `"a": "` or `"b": ` | /arguments"#);
}

#[test]
fn a_member_that_stands_twice_comes_twice() {
    let parameters = json!({"properties": {"a": {"type": "integer"}}});
    check(&parameters, r#"{"a":1,"a":2}"#, r#"~{"a": 1 >< ,  | `}}` or a digit | /arguments"#);
    check(
        &json!({"additionalProperties": {"type": "integer"}}),
        r#"{"a":1,"a":2}"#,
        r#"~{"a": 1, "a": 2}}"#,
    );
}

#[test]
fn a_number_is_spelled_as_the_grammar_has_it() {
    let parameters = json!({"properties": {"i": {"type": "integer"}, "n": {"type": "number"},
        "e": {"enum": [1, 2.0, 1e3, 0.00005, "a/b"]}}});
    check(&parameters, r#"{"i":1.0}"#, r#"~{"i": 1}}"#);
    check(&parameters, r#"{"i":-0}"#, r#"~{"i": 0}}"#);
    check(&parameters, r#"{"i":12e2}"#, r#"~{"i": 1200}}"#);
    check(&parameters, r#"{"n":1E5}"#, r#"~{"n": 1E5}}"#);
    check(&parameters, r#"{"e":1.0}"#, r#"~{"e": 1}}"#);
    check(&parameters, r#"{"e":2}"#, r#"~{"e": 2.0}}"#);
    check(&parameters, r#"{"e":5e-5}"#, r#"~{"e": 0.00005}}"#);
    check(&parameters, r#"{"e":"a\/b"}"#, r#"~{"e": "a/b"}}"#);
}

#[test]
fn a_string_is_spelled_as_the_grammar_has_it() {
    let parameters = json!({"properties": {"s": {"type": "string"}}});
    check(&parameters, r#"{"s":"\u0061\/\u000a\ud83e\udd94"}"#, r#"~{"s": "a/\n🦔"}}"#);
    // A raw DEL is not taken.
    check(&parameters, "{\"s\":\"a\u{7f}\"}", r#"~{"s": "a\u007f"}}"#);
    check(&parameters, r#"{"\u0073":""}"#, r#"~{"s": ""}}"#);
    check(&parameters, r#"{"s":"\ud800"}"#, r#"~{"s": "\ud800 >< " | `\u` | /arguments/s"#);
    // Only as written is it in this grammar.
    spelled(&root(Expr::literal(r#""\u0061""#)), r#""\u0061""#, r#""\u0061""#);
}

#[test]
fn what_a_spelling_leads_to_later_decides() {
    // The first spelling that is taken is the wrong one.
    let grammar = root(Expr::literal("[1, 2]").or(Expr::literal("[1.0, 3]")));
    spelled(&grammar, "[1,3]", "[1.0, 3]");
    spelled(&grammar, "[1.0,2e0]", "[1, 2]");
    // So is the first order: "a" may come first, but then "b" must not be 1.
    let grammar =
        root(Expr::literal(r#"{"a": 1, "b": 2}"#).or(Expr::literal(r#"{"b": 1, "a": 1}"#)));
    spelled(&grammar, r#"{"a":1,"b":1}"#, r#"{"b": 1, "a": 1}"#);
    spelled(&grammar, r#"{"b":2,"a":1}"#, r#"{"a": 1, "b": 2}"#);
    // And what follows an object depends on its order.
    let one = Expr::literal(r#"[{"a": 1, "b": 1}, 1]"#);
    let other = Expr::literal(r#"[{"b": 1, "a": 1}, 2]"#);
    spelled(&root(one.or(other)), r#"[{"a":1,"b":1},2]"#, r#"[{"b": 1, "a": 1}, 2]"#);
}

/// `{"k": 0, "k": 0, …}`: so many members of any one-letter keys.
fn members(min: u32, max: u32) -> Expr {
    let member = Expr::literal("\"")
        .then(Expr::Class(Class::of(&[('a', 'z')])))
        .then(Expr::literal("\": 0"));
    let more = Repeat::new(min - 1, Some(max - 1)).unwrap();
    let more = Expr::Repeat(Box::new(Expr::literal(", ").then(member.clone())), more);
    Expr::literal("{").then(member).then(more).then(Expr::literal("}"))
}

#[test]
fn many_members_take_few_steps() {
    // With 2^24 subsets of the members, or 24! orders, this would be undecided.
    let object = |n: u8, last: &str| {
        let members: Vec<String> =
            (0..n).map(|i| format!(r#""{}":0"#, char::from(b'a' + i))).collect();
        format!("{{{}{last}}}", members.join(","))
    };
    let taken = object(24, "").replace("\":0", "\": 0").replace(',', ", ");
    spelled(&root(members(1, 24)), &object(24, ""), &taken);
    let text = |n| object(n, "").replace("\":0", "\": 0").replace(',', ", ").replace('}', "");
    spelled(&root(members(1, 23)), &object(24, ""), &format!("{} >< ,  | `}}` | ", text(23)));
    spelled(&root(members(25, 30)), &object(24, ""), &format!("{} >< }} | `, \"` | ", text(24)));
    // Declared keys, all optional: each may be left out.
    let keys: Vec<String> = (0..40).map(|i| format!("k{i}")).collect();
    let properties: serde_json::Map<String, Value> =
        keys.iter().map(|key| (key.clone(), json!({"type": "integer"}))).collect();
    let parameters = json!({"properties": properties});
    let arguments = |last: &str| {
        let members: Vec<String> =
            keys[..39].iter().rev().map(|key| format!(r#""{key}": 0"#)).collect();
        format!(r#"{{{}, "k39": {last}}}"#, members.join(", "))
    };
    let in_order = |last: &str| {
        let members: Vec<String> = keys[..39].iter().map(|key| format!(r#""{key}": 0"#)).collect();
        format!(r#"~{{{}, "k39": {last}"#, members.join(", "))
    };
    check(&parameters, &arguments("0"), &in_order("0}}"));
    check(
        &parameters,
        &arguments("true"),
        &in_order(" >< true | `-`, `0}}` or a digit from 1 to 9 | /arguments/k39"),
    );
}

#[test]
fn what_cannot_be_decided_is_not_refused() {
    // After each member any other may come, each leads elsewhere, and only "a" may be both the
    // first and the last: neither cut helps.
    let name = |key: char| RuleName::new(format!("after-{key}")).unwrap();
    let keys = || 'a'..='z';
    let next = |comma: &str| {
        let member =
            |key| Expr::literal(format!("{comma}\"{key}\": 0")).then(Expr::Rule(name(key)));
        keys().map(member).reduce(Expr::or).unwrap()
    };
    let mut rules =
        vec![Rule::new(RuleName::root(), Expr::literal("{\"a\": 0").then(Expr::Rule(name('a'))))];
    for key in keys() {
        let mark = Expr::literal(format!(", \"{key}{key}\": 0}}"));
        let end = if key == 'a' { Expr::literal("}").or(mark) } else { mark };
        rules.push(Rule::new(name(key), next(", ").or(end)));
    }
    let start = Recognizer::new(&Grammar::new(rules).unwrap()).unwrap();
    let object = |n: usize| {
        let members: Vec<String> = keys().take(n).map(|key| format!("\"{key}\": 0")).collect();
        format!("{{{}}}", members.join(", "))
    };
    spelled(&start, &object(1), &object(1));
    spelled(&start, &object(26), "undecided");
}

#[test]
fn exact_bytes_are_taken_as_they_are() {
    let start =
        recognizer(&json!({"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}));
    assert_eq!(exact(&start, br#"{"name": "f", "arguments": {"n": 1}}"#), Ok(()));
    let refused = |text: &str| told(&Outcome::Refused(exact(&start, text.as_bytes()).unwrap_err()));
    assert_eq!(
        refused(r#"{"name": "f", "arguments": {"n": 1.0}}"#),
        r#"{"name": "f", "arguments": {"n": 1 >< .0}} | `, "s": "`, `}}` or a digit | /arguments/n"#
    );
    assert_eq!(refused(r#"{"name":"f"}"#), r#"{"name": >< "f"} | ` "f", "arguments": {` | /name"#);
    assert_eq!(refused(""), r#" ><  | `{"name": "f", "arguments": {` | "#);
    assert_eq!(
        refused("{\"name\": \"f\", \"arguments\": {}}\n"),
        "{\"name\": \"f\", \"arguments\": {}} >< \n | the end | "
    );
}

#[test]
fn deep_values_are_an_error_and_no_overflow() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(Document::parse(&deep(MAX_DEPTH)).is_ok());
    for n in [MAX_DEPTH + 1, 1_000_000] {
        assert!(matches!(Document::parse(&deep(n)), Err(DocumentError::TooDeep)));
    }
    assert!(matches!(Document::parse("[1,]"), Err(DocumentError::Syntax(_))));
}
