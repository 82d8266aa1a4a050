//! Scores and their summaries.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ByName, FailureClass, Item};

/// Completion of a model, as a suite sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answered<'a> {
    /// The whole completion.
    pub completion: &'a str,
    /// True if the token budget ended it.
    pub truncated: bool,
}

/// Score of one completion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// True if the suite's deciding scorer accepts the answer.
    pub correct: bool,
    /// Text that was taken as the answer, if any.
    #[serde(rename = "extracted")]
    pub answer: Option<String>,
    /// Results of all scorers, the deciding one included.
    #[serde(rename = "matchers")]
    pub scorers: ByName<bool>,
    /// Further numbers.
    pub metrics: ByName<f64>,
    /// Reason for the answer not being correct.
    pub failure: Option<FailureClass>,
    /// Readings and reasons for people to see.
    #[serde(default, skip_serializing_if = "Evidence::is_empty")]
    pub evidence: Evidence,
}

/// A scorer or metric that a score does not have: it is of another version, of another suite or damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No result of the scorer.
    #[error("it has no score by `{0}`")]
    Scorer(String),
    /// No value of the metric.
    #[error("it has no metric `{0}`")]
    Metric(String),
}

impl Score {
    /// Result of a scorer.
    ///
    /// # Errors
    /// [`Missing`] if it did not score the completion.
    pub fn scorer(&self, name: &str) -> Result<bool, Missing> {
        self.scorers.get(name).ok_or_else(|| Missing::Scorer(name.to_owned()))
    }

    /// Value of a metric.
    ///
    /// # Errors
    /// [`Missing`] if it was not measured.
    pub fn metric(&self, name: &str) -> Result<f64, Missing> {
        self.metrics.get(name).ok_or_else(|| Missing::Metric(name.to_owned()))
    }

    /// True if two scores say the same. Evidence is not compared: rows of the first versions have none, and how a process died is
    /// told in words that depend on the machine.
    pub fn agrees_with(&self, other: &Score) -> bool {
        let scored = |score: &Score| Score { evidence: Evidence::default(), ..score.clone() };
        scored(self) == scored(other)
    }
}

/// Evidence behind a score, for people: it is shown and stored, and in no statistics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Readings of the other scorers than the deciding one, by their names; none is nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub readings: BTreeMap<String, Option<String>>,
    /// Reason for there being no answer, in words: the message of an exception, the end of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Mark of the final answer (`boxed`, `bold`, ...), or the reason for there being none (`no_number`, `refused`, ...).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The first of the other numbers that were stated as the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<String>,
    /// Scores of another tool that are no numbers, by their scorers, as the tool stored them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// Explanations that another tool's scorers gave.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub explanations: BTreeMap<String, String>,
    /// Further completions that were scored together with the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<String>,
}

impl Evidence {
    /// True if there is nothing to show.
    pub fn is_empty(&self) -> bool {
        *self == Evidence::default()
    }
}

/// An item with its score.
#[derive(Debug, Clone, Copy)]
pub struct Scored<'a> {
    pub item: &'a Item,
    pub score: &'a Score,
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
    /// Name of the curve, e.g. `boundary accuracy by length`.
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
