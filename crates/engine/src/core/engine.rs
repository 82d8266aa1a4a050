//! The engine over any backend.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use rayon::prelude::*;

use super::backend::{Backend, BackendInfo, Sampled};
use super::block_pool::BLOCK_SIZE;
use super::checks::{check, prompt_ids};
use super::prefix_tree::RopeFactors;
use super::request_state::{RequestState, first_scored};
use super::sampler::sample_row;
use super::scheduler::{Chunk, Limits, Plan, Scheduler, Sequence};
use super::step::{PLACEHOLDER, SamplingMetadata, Step};
use crate::cpu::kernels::Isa;
use crate::{Card, Engine, EngineError, Event, FinishReason, Rejected, Request, RequestId, Statistics};
use earnest_models::checkpoint::{Checkpoint, DecoderConfig, RopeScaling, Tokenizer};

/// Continuous batching over a paged KV cache with shared prefixes, on any backend.
///
/// With several steps in flight, a step is planned and begun before the tokens of the step before are known to the host. A sequence
/// that goes on gets a placeholder, which the backend replaces by the token. That a sequence has ended is learned one step late; the
/// token computed for it meanwhile is dropped. Sequences whose next token only the host can sample sit out a step.
pub struct EngineCore<B: Backend> {
    backend: B,
    config: DecoderConfig,
    tokenizer: Tokenizer,
    scheduler: Scheduler,
    limits: Limits,
    trace: bool,
    /// Requests in flight by the key of their sequence.
    requests: HashMap<u64, RequestState>,
    /// Keys of the sequences. An id may be used again while a step of its last user is in flight.
    keys: HashMap<RequestId, u64>,
    /// Requests accepted so far.
    submitted: u64,
    in_flight: VecDeque<(B::Handle, Batch)>,
    /// Finished batches, whose memory is used again.
    spare: Vec<Batch>,
    /// Events of requests that were cancelled since the last poll.
    cancelled: Vec<Event>,
    statistics: Statistics,
}

/// A step and what its rows belong to.
#[derive(Default)]
struct Batch {
    step: Step,
    /// One for each row of logits.
    rows: Vec<Row>,
    /// Prompt tokens in the step.
    prefilled: usize,
}

/// The sequence that a row of logits belongs to.
struct Row {
    key: u64,
    /// Index into the running sequences when the step was planned.
    running: usize,
    /// Position of the token whose logits these are.
    position: usize,
    /// Index of the placeholder in the sequence, if the next step was planned with one.
    placeholder: Option<usize>,
}

/// End of a request.
enum Ending {
    Finished(FinishReason),
    /// The logits after this position hold a NaN or an infinity.
    NotFinite(usize),
}

impl<B: Backend> EngineCore<B> {
    /// Creates an engine for a checkpoint's model. With `trace`, completions carry a hash of each step's logits.
    pub fn new(backend: B, checkpoint: &Checkpoint, limits: Limits, trace: bool) -> EngineCore<B> {
        EngineCore {
            backend,
            config: checkpoint.config.clone(),
            tokenizer: checkpoint.tokenizer.clone(),
            scheduler: Scheduler::new(limits),
            limits,
            trace,
            requests: HashMap::new(),
            keys: HashMap::new(),
            submitted: 0,
            in_flight: VecDeque::new(),
            spare: vec![],
            cancelled: vec![],
            statistics: Statistics::default(),
        }
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Limits of the scheduler.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Most tokens computed in a step.
    pub fn token_budget(&self) -> usize {
        self.limits.token_budget
    }

    /// Computes the logits `[vocab]` after the last token of `prompt`, as for a request that generates `max_tokens`.
    ///
    /// # Errors
    /// [`EngineError::NotIdle`] while requests are in flight, [`EngineError::Rejected`] for a prompt that can not run.
    pub fn logits_after(&mut self, prompt: &[u32], max_tokens: usize) -> Result<Vec<f32>, EngineError> {
        if !self.requests.is_empty() || !self.in_flight.is_empty() {
            return Err(EngineError::NotIdle);
        }
        let id = RequestId(0);
        self.submit(Request::greedy(id, prompt.to_vec(), max_tokens))?;
        loop {
            let plan = self.scheduler.plan();
            let mut batch = self.batch(&plan);
            batch.step.sampling.iter_mut().for_each(|row| row.return_logits = true);
            let handle = self.backend.begin(&batch.step)?;
            let results = self.backend.finish(handle)?;
            self.scheduler.commit(&plan);
            if !batch.rows.is_empty() {
                self.cancel(id);
                self.cancelled.clear();
                let logits = results.into_iter().find_map(|row| row.logits);
                return logits.ok_or_else(|| EngineError::Fatal("the backend returned no logits".into()));
            }
        }
    }

    /// Rope factors of a request. Decided once, by the longest that it may become: the angles of a sequence must not change while
    /// its keys are in the cache.
    fn rope_factors(&self, longest: usize) -> RopeFactors {
        let beyond = self.config.ropes.iter().any(|r| match r.scaling {
            RopeScaling::LongRope { original_max_positions, .. } => longest > original_max_positions,
            _ => false,
        });
        if beyond { RopeFactors::Long } else { RopeFactors::Short }
    }

    /// Rejects a request that would not fit into the KV cache alone.
    fn check_blocks(&self, request: &Request, prompt: usize, longest: usize) -> Result<(), Rejected> {
        let needed = longest.div_ceil(BLOCK_SIZE);
        if needed <= self.limits.blocks {
            return Ok(());
        }
        Err(Rejected::LargerThanCache {
            prompt,
            max_tokens: request.max_tokens,
            needed_blocks: needed,
            total_blocks: self.limits.blocks,
            total_tokens: self.limits.blocks * BLOCK_SIZE,
            needed_mib: (needed as u64 * self.backend.block_bytes()).div_ceil(1 << 20),
        })
    }

    /// Fills a step for a plan. Sequences whose tokens are sampled by a backend with several steps in flight get their placeholders.
    fn batch(&mut self, plan: &Plan) -> Batch {
        let mut batch = self.spare.pop().unwrap_or_default();
        batch.step.clear();
        batch.rows.clear();
        batch.prefilled = 0;
        batch.step.block_ops.extend_from_slice(&plan.ops);
        let first_blocks = self.scheduler.running().iter().filter_map(|s| s.blocks.first());
        batch.step.live.extend(first_blocks.map(|&block| block as i32));
        let comes_first = |chunk: &&Chunk| !B::DECODE_FIRST || chunk.count == 1;
        let (first, rest) = (plan.chunks.iter().filter(comes_first), plan.chunks.iter().filter(|c| !comes_first(c)));
        for chunk in first.chain(rest) {
            let sequence = &self.scheduler.running()[chunk.running];
            batch.prefilled += (chunk.start + chunk.count).min(sequence.prompt).saturating_sub(chunk.start);
            let first = batch.step.push(sequence, chunk);
            let Some(state) = self.requests.get(&sequence.key) else { continue };
            for i in (0..chunk.count).filter(|i| state.wants_logits(chunk, *i)) {
                let sampled = chunk.samples && i + 1 == chunk.count && state.request.max_tokens > 0;
                batch.step.logits_indices.push((first + i) as i32);
                self.push_row(&mut batch, state, sequence, chunk.running, chunk.start + i, sampled);
            }
        }
        for (i, row) in batch.rows.iter().enumerate() {
            if row.placeholder.is_some() {
                self.scheduler.push(row.running, PLACEHOLDER | i as u32);
            }
        }
        batch
    }

    /// Appends a row of logits with its sampling metadata.
    fn push_row(
        &self,
        batch: &mut Batch,
        state: &RequestState,
        sequence: &Sequence,
        running: usize,
        position: usize,
        sampled: bool,
    ) {
        let request = &state.request;
        let index = sequence.tokens.len() - sequence.prompt;
        let start = batch.step.seen_tokens.len();
        if sampled && request.sampling.repetition_penalty != 1.0 {
            batch.step.seen_tokens.extend_from_slice(&sequence.tokens);
        }
        let mut row = SamplingMetadata {
            sampled,
            sampling: request.sampling.clone(),
            key: request.sampling_key,
            index: index as u64,
            top_logprobs: request.logprobs.top,
            seen: start..batch.step.seen_tokens.len(),
            target: state.target(position),
            hash: self.trace,
            return_logits: false,
        };
        let listed = row.target.is_some() && row.top_logprobs > 0;
        row.return_logits = (sampled || listed) && !self.backend.samples(&row);
        // The last token needs no placeholder: nothing comes after it.
        let goes_on = sampled && !row.return_logits && index + 1 < request.max_tokens;
        let placeholder = (B::STEPS_IN_FLIGHT > 1 && goes_on).then_some(sequence.tokens.len());
        batch.rows.push(Row { key: sequence.key, running, position, placeholder });
        batch.step.sampling.push(row);
    }

    /// Plans and begins the next step; false if nothing can be scheduled.
    fn begin_step(&mut self) -> Result<bool, EngineError> {
        let now = Instant::now();
        let plan = self.scheduler.plan();
        if plan.chunks.is_empty() {
            return Ok(false);
        }
        for chunk in &plan.chunks {
            if let Some(state) = self.requests.get_mut(&self.scheduler.running()[chunk.running].key) {
                state.schedule(now);
            }
        }
        let batch = self.batch(&plan);
        let handle = self.backend.begin(&batch.step)?;
        self.scheduler.commit(&plan);
        self.statistics.steps += 1;
        self.in_flight.push_back((handle, batch));
        Ok(true)
    }

    /// Waits for a step and updates its requests.
    fn finish_step(&mut self, handle: B::Handle, batch: Batch, events: &mut Vec<Event>) -> Result<(), EngineError> {
        let mut results = self.backend.finish(handle)?;
        self.sample_on_host(&batch, &mut results);
        let now = Instant::now();
        let mut decoded = 0;
        let mut ended: Vec<(u64, Ending)> = vec![];
        for ((row, metadata), result) in batch.rows.iter().zip(&batch.step.sampling).zip(results) {
            // Ended or cancelled since: its result is dropped.
            let Some(state) = self.requests.get_mut(&row.key) else { continue };
            if result.not_finite {
                if ended.last().is_none_or(|e| e.0 != row.key) {
                    ended.push((row.key, Ending::NotFinite(row.position)));
                }
                continue;
            }
            state.push_prompt_logprob(row.position, result.target);
            if let (true, Some(token)) = (metadata.sampled, result.token) {
                decoded += 1;
                self.scheduler.set_token(row.running, row.key, row.placeholder, token);
                match state.push(token, result.logprobs, result.logits_hash, now) {
                    Some(reason) => ended.push((row.key, Ending::Finished(reason))),
                    None => events.extend(state.take_delta()),
                }
            } else if state.is_scored() {
                ended.push((row.key, Ending::Finished(state.end_scoring(now))));
            }
        }
        self.statistics.prefilled_tokens += batch.prefilled as u64;
        self.statistics.decoded_tokens += decoded as u64;
        events.push(Event::Progress { prefilled: batch.prefilled, decoded });
        self.spare.push(batch);
        self.end(ended, events);
        Ok(())
    }

    /// Samples the rows whose logits the backend returned.
    fn sample_on_host(&self, batch: &Batch, results: &mut [Sampled]) {
        let step = &batch.step;
        let returned = |((row, metadata), result): &((&Row, &SamplingMetadata), &mut Sampled)| {
            metadata.return_logits && result.logits.is_some() && self.requests.contains_key(&row.key)
        };
        let rows = batch.rows.iter().zip(&step.sampling).zip(results).filter(returned);
        let rows: Vec<(&SamplingMetadata, &mut Sampled)> =
            rows.map(|((_, metadata), result)| (metadata, result)).collect();
        let isa = Isa::detect();
        rows.into_par_iter().for_each(|(metadata, result)| {
            if let Some(logits) = result.logits.take() {
                let sampled = sample_row(isa, metadata, step.seen(metadata), &logits);
                *result = Sampled { not_finite: result.not_finite || sampled.not_finite, ..sampled };
            }
        });
    }

    /// Ends requests, in order, and reports them.
    fn end(&mut self, ended: Vec<(u64, Ending)>, events: &mut Vec<Event>) {
        let keys: Vec<u64> = ended.iter().map(|e| e.0).collect();
        let removed = self.scheduler.remove(&keys);
        for (key, ending) in ended {
            let Some(state) = self.requests.remove(&key) else { continue };
            let id = state.request.id;
            self.keys.remove(&id);
            let cached = removed.iter().find(|s| s.key == key).and_then(|s| s.cached).unwrap_or(0);
            events.push(match ending {
                Ending::Finished(reason) => Event::Finished(Box::new(state.finish(reason, cached))),
                Ending::NotFinite(position) => Event::Failed {
                    id,
                    error: format!(
                        "the logits after position {position} are not finite: the weights are damaged or overflow in {}",
                        self.backend.info().weights_dtype
                    ),
                    retryable: false,
                },
            });
        }
    }
}

/// Most positions that a request may use.
fn longest(request: &Request, prompt: usize) -> usize {
    // The last token, generated or only scored, is never read, so it needs no position.
    (prompt + request.max_tokens).saturating_sub(1).max(1)
}

impl<B: Backend> Engine for EngineCore<B> {
    fn submit(&mut self, request: Request) -> Result<(), Rejected> {
        let prompt = prompt_ids(&request)?;
        if self.keys.contains_key(&request.id) {
            return Err(Rejected::DuplicateId(request.id));
        }
        check(&request, &prompt, &self.config)?;
        let longest = longest(&request, prompt.len());
        self.check_blocks(&request, prompt.len(), longest)?;
        self.statistics.prompt_tokens += prompt.len() as u64;
        self.submitted += 1;
        let key = self.submitted;
        let mut computed = prompt.clone();
        computed.truncate(longest);
        // The logits that give the first log-probability are those of the token before it.
        let shareable = first_scored(&request).map_or(usize::MAX, |from| from - 1);
        self.scheduler.add(key, computed, self.rope_factors(longest), shareable);
        self.keys.insert(request.id, key);
        self.requests.insert(key, RequestState::new(request, prompt, self.tokenizer.stream()));
        Ok(())
    }

    fn poll(&mut self) -> Result<Vec<Event>, EngineError> {
        let mut events = std::mem::take(&mut self.cancelled);
        if self.requests.is_empty() {
            // What the backend may still compute concerns nobody.
            while let Some((handle, batch)) = self.in_flight.pop_front() {
                self.backend.finish(handle)?;
                self.spare.push(batch);
            }
            return Ok(events);
        }
        while self.in_flight.len() < B::STEPS_IN_FLIGHT && self.begin_step()? {}
        match self.in_flight.pop_front() {
            Some((handle, batch)) => self.finish_step(handle, batch, &mut events)?,
            // Requests are rejected unless they fit alone, so this would be a bug of the scheduler's.
            None => return Err(EngineError::NothingScheduled { requests: self.requests.len() }),
        }
        Ok(events)
    }

    fn follow(&mut self, id: RequestId) -> bool {
        let Some(state) = self.keys.get(&id).and_then(|key| self.requests.get_mut(key)) else { return false };
        state.followed = true;
        true
    }

    fn cancel(&mut self, id: RequestId) -> bool {
        let Some(&key) = self.keys.get(&id) else { return false };
        let mut events = std::mem::take(&mut self.cancelled);
        self.end(vec![(key, Ending::Finished(FinishReason::Cancelled))], &mut events);
        self.cancelled = events;
        true
    }

    fn forget_prompts(&mut self) {
        if self.requests.is_empty() {
            self.scheduler.forget_prompts();
        }
    }

    fn card(&self) -> Card {
        let BackendInfo { devices, weights_dtype, weight_bytes, batch_invariant } = self.backend.info();
        Card {
            engine: "native".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            devices,
            weights_dtype,
            context: self.config.max_positions,
            weight_bytes,
            kv_bytes: self.limits.blocks as u64 * self.backend.block_bytes(),
            kv_tokens: self.limits.blocks * BLOCK_SIZE,
            in_flight: self.limits.max_batch,
            deterministic: batch_invariant,
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
