//! Fitting: what can be estimated, the optimum, its standard errors, what to know about them.
use serde::Serialize;

use super::data::{GlmmData, GlmmError};
use super::diagnosis::{Diagnosis, SeparationKind, Unbounded};
use super::likelihood::Likelihood;
use super::logistic::{self, Logistic};
use super::optimiser::{self, Minimum};
use super::quadrature::LARGEST_POINTS;
use super::{lme4, separation};
use crate::stats::distribution::normal_two_sided;
use crate::stats::matrix::{Matrix, dot};

/// Random SDs below this count as zero, as in lme4's `isSingular`.
pub const SINGULAR: f64 = 1e-4;

/// Points of the quadrature that judges between minima of the Laplace approximation.
const JUDGE_POINTS: usize = 25;

/// Random intercepts with fewer groups are fitted, with [`Diagnosis::FewGroups`].
pub const FEW_GROUPS: usize = 6;

/// Which function is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Fully converged: Laplace with one point, adaptive Gauss-Hermite quadrature with more.
    Converged { points: usize },
    /// What lme4 1.1 minimises: an inner loop that stops at a relative change of `tolerance` (its default is 1e-7) and a
    /// log-determinant that lags one step. Only to show the artefact of the study's section 6.1.
    Lme4 {
        tolerance: f64,
        /// The random SD at which the first stage ended, where that is known; else it is minimised here. lme4's own first
        /// search stops within about 2e-6, and where the second ends on a jumping function can depend on that.
        first_stage: Option<f64>,
    },
}

/// How to fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GlmmOptions {
    /// The function to minimise.
    pub objective: Objective,
    /// Further starts after the first, from other random SDs; the best end wins. More follow by themselves when a start
    /// does not converge.
    pub restarts: usize,
}

impl Default for GlmmOptions {
    /// Laplace, one restart.
    fn default() -> Self {
        GlmmOptions { objective: Objective::Converged { points: 1 }, restarts: 1 }
    }
}

impl GlmmOptions {
    /// Adaptive quadrature with an odd number of points; 1 is Laplace.
    pub fn quadrature(points: usize) -> Self {
        GlmmOptions { objective: Objective::Converged { points }, ..GlmmOptions::default() }
    }

    /// lme4's default objective and optimiser.
    pub fn lme4() -> Self {
        GlmmOptions { objective: Objective::Lme4 { tolerance: lme4::DEFAULT_TOLERANCE, first_stage: None }, restarts: 0 }
    }
}

/// An estimated coefficient. Numbers are absent where there are none, for the reason that a diagnosis names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coefficient {
    /// The column's name.
    pub name: String,
    /// Change of the log odds per unit of the column.
    pub estimate: Option<f64>,
    /// Wald standard error, from the Hessian over all parameters.
    pub standard_error: Option<f64>,
    /// `estimate / standard_error`
    pub z: Option<f64>,
    /// Two-sided normal p value.
    pub p: Option<f64>,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GlmmFit {
    /// What was minimised.
    pub objective: Objective,
    /// The intercept first.
    pub coefficients: Vec<Coefficient>,
    /// Standard deviation of the random intercepts.
    pub random_sd: Option<f64>,
    /// Its Wald standard error; absent at the boundary.
    pub random_sd_error: Option<f64>,
    /// Minus twice the maximised log-likelihood (its supremum under separation).
    pub minus_two_log_likelihood: Option<f64>,
    /// Covariance of (random SD, coefficients with an estimate); absent without a positive definite Hessian.
    pub covariance: Option<Vec<Vec<f64>>>,
    /// Rows used.
    pub rows: usize,
    /// Groups.
    pub groups: usize,
    /// Evaluations of the objective with its gradient.
    pub evaluations: usize,
    /// Largest gradient component at the end, in standardised columns.
    pub gradient: Option<f64>,
    /// What to know.
    pub diagnoses: Vec<Diagnosis>,
}

impl GlmmFit {
    /// A coefficient by name.
    pub fn coefficient(&self, name: &str) -> Option<&Coefficient> {
        self.coefficients.iter().find(|coefficient| coefficient.name == name)
    }

    /// Variance of the random intercepts.
    pub fn random_variance(&self) -> Option<f64> {
        self.random_sd.map(|sd| sd * sd)
    }

    /// Number of estimated parameters, the random SD included.
    pub fn parameters(&self) -> usize {
        self.coefficients.len() + 1
    }

    /// Akaike's criterion.
    pub fn aic(&self) -> Option<f64> {
        self.minus_two_log_likelihood.map(|deviance| deviance + 2.0 * self.parameters() as f64)
    }

    /// Schwarz's criterion, with the number of rows as lme4 counts it.
    pub fn bic(&self) -> Option<f64> {
        self.minus_two_log_likelihood.map(|deviance| deviance + self.parameters() as f64 * (self.rows as f64).ln())
    }

    /// True if a diagnosis of this word ([`Diagnosis::word`]) was made.
    pub fn is(&self, word: &str) -> bool {
        self.diagnoses.iter().any(|diagnosis| diagnosis.word() == word)
    }

    pub(super) fn without_numbers(data: &GlmmData, objective: Objective, diagnoses: Vec<Diagnosis>) -> Self {
        GlmmFit {
            objective,
            coefficients: data.names().iter().map(|name| coefficient(name, None, None)).collect(),
            random_sd: None,
            random_sd_error: None,
            minus_two_log_likelihood: None,
            covariance: None,
            rows: data.rows(),
            groups: data.groups(),
            evaluations: 0,
            gradient: None,
            diagnoses,
        }
    }
}

pub(super) fn coefficient(name: &str, estimate: Option<f64>, standard_error: Option<f64>) -> Coefficient {
    let z = estimate.zip(standard_error).map(|(estimate, error)| estimate / error);
    Coefficient { name: name.to_owned(), estimate, standard_error, z, p: z.map(normal_two_sided) }
}

/// Fits `logit P = x beta + u_group`, `u ~ N(0, sd^2)`.
///
/// Errors are about the options only; what the data do to a model is in [`GlmmFit::diagnoses`], and numbers that would
/// mislead are absent.
pub fn fit(data: &GlmmData, options: &GlmmOptions) -> Result<GlmmFit, GlmmError> {
    if let Objective::Converged { points } = options.objective
        && (points == 0 || points > LARGEST_POINTS || points % 2 == 0)
    {
        return Err(GlmmError::Points { points, largest: LARGEST_POINTS });
    }
    if let Some(fatal) = precondition(data) {
        return Ok(GlmmFit::without_numbers(data, options.objective, vec![fatal]));
    }
    let points = match options.objective {
        Objective::Converged { points } => points,
        // The point of this option is to do what lme4 does, on whatever data.
        Objective::Lme4 { tolerance, first_stage } => return Ok(lme4::fit(data, tolerance, first_stage)),
    };
    let mut fit = match separation::by_fixed_effects(data) {
        Some(separation) => fit_separated(data, points, options, &separation),
        None => fit_overlapping(data, points, options),
    };
    if data.groups() < FEW_GROUPS {
        fit.diagnoses.push(Diagnosis::FewGroups { groups: data.groups() });
    }
    Ok(fit)
}

/// What makes any fit pointless.
pub(super) fn precondition(data: &GlmmData) -> Option<Diagnosis> {
    if data.groups() < 2 {
        return Some(Diagnosis::SingleGroup);
    }
    let (successes, trials) = data.totals();
    if successes == 0.0 || successes == trials {
        return Some(Diagnosis::ConstantResponse { value: u8::from(successes > 0.0) });
    }
    None
}

/// Separated rows have likelihood one in the limit, so the limit is the fit of the others; coefficients that no
/// separating direction moves keep their estimates.
fn fit_separated(
    data: &GlmmData,
    points: usize,
    options: &GlmmOptions,
    separation: &separation::Separation,
) -> GlmmFit {
    let objective = Objective::Converged { points };
    let map = data.to_caller();
    let mut drift = vec![0.0; data.columns()];
    for direction in &separation.directions {
        let mut inner = vec![0.0];
        inner.extend(direction);
        let scale = dot(direction, direction).sqrt();
        for (sum, value) in drift.iter_mut().zip(map.times(&inner).iter().skip(1)) {
            *sum += value / scale;
        }
    }
    let (rest, independent) = data.restricted(&separation.overlapping);
    let complete = rest.cells() == 0;
    let largest = drift.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    // Dropped columns are not determined by the remaining rows either, whatever the direction found.
    let moves: Vec<bool> = drift
        .iter()
        .zip(&independent)
        .map(|(value, independent)| complete || !independent || value.abs() > 1e-6 * largest)
        .collect();
    let unbounded = drift
        .iter()
        .zip(data.names())
        .filter(|(value, _)| value.abs() > 1e-6 * largest)
        .map(|(value, name)| Unbounded { name: name.clone(), increasing: *value > 0.0 })
        .collect();
    let kind = if complete { SeparationKind::Complete } else { SeparationKind::Quasi };
    let rows = data.rows() - rest.rows();
    let diagnosis = Diagnosis::Separation { kind, unbounded, rows };
    let mut fit = GlmmFit::without_numbers(data, objective, vec![diagnosis]);
    if complete {
        fit.minus_two_log_likelihood = None;
        return fit;
    }
    if let Some(fatal) = precondition(&rest) {
        fit.diagnoses.push(fatal);
        return fit;
    }
    let limit = fit_overlapping(&rest, points, options);
    for (coefficient, moves) in fit.coefficients.iter_mut().zip(&moves) {
        if let (false, Some(found)) = (moves, limit.coefficient(&coefficient.name)) {
            *coefficient = found.clone();
        }
    }
    fit.random_sd = limit.random_sd;
    fit.random_sd_error = limit.random_sd_error;
    fit.minus_two_log_likelihood = limit.minus_two_log_likelihood;
    fit.evaluations = limit.evaluations;
    fit.gradient = limit.gradient;
    fit.diagnoses.extend(limit.diagnoses);
    fit
}

fn fit_overlapping(data: &GlmmData, points: usize, options: &GlmmOptions) -> GlmmFit {
    let objective = Objective::Converged { points };
    let (all_wrong, all_right) = data.constant_groups();
    let constant_groups = all_wrong + all_right;
    // Constant groups of both kinds push the variance up without end; what holds it back are mixed groups, and fewer of
    // them than parameters cannot determine these.
    let too_few_mixed =
        all_wrong > 0 && all_right > 0 && data.groups() - constant_groups < data.columns() + 1;
    if too_few_mixed || separation::by_groups(data) {
        let diagnosis = Diagnosis::GroupSeparation { constant_groups, groups: data.groups() };
        return GlmmFit::without_numbers(data, objective, vec![diagnosis]);
    }
    let boundary = logistic::fit(data);
    let mut evaluations = 0;
    let mut laplace = minima(data, 1, options.restarts, &starts(&boundary), &mut evaluations);
    laplace.extend(boundary_minimum(data, &boundary, &mut evaluations));
    let mut best = supported_by_quadrature(data, laplace, &mut evaluations);
    if points > 1 {
        // The Laplace optimum is a good start, and zero is no start: the function is flat there by symmetry.
        let mut start = best.at.clone();
        start[0] = start[0].abs().max(0.1);
        let mut list = vec![start];
        list.extend(starts(&boundary));
        let found = minima(data, points, 0, &list, &mut evaluations);
        best = found.into_iter().reduce(better).unwrap_or(best);
    }
    best.at[0] = best.at[0].abs();
    let singular =
        boundary.converged && (best.at[0] < SINGULAR || boundary.minus_two_log_likelihood <= best.value + 1e-9)
            && (points > 1 || best.at[0] < SINGULAR);
    let mut likelihood = Likelihood::new(data, points);
    let size = data.columns() + 1;
    if singular {
        best.at[0] = 0.0;
        best.at[1..].copy_from_slice(&boundary.beta);
        best.converged = true;
    }
    let mut gradient = vec![0.0; size];
    best.value = likelihood.evaluate(&best.at, &mut gradient);
    best.gradient = gradient;
    let scale = vec![1.0; size];
    let mut hessian = optimiser::hessian(&mut |at, gradient| likelihood.evaluate(at, gradient), &best.at, &scale);
    if !singular && polish(&mut likelihood, &mut best, &hessian) {
        hessian = optimiser::hessian(&mut |at, gradient| likelihood.evaluate(at, gradient), &best.at, &scale);
    }
    let mut unused = vec![0.0; size];
    likelihood.evaluate(&best.at, &mut unused);

    let mut diagnoses = Vec::new();
    if singular {
        diagnoses.push(Diagnosis::Singular);
    }
    if !best.converged || best.gradient_norm() > 1e-4 || likelihood.unconverged_modes() > 0 {
        diagnoses.push(Diagnosis::NotConverged {
            gradient: best.gradient_norm(),
            modes: likelihood.unconverged_modes(),
        });
    }
    // -2 log L has twice the Hessian of -log L. At the boundary the random SD is fixed; by symmetry its cross
    // derivatives vanish there, so the coefficients' block stands alone.
    let covariance = if singular {
        hessian.without(0).cholesky().map(|factor| {
            let block = factor.inverse();
            let mut full = Matrix::zeros(size);
            for row in 0..size - 1 {
                for column in 0..size - 1 {
                    full.set(row + 1, column + 1, 2.0 * block.get(row, column));
                }
            }
            full
        })
    } else {
        hessian.cholesky().map(|factor| {
            let mut inverse = factor.inverse();
            for row in 0..size {
                for column in 0..size {
                    inverse.set(row, column, 2.0 * inverse.get(row, column));
                }
            }
            inverse
        })
    };
    if covariance.is_none() {
        diagnoses.push(Diagnosis::IndefiniteHessian);
    }
    let map = data.to_caller();
    let covariance = covariance.map(|inner| map.product(&inner).product(&map.transpose()));
    let parameters = map.times(&best.at);
    let error = |index: usize| covariance.as_ref().map(|covariance| covariance.get(index, index).sqrt());
    GlmmFit {
        objective,
        coefficients: data
            .names()
            .iter()
            .enumerate()
            .map(|(index, name)| coefficient(name, Some(parameters[index + 1]), error(index + 1)))
            .collect(),
        random_sd: Some(parameters[0]),
        random_sd_error: if singular { None } else { error(0) },
        minus_two_log_likelihood: Some(best.value - data.twice_log_constant()),
        covariance: covariance.as_ref().map(Matrix::to_rows),
        rows: data.rows(),
        groups: data.groups(),
        evaluations: evaluations + likelihood.evaluations(),
        gradient: Some(best.gradient_norm()),
        diagnoses,
    }
}

/// Starting points: the logistic regression's coefficients with several random SDs.
fn starts(boundary: &Logistic) -> Vec<Vec<f64>> {
    [1.0, 4.0, 0.3, 15.0]
        .iter()
        .map(|sd| {
            let mut start = vec![*sd];
            start.extend(&boundary.beta);
            start
        })
        .collect()
}

/// Minimises from the first start and `restarts` more; goes on through the list until one has converged. At least one
/// minimum, converged ones only if there are any.
fn minima(
    data: &GlmmData,
    points: usize,
    restarts: usize,
    starts: &[Vec<f64>],
    evaluations: &mut usize,
) -> Vec<Minimum> {
    let mut likelihood = Likelihood::new(data, points);
    let mut found: Vec<Minimum> = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        if index > restarts && found.iter().any(|minimum| minimum.converged) {
            break;
        }
        let mut objective = |at: &[f64], gradient: &mut [f64]| likelihood.evaluate(at, gradient);
        let hessian = optimiser::hessian(&mut objective, start, &vec![1.0; start.len()]);
        let inverse = match hessian.cholesky() {
            Some(factor) => factor.inverse(),
            None => optimiser::identity(start.len()),
        };
        found.push(optimiser::minimise(&mut objective, start, inverse));
    }
    *evaluations += likelihood.evaluations();
    if found.iter().any(|minimum| minimum.converged) {
        found.retain(|minimum| minimum.converged);
    }
    found
}

/// The better of two ends.
fn better(left: Minimum, right: Minimum) -> Minimum {
    if right.value < left.value - 1e-9 { right } else { left }
}

/// Zero random variance, where that is a local minimum of the Laplace approximation.
fn boundary_minimum(data: &GlmmData, boundary: &Logistic, evaluations: &mut usize) -> Option<Minimum> {
    if !boundary.converged {
        return None;
    }
    let mut at = vec![0.0];
    at.extend(&boundary.beta);
    let mut likelihood = Likelihood::new(data, 1);
    let mut gradient = vec![0.0; at.len()];
    let value = likelihood.evaluate(&at, &mut gradient);
    // The function is even in the random SD: its slope at a small one has the sign of the curvature at zero.
    let mut near = at.clone();
    near[0] = 1e-3;
    let mut slope = vec![0.0; at.len()];
    likelihood.evaluate(&near, &mut slope);
    *evaluations += likelihood.evaluations();
    (slope[0] > 0.0).then_some(Minimum { at, value, gradient, converged: true })
}

/// With few successes the Laplace approximation can have a second, lower minimum at a large random SD that the likelihood
/// itself does not have. Among different minima the one with the higher likelihood by quadrature is taken.
fn supported_by_quadrature(data: &GlmmData, minima: Vec<Minimum>, evaluations: &mut usize) -> Minimum {
    let mut distinct: Vec<Minimum> = Vec::new();
    for minimum in minima {
        let known = distinct.iter_mut().find(|other| {
            (other.at[0].abs() - minimum.at[0].abs()).abs() < 1e-3 * (1.0 + minimum.at[0].abs())
                && (other.value - minimum.value).abs() < 1e-4
        });
        match known {
            Some(known) if minimum.value < known.value => *known = minimum,
            Some(_) => {}
            None => distinct.push(minimum),
        }
    }
    if distinct.len() > 1 {
        let mut judge = Likelihood::new(data, JUDGE_POINTS);
        let mut judged: Vec<(f64, Minimum)> = distinct
            .into_iter()
            .map(|minimum| (judge.evaluate(&minimum.at, &mut vec![0.0; minimum.at.len()]), minimum))
            .collect();
        judged.sort_by(|left, right| left.0.total_cmp(&right.0));
        *evaluations += judge.evaluations();
        distinct = judged.into_iter().map(|(_, minimum)| minimum).collect();
    }
    distinct.into_iter().next().unwrap_or_else(|| Minimum {
        at: vec![0.0; data.columns() + 1],
        value: f64::INFINITY,
        gradient: vec![f64::INFINITY; data.columns() + 1],
        converged: false,
    })
}

/// Newton steps with the accurate Hessian, for the last digits; true if the point moved enough to ask for a new Hessian.
fn polish(likelihood: &mut Likelihood<'_>, minimum: &mut Minimum, hessian: &Matrix) -> bool {
    let Some(factor) = hessian.cholesky() else { return false };
    let mut moved: f64 = 0.0;
    for _ in 0..4 {
        if minimum.gradient_norm() < 1e-9 {
            break;
        }
        let step = factor.solve(&minimum.gradient);
        let at: Vec<f64> = minimum.at.iter().zip(&step).map(|(at, step)| at - step).collect();
        let mut gradient = vec![0.0; at.len()];
        let value = likelihood.evaluate(&at, &mut gradient);
        let norm = gradient.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        if !(norm < minimum.gradient_norm() && value <= minimum.value + 1e-8) {
            break;
        }
        moved = moved.max(step.iter().fold(0.0, |largest: f64, step| largest.max(step.abs())));
        *minimum = Minimum { at, value, gradient, ..minimum.clone() };
    }
    moved > 1e-5
}

/// Compares a Laplace fit with a quadrature fit of the same data: a diagnosis if they differ by more than a tenth of a
/// standard error in a coefficient or a tenth of the random SD.
pub fn disagreement(laplace: &GlmmFit, quadrature: &GlmmFit) -> Option<Diagnosis> {
    let Objective::Converged { points } = quadrature.objective else { return None };
    let (laplace_sd, quadrature_sd) = (laplace.random_sd?, quadrature.random_sd?);
    let (coefficient, standard_errors) = laplace
        .coefficients
        .iter()
        .zip(&quadrature.coefficients)
        .filter_map(|(left, right)| {
            let shift = (left.estimate? - right.estimate?).abs() / right.standard_error?;
            Some((right.name.clone(), shift))
        })
        .max_by(|left, right| left.1.total_cmp(&right.1))?;
    let differs = standard_errors > 0.1 || (laplace_sd - quadrature_sd).abs() > 0.1 * laplace_sd.max(quadrature_sd);
    differs.then_some(Diagnosis::ApproximationsDisagree {
        coefficient,
        standard_errors,
        laplace_sd,
        quadrature_sd,
        points,
    })
}

/// Minus twice the marginal log-likelihood at given parameters (caller's units), with any number of quadrature points up
/// to [`LARGEST_POINTS`]; binomial coefficients are included for counts.
pub fn minus_two_log_likelihood(
    data: &GlmmData,
    random_sd: f64,
    coefficients: &[f64],
    points: usize,
) -> Result<f64, GlmmError> {
    if points == 0 || points > LARGEST_POINTS {
        return Err(GlmmError::Points { points, largest: LARGEST_POINTS });
    }
    if coefficients.len() != data.columns() {
        let found = coefficients.len();
        return Err(GlmmError::Length { column: "coefficients".into(), expected: data.columns(), found });
    }
    let mut parameters = vec![random_sd];
    parameters.extend(coefficients);
    let inner = data.to_inner(&parameters);
    let mut gradient = vec![0.0; inner.len()];
    Ok(Likelihood::new(data, points).evaluate(&inner, &mut gradient) - data.twice_log_constant())
}
