//! Cluster-robust standard errors: what the groups' scatter says about the coefficients, whatever else varies between them.
use super::data::GlmmData;
use super::diagnosis::Diagnosis;
use super::likelihood::{logistic, softplus};
use super::result::GlmmFit;
use crate::matrix::{Matrix, dot};

/// Part by which a robust error may exceed the model's.
const EXCESS: f64 = 0.2;

/// Groups below which robust errors are too noisy to judge a model by.
const FEW: usize = 20;

/// Newton steps for a group's mode.
const MOST_STEPS: usize = 100;

/// Warnings for coefficients whose error by the sandwich estimator over the groups exceeds the model's by a fifth, as it does
/// when an effect varies between the groups of a model with random intercepts only.
pub fn small_errors(data: &GlmmData, fit: &GlmmFit) -> Vec<Diagnosis> {
    if data.groups() < FEW || fit.diagnoses.iter().any(Diagnosis::is_fatal) {
        return Vec::new();
    }
    let Some(robust) = robust_errors(data, fit) else { return Vec::new() };
    let compare = |(one, robust): (&super::Coefficient, f64)| {
        let model = one.standard_error?;
        let coefficient = one.name.clone();
        (robust > (1.0 + EXCESS) * model).then_some(Diagnosis::SmallErrors { coefficient, model, robust })
    };
    fit.coefficients.iter().zip(robust).filter_map(compare).collect()
}

/// Standard errors by the sandwich estimator with the scores of Laplace's approximation summed within groups, the random SD held
/// fixed, corrected by `G / (G - 1)`. None if the fit lacks an estimate.
pub fn robust_errors(data: &GlmmData, fit: &GlmmFit) -> Option<Vec<f64>> {
    let mut parameters = vec![fit.random_sd?];
    for one in &fit.coefficients {
        parameters.push(one.estimate?);
    }
    let inner = data.to_inner(&parameters);
    let (sd, beta) = (inner[0], &inner[1..]);
    let columns = data.columns();
    let (mut information, mut middle) = (Matrix::zeros(columns), Matrix::zeros(columns));
    for group in 0..data.groups() {
        let (score, own) = of_group(data, group, sd, beta);
        middle.add_outer(1.0, &score);
        for row in 0..columns {
            for column in 0..columns {
                information.add(row, column, own.get(row, column));
            }
        }
    }
    let groups = data.groups() as f64;
    let bread = information.cholesky()?.inverse();
    // The caller's coefficients come after the random SD.
    let map = data.to_caller();
    let mut coefficients = Matrix::zeros(columns);
    for row in 0..columns {
        for column in 0..columns {
            coefficients.set(row, column, map.get(row + 1, column + 1));
        }
    }
    let half = coefficients.product(&bread);
    let covariance = half.product(&middle).product(&half.transpose());
    let scale = groups / (groups - 1.0);
    Some((0..columns).map(|index| (scale * covariance.get(index, index)).max(0.0).sqrt()).collect())
}

/// Score and information of a group's coefficients.
fn of_group(data: &GlmmData, group: usize, sd: f64, beta: &[f64]) -> (Vec<f64>, Matrix) {
    let cells = data.cells_of(group);
    let (trials, successes) = (data.trials(), data.successes());
    let fixed: Vec<f64> = cells.clone().map(|cell| dot(data.cell(cell), beta)).collect();
    let value = |mode: f64| {
        let terms = cells.clone().zip(&fixed).map(|(cell, fixed)| {
            let eta = fixed + sd * mode;
            trials[cell] * softplus(eta) - successes[cell] * eta
        });
        terms.sum::<f64>() + 0.5 * mode * mode
    };
    let mut mode = 0.0;
    for _ in 0..MOST_STEPS {
        let (mut slope, mut curvature) = (-mode, 1.0);
        for (cell, fixed) in cells.clone().zip(&fixed) {
            let mean = logistic(fixed + sd * mode);
            slope += sd * (successes[cell] - trials[cell] * mean);
            curvature += sd * sd * trials[cell] * mean * (1.0 - mean);
        }
        let step = slope / curvature;
        let mut length = 1.0;
        while length > 1e-6 && value(mode + length * step) > value(mode) + 1e-12 {
            length *= 0.5;
        }
        mode += length * step;
        if step.abs() < 1e-10 {
            break;
        }
    }
    let columns = data.columns();
    let (mut whole, mut weighted, mut information) = (1.0, vec![0.0; columns], Matrix::zeros(columns));
    let mut parts = Vec::with_capacity(fixed.len());
    for (cell, fixed) in cells.clone().zip(&fixed) {
        let mean = logistic(fixed + sd * mode);
        let weight = trials[cell] * mean * (1.0 - mean);
        whole += sd * sd * weight;
        weighted.iter_mut().zip(data.cell(cell)).for_each(|(sum, x)| *sum += weight * x);
        information.add_outer(weight, data.cell(cell));
        parts.push((successes[cell] - trials[cell] * mean, weight, weight * (1.0 - 2.0 * mean)));
    }
    information.add_outer(-sd * sd / whole, &weighted);
    // The determinant's derivative moves with the mode.
    let variance = sd * sd / whole;
    let third: f64 = parts.iter().map(|part| variance * part.2).sum();
    let moved = variance * third;
    let mut score = vec![0.0; columns];
    for (cell, (residual, weight, skew)) in cells.zip(parts) {
        let slope = residual - 0.5 * (variance * skew - weight * moved);
        score.iter_mut().zip(data.cell(cell)).for_each(|(score, x)| *score += slope * x);
    }
    (score, information)
}
