//! Keys and values in 8 bits, for `--compute int8`: scores and sums of values are products of bytes.
//!
//! A key is rounded as a column of weights is (`step * code + least` for every 32 of its dimensions) and a query as
//! activations are. A value is `scale * code` with one scale and codes of -127 to 127; its scale goes into its probability,
//! and a row's 32 such products of a block are rounded to 0 to 255 with a scale of their own. What is summed within a block
//! are integers below 2^24, so a row's bits depend on the row and its sequence only, as in the exact mode.

use std::marker::PhantomData;

use super::{Format, MAX_HEAD_DIM, QUERY_STRIDE, QUERY_WORDS, Scratch, VALUE_STRIDE, WEIGHT_WORDS};
use crate::core::BLOCK_SIZE;
use crate::cpu::kernels::int8::{
    GROUP, Int8Group, Int8Isa, Int8Unit, QUAD, QUADS, ROW_WORDS, SMALLEST, TILE_ROWS, fold_group, for_each_unit,
    quantise_body,
};
use crate::cpu::kernels::lanes::{LANES, Lanes};
use crate::cpu::kernels::tile::{store_tile, tiles};
use crate::cpu::kv::{KEY_GROUP, VALUE_PANEL};

// The layout speaks of floats and knows no kernels.
const _: () = assert!(size_of::<Int8Group>() == KEY_GROUP * size_of::<f32>());
const _: () = assert!(BLOCK_SIZE * LANES == VALUE_PANEL * size_of::<f32>() && BLOCK_SIZE == GROUP);

/// Bytes of sixteen dimensions of four values.
const QUAD_BYTES: usize = QUAD * LANES;

/// Keys in two panels `[2][ceil(head_dim / 32)]` of [`Int8Group`], values in panels `[ceil(head_dim / 16)][8][16 dimensions][4
/// positions]`, then the values' scales `[32]`.
pub(super) struct Int8<U>(PhantomData<U>);

impl<U: Int8Unit> Format for Int8<U> {
    type L = U::L;

    #[inline(always)]
    unsafe fn prepare(s: &mut Scratch, rows: usize, d: usize) {
        let padded = d.next_multiple_of(GROUP);
        for row in 0..rows {
            let query = &mut s.queries[row * QUERY_STRIDE..row * QUERY_STRIDE + padded];
            query[d..].fill(0.0);
            // SAFETY: a row of words has room for a padded query, and the caller has the unit.
            unsafe { quantise_body::<U>(query, padded, s.query_words.as_mut_ptr().add(row * QUERY_WORDS)) };
        }
    }

    #[inline(always)]
    unsafe fn score(s: &mut Scratch, start: usize, count: usize, d: usize, keys: *const f32, used: usize) {
        let groups = d.div_ceil(GROUP);
        for (offset, rows) in tiles(count, TILE_ROWS) {
            let row = start + offset;
            // SAFETY: rows are below those of the scratch buffers, `keys` begins a block of this layout, and the caller has the unit.
            unsafe {
                let q = s.query_words.as_ptr().add(row * QUERY_WORDS);
                let keys = keys.cast::<Int8Group>();
                let target = s.scores.as_mut_ptr().add(row * BLOCK_SIZE);
                macro_rules! arm {
                    ($R:literal) => {
                        if used > LANES {
                            score_tile::<U, $R, 2>(groups, q, [keys, keys.add(groups)], target)
                        } else {
                            score_tile::<U, $R, 1>(groups, q, [keys], target)
                        }
                    };
                }
                for_rows!(rows, arm);
            }
        }
    }

    #[inline(always)]
    unsafe fn weigh(s: &mut Scratch, start: usize, count: usize, d: usize, values: *const f32, used: usize) {
        let panels = d.div_ceil(LANES);
        // SAFETY: rows are below those of the scratch buffers, `values` begins a block of this layout, and the caller has the unit.
        unsafe {
            let scales = values.add(panels * VALUE_PANEL);
            for row in start..start + count {
                let target = s.weight_words.as_mut_ptr().add(row * WEIGHT_WORDS);
                round_weights::<U>(s.scores.as_ptr().add(row * BLOCK_SIZE), scales, target);
            }
            // Codes of positions beyond are zeros.
            let quads = used.div_ceil(QUAD);
            for (offset, rows) in tiles(count, TILE_ROWS) {
                let row = start + offset;
                let (w, c) = (s.weight_words.as_ptr().add(row * WEIGHT_WORDS), s.correction.as_ptr().add(row));
                let target = s.values.as_mut_ptr().add(row * VALUE_STRIDE);
                let mut panel = 0;
                while panel < panels {
                    let codes = values.add(panel * VALUE_PANEL).cast::<u8>();
                    let (next, target) = (codes.add(VALUE_PANEL * size_of::<f32>()), target.add(panel * LANES));
                    let pair = panel + 1 < panels;
                    macro_rules! arm {
                        ($R:literal) => {
                            if pair {
                                weigh_tile::<U, $R, 2>(quads, w, c, [codes, next], target)
                            } else {
                                weigh_tile::<U, $R, 1>(quads, w, c, [codes], target)
                            }
                        };
                    }
                    for_rows!(rows, arm);
                    panel += if pair { 2 } else { 1 };
                }
            }
        }
    }
}

/// Runs the arm of a constant number of rows, at most [`TILE_ROWS`].
macro_rules! for_rows {
    ($rows:expr, $arm:ident) => {
        match $rows {
            1 => $arm!(1),
            2 => $arm!(2),
            3 => $arm!(3),
            4 => $arm!(4),
            5 => $arm!(5),
            6 => $arm!(6),
            rows => unreachable!("a tile of {rows} rows"),
        }
    };
}
use for_rows;

/// Scores of `R` rows of queries against `P` panels of sixteen keys.
#[inline(always)]
unsafe fn score_tile<U: Int8Unit, const R: usize, const P: usize>(
    groups: usize,
    queries: *const i32,
    panels: [*const Int8Group; P],
    out: *mut f32,
) {
    // SAFETY: the caller has the unit, `groups` groups behind every panel, as many words for each row, and room for R rows of P panels.
    unsafe {
        let mut acc = [[U::L::zero(); P]; R];
        for g in 0..groups {
            let keys = panels.map(|panel| panel.add(g));
            fold_group::<U, R, P>(queries.add(g * ROW_WORDS), QUERY_WORDS, 1, keys, &mut acc);
        }
        store_tile(&acc, out, BLOCK_SIZE);
    }
}

/// Rounds a row's probabilities times the values' scales: eight words of codes, and their scale.
#[inline(always)]
unsafe fn round_weights<U: Int8Unit>(probabilities: *const f32, scales: *const f32, out: *mut i32) {
    // SAFETY: the caller has the unit, two vectors of probabilities and scales, and room for the words of a row.
    unsafe {
        let weight = |at: usize| U::L::load(probabilities.add(at)).mul(U::L::load(scales.add(at)));
        let v = [weight(0), weight(LANES)];
        let top = v[0].max(v[1]).largest();
        // Zero, or NaN if one of them is not finite: so is the row's every output then.
        let finite = v[0].mul(U::L::zero()).add(v[1].mul(U::L::zero())).sum();
        let (scale, inverse) = if top > SMALLEST { (top / 255.0, 255.0 / top) } else { (0.0, 0.0) };
        let factor = U::L::splat(inverse);
        let codes = out.cast::<u8>();
        U::store_unsigned(v[0].mul(factor).round(), codes);
        U::store_unsigned(v[1].mul(factor).round(), codes.add(LANES));
        *out.add(QUADS) = (scale + finite).to_bits() as i32;
    }
}

/// `out = out * correction + weights x values` for `R` rows and `P` panels of sixteen dimensions.
#[inline(always)]
unsafe fn weigh_tile<U: Int8Unit, const R: usize, const P: usize>(
    quads: usize,
    weights: *const i32,
    corrections: *const f32,
    panels: [*const u8; P],
    out: *mut f32,
) {
    // SAFETY: the caller has the unit, `quads` quads behind every panel, the words of R rows, and room for their sums.
    unsafe {
        let mut sums = [[U::zero(); P]; R];
        for j in 0..quads {
            let values = panels.map(|panel| U::codes(panel.add(j * QUAD_BYTES)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let w = *weights.add(r * WEIGHT_WORDS + j);
                for p in 0..P {
                    sums[p] = U::dot_signed(sums[p], values[p], w);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            let scale = U::L::splat(f32::from_bits(*weights.add(r * WEIGHT_WORDS + QUADS) as u32));
            let correction = U::L::splat(*corrections.add(r));
            for (p, &sum) in sums.iter().enumerate() {
                let target = out.add(r * VALUE_STRIDE + p * LANES);
                U::floats(sum).fma(scale, U::L::load(target).mul(correction)).store(target);
            }
        }
    }
}

/// Writes one position's key and value.
///
/// # Safety
/// `keys` and `values` point to a head's parts of a block that nobody reads; threads write different positions. The CPU has
/// the unit.
pub(super) unsafe fn write(unit: Int8Isa, keys: *mut f32, values: *mut f32, slot: usize, key: &[f32], value: &[f32]) {
    assert!(slot < BLOCK_SIZE && key.len() == value.len(), "a key and a value of different sizes");
    // SAFETY: as this function's: the caller has the unit and a block of this layout, and the slot and the sizes were just checked.
    unsafe { write_on(unit, keys, values, slot, key, value) }
}

for_each_unit! {
    fn write_on(keys: *mut f32, values: *mut f32, slot: usize, key: &[f32], value: &[f32]) => write_body
}

/// Zero if all values are finite, otherwise NaN; `values` are a multiple of sixteen.
#[inline(always)]
unsafe fn finite<L: Lanes>(values: &[f32]) -> f32 {
    // SAFETY: a part has sixteen values, and the caller has the instructions.
    unsafe {
        let mut sums = L::zero();
        for part in values.chunks_exact(LANES) {
            sums = L::load(part.as_ptr()).mul(L::zero()).add(sums);
        }
        sums.sum()
    }
}

#[inline(always)]
unsafe fn write_body<U: Int8Unit>(keys: *mut f32, values: *mut f32, slot: usize, key: &[f32], value: &[f32]) {
    let d = key.len();
    let groups = d.div_ceil(GROUP);
    // SAFETY: `write` checked the slot and the sizes: a key has `groups` groups in the block and a value its panels.
    unsafe {
        for (g, part) in key.chunks(GROUP).enumerate() {
            let mut weights = [0f32; GROUP];
            weights[..part.len()].copy_from_slice(part);
            let group = keys.cast::<Int8Group>().add(slot / LANES * groups + g);
            Int8Group::set_lane_on::<U>(group, slot % LANES, &weights);
            // What is not finite has no code; its scores must be NaN, not zeros.
            if finite::<U::L>(&weights).is_nan() {
                Int8Group::spoil_lane(group, slot % LANES);
            }
        }
        let mut padded = [0f32; MAX_HEAD_DIM];
        padded[..d].copy_from_slice(value);
        let whole = &padded[..d.next_multiple_of(LANES)];
        let mut tops = U::L::zero();
        for i in (0..whole.len()).step_by(LANES) {
            let v = U::L::load(whole.as_ptr().add(i));
            tops = v.max(U::L::zero().sub(v)).max(tops);
        }
        let top = tops.largest();
        let (scale, inverse) = if top > SMALLEST { (top / 127.0, 127.0 / top) } else { (0.0, 0.0) };
        let codes = values.cast::<u8>().add(slot / QUAD * QUAD_BYTES + slot % QUAD);
        let factor = U::L::splat(inverse);
        for (panel, part) in whole.chunks_exact(LANES).enumerate() {
            // Of what is not finite the units make different codes; its scale is NaN, so that none counts.
            let mut rounded = [0i8; LANES];
            U::store_bytes(U::L::load(part.as_ptr()).mul(factor).round(), rounded.as_mut_ptr());
            for (i, code) in rounded.into_iter().take(d - panel * LANES).enumerate() {
                *codes.add(panel * VALUE_PANEL * size_of::<f32>() + i * QUAD) = code as u8;
            }
        }
        *values.add(d.div_ceil(LANES) * VALUE_PANEL + slot) = scale + finite::<U::L>(whole);
    }
}
