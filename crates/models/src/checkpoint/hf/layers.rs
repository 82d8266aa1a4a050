//! Layers of a `config.json`: windows, positions, and the heads of attention.
use super::super::json_fields::Fields;
use super::super::{CheckpointError, KeysValues, LatentAttention, LayerConfig, Position, QueryGrowth, Rope};
use super::experts::Block;
use super::family::Family;
use super::rope::{self, Context, Parsed};
use super::sizes::Sizes;

/// The layers of a decoder, and what belongs to their attention.
pub(in crate::checkpoint) struct Attention {
    pub(in crate::checkpoint) layers: Vec<LayerConfig>,
    pub(in crate::checkpoint) ropes: Vec<Rope>,
    pub(in crate::checkpoint) growth: Option<QueryGrowth>,
    /// Factor on attention scores.
    pub(in crate::checkpoint) score_factor: f64,
    /// Longest sequence.
    pub(in crate::checkpoint) reach: usize,
}

/// Reads all layers.
pub(in crate::checkpoint) fn read(
    f: &Fields,
    family: Family,
    sizes: &Sizes,
    latent: Option<&LatentAttention>,
    blocks: &[Block],
) -> Result<Attention, CheckpointError> {
    let mut windows = windows(f, family, sizes.layers)?;
    if family == Family::Gemma4 {
        bidirectional(f)?;
        // As the reference forces it.
        if let Some(last) = windows.last_mut() {
            *last = LayerWindow { sliding: false, window: None };
        }
    }
    let (ropes, positions) = ropes(f, family, sizes, latent, &windows)?;
    let head_dim = latent.map_or(sizes.head_dim, |l| l.plain_dims + l.rotary_dims);
    let plain = |((w, &position), block): ((&LayerWindow, &Position), &Block)| LayerConfig {
        experts: block.experts,
        gate_cutoff: block.gate_cutoff,
        ..LayerConfig::plain(w.window, position, sizes.kv_heads, head_dim, block.dense)
    };
    let mut layers: Vec<LayerConfig> = windows.iter().zip(&positions).zip(blocks).map(plain).collect();
    let growth = match family {
        Family::Llama4 => llama4(f, &mut layers)?,
        _ => ropes.growth,
    };
    if family == Family::Ministral3 {
        layers.iter_mut().for_each(|layer| layer.query_growth = true);
    }
    if family == Family::Gemma4 {
        gemma4_heads(f, sizes, &windows, &mut layers)?;
    }
    if family.has_linear_attention() {
        for (layer, _) in layers.iter_mut().zip(&windows).filter(|(_, w)| w.sliding) {
            layer.linear = true;
            layer.position = Position::None;
        }
    }
    if matches!(family, Family::Gemma3n | Family::Gemma4) {
        share_keys(f, family, &windows, &mut layers)?;
    }
    Ok(Attention { layers, ropes: ropes.ropes, growth, score_factor: ropes.score_factor, reach: ropes.reach })
}

/// Gemma 4 sees text in one direction unless it says `all`.
fn bidirectional(f: &Fields) -> Result<(), CheckpointError> {
    match f.text("use_bidirectional_attention")? {
        None | Some("vision") => Ok(()),
        Some(_) => Err(f.unsupported("use_bidirectional_attention", "only causal decoders are supported")),
    }
}

/// Gemma 4 has other heads in full layers, and may have one projection for both keys and values there.
fn gemma4_heads(
    f: &Fields,
    sizes: &Sizes,
    windows: &[LayerWindow],
    layers: &mut [LayerConfig],
) -> Result<(), CheckpointError> {
    let one = f.flag("attention_k_eq_v")?.unwrap_or(false);
    let (global, listed) = gemma4_global(f, sizes, windows)?;
    let named = f.size("num_global_key_value_heads")?.filter(|_| one);
    let global_heads = listed.or(named).unwrap_or(sizes.kv_heads);
    if global_heads == 0 || !sizes.heads.is_multiple_of(global_heads) {
        let reason = format!("must divide the {} attention heads", sizes.heads);
        return Err(f.error("num_global_key_value_heads", reason));
    }
    for (layer, _) in layers.iter_mut().zip(windows).filter(|(_, w)| !w.sliding) {
        layer.head_dim = global;
        layer.num_kv_heads = global_heads;
        if one {
            layer.keys_values = KeysValues::OneProjection;
        }
    }
    Ok(())
}

/// Reads the width of Gemma 4's heads in full layers, and their number of key heads if it is listed with the layers, as transformers 5.23 writes both.
fn gemma4_global(
    f: &Fields,
    sizes: &Sizes,
    windows: &[LayerWindow],
) -> Result<(usize, Option<usize>), CheckpointError> {
    let Some(list) = f.object("per_layer_config")? else {
        return Ok((f.positive("global_head_dim", Some(512))?, None));
    };
    let full = |i: usize| windows.get(i).is_some_and(|window| !window.sliding);
    let mut heads: Option<(usize, Option<usize>)> = None;
    for key in list.keys() {
        let Some(layer) = list.object(key)? else { continue };
        let of_layer = (layer.positive("head_dim", Some(sizes.head_dim))?, layer.size("num_key_value_heads")?);
        layer.finish()?;
        if !key.parse().is_ok_and(full) || heads.is_some_and(|heads| heads != of_layer) {
            return Err(f.unsupported("per_layer_config", "only full layers may differ, and must be alike"));
        }
        heads = Some(of_layer);
    }
    list.finish()?;
    let count = list.keys().count();
    if count > 0 && count != windows.iter().filter(|window| !window.sliding).count() {
        return Err(f.unsupported("per_layer_config", "it must list all full layers or none: they must be alike"));
    }
    f.ignore(&["global_head_dim"]);
    Ok(heads.unwrap_or((sizes.head_dim, None)))
}

/// The last layers of Gemma 3n and 4 use the keys and values of the last layer of their type before them.
fn share_keys(
    f: &Fields,
    family: Family,
    windows: &[LayerWindow],
    layers: &mut [LayerConfig],
) -> Result<(), CheckpointError> {
    let default = if family == Family::Gemma3n { 15 } else { 0 };
    let shared = f.size("num_kv_shared_layers")?.unwrap_or(default);
    if shared == 0 {
        return Ok(());
    }
    let wrong = |reason: &str| f.error("num_kv_shared_layers", reason);
    let first = layers.len().checked_sub(shared).filter(|n| *n > 0);
    let first = first.ok_or_else(|| wrong("must be less than the number of layers"))?;
    for i in first..layers.len() {
        let of_type = windows.iter().take(first).rposition(|w| w.sliding == windows[i].sliding);
        let source = of_type.ok_or_else(|| wrong("leaves no layer of each type with keys of its own"))?;
        layers[i].keys_values = KeysValues::OfLayer(source);
    }
    Ok(())
}

/// Llama 4 attends within chunks where positions are rotated, and lets queries grow where they are not.
fn llama4(f: &Fields, layers: &mut [LayerConfig]) -> Result<Option<QueryGrowth>, CheckpointError> {
    let chunk = match f.contains("attention_chunk_size") {
        true => f.size("attention_chunk_size")?,
        false => Some(8192),
    };
    if chunk == Some(0) {
        return Err(f.error("attention_chunk_size", "must be at least 1"));
    }
    let chunked = match f.value("layer_types") {
        None => layers.iter().map(|layer| layer.position != Position::None).collect(),
        Some(_) => layer_types_named(f, layers.len(), "chunked_attention")?,
    };
    for (layer, chunked) in layers.iter_mut().zip(chunked) {
        layer.chunk = chunk.filter(|_| chunked);
    }
    // Published files have a number for true.
    let on = match f.value("attn_temperature_tuning") {
        None => true,
        Some(serde_json::Value::Bool(on)) => *on,
        Some(_) => f.number("attn_temperature_tuning")? != Some(0.0),
    };
    let scale = f.number("attn_scale")?.unwrap_or(0.1);
    let every = f.positive("floor_scale", Some(8192))? as f64;
    if !on {
        return Ok(None);
    }
    layers.iter_mut().for_each(|layer| layer.query_growth = layer.position == Position::None);
    Ok(Some(QueryGrowth { scale, every, offset: 1 }))
}

/// The rotary embeddings of a decoder.
struct Ropes {
    ropes: Vec<Rope>,
    growth: Option<QueryGrowth>,
    score_factor: f64,
    reach: usize,
}

impl Ropes {
    fn of(parsed: Parsed) -> Ropes {
        let Parsed { rope, reach, growth, score_factor } = parsed;
        Ropes { ropes: vec![rope], growth, score_factor, reach }
    }
}

fn ropes(
    f: &Fields,
    family: Family,
    sizes: &Sizes,
    latent: Option<&LatentAttention>,
    windows: &[LayerWindow],
) -> Result<(Ropes, Vec<Position>), CheckpointError> {
    let head_dim = latent.map_or(sizes.head_dim, |l| l.rotary_dims);
    let context = Context { family, head_dim, max_positions: sizes.max_positions };
    let none = Ropes { ropes: Vec::new(), growth: None, score_factor: 1.0, reach: sizes.max_positions };
    let by_type = || windows.iter().map(|w| Position::Rotary(usize::from(w.sliding))).collect();
    let rotated = |rotated: bool| if rotated { Position::Rotary(0) } else { Position::None };
    let positions = match family {
        Family::Gemma3 | Family::Gemma3n | Family::Olmo3 => {
            let (full, sliding) = rope::by_layer_type(f, &context)?;
            let mut ropes = Ropes::of(full);
            ropes.ropes.push(sliding.rope);
            return Ok((ropes, by_type()));
        }
        Family::Gemma4 => {
            let global = Context { head_dim: gemma4_global(f, sizes, windows)?.0, ..context };
            let (full, sliding) = rope::gemma4(f, &global, &context)?;
            return Ok((Ropes { ropes: vec![full, sliding], ..none }, by_type()));
        }
        Family::EarnestAlibi => return Ok((none, vec![Position::Alibi; windows.len()])),
        Family::EarnestReversedAlibi => return Ok((none, vec![Position::AlibiReversed; windows.len()])),
        Family::GraniteMoeHybrid if f.text("position_embedding_type")? != Some("rope") => {
            f.ignore(&["rope_theta", "rope_scaling", "rope_parameters"]);
            return Ok((none, vec![Position::None; windows.len()]));
        }
        Family::SmolLm3 | Family::Llama4 => rotated_layers(f, windows.len())?.into_iter().map(rotated).collect(),
        Family::Cohere2 => windows.iter().map(|w| rotated(w.window.is_some())).collect(),
        Family::Exaone4 => {
            let any = f.size("sliding_window")?.is_some() || !f.contains("sliding_window");
            windows.iter().map(|w| rotated(!any || w.sliding)).collect()
        }
        _ => vec![Position::Rotary(0); windows.len()],
    };
    Ok((Ropes::of(rope::single(f, &context)?), positions))
}

/// A layer's window, and its type in the file, which determines its rotary embedding in Gemma 3.
#[derive(Debug, Clone, Copy)]
struct LayerWindow {
    sliding: bool,
    window: Option<usize>,
}

fn windows(f: &Fields, family: Family, num_layers: usize) -> Result<Vec<LayerWindow>, CheckpointError> {
    if family == Family::Llama4 {
        return Ok(vec![LayerWindow { sliding: false, window: None }; num_layers]);
    }
    if family.has_linear_attention() {
        return linear_layers(f, num_layers);
    }
    if family == Family::GraniteMoeHybrid {
        return attention_layers(f, num_layers);
    }
    let declared = layer_types(f, num_layers)?;
    let default = match family {
        Family::Mistral
        | Family::Qwen2
        | Family::Qwen3
        | Family::Qwen3Moe
        | Family::Gemma2
        | Family::Gemma3
        | Family::Olmo3
        | Family::Cohere2
        | Family::Exaone4 => Some(4096),
        Family::Gemma3n | Family::Gemma4 => Some(512),
        Family::GptOss => Some(128),
        _ => None,
    };
    let has_window = default.is_some()
        || matches!(family, Family::Mixtral | Family::Phi3 | Family::SmolLm3 | Family::Ministral3 | Family::Starcoder2);
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
        Family::Mistral | Family::Ministral3 | Family::Mixtral | Family::Phi3 | Family::Starcoder2 => {
            uniform(window.is_some())
        }
        Family::Qwen3Moe => {
            let on = f.flag("use_sliding_window")?.unwrap_or(false);
            uniform(on && window.is_some())
        }
        Family::Olmo3 | Family::Exaone4 | Family::GptOss | Family::Cohere2 | Family::Gemma3n | Family::Gemma4 => {
            let types = match declared {
                Some(types) => {
                    f.ignore(&["sliding_window_pattern"]);
                    types
                }
                None => alternating(f, family, window.is_some(), num_layers)?,
            };
            Ok(types.into_iter().map(layer).collect())
        }
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
        _ => uniform(false),
    }
}

/// Returns the layer types of a family's configuration class for a file without `layer_types`: true for each sliding layer.
fn alternating(f: &Fields, family: Family, window: bool, num_layers: usize) -> Result<Vec<bool>, CheckpointError> {
    let period = match family {
        Family::GptOss => 2,
        Family::Olmo3 => 4,
        Family::Gemma3n => 5,
        Family::Gemma4 => 6,
        Family::Cohere2 => f.positive("sliding_window_pattern", Some(4))?,
        // The reference fails for these, so nothing says what they mean.
        _ if !window || f.value("sliding_window_pattern").is_some_and(|v| v.is_string()) => {
            return Err(f.error("layer_types", "required beside this `sliding_window` and `sliding_window_pattern`"));
        }
        _ => f.positive("sliding_window_pattern", Some(4))?,
    };
    Ok((1..=num_layers).map(|layer| !layer.is_multiple_of(period)).collect())
}

/// Reads the layers of Qwen 3.5, of which those marked as sliding have linear attention.
fn linear_layers(f: &Fields, num_layers: usize) -> Result<Vec<LayerWindow>, CheckpointError> {
    let interval = f.positive("full_attention_interval", Some(4))?;
    let types = match f.value("layer_types") {
        Some(_) => layer_types_named(f, num_layers, "linear_attention")?,
        None => (1..=num_layers).map(|layer| !layer.is_multiple_of(interval)).collect(),
    };
    if types.iter().all(|linear| *linear) {
        return Err(f.error("layer_types", "at least one layer of full attention is needed"));
    }
    Ok(types.into_iter().map(|sliding| LayerWindow { sliding, window: None }).collect())
}

/// Checks that every layer of a hybrid is one of attention.
fn attention_layers(f: &Fields, num_layers: usize) -> Result<Vec<LayerWindow>, CheckpointError> {
    let key = if f.contains("layer_types") { "layer_types" } else { "layers_block_type" };
    let types = f.value(key).and_then(|v| v.as_array());
    let attention = |v: &serde_json::Value| matches!(v.as_str(), Some("attention" | "full_attention"));
    match types {
        Some(types) if types.len() == num_layers && types.iter().all(attention) => {
            Ok(vec![LayerWindow { sliding: false, window: None }; num_layers])
        }
        _ => Err(f.unsupported(key, "Mamba layers are not supported: every layer must be one of attention")),
    }
}

/// Reads `no_rope_layers` of SmolLM3 and Llama 4, in which 1 means a layer *with* a rotary embedding; without it every
/// `no_rope_layer_interval`-th layer has none.
fn rotated_layers(f: &Fields, num_layers: usize) -> Result<Vec<bool>, CheckpointError> {
    let interval = f.positive("no_rope_layer_interval", Some(4))?;
    // Llama 4 has an empty list for its default.
    let value = f.value("no_rope_layers").filter(|v| !v.as_array().is_some_and(|list| list.is_empty()));
    let Some(value) = value else {
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
    match f.value("layer_types") {
        None => Ok(None),
        Some(_) => layer_types_named(f, num_layers, "sliding_attention").map(Some),
    }
}

/// Reads `layer_types`: true for each layer that is not full, but of this name.
fn layer_types_named(f: &Fields, num_layers: usize, local: &str) -> Result<Vec<bool>, CheckpointError> {
    let value = f.value("layer_types");
    let types: Option<Vec<bool>> = value.and_then(|v| v.as_array()).and_then(|list| {
        let one = |v: &serde_json::Value| match v.as_str() {
            Some(name) if name == local => Some(true),
            Some("full_attention") => Some(false),
            _ => None,
        };
        list.iter().map(one).collect()
    });
    match types {
        Some(types) if types.len() == num_layers => Ok(types),
        Some(types) => Err(f.error("layer_types", format!("has {} entries for {num_layers} layers", types.len()))),
        None => Err(f.unsupported("layer_types", format!("only {local} and full_attention are supported"))),
    }
}
