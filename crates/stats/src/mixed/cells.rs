//! Cells of a binomial model, by group.
use std::collections::HashMap;

use super::MixedError;
use super::data::MixedData;
use super::design::Values;

/// Different rows of the fixed effects, with their answers and the right ones.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    pub(super) columns: usize,
    /// Cells of group `g` are `starts[g]..starts[g + 1]`.
    pub(super) starts: Vec<usize>,
    /// Values of the columns, cell-major.
    pub(super) design: Vec<f64>,
    pub(super) successes: Vec<f64>,
    pub(super) trials: Vec<f64>,
}

impl Cells {
    /// The different rows of the fixed effects, whatever their groups are, and the cell here of every cell of the data.
    pub(super) fn of_fixed_effects(data: &MixedData) -> (Cells, Vec<usize>) {
        let mut index_of: HashMap<Vec<u64>, usize> = HashMap::new();
        let (mut design, mut successes, mut trials) = (Vec::new(), Vec::new(), Vec::new());
        let mut of_cell = Vec::with_capacity(data.cells());
        for cell in 0..data.cells() {
            let x = data.fixed.cell(cell);
            let next = successes.len();
            let index = *index_of.entry(x.iter().map(|x| x.to_bits()).collect()).or_insert(next);
            if index == next {
                design.extend_from_slice(x);
                successes.push(0.0);
                trials.push(0.0);
            }
            successes[index] += data.total[cell];
            trials[index] += data.weight[cell];
            of_cell.push(index);
        }
        let starts = vec![0, trials.len()];
        (Cells { columns: data.columns(), starts, design, successes, trials }, of_cell)
    }

    /// The cells of a model with one grouping factor: groups in order of appearance, cells of a group by their values in the caller's
    /// columns. Columns but the intercept have their standard deviations as units, which are the second result.
    ///
    /// # Errors
    /// If the data lack a column of their formula.
    pub(super) fn by_group(data: &MixedData) -> Result<(Cells, Vec<f64>), MixedError> {
        let (columns, rows) = (data.columns(), data.rows as f64);
        let grouping = &data.groupings[0];
        let mut order: Vec<Option<usize>> = vec![None; grouping.levels.len()];
        let mut next = 0;
        for group in &grouping.of_cell {
            order[*group as usize].get_or_insert_with(|| {
                next += 1;
                next - 1
            });
        }
        let values = Values::of(&data.frame, &data.formula.fixed)?;
        let of = |cell: usize, column: usize| values.value(&data.columns[column], cell, None);
        let rank = |cell: usize| order[grouping.of_cell[cell] as usize];
        let mut cells: Vec<usize> = (0..data.cells()).collect();
        cells.sort_by(|&left, &right| {
            let values = || (0..columns).map(|column| of(left, column).total_cmp(&of(right, column)));
            rank(left)
                .cmp(&rank(right))
                .then_with(|| values().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal))
        });
        let mut units = vec![1.0; columns];
        for (column, unit) in
            units.iter_mut().enumerate().filter(|(column, _)| !data.columns[*column].pieces.is_empty())
        {
            let weighted = || cells.iter().map(|&cell| (of(cell, column), data.weight[cell] / rows));
            let mean = weighted().map(|(value, share)| value * share).sum::<f64>();
            *unit = weighted().map(|(value, share)| (value - mean).powi(2) * share).sum::<f64>().sqrt();
        }
        let mut starts: Vec<usize> =
            (0..cells.len()).filter(|&index| index == 0 || rank(cells[index]) != rank(cells[index - 1])).collect();
        starts.push(cells.len());
        let design =
            cells.iter().flat_map(|&cell| units.iter().enumerate().map(move |(column, unit)| (cell, column, *unit)));
        let found = Cells {
            columns,
            starts,
            design: design.map(|(cell, column, unit)| of(cell, column) / unit).collect(),
            successes: cells.iter().map(|&cell| data.total[cell]).collect(),
            trials: cells.iter().map(|&cell| data.weight[cell]).collect(),
        };
        Ok((found, units))
    }

    pub(super) fn len(&self) -> usize {
        self.trials.len()
    }

    pub(super) fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// Cells of a group.
    pub(super) fn of_group(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// Values of the columns in a cell.
    pub(super) fn cell(&self, cell: usize) -> &[f64] {
        &self.design[cell * self.columns..(cell + 1) * self.columns]
    }

    /// Groups whose answers are all wrong, and all right.
    pub(super) fn constant_groups(&self) -> (usize, usize) {
        let (mut all_wrong, mut all_right) = (0, 0);
        for group in 0..self.groups() {
            let successes: f64 = self.successes[self.of_group(group)].iter().sum();
            let trials: f64 = self.trials[self.of_group(group)].iter().sum();
            all_wrong += usize::from(successes == 0.0);
            all_right += usize::from(successes == trials);
        }
        (all_wrong, all_right)
    }
}
