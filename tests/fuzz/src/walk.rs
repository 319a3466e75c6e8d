//! A recognizer to a text of its grammar, as bytes choose, and what may be said against the text.

use std::collections::HashSet;
use std::fmt;

use arbitrary::Unstructured;
use call_me_maybe::grammar::recognize::Recognizer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A walk is given up at this length.
const MAX_BYTES: usize = 20_000;

/// Walks to the end of a text; where the choices run out, by what closes it. `None` for a walk that was
/// given up.
///
/// # Panics
///
/// Where the recognizer contradicts itself.
pub fn walk(start: &Recognizer, choices: &mut Unstructured<'_>) -> Option<Vec<u8>> {
    let mut at = start.clone();
    let mut text = Vec::new();
    while !at.is_over() {
        if text.len() > MAX_BYTES {
            return None;
        }
        if choices.is_empty() {
            if at.in_argument() {
                let closing = at.close_argument();
                assert!(!at.in_argument(), "not closed after {}", String::from_utf8_lossy(&text));
                text.extend(closing);
                continue;
            }
            if at.can_end() {
                break;
            }
        }
        let forced = at.forced();
        if !forced.is_empty() {
            assert_eq!(at.push_all(&forced), Ok(()), "forced and refused");
            text.extend(forced);
            continue;
        }
        let allowed: Vec<u8> = at.allowed().iter().collect();
        assert!(allowed.len() > 1 || at.can_end(), "one way on is forced");
        if at.can_end() && choices.ratio(1, 4).ok()? {
            break;
        }
        // Half of the time something that opens or ends a part, or strings would go on to the limit.
        let mark = |byte: &u8| b"\"\\,}]{[:.eE-".contains(byte);
        let marks: Vec<u8> = allowed.iter().copied().filter(mark).collect();
        let from = if !marks.is_empty() && choices.arbitrary().ok()? { &marks } else { &allowed };
        let byte = *choices.choose(from).ok()?;
        assert!(at.push(byte), "allowed and refused");
        text.push(byte);
    }
    assert!(at.can_end());
    Some(text)
}

/// Bytes that look random and follow from others (Marsaglia's xorshift).
#[must_use]
pub fn expand(bytes: &[u8], salt: usize, len: usize) -> Vec<u8> {
    let seed = 0x5eed_u64.wrapping_add(u64::try_from(salt).unwrap_or(0));
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let mut state = bytes.iter().fold(seed, mix) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[2]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Whether some object of the JSON text has a key twice.
#[must_use]
pub fn repeats_key(json: &str) -> bool {
    serde_json::from_str::<Unique>(json).is_err_and(|error| error.to_string().contains(REPEATED))
}

const REPEATED: &str = "a key stands twice";

/// Reads any value and fails on a key that its object has already.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        while items.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Unique, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            members.next_value::<Unique>()?;
            if !keys.insert(key) {
                return Err(A::Error::custom(REPEATED));
            }
        }
        Ok(Unique)
    }
}
