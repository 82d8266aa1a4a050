//! Means and paired differences of clustered observations.
//!
//! Questions made from one template are not independent; treating them so makes errors too small. The cluster-robust
//! variance of a mean sums residuals within clusters before squaring, so any dependence inside a cluster is covered. With few
//! clusters, or a few large ones, residuals are too small, and there are fewer degrees of freedom than clusters: intervals and
//! tests have CR2 of R. M. Bell and D. F. McCaffrey (Survey Methodology 28, 2002, 169-181) with their degrees of freedom after
//! Satterthwaite, as clubSandwich has them. With clusters of one size both are the plain ones: a factor `G / (G - 1)` and `G - 1`.
use std::collections::HashMap;

use serde::Serialize;
use thiserror::Error;

use super::distribution::{normal_cdf, normal_quantile, student_quantile, student_two_sided};

/// Reason for an estimate having no standard error.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ClusterError {
    /// Columns differ in length.
    #[error("{values} values but {clusters} cluster labels")]
    Length { values: usize, clusters: usize },
    /// A variance between clusters needs two.
    #[error("a cluster-robust error needs at least two clusters, and these rows have {clusters}")]
    TooFewClusters { clusters: usize },
    /// A value is NaN or infinite.
    #[error("value {value} at position {position}; drop missing values first")]
    NotFinite { position: usize, value: f64 },
}

/// A mean with its cluster-robust error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusteredMean {
    /// Plain mean over observations.
    pub mean: f64,
    /// Cluster-robust standard error with the factor `G / (G - 1)` (CR1).
    pub standard_error: f64,
    /// Cluster-robust standard error behind interval and p (CR2); the same with clusters of one size.
    pub corrected_error: f64,
    /// Degrees of freedom of the t distribution; the number of clusters less 1 if they have one size.
    pub degrees_of_freedom: f64,
    /// Standard error under independence of the observations.
    pub naive_error: f64,
    /// Ratio of the variances: how many observations count as one; 1 without a naive error.
    pub design_effect: f64,
    /// Number of observations.
    pub observations: usize,
    /// Number of clusters.
    pub clusters: usize,
}

impl ClusteredMean {
    /// `mean +- t * corrected_error`.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let reach = student_quantile(0.5 + 0.5 * level, self.degrees_of_freedom) * self.corrected_error;
        (self.mean - reach, self.mean + reach)
    }

    /// Two-sided p value of a mean of zero, from the same t distribution; 1 if mean and error are both zero.
    pub fn p(&self) -> f64 {
        if self.mean == 0.0 && self.standard_error == 0.0 {
            return 1.0;
        }
        student_two_sided(self.mean / self.corrected_error, self.degrees_of_freedom)
    }
}

/// Largest residual, relative to the largest value, that is taken for rounding.
const ROUNDING: f64 = 1e-12;

/// The mean of clustered values (scores of 0 and 1, or anything else).
pub fn clustered_mean(values: &[f64], clusters: &[u64]) -> Result<ClusteredMean, ClusterError> {
    if values.len() != clusters.len() {
        return Err(ClusterError::Length { values: values.len(), clusters: clusters.len() });
    }
    if let Some((position, &value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(ClusterError::NotFinite { position: position + 1, value });
    }
    let mut index_of: HashMap<u64, usize> = HashMap::new();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    // Sums in order of first appearance: a hash map's own order would move the last digits from run to run.
    let mut sums: Vec<f64> = Vec::new();
    let mut sizes: Vec<f64> = Vec::new();
    let mut squares = 0.0;
    let scale = values.iter().fold(0.0, |scale: f64, value| scale.max(value.abs()));
    let noise = ROUNDING * scale;
    for (value, cluster) in values.iter().zip(clusters) {
        let next = sums.len();
        let index = *index_of.entry(*cluster).or_insert(next);
        if index == next {
            sums.push(0.0);
            sizes.push(0.0);
        }
        let residual = value - mean;
        sums[index] += residual;
        sizes[index] += 1.0;
        squares += if residual.abs() > noise { residual * residual } else { 0.0 };
    }
    // What rounding leaves of clusters with equal means is no variance: it would make certainty of nothing.
    if sums.iter().zip(&sizes).all(|(sum, size)| sum.abs() <= noise * size) {
        sums.iter_mut().for_each(|sum| *sum = 0.0);
    }
    if sums.len() < 2 {
        return Err(ClusterError::TooFewClusters { clusters: sums.len() });
    }
    let parts: Vec<f64> = sizes.iter().map(|size| size / count).collect();
    let groups = sums.len() as f64;
    let variance = sums.iter().map(|sum| sum * sum).sum::<f64>() / (count * count) * groups / (groups - 1.0);
    let corrected = sums.iter().zip(&parts).map(|(sum, part)| sum * sum / (1.0 - part)).sum::<f64>() / (count * count);
    let naive = squares / (count - 1.0) / count;
    Ok(ClusteredMean {
        mean,
        standard_error: variance.sqrt(),
        corrected_error: corrected.sqrt(),
        degrees_of_freedom: satterthwaite(&parts),
        naive_error: naive.sqrt(),
        design_effect: if naive > 0.0 { variance / naive } else { 1.0 },
        observations: values.len(),
        clusters: sums.len(),
    })
}

/// Degrees of freedom of a mean's variance by CR2, from the clusters' shares of the observations: twice the squared expectation over the
/// variance, for independent normal observations.
fn satterthwaite(parts: &[f64]) -> f64 {
    let own: f64 = parts.iter().map(|part| part * part).sum();
    let crossed = |part: &f64| part * part / (1.0 - part);
    let sum: f64 = parts.iter().map(crossed).sum();
    let squares: f64 = parts.iter().map(|part| crossed(part).powi(2)).sum();
    1.0 / (own + sum * sum - squares)
}

/// Number of clusters of one size that tell as much as clusters of these sizes: the degrees of freedom of their mean, plus 1.
pub(crate) fn worth_in_clusters(mut sizes: Vec<f64>) -> f64 {
    if sizes.len() < 2 {
        return sizes.len() as f64;
    }
    // In order, so that sums do not depend on where the sizes come from.
    sizes.sort_by(f64::total_cmp);
    if sizes.first() == sizes.last() {
        return sizes.len() as f64;
    }
    let count: f64 = sizes.iter().sum();
    let parts: Vec<f64> = sizes.iter().map(|size| size / count).collect();
    satterthwaite(&parts) + 1.0
}

/// The mean difference `second - first` of paired values, pairs within clusters: what to compare two models, prompts or
/// conditions with when both answered the same questions.
pub fn paired_difference(first: &[f64], second: &[f64], clusters: &[u64]) -> Result<ClusteredMean, ClusterError> {
    if first.len() != second.len() {
        return Err(ClusterError::Length { values: first.len(), clusters: second.len() });
    }
    let differences: Vec<f64> = first.iter().zip(second).map(|(first, second)| second - first).collect();
    clustered_mean(&differences, clusters)
}

/// Clusters from which on the t distribution is taken as normal.
const NORMAL_CLUSTERS: f64 = 1e6;

/// The smallest effect, in standard errors of its estimate, that the two-sided t test with `clusters - 1` degrees of freedom at
/// level `alpha` finds with probability `power`: the noncentrality at which the noncentral t distribution has that power
/// (J. Cohen, Statistical Power Analysis, 2nd ed. 1988, chapter 2, with its exact distribution). The sum of two quantiles, normal
/// ones above all, promises too much with few clusters: with 6 of them, 2.80 standard errors are found 6 times of 10, not 8.
///
/// NaN with fewer than two clusters, or where level or power is not between 0 and 1, or the power not above the level.
pub fn t_reach(clusters: f64, alpha: f64, power: f64) -> f64 {
    let inside = |value: f64| value > 0.0 && value < 1.0;
    if clusters.is_nan() || clusters < 2.0 || !inside(alpha) || !inside(power) || power <= alpha {
        return f64::NAN;
    }
    if clusters >= NORMAL_CLUSTERS {
        return normal_quantile(1.0 - 0.5 * alpha) + normal_quantile(power);
    }
    let freedom = clusters - 1.0;
    let critical = student_quantile(1.0 - 0.5 * alpha, freedom);
    let (mut low, mut high) = (0.0, critical.max(1.0));
    while t_power(high, freedom, critical) < power && high < 1e12 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if t_power(middle, freedom, critical) < power {
            low = middle
        } else {
            high = middle
        }
        if high - low <= 1e-10 * high {
            break;
        }
    }
    high
}

/// The probability that `|T|` exceeds a critical value, T noncentral t: with `S = chi / sqrt(freedom)`, the mean of
/// `Phi(effect - critical S) + Phi(-effect - critical S)` over S, by Simpson's rule.
pub(crate) fn t_power(effect: f64, freedom: f64, critical: f64) -> f64 {
    // What of S is more than 9 standard deviations of a normal variable away does not count: chi is 1-Lipschitz in them.
    let reach = 9.0 / freedom.sqrt();
    let (first, last) = ((1.0 - reach).max(0.0), 1.0 + reach);
    // The density of S up to a factor, 1 at S = 1.
    let density = |s: f64| {
        let power = if freedom > 1.0 { (freedom - 1.0) * s.ln() } else { 0.0 };
        (power - 0.5 * freedom * (s * s - 1.0)).exp()
    };
    let exceeds = |s: f64| normal_cdf(effect - critical * s) + normal_cdf(-effect - critical * s);
    // The step of `exceeds` may be far narrower than the density.
    let edges = [(effect - 9.0) / critical, (effect + 9.0) / critical].map(|edge| edge.clamp(first, last));
    let (mut mass, mut found) = (0.0, 0.0);
    for (from, to) in [(first, edges[0]), (edges[0], edges[1]), (edges[1], last)] {
        const STEPS: usize = 256;
        let step = (to - from) / STEPS as f64;
        for index in 0..=STEPS {
            let weight = match index {
                0 | STEPS => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let s = from + step * index as f64;
            let weighted = weight * step / 3.0 * density(s);
            mass += weighted;
            found += weighted * exceeds(s);
        }
    }
    found / mass
}

#[cfg(test)]
mod tests {
    use super::*;

    // Python: brentq over the integral with scipy.stats.chi and norm (quad, 1e-12), apart from this code. `nct` gives the same.
    #[test]
    fn what_a_t_test_reaches_equals_an_independent_integral() {
        for (clusters, alpha, power, expected) in [
            (2.0, 0.05, 0.8, 16.334_008_869_920_986),
            (3.0, 0.05, 0.8, 5.653_489_266_197_122),
            (6.0, 0.05, 0.8, 3.513_902_729_171_13),
            (10.0, 0.05, 0.8, 3.149_632_886_450_617),
            (50.0, 0.05, 0.8, 2.858_005_416_507_352),
            (1000.0, 0.05, 0.8, 2.804_278_596_761_949),
            (6.0, 0.025, 0.8, 4.176_996_973_501_09),
            (10.0, 0.01, 0.9, 4.774_199_636_519_425),
            (4.0, 0.05, 0.5, 2.868_269_948_166_188),
        ] {
            let found = t_reach(clusters, alpha, power);
            assert!((found / expected - 1.0).abs() < 1e-6, "{clusters} {alpha} {power}: {found} is not {expected}");
        }
        // Many clusters: the sum of normal quantiles.
        assert!((t_reach(1e9, 0.05, 0.8) - 2.801_585_218).abs() < 1e-8);
        assert!((t_reach(9e5, 0.05, 0.8) - 2.801_585_218).abs() < 1e-4);
        for (clusters, alpha, power) in [(1.0, 0.05, 0.8), (f64::NAN, 0.05, 0.8), (9.0, 0.0, 0.8), (9.0, 0.5, 0.5)] {
            assert!(t_reach(clusters, alpha, power).is_nan());
        }
    }

    #[test]
    fn what_is_called_detectable_is_found_4_times_of_5() {
        // SplitMix64 and Box-Muller: numbers that are the same everywhere.
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut normal = || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        for (count, alpha) in [(4, 0.05), (6, 0.05), (6, 0.025), (10, 0.05)] {
            // Clusters of 3 alike observations each; the mean's true standard error is 1 / sqrt(count).
            let effect = t_reach(f64::from(count), alpha, 0.8) / f64::from(count).sqrt();
            let clusters: Vec<u64> = (0..u64::from(count as u32) * 3).map(|index| index / 3).collect();
            let draws = 20_000;
            let mut found = 0;
            for _ in 0..draws {
                let values: Vec<f64> = (0..count).flat_map(|_| [effect + normal(); 3]).collect();
                found += u32::from(clustered_mean(&values, &clusters).unwrap().p() < alpha);
            }
            let share = f64::from(found) / f64::from(draws);
            assert!((share - 0.8).abs() < 0.01, "{count} clusters at {alpha}: found {share}");
        }
    }

    // statsmodels 0.15: y = [((i*3 + i*i) % 7) / 7 for i in range(30)], c = [i % 6 for i in range(30)];
    // OLS(y, ones).fit(cov_type="cluster", cov_kwds={"groups": c}, use_t=True): params, bse, pvalues, conf_int
    #[test]
    fn error_interval_and_p_equal_statsmodels() {
        let values: Vec<f64> = (0..30_u32).map(|i| f64::from((i * 3 + i * i) % 7) / 7.0).collect();
        let clusters: Vec<u64> = (0..30).map(|i| i % 6).collect();
        let found = clustered_mean(&values, &clusters).unwrap();
        assert!((found.mean - 0.41904761904761884).abs() < 1e-14);
        assert!((found.standard_error - 0.025197631533948474).abs() < 1e-14, "{found:?}");
        assert!((found.p() / 1.43584209e-05 - 1.0).abs() < 1e-7, "{}", found.p());
        let (low, high) = found.interval(0.95);
        assert!((low - 0.35427505).abs() < 1e-8 && (high - 0.48382019).abs() < 1e-8);
    }

    // numpy, from Bell and McCaffrey's matrices, apart from this code: A = (I - H)^(-1/2) of each cluster, the trace of G squared over that
    // of G G, with G the products of the clusters' vectors.
    #[test]
    fn unequal_clusters_have_fewer_degrees_of_freedom() {
        let values = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0];
        let clusters = [1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4];
        let found = clustered_mean(&values, &clusters).unwrap();
        assert!((found.corrected_error - 0.144_337_567_297_406_43).abs() < 1e-12, "{found:?}");
        assert!((found.degrees_of_freedom - 2.272_727_272_727_272_5).abs() < 1e-10, "{found:?}");
        assert!(found.standard_error != found.corrected_error && found.degrees_of_freedom < 3.0);
    }

    #[test]
    fn identical_answers_within_clusters_count_once() {
        // 4 clusters of 10 equal values: the error is that of 4 observations.
        let values: Vec<f64> = (0..40).map(|i| f64::from(u8::from(i / 10 < 2))).collect();
        let clusters: Vec<u64> = (0..40).map(|i| i / 10).collect();
        let found = clustered_mean(&values, &clusters).unwrap();
        let four = clustered_mean(&[1.0, 1.0, 0.0, 0.0], &[0, 1, 2, 3]).unwrap();
        assert!((found.standard_error - four.standard_error).abs() < 1e-15);
        assert!((found.design_effect - 13.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn rounding_is_no_variance() {
        // Every cluster has the mean -0.15, which no binary number is.
        let values: Vec<f64> = (0..40).map(|i| if i % 20 < 3 { -1.0 } else { 0.0 }).collect();
        let clusters: Vec<u64> = (0..40).map(|i| i / 20).collect();
        let found = clustered_mean(&values, &clusters).unwrap();
        assert_eq!(found.standard_error, 0.0, "{found:?}");
        assert!(found.naive_error > 0.0);
        let equal = clustered_mean(&[0.1; 30], &(0..30).collect::<Vec<u64>>()).unwrap();
        assert_eq!((equal.standard_error, equal.naive_error, equal.design_effect), (0.0, 0.0, 1.0));
        // A small difference is one.
        let small = clustered_mean(&[1.0, 1.0 + 1e-9, 1.0], &[0, 1, 2]).unwrap();
        assert!(small.standard_error > 0.0);
    }

    #[test]
    fn pairs_cancel_what_they_share() {
        let first = [1.0, 0.0, 1.0, 1.0];
        let second = [1.0, 0.0, 1.0, 1.0];
        let found = paired_difference(&first, &second, &[0, 0, 1, 1]).unwrap();
        assert_eq!((found.mean, found.standard_error, found.p()), (0.0, 0.0, 1.0));
        assert!(matches!(paired_difference(&first, &second[..3], &[0; 4]), Err(ClusterError::Length { .. })));
        assert!(matches!(clustered_mean(&first, &[7; 4]), Err(ClusterError::TooFewClusters { clusters: 1 })));
        assert!(matches!(clustered_mean(&[], &[]), Err(ClusterError::TooFewClusters { clusters: 0 })));
        assert!(matches!(clustered_mean(&[f64::NAN; 2], &[0, 1]), Err(ClusterError::NotFinite { position: 1, .. })));
    }
}
