//! Smallest detectable difference of a plan.
use std::collections::HashMap;

use earnest_stats::{PairedDesign, Rates};
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::task::usual;

use earnest_results::{Plan, RunNotice};

/// Assumed share of items on which two models disagree.
const DISCORDANCE: f64 = 0.2;

/// Returns the notice of the smallest detectable difference between two models that disagree on a fifth of the plan's items,
/// for intracluster correlations of 0 and 1.
pub(super) fn detectable(suite: &Suite, plan: &Plan) -> RunNotice {
    let mut sizes: HashMap<String, usize> = HashMap::new();
    let mut unlabelled = 0;
    for (index, item) in suite.items.iter().take(plan.items(suite)).enumerate() {
        if plan.shard.is_none_or(|shard| shard.has(index)) {
            unlabelled += usize::from(usual::lacks_label(&item.cluster, &item.id));
            *sizes.entry(item.cluster).or_default() += 1;
        }
    }
    let items: usize = sizes.values().sum();
    let clusters = sizes.len();
    // The variance grows with the sum of squared cluster sizes.
    let cluster_size = sizes.values().map(|size| size * size).sum::<usize>() as f64 / items.max(1) as f64;
    let effect = |intracluster| {
        let design = PairedDesign { discordance: DISCORDANCE, cluster_size, intracluster };
        let effect = design.detectable_effect(items as f64, Rates::default()).ok();
        effect.filter(|&effect| effect < design.discordance).map(|effect| 100.0 * effect)
    };
    RunNotice::Detectable { items, clusters, unlabelled, independent: effect(0.0), correlated: effect(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options};

    #[test]
    fn clusters_count() {
        let options = |lengths: &str, per_length| Options {
            tasks: vec!["add".parse().unwrap()],
            lengths: lengths.parse().unwrap(),
            per_length,
            ..Options::default()
        };
        let said = |options, limit| {
            let suite = Suite::new(ArithmeticBench::new(options).unwrap());
            detectable(&suite, &Plan { limit, samples: 3, shard: None }).to_string()
        };
        // A cluster is a task at a length. Each item its own: Connor's formula, by hand.
        let own = said(options("1-100", 1), None);
        assert!(own.starts_with("100 items: smallest") && own.contains("models: 12.4 points, 80 %"), "{own}");
        let few = said(options("11-15", 100), Some(400));
        assert!(few.starts_with("400 items in 5 clusters: ") && few.contains("(none if the items"), "{few}");
        let many = said(options("1-100", 4), None);
        assert!(many.starts_with("400 items in 100 clusters: ") && many.contains("points (1"), "{many}");
        assert!(said(options("1-2", 2), None).starts_with("4 items in 2 clusters: too few"));
    }
}
