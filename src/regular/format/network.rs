//! Hosts, addresses and mail: RFC 1123, 2673, 4291, 5321, 5890 and 6531.

/// RFC 2673 dotted quads, without leading zeros.
pub(super) fn ipv4() -> String {
    let byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    format!(r"(?:{byte}\.){{3}}{byte}")
}

/// RFC 4291 as the ABNF of RFC 3986 has it, without zones.
pub(super) fn ipv6() -> String {
    let h = "[0-9A-Fa-f]{1,4}";
    let ls32 = format!("(?:{h}:{h}|{})", ipv4());
    // `::` stands for one group or more, so with n groups before it at most 7 - n follow.
    let before = |n: usize| {
        if n == 0 { String::new() } else { format!("(?:(?:{h}:){{0,{}}}{h})?", n - 1) }
    };
    let mut forms = vec![format!("(?:{h}:){{6}}{ls32}")];
    forms.extend((0..=5).map(|n| format!("{}::(?:{h}:){{{}}}{ls32}", before(n), 5 - n)));
    forms.push(format!("{}::{h}", before(6)));
    forms.push(format!("{}::", before(7)));
    format!("(?:{})", forms.join("|"))
}

/// A label of at most `n` characters, the first and the last of `ends`, which others may join by hyphens.
///
/// Two hyphens in the third and fourth place are refused: RFC 5891 keeps them for Punycode, whose
/// validity is not regular.
fn label(ends: &str, n: usize) -> String {
    let (e, h) = (format!("[{ends}]"), format!("[{ends}-]"));
    format!("(?:{e}(?:{h}?{e})?|{e}{h}{h}{e}|{e}{h}(?:{e}{h}|-{e}){h}{{0,{}}}{e})", n - 5)
}

const LETTERS_AND_DIGITS: &str = "A-Za-z0-9";

/// RFC 1123 names: two labels of up to 63 characters and five more of up to 24, so never over 253.
pub(super) fn hostname() -> String {
    let (long, short) = (label(LETTERS_AND_DIGITS, 63), label(LETTERS_AND_DIGITS, 24));
    format!(r"{long}(?:\.{long}(?:\.{short}){{0,5}})?")
}

/// Letters that IDNA takes as they are, anywhere in a label: small Latin, Greek and Cyrillic ones, Kana, Han
/// and Hangul.
///
/// Scripts written from right to left, and those with combining marks, have rules for the whole label.
const LETTERS: &str = "\u{df}-\u{f6}\u{f8}-\u{ff}\u{3ac}-\u{3ce}\u{430}-\u{45f}\
                       \u{3041}-\u{3096}\u{30a1}-\u{30fa}\u{4e00}-\u{9fff}\u{ac00}-\u{d7a3}";

/// RFC 5890 names: four labels, of up to 63 ASCII characters the first and 62 the others, or of up to 14
/// with `LETTERS` among them.
///
/// 14 code points of the Basic Multilingual Plane take less than 62 characters in Punycode, so a name is never
/// over 253.
pub(super) fn idn_hostname() -> String {
    let unicode = label(&format!("a-z0-9{LETTERS}"), 14);
    let of = |n| format!("(?:{}|{unicode})", label(LETTERS_AND_DIGITS, n));
    format!(r"{}(?:\.{}){{0,3}}", of(63), of(62))
}

/// The characters of RFC 5322 `atext`, for a class.
const ATEXT: &str = r"A-Za-z0-9!#$%&'*+\/=?^_`{|}~-";

/// A mailbox whose local part is within RFC 5321's 64 octets.
///
/// `n` counts characters, each with a dot before it, and `n_quoted` those in quotes, each with a `\\`; `more` is
/// what the local part may have besides ASCII.
fn mailbox(more: &str, n: usize, n_quoted: usize, domain: &str) -> String {
    let atext = format!("[{more}{ATEXT}]");
    let quoted = format!(r#""(?:[ !#-\[\]-~{more}]|\\[!-~]){{1,{n_quoted}}}""#);
    format!(r"(?:[{ATEXT}]{{1,64}}|{atext}(?:\.?{atext}){{0,{}}}|{quoted})@{domain}", n - 1)
}

/// RFC 5321 `Mailbox`.
pub(super) fn email() -> String {
    let literal = format!(r"\[(?:{}|IPv6:{})\]", ipv4(), ipv6());
    mailbox("", 32, 31, &format!("(?:{}|{literal})", hostname()))
}

/// RFC 6531 `Mailbox`, of the Basic Multilingual Plane and without addresses in brackets.
///
/// A character takes up to three octets.
pub(super) fn idn_email() -> String {
    let more = "\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}";
    mailbox(more, 16, 20, &idn_hostname())
}
