//! Options that the instruments share, and the engine that they load.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use earnest_engine::Engine;
use earnest_engine::cpu::{self, CpuEngine};
use earnest_engine::cuda::{self, CudaEngine, Peaks, Profiler, Variants};
use earnest_models::checkpoint::{Checkpoint, Compute, ElementType, Quant, WeightFormat};
use earnest_models::memory::ByteSize;

use crate::failure::Failure;

/// A device to compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// On this machine's cores.
    Cpu,
    /// On a GPU, by its number.
    Cuda(usize),
}

/// Parser of `--device`.
pub fn device(text: &str) -> Result<Device, String> {
    match (text, text.strip_prefix("cuda:").map(str::parse::<u16>)) {
        ("cpu", _) => Ok(Device::Cpu),
        ("cuda", _) => Ok(Device::Cuda(0)),
        (_, Some(Ok(number))) => Ok(Device::Cuda(number.into())),
        _ => Err("a device is cpu, cuda or cuda:N".to_owned()),
    }
}

/// Parser of a count that cannot be 0.
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "it must be a whole number above 0".to_owned())
}

/// Parser of an option that takes one of a few names.
fn named<T: Copy + Send + Sync + 'static>(values: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.iter().map(|(name, _)| *name)).map(|name| {
        let chosen = values.iter().find(|(known, _)| *known == name);
        chosen.expect("clap accepts the listed names only").1
    })
}

const QUANTS: &[(&str, Quant)] =
    &[("q8_0", Quant::Q8), ("q6k", Quant::Q6k), ("q5k", Quant::Q5k), ("q4k", Quant::Q4k), ("nf4", Quant::Nf4)];
const DTYPES: &[(&str, ElementType)] =
    &[("f32", ElementType::F32), ("bf16", ElementType::Bf16), ("f16", ElementType::F16)];
const COMPUTES: &[(&str, Compute)] =
    &[("int8", Compute::Int8), ("a8", Compute::A8), ("bf16", Compute::Bf16), ("fp8", Compute::Fp8)];

/// Changes to the weights at load.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct WeightArgs {
    /// Quantisation of the attention and feed-forward weights at load
    #[arg(long, value_name = "SCHEME", value_parser = named(QUANTS))]
    pub quant: Option<Quant>,

    /// Element type to round matrices to [default: the file's]
    #[arg(long, value_name = "TYPE", value_parser = named(DTYPES))]
    pub dtype: Option<ElementType>,

    /// Arithmetic of matrix products other than that of the weights' type
    #[arg(long, value_name = "TYPE", value_parser = named(COMPUTES))]
    pub compute: Option<Compute>,
}

impl From<WeightArgs> for WeightFormat {
    fn from(WeightArgs { quant, dtype, compute }: WeightArgs) -> WeightFormat {
        WeightFormat { quant, dtype, compute, kv: None }
    }
}

/// The model of a measurement.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// Hugging Face folder or GGUF file
    #[arg(long = "model", value_name = "PATH")]
    pub path: Option<PathBuf>,

    /// Random weights in the shape of a published model instead; nothing is read
    #[arg(long, value_name = "SHAPE", conflicts_with = "path", value_parser = PossibleValuesParser::new(Checkpoint::random_shapes()))]
    pub random: Option<String>,

    /// Layers of --random [default: all]
    #[arg(long, value_name = "N", requires = "random", value_parser = at_least_one)]
    pub layers: Option<usize>,

    #[command(flatten)]
    pub weights: WeightArgs,
}

impl ModelArgs {
    /// Name of the model in documents.
    pub fn name(&self) -> String {
        match (&self.random, self.layers, &self.path) {
            (Some(shape), Some(layers), _) => format!("random {shape}, {layers} layers"),
            (Some(shape), None, _) => format!("random {shape}"),
            (None, _, path) => path.as_deref().unwrap_or(std::path::Path::new("")).display().to_string(),
        }
    }

    /// Opens the checkpoint.
    pub fn open(&self) -> Result<Checkpoint, Failure> {
        let mut checkpoint = match (&self.random, &self.path) {
            (Some(shape), _) => Checkpoint::random(shape, self.layers)?,
            (None, Some(path)) => Checkpoint::open(path)?,
            (None, None) => return Err(Failure::usage("name a --model, or --random SHAPE")),
        };
        checkpoint.set_weight_format(self.weights.into());
        Ok(checkpoint)
    }
}

/// Device and limits of the engine.
#[derive(Debug, Clone, Args)]
pub struct EngineArgs {
    /// Device: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = device)]
    pub device: Device,

    /// Maximum batch size in sequences [default: chosen by the engine]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub max_batch: Option<usize>,

    /// Most tokens of a step, on a GPU [default: chosen by the engine]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub token_budget: Option<usize>,

    /// Memory for the KV cache, e.g. 2GiB or 512MiB [default: chosen by the engine]
    #[arg(long, value_name = "SIZE")]
    pub kv_memory: Option<ByteSize>,

    /// Number of CPU threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,

    /// Compute every prompt from its first token
    #[arg(long)]
    pub no_prefix_cache: bool,

    /// On a GPU: all products by our own kernels, so that a request's bits do not depend on its batch
    #[arg(long)]
    pub batch_invariant: bool,

    /// On a GPU: launch the kernels of every step, instead of recording steps that only decode
    #[arg(long)]
    pub no_graphs: bool,

    /// On a GPU: variants of the computation
    #[arg(long, value_name = "NAME,NAME", value_parser = str::parse::<Variants>)]
    pub cuda_variant: Option<Variants>,
}

/// A loaded engine, and its options for documents.
pub struct Loaded {
    pub engine: Box<dyn Engine>,
    pub options: serde_json::Value,
}

impl EngineArgs {
    fn cpu(&self) -> Result<cpu::Options, Failure> {
        if self.cuda_variant.is_some() || self.token_budget.is_some() || self.no_graphs {
            return Err(Failure::usage(
                "--cuda-variant, --token-budget and --no-graphs are for a GPU: add --device cuda",
            ));
        }
        let defaults = cpu::Options::default();
        Ok(cpu::Options {
            threads: self.threads.or(defaults.threads),
            kv_memory: self.kv_memory.map(|size| size.0).or(defaults.kv_memory),
            max_batch: self.max_batch.unwrap_or(defaults.max_batch),
            prefix_cache: !self.no_prefix_cache,
            ..defaults
        })
    }

    fn cuda(&self, device: usize) -> cuda::Options {
        let defaults = cuda::Options::default();
        cuda::Options {
            device,
            kv_memory: self.kv_memory.map(|size| size.0),
            max_batch: self.max_batch,
            token_budget: self.token_budget.unwrap_or(defaults.token_budget),
            graphs: !self.no_graphs,
            prefix_cache: !self.no_prefix_cache,
            batch_invariant: self.batch_invariant,
            variants: self.cuda_variant.unwrap_or_default(),
            ..defaults
        }
    }

    /// Loads a checkpoint's weights.
    pub fn load(&self, checkpoint: &Checkpoint) -> Result<Loaded, Failure> {
        match self.device {
            Device::Cpu => {
                let (engine, options) = self.load_cpu(checkpoint)?;
                Ok(Loaded { engine: Box::new(engine), options })
            }
            Device::Cuda(index) => {
                check_format(checkpoint)?;
                Ok(loaded(CudaEngine::load(checkpoint, &self.cuda(index))?))
            }
        }
    }

    /// Loads a checkpoint's weights on a GPU whose work is profiled.
    pub fn load_profiled(
        &self,
        checkpoint: &Checkpoint,
        device: usize,
        peaks: &Peaks,
    ) -> Result<(Loaded, Profiler), Failure> {
        check_format(checkpoint)?;
        let (engine, profiler) = CudaEngine::load_profiled(checkpoint, &self.cuda(device), peaks)?;
        Ok((loaded(engine), profiler))
    }

    /// Loads a checkpoint's weights on the CPU; also returns the options for documents.
    pub fn load_cpu(&self, checkpoint: &Checkpoint) -> Result<(CpuEngine, serde_json::Value), Failure> {
        if checkpoint.weight_format().is_fp8() {
            return Err(Failure::usage("--compute fp8 is supported on a GPU only: add --device cuda"));
        }
        let engine = CpuEngine::load(checkpoint, self.cpu()?)?;
        let limits = engine.limits();
        let options = serde_json::json!({
            "device": "cpu", "max_batch": limits.max_batch, "token_budget": limits.token_budget,
        });
        Ok((engine, options))
    }
}

/// An arithmetic of the CPU is refused on a GPU.
fn check_format(checkpoint: &Checkpoint) -> Result<(), Failure> {
    match checkpoint.weight_format().compute.filter(|compute| *compute != Compute::Fp8) {
        Some(compute) => {
            Err(Failure::usage(format!("--compute {} is supported on the CPU only: add --device cpu", compute.name())))
        }
        None => Ok(()),
    }
}

fn loaded(engine: CudaEngine) -> Loaded {
    for note in engine.notes() {
        eprintln!("note: {note}");
    }
    let options = engine.describe();
    Loaded { engine: Box::new(engine), options }
}
