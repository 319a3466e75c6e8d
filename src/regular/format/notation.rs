//! Identifiers, pointers and patterns: RFC 4122, RFC 6901 and ECMA-262.

/// RFC 4122, any version and variant, in either case.
pub(super) fn uuid() -> String {
    let hex = "[0-9A-Fa-f]";
    format!("{hex}{{8}}-(?:{hex}{{4}}-){{3}}{hex}{{12}}")
}

/// RFC 6901.
pub(super) fn json_pointer() -> String {
    r"(?:\/(?:[^\/~]|~[01])*)*".to_owned()
}

/// Relative JSON pointers without the index manipulation of later drafts.
pub(super) fn relative_json_pointer() -> String {
    format!("(?:0|[1-9][0-9]*)(?:#|{})", json_pointer())
}

/// Groups within groups.
const DEPTH: usize = 3;

/// A part of ECMA-262's patterns that is valid with and without the `u` flag.
///
/// Character ranges go up from `0`, `1`, `a` or `A`, and counts from one digit to two, or between digits
/// in order: that a range is in order takes a state for each beginning.
pub(super) fn regex() -> String {
    let hex = "[0-9A-Fa-f]";
    let escape = format!(
        r"\\(?:[dDwWsStnrfv\\^$.*+?()\[\]{{|}}\/]|c[A-Za-z]|x{hex}{{2}}|u(?:[0-9A-CE-Fa-ce-f]{hex}{{3}}|[Dd][0-7]{hex}{{2}}))"
    );
    let ordered: Vec<String> = (0..=8).map(|n| format!("{n},[{n}-9]")).collect();
    let counts = format!(r"[0-9]{{1,2}},?|9,9|[0-9],[1-9][0-9]|{}", ordered.join("|"));
    let quantifier = format!(r"(?:[*+?]|\{{(?:{counts})\}})\??");
    let range = "0-[0-9]|1-[1-9]|a-[a-z]|A-[A-Z]";
    let member = format!(r"(?:{range}|[^\\\[\]^\x00-\x1f&~-]|{escape})");
    let class = format!(r"\[\^?(?:-?{member}+|-)?-?\]");
    let plain = r"[^\\^$.*+?()\[\]{}|\/\x00-\x1f]";
    let mut atom = format!("(?:{plain}|\\.|{escape}|{class})");
    for _ in 0..DEPTH {
        atom =
            format!(r"(?:{plain}|\.|{escape}|{class}|\((?:\?:)?{}\))", choice(&atom, &quantifier));
    }
    choice(&atom, &quantifier)
}

/// Concatenations of atoms, anchored or not, with `|` between.
fn choice(atom: &str, quantifier: &str) -> String {
    let one = format!(r"\^?(?:{atom}(?:{quantifier})?|\\[bB])*\$?");
    format!(r"{one}(?:\|{one})*")
}
