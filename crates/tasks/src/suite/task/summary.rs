//! Table of a task: all scorers side by side, and likelihoods where there are some.
use std::collections::BTreeMap;

use earnest_stats::{Z95, clustered_wilson};

use super::likelihood::{BYTES, LOGPROB, TOKENS};
use crate::suite::{Interval, Scored, Summary, SummaryRow};

/// A row a task in the order of the samples, then `all`.
pub(super) fn of(samples: &[Scored<'_>], chosen: Option<&str>, names: &[&str]) -> Summary {
    let mut by_task: Vec<(&str, Vec<&Scored<'_>>)> = Vec::new();
    let mut indices: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in samples {
        let task = sample.item.task.as_str();
        let index = *indices.entry(task).or_insert_with(|| {
            by_task.push((task, Vec::new()));
            by_task.len() - 1
        });
        by_task[index].1.push(sample);
    }
    by_task.push(("all", samples.iter().collect()));
    let others: Vec<&str> = names.iter().copied().filter(|scorer| Some(*scorer) != chosen).collect();
    let rows = by_task.iter().filter(|(_, samples)| !samples.is_empty());
    let rows = rows.map(|(name, samples)| row(name, samples, chosen.is_some(), &others)).collect();
    Summary { rows, series: Vec::new(), notes: Vec::new() }
}

fn row(name: &str, samples: &[&Scored<'_>], decided: bool, others: &[&str]) -> SummaryRow {
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    let clusters: Vec<u64> = samples
        .iter()
        .map(|sample| {
            let next = numbers.len() as u64;
            *numbers.entry(&sample.item.cluster).or_insert(next)
        })
        .collect();
    let mut values = Vec::new();
    let mut add = |column: &str, right: &dyn Fn(&Scored<'_>) -> bool| {
        let right: Vec<f64> = samples.iter().map(|sample| f64::from(right(sample))).collect();
        let found = clustered_wilson(&right, &clusters, Z95);
        values
            .extend(found.map(|found| {
                (column.to_owned(), Interval { estimate: found.value, low: found.low, high: found.high })
            }));
    };
    if decided {
        add("accuracy", &|sample| sample.score.correct);
    }
    for scorer in others {
        add(scorer, &|sample| sample.score.scorers.get(scorer).unwrap_or_default());
    }
    let sum = |metric: &str| -> f64 { samples.iter().filter_map(|sample| sample.score.metrics.get(metric)).sum() };
    let (logprob, bytes, tokens) = (sum(LOGPROB), sum(BYTES), sum(TOKENS));
    let mut single = Vec::new();
    if bytes > 0.0 && tokens > 0.0 {
        let scored = samples.iter().filter(|sample| sample.score.metrics.contains(LOGPROB)).count();
        single.push(("mean log-likelihood".to_owned(), logprob / scored as f64));
        if !decided {
            single.push(("bits per byte".to_owned(), -logprob / bytes / std::f64::consts::LN_2));
            single.push(("perplexity per byte".to_owned(), (-logprob / bytes).exp()));
            single.push(("perplexity per token".to_owned(), (-logprob / tokens).exp()));
        }
    }
    SummaryRow { name: name.to_owned(), n: samples.len(), values, numbers: single }
}
