//! JSON number text to an exact decimal number.
//!
//! **Invariant:** no floating point; every digit of the text is kept.
//! **Invariant:** one value has one representation: no leading zero of the integer part, no trailing
//! zero of the fraction, no negative zero. So `derive(PartialEq)` compares values.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::NumberError;

/// A decimal number, exactly.
///
/// ```
/// use call_me_maybe::regular::number::Decimal;
///
/// let thousand: Decimal = "1e3".parse()?;
/// assert_eq!(thousand, "1000.0".parse()?);
/// assert_eq!(thousand.to_string(), "1000");
/// # Ok::<(), call_me_maybe::regular::number::NumberError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    integer: String,
    fraction: String,
}

impl Decimal {
    /// Most digits of the integer part, and most of the fraction, once the exponent is applied.
    ///
    /// A double's smallest value has 324 zeros behind the point, its largest 309 digits before it.
    pub const DIGITS: usize = 400;

    /// Nothing.
    #[must_use]
    pub fn zero() -> Self {
        Self { negative: false, integer: "0".to_owned(), fraction: String::new() }
    }

    /// Whether there is no fraction.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.fraction.is_empty()
    }

    /// Whether this is nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.integer == "0" && self.fraction.is_empty()
    }

    /// Whether this is less than nothing.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The digits before the point; `0` where there are none.
    pub(super) fn integer_digits(&self) -> &[u8] {
        self.integer.as_bytes()
    }

    /// The digits behind the point, without trailing zeros.
    pub(super) fn fraction_digits(&self) -> &[u8] {
        self.fraction.as_bytes()
    }

    /// The number without its sign as `(digits, exponent)`, digits times ten to the exponent; no leading and
    /// no trailing zero in the digits, none at all for zero.
    pub(super) fn scientific(&self) -> (String, i32) {
        let all = format!("{}{}", self.integer, self.fraction);
        let significant = all.trim_end_matches('0');
        let exponent = all.len().abs_diff(significant.len());
        let exponent = i32::try_from(exponent).unwrap_or(i32::MAX)
            - i32::try_from(self.fraction.len()).unwrap_or(i32::MAX);
        (significant.trim_start_matches('0').to_owned(), exponent)
    }
}

impl FromStr for Decimal {
    type Err = NumberError;

    /// Reads the text of a JSON number.
    ///
    /// # Errors
    ///
    /// [`NumberError::Syntax`] and [`NumberError::TooManyDigits`].
    fn from_str(text: &str) -> Result<Self, NumberError> {
        let syntax = || NumberError::Syntax { text: text.to_owned() };
        let too_many = || NumberError::TooManyDigits { limit: Self::DIGITS };
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());

        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (integer, fraction) = match mantissa.split_once('.') {
            Some((integer, fraction)) if digits(fraction) => (integer, fraction),
            Some(_) => return Err(syntax()),
            None => (mantissa, ""),
        };
        if !digits(integer) || (integer.len() > 1 && integer.starts_with('0')) {
            return Err(syntax());
        }
        let shift = match exponent {
            None => 0,
            Some(exponent) => {
                let (sign, size) = match exponent.strip_prefix('-') {
                    Some(size) => (-1, size),
                    None => (1, exponent.strip_prefix('+').unwrap_or(exponent)),
                };
                if !digits(size) {
                    return Err(syntax());
                }
                // One that overflows is too many digits unless there are none to shift.
                sign * size.parse::<i64>().unwrap_or(i64::MAX)
            }
        };

        let all = format!("{integer}{fraction}");
        let significant = all.trim_start_matches('0');
        if significant.is_empty() {
            return Ok(Self::zero());
        }
        let significant = significant.trim_end_matches('0');
        // Where the point stands, counted from the first significant digit.
        let leading = all.len() - all.trim_start_matches('0').len();
        let point = (|| {
            let point = i64::try_from(integer.len()).ok()? - i64::try_from(leading).ok()?;
            point.checked_add(shift)
        })()
        .ok_or_else(too_many)?;
        let len = i64::try_from(significant.len()).map_err(|_| too_many())?;
        let limit = i64::try_from(Self::DIGITS).map_err(|_| too_many())?;
        if point > limit || len.saturating_sub(point) > limit {
            return Err(too_many());
        }
        let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or(0));
        let (integer, fraction) = if point <= 0 {
            ("0".to_owned(), zeros(-point) + significant)
        } else if point >= len {
            (significant.to_owned() + &zeros(point - len), String::new())
        } else {
            let (integer, fraction) =
                significant.split_at(usize::try_from(point).map_err(|_| too_many())?);
            (integer.to_owned(), fraction.to_owned())
        };
        Ok(Self { negative, integer, fraction })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(f, "{sign}{}", self.integer)?;
        if self.fraction.is_empty() { Ok(()) } else { write!(f, ".{}", self.fraction) }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |a: &Self, b: &Self| {
            (a.integer.len(), &a.integer, &a.fraction).cmp(&(
                b.integer.len(),
                &b.integer,
                &b.fraction,
            ))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that goes wrong shall say so and stop")]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<Decimal>() {
            Ok(number) => number.to_string(),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn every_spelling_has_one_plain_form() {
        check("0", "0");
        check("-0.00e7", "0");
        check("1e3", "1000");
        check("0.25", "0.25");
        check("-7", "-7");
        check("1E-4", "0.0001");
        check("1.50", "1.5");
        check("12.5e1", "125");
        check("12.5e+0", "12.5");
        check("0.00120e4", "12");
        check("0.00120e3", "1.2");
        check("100e-2", "1");
        check("123456789012345678901234567890", "123456789012345678901234567890");
        check("0e99999999999999999999", "0");
    }

    #[test]
    fn what_json_does_not_know_is_refused() {
        for text in ["", "-", "01", "+1", ".5", "1.", "1e", "1e+", "1 ", "0x1", "1.2.3", "--1", "∞"]
        {
            check(text, &format!("error: {text:?} is not a JSON number"));
        }
    }

    #[test]
    fn absurd_exponents_are_refused() {
        for text in ["1e400", "1e-401", "1e99999999999999999999", "1e-99999999999999999999"] {
            check(text, "error: a number of more than 400 digits");
        }
        check("1e399", &format!("1{}", "0".repeat(399)));
        check("-1e-400", &format!("-0.{}1", "0".repeat(399)));
    }

    #[test]
    fn order_is_that_of_the_values() {
        let sorted = [
            "-1e30", "-100", "-99.5", "-2", "-1.01", "-1", "-0.5", "-0.25", "0", "0.05", "0.5",
            "0.51", "1", "1.5", "9", "10", "99", "100", "1e30",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                let (a, b): (Decimal, Decimal) = (a.parse().unwrap(), b.parse().unwrap());
                assert_eq!(a.cmp(&b), i.cmp(&j), "{a} and {b}");
            }
        }
    }

    #[test]
    fn digits_and_exponent() {
        let check = |text: &str, digits: &str, exponent: i32| {
            let number: Decimal = text.parse().unwrap();
            assert_eq!(number.scientific(), (digits.to_owned(), exponent), "{text}");
        };
        check("100", "1", 2);
        check("2.50", "25", -1);
        check("0.01", "1", -2);
        check("-70", "7", 1);
    }
}
