//! What is wrong with a GBNF text, and where.

use super::cursor::{Trouble, place};
use super::{NESTING_LIMIT, WRITTEN_OUT_LIMIT};
use crate::grammar::{GrammarError, Repeat, RuleName};

/// A problem and its place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in code points, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

impl ParseError {
    pub(super) fn new(text: &str, Trouble { at, problem }: Trouble) -> Self {
        let (line, column) = place(text, at);
        Self { line, column, problem }
    }
}

/// What is wrong with a GBNF text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What could stand here.
        expected: String,
        /// What does.
        found: String,
    },
    /// A bracket or quote without its other half; the place is the first half's.
    #[error("`{0}` is not closed")]
    Unclosed(&'static str),
    /// An escape that llama.cpp does not know.
    #[error(
        "unknown escape `\\{0}`; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH and \\UHHHHHHHH"
    )]
    UnknownEscape(String),
    /// A number that is no code point.
    #[error("U+{0:04X} is not a character: no UTF-8 text has it")]
    NotACharacter(u32),
    /// `[]` or `[^]`, which llama.cpp takes for nothing at all.
    #[error("an empty class matches no character; write \"\" for nothing or . for any character")]
    EmptyClass,
    /// A range that holds nothing.
    #[error("the range ends before it begins; write the smaller character first, or - last")]
    ReversedRange,
    /// A NUL ends the text for llama.cpp.
    #[error("a NUL character, at which llama.cpp stops reading; write \\x00")]
    Nul,
    /// A repetition of nothing.
    #[error("nothing stands before this to repeat")]
    NothingToRepeat,
    /// A bound that llama.cpp refuses or widens without saying so.
    #[error(
        "{0} repetitions exceed llama.cpp's limit of {limit}; split them over nested groups or rules",
        limit = Repeat::LIMIT
    )]
    RepeatTooMany(String),
    /// More at least than at most.
    #[error("at least {min} and at most {max} repetitions contradict each other")]
    RepeatReversed {
        /// Fewest.
        min: u32,
        /// Most.
        max: u32,
    },
    /// llama.cpp refuses a bound times the rules of what is repeated beyond the same limit.
    #[error(
        "{n_rules} rules repeated {times} times exceed llama.cpp's limit of {limit}; \
         give what is repeated a rule of its own",
        limit = Repeat::LIMIT
    )]
    RepeatTooLarge {
        /// Rules that llama.cpp makes for what is repeated.
        n_rules: u64,
        /// Times.
        times: u32,
    },
    /// The recognizer would need too much memory.
    #[error(
        "the repetition comes to {n_terminals} characters, the limit is {WRITTEN_OUT_LIMIT}; \
         give what is repeated a rule of its own"
    )]
    RepeatTooLong {
        /// Terminals once it is written out.
        n_terminals: u64,
    },
    /// More nesting than [`NESTING_LIMIT`].
    #[error(
        "more than {NESTING_LIMIT} groups and repetitions inside each other; \
         give an inner group a rule of its own"
    )]
    TooDeep,
    /// A name without a rule.
    #[error("the rule {0} is not defined")]
    UndefinedRule(RuleName),
    /// A second definition; llama.cpp would forget the first.
    #[error("the rule {name} is defined in line {line} already; join them with |")]
    DuplicateRule {
        /// The name.
        name: RuleName,
        /// The line of the first definition.
        line: usize,
    },
    /// A token terminal where no model is at hand.
    #[error("`{0}` names a token of a model; give the model with --model")]
    TokenWithoutModel(String),
    /// No such token.
    #[error("`{0}` is not a token of the model")]
    UnknownToken(String),
    /// A token of bytes that are no text by themselves.
    #[error("`{0}` is a token of incomplete UTF-8; write the whole text as a literal")]
    TokenNotText(String),
    /// `!<…>`
    #[error("`{0}`, all tokens but one, is not supported; write the texts that may stand here")]
    NegatedToken(String),
    /// The rules together are not sound.
    #[error("{0}")]
    Unsound(GrammarError),
}
