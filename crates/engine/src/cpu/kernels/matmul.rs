//! Products of activations with packed weights.

use std::ops::Range;

use half::f16;
use rayon::prelude::*;

use super::bf16::{self as tiled, TileMatrix, TileUnit};
use super::int8::{self, GROUP, Int8Group, Int8Isa};
use super::lanes::{Isa, LANES, Lanes, for_each_isa};
use super::packed::{self, Packed, Part};
use super::shared::SharedMut;
use super::target::{Output, SUM_COLUMNS, Target};
use super::tile::{Bf16, F16, PanelElement, Rows, store_tile, tile, tiles, with_rows};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{Tensor, Values};

/// A weight matrix `[n, k]` in panels of sixteen output columns, each panel `[k][16]`: the order in which the kernels
/// read it. The last panel is padded with zeros. The values are those of the source, in its precision.
pub struct PackedMatrix {
    n: usize,
    k: usize,
    panels: Panels,
}

/// Sixteen elements on their own cache line (f32) or half of one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line32([f32; LANES]);
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Line16([u16; LANES]);

enum Panels {
    F32(Vec<Line32>),
    Bf16(Vec<Line16>),
    F16(Vec<Line16>),
    /// `[k / 32]` groups a panel.
    Int8(Vec<Int8Group>),
    /// For products in bf16.
    Tiles(TileMatrix),
    /// Blocks of the file.
    Packed(Packed),
}

impl PackedMatrix {
    /// Packs matrices of equal width on top of each other: `[n1, k]`, `[n2, k]`, ... become `[n1 + n2 + ..., k]`.
    /// Sources of different precision are widened to f32, which is exact.
    ///
    /// Panics if the widths differ; the loader has checked the shapes.
    pub fn stack(parts: Vec<Tensor>) -> PackedMatrix {
        let k = parts[0].shape[1];
        let n: usize = parts.iter().map(|t| t.shape[0]).sum();
        assert!(parts.iter().all(|t| t.shape.len() == 2 && t.shape[1] == k), "stacked matrices of different widths");
        let lines = n.div_ceil(LANES) * k;
        let same = |f: fn(&Values) -> bool| parts.iter().all(|t| f(&t.values));
        let sixteen = || {
            let mut out = vec![Line16([0; LANES]); lines];
            pack(&parts, k, &mut out, |panel, lane, values, at| {
                for (line, &v) in panel.iter_mut().zip(&narrow(values)[at..]) {
                    line.0[lane] = v;
                }
            });
            out
        };
        let panels = if same(|v| matches!(v, Values::Bf16(_))) {
            Panels::Bf16(sixteen())
        } else if same(|v| matches!(v, Values::F16(_))) {
            Panels::F16(sixteen())
        } else {
            let mut out = vec![Line32([0.0; LANES]); lines];
            pack(&parts, k, &mut out, |panel, lane, values, at| {
                for (i, line) in panel.iter_mut().enumerate() {
                    line.0[lane] = wide(values, at + i);
                }
            });
            Panels::F32(out)
        };
        PackedMatrix { n, k, panels }
    }

    /// Packs matrices as [`stack`](Self::stack) does, rounded to 8 bits in groups of 32 inputs, for products in integers. A
    /// width that is no multiple of 32 stays as it is.
    ///
    /// Panics if the widths differ.
    pub fn stack_int8(parts: Vec<Tensor>) -> PackedMatrix {
        let k = parts[0].shape[1];
        if !k.is_multiple_of(GROUP) {
            return PackedMatrix::stack(parts);
        }
        let n: usize = parts.iter().map(|t| t.shape[0]).sum();
        assert!(parts.iter().all(|t| t.shape.len() == 2 && t.shape[1] == k), "stacked matrices of different widths");
        let mut out = vec![Int8Group::ZERO; n.div_ceil(LANES) * (k / GROUP)];
        let unit = Int8Isa::best(Isa::detect());
        pack(&parts, k, &mut out, |panel, lane, values, at| match values {
            Values::F32(v) => int8::pack_row(unit, panel, lane, &v[at..at + k]),
            Values::Bf16(_) | Values::F16(_) => {
                let row: Vec<f32> = (at..at + k).map(|i| wide(values, i)).collect();
                int8::pack_row(unit, panel, lane, &row);
            }
        });
        PackedMatrix { n, k, panels: Panels::Int8(out) }
    }

    /// Packs matrices as [`stack`](Self::stack) does, rounded to bf16, for products in bf16 on a unit.
    ///
    /// Panics if the widths differ.
    pub fn stack_bf16(parts: Vec<Tensor>, unit: TileUnit) -> PackedMatrix {
        let k = parts[0].shape[1];
        assert!(parts.iter().all(|t| t.shape.len() == 2 && t.shape[1] == k), "stacked matrices of different widths");
        let n = parts.iter().map(|t| t.shape[0]).sum();
        PackedMatrix { n, k, panels: Panels::Tiles(TileMatrix::stack(&parts, k, unit)) }
    }

    /// Puts matrices of quantised blocks on top of each other. With `rounds`, products with them round activations to 8 bits.
    ///
    /// Panics if the widths differ.
    pub(crate) fn stack_packed(parts: Vec<Part>, rounds: bool) -> PackedMatrix {
        let packed = Packed::new(parts, rounds);
        PackedMatrix { n: packed.n(), k: packed.k(), panels: Panels::Packed(packed) }
    }

    /// Output columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Input columns.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Bytes of memory.
    pub fn size_bytes(&self) -> usize {
        match &self.panels {
            Panels::F32(v) => size_of_val(v.as_slice()),
            Panels::Bf16(v) | Panels::F16(v) => size_of_val(v.as_slice()),
            Panels::Int8(v) => size_of_val(v.as_slice()),
            Panels::Tiles(v) => v.size_bytes(),
            Panels::Packed(packed) => packed.size_bytes(),
        }
    }

    /// True if products with it are computed in 8-bit integers: its own, or codes of blocks with rounded activations.
    pub fn is_int8(&self) -> bool {
        match &self.panels {
            Panels::Int8(_) => true,
            Panels::Packed(packed) => packed.rounds(),
            Panels::F32(_) | Panels::Bf16(_) | Panels::F16(_) | Panels::Tiles(_) => false,
        }
    }

    /// Unit of its products, if they are computed in bf16.
    pub fn tile_unit(&self) -> Option<TileUnit> {
        match &self.panels {
            Panels::Tiles(v) => Some(v.unit()),
            _ => None,
        }
    }

    /// Name of the element type that products compute with: of blocks, f32 or the arithmetic with rounded activations.
    pub fn dtype(&self) -> &'static str {
        match &self.panels {
            Panels::F32(_) => "f32",
            Panels::Bf16(_) | Panels::Tiles(_) => "bf16",
            Panels::F16(_) => "f16",
            Panels::Int8(_) => "int8",
            Panels::Packed(packed) if packed.rounds() => "a8",
            Panels::Packed(_) => "f32",
        }
    }

    /// Writes row `row` of the matrix (an embedding) times `scale` to `out` (`[k]`).
    pub fn row(&self, row: usize, scale: f32, out: &mut [f32]) {
        let (first, lane) = (row / LANES * self.k, row % LANES);
        match &self.panels {
            Panels::Tiles(v) => {
                for (i, o) in out.iter_mut().enumerate() {
                    *o = v.weight(row, i) * scale;
                }
            }
            Panels::Packed(packed) => packed.row(row, scale, out),
            Panels::Int8(v) => {
                for (out, group) in out.chunks_exact_mut(GROUP).zip(&v[first / GROUP..]) {
                    for (i, o) in out.iter_mut().enumerate() {
                        *o = group.weight(lane, i) * scale;
                    }
                }
            }
            Panels::F32(v) => {
                for (o, line) in out.iter_mut().zip(&v[first..first + self.k]) {
                    *o = line.0[lane] * scale;
                }
            }
            Panels::Bf16(v) => {
                for (o, line) in out.iter_mut().zip(&v[first..first + self.k]) {
                    *o = half::bf16::from_bits(line.0[lane]).to_f32() * scale;
                }
            }
            Panels::F16(v) => {
                for (o, line) in out.iter_mut().zip(&v[first..first + self.k]) {
                    *o = f16::from_bits(line.0[lane]).to_f32() * scale;
                }
            }
        }
    }
}

fn narrow(values: &Values) -> &[u16] {
    match values {
        Values::Bf16(v) | Values::F16(v) => v,
        Values::F32(_) => &[],
    }
}

fn wide(values: &Values, i: usize) -> f32 {
    match values {
        Values::F32(v) => v[i],
        Values::Bf16(v) => half::bf16::from_bits(v[i]).to_f32(),
        Values::F16(v) => f16::from_bits(v[i]).to_f32(),
    }
}

/// Fills `out`, one panel of sixteen rows after the other: `fill(panel, lane, values, first)` writes the row of a part that
/// begins at its value `first`.
fn pack<T: Send>(parts: &[Tensor], k: usize, out: &mut [T], fill: impl Fn(&mut [T], usize, &Values, usize) + Sync) {
    let n: usize = parts.iter().map(|t| t.shape[0]).sum();
    let per_panel = out.len() / n.div_ceil(LANES).max(1);
    if per_panel == 0 {
        return;
    }
    out.par_chunks_mut(per_panel).enumerate().for_each(|(panel, target)| {
        for lane in 0..LANES.min(n - panel * LANES) {
            let mut row = panel * LANES + lane;
            for part in parts {
                if row < part.shape[0] {
                    fill(target, lane, &part.values, row * k);
                    break;
                }
                row -= part.shape[0];
            }
        }
    });
}

/// Buffers that products reuse.
#[derive(Default)]
pub struct MatmulScratch {
    interleaved: Vec<f32>,
    bytes: Vec<i32>,
    tiles: tiled::Scratch,
    halves: Vec<f32>,
}

/// `y[m, n] = x[m, k] W^T (+ bias)`, or added to y. A row's bits depend on that row, the matrix and the bias only.
///
/// Panics if the operands' sizes do not fit.
pub fn matmul(
    team: &Team,
    scratch: &mut MatmulScratch,
    x: &[f32],
    w: &PackedMatrix,
    bias: Option<&[f32]>,
    into: Target,
    y: &mut [f32],
) {
    let (n, k) = (w.n, w.k);
    let m = x.len() / k;
    assert!(
        x.len() == m * k && y.len() == m * n,
        "operands of a product do not fit: {} x {k}, {} x {n}",
        x.len(),
        y.len()
    );
    assert!(bias.is_none_or(|b| b.len() == n), "bias of the wrong length");
    if m == 0 {
        return;
    }
    if let Panels::Tiles(v) = &w.panels {
        return tiled::matmul(team, &mut scratch.tiles, x, v, (n, k), bias, into, y);
    }
    let isa = team.isa();
    let unit = Int8Isa::best(isa);
    if w.is_int8() {
        scratch.bytes.resize(int8::words(m, k), 0);
        int8::quantise(team, unit, x, k, &mut scratch.bytes);
    } else if m > 1 {
        scratch.interleaved.resize(m * k, 0.0);
        interleave(team, x, k, &mut scratch.interleaved);
    }
    // One row is a tile as it is.
    let (a, a_bytes) = (if m > 1 { scratch.interleaved.as_slice() } else { x }, scratch.bytes.as_slice());
    let count = match &w.panels {
        Panels::Packed(packed) => {
            if packed.needs_halves() {
                packed::half_sums(team, a_bytes, m, k, &mut scratch.halves);
            }
            packed.panels()
        }
        _ => n.div_ceil(LANES),
    };
    let rows = packed::Rows { m, floats: a, words: a_bytes, halves: &scratch.halves };
    // Enough pieces that threads which finish early take more, but each large enough to hide its hand-over.
    let work_per_panel = 2 * m * k * LANES;
    // Kernels take two panels at a time, those of packed weights up to four.
    let together = if matches!(w.panels, Panels::Packed(_)) { 4 } else { 2 };
    let grain = (400_000 / work_per_panel.max(1)).clamp(together, (count / (2 * team.threads())).max(together)) & !1;
    let out = SharedMut::new(y);
    team.run(count.div_ceil(grain), &|piece| {
        let panels = piece * grain..((piece + 1) * grain).min(count);
        // SAFETY: the pieces write disjoint columns of y; all sizes were checked above.
        unsafe {
            let out = Output { n, bias, into, y: out.pointer(), stride: n };
            match &w.panels {
                Panels::F32(v) => product_f32(isa, m, k, a, v.as_ptr().cast(), panels, out),
                Panels::Bf16(v) => product_bf16(isa, m, k, a, v.as_ptr().cast(), panels, out),
                Panels::F16(v) => product_f16(isa, m, k, a, v.as_ptr().cast(), panels, out),
                Panels::Int8(v) => int8::product(unit, (m, k), a_bytes, v.as_ptr(), panels, out),
                Panels::Tiles(_) => unreachable!("computed above"),
                Panels::Packed(packed) => packed.product(isa, unit, &rows, panels, out),
            }
        }
    });
}

/// Rows in tiles as the kernel reads them: each tile `[k][rows]`.
fn interleave(team: &Team, x: &[f32], k: usize, out: &mut [f32]) {
    let m = x.len() / k;
    let most = tile_rows(team.isa());
    let split = tiles(m, most);
    let count = split.len();
    let out = SharedMut::new(out);
    let one = |t: usize| {
        let (start, rows) = split.clone().nth(t).expect("t counts the tiles");
        // SAFETY: tiles cover disjoint parts of the buffer, which is as long as x.
        let target = unsafe { out.slice(start * k, rows * k) };
        for r in 0..rows {
            let source = &x[(start + r) * k..(start + r + 1) * k];
            for (i, &v) in source.iter().enumerate() {
                target[i * rows + r] = v;
            }
        }
    };
    if m * k < 100_000 {
        (0..count).for_each(one);
    } else {
        team.run(count, &one);
    }
}

/// Rows of the largest tile.
pub(crate) fn tile_rows(isa: Isa) -> usize {
    match isa {
        Isa::Avx512 => 12,
        Isa::Avx2 => 6,
        Isa::Portable => 4,
    }
}

#[inline(always)]
unsafe fn product<L: Lanes, E: PanelElement>(
    m: usize,
    k: usize,
    a: &[f32],
    weights: *const E,
    panels: Range<usize>,
    out: Output<'_>,
) {
    let mut panel = panels.start;
    while panel < panels.end {
        let pair = L::TILE_PANELS == 2 && panel + 1 < panels.end;
        for (row, rows) in tiles(m, L::TILE_ROWS) {
            // SAFETY: the caller's panels: tiles divide `m` rows, and panels the columns.
            unsafe {
                let a = a.as_ptr().add(row * k);
                let first = weights.add(panel * k * LANES);
                with_rows!(rows, L, R => if pair {
                    whole_tile::<L, E, R, 2>(k, a, [first, first.add(k * LANES)], panel, row, out);
                } else {
                    whole_tile::<L, E, R, 1>(k, a, [first], panel, row, out);
                });
            }
        }
        panel += if pair { 2 } else { 1 };
    }
}

/// `R` rows times `P` panels, over all inputs.
#[inline(always)]
unsafe fn whole_tile<L: Lanes, E: PanelElement, const R: usize, const P: usize>(
    k: usize,
    a: *const f32,
    panels: [*const E; P],
    panel: usize,
    row: usize,
    out: Output<'_>,
) {
    // SAFETY: the caller has `k` inputs of the rows and of every panel, and their outputs.
    unsafe {
        let mut acc = [[L::zero(); P]; R];
        tile::<L, E, R, P>(k, Rows { first: a, row: 1, column: R }, panels, &mut acc);
        let mut sums = [[0.0; SUM_COLUMNS]; R];
        store_tile(&acc, sums.as_mut_ptr().cast(), SUM_COLUMNS);
        out.finish::<L>(sums.as_ptr().cast(), (row, R), panel, P);
    }
}

for_each_isa! {
    fn product_f32(m: usize, k: usize, a: &[f32], weights: *const f32, panels: Range<usize>, out: Output<'_>) => product, f32
}
for_each_isa! {
    fn product_bf16(m: usize, k: usize, a: &[f32], weights: *const Bf16, panels: Range<usize>, out: Output<'_>) => product, Bf16
}
for_each_isa! {
    fn product_f16(m: usize, k: usize, a: &[f32], weights: *const F16, panels: Range<usize>, out: Output<'_>) => product, F16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::kernels::testing::noise;

    fn reference(x: &[f32], w: &[f32], n: usize, k: usize) -> Vec<f32> {
        let m = x.len() / k;
        let mut y = vec![0f32; m * n];
        for r in 0..m {
            for c in 0..n {
                y[r * n + c] = (0..k).fold(0.0, |acc, i| x[r * k + i].mul_add(w[c * k + i], acc));
            }
        }
        y
    }

    fn tensor(n: usize, k: usize, values: Values) -> Tensor {
        Tensor { shape: vec![n, k], values }
    }

    #[test]
    fn products_are_the_sequential_chain_on_every_instruction_set_thread_count_and_batch() {
        for (n, k) in [(1, 1), (15, 7), (16, 8), (33, 64), (100, 96), (576, 192)] {
            let w = noise(n * k, 1);
            let packed = PackedMatrix::stack(vec![tensor(n, k, Values::F32(w.clone()))]);
            for m in [1, 2, 3, 5, 12, 13, 25, 40] {
                let x = noise(m * k, 2 + m as u64);
                let expected = reference(&x, &w, n, k);
                for isa in Isa::all() {
                    for threads in [1, 2, 3] {
                        let team = Team::with_isa(threads, isa);
                        let mut y = vec![f32::NAN; m * n];
                        let mut scratch = MatmulScratch::default();
                        matmul(&team, &mut scratch, &x, &packed, None, Target::Overwrite, &mut y);
                        assert!(
                            y.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()),
                            "{n}x{k} m={m} {} {threads} threads",
                            isa.name()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn bias_and_addition_are_applied_once() {
        let (n, k, m) = (37, 20, 9);
        let (w, x, bias, y0) = (noise(n * k, 1), noise(m * k, 2), noise(n, 3), noise(m * n, 4));
        let packed = PackedMatrix::stack(vec![tensor(n, k, Values::F32(w.clone()))]);
        let plain = reference(&x, &w, n, k);
        let team = Team::new(2);
        let mut y = y0.clone();
        matmul(&team, &mut MatmulScratch::default(), &x, &packed, Some(&bias), Target::Add, &mut y);
        for i in 0..m * n {
            assert_eq!(y[i], (plain[i] + bias[i % n]) + y0[i]);
        }
    }

    #[test]
    fn sixteen_bit_weights_give_the_bits_of_their_widened_values() {
        let (n, k, m) = (50, 40, 7);
        let w = noise(n * k, 1);
        let x = noise(m * k, 2);
        let brain: Vec<u16> = w.iter().map(|&v| half::bf16::from_f32(v).to_bits()).collect();
        let half: Vec<u16> = w.iter().map(|&v| f16::from_f32(v).to_bits()).collect();
        for values in [Values::Bf16(brain), Values::F16(half)] {
            let widened: Vec<f32> = (0..n * k).map(|i| wide(&values, i)).collect();
            let expected = reference(&x, &widened, n, k);
            let packed = PackedMatrix::stack(vec![tensor(n, k, values)]);
            for isa in Isa::all() {
                let mut y = vec![0f32; m * n];
                let team = Team::with_isa(1, isa);
                matmul(&team, &mut MatmulScratch::default(), &x, &packed, None, Target::Overwrite, &mut y);
                assert_eq!(y, expected);
            }
            let mut row = vec![0f32; k];
            packed.row(17, 2.0, &mut row);
            assert!(row.iter().zip(&widened[17 * k..]).all(|(a, b)| *a == *b * 2.0));
        }
    }

    #[test]
    fn stacked_matrices_follow_each_other() {
        let (k, m) = (24, 3);
        let (first, second, x) = (noise(20 * k, 1), noise(13 * k, 2), noise(m * k, 3));
        let packed = PackedMatrix::stack(vec![
            tensor(20, k, Values::F32(first.clone())),
            tensor(13, k, Values::F32(second.clone())),
        ]);
        let mut y = vec![0f32; m * 33];
        matmul(&Team::new(1), &mut MatmulScratch::default(), &x, &packed, None, Target::Overwrite, &mut y);
        assert_eq!(y, reference(&x, &[first, second].concat(), 33, k));
    }
}
