//! A question from its operands: the prompt of Table 3 and the exact answer.
use std::sync::LazyLock;

use num_bigint::{BigInt, BigUint};
use serde::Deserialize;

use super::{Base, Task};

/// A task with its operands, checked to be what the generator can produce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    task: Task,
    length: usize,
    a: String,
    b: Option<String>,
}

/// Operands that no item of the task has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperandError {
    #[error("operand {name} of {task} is {text:?}: write a positive {base} number without sign and leading zeros")]
    NotANumber { task: Task, name: char, text: String, base: &'static str },
    #[error("{task} takes {} number(s), not {given}", if *.given == 1 { 2 } else { 1 })]
    Count { task: Task, given: usize },
    #[error("{task} takes operands of {expected}, not of {a} and {b} digits")]
    Digits { task: Task, a: usize, b: usize, expected: &'static str },
}

impl Question {
    /// Checks the operands against the task's generator and works out the length.
    ///
    /// # Errors
    /// If an operand is no number of the right base, is missing, is one too many, or has the wrong number of digits.
    pub fn new(task: Task, a: &str, b: Option<&str>) -> Result<Self, OperandError> {
        let digits = task.operand_digits(1);
        if digits.b.is_some() != b.is_some() {
            return Err(OperandError::Count { task, given: 1 + usize::from(b.is_some()) });
        }
        check(task, 'a', a, digits.base)?;
        if let Some(b) = b {
            check(task, 'b', b, Base::Decimal)?;
        }
        let (length, expected) = match task {
            Task::Add | Task::Sub | Task::Mul => (a.len(), "equal length"),
            Task::Div => (b.map_or(0, str::len), "2n and n digits"),
            Task::Add1 | Task::Sub1 | Task::Mul1 | Task::Div1 => (a.len(), "any length and one digit"),
            _ => (a.len(), "any length"),
        };
        let digits = task.operand_digits(length);
        if digits.a != a.len() || digits.b != b.map(str::len) {
            return Err(OperandError::Digits { task, a: a.len(), b: b.map_or(0, str::len), expected });
        }
        Ok(Question { task, length, a: a.to_owned(), b: b.map(str::to_owned) })
    }

    pub fn task(&self) -> Task {
        self.task
    }

    /// The length `n`: digits of the operands (of the divisor for `div`), bits for `b2d`.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The first operand.
    pub fn a(&self) -> &str {
        &self.a
    }

    /// The second operand, if the task has one.
    pub fn b(&self) -> Option<&str> {
        self.b.as_deref()
    }

    /// The prompt of Table 3.
    pub fn prompt(&self) -> String {
        prompt(self.task, &self.a).replace("{b}", self.b.as_deref().unwrap_or_default())
    }

    /// The exact answer in the form in which it is looked for.
    pub fn answer(&self) -> String {
        let a = || number(&self.a, 10);
        let b = || number(self.b.as_deref().expect("`new` has checked that tasks on two numbers have two"), 10);
        match self.task {
            Task::Add | Task::Add1 => (a() + b()).to_string(),
            Task::Sub | Task::Sub1 => (BigInt::from(a()) - BigInt::from(b())).to_string(),
            Task::Mul | Task::Mul1 => (a() * b()).to_string(),
            // The divisor is positive: its first digit is not zero.
            Task::Div | Task::Div1 => (a() / b()).to_string(),
            Task::Copy => self.a.clone(),
            Task::Rev => self.a.chars().rev().collect(),
            Task::Box => format!("({})", self.a),
            Task::Space => self.a.chars().map(String::from).collect::<Vec<_>>().join(" "),
            Task::Length => format!("({})", self.a.len()),
            Task::Count => format!("({})", self.a.bytes().filter(|b| *b == b'0').count()),
            Task::B2d => number(&self.a, 2).to_string(),
            Task::D2b => a().to_str_radix(2),
        }
    }
}

fn check(task: Task, name: char, text: &str, base: Base) -> Result<(), OperandError> {
    let (digits, base) = match base {
        Base::Binary => (b'0'..=b'1', "binary"),
        Base::Decimal => (b'0'..=b'9', "decimal"),
    };
    let valid = !text.is_empty() && !text.starts_with('0') && text.bytes().all(|b| digits.contains(&b));
    if valid { Ok(()) } else { Err(OperandError::NotANumber { task, name, text: text.to_owned(), base }) }
}

fn number(digits: &str, radix: u32) -> BigUint {
    BigUint::parse_bytes(digits.as_bytes(), radix).expect("`new` has checked the digits")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptFile {
    #[expect(dead_code, reason = "for readers of the file")]
    source: String,
    #[expect(dead_code, reason = "for readers of the file")]
    notes: String,
    prompts: Vec<Prompt>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    task: Task,
    template: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests render it and compare the hash"))]
    example: Example,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "the tests render it and compare the hash"))]
struct Example {
    a: String,
    b: Option<String>,
    sha256: String,
}

static PROMPTS: LazyLock<PromptFile> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../../prompts/arithmetic-bench.json"))
        .expect("the file is compiled in and the tests read it")
});

/// The prompt of a task with its first operand, in any spelling.
pub(crate) fn prompt(task: Task, a: &str) -> String {
    template(task).template.replace("{a}", a)
}

fn template(task: Task) -> &'static Prompt {
    PROMPTS.prompts.iter().find(|prompt| prompt.task == task).expect("the tests check that every task has a prompt")
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn every_task_renders_to_the_recorded_hash() {
        assert_eq!(PROMPTS.prompts.iter().map(|prompt| prompt.task).collect::<Vec<_>>(), Task::ALL);
        for task in Task::ALL {
            let example = &template(task).example;
            let prompt = Question::new(task, &example.a, example.b.as_deref()).unwrap().prompt();
            let hash: String = Sha256::digest(&prompt).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, example.sha256, "{task}: {prompt:?}");
        }
    }

    fn answer(task: Task, a: &str, b: Option<&str>) -> String {
        Question::new(task, a, b).unwrap().answer()
    }

    #[test]
    fn answers_of_every_task() {
        use Task::*;
        for (task, a, b, expected) in [
            (Add, "95", "47", "142"),
            (Sub, "47", "95", "-48"),
            (Sub, "47", "47", "0"),
            (Mul, "99", "99", "9801"),
            (Div, "1000", "99", "10"),
            (Div, "9999", "10", "999"),
            (Add1, "9", "9", "18"),
            (Sub1, "1", "9", "-8"),
            (Mul1, "100", "9", "900"),
            (Div1, "1", "6", "0"),
        ] {
            assert_eq!(answer(task, a, Some(b)), expected, "{task} {a} {b}");
        }
        for (task, a, expected) in [
            (Copy, "100", "100"),
            (Rev, "2100", "0012"),
            (Box, "7", "(7)"),
            (Space, "7", "7"),
            (Space, "701", "7 0 1"),
            (Length, "1000000000", "(10)"),
            (Count, "100200", "(4)"),
            (B2d, "1", "1"),
            (B2d, "11111111111111111111111111111111111111111111111111111111111111111", "36893488147419103231"),
            (D2b, "18446744073709551616", &format!("1{}", "0".repeat(64))),
        ] {
            assert_eq!(answer(task, a, None), expected, "{task} {a}");
        }
    }

    #[test]
    fn operands_the_generator_cannot_produce_are_refused() {
        for (task, a, b) in [
            (Task::Add, "12", None),
            (Task::Add, "12", Some("123")),
            (Task::Add, "012", Some("123")),
            (Task::Add, "", Some("1")),
            (Task::Add, "-1", Some("1")),
            (Task::Div, "12", Some("12")),
            (Task::Div, "12", Some("0")),
            (Task::Div1, "12", Some("0")),
            (Task::Mul1, "12", Some("12")),
            (Task::Copy, "12", Some("1")),
            (Task::B2d, "102", None),
            (Task::B2d, "01", None),
            (Task::Copy, "١٢", None),
        ] {
            assert!(Question::new(task, a, b).is_err(), "{task} {a:?} {b:?}");
        }
        let message = Question::new(Task::Add, "12", None).unwrap_err().to_string();
        assert_eq!(message, "add takes 2 number(s), not 1");
    }
}
