//! 8-bit floats or integers beside scales: `fp8`, `fbgemm_fp8`, and compressed-tensors without packing.
use super::super::files::HfFiles;
use super::integers::{GroupOf, Integers, Kept, ZeroPoints};
use super::part::{FLOATS, Part};
use super::settings::{Scaled, Scales};
use crate::checkpoint::{BlockType, CheckpointError};
use rayon::prelude::*;
use safetensors::Dtype;
use std::ops::Range;

/// Weights of a block.
const BLOCK: usize = 32;

/// Distance of a signed byte's zero from the least one.
const SIGN: i32 = 128;

/// Weights that share a scale: so many rows and columns, and the scales of a row of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    rows: usize,
    columns: usize,
    across: usize,
}

impl Grid {
    /// Returns the grid of a matrix, and the accepted shapes of its scales, the usual one first.
    pub(super) fn new(scales: Scales, [outputs, inputs]: [usize; 2]) -> (Grid, Vec<Vec<usize>>) {
        match scales {
            Scales::Tensor => (Grid { rows: outputs, columns: inputs, across: 1 }, vec![vec![1], vec![], vec![1, 1]]),
            Scales::Row => (Grid { rows: 1, columns: inputs, across: 1 }, vec![vec![outputs, 1], vec![outputs]]),
            Scales::Group(size) => {
                let across = inputs.div_ceil(size);
                (Grid { rows: 1, columns: size, across }, vec![vec![outputs, across]])
            }
            Scales::Block(rows, columns) => {
                let across = inputs.div_ceil(columns);
                (Grid { rows, columns, across }, vec![vec![outputs.div_ceil(rows), across]])
            }
        }
    }

    /// Columns that share a scale.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the scales of a row, each with the number of neighbours that share it.
    pub(super) fn of_row<'a, T>(&self, values: &'a [T], row: usize) -> (&'a [T], usize) {
        let first = row / self.rows * self.across;
        (values.get(first..first + self.across).unwrap_or_default(), self.columns)
    }
}

/// Checks a shape against all accepted ones.
pub(super) fn shaped<'a>(part: Part<'a>, accepted: &[Vec<usize>]) -> Result<Part<'a>, CheckpointError> {
    if accepted.iter().any(|shape| part.shape() == shape) {
        return Ok(part);
    }
    part.shaped(accepted.first().map(Vec::as_slice).unwrap_or_default())
}

/// A matrix of 8-bit numbers.
#[derive(Debug)]
pub(in crate::checkpoint) struct ScaledMatrix<'a> {
    pub(super) weight: Part<'a>,
    pub(super) scales: Part<'a>,
    pub(super) zeros: Option<Part<'a>>,
    grid: Grid,
    width: usize,
}

impl<'a> ScaledMatrix<'a> {
    /// Finds the matrix `{module}.weight`; none if its numbers are not of 8 bits.
    pub(super) fn find(
        files: &'a HfFiles,
        module: &str,
        shape: [usize; 2],
        method: Scaled,
    ) -> Result<Option<ScaledMatrix<'a>>, CheckpointError> {
        let expected = if method.integers { Dtype::I8 } else { Dtype::F8_E4M3 };
        let Some(weight) = Part::find(files, format!("{module}.weight")).filter(|part| part.dtype() == expected) else {
            return Ok(None);
        };
        let weight = weight.shaped(&shape)?;
        let (grid, accepted) = Grid::new(method.scales, shape);
        let [scale, inverse] = ["weight_scale", "weight_scale_inv"].map(|name| format!("{module}.{name}"));
        let scales = match Part::find(files, scale.clone()).or_else(|| Part::find(files, inverse.clone())) {
            Some(part) => part,
            None => Part::require(files, format!("{scale} (or {inverse})"), "scales", &weight)?,
        };
        let floats = [FLOATS.as_slice(), &[Dtype::F8_E8M0]].concat();
        let scales = shaped(scales, &accepted)?.typed(&floats)?;
        let name = format!("{module}.weight_zero_point");
        let zeros = match Part::find(files, name.clone()) {
            None if method.asymmetric => Some(Part::require(files, name, "zero points", &weight)?),
            found => found.map(|part| shaped(part, &accepted)?.typed(&[expected])).transpose()?,
        };
        Ok(Some(ScaledMatrix { weight, scales, zeros, grid, width: shape[1] }))
    }

    /// Returns the scales of rows, one for each `group` columns; none for integers, and if scales change within a group.
    pub(super) fn e4m3_scales(&self, rows: Range<usize>, group: usize) -> Result<Option<Vec<f32>>, CheckpointError> {
        let fits = self.grid.columns.is_multiple_of(group) || self.grid.columns >= self.width;
        if self.weight.dtype() != Dtype::F8_E4M3 || self.zeros.is_some() || !fits {
            return Ok(None);
        }
        let scales = self.scales.numbers()?;
        let of_row = |row: usize| {
            let (scales, size) = self.grid.of_row(&scales, row);
            (0..self.width.div_ceil(group))
                .map(move |i| scales.get(i * group / size.max(1)).copied().unwrap_or_default())
        };
        Ok(Some(rows.flat_map(of_row).collect()))
    }

    /// Type of the blocks that keep it; none of floats where a block would have two scales, or that have zero points.
    pub(super) fn block_type(&self) -> Option<BlockType> {
        if self.weight.dtype() == Dtype::I8 {
            let kept = Kept {
                scales: &self.scales,
                bits: 8,
                inputs: self.width,
                group: self.grid.columns,
                groups: self.grid.across,
                in_order: true,
                zeros: ZeroPoints::OfCodes,
            };
            return kept.block_type();
        }
        let fits = self.grid.columns.is_multiple_of(BLOCK) || self.grid.columns >= self.width;
        (fits && self.width.is_multiple_of(BLOCK) && self.zeros.is_none()).then_some(BlockType::E4m3)
    }

    /// Reads the blocks of rows: of floats the scale in f32, then the codes.
    pub(super) fn blocks(&self, rows: Range<usize>, kind: BlockType) -> Result<Vec<u8>, CheckpointError> {
        let codes = self.weight.bytes(rows.start * self.width, rows.len() * self.width)?;
        let scales = self.scales.numbers()?;
        if kind == BlockType::E4m3 {
            let per_row = self.width / BLOCK;
            let block = |(index, codes): (usize, &[u8])| {
                let (scales, size) = self.grid.of_row(&scales, rows.start + index / per_row);
                let scale = scales.get(index % per_row * BLOCK / size.max(1)).copied().unwrap_or_default();
                [&scale.to_le_bytes(), codes].concat()
            };
            return Ok(codes.chunks_exact(BLOCK).enumerate().flat_map(block).collect());
        }
        let zeros = match &self.zeros {
            Some(part) => part.integers8(0, part.count())?,
            None => Vec::new(),
        };
        let across = self.grid.of_row(&scales, rows.start).0.len();
        let zeros = |row: usize| {
            let stored = self.grid.of_row(&zeros, row).0;
            (0..across).map(|group| SIGN + stored.get(group).map_or(0, |zero| *zero as i32)).collect::<Vec<i32>>()
        };
        let integers = Integers {
            width: self.width,
            groups: across,
            // From two's complement to the distance from -128.
            codes: codes.into_iter().map(|code| code ^ 0x80).collect(),
            zeros: rows.clone().flat_map(zeros).collect(),
            scales: rows.flat_map(|row| self.grid.of_row(&scales, row).0.iter().copied()).collect(),
            of: self.groups_of_inputs(),
        };
        Ok(integers.blocks(kind))
    }

    pub(super) fn groups_of_inputs(&self) -> GroupOf {
        GroupOf::Neighbours(self.grid.columns)
    }

    /// Computes `(q - z) * s`.
    pub(super) fn rows(&self, rows: Range<usize>) -> Result<Vec<f32>, CheckpointError> {
        let scales = self.scales.numbers()?;
        let read = |part: &Part<'_>, start: usize, count: usize| match part.dtype() {
            Dtype::I8 => part.integers8(start, count),
            _ => part.e4m3(start, count),
        };
        let zeros = self.zeros.as_ref().map(|part| read(part, 0, part.count())).transpose()?;
        if let (Some(zeros), Some(part)) = (&zeros, &self.zeros)
            && zeros.iter().any(|zero| zero.is_nan())
        {
            return Err(part.error("a zero point is not a number; fetch the checkpoint again"));
        }
        let mut values = read(&self.weight, rows.start * self.width, rows.len() * self.width)?;
        values.par_chunks_mut(self.width.max(1)).zip(rows).for_each(|(values, row)| {
            let (scales, size) = self.grid.of_row(&scales, row);
            if let Some(zeros) = &zeros {
                let (zeros, size) = self.grid.of_row(zeros, row);
                for (values, zero) in values.chunks_mut(size).zip(zeros) {
                    values.iter_mut().for_each(|value| *value -= zero);
                }
            }
            for (values, scale) in values.chunks_mut(size).zip(scales) {
                values.iter_mut().for_each(|value| *value *= scale);
            }
        });
        Ok(values)
    }
}
