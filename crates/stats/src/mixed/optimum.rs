//! Minimum of a mixed model's criterion, with exact zeros on the border.
use super::data::MixedData;
use super::gaussian::Gaussian;
use super::laplace::{Criterion, Laplace, logistic};
use super::search::{Minimum, curvature, minimise, polish};
use super::theta::Theta;
use crate::matrix::Matrix;

/// Deviations from which a search starts.
const STARTS: [f64; 2] = [0.7, 0.15];

/// Deviation from which a second minimum is looked for, and the one from which a first minimum is far enough for that. Where groups nearly always
/// agree, Laplace's criterion of several factors can have two, and the nearer one need not be the lower.
const FAR_START: f64 = 8.0;
const FAR: f64 = 2.5;

/// Diagonals of theta that are tried as 0.
const TRIED_AS_ZERO: f64 = 0.05;

/// Rise of the criterion that an exact zero may cost.
const SAME: f64 = 1e-8;

/// Rounds of zeros and polishing, and the decrease that calls for another one.
const MOST_ROUNDS: usize = 4;
const ROUND: f64 = 1e-9;

/// Step from the border and the curvature that counts as falling there.
const STEP: f64 = 1e-3;
const FALLING: f64 = 1e-3;

/// Most evaluations of the criterion in a search: bobyqa's in lme4, and more for every parameter, because a Hessian takes two for each.
const MOST_EVALUATIONS: usize = 10_000;
const MOST_FOR_PARAMETER: usize = 100;

/// A criterion that is no number any more after so many evaluations, which ends every search.
struct Counted<'c, C> {
    criterion: &'c mut C,
    made: usize,
    most: usize,
}

impl<C: Mixed> Counted<'_, C> {
    fn is_exhausted(&self) -> bool {
        self.made >= self.most
    }
}

impl<C: Mixed> Criterion for Counted<'_, C> {
    fn evaluate(&mut self, at: &[f64], gradient: Option<&mut [f64]>) -> Option<f64> {
        if self.is_exhausted() {
            return None;
        }
        self.made += 1;
        self.criterion.evaluate(at, gradient)
    }
}

impl<C: Mixed> Mixed for Counted<'_, C> {
    fn theta(&self) -> &Theta {
        self.criterion.theta()
    }

    fn start(&mut self, deviation: f64) -> Option<(Vec<f64>, Matrix)> {
        if self.is_exhausted() {
            return None;
        }
        self.made += 1;
        self.criterion.start(deviation)
    }

    fn parameters(&self) -> usize {
        self.criterion.parameters()
    }

    fn may_have_far_minimum(&self, at: &[f64]) -> bool {
        self.criterion.may_have_far_minimum(at)
    }
}

/// Criteria whose first parameters are theta.
pub(super) trait Mixed: Criterion {
    fn theta(&self) -> &Theta;
    /// A start and a guess of the inverse Hessian.
    fn start(&mut self, deviation: f64) -> Option<(Vec<f64>, Matrix)>;
    /// Number of parameters of the search.
    fn parameters(&self) -> usize;
    /// True if there may be another minimum at larger deviations than those of a minimum.
    fn may_have_far_minimum(&self, _at: &[f64]) -> bool {
        false
    }
    /// Sets the units of the log-F priors, by coefficient; models without them have none to set.
    fn set_units(&mut self, _units: &[f64]) {}
}

impl Mixed for Laplace<'_> {
    fn theta(&self) -> &Theta {
        &self.theta
    }

    fn start(&mut self, deviation: f64) -> Option<(Vec<f64>, Matrix)> {
        let mut at = self.theta.start(deviation);
        let lambda = self.theta.factors(&at);
        at.extend(logistic_regression(self.system.data, &self.units));
        self.modes.fill(0.0);
        self.evaluate(&at, None)?;
        let information = self.information(&lambda);
        let inverse = information.cholesky()?.inverse();
        Some((at, guess(self.system.data, &self.theta, Some(&inverse))))
    }

    fn parameters(&self) -> usize {
        self.theta.len() + self.system.data.columns()
    }

    fn may_have_far_minimum(&self, at: &[f64]) -> bool {
        self.system.data.groupings.len() > 1
            && (0..self.theta.len()).any(|index| self.theta.is_diagonal(index) && at[index] > FAR)
    }

    fn set_units(&mut self, units: &[f64]) {
        self.units = units.to_vec();
    }
}

impl Mixed for Gaussian<'_> {
    fn theta(&self) -> &Theta {
        &self.theta
    }

    fn start(&mut self, deviation: f64) -> Option<(Vec<f64>, Matrix)> {
        Some((self.theta.start(deviation), guess(self.system.data, &self.theta, None)))
    }

    fn parameters(&self) -> usize {
        self.theta.len()
    }
}

/// A guess of the inverse Hessian of (theta, beta).
fn guess(data: &MixedData, theta: &Theta, beta: Option<&Matrix>) -> Matrix {
    let count = theta.len();
    let mut inverse = Matrix::zeros(count + beta.map_or(0, Matrix::size));
    for (index, entry) in theta.entries.iter().enumerate() {
        inverse.set(index, index, 1.0 / data.groupings[entry.factor].copies.iter().sum::<f64>());
    }
    if let Some(beta) = beta {
        for row in 0..beta.size() {
            for column in 0..beta.size() {
                inverse.set(count + row, count + column, 0.5 * beta.get(row, column));
            }
        }
    }
    inverse
}

/// The minimum in canonical form. A singular one is searched for from a second start too, because the criterion may have
/// another minimum inside. None where the criterion is no number.
pub(super) fn best<C: Mixed>(criterion: &mut C) -> Option<Minimum> {
    let most = MOST_EVALUATIONS + MOST_FOR_PARAMETER * criterion.parameters();
    best_within(criterion, most)
}

/// As [`best`], with at most so many evaluations.
fn best_within<C: Mixed>(criterion: &mut C, most: usize) -> Option<Minimum> {
    let criterion = &mut Counted { criterion, made: 0, most };
    let mut best: Option<Minimum> = None;
    let mut evaluations = 0;
    for deviation in STARTS {
        let Some((start, inverse)) = criterion.start(deviation) else { continue };
        let free = vec![true; start.len()];
        let Some(mut found) = minimise(criterion, &start, &free, &inverse) else { continue };
        if best.as_ref().is_some_and(|best| found.is_same(best)) {
            evaluations += found.evaluations;
            break;
        }
        let border = settle(criterion, &mut found);
        evaluations += found.evaluations;
        if best.as_ref().is_none_or(|best| found.value < best.value - SAME) {
            best = Some(found);
        }
        if !border.contains(&true) {
            break;
        }
    }
    if let Some(near) = best.as_mut().filter(|near| criterion.may_have_far_minimum(&near.at))
        && let Some((start, inverse)) = criterion.start(FAR_START)
        && let Some(mut found) = minimise(criterion, &start, &vec![true; start.len()], &inverse)
    {
        if !found.is_same(near) && found.value < near.value - SAME {
            settle(criterion, &mut found);
            *near = Minimum { evaluations: 0, ..found.clone() };
        }
        evaluations += found.evaluations;
    }
    if let Some(best) = &mut best {
        best.evaluations = evaluations;
        if criterion.is_exhausted() {
            (best.converged, best.stopped_after) = (false, Some(most));
        }
    }
    best
}

/// The minimum of a model with one random effect without it, where that is a local minimum of the criterion.
pub(super) fn without_effect<C: Mixed>(criterion: &mut C) -> Option<Minimum> {
    let (start, inverse) = criterion.start(0.0)?;
    let mut free = vec![true; start.len()];
    free[0] = false;
    let mut found = minimise(criterion, &start, &free, &inverse)?;
    polish(criterion, &mut found, &free)?;
    // The criterion is even in the deviation: its slope at a small one has the sign of the curvature at 0.
    let mut near = found.at.clone();
    near[0] = STEP;
    let mut slope = vec![0.0; near.len()];
    criterion.evaluate(&near, Some(&mut slope))?;
    (slope[0] > 0.0).then_some(found)
}

/// The minimum by another order of the random effects, if the search did not converge. Where a column of the factor shrinks to
/// 0 while those below it do not, the criterion has a curved valley; with the largest variances first there is none.
pub(super) fn by_pivots<C: Mixed>(
    criterion: &mut C,
    data: &MixedData,
    minimum: Minimum,
    solve: &dyn Fn(&MixedData) -> Option<Minimum>,
) -> Minimum {
    if minimum.converged || minimum.stopped_after.is_some() {
        return minimum;
    }
    let theta = criterion.theta().clone();
    let orders = theta.pivots(&minimum.at[..theta.len()]);
    let Some(mut found) = solve(&data.reordered(&orders)) else { return minimum };
    found.evaluations += minimum.evaluations;
    if found.value > minimum.value + SAME {
        return minimum;
    }
    let restored = theta.restored(&found.at[..theta.len()], &orders);
    found.at[..theta.len()].copy_from_slice(&restored);
    let free = free_of(&theta, &found.at);
    refresh(criterion, &mut found, &free);
    if curvature(criterion, &mut found, &free).is_none() {
        found.converged = false;
    }
    found
}

/// Puts theta into canonical form, tries small standard deviations as exact zeros, polishes over what is left, and leaves zeros
/// again along which the criterion falls. True for parameters on the border.
fn settle<C: Mixed>(criterion: &mut C, found: &mut Minimum) -> Vec<bool> {
    let theta = criterion.theta().clone();
    let mut free = vec![true; found.at.len()];
    for _ in 0..MOST_ROUNDS {
        let before = found.value;
        let mut changed = try_zeros(criterion, &theta, found);
        free = free_of(&theta, &found.at);
        refresh(criterion, found, &free);
        if polish(criterion, found, &free).is_none() {
            found.converged = false;
        }
        found.at = canonical(&theta, &found.at, 0.0);
        changed |= escape(criterion, &theta, found, &free);
        // Polishing may have come near the border only now.
        let near = |index: usize| theta.is_diagonal(index) && found.at[index] > 0.0 && found.at[index] < TRIED_AS_ZERO;
        if !changed && (found.value > before - ROUND || !(0..theta.len()).any(near)) {
            break;
        }
    }
    free.iter().map(|free| !free).collect()
}

fn canonical(theta: &Theta, at: &[f64], zero: f64) -> Vec<f64> {
    let mut result = theta.canonical(&at[..theta.len()], zero);
    result.extend_from_slice(&at[theta.len()..]);
    result
}

fn free_of(theta: &Theta, at: &[f64]) -> Vec<bool> {
    let mut free: Vec<bool> = theta.on_border(&at[..theta.len()]).iter().map(|border| !border).collect();
    free.resize(at.len(), true);
    free
}

/// Evaluates at the minimum's point.
fn refresh<C: Mixed>(criterion: &mut C, found: &mut Minimum, free: &[bool]) {
    let mut gradient = vec![0.0; found.at.len()];
    if let Some(value) = criterion.evaluate(&found.at, Some(&mut gradient)) {
        gradient.iter_mut().zip(free).filter(|(_, free)| !**free).for_each(|(slope, _)| *slope = 0.0);
        (found.value, found.gradient) = (value, gradient);
    }
}

/// Sets small diagonals to 0 where the criterion does not rise; true if there was one.
fn try_zeros<C: Mixed>(criterion: &mut C, theta: &Theta, found: &mut Minimum) -> bool {
    found.at = canonical(theta, &found.at, 0.0);
    let mut small: Vec<f64> =
        (0..theta.len()).filter(|&index| theta.is_diagonal(index)).map(|index| found.at[index]).collect();
    small.retain(|value| *value > 0.0 && *value < TRIED_AS_ZERO);
    small.sort_by(f64::total_cmp);
    let mut accepted = false;
    for zero in small {
        let start = canonical(theta, &found.at, zero);
        // Other columns turn when one becomes 0, so the old curvature is no guide.
        let Some((_, inverse)) = criterion.start(STARTS[0]) else { continue };
        let Some(tried) = minimise(criterion, &start, &free_of(theta, &start), &inverse) else { continue };
        let evaluations = found.evaluations + tried.evaluations;
        if tried.value <= found.value + SAME {
            *found = tried;
            found.at = canonical(theta, &found.at, 0.0);
            accepted = true;
        }
        found.evaluations = evaluations;
    }
    accepted
}

/// Leaves the border where the criterion falls from it: it is even in a column of zeros, so the curvature there decides.
fn escape<C: Mixed>(criterion: &mut C, theta: &Theta, found: &mut Minimum, free: &[bool]) -> bool {
    let mut gradient = vec![0.0; found.at.len()];
    for index in (0..theta.len()).filter(|&index| !free[index] && theta.is_diagonal(index)) {
        let column = theta.entries[index];
        let own: Vec<usize> = (0..theta.len())
            .filter(|&other| {
                theta.entries[other].factor == column.factor && theta.entries[other].column == column.column
            })
            .collect();
        let mut curvature = Matrix::zeros(own.len());
        for (row, &slot) in own.iter().enumerate() {
            let mut at = found.at.clone();
            at[slot] = STEP;
            found.evaluations += 1;
            if criterion.evaluate(&at, Some(&mut gradient)).is_none() {
                return false;
            }
            own.iter().enumerate().for_each(|(other, &slot)| curvature.set(row, other, gradient[slot] / STEP));
        }
        curvature.symmetrise();
        let (values, vectors) = curvature.eigen();
        let Some(lowest) = (0..own.len()).min_by(|&left, &right| values[left].total_cmp(&values[right])) else {
            continue;
        };
        if values[lowest] >= -FALLING {
            continue;
        }
        let mut start = found.at.clone();
        own.iter().enumerate().for_each(|(row, &slot)| start[slot] = 0.1 * vectors.get(row, lowest));
        let Some((_, inverse)) = criterion.start(STARTS[0]) else { continue };
        let Some(tried) = minimise(criterion, &start, &vec![true; start.len()], &inverse) else { continue };
        let evaluations = found.evaluations + tried.evaluations;
        let better = tried.value < found.value - SAME;
        if better {
            *found = tried;
        }
        found.evaluations = evaluations;
        if better {
            return true;
        }
    }
    false
}

/// Coefficients of the orthonormal columns without random effects.
fn logistic_regression(data: &MixedData, units: &[f64]) -> Vec<f64> {
    let columns = data.columns();
    let mut beta = vec![0.0; columns];
    for _ in 0..25 {
        let mut information = Matrix::zeros(columns);
        let mut slope = vec![0.0; columns];
        for cell in 0..data.cells() {
            let x = data.fixed.cell(cell);
            let (_, mean) = logistic(x.iter().zip(&beta).map(|(x, beta)| x * beta).sum());
            information.add_outer(data.weight[cell] * mean * (1.0 - mean), x);
            let residual = data.total[cell] - data.weight[cell] * mean;
            slope.iter_mut().zip(x).for_each(|(slope, x)| *slope += residual * x);
        }
        // A start needs no exactness: a little ridge keeps separated data with a prior finite.
        let ridge = if units.iter().any(|one| *one > 0.0) { 0.2 } else { 1e-8 * data.rows as f64 };
        (0..columns).for_each(|column| information.add(column, column, ridge));
        slope.iter_mut().zip(&beta).for_each(|(slope, beta)| *slope -= ridge * beta);
        let Some(factor) = information.cholesky() else { break };
        let step = factor.solve(&slope);
        let longest = step.iter().fold(0.0_f64, |longest, step| longest.max(step.abs()));
        let length = if longest > 2.0 { 2.0 / longest } else { 1.0 };
        beta.iter_mut().zip(&step).for_each(|(beta, step)| *beta += length * step);
        if longest < 1e-8 {
            break;
        }
    }
    beta
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layout;
    use super::super::tests::{data, paired, simulated};
    use super::super::{Family, Frame, MixedDiagnosis, MixedOptions, fit};
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::time::{Duration, Instant};

    /// Sums over so many rows are not known to the last digits, which steps that are looked at too closely wait for.
    #[test]
    fn many_rows_without_variation_are_fitted_soon() {
        const QUESTIONS: usize = 50_000;
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let (mut question, mut run, mut correct) = (vec![], vec![], vec![]);
        for index in 0..QUESTIONS {
            for (name, chance) in [("a", 0.60), ("b", 0.63)] {
                question.push(format!("q{index}"));
                run.push(name);
                correct.push(f64::from(u8::from(random.random_bool(chance))));
            }
        }
        let mut frame = Frame::new();
        frame.texts("question", question.iter().map(String::as_str)).unwrap();
        frame.texts("run", run.iter().copied()).unwrap();
        frame.number("correct", correct).unwrap();
        let data = data("correct ~ run + (1 | question)", &frame, Family::Binomial).unwrap();
        let begun = Instant::now();
        let layout = Layout::new(&data).unwrap();
        let found = best(&mut Laplace::new(&data, &layout)).unwrap();
        assert!(found.converged && found.evaluations < 200, "{found:?}");
        // It takes one or two; it took minutes.
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    }

    /// Two minima, at a small and at a large deviation: the criterion of questions that mostly have both answers right or both wrong.
    #[test]
    fn the_lower_of_two_minima_is_found() {
        let mut far = 0;
        for (counts, clusters) in [([120, 66, 9, 25], 40), ([300, 200, 9, 25], 30), ([150, 30, 6, 14], 20)] {
            let data = data("correct ~ run + (1 | item) + (1 | cluster)", &paired(counts, clusters), Family::Binomial);
            let data = data.unwrap();
            let layout = Layout::new(&data).unwrap();
            let found = best(&mut Laplace::new(&data, &layout)).unwrap();
            for deviation in [0.15, 0.7, 2.0, 4.0, 8.0, 12.0] {
                let mut criterion = Laplace::new(&data, &layout);
                let (start, inverse) = criterion.start(deviation).unwrap();
                let free = vec![true; start.len()];
                let other = minimise(&mut criterion, &start, &free, &inverse).unwrap();
                assert!(found.value < other.value + 1e-4, "{counts:?} from {deviation}: {found:?} {other:?}");
                far += usize::from(deviation < 1.0 && other.value > found.value + 1.0);
            }
        }
        // Without a second minimum in any of them the test would hold nothing.
        assert!(far > 0);
    }

    #[test]
    fn a_search_ends_at_its_limit_of_evaluations() {
        let data = data("correct ~ model*variant + (1 | template)", &simulated(12, 2, 3), Family::Binomial).unwrap();
        let layout = Layout::new(&data).unwrap();
        let whole = best(&mut Laplace::new(&data, &layout)).unwrap();
        assert!(whole.converged && whole.stopped_after.is_none(), "{whole:?}");
        let cut = best_within(&mut Laplace::new(&data, &layout), 5).unwrap();
        assert_eq!((cut.converged, cut.stopped_after), (false, Some(5)));
        // A limit that is not met changes no bit.
        let same = best_within(&mut Laplace::new(&data, &layout), 100_000).unwrap();
        assert_eq!((same.at, same.value), (whole.at, whole.value));
        let said = MixedDiagnosis::Stopped { evaluations: 5 }.to_string();
        assert!(said.starts_with("not converged") && said.contains("limit of 5 evaluations"), "{said}");
        assert!(fit(&data, &MixedOptions::default()).unwrap().converged);
    }
}
