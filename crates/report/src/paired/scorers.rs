//! Scorers side by side.
use serde::Serialize;

use super::pairing::Pair;
use earnest_results::Origin;
use earnest_results::scores::{ItemScore, Scores};

/// Accuracies by one scorer, over the items that it scored in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScorerDifference {
    pub name: String,
    pub items: usize,
    /// Shares of right answers, or means of a scorer's numbers.
    pub baseline: f64,
    pub run: f64,
    /// True if all numbers are shares.
    pub shares: bool,
}

/// Returns the accuracies by every scorer that both runs have, in alphabetical order.
pub(super) fn scorers(first: &Scores, second: &Scores, pairs: &[Pair<'_>]) -> Vec<ScorerDifference> {
    let of_logs = first.origin == Origin::Log || second.origin == Origin::Log;
    let share = |scores: &[&ItemScore], index: usize| {
        let counts = scores.iter().filter_map(|score| score.scorers.get(index).filter(|(_, samples)| *samples > 0));
        let shares: Vec<f64> = counts.map(|(sum, samples)| sum / f64::from(*samples)).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    };
    let both = first.scorers.iter().enumerate().filter_map(|(mine, name)| {
        let theirs = second.scorers.iter().position(|other| other == name)?;
        let shares: Vec<(f64, f64)> =
            pairs.iter().filter_map(|pair| share(&pair.first, mine).zip(share(&pair.second, theirs))).collect();
        let items = shares.len();
        // Numbers of another range are those of other tools' scorers.
        let are_shares =
            shares.iter().all(|(one, other)| [one, other].iter().all(|share| (0.0..=1.0).contains(*share)));
        let mean = |of: fn(&(f64, f64)) -> f64| shares.iter().map(of).sum::<f64>() / items as f64;
        let (baseline, run) = (mean(|share| share.0), mean(|share| share.1));
        let is_shown = items > 0 && (are_shares || of_logs);
        is_shown.then(|| ScorerDifference { name: name.clone(), items, baseline, run, shares: are_shares })
    });
    let mut scorers: Vec<ScorerDifference> = both.collect();
    scorers.sort_by(|one, other| one.name.cmp(&other.name));
    scorers
}
