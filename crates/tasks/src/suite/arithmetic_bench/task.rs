//! The sixteen tasks.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A task of Tables 1 and 2 of the paper; `n` below is the length of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// `a + b`, both of `n` digits.
    Add,
    /// `a - b`, both of `n` digits, in any order: about half of the answers are negative.
    Sub,
    /// `a * b`, both of `n` digits.
    Mul,
    /// `floor(a / b)` of `2n` by `n` digits (Algorithm 1 and section 3.3; Table 1 says `n` by `n`).
    Div,
    /// `a + b` of `n` digits and one.
    #[serde(rename = "add_1")]
    Add1,
    /// `a - b` of `n` digits and one.
    #[serde(rename = "sub_1")]
    Sub1,
    /// `a * b` of `n` digits and one.
    #[serde(rename = "mul_1")]
    Mul1,
    /// `floor(a / b)` of `n` digits by one.
    #[serde(rename = "div_1")]
    Div1,
    /// The number itself.
    Copy,
    /// Its digits in reverse order, leading zeros kept.
    Rev,
    /// The number in brackets.
    Box,
    /// Its digits with one space between them.
    Space,
    /// The number of its digits, in brackets.
    Length,
    /// The number of its zeros, in brackets.
    Count,
    /// From binary (`n` bits) to decimal.
    B2d,
    /// From decimal (`n` digits) to binary.
    D2b,
}

/// The base in which an operand is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    Binary,
    Decimal,
}

/// Numbers of digits of an item's operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperandDigits {
    /// The base of `a`; `b` is always decimal.
    pub base: Base,
    pub a: usize,
    /// `None` for tasks on one number.
    pub b: Option<usize>,
}

/// A name that is no task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown arithmetic-bench task `{name}`; the tasks are {}", Task::ALL.map(Task::id).join(", "))]
pub struct UnknownTask {
    /// The name as given.
    pub name: String,
}

impl Task {
    /// All tasks, in the order of the paper's tables.
    pub const ALL: [Task; 16] = [
        Task::Add,
        Task::Sub,
        Task::Mul,
        Task::Div,
        Task::Add1,
        Task::Sub1,
        Task::Mul1,
        Task::Div1,
        Task::Copy,
        Task::Rev,
        Task::Box,
        Task::Space,
        Task::Length,
        Task::Count,
        Task::B2d,
        Task::D2b,
    ];

    /// The name on the command line and in item ids.
    pub fn id(self) -> &'static str {
        match self {
            Task::Add => "add",
            Task::Sub => "sub",
            Task::Mul => "mul",
            Task::Div => "div",
            Task::Add1 => "add_1",
            Task::Sub1 => "sub_1",
            Task::Mul1 => "mul_1",
            Task::Div1 => "div_1",
            Task::Copy => "copy",
            Task::Rev => "rev",
            Task::Box => "box",
            Task::Space => "space",
            Task::Length => "length",
            Task::Count => "count",
            Task::B2d => "b2d",
            Task::D2b => "d2b",
        }
    }

    /// The digits of the operands of an item of length `n`.
    pub fn operand_digits(self, n: usize) -> OperandDigits {
        let (base, a, b) = match self {
            Task::Add | Task::Sub | Task::Mul => (Base::Decimal, n, Some(n)),
            Task::Div => (Base::Decimal, 2 * n, Some(n)),
            Task::Add1 | Task::Sub1 | Task::Mul1 | Task::Div1 => (Base::Decimal, n, Some(1)),
            Task::B2d => (Base::Binary, n, None),
            Task::Copy | Task::Rev | Task::Box | Task::Space | Task::Length | Task::Count | Task::D2b => {
                (Base::Decimal, n, None)
            }
        };
        OperandDigits { base, a, b }
    }

    /// True for the tasks whose second operand has one digit.
    pub fn has_single_digit_operand(self) -> bool {
        matches!(self, Task::Add1 | Task::Sub1 | Task::Mul1 | Task::Div1)
    }

    /// An upper bound on the characters of an answer at length `n`.
    pub fn longest_answer(self, n: usize) -> usize {
        match self {
            Task::Add | Task::Add1 | Task::Mul1 | Task::Sub | Task::Sub1 | Task::Div => n + 1,
            Task::Mul => 2 * n,
            Task::Div1 | Task::Copy | Task::Rev | Task::B2d => n,
            Task::Box => n + 2,
            Task::Space => (2 * n).saturating_sub(1),
            Task::Length | Task::Count => 2 + n.to_string().len(),
            // log2(10) < 3.322
            Task::D2b => (n * 3322).div_ceil(1000),
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

impl FromStr for Task {
    type Err = UnknownTask;

    /// Reads an id; the paper's `len` is taken as well.
    fn from_str(name: &str) -> Result<Self, UnknownTask> {
        let wanted = if name == "len" { "length" } else { name };
        Task::ALL.into_iter().find(|task| task.id() == wanted).ok_or_else(|| UnknownTask { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back() {
        for task in Task::ALL {
            assert_eq!(task.to_string().parse(), Ok(task));
            assert_eq!(serde_json::to_value(task).unwrap(), task.id());
        }
        assert_eq!("len".parse(), Ok(Task::Length));
    }

    #[test]
    fn an_unknown_task_is_answered_with_all_of_them() {
        for name in ["", "ADD", "add1", "modulo"] {
            let message = name.parse::<Task>().unwrap_err().to_string();
            assert!(message.contains(&format!("`{name}`")));
            assert!(Task::ALL.iter().all(|task| message.contains(task.id())));
        }
    }
}
