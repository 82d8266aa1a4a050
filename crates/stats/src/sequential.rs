//! A paired difference that may be looked at after every cluster: a confidence sequence and its sequential test.
//!
//! An interval of a fixed sample is right 95 times of 100 if its size was fixed beforehand. Looked at again and again until it
//! excludes zero, it excludes it sooner or later whether there is a difference or not. A confidence sequence holds the true
//! difference in all its intervals at once with that probability, so that one may stop whenever one likes.
//!
//! The sequence is that of the scale-invariant t mixture: the likelihood ratio of the standardised difference, mixed over a normal
//! prior with [`PRIOR_SD`] and over the variance by the right Haar measure, which Ville's inequality bounds at all times.
//!
//! * H. Wang and A. Ramdas, Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance, Sequential
//!   Analysis 44 (2025), after T. L. Lai, On confidence sequences, Annals of Statistics 4 (1976), 265-280: exact if the clusters'
//!   differences are normal.
//! * I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas, Time-uniform central limit theory and asymptotic confidence
//!   sequences, Annals of Statistics 52 (2024): with many clusters, of whatever distribution, the normal mixture that this one
//!   becomes.
//!
//! `benches/results/sequential.md` has its error rates with few and unequal clusters of rare answers, beside those of the
//! asymptotic sequence and of the betting one, which is exact for any bounded distribution and needs several times the clusters.
//!
//! Clusters come in random order and are the unit, so any dependence inside them is covered. The difference is the mean over pairs,
//! as in [`crate::clustered_mean`]: large clusters count more.
use serde::Serialize;
use thiserror::Error;

/// Standard deviation of the prior over the standardised difference, the mean over the standard deviation of a cluster's difference:
/// a medium effect.
pub const PRIOR_SD: f64 = 0.5;

/// Clusters that the prior counts for.
const PRIOR_CLUSTERS: f64 = 1.0 / (PRIOR_SD * PRIOR_SD);

/// An unusable level or cluster.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SequentialError {
    /// The confidence level is no probability.
    #[error("confidence level {level}, expected a number between 0 and 1, e.g. 0.95")]
    Level { level: f64 },
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

impl SequentialDifference {
    /// Adds a finished cluster: the sum of its differences, each from -1 to 1, and their number. One without pairs changes nothing.
    pub fn add(&mut self, sum: f64, pairs: usize) -> Result<(), SequentialError> {
        let size = pairs as f64;
        // Sums of means miss whole numbers by rounding.
        if !(sum.abs() <= size * (1.0 + 1e-9)) {
            return Err(SequentialError::Sum { sum, pairs });
        }
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
        let squares = self.squares(difference);
        if squares <= 0.0 {
            return 0.0;
        }
        let total = self.clusters + PRIOR_CLUSTERS;
        let left = 1.0 - (sum * sum / (squares * total)).min(1.0);
        0.5 * (PRIOR_CLUSTERS / total).ln() - 0.5 * self.clusters * left.ln()
    }

    /// Sum of squared distances of the clusters' sums from those that a difference predicts.
    fn squares(&self, difference: f64) -> f64 {
        let squares = self.difference_squared - 2.0 * difference * self.difference_pairs
            + difference * difference * self.pairs_squared;
        // What is left of a difference of equal sums is rounding.
        if squares <= 1e-12 * self.difference_squared { 0.0 } else { squares }
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
        let constant = (bound - 1.0) * self.difference_squared - share * self.difference * self.difference;
        // Not negative: every difference is compatible with so few clusters.
        if quadratic >= 0.0 {
            return (-1.0, 1.0);
        }
        let root = (half_linear * half_linear - quadratic * constant).max(0.0).sqrt();
        let ends = [(-half_linear + root) / quadratic, (-half_linear - root) / quadratic];
        (ends[0].clamp(-1.0, 1.0), ends[1].clamp(-1.0, 1.0))
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
                let exponent: f64 =
                    draws.iter().map(|x| -0.5 * (x / sd - effect).powi(2)).sum::<f64>() - draws.len() as f64 * log_sd;
                sum += exponent.exp() * 0.002;
            }
            sum
        };
        let mut mixed = 0.0;
        for step in -300..300 {
            let effect = f64::from(step) * 0.01;
            let prior = (-0.5 * (effect / PRIOR_SD).powi(2)).exp() / (PRIOR_SD * (2.0 * std::f64::consts::PI).sqrt());
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
        for clusters in [7, 12, 40, 300] {
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
        // However clear, six clusters are too few.
        let six = sequence(&[(4.0, 4); 6]).estimate(0.95).unwrap().unwrap();
        assert_eq!((six.low, six.high), (-1.0, 1.0));
        let many = sequence(&[(4.0, 4); 7]).estimate(0.95).unwrap().unwrap();
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
