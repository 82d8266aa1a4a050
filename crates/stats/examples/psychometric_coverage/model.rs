//! Simulated models with known curves.
use std::sync::Arc;

use earnest_stats::psychometric::{Counted, Curves, Measured, Procedure, crossing, ladder};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{BUDGET, WIDTH};

/// A true curve: probability of success above chance by length.
#[derive(Clone, Copy)]
pub enum Truth {
    /// Logistic in the logarithm of the length.
    Logarithm {
        median: f64,
        slope: f64,
        lapse: f64,
    },
    Weibull {
        median: f64,
        shape: f64,
        lapse: f64,
    },
    /// Logistic in the length itself, which no curve of the procedure is.
    Length {
        median: f64,
        slope: f64,
        lapse: f64,
    },
    /// All right up to a length but for lapses, nothing beyond but for slips.
    Cut {
        last: f64,
        lapse: f64,
        slip: f64,
    },
    /// A share between all and nothing from one length to another.
    Plateau {
        from: f64,
        to: f64,
        lapse: f64,
        share: f64,
        slip: f64,
    },
    /// The logistic curve at every third digit: tokens of three digits are right or wrong together.
    Steps {
        median: f64,
        slope: f64,
        lapse: f64,
    },
    /// Right between two lengths only.
    Bump {
        from: f64,
        to: f64,
    },
    /// Wrong between two lengths, right below and beyond, up to a last one.
    Dip {
        from: f64,
        to: f64,
        last: f64,
    },
}

impl Truth {
    /// The same curve for lengths that are so many octaves longer.
    pub fn shifted(self, octaves: f64) -> Truth {
        let factor = octaves.exp2();
        match self {
            Truth::Logarithm { median, slope, lapse } => Truth::Logarithm { median: median * factor, slope, lapse },
            Truth::Weibull { median, shape, lapse } => Truth::Weibull { median: median * factor, shape, lapse },
            Truth::Length { median, slope, lapse } => {
                Truth::Length { median: median * factor, slope: slope / factor, lapse }
            }
            Truth::Cut { last, lapse, slip } => Truth::Cut { last: last * factor, lapse, slip },
            Truth::Steps { median, slope, lapse } => Truth::Steps { median: median * factor, slope, lapse },
            other => other,
        }
    }

    /// Median of a curve that falls.
    pub fn median(self) -> Option<f64> {
        match self {
            Truth::Logarithm { median, .. }
            | Truth::Weibull { median, .. }
            | Truth::Length { median, .. }
            | Truth::Steps { median, .. } => Some(median),
            Truth::Cut { last, .. } => Some(last),
            Truth::Plateau { .. } | Truth::Bump { .. } | Truth::Dip { .. } => None,
        }
    }

    pub fn known(self, x: f64) -> f64 {
        let logistic = |u: f64| 1.0 / (1.0 + (-u).exp());
        match self {
            Truth::Logarithm { median, slope, lapse } => (1.0 - lapse) * logistic(slope * (median / x).log2()),
            Truth::Weibull { median, shape, lapse } => (1.0 - lapse) * (-(x / median).powf(shape)).exp2(),
            Truth::Length { median, slope, lapse } => (1.0 - lapse) * logistic(slope * (median - x)),
            Truth::Cut { last, lapse, slip } => {
                if x <= last {
                    1.0 - lapse
                } else {
                    slip
                }
            }
            Truth::Plateau { from, lapse, .. } if x <= from => 1.0 - lapse,
            Truth::Plateau { to, share, slip, .. } => {
                if x <= to {
                    share
                } else {
                    slip
                }
            }
            Truth::Steps { median, slope, lapse } => {
                (1.0 - lapse) * logistic(slope * (median / (3.0 * (x / 3.0).ceil())).log2())
            }
            Truth::Bump { from, to } => {
                if x >= from && x <= to {
                    0.9
                } else {
                    0.05
                }
            }
            Truth::Dip { from, to, last } => {
                if x > last || (x >= from && x <= to) {
                    0.05
                } else {
                    0.95
                }
            }
        }
    }

    /// Shortest and longest length at which a curve falls through a level for good: two where it is at the level over a range. 0 is below the range of lengths,
    /// infinity beyond it.
    pub fn crossing(self, level: f64, last: f64) -> (f64, f64) {
        // Steps of a hundredth, and beyond the last of them that is above, where a curve falls.
        let end = |is_above: &dyn Fn(f64) -> bool| {
            let hundredths = (100..=(100.0 * last) as usize).rev().map(|number| number as f64 / 100.0);
            let Some(low) = hundredths.into_iter().find(|&x| is_above(self.known(x))) else { return 0.0 };
            if low >= last {
                return f64::INFINITY;
            }
            let (mut low, mut high) = (low, (low + 0.01).min(last));
            for _ in 0..40 {
                let middle = 0.5 * (low + high);
                if is_above(self.known(middle)) { low = middle } else { high = middle }
            }
            low
        };
        // Shares that were set to the level are at it but for rounding.
        (end(&|share| share > level + 1e-9), end(&|share| share >= level - 1e-9))
    }
}

/// A simulated model in a skill.
#[derive(Clone, Copy)]
pub struct Model {
    pub truth: Truth,
    pub chance: f64,
    pub last: usize,
}

/// Kinds of curves by name; those from [`RISING`] on do not fall.
pub const KINDS: [&str; 10] = [
    "logistic in log length",
    "Weibull",
    "logistic in length",
    "cut",
    "cut after lapses",
    "plateau",
    "steps of three digits",
    "bump (not falling)",
    "dip (not falling)",
    "late start (not falling)",
];

pub const RISING: usize = 7;

impl Model {
    /// A model with a curve of this kind.
    pub fn draw(random: &mut ChaCha8Rng, kind: usize, last: usize) -> Self {
        let mut between = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
        let longest = last as f64;
        let median = between(0.0, (1.3 * longest).log2()).exp2();
        let slope = between(0.0, 3.5).exp2();
        let lapse = [0.0, 0.0, between(0.0, 0.05), between(0.0, 0.2)][(between(0.0, 4.0) as usize).min(3)];
        let slip = between(0.0, 0.03);
        let truth = match kind {
            0 => Truth::Logarithm { median, slope, lapse },
            1 => Truth::Weibull { median, shape: slope, lapse },
            2 => Truth::Length { median, slope: slope / median, lapse },
            3 => Truth::Cut { last: median, lapse: slip, slip },
            4 => Truth::Cut { last: median, lapse: between(0.05, 0.3), slip },
            5 => {
                // From some length up to two octaves and more further; a share in steps of a twentieth, so that one of eleven is half.
                let from = between(0.0, (0.5 * longest).log2()).exp2().floor();
                let to = (from * between(1.5, 6.0)).ceil();
                Truth::Plateau { from, to, lapse: between(0.0, 0.1), share: (between(4.5, 15.5)).round() / 20.0, slip }
            }
            6 => Truth::Steps { median, slope, lapse },
            7 => {
                let from = between(2.0, 0.3 * longest).max(2.5);
                Truth::Bump { from, to: from * between(1.8, 3.0) }
            }
            8 => {
                let from = between(2.0, 0.3 * longest).max(2.5);
                let to = from * between(1.6, 2.2);
                Truth::Dip { from, to, last: (to * between(1.5, 3.0)).min(longest) }
            }
            // The shortest numbers alone are hard.
            _ => {
                let from = between(1.1, 3.0);
                Truth::Bump { from, to: between((3.0 * from).log2(), longest.log2()).exp2() }
            }
        };
        let chance = [0.0, 0.0, 0.0, 0.1, 0.5][(between(0.0, 5.0) as usize).min(4)];
        // Guesses would hide what does not fall in so few answers.
        Model { truth, chance: if kind >= RISING { 0.0 } else { chance }, last }
    }

    pub fn right(self, length: usize, random: &mut ChaCha8Rng) -> bool {
        let known = self.truth.known(length as f64);
        random.random::<f64>() < self.chance + (1.0 - self.chance) * known
    }

    pub fn adaptive(self, curves: &Arc<Curves>, random: &mut ChaCha8Rng) -> (usize, Measured) {
        let mut procedure = Procedure::new(curves, BUDGET, WIDTH);
        loop {
            let lengths = procedure.next();
            if lengths.is_empty() {
                return (procedure.asked(), procedure.measured());
            }
            for length in lengths {
                procedure.add(length, Some(self.right(length, random)));
            }
        }
    }

    /// Ends of the interval of the 50 % limit after each number of questions a length of the profile's ladder.
    pub fn grid(self, most: usize, random: &mut ChaCha8Rng) -> Vec<(f64, f64)> {
        let new = |length| Counted { length, right: 0, asked: 0 };
        let mut counts: Vec<Counted> = ladder(1, self.last).into_iter().map(new).collect();
        let mut ask = || {
            for one in &mut counts {
                one.right += usize::from(self.right(one.length, random));
                one.asked += 1;
            }
            let found = crossing(&counts, self.chance + (1.0 - self.chance) * 0.5, (1, self.last));
            (found.low, found.high)
        };
        (0..most).map(|_| ask()).collect()
    }
}
