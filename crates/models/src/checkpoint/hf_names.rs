//! Tensor names of Hugging Face checkpoints.
use super::hf_family::Family;
use super::{DecoderConfig, LayerParameter, Parameter};

/// The place of a parameter: a contiguous run of elements of a stored tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The stored tensor's name.
    pub(super) tensor: String,
    /// Shape of the whole tensor, as the configuration implies it.
    pub(super) whole: Vec<usize>,
    /// First element of the parameter.
    pub(super) start: usize,
    /// Shape of the parameter.
    pub(super) part: Vec<usize>,
}

/// Returns the possible places of a parameter, the usual one first.
pub(super) fn places(family: Family, c: &DecoderConfig, parameter: Parameter, shape: &[usize]) -> Vec<Place> {
    let mut places = Vec::new();
    for (name, whole, start) in candidates(family, c, parameter, shape) {
        let base = |tensor: String| Place { tensor, whole: whole.clone(), start, part: shape.to_vec() };
        if matches!(parameter, Parameter::Head | Parameter::HeadBias) {
            places.push(base(name.clone()));
            places.push(base(format!("language_model.{name}")));
            continue;
        }
        places.push(base(format!("model.{name}")));
        if family == Family::Gemma3 {
            // Checkpoints with a vision tower: as published, and as transformers 5 writes them.
            places.push(base(format!("language_model.model.{name}")));
            places.push(base(format!("model.language_model.{name}")));
        }
        // The bare decoder without its head.
        places.push(base(name));
    }
    places
}

fn candidates(
    family: Family,
    c: &DecoderConfig,
    parameter: Parameter,
    shape: &[usize],
) -> Vec<(String, Vec<usize>, usize)> {
    let plain = |name: &str| vec![(name.to_string(), shape.to_vec(), 0)];
    let (layer, p) = match parameter {
        Parameter::Embedding => return plain("embed_tokens.weight"),
        Parameter::FinalNorm if family == Family::Phi => return plain("final_layernorm.weight"),
        Parameter::FinalNormBias => return plain("final_layernorm.bias"),
        Parameter::FinalNorm => return plain("norm.weight"),
        Parameter::Head => return plain("lm_head.weight"),
        Parameter::HeadBias => return plain("lm_head.bias"),
        Parameter::Layer(layer, p) => (layer, p),
    };
    let at = |name: &str| format!("layers.{layer}.{name}");
    let one = |name: &str| vec![(at(name), shape.to_vec(), 0)];
    let width = shape.get(1).copied().unwrap_or(1);
    if family == Family::Phi3
        && let Some(fused) = phi3_fused(c, p)
    {
        let (name, rows, first) = fused;
        return vec![(at(name), vec![rows, width], first * width)];
    }
    use LayerParameter::*;
    let sandwich = matches!(family, Family::Gemma2 | Family::Gemma3);
    let phi = family == Family::Phi;
    match p {
        AttentionNorm => one("input_layernorm.weight"),
        AttentionNormBias => one("input_layernorm.bias"),
        Query => one("self_attn.q_proj.weight"),
        QueryBias => one("self_attn.q_proj.bias"),
        Key => one("self_attn.k_proj.weight"),
        KeyBias => one("self_attn.k_proj.bias"),
        Value => one("self_attn.v_proj.weight"),
        ValueBias => one("self_attn.v_proj.bias"),
        Output if phi => one("self_attn.dense.weight"),
        OutputBias if phi => one("self_attn.dense.bias"),
        Output => one("self_attn.o_proj.weight"),
        OutputBias => one("self_attn.o_proj.bias"),
        QueryNorm => one("self_attn.q_norm.weight"),
        KeyNorm => one("self_attn.k_norm.weight"),
        PostAttentionNorm => one("post_attention_layernorm.weight"),
        // `post_attention_layernorm` is the norm before the feed-forward block, except where both exist.
        MlpNorm if sandwich => one("pre_feedforward_layernorm.weight"),
        MlpNorm => one("post_attention_layernorm.weight"),
        MlpNormBias => one("post_attention_layernorm.bias"),
        PostMlpNorm => one("post_feedforward_layernorm.weight"),
        Gate => one("mlp.gate_proj.weight"),
        GateBias => one("mlp.gate_proj.bias"),
        Up if phi => one("mlp.fc1.weight"),
        UpBias if phi => one("mlp.fc1.bias"),
        Down if phi => one("mlp.fc2.weight"),
        DownBias if phi => one("mlp.fc2.bias"),
        Up => one("mlp.up_proj.weight"),
        UpBias => one("mlp.up_proj.bias"),
        Down => one("mlp.down_proj.weight"),
        DownBias => one("mlp.down_proj.bias"),
        Router => [one("block_sparse_moe.gate.weight"), one("mlp.gate.weight")].concat(),
        ExpertGate(e) => expert(c, layer, e, "w1", shape),
        ExpertUp(e) => expert(c, layer, e, "w3", shape),
        ExpertDown(e) => expert(c, layer, e, "w2", shape),
    }
}

/// Tensors that a file may hold without taking part: precomputed rotary angles and causal masks, a copy of a tied head, and
/// what belongs to the vision part of a multimodal checkpoint.
pub(super) fn is_redundant(name: &str, config: &DecoderConfig) -> bool {
    let vision = ["vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."];
    name.ends_with(".rotary_emb.inv_freq")
        || name.ends_with(".attn.bias")
        || name.ends_with(".attn.masked_bias")
        || (config.tied_embeddings && name.ends_with("lm_head.weight"))
        || vision.iter().any(|prefix| name.starts_with(prefix))
}

/// Phi-3 stacks q, k and v in one matrix and gate and up in another: name, rows of the whole, first row of the part.
fn phi3_fused(c: &DecoderConfig, p: LayerParameter) -> Option<(&'static str, usize, usize)> {
    let (queries, keys) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
    let inner = c.intermediate_size;
    Some(match p {
        LayerParameter::Query => ("self_attn.qkv_proj.weight", queries + 2 * keys, 0),
        LayerParameter::Key => ("self_attn.qkv_proj.weight", queries + 2 * keys, queries),
        LayerParameter::Value => ("self_attn.qkv_proj.weight", queries + 2 * keys, queries + keys),
        LayerParameter::Gate => ("mlp.gate_up_proj.weight", 2 * inner, 0),
        LayerParameter::Up => ("mlp.gate_up_proj.weight", 2 * inner, inner),
        _ => return None,
    })
}

/// Mixtral: one matrix an expert as published, or all experts stacked as the modules of transformers 5 hold them.
fn expert(
    c: &DecoderConfig,
    layer: usize,
    e: usize,
    matrix: &str,
    shape: &[usize],
) -> Vec<(String, Vec<usize>, usize)> {
    let count = c.experts.map_or(0, |x| x.count);
    let (hidden, inner) = (c.hidden_size, c.intermediate_size);
    let single = (format!("layers.{layer}.block_sparse_moe.experts.{e}.{matrix}.weight"), shape.to_vec(), 0);
    let stacked = if matrix == "w2" {
        (format!("layers.{layer}.mlp.experts.down_proj"), vec![count, hidden, inner], e * hidden * inner)
    } else {
        let half = usize::from(matrix == "w3") * inner;
        let start = (e * 2 * inner + half) * hidden;
        (format!("layers.{layer}.mlp.experts.gate_up_proj"), vec![count, 2 * inner, hidden], start)
    };
    vec![single, stacked]
}
