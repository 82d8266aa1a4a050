//! Judgements and their summaries.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Item;

/// What a model answered, as a suite sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answered<'a> {
    /// The whole completion.
    pub completion: &'a str,
    /// True if the token budget ended it.
    pub truncated: bool,
}

/// A judgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// By the suite's primary rule.
    pub correct: bool,
    /// What was taken as the answer, if anything.
    pub extracted: Option<String>,
    /// Every rule's own result, by name (the primary one included).
    pub matchers: BTreeMap<String, bool>,
    /// Further numbers, by name.
    pub metrics: BTreeMap<String, f64>,
    /// Why it is not correct, as a stable lower-case word (`wrong`, `empty`, `truncated`, `echo`, ...).
    pub failure: Option<String>,
}

/// An item with its judgement.
#[derive(Debug, Clone, Copy)]
pub struct Scored<'a> {
    pub item: &'a Item,
    pub verdict: &'a Verdict,
    /// Completion tokens, and whether the budget cut it.
    pub tokens: usize,
    pub truncated: bool,
}

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// A suite's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// One row a task, then an `all` row.
    pub rows: Vec<SummaryRow>,
    /// Curves, e.g. accuracy by length.
    pub series: Vec<Series>,
    /// Sentences a reader should know (chance baselines, caveats), in plain words.
    pub notes: Vec<String>,
}

/// One line of the result table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SummaryRow {
    pub name: String,
    /// Samples behind it.
    pub n: usize,
    /// Columns in display order: column name and value. Accuracies are fractions.
    pub values: Vec<(String, Interval)>,
    /// Further single numbers, in display order.
    pub numbers: Vec<(String, f64)>,
}

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it shows, e.g. `boundary accuracy by length`.
    pub name: String,
    /// The task it belongs to.
    pub task: String,
    /// (x, samples, estimate with interval)
    pub points: Vec<(f64, usize, Interval)>,
}
