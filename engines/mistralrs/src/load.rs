//! Reads a checkpoint into mistral.rs.
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use earnest_models::checkpoint::{Checkpoint, mistralrs_knows};
use mistralrs::Device;
use mistralrs::core::{
    DefaultSchedulerMethod, DeviceMapSetting, Loader, MistralRs, MistralRsBuilder, ModelDType, NormalLoaderBuilder,
    NormalSpecificConfig, SchedulerConfig, TokenSource,
};

/// The architectures whose tiny checkpoints were held to the native engine's (`tests/agreement.rs`), which are held to transformers.
/// Version 0.8.1 computes other logits for those of Gemma 1 and Gemma 2; the rest was not compared.
const COMPARED: [&str; 6] = [
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "MixtralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "Phi3ForCausalLM",
];

/// Refuses what the native engine runs and was not compared; GGUF files, whose weights mistral.rs multiplies in their blocks, were
/// not. What the native engine lacks cannot be compared with it: earnest warns that it is not verified.
pub(crate) fn check(checkpoint: &Checkpoint) -> anyhow::Result<()> {
    let architecture = checkpoint.config.architecture.as_str();
    if checkpoint.is_foreign() && mistralrs_knows(architecture) {
        return Ok(());
    }
    if let Some(quantisation) = checkpoint.quantisation() {
        bail!("its weights are {quantisation}, which mistral.rs 0.8.1 computes in its own way; that was not compared");
    }
    if !COMPARED.contains(&architecture) {
        bail!(
            "{architecture} is not among those that mistral.rs 0.8.1 was seen to compute as the native engine does ({}; folders only)",
            COMPARED.join(", ")
        );
    }
    Ok(())
}

/// Loads a Hugging Face folder on the CPU, its weights converted to f32. No connection is opened: mistral.rs asks the hub only for
/// what has no such path.
pub async fn load(path: &Path) -> anyhow::Result<Arc<MistralRs>> {
    let loader = folder(path)?;
    let pipeline = loader
        .load_model_from_hf(
            None,
            TokenSource::None,
            &ModelDType::F32,
            &Device::Cpu,
            true,
            DeviceMapSetting::dummy(),
            None,
            None,
        )
        .with_context(|| format!("mistral.rs cannot load {}", path.display()))?;
    // One sequence: with more, version 0.8.1 gives all of them the last one's attention output on a CPU.
    let one = 1_usize.try_into().context("1 is not zero")?;
    let scheduler = SchedulerConfig::DefaultScheduler { method: DefaultSchedulerMethod::Fixed(one) };
    let builder = MistralRsBuilder::new(pipeline, scheduler, false, None)
        .with_no_kv_cache(false)
        .with_no_prefix_cache(true)
        .with_prefix_cache_n(0)
        // What ends a completion is the request's business.
        .with_disable_eos_stop(true);
    Ok(builder.build().await)
}

fn folder(path: &Path) -> anyhow::Result<Box<dyn Loader>> {
    let path = text(path)?;
    let config = NormalSpecificConfig::default();
    NormalLoaderBuilder::new(config, None, None, Some(path.to_owned()), false, None).build(None)
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("mistral.rs takes paths in UTF-8 only, not {}", path.display()))
}
