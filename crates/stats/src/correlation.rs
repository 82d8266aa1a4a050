//! Correlation of two columns: Pearson's r and Spearman's rho, with intervals and p values.
use serde::Serialize;

use super::Z95;
use super::distribution::student_two_sided;

/// Coefficient of correlation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coefficient {
    /// Pearson's r: linear association.
    Pearson,
    /// Spearman's rho: Pearson's r of the ranks, of which ties share the mean.
    Spearman,
}

/// A correlation with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correlation {
    pub coefficient: Coefficient,
    /// Number of pairs.
    pub n: usize,
    /// Value, from -1 to 1.
    pub value: f64,
    /// Lower and upper end of the interval by Fisher's z (Spearman: D. Bonett & T. Wright, Psychometrika 65, 2000, 23-28); `None`
    /// with fewer than four pairs.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p value of no correlation, from the t distribution with n - 2 degrees of freedom.
    pub p: f64,
}

/// Reason for two columns having no correlation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CorrelationError {
    /// Columns differ in length.
    #[error("{0} values but {1} partners")]
    Length(usize, usize),
    /// Too few pairs.
    #[error("{0} pairs: a correlation needs at least three")]
    TooFew(usize),
    /// A value is NaN or infinite.
    #[error("value {value} at position {position}; drop missing values first")]
    NotFinite {
        /// Position from 0.
        position: usize,
        value: f64,
    },
    /// All values of a column are the same.
    #[error("all values of a column are the same, so nothing varies with them")]
    Constant,
}

/// Computes the correlation of pairs.
///
/// # Errors
/// [`CorrelationError`].
pub fn correlation(first: &[f64], second: &[f64], coefficient: Coefficient) -> Result<Correlation, CorrelationError> {
    if first.len() != second.len() {
        return Err(CorrelationError::Length(first.len(), second.len()));
    }
    let n = first.len();
    if n < 3 {
        return Err(CorrelationError::TooFew(n));
    }
    for column in [first, second] {
        if let Some((position, &value)) = column.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            return Err(CorrelationError::NotFinite { position, value });
        }
    }
    let (value, variance) = match coefficient {
        Coefficient::Pearson => (pearson(first, second)?, 1.0),
        Coefficient::Spearman => {
            let rho = pearson(&ranks(first), &ranks(second))?;
            (rho, 1.0 + rho * rho / 2.0)
        }
    };
    let interval = (n > 3).then(|| {
        let reach = Z95 * (variance / (n as f64 - 3.0)).sqrt();
        // At 1 the interval has no width: z is infinite.
        ((value.atanh() - reach).tanh(), (value.atanh() + reach).tanh())
    });
    let freedom = n as f64 - 2.0;
    let p = if value.abs() >= 1.0 {
        0.0
    } else {
        student_two_sided(value * (freedom / (1.0 - value * value)).sqrt(), freedom)
    };
    Ok(Correlation { coefficient, n, value, interval, p })
}

fn pearson(first: &[f64], second: &[f64]) -> Result<f64, CorrelationError> {
    let (first, second) = (deviations(first)?, deviations(second)?);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let squares = product(&first, &first) * product(&second, &second);
    Ok((product(&first, &second) / squares.sqrt()).clamp(-1.0, 1.0))
}

/// Deviations from the mean, divided by the largest so that their squares neither overflow nor vanish.
fn deviations(values: &[f64]) -> Result<Vec<f64>, CorrelationError> {
    // The mean of equal values may differ from them by rounding.
    if values.iter().all(|value| *value == values[0]) {
        return Err(CorrelationError::Constant);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let largest = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    Ok(values.iter().map(|value| (value - mean) / largest).collect())
}

/// Ranks from 1; ties share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let tied = order[first..].iter().take_while(|&&at| values[at] == values[order[first]]).count();
        for &at in &order[first..first + tied] {
            ranks[at] = first as f64 + (tied as f64 + 1.0) / 2.0;
        }
        first += tied;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    // scipy 1.17: stats.pearsonr and its interval, stats.spearmanr; Spearman's interval from its formula in numpy.
    const X: [f64; 6] = [2.0, 4.0, 10.0, 11.0, 10.0, 3.0];
    const Y: [f64; 6] = [13.5, 40.1, 85.7, 79.5, 79.8, 11.1];

    #[test]
    fn reference_values() {
        for (coefficient, value, p, low, high) in [
            (Coefficient::Pearson, 0.972_692_045, 0.001_108_404_489, 0.765_100_449, 0.997_124_244),
            (Coefficient::Spearman, 0.753_702_346, 0.083_523_281, -0.292_032_547, 0.978_614_968),
        ] {
            let found = correlation(&X, &Y, coefficient).unwrap();
            let (found_low, found_high) = found.interval.unwrap();
            for (found, expected) in [(found.value, value), (found.p, p), (found_low, low), (found_high, high)] {
                assert!(
                    (found - expected).abs() < 1e-6 * expected.abs().max(1e-3),
                    "{coefficient:?} {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn ties_share_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [4.0, 1.0, 4.0, 2.0, 4.0]);
    }

    #[test]
    fn perfect_and_impossible_correlations() {
        let rises = correlation(&[1.0, 2.0, 3.0, 4.0], &[1.0, 4.0, 9.0, 16.0], Coefficient::Spearman).unwrap();
        assert_eq!((rises.value, rises.p, rises.interval), (1.0, 0.0, Some((1.0, 1.0))));
        let three = correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 5.0], Coefficient::Pearson).unwrap();
        assert_eq!(three.interval, None);
        let error = |a: &[f64], b: &[f64]| correlation(a, b, Coefficient::Pearson).unwrap_err();
        assert_eq!(error(&[1.0], &[1.0, 2.0]), CorrelationError::Length(1, 2));
        assert_eq!(error(&[1.0, 2.0], &[1.0, 2.0]), CorrelationError::TooFew(2));
        assert_eq!(error(&[0.1; 3], &[1.0, 2.0, 3.0]), CorrelationError::Constant);
        assert!(matches!(error(&[1.0, f64::NAN, 2.0], &[1.0; 3]), CorrelationError::NotFinite { position: 1, .. }));
    }
}
