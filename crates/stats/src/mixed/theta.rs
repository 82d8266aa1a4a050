//! Relative covariance factors of the random effects.
use super::data::MixedData;

/// Places of the parameters theta in the lower triangular factors, column by column within every term, as in lme4.
#[derive(Debug, Clone)]
pub(super) struct Theta {
    pub(super) entries: Vec<Entry>,
    /// Random effects of a group, by grouping factor.
    widths: Vec<usize>,
}

/// A free number of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) factor: usize,
    /// Index of the block within the grouping factor.
    pub(super) block: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Theta {
    pub(super) fn new(data: &MixedData) -> Self {
        let mut entries = Vec::new();
        for (factor, grouping) in data.groupings.iter().enumerate() {
            for (block, terms) in grouping.blocks.iter().enumerate() {
                let end = terms.start + terms.columns.len();
                for column in terms.start..end {
                    let last = if terms.independent { column + 1 } else { end };
                    entries.extend((column..last).map(|row| Entry { factor, block, row, column }));
                }
            }
        }
        Theta { entries, widths: data.groupings.iter().map(|grouping| grouping.width).collect() }
    }

    /// Number of parameters.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// True for parameters on a diagonal.
    pub(super) fn is_diagonal(&self, index: usize) -> bool {
        self.entries[index].row == self.entries[index].column
    }

    /// Parameters of uncorrelated effects of a relative standard deviation.
    pub(super) fn start(&self, deviation: f64) -> Vec<f64> {
        (0..self.len()).map(|index| if self.is_diagonal(index) { deviation } else { 0.0 }).collect()
    }

    /// The factor of every grouping factor, row-major.
    pub(super) fn factors(&self, theta: &[f64]) -> Vec<Vec<f64>> {
        let mut factors: Vec<Vec<f64>> = self.widths.iter().map(|width| vec![0.0; width * width]).collect();
        for (entry, value) in self.entries.iter().zip(theta) {
            factors[entry.factor][entry.row * self.widths[entry.factor] + entry.column] = *value;
        }
        factors
    }

    /// Blocks with the indices of their parameters, their first column and their size.
    fn blocks(&self) -> Vec<(Vec<usize>, usize, usize)> {
        let mut keys: Vec<(usize, usize)> = self.entries.iter().map(|entry| (entry.factor, entry.block)).collect();
        keys.dedup();
        let of = |(factor, block): (usize, usize)| {
            let own: Vec<usize> = (0..self.len())
                .filter(|&index| (self.entries[index].factor, self.entries[index].block) == (factor, block))
                .collect();
            let first = own.iter().map(|&index| self.entries[index].row).min().unwrap_or(0);
            let size = own.iter().map(|&index| self.entries[index].row + 1 - first).max().unwrap_or(0);
            (own, first, size)
        };
        keys.into_iter().map(of).collect()
    }

    /// The covariance of a block from its parameters, row-major.
    fn covariance(&self, theta: &[f64], own: &[usize], first: usize, size: usize) -> Vec<f64> {
        let mut lower = vec![0.0; size * size];
        for &index in own {
            lower[(self.entries[index].row - first) * size + self.entries[index].column - first] = theta[index];
        }
        let mut covariance = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..size {
                covariance[row * size + column] =
                    (0..size).map(|inner| lower[row * size + inner] * lower[column * size + inner]).sum();
            }
        }
        covariance
    }

    /// The parameters of the same covariances with no negative diagonal; a column whose diagonal is at most `zero` becomes 0.
    pub(super) fn canonical(&self, theta: &[f64], zero: f64) -> Vec<f64> {
        let mut result = theta.to_vec();
        for (own, first, size) in self.blocks() {
            let lower = factor(&self.covariance(theta, &own, first, size), size, zero);
            for &index in &own {
                let Entry { row, column, .. } = self.entries[index];
                result[index] = lower[(row - first) * size + column - first];
            }
        }
        result
    }

    /// By block, its columns in the order in which a pivoted factorisation takes them: the largest remaining variance first.
    pub(super) fn pivots(&self, theta: &[f64]) -> Vec<Vec<usize>> {
        let order = |(own, first, size): (Vec<usize>, usize, usize)| {
            let mut rest = self.covariance(theta, &own, first, size);
            let mut order: Vec<usize> = Vec::new();
            while order.len() < size {
                let left = (0..size).filter(|index| !order.contains(index));
                let Some(next) = left.max_by(|&one, &two| rest[one * size + one].total_cmp(&rest[two * size + two]))
                else {
                    break;
                };
                order.push(next);
                let pivot = rest[next * size + next];
                if pivot > 0.0 {
                    let column: Vec<f64> = (0..size).map(|row| rest[row * size + next]).collect();
                    for row in 0..size {
                        for other in 0..size {
                            rest[row * size + other] -= column[row] * column[other] / pivot;
                        }
                    }
                }
            }
            order
        };
        self.blocks().into_iter().map(order).collect()
    }

    /// The parameters by the original order of columns, from those of blocks whose columns were reordered.
    pub(super) fn restored(&self, theta: &[f64], orders: &[Vec<usize>]) -> Vec<f64> {
        let mut result = theta.to_vec();
        for ((own, first, size), order) in self.blocks().into_iter().zip(orders) {
            let reordered = self.covariance(theta, &own, first, size);
            let mut covariance = vec![0.0; size * size];
            for row in 0..size {
                for column in 0..size {
                    covariance[order[row] * size + order[column]] = reordered[row * size + column];
                }
            }
            let lower = factor(&covariance, size, 0.0);
            for &index in &own {
                let Entry { row, column, .. } = self.entries[index];
                result[index] = lower[(row - first) * size + column - first];
            }
        }
        result
    }

    /// True for parameters of columns whose diagonal is 0: they are on the border, and the criterion is even in them.
    pub(super) fn on_border(&self, theta: &[f64]) -> Vec<bool> {
        let is_zero = |index: usize| {
            let own = self.entries[index];
            let diagonal =
                |other: &Entry| (other.factor, other.row, other.column) == (own.factor, own.column, own.column);
            self.entries.iter().position(diagonal).is_some_and(|slot| theta[slot] == 0.0)
        };
        (0..self.len()).map(is_zero).collect()
    }
}

/// The lower factor of a covariance; columns whose diagonal is at most `zero` are 0.
fn factor(covariance: &[f64], size: usize, zero: f64) -> Vec<f64> {
    let mut lower = vec![0.0_f64; size * size];
    for column in 0..size {
        let known: f64 = (0..column).map(|inner| lower[column * size + inner].powi(2)).sum();
        let pivot = (covariance[column * size + column] - known).max(0.0).sqrt();
        // Cancellation leaves about 1e-8 of the deviation where there is nothing.
        if pivot <= zero || pivot <= 3e-8 * covariance[column * size + column].sqrt() {
            continue;
        }
        lower[column * size + column] = pivot;
        for row in column + 1..size {
            let known: f64 = (0..column).map(|inner| lower[row * size + inner] * lower[column * size + inner]).sum();
            lower[row * size + column] = (covariance[row * size + column] - known) / pivot;
        }
    }
    lower
}
