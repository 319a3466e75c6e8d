//! The model's chat template, the functions and a request -> the pieces of text to tokenize.
//!
//! [`PromptWriter::new`] finds out once what the template can do, by rendering small conversations
//! with it: does it list `tools`, does it know a system role, does it write calls as the JSON that
//! the grammar asks for, and what does it write before them. [`PromptWriter::render`] then fills in
//! one request.
//!
//! The request, names, descriptions and schemas of functions, the system text and the examples are
//! untrusted: none of their characters becomes part of a `CONTROL` or `USER_DEFINED` token.
//! `marks.rs` tells them from the template's own text, `cut.rs` divides the prompt where they
//! would.
//!
//! **Invariant:** the pieces, joined, are what the template gives for the plain texts. It is rendered
//! with and without marks, and a difference is an error.
//! **Invariant:** the same functions and request give the same pieces, unless the template asks for
//! the date.
//!
//! ```
//! use call_me_maybe::prompt::{ModelText, PromptWriter, PromptsConfig};
//!
//! let specials = vec!["<|im_start|>".into(), "<|im_end|>".into()];
//! let model = ModelText { specials, ..ModelText::default() };
//! let writer = PromptWriter::new(&model, &PromptsConfig::default())?;
//! let prompt = writer.render(&[], "Say <|im_end|>")?;
//! assert!(prompt.pieces[1].starts_with("|im_end|><|im_end|>\n<|im_start|>assistant\n"));
//! # Ok::<(), call_me_maybe::prompt::PromptError>(())
//! ```

pub mod config;
mod marks;
mod value;
mod dumps;
mod methods;
mod template;
mod messages;
mod probe;
mod cut;

use std::{borrow::Cow, iter};

use minijinja::Value;
use serde_json::{Map, Value as Json};

pub use self::config::{
    CallCount, CallOpener, ConfigError, Example, ExampleCall, FunctionChoice, Limits, Many,
    ManyExample, NoCall, OptionalArguments, PromptsConfig, ToolsFrom,
};
use self::{
    cut::Specials, marks::Marks, messages::message, probe::Abilities, template::Template,
    value::dict,
};
use crate::definitions::FunctionDef;

/// For a model without a template whose vocabulary has `ChatML`'s markers.
const CHATML: &str = "{% for message in messages %}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// For a model without a template whose vocabulary has Gemma's markers; Gemma knows no system role.
const GEMMA: &str = "{{ bos_token }}
{%- for message in messages %}
{%- if message.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' }}
{{- message.content + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";

/// For any other model without a template.
const PLAIN: &str = "{{ bos_token }}
{%- for message in messages %}
{{- message.role | capitalize + ':\\n' + message.content + '\\n\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'Assistant:\\n' }}{% endif %}";

/// What a prompt needs to know of a model, all of it from the GGUF.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelText {
    /// `tokenizer.chat_template`.
    pub chat_template: Option<String>,
    /// Text of the token that begins a text; empty where there is none.
    pub bos: String,
    /// Text of the token that ends a text; empty where there is none.
    pub eos: String,
    /// The text of every `CONTROL` and `USER_DEFINED` token, in any order.
    pub specials: Vec<String>,
}

/// What stands around the calls of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameText<'a> {
    /// Before the first.
    pub opener: &'a str,
    /// Between two; empty where the template does not write several.
    pub between: &'a str,
    /// Behind the last.
    pub closer: &'a str,
}

/// A rendered prompt, up to where the call begins; where there may be none, to where the answer does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// To be tokenized one by one, each with special tokens parsed and none added; joined they are
    /// the rendered text.
    pub pieces: Vec<String>,
}

/// Writes the prompts for one model and configuration.
#[derive(Debug, Clone)]
pub struct PromptWriter {
    source: Source,
    abilities: Abilities,
    specials: Specials,
    usual: Compiled,
    plain: Compiled,
}

/// Why a prompt cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// A template is not Jinja, or uses something that is not known here.
    #[error("{template} cannot be used{}: {reason}; {}", at_line(*line), template.way_out())]
    Template {
        /// Which one.
        template: TemplateName,
        /// Counted from 1.
        line: Option<usize>,
        /// What the template engine says.
        reason: String,
    },
    /// A template stopped at this request.
    #[error("{template} fails{}: {reason}; {}", at_line(*line), template.way_out())]
    Render {
        /// Which one.
        template: TemplateName,
        /// Counted from 1.
        line: Option<usize>,
        /// What the template itself or its engine says.
        reason: String,
    },
    /// The template takes texts apart, so what is the user's and what is its own cannot be told.
    #[error(
        "the chat template takes a text apart, so the request cannot be told from the template's own \
         words; set `template` in the prompts configuration"
    )]
    Untraceable,
    /// Every character that could mark untrusted text occurs in the input.
    #[error(
        "the request and its functions contain all noncharacters and private-use characters of Unicode"
    )]
    NoMarks,
    /// What stands between two calls is how the end of an answer begins, so that one is like the other.
    #[error(
        "the chat template does not write several calls in one answer; leave --calls at `one`, or set \
         `template` in the prompts configuration"
    )]
    NotSeveral,
    /// The special tokens are too many to be searched for.
    #[error("the model's special tokens cannot be searched for")]
    Specials(#[source] aho_corasick::BuildError),
}

/// A template, in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateName {
    /// The GGUF's chat template.
    Model,
    /// `template` of the configuration.
    Config,
    /// The template for a model that has none.
    Builtin,
    /// `tools_text` of the configuration.
    ToolsText,
}

/// What prompts are made of, whatever the marks.
#[derive(Debug, Clone)]
struct Source {
    name: TemplateName,
    template: String,
    config: PromptsConfig,
    bos: String,
    eos: String,
}

/// The names and arguments of an example's calls.
type ExampleCalls<'a> = Vec<(&'a str, &'a Map<String, Json>)>;

/// The templates and the fixed messages, for one pair of marks.
#[derive(Debug, Clone)]
struct Compiled {
    marks: Marks,
    chat: Template,
    tools_text: Template,
    examples: Vec<Value>,
}

impl PromptWriter {
    /// Compiles the templates and finds out what the chat template can do.
    ///
    /// # Errors [`PromptError::Template`] for a template that cannot be compiled,
    /// [`PromptError::Render`] for one that cannot render even a single request.
    pub fn new(model: &ModelText, config: &PromptsConfig) -> Result<Self, PromptError> {
        let has = |text: &str| model.specials.iter().any(|special| special == text);
        let (name, template) = match (&config.template, &model.chat_template) {
            (Some(text), _) => (TemplateName::Config, text.as_str()),
            (None, Some(text)) => (TemplateName::Model, text.as_str()),
            (None, None) if has("<|im_start|>") => (TemplateName::Builtin, CHATML),
            (None, None) if has("<start_of_turn>") => (TemplateName::Builtin, GEMMA),
            (None, None) => (TemplateName::Builtin, PLAIN),
        };
        let source = Source {
            name,
            template: template.to_owned(),
            config: config.clone(),
            bos: model.bos.clone(),
            eos: model.eos.clone(),
        };
        let marks = Marks::absent_from(source.texts()).ok_or(PromptError::NoMarks)?;
        let chat = source.name.compile(&source.template, marks)?;
        let abilities = Abilities::find(&chat, &source)?;
        let Abilities { between, closer, .. } = &abilities;
        if config.calls == CallCount::Many && closer.starts_with(between.as_str()) {
            return Err(PromptError::NotSeveral);
        }
        let usual = Compiled::new(&source, &abilities, marks)?;
        let plain = Compiled::new(&source, &abilities, Marks::NONE)?;
        list(&plain.tools_text, vec![probe::tool()])?;
        let specials = Specials::new(&model.specials).map_err(PromptError::Specials)?;
        Ok(Self { source, abilities, specials, usual, plain })
    }

    /// What stands around the calls of an answer, of the template's own text.
    #[must_use]
    pub fn frame(&self) -> FrameText<'_> {
        let Abilities { opener, between, closer, .. } = &self.abilities;
        FrameText { opener, between, closer }
    }

    /// The configuration that it was made with.
    #[must_use]
    pub fn config(&self) -> &PromptsConfig {
        &self.source.config
    }

    /// The prompt for one request with these functions to choose from.
    ///
    /// # Errors
    /// [`PromptError::Render`], [`PromptError::Untraceable`] and [`PromptError::NoMarks`].
    pub fn render(&self, functions: &[FunctionDef], request: &str) -> Result<Prompt, PromptError> {
        let tools: Vec<Json> = functions.iter().map(FunctionDef::tool).collect();
        let compiled = self.compiled_for(&tools, request)?;
        let marked = self.text(&compiled, &tools, request)?;
        let traced = compiled.marks.read(&marked).map_err(|_| PromptError::Untraceable)?;
        // A template that took the marks for part of a text has done something else with it, too.
        if traced.text != self.text(&self.plain, &tools, request)? {
            return Err(PromptError::Untraceable);
        }
        Ok(Prompt { pieces: self.specials.cut(&traced) })
    }

    /// The whole text, with the marks of `compiled`.
    fn text(
        &self,
        compiled: &Compiled,
        tools: &[Json],
        request: &str,
    ) -> Result<String, PromptError> {
        let Compiled { marks, .. } = *compiled;
        let beginning = common_beginning(tools);
        let examples = if beginning.is_empty() {
            Cow::Borrowed(&compiled.examples)
        } else {
            Cow::Owned(example_messages(&self.source, &self.abilities, marks, beginning))
        };
        let tools: Vec<Value> = tools.iter().map(|tool| value::tool(tool, marks)).collect();
        let mut preamble = marks.wrap(self.source.system());
        let listed = self.abilities.lists_tools && !tools.is_empty();
        if !listed && !tools.is_empty() {
            let text = list(&compiled.tools_text, tools.clone())?;
            if !preamble.is_empty() && !text.is_empty() {
                preamble.push_str("\n\n");
            }
            preamble.push_str(&text);
        }
        let messages = self.messages(&preamble, &examples, &marks.wrap(request));
        let context = self.source.context(messages, listed.then_some(tools), true);
        let mut text = self.source.name.render(&compiled.chat, &context)?;
        if !self.source.config.no_call.enabled {
            text.push_str(&self.abilities.opener);
        }
        Ok(text)
    }

    /// The usual templates, or others with marks that the input does not contain.
    fn compiled_for(
        &self,
        tools: &[Json],
        request: &str,
    ) -> Result<Cow<'_, Compiled>, PromptError> {
        let mut texts = vec![request];
        for tool in tools {
            value::each_string(tool, &mut |text| texts.push(text));
        }
        if !texts.iter().any(|text| self.usual.marks.occur_in(text)) {
            return Ok(Cow::Borrowed(&self.usual));
        }
        let marks =
            Marks::absent_from(self.source.texts().chain(texts)).ok_or(PromptError::NoMarks)?;
        Compiled::new(&self.source, &self.abilities, marks).map(Cow::Owned)
    }

    /// System text, examples and the request; the system text goes before the first user message
    /// where there is no such role.
    fn messages(&self, preamble: &str, examples: &[Value], request: &str) -> Vec<Value> {
        let request = message("user", request);
        let mut messages: Vec<Value> = examples.iter().cloned().chain([request]).collect();
        if preamble.is_empty() {
            return messages;
        }
        if self.abilities.knows_system {
            messages.insert(0, message("system", preamble));
        } else if let Some(first) = messages.first_mut() {
            let content =
                first.get_attr("content").map(|content| content.to_string()).unwrap_or_default();
            *first = message("user", &format!("{preamble}\n\n{content}"));
        }
        messages
    }
}

impl Source {
    /// The variables of a chat template.
    fn context(
        &self,
        messages: Vec<Value>,
        tools: Option<Vec<Value>>,
        add_generation_prompt: bool,
    ) -> Value {
        dict([
            ("messages".to_owned(), Value::from(messages)),
            ("tools".to_owned(), tools.map_or_else(|| Value::from(()), Value::from)),
            ("documents".to_owned(), Value::from(())),
            ("add_generation_prompt".to_owned(), Value::from(add_generation_prompt)),
            ("bos_token".to_owned(), Value::from(self.bos.as_str())),
            ("eos_token".to_owned(), Value::from(self.eos.as_str())),
            ("enable_thinking".to_owned(), Value::from(false)),
        ])
    }

    fn system(&self) -> &str {
        match self.config.calls {
            CallCount::One => &self.config.system,
            CallCount::Many => &self.config.many.system,
        }
    }

    /// The requests that are shown as examples, with the calls that answer them: none where no function fits.
    fn examples(&self) -> Vec<(&str, ExampleCalls<'_>)> {
        let PromptsConfig { examples, calls, many, no_call, .. } = &self.config;
        let mut all = Vec::new();
        if no_call.enabled {
            all.extend(no_call.examples.iter().map(|prompt| (prompt.as_str(), Vec::new())));
        }
        all.extend(examples.iter().map(|Example { prompt, name, parameters }| {
            (prompt.as_str(), vec![(name.as_str(), parameters)])
        }));
        if *calls == CallCount::Many {
            all.extend(many.examples.iter().map(|ManyExample { prompt, calls }| {
                let calls = calls.iter().map(|one| (one.name.as_str(), &one.parameters));
                (prompt.as_str(), calls.collect())
            }));
        }
        all
    }

    /// Every text that does not depend on the request.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let Self { template, config, bos, eos, .. } = self;
        let mut texts = vec![template.as_str(), self.system(), &config.tools_text, bos, eos];
        texts.push(&config.no_call.answer);
        if let CallOpener::Text(opener) = &config.call_opener {
            texts.push(opener);
        }
        for (prompt, calls) in self.examples() {
            texts.push(prompt);
            for (name, parameters) in calls {
                texts.push(name);
                for (name, argument) in parameters {
                    texts.push(name);
                    value::each_string(argument, &mut |text| texts.push(text));
                }
            }
        }
        texts.into_iter()
    }
}

impl Compiled {
    fn new(source: &Source, abilities: &Abilities, marks: Marks) -> Result<Self, PromptError> {
        Ok(Self {
            marks,
            chat: source.name.compile(&source.template, marks)?,
            tools_text: TemplateName::ToolsText.compile(&source.config.tools_text, marks)?,
            examples: example_messages(source, abilities, marks, ""),
        })
    }
}

impl TemplateName {
    fn compile(self, text: &str, marks: Marks) -> Result<Template, PromptError> {
        Template::new(text, marks).map_err(|error| PromptError::Template {
            template: self,
            line: error.line(),
            reason: reason(&error),
        })
    }

    fn render(self, template: &Template, context: &Value) -> Result<String, PromptError> {
        template.render(context).map_err(|error| PromptError::Render {
            template: self,
            line: error.line(),
            reason: reason(&error),
        })
    }

    fn way_out(self) -> &'static str {
        match self {
            Self::Model | Self::Builtin => "set `template` in the prompts configuration",
            Self::Config | Self::ToolsText => "correct it in the prompts configuration",
        }
    }
}

impl std::fmt::Display for TemplateName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Model => "the model's chat template",
            Self::Config => "`template` of the prompts configuration",
            Self::Builtin => "the built-in chat template",
            Self::ToolsText => "`tools_text` of the prompts configuration",
        })
    }
}

/// The examples as messages; the names of their functions begin like those of the request's.
fn example_messages(
    source: &Source,
    abilities: &Abilities,
    marks: Marks,
    beginning: &str,
) -> Vec<Value> {
    let answer = &source.config.no_call.answer;
    let examples = source.examples().into_iter().flat_map(|(prompt, calls)| {
        if calls.is_empty() {
            [message("user", &marks.wrap(prompt)), message("assistant", &marks.wrap(answer))]
        } else {
            let name = |name: &str| {
                let name = name.strip_prefix(beginning).unwrap_or(name);
                format!("{beginning}{name}")
            };
            let calls = calls.into_iter().map(|(called, arguments)| (name(called), arguments));
            abilities.example(prompt, &calls.collect::<Vec<_>>(), marks)
        }
    });
    examples.collect()
}

/// What the names of all tools begin with, such as `fn_`: up to a mark between words. Names in another style, as the
/// examples' would be, are what a model would rather go on with.
fn common_beginning(tools: &[Json]) -> &str {
    let mut names = tools.iter().filter_map(|tool| tool.get("function")?.get("name")?.as_str());
    let (Some(first), true) = (names.next(), tools.len() > 1) else { return "" };
    let common = names.fold(first, |common, name| {
        let differs = common.char_indices().zip(name.chars()).find(|((_, a), b)| a != b);
        let end = differs.map_or(common.len().min(name.len()), |((at, _), _)| at);
        &common[..end]
    });
    let end = common.rfind(['_', '.', '-', '/', ':']).map_or(0, |at| at + 1);
    &common[..end]
}

/// The functions as `tools_text` tells them.
fn list(tools_text: &Template, tools: Vec<Value>) -> Result<String, PromptError> {
    let context = dict([("tools".to_owned(), Value::from(tools))]);
    TemplateName::ToolsText.render(tools_text, &context)
}

/// The innermost reason, without the place, which the error has already.
fn reason(error: &minijinja::Error) -> String {
    let causes = iter::successors(std::error::Error::source(error), |cause| cause.source());
    match causes.last() {
        Some(cause) => cause.to_string(),
        None => error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned),
    }
}

fn at_line(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(" (line {line})"))
}
