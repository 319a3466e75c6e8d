//! ECMA-262 patterns to a tree.
//!
//! The syntax is that of a `RegExp` with the flag `u`, plus what Annex B adds for the others and
//! schemas use: `]`, `{` and `}` as themselves, escapes of any punctuation, `[\w-.]`. Besides, a
//! group may set flags (`(?i)`, `(?i:…)`), which ECMAScript knows since 2025.
//!
//! **Invariant:** a construct that is not understood is an error; none is ignored.

use regex_syntax::hir::{Class as HirClass, ClassUnicode, ClassUnicodeRange, HirKind};

use super::PatternError;
use crate::regular::alphabet::{ANY, Set, complement, set_of};

/// Most groups within each other.
const MAX_NESTING: usize = 100;

/// What a pattern, or a part of one, matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// Nothing, anywhere.
    Empty,
    /// One code point.
    Class(Set),
    /// One after the other.
    Concat(Vec<Node>),
    /// One of several.
    Choice(Vec<Node>),
    /// The same thing several times; no maximum means any number.
    Repeat(Box<Node>, u32, Option<u32>),
    /// Nothing, where this holds.
    Look(Look),
}

/// A condition on what stands before and after a place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// `^`
    Start,
    /// `$`
    End,
    /// `\b`, or `\B` with `false`.
    Boundary(bool),
    /// `(?=…)`, or `(?!…)` with `false`.
    Ahead(Box<Node>, bool),
    /// `(?<=…)`, or `(?<!…)` with `false`.
    Behind(Box<Node>, bool),
}

impl Node {
    fn concat(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| *part != Self::Empty);
        match parts.len() {
            0 => Self::Empty,
            1 => parts.remove(0),
            _ => Self::Concat(parts),
        }
    }

    fn choice(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        if parts.iter().all(|part| *part == Self::Empty) {
            return Self::Empty;
        }
        Self::Choice(parts)
    }

    fn repeat(self, min: u32, max: Option<u32>) -> Self {
        match (self, min, max) {
            (Self::Empty, ..) | (_, _, Some(0)) => Self::Empty,
            (node, 1, Some(1)) => node,
            (node, ..) => Self::Repeat(Box::new(node), min, max),
        }
    }
}

/// `[0-9]`
const DIGIT: &[(char, char)] = &[('0', '9')];
/// `\w`
pub(super) const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
/// `WhiteSpace` and `LineTerminator`.
const SPACE: &[(char, char)] = &[
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];
/// `LineTerminator`, which `.` leaves out.
const LINE_END: &[(char, char)] = &[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')];

/// Reads a whole pattern.
pub(super) fn parse(pattern: &str) -> Result<Node, PatternError> {
    let mut parser =
        Parser { pattern, at: 0, depth: 0, flags: Flags::default(), inside: Inside::Neither };
    let node = parser.choice()?;
    if parser.at < pattern.len() {
        return Err(syntax(parser.at, "a parenthesis that nothing opens"));
    }
    Ok(node)
}

#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    ignore_case: bool,
    dot_all: bool,
}

/// How a group changes what it holds.
type Wrap = fn(Node) -> Node;

struct Parser<'p> {
    pattern: &'p str,
    at: usize,
    depth: usize,
    flags: Flags,
    /// The innermost lookahead or lookbehind around this place.
    inside: Inside,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Neither,
    Ahead,
    Behind,
}

/// What an escape or a member of a class stands for.
enum Atom {
    /// A code point; a lone surrogate is one too, and matches nothing.
    One(u32),
    Set(Set),
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.pattern[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn choice(&mut self) -> Result<Node, PatternError> {
        let mut parts = vec![self.concat()?];
        while self.eat("|") {
            parts.push(self.concat()?);
        }
        Ok(Node::choice(parts))
    }

    fn concat(&mut self) -> Result<Node, PatternError> {
        let mut parts = Vec::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            let start = self.at;
            let node = self.atom()?;
            let after = self.at;
            let Some((min, max)) = self.quantifier()? else {
                parts.push(node);
                continue;
            };
            // Annex B lets a lookahead be repeated; in a group everything may be.
            let source = &self.pattern[start..];
            let behind = source.starts_with("(?<=") || source.starts_with("(?<!");
            if matches!(node, Node::Look(_)) && (c != '(' || behind) {
                return Err(syntax(after, "a quantifier with nothing to repeat"));
            }
            parts.push(node.repeat(min, max));
        }
        Ok(Node::concat(parts))
    }

    /// Reads a quantifier, if there is one.
    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternError> {
        let start = self.at;
        let bounds = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.braces() {
                Some(bounds) => bounds,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        if self.at == start {
            self.at += 1;
        }
        if bounds.1.is_some_and(|max| max < bounds.0) {
            return Err(syntax(start, "a quantifier whose bounds are reversed"));
        }
        // Which match is found makes no difference to whether there is one.
        self.eat("?");
        Ok(Some(bounds))
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; anything else is no quantifier.
    fn braces(&mut self) -> Option<(u32, Option<u32>)> {
        let inside = self.rest().strip_prefix('{')?;
        let end = inside.find('}')?;
        let (inside, length) = (&inside[..end], end + 2);
        let (min, max) = match inside.split_once(',') {
            None => (inside, Some(inside)),
            Some((min, "")) => (min, None),
            Some((min, max)) => (min, Some(max)),
        };
        let number = |digits: &str| {
            let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            // Numbers beyond 32 bits are all the same: too large.
            all.then(|| digits.parse().unwrap_or(u32::MAX))
        };
        let min = number(min)?;
        let max = match max {
            Some(max) => Some(number(max)?),
            None => None,
        };
        self.at += length;
        Some((min, max))
    }

    fn atom(&mut self) -> Result<Node, PatternError> {
        let start = self.at;
        let Some(c) = self.next() else { return Ok(Node::Empty) };
        let unsupported = |construct| Err(PatternError::Unsupported { offset: start, construct });
        Ok(match c {
            '^' => Node::Look(Look::Start),
            // A lookbehind is tried before what follows it is known.
            '$' if self.inside == Inside::Behind => {
                return unsupported("an end within a lookbehind");
            }
            '$' => Node::Look(Look::End),
            '(' => self.group(start)?,
            '[' => Node::Class(self.class(start)?),
            '.' if self.flags.dot_all => Node::Class(vec![ANY]),
            '.' => Node::Class(complement(LINE_END)),
            '*' | '+' | '?' => return Err(syntax(start, "a quantifier with nothing to repeat")),
            '{' => {
                self.at = start;
                if self.braces().is_some() {
                    return Err(syntax(start, "a quantifier with nothing to repeat"));
                }
                self.at = start + 1;
                self.one(u32::from('{'))
            }
            '\\' if self.inside == Inside::Behind && (self.eat("b") || self.eat("B")) => {
                return unsupported("a word boundary within a lookbehind");
            }
            '\\' if self.eat("b") => Node::Look(Look::Boundary(true)),
            '\\' if self.eat("B") => Node::Look(Look::Boundary(false)),
            '\\' => match self.escape(start)? {
                Atom::One(code) => self.one(code),
                Atom::Set(set) => Node::Class(set),
            },
            c => self.one(u32::from(c)),
        })
    }

    fn one(&self, code: u32) -> Node {
        let set = char::from_u32(code).map(|c| (c, c)).into_iter().collect();
        Node::Class(self.folded(set))
    }

    /// With the flag `i`, the set with all spellings of its letters.
    fn folded(&self, set: Set) -> Set {
        if !self.flags.ignore_case {
            return set;
        }
        let ranges = set.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last));
        let mut class = ClassUnicode::new(ranges);
        // Fails only where regex-syntax was built without its table of cases.
        if class.try_case_fold_simple().is_err() {
            return set;
        }
        class.iter().map(|range| (range.start(), range.end())).collect()
    }

    fn group(&mut self, start: usize) -> Result<Node, PatternError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(syntax(start, "too many groups within each other"));
        }
        let outside = (self.flags, self.inside);
        let unsupported = |construct| PatternError::Unsupported { offset: start, construct };
        let wrap: Wrap = if !self.eat("?") || self.eat(":") {
            |inner| inner
        } else if self.eat("=") {
            |inner| Node::Look(Look::Ahead(Box::new(inner), true))
        } else if self.eat("!") {
            |inner| Node::Look(Look::Ahead(Box::new(inner), false))
        } else if self.eat("<=") {
            |inner| Node::Look(Look::Behind(Box::new(inner), true))
        } else if self.eat("<!") {
            |inner| Node::Look(Look::Behind(Box::new(inner), false))
        } else if self.eat("<") {
            let end = self.rest().find('>').unwrap_or(0);
            if !is_name(&self.rest()[..end]) {
                return Err(syntax(start, "a group with a wrong name"));
            }
            self.at += end + 1;
            |inner| inner
        } else if self.eat(">") {
            return Err(unsupported("an atomic group"));
        } else if self.flags(start)? {
            // They hold to the end of the group around this one.
            self.depth -= 1;
            return Ok(Node::Empty);
        } else {
            |inner| inner
        };
        let rest = &self.pattern[start..];
        let ahead = rest.starts_with("(?=") || rest.starts_with("(?!");
        let behind = rest.starts_with("(?<=") || rest.starts_with("(?<!");
        match self.inside {
            Inside::Behind if ahead || behind => {
                return Err(unsupported("a lookahead or lookbehind within a lookbehind"));
            }
            Inside::Ahead if behind => return Err(unsupported("a lookbehind within a lookahead")),
            _ if ahead => self.inside = Inside::Ahead,
            _ if behind => self.inside = Inside::Behind,
            _ => {}
        }
        let inner = self.choice()?;
        if !self.eat(")") {
            return Err(syntax(start, "a group that nothing closes"));
        }
        self.depth -= 1;
        (self.flags, self.inside) = outside;
        Ok(wrap(inner))
    }

    /// Reads the flags of `(?i-s:` or `(?i)`; whether it was the latter.
    fn flags(&mut self, start: usize) -> Result<bool, PatternError> {
        let mut on = true;
        loop {
            match self.next() {
                Some('i') => self.flags.ignore_case = on,
                Some('s') => self.flags.dot_all = on,
                Some('m') => {
                    let construct = "the flag m";
                    return Err(PatternError::Unsupported { offset: start, construct });
                }
                Some('-') if on => on = false,
                Some(':') => return Ok(false),
                Some(')') => return Ok(true),
                _ => return Err(syntax(start, "a group of no known kind")),
            }
        }
    }

    /// Reads what follows a backslash, which is at `start`.
    fn escape(&mut self, start: usize) -> Result<Atom, PatternError> {
        let unsupported = |construct| Err(PatternError::Unsupported { offset: start, construct });
        let Some(c) = self.next() else {
            return Err(syntax(start, "a backslash with nothing behind it"));
        };
        let set = |set: &[(char, char)]| Atom::Set(set.to_vec());
        Ok(match c {
            'd' => set(DIGIT),
            'D' => Atom::Set(complement(DIGIT)),
            'w' => Atom::Set(self.folded(WORD.to_vec())),
            'W' => Atom::Set(complement(&self.folded(WORD.to_vec()))),
            's' => set(SPACE),
            'S' => Atom::Set(complement(SPACE)),
            'p' | 'P' => Atom::Set(self.property(start)?),
            't' => Atom::One(0x09),
            'n' => Atom::One(0x0a),
            'v' => Atom::One(0x0b),
            'f' => Atom::One(0x0c),
            'r' => Atom::One(0x0d),
            'c' => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => Atom::One(u32::from(letter) % 32),
                _ => return Err(syntax(start, "\\c without a letter")),
            },
            'x' => match self.hex(2) {
                Some(code) => Atom::One(code),
                None => return Err(syntax(start, "\\x without two hexadecimal digits")),
            },
            'u' => Atom::One(self.unicode(start)?),
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => Atom::One(0),
            '0' => return unsupported("an octal escape"),
            '1'..='9' | 'k' => return unsupported("a backreference"),
            c if c.is_ascii_alphabetic() => {
                return Err(syntax(start, "an escape of no known meaning"));
            }
            c => Atom::One(u32::from(c)),
        })
    }

    /// Reads `HHHH`, a pair of surrogates so written, or `{H…}`.
    fn unicode(&mut self, start: usize) -> Result<u32, PatternError> {
        let wrong = "\\u without a code point";
        if self.eat("{") {
            let digits = &self.rest()[..self.rest().find('}').unwrap_or(0)];
            let length = digits.len() + 1;
            let hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let code =
                u32::from_str_radix(digits, 16).ok().filter(|code| hex && *code <= 0x10_ffff);
            self.at += length;
            return code.ok_or_else(|| syntax(start, wrong));
        }
        let high = self.hex(4).ok_or_else(|| syntax(start, wrong))?;
        let after = self.at;
        if (0xd800..0xdc00).contains(&high) && self.eat("\\u") {
            if let Some(low) = self.hex(4).filter(|low| (0xdc00..0xe000).contains(low)) {
                return Ok(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
            self.at = after;
        }
        Ok(high)
    }

    fn hex(&mut self, length: usize) -> Option<u32> {
        let digits = self.rest().get(..length)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let code = u32::from_str_radix(digits, 16).ok()?;
        self.at += length;
        Some(code)
    }

    /// Reads `{Name}` or `{Name=Value}` behind `\p` or `\P`.
    fn property(&mut self, start: usize) -> Result<Set, PatternError> {
        let wrong = PatternError::Syntax { offset: start, what: "an unknown Unicode property" };
        let length = match self.peek() {
            Some('{') => self.rest().find('}').map(|end| end + 1),
            _ => None,
        };
        let Some(length) = length else { return Err(wrong) };
        let inside = self.at + 1..self.at + length - 1;
        let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
        self.at += length;
        if !self.pattern[inside].chars().all(known) {
            return Err(wrong);
        }
        // Only this escape is handed on, so the syntaxes do not differ.
        let Ok(hir) = regex_syntax::parse(&self.pattern[start..self.at]) else { return Err(wrong) };
        let set = match hir.into_kind() {
            HirKind::Class(HirClass::Unicode(class)) => {
                class.iter().map(|range| (range.start(), range.end())).collect()
            }
            HirKind::Class(HirClass::Bytes(class)) => {
                let ranges = class.iter();
                ranges.map(|range| (char::from(range.start()), char::from(range.end()))).collect()
            }
            // A class of one code point.
            HirKind::Literal(literal) => std::str::from_utf8(&literal.0)
                .map_or(Vec::new(), |text| text.chars().map(|c| (c, c)).collect()),
            _ => return Err(wrong),
        };
        Ok(self.folded(set))
    }

    /// Reads a class behind its `[`, which is at `start`.
    fn class(&mut self, start: usize) -> Result<Set, PatternError> {
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        loop {
            let at = self.at;
            let Some(first) = self.member(start)? else { break };
            // A hyphen makes a range between two code points, and stands for itself elsewhere.
            let hyphen = self.at;
            let range = self.eat("-");
            let last = if range && self.peek() != Some(']') { self.member(start)? } else { None };
            match (first, last) {
                (Atom::One(first), Some(Atom::One(last))) => {
                    if last < first {
                        return Err(syntax(at, "a range whose ends are reversed"));
                    }
                    add_scalars(&mut ranges, first, last);
                }
                (first, None) => {
                    self.at = hyphen;
                    add(&mut ranges, first);
                }
                (first, Some(last)) => {
                    add(&mut ranges, first);
                    ranges.push(('-', '-'));
                    add(&mut ranges, last);
                }
            }
        }
        let set = self.folded(set_of(ranges));
        Ok(if negated { complement(&set) } else { set })
    }

    /// Reads one member of a class; `None` at its end, which is passed.
    fn member(&mut self, class: usize) -> Result<Option<Atom>, PatternError> {
        let start = self.at;
        match self.next() {
            None => Err(syntax(class, "a class that nothing closes")),
            Some(']') => Ok(None),
            Some('\\') if self.eat("b") => Ok(Some(Atom::One(0x08))),
            Some('\\') => self.escape(start).map(Some),
            Some(c) => Ok(Some(Atom::One(u32::from(c)))),
        }
    }
}

fn syntax(offset: usize, what: &'static str) -> PatternError {
    PatternError::Syntax { offset, what }
}

fn add(ranges: &mut Vec<(char, char)>, atom: Atom) {
    match atom {
        Atom::One(code) => add_scalars(ranges, code, code),
        Atom::Set(set) => ranges.extend(set),
    }
}

/// Adds a range of code points without its surrogates, which no text holds.
fn add_scalars(ranges: &mut Vec<(char, char)>, first: u32, last: u32) {
    let first = if (0xd800..0xe000).contains(&first) { 0xe000 } else { first };
    let last = if (0xd800..0xe000).contains(&last) { 0xd7ff } else { last };
    if let (Some(first), Some(last)) = (char::from_u32(first), char::from_u32(last)) {
        if first <= last {
            ranges.push((first, last));
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let starts = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    chars.next().is_some_and(starts) && chars.all(|c| starts(c) || c.is_numeric())
}
