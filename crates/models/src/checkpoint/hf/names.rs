//! Tensor names of Hugging Face checkpoints.
use super::super::layout::Strides;
use super::super::{DecoderConfig, KeysValues, LayerParameter, Parameter};
use super::expert_names;
use super::family::Family;

/// The place of a parameter: a run of elements of a stored tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::checkpoint) struct Place {
    /// The stored tensor's name.
    pub(in crate::checkpoint) tensor: String,
    /// Shape of the whole tensor, as the configuration implies it.
    pub(in crate::checkpoint) whole: Vec<usize>,
    /// First element of the parameter.
    pub(in crate::checkpoint) start: usize,
    /// Shape of the parameter.
    pub(in crate::checkpoint) part: Vec<usize>,
    /// Order of the elements; none if they follow each other row by row.
    pub(in crate::checkpoint) strides: Option<Strides>,
    /// The tensor has blocks of MXFP4, their scales are in one named `_scales` for `_blocks`; `start` and `strides` count blocks.
    pub(in crate::checkpoint) mxfp4: bool,
}

impl Place {
    /// A contiguous run.
    pub(in crate::checkpoint) fn run(tensor: String, whole: Vec<usize>, start: usize, part: &[usize]) -> Place {
        Place { tensor, whole, start, part: part.to_vec(), strides: None, mxfp4: false }
    }

    pub(in crate::checkpoint) fn whole(tensor: String, shape: &[usize]) -> Place {
        Place::run(tensor, shape.to_vec(), 0, shape)
    }
}

/// Returns the possible places of a parameter, the usual one first.
pub(in crate::checkpoint) fn places(
    family: Family,
    c: &DecoderConfig,
    parameter: Parameter,
    shape: &[usize],
) -> Vec<Place> {
    let mut places = Vec::new();
    for place in candidates(family, c, parameter, shape) {
        let named = |tensor: String| Place { tensor, ..place.clone() };
        let name = &place.tensor;
        if matches!(parameter, Parameter::Head | Parameter::HeadBias) {
            places.push(named(name.clone()));
            places.push(named(format!("language_model.{name}")));
            continue;
        }
        places.push(named(format!("model.{name}")));
        if family.has_text_config() {
            // Checkpoints with a vision tower: as published, and as transformers 5 writes them.
            places.push(named(format!("language_model.model.{name}")));
            places.push(named(format!("model.language_model.{name}")));
        }
        // The bare decoder without its head.
        places.push(place);
    }
    if parameter == Parameter::Embedding && c.tied_embeddings {
        // A matrix that is both may be stored under the head's name alone.
        places.extend(self::places(family, c, Parameter::Head, shape));
    }
    places
}

fn candidates(family: Family, c: &DecoderConfig, parameter: Parameter, shape: &[usize]) -> Vec<Place> {
    let plain = |name: &str| vec![Place::whole(name.to_string(), shape)];
    let (layer, p) = match parameter {
        Parameter::Embedding => return plain("embed_tokens.weight"),
        Parameter::FinalNorm if family == Family::Phi => return plain("final_layernorm.weight"),
        Parameter::FinalNormBias if family == Family::Phi => return plain("final_layernorm.bias"),
        Parameter::FinalNormBias => return plain("norm.bias"),
        Parameter::FinalNorm => return plain("norm.weight"),
        Parameter::Head => return plain("lm_head.weight"),
        Parameter::HeadBias => return plain("lm_head.bias"),
        Parameter::LayerInputEmbedding => return plain("embed_tokens_per_layer.weight"),
        Parameter::LayerInputProjection => return plain("per_layer_model_projection.weight"),
        Parameter::LayerInputNorm => return plain("per_layer_projection_norm.weight"),
        Parameter::StreamProjection(i) => return plain(&format!("altup_projections.{i}.weight")),
        Parameter::StreamUnembedding(i) => return plain(&format!("altup_unembed_projections.{i}.weight")),
        Parameter::Layer(layer, p) => (layer, p),
    };
    let at = |name: &str| format!("layers.{layer}.{name}");
    if let Some((name, rows, first)) = fused(family, c, layer, p) {
        let width = shape.get(1).copied().unwrap_or(1);
        return vec![Place::run(at(name), vec![rows, width], first * width, shape)];
    }
    let experts = expert_names::places(family, c, p, shape);
    if !experts.is_empty() {
        return experts.into_iter().map(|place| Place { tensor: at(&place.tensor), ..place }).collect();
    }
    let one = |name: &str| Place::whole(at(name), shape);
    if p == LayerParameter::Router {
        return routers(family).iter().map(|name| one(name)).collect();
    }
    if p == LayerParameter::Query && c.latent.is_some_and(|l| l.query_rank.is_some()) {
        return vec![one("self_attn.q_b_proj.weight")];
    }
    if c.layers.get(layer).is_some_and(|l| l.linear) && p == LayerParameter::Output {
        return vec![one("linear_attn.out_proj.weight")];
    }
    if p == LayerParameter::LinearConvolution {
        let whole = shape.iter().take(1).chain(&[1]).chain(shape.iter().skip(1)).copied().collect();
        return vec![Place::run(at("linear_attn.conv1d.weight"), whole, 0, shape)];
    }
    let with_experts = c.layers.get(layer).is_some_and(|l| l.experts);
    vec![one(name(family, p, with_experts))]
}

/// Names of the router's matrix.
fn routers(family: Family) -> &'static [&'static str] {
    match family {
        Family::GptOss => &["mlp.router.weight"],
        Family::Llama4 => &["feed_forward.router.weight"],
        Family::GraniteMoe | Family::GraniteMoeHybrid => &["block_sparse_moe.router.layer.weight"],
        Family::Gemma4 => &["router.proj.weight"],
        _ => &["block_sparse_moe.gate.weight", "mlp.gate.weight"],
    }
}

/// The name of a parameter that has a tensor of its own, without the prefix of the layer.
fn name(family: Family, p: LayerParameter, with_experts: bool) -> &'static str {
    use LayerParameter::*;
    let phi = family == Family::Phi;
    let glm = family == Family::Glm4;
    let before_mlp = matches!(family, Family::Gemma2 | Family::Gemma3 | Family::Gemma3n | Family::Gemma4);
    let hunyuan = family == Family::HunyuanDense;
    match p {
        AttentionNorm => "input_layernorm.weight",
        AttentionNormBias => "input_layernorm.bias",
        Query => "self_attn.q_proj.weight",
        QueryBias => "self_attn.q_proj.bias",
        Key => "self_attn.k_proj.weight",
        KeyBias => "self_attn.k_proj.bias",
        Value => "self_attn.v_proj.weight",
        ValueBias => "self_attn.v_proj.bias",
        Output if phi => "self_attn.dense.weight",
        OutputBias if phi => "self_attn.dense.bias",
        Output => "self_attn.o_proj.weight",
        OutputBias => "self_attn.o_proj.bias",
        QueryNorm if hunyuan => "self_attn.query_layernorm.weight",
        KeyNorm if hunyuan => "self_attn.key_layernorm.weight",
        QueryNorm => "self_attn.q_norm.weight",
        KeyNorm => "self_attn.k_norm.weight",
        Sinks => "self_attn.sinks",
        QueryDown => "self_attn.q_a_proj.weight",
        QueryDownNorm => "self_attn.q_a_layernorm.weight",
        KvDown => "self_attn.kv_a_proj_with_mqa.weight",
        KvDownNorm => "self_attn.kv_a_layernorm.weight",
        KvUp => "self_attn.kv_b_proj.weight",
        PostAttentionNorm if glm => "post_self_attn_layernorm.weight",
        PostAttentionNorm => "post_attention_layernorm.weight",
        // `post_attention_layernorm` is the norm before the feed-forward block, except where both exist.
        MlpNorm if before_mlp => "pre_feedforward_layernorm.weight",
        MlpNorm => "post_attention_layernorm.weight",
        MlpNormBias => "post_attention_layernorm.bias",
        PostMlpNorm if glm => "post_mlp_layernorm.weight",
        PostMlpNorm => "post_feedforward_layernorm.weight",
        Gate | GateBias | Up | UpBias | Down | DownBias => feed_forward_name(family, p, with_experts),
        Router => "mlp.gate.weight",
        RouterBias => "mlp.router.bias",
        SharedGate => "mlp.shared_expert_gate.weight",
        ChoiceBias => "mlp.gate.e_score_correction_bias",
        RouterScale => "router.scale",
        ExpertScale => "router.per_expert_scale",
        ExpertsNorm => "pre_feedforward_layernorm_2.weight",
        PostExpertsNorm => "post_feedforward_layernorm_2.weight",
        PostDenseNorm => "post_feedforward_layernorm_1.weight",
        LinearQkv => "linear_attn.in_proj_qkv.weight",
        LinearGate => "linear_attn.in_proj_z.weight",
        LinearStrength => "linear_attn.in_proj_b.weight",
        LinearDecay => "linear_attn.in_proj_a.weight",
        LinearConvolution => "linear_attn.conv1d.weight",
        LinearDecayLog => "linear_attn.A_log",
        LinearDecayBias => "linear_attn.dt_bias",
        LinearNorm => "linear_attn.norm.weight",
        LayerInputGate => "per_layer_input_gate.weight",
        LayerInputUp => "per_layer_projection.weight",
        PostLayerInputNorm => "post_per_layer_input_norm.weight",
        LayerScalar => "layer_scalar",
        BranchDown => "laurel.linear_left.weight",
        BranchUp => "laurel.linear_right.weight",
        PostBranchNorm => "laurel.post_laurel_norm.weight",
        StreamRouter => "altup.modality_router.weight",
        StreamRouterNorm => "altup.router_norm.weight",
        StreamPrediction => "altup.prediction_coefs.weight",
        StreamCorrection => "altup.correction_coefs.weight",
        StreamScale => "altup.correct_output_scale",
        ExpertGate(_) | ExpertUp(_) | ExpertDown(_) | ExpertGateBias(_) | ExpertUpBias(_) | ExpertDownBias(_) => {
            unreachable!("experts have names of their own")
        }
    }
}

/// The name of a part of the dense or shared feed-forward block.
fn feed_forward_name(family: Family, p: LayerParameter, with_experts: bool) -> &'static str {
    use LayerParameter::*;
    let phi = family == Family::Phi;
    match p {
        _ if family == Family::Starcoder2 => match p {
            Up => "mlp.c_fc.weight",
            UpBias => "mlp.c_fc.bias",
            Down => "mlp.c_proj.weight",
            _ => "mlp.c_proj.bias",
        },
        Gate | Up | Down if family == Family::Llama4 => match (p, with_experts) {
            (Gate, true) => "feed_forward.shared_expert.gate_proj.weight",
            (Up, true) => "feed_forward.shared_expert.up_proj.weight",
            (_, true) => "feed_forward.shared_expert.down_proj.weight",
            (Gate, false) => "feed_forward.gate_proj.weight",
            (Up, false) => "feed_forward.up_proj.weight",
            (_, false) => "feed_forward.down_proj.weight",
        },
        Gate | Up | Down if family == Family::Qwen35Moe => match p {
            Gate => "mlp.shared_expert.gate_proj.weight",
            Up => "mlp.shared_expert.up_proj.weight",
            _ => "mlp.shared_expert.down_proj.weight",
        },
        Down if family == Family::GraniteMoeHybrid => "shared_mlp.output_linear.weight",
        Gate | Up | Down if with_experts && family != Family::Gemma4 => match p {
            Gate => "mlp.shared_experts.gate_proj.weight",
            Up => "mlp.shared_experts.up_proj.weight",
            _ => "mlp.shared_experts.down_proj.weight",
        },
        Gate => "mlp.gate_proj.weight",
        GateBias => "mlp.gate_proj.bias",
        Up if phi => "mlp.fc1.weight",
        UpBias if phi => "mlp.fc1.bias",
        Down if phi => "mlp.fc2.weight",
        DownBias if phi => "mlp.fc2.bias",
        Up => "mlp.up_proj.weight",
        UpBias => "mlp.up_proj.bias",
        Down => "mlp.down_proj.weight",
        _ => "mlp.down_proj.bias",
    }
}

/// Matrices stacked in one tensor: name, rows of the whole, first row of the part.
fn fused(family: Family, c: &DecoderConfig, layer: usize, p: LayerParameter) -> Option<(&'static str, usize, usize)> {
    let (queries, keys) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
    let inner = c.layers.get(layer).map_or(0, |l| l.intermediate_size);
    let gate_up = match family {
        Family::Phi3 | Family::Glm4 => "mlp.gate_up_proj.weight",
        Family::GraniteMoeHybrid => "shared_mlp.input_linear.weight",
        _ => return None,
    };
    let qkv = "self_attn.qkv_proj.weight";
    Some(match p {
        LayerParameter::Query if family == Family::Phi3 => (qkv, queries + 2 * keys, 0),
        LayerParameter::Key if family == Family::Phi3 => (qkv, queries + 2 * keys, queries),
        LayerParameter::Value if family == Family::Phi3 => (qkv, queries + 2 * keys, queries + keys),
        LayerParameter::Gate => (gate_up, 2 * inner, 0),
        LayerParameter::Up => (gate_up, 2 * inner, inner),
        _ => return None,
    })
}

/// Parts of multimodal checkpoints, and of heads that predict several tokens.
const OTHER_PARTS: [&str; 11] = [
    "vision_tower.",
    "vision_model.",
    "visual.",
    "audio_tower.",
    "multi_modal_projector.",
    "embed_vision.",
    "embed_audio.",
    "mtp.",
    "model.image_newline",
    "patch_merger.",
    "vision_embedder.",
];

/// True for tensors that a file may hold without taking part: precomputed rotary angles and causal masks, a copy of a tied head, scales that are
/// switched off, keys
/// of layers that use those of another, and what belongs to other modalities or to the prediction of further tokens. `has` tells
/// whether the file has a tensor.
pub(in crate::checkpoint) fn is_redundant(name: &str, config: &DecoderConfig, has: &dyn Fn(&str) -> bool) -> bool {
    let bare = name.strip_prefix("model.").unwrap_or(name);
    name.ends_with(".rotary_emb.inv_freq")
        || name.ends_with(".attn.bias")
        || name.ends_with(".attn.masked_bias")
        || (config.tied_embeddings && name.ends_with("lm_head.weight"))
        || (config.streams.is_some_and(|streams| !streams.scaled) && name.ends_with(".altup.correct_output_scale"))
        || OTHER_PARTS.iter().any(|prefix| bare.starts_with(prefix) || name.starts_with(prefix))
        || layer_of(name).is_some_and(|(prefix, layer, rest)| match config.layers.get(layer) {
            // A layer behind the last one that joins the hidden state with the next embedding.
            None => {
                ["weight", "qweight", "weight_packed"].iter().any(|end| has(&format!("{prefix}{layer}.eh_proj.{end}")))
            }
            Some(l) => {
                matches!(l.keys_values, KeysValues::OfLayer(_))
                    && ["k_proj.", "v_proj.", "k_norm.", "v_norm."]
                        .iter()
                        .any(|shared| rest.strip_prefix("self_attn.").is_some_and(|rest| rest.starts_with(shared)))
            }
        })
}

/// Splits the name of a layer's tensor: up to its index, the index, and what follows.
fn layer_of(name: &str) -> Option<(&str, usize, &str)> {
    let start = name.find("layers.")? + "layers.".len();
    let (prefix, rest) = name.split_at_checked(start)?;
    let (index, rest) = rest.split_once('.')?;
    Some((prefix, index.parse().ok()?, rest))
}
