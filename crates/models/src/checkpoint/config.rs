//! Decoder configuration, the same for every architecture and both file formats.
//!
//! The parsers ([`super::hf_config`], [`super::gguf_config`]) translate a `config.json` or GGUF metadata into
//! [`DecoderConfig`]; the engine reads nothing else. A field of the source that would change the maths and is not
//! translated here is an error there, never ignored.

/// Configuration of a decoder-only transformer.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// The source's own name, e.g. `LlamaForCausalLM` or `gguf:gemma3`; for messages and the manifest.
    pub architecture: String,
    /// Rows of the embedding table and of the output head.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the feed-forward block (of one expert, in a mixture).
    pub intermediate_size: usize,
    /// Query heads.
    pub num_heads: usize,
    /// Key/value heads; divides `num_heads`.
    pub num_kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Longest sequence (prompt and generation together) that the checkpoint declares.
    pub max_positions: usize,
    /// Kind and epsilon of every norm of the residual stream.
    pub norm: Norm,
    /// Arrangement of attention, feed-forward and norms.
    pub block: BlockLayout,
    /// Non-linearity of the feed-forward block.
    pub activation: Activation,
    /// True: `down(act(gate(x)) * up(x))`; false: `down(act(up(x)))` (Phi-2).
    pub gated: bool,
    /// Mixture of experts (Mixtral), if any.
    pub experts: Option<Experts>,
    /// Factor on the embedding (Gemma: the square root of the hidden size), 1 elsewhere.
    pub embedding_scale: f32,
    /// The output head shares the embedding table.
    pub tied_embeddings: bool,
    /// The output head has a bias (Phi-2).
    pub head_bias: bool,
    /// The q, k and v projections have biases.
    pub qkv_bias: bool,
    /// The attention output projection has a bias.
    pub output_bias: bool,
    /// The feed-forward projections have biases.
    pub mlp_bias: bool,
    /// RMS norm over each query and key head before the rotary embedding (Qwen 3, Gemma 3).
    pub qk_norm: bool,
    /// Factor on query times key, usually `1 / sqrt(head_dim)`.
    pub attention_scale: f32,
    /// `cap * tanh(score / cap)` on attention scores (Gemma 2).
    pub attention_softcap: Option<f32>,
    /// `cap * tanh(logit / cap)` on the logits (Gemma 2).
    pub final_softcap: Option<f32>,
    /// One entry per layer.
    pub layers: Vec<LayerConfig>,
    /// The rotary embeddings that layers refer to.
    pub ropes: Vec<Rope>,
}

/// Configuration of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerConfig {
    /// Sliding window: a query at position p sees the keys at positions `p - window + 1 ..= p`. None: all.
    pub window: Option<usize>,
    /// Position encoding of attention.
    pub position: Position,
}

/// Position encoding of attention, in addition to the causal mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Queries and keys are rotated; the index is into [`DecoderConfig::ropes`].
    Rotary(usize),
    /// Nothing (NoPE).
    None,
    /// `-slope * (query position - key position)` is added to scores, with the slopes of [`alibi_slopes`].
    Alibi,
}

/// Returns the slopes of ALiBi (Press et al. 2022), one per head: a geometric series that begins at its own ratio,
/// `2^(-8/heads)`. If the number of heads is not a power of two: the series of the power of two below it, then every other term
/// of the next series.
pub fn alibi_slopes(heads: usize) -> Vec<f32> {
    let series = |count: usize| (1..=count).map(move |i| libm::exp2(-8.0 * i as f64 / count as f64) as f32);
    let below = if heads.is_power_of_two() { heads } else { heads.next_power_of_two() / 2 };
    series(below).chain(series(2 * below).step_by(2)).take(heads).collect()
}

/// A norm's kind and epsilon.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Norm {
    /// `x / sqrt(mean(x^2) + eps) * w`
    Rms { eps: f32 },
    /// `(x - mean) / sqrt(var + eps) * w + b`
    Layer { eps: f32 },
}

/// Arrangement of attention, feed-forward and norms in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockLayout {
    /// `x += attn(norm(x)); x += mlp(norm(x))`
    PreNorm,
    /// `x += norm(attn(norm(x))); x += norm(mlp(norm(x)))` (Gemma 2 and 3)
    Sandwich,
    /// `h = norm(x); x += attn(h) + mlp(h)` (Phi-2)
    Parallel,
}

/// A feed-forward non-linearity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x * sigmoid(x)`
    Silu,
    /// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`
    GeluTanh,
    /// `0.5 x (1 + erf(x / sqrt 2))`
    GeluErf,
}

/// A mixture of experts: softmax over all experts, the `per_token` best kept and renormalised to sum 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// Number of experts.
    pub count: usize,
    /// Experts used for each token.
    pub per_token: usize,
}

/// A rotary position embedding in the half-split ("NeoX") layout: dimension i is paired with i + dims/2.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the geometric frequency series.
    pub theta: f64,
    /// Leading dimensions of a head that are rotated; the others pass unchanged (partial rotary).
    pub dims: usize,
    /// Frequency scaling.
    pub scaling: RopeScaling,
}

/// Frequency scaling of a rotary embedding. With base frequency `f_i = theta^(-2i/dims)`:
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    /// `f_i`
    None,
    /// `f_i / factor`
    Linear { factor: f64 },
    /// Llama 3.1: high frequencies kept, low ones divided, a smooth ramp between.
    Llama3 { factor: f64, low_freq_factor: f64, high_freq_factor: f64, original_max_positions: usize },
    /// Phi-3: `f_i / short[i]` while a request cannot exceed `original_max_positions`, else `f_i / long[i]`; cosine
    /// and sine are multiplied by `attention_factor` in both cases.
    LongRope { short: Vec<f64>, long: Vec<f64>, original_max_positions: usize, attention_factor: f64 },
    /// `f_i / divisors[i]` (GGUF stores Llama 3.1's scaling as the tensor `rope_freqs.weight`).
    Divisors(Vec<f64>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_the_published_ones() {
        assert_eq!(alibi_slopes(8), [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]);
        assert_eq!(alibi_slopes(1), [0.00390625]);
        // Twelve heads: eight of the series of 8, then 2^-0.5, 2^-1.5, ... of the series of 16.
        let twelve = alibi_slopes(12);
        assert_eq!(twelve[..8], alibi_slopes(8));
        assert!(
            twelve[8..].iter().zip([0.5f64, 1.5, 2.5, 3.5]).all(|(s, p)| (f64::from(*s) - (-p).exp2()).abs() < 1e-7)
        );
    }
}
