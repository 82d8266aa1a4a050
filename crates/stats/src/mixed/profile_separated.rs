//! Profile intervals of fixed effects that separate the outcomes: infinite on one side.
use super::MixedError;
use super::data::MixedData;
use super::diagnosis::Unbounded;
use super::laplace::Laplace;
use super::layout::Layout;
use super::optimum::Mixed;
use super::profile::{AWAY, BETTER, Held, MixedInterval, OpenEnd, between, goal, missing};
use super::quadrature::Quadrature;
use super::result::{Method, MixedFit};
use super::search::{Minimum, minimise};
use crate::matrix::{Matrix, dot};

/// First value that is tried on either side of 0, and how often it is doubled.
const FIRST: f64 = 0.05;
const DOUBLINGS: usize = 12;

/// The profile interval of a fixed effect that runs away: values at which the best -2 log L is at most a chi-squared quantile above its limit.
/// `limit` is the fit of the rows that are not predicted perfectly; none if all are.
pub fn profile_separated(
    data: &MixedData,
    limit: Option<&MixedFit>,
    coefficient: &Unbounded,
    confidence: f64,
) -> Result<MixedInterval, MixedError> {
    let goal = goal(confidence)?;
    let column = data.columns.iter().position(|column| column.name == coefficient.name);
    let column = column.ok_or_else(|| missing("the coefficient is not among the model's"))?;
    let lowest = match limit {
        Some(fit) => fit.minus_two_log_likelihood.ok_or_else(|| missing("the other rows have no likelihood"))?,
        // Every row is predicted perfectly in the limit.
        None => 0.0,
    };
    let deviation = limit.and_then(MixedFit::deviation).unwrap_or(1.0).max(0.1);
    let layout = Layout::new(data)?;
    let search = Search { data, column, lowest, deviation, goal, increasing: coefficient.increasing };
    let end = match limit.filter(|fit| fit.method == Method::Quadrature) {
        Some(fit) => search.end(&mut Quadrature::new(data, &layout, fit.points))?,
        None => search.end(&mut Laplace::new(data, &layout))?,
    };
    let (open, other) = (Some(OpenEnd::Separated), end.is_none().then_some(OpenEnd::Flat));
    let name = coefficient.name.clone();
    Ok(match coefficient.increasing {
        true => MixedInterval { name, low: end, high: None, low_open: other, high_open: open },
        false => MixedInterval { name, low: None, high: end, low_open: open, high_open: other },
    })
}

/// A search of the finite end.
struct Search<'d> {
    data: &'d MixedData,
    column: usize,
    lowest: f64,
    /// Start of the search of the random effect's deviation.
    deviation: f64,
    goal: f64,
    increasing: bool,
}

impl Search<'_> {
    fn end<C: Mixed>(&self, criterion: &mut C) -> Result<Option<f64>, MixedError> {
        let unknown = || missing("the profile likelihood cannot be computed");
        // A start needs a prior, without which logistic regression runs away.
        let columns = self.data.columns();
        criterion.set_units(&vec![1.0; columns]);
        let (start, inverse) = criterion.start(self.deviation).ok_or_else(unknown)?;
        criterion.set_units(&vec![0.0; columns]);
        let count = criterion.theta().len();
        let mut held = Held::new(criterion, self.data, self.column, 0.0);
        let mut at: Vec<f64> = start[..count].to_vec();
        at.extend(held.others.iter().map(|direction| dot(direction, &start[count..])));
        let mut guess = Matrix::zeros(at.len());
        (0..count).for_each(|index| guess.set(index, index, inverse.get(index, index)));
        for (offset, direction) in held.others.iter().enumerate() {
            let size = direction.len();
            let along: f64 = (0..size)
                .flat_map(|row| (0..size).map(move |column| (row, column)))
                .map(|(row, column)| direction[row] * inverse.get(count + row, count + column) * direction[column])
                .sum();
            guess.set(count + offset, count + offset, along);
        }
        let free = vec![true; at.len()];
        let apart = start[..count].to_vec();
        let (from_caller, to_caller) = (&self.data.fixed.from_caller, &self.data.fixed.to_caller);
        let mut before = 0.0;
        let mut excess = |value: f64| -> Result<f64, MixedError> {
            // The caller's other coefficients stay as they were; along the orthonormal ones they would run away with this one.
            held.value = before;
            let mut caller = to_caller.times(&held.point(&at)[count..]);
            caller[self.column] = value;
            let beta = from_caller.times(&caller);
            (held.value, before) = (value, value);
            let others: Vec<f64> = held.others.iter().map(|direction| dot(direction, &beta)).collect();
            // The criterion is even in the deviation, so that a search that begins at 0 stays there. Far from the limit none may be best, near it that of the
            // limit.
            let mut best = None;
            for from in [at[..count].iter().map(|theta| theta.max(AWAY)).collect(), apart.clone()] {
                let begin: Vec<f64> = from.into_iter().chain(others.iter().copied()).collect();
                let found = minimise(&mut held, &begin, &free, &guess).ok_or_else(unknown)?;
                if best.as_ref().is_none_or(|best: &Minimum| found.value < best.value) {
                    best = Some(found);
                }
            }
            let found = best.ok_or_else(unknown)?;
            at.clone_from(&found.at);
            if found.value < self.lowest - BETTER {
                return Err(MixedError::NotTheBest { by: self.lowest - found.value });
            }
            Ok((found.value - self.lowest).max(0.0).sqrt() - self.goal)
        };
        // From zero outwards, by doubling: towards infinity the excess falls below the quantile.
        let mut root = excess(0.0)?;
        let outside = root > 0.0;
        let sign = if outside == self.increasing { 1.0 } else { -1.0 };
        let (mut previous, mut step) = (0.0, FIRST);
        for _ in 0..DOUBLINGS {
            let (value, before) = (sign * step, root);
            root = excess(value)?;
            if (root > 0.0) != outside {
                return between(&mut excess, (previous, before), (value, root)).map(Some);
            }
            previous = value;
            step *= 2.0;
        }
        Ok(None)
    }
}
