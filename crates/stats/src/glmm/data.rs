//! The columns of a model, checked once and laid out by group.
use std::collections::HashMap;

use super::error::GlmmError;
use super::rows::{GlmmRows, Term};
use crate::distribution::ln_choose;
use crate::matrix::{Matrix, dot};

/// The name of the constant column, as R prints it.
pub const INTERCEPT: &str = "(Intercept)";

/// Rows of a binomial model with one grouping factor: successes of trials, fixed effects with an intercept, a group.
///
/// Rows are kept by group, and rows of a group with equal fixed effects are merged into one cell (the likelihood is the
/// same), so a design of two conditions costs two cells a group however many rows it has. Columns are centred and scaled
/// inside; results are in the caller's units.
#[derive(Debug, Clone)]
pub struct GlmmData {
    names: Vec<String>,
    /// Centre and scale of every column (0 and 1 for the intercept).
    centre: Vec<f64>,
    scale: Vec<f64>,
    /// Cells of group `g` are `starts[g]..starts[g + 1]`.
    starts: Vec<usize>,
    /// Standardised columns, cell-major.
    design: Vec<f64>,
    successes: Vec<f64>,
    trials: Vec<f64>,
    /// Rows merged into a cell.
    merged: Vec<u32>,
    log_constant: f64,
}

/// Beyond, squares of a column's values are no numbers.
const LARGEST_VALUE: f64 = 1e150;

impl GlmmData {
    /// Rows with a response of 0 or 1. `fixed` names the columns beside the intercept; `group` holds any labels.
    pub fn bernoulli(response: &[f64], fixed: &[(&str, &[f64])], group: &[u64]) -> Result<Self, GlmmError> {
        if let Some((row, &value)) = response.iter().enumerate().find(|(_, value)| **value != 0.0 && **value != 1.0) {
            return Err(GlmmError::NotBinary { row: row + 1, value });
        }
        Self::build(response, None, fixed, group)
    }

    /// Rows with successes out of trials. Minus two log-likelihoods then include the binomial coefficients.
    pub fn binomial(
        successes: &[f64],
        trials: &[f64],
        fixed: &[(&str, &[f64])],
        group: &[u64],
    ) -> Result<Self, GlmmError> {
        if trials.len() != successes.len() {
            return Err(GlmmError::Length { column: "trials".into(), expected: successes.len(), found: trials.len() });
        }
        for (row, (&successes, &trials)) in successes.iter().zip(trials).enumerate() {
            let whole = successes.fract() == 0.0 && trials.fract() == 0.0;
            if !(whole && successes >= 0.0 && successes <= trials) {
                return Err(GlmmError::Trials { row: row + 1, successes, trials });
            }
        }
        Self::build(successes, Some(trials), fixed, group)
    }

    fn build(
        successes: &[f64],
        trials: Option<&[f64]>,
        fixed: &[(&str, &[f64])],
        group: &[u64],
    ) -> Result<Self, GlmmError> {
        let rows = successes.len();
        if group.len() != rows {
            return Err(GlmmError::Length { column: "group".into(), expected: rows, found: group.len() });
        }
        for (index, (name, column)) in fixed.iter().enumerate() {
            if column.len() != rows {
                return Err(GlmmError::Length { column: (*name).into(), expected: rows, found: column.len() });
            }
            if let Some((row, &value)) = column.iter().enumerate().find(|(_, value)| !value.is_finite()) {
                return Err(GlmmError::NotFinite { column: (*name).into(), row: row + 1, value });
            }
            if *name == INTERCEPT || fixed[..index].iter().any(|(other, _)| other == name) {
                return Err(GlmmError::Duplicate { column: (*name).into() });
            }
        }
        // Groups in order of first appearance, so that results do not depend on the labels' values.
        let mut index_of: HashMap<u64, u32> = HashMap::new();
        let mut collected = GlmmRows::new(fixed.len());
        let mut values = vec![0.0; fixed.len()];
        let mut log_constant = 0.0;
        for row in 0..rows {
            let trial_count = trials.map_or(1.0, |trials| trials[row]);
            if trial_count == 0.0 {
                continue;
            }
            if trials.is_some() {
                log_constant += ln_choose(trial_count, successes[row]);
            }
            for (value, (_, column)) in values.iter_mut().zip(fixed) {
                *value = column[row];
            }
            let next = u32::try_from(index_of.len()).map_err(|_| GlmmError::TooManyGroups)?;
            let group = *index_of.entry(group[row]).or_insert(next);
            collected.push(successes[row], trial_count, &values, group);
        }
        let terms: Vec<Term> = fixed.iter().map(|(name, _)| Term::Number((*name).to_owned())).collect();
        Ok(GlmmData { log_constant, ..collected.finish(&terms)? })
    }

    /// From merged rows that are sorted by group; `values` holds the columns beside the intercept, row-major.
    pub(super) fn from_sorted(
        fixed: Vec<String>,
        group: &[u32],
        values: &[f64],
        successes: Vec<f64>,
        trials: Vec<f64>,
        merged: Vec<u32>,
    ) -> Result<Self, GlmmError> {
        if group.is_empty() {
            return Err(GlmmError::NoRows);
        }
        let width = fixed.len();
        let mut names = vec![INTERCEPT.to_owned()];
        names.extend(fixed);
        let count = merged.iter().map(|&rows| f64::from(rows)).sum::<f64>();
        let mut centre = vec![0.0];
        let mut scale = vec![1.0];
        for column in 0..width {
            let cells = || values.iter().skip(column).step_by(width).zip(&merged);
            let mean = cells().map(|(value, &rows)| value * (f64::from(rows) / count)).sum::<f64>();
            let squares = cells().map(|(value, &rows)| (value - mean).powi(2) * (f64::from(rows) / count));
            let spread = squares.sum::<f64>().sqrt();
            let largest = cells().map(|(value, _)| value.abs()).fold(0.0, f64::max);
            if !spread.is_finite() || largest > LARGEST_VALUE {
                return Err(GlmmError::TooLarge { column: names[column + 1].clone(), value: largest });
            }
            if spread <= 1e-12 * largest {
                return Err(GlmmError::Collinear { column: names[column + 1].clone() });
            }
            centre.push(mean);
            scale.push(spread);
        }
        let mut starts = vec![0];
        starts.extend((1..group.len()).filter(|&cell| group[cell] != group[cell - 1]));
        starts.push(group.len());
        let mut design = Vec::with_capacity(group.len() * (width + 1));
        for cell in 0..group.len() {
            design.push(1.0);
            let cell = values[cell * width..(cell + 1) * width].iter().enumerate();
            design.extend(cell.map(|(column, value)| (value - centre[column + 1]) / scale[column + 1]));
        }
        let data = GlmmData { names, centre, scale, starts, design, successes, trials, merged, log_constant: 0.0 };
        if let Some(column) = data.first_collinear() {
            return Err(GlmmError::Collinear { column: data.names[column].clone() });
        }
        Ok(data)
    }

    /// Cells of a design as it is, in one group: what the separation of a larger model needs.
    pub(crate) fn of_design(columns: usize, design: Vec<f64>, successes: Vec<f64>, trials: Vec<f64>) -> Self {
        GlmmData {
            names: (0..columns).map(|column| column.to_string()).collect(),
            centre: vec![0.0; columns],
            scale: vec![1.0; columns],
            starts: vec![0, trials.len()],
            merged: vec![1; trials.len()],
            design,
            successes,
            trials,
            log_constant: 0.0,
        }
    }

    /// The first column that those before it span, by Gram-Schmidt on the (standardised) Gram matrix.
    fn first_collinear(&self) -> Option<usize> {
        independent_columns(&self.gram()).iter().position(|independent| !independent)
    }

    fn gram(&self) -> Matrix {
        let rows = self.rows() as f64;
        let mut gram = Matrix::zeros(self.columns());
        for (cell, trials) in self.trials.iter().enumerate() {
            gram.add_outer(trials / rows, self.cell(cell));
        }
        gram
    }

    /// Number of fixed-effect columns, the intercept included.
    pub fn columns(&self) -> usize {
        self.names.len()
    }

    /// Names of the fixed effects, [`INTERCEPT`] first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of rows given (with at least one trial).
    pub fn rows(&self) -> usize {
        self.merged.iter().map(|&rows| rows as usize).sum()
    }

    /// Number of distinct rows of fixed effects within groups.
    pub fn cells(&self) -> usize {
        self.trials.len()
    }

    /// Twice the sum of the logarithms of the binomial coefficients; 0 for responses of 0 and 1.
    pub(super) fn twice_log_constant(&self) -> f64 {
        2.0 * self.log_constant
    }

    /// Cells of a group.
    pub(super) fn cells_of(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// Standardised fixed effects of a cell.
    pub(super) fn cell(&self, cell: usize) -> &[f64] {
        let columns = self.columns();
        &self.design[cell * columns..(cell + 1) * columns]
    }

    /// Successes in a cell.
    pub(super) fn successes(&self) -> &[f64] {
        &self.successes
    }

    /// Trials in a cell.
    pub(super) fn trials(&self) -> &[f64] {
        &self.trials
    }

    /// Successes and trials of every cell.
    pub fn outcomes(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.successes.iter().copied().zip(self.trials.iter().copied())
    }

    /// Numbers of groups whose responses are all 0, and all 1.
    pub fn constant_groups(&self) -> (usize, usize) {
        let (mut all_wrong, mut all_right) = (0, 0);
        for group in 0..self.groups() {
            let cells = self.cells_of(group);
            let successes: f64 = self.successes[cells.clone()].iter().sum();
            all_wrong += usize::from(successes == 0.0);
            all_right += usize::from(successes == self.trials[cells].iter().sum::<f64>());
        }
        (all_wrong, all_right)
    }

    /// Total successes and total trials.
    pub fn totals(&self) -> (f64, f64) {
        (self.successes.iter().sum(), self.trials.iter().sum())
    }

    /// The linear map from inner parameters (random SD, coefficients of standardised columns) to the caller's.
    pub(super) fn to_caller(&self) -> Matrix {
        let mut map = Matrix::zeros(self.columns() + 1);
        map.set(0, 0, 1.0);
        for column in 0..self.columns() {
            map.set(column + 1, column + 1, 1.0 / self.scale[column]);
            if column > 0 {
                map.set(1, column + 1, -self.centre[column] / self.scale[column]);
            }
        }
        map
    }

    /// Inner parameters of the caller's (random SD, coefficients).
    pub(super) fn to_inner(&self, parameters: &[f64]) -> Vec<f64> {
        let mut inner: Vec<f64> = parameters.to_vec();
        for column in 1..self.columns() {
            inner[column + 1] = parameters[column + 1] * self.scale[column];
            inner[1] += parameters[column + 1] * self.centre[column];
        }
        inner
    }

    /// The same rows without centring, so that the intercept is a coordinate of the inner parameters too (its profile
    /// then holds one parameter fixed, like every other).
    pub(super) fn uncentred(&self) -> GlmmData {
        let mut data = self.clone();
        for cell in 0..data.cells() {
            for column in 1..data.columns() {
                data.design[cell * self.columns() + column] += self.centre[column] / self.scale[column];
            }
        }
        data.centre.fill(0.0);
        data
    }

    /// The data made of these groups (indices in order of first appearance), every copy a group of its own. Column
    /// scalings stay those of the whole data, so a column that is constant in the resample is for the fit to find.
    pub fn resampled(&self, groups: &[usize]) -> GlmmData {
        let mut data = self.without_rows();
        for &group in groups {
            for cell in self.cells_of(group) {
                data.design.extend_from_slice(self.cell(cell));
                data.successes.push(self.successes[cell]);
                data.trials.push(self.trials[cell]);
                data.merged.push(self.merged[cell]);
            }
            data.starts.push(data.trials.len());
        }
        data
    }

    fn without_rows(&self) -> GlmmData {
        GlmmData {
            names: self.names.clone(),
            centre: self.centre.clone(),
            scale: self.scale.clone(),
            starts: vec![0],
            design: Vec::new(),
            successes: Vec::new(),
            trials: Vec::new(),
            merged: Vec::new(),
            log_constant: self.log_constant,
        }
    }

    /// The cells of `kept`, with a largest independent set of columns; also says which columns those are. Used for what
    /// remains of separated data.
    pub(super) fn restricted(&self, kept: &[bool]) -> (GlmmData, Vec<bool>) {
        let rows = self.rows() as f64;
        let mut gram = Matrix::zeros(self.columns());
        for cell in (0..self.cells()).filter(|&cell| kept[cell]) {
            gram.add_outer(self.trials[cell] / rows, self.cell(cell));
        }
        let independent = independent_columns(&gram);
        let pick = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(&independent).filter(|(_, keep)| **keep).map(|(value, _)| *value).collect()
        };
        let mut data = GlmmData {
            names: self
                .names
                .iter()
                .zip(&independent)
                .filter(|(_, keep)| **keep)
                .map(|(name, _)| name.clone())
                .collect(),
            centre: pick(&self.centre),
            scale: pick(&self.scale),
            starts: vec![0],
            design: Vec::new(),
            successes: Vec::new(),
            trials: Vec::new(),
            merged: Vec::new(),
            log_constant: self.log_constant,
        };
        for group in 0..self.groups() {
            for cell in self.cells_of(group).filter(|&cell| kept[cell]) {
                data.design.extend(pick(self.cell(cell)));
                data.successes.push(self.successes[cell]);
                data.trials.push(self.trials[cell]);
                data.merged.push(self.merged[cell]);
            }
            if data.trials.len() > data.starts[data.starts.len() - 1] {
                data.starts.push(data.trials.len());
            }
        }
        (data, independent)
    }
}

/// Linear independence: for every column of a Gram matrix, true if those before it do not span it.
fn independent_columns(gram: &Matrix) -> Vec<bool> {
    let size = gram.size();
    // Rows of the Cholesky factor, dependent columns left out.
    let mut factor: Vec<Vec<f64>> = Vec::new();
    let mut kept: Vec<usize> = Vec::new();
    (0..size)
        .map(|column| {
            let mut row: Vec<f64> = Vec::with_capacity(kept.len() + 1);
            for (index, &other) in kept.iter().enumerate() {
                let sum = gram.get(column, other) - dot(&row, &factor[index][..row.len()]);
                row.push(sum / factor[index][index]);
            }
            let remainder = gram.get(column, column) - dot(&row, &row);
            let independent = remainder > 1e-10 * gram.get(column, column).max(f64::MIN_POSITIVE);
            if independent {
                row.push(remainder.sqrt());
                factor.push(row);
                kept.push(column);
            }
            independent
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_of_a_group_become_one_cell() {
        let response = [1.0, 0.0, 1.0, 0.0, 1.0];
        let variant = [0.0, 1.0, 1.0, 1.0, 0.0];
        let data = GlmmData::bernoulli(&response, &[("variant", &variant)], &[9, 9, 9, 4, 4]).unwrap();
        assert_eq!((data.rows(), data.groups(), data.cells()), (5, 2, 4));
        assert_eq!(data.trials(), [1.0, 2.0, 1.0, 1.0]);
        assert_eq!(data.successes(), [1.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn bad_columns_are_refused_by_name_and_row() {
        let group = [0, 0, 1, 1];
        let response = [1.0, 0.0, 1.0, 0.0];
        let variant = [0.0, 1.0, 0.0, 1.0];
        let fit =
            |response: &[f64], fixed: &[(&str, &[f64])]| GlmmData::bernoulli(response, fixed, &group).unwrap_err();
        assert_eq!(fit(&[1.0, 2.0, 0.0, 1.0], &[]), GlmmError::NotBinary { row: 2, value: 2.0 });
        assert!(matches!(
            fit(&response, &[("gamma_c", &[0.0, f64::NAN, 1.0, 2.0])]),
            GlmmError::NotFinite { column, row: 2, .. } if column == "gamma_c"
        ));
        assert_eq!(fit(&response, &[("one", &[5.0; 4])]), GlmmError::Collinear { column: "one".into() });
        assert_eq!(
            fit(&response, &[("variant", &variant), ("copy", &variant.map(|x| 3.0 - 2.0 * x))]),
            GlmmError::Collinear { column: "copy".into() }
        );
        assert_eq!(
            fit(&response, &[("variant", &variant), ("variant", &variant)]),
            GlmmError::Duplicate { column: "variant".into() }
        );
        assert!(matches!(fit(&response[..3], &[]), GlmmError::Length { .. }));
        assert_eq!(GlmmData::bernoulli(&[], &[], &[]).unwrap_err(), GlmmError::NoRows);
        assert!(matches!(GlmmData::binomial(&[3.0], &[2.0], &[], &[0]), Err(GlmmError::Trials { row: 1, .. })));
    }

    #[test]
    fn parameters_survive_the_inner_units() {
        let variant = [0.0, 1.0, 7.0, 1.0];
        let data = GlmmData::bernoulli(&[1.0, 0.0, 1.0, 0.0], &[("variant", &variant)], &[0, 0, 1, 1]).unwrap();
        let parameters = [2.0, -1.5, 0.25];
        let back = data.to_caller().times(&data.to_inner(&parameters));
        assert!(parameters.iter().zip(&back).all(|(left, right)| (left - right).abs() < 1e-12), "{back:?}");
    }
}
