//! The random effects' normal equations: `Lambda' Z' W Z Lambda + I` and products with its parts.
use super::cholesky::Factor;
use super::data::MixedData;
use super::layout::Layout;
use super::theta::Theta;

/// A model's sparse matrices. Vectors over random effects are in elimination order.
#[derive(Debug)]
pub(super) struct System<'d> {
    pub(super) data: &'d MixedData,
    pub(super) layout: &'d Layout,
    pub(super) factor: Factor<'d>,
    /// `Z' W Z`, by blocks.
    gram: Vec<f64>,
    /// `Lambda A^-1 Lambda'`, by blocks.
    spread: Vec<f64>,
}

impl<'d> System<'d> {
    pub(super) fn new(data: &'d MixedData, layout: &'d Layout) -> Self {
        let gram = vec![0.0; layout.gram_length];
        System { data, layout, factor: Factor::new(layout), gram, spread: Vec::new() }
    }

    /// Calls `each` with the block's first number in a compact list, the row's and the column's random-effect columns, and whether they
    /// are of one factor, for every pair of factors of a cell.
    fn pairs(&self, cell: usize, mut each: impl FnMut(usize, &[f64], &[f64], bool)) {
        let factors = self.data.groupings.len();
        let nodes = &self.layout.nodes[cell * factors..(cell + 1) * factors];
        let mut slot = cell * factors * (factors + 1) / 2;
        for left in 0..factors {
            for right in left..factors {
                let offset = self.layout.slots[slot] as usize;
                slot += 1;
                let (row, column) = if nodes[left] >= nodes[right] { (left, right) } else { (right, left) };
                let (row, column) = (&self.data.groupings[row], &self.data.groupings[column]);
                each(offset, row.cell(cell), column.cell(cell), left == right);
            }
        }
    }

    /// Computes `Z' W Z` for weights of the cells.
    pub(super) fn gather(&mut self, weight: &[f64]) {
        let mut gram = std::mem::take(&mut self.gram);
        gram.fill(0.0);
        for (cell, &weight) in weight.iter().enumerate() {
            self.pairs(cell, |mut index, row, column, _| {
                for left in row {
                    let left = weight * left;
                    for right in column {
                        gram[index] += left * right;
                        index += 1;
                    }
                }
            });
        }
        self.gram = gram;
    }

    /// Factorises `Lambda' Z' W Z Lambda + I`; the logarithm of its determinant.
    pub(super) fn factorise(&mut self, lambda: &[Vec<f64>]) -> Option<f64> {
        let layout = self.layout;
        self.factor.values.fill(0.0);
        let mut middle = Vec::new();
        for block in &layout.blocks {
            let (row, column) = (block.row, block.column);
            let [height, width] = block.sizes.map(|size| size as usize);
            let [left, right] = block.factors.map(|factor| &lambda[factor as usize]);
            let gram = &self.gram[block.compact..block.compact + height * width];
            if width == 1 {
                for line in 0..height {
                    let sum: f64 = (line..height).map(|inner| left[inner * height + line] * gram[inner]).sum();
                    let unit = if row == column { 1.0 } else { 0.0 };
                    self.factor.values[block.start + line * block.stride] = sum * right[0] + unit;
                }
                continue;
            }
            // gram * Lambda of the column, then Lambda' of the row in front.
            middle.clear();
            middle.resize(height * width, 0.0);
            for line in 0..height {
                for inner in 0..width {
                    let value = gram[line * width + inner];
                    for other in 0..=inner {
                        middle[line * width + other] += value * right[inner * width + other];
                    }
                }
            }
            for line in 0..height {
                for other in 0..width {
                    let mut sum = 0.0;
                    for inner in line..height {
                        sum += left[inner * height + line] * middle[inner * width + other];
                    }
                    if row == column && line == other {
                        sum += 1.0;
                    }
                    self.factor.values[block.start + line * block.stride + other] = sum;
                }
            }
        }
        self.factor.factorise()
    }

    /// `Lambda u`.
    pub(super) fn scaled(&self, lambda: &[Vec<f64>], u: &[f64], into: &mut [f64]) {
        for node in 0..self.layout.nodes() {
            let (start, size) = (self.layout.start[node], self.layout.size[node]);
            let lambda = &lambda[self.layout.factor[node] as usize];
            for row in 0..size {
                into[start + row] = (0..=row).map(|inner| lambda[row * size + inner] * u[start + inner]).sum();
            }
        }
    }

    /// `Lambda' b`.
    pub(super) fn scaled_back(&self, lambda: &[Vec<f64>], b: &[f64], into: &mut [f64]) {
        for node in 0..self.layout.nodes() {
            let (start, size) = (self.layout.start[node], self.layout.size[node]);
            let lambda = &lambda[self.layout.factor[node] as usize];
            for row in 0..size {
                into[start + row] = (row..size).map(|inner| lambda[inner * size + row] * b[start + inner]).sum();
            }
        }
    }

    /// `Z b`, by cell.
    pub(super) fn spread_over(&self, b: &[f64], into: &mut [f64]) {
        let factors = self.data.groupings.len();
        for (cell, value) in into.iter_mut().enumerate() {
            let nodes = &self.layout.nodes[cell * factors..(cell + 1) * factors];
            let mut sum = 0.0;
            for (&node, grouping) in nodes.iter().zip(&self.data.groupings) {
                let start = self.layout.start[node as usize];
                sum += grouping.cell(cell).iter().zip(&b[start..]).map(|(z, b)| z * b).sum::<f64>();
            }
            *value = sum;
        }
    }

    /// `Z' v` for values of the cells.
    pub(super) fn collect(&self, values: &[f64], into: &mut [f64]) {
        let factors = self.data.groupings.len();
        into.fill(0.0);
        for (cell, value) in values.iter().enumerate() {
            let nodes = &self.layout.nodes[cell * factors..(cell + 1) * factors];
            for (&node, grouping) in nodes.iter().zip(&self.data.groupings) {
                let start = self.layout.start[node as usize];
                into[start..].iter_mut().zip(grouping.cell(cell)).for_each(|(into, z)| *into += z * value);
            }
        }
    }

    /// Inverts in the pattern and returns `d log|A| / d Lambda` at fixed weights, by grouping factor.
    pub(super) fn invert(&mut self, lambda: &[Vec<f64>]) -> Vec<Vec<f64>> {
        self.factor.invert();
        self.spread.resize(self.layout.gram_length, 0.0);
        let layout = self.layout;
        let mut slopes: Vec<Vec<f64>> = lambda.iter().map(|factor| vec![0.0; factor.len()]).collect();
        let (mut right, mut left) = (Vec::new(), Vec::new());
        for block in &layout.blocks {
            let (row, column) = (block.row, block.column);
            let [height, width] = block.sizes.map(|size| size as usize);
            let [row_factor, column_factor] = block.factors.map(|factor| factor as usize);
            let inverse = |line: usize, other: usize| self.factor.inverse[block.start + line * block.stride + other];
            let gram = &self.gram[block.compact..block.compact + height * width];
            // inverse * Lambda' of the column.
            right.clear();
            right.resize(height * width, 0.0);
            for line in 0..height {
                for other in 0..width {
                    let lambda = &lambda[column_factor][other * width..other * width + other + 1];
                    right[line * width + other] =
                        lambda.iter().enumerate().map(|(inner, lambda)| inverse(line, inner) * lambda).sum();
                }
            }
            // Lambda of the row * inverse.
            left.clear();
            left.resize(height * width, 0.0);
            for line in 0..height {
                for other in 0..width {
                    let lambda = &lambda[row_factor][line * height..line * height + line + 1];
                    left[line * width + other] =
                        lambda.iter().enumerate().map(|(inner, lambda)| lambda * inverse(inner, other)).sum();
                }
            }
            for line in 0..height {
                for other in 0..width {
                    let lambda = &lambda[row_factor][line * height..line * height + line + 1];
                    self.spread[block.compact + line * width + other] =
                        lambda.iter().enumerate().map(|(inner, lambda)| lambda * right[inner * width + other]).sum();
                }
            }
            for line in 0..height {
                for other in 0..height {
                    let sum: f64 =
                        (0..width).map(|inner| gram[line * width + inner] * right[other * width + inner]).sum();
                    slopes[row_factor][line * height + other] += 2.0 * sum;
                }
            }
            if row != column {
                for line in 0..width {
                    for other in 0..width {
                        let sum: f64 =
                            (0..height).map(|inner| gram[inner * width + line] * left[inner * width + other]).sum();
                        slopes[column_factor][line * width + other] += 2.0 * sum;
                    }
                }
            }
        }
        slopes
    }

    /// `z' Lambda A^-1 Lambda' z` by cell, after [`System::invert`].
    pub(super) fn variances(&self, into: &mut [f64]) {
        for (cell, value) in into.iter_mut().enumerate() {
            let mut sum = 0.0;
            self.pairs(cell, |mut index, row, column, same| {
                let mut part = 0.0;
                for left in row {
                    for right in column {
                        part += left * self.spread[index] * right;
                        index += 1;
                    }
                }
                sum += if same { part } else { 2.0 * part };
            });
            *value = sum;
        }
    }

    /// `sum over groups of left_a right_a'` at the indices of theta.
    pub(super) fn by_theta(&self, theta: &Theta, pairs: &[(&[f64], &[f64])], slopes: &[Vec<f64>], into: &mut [f64]) {
        let mut sums: Vec<Vec<f64>> = slopes.to_vec();
        for node in 0..self.layout.nodes() {
            let (start, size) = (self.layout.start[node], self.layout.size[node]);
            let sums = &mut sums[self.layout.factor[node] as usize];
            for (left, right) in pairs {
                for row in 0..size {
                    for column in 0..=row {
                        sums[row * size + column] += left[start + row] * right[start + column];
                    }
                }
            }
        }
        for (entry, into) in theta.entries.iter().zip(into) {
            let width = self.data.groupings[entry.factor].width;
            *into = sums[entry.factor][entry.row * width + entry.column];
        }
    }
}
