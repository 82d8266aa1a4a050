//! The search for the optimum: starts, restarts, and the choice between minima.
use super::data::GlmmData;
use super::likelihood::Likelihood;
use super::logistic::Logistic;
use super::optimiser::{self, Minimum};
use crate::matrix::Matrix;

/// Quadrature points for ranking several minima of the Laplace approximation.
const RANKING_POINTS: usize = 25;

/// Starting points: the logistic regression's coefficients with several random SDs.
pub(super) fn starts(boundary: &Logistic) -> Vec<Vec<f64>> {
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
pub(super) fn minima(
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
pub(super) fn better(left: Minimum, right: Minimum) -> Minimum {
    if right.value < left.value - 1e-9 { right } else { left }
}

/// Zero random variance, where that is a local minimum of the Laplace approximation.
pub(super) fn boundary_minimum(data: &GlmmData, boundary: &Logistic, evaluations: &mut usize) -> Option<Minimum> {
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
pub(super) fn supported_by_quadrature(data: &GlmmData, minima: Vec<Minimum>, evaluations: &mut usize) -> Minimum {
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
        let mut quadrature = Likelihood::new(data, RANKING_POINTS);
        let mut ranked: Vec<(f64, Minimum)> = distinct
            .into_iter()
            .map(|minimum| (quadrature.evaluate(&minimum.at, &mut vec![0.0; minimum.at.len()]), minimum))
            .collect();
        ranked.sort_by(|left, right| left.0.total_cmp(&right.0));
        *evaluations += quadrature.evaluations();
        distinct = ranked.into_iter().map(|(_, minimum)| minimum).collect();
    }
    distinct.into_iter().next().unwrap_or_else(|| Minimum {
        at: vec![0.0; data.columns() + 1],
        value: f64::INFINITY,
        gradient: vec![f64::INFINITY; data.columns() + 1],
        converged: false,
    })
}

/// Newton steps with the accurate Hessian, for the last digits; true if the point moved enough to ask for a new Hessian.
pub(super) fn polish(likelihood: &mut Likelihood<'_>, minimum: &mut Minimum, hessian: &Matrix) -> bool {
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
        if !(norm < minimum.gradient_norm() && value <= minimum.value + 1e-8_f64.max(1e-14 * value)) {
            break;
        }
        moved = moved.max(step.iter().fold(0.0, |largest: f64, step| largest.max(step.abs())));
        *minimum = Minimum { at, value, gradient, ..minimum.clone() };
    }
    moved > 1e-5
}
