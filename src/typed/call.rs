//! A model and a Rust type; a request in, a value of the type out.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Functions, TypeError};
use crate::caller::{CallError, Caller, FunctionSet, Request, Unwatched};
use crate::engine::Cut;
use crate::engine::llama::Llama;
use crate::grammar::GrammarError;
use crate::load::{self, LoadError, LoadOptions};

/// A loaded model that answers requests with values of `T`.
///
/// ```no_run
/// use call_me_maybe::load::LoadOptions;
/// use call_me_maybe::typed::TypedCaller;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Debug, Deserialize, JsonSchema)]
/// #[serde(rename_all = "snake_case")]
/// enum Light {
///     /// Set how bright the lamp of a room is.
///     SetBrightness { room: String, percent: i64 },
///     /// Turn every lamp off.
///     AllOff,
/// }
///
/// let mut lights = TypedCaller::<Light>::load("auto", &LoadOptions::default())?;
/// match lights.call("Half light in the kitchen, please")? {
///     Light::SetBrightness { room, percent } => println!("{room}: {percent} %"),
///     Light::AllOff => println!("dark"),
/// }
/// # Ok::<(), call_me_maybe::typed::TypedError>(())
/// ```
#[derive(Debug)]
pub struct TypedCaller<T> {
    functions: Functions<T>,
    set: Rc<FunctionSet>,
    caller: Caller<Llama>,
    n_calls: u64,
}

/// Why a request has no value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// The type is no set of functions, or the call is no value of it.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The functions are beyond a limit of the grammar.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// There is no model to ask.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The request has no call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The model said that no function fits, which the configuration allows.
    #[error("no function fits the request")]
    NoCall,
    /// A value was cut, so it is not what the model meant.
    #[error("the value of {:?} was cut at {} tokens", cut.parameter, cut.limit)]
    Cut {
        /// The first of the values that were cut.
        cut: Cut,
    },
}

impl<T: DeserializeOwned + JsonSchema> TypedCaller<T> {
    /// Loads a model, by name or path as [`load::load`] takes it, to call the functions of `T`.
    ///
    /// # Errors
    /// [`TypedError`], all but `Call`, `NoCall` and `Cut`.
    pub fn load(model: &str, options: &LoadOptions) -> Result<Self, TypedError> {
        let functions = Functions::new()?;
        let set = FunctionSet::compile(functions.definitions().to_vec(), false)?;
        set.share();
        let caller = load::load(model, options)?;
        Ok(Self { functions, set: Rc::new(set), caller, n_calls: 0 })
    }

    /// Lets the model choose a function and its arguments for a request.
    ///
    /// # Errors
    /// [`TypedError::Call`], [`TypedError::NoCall`], [`TypedError::Cut`], and [`TypedError::Type`] where the
    /// field's type holds less than its schema says; the next request can be made all the same.
    pub fn call(&mut self, request: &str) -> Result<T, TypedError> {
        let index = self.n_calls;
        self.n_calls += 1;
        let request = Request { index, set: Rc::clone(&self.set), text: request.to_owned() };
        let answer = self.caller.call(request, &mut Unwatched)?;
        if let Some(cut) = answer.generation.cuts.into_iter().next() {
            return Err(TypedError::Cut { cut });
        }
        let call = answer.calls.first().ok_or(TypedError::NoCall)?;
        Ok(self.functions.read(call)?)
    }
}
