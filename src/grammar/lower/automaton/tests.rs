use super::*;
use crate::grammar::check::check as check_grammar;
use crate::grammar::lower::terminal::{plain_terminal, string_terminal};
use crate::grammar::print::gbnf;
use crate::grammar::recognize::Recognizer;
use crate::grammar::{Class, Grammar};

/// The grammar of quoted texts, or `None` without a text.
fn grammar(dfa: &Dfa, terminal: Terminal<'_>) -> Option<Grammar> {
    let mut rules = Vec::new();
    let name = RuleName("t".to_owned());
    let mut names = Names::default();
    names.fresh(&["t"], "");
    let quote = || Expr::literal("'");
    let expr = match automaton(dfa, &name, &mut names, &mut rules, terminal) {
        Written::Nothing => return None,
        Written::Empty => Expr::literal("''"),
        Written::Expr(expr) => quote().then(expr).then(quote()),
    };
    rules.insert(0, Rule::new(RuleName::root(), expr));
    let text = format!("{rules:?}");
    if text.contains("Rule(RuleName(\"char\"))") {
        let any = Class::but(&[('"', '"')]);
        rules.push(Rule::new(RuleName("char".to_owned()), Expr::Class(any)));
    }
    let grammar = Grammar::new(rules).unwrap();
    check_grammar(&grammar).unwrap();
    Some(grammar)
}

fn text(dfa: &Dfa) -> String {
    grammar(dfa, &string_terminal).map_or("nothing".to_owned(), |grammar| gbnf(&grammar))
}

#[track_caller]
fn check(pattern: &str, expected: &str) {
    let text = text(&Dfa::pattern(pattern).unwrap());
    let text = text.strip_suffix("char ::= [^\"]\n").unwrap_or(&text);
    let text = text.strip_prefix("root ::= \"'\" ").unwrap_or(text).trim_end();
    assert_eq!(text, expected);
}

#[test]
fn patterns_read_like_themselves() {
    check("^abc$", r#"root ::= "'abc'""#);
    check("^$", r#"root ::= "''""#);
    check("a[]", "nothing");
    check("^[a-z]{3}$", r#"[a-z]{3} "'""#);
    check("^[a-z]{0,63}$", r#"[a-z]{0,63} "'""#);
    check("^[a-z]{2,63}$", r#"[a-z]{2,63} "'""#);
    check("^[a-z]*$", r#"[a-z]* "'""#);
    check("^[a-z]+$", r#"[a-z]+ "'""#);
    check("^[a-z]{3,}$", r#"[a-z]{3,} "'""#);
    check("^[a-z]{1,9}\\.com$", r#"[a-z]{1,9} ".com'""#);
    check("^a?b$", r#""a"? "b'""#);
    check("^(foo|bar)$", r#"("bar" | "foo") "'""#);
    check("^(foo|foobar)$", r#"root ::= "'foo" "bar"? "'""#);
    check("^x-", r#"root ::= "'x-" char* "'""#);
    check("^[ab]*c[^]*$", r#"[ab]* "c" char* "'""#);
    check("^[a-z]+(, [a-z]+)*$", r#"[a-z]+ (", " [a-z]+)* "'""#);
    check("^(ab)*$", r#""ab"* "'""#);
    check(
        "^(0[1-9]|1[0-2])(/[a-z]+:){2}$",
        r#"("0" [1-9] | "1" [0-2]) t-2 "'"
t-2 ::= "/" [a-z]+ ":/" [a-z]+ ":""#,
    );
    check("^([a-z]|%[0-9]{2})*$", r#"[a-z]* ("%" [0-9]{2} [a-z]*)* "'""#);
}

#[test]
fn large_counts_are_split() {
    let words = |min, max| {
        let any = Dfa::with_length(min, max).unwrap();
        let letters = Dfa::pattern("^[a-z]*$").unwrap();
        text(&any.intersect(&letters).unwrap())
    };
    assert_eq!(words(2_000, Some(2_000)), "root ::= \"'\" [a-z]{2000} \"'\"\n");
    let check = |min, max, expected: &str| {
        let text = words(min, max);
        assert_eq!(text.strip_prefix("root ::= \"'\" ").unwrap().trim_end(), expected);
    };
    check(4_001, Some(4_001), r#"[a-z]{2000} [a-z]{2000} [a-z] "'""#);
    check(1_500, Some(2_500), r#"[a-z]{1500} [a-z]{0,1000} "'""#);
    check(2_500, Some(3_000), r#"[a-z]{2000} [a-z]{500} [a-z]{0,500} "'""#);
    check(2_000, Some(2_001), r#"[a-z]{2000} [a-z]? "'""#);
    check(3_000, None, r#"[a-z]{2000} [a-z]{1000,} "'""#);
    check(0, Some(2_001), "t-2 \"'\"\nt-2 ::= [a-z]{0,1999} | [a-z]{2000} [a-z]?");
    let five = "t-3 \"'\"\nt-3 ::= [a-z]{0,1999} | [a-z]{2000} t-2\n\
                t-2 ::= [a-z]{0,1999} | [a-z]{2000} [a-z]{0,1000}";
    check(0, Some(5_000), five);
}

/// A number below `below`, from a seed that it changes.
fn random(seed: &mut u64, below: usize) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed % below as u64).unwrap()
}

#[track_caller]
fn check_texts(dfa: &Dfa, seed: &mut u64, letters: &[char]) {
    let Some(grammar) = grammar(dfa, &plain_terminal) else {
        assert!(dfa.is_empty());
        return;
    };
    let recognizer = Recognizer::new(&grammar).unwrap();
    for n in 0..60 {
        let mut text = String::new();
        let mut state = 0;
        for _ in 0..random(seed, 14) {
            // Every other text stays inside the language while it can.
            let edges = &dfa.states()[state].edges;
            let c = if n % 2 == 0 || edges.is_empty() {
                letters[random(seed, letters.len())]
            } else {
                let (first, last, to) = edges[random(seed, edges.len())];
                state = to as usize;
                if random(seed, 2) == 0 { first } else { last }
            };
            text.push(c);
        }
        let mut here = recognizer.clone();
        let whole = format!("'{text}'");
        let accepted = here.push_all(whole.as_bytes()).is_ok() && here.can_end();
        assert_eq!(accepted, dfa.accepts(&text), "{text:?} of {dfa:?}\n{}", gbnf(&grammar));
    }
}

#[test]
fn random_automata_and_their_grammars_agree() {
    let seed = &mut 0x5eed_u64;
    let letters = ['a', 'b', 'c', 'd', 'é', '😀'];
    for round in 0..1_500 {
        let n_states = 1 + random(seed, 2 + round / 100);
        let states = (0..n_states).map(|_| {
            let accepting = random(seed, 3) == 0;
            let mut edges = Vec::new();
            for pair in letters.windows(2) {
                if random(seed, 3) > 0 {
                    let to = u32::try_from(random(seed, n_states)).unwrap();
                    let last = char::from_u32(u32::from(pair[1]) - 1).unwrap();
                    edges.push((pair[0], last, to));
                }
            }
            crate::regular::State { accepting, edges }
        });
        check_texts(&Dfa::from_states(states.collect()), seed, &letters);
    }
}

#[test]
fn long_chains_and_deep_nests_are_written() {
    let long: String = ('a'..='z').cycle().take(15_000).collect();
    assert!(text(&Dfa::of_strings([long.as_str()])).contains(&long));
    // Every prefix is a text, so every state is optional.
    let prefixes: Vec<&str> = (0..2_000).map(|end| &long[..end]).collect();
    let dfa = Dfa::of_strings(prefixes);
    let grammar = grammar(&dfa, &plain_terminal).unwrap();
    let mut here = Recognizer::new(&grammar).unwrap();
    assert_eq!(here.push_all(format!("'{}'", &long[..1_234]).as_bytes()), Ok(()));
    let gbnf = gbnf(&grammar);
    let mut depth = 0;
    for c in gbnf.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        assert!(depth <= 40);
    }
}

#[test]
fn many_strings_are_a_compact_trie() {
    let strings: Vec<String> = (0..5_000).map(|n| format!("value_{n:05}_of_many")).collect();
    let dfa = Dfa::of_strings(strings.iter().map(String::as_str));
    let text = text(&dfa);
    assert!(text.len() < 500, "{text}");
}
