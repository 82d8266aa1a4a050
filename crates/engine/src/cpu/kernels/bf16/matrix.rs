//! Weights in tiles of bf16.

use half::f16;
use rayon::prelude::*;

use super::numbers::{BLOCK, COLUMNS, Line, PAIRS, exponent, round};
use super::unit::TileUnit;
use crate::cpu::kernels::lanes::LANES;
use earnest_models::checkpoint::{Tensor, Values};

/// A weight matrix `[n, k]` in bf16, two bytes a weight: panels of 32 output columns, each `[k / 32][2][16 pairs of
/// inputs][16 columns][2 inputs]`, the order in which tiles are loaded. What is missing to whole tiles is zero.
pub(crate) struct TileMatrix {
    unit: TileUnit,
    blocks: usize,
    lines: Vec<Line>,
    /// Least exponent of each panel's weights.
    least: Vec<u8>,
}

/// Lines of a block of a panel.
const BLOCK_LINES: usize = 2 * PAIRS;

impl TileMatrix {
    /// Packs matrices of equal width on top of each other, rounded to bf16.
    pub(crate) fn stack(parts: &[Tensor], k: usize, unit: TileUnit) -> TileMatrix {
        let n: usize = parts.iter().map(|t| t.shape[0]).sum();
        let blocks = k.div_ceil(BLOCK);
        let mut lines = vec![Line([0; BLOCK]); n.div_ceil(COLUMNS) * blocks * BLOCK_LINES];
        let panels = lines.par_chunks_mut((blocks * BLOCK_LINES).max(1)).enumerate();
        let least = panels.map(|(panel, lines)| {
            let mut least = u8::MAX;
            for column in 0..COLUMNS.min(n - panel * COLUMNS) {
                let (values, first) = row(parts, k, panel * COLUMNS + column);
                for i in 0..k {
                    let weight = rounded(values, first + i);
                    least = least.min(exponent(weight));
                    lines[line(column, i)].0[lane(column, i)] = weight;
                }
            }
            least
        });
        let least = least.collect();
        TileMatrix { unit, blocks, lines, least }
    }

    /// The unit that computes products with it.
    pub(crate) fn unit(&self) -> TileUnit {
        self.unit
    }

    /// Bytes of memory.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(self.lines.as_slice()) + self.least.len()
    }

    /// Weight `i` of row `row`, an output column.
    pub(crate) fn weight(&self, row: usize, i: usize) -> f32 {
        let (panel, column) = (row / COLUMNS, row % COLUMNS);
        let line = &self.lines[panel * self.blocks * BLOCK_LINES + line(column, i)];
        f32::from_bits(u32::from(line.0[lane(column, i)]) << 16)
    }

    /// Number of panels.
    pub(super) fn panels(&self) -> usize {
        self.least.len()
    }

    /// Blocks of inputs.
    pub(super) fn blocks(&self) -> usize {
        self.blocks
    }

    /// True for a matrix `[n, k]`.
    pub(super) fn fits(&self, n: usize, k: usize) -> bool {
        self.blocks == k.div_ceil(BLOCK) && self.least.len() == n.div_ceil(COLUMNS)
    }

    /// The first weights of a panel. Panics if there is no such panel.
    pub(super) fn panel(&self, panel: usize) -> *const u16 {
        let lines = self.blocks * BLOCK_LINES;
        self.lines[panel * lines..(panel + 1) * lines].as_ptr().cast()
    }

    /// Least exponent of a panel's weights that are not zero.
    pub(super) fn least(&self, panel: usize) -> u8 {
        self.least[panel]
    }
}

/// Line of a panel that has an input's weight for a column.
fn line(column: usize, i: usize) -> usize {
    i / BLOCK * BLOCK_LINES + column / LANES * PAIRS + i % BLOCK / 2
}

/// Its place in the line.
fn lane(column: usize, i: usize) -> usize {
    column % LANES * 2 + i % 2
}

/// The part that has a row of the stack, and the row's first value there.
fn row(parts: &[Tensor], k: usize, mut row: usize) -> (&Values, usize) {
    for part in parts {
        if row < part.shape[0] {
            return (&part.values, row * k);
        }
        row -= part.shape[0];
    }
    unreachable!("a row beyond the stack")
}

fn rounded(values: &Values, i: usize) -> u16 {
    match values {
        Values::F32(v) => round(v[i]),
        // Exact, but for subnormal values.
        Values::Bf16(v) => round(f32::from_bits(u32::from(v[i]) << 16)),
        Values::F16(v) => round(f16::from_bits(v[i]).to_f32()),
    }
}
