//! The names that `format` takes in JSON Schema 2020-12, section 7.3, to regular languages.
//!
//! **Invariant:** no language holds a text that the validator refuses.
//! **Invariant:** only what is listed here is narrower than the format's RFC, and each line has a test.
//!
//! - `time`, `date-time`: a leap second only at 23:59:60 in UTC.
//! - `hostname`: at most seven labels, the third and later ones of at most 24 characters; no `xn--` labels.
//! - `idn-hostname`: at most four labels, in ASCII as above or of up to 14 characters, which are ASCII letters in
//!   lower case, digits, hyphens, and small letters of Latin-1, Greek and Cyrillic, Kana, Han and Hangul; only
//!   `.` separates them.
//! - `email`, `idn-email`: the domain as above. A local part with dots has at most 32 characters besides them,
//!   in quotes 31; if it is not ASCII, 16 and 20. `idn-email` has no address in brackets, and only characters of
//!   the Basic Multilingual Plane, without controls.
//! - `regex`: no look-around, back-reference, named group or `\p`; groups three deep; counts to 99;
//!   a `^` begins an alternative and a `$` ends it; ranges in classes begin at `0`, `1`, `a` or `A`.
//! - `relative-json-pointer`: no index manipulation (`0+1`), which the validator does not know.

mod clock;
mod network;
mod locator;
mod notation;

use std::sync::OnceLock;

use super::Dfa;

/// A name, its ECMA-262 pattern, and the automaton once it was asked for.
struct Format {
    name: &'static str,
    pattern: fn() -> String,
    language: OnceLock<Option<Dfa>>,
}

impl Format {
    const fn new(name: &'static str, pattern: fn() -> String) -> Self {
        Self { name, pattern, language: OnceLock::new() }
    }
}

static FORMATS: [Format; 19] = [
    Format::new("date-time", clock::date_time),
    Format::new("date", clock::date),
    Format::new("time", clock::time),
    Format::new("duration", clock::duration),
    Format::new("email", network::email),
    Format::new("idn-email", network::idn_email),
    Format::new("hostname", network::hostname),
    Format::new("idn-hostname", network::idn_hostname),
    Format::new("ipv4", network::ipv4),
    Format::new("ipv6", network::ipv6),
    Format::new("uri", locator::uri),
    Format::new("uri-reference", locator::uri_reference),
    Format::new("iri", locator::iri),
    Format::new("iri-reference", locator::iri_reference),
    Format::new("uri-template", locator::uri_template),
    Format::new("uuid", notation::uuid),
    Format::new("json-pointer", notation::json_pointer),
    Format::new("relative-json-pointer", notation::relative_json_pointer),
    Format::new("regex", notation::regex),
];

/// The texts of a format; `None` for a name that JSON Schema 2020-12 does not define.
///
/// ```
/// use call_me_maybe::regular::format::format;
///
/// let date = format("date").ok_or("a defined format")?;
/// assert!(date.accepts("2024-02-29") && !date.accepts("2023-02-29"));
/// assert!(format("color").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn format(name: &str) -> Option<&'static Dfa> {
    let format = FORMATS.iter().find(|format| format.name == name)?;
    // No pattern here is refused; a test builds them all.
    format
        .language
        .get_or_init(|| Dfa::pattern(&format!("^(?:{})$", (format.pattern)())).ok())
        .as_ref()
}

/// All names that [`format`](fn@format) knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that goes wrong shall say so and stop")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn validator(name: &str) -> jsonschema::Validator {
        let schema = json!({"type": "string", "format": name});
        jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
    }

    /// The language has all of `yes` and none of `no`, and the validator agrees about `yes`.
    #[track_caller]
    fn check(name: &str, yes: &[&str], no: &[&str]) {
        let language = format(name).unwrap();
        let validator = validator(name);
        for text in yes {
            assert!(language.accepts(text), "{name} has {text:?}");
            assert!(validator.is_valid(&json!(text)), "the validator takes {text:?}");
        }
        for text in no {
            assert!(!language.accepts(text), "{name} has not {text:?}");
        }
    }

    /// What RFC and validator take and we do not: the list of the module's documentation.
    #[track_caller]
    fn check_narrower(name: &str, texts: &[&str]) {
        let language = format(name).unwrap();
        let validator = validator(name);
        for text in texts {
            assert!(!language.accepts(text), "{name} has {text:?}");
            assert!(validator.is_valid(&json!(text)), "the validator takes {text:?}");
        }
    }

    #[test]
    fn only_the_defined_names_are_formats() {
        assert!(names().all(|name| format(name).is_some_and(|language| !language.is_empty())));
        assert_eq!(names().count(), 19);
        for name in ["color", "", "Date", "int32"] {
            assert!(format(name).is_none(), "{name}");
        }
    }

    #[test]
    fn dates_have_the_days_of_their_month() {
        for year in [1900, 1999, 2000, 2023, 2024, 2100, 400, 4, 0] {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for month in 0..=13 {
                let n_days = match month {
                    1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
                    4 | 6 | 9 | 11 => 30,
                    2 => 28 + i32::from(leap),
                    _ => 0,
                };
                for day in 0..=32 {
                    let text = format!("{year:04}-{month:02}-{day:02}");
                    let expected = (1..=n_days).contains(&day);
                    assert_eq!(format("date").unwrap().accepts(&text), expected, "{text}");
                }
            }
        }
        check(
            "date",
            &[],
            &["", "20240101", "2024-1-01", "2024-01-01Z", "-2024-01-01", "1963-06-1৪"],
        );
    }

    #[test]
    fn every_fourth_year_but_three_centuries_has_a_leap_day() {
        let n_leap_days = (0..10_000)
            .filter(|year| format("date").unwrap().accepts(&format!("{year:04}-02-29")))
            .count();
        assert_eq!(n_leap_days, 2_425);
    }

    #[test]
    fn times() {
        check(
            "time",
            &["08:30:06Z", "23:59:60Z", "23:59:60.5+00:00", "08:30:06.283185z", "12:34:56-00:00"],
            &[
                "24:00:00Z",
                "12:00:00",
                "8:3:6Z",
                "22:59:60Z",
                "23:59:60+01:00",
                "01:02:03+24:00",
                "1:2",
            ],
        );
        check_narrower("time", &["15:59:60-08:00", "01:29:60+01:30"]);
        check(
            "date-time",
            &[
                "1963-06-19T08:30:06.283185Z",
                "1937-01-01t12:00:27.87+00:20",
                "1998-12-31T23:59:60Z",
            ],
            &[
                "1990-02-31T15:59:59Z",
                "1985-04-12T23:20:50+01",
                "2024-01-01",
                "2024-01-01 00:00:00Z",
            ],
        );
        check_narrower("date-time", &["1998-12-31T15:59:60.123-08:00"]);
    }

    #[test]
    fn durations() {
        check(
            "duration",
            &["P4DT12H30M5S", "P4Y", "PT0S", "P1Y2M3DT4H5M6S", "P2W", "P1M2D", "PT36H", "P01D"],
            &[
                "P", "PT", "P1YT", "P1Y2D", "PT1H2S", "P1Y2W", "P1D2H", "PT0.5S", "p1d", "-P1D",
                "P1",
            ],
        );
    }

    #[test]
    fn hosts() {
        let long = "a".repeat(63);
        check(
            "hostname",
            &[
                "www.example.com",
                "a",
                "1host",
                "host-name",
                "a--b.com",
                "a1.b2.c3.d4.e5.f6.g7",
                &long,
            ],
            &[
                "",
                ".",
                "a.",
                ".a",
                "-a",
                "a-",
                "a_b",
                "ab--c",
                "xn--x",
                "a..b",
                &format!("{long}a"),
                "é",
            ],
        );
        check_narrower(
            "hostname",
            &["xn--9n2bp8q", "a.b.c.d.e.f.g.h", &format!("a.b.{}.com", "c".repeat(25))],
        );
        check(
            "idn-hostname",
            &["실례.테스트", "hostname", "bücher.example", "παράδειγμα.gr", &long, "例え.jp"],
            &[
                "",
                "-실례",
                "실례-",
                "실례.",
                "〮실례",
                "a.실례--b",
                "ab--실",
                "BÜCHER",
                "אב",
                "실\u{3002}례",
            ],
        );
    }

    #[test]
    fn mailboxes() {
        check(
            "email",
            &[
                "joe.bloggs@example.com",
                "~te~st+x@example.com",
                "\"joe bloggs\"@example.com",
                "\"joe\\\"@bloggs\"@example.com",
                "joe@[127.0.0.1]",
                "joe@[IPv6:::1]",
                &format!("{}@example.com", "a".repeat(64)),
                &format!("a{}@example.com", ".a".repeat(31)),
            ],
            &[
                "2962",
                ".a@b.c",
                "a.@b.c",
                "a..b@c.d",
                "a@b=c.d",
                "a@[127.0.0.300]",
                "@b.c",
                "a@",
                "é@b.c",
            ],
        );
        check_narrower("email", &[&format!("a.{}@example.com", "a".repeat(32))]);
        check(
            "idn-email",
            &["실례@실례.테스트", "δοκιμή@example.com", "\"δοκιμή\"@example.com", "a@b.c"],
            &["2962", "a@", "@a", "\u{85}@example.com", "joe@[127.0.0.1]"],
        );
    }

    #[test]
    fn addresses() {
        check(
            "ipv4",
            &["192.168.0.1", "0.0.0.0", "255.255.255.255"],
            &["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4/24", "", "0x7f.0.0.1"],
        );
        check(
            "ipv6",
            &[
                "::",
                "::1",
                "1::",
                "1:2:3:4:5:6:7:8",
                "1:2:3:4:5:6:7::",
                "::2:3:4:5:6:7:8",
                "::ffff:192.168.0.1",
                "1:2::192.168.0.1",
                "1:2:3:4:5:6:1.2.3.4",
                "ABCD::1",
            ],
            &[
                "",
                ":",
                ":::",
                "1::2::3",
                "1:2:3:4:5:6:7",
                "1:2:3:4:5:6:7:8:9",
                "12345::",
                ":1",
                "1:2:3:4:5:6:7:8::",
                "::1.2.3.256",
                "fe80::a%eth1",
                "1.2.3.4",
                "::1.2.3",
                "g::",
            ],
        );
    }

    #[test]
    fn locators() {
        let uris = [
            "http://foo.bar/?baz=qux#quux",
            "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com",
            "ldap://[2001:db8::7]/c=GB?objectClass?one",
            "http://[V1.fe]:80",
            "mailto:John.Doe@example.com",
            "urn:a:b",
            "file:/etc/hosts",
            "a:",
        ];
        let not = [
            "http:// x.com",
            "http://a:abc/path",
            "http://a/%6G",
            "1http://a",
            "http://a@b@c/",
            "http:/[::1]",
            "http://[::1",
            "http://a/<>",
            "http://a/\\",
            "http://a/\"",
            ":a",
            "http://a#b#c",
        ];
        for name in ["uri", "uri-reference", "iri", "iri-reference"] {
            check(name, &uris, &not);
        }
        let relative = ["//foo.bar/?q#f", "/abc", "abc", "", "?query=1", "#f", "//", "./this:that"];
        let irregular = ["1:b", "//[::ffff:192.168.0.01]/p", "\\\\WINDOWS\\share", "//a:b/p"];
        check("uri", &[], &relative);
        check("iri", &[], &relative);
        check("uri-reference", &relative, &irregular);
        check("iri-reference", &relative, &irregular);
        let unicode = ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://ƒøø.ßår/?q=\u{f0000}"];
        check("iri", &unicode, &["http://a/\u{f0000}", "http://a/\u{fdd0}"]);
        check("uri", &[], &unicode);
        check(
            "uri-template",
            &["", "http://a/{term:1}/{+x,y*}", "{?a.b}{%41}", "a%41'\u{1f600}", "{v:1000}", "{=v}"],
            &[
                "{}",
                "{a,,b}",
                "{v:0}",
                "{v:10000}",
                "a}",
                "{a",
                "a b",
                "{a..b}",
                "{a=b}",
                "%4",
                "{,+a}",
            ],
        );
    }

    #[test]
    fn identifiers_and_pointers() {
        check(
            "uuid",
            &["2eb8aa08-AA98-11ea-B4Aa-73B441D16380", "00000000-0000-0000-0000-000000000000"],
            &["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4ga-73b441d16380", ""],
        );
        check(
            "json-pointer",
            &["", "/", "/foo/bar~0/baz~1/%a", "//", "/ \n\"\\é"],
            &["a", "#", "/~", "/~2", "/~~", "0"],
        );
        check(
            "relative-json-pointer",
            &["0", "1", "0/foo/bar", "120#", "0//", "100"],
            &["", "/a", "-1", "01", "0##", "1#/a", "0/~2", "0+1/a", "١/foo"],
        );
    }

    #[test]
    fn patterns() {
        check(
            "regex",
            &[
                "([abc])+\\s+$",
                "^[A-Z]{2,}$",
                "^\\d{3}-\\d{4}$",
                "",
                "a|b|",
                "(?:a(b(c)))",
                "[^\\w.-]*?",
                "^(0|[1-9][0-9]*)$",
                "\\u00e9\\x41",
                "a{2,5}b{0,10}?",
                "[a-zA-Z0-9_]+",
                "[-]",
                "[]",
                "[^]",
                "\\cA",
                "\\bword\\B",
                "\\/",
            ],
            &[
                "^(abc]", "(", ")", "a**", "[b-a]", "a{3,2}", "\\a", "(?i)a", "[", "]", "*a", "\\",
                "a{,3}", "(?#a)", "(?P<n>a)", "\\ud800",
            ],
        );
        check_narrower("regex", &["(?=a)", "(a)\\1", "(?<n>a)", "[b-z]", "((((a))))", "a{100}"]);
    }

    /// Texts along random ways through an automaton, the same ones every time.
    fn walks(language: &Dfa, n_walks: usize) -> Vec<String> {
        let mut seed = 7_u64;
        let mut below = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).unwrap() % n
        };
        // How far each state is from an end.
        let states = language.states();
        let mut distance: Vec<usize> =
            states.iter().map(|state| if state.accepting { 0 } else { usize::MAX }).collect();
        for _ in 0..states.len() {
            for (n, state) in states.iter().enumerate() {
                let next = state.edges.iter().map(|edge| distance[edge.2 as usize]).min();
                let next = next.unwrap_or(usize::MAX).saturating_add(1);
                distance[n] = distance[n].min(next);
            }
        }
        let mut walk = |length: usize| {
            let (mut text, mut at, mut n) = (String::new(), 0_usize, 0);
            loop {
                let (state, homeward) = (&states[at], n >= length);
                if state.accepting && (state.edges.is_empty() || homeward || below(9) == 0) {
                    return text;
                }
                let nearer = |to: u32| !homeward || distance[to as usize] < distance[at];
                let edges: Vec<_> = state.edges.iter().filter(|edge| nearer(edge.2)).collect();
                let &(first, last, to) = edges[below(edges.len())];
                let width = u32::from(last) - u32::from(first) + 1;
                let step = match below(4) {
                    0 => 0,
                    1 => width - 1,
                    _ => u32::try_from(below(width as usize)).unwrap(),
                };
                text.push(char::from_u32(u32::from(first) + step).unwrap_or(first));
                at = to as usize;
                n += 1;
            }
        };
        (0..n_walks).map(|n| walk([3, 10, 30, 80, 300][n % 5])).collect()
    }

    #[test]
    fn the_validator_accepts_whatever_a_language_has() {
        for name in names() {
            let (language, validator) = (format(name).unwrap(), validator(name));
            for text in walks(language, 3_000) {
                assert!(language.accepts(&text), "{name}: {text:?}");
                assert!(validator.is_valid(&Value::from(text.as_str())), "{name}: {text:?}");
            }
        }
    }

    #[test]
    fn our_own_reader_of_patterns_takes_whatever_regex_has() {
        for text in walks(format("regex").unwrap(), 1_000) {
            let refused = Dfa::pattern(&text).err();
            let too_large = matches!(refused, Some(crate::regular::PatternError::TooLarge(_)));
            assert!(refused.is_none() || too_large, "{text:?}: {refused:?}");
        }
    }

    #[test]
    fn automata_are_small() {
        let expected =
            [("date-time", 62), ("date", 29), ("time", 33), ("duration", 15), ("email", 835)];
        for (name, n_states) in expected {
            assert_eq!(format(name).unwrap().states().len(), n_states, "{name}");
        }
        assert!(names().all(|name| format(name).unwrap().states().len() < 1_100));
    }
}
