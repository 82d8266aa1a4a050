//! Minimisation with an analytic gradient, and Hessians from it.
use crate::matrix::{Matrix, dot};

/// A function with its gradient: fills the gradient, returns the value.
pub(super) type Objective<'f> = dyn FnMut(&[f64], &mut [f64]) -> f64 + 'f;

/// Minimum that a minimisation found.
#[derive(Debug, Clone)]
pub(super) struct Minimum {
    pub(super) at: Vec<f64>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    pub(super) converged: bool,
}

impl Minimum {
    /// The largest absolute component of the gradient.
    pub(super) fn gradient_norm(&self) -> f64 {
        largest(&self.gradient)
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| if value.is_nan() { f64::INFINITY } else { largest.max(value.abs()) })
}

/// Iterations a minimisation may take.
const ITERATIONS: usize = 300;
/// Longest step in any parameter; the inner parameters are of order one.
const LONGEST_STEP: f64 = 5.0;
/// Minimises by BFGS with a weak-Wolfe line search, from `start` and a first inverse Hessian.
pub(super) fn minimise(objective: &mut Objective<'_>, start: &[f64], inverse_hessian: Matrix) -> Minimum {
    let size = start.len();
    let mut at = start.to_vec();
    let mut gradient = vec![0.0; size];
    let mut value = objective(&at, &mut gradient);
    let mut inverse = inverse_hessian;
    let mut converged = false;
    let mut fresh = false;
    for _ in 0..ITERATIONS {
        if !value.is_finite() {
            break;
        }
        let mut direction: Vec<f64> = inverse.times(&gradient).iter().map(|component| -component).collect();
        let mut slope = dot(&direction, &gradient);
        if slope >= 0.0 || slope.is_nan() {
            // The approximation is spoilt: restart from steepest descent.
            inverse = identity(size);
            direction = gradient.iter().map(|component| -component).collect();
            slope = dot(&direction, &gradient);
        }
        // A decrease below the value's own rounding cannot be seen, let alone made.
        let rounding = 4.0 * f64::EPSILON * value.abs().max(1.0);
        let flat = 1e-4 * value.abs().sqrt().max(1.0);
        if -slope < rounding && largest(&gradient) < flat {
            converged = true;
            break;
        }
        let longest = largest(&direction);
        let first = if longest > LONGEST_STEP { LONGEST_STEP / longest } else { 1.0 };
        let Some(step) = line_search(objective, &at, value, &direction, slope, first) else {
            if fresh {
                // No progress along the gradient itself: rounding.
                converged = largest(&gradient) < flat;
                break;
            }
            inverse = identity(size);
            fresh = true;
            continue;
        };
        fresh = false;
        let moved: Vec<f64> = step.at.iter().zip(&at).map(|(new, old)| new - old).collect();
        let change: Vec<f64> = step.gradient.iter().zip(&gradient).map(|(new, old)| new - old).collect();
        update_inverse(&mut inverse, &moved, &change);
        (at, value, gradient) = (step.at, step.value, step.gradient);
    }
    Minimum { at, value, gradient, converged }
}

/// The identity matrix.
pub(super) fn identity(size: usize) -> Matrix {
    let mut matrix = Matrix::zeros(size);
    for index in 0..size {
        matrix.set(index, index, 1.0);
    }
    matrix
}

struct Step {
    at: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// Bisection for the weak Wolfe conditions (Lewis and Overton). Decreases below rounding are accepted when the slope has
/// shrunk, so that the last digits of the gradient are still won.
fn line_search(
    objective: &mut Objective<'_>,
    from: &[f64],
    value: f64,
    direction: &[f64],
    slope: f64,
    first: f64,
) -> Option<Step> {
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut length = first;
    let noise = 4.0 * f64::EPSILON * value.abs().max(1.0);
    let mut best: Option<Step> = None;
    for _ in 0..60 {
        let at: Vec<f64> = from.iter().zip(direction).map(|(from, along)| from + length * along).collect();
        let mut gradient = vec![0.0; from.len()];
        let new = objective(&at, &mut gradient);
        let new_slope = dot(&gradient, direction);
        let decreased = new.is_finite() && new <= value + 1e-4 * length * slope + noise && new_slope.is_finite();
        if !decreased {
            high = length;
        } else if new_slope < 0.9 * slope {
            low = length;
            if best.as_ref().is_none_or(|best| new < best.value) {
                best = Some(Step { at, value: new, gradient });
            }
        } else {
            return Some(Step { at, value: new, gradient });
        }
        length = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * length };
        if length * largest(direction) < 1e-14 || length > 1e6 {
            break;
        }
    }
    best
}

fn update_inverse(inverse: &mut Matrix, moved: &[f64], change: &[f64]) {
    let curvature = dot(moved, change);
    if curvature.is_nan() || curvature <= 1e-14 * (dot(moved, moved) * dot(change, change)).sqrt() {
        return;
    }
    let product = inverse.times(change);
    let factor = (1.0 + dot(change, &product) / curvature) / curvature;
    for row in 0..moved.len() {
        for column in 0..moved.len() {
            let cross = (product[row] * moved[column] + moved[row] * product[column]) / curvature;
            inverse.add(row, column, factor * moved[row] * moved[column] - cross);
        }
    }
}

/// The Hessian by Richardson extrapolation of central differences of the analytic gradient (error of order `h^4` plus
/// rounding, about 1e-9 relative here), symmetrised. `scale` gives each parameter's natural size.
pub(super) fn hessian(objective: &mut Objective<'_>, at: &[f64], scale: &[f64]) -> Matrix {
    let size = at.len();
    let mut matrix = Matrix::zeros(size);
    let (mut above, mut below) = (vec![0.0; size], vec![0.0; size]);
    for parameter in 0..size {
        let mut point = at.to_vec();
        let mut difference = |step: f64| -> Vec<f64> {
            point[parameter] = at[parameter] + step;
            objective(&point, &mut above);
            point[parameter] = at[parameter] - step;
            objective(&point, &mut below);
            above.iter().zip(&below).map(|(above, below)| (above - below) / (2.0 * step)).collect()
        };
        let step = 4e-3 * scale[parameter];
        let (coarse, fine) = (difference(step), difference(0.5 * step));
        for (row, (coarse, fine)) in coarse.iter().zip(&fine).enumerate() {
            matrix.set(row, parameter, (4.0 * fine - coarse) / 3.0);
        }
    }
    matrix.symmetrise();
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rosenbrock(x: &[f64], gradient: &mut [f64]) -> f64 {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        gradient[0] = -2.0 * a - 400.0 * x[0] * b;
        gradient[1] = 200.0 * b;
        a * a + 100.0 * b * b
    }

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        let minimum = minimise(&mut rosenbrock, &[-1.2, 1.0], identity(2));
        assert!(minimum.converged, "{minimum:?}");
        assert!((minimum.at[0] - 1.0).abs() < 1e-7 && (minimum.at[1] - 1.0).abs() < 1e-7, "{minimum:?}");
        let hessian = hessian(&mut rosenbrock, &minimum.at, &[1.0, 1.0]);
        for (row, column, expected) in [(0, 0, 802.0), (0, 1, -400.0), (1, 1, 200.0)] {
            assert!((hessian.get(row, column) - expected).abs() < 1e-5, "{hessian:?}");
        }
    }

    #[test]
    fn a_function_without_minimum_does_not_converge() {
        let mut falling = |x: &[f64], gradient: &mut [f64]| {
            gradient[0] = -1.0;
            -x[0]
        };
        assert!(!minimise(&mut falling, &[0.0], identity(1)).converged);
        let mut nowhere = |_: &[f64], _: &mut [f64]| f64::NAN;
        assert!(!minimise(&mut nowhere, &[0.0], identity(1)).converged);
    }
}
