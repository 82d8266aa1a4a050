//! Minimisation with exact gradients: BFGS, then Newton steps with differences of the gradient.
use super::laplace::Criterion;
use crate::matrix::{Matrix, dot};

/// Steps of BFGS.
const MOST_STEPS: usize = 500;

/// Largest change of a parameter in one step.
const LONGEST: f64 = 2.0;

/// Expected decrease of the criterion at which BFGS hands over to Newton.
const SMALL_DECREASE: f64 = 1e-9;

/// Part of the criterion that rounding makes: a sum over tens of thousands of rows is not known more precisely.
const ROUNDING: f64 = 1e-12;

/// Part of the largest second derivative below which a parameter has no curvature: rounding makes it.
const FLAT: f64 = 1e-18;

/// Expected decrease at which the minimum is reached: parameters are then within 1e-6 of a standard error.
const CONVERGED: f64 = 1e-12;

/// Expected decrease up to which a minimum counts as reached where rounding allows no better: parameters are then within 3e-4
/// of a standard error.
const GOOD_ENOUGH: f64 = 1e-8;

/// Decrease within which the Hessian stays as it is: the parameters moved by 1e-4 of a standard error.
const SAME_CURVATURE: f64 = 1e-8;

/// Newton steps.
const MOST_POLISH: usize = 12;

/// Step of differences in standard errors.
const DIFFERENCE: f64 = 2e-3;

/// A minimum over the free parameters.
#[derive(Debug, Clone)]
pub(super) struct Minimum {
    pub(super) at: Vec<f64>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    /// Inverse of the Hessian, approximate before [`polish`]; over all parameters, fixed ones 0.
    pub(super) inverse: Matrix,
    pub(super) converged: bool,
    /// The limit of evaluations, if the search ended there.
    pub(super) stopped_after: Option<usize>,
    pub(super) evaluations: usize,
}

impl Minimum {
    /// True if a search ended as low as another one, as far as rounding allows to tell.
    pub(super) fn is_same(&self, other: &Minimum) -> bool {
        self.converged && (self.value - other.value).abs() <= GOOD_ENOUGH.max(ROUNDING * other.value.abs())
    }
}

/// Minimises from a point over the free parameters. `inverse` is a first guess of the inverse Hessian. None if the criterion is
/// no number at the start.
pub(super) fn minimise<C: Criterion>(
    criterion: &mut C,
    start: &[f64],
    free: &[bool],
    inverse: &Matrix,
) -> Option<Minimum> {
    let size = start.len();
    let mut at = start.to_vec();
    let mut gradient = vec![0.0; size];
    let mut value = criterion.evaluate(&at, Some(&mut gradient))?;
    mask(&mut gradient, free);
    let mut inverse = masked(inverse, free);
    let first = inverse.clone();
    let mut fresh = true;
    let mut evaluations = 1;
    let mut converged = false;
    for _ in 0..MOST_STEPS {
        let mut step: Vec<f64> = inverse.times(&gradient).iter().map(|step| -step).collect();
        let mut along = dot(&step, &gradient);
        if along.is_nan() || along > 0.0 || !step.iter().all(|step| step.is_finite()) {
            if fresh {
                break;
            }
            (inverse, fresh) = (first.clone(), true);
            continue;
        }
        let noise = ROUNDING * value.abs();
        if -0.5 * along < SMALL_DECREASE.max(noise) {
            converged = true;
            break;
        }
        let longest = step.iter().fold(0.0_f64, |longest, step| longest.max(step.abs()));
        if longest > LONGEST {
            step.iter_mut().for_each(|step| *step *= LONGEST / longest);
            along *= LONGEST / longest;
        }
        let mut length = 1.0;
        let mut slope = vec![0.0; size];
        let found = loop {
            let trial: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at + length * step).collect();
            evaluations += 1;
            let reached = criterion.evaluate(&trial, Some(&mut slope));
            match reached {
                Some(reached) if reached <= value + 1e-4 * length * along => break Some((trial, reached)),
                // The parabola through both values and the slope at the start.
                Some(reached) => {
                    let best = -along * length * length / (2.0 * (reached - value - along * length));
                    length = best.clamp(0.1 * length, 0.5 * length);
                }
                None => length *= 0.25,
            }
            // What is left to gain cannot be told from rounding.
            if length < 1e-10 || -length * along < 1e-4 * noise {
                break None;
            }
        };
        let Some((trial, reached)) = found else {
            if fresh {
                break;
            }
            (inverse, fresh) = (first.clone(), true);
            continue;
        };
        mask(&mut slope, free);
        let moved: Vec<f64> = trial.iter().zip(&at).map(|(new, old)| new - old).collect();
        let change: Vec<f64> = slope.iter().zip(&gradient).map(|(new, old)| new - old).collect();
        update(&mut inverse, &moved, &change);
        fresh = false;
        (at, value, gradient) = (trial, reached, slope);
    }
    Some(Minimum { at, value, gradient, inverse, converged, stopped_after: None, evaluations })
}

/// The BFGS update of an inverse Hessian.
fn update(inverse: &mut Matrix, moved: &[f64], change: &[f64]) {
    let product = dot(moved, change);
    let size = moved.len();
    let scale = (dot(moved, moved) * dot(change, change)).sqrt();
    if product.is_nan() || product <= 1e-10 * scale {
        return;
    }
    let carried = inverse.times(change);
    let factor = (1.0 + dot(change, &carried) / product) / product;
    for row in 0..size {
        for column in 0..size {
            let value = factor * moved[row] * moved[column]
                - (carried[row] * moved[column] + moved[row] * carried[column]) / product;
            inverse.add(row, column, value);
        }
    }
}

fn mask(values: &mut [f64], free: &[bool]) {
    values.iter_mut().zip(free).filter(|(_, free)| !**free).for_each(|(value, _)| *value = 0.0);
}

fn masked(matrix: &Matrix, free: &[bool]) -> Matrix {
    let mut result = matrix.clone();
    for row in 0..matrix.size() {
        for column in 0..matrix.size() {
            if !(free[row] && free[column]) {
                result.set(row, column, 0.0);
            }
        }
    }
    result
}

/// The Hessian over the free parameters, by central differences of the gradient.
fn hessian<C: Criterion>(criterion: &mut C, minimum: &mut Minimum, free: &[bool]) -> Option<Matrix> {
    let size = minimum.at.len();
    let mut found = Matrix::zeros(size);
    let (mut above, mut below) = (vec![0.0; size], vec![0.0; size]);
    for index in (0..size).filter(|&index| free[index]) {
        let step = (DIFFERENCE * (2.0 * minimum.inverse.get(index, index)).max(0.0).sqrt()).clamp(1e-7, 1e-2);
        let mut at = minimum.at.clone();
        at[index] += step;
        criterion.evaluate(&at, Some(&mut above))?;
        at[index] = minimum.at[index] - step;
        criterion.evaluate(&at, Some(&mut below))?;
        minimum.evaluations += 2;
        for other in (0..size).filter(|&other| free[other]) {
            found.set(index, other, (above[other] - below[other]) / (2.0 * step));
        }
    }
    found.symmetrise();
    Some(found)
}

/// Moves a minimum to where the gradient vanishes; keeps the Hessian.
pub(super) fn polish<C: Criterion>(criterion: &mut C, minimum: &mut Minimum, free: &[bool]) -> Option<()> {
    let mut stale = true;
    let mut downhill = minimum.inverse.clone();
    // Decreases since the Hessian was computed.
    let mut moved = 0.0;
    for _ in 0..MOST_POLISH {
        if stale {
            let hessian = hessian(criterion, minimum, free)?;
            // Downhill also where the criterion curves the other way.
            moved = 0.0;
            downhill = inverse(&hessian, free, |value, largest| Some(value.abs().max(1e-7 * largest)));
            minimum.inverse = positive_inverse(&hessian, free);
        }
        let step: Vec<f64> = downhill.times(&minimum.gradient).iter().map(|step| -step).collect();
        let decrease = -0.5 * dot(&step, &minimum.gradient);
        if decrease < CONVERGED {
            break;
        }
        let mut length = 1.0;
        let mut slope = vec![0.0; step.len()];
        let noise = ROUNDING * minimum.value.abs();
        let reached = loop {
            let trial: Vec<f64> = minimum.at.iter().zip(&step).map(|(at, step)| at + length * step).collect();
            minimum.evaluations += 1;
            match criterion.evaluate(&trial, Some(&mut slope)) {
                Some(value) if value <= minimum.value + noise => break Some((trial, value)),
                _ if length < 1e-6 => break None,
                _ => length *= 0.5,
            }
        };
        let Some((trial, value)) = reached else { break };
        mask(&mut slope, free);
        moved += decrease;
        (minimum.at, minimum.value, minimum.gradient) = (trial, value, slope);
        // Far steps change the curvature.
        stale = decrease > 1e-4;
    }
    if moved > SAME_CURVATURE {
        curvature(criterion, minimum, free)?;
    }
    let decrease = 0.5 * dot(&minimum.inverse.times(&minimum.gradient), &minimum.gradient);
    minimum.converged = decrease < GOOD_ENOUGH;
    Some(())
}

/// Sets the inverse Hessian to that of the minimum itself.
pub(super) fn curvature<C: Criterion>(criterion: &mut C, minimum: &mut Minimum, free: &[bool]) -> Option<()> {
    let hessian = hessian(criterion, minimum, free)?;
    minimum.inverse = positive_inverse(&hessian, free);
    Some(())
}

/// The inverse over the free parameters; directions of no or negative curvature are left out.
fn positive_inverse(hessian: &Matrix, free: &[bool]) -> Matrix {
    inverse(hessian, free, |value, largest| (value > 1e-8 * largest && value > 0.0).then_some(value))
}

/// The inverse over the free parameters, its eigenvalues (of a unit diagonal) replaced: by the value and the largest.
fn inverse(hessian: &Matrix, free: &[bool], replaced: impl Fn(f64, f64) -> Option<f64>) -> Matrix {
    let size = hessian.size();
    // A unit diagonal first, so that units do not matter. A parameter without curvature would be scaled up to noise.
    let steepest = (0..size).filter(|&index| free[index]).map(|index| hessian.get(index, index).abs());
    let steepest = steepest.fold(0.0, f64::max);
    let scale: Vec<f64> = (0..size)
        .map(|index| {
            let own = hessian.get(index, index).abs();
            if free[index] && own > FLAT * steepest { own.sqrt() } else { 1.0 }
        })
        .collect();
    let mut scaled = Matrix::zeros(size);
    for row in 0..size {
        for column in 0..size {
            scaled.set(row, column, hessian.get(row, column) / (scale[row] * scale[column]));
        }
    }
    let (values, vectors) = scaled.eigen();
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(*value));
    let mut result = Matrix::zeros(size);
    for (index, &value) in values.iter().enumerate() {
        if let Some(value) = replaced(value, largest) {
            let vector: Vec<f64> = (0..size).map(|row| vectors.get(row, index) / scale[row]).collect();
            result.add_outer(1.0 / value, &vector);
        }
    }
    masked(&result, free)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's function, and a third parameter that does nothing.
    struct Valley;

    impl Criterion for Valley {
        fn evaluate(&mut self, at: &[f64], gradient: Option<&mut [f64]>) -> Option<f64> {
            let (x, y) = (at[0], at[1]);
            if let Some(gradient) = gradient {
                gradient.copy_from_slice(&[-2.0 * (1.0 - x) - 400.0 * x * (y - x * x), 200.0 * (y - x * x), 0.0]);
            }
            (x > -3.0).then_some((1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2))
        }
    }

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        let mut identity = Matrix::zeros(3);
        (0..3).for_each(|index| identity.set(index, index, 1.0));
        let free = [true, true, false];
        let mut found = minimise(&mut Valley, &[-1.2, 1.0, 7.0], &free, &identity).unwrap();
        polish(&mut Valley, &mut found, &free).unwrap();
        assert!(found.converged && found.at[2] == 7.0, "{found:?}");
        assert!((found.at[0] - 1.0).abs() < 1e-8 && (found.at[1] - 1.0).abs() < 1e-8, "{found:?}");
        let hessian = hessian(&mut Valley, &mut found, &free).unwrap();
        assert!((hessian.get(0, 0) - 802.0).abs() < 1e-2 && hessian.get(2, 2) == 0.0, "{hessian:?}");
        assert!(minimise(&mut Valley, &[-5.0, 0.0, 0.0], &free, &identity).is_none());
    }
}
