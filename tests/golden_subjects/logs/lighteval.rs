//! lighteval: a run is a metric of a file of details.
use earnest_logs::LogSample;
use serde_json::Value;

use super::{Checked, Kind, Read, Row, field, mean, same, same_document, same_target, text};

pub const KIND: Kind = Kind { paths, sample, aggregate, number };

fn paths(run: &Row) -> Result<Vec<String>, String> {
    Ok(vec![text(run, "details_file")?.to_owned()])
}

fn score<'s>(run: &Row, sample: &'s LogSample) -> Option<&'s earnest_logs::LogScore> {
    let metric = field(run, "metric").as_str()?;
    sample.scores.iter().find(|score| score.scorer == metric)
}

fn number(run: &Row, sample: &LogSample, _: &Read) -> Option<f64> {
    score(run, sample)?.number()
}

fn sample(run: &Row, row: &Row, read: &Read) -> Checked {
    let index = field(row, "doc_id").as_str().and_then(|id| id.parse::<u64>().ok());
    let sample = read.samples.iter().find(|sample| match index {
        Some(_) => sample.index == index,
        None => Some(sample.id.as_str()) == field(row, "doc_id").as_str(),
    });
    let sample = sample.ok_or_else(|| format!("the log has no document {}", field(row, "doc_id")))?;
    let of = |error: String| format!("document {}: {error}", sample.id);
    if let Some(id) = row.get("id").filter(|id| !id.is_null()) {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        same("id", &sample.id.clone().into(), &id.into()).map_err(of)?;
    }
    same_document(row, sample).map_err(of)?;
    same_target(row, sample).map_err(of)?;
    same("score", score(run, sample).map_or(&Value::Null, |score| &score.value), field(row, "score")).map_err(of)?;
    same("completions", &sample.completions.clone().into(), field(row, "completions")).map_err(of)?;
    let likelihoods: Vec<f64> = sample.likelihoods.iter().map(|one| one.log_likelihood).collect();
    same("logprobs", &likelihoods.into(), field(row, "logprobs")).map_err(of)
}

fn aggregate(run: &Row, read: &Read) -> Checked {
    let card = &read.log.card;
    // Found beside the samples.
    if !card.files.contains(&read.folder.join(text(run, "results_file")?)) {
        return Err(format!("the log has not the file {}", field(run, "results_file")));
    }
    let metric = text(run, "metric")?;
    same("model", &card.model.clone().into(), field(run, "model"))?;
    same("task", &card.task.clone().into(), field(run, "task"))?;
    let Some(reported) = run.get("reported").and_then(Value::as_object) else { return Err("no `reported`".to_owned()) };
    let value = |name: &str| {
        let found = card.reported.iter().find(|one| one.scorer == metric && one.metric == name);
        found.map_or(Value::Null, |one| one.value.clone())
    };
    same("reported value", &value(metric), field(reported, "value"))?;
    same("reported stderr", &value(&format!("{metric}_stderr")), field(reported, "stderr"))?;
    if let Some(golden) = run.get("mean_of_samples_equals_reported") {
        let numbers: Vec<f64> = read.samples.iter().filter_map(|sample| number(run, sample, read)).collect();
        let whole = numbers.len() == read.samples.len();
        let reported = field(reported, "value").as_f64();
        let agree = mean(&numbers).zip(reported).is_some_and(|(mean, value)| whole && (mean - value).abs() < 1e-9);
        same("mean_of_samples_equals_reported", &agree.into(), golden)?;
    }
    Ok(())
}
