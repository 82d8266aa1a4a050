//! Matrix products of slices.
use gemm::{Parallelism, gemm};

/// Matrix over a slice.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Rows of this width, one after the other.
    pub(super) fn rows(values: &'a [f32], width: usize) -> Self {
        Matrix { values, rows: values.len() / width, columns: width, row_stride: width, column_stride: 1 }
    }

    /// Transpose of [`Matrix::rows`].
    pub(super) fn columns(values: &'a [f32], width: usize) -> Self {
        let Matrix { rows, columns, .. } = Self::rows(values, width);
        Matrix { values, rows: columns, columns: rows, row_stride: 1, column_stride: width }
    }

    /// A layer's weights, `[out, in]`, as the right factor for rows of `in` values.
    pub(super) fn transposed(weights: &'a [f32], inputs: usize) -> Self {
        Self::columns(weights, inputs)
    }

    /// Returns the number of rows.
    pub(super) fn count(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub(super) fn width(&self) -> usize {
        self.columns
    }
}

/// Computes `left * right`, row by row, into `out`, or adds it.
///
/// # Panics
/// If the sizes do not match.
pub(super) fn product(left: Matrix<'_>, right: Matrix<'_>, out: &mut [f32], add: bool) {
    let (m, n, k) = (left.rows, right.columns, left.columns);
    assert!(k == right.rows && out.len() == m * n, "[{m}, {k}] times [{}, {n}] into {}", right.rows, out.len());
    for matrix in [left, right] {
        assert!(matrix.rows * matrix.columns == matrix.values.len(), "a whole number of rows");
    }
    let threads = candle_core::utils::get_num_threads();
    let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
    // SAFETY: all three matrices lie within their slices, as was just checked, and `out` is borrowed mutably.
    unsafe {
        gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            add,
            left.values.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}
