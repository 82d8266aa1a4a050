//! Super-blocks whose weights are levels of a table, in which llama.cpp's IQ types are kept in memory.
//!
//! 256 weights: a 16-bit float `d`, a signed byte `s` for each sixteen weights, and four bits a weight, in groups of 32 as in Q4_0: sixteen
//! bytes whose low nibbles are the first half. A weight is `d * s * 2^-halvings * level`, exactly what the formulas of the types give: `d` has
//! 11 bits, `s` at most 6 and a level at most 8, so that no product is rounded.

/// Bytes of a super-block.
pub(super) const LEVELS_BYTES: usize = 2 + SCALES + 128;

/// Scales of a super-block.
pub(super) const SCALES: usize = 16;

/// A table of sixteen levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Levels {
    /// Of IQ4_XS and IQ4_NL.
    Iq4,
    /// Of IQ3_XXS: the eight sizes of its codebook, then their negatives.
    Iq3Xxs,
    /// Of IQ3_S.
    Iq3S,
    /// Of IQ2_XXS, IQ2_XS and IQ2_S: three sizes, at 8 their negatives.
    Iq2,
}

impl Levels {
    /// Every table.
    pub const ALL: [Levels; 4] = [Levels::Iq4, Levels::Iq3Xxs, Levels::Iq3S, Levels::Iq2];

    /// Levels plus [`Levels::zero`], so that none is negative.
    pub const fn codes(self) -> [u8; 16] {
        match self {
            Levels::Iq4 => [1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241],
            Levels::Iq3Xxs => [66, 74, 82, 90, 98, 106, 114, 124, 58, 50, 42, 34, 26, 18, 10, 0],
            Levels::Iq3S => [16, 18, 20, 22, 24, 26, 28, 30, 14, 12, 10, 8, 6, 4, 2, 0],
            Levels::Iq2 => [51, 68, 86, 43, 43, 43, 43, 43, 35, 18, 0, 43, 43, 43, 43, 43],
        }
    }

    /// The code of the level zero.
    pub const fn zero(self) -> u8 {
        match self {
            Levels::Iq4 => 128,
            Levels::Iq3Xxs => 62,
            Levels::Iq3S => 15,
            Levels::Iq2 => 43,
        }
    }

    /// Halvings of a scale.
    pub const fn halvings(self) -> u8 {
        match self {
            Levels::Iq4 | Levels::Iq3S => 0,
            Levels::Iq3Xxs => 2,
            Levels::Iq2 => 3,
        }
    }

    /// Returns the values of super-blocks.
    pub(super) fn values(self, blocks: &[u8]) -> Vec<f32> {
        let (codes, zero) = (self.codes(), f32::from(self.zero()));
        let fraction = 1.0 / f32::from(1u8 << self.halvings());
        let mut values = Vec::with_capacity(blocks.len() / LEVELS_BYTES * 256);
        for block in blocks.as_chunks::<LEVELS_BYTES>().0 {
            let d = half::f16::from_le_bytes([block[0], block[1]]).to_f32();
            let (scales, nibbles) = block[2..].split_at(SCALES);
            for (group, bytes) in nibbles.chunks_exact(16).enumerate() {
                for (half, shift) in [(0, 0), (1, 4)] {
                    let step = d * f32::from(scales[2 * group + half] as i8) * fraction;
                    let level = |byte: &u8| f32::from(codes[usize::from(byte >> shift & 15)]) - zero;
                    values.extend(bytes.iter().map(|byte| step * level(byte)));
                }
            }
        }
        values
    }
}

/// Returns the values of blocks of IQ4_NL: a 16-bit float, and indices of [`Levels::Iq4`] as in Q4_0.
pub(super) fn iq4_nl_values(blocks: &[u8]) -> Vec<f32> {
    let (codes, zero) = (Levels::Iq4.codes(), f32::from(Levels::Iq4.zero()));
    let mut values = Vec::with_capacity(blocks.len() / 18 * 32);
    for [low, high, bytes @ ..] in blocks.as_chunks::<18>().0 {
        let d = half::f16::from_le_bytes([*low, *high]).to_f32();
        let level = |byte: u8| f32::from(codes[usize::from(byte & 15)]) - zero;
        values.extend(bytes.iter().map(|byte| d * level(*byte)));
        values.extend(bytes.iter().map(|byte| d * level(byte >> 4)));
    }
    values
}

/// A super-block from its parts: indices of levels in the order of the weights.
pub(super) fn block(d: [u8; 2], scales: [u8; SCALES], indices: &[u8; 256]) -> [u8; LEVELS_BYTES] {
    let mut block = [0; LEVELS_BYTES];
    block[..2].copy_from_slice(&d);
    block[2..2 + SCALES].copy_from_slice(&scales);
    for (bytes, indices) in block[2 + SCALES..].chunks_exact_mut(16).zip(indices.chunks_exact(32)) {
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = indices[i] | indices[16 + i] << 4;
        }
    }
    block
}
