//! NF4 as bitsandbytes stores it; [`crate::checkpoint::nf4`] describes the numbers.
//!
//! A byte holds two weights in row-major order, the first in its high bits. Each block of weights has a scale, which with double
//! quantisation is the code of a value, times the scale of a block of scales, plus their mean. All tables are stored.
use super::super::files::HfFiles;
use super::part::Part;
use crate::checkpoint::CheckpointError;
use rayon::prelude::*;
use safetensors::Dtype;
use serde::Deserialize;
use std::ops::Range;

/// Largest accepted description, in bytes.
const MAX_STATE: usize = 1 << 16;

/// A matrix of NF4.
#[derive(Debug)]
pub(in crate::checkpoint) struct Nf4Matrix<'a> {
    pub(super) codes: Part<'a>,
    pub(super) state: Part<'a>,
    pub(super) scales: Part<'a>,
    pub(super) levels: Part<'a>,
    pub(super) nested: Option<[Part<'a>; 2]>,
    size: [usize; 2],
}

/// Description of a matrix, JSON in a tensor of bytes.
#[derive(Debug, Deserialize)]
struct State {
    quant_type: String,
    blocksize: usize,
    shape: Vec<usize>,
    nested_blocksize: Option<usize>,
    nested_offset: Option<f32>,
}

impl<'a> Nf4Matrix<'a> {
    /// Finds the matrix with `{module}.weight.quant_state.bitsandbytes__nf4`. Sizes of blocks are in that tensor's bytes, so
    /// [`Nf4Matrix::rows`] checks the number of scales.
    pub(super) fn find(
        files: &'a HfFiles,
        module: &str,
        size: [usize; 2],
        double: bool,
    ) -> Result<Option<Nf4Matrix<'a>>, CheckpointError> {
        let at = |name: &str| format!("{module}.weight.{name}");
        let Some(state) = Part::find(files, at("quant_state.bitsandbytes__nf4")) else { return Ok(None) };
        let state = state.typed(&[Dtype::U8])?;
        let codes = Part::require(files, format!("{module}.weight"), "codes", &state)?;
        let require = |name: &str, role: &str| Part::require(files, at(name), role, &codes);
        // The codes may be stored as another type; the bytes are the same.
        let bytes = codes.count() * codes.dtype().bitsize() / 8;
        let expected = (size[0] * size[1]).div_ceil(2);
        if bytes != expected {
            let [outputs, inputs] = size;
            let what =
                format!("it has {bytes} bytes, but {expected} are needed for {outputs} x {inputs} weights of 4 bits");
            return Err(codes.error(&what));
        }
        let of_scales = if double { Dtype::U8 } else { Dtype::F32 };
        let scales = require("absmax", "scales")?.typed(&[of_scales])?;
        let levels = require("quant_map", "levels")?.shaped(&[16])?.typed(&[Dtype::F32])?;
        let nested = match double {
            false => None,
            true => Some([
                require("nested_absmax", "scales of the scales")?.typed(&[Dtype::F32])?,
                require("nested_quant_map", "levels of the scales")?.shaped(&[256])?.typed(&[Dtype::F32])?,
            ]),
        };
        Ok(Some(Nf4Matrix { codes, state, scales, levels, nested, size }))
    }

    /// Reads and checks the description.
    fn state(&self) -> Result<State, CheckpointError> {
        if self.state.count() > MAX_STATE {
            return Err(self.state.error(&format!("its description is longer than {MAX_STATE} bytes")));
        }
        let text = self.state.bytes(0, self.state.count())?;
        let state: State = serde_json::from_slice(&text)
            .map_err(|error| self.state.error(&format!("it does not describe a matrix of bitsandbytes: {error}")))?;
        if state.quant_type != "nf4" || state.shape != self.size {
            return Err(self.state.error(&format!(
                "it describes {} of shape {:?}, expected nf4 of shape {:?}",
                state.quant_type, state.shape, self.size
            )));
        }
        Ok(state)
    }

    /// Reads the scales of all blocks of `size` weights.
    fn scales(&self, state: &State) -> Result<Vec<f32>, CheckpointError> {
        let blocks = (self.size[0] * self.size[1]).div_ceil(state.blocksize);
        let count = |part: &Part<'_>, expected: usize| match part.count() {
            found if found == expected => Ok(()),
            found => Err(part.error(&format!("it has {found} scales, expected {expected}"))),
        };
        count(&self.scales, blocks)?;
        let Some([nested, levels]) = &self.nested else { return self.scales.numbers() };
        let (Some(size @ 1..), Some(offset)) = (state.nested_blocksize, state.nested_offset) else {
            return Err(self.state.error("it has no nested_blocksize and nested_offset for its quantised scales"));
        };
        if !offset.is_finite() {
            return Err(self.state.error("nested_offset is not finite"));
        }
        count(nested, blocks.div_ceil(size))?;
        let (nested, levels) = (nested.numbers()?, levels.numbers()?);
        let codes = self.scales.bytes(0, blocks)?;
        let scale = |(block, code): (usize, &u8)| levels[usize::from(*code)] * nested[block / size] + offset;
        Ok(codes.iter().enumerate().map(scale).collect())
    }

    /// Computes `level * s`.
    pub(super) fn rows(&self, rows: Range<usize>) -> Result<Vec<f32>, CheckpointError> {
        let state = self.state()?;
        if state.blocksize == 0 {
            return Err(self.state.error("blocksize is 0"));
        }
        let scales = self.scales(&state)?;
        let levels = self.levels.numbers()?;
        let inputs = self.size[1];
        let (first, last) = (rows.start * inputs, rows.end * inputs);
        let codes = self.codes.bytes(first / 2, last.div_ceil(2) - first / 2)?;
        let mut values = vec![0f32; last - first];
        values.par_iter_mut().enumerate().for_each(|(at, value)| {
            let at = first + at;
            let byte = codes[at / 2 - first / 2];
            let code = if at.is_multiple_of(2) { byte >> 4 } else { byte & 15 };
            *value = levels[usize::from(code)] * scales[at / state.blocksize];
        });
        Ok(values)
    }
}
