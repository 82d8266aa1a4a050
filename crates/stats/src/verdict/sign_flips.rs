//! Test by exchanging the two sides of clusters.
use std::collections::BTreeMap;

use rand::Rng;

use super::distribution::Distribution;
use super::paired_test::{ExchangeP, ROUNDING};
use super::random::monte_carlo;

/// Clusters up to which all exchanges of any numbers are counted: about a million.
const COUNTED: usize = 20;

/// Steps up to which the exact distribution is worth its time.
const STEPS: f64 = 4e8;

/// Factors that are tried to make differences whole: those of up to 60 answers a question.
const SCALES: u32 = 60;

/// p value of the sum of differences, each with its sign or the other one, all signs equally likely.
pub(super) fn test(differences: &[f64]) -> ExchangeP {
    let differing: Vec<f64> = differences.iter().copied().filter(|sum| sum.abs() > ROUNDING).collect();
    if differing.is_empty() {
        return ExchangeP { p: 1.0, error: None };
    }
    if let Some(found) = exact(&differing) {
        return found;
    }
    let observed = differing.iter().sum::<f64>().abs();
    if differing.len() <= COUNTED {
        return counted(&differing, observed);
    }
    monte_carlo(observed, differing.len(), |random| {
        let (mut bits, mut sum) = (0, 0.0);
        for (index, one) in differing.iter().enumerate() {
            if index % 64 == 0 {
                bits = random.next_u64();
            }
            sum += if bits & 1 == 0 { *one } else { -*one };
            bits >>= 1;
        }
        sum.abs()
    })
}

/// By the exact distribution, where a factor makes the differences whole and the work is not too long.
fn exact(differing: &[f64]) -> Option<ExchangeP> {
    let is_whole = |value: f64| (value - value.round()).abs() < 1e-6;
    let scale = (1..=SCALES).map(f64::from).find(|scale| differing.iter().all(|one| is_whole(one * scale)))?;
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    let (mut observed, mut range) = (0_i64, 0_i64);
    for one in differing {
        let whole = (one * scale).round() as i64;
        observed += whole;
        range += whole.abs();
        *counts.entry(whole.abs()).or_default() += 1;
    }
    if differing.len() as f64 * range as f64 > STEPS {
        return None;
    }
    let sum =
        counts.iter().fold(Distribution::zero(), |sum, (value, count)| sum.plus(&Distribution::flips(*value, *count)));
    Some(sum.two_sided(0.0, observed))
}

/// By counting all exchanges.
fn counted(differing: &[f64], observed: f64) -> ExchangeP {
    let near = 1e-9 * differing.iter().map(|one| one.abs()).sum::<f64>();
    let exchanges = 1_u64 << differing.len();
    let mut sum: f64 = differing.iter().sum();
    let mut signs = vec![1.0; differing.len()];
    let mut hits = 0_u64;
    for number in 1..=exchanges {
        hits += u64::from(sum.abs() >= observed - near);
        // Gray code: the next exchange differs by one sign.
        let index = number.trailing_zeros() as usize;
        if index < differing.len() {
            signs[index] = -signs[index];
            sum += 2.0 * signs[index] * differing[index];
        }
    }
    ExchangeP { p: hits as f64 / exchanges as f64, error: None }
}
