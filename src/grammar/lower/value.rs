//! The nodes of a [`Schema`] as expressions: one rule for a place that several lead to, or that leads
//! to itself.

use rustc_hash::FxHashMap;

use serde_json::Value;

use super::automaton::{Written, automaton};
use super::keys::{all_but, are_plain};
use super::lexical::{Lexical, json_text};
use super::terminal::{plain_terminal, string_terminal};
use super::{Lower, prefix};
use crate::grammar::check::{most_times, n_rules};
use crate::grammar::{Expr, Repeat, Rule, RuleName};
use crate::regular::Dfa;
use crate::schema::{
    Array, Items, Keys, Node, NodeId, Numbers, Object, Schema, SchemaError, SchemaProblem, Strings,
};

/// Most rules that one array or object is written out to.
const MAX_STATES: usize = 10_000;

/// An expression for a function's arguments, in which each argument's value is a rule of its own.
pub(super) fn arguments(
    lower: &mut Lower,
    schema: &Schema,
    name: &RuleName,
) -> Result<Expr, SchemaError> {
    let mut values = Values {
        at: Schema::ROOT,
        n_uses: n_uses(schema),
        rules: FxHashMap::default(),
        keys: FxHashMap::default(),
        schema,
        lower,
    };
    let root = schema.node(Schema::ROOT);
    match root.objects.as_slice() {
        [object] if is_object_alone(root) && object.min == 0 && object.max.is_none() => {
            values.object(object, name, true)
        }
        // Which argument the text is in is not known here, so the whole is what a limit cuts.
        _ => values.argument(Schema::ROOT, name, "arguments"),
    }
}

fn is_object_alone(node: &Node) -> bool {
    !node.any
        && !node.null
        && node.booleans == [false, false]
        && node.numbers.is_empty()
        && node.strings.is_empty()
        && node.arrays.is_empty()
}

/// How often each node is used, by the nodes that the root leads to and by the root's place itself.
fn n_uses(schema: &Schema) -> Vec<usize> {
    let mut n_uses = vec![0_usize; schema.len()];
    let mut open = vec![Schema::ROOT];
    while let Some(id) = open.pop() {
        n_uses[id.0] += 1;
        if n_uses[id.0] > 1 {
            continue;
        }
        let node = schema.node(id);
        for array in &node.arrays {
            open.extend(&array.prefix);
            match array.items {
                Items::Each(id) => open.push(id),
                Items::Contains { good, bad, .. } => open.extend([good, bad]),
                Items::None | Items::Distinct(_) => {}
            }
        }
        for object in &node.objects {
            open.extend(object.properties.iter().map(|property| property.node));
            open.extend(object.others.iter().map(|others| others.node));
        }
    }
    n_uses
}

struct Values<'l, 's> {
    lower: &'l mut Lower,
    schema: &'s Schema,
    /// The node at hand.
    at: NodeId,
    n_uses: Vec<usize>,
    /// The rules of nodes that have one.
    rules: FxHashMap<NodeId, RuleName>,
    /// The rules of the keys of members that are not named.
    keys: FxHashMap<Keys, RuleName>,
}

impl<'s> Values<'_, 's> {
    fn too_large(&self) -> SchemaError {
        let pointer = self.schema.node(self.at).pointer.clone();
        let keyword = pointer.rsplit('/').next().unwrap_or_default().to_owned();
        SchemaError { keyword, pointer, reason: SchemaProblem::TooLarge }
    }

    /// The rule of one argument's value.
    fn argument(&mut self, id: NodeId, parent: &RuleName, key: &str) -> Result<Expr, SchemaError> {
        let name = self.lower.names.fresh(&[parent.as_str(), key], "argument");
        let at = self.lower.reserve(&name);
        let expr = if self.n_uses[id.0] > 1 && !is_short(self.schema.node(id)) {
            self.value(id, &name, "value")?
        } else {
            self.alternatives(id, &name)?
        };
        self.lower.rules[at].expr = expr;
        self.lower.rules[at].argument = true;
        Ok(Expr::Rule(name))
    }

    /// A value inside another: the name of a rule, which it gets where it is more than one.
    fn value(&mut self, id: NodeId, parent: &RuleName, key: &str) -> Result<Expr, SchemaError> {
        if is_short(self.schema.node(id)) {
            return self.alternatives(id, parent);
        }
        if let Some(name) = self.rules.get(&id) {
            return Ok(Expr::Rule(name.clone()));
        }
        let name = self.lower.names.fresh(&[parent.as_str(), key], "value");
        self.rules.insert(id, name.clone());
        let at = self.lower.reserve(&name);
        self.lower.rules[at].expr = self.alternatives(id, &name)?;
        Ok(Expr::Rule(name))
    }

    fn alternatives(&mut self, id: NodeId, name: &RuleName) -> Result<Expr, SchemaError> {
        let outer = std::mem::replace(&mut self.at, id);
        let expr = self.alternatives_here(id, name)?;
        self.at = outer;
        Ok(expr)
    }

    fn alternatives_here(&mut self, id: NodeId, name: &RuleName) -> Result<Expr, SchemaError> {
        let node: &'s Node = self.schema.node(id);
        if node.any {
            return Ok(self.lower.lexical(Lexical::Value));
        }
        let mut all = Vec::new();
        for strings in &node.strings {
            all.push(self.string(strings, name)?);
        }
        for numbers in &node.numbers {
            all.push(self.number(numbers, name)?);
        }
        match node.booleans {
            [true, true] => all.push(self.lower.lexical(Lexical::Boolean)),
            [false, true] => all.push(Expr::literal("true")),
            [true, false] => all.push(Expr::literal("false")),
            [false, false] => {}
        }
        for array in &node.arrays {
            all.push(self.array(array, name)?);
        }
        for object in &node.objects {
            all.push(self.object(object, name, false)?);
        }
        if node.null {
            all.push(self.lower.lexical(Lexical::Null));
        }
        let mut whole: Vec<Expr> = Vec::new();
        for one in all {
            // Listed values bring their own alternatives.
            match one {
                Expr::Choice(parts) => whole.extend(parts),
                one => whole.push(one),
            }
        }
        Ok(prefix::one_of(whole))
    }

    fn string(&mut self, strings: &Strings, name: &RuleName) -> Result<Expr, SchemaError> {
        Ok(match strings {
            Strings::Length { min: 0, max: None } => self.lower.lexical(Lexical::String),
            Strings::Length { min, max } => {
                let char = self.lower.lexical(Lexical::Char);
                let body = self.times(char, *min, *max, name)?;
                quoted(body)
            }
            Strings::Listed(texts) => {
                let texts = texts.iter().map(|text| (json_text(&Value::from(text.as_str())), None));
                let Lower { names, rules, .. } = self.lower;
                prefix::factored(texts.collect(), name, names, rules)
            }
            Strings::Language(language) => quoted(self.language(language, name)),
        })
    }

    /// The inside of a JSON string; `None` where it is always empty.
    fn language(&mut self, language: &Dfa, name: &RuleName) -> Option<Expr> {
        let Lower { names, rules, lexical, .. } = self.lower;
        lexical.extend([Lexical::Char, Lexical::Escaped]);
        match automaton(language, name, names, rules, &string_terminal) {
            Written::Expr(expr) => Some(expr),
            // Nodes without a text are taken out before.
            Written::Nothing | Written::Empty => None,
        }
    }

    fn number(&mut self, numbers: &Numbers, name: &RuleName) -> Result<Expr, SchemaError> {
        Ok(match numbers {
            Numbers::Number => self.lower.lexical(Lexical::Number),
            Numbers::Integer => self.lower.lexical(Lexical::Integer),
            Numbers::Listed(texts) => {
                let texts = texts.iter().map(|text| (text.clone(), None)).collect();
                let Lower { names, rules, .. } = self.lower;
                prefix::factored(texts, name, names, rules)
            }
            Numbers::Language(language) => {
                let Lower { names, rules, .. } = self.lower;
                match automaton(language, name, names, rules, &plain_terminal) {
                    Written::Expr(expr) => expr,
                    // No number has an empty text.
                    Written::Nothing | Written::Empty => return Err(self.too_large()),
                }
            }
        })
    }

    fn array(&mut self, array: &Array, name: &RuleName) -> Result<Expr, SchemaError> {
        let bracketed = |inside: Option<Expr>| match inside {
            None => Expr::literal("[]"),
            Some(inside) => Expr::literal("[").then(inside).then(Expr::literal("]")),
        };
        let inside = match &array.items {
            Items::Contains { good, bad, min, max } => {
                let good = self.value(*good, name, "item")?;
                let bad = self.value(*bad, name, "other")?;
                self.contains(array, (good, bad), (*min, *max), name)?
            }
            Items::Distinct(values) => self.distinct(array, values, name),
            Items::Each(id)
                if self.schema.node(*id).any
                    && array.prefix.is_empty()
                    && array.min == 0
                    && array.max.is_none() =>
            {
                return Ok(self.lower.lexical(Lexical::Array));
            }
            _ => self.items(array, name)?,
        };
        Ok(bracketed(inside))
    }

    /// The items of an array that are told apart by their place only.
    fn items(&mut self, array: &Array, name: &RuleName) -> Result<Option<Expr>, SchemaError> {
        let n = array.prefix.len();
        let comma = || Expr::literal(", ");
        let mut tail = match array.items {
            Items::Each(id) if array.max.is_none_or(|max| max > n) => {
                let item = self.value(id, name, "item")?;
                let (min, max) = (array.min.saturating_sub(n), array.max.map(|max| max - n));
                if n > 0 {
                    self.times(comma().then(item), min, max, name)?
                } else {
                    let more = comma().then(item.clone());
                    let (at_least, at_most) = (min.saturating_sub(1), max.map(|max| max - 1));
                    let more = self.times(more, at_least, at_most, name)?;
                    let some = match more {
                        None => item,
                        Some(more) => item.then(more),
                    };
                    Some(if min == 0 { some.optional() } else { some })
                }
            }
            _ => None,
        };
        let most = array.max.unwrap_or(n);
        for (index, id) in array.prefix.iter().enumerate().rev() {
            if index >= most {
                continue;
            }
            let key = format!("item {}", index + 1);
            let mut item = self.value(*id, name, &key)?;
            if index > 0 {
                item = comma().then(item);
            }
            let whole = match tail {
                None => item,
                Some(tail) => item.then(tail),
            };
            tail = Some(if index >= array.min { whole.optional() } else { whole });
        }
        Ok(tail)
    }

    /// Items of which some count: a rule for each number of items and of those that count.
    fn contains(
        &mut self,
        array: &Array,
        (good, bad): (Expr, Expr),
        (min, max): (usize, Option<usize>),
        name: &RuleName,
    ) -> Result<Option<Expr>, SchemaError> {
        let most_good = max.map_or(min, |max| max.max(min));
        // Beyond these, one more makes no difference.
        let most = array.max.unwrap_or_else(|| array.min.max(1));
        let n_states = most_good.saturating_add(1).saturating_mul(most.saturating_add(1));
        if n_states > MAX_STATES {
            return Err(self.too_large());
        }
        let mut states = States::new();
        let start = states.id((0, 0));
        let mut done = 0;
        while let Some(&(n_good, n)) = states.list.get(done) {
            let mut ways = Vec::new();
            if array.max.is_none_or(|max| n < max) {
                let next = (n + 1).min(most);
                if max.is_none_or(|max| n_good < max) {
                    ways.push((good.clone(), states.id(((n_good + 1).min(most_good), next))));
                }
                ways.push((bad.clone(), states.id((n_good, next))));
            }
            let ends = n_good >= min && n >= array.min;
            states.rows.push(Row { ways, comma: n > 0, ends });
            done += 1;
        }
        Ok(self.rows(&states.rows, start, name))
    }

    /// Items of which no two are the same: a rule for each set of those that are used.
    fn distinct(&mut self, array: &Array, values: &[String], name: &RuleName) -> Option<Expr> {
        let mut states = States::new();
        let start = states.id(0_u32);
        let mut done = 0;
        while let Some(&used) = states.list.get(done) {
            let n = used.count_ones() as usize;
            let mut ways = Vec::new();
            if array.max.is_none_or(|max| n < max) {
                for (bit, value) in values.iter().enumerate() {
                    if used >> bit & 1 == 0 {
                        ways.push((Expr::literal(value.as_str()), states.id(used | 1 << bit)));
                    }
                }
            }
            states.rows.push(Row { ways, comma: n > 0, ends: n >= array.min });
            done += 1;
        }
        self.rows(&states.rows, start, name)
    }

    /// The rules of a table of states that each read one item; `None` for nothing at all.
    fn rows(&mut self, rows: &[Row], start: usize, name: &RuleName) -> Option<Expr> {
        // Only a state that leads to an end is of use.
        let mut useful: Vec<bool> = rows.iter().map(|row| row.ends).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for (index, row) in rows.iter().enumerate() {
                if !useful[index] && row.ways.iter().any(|(_, to)| useful[*to]) {
                    useful[index] = true;
                    changed = true;
                }
            }
        }
        // A state that nothing can follow needs no rule.
        let goes_on = |row: &Row| row.ways.iter().any(|(_, to)| useful[*to]);
        let names: Vec<Option<RuleName>> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| {
                let needed = index != start && useful[index] && goes_on(row);
                needed.then(|| self.lower.names.fresh(&[name.as_str(), "more"], "more"))
            })
            .collect();
        let mut first = None;
        for (index, row) in rows.iter().enumerate() {
            if !useful[index] || !goes_on(row) {
                continue;
            }
            let mut productions = Vec::new();
            for (item, to) in row.ways.iter().filter(|(_, to)| useful[*to]) {
                let item =
                    if row.comma { Expr::literal(", ").then(item.clone()) } else { item.clone() };
                productions.push(match &names[*to] {
                    Some(name) => item.then(Expr::Rule(name.clone())),
                    None => item,
                });
            }
            let whole = prefix::one_of(productions);
            let whole = if row.ends { whole.optional() } else { whole };
            match &names[index] {
                Some(name) => self.lower.rules.push(Rule::new(name.clone(), whole)),
                None => first = Some(whole),
            }
        }
        first
    }

    /// An object: its properties in order, of which the optional ones may be missing, then others.
    ///
    /// Where some property is required, those before the first required one bring their comma
    /// behind them and those after it in front. Where none is, each may be the first, and a rule
    /// for what may follow it keeps the size linear.
    fn object(
        &mut self,
        object: &Object,
        name: &RuleName,
        arguments: bool,
    ) -> Result<Expr, SchemaError> {
        let open = object.properties.is_empty() && object.min == 0 && object.max.is_none();
        if let ([others], true, false) = (object.others.as_slice(), open, arguments) {
            if is_any_key(&others.keys) && self.schema.node(others.node).any {
                return Ok(self.lower.lexical(Lexical::Object));
            }
        }
        let mut members = Vec::new();
        for property in &object.properties {
            let value = if arguments {
                self.argument(property.node, name, &property.name)?
            } else {
                self.value(property.node, name, &property.name)?
            };
            let key = json_text(&Value::from(property.name.as_str()));
            members.push(Expr::literal(format!("{key}: ")).then(value));
        }
        let other = self.others(object, name, arguments)?;
        let inside = if object.min > 0 || object.max.is_some() {
            self.counted(object, members, other.as_ref(), name)?
        } else {
            self.members(object, members, other, name)
        };
        Ok(match inside {
            None => Expr::literal("{}"),
            Some(inside) => Expr::literal("{").then(inside).then(Expr::literal("}")),
        })
    }

    /// One member that is not named.
    fn others(
        &mut self,
        object: &Object,
        name: &RuleName,
        arguments: bool,
    ) -> Result<Option<Expr>, SchemaError> {
        let mut all = Vec::new();
        for others in &object.others {
            let key = if is_any_key(&others.keys) {
                self.lower.lexical(Lexical::String)
            } else {
                self.key(&others.keys, name)
            };
            let value = if arguments {
                self.argument(others.node, name, "other")?
            } else {
                self.value(others.node, name, "other")?
            };
            all.push(key.then(Expr::literal(": ")).then(value));
        }
        if all.len() > 1 {
            let rule = self.lower.names.fresh(&[name.as_str(), "member"], "member");
            self.lower.rules.push(Rule::new(rule.clone(), Expr::Choice(all)));
            return Ok(Some(Expr::Rule(rule)));
        }
        Ok(all.pop())
    }

    /// The keys that are not named; the alternatives of an object mostly leave out the same ones.
    fn key(&mut self, keys: &Keys, name: &RuleName) -> Expr {
        if let Some(rule) = self.keys.get(keys) {
            return Expr::Rule(rule.clone());
        }
        let rule = self.lower.names.fresh(&[name.as_str(), "key"], "key");
        self.keys.insert(keys.clone(), rule.clone());
        let at = self.lower.reserve(&rule);
        let inside = match keys {
            Keys::AllBut(names) if are_plain(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Some(all_but(self.lower, &names, &rule))
            }
            keys => self.language(&keys.language(), &rule),
        };
        self.lower.rules[at].expr = quoted(inside);
        Expr::Rule(rule)
    }

    fn members(
        &mut self,
        object: &Object,
        members: Vec<Expr>,
        other: Option<Expr>,
        name: &RuleName,
    ) -> Option<Expr> {
        let comma = || Expr::literal(", ");
        let more = other.clone().map(|other| comma().then(other).any_times());
        let Some(first) = object.properties.iter().position(|property| property.required) else {
            return self.optional_members(object, members, (other, more), name);
        };
        let mut whole: Option<Expr> = None;
        let mut add = |part: Expr| {
            whole = Some(match whole.take() {
                None => part,
                Some(whole) => whole.then(part),
            });
        };
        for (index, (property, member)) in object.properties.iter().zip(members).enumerate() {
            add(match index.cmp(&first) {
                std::cmp::Ordering::Less => member.then(comma()).optional(),
                std::cmp::Ordering::Equal => member,
                std::cmp::Ordering::Greater if property.required => comma().then(member),
                std::cmp::Ordering::Greater => comma().then(member).optional(),
            });
        }
        if let Some(more) = more {
            add(more);
        }
        whole
    }

    fn optional_members(
        &mut self,
        object: &Object,
        members: Vec<Expr>,
        (other, more): (Option<Expr>, Option<Expr>),
        name: &RuleName,
    ) -> Option<Expr> {
        let followed = |first: Expr, after: &Option<Expr>| match after {
            None => first,
            Some(after) => first.then(after.clone()),
        };
        // From the last to the first: `after` is what may follow the member at hand.
        let mut after = more.clone();
        let mut starts = Vec::new();
        starts.extend(other.map(|other| followed(other, &more)));
        let mut rules = Vec::new();
        for (index, member) in members.into_iter().enumerate().rev() {
            starts.push(followed(member.clone(), &after));
            let rest = followed(Expr::literal(", ").then(member).optional(), &after);
            after = index.checked_sub(1).map(|before| {
                let key = format!("after {}", object.properties[before].name);
                let rule = Rule::new(self.lower.names.fresh(&[name.as_str(), &key], "after"), rest);
                let reference = Expr::Rule(rule.name.clone());
                rules.push(rule);
                reference
            });
        }
        self.lower.rules.extend(rules.into_iter().rev());
        starts.reverse();
        (!starts.is_empty()).then(|| prefix::one_of(starts).optional())
    }

    /// The members of an object whose number is bounded: a rule for each place and number so far.
    fn counted(
        &mut self,
        object: &Object,
        members: Vec<Expr>,
        other: Option<&Expr>,
        name: &RuleName,
    ) -> Result<Option<Expr>, SchemaError> {
        let n = members.len();
        // Without a maximum, one more than the minimum makes no difference.
        let most = object.max.unwrap_or_else(|| object.min.max(1));
        if n.saturating_add(1).saturating_mul(most.saturating_add(1)) > MAX_STATES {
            return Err(self.too_large());
        }
        // What may follow, by the number so far, from the last place to the first; `None` where the
        // number cannot be brought within the bounds, `Some(None)` for nothing.
        let mut after: Vec<Option<Option<Expr>>> = Vec::new();
        for count in 0..=most {
            let least = object.min.saturating_sub(count);
            let room = object.max.map(|max| max - count);
            after.push(match other {
                None => (least == 0).then_some(None),
                Some(_) if room == Some(0) => (least == 0).then_some(None),
                Some(other) if count > 0 => {
                    let more = Expr::literal(", ").then(other.clone());
                    Some(self.times(more, least, room, name)?)
                }
                Some(other) => {
                    let more = Expr::literal(", ").then(other.clone());
                    let room = room.map(|room| room - 1);
                    let more = self.times(more, least.saturating_sub(1), room, name)?;
                    let some = match more {
                        None => other.clone(),
                        Some(more) => other.clone().then(more),
                    };
                    Some(Some(if least == 0 { some.optional() } else { some }))
                }
            });
        }
        for (index, (property, member)) in object.properties.iter().zip(members).enumerate().rev() {
            let mut before = Vec::new();
            // No more members than places so far.
            for count in 0..=most.min(index) {
                let counted = (count + 1).min(most);
                let full = object.max.is_some_and(|max| count >= max);
                let taken = after[counted].clone().filter(|_| !full).map(|rest| {
                    let member = if count > 0 {
                        Expr::literal(", ").then(member.clone())
                    } else {
                        member.clone()
                    };
                    match rest {
                        None => member,
                        Some(rest) => member.then(rest),
                    }
                });
                let left = after[count].clone().filter(|_| !property.required);
                let whole = match (taken, left) {
                    (None, left) => left,
                    (Some(taken), None) => Some(Some(taken)),
                    (Some(taken), Some(None)) => Some(Some(taken.optional())),
                    (Some(taken), Some(Some(left))) => Some(Some(taken.or(left))),
                };
                // Each is used twice, by the places before; a rule keeps the size linear.
                before.push(match whole {
                    Some(Some(whole)) if index > 0 && !matches!(whole, Expr::Rule(_)) => {
                        let key = format!("from {}", property.name);
                        let rule = self.lower.names.fresh(&[name.as_str(), &key], "from");
                        self.lower.rules.push(Rule::new(rule.clone(), whole));
                        Some(Some(Expr::Rule(rule)))
                    }
                    whole => whole,
                });
            }
            after = before;
        }
        Ok(after.swap_remove(0).flatten())
    }

    /// Something several times; `None` for never.
    ///
    /// llama.cpp counts to [`Repeat::LIMIT`] only, so a longer repetition is one of blocks: as many whole
    /// blocks as fit, then a rest that is shorter than one. A number of times has one reading.
    fn times(
        &mut self,
        item: Expr,
        min: usize,
        max: Option<usize>,
        name: &RuleName,
    ) -> Result<Option<Expr>, SchemaError> {
        if max == Some(0) {
            return Ok(None);
        }
        let limit = most_times(n_rules(&item));
        if max.unwrap_or(min).max(min) <= limit {
            let bound = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let repeat = Repeat::new(bound(min), max.map(bound)).map_err(|_| self.too_large())?;
            let once = repeat.min() == 1 && repeat.max() == Some(1);
            if once {
                return Ok(Some(item));
            }
            let many = Expr::Repeat(Box::new(item), repeat);
            // llama.cpp counts a group's repetitions against a repetition of the group.
            let n_made = repeat.max().map_or(1, |max| max - repeat.min());
            return Ok(Some(if n_made > FEW_TIMES { self.rule(many, name, "some") } else { many }));
        }
        if limit < 2 {
            return Err(self.too_large());
        }
        let item = if matches!(item, Expr::Rule(_)) { item } else { self.rule(item, name, "one") };
        let block = |values: &mut Self, n: usize| -> Result<Expr, SchemaError> {
            let block = values.times(item.clone(), n, Some(n), name)?;
            Ok(match block {
                Some(block) => values.rule(block, name, "block"),
                None => return Err(values.too_large()),
            })
        };
        let size = BLOCK.min(limit);
        let whole = block(self, size)?;
        // First those that must be, in whole blocks and a rest, then those that may be.
        let (blocks, rest) = (min / size, min % size);
        let mut parts = Vec::new();
        parts.extend(self.times(whole.clone(), blocks, Some(blocks), name)?);
        parts.extend(self.times(item.clone(), rest, Some(rest), name)?);
        match max {
            None => parts.push(item.any_times()),
            Some(max) => {
                let (blocks, rest) = ((max - min) / size, (max - min) % size);
                if blocks == 0 {
                    parts.extend(self.times(item, 0, Some(rest), name)?);
                } else {
                    // Fewer blocks and any rest, or all blocks and the last rest.
                    let any_rest = self.times(item.clone(), 0, Some(size - 1), name)?;
                    let last_rest = self.times(item, 0, Some(rest), name)?;
                    let fewer = self.times(whole.clone(), 0, Some(blocks - 1), name)?;
                    let fewer = joined(fewer.into_iter().chain(any_rest));
                    let all = self.times(whole, blocks, Some(blocks), name)?;
                    let all = joined(all.into_iter().chain(last_rest));
                    parts.extend(match (fewer, all) {
                        (Some(fewer), Some(all)) => Some(fewer.or(all)),
                        (fewer, all) => fewer.or(all),
                    });
                }
            }
        }
        Ok(joined(parts))
    }

    fn rule(&mut self, expr: Expr, name: &RuleName, key: &str) -> Expr {
        let rule = self.lower.names.fresh(&[name.as_str(), key], key);
        self.lower.rules.push(Rule::new(rule.clone(), expr));
        Expr::Rule(rule)
    }
}

fn is_any_key(keys: &Keys) -> bool {
    matches!(keys, Keys::AllBut(names) if names.is_empty())
}

/// A repetition that varies by more than this is a rule of its own.
const FEW_TIMES: u32 = 100;

/// How many times a block repeats.
const BLOCK: usize = 1_000;

fn joined(parts: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    parts.into_iter().reduce(Expr::then)
}

/// A JSON string with this inside.
fn quoted(inside: Option<Expr>) -> Expr {
    match inside {
        None => Expr::literal("\"\""),
        Some(inside) => Expr::literal("\"").then(inside).then(Expr::literal("\"")),
    }
}

/// Whether the expression of a node is no longer than the name of a rule.
fn is_short(node: &Node) -> bool {
    if node.any {
        return true;
    }
    let strings = match node.strings.as_slice() {
        [] => 0,
        [Strings::Length { min: 0, max: None }] => 1,
        [Strings::Listed(texts)] if texts.len() == 1 => 1,
        _ => return false,
    };
    let numbers = match node.numbers.as_slice() {
        [] => 0,
        [Numbers::Number | Numbers::Integer] => 1,
        [Numbers::Listed(texts)] if texts.len() == 1 => 1,
        _ => return false,
    };
    let booleans = usize::from(node.booleans != [false, false]);
    let rest = usize::from(node.null) + node.arrays.len() + node.objects.len();
    let open = node.arrays.is_empty() && node.objects.is_empty();
    strings + numbers + booleans + rest == 1 && open
}

/// States numbered as they are met.
struct States<S> {
    list: Vec<S>,
    known: FxHashMap<S, usize>,
    rows: Vec<Row>,
}

struct Row {
    /// What is read, and the state that it leads to.
    ways: Vec<(Expr, usize)>,
    /// Whether a comma stands in front.
    comma: bool,
    /// Whether the array may end here.
    ends: bool,
}

impl<S: Copy + Eq + std::hash::Hash> States<S> {
    fn new() -> Self {
        Self { list: Vec::new(), known: FxHashMap::default(), rows: Vec::new() }
    }

    fn id(&mut self, state: S) -> usize {
        *self.known.entry(state).or_insert_with(|| {
            self.list.push(state);
            self.list.len() - 1
        })
    }
}
