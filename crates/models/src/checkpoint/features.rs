//! Features of decoders that only some engines compute.
use super::{
    Activation, BlockLayout, DecoderConfig, ExpertPlacement, Experts, KeysValues, LayerConfig, Norm, QkNorm, Routing,
};

impl DecoderConfig {
    /// Returns the first feature of this decoder beyond those of the families of 2024 and before, none if there is none. The CPU engine
    /// computes all of them; what computes fewer asks here, so that it refuses a decoder instead of computing another one.
    pub fn recent_feature(&self) -> Option<&'static str> {
        // Every field, so that a new one cannot be forgotten.
        let DecoderConfig {
            architecture: _,
            vocab_size: _,
            hidden_size: _,
            intermediate_size: _,
            num_heads: _,
            num_kv_heads: _,
            head_dim: _,
            max_positions: _,
            norm,
            block,
            activation,
            gated: _,
            experts,
            embedding_scale: _,
            residual_scale,
            logit_scale,
            tied_embeddings: _,
            head_bias: _,
            qkv_bias: _,
            output_bias: _,
            mlp_bias: _,
            qk_norm,
            value_norm,
            sinks,
            query_growth,
            latent,
            linear,
            gated_attention,
            layer_inputs,
            streams,
            layer_scalar,
            placeholders,
            // Done when tensors are read.
            rotary_pairs: _,
            attention_scale: _,
            attention_softcap: _,
            final_softcap: _,
            layers,
            // Engines have the angles from one place.
            ropes: _,
        } = self;
        [
            (matches!(norm, Norm::Layer { bias: false, .. }), "a layer norm without bias"),
            (*block == BlockLayout::PostNorm, "norms after the blocks only"),
            (matches!(activation, Activation::ClampedSwiglu { .. }), "a clamped SwiGLU"),
            (*residual_scale != 1.0, "a factor on residual branches"),
            (*logit_scale != 1.0, "a factor on the logits"),
            (!matches!(qk_norm, QkNorm::None | QkNorm::Head), "the norm of queries and keys"),
            (*value_norm, "a norm of values"),
            (*sinks, "attention sinks"),
            (query_growth.is_some(), "queries that grow with their position"),
            (latent.is_some(), "latent attention"),
            (linear.is_some(), "linear attention"),
            (*gated_attention, "gated attention"),
            (layer_inputs.is_some(), "inputs of every layer"),
            (streams.is_some(), "several residual streams"),
            (placeholders.is_some(), "ids of other inputs than text"),
            (*layer_scalar, "factors on the output of layers"),
        ]
        .into_iter()
        .find_map(|(is, name)| is.then_some(name))
        .or_else(|| experts.as_ref().and_then(|experts| self.recent_experts(experts)))
        .or_else(|| layers.iter().find_map(|layer| self.recent_layer(layer)))
    }

    /// The first such feature of a layer.
    fn recent_layer(&self, layer: &LayerConfig) -> Option<&'static str> {
        let LayerConfig {
            window: _,
            chunk,
            position: _,
            num_kv_heads: kv_heads,
            head_dim: width,
            keys_values,
            linear: _,
            query_growth: _,
            intermediate_size: inner,
            experts: mixture,
            gate_cutoff,
        } = layer;
        let dense = if *mixture { 0 } else { self.intermediate_size };
        [
            (chunk.is_some(), "chunked attention"),
            (*kv_heads != self.num_kv_heads || *width != self.head_dim, "heads that differ between layers"),
            (*keys_values != KeysValues::Projected, "keys or values that are not projected"),
            (*mixture != self.experts.is_some(), "layers with and without experts"),
            (*mixture && *inner > 0, "a shared expert"),
            (*inner != dense, "feed-forward widths that differ between layers"),
            (gate_cutoff.is_some(), "a sparse gate"),
        ]
        .into_iter()
        .find_map(|(is, name)| is.then_some(name))
    }

    /// The first such feature of the experts.
    fn recent_experts(&self, experts: &Experts) -> Option<&'static str> {
        let Experts {
            count: _,
            per_token: _,
            intermediate_size: inner,
            routing,
            router_bias,
            bias,
            placement,
            shared_gate,
        } = experts;
        [
            (*routing != Routing::Softmax { normalised: true }, "the routing of its experts"),
            (*router_bias || *bias, "biases of experts"),
            (*placement != ExpertPlacement::Sum, "the placement of its experts"),
            (*shared_gate, "a gate on the shared expert"),
            (*inner != self.intermediate_size, "the width of its experts"),
        ]
        .into_iter()
        .find_map(|(is, name)| is.then_some(name))
    }
}
