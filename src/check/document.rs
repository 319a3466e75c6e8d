//! JSON text to a tree that keeps what the text says: members in order, keys twice where they
//! stand twice, numbers and strings as they are written.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::definitions::child;

/// Values nested deeper than this are refused, as `serde_json` refuses them.
pub const MAX_DEPTH: usize = 127;

/// The index of a value in its document.
pub(super) type NodeId = usize;

/// A JSON text, read.
#[derive(Debug, Clone)]
pub struct Document {
    nodes: Vec<Node>,
}

/// Why a text is no document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON.
    #[error("not JSON")]
    Syntax(#[source] serde_json::Error),
    /// Nested too deep.
    #[error("nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

#[derive(Debug, Clone)]
struct Node {
    parent: Option<NodeId>,
    /// The key or the index that leads here from the parent.
    label: String,
    content: Content,
}

/// A value; parts are other nodes.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// `null`, `true` or `false`.
    Literal(String),
    /// As it is written.
    Number(String),
    String(Text),
    Array(Vec<NodeId>),
    Object(Vec<Member>),
}

/// A string in its quotes as it is written, and what it says.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) written: String,
    /// `None` where it has a lone surrogate, which no Rust string can hold.
    pub(super) decoded: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: Text,
    pub(super) value: NodeId,
}

impl Document {
    /// Reads a text of one JSON value.
    ///
    /// # Errors
    ///
    /// [`DocumentError`].
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let raw: &RawValue = serde_json::from_str(text).map_err(DocumentError::Syntax)?;
        let mut document = Self { nodes: Vec::new() };
        document.add(raw.get(), None, String::new(), 0)?;
        Ok(document)
    }

    /// A call, `{"name": …, "arguments": …}`, of two JSON texts.
    ///
    /// `labels` are the keys that pointers name them by: those of the record they came from.
    ///
    /// # Errors
    ///
    /// [`DocumentError`].
    pub fn call(name: &str, arguments: &str, labels: [&str; 2]) -> Result<Self, DocumentError> {
        let root =
            Node { parent: None, label: String::new(), content: Content::Object(Vec::new()) };
        let mut document = Self { nodes: vec![root] };
        let mut members = Vec::new();
        for ((key, text), label) in
            [("name", name), ("arguments", arguments)].into_iter().zip(labels)
        {
            let raw: &RawValue = serde_json::from_str(text).map_err(DocumentError::Syntax)?;
            let value = document.add(raw.get(), Some(0), label.to_owned(), 1)?;
            members.push(Member { key: Text::of(format!("\"{key}\"")), value });
        }
        document.nodes[0].content = Content::Object(members);
        Ok(document)
    }

    /// A call of two JSON texts as [`Document::call`], of which the arguments are the document to
    /// pointers.
    ///
    /// # Errors
    ///
    /// [`DocumentError`].
    pub(super) fn arguments(name: &str, arguments: &str) -> Result<Self, DocumentError> {
        let mut document = Self::call(name, arguments, ["name", "arguments"])?;
        let arguments = match &document.nodes[0].content {
            Content::Object(members) => members.last().map(|member| member.value),
            _ => None,
        };
        if let Some(arguments) = arguments {
            document.nodes[arguments].parent = None;
        }
        Ok(document)
    }

    /// The pointer of the first member whose key its object has already.
    ///
    /// A grammar cannot count the keys of an open object, and a parser may keep either value.
    #[must_use]
    pub fn repeated_key(&self) -> Option<String> {
        self.nodes.iter().find_map(|node| {
            let Content::Object(members) = &node.content else { return None };
            let mut known = HashSet::new();
            let mut keys = members.iter().filter(|member| {
                !known.insert(member.key.decoded.as_ref().unwrap_or(&member.key.written))
            });
            keys.next().map(|member| self.pointer(member.value))
        })
    }

    pub(super) fn root() -> NodeId {
        0
    }

    pub(super) fn content(&self, node: NodeId) -> &Content {
        &self.nodes[node].content
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The JSON pointer of a value.
    pub(super) fn pointer(&self, node: NodeId) -> String {
        let mut labels = Vec::new();
        let mut at = &self.nodes[node];
        while let Some(parent) = at.parent {
            labels.push(at.label.as_str());
            at = &self.nodes[parent];
        }
        labels.iter().rev().fold(String::new(), |pointer, label| child(&pointer, label))
    }

    fn add(
        &mut self,
        text: &str,
        parent: Option<NodeId>,
        label: String,
        depth: usize,
    ) -> Result<NodeId, DocumentError> {
        let node = self.nodes.len();
        let literal = Content::Literal(text.to_owned());
        self.nodes.push(Node { parent, label, content: literal });
        let is_open = matches!(text.as_bytes().first(), Some(b'[' | b'{'));
        if is_open && depth >= MAX_DEPTH {
            return Err(DocumentError::TooDeep);
        }
        let content = match text.as_bytes().first() {
            Some(b'{') => {
                let Members(raw) = serde_json::from_str(text).map_err(DocumentError::Syntax)?;
                let mut members = Vec::with_capacity(raw.len());
                for (key, value) in raw {
                    let key = Text::of(key.get().to_owned());
                    let label = key.decoded.clone().unwrap_or_else(|| key.written.clone());
                    let value = self.add(value.get(), Some(node), label, depth + 1)?;
                    members.push(Member { key, value });
                }
                Content::Object(members)
            }
            Some(b'[') => {
                let raw: Vec<&RawValue> =
                    serde_json::from_str(text).map_err(DocumentError::Syntax)?;
                let items = raw.into_iter().enumerate();
                let items = items.map(|(index, item)| {
                    self.add(item.get(), Some(node), index.to_string(), depth + 1)
                });
                Content::Array(items.collect::<Result<_, _>>()?)
            }
            Some(b'"') => Content::String(Text::of(text.to_owned())),
            Some(b'-' | b'0'..=b'9') => Content::Number(text.to_owned()),
            _ => return Ok(node),
        };
        self.nodes[node].content = content;
        Ok(node)
    }
}

impl Text {
    fn of(written: String) -> Self {
        let decoded = serde_json::from_str(&written).ok();
        Self { written, decoded }
    }
}

/// The members of an object in the order of the text, a repeated key as often as it is there.
pub(super) struct Members<'a>(pub(super) Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
