//! Names and orders that llama.cpp's converter gives the tensors of recent families.
use crate::gguf_files::permute;
use earnest_models::checkpoint::{DecoderConfig, ExpertPlacement, LayerParameter, Parameter, Position};

/// Architectures whose converter reorders rows.
const REORDERED: [&str; 5] = ["llama", "smollm3", "granite", "granitemoe", "mistral3"];
/// Architectures whose checkpoints rotate adjacent pairs themselves.
const PAIRED: [&str; 4] = ["glm4", "cohere2", "llama4", "deepseek2"];

/// Returns the file's values of a parameter, from the engine's.
pub(crate) fn file_values(
    c: &DecoderConfig,
    arch: &str,
    parameter: Parameter,
    values: Vec<f32>,
    width: usize,
) -> Vec<f32> {
    use LayerParameter::*;
    let Parameter::Layer(layer, p) = parameter else { return values };
    let l = &c.layers[layer];
    let heads = match p {
        Query | QueryBias => c.num_heads,
        Key | KeyBias => l.num_kv_heads,
        _ => 0,
    };
    if heads > 0 && REORDERED.contains(&arch) {
        return permute(&values, heads, width);
    }
    let rotated = match l.position {
        Position::Rotary(rope) if PAIRED.contains(&arch) => c.ropes[rope].dims,
        _ => 0,
    };
    match (p, c.latent) {
        (Query, Some(a)) => {
            pairs(&values, c.num_heads, a.plain_dims + a.rotary_dims, a.plain_dims, a.rotary_dims, width)
        }
        (KvDown, Some(a)) => pairs(&values, 1, a.kv_rank + a.rotary_dims, a.kv_rank, a.rotary_dims, width),
        _ if heads > 0 && rotated > 0 => pairs(&values, heads, l.head_dim, 0, rotated, width),
        (Query, None) if c.gated_attention => {
            let run = l.head_dim * width;
            let row = |i: usize| &values[i * run..(i + 1) * run];
            (0..heads).flat_map(|head| [row(head), row(heads + head)].concat()).collect()
        }
        _ => linear(c, p, l.linear, values, width),
    }
}

/// Moves rows `first + j * dims / 2 + i` of each head to `first + 2 i + j`.
fn pairs(values: &[f32], heads: usize, head_dim: usize, first: usize, dims: usize, width: usize) -> Vec<f32> {
    let source = |index: usize| match index.checked_sub(first).filter(|p| *p < dims) {
        Some(p) => first + p % 2 * (dims / 2) + p / 2,
        None => index,
    };
    let rows = (0..heads).flat_map(|head| (0..head_dim).map(move |index| head * head_dim + source(index)));
    rows.flat_map(|row| values[row * width..(row + 1) * width].to_vec()).collect()
}

/// Lets the value heads of different key heads alternate, and exponentiates the decay.
fn linear(c: &DecoderConfig, p: LayerParameter, is: bool, values: Vec<f32>, width: usize) -> Vec<f32> {
    use LayerParameter::*;
    let Some(a) = c.linear else { return values };
    let (first, run) = match p {
        LinearQkv | LinearConvolution => (2 * a.key_heads * a.key_dims * width, a.value_dims * width),
        LinearGate => (0, a.value_dims * width),
        LinearStrength | LinearDecay | LinearDecayBias | LinearDecayLog => (0, width),
        Output if is => {
            let rows = values.chunks(width).flat_map(|row| tiled(row, a.key_heads, a.value_heads, a.value_dims));
            return rows.collect();
        }
        _ => return values,
    };
    let (kept, moved) = values.split_at(first);
    let all = [kept.to_vec(), tiled(moved, a.key_heads, a.value_heads, run)].concat();
    if p == LinearDecayLog { all.into_iter().map(|v| -v.exp()).collect() } else { all }
}

/// `reshape(keys, heads / keys, run).swapaxes(0, 1)`.
fn tiled(values: &[f32], keys: usize, heads: usize, run: usize) -> Vec<f32> {
    let each = heads / keys;
    let order = (0..each).flat_map(|i| (0..keys).map(move |key| key * each + i));
    order.flat_map(|head| values[head * run..(head + 1) * run].to_vec()).collect()
}

/// Returns the name of a parameter's tensor.
pub(crate) fn tensor_name(c: &DecoderConfig, arch: &str, parameter: Parameter) -> String {
    let (layer, p) = match parameter {
        Parameter::Embedding => return "token_embd.weight".into(),
        Parameter::FinalNorm => return "output_norm.weight".into(),
        Parameter::FinalNormBias => return "output_norm.bias".into(),
        Parameter::Head => return "output.weight".into(),
        Parameter::HeadBias => return "output.bias".into(),
        Parameter::LayerInputEmbedding => return "per_layer_token_embd.weight".into(),
        Parameter::LayerInputProjection => return "per_layer_model_proj.weight".into(),
        Parameter::LayerInputNorm => return "per_layer_proj_norm.weight".into(),
        Parameter::StreamProjection(_) => return "altup_proj.weight".into(),
        Parameter::StreamUnembedding(_) => return "altup_unembd_proj.weight".into(),
        Parameter::Layer(layer, p) => (layer, p),
    };
    let l = &c.layers[layer];
    let beside = c.experts.is_some_and(|e| e.placement == ExpertPlacement::Beside);
    use LayerParameter::*;
    let name = match p {
        Query | Key | Value if arch == "phi3" => "attn_qkv.weight",
        Gate if matches!(arch, "phi3" | "glm4") => "ffn_up.weight",
        AttentionNorm => "attn_norm.weight",
        AttentionNormBias => "attn_norm.bias",
        Query if c.latent.is_some() => "attn_q_b.weight",
        Query => "attn_q.weight",
        QueryBias => "attn_q.bias",
        Key => "attn_k.weight",
        KeyBias => "attn_k.bias",
        Value => "attn_v.weight",
        ValueBias => "attn_v.bias",
        Output if l.linear => "ssm_out.weight",
        Output => "attn_output.weight",
        OutputBias => "attn_output.bias",
        QueryNorm => "attn_q_norm.weight",
        KeyNorm => "attn_k_norm.weight",
        Sinks => "attn_sinks.weight",
        PostAttentionNorm => "post_attention_norm.weight",
        MlpNorm if matches!(arch, "gpt-oss" | "glm4moe" | "qwen35" | "qwen35moe") => "post_attention_norm.weight",
        MlpNorm => "ffn_norm.weight",
        MlpNormBias => "ffn_norm.bias",
        PostMlpNorm => "post_ffw_norm.weight",
        Gate if l.experts && !beside => "ffn_gate_shexp.weight",
        Up if l.experts && !beside => "ffn_up_shexp.weight",
        Down if l.experts && !beside => "ffn_down_shexp.weight",
        Gate => "ffn_gate.weight",
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
        ExpertGate(_) | ExpertUp(_) if beside => "ffn_gate_up_exps.weight",
        ExpertGate(_) => "ffn_gate_exps.weight",
        ExpertUp(_) => "ffn_up_exps.weight",
        ExpertDown(_) => "ffn_down_exps.weight",
        ExpertGateBias(_) => "ffn_gate_exps.bias",
        ExpertUpBias(_) => "ffn_up_exps.bias",
        ExpertDownBias(_) => "ffn_down_exps.bias",
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
        GateBias => panic!("no family of these tests has it"),
    };
    format!("blk.{layer}.{name}")
}
