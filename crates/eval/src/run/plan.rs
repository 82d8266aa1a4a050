//! Which samples a run consists of, and in which order.
use serde::{Deserialize, Serialize};

use earnest_tasks::suite::{Item, Suite};

/// One of several parts of a run that are worked on separately, as in a job array. Items are dealt out in turn, so every
/// part is as balanced as the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shard {
    /// Which part, from 1.
    pub part: usize,
    /// How many parts there are.
    pub of: usize,
}

impl Shard {
    /// True if the item at this place of the suite belongs to the part.
    pub fn has(&self, place: usize) -> bool {
        place % self.of.max(1) == self.part.saturating_sub(1)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.part, self.of)
    }
}

/// `i/n` with i from 1 to n.
impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(part, of)| Some((part.trim().parse().ok()?, of.trim().parse().ok()?)));
        match parts {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Shard { part, of }),
            Some((part, of)) => Err(format!("part {part} of {of} does not exist: parts are counted from 1")),
            None => Err(format!("'{text}' is not a part: write for instance 1/4")),
        }
    }
}

/// The first items of a suite, each asked a number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Most items; none is all.
    pub limit: Option<usize>,
    /// Times each item is asked.
    pub samples: u32,
    /// Only one part of them.
    pub shard: Option<Shard>,
}

/// One entry of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedSample {
    /// Place in the plan of the whole run, from 0, whatever part is worked on.
    pub index: usize,
    pub item: Item,
    /// Sample number of the item, from 0.
    pub sample: u32,
}

impl Plan {
    /// Items that are asked.
    pub fn items(&self, suite: &dyn Suite) -> usize {
        self.limit.map_or(suite.len(), |limit| limit.min(suite.len()))
    }

    /// Samples in all.
    pub fn len(&self, suite: &dyn Suite) -> usize {
        let items = self.items(suite);
        let items = match self.shard {
            None => items,
            Some(shard) => (items + shard.of.max(1) - shard.part.min(shard.of)) / shard.of.max(1),
        };
        items.saturating_mul(self.samples as usize)
    }

    /// The items that are asked, with their places in the suite's order.
    pub(crate) fn asked<'a>(&self, suite: &'a dyn Suite) -> impl Iterator<Item = (usize, Item)> + use<'a> {
        let shard = self.shard;
        let items = suite.items().take(self.items(suite)).enumerate();
        items.filter(move |(place, _)| shard.is_none_or(|shard| shard.has(*place)))
    }

    /// The samples in order: the suite's own (round-robin) order of items, the samples of an item in a row, because
    /// they share their whole prompt.
    pub fn walk<'a>(&self, suite: &'a dyn Suite) -> impl Iterator<Item = PlannedSample> + use<'a> {
        let samples = self.samples;
        self.asked(suite).flat_map(move |(place, item)| {
            (0..samples).map(move |sample| PlannedSample {
                index: place * samples as usize + sample as usize,
                item: item.clone(),
                sample,
            })
        })
    }
}
