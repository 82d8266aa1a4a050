//! Minus twice the marginal log-likelihood and its gradient: Laplace and adaptive Gauss-Hermite.
//!
//! For a group, with `u` standard normal and linear predictor `eta = x beta + theta u`,
//!
//! ```text
//! h(u)   = sum [n log(1 + e^eta) - y eta] + u^2 / 2
//! L      = integral of exp(-h(u)) / sqrt(2 pi)
//! H(u)   = h''(u) = 1 + theta^2 sum n mu (1 - mu)
//! L      ~ H^-1/2 sum_k w_k exp(-h(mode + node_k H^-1/2))
//! ```
//!
//! The mode is found to a gradient below [`MODE_TOLERANCE`] and `H` is taken *there*: the function is smooth in its
//! parameters to rounding. (lme4 stops early and uses the curvature before its last step; see [`super::lme4`].)
use super::data::GlmmData;
use super::quadrature::Rule;

/// Largest absolute derivative of `h` at an accepted mode (of groups with so many trials that their sum's rounding is larger:
/// that rounding).
pub const MODE_TOLERANCE: f64 = 1e-10;

/// Predictors up to this size are handled as products of exponentials, larger ones term by term.
const FACTORISED: f64 = 150.0;

/// Evaluates one approximation of the likelihood on one data set; keeps modes and buffers between evaluations.
pub(super) struct Likelihood<'a> {
    data: &'a GlmmData,
    rule: Rule,
    modes: Vec<f64>,
    /// `x beta` and its exponential, by cell.
    fixed_part: Vec<f64>,
    exponential: Vec<f64>,
    evaluations: usize,
    unconverged_modes: usize,
    sums: Sums,
    node_gradient: Vec<f64>,
    group_gradient: Vec<f64>,
}

/// Sums over the cells of a group at one value of `u`; `residual` is `n mu - y`.
#[derive(Debug, Clone, Default)]
struct Sums {
    residual: f64,
    /// `n mu (1 - mu)`
    weight: f64,
    /// `n mu (1 - mu) (1 - 2 mu)`
    skew: f64,
    residual_x: Vec<f64>,
    weight_x: Vec<f64>,
    skew_x: Vec<f64>,
}

/// Derivatives of [`Sums`] to compute.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// `residual` and `weight`.
    Newton,
    /// And `residual_x`.
    First,
    /// All.
    Third,
}

impl<'a> Likelihood<'a> {
    pub(super) fn new(data: &'a GlmmData, points: usize) -> Self {
        let columns = data.columns();
        Likelihood {
            data,
            rule: Rule::new(points),
            modes: vec![0.0; data.groups()],
            fixed_part: vec![0.0; data.cells()],
            exponential: vec![0.0; data.cells()],
            evaluations: 0,
            unconverged_modes: 0,
            sums: Sums {
                residual_x: vec![0.0; columns],
                weight_x: vec![0.0; columns],
                skew_x: vec![0.0; columns],
                ..Sums::default()
            },
            node_gradient: vec![0.0; columns + 1],
            group_gradient: vec![0.0; columns + 1],
        }
    }

    /// Number of evaluations so far.
    pub(super) fn columns(&self) -> usize {
        self.data.columns()
    }

    pub(super) fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// Modes of the latest evaluation whose derivative stayed above [`MODE_TOLERANCE`].
    pub(super) fn unconverged_modes(&self) -> usize {
        self.unconverged_modes
    }

    /// Minus twice the log-likelihood without the binomial coefficients, and its gradient. Inner parameters: random SD
    /// (any sign; the function is even in it), then coefficients.
    pub(super) fn evaluate(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        self.evaluations += 1;
        self.unconverged_modes = 0;
        gradient.fill(0.0);
        let (theta, beta) = (parameters[0], &parameters[1..]);
        if !parameters.iter().all(|value| value.is_finite()) {
            return f64::INFINITY;
        }
        let mut factorised = true;
        for cell in 0..self.data.cells() {
            let eta = crate::matrix::dot(self.data.cell(cell), beta);
            self.fixed_part[cell] = eta;
            factorised &= eta.abs() <= FACTORISED;
            self.exponential[cell] = eta.exp();
        }
        let mut total = 0.0;
        for group in 0..self.data.groups() {
            total += self.group(group, theta, factorised, gradient);
        }
        total
    }

    /// A group's contribution; adds its gradient.
    fn group(&mut self, group: usize, theta: f64, factorised: bool, gradient: &mut [f64]) -> f64 {
        let columns = self.data.columns();
        let mode = self.find_mode(group, theta, factorised);
        self.modes[group] = mode;
        self.sum(group, mode, theta, factorised, Order::Third);
        let h_mode = self.negative_log_joint(group, mode, theta, factorised);
        let sums = &self.sums;
        let curvature = 1.0 + theta * theta * sums.weight;
        let curvature_u = theta.powi(3) * sums.skew;

        // Total derivatives of log H at the mode, through the mode's own movement.
        // mode' = -(d2 h / du dparameter) / H
        let mut mode_slope = vec![0.0; columns + 1];
        mode_slope[0] = -(sums.residual + theta * mode * sums.weight) / curvature;
        let log_curvature = &mut self.group_gradient;
        log_curvature[0] =
            (2.0 * theta * sums.weight + theta * theta * mode * sums.skew + curvature_u * mode_slope[0]) / curvature;
        for column in 0..columns {
            mode_slope[column + 1] = -theta * sums.weight_x[column] / curvature;
            log_curvature[column + 1] =
                (theta * theta * sums.skew_x[column] + curvature_u * mode_slope[column + 1]) / curvature;
        }

        if self.rule.nodes.len() == 1 {
            gradient[0] += 2.0 * mode * sums.residual + log_curvature[0];
            for column in 0..columns {
                gradient[column + 1] += 2.0 * sums.residual_x[column] + log_curvature[column + 1];
            }
            return 2.0 * h_mode + curvature.ln();
        }

        // Weights of the nodes, relative to the mode so that nothing underflows.
        let sigma = curvature.sqrt().recip();
        self.node_gradient.fill(0.0);
        let mut total = 0.0;
        for node in 0..self.rule.nodes.len() {
            let position = self.rule.nodes[node];
            let u = mode + sigma * position;
            let h = self.negative_log_joint(group, u, theta, factorised);
            let weight = self.rule.weights[node] * (h_mode - h).exp();
            total += weight;
            if weight == 0.0 {
                continue;
            }
            self.sum(group, u, theta, factorised, Order::First);
            let slope = theta * self.sums.residual + u;
            for (index, sum) in self.node_gradient.iter_mut().enumerate() {
                let direct = if index == 0 { u * self.sums.residual } else { self.sums.residual_x[index - 1] };
                let node_slope = mode_slope[index] - 0.5 * sigma * position * self.group_gradient[index];
                *sum += weight * (direct + slope * node_slope);
            }
        }
        for (index, gradient) in gradient.iter_mut().enumerate() {
            *gradient += self.group_gradient[index] + 2.0 * self.node_gradient[index] / total;
        }
        2.0 * (h_mode - total.ln()) + curvature.ln()
    }

    /// The minimum of `h`: Newton's method kept inside a bracket, which always holds as `h'` increases.
    fn find_mode(&mut self, group: usize, theta: f64, factorised: bool) -> f64 {
        if theta == 0.0 {
            return 0.0;
        }
        let mut u = self.modes[group];
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut slope = f64::INFINITY;
        for _ in 0..200 {
            self.sum(group, u, theta, factorised, Order::Newton);
            slope = theta * self.sums.residual + u;
            if slope.abs() < 0.01 * MODE_TOLERANCE {
                return u;
            }
            if slope > 0.0 {
                high = u
            } else {
                low = u
            }
            let mut next = u - slope / (1.0 + theta * theta * self.sums.weight);
            if !(low < next && next < high) {
                next = match (low.is_finite(), high.is_finite()) {
                    (true, true) => 0.5 * (low + high),
                    // Without a bracket Newton's step overshot to infinity or rounding has stopped it.
                    _ => break,
                };
            }
            if next == u {
                break;
            }
            u = next;
        }
        // Where sums are large, rounding can keep the derivative above the aim; the tolerance itself decides. A sum over
        // millions of trials cannot even be computed to it: there, the rounding of the sum does.
        if slope.abs() > MODE_TOLERANCE {
            let trials: f64 = self.data.trials()[self.data.cells_of(group)].iter().sum();
            let rounding = 4.0 * f64::EPSILON * theta.abs() * trials;
            self.unconverged_modes += usize::from(slope.abs().is_nan() || slope.abs() > rounding);
        }
        u
    }

    /// `h(u)`.
    fn negative_log_joint(&self, group: usize, u: f64, theta: f64, factorised: bool) -> f64 {
        let shift = theta * u;
        let cells = self.data.cells_of(group);
        let (successes, trials) = (&self.data.successes()[cells.clone()], &self.data.trials()[cells.clone()]);
        let fixed_part = &self.fixed_part[cells.clone()];
        let mut sum = 0.5 * u * u;
        if factorised && shift.abs() <= FACTORISED {
            let factor = shift.exp();
            // Logarithms of single trials are taken of products: one logarithm for many cells.
            let mut product = 1.0;
            for (((exponential, trials), successes), eta) in
                self.exponential[cells].iter().zip(trials).zip(successes).zip(fixed_part)
            {
                let term = 1.0 + exponential * factor;
                if *trials == 1.0 {
                    product *= term;
                    if product > 1e150 {
                        sum += product.ln();
                        product = 1.0;
                    }
                } else {
                    sum += trials * term.ln();
                }
                sum -= successes * (eta + shift);
            }
            sum + product.ln()
        } else {
            for ((eta, trials), successes) in fixed_part.iter().zip(trials).zip(successes) {
                let eta = eta + shift;
                // Split by outcome: each term is then small where it should be, without cancellation.
                sum += successes * softplus(-eta) + (trials - successes) * softplus(eta);
            }
            sum
        }
    }

    /// Fills [`Sums`] at `u`.
    fn sum(&mut self, group: usize, u: f64, theta: f64, factorised: bool, order: Order) {
        let data = self.data;
        let shift = theta * u;
        let fast = factorised && shift.abs() <= FACTORISED;
        let factor = shift.exp();
        let sums = &mut self.sums;
        (sums.residual, sums.weight, sums.skew) = (0.0, 0.0, 0.0);
        if order != Order::Newton {
            sums.residual_x.fill(0.0);
        }
        if order == Order::Third {
            sums.weight_x.fill(0.0);
            sums.skew_x.fill(0.0);
        }
        for cell in data.cells_of(group) {
            let complement = if fast {
                1.0 / (1.0 + self.exponential[cell] * factor)
            } else {
                logistic(-(self.fixed_part[cell] + shift))
            };
            let mean = if fast {
                self.exponential[cell] * factor * complement
            } else {
                logistic(self.fixed_part[cell] + shift)
            };
            let trials = data.trials()[cell];
            let residual = trials * mean - data.successes()[cell];
            let weight = trials * mean * complement;
            sums.residual += residual;
            sums.weight += weight;
            match order {
                Order::Newton => {}
                Order::First => {
                    for (sum, x) in sums.residual_x.iter_mut().zip(data.cell(cell)) {
                        *sum += residual * x;
                    }
                }
                Order::Third => {
                    let skew = weight * (complement - mean);
                    sums.skew += skew;
                    for (column, x) in data.cell(cell).iter().enumerate() {
                        sums.residual_x[column] += residual * x;
                        sums.weight_x[column] += weight * x;
                        sums.skew_x[column] += skew * x;
                    }
                }
            }
        }
    }
}

/// `1 / (1 + exp(-x))`
pub(super) fn logistic(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let exponential = x.exp();
        exponential / (1.0 + exponential)
    }
}

/// `log(1 + exp(x))`
pub(super) fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> GlmmData {
        let response = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0];
        let variant = [0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
        let gamma = [0.3, -1.0, 2.5, 0.0, 0.7, 0.1, -0.2, 0.9, 1.4, -2.0];
        let group = [0, 0, 0, 0, 1, 1, 1, 2, 2, 2];
        GlmmData::bernoulli(&response, &[("variant", &variant), ("gamma_c", &gamma)], &group).unwrap()
    }

    #[test]
    fn the_gradient_is_that_of_the_value() {
        let data = data();
        for points in [1, 2, 5, 25] {
            let mut likelihood = Likelihood::new(&data, points);
            for start in [[1.3, 0.2, -0.5, 0.3], [-0.7, 1.0, 2.0, -1.0], [6.0, -3.0, 0.4, 2.0], [0.0, 0.1, 0.2, 0.3]] {
                let (mut gradient, mut unused) = ([0.0; 4], [0.0; 4]);
                likelihood.evaluate(&start, &mut gradient);
                for index in 0..4 {
                    let mut at = |step: f64| {
                        let mut moved = start;
                        moved[index] += step;
                        likelihood.evaluate(&moved, &mut unused)
                    };
                    let step = 1e-3;
                    let slope = (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step);
                    assert!((slope - gradient[index]).abs() < 1e-8, "{points} {start:?} {index}: {slope} {gradient:?}");
                }
            }
        }
    }

    #[test]
    fn many_points_give_the_integral_itself() {
        let data = data();
        let (theta, beta) = (1.7, [0.4, -0.6, 0.2]);
        let mut likelihood = Likelihood::new(&data, 61);
        let value = likelihood.evaluate(&[theta, beta[0], beta[1], beta[2]], &mut [0.0; 4]);
        // The trapezoidal rule converges beyond every power for such integrands.
        let mut expected = 0.0;
        for group in 0..data.groups() {
            let step = 0.01;
            let integral: f64 = (-1500..=1500)
                .map(|index| {
                    let u = f64::from(index) * step;
                    let mut log = -0.5 * u * u;
                    for cell in data.cells_of(group) {
                        let eta = crate::matrix::dot(data.cell(cell), &beta) + theta * u;
                        let (successes, trials) = (data.successes()[cell], data.trials()[cell]);
                        log += successes * logistic(eta).ln() + (trials - successes) * logistic(-eta).ln();
                    }
                    log.exp() * step / (2.0 * std::f64::consts::PI).sqrt()
                })
                .sum();
            expected -= 2.0 * integral.ln();
        }
        assert!((value - expected).abs() < 1e-9, "{value} {expected}");
    }

    #[test]
    fn the_mode_is_converged_even_for_extreme_parameters() {
        let data = data();
        let mut likelihood = Likelihood::new(&data, 1);
        for parameters in [[30.0, 0.0, 0.0, 0.0], [5.0, 80.0, -90.0, 40.0], [400.0, 10.0, 300.0, -200.0]] {
            assert!(likelihood.evaluate(&parameters, &mut [0.0; 4]).is_finite());
            assert_eq!(likelihood.unconverged_modes(), 0, "{parameters:?}");
        }
        assert_eq!(likelihood.evaluate(&[f64::NAN, 0.0, 0.0, 0.0], &mut [0.0; 4]), f64::INFINITY);
    }
}
