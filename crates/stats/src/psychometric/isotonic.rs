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
    /// p value: twice the smaller share of simulated falling curves with at least this statistic, by length and in pools of lengths.
    pub p: f64,
}

/// Simulated data sets.
const DRAWS: usize = 999;

/// Tests counts by ascending length against success that never grows with the length: the likelihood ratio of isotonic regression, with
/// its distribution simulated from the fitted falling curve at the same numbers of answers (T. Robertson, F. T. Wright and R. L. Dykstra, Order
/// Restricted Statistical Inference, Wiley 1988, chapter 2). Lengths with an answer or two each tell little by themselves, so that neighbouring ones are
/// tested together, too: p is twice the smaller one of both tests. The draws are the same for the same counts.
pub fn monotone(counts: &[Counted]) -> MonotoneTest {
    let alone = by_length(counts);
    let together: Vec<Counted> = pools(counts).into_iter().filter_map(pooled).collect();
    let p = (2.0 * alone.p.min(by_length(&together).p)).min(1.0);
    MonotoneTest { p, ..alone }
}

/// Fewest answers of a pool of neighbouring lengths: in fewer, one slip would be a rise.
const POOLED: usize = 6;

/// Neighbouring lengths, as many together as have some answers; what is left at the end belongs to the last pool.
pub(super) fn pools(counts: &[Counted]) -> Vec<&[Counted]> {
    let asked = |part: &[Counted]| part.iter().map(|one| one.asked).sum::<usize>();
    let (mut pools, mut from) = (Vec::new(), 0);
    for to in 1..=counts.len() {
        if asked(&counts[from..to]) >= POOLED && (asked(&counts[to..]) >= POOLED || to == counts.len()) {
            pools.push(&counts[from..to]);
            from = to;
        }
    }
    if from < counts.len() {
        pools.push(&counts[from..]);
    }
    pools
}

/// The answers of a pool, as of its first length; none of no length.
fn pooled(pool: &[Counted]) -> Option<Counted> {
    let (right, asked) = pool.iter().fold((0, 0), |sum, one| (sum.0 + one.right, sum.1 + one.asked));
    Some(Counted { length: pool.first()?.length, right, asked })
}

/// The test of counts as they are.
fn by_length(counts: &[Counted]) -> MonotoneTest {
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
        // Two of thirteen right up to 6 digits and eleven of fourteen beyond, an answer or three a length: no length says much by itself.
        let sparse = [(1, 0, 3), (2, 1, 3), (3, 0, 2), (4, 0, 3), (6, 1, 2), (8, 1, 2), (9, 2, 2)];
        let longer = [(13, 1, 2), (19, 1, 2), (25, 2, 2), (38, 1, 1), (49, 1, 2), (56, 2, 2)];
        let sparse = counts(&[&sparse[..], &longer].concat());
        assert!(by_length(&sparse).p > 0.05 && monotone(&sparse).p < 0.04, "{:?}", monotone(&sparse));
        assert_eq!(monotone(&[]), MonotoneTest { statistic: 0.0, p: 1.0 });
        assert_eq!(bump, monotone(&counts(&[(1, 1, 6), (2, 1, 6), (3, 0, 0), (4, 6, 6), (8, 6, 6), (16, 0, 6)])));
    }
}
