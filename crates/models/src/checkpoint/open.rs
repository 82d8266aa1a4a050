//! A checkpoint, opened: everything known about it, and a reader of its tensors.
use super::gguf_config::{self, GgufArchitecture};
use super::gguf_file::GgufFile;
use super::gguf_weights::{self, GgufWeights};
use super::hf_weights::HfWeights;
use super::{
    BlockType, ChatTemplate, CheckpointError, DecoderConfig, ElementType, GenerationDefaults, MemoryEstimate,
    Parameter, Tensor, Tokenizer, WeightFormat, WeightRecord, gguf_tokenizer, hf_config, json_fields,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A checkpoint's file format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A Hugging Face folder.
    Safetensors,
    /// A GGUF file; `quantisation` is what its metadata calls itself, e.g. `Q4_K_M`.
    Gguf { quantisation: String },
}

/// A model's files, read but for the tensors' data.
#[derive(Debug)]
pub struct Checkpoint {
    /// The folder or file that was opened.
    pub source: PathBuf,
    /// Its format.
    pub format: Format,
    /// What the decoder computes.
    pub config: DecoderConfig,
    /// Text to ids and back.
    pub tokenizer: Tokenizer,
    /// How conversations are written, if the checkpoint says.
    pub chat_template: Option<ChatTemplate>,
    /// When generation ends, and recommended settings.
    pub generation: GenerationDefaults,
    shapes: HashMap<Parameter, Vec<usize>>,
    metadata_files: Vec<PathBuf>,
    weights: Weights,
    weight_format: WeightFormat,
}

#[derive(Debug)]
enum Weights {
    Hf(HfWeights),
    Gguf(GgufWeights),
    /// They were not looked for.
    Absent,
}

/// Files of a folder besides the weights, as far as they exist.
pub const METADATA_FILES: [&str; 5] =
    ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];

impl Checkpoint {
    /// Opens a folder (config.json, tokenizer.json, safetensors) or a `.gguf` file. Headers and metadata are read and
    /// checked, every tensor that the configuration implies is known to be there in its shape; no tensor data is read.
    pub fn open(path: &Path) -> Result<Checkpoint, CheckpointError> {
        let metadata = std::fs::metadata(path).map_err(|e| {
            CheckpointError::io(path, "name a checkpoint folder or a .gguf file, or fetch the model first", e)
        })?;
        if metadata.is_dir() { Checkpoint::open_folder(path, true) } else { Checkpoint::open_file(path) }
    }

    /// The same for a model that runs elsewhere: of a folder, the weights are neither needed nor read nor listed, so it may
    /// hold config.json and tokenizer.json only. [`Checkpoint::tensor`] finds nothing then.
    pub fn open_without_weights(path: &Path) -> Result<Checkpoint, CheckpointError> {
        if path.is_dir() { Checkpoint::open_folder(path, false) } else { Checkpoint::open(path) }
    }

    fn open_folder(folder: &Path, with_weights: bool) -> Result<Checkpoint, CheckpointError> {
        let (config, family, ids) = hf_config::read(folder)?;
        let tokenizer_config = json_fields::read_optional_object(&folder.join("tokenizer_config.json"))?;
        let generation = GenerationDefaults::from_folder(folder, &ids.eos)?;
        let tokenizer = Tokenizer::from_folder(folder, tokenizer_config.as_ref(), ids.bos, config.vocab_size)?;
        let generation = generation.complete(folder, &tokenizer, config.vocab_size)?;
        let chat_template = ChatTemplate::from_folder(folder, tokenizer_config.as_ref())?;
        let weights =
            if with_weights { Weights::Hf(HfWeights::open(folder, family, &config)?) } else { Weights::Absent };
        Ok(Checkpoint {
            source: folder.to_path_buf(),
            format: Format::Safetensors,
            shapes: config.parameters().into_iter().collect(),
            config,
            tokenizer,
            chat_template,
            generation,
            metadata_files: METADATA_FILES.iter().map(|f| folder.join(f)).filter(|f| f.is_file()).collect(),
            weights,
            weight_format: WeightFormat::default(),
        })
    }

    fn open_file(path: &Path) -> Result<Checkpoint, CheckpointError> {
        let file = GgufFile::open(path)?;
        let arch = GgufArchitecture::of(&file)?;
        let config = gguf_config::read(&file, arch, gguf_weights::rope_tensors(&file)?)?;
        let tokenizer = gguf_tokenizer::build(&file, config.vocab_size)?;
        let generation = GenerationDefaults::from_gguf(&file).complete(path, &tokenizer, config.vocab_size)?;
        let template = file.text("tokenizer.chat_template").map(|source| {
            let text = |id: Option<u32>| id.and_then(|id| tokenizer.token(id));
            let name = format!("tokenizer.chat_template of {}", path.display());
            ChatTemplate::new(name, source.to_string(), text(tokenizer.bos()), text(tokenizer.eos()))
        });
        let quantisation = gguf_weights::quantisation(&file);
        Ok(Checkpoint {
            source: path.to_path_buf(),
            format: Format::Gguf { quantisation },
            shapes: config.parameters().into_iter().collect(),
            weights: Weights::Gguf(GgufWeights::new(file, arch, &config)?),
            config,
            tokenizer,
            chat_template: template,
            generation,
            metadata_files: Vec::new(),
            weight_format: WeightFormat::default(),
        })
    }

    /// Reads one tensor. `shape` is what the caller expects; another shape is an error that names both.
    ///
    /// Fused tensors are split here (only the needed rows are read), Gemma's norm weights come as `1 + w` in f32, and
    /// quantised values are dequantised to f32.
    pub fn tensor(&self, p: Parameter, shape: &[usize]) -> Result<Tensor, CheckpointError> {
        let Some(known) = self.shapes.get(&p) else {
            let tensor = format!("{p:?}");
            return Err(CheckpointError::TensorMissing { tensor, parameter: p.to_string(), path: self.source.clone() });
        };
        if known != shape {
            return Err(CheckpointError::WrongShape {
                tensor: p.to_string(),
                path: self.source.clone(),
                found: known.clone(),
                expected: shape.to_vec(),
            });
        }
        let tensor = match &self.weights {
            Weights::Hf(weights) => weights.tensor(&self.config, p, shape),
            Weights::Gguf(weights) => weights.tensor(&self.config, p, shape),
            Weights::Absent => {
                let tensor = format!("{p:?}");
                Err(CheckpointError::TensorMissing { tensor, parameter: p.to_string(), path: self.source.clone() })
            }
        }?;
        self.weight_format.apply(p, tensor)
    }

    /// The type of the blocks that a matrix's values come in, if [`Checkpoint::blocks`] can give them: those of the file, or those
    /// that it is quantised to at load.
    pub fn block_type(&self, p: Parameter, shape: &[usize]) -> Option<BlockType> {
        if !self.weight_format.is_plain() {
            return self.weight_format.block_type(p, shape);
        }
        match &self.weights {
            Weights::Gguf(weights) => weights.block_type(&self.config, p, shape),
            Weights::Hf(_) | Weights::Absent => None,
        }
    }

    /// A matrix's blocks, row by row: dequantised, they are what [`Checkpoint::tensor`] gives. Only where there is a
    /// [`Checkpoint::block_type`].
    pub fn blocks(&self, p: Parameter, shape: &[usize]) -> Result<Vec<u8>, CheckpointError> {
        let missing = || CheckpointError::TensorMissing {
            tensor: format!("{p:?}"),
            parameter: format!("{p}, in blocks"),
            path: self.source.clone(),
        };
        if self.shapes.get(&p).is_none_or(|known| known != shape) {
            return Err(missing());
        }
        match &self.weights {
            Weights::Gguf(weights) if self.weight_format.is_plain() => weights.blocks(&self.config, p, shape),
            Weights::Gguf(weights) => self.weight_format.blocks(p, weights.tensor(&self.config, p, shape)?),
            Weights::Hf(weights) => self.weight_format.blocks(p, weights.tensor(&self.config, p, shape)?),
            Weights::Absent => Err(missing()),
        }
    }

    /// From now on [`Checkpoint::tensor`] gives quantised or rounded weights: for whoever loads it, another model.
    pub fn set_weight_format(&mut self, format: WeightFormat) {
        self.weight_format = format;
    }

    /// True if the files' own weights are quantised: those of a GGUF file that holds no floats.
    pub fn is_quantised(&self) -> bool {
        matches!(&self.format, Format::Gguf { quantisation } if !["F32", "F16", "BF16"].contains(&quantisation.as_str()))
    }

    /// Whether products with this parameter, a matrix of `width` input columns, are computed in 8-bit integers.
    pub fn computes_in_bytes(&self, p: Parameter, width: usize) -> bool {
        self.weight_format.in_bytes(p, width)
    }

    /// What [`Checkpoint::set_weight_format`] set.
    pub fn weight_format(&self) -> WeightFormat {
        self.weight_format
    }

    /// What is quantised and what is not; none if weights are those of the files.
    pub fn weight_record(&self) -> Option<WeightRecord> {
        (!self.weight_format.is_plain()).then(|| self.weight_format.record(&self.config))
    }

    /// Bytes that the native engine will hold. Where the weights were not looked for, as if they were of the widest type.
    pub fn memory(&self) -> MemoryEstimate {
        let memory = MemoryEstimate::with(&self.config, |p, shape| {
            let stored = match &self.weights {
                Weights::Hf(weights) => weights.held_as(&self.config, p, shape),
                Weights::Gguf(weights) => weights.held_as(&self.config, p, shape),
                Weights::Absent => ElementType::F32,
            };
            self.weight_format.bytes(p, shape, stored)
        });
        if self.weight_format.is_int8() { memory.cached_in_bytes(&self.config) } else { memory }
    }

    /// True if this decoder has the parameter; a tied head, for example, is none of its own.
    pub fn has(&self, p: Parameter) -> bool {
        self.shapes.contains_key(&p)
    }

    /// Every file that was or will be read, for hashing.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = self.metadata_files.clone();
        match &self.weights {
            Weights::Hf(weights) => files.extend(weights.files().cloned()),
            Weights::Gguf(weights) => files.push(weights.path().clone()),
            Weights::Absent => {}
        }
        files
    }
}
