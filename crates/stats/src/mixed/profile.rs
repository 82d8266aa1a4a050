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
use crate::distribution::{chi_squared_upper, normal_quantile};
use crate::matrix::{Matrix, dot};

/// Steps to an end of an interval.
const MOST_STEPS: usize = 30;

/// Accuracy of an end, in signed roots of the likelihood ratio.
const CLOSE: f64 = 1e-5;

/// Accuracy of an end between two values, in the same roots, and the steps of its search.
const EXACT: f64 = 1e-7;
const MOST_HALVINGS: usize = 100;

/// Deviation, and guess of its variance, from which a search leaves the border.
pub(super) const AWAY: f64 = 0.1;

/// A -2 log L that is lower than the fit's by more than this is another minimum.
pub(super) const BETTER: f64 = 1e-5;

/// An end this many standard errors away is infinite.
const FARTHEST: f64 = 50.0;

/// An interval of a fixed effect or a standard deviation; an absent end is infinite, for the reason beside it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixedInterval {
    pub name: String,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub low_open: Option<OpenEnd>,
    pub high_open: Option<OpenEnd>,
}

/// Reason for an infinite end of a profile interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenEnd {
    /// The coefficient is separated: the likelihood rises towards this end.
    Separated,
    /// The likelihood stays near its maximum as far as the search went: the data hardly limit this side.
    Flat,
}

impl std::fmt::Display for OpenEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            OpenEnd::Separated => "separation, the likelihood rises towards it",
            OpenEnd::Flat => "the likelihood does not fall enough within reach of the search",
        })
    }
}

impl MixedInterval {
    /// The interval with these ends; absent ones are flat.
    pub(super) fn of(name: &str, low: Option<f64>, high: Option<f64>) -> Self {
        let open = |end: Option<f64>| end.is_none().then_some(OpenEnd::Flat);
        MixedInterval { name: name.to_owned(), low, high, low_open: open(low), high_open: open(high) }
    }
}

/// The criterion with one of the caller's coefficients held at a value, over theta and the other directions.
pub(super) struct Held<'c, C> {
    pub(super) inner: &'c mut C,
    /// The coefficient as a function of those of the orthonormal columns.
    pub(super) row: Vec<f64>,
    /// Orthonormal directions that leave it as it is.
    pub(super) others: Vec<Vec<f64>>,
    pub(super) value: f64,
    /// Slope of the criterion along the coefficient at the last evaluation.
    pub(super) slope: f64,
}

impl<'c, C: Mixed> Held<'c, C> {
    /// The criterion with the coefficient of a column held.
    pub(super) fn new(inner: &'c mut C, data: &MixedData, column: usize, value: f64) -> Self {
        let row: Vec<f64> = (0..data.columns()).map(|inner| data.fixed.to_caller.get(column, inner)).collect();
        let others = orthogonal_to(&row);
        Held { inner, row, others, value, slope: 0.0 }
    }

    /// The whole point: theta, then the coefficients of the orthonormal columns.
    pub(super) fn point(&self, at: &[f64]) -> Vec<f64> {
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

/// The profile interval of a fixed effect of a binomial model: values at which the best -2 log L, with the penalty of the fit's prior if it has
/// one, is at most a chi-squared quantile above the minimum.
pub fn profile_interval(
    data: &MixedData,
    fit: &MixedFit,
    name: &str,
    confidence: f64,
) -> Result<MixedInterval, MixedError> {
    let goal = goal(confidence)?;
    let layout = Layout::new(data)?;
    let [low, high] = match fit.method {
        Method::Quadrature => {
            Profile::new(&mut Quadrature::new(data, &layout, fit.points), data, fit, name)?.ends(goal)?
        }
        _ => Profile::new(&mut Laplace::new(data, &layout), data, fit, name)?.ends(goal)?,
    };
    Ok(MixedInterval::of(name, low, high))
}

/// The root of the likelihood ratio at the ends of an interval.
pub(super) fn goal(confidence: f64) -> Result<f64, MixedError> {
    if confidence > 0.0 && confidence < 1.0 {
        Ok(normal_quantile(0.5 + 0.5 * confidence))
    } else {
        Err(MixedError::Confidence { level: confidence })
    }
}

/// The p value of a fixed effect of a binomial model by the ratio of likelihoods, or of penalised ones: the best with the effect at 0 against
/// the best.
pub fn profile_p(data: &MixedData, fit: &MixedFit, name: &str) -> Result<f64, MixedError> {
    let layout = Layout::new(data)?;
    let ratio = match fit.method {
        Method::Quadrature => {
            Profile::new(&mut Quadrature::new(data, &layout, fit.points), data, fit, name)?.ratio_at(0.0)?
        }
        _ => Profile::new(&mut Laplace::new(data, &layout), data, fit, name)?.ratio_at(0.0)?,
    };
    Ok(chi_squared_upper(ratio, 1.0))
}

/// The profile of one coefficient: the best criterion for each of its values.
struct Profile<'c, C> {
    held: Held<'c, C>,
    /// Point where a search starts, its free directions, and a guess of the inverse Hessian there.
    start: Vec<f64>,
    free: Vec<bool>,
    inverse: Matrix,
    estimate: f64,
    error: f64,
    lowest: f64,
}

pub(super) fn missing(reason: &str) -> MixedError {
    MixedError::NotEstimated { reason: reason.to_owned() }
}

impl<'c, C: Mixed> Profile<'c, C> {
    fn new(criterion: &'c mut C, data: &MixedData, fit: &MixedFit, name: &str) -> Result<Self, MixedError> {
        if data.family != Family::Binomial {
            return Err(missing("profile intervals are for binomial models; Wald intervals are given"));
        }
        let index = fit.coefficients.iter().position(|one| one.name == name);
        let index = index.ok_or_else(|| MixedError::NoParameter {
            name: name.to_owned(),
            present: fit.coefficients.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
        })?;
        let coefficient = &fit.coefficients[index];
        let error = coefficient.standard_error_model.or(coefficient.standard_error);
        let (Some(estimate), Some(error), Some(lowest)) = (coefficient.estimate, error, fit.minus_two_log_likelihood)
        else {
            return Err(missing("there is no finite estimate for a profile interval"));
        };
        criterion.set_units(&fit.units);
        let theta = criterion.theta().clone();
        let count = theta.len();
        let held = Held::new(criterion, data, index, estimate);
        let others = &held.others;
        let beta = &fit.at[count..];
        let start: Vec<f64> = fit.at[..count].iter().copied().chain(others.iter().map(|one| dot(one, beta))).collect();
        // Standard errors are a good guess of the curvature.
        let mut inverse = Matrix::zeros(start.len());
        for index in 0..count {
            inverse.set(index, index, (0.5 * fit.joint[index][index]).max(1e-4));
        }
        for (offset, direction) in others.iter().enumerate() {
            // The caller's covariance along a direction of the orthonormal coefficients.
            let caller: Vec<f64> = data.fixed.from_caller.transpose().times(direction);
            let variance: f64 =
                fit.covariance.iter().zip(&caller).map(|(line, weight)| weight * dot(line, &caller)).sum();
            inverse.set(count + offset, count + offset, 0.5 * variance);
        }
        // Where the fit has no variation, the best for another value of the coefficient may have some.
        let free = vec![true; start.len()];
        for index in
            theta.on_border(&fit.at[..count]).iter().enumerate().filter_map(|(index, border)| border.then_some(index))
        {
            inverse.set(index, index, AWAY);
        }
        Ok(Profile { held, start, free, inverse, estimate, error, lowest })
    }

    /// The criterion's best with the coefficient at a value, over the minimum; a search from a point, which it moves to the best.
    fn ratio_from(&mut self, at: &mut Vec<f64>, value: f64) -> Result<f64, MixedError> {
        self.held.value = value;
        // The criterion is even in a deviation, so that a search that begins at 0 stays there.
        let theta = self.held.inner.theta();
        let small: Vec<usize> =
            (0..theta.len()).filter(|&index| theta.is_diagonal(index) && at[index].abs() < AWAY).collect();
        small.into_iter().for_each(|index| at[index] = AWAY);
        let found = minimise(&mut self.held, at, &self.free, &self.inverse);
        let found = found.ok_or_else(|| missing("the profile likelihood cannot be computed"))?;
        at.clone_from(&found.at);
        self.held.evaluate(at, None);
        if found.value < self.lowest - BETTER {
            return Err(MixedError::NotTheBest { by: self.lowest - found.value });
        }
        Ok((found.value - self.lowest).max(0.0))
    }

    fn ratio_at(&mut self, value: f64) -> Result<f64, MixedError> {
        let mut at = self.start.clone();
        // In steps of at most two standard errors, so that a search does not leave the valley.
        let steps = ((value - self.estimate).abs() / (2.0 * self.error)).ceil().clamp(1.0, FARTHEST) as usize;
        let mut ratio = 0.0;
        for step in 1..=steps {
            ratio = self.ratio_from(&mut at, self.estimate + (value - self.estimate) * step as f64 / steps as f64)?;
        }
        Ok(ratio)
    }

    /// Both ends of the interval where the root of the ratio is at a goal.
    fn ends(&mut self, goal: f64) -> Result<[Option<f64>; 2], MixedError> {
        let mut ends = [None, None];
        for (end, sign) in ends.iter_mut().zip([-1.0, 1.0]) {
            let mut at = self.start.clone();
            // Newton's method on the signed root of the likelihood ratio, which is nearly straight.
            let mut distance = goal * self.error;
            for _ in 0..MOST_STEPS {
                if distance > FARTHEST * self.error {
                    break;
                }
                let root = self.ratio_from(&mut at, self.estimate + sign * distance)?.sqrt();
                if (root - goal).abs() < CLOSE {
                    *end = Some(self.held.value);
                    break;
                }
                let slope = if root > 0.1 { sign * self.held.slope / (2.0 * root) } else { 1.0 / self.error };
                let step = (goal - root) / slope.max(0.05 / self.error);
                distance = (distance + step).max(0.1 * distance);
            }
        }
        Ok(ends)
    }
}

/// The value between two, with roots of different signs, at which the root is 0: regula falsi, and every fourth time the middle.
pub(super) fn between(
    root_at: &mut impl FnMut(f64) -> Result<f64, MixedError>,
    mut one: (f64, f64),
    mut other: (f64, f64),
) -> Result<f64, MixedError> {
    for step in 0..MOST_HALVINGS {
        let share = if step % 4 == 3 { 0.5 } else { one.1 / (one.1 - other.1) };
        let at = one.0 + share * (other.0 - one.0);
        let root = root_at(at)?;
        if root.abs() < EXACT || (other.0 - one.0).abs() < 1e-12 * (1.0 + at.abs()) {
            return Ok(at);
        }
        if (root < 0.0) == (one.1 < 0.0) { one = (at, root) } else { other = (at, root) }
    }
    Ok(0.5 * (one.0 + other.0))
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
