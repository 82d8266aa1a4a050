//! The forward pass of a step on a device, from token ids to sampled tokens.

use super::attention_plan::{AttentionPlan, Setting};
use super::device::{Address, Argument, Device, DeviceError, Element, Kernel, Mark, Out};
use super::error::CudaError;
use super::kernels::{Unit, attention_shared, tall_threads};
use super::memory::{
    Buffers, Exchange, MOST_BLOCKS, RopeTables, block_bytes, buffers, cache, rope_tables, states, step_bytes,
    upload_floats,
};
use super::options::Variants;
use super::packing::{METADATA_BYTES, Packer, StepAddresses};
use super::products::ProductRunner;
use super::weights::{FeedForward, LayerWeights, MlpWeights, NormWeights, Weights};
use crate::TokenLogprobs;
use crate::core::{BLOCK_SIZE, BlockOp, RopeFactors, Sampled, Step};
use earnest_models::checkpoint::{Activation, BlockLayout, Checkpoint, DecoderConfig, Norm, Position, alibi_slopes};

/// Bytes of a row's result (kernels/choice.cu).
pub(crate) const RESULT_BYTES: usize = 16;

/// A step that the device is computing.
pub struct Running {
    mark: Mark,
    slot: usize,
    /// For each row, true if its logits are returned.
    returned: Vec<bool>,
    /// Rows of logits for which there was no room in the exchange's memory, the first ones.
    early: Vec<Vec<f32>>,
}

/// Sizes that the device's memory allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Tokens of a step.
    pub(crate) tokens: usize,
    /// Blocks of the cache.
    pub(crate) blocks: usize,
}

/// Runs a decoder on a device.
pub(crate) struct Executor {
    device: Box<dyn Device>,
    config: DecoderConfig,
    weights: Weights,
    kernels: Kernels,
    products: ProductRunner,
    buffers: Buffers,
    ropes: Vec<RopeTables>,
    slopes: Address,
    keys: Address,
    values: Address,
    capacity: Capacity,
    setting: Setting,
    exchanges: [Exchange; 2],
    variants: Variants,
    /// Steps so far.
    steps: usize,
}

/// Sizes that are asked for when a model is loaded.
pub(crate) struct Demands {
    /// Most tokens of a step.
    pub(crate) tokens: usize,
    /// Most sequences that run at once.
    pub(crate) sequences: usize,
    /// Bits of a row that do not depend on its batch.
    pub(crate) invariant: bool,
    /// Bytes for keys and values; none takes what is left.
    pub(crate) kv_memory: Option<u64>,
    /// Variants of the computation.
    pub(crate) variants: Variants,
}

impl Executor {
    /// Loads a checkpoint; also returns notices of what had to be made smaller than was asked.
    pub(crate) fn load(
        mut device: Box<dyn Device>,
        checkpoint: &Checkpoint,
        demands: &Demands,
    ) -> Result<(Executor, Vec<String>), CudaError> {
        let c = checkpoint.config.clone();
        if let Some(feature) = c.recent_feature() {
            return Err(CudaError::Feature { architecture: c.architecture, feature });
        }
        if c.head_dim > 256 {
            return Err(CudaError::HeadTooWide(c.head_dim));
        }
        if !c.head_dim.is_multiple_of(8) {
            return Err(CudaError::Width { what: "a head".into(), width: c.head_dim });
        }
        if let Some(e) = c.experts.filter(|e| e.count > 64) {
            return Err(CudaError::TooManyExperts(e.count));
        }
        device.enter()?;
        let element = super::weights::element_of(checkpoint)?;
        let info = device.info()?;
        let (tall, wide) = attention_shared(c.head_dim);
        if element != Element::F32 && tall.max(wide) > info.shared {
            let (head, needed, shared) = (c.head_dim, tall.max(wide), info.shared);
            return Err(CudaError::HeadTooWideHere { head, needed, shared });
        }
        let kernels = Kernels::load(&mut *device, element, c.head_dim)?;
        let weights = Weights::load(&*device, checkpoint, element)?;
        let multiprocessors = info.multiprocessors as usize;
        let products = ProductRunner::new(&mut *device, element, &weights.kinds(), demands.invariant, multiprocessors)?;
        let mut notes = vec![];
        // Everything else comes before the cache, which takes what is left; at most how large that can be is known.
        let free = device.info()?.free;
        let most_blocks =
            (demands.kv_memory.unwrap_or(free).min(free) / block_bytes(&c, element)).min(MOST_BLOCKS) as usize;
        let ropes = rope_tables(&*device, &c, most_blocks * BLOCK_SIZE)?;
        let slopes = if c.layers.iter().any(|l| l.position == Position::Alibi) {
            upload_floats(&*device, &alibi_slopes(c.num_heads))?
        } else {
            0
        };
        let needs = |tokens: usize| step_bytes(&c, tokens, demands.sequences.min(tokens), most_blocks);
        let (buffers, tokens) = buffers(&*device, &c, element, demands.tokens, &needs, &mut notes)?;
        let rows = demands.sequences.min(tokens);
        let exchange = |at: Address| Exchange::new(&*device, at, needs(tokens), tokens, rows, c.vocab_size);
        let exchanges = [exchange(buffers.numbers[0])?, exchange(buffers.numbers[1])?];
        let (keys, values, blocks) =
            cache(&*device, &c, element, weights.bytes, (demands.kv_memory, most_blocks), &mut notes)?;
        let setting = Setting {
            heads: c.num_heads,
            kv_heads: c.num_kv_heads,
            head_dim: c.head_dim,
            multiprocessors,
            states: states(tokens),
        };
        let capacity = Capacity { tokens, blocks };
        let executor = Executor {
            device,
            config: c,
            weights,
            kernels,
            products,
            buffers,
            ropes,
            slopes,
            keys,
            values,
            capacity,
            setting,
            exchanges,
            variants: demands.variants,
            steps: 0,
        };
        Ok((executor, notes))
    }

    /// The device.
    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Variants of the computation that were chosen.
    pub(crate) fn variants(&self) -> Variants {
        self.variants
    }

    /// Sizes of a step and of the cache.
    pub(crate) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The weights.
    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Name of the library or kernels that compute dense products.
    pub(crate) fn describe_products(&self) -> &'static str {
        self.products.describe(&*self.device)
    }

    /// True if no product is the library's, so a row's bits do not depend on its batch.
    pub(crate) fn is_invariant(&self) -> bool {
        self.products.is_invariant(&*self.device)
    }

    /// Bytes of a block's keys and values.
    pub(crate) fn block_bytes(&self) -> u64 {
        block_bytes(&self.config, self.weights.element)
    }

    /// Launches a step on the device and returns at once. The step before may still be running; its results are taken with
    /// [`finish`](Executor::finish) before the next one begins.
    pub(crate) fn begin(&mut self, step: &Step) -> Result<Running, DeviceError> {
        let tokens = step.tokens();
        assert!(tokens > 0 && tokens <= self.capacity.tokens && step.logits_indices.len() == step.sampling.len());
        self.device.enter()?;
        let slot = self.steps % 2;
        self.steps += 1;
        let plan = AttentionPlan::new(&step.pieces, &step.block_tables, &self.setting);
        let copies = copies(step);
        let mut packer = Packer::default();
        let at = StepAddresses {
            token_ids: packer.ints(&step.token_ids),
            positions: packer.ints(&step.positions),
            long_factors: packer.ints(&long_factors(step)),
            slot_mapping: packer.ints(&step.slot_mapping),
            block_tables: packer.ints(&step.block_tables),
            tall: packer.ints(&plan.tall),
            wide: packer.ints(&plan.wide),
            merges: packer.ints(&plan.merges),
            slots: packer.ints(&plan.slots),
            logits_indices: packer.ints(&step.logits_indices),
            sampling: packer.sampling(&step.sampling),
            copies: packer.ints(copies.as_flattened()),
        };
        let base = self.send(slot, &packer.bytes)?;
        let at = at.from(base);
        // SAFETY: addresses are of this device's buffers, made for the step's sizes; what the host prepared was checked or made here.
        unsafe {
            self.copy_blocks(&copies, at.copies)?;
            self.layers(step, &plan, &at, slot)?;
        }
        // SAFETY: as above.
        let early = unsafe { self.sample(step, &at, slot)? };
        let mark = self.device.mark(slot)?;
        let returned = step.sampling.iter().map(|row| row.return_logits).collect();
        Ok(Running { mark, slot, returned, early })
    }

    /// Waits for a step and takes its results, one for each row.
    pub(crate) fn finish(&mut self, running: Running) -> Result<Vec<Sampled>, DeviceError> {
        self.device.enter()?;
        self.device.wait(running.mark)?;
        let exchange = &self.exchanges[running.slot];
        let vocab = self.config.vocab_size;
        // SAFETY: the memory holds the results of as many rows as a step can have, and the device came by.
        let results = unsafe { std::slice::from_raw_parts(exchange.results, running.returned.len() * RESULT_BYTES) };
        let word = |bytes: &[u8], i: usize| u32::from_ne_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        let (mut whole, mut early) = (0, running.early.into_iter());
        let mut row = || {
            early.next().unwrap_or_else(|| {
                // SAFETY: `sample` left no more rows there than it has room for.
                let row = unsafe { exchange.row(whole, vocab) };
                whole += 1;
                row
            })
        };
        let rows = running.returned.iter().zip(results.chunks_exact(RESULT_BYTES));
        Ok(rows
            .map(|(&returned, bytes)| Sampled {
                token: (!returned).then(|| word(bytes, 0)),
                not_finite: word(bytes, 4) != 0,
                target: Some(TokenLogprobs { chosen: f32::from_bits(word(bytes, 8)), top: Vec::new() }),
                logits: returned.then(&mut row),
                ..Sampled::default()
            })
            .collect())
    }

    /// Copies the host's numbers to the device and returns their address there.
    fn send(&self, slot: usize, bytes: &[u8]) -> Result<Address, DeviceError> {
        let exchange = &self.exchanges[slot];
        if bytes.len() > exchange.bytes {
            let why = format!("a step's numbers take {} bytes of {}; please report this", bytes.len(), exchange.bytes);
            return Err(DeviceError::Call { call: "planning a step", why });
        }
        // SAFETY: the host memory is as large, and the step that used it last has been waited for.
        unsafe {
            exchange.host.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.device.send(exchange.device, exchange.host, bytes.len())?;
        }
        Ok(exchange.device)
    }

    unsafe fn copy_blocks(&self, copies: &[[i32; 3]], at: Address) -> Result<(), DeviceError> {
        let c = &self.config;
        let layer = self.layer_elements();
        let mut first = 0;
        for end in 1..=copies.len() {
            // Copies run at once until one touches what another of them writes, or writes what another reads.
            let group = &copies[first..end];
            let clash = copies.get(end).is_some_and(|next| {
                group.iter().any(|one| next[0] == one[1] || next[1] == one[0] || next[1] == one[1])
            });
            if end == copies.len() || clash {
                let grid = [group.len(), c.layers.len(), 2];
                let from = at + first as u64 * 12;
                let arguments = [
                    from.into(),
                    self.keys.into(),
                    self.values.into(),
                    layer.into(),
                    (c.num_kv_heads as i32).into(),
                    (c.head_dim as i32).into(),
                ];
                // SAFETY: by the caller.
                unsafe { self.device.launch(self.kernels.copy_blocks, grid, 256, 0, &arguments)? };
                first = end;
            }
        }
        Ok(())
    }

    fn layer_elements(&self) -> u64 {
        (self.capacity.blocks * self.config.num_kv_heads * BLOCK_SIZE * self.config.head_dim) as u64
    }

    unsafe fn layers(
        &self,
        step: &Step,
        plan: &AttentionPlan,
        at: &StepAddresses,
        slot: usize,
    ) -> Result<(), DeviceError> {
        let (c, b, w, m) = (&self.config, &self.buffers, &self.weights, step.tokens());
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
        // SAFETY: by the caller.
        unsafe {
            self.device.launch(self.kernels.embed, [m, 1, 1], 256, 0, &arguments)?;
            for (i, layer) in w.layers.iter().enumerate() {
                self.layer(i, layer, m, plan, at)?;
            }
        }
        Ok(())
    }

    unsafe fn layer(
        &self,
        i: usize,
        w: &LayerWeights,
        m: usize,
        plan: &AttentionPlan,
        at: &StepAddresses,
    ) -> Result<(), DeviceError> {
        let (c, b, d) = (&self.config, &self.buffers, &*self.device);
        // SAFETY: by the caller.
        unsafe {
            self.norm(b.x, 0, &w.attention_norm, m, b.h)?;
            self.products.run(d, &w.qkv, b.h, m, b.qkv, Out::Elements)?;
            self.rotate_and_cache(i, w, m, at)?;
            self.attend(i, plan, at)?;
            match c.block {
                BlockLayout::PreNorm | BlockLayout::Parallel => {
                    self.products.run(d, &w.output, b.attended, m, b.x, Out::Add)?;
                    self.add_bias(w.output_bias, c.hidden_size, m, b.x)?;
                    if let Some(n) = &w.mlp_norm {
                        self.norm(b.x, 0, n, m, b.h)?;
                    }
                    // Without a norm of its own (parallel layout) the block reads what attention read.
                    self.feed_forward(&w.feed_forward, m, b.x, Out::Add)?;
                }
                // The executor refuses decoders with norms after the blocks only.
                BlockLayout::Sandwich | BlockLayout::PostNorm => {
                    self.products.run(d, &w.output, b.attended, m, b.branch, Out::Floats)?;
                    self.add_bias(w.output_bias, c.hidden_size, m, b.branch)?;
                    self.add_branch(w.post_attention_norm.as_ref(), m)?;
                    if let Some(n) = &w.mlp_norm {
                        self.norm(b.x, 0, n, m, b.h)?;
                    }
                    self.feed_forward(&w.feed_forward, m, b.branch, Out::Floats)?;
                    self.add_branch(w.post_mlp_norm.as_ref(), m)?;
                }
            }
        }
        Ok(())
    }

    fn eps(&self) -> f32 {
        match self.config.norm {
            Norm::Rms { eps } | Norm::Layer { eps, .. } => eps,
        }
    }

    unsafe fn norm(&self, x: Address, rows: Address, w: &NormWeights, m: usize, h: Address) -> Result<(), DeviceError> {
        let hidden = self.config.hidden_size as i32;
        let arguments =
            [x.into(), rows.into(), w.scale.into(), w.offset.into(), self.eps().into(), hidden.into(), h.into()];
        // SAFETY: by the caller.
        unsafe { self.device.launch(self.kernels.norm, [m, 1, 1], 256, 0, &arguments) }
    }

    unsafe fn add_branch(&self, w: Option<&NormWeights>, m: usize) -> Result<(), DeviceError> {
        let Some(w) = w else { return Ok(()) };
        let b = &self.buffers;
        let hidden = self.config.hidden_size as i32;
        let arguments = [b.branch.into(), w.scale.into(), self.eps().into(), hidden.into(), b.x.into()];
        // SAFETY: by the caller.
        unsafe { self.device.launch(self.kernels.norm_add, [m, 1, 1], 256, 0, &arguments) }
    }

    unsafe fn add_bias(&self, bias: Address, width: usize, m: usize, x: Address) -> Result<(), DeviceError> {
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
            Position::None | Position::Alibi => RopeTables::default(),
        };
        let layer = i as u64 * self.layer_elements() * self.weights.element.size_bytes();
        let arguments = [
            b.qkv.into(),
            w.qkv_bias.into(),
            w.query_norm.into(),
            w.key_norm.into(),
            self.eps().into(),
            rope.short[0].into(),
            rope.short[1].into(),
            rope.long[0].into(),
            rope.long[1].into(),
            (rope.half as i32).into(),
            at.positions.into(),
            at.long_factors.into(),
            at.slot_mapping.into(),
            (c.num_heads as i32).into(),
            (c.num_kv_heads as i32).into(),
            (c.head_dim as i32).into(),
            b.q.into(),
            (self.keys + layer).into(),
            (self.values + layer).into(),
        ];
        let heads = (c.num_heads + 2 * c.num_kv_heads).div_ceil(4);
        // SAFETY: by the caller.
        unsafe { self.device.launch(self.kernels.place, [m, heads, 1], 128, 0, &arguments) }
    }

    unsafe fn attend(&self, i: usize, plan: &AttentionPlan, at: &StepAddresses) -> Result<(), DeviceError> {
        let (c, b) = (&self.config, &self.buffers);
        let layer = i as u64 * self.layer_elements() * self.weights.element.size_bytes();
        let slopes = if c.layers[i].position == Position::Alibi { self.slopes } else { 0 };
        let arguments = |items: Address| {
            [
                b.q.into(),
                (self.keys + layer).into(),
                (self.values + layer).into(),
                items.into(),
                at.block_tables.into(),
                at.positions.into(),
                slopes.into(),
                b.attended.into(),
                b.state.into(),
                (c.head_dim as i32).into(),
                ((c.num_heads / c.num_kv_heads) as i32).into(),
                (c.num_kv_heads as i32).into(),
                c.attention_scale.into(),
                c.attention_softcap.unwrap_or(0.0).into(),
                (c.layers[i].window.unwrap_or(0).min(i32::MAX as usize) as i32).into(),
            ]
        };
        let (tall_shared, wide_shared) = attention_shared(c.head_dim);
        let plain = self.weights.element == Element::F32;
        let (tall_threads, tall_shared, wide_shared) =
            if plain { (128, 0, 0) } else { (tall_threads(c.head_dim), tall_shared, wide_shared) };
        let merge: [Argument; 6] = [
            b.state.into(),
            at.merges.into(),
            at.slots.into(),
            b.attended.into(),
            (c.head_dim as i32).into(),
            (c.num_heads as i32).into(),
        ];
        let grid = |items: &[i32]| [items.len() / 8, c.num_kv_heads, 1];
        let (k, d) = (&self.kernels, &self.device);
        // SAFETY: by the caller.
        unsafe {
            d.launch(k.tall, grid(&plan.tall), tall_threads, tall_shared, &arguments(at.tall))?;
            d.launch(k.wide, grid(&plan.wide), 128, wide_shared, &arguments(at.wide))?;
            d.launch(k.merge, [plan.merges.len() / 3, c.num_heads, 1], 128, 0, &merge)
        }
    }

    /// Feed-forward of `h`, added to or written to `to`.
    unsafe fn feed_forward(&self, w: &FeedForward, m: usize, to: Address, out: Out) -> Result<(), DeviceError> {
        let (c, b, d) = (&self.config, &self.buffers, &*self.device);
        // SAFETY: by the caller.
        unsafe {
            match w {
                FeedForward::Dense(w) => {
                    self.mlp(w, m, to, out)?;
                    self.add_bias(w.down_bias, c.hidden_size, m, to)
                }
                FeedForward::Experts { router, experts } => {
                    let Some(spec) = c.experts else { return Ok(()) };
                    let (count, kept) = (spec.count as i32, spec.per_token as i32);
                    self.products.run(d, router, b.h, m, b.routing[0], Out::Floats)?;
                    let arguments = [b.routing[0].into(), count.into(), kept.into(), b.routing[1].into()];
                    d.launch(self.kernels.route, [m, 1, 1], 32, 0, &arguments)?;
                    if out == Out::Floats {
                        d.zero(to, 4 * (m * c.hidden_size) as u64)?;
                    }
                    // Every expert computes every token; only the outputs of the selected ones are added. Which tokens selected
                    // whom is known to the device only, and waiting for it would cost more where many tokens are decoded.
                    for (i, expert) in experts.iter().enumerate() {
                        let answer = b.branch_of_experts(out, to);
                        self.mlp(expert, m, answer, Out::Floats)?;
                        let grid = [m, c.hidden_size.div_ceil(256), 1];
                        let arguments = [
                            answer.into(),
                            b.routing[1].into(),
                            (i as i32).into(),
                            count.into(),
                            (c.hidden_size as i32).into(),
                            to.into(),
                        ];
                        d.launch(self.kernels.add_expert, grid, 256, 0, &arguments)?;
                    }
                    Ok(())
                }
            }
        }
    }

    unsafe fn mlp(&self, w: &MlpWeights, m: usize, to: Address, out: Out) -> Result<(), DeviceError> {
        let (c, b, d) = (&self.config, &self.buffers, &*self.device);
        let activation = match c.activation {
            Activation::Silu => 0,
            Activation::GeluTanh => 1,
            Activation::GeluErf => 2,
            Activation::ClampedSwiglu { .. } => unreachable!("refused when the model was loaded"),
        };
        let width = c.intermediate_size;
        let arguments = [
            b.up.into(),
            w.gate_up_bias.into(),
            activation.into(),
            i32::from(c.gated).into(),
            (width as i32).into(),
            b.inner.into(),
        ];
        // SAFETY: by the caller.
        unsafe {
            self.products.run(d, &w.gate_up, b.h, m, b.up, Out::Elements)?;
            d.launch(self.kernels.activate, [m, width.div_ceil(256), 1], 256, 0, &arguments)?;
            self.products.run(d, &w.down, b.inner, m, to, out)
        }
    }

    /// Computes the rows of logits, some at a time, and samples from them. Of rows that are returned, the last ones are on their way
    /// to the exchange's memory; the result is what came before and had no room there.
    unsafe fn sample(&self, step: &Step, at: &StepAddresses, slot: usize) -> Result<Vec<Vec<f32>>, DeviceError> {
        let rows = step.logits_indices.len();
        let vocab = self.config.vocab_size;
        let returned: Vec<usize> = (0..rows).filter(|&i| step.sampling[i].return_logits).collect();
        let (c, b, d) = (&self.config, &self.buffers, &*self.device);
        let exchange = &self.exchanges[slot];
        let (mut early, mut sent) = (vec![], 0);
        for first in (0..rows).step_by(b.logit_rows) {
            let m = b.logit_rows.min(rows - first);
            let n = first as u64;
            // SAFETY: by the caller; as many rows as the buffer of logits has, and results for all rows.
            unsafe {
                self.norm(b.x, at.logits_indices + 4 * n, &self.weights.final_norm, m, b.h)?;
                self.products.run(d, &self.weights.head, b.h, m, b.logits, Out::Floats)?;
                self.add_bias(self.weights.head_bias, vocab, m, b.logits)?;
                if let Some(cap) = c.final_softcap {
                    let arguments = [b.logits.into(), (vocab as i32).into(), cap.into()];
                    d.launch(self.kernels.cap_logits, [m, vocab.div_ceil(1024), 1], 256, 0, &arguments)?;
                }
                let arguments = [
                    b.logits.into(),
                    (vocab as i32).into(),
                    (at.sampling + METADATA_BYTES as u64 * n).into(),
                    (b.results + RESULT_BYTES as u64 * n).into(),
                    (b.sampled[slot] + 4 * n).into(),
                ];
                d.launch(self.kernels.choose, [m, 1, 1], 512, 0, &arguments)?;
                for &row in returned.iter().filter(|row| (first..first + m).contains(row)) {
                    if sent == exchange.logit_rows {
                        // Full: this step waits for what it has asked for so far.
                        d.wait(d.mark(slot)?)?;
                        early.extend((0..sent).map(|i| exchange.row(i, vocab)));
                        sent = 0;
                    }
                    let from = b.logits + ((row - first) * vocab * 4) as u64;
                    d.receive(from, exchange.logits.add(sent * vocab * 4), vocab * 4)?;
                    sent += 1;
                }
            }
        }
        if rows > 0 {
            // SAFETY: the results of the step that used the memory before were taken.
            unsafe { d.receive(b.results, exchange.results, rows * RESULT_BYTES)? };
        }
        Ok(early)
    }
}

/// Block copies of a step: (from, to, positions), in order. Positions that were not written are never read, so nothing is cleared.
fn copies(step: &Step) -> Vec<[i32; 3]> {
    let copy = |op: &BlockOp| match *op {
        BlockOp::Copy { from, to, positions } => Some([from as i32, to as i32, positions as i32]),
        BlockOp::Clear(_) => None,
    };
    step.block_ops.iter().filter_map(copy).collect()
}

/// For each token 1 if its sequence uses the long rope factors, else 0.
fn long_factors(step: &Step) -> Vec<i32> {
    let pieces = step.pieces.iter().zip(&step.rope_factors);
    let long = |factors: RopeFactors| i32::from(factors == RopeFactors::Long);
    pieces.flat_map(|(piece, &factors)| std::iter::repeat_n(long(factors), piece.count)).collect()
}

struct Kernels {
    embed: Kernel,
    norm: Kernel,
    norm_add: Kernel,
    add_bias: Kernel,
    place: Kernel,
    activate: Kernel,
    route: Kernel,
    add_expert: Kernel,
    copy_blocks: Kernel,
    cap_logits: Kernel,
    choose: Kernel,
    tall: Kernel,
    wide: Kernel,
    merge: Kernel,
}

impl Kernels {
    fn load(device: &mut dyn Device, element: Element, head: usize) -> Result<Kernels, DeviceError> {
        let layers = device.load(&Unit::layers(element))?;
        let attention = device.load(&Unit::attention(element, head))?;
        let (tall_shared, wide_shared) = attention_shared(head);
        let mut of = |name: &str| device.kernel(layers, name, 0);
        let (embed, norm, norm_add, add_bias) = (of("embed")?, of("norm")?, of("norm_add")?, of("add_bias")?);
        let (place, activate, route, add_expert) = (of("place")?, of("activate")?, of("route")?, of("add_expert")?);
        let (copy_blocks, cap_logits, choose) = (of("copy_blocks")?, of("cap_logits")?, of("choose")?);
        let (tall, wide) = if element == Element::F32 {
            let plain = device.kernel(attention, "attend_plain", 0)?;
            (plain, plain)
        } else {
            (
                device.kernel(attention, "attend_tall", tall_shared)?,
                device.kernel(attention, "attend_wide", wide_shared)?,
            )
        };
        let merge = device.kernel(attention, "attend_merge", 0)?;
        Ok(Kernels {
            embed,
            norm,
            norm_add,
            add_bias,
            place,
            activate,
            route,
            add_expert,
            copy_blocks,
            cap_logits,
            choose,
            tall,
            wide,
            merge,
        })
    }
}
