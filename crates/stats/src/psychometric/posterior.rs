//! Posterior over the grid of curves, and the lengths at which a level is crossed.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Curves;
use crate::distribution::chi_squared_upper;

/// Curves with less than this share of the largest weight are left out of sums.
const NEGLIGIBLE: f64 = 1e-9;

/// Parameters of a curve: median, slope, lapse rate and shape.
const PARAMETERS: f64 = 4.0;

/// Bins of an octave in which crossings are counted.
const BINS: f64 = 48.0;

/// Length at which the probability of success above chance falls through a level, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The level, e.g. 0.5.
    pub level: f64,
    /// Best guess. 0 is below the shortest length, infinity beyond the longest; JSON has null for it.
    #[serde(with = "unbounded")]
    pub estimate: f64,
    /// Ends of the interval, with the same two values.
    #[serde(with = "unbounded")]
    pub low: f64,
    #[serde(with = "unbounded")]
    pub high: f64,
}

/// Infinity as null.
mod unbounded {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

/// Posterior distribution over the curves of a grid.
#[derive(Debug, Clone)]
pub struct Posterior {
    pub(super) curves: Arc<Curves>,
    /// Logarithms of the weights, up to a constant.
    ln_weights: Vec<f64>,
}

impl Posterior {
    /// The prior.
    pub fn new(curves: &Arc<Curves>) -> Self {
        let ln_weights = curves.prior.iter().map(|&weight| libm::log(weight)).collect();
        Posterior { curves: Arc::clone(curves), ln_weights }
    }

    /// Adds answers at the length with this index in the grid.
    ///
    /// # Panics
    /// Panics if the grid has no such index.
    pub fn add(&mut self, index: usize, right: usize, wrong: usize) {
        let curves = &self.curves;
        let (ln_right, ln_wrong) = (curves.at(&curves.ln_right, index), curves.at(&curves.ln_wrong, index));
        let (right, wrong) = (right as f64, wrong as f64);
        for ((weight, ln_right), ln_wrong) in self.ln_weights.iter_mut().zip(ln_right).zip(ln_wrong) {
            *weight += right * ln_right + wrong * ln_wrong;
        }
    }

    /// Indices and weights of the curves that matter; the weights add up to 1.
    pub(super) fn weights(&self) -> Vec<(u32, f64)> {
        let most = self.ln_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut kept: Vec<(u32, f64)> = Vec::new();
        for (index, ln_weight) in (0_u32..).zip(&self.ln_weights) {
            let weight = libm::exp(ln_weight - most);
            if weight > NEGLIGIBLE {
                kept.push((index, weight));
            }
        }
        let sum: f64 = kept.iter().map(|(_, weight)| weight).sum();
        kept.iter_mut().for_each(|(_, weight)| *weight /= sum);
        kept
    }

    /// Mean of the probability of a right answer at each length.
    pub fn accuracy(&self) -> Vec<f64> {
        let weights = self.weights();
        let curves = &self.curves;
        let mean = |index| {
            let right = curves.at(&curves.right, index);
            weights.iter().map(|&(curve, weight)| weight * right[curve as usize]).sum()
        };
        (0..curves.lengths.len()).map(mean).collect()
    }

    /// Medians of the crossings of levels with their central 95 % credible intervals, which hold as far as the family of curves does.
    pub fn limits(&self, levels: &[f64]) -> Vec<Limit> {
        let weights = self.weights();
        levels.iter().map(|&level| self.limit(level, &weights)).collect()
    }

    fn limit(&self, level: f64, weights: &[(u32, f64)]) -> Limit {
        let bins = self.crossings(level, weights);
        let (first, last) = self.curves.range();
        let beyond = bins.len() - 1;
        let quantile = |share: f64| {
            let mut below = 0.0;
            for (bin, &weight) in bins.iter().enumerate() {
                if weight > 0.0 && below + weight >= share {
                    return match bin {
                        0 => 0.0,
                        bin if bin == beyond => f64::INFINITY,
                        bin => {
                            let within = ((share - below) / weight).clamp(0.0, 1.0);
                            libm::exp2((first + ((bin - 1) as f64 + within) / BINS).min(last))
                        }
                    };
                }
                below += weight;
            }
            f64::INFINITY
        };
        Limit { level, estimate: quantile(0.5), low: quantile(0.025), high: quantile(0.975) }
    }

    /// Distribution of the crossing of a level: one bin below the range of lengths, those inside, one beyond.
    fn crossings(&self, level: f64, weights: &[(u32, f64)]) -> Vec<f64> {
        let curves = &self.curves;
        let (first, last) = curves.range();
        let inside = ((last - first) * BINS).ceil().max(1.0) as usize;
        let mut bins = vec![0.0; inside + 2];
        let place = |at: f64| {
            let bin = ((at - first) * BINS).clamp(0.0, inside as f64);
            if at < first {
                0
            } else if at > last {
                inside + 1
            } else {
                (bin as usize).min(inside - 1) + 1
            }
        };
        let spread = 2.0 * curves.half_step;
        for &(curve, weight) in weights {
            let crossing = curves.curves[curve as usize].crossing(level);
            if crossing == f64::NEG_INFINITY {
                bins[0] += weight;
                continue;
            }
            // A median of the grid stands for all up to half the way to its neighbours.
            const PARTS: usize = 8;
            for part in 0..PARTS {
                let shift = spread * ((part as f64 + 0.5) / PARTS as f64 - 0.5);
                bins[place(crossing + shift)] += weight / PARTS as f64;
            }
        }
        bins
    }

    /// Logarithm of the probability of the answers under each curve.
    fn ln_likelihoods(&self) -> impl Iterator<Item = f64> {
        self.ln_weights.iter().zip(&self.curves.prior).map(|(weight, &prior)| weight - libm::log(prior))
    }

    /// Tests whether two measurements over the same lengths are of one curve: the p value of the likelihood ratio of the best curve for both against the
    /// best one for each, by a chi-squared distribution with a degree of freedom for each of median, slope, lapse rate and shape. Lengths that were
    /// chosen by the answers do not matter to a likelihood; how often equal models are told apart is simulated (`psychometric_coverage pairs`).
    /// None for measurements over other lengths or with another chance.
    pub fn same_curve(&self, other: &Posterior) -> Option<f64> {
        if self.curves.lengths != other.curves.lengths || self.curves.chance != other.curves.chance {
            return None;
        }
        let most = |likelihoods: &mut dyn Iterator<Item = f64>| likelihoods.fold(f64::NEG_INFINITY, f64::max);
        let apart = most(&mut self.ln_likelihoods()) + most(&mut other.ln_likelihoods());
        let both = self.ln_likelihoods().zip(other.ln_likelihoods()).map(|(one, other)| one + other);
        let statistic = 2.0 * (apart - most(&mut { both })).max(0.0);
        Some(chi_squared_upper(statistic, PARAMETERS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posterior(chance: f64, answers: &[(usize, usize, usize)]) -> Posterior {
        let lengths: Vec<usize> = (1..=20).collect();
        let mut posterior = Posterior::new(&Curves::new(&lengths, chance).unwrap());
        answers.iter().for_each(|&(length, right, wrong)| posterior.add(length - 1, right, wrong));
        posterior
    }

    #[test]
    fn a_sharp_limit_is_found() {
        let limits = posterior(0.0, &[(1, 8, 0), (5, 8, 0), (6, 8, 0), (8, 0, 8), (9, 0, 8), (20, 0, 5)])
            .limits(&[0.9, 0.5, 0.1]);
        assert!(limits.iter().all(|limit| limit.low <= limit.estimate && limit.estimate <= limit.high));
        assert!(limits[1].low > 5.5 && limits[1].high < 8.5, "{limits:?}");
        assert!(limits[0].estimate <= limits[1].estimate && limits[1].estimate <= limits[2].estimate);
    }

    #[test]
    fn limits_outside_the_range_are_said() {
        let never = posterior(0.0, &[(1, 0, 12), (3, 0, 6)]).limits(&[0.5]);
        assert_eq!((never[0].estimate, never[0].low), (0.0, 0.0));
        let always = posterior(0.0, &[(10, 12, 0), (20, 20, 0)]).limits(&[0.5]);
        assert_eq!((always[0].estimate, always[0].high), (f64::INFINITY, f64::INFINITY));
    }

    #[test]
    fn curves_that_differ_are_told_apart() {
        let short = posterior(0.0, &[(1, 8, 0), (3, 8, 0), (5, 0, 8), (8, 0, 8)]);
        let long = posterior(0.0, &[(1, 8, 0), (8, 8, 0), (12, 0, 8), (20, 0, 8)]);
        assert!(short.same_curve(&long).unwrap() < 0.001);
        assert!(short.same_curve(&short).unwrap() > 0.9);
        assert!((short.same_curve(&long).unwrap() - long.same_curve(&short).unwrap()).abs() < 1e-9);
        // Most is right at every length against nothing at any: no limit of either is inside the range.
        let lapses = posterior(0.0, &[(1, 5, 2), (4, 5, 2), (10, 5, 2), (20, 5, 2)]);
        assert!(lapses.same_curve(&posterior(0.0, &[(1, 0, 4), (4, 0, 4), (20, 0, 4)])).unwrap() < 0.001);
        let few = posterior(0.0, &[(4, 1, 1)]).same_curve(&posterior(0.0, &[(4, 2, 0)])).unwrap();
        assert!(few > 0.5, "{few}");
        let other = Posterior::new(&Curves::new(&[1, 2], 0.0).unwrap());
        assert_eq!(short.same_curve(&other), None);
    }

    #[test]
    fn chance_is_no_knowledge() {
        // Half right of two choices is nothing known.
        let guessed = posterior(0.5, &[(1, 12, 12), (5, 12, 12), (20, 12, 12)]).limits(&[0.5]);
        assert!(guessed[0].estimate < 1.0, "{guessed:?}");
        let accuracy = posterior(0.5, &[(1, 40, 0), (20, 20, 20)]).accuracy();
        assert!(accuracy[0] > 0.9 && accuracy[19] < 0.65 && accuracy[19] > 0.45, "{accuracy:?}");
    }
}
