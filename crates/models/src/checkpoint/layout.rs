//! Orders of stored elements that differ from the engine's: transposed and interleaved matrices, rows of rotary pairs, MXFP4 blocks.
use super::stored_values::read_values;
use super::{CheckpointError, DecoderConfig, LayerParameter, Parameter, Position, Values};
use std::path::Path;

/// Steps, in elements, from a row of a parameter to the next and from a column to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strides {
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Strides {
    /// Picks the elements of a `[rows, columns]` parameter from those that begin with its first.
    pub(super) fn pick<T: Copy + Default>(self, stored: &[T], rows: usize, columns: usize) -> Vec<T> {
        let at = |row: usize, column: usize| stored.get(row * self.row + column * self.column).copied();
        (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(r, c)| at(r, c).unwrap_or_default())
            .collect()
    }

    /// Returns the number of elements from the first of a parameter to its last.
    pub(super) fn span(self, rows: usize, columns: usize) -> usize {
        rows.saturating_sub(1) * self.row + columns.saturating_sub(1) * self.column + 1
    }

    /// [`pick`](Self::pick) for values of any type.
    pub(super) fn pick_values(self, values: Values, rows: usize, columns: usize) -> Values {
        match values {
            Values::F32(v) => Values::F32(self.pick(&v, rows, columns)),
            Values::Bf16(v) => Values::Bf16(self.pick(&v, rows, columns)),
            Values::F16(v) => Values::F16(self.pick(&v, rows, columns)),
        }
    }
}

/// Rows that are rotated in neighbouring pairs: `heads` times `head_dim` rows, of which `dims` from `first` on are pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PairedRows {
    pub(super) heads: usize,
    pub(super) head_dim: usize,
    pub(super) first: usize,
    pub(super) dims: usize,
}

impl PairedRows {
    /// Returns the rows of a parameter of a decoder whose file has pairs; none for other parameters.
    pub(super) fn of(c: &DecoderConfig, parameter: Parameter) -> Option<PairedRows> {
        use LayerParameter::{Key, KeyBias, KvDown, Query, QueryBias};
        let Parameter::Layer(i, parameter) = parameter else { return None };
        let layer = c.layers.get(i).filter(|_| c.rotary_pairs)?;
        let Position::Rotary(rope) = layer.position else { return None };
        if let Some(latent) = c.latent {
            let (dims, plain, rank) = (latent.rotary_dims, latent.plain_dims, latent.kv_rank);
            return match parameter {
                Query => Some(PairedRows { heads: c.num_heads, head_dim: plain + dims, first: plain, dims }),
                KvDown => Some(PairedRows { heads: 1, head_dim: rank + dims, first: rank, dims }),
                _ => None,
            };
        }
        let heads = match parameter {
            Query | QueryBias => c.num_heads,
            Key | KeyBias => layer.num_kv_heads,
            _ => return None,
        };
        let dims = c.ropes.get(rope).map_or(layer.head_dim, |rope| rope.dims);
        Some(PairedRows { heads, head_dim: layer.head_dim, first: 0, dims })
    }

    /// Moves row `first + 2 i + j` of each head to row `first + j * dims / 2 + i`.
    pub(super) fn halves<T: Copy>(self, rows: &[T], width: usize) -> Vec<T> {
        let mut out = Vec::with_capacity(rows.len());
        for head in 0..self.heads {
            for index in 0..self.head_dim {
                let source = match index.checked_sub(self.first).filter(|p| *p < self.dims) {
                    None => index,
                    Some(p) => self.first + 2 * (p % (self.dims / 2)) + p / (self.dims / 2),
                };
                let row = head * self.head_dim + source;
                out.extend_from_slice(rows.get(row * width..(row + 1) * width).unwrap_or_default());
            }
        }
        out
    }

    /// [`halves`](Self::halves) for values of any type.
    pub(super) fn halves_of_values(self, values: Values, width: usize) -> Values {
        match values {
            Values::F32(v) => Values::F32(self.halves(&v, width)),
            Values::Bf16(v) => Values::Bf16(self.halves(&v, width)),
            Values::F16(v) => Values::F16(self.halves(&v, width)),
        }
    }
}

/// Moves the rows of queries before those of gates, which alternate by head; other parameters and decoders stay.
pub(super) fn split_gates(c: &DecoderConfig, parameter: Parameter, values: Values, width: usize) -> Values {
    match values {
        Values::F32(v) => Values::F32(split_gate_rows(c, parameter, v, width)),
        Values::Bf16(v) => Values::Bf16(split_gate_rows(c, parameter, v, width)),
        Values::F16(v) => Values::F16(split_gate_rows(c, parameter, v, width)),
    }
}

/// [`split_gates`] for rows of one type.
pub(super) fn split_gate_rows<T: Copy>(c: &DecoderConfig, parameter: Parameter, rows: Vec<T>, width: usize) -> Vec<T> {
    use LayerParameter::{Query, QueryBias};
    let Parameter::Layer(i, Query | QueryBias) = parameter else { return rows };
    let Some(d) = c.layers.get(i).filter(|_| c.gated_attention).map(|l| l.head_dim) else { return rows };
    let runs = (0..2).flat_map(|half| (0..c.num_heads).map(move |head| (2 * head + half) * d * width));
    runs.flat_map(|start| rows.get(start..start + d * width).unwrap_or_default().iter().copied()).collect()
}

/// Weights of an MXFP4 block, and bytes of them.
pub(super) const MXFP4_BLOCK: usize = 32;
const MXFP4_BYTES: usize = MXFP4_BLOCK / 2;
/// Bytes of a block with its scale in GGUF.
pub(super) const MXFP4_GGUF_BYTES: usize = MXFP4_BYTES + 1;
/// Values of the codes 0 to 7; 8 to 15 are their negatives.
const MXFP4_VALUES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// Location of the rows of a matrix in MXFP4: blocks of 16 bytes, and a scale for each, in tensors of their own. Rows are whole blocks;
/// all counts are of blocks.
pub(super) struct Mxfp4Rows<'a> {
    pub(super) blocks: (&'a Path, u64),
    pub(super) scales: (&'a Path, u64),
    pub(super) first: usize,
    pub(super) row_step: usize,
    pub(super) rows: usize,
    pub(super) per_row: usize,
}

impl Mxfp4Rows<'_> {
    /// Reads the rows: a code times `2^(scale - 127)`, low nibble first. In bfloat16, which holds them exactly unless they are subnormal.
    pub(super) fn read(&self) -> Result<Vec<u16>, CheckpointError> {
        let mut out = Vec::with_capacity(self.rows * self.per_row * MXFP4_BLOCK);
        self.each_block(|scale, codes| {
            for pair in codes {
                out.extend([pair & 15, pair >> 4].map(|code| mxfp4_value(code, scale)));
            }
        })?;
        Ok(out)
    }

    /// Reads the rows as GGUF's blocks: the scale, then bytes whose low nibbles are the first half.
    pub(super) fn blocks(&self) -> Result<Vec<u8>, CheckpointError> {
        let mut out = Vec::with_capacity(self.rows * self.per_row * MXFP4_GGUF_BYTES);
        self.each_block(|scale, codes| {
            let code = |i: usize| codes.get(i / 2).map_or(0, |pair| pair >> (i % 2 * 4) & 15);
            out.push(scale);
            out.extend((0..MXFP4_BYTES).map(|i| code(i) | code(MXFP4_BYTES + i) << 4));
        })?;
        Ok(out)
    }

    /// Calls `each` with the scale and the codes of every block, row by row.
    fn each_block(&self, mut each: impl FnMut(u8, &[u8])) -> Result<(), CheckpointError> {
        let Mxfp4Rows { first, row_step, rows, per_row, .. } = *self;
        let span = rows.saturating_sub(1) * row_step + per_row;
        let byte = |[byte]: [u8; 1]| byte;
        let offset = self.blocks.1 + (first * MXFP4_BYTES) as u64;
        let codes = read_values(self.blocks.0, offset, span * MXFP4_BYTES, byte)?;
        let scales = read_values(self.scales.0, self.scales.1 + first as u64, span, byte)?;
        for row in 0..rows {
            for block in row * row_step..row * row_step + per_row {
                let codes = codes.get(block * MXFP4_BYTES..(block + 1) * MXFP4_BYTES).unwrap_or_default();
                each(scales.get(block).copied().unwrap_or(0), codes);
            }
        }
        Ok(())
    }
}

/// Returns a code times `2^(scale - 127)` in bfloat16.
fn mxfp4_value(code: u8, scale: u8) -> u16 {
    let size = MXFP4_VALUES.get(usize::from(code & 7)).copied().unwrap_or(0.0);
    let value = if code & 8 == 0 { size } else { -size };
    half::bf16::from_f64(f64::from(value) * libm::exp2(f64::from(scale) - 127.0)).to_bits()
}

/// Returns the weights of GGUF's blocks of MXFP4, in bfloat16: the scale, then bytes whose low nibbles are the first half of a block.
pub(super) fn mxfp4_of_gguf(blocks: &[[u8; MXFP4_GGUF_BYTES]]) -> Vec<u16> {
    let mut out = Vec::with_capacity(blocks.len() * MXFP4_BLOCK);
    for [scale, codes @ ..] in blocks {
        out.extend(codes.iter().map(|pair| mxfp4_value(pair & 15, *scale)));
        out.extend(codes.iter().map(|pair| mxfp4_value(pair >> 4, *scale)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_halves_within_their_dimensions() {
        // Two heads of six rows, of which rows 1 to 4 are pairs.
        let rows = PairedRows { heads: 2, head_dim: 6, first: 1, dims: 4 };
        let moved = rows.halves(&(0..12).collect::<Vec<_>>(), 1);
        assert_eq!(moved, [0, 1, 3, 2, 4, 5, 6, 7, 9, 8, 10, 11]);
        let wide = PairedRows { heads: 1, head_dim: 4, first: 0, dims: 4 };
        assert_eq!(wide.halves(&[0, 0, 1, 1, 2, 2, 3, 3], 2), [0, 0, 2, 2, 1, 1, 3, 3]);
    }

    #[test]
    fn blocks_of_gguf_have_their_halves_in_nibbles() {
        let mut block = [0u8; MXFP4_GGUF_BYTES];
        block[..3].copy_from_slice(&[128, 0x71, 0x2c]);
        let values: Vec<f32> = mxfp4_of_gguf(&[block]).iter().map(|b| half::bf16::from_bits(*b).to_f32()).collect();
        assert_eq!((values[0], values[1], values[16], values[17]), (1.0, -4.0, 12.0, 2.0));
        assert!(values.len() == 32 && values.iter().filter(|v| **v != 0.0).count() == 4);
    }

    #[test]
    fn strides_transpose_and_interleave() {
        // `[2 inputs, 3 outputs]` as `[3, 2]`; then every second output.
        let stored = [0, 1, 2, 10, 11, 12];
        assert_eq!(Strides { row: 1, column: 3 }.pick(&stored, 3, 2), [0, 10, 1, 11, 2, 12]);
        assert_eq!(Strides { row: 2, column: 3 }.pick(&stored, 2, 2), [0, 10, 2, 12]);
        assert_eq!(Strides { row: 2, column: 3 }.span(2, 2), 6);
    }
}
