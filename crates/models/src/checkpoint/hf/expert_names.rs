//! Tensor names of experts in Hugging Face checkpoints.
use super::super::layout::{MXFP4_BLOCK, Strides};
use super::super::{DecoderConfig, LayerParameter};
use super::family::Family;
use super::names::Place;

/// A matrix of an expert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matrix {
    Gate,
    Up,
    Down,
}

/// Returns the possible places of a parameter of an expert, without the prefix of the layer.
pub(in crate::checkpoint) fn places(
    family: Family,
    c: &DecoderConfig,
    p: LayerParameter,
    shape: &[usize],
) -> Vec<Place> {
    use LayerParameter::*;
    let (e, matrix, bias) = match p {
        ExpertGate(e) => (e, Matrix::Gate, false),
        ExpertUp(e) => (e, Matrix::Up, false),
        ExpertDown(e) => (e, Matrix::Down, false),
        ExpertGateBias(e) => (e, Matrix::Gate, true),
        ExpertUpBias(e) => (e, Matrix::Up, true),
        ExpertDownBias(e) => (e, Matrix::Down, true),
        _ => return Vec::new(),
    };
    let (count, inner) = c.experts.map_or((0, 0), |x| (x.count, x.intermediate_size));
    let s = Stack { count, hidden: c.hidden_size, inner, e, matrix };
    if bias {
        return vec![s.interleaved_bias(shape)];
    }
    let single = |name: String| Place::whole(name, shape);
    match family {
        Family::Mixtral => {
            let name = match matrix {
                Matrix::Gate => "w1",
                Matrix::Up => "w3",
                Matrix::Down => "w2",
            };
            vec![single(format!("block_sparse_moe.experts.{e}.{name}.weight")), s.rows("mlp.experts", "", shape)]
        }
        Family::GraniteMoe | Family::GraniteMoeHybrid => {
            vec![s.named_rows(["block_sparse_moe.input_linear.weight", "block_sparse_moe.output_linear.weight"], shape)]
        }
        Family::Gemma4 => vec![s.rows("experts", "", shape)],
        Family::GptOss => vec![s.columns("mlp.experts", 2, shape), s.mxfp4(shape)],
        Family::Llama4 => vec![s.columns("feed_forward.experts", 1, shape)],
        _ => {
            let name = match matrix {
                Matrix::Gate => "gate_proj",
                Matrix::Up => "up_proj",
                Matrix::Down => "down_proj",
            };
            vec![single(format!("mlp.experts.{e}.{name}.weight")), s.rows("mlp.experts", "", shape)]
        }
    }
}

/// An expert's matrix in a tensor of all experts.
struct Stack {
    count: usize,
    hidden: usize,
    inner: usize,
    e: usize,
    matrix: Matrix,
}

impl Stack {
    /// In `gate_up_proj` `[E, 2 I, H]`, gate rows first, and `down_proj` `[E, H, I]`.
    fn rows(&self, at: &str, ending: &str, shape: &[usize]) -> Place {
        let names = [format!("{at}.gate_up_proj{ending}"), format!("{at}.down_proj{ending}")];
        self.named_rows([&names[0], &names[1]], shape)
    }

    fn named_rows(&self, [gate_up, down]: [&str; 2], shape: &[usize]) -> Place {
        let Stack { count, hidden, inner, e, matrix } = *self;
        if matrix == Matrix::Down {
            return Place::run(down.into(), vec![count, hidden, inner], e * hidden * inner, shape);
        }
        let half = usize::from(matrix == Matrix::Up) * inner;
        Place::run(gate_up.into(), vec![count, 2 * inner, hidden], (e * 2 * inner + half) * hidden, shape)
    }

    /// In `gate_up_proj` `[E, H, 2 I]` and `down_proj` `[E, I, H]`: transposed; gate and up are halves (step 1) or alternate (step 2).
    fn columns(&self, at: &str, step: usize, shape: &[usize]) -> Place {
        let Stack { count, hidden, inner, e, matrix } = *self;
        if matrix == Matrix::Down {
            let place = Place::run(format!("{at}.down_proj"), vec![count, inner, hidden], e * inner * hidden, shape);
            return Place { strides: Some(Strides { row: 1, column: hidden }), ..place };
        }
        let first = usize::from(matrix == Matrix::Up) * if step == 2 { 1 } else { inner };
        let whole = vec![count, hidden, 2 * inner];
        let place = Place::run(format!("{at}.gate_up_proj"), whole, e * hidden * 2 * inner + first, shape);
        Place { strides: Some(Strides { row: step, column: 2 * inner }), ..place }
    }

    /// In `gate_up_proj_bias` `[E, 2 I]`, alternating, and `down_proj_bias` `[E, H]`.
    fn interleaved_bias(&self, shape: &[usize]) -> Place {
        let Stack { count, hidden, inner, e, matrix } = *self;
        if matrix == Matrix::Down {
            return Place::run("mlp.experts.down_proj_bias".into(), vec![count, hidden], e * hidden, shape);
        }
        let first = e * 2 * inner + usize::from(matrix == Matrix::Up);
        let place = Place::run("mlp.experts.gate_up_proj_bias".into(), vec![count, 2 * inner], first, shape);
        Place { strides: Some(Strides { row: 2, column: 1 }), ..place }
    }

    /// In `gate_up_proj_blocks` `[E, 2 I, H / 32, 16]`, rows alternating, and `down_proj_blocks` `[E, H, I / 32, 16]`; the scales beside them.
    fn mxfp4(&self, shape: &[usize]) -> Place {
        let Stack { count, hidden, inner, e, matrix } = *self;
        let down = matrix == Matrix::Down;
        let (name, rows, width) = if down { ("down_proj", hidden, inner) } else { ("gate_up_proj", 2 * inner, hidden) };
        let blocks = width.div_ceil(MXFP4_BLOCK);
        let first = usize::from(matrix == Matrix::Up);
        let step = if down { 1 } else { 2 };
        let tensor = format!("mlp.experts.{name}_blocks");
        let place = Place::run(tensor, vec![count, rows, blocks, MXFP4_BLOCK / 2], (e * rows + first) * blocks, shape);
        Place {
            strides: Some(Strides { row: step * blocks, column: 1 }),
            mxfp4: width.is_multiple_of(MXFP4_BLOCK),
            ..place
        }
    }
}
