//! Untrusted text in; text that moves no cursor and reorders no line out.
//!
//! **Invariant:** what is escaped is escaped the way JSON does it, so that a shown value stays
//! JSON; what a reader can see, emoji with joiners among it, stays as it is.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes what a terminal would obey instead of show.
///
/// These are control characters (C0, DEL, C1, line ends), bidirectional overrides and isolates,
/// invisible format characters and tags.
///
/// ```
/// assert_eq!(call_me_maybe::report::escape("a\u{1b}[2J\n"), r"a\u001b[2J\n");
/// ```
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        push(&mut escaped, c);
    }
    Cow::Owned(escaped)
}

/// Appends one character, escaped where [`escape`] says so.
pub(super) fn push(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if is_hidden(c) => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        c => out.push(c),
    }
}

fn is_hidden(c: char) -> bool {
    // The zero-width joiner and non-joiner (200C, 200D) stay: emoji and Persian need them.
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_the_rest_stays() {
        for (text, expected) in [
            ("plain é刺🦔", "plain é刺🦔"),
            ("👨\u{200d}👩", "👨\u{200d}👩"),
            ("a\r\n\tb\0", r"a\r\n\tb\u0000"),
            ("\u{1b}]0;x\u{7}\u{7f}", r"\u001b]0;x\u0007\u007f"),
            ("\u{9b}2J\u{85}", r"\u009b2J\u0085"),
            ("\u{202e}gpj\u{2066}\u{200b}\u{feff}\u{2028}", r"\u202egpj\u2066\u200b\ufeff\u2028"),
            ("\u{e0041}", r"\udb40\udc41"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }
}
