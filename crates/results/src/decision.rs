//! The decision to end a run early, by the confidence sequence of its difference to another run.
use crate::ends;
use serde::{Deserialize, Serialize};

use super::Until;
use earnest_stats::SequentialEstimate;

/// Reason for the end of a run with a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The interval excludes 0.
    Different,
    /// The interval lies within the margin, and so does the difference by the test of a margin (`MarginTest` of the statistics).
    Within,
    /// Every item was asked and neither is the case.
    Undecided,
}

/// End of a run with a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub reason: Reason,
    /// Number of items asked: the first of the plan.
    pub items: usize,
    /// Number of items of the plan without the condition.
    pub of_items: usize,
    /// Number of clusters asked, and of all.
    pub clusters: usize,
    pub of_clusters: usize,
    /// Difference to the other run at the end; none without items in common.
    pub estimate: Option<SequentialEstimate>,
    /// Time of the decision, RFC 3339 in UTC.
    pub when: String,
}

impl Decision {
    /// True if some items were not asked.
    pub fn is_early(&self) -> bool {
        self.items < self.of_items
    }

    /// Returns the decision in a sentence, as of a run with this condition.
    pub fn sentence(&self, until: &Until) -> String {
        let asked = match self.is_early() {
            true => format!("Stopped early, after {} of {} clusters", self.clusters, self.of_clusters),
            false => format!("Not stopped early: all {} clusters were asked", self.of_clusters),
        };
        let other = &until.difference_to;
        let Some(estimate) = &self.estimate else {
            return format!("{asked}. No answer can be paired with one of {other}, so nothing could be decided.");
        };
        let why = match (self.reason, until.within) {
            (Reason::Different, _) => format!("the difference to {other} is decided"),
            (Reason::Within, Some(points)) => format!("the difference to {other} is within {points} points"),
            (Reason::Within, None) => format!("the difference to {other} is small"),
            (Reason::Undecided, _) => format!("the difference to {other} is not decided"),
        };
        format!("{asked}; {why}: {}.", estimate_text(estimate))
    }
}

/// Formats an estimate: `+3.1 points, 95 % anytime-valid interval +0.4 to +5.9`.
pub fn estimate_text(estimate: &SequentialEstimate) -> String {
    format!(
        "{:+.1} points, {:.0} % anytime-valid interval {} (asymptotic)",
        100.0 * estimate.difference,
        100.0 * estimate.level,
        ends((100.0 * estimate.low, 100.0 * estimate.high), 0.0, 1, true).join(" to ")
    )
}
