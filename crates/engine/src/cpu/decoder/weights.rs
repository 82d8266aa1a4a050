//! A decoder's parameters, packed as they are loaded.

use rayon::prelude::*;

use crate::cpu::kernels::{MAX_GROUP, MAX_HEAD_DIM, PackedMatrix};
use earnest_models::checkpoint::{
    Checkpoint, CheckpointError, DecoderConfig, LayerParameter as P, Norm, Parameter, Tensor, Values,
};

/// Reasons why a checkpoint can not be run on the CPU.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file could not be read or does not hold what the config promises.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A head is wider than the attention kernel supports.
    #[error("heads of {0} dimensions are not supported (at most {MAX_HEAD_DIM})")]
    HeadTooWide(usize),
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
        "{parameter} of the checkpoint holds {count} values that are not finite: the file is damaged or the training diverged"
    )]
    NotFinite {
        /// The parameter.
        parameter: String,
        /// Number of such values.
        count: usize,
    },
    /// The machine refused a thread.
    #[error("worker threads could not be started: {0}")]
    Threads(std::io::Error),
    /// The KV memory does not hold one block.
    #[error("--kv-memory of {given} bytes is less than one block of {BLOCK_SIZE} tokens ({needed} bytes)", BLOCK_SIZE = crate::core::BLOCK_SIZE)]
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
    /// Layer norms only.
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
pub(crate) enum FeedForward {
    Dense(MlpWeights),
    Experts { router: PackedMatrix, experts: Vec<MlpWeights> },
}

/// One layer.
pub(crate) struct LayerWeights {
    pub(crate) attention_norm: NormWeights,
    /// Queries, keys and values on top of each other.
    pub(crate) qkv: PackedMatrix,
    pub(crate) qkv_bias: Option<Vec<f32>>,
    pub(crate) query_norm: Option<Vec<f32>>,
    pub(crate) key_norm: Option<Vec<f32>>,
    pub(crate) output: PackedMatrix,
    pub(crate) output_bias: Option<Vec<f32>>,
    pub(crate) post_attention_norm: Option<NormWeights>,
    /// Absent in the parallel layout.
    pub(crate) mlp_norm: Option<NormWeights>,
    pub(crate) feed_forward: FeedForward,
    pub(crate) post_mlp_norm: Option<NormWeights>,
}

/// All parameters.
pub(crate) struct Weights {
    pub(crate) embedding: PackedMatrix,
    pub(crate) layers: Vec<LayerWeights>,
    pub(crate) final_norm: NormWeights,
    /// None: the embedding is the head.
    pub(crate) head: Option<PackedMatrix>,
    pub(crate) head_bias: Option<Vec<f32>>,
}

impl Weights {
    /// Reads and packs every parameter, one matrix at a time on each core.
    pub(crate) fn load(checkpoint: &Checkpoint) -> Result<Weights, LoadError> {
        let c = &checkpoint.config;
        if c.head_dim > MAX_HEAD_DIM {
            return Err(LoadError::HeadTooWide(c.head_dim));
        }
        if c.num_heads / c.num_kv_heads > MAX_GROUP {
            return Err(LoadError::TooManySharers { heads: c.num_heads, kv_heads: c.num_kv_heads });
        }
        let r = Reader { checkpoint, c };
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
        Ok(Weights { embedding, layers, final_norm, head, head_bias })
    }

    /// The output head.
    pub(crate) fn head(&self) -> &PackedMatrix {
        self.head.as_ref().unwrap_or(&self.embedding)
    }

    /// Every packed matrix.
    fn matrices(&self) -> impl Iterator<Item = &PackedMatrix> {
        self.layers
            .iter()
            .flat_map(|l| {
                let mut all = vec![&l.qkv, &l.output];
                match &l.feed_forward {
                    FeedForward::Dense(m) => all.extend([&m.gate_up, &m.down]),
                    FeedForward::Experts { router, experts } => {
                        all.push(router);
                        all.extend(experts.iter().flat_map(|m| [&m.gate_up, &m.down]));
                    }
                }
                all
            })
            .chain([&self.embedding])
            .chain(&self.head)
    }

    /// True if products are computed in 8-bit integers.
    pub(crate) fn is_int8(&self) -> bool {
        self.matrices().any(PackedMatrix::is_int8)
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

struct Reader<'a> {
    checkpoint: &'a Checkpoint,
    c: &'a DecoderConfig,
}

impl Reader<'_> {
    fn tensor(&self, parameter: Parameter, shape: &[usize]) -> Result<Tensor, LoadError> {
        let tensor = self.checkpoint.tensor(parameter, shape)?;
        let count = match &tensor.values {
            Values::F32(v) => v.iter().filter(|x| !x.is_finite()).count(),
            // An exponent of all ones is an infinity or not a number.
            Values::Bf16(v) => v.iter().filter(|x| **x & 0x7F80 == 0x7F80).count(),
            Values::F16(v) => v.iter().filter(|x| **x & 0x7C00 == 0x7C00).count(),
        };
        if count > 0 {
            return Err(LoadError::NotFinite { parameter: parameter.to_string(), count });
        }
        Ok(tensor)
    }

    /// Matrices of `width` columns, given as (parameter, rows), on top of each other.
    fn matrix(&self, parts: &[(Parameter, usize)], width: usize) -> Result<PackedMatrix, LoadError> {
        let bytes = parts.iter().all(|&(p, _)| self.checkpoint.computes_int8(p, width));
        let parts = parts.iter().map(|&(p, n)| self.tensor(p, &[n, width])).collect::<Result<_, _>>()?;
        Ok(if bytes { PackedMatrix::stack_int8(parts) } else { PackedMatrix::stack(parts) })
    }

    fn vector(&self, parameter: Parameter, length: usize) -> Result<Vec<f32>, LoadError> {
        Ok(match self.tensor(parameter, &[length])?.values {
            Values::F32(v) => v,
            Values::Bf16(v) => v.into_iter().map(|x| half::bf16::from_bits(x).to_f32()).collect(),
            Values::F16(v) => v.into_iter().map(|x| half::f16::from_bits(x).to_f32()).collect(),
        })
    }

    fn bias(&self, wanted: bool, parts: &[(Parameter, usize)]) -> Result<Option<Vec<f32>>, LoadError> {
        if !wanted {
            return Ok(None);
        }
        let parts: Vec<Vec<f32>> = parts.iter().map(|&(p, n)| self.vector(p, n)).collect::<Result<_, _>>()?;
        Ok(Some(parts.concat()))
    }

    fn norm(&self, scale: Parameter, offset: Parameter) -> Result<NormWeights, LoadError> {
        let n = self.c.hidden_size;
        let offset = match self.c.norm {
            Norm::Rms { .. } => vec![],
            Norm::Layer { .. } => self.vector(offset, n)?,
        };
        Ok(NormWeights { scale: self.vector(scale, n)?, offset })
    }

    fn layer(&self, i: usize) -> Result<LayerWeights, LoadError> {
        let c = self.c;
        let at = |p| Parameter::Layer(i, p);
        let (q, kv) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
        let sandwich = c.block == earnest_models::checkpoint::BlockLayout::Sandwich;
        let parallel = c.block == earnest_models::checkpoint::BlockLayout::Parallel;
        let head_norm = |p| if c.qk_norm { self.vector(at(p), c.head_dim).map(Some) } else { Ok(None) };
        // Only RMS norms exist in the sandwich layout, so the offset's name is never asked for.
        let post = |p| if sandwich { self.norm(at(p), at(p)).map(Some) } else { Ok(None) };
        Ok(LayerWeights {
            attention_norm: self.norm(at(P::AttentionNorm), at(P::AttentionNormBias))?,
            qkv: self.matrix(&[(at(P::Query), q), (at(P::Key), kv), (at(P::Value), kv)], c.hidden_size)?,
            qkv_bias: self.bias(c.qkv_bias, &[(at(P::QueryBias), q), (at(P::KeyBias), kv), (at(P::ValueBias), kv)])?,
            query_norm: head_norm(P::QueryNorm)?,
            key_norm: head_norm(P::KeyNorm)?,
            output: self.matrix(&[(at(P::Output), c.hidden_size)], q)?,
            output_bias: self.bias(c.output_bias, &[(at(P::OutputBias), c.hidden_size)])?,
            post_attention_norm: post(P::PostAttentionNorm)?,
            mlp_norm: if parallel { None } else { Some(self.norm(at(P::MlpNorm), at(P::MlpNormBias))?) },
            feed_forward: self.feed_forward(i)?,
            post_mlp_norm: post(P::PostMlpNorm)?,
        })
    }

    fn feed_forward(&self, i: usize) -> Result<FeedForward, LoadError> {
        let c = self.c;
        let at = |p| Parameter::Layer(i, p);
        let (hidden, inner) = (c.hidden_size, c.intermediate_size);
        if let Some(e) = c.experts {
            let expert = |n| -> Result<MlpWeights, LoadError> {
                Ok(MlpWeights {
                    gate_up: self.matrix(&[(at(P::ExpertGate(n)), inner), (at(P::ExpertUp(n)), inner)], hidden)?,
                    gate_up_bias: None,
                    down: self.matrix(&[(at(P::ExpertDown(n)), hidden)], inner)?,
                    down_bias: None,
                })
            };
            return Ok(FeedForward::Experts {
                router: self.matrix(&[(at(P::Router), e.count)], hidden)?,
                experts: (0..e.count).map(expert).collect::<Result<_, _>>()?,
            });
        }
        let (matrices, biases) = if c.gated {
            (vec![(at(P::Gate), inner), (at(P::Up), inner)], vec![(at(P::GateBias), inner), (at(P::UpBias), inner)])
        } else {
            (vec![(at(P::Up), inner)], vec![(at(P::UpBias), inner)])
        };
        Ok(FeedForward::Dense(MlpWeights {
            gate_up: self.matrix(&matrices, hidden)?,
            gate_up_bias: self.bias(c.mlp_bias, &biases)?,
            down: self.matrix(&[(at(P::Down), hidden)], inner)?,
            down_bias: self.bias(c.mlp_bias, &[(at(P::DownBias), hidden)])?,
        }))
    }
}
