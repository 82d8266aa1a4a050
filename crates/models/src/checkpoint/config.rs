//! Decoder configuration, the same for every architecture and both file formats.
//!
//! The parsers ([`super::hf::config`], [`super::gguf::config`]) translate a `config.json` or GGUF metadata into
//! [`DecoderConfig`]; the engine reads nothing else. A field of the source that would change the maths and is not
//! translated here is an error there, never ignored.

use super::{LatentAttention, LayerInputs, LinearAttention, Placeholders, QueryGrowth, Streams};

/// Configuration of a decoder-only transformer.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// The source's own name, e.g. `LlamaForCausalLM` or `gguf:gemma3`; for messages and the manifest.
    pub architecture: String,
    /// Rows of the embedding table and of the output head.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the feed-forward block where layers do not differ (of one expert, in a mixture); a layer's own is in
    /// [`LayerConfig::intermediate_size`].
    pub intermediate_size: usize,
    /// Query heads.
    pub num_heads: usize,
    /// Key/value heads where layers do not differ; divides `num_heads`.
    pub num_kv_heads: usize,
    /// Width of one head where layers do not differ.
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
    /// The mixture of experts of the layers that have one.
    pub experts: Option<Experts>,
    /// Factor on the embedding (Gemma: the square root of the hidden size), 1 elsewhere.
    pub embedding_scale: f32,
    /// Factor on what a block adds to the residual stream (Granite), 1 elsewhere.
    pub residual_scale: f32,
    /// Factor on the logits (Granite, Cohere), 1 elsewhere.
    pub logit_scale: f32,
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
    /// RMS norm of queries and keys.
    pub qk_norm: QkNorm,
    /// RMS norm without a weight over each value head (Gemma 3n and 4).
    pub value_norm: bool,
    /// An extra logit of each query head in the softmax of attention, whose probability goes to no value (GPT-OSS).
    pub sinks: bool,
    /// Growth of queries with their position, in the layers that say so.
    pub query_growth: Option<QueryGrowth>,
    /// Projections of attention through narrow latent vectors (DeepSeek-V3).
    pub latent: Option<LatentAttention>,
    /// Linear attention of the layers that have it (Qwen 3.5).
    pub linear: Option<LinearAttention>,
    /// Attention's output is multiplied by the sigmoid of gates, which are projected with the queries: `[queries, gates]` (Qwen 3.5).
    pub gated_attention: bool,
    /// Width of the inputs that every layer gets from a second embedding table (Gemma 3n and 4).
    pub layer_inputs: Option<LayerInputs>,
    /// Several residual streams, of which a layer computes one (Gemma 3n).
    pub streams: Option<Streams>,
    /// A factor on the output of each layer is stored (Gemma 4).
    pub layer_scalar: bool,
    /// Ids that stand for other inputs than text (Gemma 4).
    pub placeholders: Option<Placeholders>,
    /// The file's queries and keys rotate neighbouring dimensions, `2 i` and `2 i + 1`. [`super::Checkpoint::tensor`] returns
    /// their rows in the order of the half-split layout, in which engines rotate: scores are the same.
    pub rotary_pairs: bool,
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerConfig {
    /// Sliding window: a query at position p sees the keys at positions `p - window + 1 ..= p`. None: all.
    pub window: Option<usize>,
    /// Chunked attention: a query sees the keys of its own chunk of so many positions (Llama 4). None: all.
    pub chunk: Option<usize>,
    /// Position encoding of attention.
    pub position: Position,
    /// Key/value heads; divides [`DecoderConfig::num_heads`].
    pub num_kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Source of keys and values.
    pub keys_values: KeysValues,
    /// The layer has the linear attention of [`DecoderConfig::linear`], and no keys and values.
    pub linear: bool,
    /// Queries grow with their position, by [`DecoderConfig::query_growth`].
    pub query_growth: bool,
    /// Width of the dense feed-forward block, or of what is computed for every token beside the experts; 0 for none.
    pub intermediate_size: usize,
    /// The layer has the mixture of [`DecoderConfig::experts`].
    pub experts: bool,
    /// Threshold of a gate, in standard deviations above the mean: values below it become zero (Gemma 3n).
    pub gate_cutoff: Option<f32>,
}

/// Source of a layer's keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysValues {
    /// A projection each.
    Projected,
    /// Values are the keys as projected, before norm and rotary embedding (Gemma 4).
    OneProjection,
    /// Those of an earlier layer (Gemma 3n and 4).
    OfLayer(usize),
}

/// Norm of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QkNorm {
    /// No norm.
    None,
    /// RMS norm over each head, before the rotary embedding (Qwen 3, Gemma 3).
    Head,
    /// RMS norm over all heads together, before the rotary embedding (OLMo 2).
    Width,
    /// RMS norm over each head, after the rotary embedding (Hunyuan).
    HeadAfterRotary,
    /// RMS norm without a weight over each head after the rotary embedding, in layers that have one (Llama 4).
    PlainAfterRotary,
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
    /// `+slope * (query position - key position)`: the sign of the Number Cookbook's program.
    AlibiReversed,
}

impl Position {
    /// Returns what every head's scores lose per token of distance, if position enters them that way.
    pub fn slopes(self, heads: usize) -> Option<Vec<f32>> {
        match self {
            Position::Alibi => Some(alibi_slopes(heads)),
            Position::AlibiReversed => Some(alibi_slopes(heads).into_iter().map(|slope| -slope).collect()),
            Position::Rotary(_) | Position::None => None,
        }
    }
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
    /// `(x - mean) / sqrt(var + eps) * w + b`; without b for Cohere.
    Layer { eps: f32, bias: bool },
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
    /// `x += norm(attn(x)); x += norm(mlp(x))` (OLMo 2)
    PostNorm,
}

/// A feed-forward non-linearity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `x * sigmoid(x)`
    Silu,
    /// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`
    GeluTanh,
    /// `0.5 x (1 + erf(x / sqrt 2))`
    GeluErf,
    /// `(up + 1) * x * sigmoid(alpha x)` of a gate x of at most `limit` and an up projection within it (GPT-OSS); only with a gate.
    ClampedSwiglu { alpha: f32, limit: f32 },
}

/// A mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experts {
    /// Number of experts.
    pub count: usize,
    /// Experts used for each token.
    pub per_token: usize,
    /// Width of one expert.
    pub intermediate_size: usize,
    /// Choice and weights.
    pub routing: Routing,
    /// The router has a bias.
    pub router_bias: bool,
    /// The experts' projections have biases.
    pub bias: bool,
    /// Relation to the layer's dense block.
    pub placement: ExpertPlacement,
    /// The dense block's answer is multiplied by the sigmoid of a product with its input (Qwen 3.5).
    pub shared_gate: bool,
}

impl Experts {
    /// Returns the mixture of Mixtral, which others extend.
    pub fn mixtral(count: usize, per_token: usize, intermediate_size: usize) -> Experts {
        Experts {
            count,
            per_token,
            intermediate_size,
            routing: Routing::Softmax { normalised: true },
            router_bias: false,
            bias: false,
            placement: ExpertPlacement::Sum,
            shared_gate: false,
        }
    }
}

/// Choice of the `per_token` experts of a token, and their weights, from the router's logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Routing {
    /// The largest logits; weights are the softmax over them, or over all experts if not `normalised`.
    Softmax { normalised: bool },
    /// The largest `sigmoid(logit) + bias` of the `kept` best of `groups` equal groups (by the sum of a group's two best); weights are
    /// the sigmoids without bias, divided by their sum if `normalised`, times `scale` (DeepSeek-V3, GLM-4.5).
    Sigmoid { groups: usize, kept: usize, normalised: bool, scale: f32 },
    /// The largest logits; an expert's input is multiplied by the sigmoid of its logit (Llama 4).
    ScaledInput,
}

/// Relation of experts to the layer's dense block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpertPlacement {
    /// Experts read what the dense block reads, if there is one, and are added to it.
    Sum,
    /// Beside the dense block, with norms of their own; the router reads the residual stream, with a weightless norm, a scale for each
    /// dimension and a factor for each expert (Gemma 4).
    Beside,
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
    /// YaRN (Peng et al. 2023): `f_i` up to pair `low`, `f_i / factor` from pair `high` on, a linear ramp between; cosine and sine are
    /// multiplied by `attention_factor`, at every length.
    Yarn { factor: f64, low: f64, high: f64, attention_factor: f64 },
    /// `f_i / factor` of the first `rotated` pairs, 0 of the others (Gemma 4).
    Proportional { rotated: usize, factor: f64 },
}

impl DecoderConfig {
    /// Returns the longest sequence that engines compute: the declared one, and more with YaRN, whose files have the longest sequence
    /// either before or after its factor.
    pub fn position_limit(&self) -> usize {
        let factor = |rope: &Rope| match rope.scaling {
            RopeScaling::Yarn { factor, .. } => factor.max(1.0),
            _ => 1.0,
        };
        let factor = self.ropes.iter().map(factor).fold(1.0, f64::max);
        (self.max_positions as f64 * factor) as usize
    }

    /// Returns the id whose embedding a token has.
    pub fn embedded_id(&self, id: usize) -> usize {
        match self.placeholders {
            Some(p) if p.ids.contains(&Some(id)) => p.embedded_as,
            _ => id,
        }
    }
}

impl Rope {
    /// Returns the factor on cosine and sine.
    pub fn attention_factor(&self) -> f64 {
        match self.scaling {
            RopeScaling::LongRope { attention_factor, .. } | RopeScaling::Yarn { attention_factor, .. } => {
                attention_factor
            }
            _ => 1.0,
        }
    }
}

impl LayerConfig {
    /// Returns a layer that differs from none: full attention and one feed-forward block, dense or of experts.
    pub fn plain(
        window: Option<usize>,
        position: Position,
        num_kv_heads: usize,
        head_dim: usize,
        intermediate_size: usize,
    ) -> LayerConfig {
        LayerConfig {
            window,
            chunk: None,
            position,
            num_kv_heads,
            head_dim,
            keys_values: KeysValues::Projected,
            linear: false,
            query_growth: false,
            intermediate_size,
            experts: false,
            gate_cutoff: None,
        }
    }

    /// Returns the layer with experts in place of the dense block.
    pub fn with_experts(self) -> LayerConfig {
        LayerConfig { intermediate_size: 0, experts: true, ..self }
    }
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
