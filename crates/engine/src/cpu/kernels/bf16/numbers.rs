//! Sizes of tiles, and numbers in bf16.
use crate::cpu::kernels::lanes::LANES;

/// Inputs of a block: a row of a tile.
pub(super) const BLOCK: usize = 32;

/// Pairs of inputs in a block: rows of a tile of weights.
pub(super) const PAIRS: usize = BLOCK / 2;

/// Output columns of a panel: two tiles side by side.
pub(super) const COLUMNS: usize = 2 * LANES;

/// Rows of a tile of activations.
pub(super) const TILE_ROWS: usize = 16;

/// A row of a tile: 32 activations, or a pair of weights for each of sixteen columns.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u16; BLOCK]);

/// Rounds to bf16: to nearest, ties to even; a subnormal result is a zero, and what is not a number stays so.
#[inline(always)]
pub(super) fn round(x: f32) -> u16 {
    let bits = x.to_bits();
    let nearest = (bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16) as u16;
    let kept = if nearest & EXPONENT == 0 { nearest & 0x8000 } else { nearest };
    if bits & 0x7FFF_FFFF > 0x7F80_0000 { (bits >> 16) as u16 | 0x40 } else { kept }
}

/// The exponent's bits of a bf16.
pub(super) const EXPONENT: u16 = 0x7F80;

/// Biased exponent of a rounded value; the largest of all for zero, which makes no product small.
#[inline(always)]
pub(super) fn exponent(x: u16) -> u8 {
    if x & 0x7FFF == 0 { u8::MAX } else { ((x & EXPONENT) >> 7) as u8 }
}
