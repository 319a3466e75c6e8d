//! Is a value one that a [`Schema`] describes? Texts of numbers are taken as they stand.

use serde_json::Value;

use super::{Array, Items, NodeId, Numbers, Object, Schema, Strings};

impl Schema {
    /// Whether a value may stand at a place.
    #[must_use]
    pub fn contains(&self, id: NodeId, value: &Value) -> bool {
        let node = self.node(id);
        node.any
            || match value {
                Value::Null => node.null,
                Value::Bool(value) => node.booleans[usize::from(*value)],
                Value::Number(number) => {
                    node.numbers.iter().any(|all| all.contains(number.as_str()))
                }
                Value::String(text) => node.strings.iter().any(|all| all.contains(text)),
                Value::Array(items) => node.arrays.iter().any(|all| self.is_array(all, items)),
                Value::Object(members) => {
                    node.objects.iter().any(|all| self.is_object(all, members))
                }
            }
    }

    /// Whether the items may stand in one kind of array.
    #[must_use]
    pub fn is_array(&self, array: &Array, items: &[Value]) -> bool {
        let n = items.len();
        let (first, rest) = items.split_at(n.min(array.prefix.len()));
        let each = |id: NodeId| rest.iter().all(|item| self.contains(id, item));
        array.min <= n
            && array.max.is_none_or(|max| n <= max)
            && first.iter().zip(&array.prefix).all(|(item, id)| self.contains(*id, item))
            && match &array.items {
                Items::None => rest.is_empty(),
                Items::Each(id) => each(*id),
                Items::Contains { good, bad, min, max } => {
                    let n_good = rest.iter().filter(|item| self.contains(*good, item)).count();
                    let others = rest.iter().filter(|item| !self.contains(*good, item));
                    *min <= n_good
                        && max.is_none_or(|max| n_good <= max)
                        && others.into_iter().all(|item| self.contains(*bad, item))
                }
                Items::Distinct(values) => rest.iter().enumerate().all(|(index, item)| {
                    values.contains(&item.to_string()) && !rest[..index].contains(item)
                }),
            }
    }

    /// Whether the members may stand in one kind of object, in whatever order.
    #[must_use]
    pub fn is_object(&self, object: &Object, members: &serde_json::Map<String, Value>) -> bool {
        let n = members.len();
        object.min <= n
            && object.max.is_none_or(|max| n <= max)
            && object.properties.iter().all(|p| !p.required || members.contains_key(&p.name))
            && members.iter().all(|(key, value)| {
                self.member(object, key).is_some_and(|id| self.contains(id, value))
            })
    }

    /// What the value under a key of one kind of object may be; `None` for a key that has none.
    #[must_use]
    pub fn member(&self, object: &Object, key: &str) -> Option<NodeId> {
        let named = object.properties.iter().find(|property| property.name == key);
        let other = || object.others.iter().find(|others| others.keys.contains(key));
        named.map(|property| property.node).or_else(|| other().map(|others| others.node))
    }
}

impl Numbers {
    fn contains(&self, text: &str) -> bool {
        match self {
            Self::Number => true,
            Self::Integer => !text.contains(['.', 'e', 'E']) && text != "-0",
            Self::Listed(texts) => texts.iter().any(|other| other == text),
            Self::Language(language) => language.accepts(text),
        }
    }
}

impl Strings {
    fn contains(&self, text: &str) -> bool {
        match self {
            Self::Length { min, max } => {
                let length = text.chars().count();
                *min <= length && max.is_none_or(|max| length <= max)
            }
            Self::Listed(texts) => texts.iter().any(|other| other == text),
            Self::Language(language) => language.accepts(text),
        }
    }
}
