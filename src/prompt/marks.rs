//! Which characters of a rendered text came from outside: a pair of marks around every untrusted
//! string.
//!
//! A chat template is a program; what it does with a text cannot be known beforehand. So every
//! untrusted string goes in between two characters that occur nowhere in the input, and after
//! rendering they tell, character by character, what is the template's own. This holds through
//! concatenation, JSON escaping, joining and repeating; `methods.rs` keeps it through trimming and
//! splitting.
//!
//! **Invariant:** marks never reach a [`Traced`] text.
//! **Invariant:** a text whose marks do not pair up is an error, never a guess.

use std::{collections::HashSet, ops::Range};

/// The pair of characters around untrusted strings, for one rendering; or none, for the plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks(Option<[char; 2]>);

/// A text and the byte ranges of it that are untrusted: sorted, not empty, not overlapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traced {
    pub(crate) text: String,
    pub(crate) untrusted: Vec<Range<usize>>,
}

/// The marks of a text do not pair up: something cut through an untrusted string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unpaired;

impl Marks {
    /// The first candidates.
    #[cfg(test)]
    pub(crate) const USUAL: Self = Self(Some(['\u{FDD0}', '\u{FDD1}']));

    /// No marks: strings stay as they are.
    pub(crate) const NONE: Self = Self(None);

    /// Marks that occur in none of the texts; `None` if every candidate does.
    pub(crate) fn absent_from<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        let taken: HashSet<char> = texts
            .flat_map(str::chars)
            .filter(|&c| candidates().any(|range| range.contains(&c)))
            .collect();
        let mut free = candidates().flatten().filter(|c| !taken.contains(c));
        Some(Self(Some([free.next()?, free.next()?])))
    }

    /// Does the text contain either mark?
    pub(crate) fn occur_in(self, text: &str) -> bool {
        self.0.is_some_and(|pair| text.contains(pair))
    }

    /// The text as an untrusted string. An empty one stays empty, since templates ask for that.
    pub(crate) fn wrap(self, text: &str) -> String {
        match self.0 {
            Some([open, close]) if !text.is_empty() => format!("{open}{text}{close}"),
            _ => text.to_owned(),
        }
    }

    /// The text without marks.
    pub(crate) fn strip(self, text: &str) -> String {
        self.0.map_or_else(|| text.to_owned(), |pair| text.replace(pair, ""))
    }

    /// Takes the marks out and remembers where they were.
    pub(crate) fn read(self, marked: &str) -> Result<Traced, Unpaired> {
        let mut text = String::with_capacity(marked.len());
        let mut untrusted = Vec::new();
        let mut opened = None;
        for c in marked.chars() {
            if self.0.is_some_and(|[open, _]| c == open) {
                if opened.replace(text.len()).is_some() {
                    return Err(Unpaired);
                }
            } else if self.0.is_some_and(|[_, close]| c == close) {
                let start = opened.take().ok_or(Unpaired)?;
                if start < text.len() {
                    untrusted.push(start..text.len());
                }
            } else {
                text.push(c);
            }
        }
        if opened.is_some() { Err(Unpaired) } else { Ok(Traced { text, untrusted }) }
    }

    /// A part of a traced text, marked again.
    pub(crate) fn write(self, traced: &Traced, part: Range<usize>) -> String {
        let mut marked = String::with_capacity(part.len() + 6);
        let mut at = part.start;
        for range in &traced.untrusted {
            let (start, end) = (range.start.max(part.start), range.end.min(part.end));
            if start < end {
                marked.push_str(&traced.text[at..start]);
                marked.push_str(&self.wrap(&traced.text[start..end]));
                at = end;
            }
        }
        marked.push_str(&traced.text[at..part.end]);
        marked
    }
}

/// Noncharacters first, which Unicode keeps for such internal use; then private-use characters.
fn candidates() -> impl Iterator<Item = std::ops::RangeInclusive<char>> {
    ['\u{FDD0}'..='\u{FDEF}', '\u{E000}'..='\u{F8FF}', '\u{F0000}'..='\u{FFFFD}'].into_iter()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_usual_marks_are_the_first_candidates() {
        assert_eq!(Marks::absent_from(["plain"].into_iter()), Some(Marks::USUAL));
    }

    #[test]
    fn marks_in_the_input_are_passed_over() {
        let all: String = ('\u{FDD0}'..='\u{FDEF}').collect();
        let marks = Marks::absent_from([all.as_str(), "\u{E001}"].into_iter()).unwrap();
        assert_eq!(marks, Marks(Some(['\u{E000}', '\u{E002}'])));
    }

    #[test]
    fn read_takes_out_what_wrap_put_in() {
        let marks = Marks::USUAL;
        let marked = format!("a{}b{}{}c", marks.wrap("xy"), marks.wrap(""), marks.wrap("z"));
        let traced = marks.read(&marked).unwrap();
        assert_eq!(traced, Traced { text: "axybzc".into(), untrusted: vec![1..3, 4..5] });
        assert_eq!(marks.write(&traced, 0..6), marked);
        assert_eq!(marks.write(&traced, 2..5), format!("{}b{}", marks.wrap("y"), marks.wrap("z")));
    }

    #[test]
    fn without_marks_everything_is_as_it_is() {
        let text = "\u{FDD0}a";
        assert_eq!(Marks::NONE.wrap(text), text);
        let traced = Traced { text: text.into(), untrusted: Vec::new() };
        assert_eq!(Marks::NONE.read(text), Ok(traced));
    }

    #[test]
    fn a_text_cut_through_is_refused() {
        for text in ["\u{FDD0}a", "a\u{FDD1}", "\u{FDD0}\u{FDD0}a\u{FDD1}\u{FDD1}"] {
            assert_eq!(Marks::USUAL.read(text), Err(Unpaired), "{text:?}");
        }
    }
}
