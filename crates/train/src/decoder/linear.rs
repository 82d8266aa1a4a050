//! Linear layers of the decoder.
use candle_core::{Result as TensorResult, Tensor};

use crate::adapter::Adapter;
use crate::frozen;

/// Linear layer with an optional bias and an optional adapter.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    /// `[out, in]`, as checkpoints store it.
    pub(super) weight: Tensor,
    pub(super) bias: Option<Tensor>,
    pub(super) adapter: Option<Adapter>,
    /// True if the weight is not trained: no gradient of it is computed.
    pub(super) frozen: bool,
}

impl Linear {
    /// Applies the layer to `x` (`[rows, in]`); returns `[rows, out]`.
    pub(super) fn forward(&self, x: &Tensor) -> TensorResult<Tensor> {
        let mut out = if self.frozen { frozen::product(x, &self.weight)? } else { x.matmul(&self.weight.t()?)? };
        if let Some(bias) = &self.bias {
            out = out.broadcast_add(bias)?;
        }
        match &self.adapter {
            Some(adapter) => out + adapter.apply(x)?,
            None => Ok(out),
        }
    }
}
