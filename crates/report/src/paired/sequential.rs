//! Differences of runs that end by their own answers.
use std::collections::BTreeMap;

use serde::Serialize;

use super::p_sentence;
use super::pairing::Pair;
use earnest_results::estimate_text;
use earnest_results::scores::Scores;
use earnest_stats::{SequentialDifference, SequentialEstimate};

/// Difference to or of a run with a condition ([`Until`](earnest_results::Until)), whose number of items depends on its answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sequential {
    /// The runs with a condition: the baseline, the run, or both.
    pub runs: Vec<String>,
    /// Anytime-valid difference. None if both runs ended early, or nothing is paired.
    pub estimate: Option<SequentialEstimate>,
}

impl Sequential {
    /// Returns the anytime-valid difference of these pairs, if one of the runs has a condition.
    pub(super) fn of(names: [&str; 2], scores: [&Scores; 2], pairs: &[Pair<'_>]) -> Option<Self> {
        let with_condition = names.into_iter().zip(scores).filter(|(_, scores)| scores.has_condition);
        let runs: Vec<String> = with_condition.map(|(name, _)| name.to_owned()).collect();
        if runs.is_empty() {
            return None;
        }
        // Two runs that ended by their answers are paired where both have gone, which is no random sample of the clusters.
        let both_ended = scores.iter().all(|scores| scores.ended_early);
        let estimate = if both_ended { None } else { estimate(pairs) };
        Some(Sequential { runs, estimate })
    }

    /// Returns a remark on what the fixed-sample numbers are worth.
    pub fn remark(&self) -> String {
        let runs = self.runs.join(" and ");
        let ends = if self.runs.len() == 1 { "ends" } else { "end" };
        let because = format!("{runs} {ends} when a difference is decided (the setting `until`)");
        let estimate = match &self.estimate {
            Some(estimate) => {
                format!("The valid ones for all items are: {}, {}.", estimate_text(estimate), p_sentence(estimate.p))
            }
            None => "There are no valid ones for this pair: compare with a run that asks all its items.".to_owned(),
        };
        format!(
            "{because}. Intervals, p values and detectable differences of the table take the number of items as fixed beforehand, so they \
             are not valid. {estimate}"
        )
    }
}

/// Anytime-valid difference over all pairs.
fn estimate(pairs: &[Pair<'_>]) -> Option<SequentialEstimate> {
    let mut clusters: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for pair in pairs {
        let (sum, count) = clusters.entry(pair.cluster()).or_default();
        *sum += pair.change();
        *count += 1;
    }
    let mut sequence = SequentialDifference::default();
    for (sum, count) in clusters.into_values() {
        sequence.add(sum, count).expect("differences of shares lie between -1 and 1");
    }
    sequence.estimate(0.95).expect("the level is between 0 and 1")
}
