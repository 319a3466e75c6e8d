//! A document and a recognizer to a spelling that is taken.
//!
//! For a value and a place in the grammar the search finds every place that a spelling of the
//! value leads to, once; so equal values at equal places cost nothing again, and what one member
//! of an object does is known however many orders it stands in.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::document::{Content, Document, NodeId, Text};
use super::spelling;
use super::{Outcome, Refusal};
use crate::grammar::recognize::{Place, Recognizer};

/// Steps of a search at most: texts offered to the grammar, and orders looked at.
///
/// A call with 20 arguments takes some hundreds.
pub const MAX_STEPS: usize = 1_000_000;

/// The order in which keys are tried first: as the schemas declare them.
#[derive(Debug, Clone, Default)]
pub struct Ranks(HashMap<String, usize>);

impl Ranks {
    /// The keys of every `properties` inside these schemas, in order of appearance.
    pub fn of<'a>(schemas: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut ranks = Self::default();
        schemas.into_iter().for_each(|schema| ranks.add(schema));
        ranks
    }

    /// `usize::MAX` for a key that is not declared.
    pub(super) fn rank(&self, key: &Text) -> usize {
        let rank = key.decoded.as_ref().and_then(|key| self.0.get(key));
        rank.copied().unwrap_or(usize::MAX)
    }

    fn add(&mut self, schema: &Value) {
        match schema {
            Value::Object(members) => {
                if let Some(Value::Object(declared)) = members.get("properties") {
                    for key in declared.keys() {
                        let next = self.0.len();
                        self.0.entry(key.clone()).or_insert(next);
                    }
                }
                members.values().for_each(|member| self.add(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            _ => {}
        }
    }
}

/// Looks for a spelling of the document that the grammar takes from where `start` stands to its
/// end.
///
/// ```
/// use call_me_maybe::check::{Document, Outcome, Ranks, spell};
/// use call_me_maybe::grammar::{lower, recognize::Recognizer};
///
/// let file = br#"[{"name": "f", "parameters": {"n": {"type": "integer"}, "s": {"type": "string"}}}]"#;
/// let functions = call_me_maybe::definitions::parse(file)?;
/// let grammar = lower::calls(&functions, lower::Options::LEGAL)?.grammar;
/// let start = Recognizer::new(&grammar)?;
/// let call = Document::parse(r#"{"arguments":{"s":"\u0061","n":1.0},"name":"f"}"#)?;
/// let taken = r#"{"name": "f", "arguments": {"n": 1, "s": "a"}}"#;
/// assert_eq!(spell(&call, &start, &Ranks::default()), Outcome::Accepted(taken.to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn spell(document: &Document, start: &Recognizer, ranks: &Ranks) -> Outcome {
    let memo = vec![HashMap::new(); document.len()];
    let mut search = Search { document, ranks, n_steps: 0, memo, furthest: None, is_silent: false };
    let root = Document::root();
    let Ok(ways) = search.value(root, start, &Prefix::default()) else {
        return Outcome::Undecided;
    };
    if let Some(way) = ways.iter().find(|way| way.at.can_end()) {
        return Outcome::Accepted(way.text.clone());
    }
    for way in ways.iter() {
        search.fail(&way.at, &Prefix::default().then(&way.text), "", root);
    }
    match search.furthest {
        Some(Furthest { at, taken, rest, node }) => Outcome::Refused(Refusal {
            taken,
            rest,
            expected: super::expected(&at),
            pointer: document.pointer(node),
        }),
        // Every way that ends was offered and refused.
        None => Outcome::Undecided,
    }
}

/// The steps are used up.
pub(super) struct OutOfSteps;

/// One place that a value leads to, and the spelling that does.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) at: Recognizer,
    pub(super) text: String,
}

/// The text before a value, in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Prefix<'a> {
    before: Option<&'a Prefix<'a>>,
    text: &'a str,
    len: usize,
}

impl<'a> Prefix<'a> {
    pub(super) fn then(&'a self, text: &'a str) -> Prefix<'a> {
        Prefix { before: Some(self), text, len: self.len + text.len() }
    }

    fn text(&self) -> String {
        let mut pieces = vec![self.text];
        let mut at = self.before;
        while let Some(prefix) = at {
            pieces.push(prefix.text);
            at = prefix.before;
        }
        pieces.into_iter().rev().collect()
    }
}

/// The furthest place that is known.
pub(super) struct Furthest {
    at: Recognizer,
    pub(super) taken: Vec<u8>,
    rest: Vec<u8>,
    node: NodeId,
}

pub(super) struct Search<'a> {
    pub(super) document: &'a Document,
    pub(super) ranks: &'a Ranks,
    n_steps: usize,
    /// For each value, where it leads from the places that it was tried at.
    memo: Vec<HashMap<Place, Rc<Vec<Way>>>>,
    furthest: Option<Furthest>,
    /// Failures are not told: what is tried stands in no spelling.
    is_silent: bool,
}

impl Search<'_> {
    /// Every place that a spelling of the value leads to, each once.
    pub(super) fn value(
        &mut self,
        node: NodeId,
        start: &Recognizer,
        prefix: &Prefix<'_>,
    ) -> Result<Rc<Vec<Way>>, OutOfSteps> {
        let place = start.place();
        if let Some(ways) = self.memo[node].get(&place) {
            return Ok(Rc::clone(ways));
        }
        let document = self.document;
        let ways = match document.content(node) {
            Content::Literal(text) => {
                self.spellings(std::slice::from_ref(text), node, start, prefix)?
            }
            Content::Number(text) => {
                self.spellings(&spelling::numbers(text), node, start, prefix)?
            }
            Content::String(text) => {
                self.spellings(&spelling::strings(text, start), node, start, prefix)?
            }
            Content::Array(items) => self.array(items, node, start, prefix)?,
            Content::Object(members) => self.object(members, node, start, prefix)?,
        };
        let ways = Rc::new(ways);
        self.memo[node].insert(place, Rc::clone(&ways));
        Ok(ways)
    }

    fn spellings(
        &mut self,
        spellings: &[String],
        node: NodeId,
        start: &Recognizer,
        prefix: &Prefix<'_>,
    ) -> Result<Vec<Way>, OutOfSteps> {
        let mut ways = Ways::default();
        self.silently(|search| {
            for text in spellings {
                if let Some(at) = search.offer(start, text, prefix, node)? {
                    ways.add(Way { at, text: text.clone() });
                }
            }
            Ok(())
        })?;
        // What the others lack is of interest to nobody: the first is how one would write it.
        if let (true, Some(text)) = (ways.list.is_empty(), spellings.first()) {
            self.offer(start, text, prefix, node)?;
        }
        Ok(ways.list)
    }

    fn array(
        &mut self,
        items: &[NodeId],
        node: NodeId,
        start: &Recognizer,
        prefix: &Prefix<'_>,
    ) -> Result<Vec<Way>, OutOfSteps> {
        let mut ways = self.spellings(&["[".to_owned()], node, start, prefix)?;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                ways = self.each_then(ways, ", ", node, prefix)?;
            }
            let mut next = Ways::default();
            for Way { at, text } in ways {
                let inner = self.value(*item, &at, &prefix.then(&text))?;
                next.add_all(text, &inner);
            }
            ways = next.list;
        }
        self.each_then(ways, "]", node, prefix)
    }

    /// The ways that the text can follow.
    pub(super) fn each_then(
        &mut self,
        ways: Vec<Way>,
        text: &str,
        node: NodeId,
        prefix: &Prefix<'_>,
    ) -> Result<Vec<Way>, OutOfSteps> {
        let mut next = Ways::default();
        for mut way in ways {
            if let Some(at) = self.offer(&way.at, text, &prefix.then(&way.text), node)? {
                way.text.push_str(text);
                next.add(Way { at, text: way.text });
            }
        }
        Ok(next.list)
    }

    /// The spellings of a key that can follow.
    pub(super) fn key(
        &mut self,
        key: &Text,
        node: NodeId,
        start: &Recognizer,
        prefix: &Prefix<'_>,
    ) -> Result<Vec<Way>, OutOfSteps> {
        self.spellings(&spelling::strings(key, start), node, start, prefix)
    }

    /// Where the text leads; remembers how far it came where it leads nowhere.
    pub(super) fn offer(
        &mut self,
        start: &Recognizer,
        text: &str,
        prefix: &Prefix<'_>,
        node: NodeId,
    ) -> Result<Option<Recognizer>, OutOfSteps> {
        self.step()?;
        let mut at = start.clone();
        match at.push_all(text.as_bytes()) {
            Ok(()) => Ok(Some(at)),
            Err(offset) => {
                if !self.is_silent && self.is_furthest(prefix.len + offset) {
                    let (taken, rest) = text.as_bytes().split_at(offset);
                    let known = at.push_all(taken);
                    debug_assert_eq!(known, Ok(()), "the bytes before the refused one are taken");
                    self.remember(at, prefix, taken, rest, node);
                }
                Ok(None)
            }
        }
    }

    /// Tries what is no part of a spelling, so that its failures are not told.
    pub(super) fn silently<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_silent, true);
        let done = work(self);
        self.is_silent = before;
        done
    }

    /// Does the work, and gives the furthest place of its failures apart.
    pub(super) fn apart<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Option<Furthest>) {
        let before = self.furthest.take();
        let done = work(self);
        (done, std::mem::replace(&mut self.furthest, before))
    }

    /// Keeps a place if it is the furthest.
    pub(super) fn blame(&mut self, place: Furthest) {
        if self.is_furthest(place.taken.len()) {
            self.furthest = Some(place);
        }
    }

    pub(super) fn step(&mut self) -> Result<(), OutOfSteps> {
        self.n_steps += 1;
        if self.n_steps > MAX_STEPS { Err(OutOfSteps) } else { Ok(()) }
    }

    /// The text ends at `at`, and it must not.
    fn fail(&mut self, at: &Recognizer, prefix: &Prefix<'_>, rest: &str, node: NodeId) {
        if self.is_furthest(prefix.len) {
            self.remember(at.clone(), prefix, b"", rest.as_bytes(), node);
        }
    }

    fn is_furthest(&self, offset: usize) -> bool {
        self.furthest.as_ref().is_none_or(|furthest| furthest.taken.len() < offset)
    }

    fn remember(
        &mut self,
        at: Recognizer,
        prefix: &Prefix<'_>,
        taken: &[u8],
        rest: &[u8],
        node: NodeId,
    ) {
        let mut text = prefix.text().into_bytes();
        text.extend_from_slice(taken);
        self.furthest = Some(Furthest { at, taken: text, rest: rest.to_vec(), node });
    }
}

/// Ways to different places.
#[derive(Default)]
pub(super) struct Ways {
    pub(super) list: Vec<Way>,
    places: Vec<Place>,
}

impl Ways {
    /// Adds a way unless its place is known.
    pub(super) fn add(&mut self, way: Way) {
        let place = way.at.place();
        if !self.places.contains(&place) {
            self.places.push(place);
            self.list.push(way);
        }
    }

    /// Adds what follows a text.
    pub(super) fn add_all(&mut self, mut text: String, inner: &[Way]) {
        // Most values lead to one place; their text is not copied.
        if let [only] = inner {
            text.push_str(&only.text);
            self.add(Way { at: only.at.clone(), text });
            return;
        }
        for way in inner {
            self.add(Way { at: way.at.clone(), text: format!("{text}{}", way.text) });
        }
    }
}
