//! Orthonormal columns of the fixed effects, and the columns that others make superfluous.
use crate::matrix::Matrix;

/// Part of a column's length that must remain beside the columns before it: that of R's `qr` and lme4.
const RANK_TOLERANCE: f64 = 1e-7;

/// Columns whose weighted mean squares are 1 and whose weighted products are 0.
#[derive(Debug, Clone)]
pub(super) struct Orthogonal {
    pub(super) columns: usize,
    /// Cell-major.
    pub(super) values: Vec<f64>,
    /// The caller's coefficients are this times those of the orthonormal columns.
    pub(super) to_caller: Matrix,
    /// Its inverse.
    pub(super) from_caller: Matrix,
}

impl Orthogonal {
    pub(super) fn cell(&self, cell: usize) -> &[f64] {
        &self.values[cell * self.columns..(cell + 1) * self.columns]
    }
}

/// Orthogonalises columns in their order. A column of which less than the tolerance remains is left out (false in the second
/// result), as by the pivoted QR of R's `lm` and lme4.
pub(super) fn orthogonalise(
    columns: usize,
    weight: &[f64],
    value: impl Fn(usize, usize) -> f64,
) -> (Orthogonal, Vec<bool>) {
    let cells = weight.len();
    let rows: f64 = weight.iter().sum();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    // Coefficients of kept columns by basis, upper triangular.
    let mut upper: Vec<Vec<f64>> = Vec::new();
    let mut kept = Vec::with_capacity(columns);
    let product = |left: &[f64], right: &[f64]| -> f64 {
        left.iter().zip(right).zip(weight).map(|((left, right), weight)| left * right * weight).sum::<f64>() / rows
    };
    for column in 0..columns {
        let mut rest: Vec<f64> = (0..cells).map(|cell| value(cell, column)).collect();
        let length = product(&rest, &rest).sqrt();
        let mut along = vec![0.0; basis.len()];
        // Twice is enough.
        for _ in 0..2 {
            for (direction, along) in basis.iter().zip(&mut along) {
                let part = product(&rest, direction);
                *along += part;
                rest.iter_mut().zip(direction).for_each(|(rest, value)| *rest -= part * value);
            }
        }
        let remaining = product(&rest, &rest).sqrt();
        let keep = length > 0.0 && remaining >= RANK_TOLERANCE * length;
        kept.push(keep);
        if keep {
            rest.iter_mut().for_each(|value| *value /= remaining);
            basis.push(rest);
            along.push(remaining);
            upper.push(along);
        }
    }
    let width = basis.len();
    let mut values = vec![0.0; cells * width];
    for (column, direction) in basis.iter().enumerate() {
        for (cell, value) in direction.iter().enumerate() {
            values[cell * width + column] = *value;
        }
    }
    let mut from_caller = Matrix::zeros(width);
    for (column, along) in upper.iter().enumerate() {
        along.iter().enumerate().for_each(|(row, value)| from_caller.set(row, column, *value));
    }
    let to_caller = upper_inverse(&from_caller);
    (Orthogonal { columns: width, values, to_caller, from_caller }, kept)
}

/// The inverse of an upper triangular matrix.
fn upper_inverse(upper: &Matrix) -> Matrix {
    let size = upper.size();
    let mut inverse = Matrix::zeros(size);
    for column in 0..size {
        for row in (0..=column).rev() {
            let known: f64 = (row + 1..=column).map(|inner| upper.get(row, inner) * inverse.get(inner, column)).sum();
            let unit = f64::from(u8::from(row == column));
            inverse.set(row, column, (unit - known) / upper.get(row, row));
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependent_columns_are_left_out_in_order() {
        let table =
            [[1.0, 0.0, 1.0, 2020.0], [1.0, 1.0, 0.0, 2021.0], [1.0, 0.0, 1.0, 2023.0], [1.0, 1.0, 0.0, 2022.0]];
        let weight = [1.0, 2.0, 3.0, 4.0];
        let (found, kept) = orthogonalise(4, &weight, |cell, column| table[cell][column]);
        assert_eq!(kept, [true, true, false, true]);
        let product = found.to_caller.product(&found.from_caller);
        for row in 0..3 {
            for column in 0..3 {
                assert!((product.get(row, column) - f64::from(u8::from(row == column))).abs() < 1e-9, "{product:?}");
                let sum: f64 = (0..4).map(|cell| weight[cell] * found.cell(cell)[row] * found.cell(cell)[column]).sum();
                assert!((sum / 10.0 - f64::from(u8::from(row == column))).abs() < 1e-9);
            }
        }
        // Values of the caller's columns come back.
        let rows = found.from_caller.transpose().times(found.cell(2));
        assert!((rows[2] - 2023.0).abs() < 1e-6);
    }
}
