//! Several tests at once.
use thiserror::Error;

/// A p value is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("p value {value} at position {position}, expected a number from 0 to 1")]
pub struct BadPValue {
    /// Its place, from 1.
    pub position: usize,
    /// The value.
    pub value: f64,
}

/// Holm-Bonferroni adjusted p values, in the order given (Holm 1979): the i-th smallest times the number of tests not yet
/// rejected, never below a smaller one's, at most 1. They control the family-wise error under any dependence.
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, BadPValue> {
    if let Some((position, &value)) = p_values.iter().enumerate().find(|(_, value)| !(0.0..=1.0).contains(*value)) {
        return Err(BadPValue { position: position + 1, value });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&left, &right| p_values[left].total_cmp(&p_values[right]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
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

    #[test]
    fn ties_caps_and_bad_values() {
        assert_eq!(holm(&[0.4, 0.4, 0.9]).unwrap(), [1.0, 1.0, 1.0]);
        assert_eq!(holm(&[]).unwrap(), [0.0; 0]);
        assert_eq!(holm(&[0.0, 1.0]).unwrap(), [0.0, 1.0]);
        assert_eq!(holm(&[0.5, -0.1]).unwrap_err(), BadPValue { position: 2, value: -0.1 });
        assert!(holm(&[f64::NAN]).is_err());
    }
}
