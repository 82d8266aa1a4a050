//! Choice of the next lengths by expected information.
use super::posterior::Posterior;

use super::curve::TARGETS;

/// Entropy of a right or wrong answer, in nats.
fn entropy(right: f64) -> f64 {
    -right * libm::log(right) - (1.0 - right) * libm::log1p(-right)
}

/// Information is compared in steps of this size, so that rounding decides nothing: of equal lengths the shorter one is taken.
const STEP: f64 = 1e-9;

impl Posterior {
    /// Places of so many lengths to ask next: each is the one whose answer is expected to say most about the limits, the entropy of the
    /// answer less its expected entropy once a limit is known. Slope and lapse rate count as far as they matter for that, as in N. Prins, The psi-marginal adaptive
    /// method, Journal of Vision 13 (2013), 7:3. The later ones of a batch are chosen as if the earlier ones had been answered as expected, so that
    /// they are not all the same.
    pub fn most_informative(&self, count: usize) -> Vec<usize> {
        let curves = &self.curves;
        let mut weights = self.weights();
        // Bins of the curves that matter, side by side: this loop is what a round of questions costs.
        let bins: Vec<[u16; 3]> =
            weights.iter().map(|&(curve, _)| [0, 1, 2].map(|target| curves.bins[target][curve as usize])).collect();
        let most_bins = bins.iter().flatten().copied().max().map_or(0, usize::from) + 1;
        let of = |table, index| {
            let table = curves.at(table, index);
            weights.iter().map(|&(curve, _)| table[curve as usize]).collect::<Vec<f64>>()
        };
        let right: Vec<Vec<f64>> = (0..curves.lengths.len()).map(|index| of(&curves.right, index)).collect();
        // By target and bin: weight of the curves, and that times their probability of a right answer.
        let mut sums = [0, 1, 2].map(|_| vec![(0.0_f64, 0.0_f64); most_bins]);
        let mut chosen = Vec::with_capacity(count);
        for _ in 0..count {
            let mut best = (0, i64::MIN, 0.5);
            for (index, right) in right.iter().enumerate() {
                sums.iter_mut().for_each(|sums| sums.fill((0.0, 0.0)));
                for ((bins, &(_, weight)), right) in bins.iter().zip(&weights).zip(right) {
                    let weighted = weight * right;
                    for (sums, &bin) in sums.iter_mut().zip(bins) {
                        let sum = &mut sums[usize::from(bin)];
                        sum.0 += weight;
                        sum.1 += weighted;
                    }
                }
                let (mut information, mut mean) = (0.0, 0.0);
                for (sums, (_, importance)) in sums.iter().zip(TARGETS) {
                    mean = sums.iter().map(|sum| sum.1).sum::<f64>().clamp(1e-12, 1.0 - 1e-12);
                    let known = |sum: &(f64, f64)| sum.0 * entropy((sum.1 / sum.0).clamp(1e-12, 1.0 - 1e-12));
                    let known: f64 = sums.iter().filter(|sum| sum.0 > 0.0).map(known).sum();
                    information += importance * (entropy(mean) - known);
                }
                let steps = (information / STEP).round() as i64;
                if steps > best.1 {
                    best = (index, steps, mean);
                }
            }
            let (index, _, mean) = best;
            chosen.push(index);
            let (ln_right, ln_wrong) = (curves.at(&curves.ln_right, index), curves.at(&curves.ln_wrong, index));
            let expected = |curve: u32| mean * ln_right[curve as usize] + (1.0 - mean) * ln_wrong[curve as usize];
            weights.iter_mut().for_each(|(curve, weight)| *weight *= libm::exp(expected(*curve)));
            let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
            weights.iter_mut().for_each(|(_, weight)| *weight /= sum);
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Curves, Posterior};

    #[test]
    fn questions_gather_around_the_limit() {
        let lengths: Vec<usize> = (1..=20).collect();
        let mut posterior = Posterior::new(&Curves::new(&lengths, 0.0).unwrap());
        for (index, right, wrong) in [(0, 6, 0), (3, 6, 0), (11, 0, 6), (19, 0, 6)] {
            posterior.add(index, right, wrong);
        }
        let chosen = posterior.most_informative(4);
        assert!(chosen.iter().all(|index| (4..=10).contains(index)), "{chosen:?}");
        let mut distinct = chosen.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() > 1, "a batch is spread: {chosen:?}");
        assert_eq!(posterior.most_informative(2), chosen[..2], "the first of many are the first of few");
    }
}
