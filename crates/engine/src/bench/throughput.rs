//! A whole workload through an engine, end to end.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Serialize;

use super::memory::peak_memory;
use super::workload::{Workload, WorkloadKind, distinct_prefix_tokens};
use crate::{Engine, EngineError, Event, Rejected, Request, RequestId};

/// Measurement of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measurement {
    /// Kind of prompts.
    pub workload: WorkloadKind,
    /// Number of prompts.
    pub prompts: usize,
    /// Tokens of all prompts.
    pub prompt_tokens: usize,
    /// Tokens that a perfect prefix cache computes.
    pub distinct_prefix_tokens: usize,
    /// Tokens generated for each prompt.
    pub new_tokens: usize,
    /// Each repetition, in order; the cache is empty at the start of each.
    pub repetitions: Vec<Repetition>,
    /// Median of the repetitions' samples a second.
    pub samples_per_s: f64,
    /// Prompt tokens computed in the median repetition, as a multiple of the distinct ones.
    pub prefill_ratio: f64,
    /// Most memory held by the process so far, in bytes.
    pub peak_memory: Option<u64>,
}

/// One pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repetition {
    /// Seconds from the first submission to the last token.
    pub seconds: f64,
    /// Seconds of steps that computed prompt tokens, and perhaps decoded.
    pub prefill_s: f64,
    /// Seconds of steps that only decoded.
    pub decode_s: f64,
    /// Prompt tokens computed.
    pub prefilled_tokens: u64,
    /// Tokens generated.
    pub decoded_tokens: u64,
    /// Tokens generated in steps that only decoded.
    pub decoded_alone: u64,
    /// Prompt tokens read from the prefix cache.
    pub cached_tokens: u64,
    /// Steps run.
    pub steps: u64,
}

impl Measurement {
    /// The repetition of median length (the longer of the middle two).
    pub fn median(&self) -> &Repetition {
        median(&self.repetitions)
    }
}

fn median(passes: &[Repetition]) -> &Repetition {
    let mut order: Vec<&Repetition> = passes.iter().collect();
    order.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    order[order.len() / 2]
}

/// Reasons why a workload could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A prompt was refused.
    #[error("prompt {prompt} of the workload was refused: {why}")]
    Rejected {
        /// Its number.
        prompt: usize,
        /// The engine's words.
        #[source]
        why: Rejected,
    },
    /// A request failed.
    #[error("prompt {0} of the workload failed: {1}")]
    Failed(u64, String),
    /// Sequences that were to decode together never did.
    #[error(
        "{batch} sequences never decoded together: the engine runs {in_flight} at once, and its cache may hold fewer"
    )]
    NeverTogether {
        /// Number of sequences.
        batch: usize,
        /// Most that the engine runs.
        in_flight: usize,
    },
    /// The engine has nothing in flight although requests have not ended.
    #[error("the engine lost {0} requests")]
    Lost(usize),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The caller wished to stop.
    #[error("interrupted")]
    Stopped,
    /// One of several sets of prompts could not be measured.
    #[error("{error}")]
    InMode {
        /// Its number.
        mode: usize,
        /// Its error.
        #[source]
        error: Box<BenchError>,
    },
}

/// Runs a workload `repetitions` times (at least once), until `stop` is set or the engine fails: whole repetitions until then count, and
/// there is no measurement without one. Requests of a repetition that was stopped are still in flight.
pub fn measure(
    engine: &mut dyn Engine,
    workload: &Workload,
    repetitions: usize,
    stop: &AtomicBool,
) -> (Option<Measurement>, Result<(), BenchError>) {
    let mut passes: Vec<Repetition> = Vec::new();
    let mut ended = Ok(());
    while passes.len() < repetitions.max(1) {
        match pass(engine, workload, stop) {
            Ok(Some(pass)) => passes.push(pass),
            Ok(None) => break,
            Err(error) => {
                ended = Err(error);
                break;
            }
        }
    }
    ((!passes.is_empty()).then(|| measurement(workload, passes)), ended)
}

fn measurement(workload: &Workload, repetitions: Vec<Repetition>) -> Measurement {
    let median = median(&repetitions);
    let distinct = distinct_prefix_tokens(&workload.ids);
    Measurement {
        workload: workload.kind,
        prompts: workload.ids.len(),
        prompt_tokens: workload.ids.iter().map(Vec::len).sum(),
        distinct_prefix_tokens: distinct,
        new_tokens: workload.new_tokens,
        samples_per_s: workload.ids.len() as f64 / median.seconds,
        prefill_ratio: median.prefilled_tokens as f64 / distinct.max(1) as f64,
        repetitions,
        peak_memory: peak_memory(),
    }
}

/// One repetition; none if `stop` was set within it.
fn pass(engine: &mut dyn Engine, workload: &Workload, stop: &AtomicBool) -> Result<Option<Repetition>, BenchError> {
    engine.forget_prompts();
    let before = engine.statistics();
    let start = Instant::now();
    for (i, ids) in workload.ids.iter().enumerate() {
        let request = Request::greedy(RequestId(i as u64), ids.clone(), workload.new_tokens);
        engine.submit(request).map_err(|why| BenchError::Rejected { prompt: i, why })?;
    }
    let (mut prefill_s, mut decode_s, mut decoded_alone) = (0.0, 0.0, 0);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let step = Instant::now();
        let events = engine.poll()?;
        if events.is_empty() {
            break;
        }
        for event in events {
            match event {
                Event::Progress { prefilled: 0, decoded } => {
                    decode_s += step.elapsed().as_secs_f64();
                    decoded_alone += decoded as u64;
                }
                Event::Progress { .. } => prefill_s += step.elapsed().as_secs_f64(),
                Event::Failed { id, error, .. } => return Err(BenchError::Failed(id.0, error)),
                Event::Finished(_) | Event::Generated { .. } | Event::CapacityChanged { .. } => {}
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let after = engine.statistics();
    Ok(Some(Repetition {
        seconds,
        prefill_s,
        decode_s,
        prefilled_tokens: after.prefilled_tokens - before.prefilled_tokens,
        decoded_tokens: after.decoded_tokens - before.decoded_tokens,
        decoded_alone,
        cached_tokens: after.cached_tokens - before.cached_tokens,
        steps: after.steps - before.steps,
    }))
}

/// A prompt, and how many tokens are generated after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Token ids of the prompt.
    pub ids: Vec<u32>,
    /// Tokens to generate.
    pub new_tokens: usize,
}

/// Totals of all questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worked {
    /// From the first submission to the last token.
    pub seconds: f64,
    /// Tokens of all prompts, those from the prefix cache included.
    pub prompt_tokens: usize,
    /// Tokens of all answers.
    pub new_tokens: usize,
}

/// Asks questions as an evaluation does, with an empty prefix cache; end-of-sequence tokens are ignored.
///
/// # Errors
/// [`BenchError`] where a prompt is refused, the engine fails or `stop` is set.
pub fn work_through(engine: &mut dyn Engine, asked: &[Asked], stop: &AtomicBool) -> Result<Worked, BenchError> {
    engine.forget_prompts();
    let start = Instant::now();
    for (i, Asked { ids, new_tokens }) in asked.iter().enumerate() {
        let request = Request::greedy(RequestId(i as u64), ids.clone(), *new_tokens);
        engine.submit(request).map_err(|why| BenchError::Rejected { prompt: i, why })?;
    }
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        let events = engine.poll()?;
        if events.is_empty() {
            break;
        }
        for event in events {
            if let Event::Failed { id, error, .. } = event {
                return Err(BenchError::Failed(id.0, error));
            }
        }
    }
    Ok(Worked {
        seconds: start.elapsed().as_secs_f64(),
        prompt_tokens: asked.iter().map(|asked| asked.ids.len()).sum(),
        new_tokens: asked.iter().map(|asked| asked.new_tokens).sum(),
    })
}
