//! Two JSON values in; whether the leaderboard takes them for the same out.
//!
//! Its rules are defined over Python's values, and so are ours: a number without `.`, `e` or `E` is an integer
//! of any size, another one a double; in plain equality `1`, `1.0` and `true` are equal.

use serde_json::Value;

/// The JSON type of a value, integers apart from other numbers.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_str().contains(['.', 'e', 'E']) => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Plain equality.
pub(super) fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        _ => match (Number::of(a), Number::of(b)) {
            (Some(a), Some(b)) => a.equals(&b),
            _ => a == b,
        },
    }
}

/// Equality of values whose types are equal at every depth: 2 is not 2.0, true is not 1.
pub(super) fn is_identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_identical(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let same = |(key, a)| b.get(key).is_some_and(|b| is_identical(a, b));
            a.len() == b.len() && a.iter().all(same)
        }
        _ => kind(a) == kind(b) && is_equal(a, b),
    }
}

/// A text without what is taken for typography: blanks, marks, case, the kind of quotation mark.
pub(super) fn squash(text: &str) -> String {
    let kept = text.chars().filter(|c| !" ,./-_*^".contains(*c));
    kept.map(|c| if c == '\'' { '"' } else { c }).collect::<String>().to_lowercase()
}

/// Plain equality, texts squashed.
pub(super) fn is_alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => squash(a) == squash(b),
        _ => is_equal(a, b),
    }
}

/// An integer of any size as the nearest double; what is beyond all doubles stays.
pub(super) fn as_double(integer: &Value) -> Value {
    let double = integer.to_string().parse().ok().and_then(serde_json::Number::from_f64);
    double.map_or_else(|| integer.clone(), Value::Number)
}

enum Number {
    /// Its digits, with a minus where it is negative.
    Integer(String),
    Double(f64),
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(truth) => Some(Self::Integer(u8::from(*truth).to_string())),
            Value::Number(number) if kind(value) == "integer" => {
                Some(Self::Integer(without_zero_sign(number.as_str())))
            }
            Value::Number(number) => number.as_str().parse().ok().map(Self::Double),
            _ => None,
        }
    }

    #[expect(clippy::float_cmp, reason = "the rules say equal, not close")]
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Double(a), Self::Double(b)) => a == b,
            // A double is printed exactly, so that no digit of the integer is rounded away.
            (Self::Integer(a), Self::Double(b)) | (Self::Double(b), Self::Integer(a)) => {
                b.fract() == 0.0 && *a == without_zero_sign(&format!("{b:.0}"))
            }
        }
    }
}

fn without_zero_sign(digits: &str) -> String {
    if digits == "-0" { "0" } else { digits }.to_owned()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, expected: [bool; 3]) {
        let [a, b]: [Value; 2] = [a, b].map(|text| serde_json::from_str(text).unwrap());
        for (a, b) in [(&a, &b), (&b, &a)] {
            let found = [is_identical(a, b), is_equal(a, b), is_alike(a, b)];
            assert_eq!(found, expected, "{a} {b}");
        }
    }

    #[test]
    fn values_are_identical_equal_or_alike() {
        check("1", "1", [true; 3]);
        check("1", "1.0", [false, true, true]);
        check("1", "true", [false, true, true]);
        check("-0", "0.0", [false, true, true]);
        check("1e2", "100.0", [true; 3]);
        check("9007199254740993", "9007199254740992.0", [false; 3]);
        check("100000000000000000000000000000", "100000000000000000000000000001", [false; 3]);
        check("[1, {\"a\": true}]", "[1.0, {\"a\": 1}]", [false, true, true]);
        check("{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"a\": 1}", [true; 3]);
        check("{\"a\": 1}", "{\"a\": 1, \"b\": 2}", [false; 3]);
        check("\"St. Mary's\"", "\"st mary\\\"s\"", [false, false, true]);
        check("[\"A\"]", "[\"a\"]", [false; 3]);
        check("null", "false", [false; 3]);
    }
}
