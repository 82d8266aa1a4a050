//! Errors of requests to the suite.
use earnest_answer::number::NumberError;

use super::TaskId;
use crate::suite::TooManySamples;

/// An error of the NUPA suite. Messages list what exists.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NupaError {
    /// A name that no task has.
    #[error("there is no NUPA task `{name}`; the nearest are {nearest}; `earnest suites` has all 53")]
    UnknownTask { name: String, nearest: String },
    /// An empty selection.
    #[error("no task is selected; name tasks, or leave the selection out for all 53")]
    NoTasks,
    /// A length outside the task's range.
    #[error("length {length} is impossible for {task}: its lengths are 1 to {longest}")]
    ImpossibleLength { task: TaskId, length: usize, longest: usize },
    /// Selected lengths of which the task has none.
    #[error("none of the selected lengths exists for {task}: its lengths are 1 to {longest}")]
    NoLengths { task: TaskId, longest: usize },
    /// Options that exclude each other.
    #[error("{option}: {problem}")]
    Contradiction { option: &'static str, problem: String },
    /// More items than a run has.
    #[error(transparent)]
    TooMany(#[from] TooManySamples),
    /// A value that the option does not take.
    #[error("{what} is not one of {expected}: `{value}`")]
    UnknownValue { what: &'static str, value: String, expected: String },
    /// Operands of the wrong number or form.
    #[error("{task} takes {expected}, got {got}")]
    Operands { task: TaskId, expected: &'static str, got: String },
    /// A question whose right answer no scorer can read.
    #[error(
        "{task} of {operands} is {answer}, which the NUPA Test cannot ask: its answers are not negative, and no exponent of them is"
    )]
    Unanswerable { task: TaskId, operands: String, answer: String },
    /// Operands without an exact answer.
    #[error("{task}: {source}")]
    Number { task: TaskId, source: NumberError },
    /// Rule following on a task without a rule.
    #[error("no rule exists for {task}; rules exist for:\n{existing}")]
    NoRule { task: TaskId, existing: String },
}
