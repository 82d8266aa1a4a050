//! Checkpoint folders of trained models, in Hugging Face's layout.
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;

use candle_core::{DType, Tensor};
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tokenizer::{BEGIN, END, PAD, SPECIAL};
use super::{NumberTokenizer, TrainError};
use earnest_models::checkpoint::{DecoderConfig, Norm, Position};

/// Element type of stored tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredType {
    /// 32-bit float, as trained.
    #[default]
    F32,
    /// bfloat16: half the size, 8 bits of significand.
    Bf16,
    /// float16: half the size, 11 bits of significand.
    F16,
}

impl StoredType {
    pub(crate) fn dtype(self) -> DType {
        match self {
            StoredType::F32 => DType::F32,
            StoredType::Bf16 => DType::BF16,
            StoredType::F16 => DType::F16,
        }
    }

    /// Returns the short name: f32, bf16 or f16.
    pub fn name(self) -> &'static str {
        self.dtype().as_str()
    }

    /// Returns the name in a `config.json`.
    pub(crate) fn config_name(self) -> &'static str {
        match self {
            StoredType::F32 => "float32",
            StoredType::Bf16 => "bfloat16",
            StoredType::F16 => "float16",
        }
    }

    /// Returns the bytes of a tensor's values in this type.
    pub(crate) fn bytes(self, tensor: &Tensor) -> candle_core::Result<Vec<u8>> {
        let flat = tensor.to_dtype(self.dtype())?.flatten_all()?;
        Ok(match self {
            StoredType::F32 => flat.to_vec1::<f32>()?.into_iter().flat_map(f32::to_le_bytes).collect(),
            StoredType::Bf16 => flat.to_vec1::<half::bf16>()?.into_iter().flat_map(half::bf16::to_le_bytes).collect(),
            StoredType::F16 => flat.to_vec1::<half::f16>()?.into_iter().flat_map(half::f16::to_le_bytes).collect(),
        })
    }
}

/// Writes `model.safetensors`, `config.json`, `generation_config.json`, `tokenizer.json` and `tokenizer_config.json`, each
/// atomically.
///
/// # Errors
/// [`TrainError::File`], [`TrainError::Tensor`].
pub fn write_model<'a>(
    folder: &Path,
    config: &DecoderConfig,
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    tokenizer: &NumberTokenizer,
    stored: StoredType,
) -> Result<(), TrainError> {
    std::fs::create_dir_all(folder).map_err(|source| TrainError::File { path: folder.to_owned(), source })?;
    let text = |value: &Value| format!("{value:#}\n").into_bytes();
    write_atomic(&folder.join("tokenizer.json"), &text(tokenizer.json()))?;
    write_atomic(&folder.join("tokenizer_config.json"), &text(&tokenizer_config(config)))?;
    write_atomic(&folder.join("generation_config.json"), &text(&generation_config()))?;
    write_atomic(&folder.join("config.json"), &text(&config_json(config, stored)))?;
    write_atomic(&folder.join("model.safetensors"), &safetensors_bytes(tensors, stored)?)
}

/// Writes a file atomically, by way of a `.part` file that is renamed: readers, and the disk after a power cut, have the old or
/// the new content.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), TrainError> {
    let failed = |source| TrainError::File { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut file = File::create(&part).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    drop(file);
    std::fs::rename(&part, path).map_err(failed)?;
    sync_folder(path).map_err(failed)
}

/// Syncs the directory entries of a file's folder to disk.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    // Other systems cannot open a folder as a file.
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Locks a folder for this process until the file is dropped. Experiments lock the folders of their trainings with the same
/// file.
///
/// # Errors
/// [`TrainError::Busy`] if another process holds the lock; [`TrainError::File`].
pub fn lock_folder(folder: &Path) -> Result<File, TrainError> {
    std::fs::create_dir_all(folder).map_err(|source| TrainError::File { path: folder.to_owned(), source })?;
    let path = folder.join("lock");
    // Opened without emptying it: a folder that the user names may hold a file of this name.
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|source| TrainError::File { path: path.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(TrainError::Busy { path: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(TrainError::File { path, source }),
    }
}

/// Serialises tensors in the safetensors format, in alphabetical order.
pub(super) fn safetensors_bytes<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    stored: StoredType,
) -> Result<Vec<u8>, TrainError> {
    let mut contents: BTreeMap<String, (Vec<usize>, Vec<u8>)> = BTreeMap::new();
    for (name, tensor) in tensors {
        contents.insert(name.to_owned(), (tensor.dims().to_vec(), stored.bytes(tensor)?));
    }
    let views: Vec<(&str, TensorView<'_>)> = contents
        .iter()
        .map(|(name, (shape, bytes))| {
            let view = TensorView::new(stored.dtype().into(), shape.clone(), bytes);
            let view = view.expect("bytes were made for this shape");
            (name.as_str(), view)
        })
        .collect();
    // transformers requires this entry.
    let metadata = std::collections::HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize(views, Some(metadata)).map_err(|error| candle_core::Error::Msg(error.to_string()).into())
}

fn config_json(c: &DecoderConfig, stored: StoredType) -> Value {
    let eps = match c.norm {
        Norm::Rms { eps } | Norm::Layer { eps, .. } => eps,
    };
    let model_type = match c.architecture.as_str() {
        "SmolLM3ForCausalLM" => "smollm3",
        "EarnestAlibiForCausalLM" => "earnest_alibi",
        "EarnestReversedAlibiForCausalLM" => "earnest_reversed_alibi",
        _ => "llama",
    };
    let mut config = json!({
        "architectures": [c.architecture],
        "model_type": model_type,
        "vocab_size": c.vocab_size,
        "hidden_size": c.hidden_size,
        "intermediate_size": c.intermediate_size,
        "num_hidden_layers": c.layers.len(),
        "num_attention_heads": c.num_heads,
        "num_key_value_heads": c.num_kv_heads,
        "head_dim": c.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": c.max_positions,
        // The shortest decimal of the f32, not the digits of the f64.
        "rms_norm_eps": eps.to_string().parse::<f64>().unwrap_or(f64::from(eps)),
        "attention_bias": c.qkv_bias,
        "mlp_bias": c.mlp_bias,
        "tie_word_embeddings": c.tied_embeddings,
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "pad_token_id": PAD,
        "dtype": stored.config_name(),
    });
    if let Some(rope) = c.ropes.first().filter(|_| !model_type.ends_with("alibi")) {
        config["rope_theta"] = json!(rope.theta);
    }
    if model_type == "smollm3" {
        let rotated =
            |layer: &earnest_models::checkpoint::LayerConfig| u8::from(matches!(layer.position, Position::Rotary(_)));
        config["no_rope_layers"] = c.layers.iter().map(rotated).collect();
        config["use_sliding_window"] = json!(false);
    }
    config
}

fn generation_config() -> Value {
    json!({"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD, "do_sample": false})
}

fn tokenizer_config(c: &DecoderConfig) -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SPECIAL[PAD as usize],
        "bos_token": SPECIAL[BEGIN as usize],
        "eos_token": SPECIAL[END as usize],
        "clean_up_tokenization_spaces": false,
        "model_max_length": c.max_positions,
    })
}
