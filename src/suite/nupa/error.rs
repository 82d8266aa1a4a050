//! What can be wrong with a request to the suite.
use crate::number::NumberError;

use super::TaskId;

/// An error of the NUPA suite. Messages list what exists.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NupaError {
    #[error("there is no NUPA task `{name}`; did you mean {nearest}? All tasks:\n{all}")]
    UnknownTask { name: String, nearest: String, all: String },
    #[error("no task is selected; name tasks, or leave the selection out for all 53")]
    NoTasks,
    #[error("length {length} is impossible for {task}: its lengths are 1 to {longest}")]
    ImpossibleLength { task: TaskId, length: usize, longest: usize },
    #[error("none of the selected lengths exists for {task}: its lengths are 1 to {longest}")]
    NoLengths { task: TaskId, longest: usize },
    #[error("{option}: {problem}")]
    Contradiction { option: &'static str, problem: String },
    #[error("{what} is not one of {expected}: `{value}`")]
    UnknownValue { what: &'static str, value: String, expected: String },
    #[error("{task} takes {expected}, got {got}")]
    Operands { task: TaskId, expected: &'static str, got: String },
    #[error("{task}: {source}")]
    Number { task: TaskId, source: NumberError },
    #[error("no rule exists for {task}; rules exist for:\n{existing}")]
    NoRule { task: TaskId, existing: String },
}
