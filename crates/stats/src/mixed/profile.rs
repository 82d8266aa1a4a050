//! Profile-likelihood intervals of fixed effects.
use serde::Serialize;

use super::MixedError;
use super::data::{Family, MixedData};
use super::laplace::{Criterion, Laplace};
use super::layout::Layout;
use super::optimum::Mixed;
use super::quadrature::Quadrature;
use super::result::{Method, MixedFit};
use super::search::minimise;
use crate::distribution::normal_quantile;
use crate::matrix::{Matrix, dot};

/// Steps to an end of an interval.
const MOST_STEPS: usize = 30;

/// Accuracy of an end, in signed roots of the likelihood ratio.
const CLOSE: f64 = 1e-5;

/// An end this many standard errors away is infinite.
const FARTHEST: f64 = 50.0;

/// An interval of a fixed effect; an absent end is infinite.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixedInterval {
    pub name: String,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// The criterion with one of the caller's coefficients held at a value, over theta and the other directions.
struct Held<'c, C> {
    inner: &'c mut C,
    /// The coefficient as a function of those of the orthonormal columns.
    row: Vec<f64>,
    /// Orthonormal directions that leave it as it is.
    others: Vec<Vec<f64>>,
    value: f64,
    /// Slope of the criterion along the coefficient at the last evaluation.
    slope: f64,
}

impl<C: Mixed> Held<'_, C> {
    fn point(&self, at: &[f64]) -> Vec<f64> {
        let count = self.inner.theta().len();
        let scale = self.value / dot(&self.row, &self.row);
        let mut beta: Vec<f64> = self.row.iter().map(|part| scale * part).collect();
        for (weight, direction) in at[count..].iter().zip(&self.others) {
            beta.iter_mut().zip(direction).for_each(|(beta, part)| *beta += weight * part);
        }
        at[..count].iter().copied().chain(beta).collect()
    }
}

impl<C: Mixed> Criterion for Held<'_, C> {
    fn evaluate(&mut self, at: &[f64], gradient: Option<&mut [f64]>) -> Option<f64> {
        let count = self.inner.theta().len();
        let point = self.point(at);
        let mut whole = vec![0.0; point.len()];
        let value = self.inner.evaluate(&point, Some(&mut whole))?;
        self.slope = dot(&whole[count..], &self.row) / dot(&self.row, &self.row);
        if let Some(gradient) = gradient {
            gradient[..count].copy_from_slice(&whole[..count]);
            for (into, direction) in gradient[count..].iter_mut().zip(&self.others) {
                *into = dot(&whole[count..], direction);
            }
        }
        Some(value)
    }
}

/// The profile interval of a fixed effect of a binomial model: values at which the best -2 log L is at most a chi-squared
/// quantile above the minimum.
pub fn profile_interval(
    data: &MixedData,
    fit: &MixedFit,
    name: &str,
    confidence: f64,
) -> Result<MixedInterval, MixedError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(MixedError::Confidence { level: confidence });
    }
    let missing = |reason: &str| MixedError::NotEstimated { reason: reason.to_owned() };
    if data.family != Family::Binomial || fit.prior.is_some() {
        return Err(missing("profile intervals are for binomial models without a prior; Wald intervals are given"));
    }
    let index = fit.coefficients.iter().position(|one| one.name == name);
    let index = index.ok_or_else(|| MixedError::NoParameter {
        name: name.to_owned(),
        present: fit.coefficients.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
    })?;
    let layout = Layout::new(data)?;
    let ends = match fit.method {
        Method::Quadrature => ends(&mut Quadrature::new(data, &layout), data, fit, index, confidence),
        _ => ends(&mut Laplace::new(data, &layout), data, fit, index, confidence),
    };
    let [low, high] = ends.map_err(missing)?;
    Ok(MixedInterval { name: name.to_owned(), low, high })
}

/// Both ends of a coefficient's interval, or why there are none.
fn ends<C: Mixed>(
    criterion: &mut C,
    data: &MixedData,
    fit: &MixedFit,
    index: usize,
    confidence: f64,
) -> Result<[Option<f64>; 2], &'static str> {
    let coefficient = &fit.coefficients[index];
    let (Some(estimate), Some(error), Some(lowest)) =
        (coefficient.estimate, coefficient.standard_error, fit.minus_two_log_likelihood)
    else {
        return Err("there is no finite estimate to profile");
    };
    let theta = criterion.theta().clone();
    let count = theta.len();
    let columns = data.columns();
    let row: Vec<f64> = (0..columns).map(|column| data.fixed.to_caller.get(index, column)).collect();
    let others = orthogonal_to(&row);
    let beta = &fit.at[count..];
    let start: Vec<f64> = fit.at[..count].iter().copied().chain(others.iter().map(|one| dot(one, beta))).collect();
    // Standard errors are a good guess of the curvature.
    let mut inverse = Matrix::zeros(start.len());
    for index in 0..count {
        inverse.set(index, index, (0.5 * fit.joint[index][index]).max(1e-4));
    }
    for (place, direction) in others.iter().enumerate() {
        // The caller's covariance along a direction of the orthonormal coefficients.
        let caller: Vec<f64> = data.fixed.from_caller.transpose().times(direction);
        let variance: f64 = fit.covariance.iter().zip(&caller).map(|(line, weight)| weight * dot(line, &caller)).sum();
        inverse.set(count + place, count + place, 0.5 * variance);
    }
    let goal = normal_quantile(0.5 + 0.5 * confidence);
    let mut free: Vec<bool> = theta.on_border(&fit.at[..count]).iter().map(|border| !border).collect();
    free.resize(start.len(), true);
    let mut ends = [None, None];
    for (end, sign) in ends.iter_mut().zip([-1.0, 1.0]) {
        let mut at = start.clone();
        let mut held =
            Held { inner: &mut *criterion, row: row.clone(), others: others.clone(), value: estimate, slope: 0.0 };
        // Newton's method on the signed root of the likelihood ratio, which is nearly straight.
        let mut distance = goal * error;
        for _ in 0..MOST_STEPS {
            if distance > FARTHEST * error {
                break;
            }
            held.value = estimate + sign * distance;
            let found = minimise(&mut held, &at, &free, &inverse);
            let found = found.ok_or("the profile cannot be computed")?;
            at.clone_from(&found.at);
            held.evaluate(&at, None);
            let root = (found.value - lowest).max(0.0).sqrt();
            if (root - goal).abs() < CLOSE {
                *end = Some(held.value);
                break;
            }
            let slope = if root > 0.1 { sign * held.slope / (2.0 * root) } else { 1.0 / error };
            let step = (goal - root) / slope.max(0.05 / error);
            distance = (distance + step).max(0.1 * distance);
        }
    }
    Ok(ends)
}

/// Orthonormal vectors orthogonal to one, by a Householder reflection.
fn orthogonal_to(vector: &[f64]) -> Vec<Vec<f64>> {
    let length = dot(vector, vector).sqrt();
    let mut mirror: Vec<f64> = vector.iter().map(|part| part / length).collect();
    mirror[0] += mirror[0].signum();
    let norm = dot(&mirror, &mirror);
    let reflected = |column: usize| {
        let unit = |row: usize| f64::from(u8::from(row == column));
        (0..vector.len()).map(|row| unit(row) - 2.0 * mirror[row] * mirror[column] / norm).collect()
    };
    (1..vector.len()).map(reflected).collect()
}
