//! Text as a reader of the drawing sees it.
//!
//! **Invariant:** what is given back holds only characters that XML takes and that show, and no
//! blank at its ends.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::grammar::Class;
use crate::grammar::print::is_hidden;

/// Text with a sign for whatever does not show: ␣ for a blank at an end or beside another,
/// ⟨newline⟩, ⟨tab⟩ and ⟨return⟩, and ⟨U+200B⟩ for the rest.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::new();
    let chars: Vec<char> = text.chars().collect();
    for (index, &c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| chars.get(index));
        let after = chars.get(index + 1);
        let is_plain_blank = c == ' '
            && [before, after].iter().all(|beside| beside.is_some_and(|beside| *beside != ' '));
        if is_plain_blank { shown.push(' ') } else { sign(&mut shown, c) }
    }
    shown
}

fn sign(shown: &mut String, c: char) {
    match c {
        ' ' => shown.push('␣'),
        '\n' => shown.push_str("⟨newline⟩"),
        '\r' => shown.push_str("⟨return⟩"),
        '\t' => shown.push_str("⟨tab⟩"),
        _ if is_hidden(c)
            || c.is_whitespace()
            || c.width().is_none_or(|width| width == 0)
            || is_no_character(c) =>
        {
            let _ = write!(shown, "⟨U+{:04X}⟩", u32::from(c));
        }
        _ => shown.push(c),
    }
}

/// Code points that Unicode keeps free for ever, some of which XML forbids, and private ones.
fn is_no_character(c: char) -> bool {
    let code = u32::from(c);
    code & 0xfffe == 0xfffe
        || matches!(code, 0xfdd0..=0xfdef | 0xe000..=0xf8ff | 0xf_0000..=0x10_ffff)
}

/// A class in short, in at most so many columns or a little more.
pub(super) fn class(class: &Class, columns: usize) -> String {
    if *class == Class::any() || (class.is_negated() && class.ranges().is_empty()) {
        return "any character".to_owned();
    }
    let mut ranges = Vec::new();
    let mut used = 0;
    for &(first, last) in class.ranges() {
        let mut range = String::new();
        sign(&mut range, first);
        if first != last {
            range.push('-');
            sign(&mut range, last);
        }
        used += range.width() + 1;
        if used > columns.saturating_sub(30) {
            ranges.push(format!("… {} more", class.ranges().len() - ranges.len()));
            break;
        }
        ranges.push(range);
    }
    let ranges = ranges.join(" ");
    if class.is_negated() { format!("any character but {ranges}") } else { format!("[{ranges}]") }
}

/// The text with its middle left out where it has more columns.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let end_columns = columns / 4;
    let start = taken(text.chars(), columns - end_columns - 1);
    let end = taken(text.chars().rev(), end_columns);
    let end: String = end.chars().rev().collect();
    format!("{}…{}", start.trim_end(), end.trim_start())
}

/// As many characters as fit.
fn taken(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    chars.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(visible(text), expected);
    }

    #[test]
    fn what_does_not_show_has_a_sign() {
        check("{\"name\": ", "{\"name\":␣");
        check("a b  c", "a b␣␣c");
        check(" ", "␣");
        check("\n\r\t\0\u{1b}\u{7f}", "⟨newline⟩⟨return⟩⟨tab⟩⟨U+0000⟩⟨U+001B⟩⟨U+007F⟩");
        check("\u{200b}\u{a0}\u{202e}\u{e000}", "⟨U+200B⟩⟨U+00A0⟩⟨U+202E⟩⟨U+E000⟩");
        check("\u{fffe}\u{ffff}\u{10ffff}\u{301}", "⟨U+FFFE⟩⟨U+FFFF⟩⟨U+10FFFF⟩⟨U+0301⟩");
        check("é漢😀<&>", "é漢😀<&>");
    }

    #[test]
    fn classes_are_short() {
        let of = |ranges: &[(char, char)]| class(&Class::of(ranges), 60);
        assert_eq!(of(&[('a', 'z'), ('0', '9'), ('_', '_'), (' ', ' ')]), "[a-z 0-9 _ ␣]");
        assert_eq!(class(&Class::any(), 60), "any character");
        let but = Class::but(&[('"', '"'), ('\\', '\\'), ('\0', '\u{1f}')]);
        assert_eq!(class(&but, 60), "any character but \" \\ ⟨U+0000⟩-⟨U+001F⟩");
        let many: Vec<(char, char)> = ('a'..='z').map(|c| (c, c)).collect();
        assert_eq!(of(&many), "[a b c d e f g h i j k l m n o … 11 more]");
    }

    #[test]
    fn long_text_is_cut_in_its_middle() {
        assert_eq!(cut("abcdefghij", 10), "abcdefghij");
        assert_eq!(cut("abcdefghijk", 10), "abcdefg…jk");
        assert_eq!(cut("漢漢漢漢漢漢", 10), "漢漢漢…漢");
    }
}
