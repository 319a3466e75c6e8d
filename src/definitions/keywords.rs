//! The keywords of all drafts of JSON Schema, and what becomes of each.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use serde_json::Value;

/// What becomes of a key of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    /// [`crate::schema::Schema`] expresses it, where it can.
    Expressed,
    /// It asserts nothing.
    Annotation,
    /// It asserts something that we cannot express.
    Assertion,
    /// No draft defines it.
    Unknown,
}

const EXPRESSED: &[&str] = &[
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "format",
    "maxItems",
    "minItems",
    "uniqueItems",
    "contains",
    "maxContains",
    "minContains",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "extends",
    "divisibleBy",
];

const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$schema",
    "$comment",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    // Schemas kept for a reference.
    "$defs",
    "definitions",
];

/// Keywords of drafts 3 to 2020-12 that can make a value invalid and that we do not express.
const ASSERTIONS: &[&str] = &["disallow"];

/// How the value of a keyword holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// It is one.
    Schema,
    /// It is a list of them.
    List,
    /// They have names.
    Named,
    /// It holds none.
    Nothing,
}

impl Holds {
    pub(crate) fn of(key: &str, value: &Value) -> Self {
        match (key, value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(_),
            ) => Self::Named,
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(_)) => Self::List,
            (
                "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contentSchema",
                _,
            ) => Self::Schema,
            _ => Self::Nothing,
        }
    }
}

impl Keyword {
    pub(crate) fn of(key: &str) -> Self {
        static ALL: LazyLock<FxHashMap<&str, Keyword>> = LazyLock::new(|| {
            let lists = [
                (EXPRESSED, Keyword::Expressed),
                (ASSERTIONS, Keyword::Assertion),
                (ANNOTATIONS, Keyword::Annotation),
            ];
            lists.iter().flat_map(|(list, kind)| list.iter().map(|key| (*key, *kind))).collect()
        });
        ALL.get(key).copied().unwrap_or(Self::Unknown)
    }
}

/// Whether some draft defines the key.
pub(crate) fn is_keyword(key: &str) -> bool {
    Keyword::of(key) != Keyword::Unknown
}

/// The keyword that an unknown key was probably meant to be.
///
/// Annotations are left out: misspelling one changes nothing.
pub(crate) fn near_miss(key: &str) -> Option<&'static str> {
    // Short words are one letter from too many others.
    if key.len() < 4 || key.len() > 40 {
        return None;
    }
    let key: Vec<char> = key.to_lowercase().chars().collect();
    let mut keywords = EXPRESSED.iter().chain(ASSERTIONS);
    keywords
        .find(|keyword| {
            keyword.len() >= 4
                && keyword.len().abs_diff(key.len()) <= 1
                && one_edit_apart(&key, &keyword.to_lowercase().chars().collect::<Vec<_>>())
        })
        .copied()
}

/// Whether one letter inserted, removed, replaced or swapped with its neighbor makes one word the
/// other.
fn one_edit_apart(a: &[char], b: &[char]) -> bool {
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    match (&a[same..], &b[same..]) {
        ([], []) => true,
        ([_, rest @ ..], b) if rest == b => true,
        (a, [_, rest @ ..]) if rest == a => true,
        ([_, x @ ..], [_, y @ ..]) if x == y => true,
        ([x0, x1, x @ ..], [y0, y1, y @ ..]) => x0 == y1 && x1 == y0 && x == y,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, expected: Option<&str>) {
        assert_eq!(near_miss(key), expected, "{key}");
    }

    #[test]
    fn a_slip_of_one_letter_is_a_near_miss() {
        check("requried", Some("required"));
        check("propertes", Some("properties"));
        check("Properties", Some("properties"));
        check("additionalproperties", Some("additionalProperties"));
        check("minLenght", Some("minLength"));
        check("ref", None);
        check("$reff", Some("$ref"));
        check("enums", Some("enum"));
        check("formats", Some("format"));
    }

    #[test]
    fn a_word_of_ones_own_is_not() {
        for key in ["x-order", "nullable", "optional", "example", "name", "", "ty", "descripton"] {
            check(key, None);
        }
        check(&"properties".repeat(10), None);
    }
}
