//! What a reader of a number's text has to remember, as the states of an automaton.
//!
//! **Invariant:** only this file knows how a number is spelled in JSON.
//! **Invariant:** a state holds counts and comparisons, never digits of the text, so their number grows
//! with the digits of the bounds and with the divisor, not with the text.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Bound, DIVISOR_LIMIT, Decimal, Interval, NumberError};
use crate::regular::{LIMIT, State, TooLarge};

/// How numbers may be spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Digits alone.
    Integer,
    /// With a fraction.
    Plain,
    /// With a fraction and an exponent; the bounds are zero or missing, and there is no divisor.
    Exponent,
}

/// A divisor in powers of ten: `factor` times ten to the `exponent`, the factor no multiple of ten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Divisor {
    factor: u32,
    exponent: i32,
}

impl Divisor {
    /// Takes a divisor apart.
    ///
    /// # Errors
    ///
    /// [`NumberError::NotPositive`] and [`NumberError::DivisorTooLarge`].
    pub(super) fn new(divisor: &Decimal) -> Result<Self, NumberError> {
        if divisor.is_negative() || divisor.is_zero() {
            return Err(NumberError::NotPositive { divisor: divisor.to_string() });
        }
        let (digits, exponent) = divisor.scientific();
        match digits.parse() {
            Ok(factor) if factor <= DIVISOR_LIMIT => Ok(Self { factor, exponent }),
            _ => Err(NumberError::DivisorTooLarge { divisor: divisor.to_string() }),
        }
    }

    /// The integer digits that a multiple has to end on as zeros.
    fn zeros(self) -> u32 {
        u32::try_from(self.exponent).unwrap_or(0)
    }

    /// The fraction digits that a multiple may have before zeros only.
    fn places(self) -> u32 {
        u32::try_from(-self.exponent).unwrap_or(0)
    }

    fn after(self, remainder: u32, digit: u8) -> u32 {
        (remainder * 10 + u32::from(digit)) % self.factor
    }
}

/// The remainder of what was read by a divisor's factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Remainder {
    value: u32,
    /// In the integer part, zeros read since the remainder became zero, as far as they matter;
    /// in the fraction, places read, as far as they matter.
    count: u32,
}

/// The size of a bound, digit by digit.
#[derive(Debug)]
struct Limit {
    integer: Vec<u8>,
    fraction: Vec<u8>,
    /// Whether a text of the same size is outside.
    exclusive: bool,
}

impl Limit {
    fn new(bound: &Bound) -> Self {
        Self {
            integer: bound.value.integer_digits().to_vec(),
            fraction: bound.value.fraction_digits().to_vec(),
            exclusive: bound.exclusive,
        }
    }
}

/// How what was read compares with as many digits of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Compared {
    order: Ordering,
    /// Digits read of the part that is being read, as far as they matter.
    digits: usize,
}

impl Compared {
    const START: Self = Self { order: Ordering::Equal, digits: 0 };

    fn integer_digit(self, limit: &Limit, digit: u8) -> Self {
        match limit.integer.get(self.digits) {
            Some(own) => Self { order: self.order.then(digit.cmp(own)), digits: self.digits + 1 },
            // A longer integer part is larger, whatever its digits.
            None => Self { order: Ordering::Greater, digits: limit.integer.len() },
        }
    }

    /// The integer part is complete.
    fn point(self, limit: &Limit) -> Self {
        let order = self.digits.cmp(&limit.integer.len()).then(self.order);
        Self { order, digits: 0 }
    }

    fn fraction_digit(self, limit: &Limit, digit: u8) -> Self {
        if self.order != Ordering::Equal {
            return self;
        }
        let own = limit.fraction.get(self.digits);
        let order = digit.cmp(own.unwrap_or(&b'0'));
        let digits = self.digits + usize::from(own.is_some() && order == Ordering::Equal);
        Self { order, digits: if order == Ordering::Equal { digits } else { 0 } }
    }

    /// The fraction is complete: what the bound has more makes it larger, since it ends on no zero.
    fn end(self, limit: &Limit) -> Ordering {
        let rest =
            if self.digits < limit.fraction.len() { Ordering::Less } else { Ordering::Equal };
        self.order.then(rest)
    }
}

/// What is legal on one side of zero.
#[derive(Debug)]
struct Side {
    /// Whether zero may be written with this side's sign.
    zero: bool,
    /// Whether anything else may.
    others: bool,
    low: Option<Limit>,
    high: Option<Limit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Start,
    Minus,
    /// The integer part is `0`, so no digit may follow.
    Zero,
    Integer,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

/// All that matters of the text so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Seen {
    part: Part,
    negative: bool,
    /// Whether a digit other than `0` was read where that matters.
    nonzero: bool,
    low: Compared,
    high: Compared,
    remainder: Remainder,
}

/// What a text is read for.
#[derive(Debug)]
pub(super) struct Reading {
    form: Form,
    positive: Side,
    negative: Side,
    divisor: Option<Divisor>,
}

impl Reading {
    /// A reading for the numbers of an interval that are multiples of a divisor.
    pub(super) fn new(interval: &Interval, divisor: Option<Divisor>, form: Form) -> Self {
        let zero = interval.contains(&Decimal::zero());
        let sign =
            |end: &Option<Bound>| end.as_ref().map(|bound| bound.value.cmp(&Decimal::zero()));
        let beyond = |end: &Option<Bound>, side: Ordering| {
            end.as_ref().filter(|bound| bound.value.cmp(&Decimal::zero()) == side).map(Limit::new)
        };
        let (min, max) = (&interval.min, &interval.max);
        Self {
            form,
            positive: Side {
                zero,
                others: sign(max).is_none_or(Ordering::is_gt),
                low: beyond(min, Ordering::Greater),
                high: beyond(max, Ordering::Greater),
            },
            negative: Side {
                zero: zero && form == Form::Exponent && min.is_none(),
                others: sign(min).is_none_or(Ordering::is_lt),
                low: beyond(max, Ordering::Less),
                high: beyond(min, Ordering::Less),
            },
            divisor,
        }
    }

    /// The states of the automaton, the start first.
    ///
    /// # Errors
    ///
    /// [`TooLarge`].
    pub(super) fn states(&self) -> Result<Vec<State>, TooLarge> {
        const TEXT: &[u8] = b"+-.0123456789Ee";
        let start = Seen {
            part: Part::Start,
            negative: false,
            nonzero: false,
            low: Compared::START,
            high: Compared::START,
            remainder: Remainder { value: 0, count: self.divisor.map_or(0, Divisor::zeros) },
        };
        let mut numbers = HashMap::from([(start, 0)]);
        let mut open = vec![start];
        let mut states = Vec::new();
        while let Some(&seen) = open.get(states.len()) {
            let mut edges: Vec<(char, char, u32)> = Vec::new();
            for &byte in TEXT {
                let Some(next) = self.read(seen, byte) else { continue };
                let n_known = open.len();
                let target = match numbers.entry(next) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        open.push(next);
                        *new.insert(u32::try_from(n_known).unwrap_or(u32::MAX))
                    }
                };
                let read = char::from(byte);
                match edges.last_mut() {
                    Some((_, last, to))
                        if *to == target && u32::from(*last) + 1 == u32::from(read) =>
                    {
                        *last = read;
                    }
                    _ => edges.push((read, read, target)),
                }
            }
            if open.len() > LIMIT {
                return Err(TooLarge);
            }
            states.push(State { accepting: self.accepts(seen), edges });
        }
        Ok(states)
    }

    fn side(&self, seen: Seen) -> &Side {
        if seen.negative { &self.negative } else { &self.positive }
    }

    /// What is known after one more character; `None` where no number goes on with it.
    fn read(&self, seen: Seen, byte: u8) -> Option<Seen> {
        let to = |part: Part| Some(Seen { part, ..seen });
        match (seen.part, byte) {
            (Part::Start, b'-') if self.negative.zero || self.negative.others => {
                Some(Seen { part: Part::Minus, negative: true, ..seen })
            }
            (Part::Start | Part::Minus, b'0') => self.integer_digit(seen, byte, Part::Zero),
            (Part::Start | Part::Minus | Part::Integer, b'0'..=b'9') => {
                self.integer_digit(seen, byte, Part::Integer)
            }
            (Part::Zero | Part::Integer, b'.') if self.form != Form::Integer => self.point(seen),
            (Part::Point | Part::Fraction, b'0'..=b'9') => self.fraction_digit(seen, byte),
            (Part::Zero | Part::Integer | Part::Fraction, b'e' | b'E')
                if self.form == Form::Exponent =>
            {
                to(Part::E)
            }
            (Part::E, b'+' | b'-') => to(Part::Sign),
            (Part::E | Part::Sign | Part::Exponent, b'0'..=b'9') => to(Part::Exponent),
            _ => None,
        }
    }

    fn integer_digit(&self, seen: Seen, byte: u8, part: Part) -> Option<Seen> {
        let side = self.side(seen);
        let low = side.low.as_ref().map_or(seen.low, |l| seen.low.integer_digit(l, byte));
        let high = side.high.as_ref().map_or(seen.high, |l| seen.high.integer_digit(l, byte));
        let is_above = |limit: &Limit, compared: Compared| {
            compared.digits >= limit.integer.len() && compared.order == Ordering::Greater
        };
        if side.high.as_ref().is_some_and(|limit| is_above(limit, high)) {
            return None;
        }
        let remainder = self.divisor.map_or(seen.remainder, |divisor| {
            let Remainder { value, count } = seen.remainder;
            let next = divisor.after(value, byte - b'0');
            let count = match (value, byte) {
                (0, b'0') => (count + 1).min(divisor.zeros()),
                _ => 0,
            };
            Remainder { value: next, count }
        });
        let nonzero = seen.nonzero || (byte != b'0' && side.zero != side.others);
        Some(Seen { part, nonzero, low, high, remainder, ..seen })
    }

    fn point(&self, seen: Seen) -> Option<Seen> {
        let side = self.side(seen);
        let low = side.low.as_ref().map_or(seen.low, |l| seen.low.point(l));
        let high = side.high.as_ref().map_or(seen.high, |l| seen.high.point(l));
        if !self.is_divisible(seen) && self.divisor.is_some_and(|d| d.places() == 0) {
            return None;
        }
        let remainder = Remainder { count: 0, ..seen.remainder };
        Self::undecided(side, Seen { part: Part::Point, low, high, remainder, ..seen })
    }

    fn fraction_digit(&self, seen: Seen, byte: u8) -> Option<Seen> {
        let side = self.side(seen);
        let low = side.low.as_ref().map_or(seen.low, |l| seen.low.fraction_digit(l, byte));
        let high = side.high.as_ref().map_or(seen.high, |l| seen.high.fraction_digit(l, byte));
        let remainder = match self.divisor {
            None => seen.remainder,
            Some(divisor) if seen.remainder.count < divisor.places() => Remainder {
                value: divisor.after(seen.remainder.value, byte - b'0'),
                count: seen.remainder.count + 1,
            },
            Some(_) if seen.remainder.value == 0 && byte == b'0' => seen.remainder,
            Some(_) => return None,
        };
        let nonzero = seen.nonzero || (byte != b'0' && side.zero != side.others);
        Self::undecided(side, Seen { part: Part::Fraction, nonzero, low, high, remainder, ..seen })
    }

    /// `None` once the integer part and the fraction so far are beyond a bound, as more fraction cannot help.
    fn undecided(side: &Side, seen: Seen) -> Option<Seen> {
        let too_small = side.low.is_some() && seen.low.order == Ordering::Less;
        let too_large = side.high.is_some() && seen.high.order == Ordering::Greater;
        (!too_small && !too_large).then_some(seen)
    }

    /// Whether the number is a multiple if the text ends here.
    fn is_divisible(&self, seen: Seen) -> bool {
        let Some(divisor) = self.divisor else { return true };
        let Remainder { value, count } = seen.remainder;
        if divisor.places() == 0 {
            // In the fraction only zeros follow a multiple.
            let integer = matches!(seen.part, Part::Zero | Part::Integer);
            return value == 0 && (!integer || count >= divisor.zeros());
        }
        let read = if seen.part == Part::Fraction { count } else { 0 };
        (read..divisor.places()).fold(value, |value, _| divisor.after(value, 0)) == 0
    }

    fn accepts(&self, seen: Seen) -> bool {
        let complete = |compared: Compared, limit: &Limit| match seen.part {
            Part::Zero | Part::Integer => compared.point(limit).end(limit),
            _ => compared.end(limit),
        };
        let side = self.side(seen);
        matches!(seen.part, Part::Zero | Part::Integer | Part::Fraction | Part::Exponent)
            && (if seen.nonzero { side.others } else { side.zero })
            && side.low.as_ref().is_none_or(|limit| match complete(seen.low, limit) {
                Ordering::Less => false,
                Ordering::Equal => !limit.exclusive,
                Ordering::Greater => true,
            })
            && side.high.as_ref().is_none_or(|limit| match complete(seen.high, limit) {
                Ordering::Less => true,
                Ordering::Equal => !limit.exclusive,
                Ordering::Greater => false,
            })
            && self.is_divisible(seen)
    }
}
