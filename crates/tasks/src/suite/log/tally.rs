//! Numbers of a log's samples by scorer, one by one, in little memory.
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use earnest_stats::{Z95, clustered_mean, clustered_wilson};
use serde::Deserialize;
use serde_json::Value;

use super::reported::{self, Reported};
use crate::suite::{FINAL, Interval, Score, ScorerTally, SideBySide, Summary, SummaryRow};

/// Width of intervals.
const LEVEL: f64 = 0.95;

/// Numbers of every scorer, with the document, cluster and task of each.
#[derive(Debug, Default)]
pub struct Tally {
    tasks: Vec<String>,
    /// Clusters by the hash of their name.
    clusters: HashMap<u64, u32>,
    columns: Vec<(String, Vec<Number>)>,
    readings: ScorerTally,
    samples: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Number {
    value: f64,
    document: u32,
    cluster: u32,
    task: u32,
}

impl Tally {
    /// Adds a scored sample of a document.
    pub fn add(&mut self, document: usize, task: &str, cluster: &str, score: &Score) {
        let task = self.tasks.iter().position(|known| known == task).unwrap_or_else(|| {
            self.tasks.push(task.to_owned());
            self.samples.push(0);
            self.tasks.len() - 1
        });
        self.samples[task] += 1;
        let mut hasher = DefaultHasher::new();
        cluster.hash(&mut hasher);
        let next = self.clusters.len() as u32;
        let cluster = *self.clusters.entry(hasher.finish()).or_insert(next);
        let number = |value| Number { value, document: document as u32, cluster, task: task as u32 };
        let scorers = score.scorers.iter().map(|(name, right)| (name, f64::from(u8::from(right))));
        let metrics = score.metrics.iter().filter(|(name, _)| !score.scorers.contains(name));
        for (name, value) in scorers.chain(metrics) {
            let index = self.columns.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                self.columns.push((name.to_owned(), Vec::new()));
                self.columns.len() - 1
            });
            self.columns[index].1.push(number(value));
        }
        self.readings.add(score);
    }

    fn column(&self, scorer: &str) -> &[Number] {
        self.columns.iter().find(|(name, _)| name == scorer).map_or(&[], |(_, numbers)| numbers)
    }

    /// A row a task in the order of the samples, then `all`; numbers between 0 and 1 as shares, others as they are.
    pub fn summary(&self, scorers: &[&str]) -> Summary {
        let names = self.names(scorers);
        let mut rows: Vec<SummaryRow> = Vec::new();
        for (task, name) in self.tasks.iter().enumerate() {
            rows.push(self.row(name, self.samples[task], &names, Some(task as u32)));
        }
        let all = self.samples.iter().sum();
        match &rows[..] {
            [] => {}
            [only] => rows.push(SummaryRow { name: "all".to_owned(), ..only.clone() }),
            _ => rows.push(self.row("all", all, &names, None)),
        }
        let unscored = scorers.iter().filter(|scorer| !names.contains(scorer));
        let notes = unscored.map(|scorer| format!("{scorer} has no number for a single sample.")).collect();
        Summary { rows, series: Vec::new(), notes }
    }

    /// All scorers side by side.
    pub fn readings(&self, chosen: &[&str]) -> Option<SideBySide> {
        self.readings.clone().finish(chosen)
    }

    /// Returns the aggregates that the tool reported, by the options of the run, beside those of the samples; nothing where the options are not a log's.
    pub fn reported(&self, options: &Value) -> Vec<Reported> {
        #[derive(Deserialize)]
        struct Options {
            log: Card,
        }
        #[derive(Deserialize)]
        struct Card {
            #[serde(default)]
            reported: Vec<Reported>,
        }
        let Ok(Options { log: Card { mut reported } }) = Options::deserialize(options) else { return Vec::new() };
        let mut known: HashMap<String, Vec<Vec<f64>>> = HashMap::new();
        for one in &mut reported {
            let documents = known.entry(one.scorer.clone()).or_insert_with(|| self.documents(&one.scorer));
            one.recomputed = reported::recomputed(one, documents);
        }
        reported
    }

    /// Numbers of a scorer by document, in the order of the repeats.
    fn documents(&self, scorer: &str) -> Vec<Vec<f64>> {
        let mut indices: HashMap<u32, usize> = HashMap::new();
        let mut documents: Vec<Vec<f64>> = Vec::new();
        for number in self.column(scorer) {
            let index = *indices.entry(number.document).or_insert(documents.len());
            if index == documents.len() {
                documents.push(Vec::new());
            }
            documents[index].push(number.value);
        }
        documents
    }

    /// Scorers with a number, in the tool's order; then the parts of what they say, and the scorer of earnest.
    fn names<'a>(&'a self, scorers: &[&'a str]) -> Vec<&'a str> {
        let found = || self.columns.iter().map(|(name, _)| name.as_str());
        let own = scorers.iter().copied().filter(|scorer| found().any(|name| name == *scorer));
        let is_part = |name: &&str| {
            !scorers.contains(name)
                && scorers.iter().any(|scorer| name.strip_prefix(scorer).is_some_and(|rest| rest.starts_with('.')))
        };
        let read = found().find(|name| *name == FINAL && !scorers.contains(name));
        own.chain(found().filter(is_part)).chain(read).collect()
    }

    fn row(&self, name: &str, samples: usize, scorers: &[&str], task: Option<u32>) -> SummaryRow {
        let mut row = SummaryRow { name: name.to_owned(), n: samples, values: Vec::new(), numbers: Vec::new() };
        for scorer in scorers {
            let column = self.column(scorer);
            let share = column.iter().all(|number| (0.0..=1.0).contains(&number.value));
            let wanted = || column.iter().filter(|number| task.is_none_or(|task| number.task == task));
            let values: Vec<f64> = wanted().map(|number| number.value).collect();
            let clusters: Vec<u64> = wanted().map(|number| u64::from(number.cluster)).collect();
            let Some(interval) = interval(&values, &clusters, share) else { continue };
            if share {
                row.values.push(((*scorer).to_owned(), interval));
            } else {
                let Interval { estimate, low, high } = interval;
                row.numbers.push(((*scorer).to_owned(), estimate));
                if low.is_finite() && high.is_finite() {
                    row.numbers.extend([(format!("{scorer}, from"), low), (format!("{scorer}, to"), high)]);
                }
            }
        }
        row
    }
}

/// The mean with its interval: Wilson's for right and wrong, Student's with the cluster-robust error for other numbers.
fn interval(values: &[f64], clusters: &[u64], share: bool) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    if values.iter().all(|value| *value == 0.0 || *value == 1.0) {
        let found = clustered_wilson(values, clusters, Z95)?;
        return Some(Interval { estimate: found.value, low: found.low, high: found.high });
    }
    let estimate = values.iter().sum::<f64>() / values.len() as f64;
    let (low, high) =
        clustered_mean(values, clusters).map_or((f64::NEG_INFINITY, f64::INFINITY), |mean| mean.interval(LEVEL));
    Some(if share {
        Interval { estimate, low: low.max(0.0), high: high.min(1.0) }
    } else {
        Interval { estimate, low, high }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_scorer_has_its_mean() {
        let mut tally = Tally::default();
        for number in 0..4 {
            let score = Score {
                scorers: [("match", number != 0), ("grades.form", true)].into(),
                metrics: [("f1", f64::from(number) / 10.0), ("length", f64::from(10 * number))].into(),
                ..Score::default()
            };
            tally.add(number as usize, "t", &format!("c{}", number / 2), &score);
        }
        let summary = tally.summary(&["f1", "match", "bleu", "length", "grades"]);
        let all = summary.rows.last().unwrap();
        let names: Vec<&str> = all.values.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["f1", "match", "grades.form"]);
        assert!((all.values[0].1.estimate - 0.15).abs() < 1e-15 && all.values[1].1.estimate == 0.75);
        assert_eq!((all.numbers[0].0.as_str(), all.numbers[0].1, all.numbers.len()), ("length", 15.0, 3));
        assert_eq!((summary.rows.len(), summary.notes.len(), all.n), (2, 2, 4), "{:?}", summary.notes);
        assert_eq!(tally.readings(&["match"]).unwrap().scorers.len(), 2);
        assert_eq!(tally.readings(&["f1"]), None);
        assert!(Tally::default().summary(&["match"]).rows.is_empty());
    }

    #[test]
    fn aggregates_are_recomputed_over_documents() {
        let mut tally = Tally::default();
        for (number, right) in [true, true, true, false, false, false, true, false].into_iter().enumerate() {
            let score = Score { scorers: [("match", right)].into(), ..Score::default() };
            tally.add(number / 2, "t", "c", &score);
        }
        let one = |reducer: &str, metric: &str, value: f64| json!({"scorer": "match", "reducer": reducer, "metric": metric, "value": value});
        let all = [
            one("mean", "accuracy", 0.5),
            one("mode", "accuracy", 0.75),
            one("at_least_2", "accuracy", 0.25),
            one("pass_at_2", "accuracy", 0.75),
            one("mean", "stderr", 0.204_124_145_231_931_5),
            one("mean", "stderr2", 1.0),
            one("own", "accuracy", 1.0),
            one("mean", "accuracy", 0.25),
        ];
        let found = tally.reported(&json!({"log": {"reported": all}}));
        let known: Vec<bool> = found.iter().map(|one| one.recomputed.is_some()).collect();
        assert_eq!(known, [true, true, true, true, true, false, false, true]);
        let differing: Vec<bool> = found.iter().map(Reported::differs).collect();
        assert_eq!(differing, [false, false, false, false, false, false, false, true]);
        assert!(tally.reported(&json!({})).is_empty());
    }
}
