//! A schema as a document: its draft, and where its references lead.
//!
//! **Invariant:** nothing outside the document is ever read.

use rustc_hash::FxHashMap;
use std::rc::Rc;

use fluent_uri::{Uri, UriRef};
use serde_json::{Map, Value};

use crate::definitions::keywords::Holds;

/// The drafts whose differences matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Draft {
    /// Draft 4 and older.
    Draft4,
    /// Drafts 6 and 7.
    Draft7,
    /// 2019-09.
    Draft201909,
    /// 2020-12, also where nothing is said.
    Draft202012,
}

impl Draft {
    /// The draft that `$schema` names; without it, the newest that knows the spellings used.
    pub(crate) fn of(schema: &Value) -> Self {
        match schema.get("$schema").and_then(Value::as_str) {
            Some(uri) if ["draft-03", "draft-04"].iter().any(|name| uri.contains(name)) => {
                Self::Draft4
            }
            Some(uri) if ["draft-06", "draft-07"].iter().any(|name| uri.contains(name)) => {
                Self::Draft7
            }
            Some(uri) if uri.contains("2019-09") => Self::Draft201909,
            Some(_) => Self::Draft202012,
            None => Self::Draft202012.min(oldest_spelling(schema)),
        }
    }

    /// Whether a keyword that asserts something is of a later draft.
    pub(super) fn is_before(self, keyword: &str) -> bool {
        match keyword {
            "const" | "contains" | "propertyNames" | "if" => self < Self::Draft7,
            "dependentRequired"
            | "dependentSchemas"
            | "minContains"
            | "maxContains"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "$recursiveRef" => self < Self::Draft201909,
            "prefixItems" | "$dynamicRef" => self < Self::Draft202012,
            _ => false,
        }
    }

    /// Whether `$ref` stands alone: up to draft 7 its siblings assert nothing.
    pub(super) fn reference_stands_alone(self) -> bool {
        self <= Self::Draft7
    }
}

/// The newest draft that has the spellings of a schema and all inside it.
fn oldest_spelling(schema: &Value) -> Draft {
    let mut oldest = Draft::Draft202012;
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        let Value::Object(map) = value else { continue };
        for (key, value) in map {
            match (key.as_str(), value) {
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => return Draft::Draft4,
                ("dependencies", Value::Object(_)) => oldest = oldest.min(Draft::Draft7),
                ("items", Value::Array(_)) => oldest = oldest.min(Draft::Draft201909),
                _ => {}
            }
        }
        open.extend(inside(map));
    }
    oldest
}

/// The schemas that stand in a schema; what is under a key of no draft is none.
fn inside(map: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    map.iter().flat_map(|(key, value)| -> Vec<&Value> {
        match (Holds::of(key, value), value) {
            (Holds::Named, Value::Object(schemas)) => schemas.values().collect(),
            (Holds::List, Value::Array(schemas)) => schemas.iter().collect(),
            (Holds::Schema, schema) => vec![schema],
            // Draft 3's keyword is a schema or a list of them.
            (_, Value::Array(schemas)) if key == "extends" => schemas.iter().collect(),
            (_, schema) if key == "extends" => vec![schema],
            _ => Vec::new(),
        }
    })
}

/// A whole schema and the places in it that have names.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) draft: Draft,
    root: &'a Value,
    /// By absolute URI without fragment, or with an anchor as fragment.
    named: FxHashMap<String, &'a Value>,
    /// The base URI of each schema that has another than the root's, by address.
    bases: FxHashMap<*const Value, Rc<str>>,
    base: Rc<str>,
    /// How many places have each `$dynamicAnchor`.
    n_dynamic: FxHashMap<&'a str, usize>,
}

/// The base of a schema that has no `$id`; RFC 3986, section 5.1.4, leaves the choice to us.
const NO_BASE: &str = "callme:///";

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let draft = Draft::of(root);
        let base: Rc<str> = Rc::from(NO_BASE);
        let mut document = Self {
            draft,
            root,
            named: FxHashMap::default(),
            bases: FxHashMap::default(),
            base: Rc::clone(&base),
            n_dynamic: FxHashMap::default(),
        };
        document.named.insert(NO_BASE.to_owned(), root);
        document.index(base);
        document
    }

    fn index(&mut self, base: Rc<str>) {
        let mut open: Vec<(&'a Value, Rc<str>)> = vec![(self.root, base)];
        while let Some((value, mut base)) = open.pop() {
            let Value::Object(map) = value else { continue };
            if let Some(id) = self.id(map) {
                if let Some((uri, fragment)) = resolve(&base, id) {
                    if fragment.is_empty() {
                        base = Rc::from(uri.as_str());
                        self.named.entry(uri).or_insert(value);
                    } else {
                        self.named.entry(format!("{uri}#{fragment}")).or_insert(value);
                    }
                }
            }
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = map.get(key).and_then(Value::as_str) {
                    self.named.entry(format!("{base}#{name}")).or_insert(value);
                    if key == "$dynamicAnchor" {
                        *self.n_dynamic.entry(name).or_default() += 1;
                    }
                }
            }
            if *base != *self.base {
                self.bases.insert(std::ptr::from_ref(value), Rc::clone(&base));
            }
            open.extend(inside(map).map(|schema| (schema, Rc::clone(&base))));
        }
    }

    fn id(&self, map: &'a Map<String, Value>) -> Option<&'a str> {
        if self.draft.reference_stands_alone() && map.contains_key("$ref") {
            return None;
        }
        let key = if self.draft == Draft::Draft4 { "id" } else { "$id" };
        map.get(key).or_else(|| map.get("$id")).and_then(Value::as_str)
    }

    /// What a `$ref` that stands in `from` leads to; `None` where that is not in the document.
    pub(super) fn target(&self, from: &'a Value, reference: &str) -> Option<&'a Value> {
        if reference == "#" && self.bases.is_empty() {
            return Some(self.root);
        }
        if let (Some(pointer), true) = (reference.strip_prefix("#/"), self.bases.is_empty()) {
            return at_pointer(self.root, &format!("/{pointer}"));
        }
        let base = self.bases.get(&std::ptr::from_ref(from)).unwrap_or(&self.base);
        let (uri, fragment) = resolve(base, reference)?;
        if fragment.is_empty() {
            self.named.get(&uri).copied()
        } else if fragment.starts_with('/') {
            self.named.get(&uri)?.pointer(&fragment)
        } else {
            self.named.get(&format!("{uri}#{fragment}")).copied()
        }
    }

    /// Whether a `$dynamicRef` can lead to no more than one place, and so is a `$ref`.
    pub(super) fn is_static(&self, reference: &str) -> bool {
        let name = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        self.n_dynamic.get(name).is_none_or(|n| *n == 1)
    }
}

/// An absolute URI without fragment, and the fragment, percent-decoded.
fn resolve(base: &str, reference: &str) -> Option<(String, String)> {
    let base = Uri::parse(base).ok()?;
    let reference = UriRef::parse(reference).ok()?;
    let uri = reference.resolve_against(&base).ok()?;
    let fragment = match uri.fragment() {
        None => String::new(),
        Some(fragment) => fragment.decode().to_string().ok()?.into_owned(),
    };
    Some((uri.strip_fragment().as_str().to_owned(), fragment))
}

/// RFC 6901, section 6: the pointer of a fragment is percent-decoded first.
fn at_pointer<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if !pointer.contains('%') {
        return value.pointer(pointer);
    }
    match UriRef::parse(format!("#{pointer}")) {
        Ok(reference) => {
            let decoded = reference.fragment()?.decode().to_string().ok()?.into_owned();
            value.pointer(&decoded)
        }
        // Not a URI, as tools write them all the same.
        Err(_) => value.pointer(pointer),
    }
}
