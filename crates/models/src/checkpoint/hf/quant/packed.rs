//! `pack-quantized` of compressed-tensors: integers in words of 32 bits along the inputs, the first in the lowest bits, each with
//! half of its range added so that it is not negative. A word holds `32 / bits` of them, rounded down.
use super::super::files::HfFiles;
use super::integers::{GroupOf, Integers, Kept, ZeroPoints, by_row};
use super::part::{FLOATS, Part};
use super::scaled::{Grid, shaped};
use super::settings::Scales;
use crate::checkpoint::{BlockType, CheckpointError};
use rayon::prelude::*;
use safetensors::Dtype;
use std::ops::Range;

#[derive(Debug)]
pub(in crate::checkpoint) struct PackedMatrix<'a> {
    pub(super) words: Part<'a>,
    pub(super) shape: Part<'a>,
    pub(super) scales: Part<'a>,
    pub(super) zeros: Option<Part<'a>>,
    pub(super) groups: Option<Part<'a>>,
    grid: Grid,
    across: usize,
    bits: u32,
    size: [usize; 2],
}

impl<'a> PackedMatrix<'a> {
    /// Finds the matrix `{module}.weight_packed`.
    pub(super) fn find(
        files: &'a HfFiles,
        module: &str,
        size: [usize; 2],
        bits: u32,
        scales: Scales,
        asymmetric: bool,
        act_order: bool,
    ) -> Result<Option<PackedMatrix<'a>>, CheckpointError> {
        let Some(words) = Part::find(files, format!("{module}.weight_packed")) else { return Ok(None) };
        let [outputs, inputs] = size;
        let per_word = (32 / bits) as usize;
        let words = words.shaped(&[outputs, inputs.div_ceil(per_word)])?.typed(&[Dtype::I32])?;
        let require = |name: &str, role: &str| Part::require(files, format!("{module}.{name}"), role, &words);
        let shape = require("weight_shape", "shape")?.shaped(&[2])?.typed(&[Dtype::I64, Dtype::I32])?;
        let (grid, accepted) = Grid::new(scales, size);
        let stored = shaped(require("weight_scale", "scales")?, &accepted)?.typed(&FLOATS)?;
        let across = accepted.first().and_then(|shape| shape.get(1)).copied().unwrap_or(1);
        let zeros = match asymmetric {
            false => None,
            true if scales == Scales::Tensor => {
                Some(shaped(require("weight_zero_point", "zero points")?, &accepted)?.typed(&[Dtype::I8])?)
            }
            true => {
                let zeros = require("weight_zero_point", "zero points")?;
                Some(zeros.shaped(&[outputs.div_ceil(per_word), across])?.typed(&[Dtype::I32])?)
            }
        };
        let groups = match act_order {
            false => None,
            true => Some(require("weight_g_idx", "groups of columns")?.shaped(&[inputs])?.typed(&[Dtype::I32])?),
        };
        Ok(Some(PackedMatrix { words, shape, scales: stored, zeros, groups, grid, across, bits, size }))
    }

    /// Type of the blocks that keep it.
    pub(super) fn block_type(&self) -> Option<BlockType> {
        let kept = Kept {
            scales: &self.scales,
            bits: self.bits,
            inputs: self.size[1],
            group: self.grid.columns(),
            groups: self.across,
            in_order: self.groups_of_inputs().ok()?.is_in_order(),
            zeros: match &self.zeros {
                // One for the matrix need not be within the range of its integers.
                Some(part) if part.dtype() == Dtype::I8 => ZeroPoints::Any,
                _ => ZeroPoints::OfCodes,
            },
        };
        kept.block_type()
    }

    pub(super) fn groups_of_inputs(&self) -> Result<GroupOf, CheckpointError> {
        let size = self.grid.columns();
        Ok(match &self.groups {
            Some(part) => GroupOf::columns(group_indices(part, self.across)?, size),
            None => GroupOf::Neighbours(size),
        })
    }

    /// Takes rows out of their words.
    pub(super) fn integers(&self, rows: Range<usize>) -> Result<Integers, CheckpointError> {
        let [_, inputs] = self.size;
        let stated = self.shape.integers()?;
        if stated.iter().map(|n| usize::try_from(*n).ok()).ne(self.size.iter().map(|n| Some(*n))) {
            return Err(self.shape.error(&format!("it says {stated:?}, but config.json implies {:?}", self.size)));
        }
        let (bits, mask, half) = (self.bits, (1u32 << self.bits) - 1, 1i32 << (self.bits - 1));
        let per_word = (32 / bits) as usize;
        let words = self.words.words()?;
        let scales = self.scales.numbers()?;
        let packed_zeros = match &self.zeros {
            Some(part) if part.dtype() == Dtype::I32 => Some(part.words()?),
            _ => None,
        };
        let single_zero = match &self.zeros {
            Some(part) if part.dtype() == Dtype::I8 => {
                part.integers8(0, part.count())?.first().map_or(0, |zero| *zero as i32)
            }
            _ => 0,
        };
        // Codes and packed zero points have half of the range added.
        let zero = |row: usize, group: usize| match &packed_zeros {
            None => half + single_zero,
            Some(words) => {
                let word = words.get(row / per_word * self.across + group).copied().unwrap_or_default();
                ((word >> (bits * (row % per_word) as u32)) & mask) as i32
            }
        };
        let of = self.groups_of_inputs()?;
        let across = inputs.div_ceil(per_word);
        let mut codes = vec![0; rows.len() * inputs];
        codes.par_chunks_mut(inputs.max(1)).zip(rows.clone()).for_each(|(codes, row)| {
            let words = words.get(row * across..(row + 1) * across).unwrap_or_default();
            for (codes, word) in codes.chunks_mut(per_word).zip(words) {
                codes.iter_mut().enumerate().for_each(|(i, code)| *code = (word >> (bits * i as u32) & mask) as u8);
            }
        });
        Ok(Integers {
            width: inputs,
            groups: self.across,
            codes,
            zeros: by_row(rows.clone(), self.across, zero),
            scales: rows.flat_map(|row| self.grid.of_row(&scales, row).0.iter().copied()).collect(),
            of,
        })
    }
}

/// Reads the group of each column, and checks that it exists.
pub(super) fn group_indices(part: &Part<'_>, groups: usize) -> Result<Vec<usize>, CheckpointError> {
    let indices = part.integers()?;
    let checked: Vec<usize> = indices.iter().filter_map(|n| usize::try_from(*n).ok().filter(|n| *n < groups)).collect();
    if checked.len() == indices.len() {
        return Ok(checked);
    }
    let wrong = indices.iter().position(|n| usize::try_from(*n).is_ok_and(|n| n >= groups) || *n < 0).unwrap_or(0);
    let found = indices.get(wrong).copied().unwrap_or_default();
    Err(part.error(&format!(
        "column {wrong} is in group {found}, but there are {groups} groups; fetch the checkpoint again"
    )))
}
