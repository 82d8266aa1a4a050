//! Rotary embeddings of GGUF metadata.
use super::super::hf;
use super::super::json_fields::Fields;
use super::super::{CheckpointError, Rope, RopeScaling};
use super::arch::GgufArchitecture;

/// Divisor of the frequencies of dimensions that Gemma 4's files do not rotate.
const NOT_ROTATED: f64 = 1e30;

/// Frequency factors of rotary embeddings, which GGUF stores as tensors.
pub(in crate::checkpoint) struct RopeTensors {
    /// `rope_freqs.weight`
    pub(in crate::checkpoint) divisors: Option<Vec<f64>>,
    /// `rope_factors_short.weight` and `rope_factors_long.weight`
    pub(in crate::checkpoint) short_long: Option<(Vec<f64>, Vec<f64>)>,
}

/// The rotary embeddings of a decoder.
pub(in crate::checkpoint) struct Ropes {
    /// That of all layers, or those of full and of sliding layers.
    pub(in crate::checkpoint) ropes: Vec<Rope>,
    /// Factor on attention scores (DeepSeek-V3).
    pub(in crate::checkpoint) score_factor: f64,
    /// Longest sequence.
    pub(in crate::checkpoint) reach: usize,
}

/// Reads the rotary embeddings; `widths` are those of what may be rotated of a head, in full and in sliding layers, whose embedding is
/// another one if `by_type`.
pub(in crate::checkpoint) fn read(
    f: &Fields,
    arch: GgufArchitecture,
    context: usize,
    widths: (usize, usize),
    by_type: bool,
    tensors: RopeTensors,
) -> Result<Ropes, CheckpointError> {
    let theta = f.number("rope.freq_base")?.unwrap_or(1e4);
    if theta <= 0.0 {
        return Err(f.error("rope.freq_base", "must be positive"));
    }
    let dims = dims(f, arch, "rope.dimension_count", widths.0)?;
    let (scaling, score_factor) = scaling(f, arch, (theta, dims), context, tensors)?;
    let reach = match scaling {
        // The context is that before or after scaling.
        RopeScaling::Yarn { factor, .. } => {
            let original = f.size("rope.scaling.original_context_length")?.unwrap_or(context);
            context.max((original as f64 * factor) as usize)
        }
        _ => context,
    };
    let mut ropes = vec![Rope { theta, dims, scaling }];
    let local = f.number("rope.freq_base_swa")?;
    if by_type {
        let default = if arch == GgufArchitecture::Olmo2 { theta } else { 1e4 };
        let theta = local.unwrap_or(default);
        if theta <= 0.0 {
            return Err(f.error("rope.freq_base_swa", "must be positive"));
        }
        let dims = match arch {
            GgufArchitecture::Gemma4 => self::dims(f, arch, "rope.dimension_count_swa", widths.1)?,
            _ => dims,
        };
        ropes.push(Rope { theta, dims, scaling: RopeScaling::None });
    } else if local.is_some_and(|local| local != theta) {
        return Err(f.error("rope.freq_base_swa", "sliding layers of this architecture rotate as full ones do"));
    }
    Ok(Ropes { ropes, score_factor, reach })
}

/// Reads the number of rotated dimensions.
fn dims(f: &Fields, arch: GgufArchitecture, key: &str, width: usize) -> Result<usize, CheckpointError> {
    let dims = f.positive(key, Some(width))?;
    if dims > width || !dims.is_multiple_of(2) || (dims != width && !arch.rotates_partly()) {
        return Err(f.error(key, format!("rotating {dims} of {width} dimensions is not supported")));
    }
    Ok(dims)
}

/// Returns the scaling and its factor on attention scores.
fn scaling(
    f: &Fields,
    arch: GgufArchitecture,
    (theta, dims): (f64, usize),
    max_positions: usize,
    tensors: RopeTensors,
) -> Result<(RopeScaling, f64), CheckpointError> {
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
        let longrope = RopeScaling::LongRope { short, long, original_max_positions: original, attention_factor };
        return Ok((longrope, 1.0));
    }
    if kind == Some("yarn") && arch.has_yarn() && tensors.divisors.is_none() {
        return yarn(f, arch, (theta, dims), max_positions, factor, attention.unwrap_or(1.0));
    }
    if attention.is_some_and(|a| a != 1.0) {
        return Err(f.error("rope.scaling.attn_factor", "supported for architecture phi3 only"));
    }
    let linear = match (kind, factor) {
        (None | Some("linear"), Some(factor)) if factor > 0.0 && factor != 1.0 => Some(factor),
        (None | Some("none" | "linear"), _) => None,
        _ => {
            let reason = "supported types are none and linear, yarn for recent architectures, and the factors of Llama 3.1 and Phi-3";
            return Err(f.error("rope.scaling.type", reason));
        }
    };
    let scaling = match (tensors.divisors, linear) {
        (Some(_), Some(_)) => {
            let reason = "contradicts the tensor rope_freqs.weight; only one of them is allowed";
            return Err(f.error("rope.scaling.factor", reason));
        }
        (Some(divisors), None) => {
            check(&divisors, "rope_freqs.weight")?;
            of_divisors(divisors, arch)
        }
        (None, Some(factor)) => RopeScaling::Linear { factor },
        (None, None) => RopeScaling::None,
    };
    Ok((scaling, 1.0))
}

/// Returns the scaling that divisors stand for.
fn of_divisors(divisors: Vec<f64>, arch: GgufArchitecture) -> RopeScaling {
    let rotated = divisors.iter().take_while(|d| **d == 1.0).count();
    let rest = divisors.iter().skip(rotated).all(|d| *d as f32 == NOT_ROTATED as f32);
    match arch {
        GgufArchitecture::Gemma4 if rest => RopeScaling::Proportional { rotated, factor: 1.0 },
        _ => RopeScaling::Divisors(divisors),
    }
}

/// Reads YaRN; `attention` is a factor on cosine and sine beside its own.
fn yarn(
    f: &Fields,
    arch: GgufArchitecture,
    (theta, dims): (f64, usize),
    max_positions: usize,
    factor: Option<f64>,
    attention: f64,
) -> Result<(RopeScaling, f64), CheckpointError> {
    let factor = factor.filter(|factor| *factor > 0.0);
    let factor = factor.ok_or_else(|| f.error("rope.scaling.factor", "must be a positive number for yarn"))?;
    let original = f.positive("rope.scaling.original_context_length", Some(max_positions))?;
    if f.number("rope.scaling.yarn_ext_factor")?.is_some_and(|n| n != 1.0) {
        return Err(f.error("rope.scaling.yarn_ext_factor", "only 1 is supported"));
    }
    let fast = f.number("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0);
    let slow = f.number("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0);
    let magnitude = |by: f64| if factor <= 1.0 { 1.0 } else { 0.1 * by * factor.ln() + 1.0 };
    let deepseek = arch == GgufArchitecture::DeepSeek2;
    let all = f.number("rope.scaling.yarn_log_multiplier")?.filter(|n| *n != 0.0);
    // DeepSeek's converter multiplies it.
    let all = all.map(|n| if deepseek { n / f64::from(0.1f32) } else { n });
    let own = match (f.number("rope.scaling.yarn_attn_factor")?, all) {
        (Some(own), _) => own,
        // The file has one of two numbers; llama.cpp takes the other for this.
        (None, Some(all)) => magnitude(if deepseek && all != 1.0 { all } else { 1.0 }) / magnitude(all),
        (None, None) => magnitude(1.0),
    };
    let attention_factor = attention * own;
    // The original of GPT-OSS does not round.
    let truncate = arch != GgufArchitecture::GptOss;
    let (low, high) = hf::rope::yarn_ramp(theta, dims, original, (fast, slow), truncate);
    if !(low.is_finite() && high.is_finite() && attention_factor > 0.0 && attention_factor.is_finite()) {
        return Err(f.error("rope.scaling.factor", "results in no finite frequencies"));
    }
    let score_factor = all.filter(|_| deepseek).map_or(1.0, |all| magnitude(all).powi(2));
    Ok((RopeScaling::Yarn { factor, low, high, attention_factor }, score_factor))
}
