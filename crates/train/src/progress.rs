//! Progress of a training: events and validations.
use serde::{Deserialize, Serialize};

use super::AnswerStyle;

/// Exact match for one task and length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellScore {
    /// Name of the task.
    pub task: String,
    #[serde(default, skip_serializing_if = "AnswerStyle::is_question")]
    pub style: AnswerStyle,
    /// Length in digits.
    pub length: usize,
    /// True if training covers the length; false if it is only validated.
    pub learnt: bool,
    /// Number of questions.
    pub questions: usize,
    /// Number of exact answers.
    pub exact: usize,
}

impl CellScore {
    /// Returns the task's name, and the style unless it is the plain question.
    pub fn name(&self) -> String {
        if self.style.is_question() { self.task.clone() } else { format!("{} {}", self.task, self.style) }
    }
}

/// Scores of a validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Completed steps.
    pub step: u64,
    /// Mean loss over the answers of trained lengths, in nats per token.
    pub loss: f64,
    /// Scores by task and length.
    pub cells: Vec<CellScore>,
}

impl Validation {
    /// Returns the mean exact match over the cells of trained lengths, equally weighted.
    pub fn exact(&self) -> f64 {
        let (sum, count) = self.learnt().fold((0.0, 0), |(sum, count), exact| (sum + exact, count + 1));
        sum / f64::from(count.max(1))
    }

    /// Returns the lowest exact match of a cell of a trained length.
    pub fn lowest(&self) -> f64 {
        self.learnt().reduce(f64::min).unwrap_or(0.0)
    }

    fn learnt(&self) -> impl Iterator<Item = f64> + '_ {
        let learnt = self.cells.iter().filter(|cell| cell.learnt && cell.questions > 0);
        learnt.map(|cell| cell.exact as f64 / cell.questions as f64)
    }
}

/// Event of a training: a line of its log, and the argument of its reporter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TrainEvent {
    /// A step is done.
    Step {
        /// Number of the step, from 1.
        step: u64,
        /// Mean loss over the targets, in nats per token.
        loss: f64,
        /// Learning rate.
        rate: f64,
        /// Global norm of the gradient before clipping.
        gradient: f64,
        /// Tokens of the batch, padding included.
        tokens: usize,
        /// Duration in seconds, the one value that is not reproducible.
        seconds: f64,
    },
    /// A validation is done.
    Validated(Validation),
    /// The steps were over without the criterion; the training goes on with other weights.
    Restarted {
        /// Completed steps, of all attempts.
        step: u64,
        /// Number of the restart, from 1.
        restart: u64,
    },
    /// The state is saved.
    Saved {
        /// Completed steps.
        step: u64,
    },
}
