//! Simulated models with known curves.
use earnest_stats::psychometric::{Curves, Limit, Measured, Posterior, Procedure, ladder};
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
    /// All right up to a length, nothing beyond, but for slips.
    Cut {
        last: f64,
        slip: f64,
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
    pub fn name(self) -> &'static str {
        match self {
            Truth::Logarithm { .. } => "logistic in log length",
            Truth::Weibull { .. } => "Weibull",
            Truth::Length { .. } => "logistic in length",
            Truth::Cut { .. } => "cut",
            Truth::Bump { .. } => "bump (not falling)",
            Truth::Dip { .. } => "dip (not falling)",
        }
    }

    /// The same curve for lengths that are so many octaves longer.
    pub fn shifted(self, octaves: f64) -> Truth {
        let factor = octaves.exp2();
        match self {
            Truth::Logarithm { median, slope, lapse } => Truth::Logarithm { median: median * factor, slope, lapse },
            Truth::Weibull { median, shape, lapse } => Truth::Weibull { median: median * factor, shape, lapse },
            Truth::Length { median, slope, lapse } => {
                Truth::Length { median: median * factor, slope: slope / factor, lapse }
            }
            Truth::Cut { last, slip } => Truth::Cut { last: last * factor, slip },
            other => other,
        }
    }

    /// Median of a curve that falls.
    pub fn median(self) -> Option<f64> {
        match self {
            Truth::Logarithm { median, .. } | Truth::Weibull { median, .. } | Truth::Length { median, .. } => {
                Some(median)
            }
            Truth::Cut { last, .. } => Some(last),
            Truth::Bump { .. } | Truth::Dip { .. } => None,
        }
    }

    /// True if success falls with the length.
    pub fn falls(self) -> bool {
        !matches!(self, Truth::Bump { .. } | Truth::Dip { .. })
    }

    pub fn known(self, x: f64) -> f64 {
        let logistic = |u: f64| 1.0 / (1.0 + (-u).exp());
        match self {
            Truth::Logarithm { median, slope, lapse } => (1.0 - lapse) * logistic(slope * (median / x).log2()),
            Truth::Weibull { median, shape, lapse } => (1.0 - lapse) * (-(x / median).powf(shape)).exp2(),
            Truth::Length { median, slope, lapse } => (1.0 - lapse) * logistic(slope * (median - x)),
            Truth::Cut { last, slip } => {
                if x <= last {
                    1.0 - slip
                } else {
                    slip
                }
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

    /// Length at which a falling curve crosses a level: 0 below the range, infinity beyond it.
    pub fn crossing(self, level: f64, last: f64) -> f64 {
        if self.known(1.0) < level {
            return 0.0;
        }
        if self.known(last) >= level {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (1.0, last);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.known(middle) >= level { low = middle } else { high = middle }
        }
        low
    }
}

/// A simulated model in a skill.
#[derive(Clone, Copy)]
pub struct Model {
    pub truth: Truth,
    pub chance: f64,
    pub last: usize,
}

impl Model {
    pub fn draw(random: &mut ChaCha8Rng, kind: usize, last: usize) -> Self {
        let mut between = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
        let longest = last as f64;
        let median = between(0.0, (1.3 * longest).log2()).exp2();
        let slope = between(0.0, 3.5).exp2();
        let lapse = [0.0, 0.0, between(0.0, 0.05), between(0.0, 0.2)][(between(0.0, 4.0) as usize).min(3)];
        let truth = match kind {
            0 => Truth::Logarithm { median, slope, lapse },
            1 => Truth::Weibull { median, shape: slope, lapse },
            2 => Truth::Length { median, slope: slope / median, lapse },
            3 => Truth::Cut { last: median, slip: between(0.0, 0.03) },
            4 => {
                let from = between(2.0, 0.3 * longest).max(2.5);
                Truth::Bump { from, to: from * between(1.8, 3.0) }
            }
            _ => {
                let from = between(2.0, 0.3 * longest).max(2.5);
                let to = from * between(1.6, 2.2);
                Truth::Dip { from, to, last: (to * between(1.5, 3.0)).min(longest) }
            }
        };
        let chance = [0.0, 0.0, 0.0, 0.1, 0.5][(between(0.0, 5.0) as usize).min(4)];
        // Guesses would hide what does not fall in so few answers.
        Model { truth, chance: if kind > 3 { 0.0 } else { chance }, last }
    }

    pub fn right(self, length: usize, random: &mut ChaCha8Rng) -> bool {
        let known = self.truth.known(length as f64);
        random.random::<f64>() < self.chance + (1.0 - self.chance) * known
    }

    pub fn adaptive(self, random: &mut ChaCha8Rng) -> (usize, Measured) {
        let curves = Curves::new(&ladder(1, self.last), self.chance).expect("lengths ascend");
        let mut procedure = Procedure::new(&curves, BUDGET, WIDTH);
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

    /// The 50 % limit after each number of questions a length.
    pub fn grid(self, most: usize, random: &mut ChaCha8Rng) -> Vec<Limit> {
        let lengths: Vec<usize> = (1..=self.last).collect();
        let mut posterior = Posterior::new(&Curves::new(&lengths, self.chance).expect("lengths ascend"));
        (0..most)
            .map(|_| {
                for (index, &length) in lengths.iter().enumerate() {
                    let right = self.right(length, random);
                    posterior.add(index, usize::from(right), usize::from(!right));
                }
                posterior.limits(&[0.5])[0]
            })
            .collect()
    }
}
