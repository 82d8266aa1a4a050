//! A GPU as a [`Backend`].

use super::device::{Device, DeviceInfo};
use super::error::CudaError;
use super::executor::{Demands, Executor, Running};
use super::gpu::Gpu;
use super::options::Options;
use super::peaks::Peaks;
use super::profile::Profiler;
use super::profiled::Profiled;
use crate::EngineError;
use crate::core::{BLOCK_SIZE, Backend, BackendInfo, EngineCore, Limits, Sampled, SamplingMetadata, Step};
use earnest_models::checkpoint::Checkpoint;

/// Continuous batching on a GPU.
pub type CudaEngine = EngineCore<CudaBackend>;

/// A decoder on a device.
pub struct CudaBackend {
    executor: Executor,
    info: DeviceInfo,
    notes: Vec<String>,
}

/// Opens the GPU of the settings, with cublasLt unless products are to be our own.
fn open(options: &Options) -> Result<Gpu, CudaError> {
    let library = !options.own_products();
    let gpu = Gpu::open(options.device, options.kernel_cache.clone(), library)?;
    if library {
        gpu.cublaslt_version()?;
    }
    Ok(gpu)
}

impl EngineCore<CudaBackend> {
    /// Opens a GPU, compiles what kernels it needs, reads a checkpoint's weights to it.
    ///
    /// # Errors
    /// [`CudaError`]; [`CudaError::NoLibrary`] if products are to be cublasLt's and it can not be used: another arithmetic is another
    /// engine to a run, so nothing else stands in for it here.
    pub fn load(checkpoint: &Checkpoint, options: &Options) -> Result<CudaEngine, CudaError> {
        CudaEngine::on(Box::new(open(options)?), checkpoint, options)
    }

    /// Loads a checkpoint as [`load`](CudaEngine::load) does, on a GPU whose work can be profiled against measured peaks.
    ///
    /// # Errors
    /// Those of [`load`](CudaEngine::load).
    pub fn load_profiled(
        checkpoint: &Checkpoint,
        options: &Options,
        peaks: &Peaks,
    ) -> Result<(CudaEngine, Profiler), CudaError> {
        let (device, profiler) = Profiled::new(Box::new(open(options)?), peaks)?;
        // A recorded step would be one row of the profile, without its kernels.
        let options = Options { graphs: false, ..options.clone() };
        Ok((CudaEngine::on(Box::new(device), checkpoint, &options)?, profiler))
    }

    /// Loads a checkpoint on any device.
    pub(crate) fn on(
        device: Box<dyn Device>,
        checkpoint: &Checkpoint,
        options: &Options,
    ) -> Result<CudaEngine, CudaError> {
        device.enter()?;
        let max_batch = options.requests(device.info()?.total).max(1);
        let demands = Demands {
            // Decoding sequences always run; a prompt needs at least one token of the budget to make progress.
            tokens: options.token_budget.max(max_batch + 1),
            sequences: max_batch,
            invariant: options.own_products(),
            kv_memory: options.kv_memory,
            graphs: options.graphs,
            #[cfg(test)]
            separate_norms: options.separate_norms,
            #[cfg(not(test))]
            separate_norms: false,
            variants: options.variants,
        };
        let (executor, mut notes) = Executor::load(device, checkpoint, &demands)?;
        let capacity = executor.capacity();
        let limits = Limits {
            token_budget: capacity.tokens,
            max_batch: max_batch.min(capacity.tokens - 1).max(1),
            blocks: capacity.blocks,
            prefix_cache: options.prefix_cache,
        };
        if limits.max_batch < max_batch {
            notes.push(format!("at most {} requests run at once instead of {max_batch}", limits.max_batch));
        }
        let info = executor.device().info()?;
        let backend = CudaBackend { executor, info, notes };
        Ok(EngineCore::new(backend, checkpoint, limits, options.trace))
    }

    /// Steps that were launched from a record.
    #[cfg(test)]
    pub(crate) fn replayed(&self) -> usize {
        self.backend().executor.replayed()
    }

    /// Notices of what had to be made smaller, for people; empty if nothing.
    pub fn notes(&self) -> &[String] {
        &self.backend().notes
    }

    /// Device, arithmetic and limits, for a run's manifest.
    pub fn describe(&self) -> serde_json::Value {
        let CudaBackend { executor, info: i, .. } = self.backend();
        let limits = self.limits();
        serde_json::json!({
            "device": format!("cuda:{}", i.index),
            "name": i.name,
            "compute_capability": format!("{}.{}", i.capability.0, i.capability.1),
            "memory": i.total,
            "driver": format!("{}.{}", i.driver.0, i.driver.1),
            "compiler": i.compiler.map(|(major, minor)| format!("{major}.{minor}")),
            "embedded_kernels": i.embedded,
            "modified_kernels": i.modified,
            "cublaslt": i.cublaslt,
            "products": executor.describe_products(),
            "elements": executor.weights().element.name(),
            "accumulation": "f32",
            "deterministic": true,
            "batch_invariant": executor.is_invariant(),
            "variants": executor.variants().names(),
            "max_batch": limits.max_batch,
            "token_budget": limits.token_budget,
            "kv_tokens": limits.blocks * BLOCK_SIZE,
            "prefix_cache": limits.prefix_cache,
        })
    }
}

impl Backend for CudaBackend {
    type Handle = Running;

    const STEPS_IN_FLIGHT: usize = 2;
    const DECODE_FIRST: bool = true;

    fn begin(&mut self, step: &Step) -> Result<Running, EngineError> {
        Ok(self.executor.begin(step)?)
    }

    fn finish(&mut self, running: Running) -> Result<Vec<Sampled>, EngineError> {
        Ok(self.executor.finish(running)?)
    }

    /// Repetition penalties, lists of log-probabilities and hashes are left to the host.
    fn samples(&self, row: &SamplingMetadata) -> bool {
        row.sampling.repetition_penalty == 1.0 && row.top_logprobs == 0 && !row.hash
    }

    fn block_bytes(&self) -> u64 {
        self.executor.block_bytes()
    }

    fn info(&self) -> BackendInfo {
        let i = &self.info;
        let compiler = i.compiler.map_or("none".into(), |(major, minor)| format!("{major}.{minor}"));
        let kernels = match (&i.modified, &i.embedded) {
            (Some(digest), _) => format!("modified kernels {digest}, NVRTC {compiler}"),
            (None, Some(embedded)) => format!("kernels for {embedded}"),
            (None, None) => format!("NVRTC {compiler}"),
        };
        BackendInfo {
            devices: vec![format!(
                "cuda:{}, {}, {} GiB, compute capability {}.{}, driver for CUDA {}.{}, {kernels}, products by {}, own attention",
                i.index,
                i.name,
                i.total >> 30,
                i.capability.0,
                i.capability.1,
                i.driver.0,
                i.driver.1,
                match (self.executor.describe_products(), i.cublaslt) {
                    ("cublasLt", Some(version)) => format!("cublasLt {version}"),
                    _ => "own kernels".into(),
                },
            )],
            weights_dtype: self.executor.weights().dtype(),
            weight_bytes: self.executor.weights().bytes,
            batch_invariant: self.executor.is_invariant(),
        }
    }
}
