//! Tensors of a GGUF file, read and dequantised one at a time.
use super::gguf_config::GgufArchitecture;
use super::gguf_file::{GgufFile, GgufTensor};
use super::gguf_names;
use super::gguf_rope::RopeTensors;
use super::hf_names::Place;
use super::hf_weights::read_values;
use super::{BlockType, CheckpointError, DecoderConfig, ElementType, LayerParameter, Parameter, Tensor, Values};
use candle_core::Device;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Elements dequantised at a time; a multiple of every block size.
const CHUNK: usize = 1 << 18;

/// The tensors of a file.
#[derive(Debug)]
pub(super) struct GgufWeights {
    arch: GgufArchitecture,
    file: GgufFile,
}

/// Returns the name of a file's quantisation: llama.cpp's name of `general.file_type`, else the type of most weights.
pub(super) fn quantisation(file: &GgufFile) -> String {
    let name = match file.number("general.file_type").map(|n| n as i64) {
        Some(0) => "F32",
        Some(1) => "F16",
        Some(2) => "Q4_0",
        Some(3) => "Q4_1",
        Some(7) => "Q8_0",
        Some(8) => "Q5_0",
        Some(9) => "Q5_1",
        Some(10) => "Q2_K",
        Some(11) => "Q3_K_S",
        Some(12) => "Q3_K_M",
        Some(13) => "Q3_K_L",
        Some(14) => "Q4_K_S",
        Some(15) => "Q4_K_M",
        Some(16) => "Q5_K_S",
        Some(17) => "Q5_K_M",
        Some(18) => "Q6_K",
        Some(21) => "Q2_K_S",
        Some(32) => "BF16",
        _ => {
            let mut elements: BTreeMap<String, usize> = BTreeMap::new();
            for tensor in file.tensors.values() {
                *elements.entry(format!("{:?}", tensor.dtype)).or_default() += tensor.shape.iter().product::<usize>();
            }
            return elements.into_iter().max_by_key(|(_, n)| *n).map(|(name, _)| name).unwrap_or_default();
        }
    };
    name.to_string()
}

/// Reads the tensors that describe rotary embeddings.
pub(super) fn rope_tensors(file: &GgufFile) -> Result<RopeTensors, CheckpointError> {
    let read = |name: &str| -> Result<Option<Vec<f64>>, CheckpointError> {
        let Some(tensor) = file.tensors.get(name) else { return Ok(None) };
        let count: usize = tensor.shape.iter().product();
        // One number per pair of rotated dimensions: a large tensor is something else.
        if count > 1 << 16 {
            return Err(CheckpointError::WrongShape {
                tensor: name.to_string(),
                path: file.path.clone(),
                found: tensor.shape.clone(),
                expected: vec![1 << 15],
            });
        }
        let values = match read(file, name, tensor, 0, count)? {
            Values::F32(v) => v.into_iter().map(f64::from).collect(),
            Values::Bf16(v) => v.into_iter().map(|b| half::bf16::from_bits(b).to_f64()).collect(),
            Values::F16(v) => v.into_iter().map(|b| half::f16::from_bits(b).to_f64()).collect(),
        };
        Ok(Some(values))
    };
    let divisors = read("rope_freqs.weight")?;
    let short_long = match (read("rope_factors_short.weight")?, read("rope_factors_long.weight")?) {
        (Some(short), Some(long)) => Some((short, long)),
        (None, None) => None,
        (short, _) => {
            let missing = if short.is_some() { "rope_factors_long.weight" } else { "rope_factors_short.weight" };
            return Err(CheckpointError::TensorMissing {
                tensor: missing.into(),
                parameter: "the other list of rotary factors is present".into(),
                path: file.path.clone(),
            });
        }
    };
    Ok(RopeTensors { divisors, short_long })
}

impl GgufWeights {
    /// Checks that the file has every parameter of `config` in its shape, and no other tensors.
    pub(super) fn new(
        mut file: GgufFile,
        arch: GgufArchitecture,
        config: &DecoderConfig,
    ) -> Result<GgufWeights, CheckpointError> {
        // The tokenizer has the vocabulary by now.
        file.metadata.clear();
        let weights = GgufWeights { arch, file };
        let mut used = BTreeSet::new();
        for (parameter, shape) in config.parameters() {
            used.insert(weights.place(config, parameter, &shape)?.0.tensor);
        }
        let extra = weights.file.tensors.keys().find(|name| !used.contains(*name) && !gguf_names::is_redundant(name));
        if let Some(name) = extra {
            let what = format!(
                "tensor {name} has no place in architecture {}, so the model computes something else",
                config.architecture
            );
            return Err(CheckpointError::Malformed { path: weights.file.path, what });
        }
        Ok(weights)
    }

    fn place(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<(Place, &GgufTensor), CheckpointError> {
        let places = gguf_names::places(self.arch, config, parameter, shape);
        let usual = places.first().map(|p| p.tensor.clone()).unwrap_or_default();
        for place in places {
            let Some(tensor) = self.file.tensors.get(&place.tensor) else { continue };
            if tensor.shape != place.whole {
                return Err(CheckpointError::WrongShape {
                    tensor: place.tensor,
                    path: self.file.path.clone(),
                    found: tensor.shape.clone(),
                    expected: place.whole,
                });
            }
            return Ok((place, tensor));
        }
        let path = self.file.path.clone();
        Err(CheckpointError::TensorMissing { tensor: usual, parameter: parameter.to_string(), path })
    }

    /// Returns the type of a parameter's values as read: quantised ones are dequantised to f32.
    pub(super) fn held_as(&self, config: &DecoderConfig, parameter: Parameter, shape: &[usize]) -> ElementType {
        match self.place(config, parameter, shape).map(|(_, tensor)| tensor.dtype) {
            Ok(GgmlDType::BF16) => ElementType::Bf16,
            Ok(GgmlDType::F16) => ElementType::F16,
            _ => ElementType::F32,
        }
    }

    /// Returns the type of a matrix's blocks, if [`GgufWeights::blocks`] supports it.
    pub(super) fn block_type(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Option<BlockType> {
        let (place, tensor) = self.place(config, parameter, shape).ok()?;
        // A row must consist of whole blocks.
        let block = tensor.dtype.block_size();
        let whole = place.part.get(1).is_some_and(|k| k.is_multiple_of(block)) && place.start.is_multiple_of(block);
        BlockType::of(tensor.dtype).filter(|_| whole)
    }

    /// Reads a matrix's blocks unchanged, rows in the engine's order.
    pub(super) fn blocks(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<Vec<u8>, CheckpointError> {
        let (place, tensor) = self.place(config, parameter, shape)?;
        let (block, size) = (tensor.dtype.block_size(), tensor.dtype.type_size());
        let count: usize = place.part.iter().product();
        let offset = tensor.offset + (place.start / block * size) as u64;
        let bytes = read_values(&self.file.path, offset, count / block * size, |[byte]: [u8; 1]| byte)?;
        let heads = self.permuted_heads(config, parameter);
        let row = place.part.get(1).copied().unwrap_or(block) / block * size;
        Ok(if heads > 0 { halves_from_pairs(&bytes, heads, config.head_dim, row) } else { bytes })
    }

    /// Returns the number of heads whose rows the converter reordered for rotary embeddings of adjacent pairs; 0 for other
    /// parameters.
    fn permuted_heads(&self, config: &DecoderConfig, parameter: Parameter) -> usize {
        use LayerParameter::{Key, KeyBias, Query, QueryBias};
        match parameter {
            _ if !self.arch.has_pairs() => 0,
            Parameter::Layer(_, Query | QueryBias) => config.num_heads,
            Parameter::Layer(_, Key | KeyBias) => config.num_kv_heads,
            _ => 0,
        }
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.file.path
    }

    pub(super) fn tensor(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<Tensor, CheckpointError> {
        let (place, tensor) = self.place(config, parameter, shape)?;
        let count = place.part.iter().product();
        let values = read(&self.file, &place.tensor, tensor, place.start, count)?;
        // The converter reorders the rows of architecture llama; the engine rotates halves, as the original checkpoint does.
        let heads = self.permuted_heads(config, parameter);
        let values = if heads > 0 {
            let width = place.part.get(1).copied().unwrap_or(1);
            match values {
                Values::F32(v) => Values::F32(halves_from_pairs(&v, heads, config.head_dim, width)),
                Values::Bf16(v) => Values::Bf16(halves_from_pairs(&v, heads, config.head_dim, width)),
                Values::F16(v) => Values::F16(halves_from_pairs(&v, heads, config.head_dim, width)),
            }
        } else {
            values
        };
        Ok(Tensor { shape: place.part, values })
    }
}

/// Moves row `2 i + j` of each head to row `j * head_dim / 2 + i`.
fn halves_from_pairs<T: Copy>(rows: &[T], heads: usize, head_dim: usize, width: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(rows.len());
    for head in 0..heads {
        for j in 0..2 {
            for i in 0..head_dim / 2 {
                let row = head * head_dim + 2 * i + j;
                out.extend_from_slice(rows.get(row * width..(row + 1) * width).unwrap_or_default());
            }
        }
    }
    out
}

/// Reads `count` elements from element `start` of a tensor: plain floats as they are, others dequantised.
fn read(
    file: &GgufFile,
    name: &str,
    tensor: &GgufTensor,
    start: usize,
    count: usize,
) -> Result<Values, CheckpointError> {
    let block = tensor.dtype.block_size();
    let size = tensor.dtype.type_size();
    if !start.is_multiple_of(block) || !count.is_multiple_of(block) {
        let what =
            format!("the part of tensor {name} from element {start} does not consist of whole blocks of {block}");
        return Err(CheckpointError::Malformed { path: file.path.clone(), what });
    }
    let offset = tensor.offset + (start / block * size) as u64;
    match tensor.dtype {
        GgmlDType::F32 => return Ok(Values::F32(read_values(&file.path, offset, count, f32::from_le_bytes)?)),
        GgmlDType::BF16 => return Ok(Values::Bf16(read_values(&file.path, offset, count, u16::from_le_bytes)?)),
        GgmlDType::F16 => return Ok(Values::F16(read_values(&file.path, offset, count, u16::from_le_bytes)?)),
        _ => {}
    }
    let io = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            CheckpointError::Truncated { path: file.path.clone(), what: format!("tensor {name} is no longer complete") }
        }
        _ => CheckpointError::io(&file.path, "it existed when the checkpoint was opened", e),
    };
    let failed = |e: candle_core::Error| CheckpointError::Malformed {
        path: file.path.clone(),
        what: format!("tensor {name} cannot be dequantised: {e}"),
    };
    let mut input = File::open(&file.path).map_err(io)?;
    input.seek(SeekFrom::Start(offset)).map_err(io)?;
    let mut values = Vec::with_capacity(count);
    let mut raw = vec![0u8; CHUNK.min(count) / block * size];
    while values.len() < count {
        let take = CHUNK.min(count - values.len());
        raw.truncate(take / block * size);
        input.read_exact(&mut raw).map_err(io)?;
        let storage = QStorage::from_data(Cow::Borrowed(&raw), &Device::Cpu, tensor.dtype).map_err(failed)?;
        let chunk = QTensor::new(storage, take).and_then(|t| t.dequantize(&Device::Cpu)).map_err(failed)?;
        values.extend(chunk.to_vec1::<f32>().map_err(failed)?);
    }
    Ok(Values::F32(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn un_permuting_inverts_the_converter() {
        // numpy: w.reshape(heads, 2, dim / 2, width).swapaxes(1, 2)
        let (heads, dim, width) = (2, 6, 2);
        let original: Vec<u32> = (0..(heads * dim * width) as u32).collect();
        let mut converted = Vec::new();
        for head in 0..heads {
            for i in 0..dim / 2 {
                for j in 0..2 {
                    let row = head * dim + j * (dim / 2) + i;
                    converted.extend_from_slice(&original[row * width..(row + 1) * width]);
                }
            }
        }
        assert_ne!(converted, original);
        assert_eq!(halves_from_pairs(&converted, heads, dim, width), original);
    }
}
