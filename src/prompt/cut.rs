//! A traced text -> pieces in which no special token touches an untrusted character.
//!
//! The tokenizer looks for the texts of special tokens before anything else, and finds them
//! wherever they stand. Each piece is tokenized by itself, so a text that is divided between two
//! pieces is never found.
//!
//! **Invariant:** the pieces, joined, are the text.
//! **Invariant:** no piece contains a special text of two or more characters that overlaps an
//! untrusted range.
//! **Invariant:** a special text that is wholly the template's own is never divided.

use std::collections::{BTreeSet, HashSet};

use aho_corasick::{AhoCorasick, BuildError};

use super::marks::Traced;

/// The stand-in for a space in the text of a token.
const SPACE_MARK: char = '\u{2581}';

/// The texts of a model's `CONTROL` and `USER_DEFINED` tokens, ready to be found.
#[derive(Debug, Clone)]
pub(crate) struct Specials {
    matcher: AhoCorasick,
}

impl Specials {
    /// A text of one character cannot be divided and is left out: it is a character like any other.
    ///
    /// A run of blanks is written with U+2581 in some vocabularies and found in a text with spaces,
    /// so both count.
    pub(crate) fn new(texts: &[String]) -> Result<Self, BuildError> {
        let spaced = texts
            .iter()
            .filter(|text| text.contains(SPACE_MARK))
            .map(|text| text.replace(SPACE_MARK, " "));
        let patterns: BTreeSet<String> = texts
            .iter()
            .cloned()
            .chain(spaced)
            .filter(|text| text.chars().nth(1).is_some())
            .collect();
        Ok(Self { matcher: AhoCorasick::new(patterns)? })
    }

    /// The text in pieces, none empty.
    pub(crate) fn cut(&self, traced: &Traced) -> Vec<String> {
        let Traced { text, .. } = traced;
        let mut pieces = Vec::new();
        let mut start = 0;
        for end in self.places(traced).into_iter().chain([text.len()]) {
            if start < end {
                pieces.push(text[start..end].to_owned());
            }
            start = end;
        }
        pieces
    }

    /// Where to cut: one place inside every occurrence that overlaps an untrusted range.
    ///
    /// An occurrence that begins in the template's text is cut where the untrusted text begins, any
    /// other behind its first character; neither place can lie inside a special text that is wholly
    /// the template's.
    fn places(&self, traced: &Traced) -> BTreeSet<usize> {
        let mut starts = HashSet::new();
        let mut places: BTreeSet<usize> = BTreeSet::new();
        for found in self.matcher.find_overlapping_iter(&traced.text) {
            let range = found.range();
            // Matches come in the order of their ends: of two with one start, cutting the shorter cuts both.
            if starts.contains(&range.start) {
                continue;
            }
            let first = traced.untrusted.partition_point(|u| u.end <= range.start);
            let Some(untrusted) = traced.untrusted.get(first).filter(|u| u.start < range.end)
            else {
                continue;
            };
            starts.insert(range.start);
            let place = if untrusted.start > range.start {
                untrusted.start
            } else {
                let first_char = traced.text[range.clone()].chars().next();
                range.start + first_char.map_or(1, char::len_utf8)
            };
            if places.range(range.start + 1..range.end).next().is_none() {
                places.insert(place);
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use super::super::marks::Marks;
    use super::*;

    /// `text` has `[` and `]` around what is untrusted.
    #[track_caller]
    fn check(specials: &[&str], text: &str, pieces: &[&str]) {
        let specials: Vec<String> = specials.iter().map(|&text| text.to_owned()).collect();
        let marked = text.replace('[', "\u{FDD0}").replace(']', "\u{FDD1}");
        let traced = Marks::USUAL.read(&marked).unwrap();
        assert_eq!(Specials::new(&specials).unwrap().cut(&traced), pieces);
    }

    #[test]
    fn the_templates_own_markers_stay_whole() {
        check(&["<|a|>"], "<|a|>[hi]<|a|>", &["<|a|>hi<|a|>"]);
    }

    #[test]
    fn a_marker_in_untrusted_text_is_divided() {
        check(&["<|a|>"], "<|a|>[x<|a|>y]<|a|>", &["<|a|>x<", "|a|>y<|a|>"]);
    }

    #[test]
    fn a_marker_across_a_border_is_divided_there() {
        check(&["<|a|>"], "<|[a|>]", &["<|", "a|>"]);
        check(&["<|a|>"], "[<|a]|>", &["<", "|a|>"]);
        check(&["<|a|>"], "<|[a]|>", &["<|", "a|>"]);
        check(&["<|a|>"], "[<|][a|>]", &["<", "|a|>"]);
    }

    #[test]
    fn a_cut_at_a_border_does_not_divide_what_begins_there() {
        check(&["b<", "<t>"], "[b]<t>", &["b", "<t>"]);
        check(&["<t>", ">b"], "<t>[b]", &["<t>", "b"]);
    }

    #[test]
    fn every_adjacent_pair_of_a_run_is_divided() {
        check(&["\n\n", "\n\n\n"], "[a\n\n\nb]\n\n", &["a\n", "\n", "\nb\n\n"]);
        check(&["\n\n"], "[a\n]\n\n", &["a\n", "\n\n"]);
    }

    #[test]
    fn blanks_are_found_in_either_spelling() {
        check(&["\u{2581}\u{2581}"], "[a  b]", &["a ", " b"]);
        check(&["\u{2581}\u{2581}"], "[a\u{2581}\u{2581}b]", &["a\u{2581}", "\u{2581}b"]);
    }

    #[test]
    fn characters_of_several_bytes_and_one_character_specials() {
        check(&["«é»", "é"], "[«é»é]", &["«", "é»é"]);
    }
}
