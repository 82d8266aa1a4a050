//! Small dense matrices: as many rows as a model has parameters.

/// A square matrix, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    size: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// All zeros.
    pub(crate) fn zeros(size: usize) -> Self {
        Matrix { size, values: vec![0.0; size * size] }
    }

    /// Number of rows and of columns.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The value in a row and column.
    pub(crate) fn get(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.size + column]
    }

    /// Replaces a value.
    pub(crate) fn set(&mut self, row: usize, column: usize, value: f64) {
        self.values[row * self.size + column] = value;
    }

    pub(crate) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.values[row * self.size + column] += value;
    }

    /// Adds `weight * vector * vector'`.
    pub(crate) fn add_outer(&mut self, weight: f64, vector: &[f64]) {
        for (row, left) in vector.iter().enumerate() {
            for (column, right) in vector.iter().enumerate() {
                self.values[row * self.size + column] += weight * left * right;
            }
        }
    }

    /// Replaces the matrix by the mean of itself and its transpose.
    pub(crate) fn symmetrise(&mut self) {
        for row in 0..self.size {
            for column in 0..row {
                let mean = 0.5 * (self.get(row, column) + self.get(column, row));
                self.set(row, column, mean);
                self.set(column, row, mean);
            }
        }
    }

    /// The product with a vector.
    pub(crate) fn times(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.size).map(|row| dot(&self.values[row * self.size..(row + 1) * self.size], vector)).collect()
    }

    /// The product with another matrix of the same size.
    pub(crate) fn product(&self, other: &Matrix) -> Matrix {
        let mut result = Matrix::zeros(self.size);
        for row in 0..self.size {
            for column in 0..self.size {
                let sum = (0..self.size).map(|inner| self.get(row, inner) * other.get(inner, column)).sum();
                result.set(row, column, sum);
            }
        }
        result
    }

    pub(crate) fn transpose(&self) -> Matrix {
        let mut result = Matrix::zeros(self.size);
        for row in 0..self.size {
            for column in 0..self.size {
                result.set(column, row, self.get(row, column));
            }
        }
        result
    }

    /// The lower Cholesky factor of a symmetric matrix; none unless it is positive definite. The matrix is scaled to a
    /// unit diagonal first, so that the test does not depend on the units of the parameters.
    pub(crate) fn cholesky(&self) -> Option<Cholesky> {
        let size = self.size;
        let mut scale = vec![0.0; size];
        for (index, scale) in scale.iter_mut().enumerate() {
            let diagonal = self.get(index, index);
            if !(diagonal.is_finite() && diagonal > 0.0) {
                return None;
            }
            *scale = diagonal.sqrt();
        }
        let mut factor = Matrix::zeros(size);
        for row in 0..size {
            for column in 0..=row {
                let mut sum = self.get(row, column) / (scale[row] * scale[column]);
                for inner in 0..column {
                    sum -= factor.get(row, inner) * factor.get(column, inner);
                }
                if row == column {
                    if sum.is_nan() || sum <= 1e-13 {
                        return None;
                    }
                    factor.set(row, row, sum.sqrt());
                } else {
                    factor.set(row, column, sum / factor.get(column, column));
                }
            }
        }
        Some(Cholesky { factor, scale })
    }

    /// Eigenvalues of a symmetric matrix, and its eigenvectors as columns, by Jacobi's rotations.
    pub(crate) fn eigen(&self) -> (Vec<f64>, Matrix) {
        let size = self.size;
        let mut matrix = self.clone();
        let mut vectors = Matrix::zeros(size);
        (0..size).for_each(|index| vectors.set(index, index, 1.0));
        for _ in 0..100 {
            let mut off = 0.0;
            for row in 0..size {
                for column in 0..row {
                    off += matrix.get(row, column).powi(2);
                }
            }
            let whole: f64 = matrix.values.iter().map(|value| value * value).sum();
            if off <= 1e-30 * whole || !whole.is_finite() {
                break;
            }
            for row in 0..size {
                for column in 0..row {
                    matrix.rotate(row, column, &mut vectors);
                }
            }
        }
        ((0..size).map(|index| matrix.get(index, index)).collect(), vectors)
    }

    /// One rotation that makes an entry 0.
    fn rotate(&mut self, row: usize, column: usize, vectors: &mut Matrix) {
        let entry = self.get(row, column);
        if entry == 0.0 {
            return;
        }
        let ratio = (self.get(row, row) - self.get(column, column)) / (2.0 * entry);
        let tangent = ratio.signum() / (ratio.abs() + ratio.hypot(1.0));
        let cosine = 1.0 / tangent.hypot(1.0);
        let sine = tangent * cosine;
        for index in 0..self.size {
            let (one, other) = (self.get(index, column), self.get(index, row));
            self.set(index, column, cosine * one - sine * other);
            self.set(index, row, sine * one + cosine * other);
        }
        for index in 0..self.size {
            let (one, other) = (self.get(column, index), self.get(row, index));
            self.set(column, index, cosine * one - sine * other);
            self.set(row, index, sine * one + cosine * other);
            let (one, other) = (vectors.get(index, column), vectors.get(index, row));
            vectors.set(index, column, cosine * one - sine * other);
            vectors.set(index, row, sine * one + cosine * other);
        }
    }

    /// The rows as vectors.
    pub(crate) fn to_rows(&self) -> Vec<Vec<f64>> {
        self.values.chunks(self.size.max(1)).map(<[f64]>::to_vec).collect()
    }
}

/// A Cholesky factorisation `S L L' S` with a diagonal scaling `S`.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    factor: Matrix,
    scale: Vec<f64>,
}

impl Cholesky {
    /// Solves `A x = right`.
    pub(crate) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let size = self.factor.size;
        let mut solution: Vec<f64> = right.iter().zip(&self.scale).map(|(value, scale)| value / scale).collect();
        for row in 0..size {
            for inner in 0..row {
                solution[row] -= self.factor.get(row, inner) * solution[inner];
            }
            solution[row] /= self.factor.get(row, row);
        }
        for row in (0..size).rev() {
            for inner in row + 1..size {
                solution[row] -= self.factor.get(inner, row) * solution[inner];
            }
            solution[row] /= self.factor.get(row, row);
        }
        solution.iter_mut().zip(&self.scale).for_each(|(value, scale)| *value /= scale);
        solution
    }

    /// The logarithm of the determinant of the factorised matrix.
    pub(crate) fn log_determinant(&self) -> f64 {
        let pivots = (0..self.factor.size).map(|index| self.factor.get(index, index) * self.scale[index]);
        2.0 * pivots.map(f64::ln).sum::<f64>()
    }

    /// The inverse of the factorised matrix.
    pub(crate) fn inverse(&self) -> Matrix {
        let size = self.factor.size;
        let mut inverse = Matrix::zeros(size);
        let mut unit = vec![0.0; size];
        for column in 0..size {
            unit[column] = 1.0;
            for (row, value) in self.solve(&unit).into_iter().enumerate() {
                inverse.set(row, column, value);
            }
            unit[column] = 0.0;
        }
        inverse.symmetrise();
        inverse
    }
}

/// The inner product.
pub(crate) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_of_a_badly_scaled_matrix_is_found() {
        let mut matrix = Matrix::zeros(2);
        matrix.set(0, 0, 4e-12);
        matrix.set(0, 1, 1.0);
        matrix.set(1, 0, 1.0);
        matrix.set(1, 1, 1e12);
        let product = matrix.product(&matrix.cholesky().unwrap().inverse());
        for (row, column, expected) in [(0, 0, 1.0), (1, 1, 1.0), (0, 1, 0.0)] {
            assert!((product.get(row, column) - expected).abs() < 1e-9, "{product:?}");
        }
    }

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        let mut matrix = Matrix::zeros(3);
        for (row, column, value) in [(0, 0, 4.0), (1, 1, -1.0), (2, 2, 2.5), (0, 1, 1.0), (0, 2, -2.0), (1, 2, 0.3)] {
            matrix.set(row, column, value);
            matrix.set(column, row, value);
        }
        let (values, vectors) = matrix.eigen();
        let mut rebuilt = Matrix::zeros(3);
        for (index, value) in values.iter().enumerate() {
            let vector: Vec<f64> = (0..3).map(|row| vectors.get(row, index)).collect();
            assert!((dot(&vector, &vector) - 1.0).abs() < 1e-12);
            rebuilt.add_outer(*value, &vector);
        }
        for row in 0..3 {
            for column in 0..3 {
                assert!((rebuilt.get(row, column) - matrix.get(row, column)).abs() < 1e-12, "{values:?}");
            }
        }
    }

    #[test]
    fn an_indefinite_or_non_finite_matrix_has_no_factor() {
        let mut matrix = Matrix::zeros(2);
        matrix.set(0, 0, 1.0);
        matrix.set(1, 1, 1.0);
        matrix.set(0, 1, 2.0);
        matrix.set(1, 0, 2.0);
        assert!(matrix.cholesky().is_none());
        matrix.set(0, 0, f64::NAN);
        assert!(matrix.cholesky().is_none());
    }
}
