//! Parameters of a decoder configuration and their shapes.
use super::{BlockLayout, DecoderConfig, LayerParameter, Norm, Parameter};

impl DecoderConfig {
    /// Returns every parameter with its shape: embedding, layers, final norm, head.
    pub fn parameters(&self) -> Vec<(Parameter, Vec<usize>)> {
        let mut all = vec![(Parameter::Embedding, self.vocab_size, Some(self.hidden_size))];
        for layer in 0..self.layers.len() {
            self.layer_parameters(&mut |p, rows, columns| all.push((Parameter::Layer(layer, p), rows, columns)));
        }
        all.push((Parameter::FinalNorm, self.hidden_size, None));
        if self.has_norm_bias() {
            all.push((Parameter::FinalNormBias, self.hidden_size, None));
        }
        if !self.tied_embeddings {
            all.push((Parameter::Head, self.vocab_size, Some(self.hidden_size)));
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

    fn has_norm_bias(&self) -> bool {
        matches!(self.norm, Norm::Layer { .. })
    }

    fn layer_parameters(&self, add: &mut dyn FnMut(LayerParameter, usize, Option<usize>)) {
        use LayerParameter::*;
        let hidden = self.hidden_size;
        let (queries, keys) = (self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim);
        add(AttentionNorm, hidden, None);
        if self.has_norm_bias() {
            add(AttentionNormBias, hidden, None);
        }
        for (weight, bias, rows) in [(Query, QueryBias, queries), (Key, KeyBias, keys), (Value, ValueBias, keys)] {
            add(weight, rows, Some(hidden));
            if self.qkv_bias {
                add(bias, rows, None);
            }
        }
        if self.qk_norm {
            add(QueryNorm, self.head_dim, None);
            add(KeyNorm, self.head_dim, None);
        }
        add(Output, hidden, Some(queries));
        if self.output_bias {
            add(OutputBias, hidden, None);
        }
        if self.block == BlockLayout::Sandwich {
            add(PostAttentionNorm, hidden, None);
            add(PostMlpNorm, hidden, None);
        }
        if self.block != BlockLayout::Parallel {
            add(MlpNorm, hidden, None);
            if self.has_norm_bias() {
                add(MlpNormBias, hidden, None);
            }
        }
        let inner = self.intermediate_size;
        if let Some(experts) = self.experts {
            add(Router, experts.count, Some(hidden));
            for e in 0..experts.count {
                add(ExpertGate(e), inner, Some(hidden));
                add(ExpertUp(e), inner, Some(hidden));
                add(ExpertDown(e), hidden, Some(inner));
            }
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
