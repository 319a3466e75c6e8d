use super::*;

/// The pattern accepts the first texts and refuses the others.
#[track_caller]
fn check(pattern: &str, accepted: &[&str], refused: &[&str]) {
    let dfa = Dfa::pattern(pattern).unwrap();
    for text in accepted {
        assert!(dfa.accepts(text), "{pattern} on {text:?}");
    }
    for text in refused {
        assert!(!dfa.accepts(text), "{pattern} on {text:?}");
    }
}

#[track_caller]
fn check_error(pattern: &str, expected: &str) {
    assert_eq!(Dfa::pattern(pattern).map_err(|error| error.to_string()), Err(expected.to_owned()));
}

#[test]
fn a_pattern_is_searched_for() {
    check("b", &["b", "abc"], &["", "ac"]);
    check("^b", &["b", "bc"], &["", "ab"]);
    check("b$", &["b", "ab"], &["", "bc", "b\n"]);
    check("^$", &[""], &["a"]);
    check("", &["", "a"], &[]);
    check("a|^b$", &["a", "xax", "b"], &["bb", ""]);
    check("^a|b$", &["ac", "cb"], &["ca", "bc"]);
    check("(^|x)a(y|$)", &["a", "xa", "zxay", "ayz"], &["za", "az"]);
    check("a^b|c$d", &[], &["ab", "cd", "a^b"]);
    check("$^|x", &["", "x"], &["y"]);
}
