//! Published quantisations of Hugging Face folders: their matrices in the blocks that engines keep, or dequantised to f32, one at a time.
//!
//! Sources: the unpacking code of transformers, compressed-tensors, AutoAWQ, AutoGPTQ and bitsandbytes. All compute
//! `(q - z) * s`, here in f32 without any rounding to the checkpoint's type. Activations are never quantised.

mod settings;
mod part;
mod integers;
mod scaled;
mod packed;
mod gptq;
mod awq;
mod nf4_stored;

use self::awq::AwqMatrix;
use self::gptq::GptqMatrix;
use self::nf4_stored::Nf4Matrix;
use self::packed::PackedMatrix;
use self::part::Part;
use self::scaled::ScaledMatrix;
use self::settings::Method;
use super::super::{BlockType, CheckpointError};
use super::files::HfFiles;
use std::ops::Range;

pub(in crate::checkpoint) use self::settings::Quantisation;

/// A quantised matrix, whose parts are checked to exist in their shapes and types.
#[derive(Debug)]
pub(in crate::checkpoint) enum Matrix<'a> {
    Scaled(ScaledMatrix<'a>),
    Packed(PackedMatrix<'a>),
    Gptq(GptqMatrix<'a>),
    Awq(AwqMatrix<'a>),
    Nf4(Nf4Matrix<'a>),
}

/// Endings of tensors that only scale activations, keys and values.
const OF_ACTIVATIONS: [&str; 8] = [
    ".input_scale",
    ".input_zero_point",
    ".output_scale",
    ".activation_scale",
    ".q_scale",
    ".k_scale",
    ".v_scale",
    ".kv_scale",
];

impl Quantisation {
    /// Finds the quantised matrix that a plain checkpoint has as `tensor`; none if this one has it plain, too.
    ///
    /// # Errors
    /// A part is missing, or has another shape or type than the format says.
    pub(in crate::checkpoint) fn find<'a>(
        &self,
        files: &'a HfFiles,
        tensor: &str,
        shape: &[usize],
    ) -> Result<Option<Matrix<'a>>, CheckpointError> {
        let (Some(module), &[outputs, inputs]) = (tensor.strip_suffix(".weight"), shape) else { return Ok(None) };
        let size = [outputs, inputs];
        Ok(match self.method {
            Method::Scaled(scaled) => ScaledMatrix::find(files, module, size, scaled)?.map(Matrix::Scaled),
            Method::Packed { bits, scales, asymmetric, act_order } => {
                PackedMatrix::find(files, module, size, bits, scales, asymmetric, act_order)?.map(Matrix::Packed)
            }
            Method::Awq { group } => AwqMatrix::find(files, module, size, group)?.map(Matrix::Awq),
            Method::Gptq { bits, group, act_order, stored_zero } => {
                GptqMatrix::find(files, module, size, bits, group, act_order, stored_zero)?.map(Matrix::Gptq)
            }
            Method::Nf4 { double } => Nf4Matrix::find(files, module, size, double)?.map(Matrix::Nf4),
        })
    }

    /// Returns the name of a missing matrix, as this format would have it.
    pub(in crate::checkpoint) fn missing(&self, tensor: &str) -> String {
        let packed = match self.method {
            Method::Awq { .. } | Method::Gptq { .. } => "qweight",
            Method::Packed { .. } => "weight_packed",
            Method::Scaled(_) | Method::Nf4 { .. } => return tensor.to_owned(),
        };
        match tensor.strip_suffix(".weight") {
            Some(module) => format!("{tensor} (or {module}.{packed})"),
            None => tensor.to_owned(),
        }
    }

    /// True for a tensor that an engine without quantised activations does not need.
    pub(in crate::checkpoint) fn is_of_activations(&self, tensor: &str) -> bool {
        self.of_activations && OF_ACTIVATIONS.iter().any(|ending| tensor.ends_with(ending))
    }

    /// True for a bias of zeros beside a quantised matrix: AutoGPTQ wrote one for matrices that have none.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(in crate::checkpoint) fn is_empty_bias(&self, files: &HfFiles, tensor: &str) -> Result<bool, CheckpointError> {
        let Some(module) = tensor.strip_suffix(".bias") else { return Ok(false) };
        let quantised = matches!(self.method, Method::Gptq { .. } | Method::Awq { .. })
            && files.stored(&format!("{module}.qweight")).is_some();
        let Some(bias) = Part::find(files, tensor.to_owned()).filter(|_| quantised) else { return Ok(false) };
        Ok(bias.typed(&part::FLOATS)?.numbers()?.iter().all(|value| *value == 0.0))
    }
}

impl Matrix<'_> {
    /// Returns the names of the stored tensors.
    pub(in crate::checkpoint) fn names(&self) -> Vec<String> {
        let parts: Vec<Option<&Part<'_>>> = match self {
            Matrix::Scaled(m) => vec![Some(&m.weight), Some(&m.scales), m.zeros.as_ref()],
            Matrix::Packed(m) => {
                vec![Some(&m.words), Some(&m.shape), Some(&m.scales), m.zeros.as_ref(), m.groups.as_ref()]
            }
            Matrix::Gptq(m) => vec![Some(&m.words), Some(&m.zeros), Some(&m.scales), m.indices.as_ref()],
            Matrix::Awq(m) => vec![Some(&m.words), Some(&m.zeros), Some(&m.scales)],
            Matrix::Nf4(m) => {
                let [first, second] = m.nested.as_ref().map_or([None, None], |[a, b]| [Some(a), Some(b)]);
                vec![Some(&m.codes), Some(&m.state), Some(&m.scales), Some(&m.levels), first, second]
            }
        };
        parts.into_iter().flatten().map(|part| part.name.clone()).collect()
    }

    /// Returns the scales of rows, one for each `group` columns; none if numbers are not E4M3 or scales change within a group.
    ///
    /// # Errors
    /// A scale that is not finite, and those of reading the file.
    pub(in crate::checkpoint) fn e4m3_scales(
        &self,
        rows: Range<usize>,
        group: usize,
    ) -> Result<Option<Vec<f32>>, CheckpointError> {
        match self {
            Matrix::Scaled(matrix) => matrix.e4m3_scales(rows, group),
            Matrix::Packed(_) | Matrix::Gptq(_) | Matrix::Awq(_) | Matrix::Nf4(_) => Ok(None),
        }
    }

    /// Type of the blocks in which engines keep it; none where they keep its values.
    pub(in crate::checkpoint) fn block_type(&self) -> Option<BlockType> {
        match self {
            Matrix::Scaled(matrix) => matrix.block_type(),
            Matrix::Packed(matrix) => matrix.block_type(),
            Matrix::Gptq(matrix) => matrix.block_type(),
            Matrix::Awq(matrix) => matrix.block_type(),
            Matrix::Nf4(_) => None,
        }
    }

    /// Returns the blocks of rows, whose values are those of [`Matrix::rows`]; none without a [`Matrix::block_type`].
    ///
    /// # Errors
    /// As [`Matrix::rows`].
    pub(in crate::checkpoint) fn blocks(&self, rows: Range<usize>) -> Result<Option<Vec<u8>>, CheckpointError> {
        let Some(kind) = self.block_type() else { return Ok(None) };
        Ok(Some(match self {
            Matrix::Scaled(matrix) => matrix.blocks(rows, kind)?,
            Matrix::Packed(matrix) => matrix.integers(rows)?.blocks(kind),
            Matrix::Gptq(matrix) => matrix.integers(rows)?.blocks(kind),
            Matrix::Awq(matrix) => matrix.integers(rows)?.blocks(kind),
            Matrix::Nf4(_) => return Ok(None),
        }))
    }

    /// Returns the group of each input of a matrix in grouped rows; none for other matrices.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(in crate::checkpoint) fn groups_of_inputs(&self) -> Result<Option<Vec<u32>>, CheckpointError> {
        let Some(BlockType::GroupedRow(row)) = self.block_type() else { return Ok(None) };
        let of = match self {
            Matrix::Scaled(matrix) => matrix.groups_of_inputs(),
            Matrix::Packed(matrix) => matrix.groups_of_inputs()?,
            Matrix::Gptq(matrix) => matrix.groups_of_inputs()?,
            Matrix::Awq(matrix) => matrix.groups_of_inputs(),
            Matrix::Nf4(_) => return Ok(None),
        };
        Ok(Some((0..row.inputs).map(|input| of.column(input) as u32).collect()))
    }

    /// Dequantises rows, which are output channels.
    ///
    /// # Errors
    /// A scale that is not finite, a group that does not exist, and those of reading the file.
    pub(in crate::checkpoint) fn rows(&self, rows: Range<usize>) -> Result<Vec<f32>, CheckpointError> {
        match self {
            Matrix::Scaled(matrix) => matrix.rows(rows),
            Matrix::Packed(matrix) => Ok(matrix.integers(rows)?.values()),
            Matrix::Gptq(matrix) => Ok(matrix.integers(rows)?.values()),
            Matrix::Awq(matrix) => Ok(matrix.integers(rows)?.values()),
            Matrix::Nf4(matrix) => matrix.rows(rows),
        }
    }
}

#[cfg(test)]
mod tests;
