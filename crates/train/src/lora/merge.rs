//! Merging: a base with its retrofits and adapters, as an ordinary Hugging Face folder.
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use candle_core::Tensor;
use serde_json::{Map, Value, json};

use super::config_keys::{config_keys, family};
use super::trainer::check_base;
use super::{AdapterFolder, Base};
use crate::TrainError;
use crate::folder::{StoredType, write_atomic};
use earnest_models::checkpoint::Format;

/// Largest of the files that are copied, in bytes.
const MOST_COPIED: u64 = 256 << 20;

/// Files besides weights and configuration, which are copied unchanged.
const COPIED_FILES: [&str; 8] = [
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "generation_config.json",
];

/// Summary of a merged folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Name of the architecture in `config.json`.
    pub architecture: String,
    /// Number of matrices with an adapter merged.
    pub adapted: usize,
    /// Size of the tensors in bytes.
    pub bytes: u64,
}

/// Writes the merged folder. Without adapters it holds the base alone, for instance a GGUF file converted to a folder.
///
/// # Errors
/// [`TrainError::Resume`] if the adapters belong to another base, [`TrainError::Architecture`] for a decoder that no `config.json`
/// can describe, [`TrainError::File`].
pub fn merge(
    base: &Base,
    adapters: Option<&AdapterFolder>,
    folder: &Path,
    stored: StoredType,
) -> Result<Merged, TrainError> {
    let checkpoint = base.checkpoint();
    if let Some(settings) = adapters.and_then(AdapterFolder::settings) {
        check_base(base, &settings.base)?;
    }
    let generation = &checkpoint.generation;
    let keys = config_keys(&checkpoint.config, &generation.eos_ids, checkpoint.tokenizer.bos(), stored)?;
    let deltas = adapters.map(|adapters| adapters.deltas(base)).transpose()?.unwrap_or_default();
    std::fs::create_dir_all(folder).map_err(|source| TrainError::File { path: folder.to_owned(), source })?;
    let json = |name: &str, value: &Value| write_atomic(&folder.join(name), format!("{value:#}\n").as_bytes());
    match checkpoint.format {
        Format::Safetensors => {
            for name in COPIED_FILES {
                let from = checkpoint.source.join(name);
                if from.is_file() {
                    let bytes = earnest_digest::input::read(&from, MOST_COPIED)
                        .map_err(|source| TrainError::File { path: from.clone(), source })?;
                    write_atomic(&folder.join(name), &bytes)?;
                }
            }
        }
        Format::Gguf { .. } => {
            json("tokenizer_config.json", &tokenizer_config(base))?;
            json("generation_config.json", &generation_config(base))?;
        }
    }
    if base.retrofit().single_digits {
        json("generation_config.json", &suppressing_long_numbers(base, folder)?)?;
    }
    if checkpoint.format == Format::Safetensors && !base.retrofit().single_digits {
        let from = checkpoint.source.join("tokenizer.json");
        let bytes = earnest_digest::input::read(&from, MOST_COPIED)
            .map_err(|source| TrainError::File { path: from.clone(), source })?;
        write_atomic(&folder.join("tokenizer.json"), &bytes)?;
    } else {
        json("tokenizer.json", &checkpoint.tokenizer.json()?)?;
    }
    let bytes = write_tensors(&folder.join("model.safetensors"), base, &deltas, stored)?;
    let architecture = keys.get("architectures").and_then(|names| names[0].as_str()).unwrap_or_default().to_owned();
    // Last: a folder with config.json is complete.
    json("config.json", &Value::Object(keys))?;
    Ok(Merged { architecture, adapted: deltas.len(), bytes })
}

/// Writes the tensors one at a time to bound memory, after the header, whose offsets are known in advance; returns their size in
/// bytes.
fn write_tensors(
    path: &Path,
    base: &Base,
    deltas: &std::collections::HashMap<String, Tensor>,
    stored: StoredType,
) -> Result<u64, TrainError> {
    let (dtype, width) = (stored.name().to_uppercase(), stored.dtype().size_in_bytes() as u64);
    let mut tensors: Vec<(&str, &[usize])> = base.tensors().collect();
    tensors.sort_unstable();
    let mut header = Map::new();
    // transformers requires this entry.
    header.insert("__metadata__".to_owned(), json!({"format": "pt"}));
    let mut end = 0u64;
    for (name, shape) in &tensors {
        let begin = end;
        end += shape.iter().map(|n| *n as u64).product::<u64>() * width;
        let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, end]});
        header.insert((*name).to_owned(), entry);
    }
    let mut header = Value::Object(header).to_string();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let offsets = family(&base.checkpoint().config)?.norms_are_offsets();
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let failed = |source| TrainError::File { path: path.to_owned(), source };
    let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(&part).map_err(failed)?);
    file.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
    file.write_all(header.as_bytes()).map_err(failed)?;
    for (name, _) in tensors {
        let mut tensor = base.tensor(name)?;
        if let Some(delta) = deltas.get(name) {
            tensor = (tensor + delta)?;
        } else if offsets && name.ends_with("norm.weight") {
            tensor = (tensor - 1.0)?;
        }
        file.write_all(&stored.bytes(&tensor)?).map_err(failed)?;
    }
    file.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
    std::fs::rename(&part, path).map_err(failed)?;
    Ok(end)
}

/// `tokenizer_config.json` for the tokenizer of a GGUF file.
fn tokenizer_config(base: &Base) -> Value {
    let tokenizer = &base.checkpoint().tokenizer;
    let token = |id: Option<u32>| id.and_then(|id| tokenizer.token(id));
    let mut config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": false,
        "model_max_length": base.checkpoint().config.max_positions,
    });
    for (key, token) in [("bos_token", token(tokenizer.bos())), ("eos_token", token(tokenizer.eos()))] {
        if let Some(token) = token {
            config[key] = json!(token);
        }
    }
    if let Some(template) = &base.checkpoint().chat_template {
        config["chat_template"] = json!(template.source());
    }
    config
}

/// `generation_config.json` for a base that has none.
fn generation_config(base: &Base) -> Value {
    let checkpoint = base.checkpoint();
    let mut config = json!({"eos_token_id": checkpoint.generation.eos_ids});
    if let Some(bos) = checkpoint.tokenizer.bos() {
        config["bos_token_id"] = json!(bos);
    }
    config
}

/// `generation_config.json` that suppresses tokens of several digits, as the paper's program does: training used none.
fn suppressing_long_numbers(base: &Base, folder: &Path) -> Result<Value, TrainError> {
    let path = folder.join("generation_config.json");
    let mut config = match earnest_digest::input::read_text(&path, earnest_digest::input::MOST_SETTINGS) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| TrainError::Resume { path: path.clone(), problem: error.to_string() })?,
        Err(_) => generation_config(base),
    };
    let tokenizer = &base.checkpoint().tokenizer;
    let has_several_digits = |id: &u32| {
        let text = tokenizer.decode(&[*id], true);
        text.as_bytes().windows(2).any(|pair| pair.iter().all(u8::is_ascii_digit))
    };
    let suppressed: Vec<u32> = (0..base.checkpoint().config.vocab_size as u32).filter(has_several_digits).collect();
    if !suppressed.is_empty() {
        config["suppress_tokens"] = json!(suppressed);
    }
    Ok(config)
}
