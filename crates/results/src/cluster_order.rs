//! Items in the order of clusters, for runs that may end early.
use std::collections::HashMap;
use std::sync::Arc;

use earnest_tasks::suite::{Item, ItemList, Suite};

/// The suite with its first `limit` items, or all of them, cluster by cluster, in an order of clusters drawn by a seed, so that any number of
/// first clusters is a random sample of all. Inside a cluster they keep the suite's order. A cluster's index depends on the seed and its
/// name alone: what is in this order already stays in it.
///
/// Keeps all items in memory.
pub fn by_cluster(suite: &Suite, limit: Option<usize>, seed: u64) -> Suite {
    let mut items: Vec<Item> = suite.items.iter().take(limit.unwrap_or(usize::MAX)).collect();
    let mut draws: HashMap<String, [u8; 32]> = HashMap::new();
    for item in &items {
        if !draws.contains_key(&item.cluster) {
            let draw = earnest_digest::sha256(format!("{seed}\n{}", item.cluster).as_bytes());
            draws.insert(item.cluster.clone(), draw);
        }
    }
    // Stable, and by distinct keys, because names differ.
    items.sort_by_key(|item| draws[&item.cluster]);
    Suite { items: Arc::new(ItemList { items, unread: suite.items.unread() }), ..suite.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::ThinkingText;
    use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options};

    #[test]
    fn clusters_stay_together_in_an_order_of_the_seed() {
        let options = Options { lengths: "1-12".parse().unwrap(), per_length: 3, ..Options::default() };
        let suite = Suite::new(ArithmeticBench::new(options).unwrap());
        let ids = |suite: &Suite| suite.items.iter().map(|item| item.id).collect::<Vec<_>>();
        let clusters = |suite: &Suite| {
            let mut clusters: Vec<String> = suite.items.iter().map(|item| item.cluster).collect();
            clusters.dedup();
            clusters
        };
        let one = by_cluster(&suite, None, 1);
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
        assert_eq!(sorted(ids(&one)), sorted(ids(&suite)), "all items are asked");
        assert_ne!(ids(&one), ids(&by_cluster(&suite, None, 2)), "another seed is another order");
        // Twice is once, and fewer items come in the same order.
        assert_eq!(ids(&by_cluster(&one, None, 1)), ids(&one));
        let part = by_cluster(&suite, Some(100), 1);
        let first: Vec<String> = suite.items.iter().take(100).map(|item| item.id).collect();
        let kept: Vec<String> = ids(&one).into_iter().filter(|id| first.contains(id)).collect();
        assert_eq!((part.items.len(), ids(&part)), (100, kept));
        // What is not the items stays.
        let kept = by_cluster(&Suite { thinking: ThinkingText::Kept, ..suite.clone() }, None, 1);
        assert_eq!((kept.thinking, kept.scoring.options()), (ThinkingText::Kept, suite.scoring.options()));
        let cut = ItemList { items: suite.items.iter().take(3).collect(), unread: Some("a file ended".into()) };
        let cut = by_cluster(&Suite { items: Arc::new(cut), ..suite }, None, 1);
        assert_eq!((cut.items.len(), cut.items.unread().as_deref()), (3, Some("a file ended")));
    }
}
