//! Integers with scales and zero points, whatever their layout: their values, and the blocks in which engines keep them.
use super::part::Part;
use crate::checkpoint::{BlockType, Half};
use rayon::prelude::*;
use safetensors::Dtype;
use std::ops::Range;

/// Weights of a block.
const BLOCK: usize = 32;

/// Rows of integers `q` whose weights are `(q - z) * s`, taken out of words.
pub(super) struct Integers {
    /// Columns of a row.
    pub(super) width: usize,
    /// Groups of a row.
    pub(super) groups: usize,
    /// `[rows, width]`, none negative.
    pub(super) codes: Vec<u8>,
    /// `[rows, groups]`
    pub(super) zeros: Vec<i32>,
    /// `[rows, groups]`
    pub(super) scales: Vec<f32>,
    pub(super) of: GroupOf,
}

/// Values `[rows, groups]` of parts that are stored with the outputs side by side.
pub(super) fn by_row<T>(rows: Range<usize>, groups: usize, value: impl Fn(usize, usize) -> T) -> Vec<T> {
    rows.flat_map(|row| (0..groups).map(move |group| (row, group))).map(|(row, group)| value(row, group)).collect()
}

/// The group of a column.
pub(super) enum GroupOf {
    /// So many neighbours are a group.
    Neighbours(usize),
    /// One for each column.
    Columns(Vec<usize>),
}

impl GroupOf {
    /// Groups as they are stored for each column; neighbours in their order are just that.
    pub(super) fn columns(stored: Vec<usize>, size: usize) -> Self {
        let in_order = stored.iter().enumerate().all(|(column, group)| *group == column / size.max(1));
        if in_order { GroupOf::Neighbours(size) } else { GroupOf::Columns(stored) }
    }

    /// True if a group is of neighbours.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self, GroupOf::Neighbours(_))
    }

    fn column(&self, column: usize) -> usize {
        match self {
            GroupOf::Neighbours(size) => column / size,
            GroupOf::Columns(groups) => groups[column],
        }
    }
}

impl Integers {
    /// Computes `(q - z) * s`.
    pub(super) fn values(&self) -> Vec<f32> {
        let mut values = vec![0f32; self.codes.len()];
        let rows = values.par_chunks_mut(self.width.max(1)).zip(self.codes.par_chunks(self.width.max(1)));
        rows.enumerate().for_each(|(row, (values, codes))| {
            let first = row * self.groups;
            for (column, (value, code)) in values.iter_mut().zip(codes).enumerate() {
                let at = first + self.of.column(column);
                *value = (i32::from(*code) - self.zeros[at]) as f32 * self.scales[at];
            }
        });
        values
    }

    /// Returns the blocks of [`block_type`]'s type, in which groups are neighbours.
    pub(super) fn blocks(&self, kind: BlockType) -> Vec<u8> {
        let (half, less) = match kind {
            BlockType::Group8(half, less_one) => (half, i32::from(less_one)),
            BlockType::Group4(half) => (half, 0),
            other => unreachable!("integers in blocks of {other:?}"),
        };
        let bytes = kind.size().1;
        let mut blocks = vec![0; self.codes.len() / BLOCK * bytes];
        let per_row = self.width / BLOCK;
        let codes = self.codes.par_chunks_exact(BLOCK);
        blocks.par_chunks_exact_mut(bytes).zip(codes).enumerate().for_each(|(index, (block, codes))| {
            let (row, column) = (index / per_row, index % per_row * BLOCK);
            let at = row * self.groups + self.of.column(column);
            let scale = match half {
                Half::F16 => half::f16::from_f32(self.scales[at]).to_le_bytes(),
                Half::Bf16 => half::bf16::from_f32(self.scales[at]).to_le_bytes(),
            };
            block[..2].copy_from_slice(&scale);
            block[2] = (self.zeros[at] - less) as u8;
            match kind {
                BlockType::Group4(_) => {
                    for (i, byte) in block[3..].iter_mut().enumerate() {
                        *byte = codes[i] | codes[BLOCK / 2 + i] << 4;
                    }
                }
                _ => block[3..].copy_from_slice(codes),
            }
        });
        blocks
    }
}

/// Returns the type of blocks that keep rows of `width` integers of so many bits in groups of `group` neighbours; none where a block would have
/// two scales, or the scale is no 16-bit float: with more bits a zero point times it would be rounded.
pub(super) fn block_type(
    scales: &Part<'_>,
    bits: u32,
    width: usize,
    group: usize,
    zero_is_less_one: bool,
) -> Option<BlockType> {
    let half = match scales.dtype() {
        Dtype::F16 => Half::F16,
        Dtype::BF16 => Half::Bf16,
        _ => return None,
    };
    let fits = width.is_multiple_of(BLOCK) && (group.is_multiple_of(BLOCK) || group >= width);
    fits.then_some(match bits {
        0..=4 => BlockType::Group4(half),
        _ => BlockType::Group8(half, zero_is_less_one),
    })
}
