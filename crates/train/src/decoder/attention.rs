//! Attention of the decoder: one fused operation on the CPU, tensor operations elsewhere.
use candle_core::{D, Result as TensorResult, Tensor};

use super::Decoder;
use super::model::Layer;
use super::rows::Rows;
use crate::fused::{self, AttentionShape};
use crate::norm::rms_norm;
use crate::positions::{RotaryTable, mask};
use earnest_models::checkpoint::Position;

impl Decoder {
    /// Self-attention with its projections. `h` holds all computed rows; the result holds the query rows: all of them, or those of
    /// the examples from column `first` on.
    pub(super) fn attention(
        &self,
        layer: &Layer,
        h: &Tensor,
        rows: Rows,
        first: Option<usize>,
        ropes: &[RotaryTable],
    ) -> TensorResult<Tensor> {
        let queries = rows.queries(h, first)?;
        let (mut q, mut k, v) = (layer.q.forward(&queries)?, layer.k.forward(h)?, layer.v.forward(h)?);
        if let Some([q_norm, k_norm]) = &layer.qk_norms {
            let by_head = |x: &Tensor, norm: &Tensor| {
                rms_norm(&x.reshape(((), self.config.head_dim))?, norm, self.eps)?.reshape(x.shape())
            };
            (q, k) = (by_head(&q, q_norm)?, by_head(&k, k_norm)?);
        }
        let Rows { examples, length, shared } = rows;
        let out = if shared == 0 {
            self.attended(layer, [q, k, v], (examples, length, first.unwrap_or(0)), ropes)?
        } else {
            // The prefix attends to itself; the rest attends to the prefix and its own example.
            let (all_k, all_v) = (rows.expand(&k)?, rows.expand(&v)?);
            match first {
                Some(first) => self.attended(layer, [q, all_k, all_v], (examples, length, first), ropes)?,
                None => {
                    let head = |x: &Tensor| x.narrow(0, 0, shared)?.contiguous();
                    let own = q.narrow(0, shared, q.dim(0)? - shared)?.contiguous()?;
                    let prefix = self.attended(layer, [head(&q)?, head(&k)?, head(&v)?], (1, shared, 0), ropes)?;
                    let rest = self.attended(layer, [own, all_k, all_v], (examples, length, shared), ropes)?;
                    Tensor::cat(&[prefix, rest], 0)?
                }
            }
        };
        layer.o.forward(&out)
    }

    /// Scaled dot-product attention of the queries from column `first` on; `q` is
    /// `[examples * (length - first), heads * head_dim]`.
    fn attended(
        &self,
        layer: &Layer,
        [q, k, v]: [Tensor; 3],
        (examples, length, first): (usize, usize, usize),
        ropes: &[RotaryTable],
    ) -> TensorResult<Tensor> {
        let c = &self.config;
        if !self.device.is_cpu() || c.attention_softcap.is_some() {
            return self.composed_attention(layer, [q, k, v], (examples, length, first), ropes);
        }
        let shape = AttentionShape {
            length,
            first,
            heads: c.num_heads,
            kv_heads: c.num_kv_heads,
            head_dim: c.head_dim,
            scale: c.attention_scale,
            rotation: match layer.config.position {
                Position::Rotary(index) => Some(ropes[index].values()?),
                Position::None | Position::Alibi | Position::AlibiReversed => None,
            },
            slopes: layer.config.position.slopes(c.num_heads),
            window: layer.config.window,
        };
        fused::attention(&q, &k, &v, shape)
    }

    /// The same attention, composed of tensor operations, for every device.
    pub(super) fn composed_attention(
        &self,
        layer: &Layer,
        [q, k, v]: [Tensor; 3],
        (examples, length, first): (usize, usize, usize),
        ropes: &[RotaryTable],
    ) -> TensorResult<Tensor> {
        let c = &self.config;
        let (group, queries) = (c.num_heads / c.num_kv_heads, length - first);
        let heads = |x: Tensor, rows: usize, heads: usize| -> TensorResult<Tensor> {
            x.reshape((examples, rows, heads, c.head_dim))?.transpose(1, 2)?.contiguous()
        };
        let mut q = heads(q, queries, c.num_heads)?;
        let mut k = heads(k, length, c.num_kv_heads)?;
        let v = heads(v, length, c.num_kv_heads)?;
        let slopes = match layer.config.position {
            Position::Rotary(index) => {
                q = ropes[index].rotate(&q, first)?;
                k = ropes[index].rotate(&k, 0)?;
                None
            }
            position => position.slopes(c.num_heads),
        };
        let mask = mask(length, slopes.as_deref(), layer.config.window, &self.device)?.narrow(1, first, queries)?;
        // The query heads of a group are stacked, so that keys are not repeated.
        let q = q.reshape((examples, c.num_kv_heads, group * queries, c.head_dim))?;
        let mut scores = (q.matmul(&k.transpose(2, 3)?.contiguous()?)? * f64::from(c.attention_scale))?;
        if let Some(cap) = c.attention_softcap {
            scores = softcap(&scores, cap)?;
        }
        let scores = scores.reshape((examples, c.num_heads, queries, length))?.broadcast_add(&mask)?;
        let weights = softmax(&scores)?.reshape((examples, c.num_kv_heads, group * queries, length))?;
        let out = weights.matmul(&v)?.reshape((examples, c.num_heads, queries, c.head_dim))?;
        out.transpose(1, 2)?.reshape((examples * queries, c.num_heads * c.head_dim))
    }
}

/// Returns `cap * tanh(x / cap)`.
pub(super) fn softcap(x: &Tensor, cap: f32) -> TensorResult<Tensor> {
    (x / f64::from(cap))?.tanh()? * f64::from(cap)
}

/// Softmax over the last dimension.
fn softmax(x: &Tensor) -> TensorResult<Tensor> {
    let shifted = x.broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?.exp()?;
    shifted.broadcast_div(&shifted.sum_keepdim(D::Minus1)?)
}
