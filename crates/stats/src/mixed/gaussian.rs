//! Profiled deviance of a linear mixed model, by maximum likelihood or REML, with exact derivatives.
//!
//! Fixed effects, random effects and the residual variance are solved for at every theta (Bates et al. 2015, section 3.4).
use super::data::MixedData;
use super::laplace::Criterion;
use super::layout::Layout;
use super::system::System;
use super::theta::Theta;
use crate::matrix::Matrix;

/// The criterion over theta.
#[derive(Debug)]
pub(super) struct Gaussian<'d> {
    pub(super) system: System<'d>,
    pub(super) theta: Theta,
    pub(super) restricted: bool,
    /// Spherical random effects over the residual deviation, and coefficients of the orthonormal columns.
    pub(super) modes: Vec<f64>,
    pub(super) beta: Vec<f64>,
    /// Penalised residual sum of squares.
    pub(super) squares: f64,
    /// Information of the coefficients over the inverse residual variance.
    pub(super) information: Matrix,
    /// By column, then of the response: `Z' W x`.
    products: Vec<Vec<f64>>,
    response: Vec<f64>,
}

impl<'d> Gaussian<'d> {
    pub(super) fn new(data: &'d MixedData, layout: &'d Layout, restricted: bool) -> Self {
        let mut system = System::new(data, layout);
        system.gather(&data.weight);
        let collect = |value: &dyn Fn(usize) -> f64| {
            let values: Vec<f64> = (0..data.cells()).map(value).collect();
            let mut into = vec![0.0; layout.width()];
            system.collect(&values, &mut into);
            into
        };
        let column = |column: usize| collect(&|cell| data.weight[cell] * data.fixed.cell(cell)[column]);
        let products = (0..data.columns()).map(column).collect();
        let response = collect(&|cell| data.total[cell]);
        Gaussian {
            theta: Theta::new(data),
            restricted,
            modes: vec![0.0; layout.width()],
            beta: vec![0.0; data.columns()],
            squares: 0.0,
            information: Matrix::zeros(data.columns()),
            products,
            response,
            system,
        }
    }

    /// Residual degrees of freedom.
    pub(super) fn degrees(&self) -> f64 {
        let data = self.system.data;
        (data.rows - if self.restricted { data.columns() } else { 0 }) as f64
    }
}

impl Criterion for Gaussian<'_> {
    fn evaluate(&mut self, at: &[f64], gradient: Option<&mut [f64]>) -> Option<f64> {
        let data = self.system.data;
        let columns = data.columns();
        let width = self.system.layout.width();
        let lambda = self.theta.factors(at);
        let log_determinant = self.system.factorise(&lambda)?;
        let solve = |product: &[f64]| {
            let mut scaled = vec![0.0; width];
            self.system.scaled_back(&lambda, product, &mut scaled);
            let mut solved = scaled.clone();
            self.system.factor.solve(&mut solved);
            (scaled, solved)
        };
        let solved: Vec<(Vec<f64>, Vec<f64>)> = self.products.iter().map(|product| solve(product)).collect();
        let (_, response) = solve(&self.response);
        let rows = data.rows as f64;
        let mut information = Matrix::zeros(columns);
        let mut right = vec![0.0; columns];
        let inner = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(left, right)| left * right).sum::<f64>();
        for row in 0..columns {
            for column in 0..columns {
                // The columns are orthonormal.
                let whole = if row == column { rows } else { 0.0 };
                information.set(row, column, whole - inner(&solved[row].0, &solved[column].1));
            }
            let whole: f64 = (0..data.cells()).map(|cell| data.total[cell] * data.fixed.cell(cell)[row]).sum();
            right[row] = whole - inner(&solved[row].0, &response);
        }
        information.symmetrise();
        let factor = information.cholesky()?;
        self.beta = factor.solve(&right);
        self.modes = response;
        for (beta, (_, solved)) in self.beta.iter().zip(&solved) {
            self.modes.iter_mut().zip(solved).for_each(|(mode, solved)| *mode -= beta * solved);
        }
        let mut b = vec![0.0; width];
        self.system.scaled(&lambda, &self.modes, &mut b);
        let mut residual = vec![0.0; data.cells()];
        self.system.spread_over(&b, &mut residual);
        let mut squares = data.within + self.modes.iter().map(|u| u * u).sum::<f64>();
        for (cell, residual) in residual.iter_mut().enumerate() {
            let fixed: f64 = data.fixed.cell(cell).iter().zip(&self.beta).map(|(x, beta)| x * beta).sum();
            let rest = data.total[cell] / data.weight[cell] - fixed - *residual;
            squares += data.weight[cell] * rest * rest;
            *residual = data.weight[cell] * rest;
        }
        self.squares = squares;
        self.information = information;
        let degrees = self.degrees();
        let mut value = log_determinant + degrees * (1.0 + (2.0 * std::f64::consts::PI * squares / degrees).ln());
        if self.restricted {
            value += factor.log_determinant();
            // Over the caller's columns.
            value += 2.0 * (0..columns).map(|column| data.fixed.from_caller.get(column, column).ln()).sum::<f64>();
        }
        let Some(gradient) = gradient else { return Some(value).filter(|value| value.is_finite()) };
        let slopes = self.system.invert(&lambda);
        let mut gathered = vec![0.0; width];
        self.system.collect(&residual, &mut gathered);
        let scale = -2.0 * degrees / squares;
        gathered.iter_mut().for_each(|value| *value *= scale);
        let mut restricted: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        if self.restricted {
            let inverse = factor.inverse();
            for column in 0..columns {
                self.system.scaled(&lambda, &solved[column].1, &mut b);
                let mut values = vec![0.0; data.cells()];
                self.system.spread_over(&b, &mut values);
                for (cell, value) in values.iter_mut().enumerate() {
                    *value = data.weight[cell] * (data.fixed.cell(cell)[column] - *value);
                }
                let mut left = vec![0.0; width];
                self.system.collect(&values, &mut left);
                let mut right = vec![0.0; width];
                for (other, (_, solved)) in solved.iter().enumerate() {
                    let weight = -2.0 * inverse.get(column, other);
                    right.iter_mut().zip(solved).for_each(|(right, solved)| *right += weight * solved);
                }
                restricted.push((left, right));
            }
        }
        let mut pairs: Vec<(&[f64], &[f64])> = vec![(&gathered, &self.modes)];
        pairs.extend(restricted.iter().map(|(left, right)| (left.as_slice(), right.as_slice())));
        self.system.by_theta(&self.theta, &pairs, &slopes, gradient);
        Some(value).filter(|value| value.is_finite() && gradient.iter().all(|slope| slope.is_finite()))
    }
}
