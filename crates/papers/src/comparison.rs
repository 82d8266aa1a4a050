//! What a comparison with a paper consists of.
use std::collections::BTreeMap;

use serde::Serialize;

use earnest_stats::{Z95, wilson};
use earnest_tasks::suite::Interval;

/// Version of [`Comparison`]'s JSON form.
pub const COMPARISON_FORMAT: u32 = 1;

/// A paper's tables and figures beside ours. Accuracies are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// [`COMPARISON_FORMAT`].
    pub format: u32,
    pub paper: String,
    pub runs: Vec<RunUsed>,
    /// The published tables as printed.
    pub published: Vec<PublishedTable>,
    /// Ours beside them, one a run and table.
    pub tables: Vec<ComparedTable>,
    pub curves: Vec<ComparedCurve>,
    /// What limits the comparison, in sentences.
    pub caveats: Vec<String>,
}

/// A printed table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedTable {
    pub table: u8,
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<PublishedRow>,
}

/// A line of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRow {
    pub model: String,
    /// A value a column, in per cent as printed.
    pub values: Vec<Option<f64>>,
}

/// A run and what it can be held against.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunUsed {
    pub run: String,
    pub model: String,
    /// The published row of the same model.
    pub row: Option<String>,
    /// Why its numbers are not the paper's quantity, if they are not.
    pub limits: Vec<String>,
}

/// A run beside a published table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedTable {
    pub table: u8,
    pub title: String,
    pub run: String,
    pub model: String,
    pub cells: Vec<ComparedCell>,
}

/// One published number and ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCell {
    pub column: String,
    pub published: Option<Published>,
    /// Items behind ours.
    pub items: usize,
    /// Ours by rule; the first name in [`ComparedCell::rule`] is the one that is compared.
    pub ours: BTreeMap<String, Interval>,
    /// The rule that is nearest to the paper's.
    pub rule: String,
    /// Ours minus the published value, where they are the same quantity.
    pub difference: Option<Interval>,
    pub reading: Reading,
}

/// A published value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// With the Wilson interval of as many items as the paper used.
    pub value: Interval,
    pub items: usize,
    /// Why the printed value is doubtful.
    pub doubt: Option<String>,
}

/// What a pair of numbers says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The interval of the difference includes zero.
    NoDifferenceShown,
    /// It does not.
    Differs,
    /// The paper has no such row.
    NotPublished,
    /// The run asks something else (fewer lengths, another quantisation).
    NotComparable,
    /// The run has no such task.
    NotRun,
}

/// A curve of ours for a figure that the paper prints without numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCurve {
    pub figure: u8,
    pub title: String,
    pub run: String,
    pub model: String,
    pub points: Vec<CurvePoint>,
}

/// A point of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    pub x: usize,
    pub items: usize,
    pub ours: BTreeMap<String, Interval>,
}

impl Published {
    /// A printed percentage from so many items.
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

/// A model's name without what two spellings of it differ in: case, punctuation, owner, and a quantisation suffix, which is
/// returned apart because a quantised model is another model.
pub fn model_key(name: &str) -> (String, Option<String>) {
    let name = name.rsplit('/').next().unwrap_or(name);
    let parts: Vec<&str> = name.split(['.', '-', '_']).collect();
    let quantised = |part: &str| {
        let upper = part.to_ascii_uppercase();
        let digits = |rest: &str| rest.chars().next().is_some_and(|c| c.is_ascii_digit());
        upper.strip_prefix("IQ").or_else(|| upper.strip_prefix('Q')).is_some_and(|rest| digits(rest) && rest.len() <= 2)
            || matches!(upper.as_str(), "GPTQ" | "AWQ" | "GGUF" | "INT4" | "INT8" | "FP8")
    };
    let cut = parts.iter().position(|part| quantised(part)).filter(|place| *place > 0);
    let (kept, suffix) = parts.split_at(cut.unwrap_or(parts.len()));
    let key: String = kept.concat().to_lowercase();
    let key = key.strip_prefix("meta").map(str::to_owned).unwrap_or(key);
    (key, (!suffix.is_empty()).then(|| suffix.join("_")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_model_meet() {
        let key = |name: &str| model_key(name).0;
        assert_eq!(key("Meta-Llama-3-8B-Instruct"), key("Llama-3-8B-Instruct"));
        assert_eq!(key("Qwen/Qwen2.5-0.5B-Instruct"), key("qwen2.5-0.5b-instruct-q4_k_m"));
        assert_eq!(model_key("SmolLM2-135M-Instruct.Q4_1").1.as_deref(), Some("Q4_1"));
        assert_eq!(model_key("Qwen2.5-7B-Instruct-GPTQ-Int4").1.as_deref(), Some("GPTQ_Int4"));
        assert_eq!(model_key("QwQ-32B"), ("qwq32b".to_owned(), None));
        assert_ne!(key("Qwen2.5-7B-Instruct"), key("Qwen2.5-72B-Instruct"));
    }

    #[test]
    fn newcombe_reference_value() {
        // Newcombe's own example (a): 56/70 - 48/80 = 0.2 with 0.0524 to 0.3339.
        let one = Published::new(80.0, 70, None).unwrap().value;
        let other = Published::new(60.0, 80, None).unwrap().value;
        let found = difference(&one, &other);
        assert!((found.low - 0.0524).abs() < 1e-4 && (found.high - 0.3339).abs() < 1e-4, "{found:?}");
    }
}
