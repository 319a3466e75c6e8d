//! Labelled cases and calls in; verdicts with their reasons, and figures over these, out.
//!
//! A case is labelled in one of two ways, each with rules of its own: by [`Expected::Calls`], judged as
//! the Berkeley function-calling leaderboard does it, or by [`Expected::Exercise`], judged by the
//! parameters.
//!
//! ```
//! use call_me_maybe::eval::{Call, Prediction, Scoring, cases, score};
//!
//! let file = br#"{"prompt": "Ring twice", "functions": [{"name": "ring", "parameters": {"times": {"type": "integer"}}}],
//!     "expected": [{"ring": {"times": [2]}}]}"#;
//! let case = &cases(file, "bells")?[0];
//! let call = Call { name: "ring".to_owned(), parameters: serde_json::json!({"times": 3}) };
//! let scored = score(case, &[], Prediction::calls(vec![call]), Scoring::Strict);
//! assert_eq!(scored.reason.map(|reason| reason.name()), Some("wrong_value"));
//! # Ok::<(), call_me_maybe::eval::LabelError>(())
//! ```
//!
//! **Invariant:** no I/O and no model here: cases and predictions are bytes, a file's name is added by the caller.
//! **Invariant:** a verdict depends on the case and its prediction alone, never on another case.

mod equality;
mod berkeley;
mod exercise;
mod labels;
mod figures;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definitions::FunctionDef;
use crate::input::Request;

pub use berkeley::{Answer, Rule};
pub use exercise::{Grade, Label};
pub use figures::{
    Category, Comparison, Earlier, Grades, ModelFile, Ranked, Reliability, Report, Summary, Tally,
    TradeOff, sign_test,
};
pub use labels::{LabelError, cases, predictions};

/// A request and what its right answers are.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file's own id, else its name and the number of the record.
    pub id: Value,
    /// What it is counted under: the record's own, else the name of its file.
    pub category: String,
    /// What a model is asked.
    pub request: Request,
    /// What is right.
    pub expected: Expected,
}

/// The label of a case.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Calls, with the values that each parameter may have.
    Calls {
        /// How many there should be, and which is held against which.
        rule: Rule,
        /// One for each call.
        answers: Vec<Answer>,
    },
    /// One call, with parameters as the exercise writes them.
    Exercise(Label),
}

/// How much like the label a call must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scoring {
    /// As the leaderboard does it; of the exercise, equal parameters.
    #[default]
    Strict,
    /// `1` is `1.0` and strings are compared loosely at any depth, calls are given to answers in the best way;
    /// of the exercise, parameters whose numbers are equal by value.
    Lenient,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The function; empty where it is no text.
    pub name: String,
    /// Its arguments, of any type: what is no object is wrong.
    pub parameters: Value,
}

/// What became of a case before it is judged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prediction {
    /// The calls, none where no function fits; `None` where there is no answer.
    pub calls: Option<Vec<Call>>,
    /// Why there is no answer, or what is wrong with it.
    pub error: Option<String>,
    /// How likely the model held the calls, 0 to 1, where that is known.
    pub probability: Option<f64>,
    /// How likely the model held it that no function fits, 0 to 1, where it might have said so.
    pub no_call: Option<f64>,
}

impl Prediction {
    /// An answer.
    #[must_use]
    pub fn calls(calls: Vec<Call>) -> Self {
        Self { calls: Some(calls), ..Self::default() }
    }
}

/// Why an answer is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There is none.
    NoPrediction,
    /// A call where no function fits.
    Called,
    /// No call where one was expected.
    NoCall,
    /// More calls or fewer than expected.
    WrongCount,
    /// Another function.
    WrongFunction,
    /// The label names a function that is not among those of the case.
    BadRecord,
    /// Arguments that are no object.
    BadArguments,
    /// A required parameter is left out.
    MissingRequired,
    /// An argument that the function, or the label, has not.
    UnexpectedArgument,
    /// A value of another type.
    WrongType,
    /// A list with an item of another type.
    WrongItemType,
    /// Another value.
    WrongValue,
    /// A parameter is left out that the label wants.
    MissingArgument,
    /// Of several calls, none is this one.
    UnmatchedAnswer,
}

impl Reason {
    /// As it is written in files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoPrediction => "no_prediction",
            Self::Called => "called",
            Self::NoCall => "no_call",
            Self::WrongCount => "wrong_count",
            Self::WrongFunction => "wrong_function",
            Self::BadRecord => "bad_record",
            Self::BadArguments => "bad_arguments",
            Self::MissingRequired => "missing_required",
            Self::UnexpectedArgument => "unexpected_argument",
            Self::WrongType => "wrong_type",
            Self::WrongItemType => "wrong_item_type",
            Self::WrongValue => "wrong_value",
            Self::MissingArgument => "missing_argument",
            Self::UnmatchedAnswer => "unmatched_answer",
        }
    }
}

/// A reason with what it is about.
#[derive(Debug)]
struct Miss {
    reason: Reason,
    detail: String,
}

impl Miss {
    fn because<T>(reason: Reason, detail: impl Into<String>) -> Result<T, Self> {
        Err(Self { reason, detail: detail.into() })
    }
}

/// A case with its prediction and the verdict, as files have it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scored {
    /// Of the case.
    pub id: Value,
    /// Of the case.
    pub category: String,
    /// Of the case.
    pub prompt: String,
    /// The calls; none where no function fits, `null` where there is no answer.
    pub calls: Option<Vec<Call>>,
    /// Why there is no answer, or what is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How likely the model held the calls, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// How likely the model held it that no function fits, 0 to 1, where it might have said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_call: Option<f64>,
    /// The verdict.
    pub right: bool,
    /// Why it is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What the reason is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Of the exercise's prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
}

/// Judges what became of a case; `shared` are the functions of the cases that carry none of their own.
#[must_use]
pub fn score(
    case: &Case,
    shared: &[FunctionDef],
    prediction: Prediction,
    scoring: Scoring,
) -> Scored {
    let functions = case.request.functions.as_deref().unwrap_or(shared);
    let calls = prediction.calls.as_deref();
    let (verdict, grade) = match (&case.expected, calls) {
        (Expected::Calls { .. }, None) => (Miss::because(Reason::NoPrediction, ""), None),
        (Expected::Calls { rule, answers }, Some(calls)) => {
            (berkeley::judge(*rule, answers, calls, functions, scoring), None)
        }
        (Expected::Exercise(label), calls) => {
            let (grade, verdict) = exercise::grade(label, calls, functions, scoring);
            (verdict, Some(grade))
        }
    };
    let miss = verdict.err();
    Scored {
        id: case.id.clone(),
        category: case.category.clone(),
        prompt: case.request.prompt.clone(),
        right: miss.is_none(),
        reason: miss.as_ref().map(|miss| miss.reason),
        detail: miss.map(|miss| miss.detail).filter(|detail| !detail.is_empty()),
        grade,
        calls: prediction.calls,
        error: prediction.error,
        probability: prediction.probability,
        no_call: prediction.no_call,
    }
}
