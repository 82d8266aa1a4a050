//! llama.cpp's IQ types: blocks of the file as super-blocks of levels. Formulas are those of `gguf-py`'s `quants.py`.
use super::super::levels::{LEVELS_BYTES, Levels, SCALES, block};
use super::grids::{IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS};

/// A type of 256 weights by codebooks, or by a table of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::checkpoint) enum IqType {
    Iq2Xxs,
    Iq2Xs,
    Iq2S,
    Iq3Xxs,
    Iq3S,
    Iq4Xs,
}

/// Weights of a block.
pub(in crate::checkpoint) const IQ_BLOCK: usize = 256;

/// Index of the negative of a size, less the size's.
const NEGATIVE: u8 = 8;

impl IqType {
    /// Name in llama.cpp.
    pub(in crate::checkpoint) fn name(self) -> &'static str {
        match self {
            IqType::Iq2Xxs => "IQ2_XXS",
            IqType::Iq2Xs => "IQ2_XS",
            IqType::Iq2S => "IQ2_S",
            IqType::Iq3Xxs => "IQ3_XXS",
            IqType::Iq3S => "IQ3_S",
            IqType::Iq4Xs => "IQ4_XS",
        }
    }

    /// Bytes of a block in the file.
    pub(in crate::checkpoint) fn type_size(self) -> usize {
        match self {
            IqType::Iq2Xxs => 66,
            IqType::Iq2Xs => 74,
            IqType::Iq2S => 82,
            IqType::Iq3Xxs => 98,
            IqType::Iq3S => 110,
            IqType::Iq4Xs => 136,
        }
    }

    /// Table of the levels of its super-blocks.
    pub(in crate::checkpoint) fn levels(self) -> Levels {
        match self {
            IqType::Iq2Xxs | IqType::Iq2Xs | IqType::Iq2S => Levels::Iq2,
            IqType::Iq3Xxs => Levels::Iq3Xxs,
            IqType::Iq3S => Levels::Iq3S,
            IqType::Iq4Xs => Levels::Iq4,
        }
    }

    /// Returns whole blocks of the file as super-blocks of levels.
    pub(in crate::checkpoint) fn blocks(self, stored: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(stored.len() / self.type_size() * LEVELS_BYTES);
        for stored in stored.chunks_exact(self.type_size()) {
            let mut indices = [0; IQ_BLOCK];
            let scales = self.take_apart(&stored[2..], &mut indices);
            out.extend(block([stored[0], stored[1]], scales, &indices));
        }
        out
    }

    /// Writes the indices of a block's levels and returns its scales; `bytes` are those after `d`.
    fn take_apart(self, bytes: &[u8], indices: &mut [u8; IQ_BLOCK]) -> [u8; SCALES] {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        // Four bits of a byte for each half of a group.
        let nibble = |at: usize, i: usize| bytes[at + i / 2] >> (i % 2 * 4) & 15;
        match self {
            IqType::Iq2Xxs => {
                for (i, run) in indices.chunks_exact_mut(8).enumerate() {
                    let signs = word(i / 4 * 8 + 4) >> (7 * (i % 4)) & 127;
                    eight(run, IQ2_XXS[usize::from(bytes[i / 4 * 8 + i % 4])], with_parity(signs));
                }
                std::array::from_fn(|i| odd(word(i / 2 * 8 + 4) >> 28))
            }
            IqType::Iq2Xs => {
                for (i, run) in indices.chunks_exact_mut(8).enumerate() {
                    let both = short(2 * i);
                    eight(run, IQ2_XS[usize::from(both & 511)], with_parity(u32::from(both >> 9)));
                }
                std::array::from_fn(|i| odd(nibble(64, i).into()))
            }
            IqType::Iq2S => {
                for (i, run) in indices.chunks_exact_mut(8).enumerate() {
                    let high = usize::from(bytes[64 + i / 4] >> (i % 4 * 2) & 3);
                    eight(run, IQ2_S[usize::from(bytes[i]) | high << 8], bytes[32 + i]);
                }
                std::array::from_fn(|i| odd(nibble(72, i).into()))
            }
            IqType::Iq3Xxs => {
                for (i, run) in indices.chunks_exact_mut(4).enumerate() {
                    let signs = with_parity(word(64 + i / 8 * 4) >> (7 * (i % 8 / 2)) & 127);
                    four(run, IQ3_XXS[usize::from(bytes[i])], signs >> (i % 2 * 4));
                }
                std::array::from_fn(|i| odd(word(64 + i / 2 * 4) >> 28))
            }
            IqType::Iq3S => {
                for (i, run) in indices.chunks_exact_mut(4).enumerate() {
                    let high = usize::from(bytes[64 + i / 8] >> (i % 8) & 1);
                    four(run, IQ3_S[usize::from(bytes[i]) | high << 8], bytes[72 + i / 2] >> (i % 2 * 4));
                }
                std::array::from_fn(|i| odd(nibble(104, i / 2).into()))
            }
            IqType::Iq4Xs => {
                for (group, run) in indices.chunks_exact_mut(32).enumerate() {
                    for (i, index) in run.iter_mut().enumerate() {
                        *index = bytes[6 + group * 16 + i % 16] >> (i / 16 * 4) & 15;
                    }
                }
                std::array::from_fn(|i| {
                    let high = (short(0) >> (i / 2 * 2) & 3) as u8;
                    (nibble(2, i / 2) | high << 4).wrapping_sub(32)
                })
            }
        }
    }
}

/// Twice a stored scale and a half.
fn odd(scale: u32) -> u8 {
    (2 * scale + 1) as u8
}

/// Seven signs, and an eighth that makes their number even.
fn with_parity(signs: u32) -> u8 {
    (signs | (signs.count_ones() & 1) << 7) as u8
}

/// Indices of eight weights from two bits each and their signs.
fn eight(run: &mut [u8], sizes: u16, signs: u8) {
    for (i, index) in run.iter_mut().enumerate() {
        *index = (sizes >> (2 * i) & 3) as u8 + (signs >> i & 1) * NEGATIVE;
    }
}

/// Indices of four weights from three bits each and their signs.
fn four(run: &mut [u8], sizes: u16, signs: u8) {
    for (i, index) in run.iter_mut().enumerate() {
        *index = (sizes >> (3 * i) & 7) as u8 + (signs >> i & 1) * NEGATIVE;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::levels::iq4_nl_values;
    use super::*;

    fn bytes(hex: &serde_json::Value) -> Vec<u8> {
        let hex = hex.as_str().unwrap().as_bytes().as_chunks::<2>().0;
        hex.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn blocks_have_the_values_of_gguf_py() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/gguf/iq.json");
        let rows: Vec<serde_json::Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let types = [IqType::Iq2Xxs, IqType::Iq2Xs, IqType::Iq2S, IqType::Iq3Xxs, IqType::Iq3S, IqType::Iq4Xs];
        for row in &rows {
            let (name, blocks) = (row["type"].as_str().unwrap(), bytes(&row["blocks"]));
            let values = match types.into_iter().find(|kind| kind.name() == name) {
                Some(kind) => kind.levels().values(&kind.blocks(&blocks)),
                None => iq4_nl_values(&blocks),
            };
            let expected = bytes(&row["values"]);
            let expected = expected.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value));
            assert_eq!(values, expected.collect::<Vec<f32>>(), "{name}");
        }
        assert_eq!(rows.len(), types.len() + 1);
    }
}
