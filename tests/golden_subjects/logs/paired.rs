//! Pairs of logs: the mean difference over their common documents, with its standard error.
use std::collections::BTreeMap;

use serde_json::Value;

use super::{Checked, Kind, Logs, Read, Row, close, field, mean, same, text};

/// Mean number and cluster of each document.
fn by_document(pair: &Row, kind: &Kind, read: &Read) -> BTreeMap<String, (f64, String)> {
    let mut numbers: BTreeMap<&str, (Vec<f64>, String)> = BTreeMap::new();
    for sample in &read.samples {
        let Some(number) = (kind.number)(pair, sample, read) else { continue };
        let cluster =
            sample.document.get("template").and_then(Value::as_str).map_or_else(|| cluster(&sample.id), str::to_owned);
        numbers.entry(&sample.id).or_insert_with(|| (Vec::new(), cluster)).0.push(number);
    }
    let reduced =
        |(id, (numbers, cluster)): (&str, (Vec<f64>, String))| Some((id.to_owned(), (mean(&numbers)?, cluster)));
    numbers.into_iter().filter_map(reduced).collect()
}

/// The template in an id `TEMPLATE-INSTANCE-VARIANT`, where a log has no fields of its documents.
fn cluster(id: &str) -> String {
    id.rsplitn(3, '-').nth(2).unwrap_or(id).to_owned()
}

/// Computes a pair from the samples and compares every figure.
pub fn check(pair: &Row, kind: &Kind, runs: &[Value], logs: &mut Logs) -> Checked {
    let mut sides = Vec::new();
    for (side, model) in [("a", "model_a"), ("b", "model_b")] {
        let file = text(pair, side)?;
        let named = |run: &&Row| (kind.paths)(run).is_ok_and(|paths| paths.first().is_some_and(|first| first == file));
        let run = runs
            .iter()
            .filter_map(Value::as_object)
            .find(named)
            .ok_or_else(|| format!("no run has the file {file}"))?;
        same(model, field(run, "model"), field(pair, model))?;
        if let Some(task) = pair.get("task") {
            same("task", field(run, "task"), task)?;
        }
        sides.push(by_document(pair, kind, logs.read(&(kind.paths)(run)?)?));
    }
    let [a, b] = sides.as_slice() else { return Err("a pair has two sides".to_owned()) };
    let common: Vec<(f64, f64, &str)> =
        a.iter().filter_map(|(id, (one, cluster))| Some((*one, b.get(id)?.0, cluster.as_str()))).collect();
    let n = common.len() as f64;
    if common.len() < 2 {
        return Err(format!("{} documents are common", common.len()));
    }
    let differences: Vec<f64> = common.iter().map(|(one, other, _)| one - other).collect();
    let sides =
        [common.iter().map(|(one, ..)| *one).collect::<Vec<_>>(), common.iter().map(|(_, other, _)| *other).collect()];
    let means = sides.each_ref().map(|numbers| mean(numbers).unwrap_or(f64::NAN));
    let difference = mean(&differences).unwrap_or(f64::NAN);
    let squares: f64 = differences.iter().map(|one| (one - difference).powi(2)).sum();
    let mut clusters: BTreeMap<&str, f64> = BTreeMap::new();
    for ((_, _, cluster), one) in common.iter().zip(&differences) {
        *clusters.entry(cluster).or_default() += one - difference;
    }
    let clustered = clusters.values().map(|sum| sum * sum).sum::<f64>().sqrt() / n;
    same("n_common", &common.len().into(), field(pair, "n_common"))?;
    close("mean_a", means[0], field(pair, "mean_a"))?;
    close("mean_b", means[1], field(pair, "mean_b"))?;
    close("difference", difference, field(pair, "difference"))?;
    close("se_iid", (squares / (n - 1.0) / n).sqrt(), field(pair, "se_iid"))?;
    close("se_cluster_cr0", clustered, field(pair, "se_cluster_cr0"))?;
    let count = |one: f64, other: f64| common.iter().filter(|(a, b, _)| (*a, *b) == (one, other)).count();
    for (name, computed) in [
        ("clusters", clusters.len()),
        ("both", count(1.0, 1.0)),
        ("a_only", count(1.0, 0.0)),
        ("b_only", count(0.0, 1.0)),
        ("neither", count(0.0, 0.0)),
    ] {
        if let Some(golden) = pair.get(name).filter(|golden| !golden.is_null()) {
            same(name, &computed.into(), golden)?;
        }
    }
    Ok(())
}
