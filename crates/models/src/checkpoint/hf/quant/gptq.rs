//! GPTQ (Frantar et al. 2022), as AutoGPTQ and its successors store it.
//!
//! Words hold `32 / bits` inputs of an output, the first in the lowest bits; zero points are packed in the same way along the
//! outputs. `g_idx` has the group of each input: with act order, inputs of a group are not neighbours.
use super::super::files::HfFiles;
use super::packed::group_indices;
use super::part::{FLOATS, Part};
use super::settings::StoredZero;
use crate::checkpoint::CheckpointError;
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

    /// Computes `(q - z) * s`. A stored zero point less one is increased without wrapping, as AutoGPTQ does.
    pub(super) fn rows(&self, rows: Range<usize>) -> Result<Vec<f32>, CheckpointError> {
        let [outputs, inputs] = self.size;
        let (bits, mask) = (self.bits, (1u32 << self.bits) - 1);
        let per_word = (32 / bits) as usize;
        let (words, scales) = (self.words.words()?, self.scales.numbers()?);
        let more = i32::from(self.stored_zero == StoredZero::LessOne);
        let across = outputs.div_ceil(per_word);
        let zeros: Vec<i32> = self
            .zeros
            .words()?
            .chunks(across.max(1))
            .flat_map(|words| {
                (0..outputs)
                    .map(move |o| ((words[o / per_word] >> (bits * (o % per_word) as u32)) & mask) as i32 + more)
            })
            .collect();
        let groups = match &self.indices {
            Some(part) => group_indices(part, inputs.div_ceil(self.group))?,
            None => (0..inputs).map(|input| input / self.group).collect(),
        };
        let mut values = vec![0f32; rows.len() * inputs];
        values.par_chunks_mut(TILE * inputs.max(1)).enumerate().for_each(|(tile, values)| {
            let first = rows.start + tile * TILE;
            for (word_row, groups) in groups.chunks(per_word).enumerate() {
                for (row, values) in values.chunks_mut(inputs).enumerate() {
                    let output = first + row;
                    let mut word = words[word_row * outputs + output];
                    let Some(values) = values.get_mut(word_row * per_word..) else { continue };
                    for (value, group) in values.iter_mut().zip(groups) {
                        let at = group * outputs + output;
                        *value = ((word & mask) as i32 - zeros[at]) as f32 * scales[at];
                        word >>= bits;
                    }
                }
            }
        });
        Ok(values)
    }
}
