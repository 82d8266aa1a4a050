//! Products in f32 with weights that are widened on the way.

use std::cell::RefCell;
use std::ops::Range;

use super::codes::{GROUP, QUADS, Width, with_codes};
use super::grouped;
use super::operands::{Rows, STRETCH};
use super::part::{Panel, Part};
use super::words::Words;
use crate::cpu::kernels::lanes::{Isa, LANES, Lanes, Portable, for_each_isa};
use crate::cpu::kernels::target::{Output, SUM_COLUMNS, room_for_sums};
use crate::cpu::kernels::tile::{self, load_tile, store_tile, tile, tiles, with_rows};

/// Two panels' widened weights, and the sums of all rows.
#[derive(Default)]
struct Scratch {
    wide: Vec<Line>,
    sums: Vec<f32>,
}

/// Sixteen weights on a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _weights: [f32; LANES],
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Columns of panels `panels` of a part.
///
/// # Safety
/// The CPU has the instructions; rows and output have the part's sizes; nobody else touches these columns of the output.
pub(super) unsafe fn product(isa: Isa, part: &Part, rows: &Rows<'_>, panels: Range<usize>, out: Output<'_>) {
    // SAFETY: as this function's.
    unsafe {
        if rows.m == 1 {
            return vector_on(isa, part, rows.floats, panels, out);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.wide.resize(2 * STRETCH, Line { _weights: [0.0; LANES] });
            matrix_on(isa, part, rows, panels, out, scratch);
        });
    }
}

for_each_isa! {
    fn vector_on(part: &Part, x: &[f32], panels: Range<usize>, out: Output<'_>) => vector
}
for_each_isa! {
    fn matrix_on(part: &Part, rows: &Rows<'_>, panels: Range<usize>, out: Output<'_>, scratch: &mut Scratch) => matrix
}

/// One row: enough panels at a time to hide the latency of their chains.
#[inline(always)]
unsafe fn vector<L: Words>(part: &Part, x: &[f32], panels: Range<usize>, out: Output<'_>) {
    // SAFETY: as this function's callers'.
    unsafe {
        if let Some(of) = part.groups_of_inputs() {
            return grouped::vector::<L>(part, of, x, panels, out);
        }
        with_codes!(part.codes(), B => {
            let mut panel = panels.start;
            while panel < panels.end {
                let left = panels.end - panel;
                panel += if left >= 4 && L::TILE_PANELS == 2 {
                    chains::<L, B, 4>(part, x, panel, out)
                } else if left >= 2 {
                    chains::<L, B, 2>(part, x, panel, out)
                } else {
                    chains::<L, B, 1>(part, x, panel, out)
                };
            }
        });
    }
}

/// One row times `P` panels; returns their number.
#[inline(always)]
unsafe fn chains<L: Words, B: Width, const P: usize>(part: &Part, x: &[f32], first: usize, out: Output<'_>) -> usize {
    let panels: [Panel; P] = std::array::from_fn(|p| part.panel(first + p));
    // SAFETY: the groups are those of `k` inputs, of which the panels have codes and scales, and `x` values; columns are the caller's.
    unsafe {
        let mut acc = [[L::zero(); P]];
        for group in 0..part.k() / GROUP {
            let mut affine = [[(L::zero(), L::zero()); 2]; P];
            for p in 0..P {
                affine[p] = panels[p].affine::<L>(group);
                panels[p].prefetch::<L, B>(group, P);
            }
            let x = x.as_ptr().add(group * GROUP);
            for q in 0..QUADS {
                let mut codes = [[L::zero(); 4]; P];
                for p in 0..P {
                    codes[p] = B::floats::<L>(panels[p].codes.add(group * B::LINES * LANES), q);
                }
                let four = x.add(4 * q).cast::<[f32; 4]>().read_unaligned();
                for (b, x) in four.into_iter().enumerate() {
                    let x = L::splat(x);
                    for p in 0..P {
                        let (step, least) = affine[p][q / (QUADS / 2)];
                        acc[0][p] = x.fma(codes[p][b].fma(step, least), acc[0][p]);
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

/// Several rows: a stretch of inputs at a time.
#[inline(always)]
unsafe fn matrix<L: Words>(part: &Part, rows: &Rows<'_>, panels: Range<usize>, out: Output<'_>, scratch: &mut Scratch) {
    let (m, k) = (rows.m, part.k());
    let wide = scratch.wide.as_mut_ptr().cast::<f32>();
    let sums = room_for_sums(m, &mut scratch.sums);
    let mut panel = panels.start;
    while panel < panels.end {
        let pair = L::TILE_PANELS == 2 && panel + 1 < panels.end;
        for start in (0..k).step_by(STRETCH) {
            let length = STRETCH.min(k - start);
            // SAFETY: there is room for two panels' stretches and for the sums of `m` rows; tiles divide `m` rows, whose values
            // are those of `k` inputs; columns are the caller's.
            unsafe {
                for p in 0..if pair { 2 } else { 1 } {
                    widen::<L>(part, panel + p, start, length, wide.add(p * STRETCH * LANES));
                }
                for (row, count) in tiles(m, L::TILE_ROWS) {
                    let a = rows.floats.as_ptr().add(row * k + start * count);
                    let stretch = Stretch { part, panel, start, length, row, sums: sums.add(row * SUM_COLUMNS), out };
                    with_rows!(count, L, R => {
                        if pair {
                            stretch.tile::<L, R, 2>(a, [wide, wide.add(STRETCH * LANES)]);
                        } else {
                            stretch.tile::<L, R, 1>(a, [wide]);
                        }
                    });
                }
            }
        }
        panel += if pair { 2 } else { 1 };
    }
}

/// Writes row `row` (an embedding) times `scale` to `out` (`[k]`): one lane of each vector.
pub(super) fn row(part: &Part, row: usize, scale: f32, out: &mut [f32]) {
    assert!(row < part.n() && out.len() == part.k(), "a row of another matrix");
    let (panel, lane) = (part.panel(row / LANES), row % LANES);
    let of_lane = |(first, second)| (lane_of(first, lane), lane_of(second, lane));
    with_codes!(part.codes(), B => {
        for (group, out) in out.chunks_exact_mut(GROUP).enumerate() {
            let of = part.groups_of_inputs().map(|of| &of[group * GROUP..(group + 1) * GROUP]);
            // SAFETY: the group is one of the panel's, which has steps of groups.
            let affine = if of.is_some() { [(0.0, 0.0); 2] } else { unsafe { panel.affine::<Portable>(group) }.map(of_lane) };
            for (q, four) in out.chunks_exact_mut(4).enumerate() {
                // SAFETY: the group is one of the panel's.
                let codes = unsafe { B::floats::<Portable>(panel.codes.add(group * B::LINES * LANES), q) };
                for (b, (o, code)) in four.iter_mut().zip(codes).enumerate() {
                    let code = lane_of(code, lane);
                    let weight = match of {
                        Some(of) => {
                            // SAFETY: the part's groups of inputs are those of its panels.
                            let (step, less) = of_lane(unsafe { panel.of_group::<Portable>(of[4 * q + b]) });
                            (code + less) * step
                        }
                        None => code.mul_add(affine[q / (QUADS / 2)].0, affine[q / (QUADS / 2)].1),
                    };
                    *o = weight * scale;
                }
            }
        }
    });
}

fn lane_of(v: Portable, lane: usize) -> f32 {
    let mut lanes = [0f32; LANES];
    // SAFETY: there is room for sixteen floats.
    unsafe { Lanes::store(v, lanes.as_mut_ptr()) };
    lanes[lane]
}

/// Widens the weights of inputs `start..start + length` of a panel to `[length][16]`.
#[inline(always)]
unsafe fn widen<L: Words>(part: &Part, panel: usize, start: usize, length: usize, out: *mut f32) {
    // SAFETY: as this function's callers'.
    unsafe {
        let panel = part.panel(panel);
        match part.groups_of_inputs() {
            Some(of) => grouped::widen::<L>(part, of, panel, start, length, out),
            None => with_codes!(part.codes(), B => widen_blocks::<L, B>(panel, start, length, out)),
        }
    }
}

#[inline(always)]
unsafe fn widen_blocks<L: Words, B: Width>(panel: Panel, start: usize, length: usize, out: *mut f32) {
    for group in 0..length / GROUP {
        // SAFETY: the caller's stretch is within the panel, and there is room for it.
        unsafe {
            let at = start / GROUP + group;
            let affine = panel.affine::<L>(at);
            panel.prefetch::<L, B>(at, L::TILE_PANELS);
            let out = out.add(group * GROUP * LANES);
            for q in 0..QUADS {
                let (step, least) = affine[q / (QUADS / 2)];
                let codes = B::floats::<L>(panel.codes.add(at * B::LINES * LANES), q);
                for (b, code) in codes.into_iter().enumerate() {
                    code.fma(step, least).store(out.add((4 * q + b) * LANES));
                }
            }
        }
    }
}

/// A stretch of a panel's or two panels' inputs, for a tile of rows.
struct Stretch<'a> {
    part: &'a Part,
    panel: usize,
    start: usize,
    length: usize,
    row: usize,
    /// The tile's sums so far, `[rows][32]`.
    sums: *mut f32,
    out: Output<'a>,
}

impl Stretch<'_> {
    /// Goes on with the chains of `R` rows and `P` panels.
    #[inline(always)]
    unsafe fn tile<L: Words, const R: usize, const P: usize>(&self, a: *const f32, panels: [*const f32; P]) {
        // SAFETY: the caller has the stretch's inputs of R rows and P panels, room for their sums, and their columns of the output.
        unsafe {
            let mut acc = [[L::zero(); P]; R];
            if self.start > 0 {
                load_tile(&mut acc, self.sums, SUM_COLUMNS);
            }
            tile::<L, f32, R, P>(self.length, tile::Rows { first: a, row: 1, column: R }, panels, &mut acc);
            store_tile(&acc, self.sums, SUM_COLUMNS);
            if self.start + self.length == self.part.k() {
                self.out.finish::<L>(self.sums, (self.row, R), self.panel, P);
            }
        }
    }
}
