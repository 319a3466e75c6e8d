//! Function definitions to a [`Grammar`] whose `root` is one whole call:
//! `{"name": "fn_add_numbers", "arguments": {"a": 2, "b": 3.5}}`.
//!
//! **Invariant:** every text of the grammar is JSON that `serde_json` reads, up to its 128 levels, and
//! its arguments are valid against the schema of the function it names, save a key that stands twice.
//! **Invariant:** white space is `", "` and `": "`, nothing else; properties are in the
//! definition's order, and members without a name of their own come after them.
//! **Invariant:** the grammar is without left recursion and its size is linear in the schema's
//! alternatives. Only this file and those beside it know JSON's lexical rules.

mod lexical;
mod names;
mod prefix;
mod terminal;
mod automaton;
mod keys;
mod value;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use serde_json::Value;

use self::lexical::{Lexical, json_text};
use self::names::Names;
use super::check::{checked, most_times, n_repeated, own_rules};
use super::{Expr, Grammar, GrammarError, Rule, RuleName};
use crate::definitions::{FunctionDef, FunctionName};
use crate::schema::{self, Schema, SchemaError, Undeclared};

/// Most characters of a description in a comment.
const MAX_COMMENT: usize = 100;

/// What becomes of a function whose schema cannot be expressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// Its name can be chosen, and the call ends right after it: `{"name": "fn_bad"}`. So the model
    /// still makes the choice, and the one prompt fails with the reason.
    Keep,
    /// It is a comment that gives the reason.
    LeaveOut,
    /// What cannot be expressed is not asked of the text; the validator finds what breaks it. Where even
    /// that is no way (the schema is wrong), as [`Unsupported::Keep`].
    Widen,
}

/// How definitions become a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What becomes of a function whose schema cannot be expressed.
    pub unsupported: Unsupported,
    /// What becomes of what a schema does not declare.
    pub undeclared: Undeclared,
}

impl Options {
    /// All that the schemas allow; a function that cannot be expressed has no arguments.
    pub const LEGAL: Self = Self { unsupported: Unsupported::Keep, undeclared: Undeclared::Allow };

    /// The same without what the schemas do not declare: what a run writes.
    pub const DECLARED: Self =
        Self { unsupported: Unsupported::Keep, undeclared: Undeclared::Omit };
}

/// A grammar and the functions whose arguments it does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct CallGrammar {
    /// The grammar of one call.
    pub grammar: Grammar,
    /// Functions whose schema cannot be expressed, in the order of the definitions.
    pub refused: Vec<(FunctionName, SchemaError)>,
    /// What [`Unsupported::Widen`] left to the validator.
    pub widened: Vec<(FunctionName, SchemaError)>,
}

/// The grammar of one call of one of the functions.
///
/// ```
/// use call_me_maybe::grammar::lower::{Options, calls};
/// use call_me_maybe::grammar::recognize::Recognizer;
///
/// let file = br#"[{"name": "fn_wait", "parameters": {"seconds": {"type": "integer"}}}]"#;
/// let functions = call_me_maybe::definitions::parse(file)?;
/// let recognizer = Recognizer::new(&calls(&functions, Options::LEGAL)?.grammar)?;
/// assert!(recognizer.accepts(br#"{"name": "fn_wait", "arguments": {"seconds": 12}}"#));
/// assert!(!recognizer.accepts(br#"{"name": "fn_wait", "arguments": {"seconds": 1.5}}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`GrammarError::NoFunctions`] where there is no function, or [`Unsupported::LeaveOut`] leaves
/// none; the others would be an error of this module.
pub fn calls(functions: &[FunctionDef], options: Options) -> Result<CallGrammar, GrammarError> {
    let mut lower = Lower {
        rules: Vec::new(),
        names: Names::default(),
        lexical: BTreeSet::new(),
        // Many names share their beginnings in the rule `call`; few are easier to read in their own.
        names_apart: functions.len() > prefix::FEW,
        shared: Vec::new(),
        leaving: FxHashMap::default(),
        but: FxHashMap::default(),
    };
    let (mut productions, mut refused, mut widened) = (Vec::new(), Vec::new(), Vec::new());
    let (mut left_out, mut notes) = (Vec::new(), Vec::new());
    for function in functions {
        let name = function.name.as_str().escape_debug();
        let _span = tracing::info_span!("function", %name).entered();
        let lowered = parse(function, options).and_then(|schema| {
            schema.tell(function);
            widened.extend(schema.widened().iter().map(|e| (function.name.clone(), e.clone())));
            lower.function(function, &schema)
        });
        let quoted = json_text(&Value::from(function.name.as_str()));
        let rule = match lowered {
            Ok(rule) => Some(rule),
            Err(error) => {
                refused.push((function.name.clone(), error.clone()));
                if options.unsupported == Unsupported::LeaveOut {
                    left_out.push(self::left_out(function, &error));
                    continue;
                }
                if lower.names_apart {
                    notes.push(no_arguments(function, &error));
                    None
                } else {
                    Some(lower.name_alone(function, &error))
                }
            }
        };
        let text = if lower.names_apart { quoted } else { String::new() };
        productions.push((text, rule));
    }
    if productions.is_empty() {
        return Err(GrammarError::NoFunctions { refused });
    }
    let call = RuleName("call".into());
    let expr = if lower.names_apart {
        prefix::factored(productions, &call, &mut lower.names, &mut lower.rules)
    } else {
        prefix::one_of(productions.into_iter().filter_map(|(_, rule)| rule).collect())
    };
    let root = Expr::literal("{\"name\": ").then(Expr::Rule(call.clone())).then(Expr::literal("}"));
    let root = Rule { comment: left_out, ..Rule::new(RuleName::root(), root) };
    let mut rules = vec![root, Rule { comment: notes, ..Rule::new(call, expr) }];
    rules.append(&mut lower.rules);
    rules.append(&mut lower.shared);
    rules.extend(lexical::rules(lower.lexical));
    Ok(CallGrammar { grammar: checked(rules)?, refused, widened })
}

/// The schema of a function's arguments, as its grammar and its validator read it.
///
/// # Errors
///
/// [`SchemaError`] where it cannot be expressed.
pub fn parse(function: &FunctionDef, options: Options) -> Result<Schema, SchemaError> {
    schema::parse(
        &function.parameters,
        schema::Options {
            // The short formats list all that there is.
            undeclared: if function.lists_all() { Undeclared::Omit } else { options.undeclared },
            lenient: options.unsupported == Unsupported::Widen,
        },
    )
}

/// What a comment says of a function whose schema cannot be expressed.
#[must_use]
pub fn left_out(function: &FunctionDef, error: &SchemaError) -> String {
    format!("{}: left out: {}", function.name, error.in_file(function))
}

fn no_arguments(function: &FunctionDef, error: &SchemaError) -> String {
    format!("{}: no arguments: {}", function.name, error.in_file(function))
}

struct Lower {
    rules: Vec<Rule>,
    names: Names,
    lexical: BTreeSet<Lexical>,
    /// Whether the names of the functions stand in the rule `call` and not in their own.
    names_apart: bool,
    /// The rules of [`keys`] that any function may use, also after the one they were made for is refused.
    shared: Vec<Rule>,
    /// Their names, by the characters that they leave out.
    leaving: FxHashMap<String, RuleName>,
    /// Their names, by the rest of a name that they leave out.
    but: FxHashMap<String, RuleName>,
}

impl Lower {
    /// The rule of one function: its name, quoted, unless that stands in front, then its arguments.
    fn function(&mut self, function: &FunctionDef, schema: &Schema) -> Result<Expr, SchemaError> {
        let n_rules = self.rules.len();
        let name = self.names.fresh(&[function.name.as_str()], "function");
        let at = self.reserve(&name);
        match value::arguments(self, schema, &name) {
            Ok(arguments) => {
                for index in n_rules..self.rules.len() {
                    let mut expr = std::mem::replace(&mut self.rules[index].expr, Expr::nothing());
                    let rule = self.rules[index].name.clone();
                    self.bound(&mut expr, &rule);
                    self.rules[index].expr = expr;
                }
                let quoted = json_text(&Value::from(function.name.as_str()));
                let quoted = if self.names_apart { "" } else { &quoted };
                self.rules[at].comment = comment(function);
                self.rules[at].expr =
                    Expr::literal(format!("{quoted}, \"arguments\": ")).then(arguments);
                Ok(Expr::Rule(name))
            }
            Err(error) => {
                self.rules.truncate(n_rules);
                Err(error)
            }
        }
    }

    /// The rule of a function whose arguments cannot be expressed: its name, quoted.
    fn name_alone(&mut self, function: &FunctionDef, error: &SchemaError) -> Expr {
        let name = self.names.fresh(&[function.name.as_str()], "function");
        let expr = Expr::Literal(json_text(&Value::from(function.name.as_str())));
        let mut comment = comment(function);
        comment.push(format!("no arguments: {}", error.in_file(function)));
        self.rules.push(Rule { comment, ..Rule::new(name.clone(), expr) });
        Expr::Rule(name)
    }

    /// Makes rules of groups that llama.cpp would count too many rules in to repeat them, and gives the
    /// number of those in the whole.
    fn bound(&mut self, expr: &mut Expr, name: &RuleName) -> u64 {
        let own = own_rules(expr);
        let inside = match expr {
            Expr::Literal(_) | Expr::Class(_) | Expr::Rule(_) => 0,
            Expr::Concat(parts) | Expr::Choice(parts) => {
                parts.iter_mut().map(|part| self.bound(part, name)).sum()
            }
            Expr::Repeat(inner, repeat) => {
                let n_rules = self.bound(inner, name);
                let times = repeat.max().unwrap_or(repeat.min()).max(1) as usize;
                if matches!(**inner, Expr::Concat(_) | Expr::Choice(_) | Expr::Repeat(..))
                    && times > most_times(n_repeated(inner, n_rules))
                {
                    let rule = self.names.fresh(&[name.as_str(), "group"], "group");
                    let group = std::mem::replace(&mut **inner, Expr::Rule(rule.clone()));
                    self.rules.push(Rule::new(rule, group));
                    1
                } else {
                    n_rules
                }
            }
        };
        own + inside
    }

    fn lexical(&mut self, rule: Lexical) -> Expr {
        self.lexical.insert(rule);
        Expr::Rule(rule.name())
    }

    /// A place for a rule, so that it stands before the rules it uses.
    fn reserve(&mut self, name: &RuleName) -> usize {
        self.rules.push(Rule::new(name.clone(), Expr::Concat(Vec::new())));
        self.rules.len() - 1
    }
}

/// The function's real name and what it does, for readers.
fn comment(function: &FunctionDef) -> Vec<String> {
    let first = function.description.as_deref().unwrap_or_default().trim().lines().next();
    match first {
        Some(line) if !line.is_empty() => {
            let cut = line.char_indices().nth(MAX_COMMENT).map(|(index, _)| &line[..index]);
            let line = cut.map_or(line.to_owned(), |start| format!("{start}…"));
            vec![format!("{}: {line}", function.name)]
        }
        _ => vec![function.name.to_string()],
    }
}
