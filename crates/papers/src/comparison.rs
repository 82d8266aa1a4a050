//! A comparison of runs with a paper, as data.
use std::collections::BTreeMap;

use serde::Serialize;

use super::arithmetic_bench::{PublishedCorrelation, Verification};
use earnest_stats::{Z95, wilson};
use earnest_tasks::suite::Interval;

/// Version of [`Comparison`]'s JSON form.
pub const COMPARISON_FORMAT: u32 = 1;

/// Comparison of a paper's tables and figures with stored runs. Accuracies are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// [`COMPARISON_FORMAT`].
    pub format: u32,
    pub paper: String,
    pub runs: Vec<RunUsed>,
    /// The published tables as printed.
    pub published: Vec<PublishedTable>,
    /// Correlations of published columns.
    pub correlations: Vec<PublishedCorrelation>,
    /// Comparisons with them, one per run and table.
    pub tables: Vec<ComparedTable>,
    /// Errors that a second sample does not reveal, of runs that sampled items several times.
    pub verification: Vec<Verification>,
    pub curves: Vec<ComparedCurve>,
    /// Limitations of the comparison, in sentences.
    pub caveats: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedTable {
    pub table: u8,
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<PublishedRow>,
}

/// Row of a [`PublishedTable`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRow {
    pub model: String,
    /// One value per column, in per cent as printed.
    pub values: Vec<Option<f64>>,
}

/// A run that was compared, with its row in the paper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunUsed {
    pub run: String,
    pub model: String,
    /// Published row of the same model.
    pub row: Option<String>,
    /// Reasons for its numbers not being comparable with the paper's, as predicates of the run.
    pub limits: Vec<String>,
}

/// Comparison of a run with a published table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedTable {
    pub table: u8,
    pub title: String,
    pub run: String,
    pub model: String,
    pub cells: Vec<ComparedCell>,
}

/// Comparison of one published number with ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCell {
    pub column: String,
    pub published: Option<Published>,
    /// Number of items behind ours.
    pub items: usize,
    /// Accuracy of the run by scorer; [`ComparedCell::scorer`] is the one that is compared.
    pub ours: BTreeMap<String, Interval>,
    /// Scorer nearest to the paper's.
    #[serde(rename = "rule")]
    pub scorer: String,
    /// Ours minus the published value, where the two are comparable.
    pub difference: Option<Interval>,
    pub reading: Reading,
}

/// A published value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// The value with the Wilson interval of as many items as the paper used.
    pub value: Interval,
    pub items: usize,
    /// Reason for doubting the printed value.
    pub doubt: Option<String>,
}

/// Result of comparing a published number with ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The interval of the difference includes zero.
    NoDifferenceShown,
    /// The interval of the difference excludes zero.
    Differs,
    /// The paper has no such number.
    NotPublished,
    /// The run measures another quantity (fewer lengths, another quantisation).
    NotComparable,
    /// The run has no such task.
    NotRun,
}

/// A run's curve for a figure that the paper prints without numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCurve {
    pub figure: u8,
    pub title: String,
    pub run: String,
    pub model: String,
    pub points: Vec<CurvePoint>,
}

/// Point of a [`ComparedCurve`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    pub x: usize,
    pub items: usize,
    pub ours: BTreeMap<String, Interval>,
}

impl Published {
    /// A printed percentage of `items` items.
    pub fn new(percent: f64, items: usize, doubt: Option<&str>) -> Option<Self> {
        let n = items as f64;
        let estimate = wilson(percent / 100.0 * n, n, Z95)?;
        let value = Interval { estimate: estimate.value, low: estimate.low, high: estimate.high };
        Some(Published { value, items, doubt: doubt.map(str::to_owned) })
    }
}

/// The difference of two independent proportions from their intervals (R. G. Newcombe, Statistics in Medicine 17, 1998,
/// 873-890, method 10): `d - √((p1-l1)² + (u2-p2)²)` to `d + √((u1-p1)² + (p2-l2)²)`.
pub fn difference(ours: &Interval, published: &Interval) -> Interval {
    let estimate = ours.estimate - published.estimate;
    let below = (ours.estimate - ours.low).hypot(published.high - published.estimate);
    let above = (ours.high - ours.estimate).hypot(published.estimate - published.low);
    Interval { estimate, low: estimate - below, high: estimate + above }
}

/// Key of a model's name, the same for all spellings of it: without case, punctuation, owner and quantisation suffix. The suffix is
/// returned separately, because a quantised model is another model.
pub fn model_key(name: &str) -> (String, Option<String>) {
    let name = name.rsplit('/').next().unwrap_or(name);
    let parts: Vec<&str> = name.split(['.', '-', '_']).collect();
    let quantised = |part: &str| {
        let upper = part.to_ascii_uppercase();
        let digits = |rest: &str| rest.chars().next().is_some_and(|c| c.is_ascii_digit());
        upper.strip_prefix("IQ").or_else(|| upper.strip_prefix('Q')).is_some_and(|rest| digits(rest) && rest.len() <= 2)
            || matches!(upper.as_str(), "GPTQ" | "AWQ" | "GGUF" | "INT4" | "INT8" | "FP8")
    };
    let cut = parts.iter().position(|part| quantised(part)).filter(|index| *index > 0);
    let (kept, suffix) = parts.split_at(cut.unwrap_or(parts.len()));
    let key: String = kept.concat().to_lowercase();
    let key = key.strip_prefix("meta").map(str::to_owned).unwrap_or(key);
    (key, (!suffix.is_empty()).then(|| suffix.join("_")))
}
