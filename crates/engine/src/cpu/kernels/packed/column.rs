//! Blocks of every type, written to a column of a panel: codes by fours, scales beside those of the other columns.

use super::codes::{GROUP, QUADS, Width, with_codes};
use super::part::{BYTES, FLOATS, GROUPS, HALFS, Layout, Line};
use earnest_models::checkpoint::{BlockType, Half};

/// A column of a panel that a block is written to.
pub(super) struct Column<'a> {
    pub(super) layout: Layout,
    pub(super) codes: &'a mut [Line],
    pub(super) scales: &'a mut [Line],
    pub(super) lane: usize,
    /// First group of the block.
    pub(super) first: usize,
}

impl Column<'_> {
    /// Writes a block; false if its scales are not finite.
    pub(super) fn write(&mut self, kind: BlockType, block: &[u8]) -> bool {
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
                let scale = f32::from_bits(word(0));
                self.float(self.first * FLOATS, scale);
                // Seven ones are no number.
                (scale * GREATEST_E4M3).is_finite() && block[4..].iter().all(|code| code & 0x7F != 0x7F)
            }
            BlockType::GroupedRow(row) => {
                let of_groups = &block[row.code_bytes()..];
                for group in 0..row.inputs / GROUP {
                    let quads = match row.wide {
                        false => of_nibbles(group * GROUP / 2),
                        true => std::array::from_fn(|q| word(group * GROUP + 4 * q)),
                    };
                    self.codes(group, &quads);
                }
                let numbers = of_groups.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
                let (scales, zeros) = (numbers.clone().take(row.groups), numbers.skip(row.groups));
                let (mut finite, greatest) = (true, if row.wide { 255.0 } else { 15.0 });
                for (group, (scale, zero)) in scales.zip(zeros).enumerate() {
                    finite &= (scale * zero.abs().max((greatest - zero).abs())).is_finite();
                    self.float(group * 2 * FLOATS, scale);
                    self.float(group * 2 * FLOATS + FLOATS, -zero);
                }
                finite
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

    /// Writes the column's float of those at byte `at`.
    fn float(&mut self, at: usize, value: f32) {
        let at = at + 4 * self.lane;
        value.to_ne_bytes().into_iter().enumerate().for_each(|(i, byte)| self.put(at + i, byte));
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
