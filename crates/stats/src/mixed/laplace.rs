//! Laplace approximation of a binomial model's likelihood with exact derivatives.
//!
//! For `b = Lambda u`, `u ~ N(0, I)` the criterion is `-2 log p(y | beta, u) + |u|^2 + log|A|` at the modes `u`, with
//! `A = Lambda' Z' W Z Lambda + I`: that of lme4 with `nAGQ = 1`, at converged modes.
use super::data::MixedData;
use super::layout::Layout;
use super::system::System;
use super::theta::Theta;
use crate::matrix::Matrix;

/// Newton steps for the modes.
const MOST_STEPS: usize = 200;

/// Newton decrement from which one more full step ends the search: what is left is its square.
const NEARLY: f64 = 1e-10;

/// A function to be minimised, with its gradient.
pub(super) trait Criterion {
    /// The value and, if asked for, the gradient; none where it is no number.
    fn evaluate(&mut self, at: &[f64], gradient: Option<&mut [f64]>) -> Option<f64>;
}

/// The criterion over (theta, coefficients of the orthonormal columns).
#[derive(Debug)]
pub(super) struct Laplace<'d> {
    pub(super) system: System<'d>,
    pub(super) theta: Theta,
    /// Spherical random effects at the modes of the last evaluation.
    pub(super) modes: Vec<f64>,
    /// By cell: fixed part and whole of the linear predictor, residual, weight.
    offset: Vec<f64>,
    eta: Vec<f64>,
    pub(super) residual: Vec<f64>,
    pub(super) weight: Vec<f64>,
    scratch: Vec<f64>,
    /// By cell: derivative of the criterion by the linear predictor, at the last evaluation with a gradient.
    pub(super) slope: Vec<f64>,
    /// By coefficient of the caller, the unit in which it has a log-F(1,1) prior; 0 without one.
    pub(super) units: Vec<f64>,
}

/// `log(1 + e^x)` and the logistic function.
pub(super) fn logistic(x: f64) -> (f64, f64) {
    let small = (-x.abs()).exp();
    let mean = if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) };
    (x.max(0.0) + small.ln_1p(), mean)
}

impl<'d> Laplace<'d> {
    pub(super) fn new(data: &'d MixedData, layout: &'d Layout) -> Self {
        let cells = data.cells();
        Laplace {
            system: System::new(data, layout),
            theta: Theta::new(data),
            modes: vec![0.0; layout.width()],
            offset: vec![0.0; cells],
            eta: vec![0.0; cells],
            residual: vec![0.0; cells],
            weight: vec![0.0; cells],
            scratch: vec![0.0; cells],
            slope: Vec::new(),
            units: vec![0.0; data.columns()],
        }
    }

    /// Sets the linear predictor of the current modes; returns `-2 log p(y | beta, u) + |u|^2`.
    fn predict(&mut self, lambda: &[Vec<f64>]) -> f64 {
        let mut b = vec![0.0; self.modes.len()];
        self.system.scaled(lambda, &self.modes, &mut b);
        self.system.spread_over(&b, &mut self.eta);
        let data = self.system.data;
        let mut sum = 0.0;
        for (cell, eta) in self.eta.iter_mut().enumerate() {
            *eta += self.offset[cell];
            let (log, mean) = logistic(*eta);
            sum += data.weight[cell] * log - data.total[cell] * *eta;
            self.residual[cell] = data.total[cell] - data.weight[cell] * mean;
            self.weight[cell] = data.weight[cell] * mean * (1.0 - mean);
            // The mean's distance from 1/2 for the third derivative.
            self.scratch[cell] = 1.0 - 2.0 * mean;
        }
        2.0 * sum + self.modes.iter().map(|u| u * u).sum::<f64>()
    }

    /// Finds the modes by penalised iteratively reweighted least squares; the criterion there.
    fn find_modes(&mut self, lambda: &[Vec<f64>]) -> Option<f64> {
        let width = self.modes.len();
        let (mut gathered, mut slope) = (vec![0.0; width], vec![0.0; width]);
        let mut value = self.predict(lambda);
        if !value.is_finite() {
            self.modes.fill(0.0);
            value = self.predict(lambda);
        }
        let mut last = false;
        for _ in 0..MOST_STEPS {
            self.system.gather(&self.weight);
            let log_determinant = self.system.factorise(lambda)?;
            if last {
                return Some(value + log_determinant);
            }
            self.system.collect(&self.residual, &mut gathered);
            self.system.scaled_back(lambda, &gathered, &mut slope);
            slope.iter_mut().zip(&self.modes).for_each(|(slope, u)| *slope -= u);
            let mut step = slope.clone();
            self.system.factor.solve(&mut step);
            let decrement: f64 = slope.iter().zip(&step).map(|(slope, step)| slope * step).sum();
            if !decrement.is_finite() {
                return None;
            }
            let before = self.modes.clone();
            let noise = 1e-13 * value.abs();
            let mut length = 1.0;
            loop {
                for ((mode, before), step) in self.modes.iter_mut().zip(&before).zip(&step) {
                    *mode = before + length * step;
                }
                let trial = self.predict(lambda);
                // A decrease that is less than rounding cannot be seen: the step is right, because the slope is known better.
                if trial <= value + noise || decrement < NEARLY.max(noise) || length < 1e-9 {
                    value = trial;
                    break;
                }
                length *= 0.5;
            }
            last = decrement < NEARLY && length == 1.0;
        }
        None
    }

    /// The penalty of the coefficients' priors, minus twice the log density `b / 2 - log(1 + e^b)` of log-F(1,1) for `b` in its unit (Greenland
    /// and Mansournia 2015); adds its derivatives to a gradient.
    pub(super) fn penalty(&self, beta: &[f64], gradient: Option<&mut [f64]>) -> f64 {
        if self.units.iter().all(|unit| *unit == 0.0) {
            return 0.0;
        }
        let map = &self.system.data.fixed.to_caller;
        let scaled: Vec<f64> = map.times(beta).iter().zip(&self.units).map(|(beta, unit)| unit * beta).collect();
        if let Some(gradient) = gradient {
            let of = |(scaled, unit): (&f64, &f64)| unit * (2.0 * logistic(*scaled).1 - 1.0);
            let slopes: Vec<f64> = scaled.iter().zip(&self.units).map(of).collect();
            gradient.iter_mut().zip(map.transpose().times(&slopes)).for_each(|(into, part)| *into += part);
        }
        let of = |(scaled, unit): (&f64, &f64)| if *unit > 0.0 { 2.0 * logistic(*scaled).0 - scaled } else { 0.0 };
        scaled.iter().zip(&self.units).map(of).sum()
    }

    /// `-2 log p(y | beta, u)` at the modes of the last evaluation.
    pub(super) fn conditional_deviance(&self) -> f64 {
        let data = self.system.data;
        let of_cell = |(cell, eta): (usize, &f64)| data.weight[cell] * logistic(*eta).0 - data.total[cell] * eta;
        2.0 * self.eta.iter().enumerate().map(of_cell).sum::<f64>()
    }

    /// Information of the caller's coefficients with theta held fixed: `X' (W - W Z Lambda A^-1 Lambda' Z' W) X` over the
    /// orthonormal columns, at the last evaluation.
    pub(super) fn information(&self, lambda: &[Vec<f64>]) -> Matrix {
        information(&self.system, lambda, &self.weight)
    }
}

/// `X' (W - W Z Lambda A^-1 Lambda' Z' W) X` for the factorised `A`.
pub(super) fn information(system: &System<'_>, lambda: &[Vec<f64>], weight: &[f64]) -> Matrix {
    let data = system.data;
    let columns = data.fixed.columns;
    let mut found = Matrix::zeros(columns);
    for (cell, &weight) in weight.iter().enumerate() {
        found.add_outer(weight, data.fixed.cell(cell));
    }
    let width = system.layout.width();
    let mut products: Vec<(Vec<f64>, Vec<f64>)> = Vec::with_capacity(columns);
    let mut values = vec![0.0; data.cells()];
    for column in 0..columns {
        for (cell, value) in values.iter_mut().enumerate() {
            *value = weight[cell] * data.fixed.cell(cell)[column];
        }
        let (mut gathered, mut scaled) = (vec![0.0; width], vec![0.0; width]);
        system.collect(&values, &mut gathered);
        system.scaled_back(lambda, &gathered, &mut scaled);
        let mut solved = scaled.clone();
        system.factor.solve(&mut solved);
        products.push((scaled, solved));
    }
    for row in 0..columns {
        for column in 0..columns {
            let part: f64 = products[row].0.iter().zip(&products[column].1).map(|(left, right)| left * right).sum();
            found.add(row, column, -part);
        }
    }
    found.symmetrise();
    found
}

impl Criterion for Laplace<'_> {
    fn evaluate(&mut self, at: &[f64], gradient: Option<&mut [f64]>) -> Option<f64> {
        let (theta, beta) = at.split_at(self.theta.len());
        let data = self.system.data;
        let lambda = self.theta.factors(theta);
        for (cell, offset) in self.offset.iter_mut().enumerate() {
            *offset = data.fixed.cell(cell).iter().zip(beta).map(|(x, beta)| x * beta).sum();
        }
        let mut value = self.find_modes(&lambda)?;
        let Some(gradient) = gradient else {
            value += self.penalty(beta, None);
            return Some(value).filter(|value| value.is_finite());
        };

        let width = self.modes.len();
        let slopes = self.system.invert(&lambda);
        let mut third = vec![0.0; data.cells()];
        self.system.variances(&mut third);
        for (cell, third) in third.iter_mut().enumerate() {
            *third *= self.weight[cell] * self.scratch[cell];
        }
        let (mut gathered, mut shift) = (vec![0.0; width], vec![0.0; width]);
        self.system.collect(&third, &mut gathered);
        self.system.scaled_back(&lambda, &gathered, &mut shift);
        self.system.factor.solve(&mut shift);
        let mut b = vec![0.0; width];
        self.system.scaled(&lambda, &shift, &mut b);
        let mut moved = vec![0.0; data.cells()];
        self.system.spread_over(&b, &mut moved);
        let slope: Vec<f64> = (0..data.cells())
            .map(|cell| third[cell] - 2.0 * self.residual[cell] - self.weight[cell] * moved[cell])
            .collect();
        self.system.collect(&slope, &mut gathered);
        let mut residual = vec![0.0; width];
        self.system.collect(&self.residual, &mut residual);
        let (by_theta, by_beta) = gradient.split_at_mut(self.theta.len());
        self.system.by_theta(&self.theta, &[(&gathered, &self.modes), (&residual, &shift)], &slopes, by_theta);
        by_beta.fill(0.0);
        for (cell, slope) in slope.iter().enumerate() {
            by_beta.iter_mut().zip(data.fixed.cell(cell)).for_each(|(into, x)| *into += slope * x);
        }
        value += self.penalty(beta, Some(by_beta));
        self.slope = slope;
        Some(value).filter(|value| value.is_finite() && gradient.iter().all(|slope| slope.is_finite()))
    }
}
