//! What a schema says of each type, and how two of them are joined.
//!
//! A [`Constraint`] holds, for each type of JSON, the alternatives that a value of it may meet. Both
//! "and" and "or" work type by type: that is what keeps the alternatives few.
//!
//! **Invariant:** an alternative without [`SchemaError`] says exactly what its keywords say; one with
//! it stands for something that cannot be expressed, and whoever comes to it reports the error. So a
//! keyword that the other keywords make void is no error.

use std::rc::Rc;

use super::SchemaError;
use crate::regular::Dfa;
use crate::regular::number::{self, Decimal, Interval};

/// One schema of the document, or its negation, as a condition that a value has to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Atom {
    /// No value meets it.
    False,
    /// The value is this one of [`super::compile::Compiler`]'s values.
    Is(usize),
    /// The schema with this number holds, or does not.
    Schema { source: usize, holds: bool },
}

/// All of these conditions; none at all is any value. Sorted, no two equal.
pub(super) type Goal = Rc<[Atom]>;

pub(super) fn goal(atoms: impl IntoIterator<Item = Atom>) -> Goal {
    let mut atoms: Vec<Atom> = atoms.into_iter().collect();
    atoms.sort_unstable();
    atoms.dedup();
    if atoms.contains(&Atom::False) { Rc::from([Atom::False]) } else { atoms.into() }
}

pub(super) fn both(a: &Goal, b: &Goal) -> Goal {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => Rc::clone(b),
        (_, true) => Rc::clone(a),
        _ if a == b => Rc::clone(a),
        _ => goal(a.iter().chain(b.iter()).copied()),
    }
}

/// What a value may be: one of the alternatives of its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Constraint<'a> {
    pub(super) null: bool,
    /// Whether `false` and `true` are allowed.
    pub(super) booleans: [bool; 2],
    pub(super) numbers: Vec<Numbers<'a>>,
    pub(super) strings: Vec<Strings<'a>>,
    pub(super) arrays: Vec<Array>,
    pub(super) objects: Vec<Object<'a>>,
}

/// Joins two alternatives to one that meets both; `None` where nothing can.
pub(super) trait And: Clone + PartialEq {
    fn and(&self, other: &Self) -> Option<Self>;
    /// Whether it leaves nothing out.
    fn is_any(&self) -> bool;
}

/// More alternatives than this of one type are refused: each is written out.
pub(super) const MAX_ALTERNATIVES: usize = 512;

fn product<T: And>(a: &[T], b: &[T]) -> Vec<T> {
    match (a, b) {
        ([one], _) if one.is_any() => return b.to_vec(),
        (_, [one]) if one.is_any() => return a.to_vec(),
        _ => {}
    }
    let mut all = Vec::new();
    for x in a {
        for y in b {
            if let Some(both) = x.and(y) {
                add(&mut all, both);
            }
            if all.len() > MAX_ALTERNATIVES {
                return all;
            }
        }
    }
    all
}

fn sum<T: And>(a: &mut Vec<T>, b: Vec<T>) {
    for one in b {
        add(a, one);
    }
}

fn add<T: And>(all: &mut Vec<T>, one: T) {
    if all.iter().any(|other| other.is_any() || *other == one) {
        return;
    }
    if one.is_any() {
        all.clear();
    }
    all.push(one);
}

impl Constraint<'_> {
    pub(super) fn any() -> Self {
        Self {
            null: true,
            booleans: [true, true],
            numbers: vec![Numbers::default()],
            strings: vec![Strings::default()],
            arrays: vec![Array::default()],
            objects: vec![Object::default()],
        }
    }

    pub(super) fn none() -> Self {
        Self {
            null: false,
            booleans: [false, false],
            numbers: Vec::new(),
            strings: Vec::new(),
            arrays: Vec::new(),
            objects: Vec::new(),
        }
    }

    pub(super) fn is_none(&self) -> bool {
        !self.null
            && self.booleans == [false, false]
            && self.numbers.is_empty()
            && self.strings.is_empty()
            && self.arrays.is_empty()
            && self.objects.is_empty()
    }

    /// Whether it leaves nothing out.
    pub(super) fn is_any(&self) -> bool {
        fn open<T: And>(all: &[T]) -> bool {
            matches!(all, [one] if one.is_any())
        }
        self.null
            && self.booleans == [true, true]
            && open(&self.numbers)
            && open(&self.strings)
            && open(&self.arrays)
            && open(&self.objects)
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        if self.is_any() {
            return other.clone();
        }
        if other.is_any() {
            return self.clone();
        }
        Self {
            null: self.null && other.null,
            booleans: [0, 1].map(|i| self.booleans[i] && other.booleans[i]),
            numbers: product(&self.numbers, &other.numbers),
            strings: product(&self.strings, &other.strings),
            arrays: product(&self.arrays, &other.arrays),
            objects: product(&self.objects, &other.objects),
        }
    }

    pub(super) fn or(mut self, other: Self) -> Self {
        self.null |= other.null;
        self.booleans = [0, 1].map(|i| self.booleans[i] || other.booleans[i]);
        sum(&mut self.numbers, other.numbers);
        sum(&mut self.strings, other.strings);
        sum(&mut self.arrays, other.arrays);
        sum(&mut self.objects, other.objects);
        self
    }

    /// The same as the outcome of a schema that does not hold, whose properties count as unevaluated.
    pub(super) fn unevaluating(&self) -> Self {
        let mut whole = self.clone();
        for members in whole.objects.iter_mut().flat_map(|object| &mut object.members) {
            if members.evaluates {
                *members = Rc::new(Members { evaluates: false, ..(**members).clone() });
            }
        }
        whole
    }

    /// How many alternatives the type with the most has.
    pub(super) fn n_alternatives(&self) -> usize {
        let numbers = self.numbers.len().max(self.strings.len());
        numbers.max(self.arrays.len()).max(self.objects.len())
    }
}

/// An error of an alternative; equal ones are one.
pub(super) type Trouble = Option<Rc<SchemaError>>;

fn trouble(a: &Trouble, b: &Trouble) -> Trouble {
    a.clone().or_else(|| b.clone())
}

/// Numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Numbers<'a> {
    /// Only integers, or only others.
    pub(super) integer: Option<bool>,
    /// Whether `type` says so, and not only the absence of one.
    pub(super) typed: bool,
    pub(super) interval: Interval,
    pub(super) multiples: Vec<Decimal>,
    /// Multiples of none of these.
    pub(super) not_multiples: Vec<Decimal>,
    /// Only these, as they are listed.
    pub(super) listed: Option<Vec<(Decimal, &'a str)>>,
    pub(super) without: Vec<Decimal>,
    pub(super) trouble: Trouble,
}

impl And for Numbers<'_> {
    fn and(&self, other: &Self) -> Option<Self> {
        let integer = match (self.integer, other.integer) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.or(b),
        };
        let listed = match (&self.listed, &other.listed) {
            (Some(a), Some(b)) => {
                Some(a.iter().filter(|(x, _)| b.iter().any(|(y, _)| x == y)).cloned().collect())
            }
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        let mut all = Self {
            integer,
            typed: self.typed || other.typed,
            interval: self.interval.and(&other.interval),
            multiples: self.multiples.iter().chain(&other.multiples).cloned().collect(),
            not_multiples: self.not_multiples.iter().chain(&other.not_multiples).cloned().collect(),
            listed,
            without: self.without.iter().chain(&other.without).cloned().collect(),
            trouble: trouble(&self.trouble, &other.trouble),
        };
        for values in [&mut all.multiples, &mut all.not_multiples, &mut all.without] {
            values.sort();
            values.dedup();
        }
        if let Some(mut listed) = all.listed.take() {
            listed.retain(|(value, _)| all.holds(value));
            if listed.is_empty() {
                return None;
            }
            all.listed = Some(listed);
        }
        all.is_possible().then_some(all)
    }

    fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

impl Numbers<'_> {
    /// Whether the bounds leave some number.
    pub(super) fn is_possible(&self) -> bool {
        !contradicts(&self.interval)
    }

    /// Whether a value meets all but the list.
    pub(super) fn holds(&self, value: &Decimal) -> bool {
        self.integer.is_none_or(|integer| value.is_integer() == integer)
            && self.interval.contains(value)
            && !self.without.contains(value)
            && self.multiples.iter().all(|divisor| is_multiple(value, divisor))
            && !self.not_multiples.iter().any(|divisor| is_multiple(value, divisor))
    }
}

/// Whether an interval is surely empty.
fn contradicts(interval: &Interval) -> bool {
    match (&interval.min, &interval.max) {
        (Some(min), Some(max)) => match min.value.cmp(&max.value) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => min.exclusive || max.exclusive,
            std::cmp::Ordering::Greater => true,
        },
        _ => false,
    }
}

fn is_multiple(value: &Decimal, divisor: &Decimal) -> bool {
    number::numbers(&Interval::default(), std::slice::from_ref(divisor))
        .is_ok_and(|multiples| multiples.accepts(&value.to_string()))
}

/// Strings.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Strings<'a> {
    /// Fewest code points.
    pub(super) min: usize,
    /// Most code points.
    pub(super) max: Option<usize>,
    /// All of these languages.
    pub(super) languages: Vec<Rc<Dfa>>,
    /// Only these.
    pub(super) listed: Option<Vec<&'a str>>,
    pub(super) trouble: Trouble,
}

impl And for Strings<'_> {
    fn and(&self, other: &Self) -> Option<Self> {
        let listed = match (&self.listed, &other.listed) {
            (Some(a), Some(b)) => Some(a.iter().filter(|x| b.contains(x)).copied().collect()),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        let mut languages = self.languages.clone();
        for language in &other.languages {
            if !languages.contains(language) {
                languages.push(Rc::clone(language));
            }
        }
        let mut all = Self {
            min: self.min.max(other.min),
            max: self.max.into_iter().chain(other.max).min(),
            languages,
            listed,
            trouble: trouble(&self.trouble, &other.trouble),
        };
        if let Some(mut listed) = all.listed.take() {
            listed.retain(|value| all.holds(value));
            if listed.is_empty() {
                return None;
            }
            all.listed = Some(listed);
        }
        all.is_possible().then_some(all)
    }

    fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

impl Strings<'_> {
    /// Whether the lengths leave some string.
    pub(super) fn is_possible(&self) -> bool {
        self.max.is_none_or(|max| self.min <= max)
    }

    /// Whether a value meets all but the list.
    pub(super) fn holds(&self, value: &str) -> bool {
        let length = value.chars().count();
        self.min <= length
            && self.max.is_none_or(|max| length <= max)
            && self.languages.iter().all(|language| language.accepts(value))
    }
}

/// Arrays.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Array {
    /// The first items, one by one.
    pub(super) prefix: Vec<Goal>,
    /// The items after those.
    pub(super) items: Goal,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
    pub(super) contains: Vec<Contains>,
    pub(super) unique: Option<Rc<SchemaError>>,
    pub(super) trouble: Trouble,
}

/// That some items meet a condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contains {
    pub(super) goal: Goal,
    /// The opposite condition.
    pub(super) not: Goal,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
    /// To report where the array cannot be written out.
    pub(super) error: Rc<SchemaError>,
}

impl Default for Array {
    fn default() -> Self {
        Self {
            prefix: Vec::new(),
            items: goal([]),
            min: 0,
            max: None,
            contains: Vec::new(),
            unique: None,
            trouble: None,
        }
    }
}

impl And for Array {
    fn and(&self, other: &Self) -> Option<Self> {
        let item = |array: &Self, index: usize| {
            array.prefix.get(index).cloned().unwrap_or_else(|| Rc::clone(&array.items))
        };
        let n = self.prefix.len().max(other.prefix.len());
        let mut contains = self.contains.clone();
        for one in &other.contains {
            if !contains.contains(one) {
                contains.push(one.clone());
            }
        }
        let mut all = Self {
            prefix: (0..n).map(|i| both(&item(self, i), &item(other, i))).collect(),
            items: both(&self.items, &other.items),
            min: self.min.max(other.min),
            max: self.max.into_iter().chain(other.max).min(),
            contains,
            unique: self.unique.clone().or_else(|| other.unique.clone()),
            trouble: trouble(&self.trouble, &other.trouble),
        };
        all.close();
        all.is_possible().then_some(all)
    }

    fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

impl Array {
    /// Whether the counts leave some array.
    pub(super) fn is_possible(&self) -> bool {
        self.max.is_none_or(|max| self.min <= max)
    }

    /// Bounds the length where an item is impossible.
    pub(super) fn close(&mut self) {
        let impossible = |goal: &Goal| **goal == [Atom::False];
        if impossible(&self.items) {
            self.max = Some(self.max.map_or(self.prefix.len(), |max| max.min(self.prefix.len())));
        }
        if let Some(at) = self.prefix.iter().position(impossible) {
            self.max = Some(self.max.map_or(at, |max| max.min(at)));
        }
    }
}

/// Objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object<'a> {
    /// What each schema says of the values by their keys.
    pub(super) members: Vec<Rc<Members<'a>>>,
    pub(super) required: Vec<&'a str>,
    pub(super) forbidden: Vec<&'a str>,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
    /// What every key has to meet, as a string.
    pub(super) names: Vec<Goal>,
    /// What some member has to meet that is not one of a list of keys.
    pub(super) some: Vec<Some_<'a>>,
    pub(super) trouble: Trouble,
}

/// `properties`, `patternProperties` and `additionalProperties` of one schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Members<'a> {
    pub(super) properties: Vec<(&'a str, Goal)>,
    pub(super) patterns: Vec<(Rc<Dfa>, Goal)>,
    pub(super) others: Goal,
    /// Whether `additionalProperties` has a schema of its own, not only `true`.
    pub(super) others_are_described: bool,
    /// Whether its keys count as evaluated: not so in a negation.
    pub(super) evaluates: bool,
}

impl<'a> Members<'a> {
    /// One member with this key, as something else than a schema's keyword asks for it.
    pub(super) fn one(key: &'a str, value: Goal) -> Self {
        Self {
            properties: vec![(key, value)],
            patterns: Vec::new(),
            others: goal([]),
            others_are_described: false,
            evaluates: false,
        }
    }
}

/// The negation of `patternProperties` or `additionalProperties`: some member meets this.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Some_<'a> {
    /// Its key is not one of these,
    pub(super) not_named: Vec<&'a str>,
    /// is in all of these languages,
    pub(super) keys: Vec<Rc<Dfa>>,
    /// and its value meets this.
    pub(super) value: Goal,
    pub(super) error: Rc<SchemaError>,
}

impl And for Object<'_> {
    fn and(&self, other: &Self) -> Option<Self> {
        fn joined<T: Clone + PartialEq>(a: &[T], b: &[T]) -> Vec<T> {
            let mut all = a.to_vec();
            for one in b {
                if !all.contains(one) {
                    all.push(one.clone());
                }
            }
            all
        }
        let all = Self {
            members: joined(&self.members, &other.members),
            required: joined(&self.required, &other.required),
            forbidden: joined(&self.forbidden, &other.forbidden),
            min: self.min.max(other.min),
            max: self.max.into_iter().chain(other.max).min(),
            names: joined(&self.names, &other.names),
            some: joined(&self.some, &other.some),
            trouble: trouble(&self.trouble, &other.trouble),
        };
        all.is_possible().then_some(all)
    }

    fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

impl Object<'_> {
    /// Whether the counts and the keys leave some object.
    pub(super) fn is_possible(&self) -> bool {
        self.max.is_none_or(|max| self.min.max(self.required.len()) <= max)
            && !self.required.iter().any(|key| self.forbidden.contains(key))
    }

    /// What the value under a key has to meet.
    pub(super) fn goal_of(&self, key: &str) -> Goal {
        let mut whole = goal([]);
        for members in &self.members {
            let mut named = false;
            for (_, goal) in members.properties.iter().filter(|(name, _)| *name == key) {
                named = true;
                whole = both(&whole, goal);
            }
            for (_, goal) in members.patterns.iter().filter(|(keys, _)| keys.accepts(key)) {
                named = true;
                whole = both(&whole, goal);
            }
            if !named {
                whole = both(&whole, &members.others);
            }
        }
        whole
    }
}
