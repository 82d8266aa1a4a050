//! Inspect: a run is a log.
use std::collections::BTreeSet;

use earnest_logs::{LogSample, LogScore};
use earnest_results::{LogCard, LogStatus};
use serde_json::Value;

use super::{Checked, Kind, Read, Row, close, field, mean, same, same_answer, same_document, same_target, text};

pub const KIND: Kind = Kind { paths, sample, aggregate, number };

fn paths(run: &Row) -> Result<Vec<String>, String> {
    Ok(vec![text(run, "file")?.to_owned()])
}

fn number(pair: &Row, sample: &LogSample, _: &Read) -> Option<f64> {
    let scorer = field(pair, "scorer").as_str()?;
    let score = sample.scores.iter().find(|score| score.scorer == scorer)?;
    match field(pair, "key").as_str() {
        None => score.number(),
        Some(key) => {
            let member = LogScore { value: score.value.get(key)?.clone(), ..score.clone() };
            member.number()
        }
    }
}

fn sample(_: &Row, row: &Row, read: &Read) -> Checked {
    let id = field(row, "id");
    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let epoch = field(row, "epoch").as_u64().ok_or("field `epoch` is missing or no number")?;
    let found = read.samples.iter().find(|sample| sample.id == id && u64::from(sample.epoch) + 1 == epoch);
    let sample = found.ok_or_else(|| format!("the log has no sample {id} of epoch {epoch}"))?;
    let of = |error: String| format!("sample {id}, epoch {epoch}: {error}");
    same_document(row, sample).map_err(of)?;
    same_target(row, sample).map_err(of)?;
    let completion = sample.completions.first().map_or("", String::as_str);
    same("completion", &completion.into(), field(row, "completion")).map_err(of)?;
    same("stop_reason", &sample.finish.clone().into(), field(row, "stop_reason")).map_err(of)?;
    same("error", &sample.error.clone().into(), field(row, "error")).map_err(of)?;
    let scores = field(row, "scores");
    let none = serde_json::Map::new();
    let golden = match scores {
        Value::Null => &none,
        Value::Object(scores) => scores,
        _ => return Err(of("field `scores` is no object".to_owned())),
    };
    let unscored = |score: &Value| matches!(score.get("value"), None | Some(Value::Null)) || score["value"] == "NaN";
    let names: BTreeSet<&str> =
        golden.iter().filter(|(_, score)| !unscored(score)).map(|(name, _)| name.as_str()).collect();
    let found: BTreeSet<&str> = sample.scores.iter().map(|score| score.scorer.as_str()).collect();
    if names != found {
        return Err(of(format!("scorers: computed {found:?}, golden {names:?}")));
    }
    for score in &sample.scores {
        let golden = &golden[&score.scorer];
        same("value", &score.value, &golden["value"]).map_err(of)?;
        same_answer(score.answer.as_deref(), &golden["answer"]).map_err(of)?;
        same_number("as_float", score, &golden["as_float"]).map_err(of)?;
    }
    Ok(())
}

/// Fails unless the number of a score is the golden one; a score of several parts has one for each of them.
fn same_number(what: &str, score: &LogScore, golden: &Value) -> Checked {
    let part = |what: String, value: &Value, golden: &Value| {
        same_number(&what, &LogScore { value: value.clone(), ..score.clone() }, golden)
    };
    match (&score.value, golden) {
        (Value::Object(parts), Value::Object(golden)) => {
            let names = |parts: &Row| parts.keys().cloned().collect::<BTreeSet<String>>();
            if names(parts) != names(golden) {
                return Err(format!("{what}: computed {:?}, golden {:?}", names(parts), names(golden)));
            }
            parts.iter().try_for_each(|(name, value)| part(format!("{what}.{name}"), value, &golden[name]))
        }
        (Value::Array(parts), Value::Array(golden)) => {
            same(&format!("{what}, parts"), &parts.len().into(), &golden.len().into())?;
            (0..)
                .zip(parts)
                .zip(golden)
                .try_for_each(|((at, value), golden): ((usize, _), _)| part(format!("{what}[{at}]"), value, golden))
        }
        _ => match score.number() {
            Some(number) => same(what, &number.into(), golden),
            // The tool takes what is no number for 0.
            None if golden.is_null() || golden.as_f64() == Some(0.0) => Ok(()),
            None => Err(format!("{what}: computed none, golden {golden}")),
        },
    }
}

fn aggregate(run: &Row, read: &Read) -> Checked {
    let card = &read.log.card;
    let (status, error) = match &card.status {
        LogStatus::Finished => ("success", None),
        LogStatus::Failed(reason) => ("error", Some(reason.clone())),
        LogStatus::Cancelled => ("cancelled", None),
        LogStatus::Unfinished => ("started", None),
        LogStatus::Unknown => ("", None),
    };
    same("status", &status.into(), field(run, "status"))?;
    same("log_error", &error.into(), field(run, "log_error"))?;
    same("model", &card.model.clone().into(), field(run, "model"))?;
    same("task", &card.task.clone().into(), field(run, "task"))?;
    let detail = |group: &str, name: &str| {
        let group = card.task_details.get(group);
        group.and_then(|group| group.get(name)).cloned().unwrap_or(Value::Null)
    };
    let ids: BTreeSet<&str> = read.samples.iter().map(|sample| sample.id.as_str()).collect();
    let format = std::path::Path::new(text(run, "file")?).extension().map(|end| end.to_string_lossy().into_owned());
    for (name, computed) in [
        ("format", format.into()),
        ("task_args", card.task_details.get("task_args").cloned().unwrap_or_else(|| Value::Object(Default::default()))),
        ("dataset_samples", detail("dataset", "samples")),
        ("epochs", card.repeats.into()),
        ("reducers", detail("config", "epochs_reducer")),
        ("limit", detail("config", "limit")),
        ("total_samples", detail("counts", "total_samples")),
        ("completed_samples", detail("counts", "completed_samples")),
        ("invalidated", card.notes.iter().any(|note| note.contains("invalid")).into()),
        ("n_distinct_ids", ids.len().into()),
    ] {
        if let Some(golden) = run.get(name) {
            same(name, &computed, golden)?;
        }
    }
    let none = Vec::new();
    let reported = match field(run, "reported") {
        Value::Null => &none,
        Value::Array(reported) => reported,
        _ => return Err("field `reported` is no list".to_owned()),
    };
    let mut seen = 0;
    for entry in reported {
        let Some(entry) = entry.as_object() else { return Err("an entry of `reported` is no object".to_owned()) };
        let (name, scorer) = (text(entry, "scorer")?, text(entry, "scored_by")?);
        let Some(metrics) = field(entry, "metrics").as_object() else { return Err("no `metrics`".to_owned()) };
        for (key, golden) in metrics {
            let metric = if name == scorer { key.clone() } else { format!("{name}/{key}") };
            let found = card.reported.iter().find(|one| {
                one.scorer == scorer
                    && one.metric == metric
                    && one.reducer.as_deref() == field(entry, "reducer").as_str()
            });
            let Some(found) = found else { return Err(format!("the log has no {metric} of {scorer}")) };
            seen += 1;
            same(&format!("{metric} of {scorer}"), &found.value, golden)?;
            same(&format!("samples of {scorer}"), &found.samples.into(), field(entry, "scored"))?;
            if matches!(key.as_str(), "accuracy" | "mean") && name == scorer {
                again(card, &read.samples, scorer, found.reducer.as_deref(), field(entry, "scored"), golden)?;
            }
        }
    }
    match card.reported.len() {
        all if all == seen => Ok(()),
        all => Err(format!("the log reports {all} figures, golden {seen}")),
    }
}

/// Computes a mean from the samples, epochs reduced as the tool does, and compares it. Reducers of others are passed over.
fn again(
    card: &LogCard,
    samples: &[LogSample],
    scorer: &str,
    reducer: Option<&str>,
    scored: &Value,
    golden: &Value,
) -> Checked {
    let mut by_id: Vec<(&str, Vec<f64>)> = Vec::new();
    for sample in samples {
        let Some(score) = sample.scores.iter().find(|score| score.scorer == scorer) else { continue };
        // Means of lists and objects are the scorer's own.
        let Some(number) = score.number() else { return Ok(()) };
        match by_id.iter_mut().find(|(id, _)| *id == sample.id) {
            Some((_, numbers)) => numbers.push(number),
            None => by_id.push((&sample.id, vec![number])),
        }
    }
    let reducer = reducer.unwrap_or("mean");
    let several = card.repeats.unwrap_or(1) > 1;
    let reduced: Option<Vec<f64>> =
        by_id.iter().map(|(_, numbers)| if several { reduce(numbers, reducer) } else { Some(numbers[0]) }).collect();
    let Some(reduced) = reduced else { return Ok(()) };
    same("samples with scores", &reduced.len().into(), scored)?;
    match mean(&reduced) {
        Some(mean) => close("mean of the samples", mean, golden),
        None => Ok(()),
    }
}

/// Reduces the scores of one id; none for a reducer that is not known here.
fn reduce(numbers: &[f64], reducer: &str) -> Option<f64> {
    let right = numbers.iter().filter(|number| **number >= 1.0).count();
    let of = |prefix: &str| reducer.strip_prefix(prefix).and_then(|k| k.parse::<usize>().ok());
    if let Some(k) = of("at_least_") {
        return Some(f64::from(u8::from(right >= k)));
    }
    if let Some(k) = of("pass_at_") {
        let wrong = numbers.len() - right;
        if wrong < k {
            return Some(1.0);
        }
        let product: f64 = (wrong + 1..=numbers.len()).map(|n| 1.0 - k as f64 / n as f64).product();
        return Some(1.0 - product);
    }
    match reducer {
        "mean" => mean(numbers),
        "max" => Some(numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "median" => {
            let mut sorted = numbers.to_vec();
            sorted.sort_by(f64::total_cmp);
            let half = sorted.len() / 2;
            Some(if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 })
        }
        "mode" => {
            let times = |value: f64| numbers.iter().filter(|number| **number == value).count();
            let most = numbers.iter().map(|value| times(*value)).max()?;
            // The first of several.
            numbers.iter().copied().find(|value| times(*value) == most)
        }
        _ => None,
    }
}
