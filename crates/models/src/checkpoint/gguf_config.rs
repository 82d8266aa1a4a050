//! Translation of GGUF metadata into a [`DecoderConfig`].
//!
//! llama.cpp is the reference for the meaning and defaults of the keys and for the architectures. Every key of the
//! architecture's section is translated or rejected by name; a bias exists if its tensor does.
use super::gguf_file::GgufFile;
use super::gguf_rope::{self, RopeTensors};
use super::json_fields::{Fields, PassedKeys};
use super::{
    Activation, BlockLayout, CheckpointError, DecoderConfig, Experts, LayerConfig, Norm, Position, QkNorm, Rope,
    RopeScaling,
};

/// Supported architectures (`general.architecture`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GgufArchitecture {
    /// Llama, SmolLM2, Mistral, Mixtral.
    Llama,
    Qwen2,
    Qwen3,
    Gemma,
    Gemma2,
    Gemma3,
    Phi2,
    Phi3,
    Qwen3Moe,
    SmolLm3,
    Granite,
    /// OLMo 2; OLMo 3 has the same name and a sliding window.
    Olmo2,
}

const SUPPORTED: &str = "llama, qwen2, qwen3, qwen3moe, gemma, gemma2, gemma3, phi2, phi3, smollm3, granite, olmo2; the safetensors of more \
     architectures";
/// Largest accepted number of layers, so that a hostile count cannot exhaust memory.
const MAX_LAYERS: usize = 4096;
/// Keys that do not affect inference: training (`finetuned`) and the tool that wrote the file (`tensor_data_layout`).
const IRRELEVANT: [&str; 3] = ["rope.scaling.finetuned", "tensor_data_layout", "rope.scaling.original_context_length"];

impl GgufArchitecture {
    pub(super) fn of(file: &GgufFile) -> Result<GgufArchitecture, CheckpointError> {
        let found = file.text("general.architecture").unwrap_or("(none named)");
        Ok(match found {
            "llama" => GgufArchitecture::Llama,
            "qwen2" => GgufArchitecture::Qwen2,
            "qwen3" => GgufArchitecture::Qwen3,
            "gemma" => GgufArchitecture::Gemma,
            "gemma2" => GgufArchitecture::Gemma2,
            "gemma3" => GgufArchitecture::Gemma3,
            "phi2" => GgufArchitecture::Phi2,
            "phi3" => GgufArchitecture::Phi3,
            "qwen3moe" => GgufArchitecture::Qwen3Moe,
            "smollm3" => GgufArchitecture::SmolLm3,
            "granite" => GgufArchitecture::Granite,
            "olmo2" => GgufArchitecture::Olmo2,
            _ => {
                return Err(CheckpointError::UnknownArchitecture {
                    path: file.path.clone(),
                    found: found.to_string(),
                    supported: SUPPORTED.to_string(),
                });
            }
        })
    }

    fn name(self) -> &'static str {
        match self {
            GgufArchitecture::Llama => "llama",
            GgufArchitecture::Qwen2 => "qwen2",
            GgufArchitecture::Qwen3 => "qwen3",
            GgufArchitecture::Gemma => "gemma",
            GgufArchitecture::Gemma2 => "gemma2",
            GgufArchitecture::Gemma3 => "gemma3",
            GgufArchitecture::Phi2 => "phi2",
            GgufArchitecture::Phi3 => "phi3",
            GgufArchitecture::Qwen3Moe => "qwen3moe",
            GgufArchitecture::SmolLm3 => "smollm3",
            GgufArchitecture::Granite => "granite",
            GgufArchitecture::Olmo2 => "olmo2",
        }
    }

    /// True if the converter reorders the rows of queries and keys for rotary embeddings of adjacent pairs.
    pub(super) fn has_pairs(self) -> bool {
        matches!(self, GgufArchitecture::Llama | GgufArchitecture::SmolLm3 | GgufArchitecture::Granite)
    }

    /// True if YaRN is supported.
    pub(super) fn has_yarn(self) -> bool {
        matches!(self, GgufArchitecture::Qwen2 | GgufArchitecture::Qwen3 | GgufArchitecture::Qwen3Moe)
    }

    fn is_gemma(self) -> bool {
        matches!(self, GgufArchitecture::Gemma | GgufArchitecture::Gemma2 | GgufArchitecture::Gemma3)
    }
}

/// Translates the metadata of a file.
pub(super) fn read(
    file: &GgufFile,
    arch: GgufArchitecture,
    rope_tensors: RopeTensors,
    allow: &[String],
) -> Result<(DecoderConfig, PassedKeys), CheckpointError> {
    reject_parts(file)?;
    let section = file.section(&format!("{}.", arch.name()));
    let f = Fields::allowing(&file.path, &format!("{}.", arch.name()), &section, allow);
    let hidden_size = f.positive("embedding_length", None)?;
    let num_heads = f.positive("attention.head_count", None)?;
    let num_kv_heads = f.positive("attention.head_count_kv", Some(num_heads))?;
    if !num_heads.is_multiple_of(num_kv_heads) {
        return Err(f.error("attention.head_count_kv", format!("must divide the {num_heads} attention heads")));
    }
    let head_dim = match f.size("attention.key_length")? {
        Some(n) if n > 0 => n,
        None if hidden_size.is_multiple_of(num_heads) => hidden_size / num_heads,
        _ => {
            return Err(f.error(
                "attention.key_length",
                format!("{num_heads} heads do not divide the hidden size {hidden_size}"),
            ));
        }
    };
    if f.size("attention.value_length")?.is_some_and(|n| n != head_dim) {
        return Err(f.error("attention.value_length", format!("must equal the width of keys, {head_dim}")));
    }
    let num_layers = f.positive("block_count", None)?;
    if num_layers > MAX_LAYERS {
        return Err(f.error("block_count", format!("at most {MAX_LAYERS} are supported")));
    }
    let max_positions = f.positive("context_length", None)?;
    let vocab_size = vocabulary(file, &f)?;
    let phi2 = arch == GgufArchitecture::Phi2;
    let eps_key = if phi2 { "attention.layer_norm_epsilon" } else { "attention.layer_norm_rms_epsilon" };
    let eps = f.number(eps_key)?.ok_or_else(|| f.error(eps_key, "must be a number"))? as f32;
    let experts = match f.size("expert_count")? {
        None | Some(0) => {
            f.ignore(&["expert_used_count"]);
            None
        }
        Some(count) if arch == GgufArchitecture::Llama && count <= MAX_LAYERS => {
            let per_token = f.positive("expert_used_count", None)?;
            if per_token > count {
                return Err(f.error("expert_used_count", format!("exceeds the number of experts, {count}")));
            }
            Some(Experts::mixtral(count, per_token, f.positive("feed_forward_length", None)?))
        }
        Some(count) if arch == GgufArchitecture::Qwen3Moe && count <= MAX_LAYERS => {
            let per_token = f.positive("expert_used_count", None)?;
            if per_token > count {
                return Err(f.error("expert_used_count", format!("exceeds the number of experts, {count}")));
            }
            // llama.cpp always divides the weights by their sum.
            Some(Experts::mixtral(count, per_token, f.positive("expert_feed_forward_length", None)?))
        }
        Some(_) => {
            let reason = "mixtures of experts are supported for architectures llama and qwen3moe only";
            return Err(f.error("expert_count", reason));
        }
    };
    let caps = match arch {
        GgufArchitecture::Gemma2 => {
            let cap = |key: &str, default: f64| f.number(key).map(|c| c.unwrap_or(default) as f32);
            (Some(cap("attn_logit_softcapping", 50.0)?), Some(cap("final_logit_softcapping", 30.0)?))
        }
        _ => (None, None),
    };
    if f.flag("attention.causal")? == Some(false) {
        return Err(f.error("attention.causal", "only causal decoders are supported"));
    }
    let inner = f.positive("feed_forward_length", None)?;
    let windows = windows(&f, arch, num_layers, max_positions)?;
    let (ropes, local) = gguf_rope::ropes(&f, arch, head_dim, max_positions, rope_tensors)?;
    let rotated = gguf_rope::rotated(&f, arch)?;
    let scales = scales(&f, arch)?;
    let has = |name: &str| file.tensors.contains_key(name);
    let config = DecoderConfig {
        architecture: format!("gguf:{}", arch.name()),
        vocab_size,
        hidden_size,
        intermediate_size: inner,
        num_heads,
        num_kv_heads,
        head_dim,
        max_positions: match &ropes[..] {
            // The context is that before or after scaling.
            [Rope { scaling: RopeScaling::Yarn { factor, .. }, .. }] => {
                let original = f.size("rope.scaling.original_context_length")?.unwrap_or(max_positions);
                max_positions.max((original as f64 * factor) as usize)
            }
            _ => max_positions,
        },
        norm: if phi2 { Norm::Layer { eps, bias: true } } else { Norm::Rms { eps } },
        block: match arch {
            GgufArchitecture::Gemma2 | GgufArchitecture::Gemma3 => BlockLayout::Sandwich,
            GgufArchitecture::Phi2 => BlockLayout::Parallel,
            GgufArchitecture::Olmo2 => BlockLayout::PostNorm,
            _ => BlockLayout::PreNorm,
        },
        activation: if phi2 || arch.is_gemma() { Activation::GeluTanh } else { Activation::Silu },
        gated: !phi2,
        experts,
        embedding_scale: if arch.is_gemma() { (hidden_size as f64).sqrt() as f32 } else { scales.embedding },
        residual_scale: scales.residual,
        logit_scale: scales.logits,
        tied_embeddings: !has("output.weight"),
        head_bias: has("output.bias"),
        qkv_bias: has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias"),
        output_bias: has("blk.0.attn_output.bias"),
        mlp_bias: has("blk.0.ffn_down.bias"),
        qk_norm: match arch {
            GgufArchitecture::Qwen3 | GgufArchitecture::Qwen3Moe | GgufArchitecture::Gemma3 => QkNorm::Head,
            GgufArchitecture::Olmo2 => QkNorm::Width,
            _ => QkNorm::None,
        },
        value_norm: false,
        sinks: false,
        query_growth: None,
        latent: None,
        linear: None,
        gated_attention: false,
        layer_inputs: None,
        streams: None,
        layer_scalar: false,
        placeholders: None,
        // What the converter left in pairs is put in order when it is read.
        rotary_pairs: false,
        attention_scale: match scales.attention {
            Some(scale) => scale,
            None => attention_scale(arch, num_layers, hidden_size, num_heads, head_dim),
        },
        attention_softcap: caps.0,
        final_softcap: caps.1,
        layers: windows
            .into_iter()
            .enumerate()
            .map(|(i, window)| {
                let position = match rotated(i) {
                    true => Position::Rotary(if window.is_some() { local } else { 0 }),
                    false => Position::None,
                };
                let layer = LayerConfig::plain(window, position, num_kv_heads, head_dim, inner);
                if experts.is_some() { layer.with_experts() } else { layer }
            })
            .collect(),
        ropes,
    };
    f.ignore(&IRRELEVANT);
    f.finish()?;
    Ok((config, f.passed()))
}

/// Rejects adapters and parts of a split file.
fn reject_parts(file: &GgufFile) -> Result<(), CheckpointError> {
    let reject = |field: &str, value: String, reason: &str| {
        Err(CheckpointError::Field { path: file.path.clone(), field: field.into(), value, reason: reason.into() })
    };
    if let Some(kind) = file.text("general.type").filter(|t| *t != "model") {
        return reject("general.type", kind.to_string(), "only whole models are supported");
    }
    match file.number("split.count") {
        Some(n) if n > 1.0 => {
            reject("split.count", n.to_string(), "merge the parts with `llama-gguf-split --merge` first")
        }
        _ => Ok(()),
    }
}

/// Returns the number of rows of the embedding table.
fn vocabulary(file: &GgufFile, f: &Fields) -> Result<usize, CheckpointError> {
    let declared = f.size("vocab_size")?;
    let rows = file.tensors.get("token_embd.weight").and_then(|t| t.shape.first().copied());
    match (rows, declared) {
        (Some(rows), Some(n)) if rows != n => Err(f.error("vocab_size", format!("token_embd.weight has {rows} rows"))),
        (Some(rows), _) if rows > 0 => Ok(rows),
        _ => Err(CheckpointError::TensorMissing {
            tensor: "token_embd.weight".into(),
            parameter: "Embedding".into(),
            path: file.path.clone(),
        }),
    }
}

fn attention_scale(arch: GgufArchitecture, layers: usize, hidden: usize, heads: usize, head_dim: usize) -> f32 {
    // The 27B models, which llama.cpp recognises by their number of layers, scale by hidden size over heads.
    let is_27b = matches!((arch, layers), (GgufArchitecture::Gemma2, 46) | (GgufArchitecture::Gemma3, 62));
    let width = if is_27b { hidden / heads } else { head_dim };
    (width as f64).powf(-0.5) as f32
}

fn windows(
    f: &Fields,
    arch: GgufArchitecture,
    layers: usize,
    context: usize,
) -> Result<Vec<Option<usize>>, CheckpointError> {
    let period = match arch {
        GgufArchitecture::Gemma2 => 2,
        GgufArchitecture::Gemma3 => f.positive("attention.sliding_window_pattern", Some(6))?,
        GgufArchitecture::Phi3 => {
            // Of the files older than this key, only the 4k model has a window smaller than its context.
            let default = if context == 4096 && (layers == 32 || layers == 40) { 2047 } else { 0 };
            let window = f.size("attention.sliding_window")?.unwrap_or(default);
            return Ok(vec![(window > 0).then_some(window); layers]);
        }
        _ => {
            if f.size("attention.sliding_window")?.is_some_and(|n| n > 0) {
                return Err(f.error("attention.sliding_window", "this architecture has no sliding window"));
            }
            return Ok(vec![None; layers]);
        }
    };
    let window = match f.size("attention.sliding_window")? {
        Some(0) => None,
        None if arch == GgufArchitecture::Gemma2 => Some(4096),
        window => window,
    };
    Ok((0..layers).map(|i| window.filter(|_| i % period + 1 < period)).collect())
}

/// Constant factors, which Granite has.
struct Scales {
    embedding: f32,
    residual: f32,
    attention: Option<f32>,
    logits: f32,
}

fn scales(f: &Fields, arch: GgufArchitecture) -> Result<Scales, CheckpointError> {
    if arch != GgufArchitecture::Granite {
        return Ok(Scales { embedding: 1.0, residual: 1.0, attention: None, logits: 1.0 });
    }
    // Absent and zero mean none.
    let scale = |key: &str| match f.number(key)?.filter(|n| *n != 0.0) {
        Some(n) if n < 0.0 => Err(f.error(key, "must be positive")),
        n => Ok(n.map(|n| n as f32)),
    };
    Ok(Scales {
        embedding: scale("embedding_scale")?.unwrap_or(1.0),
        residual: scale("residual_scale")?.unwrap_or(1.0),
        attention: scale("attention.scale")?,
        logits: 1.0 / scale("logit_scale")?.unwrap_or(1.0),
    })
}
