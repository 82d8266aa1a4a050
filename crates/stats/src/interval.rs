//! Intervals for proportions and errors of means.
use std::collections::BTreeMap;

use super::clustered::clustered_mean;

/// The 97.5 % quantile of the standard normal distribution: the `z` of a two-sided 95 % interval.
pub const Z95: f64 = 1.959_963_984_540_054;

/// An estimate between its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// The proportion `successes / n` with its Wilson score interval; `None` if `n` is not positive.
///
/// With `p = successes / n` the bounds are `(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)`
/// (E. B. Wilson, JASA 22, 1927, 209-212). Both arguments may be fractional: means over several samples of an item have
/// fractional successes, designs with unequal variances have a fractional effective size. Successes outside `0..=n` are
/// clamped.
pub fn wilson(successes: f64, n: f64, z: f64) -> Option<Estimate> {
    if !n.is_finite() || n <= 0.0 || successes.is_nan() {
        return None;
    }
    let p = (successes / n).clamp(0.0, 1.0);
    let z2 = z * z;
    let centre = p + z2 / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    // At p = 0 and p = 1 one bound is p itself; rounding must not move it past.
    let low = if p == 0.0 { 0.0 } else { ((centre - half) / scale).clamp(0.0, p) };
    let high = if p == 1.0 { 1.0 } else { ((centre + half) / scale).clamp(p, 1.0) };
    Some(Estimate { value: p, low, high })
}

/// Interval of the difference `one - other` of two shares from their own intervals, as of independent samples: Newcombe's hybrid score interval
/// (method 10) where these are Wilson's. Shares of the same questions differ less by chance than this says, so that it errs on the side of "may be
/// equal" (R. G. Newcombe, Statistics in Medicine 17, 1998, 873-890).
pub fn difference_of_shares(one: Estimate, other: Estimate) -> (f64, f64) {
    let difference = one.value - other.value;
    let below = (one.value - one.low).hypot(other.high - other.value);
    let above = (one.high - one.value).hypot(other.value - other.low);
    (difference - below, difference + above)
}

/// The mean of values in `0..=1` that come in clusters, with Wilson's interval for as many independent values as the
/// cluster-robust error is worth: `p (1 - p) / se²`, at least one, at most all of them; the number of clusters where the values
/// are all alike, because then no error can be estimated. `None` without values, or where the two slices differ in length.
pub fn clustered_wilson(values: &[f64], clusters: &[u64], z: f64) -> Option<Estimate> {
    if values.is_empty() || values.len() != clusters.len() {
        return None;
    }
    let count = values.len() as f64;
    let p = values.iter().sum::<f64>() / count;
    let effective = match clustered_mean(values, clusters) {
        // One cluster counts as one value.
        Err(_) => 1.0,
        Ok(found) if found.clusters == values.len() => count,
        Ok(found) => {
            let spread = p * (1.0 - p);
            let variance = found.standard_error * found.standard_error;
            if spread > 1e-12 { (spread / variance).clamp(1.0, count) } else { found.clusters as f64 }
        }
    };
    wilson(p * effective, effective, z)
}

/// The mean of any values with its normal interval, `x̄ ± z s/√n` with the sample standard deviation `s`; `None` without
/// values. One value says nothing about its spread: its bounds are infinite.
pub fn mean(values: &[f64], z: f64) -> Option<Estimate> {
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    match values.len() {
        0 => None,
        1 => Some(Estimate { value, low: f64::NEG_INFINITY, high: f64::INFINITY }),
        _ => {
            let variance = values.iter().map(|x| (x - value).powi(2)).sum::<f64>() / (n - 1.0);
            let half = z * (variance / n).sqrt();
            Some(Estimate { value, low: value - half, high: value + half })
        }
    }
}

/// One stratum of a stratified sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stratum {
    /// Sum of the values, each in 0..=1; fractional if a value is itself a mean.
    pub successes: f64,
    /// Number of independent values.
    pub n: usize,
}

impl Stratum {
    fn mean(&self) -> f64 {
        (self.successes / self.n as f64).clamp(0.0, 1.0)
    }
}

/// The mean over strata (each with equal weight) with an interval that uses the variance within strata only; empty
/// strata are left out, `None` if nothing is left.
///
/// * Variance: `V = L⁻² Σ p(1-p) / (n-1)` over the `L` strata, the unbiased form of the mean of binomial variances
///   (W. G. Cochran, Sampling Techniques, 3rd ed. 1977, sections 5.3 and 3.2).
/// * A stratum with one value has no variance of its own. Neighbouring ones are collapsed in pairs (the last three where
///   the number is odd) and contribute `g/(g-1) Σ (p - p̄)²`, which errs on the wide side (Cochran, section 5A.12). A
///   single one that has no partner contributes the largest possible 1/4.
/// * `V` is not taken to be smaller than one value turned, `N⁻²`: a curve that falls from 1 to 0 in one step has no
///   variance within strata, yet is not known exactly.
/// * Bounds: the Wilson interval at the effective size `p(1-p) / V`; at a mean of 0 or 1, at the number of values
///   (N. Dean and M. Pagano, Journal of Survey Statistics and Methodology 3, 2015, 484-503, compare such intervals).
pub fn stratified(strata: &[Stratum], z: f64) -> Option<Estimate> {
    let strata: Vec<&Stratum> = strata.iter().filter(|stratum| stratum.n > 0).collect();
    if strata.is_empty() {
        return None;
    }
    let count = strata.len() as f64;
    let values: usize = strata.iter().map(|stratum| stratum.n).sum();
    let mean = strata.iter().map(|stratum| stratum.mean()).sum::<f64>() / count;
    let within: f64 =
        strata.iter().filter(|s| s.n > 1).map(|s| s.mean() * (1.0 - s.mean()) / (s.n as f64 - 1.0)).sum::<f64>();
    let single: Vec<f64> = strata.iter().filter(|s| s.n == 1).map(|s| s.mean()).collect();
    let variance = ((within + collapsed(&single)) / (count * count)).max((values as f64).powi(-2));
    let spread = mean * (1.0 - mean);
    // The tolerance is for means of fractions that should be 1 and miss it by rounding.
    let effective = if spread < 1e-12 { values as f64 } else { spread / variance };
    wilson(mean * effective, effective, z)
}

/// Contribution of strata with one value each, in the order of the strata.
fn collapsed(values: &[f64]) -> f64 {
    if values.len() == 1 {
        return 0.25;
    }
    let triple = if values.len() % 2 == 1 { values.len() - 3 } else { values.len() };
    let (pairs, last) = values.split_at(triple);
    let last = if last.is_empty() { 0.0 } else { spread_of(last) };
    pairs.chunks(2).map(spread_of).sum::<f64>() + last
}

/// `g/(g-1) Σ (v - v̄)²` of a group of `g` values.
fn spread_of(group: &[f64]) -> f64 {
    let g = group.len() as f64;
    let mean = group.iter().sum::<f64>() / g;
    g / (g - 1.0) * group.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
}

/// The cluster-robust standard error of a mean: `√(G/(G-1) Σ_g (Σ_{i∈g} (y_i - ȳ))²) / N` over `G` clusters and `N` values
/// (K.-Y. Liang and S. L. Zeger, Biometrika 73, 1986, 13-22, with the usual small-sample factor). `None` with fewer than
/// two clusters, where it is not defined.
pub fn cluster_robust_se<'a>(values: impl IntoIterator<Item = (&'a str, f64)>) -> Option<f64> {
    // Ordered, so that the same values give the same bits.
    let mut clusters: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (cluster, value) in values {
        let entry = clusters.entry(cluster).or_default();
        entry.0 += value;
        entry.1 += 1.0;
    }
    let groups = clusters.len() as f64;
    if clusters.len() < 2 {
        return None;
    }
    let (sum, n) = clusters.values().fold((0.0, 0.0), |(sum, n), (s, m)| (sum + s, n + m));
    let mean = sum / n;
    let squares: f64 = clusters.values().map(|(s, m)| (s - m * mean).powi(2)).sum();
    Some((groups / (groups - 1.0) * squares).sqrt() / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() < tolerance, "{a} is not {b}");
    }

    #[test]
    fn differences_are_newcombes() {
        // Table II of the paper, method 10: 56/70 - 48/80 and 9/10 - 3/10.
        for (one, other, low, high) in
            [((56.0, 70.0), (48.0, 80.0), 0.0524, 0.3339), ((9.0, 10.0), (3.0, 10.0), 0.1705, 0.8090)]
        {
            let [one, other] = [one, other].map(|(right, all)| wilson(right, all, Z95).unwrap());
            let found = difference_of_shares(one, other);
            assert!((found.0 - low).abs() < 5e-5 && (found.1 - high).abs() < 5e-5, "{found:?}");
        }
    }

    #[test]
    fn clusters_count_for_what_they_are_worth() {
        let plain = wilson(2.0, 4.0, Z95).unwrap();
        // Four questions of 50 samples each, two always right and two always wrong: no more is known than from four samples.
        let values: Vec<f64> = (0..200).map(|i| f64::from(u8::from(i < 100))).collect();
        let clusters: Vec<u64> = (0..200).map(|i| i / 50).collect();
        let found = clustered_wilson(&values, &clusters, Z95).unwrap();
        assert!(found.low <= plain.low + 1e-9 && found.high >= plain.high - 1e-9, "{found:?} {plain:?}");
        // Each value its own cluster: Wilson's own interval.
        let own: Vec<u64> = (0..200).collect();
        assert_eq!(clustered_wilson(&values, &own, Z95), wilson(100.0, 200.0, Z95));
        // All alike: as many values as clusters.
        assert_eq!(clustered_wilson(&[1.0; 200], &clusters, Z95), wilson(4.0, 4.0, Z95));
        // One cluster is one value; samples that even out within clusters are worth no more than their number.
        assert_eq!(clustered_wilson(&[1.0, 1.0, 1.0], &[7, 7, 7], Z95), wilson(1.0, 1.0, Z95));
        assert_eq!(clustered_wilson(&[1.0, 0.0, 1.0, 0.0], &[1, 1, 2, 2], Z95), Some(plain));
        assert_eq!(clustered_wilson(&[], &[], Z95), None);
    }

    #[test]
    fn wilson_reference_values() {
        // The paper's resolutions: 2 % and 30 % of 1,000, 3 % and 50 % of 100.
        for (x, n, low, high) in [
            (20.0, 1000.0, 0.013, 0.031),
            (300.0, 1000.0, 0.272, 0.329),
            (3.0, 100.0, 0.010, 0.085),
            (50.0, 100.0, 0.404, 0.596),
        ] {
            let estimate = wilson(x, n, Z95).unwrap();
            close(estimate.low, low, 5e-4);
            close(estimate.high, high, 5e-4);
        }
        // Eight of ten, widely tabulated as 0.490 to 0.943.
        let estimate = wilson(8.0, 10.0, Z95).unwrap();
        close(estimate.low, 0.490_162_5, 1e-6);
        close(estimate.high, 0.943_317_8, 1e-6);
    }

    #[test]
    fn wilson_at_the_edges() {
        let none = wilson(0.0, 10.0, Z95).unwrap();
        assert_eq!((none.value, none.low), (0.0, 0.0));
        close(none.high, 0.277_533, 1e-5);
        let all = wilson(10.0, 10.0, Z95).unwrap();
        assert_eq!((all.value, all.high), (1.0, 1.0));
        close(all.low, 1.0 - 0.277_533, 1e-5);
        assert_eq!(wilson(0.0, 0.0, Z95), None);
        assert_eq!(wilson(f64::NAN, 3.0, Z95), None);
    }

    #[test]
    fn means_of_any_values() {
        // Sample standard deviation √3, n = 3: half width Z95.
        let estimate = mean(&[0.0, 0.0, 3.0], Z95).unwrap();
        assert_eq!(estimate.value, 1.0);
        close(estimate.high, 1.0 + Z95, 1e-12);
        close(estimate.low, 1.0 - Z95, 1e-12);
        assert_eq!(mean(&[2.0], Z95).unwrap(), Estimate { value: 2.0, low: f64::NEG_INFINITY, high: f64::INFINITY });
        assert_eq!(mean(&[], Z95), None);
    }

    #[test]
    fn stratified_is_the_mean_of_binomial_variances() {
        let strata: Vec<Stratum> =
            (0..100).map(|l| Stratum { successes: if l < 30 { 9.0 } else { 1.0 }, n: 10 }).collect();
        let estimate = stratified(&strata, Z95).unwrap();
        close(estimate.value, 0.34, 1e-12);
        // p(1-p) = 0.09 in every stratum: V = 0.09 / 9 / 100.
        let expected = wilson(0.34 * (0.34 * 0.66 / 1e-4), 0.34 * 0.66 / 1e-4, Z95).unwrap();
        close(estimate.low, expected.low, 1e-12);
        close(estimate.high, expected.high, 1e-12);
        let plain = wilson(340.0, 1000.0, Z95).unwrap();
        assert!(estimate.high - estimate.low < plain.high - plain.low);
    }

    #[test]
    fn one_value_a_stratum_keeps_a_width() {
        let step = |n: usize| (0..n).map(|l| Stratum { successes: f64::from(l < n / 2), n: 1 }).collect::<Vec<_>>();
        for n in [2, 3, 4, 5, 99, 100] {
            let estimate = stratified(&step(n), Z95).unwrap();
            assert!(estimate.low < estimate.value && estimate.value < estimate.high, "{n}: {estimate:?}");
        }
        // 0 1 0 1 ... differs in every pair, and each contributes 2 * (1/4 + 1/4) = 1.
        let zigzag: Vec<Stratum> = (0..100).map(|l| Stratum { successes: f64::from(l % 2), n: 1 }).collect();
        let n = 0.25 / (50.0 / 10_000.0);
        assert_eq!(stratified(&zigzag, Z95), wilson(0.5 * n, n, Z95));
    }

    #[test]
    fn degenerate_strata() {
        assert_eq!(stratified(&[], Z95), None);
        assert_eq!(stratified(&[Stratum { successes: 0.0, n: 0 }], Z95), None);
        assert_eq!(stratified(&[Stratum { successes: 0.0, n: 7 }], Z95), wilson(0.0, 7.0, Z95));
        assert_eq!(stratified(&[Stratum { successes: 7.0, n: 7 }; 2], Z95), wilson(14.0, 14.0, Z95));
        let half = stratified(&[Stratum { successes: 0.5, n: 1 }], Z95).unwrap();
        assert!(half.low < 0.1 && half.high > 0.9);
    }

    #[test]
    fn clusters_widen_the_error() {
        let independent: Vec<(String, f64)> = (0..100).map(|i| (i.to_string(), f64::from(i % 2))).collect();
        let se = cluster_robust_se(independent.iter().map(|(c, v)| (c.as_str(), *v))).unwrap();
        close(se, (0.25f64 / 99.0).sqrt(), 1e-12);
        // Ten copies of ten values: the error of ten values.
        let copies: Vec<(String, f64)> = (0..100).map(|i| ((i % 10).to_string(), f64::from(i % 2))).collect();
        let se = cluster_robust_se(copies.iter().map(|(c, v)| (c.as_str(), *v))).unwrap();
        close(se, (0.25f64 / 9.0).sqrt(), 1e-12);
        assert_eq!(cluster_robust_se([("a", 1.0), ("a", 0.0)]), None);
        assert_eq!(cluster_robust_se(std::iter::empty()), None);
    }
}
