//! Suites with items of a run's own: those that were chosen so far, or all in the order of a run that may end early.
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;

use earnest_tasks::suite::registry::Programs;
use earnest_tasks::suite::{Answered, Grid, Item, Score, Scored, Suite, Summary};

/// A suite that asks other items; everything else is the suite's.
pub struct OfItems<S, I> {
    pub suite: S,
    pub items: I,
}

/// Orders the first `limit` items of a suite, or all of them, cluster by cluster, in an order of clusters drawn by a seed, so that any number of
/// first clusters is a random sample of all. Inside a cluster they keep the suite's order. A cluster's place depends on the seed and its
/// name alone: what is in this order already stays in it.
///
/// Keeps all items in memory.
pub fn by_cluster<S: Deref<Target: Suite>>(suite: S, limit: Option<usize>, seed: u64) -> OfItems<S, Vec<Item>> {
    let mut items: Vec<Item> = suite.items().take(limit.unwrap_or(usize::MAX)).collect();
    let mut draws: HashMap<String, [u8; 32]> = HashMap::new();
    for item in &items {
        if !draws.contains_key(&item.cluster) {
            let draw = earnest_digest::sha256(format!("{seed}\n{}", item.cluster).as_bytes());
            draws.insert(item.cluster.clone(), draw);
        }
    }
    // Stable, and by distinct keys, because names differ.
    items.sort_by_key(|item| draws[&item.cluster]);
    OfItems { suite, items }
}

impl<S, I> Suite for OfItems<S, I>
where
    S: Deref<Target: Suite> + Send + Sync,
    I: Deref<Target = [Item]> + Send + Sync,
{
    fn name(&self) -> &str {
        self.suite.name()
    }

    fn version(&self) -> &str {
        self.suite.version()
    }

    fn options(&self) -> serde_json::Value {
        self.suite.options()
    }

    fn items(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new(self.items.iter().cloned())
    }

    fn unread(&self) -> Option<String> {
        self.suite.unread()
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    fn answer<'a>(&self, item: &'a Item) -> &'a str {
        self.suite.answer(item)
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        self.suite.score(item, answered)
    }

    fn opened_thinking(&self, item: &Item) -> Option<&str> {
        self.suite.opened_thinking(item)
    }

    fn draws<'a>(&self, item: &'a Item) -> Cow<'a, str> {
        self.suite.draws(item)
    }

    fn programs(&self) -> Option<&dyn Programs> {
        self.suite.programs()
    }

    fn profiles(&self) -> Vec<&str> {
        self.suite.profiles()
    }

    fn primary(&self) -> Vec<&str> {
        self.suite.primary()
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        self.suite.summarise(samples)
    }

    fn grids(&self, summary: &Summary) -> Vec<Grid> {
        self.suite.grids(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options};

    #[test]
    fn clusters_stay_together_in_an_order_of_the_seed() {
        let options = Options { lengths: "1-12".parse().unwrap(), per_length: 3, ..Options::default() };
        let suite: Box<dyn Suite> = Box::new(ArithmeticBench::new(options).unwrap());
        let ids = |suite: &dyn Suite| suite.items().map(|item| item.id).collect::<Vec<_>>();
        let clusters = |suite: &dyn Suite| {
            let mut clusters: Vec<String> = suite.items().map(|item| item.cluster).collect();
            clusters.dedup();
            clusters
        };
        let one = by_cluster(&*suite, None, 1);
        let order = clusters(&one);
        let mut distinct = order.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(order.len(), distinct.len(), "a cluster is in one piece");
        assert!(order.len() > 30 && order != distinct);
        let sorted = |mut ids: Vec<String>| {
            ids.sort();
            ids
        };
        assert_eq!(sorted(ids(&one)), sorted(ids(&*suite)), "all items are asked");
        assert_ne!(ids(&one), ids(&by_cluster(&*suite, None, 2)), "another seed is another order");
        // Twice is once, and fewer items come in the same order.
        assert_eq!(ids(&by_cluster(Box::new(by_cluster(&*suite, None, 1)), None, 1)), ids(&one));
        let part = by_cluster(&*suite, Some(100), 1);
        let first: Vec<String> = suite.items().take(100).map(|item| item.id).collect();
        let kept: Vec<String> = ids(&one).into_iter().filter(|id| first.contains(id)).collect();
        assert_eq!((part.len(), ids(&part)), (100, kept));
        assert_eq!((one.name(), one.version(), one.options()), (suite.name(), suite.version(), suite.options()));
        assert_eq!((one.profiles(), one.primary()), (suite.profiles(), suite.primary()));
    }
}
