//! Parameters and tensors, named alike for every architecture and file format.
use super::levels::{LEVELS_BYTES, Levels};
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
    /// Table of the layers' inputs, `[rows, layers * width]`.
    LayerInputEmbedding,
    /// Projection of the embedding to the layers' inputs, `[layers * width, hidden]`.
    LayerInputProjection,
    /// Scale of the norm of that projection, `[width]`.
    LayerInputNorm,
    /// Projection of the embedding to a further residual stream, `[hidden, hidden]`; the first of them is 0.
    StreamProjection(usize),
    /// Projection of a further residual stream at the end, `[hidden, hidden]`.
    StreamUnembedding(usize),
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
    /// `[head_dim]`, or `[heads * head_dim]`.
    QueryNorm,
    /// `[head_dim]`, or `[kv_heads * head_dim]`.
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
    RouterBias,
    /// Gate of the dense block beside experts, `[1, hidden]`.
    SharedGate,
    /// Added to the experts' scores for the choice only, `[experts]`.
    ChoiceBias,
    /// Experts beside the dense block: scale of the router's input, `[hidden]`, and factor of each expert, `[experts]`.
    RouterScale,
    ExpertScale,
    /// Experts beside the dense block: before the experts, after them, and after the dense block.
    ExpertsNorm,
    PostExpertsNorm,
    PostDenseNorm,
    ExpertGate(usize),
    ExpertUp(usize),
    ExpertDown(usize),
    ExpertGateBias(usize),
    ExpertUpBias(usize),
    ExpertDownBias(usize),
    /// Logits of attention's sinks, `[heads]`.
    Sinks,
    /// Latent attention: projections to the latent vectors and their norms; of keys with the rotated part, `[rank + rotated, hidden]`.
    /// [`Query`](LayerParameter::Query) is the projection from the queries' latent vector, `KvUp` that of all heads' keys and values.
    QueryDown,
    QueryDownNorm,
    KvDown,
    KvDownNorm,
    KvUp,
    /// Linear attention: queries, keys and values `[channels, hidden]`, gates `[values, hidden]`, strengths and decays
    /// `[value_heads, hidden]`, convolution `[channels, kernel]`, decay's logarithm and bias `[value_heads]`, norm `[value_dims]`.
    LinearQkv,
    LinearGate,
    LinearStrength,
    LinearDecay,
    LinearConvolution,
    LinearDecayLog,
    LinearDecayBias,
    LinearNorm,
    /// Inputs of every layer: `[width, hidden]`, `[hidden, width]`, `[hidden]`.
    LayerInputGate,
    LayerInputUp,
    PostLayerInputNorm,
    /// Factor on the layer's output, `[1]`.
    LayerScalar,
    /// Low-rank branch beside attention: `[rank, hidden]`, `[hidden, rank]`, `[hidden]`.
    BranchDown,
    BranchUp,
    PostBranchNorm,
    /// Several streams: `[streams, hidden]`, `[hidden]`, `[streams * streams, streams]`, `[streams, streams]`, `[hidden]`.
    StreamRouter,
    StreamRouterNorm,
    StreamPrediction,
    StreamCorrection,
    StreamScale,
}

/// A tensor's values, row-major, in the precision of the file where that is a plain float, else dequantised to f32.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Sizes, outermost first; one or two of them.
    pub shape: Vec<usize>,
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

/// A float type of scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    F16,
    Bf16,
}

/// A type of quantised blocks that engines keep in memory; names as in llama.cpp. Not all of them have kernels on GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockType {
    /// 18 bytes for 32 weights.
    Q4_0,
    /// 20 bytes for 32 weights.
    Q4_1,
    /// 22 bytes for 32 weights.
    Q5_0,
    /// 24 bytes for 32 weights.
    Q5_1,
    /// 34 bytes for 32 weights.
    Q8_0,
    /// 84 bytes for 256 weights.
    Q2K,
    /// 110 bytes for 256 weights.
    Q3K,
    /// 144 bytes for 256 weights.
    Q4K,
    /// 176 bytes for 256 weights.
    Q5K,
    /// 210 bytes for 256 weights.
    Q6K,
    /// 17 bytes for 32 weights.
    Mxfp4,
    /// 18 bytes for 32 weights.
    Iq4Nl,
    /// Super-blocks whose four bits are indices of levels: 146 bytes for 256 weights.
    Levels(Levels),
    /// Integers of at most 4 bits with a scale and a zero point: 19 bytes for 32 weights.
    Group4(Half),
    /// Integers of at most 8 bits with a scale and a zero point, which is one more than stored if so: 35 bytes for 32 weights.
    Group8(Half, bool),
    /// 8-bit floats with a scale in f32: 36 bytes for 32 weights.
    E4m3,
    /// Integers whose groups are no blocks of 32 neighbours: a block is a row.
    GroupedRow(GroupedRow),
}

/// A row of integers whose inputs are in groups, neighbours or not, each with a scale and a zero point: the codes, in 16 or 32
/// bytes for 32 inputs, then the scales and then the zero points of all groups in f32. Weights are `(code - zero) * scale`, and the
/// groups of inputs are those of [`Checkpoint::groups_of_inputs`](super::Checkpoint::groups_of_inputs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupedRow {
    pub inputs: usize,
    pub groups: usize,
    /// Codes of more than four bits.
    pub wide: bool,
}

impl GroupedRow {
    /// Bytes of the codes.
    pub fn code_bytes(self) -> usize {
        if self.wide { self.inputs } else { self.inputs / 2 }
    }

    /// Bytes of the row.
    pub fn bytes(self) -> usize {
        self.code_bytes() + 2 * size_of::<f32>() * self.groups
    }
}

impl BlockType {
    /// Returns the weights and bytes of a block.
    pub fn size(self) -> (usize, usize) {
        match self {
            BlockType::Q4_0 => (32, 18),
            BlockType::Q4_1 => (32, 20),
            BlockType::Q5_0 => (32, 22),
            BlockType::Q5_1 => (32, 24),
            BlockType::Q8_0 => (32, 34),
            BlockType::Q2K => (256, 84),
            BlockType::Q3K => (256, 110),
            BlockType::Q4K => (256, 144),
            BlockType::Q5K => (256, 176),
            BlockType::Q6K => (256, 210),
            BlockType::Mxfp4 => (32, 17),
            BlockType::Iq4Nl => (32, 18),
            BlockType::Levels(_) => (256, LEVELS_BYTES),
            BlockType::Group4(_) => (32, 19),
            BlockType::Group8(..) => (32, 35),
            BlockType::E4m3 => (32, 36),
            BlockType::GroupedRow(row) => (row.inputs, row.bytes()),
        }
    }

    /// Returns the bytes of a matrix of whole blocks in the CPU engine.
    pub fn matrix_bytes(self, rows: usize, width: usize) -> u64 {
        let blocks = rows as u64 * (width / self.size().0) as u64 * self.packed_bytes() as u64;
        match self {
            BlockType::GroupedRow(row) => blocks + (row.inputs * size_of::<u32>()) as u64,
            _ => blocks,
        }
    }

    /// Returns the bytes of a block in the CPU engine: those of the file and a few to align scales; 2 and 3 bits take 4.
    fn packed_bytes(self) -> usize {
        match self {
            BlockType::Q2K => 164,
            BlockType::Q3K => 146,
            BlockType::Q4K => 148,
            BlockType::Q5K => 180,
            BlockType::Q6K => 210,
            // The exponent is a float of 16 bits.
            BlockType::Mxfp4 => 18,
            other => other.size().1,
        }
    }

    /// True if products with it can round activations to 8 bits: the codes of 32 inputs are integers of one or two scales.
    pub fn has_integers(self) -> bool {
        !matches!(self, BlockType::E4m3 | BlockType::GroupedRow(_))
    }

    pub(super) fn of(dtype: GgmlDType) -> Option<BlockType> {
        match dtype {
            GgmlDType::Q4_0 => Some(BlockType::Q4_0),
            GgmlDType::Q4_1 => Some(BlockType::Q4_1),
            GgmlDType::Q5_0 => Some(BlockType::Q5_0),
            GgmlDType::Q5_1 => Some(BlockType::Q5_1),
            GgmlDType::Q8_0 => Some(BlockType::Q8_0),
            GgmlDType::Q2K => Some(BlockType::Q2K),
            GgmlDType::Q3K => Some(BlockType::Q3K),
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
