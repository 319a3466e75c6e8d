//! Messages of a conversation, in the form that chat templates expect.
//!
//! **Invariant:** what is untrusted has its marks already, or gets them here.

use minijinja::Value;

use super::{dumps::Dumps, marks::Marks, value::dict};

/// The call as the grammar has it: `{"name": "f", "arguments": {"a": 2}}`.
pub(crate) fn call_text(name: &str, arguments: &Value, marks: Marks) -> String {
    let call =
        dict([("name".to_owned(), Value::from(name)), ("arguments".to_owned(), arguments.clone())]);
    Dumps::plain(marks).text(&call).unwrap_or_default()
}

/// A message that is only text.
pub(crate) fn message(role: &str, content: &str) -> Value {
    dict([("role".to_owned(), Value::from(role)), ("content".to_owned(), Value::from(content))])
}

/// An assistant's message that is calls and nothing else.
pub(crate) fn call_message(calls: Vec<(String, Value)>) -> Value {
    let call = |(name, arguments): (String, Value)| {
        let function =
            dict([("name".to_owned(), Value::from(name)), ("arguments".to_owned(), arguments)]);
        dict([("type".to_owned(), Value::from("function")), ("function".to_owned(), function)])
    };
    let calls: Vec<Value> = calls.into_iter().map(call).collect();
    dict([
        ("role".to_owned(), Value::from("assistant")),
        ("content".to_owned(), Value::from("")),
        ("tool_calls".to_owned(), Value::from(calls)),
    ])
}
