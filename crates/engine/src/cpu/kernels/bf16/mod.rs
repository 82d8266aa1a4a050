//! Products in bf16, for `--compute bf16`: both operands rounded to bf16, sums in f32 as the matrix unit AMX forms them.
//!
//! The arithmetic is that of `tdpbf16ps` (Intel SDM, volume 2). A weight or an activation is rounded to the nearest bf16, ties to
//! even, and a subnormal one counts as zero. Inputs are taken in blocks of 32, the last one filled with zeros. Within a block the
//! sixteen products of even inputs are one chain of fused multiply-adds in ascending order that begins at zero, and those of odd
//! inputs another; an output is `C + (even + odd)` from block to block, C being zero before the first. Results that are subnormal
//! (tiny after rounding, as for SSE) are zeros with their sign; the control register of SSE is neither read nor written. A bias
//! and the previous value are then added as in f32.
//!
//! So an output's bits depend on its row, the matrix and the bias only, as in the exact mode: not on the batch, the threads or
//! the unit. [`lanes`] computes the same bits with vectors as `tiles` does with AMX.

use super::lanes::{LANES, Lanes, for_each_isa};
use super::matmul::{Target, finish};
use super::shared::SharedMut;
use super::tile::tiles;
use crate::cpu::team::Team;

mod lanes;
mod matrix;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod probe;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tiles;
mod unit;

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod emulator;
#[cfg(test)]
mod tests;

pub(crate) use matrix::TileMatrix;
pub use unit::TileUnit;

/// Inputs of a block: a row of a tile.
const BLOCK: usize = 32;

/// Pairs of inputs in a block: rows of a tile of weights.
const PAIRS: usize = BLOCK / 2;

/// Output columns of a panel: two tiles side by side.
const COLUMNS: usize = 2 * LANES;

/// Rows of a tile of activations.
const TILE_ROWS: usize = 16;

/// A row of a tile: 32 activations, or a pair of weights for each of sixteen columns.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u16; BLOCK]);

/// Buffers that products reuse.
#[derive(Default)]
pub(crate) struct Scratch {
    /// For AMX: `[m / 16][k / 32][16]`
    lines: Vec<Line>,
    /// For vectors: tiles of rows, each `[k / 32][32][rows]`, widened.
    wide: Vec<f32>,
    /// Least exponent of each of those tiles.
    least: Vec<u8>,
}

/// Rounds to bf16: to nearest, ties to even; a subnormal result is a zero, and what is not a number stays so.
#[inline(always)]
fn round(x: f32) -> u16 {
    let bits = x.to_bits();
    let nearest = (bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16) as u16;
    let kept = if nearest & EXPONENT == 0 { nearest & 0x8000 } else { nearest };
    if bits & 0x7FFF_FFFF > 0x7F80_0000 { (bits >> 16) as u16 | 0x40 } else { kept }
}

/// The exponent's bits of a bf16.
const EXPONENT: u16 = 0x7F80;

/// Biased exponent of a rounded value; the largest of all for zero, which makes no product small.
#[inline(always)]
fn exponent(x: u16) -> u8 {
    if x & 0x7FFF == 0 { u8::MAX } else { ((x & EXPONENT) >> 7) as u8 }
}

/// Operands of a product, and the panels of this piece.
struct Operands<'a> {
    m: usize,
    n: usize,
    scratch: &'a Scratch,
    matrix: &'a TileMatrix,
    panels: std::ops::Range<usize>,
    bias: Option<&'a [f32]>,
    into: Target,
    y: *mut f32,
}

/// `y[m, n] = x[m, k] W^T (+ bias)`, or added to y, in bf16.
///
/// Panics if the operands' sizes do not fit.
#[expect(clippy::too_many_arguments, reason = "a kernel's operands")]
pub(crate) fn matmul(
    team: &Team,
    scratch: &mut Scratch,
    x: &[f32],
    matrix: &TileMatrix,
    (n, k): (usize, usize),
    bias: Option<&[f32]>,
    into: Target,
    y: &mut [f32],
) {
    let m = x.len() / k;
    assert!(x.len() == m * k && y.len() == m * n, "operands of a product do not fit");
    assert!(matrix.fits(n, k) && bias.is_none_or(|b| b.len() == n), "a matrix of another size");
    let isa = team.isa();
    let amx = matrix.unit().has_amx();
    if amx {
        round_lines(team, x, k, scratch)
    } else {
        lanes::round_rows(team, x, k, scratch)
    }
    let count = matrix.panels();
    // Enough pieces that threads which finish early take more, but each large enough to hide its hand-over.
    let work_per_panel = 2 * m * k * COLUMNS;
    let grain = (400_000 / work_per_panel.max(1)).clamp(1, (count / (2 * team.threads())).max(1));
    let (out, scratch) = (SharedMut::new(y), &*scratch);
    team.run(count.div_ceil(grain), &|piece| {
        let panels = piece * grain..((piece + 1) * grain).min(count);
        let o = Operands { m, n, scratch, matrix, panels, bias, into, y: out.pointer() };
        // SAFETY: the instruction set was detected, and the unit by asking the system; the pieces write disjoint columns of y;
        // all sizes were checked above.
        unsafe {
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            if amx {
                return tiles::product(isa, o);
            }
            lanes::product(isa, o);
        }
    });
}

/// Rounds the rows of `x[m, k]` to tiles.
fn round_lines(team: &Team, x: &[f32], k: usize, scratch: &mut Scratch) {
    let (m, blocks) = (x.len() / k, k.div_ceil(BLOCK));
    let per_tile = blocks * TILE_ROWS;
    scratch.lines.resize(m.div_ceil(TILE_ROWS) * per_tile, Line([0; BLOCK]));
    let (count, out) = (m.div_ceil(TILE_ROWS), SharedMut::new(&mut scratch.lines));
    let one = |tile: usize| {
        // SAFETY: each tile is written by one piece, and the instruction set was detected.
        unsafe {
            let lines = out.slice(tile * per_tile, per_tile);
            round_tile(team.isa(), &x[tile * TILE_ROWS * k..m.min((tile + 1) * TILE_ROWS) * k], k, lines);
        }
    };
    if m * k < 20_000 { (0..count).for_each(one) } else { team.run(count, &one) }
}

for_each_isa! { fn round_tile(x: &[f32], k: usize, lines: &mut [Line]) => round_tile_body }

/// Up to sixteen rows to a tile of each block; rows that do not exist keep what they hold, because nobody reads them.
#[inline(always)]
unsafe fn round_tile_body<L: Lanes>(x: &[f32], k: usize, lines: &mut [Line]) {
    for (r, row) in x.chunks_exact(k).enumerate() {
        for (block, values) in row.chunks(BLOCK).enumerate() {
            let line = &mut lines[block * TILE_ROWS + r].0;
            match values.as_array::<BLOCK>() {
                Some(values) => *line = values.map(round),
                None => *line = std::array::from_fn(|i| values.get(i).map_or(0, |&v| round(v))),
            }
        }
    }
}

/// Adds bias and previous values to `rows` rows of products with a panel, `[rows][32]` from `sums` on, and stores what exists.
///
/// # Safety
/// The CPU has the instructions; `sums` has the rows; `first` and those after it are rows of y.
#[inline(always)]
unsafe fn finish_rows<L: Lanes>(o: &Operands<'_>, panel: usize, first: usize, rows: usize, sums: *const f32) {
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

/// Operations of a round of [`products`].
pub(super) const PEAK_OPERATIONS: usize = 4 * TILE_ROWS * LANES * BLOCK * 2;

/// `rounds` times four products of tiles that read no memory, to measure what a core can do. Panics without AMX.
pub(super) fn products(unit: TileUnit, rounds: usize) {
    assert!(unit.has_amx(), "products of tiles without AMX");
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // SAFETY: the unit says that the system was asked.
    unsafe {
        tiles::products(rounds);
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    let _ = rounds;
}
