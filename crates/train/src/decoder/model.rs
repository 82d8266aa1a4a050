//! The decoder's forward pass and its views for training, inference and merging.
use candle_core::{Device, Result as TensorResult, Tensor};

use super::attention::softcap;
use super::linear::Linear;
use super::rows::Rows;
use crate::adapter::{Adapter, splitmix64};
use crate::norm::rms_norm;
use crate::positions::RotaryTable;
use crate::{Batch, frozen, fused};
use earnest_models::checkpoint::{Activation, DecoderConfig, LayerConfig};

/// Weights of a transformer block.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) config: LayerConfig,
    pub(super) attention_norm: Tensor,
    pub(super) mlp_norm: Tensor,
    /// Norms of the query and key heads.
    pub(super) qk_norms: Option<[Tensor; 2]>,
    /// Norms of the outputs of attention and the feed-forward block (Gemma 2 and 3).
    pub(super) after_norms: Option<[Tensor; 2]>,
    pub(super) q: Linear,
    pub(super) k: Linear,
    pub(super) v: Linear,
    pub(super) o: Linear,
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
}

/// Differentiable decoder.
#[derive(Debug, Clone)]
pub struct Decoder {
    pub(super) config: DecoderConfig,
    pub(super) eps: f32,
    pub(super) embedding: Tensor,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Tensor,
    pub(super) head: Option<Tensor>,
    /// True if only adapters are trained.
    pub(super) frozen: bool,
    /// True if the common prefix of a batch is computed once. It rounds differently, so models from scratch, whose trainings
    /// repeat those of earlier versions, do not use it.
    pub(super) shares_prefix: bool,
    pub(super) device: Device,
}

impl Decoder {
    /// Architecture of the decoder.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Computes the logits of a batch's targets, `[targets, vocabulary]`.
    ///
    /// # Errors
    /// A tensor operation that fails.
    pub fn logits(&self, batch: &Batch) -> TensorResult<Tensor> {
        let hidden = self.hidden(batch)?;
        // Only target rows pass through the head.
        let targets = rms_norm(&hidden.index_select(&batch.target_rows, 0)?, &self.norm, self.eps)?;
        let head = self.head.as_ref().unwrap_or(&self.embedding);
        let logits = if self.frozen { frozen::product(&targets, head)? } else { targets.matmul(&head.t()?)? };
        match self.config.final_softcap {
            Some(cap) => softcap(&logits, cap),
            None => Ok(logits),
        }
    }

    /// Computes the residual stream after the last layer from column `first` on, `[examples * (length - first), hidden]`.
    fn hidden(&self, batch: &Batch) -> TensorResult<Tensor> {
        let (examples, length) = batch.ids.dims2()?;
        let rows = Rows { examples, length, shared: if self.shares_prefix { batch.shared_prefix } else { 0 } };
        let ropes: Vec<RotaryTable> = self
            .config
            .ropes
            .iter()
            .map(|rope| RotaryTable::new(rope, length, &self.device))
            .collect::<TensorResult<_>>()?;
        let mut x = self.embedding.index_select(&rows.ids(&batch.ids)?, 0)?;
        if self.config.embedding_scale != 1.0 {
            x = (x * f64::from(self.config.embedding_scale))?;
        }
        for (index, layer) in self.layers.iter().enumerate() {
            // The last layer is half of a small model, and most of its rows belong to prompts and are not read.
            let first = (index + 1 == self.layers.len()).then_some(batch.first);
            let h = rms_norm(&x, &layer.attention_norm, self.eps)?;
            let mut attended = self.attention(layer, &h, rows, first, &ropes)?;
            if let Some([after, _]) = &layer.after_norms {
                attended = rms_norm(&attended, after, self.eps)?;
            }
            x = (rows.queries(&x, first)? + attended)?;
            let h = rms_norm(&x, &layer.mlp_norm, self.eps)?;
            let (gate, up) = (layer.gate.forward(&h)?, layer.up.forward(&h)?);
            let mut out = layer.down.forward(&self.gated(&gate, &up)?)?;
            if let Some([_, after]) = &layer.after_norms {
                out = rms_norm(&out, after, self.eps)?;
            }
            x = (x + out)?;
        }
        Ok(x)
    }

    /// Computes `activation(gate) * up`.
    fn gated(&self, gate: &Tensor, up: &Tensor) -> TensorResult<Tensor> {
        match self.config.activation {
            Activation::Silu if self.device.is_cpu() => fused::swiglu(gate, up),
            Activation::Silu => gate.silu()? * up,
            Activation::GeluTanh => gate.gelu()? * up,
            Activation::GeluErf => gate.gelu_erf()? * up,
            Activation::ClampedSwiglu { .. } => unreachable!("refused when the decoder was built"),
        }
    }

    /// Returns the model with every adapter replaced by `change(adapter, index)`; all tensors are shared.
    fn with_adapters(&self, change: impl Fn(&Adapter, u64) -> Adapter) -> Self {
        let mut model = self.clone();
        let mut index = 0;
        for layer in &mut model.layers {
            let Layer { q, k, v, o, gate, up, down, .. } = layer;
            for linear in [q, k, v, o, gate, up, down] {
                linear.adapter = linear.adapter.as_ref().map(|adapter| change(adapter, index));
                index += 1;
            }
        }
        model
    }

    /// Returns the model for a training step, with dropout on the inputs of its adapters, drawn from `key`.
    pub fn with_dropout(&self, rate: f64, key: u64) -> Self {
        self.with_adapters(|adapter, index| adapter.with_dropout(rate, splitmix64(key ^ splitmix64(index))))
    }

    /// Returns the model without gradients of its adapters, so that intermediate results are freed at once. It shares their
    /// values and is always up to date.
    pub fn for_inference(&self) -> Self {
        self.with_adapters(|adapter, _| adapter.detached())
    }

    /// Returns the adapted matrices with their adapters added, by checkpoint name.
    ///
    /// # Errors
    /// A tensor operation that fails.
    pub fn merged(&self) -> TensorResult<Vec<(String, Tensor)>> {
        let mut merged = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let all = [
                ("self_attn.q_proj", &layer.q),
                ("self_attn.k_proj", &layer.k),
                ("self_attn.v_proj", &layer.v),
                ("self_attn.o_proj", &layer.o),
                ("mlp.gate_proj", &layer.gate),
                ("mlp.up_proj", &layer.up),
                ("mlp.down_proj", &layer.down),
            ];
            for (name, linear) in all {
                if let Some(adapter) = &linear.adapter {
                    let weight = (&linear.weight + adapter.delta()?)?;
                    merged.push((format!("model.layers.{index}.{name}.weight"), weight));
                }
            }
        }
        Ok(merged)
    }
}
