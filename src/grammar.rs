//! What a grammar is: rules over terminals, as much of GBNF as we use.
//!
//! GBNF is llama.cpp's notation for context-free grammars: `name ::= production | production`,
//! terminals are literals and classes of code points, and `?`, `*`, `+` and `{m,n}` repeat what
//! stands before them. A grammar here has literals, classes, rule names, concatenation,
//! alternatives and repetition; a token terminal becomes the token's text.
//!
//! [`lower`] makes a grammar from function definitions and [`parse`] from GBNF text, [`check`] finds
//! what llama.cpp would refuse or widen in silence, [`mod@print`] writes the text, [`draw`] a picture
//! and [`document`] JSON of it, [`recognize`] matches text against it.
//!
//! **Invariant:** the first rule is named `root` and no two rules have one name.

mod outline;
pub mod check;
pub mod lower;
pub mod parse;
pub mod print;
pub mod draw;
pub mod document;
pub mod recognize;

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use self::outline::Outline;
use crate::schema::SchemaError;

/// Rules, of which the first, `root`, is the start symbol.
///
/// ```
/// use call_me_maybe::grammar::{Expr, Grammar, Rule, RuleName, print, recognize::Recognizer};
///
/// let root = Rule::new(RuleName::root(), Expr::literal("yes").or(Expr::literal("no")));
/// let grammar = Grammar::new(vec![root])?;
/// assert_eq!(print::gbnf(&grammar), "root ::= \"yes\" | \"no\"\n");
/// assert!(Recognizer::new(&grammar)?.accepts(b"yes"));
/// # Ok::<(), call_me_maybe::grammar::GrammarError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    rules: Vec<Rule>,
}

impl Grammar {
    /// Takes the rules as they are; whether they are sound is for [`check::check`] to say.
    ///
    /// # Errors
    ///
    /// [`GrammarError::NoRoot`] and [`GrammarError::DuplicateRule`].
    pub fn new(rules: Vec<Rule>) -> Result<Self, GrammarError> {
        if rules.first().is_none_or(|rule| rule.name != RuleName::root()) {
            return Err(GrammarError::NoRoot);
        }
        let mut names = FxHashSet::default();
        for rule in &rules {
            if !names.insert(&rule.name) {
                return Err(GrammarError::DuplicateRule { name: rule.name.clone() });
            }
        }
        Ok(Self { rules })
    }

    /// The same without the rules that `root` does not lead to; unchanged where one is not defined.
    #[must_use]
    pub(crate) fn reachable(self) -> Self {
        match Outline::new(&self.rules) {
            Ok(outline) => self.only(&outline.reached()),
            Err(_) => self,
        }
    }

    /// The same with these of its rules, `root` among them.
    fn only(mut self, kept: &[bool]) -> Self {
        let mut kept = kept.iter();
        self.rules.retain(|_| kept.next() == Some(&true));
        self
    }

    /// The rules, `root` first.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

/// A rule name, the expression it stands for, and notes for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The name.
    pub name: RuleName,
    /// What it stands for.
    pub expr: Expr,
    /// Lines of comment above the rule.
    pub comment: Vec<String>,
    /// Whether it is the value of one argument of the call.
    ///
    /// Such rules do not nest, and some text always stands between two of them.
    pub argument: bool,
}

impl Rule {
    /// A rule without comment that is no argument's value.
    #[must_use]
    pub fn new(name: RuleName, expr: Expr) -> Self {
        Self { name, expr, comment: Vec::new(), argument: false }
    }
}

/// The name of a rule.
///
/// Invariant: not empty, and only letters, digits and `-`, llama.cpp's alphabet for names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleName(Arc<str>);

impl RuleName {
    /// Takes a name of llama.cpp's alphabet; `None` for any other.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (!name.is_empty() && name.chars().all(legal)).then(|| Self(name.into()))
    }

    /// The start symbol's name.
    #[must_use]
    pub fn root() -> Self {
        Self("root".into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a rule, or a part of one, stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// This text; not empty.
    Literal(String),
    /// One code point.
    Class(Class),
    /// What the rule of that name stands for.
    Rule(RuleName),
    /// One after the other; of no parts, nothing.
    Concat(Vec<Expr>),
    /// One of several productions.
    Choice(Vec<Expr>),
    /// The same thing several times.
    Repeat(Box<Expr>, Repeat),
}

impl Expr {
    /// The empty text.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Concat(Vec::new())
    }

    /// This text.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }

    /// A choice between this and another; choices are joined, not nested.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut productions = match self {
            Self::Choice(productions) => productions,
            one => vec![one],
        };
        match other {
            Self::Choice(others) => productions.extend(others),
            one => productions.push(one),
        }
        Self::Choice(productions)
    }

    /// This, then another; concatenations and neighboring literals are joined.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        let mut parts = match self {
            Self::Concat(parts) => parts,
            one => {
                // More are to come: most concatenations grow part by part.
                let mut parts = Vec::with_capacity(4);
                parts.push(one);
                parts
            }
        };
        let mut push = |part| match (parts.last_mut(), part) {
            (Some(Self::Literal(before)), Self::Literal(text)) => before.push_str(&text),
            (_, part) => parts.push(part),
        };
        match other {
            Self::Concat(others) => others.into_iter().for_each(push),
            one => push(one),
        }
        if let [_] = parts.as_slice() { parts.remove(0) } else { Self::Concat(parts) }
    }

    /// This or nothing.
    #[must_use]
    pub fn optional(self) -> Self {
        Self::Repeat(Box::new(self), Repeat::OPTIONAL)
    }

    /// This any number of times, also none.
    #[must_use]
    pub fn any_times(self) -> Self {
        Self::Repeat(Box::new(self), Repeat::ANY)
    }

    /// This once or more.
    #[must_use]
    pub fn at_least_once(self) -> Self {
        Self::Repeat(Box::new(self), Repeat::SOME)
    }

    /// The expressions that this one is made of.
    #[must_use]
    pub fn children(&self) -> &[Self] {
        match self {
            Self::Literal(_) | Self::Class(_) | Self::Rule(_) => &[],
            Self::Concat(parts) | Self::Choice(parts) => parts,
            Self::Repeat(inner, _) => std::slice::from_ref(&**inner),
        }
    }

    /// The rules that it uses, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&RuleName> {
        fn add<'a>(expr: &'a Expr, names: &mut Vec<&'a RuleName>) {
            match expr {
                Expr::Rule(name) => names.push(name),
                other => other.children().iter().for_each(|part| add(part, names)),
            }
        }
        let mut names = Vec::new();
        add(self, &mut names);
        names
    }
}

/// A set of code points: inclusive ranges, or all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    ranges: Vec<(char, char)>,
    negated: bool,
}

impl Class {
    /// The code points of these inclusive ranges.
    #[must_use]
    pub fn of(ranges: &[(char, char)]) -> Self {
        Self { ranges: ranges.to_vec(), negated: false }
    }

    /// All code points but those of these inclusive ranges.
    #[must_use]
    pub fn but(ranges: &[(char, char)]) -> Self {
        Self { ranges: ranges.to_vec(), negated: true }
    }

    /// Any code point.
    #[must_use]
    pub fn any() -> Self {
        Self::of(&[('\0', char::MAX)])
    }

    /// The ranges as given.
    #[must_use]
    pub fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// Whether the class holds what the ranges do not.
    #[must_use]
    pub fn is_negated(&self) -> bool {
        self.negated
    }

    /// Whether there is no code point in it; surrogates are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        if !self.negated {
            return self.ranges.iter().all(|(first, last)| first > last);
        }
        let mut ranges = self.ranges.clone();
        ranges.sort_unstable();
        // The first code point that may be in none of the ranges.
        let mut next = 0;
        for (first, last) in ranges {
            if u32::from(first) > next {
                return false;
            }
            next = next.max(u32::from(last) + 1);
            if next == 0xd800 {
                next = 0xe000;
            }
        }
        next > u32::from(char::MAX)
    }
}

/// How many times: `min` to `max`, both included; no `max` means any number.
///
/// Invariant: `min <= max <= LIMIT`, and `min <= LIMIT`.
/// llama.cpp turns a larger `max` into "unbounded" without saying so (`llama-grammar.cpp`,
/// `MAX_REPETITION_THRESHOLD`), hence the refusal here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    min: u32,
    max: Option<u32>,
}

impl Repeat {
    /// Most repetitions that llama.cpp counts.
    pub const LIMIT: u32 = 2_000;
    /// `?`
    pub const OPTIONAL: Self = Self { min: 0, max: Some(1) };
    /// `*`
    pub const ANY: Self = Self { min: 0, max: None };
    /// `+`
    pub const SOME: Self = Self { min: 1, max: None };

    /// `{min,max}`, or `{min,}` without a maximum.
    ///
    /// # Errors
    ///
    /// [`GrammarError::RepeatTooLong`] and [`GrammarError::RepeatReversed`].
    pub fn new(min: u32, max: Option<u32>) -> Result<Self, GrammarError> {
        let most = max.unwrap_or(min).max(min);
        if most > Self::LIMIT {
            return Err(GrammarError::RepeatTooLong { max: most });
        }
        match max {
            Some(max) if max < min => Err(GrammarError::RepeatReversed { min, max }),
            _ => Ok(Self { min, max }),
        }
    }

    /// Fewest times.
    #[must_use]
    pub fn min(self) -> u32 {
        self.min
    }

    /// Most times, if there is a most.
    #[must_use]
    pub fn max(self) -> Option<u32> {
        self.max
    }
}

/// Why there is no grammar, or no sound one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// There is no function to call: none given, or all of them left out.
    #[error("there is no function to choose from{}", refusals(refused))]
    NoFunctions {
        /// The functions left out and why.
        refused: Vec<(crate::definitions::FunctionName, SchemaError)>,
    },
    /// The first rule is not `root`.
    #[error("the first rule is not \"root\"")]
    NoRoot,
    /// Two rules have one name.
    #[error("the rule {name} is defined twice")]
    DuplicateRule {
        /// The name.
        name: RuleName,
    },
    /// A rule is used and not defined.
    #[error("the rule {name}, used in {rule}, is not defined")]
    UndefinedRule {
        /// The missing rule.
        name: RuleName,
        /// The rule that uses it.
        rule: RuleName,
    },
    /// A rule that `root` does not lead to.
    #[error("the rule {name} cannot be reached from root")]
    UnreachableRule {
        /// The rule.
        name: RuleName,
    },
    /// A rule that begins with itself; llama.cpp refuses it.
    #[error("the rule {name} is left-recursive")]
    LeftRecursion {
        /// The rule.
        name: RuleName,
    },
    /// A rule whose text never ends.
    #[error("the rule {name} can never be completed")]
    EndlessRule {
        /// The rule.
        name: RuleName,
    },
    /// A repetition without end of something that may be empty: endlessly ambiguous.
    #[error("the rule {name} repeats without bound what may be empty")]
    EmptyRepeat {
        /// The rule.
        name: RuleName,
    },
    /// An empty class, an empty choice or an empty literal.
    #[error("the rule {name} has an empty part")]
    EmptyPart {
        /// The rule.
        name: RuleName,
    },
    /// llama.cpp would not keep this bound.
    #[error("{max} repetitions exceed the limit of {limit}", limit = Repeat::LIMIT)]
    RepeatTooLong {
        /// Most repetitions asked for.
        max: u32,
    },
    /// llama.cpp refuses a bound times the rules of what is repeated beyond the same limit.
    #[error(
        "the rule {name} repeats {n_rules} rules {times} times; llama.cpp's limit is {limit}",
        limit = Repeat::LIMIT
    )]
    RepeatTooLarge {
        /// The rule.
        name: RuleName,
        /// Rules that llama.cpp makes for what is repeated.
        n_rules: u64,
        /// Times.
        times: u32,
    },
    /// More at least than at most.
    #[error("at least {min} and at most {max} repetitions contradict each other")]
    RepeatReversed {
        /// Fewest.
        min: u32,
        /// Most.
        max: u32,
    },
}

impl GrammarError {
    /// The rule that is not sound, if it is one rule.
    #[must_use]
    pub fn rule(&self) -> Option<&RuleName> {
        match self {
            Self::DuplicateRule { name }
            | Self::UnreachableRule { name }
            | Self::LeftRecursion { name }
            | Self::EndlessRule { name }
            | Self::EmptyRepeat { name }
            | Self::EmptyPart { name }
            | Self::RepeatTooLarge { name, .. } => Some(name),
            Self::UndefinedRule { rule, .. } => Some(rule),
            Self::NoFunctions { .. }
            | Self::NoRoot
            | Self::RepeatTooLong { .. }
            | Self::RepeatReversed { .. } => None,
        }
    }
}

fn refusals(refused: &[(crate::definitions::FunctionName, SchemaError)]) -> String {
    if refused.is_empty() {
        return String::new();
    }
    let each: Vec<String> = refused
        .iter()
        .map(|(name, error)| format!("{}: {error}", name.as_str().escape_debug()))
        .collect();
    format!(": {}", each.join("; "))
}
