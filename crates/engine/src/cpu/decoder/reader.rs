//! Reading of a decoder's parameters from its checkpoint.

use super::weights::{
    BesideWeights, ExpertWeights, FeedForward, LatentWeights, LayerInputTable, LayerInputWeights, LayerWeights,
    LinearWeights, LoadError, MlpWeights, NormWeights, Projection, StreamWeights,
};
use crate::cpu::kernels::{PackedMatrix, Part, TileUnit};
use earnest_models::checkpoint::{
    BlockLayout, BlockType, Checkpoint, DecoderConfig, ExpertPlacement, KeysValues, LatentAttention, LayerConfig,
    LayerParameter as P, Parameter, QkNorm, Routing, Tensor, Values,
};

/// Reads parameters and packs them.
pub(super) struct Reader<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    /// Unit of products in bf16, if they are computed so.
    pub(super) tiles: Option<TileUnit>,
}

impl Reader<'_> {
    fn c(&self) -> &DecoderConfig {
        &self.checkpoint.config
    }

    fn tensor(&self, parameter: Parameter, shape: &[usize]) -> Result<Tensor, LoadError> {
        let tensor = self.checkpoint.tensor(parameter, shape)?;
        let count = match &tensor.values {
            Values::F32(v) => v.iter().filter(|x| !x.is_finite()).count(),
            // An exponent of all ones is an infinity or not a number.
            Values::Bf16(v) => v.iter().filter(|x| **x & 0x7F80 == 0x7F80).count(),
            Values::F16(v) => v.iter().filter(|x| **x & 0x7C00 == 0x7C00).count(),
        };
        if count > 0 {
            return Err(self.not_finite(parameter, count));
        }
        Ok(tensor)
    }

    fn not_finite(&self, parameter: Parameter, count: usize) -> LoadError {
        let place = self.checkpoint.source_of(parameter);
        LoadError::NotFinite { parameter: parameter.to_string(), place, count }
    }

    /// Matrices of `width` columns, given as (parameter, rows), on top of each other.
    pub(super) fn matrix(&self, parts: &[(Parameter, usize)], width: usize) -> Result<PackedMatrix, LoadError> {
        let bytes = parts.iter().all(|&(p, _)| self.checkpoint.computes_int8(p, width));
        let tiles = self.tiles.filter(|_| parts.iter().all(|&(p, _)| self.checkpoint.computes_bf16(p)));
        let blocks = parts.iter().map(|&(p, n)| self.checkpoint.block_type(p, &[n, width])).collect::<Option<Vec<_>>>();
        if let Some(kinds) = blocks.filter(|_| !bytes && tiles.is_none()) {
            let integers = kinds.iter().all(|kind| kind.has_integers());
            let rounds = integers && parts.iter().all(|&(p, _)| self.checkpoint.rounds_activations(p));
            let parts = parts.iter().zip(kinds).map(|(&(p, n), kind)| self.blocks(p, kind, n, width));
            return Ok(PackedMatrix::stack_packed(parts.collect::<Result<_, _>>()?, rounds));
        }
        let parts = parts.iter().map(|&(p, n)| self.tensor(p, &[n, width])).collect::<Result<_, _>>()?;
        Ok(match tiles {
            Some(unit) => PackedMatrix::stack_bf16(parts, unit),
            None if bytes => PackedMatrix::stack_int8(parts),
            None => PackedMatrix::stack(parts),
        })
    }

    /// A matrix of quantised blocks.
    fn blocks(&self, parameter: Parameter, kind: BlockType, n: usize, width: usize) -> Result<Part, LoadError> {
        let blocks = self.checkpoint.blocks(parameter, &[n, width])?;
        let groups = match kind {
            BlockType::GroupedRow(_) => self.checkpoint.groups_of_inputs(parameter, &[n, width])?,
            _ => vec![],
        };
        Part::pack(kind, n, width, &blocks, groups).map_err(|count| self.not_finite(parameter, count))
    }

    pub(super) fn vector(&self, parameter: Parameter, length: usize) -> Result<Vec<f32>, LoadError> {
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

    /// A norm of the residual stream.
    pub(super) fn norm(&self, scale: Parameter, offset: Parameter) -> Result<NormWeights, LoadError> {
        let n = self.c().hidden_size;
        let offset = if self.c().has_norm_bias() { self.vector(offset, n)? } else { vec![] };
        Ok(NormWeights { scale: self.vector(scale, n)?, offset })
    }

    /// A norm that exists in decoders with RMS norms only.
    fn rms(&self, scale: Parameter) -> Result<NormWeights, LoadError> {
        Ok(NormWeights { scale: self.vector(scale, self.c().hidden_size)?, offset: vec![] })
    }

    /// The second embedding table.
    pub(super) fn layer_inputs(&self) -> Result<Option<LayerInputTable>, LoadError> {
        let c = self.c();
        let Some(inputs) = c.layer_inputs else { return Ok(None) };
        let width = c.layers.len() * inputs.width;
        Ok(Some(LayerInputTable {
            table: self.matrix(&[(Parameter::LayerInputEmbedding, inputs.vocab_size)], width)?,
            projection: self.matrix(&[(Parameter::LayerInputProjection, width)], c.hidden_size)?,
            norm: self.vector(Parameter::LayerInputNorm, inputs.width)?,
        }))
    }

    /// The projections of further residual streams, at the beginning and at the end.
    pub(super) fn stream_projections(&self) -> Result<Vec<(PackedMatrix, PackedMatrix)>, LoadError> {
        let (further, n) = (self.c().streams.map_or(0, |s| s.count - 1), self.c().hidden_size);
        let square = |p| self.matrix(&[(p, n)], n);
        (0..further)
            .map(|i| Ok((square(Parameter::StreamProjection(i))?, square(Parameter::StreamUnembedding(i))?)))
            .collect()
    }

    pub(super) fn layer(&self, i: usize) -> Result<LayerWeights, LoadError> {
        let c = self.c();
        let layer = &c.layers[i];
        let at = |p| Parameter::Layer(i, p);
        let after = matches!(c.block, BlockLayout::Sandwich | BlockLayout::PostNorm);
        let before_mlp = matches!(c.block, BlockLayout::Sandwich | BlockLayout::PreNorm);
        let post = |p| if after { self.rms(at(p)).map(Some) } else { Ok(None) };
        let norm = |wanted: bool, scale, offset| {
            if wanted { self.norm(at(scale), at(offset)).map(Some) } else { Ok(None) }
        };
        let (projection, output_width) = match c.latent {
            Some(latent) => (self.latent(i, latent)?, c.num_heads * latent.value_dims),
            None if layer.linear => self.linear(i)?,
            None => (self.direct(i, layer)?, c.num_heads * layer.head_dim),
        };
        let (query_norm, key_norm) = self.qk_norms(i, layer)?;
        Ok(LayerWeights {
            attention_norm: norm(c.block != BlockLayout::PostNorm, P::AttentionNorm, P::AttentionNormBias)?,
            projection,
            query_norm,
            key_norm,
            sinks: if c.sinks { self.vector(at(P::Sinks), c.num_heads)? } else { vec![] },
            output: self.matrix(&[(at(P::Output), c.hidden_size)], output_width)?,
            output_bias: self.bias(c.output_bias && !layer.linear, &[(at(P::OutputBias), c.hidden_size)])?,
            post_attention_norm: post(P::PostAttentionNorm)?,
            mlp_norm: norm(before_mlp, P::MlpNorm, P::MlpNormBias)?,
            feed_forward: FeedForward { dense: self.dense(i, layer)?, experts: self.experts(i, layer)? },
            post_mlp_norm: post(P::PostMlpNorm)?,
            layer_input: self.layer_input(i)?,
            scalar: match c.layer_scalar {
                true => self.vector(at(P::LayerScalar), 1)?.first().copied(),
                false => None,
            },
            streams: self.streams(i)?,
        })
    }

    fn direct(&self, i: usize, layer: &LayerConfig) -> Result<Projection, LoadError> {
        let c = self.c();
        let at = |p| Parameter::Layer(i, p);
        let (q, kv) = (c.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim);
        let q = if c.gated_attention { 2 * q } else { q };
        let projected = match layer.keys_values {
            KeysValues::Projected => 3,
            KeysValues::OneProjection => 2,
            KeysValues::OfLayer(_) => 1,
        };
        let matrices = [(at(P::Query), q), (at(P::Key), kv), (at(P::Value), kv)];
        let biases = [(at(P::QueryBias), q), (at(P::KeyBias), kv), (at(P::ValueBias), kv)];
        Ok(Projection::Direct {
            qkv: self.matrix(&matrices[..projected], c.hidden_size)?,
            bias: self.bias(c.qkv_bias, &biases[..projected])?,
        })
    }

    /// Linear attention, and the width of its output.
    fn linear(&self, i: usize) -> Result<(Projection, usize), LoadError> {
        let hidden = self.c().hidden_size;
        let at = |p| Parameter::Layer(i, p);
        let linear = self.c().linear.expect("a linear layer's config has its sizes");
        let (channels, values, heads) = (linear.channels(), linear.values(), linear.value_heads);
        // A matrix by its shape; here it is read row by row.
        let convolution = match self.tensor(at(P::LinearConvolution), &[channels, linear.kernel])?.values {
            Values::F32(v) => v,
            Values::Bf16(v) => v.into_iter().map(|x| half::bf16::from_bits(x).to_f32()).collect(),
            Values::F16(v) => v.into_iter().map(|x| half::f16::from_bits(x).to_f32()).collect(),
        };
        let logarithm = self.vector(at(P::LinearDecayLog), heads)?;
        let weights = LinearWeights {
            input: self.matrix(&[(at(P::LinearQkv), channels), (at(P::LinearGate), values)], hidden)?,
            rates: self.matrix(&[(at(P::LinearStrength), heads), (at(P::LinearDecay), heads)], hidden)?,
            convolution,
            decay: logarithm.into_iter().map(|log| -libm::expf(log)).collect(),
            decay_bias: self.vector(at(P::LinearDecayBias), heads)?,
            norm: self.vector(at(P::LinearNorm), linear.value_dims)?,
        };
        Ok((Projection::Linear(Box::new(weights)), values))
    }

    fn latent(&self, i: usize, latent: LatentAttention) -> Result<Projection, LoadError> {
        let c = self.c();
        let at = |p| Parameter::Layer(i, p);
        let LatentAttention { query_rank, kv_rank, plain_dims, rotary_dims, value_dims } = latent;
        let query_down = match query_rank {
            Some(rank) => Some((
                self.matrix(&[(at(P::QueryDown), rank)], c.hidden_size)?,
                self.vector(at(P::QueryDownNorm), rank)?,
            )),
            None => None,
        };
        let queries = c.num_heads * (plain_dims + rotary_dims);
        let keys_values = c.num_heads * (plain_dims + value_dims);
        Ok(Projection::Latent(Box::new(LatentWeights {
            query_down,
            query: self.matrix(&[(at(P::Query), queries)], query_rank.unwrap_or(c.hidden_size))?,
            kv_down: self.matrix(&[(at(P::KvDown), kv_rank + rotary_dims)], c.hidden_size)?,
            kv_norm: self.vector(at(P::KvDownNorm), kv_rank)?,
            kv_up: self.matrix(&[(at(P::KvUp), keys_values)], kv_rank)?,
        })))
    }

    #[expect(clippy::type_complexity, reason = "the norms of queries and of keys")]
    fn qk_norms(&self, i: usize, layer: &LayerConfig) -> Result<(Option<Vec<f32>>, Option<Vec<f32>>), LoadError> {
        let c = self.c();
        let (query, key) = match c.qk_norm {
            _ if layer.linear => return Ok((None, None)),
            QkNorm::None | QkNorm::PlainAfterRotary => return Ok((None, None)),
            QkNorm::Head | QkNorm::HeadAfterRotary => (layer.head_dim, layer.head_dim),
            QkNorm::Width => (c.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim),
        };
        let own_keys = !matches!(layer.keys_values, KeysValues::OfLayer(_));
        let at = |p| Parameter::Layer(i, p);
        let key = if own_keys { Some(self.vector(at(P::KeyNorm), key)?) } else { None };
        Ok((Some(self.vector(at(P::QueryNorm), query)?), key))
    }

    fn dense(&self, i: usize, layer: &LayerConfig) -> Result<Option<MlpWeights>, LoadError> {
        let c = self.c();
        let at = |p| Parameter::Layer(i, p);
        let (hidden, inner) = (c.hidden_size, layer.intermediate_size);
        if inner == 0 {
            return Ok(None);
        }
        let (matrices, biases) = if c.gated {
            (vec![(at(P::Gate), inner), (at(P::Up), inner)], vec![(at(P::GateBias), inner), (at(P::UpBias), inner)])
        } else {
            (vec![(at(P::Up), inner)], vec![(at(P::UpBias), inner)])
        };
        Ok(Some(MlpWeights {
            gate_up: self.matrix(&matrices, hidden)?,
            gate_up_bias: self.bias(c.mlp_bias, &biases)?,
            down: self.matrix(&[(at(P::Down), hidden)], inner)?,
            down_bias: self.bias(c.mlp_bias, &[(at(P::DownBias), hidden)])?,
        }))
    }

    fn experts(&self, i: usize, layer: &LayerConfig) -> Result<Option<ExpertWeights>, LoadError> {
        let c = self.c();
        let at = |p| Parameter::Layer(i, p);
        let Some(e) = c.experts.filter(|_| layer.experts) else { return Ok(None) };
        let (hidden, inner) = (c.hidden_size, e.intermediate_size);
        let expert = |n| -> Result<MlpWeights, LoadError> {
            let biases = [(at(P::ExpertGateBias(n)), inner), (at(P::ExpertUpBias(n)), inner)];
            Ok(MlpWeights {
                gate_up: self.matrix(&[(at(P::ExpertGate(n)), inner), (at(P::ExpertUp(n)), inner)], hidden)?,
                gate_up_bias: self.bias(e.bias, &biases)?,
                down: self.matrix(&[(at(P::ExpertDown(n)), hidden)], inner)?,
                down_bias: self.bias(e.bias, &[(at(P::ExpertDownBias(n)), hidden)])?,
            })
        };
        let beside = match e.placement {
            ExpertPlacement::Sum => None,
            ExpertPlacement::Beside => {
                let root = 1.0 / (hidden as f32).sqrt();
                let scale = self.vector(at(P::RouterScale), hidden)?;
                Some(BesideWeights {
                    router_scale: scale.into_iter().map(|s| s * root).collect(),
                    expert_scale: self.vector(at(P::ExpertScale), e.count)?,
                    norm: self.rms(at(P::ExpertsNorm))?,
                    post_norm: self.rms(at(P::PostExpertsNorm))?,
                    post_dense_norm: self.rms(at(P::PostDenseNorm))?,
                })
            }
        };
        Ok(Some(ExpertWeights {
            router: self.matrix(&[(at(P::Router), e.count)], hidden)?,
            router_bias: self.bias(e.router_bias, &[(at(P::RouterBias), e.count)])?,
            shared_gate: match e.shared_gate {
                true => Some(self.matrix(&[(at(P::SharedGate), 1)], hidden)?),
                false => None,
            },
            choice_bias: match e.routing {
                Routing::Sigmoid { .. } => self.vector(at(P::ChoiceBias), e.count)?,
                _ => vec![],
            },
            experts: (0..e.count).map(expert).collect::<Result<_, _>>()?,
            beside,
        }))
    }

    fn layer_input(&self, i: usize) -> Result<Option<LayerInputWeights>, LoadError> {
        let hidden = self.c().hidden_size;
        let at = |p| Parameter::Layer(i, p);
        let Some(inputs) = self.c().layer_inputs else { return Ok(None) };
        Ok(Some(LayerInputWeights {
            gate: self.matrix(&[(at(P::LayerInputGate), inputs.width)], hidden)?,
            up: self.matrix(&[(at(P::LayerInputUp), hidden)], inputs.width)?,
            norm: self.rms(at(P::PostLayerInputNorm))?,
        }))
    }

    fn streams(&self, i: usize) -> Result<Option<StreamWeights>, LoadError> {
        let hidden = self.c().hidden_size;
        let at = |p| Parameter::Layer(i, p);
        let Some(s) = self.c().streams else { return Ok(None) };
        let mut router_norm = self.rms(at(P::StreamRouterNorm))?;
        router_norm.scale.iter_mut().for_each(|w| *w /= hidden as f32);
        Ok(Some(StreamWeights {
            branch_down: self.matrix(&[(at(P::BranchDown), s.branch_rank)], hidden)?,
            branch_up: self.matrix(&[(at(P::BranchUp), hidden)], s.branch_rank)?,
            branch_norm: self.rms(at(P::PostBranchNorm))?,
            router: self.matrix(&[(at(P::StreamRouter), s.count)], hidden)?,
            router_norm,
            prediction: self.matrix(&[(at(P::StreamPrediction), s.count * s.count)], s.count)?,
            correction: self.matrix(&[(at(P::StreamCorrection), s.count)], s.count)?,
            scale: if s.scaled { self.vector(at(P::StreamScale), hidden)? } else { vec![] },
        }))
    }
}
