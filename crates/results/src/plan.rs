//! Plan of a run: its samples and their order.
use serde::{Deserialize, Serialize};

use earnest_tasks::suite::{Item, Suite, TooManySamples, check_size};

/// One of several parts of a run that run separately, as in a job array. Items are assigned round-robin, so that every part is
/// balanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shard {
    /// Number of the part, from 1.
    pub part: usize,
    /// Number of parts.
    pub of: usize,
}

impl Shard {
    /// True if the item at this index in the suite belongs to the part.
    pub fn has(&self, index: usize) -> bool {
        index % self.of.max(1) == self.part.saturating_sub(1)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.part, self.of)
    }
}

/// Error of reading a [`Shard`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Not of the form `i/n`.
    #[error("'{0}' is not a part: write for instance 1/4")]
    Syntax(String),
    /// A number outside 1 to `of`.
    #[error("part {part} of {of} does not exist: parts are numbered from 1")]
    OutOfRange { part: usize, of: usize },
}

/// `i/n` with i from 1 to n.
impl std::str::FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parts =
            text.split_once('/').and_then(|(part, of)| Some((part.trim().parse().ok()?, of.trim().parse().ok()?)));
        match parts {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Shard { part, of }),
            Some((part, of)) => Err(ShardError::OutOfRange { part, of }),
            None => Err(ShardError::Syntax(text.to_owned())),
        }
    }
}

/// The first items of a suite, each asked a number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Limit of items; none for all.
    pub limit: Option<usize>,
    /// Number of samples per item.
    pub samples: u32,
    /// Restriction to one part.
    pub shard: Option<Shard>,
}

/// A sample of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedSample {
    /// Index in the plan of the whole run, also in parts.
    pub index: usize,
    pub item: Item,
    /// Sample number of the item, from 0.
    pub sample: u32,
}

impl Plan {
    /// Checks the number of samples of the whole run, before memory of that size is used.
    ///
    /// # Errors
    /// [`TooManySamples`] that names `--limit` or `--samples`.
    pub fn check(&self, suite: &Suite) -> Result<(), TooManySamples> {
        self.check_limits()?;
        let items = self.items(suite);
        check_size(
            || format!("the setting `samples = {}` with {items} items", self.samples),
            &[items, self.samples as usize],
        )
    }

    /// Checks `--limit` and `--samples` alone, before the suite is known.
    pub fn check_limits(&self) -> Result<(), TooManySamples> {
        if let Some(limit) = self.limit {
            check_size(|| format!("the setting `limit = {limit}`"), &[limit])?;
        }
        check_size(|| format!("the setting `samples = {}`", self.samples), &[self.samples as usize])
    }

    /// Returns the number of items.
    pub fn items(&self, suite: &Suite) -> usize {
        self.limit.map_or(suite.items.len(), |limit| limit.min(suite.items.len()))
    }

    /// Returns the number of samples.
    pub fn len(&self, suite: &Suite) -> usize {
        let items = self.items(suite);
        let items = match self.shard {
            None => items,
            Some(shard) => (items + shard.of.max(1) - shard.part.min(shard.of)) / shard.of.max(1),
        };
        items.saturating_mul(self.samples as usize)
    }

    /// Returns the items with their indices in the suite's order.
    pub fn asked<'a>(&self, suite: &'a Suite) -> impl Iterator<Item = (usize, Item)> + use<'a> {
        let shard = self.shard;
        let items = suite.items.iter().take(self.items(suite)).enumerate();
        items.filter(move |(index, _)| shard.is_none_or(|shard| shard.has(*index)))
    }

    /// Returns the samples in order: items in the suite's (round-robin) order, the samples of an item in a row, because they
    /// share their prompt.
    pub fn walk<'a>(&self, suite: &'a Suite) -> impl Iterator<Item = PlannedSample> + use<'a> {
        let samples = self.samples;
        self.asked(suite).flat_map(move |(index, item)| {
            (0..samples).map(move |sample| PlannedSample {
                index: index * samples as usize + sample as usize,
                item: item.clone(),
                sample,
            })
        })
    }
}
