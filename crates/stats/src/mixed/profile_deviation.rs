//! Profile interval and test of the standard deviation of the only random effect.
use serde::Serialize;

use super::MixedError;
use super::data::MixedData;
use super::laplace::Laplace;
use super::layout::Layout;
use super::optimum::Mixed;
use super::profile::{BETTER, MixedInterval, between, goal, missing};
use super::quadrature::Quadrature;
use super::result::{Method, MixedFit};
use super::search::minimise;
use crate::distribution::chi_squared_upper;

/// Multiples of the estimate, or of one, beyond which an end is infinite.
const FARTHEST: f64 = 64.0;

/// A test of a variance of 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VarianceTest {
    /// Difference of minus twice the log-likelihoods.
    pub statistic: f64,
    pub degrees_of_freedom: usize,
    /// By an equal mixture of chi-squared with 0 and 1 degrees of freedom, because 0 is on the border (Self and Liang 1987).
    pub p: f64,
}

/// The profile interval of the standard deviation of the only random effect: values at which the best -2 log L is at most a chi-squared
/// quantile above the minimum. Its low end is 0 where that is not rejected.
///
/// # Errors
/// If the model has other random effects or no estimate, or if the search meets a likelihood better than the fit's.
pub fn profile_deviation(data: &MixedData, fit: &MixedFit, confidence: f64) -> Result<MixedInterval, MixedError> {
    let goal = goal(confidence)?;
    let scale = scale(data)?;
    let [low, high] = over(data, fit, |excess, estimate| {
        let high = end(excess, estimate, goal, &|at| 2.0 * at)?;
        let low = match excess(0.0)? <= goal {
            true => Some(0.0),
            false => end(excess, estimate, goal, &|at| if at < 1e-3 { 0.0 } else { 0.5 * at })?,
        };
        Ok([low, high])
    })?;
    Ok(MixedInterval::of("random SD", low.map(|end| end / scale), high.map(|end| end / scale)))
}

/// The likelihood-ratio test of no variance against the fit of a model with one random effect.
pub fn variance_test(data: &MixedData, fit: &MixedFit) -> Result<VarianceTest, MixedError> {
    scale(data)?;
    let root = over(data, fit, |excess, _| excess(0.0))?;
    let statistic = root * root;
    let p = if statistic <= 1e-8 { 1.0 } else { 0.5 * chi_squared_upper(statistic, 1.0) };
    Ok(VarianceTest { statistic, degrees_of_freedom: 1, p })
}

/// The unit of the random effect's column.
fn scale(data: &MixedData) -> Result<f64, MixedError> {
    match data.has_one_effect() {
        true => Ok(data.groupings[0].scale[0]),
        false => Err(missing("the profile interval of a standard deviation needs a model with one random effect")),
    }
}

/// Root of the excess of the best -2 log L at a relative standard deviation over the fit's.
type Excess<'e> = dyn FnMut(f64) -> Result<f64, MixedError> + 'e;

fn over<R>(
    data: &MixedData,
    fit: &MixedFit,
    body: impl FnOnce(&mut Excess<'_>, f64) -> Result<R, MixedError>,
) -> Result<R, MixedError> {
    let layout = Layout::new(data)?;
    match fit.method {
        Method::Quadrature => with(&mut Quadrature::new(data, &layout, fit.points), fit, body),
        Method::Laplace => with(&mut Laplace::new(data, &layout), fit, body),
        _ => Err(missing("a profile interval needs a binomial model and a smooth likelihood")),
    }
}

fn with<C: Mixed, R>(
    criterion: &mut C,
    fit: &MixedFit,
    body: impl FnOnce(&mut Excess<'_>, f64) -> Result<R, MixedError>,
) -> Result<R, MixedError> {
    let (Some(minimum), Some(&estimate)) = (fit.minus_two_log_likelihood, fit.at.first()) else {
        return Err(missing("the fit has no likelihood, see its diagnoses"));
    };
    criterion.set_units(&fit.units);
    let mut lowest = minimum;
    let mut excess = |at: f64| {
        let (start, inverse) =
            criterion.start(at).ok_or_else(|| missing("the profile likelihood cannot be computed"))?;
        let mut free = vec![true; start.len()];
        free[0] = false;
        let found = minimise(criterion, &start, &free, &inverse)
            .ok_or_else(|| missing("the profile likelihood cannot be computed"))?;
        lowest = lowest.min(found.value);
        Ok((found.value - minimum).max(0.0).sqrt())
    };
    let found = body(&mut excess, estimate.abs())?;
    if lowest < minimum - BETTER {
        return Err(MixedError::NotTheBest { by: minimum - lowest });
    }
    Ok(found)
}

/// The end beyond an estimate, between the last value within the goal and the first without; none if there is none within reach.
fn end(
    excess: &mut Excess<'_>,
    estimate: f64,
    goal: f64,
    farther: &dyn Fn(f64) -> f64,
) -> Result<Option<f64>, MixedError> {
    let (mut within, mut within_root) = (estimate, -goal);
    let mut without = farther(estimate.max(0.05));
    let mut without_root = excess(without)? - goal;
    while without_root < 0.0 {
        if without > FARTHEST * estimate.max(1.0) || without == 0.0 {
            return Ok(None);
        }
        (within, within_root) = (without, without_root);
        without = farther(without);
        without_root = excess(without)? - goal;
    }
    between(&mut |at| Ok(excess(at)? - goal), (within, within_root), (without, without_root)).map(Some)
}
