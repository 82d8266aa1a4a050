//! Orders in which a suite's questions come, so that a limited run is a small picture of the whole.
use serde::{Deserialize, Serialize};

/// Version of the order of a suite's items. Stored options without one are of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum ItemOrder {
    /// The order of each suite until 2026; of some suites a beginning has too many easy questions.
    One,
    /// Every beginning has tasks, and in each task the lengths, in the proportions of the whole.
    #[default]
    Two,
}

impl ItemOrder {
    /// Order of stored options that name none.
    pub(super) fn first() -> Self {
        ItemOrder::One
    }

    /// True for the order that stored options do not name.
    pub(super) fn is_first(&self) -> bool {
        *self == ItemOrder::One
    }
}

/// Error of a version other than 1 and 2, in stored options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("version {version} of {of} is unknown; there are 1 and 2")]
pub struct UnknownVersion {
    pub of: &'static str,
    pub version: u8,
}

impl TryFrom<u8> for ItemOrder {
    type Error = UnknownVersion;
    fn try_from(version: u8) -> Result<Self, UnknownVersion> {
        match version {
            1 => Ok(ItemOrder::One),
            2 => Ok(ItemOrder::Two),
            version => Err(UnknownVersion { of: "the order of items", version }),
        }
    }
}

impl From<ItemOrder> for u8 {
    fn from(order: ItemOrder) -> u8 {
        match order {
            ItemOrder::One => 1,
            ItemOrder::Two => 2,
        }
    }
}

/// The golden ratio's fractional part as a binary fraction of 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Values in an order of which any beginning covers them evenly: from the middle in steps of the golden ratio (a Kronecker sequence, the
/// one of least discrepancy), where values already taken are passed over.
pub(super) fn spread<T: Copy>(values: &[T]) -> Vec<T> {
    let mut left: Vec<Option<T>> = values.iter().copied().map(Some).collect();
    let mut order = Vec::with_capacity(values.len());
    let mut point = 1u64 << 63;
    while order.len() < values.len() {
        let index = (u128::from(point) * values.len() as u128) >> 64;
        order.extend(left[index as usize].take());
        point = point.wrapping_add(GOLDEN);
    }
    order
}

/// Groups of values merged in proportion to their sizes: any beginning has of each group its share, to less than one value more or less
/// a group, and each group keeps its order.
pub(super) fn in_proportion<T: Copy>(groups: &[Vec<T>]) -> Vec<T> {
    // The value at `index` of `size` is due at (index + 1/2) / size.
    let mut due: Vec<(usize, usize, T)> = groups
        .iter()
        .flat_map(|group| group.iter().enumerate().map(|(index, &value)| (2 * index + 1, group.len(), value)))
        .collect();
    due.sort_by(|(mine, of_mine, _), (theirs, of_theirs, _)| (mine * of_theirs).cmp(&(theirs * of_mine)));
    due.into_iter().map(|(.., value)| value).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::suite::Suite;
    use crate::suite::arithmetic_bench::{self, ArithmeticBench};
    use crate::suite::nupa::{NupaOptions, NupaSuite, TaskId};

    #[test]
    fn every_value_comes_once_and_the_middle_first() {
        for size in 0..=300 {
            let all: Vec<usize> = (0..size).collect();
            let mut order = spread(&all);
            assert_eq!(order.first(), (size > 0).then_some(&(size / 2)));
            order.sort_unstable();
            assert_eq!(order, all);
        }
        assert_eq!(spread(&["a", "b", "c"]), ["b", "a", "c"]);
        assert_eq!(spread(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), [6, 2, 8, 4, 10, 3, 9, 5, 1, 7]);
    }

    #[test]
    fn beginnings_are_even() {
        let all: Vec<usize> = (1..=100).collect();
        let order = spread(&all);
        for taken in 1..=100 {
            // Deviation of the empirical distribution from the uniform one.
            let below = |length: usize| order[..taken].iter().filter(|&&one| one <= length).count() as f64;
            let worst = all.iter().map(|&length| (below(length) - taken as f64 * length as f64 / 100.0).abs());
            let worst = worst.fold(0.0, f64::max);
            assert!(worst < 3.0, "{taken}: {worst}");
        }
    }

    /// Lengths of the beginning of a suite's items, as shares of each task's longest, by task.
    fn begun(suite: &Suite, limit: usize) -> BTreeMap<String, Vec<f64>> {
        let mut lengths: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for item in suite.items.iter().take(limit) {
            let longest = TaskId::find(&item.task).map_or(100, TaskId::longest);
            let length = item.covariates["length"].as_u64().unwrap() as f64 / longest as f64;
            lengths.entry(item.task).or_default().push(length);
        }
        lengths
    }

    fn mean<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
        let (sum, count) = values.into_iter().fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        sum / count
    }

    /// The bound of docs/suites.md: after k questions of a task their mean length is off by at most 1.9 longest lengths / k, and with one
    /// question a task the mean of all is already right.
    #[test]
    fn limited_runs_are_small_pictures_of_the_whole() {
        let nupa = NupaSuite::new(NupaOptions { per_length: 5, ..NupaOptions::default() }).unwrap();
        let bench = ArithmeticBench::new(arithmetic_bench::Options::default()).unwrap();
        for suite in [&Suite::new(nupa), &Suite::new(bench)] {
            let tasks = begun(suite, 200).len();
            let whole = |task: &str| (task.parse::<TaskId>().map_or(100, TaskId::longest) as f64).recip() / 2.0 + 0.5;
            for each in [1, 2, 3, 4, 5, 7, 10, 14, 20, 33, 50] {
                let lengths = begun(suite, each * tasks);
                for (task, lengths) in &lengths {
                    assert_eq!(lengths.len(), each);
                    let off = (mean(lengths) - whole(task)).abs();
                    assert!(
                        off <= 1.9 / each as f64,
                        "{}, {task}: {each} questions are off by {off}",
                        suite.scoring.name()
                    );
                }
                let all: Vec<f64> = lengths.keys().map(|task| whole(task)).collect();
                let off = (mean(lengths.values().flatten()) - mean(&all)).abs();
                assert!(off < 0.06, "{}: {each} questions a task are off by {off}", suite.scoring.name());
            }
        }
    }

    #[test]
    fn groups_take_turns_by_their_sizes() {
        let groups = [vec![1, 2], vec![10, 11, 12, 13, 14, 15, 16, 17], vec![]];
        let order = in_proportion(&groups);
        assert_eq!(order, [10, 11, 1, 12, 13, 14, 15, 2, 16, 17]);
        for taken in 0..=10 {
            let small = order[..taken].iter().filter(|one| **one < 10).count() as f64;
            assert!((small - taken as f64 * 0.2).abs() < 1.0);
        }
    }
}
