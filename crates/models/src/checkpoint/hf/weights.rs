//! Parameters of a folder's weights, read one at a time.
//!
//! Files are read, not mapped, because pages of a mapped file count as memory of the process.
use super::super::layout::{MXFP4_BLOCK, Mxfp4Rows, PairedRows, split_gate_rows, split_gates};
use super::super::stored_values::read_values;
use super::super::weight_format::FP8_GROUP;
use super::super::{BlockType, CheckpointError, DecoderConfig, ElementType, LayerParameter, Parameter, Tensor, Values};
use super::family::Family;
use super::files::{HfFiles, Stored};
use super::names::{self, Place};
use super::quant::{Matrix, Quantisation};
use safetensors::Dtype;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Source of a parameter's values.
enum Found<'a> {
    Plain(&'a Stored),
    Quantised(Box<Matrix<'a>>),
}

/// The tensors of a folder.
#[derive(Debug)]
pub(in crate::checkpoint) struct HfWeights {
    family: Family,
    quantisation: Option<Quantisation>,
    files: HfFiles,
}

impl HfWeights {
    /// Reads the headers of all shards, and checks that they have every parameter of `config` in its shape and no other tensors. A head of
    /// its own in the files unties `config`'s.
    pub(in crate::checkpoint) fn open(
        folder: &Path,
        family: Family,
        config: &mut DecoderConfig,
        quantisation: Option<Quantisation>,
    ) -> Result<HfWeights, CheckpointError> {
        let weights = HfWeights { family, quantisation, files: HfFiles::open(folder)? };
        if config.tied_embeddings && weights.has_other_head(config)? {
            config.tied_embeddings = false;
        }
        let config = &*config;
        let mut used = BTreeSet::new();
        for (parameter, shape) in config.parameters() {
            let (place, found) = weights.place(config, parameter, &shape)?;
            if place.mxfp4 {
                used.insert(weights.mxfp4_scales(&place)?.0);
            }
            match found {
                Found::Plain(_) => used.extend([place.tensor]),
                Found::Quantised(matrix) => used.extend(matrix.names()),
            }
        }
        let has = |name: &str| weights.files.tensors.contains_key(name);
        let mut extra: Vec<&String> = weights
            .files
            .tensors
            .keys()
            .filter(|name| !used.contains(*name) && !names::is_redundant(name, config, &has))
            .collect();
        // Sorted, so that the message is deterministic.
        extra.sort_unstable();
        for name in extra {
            if weights.is_beside_quantised(name)? {
                continue;
            }
            let what = format!(
                "tensor {name} has no place in architecture {} as config.json describes it ({} layers), so the checkpoint \
                 computes something else",
                config.architecture,
                config.layers.len()
            );
            let path = weights.files.stored(name).map_or(folder, |(_, path)| path).to_path_buf();
            return Err(CheckpointError::Malformed { path, what });
        }
        Ok(weights)
    }

    /// True if the files have a head whose values are not the embedding's, which transformers then uses although the configuration ties them.
    fn has_other_head(&self, config: &DecoderConfig) -> Result<bool, CheckpointError> {
        let shape = [config.vocab_size, config.hidden_size];
        let heads = names::places(self.family, config, Parameter::Head, &shape);
        let Some(head) = heads.iter().find_map(|place| self.files.tensors.get(&place.tensor)) else { return Ok(false) };
        let (_, Found::Plain(embedding)) = self.place(config, Parameter::Embedding, &shape)? else { return Ok(true) };
        if head.shape != embedding.shape || head.dtype != embedding.dtype {
            return Ok(true);
        }
        let bytes = |stored: &Stored| {
            let count = stored.shape.iter().product::<usize>() * stored.dtype.bitsize() / 8;
            read_values::<u8, 1>(self.files.file(stored), stored.offset, count, |[byte]| byte)
        };
        Ok(bytes(head)? != bytes(embedding)?)
    }

    /// Returns the tensor of a parameter and its file.
    pub(in crate::checkpoint) fn source(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Option<String> {
        let (place, found) = self.place(config, parameter, shape).ok()?;
        Some(match found {
            Found::Plain(stored) if place.mxfp4 => {
                let (scales, _) = self.mxfp4_scales(&place).ok()?;
                format!("tensors {} and {scales} in {}", place.tensor, self.files.file(stored).display())
            }
            Found::Plain(stored) => format!("tensor {} in {}", place.tensor, self.files.file(stored).display()),
            Found::Quantised(matrix) => {
                let names: Vec<String> = matrix.names().into_iter().collect();
                let file =
                    names.iter().find_map(|name| self.files.tensors.get(name)).map(|stored| self.files.file(stored));
                format!("tensors {} in {}", names.join(", "), file?.display())
            }
        })
    }

    /// Returns the place of a parameter after checking the stored shape.
    fn place(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<(Place, Found<'_>), CheckpointError> {
        let places = names::places(self.family, config, parameter, shape);
        let usual = places.first().map(|p| p.tensor.clone()).unwrap_or_default();
        for place in places {
            if let Some(quantisation) = &self.quantisation
                && let Some(matrix) = quantisation.find(&self.files, &place.tensor, &place.whole)?
            {
                return Ok((place, Found::Quantised(Box::new(matrix))));
            }
            let Some(stored) = self.files.tensors.get(&place.tensor) else { continue };
            if stored.shape != place.whole {
                return Err(CheckpointError::WrongShape {
                    tensor: place.tensor,
                    path: self.files.file(stored).to_path_buf(),
                    found: stored.shape.clone(),
                    expected: place.whole,
                });
            }
            // MXFP4 blocks are checked with their scales.
            if !place.mxfp4 && !matches!(stored.dtype, Dtype::F32 | Dtype::BF16 | Dtype::F16) {
                return Err(self.wrong_type(place.tensor, stored));
            }
            return Ok((place, Found::Plain(stored)));
        }
        let tensor = match &self.quantisation {
            Some(quantisation) if shape.len() == 2 => quantisation.missing(&usual),
            _ => usual,
        };
        Err(CheckpointError::TensorMissing { tensor, parameter: parameter.to_string(), path: self.files.main() })
    }

    /// Returns the error for a tensor that is neither plain floats nor part of the quantisation that `config.json` names.
    fn wrong_type(&self, tensor: String, stored: &Stored) -> CheckpointError {
        let advice = match &self.quantisation {
            Some(quantisation) => format!(
                "config.json says that weights are {}, or F32, BF16 and F16; fetch the checkpoint again",
                quantisation.name
            ),
            None => "F32, BF16 and F16 are supported, others need a quantization_config in config.json; convert the checkpoint"
                .into(),
        };
        let (path, dtype) = (self.files.file(stored).to_path_buf(), format!("{:?}", stored.dtype));
        CheckpointError::ElementType { tensor, path, dtype, advice }
    }

    /// True for a tensor without effect that formats of quantised weights bring along.
    fn is_beside_quantised(&self, name: &str) -> Result<bool, CheckpointError> {
        let Some(quantisation) = &self.quantisation else { return Ok(false) };
        Ok(quantisation.is_of_activations(name) || quantisation.is_empty_bias(&self.files, name)?)
    }

    /// Returns the type of a parameter's values as read.
    pub(in crate::checkpoint) fn held_as(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> ElementType {
        match self.place(config, parameter, shape) {
            // Read as bfloat16.
            Ok((place, _)) if place.mxfp4 => ElementType::Bf16,
            Ok((_, Found::Plain(Stored { dtype: Dtype::BF16, .. }))) => ElementType::Bf16,
            Ok((_, Found::Plain(Stored { dtype: Dtype::F16, .. }))) => ElementType::F16,
            _ => ElementType::F32,
        }
    }

    /// Files of the weights.
    pub(in crate::checkpoint) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.paths()
    }

    pub(in crate::checkpoint) fn tensor(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<Tensor, CheckpointError> {
        let (place, found) = self.place(config, parameter, shape)?;
        let (rows, columns) = (place.part.first().copied().unwrap_or(1), place.part.get(1).copied().unwrap_or(1));
        let values = match found {
            Found::Plain(stored) if place.mxfp4 => {
                let values = Values::Bf16(self.mxfp4_rows(&place, stored)?.read()?);
                return Ok(Tensor { values, shape: place.part });
            }
            Found::Plain(stored) => self.plain(&place, stored, rows, columns)?,
            Found::Quantised(matrix) => {
                let first = place.start / place.whole.last().copied().unwrap_or(1).max(1);
                Values::F32(matrix.rows(first..first + rows)?)
            }
        };
        let values = match PairedRows::of(config, parameter) {
            Some(pairs) => pairs.halves_of_values(values, columns),
            None => values,
        };
        let values = split_gates(config, parameter, values, columns);
        let values = if self.family.norms_are_offsets() && is_norm(parameter) { add_one(values) } else { values };
        Ok(Tensor { shape: place.part, values })
    }

    /// Returns the type of a matrix's blocks, if [`HfWeights::blocks`] supports it.
    pub(in crate::checkpoint) fn block_type(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Option<BlockType> {
        let (place, found) = self.place(config, parameter, shape).ok()?;
        let &[_, width] = &place.part[..] else { return None };
        match found {
            Found::Plain(_) if place.mxfp4 => Some(BlockType::Mxfp4),
            Found::Plain(_) => None,
            Found::Quantised(matrix) => matrix.block_type().filter(|_| place.whole.last() == Some(&width)),
        }
    }

    /// Reads a matrix's blocks, rows in the engine's order; none without a [`HfWeights::block_type`].
    pub(in crate::checkpoint) fn blocks(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<Option<Vec<u8>>, CheckpointError> {
        let (place, found) = self.place(config, parameter, shape)?;
        let &[rows, width] = &place.part[..] else { return Ok(None) };
        let blocks = match found {
            Found::Plain(stored) if place.mxfp4 => return self.mxfp4_rows(&place, stored)?.blocks().map(Some),
            Found::Plain(_) => return Ok(None),
            Found::Quantised(matrix) => {
                let first = place.start / width.max(1);
                matrix.blocks(first..first + rows)?
            }
        };
        let Some(blocks) = blocks else { return Ok(None) };
        let row = blocks.len() / rows.max(1);
        let blocks = match PairedRows::of(config, parameter) {
            Some(pairs) => pairs.halves(&blocks, row),
            None => blocks,
        };
        Ok(Some(split_gate_rows(config, parameter, blocks, row)))
    }

    /// Returns the group of each input of a matrix in grouped rows; none for other matrices.
    pub(in crate::checkpoint) fn groups_of_inputs(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<Option<Vec<u32>>, CheckpointError> {
        match self.place(config, parameter, shape)?.1 {
            Found::Plain(_) => Ok(None),
            Found::Quantised(matrix) => matrix.groups_of_inputs(),
        }
    }

    /// Reads the scales of a matrix in E4M3, one for each group of [`FP8_GROUP`] columns of each row; none for other matrices, and where a
    /// parameter's rows are not those of the tensor.
    pub(in crate::checkpoint) fn e4m3_scales(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<Option<Vec<f32>>, CheckpointError> {
        let (place, found) = self.place(config, parameter, shape)?;
        let (Found::Quantised(matrix), &[rows, width]) = (found, &place.part[..]) else { return Ok(None) };
        if place.whole.last() != Some(&width) || PairedRows::of(config, parameter).is_some() {
            return Ok(None);
        }
        let first = place.start / width.max(1);
        matrix.e4m3_scales(first..first + rows, FP8_GROUP)
    }

    /// Reads the values of a plain tensor's part, in the order of its rows and columns.
    fn plain(&self, place: &Place, stored: &Stored, rows: usize, columns: usize) -> Result<Values, CheckpointError> {
        let path = self.files.file(stored);
        let width = stored.dtype.bitsize() / 8;
        let count: usize = place.strides.map_or(place.part.iter().product(), |strides| strides.span(rows, columns));
        let offset = stored.offset + (place.start * width) as u64;
        let values = match stored.dtype {
            Dtype::F32 => Values::F32(read_values(path, offset, count, f32::from_le_bytes)?),
            Dtype::BF16 => Values::Bf16(read_values(path, offset, count, u16::from_le_bytes)?),
            _ => Values::F16(read_values(path, offset, count, u16::from_le_bytes)?),
        };
        Ok(match place.strides {
            Some(strides) => strides.pick_values(values, rows, columns),
            None => values,
        })
    }
}

impl HfWeights {
    /// Returns the name of the scales of MXFP4 blocks and their tensor.
    fn mxfp4_scales(&self, place: &Place) -> Result<(String, &Stored), CheckpointError> {
        let name = place.tensor.replace("_blocks", "_scales");
        let expected: Vec<usize> = place.whole.iter().take(3).copied().collect();
        let Some(stored) = self.files.tensors.get(&name) else {
            let path = self.files.main();
            return Err(CheckpointError::TensorMissing { tensor: name, parameter: "scales of MXFP4".into(), path });
        };
        if stored.shape != expected {
            let path = self.files.file(stored).to_path_buf();
            return Err(CheckpointError::WrongShape { tensor: name, path, found: stored.shape.clone(), expected });
        }
        Ok((name, stored))
    }

    fn mxfp4_rows<'a>(&'a self, place: &Place, stored: &'a Stored) -> Result<Mxfp4Rows<'a>, CheckpointError> {
        let (name, scales) = self.mxfp4_scales(place)?;
        for (tensor, stored) in [(&place.tensor, stored), (&name, scales)] {
            if stored.dtype != Dtype::U8 {
                return Err(CheckpointError::ElementType {
                    tensor: tensor.clone(),
                    path: self.files.file(stored).to_path_buf(),
                    dtype: format!("{:?}", stored.dtype),
                    advice: "blocks and scales of MXFP4 are U8; fetch the checkpoint again".into(),
                });
            }
        }
        let (rows, columns) = (place.part.first().copied().unwrap_or(1), place.part.get(1).copied().unwrap_or(1));
        Ok(Mxfp4Rows {
            blocks: (self.files.file(stored), stored.offset),
            scales: (self.files.file(scales), scales.offset),
            first: place.start,
            row_step: place.strides.map_or(columns / MXFP4_BLOCK, |strides| strides.row),
            rows,
            per_row: columns / MXFP4_BLOCK,
        })
    }
}

fn is_norm(parameter: Parameter) -> bool {
    use LayerParameter::*;
    matches!(
        parameter,
        Parameter::FinalNorm
            | Parameter::Layer(_, AttentionNorm | QueryNorm | KeyNorm | PostAttentionNorm | MlpNorm | PostMlpNorm)
    )
}

/// Returns `1 + w` in f32, as Gemma's own code computes it.
fn add_one(values: Values) -> Values {
    Values::F32(match values {
        Values::F32(v) => v.into_iter().map(|w| 1.0 + w).collect(),
        Values::Bf16(v) => v.into_iter().map(|w| 1.0 + half::bf16::from_bits(w).to_f32()).collect(),
        Values::F16(v) => v.into_iter().map(|w| 1.0 + half::f16::from_bits(w).to_f32()).collect(),
    })
}
