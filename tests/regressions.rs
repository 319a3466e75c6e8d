//! A test for each bug that was found after its code was thought right, named for it.

use call_me_maybe::definitions::{FunctionDef, FunctionName};
use call_me_maybe::grammar::check::check;
use call_me_maybe::grammar::lower::{Options, calls};
use call_me_maybe::grammar::recognize::Recognizer;
use call_me_maybe::grammar::{Class, Expr, Grammar, Rule, RuleName, parse, print};
use call_me_maybe::validate::Validator;

/// The grammar of the schema and the validator take and refuse the same values.
#[track_caller]
fn check_schema(schema: &str, taken: &[&str], refused: &[&str]) {
    check_schema_with(Options::LEGAL, schema, taken, refused);
}

#[track_caller]
fn check_schema_with(options: Options, schema: &str, taken: &[&str], refused: &[&str]) {
    let name = FunctionName::new("f").unwrap();
    let functions = [FunctionDef::new(name, None, &serde_json::from_str(schema).unwrap())];
    let start = Recognizer::new(&calls(&functions, options).unwrap().grammar).unwrap();
    let validator = Validator::new(&functions, options);
    for (value, expected) in
        taken.iter().map(|value| (value, true)).chain(refused.iter().map(|value| (value, false)))
    {
        let call = format!(r#"{{"name": "f", "arguments": {value}}}"#);
        let mut at = start.clone();
        let is_taken = at.push_all(call.as_bytes()).is_ok() && at.can_end();
        assert_eq!(is_taken, expected, "{schema}: {value}");
        assert_eq!(validator.validate(&call).is_ok(), expected, "{schema}: {value}: validated");
    }
}

/// A GBNF text is read as rules of at most so many bytes, which take and refuse these texts.
#[track_caller]
fn check_gbnf(text: &str, n_bytes: usize, taken: &[&str], refused: &[&str]) {
    let grammar = parse::gbnf(text, None).unwrap();
    let printed = print::gbnf(&grammar);
    assert!(printed.len() <= n_bytes, "{} bytes", printed.len());
    assert_eq!(parse::gbnf(&printed, None).unwrap(), grammar);
    let start = Recognizer::new(&grammar).unwrap();
    for (text, expected) in
        taken.iter().map(|text| (text, true)).chain(refused.iter().map(|text| (text, false)))
    {
        let mut at = start.clone();
        assert_eq!(at.push_all(text.as_bytes()).is_ok() && at.can_end(), expected, "{text}");
    }
}

/// Each level was written out twice: 24 levels, 300 bytes, took 4 GB.
#[test]
fn nested_repetitions_of_what_may_be_empty_double_at_each_level() {
    for n_levels in [3, 12, 24, 120] {
        let nested = (0..n_levels).fold("\"z\"".to_owned(), |s, _| format!("(\"a\"? {s}*)"));
        check_gbnf(
            &format!("root ::= {nested}"),
            200 * (n_levels + 1),
            &["", "a", "z", "aaz", "azzaza"],
            &["b", "azb"],
        );
    }
}

/// Each of n productions had up to n parts.
#[test]
fn a_long_concatenation_of_what_may_be_empty_grows_with_its_square() {
    let parts: String = (0..4000).map(|n| ["\"a\"? ", "\"b\"? "][n % 2]).collect();
    let text = format!("root ::= x*\nx ::= {parts}");
    check_gbnf(&text, 400_000, &["", "ab", "ba", "bbaab"], &["abc"]);
}

/// The recognizer took what stands before such a class, and there was no way on.
#[test]
fn a_class_that_leaves_out_all_is_empty() {
    for (ranges, expected) in [
        (&[('\0', char::MAX)][..], true),
        (&[('\u{e000}', char::MAX), ('\0', '\u{d7ff}')], true),
        (&[('b', char::MAX), ('\0', 'c')], true),
        (&[('b', char::MAX), ('\0', '`')], false),
        (&[('\0', '\u{10fffe}')], false),
        (&[], false),
    ] {
        assert_eq!(Class::but(ranges).is_empty(), expected, "{ranges:?}");
    }
    let class = Expr::Class(Class::but(&[('\0', char::MAX)]));
    let root = Rule::new(RuleName::root(), Expr::literal("a").then(class));
    let error = check(&Grammar::new(vec![root]).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the rule root has an empty part");
    let error = parse::gbnf(r#"root ::= "a" [^\u0000-\U0010FFFF]"#, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 14: an empty class matches no character; write \"\" for nothing or . for any character"
    );
}

/// They were printed as `""` and read back as other rules.
#[test]
fn repetitions_of_nothing_stay_as_empty_parts() {
    for text in [
        "root ::= a*.\na ::=",
        "root ::= (a*){2} .\na ::= \"\"",
        "root ::= (a* .)\na ::= b*\nb ::=",
    ] {
        assert_eq!(print::gbnf(&parse::gbnf(text, None).unwrap()), "root ::= .\n", "{text}");
    }
}

/// They were taken as if the draft had them, and so `items` for those after the first, and `contains` for no
/// condition.
#[test]
fn prefix_items_and_min_contains_of_a_later_draft_widened_an_older_one() {
    let draft = r#""$schema": "http://json-schema.org/draft-07/schema#", "type": "array""#;
    check_schema(
        &format!(
            r#"{{{draft}, "prefixItems": [{{"type": "number"}}], "items": {{"minimum": 2, "type": "integer"}}}}"#
        ),
        &["[]", "[2]", "[3, 4]"],
        &["[1]", "[2, 1]"],
    );
    check_schema(
        &format!(r#"{{{draft}, "contains": {{"type": "null"}}, "minContains": 0, "maxItems": 2}}"#),
        &["[null]", "[1, null]"],
        &["[]", "[1]"],
    );
}

/// In a run the last branch was taken for one of strings alone, and so for one that meets no boolean.
#[test]
fn one_of_took_an_implied_type_for_all_that_a_branch_allows() {
    let strings =
        r#"{"type": ["boolean", "string"], "oneOf": [{"type": "boolean"}, {"pattern": "^a"}]}"#;
    check_schema_with(Options::DECLARED, strings, &[r#""a""#], &["false", "true", r#""b""#]);
    let inside = r#"{"type": "object", "required": ["k"], "oneOf": [
        {"properties": {"k": {"type": ["null", "integer"]}}},
        {"properties": {"k": {"minimum": 3}}}
    ]}"#;
    check_schema_with(
        Options::DECLARED,
        inside,
        &[r#"{"k": 2}"#, r#"{"k": 3.5}"#],
        &[r#"{"k": null}"#, r#"{"k": 3}"#],
    );
}

/// The validator ignores what its draft has not, so the opposite of such a keyword allowed what it refuses.
#[test]
fn a_keyword_of_a_later_draft_widened_what_must_not_hold() {
    let schema = |inner: &str, draft: &str| {
        let parameters = format!(
            r#"{{"$schema": "http://json-schema.org/{draft}/schema#", "properties": {{"k": {{"type": "integer", "not": {inner}}}}}}}"#
        );
        let name = FunctionName::new("f").unwrap();
        let function = FunctionDef::new(name, None, &serde_json::from_str(&parameters).unwrap());
        calls(&[function], Options::LEGAL).unwrap()
    };
    for (inner, draft, newer) in [
        (r#"{"if": true, "then": {"type": "object"}}"#, "draft-04", Some("draft-07")),
        (r#"{"const": 3}"#, "draft-04", Some("draft-06")),
        (r#"{"required": ["a"], "dependentRequired": {"b": ["c"]}}"#, "draft-07", None),
        (r#"{"enum": [3]}"#, "draft-03", Some("draft-07")),
    ] {
        let refused = &schema(inner, draft).refused;
        let is_newer = !inner.contains("enum");
        assert_eq!(refused.len(), usize::from(is_newer), "{inner}: {refused:?}");
        let told = refused.iter().map(|(_, error)| error.to_string()).collect::<String>();
        assert_eq!(told.contains("is newer than the schema's draft"), is_newer, "{told}");
        if let Some(newer) = newer {
            assert!(schema(inner, newer).refused.is_empty(), "{inner} {newer}");
        }
    }
}

/// Each level of a repetition of a repetition was kept: 27 of them took 38 s to compile in the fuzzer.
#[test]
fn endless_repetitions_of_each_other_are_one() {
    for n in [2, 27, 100] {
        let some = format!("root ::= \"a\"{}\n", "+".repeat(n));
        check_gbnf(&some, 20, &["a", "aaa"], &["", "b"]);
        let any = format!("root ::= \"a\"{}*{}\n", "+".repeat(n), "+".repeat(n));
        check_gbnf(&any, 20, &["", "a", "aaa"], &["b"]);
    }
}

/// A repetition that became one of non-empty texts was left within another, so what was printed was read as
/// something shorter.
#[test]
fn a_grammar_that_is_read_anew_stays_as_it_is() {
    let nested =
        ["(\"\" | \"q\")+ {08,}", "(\"q\"*)?*", "((\"q\"?)+ | \"r\"){2,}", "(x?)+{1,}", "x*{3,}+"];
    for expr in nested {
        let read = |text: &str| print::gbnf(&parse::gbnf(text, None).unwrap());
        let once = read(&format!("root ::= {expr} \"z\"\nx ::= (\"q\" | \"\")+\n"));
        assert_eq!(read(&once), once, "{expr}");
        check_gbnf(&once, 60, &["z", "qz", "qqqz"], &["", "q", "qzq"]);
    }
}

/// Rules that all functions share went with the function that they were first made for.
#[test]
fn a_function_that_is_refused_late_takes_no_shared_rules_with_it() {
    let beyond = r#"{"properties": {"o": {"type": "object", "properties": {"name": {}}},
        "many": {"contains": {"type": "integer"}, "minContains": 200, "maxItems": 200}}}"#;
    let fine = r#"{"type": "object", "properties": {"name": {"type": "string"}}}"#;
    let functions = [("f", beyond), ("g", fine)].map(|(name, schema)| {
        let name = FunctionName::new(name).unwrap();
        FunctionDef::new(name, None, &serde_json::from_str(schema).unwrap())
    });
    let calls = calls(&functions, Options::LEGAL).unwrap();
    assert_eq!(calls.refused.len(), 1, "{:?}", calls.refused);
    let start = Recognizer::new(&calls.grammar).unwrap();
    assert!(start.accepts(br#"{"name": "g", "arguments": {"name": "a", "nam": 1}}"#));
    assert!(!start.accepts(br#"{"name": "g", "arguments": {"name": "a", "name": 1}}"#));
}

/// A rule for each letter of a name was made within the one for the letter before.
#[test]
fn names_of_any_length_are_left_out_of_other_keys() {
    for n in [100, 1_990, 10_000] {
        names_are_left_out_of_other_keys(n);
    }
}

#[track_caller]
fn names_are_left_out_of_other_keys(n: usize) {
    let long = "n".repeat(n);
    for others in ["", r#""m": {},"#, &format!(r#""{long}x": {{}}, "{long}yz": {{}},"#)] {
        let schema = format!(r#"{{"properties": {{{others} "{long}": {{"type": "null"}}}}}}"#);
        let name = FunctionName::new("f").unwrap();
        let functions = [FunctionDef::new(name, None, &serde_json::from_str(&schema).unwrap())];
        let calls = calls(&functions, Options::LEGAL).unwrap();
        assert_eq!(calls.refused, []);
        let start = Recognizer::new(&calls.grammar).unwrap();
        let call = |key: &str| format!(r#"{{"name": "f", "arguments": {{"{key}": 1}}}}"#);
        assert!(start.accepts(call(&long[1..]).as_bytes()));
        assert!(start.accepts(call(&format!("{long}w")).as_bytes()));
        assert!(!start.accepts(call(&long).as_bytes()));
    }
}
