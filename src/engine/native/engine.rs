//! The native engine behind the trait.

use std::collections::BTreeMap;
use std::time::Instant;

use super::decoder::{Forward, LoadError, StepTokens, Weights};
use super::decoding::{check, ids};
use super::flight::Flight;
use super::kernels::{ByteIsa, Isa, Peaks, QueryToken, SharedMut};
use super::kv::{BLOCK, BlockLayout, CacheType, KvStore, Root};
use super::options::Options;
use super::sampler::{Choice, choose, logprob};
use super::scheduler::{BlockOp, Entry, Limits, Plan, Scheduler};
use super::team::Team;
use crate::checkpoint::{Checkpoint, DecoderConfig, RopeScaling, Tokenizer};
use crate::engine::{Card, Engine, EngineError, Event, FinishReason, Rejected, Request, RequestId, Statistics};

/// Rows of logits that are computed at a time: bounds their memory with large vocabularies.
const LOGIT_ROWS: usize = 48;

/// Continuous batching on the CPU. The same request gives the same bits alone and in any batch.
pub struct Native {
    config: DecoderConfig,
    tokenizer: Tokenizer,
    weights: Weights,
    team: Team,
    forward: Forward,
    step: StepTokens,
    store: KvStore,
    scheduler: Scheduler,
    limits: Limits,
    trace: bool,
    flights: BTreeMap<RequestId, Flight>,
    /// Ended since the last poll (cancelled).
    ended: Vec<Event>,
    statistics: Statistics,
}

impl Native {
    /// Reads a checkpoint's weights and prepares to run it.
    pub fn load(checkpoint: &Checkpoint, options: Options) -> Result<Native, LoadError> {
        let team = Team::start(options.threads(), Isa::detect()).map_err(LoadError::Threads)?;
        let config = checkpoint.config.clone();
        let layout = BlockLayout {
            cache: if checkpoint.weight_format().is_int8() { CacheType::Bytes } else { CacheType::F32 },
            layers: config.layers.len(),
            kv_heads: config.num_kv_heads,
            head_dim: config.head_dim,
        };
        let given = options.kv_bytes();
        let blocks = (given / layout.bytes()) as usize;
        if blocks == 0 {
            return Err(LoadError::KvMemory { given, needed: layout.bytes() });
        }
        let max_batch = options.max_batch.max(1);
        let limits = Limits {
            // Decoding sequences always run; a prompt needs at least one token of the budget to make progress.
            token_budget: options.token_budget.max(max_batch + 1),
            max_batch,
            blocks,
            prefix_cache: options.prefix_cache,
        };
        Ok(Native {
            weights: Weights::load(checkpoint)?,
            tokenizer: checkpoint.tokenizer.clone(),
            config,
            team,
            forward: Forward::default(),
            step: StepTokens::default(),
            store: KvStore::new(layout, blocks),
            scheduler: Scheduler::new(limits),
            limits,
            trace: options.trace,
            flights: BTreeMap::new(),
            ended: vec![],
            statistics: Statistics::default(),
        })
    }

    /// Most tokens that are computed in a step.
    pub fn token_budget(&self) -> usize {
        self.limits.token_budget
    }

    /// Measures what the device can do at best with this engine's threads and arithmetic, in a second or two.
    pub fn peaks(&self) -> Peaks {
        Peaks::measure(&self.team, self.weights.in_bytes(), self.weights.bytes())
    }

    /// Logits `[vocab]` after the last token of `prompt`, computed as for a request that generates `max_tokens`: for
    /// comparison with other implementations. Refused while requests are in flight.
    pub fn logits_after(&mut self, prompt: &[u32], max_tokens: usize) -> Result<Vec<f32>, Rejected> {
        if !self.flights.is_empty() {
            return Err(Rejected::Unsupported("logits can only be read while no request is in flight".into()));
        }
        let id = RequestId(0);
        self.submit(Request::greedy(id, prompt.to_vec(), max_tokens))?;
        loop {
            let plan = self.scheduler.plan();
            let done = plan.entries.iter().any(|e| e.samples);
            self.compute(&plan);
            self.scheduler.commit(&plan);
            if done {
                self.flights.remove(&id);
                self.scheduler.remove(&[id.0]);
                let Native { forward, team, config, weights, .. } = self;
                return Ok(forward.logits(team, config, weights, 0..1).to_vec());
            }
        }
    }

    /// Positions that a request may use at most.
    fn longest(request: &Request, prompt: usize) -> usize {
        // The last generated token is never read, so it needs no position.
        prompt + request.max_tokens.saturating_sub(1)
    }

    /// Which rotary angles a request uses. Decided once, by the longest it may become: the angles of a sequence must
    /// not change while its keys are in the cache.
    fn root(&self, longest: usize) -> Root {
        let beyond = self.config.ropes.iter().any(|r| match r.scaling {
            RopeScaling::LongRope { original_max_positions, .. } => longest > original_max_positions,
            _ => false,
        });
        if beyond { Root::Long } else { Root::Short }
    }

    fn check(&self, request: &Request, prompt: &[u32]) -> Result<(), Rejected> {
        if self.flights.contains_key(&request.id) {
            return Err(Rejected::DuplicateId(request.id));
        }
        check(request, prompt, &self.config)?;
        let needed = Self::longest(request, prompt.len()).div_ceil(BLOCK);
        if needed > self.limits.blocks {
            return Err(Rejected::LargerThanCache {
                prompt: prompt.len(),
                max_tokens: request.max_tokens,
                needed_blocks: needed,
                total_blocks: self.limits.blocks,
                total_tokens: self.limits.blocks * BLOCK,
                needed_mib: (needed as u64 * self.store.layout().bytes()).div_ceil(1 << 20),
            });
        }
        Ok(())
    }

    /// Lists the step's tokens.
    fn fill_step(&mut self, plan: &Plan) {
        let step = &mut self.step;
        step.ids.clear();
        step.places.clear();
        step.tables.clear();
        step.long.clear();
        step.outputs.clear();
        for (sequence, e) in plan.entries.iter().enumerate() {
            let s = &self.scheduler.running()[e.running];
            let first = step.ids.len();
            step.ids.extend(&s.tokens[e.start..e.start + e.count]);
            let place = |p: usize| QueryToken { position: p as u32, sequence: sequence as u32 };
            step.places.extend((e.start..e.start + e.count).map(place));
            step.tables.push(s.blocks.clone());
            step.long.push(s.root == Root::Long);
            let flight = &self.flights[&RequestId(s.key)];
            step.outputs.extend((0..e.count).filter(|i| flight.wants_logits(e, *i)).map(|i| first + i));
        }
    }

    /// Computes the step and what follows from the wanted logits, in the order of the rows.
    fn compute(&mut self, plan: &Plan) -> Vec<Row> {
        for op in &plan.ops {
            match *op {
                BlockOp::Clear(block) => self.store.clear(block),
                BlockOp::Copy { from, to, positions } => self.store.copy(from, to, positions),
            }
        }
        self.fill_step(plan);
        let mut rows: Vec<Row> = vec![];
        for e in &plan.entries {
            let s = &self.scheduler.running()[e.running];
            let id = RequestId(s.key);
            let flight = &self.flights[&id];
            for i in (0..e.count).filter(|i| flight.wants_logits(e, *i)) {
                let sampled = e.samples && i + 1 == e.count && flight.request.max_tokens > 0;
                rows.push(Row { id, running: e.running, position: e.start + i, sampled, outcome: Outcome::default() });
            }
        }
        let Native { config, weights, team, forward, store, step, scheduler, flights, trace, .. } = self;
        let (config, weights, flights, scheduler, trace) = (&*config, &*weights, &*flights, &*scheduler, *trace);
        team.enter(|| {
            forward.run(team, config, weights, store, step);
            for start in (0..rows.len()).step_by(LOGIT_ROWS) {
                let part = start..(start + LOGIT_ROWS).min(rows.len());
                let logits = &*forward.logits(team, config, weights, part.clone());
                let part = &mut rows[part];
                let count = part.len();
                let shared = SharedMut::new(part);
                team.run(count, &|i| {
                    // SAFETY: each row is touched by one piece.
                    let row = &mut unsafe { shared.slice(i, 1) }[0];
                    let logits = &logits[i * config.vocab_size..(i + 1) * config.vocab_size];
                    let tokens = &scheduler.running()[row.running].tokens;
                    row.outcome = outcome(team.isa(), row, &flights[&row.id], tokens, logits, trace);
                });
            }
        });
        rows
    }

    /// Ends requests, in order, and reports them.
    fn end(&mut self, ended: Vec<(RequestId, Ending)>, events: &mut Vec<Event>) {
        let keys: Vec<u64> = ended.iter().map(|e| e.0.0).collect();
        let removed = self.scheduler.remove(&keys);
        for (id, ending) in ended {
            let Some(flight) = self.flights.remove(&id) else { continue };
            let cached = removed.iter().find(|s| s.key == id.0).and_then(|s| s.cached).unwrap_or(0);
            events.push(match ending {
                Ending::Finished(reason) => Event::Finished(Box::new(flight.finish(reason, cached))),
                Ending::NotFinite(position) => Event::Failed {
                    id,
                    error: format!(
                        "the logits after position {position} are not finite: the weights are damaged or overflow in {}",
                        self.weights.dtype()
                    ),
                    retryable: false,
                },
            });
        }
    }
}

/// Why a request leaves.
enum Ending {
    Finished(FinishReason),
    /// The logits after this position hold a NaN or an infinity.
    NotFinite(usize),
}

/// A row of logits and what came of it.
struct Row {
    id: RequestId,
    running: usize,
    position: usize,
    sampled: bool,
    outcome: Outcome,
}

#[derive(Default)]
struct Outcome {
    not_finite: bool,
    choice: Option<Choice>,
    prompt_logprob: Option<f32>,
    hash: Option<u64>,
}

impl Flight {
    /// Whether the logits after token `i` of a piece are needed.
    pub(crate) fn wants_logits(&self, e: &Entry, i: usize) -> bool {
        let position = e.start + i;
        let samples = e.samples && i + 1 == e.count;
        // Each prompt position's log-probability is taken once, also if the request was set back in between.
        let next = self.prompt_logprobs.len();
        let scores = self.request.logprobs.prompt && position + 1 < self.prompt.len() && position >= next;
        samples || scores
    }
}

fn outcome(isa: Isa, row: &Row, flight: &Flight, tokens: &[u32], logits: &[f32], trace: bool) -> Outcome {
    let mut o = Outcome::default();
    let r = &flight.request;
    if r.logprobs.prompt && row.position + 1 < flight.prompt.len() {
        o.prompt_logprob = logprob(isa, logits, flight.prompt[row.position + 1]);
        o.not_finite |= o.prompt_logprob.is_none();
    }
    if row.sampled {
        let step = flight.ids.len() as u64;
        o.choice = choose(isa, logits, tokens, &r.sampling, r.sampling_key, step, r.logprobs.top);
        o.not_finite |= o.choice.is_none();
        o.hash = trace.then(|| fnv1a(logits));
    }
    o
}

/// FNV-1a over the bits of the logits.
pub(crate) fn fnv1a(logits: &[f32]) -> u64 {
    logits.iter().fold(0xcbf2_9ce4_8422_2325, |h, l| (h ^ u64::from(l.to_bits())).wrapping_mul(0x0100_0000_01b3))
}

impl Engine for Native {
    fn submit(&mut self, request: Request) -> Result<(), Rejected> {
        let prompt = ids(&request)?;
        self.check(&request, &prompt)?;
        let root = self.root(Self::longest(&request, prompt.len()));
        self.statistics.prompt_tokens += prompt.len() as u64;
        self.scheduler.add(request.id.0, prompt.clone(), root, !request.logprobs.prompt);
        self.flights.insert(request.id, Flight::new(request, prompt, self.tokenizer.stream()));
        Ok(())
    }

    fn poll(&mut self) -> Result<Vec<Event>, EngineError> {
        let mut events = std::mem::take(&mut self.ended);
        let started = Instant::now();
        let plan = self.scheduler.plan();
        if plan.entries.is_empty() {
            if !self.flights.is_empty() {
                // Requests are refused unless they fit alone, so this would be a bug of the scheduler's.
                return Err(EngineError::Fatal(format!(
                    "{} requests are in flight but none can be scheduled; please report this",
                    self.flights.len()
                )));
            }
            return Ok(events);
        }
        for e in &plan.entries {
            let id = RequestId(self.scheduler.running()[e.running].key);
            if let Some(flight) = self.flights.get_mut(&id) {
                flight.schedule(started);
            }
        }
        let rows = self.compute(&plan);
        self.scheduler.commit(&plan);
        self.statistics.steps += 1;
        let mut prefilled = 0;
        for e in &plan.entries {
            let prompt = self.scheduler.running()[e.running].prompt;
            prefilled += (e.start + e.count).min(prompt).saturating_sub(e.start);
        }
        let now = Instant::now();
        let mut decoded = 0;
        let mut ended: Vec<(RequestId, Ending)> = vec![];
        for row in rows {
            let Some(flight) = self.flights.get_mut(&row.id) else { continue };
            if row.outcome.not_finite {
                if ended.last().is_none_or(|e| e.0 != row.id) {
                    ended.push((row.id, Ending::NotFinite(row.position)));
                }
                continue;
            }
            flight.prompt_logprobs.extend(row.outcome.prompt_logprob);
            if let Some(choice) = row.outcome.choice {
                decoded += 1;
                self.scheduler.push(row.running, choice.token);
                match flight.push(choice.token, choice.logprobs, row.outcome.hash, now) {
                    Some(reason) => ended.push((row.id, Ending::Finished(reason))),
                    None => events.extend(flight.told(row.id)),
                }
            } else if flight.request.max_tokens == 0 && row.position + 1 == flight.prompt.len() {
                ended.push((row.id, Ending::Finished(FinishReason::Length)));
            }
        }
        self.statistics.prefilled_tokens += prefilled as u64;
        self.statistics.decoded_tokens += decoded as u64;
        events.push(Event::Progress { prefilled, decoded });
        self.end(ended, &mut events);
        Ok(events)
    }

    fn follow(&mut self, id: RequestId) -> bool {
        self.flights.get_mut(&id).is_some_and(|flight| {
            flight.followed = true;
            true
        })
    }

    fn cancel(&mut self, id: RequestId) -> bool {
        if !self.flights.contains_key(&id) {
            return false;
        }
        let mut events = std::mem::take(&mut self.ended);
        self.end(vec![(id, Ending::Finished(FinishReason::Cancelled))], &mut events);
        self.ended = events;
        true
    }

    fn forget_prompts(&mut self) {
        if self.flights.is_empty() {
            self.scheduler.forget_prompts();
        }
    }

    fn card(&self) -> Card {
        let layout = self.store.layout();
        let isa = self.team.isa();
        let kernels = if self.weights.in_bytes() { ByteIsa::best(isa).name() } else { isa.name() };
        Card {
            engine: "native".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            devices: vec![match self.team.threads() {
                1 => format!("CPU, 1 thread, {kernels} kernels"),
                threads => format!("CPU, {threads} threads, {kernels} kernels"),
            }],
            weights_dtype: self.weights.dtype(),
            context: self.config.max_positions,
            weight_bytes: self.weights.bytes(),
            kv_bytes: self.limits.blocks as u64 * layout.bytes(),
            kv_tokens: self.limits.blocks * BLOCK,
            in_flight: self.limits.max_batch,
            deterministic: true,
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
