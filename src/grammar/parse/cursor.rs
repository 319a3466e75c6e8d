//! Where the parser is in its text, and the parts of GBNF that do not nest.

use super::{Problem, Token};
use crate::grammar::{Class, GrammarError, Repeat, RuleName};

/// A problem at a byte of the text.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) at: usize,
    pub(super) problem: Problem,
}

/// A position in a text.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Line and column of a byte, both from 1.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        place(self.text, at)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Steps over a word if it stands here.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let stands_here = self.rest().starts_with(word);
        if stands_here {
            self.at += word.len();
        }
        stands_here
    }

    fn take_while(&mut self, takes: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !takes(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// What an error says of this place.
    pub(super) fn expected(&self, expected: &str) -> Trouble {
        let found = match self.peek() {
            None => "the end of the text".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(c) => format!("`{}`", c.escape_debug()),
        };
        let problem = Problem::Expected { expected: expected.to_owned(), found };
        Trouble { at: self.at, problem }
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<(), Trouble> {
        if self.take(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    pub(super) fn no_nul(&self) -> Result<(), Trouble> {
        match self.text.find('\0') {
            Some(at) => Err(Trouble { at, problem: Problem::Nul }),
            None => Ok(()),
        }
    }

    /// Steps over blanks and comments, and over ends of lines where these are blanks too.
    pub(super) fn blanks(&mut self, lines: bool) {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t') || lines && matches!(c, '\r' | '\n'));
            if self.peek() != Some('#') {
                return;
            }
            self.take_while(|c| !matches!(c, '\r' | '\n'));
        }
    }

    /// Steps over the blanks between two rules and gives the comments there, a line each.
    pub(super) fn blank_lines(&mut self) -> Vec<String> {
        let mut comments = Vec::new();
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
            if !self.take("#") {
                return comments;
            }
            self.take(" ");
            comments.push(self.take_while(|c| !matches!(c, '\r' | '\n')).to_owned());
        }
    }

    pub(super) fn end_of_line(&mut self) -> Result<(), Trouble> {
        if self.peek().is_none() || self.take("\r\n") || self.take("\n") || self.take("\r") {
            return Ok(());
        }
        Err(self.expected(match self.peek() {
            Some(':') => {
                "the end of the rule (a rule goes on in the next line after `|`, \
                 so write an empty last production as \"\")"
            }
            Some('_') => "the end of the rule (names are of letters, digits and `-`)",
            _ => "a terminal, a name, `|` or the end of the rule",
        }))
    }

    pub(super) fn name(&mut self) -> Option<RuleName> {
        RuleName::new(self.take_while(|c| c.is_ascii_alphanumeric() || c == '-'))
    }

    /// A literal in quotes.
    pub(super) fn literal(&mut self) -> Result<String, Trouble> {
        let open = self.at;
        self.take("\"");
        let mut text = String::new();
        while !self.take("\"") {
            let at = self.at;
            let code = self
                .code_point()
                .ok_or(Trouble { at: open, problem: Problem::Unclosed("\"") })??;
            let Some(c) = char::from_u32(code) else {
                return Err(Trouble { at, problem: Problem::NotACharacter(code) });
            };
            text.push(c);
        }
        Ok(text)
    }

    /// A class in brackets.
    pub(super) fn class(&mut self) -> Result<Class, Trouble> {
        let open = self.at;
        let unclosed = || Trouble { at: open, problem: Problem::Unclosed("[") };
        self.take("[");
        let negated = self.take("^");
        let mut ranges = Vec::new();
        let mut is_empty = true;
        while !self.take("]") {
            let at = self.at;
            is_empty = false;
            let first = self.code_point().ok_or_else(unclosed)??;
            let last = if self.rest().starts_with('-') && !self.rest().starts_with("-]") {
                self.take("-");
                self.code_point().ok_or_else(unclosed)??
            } else {
                first
            };
            if first > last {
                return Err(Trouble { at, problem: Problem::ReversedRange });
            }
            ranges.extend(characters(first, last));
        }
        match (negated, ranges.is_empty()) {
            _ if is_empty => Err(Trouble { at: open, problem: Problem::EmptyClass }),
            // Only code points that no text has.
            (false, true) => Err(Trouble { at: open, problem: Problem::NotACharacter(0xd800) }),
            (true, true) => Ok(Class::any()),
            (true, false) => match Class::but(&ranges) {
                class if class.is_empty() => {
                    Err(Trouble { at: open, problem: Problem::EmptyClass })
                }
                class => Ok(class),
            },
            (false, false) => Ok(Class::of(&ranges)),
        }
    }

    /// A character or an escape; `None` at the end.
    fn code_point(&mut self) -> Option<Result<u32, Trouble>> {
        let at = self.at;
        let first = self.next()?;
        if first != '\\' {
            return Some(Ok(u32::from(first)));
        }
        let escape = self.next()?;
        Some(match escape {
            'x' => self.hex(2),
            'u' => self.hex(4),
            'U' => self.hex(8),
            't' => Ok(u32::from('\t')),
            'r' => Ok(u32::from('\r')),
            'n' => Ok(u32::from('\n')),
            '\\' | '"' | '[' | ']' | '-' => Ok(u32::from(escape)),
            _ => {
                let escape = escape.escape_debug().to_string();
                Err(Trouble { at, problem: Problem::UnknownEscape(escape) })
            }
        })
    }

    fn hex(&mut self, n_digits: usize) -> Result<u32, Trouble> {
        let mut value = 0;
        for _ in 0..n_digits {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                return Err(self.expected(&format!("{n_digits} hexadecimal digits")));
            };
            self.next();
            value = value << 4 | digit;
        }
        Ok(value)
    }

    /// `?`, `*`, `+` or a count in braces.
    pub(super) fn repeat(&mut self, lines: bool) -> Result<Repeat, Trouble> {
        let open = self.at;
        match self.next() {
            Some('?') => return Ok(Repeat::OPTIONAL),
            Some('*') => return Ok(Repeat::ANY),
            Some('+') => return Ok(Repeat::SOME),
            _ => self.blanks(lines),
        }
        let unclosed = |cursor: &Self, expected| match cursor.peek() {
            None => Trouble { at: open, problem: Problem::Unclosed("{") },
            Some(_) => cursor.expected(expected),
        };
        let Some(min) = self.count(lines)? else {
            return Err(unclosed(self, "a number (write {0,5}, not {,5})"));
        };
        let max = if self.take(",") {
            self.blanks(lines);
            self.count(lines)?
        } else {
            Some(min)
        };
        if !self.take("}") {
            return Err(unclosed(
                self,
                if max.is_none() { "a number or `}`" } else { "`,` or `}`" },
            ));
        }
        Repeat::new(min, max).map_err(|error| {
            let problem = match error {
                GrammarError::RepeatReversed { min, max } => Problem::RepeatReversed { min, max },
                other => Problem::Unsound(other),
            };
            Trouble { at: open, problem }
        })
    }

    /// A number of repetitions, and the blanks after it.
    fn count(&mut self, lines: bool) -> Result<Option<u32>, Trouble> {
        let at = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        self.blanks(lines);
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse() {
            Ok(count) if count <= Repeat::LIMIT => Ok(Some(count)),
            _ => Err(Trouble { at, problem: Problem::RepeatTooMany(shortened(digits)) }),
        }
    }

    /// A token terminal, and how it is written.
    pub(super) fn token(&mut self) -> Result<(Token<'a>, String), Trouble> {
        let start = self.at;
        let negated = self.take("!");
        let open = self.at;
        self.expect("<")?;
        let token = if self.take("[") {
            let at = self.at;
            let digits = self.take_while(|c| c.is_ascii_digit());
            if digits.is_empty() {
                return Err(self.expected("a token's number"));
            }
            self.expect("]")?;
            self.expect(">")?;
            let Ok(id) = digits.parse() else {
                let problem = Problem::UnknownToken(format!("<[{}]>", shortened(digits)));
                return Err(Trouble { at, problem });
            };
            Token::Id(id)
        } else {
            self.take_while(|c| c != '>');
            if !self.take(">") {
                return Err(Trouble { at: open, problem: Problem::Unclosed("<") });
            }
            Token::Text(&self.text[open..self.at])
        };
        let written = shortened(&self.text[start..self.at]);
        if negated {
            return Err(Trouble { at: start, problem: Problem::NegatedToken(written) });
        }
        Ok((token, written))
    }
}

/// The characters of a range of numbers: without surrogates, which no UTF-8 text has.
fn characters(first: u32, last: u32) -> Option<(char, char)> {
    let first = if (0xd800..0xe000).contains(&first) { 0xe000 } else { first };
    let last = if (0xd800..0xe000).contains(&last) { 0xd7ff } else { last };
    let last = char::from_u32(last).unwrap_or(char::MAX);
    char::from_u32(first).filter(|first| *first <= last).map(|first| (first, last))
}

/// A part of the text for a message, on one line and not too long.
fn shortened(text: &str) -> String {
    const N_CHARS: usize = 40;
    let mut short: String = text.chars().take(N_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(N_CHARS).is_some() {
        short.push('…');
    }
    short
}

/// Line and column of a byte, both from 1; the column in code points.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let mut line = 1;
    let mut start = 0;
    for (index, byte) in before.bytes().enumerate() {
        let ends = byte == b'\n' || byte == b'\r' && text.as_bytes().get(index + 1) != Some(&b'\n');
        if ends {
            line += 1;
            start = index + 1;
        }
    }
    (line, before[start..].chars().count() + 1)
}
