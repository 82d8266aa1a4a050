//! Parts of a decoder configuration that one or two families have.

/// Growth of queries with their position p: they are multiplied by `1 + scale * ln(1 + floor((p + offset) / every))`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryGrowth {
    pub scale: f64,
    pub every: f64,
    /// 1 in Llama 4, 0 in Ministral 3.
    pub offset: usize,
}

impl QueryGrowth {
    /// Returns the factor on the queries of a position.
    pub fn factor(&self, position: usize) -> f32 {
        let turns = ((position + self.offset) as f64 / self.every).floor();
        (1.0 + self.scale * libm::log1p(turns)) as f32
    }
}

/// Attention with latent projections (DeepSeek's MLA), computed as its projections say: keys and values of each head are cached.
/// A head's query and key are `[plain, rotated]`; the rotated part of the key is one for all heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatentAttention {
    /// Width of the queries' latent vector; none if queries are projected directly.
    pub query_rank: Option<usize>,
    /// Width of the latent vector of keys and values.
    pub kv_rank: usize,
    /// Dimensions of a head's query and key without rotary embedding.
    pub plain_dims: usize,
    /// Rotated dimensions of a head's query and key; [`super::LayerConfig::head_dim`] is the sum of both.
    pub rotary_dims: usize,
    /// Dimensions of a head's value, at most those of its key.
    pub value_dims: usize,
}

/// Linear attention by the gated delta rule: a matrix for each value head is the memory of all positions before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearAttention {
    /// Heads of queries and keys; divides the value heads.
    pub key_heads: usize,
    pub value_heads: usize,
    pub key_dims: usize,
    pub value_dims: usize,
    /// Positions that the convolution over queries, keys and values sees.
    pub kernel: usize,
}

impl LinearAttention {
    /// Width of queries, keys and values together.
    pub fn channels(&self) -> usize {
        2 * self.key_heads * self.key_dims + self.values()
    }

    /// Width of all values.
    pub fn values(&self) -> usize {
        self.value_heads * self.value_dims
    }

    /// Returns the floats of the inputs that a layer's convolution keeps.
    pub fn kept_inputs(&self) -> usize {
        (self.kernel - 1) * self.channels()
    }

    /// Returns the floats that a layer keeps of a sequence: inputs of the convolution, and a matrix for each value head.
    pub fn state_floats(&self) -> usize {
        self.kept_inputs() + self.values() * self.key_dims
    }
}

/// Inputs of every layer from a second embedding table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerInputs {
    /// Rows of the table; ids beyond it have the row of id 0.
    pub vocab_size: usize,
    /// Width of one layer's input.
    pub width: usize,
}

/// Ids of images, video and audio: as text they have the embedding of another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholders {
    pub ids: [Option<usize>; 3],
    /// The id whose embedding they have.
    pub embedded_as: usize,
}

/// Alternating updates of several residual streams (Gemma 3n), with its low-rank branch beside attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    /// Number of streams.
    pub count: usize,
    /// The stream that layers compute.
    pub active: usize,
    /// The active stream is scaled by a stored vector before it gates the layer's input.
    pub scaled: bool,
    /// Rank of the branch beside attention.
    pub branch_rank: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_grow_by_the_logarithm_of_whole_turns() {
        let ministral = QueryGrowth { scale: 0.5, every: 40.0, offset: 0 };
        assert_eq!((ministral.factor(0), ministral.factor(39)), (1.0, 1.0));
        assert!((ministral.factor(40) - (1.0 + 0.5 * 2f32.ln())).abs() < 1e-7);
        // The position after is counted in Llama 4.
        let llama = QueryGrowth { offset: 1, ..ministral };
        assert_eq!((llama.factor(38), llama.factor(39)), (1.0, ministral.factor(40)));
    }
}
