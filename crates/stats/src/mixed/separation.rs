//! Separation: outcomes that a combination of fixed effects (or of fixed and random effects) predicts perfectly, so that
//! a coefficient has no finite estimate.
//!
//! A direction `d` separates when `x d >= 0` for every success and `x d <= 0` for every failure, and not all are zero
//! (Albert and Anderson 1984). It is found without tolerance games on a fit that runs away: the projection of the mean
//! success-minus-failure row on the cone of such directions is zero exactly if there is none, and projecting on that
//! cone is a non-negative least-squares problem (Moreau), solved by Lawson and Hanson's active sets.
use super::cells::Cells;
use crate::matrix::dot;

/// Relative size below which a projection counts as zero.
const ZERO: f64 = 1e-9;

/// A separating direction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Separation {
    /// Independent directions, in the cells' columns; along their sum every separated cell is predicted perfectly.
    pub(super) directions: Vec<Vec<f64>>,
    /// Cells that no direction predicts, i.e. that overlap.
    pub(super) overlapping: Vec<bool>,
}

/// Separation by the fixed effects; none if every direction has overlap.
pub(super) fn by_fixed_effects(data: &Cells) -> Option<Separation> {
    let mut overlapping = vec![true; data.len()];
    let mut directions = Vec::new();
    // A direction may lie on a face of the cone and leave cells undecided that another one, orthogonal, separates.
    while let Some(direction) = separating_direction(data, &overlapping) {
        let threshold = 1e-7 * dot(&direction, &direction).sqrt();
        let mut progress = false;
        for (cell, overlapping) in overlapping.iter_mut().enumerate() {
            if *overlapping && dot(data.cell(cell), &direction).abs() > threshold {
                *overlapping = false;
                progress = true;
            }
        }
        if !progress {
            break;
        }
        directions.push(direction);
    }
    (!directions.is_empty()).then_some(Separation { directions, overlapping })
}

fn separating_direction(data: &Cells, used: &[bool]) -> Option<Vec<f64>> {
    let columns = data.columns;
    let cells: Vec<usize> = (0..data.len()).filter(|&cell| used[cell]).collect();
    let mut mean = vec![0.0; columns];
    for &cell in &cells {
        let successes = data.successes[cell];
        let failures = data.trials[cell] - successes;
        let sign = f64::from(u8::from(successes > 0.0)) - f64::from(u8::from(failures > 0.0));
        mean.iter_mut().zip(data.cell(cell)).for_each(|(mean, x)| *mean += sign * x / cells.len() as f64);
    }
    let norm = dot(&mean, &mean).sqrt();
    if norm < ZERO {
        return None;
    }
    // Columns of the problem: minus the signed rows. The residual is the projection.
    let residual = nonnegative_residual(&mean, |residual| {
        let mut best: Option<(f64, Vec<f64>)> = None;
        for &cell in &cells {
            let along = dot(data.cell(cell), residual);
            let successes = data.successes[cell];
            let failures = data.trials[cell] - successes;
            for (present, sign) in [(successes > 0.0, 1.0), (failures > 0.0, -1.0)] {
                let violation = -sign * along;
                if present && best.as_ref().is_none_or(|(largest, _)| violation > *largest) {
                    best = Some((violation, data.cell(cell).iter().map(|x| -sign * x).collect()));
                }
            }
        }
        best
    });
    (dot(&residual, &residual).sqrt() > 1e-7 * norm.max(1e-3)).then_some(residual)
}

/// True when some fixed-effect direction, with a threshold of each group's own, predicts every outcome: then the
/// likelihood has no maximum at a finite random-effect variance. Groups with constant responses always can be predicted.
pub(super) fn by_groups(data: &Cells) -> bool {
    // The best pair of a mixed group: its lowest success minus its highest failure along a direction.
    let worst_pair = |direction: &[f64]| -> Option<(f64, Vec<f64>)> {
        let mut worst: Option<(f64, Vec<f64>)> = None;
        for group in 0..data.groups() {
            // Position along the direction, and the cell.
            let mut lowest: Option<(f64, usize)> = None;
            let mut highest: Option<(f64, usize)> = None;
            for cell in data.of_group(group) {
                let along = dot(data.cell(cell), direction);
                if data.successes[cell] > 0.0 && lowest.is_none_or(|(value, _)| along < value) {
                    lowest = Some((along, cell));
                }
                if data.successes[cell] < data.trials[cell] && highest.is_none_or(|(value, _)| along > value) {
                    highest = Some((along, cell));
                }
            }
            if let (Some((low, success)), Some((high, failure))) = (lowest, highest)
                && worst.as_ref().is_none_or(|(value, _)| low - high < *value)
            {
                let pair = data.cell(success).iter().zip(data.cell(failure)).map(|(one, zero)| one - zero).collect();
                worst = Some((low - high, pair));
            }
        }
        worst
    };
    let columns = data.columns;
    if worst_pair(&vec![0.0; columns]).is_none() {
        return true;
    }
    // A direction with every pair strictly positive exists unless 0 is in the convex hull of the pairs: minimise the
    // distance of (sum of pairs, sum of weights) from (0, 1) over non-negative weights.
    let mut target = vec![0.0; columns + 1];
    target[columns] = 1.0;
    let residual = nonnegative_residual(&target, |residual| {
        let direction: Vec<f64> = residual[..columns].iter().map(|value| -value).collect();
        worst_pair(&direction).map(|(margin, mut pair)| {
            pair.push(1.0);
            (residual[columns] - margin, pair)
        })
    });
    dot(&residual, &residual) > 1e-12
}

/// The residual of `min |target - A x|` over `x >= 0`, for a matrix given by an oracle: the column with the largest inner
/// product with a residual, and that product. Finite: active sets never repeat, and hold at most as many columns as rows.
fn nonnegative_residual(target: &[f64], mut oracle: impl FnMut(&[f64]) -> Option<(f64, Vec<f64>)>) -> Vec<f64> {
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut weights: Vec<f64> = Vec::new();
    let mut residual = target.to_vec();
    let norm = dot(target, target).sqrt();
    for _ in 0..1000 {
        let Some((product, column)) = oracle(&residual) else { break };
        let size = dot(&column, &column).sqrt();
        if product <= ZERO * size * norm || size == 0.0 {
            break;
        }
        columns.push(column);
        weights.push(0.0);
        loop {
            let Some(solution) = least_squares(&columns, target) else {
                // The new column depends on the active ones: nothing more can be won with it.
                columns.pop();
                weights.pop();
                return residual;
            };
            if solution.iter().all(|weight| *weight > 0.0) {
                weights = solution;
                break;
            }
            let step = weights
                .iter()
                .zip(&solution)
                .filter(|(_, new)| **new <= 0.0)
                .map(|(old, new)| old / (old - new))
                .fold(1.0, f64::min);
            for (weight, new) in weights.iter_mut().zip(&solution) {
                *weight += step * (new - *weight);
            }
            let keep: Vec<bool> =
                weights.iter().zip(&solution).map(|(weight, new)| !(*new <= 0.0 && *weight <= 1e-14)).collect();
            let mut flags = keep.iter();
            columns.retain(|_| flags.next().is_some_and(|keep| *keep));
            let mut flags = keep.iter();
            weights.retain(|_| flags.next().is_some_and(|keep| *keep));
            if columns.is_empty() {
                break;
            }
        }
        residual = target.to_vec();
        for (column, weight) in columns.iter().zip(&weights) {
            residual.iter_mut().zip(column).for_each(|(residual, value)| *residual -= weight * value);
        }
        if dot(&residual, &residual).sqrt() < ZERO * norm {
            break;
        }
    }
    residual
}

/// Least squares by modified Gram-Schmidt; none if the columns are dependent.
fn least_squares(columns: &[Vec<f64>], target: &[f64]) -> Option<Vec<f64>> {
    let count = columns.len();
    let mut orthogonal: Vec<Vec<f64>> = Vec::with_capacity(count);
    let mut upper = vec![vec![0.0; count]; count];
    for (index, column) in columns.iter().enumerate() {
        let mut rest = column.clone();
        // Twice is enough.
        for _ in 0..2 {
            for (other, basis) in orthogonal.iter().enumerate() {
                let along = dot(&rest, basis);
                upper[other][index] += along;
                rest.iter_mut().zip(basis).for_each(|(rest, basis)| *rest -= along * basis);
            }
        }
        let norm = dot(&rest, &rest).sqrt();
        if norm <= 1e-11 * dot(column, column).sqrt() {
            return None;
        }
        upper[index][index] = norm;
        orthogonal.push(rest.iter().map(|value| value / norm).collect());
    }
    let mut solution: Vec<f64> = orthogonal.iter().map(|basis| dot(basis, target)).collect();
    for index in (0..count).rev() {
        for other in index + 1..count {
            solution[index] -= upper[index][other] * solution[other];
        }
        solution[index] /= upper[index][index];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::super::data::MixedData;
    use super::*;

    fn data(response: &[f64], fixed: &[(&str, &[f64])], group: &[u64]) -> Cells {
        Cells::by_group(&MixedData::of_columns(response, fixed, group).unwrap()).unwrap().0
    }

    #[test]
    fn complete_quasi_and_absent_separation_are_told_apart() {
        let x = [-2.0, -1.0, 1.0, 2.0, 3.0, -3.0];
        let group = [0, 0, 1, 1, 2, 2];
        let complete = by_fixed_effects(&data(&[0.0, 0.0, 1.0, 1.0, 1.0, 0.0], &[("x", &x)], &group)).unwrap();
        assert!(complete.overlapping.iter().all(|overlapping| !overlapping));
        assert!(complete.directions[0][1] > 0.0);
        assert_eq!(by_fixed_effects(&data(&[0.0, 1.0, 0.0, 1.0, 1.0, 0.0], &[("x", &x)], &group)), None);
        // Quasi: at x = 0 both outcomes occur, elsewhere the sign decides.
        let x = [-2.0, 0.0, 0.0, 2.0, 3.0, -3.0];
        let quasi = by_fixed_effects(&data(&[0.0, 0.0, 1.0, 1.0, 1.0, 0.0], &[("x", &x)], &group)).unwrap();
        assert_eq!(quasi.overlapping.iter().filter(|overlapping| **overlapping).count(), 2);
    }

    #[test]
    fn an_oblique_direction_in_two_columns_is_found() {
        // y = 1 exactly if a + 2 b > 0.1, on a grid; no single column separates.
        let (mut a, mut b, mut y) = (Vec::new(), Vec::new(), Vec::new());
        for i in -5..=5 {
            for j in -5..=5 {
                let (left, right) = (f64::from(i) * 0.37, f64::from(j) * 0.21);
                a.push(left);
                b.push(right);
                y.push(f64::from(u8::from(left + 2.0 * right > 0.1)));
            }
        }
        let group: Vec<u64> = (0..y.len() as u64).map(|row| row % 7).collect();
        let found = by_fixed_effects(&data(&y, &[("a", &a), ("b", &b)], &group)).unwrap();
        assert!(found.overlapping.iter().all(|overlapping| !overlapping));
        // One outcome flipped in the middle of its side ends it.
        let flipped = y.iter().rposition(|y| *y == 1.0).unwrap();
        y[flipped] = 0.0;
        assert_eq!(by_fixed_effects(&data(&y, &[("a", &a), ("b", &b)], &group)), None);
    }

    #[test]
    fn groups_that_a_threshold_each_predicts_have_no_finite_variance() {
        // Group thresholds differ, so fixed effects alone do not separate.
        let x = [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0];
        let y = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        let group = [0, 0, 0, 1, 1, 1, 2, 2];
        let separated = data(&y, &[("x", &x)], &group);
        assert_eq!(by_fixed_effects(&separated), None);
        assert!(by_groups(&separated));
        // Equal rows with both outcomes in one group.
        let x = [0.0, 0.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0];
        assert!(!by_groups(&data(&y, &[("x", &x)], &group)));
        // Opposite orders in two groups.
        let y = [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0];
        let x = [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0];
        assert!(!by_groups(&data(&y, &[("x", &x)], &group)));
    }
}
