//! Feed-forward blocks of GGUF metadata: their widths, and which layers have a mixture of experts.
use super::super::hf::experts::{Block, FeedForward};
use super::super::json_fields::Fields;
use super::super::{CheckpointError, ExpertPlacement, Experts, Routing};
use super::arch::GgufArchitecture;
use super::config::{MAX_LAYERS, per_layer};
use serde_json::Value;

/// Sigmoid among llama.cpp's functions of the router's logits.
const SIGMOID: usize = 2;

/// Reads the feed-forward blocks of all layers.
pub(in crate::checkpoint) fn read(
    f: &Fields,
    arch: GgufArchitecture,
    layers: usize,
) -> Result<FeedForward, CheckpointError> {
    use GgufArchitecture::*;
    let widths = match arch {
        Gemma3n | Gemma4 => per_layer(f, "feed_forward_length", layers, None)?,
        // Every layer has experts; files may lack the key.
        Qwen35Moe => {
            f.ignore(&["feed_forward_length"]);
            vec![0; layers]
        }
        _ => vec![f.positive("feed_forward_length", None)?; layers],
    };
    let inner = widths.first().copied().unwrap_or(0);
    let always = matches!(arch, Qwen3Moe | Qwen35Moe | GraniteMoe | GptOss | Glm4Moe | Llama4);
    let count = f.size("expert_count")?.unwrap_or(0);
    if count == 0 && !always {
        f.ignore(&["expert_used_count"]);
        if matches!(arch, Gemma4 | DeepSeek2) {
            f.ignore(&["expert_feed_forward_length", "expert_shared_count", "leading_dense_block_count"]);
        }
        let cutoffs = cutoffs(f, arch, layers)?;
        let block = |(&dense, &gate_cutoff): (&usize, &Option<f32>)| Block { dense, experts: false, gate_cutoff };
        let intermediate_size = widths.iter().copied().max().filter(|_| arch == Gemma3n).unwrap_or(inner);
        let layers = widths.iter().zip(&cutoffs).map(block).collect();
        return Ok(FeedForward { intermediate_size, experts: None, layers });
    }
    if !(always || matches!(arch, Llama | Gemma4 | DeepSeek2)) || count == 0 || count > MAX_LAYERS {
        let reason = format!("architecture {} with this number of experts is not supported", arch.name());
        return Err(f.error("expert_count", reason));
    }
    let per_token = f.positive("expert_used_count", None)?;
    if per_token > count {
        return Err(f.error("expert_used_count", format!("exceeds the number of experts, {count}")));
    }
    let width = match arch {
        Llama | GraniteMoe => inner,
        _ => f.positive("expert_feed_forward_length", None)?,
    };
    let plain = Experts::mixtral(count, per_token, width);
    let all = |experts: Experts, shared: usize, is: &dyn Fn(usize) -> bool| {
        let block = |(i, &dense): (usize, &usize)| match is(i) {
            true => Block { dense: shared, experts: true, gate_cutoff: None },
            false => Block { dense, experts: false, gate_cutoff: None },
        };
        let layers = widths.iter().enumerate().map(block).collect();
        let intermediate_size = if matches!(arch, Llama4 | Qwen35Moe) { width } else { inner };
        FeedForward { intermediate_size, experts: Some(experts), layers }
    };
    Ok(match arch {
        GptOss => all(Experts { router_bias: true, bias: true, ..plain }, 0, &|_| true),
        GraniteMoe => all(plain, f.size("expert_shared_feed_forward_length")?.unwrap_or(0), &|_| true),
        Qwen35Moe => {
            let shared = f.positive("expert_shared_feed_forward_length", None)?;
            all(Experts { shared_gate: true, ..plain }, shared, &|_| true)
        }
        Gemma4 => {
            let block = |&dense: &usize| Block { dense, experts: true, gate_cutoff: None };
            let experts = Some(Experts { placement: ExpertPlacement::Beside, ..plain });
            FeedForward { intermediate_size: inner, experts, layers: widths.iter().map(block).collect() }
        }
        Llama4 => {
            let step = f.positive("interleave_moe_layer_step", None)?;
            all(Experts { routing: Routing::ScaledInput, ..plain }, width, &|i| (i + 1).is_multiple_of(step))
        }
        Glm4Moe | DeepSeek2 => {
            let routing = sigmoid(f, arch, count, per_token)?;
            let shared = width * f.size("expert_shared_count")?.unwrap_or(0);
            let first = f.size("leading_dense_block_count")?.unwrap_or(0);
            all(Experts { routing, ..plain }, shared, &|i| i >= first)
        }
        // llama.cpp always divides the weights by their sum.
        _ => all(plain, 0, &|_| true),
    })
}

fn sigmoid(f: &Fields, arch: GgufArchitecture, count: usize, chosen: usize) -> Result<Routing, CheckpointError> {
    // DeepSeek-V2, whose files lack the key, has a softmax.
    let default = if arch == GgufArchitecture::Glm4Moe { SIGMOID } else { 1 };
    if f.size("expert_gating_func")?.filter(|n| *n > 0).unwrap_or(default) != SIGMOID {
        return Err(f.error("expert_gating_func", "only the sigmoid, 2, is supported for this architecture"));
    }
    let groups = |key: &str| Ok::<_, CheckpointError>(f.size(key)?.unwrap_or(1).max(1));
    let (groups, kept) = (groups("expert_group_count")?, groups("expert_group_used_count")?);
    if !count.is_multiple_of(groups) || count / groups < 2 || kept > groups || chosen > kept * (count / groups) {
        let reason =
            format!("{count} experts do not divide into {groups} groups of which {kept} have {chosen} experts");
        return Err(f.error("expert_group_count", reason));
    }
    // Absent and zero mean none.
    let scale = f.number("expert_weights_scale")?.filter(|n| *n != 0.0).unwrap_or(1.0) as f32;
    let normalised = f.flag("expert_weights_norm")?.unwrap_or(false);
    Ok(Routing::Sigmoid { groups, kept, normalised, scale })
}

/// Reads the standard deviations that gates of Gemma 3n must reach; minus infinity, which JSON has not, for no limit.
fn cutoffs(f: &Fields, arch: GgufArchitecture, layers: usize) -> Result<Vec<Option<f32>>, CheckpointError> {
    let key = "activation_sparsity_scale";
    let none = vec![None; layers];
    let list = match f.value(key) {
        _ if arch != GgufArchitecture::Gemma3n => return Ok(none),
        None if f.contains(key) => return Ok(none),
        Some(Value::Number(one)) => return Ok(vec![one.as_f64().map(|n| n as f32); layers]),
        Some(Value::Array(list)) if list.len() == layers => list,
        _ => return Err(f.error(key, format!("must be a list of {layers} numbers"))),
    };
    let one = |v: &Value| match v {
        Value::Null => Ok(None),
        v => v.as_f64().map(|n| Some(n as f32)).ok_or_else(|| f.error(key, "must be a list of numbers")),
    };
    list.iter().map(one).collect()
}
