//! Translation of a Hugging Face `config.json` into a [`DecoderConfig`].
//!
//! Semantics and defaults are those of the configuration classes of `transformers` 5; the older spelling of the same
//! fields (`rope_theta` and `rope_scaling` instead of `rope_parameters`, no `layer_types`) is read as that library
//! reads it. Every key of the file is translated, listed here as irrelevant to inference, or rejected by name.
use super::hf_family::{Family, SUPPORTED};
use super::hf_quant::Quantisation;
use super::hf_rope;
use super::json_fields::{self, Fields};
use super::{Activation, BlockLayout, CheckpointError, DecoderConfig, Experts, LayerConfig, Norm, Position, Rope};
use std::path::Path;

/// Origin and purpose of the file.
const IDENTITY: &[&str] = &[
    "architectures",
    "model_type",
    "_name_or_path",
    "_model_name_or_path",
    "name_or_path",
    "_commit_hash",
    "transformers_version",
    "tokenizer_class",
    "auto_map",
    "is_llama_config",
    "unsloth_version",
    "unsloth_fixed",
    "transformers.js_config",
];
/// Precision of the file; tensors declare their own.
const PRECISION: &[&str] = &["torch_dtype", "dtype"];
/// Initialisation, dropout and losses. `pretraining_tp` splits matrix products without changing their result.
const TRAINING: &[&str] = &[
    "initializer_range",
    "attention_dropout",
    "resid_pdrop",
    "embd_pdrop",
    "hidden_dropout",
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "pretraining_tp",
];
/// Execution settings and outputs of other libraries.
const EXECUTION: &[&str] = &[
    "use_cache",
    "cache_implementation",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "chunk_size_feed_forward",
];
/// Token ids; [`super::generation`] reads the end-of-sequence ids, the tokenizer has the others.
const TOKENS: &[&str] = &["bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id"];
/// Generation settings that older checkpoints keep here: sampling defaults, which do not change what the model computes.
const GENERATION: &[&str] = &[
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "max_length",
    "max_new_tokens",
    "min_length",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "length_penalty",
    "diversity_penalty",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
];
/// Classifier heads, in files shared with a classifier.
const LABELS: &[&str] = &["id2label", "label2id", "problem_type"];
/// Images of Gemma 3; only its text decoder is read.
const IMAGES: &[&str] =
    &["vision_config", "boi_token_index", "eoi_token_index", "image_token_index", "mm_tokens_per_image"];

/// Largest accepted number of layers or experts, so that a hostile count cannot exhaust memory.
const MAX_LAYERS: usize = 4096;

/// Token ids that `config.json` names.
pub(super) struct NamedIds {
    pub(super) bos: Option<u32>,
    pub(super) eos: Vec<u32>,
}

/// Reads the configuration, the family, which also determines tensor names, the token ids, and the quantisation of the weights.
pub(super) fn read(folder: &Path) -> Result<(DecoderConfig, Family, NamedIds, Option<Quantisation>), CheckpointError> {
    let path = folder.join("config.json");
    let advice =
        "a checkpoint folder holds config.json, tokenizer.json and model.safetensors; fetch it, or name a .gguf file";
    let map = json_fields::read_object(&path, advice)?;
    parse(&path, &map)
}

impl DecoderConfig {
    /// Translates the keys of a `config.json`; `source` is its name in errors.
    ///
    /// # Errors
    /// [`CheckpointError::Field`], [`CheckpointError::UnknownArchitecture`].
    pub fn from_config_keys(
        source: &Path,
        keys: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, CheckpointError> {
        parse(source, keys).map(|(config, ..)| config)
    }
}

fn parse(
    path: &Path,
    map: &serde_json::Map<String, serde_json::Value>,
) -> Result<(DecoderConfig, Family, NamedIds, Option<Quantisation>), CheckpointError> {
    let fields = Fields::new(path, "", map);
    let family = family(path, &fields)?;
    let mut ids =
        NamedIds { bos: fields.token_ids("bos_token_id")?.first().copied(), eos: fields.token_ids("eos_token_id")? };
    let mut quantisation = Quantisation::read(&fields)?;
    let config = if let Some(text) = fields.object("text_config")? {
        if family != Family::Gemma3 {
            return Err(fields.error("text_config", "nested configurations are supported for Gemma 3 only"));
        }
        for list in [IDENTITY, PRECISION, TRAINING, EXECUTION, TOKENS, GENERATION, LABELS, IMAGES] {
            fields.ignore(list);
        }
        let tied = fields.flag("tie_word_embeddings")?;
        fields.finish()?;
        ids.eos.extend(text.token_ids("eos_token_id")?);
        quantisation = quantisation.or(Quantisation::read(&text)?);
        decoder(&text, family, tied)?
    } else {
        decoder(&fields, family, None)?
    };
    Ok((config, family, ids, quantisation))
}

fn family(path: &Path, fields: &Fields) -> Result<Family, CheckpointError> {
    let named =
        fields.value("architectures").and_then(|v| v.as_array()).and_then(|a| a.first()).and_then(|v| v.as_str());
    let model_type = fields.text("model_type")?;
    let found = named.or(model_type).unwrap_or("(none named)");
    let family = match named {
        Some(name) => Family::from_architecture(name),
        None => model_type.and_then(Family::from_model_type),
    };
    family.ok_or_else(|| CheckpointError::UnknownArchitecture {
        path: path.to_path_buf(),
        found: found.to_string(),
        supported: SUPPORTED.to_string(),
    })
}

fn decoder(f: &Fields, family: Family, tied_outside: Option<bool>) -> Result<DecoderConfig, CheckpointError> {
    let d = family.defaults();
    let hidden_size = f.positive("hidden_size", Some(d.hidden_size))?;
    let num_heads = f.positive("num_attention_heads", Some(d.num_heads))?;
    let num_kv_heads = if f.contains("num_key_value_heads") {
        f.size("num_key_value_heads")?.unwrap_or(num_heads)
    } else {
        d.num_kv_heads.unwrap_or(num_heads)
    };
    if num_kv_heads == 0 || !num_heads.is_multiple_of(num_kv_heads) {
        return Err(f.error("num_key_value_heads", format!("must divide the {num_heads} attention heads")));
    }
    let head_dim = match f.size("head_dim")?.or(if f.contains("head_dim") { None } else { d.head_dim }) {
        Some(0) => return Err(f.error("head_dim", "must be a positive integer")),
        Some(n) => n,
        None if hidden_size.is_multiple_of(num_heads) => hidden_size / num_heads,
        None => return Err(f.error("hidden_size", format!("must be a multiple of the {num_heads} attention heads"))),
    };
    let num_layers = f.positive("num_hidden_layers", Some(d.num_layers))?;
    if num_layers > MAX_LAYERS {
        return Err(f.error("num_hidden_layers", format!("at most {MAX_LAYERS} are supported")));
    }
    let max_positions = f.positive("max_position_embeddings", Some(d.max_positions))?;
    let eps_key = if family == Family::Phi { "layer_norm_eps" } else { "rms_norm_eps" };
    let eps = f.number(eps_key)?.unwrap_or(d.eps);
    if eps < 0.0 {
        return Err(f.error(eps_key, "must not be negative"));
    }
    let eps = eps as f32;
    let attention_bias = family.has_attention_bias_field() && f.flag("attention_bias")?.unwrap_or(false);
    let is_gemma = matches!(family, Family::Gemma | Family::Gemma2 | Family::Gemma3);
    let attention_scale = match family {
        Family::Gemma2 | Family::Gemma3 => {
            let scalar = f.number("query_pre_attn_scalar")?.unwrap_or(256.0);
            if scalar <= 0.0 {
                return Err(f.error("query_pre_attn_scalar", "must be positive"));
            }
            scalar.powf(-0.5)
        }
        _ => (head_dim as f64).powf(-0.5),
    };
    let caps = |key: &str, default: Option<f64>| -> Result<Option<f32>, CheckpointError> {
        let cap = if f.contains(key) { f.number(key)? } else { default };
        match cap {
            Some(c) if c <= 0.0 => Err(f.error(key, "must be positive")),
            cap => Ok(cap.map(|c| c as f32)),
        }
    };
    let (attention_softcap, final_softcap) = match family {
        Family::Gemma2 => (caps("attn_logit_softcapping", Some(50.0))?, caps("final_logit_softcapping", Some(30.0))?),
        Family::Gemma3 => (caps("attn_logit_softcapping", None)?, caps("final_logit_softcapping", None)?),
        _ => (None, None),
    };
    let experts = match family {
        Family::Mixtral => {
            let count = f.positive("num_local_experts", Some(8))?;
            let per_token = f.positive("num_experts_per_tok", Some(2))?;
            if per_token > count || count > MAX_LAYERS {
                return Err(f.error(
                    "num_experts_per_tok",
                    format!("must not exceed the number of experts, {count} (at most {MAX_LAYERS})"),
                ));
            }
            Some(Experts { count, per_token })
        }
        _ => None,
    };
    if family == Family::Phi && f.flag("qk_layernorm")?.unwrap_or(false) {
        return Err(f.error("qk_layernorm", "layer norms on queries and keys are not supported for Phi-2"));
    }
    let windows = windows(f, family, num_layers)?;
    let (ropes, position_of) = ropes(f, family, head_dim, max_positions, &windows)?;
    let layers: Vec<LayerConfig> =
        windows.iter().zip(position_of).map(|(w, position)| LayerConfig { window: w.window, position }).collect();
    let config = DecoderConfig {
        architecture: family.name().to_string(),
        vocab_size: f.positive("vocab_size", Some(d.vocab_size))?,
        hidden_size,
        intermediate_size: f.positive("intermediate_size", Some(d.intermediate_size))?,
        num_heads,
        num_kv_heads,
        head_dim,
        max_positions,
        norm: if family == Family::Phi { Norm::Layer { eps } } else { Norm::Rms { eps } },
        block: match family {
            Family::Gemma2 | Family::Gemma3 => BlockLayout::Sandwich,
            Family::Phi => BlockLayout::Parallel,
            _ => BlockLayout::PreNorm,
        },
        activation: activation(f, family)?,
        gated: family != Family::Phi,
        experts,
        embedding_scale: if is_gemma { (hidden_size as f64).sqrt() as f32 } else { 1.0 },
        tied_embeddings: f
            .flag("tie_word_embeddings")?
            .or(tied_outside)
            .unwrap_or(is_gemma || family == Family::SmolLm3),
        head_bias: family == Family::Phi,
        qkv_bias: attention_bias || matches!(family, Family::Qwen2 | Family::Phi),
        output_bias: attention_bias || family == Family::Phi,
        mlp_bias: match family {
            Family::Llama | Family::SmolLm3 => f.flag("mlp_bias")?.unwrap_or(false),
            family => family == Family::Phi,
        },
        qk_norm: matches!(family, Family::Qwen3 | Family::Gemma3),
        attention_scale: attention_scale as f32,
        attention_softcap,
        final_softcap,
        layers,
        ropes,
    };
    for list in [IDENTITY, PRECISION, TRAINING, EXECUTION, TOKENS, GENERATION, LABELS] {
        f.ignore(list);
    }
    f.finish()?;
    Ok(config)
}

fn activation(f: &Fields, family: Family) -> Result<Activation, CheckpointError> {
    let parse = |key: &str| -> Result<Option<Activation>, CheckpointError> {
        let Some(name) = f.text(key)? else { return Ok(None) };
        match name {
            "silu" | "swish" => Ok(Some(Activation::Silu)),
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Ok(Some(Activation::GeluTanh)),
            // The first Gemma checkpoints have `gelu` but were trained with the tanh approximation.
            "gelu" if family == Family::Gemma => Ok(Some(Activation::GeluTanh)),
            "gelu" => Ok(Some(Activation::GeluErf)),
            _ => Err(f.error(key, "supported activations are silu, gelu, gelu_new, gelu_fast and gelu_pytorch_tanh")),
        }
    };
    let act = parse("hidden_act")?;
    Ok(match family {
        Family::Gemma => {
            let newer = parse("hidden_activation")?;
            // Versions of transformers differ in which of the two takes precedence, so they must agree.
            if let (Some(a), Some(b)) = (act, newer)
                && a != b
            {
                return Err(f.error("hidden_activation", "contradicts `hidden_act`"));
            }
            newer.or(act).unwrap_or(Activation::GeluTanh)
        }
        Family::Gemma2 | Family::Gemma3 => parse("hidden_activation")?.unwrap_or(Activation::GeluTanh),
        Family::Phi => act.unwrap_or(Activation::GeluTanh),
        _ => act.unwrap_or(Activation::Silu),
    })
}

/// A layer's window, and its type in the file, which determines its rotary embedding in Gemma 3.
#[derive(Debug, Clone, Copy)]
struct LayerWindow {
    sliding: bool,
    window: Option<usize>,
}

fn windows(f: &Fields, family: Family, num_layers: usize) -> Result<Vec<LayerWindow>, CheckpointError> {
    let declared = layer_types(f, num_layers)?;
    let default = match family {
        Family::Mistral | Family::Qwen2 | Family::Qwen3 | Family::Gemma2 | Family::Gemma3 => Some(4096),
        _ => None,
    };
    let has_window = default.is_some() || matches!(family, Family::Mixtral | Family::Phi3 | Family::SmolLm3);
    let window = match has_window {
        true if f.contains("sliding_window") => f.size("sliding_window")?,
        true => default,
        false => None,
    };
    if window == Some(0) {
        return Err(f.error("sliding_window", "must be at least 1"));
    }
    let layer = |sliding: bool| LayerWindow { sliding, window: window.filter(|_| sliding) };
    let uniform = |sliding: bool| -> Result<Vec<LayerWindow>, CheckpointError> {
        match &declared {
            Some(types) if types.iter().any(|t| *t != sliding) => {
                Err(f.error("layer_types", "this architecture has the same attention in every layer"))
            }
            _ => Ok(vec![layer(sliding); num_layers]),
        }
    };
    match family {
        Family::Llama | Family::EarnestAlibi | Family::Gemma | Family::Phi => uniform(false),
        Family::Mistral | Family::Mixtral | Family::Phi3 => uniform(window.is_some()),
        Family::Qwen2 | Family::Qwen3 => {
            let on = f.flag("use_sliding_window")?.unwrap_or(false);
            let first = f.size("max_window_layers")?.unwrap_or(28);
            let types = declared.unwrap_or_else(|| (0..num_layers).map(|i| i >= first).collect());
            Ok(types.into_iter().map(|sliding| layer(sliding && on)).collect())
        }
        Family::SmolLm3 => {
            let on = f.flag("use_sliding_window")?.unwrap_or(false) && window.is_some();
            let types = match declared {
                Some(types) => types,
                // Layers without a rotary embedding are the local ones.
                None => rotated_layers(f, num_layers)?.into_iter().map(|rotated| !rotated).collect(),
            };
            Ok(types.into_iter().map(|sliding| layer(sliding && on)).collect())
        }
        Family::Gemma2 => {
            if let (Some(old), true) = (f.size("sliding_window_size")?, f.contains("sliding_window"))
                && Some(old) != window
            {
                return Err(f.error("sliding_window_size", "contradicts `sliding_window`"));
            }
            let types = declared.unwrap_or_else(|| (0..num_layers).map(|i| i % 2 == 0).collect());
            Ok(types.into_iter().map(layer).collect())
        }
        Family::Gemma3 => {
            let pattern = f.positive("sliding_window_pattern", Some(6))?;
            // transformers writes it from the field above, together with the resulting `layer_types`.
            if f.positive("_sliding_window_pattern", Some(pattern))? != pattern && declared.is_none() {
                return Err(f.error("_sliding_window_pattern", "contradicts `sliding_window_pattern`"));
            }
            let types = declared.unwrap_or_else(|| (0..num_layers).map(|i| (i + 1) % pattern != 0).collect());
            Ok(types.into_iter().map(layer).collect())
        }
    }
}

/// Reads `no_rope_layers` of SmolLM3, in which 1 means a layer *with* a rotary embedding; without it every
/// `no_rope_layer_interval`-th layer has none.
fn rotated_layers(f: &Fields, num_layers: usize) -> Result<Vec<bool>, CheckpointError> {
    let interval = f.positive("no_rope_layer_interval", Some(4))?;
    let Some(value) = f.value("no_rope_layers") else {
        return Ok((1..=num_layers).map(|layer| layer % interval != 0).collect());
    };
    let flags: Option<Vec<bool>> = value.as_array().and_then(|list| {
        let one = |v: &serde_json::Value| match v.as_u64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        };
        list.iter().map(one).collect()
    });
    match flags {
        Some(flags) if flags.len() >= num_layers => Ok(flags[..num_layers].to_vec()),
        _ => Err(f.error("no_rope_layers", format!("must be a list of 0 and 1 for {num_layers} layers"))),
    }
}

/// Reads `layer_types`: true for each sliding layer.
fn layer_types(f: &Fields, num_layers: usize) -> Result<Option<Vec<bool>>, CheckpointError> {
    let Some(value) = f.value("layer_types") else { return Ok(None) };
    let types: Option<Vec<bool>> = value.as_array().and_then(|list| {
        let one = |v: &serde_json::Value| match v.as_str() {
            Some("sliding_attention") => Some(true),
            Some("full_attention") => Some(false),
            _ => None,
        };
        list.iter().map(one).collect()
    });
    match types {
        Some(types) if types.len() == num_layers => Ok(Some(types)),
        Some(types) => Err(f.error("layer_types", format!("has {} entries for {num_layers} layers", types.len()))),
        None => Err(f.error("layer_types", "only sliding_attention and full_attention are supported")),
    }
}

fn ropes(
    f: &Fields,
    family: Family,
    head_dim: usize,
    max_positions: usize,
    windows: &[LayerWindow],
) -> Result<(Vec<Rope>, Vec<Position>), CheckpointError> {
    let context = hf_rope::Context { family, head_dim, max_positions };
    if family == Family::Gemma3 {
        let (full, sliding) = hf_rope::gemma3(f, &context)?;
        let position = |w: &LayerWindow| Position::Rotary(usize::from(w.sliding));
        return Ok((vec![full, sliding], windows.iter().map(position).collect()));
    }
    if family == Family::EarnestAlibi {
        return Ok((Vec::new(), vec![Position::Alibi; windows.len()]));
    }
    let positions = match family {
        Family::SmolLm3 => rotated_layers(f, windows.len())?
            .into_iter()
            .map(|rotated| if rotated { Position::Rotary(0) } else { Position::None })
            .collect(),
        _ => vec![Position::Rotary(0); windows.len()],
    };
    Ok((vec![hf_rope::single(f, &context)?], positions))
}
