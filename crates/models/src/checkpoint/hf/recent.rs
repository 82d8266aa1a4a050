//! Parts of a `config.json` that one or two recent families have.
use super::super::json_fields::Fields;
use super::super::{CheckpointError, LatentAttention, LayerInputs, LinearAttention, Placeholders, Streams};
use super::family::Family;

/// Reads the latent projections of DeepSeek-V3.
pub(in crate::checkpoint) fn latent(f: &Fields, family: Family) -> Result<Option<LatentAttention>, CheckpointError> {
    if family != Family::DeepseekV3 {
        return Ok(None);
    }
    let query_rank = if f.contains("q_lora_rank") { f.size("q_lora_rank")? } else { Some(1536) };
    if query_rank == Some(0) {
        return Err(f.error("q_lora_rank", "must be a positive integer or null"));
    }
    let latent = LatentAttention {
        query_rank,
        kv_rank: f.positive("kv_lora_rank", Some(512))?,
        plain_dims: f.positive("qk_nope_head_dim", Some(128))?,
        rotary_dims: f.positive("qk_rope_head_dim", Some(64))?,
        value_dims: f.positive("v_head_dim", Some(128))?,
    };
    if latent.value_dims > latent.plain_dims + latent.rotary_dims {
        return Err(f.unsupported("v_head_dim", "values wider than keys are not supported"));
    }
    if f.flag("attention_bias")?.unwrap_or(false) {
        return Err(f.unsupported("attention_bias", "biases of latent projections are not supported"));
    }
    let keys = latent.plain_dims + latent.rotary_dims;
    if f.size("qk_head_dim")?.is_some_and(|dims| dims != keys) {
        return Err(f.error("qk_head_dim", format!("must be {keys}, the sum of qk_nope_head_dim and qk_rope_head_dim")));
    }
    Ok(Some(latent))
}

/// Reads the linear attention of Qwen 3.5.
pub(in crate::checkpoint) fn linear(f: &Fields, family: Family) -> Result<Option<LinearAttention>, CheckpointError> {
    if !family.has_linear_attention() {
        return Ok(None);
    }
    let linear = LinearAttention {
        key_heads: f.positive("linear_num_key_heads", Some(16))?,
        value_heads: f.positive("linear_num_value_heads", Some(32))?,
        key_dims: f.positive("linear_key_head_dim", Some(128))?,
        value_dims: f.positive("linear_value_head_dim", Some(128))?,
        kernel: f.positive("linear_conv_kernel_dim", Some(4))?,
    };
    if !linear.value_heads.is_multiple_of(linear.key_heads) {
        let reason = format!("must divide the {} value heads", linear.value_heads);
        return Err(f.error("linear_num_key_heads", reason));
    }
    if f.text("hidden_act")?.is_some_and(|act| act != "silu") {
        return Err(f.unsupported("hidden_act", "linear attention is supported with silu only"));
    }
    Ok(Some(linear))
}

/// Reads the second embedding table of Gemma 3n and 4.
pub(in crate::checkpoint) fn layer_inputs(f: &Fields, family: Family) -> Result<Option<LayerInputs>, CheckpointError> {
    if !matches!(family, Family::Gemma3n | Family::Gemma4) {
        return Ok(None);
    }
    let key = "hidden_size_per_layer_input";
    // Null and zero mean none.
    let width = if f.contains(key) { f.size(key)?.unwrap_or(0) } else { 256 };
    let vocab_size = f.positive("vocab_size_per_layer_input", Some(262_144))?;
    if width == 0 && family == Family::Gemma3n {
        return Err(f.error("hidden_size_per_layer_input", "must be a positive integer"));
    }
    Ok((width > 0).then_some(LayerInputs { vocab_size, width }))
}

/// Reads the residual streams of Gemma 3n.
pub(in crate::checkpoint) fn streams(f: &Fields, family: Family) -> Result<Option<Streams>, CheckpointError> {
    if family != Family::Gemma3n {
        return Ok(None);
    }
    let count = f.positive("altup_num_inputs", Some(4))?;
    let active = f.size("altup_active_idx")?.unwrap_or(0);
    if active >= count || count > 64 {
        return Err(f.error("altup_active_idx", format!("must be below the number of streams, {count} (at most 64)")));
    }
    Ok(Some(Streams {
        count,
        active,
        scaled: f.flag("altup_correct_scale")?.unwrap_or(true),
        branch_rank: f.positive("laurel_rank", Some(64))?,
    }))
}

/// Reads the ids that Gemma 4 with other inputs than text keeps for them; `f` is the object around `text`.
pub(in crate::checkpoint) fn placeholders(
    f: &Fields,
    text: &Fields,
    family: Family,
) -> Result<Option<Placeholders>, CheckpointError> {
    if family != Family::Gemma4 {
        return Ok(None);
    }
    let id = |key: &str, default: usize| if f.contains(key) { f.size(key) } else { Ok(Some(default)) };
    let ids = [id("image_token_id", 258_880)?, id("video_token_id", 258_884)?, id("audio_token_id", 258_881)?];
    let vocabulary = text.positive("vocab_size", Some(family.defaults().vocab_size))?;
    let embedded_as = text.size("pad_token_id")?.unwrap_or(0);
    if embedded_as >= vocabulary {
        return Err(text.error("pad_token_id", format!("must be below the vocabulary's size, {vocabulary}")));
    }
    Ok(Some(Placeholders { ids, embedded_as }))
}
