//! AWQ (Lin et al. 2023) in AutoAWQ's layout `gemm`.
//!
//! A word holds eight outputs of an input, zero points likewise; their order in the word is the one that its kernel unpacks fastest.
use super::super::files::HfFiles;
use super::gptq::TILE;
use super::integers::{GroupOf, Integers, Kept, ZeroPoints, by_row};
use super::part::{FLOATS, Part};
use crate::checkpoint::{BlockType, CheckpointError};
use rayon::prelude::*;
use safetensors::Dtype;
use std::ops::Range;

/// Outputs of a word.
const PER_WORD: usize = 8;
/// Lowest bit of each output of a word.
const SHIFTS: [u32; PER_WORD] = [0, 16, 4, 20, 8, 24, 12, 28];

#[derive(Debug)]
pub(in crate::checkpoint) struct AwqMatrix<'a> {
    pub(super) words: Part<'a>,
    pub(super) zeros: Part<'a>,
    pub(super) scales: Part<'a>,
    group: usize,
    size: [usize; 2],
}

impl<'a> AwqMatrix<'a> {
    /// Finds the matrix `{module}.qweight`.
    pub(super) fn find(
        files: &'a HfFiles,
        module: &str,
        size: [usize; 2],
        group: Option<usize>,
    ) -> Result<Option<AwqMatrix<'a>>, CheckpointError> {
        let Some(words) = Part::find(files, format!("{module}.qweight")) else { return Ok(None) };
        let [outputs, inputs] = size;
        let group = group.unwrap_or(inputs).max(1);
        let (groups, across) = (inputs.div_ceil(group), outputs.div_ceil(PER_WORD));
        let words = words.shaped(&[inputs, across])?.typed(&[Dtype::I32])?;
        let require = |name: &str, role: &str| Part::require(files, format!("{module}.{name}"), role, &words);
        let zeros = require("qzeros", "zero points")?.shaped(&[groups, across])?.typed(&[Dtype::I32])?;
        let scales = require("scales", "scales")?.shaped(&[groups, outputs])?.typed(&FLOATS)?;
        Ok(Some(AwqMatrix { words, zeros, scales, group, size }))
    }

    /// Type of the blocks that keep it.
    pub(super) fn block_type(&self) -> Option<BlockType> {
        let kept = Kept {
            scales: &self.scales,
            bits: 4,
            inputs: self.size[1],
            group: self.group,
            groups: self.size[1].div_ceil(self.group),
            in_order: true,
            zeros: ZeroPoints::OfCodes,
        };
        kept.block_type()
    }

    pub(super) fn groups_of_inputs(&self) -> GroupOf {
        GroupOf::Neighbours(self.group)
    }

    /// Takes rows out of their words.
    pub(super) fn integers(&self, rows: Range<usize>) -> Result<Integers, CheckpointError> {
        let [outputs, inputs] = self.size;
        let (across, groups) = (outputs.div_ceil(PER_WORD), inputs.div_ceil(self.group));
        let (words, zeros, scales) = (self.words.words()?, self.zeros.words()?, self.scales.numbers()?);
        let number = |word: u32, output: usize| (word >> SHIFTS[output % PER_WORD]) & 15;
        let mut codes = vec![0; rows.len() * inputs];
        codes.par_chunks_mut(TILE * inputs.max(1)).enumerate().for_each(|(tile, codes)| {
            let first = rows.start + tile * TILE;
            for (input, words) in words.chunks_exact(across.max(1)).enumerate() {
                for (row, codes) in codes.chunks_mut(inputs).enumerate() {
                    codes[input] = number(words[(first + row) / PER_WORD], first + row) as u8;
                }
            }
        });
        let zero = |row: usize, group: usize| number(zeros[group * across + row / PER_WORD], row) as i32;
        Ok(Integers {
            width: inputs,
            groups,
            codes,
            zeros: by_row(rows.clone(), groups, zero),
            scales: by_row(rows, groups, |row, group| scales[group * outputs + row]),
            of: self.groups_of_inputs(),
        })
    }
}
