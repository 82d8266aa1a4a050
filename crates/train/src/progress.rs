//! What a training tells.
use serde::{Deserialize, Serialize};

/// Exact match of one task at one length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellScore {
    /// The task.
    pub task: String,
    /// Digits.
    pub length: usize,
    /// The length is learnt, not only validated.
    pub learnt: bool,
    /// Questions.
    pub questions: usize,
    /// Answered exactly.
    pub exact: usize,
}

/// A validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Steps before it.
    pub step: u64,
    /// Mean loss of the learnt cells' answers, in nats a token.
    pub loss: f64,
    /// By task and length.
    pub cells: Vec<CellScore>,
}

impl Validation {
    /// Exact match over the learnt lengths, every cell counting the same.
    pub fn exact(&self) -> f64 {
        let learnt: Vec<f64> = self
            .cells
            .iter()
            .filter(|cell| cell.learnt && cell.questions > 0)
            .map(|cell| cell.exact as f64 / cell.questions as f64)
            .collect();
        learnt.iter().sum::<f64>() / learnt.len().max(1) as f64
    }
}

/// A line of the log, and what reporters see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TrainEvent {
    /// A step was made.
    Step {
        /// Its number, from 1.
        step: u64,
        /// Mean loss of its answers' tokens, in nats.
        loss: f64,
        /// The learning rate.
        rate: f64,
        /// Norm of the gradient before clipping.
        gradient: f64,
        /// Tokens computed, padding included.
        tokens: usize,
        /// Seconds it took; the one thing that another machine does not repeat.
        seconds: f64,
    },
    /// A validation was made.
    Validated(Validation),
    /// Everything needed to go on is in a file.
    Saved {
        /// Steps done.
        step: u64,
    },
}
