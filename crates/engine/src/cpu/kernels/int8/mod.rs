//! Products in 8-bit integers, for `--compute int8`: both operands in groups of 32 along k, weights as `step * code + least`
//! with a code of 0 to 255, activations as `scale * code` with a code of -127 to 127.
//!
//! A group's sum of products is an integer below 2^24, so it is exact in i32 and in f32, whatever the instruction computes
//! it. Across groups each output is one chain of fused multiply-adds in ascending k. So the bits depend on the row and the
//! matrix only, as in the exact mode: not on the batch, the threads or the instruction set. What differs from the exact
//! mode is the rounding of the operands, once each, to 8 bits.

use std::cell::RefCell;
use std::ops::Range;

use super::lanes::{LANES, Lanes};
use super::shared::SharedMut;
use super::target::{Output, SUM_COLUMNS, room_for_sums};
use super::tile::{load_tile, store_tile, tiles, with_few_rows};
use crate::cpu::team::Team;

mod unit;

#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
pub(crate) use unit::x86;
pub(crate) use unit::{Int8Isa, Int8Unit, PortableInt8, for_each_unit};

/// Inputs that share a scale.
pub(crate) const GROUP: usize = 32;

/// Codes in a word, and words in a group.
pub(crate) const QUAD: usize = 4;
pub(crate) const QUADS: usize = GROUP / QUAD;

/// Words of a row's group: its codes, its scale, and its scale times the sum of its codes.
pub(crate) const ROW_WORDS: usize = QUADS + 2;

/// Below this a group of activations counts as zeros: the inverse of its scale would overflow.
pub(crate) const SMALLEST: f32 = 1e-30;

/// Most rows of a register tile: 6 x 2 integer and 6 x 2 float accumulators fit 32 registers.
pub(crate) const TILE_ROWS: usize = 6;

/// Groups that several tiles of rows go through one after the other: those of two panels fit a first-level cache.
const STRETCH: usize = 16;

thread_local! {
    /// Sums of all rows with a pair of panels, `[m][32]`.
    static SUMS: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// A group of inputs of sixteen output columns.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Int8Group {
    step: [f32; LANES],
    least: [f32; LANES],
    /// `[8][16 columns][4 inputs]`
    codes: [[u8; QUAD * LANES]; QUADS],
}

impl Int8Group {
    /// A group of zeros.
    pub(crate) const ZERO: Int8Group =
        Int8Group { step: [0.0; LANES], least: [0.0; LANES], codes: [[0; QUAD * LANES]; QUADS] };

    /// Rounds one column's 32 weights to 256 evenly spaced values between the least and the greatest of them. Groups of the
    /// 4-bit formats that store both (Q4_1) keep their values up to the rounding of f32.
    #[inline(always)]
    pub(crate) fn set(&mut self, lane: usize, weights: &[f32; GROUP]) {
        // SAFETY: the group is borrowed for writing.
        unsafe { Self::set_lane(self, lane, weights) };
    }

    /// As [`set`](Self::set), while other threads may set other columns.
    ///
    /// # Safety
    /// `group` is valid, and nobody else touches the column.
    #[inline(always)]
    pub(crate) unsafe fn set_lane(group: *mut Int8Group, lane: usize, weights: &[f32; GROUP]) {
        let (mut low, mut high) = ([f32::INFINITY; 8], [f32::NEG_INFINITY; 8]);
        for eight in weights.chunks_exact(8) {
            for i in 0..8 {
                low[i] = if eight[i] < low[i] { eight[i] } else { low[i] };
                high[i] = if eight[i] > high[i] { eight[i] } else { high[i] };
            }
        }
        let least = low.into_iter().fold(f32::INFINITY, f32::min);
        let most = high.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let (step, inverse) = Self::step(least, most);
        let mut codes = [0u8; GROUP];
        for (code, &w) in codes.iter_mut().zip(weights) {
            *code = ((w - least) * inverse).round_ties_even().clamp(0.0, 255.0) as u8;
        }
        // SAFETY: as this function's: a group, and a lane of it.
        unsafe { Self::write(group, lane, (step, least), &codes) };
    }

    /// As [`set_lane`](Self::set_lane) and with the same bits, but for the sign of a zero, by a unit's instructions.
    ///
    /// # Safety
    /// As there, and the CPU has the unit.
    #[inline(always)]
    pub(crate) unsafe fn set_lane_on<U: Int8Unit>(group: *mut Int8Group, lane: usize, weights: &[f32; GROUP]) {
        // SAFETY: the weights are two vectors; group, lane and unit are the caller's concern.
        unsafe {
            let v = [U::L::load(weights.as_ptr()), U::L::load(weights.as_ptr().add(LANES))];
            // What is not a number is neither the least nor the greatest.
            let low = v[0].min(v[1].min(U::L::splat(f32::INFINITY)));
            let least = -low.mul(U::L::splat(-1.0)).largest();
            let most = v[0].max(v[1].max(U::L::splat(f32::NEG_INFINITY))).largest();
            let (step, inverse) = Self::step(least, most);
            let mut codes = [0u8; GROUP];
            for (i, v) in v.into_iter().enumerate() {
                let code = v.sub(U::L::splat(least)).mul(U::L::splat(inverse)).round();
                let code = code.max(U::L::zero()).min(U::L::splat(255.0));
                U::store_unsigned(code, codes.as_mut_ptr().add(i * LANES));
            }
            Self::write(group, lane, (step, least), &codes);
        }
    }

    /// The distance of neighbouring values, and its inverse.
    #[inline(always)]
    fn step(least: f32, most: f32) -> (f32, f32) {
        // Divided first, because the difference itself may overflow.
        let step = (most / 255.0) - (least / 255.0);
        // A step of zero, or one whose inverse overflows, leaves the least value for all.
        (step, if 1.0 / step < f32::INFINITY { 1.0 / step } else { 0.0 })
    }

    #[inline(always)]
    unsafe fn write(group: *mut Int8Group, lane: usize, (step, least): (f32, f32), codes: &[u8; GROUP]) {
        // SAFETY: the caller has a group and a lane below LANES; its fields are written through raw pointers, because other
        // lanes may be written by others.
        unsafe {
            (&raw mut (*group).step).cast::<f32>().add(lane).write(step);
            (&raw mut (*group).least).cast::<f32>().add(lane).write(least);
            let words = (&raw mut (*group).codes).cast::<[u8; QUAD]>();
            for (j, quad) in codes.as_chunks::<QUAD>().0.iter().enumerate() {
                words.add(j * LANES + lane).write(*quad);
            }
        }
    }

    /// Makes every product with a column NaN.
    ///
    /// # Safety
    /// As for [`set_lane`](Self::set_lane).
    #[inline(always)]
    pub(crate) unsafe fn spoil_lane(group: *mut Int8Group, lane: usize) {
        // SAFETY: as this function's: a group, and a lane of it.
        unsafe { (&raw mut (*group).step).cast::<f32>().add(lane).write(f32::NAN) };
    }

    /// The value of one weight.
    pub(crate) fn weight(&self, lane: usize, i: usize) -> f32 {
        let code = self.codes[i / QUAD][lane * QUAD + i % QUAD];
        f32::from(code).mul_add(self.step[lane], self.least[lane])
    }
}

/// Words that the rows of `x[m, k]` take as bytes.
pub(crate) fn words(m: usize, k: usize) -> usize {
    m * k / GROUP * ROW_WORDS
}

/// Rounds the rows of `x[m, k]` to bytes, in tiles as the kernel reads them: each tile `[k / 32][10][rows]`.
pub(crate) fn quantise(team: &Team, unit: Int8Isa, x: &[f32], k: usize, out: &mut [i32]) {
    let m = x.len() / k;
    assert!(k.is_multiple_of(GROUP) && out.len() == words(m, k), "rows of bytes do not fit");
    let split = tiles(m, TILE_ROWS);
    let count = split.len();
    let out = SharedMut::new(out);
    let one = |t: usize| {
        let (start, rows) = split.clone().nth(t).expect("t counts the tiles");
        // SAFETY: tiles cover disjoint parts of the buffer, whose length was checked; the CPU has the unit.
        unsafe {
            let target = out.slice(words(start, k), words(rows, k));
            quantise_tile(unit, &x[start * k..(start + rows) * k], k, target.as_mut_ptr());
        }
    };
    if m * k < 20_000 { (0..count).for_each(one) } else { team.run(count, &one) }
}

/// `x W^T` of `m` rows of `k` inputs and panels `panels` (each `[k / 32]` groups), where `a` is what [`quantise`] made of x.
///
/// # Safety
/// The CPU has the unit; the sizes fit; nobody else touches the panels' columns of the output.
pub(crate) unsafe fn product(
    unit: Int8Isa,
    (m, k): (usize, usize),
    a: &[i32],
    weights: *const Int8Group,
    panels: Range<usize>,
    out: Output<'_>,
) {
    SUMS.with_borrow_mut(|sums| {
        let o = Operands { m, k, a, weights, panels, out };
        // SAFETY: as `product_on`'s, which are this function's; there is room for the sums of `m` rows.
        unsafe { product_on(unit, o, room_for_sums(m, sums)) }
    });
}

/// `rounds` times twelve sums of products that read no memory, to measure what a core can do.
///
/// # Safety
/// The CPU has the unit.
pub(super) unsafe fn dots(unit: Int8Isa, rounds: usize) {
    // SAFETY: the caller has the unit.
    unsafe { dots_on(unit, rounds) }
}

/// Rounds a row's values into column `lane` of a panel's groups.
pub(crate) fn pack_row(unit: Int8Isa, panel: &mut [Int8Group], lane: usize, row: &[f32]) {
    assert!(lane < LANES && row.len() == panel.len() * GROUP, "a row of another width");
    // SAFETY: the unit was detected; the panel is borrowed for writing.
    unsafe { pack_row_on(unit, panel, lane, row) }
}

struct Operands<'a> {
    m: usize,
    k: usize,
    a: &'a [i32],
    weights: *const Int8Group,
    panels: Range<usize>,
    out: Output<'a>,
}

for_each_unit! { fn product_on(o: Operands<'_>, sums: *mut f32) => product_body }
for_each_unit! { fn dots_on(rounds: usize) => dots_body }
for_each_unit! { fn pack_row_on(panel: &mut [Int8Group], lane: usize, row: &[f32]) => pack_row_body }
for_each_unit! { fn quantise_tile(x: &[f32], k: usize, out: *mut i32) => quantise_body }

#[inline(always)]
unsafe fn dots_body<U: Int8Unit>(rounds: usize) {
    // SAFETY: there are QUAD * LANES bytes, and the caller has the unit.
    unsafe {
        let bytes = std::hint::black_box([3u8; QUAD * LANES]);
        let (codes, x) = (U::codes(bytes.as_ptr()), std::hint::black_box(0x0101_0101));
        let mut sums = [U::zero(); 12];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = U::dot(*sum, codes, x);
            }
        }
        let mut all = U::L::zero();
        for sum in sums {
            all = all.add(U::floats(sum));
        }
        std::hint::black_box(all.sum());
    }
}

#[inline(always)]
unsafe fn pack_row_body<U: Int8Unit>(panel: &mut [Int8Group], lane: usize, row: &[f32]) {
    for (group, weights) in panel.iter_mut().zip(row.as_chunks::<GROUP>().0) {
        group.set(lane, weights);
    }
}

#[inline(always)]
pub(crate) unsafe fn quantise_body<U: Int8Unit>(x: &[f32], k: usize, out: *mut i32) {
    let rows = x.len() / k;
    for (r, row) in x.chunks_exact(k).enumerate() {
        for (g, group) in row.chunks_exact(GROUP).enumerate() {
            // SAFETY: a group has two vectors of values, the output a word for each quad of each row, and the caller has the unit.
            unsafe {
                let target = out.add(g * ROW_WORDS * rows + r);
                let v = [U::L::load(group.as_ptr()), U::L::load(group.as_ptr().add(LANES))];
                let size = |v: U::L| v.max(U::L::zero().sub(v));
                let top = size(v[0]).max(size(v[1])).largest();
                // Zero, or NaN if one of the values is not finite: the scale then is, and so is every output of the row.
                let finite = v[0].mul(U::L::zero()).add(v[1].mul(U::L::zero())).sum();
                let (scale, inverse) = if top > SMALLEST { (top / 127.0, 127.0 / top) } else { (0.0, 0.0) };
                let scale = scale + finite;
                let factor = U::L::splat(inverse);
                let codes = [v[0].mul(factor).round(), v[1].mul(factor).round()];
                let mut bytes = [0i8; GROUP];
                U::store_bytes(codes[0], bytes.as_mut_ptr());
                U::store_bytes(codes[1], bytes.as_mut_ptr().add(LANES));
                for (j, quad) in bytes.chunks_exact(QUAD).enumerate() {
                    *target.add(j * rows) =
                        i32::from_ne_bytes([quad[0] as u8, quad[1] as u8, quad[2] as u8, quad[3] as u8]);
                }
                // The sum of the codes is exact in f32, in any order.
                let sum = codes[0].add(codes[1]).sum();
                *target.add(QUADS * rows) = scale.to_bits() as i32;
                *target.add((QUADS + 1) * rows) = (scale * sum).to_bits() as i32;
            }
        }
    }
}

#[inline(always)]
unsafe fn product_body<U: Int8Unit>(o: Operands<'_>, sums: *mut f32) {
    let groups = o.k / GROUP;
    // A single tile reads the weights once, however they are cut.
    let length = if o.m > TILE_ROWS { STRETCH } else { groups };
    let mut panel = o.panels.start;
    while panel < o.panels.end {
        let pair = U::PANELS == 2 && panel + 1 < o.panels.end;
        for first in (0..groups).step_by(length) {
            let count = length.min(groups - first);
            let split = tiles(o.m, TILE_ROWS);
            let count_of_tiles = split.len();
            for (t, (row, rows)) in split.enumerate() {
                let (sums, turn) = (sums.wrapping_add(row * SUM_COLUMNS), (t, count_of_tiles));
                let stretch = Stretch { o: &o, panel, first, count, row, sums, turn };
                // SAFETY: the caller's panels: tiles divide `m` rows, stretches `k` inputs, and panels the columns.
                unsafe {
                    let weights = o.weights.add(panel * groups + first);
                    with_few_rows!(rows, R => if U::PANELS == 2 && pair {
                        stretch.tile::<U, R, 2>([weights, weights.add(groups)]);
                    } else {
                        stretch.tile::<U, R, 1>([weights]);
                    });
                }
            }
        }
        panel += if pair { 2 } else { 1 };
    }
}

/// Adds the products of a group of `R` rows with `P` panels of sixteen columns. Word `j` of row `r` is at
/// `a + r * row + j * column`; the strides are constants at every call, so that addresses fold into the instructions.
#[inline(always)]
pub(crate) unsafe fn fold_group<U: Int8Unit, const R: usize, const P: usize>(
    a: *const i32,
    row: usize,
    column: usize,
    groups: [*const Int8Group; P],
    acc: &mut [[U::L; P]; R],
) {
    // SAFETY: the caller has the unit, a group at each pointer, and the words of R rows.
    unsafe {
        let mut sums = [[U::zero(); P]; R];
        for j in 0..QUADS {
            let mut codes = [U::codes((*groups[0]).codes[j].as_ptr()); P];
            for p in 1..P {
                codes[p] = U::codes((*groups[p]).codes[j].as_ptr());
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let x = *a.add(r * row + j * column);
                for p in 0..P {
                    sums[p] = U::dot(sums[p], codes[p], x);
                }
            }
        }
        for p in 0..P {
            let (step, least) = (U::L::load((*groups[p]).step.as_ptr()), U::L::load((*groups[p]).least.as_ptr()));
            for (r, acc) in acc.iter_mut().enumerate() {
                let scale = U::L::splat(f32::from_bits(*a.add(r * row + QUADS * column) as u32));
                let sum = U::L::splat(f32::from_bits(*a.add(r * row + (QUADS + 1) * column) as u32));
                acc[p] = least.fma(sum, U::floats(sums[r][p]).fma(step.mul(scale), acc[p]));
            }
        }
    }
}

/// A stretch of groups of a panel or two, for a tile of rows.
struct Stretch<'a> {
    o: &'a Operands<'a>,
    panel: usize,
    first: usize,
    count: usize,
    row: usize,
    /// The tile's sums so far, `[rows][32]`.
    sums: *mut f32,
    /// The tile's turn among those of the stretch, and their number.
    turn: (usize, usize),
}

impl Stretch<'_> {
    /// Goes on with the chains of `R` rows and `P` panels.
    #[inline(always)]
    unsafe fn tile<U: Int8Unit, const R: usize, const P: usize>(&self, panels: [*const Int8Group; P]) {
        // SAFETY: the caller has the unit, `count` groups behind every panel, the rows, room for their sums, and their outputs.
        unsafe {
            let mut acc = [[U::L::zero(); P]; R];
            if self.first > 0 {
                load_tile(&mut acc, self.sums, SUM_COLUMNS);
            }
            let a = self.o.a.as_ptr().add(words(self.row, self.o.k) + self.first * ROW_WORDS * R);
            // Each tile asks for its share of what comes next, so that memory works while the tiles do.
            let groups = self.o.k / GROUP;
            let next = if self.first + self.count < groups { self.count } else { P * groups - self.first };
            let (turn, tiles) = self.turn;
            // The hardware foresees a single tile's way through whole panels.
            let mut wait = if tiles > 1 { turn } else { usize::MAX };
            for g in 0..self.count {
                if wait == 0 {
                    for panel in panels {
                        let group = panel.wrapping_add(next + g).cast::<u32>();
                        for line in 0..size_of::<Int8Group>() / 64 {
                            U::L::prefetch(group.wrapping_add(line * LANES));
                        }
                    }
                    wait = tiles;
                }
                wait -= 1;
                let groups = panels.map(|panel| panel.add(g));
                fold_group::<U, R, P>(a.add(g * ROW_WORDS * R), 1, R, groups, &mut acc);
            }
            store_tile(&acc, self.sums, SUM_COLUMNS);
            if (self.first + self.count) * GROUP == self.o.k {
                self.o.out.finish::<U::L>(self.sums, (self.row, R), self.panel, P);
            }
        }
    }
}
