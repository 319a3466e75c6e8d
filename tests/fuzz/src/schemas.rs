//! Bytes to function definitions: JSON as it stands, or a schema drawn keyword by keyword.
//!
//! **Invariant:** where the bytes run out every choice is the first one, and the first one ends.

use arbitrary::{Result, Unstructured};
use call_me_maybe::definitions::{self, FunctionDef, FunctionName};
use serde_json::{Map, Value, json};

/// Most schemas inside one drawn schema.
const BUDGET: usize = 24;

/// Definitions and the bytes that are left for choices.
///
/// Bytes that begin with `{` are the JSON of one schema, with `[` that of a file of definitions, and
/// what comes after it is left; any others draw a schema.
#[must_use]
pub fn functions(data: &[u8]) -> Option<(Vec<FunctionDef>, &[u8])> {
    if data.first().is_some_and(|byte| b"{[".contains(byte)) {
        let mut values = serde_json::Deserializer::from_slice(data).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let rest = data.get(values.byte_offset()..)?;
        let functions = match value {
            Value::Array(_) => definitions::from_value(&value, "").ok()?,
            schema => vec![function(&schema)?],
        };
        return Some((functions, rest));
    }
    // The walk's bytes come first, or a long schema would leave none.
    let (walk, schema) = data.split_at(data.len() / 3);
    let schema = Draw { u: Unstructured::new(schema), left: BUDGET }.root().ok()?;
    Some((vec![function(&schema)?], walk))
}

fn function(schema: &Value) -> Option<FunctionDef> {
    Some(FunctionDef::new(FunctionName::new("f")?, None, schema))
}

const KEYS: [&str; 8] = ["a", "b", "ab", "", "é", "\"\\", "x-1", "0"];
const NUMBERS: [&str; 18] = [
    "0",
    "1",
    "2",
    "-1",
    "3",
    "10",
    "0.5",
    "-0.5",
    "1.0",
    "2.50",
    "1e2",
    "-7",
    "99",
    "100",
    "0.01",
    "9007199254740993",
    "-1e-3",
    "123456789012345678901234567890.5",
];
const DIVISORS: [&str; 10] = ["1", "2", "3", "0.5", "0.1", "0.01", "10", "7", "1.5", "100"];
const FORMATS: [&str; 20] = [
    "date",
    "date-time",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "color",
];
const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
const DRAFTS: [&str; 4] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];
const REFERENCES: [&str; 8] = [
    "#/$defs/x",
    "#/$defs/y",
    "#",
    "#y",
    "#/properties/a",
    "#/definitions/x",
    "#/items",
    "#/$defs/x/properties/a",
];

struct Draw<'a> {
    u: Unstructured<'a>,
    /// Schemas that may still be drawn.
    left: usize,
}

impl Draw<'_> {
    fn root(&mut self) -> Result<Value> {
        let mut schema = self.schema(0)?;
        if let Value::Object(members) = &mut schema {
            if self.u.ratio(1, 4)? {
                members.insert("$schema".into(), (*self.u.choose(&DRAFTS)?).into());
            }
            if self.u.ratio(1, 2)? {
                let mut defs = Map::new();
                defs.insert("x".into(), self.schema(1)?);
                let mut y = self.schema(1)?;
                if let Value::Object(y) = &mut y {
                    y.insert("$anchor".into(), "y".into());
                }
                defs.insert("y".into(), y);
                let keyword = if self.u.ratio(1, 4)? { "definitions" } else { "$defs" };
                members.insert(keyword.into(), defs.into());
            }
        }
        Ok(schema)
    }

    fn schema(&mut self, depth: usize) -> Result<Value> {
        if self.left == 0 || self.u.is_empty() || depth > 5 {
            return Ok(json!({"type": "boolean"}));
        }
        self.left -= 1;
        if self.u.ratio(1, 20)? {
            return Ok(self.u.arbitrary::<bool>()?.into());
        }
        let mut members = Map::new();
        // Mostly a schema of one type, as people write them.
        if self.u.ratio(3, 4)? {
            let kind = *self.u.choose(&TYPES)?;
            members.insert("type".into(), kind.into());
            let n_groups = self.u.int_in_range(0..=2)?;
            for _ in 0..n_groups {
                match kind {
                    "object" => self.object(&mut members, depth)?,
                    "array" => self.array(&mut members, depth)?,
                    "string" => self.string(&mut members)?,
                    "integer" | "number" => self.number(&mut members)?,
                    _ => {}
                }
            }
        } else if self.u.ratio(1, 3)? {
            let n_types = self.u.int_in_range(1..=3)?;
            let mut types: Vec<Value> = Vec::new();
            for _ in 0..n_types {
                let kind = Value::from(*self.u.choose(&TYPES)?);
                if !types.contains(&kind) {
                    types.push(kind);
                }
            }
            members.insert("type".into(), types.into());
        }
        if self.u.ratio(1, 3)? {
            let n_more = self.u.int_in_range(1..=2)?;
            for _ in 0..n_more {
                match self.u.int_in_range(0..=7)? {
                    0 => self.string(&mut members)?,
                    1 => self.number(&mut members)?,
                    2 => self.array(&mut members, depth)?,
                    3 => self.object(&mut members, depth)?,
                    4 => self.values(&mut members)?,
                    _ => self.logic(&mut members, depth)?,
                }
            }
        }
        Ok(members.into())
    }

    fn schemas(&mut self, depth: usize) -> Result<Value> {
        let n_schemas = self.u.int_in_range(1..=3)?;
        (0..n_schemas).map(|_| self.schema(depth + 1)).collect::<Result<Vec<_>>>().map(Value::from)
    }

    fn key(&mut self) -> Result<String> {
        Ok((*self.u.choose(&KEYS)?).to_owned())
    }

    fn keys(&mut self) -> Result<Value> {
        let mut keys: Vec<Value> = Vec::new();
        for _ in 0..self.u.int_in_range(0..=2)? {
            let key = Value::from(self.key()?);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Ok(keys.into())
    }

    fn size(&mut self) -> Result<Value> {
        // With a pattern, 300 characters can take a grammar of megabytes, which is slow under a sanitizer.
        let sizes: [usize; 10] = [0, 1, 2, 3, 4, 5, 7, 10, 25, 2_500];
        Ok((*self.u.choose(&sizes)?).into())
    }

    fn small(&mut self) -> Result<Value> {
        Ok(self.u.int_in_range(0_u32..=4)?.into())
    }

    fn numeral(&mut self) -> Result<Value> {
        let text = *self.u.choose(&NUMBERS)?;
        Ok(serde_json::from_str(text).unwrap_or(Value::Null))
    }

    fn number(&mut self, members: &mut Map<String, Value>) -> Result<()> {
        let keyword = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
        let keyword = *self.u.choose(&keyword)?;
        let value = if keyword == "multipleOf" {
            serde_json::from_str(self.u.choose(&DIVISORS)?).unwrap_or(Value::Null)
        } else if keyword.starts_with('e') && self.u.ratio(1, 6)? {
            true.into()
        } else {
            self.numeral()?
        };
        members.insert(keyword.into(), value);
        Ok(())
    }

    fn string(&mut self, members: &mut Map<String, Value>) -> Result<()> {
        let (keyword, value) = match self.u.int_in_range(0..=3)? {
            0 => ("minLength", self.size()?),
            1 => ("maxLength", self.size()?),
            2 => ("pattern", self.pattern(0)?.into()),
            _ => ("format", (*self.u.choose(&FORMATS)?).into()),
        };
        members.insert(keyword.into(), value);
        Ok(())
    }

    fn pattern(&mut self, depth: usize) -> Result<String> {
        const ATOMS: [&str; 20] = [
            "a", "b", "[a-c]", ".", r"\d", r"\w", r"\s", "[^a]", "^", "$", r"\b", r"\u00e9", "é",
            "[^]", r"\S", r"\W", r"\/", r"[\d_-]", r"\p{L}", r"\x41",
        ];
        if depth > 2 {
            return Ok("a".to_owned());
        }
        let n_parts = self.u.int_in_range(1..=3)?;
        let mut text = String::new();
        for _ in 0..n_parts {
            match self.u.int_in_range(0..=9)? {
                0..=5 => text.push_str(self.u.choose(&ATOMS)?),
                6 => text += &format!("({})", self.pattern(depth + 1)?),
                7 => {
                    text +=
                        &format!("(?:{}|{})", self.pattern(depth + 1)?, self.pattern(depth + 1)?);
                }
                8 => {
                    let kind = *self.u.choose(&["?=", "?!", "?<=", "?<!"])?;
                    text += &format!("({kind}{})", self.pattern(depth + 1)?);
                }
                _ => {
                    let counts =
                        ["a*", "b+", "[ab]?", "a{2}", "b{1,3}", "a{0,}", ".*?", r"\d{3,9}"];
                    text.push_str(self.u.choose(&counts)?);
                }
            }
        }
        if depth == 0 && self.u.ratio(1, 2)? {
            text = format!("^{text}$");
        }
        Ok(text)
    }

    fn array(&mut self, members: &mut Map<String, Value>, depth: usize) -> Result<()> {
        let (keyword, value) = match self.u.int_in_range(0..=11)? {
            0..=2 => ("items", self.schema(depth + 1)?),
            3 => ("prefixItems", self.schemas(depth)?),
            4 => ("items", self.schemas(depth)?),
            5 => ("additionalItems", self.schema(depth + 1)?),
            6 => ("minItems", self.small()?),
            7 => ("maxItems", self.small()?),
            8 => ("contains", self.schema(depth + 1)?),
            9 => (*self.u.choose(&["minContains", "maxContains"])?, self.small()?),
            10 => ("uniqueItems", self.u.arbitrary::<bool>()?.into()),
            _ => ("unevaluatedItems", self.schema(depth + 1)?),
        };
        members.insert(keyword.into(), value);
        Ok(())
    }

    /// A map of keys to what `value` draws.
    fn map(
        &mut self,
        most: usize,
        mut value: impl FnMut(&mut Self) -> Result<Value>,
    ) -> Result<Value> {
        let n_members = self.u.int_in_range(1..=most)?;
        let mut map = Map::new();
        for _ in 0..n_members {
            map.insert(self.key()?, value(self)?);
        }
        Ok(map.into())
    }

    fn object(&mut self, members: &mut Map<String, Value>, depth: usize) -> Result<()> {
        let (keyword, value) = match self.u.int_in_range(0..=14)? {
            0..=4 => ("properties", self.map(4, |draw| draw.schema(depth + 1))?),
            5 | 6 => ("required", self.keys()?),
            7 => ("additionalProperties", self.u.arbitrary::<bool>()?.into()),
            8 => ("additionalProperties", self.schema(depth + 1)?),
            9 => {
                let mut map = Map::new();
                for _ in 0..self.u.int_in_range(1..=2)? {
                    map.insert(self.pattern(1)?, self.schema(depth + 1)?);
                }
                ("patternProperties", map.into())
            }
            10 => ("propertyNames", self.schema(depth + 1)?),
            11 => (*self.u.choose(&["minProperties", "maxProperties"])?, self.small()?),
            12 => ("dependentRequired", self.map(2, Self::keys)?),
            13 => match self.u.int_in_range(0..=1)? {
                0 => ("dependentSchemas", self.map(2, |draw| draw.schema(depth + 1))?),
                _ => ("dependencies", self.map(2, Self::keys)?),
            },
            _ => ("unevaluatedProperties", self.schema(depth + 1)?),
        };
        members.insert(keyword.into(), value);
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        Ok(match self.u.int_in_range(0..=7)? {
            0 => Value::Null,
            1 => self.u.arbitrary::<bool>()?.into(),
            2 | 3 => self.numeral()?,
            4 | 5 => self.key()?.into(),
            6 if depth < 2 => json!([self.value(depth + 1)?]),
            7 if depth < 2 => self.map(2, |draw| draw.value(depth + 1))?,
            _ => "\u{7f}\n😀".into(),
        })
    }

    fn values(&mut self, members: &mut Map<String, Value>) -> Result<()> {
        if self.u.ratio(1, 3)? {
            members.insert("const".into(), self.value(0)?);
            return Ok(());
        }
        let n_values = self.u.int_in_range(1..=4)?;
        let values = (0..n_values).map(|_| self.value(0)).collect::<Result<Vec<_>>>()?;
        members.insert("enum".into(), values.into());
        Ok(())
    }

    fn logic(&mut self, members: &mut Map<String, Value>, depth: usize) -> Result<()> {
        let (keyword, value) = match self.u.int_in_range(0..=6)? {
            0 => ("$ref", (*self.u.choose(&REFERENCES)?).into()),
            1 => ("anyOf", self.schemas(depth)?),
            2 => ("allOf", self.schemas(depth)?),
            3 => ("oneOf", self.schemas(depth)?),
            4 => ("not", self.schema(depth + 1)?),
            5 => {
                members.insert("then".into(), self.schema(depth + 1)?);
                if self.u.arbitrary()? {
                    members.insert("else".into(), self.schema(depth + 1)?);
                }
                ("if", self.schema(depth + 1)?)
            }
            _ => ("nullable", true.into()),
        };
        members.insert(keyword.into(), value);
        Ok(())
    }
}
