//! The schemas of a document as [`Constraint`]s: one for each, and one for its negation.
//!
//! **Invariant:** the constraint of a schema says what the schema says, no more and no less; where
//! that cannot be, the alternative carries the error.

use rustc_hash::FxHashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::constraint::{
    Array, Atom, Constraint, Contains, Goal, MAX_ALTERNATIVES, Members, Numbers, Object, Some_,
    Strings, Trouble, both, goal,
};
use super::document::{Document, Draft};
use super::read::{self, count, get, list, map_of, number, strings, types};
use super::{
    MAX_DEPTH, Options, SchemaError, SchemaProblem, Undeclared, error, error_at, malformed,
};
use crate::definitions::keywords::{Keyword, near_miss};
use crate::definitions::{child, kind};
use crate::regular::Dfa;
use crate::regular::format::format;
use crate::regular::number::Decimal;

/// Why there is no constraint.
#[derive(Debug, Clone)]
pub(super) enum Stop {
    Error(SchemaError),
    /// The schema is being compiled: it contains itself without a key or an item between.
    Circular(usize),
}

impl From<SchemaError> for Stop {
    fn from(error: SchemaError) -> Self {
        Self::Error(error)
    }
}

struct Source<'a> {
    schema: &'a Value,
    pointer: String,
    depth: usize,
    /// Whether `properties` without `type` means an object, and `items` an array.
    types_are_implied: bool,
}

enum Entry<'a> {
    Open,
    Done(Rc<Constraint<'a>>),
}

/// What there is to read of a schema.
enum Read<'a> {
    Keywords(&'a Map<String, Value>),
    Whole(Constraint<'a>),
}

/// Reads the schemas of one document as they are asked for.
pub(super) struct Compiler<'a> {
    document: Document<'a>,
    sources: Vec<Source<'a>>,
    by_address: FxHashMap<(*const Value, bool), usize>,
    values: Vec<&'a Value>,
    compiled: FxHashMap<(usize, bool), Entry<'a>>,
    joined: FxHashMap<Goal, Rc<Constraint<'a>>>,
    possible: FxHashMap<Goal, bool>,
    languages: FxHashMap<&'a str, Result<Rc<Dfa>, SchemaProblem>>,
    /// Whether types are implied where nothing asks for all that a schema allows.
    types_are_implied: bool,
    /// Whether what cannot be expressed is left to the validator.
    lenient: bool,
    /// What was left to it.
    pub(super) widened: Vec<SchemaError>,
    /// Keys that no draft defines.
    pub(super) n_unknown: usize,
    /// The pointers of those that look like a keyword, with the keyword.
    pub(super) near_misses: Vec<(String, &'static str)>,
}

impl<'a> Compiler<'a> {
    /// The compiler of a document, and the goal of its root.
    pub(super) fn new(root: &'a Value, options: Options) -> (Self, Goal) {
        let mut compiler = Self {
            document: Document::new(root),
            sources: Vec::new(),
            by_address: FxHashMap::default(),
            values: Vec::new(),
            compiled: FxHashMap::default(),
            joined: FxHashMap::default(),
            possible: FxHashMap::default(),
            languages: FxHashMap::default(),
            types_are_implied: options.undeclared == Undeclared::Omit,
            lenient: options.lenient,
            widened: Vec::new(),
            n_unknown: 0,
            near_misses: Vec::new(),
        };
        let source = compiler.source(root, String::new(), 0, compiler.types_are_implied);
        (compiler, goal([Atom::Schema { source, holds: true }]))
    }

    fn source(
        &mut self,
        schema: &'a Value,
        pointer: String,
        depth: usize,
        types_are_implied: bool,
    ) -> usize {
        let key = (std::ptr::from_ref(schema), types_are_implied);
        *self.by_address.entry(key).or_insert_with(|| {
            self.sources.push(Source { schema, pointer, depth, types_are_implied });
            self.sources.len() - 1
        })
    }

    /// The number of the same schema with all that it allows: no type is implied in it.
    fn in_full(&mut self, source: usize) -> usize {
        let Source { schema, pointer, depth, .. } = &self.sources[source];
        let (schema, pointer, depth) = (*schema, pointer.clone(), *depth);
        self.source(schema, pointer, depth, false)
    }

    /// The number of a schema that stands inside another.
    fn inside(&mut self, outer: usize, schema: &'a Value, path: &[&str]) -> usize {
        let Source { pointer, depth, types_are_implied, .. } = &self.sources[outer];
        let (depth, types_are_implied) = (depth + 1, *types_are_implied);
        let pointer = path.iter().fold(pointer.clone(), |pointer, key| child(&pointer, key));
        self.source(schema, pointer, depth, types_are_implied)
    }

    /// What a value must meet for a schema to hold, or not to hold.
    fn goal(&mut self, outer: usize, schema: &'a Value, path: &[&str], holds: bool) -> Goal {
        match schema {
            Value::Bool(all) if *all == holds => goal([]),
            Value::Bool(_) => goal([Atom::False]),
            _ => {
                let source = self.inside(outer, schema, path);
                goal([Atom::Schema { source, holds }])
            }
        }
    }

    fn is(&mut self, value: &'a Value) -> Goal {
        self.values.push(value);
        goal([Atom::Is(self.values.len() - 1)])
    }

    /// The constraint of all of a goal's conditions together.
    pub(super) fn all(&mut self, goal: &Goal) -> Result<Rc<Constraint<'a>>, Stop> {
        if let [atom] = **goal {
            return self.atom(atom);
        }
        if let Some(known) = self.joined.get(goal) {
            return Ok(Rc::clone(known));
        }
        let mut whole = Constraint::any();
        for atom in goal.iter() {
            whole = whole.and(&*self.atom(*atom)?);
            if whole.n_alternatives() > MAX_ALTERNATIVES {
                return Err(error_at(self.pointer(goal), SchemaProblem::TooManyAlternatives).into());
            }
        }
        let whole = Rc::new(whole);
        self.joined.insert(Rc::clone(goal), Rc::clone(&whole));
        Ok(whole)
    }

    fn atom(&mut self, atom: Atom) -> Result<Rc<Constraint<'a>>, Stop> {
        match atom {
            Atom::False => Ok(Rc::new(Constraint::none())),
            Atom::Is(index) => {
                let value = self.values[index];
                Ok(Rc::new(self.listed(&[value])))
            }
            Atom::Schema { source, holds } => self.schema(source, holds),
        }
    }

    /// The constraint of one schema, or of its negation.
    fn schema(&mut self, source: usize, holds: bool) -> Result<Rc<Constraint<'a>>, Stop> {
        match self.compiled.get(&(source, holds)) {
            Some(Entry::Done(constraint)) => return Ok(Rc::clone(constraint)),
            Some(Entry::Open) => return Err(Stop::Circular(source)),
            None => {}
        }
        if self.sources[source].depth > MAX_DEPTH {
            let pointer = &self.sources[source].pointer;
            return Err(error_at(pointer, SchemaProblem::TooDeep).into());
        }
        self.compiled.insert((source, holds), Entry::Open);
        let constraint = if holds { self.positive(source) } else { self.negative(source) };
        match constraint {
            Ok(constraint) if constraint.n_alternatives() > MAX_ALTERNATIVES => {
                let pointer = &self.sources[source].pointer;
                Err(error_at(pointer, SchemaProblem::TooManyAlternatives).into())
            }
            Ok(constraint) => {
                let constraint = Rc::new(constraint);
                self.compiled.insert((source, holds), Entry::Done(Rc::clone(&constraint)));
                Ok(constraint)
            }
            Err(stop) => {
                self.compiled.remove(&(source, holds));
                match stop {
                    // Any value is wider than whatever the schema says, or its opposite.
                    Stop::Error(error) if self.lenient && error.reason.is_a_limit() => {
                        self.widen(&error)?;
                        Ok(Rc::new(Constraint::any()))
                    }
                    stop => Err(stop),
                }
            }
        }
    }

    /// Leaves what cannot be expressed to the validator, if that is allowed.
    pub(super) fn widen(&mut self, error: &SchemaError) -> Result<(), SchemaError> {
        if !self.lenient {
            return Err(error.clone());
        }
        if !self.widened.contains(error) {
            self.widened.push(error.clone());
        }
        Ok(())
    }

    /// Where the first schema of a goal stands.
    pub(super) fn pointer(&self, goal: &Goal) -> &str {
        let first = goal.iter().find_map(|atom| match atom {
            Atom::Schema { source, .. } => Some(self.sources[*source].pointer.as_str()),
            _ => None,
        });
        first.unwrap_or_default()
    }

    /// The error for whoever comes to a stop.
    pub(super) fn error_of(&self, stop: Stop) -> SchemaError {
        match stop {
            Stop::Error(error) => error,
            Stop::Circular(source) => {
                error_at(&self.sources[source].pointer, SchemaProblem::Circular)
            }
        }
    }

    /// The keywords of a schema, or its constraint where it has none that count.
    fn read(&mut self, source: usize, holds: bool) -> Result<Read<'a>, Stop> {
        let Source { schema, pointer, .. } = &self.sources[source];
        let pointer = pointer.clone();
        let map = match schema {
            Value::Object(map) => map,
            Value::Bool(all) if *all == holds => return Ok(Read::Whole(Constraint::any())),
            Value::Bool(_) => return Ok(Read::Whole(Constraint::none())),
            other => {
                let (expected, found) = ("a schema", kind(other));
                return Err(error_at(&pointer, SchemaProblem::Malformed { expected, found }).into());
            }
        };
        if let Some(reference) = get(map, "$ref") {
            if self.document.draft.reference_stands_alone() {
                let target = self.reference(source, "$ref", reference, holds)?;
                return Ok(Read::Whole((*target).clone()));
            }
        }
        self.note_unknown(map, &pointer)?;
        Ok(Read::Keywords(map))
    }

    fn positive(&mut self, source: usize) -> Result<Constraint<'a>, Stop> {
        let pointer = self.sources[source].pointer.clone();
        let map = match self.read(source, true)? {
            Read::Keywords(map) => map,
            Read::Whole(constraint) => return Ok(constraint),
        };
        let mut whole = Self::typed(map, &pointer, self.sources[source].types_are_implied)?;
        // Most schemas say no more than a type.
        let is_more = |key: &String| key != "type" && Keyword::of(key) == Keyword::Expressed;
        if whole.is_none() || !map.keys().any(is_more) {
            return Ok(whole);
        }
        if let Some(members) = get(map, "enum") {
            let members: Vec<&Value> = list(members, "enum", &pointer)?.iter().collect();
            whole = whole.and(&self.listed(&members));
        }
        if let Some(value) = get(map, "const") {
            whole = whole.and(&self.listed(&[value]));
        }
        let numbers = Some(Self::numbers(map, &pointer)?);
        let strings = Some(self.strings(map, &pointer)?);
        let object = Some(self.object(map, source, &pointer)?);
        let own = Constraint {
            numbers: numbers.filter(Numbers::is_possible).into_iter().collect(),
            strings: strings.filter(Strings::is_possible).into_iter().collect(),
            arrays: self.arrays(map, source, &pointer)?,
            objects: object.filter(Object::is_possible).into_iter().collect(),
            ..Constraint::any()
        };
        whole = whole.and(&own);
        whole = self.dependents(map, source, &pointer, whole)?;
        whole = self.applied(map, source, &pointer, whole)?;
        Ok(self.unevaluated(map, source, &pointer, whole))
    }

    /// Passes over what asserts nothing, and refuses the keywords that no version of this compiler
    /// knows how to express.
    fn note_unknown(&mut self, map: &Map<String, Value>, pointer: &str) -> Result<(), SchemaError> {
        for key in map.keys() {
            match Keyword::of(key) {
                Keyword::Expressed | Keyword::Annotation => {}
                Keyword::Assertion => return Err(error(key, pointer, SchemaProblem::Unsupported)),
                Keyword::Unknown => {
                    self.n_unknown += 1;
                    if let Some(keyword) = near_miss(key) {
                        self.near_misses.push((child(pointer, key), keyword));
                    }
                }
            }
        }
        Ok(())
    }

    fn typed(
        map: &Map<String, Value>,
        pointer: &str,
        types_are_implied: bool,
    ) -> Result<Constraint<'a>, SchemaError> {
        let Some(names) = types(map, pointer)? else {
            let any = Constraint::any();
            if !types_are_implied || get(map, "enum").is_some() || get(map, "const").is_some() {
                return Ok(any);
            }
            let none = Constraint::none;
            return Ok(match read::implied_type(map) {
                Some("object") => Constraint { objects: any.objects, ..none() },
                Some("array") => Constraint { arrays: any.arrays, ..none() },
                Some("string") => Constraint { strings: any.strings, ..none() },
                Some(_) => {
                    let number = Numbers { typed: true, ..Numbers::default() };
                    Constraint { numbers: vec![number], ..none() }
                }
                None => any,
            });
        };
        let mut whole = Constraint::none();
        // Beside `integer`, `2` is as good as `2.0`.
        let decimal = !names.contains(&"integer");
        for name in names {
            let any = Constraint::any();
            match name {
                "null" => whole.null = true,
                "boolean" => whole.booleans = [true, true],
                "integer" if whole.numbers.is_empty() => {
                    let integer =
                        Numbers { integer: Some(true), typed: true, ..Numbers::default() };
                    whole.numbers = vec![integer];
                }
                "integer" => {}
                "number" => whole.numbers = vec![Numbers { typed: decimal, ..Numbers::default() }],
                "string" => whole.strings = any.strings,
                "array" => whole.arrays = any.arrays,
                "object" => whole.objects = any.objects,
                // Draft 3, and what tools write for it.
                "any" => return Ok(any),
                other => {
                    let reason = SchemaProblem::UnknownType { name: other.to_owned() };
                    return Err(error("type", pointer, reason));
                }
            }
        }
        Ok(whole)
    }

    /// Exactly these values.
    fn listed(&mut self, values: &[&'a Value]) -> Constraint<'a> {
        let mut whole = Constraint::none();
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for &value in values {
            match value {
                Value::Null => whole.null = true,
                Value::Bool(value) => whole.booleans[usize::from(*value)] = true,
                Value::Number(number) => match number.as_str().parse::<Decimal>() {
                    Ok(decimal) if !numbers.iter().any(|(_, text)| *text == number.as_str()) => {
                        numbers.push((decimal, number.as_str()));
                    }
                    Ok(_) => {}
                    Err(problem) => {
                        let reason = SchemaProblem::Number { message: problem.to_string() };
                        let trouble = Some(Rc::new(error("enum", "", reason)));
                        whole.numbers.push(Numbers { trouble, ..Numbers::default() });
                    }
                },
                Value::String(text) => texts.push(text.as_str()),
                Value::Array(items) => {
                    let prefix: Vec<Goal> = items.iter().map(|item| self.is(item)).collect();
                    let n = prefix.len();
                    let items = goal([Atom::False]);
                    let array = Array { prefix, items, min: n, max: Some(n), ..Array::default() };
                    if !whole.arrays.contains(&array) {
                        whole.arrays.push(array);
                    }
                }
                Value::Object(members) => {
                    let properties =
                        members.iter().map(|(key, value)| (key.as_str(), self.is(value))).collect();
                    let members_of = Members {
                        properties,
                        patterns: Vec::new(),
                        others: goal([Atom::False]),
                        others_are_described: true,
                        // Only the keywords of members evaluate.
                        evaluates: false,
                    };
                    whole.objects.push(Object {
                        members: vec![Rc::new(members_of)],
                        required: members.keys().map(String::as_str).collect(),
                        ..Object::default()
                    });
                }
            }
        }
        if !numbers.is_empty() {
            whole.numbers.push(Numbers { listed: Some(numbers), ..Numbers::default() });
        }
        if !texts.is_empty() {
            let mut seen = rustc_hash::FxHashSet::default();
            texts.retain(|text| seen.insert(*text));
            whole.strings.push(Strings { listed: Some(texts), ..Strings::default() });
        }
        whole
    }

    fn numbers(map: &'a Map<String, Value>, pointer: &str) -> Result<Numbers<'a>, SchemaError> {
        let mut numbers = Numbers::default();
        let boolean = |key: &str| get(map, key).and_then(Value::as_bool);
        for (key, exclusive_key) in
            [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")]
        {
            let lower = key == "minimum";
            if let Some(value) = get(map, key) {
                let bound = number(value, key, pointer)?;
                // Draft 4 has a boolean beside the bound.
                let exclusive = boolean(exclusive_key).unwrap_or_default();
                read::restrict(&mut numbers.interval, lower, bound, exclusive);
            } else if let Some(value) = get(map, exclusive_key).filter(|value| value.is_boolean()) {
                let expected = "a number, or in draft 4 stand beside a bound";
                return Err(malformed(exclusive_key, pointer, expected, value));
            }
            if let Some(value) = get(map, exclusive_key).filter(|value| !value.is_boolean()) {
                let bound = number(value, exclusive_key, pointer)?;
                read::restrict(&mut numbers.interval, lower, bound, true);
            }
        }
        for key in ["multipleOf", "divisibleBy"] {
            if let Some(value) = get(map, key) {
                let multiple = number(value, key, pointer)?;
                if !multiple.is_zero() && !multiple.is_negative() {
                    numbers.multiples.push(multiple);
                } else {
                    let (expected, found) = ("a number above 0", "another");
                    let reason = SchemaProblem::Malformed { expected, found };
                    return Err(error(key, pointer, reason));
                }
            }
        }
        Ok(numbers)
    }

    fn language(&mut self, pattern: &'a str) -> Result<Rc<Dfa>, SchemaProblem> {
        let compiled = self.languages.entry(pattern).or_insert_with(|| {
            Dfa::pattern(pattern)
                .map(Rc::new)
                .map_err(|error| SchemaProblem::Pattern { message: error.to_string() })
        });
        compiled.clone()
    }

    fn strings(
        &mut self,
        map: &'a Map<String, Value>,
        pointer: &str,
    ) -> Result<Strings<'a>, SchemaError> {
        let mut strings = Strings::default();
        if let Some(value) = get(map, "minLength") {
            strings.min = count(value, "minLength", pointer)?;
        }
        if let Some(value) = get(map, "maxLength") {
            strings.max = Some(count(value, "maxLength", pointer)?);
        }
        if let Some(value) = get(map, "pattern") {
            let Value::String(pattern) = value else {
                return Err(malformed("pattern", pointer, "a string", value));
            };
            match self.language(pattern) {
                Ok(language) => strings.languages.push(language),
                Err(problem) => strings.trouble = Some(Rc::new(error("pattern", pointer, problem))),
            }
        }
        if let Some(value) = get(map, "format") {
            let Value::String(name) = value else {
                return Err(malformed("format", pointer, "a string", value));
            };
            if let Some(language) = format(name) {
                strings.languages.push(Rc::new(language.clone()));
            }
        }
        Ok(strings)
    }

    fn arrays(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
    ) -> Result<Vec<Array>, SchemaError> {
        let mut array = Array::default();
        let (prefix_key, rest_key) = match get(map, "items") {
            // The tuple of draft 4.
            Some(Value::Array(_)) => ("items", "additionalItems"),
            _ => ("prefixItems", "items"),
        };
        if let Some(value) = get(map, prefix_key) {
            for (index, item) in list(value, prefix_key, pointer)?.iter().enumerate() {
                let path = [prefix_key, &index.to_string()];
                array.prefix.push(self.goal(source, item, &path, true));
            }
        }
        if let Some(items) = get(map, rest_key) {
            array.items = self.goal(source, items, &[rest_key], true);
            // An older draft has no `prefixItems`, so that its `items` are all items.
            if rest_key == "items" && self.document.draft < Draft::Draft202012 {
                for first in &mut array.prefix {
                    *first = goal(first.iter().chain(array.items.iter()).copied());
                }
            }
        }
        if let Some(value) = get(map, "minItems") {
            array.min = count(value, "minItems", pointer)?;
        }
        if let Some(value) = get(map, "maxItems") {
            array.max = Some(count(value, "maxItems", pointer)?);
        }
        match get(map, "uniqueItems") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => {
                let reason = SchemaProblem::EndlesslyManyItems;
                array.unique = Some(Rc::new(error("uniqueItems", pointer, reason)));
            }
            Some(other) => return Err(malformed("uniqueItems", pointer, "a boolean", other)),
        }
        if let Some(contains) = get(map, "contains") {
            let bound =
                |key: &str| get(map, key).map(|value| count(value, key, pointer)).transpose();
            let min = bound("minContains")?.unwrap_or(1);
            array.contains.push(Contains {
                goal: self.goal(source, contains, &["contains"], true),
                not: self.goal(source, contains, &["contains"], false),
                // Up to draft 7 there is no `minContains`, which alone makes `contains` hold without an item.
                min: if self.document.draft <= Draft::Draft7 { min.max(1) } else { min },
                max: bound("maxContains")?,
                error: Rc::new(error("contains", pointer, SchemaProblem::Unsupported)),
            });
        }
        array.close();
        Ok(if array.is_possible() { vec![array] } else { Vec::new() })
    }

    fn object(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
    ) -> Result<Object<'a>, SchemaError> {
        let mut object = Object {
            required: strings(get(map, "required"), "required", pointer)?,
            ..Object::default()
        };
        if let Some(value) = get(map, "minProperties") {
            object.min = count(value, "minProperties", pointer)?;
        }
        if let Some(value) = get(map, "maxProperties") {
            object.max = Some(count(value, "maxProperties", pointer)?);
        }
        if let Some(names) = get(map, "propertyNames") {
            let names = self.goal(source, names, &["propertyNames"], true);
            object.names.extend((!names.is_empty()).then_some(names));
        }
        let members = self.members(map, source, pointer)?;
        if !members.properties.is_empty()
            || !members.patterns.is_empty()
            || !members.others.is_empty()
        {
            object.members.push(Rc::new(members));
        }
        Ok(object)
    }

    fn members(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
    ) -> Result<Members<'a>, SchemaError> {
        let mut members = Members {
            properties: Vec::new(),
            patterns: Vec::new(),
            others: goal([]),
            others_are_described: false,
            evaluates: true,
        };
        if let Some(properties) = map_of(get(map, "properties"), "properties", pointer)? {
            for (name, schema) in properties {
                let goal = self.goal(source, schema, &["properties", name], true);
                members.properties.push((name, goal));
            }
        }
        if let Some(patterns) = map_of(get(map, "patternProperties"), "patternProperties", pointer)?
        {
            for (pattern, schema) in patterns {
                let keys = self.language(pattern).map_err(|problem| {
                    error(pattern, &child(pointer, "patternProperties"), problem)
                })?;
                let goal = self.goal(source, schema, &["patternProperties", pattern], true);
                members.patterns.push((keys, goal));
            }
        }
        if let Some(schema) = get(map, "additionalProperties") {
            members.others = self.goal(source, schema, &["additionalProperties"], true);
            members.others_are_described = true;
        }
        Ok(members)
    }

    /// `dependentRequired`, `dependentSchemas`, and the `dependencies` that both come from.
    fn dependents(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
        mut whole: Constraint<'a>,
    ) -> Result<Constraint<'a>, Stop> {
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            let Some(dependents) = map_of(get(map, keyword), keyword, pointer)? else { continue };
            for (key, dependent) in dependents {
                let absent = Object { forbidden: vec![key], ..Object::default() };
                let mut present = Constraint {
                    objects: vec![Object { required: vec![key], ..Object::default() }],
                    ..Constraint::none()
                };
                match dependent {
                    Value::Array(_) | Value::String(_) if keyword != "dependentSchemas" => {
                        let place = child(pointer, keyword);
                        let names = match dependent {
                            // Draft 3 allows one name alone.
                            Value::String(name) => vec![name.as_str()],
                            _ => strings(Some(dependent), key, &place)?,
                        };
                        let required = std::iter::once(key.as_str()).chain(names).collect();
                        present.objects = vec![Object { required, ..Object::default() }];
                    }
                    _ => {
                        let source = self.inside(source, dependent, &[keyword, key]);
                        present = present.and(&*self.schema(source, true)?);
                    }
                }
                let either = Constraint { objects: vec![absent], ..Constraint::any() };
                whole = whole.and(&either.or(present));
            }
        }
        Ok(whole)
    }

    /// The keywords that apply schemas to the value itself.
    fn applied(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
        mut whole: Constraint<'a>,
    ) -> Result<Constraint<'a>, Stop> {
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = get(map, keyword) {
                whole = whole.and(&*self.reference(source, keyword, reference, true)?);
            }
        }
        for keyword in ["allOf", "extends"] {
            for (index, schema) in branches(map, keyword, pointer)? {
                let inner = self.inside(source, schema, &[keyword, &index]);
                whole = whole.and(&*self.schema(inner, true)?);
            }
        }
        if get(map, "anyOf").is_some() {
            let mut any = Constraint::none();
            for (index, schema) in branches(map, "anyOf", pointer)? {
                let inner = self.inside(source, schema, &["anyOf", &index]);
                any = any.or(whole.and(&*self.schema(inner, true)?));
            }
            whole = any;
        }
        if get(map, "oneOf").is_some() {
            whole = self.one_of(map, source, pointer, &whole)?;
        }
        if let Some(schema) = get(map, "not") {
            let inner = self.inside(source, schema, &["not"]);
            whole = whole.and(&self.schema(inner, false)?.unevaluating());
        }
        if let Some(schema) = get(map, "if") {
            let condition = self.inside(source, schema, &["if"]);
            let mut cases = Constraint::none();
            for (keyword, holds) in [("then", true), ("else", false)] {
                if get(map, "then").is_none() && get(map, "else").is_none() {
                    return Ok(whole);
                }
                let condition = self.schema(condition, holds)?;
                let mut case =
                    whole.and(&*if holds { condition } else { Rc::new(condition.unevaluating()) });
                if let Some(schema) = get(map, keyword) {
                    let inner = self.inside(source, schema, &[keyword]);
                    case = case.and(&*self.schema(inner, true)?);
                }
                cases = cases.or(case);
            }
            whole = cases;
        }
        Ok(whole)
    }

    /// Each branch without the others that it could meet as well.
    fn one_of(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
        whole: &Constraint<'a>,
    ) -> Result<Constraint<'a>, Stop> {
        let mut inner = Vec::new();
        for (index, schema) in branches(map, "oneOf", pointer)? {
            let branch = self.inside(source, schema, &["oneOf", &index]);
            // What must not hold is all that the other branches allow, not what is meant by them.
            let full = self.in_full(branch);
            inner.push((branch, whole.and(&*self.schema(branch, true)?), self.schema(full, true)?));
        }
        let mut one = Constraint::none();
        for (at, (_, branch, _)) in inner.iter().enumerate() {
            let mut alone = branch.clone();
            for (other_at, (other, _, full)) in inner.iter().enumerate() {
                if other_at != at && self.can_be(&alone.and(full), 0) {
                    alone = alone.and(&*self.schema(*other, false)?);
                }
            }
            one = one.or(alone);
            if one.n_alternatives() > MAX_ALTERNATIVES {
                return Err(error("oneOf", pointer, SchemaProblem::TooManyAlternatives).into());
            }
        }
        Ok(one)
    }

    /// `unevaluatedProperties` and `unevaluatedItems`, over what the keywords beside them evaluate.
    fn unevaluated(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
        mut whole: Constraint<'a>,
    ) -> Constraint<'a> {
        if let Some(schema) = get(map, "unevaluatedProperties") {
            let others = self.goal(source, schema, &["unevaluatedProperties"], true);
            for object in whole.objects.iter_mut().filter(|_| !others.is_empty()) {
                let evaluating = || object.members.iter().filter(|members| members.evaluates);
                if evaluating().any(|members| members.others_are_described) {
                    continue;
                }
                let names = evaluating().flat_map(|members| &members.properties);
                let patterns = evaluating().flat_map(|members| &members.patterns);
                let members = Members {
                    properties: names.map(|(name, _)| (*name, goal([]))).collect(),
                    patterns: patterns.map(|(keys, _)| (Rc::clone(keys), goal([]))).collect(),
                    others: Rc::clone(&others),
                    others_are_described: true,
                    evaluates: true,
                };
                object.members.push(Rc::new(members));
            }
        }
        if let Some(schema) = get(map, "unevaluatedItems") {
            let others = self.goal(source, schema, &["unevaluatedItems"], true);
            let applied =
                ["$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if"];
            if applied.iter().any(|key| get(map, key).is_some())
                || ["contains", "enum", "const"].iter().any(|key| get(map, key).is_some())
            {
                let reason = SchemaProblem::Unsupported;
                let trouble: Trouble = Some(Rc::new(error("unevaluatedItems", pointer, reason)));
                whole.arrays.iter_mut().for_each(|array| array.trouble.clone_from(&trouble));
            } else if !get(map, "items")
                .is_some_and(|items| !items.is_array() || get(map, "additionalItems").is_some())
            {
                for array in &mut whole.arrays {
                    array.items = both(&array.items, &others);
                    array.close();
                }
                whole.arrays.retain(Array::is_possible);
            }
        }
        whole
    }

    fn reference(
        &mut self,
        source: usize,
        keyword: &'static str,
        reference: &'a Value,
        holds: bool,
    ) -> Result<Rc<Constraint<'a>>, Stop> {
        let Source { schema, pointer, depth, types_are_implied } = &self.sources[source];
        let types_are_implied = *types_are_implied;
        let Value::String(text) = reference else {
            return Err(malformed(keyword, pointer, "a string", reference).into());
        };
        if keyword != "$ref" && !self.document.is_static(text) {
            return Err(error(keyword, pointer, SchemaProblem::Unsupported).into());
        }
        let Some(target) = self.document.target(schema, text) else {
            let reason = SchemaProblem::Unresolved { reference: text.clone() };
            return Err(error(keyword, pointer, reason).into());
        };
        // Errors inside name the place where the schema stands if it was met there before, and the
        // reference otherwise.
        let (pointer, depth) = (child(pointer, keyword), depth + 1);
        let pointer =
            text.strip_prefix('#').filter(|p| p.starts_with('/')).map_or(pointer, str::to_owned);
        let inner = self.source(target, pointer, depth, types_are_implied);
        self.schema(inner, holds)
    }

    /// What a value must be for the schema not to hold.
    fn negative(&mut self, source: usize) -> Result<Constraint<'a>, Stop> {
        let pointer = self.sources[source].pointer.clone();
        let map = match self.read(source, false)? {
            Read::Keywords(map) => map,
            Read::Whole(constraint) => return Ok(constraint),
        };
        let draft = self.document.draft;
        if let Some(newer) = map.keys().find(|keyword| draft.is_before(keyword)) {
            return Err(error(newer, &pointer, SchemaProblem::NewerThanDraft).into());
        }
        let mut either = Constraint::none();
        if let Some(names) = types(map, &pointer)? {
            either = either.or(read::all_but(&names));
        }
        if let Some(members) = get(map, "enum") {
            let members: Vec<&Value> = list(members, "enum", &pointer)?.iter().collect();
            either = either.or(unlisted(&members, "enum", &pointer));
        }
        if let Some(value) = get(map, "const") {
            either = either.or(unlisted(&[value], "const", &pointer));
        }
        either = either.or(Self::not_numbers(map, &pointer)?);
        either = either.or(self.not_strings(map, &pointer)?);
        either = either.or(self.not_arrays(map, source, &pointer)?);
        either = either.or(self.not_objects(map, source, &pointer)?);
        self.not_applied(map, source, &pointer, either)
    }

    fn not_numbers(
        map: &'a Map<String, Value>,
        pointer: &str,
    ) -> Result<Constraint<'a>, SchemaError> {
        let numbers = Self::numbers(map, pointer)?;
        let mut all = Constraint::none();
        for interval in read::outside(&numbers.interval) {
            all.numbers.push(Numbers { interval, ..Numbers::default() });
        }
        if !numbers.multiples.is_empty() {
            let not_multiples = numbers.multiples;
            all.numbers.push(Numbers { not_multiples, ..Numbers::default() });
        }
        Ok(all)
    }

    fn not_strings(
        &mut self,
        map: &'a Map<String, Value>,
        pointer: &str,
    ) -> Result<Constraint<'a>, SchemaError> {
        let strings = self.strings(map, pointer)?;
        let mut all = Constraint::none();
        if strings.min > 0 {
            all.strings.push(Strings { max: Some(strings.min - 1), ..Strings::default() });
        }
        if let Some(max) = strings.max {
            all.strings.push(Strings { min: max + 1, ..Strings::default() });
        }
        let mut trouble = strings.trouble;
        if let (Some(Value::String(pattern)), None) = (get(map, "pattern"), &trouble) {
            if let Ok(language) = self.language(pattern) {
                let languages = vec![Rc::new(language.complement())];
                all.strings.push(Strings { languages, ..Strings::default() });
            }
        }
        if get(map, "format").and_then(Value::as_str).is_some_and(|name| format(name).is_some()) {
            // The language of a format may be narrower than the format.
            let reason = SchemaProblem::NegationUnsupported;
            trouble = Some(Rc::new(error("format", pointer, reason)));
        }
        if trouble.is_some() {
            all.strings.push(Strings { trouble, ..Strings::default() });
        }
        Ok(all)
    }

    fn not_arrays(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
    ) -> Result<Constraint<'a>, SchemaError> {
        let mut all = Constraint::none();
        let trouble = |keyword: &str| {
            let reason = SchemaProblem::NegationUnsupported;
            Array { trouble: Some(Rc::new(error(keyword, pointer, reason))), ..Array::default() }
        };
        if let Some(value) = get(map, "minItems") {
            if let Some(max) = count(value, "minItems", pointer)?.checked_sub(1) {
                all.arrays.push(Array { max: Some(max), ..Array::default() });
            }
        }
        if let Some(value) = get(map, "maxItems") {
            let min = count(value, "maxItems", pointer)? + 1;
            all.arrays.push(Array { min, ..Array::default() });
        }
        if get(map, "uniqueItems") == Some(&Value::Bool(true)) {
            all.arrays.push(trouble("uniqueItems"));
        }
        if let Some(schema) = get(map, "contains") {
            let items = self.goal(source, schema, &["contains"], false);
            let least = get(map, "minContains").is_some() || get(map, "maxContains").is_some();
            let mut array = Array { items, ..Array::default() };
            array.close();
            all.arrays.push(if least { trouble("contains") } else { array });
        }
        match get(map, "items") {
            None => {
                if get(map, "prefixItems").is_some() {
                    all.arrays.push(trouble("prefixItems"));
                }
            }
            Some(items) if !items.is_array() && get(map, "prefixItems").is_none() => {
                let bad = self.goal(source, items, &["items"], false);
                if *bad != [Atom::False] {
                    all.arrays.push(Array {
                        contains: vec![Contains {
                            not: self.goal(source, items, &["items"], true),
                            goal: bad,
                            min: 1,
                            max: None,
                            error: Rc::new(error(
                                "items",
                                pointer,
                                SchemaProblem::NegationUnsupported,
                            )),
                        }],
                        ..Array::default()
                    });
                }
            }
            Some(_) => all.arrays.push(trouble("items")),
        }
        if get(map, "unevaluatedItems").is_some() {
            all.arrays.push(trouble("unevaluatedItems"));
        }
        Ok(all)
    }

    fn not_objects(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
    ) -> Result<Constraint<'a>, Stop> {
        let mut all = Constraint::none();
        let object = self.object(map, source, pointer)?;
        for key in &object.required {
            all.objects.push(Object { forbidden: vec![key], ..Object::default() });
        }
        if object.min > 0 {
            all.objects.push(Object { max: Some(object.min - 1), ..Object::default() });
        }
        if let Some(max) = object.max {
            all.objects.push(Object { min: max + 1, ..Object::default() });
        }
        let unsupported =
            |keyword: &str| Rc::new(error(keyword, pointer, SchemaProblem::NegationUnsupported));
        for keyword in ["propertyNames", "dependentSchemas", "unevaluatedProperties"] {
            if get(map, keyword).is_some() {
                let trouble = Some(unsupported(keyword));
                all.objects.push(Object { trouble, ..Object::default() });
            }
        }
        if let Some(properties) = map_of(get(map, "properties"), "properties", pointer)? {
            for (name, schema) in properties {
                let goal = self.goal(source, schema, &["properties", name], false);
                if *goal != [Atom::False] {
                    all.objects.push(with_member(name, goal));
                }
            }
        }
        let patterns = map_of(get(map, "patternProperties"), "patternProperties", pointer)?;
        for (pattern, schema) in patterns.into_iter().flatten() {
            let value = self.goal(source, schema, &["patternProperties", pattern], false);
            match self.language(pattern) {
                Ok(keys) if *value != [Atom::False] => all.objects.push(Object {
                    some: vec![Some_ {
                        not_named: Vec::new(),
                        keys: vec![keys],
                        value,
                        error: unsupported("patternProperties"),
                    }],
                    ..Object::default()
                }),
                Ok(_) => {}
                Err(problem) => {
                    let place = child(pointer, "patternProperties");
                    return Err(error(pattern, &place, problem).into());
                }
            }
        }
        if let Some(schema) = get(map, "additionalProperties") {
            let value = self.goal(source, schema, &["additionalProperties"], false);
            if *value != [Atom::False] {
                let members = self.members(map, source, pointer)?;
                all.objects.push(Object {
                    some: vec![Some_ {
                        not_named: members.properties.iter().map(|(name, _)| *name).collect(),
                        keys: members
                            .patterns
                            .iter()
                            .map(|(k, _)| Rc::new(k.complement()))
                            .collect(),
                        value,
                        error: unsupported("additionalProperties"),
                    }],
                    ..Object::default()
                });
            }
        }
        for keyword in ["dependentRequired", "dependencies"] {
            for (key, names) in map_of(get(map, keyword), keyword, pointer)?.into_iter().flatten() {
                if names.is_array() {
                    for name in strings(Some(names), key, &child(pointer, keyword))? {
                        all.objects.push(Object {
                            required: vec![key],
                            forbidden: vec![name],
                            ..Object::default()
                        });
                    }
                } else {
                    let trouble = Some(unsupported(keyword));
                    all.objects.push(Object { trouble, ..Object::default() });
                }
            }
        }
        all.objects
            .retain(|object| object.required != object.forbidden || object.required.is_empty());
        Ok(all)
    }

    fn not_applied(
        &mut self,
        map: &'a Map<String, Value>,
        source: usize,
        pointer: &str,
        mut either: Constraint<'a>,
    ) -> Result<Constraint<'a>, Stop> {
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = get(map, keyword) {
                let target = self.reference(source, keyword, reference, false)?;
                either = either.or((*target).clone());
            }
        }
        for keyword in ["allOf", "extends"] {
            for (index, schema) in branches(map, keyword, pointer)? {
                let inner = self.inside(source, schema, &[keyword, &index]);
                either = either.or((*self.schema(inner, false)?).clone());
            }
        }
        if get(map, "anyOf").is_some() {
            let mut none = Constraint::any();
            for (index, schema) in branches(map, "anyOf", pointer)? {
                let inner = self.inside(source, schema, &["anyOf", &index]);
                none = none.and(&*self.schema(inner, false)?);
            }
            either = either.or(none);
        }
        if get(map, "oneOf").is_some() {
            let mut none = Constraint::any();
            let mut held: Vec<Rc<Constraint>> = Vec::new();
            let mut two = Constraint::none();
            for (index, schema) in branches(map, "oneOf", pointer)? {
                let inner = self.inside(source, schema, &["oneOf", &index]);
                none = none.and(&*self.schema(inner, false)?);
                let holds = self.schema(inner, true)?;
                for other in &held {
                    two = two.or(other.and(&holds));
                }
                held.push(holds);
            }
            either = either.or(none).or(two);
        }
        if let Some(schema) = get(map, "not") {
            let inner = self.inside(source, schema, &["not"]);
            either = either.or((*self.schema(inner, true)?).clone());
        }
        if let Some(schema) = get(map, "if") {
            let condition = self.inside(source, schema, &["if"]);
            for (keyword, holds) in [("then", true), ("else", false)] {
                if let Some(schema) = get(map, keyword) {
                    let inner = self.inside(source, schema, &[keyword]);
                    let case = self.schema(condition, holds)?.and(&*self.schema(inner, false)?);
                    either = either.or(case);
                }
            }
        }
        Ok(either)
    }

    /// Whether some value may meet the constraint; `false` only where none can.
    fn can_be(&mut self, constraint: &Constraint<'a>, depth: usize) -> bool {
        if constraint.null || constraint.booleans != [false, false] {
            return true;
        }
        !constraint.numbers.is_empty()
            || constraint.strings.iter().any(strings_can_be)
            || constraint.arrays.iter().any(|array| self.array_can_be(array, depth))
            || constraint.objects.iter().any(|object| self.object_can_be(object, depth))
    }

    pub(super) fn goal_can_be(&mut self, goal: &Goal, depth: usize) -> bool {
        if depth > MAX_PROBE {
            return true;
        }
        if let Some(known) = self.possible.get(goal) {
            return *known;
        }
        match self.all(goal) {
            Ok(constraint) => {
                // Whoever comes here again from inside may take it as possible.
                self.possible.insert(Rc::clone(goal), true);
                let possible = self.can_be(&constraint, depth + 1);
                self.possible.insert(Rc::clone(goal), possible);
                possible
            }
            Err(_) => true,
        }
    }

    fn array_can_be(&mut self, array: &Array, depth: usize) -> bool {
        array.is_possible()
            && array.prefix.iter().take(array.min).all(|goal| self.goal_can_be(goal, depth))
            && (array.min <= array.prefix.len() || self.goal_can_be(&array.items, depth))
    }

    fn object_can_be(&mut self, object: &Object<'a>, depth: usize) -> bool {
        let names = object.names.clone();
        object.required.iter().all(|key| {
            !object.forbidden.contains(key)
                && self.goal_can_be(&object.goal_of(key), depth)
                && names.iter().all(|names| self.allows_key(names, key))
        })
    }

    /// Whether a key meets what `propertyNames` asks.
    pub(super) fn allows_key(&mut self, names: &Goal, key: &str) -> bool {
        match self.all(names) {
            Ok(constraint) => constraint.strings.iter().any(|strings| {
                strings.holds(key)
                    && strings.listed.as_ref().is_none_or(|listed| listed.contains(&key))
            }),
            Err(_) => true,
        }
    }
}

/// Deepest level that is looked at to find two branches of `oneOf` disjoint.
const MAX_PROBE: usize = 12;

fn strings_can_be(strings: &Strings) -> bool {
    if strings.listed.is_some() || strings.languages.len() < 2 {
        return true;
    }
    let mut whole = (*strings.languages[0]).clone();
    for language in &strings.languages[1..] {
        match whole.intersect(language) {
            Ok(both) => whole = both,
            Err(_) => return true,
        }
    }
    !whole.is_empty()
}

/// The object has this member.
fn with_member(name: &str, goal_of: Goal) -> Object<'_> {
    Object {
        members: vec![Rc::new(Members::one(name, goal_of))],
        required: vec![name],
        ..Object::default()
    }
}

/// Any value but these.
fn unlisted<'a>(values: &[&'a Value], keyword: &str, pointer: &str) -> Constraint<'a> {
    let mut whole = Constraint::any();
    let (mut without, mut texts) = (Vec::new(), Vec::new());
    let reason = || Rc::new(error(keyword, pointer, SchemaProblem::NegationUnsupported));
    for value in values {
        match value {
            Value::Null => whole.null = false,
            Value::Bool(value) => whole.booleans[usize::from(*value)] = false,
            Value::Number(number) => without.extend(number.as_str().parse::<Decimal>().ok()),
            Value::String(text) => texts.push(text.as_str()),
            Value::Array(items) => {
                for array in &mut whole.arrays {
                    match items.len() {
                        0 => array.min = 1,
                        _ => array.trouble = Some(reason()),
                    }
                }
            }
            Value::Object(members) => {
                for object in &mut whole.objects {
                    match members.len() {
                        0 => object.min = 1,
                        _ => object.trouble = Some(reason()),
                    }
                }
            }
        }
    }
    if !without.is_empty() {
        without.sort();
        without.dedup();
        whole.numbers = vec![Numbers { without, ..Numbers::default() }];
    }
    if !texts.is_empty() {
        let others = Rc::new(Dfa::of_strings(texts).complement());
        whole.strings = vec![Strings { languages: vec![others], ..Strings::default() }];
    }
    whole
}

/// The schemas of a list keyword, with their index as text.
fn branches<'a>(
    map: &'a Map<String, Value>,
    keyword: &str,
    pointer: &str,
) -> Result<Vec<(String, &'a Value)>, SchemaError> {
    match get(map, keyword) {
        None => Ok(Vec::new()),
        // Draft 3's `extends` may be one schema.
        Some(one @ Value::Object(_)) if keyword == "extends" => Ok(vec![(String::new(), one)]),
        Some(value) => {
            let schemas = list(value, keyword, pointer)?.iter().enumerate();
            Ok(schemas.map(|(index, schema)| (index.to_string(), schema)).collect())
        }
    }
}
