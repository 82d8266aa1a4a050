//! The engine behind the trait: scheduler, prefix tree, sampling and stops of the native engine, the forward pass on a GPU.
//!
//! A step is planned and handed to the device before the one before it is done. The tokens that one chose are not known to the host
//! then: a sequence that goes on gets a placeholder, and the device puts the token in its place ([`Step::ids`]). What the host
//! learns a step late is that a sequence has ended; the token computed for it meanwhile is dropped. Sequences whose next token only
//! the host can choose (penalties, lists of log-probabilities) sit out the step in which their token is not known.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use rayon::prelude::*;

use super::attention_plan::Piece;
use super::device::{Device, DeviceError, DeviceInfo};
use super::error::CudaError;
use super::executor::{Chosen, Demands, Executor, Running, Step, Wish};
use super::gpu::Gpu;
use super::options::Options;
use crate::checkpoint::{Checkpoint, DecoderConfig, RopeScaling, Tokenizer};
use crate::engine::native::decoding::{check, ids};
use crate::engine::native::flight::Flight;
use crate::engine::native::kernels::Isa;
use crate::engine::native::kv::{BLOCK, Root};
use crate::engine::native::sampler::{Choice, choose, uniform};
use crate::engine::native::scheduler::{BlockOp, Entry, Limits, Plan, Scheduler};
use crate::engine::{
    Card, Engine, EngineError, Event, FinishReason, Rejected, Request, RequestId, Sampling, Statistics,
};

/// Marks a token that the device will know: the lower bits are its row in the step before.
const PLACEHOLDER: u32 = 1 << 31;

/// Continuous batching on a GPU.
pub struct Cuda {
    executor: Executor,
    config: DecoderConfig,
    tokenizer: Tokenizer,
    scheduler: Scheduler,
    limits: Limits,
    info: DeviceInfo,
    invariant: bool,
    trace: bool,
    notes: Vec<String>,
    flights: BTreeMap<RequestId, Flying>,
    /// Requests so far: the scheduler knows each by its number, so that an id may be used again at once.
    submitted: u64,
    names: HashMap<u64, RequestId>,
    pending: Option<Pending>,
    /// Ended since the last poll (cancelled).
    ended: Vec<Event>,
    statistics: Statistics,
}

/// A request in flight and its number.
struct Flying {
    key: u64,
    flight: Flight,
}

/// A step that the device is at.
struct Pending {
    running: Running,
    rows: Vec<Row>,
    prefilled: usize,
}

/// A row of logits that is wanted.
struct Row {
    key: u64,
    position: usize,
    sampled: bool,
    /// Number of the token in what is generated.
    number: usize,
    /// Where the sequence has a placeholder for it.
    placeholder: Option<usize>,
}

/// Why a request leaves.
enum Ending {
    Finished(FinishReason),
    /// The logits after this position hold a NaN or an infinity.
    NotFinite(usize),
}

impl Cuda {
    /// Opens a GPU, compiles what kernels it needs, reads a checkpoint's weights to it.
    ///
    /// # Errors
    /// [`CudaError`]; [`CudaError::NoLibrary`] if products are to be cublasLt's and it can not be used: another arithmetic is another
    /// engine to a run, so nothing else stands in for it here.
    pub fn load(checkpoint: &Checkpoint, options: &Options) -> Result<Cuda, CudaError> {
        let gpu = Gpu::open(options.device, options.kernel_cache.clone(), !options.batch_invariant)?;
        if !options.batch_invariant && !gpu.has_dense_product() {
            return Err(CudaError::NoLibrary(gpu.why_no_dense_product().unwrap_or_default()));
        }
        Cuda::on(Box::new(gpu), checkpoint, options)
    }

    /// The same on any device.
    pub(crate) fn on(device: Box<dyn Device>, checkpoint: &Checkpoint, options: &Options) -> Result<Cuda, CudaError> {
        let max_batch = options.max_batch.max(1);
        let demands = Demands {
            // Decoding sequences always run; a prompt needs at least one token of the budget to make progress.
            tokens: options.token_budget.max(max_batch + 1),
            sequences: max_batch,
            invariant: options.batch_invariant,
            kv_memory: options.kv_memory,
        };
        let (executor, mut notes) = Executor::load(device, checkpoint, &demands)?;
        let capacity = executor.capacity();
        let limits = Limits {
            token_budget: capacity.tokens,
            max_batch: max_batch.min(capacity.tokens - 1).max(1),
            blocks: capacity.blocks,
            prefix_cache: options.prefix_cache,
        };
        if limits.max_batch < max_batch {
            notes.push(format!("at most {} requests run at once instead of {max_batch}", limits.max_batch));
        }
        let info = executor.device().info()?;
        Ok(Cuda {
            config: checkpoint.config.clone(),
            tokenizer: checkpoint.tokenizer.clone(),
            scheduler: Scheduler::new(limits),
            limits,
            info,
            invariant: executor.is_invariant(),
            trace: options.trace,
            notes,
            flights: BTreeMap::new(),
            submitted: 0,
            names: HashMap::new(),
            pending: None,
            ended: vec![],
            statistics: Statistics::default(),
            executor,
        })
    }

    /// What had to be made smaller or do without, in words; empty if nothing.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What the engine computes on and how, for the manifest.
    pub fn describe(&self) -> serde_json::Value {
        let i = &self.info;
        serde_json::json!({
            "device": format!("cuda:{}", i.index),
            "name": i.name,
            "compute_capability": format!("{}.{}", i.capability.0, i.capability.1),
            "memory": i.total,
            "driver": format!("{}.{}", i.driver.0, i.driver.1),
            "compiler": i.compiler.map(|(major, minor)| format!("{major}.{minor}")),
            "cublaslt": i.cublaslt,
            "products": self.executor.describe_products(),
            "elements": self.executor.weights().element.name(),
            "accumulation": "f32",
            "deterministic": true,
            "batch_invariant": self.invariant,
            "max_batch": self.limits.max_batch,
            "token_budget": self.limits.token_budget,
            "kv_tokens": self.limits.blocks * BLOCK,
            "prefix_cache": self.limits.prefix_cache,
        })
    }

    /// Logits `[vocab]` after the last token of `prompt`, computed as for a request that generates `max_tokens`: for comparison with
    /// other implementations. Refused while requests are in flight.
    pub fn logits_after(&mut self, prompt: &[u32], max_tokens: usize) -> Result<Vec<f32>, EngineError> {
        let refused = |why: Rejected| EngineError::Fatal(why.to_string());
        if !self.flights.is_empty() || self.pending.is_some() {
            return Err(EngineError::Fatal("logits can only be read while no request is in flight".into()));
        }
        let id = RequestId(0);
        self.submit(Request::greedy(id, prompt.to_vec(), max_tokens)).map_err(refused)?;
        loop {
            let plan = self.scheduler.plan();
            let (mut step, rows) = self.step(&plan);
            step.wishes.iter_mut().for_each(|wish| wish.whole = true);
            let running = self.executor.begin(&step).map_err(fatal)?;
            let chosen = self.executor.finish(running).map_err(fatal)?;
            self.scheduler.commit(&plan);
            if !rows.is_empty() {
                self.cancel(id);
                self.ended.clear();
                return Ok(chosen.into_iter().find_map(|c| c.logits).unwrap_or_default());
            }
        }
    }

    /// Positions that a request may use at most.
    fn longest(request: &Request, prompt: usize) -> usize {
        // The last generated token is never read, so it needs no position.
        prompt + request.max_tokens.saturating_sub(1)
    }

    /// Which rotary angles a request uses. Decided once, by the longest it may become.
    fn root(&self, longest: usize) -> Root {
        let beyond = self.config.ropes.iter().any(|r| match r.scaling {
            RopeScaling::LongRope { original_max_positions, .. } => longest > original_max_positions,
            _ => false,
        });
        if beyond { Root::Long } else { Root::Short }
    }

    /// The device chooses this request's tokens.
    fn on_device(&self, request: &Request) -> bool {
        request.sampling.repetition_penalty == 1.0 && request.logprobs.top == 0 && !self.trace
    }

    /// Lists a plan's tokens and the rows whose logits are wanted. Sequences that the device chooses for get their placeholders.
    fn step(&mut self, plan: &Plan) -> (Step, Vec<Row>) {
        let mut step = Step::default();
        let mut rows = vec![];
        step.copies = plan
            .ops
            .iter()
            .filter_map(|op| match *op {
                BlockOp::Copy { from, to, positions } => Some([from as i32, to as i32, positions as i32]),
                // Positions that were not written are never read.
                BlockOp::Clear(_) => None,
            })
            .collect();
        // Single tokens first: those of them that share blocks are neighbours already.
        let (single, several): (Vec<&Entry>, Vec<&Entry>) = plan.entries.iter().partition(|e| e.count == 1);
        let mut placeholders = vec![];
        for e in single.into_iter().chain(several) {
            let s = &self.scheduler.running()[e.running];
            let first = step.ids.len();
            let table = step.tables.len();
            step.tables.extend(s.blocks.iter().map(|&b| b as i32));
            step.pieces.push(Piece { token: first, position: e.start, count: e.count, table });
            for position in e.start..e.start + e.count {
                let token = s.tokens[position];
                let known = token & PLACEHOLDER == 0;
                step.ids.push(if known { token as i32 } else { -1 - (token ^ PLACEHOLDER) as i32 });
                step.positions.push(position as i32);
                step.longs.push(i32::from(s.root == Root::Long));
                step.places.push((s.blocks[position / BLOCK] * BLOCK + position % BLOCK) as i32);
            }
            let Some(flying) = self.names.get(&s.key).and_then(|id| self.flights.get(id)) else { continue };
            let (flight, request) = (&flying.flight, &flying.flight.request);
            for i in (0..e.count).filter(|i| flight.wants_logits(e, *i)) {
                let position = e.start + i;
                let sampled = e.samples && i + 1 == e.count && request.max_tokens > 0;
                let number = s.tokens.len() - s.prompt;
                let device = self.on_device(request);
                let row = rows.len();
                // The last token needs no place: nothing comes after it.
                let goes_on = sampled && device && number + 1 < request.max_tokens;
                let placeholder = goes_on.then_some(s.tokens.len());
                if goes_on {
                    placeholders.push((e.running, row));
                }
                let scores = request.logprobs.prompt && position + 1 < flight.prompt.len();
                let draws = sampled && device && !takes_best(&request.sampling);
                step.outputs.push((first + i) as i32);
                step.wishes.push(Wish {
                    uniform: if draws { uniform(request.sampling_key, number as u64) } else { 0.0 },
                    temperature: if draws { request.sampling.temperature } else { 0.0 },
                    top_k: request.sampling.top_k,
                    top_p: request.sampling.top_p,
                    min_p: request.sampling.min_p,
                    target: scores.then(|| flight.prompt[position + 1]),
                    whole: sampled && !device,
                });
                rows.push(Row { key: s.key, position, sampled, number, placeholder });
            }
        }
        for (running, row) in placeholders {
            self.scheduler.push(running, PLACEHOLDER | row as u32);
        }
        (step, rows)
    }

    /// Plans the next step and hands it to the device, if there is something to do.
    fn advance(&mut self) -> Result<Option<Pending>, EngineError> {
        let plan = self.scheduler.plan();
        if plan.entries.is_empty() {
            return Ok(None);
        }
        let now = Instant::now();
        let mut prefilled = 0;
        for e in &plan.entries {
            let s = &self.scheduler.running()[e.running];
            prefilled += (e.start + e.count).min(s.prompt).saturating_sub(e.start);
            if let Some(flying) = self.names.get(&s.key).and_then(|id| self.flights.get_mut(id)) {
                flying.flight.schedule(now);
            }
        }
        let (step, rows) = self.step(&plan);
        let running = self.executor.begin(&step).map_err(fatal)?;
        self.scheduler.commit(&plan);
        self.statistics.steps += 1;
        Ok(Some(Pending { running, rows, prefilled }))
    }

    /// Waits for a step and takes what came of it.
    fn settle(&mut self, pending: Pending, events: &mut Vec<Event>) -> Result<(), EngineError> {
        let chosen = self.executor.finish(pending.running).map_err(fatal)?;
        let choices = self.host_choices(&pending.rows, &chosen);
        let now = Instant::now();
        let mut decoded = 0;
        let mut ended: Vec<(u64, Ending)> = vec![];
        let mut tokens: HashMap<u64, (Option<usize>, u32)> = HashMap::new();
        for ((row, chosen), choice) in pending.rows.iter().zip(&chosen).zip(choices) {
            // Ended or cancelled since: what was computed for it is dropped.
            let Some(flying) = self.names.get(&row.key).and_then(|id| self.flights.get_mut(id)) else { continue };
            let id = flying.flight.request.id;
            let flight = &mut flying.flight;
            let unusable = chosen.unsound || choice.as_ref().is_some_and(|c| c.0.is_none());
            if unusable {
                if ended.last().is_none_or(|e| e.0 != row.key) {
                    ended.push((row.key, Ending::NotFinite(row.position)));
                }
                continue;
            }
            // Each prompt position's log-probability is taken once, also if the request was set back in between.
            let scores = flight.request.logprobs.prompt && row.position + 1 < flight.prompt.len();
            if scores && row.position == flight.prompt_logprobs.len() {
                flight.prompt_logprobs.push(chosen.logprob);
            }
            if row.sampled {
                let (token, logprobs, hash) = match choice {
                    Some((Some(choice), hash)) => (choice.token, choice.logprobs, hash),
                    _ => (chosen.token, None, None),
                };
                decoded += 1;
                tokens.insert(row.key, (row.placeholder, token));
                match flight.push(token, logprobs, hash, now) {
                    Some(reason) => ended.push((row.key, Ending::Finished(reason))),
                    None => events.extend(flight.told(id)),
                }
            } else if flight.request.max_tokens == 0 && row.position + 1 == flight.prompt.len() {
                ended.push((row.key, Ending::Finished(FinishReason::Length)));
            }
        }
        self.scheduler.settle(&tokens);
        self.statistics.prefilled_tokens += pending.prefilled as u64;
        self.statistics.decoded_tokens += decoded as u64;
        events.push(Event::Progress { prefilled: pending.prefilled, decoded });
        self.end(ended, events);
        Ok(())
    }

    /// What the host chooses from the logits that came back: (choice or nothing usable, hash of the logits).
    fn host_choices(&self, rows: &[Row], chosen: &[Chosen]) -> Vec<Option<(Option<Choice>, Option<u64>)>> {
        let isa = Isa::detect();
        let jobs: Vec<_> = rows
            .iter()
            .zip(chosen)
            .map(|(row, chosen)| {
                let flying = self.names.get(&row.key).and_then(|id| self.flights.get(id))?;
                let request = &flying.flight.request;
                let logits = chosen.logits.as_deref().filter(|_| row.sampled)?;
                let seen = match request.sampling.repetition_penalty == 1.0 {
                    true => vec![],
                    false => [&flying.flight.prompt[..], &flying.flight.ids[..]].concat(),
                };
                Some((
                    row.number as u64,
                    request.sampling.clone(),
                    request.sampling_key,
                    request.logprobs.top,
                    logits,
                    seen,
                ))
            })
            .collect();
        let trace = self.trace;
        jobs.into_par_iter()
            .map(|job| {
                let (number, sampling, key, top, logits, seen) = job?;
                let choice = choose(isa, logits, &seen, &sampling, key, number, top);
                Some((choice, trace.then(|| crate::engine::native::hash_of_logits(logits))))
            })
            .collect()
    }

    /// Ends requests, in order, and reports them.
    fn end(&mut self, ended: Vec<(u64, Ending)>, events: &mut Vec<Event>) {
        let keys: Vec<u64> = ended.iter().map(|e| e.0).collect();
        let removed = self.scheduler.remove(&keys);
        for (key, ending) in ended {
            let Some(id) = self.names.remove(&key) else { continue };
            let Some(flying) = self.flights.remove(&id) else { continue };
            let cached = removed.iter().find(|s| s.key == key).and_then(|s| s.cached).unwrap_or(0);
            events.push(match ending {
                Ending::Finished(reason) => Event::Finished(Box::new(flying.flight.finish(reason, cached))),
                Ending::NotFinite(position) => Event::Failed {
                    id,
                    error: format!(
                        "the logits after position {position} are not finite: the weights are damaged or overflow in {}",
                        self.executor.weights().dtype()
                    ),
                    retryable: false,
                },
            });
        }
    }
}

/// The most probable token is taken, whatever the random number.
fn takes_best(s: &Sampling) -> bool {
    s.is_greedy() || s.top_k == 1
}

fn fatal(error: DeviceError) -> EngineError {
    EngineError::Fatal(format!("the GPU failed: {error}"))
}

impl Engine for Cuda {
    fn submit(&mut self, request: Request) -> Result<(), Rejected> {
        let prompt = ids(&request)?;
        if self.flights.contains_key(&request.id) {
            return Err(Rejected::DuplicateId(request.id));
        }
        check(&request, &prompt, &self.config)?;
        let longest = Self::longest(&request, prompt.len());
        let needed = longest.div_ceil(BLOCK);
        if needed > self.limits.blocks {
            return Err(Rejected::LargerThanCache {
                prompt: prompt.len(),
                max_tokens: request.max_tokens,
                needed_blocks: needed,
                total_blocks: self.limits.blocks,
                total_tokens: self.limits.blocks * BLOCK,
                needed_mib: (needed as u64 * self.executor.block_bytes()).div_ceil(1 << 20),
            });
        }
        self.statistics.prompt_tokens += prompt.len() as u64;
        self.submitted += 1;
        let key = self.submitted;
        self.scheduler.add(key, prompt.clone(), self.root(longest), !request.logprobs.prompt);
        self.names.insert(key, request.id);
        self.flights.insert(request.id, Flying { key, flight: Flight::new(request, prompt, self.tokenizer.stream()) });
        Ok(())
    }

    fn poll(&mut self) -> Result<Vec<Event>, EngineError> {
        let mut events = std::mem::take(&mut self.ended);
        if self.flights.is_empty() {
            // What the device may still be at concerns nobody.
            if let Some(pending) = self.pending.take() {
                self.executor.finish(pending.running).map_err(fatal)?;
            }
            return Ok(events);
        }
        // At the beginning two steps are handed over before the first is waited for.
        for _ in 0..2 {
            let next = self.advance()?;
            let before = std::mem::replace(&mut self.pending, next);
            match before {
                Some(before) => {
                    self.settle(before, &mut events)?;
                    return Ok(events);
                }
                None if self.pending.is_none() => {
                    // Requests are refused unless they fit alone, so this would be a bug of the scheduler's.
                    return Err(EngineError::Fatal(format!(
                        "{} requests are in flight but none can be scheduled; please report this",
                        self.flights.len()
                    )));
                }
                None => {}
            }
        }
        Ok(events)
    }

    fn follow(&mut self, id: RequestId) -> bool {
        self.flights.get_mut(&id).is_some_and(|flying| {
            flying.flight.followed = true;
            true
        })
    }

    fn cancel(&mut self, id: RequestId) -> bool {
        let Some(flying) = self.flights.get(&id) else { return false };
        let mut events = std::mem::take(&mut self.ended);
        self.end(vec![(flying.key, Ending::Finished(FinishReason::Cancelled))], &mut events);
        self.ended = events;
        true
    }

    fn forget_prompts(&mut self) {
        if self.flights.is_empty() {
            self.scheduler.forget_prompts();
        }
    }

    fn card(&self) -> Card {
        let i = &self.info;
        let compiler = i.compiler.map_or("none".into(), |(major, minor)| format!("{major}.{minor}"));
        Card {
            engine: "native".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            devices: vec![format!(
                "cuda:{}, {}, {} GiB, compute capability {}.{}, driver for CUDA {}.{}, NVRTC {compiler}, products by {}, own attention",
                i.index,
                i.name,
                i.total >> 30,
                i.capability.0,
                i.capability.1,
                i.driver.0,
                i.driver.1,
                match (self.executor.describe_products(), i.cublaslt) {
                    ("cublasLt", Some(version)) => format!("cublasLt {version}"),
                    _ => "own kernels".into(),
                },
            )],
            weights_dtype: self.executor.weights().dtype(),
            context: self.config.max_positions,
            weight_bytes: self.executor.weights().bytes,
            kv_bytes: self.limits.blocks as u64 * self.executor.block_bytes(),
            kv_tokens: self.limits.blocks * BLOCK,
            in_flight: self.limits.max_batch,
            deterministic: self.invariant,
            seeded: true,
            logprobs: true,
        }
    }

    fn statistics(&self) -> Statistics {
        let counters = self.scheduler.counters();
        let (used, cached, total) = self.scheduler.blocks();
        Statistics {
            cached_tokens: counters.cached_tokens,
            evictions: counters.evictions,
            preemptions: counters.preemptions,
            running: self.scheduler.running().len(),
            waiting: self.scheduler.waiting(),
            blocks_used: used,
            blocks_cached: cached,
            blocks_total: total,
            ..self.statistics
        }
    }
}
