//! Operands of a product in bf16.
use super::matrix::TileMatrix;
use super::numbers::Line;
use crate::cpu::kernels::target::Output;

/// Buffers that products reuse.
#[derive(Default)]
pub(crate) struct Scratch {
    /// For AMX: `[m / 16][k / 32][16]`
    pub(super) lines: Vec<Line>,
    /// For vectors: tiles of rows, each `[k / 32][32][rows]`, widened.
    pub(super) wide: Vec<f32>,
    /// Least exponent of each of those tiles.
    pub(super) least: Vec<u8>,
}

/// Operands of a product, and the panels of this piece.
pub(super) struct Operands<'a> {
    pub(super) m: usize,
    pub(super) scratch: &'a Scratch,
    pub(super) matrix: &'a TileMatrix,
    pub(super) panels: std::ops::Range<usize>,
    pub(super) out: Output<'a>,
}
