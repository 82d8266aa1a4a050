//! Parts of GGUF metadata that one or two recent architectures have.
use super::super::json_fields::Fields;
use super::super::{CheckpointError, LatentAttention, LayerInputs, LinearAttention, Streams};
use super::arch::GgufArchitecture;
use super::file::GgufFile;

/// Reads the latent projections of DeepSeek-V3.
pub(in crate::checkpoint) fn latent(
    f: &Fields,
    arch: GgufArchitecture,
) -> Result<Option<LatentAttention>, CheckpointError> {
    if arch != GgufArchitecture::DeepSeek2 {
        return Ok(None);
    }
    let rotary_dims = f.positive("rope.dimension_count", None)?;
    // Keys and values of a head; the older files have these names for them, the newer ones for what a cache of latent vectors holds.
    let (key, value) = match f.size("attention.key_length_mla")? {
        Some(_) => {
            f.ignore(&["attention.key_length", "attention.value_length"]);
            ("attention.key_length_mla", "attention.value_length_mla")
        }
        None => ("attention.key_length", "attention.value_length"),
    };
    let (key_dims, value_dims) = (f.positive(key, None)?, f.positive(value, None)?);
    let plain_dims = key_dims.checked_sub(rotary_dims).filter(|dims| *dims > 0);
    let plain_dims = plain_dims.ok_or_else(|| f.error(key, format!("must exceed the {rotary_dims} rotated ones")))?;
    if value_dims > key_dims {
        return Err(f.error(value, "values wider than keys are not supported"));
    }
    if !rotary_dims.is_multiple_of(2) {
        return Err(f.error("rope.dimension_count", "must be even"));
    }
    Ok(Some(LatentAttention {
        query_rank: f.size("attention.q_lora_rank")?.filter(|rank| *rank > 0),
        kv_rank: f.positive("attention.kv_lora_rank", None)?,
        plain_dims,
        rotary_dims,
        value_dims,
    }))
}

/// Reads the linear attention of Qwen 3.5.
pub(in crate::checkpoint) fn linear(
    f: &Fields,
    arch: GgufArchitecture,
) -> Result<Option<LinearAttention>, CheckpointError> {
    if !arch.has_linear_attention() {
        return Ok(None);
    }
    let value_heads = f.positive("ssm.time_step_rank", None)?;
    let values = f.positive("ssm.inner_size", None)?;
    let key_heads = f.positive("ssm.group_count", None)?;
    if !values.is_multiple_of(value_heads) {
        return Err(f.error("ssm.inner_size", format!("must be a multiple of the {value_heads} value heads")));
    }
    if !value_heads.is_multiple_of(key_heads) {
        return Err(f.error("ssm.group_count", format!("must divide the {value_heads} value heads")));
    }
    Ok(Some(LinearAttention {
        key_heads,
        value_heads,
        key_dims: f.positive("ssm.state_size", None)?,
        value_dims: values / value_heads,
        kernel: f.positive("ssm.conv_kernel", None)?,
    }))
}

/// Reads the second embedding table of Gemma 3n and 4.
pub(in crate::checkpoint) fn layer_inputs(
    file: &GgufFile,
    f: &Fields,
    arch: GgufArchitecture,
    vocabulary: usize,
) -> Result<Option<LayerInputs>, CheckpointError> {
    if !matches!(arch, GgufArchitecture::Gemma3n | GgufArchitecture::Gemma4) {
        return Ok(None);
    }
    let key = "embedding_length_per_layer_input";
    let width = f.size(key)?.ok_or_else(|| f.error(key, "must be an integer"))?;
    if width == 0 && arch == GgufArchitecture::Gemma3n {
        return Err(f.error(key, "must be a positive integer"));
    }
    let table = file.tensors.get("per_layer_token_embd.weight").and_then(|t| t.shape.first().copied());
    Ok((width > 0).then_some(LayerInputs { vocab_size: table.unwrap_or(vocabulary), width }))
}

/// Reads the residual streams of Gemma 3n; no key has the rank of its branch, so that it is its tensor's.
pub(in crate::checkpoint) fn streams(
    file: &GgufFile,
    f: &Fields,
    arch: GgufArchitecture,
) -> Result<Option<Streams>, CheckpointError> {
    if arch != GgufArchitecture::Gemma3n {
        return Ok(None);
    }
    let count = f.positive("altup.num_inputs", Some(4))?;
    let active = f.size("altup.active_idx")?.unwrap_or(0);
    if active >= count || count > 64 {
        return Err(f.error("altup.active_idx", format!("must be below the number of streams, {count} (at most 64)")));
    }
    let branch = file.tensors.get("blk.0.laurel_l.weight").and_then(|t| t.shape.first().copied());
    let scaled = file.tensors.contains_key("blk.0.altup_correct_scale.weight");
    Ok(Some(Streams { count, active, scaled, branch_rank: branch.unwrap_or(64) }))
}
