//! The JSON document of a measurement, with everything needed to interpret the numbers.
use serde::Serialize;

use crate::cli::bench::questions::{Dropped, LatencyMode, ModeQuestions, TokenRule};
use earnest_engine::bench::{Latency, ModeResult};
use earnest_engine::{Card, FinishReason};
use earnest_papers::nupa::published_inference_times;
use earnest_results::Host;
use earnest_stats::{Z95, wilson};
use earnest_tasks::suite::{Answered, Scoring};

/// A measurement and its conditions.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) earnest: &'static str,
    pub(super) host: Host,
    pub(super) model: String,
    pub(super) engine: Card,
    /// The engine's settings.
    pub(super) options: serde_json::Value,
    #[serde(flatten)]
    pub(super) settings: Settings,
    /// Measured passes; fewer than planned if the user stopped or the engine failed.
    pub(super) passes: usize,
    pub(super) planned_passes: usize,
    pub(super) questions: usize,
    pub(super) dropped: Dropped,
    pub(super) modes: Vec<ModeDocument>,
}

/// Settings of the measurement.
#[derive(Debug, Serialize)]
pub(super) struct Settings {
    pub(super) tasks: Vec<String>,
    /// `all`, `reference` or a list.
    pub(super) lengths: serde_json::Value,
    #[serde(rename = "asked_modes")]
    pub(super) modes: Vec<LatencyMode>,
    pub(super) batches: Vec<usize>,
    /// Questions per pass, if there are enough.
    pub(super) samples: usize,
    pub(super) repetitions: u32,
    /// Uncounted samples before the first pass of each mode and batch size.
    pub(super) warm_up: u32,
    pub(super) window: usize,
    pub(super) tokens: TokenRule,
    pub(super) prompt: String,
    pub(super) seed: u64,
}

/// One mode's results.
#[derive(Debug, Serialize)]
pub(super) struct ModeDocument {
    pub(super) mode: LatencyMode,
    pub(super) latencies: Vec<Row>,
    /// Scorer of the answers.
    pub(super) read_by: &'static str,
    /// Right completions in the first pass; none if their number of tokens is fixed.
    pub(super) right: Option<usize>,
    /// Share of right completions with its 95 % Wilson interval.
    pub(super) exact_match: Option<[f64; 3]>,
    /// Completions truncated by the budget or the window.
    pub(super) truncated: Option<usize>,
    /// Questions whose tokens differed between passes or batch sizes.
    pub(super) unsteady: Vec<String>,
}

/// One batch size, with the paper's value where it has one.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) latency: Latency,
    /// The paper's seconds per sample (Table 2: Llama-3.1-8B on one A800) at this batch size.
    pub(super) published: Option<f64>,
    /// Ratio to the median time of direct answers at the same batch size.
    pub(super) times_direct: Option<f64>,
    /// Ratio to direct answers at their fastest batch size with no more memory for keys and values.
    pub(super) same_memory: Option<SameMemory>,
    /// Ids of [`Latency::slow_questions`].
    pub(super) slow_items: Vec<String>,
}

/// Comparison with direct answers in no more memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct SameMemory {
    /// Batch size of the direct answers.
    pub(super) batch: usize,
    /// Ratio of the times.
    pub(super) times: f64,
}

pub(super) fn documents(asked: &[ModeQuestions], results: Vec<ModeResult>, tokens: TokenRule) -> Vec<ModeDocument> {
    let direct: Vec<Latency> = asked
        .iter()
        .zip(&results)
        .find(|(asked, _)| asked.mode == LatencyMode::Direct)
        .map_or_else(Vec::new, |(_, result)| result.latencies.clone());
    let document = |(asked, result): (&ModeQuestions, ModeResult)| {
        let id = |&question: &usize| asked.items.get(question).map(|item| item.id.clone());
        // Completions of fixed length or of an interrupted first pass are not scored.
        let own = tokens == TokenRule::Written && !result.completions.is_empty();
        let scored = asked.items.iter().zip(&result.completions);
        let right = scored.filter(|(item, completion)| {
            let truncated = completion.finish == FinishReason::Length;
            asked.suite.score(item, &Answered { completion: &completion.text, truncated }).correct
        });
        let right = own.then(|| right.count());
        let cut = result.completions.iter().filter(|completion| completion.finish == FinishReason::Length).count();
        let n = asked.items.len() as f64;
        let exact_match = right.and_then(|right| wilson(right as f64, n, Z95));
        let mode = asked.mode;
        let rows = result.latencies.into_iter().map(|latency| row(mode, latency, &direct, &id));
        ModeDocument {
            mode,
            latencies: rows.collect(),
            read_by: asked.suite.settings().scorer.name(),
            right,
            exact_match: exact_match.map(|found| [found.value, found.low, found.high]),
            truncated: own.then_some(cut),
            unsteady: result.unsteady.iter().filter_map(id).collect(),
        }
    };
    asked.iter().zip(results).map(document).collect()
}

/// Row of a batch size, beside direct answers and the paper's value.
fn row(mode: LatencyMode, latency: Latency, direct: &[Latency], id: &dyn Fn(&usize) -> Option<String>) -> Row {
    let times = |base: &Latency| latency.seconds_per_sample.median / base.seconds_per_sample.median;
    let others = || direct.iter().filter(|_| mode != LatencyMode::Direct);
    let times_direct = others().find(|base| base.batch == latency.batch).map(times);
    let fastest = others()
        .filter(|base| base.kv_bytes <= latency.kv_bytes)
        .min_by(|one, other| one.seconds_per_sample.median.total_cmp(&other.seconds_per_sample.median));
    let same_memory = fastest.map(|base| SameMemory { batch: base.batch, times: times(base) });
    let slow_items = latency.slow_questions.iter().filter_map(id).collect();
    Row { published: published(mode, latency.batch), times_direct, same_memory, slow_items, latency }
}

/// The paper's seconds per sample.
pub(super) fn published(mode: LatencyMode, batch: usize) -> Option<f64> {
    let rows = published_inference_times().iter();
    let mut rows = rows.filter(|row| row.method == mode.names().1 && row.batch_size == batch);
    rows.next().map(|row| row.seconds_per_sample)
}
