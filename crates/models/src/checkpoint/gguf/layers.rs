//! Layers of GGUF metadata: windows, positions, and the heads of attention.
use super::super::hf::experts::Block;
use super::super::json_fields::Fields;
use super::super::{CheckpointError, KeysValues, LatentAttention, LayerConfig, Position, QueryGrowth, Rope};
use super::arch::GgufArchitecture;
use super::config::Sizes;
use super::file::{GgufFile, GgufValue};
use super::rope::{self, RopeTensors, Ropes};
use serde_json::Value;

/// Positions of a chunk of Llama 4, and of a step of its queries' growth; no key has them.
const LLAMA4_CHUNK: usize = 8192;

/// The layers of a decoder, and what belongs to their attention.
pub(in crate::checkpoint) struct Attention {
    pub(in crate::checkpoint) layers: Vec<LayerConfig>,
    pub(in crate::checkpoint) ropes: Vec<Rope>,
    pub(in crate::checkpoint) growth: Option<QueryGrowth>,
    /// Factor on attention scores.
    pub(in crate::checkpoint) score_factor: f64,
    /// Longest sequence.
    pub(in crate::checkpoint) reach: usize,
    /// Queries and keys rotate adjacent pairs.
    pub(in crate::checkpoint) pairs: bool,
}

/// Reads all layers.
pub(in crate::checkpoint) fn read(
    file: &GgufFile,
    f: &Fields,
    arch: GgufArchitecture,
    sizes: &Sizes,
    latent: Option<&LatentAttention>,
    blocks: &[Block],
    rope_tensors: RopeTensors,
) -> Result<Attention, CheckpointError> {
    let windows = windows(file, f, arch, sizes)?;
    let local_dim = match arch {
        GgufArchitecture::Gemma4 => local_heads(f)?,
        _ => sizes.head_dim,
    };
    let dims = (latent.map_or(sizes.head_dim, |l| l.rotary_dims), local_dim);
    let by_type = matches!(arch, GgufArchitecture::Gemma3 | GgufArchitecture::Gemma3n | GgufArchitecture::Gemma4)
        || (arch == GgufArchitecture::Olmo2 && windows.iter().any(|w| w.sliding));
    let Ropes { ropes, score_factor, reach } = rope::read(f, arch, sizes.context, dims, by_type, rope_tensors)?;
    let linear = linear_layers(file, f, arch, sizes.layers)?;
    let rotated = rotated(f, arch, &windows, &linear)?;
    let position = |i: usize, w: &LayerWindow| match rotated.get(i) {
        Some(true) => Position::Rotary(usize::from(by_type && w.sliding)),
        _ => Position::None,
    };
    let mut layers: Vec<LayerConfig> = windows
        .iter()
        .zip(&sizes.kv_heads)
        .zip(blocks)
        .enumerate()
        .map(|(i, ((w, &kv_heads), block))| {
            let head_dim = if w.sliding { local_dim } else { sizes.head_dim };
            LayerConfig {
                experts: block.experts,
                gate_cutoff: block.gate_cutoff,
                linear: linear.get(i).copied().unwrap_or(false),
                ..LayerConfig::plain(w.window, position(i, w), kv_heads, head_dim, block.dense)
            }
        })
        .collect();
    let growth = growth(f, arch, &mut layers, sizes.context)?;
    if matches!(arch, GgufArchitecture::Gemma3n | GgufArchitecture::Gemma4) {
        share_keys(file, f, arch, &windows, &mut layers)?;
    }
    let ordered = has_sections(f, arch);
    Ok(Attention { layers, ropes, growth, score_factor, reach, pairs: arch.has_pairs() && !ordered })
}

/// True if a file of GLM-4 has sections of positions in images, for which the converter puts the rows of pairs in order. For text the
/// sections have equal positions.
fn has_sections(f: &Fields, arch: GgufArchitecture) -> bool {
    let key = "rope.dimension_sections";
    if arch == GgufArchitecture::Glm4Moe || arch.has_linear_attention() {
        f.ignore(&[key]);
    }
    if arch != GgufArchitecture::Glm4 {
        return false;
    }
    let positive = |v: &Value| v.as_i64().is_some_and(|n| n > 0);
    match f.value(key) {
        Some(Value::Array(list)) => list.len() > 1 && list.iter().take(2).all(positive),
        Some(one) => positive(one),
        None => false,
    }
}

/// A layer's window, and its type, which determines its rotary embedding in some architectures.
#[derive(Debug, Clone, Copy)]
struct LayerWindow {
    sliding: bool,
    window: Option<usize>,
}

fn windows(
    file: &GgufFile,
    f: &Fields,
    arch: GgufArchitecture,
    sizes: &Sizes,
) -> Result<Vec<LayerWindow>, CheckpointError> {
    use GgufArchitecture::*;
    let key = "attention.sliding_window";
    let (layers, context) = (sizes.layers, sizes.context);
    let all = |window: Option<usize>| vec![LayerWindow { sliding: window.is_some(), window }; layers];
    let (period, window) = match arch {
        Phi3 => {
            // Of the files older than this key, only the 4k model has a window smaller than its context.
            let default = if context == 4096 && (layers == 32 || layers == 40) { 2047 } else { 0 };
            return Ok(all(f.size(key)?.or(Some(default)).filter(|window| *window > 0)));
        }
        Gemma2 => (Some(2), f.size(key)?.or(Some(4096))),
        Gemma3 => (Some(6), f.size(key)?),
        Olmo2 => (Some(4), f.size(key)?),
        // The first files of the 32B model lack the key.
        Exaone4 => (Some(4), f.size(key)?.or((layers == 64).then_some(4096))),
        GptOss => (Some(2), Some(f.positive(key, None)?)),
        Cohere2 => (Some(4), Some(f.positive(key, None)?)),
        Gemma3n => (Some(5), Some(f.positive(key, None)?)),
        Gemma4 => (None, Some(f.positive(key, None)?)),
        _ => {
            if f.size(key)?.is_some_and(|n| n > 0 || arch == Llama4) {
                return Err(f.error(key, "not supported for this architecture"));
            }
            return Ok(all(None));
        }
    };
    let sliding = pattern(file, f, arch, layers, period)?;
    let Some(window) = window.filter(|window| *window > 0) else { return Ok(all(None)) };
    let layer = |sliding: bool| LayerWindow { sliding, window: sliding.then_some(window) };
    Ok(sliding.into_iter().map(layer).collect())
}

/// Reads which layers have a window: one flag for each, or the period in which the last one has none.
fn pattern(
    file: &GgufFile,
    f: &Fields,
    arch: GgufArchitecture,
    layers: usize,
    default: Option<usize>,
) -> Result<Vec<bool>, CheckpointError> {
    let key = "attention.sliding_window_pattern";
    f.ignore(&[key]);
    // Not from the section, where equal flags are one number.
    let period = match file.metadata.get(&format!("{}.{key}", arch.name())) {
        None => default,
        Some(GgufValue::Integer(n)) => usize::try_from(*n).ok().filter(|n| *n > 0),
        Some(GgufValue::Integers(flags)) if flags.len() >= layers => {
            return Ok(flags.iter().take(layers).map(|flag| *flag != 0).collect());
        }
        Some(_) => None,
    };
    let period = period.ok_or_else(|| f.error(key, format!("must be a positive integer or {layers} flags")))?;
    Ok((0..layers).map(|i| i % period + 1 < period).collect())
}

/// Returns the width of a head in sliding layers of Gemma 4.
fn local_heads(f: &Fields) -> Result<usize, CheckpointError> {
    let width = f.positive("attention.key_length_swa", None)?;
    if f.size("attention.value_length_swa")?.is_some_and(|n| n != width) {
        return Err(f.error("attention.value_length_swa", format!("must equal the width of keys, {width}")));
    }
    Ok(width)
}

/// Reads which layers of Qwen 3.5 have linear attention.
fn linear_layers(
    file: &GgufFile,
    f: &Fields,
    arch: GgufArchitecture,
    layers: usize,
) -> Result<Vec<bool>, CheckpointError> {
    if !arch.has_linear_attention() {
        return Ok(vec![false; layers]);
    }
    let key = "attention.recurrent_layers";
    let interval = f.positive("full_attention_interval", Some(4))?;
    f.ignore(&[key]);
    let linear: Vec<bool> = match file.metadata.get(&format!("{}.{key}", arch.name())) {
        None => (1..=layers).map(|layer| !layer.is_multiple_of(interval)).collect(),
        Some(GgufValue::Integers(flags)) if flags.len() >= layers => {
            flags.iter().take(layers).map(|flag| *flag != 0).collect()
        }
        Some(_) => return Err(f.error(key, format!("must have a flag for each of {layers} layers"))),
    };
    match linear.contains(&false) {
        true => Ok(linear),
        false => Err(f.error(key, "at least one layer of full attention is needed")),
    }
}

/// Returns which layers have a rotary embedding.
fn rotated(
    f: &Fields,
    arch: GgufArchitecture,
    windows: &[LayerWindow],
    linear: &[bool],
) -> Result<Vec<bool>, CheckpointError> {
    use GgufArchitecture::*;
    let any = windows.iter().any(|w| w.sliding);
    Ok(match arch {
        // No key says so; llama.cpp has the number.
        SmolLm3 | Llama4 => (1..=windows.len()).map(|layer| !layer.is_multiple_of(4)).collect(),
        // Granite's converter uses the key for this.
        Granite | GraniteMoe if f.flag("rope.scaling.finetuned")? == Some(false) => vec![false; windows.len()],
        Cohere2 => windows.iter().map(|w| w.sliding).collect(),
        Exaone4 => windows.iter().map(|w| w.sliding || !any).collect(),
        Qwen35 | Qwen35Moe => linear.iter().map(|linear| !linear).collect(),
        _ => vec![true; windows.len()],
    })
}

/// Reads the growth of queries, and marks the layers that have it.
fn growth(
    f: &Fields,
    arch: GgufArchitecture,
    layers: &mut [LayerConfig],
    context: usize,
) -> Result<Option<QueryGrowth>, CheckpointError> {
    match arch {
        GgufArchitecture::Mistral3 => {
            let Some(scale) = f.number("attention.temperature_scale")?.filter(|scale| *scale != 0.0) else {
                return Ok(None);
            };
            layers.iter_mut().for_each(|layer| layer.query_growth = true);
            let every = f.positive("rope.scaling.original_context_length", Some(context))? as f64;
            Ok(Some(QueryGrowth { scale, every, offset: 0 }))
        }
        GgufArchitecture::Llama4 => {
            for layer in layers {
                layer.query_growth = layer.position == Position::None;
                layer.chunk = Some(LLAMA4_CHUNK).filter(|_| layer.position != Position::None);
            }
            Ok(Some(QueryGrowth { scale: 0.1, every: LLAMA4_CHUNK as f64, offset: 1 }))
        }
        _ => Ok(None),
    }
}

/// The last layers of Gemma 3n and 4 use the keys and values of the last layer of their type before them, and full layers of Gemma 4
/// may have one projection for both.
fn share_keys(
    file: &GgufFile,
    f: &Fields,
    arch: GgufArchitecture,
    windows: &[LayerWindow],
    layers: &mut [LayerConfig],
) -> Result<(), CheckpointError> {
    let key = "attention.shared_kv_layers";
    let gemma4 = arch == GgufArchitecture::Gemma4;
    // The first files of Gemma 3n lack the key.
    let default = if gemma4 { 0 } else { layers.len().saturating_sub(20) };
    let shared = f.size(key)?.unwrap_or(default);
    let first = layers.len().checked_sub(shared).filter(|n| *n > 0);
    let first = first.ok_or_else(|| f.error(key, "must be less than the number of layers"))?;
    for (i, layer) in layers.iter_mut().enumerate() {
        if i >= first {
            let of_type =
                windows.iter().take(first).rposition(|w| Some(w.sliding) == windows.get(i).map(|w| w.sliding));
            let source = of_type.ok_or_else(|| f.error(key, "leaves no layer of each type with keys of its own"))?;
            layer.keys_values = KeysValues::OfLayer(source);
        } else if gemma4 && !["attn_v", "attn_qkv"].iter().any(|name| has(file, i, name)) {
            layer.keys_values = KeysValues::OneProjection;
        }
    }
    Ok(())
}

fn has(file: &GgufFile, layer: usize, name: &str) -> bool {
    file.tensors.contains_key(&format!("blk.{layer}.{name}.weight"))
}
