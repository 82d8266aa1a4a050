//! Configuration of checkpoints that the native engine cannot run, as a prompt for another one needs it.
use super::hf::config::NamedIds;
use super::json_fields::{self, Fields};
use super::{CheckpointError, DecoderConfig};
use serde_json::json;
use std::path::Path;

/// Reads what a prompt needs of a `config.json` of any architecture: its name, the sizes of vocabulary and context, and token ids.
/// The rest of the decoder is that of the smallest Llama, without layers: nothing computes with it.
pub(super) fn read(folder: &Path) -> Result<(DecoderConfig, NamedIds), CheckpointError> {
    let path = folder.join("config.json");
    let map = json_fields::read_object(&path, "a checkpoint folder holds config.json and tokenizer.json")?;
    let outer = Fields::new(&path, "", &map);
    let text = outer.object("text_config")?;
    let inner = text.as_ref().unwrap_or(&outer);
    let named =
        outer.value("architectures").and_then(|v| v.as_array()).and_then(|a| a.first()).and_then(|v| v.as_str());
    let architecture = named.or(outer.text("model_type")?).unwrap_or("(none named)").to_owned();
    let sizes = json!({
        "model_type": "llama",
        "hidden_size": 2,
        "intermediate_size": 1,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "vocab_size": inner.positive("vocab_size", None)?,
        "max_position_embeddings": inner.positive("max_position_embeddings", None)?,
    });
    let sizes = sizes.as_object().cloned().unwrap_or_default();
    let mut config = DecoderConfig::from_config_keys(&path, &sizes)?;
    config.architecture = architecture;
    config.layers.clear();
    let mut eos = outer.token_ids("eos_token_id")?;
    if let Some(text) = &text {
        eos.extend(text.token_ids("eos_token_id")?);
    }
    let bos = outer.token_ids("bos_token_id")?.first().copied();
    let bos = bos.or(inner.token_ids("bos_token_id")?.first().copied());
    Ok((config, NamedIds { bos, eos }))
}
