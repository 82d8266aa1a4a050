//! Utilisation of a device's bandwidth and arithmetic: decoding and prefill at known sizes, and workloads of an evaluation's shape.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;

use super::throughput::BenchError;
use crate::{Engine, Event, Request, RequestId, Sampling, SamplingKey};
use earnest_models::checkpoint::DecoderConfig;

/// Peak performance of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Machine {
    /// Bytes a second from memory.
    pub bandwidth: f64,
    /// Operations a second in the type that is computed in, a multiplication and an addition being two.
    pub arithmetic: f64,
}

/// Cost of a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Bytes of the weights that every step reads: all, without an embedding table of which only rows are read.
    pub weight_bytes: f64,
    /// Weights that tokens are multiplied with, all experts included.
    pub weights: f64,
    /// Those of the output head, which only rows of wanted logits go through.
    pub head: f64,
    /// Bytes of the keys and values of one position.
    pub kv_bytes: f64,
    /// Share of the weights (without the embedding table) that experts have, and share of the experts that a token is multiplied with.
    pub experts: [f64; 2],
}

/// Decoding at one batch size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecodeResult {
    /// Requests decoding together.
    pub batch: usize,
    /// Tokens of each prompt.
    pub context: usize,
    /// Steps that were timed: those in which every request decodes and nothing else is done.
    pub steps: usize,
    /// Seconds of a step (median); with no step timed this and what follows are not numbers, in JSON null.
    pub step_s: f64,
    /// Tokens decoded a second.
    pub tokens_per_s: f64,
    /// The time that the larger of bytes and arithmetic takes at least, as a fraction of the step's.
    pub fraction: f64,
}

/// Prompts without anything in common, all submitted at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrefillResult {
    /// Number of prompts.
    pub batch: usize,
    /// Tokens of all prompts.
    pub tokens: usize,
    /// Seconds from the first submission to the last token.
    pub seconds: f64,
    /// Prompt tokens a second.
    pub tokens_per_s: f64,
    /// Least time that the machine's peaks allow, as a fraction of the time taken.
    pub fraction: f64,
}

/// Prompts with a common beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedWorkload {
    /// Number of prompts.
    pub prompts: usize,
    /// Tokens that all prompts share.
    pub shared: usize,
    /// Average of the tokens that a prompt has alone.
    pub own: usize,
    /// Tokens generated for each prompt.
    pub new_tokens: usize,
    /// Prompts get a third to five thirds of these tokens, as answers end: nearly every step then has another number of rows.
    pub ragged: bool,
    /// Choice of tokens.
    pub sampling: Sampling,
}

impl SharedWorkload {
    /// Tokens generated for the prompt at an index.
    fn new_tokens(&self, prompt: usize) -> usize {
        match self.ragged {
            true => (self.new_tokens * (40 + prompt * 61 % 161) / 120).max(1),
            false => self.new_tokens,
        }
    }
}

/// Prompts with a common beginning, from the first submission to the last token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharedResult {
    /// Number of prompts.
    pub prompts: usize,
    /// Tokens that all prompts share.
    pub shared: usize,
    /// Average of the tokens that a prompt has alone.
    pub own: usize,
    /// Tokens generated for each prompt.
    pub new_tokens: usize,
    /// Seconds from the first submission to the last token.
    pub seconds: f64,
    /// Steps run.
    pub steps: u64,
    /// Prompt tokens computed.
    pub prefilled_tokens: u64,
    /// Requests preempted.
    pub preemptions: u64,
    /// Least time that the machine's peaks allow for all of it, as a fraction of the time taken.
    pub fraction: f64,
}

impl Cost {
    /// Of a model whose weights take `bytes` on the device and whose cache takes `kv_bytes` a position.
    pub fn of(config: &DecoderConfig, bytes: u64, kv_bytes: f64) -> Cost {
        let all = config.parameter_count() as f64;
        let table = (config.vocab_size * config.hidden_size) as f64;
        // An embedding that is not the head is only looked up.
        let used = if config.tied_embeddings { all } else { all - table };
        let experts = config.experts.map_or([0.0, 1.0], |e| {
            let layers = config.layers.iter().filter(|layer| layer.experts).count();
            let weights = layers * e.count * 3 * config.hidden_size * e.intermediate_size;
            [weights as f64 / used, e.per_token as f64 / e.count as f64]
        });
        Cost { weight_bytes: bytes as f64 * used / all, weights: used, head: table, kv_bytes, experts }
    }

    /// Operations of `tokens` tokens, of which `rows` go through the head.
    fn operations(&self, tokens: f64, rows: f64) -> f64 {
        let [experts, chosen] = self.experts;
        let unused = self.weights * experts * (1.0 - chosen);
        2.0 * ((self.weights - self.head - unused) * tokens + self.head * rows)
    }

    /// Bytes of the weights that a step of `tokens` tokens reads, if each chooses its experts at random.
    fn bytes(&self, tokens: f64) -> f64 {
        let [experts, chosen] = self.experts;
        self.weight_bytes * (1.0 - experts * (1.0 - chosen).powf(tokens))
    }

    /// Seconds that a step needs at least: `tokens` computed, of which `rows` go through the head, `positions` read by attention.
    fn least(&self, machine: &Machine, tokens: f64, rows: f64, positions: f64) -> f64 {
        let bytes = self.bytes(tokens) + positions * self.kv_bytes;
        (bytes / machine.bandwidth).max(self.operations(tokens, rows) / machine.arithmetic)
    }
}

impl SharedWorkload {
    /// Seconds that a machine needs at least, with the common beginning computed once and `batch` requests at once: the larger of what
    /// arithmetic and memory take, as if neither ever waited for the other.
    fn least(&self, machine: &Machine, cost: &Cost, batch: usize) -> f64 {
        let generated = (self.prompts * self.new_tokens) as f64;
        let computed = self.shared as f64 + (self.prompts * self.own) as f64 + generated;
        // Every step reads the weights and the common keys and values, and every token those of its own request.
        let steps = (self.prompts.div_ceil(batch.max(1)) * self.new_tokens) as f64;
        let own = generated * (self.own as f64 + self.new_tokens as f64 / 2.0);
        let bytes = steps * cost.bytes(batch.clamp(1, self.prompts.max(1)) as f64)
            + (steps * self.shared as f64 + own) * cost.kv_bytes;
        (cost.operations(computed, generated) / machine.arithmetic).max(bytes / machine.bandwidth)
    }
}

/// Ids that no other prompt begins with.
pub(crate) fn ids(prompt: usize, count: usize, vocab: usize) -> Vec<u32> {
    let mut state = prompt as u64 * 0x9E37_79B9_7F4A_7C15 + 1;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % vocab as u64) as u32
        })
        .collect()
}

/// Key of a prompt's random numbers.
fn key(prompt: usize) -> SamplingKey {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&(prompt as u64).to_le_bytes());
    SamplingKey(key)
}

/// Submits requests and runs them to their end, `hear` being told of each step: seconds, prompt tokens, generated tokens.
///
/// # Errors
/// [`BenchError::Stopped`] once `stop` is set.
fn run(
    engine: &mut dyn Engine,
    requests: Vec<Request>,
    stop: &AtomicBool,
    hear: &mut dyn FnMut(f64, usize, usize),
) -> Result<(), BenchError> {
    for (prompt, request) in requests.into_iter().enumerate() {
        engine.submit(request).map_err(|why| BenchError::Rejected { prompt, why })?;
    }
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        let step = Instant::now();
        let events = engine.poll()?;
        if events.is_empty() {
            return Ok(());
        }
        for event in events {
            match event {
                Event::Progress { prefilled, decoded } => hear(step.elapsed().as_secs_f64(), prefilled, decoded),
                Event::Failed { id, error, .. } => return Err(BenchError::Failed(id.0, error)),
                Event::Finished(_) | Event::Generated { .. } | Event::CapacityChanged { .. } => {}
            }
        }
    }
}

/// Tokens that each of `batch` requests with prompts of `context` tokens has to generate so that, after the last prompt is computed in
/// steps of at most `budget` tokens, the first request still decodes for `steps` steps.
pub fn decoding_tokens(batch: usize, context: usize, steps: usize, budget: usize) -> usize {
    // While prompts are computed, those that are done decode, one token a step.
    let prefill = (batch * context).div_ceil(budget.saturating_sub(batch).max(1));
    steps.max(8) + 4 + prefill
}

/// Decodes `batch` requests with prompts of `context` tokens on an engine whose steps have at most `budget` tokens, and takes the
/// median of at least `steps` steps in which all of them decode.
pub fn measure_decoding(
    engine: &mut dyn Engine,
    config: &DecoderConfig,
    machine: &Machine,
    cost: &Cost,
    (batch, context, steps, budget): (usize, usize, usize, usize),
    stop: &AtomicBool,
) -> Result<DecodeResult, BenchError> {
    engine.forget_prompts();
    let new = decoding_tokens(batch, context, steps, budget);
    let request = |i: usize| Request::greedy(RequestId(i as u64), ids(i, context, config.vocab_size), new);
    let mut seconds = vec![];
    run(engine, (0..batch).map(request).collect(), stop, &mut |s, prefilled, decoded| {
        if prefilled == 0 && decoded == batch {
            seconds.push(s);
        }
    })?;
    // The first steps still wait for prefill that was handed over before.
    let mut steady: Vec<f64> = seconds.iter().skip(3).copied().collect();
    steady.sort_by(f64::total_cmp);
    let step_s = steady.get(steady.len() / 2).copied().unwrap_or(f64::NAN);
    // The first request has decoded since the first prompts were done, the last one not at all.
    let positions = batch as f64 * (context as f64 + new as f64 / 2.0);
    Ok(DecodeResult {
        batch,
        context,
        steps: steady.len(),
        step_s,
        tokens_per_s: batch as f64 / step_s,
        fraction: cost.least(machine, batch as f64, batch as f64, positions) / step_s,
    })
}

/// Computes `prompts` prompts of `length` tokens that have nothing in common.
pub fn measure_prefill(
    engine: &mut dyn Engine,
    config: &DecoderConfig,
    machine: &Machine,
    cost: &Cost,
    (prompts, length): (usize, usize),
    stop: &AtomicBool,
) -> Result<PrefillResult, BenchError> {
    engine.forget_prompts();
    let request = |i: usize| Request::greedy(RequestId(i as u64), ids(1000 + i, length, config.vocab_size), 1);
    let start = Instant::now();
    run(engine, (0..prompts).map(request).collect(), stop, &mut |_, _, _| {})?;
    let seconds = start.elapsed().as_secs_f64();
    let tokens = prompts * length;
    Ok(PrefillResult {
        batch: prompts,
        tokens,
        seconds,
        tokens_per_s: tokens as f64 / seconds,
        fraction: cost.least(machine, tokens as f64, prompts as f64, 0.0) / seconds,
    })
}

/// Runs a workload on an engine that computes at most `batch` requests at once.
pub fn measure_shared(
    engine: &mut dyn Engine,
    config: &DecoderConfig,
    machine: &Machine,
    cost: &Cost,
    (workload, batch): (&SharedWorkload, usize),
    stop: &AtomicBool,
) -> Result<SharedResult, BenchError> {
    let SharedWorkload { prompts, shared, own, new_tokens, ref sampling, .. } = *workload;
    engine.forget_prompts();
    let common = ids(0, shared, config.vocab_size);
    let before = engine.statistics();
    let start = Instant::now();
    let request = |i: usize| {
        // From 70 % to 130 % of the length, as questions differ.
        let length = (own * (70 + i * 37 % 61) / 100).max(1);
        let prompt = [&common[..], &ids(1_000_000 + i, length, config.vocab_size)].concat();
        let sampling = sampling.clone();
        Request {
            sampling,
            sampling_key: key(i),
            ..Request::greedy(RequestId(i as u64), prompt, workload.new_tokens(i))
        }
    };
    run(engine, (0..prompts).map(request).collect(), stop, &mut |_, _, _| {})?;
    let seconds = start.elapsed().as_secs_f64();
    let after = engine.statistics();
    Ok(SharedResult {
        prompts,
        shared,
        own,
        new_tokens,
        seconds,
        fraction: workload.least(machine, cost, batch) / seconds,
        steps: after.steps - before.steps,
        prefilled_tokens: after.prefilled_tokens - before.prefilled_tokens,
        preemptions: after.preemptions - before.preemptions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{CpuEngine, Options};
    use earnest_models::checkpoint::Checkpoint;

    #[test]
    fn tokens_are_multiplied_with_the_experts_that_they_choose() {
        // Half of the weights are experts, of which a token has a quarter.
        let cost = Cost { weight_bytes: 2e6, weights: 1e6, head: 0.0, kv_bytes: 0.0, experts: [0.5, 0.25] };
        assert_eq!(cost.operations(10.0, 10.0), 2.0 * 10.0 * (5e5 + 0.25 * 5e5));
        assert_eq!(cost.bytes(1.0), 1e6 + 0.25 * 1e6);
        assert!((cost.bytes(2.0) - (1e6 + 0.4375 * 1e6)).abs() < 1e-6 && cost.bytes(1e4) > 1.999e6);
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints");
        let of = |name: &str| Cost::of(&Checkpoint::open(&folder.join(name)).unwrap().config, 1000, 1.0).experts;
        assert_eq!(of("llama"), [0.0, 1.0]);
        let [experts, chosen] = of("mixtral");
        assert!((0.1..1.0).contains(&experts) && (0.1..1.0).contains(&chosen), "{experts} {chosen}");
    }

    #[test]
    fn a_workload_takes_at_least_what_arithmetic_or_memory_takes() {
        let cost = Cost { weight_bytes: 2e6, weights: 1e6, head: 1e5, kv_bytes: 100.0, experts: [0.0, 1.0] };
        let workload = SharedWorkload {
            prompts: 10,
            shared: 50,
            own: 20,
            new_tokens: 4,
            ragged: false,
            sampling: Sampling::GREEDY,
        };
        // 290 tokens through all but the head, 40 through the head.
        let slow = Machine { bandwidth: 1e15, arithmetic: 1e9 };
        let least = workload.least(&slow, &cost, 4);
        assert!((least - 2.0 * (9e5 * 290.0 + 1e5 * 40.0) / 1e9).abs() < 1e-9, "{least}");
        // Three batches of four steps; 40 tokens read 22 positions each.
        let narrow = Machine { bandwidth: 1e6, arithmetic: 1e15 };
        let least = workload.least(&narrow, &cost, 4);
        assert!((least - (12.0 * 2e6 + (12.0 * 50.0 + 40.0 * 22.0) * 100.0) / 1e6).abs() < 1e-9, "{least}");
    }

    #[test]
    fn steps_that_only_decode_are_left_at_every_batch_size() {
        assert_eq!(decoding_tokens(1, 512, 32, 8192), 37);
        assert_eq!(decoding_tokens(512, 512, 32, 8192), 32 + 4 + 35);
        assert_eq!(decoding_tokens(4, 100, 2, 4), 8 + 4 + 400);
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama");
        let checkpoint = Checkpoint::open(&folder).unwrap();
        // Prompts take many more steps than are to be timed.
        let options = Options { token_budget: 40, max_batch: 24, kv_memory: Some(64 << 20), ..Options::default() };
        let mut engine = CpuEngine::load(&checkpoint, options).unwrap();
        let (machine, cost) = (
            Machine { bandwidth: 1e12, arithmetic: 1e14 },
            Cost { weight_bytes: 1e6, weights: 5e5, head: 0.0, kv_bytes: 100.0, experts: [0.0, 1.0] },
        );
        for batch in [1, 24] {
            let sizes = (batch, 64, 8, 40);
            let r = measure_decoding(&mut engine, &checkpoint.config, &machine, &cost, sizes, &AtomicBool::new(false))
                .unwrap();
            assert!(r.steps >= 8 && r.step_s > 0.0 && r.fraction > 0.0, "{r:?}");
        }
    }
}
