//! Number bounds and divisors to the regular language of the JSON texts that satisfy them.
//!
//! A text is read digit by digit. Against a bound it is enough to know how many digits of the integer
//! part were read and how these compare with as many of the bound's own; against `multipleOf`, the
//! remainder so far. Both fit in a state, so the languages are exact for bounds of any size.
//!
//! - Without bounds, or with bounds of zero alone, a `number` may have an exponent: it moves the point, not
//!   the sign, and zero stays zero.
//! - With any other bound or with `multipleOf` it is a plain decimal: no exponent.
//! - An `integer` is digits alone and never `-0`.
//! - `-0`, `-0.0` and the like are a `number` only where there is no minimum and no `multipleOf`, and no
//!   maximum but zero.
//!
//! **Invariant:** no floating point.
//! **Invariant:** every text of a language is JSON, and its value satisfies the bounds and the divisors.
//! **Invariant:** every value that satisfies them has a text.

mod decimal;
mod reading;

use std::cmp::Ordering;

use super::{Dfa, TooLarge};
use reading::{Divisor, Form, Reading};

pub use decimal::Decimal;

/// Largest divisor of `multipleOf`, its trailing zeros and its point left out.
///
/// The states of the automaton are the remainders, so 7, 0.25 and 86400 are well within, 10007 is not.
pub const DIVISOR_LIMIT: u32 = 4_096;

/// Why numbers have no automaton.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumberError {
    /// Not the text of a JSON number.
    #[error("{text:?} is not a JSON number")]
    Syntax {
        /// The text.
        text: String,
    },
    /// The exponent, or the text, asks for too many digits.
    #[error("a number of more than {limit} digits")]
    TooManyDigits {
        /// Most digits on one side of the point.
        limit: usize,
    },
    /// A divisor that is zero or less.
    #[error("multipleOf {divisor} is not greater than zero")]
    NotPositive {
        /// The divisor.
        divisor: String,
    },
    /// A divisor with too many remainders.
    #[error("multipleOf {divisor} has more than {limit} remainders", limit = DIVISOR_LIMIT)]
    DivisorTooLarge {
        /// The divisor.
        divisor: String,
    },
    /// Bounds and divisors that together need too many states.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// One end of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The number at the end.
    pub value: Decimal,
    /// Whether the number itself is outside.
    pub exclusive: bool,
}

impl Bound {
    /// An end that belongs to the interval.
    #[must_use]
    pub fn inclusive(value: Decimal) -> Self {
        Self { value, exclusive: false }
    }

    /// An end that does not.
    #[must_use]
    pub fn exclusive(value: Decimal) -> Self {
        Self { value, exclusive: true }
    }
}

/// All numbers between two ends, either of which may be missing.
///
/// Nothing is between ends that contradict each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interval {
    /// `minimum` or `exclusiveMinimum`.
    pub min: Option<Bound>,
    /// `maximum` or `exclusiveMaximum`.
    pub max: Option<Bound>,
}

impl Interval {
    /// Whether a number is between the ends.
    #[must_use]
    pub fn contains(&self, value: &Decimal) -> bool {
        self.min.as_ref().is_none_or(|min| match value.cmp(&min.value) {
            Ordering::Less => false,
            Ordering::Equal => !min.exclusive,
            Ordering::Greater => true,
        }) && self.max.as_ref().is_none_or(|max| match value.cmp(&max.value) {
            Ordering::Less => true,
            Ordering::Equal => !max.exclusive,
            Ordering::Greater => false,
        })
    }

    /// The part that is in another interval too.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        // Of two equal ends, the exclusive one is narrower.
        let tighter = |a: &Option<Bound>, b: &Option<Bound>, wins: Ordering| match (a, b) {
            (Some(a), Some(b)) => {
                let order = a.value.cmp(&b.value);
                let first = order == wins || (order == Ordering::Equal && a.exclusive);
                Some(if first { a.clone() } else { b.clone() })
            }
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        Self {
            min: tighter(&self.min, &other.min, Ordering::Greater),
            max: tighter(&self.max, &other.max, Ordering::Less),
        }
    }

    /// Whether both ends are missing or zero, so that an exponent cannot matter.
    fn is_about_signs(&self) -> bool {
        [&self.min, &self.max].iter().all(|end| end.as_ref().is_none_or(|e| e.value.is_zero()))
    }
}

/// The integers of an interval that are multiples of every divisor.
///
/// ```
/// use call_me_maybe::regular::number::{self, Bound, Interval};
///
/// let port = Interval {
///     min: Some(Bound::inclusive("1024".parse()?)),
///     max: Some(Bound::inclusive("65535".parse()?)),
/// };
/// let ports = number::integers(&port, &[])?;
/// assert!(ports.accepts("8080") && !ports.accepts("80") && !ports.accepts("65536"));
/// # Ok::<(), number::NumberError>(())
/// ```
///
/// # Errors
///
/// [`NumberError::NotPositive`] and [`NumberError::DivisorTooLarge`] for a divisor,
/// [`NumberError::TooLarge`] for an automaton out of bounds.
pub fn integers(interval: &Interval, multiples: &[Decimal]) -> Result<Dfa, NumberError> {
    of_kind(interval, multiples, Form::Integer)
}

/// The numbers of an interval that are multiples of every divisor.
///
/// # Errors
///
/// As those of [`integers`].
pub fn numbers(interval: &Interval, multiples: &[Decimal]) -> Result<Dfa, NumberError> {
    let exponent = multiples.is_empty() && interval.is_about_signs();
    of_kind(interval, multiples, if exponent { Form::Exponent } else { Form::Plain })
}

/// The plain spellings of one value: digits, and for a `number` any zeros behind the fraction too.
///
/// An integer has one, a number that is none has none when `integer` is asked for. `-0` is not among them.
///
/// # Errors
///
/// [`NumberError::TooLarge`] only in theory: a value has at most as many states as digits and a few more.
pub fn value_language(value: &Decimal, integer: bool) -> Result<Dfa, NumberError> {
    let end = || Some(Bound::inclusive(value.clone()));
    let form = if integer { Form::Integer } else { Form::Plain };
    of_kind(&Interval { min: end(), max: end() }, &[], form)
}

/// What is left of a language of numbers when one value is taken out in all its spellings.
///
/// The spellings of zero are regular, with an exponent too. Those of another value are not, so with an
/// exponent nothing is left: the rest are plain decimals, without `-0`.
///
/// # Errors
///
/// [`NumberError::TooLarge`].
pub fn without(numbers: &Dfa, value: &Decimal) -> Result<Dfa, NumberError> {
    if value.is_zero() {
        let up_to =
            |end: Bound| of_kind(&Interval { min: None, max: Some(end) }, &[], Form::Exponent);
        let zeros = up_to(Bound::inclusive(Decimal::zero()))?
            .minus(&up_to(Bound::exclusive(Decimal::zero()))?)?;
        return Ok(numbers.minus(&zeros)?);
    }
    let plain = of_kind(&Interval::default(), &[], Form::Plain)?;
    Ok(numbers.intersect(&plain)?.minus(&value_language(value, false)?)?)
}

/// The texts of a form whose values are in the interval and multiples of every divisor.
fn of_kind(interval: &Interval, multiples: &[Decimal], form: Form) -> Result<Dfa, NumberError> {
    let divisors: Vec<Divisor> = multiples.iter().map(Divisor::new).collect::<Result<_, _>>()?;
    let one = |interval: &Interval, divisor: Option<Divisor>| -> Result<Dfa, NumberError> {
        let reading = Reading::new(interval, divisor, form);
        Ok(Dfa::from_states(reading.states()?))
    };
    let mut divisors = divisors.into_iter();
    let mut all = one(interval, divisors.next())?;
    for divisor in divisors {
        all = all.intersect(&one(&Interval::default(), Some(divisor))?)?;
    }
    Ok(all)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that goes wrong shall say so and stop")]
mod tests {
    use super::*;

    /// A sequence of numbers that looks random and is the same every time.
    struct Sequence(u64);

    impl Sequence {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % n
        }

        fn between(&mut self, low: i64, high: i64) -> i64 {
            let width = u64::try_from(high - low + 1).unwrap();
            low + i64::try_from(self.below(width)).unwrap()
        }
    }

    /// `[1,5)` and the like; an end may be missing.
    fn interval(text: &str) -> Interval {
        let (low, high) = text[1..text.len() - 1].split_once(',').unwrap();
        let end = |value: &str, exclusive: bool| {
            (!value.is_empty()).then(|| Bound { value: value.parse().unwrap(), exclusive })
        };
        Interval { min: end(low, text.starts_with('(')), max: end(high, text.ends_with(')')) }
    }

    fn decimals(texts: &[&str]) -> Vec<Decimal> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// `thousandths` as a text with `n_places` places.
    fn thousandths(value: i64, n_places: u32) -> String {
        let sign = if value < 0 { "-" } else { "" };
        let size = value.unsigned_abs();
        let text = format!("{sign}{}.{:03}", size / 1_000, size % 1_000);
        match n_places {
            0 => text[..text.len() - 4].to_owned(),
            n => text[..text.len() - 3 + n as usize].to_owned(),
        }
    }

    /// Whether a number of thousandths is in the interval, by integer arithmetic.
    fn inside(value: i64, interval: &Interval) -> bool {
        let of = |bound: &Bound| -> i64 {
            let text = bound.value.to_string();
            let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
            format!("{integer}{fraction:0<3}").parse().unwrap()
        };
        let exclusive = |bound: &Bound| i64::from(bound.exclusive);
        interval.min.as_ref().is_none_or(|min| value >= of(min) + exclusive(min))
            && interval.max.as_ref().is_none_or(|max| value <= of(max) - exclusive(max))
    }

    #[test]
    fn integers_agree_with_arithmetic() {
        let mut sequence = Sequence(1);
        for round in 0..400 {
            let mut end = || {
                let places = if round % 4 == 0 { 3 } else { 0 };
                let value = sequence.between(-1_100_000, 1_100_000);
                (sequence.below(6) > 0).then(|| Bound {
                    value: thousandths(value, places).parse().unwrap(),
                    exclusive: sequence.below(2) == 0,
                })
            };
            let interval = Interval { min: end(), max: end() };
            let divisor = match sequence.below(3) {
                0 => sequence.between(1, 120),
                _ => 1,
            };
            let dfa = integers(&interval, &decimals(&[&divisor.to_string()])).unwrap();
            for value in -1_200..=1_200 {
                let expected = inside(value * 1_000, &interval) && value % divisor == 0;
                let text = value.to_string();
                assert_eq!(dfa.accepts(&text), expected, "{text} in {interval:?} of {divisor}");
            }
            for text in ["-0", "007", "1.0", "1e2", "+1", "", "-"] {
                assert!(!dfa.accepts(text), "{text} in {interval:?}");
            }
        }
    }

    #[test]
    fn decimals_agree_with_arithmetic() {
        let mut sequence = Sequence(2);
        for _ in 0..200 {
            let mut end = || {
                let value = sequence.between(-1_300, 1_300);
                let places = u32::try_from(sequence.below(4)).unwrap();
                (sequence.below(6) > 0).then(|| Bound {
                    value: thousandths(value, places).parse().unwrap(),
                    exclusive: sequence.below(2) == 0,
                })
            };
            let interval = Interval { min: end(), max: end() };
            let divisor = match sequence.below(3) {
                0 => sequence.between(1, 700),
                1 => [1_000, 500, 250, 10, 2_500][usize::try_from(sequence.below(5)).unwrap()],
                _ => 0,
            };
            let text = [thousandths(divisor, 3)];
            let divisors: &[&str] = if divisor == 0 { &[] } else { &[&text[0]] };
            let dfa = numbers(&interval, &decimals(divisors)).unwrap();
            for value in -1_500_i64..=1_500 {
                for places in 0..=3 {
                    if value % 10_i64.pow(3 - places) != 0 {
                        continue;
                    }
                    let expected =
                        inside(value, &interval) && (divisor == 0 || value % divisor == 0);
                    let text = thousandths(value, places);
                    let case = || format!("{text} in {interval:?} of {divisor}");
                    assert_eq!(dfa.accepts(&text), expected, "{}", case());
                    if places > 0 {
                        assert_eq!(dfa.accepts(&format!("{text}00")), expected, "{}", case());
                    }
                    assert!(!dfa.accepts(&format!("0{text}")), "{}", case());
                    assert!(!dfa.accepts(&format!("{text}.")), "{}", case());
                }
            }
        }
    }

    #[track_caller]
    fn check(integer: bool, bounds: &str, divisors: &[&str], yes: &[&str], no: &[&str]) {
        let make = if integer { integers } else { numbers };
        let dfa = make(&interval(bounds), &decimals(divisors)).unwrap();
        for text in yes {
            assert!(dfa.accepts(text), "{text} is in {bounds} of {divisors:?}");
        }
        for text in no {
            assert!(!dfa.accepts(text), "{text} is not in {bounds} of {divisors:?}");
        }
    }

    #[test]
    fn integers_of_any_size() {
        check(
            true,
            "[-9223372036854775808,9223372036854775807]",
            &[],
            &["-9223372036854775808", "9223372036854775807", "0", "-1", "999999999999999999"],
            &["-9223372036854775809", "9223372036854775808", "10000000000000000000", "-0"],
        );
        check(
            true,
            "(123456789012345678901234567890,]",
            &[],
            &["123456789012345678901234567891", "1000000000000000000000000000000"],
            &["123456789012345678901234567890", "99999999999999999999999999999", "0"],
        );
        check(true, "[,0]", &[], &["0", "-1", "-10"], &["1", "-0"]);
        check(true, "(0,]", &[], &["1", "10"], &["0", "-1"]);
        check(true, "[0.5,2.5]", &[], &["1", "2"], &["0", "3"]);
        check(true, "[-2.5,-0.5]", &[], &["-1", "-2"], &["0", "-3", "-0"]);
    }

    #[test]
    fn multiples() {
        check(true, "[,]", &["5"], &["0", "-5", "10", "1005"], &["1", "-4", "51", "-0"]);
        check(true, "[,]", &["100"], &["0", "-100", "1200"], &["10", "50", "1250"]);
        check(true, "[,]", &["2.5"], &["0", "5", "-10"], &["2", "3", "25.0"]);
        check(true, "[,]", &["4", "6"], &["0", "12", "-24"], &["4", "6", "8"]);
        check(true, "[1,]", &["86400"], &["86400", "864000"], &["0", "86401", "-86400"]);
        check(true, "[,]", &["200"], &["0", "200", "1000"], &["20", "100", "210"]);
        check(false, "[,]", &["0.01"], &["1", "0.25", "-0.250", "3.00"], &["0.125", "1e2"]);
        check(false, "[,]", &["0.5"], &["1", "0.5", "-7.50"], &["0.25", "0.55"]);
        check(false, "[0,10]", &["2.5"], &["0", "2.5", "5.0", "10"], &["-2.5", "12.5", "1"]);
        check(false, "[,]", &["30"], &["30", "-60.0"], &["10", "3", "30.5"]);
        check(false, "[,]", &["0.1", "0.25"], &["0.5", "1"], &["0.1", "0.25", "0.75"]);
    }

    #[test]
    fn without_bounds_an_exponent_is_legal() {
        let yes = ["0", "-0", "-0.0e-7", "12.5E+3", "1e400"];
        check(false, "[,]", &[], &yes, &["01", "1.", "1e", "e1", "-", ".5", "1e+", "1e1.5"]);
    }

    #[test]
    fn bounds_of_zero_are_about_signs() {
        check(false, "[0,]", &[], &["0", "0.0e9", "1e-400", "2.5"], &["-0", "-1"]);
        check(false, "(0,]", &[], &["1", "0.01e-7", "0.5"], &["0", "0.00", "0e5", "-1"]);
        check(false, "[,0]", &[], &["0", "-0", "-1e5", "0.0e1"], &["0.1", "1"]);
        check(false, "[,0)", &[], &["-1e5", "-0.1"], &["0", "-0", "-0.0e9", "1"]);
        check(false, "[0,0]", &[], &["0", "0.00", "0E-1"], &["-0", "1", "-1"]);
    }

    #[test]
    fn other_bounds_leave_no_exponent() {
        check(false, "[0,1]", &[], &["0", "1", "1.00", "0.999"], &["1.001", "1e0", "-0", "-0.0"]);
        check(false, "[-90,90]", &[], &["-90.0", "90", "0", "-0.5"], &["90.1", "-90.01", "-0"]);
        check(false, "(-0.5,]", &[], &["-0.49", "1000"], &["-0.5", "-0.50", "-1"]);
    }

    #[test]
    fn ends_that_contradict_each_other_leave_nothing() {
        for bounds in ["[2,1]", "(1,1]", "[1,1)", "(0,0]", "[0,0)", "[0,-0.5]"] {
            assert!(integers(&interval(bounds), &[]).unwrap().is_empty(), "{bounds}");
            assert!(numbers(&interval(bounds), &[]).unwrap().is_empty(), "{bounds}");
        }
        assert!(integers(&interval("(1,2)"), &[]).unwrap().is_empty());
        assert!(integers(&interval("[1,4]"), &decimals(&["5"])).unwrap().is_empty());
    }

    #[test]
    fn intervals_meet() {
        let check = |a: &str, b: &str, expected: &str| {
            assert_eq!(interval(a).and(&interval(b)), interval(expected), "{a} {b}");
            assert_eq!(interval(b).and(&interval(a)), interval(expected), "{b} {a}");
        };
        check("[1,5]", "(1,6]", "(1,5]");
        check("[,5)", "[0,5]", "[0,5)");
        check("[,]", "(2,]", "(2,]");
        check("[1,2]", "[3,4]", "[3,2]");
    }

    #[test]
    fn bad_divisors_are_errors() {
        let check = |divisor: &str, expected: &str| {
            let error = integers(&Interval::default(), &decimals(&[divisor])).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check("0", "multipleOf 0 is not greater than zero");
        check("-2", "multipleOf -2 is not greater than zero");
        check("10007", "multipleOf 10007 has more than 4096 remainders");
        check("0.123456", "multipleOf 0.123456 has more than 4096 remainders");
        let wide = interval("[0,123456789012345678901234567890]");
        assert_eq!(integers(&wide, &decimals(&["4093"])), Err(NumberError::TooLarge(TooLarge)));
    }

    #[test]
    fn one_value_in_its_plain_spellings() {
        let check = |value: &str, integer: bool, expected: &[&str], others: &[&str]| {
            let dfa = value_language(&value.parse().unwrap(), integer).unwrap();
            assert!(expected.iter().all(|text| dfa.accepts(text)), "{value}");
            assert!(!others.iter().any(|text| dfa.accepts(text)), "{value}");
        };
        check("1", true, &["1"], &["1.0", "10", "-1", "01"]);
        check("1e2", true, &["100"], &["100.0", "1e2"]);
        check("1.5", true, &[], &["1", "1.5", "2"]);
        check("1", false, &["1", "1.0", "1.00"], &["1.01", "1e0", "-1"]);
        check("-2.50", false, &["-2.5", "-2.500"], &["2.5", "-2.51", "-2"]);
        check("0", false, &["0", "0.0"], &["-0", "0.1"]);
        assert!(value_language(&"1.5".parse().unwrap(), true).unwrap().is_empty());
    }

    #[test]
    fn a_value_can_be_taken_out() {
        let all = numbers(&Interval::default(), &[]).unwrap();
        let check = |value: &str, yes: &[&str], no: &[&str]| {
            let dfa = without(&all, &value.parse().unwrap()).unwrap();
            assert!(yes.iter().all(|text| dfa.accepts(text)), "{value}");
            assert!(!no.iter().any(|text| dfa.accepts(text)), "{value}");
        };
        check("1", &["0", "-1", "1.01", "10", "11"], &["1", "1.0", "1e0", "10e-1", "5e3"]);
        check("0", &["1", "-0.5e9", "1e0"], &["0", "0.0", "-0", "-0.00", "0e7", "0.0E-1"]);
        check("-2.5", &["2.5", "-2.51", "-2"], &["-2.5", "-2.500"]);
        let digits = integers(&interval("[0,9]"), &[]).unwrap();
        let rest = without(&without(&digits, &decimals(&["7"])[0]).unwrap(), &Decimal::zero());
        assert_eq!(rest.unwrap().strings(20).unwrap(), ["1", "2", "3", "4", "5", "6", "8", "9"]);
    }

    #[test]
    fn the_validator_agrees() {
        let texts = [
            "0",
            "-0",
            "0.0",
            "1",
            "1.0",
            "-1",
            "2.5",
            "-2.50",
            "0.07",
            "1.13",
            "99.99",
            "100.005",
            "1e3",
            "1e-3",
            "1e400",
            "1e-400",
            "-1e-400",
            "0e5",
            "255",
            "256",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775809",
            "123456789012345678901234567890",
            "0.1000000000000000000000000000001",
            "86400",
            "172800.0",
        ];
        let check = |bounds: &str, divisors: &[&str]| {
            let interval = interval(bounds);
            let mut schema = serde_json::Map::new();
            let ends = [("inimum", "Minimum", &interval.min), ("aximum", "Maximum", &interval.max)];
            for (inclusive, exclusive, end) in ends {
                let Some(bound) = end else { continue };
                let name = if bound.exclusive {
                    format!("exclusive{exclusive}")
                } else {
                    format!("m{inclusive}")
                };
                let value = serde_json::from_str(&bound.value.to_string()).unwrap();
                schema.insert(name, value);
            }
            if let [divisor] = divisors {
                schema.insert("multipleOf".to_owned(), serde_json::from_str(divisor).unwrap());
            }
            let validator = jsonschema::validator_for(&schema.into()).unwrap();
            let dfa = numbers(&interval, &decimals(divisors)).unwrap();
            for text in texts {
                let valid = validator.is_valid(&serde_json::from_str(text).unwrap());
                // Narrower where an exponent or a negative zero would be needed.
                let narrower = text.contains('e') || text == "-0";
                let accepted = dfa.accepts(text);
                assert!(
                    accepted == valid || (valid && narrower),
                    "{text} in {bounds} of {divisors:?}"
                );
            }
        };
        for bounds in
            ["[,]", "[0,]", "(0,]", "[,0]", "[,0)", "[0,0]", "[0,1]", "(-2.5,255)", "[0.07,99.99]"]
        {
            check(bounds, &[]);
        }
        check("[,9223372036854775807]", &[]);
        check("(9223372036854775807,]", &[]);
        check("[0.1,0.1000000000000000000000000000001]", &[]);
        for divisor in ["1", "0.01", "0.5", "2.5", "0.0001", "86400", "1000"] {
            check("[,]", &[divisor]);
        }
    }

    #[test]
    fn automata_of_typical_bounds_are_small() {
        let check = |integer: bool, bounds: &str, divisors: &[&str], n_states: usize| {
            let make = if integer { integers } else { numbers };
            let dfa = make(&interval(bounds), &decimals(divisors)).unwrap();
            assert_eq!(dfa.states().len(), n_states, "{bounds} {divisors:?}");
        };
        check(true, "[1,100]", &[], 5);
        check(true, "[0,255]", &[], 6);
        check(true, "[1024,65535]", &[], 16);
        check(true, "[-9223372036854775808,9223372036854775807]", &[], 57);
        check(true, "[,]", &["5"], 5);
        check(true, "[,]", &["7"], 10);
        check(true, "[0,1000]", &["100"], 7);
        check(false, "[0,]", &[], 8);
        check(false, "(0,]", &[], 9);
        check(false, "[0,1]", &[], 7);
        check(false, "[-90,90]", &[], 12);
        check(false, "[,]", &["0.01"], 10);
        check(false, "[,]", &["0.5"], 8);
    }
}
