//! Aggregates that a tool reported, beside those of its samples.
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::value;
use crate::suite::Scored;

/// An aggregate as a tool reported it, and as its samples give it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    pub scorer: String,
    /// Reduction of repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reducer: Option<String>,
    pub metric: String,
    /// A number, or what the tool wrote in its place.
    pub value: Value,
    /// Documents behind it, as the tool says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
    /// Mean or standard error over the documents; none for other metrics, and without numbers of single samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recomputed: Option<f64>,
}

/// Relative difference from which on two aggregates are not the same.
const SAME: f64 = 1e-9;

impl Reported {
    /// True if the samples give another number than the tool reported.
    pub fn differs(&self) -> bool {
        let (Some(reported), Some(own)) = (self.value.as_f64(), self.recomputed) else { return false };
        (reported - own).abs() > SAME * reported.abs().max(own.abs()).max(1.0)
    }
}

#[derive(Deserialize)]
struct Options {
    log: Card,
}

#[derive(Deserialize)]
struct Card {
    #[serde(default)]
    reported: Vec<Reported>,
}

/// Returns what the tool reported, with what the samples give; nothing where the options are not those of a log.
pub fn reported(options: &Value, samples: &[Scored<'_>]) -> Vec<Reported> {
    let Ok(Options { log: Card { mut reported } }) = Options::deserialize(options) else { return Vec::new() };
    let mut known: HashMap<String, Vec<Vec<f64>>> = HashMap::new();
    for one in &mut reported {
        let documents = known.entry(one.scorer.clone()).or_insert_with(|| documents(samples, &one.scorer));
        one.recomputed = recomputed(one, documents);
    }
    reported
}

/// Numbers of a scorer by document, in the order of the repeats.
fn documents(samples: &[Scored<'_>], scorer: &str) -> Vec<Vec<f64>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut documents: Vec<Vec<f64>> = Vec::new();
    for sample in samples {
        let Some(value) = value(sample.score, scorer) else { continue };
        let place = *places.entry(&sample.item.id).or_insert(documents.len());
        if place == documents.len() {
            documents.push(Vec::new());
        }
        documents[place].push(value);
    }
    documents
}

fn recomputed(reported: &Reported, documents: &[Vec<f64>]) -> Option<f64> {
    if documents.is_empty() {
        return None;
    }
    let values =
        documents.iter().map(|values| reduced(values, reported.reducer.as_deref())).collect::<Option<Vec<f64>>>()?;
    let (count, name) = (values.len() as f64, reported.scorer.split(',').next().unwrap_or_default());
    let mean = values.iter().sum::<f64>() / count;
    let of_mean = |metric: &str| metric == name || metric == reported.scorer || matches!(metric, "accuracy" | "mean");
    if of_mean(&reported.metric) {
        return Some(mean);
    }
    let own = reported.metric.strip_suffix("stderr")?;
    if values.len() < 2 || !(own.is_empty() || own.strip_suffix('_').is_some_and(of_mean)) {
        return None;
    }
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    Some((square / (count - 1.0) / count).sqrt())
}

/// One number for the repeats of a document, as Inspect's reducers have it; none for reducers that are not known.
fn reduced(values: &[f64], reducer: Option<&str>) -> Option<f64> {
    let count = values.len();
    let most = |wanted: usize| (values.iter().filter(|value| **value >= 1.0).count(), wanted);
    match reducer {
        None | Some("mean") => Some(values.iter().sum::<f64>() / count as f64),
        Some("max") => values.iter().copied().reduce(f64::max),
        Some("median") => {
            let mut sorted = values.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            Some(0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]))
        }
        Some("mode") => {
            let times = |value: f64| values.iter().filter(|other| **other == value).count();
            // The first of equally frequent ones, as Python's `Counter.most_common`.
            let mut best = values[0];
            for value in values {
                if times(*value) > times(best) {
                    best = *value;
                }
            }
            Some(best)
        }
        Some(other) => {
            let (name, wanted) = other.rsplit_once('_')?;
            let (right, wanted) = most(wanted.parse().ok()?);
            match name {
                "at_least" => Some(f64::from(u8::from(right >= wanted))),
                "pass_at" if count >= wanted => Some(pass_at(count, right, wanted)),
                _ => None,
            }
        }
    }
}

/// Probability that one of `k` repeats drawn from `count` is among the `right` ones: `1 - C(count - right, k) / C(count, k)`.
fn pass_at(count: usize, right: usize, k: usize) -> f64 {
    if count - right < k {
        return 1.0;
    }
    1.0 - (count - right + 1..=count).map(|n| 1.0 - k as f64 / n as f64).product::<f64>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::suite::{Item, Score};

    fn one(scorer: &str, reducer: Option<&str>, metric: &str, value: f64) -> Reported {
        let reducer = reducer.map(str::to_owned);
        let (scorer, metric) = (scorer.to_owned(), metric.to_owned());
        Reported { scorer, reducer, metric, value: value.into(), samples: None, recomputed: None }
    }

    #[test]
    fn means_and_errors_are_recomputed_over_documents() {
        let items: Vec<Item> = (0..8).map(|number| Item::plain((number / 2).to_string(), "t", "q", "1")).collect();
        let right = [true, true, true, false, false, false, true, false];
        let scores: Vec<Score> =
            right.iter().map(|right| Score { rules: [("match", *right)].into(), ..Score::default() }).collect();
        let samples: Vec<Scored<'_>> = items
            .iter()
            .zip(&scores)
            .map(|(item, score)| Scored { item, score, tokens: 0, truncated: false })
            .collect();
        let all = [
            one("match", None, "accuracy", 0.5),
            one("match", Some("mode"), "accuracy", 0.75),
            one("match", Some("at_least_2"), "accuracy", 0.25),
            one("match", Some("pass_at_2"), "accuracy", 0.75),
            one("match", None, "stderr", 0.204_124_145_231_931_5),
            one("match", None, "stderr2", 1.0),
            one("match", Some("own"), "accuracy", 1.0),
            one("other", None, "accuracy", 1.0),
            one("match", None, "accuracy", 0.25),
        ];
        let found = reported(&json!({"log": {"reported": all}}), &samples);
        let known: Vec<bool> = found.iter().map(|one| one.recomputed.is_some()).collect();
        assert_eq!(known, [true, true, true, true, true, false, false, false, true]);
        let differing: Vec<bool> = found.iter().map(Reported::differs).collect();
        assert_eq!(differing, [false, false, false, false, false, false, false, false, true]);
        assert!(reported(&json!({}), &samples).is_empty());
        let text = Reported { value: "N/A".into(), recomputed: Some(1.0), ..one("a", None, "a", 0.0) };
        assert!(!text.differs());
    }

    #[test]
    fn names_of_metrics_with_filters() {
        let documents = [vec![1.0], vec![0.0]];
        for metric in ["exact_match", "exact_match_stderr"] {
            assert_eq!(recomputed(&one("exact_match,strict", None, metric, 0.5), &documents), Some(0.5));
        }
        assert_eq!(recomputed(&one("f1,none", None, "exact_match", 0.5), &documents), None);
    }

    #[test]
    fn probabilities_of_a_pass() {
        assert_eq!((pass_at(3, 0, 2), pass_at(3, 3, 2), pass_at(3, 2, 2)), (0.0, 1.0, 1.0));
        assert!((pass_at(3, 1, 2) - 2.0 / 3.0).abs() < 1e-15);
    }
}
