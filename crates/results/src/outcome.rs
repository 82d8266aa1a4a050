//! Outcomes of samples, without their texts, for summaries.
use std::sync::Arc;

use super::SampleFailure;
use earnest_engine::FinishReason;
use earnest_tasks::suite::Score;

/// Outcome of a sample, without prompt, completion and token ids.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Index in the run's plan.
    pub index: usize,
    pub item: String,
    pub sample: u32,
    pub task: String,
    pub cluster: String,
    pub prompt_tokens: usize,
    /// Token budget.
    pub budget: usize,
    /// The budget clipped to the context.
    pub max_tokens: usize,
    /// Finish reason; none if the sample failed.
    pub finish: Option<FinishReason>,
    /// Number of completion tokens.
    pub tokens: usize,
    pub cached_tokens: usize,
    /// Score without its answer. Equal scores are shared, so that those of a million samples take little memory.
    pub score: Option<Arc<Score>>,
    pub failure: Option<SampleFailure>,
}

impl Outcome {
    /// True if the token budget ended the completion.
    pub fn truncated(&self) -> bool {
        self.finish == Some(FinishReason::Length)
    }
}
