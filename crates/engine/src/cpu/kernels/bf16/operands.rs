//! Operands of a product in bf16, and where it goes.
use super::matrix::TileMatrix;
use super::numbers::{COLUMNS, Line};
use crate::cpu::kernels::lanes::{LANES, Lanes};
use crate::cpu::kernels::target::{Target, finish};

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
    pub(super) n: usize,
    pub(super) scratch: &'a Scratch,
    pub(super) matrix: &'a TileMatrix,
    pub(super) panels: std::ops::Range<usize>,
    pub(super) bias: Option<&'a [f32]>,
    pub(super) into: Target,
    pub(super) y: *mut f32,
}

/// Adds bias and previous values to `rows` rows of products with a panel, `[rows][32]` from `sums` on, and stores what exists.
///
/// # Safety
/// The CPU has the instructions; `sums` has the rows; `first` and those after it are rows of y.
#[inline(always)]
pub(super) unsafe fn finish_rows<L: Lanes>(
    o: &Operands<'_>,
    panel: usize,
    first: usize,
    rows: usize,
    sums: *const f32,
) {
    for half in (2 * panel..2 * panel + 2).take_while(|half| half * LANES < o.n) {
        for r in 0..rows {
            // SAFETY: the caller's rows, and a half of the panel that has columns.
            unsafe {
                let acc = L::load(sums.add(r * COLUMNS + half % 2 * LANES));
                finish(acc, o.n, half, o.bias, o.into, o.y.add((first + r) * o.n));
            }
        }
    }
}
