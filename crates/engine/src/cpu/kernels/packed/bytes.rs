//! Products of 8-bit activations with packed weights, for `--compute a8`: a weight is the file's own `step * code + least`, an
//! activation is rounded with the other 31 of its group.
//!
//! As in [`int8`](crate::cpu::kernels::int8), a group's sum of products of codes is an integer below 2^24, whatever computes it, and
//! across groups each output is one chain of fused multiply-adds in ascending k.

use std::cell::RefCell;
use std::ops::Range;

use super::codes::{Bits8, QUADS, Width, with_codes, with_width};
use super::operands::{Rows, STRETCH};
use super::part::{Panel, Part};
use super::words::Words;
use crate::cpu::kernels::int8::{GROUP, Int8Isa, Int8Unit, QUAD, ROW_WORDS, TILE_ROWS, for_each_unit, words};
use crate::cpu::kernels::lanes::{LANES, Lanes};
use crate::cpu::kernels::target::{Output, SUM_COLUMNS, room_for_sums};
use crate::cpu::kernels::tile::{load_tile, store_tile, tiles, with_few_rows};

/// A group of inputs of sixteen columns, its codes in bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Group {
    /// Steps of both halves.
    step: [[f32; LANES]; 2],
    least: [[f32; LANES]; 2],
    codes: [[u8; QUAD * LANES]; QUADS],
}

impl Group {
    const ZERO: Group = Group { step: [[0.0; LANES]; 2], least: [[0.0; LANES]; 2], codes: [[0; QUAD * LANES]; QUADS] };
}

/// Groups of a stretch.
const GROUPS: usize = STRETCH / GROUP;

/// Two panels' groups, and the sums of all rows.
#[derive(Default)]
struct Scratch {
    groups: Vec<Group>,
    sums: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Columns of panels `panels` of a part.
///
/// # Safety
/// The CPU has the unit; rows and output have the part's sizes; nobody else touches these columns of the output.
pub(super) unsafe fn product(unit: Int8Isa, part: &Part, rows: &Rows<'_>, panels: Range<usize>, out: Output<'_>) {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.groups.resize(2 * GROUPS, Group::ZERO);
        // SAFETY: as this function's.
        unsafe {
            if part.has_halves() {
                halves_on(unit, part, rows, panels, out, scratch);
            } else {
                whole_on(unit, part, rows, panels, out, scratch);
            }
        }
    });
}

for_each_unit! {
    fn whole_on(part: &Part, rows: &Rows<'_>, panels: Range<usize>, out: Output<'_>, scratch: &mut Scratch) => whole
}
for_each_unit! {
    fn halves_on(part: &Part, rows: &Rows<'_>, panels: Range<usize>, out: Output<'_>, scratch: &mut Scratch) => halves
}

#[inline(always)]
unsafe fn whole<U: Int8Unit<L: Words>>(
    part: &Part,
    rows: &Rows<'_>,
    panels: Range<usize>,
    out: Output<'_>,
    scratch: &mut Scratch,
) {
    // SAFETY: as `matrix`'s, which are this function's.
    unsafe { matrix::<U, 1>(part, rows, panels, out, scratch) }
}

#[inline(always)]
unsafe fn halves<U: Int8Unit<L: Words>>(
    part: &Part,
    rows: &Rows<'_>,
    panels: Range<usize>,
    out: Output<'_>,
    scratch: &mut Scratch,
) {
    // SAFETY: as `matrix`'s, which are this function's.
    unsafe { matrix::<U, 2>(part, rows, panels, out, scratch) }
}

/// A stretch of inputs at a time; a group has `H` steps.
#[inline(always)]
unsafe fn matrix<U: Int8Unit<L: Words>, const H: usize>(
    part: &Part,
    rows: &Rows<'_>,
    panels: Range<usize>,
    out: Output<'_>,
    scratch: &mut Scratch,
) {
    let (m, k) = (rows.m, part.k());
    let groups = scratch.groups.as_mut_ptr();
    let sums = room_for_sums(m, &mut scratch.sums);
    let mut panel = panels.start;
    while panel < panels.end {
        let pair = U::PANELS == 2 && panel + 1 < panels.end;
        for first in (0..k / GROUP).step_by(GROUPS) {
            let count = GROUPS.min(k / GROUP - first);
            // SAFETY: there is room for two panels' groups and for the sums of `m` rows; tiles divide `m` rows, whose words are
            // those of `k` inputs; columns are the caller's.
            unsafe {
                for p in 0..if pair { 2 } else { 1 } {
                    let target = groups.add(p * GROUPS);
                    with_codes!(part.codes(), B => unpack::<U::L, B>(part.panel(panel + p), first, count, H, target));
                }
                for (row, height) in tiles(m, TILE_ROWS) {
                    let stretch =
                        Stretch { part, rows, panel, first, count, row, sums: sums.add(row * SUM_COLUMNS), out };
                    if U::SMALL {
                        with_width!(part.codes(), B => stretch.tiles::<U, B, H>(height, pair, groups));
                    } else {
                        stretch.tiles::<U, Bits8, H>(height, pair, groups);
                    }
                }
            }
        }
        panel += if pair { 2 } else { 1 };
    }
}

/// Takes `count` groups of a panel apart.
#[inline(always)]
unsafe fn unpack<L: Words, B: Width>(panel: Panel, first: usize, count: usize, halves: usize, out: *mut Group) {
    for g in 0..count {
        // SAFETY: the caller's groups are those of the panel, and there is room for them.
        unsafe {
            let group = &mut *out.add(g);
            let affine = panel.affine::<L>(first + g);
            panel.prefetch::<L, B>(first + g, L::TILE_PANELS);
            for (h, (step, least)) in affine.into_iter().enumerate().take(halves) {
                step.store(group.step[h].as_mut_ptr());
                least.store(group.least[h].as_mut_ptr());
            }
            for (q, codes) in group.codes.iter_mut().enumerate() {
                let quad = B::quad::<L>(panel.codes.add((first + g) * B::LINES * LANES), q);
                L::store_words(quad, codes.as_mut_ptr().cast());
            }
        }
    }
}

/// A stretch of a panel's or two panels' groups, for a tile of rows.
struct Stretch<'a> {
    part: &'a Part,
    rows: &'a Rows<'a>,
    panel: usize,
    first: usize,
    count: usize,
    row: usize,
    /// The tile's sums so far, `[rows][32]`.
    sums: *mut f32,
    out: Output<'a>,
}

impl Stretch<'_> {
    /// Goes on with the chains of `height` rows and one or two panels, whose codes have `B`'s bits or fewer.
    #[inline(always)]
    unsafe fn tiles<U: Int8Unit<L: Words>, B: Width, const H: usize>(
        &self,
        height: usize,
        pair: bool,
        groups: *const Group,
    ) {
        // SAFETY: as `tile`'s, which are this function's; the second panel's groups follow the first one's.
        unsafe {
            with_few_rows!(height, R => if U::PANELS == 2 && pair {
                self.tile::<U, B, R, 2, H>([groups, groups.add(GROUPS)]);
            } else {
                self.tile::<U, B, R, 1, H>([groups]);
            });
        }
    }

    /// Goes on with the chains of `R` rows and `P` panels.
    #[inline(always)]
    unsafe fn tile<U: Int8Unit<L: Words>, B: Width, const R: usize, const P: usize, const H: usize>(
        &self,
        panels: [*const Group; P],
    ) {
        let k = self.part.k();
        // SAFETY: the caller has the stretch's groups of R rows and P panels, room for their sums, and their columns of the output.
        unsafe {
            let mut acc = [[U::L::zero(); P]; R];
            if self.first > 0 {
                load_tile(&mut acc, self.sums, SUM_COLUMNS);
            }
            let a = self.rows.words.as_ptr().add(words(self.row, k) + self.first * ROW_WORDS * R);
            let halves = self.rows.halves.as_ptr();
            for g in 0..self.count {
                let a = a.add(g * ROW_WORDS * R);
                // The sums of codes, times the scale: of the group, or of its halves.
                let sums = if H == 1 {
                    a.add((QUADS + 1) * R).cast::<f32>()
                } else {
                    halves.add(self.row * k / GROUP * 2 + (self.first + g) * 2 * R)
                };
                fold::<U, B, R, P, H>(a, sums, panels.map(|panel| panel.add(g)), &mut acc);
            }
            store_tile(&acc, self.sums, SUM_COLUMNS);
            if (self.first + self.count) * GROUP == k {
                self.out.finish::<U::L>(self.sums, (self.row, R), self.panel, P);
            }
        }
    }
}

/// Adds the products of a group of `R` rows with `P` panels, half by half if it has two steps.
#[inline(always)]
unsafe fn fold<U: Int8Unit, B: Width, const R: usize, const P: usize, const H: usize>(
    a: *const i32,
    row_sums: *const f32,
    groups: [*const Group; P],
    acc: &mut [[U::L; P]; R],
) {
    // SAFETY: the caller has the unit, a group at each pointer, and the words and sums of R rows.
    unsafe {
        for h in 0..H {
            let mut sums = [[U::zero(); P]; R];
            let small = U::SMALL && B::SMALL_QUADS > 0;
            // Quads of a half, by as many as sums of 16 bits hold.
            let run = if small { B::SMALL_QUADS.min(QUADS / H) } else { QUADS / H };
            for first in (h * QUADS / H..(h + 1) * QUADS / H).step_by(run) {
                let mut run_sums = sums;
                if small {
                    for sum in run_sums.as_flattened_mut() {
                        *sum = U::begin_small(*sum);
                    }
                }
                for j in first..first + run {
                    // No closure: it would not have the caller's instructions.
                    let mut codes = [U::codes((*groups[0]).codes[j].as_ptr()); P];
                    for p in 1..P {
                        codes[p] = U::codes((*groups[p]).codes[j].as_ptr());
                    }
                    for (r, sums) in run_sums.iter_mut().enumerate() {
                        let x = *a.add(j * R + r);
                        for p in 0..P {
                            sums[p] =
                                if small { U::dot_small(sums[p], codes[p], x) } else { U::dot(sums[p], codes[p], x) };
                        }
                    }
                }
                for (sum, run_sum) in sums.as_flattened_mut().iter_mut().zip(run_sums.as_flattened()) {
                    *sum = if small { U::end_small(*sum, *run_sum) } else { *run_sum };
                }
            }
            for p in 0..P {
                let step = U::L::load((*groups[p]).step[h].as_ptr());
                let least = U::L::load((*groups[p]).least[h].as_ptr());
                for (r, acc) in acc.iter_mut().enumerate() {
                    let scale = U::L::splat(f32::from_bits((*a.add(QUADS * R + r)).cast_unsigned()));
                    let sum = U::L::splat(*row_sums.add(h * R + r));
                    acc[p] = least.fma(sum, U::floats(sums[r][p]).fma(step.mul(scale), acc[p]));
                }
            }
        }
    }
}
