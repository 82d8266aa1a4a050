//! Opening checkpoints and reading their tensors.
use super::gguf;
use super::gguf::arch::GgufArchitecture;
use super::gguf::file::GgufFile;
use super::gguf::weights::GgufWeights;
use super::hf;
use super::hf::config::NamedIds;
use super::hf::quant::Quantisation;
use super::hf::weights::HfWeights;
use super::random::RandomWeights;
use super::{
    BlockType, ChatTemplate, CheckpointError, DecoderConfig, ElementType, GenerationDefaults, KvType, MemoryEstimate,
    PRE_TOKENIZER_KEY, Parameter, PassedKeys, SuppliedPreTokenizer, Tensor, Tokenizer, WeightFormat, WeightRecord,
    elsewhere, json_fields, mistralrs_knows, named_pre_tokenizer,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A checkpoint's file format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A Hugging Face folder.
    Safetensors,
    /// A GGUF file.
    Gguf {
        /// Name of its quantisation, e.g. `Q4_K_M`.
        quantisation: String,
    },
}

/// An open checkpoint: everything but the tensors' data, which [`Checkpoint::tensor`] reads.
#[derive(Debug)]
pub struct Checkpoint {
    /// Path of the folder or file.
    pub source: PathBuf,
    /// File format.
    pub format: Format,
    /// Decoder configuration.
    pub config: DecoderConfig,
    pub tokenizer: Tokenizer,
    /// Chat template, if the checkpoint has one.
    pub chat_template: Option<ChatTemplate>,
    /// End-of-sequence ids and recommended sampling.
    pub generation: GenerationDefaults,
    /// Of a folder; a GGUF file's is part of its format.
    pub(super) quantisation: Option<Quantisation>,
    /// Configuration keys that are not part of the decoder.
    pub passed_keys: PassedKeys,
    /// Pre-tokenizer that the file does not name in a way that is known here.
    pub pre_tokenizer: Option<SuppliedPreTokenizer>,
    /// Pre-tokenizer that the file names.
    pub(super) own_pre_tokenizer: Option<String>,
    pub(super) shapes: HashMap<Parameter, Vec<usize>>,
    pub(super) metadata_files: Vec<PathBuf>,
    pub(super) weights: Weights,
    pub(super) weight_format: WeightFormat,
}

#[derive(Debug)]
pub(super) enum Weights {
    Hf(HfWeights),
    Gguf(GgufWeights),
    /// Random weights, without a file.
    Random(RandomWeights),
    /// Not opened.
    Absent,
}

/// Returns the GGUF file or folder whose name is most like that of a path where nothing is.
fn near(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_string_lossy().to_lowercase();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let models = entries.filter(|entry| {
        let path = entry.path();
        path.extension().is_some_and(|ending| ending == "gguf") || path.join("config.json").is_file()
    });
    let away = |name: &str| strsim::levenshtein(&wanted, &name.to_lowercase());
    let named = models.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let (away, near) = named.map(|name| (away(&name), name)).min()?;
    (away <= 1 + wanted.chars().count() / 5).then(|| path.with_file_name(near))
}

/// Files of a folder in addition to the weights; some are optional.
pub const METADATA_FILES: [&str; 5] =
    ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];

impl Checkpoint {
    /// Opens a folder (config.json, tokenizer.json, safetensors) or a `.gguf` file. Reads headers and metadata and checks that every
    /// tensor of the configuration exists in its shape; reads no tensor data.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn open(path: &Path) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::open_allowing(path, &[])
    }

    /// Opens a checkpoint as [`Checkpoint::open`] does, and lets the configuration keys of `allow` through if they are unknown:
    /// [`Checkpoint::passed_keys`] says which. `tokenizer.ggml.pre=NAME` among them names the pre-tokenizer of a GGUF file that
    /// names none.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn open_allowing(path: &Path, allow: &[String]) -> Result<Checkpoint, CheckpointError> {
        named_pre_tokenizer(allow)?;
        let metadata = std::fs::metadata(path).map_err(|e| {
            let advice = match near(path) {
                Some(near) => format!("did you mean {}?", near.display()),
                None => "name a checkpoint folder or a .gguf file, or fetch the model first".to_owned(),
            };
            CheckpointError::io(path, &advice, e)
        })?;
        if metadata.is_dir() { Checkpoint::open_folder(path, true, allow) } else { Checkpoint::open_file(path, allow) }
    }

    /// Opens a checkpoint for a model that runs elsewhere. A folder's weights are not opened, so config.json and tokenizer.json
    /// suffice, and of a decoder that is not supported only the sizes of vocabulary and context are read; [`Checkpoint::tensor`] then
    /// always fails. Unknown configuration keys of `allow` are let through.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn open_without_weights(path: &Path, allow: &[String]) -> Result<Checkpoint, CheckpointError> {
        if !path.is_dir() {
            return Checkpoint::open_allowing(path, allow);
        }
        match Checkpoint::open_folder(path, false, allow) {
            Err(
                CheckpointError::UnknownArchitecture { .. }
                | CheckpointError::Feature { .. }
                | CheckpointError::Field { .. },
            ) => Checkpoint::open_foreign(path, Vec::new()),
            opened => opened,
        }
    }

    /// Opens a checkpoint for `--engine mistralrs`: as [`Checkpoint::open_allowing`], and without the weights if only mistral.rs has
    /// the architecture.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn open_for_mistralrs(path: &Path, allow: &[String]) -> Result<Checkpoint, CheckpointError> {
        match Checkpoint::open_allowing(path, allow) {
            Err(
                CheckpointError::UnknownArchitecture { found, .. }
                | CheckpointError::Feature { architecture: found, .. },
            ) if path.is_dir() && mistralrs_knows(&found) => Checkpoint::open_foreign(path, weight_files(path)?),
            opened => opened,
        }
    }

    fn open_folder(folder: &Path, with_weights: bool, allow: &[String]) -> Result<Checkpoint, CheckpointError> {
        let hf::config::Read { config, family, ids, quantisation, passed } = hf::config::read(folder, allow)?;
        let mut checkpoint = Checkpoint::beside_weights(folder, config, &ids)?;
        if with_weights {
            let weights = HfWeights::open(folder, family, &mut checkpoint.config, quantisation.clone())?;
            checkpoint.weights = Weights::Hf(weights);
        }
        checkpoint.shapes = checkpoint.config.parameters().into_iter().collect();
        checkpoint.quantisation = quantisation;
        checkpoint.passed_keys = passed;
        Ok(checkpoint)
    }

    /// Opens a folder of any architecture; `files` are its weights, which are not read.
    fn open_foreign(folder: &Path, files: Vec<PathBuf>) -> Result<Checkpoint, CheckpointError> {
        let (config, ids) = elsewhere::read(folder)?;
        let mut checkpoint = Checkpoint::beside_weights(folder, config, &ids)?;
        checkpoint.metadata_files.extend(files);
        Ok(checkpoint)
    }

    /// Opens what a folder has beside its weights.
    fn beside_weights(folder: &Path, config: DecoderConfig, ids: &NamedIds) -> Result<Checkpoint, CheckpointError> {
        let tokenizer_config = json_fields::read_optional_object(&folder.join("tokenizer_config.json"))?;
        let generation = GenerationDefaults::from_folder(folder, &ids.eos)?;
        let tokenizer = Tokenizer::from_folder(folder, tokenizer_config.as_ref(), ids.bos, config.vocab_size)?;
        let generation = generation.complete(folder, &tokenizer, config.vocab_size)?;
        let chat_template = ChatTemplate::from_folder(folder, tokenizer_config.as_ref())?;
        chat_template.as_ref().map_or(Ok(()), ChatTemplate::check)?;
        Ok(Checkpoint {
            source: folder.to_path_buf(),
            format: Format::Safetensors,
            quantisation: None,
            shapes: HashMap::new(),
            config,
            tokenizer,
            chat_template,
            generation,
            passed_keys: PassedKeys::default(),
            pre_tokenizer: None,
            own_pre_tokenizer: None,
            metadata_files: METADATA_FILES.iter().map(|f| folder.join(f)).filter(|f| f.is_file()).collect(),
            weights: Weights::Absent,
            weight_format: WeightFormat::default(),
        })
    }

    fn open_file(path: &Path, allow: &[String]) -> Result<Checkpoint, CheckpointError> {
        let file = GgufFile::open(path)?;
        let arch = GgufArchitecture::of(&file)?;
        let (config, passed) = gguf::config::read(&file, arch, gguf::weights::rope_tensors(&file)?, allow)?;
        let (tokenizer, pre_tokenizer) = gguf::tokenizer::build(&file, config.vocab_size, allow)?;
        let generation = GenerationDefaults::from_gguf(&file).complete(path, &tokenizer, config.vocab_size)?;
        let template = file.text("tokenizer.chat_template").map(|source| {
            let text = |id: Option<u32>| id.and_then(|id| tokenizer.token(id));
            let name = format!("tokenizer.chat_template of {}", path.display());
            ChatTemplate::new(name, source.to_string(), text(tokenizer.bos()), text(tokenizer.eos()))
        });
        template.as_ref().map_or(Ok(()), ChatTemplate::check)?;
        let quantisation = gguf::weights::quantisation(&file);
        // Other vocabularies are not split.
        let splits = file.text("tokenizer.ggml.model") == Some("gpt2");
        let own_pre_tokenizer = file.text(PRE_TOKENIZER_KEY).filter(|_| splits).map(str::to_owned);
        Ok(Checkpoint {
            source: path.to_path_buf(),
            format: Format::Gguf { quantisation },
            quantisation: None,
            shapes: config.parameters().into_iter().collect(),
            weights: Weights::Gguf(GgufWeights::new(file, arch, &config)?),
            config,
            tokenizer,
            chat_template: template,
            generation,
            passed_keys: passed,
            pre_tokenizer,
            own_pre_tokenizer,
            metadata_files: Vec::new(),
            weight_format: WeightFormat::default(),
        })
    }

    /// Reads one tensor, which must have this shape.
    ///
    /// Fused tensors are split here (only the needed rows are read), Gemma's norm weights are returned as `1 + w` in f32, and
    /// quantised values are dequantised to f32.
    ///
    /// # Errors
    /// [`CheckpointError::TensorMissing`], [`CheckpointError::WrongShape`], and those of reading the file.
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
            Weights::Random(weights) => Ok(weights.tensor(p, shape)),
            Weights::Absent => {
                let tensor = format!("{p:?}");
                Err(CheckpointError::TensorMissing { tensor, parameter: p.to_string(), path: self.source.clone() })
            }
        }?;
        self.weight_format.apply(p, tensor)
    }

    /// Returns the tensor of the file that holds a parameter, and the file, for messages; the file alone if the tensor is not known.
    pub fn source_of(&self, p: Parameter) -> String {
        let place = self.shapes.get(&p).and_then(|shape| match &self.weights {
            Weights::Hf(weights) => weights.source(&self.config, p, shape),
            Weights::Gguf(weights) => weights.source(&self.config, p, shape),
            Weights::Random(_) | Weights::Absent => None,
        });
        place.unwrap_or_else(|| self.source.display().to_string())
    }

    /// Returns the type of a matrix's blocks, from the file or quantised at load; none if [`Checkpoint::blocks`] does not support it.
    pub fn block_type(&self, p: Parameter, shape: &[usize]) -> Option<BlockType> {
        if !self.weight_format.keeps_values() {
            return self.weight_format.block_type(p, shape);
        }
        match &self.weights {
            Weights::Gguf(weights) => weights.block_type(&self.config, p, shape),
            Weights::Hf(weights) => weights.block_type(&self.config, p, shape),
            Weights::Random(_) | Weights::Absent => None,
        }
    }

    /// Reads a matrix's blocks, row by row; dequantised, they are the values of [`Checkpoint::tensor`].
    ///
    /// # Errors
    /// [`CheckpointError::TensorMissing`] without a [`Checkpoint::block_type`], and those of reading the file.
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
            Weights::Gguf(weights) if self.weight_format.keeps_values() => weights.blocks(&self.config, p, shape),
            Weights::Hf(weights) if self.weight_format.keeps_values() => {
                weights.blocks(&self.config, p, shape)?.ok_or_else(missing)
            }
            Weights::Gguf(weights) => self.weight_format.blocks(p, weights.tensor(&self.config, p, shape)?),
            Weights::Hf(weights) => self.weight_format.blocks(p, weights.tensor(&self.config, p, shape)?),
            Weights::Random(weights) => self.weight_format.blocks(p, weights.tensor(p, shape)),
            Weights::Absent => Err(missing()),
        }
    }

    /// Returns the group of each input of a matrix in [`BlockType::GroupedRow`]s.
    ///
    /// # Errors
    /// [`CheckpointError::TensorMissing`] for other matrices, and those of reading the file.
    pub fn groups_of_inputs(&self, p: Parameter, shape: &[usize]) -> Result<Vec<u32>, CheckpointError> {
        let is_known = self.shapes.get(&p).is_some_and(|known| known == shape);
        let groups = match &self.weights {
            Weights::Hf(weights) if is_known && self.weight_format.keeps_values() => {
                weights.groups_of_inputs(&self.config, p, shape)?
            }
            Weights::Hf(_) | Weights::Gguf(_) | Weights::Random(_) | Weights::Absent => None,
        };
        groups.ok_or_else(|| CheckpointError::TensorMissing {
            tensor: format!("{p:?}"),
            parameter: format!("{p}, in groups of inputs"),
            path: self.source.clone(),
        })
    }

    /// Sets the quantisation or rounding that [`Checkpoint::tensor`] applies from now on; to an evaluation, this is another model.
    pub fn set_weight_format(&mut self, format: WeightFormat) {
        self.weight_format = format;
    }

    /// True if the native engine lacks the architecture, so that only prompts can be made here.
    pub fn is_foreign(&self) -> bool {
        self.config.layers.is_empty()
    }

    /// True if the files' own weights are quantised.
    pub fn is_quantised(&self) -> bool {
        self.quantisation().is_some()
    }

    /// Name of the pre-tokenizer that a GGUF file gives itself; none of other files.
    pub fn own_pre_tokenizer(&self) -> Option<&str> {
        self.own_pre_tokenizer.as_deref()
    }

    /// Name of the quantisation of the files' own weights, e.g. `Q4_K_M` or `awq 4-bit, groups of 128`; none for floats.
    pub fn quantisation(&self) -> Option<&str> {
        match &self.format {
            Format::Gguf { quantisation } => {
                Some(quantisation.as_str()).filter(|name| !["F32", "F16", "BF16"].contains(name))
            }
            Format::Safetensors => self.quantisation.as_ref().map(|quantisation| quantisation.name.as_str()),
        }
    }

    /// True if the files are meant for an engine that quantises activations, keys or values, too, which the native one does not.
    pub fn quantises_activations(&self) -> bool {
        self.quantisation.as_ref().is_some_and(|quantisation| quantisation.of_activations)
    }

    /// True if products with this parameter, a matrix of `width` input columns, are computed in 8-bit integers.
    pub fn computes_int8(&self, p: Parameter, width: usize) -> bool {
        self.weight_format.computes_int8(p, width)
    }

    /// True if products with this parameter, a matrix, are computed in bf16.
    pub fn computes_bf16(&self, p: Parameter) -> bool {
        self.weight_format.computes_bf16(p)
    }

    /// True if products with this parameter, a matrix of `width` input columns, are computed in 8-bit floats.
    pub fn computes_fp8(&self, p: Parameter, width: usize) -> bool {
        self.weight_format.computes_fp8(p, width)
    }

    /// Reads the scales of a matrix that the files have in E4M3, one for each 128 columns of each row: with them its values are codes times
    /// scales, exactly as stored. None for other matrices, scales that change within 128 columns, and values that are quantised again.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn e4m3_scales(&self, p: Parameter, shape: &[usize]) -> Result<Option<Vec<f32>>, CheckpointError> {
        match &self.weights {
            Weights::Hf(weights) if self.weight_format.keeps_values() => weights.e4m3_scales(&self.config, p, shape),
            Weights::Hf(_) | Weights::Gguf(_) | Weights::Random(_) | Weights::Absent => Ok(None),
        }
    }

    /// True if products with this parameter round their activations to 8 bits where the matrix is in blocks.
    pub fn rounds_activations(&self, p: Parameter) -> bool {
        self.weight_format.rounds_activations(p)
    }

    /// The format set by [`Checkpoint::set_weight_format`].
    pub fn weight_format(&self) -> WeightFormat {
        self.weight_format
    }

    /// Returns a record of the quantised parameters; none if weights are those of the files.
    pub fn weight_record(&self) -> Option<WeightRecord> {
        (!self.weight_format.is_plain()).then(|| self.weight_format.record(&self.config))
    }

    /// Estimates the memory of the native engine; without weights, as if they were f32.
    pub fn memory(&self) -> MemoryEstimate {
        let memory = MemoryEstimate::with(&self.config, |p, shape| {
            let stored = match &self.weights {
                Weights::Hf(weights) => weights.held_as(&self.config, p, shape),
                Weights::Gguf(weights) => weights.held_as(&self.config, p, shape),
                Weights::Random(_) => ElementType::Bf16,
                Weights::Absent => ElementType::F32,
            };
            self.weight_format.size_bytes(p, shape, stored, self.block_type(p, shape))
        });
        match self.weight_format.kv {
            _ if self.weight_format.is_int8() => memory.with_int8_cache(&self.config),
            Some(KvType::Bf16) => MemoryEstimate { kv_per_token: memory.kv_per_token / 2, ..memory },
            None => memory,
        }
    }

    /// True if this decoder has the parameter; a tied head, for example, is not one.
    pub fn has(&self, p: Parameter) -> bool {
        self.shapes.contains_key(&p)
    }

    /// Returns every file that was or will be read, for hashing.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = self.metadata_files.clone();
        match &self.weights {
            Weights::Hf(weights) => files.extend(weights.files().cloned()),
            Weights::Gguf(weights) => files.extend(weights.files().cloned()),
            Weights::Random(_) | Weights::Absent => {}
        }
        files
    }
}

/// Returns the safetensors files of a folder, sorted, with their index.
fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let failed = |error| CheckpointError::io(folder, "fetch the checkpoint again", error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".safetensors") || name == "model.safetensors.index.json" {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        let advice = "it and no other safetensors file is in the folder; fetch the checkpoint again".to_owned();
        return Err(CheckpointError::FileMissing { path: folder.join("model.safetensors"), advice });
    }
    Ok(files)
}
