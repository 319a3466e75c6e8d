//! GBNF text as a [`Grammar`]: llama.cpp's syntax in full.
//!
//! What is taken is what `llama_grammar_parser` of `llama-grammar.cpp` takes. What it takes and
//! then does not keep, or what makes it fail later, is an error here: a bound that it widens, a
//! rule defined twice, an undefined name, left recursion. Rules that `root` does not lead to are
//! dropped, and a repetition without end of what may be empty becomes one of the same language
//! that is not ambiguous (`repeats`).
//!
//! **Invariant:** a grammar that is returned passes [`super::check::check`] and has the language that
//! llama.cpp gives the text.
//! **Invariant:** no text makes this module panic, and the depth of its recursion is at most
//! [`NESTING_LIMIT`].

mod cursor;
mod error;
mod repeats;

use std::collections::{HashMap, HashSet};

use self::cursor::{Cursor, Trouble};
pub use self::error::{ParseError, Problem};
use super::check::checked;
use super::{Class, Expr, Grammar, Repeat, Rule, RuleName};

/// Most groups and repetitions inside each other.
pub const NESTING_LIMIT: usize = 256;

/// Most terminals that a repetition may come to when it is written out; the recognizer does that.
pub const WRITTEN_OUT_LIMIT: u64 = 200_000;

/// A token as a grammar names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// `<[1000]>`
    Id(u32),
    /// `<think>`, the angle brackets included, as llama.cpp looks it up.
    Text(&'a str),
}

/// The bytes of a token of some model; `None` where the model has no such token.
pub type Vocabulary<'a> = dyn Fn(Token<'_>) -> Option<Vec<u8>> + 'a;

/// Reads a grammar.
///
/// `vocabulary` serves token terminals, which become the token's text. Comment lines above a rule
/// are kept with it, other comments are not.
///
/// ```
/// use call_me_maybe::grammar::{parse, recognize::Recognizer};
///
/// let grammar = parse::gbnf("root ::= (\"ab\" | [0-9]{2})+", None)?;
/// assert!(Recognizer::new(&grammar)?.accepts(b"ab42ab"));
///
/// let error = parse::gbnf("root ::= \"a\"\nroot := \"b\"", None).unwrap_err();
/// assert_eq!(error.to_string(), "line 2, column 6: expected `::=`, found `:`");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The first [`Problem`] and its place.
pub fn gbnf(text: &str, vocabulary: Option<&Vocabulary<'_>>) -> Result<Grammar, ParseError> {
    let mut parser = Parser {
        cursor: Cursor::new(text),
        vocabulary,
        rules: Vec::new(),
        places: HashMap::new(),
        names: HashSet::new(),
        uses: Vec::new(),
        n_made: 0,
    };
    parser.grammar().map_err(|trouble| ParseError::new(text, trouble))
}

/// The state of llama.cpp's parser that decides what it takes.
struct Parser<'a> {
    cursor: Cursor<'a>,
    vocabulary: Option<&'a Vocabulary<'a>>,
    rules: Vec<Rule>,
    /// Where each rule is defined.
    places: HashMap<RuleName, usize>,
    /// Names met so far, defined or used.
    names: HashSet<RuleName>,
    /// Where each name was first used.
    uses: Vec<(RuleName, usize)>,
    /// Rules that llama.cpp has made so far for groups and repetitions.
    n_made: u64,
}

/// A part of a rule, and what the limits count.
struct Part {
    expr: Expr,
    /// Groups and repetitions inside each other.
    nesting: usize,
    /// llama.cpp's `n_prev_rules`; 0 where it has nothing that could be repeated.
    n_rules: u64,
    /// Terminals once repetitions are written out.
    n_terminals: u64,
}

impl Part {
    fn terminal(expr: Expr, n_terminals: usize) -> Self {
        let n_terminals = u64::try_from(n_terminals).unwrap_or(u64::MAX);
        Self { expr, nesting: 0, n_rules: 1, n_terminals }
    }

    /// Several parts as one expression.
    fn join(parts: Vec<Self>, join: fn(Vec<Expr>) -> Expr) -> Self {
        let nesting = parts.iter().map(|part| part.nesting).max().unwrap_or(0);
        let n_terminals = parts.iter().fold(0_u64, |n, part| n.saturating_add(part.n_terminals));
        let mut exprs: Vec<Expr> = parts.into_iter().map(|part| part.expr).collect();
        let expr = if let [_] = exprs.as_slice() { exprs.remove(0) } else { join(exprs) };
        Self { expr, nesting, n_rules: 1, n_terminals }
    }
}

impl Parser<'_> {
    fn grammar(&mut self) -> Result<Grammar, Trouble> {
        self.cursor.no_nul()?;
        let mut comment = self.cursor.blank_lines();
        while self.cursor.peek().is_some() {
            self.rule(std::mem::take(&mut comment))?;
            comment = self.cursor.blank_lines();
        }
        if let Some((name, at)) = self.uses.iter().find(|(name, _)| !self.places.contains_key(name))
        {
            return Err(Trouble { at: *at, problem: Problem::UndefinedRule(name.clone()) });
        }
        let mut rules = std::mem::take(&mut self.rules);
        if let Some(root) = rules.iter().position(|rule| rule.name == RuleName::root()) {
            rules[..=root].rotate_right(1);
        }
        let sound = Grammar::new(rules)
            .and_then(|grammar| checked(repeats::without_empty(grammar.reachable())?));
        sound.map_err(|error| {
            let at = error.rule().and_then(|name| self.places.get(name)).copied().unwrap_or(0);
            Trouble { at, problem: Problem::Unsound(error) }
        })
    }

    fn rule(&mut self, comment: Vec<String>) -> Result<(), Trouble> {
        let at = self.cursor.at();
        let Some(name) = self.cursor.name() else {
            return Err(self.cursor.expected("the name of a rule"));
        };
        self.cursor.blanks(false);
        self.cursor.expect("::=")?;
        self.cursor.blanks(true);
        self.names.insert(name.clone());
        if let Some(first) = self.places.insert(name.clone(), at) {
            let line = self.cursor.place(first).0;
            return Err(Trouble { at, problem: Problem::DuplicateRule { name, line } });
        }
        let expr = self.productions(0)?.expr;
        self.cursor.end_of_line()?;
        self.rules.push(Rule { comment, ..Rule::new(name, expr) });
        Ok(())
    }

    /// Productions, as far as they go; `depth` groups are open.
    fn productions(&mut self, depth: usize) -> Result<Part, Trouble> {
        let mut productions = vec![self.concatenation(depth)?];
        while self.cursor.take("|") {
            self.cursor.blanks(true);
            productions.push(self.concatenation(depth)?);
        }
        Ok(Part::join(productions, Expr::Choice))
    }

    fn concatenation(&mut self, depth: usize) -> Result<Part, Trouble> {
        let mut parts: Vec<Part> = Vec::new();
        while let Some(next) = self.cursor.peek() {
            let at = self.cursor.at();
            let part = match next {
                '"' => self.literal()?,
                '[' => {
                    let class = self.cursor.class()?;
                    // One of many bytes in UTF-8 takes several states.
                    let is_ascii = !class.is_negated()
                        && class.ranges().iter().all(|(_, last)| last.is_ascii());
                    Part::terminal(Expr::Class(class), if is_ascii { 1 } else { 10 })
                }
                '.' => {
                    self.cursor.take(".");
                    Part::terminal(Expr::Class(Class::any()), 10)
                }
                '<' | '!' => self.token()?,
                '(' => self.group(depth)?,
                '*' | '+' | '?' | '{' => {
                    let repeat = self.cursor.repeat(depth > 0)?;
                    match parts.pop().filter(|part| part.n_rules > 0) {
                        Some(part) => self.repeat(part, repeat, at)?,
                        None => return Err(Trouble { at, problem: Problem::NothingToRepeat }),
                    }
                }
                _ => match self.cursor.name() {
                    Some(name) => {
                        if self.names.insert(name.clone()) {
                            self.uses.push((name.clone(), at));
                        }
                        Part::terminal(Expr::Rule(name), 1)
                    }
                    None => break,
                },
            };
            parts.push(part);
            self.cursor.blanks(depth > 0);
        }
        // What is empty adds nothing, and `Expr` has no empty literal.
        let nothing = |part: &Part| part.expr == Expr::nothing();
        parts.retain(|part| !nothing(part));
        Ok(Part::join(parts, Expr::Concat))
    }

    fn literal(&mut self) -> Result<Part, Trouble> {
        let text = self.cursor.literal()?;
        Ok(text_part(text))
    }

    fn token(&mut self) -> Result<Part, Trouble> {
        let at = self.cursor.at();
        let (token, written) = self.cursor.token()?;
        let problem = match self.vocabulary {
            None => Problem::TokenWithoutModel(written),
            Some(bytes_of) => match bytes_of(token).map(String::from_utf8) {
                Some(Ok(text)) => return Ok(text_part(text)),
                Some(Err(_)) => Problem::TokenNotText(written),
                None => Problem::UnknownToken(written),
            },
        };
        Err(Trouble { at, problem })
    }

    fn group(&mut self, depth: usize) -> Result<Part, Trouble> {
        let at = self.cursor.at();
        self.cursor.take("(");
        let before = self.n_symbols();
        self.n_made += 1;
        if depth >= NESTING_LIMIT {
            return Err(Trouble { at, problem: Problem::TooDeep });
        }
        self.cursor.blanks(true);
        let mut part = self.productions(depth + 1)?;
        if !self.cursor.take(")") {
            let (line, column) = self.cursor.place(at);
            return Err(match self.cursor.peek() {
                None => Trouble { at, problem: Problem::Unclosed("(") },
                Some(_) => self
                    .cursor
                    .expected(&format!("`)` for the `(` of line {line}, column {column}")),
            });
        }
        part.nesting += 1;
        part.n_rules = (self.n_symbols() - before).max(1);
        Ok(part)
    }

    fn repeat(&mut self, part: Part, repeat: Repeat, at: usize) -> Result<Part, Trouble> {
        let times = repeat.max().filter(|max| *max > 0).unwrap_or(repeat.min().max(1));
        let n_rules = part.n_rules.saturating_mul(u64::from(times));
        let n_terminals = part.n_terminals.saturating_mul(u64::from(times));
        let nesting = part.nesting + 1;
        let problem = if n_rules > u64::from(Repeat::LIMIT) {
            Problem::RepeatTooLarge { n_rules: part.n_rules, times }
        } else if times > 1 && n_terminals > WRITTEN_OUT_LIMIT {
            Problem::RepeatTooLong { n_terminals }
        } else if nesting > NESTING_LIMIT {
            Problem::TooDeep
        } else {
            self.n_made += repeat.max().map_or(1, |max| u64::from(max - repeat.min()));
            let nothing = part.expr == Expr::nothing();
            let expr = if nothing { part.expr } else { Expr::Repeat(Box::new(part.expr), repeat) };
            let n_rules = if repeat.max() == Some(0) { 0 } else { n_rules };
            return Ok(Part { expr, nesting, n_rules, n_terminals });
        };
        Err(Trouble { at, problem })
    }

    /// Rules that llama.cpp has a number for by now.
    fn n_symbols(&self) -> u64 {
        self.n_made.saturating_add(u64::try_from(self.names.len()).unwrap_or(u64::MAX))
    }
}

fn text_part(text: String) -> Part {
    match text.len() {
        0 => Part { n_rules: 0, ..Part::terminal(Expr::nothing(), 0) },
        n_bytes => Part::terminal(Expr::Literal(text), n_bytes),
    }
}
