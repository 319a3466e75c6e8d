//! The grammar as a picture and as JSON: well-formed, whole, and nothing too wide.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use call_me_maybe::definitions;
use call_me_maybe::grammar::draw::{PAGE_WIDTH, svg};
use call_me_maybe::grammar::lower::{Options, Unsupported, calls};
use call_me_maybe::grammar::{
    Class, Expr, Grammar, Repeat, Rule, RuleName, document, parse, print,
};
use roxmltree::{Document, Node};
use serde_json::Value;

/// Well-formed, with an anchor for each rule, links that lead somewhere, and text within its box.
#[track_caller]
fn check(text: &str, n_rules: usize) {
    let document = Document::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let svg = document.root_element();
    assert_eq!(svg.tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
    let number = |node: Node<'_, '_>, name: &str| -> f64 {
        node.attribute(name).unwrap_or("0").parse().unwrap()
    };
    let (width, height) = (number(svg, "width"), number(svg, "height"));
    let attributes = |name: &'static str| {
        svg.descendants().filter_map(move |node| node.attribute(name)).collect::<Vec<_>>()
    };
    let anchors: BTreeSet<&str> = attributes("id").into_iter().collect();
    assert_eq!(anchors.len(), attributes("id").len(), "anchors differ");
    assert_eq!(anchors.iter().filter(|id| id.starts_with("rule-")).count(), n_rules);
    for link in attributes("href") {
        assert!(anchors.contains(link.strip_prefix('#').unwrap()), "{link} leads nowhere");
    }
    for node in
        svg.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "g")))
    {
        let child = |tag| node.children().find(move |child| child.tag_name().name() == tag);
        if let (Some(rect), Some(text)) = (child("rect"), child("text")) {
            let label = text.text().unwrap_or_default().trim();
            let columns = unicode_width::UnicodeWidthStr::width(label);
            #[expect(clippy::cast_precision_loss, reason = "few columns")]
            let needed = columns as f64 * 8.43;
            assert!(needed <= number(rect, "width"), "{label} leaves its box");
            assert!(number(rect, "x") + number(rect, "width") <= width, "{label} leaves the page");
            assert!(
                number(rect, "y") + number(rect, "height") <= height,
                "{label} leaves the page"
            );
        }
    }
}

fn golden(case: &str) -> Grammar {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case);
    let functions = definitions::parse(&fs::read(file.join("definitions.json")).unwrap()).unwrap();
    calls(&functions, Options { unsupported: Unsupported::LeaveOut, ..Options::LEGAL })
        .unwrap()
        .grammar
}

#[test]
fn golden_grammars_are_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut n_cases = 0;
    for case in fs::read_dir(folder).unwrap() {
        let grammar = golden(case.unwrap().file_name().to_str().unwrap());
        check(&svg(&grammar), grammar.rules().len());
        n_cases += 1;
    }
    assert!(n_cases > 10, "{n_cases}");
}

#[test]
fn the_exercise_is_drawn_for_a_reader() {
    let drawing = svg(&golden("exercise"));
    let document = Document::parse(&drawing).unwrap();
    let texts = |class: &str| -> Vec<String> {
        let nodes = document.descendants().filter(|node| {
            let own = node.attribute("class");
            let parents = node.parent().and_then(|parent| parent.attribute("class"));
            node.tag_name().name() == "text" && (own == Some(class) || parents == Some(class))
        });
        nodes.map(|node| node.text().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(document.root_element().attribute("width"), Some(PAGE_WIDTH.to_string().as_str()));
    assert_eq!(texts("name")[..3], ["root", "call", "fn-add-numbers"]);
    assert_eq!(texts("caption")[0], "fn_add_numbers: Adds two numbers.");
    assert_eq!(texts("nonterminal")[..3], ["call", "fn-add-numbers", "fn-greet"]);
    let terminals = texts("terminal");
    assert_eq!(terminals[..2], ["{\"name\":␣", "}"]);
    for terminal in ["[0-9 a-f A-F]", "any character but \" \\ ⟨U+0000⟩-⟨U+001F⟩ ⟨U+007F⟩"]
    {
        assert!(terminals.iter().any(|text| text == terminal), "{terminal} in {terminals:?}");
    }
}

fn grammar(expr: Expr, comment: &[&str]) -> Grammar {
    let comment = comment.iter().map(|&line| line.to_owned()).collect();
    Grammar::new(vec![Rule { comment, ..Rule::new(RuleName::root(), expr) }]).unwrap()
}

#[test]
fn hostile_and_long_parts_stay_on_the_page() {
    let every: String =
        ('\0'..='\u{2ff}').chain(['\u{fffe}', '\u{ffff}', '\u{202e}', '😀']).collect();
    let long = "x".repeat(10_000);
    for expr in [
        Expr::literal(every.as_str()),
        every.chars().map(|c| Expr::literal(c.to_string())).reduce(Expr::or).unwrap(),
        Expr::literal(long.as_str()),
        Expr::Concat(every.chars().map(|c| Expr::Class(Class::but(&[(c, c)]))).collect()),
        Expr::Class(Class::of(&every.chars().map(|c| (c, c)).collect::<Vec<_>>())),
        Expr::nothing().or(Expr::literal("]]>")),
        Expr::Repeat(Box::new(Expr::literal("</svg>")), Repeat::new(3, Some(5)).unwrap()),
    ] {
        check(&svg(&grammar(expr, &[&every, &long, "-->"])), 1);
    }
    let name = RuleName::new(long).unwrap();
    let rules = vec![
        Rule::new(RuleName::root(), Expr::Rule(name.clone())),
        Rule::new(name, Expr::literal("a")),
    ];
    check(&svg(&Grammar::new(rules).unwrap()), 2);
}

#[test]
fn counts_and_what_is_left_out_are_told() {
    let choice = (0..500).map(|n| Expr::literal(n.to_string())).reduce(Expr::or).unwrap();
    let drawing = svg(&grammar(choice, &[]));
    assert!(drawing.contains("… 460 more") && !drawing.contains("\n40<"), "{drawing}");
    for (text, caption) in
        [("{3,5}", "{3,5}"), ("{0,7}", "{0,7}"), ("{4}", "{4}"), ("{2,}", "{2,}")]
    {
        let read = parse::gbnf(&format!("root ::= \"a\"{text}"), None).unwrap();
        assert!(svg(&read).contains(caption), "{text}");
    }
    let deep =
        (0..200).fold(Expr::literal("a"), |inner, _| inner.optional().then(Expr::literal("b")));
    let drawing = svg(&grammar(deep, &[]));
    check(&drawing, 1);
    assert!(drawing.contains("… deeper than is drawn"));
}

/// The grammar that a JSON document holds.
fn read(document: &Value) -> Grammar {
    fn expr(value: &Value) -> Expr {
        let (kind, of) = value.as_object().unwrap().iter().next().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let all = || of.as_array().unwrap().iter().map(expr).collect();
        let count = |value: &Value| value.as_u64().map(|count| u32::try_from(count).unwrap());
        match kind.as_str() {
            "literal" => Expr::Literal(text(of)),
            "rule" => Expr::Rule(RuleName::new(text(of)).unwrap()),
            "concat" => Expr::Concat(all()),
            "choice" => Expr::Choice(all()),
            "repeat" => Expr::Repeat(
                Box::new(expr(&of["expr"])),
                Repeat::new(count(&of["min"]).unwrap(), count(&of["max"])).unwrap(),
            ),
            "class" => {
                let ranges: Vec<(char, char)> =
                    serde_json::from_value(of["ranges"].clone()).unwrap();
                let class = if of["negated"] == true { Class::but } else { Class::of };
                Expr::Class(class(&ranges))
            }
            other => panic!("{other}"),
        }
    }
    let rules = document["rules"].as_array().unwrap().iter().map(|rule| Rule {
        name: RuleName::new(rule["name"].as_str().unwrap()).unwrap(),
        expr: expr(&rule["expr"]),
        comment: serde_json::from_value(rule["comment"].clone()).unwrap(),
        argument: rule["argument"].as_bool().unwrap(),
    });
    Grammar::new(rules.collect()).unwrap()
}

#[test]
fn json_holds_all_of_a_grammar() {
    for case in ["exercise", "optional", "names", "numbers", "unsupported"] {
        let grammar = golden(case);
        let text = document::json(&grammar).unwrap();
        let again = read(&serde_json::from_str(&text).unwrap());
        assert_eq!(again, grammar, "{case}");
        assert_eq!(print::gbnf(&again), print::gbnf(&grammar), "{case}");
    }
    let digits = Expr::Class(Class::of(&[('0', '9')])).at_least_once();
    let text = document::json(&grammar(Expr::literal("\"x\" ").then(digits), &["an x"])).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value.to_string(),
        r#"{"rules":[{"name":"root","comment":["an x"],"argument":false,"expr":{"concat":[{"literal":"\"x\" "},{"repeat":{"expr":{"class":{"ranges":[["0","9"]],"negated":false}},"min":1,"max":null}}]}}]}"#
    );
}
