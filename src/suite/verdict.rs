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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// What people want to see of how it came about.
    #[serde(default, skip_serializing_if = "Evidence::is_empty")]
    pub evidence: Evidence,
}

impl Verdict {
    /// True if two judgements say the same. Evidence is not compared: rows of before have none, and how a process died is
    /// told in words that depend on the machine.
    pub fn agrees_with(&self, other: &Verdict) -> bool {
        let judged = |verdict: &Verdict| Verdict { evidence: Evidence::default(), ..verdict.clone() };
        judged(self) == judged(other)
    }
}

/// What stands behind a judgement, for people: it is shown and stored, and in no statistics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What further rules than the primary one read, by their names; none is nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub readings: BTreeMap<String, Option<String>>,
    /// Why there is no answer, in words: the message of an exception, how a process died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the final answer is marked (`boxed`, `bold`, ...), or why there is none (`no_number`, `refused`, ...).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The first of the other numbers that were stated as the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<String>,
}

impl Evidence {
    /// True if there is nothing to show.
    pub fn is_empty(&self) -> bool {
        *self == Evidence::default()
    }
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
    #[serde(deserialize_with = "unknown")]
    pub estimate: f64,
    #[serde(deserialize_with = "unbounded_below")]
    pub low: f64,
    #[serde(deserialize_with = "unbounded_above")]
    pub high: f64,
}

impl Interval {
    /// Nothing is known: no estimate, no bounds.
    pub const UNKNOWN: Interval = Interval { estimate: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY };
}

// JSON has neither NaN nor infinities: they are written as null, and null reads back as what it stood for.

fn unknown<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

fn unbounded_below<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NEG_INFINITY))
}

fn unbounded_above<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_survive_json() {
        let through = |interval: Interval| -> Interval {
            serde_json::from_str(&serde_json::to_string(&interval).unwrap()).unwrap()
        };
        let plain = Interval { estimate: 0.5, low: 0.25, high: 0.75 };
        assert_eq!(through(plain), plain);
        let open = Interval { estimate: 2.0, low: 0.0, high: f64::INFINITY };
        assert_eq!(through(open), open);
        let unknown = through(Interval::UNKNOWN);
        assert!(unknown.estimate.is_nan() && unknown.low == f64::NEG_INFINITY && unknown.high == f64::INFINITY);
    }
}
