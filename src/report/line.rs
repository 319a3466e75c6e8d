//! What is known of one prompt, as a line of the report file.

use serde::Serialize;
use serde_json::{Map, Value};

use super::CallReport;
use crate::confidence::Confidence;
use crate::grounding::{Grounding, grounding};
use crate::output::Record;
use crate::validate::FunctionCall;

/// A line of the report file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    prompt: String,
    calls: Vec<CallLine>,
    /// The probability that no function fits, where there might have been no call.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_call: Option<f64>,
    /// Optional arguments that the model made up.
    #[serde(skip_serializing_if = "Map::is_empty")]
    left_out: Map<String, Value>,
    n_tokens_chosen: usize,
    n_tokens_forced: usize,
    n_tokens_prefill: usize,
    elapsed_ms: f64,
    cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A call, and how much can be said for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct CallLine {
    #[serde(flatten)]
    call: FunctionCall,
    confidence: Option<Confidence>,
    grounding: Vec<Grounding>,
}

impl ReportLine {
    /// Of a prompt with the call that the model made, whether or not it is handed on.
    #[must_use]
    pub fn new(record: &Record, report: &CallReport, confidences: Vec<Confidence>) -> Self {
        let mut confidences = confidences.into_iter();
        let calls = record.calls.as_slice().iter().map(|call| CallLine {
            call: call.clone(),
            confidence: confidences.next(),
            grounding: grounding(&record.prompt, &call.parameters),
        });
        Self {
            id: record.id.clone(),
            prompt: record.prompt.clone(),
            calls: calls.collect(),
            no_call: report.no_call,
            left_out: report.left_out.iter().cloned().collect(),
            n_tokens_chosen: report.n_tokens_free,
            n_tokens_forced: report.n_tokens_forced,
            n_tokens_prefill: report.n_tokens_prefill,
            elapsed_ms: (report.elapsed.as_secs_f64() * 1e4).round() / 10.0,
            cut: report.cut,
            error: report.error.clone().or_else(|| record.error.clone()),
        }
    }

    /// The probability that no function fits, where there might have been no call.
    #[must_use]
    pub fn no_call(&self) -> Option<f64> {
        self.no_call
    }

    /// How sure the model was of all its calls, 0 to 1.
    #[must_use]
    pub fn probability(&self) -> Option<f64> {
        let calls = self.calls.iter().map(|one| Some(one.confidence.as_ref()?.call));
        let calls: Option<f64> = calls.product();
        calls.filter(|_| !self.calls.is_empty())
    }
}
