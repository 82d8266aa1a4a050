//! A paired difference that may be looked at after every cluster: a confidence sequence and its sequential test.
//!
//! An interval of a fixed sample is right 95 times of 100 if its size was fixed beforehand. Looked at again and again until it
//! excludes zero, it excludes it sooner or later whether there is a difference or not. A confidence sequence holds the true
//! difference in all its intervals at once with that probability, so that one may stop whenever one likes.
//!
//! The sequence is that of the scale-invariant t mixture: the likelihood ratio of the standardised difference, mixed over a normal
//! prior and over the variance by the right Haar measure, which Ville's inequality bounds at all times.
//!
//! * H. Wang and A. Ramdas, Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance, Sequential
//!   Analysis 44 (2025), after T. L. Lai, On confidence sequences, Annals of Statistics 4 (1976), 265-280: exact if the clusters'
//!   differences are normal.
//! * I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas, Time-uniform central limit theory and asymptotic confidence
//!   sequences, Annals of Statistics 52 (2024): with many clusters, of whatever distribution, the normal mixture that this one
//!   becomes.
//!
//! One question is added to the squares ([`PRIOR_SQUARES`]), because clusters that happen to be alike know nothing of their variance.
//! `benches/results/sequential.md` has the error rates with few and unequal clusters of rare answers, beside those of the asymptotic
//! sequence and of betting on bounded differences, which is exact for any distribution and needs several times the clusters to find
//! a difference. That there is none of a given size is the stronger claim, and answers that are rare make it look true: [`MarginTest`]
//! bets.
//!
//! Clusters come in random order and are the unit, so any dependence inside them is covered. The difference is the mean over pairs,
//! as in [`crate::clustered_mean`]: large clusters count more.
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Clusters that the prior counts for: the standardised difference, the mean over the standard deviation of a cluster's
/// difference, has the prior variance `1 / PRIOR_CLUSTERS`.
pub const PRIOR_CLUSTERS: f64 = 8.0;

/// Squared sum of the differences of one more cluster, which is one question. It makes the evidence smaller.
pub const PRIOR_SQUARES: f64 = 1.0;

/// Bets of [`MarginTest`] in each direction.
const BETS: usize = 50;

/// An unusable level or cluster.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SequentialError {
    /// The confidence level is no probability.
    #[error("confidence level {level}, expected a number between 0 and 1, e.g. 0.95")]
    Level { level: f64 },
    /// The margin is no difference of accuracies.
    #[error("margin {margin}, expected a difference above 0 and below 1, e.g. 0.02")]
    Margin { margin: f64 },
    /// A cluster that is larger than the largest.
    #[error("a cluster of {pairs} pairs, where the largest was to have {largest}")]
    Size { pairs: usize, largest: usize },
    /// A sum that this number of differences between -1 and 1 cannot have.
    #[error("{pairs} differences with the sum {sum}, expected a sum from -{pairs} to {pairs}")]
    Sum { sum: f64, pairs: usize },
}

/// Confidence sequence of a paired difference over clusters. It depends on the clusters so far, not on their order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SequentialDifference {
    clusters: f64,
    /// Sums over clusters of pairs, squared pairs, difference, difference times pairs, and squared difference.
    pairs: f64,
    pairs_squared: f64,
    difference: f64,
    difference_pairs: f64,
    difference_squared: f64,
}

/// A state of a confidence sequence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SequentialEstimate {
    /// Mean difference over pairs.
    pub difference: f64,
    /// Anytime-valid interval; -1 and 1 while there are too few clusters to say anything.
    pub low: f64,
    pub high: f64,
    /// Confidence level of the interval.
    pub level: f64,
    /// Anytime-valid p value of no difference.
    pub p: f64,
    pub pairs: usize,
    pub clusters: usize,
}

/// Checks the sum of a cluster's differences; returns their number.
fn checked(sum: f64, pairs: usize) -> Result<f64, SequentialError> {
    let size = pairs as f64;
    // Sums of means miss whole numbers by rounding.
    if sum.abs() <= size * (1.0 + 1e-9) { Ok(size) } else { Err(SequentialError::Sum { sum, pairs }) }
}

impl SequentialDifference {
    /// Adds a finished cluster: the sum of its differences, each from -1 to 1, and their number. One without pairs changes nothing.
    pub fn add(&mut self, sum: f64, pairs: usize) -> Result<(), SequentialError> {
        let size = checked(sum, pairs)?;
        if pairs == 0 {
            return Ok(());
        }
        self.clusters += 1.0;
        self.pairs += size;
        self.pairs_squared += size * size;
        self.difference += sum;
        self.difference_pairs += sum * size;
        self.difference_squared += sum * sum;
        Ok(())
    }

    /// Number of clusters with pairs.
    pub fn clusters(&self) -> usize {
        self.clusters as usize
    }

    /// Natural logarithm of the evidence against this true difference, a process whose expectation is 1 at most if it is true: of
    /// a cluster with `n` pairs, `n` times (difference - true difference) is a draw with mean zero.
    pub fn log_evidence(&self, difference: f64) -> f64 {
        let sum = self.difference - difference * self.pairs;
        let squares = self.difference_squared - 2.0 * difference * self.difference_pairs
            + difference * difference * self.pairs_squared
            + PRIOR_SQUARES;
        let total = self.clusters + PRIOR_CLUSTERS;
        let left = 1.0 - sum * sum / (squares * total);
        0.5 * (PRIOR_CLUSTERS / total).ln() - 0.5 * self.clusters * left.ln()
    }

    /// Estimate after these clusters; none before the first pair.
    pub fn estimate(&self, level: f64) -> Result<Option<SequentialEstimate>, SequentialError> {
        if !(level > 0.0 && level < 1.0) {
            return Err(SequentialError::Level { level });
        }
        if self.pairs == 0.0 {
            return Ok(None);
        }
        let (low, high) = self.interval(1.0 - level);
        Ok(Some(SequentialEstimate {
            difference: self.difference / self.pairs,
            low,
            high,
            level,
            p: (-self.log_evidence(0.0)).exp().min(1.0),
            pairs: self.pairs as usize,
            clusters: self.clusters(),
        }))
    }

    /// Differences against which the evidence is below `1 / alpha`, clipped to -1 and 1. With `T = (evidence bound)^(2/n)` they
    /// satisfy `(T - 1) squares > T sum^2 / (n + prior clusters)`, a quadratic inequality.
    fn interval(&self, alpha: f64) -> (f64, f64) {
        let total = self.clusters + PRIOR_CLUSTERS;
        let bound = (2.0 / self.clusters * (0.5 * (total / PRIOR_CLUSTERS).ln() - alpha.ln())).exp();
        let share = bound / total;
        let quadratic = (bound - 1.0) * self.pairs_squared - share * self.pairs * self.pairs;
        let half_linear = share * self.pairs * self.difference - (bound - 1.0) * self.difference_pairs;
        let constant =
            (bound - 1.0) * (self.difference_squared + PRIOR_SQUARES) - share * self.difference * self.difference;
        // Not negative: every difference is compatible with so few clusters.
        if quadratic >= 0.0 {
            return (-1.0, 1.0);
        }
        let root = (half_linear * half_linear - quadratic * constant).max(0.0).sqrt();
        let ends = [(-half_linear + root) / quadratic, (-half_linear - root) / quadratic];
        (ends[0].clamp(-1.0, 1.0), ends[1].clamp(-1.0, 1.0))
    }
}

/// Sequential test of a difference that lies within a margin, by betting against either end: exact for any distribution of the
/// clusters' differences between -1 and 1.
///
/// I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting, Journal of the Royal Statistical Society B
/// 86 (2024), 1-27: the wealth of who bets that the mean is smaller than it is has an expectation of 1 at most, so that it ever
/// exceeds `1 / alpha` with probability `alpha` at most. The bettor divides his wealth among 50 constant bets. Both ends have to be
/// refuted, and only one of them can be true, so that each is tested at the whole level.
#[derive(Debug, Clone, PartialEq)]
pub struct MarginTest {
    margin: f64,
    largest: usize,
    /// Wealth of the bets against differences of the margin and more, and of minus the margin and less.
    above: [f64; BETS],
    below: [f64; BETS],
}

impl MarginTest {
    /// Starts a test of differences smaller than the margin, with at most `largest` pairs in a cluster.
    pub fn new(margin: f64, largest: usize) -> Result<Self, SequentialError> {
        if !(margin > 0.0 && margin < 1.0) {
            return Err(SequentialError::Margin { margin });
        }
        Ok(MarginTest { margin, largest, above: [1.0; BETS], below: [1.0; BETS] })
    }

    /// Adds a finished cluster, as [`SequentialDifference::add`].
    pub fn add(&mut self, sum: f64, pairs: usize) -> Result<(), SequentialError> {
        let size = checked(sum, pairs)?;
        if pairs > self.largest {
            return Err(SequentialError::Size { pairs, largest: self.largest });
        }
        // Draws of which the mean is not negative, and not positive, at the two ends; at least -1 in the direction of the bet.
        let unit = (self.largest as f64 * (1.0 - self.margin)).max(f64::MIN_POSITIVE);
        let draws = [(size * self.margin - sum) / unit, (sum + size * self.margin) / unit];
        for (bets, draw) in [&mut self.above, &mut self.below].into_iter().zip(draws) {
            for (index, wealth) in bets.iter_mut().enumerate() {
                let stake = (index as f64 + 0.5) / BETS as f64;
                // Bounded, so that no wealth becomes infinite.
                *wealth = (*wealth * (1.0 + stake * draw)).min(1e300);
            }
        }
        Ok(())
    }

    /// Evidence that the difference is within the margin: the smaller of the two wealths.
    pub fn evidence(&self) -> f64 {
        let mean = |bets: &[f64; BETS]| bets.iter().sum::<f64>() / BETS as f64;
        mean(&self.above).min(mean(&self.below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::normal_quantile;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn sequence(clusters: &[(f64, usize)]) -> SequentialDifference {
        let mut sequence = SequentialDifference::default();
        clusters.iter().for_each(|&(sum, pairs)| sequence.add(sum, pairs).unwrap());
        sequence
    }

    /// The mixture by brute force: the normal likelihood with the mean `effect * sd`, integrated over the prior of the effect
    /// and over `d sd / sd`, divided by that with effect zero.
    fn evidence_by_integration(draws: &[f64]) -> f64 {
        let marginal = |effect: f64| {
            let mut sum = 0.0;
            for step in -4000..4000 {
                let log_sd = f64::from(step) * 0.002;
                let sd = log_sd.exp();
                let exponent: f64 = draws.iter().map(|x| -0.5 * (x / sd - effect).powi(2)).sum::<f64>()
                    - draws.len() as f64 * log_sd
                    - 0.5 * PRIOR_SQUARES / (sd * sd);
                sum += exponent.exp() * 0.002;
            }
            sum
        };
        let mut mixed = 0.0;
        for step in -300..300 {
            let effect = f64::from(step) * 0.01;
            let prior =
                (-0.5 * effect * effect * PRIOR_CLUSTERS).exp() * (PRIOR_CLUSTERS / std::f64::consts::TAU).sqrt();
            mixed += prior * marginal(effect) * 0.01;
        }
        mixed / marginal(0.0)
    }

    #[test]
    fn the_evidence_is_the_integral_that_defines_it() {
        let draws = [0.3, -0.1, 0.25, 0.4, 0.05, 0.2];
        let found = sequence(&draws.map(|draw| (draw, 1))).log_evidence(0.0).exp();
        let expected = evidence_by_integration(&draws);
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
        // Of clusters of several pairs, the sums are the draws.
        let sizes = [2, 5, 3, 4, 1, 2];
        let clusters: Vec<(f64, usize)> = draws.into_iter().zip(sizes).collect();
        let centred: Vec<f64> = clusters.iter().map(|(sum, pairs)| sum - 0.1 * *pairs as f64).collect();
        let found = sequence(&clusters).log_evidence(0.1).exp();
        let expected = evidence_by_integration(&centred);
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
    }

    #[test]
    fn the_interval_has_the_differences_without_enough_evidence() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for clusters in [9, 12, 40, 300] {
            let drawn: Vec<(f64, usize)> = (0..clusters)
                .map(|_| {
                    let pairs = random.random_range(1..9);
                    ((0.1 + 0.8 * random.random::<f64>() - 0.3) * pairs as f64, pairs)
                })
                .collect();
            let sequence = sequence(&drawn);
            let estimate = sequence.estimate(0.95).unwrap().unwrap();
            assert!(estimate.low < estimate.difference && estimate.difference < estimate.high, "{estimate:?}");
            let bound = 20_f64.ln();
            for end in [estimate.low, estimate.high] {
                if end.abs() < 1.0 {
                    let outwards = end + 1e-4 * (end - estimate.difference).signum();
                    let inwards = end - 1e-4 * (end - estimate.difference).signum();
                    assert!((sequence.log_evidence(end) - bound).abs() < 1e-8, "{estimate:?}");
                    assert!(sequence.log_evidence(outwards) > bound && sequence.log_evidence(inwards) < bound);
                } else {
                    assert!(sequence.log_evidence(end) < bound, "{estimate:?}");
                }
            }
            // The order does not matter.
            let mut turned = drawn.clone();
            turned.reverse();
            let turned = super::tests::sequence(&turned).estimate(0.95).unwrap().unwrap();
            assert!((turned.low - estimate.low).abs() < 1e-12 && (turned.p - estimate.p).abs() < 1e-12);
        }
    }

    #[test]
    fn few_or_equal_clusters_decide_nothing() {
        let none = SequentialDifference::default();
        assert_eq!((none.estimate(0.95).unwrap(), none.log_evidence(0.2)), (None, 0.0));
        let equal = sequence(&[(0.0, 4); 500]).estimate(0.95).unwrap().unwrap();
        assert_eq!((equal.difference, equal.p, equal.clusters, equal.pairs), (0.0, 1.0, 500, 2000));
        // Not a point: a difference on rare questions may not have been seen.
        assert!(equal.high > 0.001 && equal.high < 0.01 && (equal.low + equal.high).abs() < 1e-12, "{equal:?}");
        // However clear, eight clusters are too few.
        let few = sequence(&[(40.0, 40); 8]).estimate(0.95).unwrap().unwrap();
        assert_eq!((few.low, few.high), (-1.0, 1.0));
        let many = sequence(&[(40.0, 40); 12]).estimate(0.95).unwrap().unwrap();
        assert!(many.low > 0.9 && many.p < 0.05, "{many:?}");
        // A cluster without pairs is none.
        let mut with_empty = sequence(&[(1.0, 4), (2.0, 3)]);
        with_empty.add(0.0, 0).unwrap();
        assert_eq!(with_empty, sequence(&[(1.0, 4), (2.0, 3)]));
    }

    #[test]
    fn impossible_input_is_refused() {
        let mut sequence = SequentialDifference::default();
        assert_eq!(sequence.add(3.5, 3), Err(SequentialError::Sum { sum: 3.5, pairs: 3 }));
        assert!(sequence.add(f64::NAN, 3).is_err() && sequence.add(1.0, 0).is_err());
        assert_eq!(sequence.estimate(1.0), Err(SequentialError::Level { level: 1.0 }));
        assert!(sequence.estimate(f64::NAN).is_err());
        assert_eq!(MarginTest::new(0.0, 5), Err(SequentialError::Margin { margin: 0.0 }));
        assert!(MarginTest::new(1.0, 5).is_err() && MarginTest::new(f64::NAN, 5).is_err());
        let mut test = MarginTest::new(0.1, 5).unwrap();
        assert_eq!(test.add(0.0, 6), Err(SequentialError::Size { pairs: 6, largest: 5 }));
        assert!(test.add(7.0, 5).is_err());
    }

    /// The expectation of each bet's wealth is 1 where the difference is the margin, whatever the distribution.
    #[test]
    fn bets_against_the_truth_gain_nothing() {
        // A cluster of three has the difference 1 with probability 1/10, else 0: the mean is 1/10.
        let expected = |sum: [f64; 2]| {
            let wealth = |sum: f64| {
                let mut test = MarginTest::new(0.1, 3).unwrap();
                test.add(sum, 3).unwrap();
                test.above
            };
            let (one, other) = (wealth(sum[0]), wealth(sum[1]));
            one.iter().zip(other).map(|(one, other)| 0.1 * one + 0.9 * other).collect::<Vec<_>>()
        };
        for wealth in expected([3.0, 0.0]) {
            assert!((wealth - 1.0).abs() < 1e-12, "{wealth}");
        }
        // The worst clusters take all but what was not staked.
        let mut test = MarginTest::new(0.1, 3).unwrap();
        test.add(3.0, 3).unwrap();
        assert!(test.above.iter().all(|wealth| *wealth >= 0.0) && test.above[BETS - 1] < 0.011, "{test:?}");
        // Clusters without a difference refute both ends after some time.
        let mut equal = MarginTest::new(0.1, 3).unwrap();
        let needed = (1..).find(|_| {
            equal.add(0.0, 3).unwrap();
            equal.evidence() >= 20.0
        });
        assert!((35..60).contains(&needed.unwrap()), "{needed:?}");
    }

    /// A large version with other distributions is `benches/sequential.rs`.
    #[test]
    fn looks_after_every_cluster_err_no_more_than_they_may() {
        let (studies, clusters) = (2000, 200);
        let (mut sequential, mut naive) = (0, 0);
        for study in 0..studies {
            let mut random = ChaCha8Rng::seed_from_u64(11);
            random.set_stream(study);
            let mut sequence = SequentialDifference::default();
            let (mut excluded, mut t_excluded) = (false, false);
            let (mut sum, mut squares) = (0.0, 0.0);
            for cluster in 1..=clusters {
                let draw = (0.2 * normal_quantile(random.random_range(1e-9..1.0))).clamp(-1.0, 1.0);
                sequence.add(draw, 1).unwrap();
                let estimate = sequence.estimate(0.95).unwrap().unwrap();
                excluded |= estimate.low > 0.0 || estimate.high < 0.0;
                let count = f64::from(cluster);
                (sum, squares) = (sum + draw, squares + draw * draw);
                let error = ((squares / count - (sum / count).powi(2)) / (count - 1.0)).sqrt();
                t_excluded |= cluster >= 7 && (sum / count / error).abs() > 2.45;
            }
            sequential += usize::from(excluded);
            naive += usize::from(t_excluded);
        }
        let share = |count: usize| count as f64 / studies as f64;
        // Three Monte Carlo errors above 5 % would be 6.5 %.
        assert!(share(sequential) <= 0.05, "{}", share(sequential));
        assert!(share(naive) > 0.15, "{}", share(naive));
    }
}
