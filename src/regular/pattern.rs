//! ECMA-262 patterns to automata.

mod parse;
mod nfa;
mod determine;

use super::{Dfa, TooLarge};

/// Why a pattern has no automaton.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The text is no pattern.
    #[error("{what} at byte {offset}")]
    Syntax {
        /// Bytes before the place.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A construct that we do not express, or that no automaton can.
    #[error("{construct} at byte {offset} is not supported")]
    Unsupported {
        /// Bytes before the construct.
        offset: usize,
        /// What it is.
        construct: &'static str,
    },
    /// The automaton would be too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// The texts in which the pattern matches somewhere.
pub(super) fn pattern(pattern: &str) -> Result<Dfa, PatternError> {
    let node = parse::parse(pattern)?;
    Ok(determine::search(&node)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::time::{Duration, Instant};

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
        assert_eq!(
            Dfa::pattern(pattern).map_err(|error| error.to_string()),
            Err(expected.to_owned())
        );
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
        check("(^a)*b", &["b", "ab", "cb"], &["a"]);
        check("^(a$|b)+$", &["a", "bba"], &["ab", ""]);
    }

    #[test]
    fn repetitions() {
        check("^a{2,3}$", &["aa", "aaa"], &["a", "aaaa"]);
        check("^a{2,}?$", &["aa", "aaaaa"], &["a"]);
        check("^a{2}$", &["aa"], &["a", "aaa"]);
        check("^(a?){3}$", &["", "aaa"], &["aaaa"]);
        check("^(a*)*$", &["", "aaaa"], &["b"]);
        check("^(?:ab?)+$", &["ab", "aab"], &["", "b"]);
        check("^a{0}b{0,0}$", &[""], &["a", "b"]);
        check("^(){9999999999}a$", &["a"], &[""]);
        check("^[01]{3,}1$", &["0001", "11111"], &["001", "0000"]);
    }

    #[test]
    fn classes_are_those_of_ecmascript() {
        check(r"^\d$", &["0", "9"], &["٣", "a", ""]);
        check(r"^\w$", &["a", "_", "Z", "7"], &["é", "-"]);
        check(r"^\W$", &["é", "-", "\n"], &["a"]);
        check(
            r"^\s$",
            &["\u{feff}", "\u{a0}", "\n", "\u{2029}", "\u{3000}", "\u{b}"],
            &["\u{200b}", "\u{85}"],
        );
        check(r"^\S$", &["\u{85}", "x"], &["\u{feff}", " "]);
        check("^.$", &["a", "\u{85}", "😀"], &["\n", "\r", "\u{2028}", "\u{2029}", ""]);
        check("^[^]$", &["a", "\n", "😀"], &["", "ab"]);
        check("a[]", &[], &["a", "a[]"]);
        check(r"^[\d-x]+$", &["1-x"], &["5y", "z"]);
        check(r"^[\w-.]+$", &["a-.b"], &["/", ","]);
        check("^[a-]+$", &["a-"], &["b"]);
        check("^[-a]+$", &["a-"], &["b"]);
        check("^[+--]+$", &["+,-"], &["."]);
        check("^[a-c-e]+$", &["abc-e"], &["d"]);
        check(r"^[\b]$", &["\u{8}"], &["b"]);
        check("^[^a-y]$", &["z", "A", "é"], &["b", ""]);
        check("^[[a]$", &["[", "a"], &["]"]);
        check("^[a&&b]+$", &["a&b"], &["c"]);
        check(r"^[\]\\]$", &["]", "\\"], &["["]);
        check(r"^[\uD800-\uDFFF]$", &[], &["\u{d7ff}", "\u{e000}"]);
        check(r"^[\u0000-\uFFFF]$", &["\u{d7ff}", "\u{e000}", "a"], &["😀"]);
    }

    #[test]
    fn escapes() {
        check(r"^\cJ\t\n\v\f\r\0$", &["\n\t\n\u{b}\u{c}\r\0"], &[]);
        check(r"^\x41\u0042\u{43}\u{1F600}$", &["ABC😀"], &[]);
        check(r"^\uD83D\uDE00$", &["😀"], &[]);
        check(r"^[\uD83D\uDE00-\uD83D\uDE02]$", &["😀", "😁", "😂"], &["😃"]);
        check(r"^\uD83D$", &[], &["", "\u{fffd}"]);
        check(r#"^\/\-\_\"\@\#\ \é$"#, &["/-_\"@# é"], &[]);
        check(r"^]}{a{,3}{x}$", &["]}{a{,3}{x}"], &[]);
        check(r"^\{\}\[\]\(\)\*\+\?\.\^\$\|\\$", &["{}[]()*+?.^$|\\"], &[]);
    }

    #[test]
    fn groups() {
        check("^(?<year>[0-9]{4})-(?:0|1)(2)$", &["1999-02"], &["1999-2"]);
        check("(?i)^a[b-c]\\u0130?$", &["Ab", "aC"], &["ad"]);
        check("^a(?i)b(?-i:c)|d$", &["aBc", "D", "abcx"], &["Abc", "aBC"]);
        check("^(?i:é)s$", &["És", "és"], &["éS"]);
        check("(?i)^ſ[^k]$", &["Sa", "sa"], &["s\u{212a}", "sK"]);
        check("(?s)^.$", &["\n"], &[""]);
    }

    #[test]
    fn properties() {
        check(r"^\p{L}$", &["a", "é", "字"], &["1", "-"]);
        check(r"^\p{Letter}\p{Lu}$", &["aÉ"], &["aé"]);
        check(r"^\p{Script=Greek}+$", &["αβγ"], &["abc"]);
        check(r"^[\p{Nd}_]$", &["٣", "_"], &["a"]);
        check(r"^\P{L}$", &["1"], &["a"]);
        check(r"^[^\p{Alphabetic}]$", &["1"], &["a"]);
        check(r"^\p{Any}\p{ASCII}$", &["éa"], &["aé"]);
    }

    #[test]
    fn word_boundaries() {
        check(r"\bcat\b", &["cat", "a cat.", "cat-x"], &["cats", "_cat", "concat"]);
        check(r"\Bcat", &["concat", "xcats"], &["cat", "a cat"]);
        check(r"^\b$", &[], &["", "a"]);
        check(r"^\B$", &[""], &["a"]);
        check(r"^a\b.\b", &["a b", "a-b"], &["abc", "a--", "a-"]);
        check(r"^\w+\b\W*$", &["ab--", "ab"], &["--", ""]);
    }

    #[test]
    fn lookarounds() {
        check(r"^(?!foo)(?=.*\d)[a-z0-9]+$", &["a1", "fo1"], &["foo1", "abc", "1!"]);
        check("^(?!.*--)[a-z-]+$", &["a-b-"], &["a--b"]);
        check("^(?!a$)", &["", "ab", "b"], &["a"]);
        check("^(?=a)(?!ab)", &["a", "ac"], &["ab", "b", ""]);
        check("a(?!b)", &["a", "ac", "abac"], &["ab", "b"]);
        check("a(?=b|$)", &["a", "ab", "acab"], &["ac", ""]);
        check("^(?:(?!--)[a-z-])+$", &["a-b", "-a-"], &["a--b", "--"]);
        check("^(?:(?!end).)*end$", &["end", "the end"], &["end end", "en"]);
        check("^a(?!)", &[], &["a"]);
        check("^(?=)a", &["a"], &[""]);
        check("^(?=(?!ab)a.)..$", &["ac"], &["ab", "ba"]);
        check("x(?=^|y)", &["xy"], &["x"]);
        check(r"^a(?=\b)", &["a", "a-"], &["ab"]);
        check(r"^-(?=\b)", &["-a"], &["-", "--"]);
        check(r"^((?=a)a|(?=b)b)+$", &["abba"], &["abc", ""]);
        check("^[a-z-]{1,4}(?<!-)$", &["a-b", "a"], &["a-", "-"]);
        check("(?<=a|^c)b", &["ab", "cb", "xab"], &["b", "xcb"]);
        check("(?<![0-9.])[0-9]+$", &["a12", "7"], &["1.5a", ".5"]);
        check("^(?!-)(?:[a-z-]{1,3}(?<!-)\\.)+$", &["a-b.c.", "ab."], &["ab-.", "-a.", "abcd."]);
        check("^(?!^a)", &["b"], &["a"]);
    }

    #[test]
    fn errors_name_what_and_where() {
        check_error("a)", "a parenthesis that nothing opens at byte 1");
        check_error("é(a", "a group that nothing closes at byte 2");
        check_error("[a", "a class that nothing closes at byte 0");
        check_error("a**", "a quantifier with nothing to repeat at byte 2");
        check_error("^*", "a quantifier with nothing to repeat at byte 1");
        check_error("{1}", "a quantifier with nothing to repeat at byte 0");
        check_error("a{2,1}", "a quantifier whose bounds are reversed at byte 1");
        check_error("[b-a]", "a range whose ends are reversed at byte 1");
        check_error("a\\", "a backslash with nothing behind it at byte 1");
        check_error(r"\A", "an escape of no known meaning at byte 0");
        check_error(r"\c1", "\\c without a letter at byte 0");
        check_error(r"\u12", "\\u without a code point at byte 0");
        check_error(r"\u{110000}", "\\u without a code point at byte 0");
        check_error(r"\p{Nothing}", "an unknown Unicode property at byte 0");
        check_error(r"(a)\1", "a backreference at byte 3 is not supported");
        check_error(r"(?<n>a)\k<n>", "a backreference at byte 7 is not supported");
        check_error("(?>a)", "an atomic group at byte 0 is not supported");
        check_error("(?m)^a", "the flag m at byte 0 is not supported");
        check_error("(?P<n>a)", "a group of no known kind at byte 0");
        check_error("(?=a(?<=b))", "a lookbehind within a lookahead at byte 4 is not supported");
        check_error(r"(?<=a\b)", "a word boundary within a lookbehind at byte 5 is not supported");
        check_error(&"(".repeat(200), "too many groups within each other at byte 100");
    }

    #[test]
    fn what_would_be_too_large_is_refused_at_once() {
        let too_large = TooLarge.to_string();
        for pattern in [
            ".*a.{25}",
            "a.{25}$",
            "^(a{0,1000}){0,1000}$",
            "^(a{0,100}){0,500}$",
            "(a|b){4294967295}",
            "^(?:(a?){100}){100}$",
            "^(?=.*a.{20})(?=.*b.{20}).*c.{20}$",
            "^(((a*)*b)*c){0,10000}$",
        ] {
            let start = Instant::now();
            check_error(pattern, &too_large);
            assert!(start.elapsed() < Duration::from_secs(2), "{pattern}: {:?}", start.elapsed());
        }
        // As large, and minimal in one state.
        check("a{0,1000}", &["", "b"], &[]);
    }
}
