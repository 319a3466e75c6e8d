//! What may come next, in words.
//!
//! **Invariant:** as many items as people can read: bytes that lead to the same place, and those
//! that nothing in particular follows, are put together by kind.

use std::fmt;

use super::Recognizer;
use super::bytes::ByteSet;

/// Bytes of a forced text that are shown.
const SHOWN_BYTES: usize = 40;
/// Texts that are shown one by one.
const SHOWN_TEXTS: usize = 20;
/// From so many printable ASCII characters on they are called "a character".
const MOST_OF_ASCII: usize = 64;

/// One thing that may come next.
///
/// ```
/// use call_me_maybe::grammar::{Class, Expr, Grammar, Rule, RuleName, recognize::Recognizer};
///
/// let digits = Expr::Class(Class::of(&[('0', '9')]));
/// let root = Expr::literal("true").or(Expr::literal("none")).or(digits);
/// let grammar = Grammar::new(vec![Rule::new(RuleName::root(), root)])?;
/// let expected = Recognizer::new(&grammar)?.expected();
/// let words: Vec<String> = expected.iter().map(ToString::to_string).collect();
/// assert_eq!(words, ["`none`", "`true`", "a digit"]);
/// # Ok::<(), call_me_maybe::grammar::GrammarError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// This text, at least its first character.
    Text {
        /// The text, as far as it is forced.
        text: String,
        /// Whether it is longer than what is given.
        is_cut: bool,
    },
    /// One character of this kind.
    Kind(&'static str),
    /// So many other texts.
    More(usize),
    /// Nothing: the text can end.
    End,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, is_cut } => {
                // Backquotes mark the text; what would not show is escaped.
                f.write_str("`")?;
                for c in text.chars() {
                    match c {
                        _ if c.is_control() => write!(f, "{}", c.escape_default())?,
                        _ => write!(f, "{c}")?,
                    }
                }
                f.write_str(if *is_cut { "…`" } else { "`" })
            }
            Self::Kind(kind) => f.write_str(kind),
            Self::More(n) => write!(f, "{n} others"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// What may come after the text so far.
pub(super) fn after(text: &Recognizer) -> Vec<Expected> {
    let mut texts = Vec::new();
    let mut loose = ByteSet::default();
    for (next, bytes) in places(text) {
        let forced = next.forced();
        match bytes.only() {
            Some(byte) if byte >= 0x80 || !forced.is_empty() => {
                let whole = [&[byte], &forced[..]].concat();
                match shown(&whole) {
                    Some(text) => texts.push(text),
                    None => loose.insert(byte),
                }
            }
            _ => loose = loose.union(&bytes),
        }
    }
    let mut kinds = Vec::new();
    sort(loose, &mut texts, &mut kinds);
    texts.sort_by(|(a, _), (b, _)| a.cmp(b));
    let n_more = texts.len().saturating_sub(SHOWN_TEXTS);
    texts.truncate(SHOWN_TEXTS);
    let mut expected: Vec<Expected> =
        texts.into_iter().map(|(text, is_cut)| Expected::Text { text, is_cut }).collect();
    expected.extend((n_more > 0).then_some(Expected::More(n_more)));
    expected.extend(kinds.into_iter().map(Expected::Kind));
    expected.extend(text.can_end().then_some(Expected::End));
    expected
}

/// The places that one byte leads to, each with the bytes that do; in the order of the bytes.
fn places(text: &Recognizer) -> Vec<(Recognizer, ByteSet)> {
    let mut places: Vec<(Recognizer, ByteSet)> = Vec::new();
    for byte in text.allowed().iter() {
        let mut next = text.clone();
        next.push(byte);
        let index = places
            .iter()
            .position(|(place, _)| place.position == next.position)
            .unwrap_or_else(|| {
                places.push((next, ByteSet::default()));
                places.len() - 1
            });
        places[index].1.insert(byte);
    }
    places
}

/// The beginning of a forced text, and whether it goes on; `None` where it ends within its first
/// character.
fn shown(bytes: &[u8]) -> Option<(String, bool)> {
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut end = whole.len().min(SHOWN_BYTES);
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    (end > 0).then(|| (whole[..end].to_owned(), end < whole.len()))
}

/// Sorts bytes by kind; those of no kind are texts.
fn sort(mut bytes: ByteSet, texts: &mut Vec<(String, bool)>, kinds: &mut Vec<&'static str>) {
    const KINDS: [(&[(u8, u8)], &str); 8] = [
        (&[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')], "a letter or digit"),
        (&[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')], "a hexadecimal digit"),
        (&[(b'A', b'Z'), (b'a', b'z')], "a letter"),
        (&[(b'A', b'Z')], "an uppercase letter"),
        (&[(b'a', b'z')], "a lowercase letter"),
        (&[(b'0', b'9')], "a digit"),
        (&[(b'1', b'9')], "a digit from 1 to 9"),
        (&[(b'0', b'7')], "an octal digit"),
    ];
    let printable = (b' '..=b'~').filter(|byte| bytes.contains(*byte)).count();
    let foreign = (0x80..=u8::MAX).any(|byte| bytes.contains(byte));
    if printable >= MOST_OF_ASCII {
        kinds.push("a character");
        return;
    }
    for (ranges, kind) in KINDS {
        let mut members = ranges.iter().flat_map(|(first, last)| *first..=*last);
        if members.clone().all(|byte| bytes.contains(byte)) {
            kinds.push(kind);
            members.by_ref().for_each(|byte| bytes.remove(byte));
        }
    }
    for byte in (0..0x80).filter(|byte| bytes.contains(*byte)) {
        texts.push((char::from(byte).to_string(), false));
    }
    if foreign {
        kinds.push("a character outside ASCII");
    }
}
