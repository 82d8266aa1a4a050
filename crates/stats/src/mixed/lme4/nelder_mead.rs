//! The simplex search of Nelder and Mead (A simplex method for function minimization, The Computer Journal 7, 1965), in the
//! variant that lme4's default optimiser has from NLopt.
//!
//! A simplex of `n + 1` points walks downhill: its worst vertex is reflected through the centroid of the others, further if
//! that is better than all (expansion), half-way if it is no improvement (contraction), and if nothing helps, all vertices move
//! towards the best one (shrinkage). Where such a search stops on a function with jumps depends on every detail, so the
//! details are those of NLopt's documentation and of what lme4's results show, where they differ from the paper of 1965:
//!
//! * A reflected point replaces the worst vertex as soon as it is better than *that*; the paper asks for better than the second
//!   worst.
//! * An expanded point is taken if it is better than the worst vertex, even if the reflected point is better still.
//! * A contraction must beat both the worst vertex and the reflected point.
//! * A vertex keeps its index in the list, and among equals the first is the best and the worst.
//! * Coordinates are pinned to their lower bounds. A move that rounding undoes in every coordinate ends the search.
//! * The search ends when every vertex is within a given distance of the centroid in every coordinate (the paper: when the
//!   values differ little).
//! * The result is the best point that was ever evaluated, not the best vertex.

/// Reflection coefficient (the paper's alpha): distance of a reflected point beyond the centroid, relative to the worst vertex's.
const REFLECTION: f64 = 1.0;
/// Expansion coefficient (gamma): distance of an expanded point beyond the centroid.
const EXPANSION: f64 = 2.0;
/// Contraction coefficient (beta): distance of a contracted point from the centroid.
const CONTRACTION: f64 = 0.5;
/// Shrinkage coefficient: share of the distance from the best vertex that is left.
const SHRINKAGE: f64 = 0.5;
/// Evaluations after which lme4 stops the search.
const LARGEST_EVALUATIONS: usize = 10_000;
/// Coordinates closer than this, relative to their sizes, are the same.
const ROUNDING: f64 = 1e-13;

/// The best point seen and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    pub(super) at: Vec<f64>,
    pub(super) value: f64,
    pub(super) evaluations: usize,
    pub(super) converged: bool,
}

/// A point of the simplex.
#[derive(Debug, Clone)]
struct Vertex {
    at: Vec<f64>,
    value: f64,
}

/// Kind of a step.
enum Step {
    Moved,
    /// The simplex is smaller than rounding.
    Collapsed,
}

/// The simplex and what it walks on.
struct Search<'f> {
    function: &'f mut dyn FnMut(&[f64]) -> f64,
    lower: &'f [f64],
    simplex: Vec<Vertex>,
    best: Best,
}

impl Search<'_> {
    fn evaluate(&mut self, at: Vec<f64>) -> Vertex {
        let value = (self.function)(&at);
        self.best.evaluations += 1;
        if value < self.best.value {
            self.best.value = value;
            self.best.at.clone_from(&at);
        }
        Vertex { at, value }
    }

    /// Indices of the best and the worst vertex.
    fn extremes(&self) -> (usize, usize) {
        let (mut best, mut worst) = (0, 0);
        for (index, vertex) in self.simplex.iter().enumerate() {
            if vertex.value < self.simplex[best].value {
                best = index;
            }
            if vertex.value > self.simplex[worst].value {
                worst = index;
            }
        }
        (best, worst)
    }

    /// Centroid of all vertices but one.
    fn centroid_without(&self, left_out: usize) -> Vec<f64> {
        let others = (self.simplex.len() - 1) as f64;
        let axes = 0..self.lower.len();
        axes.map(|axis| {
            let sum: f64 = self.simplex.iter().map(|vertex| vertex.at[axis]).sum();
            (sum - self.simplex[left_out].at[axis]) / others
        })
        .collect()
    }

    /// True if no vertex is further from the centroid than the tolerance, in any coordinate.
    fn is_small(&self, centroid: &[f64], tolerance: &[f64]) -> bool {
        centroid.iter().zip(tolerance).enumerate().all(|(axis, (centre, tolerance))| {
            let radius = self.simplex.iter().map(|vertex| (vertex.at[axis] - centre).abs()).fold(0.0, f64::max);
            radius < *tolerance || radius == 0.0
        })
    }

    /// `centre + scale * (centre - from)`, pinned to the bounds; none if that is where it came from, or the centre.
    fn through(&self, centre: &[f64], scale: f64, from: &[f64]) -> Option<Vec<f64>> {
        let same = |left: &[f64], right: &[f64]| {
            left.iter().zip(right).all(|(left, right)| (left - right).abs() <= ROUNDING * (left.abs() + right.abs()))
        };
        let places = centre.iter().zip(from).zip(self.lower);
        let new: Vec<f64> =
            places.map(|((centre, from), lower)| (centre + scale * (centre - from)).max(*lower)).collect();
        (!same(&new, centre) && !same(&new, from)).then_some(new)
    }

    /// One reflection and what follows from it.
    fn step(&mut self, centroid: &[f64]) -> Step {
        let (best, worst) = self.extremes();
        let Some(reflected) = self.through(centroid, REFLECTION, &self.simplex[worst].at) else {
            return Step::Collapsed;
        };
        let reflected = self.evaluate(reflected);
        if reflected.value < self.simplex[best].value {
            let Some(expanded) = self.through(centroid, EXPANSION, &self.simplex[worst].at) else {
                return Step::Collapsed;
            };
            let expanded = self.evaluate(expanded);
            self.simplex[worst] = if expanded.value < self.simplex[worst].value { expanded } else { reflected };
            return Step::Moved;
        }
        if reflected.value < self.simplex[worst].value {
            self.simplex[worst] = reflected;
            return Step::Moved;
        }
        // No improvement, so the contraction is on the worst vertex's side. (NLopt's other side needs a reflected point
        // that is better than the worst vertex, which was taken above; a value that is no number goes there too.)
        let side = if self.simplex[worst].value <= reflected.value { -CONTRACTION } else { CONTRACTION };
        let Some(contracted) = self.through(centroid, side, &self.simplex[worst].at) else {
            return Step::Collapsed;
        };
        let contracted = self.evaluate(contracted);
        if contracted.value < reflected.value && contracted.value < self.simplex[worst].value {
            self.simplex[worst] = contracted;
            return Step::Moved;
        }
        self.shrink(best)
    }

    /// Moves all vertices towards the best one and evaluates all of them again, the best one too.
    fn shrink(&mut self, best: usize) -> Step {
        let towards = self.simplex[best].at.clone();
        let mut moved = Vec::with_capacity(self.simplex.len());
        for (index, vertex) in self.simplex.iter().enumerate() {
            if index == best {
                moved.push(towards.clone());
                continue;
            }
            let Some(nearer) = self.through(&towards, -SHRINKAGE, &vertex.at) else { return Step::Collapsed };
            moved.push(nearer);
        }
        self.simplex = moved.into_iter().map(|at| self.evaluate(at)).collect();
        Step::Moved
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
    let best = Best { at: start.to_vec(), value: f64::INFINITY, evaluations: 0, converged: false };
    let mut search = Search { function, lower, simplex: Vec::with_capacity(start.len() + 1), best };
    let first = search.evaluate(start.to_vec());
    search.simplex.push(first);
    for (axis, step) in steps.iter().enumerate() {
        let mut at = start.to_vec();
        at[axis] += step;
        let vertex = search.evaluate(at);
        search.simplex.push(vertex);
    }
    while search.best.evaluations < LARGEST_EVALUATIONS {
        let (_, worst) = search.extremes();
        let centroid = search.centroid_without(worst);
        if search.is_small(&centroid, tolerance) || matches!(search.step(&centroid), Step::Collapsed) {
            search.best.converged = true;
            break;
        }
    }
    search.best
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: f64 = f64::NEG_INFINITY;

    #[test]
    fn a_smooth_bowl_is_minimised_and_a_bound_is_kept() {
        let mut bowl = |x: &[f64]| (x[0] - 1.0).powi(2) + 10.0 * (x[1] + 2.0).powi(2);
        let best = minimise(&mut bowl, &[0.0, 0.0], &[0.0, FREE], &[0.1, 0.1], &[1e-6, 1e-6]);
        assert!(best.converged && (best.at[0] - 1.0).abs() < 1e-5 && (best.at[1] + 2.0).abs() < 1e-5, "{best:?}");
        let mut slope = |x: &[f64]| x[0] + x[1] * x[1];
        let best = minimise(&mut slope, &[1.0, 0.5], &[0.0, FREE], &[0.1, 0.1], &[1e-6, 1e-6]);
        assert!(best.at[0].abs() < 1e-5 && best.at[0] >= 0.0, "{best:?}");
    }

    /// The moves themselves, on the line `x`: by hand.
    #[test]
    fn the_moves_are_reflection_expansion_contraction_and_shrinkage() {
        let mut seen = Vec::new();
        let mut line = |x: &[f64]| {
            seen.push(x[0]);
            (x[0] - 0.45).abs()
        };
        // Vertices 1 and 0.9, on the way to 0.45: the worst (1) is reflected through 0.9 to 0.8, which is best: expanded to 0.7, taken. Then
        // 0.9 through 0.7 to 0.5 (best) and 0.3 (better than 0.9: taken, although 0.5 is better). Then 0.7 through 0.3
        // to -0.1, no improvement: contracted to 0.5.
        minimise(&mut line, &[1.0], &[FREE], &[-0.1], &[0.01]);
        let expected = [1.0, 0.9, 0.8, 0.7, 0.5, 0.3, -0.1, 0.5];
        let equal = seen.iter().zip(expected).all(|(seen, expected)| (seen - expected).abs() < 1e-12);
        assert!(seen.len() > expected.len() && equal, "{seen:?}");

        let mut seen = Vec::new();
        // The left point alone is good: everything shrinks towards it, and it is evaluated again.
        let mut cliff = |x: &[f64]| {
            seen.push(x[0]);
            if x[0] == 0.0 { 0.0 } else { 1.0 }
        };
        let best = minimise(&mut cliff, &[0.0], &[FREE], &[1.0], &[0.6]);
        assert_eq!(seen, [0.0, 1.0, -1.0, 0.5, 0.0, 0.5]);
        assert!(best.converged && best.at == [0.0] && best.evaluations == 6);
    }

    #[test]
    fn values_that_are_no_numbers_do_not_hang_it() {
        let mut nowhere = |_: &[f64]| f64::NAN;
        let best = minimise(&mut nowhere, &[1.0, 2.0], &[FREE; 2], &[0.1, 0.1], &[1e-3, 1e-3]);
        assert!(best.evaluations <= LARGEST_EVALUATIONS + 3);
        assert_eq!(best.at, [1.0, 2.0]);
    }
}
