//! The forward pass of a step on a device, from token ids to sampled tokens.

use super::attention_plan::{AttentionPlan, Setting};
use super::device::{Address, Device, DeviceError, DeviceInfo, Element, Mark, Out};
use super::error::CudaError;
use super::features::refused_feature;
use super::graphs::{Graphs, Shape};
use super::kernels::attention_shared;
use super::launches::Kernels;
use super::memory::{
    Buffers, Exchange, MOST_BLOCKS, RopeTables, block_bytes, buffers, cache, rope_tables, states, step_bytes,
    upload_floats,
};
use super::options::Variants;
use super::packing::{METADATA_BYTES, Packer, StepAddresses};
use super::products::{ProductRunner, ProductSettings};
use super::weights::Weights;
use crate::TokenLogprobs;
use crate::core::{BLOCK_SIZE, BlockOp, RopeFactors, Sampled, Step};
use earnest_models::checkpoint::{Checkpoint, DecoderConfig, Position, QueryGrowth, alibi_slopes};

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
    pub(super) device: Box<dyn Device>,
    pub(super) config: DecoderConfig,
    pub(super) weights: Weights,
    pub(super) kernels: Kernels,
    pub(super) products: ProductRunner,
    pub(super) buffers: Buffers,
    pub(super) ropes: Vec<RopeTables>,
    pub(super) slopes: Address,
    pub(super) keys: Address,
    pub(super) values: Address,
    capacity: Capacity,
    setting: Setting,
    exchanges: [Exchange; 2],
    variants: Variants,
    /// Recorded steps; none if steps are not recorded.
    graphs: Option<Graphs>,
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
    /// Recorded steps.
    pub(crate) graphs: bool,
    /// Norms apart from the sums before them.
    pub(crate) separate_norms: bool,
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
        if let Some(feature) = refused_feature(&c) {
            return Err(CudaError::Feature { architecture: c.architecture, feature });
        }
        if c.head_dim > 256 {
            return Err(CudaError::HeadTooWide(c.head_dim));
        }
        if !c.head_dim.is_multiple_of(8) {
            return Err(CudaError::Width { what: "a head".into(), width: c.head_dim });
        }
        device.enter()?;
        let element = super::weights::element_of(checkpoint)?;
        let info = device.info()?;
        check_variants(demands.variants, &info, element)?;
        let fp8 = checkpoint.weight_format().is_fp8();
        if fp8 {
            check_fp8(&info, element)?;
        }
        let (tall, wide) = attention_shared(c.head_dim);
        if element != Element::F32 && tall.max(wide) > info.shared {
            let (head, needed, shared) = (c.head_dim, tall.max(wide), info.shared);
            return Err(CudaError::HeadTooWideHere { head, needed, shared });
        }
        let kernels = Kernels::load(&mut *device, element, c.hidden_size, c.head_dim, demands.separate_norms)?;
        let weights = Weights::load(&*device, checkpoint, element)?;
        let multiprocessors = info.multiprocessors as usize;
        let settings =
            ProductSettings { element, invariant: demands.invariant, variants: demands.variants, multiprocessors };
        let (kinds, expert_kinds) = (weights.kinds(), weights.expert_kinds());
        let mut products = ProductRunner::new(&mut *device, &kinds, &expert_kinds, &settings)?;
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
        let wanted = (demands.tokens, demands.sequences);
        let (buffers, tokens) = buffers(&*device, &c, (element, fp8), wanted, &needs, &mut notes)?;
        if let Some(codes) = buffers.codes {
            products.lend_codes(codes);
        }
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
            graphs: demands.graphs.then(Graphs::default),
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
        let mut plan = AttentionPlan::new(&step.pieces, &step.block_tables, &self.setting);
        let decodes = step.pieces.iter().all(|piece| piece.count == 1);
        let rows = step.sampling.len();
        // Rows that come back must all be there when the record has been launched.
        let recorded = self.graphs.is_some() && decodes && rows <= self.buffers.logit_rows;
        let shape = recorded.then(|| {
            plan.pad();
            let lists = [&plan.tall, &plan.wide, &plan.merges, &plan.slots].map(Vec::len);
            Shape { slot, tokens, rows, lists }
        });
        let copies = copies(step);
        let mut packer = Packer::default();
        // Lists whose lengths the shape does not fix come last.
        let at = StepAddresses {
            token_ids: packer.ints(&step.token_ids),
            positions: packer.ints(&step.positions),
            long_factors: packer.ints(&long_factors(step)),
            growth: packer.floats(&self.growth(step)),
            slot_mapping: packer.ints(&step.slot_mapping),
            tall: packer.ints(&plan.tall),
            wide: packer.ints(&plan.wide),
            merges: packer.ints(&plan.merges),
            slots: packer.ints(&plan.slots),
            logits_indices: packer.ints(&step.logits_indices),
            sampling: packer.sampling(&step.sampling),
            block_tables: packer.ints(&step.block_tables),
            copies: packer.ints(copies.as_flattened()),
        };
        let base = self.send(slot, &packer.bytes)?;
        let at = at.from(base);
        let mut early = vec![];
        // SAFETY: addresses are of this device's buffers, made for the step's sizes; what the host prepared was checked or made here.
        unsafe {
            self.copy_blocks(&copies, at.copies)?;
            match shape {
                None => {
                    self.layers(tokens, &plan, &at, slot)?;
                    self.sample(step, &at, slot, &mut early)?;
                }
                Some(shape) => {
                    let mut graphs = self.graphs.take().unwrap_or_default();
                    let done = graphs.run(&*self.device, shape, &mut || {
                        self.layers(tokens, &plan, &at, slot)?;
                        self.logits(0, rows, &at, slot)
                    });
                    self.graphs = Some(graphs);
                    done?;
                    self.return_rows(step, 0..rows, slot, &mut 0, &mut early)?;
                }
            }
        }
        if rows > 0 {
            // SAFETY: the results of the step that used the memory before were taken.
            unsafe {
                self.device.receive(self.buffers.results, self.exchanges[slot].results, rows * RESULT_BYTES)?;
            }
        }
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

    /// Factors on each token's queries; none if no layer has them.
    fn growth(&self, step: &Step) -> Vec<f32> {
        let factors = |growth: QueryGrowth| step.positions.iter().map(|&p| growth.factor(p as usize)).collect();
        self.config.query_growth.map_or_else(Vec::new, factors)
    }

    /// Steps that were launched from a record.
    #[cfg(test)]
    pub(crate) fn replayed(&self) -> usize {
        self.graphs.as_ref().map_or(0, Graphs::replayed)
    }

    /// Elements of a layer's keys.
    pub(super) fn layer_elements(&self) -> u64 {
        (self.capacity.blocks * self.config.num_kv_heads * BLOCK_SIZE * self.config.head_dim) as u64
    }

    /// Computes the rows of logits, some at a time, and samples from them.
    unsafe fn sample(
        &self,
        step: &Step,
        at: &StepAddresses,
        slot: usize,
        early: &mut Vec<Vec<f32>>,
    ) -> Result<(), DeviceError> {
        let rows = step.logits_indices.len();
        let mut sent = 0;
        for first in (0..rows).step_by(self.buffers.logit_rows) {
            let end = rows.min(first + self.buffers.logit_rows);
            // SAFETY: by the caller.
            unsafe {
                self.logits(first, end - first, at, slot)?;
                self.return_rows(step, first..end, slot, &mut sent, early)?;
            }
        }
        Ok(())
    }

    /// Computes `m` rows of logits from row `first` on, as many as their buffer has at most, and samples from them.
    unsafe fn logits(&self, first: usize, m: usize, at: &StepAddresses, slot: usize) -> Result<(), DeviceError> {
        if m == 0 {
            return Ok(());
        }
        let (c, b, d, n) = (&self.config, &self.buffers, &*self.device, first as u64);
        let vocab = c.vocab_size;
        // SAFETY: by the caller; results for all rows.
        unsafe {
            self.norm(b.x, at.logits_indices + 4 * n, self.weights.final_norm, m, b.h)?;
            self.products.run(d, &self.weights.head, b.h, m, b.logits, Out::Floats)?;
            self.add_bias(self.weights.head_bias, vocab, m, b.logits)?;
            if c.final_softcap.is_some() || c.logit_scale != 1.0 {
                let cap = c.final_softcap.unwrap_or(0.0);
                let arguments = [b.logits.into(), (vocab as i32).into(), c.logit_scale.into(), cap.into()];
                d.launch(self.kernels.cap_logits, [m, vocab.div_ceil(1024), 1], 256, 0, &arguments)?;
            }
            let arguments = [
                b.logits.into(),
                (vocab as i32).into(),
                (at.sampling + METADATA_BYTES as u64 * n).into(),
                (b.results + RESULT_BYTES as u64 * n).into(),
                (b.sampled[slot] + 4 * n).into(),
            ];
            d.launch(self.kernels.choose, [m, 1, 1], 512, 0, &arguments)
        }
    }

    /// Copies the logits of the requested `rows`, packed from the first one on, to the exchange's memory behind the `sent` rows that are being
    /// copied already; `early` receives earlier rows when that memory is full.
    unsafe fn return_rows(
        &self,
        step: &Step,
        rows: std::ops::Range<usize>,
        slot: usize,
        sent: &mut usize,
        early: &mut Vec<Vec<f32>>,
    ) -> Result<(), DeviceError> {
        let (b, d, exchange) = (&self.buffers, &*self.device, &self.exchanges[slot]);
        let vocab = self.config.vocab_size;
        for row in rows.clone().filter(|&row| step.sampling[row].return_logits) {
            // SAFETY: by the caller; rows of their buffers.
            unsafe {
                if *sent == exchange.logit_rows {
                    // Full: this step waits for what it has asked for so far.
                    d.wait(d.mark(slot)?)?;
                    early.extend((0..*sent).map(|i| exchange.row(i, vocab)));
                    *sent = 0;
                }
                let from = b.logits + ((row - rows.start) * vocab * 4) as u64;
                d.receive(from, exchange.logits.add(*sent * vocab * 4), vocab * 4)?;
            }
            *sent += 1;
        }
        Ok(())
    }
}

/// Checks that the device and the type of a checkpoint have the instructions of the chosen variants.
fn check_variants(variants: Variants, info: &DeviceInfo, element: Element) -> Result<(), CudaError> {
    for card in variants.cards() {
        let Some(needed) = card.capability else { continue };
        if needed != info.capability {
            let (name, device, found) = (card.name, info.name.clone(), info.capability);
            return Err(CudaError::VariantDevice { name, needed, device, found });
        }
        if element == Element::F32 {
            return Err(CudaError::VariantElement { name: card.name });
        }
    }
    Ok(())
}

/// Checks that the device and the type of a checkpoint have products of 8-bit floats.
fn check_fp8(info: &DeviceInfo, element: Element) -> Result<(), CudaError> {
    if info.capability < (8, 9) {
        return Err(CudaError::Fp8Device { device: info.name.clone(), found: info.capability });
    }
    if element == Element::F32 { Err(CudaError::Fp8Element) } else { Ok(()) }
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
