//! Construction of a decoder: fresh for training from scratch, or from a checkpoint with adapters.
use candle_core::{DType, Device, Tensor};

use super::Decoder;
use super::linear::Linear;
use super::model::Layer;
use crate::TrainError;
use crate::adapter::{Adapter, AdapterSettings};
use crate::parameters::{Parameters, normal};
use earnest_models::checkpoint::{BlockLayout, DecoderConfig, Norm, QkNorm};

/// Standard deviation of fresh weights of a matrix with `inputs` columns, which keeps the scale of activations. GPT-2's 0.02
/// corresponds to a width of 2,500; at the widths of number models it leaves attention uniform for hundreds of steps.
/// Projections that write to the residual stream are scaled down by the number of layers.
pub(crate) fn init_std(inputs: usize) -> f64 {
    1.0 / (inputs as f64).sqrt()
}

/// Name of the embedding table in a checkpoint.
pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";

/// Source of a model's tensors.
enum TensorSource<'a> {
    /// Random initialisation; all tensors are trained.
    Fresh { seed: u64, parameters: &'a mut Parameters },
    /// Tensors of a checkpoint; only adapters are trained.
    Loaded {
        tensor: &'a mut dyn FnMut(&str) -> Result<Tensor, TrainError>,
        adapters: &'a AdapterSettings,
        seed: u64,
        parameters: &'a mut Parameters,
    },
}

impl Decoder {
    /// Creates a model with fresh weights; every tensor is added to `parameters` under its checkpoint name.
    ///
    /// # Errors
    /// [`TrainError::Architecture`] for a decoder with parts that cannot be differentiated.
    pub fn fresh(
        config: &DecoderConfig,
        seed: u64,
        parameters: &mut Parameters,
        device: &Device,
    ) -> Result<Self, TrainError> {
        Self::build(config, TensorSource::Fresh { seed, parameters }, device)
    }

    /// Creates a model with the tensors of a checkpoint, by name, and fresh adapters, which alone are added to `parameters`.
    ///
    /// # Errors
    /// [`TrainError::Architecture`], [`TrainError::Setting`] and the errors of `tensor`.
    pub fn adapted(
        config: &DecoderConfig,
        tensor: &mut dyn FnMut(&str) -> Result<Tensor, TrainError>,
        adapters: &AdapterSettings,
        seed: u64,
        parameters: &mut Parameters,
        device: &Device,
    ) -> Result<Self, TrainError> {
        adapters.check()?;
        Self::build(config, TensorSource::Loaded { tensor, adapters, seed, parameters }, device)
    }

    fn build(config: &DecoderConfig, mut source: TensorSource<'_>, device: &Device) -> Result<Self, TrainError> {
        let eps = check_differentiable(config)?;
        let frozen = matches!(source, TensorSource::Loaded { .. });
        let c = config;
        let (unscaled, residual) = (1.0, 1.0 / (2.0 * c.layers.len() as f64).sqrt());
        let (q_rows, kv_rows) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
        let mut layers = Vec::with_capacity(c.layers.len());
        let embedding = source.tensor(EMBEDDING, &[c.vocab_size, c.hidden_size], init_std(c.hidden_size), device)?;
        for (index, &layer) in c.layers.iter().enumerate() {
            let prefix = format!("model.layers.{index}");
            let mut norm = |name: &str, width| source.ones(&format!("{prefix}.{name}.weight"), width, device);
            let attention_norm = norm("input_layernorm", c.hidden_size)?;
            // `post_attention_layernorm` is the norm before the feed-forward block, except where both exist.
            let sandwich = c.block == BlockLayout::Sandwich;
            let before_mlp = if sandwich { "pre_feedforward_layernorm" } else { "post_attention_layernorm" };
            let mlp_norm = norm(before_mlp, c.hidden_size)?;
            let after_norms = match sandwich {
                true => Some([
                    norm("post_attention_layernorm", c.hidden_size)?,
                    norm("post_feedforward_layernorm", c.hidden_size)?,
                ]),
                false => None,
            };
            let qk_norms = match c.qk_norm {
                QkNorm::Head => Some([norm("self_attn.q_norm", c.head_dim)?, norm("self_attn.k_norm", c.head_dim)?]),
                // Checked above: there are no other norms.
                _ => None,
            };
            let mut linear = |name: &str, shape: (usize, usize), scale: f64, bias: bool| {
                source.linear(&format!("{prefix}.{name}"), shape, scale * init_std(shape.1), bias, device)
            };
            layers.push(Layer {
                config: layer,
                attention_norm,
                mlp_norm,
                qk_norms,
                after_norms,
                q: linear("self_attn.q_proj", (q_rows, c.hidden_size), unscaled, c.qkv_bias)?,
                k: linear("self_attn.k_proj", (kv_rows, c.hidden_size), unscaled, c.qkv_bias)?,
                v: linear("self_attn.v_proj", (kv_rows, c.hidden_size), unscaled, c.qkv_bias)?,
                o: linear("self_attn.o_proj", (c.hidden_size, q_rows), residual, c.output_bias)?,
                gate: linear("mlp.gate_proj", (c.intermediate_size, c.hidden_size), unscaled, c.mlp_bias)?,
                up: linear("mlp.up_proj", (c.intermediate_size, c.hidden_size), unscaled, c.mlp_bias)?,
                down: linear("mlp.down_proj", (c.hidden_size, c.intermediate_size), residual, c.mlp_bias)?,
            });
        }
        let norm = source.ones("model.norm.weight", c.hidden_size, device)?;
        let head = match c.tied_embeddings {
            true => None,
            false => Some(source.tensor(
                "lm_head.weight",
                &[c.vocab_size, c.hidden_size],
                init_std(c.hidden_size),
                device,
            )?),
        };
        Ok(Decoder {
            config: config.clone(),
            eps,
            embedding,
            layers,
            norm,
            head,
            frozen,
            shares_prefix: frozen,
            device: device.clone(),
        })
    }
}

/// Checks that all parts of the decoder can be differentiated; returns the epsilon of its norms.
fn check_differentiable(c: &DecoderConfig) -> Result<f32, TrainError> {
    let unsupported = |part: &'static str| Err(TrainError::Architecture { architecture: c.architecture.clone(), part });
    if let Some(feature) = c.recent_feature() {
        return unsupported(feature);
    }
    let Norm::Rms { eps } = c.norm else { return unsupported("a layer norm") };
    if c.block == BlockLayout::Parallel {
        return unsupported("the placement of its norms");
    }
    if !c.gated {
        return unsupported("a feed-forward block without a gate");
    }
    if c.experts.is_some() {
        return unsupported("a mixture of experts");
    }
    if c.head_bias {
        return unsupported("a bias in the output head");
    }
    Ok(eps)
}

impl TensorSource<'_> {
    fn tensor(&mut self, name: &str, shape: &[usize], std: f64, device: &Device) -> Result<Tensor, TrainError> {
        match self {
            TensorSource::Fresh { seed, parameters } => {
                Ok(parameters.insert(name, &normal(*seed, name, shape, std, device)?)?)
            }
            TensorSource::Loaded { tensor, .. } => tensor(name),
        }
    }

    fn ones(&mut self, name: &str, width: usize, device: &Device) -> Result<Tensor, TrainError> {
        match self {
            TensorSource::Fresh { parameters, .. } => {
                Ok(parameters.insert(name, &Tensor::ones(width, DType::F32, device)?)?)
            }
            TensorSource::Loaded { tensor, .. } => tensor(name),
        }
    }

    fn linear(
        &mut self,
        name: &str,
        shape: (usize, usize),
        std: f64,
        bias: bool,
        device: &Device,
    ) -> Result<Linear, TrainError> {
        let weight = self.tensor(&format!("{name}.weight"), &[shape.0, shape.1], std, device)?;
        let bias = match bias {
            true => Some(self.tensor(&format!("{name}.bias"), &[shape.0], 0.0, device)?),
            false => None,
        };
        let adapter = match self {
            TensorSource::Loaded { adapters, seed, parameters, .. }
                if adapters.targets.iter().any(|target| name.ends_with(target.as_str())) =>
            {
                Some(Adapter::new(adapters, name, shape, *seed, parameters, device)?)
            }
            _ => None,
        };
        Ok(Linear { weight, bias, adapter, frozen: matches!(self, TensorSource::Loaded { .. }) })
    }
}
