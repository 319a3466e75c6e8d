//! A chat template -> what it can do, found out by rendering small conversations with it.
//!
//! **Invariant:** nothing is read from the template's text; only what it prints counts.

use minijinja::Value;
use serde_json::{Map, Value as Json, json};

use super::{
    CallOpener, PromptError, Source, ToolsFrom,
    marks::Marks,
    messages::{call_message, call_text, message},
    template::Template,
    value::{self, dict},
};

const NAME: &str = "callme_probe";
const REQUEST: &str = "a request of the probe";
const SYSTEM: &str = "a system text of the probe";

/// What a chat template can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// It tells the model about `tools`, and nothing speaks against leaving that to it.
    pub(crate) lists_tools: bool,
    /// It takes a message of the role `system`.
    pub(crate) knows_system: bool,
    /// It writes a message with `tool_calls` exactly as the grammar has calls, behind
    /// [`Self::opener`].
    pub(crate) writes_calls: bool,
    /// What stands between the assistant's header and the call.
    pub(crate) opener: String,
    /// What stands between two calls; empty where the template does not write several.
    pub(crate) between: String,
    /// What stands behind the last call.
    pub(crate) closer: String,
}

/// What is between calls that are told as text.
const BETWEEN: &str = "\n";

impl Abilities {
    /// The messages of a request and the calls that answer it: calls where the template writes them as the
    /// grammar has them, else their text.
    pub(crate) fn example(
        &self,
        prompt: &str,
        calls: &[(String, &Map<String, Json>)],
        marks: Marks,
    ) -> [Value; 2] {
        let calls = calls.iter().map(|(name, parameters)| {
            let arguments = value::data(&Json::Object((*parameters).clone()), marks);
            (marks.wrap(name), arguments)
        });
        let answer = if self.writes_calls {
            call_message(calls.collect())
        } else {
            let calls = calls.map(|(name, arguments)| call_text(&name, &arguments, marks));
            let calls: Vec<String> = calls.collect();
            message("assistant", &format!("{}{}", self.opener, calls.join(&self.between)))
        };
        [message("user", &marks.wrap(prompt)), answer]
    }

    /// Finds out. `chat` is the compiled template of `source`.
    pub(crate) fn find(chat: &Template, source: &Source) -> Result<Self, PromptError> {
        let render =
            |messages: Vec<Value>, tools: Option<Vec<Value>>, add_generation_prompt: bool| {
                chat.render(&source.context(messages, tools, add_generation_prompt))
            };
        let user = || message("user", REQUEST);
        // Only this conversation must work.
        let bare = source.name.render(chat, &source.context(vec![user()], None, true))?;

        let system = render(vec![message("system", SYSTEM), user()], None, true);
        let knows_system = system.is_ok_and(|text| text.contains(SYSTEM) && text.contains(REQUEST));

        let with_tools = render(vec![user()], Some(vec![tool()]), true);
        let told = with_tools.as_ref().is_ok_and(|text| *text != bare && text.contains(NAME));

        let tools = || told.then(|| vec![tool()]);
        let call = call_text(NAME, &arguments(), Marks::NONE);
        let calling = || call_message(vec![(NAME.to_owned(), arguments())]);
        let answered = render(vec![user(), calling()], tools(), false).ok();
        // In the middle of a conversation too, as examples are, and with no answer of the tool between.
        let goes_on = render(vec![user(), calling(), user()], tools(), true)
            .is_ok_and(|text| text.contains(&call));
        let header = if told { with_tools.unwrap_or_default() } else { bare };
        let found = answered.filter(|_| goes_on).and_then(|answered| {
            let before = &answered[..answered.rfind(&call)?];
            Some(opener(&header, before).to_owned())
        });

        let lists_tools = match source.config.tools {
            ToolsFrom::Auto => told && found.is_some(),
            ToolsFrom::Template => true,
            ToolsFrom::Text => false,
        };
        let (writes_calls, opener) = match (&source.config.call_opener, found) {
            (CallOpener::Auto, Some(opener)) => (true, opener),
            (CallOpener::Auto, None) => (false, String::new()),
            (CallOpener::Text(text), found) => (found.as_ref() == Some(text), text.clone()),
        };
        let (between, closer) = if writes_calls {
            let twice = vec![(NAME.to_owned(), arguments()), (NAME.to_owned(), arguments())];
            let text = render(vec![user(), call_message(twice)], tools(), false).ok();
            text.and_then(|text| around(&text, &call)).unwrap_or_default()
        } else {
            let answer = message("assistant", &format!("{opener}{call}"));
            let text = render(vec![user(), answer], None, false).unwrap_or_default();
            let closer = text.rfind(&call).map(|at| text[at + call.len()..].to_owned());
            (BETWEEN.to_owned(), closer.unwrap_or_default())
        };
        // A turn that nothing closes is closed by the end of the text.
        let closer =
            if between.starts_with(&closer) { format!("{closer}{}", source.eos) } else { closer };
        Ok(Self { lists_tools, knows_system, writes_calls, opener, between, closer })
    }
}

/// What `answered` has beyond the header of the assistant's turn, which ends `prompted`.
///
/// Compared by whole lines, because a prompt that ends with an empty `<think>` block and a call
/// that begins with `<tool_call>` share their first character by chance.
fn opener<'a>(prompted: &str, answered: &'a str) -> &'a str {
    let lines = prompted.split_inclusive('\n').zip(answered.split_inclusive('\n'));
    let common: usize = lines.take_while(|(a, b)| a == b).map(|(a, _)| a.len()).sum();
    let rest = &answered[common..];
    rest.strip_prefix(&prompted[common..]).unwrap_or(rest)
}

/// What stands between the last two calls, and behind the last.
fn around(text: &str, call: &str) -> Option<(String, String)> {
    let mut places = text.rmatch_indices(call).map(|(at, _)| at);
    let (last, first) = (places.next()?, places.next()?);
    let between = text[first + call.len()..last].to_owned();
    Some((between, text[last + call.len()..].to_owned()))
}

fn arguments() -> Value {
    dict([
        ("text".to_owned(), Value::from("a value of the probe")),
        ("count".to_owned(), Value::from(2)),
    ])
}

/// A function to show to a template.
pub(crate) fn tool() -> Value {
    let tool = json!({"type": "function", "function": {
        "name": NAME,
        "description": "A function of the probe.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["text", "count"],
        },
    }});
    value::tool(&tool, Marks::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opener_is_what_the_prompt_does_not_have() {
        for (prompted, answered, expected) in [
            ("<u>hi\n<a>\n", "<u>hi\n<a>\n<tool_call>\n", "<tool_call>\n"),
            ("<u>hi\n<a>\n", "<u>hi\n<a>\n", ""),
            ("<u>hi\n<a>\n<think>\n\n</think>\n\n", "<u>hi\n<a>\n<tool_call>\n", "<tool_call>\n"),
            (
                "<u>hi\n<a>\n<think>\n\n</think>\n\n",
                "<u>hi\n<a>\n<think>\n\n</think>\n\n<tool_call>\n",
                "<tool_call>\n",
            ),
            ("[INST] hi [/INST]", "[INST] hi [/INST][CALLS] [", "[CALLS] ["),
        ] {
            assert_eq!(opener(prompted, answered), expected);
        }
    }
}
