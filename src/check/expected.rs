//! What may come next, in words.

use std::fmt;

use crate::grammar::recognize::{ByteSet, Recognizer};

/// Runs of so many bytes are told as ranges.
const MIN_RUN: usize = 3;
/// More ways on than this are told by their first byte.
const MAX_WAYS: usize = 6;
/// Of a way on, so many bytes are told.
const MAX_BYTES: usize = 40;
/// Where more bytes than these may come, it is in the middle of a string.
const MANY: usize = 80;

/// What may come next, for a message: `` `, "unit": "` or `}}` or 0-9 ``.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The ways on, each as far as there is no choice.
    texts: Vec<Vec<u8>>,
    /// Bytes that are told as ranges.
    bytes: ByteSet,
    /// The text may also end.
    end: bool,
}

impl Expected {
    /// What may follow the text so far.
    #[must_use]
    pub fn after(at: &Recognizer) -> Self {
        let mut bytes = ByteSet::default();
        let mut single = Vec::new();
        for (first, last) in runs(&at.allowed()) {
            if usize::from(last - first) + 1 >= MIN_RUN || first >= 0x80 {
                bytes.insert_range(first, last);
            } else {
                single.extend(first..=last);
            }
        }
        let mut texts = Vec::new();
        let follow = single.len() <= MAX_WAYS;
        for byte in single {
            if follow {
                texts.extend(ways(at, byte));
            } else {
                texts.push(vec![byte]);
            }
        }
        Self { texts, bytes, end: at.can_end() }
    }
}

/// The ways on that begin with the byte: one as far as there is no choice, and where that is the
/// first quote of one of a few keys or names, one for each.
fn ways(at: &Recognizer, byte: u8) -> Vec<Vec<u8>> {
    let forced = |at: &Recognizer, mut text: Vec<u8>, byte: u8| {
        let mut next = at.clone();
        next.push(byte);
        let forced = next.forced();
        let taken = next.push_all(&forced);
        debug_assert_eq!(taken, Ok(()), "forced text is taken");
        text.push(byte);
        text.extend(forced);
        (next, text)
    };
    let (next, text) = forced(at, Vec::new(), byte);
    let allowed = next.allowed();
    if text.ends_with(b"\"") && allowed.len() <= MAX_WAYS {
        return allowed.iter().map(|byte| forced(&next, text.clone(), byte).1).collect();
    }
    vec![text]
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ways: Vec<String> = self.texts.iter().map(|text| quoted(text)).collect();
        if self.bytes.len() > MANY {
            ways.push("nearly any character".to_owned());
        } else {
            ways.extend(ranges(&self.bytes));
        }
        if self.end || ways.is_empty() {
            ways.push("the end".to_owned());
        }
        let last = ways.pop().unwrap_or_default();
        if ways.is_empty() {
            return f.write_str(&last);
        }
        write!(f, "{} or {last}", ways.join(", "))
    }
}

/// Runs of neighboring bytes, as first and last.
fn runs(bytes: &ByteSet) -> Vec<(u8, u8)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for byte in bytes.iter() {
        match runs.last_mut() {
            // Beyond ASCII a byte is no character.
            Some((_, last)) if *last + 1 == byte && byte != 0x80 => *last = byte,
            _ => runs.push((byte, byte)),
        }
    }
    runs
}

fn quoted(text: &[u8]) -> String {
    let cut = text.len() > MAX_BYTES;
    let shown = String::from_utf8_lossy(&text[..text.len().min(MAX_BYTES)]);
    // A character may be cut in two.
    let shown = shown.trim_end_matches('\u{fffd}');
    if shown.is_empty() {
        return format!("byte {:02X}", text[0]);
    }
    format!("`{shown}{}`", if cut { "…" } else { "" })
}

/// ASCII as ranges of characters, all other bytes together.
fn ranges(bytes: &ByteSet) -> Vec<String> {
    let name = |byte: u8| match byte {
        b'!'..=b'~' => char::from(byte).to_string(),
        b' ' => "space".to_owned(),
        _ => format!("U+{byte:04X}"),
    };
    let ascii = runs(bytes).into_iter().filter(|(_, last)| last.is_ascii());
    let mut ranges: Vec<String> =
        ascii.map(|(first, last)| format!("{}-{}", name(first), name(last))).collect();
    if bytes.iter().any(|byte| !byte.is_ascii()) {
        ranges.push("a character beyond ASCII".to_owned());
    }
    ranges
}
