//! Translation of a Hugging Face `config.json` into a [`DecoderConfig`].
//!
//! Semantics and defaults are those of the configuration classes of `transformers` 5; the older spelling of the same
//! fields (`rope_theta` and `rope_scaling` instead of `rope_parameters`, no `layer_types`) is read as that library
//! reads it. Every key of the file is translated, listed here as irrelevant to inference, or rejected by name.
use super::super::error::nearest;
use super::super::json_fields::{self, Fields, PassedKeys};
use super::super::{Activation, BlockLayout, CheckpointError, DecoderConfig, Norm, QkNorm};
use super::experts;
use super::family::{Family, SUPPORTED};
use super::keys;
use super::layers;
use super::quant::Quantisation;
use super::recent;
use super::sizes::{MAX_LAYERS, Sizes};
use std::path::Path;

/// A `config.json`, translated.
pub(in crate::checkpoint) struct Read {
    pub(in crate::checkpoint) config: DecoderConfig,
    /// Determines the names of tensors.
    pub(in crate::checkpoint) family: Family,
    pub(in crate::checkpoint) ids: NamedIds,
    /// Published quantisation of the weights; GPT-OSS's MXFP4 experts are part of its family.
    pub(in crate::checkpoint) quantisation: Option<Quantisation>,
    pub(in crate::checkpoint) passed: PassedKeys,
}

/// Token ids that `config.json` names.
pub(in crate::checkpoint) struct NamedIds {
    pub(in crate::checkpoint) bos: Option<u32>,
    pub(in crate::checkpoint) eos: Vec<u32>,
}

/// Reads the configuration; unknown keys of `allow` are let through.
pub(in crate::checkpoint) fn read(folder: &Path, allow: &[String]) -> Result<Read, CheckpointError> {
    let path = folder.join("config.json");
    let advice =
        "a checkpoint folder holds config.json, tokenizer.json and model.safetensors; fetch it, or name a .gguf file";
    let map = json_fields::read_object(&path, advice)?;
    parse(&path, &map, allow)
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
        parse(source, keys, &[]).map(|read| read.config)
    }
}

/// Translates the keys of a file; `path` is its name in errors.
pub(in crate::checkpoint) fn parse(
    path: &Path,
    map: &serde_json::Map<String, serde_json::Value>,
    allow: &[String],
) -> Result<Read, CheckpointError> {
    let fields = Fields::allowing(path, "", map, allow);
    let text = fields.object("text_config")?;
    let family = family(path, &fields, text.as_ref())?;
    let mut ids =
        NamedIds { bos: fields.token_ids("bos_token_id")?.first().copied(), eos: fields.token_ids("eos_token_id")? };
    let mut quantisation = quantisation(&fields, family)?;
    let config = if let Some(text) = text {
        if !family.has_text_config() {
            return Err(fields.error("text_config", "this architecture has no nested configuration"));
        }
        let placeholders = recent::placeholders(&fields, &text, family)?;
        keys::ignore_around_text(&fields);
        // The default of Mistral 3's outer class; those of the others agree with their text's.
        let wraps_mistral = matches!(family, Family::Mistral | Family::Ministral3);
        let tied = fields.flag("tie_word_embeddings")?.or(wraps_mistral.then_some(true));
        fields.finish()?;
        ids.bos = ids.bos.or(text.token_ids("bos_token_id")?.first().copied());
        ids.eos.extend(text.token_ids("eos_token_id")?);
        quantisation = quantisation.or(Quantisation::read(&text)?);
        DecoderConfig { placeholders, ..decoder(&text, family, tied)? }
    } else {
        decoder(&fields, family, None)?
    };
    Ok(Read { config, family, ids, quantisation, passed: fields.passed() })
}

/// Reads the quantisation of the weights.
fn quantisation(fields: &Fields, family: Family) -> Result<Option<Quantisation>, CheckpointError> {
    if family == Family::GptOss
        && let Some(given) = fields.object("quantization_config")?
        && given.text("quant_method")? == Some("mxfp4")
    {
        given.ignore(&["modules_to_not_convert"]);
        given.finish()?;
        return Ok(None);
    }
    Quantisation::read(fields)
}

fn family(path: &Path, fields: &Fields, text: Option<&Fields>) -> Result<Family, CheckpointError> {
    let named =
        fields.value("architectures").and_then(|v| v.as_array()).and_then(|a| a.first()).and_then(|v| v.as_str());
    let model_type = fields.text("model_type")?;
    let found = named.or(model_type).unwrap_or("(none named)");
    let wraps =
        named == Some("Mistral3ForConditionalGeneration") || (named.is_none() && model_type == Some("mistral3"));
    let (found, family) = match (named, text) {
        // A vision model around one of several text models.
        (_, Some(text)) if wraps => {
            let inner = text.text("model_type")?.unwrap_or("mistral");
            (inner, Family::from_model_type(inner).filter(|f| matches!(f, Family::Mistral | Family::Ministral3)))
        }
        (Some(name), _) => (found, Family::from_architecture(name)),
        (None, _) => (found, model_type.and_then(Family::from_model_type)),
    };
    family.ok_or_else(|| CheckpointError::UnknownArchitecture {
        path: path.to_path_buf(),
        found: found.to_string(),
        near: nearest(found, SUPPORTED.into_iter()),
    })
}

fn sizes(f: &Fields, family: Family) -> Result<Sizes, CheckpointError> {
    let d = family.defaults();
    let hidden = f.positive("hidden_size", Some(d.hidden_size))?;
    let heads = f.positive("num_attention_heads", Some(d.num_heads))?;
    let layers = f.positive("num_hidden_layers", Some(d.num_layers))?;
    if layers > MAX_LAYERS {
        return Err(f.error("num_hidden_layers", format!("at most {MAX_LAYERS} are supported")));
    }
    let max_positions = f.positive("max_position_embeddings", Some(d.max_positions))?;
    if family == Family::DeepseekV3 {
        // Its projections have widths of their own.
        return Ok(Sizes { hidden, heads, kv_heads: heads, head_dim: 0, layers, max_positions });
    }
    let kv_heads = if f.contains("num_key_value_heads") {
        f.size("num_key_value_heads")?.unwrap_or(heads)
    } else {
        d.num_kv_heads.unwrap_or(heads)
    };
    if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
        return Err(f.error("num_key_value_heads", format!("must divide the {heads} attention heads")));
    }
    // Cohere 2 divides, whatever the key says.
    let named = if family == Family::Cohere2 { None } else { f.size("head_dim")? };
    let head_dim = match named.or(if f.contains("head_dim") { None } else { d.head_dim }) {
        Some(0) => return Err(f.error("head_dim", "must be a positive integer")),
        Some(n) => n,
        None if hidden.is_multiple_of(heads) => hidden / heads,
        None => return Err(f.error("hidden_size", format!("must be a multiple of the {heads} attention heads"))),
    };
    Ok(Sizes { hidden, heads, kv_heads, head_dim, layers, max_positions })
}

fn decoder(f: &Fields, family: Family, tied_outside: Option<bool>) -> Result<DecoderConfig, CheckpointError> {
    let d = family.defaults();
    let sizes = sizes(f, family)?;
    let Sizes { hidden: hidden_size, heads: num_heads, kv_heads, head_dim, .. } = sizes;
    let eps_key = match family {
        Family::Phi | Family::Cohere2 => "layer_norm_eps",
        Family::Starcoder2 => "norm_epsilon",
        _ => "rms_norm_eps",
    };
    let eps = f.number(eps_key)?.unwrap_or(d.eps);
    if eps < 0.0 {
        return Err(f.error(eps_key, "must not be negative"));
    }
    let eps = eps as f32;
    let bias_default = matches!(family, Family::GptOss | Family::Glm4);
    let attention_bias = match family {
        Family::Starcoder2 => f.flag("use_bias")?.unwrap_or(true),
        _ => family.has_attention_bias_field() && f.flag("attention_bias")?.unwrap_or(bias_default),
    };
    if family == Family::Phi && f.flag("qk_layernorm")?.unwrap_or(false) {
        return Err(f.unsupported("qk_layernorm", "layer norms on queries and keys are not supported for Phi-2"));
    }
    let (attention_softcap, final_softcap) = softcaps(f, family)?;
    let feed_forward = experts::read(f, family, &sizes)?;
    let latent = recent::latent(f, family)?;
    let attention = layers::read(f, family, &sizes, latent.as_ref(), &feed_forward.layers)?;
    let scales = scales(f, family, latent.map_or(head_dim, |l| l.plain_dims + l.rotary_dims))?;
    let config = DecoderConfig {
        architecture: family.name().to_string(),
        vocab_size: f.positive("vocab_size", Some(d.vocab_size))?,
        hidden_size,
        intermediate_size: feed_forward.intermediate_size,
        num_heads,
        num_kv_heads: kv_heads,
        head_dim: latent.map_or(head_dim, |l| l.plain_dims + l.rotary_dims),
        max_positions: attention.reach,
        norm: match family {
            Family::Phi | Family::Starcoder2 => Norm::Layer { eps, bias: true },
            Family::Cohere2 => Norm::Layer { eps, bias: false },
            _ => Norm::Rms { eps },
        },
        block: block(family),
        activation: activation(f, family)?,
        gated: !matches!(family, Family::Phi | Family::Starcoder2),
        experts: feed_forward.experts,
        embedding_scale: if family.scales_embedding() { (hidden_size as f64).sqrt() as f32 } else { scales.embedding },
        residual_scale: scales.residual,
        logit_scale: scales.logits,
        tied_embeddings: ties(f.flag("tie_word_embeddings")?, tied_outside, family),
        head_bias: family == Family::Phi,
        qkv_bias: attention_bias || matches!(family, Family::Qwen2 | Family::Phi),
        output_bias: (attention_bias && !matches!(family, Family::Glm4 | Family::Glm4Moe)) || family == Family::Phi,
        mlp_bias: match family {
            Family::Llama | Family::SmolLm3 | Family::Granite => f.flag("mlp_bias")?.unwrap_or(false),
            Family::Starcoder2 => attention_bias,
            family => family == Family::Phi,
        },
        qk_norm: qk_norm(f, family)?,
        value_norm: matches!(family, Family::Gemma3n | Family::Gemma4),
        sinks: family == Family::GptOss,
        query_growth: attention.growth,
        rotary_pairs: match family {
            Family::DeepseekV3 => f.flag("rope_interleave")?.unwrap_or(true),
            _ => family.rotates_pairs(),
        },
        latent,
        linear: recent::linear(f, family)?,
        gated_attention: family.has_linear_attention(),
        layer_inputs: recent::layer_inputs(f, family)?,
        streams: recent::streams(f, family)?,
        layer_scalar: family == Family::Gemma4,
        placeholders: None,
        attention_scale: (scales.attention * attention.score_factor) as f32,
        attention_softcap,
        final_softcap,
        layers: attention.layers,
        ropes: attention.ropes,
    };
    keys::ignore_in_decoder(f, family);
    f.finish()?;
    Ok(config)
}

/// True if the head is the embedding, unless the file has a head that is not: of two flags, transformers reads the outer one, and writes
/// them unequal.
fn ties(inside: Option<bool>, outside: Option<bool>, family: Family) -> bool {
    match (inside, outside) {
        (None, None) => family.ties_by_default(),
        (inside, outside) => inside == Some(true) || outside == Some(true),
    }
}

fn block(family: Family) -> BlockLayout {
    match family {
        Family::Gemma2 | Family::Gemma3 | Family::Gemma3n | Family::Gemma4 | Family::Glm4 => BlockLayout::Sandwich,
        Family::Phi | Family::Cohere2 => BlockLayout::Parallel,
        Family::Olmo2 | Family::Olmo3 | Family::Exaone4 => BlockLayout::PostNorm,
        _ => BlockLayout::PreNorm,
    }
}

fn qk_norm(f: &Fields, family: Family) -> Result<QkNorm, CheckpointError> {
    Ok(match family {
        Family::Qwen3
        | Family::Qwen3Moe
        | Family::Qwen35
        | Family::Qwen35Moe
        | Family::Gemma3
        | Family::Gemma3n
        | Family::Gemma4
        | Family::Exaone4 => QkNorm::Head,
        Family::Glm4Moe if f.flag("use_qk_norm")?.unwrap_or(false) => QkNorm::Head,
        Family::Olmo2 | Family::Olmo3 => QkNorm::Width,
        Family::HunyuanDense => QkNorm::HeadAfterRotary,
        Family::Llama4 if f.flag("use_qk_norm")?.unwrap_or(true) => QkNorm::PlainAfterRotary,
        _ => QkNorm::None,
    })
}

fn softcaps(f: &Fields, family: Family) -> Result<(Option<f32>, Option<f32>), CheckpointError> {
    let cap = |key: &str, default: Option<f64>| -> Result<Option<f32>, CheckpointError> {
        let cap = if f.contains(key) { f.number(key)? } else { default };
        match cap {
            Some(c) if c <= 0.0 => Err(f.error(key, "must be positive")),
            cap => Ok(cap.map(|c| c as f32)),
        }
    };
    Ok(match family {
        Family::Gemma2 => (cap("attn_logit_softcapping", Some(50.0))?, cap("final_logit_softcapping", Some(30.0))?),
        Family::Gemma3n => (None, cap("final_logit_softcapping", Some(30.0))?),
        Family::Gemma3 | Family::Gemma4 => (None, cap("final_logit_softcapping", None)?),
        _ => (None, None),
    })
}

/// Constant factors of a decoder.
struct Scales {
    embedding: f32,
    residual: f32,
    attention: f64,
    logits: f32,
}

fn scales(f: &Fields, family: Family, head_dim: usize) -> Result<Scales, CheckpointError> {
    let mut scales = Scales { embedding: 1.0, residual: 1.0, attention: (head_dim as f64).powf(-0.5), logits: 1.0 };
    let positive = |key: &str, default: f64| match f.number(key)?.unwrap_or(default) {
        n if n > 0.0 => Ok(n),
        _ => Err(f.error(key, "must be positive")),
    };
    match family {
        Family::Gemma2 | Family::Gemma3 => scales.attention = positive("query_pre_attn_scalar", 256.0)?.powf(-0.5),
        Family::Gemma3n | Family::Gemma4 => scales.attention = 1.0,
        Family::Granite | Family::GraniteMoe | Family::GraniteMoeHybrid => {
            scales.embedding = positive("embedding_multiplier", 1.0)? as f32;
            scales.residual = positive("residual_multiplier", 1.0)? as f32;
            scales.attention = positive("attention_multiplier", 1.0)?;
            scales.logits = (1.0 / positive("logits_scaling", 1.0)?) as f32;
        }
        Family::Cohere2 => scales.logits = positive("logit_scale", 0.0625)? as f32,
        _ => {}
    }
    Ok(scales)
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
            _ => Err(
                f.unsupported(key, "supported activations are silu, gelu, gelu_new, gelu_fast and gelu_pytorch_tanh")
            ),
        }
    };
    // Gemma 3n has the key of the older families without reading it.
    let act = if family == Family::Gemma3n { None } else { parse("hidden_act")? };
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
        Family::Gemma2 | Family::Gemma3 | Family::Gemma3n | Family::Gemma4 => {
            parse("hidden_activation")?.unwrap_or(Activation::GeluTanh)
        }
        Family::GptOss => {
            let number = |key: &str, default: f64| match f.number(key)?.unwrap_or(default) {
                n if n > 0.0 => Ok(n as f32),
                _ => Err(f.error(key, "must be positive")),
            };
            Activation::ClampedSwiglu { alpha: number("swiglu_alpha", 1.702)?, limit: number("swiglu_limit", 7.0)? }
        }
        Family::Phi | Family::Starcoder2 => act.unwrap_or(Activation::GeluTanh),
        _ => act.unwrap_or(Activation::Silu),
    })
}
