//! Layout of a batch's rows in the residual stream.
use candle_core::{Result as TensorResult, Tensor};

/// Rows of a batch that are computed: the shared prefix once, then the rest of every example.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) examples: usize,
    /// Tokens of a padded example.
    pub(super) length: usize,
    /// Tokens of the shared prefix.
    pub(super) shared: usize,
}

impl Rows {
    /// Selects the ids of the rows from `[examples, length]`.
    pub(super) fn ids(self, ids: &Tensor) -> TensorResult<Tensor> {
        if self.shared == 0 {
            return ids.flatten_all();
        }
        let prefix = ids.narrow(0, 0, 1)?.narrow(1, 0, self.shared)?.flatten_all()?;
        let rest = ids.narrow(1, self.shared, self.length - self.shared)?.flatten_all()?;
        Tensor::cat(&[prefix, rest], 0)
    }

    /// Selects the rows of the examples from column `first` on; without one, all rows.
    pub(super) fn queries(self, x: &Tensor, first: Option<usize>) -> TensorResult<Tensor> {
        let Some(first) = first.filter(|first| *first > 0) else { return Ok(x.clone()) };
        let (width, own) = (x.dim(1)?, self.length - self.shared);
        let examples = x.narrow(0, self.shared, self.examples * own)?.reshape((self.examples, own, width))?;
        let kept = examples.narrow(1, first - self.shared, self.length - first)?;
        kept.contiguous()?.reshape((self.examples * (self.length - first), width))
    }

    /// Repeats the shared prefix for every example: `[examples * length, width]`.
    pub(super) fn expand(self, x: &Tensor) -> TensorResult<Tensor> {
        let own = self.length - self.shared;
        let row = |example: usize, at: usize| if at < self.shared { at } else { example * own + at };
        let indices: Vec<u32> =
            (0..self.examples).flat_map(|example| (0..self.length).map(move |at| row(example, at) as u32)).collect();
        x.index_select(&Tensor::new(indices, x.device())?, 0)
    }
}
