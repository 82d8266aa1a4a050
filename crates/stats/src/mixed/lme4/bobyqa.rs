//! A bounded trust-region search by quadratic interpolation in one dimension: what Powell's BOBYQA (The BOBYQA algorithm for
//! bound constrained optimization without derivatives, report DAMTP 2009/NA06) does with one variable. It is the first
//! stage's search of lme4.
//!
//! With one variable the three interpolation points determine the quadratic, so Powell's update of least change is plain
//! interpolation. What is left are the decisions: how far a step may go (`radius`), which point it replaces (the one whose
//! Lagrange polynomial is largest at the new point, distant ones preferred), when points are spread anew because the quadratic
//! cannot be trusted, and when the `resolution` becomes finer. The search ends at a resolution where the first stage's function
//! may be flat to rounding, or jump; the second stage begins where it ended, so the decisions are Powell's.

/// Evaluations after which the search stops where it is.
const LARGEST_EVALUATIONS: usize = 10_000;

/// An interpolation point and its value.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: f64,
    value: f64,
}

struct Search<F> {
    function: F,
    lower: f64,
    points: [Point; 3],
    /// Index of the best point.
    best: usize,
    resolution: f64,
    radius: f64,
    evaluations: usize,
    /// Evaluations when the resolution last changed, or when a step was longer than it.
    settled: usize,
    /// Distances of the last three values from the quadratic.
    errors: [f64; 3],
}

/// Next step after a look at the model.
enum Next {
    /// Another step.
    Step,
    /// A point this far from the best one, or further, should be replaced; else something else follows.
    Spread { beyond: f64, otherwise: Otherwise },
    /// The resolution is exhausted.
    Refine,
    /// Rounding has the last word.
    Stop,
}

/// Next step where the points lie close together.
enum Otherwise {
    Step,
    Refine,
}

/// Minimises over `at >= lower` from `start` with first steps of `first` and a last resolution of `last`; `start` lies at
/// least `first` above the bound.
pub(super) fn minimise(mut function: impl FnMut(f64) -> f64, start: f64, lower: f64, first: f64, last: f64) -> f64 {
    let mut points = [start, start + first, start - first].map(|at| Point { at, value: function(at) });
    if points[2].value < points[1].value {
        points.swap(1, 2);
    }
    let best = usize::from(points[1].value < points[0].value);
    let mut search = Search {
        function,
        lower,
        points,
        best,
        resolution: first,
        radius: first,
        evaluations: 3,
        settled: 3,
        errors: [0.0; 3],
    };
    loop {
        let short = search.exhaust();
        let Some(short) = short else { return search.points[search.best].at };
        if search.resolution <= last {
            // The last step was too short for its resolution, but not for the result.
            if let Some(at) = short {
                search.evaluate(at, false);
            }
            return search.points[search.best].at;
        }
        let ratio = search.resolution / last;
        let half = 0.5 * search.resolution;
        search.resolution = match ratio {
            ratio if ratio <= 16.0 => last,
            ratio if ratio <= 250.0 => ratio.sqrt() * last,
            _ => 0.1 * search.resolution,
        };
        search.radius = half.max(search.resolution);
        search.settled = search.evaluations;
    }
}

impl<F: FnMut(f64) -> f64> Search<F> {
    /// Steps at one resolution until it has nothing more to give: then the step that was too short for it, if that is why.
    /// None if the search is over.
    fn exhaust(&mut self) -> Option<Option<f64>> {
        loop {
            if self.evaluations >= LARGEST_EVALUATIONS {
                return None;
            }
            let (slope, curvature) = self.quadratic();
            let here = self.points[self.best];
            let newton = if curvature > 0.0 { slope.abs() / curvature } else { f64::INFINITY };
            let wanted = if slope == 0.0 { 0.0 } else { -slope.signum() * newton.min(self.radius) };
            if wanted.is_nan() {
                return None;
            }
            let target = (here.at + wanted).max(self.lower);
            let at_bound = here.at + wanted <= self.lower;
            let step = target - here.at;
            let length = step.abs().min(self.radius);
            let short = length < 0.5 * self.resolution;
            let next = if short {
                let inside = !at_bound && newton < self.radius;
                self.after_short_step(slope + curvature * step, curvature, inside, at_bound)
            } else {
                self.step(target, length)
            };
            let (beyond, otherwise) = match next {
                Next::Step => continue,
                Next::Refine => return Some(short.then_some(target)),
                Next::Stop => return None,
                Next::Spread { beyond, otherwise } => (beyond, otherwise),
            };
            match (self.furthest(beyond), otherwise) {
                (Some((far, distance)), _) => {
                    if short {
                        self.radius = self.limited((0.1 * self.radius).min(0.5 * distance));
                    }
                    self.spread(far, distance, length);
                }
                (None, Otherwise::Step) => {}
                (None, Otherwise::Refine) => return Some(short.then_some(target)),
            }
        }
    }

    /// Decides if the quadratic can be trusted when it says that there is nothing to win here.
    fn after_short_step(&self, slope: f64, curvature: f64, inside: bool, at_bound: bool) -> Next {
        let doubt = Next::Spread { beyond: 10.0 * self.resolution, otherwise: Otherwise::Refine };
        if self.evaluations <= self.settled + 2 {
            return doubt;
        }
        let error = self.errors.iter().fold(0.0_f64, |largest, error| largest.max(*error));
        let too_rough = inside && error > 0.125 * self.resolution * self.resolution * curvature;
        // At the bound the slope may be so small that an error of the quadratic hides a fall.
        let allowed = error / self.resolution;
        let hidden = at_bound && slope < allowed && slope + 0.5 * curvature * self.resolution < allowed;
        if too_rough || hidden { doubt } else { Next::Refine }
    }

    /// Evaluates a trust-region step and revises the radius and the points.
    fn step(&mut self, target: f64, length: f64) -> Next {
        let here = self.points[self.best];
        let predicted = self.predicted(target);
        let Some(mut replaced) = self.replaceable(target, here.at, Some(self.best)) else { return Next::Stop };
        let new = self.evaluate(target, length > self.resolution);
        if predicted >= 0.0 || predicted.is_nan() {
            if new.value < here.value {
                self.points[self.best] = new;
            }
            return Next::Stop;
        }
        let ratio = (new.value - here.value) / predicted;
        let half = 0.5 * self.radius;
        self.radius = self.limited(match ratio {
            ratio if ratio <= 0.1 => half.min(length),
            ratio if ratio <= 0.7 => half.max(length),
            _ => half.max(2.0 * length),
        });
        if new.value < here.value {
            replaced = self.replaceable(target, target, None).unwrap_or(replaced);
            self.best = replaced;
        }
        self.points[replaced] = new;
        if new.value <= here.value + 0.1 * predicted {
            return Next::Step;
        }
        let promising = ratio > 0.0 || self.radius.max(length) > self.resolution;
        let otherwise = if promising { Otherwise::Step } else { Otherwise::Refine };
        Next::Spread { beyond: (2.0 * self.radius).max(10.0 * self.resolution), otherwise }
    }

    /// Moves a far point to where its Lagrange polynomial is largest within reach of the best one.
    fn spread(&mut self, far: usize, distance: f64, length: f64) {
        let here = self.points[self.best].at;
        let reach = (0.1 * distance).min(self.radius).max(self.resolution);
        let between = 0.5 * (self.points[(far + 1) % 3].at + self.points[(far + 2) % 3].at);
        let inner = if (between - here).abs() < reach { between } else { here + reach };
        let mut target = here + reach;
        let mut largest = 0.0;
        for at in [here - reach, here + reach, inner] {
            let at = at.max(self.lower);
            let size = self.lagrange(far, at).abs();
            if size > largest {
                (target, largest) = (at, size);
            }
        }
        let new = self.evaluate(target, length > self.resolution);
        if new.value < self.points[self.best].value {
            self.best = far;
        }
        self.points[far] = new;
    }

    /// The function's value, and how far the quadratic was from it. Its error is noted before the point is used.
    fn evaluate(&mut self, at: f64, is_long: bool) -> Point {
        let new = Point { at, value: (self.function)(at) };
        self.evaluations += 1;
        let error = (new.value - self.points[self.best].value - self.predicted(at)).abs();
        self.errors = [error, self.errors[0], self.errors[1]];
        if is_long {
            self.settled = self.evaluations;
        }
        new
    }

    /// A radius hardly above the resolution is the resolution.
    fn limited(&self, radius: f64) -> f64 {
        if radius <= 1.5 * self.resolution { self.resolution } else { radius }
    }

    /// Slope at the best point, and curvature, of the quadratic through the points.
    fn quadratic(&self) -> (f64, f64) {
        let here = self.points[self.best];
        let [(near, first), (far, second)] = [1, 2].map(|offset| {
            let other = self.points[(self.best + offset) % 3];
            let distance = other.at - here.at;
            (distance, (other.value - here.value) / distance)
        });
        let half = (first - second) / (near - far);
        (first - half * near, 2.0 * half)
    }

    /// Change from the best value that the quadratic predicts.
    fn predicted(&self, at: f64) -> f64 {
        let (slope, curvature) = self.quadratic();
        let step = at - self.points[self.best].at;
        step * (slope + 0.5 * curvature * step)
    }

    /// The polynomial that is one at a point and zero at the other two.
    fn lagrange(&self, index: usize, at: f64) -> f64 {
        let others = [1, 2].map(|offset| self.points[(index + offset) % 3].at);
        others.iter().map(|other| (at - other) / (self.points[index].at - other)).product()
    }

    /// The point that a new one should replace; distances are from `centre`, in radii.
    fn replaceable(&self, new: f64, centre: f64, keep: Option<usize>) -> Option<usize> {
        let mut chosen = None;
        let mut largest = 0.0;
        for index in (0..3).filter(|index| Some(*index) != keep) {
            let distance = (self.points[index].at - centre) / self.radius;
            let weight = self.lagrange(index, new).powi(2) * distance.powi(4).max(1.0);
            if weight > largest {
                (chosen, largest) = (Some(index), weight);
            }
        }
        chosen
    }

    /// The point furthest from the best one, and its distance, if that is more than `beyond`.
    fn furthest(&self, beyond: f64) -> Option<(usize, f64)> {
        let here = self.points[self.best].at;
        let distances = self.points.iter().enumerate().map(|(index, point)| (index, (point.at - here).abs()));
        distances.filter(|(_, distance)| *distance > beyond).max_by(|left, right| left.1.total_cmp(&right.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smooth_functions_are_minimised_to_the_resolution() {
        for minimum in [0.05, 0.9, 1.0, 3.7, 40.0] {
            let mut count = 0;
            let found = minimise(
                |x| {
                    count += 1;
                    (x - minimum).powi(2) + 0.01 * (x - minimum).powi(4)
                },
                1.0,
                0.0,
                0.2,
                2e-7,
            );
            assert!((found - minimum).abs() < 4e-7 && count < 60, "{minimum}: {found} after {count}");
        }
    }

    #[test]
    fn a_minimum_at_the_bound_is_found_there() {
        assert_eq!(minimise(|x| x + x * x, 1.0, 0.0, 0.2, 2e-7), 0.0);
        assert!(minimise(|x| x * x, 1.0, 0.0, 0.2, 2e-7) < 2e-7);
    }

    #[test]
    fn jumps_flats_and_no_numbers_end_it() {
        let stairs = minimise(|x: f64| (10.0 * (x - 2.0).abs()).floor(), 1.0, 0.0, 0.2, 2e-7);
        assert!((1.0..=3.0).contains(&stairs));
        assert_eq!(minimise(|_| 1.0, 1.0, 0.0, 0.2, 2e-7), 1.0);
        assert!(minimise(|_| f64::NAN, 1.0, 0.0, 0.2, 2e-7).is_finite());
        assert!(minimise(|x: f64| -x, 1.0, 0.0, 0.2, 2e-7) > 1e3);
    }
}
