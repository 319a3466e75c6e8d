//! Dates, times and durations: RFC 3339, and its appendix A.

/// RFC 3339 `full-date`, the length of each month and leap years included.
pub(super) fn date() -> String {
    let long = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])";
    let short = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)";
    let february = "02-(?:0[1-9]|1[0-9]|2[0-8])";
    // Multiples of four, but of the centuries only those of four hundred.
    let fourth = "(?:[02468][48]|[13579][26]|[2468]0)";
    let leap = format!("(?:[0-9]{{2}}{fourth}|(?:{fourth}|00)00)");
    format!("(?:[0-9]{{4}}-(?:{long}|{short}|{february})|{leap}-02-29)")
}

/// RFC 3339 `full-time`.
///
/// The leap second is at the end of a day in UTC; it is left out for other offsets, where it has another
/// hour and minute for each of 1,440 offsets.
pub(super) fn time() -> String {
    let minute = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
    let fraction = r"(?:\.[0-9]+)?";
    format!(
        "(?:{minute}:[0-5][0-9]{fraction}(?:[Zz]|[+-]{minute})\
         |23:59:60{fraction}(?:[Zz]|[+-]00:00))"
    )
}

/// RFC 3339 `date-time`.
pub(super) fn date_time() -> String {
    format!("{}[Tt]{}", date(), time())
}

/// RFC 3339 `duration`: no unit left out between two others, weeks alone.
pub(super) fn duration() -> String {
    let n = "[0-9]+";
    let time = format!("T(?:{n}H(?:{n}M(?:{n}S)?)?|{n}M(?:{n}S)?|{n}S)");
    let date = format!("(?:{n}D|{n}M(?:{n}D)?|{n}Y(?:{n}M(?:{n}D)?)?)");
    format!("P(?:{date}(?:{time})?|{time}|{n}W)")
}
