//! Table of a log: the mean of every scorer.
use std::collections::{BTreeMap, BTreeSet};

use earnest_stats::{Z95, clustered_mean, clustered_wilson};

use super::value;
use crate::suite::{FINAL, Interval, Scored, Summary, SummaryRow};

/// Width of intervals.
const LEVEL: f64 = 0.95;

/// A row a task in the order of the samples, then `all`; scores between 0 and 1 as shares, others as numbers.
pub(super) fn of(samples: &[Scored<'_>], scorers: &[&str]) -> Summary {
    let mut by_task: Vec<(&str, Vec<&Scored<'_>>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in samples {
        let task = sample.item.task.as_str();
        let place = *places.entry(task).or_insert_with(|| {
            by_task.push((task, Vec::new()));
            by_task.len() - 1
        });
        by_task[place].1.push(sample);
    }
    by_task.push(("all", samples.iter().collect()));
    let names = names(samples, scorers);
    let shares: Vec<bool> = names.iter().map(|name| are_shares(samples, name)).collect();
    let rows = by_task.iter().filter(|(_, samples)| !samples.is_empty());
    let rows = rows.map(|(name, samples)| row(name, samples, &names, &shares)).collect();
    let unscored = scorers.iter().filter(|scorer| !names.iter().any(|name| name == *scorer));
    let notes = unscored.map(|scorer| format!("{scorer} has no number for a single sample.")).collect();
    Summary { rows, series: Vec::new(), notes }
}

/// Scorers with a number, in the tool's order; then what they say of several things, and the reading of earnest.
fn names(samples: &[Scored<'_>], scorers: &[&str]) -> Vec<String> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for sample in samples {
        for name in sample.score.rules.names().chain(sample.score.metrics.names()) {
            if !found.contains(name) {
                found.insert(name);
            }
        }
    }
    let own = scorers.iter().copied().filter(|scorer| found.contains(scorer));
    let is_part =
        |name: &&str| scorers.iter().any(|scorer| name.strip_prefix(scorer).is_some_and(|rest| rest.starts_with('.')));
    let parts = found.iter().copied().filter(is_part);
    let read = (found.contains(FINAL) && !scorers.contains(&FINAL)).then_some(FINAL);
    own.chain(parts).chain(read).map(str::to_owned).collect()
}

fn are_shares(samples: &[Scored<'_>], name: &str) -> bool {
    samples.iter().filter_map(|sample| value(sample.score, name)).all(|value| (0.0..=1.0).contains(&value))
}

fn row(name: &str, samples: &[&Scored<'_>], scorers: &[String], shares: &[bool]) -> SummaryRow {
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    let mut row = SummaryRow { name: name.to_owned(), n: samples.len(), values: Vec::new(), numbers: Vec::new() };
    for (scorer, share) in scorers.iter().zip(shares) {
        let mut clusters = Vec::with_capacity(samples.len());
        let mut values = Vec::with_capacity(samples.len());
        for sample in samples {
            let Some(value) = value(sample.score, scorer) else { continue };
            let next = numbers.len() as u64;
            clusters.push(*numbers.entry(&sample.item.cluster).or_insert(next));
            values.push(value);
        }
        let Some(interval) = interval(&values, &clusters, *share) else { continue };
        if *share {
            row.values.push((scorer.clone(), interval));
        } else {
            let Interval { estimate, low, high } = interval;
            row.numbers.push((scorer.clone(), estimate));
            if low.is_finite() && high.is_finite() {
                row.numbers.extend([(format!("{scorer}, from"), low), (format!("{scorer}, to"), high)]);
            }
        }
    }
    row
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
    use super::*;
    use crate::suite::{Item, Score};

    #[test]
    fn every_scorer_has_its_mean() {
        let items: Vec<Item> = (0..4)
            .map(|number| Item {
                cluster: format!("c{}", number / 2),
                ..Item::plain(number.to_string(), "t", "q", "1")
            })
            .collect();
        let scores: Vec<Score> = (0..4)
            .map(|number| Score {
                rules: [("match", number != 0), ("grades.form", true)].into(),
                metrics: [("f1", f64::from(number) / 10.0), ("length", f64::from(10 * number))].into(),
                ..Score::default()
            })
            .collect();
        let samples: Vec<Scored<'_>> = items
            .iter()
            .zip(&scores)
            .map(|(item, score)| Scored { item, score, tokens: 0, truncated: false })
            .collect();
        let summary = of(&samples, &["f1", "match", "bleu", "length", "grades"]);
        let all = summary.rows.last().unwrap();
        let names: Vec<&str> = all.values.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["f1", "match", "grades.form"]);
        assert!((all.values[0].1.estimate - 0.15).abs() < 1e-15 && all.values[1].1.estimate == 0.75);
        assert_eq!((all.numbers[0].0.as_str(), all.numbers[0].1, all.numbers.len()), ("length", 15.0, 3));
        assert_eq!((summary.rows.len(), summary.notes.len()), (2, 2), "{:?}", summary.notes);
        assert!(of(&[], &["match"]).rows.is_empty());
    }
}
