//! Parameters of a decoder configuration and their shapes.
use super::{
    BlockLayout, DecoderConfig, ExpertPlacement, KeysValues, LatentAttention, LayerConfig, LayerParameter, Norm,
    Parameter, QkNorm, Routing,
};

/// Receives a parameter of a layer, its rows and its columns.
type Add<'a> = &'a mut dyn FnMut(LayerParameter, usize, Option<usize>);

impl DecoderConfig {
    /// Returns every parameter with its shape: embedding, layers, final norm, head.
    pub fn parameters(&self) -> Vec<(Parameter, Vec<usize>)> {
        let hidden = self.hidden_size;
        let mut all = vec![(Parameter::Embedding, self.vocab_size, Some(hidden))];
        if let Some(inputs) = self.layer_inputs {
            let width = inputs.width * self.layers.len();
            all.push((Parameter::LayerInputEmbedding, inputs.vocab_size, Some(width)));
            all.push((Parameter::LayerInputProjection, width, Some(hidden)));
            all.push((Parameter::LayerInputNorm, inputs.width, None));
        }
        for further in 1..self.streams.map_or(1, |s| s.count) {
            all.push((Parameter::StreamProjection(further - 1), hidden, Some(hidden)));
            all.push((Parameter::StreamUnembedding(further - 1), hidden, Some(hidden)));
        }
        for (i, layer) in self.layers.iter().enumerate() {
            self.layer_parameters(layer, &mut |p, rows, columns| all.push((Parameter::Layer(i, p), rows, columns)));
        }
        all.push((Parameter::FinalNorm, hidden, None));
        if self.has_norm_bias() {
            all.push((Parameter::FinalNormBias, hidden, None));
        }
        if !self.tied_embeddings {
            all.push((Parameter::Head, self.vocab_size, Some(hidden)));
        }
        if self.head_bias {
            all.push((Parameter::HeadBias, self.vocab_size, None));
        }
        let shape = |rows: usize, columns: Option<usize>| std::iter::once(rows).chain(columns).collect();
        all.into_iter().map(|(p, rows, columns)| (p, shape(rows, columns))).collect()
    }

    /// Returns the number of elements of all parameters.
    pub fn parameter_count(&self) -> u64 {
        self.parameters().iter().map(|(_, shape)| shape.iter().map(|&n| n as u64).product::<u64>()).sum()
    }

    /// True if norms have a bias.
    pub fn has_norm_bias(&self) -> bool {
        matches!(self.norm, Norm::Layer { bias: true, .. })
    }

    fn layer_parameters(&self, layer: &LayerConfig, add: Add<'_>) {
        use LayerParameter::*;
        let hidden = self.hidden_size;
        if self.block != BlockLayout::PostNorm {
            add(AttentionNorm, hidden, None);
            if self.has_norm_bias() {
                add(AttentionNormBias, hidden, None);
            }
        }
        match self.latent {
            Some(latent) => self.latent_parameters(latent, add),
            None if layer.linear => self.linear_parameters(add),
            None => self.attention_parameters(layer, add),
        }
        if self.output_bias && !layer.linear {
            add(OutputBias, hidden, None);
        }
        if matches!(self.block, BlockLayout::Sandwich | BlockLayout::PostNorm) {
            add(PostAttentionNorm, hidden, None);
            add(PostMlpNorm, hidden, None);
        }
        if matches!(self.block, BlockLayout::Sandwich | BlockLayout::PreNorm) {
            add(MlpNorm, hidden, None);
            if self.has_norm_bias() {
                add(MlpNormBias, hidden, None);
            }
        }
        if layer.experts {
            self.expert_parameters(add);
        }
        self.dense_parameters(layer.intermediate_size, add);
        if let Some(inputs) = self.layer_inputs {
            add(LayerInputGate, inputs.width, Some(hidden));
            add(LayerInputUp, hidden, Some(inputs.width));
            add(PostLayerInputNorm, hidden, None);
        }
        if self.layer_scalar {
            add(LayerScalar, 1, None);
        }
        if let Some(streams) = self.streams {
            add(BranchDown, streams.branch_rank, Some(hidden));
            add(BranchUp, hidden, Some(streams.branch_rank));
            add(PostBranchNorm, hidden, None);
            add(StreamRouter, streams.count, Some(hidden));
            add(StreamRouterNorm, hidden, None);
            add(StreamPrediction, streams.count * streams.count, Some(streams.count));
            add(StreamCorrection, streams.count, Some(streams.count));
            if streams.scaled {
                add(StreamScale, hidden, None);
            }
        }
    }

    fn attention_parameters(&self, layer: &LayerConfig, add: Add<'_>) {
        use LayerParameter::*;
        let hidden = self.hidden_size;
        let (queries, keys) = (self.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim);
        let projected = match layer.keys_values {
            KeysValues::Projected => 3,
            KeysValues::OneProjection => 2,
            KeysValues::OfLayer(_) => 1,
        };
        let all = [(Query, QueryBias, queries), (Key, KeyBias, keys), (Value, ValueBias, keys)];
        for (weight, bias, rows) in all.into_iter().take(projected) {
            let rows = if weight == Query && self.gated_attention { 2 * rows } else { rows };
            add(weight, rows, Some(hidden));
            if self.qkv_bias {
                add(bias, rows, None);
            }
        }
        let own_keys = projected > 1;
        let norms = match self.qk_norm {
            QkNorm::None | QkNorm::PlainAfterRotary => None,
            QkNorm::Head | QkNorm::HeadAfterRotary => Some((layer.head_dim, layer.head_dim)),
            QkNorm::Width => Some((queries, keys)),
        };
        if let Some((query, key)) = norms {
            add(QueryNorm, query, None);
            if own_keys {
                add(KeyNorm, key, None);
            }
        }
        if self.sinks {
            add(Sinks, self.num_heads, None);
        }
        add(Output, hidden, Some(queries));
    }

    fn linear_parameters(&self, add: Add<'_>) {
        use LayerParameter::*;
        let Some(linear) = self.linear else { return };
        let hidden = self.hidden_size;
        add(LinearQkv, linear.channels(), Some(hidden));
        add(LinearGate, linear.values(), Some(hidden));
        add(LinearStrength, linear.value_heads, Some(hidden));
        add(LinearDecay, linear.value_heads, Some(hidden));
        add(LinearConvolution, linear.channels(), Some(linear.kernel));
        add(LinearDecayLog, linear.value_heads, None);
        add(LinearDecayBias, linear.value_heads, None);
        add(LinearNorm, linear.value_dims, None);
        add(Output, hidden, Some(linear.values()));
    }

    fn latent_parameters(&self, latent: LatentAttention, add: Add<'_>) {
        use LayerParameter::*;
        let (hidden, heads) = (self.hidden_size, self.num_heads);
        let queries = heads * (latent.plain_dims + latent.rotary_dims);
        match latent.query_rank {
            Some(rank) => {
                add(QueryDown, rank, Some(hidden));
                add(QueryDownNorm, rank, None);
                add(Query, queries, Some(rank));
            }
            None => add(Query, queries, Some(hidden)),
        }
        add(KvDown, latent.kv_rank + latent.rotary_dims, Some(hidden));
        add(KvDownNorm, latent.kv_rank, None);
        add(KvUp, heads * (latent.plain_dims + latent.value_dims), Some(latent.kv_rank));
        add(Output, hidden, Some(heads * latent.value_dims));
    }

    fn expert_parameters(&self, add: Add<'_>) {
        use LayerParameter::*;
        let Some(experts) = self.experts else { return };
        let (hidden, inner) = (self.hidden_size, experts.intermediate_size);
        add(Router, experts.count, Some(hidden));
        if experts.router_bias {
            add(RouterBias, experts.count, None);
        }
        if experts.shared_gate {
            add(SharedGate, 1, Some(hidden));
        }
        if matches!(experts.routing, Routing::Sigmoid { .. }) {
            add(ChoiceBias, experts.count, None);
        }
        if experts.placement == ExpertPlacement::Beside {
            add(RouterScale, hidden, None);
            add(ExpertScale, experts.count, None);
            add(ExpertsNorm, hidden, None);
            add(PostExpertsNorm, hidden, None);
            add(PostDenseNorm, hidden, None);
        }
        for e in 0..experts.count {
            add(ExpertGate(e), inner, Some(hidden));
            add(ExpertUp(e), inner, Some(hidden));
            add(ExpertDown(e), hidden, Some(inner));
            if experts.bias {
                add(ExpertGateBias(e), inner, None);
                add(ExpertUpBias(e), inner, None);
                add(ExpertDownBias(e), hidden, None);
            }
        }
    }

    fn dense_parameters(&self, inner: usize, add: Add<'_>) {
        use LayerParameter::*;
        let hidden = self.hidden_size;
        if inner == 0 {
            return;
        }
        if self.gated {
            add(Gate, inner, Some(hidden));
        }
        add(Up, inner, Some(hidden));
        add(Down, hidden, Some(inner));
        if self.mlp_bias {
            if self.gated {
                add(GateBias, inner, None);
            }
            add(UpBias, inner, None);
            add(DownBias, hidden, None);
        }
    }
}
