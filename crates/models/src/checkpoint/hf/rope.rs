//! The rotary embedding of a `config.json`, in the old and the new spelling.
//!
//! `modeling_rope_utils.py` of transformers 5 is the reference: `rope_scaling` wins over `rope_parameters`, a base inside
//! either wins over `rope_theta` beside it, and `type` is the old spelling of `rope_type`.
use super::super::json_fields::Fields;
use super::super::{CheckpointError, QueryGrowth, Rope, RopeScaling};
use super::family::Family;

/// Properties of the decoder that its rotary embedding depends on.
pub(in crate::checkpoint) struct Context {
    pub(in crate::checkpoint) family: Family,
    pub(in crate::checkpoint) head_dim: usize,
    pub(in crate::checkpoint) max_positions: usize,
}

/// A rotary embedding with what else its object says.
#[derive(Debug)]
pub(in crate::checkpoint) struct Parsed {
    pub(in crate::checkpoint) rope: Rope,
    /// Longest sequence that the scaling makes of the original context.
    pub(in crate::checkpoint) reach: usize,
    /// Growth of queries (Ministral 3).
    pub(in crate::checkpoint) growth: Option<QueryGrowth>,
    /// Factor on attention scores (DeepSeek-V3).
    pub(in crate::checkpoint) score_factor: f64,
}

/// Reads the rotary embedding of families that have one.
pub(in crate::checkpoint) fn single(f: &Fields, context: &Context) -> Result<Parsed, CheckpointError> {
    let default_theta = match context.family {
        Family::Mixtral | Family::Ministral3 => 1e6,
        Family::SmolLm3 => 2e6,
        Family::Llama4 => 5e5,
        Family::GptOss => 1.5e5,
        _ => 1e4,
    };
    let theta = f.number("rope_theta")?.unwrap_or(default_theta);
    let partial = match context.family {
        Family::Phi | Family::Glm4 | Family::Glm4Moe => Some(f.number("partial_rotary_factor")?.unwrap_or(0.5)),
        Family::Qwen35 | Family::Qwen35Moe => Some(f.number("partial_rotary_factor")?.unwrap_or(0.25)),
        _ => f.number("partial_rotary_factor")?,
    };
    let scaling = f.object("rope_scaling")?;
    let parameters = f.object("rope_parameters")?;
    match scaling.or(parameters) {
        Some(inner) => parse(&inner, f, context, theta, partial),
        None if matches!(context.family, Family::GptOss | Family::Ministral3) => {
            Err(f.error("rope_scaling", "required for this architecture; fetch the checkpoint's own config.json"))
        }
        None => finish(f, "rope_theta", context, theta, partial, RopeScaling::None).map(|rope| plain(rope, context)),
    }
}

/// Reads the rotary embeddings of families whose full layers differ from the sliding ones: for full layers, to which scaling
/// applies, and for sliding layers.
pub(in crate::checkpoint) fn by_layer_type(f: &Fields, context: &Context) -> Result<(Parsed, Parsed), CheckpointError> {
    let (theta, local) = match context.family {
        // The reference gives sliding layers the default, whatever stands beside `rope_scaling`.
        Family::Olmo3 => (5e5, Some(5e5)),
        _ => (1e6, f.number("rope_local_base_freq")?),
    };
    let theta = f.number("rope_theta")?.unwrap_or(theta);
    let local_theta = local.unwrap_or(1e4);
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
        None => plain(finish(f, "rope_theta", context, theta, None, RopeScaling::None)?, context),
    };
    let sliding = match sliding {
        Some(inner) => parse(&inner, f, context, local_theta, None)?,
        None => plain(finish(f, "rope_local_base_freq", context, local_theta, None, RopeScaling::None)?, context),
    };
    Ok((full, sliding))
}

/// Reads the rotary embeddings of Gemma 4, for full and for sliding layers, whose heads differ in width.
pub(in crate::checkpoint) fn gemma4(
    f: &Fields,
    full: &Context,
    sliding: &Context,
) -> Result<(Rope, Rope), CheckpointError> {
    let proportional = |theta: f64, share: f64, factor: f64| -> Result<Rope, CheckpointError> {
        if !(share > 0.0 && share <= 1.0 && theta > 0.0 && factor > 0.0) {
            return Err(
                f.error("rope_parameters", "needs a positive theta and factor, and a partial_rotary_factor up to 1")
            );
        }
        let dims = full.head_dim;
        if !dims.is_multiple_of(2) {
            return Err(f.error("global_head_dim", "must be even"));
        }
        // As the reference rounds.
        let rotated = ((share * dims as f64) / 2.0).floor() as usize;
        Ok(Rope { theta, dims, scaling: RopeScaling::Proportional { rotated, factor } })
    };
    let Some(parameters) = f.object("rope_parameters")? else {
        let local = finish(f, "rope_parameters", sliding, 1e4, None, RopeScaling::None)?;
        return Ok((proportional(1e6, 0.25, 1.0)?, local));
    };
    let required = |key: &str| {
        parameters.object(key)?.ok_or_else(|| parameters.error(key, "required beside the other type of layer"))
    };
    let (outer, inner) = (required("full_attention")?, required("sliding_attention")?);
    let theta = |o: &Fields| o.number("rope_theta")?.ok_or_else(|| o.error("rope_theta", "required"));
    let global = match outer.text("rope_type")?.unwrap_or("default") {
        "proportional" => proportional(
            theta(&outer)?,
            outer.number("partial_rotary_factor")?.unwrap_or(1.0),
            outer.number("factor")?.unwrap_or(1.0),
        )?,
        "default" => {
            outer.ignore(&["partial_rotary_factor"]);
            finish(&outer, "rope_theta", full, theta(&outer)?, None, RopeScaling::None)?
        }
        _ => return Err(outer.unsupported("rope_type", "supported are proportional and default")),
    };
    match inner.text("rope_type")?.unwrap_or("default") {
        "default" => inner.ignore(&["partial_rotary_factor"]),
        _ => return Err(inner.unsupported("rope_type", "only default is supported for sliding layers")),
    }
    let local = finish(&inner, "rope_theta", sliding, theta(&inner)?, None, RopeScaling::None)?;
    outer.finish()?;
    inner.finish()?;
    parameters.finish()?;
    Ok((global, local))
}

fn plain(rope: Rope, context: &Context) -> Parsed {
    Parsed { rope, reach: context.max_positions, growth: None, score_factor: 1.0 }
}

fn parse(
    inner: &Fields,
    outer: &Fields,
    context: &Context,
    theta: f64,
    partial: Option<f64>,
) -> Result<Parsed, CheckpointError> {
    let mut theta = inner.number("rope_theta")?.unwrap_or(theta);
    let partial = inner.number("partial_rotary_factor")?.or(partial);
    let newer = inner.text("rope_type")?;
    let older = inner.text("type")?;
    let key = if newer.is_some() { "rope_type" } else { "type" };
    let kind = newer.or(older).unwrap_or("default");
    let factor = |key: &str| match inner.number(key)? {
        Some(v) if v > 0.0 => Ok(v),
        _ => Err(inner.error(key, format!("must be a positive number for rope type {kind}"))),
    };
    if context.family.has_linear_attention() {
        // Sections of positions in images, which are equal for text.
        inner.ignore(&["mrope_section", "mrope_interleaved"]);
    }
    let mut reach = context.max_positions;
    let mut score_factor = 1.0;
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
        "longrope" | "su" | "yarn" if context.family == Family::Phi3 => longrope(inner, outer, context)?,
        "yarn" => {
            let yarn = Yarn::read(inner, context)?;
            reach = reach.max((yarn.factor * yarn.original as f64) as usize);
            if context.family == Family::DeepseekV3 {
                score_factor = yarn.score_factor();
            }
            let dims = rotated_dims(outer, "partial_rotary_factor", context, partial)?;
            yarn.scaling(inner, theta, dims)?
        }
        "dynamic" if context.family == Family::HunyuanDense => {
            let alpha = inner.number("alpha")?.filter(|alpha| *alpha > 0.0).ok_or_else(|| {
                inner.error("alpha", "must be a positive number: dynamic scaling by length is not supported")
            })?;
            inner.ignore_aloud(&["beta_fast", "beta_slow", "factor", "mscale", "mscale_all_dim"]);
            let d = context.head_dim as f64;
            theta *= alpha.powf(d / (d - 2.0));
            RopeScaling::None
        }
        _ => {
            let reason =
                "supported rope types are default, linear, llama3, yarn and, for Phi-3, longrope (also spelled su)";
            return Err(inner.unsupported(key, reason));
        }
    };
    let growth = match context.family {
        Family::Ministral3 => {
            inner.ignore(&["max_position_embeddings"]);
            let scale = inner.number("llama_4_scaling_beta")?;
            let scale = scale.ok_or_else(|| inner.error("llama_4_scaling_beta", "required for this architecture"))?;
            let every = inner.positive("original_max_position_embeddings", None)? as f64;
            Some(QueryGrowth { scale, every, offset: 0 })
        }
        _ => None,
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
    Ok(Parsed { rope, reach, growth, score_factor })
}

/// Returns the pairs at which YaRN's ramp begins and ends: those that turn `fast` and `slow` times in the original context.
pub(in crate::checkpoint) fn yarn_ramp(
    theta: f64,
    dims: usize,
    original: usize,
    (fast, slow): (f64, f64),
    truncate: bool,
) -> (f64, f64) {
    let width = dims as f64;
    let turns = |n: f64| width * (original as f64 / (n * 2.0 * std::f64::consts::PI)).ln() / (2.0 * theta.ln());
    let (low, high) = (turns(fast), turns(slow));
    let (low, high) = if truncate { (low.floor(), high.ceil()) } else { (low, high) };
    let (low, high) = (low.max(0.0), high.min(width - 1.0));
    (low, if low == high { high + 0.001 } else { high })
}

/// The keys of YaRN, as `_compute_yarn_parameters` reads them.
struct Yarn {
    factor: f64,
    original: usize,
    fast: f64,
    slow: f64,
    truncate: bool,
    attention_factor: Option<f64>,
    scales: (f64, f64),
}

impl Yarn {
    fn read(inner: &Fields, context: &Context) -> Result<Yarn, CheckpointError> {
        let original = inner.positive("original_max_position_embeddings", Some(context.max_positions))?;
        let factor = match inner.number("factor")? {
            Some(factor) if factor > 0.0 => factor,
            // Null, but there.
            None if inner.contains("factor") => context.max_positions as f64 / original as f64,
            _ => return Err(inner.error("factor", "must be a positive number for rope type yarn")),
        };
        // Zero counts as absent.
        let set = |key: &str, default: f64| inner.number(key).map(|n| n.filter(|n| *n != 0.0).unwrap_or(default));
        // The reference looks for it outside the object of a layer type, where it never is.
        let truncate = inner.flag("truncate")?.unwrap_or(true) || context.family == Family::Olmo3;
        Ok(Yarn {
            factor,
            original,
            fast: set("beta_fast", 32.0)?,
            slow: set("beta_slow", 1.0)?,
            truncate,
            attention_factor: inner.number("attention_factor")?,
            scales: (set("mscale", 0.0)?, set("mscale_all_dim", 0.0)?),
        })
    }

    fn scale(&self, by: f64) -> f64 {
        if self.factor <= 1.0 { 1.0 } else { 0.1 * by * self.factor.ln() + 1.0 }
    }

    fn score_factor(&self) -> f64 {
        if self.scales.1 == 0.0 { 1.0 } else { self.scale(self.scales.1).powi(2) }
    }

    fn scaling(&self, inner: &Fields, theta: f64, dims: usize) -> Result<RopeScaling, CheckpointError> {
        let attention_factor = self.attention_factor.unwrap_or(match self.scales {
            (0.0, _) | (_, 0.0) => self.scale(1.0),
            (one, all) => self.scale(one) / self.scale(all),
        });
        let (low, high) = yarn_ramp(theta, dims, self.original, (self.fast, self.slow), self.truncate);
        if ![low, high, attention_factor].iter().all(|n| n.is_finite()) || attention_factor <= 0.0 {
            return Err(inner.error("factor", "the keys of yarn result in no finite frequencies"));
        }
        Ok(RopeScaling::Yarn { factor: self.factor, low, high, attention_factor })
    }
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
    let dims = rotated_dims(f, key, context, partial)?;
    Ok(Rope { theta, dims, scaling })
}

/// Returns the number of leading dimensions of a head that are rotated.
fn rotated_dims(f: &Fields, key: &str, context: &Context, partial: Option<f64>) -> Result<usize, CheckpointError> {
    let share = partial.unwrap_or(1.0);
    if share != 1.0 && !context.family.rotates_partly() {
        return Err(f.error("partial_rotary_factor", "this architecture rotates whole heads"));
    }
    let dims = (context.head_dim as f64 * share) as usize;
    if partial.is_none() && !dims.is_multiple_of(2) {
        let key = if f.contains("head_dim") { "head_dim" } else { key };
        return Err(f.error(key, format!("heads have {dims} dimensions, rotary embeddings need an even number")));
    }
    if dims == 0 || dims > context.head_dim || !dims.is_multiple_of(2) {
        return Err(f.error(
            key,
            format!("results in {dims} rotated dimensions of {}, expected an even number", context.head_dim),
        ));
    }
    Ok(dims)
}
