//! Tasks that are streamed: those of the NUPA Test, and those of Arithmetic-Bench on whole numbers.
use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::TrainError;
use super::memorise::{self, Constant, DigitQuestion};
use earnest_tasks::suite::arithmetic_bench;
use earnest_tasks::suite::nupa::{self, Cell, DigitSource, PairRules, Split, TaskId};

/// Before a task's name, it says that Arithmetic-Bench is meant.
const BENCH: &str = "arithmetic-bench:";

/// Before the name of a constant, it says that its digits are to be remembered.
const MEMORISE: &str = "memorise:";

/// Draws in a row without a question of the split after which a cell counts as empty, as in NUPA.
const PATIENCE: usize = 4000;

/// A task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingTask {
    /// Of the NUPA Test: `add_Integer`.
    Nupa(TaskId),
    /// Of Arithmetic-Bench: `arithmetic-bench:copy`.
    ArithmeticBench(arithmetic_bench::Task),
    /// The digits of a constant by their place: `memorise:pi`. Its length is the number of digits.
    Memorise(Constant),
}

impl FromStr for TrainingTask {
    type Err = TrainError;

    fn from_str(name: &str) -> Result<Self, TrainError> {
        let wrong = |problem: String| TrainError::Setting { setting: "tasks", problem };
        if let Some(constant) = name.trim().strip_prefix(MEMORISE) {
            let unknown = || wrong(format!("there are digits of pi and of e to remember, none of {constant:?}"));
            return Ok(TrainingTask::Memorise(constant.parse().map_err(|()| unknown())?));
        }
        match name.trim().strip_prefix(BENCH) {
            Some(name) => {
                let task: arithmetic_bench::Task =
                    name.parse().map_err(|error: arithmetic_bench::UnknownTask| wrong(error.to_string()))?;
                Ok(TrainingTask::ArithmeticBench(task))
            }
            None => Ok(TrainingTask::Nupa(name.parse().map_err(|error: nupa::NupaError| wrong(error.to_string()))?)),
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
    /// The longest numbers that the task's suite asks.
    pub fn longest(self) -> usize {
        match self {
            TrainingTask::Nupa(task) => task.longest(),
            TrainingTask::ArithmeticBench(_) => 100,
            TrainingTask::Memorise(_) => memorise::MOST,
        }
    }
}

/// A question of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrainingQuestion {
    /// Of the NUPA Test.
    Nupa(nupa::Question),
    /// Of Arithmetic-Bench.
    ArithmeticBench(arithmetic_bench::Question),
    /// Of a constant.
    Memorise(DigitQuestion),
}

impl TrainingQuestion {
    /// Its task.
    pub fn task(&self) -> TrainingTask {
        match self {
            TrainingQuestion::Nupa(question) => TrainingTask::Nupa(question.task),
            TrainingQuestion::ArithmeticBench(question) => TrainingTask::ArithmeticBench(question.task()),
            TrainingQuestion::Memorise(question) => TrainingTask::Memorise(question.constant),
        }
    }

    /// Digits, as its suite counts them; of a constant, those that are to be remembered.
    pub fn length(&self) -> usize {
        match self {
            TrainingQuestion::Nupa(question) => question.length,
            TrainingQuestion::ArithmeticBench(question) => question.length(),
            TrainingQuestion::Memorise(question) => question.count,
        }
    }

    /// Its operands.
    pub fn operands(&self) -> (&str, Option<&str>) {
        match self {
            TrainingQuestion::Nupa(question) => (&question.a, question.b.as_deref()),
            TrainingQuestion::ArithmeticBench(question) => (question.a(), question.b()),
            TrainingQuestion::Memorise(question) => (&question.place, None),
        }
    }

    /// The exact answer, plain.
    pub fn answer(&self) -> String {
        match self {
            TrainingQuestion::Nupa(question) => question.answer.clone(),
            TrainingQuestion::ArithmeticBench(question) => question.answer(),
            TrainingQuestion::Memorise(question) => question.answer(),
        }
    }
}

/// The questions of one task, length and part of the data.
pub(super) enum TaskCell {
    Nupa(Cell),
    ArithmeticBench { task: arithmetic_bench::Task, length: usize, split: Split, seed: u64 },
    Memorise { constant: Constant, count: usize, split: Split, seed: u64 },
}

impl TaskCell {
    pub(super) fn new(
        task: TrainingTask,
        length: usize,
        split: Split,
        rules: PairRules,
        seed: u64,
    ) -> Result<Self, TrainError> {
        Ok(match task {
            TrainingTask::Nupa(task) => TaskCell::Nupa(
                Cell::new(task, length, split, rules, seed)
                    .map_err(|error| TrainError::Setting { setting: "lengths", problem: error.to_string() })?,
            ),
            TrainingTask::ArithmeticBench(task) => TaskCell::ArithmeticBench { task, length, split, seed },
            TrainingTask::Memorise(constant) => TaskCell::Memorise { constant, count: length, split, seed },
        })
    }

    /// A question by the number of its random stream, repeats included.
    pub(super) fn sample(&self, stream: usize) -> Option<TrainingQuestion> {
        match self {
            TaskCell::Nupa(cell) => cell.sample(stream).map(TrainingQuestion::Nupa),
            TaskCell::Memorise { constant, count, split, seed } => {
                DigitQuestion::sample(*constant, *count, *split, *seed, stream).map(TrainingQuestion::Memorise)
            }
            TaskCell::ArithmeticBench { task, length, split, seed } => {
                let mut random = DigitSource::named(&format!("train bench {seed} {split} {task} {length} {stream}"));
                (0..PATIENCE).find_map(|_| {
                    let digits = task.operand_digits(*length);
                    let a = number(digits.a, digits.base == arithmetic_bench::Base::Binary, &mut random);
                    let b = digits.b.map(|count| number(count, false, &mut random));
                    let found = part(*task, &a, b.as_deref(), *length) == *split;
                    let question = || arithmetic_bench::Question::new(*task, &a, b.as_deref()).ok();
                    found.then(question).flatten().map(TrainingQuestion::ArithmeticBench)
                })
            }
        }
    }
}

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

/// The part of the data of a question. Arithmetic-Bench has none of its own: its items are drawn from all parts, so among
/// short numbers some of its items are learnt. The shares are those of the NUPA Test.
fn part(task: arithmetic_bench::Task, a: &str, b: Option<&str>, length: usize) -> Split {
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
    fn names_come_back_and_others_are_refused() {
        for name in ["add_Integer", "arithmetic-bench:copy", "memorise:pi", "memorise:e"] {
            assert_eq!(name.parse::<TrainingTask>().unwrap().to_string(), name);
        }
        for name in ["copy", "arithmetic-bench:min", "arithmetic-bench", "memorise:phi", "memorise"] {
            assert!(name.parse::<TrainingTask>().is_err(), "{name}");
        }
    }

    #[test]
    fn parts_of_arithmetic_bench_share_no_question() {
        use std::collections::BTreeSet;
        let ask = |split| -> BTreeSet<(String, Option<String>)> {
            let task = "arithmetic-bench:add".parse().unwrap();
            let cell = TaskCell::new(task, 2, split, PairRules::default(), 1).unwrap();
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
