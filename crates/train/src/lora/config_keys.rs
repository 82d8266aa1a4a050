//! `config.json` of a decoder. It is parsed again and compared before it is written, so that a wrong configuration is never
//! written.
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::{StoredType, TrainError};
use earnest_models::checkpoint::{Activation, DecoderConfig, Norm, Position, RopeScaling};

/// Model families that can be adapted and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Llama,
    Mistral,
    Qwen2,
    Qwen3,
    Gemma,
    Gemma2,
    Gemma3,
    SmolLm3,
}

impl Family {
    /// Architecture name in `config.json`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Family::Llama => "LlamaForCausalLM",
            Family::Mistral => "MistralForCausalLM",
            Family::Qwen2 => "Qwen2ForCausalLM",
            Family::Qwen3 => "Qwen3ForCausalLM",
            Family::Gemma => "GemmaForCausalLM",
            Family::Gemma2 => "Gemma2ForCausalLM",
            Family::Gemma3 => "Gemma3ForCausalLM",
            Family::SmolLm3 => "SmolLM3ForCausalLM",
        }
    }

    fn model_type(self) -> &'static str {
        match self {
            Family::Llama => "llama",
            Family::Mistral => "mistral",
            Family::Qwen2 => "qwen2",
            Family::Qwen3 => "qwen3",
            Family::Gemma => "gemma",
            Family::Gemma2 => "gemma2",
            Family::Gemma3 => "gemma3_text",
            Family::SmolLm3 => "smollm3",
        }
    }

    /// Returns true if norm weights are stored minus one.
    pub(super) fn norms_are_offsets(self) -> bool {
        matches!(self, Family::Gemma | Family::Gemma2 | Family::Gemma3)
    }

    fn has_attention_bias_field(self) -> bool {
        !matches!(self, Family::Mistral | Family::Qwen2)
    }
}

/// Returns the family of a decoder, from either file format.
///
/// # Errors
/// [`TrainError::Architecture`] for one that cannot be adapted.
pub(super) fn family(config: &DecoderConfig) -> Result<Family, TrainError> {
    let part = match config.architecture.as_str() {
        "LlamaForCausalLM" => return Ok(Family::Llama),
        // GGUF has one name for Llama and Mistral, and for Mixtral, whose experts the decoder rejects.
        "gguf:llama" if config.layers.iter().any(|layer| layer.window.is_some()) => return Ok(Family::Mistral),
        "gguf:llama" => return Ok(Family::Llama),
        "MistralForCausalLM" => return Ok(Family::Mistral),
        "Qwen2ForCausalLM" | "gguf:qwen2" => return Ok(Family::Qwen2),
        "Qwen3ForCausalLM" | "gguf:qwen3" => return Ok(Family::Qwen3),
        "GemmaForCausalLM" | "gguf:gemma" => return Ok(Family::Gemma),
        "Gemma2ForCausalLM" | "gguf:gemma2" => return Ok(Family::Gemma2),
        "Gemma3ForCausalLM" | "gguf:gemma3" => return Ok(Family::Gemma3),
        "SmolLM3ForCausalLM" => return Ok(Family::SmolLm3),
        "Phi3ForCausalLM" | "gguf:phi3" => "adapting its fused projections",
        _ => "its decoder layout",
    };
    Err(TrainError::Architecture { architecture: config.architecture.clone(), part })
}

/// Builds the keys of the decoder's `config.json`.
///
/// # Errors
/// [`TrainError::Architecture`] for a decoder that its family's configuration cannot describe.
pub(super) fn config_keys(
    config: &DecoderConfig,
    eos: &[u32],
    bos: Option<u32>,
    stored: StoredType,
) -> Result<Map<String, Value>, TrainError> {
    let family = family(config)?;
    let keys = keys(config, family, eos, bos, stored);
    let expected = DecoderConfig { architecture: family.name().to_owned(), ..normalised(config) };
    match DecoderConfig::from_config_keys(Path::new("config.json"), &keys) {
        Ok(read) if normalised(&read) == expected => Ok(keys),
        _ => Err(TrainError::Architecture {
            architecture: config.architecture.clone(),
            part: "writing its configuration as config.json",
        }),
    }
}

/// Orders the rotary embeddings by their first use in a layer, and drops unused ones.
fn normalised(config: &DecoderConfig) -> DecoderConfig {
    let mut used: Vec<usize> = Vec::new();
    let mut normalised = config.clone();
    for layer in &mut normalised.layers {
        if let Position::Rotary(index) = &mut layer.position {
            let position = used.iter().position(|known| known == index).unwrap_or_else(|| {
                used.push(*index);
                used.len() - 1
            });
            *index = position;
        }
    }
    normalised.ropes = used.iter().map(|index| config.ropes[*index].clone()).collect();
    normalised
}

/// Shortest decimal of an f32, as an f64.
fn decimal(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

fn keys(c: &DecoderConfig, family: Family, eos: &[u32], bos: Option<u32>, stored: StoredType) -> Map<String, Value> {
    let (Norm::Rms { eps } | Norm::Layer { eps, .. }) = c.norm;
    let mut keys = Map::new();
    let mut set = |key: &str, value: Value| {
        keys.insert(key.to_owned(), value);
    };
    set("architectures", json!([family.name()]));
    set("model_type", json!(family.model_type()));
    set("vocab_size", json!(c.vocab_size));
    set("hidden_size", json!(c.hidden_size));
    set("intermediate_size", json!(c.intermediate_size));
    set("num_hidden_layers", json!(c.layers.len()));
    set("num_attention_heads", json!(c.num_heads));
    set("num_key_value_heads", json!(c.num_kv_heads));
    set("head_dim", json!(c.head_dim));
    set("max_position_embeddings", json!(c.max_positions));
    set("rms_norm_eps", json!(decimal(eps)));
    set("tie_word_embeddings", json!(c.tied_embeddings));
    if let Some(bos) = bos {
        set("bos_token_id", json!(bos));
    }
    match eos {
        [one] => set("eos_token_id", json!(one)),
        all => set("eos_token_id", json!(all)),
    }
    set("dtype", json!(stored.config_name()));
    set("torch_dtype", json!(stored.config_name()));
    let activation = match c.activation {
        Activation::Silu => "silu",
        Activation::GeluTanh => "gelu_pytorch_tanh",
        Activation::GeluErf => "gelu",
        // Of a family that is refused.
        Activation::ClampedSwiglu { .. } => "silu",
    };
    set("hidden_act", json!(activation));
    if family.norms_are_offsets() {
        set("hidden_activation", json!(activation));
    }
    if family.has_attention_bias_field() {
        set("attention_bias", json!(c.output_bias));
    }
    if matches!(family, Family::Llama | Family::SmolLm3) {
        set("mlp_bias", json!(c.mlp_bias));
    }
    layer_keys(c, family, &mut set);
    // Gemma 3 has two rotary embeddings: one for sliding-window layers, one for the others.
    let rope_of = |sliding: bool| {
        let layer = c.layers.iter().find(|layer| layer.window.is_some() == sliding);
        layer.and_then(|layer| match layer.position {
            Position::Rotary(index) => c.ropes.get(index),
            Position::None | Position::Alibi | Position::AlibiReversed => None,
        })
    };
    let rope = if family == Family::Gemma3 { rope_of(false) } else { c.ropes.first() };
    if let Some(rope) = rope {
        set("rope_theta", json!(rope.theta));
        match &rope.scaling {
            RopeScaling::Linear { factor } => set("rope_scaling", json!({"rope_type": "linear", "factor": factor})),
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_positions } => set(
                "rope_scaling",
                json!({
                    "rope_type": "llama3",
                    "factor": factor,
                    "low_freq_factor": low_freq_factor,
                    "high_freq_factor": high_freq_factor,
                    "original_max_position_embeddings": original_max_positions,
                }),
            ),
            // The comparison after parsing catches the others.
            // What is not written is missing when the keys are read again, which is an error.
            RopeScaling::None
            | RopeScaling::LongRope { .. }
            | RopeScaling::Divisors(_)
            | RopeScaling::Yarn { .. }
            | RopeScaling::Proportional { .. } => {}
        }
    }
    if let Some(rope) = rope_of(true).filter(|_| family == Family::Gemma3) {
        set("rope_local_base_freq", json!(rope.theta));
    }
    keys
}

/// Keys of what differs from layer to layer: windows of the attention, and layers without a rotary embedding.
fn layer_keys(c: &DecoderConfig, family: Family, set: &mut dyn FnMut(&str, Value)) {
    let window = c.layers.iter().find_map(|layer| layer.window);
    let types: Vec<&str> = c
        .layers
        .iter()
        .map(|layer| if layer.window.is_some() { "sliding_attention" } else { "full_attention" })
        .collect();
    match family {
        Family::Llama | Family::Gemma => {}
        Family::Mistral => set("sliding_window", json!(window)),
        Family::Qwen2 | Family::Qwen3 | Family::SmolLm3 => {
            set("use_sliding_window", json!(window.is_some()));
            set("sliding_window", json!(window));
            set("layer_types", json!(types));
        }
        Family::Gemma2 | Family::Gemma3 => {
            set("sliding_window", json!(window));
            set("layer_types", json!(types));
            let scalar = f64::from(c.attention_scale).powi(-2);
            // An integer in every published checkpoint; the f32 is not exact.
            let integral = (scalar - scalar.round()).abs() < 1e-3;
            set("query_pre_attn_scalar", if integral { json!(scalar.round() as u64) } else { json!(scalar) });
            set("attn_logit_softcapping", json!(c.attention_softcap.map(decimal)));
            set("final_logit_softcapping", json!(c.final_softcap.map(decimal)));
        }
    }
    if family == Family::SmolLm3 {
        let rotated = |position| u8::from(matches!(position, Position::Rotary(_)));
        let rotated: Vec<u8> = c.layers.iter().map(|layer| rotated(layer.position)).collect();
        set("no_rope_layers", json!(rotated));
    }
}
