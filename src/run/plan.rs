//! Which samples a run consists of, and in which order.
use crate::suite::{Item, Suite};

/// The first items of a suite, each asked a number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Most items; none is all.
    pub limit: Option<usize>,
    /// Times each item is asked.
    pub samples: u32,
}

/// One entry of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedSample {
    /// Place in the plan, from 0.
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
        self.items(suite).saturating_mul(self.samples as usize)
    }

    /// The samples in order: the suite's own (round-robin) order of items, the samples of an item in a row, because
    /// they share their whole prompt.
    pub fn walk<'a>(&self, suite: &'a dyn Suite) -> impl Iterator<Item = PlannedSample> + use<'a> {
        let samples = self.samples;
        let items = suite.items().take(self.items(suite));
        items.enumerate().flat_map(move |(place, item)| {
            (0..samples).map(move |sample| PlannedSample {
                index: place * samples as usize + sample as usize,
                item: item.clone(),
                sample,
            })
        })
    }
}
