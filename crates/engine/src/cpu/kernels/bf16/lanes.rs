//! Products in bf16 with vectors, where there is no AMX: the same bits, about as fast as products in f32.
//!
//! Flushing each subnormal result would cost more than the products. It is not needed where no such result can occur: with
//! 8 significant bits, every product of a row and a column is a multiple of the least one's last bit, and so is every rounded sum
//! of them. If that bit is no smaller than the smallest normal number, neither is any sum that is not zero. The exponents of rows
//! and panels tell; the few other tiles flush.

use super::super::lanes::{Lanes, Portable, for_each_isa};
use super::numbers::{BLOCK, COLUMNS, PAIRS, exponent, round};
use super::operands::{Operands, Scratch};
use crate::cpu::kernels::lanes::LANES;
use crate::cpu::kernels::shared::SharedMut;
use crate::cpu::kernels::tile::{store_tile, tiles};
use crate::cpu::team::Team;

/// Least sum of the biased exponents of an activation and a weight whose product's last bit is a normal number: both are
/// `2^(e - 127 - 7)` times an integer, and `2^-126` is the smallest normal number.
const NEVER_SUBNORMAL: u32 = 2 * (127 + 7) - 126;

/// Vectors of pairs of weights.
pub(super) trait PairLanes: Lanes {
    /// Most rows of a register tile: its even and odd sums and two weights fit the registers.
    const ROWS: usize;
    /// Tiles of weights side by side.
    const TILES: usize;

    /// Sixteen pairs of bf16: the even ones and the odd ones.
    unsafe fn load_pairs(p: *const u16) -> [Self; 2];
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::super::lanes::Pair;
    use super::PairLanes;

    impl PairLanes for __m512 {
        const ROWS: usize = 6;
        const TILES: usize = 2;

        #[inline(always)]
        unsafe fn load_pairs(p: *const u16) -> [Self; 2] {
            // SAFETY: the caller has a vector of pairs at the pointer, and the instructions.
            unsafe {
                let pairs = _mm512_loadu_si512(p.cast());
                let high = _mm512_set1_epi32(0xFFFF_0000_u32 as i32);
                [_mm512_slli_epi32::<16>(pairs), _mm512_and_si512(pairs, high)].map(|v| _mm512_castsi512_ps(v))
            }
        }
    }

    impl PairLanes for Pair {
        const ROWS: usize = 3;
        const TILES: usize = 1;

        #[inline(always)]
        unsafe fn load_pairs(p: *const u16) -> [Self; 2] {
            // SAFETY: the caller has a vector of pairs at the pointer, and the instructions.
            unsafe {
                let pairs = [_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(16).cast())];
                let high = _mm256_set1_epi32(0xFFFF_0000_u32 as i32);
                let even = pairs.map(|v| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(v)));
                let odd = pairs.map(|v| _mm256_castsi256_ps(_mm256_and_si256(v, high)));
                [Pair(even[0], even[1]), Pair(odd[0], odd[1])]
            }
        }
    }
}

impl PairLanes for Portable {
    const ROWS: usize = 2;
    const TILES: usize = 1;

    #[inline(always)]
    unsafe fn load_pairs(p: *const u16) -> [Self; 2] {
        // SAFETY: the caller has a vector of pairs at the pointer; the arrays are vectors.
        unsafe {
            let pairs = p.cast::<[[u16; 2]; LANES]>().read_unaligned();
            [0, 1].map(|odd| Self::load(pairs.map(|pair| f32::from_bits(u32::from(pair[odd]) << 16)).as_ptr()))
        }
    }
}

for_each_isa! { fn tile_rows(rows: &mut usize) => tile_rows_body }
for_each_isa! { fn round_tile(x: &[f32], k: usize, out: &mut [f32], least: &mut u8) => round_tile_body }
for_each_isa! {
    /// Products of rows that [`round_rows`] rounded with panels of a matrix.
    ///
    /// # Safety
    /// The CPU has the instruction set; the sizes fit; nobody else touches the panels' columns of y.
    pub(super) fn product(o: Operands<'_>) => product_body
}

#[inline(always)]
unsafe fn tile_rows_body<L: PairLanes>(rows: &mut usize) {
    *rows = L::ROWS;
}

/// Rounds the rows of `x[m, k]`, in tiles as the kernel reads them.
pub(super) fn round_rows(team: &Team, x: &[f32], k: usize, scratch: &mut Scratch) {
    let (m, width) = (x.len() / k, k.next_multiple_of(BLOCK));
    let mut most = 0;
    // SAFETY: the instruction set was detected.
    unsafe { tile_rows(team.isa(), &mut most) };
    let split = tiles(m, most);
    let count = split.len();
    scratch.wide.resize(m * width, 0.0);
    scratch.least.resize(count, 0);
    let (out, least) = (SharedMut::new(&mut scratch.wide), SharedMut::new(&mut scratch.least));
    let one = |t: usize| {
        let (start, rows) = split.clone().nth(t).expect("t counts the tiles");
        // SAFETY: tiles cover disjoint parts of the buffers, and the instruction set was detected.
        unsafe {
            let (out, least) = (out.slice(start * width, rows * width), least.slice(t, 1));
            round_tile(team.isa(), &x[start * k..(start + rows) * k], k, out, &mut least[0]);
        }
    };
    if m * k < 20_000 { (0..count).for_each(one) } else { team.run(count, &one) }
}

#[inline(always)]
unsafe fn round_tile_body<L: PairLanes>(x: &[f32], k: usize, out: &mut [f32], least: &mut u8) {
    let rows = x.len() / k;
    *least = u8::MAX;
    out[k * rows..].fill(0.0);
    for (r, row) in x.chunks_exact(k).enumerate() {
        for (block, values) in row.chunks(BLOCK).enumerate() {
            let mut rounded = [0u16; BLOCK];
            rounded.iter_mut().zip(values).for_each(|(to, &v)| *to = round(v));
            *least = rounded.iter().fold(*least, |least, &v| least.min(exponent(v)));
            let target = out[block * BLOCK * rows + r..].iter_mut().step_by(rows);
            target.zip(rounded).for_each(|(to, v)| *to = f32::from_bits(u32::from(v) << 16));
        }
    }
}

#[inline(always)]
unsafe fn product_body<L: PairLanes>(o: Operands<'_>) {
    let blocks = o.matrix.blocks();
    for panel in o.panels.clone() {
        let weights = o.matrix.panel(panel);
        for (t, (start, rows)) in tiles(o.m, L::ROWS).enumerate() {
            let mut sums = [0f32; 6 * COLUMNS];
            let exact = u32::from(o.scratch.least[t]) + u32::from(o.matrix.least(panel)) >= NEVER_SUBNORMAL;
            // SAFETY: the tile's rows as they were rounded, and a panel of as many blocks; `sums` has room for the most rows.
            unsafe {
                let a = o.scratch.wide.as_ptr().add(start * blocks * BLOCK);
                let sums = sums.as_mut_ptr();
                match (exact, rows) {
                    (false, _) => flushing::<L>(blocks, a, rows, weights, sums),
                    (true, 1) => side_by_side::<L, 1>(blocks, a, weights, sums),
                    (true, 2) => side_by_side::<L, 2>(blocks, a, weights, sums),
                    (true, 3) if L::ROWS >= 3 => side_by_side::<L, 3>(blocks, a, weights, sums),
                    (true, 4) if L::ROWS >= 6 => side_by_side::<L, 4>(blocks, a, weights, sums),
                    (true, 5) if L::ROWS >= 6 => side_by_side::<L, 5>(blocks, a, weights, sums),
                    (true, 6) if L::ROWS >= 6 => side_by_side::<L, 6>(blocks, a, weights, sums),
                    (true, rows) => unreachable!("a tile of {rows} rows"),
                }
                o.out.finish::<L>(sums, (start, rows), 2 * panel, 2);
            }
        }
    }
}

/// Products of `R` rows with a panel.
#[inline(always)]
unsafe fn side_by_side<L: PairLanes, const R: usize>(blocks: usize, a: *const f32, w: *const u16, sums: *mut f32) {
    // SAFETY: as the caller's.
    unsafe {
        if L::TILES == 2 {
            tile::<L, R, 2>(blocks, a, w, sums);
        } else {
            tile::<L, R, 1>(blocks, a, w, sums);
            tile::<L, R, 1>(blocks, a, w.add(PAIRS * BLOCK), sums.add(LANES));
        }
    }
}

/// Products of `R` rows with `P` tiles of a panel's columns, where no result is subnormal.
#[inline(always)]
unsafe fn tile<L: PairLanes, const R: usize, const P: usize>(
    blocks: usize,
    a: *const f32,
    w: *const u16,
    sums: *mut f32,
) {
    // SAFETY: the caller has `blocks` blocks of R rows and of the panel, room for the sums, and the instructions.
    unsafe {
        let mut total = [[L::zero(); P]; R];
        for block in 0..blocks {
            let (a, w) = (a.add(block * BLOCK * R), w.add(block * BLOCK * COLUMNS));
            let (mut even, mut odd) = ([[L::zero(); P]; R], [[L::zero(); P]; R]);
            for j in 0..PAIRS {
                let mut pairs = [[L::zero(); 2]; P];
                for (p, pair) in pairs.iter_mut().enumerate() {
                    *pair = L::load_pairs(w.add((p * PAIRS + j) * BLOCK));
                }
                for (odd, chains) in [&mut even, &mut odd].into_iter().enumerate() {
                    for (r, sums) in chains.iter_mut().enumerate() {
                        let x = L::splat(*a.add((2 * j + odd) * R + r));
                        for (sum, pair) in sums.iter_mut().zip(&pairs) {
                            *sum = x.fma(pair[odd], *sum);
                        }
                    }
                }
            }
            for r in 0..R {
                for p in 0..P {
                    total[r][p] = total[r][p].add(even[r][p].add(odd[r][p]));
                }
            }
        }
        store_tile(&total, sums, COLUMNS);
    }
}

/// Products of `rows` rows with a panel, subnormal results flushed to zero.
#[inline(always)]
unsafe fn flushing<L: PairLanes>(blocks: usize, a: *const f32, rows: usize, w: *const u16, sums: *mut f32) {
    // SAFETY: the caller has `blocks` blocks of the rows and of the panel, room for the sums, and the instructions.
    unsafe {
        for (r, half) in (0..rows).flat_map(|r| [(r, 0), (r, 1)]) {
            let mut total = L::zero();
            for block in 0..blocks {
                let (a, w) = (a.add(block * BLOCK * rows + r), w.add(block * BLOCK * COLUMNS + half * PAIRS * BLOCK));
                let mut chains = [L::zero(); 2];
                for j in 0..PAIRS {
                    let pair = L::load_pairs(w.add(j * BLOCK));
                    for (odd, chain) in chains.iter_mut().enumerate() {
                        *chain = fma_flushed(*a.add((2 * j + odd) * rows), pair[odd], *chain);
                    }
                }
                total = add_flushed(total, add_flushed(chains[0], chains[1]));
            }
            total.store(sums.add(r * COLUMNS + half * LANES));
        }
    }
}

/// `x * w + c` of bf16 values and a sum, a result that is tiny after rounding flushed to a zero of its sign.
#[inline(always)]
unsafe fn fma_flushed<L: Lanes>(x: f32, w: L, c: L) -> L {
    /// 2^64
    const SCALE: f32 = 18_446_744_073_709_551_616.0;
    // SAFETY: the caller has the instructions.
    unsafe {
        let result = L::splat(x).fma(w, c);
        // Rounded as if exponents had no end: a result just below the smallest normal number may round to it or not. Where this
        // overflows, x or c is 2^64 or more; the result then is 0, or so large that it is not tiny.
        let scaled = L::splat(x * SCALE).fma(w, c.mul(L::splat(SCALE)));
        flush(result, scaled, f32::MIN_POSITIVE * SCALE)
    }
}

/// `a + b`; a sum of normal numbers that is subnormal is exact, so that rounding does not matter.
#[inline(always)]
unsafe fn add_flushed<L: Lanes>(a: L, b: L) -> L {
    // SAFETY: the caller has the instructions.
    unsafe {
        let result = a.add(b);
        flush(result, result, f32::MIN_POSITIVE)
    }
}

/// `value`, or a zero of its sign where the size of `tested` is below `bound`.
#[inline(always)]
unsafe fn flush<L: Lanes>(value: L, tested: L, bound: f32) -> L {
    // SAFETY: the caller has the instructions.
    unsafe {
        let size = tested.max(L::zero().sub(tested));
        size.select_less(L::splat(bound), value.mul(L::zero()), value)
    }
}
