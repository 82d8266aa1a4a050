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
use super::shared::SharedMut;
use super::target::{Output, Target};
use crate::cpu::team::Team;

mod ask;
mod lanes;
mod matrix;
mod numbers;
mod operands;
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
use numbers::{BLOCK, COLUMNS, Line, TILE_ROWS, round};
use operands::Operands;
pub(crate) use operands::Scratch;
pub use unit::TileUnit;

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
        let out = Output { n, bias, into, y: out.pointer(), stride: n };
        let o = Operands { m, scratch, matrix, panels, out };
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
