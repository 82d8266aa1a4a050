//! A decoder that can be differentiated: the Llama architecture, with rotary, no or linear-bias positions.
use candle_core::{D, Device, Result as TensorResult, Tensor};

use super::TrainError;
use super::adapter::{Adapter, AdapterSettings, mixed};
use super::batch::Batch;
use super::frozen;
use super::fused::{self, AttentionShape};
use super::norm::rms_norm;
use super::parameters::{Parameters, normal};
use super::positions::{RotaryTable, mask};
use earnest_models::checkpoint::{Activation, BlockLayout, DecoderConfig, LayerConfig, Norm, Position, alibi_slopes};

/// Deviation of fresh weights of a matrix with so many inputs, so that what comes out is as large as what goes in. GPT-2's 0.02
/// is this at a width of 2,500; at the widths of number models it leaves attention uniform for hundreds of steps.
/// Projections that write to the residual stream get less, by the number of layers.
pub(super) fn deviation(inputs: usize) -> f64 {
    1.0 / (inputs as f64).sqrt()
}

/// The embedding table's name in a checkpoint.
pub(super) const EMBEDDING: &str = "model.embed_tokens.weight";

/// A matrix product with an optional bias and an optional adapter.
#[derive(Debug, Clone)]
struct Linear {
    /// `[out, in]`, as checkpoints store it.
    weight: Tensor,
    bias: Option<Tensor>,
    adapter: Option<Adapter>,
    /// The matrix is not trained, so no gradient of it is computed.
    frozen: bool,
}

impl Linear {
    /// `x` is `[rows, in]`.
    fn forward(&self, x: &Tensor) -> TensorResult<Tensor> {
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

#[derive(Debug, Clone)]
struct Layer {
    config: LayerConfig,
    attention_norm: Tensor,
    mlp_norm: Tensor,
    /// Norms of every query and key head.
    qk_norms: Option<[Tensor; 2]>,
    /// Norms of what attention and the feed-forward block write (Gemma 2 and 3).
    after_norms: Option<[Tensor; 2]>,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Decoder {
    config: DecoderConfig,
    eps: f32,
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Option<Tensor>,
    /// Only adapters are trained.
    frozen: bool,
    /// Columns that all examples of a batch share are computed once. It rounds differently, so models from scratch, whose
    /// trainings are to repeat those of earlier versions, go without.
    shares: bool,
    device: Device,
}

/// Where the tensors of a model come from.
enum Source<'a> {
    /// Drawn, and all of them trained.
    Fresh { seed: u64, parameters: &'a mut Parameters },
    /// Given, and only adapters trained.
    Loaded {
        tensor: &'a mut dyn FnMut(&str) -> Result<Tensor, TrainError>,
        adapters: &'a AdapterSettings,
        seed: u64,
        parameters: &'a mut Parameters,
    },
}

impl Decoder {
    /// A model with fresh weights; every tensor is added to the parameters under its name in a checkpoint.
    ///
    /// # Errors
    /// [`TrainError::Architecture`] for a decoder with parts that are not differentiated here.
    pub fn fresh(
        config: &DecoderConfig,
        seed: u64,
        parameters: &mut Parameters,
        device: &Device,
    ) -> Result<Self, TrainError> {
        Self::build(config, Source::Fresh { seed, parameters }, device)
    }

    /// A model with the tensors of a checkpoint, by their names there, and fresh adapters; only those are parameters.
    ///
    /// # Errors
    /// [`TrainError::Architecture`], and what `tensor` says.
    pub fn adapted(
        config: &DecoderConfig,
        tensor: &mut dyn FnMut(&str) -> Result<Tensor, TrainError>,
        adapters: &AdapterSettings,
        seed: u64,
        parameters: &mut Parameters,
        device: &Device,
    ) -> Result<Self, TrainError> {
        adapters.check()?;
        Self::build(config, Source::Loaded { tensor, adapters, seed, parameters }, device)
    }

    fn build(config: &DecoderConfig, mut source: Source<'_>, device: &Device) -> Result<Self, TrainError> {
        let eps = differentiable(config)?;
        let frozen = matches!(source, Source::Loaded { .. });
        let c = config;
        let (full, residual) = (1.0, 1.0 / (2.0 * c.layers.len() as f64).sqrt());
        let (q_rows, kv_rows) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
        let mut layers = Vec::with_capacity(c.layers.len());
        let embedding = source.tensor(EMBEDDING, &[c.vocab_size, c.hidden_size], deviation(c.hidden_size), device)?;
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
                true => Some([norm("self_attn.q_norm", c.head_dim)?, norm("self_attn.k_norm", c.head_dim)?]),
                false => None,
            };
            let mut linear = |name: &str, shape: (usize, usize), part: f64, bias: bool| {
                source.linear(&format!("{prefix}.{name}"), shape, part * deviation(shape.1), bias, device)
            };
            layers.push(Layer {
                config: layer,
                attention_norm,
                mlp_norm,
                qk_norms,
                after_norms,
                q: linear("self_attn.q_proj", (q_rows, c.hidden_size), full, c.qkv_bias)?,
                k: linear("self_attn.k_proj", (kv_rows, c.hidden_size), full, c.qkv_bias)?,
                v: linear("self_attn.v_proj", (kv_rows, c.hidden_size), full, c.qkv_bias)?,
                o: linear("self_attn.o_proj", (c.hidden_size, q_rows), residual, c.output_bias)?,
                gate: linear("mlp.gate_proj", (c.intermediate_size, c.hidden_size), full, c.mlp_bias)?,
                up: linear("mlp.up_proj", (c.intermediate_size, c.hidden_size), full, c.mlp_bias)?,
                down: linear("mlp.down_proj", (c.hidden_size, c.intermediate_size), residual, c.mlp_bias)?,
            });
        }
        let norm = source.ones("model.norm.weight", c.hidden_size, device)?;
        let head = match c.tied_embeddings {
            true => None,
            false => Some(source.tensor(
                "lm_head.weight",
                &[c.vocab_size, c.hidden_size],
                deviation(c.hidden_size),
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
            shares: frozen,
            device: device.clone(),
        })
    }

    /// What the decoder computes.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Logits of the tokens that follow the learnt places of a batch, `[targets, vocabulary]`.
    ///
    /// # Errors
    /// A tensor operation that fails.
    pub fn logits(&self, batch: &Batch) -> TensorResult<Tensor> {
        let hidden = self.hidden(batch)?;
        // Only what is learnt reaches the head.
        let chosen = rms_norm(&hidden.index_select(&batch.places, 0)?, &self.norm, self.eps)?;
        let head = self.head.as_ref().unwrap_or(&self.embedding);
        let logits = if self.frozen { frozen::product(&chosen, head)? } else { chosen.matmul(&head.t()?)? };
        match self.config.final_softcap {
            Some(cap) => soft_capped(&logits, cap),
            None => Ok(logits),
        }
    }

    /// The residual stream after the last layer from column `first` on, `[examples * (length - first), hidden]`.
    fn hidden(&self, batch: &Batch) -> TensorResult<Tensor> {
        let (examples, length) = batch.ids.dims2()?;
        let rows = Rows { examples, length, shared: if self.shares { batch.shared } else { 0 } };
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
            // The last layer is half of a small model, and most of its rows are a prompt's that nobody reads.
            let first = (index + 1 == self.layers.len()).then_some(batch.first);
            let h = rms_norm(&x, &layer.attention_norm, self.eps)?;
            let mut attended = self.attention(layer, &h, rows, first, &ropes)?;
            if let Some([after, _]) = &layer.after_norms {
                attended = rms_norm(&attended, after, self.eps)?;
            }
            x = (rows.asking(&x, first)? + attended)?;
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

    /// The activation of the gate times the other.
    fn gated(&self, gate: &Tensor, up: &Tensor) -> TensorResult<Tensor> {
        match self.config.activation {
            Activation::Silu if self.device.is_cpu() => fused::swiglu(gate, up),
            Activation::Silu => gate.silu()? * up,
            Activation::GeluTanh => gate.gelu()? * up,
            Activation::GeluErf => gate.gelu_erf()? * up,
        }
    }

    /// `h` has the rows that are computed; the result those that ask: all of them, or those of the examples from column `first`
    /// on.
    fn attention(
        &self,
        layer: &Layer,
        h: &Tensor,
        rows: Rows,
        first: Option<usize>,
        ropes: &[RotaryTable],
    ) -> TensorResult<Tensor> {
        let asking = rows.asking(h, first)?;
        let (mut q, mut k, v) = (layer.q.forward(&asking)?, layer.k.forward(h)?, layer.v.forward(h)?);
        if let Some([of_q, of_k]) = &layer.qk_norms {
            let by_head = |x: &Tensor, norm: &Tensor| {
                rms_norm(&x.reshape(((), self.config.head_dim))?, norm, self.eps)?.reshape(x.shape())
            };
            (q, k) = (by_head(&q, of_q)?, by_head(&k, of_k)?);
        }
        let Rows { examples, length, shared } = rows;
        let out = if shared == 0 {
            self.attended(layer, [q, k, v], (examples, length, first.unwrap_or(0)), ropes)?
        } else {
            // The shared columns ask themselves; what follows asks them and its own example.
            let whole = [rows.spread(&k)?, rows.spread(&v)?];
            let [all_k, all_v] = whole;
            match first {
                Some(first) => self.attended(layer, [q, all_k, all_v], (examples, length, first), ropes)?,
                None => {
                    let head = |x: &Tensor| x.narrow(0, 0, shared)?.contiguous();
                    let own = q.narrow(0, shared, q.dim(0)? - shared)?.contiguous()?;
                    let begun = self.attended(layer, [head(&q)?, head(&k)?, head(&v)?], (1, shared, 0), ropes)?;
                    let rest = self.attended(layer, [own, all_k, all_v], (examples, length, shared), ropes)?;
                    Tensor::cat(&[begun, rest], 0)?
                }
            }
        };
        layer.o.forward(&out)
    }

    /// Attention of the queries from column `first` on: `q` is `[examples * (length - first), heads * head_dim]`.
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
                Position::None | Position::Alibi => None,
            },
            slopes: (layer.config.position == Position::Alibi).then(|| alibi_slopes(c.num_heads)),
            window: layer.config.window,
        };
        fused::attention(&q, &k, &v, shape)
    }

    /// Attention of tensor operations, for every device.
    fn composed_attention(
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
            Position::None => None,
            Position::Alibi => Some(alibi_slopes(c.num_heads)),
        };
        let mask = mask(length, slopes.as_deref(), layer.config.window, &self.device)?.narrow(1, first, queries)?;
        // The heads of a group stand one below the other, so that keys are not repeated.
        let q = q.reshape((examples, c.num_kv_heads, group * queries, c.head_dim))?;
        let mut scores = (q.matmul(&k.transpose(2, 3)?.contiguous()?)? * f64::from(c.attention_scale))?;
        if let Some(cap) = c.attention_softcap {
            scores = soft_capped(&scores, cap)?;
        }
        let scores = scores.reshape((examples, c.num_heads, queries, length))?.broadcast_add(&mask)?;
        let weights = softmax(&scores)?.reshape((examples, c.num_kv_heads, group * queries, length))?;
        let out = weights.matmul(&v)?.reshape((examples, c.num_heads, queries, c.head_dim))?;
        out.transpose(1, 2)?.reshape((examples * queries, c.num_heads * c.head_dim))
    }

    /// The same model with other adapters; everything is shared. The number counts the adapters.
    fn with_adapters(&self, change: impl Fn(&Adapter, u64) -> Adapter) -> Self {
        let mut model = self.clone();
        let mut number = 0;
        for layer in &mut model.layers {
            let Layer { q, k, v, o, gate, up, down, .. } = layer;
            for linear in [q, k, v, o, gate, up, down] {
                linear.adapter = linear.adapter.as_ref().map(|adapter| change(adapter, number));
                number += 1;
            }
        }
        model
    }

    /// The same model for a training step: adapters leave this share of their inputs out, which ones depends on the key.
    pub fn with_dropout(&self, rate: f64, key: u64) -> Self {
        self.with_adapters(|adapter, number| adapter.with_dropout(rate, mixed(key ^ mixed(number))))
    }

    /// The same model without gradients of its adapters: what it computes is forgotten at once. It shares their numbers and
    /// so is always up to date.
    pub fn for_use(&self) -> Self {
        self.with_adapters(|adapter, _| adapter.detached())
    }

    /// The adapted matrices with their adapters added, by the names of their modules.
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

/// Which rows of a batch are computed: first the shared columns, once, then those after them of every example.
#[derive(Debug, Clone, Copy)]
struct Rows {
    examples: usize,
    length: usize,
    shared: usize,
}

impl Rows {
    /// The ids of the rows, of `[examples, length]`.
    fn ids(self, ids: &Tensor) -> TensorResult<Tensor> {
        if self.shared == 0 {
            return ids.flatten_all();
        }
        let begun = ids.narrow(0, 0, 1)?.narrow(1, 0, self.shared)?.flatten_all()?;
        let rest = ids.narrow(1, self.shared, self.length - self.shared)?.flatten_all()?;
        Tensor::cat(&[begun, rest], 0)
    }

    /// The rows of the examples from column `first` on; without one, all.
    fn asking(self, x: &Tensor, first: Option<usize>) -> TensorResult<Tensor> {
        let Some(first) = first.filter(|first| *first > 0) else { return Ok(x.clone()) };
        let (width, own) = (x.dim(1)?, self.length - self.shared);
        let examples = x.narrow(0, self.shared, self.examples * own)?.reshape((self.examples, own, width))?;
        let kept = examples.narrow(1, first - self.shared, self.length - first)?;
        kept.contiguous()?.reshape((self.examples * (self.length - first), width))
    }

    /// Every example's rows after each other, the shared ones repeated: `[examples * length, width]`.
    fn spread(self, x: &Tensor) -> TensorResult<Tensor> {
        let own = self.length - self.shared;
        let row = |example: usize, at: usize| if at < self.shared { at } else { example * own + at };
        let places: Vec<u32> =
            (0..self.examples).flat_map(|example| (0..self.length).map(move |at| row(example, at) as u32)).collect();
        x.index_select(&Tensor::new(places, x.device())?, 0)
    }
}

/// `cap * tanh(x / cap)`
fn soft_capped(x: &Tensor, cap: f32) -> TensorResult<Tensor> {
    (x / f64::from(cap))?.tanh()? * f64::from(cap)
}

/// Over the last dimension.
fn softmax(x: &Tensor) -> TensorResult<Tensor> {
    let shifted = x.broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?.exp()?;
    shifted.broadcast_div(&shifted.sum_keepdim(D::Minus1)?)
}

/// The norm's epsilon, if everything in the description can be differentiated here.
fn differentiable(c: &DecoderConfig) -> Result<f32, TrainError> {
    let no = |part: &'static str| Err(TrainError::Architecture { architecture: c.architecture.clone(), part });
    let Norm::Rms { eps } = c.norm else { return no("a layer norm") };
    if c.block == BlockLayout::Parallel {
        return no("its arrangement of norms");
    }
    if !c.gated {
        return no("a feed-forward block without a gate");
    }
    if c.experts.is_some() {
        return no("a mixture of experts");
    }
    if c.head_bias {
        return no("a bias of the head");
    }
    Ok(eps)
}

impl Source<'_> {
    fn tensor(&mut self, name: &str, shape: &[usize], deviation: f64, device: &Device) -> Result<Tensor, TrainError> {
        match self {
            Source::Fresh { seed, parameters } => {
                Ok(parameters.insert(name, &normal(*seed, name, shape, deviation, device)?)?)
            }
            Source::Loaded { tensor, .. } => tensor(name),
        }
    }

    fn ones(&mut self, name: &str, width: usize, device: &Device) -> Result<Tensor, TrainError> {
        match self {
            Source::Fresh { parameters, .. } => {
                Ok(parameters.insert(name, &Tensor::ones(width, candle_core::DType::F32, device)?)?)
            }
            Source::Loaded { tensor, .. } => tensor(name),
        }
    }

    fn linear(
        &mut self,
        name: &str,
        shape: (usize, usize),
        deviation: f64,
        bias: bool,
        device: &Device,
    ) -> Result<Linear, TrainError> {
        let weight = self.tensor(&format!("{name}.weight"), &[shape.0, shape.1], deviation, device)?;
        let bias = match bias {
            true => Some(self.tensor(&format!("{name}.bias"), &[shape.0], 0.0, device)?),
            false => None,
        };
        let adapter = match self {
            Source::Loaded { adapters, seed, parameters, .. }
                if adapters.targets.iter().any(|target| name.ends_with(target.as_str())) =>
            {
                Some(Adapter::new(adapters, name, shape, *seed, parameters, device)?)
            }
            _ => None,
        };
        Ok(Linear { weight, bias, adapter, frozen: matches!(self, Source::Loaded { .. }) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AdamW, AdamWSettings, Example, Gradients, PositionEncoding, Size, answer_loss, answer_scores};
    use super::*;

    const TINY: Size = Size { layers: 2, hidden: 16, intermediate: 24, heads: 4, kv_heads: 2 };

    fn examples() -> Vec<Example> {
        let example = |ids: &[u32], prompt| Example { ids: ids.to_vec(), prompt };
        vec![example(&[1, 5, 9, 3, 2], 3), example(&[1, 4, 4, 8, 6, 7, 2], 4), example(&[1, 2], 1)]
    }

    fn loss(decoder: &Decoder, batch: &Batch) -> Tensor {
        (answer_loss(&decoder.logits(batch).unwrap(), batch).unwrap() / batch.targets() as f64).unwrap()
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for encoding in [PositionEncoding::Rope, PositionEncoding::Nope, PositionEncoding::Alibi] {
            let mut parameters = Parameters::default();
            let config = TINY.decoder(11, 32, encoding);
            let decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
            // Weights of ordinary size: with the small ones of a fresh model, every gradient drowns in rounding.
            for (name, variable) in parameters.iter() {
                let draw = normal(9, name, variable.dims(), 0.4, &Device::Cpu).unwrap();
                let base = if variable.dims().len() == 1 { 1.0 } else { 0.0 };
                variable.set(&(draw + base).unwrap()).unwrap();
            }
            let batch = Batch::new(&examples(), 0, &Device::Cpu).unwrap();
            let gradients = loss(&decoder, &batch).backward().unwrap();
            for (name, variable) in parameters.iter() {
                let gradient =
                    gradients.get(variable.as_tensor()).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
                let values = variable.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                // Along the gradient itself: the difference is then as large as it can be.
                let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
                let step = 2e-3;
                let moved = |sign: f64| {
                    let along = |(v, g): (&f32, &f32)| (f64::from(*v) + sign * step * f64::from(*g) / norm) as f32;
                    let values: Vec<f32> = values.iter().zip(&gradient).map(along).collect();
                    variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
                    f64::from(loss(&decoder, &batch).to_scalar::<f32>().unwrap())
                };
                let slope = (moved(1.0) - moved(-1.0)) / (2.0 * step);
                variable.set(&Tensor::from_vec(values.clone(), variable.shape(), &Device::Cpu).unwrap()).unwrap();
                assert!((slope - norm).abs() < 0.01 * norm + 2e-3, "{encoding:?} {name}: {slope} and {norm}");
            }
        }
    }

    #[test]
    fn the_fused_attention_is_the_composed_one() {
        for (encoding, window) in [
            (PositionEncoding::Rope, None),
            (PositionEncoding::Rope, Some(3)),
            (PositionEncoding::Nope, None),
            (PositionEncoding::Alibi, None),
        ] {
            let mut parameters = Parameters::default();
            let mut config = TINY.decoder(11, 32, encoding);
            config.layers.iter_mut().for_each(|layer| layer.window = window);
            let decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
            let (examples, length, first) = (3, 7, 2);
            let draw = |name, rows, width| {
                let drawn = normal(4, name, &[rows, width], 1.0, &Device::Cpu).unwrap();
                candle_core::Var::from_tensor(&drawn).unwrap()
            };
            let q = draw("q", examples * (length - first), 16);
            let (k, v) = (draw("k", examples * length, 8), draw("v", examples * length, 8));
            let weights = draw("w", examples * (length - first), 16);
            let layer = &decoder.layers[0];
            let rope = RotaryTable::new(&config.ropes[0], length, &Device::Cpu).unwrap();
            let all = || [&q, &k, &v].map(|x| x.as_tensor().clone());
            let composed = decoder
                .composed_attention(layer, all(), (examples, length, first), std::slice::from_ref(&rope))
                .unwrap();
            let shape = AttentionShape {
                length,
                first,
                heads: 4,
                kv_heads: 2,
                head_dim: 4,
                scale: config.attention_scale,
                rotation: (encoding == PositionEncoding::Rope).then(|| rope.values().unwrap()),
                slopes: (encoding == PositionEncoding::Alibi).then(|| alibi_slopes(4)),
                window,
            };
            let fused = fused::attention(q.as_tensor(), k.as_tensor(), v.as_tensor(), shape).unwrap();
            let flat = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let near = |a: &Tensor, b: &Tensor, what: &str| {
                for (a, b) in flat(a).iter().zip(flat(b)) {
                    assert!((a - b).abs() < 1e-5, "{encoding:?} {window:?} {what}: {a} {b}");
                }
            };
            near(&fused, &composed, "values");
            let slopes = |out: &Tensor| (out * weights.as_tensor()).unwrap().sum_all().unwrap().backward().unwrap();
            let (of_fused, of_composed) = (slopes(&fused), slopes(&composed));
            for (name, x) in [("q", &q), ("k", &k), ("v", &v)] {
                near(of_fused.get(x.as_tensor()).unwrap(), of_composed.get(x.as_tensor()).unwrap(), name);
            }
        }
    }

    #[test]
    fn padding_and_neighbours_change_nothing() {
        let mut parameters = Parameters::default();
        let decoder =
            Decoder::fresh(&TINY.decoder(11, 32, PositionEncoding::Rope), 3, &mut parameters, &Device::Cpu).unwrap();
        let all = examples();
        let together = decoder.logits(&Batch::new(&all, 0, &Device::Cpu).unwrap()).unwrap().to_vec2::<f32>().unwrap();
        let alone: Vec<Vec<f32>> = all
            .iter()
            .flat_map(|example| {
                let batch = Batch::new(std::slice::from_ref(example), 7, &Device::Cpu).unwrap();
                decoder.logits(&batch).unwrap().to_vec2::<f32>().unwrap()
            })
            .collect();
        assert_eq!(together.len(), alone.len());
        for (a, b) in together.iter().flatten().zip(alone.iter().flatten()) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }

    #[test]
    fn shared_columns_are_computed_once_and_change_nothing() {
        let example = |ids: &[u32], prompt| Example { ids: ids.to_vec(), prompt };
        let all = vec![
            example(&[1, 5, 9, 3, 8, 6, 2], 5),
            example(&[1, 5, 9, 4, 4, 10, 6, 7, 2], 7),
            example(&[1, 5, 9, 3, 2], 4),
        ];
        for encoding in [PositionEncoding::Rope, PositionEncoding::Alibi] {
            let mut parameters = Parameters::default();
            let mut config = TINY.decoder(11, 32, encoding);
            config.layers[1].window = Some(4);
            let mut decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
            decoder.shares = true;
            let together = Batch::new(&all, 0, &Device::Cpu).unwrap();
            assert_eq!((together.shared, together.first), (3, 3));
            let alone: Vec<Batch> =
                all.iter().map(|one| Batch::new(std::slice::from_ref(one), 0, &Device::Cpu).unwrap()).collect();
            let flat = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let near = |ours: &[f32], theirs: &[f32], what: &str| {
                assert_eq!(ours.len(), theirs.len());
                assert!(ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < 1e-4), "{encoding:?} {what}");
            };
            let apart: Vec<f32> = alone.iter().flat_map(|batch| flat(&decoder.logits(batch).unwrap())).collect();
            near(&flat(&decoder.logits(&together).unwrap()), &apart, "logits");
            let gradients = |batch: &Batch| {
                let loss = answer_loss(&decoder.logits(batch).unwrap(), batch).unwrap();
                Gradients::of(&loss, &parameters).unwrap()
            };
            let whole = gradients(&together);
            let mut sum = Gradients::default();
            for batch in &alone {
                sum.add(gradients(batch)).unwrap();
            }
            for (name, _) in parameters.iter() {
                near(&flat(whole.get(name).unwrap()), &flat(sum.get(name).unwrap()), name);
            }
        }
    }

    #[test]
    fn a_small_model_learns_by_heart_and_repeats_from_its_seed() {
        let run = || {
            let mut parameters = Parameters::default();
            let config = TINY.decoder(11, 32, PositionEncoding::Rope);
            let decoder = Decoder::fresh(&config, 3, &mut parameters, &Device::Cpu).unwrap();
            let mut optimiser = AdamW::new(AdamWSettings::default());
            let batch = Batch::new(&examples(), 0, &Device::Cpu).unwrap();
            let mut losses = Vec::new();
            for _ in 0..150 {
                let loss = loss(&decoder, &batch);
                losses.push(loss.to_scalar::<f32>().unwrap());
                optimiser.step(&parameters, &Gradients::of(&loss, &parameters).unwrap(), 0.01).unwrap();
            }
            (losses, answer_scores(&decoder.logits(&batch).unwrap(), &batch).unwrap())
        };
        let (losses, exact) = run();
        assert!(losses[0] > 2.0 && losses[149] < 0.05, "{} {}", losses[0], losses[149]);
        assert_eq!(exact, [true, true, true]);
        assert_eq!(run().0, losses);
    }

    #[test]
    fn adapters_begin_as_nothing_and_merge() {
        let mut whole = Parameters::default();
        let config = TINY.decoder(11, 32, PositionEncoding::Rope);
        let loaded = Decoder::fresh(&config, 3, &mut whole, &Device::Cpu).unwrap();
        let settings =
            AdapterSettings { rank: 2, alpha: 4.0, targets: vec!["q_proj".into(), "down_proj".into()], dropout: 0.0 };
        let mut trained = Parameters::default();
        let mut tensor = |name: &str| Ok(whole.get(name).unwrap().as_tensor().detach());
        let adapted = Decoder::adapted(&config, &mut tensor, &settings, 5, &mut trained, &Device::Cpu).unwrap();
        assert_eq!(trained.iter().count(), 8, "two factors of two matrices in two layers");
        let batch = Batch::new(&examples(), 0, &Device::Cpu).unwrap();
        let logits = |decoder: &Decoder| decoder.logits(&batch).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(logits(&loaded), logits(&adapted));
        let mut optimiser = AdamW::new(AdamWSettings::default());
        for _ in 0..30 {
            let gradients = Gradients::of(&loss(&adapted, &batch), &trained).unwrap();
            optimiser.step(&trained, &gradients, 0.05).unwrap();
        }
        let unmerged = logits(&adapted);
        assert_ne!(unmerged, logits(&loaded));
        for (name, weight) in adapted.merged().unwrap() {
            whole.get(&name).unwrap().set(&weight).unwrap();
        }
        for (a, b) in logits(&loaded).iter().flatten().zip(unmerged.iter().flatten()) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }

    #[test]
    fn what_can_not_be_differentiated_is_named() {
        let mut config = TINY.decoder(11, 32, PositionEncoding::Rope);
        config.head_bias = true;
        let failed = Decoder::fresh(&config, 1, &mut Parameters::default(), &Device::Cpu).unwrap_err();
        assert!(failed.to_string().contains("a bias of the head"), "{failed}");
    }
}
