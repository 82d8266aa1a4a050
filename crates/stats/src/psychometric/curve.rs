//! The grid of curves, evaluated at every length once.
use std::sync::Arc;

/// Steps of the grid of medians per octave of length.
const STEPS: f64 = 6.0;

/// Levels whose crossings the questions are to find, with the weights of their information. The 50 % limit comes first: it decides when
/// to stop.
pub(super) const TARGETS: [(f64, f64); 3] = [(0.9, 0.25), (0.5, 1.0), (0.1, 0.25)];

/// Octaves by which medians may lie outside the range of lengths.
const OUTSIDE: f64 = 2.0;

/// Slopes: of the logistic function in nats per octave, and the exponent of the Weibull function. The slope of both at the median
/// is a quarter of it per octave, nearly.
const SLOPES: [f64; 10] = [0.7, 1.0, 1.5, 2.3, 3.5, 5.5, 9.0, 18.0, 40.0, 100.0];

/// Lapse rates, with their prior weights: small ones are usual.
const LAPSES: [(f64, f64); 8] =
    [(0.0, 0.2), (0.02, 0.2), (0.05, 0.17), (0.1, 0.14), (0.17, 0.11), (0.26, 0.08), (0.37, 0.06), (0.5, 0.04)];

/// Probabilities stay so far from 0 and 1: an answer that a curve excludes makes it unlikely, not impossible.
const LEAST: f64 = 1e-6;

/// A shape of curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Logistic in the logarithm of the length.
    Logistic,
    /// `2^-(x/m)^k`.
    Weibull,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    shape: Shape,
    /// Binary logarithm of the median.
    median: f64,
    slope: f64,
    lapse: f64,
}

impl Curve {
    /// Probability of success above chance at a length.
    fn known(&self, length: f64) -> f64 {
        let octaves = self.median - libm::log2(length);
        let share = match self.shape {
            Shape::Logistic => 1.0 / (1.0 + libm::exp(-self.slope * octaves)),
            Shape::Weibull => libm::exp2(-libm::exp2(-self.slope * octaves)),
        };
        (1.0 - self.lapse) * share
    }

    /// Binary logarithm of the length at which the probability above chance falls through a level; minus infinity if it never
    /// reaches it.
    pub(super) fn crossing(&self, level: f64) -> f64 {
        let share = level / (1.0 - self.lapse);
        if share >= 1.0 {
            return f64::NEG_INFINITY;
        }
        self.median
            + match self.shape {
                Shape::Logistic => -libm::log(share / (1.0 - share)) / self.slope,
                Shape::Weibull => libm::log2(-libm::log2(share)) / self.slope,
            }
    }
}

/// All curves of a grid over given lengths with a given chance, shared by all measurements that have these.
#[derive(Debug)]
pub struct Curves {
    pub(super) lengths: Vec<usize>,
    pub(super) chance: f64,
    pub(super) curves: Vec<Curve>,
    /// Prior weights; they add up to 1.
    pub(super) prior: Vec<f64>,
    /// Half the distance of neighbouring medians, in octaves.
    pub(super) half_step: f64,
    /// By target of the questions, then by curve: the bin of the crossing, 0 for a level that is never reached.
    pub(super) bins: Vec<Vec<u16>>,
    /// By length, then by curve: probability of success, its logarithm and that of the probability of failure.
    pub(super) right: Vec<f64>,
    pub(super) ln_right: Vec<f64>,
    pub(super) ln_wrong: Vec<f64>,
}

impl Curves {
    /// The grid over ascending lengths of 1 and more; `chance` is the probability of a right answer without any knowledge. None
    /// without lengths, with length 0, or where chance is not a probability below 1.
    pub fn new(lengths: &[usize], chance: f64) -> Option<Arc<Curves>> {
        let (first, last) = (*lengths.first()?, *lengths.last()?);
        let ascending = lengths.windows(2).all(|pair| pair[0] < pair[1]);
        if first == 0 || !ascending || !(0.0..1.0).contains(&chance) {
            return None;
        }
        let low = libm::log2(first as f64) - OUTSIDE;
        let octaves = libm::log2(last as f64) + OUTSIDE - low;
        let medians = (octaves * STEPS).ceil() as usize;
        let step = octaves / medians as f64;
        let (mut curves, mut prior) = (Vec::new(), Vec::new());
        for shape in [Shape::Logistic, Shape::Weibull] {
            for index in 0..=medians {
                for slope in SLOPES {
                    for (lapse, weight) in LAPSES {
                        curves.push(Curve { shape, median: low + step * index as f64, slope, lapse });
                        prior.push(weight);
                    }
                }
            }
        }
        let sum: f64 = prior.iter().sum();
        prior.iter_mut().for_each(|weight| *weight /= sum);
        let mut right = Vec::with_capacity(lengths.len() * curves.len());
        for &length in lengths {
            right.extend(curves.iter().map(|curve| {
                let known = curve.known(length as f64);
                (chance + (1.0 - chance) * known).clamp(LEAST, 1.0 - LEAST)
            }));
        }
        let ln_right = right.iter().map(|&right| libm::log(right)).collect();
        let ln_wrong = right.iter().map(|&right| libm::log1p(-right)).collect();
        let end = libm::log2(last as f64);
        let bin = |crossing: f64| {
            // All crossings below the range are one result, and all beyond it.
            let inside = crossing.clamp(low + OUTSIDE - 0.5, end + 0.5);
            ((inside - low - OUTSIDE + 0.5) * STEPS).round() as u16
        };
        let of_target = |&(level, _): &(f64, f64)| curves.iter().map(|curve| bin(curve.crossing(level))).collect();
        let bins = TARGETS.iter().map(of_target).collect();
        Some(Arc::new(Curves {
            lengths: lengths.to_vec(),
            chance,
            half_step: 0.5 * step,
            bins,
            curves,
            prior,
            right,
            ln_right,
            ln_wrong,
        }))
    }

    /// The lengths, ascending.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Probability of a right answer without any knowledge.
    pub fn chance(&self) -> f64 {
        self.chance
    }

    /// Binary logarithms of the shortest and the longest length.
    pub(super) fn range(&self) -> (f64, f64) {
        let end = |length: Option<&usize>| libm::log2(length.copied().unwrap_or(1) as f64);
        (end(self.lengths.first()), end(self.lengths.last()))
    }

    /// Values of a table at a length.
    pub(super) fn at<'a>(&self, table: &'a [f64], index: usize) -> &'a [f64] {
        let count = self.curves.len();
        &table[index * count..(index + 1) * count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_cross_where_they_say() {
        for shape in [Shape::Logistic, Shape::Weibull] {
            for (slope, lapse) in [(1.0, 0.0), (3.5, 0.05), (14.0, 0.1)] {
                let curve = Curve { shape, median: 3.0, slope, lapse };
                for level in [0.1, 0.5, 0.85] {
                    let length = libm::exp2(curve.crossing(level));
                    assert!((curve.known(length) - level).abs() < 1e-9, "{curve:?} {level}");
                }
                assert_eq!(curve.crossing(0.96) == f64::NEG_INFINITY, lapse > 0.04);
            }
        }
        // A constant error at every digit is the Weibull function of slope 1.
        let curve = Curve { shape: Shape::Weibull, median: 3.0, slope: 1.0, lapse: 0.0 };
        assert!((curve.known(1.0).powi(5) - curve.known(5.0)).abs() < 1e-12);
        assert!((curve.known(8.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn grids_need_lengths_and_a_chance() {
        assert!(Curves::new(&[], 0.0).is_none() && Curves::new(&[0, 1], 0.0).is_none());
        assert!(Curves::new(&[2, 1], 0.0).is_none() && Curves::new(&[1, 2], 1.0).is_none());
        let curves = Curves::new(&[1, 2, 5], 0.25).unwrap();
        assert!((curves.prior.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(curves.right.iter().all(|right| (0.25..1.0).contains(right)));
        assert_eq!(curves.at(&curves.right, 2).len(), curves.curves.len());
    }
}
