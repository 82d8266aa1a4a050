//! Keys and values in f32 or bf16, widened to f32: every product is exact but for f32's rounding.

use std::marker::PhantomData;

use super::{Format, QUERY_STRIDE, Scratch, VALUE_STRIDE};
use crate::core::BLOCK_SIZE;
use crate::cpu::kernels::lanes::{LANES, Lanes};
use crate::cpu::kernels::tile::{PanelElement, Rows, store_tile, tile, tiles, with_rows};

/// Keys transposed in two panels `[2][head_dim][16 positions]`, values in panels `[ceil(head_dim / 16)][32 positions][16]`.
pub(super) struct Exact<L, E>(PhantomData<(L, E)>);

impl<L: Lanes, E: PanelElement> Format for Exact<L, E> {
    type L = L;

    #[inline(always)]
    unsafe fn prepare(_: &mut Scratch, _: usize, _: usize) {}

    #[inline(always)]
    unsafe fn score(s: &mut Scratch, start: usize, count: usize, d: usize, keys: *const f32, used: usize) {
        let keys = keys.cast::<E>();
        for (offset, rows) in tiles(count, L::TILE_ROWS) {
            let row = start + offset;
            // SAFETY: rows are below those of the scratch buffers, `keys` begins a block of this layout, and the caller has
            // the instructions.
            unsafe {
                let q = Rows { first: s.queries.as_ptr().add(row * QUERY_STRIDE), row: QUERY_STRIDE, column: 1 };
                let target = s.scores.as_mut_ptr().add(row * BLOCK_SIZE);
                with_rows!(rows, L, R => {
                    if L::TILE_PANELS == 2 && used > LANES {
                        let mut acc = [[L::zero(); 2]; R];
                        tile::<L, E, R, 2>(d, q, [keys, keys.add(d * LANES)], &mut acc);
                        store_tile(&acc, target, BLOCK_SIZE);
                    } else {
                        for panel in 0..used.div_ceil(LANES) {
                            let mut acc = [[L::zero(); 1]; R];
                            tile::<L, E, R, 1>(d, q, [keys.add(panel * d * LANES)], &mut acc);
                            store_tile(&acc, target.add(panel * LANES), BLOCK_SIZE);
                        }
                    }
                });
            }
        }
    }

    #[inline(always)]
    unsafe fn weigh(s: &mut Scratch, start: usize, count: usize, d: usize, values: *const f32, used: usize) {
        let (panels, values) = (d.div_ceil(LANES), values.cast::<E>());
        for (offset, rows) in tiles(count, L::TILE_ROWS) {
            let row = start + offset;
            // SAFETY: rows are below those of the scratch buffers, `values` begins a block of this layout, and the caller has
            // the instructions.
            unsafe {
                let p = Rows { first: s.scores.as_ptr().add(row * BLOCK_SIZE), row: BLOCK_SIZE, column: 1 };
                let target = s.values.as_mut_ptr().add(row * VALUE_STRIDE);
                let mut panel = 0;
                while panel < panels {
                    let source = values.add(panel * BLOCK_SIZE * LANES);
                    let pair = L::TILE_PANELS == 2 && panel + 1 < panels;
                    with_rows!(rows, L, R => {
                        if pair {
                            let mut acc = [[L::zero(); 2]; R];
                            for r in 0..R {
                                let c = L::splat(s.correction[row + r]);
                                let t = target.add(r * VALUE_STRIDE + panel * LANES);
                                acc[r] = [L::load(t).mul(c), L::load(t.add(LANES)).mul(c)];
                            }
                            tile::<L, E, R, 2>(used, p, [source, source.add(BLOCK_SIZE * LANES)], &mut acc);
                            store_tile(&acc, target.add(panel * LANES), VALUE_STRIDE);
                        } else {
                            let mut acc = [[L::zero(); 1]; R];
                            for r in 0..R {
                                let c = L::splat(s.correction[row + r]);
                                acc[r] = [L::load(target.add(r * VALUE_STRIDE + panel * LANES)).mul(c)];
                            }
                            tile::<L, E, R, 1>(used, p, [source], &mut acc);
                            store_tile(&acc, target.add(panel * LANES), VALUE_STRIDE);
                        }
                    });
                    panel += if pair { 2 } else { 1 };
                }
            }
        }
    }
}
