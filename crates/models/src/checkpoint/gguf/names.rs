//! Tensor names of GGUF files.
use super::super::hf::names::Place;
use super::super::{DecoderConfig, ExpertPlacement, KeysValues, LayerParameter, Parameter};
use super::arch::GgufArchitecture;

/// Returns the possible places of a parameter, the usual one first.
pub(in crate::checkpoint) fn places(
    arch: GgufArchitecture,
    c: &DecoderConfig,
    parameter: Parameter,
    shape: &[usize],
) -> Vec<Place> {
    let whole = |name: String| Place::whole(name, shape);
    let top = |name: &str| vec![whole(name.to_string())];
    let stream = |name: &str, i: usize| {
        let all = [vec![c.streams.map_or(1, |s| s.count) - 1], shape.to_vec()].concat();
        vec![Place::run(name.to_string(), all, i * shape.iter().product::<usize>(), shape)]
    };
    let (layer, p) = match parameter {
        Parameter::Embedding => return top("token_embd.weight"),
        Parameter::FinalNorm => return top("output_norm.weight"),
        Parameter::FinalNormBias => return top("output_norm.bias"),
        Parameter::Head => return top("output.weight"),
        Parameter::HeadBias => return top("output.bias"),
        Parameter::LayerInputEmbedding => return top("per_layer_token_embd.weight"),
        Parameter::LayerInputProjection => return top("per_layer_model_proj.weight"),
        Parameter::LayerInputNorm => return top("per_layer_proj_norm.weight"),
        Parameter::StreamProjection(i) => return stream("altup_proj.weight", i),
        Parameter::StreamUnembedding(i) => return stream("altup_unembd_proj.weight", i),
        Parameter::Layer(layer, p) => (layer, p),
    };
    let Some(l) = c.layers.get(layer) else { return Vec::new() };
    let width = shape.get(1).copied().unwrap_or(1);
    let at = |name: &str| format!("blk.{layer}.{name}");
    let rows = |name: &str, rows: usize, first: usize| {
        let all = std::iter::once(rows).chain(shape.get(1).copied()).collect();
        Place::run(at(name), all, first * width, shape)
    };
    let queries = c.num_heads * l.head_dim * if c.gated_attention { 2 } else { 1 };
    let (keys, inner) = (l.num_kv_heads * l.head_dim, l.intermediate_size);
    let all = queries + 2 * keys;
    use LayerParameter::*;
    vec![match p {
        Query if c.latent.is_some_and(|l| l.query_rank.is_some()) => whole(at("attn_q_b.weight")),
        Query => return vec![whole(at("attn_q.weight")), rows("attn_qkv.weight", all, 0)],
        Key => return vec![whole(at("attn_k.weight")), rows("attn_qkv.weight", all, queries)],
        Value => return vec![whole(at("attn_v.weight")), rows("attn_qkv.weight", all, queries + keys)],
        QueryBias => return vec![whole(at("attn_q.bias")), rows("attn_qkv.bias", all, 0)],
        KeyBias => return vec![whole(at("attn_k.bias")), rows("attn_qkv.bias", all, queries)],
        ValueBias => return vec![whole(at("attn_v.bias")), rows("attn_qkv.bias", all, queries + keys)],
        Gate if arch.stacks_gate_in_up() => rows("ffn_up.weight", 2 * inner, 0),
        Up if arch.stacks_gate_in_up() => rows("ffn_up.weight", 2 * inner, inner),
        ExpertGate(e) => return expert(c, layer, e, "ffn_gate", shape),
        ExpertUp(e) => return expert(c, layer, e, "ffn_up", shape),
        ExpertDown(e) => return expert(c, layer, e, "ffn_down", shape),
        ExpertGateBias(e) => expert_bias(c, layer, e, "ffn_gate", shape),
        ExpertUpBias(e) => expert_bias(c, layer, e, "ffn_up", shape),
        ExpertDownBias(e) => expert_bias(c, layer, e, "ffn_down", shape),
        p => {
            let shared = l.experts && c.experts.is_some_and(|e| e.placement == ExpertPlacement::Sum);
            whole(at(name(arch, p, shared, l.linear)))
        }
    }]
}

/// The name of a parameter that has a tensor of its own, without the prefix of the layer.
fn name(arch: GgufArchitecture, p: LayerParameter, shared: bool, linear: bool) -> &'static str {
    use LayerParameter::*;
    match p {
        AttentionNorm => "attn_norm.weight",
        AttentionNormBias => "attn_norm.bias",
        Query => "attn_q.weight",
        QueryBias => "attn_q.bias",
        Key => "attn_k.weight",
        KeyBias => "attn_k.bias",
        Value => "attn_v.weight",
        ValueBias => "attn_v.bias",
        Output if linear => "ssm_out.weight",
        Output => "attn_output.weight",
        OutputBias => "attn_output.bias",
        QueryNorm => "attn_q_norm.weight",
        KeyNorm => "attn_k_norm.weight",
        PostAttentionNorm => "post_attention_norm.weight",
        MlpNorm if arch.names_norm_after_attention() => "post_attention_norm.weight",
        MlpNorm => "ffn_norm.weight",
        MlpNormBias => "ffn_norm.bias",
        PostMlpNorm => "post_ffw_norm.weight",
        Gate if shared => "ffn_gate_shexp.weight",
        Up if shared => "ffn_up_shexp.weight",
        Down if shared => "ffn_down_shexp.weight",
        Gate => "ffn_gate.weight",
        GateBias => "ffn_gate.bias",
        Up => "ffn_up.weight",
        UpBias => "ffn_up.bias",
        Down => "ffn_down.weight",
        DownBias => "ffn_down.bias",
        Router => "ffn_gate_inp.weight",
        RouterBias => "ffn_gate_inp.bias",
        SharedGate => "ffn_gate_inp_shexp.weight",
        ChoiceBias => "exp_probs_b.bias",
        RouterScale => "ffn_gate_inp.scale",
        ExpertScale => "ffn_down_exps.scale",
        ExpertsNorm => "pre_ffw_norm_2.weight",
        PostExpertsNorm => "post_ffw_norm_2.weight",
        PostDenseNorm => "post_ffw_norm_1.weight",
        Sinks => "attn_sinks.weight",
        QueryDown => "attn_q_a.weight",
        QueryDownNorm => "attn_q_a_norm.weight",
        KvDown => "attn_kv_a_mqa.weight",
        KvDownNorm => "attn_kv_a_norm.weight",
        KvUp => "attn_kv_b.weight",
        LinearQkv => "attn_qkv.weight",
        LinearGate => "attn_gate.weight",
        LinearStrength => "ssm_beta.weight",
        LinearDecay => "ssm_alpha.weight",
        LinearConvolution => "ssm_conv1d.weight",
        LinearDecayLog => "ssm_a",
        LinearDecayBias => "ssm_dt.bias",
        LinearNorm => "ssm_norm.weight",
        LayerInputGate => "inp_gate.weight",
        LayerInputUp => "proj.weight",
        PostLayerInputNorm => "post_norm.weight",
        LayerScalar => "layer_output_scale.weight",
        BranchDown => "laurel_l.weight",
        BranchUp => "laurel_r.weight",
        PostBranchNorm => "laurel_post_norm.weight",
        StreamRouter => "altup_router.weight",
        StreamRouterNorm => "altup_router_norm.weight",
        StreamPrediction => "altup_predict_coef.weight",
        StreamCorrection => "altup_correct_coef.weight",
        StreamScale => "altup_correct_scale.weight",
        ExpertGate(_) | ExpertUp(_) | ExpertDown(_) | ExpertGateBias(_) | ExpertUpBias(_) | ExpertDownBias(_) => {
            unreachable!("experts are stacked")
        }
    }
}

/// Returns the places of an expert's matrix: in the stack of all experts, of gates and up projections together, or in older files in a
/// tensor of its own.
fn expert(c: &DecoderConfig, layer: usize, e: usize, matrix: &str, shape: &[usize]) -> Vec<Place> {
    let (count, inner) = c.experts.map_or((0, 0), |x| (x.count, x.intermediate_size));
    let stacked = std::iter::once(count).chain(shape.iter().copied()).collect();
    let size = shape.iter().product::<usize>();
    let mut places = vec![
        Place::run(format!("blk.{layer}.{matrix}_exps.weight"), stacked, e * size, shape),
        Place::whole(format!("blk.{layer}.{matrix}.{e}.weight"), shape),
    ];
    let half = ["ffn_gate", "ffn_up"].iter().position(|name| *name == matrix);
    if let (Some(half), &[_, hidden]) = (half, shape) {
        let name = format!("blk.{layer}.ffn_gate_up_exps.weight");
        places.push(Place::run(name, vec![count, 2 * inner, hidden], (2 * e + half) * size, shape));
    }
    places
}

fn expert_bias(c: &DecoderConfig, layer: usize, e: usize, matrix: &str, shape: &[usize]) -> Place {
    let width = shape.iter().product::<usize>();
    let all = vec![c.experts.map_or(0, |x| x.count), width];
    Place::run(format!("blk.{layer}.{matrix}_exps.bias"), all, e * width, shape)
}

/// Keys and values of latent attention, which newer files have apart: those of keys `[heads, rank, plain]`, those of values
/// `[heads, values, rank]`.
pub(in crate::checkpoint) fn latent_parts(c: &DecoderConfig, parameter: Parameter) -> Option<[Place; 2]> {
    let (Parameter::Layer(layer, LayerParameter::KvUp), Some(latent)) = (parameter, c.latent) else { return None };
    let part = |name: &str, shape: [usize; 3]| Place::whole(format!("blk.{layer}.{name}.weight"), &shape);
    let keys = part("attn_k_b", [c.num_heads, latent.kv_rank, latent.plain_dims]);
    Some([keys, part("attn_v_b", [c.num_heads, latent.value_dims, latent.kv_rank])])
}

/// True for tensors that a file has in addition: frequencies of rotary embeddings, which the metadata imply, keys and values of layers
/// that use those of another, and layers that predict further tokens. `has` tells whether the file has a tensor.
pub(in crate::checkpoint) fn is_redundant(name: &str, c: &DecoderConfig, has: &dyn Fn(&str) -> bool) -> bool {
    if matches!(name, "rope_freqs.weight" | "rope_factors_long.weight" | "rope_factors_short.weight") {
        return true;
    }
    let Some((layer, rest)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) else { return false };
    let shared = ["attn_k.weight", "attn_v.weight", "attn_k_norm.weight"];
    rest == "attn_rot_embd"
        || rest == "rope_freqs.weight"
        || match layer.parse().ok().and_then(|layer: usize| c.layers.get(layer)) {
            None => has(&format!("blk.{layer}.nextn.eh_proj.weight")),
            Some(l) => matches!(l.keys_values, KeysValues::OfLayer(_)) && shared.contains(&rest),
        }
}
