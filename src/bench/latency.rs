//! What a sample costs in every mode at every batch size, on the same questions.
use std::collections::HashMap;
use std::time::Instant;

use serde::Serialize;

use super::throughput::BenchError;
use crate::engine::{Completion, Engine, Event, Input, Request, RequestId};

/// A question as one mode puts it.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyPrompt {
    pub ids: Vec<u32>,
    pub stop_strings: Vec<String>,
    pub stop_ids: Vec<u32>,
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
    /// Seconds of the steps that computed prompt tokens (and perhaps others), and of those that only decoded.
    pub prefill_s: f64,
    pub decode_s: f64,
    /// Tokens computed for prompts, read from the prefix cache, generated.
    pub prefilled_tokens: u64,
    pub cached_tokens: u64,
    pub generated_tokens: u64,
    /// Most samples that the engine ran in one step.
    pub largest_batch: usize,
    /// Most bytes of keys and values in use.
    pub kv_bytes: u64,
}

/// A median with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
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
    /// Median pass: seconds a sample of steps with prompt tokens and of decoding only.
    pub prefill_per_sample: f64,
    pub decode_per_sample: f64,
    /// Median pass: generated tokens a second.
    pub tokens_per_s: f64,
    /// Mean number of tokens of a prompt and of a completion.
    pub prompt_tokens: f64,
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
    /// Questions whose latency a token, in their median pass, lies above the third quartile by more than three
    /// interquartile ranges; the number of the question.
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

/// What is repeated, and how often.
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

/// A pass is about to begin or has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassEvent {
    pub repetition: usize,
    pub mode: usize,
    pub batch: usize,
    /// Its seconds, when it has ended.
    pub seconds: Option<f64>,
}

/// Measures. Every repetition goes through all modes and batch sizes before the next begins, so that a machine whose speed
/// drifts slows all of them alike. The result has one entry a mode.
///
/// # Errors
/// [`BenchError`] where a prompt is refused or the engine fails.
pub fn measure_latency(
    engine: &mut dyn Engine,
    plan: &LatencyPlan<'_>,
    hear: &mut dyn FnMut(PassEvent),
) -> Result<Vec<ModeResult>, BenchError> {
    let mut gathered: HashMap<(usize, usize), Gathered> = HashMap::new();
    let mut first: Vec<Vec<Completion>> = vec![Vec::new(); plan.modes.len()];
    let mut unsteady: Vec<Vec<usize>> = vec![Vec::new(); plan.modes.len()];
    for repetition in 0..plan.repetitions.max(1) {
        for (mode, prompts) in plan.modes.iter().enumerate() {
            for (place, &batch) in plan.batches.iter().enumerate() {
                hear(PassEvent { repetition, mode, batch, seconds: None });
                if repetition == 0 && plan.warm_up > 0 {
                    let few = &prompts[..plan.warm_up.min(prompts.len())];
                    pass(engine, few, batch, plan.block_bytes)?;
                }
                let (measured, completions) = pass(engine, prompts, batch, plan.block_bytes)?;
                hear(PassEvent { repetition, mode, batch, seconds: Some(measured.seconds) });
                let one = gathered.entry((mode, place)).or_default();
                one.samples.push(completions.iter().map(sample).collect());
                one.passes.push(measured);
                one.peak_memory = super::peak_memory();
                if first[mode].is_empty() {
                    first[mode] = completions;
                } else {
                    let changed = |(before, now): (&Completion, &Completion)| before.ids != now.ids;
                    let pairs = first[mode].iter().zip(&completions).enumerate();
                    unsteady[mode].extend(pairs.filter(|(_, pair)| changed(*pair)).map(|(question, _)| question));
                }
            }
        }
    }
    let mut results = Vec::with_capacity(plan.modes.len());
    for (mode, ((prompts, completions), mut unsteady)) in plan.modes.iter().zip(first).zip(unsteady).enumerate() {
        unsteady.sort_unstable();
        unsteady.dedup();
        let of = |(place, &batch): (usize, &usize)| Some(latency(batch, prompts, gathered.get(&(mode, place))?));
        let latencies = plan.batches.iter().enumerate().filter_map(of).collect();
        results.push(ModeResult { latencies, completions, unsteady });
    }
    Ok(results)
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

fn pass(
    engine: &mut dyn Engine,
    prompts: &[LatencyPrompt],
    batch: usize,
    block_bytes: f64,
) -> Result<(LatencyPass, Vec<Completion>), BenchError> {
    engine.forget_prompts();
    let before = engine.statistics();
    let start = Instant::now();
    let mut completions: Vec<Option<Completion>> = vec![None; prompts.len()];
    let mut waiting = prompts.iter().enumerate();
    let (mut in_flight, mut left) = (0, prompts.len());
    let (mut prefill_s, mut decode_s, mut largest_batch, mut blocks) = (0.0, 0.0, 0, 0);
    while left > 0 {
        while in_flight < batch {
            let Some((place, prompt)) = waiting.next() else { break };
            let request = Request {
                input: Input::Ids(prompt.ids.clone()),
                stop_strings: prompt.stop_strings.clone(),
                stop_ids: prompt.stop_ids.clone(),
                ..Request::greedy(RequestId(place as u64), Vec::new(), prompt.max_tokens)
            };
            engine.submit(request).map_err(|why| BenchError::Rejected { prompt: place, why })?;
            in_flight += 1;
        }
        let step = Instant::now();
        let events = engine.poll()?;
        if events.is_empty() {
            return Err(BenchError::Lost(left));
        }
        let statistics = engine.statistics();
        blocks = blocks.max(statistics.blocks_used);
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
        kv_bytes: (blocks as f64 * block_bytes) as u64,
    };
    Ok((measured, completions.into_iter().flatten().collect()))
}

fn latency(batch: usize, prompts: &[LatencyPrompt], gathered: &Gathered) -> Latency {
    let samples = prompts.len();
    let seconds: Vec<f64> = gathered.passes.iter().map(|pass| pass.seconds).collect();
    let (total, is_interval) = median_interval(&seconds);
    let mut order: Vec<&LatencyPass> = gathered.passes.iter().collect();
    order.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    // As for the median: of an even number of passes the two in the middle count.
    let middle = [order[(order.len() - 1) / 2], order[order.len() / 2]];
    let middling = |of: &dyn Fn(&LatencyPass) -> f64| middle.iter().map(|pass| of(pass)).sum::<f64>() / 2.0;
    let n = samples as f64;
    let all = |of: &dyn Fn(&Sample) -> f64| -> Vec<f64> { gathered.samples.iter().flatten().map(of).collect() };
    let outlying = |&(_, &seconds): &(usize, &f64)| (seconds / total.median - 1.0).abs() > 0.1;
    Latency {
        batch,
        samples,
        passes: gathered.passes.clone(),
        seconds_per_sample: Spread { median: total.median / n, low: total.low / n, high: total.high / n },
        is_interval,
        prefill_per_sample: middling(&|pass| pass.prefill_s) / n,
        decode_per_sample: middling(&|pass| pass.decode_s) / n,
        tokens_per_s: middling(&|pass| pass.generated_tokens as f64) / total.median,
        prompt_tokens: prompts.iter().map(|prompt| prompt.ids.len()).sum::<usize>() as f64 / n,
        new_tokens: middling(&|pass| pass.generated_tokens as f64) / n,
        first_token_s: percentiles(all(&|sample| sample.first_token_s)),
        latency_s: percentiles(all(&|sample| sample.latency_s)),
        kv_bytes: gathered.passes.iter().map(|pass| pass.kv_bytes).max().unwrap_or(0),
        peak_memory: gathered.peak_memory,
        outlying_passes: seconds.iter().enumerate().filter(outlying).map(|(place, _)| place + 1).collect(),
        slow_questions: slow_questions(&gathered.samples),
    }
}

/// Questions that take far longer a token than the others.
fn slow_questions(passes: &[Vec<Sample>]) -> Vec<usize> {
    let questions = passes.first().map_or(0, Vec::len);
    let of = |question: usize| {
        let mut found: Vec<f64> = passes.iter().filter_map(|pass| pass.get(question)).map(a_token).collect();
        found.sort_by(f64::total_cmp);
        quantile(&found, 0.5)
    };
    let typical: Vec<f64> = (0..questions).map(of).collect();
    let mut sorted = typical.clone();
    sorted.sort_by(f64::total_cmp);
    let (first, third) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
    let most = third + 3.0 * (third - first);
    typical.iter().enumerate().filter(|(_, seconds)| **seconds > most).map(|(question, _)| question).collect()
}

fn a_token(sample: &Sample) -> f64 {
    sample.latency_s / sample.tokens.max(1) as f64
}

/// The median and an interval for it from order statistics, which assumes nothing of the distribution: with `n` values, the
/// `k`-th smallest and largest enclose the median with probability `1 - 2 P(Binomial(n, 1/2) < k)`. Fewer than six values
/// cannot reach 95 %; their range is given, and `false`.
fn median_interval(values: &[f64]) -> (Spread, bool) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let median = quantile(&sorted, 0.5);
    let (mut below, mut term, mut k) = (0.0, 0.5f64.powi(n as i32), 0);
    // `term` is P(Binomial = k); the next place inwards is taken while the tails stay within 2.5 % each.
    while k < n / 2 && below + term <= 0.025 {
        below += term;
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    let place = k.saturating_sub(1);
    (Spread { median, low: sorted[place], high: sorted[n - 1 - place] }, k > 0)
}

fn percentiles(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    Spread { median: quantile(&values, 0.5), low: quantile(&values, 0.05), high: quantile(&values, 0.95) }
}

/// A quantile of ascending values, interpolated linearly; 0 of none.
fn quantile(sorted: &[f64], at: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let place = at * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_medians() {
        // Binomial(6, 1/2): P(0) = 1/64, twice that leaves 96.9 %; of 5 values nothing leaves 95 %.
        let (spread, interval) = median_interval(&[5.0, 1.0, 4.0, 2.0, 3.0, 9.0]);
        assert_eq!((spread.median, spread.low, spread.high, interval), (3.5, 1.0, 9.0, true));
        let (spread, interval) = median_interval(&[3.0, 1.0, 2.0]);
        assert_eq!((spread.median, spread.low, spread.high, interval), (2.0, 1.0, 3.0, false));
        // Binomial(9, 1/2): P(<= 1) = 10/512 = 1.95 %, P(<= 2) = 9 %: the second smallest and largest.
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        let (spread, interval) = median_interval(&nine);
        assert_eq!((spread.median, spread.low, spread.high, interval), (5.0, 2.0, 8.0, true));
        let (spread, interval) = median_interval(&[7.0]);
        assert_eq!((spread.median, spread.low, spread.high, interval), (7.0, 7.0, 7.0, false));
    }

    #[test]
    fn a_question_that_is_slow_in_every_pass_is_named() {
        let sample = |latency_s| Sample { first_token_s: 0.0, latency_s, tokens: 10 };
        let mut pass: Vec<Sample> = (0..20).map(|i| sample(1.0 + 0.01 * f64::from(i))).collect();
        let once = pass.clone();
        pass[7] = sample(9.0);
        // Slow in two passes of three: its median is; slow in one of three: it is not.
        assert_eq!(slow_questions(&[pass.clone(), once.clone(), pass.clone()]), [7]);
        assert_eq!(slow_questions(&[once.clone(), pass, once]), [0usize; 0]);
    }
}
