//! Parameters and tensors, named alike for every architecture and file format.
use candle_core::quantized::GgmlDType;
use std::fmt;

/// A parameter of a decoder, by role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// Embedding table, `[vocab, hidden]`.
    Embedding,
    /// Scale of the norm before the head, `[hidden]`.
    FinalNorm,
    /// Bias of that norm (layer norm only), `[hidden]`.
    FinalNormBias,
    /// Output head, `[vocab, hidden]`; absent when tied.
    Head,
    /// Bias of the head, `[vocab]`.
    HeadBias,
    /// A parameter of the layer with this index.
    Layer(usize, LayerParameter),
}

/// A parameter of one layer. Projections are `[out, in]`, norms and biases `[out]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerParameter {
    AttentionNorm,
    AttentionNormBias,
    Query,
    QueryBias,
    Key,
    KeyBias,
    Value,
    ValueBias,
    Output,
    OutputBias,
    /// `[head_dim]`
    QueryNorm,
    /// `[head_dim]`
    KeyNorm,
    /// Sandwich layout: after attention, before the residual sum.
    PostAttentionNorm,
    /// Before the feed-forward block (absent in the parallel layout).
    MlpNorm,
    MlpNormBias,
    /// Sandwich layout: after the feed-forward block, before the residual sum.
    PostMlpNorm,
    Gate,
    GateBias,
    Up,
    UpBias,
    Down,
    DownBias,
    /// Mixture: `[experts, hidden]`
    Router,
    ExpertGate(usize),
    ExpertUp(usize),
    ExpertDown(usize),
}

/// A tensor's values, row-major, in the precision of the file where that is a plain float, else dequantised to f32.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Sizes, outermost first; one or two of them.
    pub shape: Vec<usize>,
    /// The values.
    pub values: Values,
}

/// Values of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    F32(Vec<f32>),
    /// Bit patterns of bfloat16.
    Bf16(Vec<u16>),
    /// Bit patterns of IEEE half precision.
    F16(Vec<u16>),
}

/// A type of quantised blocks that engines compute with directly; names as in llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockType {
    /// 34 bytes for 32 weights.
    Q8_0,
    /// 144 bytes for 256 weights.
    Q4K,
    /// 176 bytes for 256 weights.
    Q5K,
    /// 210 bytes for 256 weights.
    Q6K,
}

impl BlockType {
    /// Returns the weights and bytes of a block.
    pub fn size(self) -> (usize, usize) {
        match self {
            BlockType::Q8_0 => (32, 34),
            BlockType::Q4K => (256, 144),
            BlockType::Q5K => (256, 176),
            BlockType::Q6K => (256, 210),
        }
    }

    pub(super) fn of(dtype: GgmlDType) -> Option<BlockType> {
        match dtype {
            GgmlDType::Q8_0 => Some(BlockType::Q8_0),
            GgmlDType::Q4K => Some(BlockType::Q4K),
            GgmlDType::Q5K => Some(BlockType::Q5K),
            GgmlDType::Q6K => Some(BlockType::Q6K),
            _ => None,
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parameter::Layer(i, p) => write!(f, "layer {i} {p:?}"),
            other => write!(f, "{other:?}"),
        }
    }
}
