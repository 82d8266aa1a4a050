//! The rotary embedding of a `config.json`, in the old and the new spelling.
//!
//! `modeling_rope_utils.py` of transformers 5 is the reference: `rope_scaling` wins over `rope_parameters`, a base inside
//! either wins over `rope_theta` beside it, and `type` stands for an absent `rope_type`.
use super::hf_family::Family;
use super::json_fields::Fields;
use super::{CheckpointError, Rope, RopeScaling};

/// What the embedding depends on besides its own fields.
pub(super) struct Surroundings {
    pub(super) family: Family,
    pub(super) head_dim: usize,
    pub(super) max_positions: usize,
}

/// The one embedding of every family but Gemma 3.
pub(super) fn single(f: &Fields, at: &Surroundings) -> Result<Rope, CheckpointError> {
    let default_theta = match at.family {
        Family::Mixtral => 1e6,
        Family::SmolLm3 => 2e6,
        _ => 1e4,
    };
    let theta = f.number("rope_theta")?.unwrap_or(default_theta);
    let partial = match at.family {
        Family::Phi => Some(f.number("partial_rotary_factor")?.unwrap_or(0.5)),
        _ => f.number("partial_rotary_factor")?,
    };
    let scaling = f.object("rope_scaling")?;
    let parameters = f.object("rope_parameters")?;
    match scaling.or(parameters) {
        Some(inner) => parse(&inner, f, at, theta, partial),
        None => finish(f, "rope_theta", at, theta, partial, RopeScaling::None),
    }
}

/// Gemma 3: the embedding of the full layers and that of the sliding layers. Scaling belongs to the full layers.
pub(super) fn gemma3(f: &Fields, at: &Surroundings) -> Result<(Rope, Rope), CheckpointError> {
    let theta = f.number("rope_theta")?.unwrap_or(1e6);
    let local_theta = f.number("rope_local_base_freq")?.unwrap_or(1e4);
    let scaling = f.object("rope_scaling")?;
    let parameters = f.object("rope_parameters")?;
    let (full, sliding) = match &parameters {
        Some(p) => (p.object("full_attention")?, p.object("sliding_attention")?),
        None => (None, None),
    };
    if let Some(p) = &parameters {
        p.finish()?;
    }
    if full.is_some() && scaling.is_some() {
        return Err(f.error("rope_scaling", "it is given beside `rope_parameters`; keep one of them"));
    }
    let full = match full.or(scaling) {
        Some(inner) => parse(&inner, f, at, theta, None)?,
        None => finish(f, "rope_theta", at, theta, None, RopeScaling::None)?,
    };
    let sliding = match sliding {
        Some(inner) => parse(&inner, f, at, local_theta, None)?,
        None => finish(f, "rope_local_base_freq", at, local_theta, None, RopeScaling::None)?,
    };
    Ok((full, sliding))
}

fn parse(
    inner: &Fields,
    outer: &Fields,
    at: &Surroundings,
    theta: f64,
    partial: Option<f64>,
) -> Result<Rope, CheckpointError> {
    let theta = inner.number("rope_theta")?.unwrap_or(theta);
    let partial = inner.number("partial_rotary_factor")?.or(partial);
    let newer = inner.text("rope_type")?;
    let older = inner.text("type")?;
    let key = if newer.is_some() { "rope_type" } else { "type" };
    let kind = newer.or(older).unwrap_or("default");
    let factor = |key: &str| match inner.number(key)? {
        Some(v) if v > 0.0 => Ok(v),
        _ => Err(inner.error(key, format!("rope type {kind} needs a positive number here"))),
    };
    let scaling = match kind {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear { factor: factor("factor")? },
        "llama3" => {
            let low_freq_factor = factor("low_freq_factor")?;
            let high_freq_factor = factor("high_freq_factor")?;
            if high_freq_factor <= low_freq_factor {
                return Err(inner.error("high_freq_factor", "it has to exceed low_freq_factor"));
            }
            let original_max_positions = inner.positive("original_max_position_embeddings", Some(at.max_positions))?;
            RopeScaling::Llama3 { factor: factor("factor")?, low_freq_factor, high_freq_factor, original_max_positions }
        }
        // `su` is what the first Phi-3 checkpoints call it.
        "longrope" | "su" if at.family == Family::Phi3 => longrope(inner, outer, at)?,
        _ => {
            let reason = "supported rope types are default, linear, llama3 and, for Phi-3, longrope (also spelled su)";
            return Err(inner.error(key, reason));
        }
    };
    let rope = finish(outer, "partial_rotary_factor", at, theta, partial, scaling)?;
    if let RopeScaling::LongRope { short, long, .. } = &rope.scaling {
        for (key, list) in [("short_factor", short), ("long_factor", long)] {
            if list.len() != rope.dims / 2 || list.iter().any(|f| *f <= 0.0) {
                return Err(inner.error(key, format!("{} positive numbers are needed", rope.dims / 2)));
            }
        }
    }
    inner.finish()?;
    Ok(rope)
}

fn longrope(inner: &Fields, outer: &Fields, at: &Surroundings) -> Result<RopeScaling, CheckpointError> {
    let list = |key: &str| inner.numbers(key)?.ok_or_else(|| inner.error(key, "longrope needs this list"));
    // Phi-3 keeps the trained length beside the rope fields, and that place wins (its class defaults to 4096).
    inner.ignore(&["original_max_position_embeddings"]);
    let original = outer.positive("original_max_position_embeddings", Some(4096))?;
    let stretch = inner.number("factor")?.unwrap_or(at.max_positions as f64 / original as f64);
    let attention_factor = match inner.number("attention_factor")? {
        Some(factor) => factor,
        None if stretch <= 1.0 => 1.0,
        None => (1.0 + stretch.ln() / (original as f64).ln()).sqrt(),
    };
    if !attention_factor.is_finite() || attention_factor <= 0.0 {
        return Err(inner.error("attention_factor", format!("it comes to {attention_factor}")));
    }
    Ok(RopeScaling::LongRope {
        short: list("short_factor")?,
        long: list("long_factor")?,
        original_max_positions: original,
        attention_factor,
    })
}

fn finish(
    f: &Fields,
    key: &str,
    at: &Surroundings,
    theta: f64,
    partial: Option<f64>,
    scaling: RopeScaling,
) -> Result<Rope, CheckpointError> {
    if at.family == Family::Phi3 {
        // Read by longrope, without meaning otherwise.
        f.ignore(&["original_max_position_embeddings"]);
    }
    if theta <= 0.0 {
        return Err(f.error("rope_theta", "it has to be positive"));
    }
    let share = partial.unwrap_or(1.0);
    if share != 1.0 && !matches!(at.family, Family::Phi | Family::Phi3) {
        return Err(f.error("partial_rotary_factor", "this architecture rotates whole heads"));
    }
    let dims = (at.head_dim as f64 * share) as usize;
    if dims == 0 || dims > at.head_dim || !dims.is_multiple_of(2) {
        return Err(f.error(key, format!("it leads to {dims} rotated dimensions of {}", at.head_dim)));
    }
    Ok(Rope { theta, dims, scaling })
}
