//! Checkpoints that the native engine cannot run: which other engine takes them, and what is read of them for it.
use super::hf_config::NamedIds;
use super::json_fields::{self, Fields};
use super::{CheckpointError, DecoderConfig};
use serde_json::json;
use std::path::Path;

/// Text decoders of mistral.rs 0.8.1 that the native engine may lack, by architecture and `model_type`
/// (`NormalLoaderType::from_causal_lm_name` in `pipeline/loaders/normal_loaders.rs`).
const MISTRALRS: [(&str, &str); 11] = [
    ("DeepseekV2ForCausalLM", "deepseek_v2"),
    ("DeepseekV3ForCausalLM", "deepseek_v3"),
    ("Glm4ForCausalLM", "glm4"),
    ("Glm4MoeForCausalLM", "glm4_moe"),
    ("Glm4MoeLiteForCausalLM", "glm4_moe_lite"),
    ("GptOssForCausalLM", "gpt_oss"),
    ("GraniteMoeHybridForCausalLM", "granitemoehybrid"),
    ("PhiMoEForCausalLM", "phimoe"),
    ("Qwen3MoeForCausalLM", "qwen3_moe"),
    ("Qwen3NextForCausalLM", "qwen3_next"),
    ("Starcoder2ForCausalLM", "starcoder2"),
];

/// True if mistral.rs loads this architecture (or `model_type`), whose answers nobody here compared with a reference.
pub fn mistralrs_knows(architecture: &str) -> bool {
    MISTRALRS.iter().any(|(name, kind)| [*name, *kind].contains(&architecture))
}

/// Returns the next step for a model that the native engine cannot run: the commands for other engines. `model` is what `--model`
/// takes, `family` its architecture or `model_type`.
pub(crate) fn next_step(model: &str, family: &str) -> String {
    let endpoint =
        "serve it with another program (vLLM, SGLang, llama.cpp) and run with `--engine openai --base-url URL`";
    match mistralrs_knows(family) {
        true => format!(
            "`--engine mistralrs --model {model}` tries it with mistral.rs, which has this architecture (not verified by us); or {endpoint}"
        ),
        false => endpoint.to_owned(),
    }
}

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
