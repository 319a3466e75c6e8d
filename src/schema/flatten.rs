//! Constraints to [`Schema`]: numbered nodes without references, with nothing impossible left in.
//!
//! **Invariant:** every node that the root leads to has some value, every property and every item can
//! be written.

use rustc_hash::FxHashMap;
use std::rc::Rc;

use super::compile::Compiler;
use super::constraint::{self, Atom, Constraint, Goal, Members, both, goal};
use super::{
    Array, Items, Keys, MAX_NODES, Node, NodeId, Numbers, Object, Others, Property, SchemaError,
    SchemaProblem, Strings, Undeclared, error_at,
};
use crate::definitions::child;
use crate::regular::Dfa;
use crate::regular::number;

/// More patterns of keys than this in one object are refused: every combination is a case.
const MAX_PATTERNS: usize = 6;

/// Most states of one language of strings: each is written out, and takes a recognizer some 10 kB.
const MAX_STATES: usize = 8_000;

/// Most texts of the items of an array without duplicates: every subset of them is a state.
const MAX_DISTINCT: usize = 8;

pub(super) struct Flattener<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    undeclared: Undeclared,
    ids: FxHashMap<Goal, usize>,
    goals: Vec<Goal>,
    nodes: Vec<Node>,
}

pub(super) fn flatten(
    compiler: &mut Compiler<'_>,
    root: &Goal,
    undeclared: Undeclared,
) -> Result<Vec<Node>, SchemaError> {
    let mut flattener = Flattener {
        compiler,
        undeclared,
        ids: FxHashMap::default(),
        goals: Vec::new(),
        nodes: Vec::new(),
    };
    flattener.id(root);
    let mut done = 0;
    while let Some(goal) = flattener.goals.get(done).cloned() {
        if done >= MAX_NODES {
            return Err(error_at("", SchemaProblem::TooLarge));
        }
        let node = flattener.node(&goal, done == 0).map_err(|error| {
            // Limits know no place of their own.
            let place = flattener.compiler.pointer(&goal);
            if error.pointer.is_empty() { error_at(place, error.reason) } else { error }
        })?;
        flattener.nodes.push(node);
        done += 1;
    }
    let mut nodes = std::mem::take(&mut flattener.nodes);
    let lives = living(&nodes);
    if !lives[0] {
        let at = flattener.culprit(&nodes, &lives);
        return Err(error_at(&at, SchemaProblem::Unsatisfiable));
    }
    prune(&mut nodes, &lives);
    Ok(nodes)
}

impl<'a> Flattener<'_, 'a> {
    /// The innermost place without a value that leaves the root without one, as far as there is one way.
    fn culprit(&self, nodes: &[Node], lives: &[bool]) -> String {
        let (mut at, mut seen) = (0, vec![false; nodes.len()]);
        let mut place = self.compiler.pointer(&self.goals[0]).to_owned();
        loop {
            seen[at] = true;
            let [object] = nodes[at].objects.as_slice() else { return place };
            let mut required = object.properties.iter().filter(|property| property.required);
            match required.find(|property| !lives[property.node.0]) {
                Some(property) if !seen[property.node.0] => {
                    at = property.node.0;
                    place = match self.compiler.pointer(&self.goals[at]) {
                        // The schema `false` is no place of its own.
                        "" => child(&child(&place, "properties"), &property.name),
                        pointer => pointer.to_owned(),
                    };
                }
                _ => return place,
            }
        }
    }

    fn id(&mut self, goal: &Goal) -> NodeId {
        if let Some(id) = self.ids.get(goal) {
            return NodeId(*id);
        }
        let id = self.goals.len();
        self.ids.insert(Rc::clone(goal), id);
        self.goals.push(Rc::clone(goal));
        NodeId(id)
    }

    fn all(&mut self, goal: &Goal) -> Result<Rc<Constraint<'a>>, SchemaError> {
        self.compiler.all(goal).map_err(|stop| self.compiler.error_of(stop))
    }

    fn node(&mut self, goal: &Goal, root: bool) -> Result<Node, SchemaError> {
        let constraint = self.all(goal)?;
        let mut node = Node {
            pointer: self.compiler.pointer(goal).to_owned(),
            any: constraint.is_any(),
            null: constraint.null,
            booleans: constraint.booleans,
            ..Node::default()
        };
        if node.any && !(root && self.undeclared == Undeclared::Omit) {
            return Ok(node);
        }
        self.widen_scalars(&constraint)?;
        Self::numbers(&constraint, &mut node)?;
        node.strings = strings(&constraint.strings)?;
        for array in &constraint.arrays {
            self.array(array, &mut node)?;
        }
        for object in &constraint.objects {
            for object in self.with_some(object)? {
                if let Some(object) = self.object(&object, root)? {
                    if !node.objects.contains(&object) {
                        node.objects.push(object);
                    }
                }
            }
        }
        Ok(node)
    }

    fn widen_scalars(&mut self, constraint: &Constraint) -> Result<(), SchemaError> {
        let numbers = constraint.numbers.iter().filter_map(|one| one.trouble.as_ref());
        let strings = constraint.strings.iter().filter_map(|one| one.trouble.as_ref());
        numbers.chain(strings).try_for_each(|error| self.compiler.widen(error))
    }

    fn numbers(all: &Constraint<'a>, node: &mut Node) -> Result<(), SchemaError> {
        let decimal = |numbers: &constraint::Numbers| {
            numbers.typed && numbers.integer != Some(true) && numbers.listed.is_none()
        };
        node.decimal = !all.numbers.is_empty() && all.numbers.iter().all(decimal);
        let mut found = Vec::new();
        for numbers in &all.numbers {
            let numbers = number_texts(numbers)?;
            if numbers == Numbers::Number {
                node.numbers = vec![numbers];
                return Ok(());
            }
            if !found.contains(&numbers) && !numbers.is_empty() {
                found.push(numbers);
            }
        }
        if found.len() > 1 {
            let mut whole = found[0].language();
            for other in &found[1..] {
                whole = whole.union(&other.language()).map_err(too_large)?;
            }
            found = vec![Numbers::Language(whole)];
        }
        node.numbers = found;
        Ok(())
    }

    fn array(&mut self, array: &constraint::Array, node: &mut Node) -> Result<(), SchemaError> {
        if let Some(trouble) = &array.trouble {
            self.compiler.widen(trouble)?;
        }
        if !array.is_possible() {
            return Ok(());
        }
        let prefix: Vec<NodeId> = array.prefix.iter().map(|goal| self.id(goal)).collect();
        let mut flat = Array {
            prefix,
            items: Items::Each(self.id(&array.items)),
            min: array.min,
            max: array.max,
        };
        match self.contains(array, &mut flat) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => self.compiler.widen(&error)?,
        }
        // A number that is listed in two spellings is one value.
        if let Some(error) = array.unique.as_ref().filter(|_| array.max.is_none_or(|max| max > 1)) {
            let values = self.values(&array.items)?.filter(|_| array.prefix.is_empty());
            match values {
                Some(values) => flat.items = Items::Distinct(values),
                None => self.compiler.widen(error)?,
            }
        }
        if !node.arrays.contains(&flat) {
            node.arrays.push(flat);
        }
        Ok(())
    }

    /// Writes out `contains`; `false` where it leaves no array.
    fn contains(
        &mut self,
        array: &constraint::Array,
        flat: &mut Array,
    ) -> Result<bool, SchemaError> {
        let contains: Vec<_> =
            array.contains.iter().filter(|c| c.min > 0 || c.max.is_some()).collect();
        if let [contains, more @ ..] = contains.as_slice() {
            if !more.is_empty() || !array.prefix.is_empty() || array.unique.is_some() {
                return Err((*contains.error).clone());
            }
            let good = both(&array.items, &contains.goal);
            let bad = both(&array.items, &contains.not);
            // Where the opposite cannot be expressed the same item may stand for either.
            let bad = if self.all(&bad).is_ok_and(|c| !has_trouble(&c)) {
                bad
            } else if contains.max.is_none() {
                Rc::clone(&array.items)
            } else {
                return Err((*contains.error).clone());
            };
            if contains.max.is_some_and(|max| contains.min > max) {
                return Ok(false);
            }
            flat.items = Items::Contains {
                good: self.id(&good),
                bad: self.id(&bad),
                min: contains.min,
                max: contains.max,
            };
        }
        Ok(true)
    }

    /// The texts of a goal's values, if they are few and none is an array or an object.
    fn values(&mut self, goal: &Goal) -> Result<Option<Vec<String>>, SchemaError> {
        let constraint = self.all(goal)?;
        if !constraint.arrays.is_empty() || !constraint.objects.is_empty() {
            return Ok(None);
        }
        let mut texts = Vec::new();
        if constraint.null {
            texts.push("null".to_owned());
        }
        for (allowed, text) in constraint.booleans.into_iter().zip(["false", "true"]) {
            texts.extend(allowed.then(|| text.to_owned()));
        }
        let mut node = Node::default();
        Self::numbers(&constraint, &mut node)?;
        for numbers in &node.numbers {
            let found = match numbers {
                Numbers::Listed(texts) => {
                    let mut values: Vec<number::Decimal> =
                        texts.iter().filter_map(|text| text.parse().ok()).collect();
                    values.sort();
                    values.dedup();
                    (values.len() == texts.len()).then(|| texts.clone())
                }
                Numbers::Language(language) => language.strings(MAX_DISTINCT),
                Numbers::Number | Numbers::Integer => None,
            };
            let Some(found) = found else { return Ok(None) };
            texts.extend(found);
        }
        for strings in &strings(&constraint.strings)? {
            let found = match strings {
                Strings::Listed(texts) => Some(texts.clone()),
                Strings::Language(language) => language.strings(MAX_DISTINCT),
                Strings::Length { .. } => None,
            };
            let Some(found) = found else { return Ok(None) };
            let quoted =
                found.iter().map(|text| serde_json::Value::from(text.as_str()).to_string());
            texts.extend(quoted);
        }
        Ok((texts.len() <= MAX_DISTINCT).then_some(texts))
    }

    /// An object that has some member, as the cases of which member that is.
    fn with_some(
        &mut self,
        object: &constraint::Object<'a>,
    ) -> Result<Vec<constraint::Object<'a>>, SchemaError> {
        let Some((some, rest)) = object.some.split_last() else { return Ok(vec![object.clone()]) };
        let open = constraint::Object { some: rest.to_vec(), ..object.clone() };
        let mut cases = Vec::new();
        for key in names(&open) {
            if !some.not_named.contains(&key) && some.keys.iter().all(|keys| keys.accepts(key)) {
                let mut case = open.clone();
                case.members.push(Rc::new(Members::one(key, Rc::clone(&some.value))));
                if !case.required.contains(&key) {
                    case.required.push(key);
                }
                cases.extend(self.with_some(&case)?);
            }
        }
        let closed = open
            .members
            .iter()
            .any(|members| *members.others == [Atom::False] && members.patterns.is_empty());
        if !closed {
            self.compiler.widen(&some.error)?;
            return self.with_some(&open);
        }
        Ok(cases)
    }

    /// The object with its members by key; `None` where it cannot be.
    fn object(
        &mut self,
        object: &constraint::Object<'a>,
        root: bool,
    ) -> Result<Option<Object>, SchemaError> {
        if let Some(trouble) = &object.trouble {
            self.compiler.widen(trouble)?;
        }
        let named = names(object);
        let mut properties = Vec::new();
        for &key in &named {
            let required = object.required.contains(&key);
            let forbidden = object.forbidden.contains(&key)
                || !object.names.iter().all(|names| self.compiler.allows_key(names, key));
            let goal = if forbidden { goal([Atom::False]) } else { object.goal_of(key) };
            if *goal != [Atom::False] || required {
                properties.push(Property { name: key.to_owned(), node: self.id(&goal), required });
            }
        }
        let others = self.others(object, &named, root)?;
        let n_required = properties.iter().filter(|property| property.required).count();
        let max = object.max.filter(|max| !others.is_empty() || *max < properties.len());
        if max.is_some_and(|max| n_required > max || object.min > max) {
            return Ok(None);
        }
        let min = if object.min > n_required { object.min } else { 0 };
        Ok(Some(Object { properties, others, min, max }))
    }

    /// What is allowed under keys that are not named.
    fn others(
        &mut self,
        object: &constraint::Object<'a>,
        named: &[&str],
        root: bool,
    ) -> Result<Vec<Others>, SchemaError> {
        let mut patterns: Vec<Rc<Dfa>> = Vec::new();
        for (keys, _) in object.members.iter().flat_map(|members| &members.patterns) {
            if !patterns.contains(keys) {
                patterns.push(Rc::clone(keys));
            }
        }
        if patterns.len() > MAX_PATTERNS {
            return Err(error_at("", SchemaProblem::TooManyPatterns));
        }
        let mut sorted: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        sorted.sort_unstable();
        let all_but = Keys::AllBut(sorted);
        let plain = patterns.is_empty() && object.names.is_empty();
        let mut allowed = if plain { Dfa::empty() } else { all_but.language() };
        for goal in &object.names {
            let constraint = self.all(goal)?;
            let mut any_of = Dfa::empty();
            for strings in strings(&constraint.strings)? {
                any_of =
                    any_of.union(&strings.language().map_err(too_large)?).map_err(too_large)?;
            }
            allowed = allowed.intersect(&any_of).map_err(too_large)?;
        }
        let wanted = object.min.max(object.required.len());
        let mut found: Vec<Others> = Vec::new();
        for case in 0..1_usize << patterns.len() {
            let matched = |keys: &Rc<Dfa>| {
                patterns.iter().position(|p| p == keys).is_some_and(|bit| case >> bit & 1 == 1)
            };
            let mut value = goal([]);
            let mut described = case != 0;
            for members in &object.members {
                let mut hits = members.patterns.iter().filter(|(keys, _)| matched(keys)).peekable();
                if hits.peek().is_none() {
                    described |= !members.others.is_empty();
                    value = both(&value, &members.others);
                }
                for (_, goal) in hits {
                    value = both(&value, goal);
                }
            }
            let omitted = self.undeclared == Undeclared::Omit
                && !described
                && (root || !named.is_empty() || !patterns.is_empty())
                && wanted <= named.len();
            if *value == [Atom::False] || omitted {
                continue;
            }
            if plain {
                let node = self.id(&value);
                return Ok(vec![Others { keys: all_but, node }]);
            }
            let mut keys = allowed.clone();
            for (bit, pattern) in patterns.iter().enumerate() {
                let next = if case >> bit & 1 == 1 {
                    keys.intersect(pattern)
                } else {
                    keys.minus(pattern)
                };
                keys = next.map_err(too_large)?;
            }
            if keys.is_empty() {
                continue;
            }
            let node = self.id(&value);
            match found.iter_mut().find(|others| others.node == node) {
                Some(others) => {
                    let both = others.keys.language().union(&keys).map_err(too_large)?;
                    others.keys = Keys::Language(both);
                }
                None => found.push(Others { keys: Keys::Language(keys), node }),
            }
        }
        Ok(found)
    }
}

/// The keys that have a meaning of their own, in the order of the schemas.
fn names<'a>(object: &constraint::Object<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    let properties = object.members.iter().flat_map(|members| &members.properties);
    let keys = properties.map(|(name, _)| *name);
    let some = object.some.iter().flat_map(|some| some.not_named.iter().copied());
    for key in keys
        .chain(object.required.iter().copied())
        .chain(object.forbidden.iter().copied())
        .chain(some)
    {
        if seen.insert(key) {
            names.push(key);
        }
    }
    names
}

fn has_trouble(constraint: &Constraint) -> bool {
    constraint.numbers.iter().any(|one| one.trouble.is_some())
        || constraint.strings.iter().any(|one| one.trouble.is_some())
        || constraint.arrays.iter().any(|one| one.trouble.is_some() || one.unique.is_some())
        || constraint.objects.iter().any(|one| one.trouble.is_some() || !one.some.is_empty())
}

fn too_large(_: crate::regular::TooLarge) -> SchemaError {
    error_at("", SchemaProblem::TooLarge)
}

fn pattern(text: &str) -> Result<Dfa, SchemaError> {
    Dfa::pattern(text)
        .map_err(|error| error_at("", SchemaProblem::Pattern { message: error.to_string() }))
}

fn number_texts(numbers: &constraint::Numbers) -> Result<Numbers, SchemaError> {
    if let Some(listed) = &numbers.listed {
        let text = |(value, text): &(number::Decimal, &str)| {
            if numbers.integer == Some(true) { value.to_string() } else { (*text).to_owned() }
        };
        return Ok(Numbers::Listed(listed.iter().map(text).collect()));
    }
    let open = numbers.multiples.is_empty()
        && numbers.not_multiples.is_empty()
        && numbers.without.is_empty()
        && numbers.interval == number::Interval::default();
    match numbers.integer {
        None if open => return Ok(Numbers::Number),
        Some(true) if open => return Ok(Numbers::Integer),
        _ => {}
    }
    let wrong = |error: number::NumberError| {
        error_at("", SchemaProblem::Number { message: error.to_string() })
    };
    let mut language = if numbers.integer == Some(true) {
        number::integers(&numbers.interval, &numbers.multiples)
    } else {
        number::numbers(&numbers.interval, &numbers.multiples)
    }
    .map_err(wrong)?;
    for divisor in &numbers.not_multiples {
        let every = number::Interval::default();
        let multiples = number::numbers(&every, std::slice::from_ref(divisor)).map_err(wrong)?;
        // Multiples are told apart in plain spellings only, and every zero is one.
        language = language
            .intersect(&pattern("^(?!-0*(\\.0*)?$)[^eE]*$")?)
            .and_then(|plain| plain.minus(&multiples))
            .map_err(too_large)?;
    }
    for value in &numbers.without {
        language = number::without(&language, value).map_err(wrong)?;
    }
    if numbers.integer == Some(false) {
        let plain = pattern("^-?[0-9]+\\.[0-9]*[1-9][0-9]*$")?;
        language = language.intersect(&plain).map_err(too_large)?;
    }
    Ok(Numbers::Language(language))
}

/// Strings as alternatives that do not overlap.
fn strings(all: &[constraint::Strings]) -> Result<Vec<Strings>, SchemaError> {
    let mut found: Vec<Strings> = Vec::new();
    for strings in all {
        let one = if let Some(listed) = &strings.listed {
            Strings::Listed(listed.iter().map(|text| (*text).to_owned()).collect())
        } else if strings.languages.is_empty() {
            Strings::Length { min: strings.min, max: strings.max }
        } else {
            Strings::Language(language(strings)?)
        };
        if one == (Strings::Length { min: 0, max: None }) {
            return Ok(vec![one]);
        }
        if !found.contains(&one) && !matches!(&one, Strings::Language(dfa) if dfa.is_empty()) {
            found.push(one);
        }
    }
    if found.len() > 1 {
        let mut whole = Dfa::empty();
        for strings in &found {
            let Ok(language) = strings.language() else { return Ok(found) };
            let Ok(both) = whole.union(&language) else { return Ok(found) };
            whole = both;
        }
        return Ok(vec![Strings::Language(whole)]);
    }
    Ok(found)
}

fn language(strings: &constraint::Strings) -> Result<Dfa, SchemaError> {
    let mut whole = (*strings.languages[0]).clone();
    for language in &strings.languages[1..] {
        whole = whole.intersect(language).map_err(too_large)?;
    }
    let small = |language: Dfa| match language.states().len() {
        0..=MAX_STATES => Ok(language),
        _ => Err(error_at("", SchemaProblem::TooLarge)),
    };
    let Some((shortest, longest)) = whole.lengths() else { return Ok(whole) };
    let min = if strings.min > shortest { strings.min } else { 0 };
    let max = strings.max.filter(|max| longest.is_none_or(|longest| longest > *max));
    if min == 0 && max.is_none() {
        return small(whole);
    }
    Strings::Length { min, max }
        .language()
        .and_then(|lengths| whole.intersect(&lengths))
        .map_err(too_large)
        .and_then(small)
}

/// Which nodes have a value.
fn living(nodes: &[Node]) -> Vec<bool> {
    let mut lives = vec![false; nodes.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for index in (0..nodes.len()).rev() {
            if !lives[index] && nodes[index].lives(&lives) {
                lives[index] = true;
                changed = true;
            }
        }
    }
    lives
}

/// Takes out what has no value.
fn prune(nodes: &mut [Node], lives: &[bool]) {
    for node in nodes.iter_mut() {
        node.arrays.retain(|array| array.lives(lives));
        node.objects.retain(|object| object.lives(lives));
        for array in &mut node.arrays {
            if let Some(at) = array.prefix.iter().position(|id| !lives[id.0]) {
                array.prefix.truncate(at);
                array.max = Some(array.max.map_or(at, |max| max.min(at)));
            }
            match &array.items {
                Items::Each(id) if !lives[id.0] => array.items = Items::None,
                Items::Contains { good, bad, .. } if !lives[good.0] => {
                    array.items = Items::Each(*bad);
                }
                Items::Contains { good, bad, min, max } if !lives[bad.0] => {
                    // Every item is a good one.
                    array.min = array.min.max(*min);
                    array.max = array.max.into_iter().chain(*max).min();
                    array.items = Items::Each(*good);
                }
                _ => {}
            }
            if matches!(array.items, Items::None) {
                let n = array.prefix.len();
                array.max = Some(array.max.map_or(n, |max| max.min(n)));
            }
        }
        for object in &mut node.objects {
            object.properties.retain(|property| lives[property.node.0]);
            object.others.retain(|others| lives[others.node.0]);
            if object.others.is_empty()
                && object.max.is_some_and(|max| max >= object.properties.len())
            {
                object.max = None;
            }
        }
    }
}

impl Node {
    fn lives(&self, lives: &[bool]) -> bool {
        self.any
            || self.null
            || self.booleans != [false, false]
            || !self.numbers.is_empty()
            || !self.strings.is_empty()
            || self.arrays.iter().any(|array| array.lives(lives))
            || self.objects.iter().any(|object| object.lives(lives))
    }
}

impl Array {
    fn lives(&self, lives: &[bool]) -> bool {
        let prefix = self.prefix.iter().take(self.min).all(|id| lives[id.0]);
        let rest = self.min <= self.prefix.len();
        let least = self.max.is_none_or(|max| self.min <= max);
        prefix
            && least
            && match &self.items {
                Items::None => rest,
                Items::Each(id) => rest || lives[id.0],
                Items::Contains { good, bad, min, max } => {
                    (*min == 0 || lives[good.0])
                        && (self.max.is_none_or(|most| *min <= most))
                        && (self.min <= *min
                            || lives[bad.0]
                            || (lives[good.0] && max.is_none_or(|max| self.min <= max)))
                }
                Items::Distinct(values) => self.min <= values.len(),
            }
    }
}

impl Object {
    fn lives(&self, lives: &[bool]) -> bool {
        let optional = self.properties.iter().filter(|p| lives[p.node.0]).count();
        self.properties.iter().all(|property| !property.required || lives[property.node.0])
            && (self.min <= optional || self.others.iter().any(|others| lives[others.node.0]))
    }
}
