//! Why a list of function definitions cannot be read.

use super::FunctionName;

/// Why a list of function definitions cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The bytes are not UTF-8.
    #[error("not UTF-8: the first bad byte is at offset {offset}; save the file as UTF-8")]
    NotUtf8 {
        /// Offset of the first bad byte, from 0.
        offset: usize,
    },
    /// Nothing but white space.
    #[error("the file is empty; write a JSON array of function definitions, or [] for none")]
    Empty,
    /// The text is not JSON.
    #[error("not JSON: {message} at line {line}, column {column}")]
    Syntax {
        /// Line of the error, from 1.
        line: usize,
        /// Column of the error, from 1.
        column: usize,
        /// What the parser expected.
        message: String,
    },
    /// JSON, but not a function definition.
    #[error("{}: {problem}", place(pointer))]
    Malformed {
        /// JSON pointer of the part that is wrong; empty for the whole document.
        pointer: String,
        /// What is wrong with it, and the way out.
        problem: Problem,
    },
    /// Two functions have one name.
    #[error("{second}: the function name {:?} is already taken by {first}; rename one", name.as_str())]
    DuplicateName {
        /// The name.
        name: FunctionName,
        /// JSON pointer of the first definition.
        first: String,
        /// JSON pointer of the second definition.
        second: String,
    },
}

impl DefinitionError {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let message = error.to_string();
        let suffix = format!(" at line {line} column {column}");
        let message = message.strip_suffix(&suffix).unwrap_or(&message).to_owned();
        Self::Syntax { line, column, message }
    }
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { "top level".to_owned() } else { pointer.escape_debug().to_string() }
}

/// What is wrong with a part of a definition, and the way out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Neither a list of functions nor one function.
    #[error("expected an array of function definitions, found {found}")]
    NotFunctions {
        /// What stands there.
        found: &'static str,
    },
    /// A definition is not an object.
    #[error("expected a function definition, an object with a \"name\", found {found}")]
    NotAnObject {
        /// What stands there.
        found: &'static str,
    },
    /// A definition has no name.
    #[error("the function has no \"name\"; add one, such as \"name\": \"fn_greet\"")]
    NoName,
    /// A name is not a string.
    #[error("the function's name must be a string, found {found}")]
    NameNotText {
        /// What stands there.
        found: &'static str,
    },
    /// A name is the empty string.
    #[error("the function's name is empty; write the name that the call shall carry")]
    EmptyName,
    /// A description is not a string.
    #[error("the description must be a string, found {found}; remove it or put it in quotes")]
    DescriptionNotText {
        /// What stands there.
        found: &'static str,
    },
    /// `parameters` is neither form.
    #[error(
        "the parameters must be an object, {{\"a\": {{\"type\": \"number\"}}}} or a JSON Schema, \
         found {found}; for no parameters write {{}}"
    )]
    ParametersNotAnObject {
        /// What stands there.
        found: &'static str,
    },
    /// A parameter of the short format is not described by an object.
    #[error(
        "the parameter {name:?} must be described by an object, such as \
         {name:?}: {{\"type\": \"number\"}}, found {found}"
    )]
    ParameterNotASchema {
        /// The parameter.
        name: String,
        /// What stands there.
        found: &'static str,
    },
    /// `args_names` is not a list of strings.
    #[error("args_names must be an array of strings, such as [\"a\", \"b\"], found {found}")]
    ArgsNames {
        /// What stands there.
        found: &'static str,
    },
    /// `args_types` does not map names to type names.
    #[error("args_types must map names to type names, such as {{\"a\": \"float\"}}, found {found}")]
    ArgsTypes {
        /// What stands there.
        found: &'static str,
    },
    /// A type without a name.
    #[error("args_types has {name:?}, which args_names lacks; add it there or remove it here")]
    NoArgName {
        /// The argument.
        name: String,
    },
    /// A name without a type.
    #[error("args_names has {name:?}, which args_types lacks; add its type there")]
    NoArgType {
        /// The argument.
        name: String,
    },
    /// A name stands twice in `args_names`.
    #[error("args_names has {name:?} twice; remove one")]
    ArgTwice {
        /// The argument.
        name: String,
    },
}
