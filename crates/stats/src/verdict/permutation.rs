//! Test by permuting which questions of a pair are the first side's.
use std::collections::BTreeMap;

use super::answers::{Answers, PairedAnswers};
use super::distribution::{Distribution, common_multiple};
use super::paired_test::ExchangeP;
use super::random::monte_carlo;
use crate::bootstrap::below;

/// Steps up to which the exact distribution is worth its time.
const STEPS: f64 = 4e8;

/// Questions of a pair, those of the first side first.
struct Stratum {
    values: Vec<f64>,
    /// Number of the first side's.
    first: usize,
}

impl Stratum {
    fn new(pair: &PairedAnswers, by_answer: bool) -> Self {
        let units = |side: &[Answers]| -> Vec<f64> {
            match side {
                [one] if by_answer && one.sum.fract() == 0.0 => {
                    (0..one.count).map(|number| f64::from(u8::from(f64::from(number) < one.sum))).collect()
                }
                several => several.iter().map(Answers::mean).collect(),
            }
        };
        let mut values = units(&pair.first);
        let first = values.len();
        values.extend(units(&pair.second));
        Stratum { values, first }
    }

    /// True if every permutation gives the same.
    fn is_constant(&self) -> bool {
        self.values.iter().all(|value| *value == self.values[0])
    }

    /// Change of the pair's difference, second minus first, by a unit more in the first side's sum.
    fn weight(&self) -> f64 {
        let (first, second) = (self.first as f64, (self.values.len() - self.first) as f64);
        1.0 / first + 1.0 / second
    }

    /// The first side's sum minus what is expected of it, weighted.
    fn distance(&self, sum: f64) -> f64 {
        let expected = self.values.iter().sum::<f64>() * self.first as f64 / self.values.len() as f64;
        self.weight() * (sum - expected)
    }

    /// The observed sum of the first side.
    fn sum(&self) -> f64 {
        self.values[..self.first].iter().sum()
    }
}

/// p value of the mean difference if the questions of every pair, or their single answers, are dealt to the sides at random.
pub(super) fn test(pairs: &[PairedAnswers], by_answer: bool) -> ExchangeP {
    let strata: Vec<Stratum> =
        pairs.iter().map(|pair| Stratum::new(pair, by_answer)).filter(|stratum| !stratum.is_constant()).collect();
    if strata.is_empty() {
        return ExchangeP { p: 1.0, error: None };
    }
    if let Some(found) = exact(pairs, &strata) {
        return found;
    }
    let observed = strata.iter().map(|stratum| stratum.distance(stratum.sum())).sum::<f64>().abs();
    let steps = strata.iter().map(|stratum| stratum.values.len()).sum();
    let mut indices: Vec<usize> = Vec::new();
    monte_carlo(observed, steps, |random| {
        let mut sum = 0.0;
        for stratum in &strata {
            // The first steps of a Fisher-Yates shuffle.
            let count = stratum.values.len();
            indices.clear();
            indices.extend(0..count);
            let mut drawn = 0.0;
            for index in 0..stratum.first {
                indices.swap(index, index + below(random, count - index));
                drawn += stratum.values[indices[index]];
            }
            sum += stratum.distance(drawn);
        }
        sum.abs()
    })
}

/// By the exact distribution, where factors make scores and weights whole and the work is not too long.
fn exact(pairs: &[PairedAnswers], strata: &[Stratum]) -> Option<ExchangeP> {
    let answers = pairs.iter().flat_map(|pair| pair.first.iter().chain(&pair.second));
    let scale = common_multiple(answers.map(|answers| u64::from(answers.count)))?;
    let products = strata.iter().map(|stratum| (stratum.first * (stratum.values.len() - stratum.first)) as u64);
    let weight_scale = common_multiple(products)?;
    // With equal weights the smallest whole ones are 1.
    let weights: Vec<u64> =
        strata.iter().map(|stratum| (stratum.weight() * weight_scale as f64).round() as u64).collect();
    let common = weights.iter().fold(0, |all, weight| num_integer::gcd(all, *weight)).max(1);
    // Strata with the same scores, the same number of them on the first side and the same weight have one distribution.
    let mut kinds: BTreeMap<(Vec<i64>, usize, i64), usize> = BTreeMap::new();
    let (mut observed, mut centre, mut range) = (0_i64, 0.0, 0.0);
    for (stratum, weight) in strata.iter().zip(weights) {
        let weight = i64::try_from(weight / common).ok()?;
        let whole: Option<Vec<i64>> = stratum
            .values
            .iter()
            .map(|value| value * scale as f64)
            .map(|value| ((value - value.round()).abs() < 1e-6).then_some(value.round() as i64))
            .collect();
        let mut whole = whole?;
        observed += weight * whole[..stratum.first].iter().sum::<i64>();
        let total: i64 = whole.iter().sum();
        centre += (weight * total) as f64 * stratum.first as f64 / whole.len() as f64;
        whole.sort_unstable();
        let most: i64 = whole[whole.len() - stratum.first..].iter().sum();
        range += (weight * most) as f64;
        *kinds.entry((whole, stratum.first, weight)).or_default() += 1;
    }
    if strata.len() as f64 * range > STEPS || range > 2e7 {
        return None;
    }
    let mut sum = Distribution::zero();
    for ((values, first, weight), count) in &kinds {
        sum = sum.plus(&subset_sums(values, *first, *weight)?.times(*count));
    }
    Some(sum.two_sided(centre, observed))
}

/// Distribution of the weighted sum of `size` of the numbers, all subsets equally likely. None if that would take long.
fn subset_sums(values: &[i64], size: usize, weight: i64) -> Option<Distribution> {
    let most: i64 = values[values.len() - size..].iter().sum();
    if values.len() as f64 * size as f64 * most as f64 > STEPS {
        return None;
    }
    // Share of the subsets, of the numbers so far and of each size, that have each sum: the next number is in a subset of `chosen` of
    // `seen` numbers with probability `chosen / seen`.
    let mut shares = vec![vec![0.0; most as usize + 1]; size + 1];
    shares[0][0] = 1.0;
    for (index, value) in values.iter().enumerate() {
        let seen = (index + 1) as f64;
        for chosen in (0..=size.min(index + 1)).rev() {
            let inside = chosen as f64 / seen;
            let mut next: Vec<f64> = if chosen <= index {
                shares[chosen].iter().map(|one| one * (1.0 - inside)).collect()
            } else {
                vec![0.0; most as usize + 1]
            };
            if chosen > 0 {
                let before = &shares[chosen - 1];
                for sum in *value as usize..=most as usize {
                    next[sum] += inside * before[sum - *value as usize];
                }
            }
            shares[chosen] = next;
        }
    }
    let found = shares.pop().unwrap_or_default();
    let values: Vec<(i64, f64)> = found
        .into_iter()
        .enumerate()
        .filter(|(_, share)| *share > 0.0)
        .map(|(sum, share)| (weight * sum as i64, share))
        .collect();
    Some(Distribution::of(&values))
}
