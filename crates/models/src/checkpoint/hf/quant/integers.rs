//! Integers with scales and zero points, whatever their layout: their values, and the blocks in which engines keep them.
use super::part::Part;
use crate::checkpoint::{BlockType, GroupedRow, Half};
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

    /// The group of a column.
    pub(super) fn column(&self, column: usize) -> usize {
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

    /// Returns the blocks of the type that [`Kept::block_type`] says.
    pub(super) fn blocks(&self, kind: BlockType) -> Vec<u8> {
        match kind {
            BlockType::Group4(half) => self.neighbours(kind, half, 0),
            BlockType::Group8(half, less_one) => self.neighbours(kind, half, i32::from(less_one)),
            BlockType::GroupedRow(row) => self.grouped_rows(row),
            other => unreachable!("integers in blocks of {other:?}"),
        }
    }

    /// Blocks of 32 neighbours, each with a scale and a zero point, of which `less` is left out.
    fn neighbours(&self, kind: BlockType, half: Half, less: i32) -> Vec<u8> {
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
            write_codes(codes, &mut block[3..]);
        });
        blocks
    }

    /// Whole rows, each with the scales and zero points of its groups.
    fn grouped_rows(&self, row: GroupedRow) -> Vec<u8> {
        let mut rows = vec![0; self.codes.len() / self.width.max(1) * row.bytes()];
        let codes = self.codes.par_chunks_exact(self.width.max(1));
        rows.par_chunks_exact_mut(row.bytes()).zip(codes).enumerate().for_each(|(index, (bytes, codes))| {
            let (stored, of_groups) = bytes.split_at_mut(row.code_bytes());
            write_codes(codes, stored);
            let groups = index * self.groups..(index + 1) * self.groups;
            let numbers =
                self.scales[groups.clone()].iter().copied().chain(self.zeros[groups].iter().map(|z| *z as f32));
            for (to, number) in of_groups.as_chunks_mut().0.iter_mut().zip(numbers) {
                *to = number.to_le_bytes();
            }
        });
        rows
    }
}

/// Writes codes as they are or, where there is room for half of them, in nibbles: the low ones are the first half of 32.
fn write_codes(codes: &[u8], to: &mut [u8]) {
    if to.len() == codes.len() {
        return to.copy_from_slice(codes);
    }
    for (codes, to) in codes.chunks_exact(BLOCK).zip(to.chunks_exact_mut(BLOCK / 2)) {
        let (first, second) = codes.split_at(BLOCK / 2);
        for (byte, (low, high)) in to.iter_mut().zip(first.iter().zip(second)) {
            *byte = low | high << 4;
        }
    }
}

/// Integers that engines may keep, as a format has them.
pub(super) struct Kept<'a> {
    pub(super) scales: &'a Part<'a>,
    pub(super) bits: u32,
    /// Inputs of a row.
    pub(super) inputs: usize,
    /// Inputs of a group.
    pub(super) group: usize,
    /// Groups of a row.
    pub(super) groups: usize,
    /// Groups are neighbours in their order.
    pub(super) in_order: bool,
    pub(super) zeros: ZeroPoints,
}

/// Range of zero points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZeroPoints {
    /// Those of the codes.
    OfCodes,
    /// One more than the codes.
    OneMore,
    /// Any numbers.
    Any,
}

impl Kept<'_> {
    /// Returns the type of blocks that keep rows of these integers: of 32 inputs, or of a row where a block would have two scales, a zero point
    /// beyond a byte, or a scale that is no 16-bit float (with more bits a zero point times it would be rounded); none where rows are
    /// not whole blocks of 32, or groups so small that f32 takes no more memory.
    pub(super) fn block_type(&self) -> Option<BlockType> {
        if !self.inputs.is_multiple_of(BLOCK) {
            return None;
        }
        let half = match self.scales.dtype() {
            Dtype::F16 => Some(Half::F16),
            Dtype::BF16 => Some(Half::Bf16),
            _ => None,
        };
        let of_blocks = self.in_order && (self.group.is_multiple_of(BLOCK) || self.group >= self.inputs);
        let wide = self.bits > 4;
        match (half.filter(|_| of_blocks), self.zeros) {
            (Some(half), ZeroPoints::OfCodes | ZeroPoints::OneMore) if !wide => Some(BlockType::Group4(half)),
            (Some(half), ZeroPoints::OfCodes) => Some(BlockType::Group8(half, false)),
            (Some(half), ZeroPoints::OneMore) => Some(BlockType::Group8(half, true)),
            _ => {
                let row = GroupedRow { inputs: self.inputs, groups: self.groups, wide };
                (row.bytes() < size_of::<f32>() * self.inputs).then_some(BlockType::GroupedRow(row))
            }
        }
    }
}
