//! What is known of one prompt, as a line of the report file.

use serde::Serialize;
use serde_json::Value;

use super::CallReport;
use crate::confidence::{Confidence, Grounding, grounding};
use crate::output::Record;

/// A line of the report file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    prompt: String,
    name: Option<String>,
    parameters: Value,
    confidence: Option<Confidence>,
    grounding: Vec<Grounding>,
    n_tokens_chosen: usize,
    n_tokens_forced: usize,
    n_tokens_prefill: usize,
    elapsed_ms: f64,
    cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl ReportLine {
    /// Of a prompt with the call that the model made, whether or not it is handed on.
    #[must_use]
    pub fn new(record: &Record, report: &CallReport, confidence: Option<Confidence>) -> Self {
        Self {
            id: record.id.clone(),
            prompt: record.prompt.clone(),
            name: record.name.as_ref().map(ToString::to_string),
            parameters: record.parameters.clone(),
            confidence,
            grounding: grounding(&record.prompt, &record.parameters),
            n_tokens_chosen: report.n_tokens_free,
            n_tokens_forced: report.n_tokens_forced,
            n_tokens_prefill: report.n_tokens_prefill,
            elapsed_ms: (report.elapsed.as_secs_f64() * 1e4).round() / 10.0,
            cut: report.cut,
            error: report.error.clone().or_else(|| record.error.clone()),
        }
    }

    /// How sure the model was of the call, 0 to 1.
    #[must_use]
    pub fn probability(&self) -> Option<f64> {
        self.confidence.as_ref().map(|confidence| confidence.call)
    }
}
