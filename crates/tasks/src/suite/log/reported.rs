//! Aggregates that a tool reported, beside those of its samples.
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// Mean or standard error over the documents, each with the numbers of its repeats.
pub(super) fn recomputed(reported: &Reported, documents: &[Vec<f64>]) -> Option<f64> {
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
    use super::*;

    fn one(scorer: &str, metric: &str, value: f64) -> Reported {
        let (scorer, metric) = (scorer.to_owned(), metric.to_owned());
        Reported { scorer, reducer: None, metric, value: value.into(), samples: None, recomputed: None }
    }

    #[test]
    fn names_of_metrics_with_filters() {
        let documents = [vec![1.0], vec![0.0]];
        for metric in ["exact_match", "exact_match_stderr"] {
            assert_eq!(recomputed(&one("exact_match,strict", metric, 0.5), &documents), Some(0.5));
        }
        assert_eq!(recomputed(&one("f1,none", "exact_match", 0.5), &documents), None);
        let text = Reported { value: "N/A".into(), recomputed: Some(1.0), ..one("a", "a", 0.0) };
        assert!(!text.differs());
    }

    #[test]
    fn probabilities_of_a_pass() {
        assert_eq!((pass_at(3, 0, 2), pass_at(3, 3, 2), pass_at(3, 2, 2)), (0.0, 1.0, 1.0));
        assert!((pass_at(3, 1, 2) - 2.0 / 3.0).abs() < 1e-15);
    }
}
