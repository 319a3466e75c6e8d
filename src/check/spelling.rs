//! The spellings of a number or of a string that say the same.

use std::fmt::Write;

use super::document::Text;
use crate::grammar::recognize::Recognizer;

/// Plain digits longer than this are not written for an exponent.
const MAX_PLAIN: i64 = 1_000;

/// The spellings of a JSON number that have its exact value: as written, then plain digits without
/// and with a fraction, then with an exponent. No two are equal.
pub(super) fn numbers(written: &str) -> Vec<String> {
    let mut spellings = vec![written.to_owned()];
    let mut add = |spelling: String| {
        if !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    };
    let Some(Decimal { sign, digits, exponent }) = Decimal::parse(written) else {
        return spellings;
    };
    if digits.is_empty() {
        add("0".to_owned());
        add("0.0".to_owned());
        return spellings;
    }
    let n_digits = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    // The place of the point, counted from before the first digit.
    let point = n_digits.saturating_add(exponent);
    let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or_default());
    if exponent >= 0 && point <= MAX_PLAIN {
        let plain = format!("{sign}{digits}{}", zeros(exponent));
        add(plain.clone());
        add(plain + ".0");
    } else if (-MAX_PLAIN..0).contains(&exponent) {
        match usize::try_from(point) {
            Ok(point) if point > 0 => {
                add(format!("{sign}{}.{}", &digits[..point], &digits[point..]));
            }
            _ => add(format!("{sign}0.{}{digits}", zeros(-point))),
        }
    }
    let (first, others) = digits.split_at(1);
    let fraction = if others.is_empty() { String::new() } else { format!(".{others}") };
    add(format!("{sign}{first}{fraction}e{}", point.saturating_sub(1)));
    spellings
}

/// `digits` times ten to the `exponent`.
struct Decimal<'a> {
    /// `-` or nothing.
    sign: &'a str,
    /// Neither begins nor ends with `0`; empty for zero.
    digits: String,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// `None` where the exponent is beyond counting.
    fn parse(text: &'a str) -> Option<Self> {
        let (sign, unsigned) = text.split_at(usize::from(text.starts_with('-')));
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_end_matches('0');
        let n_zeros = i64::try_from(digits.len() - significant.len()).ok()?;
        let n_fraction = i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.checked_sub(n_fraction)?.checked_add(n_zeros)?;
        // Sums of it and a number of digits stay within bounds.
        (exponent.unsigned_abs() < 1 << 60).then(|| Self {
            sign,
            digits: significant.trim_start_matches('0').to_owned(),
            exponent,
        })
    }
}

/// The spellings of a string: the shortest, or where `at` does not take that, the one whose every
/// character is in the first spelling taken; then as written. No two are equal.
pub(super) fn strings(text: &Text, at: &Recognizer) -> Vec<String> {
    let mut spellings = Vec::new();
    if let Some(decoded) = &text.decoded {
        let shortest = shortest(decoded);
        if !at.accepts(shortest.as_bytes()) {
            spellings.extend(guided(decoded, at));
        }
        spellings.insert(0, shortest);
    }
    spellings.push(text.written.clone());
    let mut known = std::collections::HashSet::new();
    spellings.retain(|spelling| known.insert(spelling.clone()));
    spellings
}

fn shortest(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn guided(text: &str, at: &Recognizer) -> Option<String> {
    let mut at = at.clone();
    at.push(b'"').then_some(())?;
    let mut spelling = "\"".to_owned();
    for c in text.chars() {
        let taken = characters(c).into_iter().find(|form| at.push_all(form.as_bytes()).is_ok())?;
        spelling.push_str(&taken);
    }
    spelling.push('"');
    Some(spelling)
}

/// The spellings of a character in a string, the shortest first.
fn characters(c: char) -> Vec<String> {
    let short = match c {
        '"' => Some("\\\""),
        '\\' => Some("\\\\"),
        '/' => Some("\\/"),
        '\u{8}' => Some("\\b"),
        '\t' => Some("\\t"),
        '\n' => Some("\\n"),
        '\u{c}' => Some("\\f"),
        '\r' => Some("\\r"),
        _ => None,
    };
    let mut forms = Vec::with_capacity(4);
    if c >= ' ' && c != '"' && c != '\\' {
        forms.push(c.to_string());
    }
    forms.extend(short.map(str::to_owned));
    let mut units = [0; 2];
    let (mut lower, mut upper) = (String::new(), String::new());
    for unit in c.encode_utf16(&mut units) {
        // Writing to a String cannot fail.
        let _ = write!(lower, "\\u{unit:04x}");
        let _ = write!(upper, "\\u{unit:04X}");
    }
    forms.extend([lower, upper]);
    forms
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(written: &str, expected: &[&str]) {
        let mut all = vec![written];
        all.extend(expected);
        assert_eq!(super::numbers(written), all);
    }

    #[test]
    fn the_spellings_of_a_number_have_its_value() {
        check("1.0", &["1", "1e0"]);
        check("1", &["1.0", "1e0"]);
        check("1e3", &["1000", "1000.0"]);
        check("-1000", &["-1000.0", "-1e3"]);
        check("1E+03", &["1000", "1000.0", "1e3"]);
        check("5e-5", &["0.00005"]);
        check("0.00005", &["5e-5"]);
        check("2.50", &["2.5", "2.5e0"]);
        check("12.5e1", &["125", "125.0", "1.25e2"]);
        check("-0.1e1", &["-1", "-1.0", "-1e0"]);
        check("0", &["0.0"]);
        check("-0", &["0", "0.0"]);
        check("0e99999999999999999999", &[]);
        check(
            "123456789012345678901234567890.0",
            &["123456789012345678901234567890", "1.2345678901234567890123456789e29"],
        );
        check("1e999999999999", &[]);
        check("10e9223372036854775807", &[]);
        check("1e-2000", &[]);
    }
}
