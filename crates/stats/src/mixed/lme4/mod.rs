//! The estimates of lme4 1.1 under its default settings, kept to show what it does (specification, section 6.1).
//!
//! Its objective at (random SD, coefficients): start from the linear predictor frozen at the end of a first stage;
//! repeat {weights at the current means; a penalised least-squares step for the random effects} until the penalised
//! deviance changes by less than a relative tolerance; add the log-determinant that belongs to the weights *before* the
//! last step. Neighbouring parameters may take two or three passes, and the log-determinant then jumps by about 0.1: a
//! simplex search ends on the edge of such a jump, and finite differences with a step of 1e-4 turn it into standard
//! errors near `1e-4 sqrt(2 / jump)`, the same for every coefficient.
//!
//! The first stage also moves the coefficients in the least-squares steps and minimises over the random SD alone (see
//! [`Lme4Objective::new`]). Both searches are lme4's, so they end where it ends, unless rounding decides: the first stage's
//! function is flat to rounding within about 2e-6 of its minimum, and on which side of a jump the second stage ends can depend
//! on that (of 46 recorded fits with estimates 44 agree: set 31 without gamma is on the other side, and set 13's standard error 2 % off).
mod bobyqa;
mod nelder_mead;
mod optimisers;

use super::MixedError;
use super::cells::Cells;
use super::data::{Family, MixedData};
use super::diagnosis::MixedDiagnosis;
use super::laplace::logistic;
use super::result::{Method, MixedCoefficient, MixedFit, RandomEffect};
use super::summary::{self, SINGULAR};
use crate::distribution::normal_two_sided;
use crate::matrix::{Matrix, dot};

pub use optimisers::{OptimiserEnd, across_optimisers};

/// lme4's default `tolPwrss`.
pub const DEFAULT_TOLERANCE: f64 = 1e-7;

/// Step of lme4's finite differences.
const DIFFERENCE: f64 = 1e-4;
/// Start of the first stage's search of the random SD, its first step and its last: lme4's defaults.
const FIRST_SD: f64 = 1.0;
const FIRST_STEP: f64 = 0.2;
const LAST_STEP: f64 = 2e-7;
/// Passes of the inner loop after which lme4 gives up.
const LARGEST_PASSES: usize = 100;
/// Predictors at which lme4's logit link saturates, so that weights never vanish: `1 / machine epsilon` odds.
const SATURATION: f64 = 36.04365338911715;

/// lme4's objective on one data set, with its frozen starting predictor. Rows count as single trials.
pub struct Lme4Objective {
    cells: Cells,
    /// Standard deviations of the columns, which are the units of their cells.
    units: Vec<f64>,
    tolerance: f64,
    /// Linear predictor from which every evaluation starts, by cell; before the first one there is none.
    start: Option<Vec<f64>>,
    group_of: Vec<usize>,
    /// Coefficients and their standard errors at the end of the first stage, and its random SD.
    first_stage: Vec<f64>,
    first_stage_errors: Vec<f64>,
}

/// State after one run of the inner loop.
struct Inner {
    value: f64,
    passes: usize,
    eta: Vec<f64>,
    beta: Vec<f64>,
    /// Information of the coefficients given the weights before the last step (lme4's `RX`).
    information: Matrix,
}

impl Lme4Objective {
    /// Runs the first stage: over the random SD alone, the coefficients moving with the random effects in every
    /// least-squares step (`nAGQ = 0`; Bates et al. 2015, section 5, with lme4's default optimiser and its settings).
    /// `first_stage` gives the random SD at which it ends, where that is known.
    ///
    /// # Errors
    /// If the model is not binomial with one random intercept.
    pub fn new(data: &MixedData, tolerance: f64, first_stage: Option<f64>) -> Result<Self, MixedError> {
        if data.family != Family::Binomial || !data.has_one_intercept() {
            return Err(MixedError::NotEstimated {
                reason: "lme4's objective is for binomial models with one random intercept, like (1|group)".into(),
            });
        }
        let (cells, units) = Cells::by_group(data)?;
        let group_of = (0..cells.groups()).flat_map(|group| cells.of_group(group).map(move |_| group)).collect();
        let mut objective = Lme4Objective {
            cells,
            units,
            tolerance,
            start: None,
            group_of,
            first_stage: Vec::new(),
            first_stage_errors: Vec::new(),
        };
        let initial = objective.inner(FIRST_SD, None);
        objective.start = Some(initial.eta);
        let value = |sd: f64| objective.inner(sd, None).value;
        let sd = first_stage.unwrap_or_else(|| bobyqa::minimise(value, FIRST_SD, 0.0, FIRST_STEP, LAST_STEP));
        let last = objective.inner(sd, None);
        objective.first_stage =
            std::iter::once(sd).chain(last.beta.iter().zip(&objective.units).map(|(beta, unit)| beta / unit)).collect();
        objective.first_stage_errors = match last.information.cholesky() {
            Some(factor) => {
                let covariance = factor.inverse();
                let units = objective.units.iter().enumerate();
                units.map(|(column, unit)| covariance.get(column, column).sqrt() / unit).collect()
            }
            None => vec![1.0; objective.units.len()],
        };
        objective.start = Some(last.eta);
        Ok(objective)
    }

    /// The random SD, then the coefficients, at the end of the first stage (`nAGQ = 0`).
    pub fn first_stage(&self) -> &[f64] {
        &self.first_stage
    }

    /// First steps of the second search: 0.02 for the random SD, a fifth of the first stage's standard errors.
    pub(super) fn search_steps(&self) -> Vec<f64> {
        let errors = self.first_stage_errors.iter().map(|error| 0.2 * error.min(10.0));
        std::iter::once(0.02).chain(errors).collect()
    }

    /// Replaces the frozen predictor, by a function of (group in order of appearance, caller's fixed effects without the
    /// intercept).
    pub fn freeze(&mut self, predictor: impl Fn(usize, &[f64]) -> f64) {
        let frozen = (0..self.cells.len()).map(|cell| {
            let x: Vec<f64> =
                self.cells.cell(cell)[1..].iter().zip(&self.units[1..]).map(|(x, unit)| x * unit).collect();
            predictor(self.group_of[cell], &x)
        });
        self.start = Some(frozen.collect());
    }

    /// The objective at (random SD, coefficients), in the caller's units.
    pub fn value(&self, parameters: &[f64]) -> f64 {
        self.value_and_passes(parameters).0
    }

    /// The objective, and the number of passes of the inner loop.
    pub fn value_and_passes(&self, parameters: &[f64]) -> (f64, usize) {
        let beta: Vec<f64> = parameters[1..].iter().zip(&self.units).map(|(beta, unit)| beta * unit).collect();
        let found = self.inner(parameters[0], Some(&beta));
        (found.value, found.passes)
    }

    /// The inner loop; with coefficients given it moves the random effects only.
    fn inner(&self, theta: f64, fixed: Option<&[f64]>) -> Inner {
        let data = &self.cells;
        let columns = data.columns;
        let mut eta = self.start.clone().unwrap_or_else(|| vec![0.0; data.len()]);
        let mut effects = vec![0.0; data.groups()];
        let mut beta = fixed.map_or_else(|| vec![0.0; columns], <[f64]>::to_vec);
        let mut previous = f64::INFINITY;
        let mut penalised = f64::INFINITY;
        let mut log_determinant = 0.0;
        let mut information = Matrix::zeros(columns);
        let mut passes = 0;
        while passes < LARGEST_PASSES {
            passes += 1;
            let (old_effects, old_beta) = (effects.clone(), beta.clone());
            information = Matrix::zeros(columns);
            let mut score = vec![0.0; columns];
            log_determinant = 0.0;
            // Per group: curvature, right-hand side, cross products with the coefficients.
            let mut systems = Vec::with_capacity(data.groups());
            for group in 0..data.groups() {
                let (mut curvature, mut right, mut cross) = (1.0, 0.0, vec![0.0; columns]);
                for cell in data.of_group(group) {
                    let x = data.cell(cell);
                    // Weight, and working response times weight; the offset is the fixed part when that is given.
                    let (weight, mut working) = if self.start.is_none() && passes == 1 {
                        self.first_weights(cell)
                    } else {
                        self.weights(cell, eta[cell])
                    };
                    if let Some(fixed) = fixed {
                        working -= weight * dot(x, fixed);
                    } else {
                        for column in 0..columns {
                            cross[column] += theta * weight * x[column];
                            score[column] += working * x[column];
                        }
                        information.add_outer(weight, x);
                    }
                    curvature += theta * theta * weight;
                    right += theta * working;
                }
                log_determinant += curvature.ln();
                systems.push((curvature, right, cross));
            }
            if fixed.is_none() {
                for (curvature, right, cross) in &systems {
                    information.add_outer(-1.0 / curvature, cross);
                    for (score, cross) in score.iter_mut().zip(cross) {
                        *score -= cross * right / curvature;
                    }
                }
                if let Some(factor) = information.cholesky() {
                    beta = factor.solve(&score);
                }
            }
            for (effect, (curvature, right, cross)) in effects.iter_mut().zip(&systems) {
                let moved = if fixed.is_none() { dot(cross, &beta) } else { 0.0 };
                *effect = (right - moved) / curvature;
            }
            penalised = self.predict(theta, &beta, &effects, &mut eta);
            if ((previous - penalised) / penalised).abs() < self.tolerance {
                break;
            }
            for _ in 0..20 {
                if penalised <= previous {
                    break;
                }
                effects.iter_mut().zip(&old_effects).for_each(|(new, old)| *new = 0.5 * (*new + old));
                beta.iter_mut().zip(&old_beta).for_each(|(new, old)| *new = 0.5 * (*new + old));
                penalised = self.predict(theta, &beta, &effects, &mut eta);
            }
            previous = penalised;
        }
        Inner { value: penalised + log_determinant, passes, eta, beta, information }
    }

    /// Weight of a cell at a predictor, and the weight times the working response.
    fn weights(&self, cell: usize, eta: f64) -> (f64, f64) {
        let saturated = eta.clamp(-SATURATION, SATURATION);
        let mean = logistic(saturated).1;
        let variance = (mean * logistic(-saturated).1).max(f64::EPSILON);
        let trials = self.cells.trials[cell];
        (trials * variance, trials * variance * eta + (self.cells.successes[cell] - trials * mean))
    }

    /// The same before anything is known: lme4 begins at means of (y + 1/2) / 2, i.e. 3/4 for a success and 1/4 for a
    /// failure, which differ within a cell of equal rows.
    fn first_weights(&self, cell: usize) -> (f64, f64) {
        let (successes, trials) = (self.cells.successes[cell], self.cells.trials[cell]);
        let variance = 0.75 * 0.25;
        let eta = 3.0_f64.ln();
        (trials * variance, (2.0 * successes - trials) * (variance * eta + 0.25))
    }

    /// Updates the predictor; returns the penalised deviance.
    fn predict(&self, theta: f64, beta: &[f64], effects: &[f64], eta: &mut [f64]) -> f64 {
        let mut deviance = dot(effects, effects);
        for (cell, eta) in eta.iter_mut().enumerate() {
            *eta = dot(self.cells.cell(cell), beta) + theta * effects[self.group_of[cell]];
            let saturated = eta.clamp(-SATURATION, SATURATION);
            let (successes, trials) = (self.cells.successes[cell], self.cells.trials[cell]);
            deviance += 2.0 * (successes * logistic(-saturated).0 + (trials - successes) * logistic(saturated).0);
        }
        deviance
    }
}

/// Central differences as lme4 takes them: gradient and Hessian with a step of 1e-4 in every parameter.
pub fn finite_differences(function: &mut dyn FnMut(&[f64]) -> f64, at: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let size = at.len();
    let centre = function(at);
    let mut shifted = |moves: &[(usize, f64)]| {
        let mut point = at.to_vec();
        for (index, step) in moves {
            point[*index] += step;
        }
        function(&point)
    };
    let mut gradient = vec![0.0; size];
    let mut hessian = Matrix::zeros(size);
    for (row, slope) in gradient.iter_mut().enumerate() {
        let (above, below) = (shifted(&[(row, DIFFERENCE)]), shifted(&[(row, -DIFFERENCE)]));
        *slope = (above - below) / (2.0 * DIFFERENCE);
        let bend = (above - 2.0 * centre + below) / (DIFFERENCE * DIFFERENCE);
        hessian.set(row, row, bend);
        for column in 0..row {
            let mut corner = |one: f64, other: f64| shifted(&[(row, one * DIFFERENCE), (column, other * DIFFERENCE)]);
            let twist = corner(1.0, 1.0) - corner(1.0, -1.0) - corner(-1.0, 1.0) + corner(-1.0, -1.0);
            hessian.set(row, column, twist / (4.0 * DIFFERENCE * DIFFERENCE));
            hessian.set(column, row, twist / (4.0 * DIFFERENCE * DIFFERENCE));
        }
    }
    (gradient, hessian.to_rows())
}

/// Options of lme4's search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lme4Options {
    /// Relative change at which the inner loop stops.
    pub tolerance: f64,
    /// The random SD at which the first stage ended, where that is known; else it is searched for as lme4 does. Within about 2e-6 of its end
    /// rounding decides, and where the second stage ends on a jumping function can depend on that.
    pub first_stage: Option<f64>,
}

impl Default for Lme4Options {
    fn default() -> Self {
        Lme4Options { tolerance: DEFAULT_TOLERANCE, first_stage: None }
    }
}

/// Fits as lme4's `glmer` does by default: first stage, then a simplex search over all parameters, then standard errors
/// from finite differences. Nothing is refused: the point is to do what lme4 does, on whatever data.
///
/// # Errors
/// If the model is not binomial with one random intercept.
pub fn fit(data: &MixedData, options: Lme4Options) -> Result<MixedFit, MixedError> {
    let objective = Lme4Objective::new(data, options.tolerance, options.first_stage)?;
    if let Some(constant) = super::fit::constant_response(data) {
        return Ok(summary::without_estimates(data, Method::Lme4, constant));
    }
    let size = data.columns() + 1;
    let steps = objective.search_steps();
    let limits: Vec<f64> = steps.iter().map(|step| 5e-4 * step).collect();
    let mut lower = vec![f64::NEG_INFINITY; size];
    lower[0] = 0.0;
    let mut function = |at: &[f64]| objective.value(at);
    let best = nelder_mead::minimise(&mut function, objective.first_stage(), &lower, &steps, &limits);
    let (gradient, hessian) = finite_differences(&mut function, &best.at);
    let mut matrix = Matrix::zeros(size);
    for (row, values) in hessian.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            matrix.set(row, column, *value);
        }
    }
    let factor = matrix.cholesky();
    let double = |row: Vec<f64>| row.into_iter().map(|value| 2.0 * value).collect();
    let joint: Option<Vec<Vec<f64>>> =
        factor.as_ref().map(|factor| factor.inverse().to_rows().into_iter().map(double).collect());
    let error = |index: usize| joint.as_ref().map(|joint| joint[index][index].sqrt());
    let mut diagnoses = Vec::new();
    let group = &data.groupings[0];
    if best.at[0] < SINGULAR {
        let term = group.blocks[0].columns[0].name.clone();
        diagnoses.push(MixedDiagnosis::ZeroVariance { group: group.name.clone(), term });
    }
    if joint.is_none() {
        diagnoses.push(MixedDiagnosis::NotIdentified);
    }
    // lme4's own test of convergence: the gradient scaled by the Hessian.
    let scaled = match &factor {
        Some(factor) => {
            let steps = factor.solve(&gradient);
            steps.iter().zip(&gradient).map(|(step, slope)| step.abs().min(slope.abs())).fold(0.0, f64::max)
        }
        None => 0.0,
    };
    if !best.converged || scaled > 2e-3 {
        diagnoses.push(MixedDiagnosis::Lme4NotConverged { scaled_gradient: scaled });
    }
    let errors: Vec<Option<f64>> = (1..size).map(error).collect();
    diagnoses.extend(degenerate(&errors, &hessian));
    let coefficient = |(index, column): (usize, &super::design::DesignColumn)| {
        let z = errors[index].map(|error| best.at[index + 1] / error);
        MixedCoefficient {
            name: column.name.clone(),
            estimate: Some(best.at[index + 1]),
            standard_error: errors[index],
            standard_error_model: None,
            standard_error_fixed_theta: None,
            z,
            p: z.map(normal_two_sided),
        }
    };
    let sd = best.at[0];
    let empty = summary::without_estimates(data, Method::Lme4, MixedDiagnosis::NotIdentified);
    diagnoses.extend(empty.diagnoses.iter().skip(1).cloned());
    let covariance = joint.iter().flatten().skip(1).map(|row| row[1..].to_vec()).collect();
    Ok(MixedFit {
        coefficients: data.columns.iter().enumerate().map(coefficient).collect(),
        covariance,
        random: vec![RandomEffect {
            group: group.name.clone(),
            groups: group.levels.len(),
            terms: vec![group.blocks[0].columns[0].name.clone()],
            sd: vec![sd],
            correlation: None,
            covariance: vec![vec![sd * sd]],
        }],
        minus_two_log_likelihood: Some(best.value),
        aic: Some(best.value + 2.0 * size as f64),
        bic: Some(best.value + size as f64 * (data.rows as f64).ln()),
        singular: sd < SINGULAR,
        converged: best.converged,
        gradient: Some(gradient.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()))),
        evaluations: best.evaluations,
        at: std::iter::once(sd).chain(data.fixed.from_caller.times(&best.at[1..])).collect(),
        joint: joint.unwrap_or_default(),
        diagnoses,
        ..empty
    })
}

/// The study's rule for an artefact (specification, section 6.3): a standard error below 0.01, or all equal.
fn degenerate(errors: &[Option<f64>], hessian: &[Vec<f64>]) -> Option<MixedDiagnosis> {
    let known: Vec<f64> = errors.iter().flatten().copied().collect();
    let smallest = known.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = known.iter().copied().fold(0.0, f64::max);
    let equal = known.len() > 1 && largest - smallest < 1e-3 * largest;
    (smallest < 0.01 || equal).then(|| MixedDiagnosis::DegenerateErrors {
        standard_error: smallest,
        jump: hessian[0][0].abs() * DIFFERENCE * DIFFERENCE,
    })
}
