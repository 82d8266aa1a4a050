//! Smallest detectable difference of a plan.
use earnest_tasks::counted;
use std::collections::HashMap;

use earnest_stats::{PairedDesign, Rates};
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::task::usual;

use earnest_results::Plan;

/// Assumed share of items on which two models disagree.
const DISCORDANCE: f64 = 0.2;

/// Returns a sentence with the smallest detectable difference between two models that disagree on a fifth of the plan's items,
/// for intracluster correlations of 0 and 1.
pub(super) fn detectable(suite: &Suite, plan: &Plan) -> String {
    let mut sizes: HashMap<String, usize> = HashMap::new();
    let mut own = 0;
    for (index, item) in suite.items.iter().take(plan.items(suite)).enumerate() {
        if plan.shard.is_none_or(|shard| shard.has(index)) {
            own += usize::from(usual::lacks_label(&item.cluster, &item.id));
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
        effect.filter(|&effect| effect < design.discordance).map(|effect| format!("{:.1} points", 100.0 * effect))
    };
    let own = if own > 0 { format!(" ({own} without a label, each its own)") } else { String::new() };
    let of_clusters =
        if clusters < items { format!(" in {}{own}", counted(clusters, "cluster")) } else { String::new() };
    let items_said = counted(items, "item");
    let Some(apart) = effect(0.0) else {
        return format!("{items_said}{of_clusters}: too few to detect a difference between two models");
    };
    let alike = match effect(1.0) {
        _ if clusters == items => String::new(),
        Some(alike) => format!(" ({alike} if the items of a cluster are fully correlated)"),
        None => " (none if the items of a cluster are fully correlated)".to_owned(),
    };
    format!("{items_said}{of_clusters}: smallest detectable difference between two models: {apart}{alike}, 80 % power")
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
            detectable(&Suite::new(ArithmeticBench::new(options).unwrap()), &Plan { limit, samples: 3, shard: None })
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
