//! The prompts configuration: `config/prompts.json` -> [`PromptsConfig`].
//!
//! A file need not say everything: what it leaves out is as in the built-in configuration, which is
//! the shipped `config/prompts.json` itself.
//!
//! **Invariant:** the built-in configuration has one source, the shipped file.
//! **Invariant:** a file that is not understood to the last key is refused, with the place and the
//! way out.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jsonschema::error::ValidationErrorKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The text of the shipped configuration.
const BUILTIN: &str = include_str!("../../config/prompts.json");

/// How requests are put to the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptsConfig {
    /// A name from the catalogue or a path to a GGUF; `auto` is the first of the catalogue's order
    /// that is present.
    pub model: String,
    /// The system text; empty for none of our own.
    pub system: String,
    /// Few-shot examples, shown before the request in this order.
    pub examples: Vec<Example>,
    /// A Jinja chat template to use in place of the model's own.
    pub template: Option<String>,
    /// Who tells the model about the functions.
    pub tools: ToolsFrom,
    /// A Jinja text with the variable `tools`, for a template that does not list them.
    pub tools_text: String,
    /// What stands between the assistant's header and the call.
    pub call_opener: CallOpener,
    /// How many calls answer a request.
    pub calls: CallCount,
    /// What is different where several calls may answer a request.
    pub many: Many,
    /// Whether, and how, the model may answer that no function fits.
    pub no_call: NoCall,
    /// By what the function of a call is chosen.
    pub function_choice: FunctionChoice,
    /// Which optional arguments of a call are kept.
    pub optional_arguments: OptionalArguments,
    /// Where a text that goes on and on is cut.
    pub limits: Limits,
}

/// By what the function of a call is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FunctionChoice {
    /// By the likeliest token of its name each time.
    ByToken,
    /// By the likeliest whole name: where what a name could have gone on with is likelier than the name that was
    /// written, that is written too. Not with a temperature, nor with recurrent models and sliding windows.
    ByName,
}

/// Which optional arguments of a call are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionalArguments {
    /// All that the model gives.
    All,
    /// Of strings and numbers those that stand in the request: a small model makes others up. All of other types.
    Grounded,
}

/// How many calls answer a request.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum CallCount {
    /// One, which ends the answer.
    #[default]
    One,
    /// As many as the model writes, in the order of the request.
    Many,
}

/// What is different where several calls may answer a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = all_optional)]
pub struct Many {
    /// The system text in place of `system`.
    pub system: String,
    /// Few-shot examples behind the others.
    pub examples: Vec<ManyExample>,
    /// Most calls of a request.
    #[schemars(range(min = 1))]
    pub max_calls: u32,
}

/// A request and the calls that answer it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManyExample {
    /// The request, as a user would write it.
    #[schemars(length(min = 1))]
    pub prompt: String,
    /// The calls, in the order of the request.
    #[schemars(length(min = 1))]
    pub calls: Vec<ExampleCall>,
}

/// A call of an example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleCall {
    /// The name of the function. It need not be one of those at hand.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The arguments by name.
    pub parameters: Map<String, Value>,
}

/// Whether, and how, the model may answer that no function fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = all_optional)]
pub struct NoCall {
    /// Whether it may. The flag `--no-call` says yes.
    pub enabled: bool,
    /// There is no call where it is at least so likely that no function fits, 0 to 1: that answer is likely, or the
    /// name that is left is not.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: f64,
    /// What it answers in the examples.
    #[schemars(length(min = 1))]
    pub answer: String,
    /// Requests that are answered so, shown before the other examples.
    pub examples: Vec<String>,
}

/// A request and the call that answers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The request, as a user would write it.
    #[schemars(length(min = 1))]
    pub prompt: String,
    /// The name of the function. It need not be one of those at hand.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The arguments by name.
    pub parameters: Map<String, Value>,
}

/// Who tells the model about the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolsFrom {
    /// The chat template, where it lists them and writes calls as the JSON that is asked for; else
    /// `tools_text`.
    Auto,
    /// The chat template, whatever it does.
    Template,
    /// `tools_text`, whatever the template could do.
    Text,
}

/// What stands between the assistant's header and the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOpener {
    /// What the template itself writes there.
    Auto,
    /// This text.
    Text(String),
}

/// Where a text that goes on and on is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Most tokens of the value of one argument, at least 1. The flag `--max-value-tokens` goes
    /// before.
    #[schemars(range(min = 1))]
    pub max_value_tokens: u32,
}

/// The prompts configuration of `callme`: how requests are put to the model.
///
/// Every key is optional; what is left out is as in the shipped `config/prompts.json`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "callme prompts configuration")]
struct PromptsFile {
    /// Where the JSON Schema of this file is, for editors.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    schema: Option<String>,
    /// A name from the catalogue (`callme model list`) or a path to a GGUF file. `auto` takes the
    /// first of the catalogue's order that is present. The flag `--model` goes before.
    #[schemars(length(min = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    model: Option<String>,
    /// The system text. Empty: none of our own; many templates have one of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    system: Option<String>,
    /// Few-shot examples, shown before the request in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Example>")]
    examples: Option<Vec<Example>>,
    /// A chat template in place of the model's own: Jinja text, or the name of a file with it,
    /// relative to this file. Null: the model's own.
    #[schemars(length(min = 1))]
    template: Option<String>,
    /// Who tells the model about the functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ToolsFrom")]
    tools: Option<ToolsFrom>,
    /// How functions are told where the template does not do it: a Jinja text with the variable
    /// `tools`, put behind the system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    tools_text: Option<String>,
    /// The text between the assistant's header and the JSON of the call, such as `<tool_call>` and
    /// a line break. `auto`: what the template itself writes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    call_opener: Option<String>,
    /// How many calls answer a request: `one`, or `many`, as many as the model writes. The flag `--calls`
    /// goes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CallCount")]
    calls: Option<CallCount>,
    /// What is different where several calls may answer a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Many")]
    many: Option<Many>,
    /// Whether, and how, the model may answer that no function fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NoCall")]
    no_call: Option<NoCall>,
    /// By what the function of a call is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FunctionChoice")]
    function_choice: Option<FunctionChoice>,
    /// Which optional arguments of a call are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OptionalArguments")]
    optional_arguments: Option<OptionalArguments>,
    /// Where a text that goes on and on is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Limits")]
    limits: Option<Limits>,
}

/// Why a prompts configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file, or a template that it names, cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The file is not JSON.
    #[error("{}:{line}:{column}: not JSON: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What the parser says.
        reason: String,
    },
    /// A key that the configuration does not have.
    #[error("{}: unknown key {key:?} at {}; {}", path.display(), place(pointer), way_out(key, known))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// JSON pointer of the object that has it.
        pointer: String,
        /// The key.
        key: String,
        /// The keys that may stand there.
        known: Vec<String>,
    },
    /// A value that is not what its key takes.
    #[error("{}: {}: {reason}", path.display(), place(pointer))]
    Value {
        /// The file.
        path: PathBuf,
        /// JSON pointer of the value.
        pointer: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl PromptsConfig {
    /// The configuration that is part of the program.
    #[must_use]
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "the text is part of the program, and a test reads it"
    )]
    pub fn builtin() -> Self {
        let file = read(BUILTIN, Path::new("config/prompts.json"))
            .expect("the built-in configuration is valid");
        Self::complete(file).expect("the built-in configuration is complete")
    }

    /// Reads a configuration file; a template that it names is read too.
    ///
    /// # Errors
    /// Any [`ConfigError`], each with the file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let bytes =
            fs::read(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|error| syntax_at(&bytes, error.valid_up_to(), path))?;
        let mut config = Self::parse(text, path)?;
        if let Some(name) = config.template.as_deref().filter(|text| is_file_name(text)) {
            let file = path.with_file_name(name);
            let text = fs::read_to_string(&file).map_err(|error| ConfigError::Value {
                path: path.to_owned(),
                pointer: "/template".to_owned(),
                reason: format!(
                    "no Jinja text, and as a file name it cannot be read: {}: {error}; \
                     give the template's text, or a path relative to this file",
                    file.display()
                ),
            })?;
            config.template = Some(text);
        }
        Ok(config)
    }

    /// Reads the text of a configuration; `path` is for errors. A template's file name stays a
    /// name.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`], [`ConfigError::UnknownKey`] and [`ConfigError::Value`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file = read(text, path)?;
        let builtin = Self::builtin();
        Ok(Self {
            model: file.model.unwrap_or(builtin.model),
            system: file.system.unwrap_or(builtin.system),
            examples: file.examples.unwrap_or(builtin.examples),
            template: file.template.or(builtin.template),
            tools: file.tools.unwrap_or(builtin.tools),
            tools_text: file.tools_text.unwrap_or(builtin.tools_text),
            call_opener: file.call_opener.map_or(builtin.call_opener, CallOpener::from),
            calls: file.calls.unwrap_or(builtin.calls),
            many: file.many.unwrap_or(builtin.many),
            no_call: file.no_call.unwrap_or(builtin.no_call),
            function_choice: file.function_choice.unwrap_or(builtin.function_choice),
            optional_arguments: file.optional_arguments.unwrap_or(builtin.optional_arguments),
            limits: file.limits.unwrap_or(builtin.limits),
        })
    }

    /// The JSON Schema of the file, as text that ends with a line break.
    #[must_use]
    pub fn schema() -> String {
        format!("{:#}\n", schemars::schema_for!(PromptsFile).to_value())
    }

    /// A file that leaves nothing out.
    fn complete(file: PromptsFile) -> Option<Self> {
        Some(Self {
            model: file.model?,
            system: file.system?,
            examples: file.examples?,
            template: file.template,
            tools: file.tools?,
            tools_text: file.tools_text?,
            call_opener: file.call_opener?.into(),
            calls: file.calls?,
            many: file.many?,
            no_call: file.no_call?,
            function_choice: file.function_choice?,
            optional_arguments: file.optional_arguments?,
            limits: file.limits?,
        })
    }
}

impl Default for PromptsConfig {
    fn default() -> Self {
        Self::builtin()
    }
}

impl From<String> for CallOpener {
    fn from(text: String) -> Self {
        if text == "auto" { Self::Auto } else { Self::Text(text) }
    }
}

/// What is left out of it is as in the built-in configuration.
fn all_optional(schema: &mut schemars::Schema) {
    schema.remove("required");
}

/// Text to file: syntax first, then the file's own JSON Schema, which knows the place of every
/// mistake.
fn read(text: &str, path: &Path) -> Result<PromptsFile, ConfigError> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut value: Value = serde_json::from_str(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
        reason: without_place(&error.to_string()),
    })?;
    let schema = schemars::schema_for!(PromptsFile).to_value();
    if let Ok(validator) = jsonschema::validator_for(&schema) {
        if let Err(error) = validator.validate(&value) {
            return Err(explain(&error, &schema, path));
        }
    }
    fill(&mut value);
    serde_json::from_value(value).map_err(|error| ConfigError::Value {
        path: path.to_owned(),
        pointer: String::new(),
        reason: error.to_string(),
    })
}

/// Gives the objects that need not be whole the keys of the built-in configuration.
fn fill(value: &mut Value) {
    let builtin: Value = serde_json::from_str(BUILTIN).unwrap_or_default();
    for key in ["many", "no_call"] {
        if let (Some(Value::Object(own)), Some(others)) =
            (value.get_mut(key), builtin[key].as_object())
        {
            for (key, other) in others {
                own.entry(key).or_insert_with(|| other.clone());
            }
        }
    }
}

fn explain(error: &jsonschema::ValidationError<'_>, schema: &Value, path: &Path) -> ConfigError {
    let (path, pointer) = (path.to_owned(), error.instance_path().to_string());
    if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
        if let Some(key) = unexpected.first() {
            // The keyword's parent in the schema lists the keys that are known there.
            let keyword = error.schema_path().to_string();
            let parent = keyword.strip_suffix("/additionalProperties").unwrap_or_default();
            let known = schema
                .pointer(parent)
                .or(Some(schema))
                .and_then(|parent| parent["properties"].as_object());
            let known = known.map(|keys| keys.keys().cloned().collect()).unwrap_or_default();
            return ConfigError::UnknownKey { path, pointer, key: key.clone(), known };
        }
    }
    ConfigError::Value { path, pointer, reason: error.to_string() }
}

/// The error for bytes that are not UTF-8.
fn syntax_at(bytes: &[u8], offset: usize, path: &Path) -> ConfigError {
    let before = &bytes[..offset];
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    ConfigError::Syntax {
        path: path.to_owned(),
        line: before.split(|&byte| byte == b'\n').count(),
        column: offset - line_start + 1,
        reason: "not UTF-8".to_owned(),
    }
}

/// `serde_json` writes the place into its message, where the error has it already.
fn without_place(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(reason, _)| reason).to_owned()
}

/// A template's text has a tag or a line break; a file name has neither.
fn is_file_name(text: &str) -> bool {
    !text.contains("{{") && !text.contains("{%") && !text.contains('\n')
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the top" } else { pointer }
}

fn way_out(key: &str, known: &[String]) -> String {
    let near = known.iter().map(|name| (distance(key, name), name)).min();
    match near.filter(|(edits, name)| *edits <= 2.max(name.len() / 3)) {
        Some((_, name)) => format!("did you mean {name:?}?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// Least number of characters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, c) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, d) in b.iter().enumerate() {
            let best = (diagonal + usize::from(c != *d)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = PromptsConfig::parse(text, Path::new("p.json")).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn what_is_left_out_is_as_built_in() {
        let config = PromptsConfig::parse(
            "\u{FEFF}{\"model\": \"tiny\", \"examples\": []}",
            Path::new("p.json"),
        )
        .unwrap();
        let expected = PromptsConfig {
            model: "tiny".into(),
            examples: Vec::new(),
            ..PromptsConfig::default()
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn a_syntax_error_has_line_and_column() {
        check("{\n  \"model\": tiny\n}", "p.json:2:13: not JSON: expected ident");
        check("{\"model\": \"tiny\"", "p.json:1:16: not JSON: EOF while parsing an object");
        let error = syntax_at(b"{\n\"a\": \"\xff", 8, Path::new("p.json"));
        assert_eq!(error.to_string(), "p.json:2:7: not JSON: not UTF-8");
    }

    #[test]
    fn an_unknown_key_has_its_place_and_a_near_name() {
        check(
            "{\"sytem\": \"\"}",
            "p.json: unknown key \"sytem\" at the top; did you mean \"system\"?",
        );
        check(
            "{\"limits\": {\"max_value_token\": 1, \"max_value_tokens\": 1}}",
            "p.json: unknown key \"max_value_token\" at /limits; did you mean \"max_value_tokens\"?",
        );
        check(
            "{\"examples\": [{\"prompt\": \"p\", \"name\": \"n\", \"parameters\": {}, \"temperature\": 0}]}",
            "p.json: unknown key \"temperature\" at /examples/0; known here: prompt, name, parameters",
        );
    }

    #[test]
    fn a_wrong_value_has_its_pointer() {
        check(
            "{\"limits\": {\"max_value_tokens\": 0}}",
            "p.json: /limits/max_value_tokens: 0 is less than the minimum of 1",
        );
        check("[]", "p.json: the top: [] is not of type \"object\"");
        check(
            "{\"examples\": [{\"prompt\": \"p\", \"name\": \"n\"}]}",
            "p.json: /examples/0: \"parameters\" is a required property",
        );
    }

    #[test]
    fn distances() {
        assert_eq!(
            (distance("", "abc"), distance("kitten", "sitting"), distance("same", "same")),
            (3, 3, 0)
        );
    }
}
