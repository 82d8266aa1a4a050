//! Fitting: what can be estimated, the optimum, its standard errors, what to know about them.
use super::data::GlmmData;
use super::diagnosis::{Diagnosis, Disagreement, SeparationKind, Unbounded};
use super::error::GlmmError;
use super::likelihood::Likelihood;
use super::quadrature::LARGEST_POINTS;
use super::result::{GlmmFit, GlmmOptions, Objective, coefficient};
use super::search::{better, boundary_minimum, minima, polish, starts, supported_by_quadrature};
use super::{lme4, logistic, optimiser, separation};
use crate::matrix::{Matrix, dot};

/// Random SDs below this count as zero, as in lme4's `isSingular`.
pub const SINGULAR: f64 = 1e-4;

/// Random intercepts with fewer groups are fitted, with [`Diagnosis::FewGroups`].
pub const FEW_GROUPS: usize = 6;

/// A gradient that counts as none, whatever the number of rows.
const FLAT: f64 = 1e-4;

/// Fall of -2 log L still to be had that counts as none: estimates are then within 1e-4 standard errors. Sums over many
/// thousands of groups round so much that their gradient cannot be told from [`FLAT`].
const REACHED: f64 = 1e-8;

/// Fall of -2 log L by a Newton step.
fn deviance_left(hessian: &Matrix, gradient: &[f64], singular: bool) -> f64 {
    let (hessian, gradient) = if singular { (hessian.without(0), &gradient[1..]) } else { (hessian.clone(), gradient) };
    match hessian.cholesky() {
        Some(factor) => 0.5 * dot(&factor.solve(gradient), gradient),
        None => f64::INFINITY,
    }
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
    Ok(match separation::by_fixed_effects(data) {
        Some(separation) => fit_separated(data, points, options, &separation),
        None => {
            let mut fit = fit_overlapping(data, points, options);
            fit.diagnoses.extend(few_groups(data));
            fit
        }
    })
}

fn few_groups(data: &GlmmData) -> Option<Diagnosis> {
    (data.groups() < FEW_GROUPS).then(|| Diagnosis::FewGroups { groups: data.groups() })
}

/// Precondition of every fit that the data violate.
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
    let (rows_left, groups_left) = (rest.rows(), rest.groups());
    let diagnosis = Diagnosis::Separation { kind, unbounded, rows, rows_left, groups_left };
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
    // Groups whose rows are all predicted tell nothing of the variance.
    fit.diagnoses.extend(few_groups(&rest));
    fit
}

fn fit_overlapping(data: &GlmmData, points: usize, options: &GlmmOptions) -> GlmmFit {
    let objective = Objective::Converged { points };
    let (all_wrong, all_right) = data.constant_groups();
    let constant_groups = all_wrong + all_right;
    // Constant groups of both kinds push the variance up without end; what holds it back are mixed groups, and fewer of
    // them than parameters cannot determine these.
    let too_few_mixed = all_wrong > 0 && all_right > 0 && data.groups() - constant_groups < data.columns() + 1;
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
    let singular = boundary.converged
        && (best.at[0] < SINGULAR || boundary.minus_two_log_likelihood <= best.value + 1e-9)
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
    let slope_left = best.gradient_norm() > FLAT && deviance_left(&hessian, &best.gradient, singular) > REACHED;
    if !best.converged || slope_left || likelihood.unconverged_modes() > 0 {
        diagnoses
            .push(Diagnosis::NotConverged { gradient: best.gradient_norm(), modes: likelihood.unconverged_modes() });
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

/// Compares a Laplace fit with a quadrature fit of the same data: a diagnosis if they differ by more than a tenth of a
/// standard error in a coefficient or a tenth of the random SD.
pub fn disagreement(laplace: &GlmmFit, quadrature: &GlmmFit) -> Option<Disagreement> {
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
    differs.then_some(Disagreement { coefficient, standard_errors, laplace_sd, quadrature_sd, points })
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
