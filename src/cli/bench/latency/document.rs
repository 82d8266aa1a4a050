//! What is printed of a measurement: everything that a reader needs to judge the numbers.
use serde::Serialize;

use crate::cli::bench::questions::{Asked, Dropped, LatencyMode, TokenRule};
use earnest_engine::bench::{Latency, ModeResult};
use earnest_engine::{Card, FinishReason};
use earnest_eval::run::Host;
use earnest_stats::{Z95, wilson};
use earnest_tasks::suite::nupa::published_inference_times;
use earnest_tasks::suite::{Answered, Suite};

/// Everything that a reader needs to judge the numbers.
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
    /// Passes that were measured; fewer than planned where the user stopped or the engine failed.
    pub(super) passes: usize,
    pub(super) planned_passes: usize,
    pub(super) questions: usize,
    pub(super) dropped: Dropped,
    pub(super) modes: Vec<ModeDocument>,
}

/// What was asked for.
#[derive(Debug, Serialize)]
pub(super) struct Settings {
    pub(super) tasks: Vec<String>,
    /// `all`, `reference` or a list.
    pub(super) lengths: serde_json::Value,
    #[serde(rename = "asked_modes")]
    pub(super) modes: Vec<LatencyMode>,
    pub(super) batches: Vec<usize>,
    /// Questions of a pass, if there are so many.
    pub(super) samples: usize,
    pub(super) repetitions: u32,
    /// Samples before the first pass of each mode and batch size, not counted.
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
    /// The rule that decides what is right.
    pub(super) read_by: &'static str,
    /// Completions that are right, in the first pass; none where the tokens are not the model's own choice.
    pub(super) right: Option<usize>,
    /// The share of them, with its 95 % Wilson interval.
    pub(super) exact_match: Option<[f64; 3]>,
    /// Completions that the budget or the window cut.
    pub(super) truncated: Option<usize>,
    /// Questions whose tokens differed between passes or batch sizes.
    pub(super) unsteady: Vec<String>,
}

/// One batch size, with the paper's value where it has one.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) latency: Latency,
    /// The paper's seconds a sample (Table 2: Llama-3.1-8B on one A800) at this batch size.
    pub(super) published: Option<f64>,
    /// How often a direct answer fits into this time, from the medians at the same batch size.
    pub(super) times_direct: Option<f64>,
    /// The same for the fastest batch size of direct answers that takes no more memory for keys and values.
    pub(super) same_memory: Option<SameMemory>,
    /// Ids of [`Latency::slow_questions`].
    pub(super) slow_items: Vec<String>,
}

/// Direct answers in no more memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct SameMemory {
    /// Their batch size.
    pub(super) batch: usize,
    /// How often one of them fits into the other mode's time.
    pub(super) times: f64,
}

pub(super) fn documents(asked: &[Asked], results: Vec<ModeResult>, tokens: TokenRule) -> Vec<ModeDocument> {
    let direct: Vec<Latency> = asked
        .iter()
        .zip(&results)
        .find(|(asked, _)| asked.mode == LatencyMode::Direct)
        .map_or_else(Vec::new, |(_, result)| result.latencies.clone());
    let document = |(asked, result): (&Asked, ModeResult)| {
        let id = |&question: &usize| asked.items.get(question).map(|item| item.id.clone());
        // Nothing is said of answers that nobody chose, or that did not come before the user stopped.
        let own = tokens == TokenRule::Written && !result.completions.is_empty();
        let judged = asked.items.iter().zip(&result.completions);
        let right = judged.filter(|(item, completion)| {
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
            read_by: asked.suite.settings().profile.name(),
            right,
            exact_match: exact_match.map(|found| [found.value, found.low, found.high]),
            truncated: own.then_some(cut),
            unsteady: result.unsteady.iter().filter_map(id).collect(),
        }
    };
    asked.iter().zip(results).map(document).collect()
}

/// A batch size of a mode, beside direct answers and the paper's value.
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

/// The paper's seconds a sample.
pub(super) fn published(mode: LatencyMode, batch: usize) -> Option<f64> {
    let rows = published_inference_times().iter();
    let mut rows = rows.filter(|row| row.method == mode.names().1 && row.batch_size == batch);
    rows.next().map(|row| row.seconds_per_sample)
}
