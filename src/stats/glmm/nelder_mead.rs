//! Nelder and Mead's simplex search with the rules and tolerances that lme4 1.1 uses by default, for
//! [`super::lme4`]: where a search on a jumping function ends depends on every one of them.
//!
//! They differ from the textbook's: a reflected point replaces the worst one as soon as it is better than *it*; an
//! expansion likewise; after a shrink all vertices are evaluated again; the search ends when every vertex is within a
//! tolerance of the centroid in every coordinate; points are pinned to the lower bounds.

const REFLECTION: f64 = 1.0;
const CONTRACTION: f64 = 0.5;
const EXPANSION: f64 = 2.0;
const SHRINKAGE: f64 = 0.5;
const LARGEST_EVALUATIONS: usize = 10_000;

/// The best point seen and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    pub(super) at: Vec<f64>,
    pub(super) value: f64,
    pub(super) evaluations: usize,
    pub(super) converged: bool,
}

struct Search<'f> {
    function: &'f mut dyn FnMut(&[f64]) -> f64,
    lower: &'f [f64],
    best: Best,
}

impl Search<'_> {
    fn evaluate(&mut self, at: &[f64]) -> f64 {
        let value = (self.function)(at);
        self.best.evaluations += 1;
        if value < self.best.value {
            self.best.value = value;
            self.best.at = at.to_vec();
        }
        value
    }

    /// `centre + scale * (centre - from)`, pinned; none when it coincides with either.
    fn reflect(&self, centre: &[f64], scale: f64, from: &[f64]) -> Option<Vec<f64>> {
        let close = |left: f64, right: f64| (left - right).abs() <= 1e-13 * (left.abs() + right.abs());
        let mut new = Vec::with_capacity(centre.len());
        let (mut at_centre, mut at_old) = (true, true);
        for ((centre, from), lower) in centre.iter().zip(from).zip(self.lower) {
            let value = (centre + scale * (centre - from)).max(*lower);
            at_centre &= close(value, *centre);
            at_old &= close(value, *from);
            new.push(value);
        }
        (!at_centre && !at_old).then_some(new)
    }
}

/// Minimises from `start` with first steps `steps`; stops at a radius below `tolerance` in each coordinate.
pub(super) fn minimise(
    function: &mut dyn FnMut(&[f64]) -> f64,
    start: &[f64],
    lower: &[f64],
    steps: &[f64],
    tolerance: &[f64],
) -> Best {
    let size = start.len();
    let best = Best { at: start.to_vec(), value: f64::INFINITY, evaluations: 0, converged: false };
    let mut search = Search { function, lower, best };
    let mut vertices: Vec<Vec<f64>> = vec![start.to_vec(); size + 1];
    for (index, step) in steps.iter().enumerate() {
        vertices[index + 1][index] += step;
    }
    let mut values: Vec<f64> = vertices.iter().map(|vertex| search.evaluate(vertex)).collect();
    while search.best.evaluations < LARGEST_EVALUATIONS {
        let (mut low, mut high) = (0, 0);
        for index in 1..=size {
            if values[index] < values[low] {
                low = index;
            }
            if values[index] > values[high] {
                high = index;
            }
        }
        let centre: Vec<f64> = (0..size)
            .map(|axis| (vertices.iter().map(|vertex| vertex[axis]).sum::<f64>() - vertices[high][axis]) / size as f64)
            .collect();
        let collapsed = (0..size).all(|axis| {
            let radius =
                vertices.iter().fold(0.0, |largest: f64, vertex| largest.max((vertex[axis] - centre[axis]).abs()));
            radius < tolerance[axis] || radius == 0.0
        });
        let reflected = if collapsed { None } else { search.reflect(&centre, REFLECTION, &vertices[high]) };
        let Some(reflected) = reflected else {
            search.best.converged = true;
            break;
        };
        let value = search.evaluate(&reflected);
        if value < values[low] {
            let Some(expanded) = search.reflect(&centre, EXPANSION, &vertices[high]) else {
                search.best.converged = true;
                break;
            };
            let further = search.evaluate(&expanded);
            if further < values[high] {
                (vertices[high], values[high]) = (expanded, further);
            } else {
                (vertices[high], values[high]) = (reflected, value);
            }
        } else if value < values[high] {
            (vertices[high], values[high]) = (reflected, value);
        } else {
            let scale = if values[high] <= value { -CONTRACTION } else { CONTRACTION };
            let Some(contracted) = search.reflect(&centre, scale, &vertices[high]) else {
                search.best.converged = true;
                break;
            };
            let nearer = search.evaluate(&contracted);
            if nearer < value && nearer < values[high] {
                (vertices[high], values[high]) = (contracted, nearer);
                continue;
            }
            let lowest = vertices[low].clone();
            let mut coincident = false;
            for (index, vertex) in vertices.iter_mut().enumerate() {
                if index != low {
                    match search.reflect(&lowest, -SHRINKAGE, vertex) {
                        Some(moved) => *vertex = moved,
                        None => coincident = true,
                    }
                }
            }
            if coincident {
                search.best.converged = true;
                break;
            }
            values = vertices.iter().map(|vertex| search.evaluate(vertex)).collect();
        }
    }
    search.best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_bowl_is_minimised_and_a_bound_is_kept() {
        let mut bowl = |x: &[f64]| (x[0] - 1.0).powi(2) + 10.0 * (x[1] + 2.0).powi(2);
        let best = minimise(&mut bowl, &[0.0, 0.0], &[0.0, f64::NEG_INFINITY], &[0.1, 0.1], &[1e-6, 1e-6]);
        assert!(best.converged && (best.at[0] - 1.0).abs() < 1e-5 && (best.at[1] + 2.0).abs() < 1e-5, "{best:?}");
        let mut slope = |x: &[f64]| x[0] + x[1] * x[1];
        let best = minimise(&mut slope, &[1.0, 0.5], &[0.0, f64::NEG_INFINITY], &[0.1, 0.1], &[1e-6, 1e-6]);
        assert!(best.at[0].abs() < 1e-5 && best.at[0] >= 0.0, "{best:?}");
    }
}
