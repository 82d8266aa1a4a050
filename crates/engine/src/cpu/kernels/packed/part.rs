//! A matrix of quantised blocks in panels, and the values of its weights.
//!
//! Every weight of the supported formats is `step * code + least` with a code below 256, and one fused multiply-add has the bits
//! of the format's own formula: `step` is a 16-bit float times at most seven bits of scale, so `step * code` is exact where the
//! formula adds a minimum to it, and where the formula subtracts a whole number from the code, `least` is that many steps, also
//! exactly, and the sum is rounded once, as the formula's product is. Only the sign of a zero may differ, which no product shows.

use rayon::prelude::*;

use super::codes::{Codes, E2M1_ZERO, GROUP, Width, with_codes};
use super::column::Column;
use super::words::Words;
use crate::cpu::kernels::lanes::LANES;
use earnest_models::checkpoint::{BlockType, Half, Levels};

/// Groups of a super-block.
pub(super) const GROUPS: usize = 8;

/// Bytes of sixteen columns' 16-bit floats, and of their 8-bit scales.
pub(super) const HALFS: usize = 2 * LANES;
pub(super) const BYTES: usize = LANES;
pub(super) const FLOATS: usize = 4 * LANES;

/// Storage of a format's steps and least values; `d` and `m` are 16-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    /// Each group has `d`; its weights are `d * (code - zero)`.
    Centred { zero: u8 },
    /// Each group has `d` and `m`; its weights are `d * code + m`.
    Offset,
    /// A super-block has `d` and `m`, its groups bytes s and t; weights are `d * s * code - m * t`.
    Super,
    /// A super-block has `d`, its half groups a signed byte s; weights are `d * s * 2^-halvings * (code - zero)`.
    CentredHalves { zero: u8, halvings: u8 },
    /// As [`Super`](Scheme::Super), for half groups.
    SuperHalves,
    /// As [`Centred`](Scheme::Centred), with `d` in bf16.
    CentredBf16 { zero: u8 },
    /// Each group has `d` of a float type and a byte `zero`, which is one less than meant if so; its weights are `d * (code - zero)`.
    Zeros { half: Half, less_one: bool },
    /// Each group has `d` in f32; its weights are `d * code`.
    Float,
    /// So many groups of a row have `d` and minus `zero` in f32; inputs have the index of theirs, and weights are `(code - zero) * d`.
    OfInputs { groups: usize },
}

/// Layout of a format in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) codes: Codes,
    scheme: Scheme,
}

impl Layout {
    fn of(kind: BlockType) -> Layout {
        let halves = |zero| Scheme::CentredHalves { zero, halvings: 0 };
        let (codes, scheme) = match kind {
            BlockType::Q4_0 => (Codes::Four, Scheme::Centred { zero: 8 }),
            BlockType::Q4_1 => (Codes::Four, Scheme::Offset),
            BlockType::Q5_0 => (Codes::Five, Scheme::Centred { zero: 16 }),
            BlockType::Q5_1 => (Codes::Five, Scheme::Offset),
            BlockType::Q8_0 => (Codes::Eight, Scheme::Centred { zero: 128 }),
            // Two and three bits take four.
            BlockType::Q2K => (Codes::Four, Scheme::SuperHalves),
            BlockType::Q3K => (Codes::Four, halves(4)),
            BlockType::Q4K => (Codes::Four, Scheme::Super),
            BlockType::Q5K => (Codes::Five, Scheme::Super),
            BlockType::Q6K => (Codes::Six, halves(32)),
            BlockType::Mxfp4 => (Codes::TwiceE2m1, Scheme::CentredBf16 { zero: E2M1_ZERO }),
            BlockType::Iq4Nl => (Codes::Levels(Levels::Iq4), Scheme::Centred { zero: Levels::Iq4.zero() }),
            BlockType::Levels(levels) => {
                let (zero, halvings) = (levels.zero(), levels.halvings());
                (Codes::Levels(levels), Scheme::CentredHalves { zero, halvings })
            }
            BlockType::Group4(half) => (Codes::Four, Scheme::Zeros { half, less_one: false }),
            BlockType::Group8(half, less_one) => (Codes::Eight, Scheme::Zeros { half, less_one }),
            BlockType::E4m3 => (Codes::E4m3, Scheme::Float),
            BlockType::GroupedRow(row) => {
                (if row.wide { Codes::Eight } else { Codes::Four }, Scheme::OfInputs { groups: row.groups })
            }
        };
        Layout { codes, scheme }
    }

    /// Lines of a group's codes.
    fn lines(self) -> usize {
        with_codes!(self.codes, B => B::LINES)
    }

    /// Bytes of the scales of so many groups of sixteen columns, without padding.
    fn scale_bytes(self, groups: usize) -> usize {
        let blocks = groups / GROUPS;
        match self.scheme {
            Scheme::Centred { .. } | Scheme::CentredBf16 { .. } => groups * HALFS,
            Scheme::Zeros { .. } => groups * (HALFS + BYTES),
            Scheme::Float => groups * FLOATS,
            Scheme::Offset => groups * 2 * HALFS,
            Scheme::Super => blocks * (2 * HALFS + 2 * GROUPS * BYTES),
            Scheme::CentredHalves { .. } => blocks * (HALFS + 2 * GROUPS * BYTES),
            Scheme::SuperHalves => blocks * (2 * HALFS + 4 * GROUPS * BYTES),
            Scheme::OfInputs { groups } => groups * 2 * FLOATS,
        }
    }
}

/// Sixteen columns' words, on a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [u32; LANES]);

/// A matrix `[n, k]` in blocks, packed in panels of sixteen columns.
pub(crate) struct Part {
    n: usize,
    k: usize,
    layout: Layout,
    /// Each panel: the codes of its groups ([`super::codes`]).
    codes: Vec<Line>,
    /// Each panel: the scales of its groups, padded to whole lines.
    scales: Vec<Line>,
    /// The group of each input, where groups are no blocks of neighbours; else empty.
    groups_of_inputs: Vec<u32>,
}

/// Step and least value of sixteen columns, for the first and the second half of a group.
pub(super) type Affine<L> = [(L, L); 2];

/// One panel.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) codes: *const u32,
    /// Lines of the panel's codes.
    lines: usize,
    scales: *const u8,
    /// Lines of the panel's scales, and those of a group of codes.
    scale_lines: usize,
    scale_share: usize,
    scheme: Scheme,
}

impl Part {
    /// Packs `n` rows of blocks of `k` weights, with the group of each input of grouped rows; the error is the number of weights that are
    /// not finite.
    ///
    /// Panics if the bytes are not those of `n * k` weights, or an input has no group; the loader has checked them.
    pub(crate) fn pack(
        kind: BlockType,
        n: usize,
        k: usize,
        blocks: &[u8],
        groups_of_inputs: Vec<u32>,
    ) -> Result<Part, usize> {
        let (weights, size) = kind.size();
        assert!(k.is_multiple_of(weights) && blocks.len() == n * k / weights * size, "blocks of another size");
        let layout = Layout::of(kind);
        let (known, inputs) = match layout.scheme {
            Scheme::OfInputs { groups } => (groups, k),
            _ => (0, 0),
        };
        let has_groups = groups_of_inputs.iter().all(|group| (*group as usize) < known);
        assert!(has_groups && groups_of_inputs.len() == inputs, "inputs of other groups");
        assert!(inputs == 0 || weights == k && k.is_multiple_of(GROUP), "grouped rows of another width");
        let (groups, panels) = (k / GROUP, n.div_ceil(LANES));
        let (per_codes, per_scales) = (groups * layout.lines(), layout.scale_bytes(groups).div_ceil(size_of::<Line>()));
        let mut codes = vec![Line([0; LANES]); panels * per_codes];
        let mut scales = vec![Line([0; LANES]); panels * per_scales];
        let row_bytes = k / weights * size;
        let panels = codes.par_chunks_mut(per_codes.max(1)).zip(scales.par_chunks_mut(per_scales.max(1)));
        let bad = panels.zip(blocks.par_chunks((LANES * row_bytes).max(1))).map(|((codes, scales), rows)| {
            let mut bad = 0;
            for (lane, row) in rows.chunks_exact(row_bytes).enumerate() {
                for (i, block) in row.chunks_exact(size).enumerate() {
                    let mut column = Column { layout, codes, scales, lane, first: i * (weights / GROUP) };
                    bad += if column.write(kind, block) { 0 } else { weights };
                }
            }
            bad
        });
        match bad.sum() {
            0 => Ok(Part { n, k, layout, codes, scales, groups_of_inputs }),
            bad => Err(bad),
        }
    }

    /// Output columns.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Input columns.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// Codes of the weights.
    pub(super) fn codes(&self) -> Codes {
        self.layout.codes
    }

    /// Panels of sixteen columns.
    pub(super) fn panels(&self) -> usize {
        self.n.div_ceil(LANES)
    }

    /// Bytes of memory.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(self.codes.as_slice())
            + size_of_val(self.scales.as_slice())
            + size_of_val(self.groups_of_inputs.as_slice())
    }

    /// The group of each input, if groups are no blocks of neighbours.
    pub(super) fn groups_of_inputs(&self) -> Option<&[u32]> {
        matches!(self.layout.scheme, Scheme::OfInputs { .. }).then_some(&self.groups_of_inputs)
    }

    /// True if the halves of a group have different steps.
    pub(super) fn has_halves(&self) -> bool {
        matches!(self.layout.scheme, Scheme::CentredHalves { .. } | Scheme::SuperHalves)
    }

    /// One panel. Panics if there is none of that number.
    pub(super) fn panel(&self, panel: usize) -> Panel {
        let (codes, scales) = (self.codes.len() / self.panels(), self.scales.len() / self.panels());
        Panel {
            codes: self.codes[panel * codes..(panel + 1) * codes].as_ptr().cast(),
            lines: codes,
            scales: self.scales[panel * scales..(panel + 1) * scales].as_ptr().cast(),
            scale_lines: scales,
            scale_share: scales.div_ceil((self.k / GROUP).max(1)),
            scheme: self.layout.scheme,
        }
    }
}

/// Lines between those that are read and those that are asked for. The hardware foresees too little where several panels are read
/// in turns, each a stretch at a time.
const AHEAD: usize = 64;

impl Panel {
    /// Asks for the lines of codes that follow those of a group, here or in the panel that is read `next` panels after this one, and for
    /// the group's share of that panel's scales.
    ///
    /// # Safety
    /// The CPU has the instructions.
    #[inline(always)]
    pub(super) unsafe fn prefetch<L: Words, B: Width>(&self, group: usize, next: usize) {
        let line = group * B::LINES + AHEAD;
        let line = if line < self.lines { line } else { line + (next - 1) * self.lines };
        // SAFETY: addresses are not read from; beyond the matrix they are only numbers.
        unsafe {
            for i in 0..B::LINES {
                L::prefetch(self.codes.wrapping_add((line + i) * LANES));
            }
            for i in group * self.scale_share..(group * self.scale_share + self.scale_share).min(self.scale_lines) {
                L::prefetch(self.scales.wrapping_add((next * self.scale_lines + i) * size_of::<Line>()).cast());
            }
        }
    }

    /// Steps and least values of a group.
    ///
    /// # Safety
    /// The panel has the group, and the CPU the instructions.
    #[inline(always)]
    pub(super) unsafe fn affine<L: Words>(&self, group: usize) -> Affine<L> {
        let (block, i) = (group / GROUPS, group % GROUPS);
        // SAFETY: the offsets are those at which `Column` writes the group's scales.
        unsafe {
            // No closures: they would not have the caller's instructions.
            match self.scheme {
                Scheme::Centred { zero } => {
                    let step = L::load_f16(self.scales.add(group * HALFS).cast());
                    [(step, step.mul(L::splat(-f32::from(zero)))); 2]
                }
                Scheme::Offset => {
                    let p = self.scales.add(group * 2 * HALFS);
                    [(L::load_f16(p.cast()), L::load_f16(p.add(HALFS).cast())); 2]
                }
                Scheme::Super => {
                    let p = self.scales.add(block * (2 * HALFS + 2 * GROUPS * BYTES));
                    let (d, m) = (L::load_f16(p.cast()), L::load_f16(p.add(HALFS).cast()).mul(L::splat(-1.0)));
                    let bytes = p.add(2 * HALFS + 2 * i * BYTES);
                    [(d.mul(L::unsigned(bytes)), m.mul(L::unsigned(bytes.add(BYTES)))); 2]
                }
                Scheme::CentredBf16 { zero } => {
                    let step = L::load_bf16(self.scales.add(group * HALFS).cast());
                    [(step, step.mul(L::splat(-f32::from(zero)))); 2]
                }
                Scheme::Zeros { half, less_one } => {
                    let p = self.scales.add(group * (HALFS + BYTES));
                    let step = match half {
                        Half::F16 => L::load_f16(p.cast()),
                        Half::Bf16 => L::load_bf16(p.cast()),
                    };
                    let zero = L::unsigned(p.add(HALFS));
                    let zero = if less_one { zero.add(L::splat(1.0)) } else { zero };
                    [(step, step.mul(zero).mul(L::splat(-1.0))); 2]
                }
                Scheme::Float => [(L::load(self.scales.add(group * FLOATS).cast()), L::zero()); 2],
                Scheme::OfInputs { .. } => unreachable!("inputs of a group have scales of their own"),
                Scheme::CentredHalves { zero, halvings } => {
                    let p = self.scales.add(block * (HALFS + 2 * GROUPS * BYTES));
                    let fraction = L::splat(1.0 / f32::from(1u8 << halvings));
                    let (d, zero) = (L::load_f16(p.cast()).mul(fraction), L::splat(-f32::from(zero)));
                    let bytes = p.add(HALFS + 2 * i * BYTES).cast::<i8>();
                    let (first, second) = (d.mul(L::signed(bytes)), d.mul(L::signed(bytes.add(BYTES))));
                    [(first, first.mul(zero)), (second, second.mul(zero))]
                }
                Scheme::SuperHalves => {
                    let p = self.scales.add(block * (2 * HALFS + 4 * GROUPS * BYTES));
                    let (d, m) = (L::load_f16(p.cast()), L::load_f16(p.add(HALFS).cast()).mul(L::splat(-1.0)));
                    let bytes = p.add(2 * HALFS + 4 * i * BYTES);
                    [
                        (d.mul(L::unsigned(bytes)), m.mul(L::unsigned(bytes.add(BYTES)))),
                        (d.mul(L::unsigned(bytes.add(2 * BYTES))), m.mul(L::unsigned(bytes.add(3 * BYTES)))),
                    ]
                }
            }
        }
    }

    /// Scale and minus the zero point of one of the groups of a row.
    ///
    /// # Safety
    /// The panel has grouped rows with this group, and the CPU the instructions.
    #[inline(always)]
    pub(super) unsafe fn of_group<L: Words>(&self, group: u32) -> (L, L) {
        // SAFETY: this is where `Column` writes them.
        unsafe {
            let at = self.scales.add(group as usize * 2 * FLOATS);
            (L::load(at.cast()), L::load(at.add(FLOATS).cast()))
        }
    }
}
