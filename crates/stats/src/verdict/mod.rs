//! The verdict on a paired difference: one p value and one interval that never disagree, by a method that suits the data.
//!
//! With many answers on both sides it is the t test of cluster sums, robust to whatever happens within a cluster. Where few answers are
//! right (or wrong), or few clusters differ, that test finds differences that are not there, and an exact one takes its place:
//!
//! - [`PairedTest::SignFlips`]: both sides answered the same questions. If nothing differs, the two sides of a cluster may be exchanged
//!   (R. A. Fisher, The Design of Experiments, 1935, section 21). With single answers it is McNemar's exact test.
//! - [`PairedTest::Permutation`]: one original stands against several variants. If nothing differs, any of the questions could be the
//!   original (E. J. G. Pitman, Supplement to the Journal of the Royal Statistical Society 4, 1937, 119-130, within strata; with one
//!   answer each it is the exact conditional test of a common odds ratio).
mod answers;
mod distribution;
mod paired_test;
mod permutation;
mod random;
mod score;
mod sign_flips;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use thiserror::Error;

use crate::clustered::{ClusterError, ClusteredMean, paired_difference};
use answers::mean;
pub use answers::{Answers, PairedAnswers};
pub use paired_test::PairedTest;
use paired_test::{ExchangeP, ROUNDING};
use score::ScoreInterval;

/// Right and wrong answers of either side from which on the t test is the verdict.
const ENOUGH_ANSWERS: f64 = 25.0;

/// Fewer that are enough where they are at least a fifth of a side's answers: such shares are not skewed.
const ENOUGH_OF_FEW: f64 = 10.0;
const LEAST_SHARE: f64 = 0.2;

/// Clusters that differ from which on it is, or three quarters of fewer clusters.
const ENOUGH_CLUSTERS: usize = 25;

/// Reason for the absence of a verdict.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum VerdictError {
    /// Nothing to compare.
    #[error("there are no pairs to compare")]
    NoPairs,
    /// A difference between clusters cannot be told from chance with one of them.
    #[error("all pairs are in one cluster, and a test needs at least two")]
    OneCluster,
    /// A score is NaN or infinite.
    #[error("a score of pair {position} is not a finite number; leave such answers out")]
    NotFinite { position: usize },
    /// A side of a pair has no question.
    #[error("pair {position} has no answer on one side; leave such pairs out")]
    Empty { position: usize },
}

/// Reason for the choice of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TestReason {
    /// Nothing speaks against the t test.
    Enough,
    /// Numbers that are no shares of right answers have the t test.
    NotShares,
    /// A side has few right or few wrong answers.
    FewAnswers {
        second: bool,
        right: bool,
        count: f64,
        enough: f64,
    },
    FewClusters {
        differing: usize,
        clusters: usize,
        enough: usize,
    },
    /// All clusters differ by the same amount, which leaves the t test without a standard error.
    AllAlike,
}

impl TestReason {
    /// The reason as a clause; `sides` are the names of the two sides.
    pub fn clause(&self, sides: [&str; 2]) -> String {
        match *self {
            TestReason::Enough => {
                "enough answers of both are right and enough are wrong, and enough clusters differ".to_owned()
            }
            TestReason::NotShares => "the scores are not shares of right answers".to_owned(),
            TestReason::FewAnswers { second, right, count, enough } => {
                // Scores between 0 and 1 have fractions.
                let number = (count * 10.0).round() / 10.0;
                let answers = if number == 1.0 { "answer" } else { "answers" };
                let what = if right { "right" } else { "wrong" };
                format!("{} has {number} {what} {answers}, fewer than {enough}", sides[usize::from(second)])
            }
            TestReason::FewClusters { differing, clusters, enough } => {
                let differ = if differing == 1 { "differs" } else { "differ" };
                format!("{differing} of {clusters} clusters {differ}, fewer than {enough}")
            }
            TestReason::AllAlike => "all clusters differ by the same amount".to_owned(),
        }
    }
}

/// Verdict on a paired difference, `second - first`.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedVerdict {
    /// Mean over pairs.
    pub difference: f64,
    /// Two-sided p value.
    pub p: f64,
    pub test: PairedTest,
    /// Standard error of `p`, where it is by Monte Carlo.
    pub p_error: Option<f64>,
    /// Reason for the choice of the test.
    pub reason: TestReason,
    pub clusters: usize,
    /// Clusters whose two sides differ.
    pub differing_clusters: usize,
    /// The difference with its cluster-robust standard error; the verdict's own where the test is the t test.
    pub robust: ClusteredMean,
    /// Interval that agrees with an exact test.
    score: Option<ScoreInterval>,
}

impl PairedVerdict {
    /// Interval of the difference at a confidence level. It contains 0 if and only if `p` is at least `1 - level`. None for a t test whose
    /// standard error is 0.
    pub fn interval(&self, level: f64) -> Option<(f64, f64)> {
        match &self.score {
            Some(score) => Some(score.interval(level)),
            None => (self.robust.standard_error > 0.0).then(|| self.robust.interval(level)),
        }
    }

    /// Standard error of the difference for a plan: where the test is by exchange, at least that of no difference, which does not vanish when
    /// one side has no right answer.
    pub fn planning_error(&self) -> f64 {
        let of_none = self.score.as_ref().map_or(0.0, ScoreInterval::error_of_none);
        self.robust.corrected_error.max(of_none)
    }

    /// False for a t test whose standard error is 0 while the difference is not.
    pub fn has_p(&self) -> bool {
        self.is_exchange() || self.robust.standard_error > 0.0 || self.difference == 0.0
    }

    /// True if the test is by exchange: exact, or by Monte Carlo where there are too many exchanges.
    pub fn is_exchange(&self) -> bool {
        self.test != PairedTest::ClusterT
    }
}

/// Judges the difference of paired answers. Scores between 0 and 1 get an exact test where few answers are right or wrong or few
/// clusters differ; other numbers get the t test.
///
/// # Errors
/// If there are no pairs, just one cluster, or scores that are no numbers.
pub fn paired_verdict(pairs: &[PairedAnswers]) -> Result<PairedVerdict, VerdictError> {
    for (index, pair) in pairs.iter().enumerate() {
        let position = index + 1;
        if pair.first.is_empty() || pair.second.is_empty() {
            return Err(VerdictError::Empty { position });
        }
        if pair.first.iter().chain(&pair.second).any(|answers| !answers.sum.is_finite()) {
            return Err(VerdictError::NotFinite { position });
        }
    }
    let first: Vec<f64> = pairs.iter().map(|pair| mean(&pair.first)).collect();
    let second: Vec<f64> = pairs.iter().map(|pair| mean(&pair.second)).collect();
    let labels: Vec<u64> = pairs.iter().map(|pair| pair.cluster).collect();
    let robust = paired_difference(&first, &second, &labels).map_err(|error| match error {
        ClusterError::TooFewClusters { clusters: 0 } => VerdictError::NoPairs,
        _ => VerdictError::OneCluster,
    })?;
    let clusters = cluster_sums(pairs);
    let differing = clusters.iter().filter(|sum| sum.abs() > ROUNDING).count();
    let of_t = |reason: TestReason| PairedVerdict {
        difference: robust.mean,
        p: robust.p(),
        test: PairedTest::ClusterT,
        p_error: None,
        reason,
        clusters: clusters.len(),
        differing_clusters: differing,
        robust,
        score: None,
    };
    let every = || pairs.iter().flat_map(|pair| pair.first.iter().chain(&pair.second));
    if every().any(|answers| !(0.0..=f64::from(answers.count)).contains(&answers.sum)) {
        return Ok(of_t(TestReason::NotShares));
    }
    let alike = || (robust.standard_error == 0.0 && robust.mean != 0.0).then_some(TestReason::AllAlike);
    let Some(reason) = few(pairs, clusters.len(), differing).or_else(alike) else {
        return Ok(of_t(TestReason::Enough));
    };
    let (test, found) = if pairs.iter().all(PairedAnswers::is_balanced) {
        (PairedTest::SignFlips, sign_flips::test(&clusters))
    } else if pairs.iter().all(PairedAnswers::is_single) {
        let (flips, permutation) = (sign_flips::test(&clusters), permutation::test(pairs, true));
        (PairedTest::SignFlipsAndPermutation, flips.larger(permutation))
    } else if clusters.len() == pairs.len() {
        (PairedTest::Permutation, permutation::test(pairs, false))
    } else {
        // Originals of one cluster may share their fate, which a permutation within each does not see.
        let t = ExchangeP { p: robust.p(), error: None };
        (PairedTest::PermutationAndClusterT, permutation::test(pairs, false).larger(t))
    };
    Ok(PairedVerdict {
        difference: robust.mean,
        p: found.p,
        test,
        p_error: found.error,
        reason,
        clusters: clusters.len(),
        differing_clusters: differing,
        score: Some(ScoreInterval::new(pairs, &robust, found.p)),
        robust,
    })
}

/// Sums of the pairs' differences by cluster, in the order of their first appearance.
fn cluster_sums(pairs: &[PairedAnswers]) -> Vec<f64> {
    let mut index_of: HashMap<u64, usize> = HashMap::new();
    let mut sums: Vec<f64> = Vec::new();
    for pair in pairs {
        let index = *index_of.entry(pair.cluster).or_insert(sums.len());
        if index == sums.len() {
            sums.push(0.0);
        }
        sums[index] += pair.change();
    }
    sums
}

/// Right, and wrong, answers of a side with so many answers from which on the t test is the verdict.
pub fn enough_answers(all: f64) -> f64 {
    ENOUGH_ANSWERS.min(ENOUGH_OF_FEW.max(LEAST_SHARE * all)).ceil()
}

/// The reason for an exact test; none if there are enough answers and clusters for the t test.
fn few(pairs: &[PairedAnswers], clusters: usize, differing: usize) -> Option<TestReason> {
    for second in [false, true] {
        let answers = || pairs.iter().flat_map(move |pair| if second { &pair.second } else { &pair.first });
        let all = answers().map(|answers| f64::from(answers.count)).sum::<f64>();
        let right = answers().map(|answers| answers.sum).sum::<f64>();
        let enough = enough_answers(all);
        for (count, is_right) in [(right, true), (all - right, false)] {
            if count < enough {
                return Some(TestReason::FewAnswers { second, right: is_right, count, enough });
            }
        }
    }
    let enough = ENOUGH_CLUSTERS.min((3 * clusters).div_ceil(4));
    (differing < enough).then_some(TestReason::FewClusters { differing, clusters, enough })
}
