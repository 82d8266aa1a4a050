//! Checkpoints that the native engine runs.
use std::sync::Arc;

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::cuda::{self, CudaEngine, CudaError, Peaks, Profiler};
use earnest_models::checkpoint::{Checkpoint, Compute, WeightFormat};
use earnest_models::memory::human_bytes;

use super::checkpoint::{check_files, hash_files, left_out, open, record, unverifiable};
use super::device::{Device, DeviceChoice, DeviceNote, device_error};
use super::{CheckpointDefaults, LoadedEngine, LocatedModel, OpenModel, checkpoint_defaults};
use crate::EvalError;
use crate::prompt::{PromptSource, WithThinking};
use earnest_results::{FileRecord, Host, ModelNotice, ModelRecord, Notice, Teller};

/// Default batch size on a CPU.
pub const DEFAULT_BATCH: usize = 128;

/// Device and limits of the native engine; the limits do not affect answers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EngineSettings {
    /// Largest batch in sequences; by default the engine chooses.
    pub max_batch: Option<usize>,
    /// Size of the KV cache in bytes; by default the engine chooses.
    pub kv_memory: Option<u64>,
    /// CPU threads; by default all cores.
    pub threads: Option<usize>,
    /// Reuse of the KV cache of shared prompt prefixes.
    pub prefix_cache: bool,
    pub device: DeviceChoice,
    /// Batch-invariant arithmetic on a GPU; the CPU's always is.
    pub batch_invariant: bool,
    /// Variants of the computation on a GPU.
    pub cuda_variants: cuda::Variants,
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            max_batch: None,
            kv_memory: None,
            threads: None,
            prefix_cache: true,
            device: DeviceChoice::Auto,
            batch_invariant: false,
            cuda_variants: cuda::Variants::NONE,
        }
    }
}

impl EngineSettings {
    /// Checks that the limits allow any computation.
    pub fn check(&self) -> Result<(), EvalError> {
        if self.max_batch == Some(0) {
            return Err(EvalError::setting("the setting `max_batch` must be at least 1"));
        }
        if self.threads == Some(0) {
            return Err(EvalError::setting("the setting `threads` must be at least 1"));
        }
        Ok(())
    }

    /// Returns the options of the CPU engine.
    pub fn cpu_options(&self) -> Options {
        let defaults = Options::default();
        Options {
            threads: self.threads.or(defaults.threads),
            kv_memory: self.kv_memory.or(defaults.kv_memory),
            max_batch: self.max_batch.unwrap_or(defaults.max_batch),
            prefix_cache: self.prefix_cache,
            ..defaults
        }
    }

    /// Returns the options of the GPU engine.
    fn cuda_options(&self, invariant: bool, other_bits: cuda::Variants) -> cuda::Options {
        let defaults = cuda::Options::default();
        cuda::Options {
            device: self.device.index(),
            kv_memory: self.kv_memory,
            max_batch: self.max_batch,
            prefix_cache: self.prefix_cache,
            batch_invariant: invariant,
            variants: self.cuda_variants.of_bits(true).or(other_bits),
            ..defaults
        }
    }
}

/// Returns the manifest's record of engine options.
fn describe_options(options: &Options) -> serde_json::Value {
    serde_json::json!({
        "threads": options.threads,
        "kv_memory": options.kv_memory,
        "max_batch": options.max_batch,
        "token_budget": options.token_budget,
        "prefix_cache": options.prefix_cache,
    })
}

/// Loads the weights on the device of the settings.
pub fn load(checkpoint: &Checkpoint, settings: &EngineSettings) -> Result<LoadedEngine, EvalError> {
    let (device, note) = Device::choose(settings)?;
    let mut loaded = load_on(checkpoint, &device, settings)?;
    loaded.notes.extend(note.map(Notice::from));
    Ok(loaded)
}

/// Loads the weights on the CPU; also returns the options for the manifest.
pub fn load_cpu(checkpoint: &Checkpoint, options: Options) -> Result<(CpuEngine, serde_json::Value), EvalError> {
    if checkpoint.weight_format().is_fp8() {
        return Err(EvalError::setting(
            "the setting `compute = fp8` is supported on a GPU only, of compute capability 8.9 and later",
        )
        .hint("leave it out, or add the setting `device = cuda`; the setting `compute = int8` is the CPU's arithmetic of 8 bits"));
    }
    check_files(checkpoint)?;
    let given = options.kv_memory.zip(Host::probe().memory);
    if let Some((kv, memory)) = given.filter(|(kv, memory)| kv > memory) {
        let (kv, memory) = (human_bytes(kv), human_bytes(memory));
        return Err(EvalError::setting(format!(
            "the setting `kv_memory = {kv}` is more than this machine's memory of {memory}"
        ))
        .hint("leave it out: by default the engine takes a quarter of the free memory"));
    }
    let described = describe_options(&options);
    let engine = CpuEngine::load(checkpoint, options)
        .map_err(|error| EvalError::model(format!("cannot load {}: {error}", checkpoint.source.display())))?;
    Ok((engine, described))
}

/// Loads the weights on a given device, after a check against their commit; recently hashed files are not read again.
pub fn load_on(checkpoint: &Checkpoint, device: &Device, settings: &EngineSettings) -> Result<LoadedEngine, EvalError> {
    check_files(checkpoint)?;
    // A stored run continues on the device of its settings.
    match (device, settings.device) {
        (Device::Cpu, DeviceChoice::Cuda(_)) => {
            return Err(EvalError::setting("this run was computed on the CPU and cannot continue on a GPU"));
        }
        (Device::Cuda { .. }, DeviceChoice::Cpu) => {
            return Err(EvalError::setting("this run was computed on a GPU and cannot continue on the CPU"));
        }
        _ => {}
    }
    let Device::Cuda { invariant, variants, .. } = device else {
        let (engine, options) = load_cpu(checkpoint, settings.cpu_options())?;
        return Ok(LoadedEngine::new(Box::new(engine), options, vec![]));
    };
    check_format(checkpoint)?;
    device.check_kernels()?;
    let engine = CudaEngine::load(checkpoint, &settings.cuda_options(*invariant, *variants));
    Ok(loaded(engine.map_err(|error| cuda_error(checkpoint, error))?))
}

/// Loads the weights on a GPU whose work can be profiled; also returns the profile's handle.
///
/// # Errors
/// Those of [`load_on`], and a device that is no GPU.
pub fn load_profiled(
    checkpoint: &Checkpoint,
    device: &Device,
    settings: &EngineSettings,
    peaks: &Peaks,
) -> Result<(LoadedEngine, Profiler), EvalError> {
    let Device::Cuda { invariant, variants, .. } = device else {
        return Err(EvalError::setting("only the work of a GPU is profiled by kernel")
            .hint("add the setting `device = cuda`; on the CPU, `earnest bench engine` measures prefill and decode"));
    };
    check_files(checkpoint)?;
    check_format(checkpoint)?;
    let engine = CudaEngine::load_profiled(checkpoint, &settings.cuda_options(*invariant, *variants), peaks);
    let (engine, profiler) = engine.map_err(|error| cuda_error(checkpoint, error))?;
    Ok((loaded(engine), profiler))
}

/// Measures the peaks of the GPU of the settings, in the type that a checkpoint is computed in.
pub fn measure_peaks(checkpoint: &Checkpoint, settings: &EngineSettings) -> Result<Peaks, EvalError> {
    cuda::peaks(settings.device.index(), checkpoint).map_err(|error| cuda_error(checkpoint, error))
}

/// Checks that the weight format is one of a GPU.
fn check_format(checkpoint: &Checkpoint) -> Result<(), EvalError> {
    let format = checkpoint.weight_format();
    let hint = match format.compute {
        Some(Compute::Bf16) => {
            "add the setting `device = cpu`, or take the setting `dtype = bf16`, whose products are in bf16 on a GPU"
        }
        _ => "leave it out, or add the setting `device = cpu`",
    };
    let on_cpu = format.compute.filter(|compute| *compute != Compute::Fp8);
    let option = on_cpu.map(|compute| format!("the setting `compute = {}`", compute.name()));
    if let Some(option) = option.or_else(|| format.kv.map(|_| "the setting `kv = bf16`".to_owned())) {
        return Err(EvalError::setting(format!("{option} is supported on the CPU only")).hint(hint));
    }
    Ok(())
}

fn cuda_error(checkpoint: &Checkpoint, error: CudaError) -> EvalError {
    match error {
        CudaError::Checkpoint(_) | CudaError::NotFinite { .. } => {
            EvalError::model(format!("cannot load {}: {error}", checkpoint.source.display()))
        }
        error => device_error(&error),
    }
}

fn loaded(engine: CudaEngine) -> LoadedEngine {
    let notes = engine.notes().iter().map(|note| Notice::told(Teller::Loading, note)).collect();
    let options = engine.describe();
    LoadedEngine::new(Box::new(engine), options, notes)
}

/// An opened checkpoint for the native engine.
pub(super) struct LocalModel {
    located: LocatedModel,
    checkpoint: Arc<Checkpoint>,
    device: Device,
    /// Note on the choice of the device.
    note: Option<DeviceNote>,
    /// Value of the template's thinking switch, where it has one and a value was given.
    enable_thinking: Option<bool>,
    /// Thinking was disabled, but the template thinks and has no switch.
    thinks_anyway: bool,
    settings: EngineSettings,
}

impl LocalModel {
    pub(super) fn open(
        located: &LocatedModel,
        device: &Device,
        note: Option<DeviceNote>,
        thinking: Option<bool>,
        settings: &EngineSettings,
    ) -> Result<Self, EvalError> {
        let checkpoint = located.opened.or_open(|| open(located))?;
        let enable_thinking = thinking_switch(&checkpoint, thinking);
        Ok(LocalModel {
            located: located.clone(),
            thinks_anyway: thinks_anyway(&checkpoint, thinking),
            checkpoint,
            device: device.clone(),
            note,
            enable_thinking,
            settings: settings.clone(),
        })
    }
}

/// Returns the value of the template's thinking switch; none for templates without one.
pub(super) fn thinking_switch(checkpoint: &Checkpoint, thinking: Option<bool>) -> Option<bool> {
    thinking.filter(|_| checkpoint.chat_template.as_ref().is_some_and(|template| template.has_thinking_switch()))
}

/// True if thinking was disabled, but the template thinks and has no switch.
pub(super) fn thinks_anyway(checkpoint: &Checkpoint, thinking: Option<bool>) -> bool {
    let thinks = checkpoint.chat_template.as_ref().is_some_and(|template| template.thinks());
    thinking == Some(false) && thinking_switch(checkpoint, thinking).is_none() && thinks
}

/// Returns warnings about a checkpoint.
pub(super) fn checkpoint_warnings(checkpoint: &Checkpoint, thinks_anyway: bool) -> Vec<Notice> {
    let mut warnings: Vec<Notice> = Vec::new();
    if thinks_anyway {
        warnings.push(ModelNotice::NoThinkingSwitch.into());
    }
    if checkpoint.quantises_activations() {
        let quantisation = checkpoint.quantisation().unwrap_or("the file").to_owned();
        warnings.push(ModelNotice::ActivationsNotQuantised { quantisation }.into());
    }
    let passed = &checkpoint.passed_keys;
    if !passed.ignored.is_empty() {
        let keys = passed.ignored.iter().cloned().collect();
        let architecture = checkpoint.config.architecture.clone();
        warnings.push(ModelNotice::ConfigIgnored { architecture, keys }.into());
    }
    if !passed.allowed.is_empty() {
        warnings.push(ModelNotice::ConfigAllowed { keys: passed.allowed.iter().cloned().collect() }.into());
    }
    let supplied = checkpoint.pre_tokenizer.iter();
    warnings.extend(supplied.map(|supplied| Notice::told(Teller::Model, &supplied.note)));
    if let Some((commit, files)) = unverifiable(checkpoint) {
        warnings.push(ModelNotice::NoDigest { commit, files }.into());
    }
    warnings
}

impl OpenModel for LocalModel {
    fn engine(&self) -> String {
        self.device.engine()
    }

    fn prompt_source(&self) -> Box<dyn PromptSource + '_> {
        Box::new(WithThinking { checkpoint: &self.checkpoint, enable_thinking: self.enable_thinking })
    }

    fn enable_thinking(&self) -> Option<bool> {
        self.enable_thinking
    }

    fn defaults(&self) -> Option<CheckpointDefaults> {
        Some(checkpoint_defaults(&self.located, &self.checkpoint))
    }

    fn hash_files(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<FileRecord>, EvalError> {
        hash_files(&self.checkpoint, progress)
    }

    fn weights(&self) -> Option<WeightFormat> {
        Some(self.checkpoint.weight_format()).filter(|format| !format.is_plain())
    }

    fn pre_tokenizer(&self) -> Option<String> {
        self.checkpoint.pre_tokenizer.as_ref().map(|supplied| supplied.name.clone())
    }

    fn record(&self) -> ModelRecord {
        record(&self.located, &self.checkpoint)
    }

    fn warnings(&self) -> Vec<Notice> {
        let mut warnings = checkpoint_warnings(&self.checkpoint, self.thinks_anyway);
        warnings.extend(left_out(&self.located, &self.checkpoint));
        warnings.extend(self.located.notice());
        // Between the warnings about thinking and those about files.
        if let Some(note) = &self.note {
            warnings.insert(usize::from(self.thinks_anyway), note.clone().into());
        }
        warnings
    }

    fn load(&self) -> Result<LoadedEngine, EvalError> {
        let mut loaded = load_on(&self.checkpoint, &self.device, &self.settings)?;
        loaded.on_gpu = matches!(self.device, Device::Cuda { .. });
        Ok(loaded)
    }
}
