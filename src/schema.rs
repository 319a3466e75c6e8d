//! JSON Schema as [`Schema`]: for every value, the alternatives that the grammar writes out.
//!
//! A schema is read in three steps: the document finds where references lead, each schema (and its
//! negation) becomes a condition on each type, and the conditions that meet at one place are joined to
//! a [`Node`] without references. So `allOf`, siblings of `$ref`, `if`, `not` and `oneOf` are a real
//! intersection, union and complement.
//!
//! **Invariant:** every value that a [`Schema`] describes is valid against the JSON Schema it was
//! parsed from.
//! **Invariant:** an assertion keyword of any draft that is not expressed is a [`SchemaError`] with
//! its JSON pointer, never a silent widening. Annotations, keys that no draft defines and unknown
//! format names assert nothing and are passed over, as the standard says (JSON Schema 2020-12 core,
//! section 6.5).
//!
//! # What is expressed
//!
//! Drafts 4 to 2020-12 in one: `type`, `enum`, `const`; `minimum`, `maximum`, `exclusiveMinimum`,
//! `exclusiveMaximum` (draft 4's booleans too), `multipleOf`; `minLength`, `maxLength`, `pattern` (ECMA-262,
//! with look-arounds), `format`; `items`, `prefixItems`, `additionalItems` and the tuple form of `items`,
//! `minItems`, `maxItems`, `contains`, `minContains`, `maxContains`, `uniqueItems` over a short list of values;
//! `properties`, `required`, `additionalProperties`, `patternProperties`, `propertyNames`, `minProperties`,
//! `maxProperties`, `dependentRequired`, `dependentSchemas`, `dependencies`; `allOf`, `anyOf`, `oneOf`, `not`,
//! `if`/`then`/`else`; `$ref`, `$defs`, `definitions`, `$anchor`, `$id` and `id` inside the document,
//! `$dynamicRef` with one possible target; `unevaluatedProperties` and, beside nothing that applies schemas in
//! place, `unevaluatedItems`; boolean schemas.
//!
//! `tests/keywords.rs` has texts that each takes and refuses. Not expressed, and so an error: a
//! reference out of the document; `uniqueItems` over other items; in a `not`, an `if` condition or a
//! `oneOf` whose branches overlap, the opposite of `format`, `uniqueItems`, `propertyNames` and
//! `dependentSchemas`; patterns with back-references; and what is beyond a limit (automata of 20,000 states, 512
//! alternatives of one type at one place, 128 levels, 50,000 places).
//!
//! # Known departures
//!
//! The grammar is narrower than the schema here; each line names the test that shows it.
//!
//! - Properties come in the order of the definition, and keys that are not declared after them
//!   (`departures::property_order_is_the_definitions`).
//! - White space is fixed to `", "` and `": "` (`departures::white_space_is_fixed`).
//! - An integer has no fraction, no exponent, and no `-0` (`departures::an_integer_is_digits`).
//! - A number with a bound other than 0, a `multipleOf` or an excluded value has no exponent, and with a
//!   lower bound it is not `-0` (`departures::a_bounded_number_has_no_exponent`).
//! - The members of `enum` and `const` are written as listed: `1` is not `1.0`, no escape is another's
//!   equal, an object has its keys in that order (`departures::listed_values_are_written_as_listed`).
//! - In strings with a pattern or a format, and in keys that are not declared, characters are spelled the shortest
//!   way (`departures::where_the_characters_matter_they_are_spelled_the_shortest_way`).
//! - A raw U+007F is written as an escape (`departures::delete_is_escaped`).
//! - A format is at most what [`crate::regular::format`] says, for some less than its RFC (the tests there).
//! - With `unevaluatedProperties`, a value that meets several branches of `anyOf` has the properties of one.
//!
//! With [`Undeclared::Omit`], as a run has it, it is narrower in these too:
//!
//! - Keys that are not declared are left out where nothing describes their values
//!   (`departures::a_run_writes_no_undeclared_keys`).
//! - Without a `type`, `properties` means an object, `items` an array, `pattern` a string, `minimum` a number
//!   (`departures::in_a_run_a_keyword_without_type_means_its_type`).
//!
//! It is wider, and the validator refuses the text, here:
//!
//! - A key that is not declared may stand twice
//!   (`departures::a_repeated_undeclared_key_is_left_to_the_validator`).
//! - Recursive schemas nest without a bound, and `serde_json` reads 128 levels
//!   (`departures::depth_beyond_what_serde_reads_is_left_to_the_validator`).
//! - With [`Options::lenient`], all that is not expressed
//!   (`departures::lenient_leaves_to_the_validator_what_has_no_grammar`).

mod document;
mod constraint;
mod read;
mod compile;
mod flatten;
mod contains;

use serde_json::Value;

use self::compile::Compiler;
pub(crate) use self::document::Draft;
use self::flatten::flatten;
use crate::definitions::{FunctionDef, child, kind};
use crate::regular::{Dfa, TooLarge};

/// Schemas nested deeper than this are refused; no real one comes near.
pub const MAX_DEPTH: usize = 128;

/// A schema of more different places than this is refused.
pub const MAX_NODES: usize = 50_000;

/// What becomes of what a schema allows only because it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undeclared {
    /// It is allowed, as the standard says.
    Allow,
    /// Keys beside declared properties are left out, and without `type` a keyword of one type means that
    /// type: what whoever wrote the schema had in mind.
    Omit,
}

/// How a schema is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What becomes of what the schema does not declare.
    pub undeclared: Undeclared,
    /// Whether an assertion that cannot be expressed is left to the validator; otherwise it is an error.
    pub lenient: bool,
}

impl Options {
    /// All that the schema allows, and an error for what cannot be expressed.
    pub const STRICT: Self = Self { undeclared: Undeclared::Allow, lenient: false };
}

/// What a value may be; the whole value is node 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    nodes: Vec<Node>,
    notes: Notes,
}

/// What is no error and yet worth a word.
#[derive(Debug, Clone, Default, PartialEq)]
struct Notes {
    /// Keys that no draft defines.
    n_unknown: usize,
    /// The pointers of those that look like a keyword, with the keyword.
    near_misses: Vec<(String, &'static str)>,
    widened: Vec<SchemaError>,
}

/// One place in a [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) usize);

/// What a value at one place may be: any of these alternatives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// Where its schema stands, or one of them: a JSON pointer.
    pub pointer: String,
    /// Any value at all; nothing else is said then.
    pub any: bool,
    /// `null`.
    pub null: bool,
    /// `false`, `true`.
    pub booleans: [bool; 2],
    /// Numbers; no two overlap.
    pub numbers: Vec<Numbers>,
    /// Whether every number here is a `number` by its type, so that `2` is output as `2.0`.
    pub decimal: bool,
    /// Strings.
    pub strings: Vec<Strings>,
    /// Arrays.
    pub arrays: Vec<Array>,
    /// Objects.
    pub objects: Vec<Object>,
}

/// Texts of numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Any number.
    Number,
    /// Any integer.
    Integer,
    /// These, as listed.
    Listed(Vec<String>),
    /// The texts of an automaton.
    Language(Dfa),
}

/// Strings, before they are written as JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Strings {
    /// Any of a length in code points.
    Length {
        /// Fewest.
        min: usize,
        /// Most, if there is a most.
        max: Option<usize>,
    },
    /// These.
    Listed(Vec<String>),
    /// Those of an automaton.
    Language(Dfa),
}

/// An array.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The first items, one by one; a shorter array has the first of them.
    pub prefix: Vec<NodeId>,
    /// The items after those.
    pub items: Items,
    /// Fewest items, those of the prefix included.
    pub min: usize,
    /// Most items, if there is a most.
    pub max: Option<usize>,
}

/// The items after an array's prefix.
#[derive(Debug, Clone, PartialEq)]
pub enum Items {
    /// There are none.
    None,
    /// Each is of this kind.
    Each(NodeId),
    /// Each is of one of two kinds, and the number of the good ones is bounded.
    Contains {
        /// Those that count.
        good: NodeId,
        /// Those that do not.
        bad: NodeId,
        /// Fewest good ones.
        min: usize,
        /// Most good ones, if there is a most.
        max: Option<usize>,
    },
    /// Each is one of these texts, and no two are the same.
    Distinct(Vec<String>),
}

/// An object: its properties in this order, then other members in any order.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The properties that have a name in the schema.
    pub properties: Vec<Property>,
    /// Other members, by their keys; no two have a key in common.
    pub others: Vec<Others>,
    /// Fewest members, or 0 where the required ones are enough.
    pub min: usize,
    /// Most members, if there is a most.
    pub max: Option<usize>,
}

/// One named property of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// The key.
    pub name: String,
    /// What its value may be.
    pub node: NodeId,
    /// Whether every object has it.
    pub required: bool,
}

/// The keys of members that are not named in the schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Keys {
    /// Any but these, which are sorted.
    AllBut(Vec<String>),
    /// Those of an automaton; none is the name of a property.
    Language(Dfa),
}

/// Members that are not named.
#[derive(Debug, Clone, PartialEq)]
pub struct Others {
    /// Their keys.
    pub keys: Keys,
    /// What their values may be.
    pub node: NodeId,
}

impl Numbers {
    fn is_empty(&self) -> bool {
        match self {
            Self::Number | Self::Integer => false,
            Self::Listed(texts) => texts.is_empty(),
            Self::Language(language) => language.is_empty(),
        }
    }

    fn language(&self) -> Dfa {
        let every = crate::regular::number::Interval::default();
        match self {
            Self::Number => {
                crate::regular::number::numbers(&every, &[]).unwrap_or_else(|_| Dfa::empty())
            }
            Self::Integer => {
                crate::regular::number::integers(&every, &[]).unwrap_or_else(|_| Dfa::empty())
            }
            Self::Listed(texts) => Dfa::of_strings(texts.iter().map(String::as_str)),
            Self::Language(language) => language.clone(),
        }
    }
}

impl Strings {
    /// The strings as an automaton.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] for lengths beyond its limit.
    pub fn language(&self) -> Result<Dfa, TooLarge> {
        match self {
            Self::Length { min: 0, max: None } => Ok(Dfa::any()),
            Self::Length { min, max } => {
                let bound = |n: usize| u32::try_from(n).map_err(|_| TooLarge);
                Dfa::with_length(bound(*min)?, max.map(bound).transpose()?)
            }
            Self::Listed(texts) => Ok(Dfa::of_strings(texts.iter().map(String::as_str))),
            Self::Language(language) => Ok(language.clone()),
        }
    }
}

impl Keys {
    /// Whether a key is one of them.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        match self {
            Self::AllBut(names) => names.binary_search_by(|name| name.as_str().cmp(key)).is_err(),
            Self::Language(language) => language.accepts(key),
        }
    }

    /// The keys as an automaton.
    #[must_use]
    pub fn language(&self) -> Dfa {
        match self {
            Self::AllBut(names) => Dfa::of_strings(names.iter().map(String::as_str)).complement(),
            Self::Language(language) => language.clone(),
        }
    }
}

impl Schema {
    /// The place of the whole value.
    pub const ROOT: NodeId = NodeId(0);

    /// What a value at a place may be.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// What [`Options::lenient`] left to the validator.
    #[must_use]
    pub fn widened(&self) -> &[SchemaError] {
        &self.notes.widened
    }

    /// Passes on what is no error and yet worth a word.
    pub(crate) fn tell(&self, function: &FunctionDef) {
        let Notes { n_unknown, near_misses, widened } = &self.notes;
        if *n_unknown > 0 {
            tracing::debug!(
                n_keys = *n_unknown,
                "keys that no draft of JSON Schema defines are ignored"
            );
        }
        for (pointer, keyword) in near_misses {
            tracing::warn!(
                pointer = %function.pointer_in_file(pointer).escape_debug(),
                keyword,
                "an unknown key in a schema looks like a misspelt keyword"
            );
        }
        for error in widened {
            let error = error.in_file(function);
            tracing::warn!(%error, "not in the grammar, left to the validator");
        }
    }

    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

/// Why a schema cannot be expressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {} {reason}", pointer.escape_debug(), quoted(keyword))]
pub struct SchemaError {
    /// The keyword that is at fault.
    pub keyword: String,
    /// Where it stands: a JSON pointer inside the schema, or after [`SchemaError::in_file`] inside
    /// the file.
    pub pointer: String,
    /// What is the matter with it.
    pub reason: SchemaProblem,
}

fn quoted(keyword: &str) -> String {
    match keyword {
        "" => "the schema".to_owned(),
        keyword => format!("\"{}\"", keyword.escape_debug()),
    }
}

impl SchemaError {
    /// The same, with the pointer in the user's file in place of the one inside `parameters`.
    #[must_use]
    pub fn in_file(&self, function: &FunctionDef) -> Self {
        Self { pointer: function.pointer_in_file(&self.pointer), ..self.clone() }
    }
}

/// What is the matter with a keyword; reads on after the keyword's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaProblem {
    /// An assertion that the grammar cannot express.
    #[error("is not supported")]
    Unsupported,
    /// An assertion whose opposite the grammar cannot express.
    #[error("is not supported where its opposite is needed (in not, if, oneOf or contains)")]
    NegationUnsupported,
    /// A keyword that the schema's own draft has not, where its opposite is needed: whoever ignores it allows less.
    #[error(
        "is newer than the schema's draft, and where its opposite is needed (in not, if, oneOf or contains) \
         the drafts differ; name a newer draft in $schema"
    )]
    NewerThanDraft,
    /// An array without duplicates of items that are not a short list of values.
    #[error("is not supported for items that are not a short list of values")]
    EndlesslyManyItems,
    /// A pattern that no automaton recognizes, or none of a bearable size.
    #[error("cannot be written as a grammar: {message}")]
    Pattern {
        /// What is the matter.
        message: String,
    },
    /// A number that is not computed with.
    #[error("cannot be written as a grammar: {message}")]
    Number {
        /// What is the matter.
        message: String,
    },
    /// A reference out of the document.
    #[error("refers to {reference:?}, which is not in this schema; put the schema under \"$defs\"")]
    Unresolved {
        /// The reference as it stands.
        reference: String,
    },
    /// A schema that is defined as itself.
    #[error("refers to itself without a property or an item between")]
    Circular,
    /// No type of JSON.
    #[error("has the unknown type {name:?}")]
    UnknownType {
        /// The name as it stands.
        name: String,
    },
    /// The keyword's value has the wrong form.
    #[error("must be {expected}, found {found}")]
    Malformed {
        /// The form that the standard asks for.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// The keyword leaves no value at all.
    #[error("leaves no value that would be valid")]
    Unsatisfiable,
    /// Nested too deep.
    #[error("nests deeper than {MAX_DEPTH} schemas")]
    TooDeep,
    /// Too many combinations of `anyOf`, `oneOf`, `dependencies` and the like.
    #[error("has more than {} combinations of its parts", constraint::MAX_ALTERNATIVES)]
    TooManyAlternatives,
    /// Too many `patternProperties` at one place.
    #[error("has too many patterns of keys at one place")]
    TooManyPatterns,
    /// Out of bounds in another way.
    #[error("makes a grammar that is too large")]
    TooLarge,
}

impl SchemaProblem {
    /// Whether it is a limit of ours, and not a mistake in the schema.
    fn is_a_limit(&self) -> bool {
        !matches!(self, Self::UnknownType { .. } | Self::Malformed { .. } | Self::Unsatisfiable)
    }
}

/// Reads a schema.
///
/// ```
/// use call_me_maybe::schema::{Options, parse};
///
/// let schema = serde_json::json!({"properties": {"n": {"$ref": "https://example.com/n"}}});
/// let error = parse(&schema, Options::STRICT).unwrap_err();
/// assert!(error.to_string().starts_with(r#"/properties/n/$ref: "$ref" refers to "https://"#));
/// ```
///
/// # Errors
///
/// [`SchemaError`] names the keyword that cannot be expressed and its JSON pointer.
pub fn parse(schema: &Value, options: Options) -> Result<Schema, SchemaError> {
    let (mut compiler, root) = Compiler::new(schema, options);
    let places = flatten(&mut compiler, &root, options.undeclared);
    let notes = Notes {
        n_unknown: compiler.n_unknown,
        near_misses: compiler.near_misses,
        widened: compiler.widened,
    };
    Ok(Schema { nodes: places?, notes })
}

fn error(keyword: &str, pointer: &str, reason: SchemaProblem) -> SchemaError {
    SchemaError { keyword: keyword.to_owned(), pointer: child(pointer, keyword), reason }
}

/// An error of a whole schema, named after the key that it stands under.
fn error_at(pointer: &str, reason: SchemaProblem) -> SchemaError {
    let key = pointer.rsplit('/').next().unwrap_or_default();
    let keyword = key.replace("~1", "/").replace("~0", "~");
    SchemaError { keyword, pointer: pointer.to_owned(), reason }
}

fn malformed(keyword: &str, pointer: &str, expected: &'static str, found: &Value) -> SchemaError {
    error(keyword, pointer, SchemaProblem::Malformed { expected, found: kind(found) })
}
