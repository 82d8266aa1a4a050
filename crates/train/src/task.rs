//! Training tasks: those of the NUPA Test, those of Arithmetic-Bench on integers, and the digits of constants.
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::TrainError;
use super::memorise::{self, Constant, DigitQuestion, UnknownConstant};
use earnest_tasks::suite::arithmetic_bench;
use earnest_tasks::suite::nupa::{self, Cell, DigitSource, PairRules, Split, SplitVersion, TaskId};

/// Prefix of the names of Arithmetic-Bench's tasks.
const BENCH: &str = "arithmetic-bench:";

/// Prefix of the names of memorisation tasks.
pub(super) const MEMORISE: &str = "memorise:";

/// Consecutive draws outside the split after which a cell counts as empty, as in NUPA.
const MAX_DRAWS: usize = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingTask {
    /// Task of the NUPA Test: `add_Integer`.
    Nupa(TaskId),
    /// Task of Arithmetic-Bench: `arithmetic-bench:copy`.
    ArithmeticBench(arithmetic_bench::Task),
    /// Digits of a constant by position: `memorise:pi`. The length is the number of digits.
    Memorise(Constant),
}

impl FromStr for TrainingTask {
    type Err = TrainError;

    fn from_str(name: &str) -> Result<Self, TrainError> {
        let invalid = |problem: String| TrainError::Setting { setting: "tasks", problem };
        if let Some(constant) = name.trim().strip_prefix(MEMORISE) {
            let constant = constant.parse().map_err(|error: UnknownConstant| invalid(error.to_string()))?;
            return Ok(TrainingTask::Memorise(constant));
        }
        match name.trim().strip_prefix(BENCH) {
            Some(name) => {
                let task: arithmetic_bench::Task =
                    name.parse().map_err(|error: arithmetic_bench::UnknownTask| invalid(error.to_string()))?;
                Ok(TrainingTask::ArithmeticBench(task))
            }
            None => Ok(TrainingTask::Nupa(name.parse().map_err(|error: nupa::NupaError| invalid(error.to_string()))?)),
        }
    }
}

impl fmt::Display for TrainingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrainingTask::Nupa(task) => f.pad(&task.short_name()),
            TrainingTask::ArithmeticBench(task) => f.pad(&format!("{BENCH}{task}")),
            TrainingTask::Memorise(constant) => f.pad(&format!("{MEMORISE}{constant}")),
        }
    }
}

impl TrainingTask {
    /// Returns the maximum length in the task's suite.
    pub fn longest(self) -> usize {
        match self {
            TrainingTask::Nupa(task) => task.longest(),
            TrainingTask::ArithmeticBench(_) => 100,
            TrainingTask::Memorise(_) => memorise::MAX_DIGITS,
        }
    }
}

/// Question of a training task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrainingQuestion {
    /// Question of the NUPA Test.
    Nupa(nupa::Question),
    ArithmeticBench(arithmetic_bench::Question),
    /// Question for a digit of a constant.
    Memorise(DigitQuestion),
}

impl TrainingQuestion {
    pub fn task(&self) -> TrainingTask {
        match self {
            TrainingQuestion::Nupa(question) => TrainingTask::Nupa(question.task),
            TrainingQuestion::ArithmeticBench(question) => TrainingTask::ArithmeticBench(question.task()),
            TrainingQuestion::Memorise(question) => TrainingTask::Memorise(question.constant),
        }
    }

    /// Returns the length in digits, as the suite counts them; for a constant, the number of digits to memorise.
    pub fn length(&self) -> usize {
        match self {
            TrainingQuestion::Nupa(question) => question.length,
            TrainingQuestion::ArithmeticBench(question) => question.length(),
            TrainingQuestion::Memorise(question) => question.count,
        }
    }

    pub fn operands(&self) -> (&str, Option<&str>) {
        match self {
            TrainingQuestion::Nupa(question) => (&question.a, question.b.as_deref()),
            TrainingQuestion::ArithmeticBench(question) => (question.a(), question.b()),
            TrainingQuestion::Memorise(question) => (&question.position, None),
        }
    }

    /// Returns the exact answer, plainly formatted.
    pub fn answer(&self) -> String {
        match self {
            TrainingQuestion::Nupa(question) => question.answer.clone(),
            TrainingQuestion::ArithmeticBench(question) => question.answer(),
            TrainingQuestion::Memorise(question) => question.answer(),
        }
    }
}

/// Questions of one task, length and split.
pub(super) enum TaskCell {
    Nupa(Cell),
    ArithmeticBench { task: arithmetic_bench::Task, length: usize, split: (Split, SplitVersion), seed: u64 },
    Memorise { constant: Constant, count: usize, split: Split, seed: u64 },
}

impl TaskCell {
    /// Creates a cell.
    ///
    /// # Errors
    /// [`TrainError::Setting`] if the task has no such length.
    pub(super) fn new(
        task: TrainingTask,
        length: usize,
        (split, version): (Split, SplitVersion),
        rules: PairRules,
        seed: u64,
    ) -> Result<Self, TrainError> {
        Ok(match task {
            TrainingTask::Nupa(task) => TaskCell::Nupa(
                Cell::new(task, length, split, rules, seed)
                    .map(|cell| cell.with_version(version))
                    .map_err(|error| TrainError::Setting { setting: "lengths", problem: error.to_string() })?,
            ),
            TrainingTask::ArithmeticBench(task) => {
                TaskCell::ArithmeticBench { task, length, split: (split, version), seed }
            }
            TrainingTask::Memorise(constant) => TaskCell::Memorise { constant, count: length, split, seed },
        })
    }

    /// Draws a question from a numbered random stream; different streams may repeat a question.
    pub(super) fn sample(&self, stream: usize) -> Option<TrainingQuestion> {
        match self {
            TaskCell::Nupa(cell) => cell.sample(stream).map(TrainingQuestion::Nupa),
            TaskCell::Memorise { constant, count, split, seed } => {
                DigitQuestion::sample(*constant, *count, *split, *seed, stream).map(TrainingQuestion::Memorise)
            }
            TaskCell::ArithmeticBench { task, length, split: (split, version), seed } => {
                let mut random = DigitSource::named(&format!("train bench {seed} {split} {task} {length} {stream}"));
                (0..MAX_DRAWS).find_map(|_| {
                    let digits = task.operand_digits(*length);
                    let a = number(digits.a, digits.base == arithmetic_bench::Base::Binary, &mut random);
                    let b = digits.b.map(|count| number(count, false, &mut random));
                    let home = split_of(*task, &a, b.as_deref(), *length);
                    let matches = version.contains(*split, home, *length);
                    let question = || arithmetic_bench::Question::new(*task, &a, b.as_deref()).ok();
                    matches.then(question).flatten().map(TrainingQuestion::ArithmeticBench)
                })
            }
        }
    }
}

/// Draws a number with this many digits.
fn number(digits: usize, binary: bool, random: &mut DigitSource) -> String {
    let mut text = String::with_capacity(digits);
    if binary {
        text.push('1');
        text.extend((1..digits).map(|_| if random.chance(1, 2) { '1' } else { '0' }));
    } else {
        random.nonzero_digit(&mut text);
        random.digits(digits - 1, &mut text);
    }
    text
}

/// Returns the split of a question. Arithmetic-Bench defines none: its items are drawn from all splits, so some of its short items
/// are in training. The shares are those of the NUPA Test.
fn split_of(task: arithmetic_bench::Task, a: &str, b: Option<&str>, length: usize) -> Split {
    use arithmetic_bench::Task;
    let b = b.unwrap_or_default();
    let ordered = matches!(task, Task::Add | Task::Mul) && b < a;
    let (a, b) = if ordered { (b, a) } else { (a, b) };
    let share = Sha256::digest(format!("arithmetic-bench {task} {a} {b}"))[0] >> 5;
    match (share, length) {
        (0..4, 0..=4) | (0..3, _) => Split::Test,
        (4, 0..=4) | (3, _) => Split::Valid,
        _ => Split::Train,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_ones_are_refused() {
        for name in ["add_Integer", "arithmetic-bench:copy", "memorise:pi", "memorise:e"] {
            assert_eq!(name.parse::<TrainingTask>().unwrap().to_string(), name);
        }
        for name in ["copy", "arithmetic-bench:min", "arithmetic-bench", "memorise:phi", "memorise"] {
            assert!(name.parse::<TrainingTask>().is_err(), "{name}");
        }
    }

    #[test]
    fn splits_of_arithmetic_bench_are_disjoint() {
        use std::collections::BTreeSet;
        let ask = |split| -> BTreeSet<(String, Option<String>)> {
            let task = "arithmetic-bench:add".parse().unwrap();
            let cell = TaskCell::new(task, 2, (split, SplitVersion::One), PairRules::default(), 1).unwrap();
            let questions = (0..600).filter_map(|stream| cell.sample(stream));
            questions
                .map(|question| (question.operands().0.to_owned(), question.operands().1.map(Into::into)))
                .collect()
        };
        let (train, valid, test) = (ask(Split::Train), ask(Split::Valid), ask(Split::Test));
        assert!(train.len() > 400 && valid.len() > 100 && test.len() > 400);
        assert!(train.is_disjoint(&valid) && train.is_disjoint(&test) && valid.is_disjoint(&test));
    }
}
