//! Exact distributions of sums of independent whole numbers.
use super::paired_test::ExchangeP;

/// Probabilities of `least`, `least + 1` and so on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Distribution {
    least: i64,
    probabilities: Vec<f64>,
}

impl Distribution {
    /// 0 for certain.
    pub(super) fn zero() -> Self {
        Distribution { least: 0, probabilities: vec![1.0] }
    }

    /// Numbers with their probabilities, which sum to 1.
    pub(super) fn of(values: &[(i64, f64)]) -> Self {
        let least = values.iter().map(|(value, _)| *value).min().unwrap_or(0);
        let most = values.iter().map(|(value, _)| *value).max().unwrap_or(0);
        let mut probabilities = vec![0.0; (most - least) as usize + 1];
        values.iter().for_each(|(value, probability)| probabilities[(value - least) as usize] += probability);
        Distribution { least, probabilities }
    }

    /// Sum of `count` independent flips of `value` or `-value`.
    pub(super) fn flips(value: i64, count: usize) -> Self {
        let values: Vec<(i64, f64)> = binomial(count)
            .into_iter()
            .enumerate()
            .map(|(up, probability)| (value * (2 * up as i64 - count as i64), probability))
            .collect();
        Distribution::of(&values)
    }

    /// Sum of the two.
    pub(super) fn plus(&self, other: &Distribution) -> Self {
        let mut probabilities = vec![0.0; self.probabilities.len() + other.probabilities.len() - 1];
        // The other has gaps where its flips are of more than 1.
        for (shift, weight) in other.probabilities.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let window = &mut probabilities[shift..shift + self.probabilities.len()];
            window.iter_mut().zip(&self.probabilities).for_each(|(sum, one)| *sum += weight * one);
        }
        Distribution { least: self.least + other.least, probabilities }
    }

    /// Sum of `count` independent copies.
    pub(super) fn times(&self, count: usize) -> Self {
        let (mut found, mut power, mut left) = (Distribution::zero(), self.clone(), count);
        while left > 0 {
            if left % 2 == 1 {
                found = found.plus(&power);
            }
            left /= 2;
            if left > 0 {
                power = power.plus(&power);
            }
        }
        found
    }

    /// Probability of numbers at least as far from the centre as the observed one.
    pub(super) fn two_sided(&self, centre: f64, observed: i64) -> ExchangeP {
        let distance = (observed as f64 - centre).abs();
        let near = 1e-9 * distance.max(1.0);
        let mut sum = 0.0;
        for (index, probability) in self.probabilities.iter().enumerate() {
            let other = ((self.least + index as i64) as f64 - centre).abs();
            if other >= distance - near {
                sum += probability;
            }
        }
        // A sum of all probabilities is 1 but for rounding.
        ExchangeP { p: if sum > 1.0 - 1e-12 { 1.0 } else { sum }, error: None }
    }
}

/// Probabilities of 0, 1, ... heads of fair coins.
fn binomial(count: usize) -> Vec<f64> {
    // The smallest one is a number up to here.
    const DIRECT: usize = 1000;
    if count <= DIRECT {
        let mut probability = 0.5_f64.powi(count as i32);
        return (0..=count)
            .map(|heads| {
                let own = probability;
                probability *= (count - heads) as f64 / (heads + 1) as f64;
                own
            })
            .collect();
    }
    let log = |number: usize| libm::lgamma(number as f64 + 1.0);
    let whole = log(count) - count as f64 * std::f64::consts::LN_2;
    (0..=count).map(|heads| (whole - log(heads) - log(count - heads)).exp()).collect()
}

/// Largest factor that makes numbers whole.
const MOST_SCALE: u64 = 1_000_000;

/// The least common multiple of whole numbers; none above a million.
pub(super) fn common_multiple(numbers: impl IntoIterator<Item = u64>) -> Option<u64> {
    numbers.into_iter().try_fold(1_u64, |all, number| {
        let next = num_integer::lcm(all, number.max(1));
        (next <= MOST_SCALE).then_some(next)
    })
}
