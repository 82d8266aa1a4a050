//! Features of a decoder that the kernels do not compute.

use super::kernels::{MOST_CHOSEN, MOST_EXPERTS};
use earnest_models::checkpoint::{DecoderConfig, ExpertPlacement, Experts, KeysValues, LayerConfig, Position, Routing};

/// Groups of experts whose sums `route` has room for.
const MOST_GROUPS: usize = 32;

/// Returns the first feature of a decoder that is refused, none if all are computed.
pub(crate) fn refused_feature(c: &DecoderConfig) -> Option<&'static str> {
    // Every field, so that a new one cannot be forgotten.
    let DecoderConfig {
        architecture: _,
        vocab_size: _,
        hidden_size: _,
        intermediate_size: _,
        num_heads: _,
        num_kv_heads,
        head_dim,
        max_positions: _,
        norm: _,
        block: _,
        activation: _,
        gated,
        experts,
        embedding_scale: _,
        residual_scale: _,
        logit_scale: _,
        tied_embeddings: _,
        head_bias: _,
        qkv_bias: _,
        output_bias: _,
        mlp_bias: _,
        qk_norm: _,
        value_norm,
        sinks: _,
        query_growth: _,
        latent,
        linear,
        gated_attention,
        layer_inputs,
        streams,
        layer_scalar,
        placeholders,
        rotary_pairs: _,
        attention_scale: _,
        attention_softcap: _,
        final_softcap: _,
        layers,
        ropes: _,
    } = c;
    let layer = |l: &LayerConfig| {
        let LayerConfig {
            window: _,
            chunk: _,
            position,
            num_kv_heads: kv_heads,
            head_dim: width,
            keys_values,
            linear: _,
            query_growth: _,
            intermediate_size: _,
            experts: _,
            gate_cutoff,
        } = l;
        first(&[
            (kv_heads != num_kv_heads || width != head_dim, "heads that differ between layers"),
            (*keys_values != KeysValues::Projected, "keys or values that are not projected"),
            (gate_cutoff.is_some(), "a sparse gate"),
            (*position == Position::AlibiReversed, "ALiBi with the reversed sign"),
        ])
    };
    let mixture = |e: &Experts| {
        let Experts {
            count,
            per_token,
            intermediate_size: _,
            routing,
            router_bias: _,
            bias: _,
            placement,
            shared_gate,
        } = e;
        first(&[
            (*shared_gate, "a gate on the shared expert"),
            (*placement != ExpertPlacement::Sum, "experts beside the dense block"),
            (!gated, "experts without a gate"),
            (*count > MOST_EXPERTS || *per_token > MOST_CHOSEN, "more than 1024 experts, or 32 of a token"),
            (
                matches!(routing, Routing::Sigmoid { groups, .. } if *groups > MOST_GROUPS),
                "more than 32 groups of experts",
            ),
        ])
    };
    first(&[
        (linear.is_some(), "linear attention"),
        (latent.is_some(), "latent attention"),
        (streams.is_some(), "several residual streams"),
        (layer_inputs.is_some(), "inputs of every layer"),
        (*gated_attention, "gated attention"),
        (*value_norm, "a norm of values"),
        (*layer_scalar, "factors on the output of layers"),
        (placeholders.is_some(), "ids of other inputs than text"),
    ])
    .or_else(|| experts.as_ref().and_then(mixture))
    .or_else(|| layers.iter().find_map(layer))
}

fn first(features: &[(bool, &'static str)]) -> Option<&'static str> {
    features.iter().find_map(|&(is, name)| is.then_some(name))
}
