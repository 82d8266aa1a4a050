//! Rotary embeddings of GGUF metadata.
use super::gguf_config::GgufArchitecture;
use super::hf_rope;
use super::json_fields::Fields;
use super::{CheckpointError, Rope, RopeScaling};

/// Frequency factors of rotary embeddings, which GGUF stores as tensors.
pub(super) struct RopeTensors {
    /// `rope_freqs.weight`
    pub(super) divisors: Option<Vec<f64>>,
    /// `rope_factors_short.weight` and `rope_factors_long.weight`
    pub(super) short_long: Option<(Vec<f64>, Vec<f64>)>,
}

/// Returns which layers have a rotary embedding.
pub(super) fn rotated(f: &Fields, arch: GgufArchitecture) -> Result<fn(usize) -> bool, CheckpointError> {
    Ok(match arch {
        // No key says so; llama.cpp has the number.
        GgufArchitecture::SmolLm3 => |layer| !(layer + 1).is_multiple_of(4),
        // Granite's converter uses the key for this.
        GgufArchitecture::Granite if f.flag("rope.scaling.finetuned")? == Some(false) => |_| false,
        _ => |_| true,
    })
}

/// Returns the rotary embeddings and the index of the one for layers with a window.
pub(super) fn ropes(
    f: &Fields,
    arch: GgufArchitecture,
    head_dim: usize,
    max_positions: usize,
    tensors: RopeTensors,
) -> Result<(Vec<Rope>, usize), CheckpointError> {
    let theta = f.number("rope.freq_base")?.unwrap_or(1e4);
    if theta <= 0.0 {
        return Err(f.error("rope.freq_base", "must be positive"));
    }
    let dims = f.positive("rope.dimension_count", Some(head_dim))?;
    let partial = matches!(arch, GgufArchitecture::Phi2 | GgufArchitecture::Phi3);
    if dims > head_dim || !dims.is_multiple_of(2) || (dims != head_dim && !partial) {
        return Err(
            f.error("rope.dimension_count", format!("rotating {dims} of {head_dim} dimensions is not supported"))
        );
    }
    let scaling = scaling(f, arch, (theta, dims), max_positions, tensors)?;
    let rope = Rope { theta, dims, scaling };
    if arch != GgufArchitecture::Gemma3 {
        return Ok((vec![rope], 0));
    }
    let theta = f.number("rope.freq_base_swa")?.unwrap_or(1e4);
    Ok((vec![rope, Rope { theta, dims, scaling: RopeScaling::None }], 1))
}

fn scaling(
    f: &Fields,
    arch: GgufArchitecture,
    (theta, dims): (f64, usize),
    max_positions: usize,
    tensors: RopeTensors,
) -> Result<RopeScaling, CheckpointError> {
    let kind = f.text("rope.scaling.type")?;
    let factor = match f.number("rope.scaling.factor")? {
        Some(factor) => Some(factor),
        // The key's first name.
        None => f.number("rope.scale_linear")?,
    };
    let attention = f.number("rope.scaling.attn_factor")?;
    let check = |list: &[f64], name: &str| {
        if list.len() != dims / 2 || list.iter().any(|v| !(*v > 0.0 && v.is_finite())) {
            return Err(f.error("rope.dimension_count", format!("{name} must hold {} positive numbers", dims / 2)));
        }
        Ok(())
    };
    if let Some((short, long)) = tensors.short_long {
        check(&short, "rope_factors_short.weight")?;
        check(&long, "rope_factors_long.weight")?;
        if arch != GgufArchitecture::Phi3 {
            return Err(f.error("rope.scaling.type", "short and long factors are supported for architecture phi3 only"));
        }
        let original = f.positive("rope.scaling.original_context_length", Some(max_positions))?;
        let stretch = max_positions as f64 / original as f64;
        let default = if stretch <= 1.0 { 1.0 } else { (1.0 + stretch.ln() / (original as f64).ln()).sqrt() };
        let attention_factor = attention.unwrap_or(default);
        return Ok(RopeScaling::LongRope { short, long, original_max_positions: original, attention_factor });
    }
    if kind == Some("yarn") && arch.has_yarn() && tensors.divisors.is_none() {
        let factor = factor.filter(|factor| *factor > 0.0);
        let factor = factor.ok_or_else(|| f.error("rope.scaling.factor", "must be a positive number for yarn"))?;
        let original = f.positive("rope.scaling.original_context_length", Some(max_positions))?;
        let (low, high) = hf_rope::yarn_ramp(theta, dims, original, (32.0, 1.0), true);
        let magnitude = if factor <= 1.0 { 1.0 } else { 0.1 * factor.ln() + 1.0 };
        let attention_factor = attention.unwrap_or(1.0) * magnitude;
        if !(low.is_finite() && high.is_finite() && attention_factor > 0.0) {
            return Err(f.error("rope.scaling.factor", "results in no finite frequencies"));
        }
        return Ok(RopeScaling::Yarn { factor, low, high, attention_factor });
    }
    if attention.is_some_and(|a| a != 1.0) {
        return Err(f.error("rope.scaling.attn_factor", "supported for architecture phi3 only"));
    }
    let linear = match (kind, factor) {
        (None | Some("linear"), Some(factor)) if factor > 0.0 && factor != 1.0 => Some(factor),
        (None | Some("none" | "linear"), _) => None,
        _ => {
            return Err(f.error(
                "rope.scaling.type",
                "supported types are none and linear, yarn for Qwen 2 and 3, and the factors of Llama 3.1 and Phi-3",
            ));
        }
    };
    match (tensors.divisors, linear) {
        (Some(_), Some(_)) => {
            Err(f.error("rope.scaling.factor", "contradicts the tensor rope_freqs.weight; only one of them is allowed"))
        }
        (Some(divisors), None) => {
            check(&divisors, "rope_freqs.weight")?;
            Ok(RopeScaling::Divisors(divisors))
        }
        (None, Some(factor)) => Ok(RopeScaling::Linear { factor }),
        (None, None) => Ok(RopeScaling::None),
    }
}
