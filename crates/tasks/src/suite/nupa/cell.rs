//! The questions of one task and length, in order, without duplicates.
//!
//! A question has exactly one home split because that is a function of its text: the same question under the
//! easy and the hard variant of a task, or with the operands of a commutative operation swapped, falls in the same one.
//! Within a cell, a question drawn before is drawn again from the same stream. Question `index` therefore needs
//! the ones before it (and nothing else), so a cell is a cheap iterator instead of a function of the index.
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::draw::{DigitSource, fingerprint};
use super::pairs::{PairRules, draw_pair};
use super::prepare::{Auxiliary, prepare, question_length};
use super::{NupaError, Operation, PairSource, Representation, TaskId, exact_answer};
use crate::suite::item_order::UnknownVersion;

/// Version of everything that decides what an item is.
pub const GENERATOR_VERSION: &str = "1";

/// Draws in a row without a new question of the split after which a cell counts as exhausted.
const PATIENCE: usize = 4000;

/// A part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Split {
    /// For training, and for worked examples.
    Train,
    /// For choosing checkpoints.
    Valid,
    /// For evaluation.
    Test,
}

impl Split {
    /// The name in options and ids.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Valid => "valid",
            Split::Test => "test",
        }
    }

    /// Home split of a question, by the fingerprint of its canonical text. Below five digits questions are few, and half of
    /// them are for testing.
    fn of(fingerprint: u64, length: usize) -> Split {
        let share = fingerprint >> 61;
        match (share, length) {
            (0..4, 0..=4) | (0..3, _) => Split::Test,
            (4, 0..=4) | (3, _) => Split::Valid,
            _ => Split::Train,
        }
    }
}

/// Version of the rule that says which questions `train` has. `valid` and `test` are the same in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum SplitVersion {
    /// No question is in two splits. Worked examples are drawn from this `train`.
    One,
    /// Every question of one and two digits is in `train`, in `valid` and `test` too: the facts of small numbers can only be learnt one by one.
    /// The paper leaves short lengths out of the test for the same reason (Number Cookbook, appendix A.3).
    #[default]
    Two,
}

/// Maximum length of questions that [`SplitVersion::Two`] has in `train` whatever their home split.
pub const LONGEST_SHARED: usize = 2;

impl SplitVersion {
    /// Returns true if a split has a question of this home split and length.
    pub fn contains(self, split: Split, home: Split, length: usize) -> bool {
        home == split || (self == SplitVersion::Two && split == Split::Train && length <= LONGEST_SHARED)
    }
}

impl TryFrom<u8> for SplitVersion {
    type Error = UnknownVersion;
    fn try_from(version: u8) -> Result<Self, UnknownVersion> {
        match version {
            1 => Ok(SplitVersion::One),
            2 => Ok(SplitVersion::Two),
            version => Err(UnknownVersion { of: "the splits", version }),
        }
    }
}

impl From<SplitVersion> for u8 {
    fn from(version: SplitVersion) -> u8 {
        match version {
            SplitVersion::One => 1,
            SplitVersion::Two => 2,
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Split {
    type Err = NupaError;
    fn from_str(name: &str) -> Result<Self, NupaError> {
        [Split::Train, Split::Valid, Split::Test].into_iter().find(|split| split.name() == name).ok_or_else(|| {
            NupaError::UnknownValue { what: "the split", value: name.into(), expected: "train, valid, test".into() }
        })
    }
}

/// A question in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub task: TaskId,
    /// Digits, as [`question_length`] counts them.
    pub length: usize,
    /// Its index in the cell.
    pub index: usize,
    /// The first operand.
    pub a: String,
    /// The second operand, where the task has one.
    pub b: Option<String>,
    /// The exact answer.
    pub answer: String,
}

impl Question {
    /// A question from operands given by hand, e.g. of a completion made elsewhere.
    ///
    /// # Errors
    /// As [`exact_answer`].
    pub fn from_operands(task: TaskId, a: &str, b: Option<&str>) -> Result<Self, NupaError> {
        let answer = exact_answer(task, a, b)?;
        let length = question_length(task, a, b);
        Ok(Question { task, length, index: 0, a: a.into(), b: b.map(Into::into), answer })
    }
}

/// An iterator over a cell's questions.
pub struct Cell {
    task: TaskId,
    length: usize,
    split: Split,
    version: SplitVersion,
    rules: PairRules,
    key: Sha256,
    next: usize,
    seen: HashSet<u64, std::hash::BuildHasherDefault<Identity>>,
    exhausted: bool,
}

impl Cell {
    /// The cell of `task` and `length` under a seed, of splits that share no question.
    ///
    /// # Errors
    /// [`NupaError::ImpossibleLength`].
    pub fn new(task: TaskId, length: usize, split: Split, rules: PairRules, seed: u64) -> Result<Self, NupaError> {
        if length == 0 || length > task.longest() {
            return Err(NupaError::ImpossibleLength { task, length, longest: task.longest() });
        }
        // A rule that does not concern the task must not change its questions: then runs with and without it can be paired.
        let hard_floats =
            task.pair_source() == PairSource::CompareHarder && task.representation == Representation::Float;
        let rules = PairRules { hard_floats_equal_length: rules.hard_floats_equal_length && hard_floats, ..rules };
        let name = format!("nupa {GENERATOR_VERSION} {seed} {split} {task} {length} {rules:?} ");
        let key = Sha256::new().chain_update(name);
        Ok(Cell {
            task,
            length,
            split,
            version: SplitVersion::One,
            rules,
            key,
            next: 0,
            seen: HashSet::default(),
            exhausted: false,
        })
    }

    /// Takes the questions that this version of the split has.
    pub fn with_version(mut self, version: SplitVersion) -> Self {
        self.version = version;
        self
    }

    /// Question `index`, or none if the cell has fewer.
    pub fn question(mut self, index: usize) -> Option<Question> {
        self.nth(index)
    }

    /// A question of the split by the number of its random stream, for training that never ends: streams are independent, so
    /// that small cells repeat themselves, and none is remembered.
    pub fn sample(&self, stream: usize) -> Option<Question> {
        self.candidates(stream).next()
    }

    /// Questions of this cell and split, repeats included, of one random stream.
    fn candidates(&self, stream: usize) -> impl Iterator<Item = Question> + use<> {
        let mut random = DigitSource::keyed(self.key.clone().chain_update(stream.to_le_bytes()));
        let (task, length, split, version, rules) = (self.task, self.length, self.split, self.version, self.rules);
        let draw = move |_| {
            let pair = draw_pair(task.pair_source(), task.representation, length, rules, &mut random);
            let mut auxiliary = if rules.reference { Auxiliary::Reference } else { Auxiliary::Uniform(&mut random) };
            let operands = prepare(task, pair, &mut auxiliary).expect("drawn pairs are well-formed");
            let (a, b) = (operands.a, operands.b);
            let found = question_length(task, &a, b.as_deref());
            if !rules.reference && (found != length || is_outside_task(task, &a, b.as_deref())) {
                return None;
            }
            let home = Split::of(canonical_fingerprint(task, &a, b.as_deref()), found);
            if !version.contains(split, home, found) {
                return None;
            }
            let answer = exact_answer(task, &a, b.as_deref()).expect("prepared operands have an answer");
            Some(Question { task, length: found, index: stream, a, b, answer })
        };
        (0..PATIENCE).filter_map(draw)
    }

    fn draw(&mut self) -> Option<Question> {
        let mut candidates = self.candidates(self.next);
        candidates.find(|found| self.seen.insert(fingerprint(&[&found.a, found.b.as_deref().unwrap_or_default()])))
    }
}

impl Iterator for Cell {
    type Item = Question;
    fn next(&mut self) -> Option<Question> {
        if self.exhausted {
            return None;
        }
        let question = self.draw();
        self.exhausted = question.is_none();
        self.next += 1;
        question
    }
}

/// Questions that preparation lets through but the paper's definition of the task excludes: fractions to compare are
/// below 1 (inversion leaves 1/1 as it is), and a division's first operand is at least the second (0 and 0 become 0 and 1).
fn is_outside_task(task: TaskId, a: &str, b: Option<&str>) -> bool {
    match (task.operation, task.representation) {
        (Operation::Max | Operation::Min, Representation::Fraction) => a == "1/1" || b == Some("1/1"),
        (Operation::FloorDiv | Operation::Mod | Operation::ModEasy, _) => a == "0",
        _ => false,
    }
}

/// One fingerprint for all questions that ask the same.
fn canonical_fingerprint(task: TaskId, a: &str, b: Option<&str>) -> u64 {
    let operation = match task.operation {
        Operation::AddEasy => Operation::Add,
        Operation::MultiplyEasy => Operation::MultiplyHard,
        Operation::ModEasy => Operation::Mod,
        Operation::MaxHard => Operation::Max,
        Operation::MinHard => Operation::Min,
        other => other,
    };
    let b = b.unwrap_or_default();
    let (a, b) = if task.operation.is_commutative() && b < a { (b, a) } else { (a, b) };
    fingerprint(&[operation.title(), task.representation.name(), a, b])
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct Identity(u64);

impl std::hash::Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |state, &byte| (state << 8) | u64::from(byte));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::super::TASKS;
    use super::*;

    fn cell(task: TaskId, length: usize, split: Split) -> Cell {
        Cell::new(task, length, split, PairRules::default(), 7).unwrap()
    }

    #[test]
    fn the_second_version_has_all_short_questions_in_train_and_no_other_change() {
        let task: TaskId = "max_Integer".parse().unwrap();
        let pairs = |split, length, version| -> HashSet<(String, Option<String>)> {
            let cell = cell(task, length, split).with_version(version);
            cell.take(20_000).map(|question| (question.a, question.b)).collect()
        };
        // Draws end before the last of the rarer pairs of two digits.
        for (length, share) in [(1, 1.0), (2, 0.98)] {
            let all: HashSet<_> = [Split::Train, Split::Valid, Split::Test]
                .map(|split| pairs(split, length, SplitVersion::One))
                .into_iter()
                .flatten()
                .collect();
            let found = pairs(Split::Train, length, SplitVersion::Two);
            let shared = found.intersection(&all).count() as f64;
            assert!(shared >= share * all.len() as f64, "{length}: {shared} of {}", all.len());
        }
        assert!(pairs(Split::Train, 1, SplitVersion::One).len() < pairs(Split::Train, 1, SplitVersion::Two).len());
        let first =
            |split, length, version| cell(task, length, split).with_version(version).take(60).collect::<Vec<_>>();
        for (split, length) in
            [(Split::Train, 3), (Split::Test, 1), (Split::Test, 2), (Split::Valid, 2), (Split::Test, 9)]
        {
            assert_eq!(
                first(split, length, SplitVersion::One),
                first(split, length, SplitVersion::Two),
                "{split} {length}"
            );
        }
    }

    #[test]
    fn no_duplicates_and_no_leaks() {
        for task in TASKS {
            for length in [1, 2, 3, 7] {
                let mut texts = HashSet::new();
                let mut asked = HashSet::new();
                for split in [Split::Train, Split::Valid, Split::Test] {
                    for question in cell(task, length, split).take(120) {
                        assert_eq!(question.length, length, "{question:?}");
                        let key = (question.a.clone(), question.b.clone());
                        assert!(texts.insert(key), "{question:?}");
                        asked.insert((canonical_fingerprint(task, &question.a, question.b.as_deref()), split));
                    }
                }
                let splits: HashSet<u64> = asked.iter().map(|(text, _)| *text).collect();
                assert_eq!(splits.len(), asked.len(), "{task} {length}");
            }
        }
    }

    #[test]
    fn a_question_can_be_made_alone() {
        let task = "add_Integer".parse().unwrap();
        let all: Vec<Question> = cell(task, 2, Split::Test).take(50).collect();
        assert_eq!(cell(task, 2, Split::Test).question(31).as_ref(), all.get(31));
    }

    #[test]
    fn small_cells_end() {
        let task = "length_Integer".parse().unwrap();
        let digits: Vec<Question> =
            [Split::Train, Split::Valid, Split::Test].into_iter().flat_map(|split| cell(task, 1, split)).collect();
        assert_eq!(digits.len(), 10);
    }

    #[test]
    fn seeds_and_rules_change_questions() {
        let task = "add_Float".parse().unwrap();
        let first = |seed, rules| Cell::new(task, 9, Split::Test, rules, seed).unwrap().next().unwrap();
        assert_ne!(first(1, PairRules::default()), first(2, PairRules::default()));
        assert!(matches!(
            Cell::new(task, 21, Split::Test, PairRules::default(), 1),
            Err(NupaError::ImpossibleLength { longest: 20, .. })
        ));
    }
}
