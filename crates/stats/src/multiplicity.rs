//! Several tests at once.
use thiserror::Error;

/// A p value is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("p value {value} at position {position}, expected a number from 0 to 1")]
pub struct BadPValue {
    /// Its number, from 1.
    pub position: usize,
    pub value: f64,
}

/// Refuses p values that are none; returns the order in which they rise.
fn ascending(p_values: &[f64]) -> Result<Vec<usize>, BadPValue> {
    if let Some((index, &value)) = p_values.iter().enumerate().find(|(_, value)| !(0.0..=1.0).contains(*value)) {
        return Err(BadPValue { position: index + 1, value });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&left, &right| p_values[left].total_cmp(&p_values[right]));
    Ok(order)
}

/// Holm-Bonferroni adjusted p values, in the order given (Holm 1979): the i-th smallest times the number of tests not yet
/// rejected, never below a smaller one's, at most 1. They control the family-wise error under any dependence.
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, BadPValue> {
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in ascending(p_values)?.into_iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    Ok(adjusted)
}

/// Benjamini-Hochberg adjusted p values, in the order given (Benjamini and Hochberg 1995, by step-up): the i-th smallest of m times
/// m / i, never above a larger one's. Where those below a level are called significant, the expected share of false ones among them is
/// at most the level, if the tests are independent or depend positively (Benjamini and Yekutieli 2001).
pub fn benjamini_hochberg(p_values: &[f64]) -> Result<Vec<f64>, BadPValue> {
    let mut adjusted = vec![0.0; p_values.len()];
    let mut smallest: f64 = 1.0;
    for (rank, index) in ascending(p_values)?.into_iter().enumerate().rev() {
        smallest = smallest.min(p_values[index] * (p_values.len() as f64 / (rank + 1) as f64));
        adjusted[index] = smallest;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    // statsmodels 0.15: multipletests([0.01, 0.04, 0.03, 0.005, 0.5], method="holm")[1]
    #[test]
    fn adjusted_values_equal_statsmodels() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005, 0.5]).unwrap();
        for (found, expected) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.025, 0.5]) {
            assert!((found - expected).abs() < 1e-15, "{adjusted:?}");
        }
    }

    // statsmodels 0.15: multipletests(p, method="fdr_bh")[1]; R's p.adjust(p, "BH") is the same definition.
    #[test]
    fn benjamini_hochberg_equals_statsmodels() {
        for (p_values, expected) in [
            (&[0.01, 0.04, 0.03, 0.005, 0.5][..], &[0.025, 0.05, 0.05, 0.025, 0.5][..]),
            (&[0.171, 0.301, 0.36, 0.018, 0.22, 0.002], &[0.33, 0.36, 0.36, 0.054, 0.33, 0.012]),
            (&[0.9, 0.8, 0.001], &[0.9, 0.9, 0.003]),
            (&[3.1e-165, 0.0121, 8.4e-109, 1.3e-7], &[1.24e-164, 0.0121, 1.68e-108, 1.733_333_333_333_333_2e-7]),
            (&[0.4, 0.4, 0.9], &[0.6, 0.6, 0.9]),
        ] {
            let adjusted = benjamini_hochberg(p_values).unwrap();
            for (found, expected) in adjusted.iter().zip(expected) {
                assert!((found - expected).abs() <= 1e-14 * expected, "{adjusted:?}");
            }
        }
    }

    #[test]
    fn ties_caps_and_bad_values() {
        assert_eq!(holm(&[0.4, 0.4, 0.9]).unwrap(), [1.0, 1.0, 1.0]);
        assert_eq!(holm(&[]).unwrap(), [0.0; 0]);
        assert_eq!(holm(&[0.0, 1.0]).unwrap(), [0.0, 1.0]);
        assert_eq!(holm(&[0.5, -0.1]).unwrap_err(), BadPValue { position: 2, value: -0.1 });
        assert!(holm(&[f64::NAN]).is_err());
        assert_eq!(benjamini_hochberg(&[]).unwrap(), [0.0; 0]);
        assert_eq!(benjamini_hochberg(&[0.3]).unwrap(), [0.3]);
        assert_eq!(benjamini_hochberg(&[0.5, 1.5]).unwrap_err(), BadPValue { position: 2, value: 1.5 });
        assert!(benjamini_hochberg(&[f64::NAN]).is_err());
    }
}
