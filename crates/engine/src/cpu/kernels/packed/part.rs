//! A matrix of quantised blocks in panels, and the values of its weights.
//!
//! Every weight of the supported formats is `step * code + least` with a code below 256, and one fused multiply-add has the bits
//! of the format's own formula: `step` is a 16-bit float times at most seven bits of scale, so `step * code` is exact where the
//! formula adds a minimum to it, and where the formula subtracts a whole number from the code, `least` is that many steps, also
//! exactly, and the sum is rounded once, as the formula's product is. Only the sign of a zero may differ, which no product shows.

use rayon::prelude::*;

use super::codes::{Codes, E2M1_ZERO, GROUP, QUADS, Width, with_codes};
use super::words::Words;
use crate::cpu::kernels::lanes::{LANES, Portable};
use earnest_models::checkpoint::{BlockType, Half, Levels};

/// Groups of a super-block.
const GROUPS: usize = 8;

/// Bytes of sixteen columns' 16-bit floats, and of their 8-bit scales.
const HALFS: usize = 2 * LANES;
const BYTES: usize = LANES;
const FLOATS: usize = 4 * LANES;

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
}

/// Layout of a format in memory.
#[derive(Debug, Clone, Copy)]
struct Layout {
    codes: Codes,
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
        }
    }
}

/// Sixteen columns' words, on a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u32; LANES]);

/// A matrix `[n, k]` in blocks, packed in panels of sixteen columns.
pub(crate) struct Part {
    n: usize,
    k: usize,
    layout: Layout,
    /// Each panel: the codes of its groups ([`super::codes`]).
    codes: Vec<Line>,
    /// Each panel: the scales of its groups, padded to whole lines.
    scales: Vec<Line>,
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
    scheme: Scheme,
}

impl Part {
    /// Packs `n` rows of blocks of `k` weights; the error is the number of weights that are not finite.
    ///
    /// Panics if the bytes are not those of `n * k` weights; the loader has checked the shapes.
    pub(crate) fn pack(kind: BlockType, n: usize, k: usize, blocks: &[u8]) -> Result<Part, usize> {
        let (weights, size) = kind.size();
        assert!(k.is_multiple_of(weights) && blocks.len() == n * k / weights * size, "blocks of another size");
        let layout = Layout::of(kind);
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
            0 => Ok(Part { n, k, layout, codes, scales }),
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
        size_of_val(self.codes.as_slice()) + size_of_val(self.scales.as_slice())
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
            scheme: self.layout.scheme,
        }
    }

    /// Writes row `row` (an embedding) times `scale` to `out` (`[k]`).
    pub(crate) fn row(&self, row: usize, scale: f32, out: &mut [f32]) {
        assert!(row < self.n && out.len() == self.k, "a row of another matrix");
        let (panel, lane) = (self.panel(row / LANES), row % LANES);
        with_codes!(self.layout.codes, B => {
            for (group, out) in out.chunks_exact_mut(GROUP).enumerate() {
                // SAFETY: the group is one of the panel's.
                let affine = unsafe { panel.affine::<Portable>(group) }.map(|(step, least)| (lane_of(step, lane), lane_of(least, lane)));
                for (q, four) in out.chunks_exact_mut(4).enumerate() {
                    // SAFETY: as above.
                    let codes = unsafe { B::floats::<Portable>(panel.codes.add(group * B::LINES * LANES), q) };
                    let (step, least) = affine[q / (QUADS / 2)];
                    for (o, code) in four.iter_mut().zip(codes) {
                        *o = lane_of(code, lane).mul_add(step, least) * scale;
                    }
                }
            }
        });
    }
}

fn lane_of(v: Portable, lane: usize) -> f32 {
    let mut lanes = [0f32; LANES];
    // SAFETY: there is room for sixteen floats.
    unsafe { crate::cpu::kernels::lanes::Lanes::store(v, lanes.as_mut_ptr()) };
    lanes[lane]
}

/// Lines between those that are read and those that are asked for. The hardware foresees too little where several panels are read
/// in turns, each a stretch at a time.
const AHEAD: usize = 64;

impl Panel {
    /// Asks for the lines of codes that follow those of a group, here or in the panel that is read `next` panels after this one.
    ///
    /// # Safety
    /// The CPU has the instructions.
    #[inline(always)]
    pub(super) unsafe fn prefetch<L: Words, B: Width>(&self, group: usize, next: usize) {
        let line = group * B::LINES + AHEAD;
        let line = if line < self.lines { line } else { line + (next - 1) * self.lines };
        for i in 0..B::LINES {
            // SAFETY: the address is not read from; beyond the matrix it is only a number.
            unsafe { L::prefetch(self.codes.wrapping_add((line + i) * LANES)) }
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
}

/// A column of a panel that a block is written to.
struct Column<'a> {
    layout: Layout,
    codes: &'a mut [Line],
    scales: &'a mut [Line],
    lane: usize,
    /// First group of the block.
    first: usize,
}

impl Column<'_> {
    /// Writes a block; false if its scales are not finite.
    fn write(&mut self, kind: BlockType, block: &[u8]) -> bool {
        let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
        let of_nibbles =
            |at: usize| -> [u32; QUADS] { std::array::from_fn(|q| word(at + q % 4 * 4) >> (q / 4 * 4) & 0x0F0F_0F0F) };
        let with_fifth = |quads: [u32; QUADS], bits: u32| -> [u32; QUADS] {
            std::array::from_fn(|q| quads[q] | spread(bits >> (4 * q)) << 4)
        };
        match kind {
            BlockType::Q4_0 | BlockType::Iq4Nl => {
                self.codes(0, &of_nibbles(2));
                self.group_scales(block, 1)
            }
            BlockType::Levels(_) => {
                for group in 0..GROUPS {
                    self.codes(group, &of_nibbles(18 + 16 * group));
                }
                self.half_group_scales(&std::array::from_fn(|i| block[2 + i]), &block[..2])
            }
            BlockType::Mxfp4 => {
                self.codes(0, &of_nibbles(1));
                let start = self.first * HALFS;
                self.half(start, &half_power(block[0]).to_le_bytes());
                block[0] <= GREATEST_POWER
            }
            BlockType::Group4(half) | BlockType::Group8(half, _) => {
                let codes = match kind {
                    BlockType::Group4(_) => of_nibbles(3),
                    _ => std::array::from_fn(|q| word(3 + 4 * q)),
                };
                self.codes(0, &codes);
                let start = self.first * (HALFS + BYTES);
                self.byte(start + HALFS, block[2]);
                let finite = self.half(start, &block[..2]);
                match half {
                    Half::F16 => finite,
                    Half::Bf16 => {
                        let scale = half::bf16::from_le_bytes([block[0], block[1]]).to_f32();
                        (scale * GREATEST_CODE).is_finite()
                    }
                }
            }
            BlockType::E4m3 => {
                self.codes(0, &std::array::from_fn(|q| word(4 + 4 * q)));
                let start = self.first * FLOATS + 4 * self.lane;
                block[..4].iter().enumerate().for_each(|(i, byte)| self.put(start + i, *byte));
                // Seven ones are no number.
                (f32::from_bits(word(0)) * GREATEST_E4M3).is_finite()
                    && block[4..].iter().all(|code| code & 0x7F != 0x7F)
            }
            BlockType::Q4_1 => {
                self.codes(0, &of_nibbles(4));
                self.group_scales(block, 2)
            }
            BlockType::Q5_0 => {
                self.codes(0, &with_fifth(of_nibbles(6), word(2)));
                self.group_scales(block, 1)
            }
            BlockType::Q5_1 => {
                self.codes(0, &with_fifth(of_nibbles(8), word(4)));
                self.group_scales(block, 2)
            }
            BlockType::Q8_0 => {
                // From two's complement to the distance from -128.
                self.codes(0, &std::array::from_fn(|q| word(2 + 4 * q) ^ 0x8080_8080));
                self.group_scales(block, 1)
            }
            BlockType::Q4K | BlockType::Q5K => {
                let fifth = kind == BlockType::Q5K;
                for group in 0..GROUPS {
                    let at = if fifth { 48 } else { 16 } + group / 2 * 32;
                    self.codes(
                        group,
                        &std::array::from_fn(|q| {
                            let low = word(at + 4 * q) >> (group % 2 * 4) & 0x0F0F_0F0F;
                            let high = if fifth { word(16 + 4 * q) >> group & 0x0101_0101 } else { 0 };
                            low | high << 4
                        }),
                    );
                }
                let bytes = |group: usize| -> [u8; 2] {
                    let s = &block[4..16];
                    if group < 4 {
                        return [s[group] & 63, s[group + 4] & 63];
                    }
                    [s[group + 4] & 15 | s[group - 4] >> 6 << 4, s[group + 4] >> 4 | s[group] >> 6 << 4]
                };
                let start = self.first / GROUPS * (2 * HALFS + 2 * GROUPS * BYTES);
                for group in 0..GROUPS {
                    for (i, byte) in bytes(group).into_iter().enumerate() {
                        self.byte(start + 2 * HALFS + (2 * group + i) * BYTES, byte);
                    }
                }
                self.half(start, &block[0..2]) & self.half(start + HALFS, &block[2..4])
            }
            BlockType::Q6K => {
                for group in 0..GROUPS {
                    let (chunk, j) = (group / 4, group % 4);
                    let (low, high) = (chunk * 64 + j % 2 * 32, 128 + chunk * 32);
                    self.codes(
                        group,
                        &std::array::from_fn(|q| {
                            let low = word(low + 4 * q) >> (j / 2 * 4) & 0x0F0F_0F0F;
                            low | (word(high + 4 * q) >> (2 * j) & 0x0303_0303) << 4
                        }),
                    );
                }
                self.half_group_scales(&std::array::from_fn(|i| block[192 + i]), &block[208..210])
            }
            BlockType::Q2K => {
                self.two_bits(|q| word(16 + q), |_, _| 0);
                let start = self.first / GROUPS * (2 * HALFS + 4 * GROUPS * BYTES);
                for (i, byte) in block[..16].iter().enumerate() {
                    self.byte(start + 2 * HALFS + 2 * i * BYTES, byte & 15);
                    self.byte(start + 2 * HALFS + (2 * i + 1) * BYTES, byte >> 4);
                }
                self.half(start, &block[80..82]) & self.half(start + HALFS, &block[82..84])
            }
            BlockType::Q3K => {
                self.two_bits(|q| word(32 + q), |group, q| (word(4 * q) >> group & 0x0101_0101) << 2);
                let s = &block[96..108];
                let scales = std::array::from_fn(|i| {
                    let low = s[i % 8] >> (i / 8 * 4) & 15;
                    let high = s[8 + i % 4] >> (i / 4 * 2) & 3;
                    (low | high << 4).wrapping_sub(32)
                });
                self.half_group_scales(&scales, &block[108..110])
            }
        }
    }

    /// Writes codes of two bits, which four groups share the bytes of, with `high` bits of a group's quad.
    fn two_bits(&mut self, bytes: impl Fn(usize) -> u32, high: impl Fn(usize, usize) -> u32) {
        for group in 0..GROUPS {
            let quads = std::array::from_fn(|q| {
                bytes(group / 4 * 32 + 4 * q) >> (group % 4 * 2) & 0x0303_0303 | high(group, q)
            });
            self.codes(group, &quads);
        }
    }

    fn codes(&mut self, group: usize, quads: &[u32; QUADS]) {
        with_codes!(self.layout.codes, B => {
            let start = (self.first + group) * B::LINES;
            B::set(quads, |line, word| self.codes[start + line].0[self.lane] = word);
        });
    }

    /// Writes the 16-bit floats that a block of one group begins with.
    fn group_scales(&mut self, block: &[u8], count: usize) -> bool {
        let start = self.first * count * HALFS;
        (0..count).fold(true, |finite, i| finite & self.half(start + i * HALFS, &block[2 * i..2 * i + 2]))
    }

    /// Writes signed scales of half groups, and the super-block's.
    fn half_group_scales(&mut self, scales: &[u8; 2 * GROUPS], d: &[u8]) -> bool {
        let start = self.first / GROUPS * (HALFS + 2 * GROUPS * BYTES);
        for (i, scale) in scales.iter().enumerate() {
            self.byte(start + HALFS + i * BYTES, *scale);
        }
        self.half(start, d)
    }

    /// Writes the column's 16-bit float of those at byte `at`; false if it is not finite.
    fn half(&mut self, at: usize, bytes: &[u8]) -> bool {
        let at = at + 2 * self.lane;
        self.put(at, bytes[0]);
        self.put(at + 1, bytes[1]);
        bytes[1] & 0x7C != 0x7C
    }

    /// Writes the column's byte of those at byte `at`.
    fn byte(&mut self, at: usize, byte: u8) {
        self.put(at + self.lane, byte);
    }

    fn put(&mut self, at: usize, byte: u8) {
        let word = &mut self.scales[at / size_of::<Line>()].0[at % size_of::<Line>() / 4];
        let mut bytes = word.to_ne_bytes();
        bytes[at % 4] = byte;
        *word = u32::from_ne_bytes(bytes);
    }
}

/// Four bits, each in its byte.
fn spread(bits: u32) -> u32 {
    bits & 1 | (bits & 2) << 7 | (bits & 4) << 14 | (bits & 8) << 21
}

/// Greatest code and zero point, whose products with a scale must be numbers.
const GREATEST_CODE: f32 = 256.0;

/// Greatest number of E4M3.
const GREATEST_E4M3: f32 = 448.0;

/// Greatest exponent of MXFP4 whose least value, 12 steps, is a number.
const GREATEST_POWER: u8 = 250;

/// Half of `2^(power - 127)` in bf16, exactly: codes are twice the values.
fn half_power(power: u8) -> u16 {
    match power {
        // Below the normal numbers.
        0 => 0x0020,
        1 => 0x0040,
        power => u16::from(power - 1) << 7,
    }
}
