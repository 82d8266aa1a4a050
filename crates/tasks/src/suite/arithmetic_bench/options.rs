//! Options of the suite: tasks, lengths, items of each.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Task;
use crate::suite::{ItemOrder, TooManySamples, check_size};

/// Deciding scorer; the others are reported beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scorer {
    /// The expected number stands in the answer as a whole number.
    #[default]
    Boundary,
    /// The paper's: a plain substring.
    Compat,
    /// The last number of its shape.
    LastNumber,
    /// The answer as a careful person reads it ([`earnest_answer::reader`]).
    Final,
}

impl Scorer {
    /// The names, the default for conversations first.
    pub const NAMES: [&str; 4] = ["final", "boundary", "compat", "last_number"];

    /// The name of the scorer in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Scorer::Boundary => "boundary",
            Scorer::Compat => "compat",
            Scorer::LastNumber => "last_number",
            Scorer::Final => "final",
        }
    }

    /// True for the scorer that decided before there were others; it is left out of manifests, so that runs keep their identity.
    pub fn is_boundary(&self) -> bool {
        *self == Scorer::Boundary
    }
}

/// End of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// The model ends it, or the budget does: conversations, and texts of runs before version 3.
    #[default]
    Model,
    /// The line that holds the answer ends it, or a question of the model's own: texts that a model continues. A base model would go
    /// on to the budget.
    AnswerLine,
}

impl Ends {
    /// True for the end that stored options do not name.
    pub fn is_model(&self) -> bool {
        *self == Ends::Model
    }
}

/// Options that determine the items, and the scorer that decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The tasks, in the order in which they come round.
    pub tasks: Vec<Task>,
    /// The lengths: decimal digits, bits for `b2d`.
    pub lengths: Lengths,
    /// Items of each task at each length. The paper takes 10 for small models and 1 for large ones.
    pub per_length: usize,
    /// 1 or 2: two sets from independent random streams, to see how far a score moves with the draw.
    pub set: u8,
    /// Seed of the random streams.
    pub seed: u64,
    /// Order of the questions, of which `--limit` takes the beginning.
    #[serde(default = "ItemOrder::first", skip_serializing_if = "ItemOrder::is_first")]
    pub order: ItemOrder,
    /// End of a completion.
    #[serde(default, skip_serializing_if = "Ends::is_model")]
    pub ends: Ends,
    /// The deciding scorer.
    #[serde(rename = "profile", default, skip_serializing_if = "Scorer::is_boundary")]
    pub scorer: Scorer,
}

impl Default for Options {
    /// The paper's full size: all tasks, lengths 1 to 100, ten items each.
    fn default() -> Self {
        Options {
            tasks: Task::ALL.to_vec(),
            lengths: Lengths::default(),
            per_length: 10,
            set: 1,
            seed: 1,
            order: ItemOrder::default(),
            ends: Ends::default(),
            scorer: Scorer::default(),
        }
    }
}

/// Largest number of items of a task at a length.
const MOST_PER_LENGTH: usize = 10_000;

/// Options that describe no item set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    #[error("no task is selected; name at least one of {}", Task::ALL.map(Task::id).join(", "))]
    NoTask,
    #[error("task `{0}` is named twice")]
    RepeatedTask(Task),
    #[error("{0} items per length: take 1 to {MOST_PER_LENGTH}")]
    PerLength(usize),
    #[error(transparent)]
    TooMany(#[from] TooManySamples),
    #[error("item set {0} does not exist; the sets are 1 and 2")]
    Set(u8),
}

impl Options {
    /// Checks that the options describe an item set.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), OptionsError> {
        if self.tasks.is_empty() {
            return Err(OptionsError::NoTask);
        }
        if let Some((_, task)) = self.tasks.iter().enumerate().find(|(i, task)| self.tasks[..*i].contains(task)) {
            return Err(OptionsError::RepeatedTask(*task));
        }
        let factors = [self.tasks.len(), self.lengths.as_slice().len(), self.per_length];
        check_size(|| format!("the setting `per_length = {}`", self.per_length), &factors)?;
        if !(1..=MOST_PER_LENGTH).contains(&self.per_length) {
            return Err(OptionsError::PerLength(self.per_length));
        }
        if !(1..=2).contains(&self.set) {
            return Err(OptionsError::Set(self.set));
        }
        Ok(())
    }
}

/// A set of lengths from 1 to 100, ascending and not empty; written `1-100` or `1-3,10,50-60`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lengths(Vec<usize>);

/// Text that is no set of lengths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LengthsError {
    #[error("`{0}` is neither a length nor a range of lengths; write for instance `1-100` or `1-3,10,50-60`")]
    Syntax(String),
    #[error("length {0} is outside 1 to {max}, where the benchmark is defined", max = Lengths::MAX)]
    Range(usize),
    #[error("the range `{0}` runs backwards; write the smaller length first")]
    Backwards(String),
    #[error("no length is selected; write for instance `1-100`")]
    Empty,
}

impl Lengths {
    /// The greatest length of the benchmark.
    pub const MAX: usize = 100;

    /// A set from its members, in any order, repetitions allowed.
    ///
    /// # Errors
    /// If it is empty or a member lies outside 1 to [`Lengths::MAX`].
    pub fn new(lengths: impl IntoIterator<Item = usize>) -> Result<Self, LengthsError> {
        let mut lengths: Vec<usize> = lengths.into_iter().collect();
        lengths.sort_unstable();
        lengths.dedup();
        match lengths.iter().find(|length| !(1..=Self::MAX).contains(*length)) {
            Some(length) => Err(LengthsError::Range(*length)),
            None if lengths.is_empty() => Err(LengthsError::Empty),
            None => Ok(Lengths(lengths)),
        }
    }

    /// The lengths, ascending.
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }
}

impl Default for Lengths {
    fn default() -> Self {
        Lengths((1..=Self::MAX).collect())
    }
}

impl FromStr for Lengths {
    type Err = LengthsError;

    fn from_str(text: &str) -> Result<Self, LengthsError> {
        let mut lengths = Vec::new();
        for part in text.split(',').map(str::trim) {
            let number = |digits: &str| {
                let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                let value = if plain { digits.parse().ok() } else { None };
                value.ok_or_else(|| LengthsError::Syntax(part.to_owned()))
            };
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first.trim())?, number(last.trim())?),
                None => (number(part)?, number(part)?),
            };
            // Checked before the range is walked: `1-99999999999` must not fill the memory.
            if let Some(outside) = [first, last].into_iter().find(|length| !(1..=Self::MAX).contains(length)) {
                return Err(LengthsError::Range(outside));
            }
            if first > last {
                return Err(LengthsError::Backwards(part.to_owned()));
            }
            lengths.extend(first..=last);
        }
        Lengths::new(lengths)
    }
}

impl fmt::Display for Lengths {
    /// The shortest list of ranges.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (i, run) in runs.enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match run {
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [only] => write!(f, "{comma}{only}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl Serialize for Lengths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lengths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_and_print() {
        for (text, printed, count) in
            [("1-100", "1-100", 100), ("3,1,2", "1-3", 3), (" 50 - 60 , 10,5", "5,10,50-60", 13), ("7-7,7", "7", 1)]
        {
            let lengths: Lengths = text.parse().unwrap();
            assert_eq!((lengths.to_string().as_str(), lengths.as_slice().len()), (printed, count));
            assert_eq!(lengths.to_string().parse(), Ok(lengths));
        }
        for text in ["", ",", "a", "1-", "-1", "1-2-3", "+1", "1.5", "99999999999999999999999"] {
            assert!(matches!(text.parse::<Lengths>(), Err(LengthsError::Syntax(_))), "{text}");
        }
        assert_eq!("0".parse::<Lengths>(), Err(LengthsError::Range(0)));
        assert_eq!("1-99999999999".parse::<Lengths>(), Err(LengthsError::Range(99_999_999_999)));
        assert_eq!("5-3".parse::<Lengths>(), Err(LengthsError::Backwards("5-3".into())));
        assert_eq!(Lengths::new([]), Err(LengthsError::Empty));
    }

    #[test]
    fn impossible_options_are_named() {
        let check = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.check()
        };
        assert_eq!(check(|_| ()), Ok(()));
        assert_eq!(check(|o| o.tasks.clear()), Err(OptionsError::NoTask));
        assert_eq!(check(|o| o.tasks.push(Task::Rev)), Err(OptionsError::RepeatedTask(Task::Rev)));
        assert_eq!(check(|o| o.per_length = 0), Err(OptionsError::PerLength(0)));
        assert!(matches!(check(|o| o.per_length = 10_001), Err(OptionsError::TooMany(_))));
        let of_one_task = check(|o| (o.tasks, o.per_length) = (vec![Task::Rev], 10_001));
        assert_eq!(of_one_task, Err(OptionsError::PerLength(10_001)));
        assert_eq!(check(|o| o.set = 3), Err(OptionsError::Set(3)));
    }
}
