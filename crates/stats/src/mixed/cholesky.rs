//! Cholesky factorisation of the random effects' matrix in its block pattern, and the part of the inverse in that pattern.
use super::layout::Layout;

/// Numbers of a factor, and scratch space.
#[derive(Debug)]
pub(super) struct Factor<'l> {
    layout: &'l Layout,
    /// The matrix before, its lower factor after [`Factor::factorise`].
    pub(super) values: Vec<f64>,
    /// The inverse in the factor's pattern, both triangles of the dense rest.
    pub(super) inverse: Vec<f64>,
}

impl<'l> Factor<'l> {
    pub(super) fn new(layout: &'l Layout) -> Self {
        Factor { layout, values: vec![0.0; layout.length], inverse: Vec::new() }
    }

    /// Factorises in place and returns the logarithm of the determinant; none unless the matrix is positive definite.
    pub(super) fn factorise(&mut self) -> Option<f64> {
        let layout = self.layout;
        let mut product = 0.0;
        for node in 0..layout.sparse {
            let width = layout.size[node];
            let diagonal = layout.diagonal[node];
            // Where nodes stand for several, the factors up to the widest with copies are nested: no two of its groups touch, and the blocks are
            // those of every copy.
            product += layout.copies[node] * dense_factor(&mut self.values[diagonal..diagonal + width * width], width)?;
            let (head, panel_and_rest) = self.values.split_at_mut(layout.panel[node]);
            let lower = &head[diagonal..];
            let length = layout.panel_end(node) - layout.panel[node];
            let (panel, rest) = panel_and_rest.split_at_mut(length);
            for row in panel.chunks_exact_mut(width) {
                forward(lower, width, row);
            }
            let shift = layout.panel_end(node);
            update(layout, node, panel, shift, rest);
        }
        let width = layout.tail_width;
        let tail = &mut self.values[layout.tail..];
        let own = dense_factor(tail, width)?;
        // Groups in the dense rest that stand for several touch no other there.
        let of_row = |(row, copies): (usize, &f64)| 2.0 * (copies - 1.0) * tail[row * width + row].ln();
        Some(product + own + layout.tail_copies.iter().enumerate().map(of_row).sum::<f64>())
    }

    /// Solves in place for a vector over all random effects.
    pub(super) fn solve(&self, right: &mut [f64]) {
        let layout = self.layout;
        for node in 0..layout.sparse {
            let width = layout.size[node];
            let (own, rest) = right.split_at_mut(layout.start[node + 1]);
            let own = &mut own[layout.start[node]..];
            forward(&self.values[layout.diagonal[node]..], width, own);
            let mut offset = layout.panel[node];
            for &row in &layout.below[node] {
                let start = layout.start[row as usize] - layout.start[node + 1];
                for value in &mut rest[start..start + layout.size[row as usize]] {
                    *value -= dot(&self.values[offset..offset + width], own);
                    offset += width;
                }
            }
        }
        let (tail, width) = (&self.values[layout.tail..], layout.tail_width);
        let start = layout.start[layout.sparse];
        forward(tail, width, &mut right[start..]);
        backward(tail, width, &mut right[start..]);
        for node in (0..layout.sparse).rev() {
            let width = layout.size[node];
            let (own, rest) = right.split_at_mut(layout.start[node + 1]);
            let own = &mut own[layout.start[node]..];
            let mut offset = layout.panel[node];
            for &row in &layout.below[node] {
                let start = layout.start[row as usize] - layout.start[node + 1];
                for value in &rest[start..start + layout.size[row as usize]] {
                    own.iter_mut().zip(&self.values[offset..]).for_each(|(own, factor)| *own -= factor * value);
                    offset += width;
                }
            }
            backward(&self.values[layout.diagonal[node]..], width, own);
        }
    }

    /// Computes the inverse in the factor's pattern (Takahashi's recursion, from the last node to the first). The block of a node that
    /// stands for several is the sum over them.
    pub(super) fn invert(&mut self) {
        let layout = self.layout;
        self.inverse.resize(layout.length, 0.0);
        let width = layout.tail_width;
        dense_inverse(&self.values[layout.tail..], &mut self.inverse[layout.tail..], width);
        for (row, copies) in layout.tail_copies.iter().enumerate() {
            let offset = layout.tail + row * width;
            self.inverse[offset..offset + width].iter_mut().for_each(|value| *value *= copies);
        }
        let mut weights = Vec::new();
        let mut found = Vec::new();
        for node in (0..layout.sparse).rev() {
            let width = layout.size[node];
            let lower = &self.values[layout.diagonal[node]..layout.panel[node]];
            let length = layout.panel_end(node) - layout.panel[node];
            // The panel times the inverse of the diagonal factor.
            weights.clear();
            weights.extend_from_slice(&self.values[layout.panel[node]..layout.panel_end(node)]);
            for row in weights.chunks_exact_mut(width) {
                backward(lower, width, row);
            }
            found.clear();
            found.resize(length, 0.0);
            multiply(layout, node, &self.inverse, &weights, &mut found);
            let (head, tail) = self.inverse.split_at_mut(layout.panel[node]);
            tail[..length].copy_from_slice(&found);
            let own = &mut head[layout.diagonal[node]..];
            dense_inverse(lower, own, width);
            own[..width * width].iter_mut().for_each(|value| *value *= layout.copies[node]);
            for (row, weight) in found.chunks_exact(width).zip(weights.chunks_exact(width)) {
                for one in 0..width {
                    for other in 0..width {
                        own[one * width + other] -= row[one] * weight[other];
                    }
                }
            }
        }
    }
}

/// Subtracts the products of a node's panel from the blocks of the nodes below; `rest` begins at `shift`.
fn update(layout: &Layout, node: usize, panel: &[f64], shift: usize, rest: &mut [f64]) {
    let width = layout.size[node];
    let rows = &layout.below[node];
    let mut targets = layout.targets[node].iter();
    let mut column_at = 0;
    for (index, &column) in rows.iter().enumerate() {
        let column = column as usize;
        if column >= layout.sparse {
            break;
        }
        let columns = layout.size[column];
        let left = &panel[column_at..column_at + columns * width];
        let mut row_at = column_at;
        for &row in &rows[index..] {
            let height = layout.size[row as usize];
            let right = &panel[row_at..row_at + height * width];
            row_at += height * width;
            let target = targets.next().map_or(0, |target| *target as usize) - shift;
            if width == 1 && height == 1 && columns == 1 {
                rest[target] -= right[0] * left[0];
                continue;
            }
            for (line, right) in right.chunks_exact(width).enumerate() {
                let into = &mut rest[target + line * columns..target + (line + 1) * columns];
                for (value, left) in into.iter_mut().zip(left.chunks_exact(width)) {
                    *value -= dot(left, right);
                }
            }
        }
        column_at += columns * width;
    }
    let indices = &layout.dense[node];
    let tail = &mut rest[layout.tail - shift..];
    let stride = layout.tail_width;
    let mut column = vec![0.0; indices.len()];
    for inner in 0..width {
        let own = panel[column_at..].chunks_exact(width).map(|row| row[inner]);
        column.iter_mut().zip(own).for_each(|(column, value)| *column = value);
        for (row, (&index, weight)) in indices.iter().zip(&column).enumerate() {
            let line = &mut tail[index as usize * stride..(index as usize + 1) * stride];
            if is_run(indices) {
                let line = &mut line[indices[0] as usize..][..=row];
                line.iter_mut().zip(&column).for_each(|(value, other)| *value -= weight * other);
            } else {
                for (&other, value) in indices[..=row].iter().zip(&column) {
                    line[other as usize] -= weight * value;
                }
            }
        }
    }
}

/// True if the indices follow one another.
fn is_run(indices: &[u32]) -> bool {
    matches!((indices.first(), indices.last()), (Some(first), Some(last)) if (last - first) as usize + 1 == indices.len())
}

/// `found = -inverse[rows, rows] * weights` for the rows below a node.
fn multiply(layout: &Layout, node: usize, inverse: &[f64], weights: &[f64], found: &mut [f64]) {
    let width = layout.size[node];
    let rows = &layout.below[node];
    let mut targets = layout.targets[node].iter();
    let mut column_at = 0;
    for (index, &column) in rows.iter().enumerate() {
        if column as usize >= layout.sparse {
            break;
        }
        let columns = layout.size[column as usize];
        let mut row_at = column_at;
        for &row in &rows[index..] {
            let height = layout.size[row as usize];
            let offset = targets.next().map_or(0, |target| *target as usize);
            for line in 0..height {
                for other in 0..columns {
                    let value = inverse[offset + line * columns + other];
                    let (one, two) = ((row_at / width) + line, (column_at / width) + other);
                    for inner in 0..width {
                        found[one * width + inner] -= value * weights[two * width + inner];
                    }
                    if row != column {
                        for inner in 0..width {
                            found[two * width + inner] -= value * weights[one * width + inner];
                        }
                    }
                }
            }
            row_at += height * width;
        }
        column_at += columns * width;
    }
    let indices = &layout.dense[node];
    let tail = &inverse[layout.tail..];
    let stride = layout.tail_width;
    let mut column = vec![0.0; indices.len()];
    for inner in 0..width {
        let own = weights[column_at..].chunks_exact(width).map(|row| row[inner]);
        column.iter_mut().zip(own).for_each(|(column, value)| *column = value);
        for (&index, row) in indices.iter().zip(found[column_at..].chunks_exact_mut(width)) {
            let line = &tail[index as usize * stride..(index as usize + 1) * stride];
            row[inner] -= if is_run(indices) {
                dot(&line[indices[0] as usize..][..column.len()], &column)
            } else {
                indices.iter().zip(&column).map(|(&other, value)| line[other as usize] * value).sum()
            };
        }
    }
}

/// Factorises a dense matrix, of which the lower triangle is read, in place; the logarithm of its determinant.
fn dense_factor(values: &mut [f64], size: usize) -> Option<f64> {
    let mut sum = 0.0;
    for row in 0..size {
        let (done, current) = values.split_at_mut(row * size);
        for column in 0..row {
            let other = &done[column * size..column * size + column + 1];
            let value = current[column] - dot(&current[..column], &other[..column]);
            current[column] = value / other[column];
        }
        let pivot = current[row] - dot(&current[..row], &current[..row]);
        if pivot.is_nan() || pivot <= 0.0 || pivot.is_infinite() {
            return None;
        }
        current[row] = pivot.sqrt();
        sum += pivot.ln();
    }
    Some(sum)
}

/// The inverse of a dense matrix from its lower factor, both triangles.
fn dense_inverse(factor: &[f64], inverse: &mut [f64], size: usize) {
    if size == 1 {
        inverse[0] = (1.0 / factor[0]).powi(2);
        return;
    }
    // The inverse of the factor, row by row.
    let mut lower = vec![0.0; size * size];
    for row in 0..size {
        let (done, current) = lower.split_at_mut(row * size);
        for column in 0..row {
            let weight = factor[row * size + column];
            let other = &done[column * size..column * size + column + 1];
            current[..=column].iter_mut().zip(other).for_each(|(value, other)| *value -= weight * other);
        }
        let pivot = factor[row * size + row];
        current[..row].iter_mut().for_each(|value| *value /= pivot);
        current[row] = 1.0 / pivot;
    }
    inverse[..size * size].fill(0.0);
    for row in 0..size {
        let current = &lower[row * size..row * size + row + 1];
        for (line, weight) in current.iter().enumerate() {
            let into = &mut inverse[line * size..line * size + line + 1];
            into.iter_mut().zip(current).for_each(|(value, other)| *value += weight * other);
        }
    }
    for row in 0..size {
        for column in 0..row {
            inverse[column * size + row] = inverse[row * size + column];
        }
    }
}

/// Solves `L x = b` in place.
fn forward(factor: &[f64], size: usize, right: &mut [f64]) {
    for row in 0..size {
        let known = dot(&factor[row * size..row * size + row], &right[..row]);
        right[row] = (right[row] - known) / factor[row * size + row];
    }
}

/// Solves `L' x = b` in place.
fn backward(factor: &[f64], size: usize, right: &mut [f64]) {
    for row in (0..size).rev() {
        let value = right[row] / factor[row * size + row];
        right[row] = value;
        let line = &factor[row * size..row * size + row];
        right[..row].iter_mut().zip(line).for_each(|(right, factor)| *right -= factor * value);
    }
}

/// The inner product, by four sums that a compiler can keep in one register.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (left_four, right_four) = (left.chunks_exact(4), right.chunks_exact(4));
    let rest: f64 = left_four.remainder().iter().zip(right_four.remainder()).map(|(left, right)| left * right).sum();
    for (left, right) in left_four.zip(right_four) {
        for lane in 0..4 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}
