//! One model under several optimisers (Listing 6 of the re-evaluation): on a smooth objective all end at one point; on
//! lme4's, which jumps, each ends where it happens to get stuck, which looks like agreement only as long as nobody asks for
//! the digits that matter.
use serde::Serialize;

use super::super::data::MixedData;
use super::super::laplace::{Criterion, Laplace};
use super::super::layout::Layout;
use super::super::search;
use super::super::separated::{all_or_nothing, separation};
use super::super::{MixedError, fit::constant_response};
use super::{DEFAULT_TOLERANCE, Lme4Objective, nelder_mead};
use crate::matrix::Matrix;

/// End of one optimiser's search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OptimiserEnd {
    /// `lme4` (its default tolerance) or `converged` (Laplace).
    pub objective: &'static str,
    pub optimiser: &'static str,
    /// Coefficients in the order of the model's columns, the intercept first.
    pub coefficients: Vec<f64>,
    pub random_sd: f64,
    /// The objective there: minus twice the log-likelihood, as that objective has it.
    pub value: f64,
}

/// Fits one data set with every optimiser on lme4's objective and on the converged one. Empty where the model has no
/// estimate (a constant response, separation).
///
/// # Errors
/// If the model is not binomial with one random intercept.
pub fn across_optimisers(data: &MixedData) -> Result<Vec<OptimiserEnd>, MixedError> {
    let lme4 = Lme4Objective::new(data, DEFAULT_TOLERANCE, None)?;
    if constant_response(data).is_some() || separation(data).is_some() || all_or_nothing(data)?.is_some() {
        return Ok(Vec::new());
    }
    let start = lme4.first_stage().to_vec();
    let steps = lme4.search_steps();
    let mut ends = Vec::new();
    let mut jumping = |at: &[f64]| lme4.value(&positive(at));
    ends.extend(every("lme4", &mut jumping, &start, &steps));
    let layout = Layout::new(data)?;
    let mut laplace = Laplace::new(data, &layout);
    let mut smooth = |at: &[f64]| {
        let beta = data.fixed.from_caller.times(&at[1..]);
        let inner: Vec<f64> = std::iter::once(at[0].abs()).chain(beta).collect();
        laplace.evaluate(&inner, None).unwrap_or(f64::INFINITY)
    };
    ends.extend(every("converged", &mut smooth, &start, &steps));
    Ok(ends)
}

/// The objectives are even in the random SD.
fn positive(at: &[f64]) -> Vec<f64> {
    at.iter().enumerate().map(|(index, value)| if index == 0 { value.abs() } else { *value }).collect()
}

fn every(
    objective: &'static str,
    function: &mut dyn FnMut(&[f64]) -> f64,
    start: &[f64],
    steps: &[f64],
) -> Vec<OptimiserEnd> {
    let end = |optimiser, at: Vec<f64>, value| OptimiserEnd {
        objective,
        optimiser,
        random_sd: at[0].abs(),
        coefficients: at[1..].to_vec(),
        value,
    };
    let mut lower = vec![f64::NEG_INFINITY; start.len()];
    lower[0] = 0.0;
    let simplex = |function: &mut dyn FnMut(&[f64]) -> f64, tolerance: f64| {
        let limits: Vec<f64> = steps.iter().map(|step| tolerance * step).collect();
        nelder_mead::minimise(function, start, &lower, steps, &limits)
    };
    let coarse = simplex(function, 5e-4);
    let fine = simplex(function, 1e-7);
    let (newton, newton_value) = quasi_newton(function, start);
    let (compass, value) = compass(function, start, steps);
    vec![
        end("Nelder-Mead, lme4's tolerances", coarse.at, coarse.value),
        end("Nelder-Mead, tight", fine.at, fine.value),
        end("quasi-Newton, numerical gradient", newton, newton_value),
        end("compass search", compass, value),
    ]
}

/// A function with its gradient by central differences.
struct Numerical<'f>(&'f mut dyn FnMut(&[f64]) -> f64);

impl Criterion for Numerical<'_> {
    fn evaluate(&mut self, at: &[f64], gradient: Option<&mut [f64]>) -> Option<f64> {
        const STEP: f64 = 1e-5;
        let mut point = at.to_vec();
        for (index, slope) in gradient.into_iter().flatten().enumerate() {
            point[index] = at[index] + STEP;
            let above = (self.0)(&point);
            point[index] = at[index] - STEP;
            *slope = (above - (self.0)(&point)) / (2.0 * STEP);
            point[index] = at[index];
        }
        Some((self.0)(&point)).filter(|value| value.is_finite())
    }
}

/// BFGS on central differences.
fn quasi_newton(function: &mut dyn FnMut(&[f64]) -> f64, start: &[f64]) -> (Vec<f64>, f64) {
    let mut identity = Matrix::zeros(start.len());
    (0..start.len()).for_each(|index| identity.set(index, index, 1.0));
    let value = function(start);
    match search::minimise(&mut Numerical(function), start, &vec![true; start.len()], &identity) {
        Some(found) => (found.at, found.value),
        None => (start.to_vec(), value),
    }
}

/// Hooke and Jeeves's exploratory moves (1961): along each axis in turn, halving the steps when none helps.
fn compass(function: &mut dyn FnMut(&[f64]) -> f64, start: &[f64], steps: &[f64]) -> (Vec<f64>, f64) {
    const SMALLEST: f64 = 1e-6;
    const SWEEPS: usize = 4_000;
    let (mut at, mut steps) = (start.to_vec(), steps.to_vec());
    let mut value = function(&at);
    for _ in 0..SWEEPS {
        let before = value;
        for index in 0..at.len() {
            for side in [1.0, -1.0] {
                let mut point = at.clone();
                point[index] += side * steps[index];
                let new = function(&point);
                if new < value {
                    (at, value) = (point, new);
                    break;
                }
            }
        }
        if value == before {
            steps.iter_mut().for_each(|step| *step *= 0.5);
            if steps.iter().all(|step| *step < SMALLEST) {
                break;
            }
        }
    }
    (at, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimisers_agree_on_the_smooth_objective() {
        // 30 groups of 10 with a true effect; a fixed pattern instead of a generator.
        let (mut response, mut variant, mut group) = (vec![], vec![], vec![]);
        for template in 0..30u64 {
            for instance in 0..10u64 {
                let level = (template * 7) % 10;
                let hard = u64::from(instance > 2);
                response.push(f64::from(u8::from((instance * 3 + template) % 10 + 2 * hard < level)));
                variant.push(hard as f64);
                group.push(template);
            }
        }
        let data = MixedData::of_columns(&response, &[("variant", &variant)], &group).unwrap();
        let ends = across_optimisers(&data).unwrap();
        assert_eq!(ends.len(), 8);
        let smooth: Vec<&OptimiserEnd> = ends.iter().filter(|end| end.objective == "converged").collect();
        for end in &smooth[1..] {
            assert!((end.coefficients[1] - smooth[1].coefficients[1]).abs() < 1e-4, "{smooth:?}");
            assert!((end.value - smooth[1].value).abs() < 1e-6, "{smooth:?}");
        }
    }

    #[test]
    fn data_without_estimates_have_no_ends() {
        let data =
            MixedData::of_columns(&[1.0, 1.0, 1.0, 1.0], &[("x", &[0.0, 1.0, 0.0, 1.0])], &[0, 0, 1, 1]).unwrap();
        assert!(across_optimisers(&data).unwrap().is_empty());
    }
}
