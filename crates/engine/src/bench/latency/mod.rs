//! Latency of a sample in every mode at every batch size, on the same questions.
mod numbers;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;

use super::throughput::BenchError;
use crate::{Completion, Engine, Event, Input, Request, RequestId};

/// A question as one mode puts it.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyPrompt {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Strings that end the answer.
    pub stop_strings: Vec<String>,
    /// Token ids that end the answer.
    pub stop_ids: Vec<u32>,
    /// Most tokens to generate.
    pub max_tokens: usize,
}

/// Seconds and tokens of one completion within a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    /// From submission to the first token.
    first_token_s: f64,
    /// From submission to the last token.
    latency_s: f64,
    tokens: usize,
}

/// All prompts of a mode, once, with at most `batch` of them in the engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyPass {
    /// From the first submission to the last token, in seconds.
    pub seconds: f64,
    /// Seconds of steps that computed prompt tokens, and perhaps decoded.
    pub prefill_s: f64,
    /// Seconds of steps that only decoded.
    pub decode_s: f64,
    /// Prompt tokens computed.
    pub prefilled_tokens: u64,
    /// Prompt tokens read from the prefix cache.
    pub cached_tokens: u64,
    /// Tokens generated.
    pub generated_tokens: u64,
    /// Most samples that the engine ran in one step.
    pub largest_batch: usize,
    /// Most bytes of keys and values of samples in the engine; what is only kept for later prompts is not among them.
    pub kv_bytes: u64,
}

/// A median with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One mode at one batch size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// Samples that may be in the engine at once.
    pub batch: usize,
    /// Samples of a pass.
    pub samples: usize,
    /// The passes in the order in which they ran; the prefix cache is empty at the start of each.
    pub passes: Vec<LatencyPass>,
    /// Seconds a sample: a pass's seconds over its samples, as Table 2 of the Number Cookbook counts. From six passes on, the
    /// interval is the one between order statistics that covers the median with at least 95 %; from fewer, the range.
    pub seconds_per_sample: Spread,
    /// True if that interval has a confidence of at least 95 %, false if it is a range.
    pub is_interval: bool,
    /// Median pass: seconds a sample of steps with prompt tokens.
    pub prefill_per_sample: f64,
    /// Median pass: seconds a sample of steps that only decoded.
    pub decode_per_sample: f64,
    /// Median pass: generated tokens a second.
    pub tokens_per_s: f64,
    /// Mean number of tokens of a prompt.
    pub prompt_tokens: f64,
    /// Mean number of tokens of a completion.
    pub new_tokens: f64,
    /// Seconds from submission to the first token, over all samples of all passes: median, 5th and 95th percentile.
    pub first_token_s: Spread,
    /// Seconds from submission to the last token, likewise.
    pub latency_s: Spread,
    /// Most bytes of keys and values in use in any pass.
    pub kv_bytes: u64,
    /// Most memory that the process had held when the last pass ended, in bytes.
    pub peak_memory: Option<u64>,
    /// Passes (from 1) whose seconds lie more than 10 % from the median.
    pub outlying_passes: Vec<usize>,
    /// At batch size 1, questions whose seconds a token after the first, in their median pass, lie above the third quartile by more than three
    /// interquartile ranges, and by a quarter of it; the number of the question. Needs three passes that begin at different questions.
    pub slow_questions: Vec<usize>,
}

/// Everything that is known of one mode.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeResult {
    /// One a batch size, in the order asked.
    pub latencies: Vec<Latency>,
    /// The completions of the first pass at the first batch size, one a question.
    pub completions: Vec<Completion>,
    /// Questions whose tokens were not the same in every pass at every batch size; none in an engine whose results do not
    /// depend on the batch.
    pub unsteady: Vec<usize>,
}

/// Plan of a latency measurement.
#[derive(Debug, Clone)]
pub struct LatencyPlan<'a> {
    /// For every mode, the same questions as it puts them.
    pub modes: Vec<&'a [LatencyPrompt]>,
    /// Batch sizes.
    pub batches: &'a [usize],
    /// Passes of every mode at every batch size.
    pub repetitions: usize,
    /// Samples run before each pass of the first repetition, not counted.
    pub warm_up: usize,
    /// Bytes of keys and values that one block of the engine's cache holds.
    pub block_bytes: f64,
}

/// Position of a pass in the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassEvent {
    /// Number of the repetition.
    pub repetition: usize,
    /// Number of the mode.
    pub mode: usize,
    /// Batch size.
    pub batch: usize,
    /// Stage of the pass.
    pub stage: PassStage,
}

/// Stage of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PassStage {
    /// It is about to begin, with the samples before it that do not count.
    Begun,
    /// So many of its samples are done.
    Done(usize),
    /// It has ended, after so many seconds.
    Ended(f64),
}

/// Measurements of all modes.
#[derive(Debug)]
pub struct LatencyResults {
    /// One entry a mode; batch sizes without a whole pass are left out.
    pub modes: Vec<ModeResult>,
    /// Whole passes.
    pub passes: usize,
    /// Reason why there are no more.
    pub ended: Result<Ended, BenchError>,
}

/// End of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every pass was measured.
    Finished,
    /// The caller wished to stop.
    Stopped,
}

/// Measures until all is measured, `stop` is set or the engine fails; what was measured by then is the result. Every repetition
/// goes through all modes and batch sizes before the next begins, so that a machine whose speed drifts slows all of them alike.
///
/// # Errors
/// [`BenchError::InMode`] with [`BenchError::Rejected`] where a prompt can never be run, before anything is measured.
pub fn measure_latency(
    engine: &mut dyn Engine,
    plan: &LatencyPlan<'_>,
    stop: &AtomicBool,
    hear: &mut dyn FnMut(PassEvent),
) -> Result<LatencyResults, BenchError> {
    for (mode, prompts) in plan.modes.iter().enumerate() {
        refused(engine, prompts).map_err(|error| BenchError::InMode { mode, error: Box::new(error) })?;
    }
    let mut measured = Measured::new(plan.modes.len());
    let ended = measured.all(engine, plan, stop, hear);
    let Measured { gathered, first, unsteady } = measured;
    let passes = gathered.values().map(|one| one.passes.len()).sum();
    let mut results = Vec::with_capacity(plan.modes.len());
    for (mode, ((prompts, completions), mut unsteady)) in plan.modes.iter().zip(first).zip(unsteady).enumerate() {
        unsteady.sort_unstable();
        unsteady.dedup();
        let of =
            |(index, &batch): (usize, &usize)| Some(numbers::latency(batch, prompts, gathered.get(&(mode, index))?));
        let latencies = plan.batches.iter().enumerate().filter_map(of).collect();
        results.push(ModeResult { latencies, completions, unsteady });
    }
    Ok(LatencyResults { modes: results, passes, ended })
}

/// Measurements so far.
struct Measured {
    /// By mode and index of the batch size.
    gathered: HashMap<(usize, usize), Gathered>,
    /// Of each mode, the completions of its first pass.
    first: Vec<Vec<Completion>>,
    unsteady: Vec<Vec<usize>>,
}

impl Measured {
    fn new(modes: usize) -> Self {
        Measured { gathered: HashMap::new(), first: vec![Vec::new(); modes], unsteady: vec![Vec::new(); modes] }
    }

    fn all(
        &mut self,
        engine: &mut dyn Engine,
        plan: &LatencyPlan<'_>,
        stop: &AtomicBool,
        hear: &mut dyn FnMut(PassEvent),
    ) -> Result<Ended, BenchError> {
        for repetition in 0..plan.repetitions.max(1) {
            for (mode, prompts) in plan.modes.iter().enumerate() {
                let in_mode = |error| BenchError::InMode { mode, error: Box::new(error) };
                for (index, &batch) in plan.batches.iter().enumerate() {
                    let mut say = |stage| hear(PassEvent { repetition, mode, batch, stage });
                    say(PassStage::Begun);
                    let run = Run { batch, block_bytes: plan.block_bytes, stop };
                    if repetition == 0 && plan.warm_up > 0 {
                        let few = &prompts[..plan.warm_up.min(prompts.len())];
                        if run.pass(engine, few, 0, &mut |_| {}).map_err(in_mode)?.is_none() {
                            return Ok(Ended::Stopped);
                        }
                    }
                    let begin = beginning(repetition, prompts.len());
                    let done = &mut |count| say(PassStage::Done(count));
                    let Some((measured, completions)) = run.pass(engine, prompts, begin, done).map_err(in_mode)? else {
                        return Ok(Ended::Stopped);
                    };
                    say(PassStage::Ended(measured.seconds));
                    self.add((mode, index), measured, completions);
                }
            }
        }
        Ok(Ended::Finished)
    }

    fn add(&mut self, (mode, index): (usize, usize), measured: LatencyPass, completions: Vec<Completion>) {
        let one = self.gathered.entry((mode, index)).or_default();
        one.samples.push(completions.iter().map(sample).collect());
        one.passes.push(measured);
        one.peak_memory = super::peak_memory();
        if self.first[mode].is_empty() {
            self.first[mode] = completions;
            return;
        }
        let changed = |(before, now): (&Completion, &Completion)| before.ids != now.ids;
        let pairs = self.first[mode].iter().zip(&completions).enumerate();
        self.unsteady[mode].extend(pairs.filter(|(_, pair)| changed(*pair)).map(|(question, _)| question));
    }
}

/// The passes of one mode at one batch size.
#[derive(Default)]
struct Gathered {
    passes: Vec<LatencyPass>,
    samples: Vec<Vec<Sample>>,
    peak_memory: Option<u64>,
}

fn sample(completion: &Completion) -> Sample {
    let t = completion.timings;
    let first_token_s = t.queued_s + t.prefill_s;
    Sample { first_token_s, latency_s: first_token_s + t.decode_s, tokens: completion.ids.len() }
}

/// The question that a repetition begins at. What only the first ones of a pass wait for is then not always the same ones'; the golden
/// ratio spreads any number of beginnings evenly, so that nothing depends on how many are measured.
fn beginning(repetition: usize, questions: usize) -> usize {
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    ((repetition as f64 * golden).fract() * questions as f64) as usize
}

fn request(index: usize, prompt: &LatencyPrompt) -> Request {
    Request {
        input: Input::Ids(prompt.ids.clone()),
        stop_strings: prompt.stop_strings.clone(),
        stop_ids: prompt.stop_ids.clone(),
        ..Request::greedy(RequestId(index as u64), Vec::new(), prompt.max_tokens)
    }
}

/// An error if the prompt with the longest sequence is refused: a minute of passes should not end at one.
fn refused(engine: &mut dyn Engine, prompts: &[LatencyPrompt]) -> Result<(), BenchError> {
    let longest = prompts.iter().enumerate().max_by_key(|(_, prompt)| prompt.ids.len() + prompt.max_tokens);
    let Some((index, prompt)) = longest else { return Ok(()) };
    engine.submit(request(index, prompt)).map_err(|why| BenchError::Rejected { prompt: index, why })?;
    engine.cancel(RequestId(index as u64));
    while !engine.poll()?.is_empty() {}
    Ok(())
}

/// Settings of a pass.
#[derive(Clone, Copy)]
struct Run<'a> {
    /// Samples that may be in the engine at once.
    batch: usize,
    block_bytes: f64,
    stop: &'a AtomicBool,
}

impl Run<'_> {
    /// One pass, from question `begin` on and around, which tells how many samples are done; none if the user stopped within it. Its
    /// requests are then still in flight.
    fn pass(
        self,
        engine: &mut dyn Engine,
        prompts: &[LatencyPrompt],
        begin: usize,
        done: &mut dyn FnMut(usize),
    ) -> Result<Option<(LatencyPass, Vec<Completion>)>, BenchError> {
        engine.forget_prompts();
        let before = engine.statistics();
        let start = Instant::now();
        let mut completions: Vec<Option<Completion>> = vec![None; prompts.len()];
        let mut waiting = prompts.iter().enumerate().cycle().skip(begin).take(prompts.len());
        let (mut in_flight, mut left) = (0, prompts.len());
        let (mut prefill_s, mut decode_s, mut largest_batch, mut blocks) = (0.0, 0.0, 0, 0);
        while left > 0 {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            while in_flight < self.batch {
                let Some((index, prompt)) = waiting.next() else { break };
                let request = request(index, prompt);
                engine.submit(request).map_err(|why| BenchError::Rejected { prompt: index, why })?;
                in_flight += 1;
            }
            let step = Instant::now();
            let events = engine.poll()?;
            if events.is_empty() {
                return Err(BenchError::Lost(left));
            }
            let statistics = engine.statistics();
            // What only the prefix cache holds is given up where it is wanted: it is no memory that the batch needs.
            blocks = blocks.max(statistics.blocks_used.saturating_sub(statistics.blocks_cached));
            let mut ended = 0;
            for event in events {
                match event {
                    Event::Progress { prefilled, .. } => {
                        let spent = if prefilled > 0 { &mut prefill_s } else { &mut decode_s };
                        *spent += step.elapsed().as_secs_f64();
                    }
                    Event::Finished(completion) => {
                        if let Some(slot) = completions.get_mut(completion.id.0 as usize) {
                            *slot = Some(*completion);
                        }
                        ended += 1;
                    }
                    Event::Failed { id, error, .. } => return Err(BenchError::Failed(id.0, error)),
                    Event::Generated { .. } | Event::CapacityChanged { .. } => {}
                }
            }
            // What ended in this step had run in it.
            largest_batch = largest_batch.max(statistics.running + ended);
            in_flight -= ended;
            left -= ended;
            done(prompts.len() - left);
        }
        let seconds = start.elapsed().as_secs_f64();
        let after = engine.statistics();
        let measured = LatencyPass {
            seconds,
            prefill_s,
            decode_s,
            prefilled_tokens: after.prefilled_tokens - before.prefilled_tokens,
            cached_tokens: after.cached_tokens - before.cached_tokens,
            generated_tokens: after.decoded_tokens - before.decoded_tokens,
            largest_batch,
            kv_bytes: (blocks as f64 * self.block_bytes) as u64,
        };
        Ok(Some((measured, completions.into_iter().flatten().collect())))
    }
}
