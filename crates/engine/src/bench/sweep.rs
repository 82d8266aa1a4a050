//! Throughput against batch, prompt length and shared beginnings, held against what the device can do at best.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use super::throughput::BenchError;
use crate::cpu::Peaks;
use crate::{Card, Engine, Event, Request, RequestId};
use earnest_models::checkpoint::{DecoderConfig, LayerParameter, Parameter};

/// Requests that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Requests at once.
    pub batch: usize,
    /// Tokens of a prompt.
    pub prompt_tokens: usize,
    /// Share of a prompt's tokens, from its beginning, that all prompts have in common: 0 to 1.
    pub shared: f64,
    /// Tokens generated for each while all of them decode, at least 1.
    pub new_tokens: usize,
}

impl Load {
    /// Tokens of the longest sequence where steps have at most `budget` tokens: the first sequences decode while the last prompts
    /// are computed, and so much longer they go on.
    pub fn longest(&self, budget: usize) -> usize {
        self.prompt_tokens + self.new_tokens + self.meanwhile(budget)
    }

    /// Steps, and one more, in which prompts are computed.
    fn meanwhile(&self, budget: usize) -> usize {
        let own = self.prompt_tokens - (self.shared * self.prompt_tokens as f64) as usize;
        let room = budget.saturating_sub(self.batch).max(1);
        (self.batch * own.max(1) + self.prompt_tokens).div_ceil(room) + 1
    }

    /// Shortens the prompts to fit a context.
    pub fn within(self, context: usize, budget: usize) -> Load {
        let mut load = self;
        while load.prompt_tokens > 1 && load.longest(budget) > context {
            load.prompt_tokens -= 1;
        }
        load
    }
}

/// Measurement of a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadMeasurement {
    /// The load.
    #[serde(flatten)]
    pub load: Load,
    /// Prompt tokens computed.
    pub prefilled_tokens: u64,
    /// Seconds of the steps that computed prompt tokens.
    pub prefill_s: f64,
    /// Tokens generated in steps that gave every request one and computed no prompt.
    pub decoded_tokens: u64,
    /// Seconds of the steps that only decoded.
    pub decode_s: f64,
    /// Prompt tokens computed a second.
    pub prefill_tokens_per_s: f64,
    /// Tokens decoded a second.
    pub decode_tokens_per_s: f64,
    /// Prompt tokens of all requests, cached ones included, a second of prefilling.
    pub prompt_tokens_per_s: f64,
    /// Least time that the device's peaks allow for prefilling, as a share of the time taken; none before
    /// [`LoadMeasurement::hold_against`].
    pub prefill_of_roofline: Option<f64>,
    /// The same share for decoding.
    pub decode_of_roofline: Option<f64>,
    /// Steps of each.
    #[serde(skip)]
    prefill_steps: Vec<StepWork>,
    #[serde(skip)]
    decode_steps: Vec<StepWork>,
}

impl LoadMeasurement {
    /// Says what the device's peaks allow for an engine's work.
    pub fn hold_against(&mut self, roofline: Roofline<'_>, card: &Card) {
        let least = |steps: &[StepWork]| -> f64 {
            steps.iter().map(|step| roofline.cost.least(step, card, roofline.peaks)).sum()
        };
        self.prefill_of_roofline = Some(least(&self.prefill_steps) / self.prefill_s);
        self.decode_of_roofline = Some(least(&self.decode_steps) / self.decode_s);
    }
}

/// Sizes of the engine and its model that a measurement needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Space {
    /// Token ids of the model; those of the prompts are below it.
    pub vocab: usize,
    /// Most tokens that the engine computes in a step.
    pub token_budget: usize,
}

/// Roofline that the work is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofline<'a> {
    /// Cost of a token.
    pub cost: TokenCost,
    /// Peak performance of the device.
    pub peaks: &'a Peaks,
}

/// Cost of computing a token.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TokenCost {
    /// Operations of the layers' products.
    pub layers: f64,
    /// Operations of the output head's product.
    pub head: f64,
    /// Operations of attention for each position that is attended to.
    pub position: f64,
    /// Share of the weights that a step reads: all but an embedding that is only looked up.
    pub read: f64,
}

impl TokenCost {
    /// Of a decoder. A mixture computes the experts that a token is routed to.
    pub fn of(config: &DecoderConfig) -> TokenCost {
        let (mut layers, mut head) = (0.0, 0.0);
        for (parameter, shape) in config.parameters().into_iter().filter(|(_, shape)| shape.len() == 2) {
            let operations = 2.0 * shape.iter().product::<usize>() as f64;
            match parameter {
                Parameter::Embedding if config.tied_embeddings => head += operations,
                Parameter::Head => head += operations,
                Parameter::Layer(
                    _,
                    LayerParameter::ExpertGate(_) | LayerParameter::ExpertUp(_) | LayerParameter::ExpertDown(_),
                ) => {
                    let share = config.experts.map_or(1.0, |e| e.per_token as f64 / e.count as f64);
                    layers += operations * share;
                }
                Parameter::Layer(..) => layers += operations,
                _ => {}
            }
        }
        let width = (config.layers.len() * config.head_dim) as f64;
        TokenCost {
            layers,
            head,
            // Scores and weighted values.
            position: 4.0 * width * config.num_heads as f64,
            read: if config.tied_embeddings {
                1.0
            } else {
                1.0 - (config.vocab_size * config.hidden_size) as f64 / config.parameter_count() as f64
            },
        }
    }

    /// The least seconds in which a device with these peaks can do a step.
    fn least(&self, step: &StepWork, card: &Card, roofline: &Peaks) -> f64 {
        let operations = step.tokens * self.layers + step.logits * self.head + step.tokens * step.seen * self.position;
        let kv_bytes = card.kv_bytes as f64 / card.kv_tokens.max(1) as f64;
        let bytes = card.weight_bytes as f64 * self.read + step.positions * kv_bytes;
        (operations / roofline.products_per_s).max(bytes / roofline.bytes_per_s)
    }
}

/// Work of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct StepWork {
    /// Tokens that go through the layers, and rows of logits.
    tokens: f64,
    logits: f64,
    /// Positions that a token sees on average, and positions whose keys and values must be read once at least.
    seen: f64,
    positions: f64,
}

impl StepWork {
    /// A step that computed `prefilled` prompt tokens and gave `decoded` sequences a token, `ended` of them the first after
    /// their prompts: that one comes of the prompt's last row and costs the head alone.
    fn of(load: Load, prefilled: usize, decoded: usize, ended: usize) -> StepWork {
        let prompt = load.prompt_tokens as f64;
        let shared = load.shared * prompt;
        StepWork {
            tokens: (prefilled + decoded - ended) as f64,
            logits: decoded as f64,
            // A token of a prompt sees half of it on average.
            seen: if prefilled > 0 { prompt / 2.0 } else { prompt },
            // Each sequence's own keys and values; what is shared may be read once for all.
            positions: (prompt - shared) * decoded as f64 + shared,
        }
    }
}

/// Runs a load once, with an empty prefix cache and prompts drawn from a fixed seed; none if `stop` was set meanwhile. Its requests are
/// then still in flight.
///
/// # Errors
/// [`BenchError`] where the load does not fit the context or the cache, or the engine fails.
pub fn measure_load(
    engine: &mut dyn Engine,
    space: Space,
    load: Load,
    stop: &AtomicBool,
) -> Result<Option<LoadMeasurement>, BenchError> {
    engine.forget_prompts();
    let card = engine.card();
    let before = engine.statistics();
    let new_tokens = load.new_tokens + load.meanwhile(space.token_budget);
    for (index, ids) in prompts(load, space.vocab).into_iter().enumerate() {
        let request = Request::greedy(RequestId(index as u64), ids, new_tokens);
        engine.submit(request).map_err(|why| BenchError::Rejected { prompt: index, why })?;
    }
    let mut m = LoadMeasurement {
        load,
        prefilled_tokens: 0,
        prefill_s: 0.0,
        decoded_tokens: 0,
        decode_s: 0.0,
        prefill_tokens_per_s: 0.0,
        decode_tokens_per_s: 0.0,
        prompt_tokens_per_s: 0.0,
        prefill_of_roofline: None,
        decode_of_roofline: None,
        prefill_steps: Vec::new(),
        decode_steps: Vec::new(),
    };
    let mut decoding = 0;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let step = Instant::now();
        let events = engine.poll()?;
        if events.is_empty() {
            break;
        }
        let seconds = step.elapsed().as_secs_f64();
        let mut finished = 0;
        for event in events {
            match event {
                Event::Progress { prefilled, decoded } => {
                    let work = StepWork::of(load, prefilled, decoded, decoded.saturating_sub(decoding));
                    decoding = decoded;
                    if prefilled > 0 {
                        m.prefill_s += seconds;
                        m.prefilled_tokens += prefilled as u64;
                        m.prefill_steps.push(work);
                    } else if decoded == load.batch {
                        m.decode_s += seconds;
                        m.decoded_tokens += decoded as u64;
                        m.decode_steps.push(work);
                    }
                }
                Event::Finished(_) => finished += 1,
                Event::Failed { id, error, .. } => return Err(BenchError::Failed(id.0, error)),
                Event::Generated { .. } | Event::CapacityChanged { .. } => {}
            }
        }
        decoding -= finished;
    }
    if m.decoded_tokens == 0 {
        return Err(BenchError::NeverTogether { batch: load.batch, in_flight: card.in_flight });
    }
    let cached = engine.statistics().cached_tokens - before.cached_tokens;
    m.prefill_tokens_per_s = m.prefilled_tokens as f64 / m.prefill_s;
    m.prompt_tokens_per_s = (m.prefilled_tokens + cached) as f64 / m.prefill_s;
    m.decode_tokens_per_s = m.decoded_tokens as f64 / m.decode_s;
    Ok(Some(m))
}

/// Prompts that share exactly the beginning that they are to share.
fn prompts(load: Load, vocab: usize) -> Vec<Vec<u32>> {
    let mut draw = ChaCha8Rng::seed_from_u64(20_261_122);
    let mut token = || (draw.next_u64() % vocab as u64) as u32;
    let common = (load.shared.clamp(0.0, 1.0) * load.prompt_tokens as f64).round() as usize;
    let beginning: Vec<u32> = (0..common).map(|_| token()).collect();
    let rest = load.prompt_tokens - common;
    (0..load.batch)
        .map(|i| {
            let mut ids = beginning.clone();
            // The first own token differs, so that no more is shared by chance.
            ids.extend((0..rest).map(|p| if p == 0 { (i % vocab) as u32 } else { token() }));
            ids
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{CpuEngine, Options};
    use earnest_models::checkpoint::Checkpoint;

    fn tiny() -> Checkpoint {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama");
        Checkpoint::open(&root).unwrap()
    }

    #[test]
    fn decoding_is_measured_at_the_batch_that_is_named() {
        let checkpoint = tiny();
        let options = Options { threads: Some(1), kv_memory: Some(64 << 20), max_batch: 24, ..Options::default() };
        let mut engine = CpuEngine::load(&checkpoint, options).unwrap();
        let space = Space { vocab: checkpoint.config.vocab_size, token_budget: engine.token_budget() };
        let cost = TokenCost::of(&checkpoint.config);
        let peaks = &Peaks { products_per_s: 1e12, f32_per_s: 1e12, bytes_per_s: 1e11, buffer_bytes: 1 };
        for (batch, prompt_tokens, shared) in [(24, 100, 0.0), (3, 40, 0.5), (1, 8, 0.0), (24, 60, 0.9)] {
            let load = Load { batch, prompt_tokens, shared, new_tokens: 4 };
            let mut m = measure_load(&mut engine, space, load, &AtomicBool::new(false)).unwrap().unwrap();
            m.hold_against(Roofline { cost, peaks }, &engine.card());
            assert!(m.prefill_of_roofline > Some(0.0) && m.decode_of_roofline > Some(0.0), "{m:?}");
            assert!(m.decoded_tokens >= 4 * batch as u64 && m.decoded_tokens.is_multiple_of(batch as u64), "{m:?}");
            assert!(m.decode_s > 0.0 && m.prefilled_tokens >= (batch * prompt_tokens) as u64 / 10, "{m:?}");
        }
        // More at once than the engine runs is never together.
        let load = Load { batch: 25, prompt_tokens: 8, shared: 0.0, new_tokens: 4 };
        let error = measure_load(&mut engine, space, load, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("25"), "{error}");
        let load = Load { batch: 2, prompt_tokens: 8, shared: 0.0, new_tokens: 4 };
        assert_eq!(measure_load(&mut engine, space, load, &AtomicBool::new(true)).unwrap(), None);
    }

    #[test]
    fn a_step_s_work_is_that_of_its_tokens() {
        let load = Load { batch: 4, prompt_tokens: 10, shared: 0.5, new_tokens: 2 };
        // Four prompts of ten end in one step: their first tokens come of rows that are computed anyway.
        let step = StepWork::of(load, 40, 4, 4);
        assert_eq!((step.tokens, step.logits, step.seen), (40.0, 4.0, 5.0));
        let step = StepWork::of(load, 0, 4, 0);
        assert_eq!((step.tokens, step.logits, step.seen, step.positions), (4.0, 4.0, 10.0, 25.0));
        // By hand for the tiny Llama: operations of its matrices, each weight a multiplication and an addition.
        let config = tiny().config;
        let cost = TokenCost::of(&config);
        let (h, i, kv) = (config.hidden_size, config.intermediate_size, config.num_kv_heads * config.head_dim);
        let q = config.num_heads * config.head_dim;
        let layer = 2 * (h * q + 2 * h * kv + q * h + 3 * h * i);
        assert_eq!(cost.layers, (config.layers.len() * layer) as f64);
        assert_eq!(cost.head, (2 * config.vocab_size * h) as f64);
        assert_eq!(cost.position, (4 * config.layers.len() * q) as f64);
    }

    #[test]
    fn prompts_share_what_they_are_to_share() {
        let load = Load { batch: 5, prompt_tokens: 40, shared: 0.75, new_tokens: 2 };
        let all = prompts(load, 300);
        assert_eq!(all, prompts(load, 300));
        for pair in all.windows(2) {
            assert_eq!(pair[0].len(), 40);
            assert_eq!(pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count(), 30);
        }
        assert!(prompts(Load { shared: 1.0, ..load }, 300).windows(2).all(|pair| pair[0] == pair[1]));
    }
}
