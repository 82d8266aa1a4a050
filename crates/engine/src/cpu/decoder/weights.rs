//! A decoder's parameters, packed as they are loaded.

use rayon::prelude::*;

use crate::cpu::kernels::{MAX_GROUP, MAX_HEAD_DIM, PackedMatrix, TileUnit};
use earnest_models::checkpoint::{Checkpoint, CheckpointError, Compute, Parameter};

use super::reader::Reader;

/// Reasons why a checkpoint can not be run on the CPU.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file could not be read or does not hold what the config promises.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A head is wider than the attention kernel supports.
    #[error("heads of {0} dimensions are not supported (at most {MAX_HEAD_DIM})")]
    HeadTooWide(usize),
    /// An arithmetic of GPUs.
    #[error("8-bit floats are computed on a GPU only, of compute capability 8.9 and later")]
    Fp8,
    /// More query heads share a key than the attention kernel supports.
    #[error("{heads} query heads share {kv_heads} key heads: at most {MAX_GROUP} heads may share one")]
    TooManySharers {
        /// Query heads.
        heads: usize,
        /// Key/value heads.
        kv_heads: usize,
    },
    /// A value in a weight is not a number.
    #[error(
        "{parameter} ({place}) holds {count} values that are not finite: the file is damaged or the training diverged"
    )]
    NotFinite {
        /// The parameter.
        parameter: String,
        /// Its tensor and file.
        place: String,
        /// Number of such values.
        count: usize,
    },
    /// Nothing to which the arithmetic applies.
    #[error(
        "the setting `compute = a8` multiplies quantised weights as they are, and this checkpoint has none of 2 to 8 bits whose scales are those of 32 neighbours: name a \
         quantised GGUF file, add the setting `quant`, or use the setting `compute = int8`"
    )]
    NoBlocks,
    /// Two types of keys and values are asked for.
    #[error(
        "the setting `compute = int8` keeps keys and values in 8 bits: leave out the setting `kv`, or use the setting `compute = a8` with it"
    )]
    KvOfInt8,
    /// The machine refused a thread.
    #[error("worker threads could not be started: {0}")]
    Threads(std::io::Error),
    /// The KV memory does not hold one block.
    #[error("the setting `kv_memory` of {given} bytes is less than one block of {BLOCK_SIZE} tokens ({needed} bytes)", BLOCK_SIZE = crate::core::BLOCK_SIZE)]
    KvMemory {
        /// Bytes allowed.
        given: u64,
        /// Bytes of a block.
        needed: u64,
    },
}

/// A norm's parameters.
pub(crate) struct NormWeights {
    pub(crate) scale: Vec<f32>,
    /// Layer norms with a bias only.
    pub(crate) offset: Vec<f32>,
}

/// Feed-forward weights of a layer or an expert. The gate lies on top of the up projection.
pub(crate) struct MlpWeights {
    pub(crate) gate_up: PackedMatrix,
    pub(crate) gate_up_bias: Option<Vec<f32>>,
    pub(crate) down: PackedMatrix,
    pub(crate) down_bias: Option<Vec<f32>>,
}

/// The feed-forward part of a layer.
pub(crate) struct FeedForward {
    /// The block computed for every token.
    pub(crate) dense: Option<MlpWeights>,
    pub(crate) experts: Option<ExpertWeights>,
}

/// A mixture of experts.
pub(crate) struct ExpertWeights {
    pub(crate) router: PackedMatrix,
    pub(crate) router_bias: Option<Vec<f32>>,
    /// Its product's sigmoid is the factor on the dense block's answer.
    pub(crate) shared_gate: Option<PackedMatrix>,
    /// Added to scores for the choice only; empty for none.
    pub(crate) choice_bias: Vec<f32>,
    pub(crate) experts: Vec<MlpWeights>,
    pub(crate) beside: Option<BesideWeights>,
}

/// Norms and scales of experts beside the dense block.
pub(crate) struct BesideWeights {
    /// Scale of the router's input, with the inverse root of its width.
    pub(crate) router_scale: Vec<f32>,
    pub(crate) expert_scale: Vec<f32>,
    pub(crate) norm: NormWeights,
    pub(crate) post_norm: NormWeights,
    pub(crate) post_dense_norm: NormWeights,
}

/// Projections of attention's input.
pub(crate) enum Projection {
    /// Queries, keys and values on top of each other, as far as the layer has them.
    Direct {
        qkv: PackedMatrix,
        bias: Option<Vec<f32>>,
    },
    Latent(Box<LatentWeights>),
    Linear(Box<LinearWeights>),
}

/// Linear attention.
pub(crate) struct LinearWeights {
    /// Queries, keys, values and gates on top of each other.
    pub(crate) input: PackedMatrix,
    /// Strengths and decays on top of each other.
    pub(crate) rates: PackedMatrix,
    /// `[channels, kernel]`
    pub(crate) convolution: Vec<f32>,
    /// `-e^log`
    pub(crate) decay: Vec<f32>,
    pub(crate) decay_bias: Vec<f32>,
    pub(crate) norm: Vec<f32>,
}

/// Projections through latent vectors.
pub(crate) struct LatentWeights {
    /// Projection to the queries' latent vector, and its norm.
    pub(crate) query_down: Option<(PackedMatrix, Vec<f32>)>,
    pub(crate) query: PackedMatrix,
    pub(crate) kv_down: PackedMatrix,
    pub(crate) kv_norm: Vec<f32>,
    pub(crate) kv_up: PackedMatrix,
}

/// Weights that apply a layer's input from the second embedding table.
pub(crate) struct LayerInputWeights {
    pub(crate) gate: PackedMatrix,
    pub(crate) up: PackedMatrix,
    pub(crate) norm: NormWeights,
}

/// Weights of a layer with several residual streams.
pub(crate) struct StreamWeights {
    pub(crate) branch_down: PackedMatrix,
    pub(crate) branch_up: PackedMatrix,
    pub(crate) branch_norm: NormWeights,
    pub(crate) router: PackedMatrix,
    /// Scale of the router's norm, over the width.
    pub(crate) router_norm: NormWeights,
    pub(crate) prediction: PackedMatrix,
    pub(crate) correction: PackedMatrix,
    /// Empty for none.
    pub(crate) scale: Vec<f32>,
}

/// One layer.
pub(crate) struct LayerWeights {
    /// Absent where norms follow the blocks.
    pub(crate) attention_norm: Option<NormWeights>,
    pub(crate) projection: Projection,
    pub(crate) query_norm: Option<Vec<f32>>,
    pub(crate) key_norm: Option<Vec<f32>>,
    /// Empty for none.
    pub(crate) sinks: Vec<f32>,
    pub(crate) output: PackedMatrix,
    pub(crate) output_bias: Option<Vec<f32>>,
    pub(crate) post_attention_norm: Option<NormWeights>,
    /// Absent in the parallel layout, and where norms follow the blocks.
    pub(crate) mlp_norm: Option<NormWeights>,
    pub(crate) feed_forward: FeedForward,
    pub(crate) post_mlp_norm: Option<NormWeights>,
    pub(crate) layer_input: Option<LayerInputWeights>,
    pub(crate) scalar: Option<f32>,
    pub(crate) streams: Option<StreamWeights>,
}

/// The second embedding table, its projection from the embedding, and the scale of that projection's norm.
pub(crate) struct LayerInputTable {
    pub(crate) table: PackedMatrix,
    pub(crate) projection: PackedMatrix,
    pub(crate) norm: Vec<f32>,
}

/// All parameters.
pub(crate) struct Weights {
    pub(crate) embedding: PackedMatrix,
    pub(crate) layer_inputs: Option<LayerInputTable>,
    /// Projections of the embedding to the further residual streams, and of those at the end.
    pub(crate) stream_projections: Vec<(PackedMatrix, PackedMatrix)>,
    pub(crate) layers: Vec<LayerWeights>,
    pub(crate) final_norm: NormWeights,
    /// Output matrix; none where the embedding serves as head.
    pub(crate) head: Option<PackedMatrix>,
    pub(crate) head_bias: Option<Vec<f32>>,
}

impl Weights {
    /// Reads and packs every parameter, one matrix at a time on each core; for products in bf16 if there is a unit for them.
    pub(crate) fn load(checkpoint: &Checkpoint, tiles: Option<TileUnit>) -> Result<Weights, LoadError> {
        let c = &checkpoint.config;
        for layer in &c.layers {
            if layer.head_dim > MAX_HEAD_DIM {
                return Err(LoadError::HeadTooWide(layer.head_dim));
            }
            if c.num_heads / layer.num_kv_heads > MAX_GROUP {
                return Err(LoadError::TooManySharers { heads: c.num_heads, kv_heads: layer.num_kv_heads });
            }
        }
        let r = Reader { checkpoint, tiles };
        let (vocab, hidden) = (c.vocab_size, c.hidden_size);
        // Two at a time on two cores: that many matrices are held twice while they are packed.
        let (embedding, layers) = rayon::join(
            || r.matrix(&[(Parameter::Embedding, vocab)], hidden),
            || (0..c.layers.len()).into_par_iter().map(|i| r.layer(i)).collect::<Vec<Result<_, LoadError>>>(),
        );
        let embedding = embedding?;
        // In their order, so that it is always the first damaged one that is named.
        let layers = layers.into_iter().collect::<Result<_, _>>()?;
        let head = if c.tied_embeddings { None } else { Some(r.matrix(&[(Parameter::Head, vocab)], hidden)?) };
        let head_bias = if c.head_bias { Some(r.vector(Parameter::HeadBias, vocab)?) } else { None };
        let final_norm = r.norm(Parameter::FinalNorm, Parameter::FinalNormBias)?;
        let (layer_inputs, stream_projections) = (r.layer_inputs()?, r.stream_projections()?);
        let weights = Weights { embedding, layer_inputs, stream_projections, layers, final_norm, head, head_bias };
        if checkpoint.weight_format().compute == Some(Compute::A8) && !weights.is_int8() {
            return Err(LoadError::NoBlocks);
        }
        Ok(weights)
    }

    /// The output head.
    pub(crate) fn head(&self) -> &PackedMatrix {
        self.head.as_ref().unwrap_or(&self.embedding)
    }

    /// Every packed matrix.
    fn matrices(&self) -> impl Iterator<Item = &PackedMatrix> {
        let inputs = self.layer_inputs.iter().flat_map(|l| [&l.table, &l.projection]);
        let streams = self.stream_projections.iter().flat_map(|(a, b)| [a, b]);
        let layers = self.layers.iter().flat_map(LayerWeights::matrices);
        layers.chain([&self.embedding]).chain(&self.head).chain(inputs).chain(streams)
    }

    /// True if products are computed in 8-bit integers, some of them at least.
    pub(crate) fn is_int8(&self) -> bool {
        self.matrices().any(PackedMatrix::is_int8)
    }

    /// Unit of products in bf16, if they are computed so.
    pub(crate) fn tile_unit(&self) -> Option<TileUnit> {
        self.matrices().find_map(PackedMatrix::tile_unit)
    }

    /// Bytes of all matrices.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.matrices().map(|m| m.size_bytes() as u64).sum()
    }

    /// The element types in use, e.g. `f32` or `bf16+f32`.
    pub(crate) fn dtype(&self) -> String {
        let mut names: Vec<&str> = self.matrices().map(PackedMatrix::dtype).collect();
        names.sort_unstable();
        names.dedup();
        names.join("+")
    }
}

impl LayerWeights {
    /// Every packed matrix.
    fn matrices(&self) -> Vec<&PackedMatrix> {
        let mut all = vec![&self.output];
        match &self.projection {
            Projection::Direct { qkv, .. } => all.push(qkv),
            Projection::Linear(l) => all.extend([&l.input, &l.rates]),
            Projection::Latent(l) => {
                all.extend([&l.query, &l.kv_down, &l.kv_up]);
                all.extend(l.query_down.iter().map(|(matrix, _)| matrix));
            }
        }
        let experts = self.feed_forward.experts.iter();
        all.extend(experts.clone().map(|e| &e.router));
        let mlps = self.feed_forward.dense.iter().chain(experts.flat_map(|e| &e.experts));
        all.extend(mlps.flat_map(|m| [&m.gate_up, &m.down]));
        all.extend(self.layer_input.iter().flat_map(|l| [&l.gate, &l.up]));
        let streams = self.streams.iter();
        all.extend(streams.flat_map(|s| [&s.branch_down, &s.branch_up, &s.router, &s.prediction, &s.correction]));
        all
    }
}
