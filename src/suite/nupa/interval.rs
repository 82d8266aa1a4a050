//! 95 % intervals of means.
use crate::suite::Interval;

/// The two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's interval of a proportion. It also holds, conservatively, for the mean of any values between 0 and 1, whose variance
/// never exceeds a proportion's.
pub(super) fn wilson(mean: f64, n: usize) -> Interval {
    if n == 0 {
        return Interval { estimate: f64::NAN, low: 0.0, high: 1.0 };
    }
    let n = n as f64;
    let spread = Z * Z / n;
    let centre = (mean + spread / 2.0) / (1.0 + spread);
    let half = Z / (1.0 + spread) * ((mean * (1.0 - mean)).max(0.0) / n + spread / (4.0 * n)).sqrt();
    Interval { estimate: mean, low: (centre - half).clamp(0.0, mean), high: (centre + half).clamp(mean, 1.0) }
}

/// The normal interval of a mean of non-negative values.
pub(super) fn mean_of(values: &[f64]) -> Interval {
    let n = values.len() as f64;
    if values.is_empty() {
        return Interval { estimate: f64::NAN, low: 0.0, high: f64::INFINITY };
    }
    let mean = values.iter().sum::<f64>() / n;
    if values.len() == 1 {
        return Interval { estimate: mean, low: 0.0, high: f64::INFINITY };
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = Z * (variance / n).sqrt();
    Interval { estimate: mean, low: (mean - half).max(0.0), high: mean + half }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_at_known_points() {
        // statsmodels: proportion_confint(9, 10, method="wilson") = (0.5958, 0.9821)
        let interval = wilson(0.9, 10);
        assert!((interval.low - 0.595_85).abs() < 1e-4 && (interval.high - 0.982_12).abs() < 1e-4);
        let all = wilson(1.0, 100);
        assert!(all.high == 1.0 && (all.low - 0.963_0).abs() < 1e-4);
        assert!(wilson(0.0, 0).estimate.is_nan());
    }

    #[test]
    fn means_contain_their_estimate() {
        let interval = mean_of(&[0.0, 0.0, 3.0]);
        assert!(interval.low == 0.0 && interval.high > 1.0 && interval.estimate == 1.0);
        assert_eq!(mean_of(&[2.0]).high, f64::INFINITY);
    }
}
