//! Check of the family of curves: whether the answers look as its curves would have them.
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Posterior;
use super::isotonic::{Counted, falling, ln_likelihood};

/// Result of the check.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShapeCheck {
    /// Twice the logarithm of the likelihood ratio of the best curve that never grows to the best one of the family.
    pub statistic: f64,
    /// Share of data sets drawn from the posterior with at least this statistic.
    pub p: f64,
}

/// Most data sets that are drawn.
const DRAWS: usize = 99;

/// Drawn statistics as large as the observed one after which the share is known well enough.
const ENOUGH: usize = 10;

impl Posterior {
    /// Posterior predictive check of the shape of the curves against all that never grow, from the answers that the posterior has (A. Gelman, X.-L. Meng and
    /// H. Stern, Posterior predictive assessment of model fitness via realized discrepancies, Statistica Sinica 6 (1996), 733-760). Drawing stops early where
    /// the share cannot be small (J. Besag and P. Clifford, Sequential Monte Carlo p-values, Biometrika 78 (1991), 301-304); the draws are the same for the same counts.
    pub fn check(&self, counts: &[Counted]) -> ShapeCheck {
        let lengths = &self.curves.lengths;
        // Counts of lengths outside the grid are none of this posterior.
        let known = |one: &Counted| Some((lengths.binary_search(&one.length).ok()?, *one));
        let (indices, mut drawn): (Vec<usize>, Vec<Counted>) = counts.iter().filter_map(known).unzip();
        let mut scratch = vec![0.0; self.curves.curves.len()];
        let statistic = self.shape_ratio(&indices, &drawn, &mut scratch);
        let weights = self.weights();
        let mut random = ChaCha8Rng::seed_from_u64(0x7368_6170);
        let (mut larger, mut draws) = (0, 0);
        while draws < DRAWS && larger < ENOUGH {
            let mut left = random.random::<f64>();
            let curve = weights.iter().find(|(_, weight)| {
                left -= weight;
                left < 0.0
            });
            // Weights add up to 1 but for rounding.
            let Some(&(curve, _)) = curve.or(weights.last()) else { break };
            for (&index, one) in indices.iter().zip(&mut drawn) {
                let right = self.curves.at(&self.curves.right, index)[curve as usize];
                one.right = (0..one.asked).filter(|_| random.random::<f64>() < right).count();
            }
            larger += usize::from(self.shape_ratio(&indices, &drawn, &mut scratch) >= statistic - 1e-9);
            draws += 1;
        }
        let p = if larger < ENOUGH { (larger + 1) as f64 / (DRAWS + 1) as f64 } else { larger as f64 / draws as f64 };
        ShapeCheck { statistic, p }
    }

    /// The statistic of counts at the lengths with these indices; `scratch` has a place for each curve.
    fn shape_ratio(&self, indices: &[usize], counts: &[Counted], scratch: &mut [f64]) -> f64 {
        let curves = &self.curves;
        scratch.fill(0.0);
        let mut add = |table: &[f64], index: usize, times: usize| {
            if times > 0 {
                let times = times as f64;
                scratch.iter_mut().zip(curves.at(table, index)).for_each(|(sum, one)| *sum += times * one);
            }
        };
        for (&index, one) in indices.iter().zip(counts) {
            add(&curves.ln_right, index, one.right);
            add(&curves.ln_wrong, index, one.asked - one.right);
        }
        let family = scratch.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (2.0 * (ln_likelihood(counts, &falling(counts)) - family)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Curves;
    use super::*;

    fn check(answers: &[(usize, usize, usize)]) -> ShapeCheck {
        let lengths: Vec<usize> = (1..=20).collect();
        let mut posterior = Posterior::new(&Curves::new(&lengths, 0.0).unwrap());
        let counts: Vec<Counted> =
            answers.iter().map(|&(length, right, asked)| Counted { length, right, asked }).collect();
        counts.iter().for_each(|one| posterior.add(one.length - 1, one.right, one.asked - one.right));
        posterior.check(&counts)
    }

    #[test]
    fn plateaus_do_not_fit_and_curves_do() {
        let plateau = check(&[(2, 10, 10), (3, 10, 10), (4, 6, 10), (8, 6, 10), (12, 6, 10), (13, 0, 10), (16, 0, 10)]);
        assert!(plateau.p < 0.05 && plateau.statistic > 5.0, "{plateau:?}");
        let smooth = check(&[(2, 10, 10), (3, 9, 10), (4, 8, 10), (6, 5, 10), (9, 2, 10), (13, 1, 10), (18, 0, 10)]);
        assert!(smooth.p > 0.3, "{smooth:?}");
        let cut = check(&[(2, 6, 6), (5, 6, 6), (6, 0, 6), (9, 0, 6)]);
        assert!(cut.p > 0.3 && cut.statistic < 0.1, "{cut:?}");
    }

    #[test]
    fn the_same_counts_have_the_same_check() {
        let answers = [(2, 5, 6), (4, 4, 6), (9, 3, 6), (12, 0, 6)];
        assert_eq!(check(&answers), check(&answers));
        assert_eq!(check(&[]), ShapeCheck { statistic: 0.0, p: 1.0 });
    }
}
