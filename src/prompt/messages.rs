//! Messages of a conversation, in the form that chat templates expect.
//!
//! **Invariant:** what is untrusted has its marks already, or gets them here.

use minijinja::Value;
use serde_json::Value as Json;

use super::{
    config::Example,
    dumps::Dumps,
    marks::Marks,
    probe::Abilities,
    value::{self, dict},
};

/// The call as the grammar has it: `{"name": "f", "arguments": {"a": 2}}`.
pub(crate) fn call_text(name: &str, arguments: &Value, marks: Marks) -> String {
    let call =
        dict([("name".to_owned(), Value::from(name)), ("arguments".to_owned(), arguments.clone())]);
    Dumps::plain(marks).text(&call).unwrap_or_default()
}

/// A request and its answer, as a call where the template writes calls as the grammar does.
pub(crate) fn example_messages(
    example: &Example,
    abilities: &Abilities,
    marks: Marks,
) -> [Value; 2] {
    let name = marks.wrap(&example.name);
    let arguments = value::data(&Json::Object(example.parameters.clone()), marks);
    let answer = if abilities.writes_calls {
        call_message(&name, arguments)
    } else {
        message(
            "assistant",
            &format!("{}{}", abilities.opener, call_text(&name, &arguments, marks)),
        )
    };
    [message("user", &marks.wrap(&example.prompt)), answer]
}

/// A message that is only text.
pub(crate) fn message(role: &str, content: &str) -> Value {
    dict([("role".to_owned(), Value::from(role)), ("content".to_owned(), Value::from(content))])
}

/// An assistant's message that is a call and nothing else.
pub(crate) fn call_message(name: &str, arguments: Value) -> Value {
    let function =
        dict([("name".to_owned(), Value::from(name)), ("arguments".to_owned(), arguments)]);
    let call =
        dict([("type".to_owned(), Value::from("function")), ("function".to_owned(), function)]);
    dict([
        ("role".to_owned(), Value::from("assistant")),
        ("content".to_owned(), Value::from("")),
        ("tool_calls".to_owned(), Value::from(vec![call])),
    ])
}
