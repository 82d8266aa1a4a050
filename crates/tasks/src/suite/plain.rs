//! Scoring and summary of a suite that needs nothing of its own: the scorer `final`, and accuracy by task.
use std::collections::BTreeMap;

use earnest_stats::{Z95, clustered_wilson};

use super::{Answered, FINAL, Interval, Item, Score, Scored, Summary, SummaryRow, read_final};
use earnest_answer::reader::Form;

/// Scores a completion by the scorer `final` alone: the answer as a careful person reads it has the value of the item's gold.
pub fn score_final(item: &Item, form: Form, answered: &Answered<'_>) -> Score {
    let reading = read_final(item, form, answered);
    let right = reading.answer.as_ref().is_ok_and(|answer| answer.is_same_as(&item.gold));
    let mut score = Score::default();
    score.add_final(FINAL, right, &reading);
    if !right {
        let failure = reading.answer.as_ref().map_or_else(|none| none.name(), |_| "wrong");
        score.failure = Some(failure.into());
    }
    score
}

/// Summarises by accuracy: a row a task in the order of the samples, then `all`. Intervals are Wilson's for as many samples as
/// the cluster-robust error is worth.
pub fn summarise_accuracy(samples: &[Scored<'_>]) -> Summary {
    let mut tasks: Vec<&str> = Vec::new();
    for sample in samples {
        if !tasks.contains(&sample.item.task.as_str()) {
            tasks.push(&sample.item.task);
        }
    }
    let of_task = |task: &str| samples.iter().filter(|sample| sample.item.task == task).collect::<Vec<_>>();
    let mut rows: Vec<SummaryRow> = tasks.iter().map(|task| row(task, &of_task(task))).collect();
    rows.push(row("all", &samples.iter().collect::<Vec<_>>()));
    rows.retain(|row| row.n > 0);
    Summary { rows, series: Vec::new(), notes: Vec::new() }
}

fn row(name: &str, samples: &[&Scored<'_>]) -> SummaryRow {
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    let clusters: Vec<u64> = samples
        .iter()
        .map(|sample| {
            let next = numbers.len() as u64;
            *numbers.entry(&sample.item.cluster).or_insert(next)
        })
        .collect();
    let right: Vec<f64> = samples.iter().map(|sample| f64::from(sample.score.correct)).collect();
    let accuracy = clustered_wilson(&right, &clusters, Z95);
    let accuracy = accuracy.map(|found| Interval { estimate: found.value, low: found.low, high: found.high });
    SummaryRow {
        name: name.to_owned(),
        n: samples.len(),
        values: accuracy.map(|accuracy| ("accuracy".to_owned(), accuracy)).into_iter().collect(),
        numbers: Vec::new(),
    }
}
