//! Translation of GGUF metadata into a [`DecoderConfig`].
//!
//! llama.cpp is the reference for the meaning and defaults of the keys and for the architectures. Every key of the
//! architecture's section is translated or rejected by name; a bias exists if its tensor does.
use super::super::json_fields::{Fields, PassedKeys};
use super::super::{Activation, BlockLayout, CheckpointError, DecoderConfig, Norm, QkNorm};
use super::arch::GgufArchitecture;
use super::experts;
use super::file::GgufFile;
use super::layers;
use super::recent;
use super::rope::RopeTensors;
use serde_json::Value;

/// Largest accepted number of layers or experts, so that a hostile count cannot exhaust memory.
pub(in crate::checkpoint) const MAX_LAYERS: usize = 4096;
/// Keys that do not affect inference: training (`finetuned`) and the tool that wrote the file (`tensor_data_layout`).
const IRRELEVANT: [&str; 3] = ["rope.scaling.finetuned", "tensor_data_layout", "rope.scaling.original_context_length"];
/// Keys of Mamba layers in files of the Granite 4 models that have none.
const GRANITE_HYBRID: [&str; 6] = [
    "ssm.conv_kernel",
    "ssm.state_size",
    "ssm.group_count",
    "ssm.inner_size",
    "ssm.time_step_rank",
    // Of a dense model it is the width of the feed-forward block.
    "expert_shared_feed_forward_length",
];

/// Translates the metadata of a file.
pub(in crate::checkpoint) fn read(
    file: &GgufFile,
    arch: GgufArchitecture,
    rope_tensors: RopeTensors,
    allow: &[String],
) -> Result<(DecoderConfig, PassedKeys), CheckpointError> {
    reject_adapters(file)?;
    let prefix = format!("{}.", arch.name());
    let section = file.section(&prefix);
    let f = Fields::allowing(&file.path, &prefix, &section, allow);
    let vocab_size = vocabulary(file, &f)?;
    let latent = recent::latent(&f, arch)?;
    let sizes = sizes(&f, arch, latent.map(|l| l.plain_dims + l.rotary_dims))?;
    let eps_key = match arch.has_layer_norm() {
        true => "attention.layer_norm_epsilon",
        false => "attention.layer_norm_rms_epsilon",
    };
    let eps = f.number(eps_key)?.ok_or_else(|| f.error(eps_key, "must be a number"))? as f32;
    if f.flag("attention.causal")? == Some(false) {
        return Err(f.error("attention.causal", "only causal decoders are supported"));
    }
    let feed_forward = experts::read(&f, arch, sizes.layers)?;
    let attention = layers::read(file, &f, arch, &sizes, latent.as_ref(), &feed_forward.layers, rope_tensors)?;
    let scales = scales(&f, arch)?;
    let has = |name: &str| file.tensors.contains_key(name);
    let config = DecoderConfig {
        architecture: format!("gguf:{}", arch.name()),
        vocab_size,
        hidden_size: sizes.hidden,
        intermediate_size: feed_forward.intermediate_size,
        num_heads: sizes.heads,
        num_kv_heads: sizes.kv_heads.first().copied().unwrap_or(sizes.heads),
        head_dim: attention.layers.first().map_or(sizes.head_dim, |layer| layer.head_dim),
        max_positions: attention.reach,
        norm: match arch.has_layer_norm() {
            true => Norm::Layer { eps, bias: arch != GgufArchitecture::Cohere2 },
            false => Norm::Rms { eps },
        },
        block: block(arch),
        activation: match arch {
            GgufArchitecture::GptOss => Activation::ClampedSwiglu { alpha: 1.702, limit: 7.0 },
            GgufArchitecture::Phi2 | GgufArchitecture::Starcoder2 => Activation::GeluTanh,
            arch if arch.is_gemma() => Activation::GeluTanh,
            _ => Activation::Silu,
        },
        gated: !matches!(arch, GgufArchitecture::Phi2 | GgufArchitecture::Starcoder2),
        experts: feed_forward.experts,
        embedding_scale: if arch.is_gemma() { (sizes.hidden as f64).sqrt() as f32 } else { scales.embedding },
        residual_scale: scales.residual,
        logit_scale: scales.logits,
        tied_embeddings: !has("output.weight"),
        head_bias: has("output.bias"),
        qkv_bias: has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias"),
        output_bias: has("blk.0.attn_output.bias"),
        mlp_bias: has("blk.0.ffn_down.bias"),
        qk_norm: qk_norm(arch, has("blk.0.attn_q_norm.weight"), feed_forward.experts.map_or(0, |e| e.count)),
        value_norm: matches!(arch, GgufArchitecture::Gemma3n | GgufArchitecture::Gemma4),
        sinks: arch == GgufArchitecture::GptOss,
        query_growth: attention.growth,
        latent,
        linear: recent::linear(&f, arch)?,
        gated_attention: arch.has_linear_attention(),
        layer_inputs: recent::layer_inputs(file, &f, arch, vocab_size)?,
        streams: recent::streams(file, &f, arch)?,
        layer_scalar: arch == GgufArchitecture::Gemma4 && has("blk.0.layer_output_scale.weight"),
        placeholders: None,
        rotary_pairs: attention.pairs,
        attention_scale: match scales.attention {
            Some(scale) => scale,
            None => (attention_scale(arch, &sizes) * attention.score_factor) as f32,
        },
        attention_softcap: cap(&f, arch, "attn_logit_softcapping")?,
        final_softcap: cap(&f, arch, "final_logit_softcapping")?,
        layers: attention.layers,
        ropes: attention.ropes,
    };
    f.ignore(&IRRELEVANT);
    if matches!(arch, GgufArchitecture::Granite | GgufArchitecture::GraniteMoe) {
        f.ignore(&GRANITE_HYBRID);
    }
    f.finish()?;
    Ok((config, f.passed()))
}

/// Rejects adapters.
fn reject_adapters(file: &GgufFile) -> Result<(), CheckpointError> {
    match file.text("general.type").filter(|kind| *kind != "model") {
        None => Ok(()),
        Some(kind) => Err(CheckpointError::Field {
            path: file.path.clone(),
            field: "general.type".into(),
            value: kind.to_owned(),
            reason: "only whole models are supported".into(),
        }),
    }
}

/// Sizes that the rest of a configuration depends on.
pub(in crate::checkpoint) struct Sizes {
    pub(in crate::checkpoint) hidden: usize,
    pub(in crate::checkpoint) heads: usize,
    /// Key/value heads of each layer.
    pub(in crate::checkpoint) kv_heads: Vec<usize>,
    /// Width of a head; in Gemma 4 of a full layer's.
    pub(in crate::checkpoint) head_dim: usize,
    pub(in crate::checkpoint) layers: usize,
    /// Declared context.
    pub(in crate::checkpoint) context: usize,
}

/// Reads the sizes; `latent` is the width of a head of latent attention.
fn sizes(f: &Fields, arch: GgufArchitecture, latent: Option<usize>) -> Result<Sizes, CheckpointError> {
    let hidden = f.positive("embedding_length", None)?;
    let heads = f.positive("attention.head_count", None)?;
    let blocks = f.positive("block_count", None)?;
    if blocks > MAX_LAYERS {
        return Err(f.error("block_count", format!("at most {MAX_LAYERS} are supported")));
    }
    // The last blocks predict further tokens.
    let further = f.size("nextn_predict_layers")?.unwrap_or(0);
    let layers = blocks.checked_sub(further).filter(|layers| *layers > 0);
    let layers = layers.ok_or_else(|| f.error("nextn_predict_layers", format!("must be below the {blocks} blocks")))?;
    let context = f.positive("context_length", None)?;
    if let Some(head_dim) = latent {
        // In the file it is the number of heads before projections from the latent vector.
        f.ignore(&["attention.head_count_kv"]);
        return Ok(Sizes { hidden, heads, kv_heads: vec![heads; layers], head_dim, layers, context });
    }
    let kv_heads = match arch {
        GgufArchitecture::Gemma4 => per_layer(f, "attention.head_count_kv", layers, Some(heads))?,
        _ => vec![f.positive("attention.head_count_kv", Some(heads))?; layers],
    };
    if kv_heads.iter().any(|kv_heads| !heads.is_multiple_of(*kv_heads)) {
        return Err(f.error("attention.head_count_kv", format!("must divide the {heads} attention heads")));
    }
    let head_dim = match f.size("attention.key_length")? {
        Some(n) if n > 0 => n,
        None if hidden.is_multiple_of(heads) => hidden / heads,
        _ => {
            let reason = format!("{heads} heads do not divide the hidden size {hidden}");
            return Err(f.error("attention.key_length", reason));
        }
    };
    if f.size("attention.value_length")?.is_some_and(|n| n != head_dim) {
        return Err(f.error("attention.value_length", format!("must equal the width of keys, {head_dim}")));
    }
    Ok(Sizes { hidden, heads, kv_heads, head_dim, layers, context })
}

/// Reads a positive size of each layer: one for all or a list.
pub(in crate::checkpoint) fn per_layer(
    f: &Fields,
    key: &str,
    layers: usize,
    default: Option<usize>,
) -> Result<Vec<usize>, CheckpointError> {
    let Some(Value::Array(list)) = f.value(key) else { return Ok(vec![f.positive(key, default)?; layers]) };
    let one = |v: &Value| v.as_u64().filter(|n| (1..=1 << 31).contains(n)).map(|n| n as usize);
    let sizes: Option<Vec<usize>> = list.iter().take(layers).map(one).collect();
    sizes
        .filter(|sizes| sizes.len() == layers)
        .ok_or_else(|| f.error(key, format!("must be a positive integer, or one for each of {layers} layers")))
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

fn block(arch: GgufArchitecture) -> BlockLayout {
    match arch {
        GgufArchitecture::Gemma2
        | GgufArchitecture::Gemma3
        | GgufArchitecture::Gemma3n
        | GgufArchitecture::Gemma4
        | GgufArchitecture::Glm4 => BlockLayout::Sandwich,
        GgufArchitecture::Phi2 | GgufArchitecture::Cohere2 => BlockLayout::Parallel,
        GgufArchitecture::Olmo2 | GgufArchitecture::Exaone4 => BlockLayout::PostNorm,
        _ => BlockLayout::PreNorm,
    }
}

fn qk_norm(arch: GgufArchitecture, in_file: bool, experts: usize) -> QkNorm {
    match arch {
        GgufArchitecture::Qwen3
        | GgufArchitecture::Qwen3Moe
        | GgufArchitecture::Qwen35
        | GgufArchitecture::Qwen35Moe
        | GgufArchitecture::Gemma3
        | GgufArchitecture::Gemma3n
        | GgufArchitecture::Gemma4
        | GgufArchitecture::Exaone4 => QkNorm::Head,
        GgufArchitecture::Glm4Moe if in_file => QkNorm::Head,
        GgufArchitecture::Olmo2 => QkNorm::Width,
        GgufArchitecture::HunyuanDense => QkNorm::HeadAfterRotary,
        // No key says so; llama.cpp recognises Maverick by its experts.
        GgufArchitecture::Llama4 if experts != 128 => QkNorm::PlainAfterRotary,
        _ => QkNorm::None,
    }
}

fn attention_scale(arch: GgufArchitecture, sizes: &Sizes) -> f64 {
    // The 27B models, which llama.cpp recognises by their number of layers, scale by hidden size over heads.
    let is_27b = matches!((arch, sizes.layers), (GgufArchitecture::Gemma2, 46) | (GgufArchitecture::Gemma3, 62));
    match arch {
        GgufArchitecture::Gemma3n | GgufArchitecture::Gemma4 => 1.0,
        _ => ((if is_27b { sizes.hidden / sizes.heads } else { sizes.head_dim }) as f64).powf(-0.5),
    }
}

/// Reads a soft cap of attention scores or logits.
fn cap(f: &Fields, arch: GgufArchitecture, key: &str) -> Result<Option<f32>, CheckpointError> {
    let attention = key == "attn_logit_softcapping";
    let default = match arch {
        GgufArchitecture::Gemma2 if attention => Some(50.0),
        GgufArchitecture::Gemma2 | GgufArchitecture::Gemma3n => Some(30.0).filter(|_| !attention),
        GgufArchitecture::Gemma3 | GgufArchitecture::Gemma4 => None,
        _ => return Ok(None),
    };
    if attention && arch != GgufArchitecture::Gemma2 {
        return Ok(None);
    }
    match f.number(key)? {
        Some(cap) if cap <= 0.0 => Err(f.error(key, "must be positive")),
        cap => Ok(cap.or(default).map(|cap| cap as f32)),
    }
}

/// Constant factors.
struct Scales {
    embedding: f32,
    residual: f32,
    attention: Option<f32>,
    logits: f32,
}

fn scales(f: &Fields, arch: GgufArchitecture) -> Result<Scales, CheckpointError> {
    let none = Scales { embedding: 1.0, residual: 1.0, attention: None, logits: 1.0 };
    // Absent and zero mean none.
    let scale = |key: &str| match f.number(key)?.filter(|n| *n != 0.0) {
        Some(n) if n < 0.0 => Err(f.error(key, "must be positive")),
        n => Ok(n.map(|n| n as f32)),
    };
    Ok(match arch {
        GgufArchitecture::Granite | GgufArchitecture::GraniteMoe => Scales {
            embedding: scale("embedding_scale")?.unwrap_or(1.0),
            residual: scale("residual_scale")?.unwrap_or(1.0),
            attention: scale("attention.scale")?,
            logits: 1.0 / scale("logit_scale")?.unwrap_or(1.0),
        },
        // Granite divides by it.
        GgufArchitecture::Cohere2 => Scales { logits: scale("logit_scale")?.unwrap_or(1.0), ..none },
        _ => none,
    })
}
