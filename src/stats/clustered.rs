//! Means and paired differences of clustered observations.
//!
//! Questions made from one template are not independent; treating them so makes errors too small. The cluster-robust
//! variance of a mean sums residuals within clusters before squaring, so any dependence inside a cluster is covered.
use std::collections::HashMap;

use serde::Serialize;
use thiserror::Error;

use super::distribution::{student_quantile, student_two_sided};

/// Why an estimate has no error.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ClusterError {
    /// Columns differ in length.
    #[error("{values} values but {clusters} cluster labels")]
    Length { values: usize, clusters: usize },
    /// A variance between clusters needs two.
    #[error("{clusters} clusters: a cluster-robust error needs at least two")]
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
    /// What the error would be were observations independent.
    pub naive_error: f64,
    /// Ratio of the variances: how many observations count as one; 1 without a naive error.
    pub design_effect: f64,
    /// Number of observations.
    pub observations: usize,
    /// Number of clusters.
    pub clusters: usize,
}

impl ClusteredMean {
    /// `mean +- t * standard_error`, t with `clusters - 1` degrees of freedom.
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let reach = student_quantile(0.5 + 0.5 * level, (self.clusters - 1) as f64) * self.standard_error;
        (self.mean - reach, self.mean + reach)
    }

    /// Two-sided p value of a mean of zero, from the same t distribution; 1 if mean and error are both zero.
    pub fn p(&self) -> f64 {
        if self.mean == 0.0 && self.standard_error == 0.0 {
            return 1.0;
        }
        student_two_sided(self.mean / self.standard_error, (self.clusters - 1) as f64)
    }
}

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
    let mut squares = 0.0;
    for (value, cluster) in values.iter().zip(clusters) {
        let next = sums.len();
        let index = *index_of.entry(*cluster).or_insert(next);
        if index == next {
            sums.push(0.0);
        }
        sums[index] += value - mean;
        squares += (value - mean).powi(2);
    }
    if sums.len() < 2 {
        return Err(ClusterError::TooFewClusters { clusters: sums.len() });
    }
    let groups = sums.len() as f64;
    let variance = sums.iter().map(|sum| sum * sum).sum::<f64>() / (count * count) * groups / (groups - 1.0);
    let naive = squares / (count - 1.0) / count;
    Ok(ClusteredMean {
        mean,
        standard_error: variance.sqrt(),
        naive_error: naive.sqrt(),
        design_effect: if naive > 0.0 { variance / naive } else { 1.0 },
        observations: values.len(),
        clusters: sums.len(),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

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
