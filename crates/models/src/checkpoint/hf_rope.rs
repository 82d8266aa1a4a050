//! The rotary embedding of a `config.json`, in the old and the new spelling.
//!
//! `modeling_rope_utils.py` of transformers 5 is the reference: `rope_scaling` wins over `rope_parameters`, a base inside
//! either wins over `rope_theta` beside it, and `type` is the old spelling of `rope_type`.
use super::hf_family::Family;
use super::json_fields::Fields;
use super::{CheckpointError, Rope, RopeScaling};

/// Properties of the decoder that its rotary embedding depends on.
pub(super) struct Context {
    pub(super) family: Family,
    pub(super) head_dim: usize,
    pub(super) max_positions: usize,
}

/// Reads the rotary embedding of every family except Gemma 3.
pub(super) fn single(f: &Fields, context: &Context) -> Result<Rope, CheckpointError> {
    let default_theta = match context.family {
        Family::Mixtral => 1e6,
        Family::SmolLm3 => 2e6,
        _ => 1e4,
    };
    let theta = f.number("rope_theta")?.unwrap_or(default_theta);
    let partial = match context.family {
        Family::Phi => Some(f.number("partial_rotary_factor")?.unwrap_or(0.5)),
        _ => f.number("partial_rotary_factor")?,
    };
    let scaling = f.object("rope_scaling")?;
    let parameters = f.object("rope_parameters")?;
    match scaling.or(parameters) {
        Some(inner) => parse(&inner, f, context, theta, partial),
        None => finish(f, "rope_theta", context, theta, partial, RopeScaling::None),
    }
}

/// Reads the rotary embeddings of Gemma 3: for full layers, to which scaling applies, and for sliding layers.
pub(super) fn gemma3(f: &Fields, context: &Context) -> Result<(Rope, Rope), CheckpointError> {
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
        return Err(f.error("rope_scaling", "contradicts `rope_parameters`; keep one of them"));
    }
    let full = match full.or(scaling) {
        Some(inner) => parse(&inner, f, context, theta, None)?,
        None => finish(f, "rope_theta", context, theta, None, RopeScaling::None)?,
    };
    let sliding = match sliding {
        Some(inner) => parse(&inner, f, context, local_theta, None)?,
        None => finish(f, "rope_local_base_freq", context, local_theta, None, RopeScaling::None)?,
    };
    Ok((full, sliding))
}

fn parse(
    inner: &Fields,
    outer: &Fields,
    context: &Context,
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
        _ => Err(inner.error(key, format!("must be a positive number for rope type {kind}"))),
    };
    let scaling = match kind {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear { factor: factor("factor")? },
        "llama3" => {
            let low_freq_factor = factor("low_freq_factor")?;
            let high_freq_factor = factor("high_freq_factor")?;
            if high_freq_factor <= low_freq_factor {
                return Err(inner.error("high_freq_factor", "must exceed low_freq_factor"));
            }
            let original_max_positions =
                inner.positive("original_max_position_embeddings", Some(context.max_positions))?;
            RopeScaling::Llama3 { factor: factor("factor")?, low_freq_factor, high_freq_factor, original_max_positions }
        }
        // `su` is the name in the first Phi-3 checkpoints.
        "longrope" | "su" if context.family == Family::Phi3 => longrope(inner, outer, context)?,
        _ => {
            let reason = "supported rope types are default, linear, llama3 and, for Phi-3, longrope (also spelled su)";
            return Err(inner.error(key, reason));
        }
    };
    let rope = finish(outer, "partial_rotary_factor", context, theta, partial, scaling)?;
    if let RopeScaling::LongRope { short, long, .. } = &rope.scaling {
        for (key, list) in [("short_factor", short), ("long_factor", long)] {
            if list.len() != rope.dims / 2 || list.iter().any(|f| *f <= 0.0) {
                return Err(inner.error(key, format!("must be a list of {} positive numbers", rope.dims / 2)));
            }
        }
    }
    inner.finish()?;
    Ok(rope)
}

fn longrope(inner: &Fields, outer: &Fields, context: &Context) -> Result<RopeScaling, CheckpointError> {
    let list = |key: &str| inner.numbers(key)?.ok_or_else(|| inner.error(key, "required for longrope"));
    // Phi-3 has the trained length outside the rope fields, and that field takes precedence (its class defaults to 4096).
    inner.ignore(&["original_max_position_embeddings"]);
    let original = outer.positive("original_max_position_embeddings", Some(4096))?;
    let stretch = inner.number("factor")?.unwrap_or(context.max_positions as f64 / original as f64);
    let attention_factor = match inner.number("attention_factor")? {
        Some(factor) => factor,
        None if stretch <= 1.0 => 1.0,
        None => (1.0 + stretch.ln() / (original as f64).ln()).sqrt(),
    };
    if !attention_factor.is_finite() || attention_factor <= 0.0 {
        return Err(inner.error("attention_factor", format!("must be positive, comes to {attention_factor}")));
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
    context: &Context,
    theta: f64,
    partial: Option<f64>,
    scaling: RopeScaling,
) -> Result<Rope, CheckpointError> {
    if context.family == Family::Phi3 {
        // Only longrope uses it.
        f.ignore(&["original_max_position_embeddings"]);
    }
    if theta <= 0.0 {
        return Err(f.error("rope_theta", "must be positive"));
    }
    let share = partial.unwrap_or(1.0);
    if share != 1.0 && !matches!(context.family, Family::Phi | Family::Phi3) {
        return Err(f.error("partial_rotary_factor", "this architecture rotates whole heads"));
    }
    let dims = (context.head_dim as f64 * share) as usize;
    if dims == 0 || dims > context.head_dim || !dims.is_multiple_of(2) {
        return Err(f.error(
            key,
            format!("results in {dims} rotated dimensions of {}, expected an even number", context.head_dim),
        ));
    }
    Ok(Rope { theta, dims, scaling })
}
