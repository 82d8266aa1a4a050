//! Feed-forward blocks of a `config.json`: their widths, and which layers have a mixture of experts.
use super::super::json_fields::Fields;
use super::super::{CheckpointError, ExpertPlacement, Experts, Routing};
use super::family::Family;
use super::sizes::{MAX_LAYERS, Sizes};

/// Largest accepted number of experts in all layers together.
const MAX_EXPERTS: usize = 1 << 16;

/// The feed-forward block of a layer.
#[derive(Debug, Clone, Copy)]
pub(in crate::checkpoint) struct Block {
    /// Width of what is computed for every token; 0 for nothing.
    pub(in crate::checkpoint) dense: usize,
    pub(in crate::checkpoint) experts: bool,
    pub(in crate::checkpoint) gate_cutoff: Option<f32>,
}

/// All feed-forward blocks.
pub(in crate::checkpoint) struct FeedForward {
    pub(in crate::checkpoint) intermediate_size: usize,
    pub(in crate::checkpoint) experts: Option<Experts>,
    pub(in crate::checkpoint) layers: Vec<Block>,
}

/// Reads the feed-forward blocks of all layers.
pub(in crate::checkpoint) fn read(f: &Fields, family: Family, sizes: &Sizes) -> Result<FeedForward, CheckpointError> {
    let d = family.defaults();
    let layers = sizes.layers;
    let dense = |dense: usize| Block { dense, experts: false, gate_cutoff: None };
    if family == Family::Gemma3n {
        return gemma3n(f, layers, d.intermediate_size);
    }
    // Its class has no such key.
    let inner = match family {
        Family::Qwen35Moe => d.intermediate_size,
        _ => f.positive("intermediate_size", Some(d.intermediate_size))?,
    };
    let all = |intermediate_size: usize, experts: Experts, shared: usize, is: &dyn Fn(usize) -> bool, other: usize| {
        let layer = |i: usize| match is(i) {
            true => Block { dense: shared, experts: true, gate_cutoff: None },
            false => dense(other),
        };
        FeedForward { intermediate_size, experts: Some(experts), layers: (0..layers).map(layer).collect() }
    };
    Ok(match family {
        Family::Mixtral | Family::GraniteMoe => {
            let (count, chosen) = counts(f, "num_local_experts", 8, "num_experts_per_tok", 2)?;
            all(inner, Experts::mixtral(count, chosen, inner), 0, &|_| true, 0)
        }
        Family::GraniteMoeHybrid => {
            let shared = f.positive("shared_intermediate_size", Some(1024))?;
            if f.size("num_local_experts")?.unwrap_or(8) == 0 {
                f.ignore(&["num_experts_per_tok"]);
                return Ok(FeedForward {
                    intermediate_size: shared,
                    experts: None,
                    layers: vec![dense(shared); layers],
                });
            }
            let (count, chosen) = counts(f, "num_local_experts", 8, "num_experts_per_tok", 2)?;
            all(inner, Experts::mixtral(count, chosen, inner), shared, &|_| true, 0)
        }
        Family::GptOss => {
            let (count, chosen) = counts(f, "num_local_experts", 128, "num_experts_per_tok", 4)?;
            let experts = Experts { router_bias: true, bias: true, ..Experts::mixtral(count, chosen, inner) };
            all(inner, experts, 0, &|_| true, 0)
        }
        Family::Qwen3Moe => {
            let key = if f.contains("num_experts") { "num_experts" } else { "num_local_experts" };
            let (step, only_dense) = (f.positive("decoder_sparse_step", Some(1))?, dense_layers(f)?);
            let width = f.positive("moe_intermediate_size", Some(768))?;
            let normalised = f.flag("norm_topk_prob")?.unwrap_or(false);
            if f.size(key)? == Some(0) {
                f.ignore(&["num_experts_per_tok"]);
                return Ok(FeedForward { intermediate_size: inner, experts: None, layers: vec![dense(inner); layers] });
            }
            let (count, chosen) = counts(f, key, 128, "num_experts_per_tok", 8)?;
            let routing = Routing::Softmax { normalised };
            let experts = Experts { routing, ..Experts::mixtral(count, chosen, width) };
            all(inner, experts, 0, &|i| !only_dense.contains(&i) && (i + 1).is_multiple_of(step), inner)
        }
        Family::Qwen35Moe => {
            let width = f.positive("moe_intermediate_size", Some(512))?;
            let shared = f.positive("shared_expert_intermediate_size", Some(512))?;
            let (count, chosen) = counts(f, "num_experts", 256, "num_experts_per_tok", 8)?;
            let experts = Experts { shared_gate: true, ..Experts::mixtral(count, chosen, width) };
            all(width, experts, shared, &|_| true, 0)
        }
        Family::Glm4Moe | Family::DeepseekV3 => {
            let deepseek = family == Family::DeepseekV3;
            let of = |glm: usize, v3: usize| Some(if deepseek { v3 } else { glm });
            let width = f.positive("moe_intermediate_size", of(1408, 2048))?;
            let shared = f.size("n_shared_experts")?.unwrap_or(1);
            let first = f.size("first_k_dense_replace")?.unwrap_or(if deepseek { 3 } else { 1 });
            let key = if f.contains("n_routed_experts") { "n_routed_experts" } else { "num_local_experts" };
            let (count, chosen) = counts(f, key, if deepseek { 256 } else { 128 }, "num_experts_per_tok", 8)?;
            let (groups, kept) = (f.positive("n_group", of(1, 8))?, f.positive("topk_group", of(1, 4))?);
            if !count.is_multiple_of(groups) || count / groups < 2 || kept > groups || chosen > kept * (count / groups)
            {
                let reason =
                    format!("{count} experts do not divide into {groups} groups of which {kept} have {chosen} experts");
                return Err(f.error("n_group", reason));
            }
            let scale = f.number("routed_scaling_factor")?.unwrap_or(if deepseek { 2.5 } else { 1.0 }) as f32;
            let normalised = f.flag("norm_topk_prob")?.unwrap_or(true);
            let routing = Routing::Sigmoid { groups, kept, normalised, scale };
            let experts = Experts { routing, ..Experts::mixtral(count, chosen, width) };
            all(inner, experts, width * shared, &|i| i >= first, inner)
        }
        Family::Llama4 => {
            let (count, chosen) = counts(f, "num_local_experts", 16, "num_experts_per_tok", 1)?;
            let step = f.positive("interleave_moe_layer_step", Some(1))?;
            let listed = indices(f, "moe_layers")?;
            let other = f.positive("intermediate_size_mlp", Some(16_384))?;
            let experts = Experts { routing: Routing::ScaledInput, ..Experts::mixtral(count, chosen, inner) };
            let is = |i: usize| match &listed {
                Some(listed) => listed.contains(&i),
                None => (i + 1).is_multiple_of(step),
            };
            all(inner, experts, inner, &is, other)
        }
        Family::Gemma4 => gemma4(f, layers, inner)?,
        _ => FeedForward { intermediate_size: inner, experts: None, layers: vec![dense(inner); layers] },
    })
}

/// Reads the numbers of experts: all, and those of a token.
fn counts(
    f: &Fields,
    all: &str,
    default_all: usize,
    chosen: &str,
    default_chosen: usize,
) -> Result<(usize, usize), CheckpointError> {
    let count = f.positive(all, Some(default_all))?;
    let per_token = f.positive(chosen, Some(default_chosen))?;
    // Absent, the number of layers is a default, and small.
    let layers = f.size("num_hidden_layers")?.unwrap_or(1);
    if count > MAX_LAYERS || count.saturating_mul(layers) > MAX_EXPERTS {
        let reason =
            format!("at most {MAX_LAYERS} experts a layer and {MAX_EXPERTS} in all {layers} layers are supported");
        return Err(f.error(all, reason));
    }
    if per_token > count {
        return Err(f.error(chosen, format!("must not exceed the number of experts, {count}")));
    }
    Ok((count, per_token))
}

/// Reads the layers of Qwen 3 MoE that have no experts.
fn dense_layers(f: &Fields) -> Result<Vec<usize>, CheckpointError> {
    Ok(indices(f, "mlp_only_layers")?.unwrap_or_default())
}

fn indices(f: &Fields, key: &str) -> Result<Option<Vec<usize>>, CheckpointError> {
    let Some(list) = f.numbers(key)? else { return Ok(None) };
    let index = |n: &f64| (n.fract() == 0.0 && *n >= 0.0).then_some(*n as usize);
    let list: Option<Vec<usize>> = list.iter().map(index).collect();
    list.map(Some).ok_or_else(|| f.error(key, "must be a list of layers"))
}

fn gemma4(f: &Fields, layers: usize, inner: usize) -> Result<FeedForward, CheckpointError> {
    let shared = f.size("num_kv_shared_layers")?.unwrap_or(0);
    let wide = f.flag("use_double_wide_mlp")?.unwrap_or(false);
    let has_experts = f.flag("enable_moe_block")?.unwrap_or(false);
    let experts = if has_experts {
        let required = |key: &str| f.positive(key, None);
        required("num_experts")?;
        required("top_k_experts")?;
        let (count, chosen) = counts(f, "num_experts", 1, "top_k_experts", 1)?;
        let width = f.positive("moe_intermediate_size", None)?;
        Some(Experts { placement: ExpertPlacement::Beside, ..Experts::mixtral(count, chosen, width) })
    } else {
        f.ignore(&["num_experts", "top_k_experts", "moe_intermediate_size"]);
        None
    };
    let layer = |i: usize| {
        let double = wide && shared > 0 && i + shared >= layers;
        Block { dense: inner * if double { 2 } else { 1 }, experts: has_experts, gate_cutoff: None }
    };
    Ok(FeedForward { intermediate_size: inner, experts, layers: (0..layers).map(layer).collect() })
}

/// Gemma 3n has a width and a share of cut gates for each layer.
fn gemma3n(f: &Fields, layers: usize, default: usize) -> Result<FeedForward, CheckpointError> {
    let widths = match f.value("intermediate_size") {
        Some(serde_json::Value::Array(_)) => indices(f, "intermediate_size")?.unwrap_or_default(),
        _ => vec![f.positive("intermediate_size", Some(default))?; layers],
    };
    if widths.len() != layers || widths.contains(&0) {
        return Err(f.error("intermediate_size", format!("must be positive for each of {layers} layers")));
    }
    let shares = match f.numbers("activation_sparsity_pattern")? {
        Some(shares) => shares,
        None => (0..layers).map(|i| if layers > 10 && i < 10 { 0.95 } else { 0.0 }).collect(),
    };
    if shares.len() != layers || !shares.iter().all(|s| (0.0..1.0).contains(s)) {
        let reason = format!("must be a list of {layers} numbers from 0 to below 1");
        return Err(f.error("activation_sparsity_pattern", reason));
    }
    let layer = |(&dense, &share): (&usize, &f64)| Block {
        dense,
        experts: false,
        // The share is an f32 in the reference.
        gate_cutoff: (share > 0.0).then(|| normal_quantile(f64::from(share as f32)) as f32),
    };
    let intermediate_size = widths.iter().copied().max().unwrap_or(default);
    Ok(FeedForward { intermediate_size, experts: None, layers: widths.iter().zip(&shares).map(layer).collect() })
}

/// Returns the quantile of the standard normal distribution, by bisection of its distribution function.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if 0.5 * libm::erfc(-middle / std::f64::consts::SQRT_2) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (share, quantile) in [(0.5, 0.0), (0.95, 1.644_853_626_951_472_7), (0.001, -3.090_232_306_167_813)] {
            assert!((normal_quantile(share) - quantile).abs() < 1e-12, "{share}");
        }
    }
}
