//! Samples gathered by item: the unit of every interval.
use std::collections::BTreeMap;

use super::Task;
use super::score::WITH_THINKING;
use crate::suite::{FailureClass, Interval, Scored};
use earnest_stats::{Estimate, Stratum, Z95, cluster_robust_se, stratified, wilson};

/// The samples of one item. Several samples of an item are not independent, so intervals count items and take the mean
/// of an item's samples as its value.
pub(super) struct ItemScores<'a> {
    pub task: Task,
    pub length: usize,
    pub b_is_one: Option<bool>,
    pub samples: Vec<Scored<'a>>,
}

impl ItemScores<'_> {
    /// Share of samples that a scorer accepts; none where it scored none of them. A sample without thinking is the same text with
    /// and without it.
    fn share(&self, scorer: &str) -> Option<f64> {
        let scored = self.samples.iter().filter_map(|sample| {
            let scorers = &sample.score.scorers;
            let plain = || scorers.get(scorer.strip_suffix(WITH_THINKING)?);
            // No scorer scores a damaged item, which is never right.
            let damaged = || (sample.score.failure == Some(FailureClass::MalformedGold)).then_some(false);
            scorers.get(scorer).or_else(plain).or_else(damaged)
        });
        let (accepted, n) = scored.fold((0, 0), |(accepted, n), right| (accepted + usize::from(right), n + 1));
        (n > 0).then(|| accepted as f64 / n as f64)
    }
}

/// Gathers samples by item, in the order task, length, id; also says how many belong to no task or have no length, and are
/// left out.
pub(super) fn gather<'a>(samples: &[Scored<'a>]) -> (Vec<ItemScores<'a>>, usize) {
    let mut items: BTreeMap<(Task, usize, &str), ItemScores<'a>> = BTreeMap::new();
    let mut left_out = 0;
    for sample in samples {
        let covariate = |name: &str| sample.item.covariates.get(name);
        let length = covariate("length").and_then(|value| value.as_u64()).and_then(|n| usize::try_from(n).ok());
        let (Ok(task), Some(length @ 1..)) = (sample.item.task.parse::<Task>(), length) else {
            left_out += 1;
            continue;
        };
        let b_is_one = covariate("b_is_one").and_then(|value| value.as_bool());
        let new = || ItemScores { task, length, b_is_one, samples: Vec::new() };
        items.entry((task, length, &sample.item.id)).or_insert_with(new).samples.push(*sample);
    }
    (items.into_values().collect(), left_out)
}

/// A selection of items.
pub(super) struct Group<'g, 'a>(pub Vec<&'g ItemScores<'a>>);

impl<'g, 'a> Group<'g, 'a> {
    pub fn select(items: &'g [ItemScores<'a>], keep: impl Fn(&ItemScores<'a>) -> bool) -> Self {
        Group(items.iter().filter(|item| keep(item)).collect())
    }

    pub fn filter(&self, keep: impl Fn(&ItemScores<'a>) -> bool) -> Self {
        Group(self.0.iter().copied().filter(|item| keep(item)).collect())
    }

    pub fn samples(&self) -> impl Iterator<Item = &Scored<'a>> {
        self.0.iter().flat_map(|item| &item.samples)
    }

    /// Accuracy over items with its Wilson interval, `None` without items.
    pub fn accuracy(&self, scorer: &str) -> Option<Interval> {
        let shares: Vec<f64> = self.0.iter().filter_map(|item| item.share(scorer)).collect();
        wilson(shares.iter().sum(), shares.len() as f64, Z95).map(interval)
    }

    /// Mean over the cells (task and length) with the stratified interval.
    pub fn mean_over_cells(&self, scorer: &str) -> Option<Interval> {
        let strata = self.cells().filter_map(|(_, _, cell)| {
            let shares: Vec<f64> = cell.0.iter().filter_map(|item| item.share(scorer)).collect();
            (!shares.is_empty()).then(|| Stratum { successes: shares.iter().sum(), n: shares.len() })
        });
        stratified(&strata.collect::<Vec<_>>(), Z95).map(interval)
    }

    /// The cells, ascending by task and length.
    pub fn cells(&self) -> impl Iterator<Item = (Task, usize, Group<'g, 'a>)> {
        let same = |a: &&ItemScores<'a>, b: &&ItemScores<'a>| (a.task, a.length) == (b.task, b.length);
        self.0.chunk_by(same).map(|cell| (cell[0].task, cell[0].length, Group(cell.to_vec())))
    }

    /// Accuracy by length, of a group of one task.
    pub fn curve(&self, scorer: &str) -> Vec<(usize, usize, Interval)> {
        let point = |(_, length, cell): (Task, usize, Group<'g, 'a>)| {
            Some((length, cell.samples().count(), cell.accuracy(scorer)?))
        };
        self.cells().filter_map(point).collect()
    }

    /// The cluster-robust standard error of the accuracy by the deciding scorer, clusters being cells.
    pub fn cluster_robust_se(&self) -> Option<f64> {
        let value = |sample: &Scored<'a>| (sample.item.cluster.as_str(), f64::from(sample.score.correct));
        cluster_robust_se(self.samples().map(value))
    }

    /// Mean of a value over the samples that have it.
    pub fn mean(&self, value: impl Fn(&Scored<'a>) -> Option<f64>) -> Option<f64> {
        let (sum, n) = self.samples().filter_map(value).fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
        (n > 0.0).then_some(sum / n)
    }

    /// Mean over items of a value of task and length.
    pub fn expectation(&self, value: impl Fn(Task, usize) -> f64) -> f64 {
        self.0.iter().map(|item| value(item.task, item.length)).sum::<f64>() / self.0.len() as f64
    }
}

fn interval(estimate: Estimate) -> Interval {
    Interval { estimate: estimate.value, low: estimate.low, high: estimate.high }
}
