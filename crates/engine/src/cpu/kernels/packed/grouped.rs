//! Products in f32 with grouped rows: every input has the scale and zero point of its group, which are read where they are used.
//!
//! A weight is `(code - zero) * scale`, rounded once, as the formats define it.

use std::ops::Range;

use super::codes::{Bits4, Bits8, Codes, GROUP, QUADS, Width};
use super::part::{Panel, Part};
use super::words::Words;
use crate::cpu::kernels::lanes::LANES;
use crate::cpu::kernels::target::Output;
use crate::cpu::kernels::tile::store_tile;

/// Runs `$body` with the type `$B` of codes of grouped rows.
macro_rules! with_grouped_codes {
    ($part:expr, $B:ident => $body:expr) => {
        if $part.codes() == Codes::Four {
            type $B = Bits4;
            $body
        } else {
            type $B = Bits8;
            $body
        }
    };
}

/// One row: several panels at a time.
///
/// # Safety
/// The CPU has the instructions; `of` are the part's groups of inputs; row and output have the part's sizes; nobody else touches the
/// output's columns.
#[inline(always)]
pub(super) unsafe fn vector<L: Words>(part: &Part, of: &[u32], x: &[f32], panels: Range<usize>, out: Output<'_>) {
    // SAFETY: as this function's callers'.
    unsafe {
        with_grouped_codes!(part, B => {
            let mut panel = panels.start;
            while panel < panels.end {
                let left = panels.end - panel;
                panel += if left >= 4 && L::TILE_PANELS == 2 {
                    chains::<L, B, 4>(part, of, x, panel, out)
                } else if left >= 2 {
                    chains::<L, B, 2>(part, of, x, panel, out)
                } else {
                    chains::<L, B, 1>(part, of, x, panel, out)
                };
            }
        });
    }
}

/// One row times `P` panels; returns their number.
#[inline(always)]
unsafe fn chains<L: Words, B: Width, const P: usize>(
    part: &Part,
    of: &[u32],
    x: &[f32],
    first: usize,
    out: Output<'_>,
) -> usize {
    let panels: [Panel; P] = std::array::from_fn(|p| part.panel(first + p));
    // SAFETY: there are `k` inputs, of which the panels have codes, `x` values and `of` groups; columns are the caller's.
    unsafe {
        let mut acc = [[L::zero(); P]];
        for block in 0..part.k() / GROUP {
            for panel in &panels {
                panel.prefetch::<L, B>(block, P);
            }
            let (x, of) = (x.as_ptr().add(block * GROUP), of.as_ptr().add(block * GROUP));
            for q in 0..QUADS {
                let mut codes = [[L::zero(); 4]; P];
                for p in 0..P {
                    codes[p] = B::floats::<L>(panels[p].codes.add(block * B::LINES * LANES), q);
                }
                let four = x.add(4 * q).cast::<[f32; 4]>().read_unaligned();
                let groups = of.add(4 * q).cast::<[u32; 4]>().read_unaligned();
                for (b, (x, group)) in four.into_iter().zip(groups).enumerate() {
                    let x = L::splat(x);
                    for p in 0..P {
                        let (scale, less) = panels[p].of_group::<L>(group);
                        acc[0][p] = x.fma(codes[p][b].add(less).mul(scale), acc[0][p]);
                    }
                }
            }
        }
        let mut sums = [[0.0; LANES]; P];
        store_tile(&acc, sums.as_mut_ptr().cast(), P * LANES);
        out.finish::<L>(sums.as_ptr().cast(), (0, 1), first, P);
    }
    P
}

/// Widens the weights of inputs `start..start + length` of a panel to `[length][16]`.
///
/// # Safety
/// The CPU has the instructions; `of` are the part's groups of inputs; the inputs are whole blocks of the panel, and there is room for them.
#[inline(always)]
pub(super) unsafe fn widen<L: Words>(
    part: &Part,
    of: &[u32],
    panel: Panel,
    start: usize,
    length: usize,
    out: *mut f32,
) {
    // SAFETY: as this function's callers'.
    unsafe {
        with_grouped_codes!(part, B => {
            for block in start / GROUP..(start + length) / GROUP {
                panel.prefetch::<L, B>(block, L::TILE_PANELS);
                let (of, out) = (of.as_ptr().add(block * GROUP), out.add((block * GROUP - start) * LANES));
                for q in 0..QUADS {
                    let codes = B::floats::<L>(panel.codes.add(block * B::LINES * LANES), q);
                    for (b, code) in codes.into_iter().enumerate() {
                        let (scale, less) = panel.of_group::<L>(*of.add(4 * q + b));
                        code.add(less).mul(scale).store(out.add((4 * q + b) * LANES));
                    }
                }
            }
        });
    }
}
