//! Test of the assumption that success never grows with the length.
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Answers of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub length: usize,
    pub right: usize,
    pub asked: usize,
}

/// Result of the test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MonotoneTest {
    /// Twice the logarithm of the likelihood ratio of free accuracies to falling ones.
    pub statistic: f64,
    /// Share of simulated falling curves with at least this statistic.
    pub p: f64,
}

/// Simulated data sets.
const DRAWS: usize = 999;

/// Tests counts by ascending length against success that never grows with the length: the likelihood ratio of isotonic regression, with
/// its distribution simulated from the fitted falling curve at the same numbers of answers (T. Robertson, F. T. Wright and R. L. Dykstra, Order
/// Restricted Statistical Inference, Wiley 1988, chapter 2). The draws are the same for the same counts.
pub fn monotone(counts: &[Counted]) -> MonotoneTest {
    let asked: Vec<Counted> = counts.iter().copied().filter(|one| one.asked > 0).collect();
    let fitted = falling(&asked);
    let statistic = ratio(&asked, &fitted);
    // Most curves fall as they should; without a ratio there is nothing to simulate.
    if statistic < 1e-9 {
        return MonotoneTest { statistic: 0.0, p: 1.0 };
    }
    let mut random = ChaCha8Rng::seed_from_u64(0x6d6f_6e6f);
    let mut drawn = asked.clone();
    let mut larger = 0;
    for _ in 0..DRAWS {
        for (one, &share) in drawn.iter_mut().zip(&fitted) {
            one.right = (0..one.asked).filter(|_| random.random::<f64>() < share).count();
        }
        let refitted = falling(&drawn);
        larger += usize::from(ratio(&drawn, &refitted) >= statistic - 1e-9);
    }
    MonotoneTest { statistic, p: (larger + 1) as f64 / (DRAWS + 1) as f64 }
}

/// Maximum likelihood among shares that never grow: neighbouring lengths that violate the order are pooled.
pub(super) fn falling(counts: &[Counted]) -> Vec<f64> {
    // Right, asked, and number of lengths.
    let mut pools: Vec<(usize, usize, usize)> = Vec::new();
    for one in counts {
        pools.push((one.right, one.asked, 1));
        while let [.., before, last] = pools[..]
            && before.0 * last.1 < last.0 * before.1
        {
            pools.pop();
            pools.pop();
            pools.push((before.0 + last.0, before.1 + last.1, before.2 + last.2));
        }
    }
    pools
        .iter()
        .flat_map(|&(right, asked, lengths)| std::iter::repeat_n(right as f64 / asked as f64, lengths))
        .collect()
}

/// Logarithm of the probability of the answers, up to the number of their orders.
pub(super) fn ln_likelihood(counts: &[Counted], shares: &[f64]) -> f64 {
    let part = |count: usize, share: f64| if count == 0 { 0.0 } else { count as f64 * libm::log(share) };
    let likelihood =
        |(one, &share): (&Counted, &f64)| part(one.right, share) + part(one.asked - one.right, 1.0 - share);
    counts.iter().zip(shares).map(likelihood).sum()
}

fn ratio(counts: &[Counted], fitted: &[f64]) -> f64 {
    let own: Vec<f64> = counts.iter().map(|one| one.right as f64 / one.asked as f64).collect();
    2.0 * (ln_likelihood(counts, &own) - ln_likelihood(counts, fitted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(usize, usize, usize)]) -> Vec<Counted> {
        of.iter().map(|&(length, right, asked)| Counted { length, right, asked }).collect()
    }

    #[test]
    fn neighbours_in_the_wrong_order_are_pooled() {
        let shares = falling(&counts(&[(1, 3, 4), (2, 4, 4), (3, 1, 4), (4, 1, 2)]));
        assert_eq!(shares, [0.875, 0.875, 1.0 / 3.0, 1.0 / 3.0]);
    }

    #[test]
    fn falling_curves_pass_and_bumps_do_not() {
        assert_eq!(monotone(&counts(&[(1, 6, 6), (2, 5, 6), (4, 2, 6), (8, 0, 6)])).p, 1.0);
        let noise = monotone(&counts(&[(1, 5, 6), (2, 6, 6), (4, 2, 6), (8, 1, 6)]));
        assert!(noise.p > 0.05, "{noise:?}");
        let bump = monotone(&counts(&[(1, 1, 6), (2, 1, 6), (4, 6, 6), (8, 6, 6), (16, 0, 6)]));
        assert!(bump.p < 0.01, "{bump:?}");
        assert_eq!(monotone(&[]), MonotoneTest { statistic: 0.0, p: 1.0 });
        assert_eq!(bump, monotone(&counts(&[(1, 1, 6), (2, 1, 6), (3, 0, 0), (4, 6, 6), (8, 6, 6), (16, 0, 6)])));
    }
}
