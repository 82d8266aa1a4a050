//! GPTQ (Frantar et al. 2022), as AutoGPTQ and its successors store it.
//!
//! Words hold `32 / bits` inputs of an output, the first in the lowest bits; zero points are packed in the same way along the
//! outputs. `g_idx` has the group of each input: with act order, inputs of a group are not neighbours.
use super::super::files::HfFiles;
use super::integers::{GroupOf, Integers, Kept, ZeroPoints, by_row};
use super::packed::group_indices;
use super::part::{FLOATS, Part};
use super::settings::StoredZero;
use crate::checkpoint::{BlockType, CheckpointError};
use rayon::prelude::*;
use safetensors::Dtype;
use std::ops::Range;

/// Rows computed together: neighbouring words are of neighbouring outputs.
pub(super) const TILE: usize = 64;

#[derive(Debug)]
pub(in crate::checkpoint) struct GptqMatrix<'a> {
    pub(super) words: Part<'a>,
    pub(super) zeros: Part<'a>,
    pub(super) scales: Part<'a>,
    pub(super) indices: Option<Part<'a>>,
    bits: u32,
    group: usize,
    stored_zero: StoredZero,
    size: [usize; 2],
}

impl<'a> GptqMatrix<'a> {
    /// Finds the matrix `{module}.qweight`.
    pub(super) fn find(
        files: &'a HfFiles,
        module: &str,
        size: [usize; 2],
        bits: u32,
        group: Option<usize>,
        act_order: bool,
        stored_zero: StoredZero,
    ) -> Result<Option<GptqMatrix<'a>>, CheckpointError> {
        let Some(words) = Part::find(files, format!("{module}.qweight")) else { return Ok(None) };
        let [outputs, inputs] = size;
        let per_word = (32 / bits) as usize;
        let group = group.unwrap_or(inputs).max(1);
        let groups = inputs.div_ceil(group);
        let words = words.shaped(&[inputs.div_ceil(per_word), outputs])?.typed(&[Dtype::I32])?;
        let require = |name: &str, role: &str| Part::require(files, format!("{module}.{name}"), role, &words);
        let zeros = require("qzeros", "zero points")?;
        let zeros = zeros.shaped(&[groups, outputs.div_ceil(per_word)])?.typed(&[Dtype::I32])?;
        let scales = require("scales", "scales")?.shaped(&[groups, outputs])?.typed(&FLOATS)?;
        let indices = match Part::find(files, format!("{module}.g_idx")) {
            None if act_order => Some(require("g_idx", "groups of inputs")?),
            found => found,
        };
        let indices = indices.map(|part| part.shaped(&[inputs])?.typed(&[Dtype::I32, Dtype::I64])).transpose()?;
        Ok(Some(GptqMatrix { words, zeros, scales, indices, bits, group, stored_zero, size }))
    }

    /// Type of the blocks that keep it.
    pub(super) fn block_type(&self) -> Option<BlockType> {
        let kept = Kept {
            scales: &self.scales,
            bits: self.bits,
            inputs: self.size[1],
            group: self.group,
            groups: self.size[1].div_ceil(self.group),
            in_order: self.groups_of_inputs().ok()?.is_in_order(),
            zeros: match self.stored_zero {
                StoredZero::LessOne => ZeroPoints::OneMore,
                StoredZero::Plain => ZeroPoints::OfCodes,
            },
        };
        kept.block_type()
    }

    pub(super) fn groups_of_inputs(&self) -> Result<GroupOf, CheckpointError> {
        Ok(match &self.indices {
            Some(part) => GroupOf::columns(group_indices(part, self.size[1].div_ceil(self.group))?, self.group),
            None => GroupOf::Neighbours(self.group),
        })
    }

    /// Takes rows out of their words. A stored zero point less one is increased without wrapping, as AutoGPTQ does.
    pub(super) fn integers(&self, rows: Range<usize>) -> Result<Integers, CheckpointError> {
        let [outputs, inputs] = self.size;
        let (bits, mask) = (self.bits, (1u32 << self.bits) - 1);
        let per_word = (32 / bits) as usize;
        let (words, scales) = (self.words.words()?, self.scales.numbers()?);
        let more = i32::from(self.stored_zero == StoredZero::LessOne);
        let (across, groups) = (outputs.div_ceil(per_word), inputs.div_ceil(self.group));
        let zeros = self.zeros.words()?;
        let of = self.groups_of_inputs()?;
        let mut codes = vec![0; rows.len() * inputs];
        codes.par_chunks_mut(TILE * inputs.max(1)).enumerate().for_each(|(tile, codes)| {
            let first = rows.start + tile * TILE;
            for (word_row, words) in words.chunks_exact(outputs.max(1)).enumerate() {
                for (row, codes) in codes.chunks_mut(inputs).enumerate() {
                    let mut word = words[first + row];
                    for code in codes.iter_mut().skip(word_row * per_word).take(per_word) {
                        *code = (word & mask) as u8;
                        word >>= bits;
                    }
                }
            }
        });
        let zero = |row: usize, group: usize| {
            let word = zeros[group * across + row / per_word];
            ((word >> (bits * (row % per_word) as u32)) & mask) as i32 + more
        };
        Ok(Integers {
            width: inputs,
            groups,
            codes,
            zeros: by_row(rows.clone(), groups, zero),
            scales: by_row(rows, groups, |row, group| scales[group * outputs + row]),
            of,
        })
    }
}
