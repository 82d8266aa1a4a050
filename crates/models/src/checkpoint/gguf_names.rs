//! Tensor names of GGUF files.
use super::gguf_config::GgufArchitecture;
use super::hf_names::Place;
use super::{DecoderConfig, LayerParameter, Parameter};

/// Returns the possible places of a parameter, the usual one first.
pub(super) fn places(arch: GgufArchitecture, c: &DecoderConfig, parameter: Parameter, shape: &[usize]) -> Vec<Place> {
    let whole = |name: String| Place::whole(name, shape);
    let top = |name: &str| vec![whole(name.to_string())];
    let (layer, p) = match parameter {
        Parameter::Embedding => return top("token_embd.weight"),
        Parameter::FinalNorm => return top("output_norm.weight"),
        Parameter::FinalNormBias => return top("output_norm.bias"),
        Parameter::Head => return top("output.weight"),
        Parameter::HeadBias => return top("output.bias"),
        Parameter::Layer(layer, p) => (layer, p),
        // Of families whose GGUF files are refused.
        _ => return Vec::new(),
    };
    let width = shape.get(1).copied().unwrap_or(1);
    let at = |name: &str| format!("blk.{layer}.{name}");
    let rows = |name: &str, rows: usize, first: usize| {
        let all = std::iter::once(rows).chain(shape.get(1).copied()).collect();
        Place::run(at(name), all, first * width, shape)
    };
    let (queries, keys, inner) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim, c.intermediate_size);
    let all = queries + 2 * keys;
    use LayerParameter::*;
    let name = match p {
        AttentionNorm => "attn_norm.weight",
        AttentionNormBias => "attn_norm.bias",
        Query => return vec![whole(at("attn_q.weight")), rows("attn_qkv.weight", all, 0)],
        Key => return vec![whole(at("attn_k.weight")), rows("attn_qkv.weight", all, queries)],
        Value => return vec![whole(at("attn_v.weight")), rows("attn_qkv.weight", all, queries + keys)],
        QueryBias => return vec![whole(at("attn_q.bias")), rows("attn_qkv.bias", all, 0)],
        KeyBias => return vec![whole(at("attn_k.bias")), rows("attn_qkv.bias", all, queries)],
        ValueBias => return vec![whole(at("attn_v.bias")), rows("attn_qkv.bias", all, queries + keys)],
        Output => "attn_output.weight",
        OutputBias => "attn_output.bias",
        QueryNorm => "attn_q_norm.weight",
        KeyNorm => "attn_k_norm.weight",
        PostAttentionNorm => "post_attention_norm.weight",
        MlpNorm => "ffn_norm.weight",
        MlpNormBias => "ffn_norm.bias",
        PostMlpNorm => "post_ffw_norm.weight",
        // Phi-3 stacks gate and up in the tensor named up.
        Gate if arch == GgufArchitecture::Phi3 => return vec![rows("ffn_up.weight", 2 * inner, 0)],
        Up if arch == GgufArchitecture::Phi3 => return vec![rows("ffn_up.weight", 2 * inner, inner)],
        Gate => "ffn_gate.weight",
        GateBias => "ffn_gate.bias",
        Up => "ffn_up.weight",
        UpBias => "ffn_up.bias",
        Down => "ffn_down.weight",
        DownBias => "ffn_down.bias",
        Router => "ffn_gate_inp.weight",
        ExpertGate(e) => return expert(c, layer, e, "ffn_gate", shape),
        ExpertUp(e) => return expert(c, layer, e, "ffn_up", shape),
        ExpertDown(e) => return expert(c, layer, e, "ffn_down", shape),
        _ => return Vec::new(),
    };
    vec![whole(at(name))]
}

/// Returns the places of an expert's matrix: in the stack of all experts, or in older files in a tensor of its own.
fn expert(c: &DecoderConfig, layer: usize, e: usize, matrix: &str, shape: &[usize]) -> Vec<Place> {
    let count = c.experts.map_or(0, |x| x.count);
    let stacked = std::iter::once(count).chain(shape.iter().copied()).collect();
    let start = e * shape.iter().product::<usize>();
    vec![
        Place::run(format!("blk.{layer}.{matrix}_exps.weight"), stacked, start, shape),
        Place::whole(format!("blk.{layer}.{matrix}.{e}.weight"), shape),
    ]
}

/// True for tensors that other programs write in addition: frequencies of rotary embeddings, which the metadata imply.
pub(super) fn is_redundant(name: &str) -> bool {
    name == "rope_freqs.weight"
        || name == "rope_factors_long.weight"
        || name == "rope_factors_short.weight"
        || (name.starts_with("blk.") && (name.ends_with(".attn_rot_embd") || name.ends_with(".rope_freqs.weight")))
}
