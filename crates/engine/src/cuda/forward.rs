//! The layers of a step, from embeddings to the residual stream after the last one.

use super::attention_plan::AttentionPlan;
use super::device::{Address, Argument, DeviceError, Element, Out};
use super::executor::Executor;
use super::kernels::{WIDE_THREADS, attention_shared, tall_threads};
use super::launches::row_shared;
use super::memory::RopeTables;
use super::packing::StepAddresses;
use super::weights::{FeedForward, LayerWeights, MlpWeights, NormWeights};
use earnest_models::checkpoint::{Activation, BlockLayout, Norm, Position, QkNorm};

/// What a block left to be added to the residual stream.
#[derive(Clone, Copy, Default)]
struct Pending {
    /// The block's output lies in the buffer of branches; else it was added, without its bias.
    branch: bool,
    bias: Address,
    /// Norm of the branch.
    norm: NormWeights,
}

impl Executor {
    /// Computes all layers of a step with `m` tokens.
    ///
    /// # Safety
    /// The addresses are those of the step's numbers, which were made for the sizes of the buffers.
    pub(super) unsafe fn layers(
        &self,
        m: usize,
        plan: &AttentionPlan,
        at: &StepAddresses,
        slot: usize,
    ) -> Result<(), DeviceError> {
        let (c, b, w) = (&self.config, &self.buffers, &self.weights);
        let embedding = &w.embedding.parts[0];
        let arguments = [
            embedding.at.into(),
            (embedding.kind.number() as i32).into(),
            (c.hidden_size as i32).into(),
            at.token_ids.into(),
            b.sampled[1 - slot].into(),
            c.embedding_scale.into(),
            b.x.into(),
        ];
        let mut pending = Pending::default();
        // SAFETY: by the caller.
        unsafe {
            self.device.launch(self.kernels.embed, [m, 1, 1], 256, 0, &arguments)?;
            for (i, layer) in w.layers.iter().enumerate() {
                self.layer(i, layer, m, plan, at, &mut pending)?;
            }
            self.settle(&mut pending, m)
        }
    }

    unsafe fn layer(
        &self,
        i: usize,
        w: &LayerWeights,
        m: usize,
        plan: &AttentionPlan,
        at: &StepAddresses,
        pending: &mut Pending,
    ) -> Result<(), DeviceError> {
        let (c, b, d) = (&self.config, &self.buffers, &*self.device);
        // Blocks are added to the residual stream as they are.
        let plain = matches!(c.block, BlockLayout::PreNorm | BlockLayout::Parallel) && c.residual_scale == 1.0;
        let (to, out) = if plain { (b.x, Out::Add) } else { (b.branch, Out::Floats) };
        // SAFETY: by the caller.
        unsafe {
            self.next_input(pending, w.attention_norm, m)?;
            self.products.run(d, &w.qkv, b.h, m, b.qkv, Out::Elements)?;
            self.rotate_and_cache(i, w, m, at)?;
            self.attend(i, w, plan, at)?;
            self.products.run(d, &w.output, b.attended, m, to, out)?;
            *pending = Pending { branch: !plain, bias: w.output_bias, norm: w.post_attention_norm };
            match c.block {
                // The feed-forward block reads what attention read.
                BlockLayout::Parallel => self.settle(pending, m)?,
                _ => self.next_input(pending, w.mlp_norm, m)?,
            }
            let bias = self.feed_forward(&w.feed_forward, m, to, out)?;
            *pending = Pending { branch: !plain, bias, norm: w.post_mlp_norm };
        }
        Ok(())
    }

    fn eps(&self) -> f32 {
        match self.config.norm {
            Norm::Rms { eps } | Norm::Layer { eps, .. } => eps,
        }
    }

    /// 1 if norms subtract the mean.
    fn centred(&self) -> Argument {
        i32::from(matches!(self.config.norm, Norm::Layer { .. })).into()
    }

    /// Adds what is pending to the residual stream, and writes its norm to `h`.
    unsafe fn next_input(&self, pending: &mut Pending, w: NormWeights, m: usize) -> Result<(), DeviceError> {
        let (c, b) = (&self.config, &self.buffers);
        let Some((kernel, shared)) = self.kernels.join_norm.zip(row_shared(c.hidden_size)) else {
            // SAFETY: by the caller.
            return unsafe {
                self.settle(pending, m)?;
                self.norm(b.x, 0, w, m, b.h)
            };
        };
        let Pending { branch, bias, norm } = std::mem::take(pending);
        let arguments = [
            if branch { b.branch } else { 0 }.into(),
            bias.into(),
            norm.scale.into(),
            c.residual_scale.into(),
            w.scale.into(),
            w.offset.into(),
            self.centred(),
            self.eps().into(),
            (c.hidden_size as i32).into(),
            b.x.into(),
            b.h.into(),
        ];
        // SAFETY: by the caller.
        unsafe { self.device.launch(kernel, [m, 1, 1], 256, shared, &arguments) }
    }

    /// Adds what is pending to the residual stream.
    unsafe fn settle(&self, pending: &mut Pending, m: usize) -> Result<(), DeviceError> {
        let (c, b) = (&self.config, &self.buffers);
        let Pending { branch, bias, norm } = std::mem::take(pending);
        // SAFETY: by the caller.
        unsafe {
            self.add_bias(bias, c.hidden_size, m, if branch { b.branch } else { b.x })?;
            if !branch {
                return Ok(());
            }
            let arguments = [
                b.branch.into(),
                norm.scale.into(),
                self.eps().into(),
                c.residual_scale.into(),
                (c.hidden_size as i32).into(),
                b.x.into(),
            ];
            self.device.launch(self.kernels.join, [m, 1, 1], 256, 0, &arguments)
        }
    }

    /// Writes the norm of some rows of `x` to `h`, or the rows as elements.
    pub(super) unsafe fn norm(
        &self,
        x: Address,
        rows: Address,
        w: NormWeights,
        m: usize,
        h: Address,
    ) -> Result<(), DeviceError> {
        let hidden = self.config.hidden_size as i32;
        let arguments = [
            x.into(),
            rows.into(),
            w.scale.into(),
            w.offset.into(),
            self.centred(),
            self.eps().into(),
            hidden.into(),
            h.into(),
        ];
        // SAFETY: by the caller.
        unsafe { self.device.launch(self.kernels.norm, [m, 1, 1], 256, 0, &arguments) }
    }

    pub(super) unsafe fn add_bias(&self, bias: Address, width: usize, m: usize, x: Address) -> Result<(), DeviceError> {
        if bias == 0 {
            return Ok(());
        }
        let arguments = [bias.into(), (width as i32).into(), x.into()];
        // SAFETY: by the caller.
        unsafe { self.device.launch(self.kernels.add_bias, [m, width.div_ceil(256), 1], 256, 0, &arguments) }
    }

    unsafe fn rotate_and_cache(
        &self,
        i: usize,
        w: &LayerWeights,
        m: usize,
        at: &StepAddresses,
    ) -> Result<(), DeviceError> {
        let (c, b) = (&self.config, &self.buffers);
        let rope = match c.layers[i].position {
            Position::Rotary(rope) => self.ropes[rope],
            Position::None | Position::Alibi | Position::AlibiReversed => RopeTables::default(),
        };
        let layer = i as u64 * self.layer_elements() * self.weights.element.size_bytes();
        let norms = match c.qk_norm {
            QkNorm::None => 0,
            QkNorm::Head => 1,
            QkNorm::Width => 2,
            QkNorm::HeadAfterRotary => 3,
            QkNorm::PlainAfterRotary => 4,
        };
        let grows = c.query_growth.is_some() && c.layers[i].query_growth;
        let (heads, kv_heads, dim) = (c.num_heads as i32, c.num_kv_heads as i32, c.head_dim as i32);
        let arguments = [
            b.qkv.into(),
            w.qkv_bias.into(),
            norms.into(),
            w.query_norm.into(),
            w.key_norm.into(),
            b.factors.into(),
            self.eps().into(),
            rope.short[0].into(),
            rope.short[1].into(),
            rope.long[0].into(),
            rope.long[1].into(),
            (rope.half as i32).into(),
            at.positions.into(),
            at.long_factors.into(),
            at.slot_mapping.into(),
            if grows { at.growth } else { 0 }.into(),
            heads.into(),
            kv_heads.into(),
            dim.into(),
            b.q.into(),
            (self.keys + layer).into(),
            (self.values + layer).into(),
        ];
        let blocks = (c.num_heads + 2 * c.num_kv_heads).div_ceil(4);
        // SAFETY: by the caller.
        unsafe {
            if c.qk_norm == QkNorm::Width {
                let (queries, keys) = ((heads * dim).into(), (kv_heads * dim).into());
                let arguments = [b.qkv.into(), w.qkv_bias.into(), queries, keys, self.eps().into(), b.factors.into()];
                self.device.launch(self.kernels.width_factors, [m, 2, 1], 256, 0, &arguments)?;
            }
            self.device.launch(self.kernels.place, [m, blocks, 1], 128, 0, &arguments)
        }
    }

    unsafe fn attend(
        &self,
        i: usize,
        w: &LayerWeights,
        plan: &AttentionPlan,
        at: &StepAddresses,
    ) -> Result<(), DeviceError> {
        let (c, b) = (&self.config, &self.buffers);
        let layer = i as u64 * self.layer_elements() * self.weights.element.size_bytes();
        let slopes = if c.layers[i].position == Position::Alibi { self.slopes } else { 0 };
        let positions = |n: Option<usize>| Argument::from(n.unwrap_or(0).min(i32::MAX as usize) as i32);
        let arguments = |items: Address| {
            [
                b.q.into(),
                (self.keys + layer).into(),
                (self.values + layer).into(),
                items.into(),
                at.block_tables.into(),
                at.positions.into(),
                slopes.into(),
                w.sinks.into(),
                b.attended.into(),
                b.state.into(),
                (c.head_dim as i32).into(),
                ((c.num_heads / c.num_kv_heads) as i32).into(),
                (c.num_kv_heads as i32).into(),
                c.attention_scale.into(),
                c.attention_softcap.unwrap_or(0.0).into(),
                positions(c.layers[i].window),
                positions(c.layers[i].chunk),
            ]
        };
        let (tall_shared, wide_shared) = attention_shared(c.head_dim);
        let plain = self.weights.element == Element::F32;
        let (tall_threads, wide_threads, tall_shared, wide_shared) = match plain {
            true => (128, 128, 0, 0),
            false => (tall_threads(c.head_dim), WIDE_THREADS, tall_shared, wide_shared),
        };
        let merge: [Argument; 7] = [
            b.state.into(),
            at.merges.into(),
            at.slots.into(),
            w.sinks.into(),
            b.attended.into(),
            (c.head_dim as i32).into(),
            (c.num_heads as i32).into(),
        ];
        let grid = |items: &[i32]| [items.len() / 8, c.num_kv_heads, 1];
        let (k, d) = (&self.kernels, &self.device);
        // The wide items may go on from what the tall ones leave.
        // SAFETY: by the caller.
        unsafe {
            d.launch(k.tall, grid(&plan.tall), tall_threads, tall_shared, &arguments(at.tall))?;
            d.launch(k.wide, grid(&plan.wide), wide_threads, wide_shared, &arguments(at.wide))?;
            d.launch(k.merge, [plan.merges.len() / 3, c.num_heads, 1], 128, 0, &merge)
        }
    }

    /// Feed-forward of `h`, added to or written to `to` without the bias, which it returns.
    unsafe fn feed_forward(&self, w: &FeedForward, m: usize, to: Address, out: Out) -> Result<Address, DeviceError> {
        // SAFETY: by the caller.
        unsafe {
            if let Some(dense) = &w.dense {
                self.mlp(dense, m, to, out)?;
            }
            if let Some(experts) = &w.experts {
                self.mixture(experts, m, to, out == Out::Add || w.dense.is_some())?;
            }
        }
        Ok(w.dense.as_ref().map_or(0, |dense| dense.down_bias))
    }

    /// The activation's number and parameters for the kernels.
    pub(super) fn activation(&self) -> [Argument; 3] {
        let (kind, alpha, limit) = match self.config.activation {
            Activation::Silu => (0, 0.0, 0.0),
            Activation::GeluTanh => (1, 0.0, 0.0),
            Activation::GeluErf => (2, 0.0, 0.0),
            Activation::ClampedSwiglu { alpha, limit } => (3, alpha, limit),
        };
        [kind.into(), alpha.into(), limit.into()]
    }

    unsafe fn mlp(&self, w: &MlpWeights, m: usize, to: Address, out: Out) -> Result<(), DeviceError> {
        let (c, b, d) = (&self.config, &self.buffers, &*self.device);
        let width = w.down.k;
        let [kind, alpha, limit] = self.activation();
        let arguments = [
            b.up.into(),
            w.gate_up_bias.into(),
            kind,
            alpha,
            limit,
            i32::from(c.gated).into(),
            (width as i32).into(),
            b.inner.into(),
        ];
        let blocks = width.div_ceil(2048);
        // SAFETY: by the caller.
        unsafe {
            self.products.run(d, &w.gate_up, b.h, m, b.up, Out::Elements)?;
            d.launch(self.kernels.activate, [m, blocks, 1], 256, 0, &arguments)?;
            self.products.run(d, &w.down, b.inner, m, to, out)
        }
    }
}
