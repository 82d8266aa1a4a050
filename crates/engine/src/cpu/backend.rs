//! The CPU as a [`Backend`].

use super::decoder::{Forward, LoadError, Weights};
use super::kernels::{Int8Isa, Isa, Peaks, SharedMut, TileUnit};
use super::kv::{CacheLayout, CacheType, KvStore};
use super::options::Options;
use super::team::Team;
use crate::EngineError;
use crate::core::sampler::sample_row;
use crate::core::{Backend, BackendInfo, BlockOp, EngineCore, Limits, Sampled, SamplingMetadata, Step};
use earnest_models::checkpoint::{Checkpoint, DecoderConfig, KeysValues, KvType};

/// Rows of logits computed at a time: bounds their memory with large vocabularies.
const LOGIT_ROWS: usize = 48;

/// Continuous batching on the CPU. The same request gives the same bits alone and in any batch.
pub type CpuEngine = EngineCore<CpuBackend>;

/// A decoder with its weights, KV blocks and threads.
pub struct CpuBackend {
    config: DecoderConfig,
    weights: Weights,
    team: Team,
    forward: Forward,
    kv: KvStore,
}

impl EngineCore<CpuBackend> {
    /// Reads a checkpoint's weights and prepares to run it.
    ///
    /// # Errors
    /// [`LoadError`] for a checkpoint that can not be run here.
    pub fn load(checkpoint: &Checkpoint, options: Options) -> Result<CpuEngine, LoadError> {
        // Asked for before there are threads that use it.
        let tiles = checkpoint.weight_format().is_bf16().then(TileUnit::best);
        let team = Team::start(options.threads(), Isa::detect()).map_err(LoadError::Threads)?;
        let config = checkpoint.config.clone();
        let format = checkpoint.weight_format();
        if format.is_fp8() {
            return Err(LoadError::Fp8);
        }
        let cache = match format.kv {
            Some(_) if format.is_int8() => return Err(LoadError::KvOfInt8),
            Some(KvType::Bf16) => CacheType::Bf16,
            None if format.is_int8() => CacheType::Int8,
            None => CacheType::F32,
        };
        let layout = CacheLayout::new(
            cache,
            config.layers.iter().map(|layer| match layer.keys_values {
                // Those of another layer need no memory.
                _ if layer.linear => (0, layer.head_dim),
                KeysValues::OfLayer(_) => (0, layer.head_dim),
                _ => (layer.num_kv_heads, layer.head_dim),
            }),
        );
        let given = options.kv_bytes();
        let blocks = (given / layout.size_bytes()) as usize;
        if blocks == 0 {
            return Err(LoadError::KvMemory { given, needed: layout.size_bytes() });
        }
        // What linear attention keeps of sequences has at most as much memory as keys and values.
        let kept =
            config.linear.map_or(0, |l| l.state_floats() * config.layers.iter().filter(|l| l.linear).count() * 4);
        let most = given.checked_div(kept as u64).map_or(usize::MAX, |n| n as usize);
        let max_batch = options.max_batch.min(most).max(1);
        let limits = Limits {
            // Decoding sequences always run; a prompt needs at least one token of the budget to make progress.
            token_budget: options.token_budget.max(max_batch + 1),
            max_batch,
            blocks,
            // The state of linear attention after a shared beginning is not kept.
            prefix_cache: options.prefix_cache && config.linear.is_none(),
        };
        let weights = Weights::load(checkpoint, tiles)?;
        let kv = KvStore::new(layout, blocks);
        let backend = CpuBackend { config, weights, team, forward: Forward::default(), kv };
        Ok(EngineCore::new(backend, checkpoint, limits, options.trace))
    }

    /// Measures the peak performance of this engine's threads in its arithmetic, in a second or two.
    pub fn peaks(&self) -> Peaks {
        let CpuBackend { team, weights, .. } = self.backend();
        Peaks::measure(team, weights.is_int8(), weights.tile_unit(), weights.size_bytes())
    }
}

impl Backend for CpuBackend {
    /// The step is computed when it begins.
    type Handle = Vec<Sampled>;

    const STEPS_IN_FLIGHT: usize = 1;
    const DECODE_FIRST: bool = false;

    fn begin(&mut self, step: &Step) -> Result<Vec<Sampled>, EngineError> {
        for op in &step.block_ops {
            match *op {
                BlockOp::Clear(block) => self.kv.clear(block),
                BlockOp::Copy { from, to, positions } => self.kv.copy(from, to, positions),
            }
        }
        let CpuBackend { config, weights, team, forward, kv } = self;
        let mut results = vec![Sampled::default(); step.sampling.len()];
        team.enter(|| {
            forward.run(team, config, weights, kv, step);
            for start in (0..results.len()).step_by(LOGIT_ROWS) {
                let rows = start..(start + LOGIT_ROWS).min(results.len());
                let logits = &*forward.logits(team, config, weights, rows.clone());
                let metadata = &step.sampling[rows.clone()];
                let results = SharedMut::new(&mut results[rows]);
                team.run(metadata.len(), &|i| {
                    let logits = &logits[i * config.vocab_size..(i + 1) * config.vocab_size];
                    let mut result = sample_row(team.isa(), &metadata[i], step.seen(&metadata[i]), logits);
                    result.logits = metadata[i].return_logits.then(|| logits.to_vec());
                    // SAFETY: each row is written by one piece.
                    let row = unsafe { results.slice(i, 1) };
                    row[0] = result;
                });
            }
        });
        Ok(results)
    }

    fn finish(&mut self, results: Vec<Sampled>) -> Result<Vec<Sampled>, EngineError> {
        Ok(results)
    }

    fn samples(&self, _: &SamplingMetadata) -> bool {
        true
    }

    fn block_bytes(&self) -> u64 {
        self.kv.layout().size_bytes()
    }

    fn info(&self) -> BackendInfo {
        let isa = self.team.isa();
        let kernels = match self.weights.tile_unit() {
            Some(unit) => unit.describe(isa),
            None if self.weights.is_int8() => Int8Isa::best(isa).name().to_owned(),
            None => isa.name().to_owned(),
        };
        BackendInfo {
            devices: vec![match self.team.threads() {
                1 => format!("CPU, 1 thread, {kernels} kernels"),
                threads => format!("CPU, {threads} threads, {kernels} kernels"),
            }],
            weights_dtype: self.weights.dtype(),
            weight_bytes: self.weights.size_bytes(),
            batch_invariant: true,
        }
    }
}
