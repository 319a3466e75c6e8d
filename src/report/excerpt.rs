//! A place in a text, to look at: some of what is before and after it, and a mark under it.
//!
//! **Invariant:** the mark stands under the first column of what is wrong, also behind wide
//! characters and escaped ones.

use unicode_width::UnicodeWidthStr;

use super::escape;

/// Columns before the place.
const BEFORE: usize = 48;
/// Columns from the place on.
const AFTER: usize = 24;

/// Two lines: the text around the place between `before` and `after`, and the mark.
///
/// ```
/// let lines = call_me_maybe::report::excerpt(b"[1, 2", b".5]");
/// assert_eq!(lines, ["[1, 2.5]", "     ^"]);
/// ```
#[must_use]
pub fn excerpt(before: &[u8], after: &[u8]) -> [String; 2] {
    // A character whose first bytes are right is shown whole.
    let cut = incomplete(before);
    let (before, start) = before.split_at(before.len() - cut);
    let after = [start, after].concat();
    // No more than can be shown is looked at.
    let tail = &before[before.len().saturating_sub(4 * BEFORE)..];
    let mut shown = escaped(tail);
    let mut n_columns: usize = shown.iter().map(|text| text.width()).sum();
    let is_cut = tail.len() < before.len() || n_columns > BEFORE;
    while n_columns > BEFORE {
        n_columns -= shown.remove(0).width();
    }
    let mut line = if is_cut { "…".to_owned() } else { String::new() };
    line.extend(shown);
    let mark = format!("{}^", " ".repeat(line.width()));
    let mut n_columns = 0;
    let head = &after[..after.len().min(4 * AFTER)];
    for text in escaped(head) {
        n_columns += text.width();
        if n_columns > AFTER {
            line.push('…');
            break;
        }
        line.push_str(&text);
    }
    [line, mark]
}

/// The bytes at the end that begin a character and do not end it.
fn incomplete(text: &[u8]) -> usize {
    let tail = &text[text.len().saturating_sub(3)..];
    (1..=tail.len())
        .find(|n| {
            let end = &tail[tail.len() - n..];
            std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none())
                && end[0] >= 0xc0
        })
        .unwrap_or(0)
}

/// Each character as it is shown.
fn escaped(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|c| escape(c.encode_utf8(&mut [0; 4])).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(before: &[u8], after: &[u8], line: &str, column: usize) {
        let mark = format!("{}^", " ".repeat(column));
        assert_eq!(super::excerpt(before, after), [line.to_owned(), mark]);
    }

    #[test]
    fn the_mark_stands_under_the_place() {
        check(b"", b"x", "x", 0);
        check(b"", b"", "", 0);
        check("刺é".as_bytes(), b"x", "刺éx", 3);
        check(b"a\n\x1b", b"\0b", r"a\n\u001b\u0000b", 9);
        // The byte that is wrong is the second of a character.
        check(&"aé".as_bytes()[..2], &"é".as_bytes()[1..], "aé", 1);
        check(&[b'a', 0xe2, 0x82], b"x", "a\u{fffd}x", 1);
        check(&[b'a'; 60], &[b'b'; 30], &format!("…{}{}…", "a".repeat(48), "b".repeat(24)), 49);
    }
}
