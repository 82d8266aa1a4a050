//! Tensors of a GGUF file, read and dequantised one at a time.
use super::super::hf::names::Place;
use super::super::layout::mxfp4_of_gguf;
use super::super::levels::iq4_nl_values;
use super::super::quantise::{PartBlockError, dequantise, widen};
use super::super::stored_values::read_values;
use super::super::{BlockType, CheckpointError, DecoderConfig, ElementType, LayerParameter, Parameter, Tensor, Values};
use super::arch::GgufArchitecture;
use super::file::{GgufFile, GgufTensor, GgufType};
use super::names;
use super::order::{column_order, latent_rows, row_order, take};
use super::rope::RopeTensors;
use candle_core::quantized::GgmlDType;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Elements dequantised at a time; a multiple of every block size.
const CHUNK: usize = 1 << 18;

/// The tensors of a file.
#[derive(Debug)]
pub(in crate::checkpoint) struct GgufWeights {
    arch: GgufArchitecture,
    file: GgufFile,
}

/// Returns the name of a file's quantisation: llama.cpp's name of `general.file_type`, else the type of most weights.
pub(in crate::checkpoint) fn quantisation(file: &GgufFile) -> String {
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
        Some(19) => "IQ2_XXS",
        Some(20) => "IQ2_XS",
        Some(21) => "Q2_K_S",
        Some(22) => "IQ3_XS",
        Some(23) => "IQ3_XXS",
        Some(25) => "IQ4_NL",
        Some(26) => "IQ3_S",
        Some(27) => "IQ3_M",
        Some(28) => "IQ2_S",
        Some(29) => "IQ2_M",
        Some(30) => "IQ4_XS",
        Some(32) => "BF16",
        Some(38) => "MXFP4_MOE",
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
pub(in crate::checkpoint) fn rope_tensors(file: &GgufFile) -> Result<RopeTensors, CheckpointError> {
    let read = |name: &str| -> Result<Option<Vec<f64>>, CheckpointError> {
        let Some(tensor) = file.tensors.get(name) else { return Ok(None) };
        let count: usize = tensor.shape.iter().product();
        // One number per pair of rotated dimensions: a large tensor is something else.
        if count > 1 << 16 {
            return Err(CheckpointError::WrongShape {
                tensor: name.to_string(),
                path: file.path_of(tensor).to_path_buf(),
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
    pub(in crate::checkpoint) fn new(
        mut file: GgufFile,
        arch: GgufArchitecture,
        config: &DecoderConfig,
    ) -> Result<GgufWeights, CheckpointError> {
        // The tokenizer has the vocabulary by now.
        file.metadata.clear();
        let weights = GgufWeights { arch, file };
        let mut used = BTreeSet::new();
        for (parameter, shape) in config.parameters() {
            match weights.latent_parts(config, parameter)? {
                Some(parts) => used.extend(parts.map(|(place, _)| place.tensor)),
                None => used.extend([weights.place(config, parameter, &shape)?.0.tensor]),
            }
        }
        let has = |name: &str| weights.file.tensors.contains_key(name);
        let mut names = weights.file.tensors.keys();
        let extra = names.find(|name| !used.contains(*name) && !names::is_redundant(name, config, &has));
        if let Some(name) = extra {
            let what = format!(
                "tensor {name} has no place in architecture {}, so the model computes something else",
                config.architecture
            );
            return Err(CheckpointError::Malformed { path: weights.file.path, what });
        }
        Ok(weights)
    }

    /// Returns the tensor of a parameter and its file.
    pub(in crate::checkpoint) fn source(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Option<String> {
        let (place, tensor) = self.place(config, parameter, shape).ok()?;
        Some(format!("tensor {} in {}", place.tensor, self.file.path_of(tensor).display()))
    }

    fn place(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<(Place, &GgufTensor), CheckpointError> {
        self.first_of(names::places(self.arch, config, parameter, shape), parameter)
    }

    /// Returns the first place that the file has, after checking its shape.
    fn first_of(&self, places: Vec<Place>, parameter: Parameter) -> Result<(Place, &GgufTensor), CheckpointError> {
        let usual = places.first().map(|p| p.tensor.clone()).unwrap_or_default();
        for place in places {
            let Some(tensor) = self.file.tensors.get(&place.tensor) else { continue };
            // A matrix of a single row is a vector in some files.
            let is_row = matches!(place.whole[..], [1, width] if tensor.shape == [width]);
            if tensor.shape != place.whole && !is_row {
                return Err(CheckpointError::WrongShape {
                    tensor: place.tensor,
                    path: self.file.path_of(tensor).to_path_buf(),
                    found: tensor.shape.clone(),
                    expected: place.whole,
                });
            }
            return Ok((place, tensor));
        }
        let path = self.file.path.clone();
        Err(CheckpointError::TensorMissing { tensor: usual, parameter: parameter.to_string(), path })
    }

    /// Returns the places of the two parts of a projection from the latent vector of keys and values; none if it is one tensor.
    fn latent_parts(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
    ) -> Result<Option<[(Place, &GgufTensor); 2]>, CheckpointError> {
        let Some([keys, values]) = names::latent_parts(config, parameter) else { return Ok(None) };
        let whole = keys.tensor.replace("attn_k_b", "attn_kv_b");
        if self.file.tensors.contains_key(&whole) {
            return Ok(None);
        }
        Ok(Some([self.first_of(vec![keys], parameter)?, self.first_of(vec![values], parameter)?]))
    }

    /// Returns the type of a parameter's values as read: quantised ones are dequantised to f32.
    pub(in crate::checkpoint) fn held_as(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> ElementType {
        match self.place(config, parameter, shape).map(|(_, tensor)| tensor.dtype) {
            // MXFP4 is read as bfloat16, which has its values.
            Ok(GgufType::Ggml(GgmlDType::BF16) | GgufType::Mxfp4) => ElementType::Bf16,
            Ok(GgufType::Ggml(GgmlDType::F16)) => ElementType::F16,
            _ => ElementType::F32,
        }
    }

    /// Returns the type of a matrix's blocks, if [`GgufWeights::blocks`] supports it.
    pub(in crate::checkpoint) fn block_type(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Option<BlockType> {
        let (place, tensor) = self.place(config, parameter, shape).ok()?;
        // A row must consist of whole blocks.
        let block = tensor.dtype.block_size();
        let whole = place.part.get(1).is_some_and(|k| k.is_multiple_of(block)) && place.start.is_multiple_of(block);
        let kind = match tensor.dtype {
            GgufType::Ggml(dtype) => BlockType::of(dtype)?,
            GgufType::Mxfp4 => BlockType::Mxfp4,
            GgufType::Iq4Nl => BlockType::Iq4Nl,
            GgufType::Iq(kind) => BlockType::Levels(kind.levels()),
        };
        Some(kind).filter(|_| whole && column_order(config, parameter, 1).is_none())
    }

    /// Reads a matrix's blocks, rows in the engine's order; unchanged but for those with codebooks, which become levels.
    pub(in crate::checkpoint) fn blocks(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<Vec<u8>, CheckpointError> {
        let (place, tensor) = self.place(config, parameter, shape)?;
        let (block, size) = (tensor.dtype.block_size(), tensor.dtype.type_size());
        let count: usize = place.part.iter().product();
        let offset = tensor.offset + (place.start / block * size) as u64;
        let bytes = read_values(self.file.path_of(tensor), offset, count / block * size, |[byte]: [u8; 1]| byte)?;
        let row = place.part.get(1).copied().unwrap_or(block) / block * size;
        let rows = place.part.first().copied().unwrap_or(1);
        let bytes = match row_order(self.arch, config, parameter, rows) {
            Some(order) => take(&bytes, &order, row),
            None => bytes,
        };
        Ok(match tensor.dtype {
            GgufType::Iq(kind) => kind.blocks(&bytes),
            GgufType::Ggml(_) | GgufType::Mxfp4 | GgufType::Iq4Nl => bytes,
        })
    }

    /// Files of the weights.
    pub(in crate::checkpoint) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.file.paths()
    }

    pub(in crate::checkpoint) fn tensor(
        &self,
        config: &DecoderConfig,
        parameter: Parameter,
        shape: &[usize],
    ) -> Result<Tensor, CheckpointError> {
        if let Some([keys, values]) = self.latent_parts(config, parameter)? {
            let read = |(place, tensor): (Place, &GgufTensor)| {
                read(&self.file, &place.tensor, tensor, 0, place.part.iter().product()).map(widen)
            };
            let rows = latent_rows(config, &read(keys)?, &read(values)?);
            return Ok(Tensor { shape: shape.to_vec(), values: Values::F32(rows) });
        }
        let (place, tensor) = self.place(config, parameter, shape)?;
        let count = place.part.iter().product();
        let mut values = read(&self.file, &place.tensor, tensor, place.start, count)?;
        // The converter reorders rows; the engine rotates halves, as most original checkpoints do.
        let (rows, width) = (place.part.first().copied().unwrap_or(1), place.part.get(1).copied().unwrap_or(1));
        if let Some(order) = row_order(self.arch, config, parameter, rows) {
            values = take_values(values, &order, width);
        }
        if let Some((order, run)) = column_order(config, parameter, rows) {
            values = take_values(values, &order, run);
        }
        if matches!(parameter, Parameter::Layer(_, LayerParameter::LinearDecayLog)) {
            // The file has the decay itself, `-exp` of the logarithm.
            values = Values::F32(widen(values).into_iter().map(|a| libm::log(-f64::from(a)) as f32).collect());
        }
        Ok(Tensor { shape: place.part, values })
    }
}

fn take_values(values: Values, order: &[usize], width: usize) -> Values {
    match values {
        Values::F32(v) => Values::F32(take(&v, order, width)),
        Values::Bf16(v) => Values::Bf16(take(&v, order, width)),
        Values::F16(v) => Values::F16(take(&v, order, width)),
    }
}

/// Reads `count` elements from element `start` of a tensor: plain floats as they are, others dequantised.
fn read(
    file: &GgufFile,
    name: &str,
    tensor: &GgufTensor,
    start: usize,
    count: usize,
) -> Result<Values, CheckpointError> {
    let path = file.path_of(tensor);
    let block = tensor.dtype.block_size();
    let size = tensor.dtype.type_size();
    if !start.is_multiple_of(block) || !count.is_multiple_of(block) {
        let what =
            format!("the part of tensor {name} from element {start} does not consist of whole blocks of {block}");
        return Err(CheckpointError::Malformed { path: path.to_path_buf(), what });
    }
    let offset = tensor.offset + (start / block * size) as u64;
    let dtype = match tensor.dtype {
        GgufType::Mxfp4 => {
            return Ok(Values::Bf16(mxfp4_of_gguf(&read_values(path, offset, count / block, |b| b)?)));
        }
        GgufType::Iq4Nl | GgufType::Iq(_) => {
            let bytes = read_values(path, offset, count / block * size, |[byte]: [u8; 1]| byte)?;
            return Ok(Values::F32(match tensor.dtype {
                GgufType::Iq(kind) => kind.levels().values(&kind.blocks(&bytes)),
                _ => iq4_nl_values(&bytes),
            }));
        }
        GgufType::Ggml(dtype) => dtype,
    };
    match dtype {
        GgmlDType::F32 => return Ok(Values::F32(read_values(path, offset, count, f32::from_le_bytes)?)),
        GgmlDType::BF16 => return Ok(Values::Bf16(read_values(path, offset, count, u16::from_le_bytes)?)),
        GgmlDType::F16 => return Ok(Values::F16(read_values(path, offset, count, u16::from_le_bytes)?)),
        _ => {}
    }
    let io = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => CheckpointError::Truncated {
            path: path.to_path_buf(),
            what: format!("tensor {name} is no longer complete"),
        },
        _ => CheckpointError::io(path, "it existed when the checkpoint was opened", e),
    };
    let failed = |e: PartBlockError| CheckpointError::Malformed {
        path: path.to_path_buf(),
        what: format!("tensor {name} cannot be dequantised: {e}"),
    };
    let mut input = earnest_digest::input::open(path).map_err(io)?;
    input.seek(SeekFrom::Start(offset)).map_err(io)?;
    let mut values = Vec::with_capacity(count);
    let mut raw = vec![0u8; CHUNK.min(count) / block * size];
    while values.len() < count {
        let take = CHUNK.min(count - values.len());
        raw.truncate(take / block * size);
        input.read_exact(&mut raw).map_err(io)?;
        values.extend(dequantise(&raw, dtype).map_err(failed)?);
    }
    Ok(Values::F32(values))
}
