//! lm-evaluation-harness: a run is a filter and a metric of a file of samples.
use earnest_logs::{LogPrompt, LogSample, LogScore};
use earnest_results::Reported;
use serde_json::Value;

use super::{Checked, Kind, Read, Row, close, field, mean, same, same_answer, same_document, same_target, text};

pub const KIND: Kind = Kind { paths, sample, aggregate, number };

fn paths(run: &Row) -> Result<Vec<String>, String> {
    Ok(vec![text(run, "samples_file")?.to_owned()])
}

fn scorer(run: &Row) -> Result<String, String> {
    Ok(format!("{},{}", text(run, "metric")?, text(run, "filter")?))
}

fn score<'s>(run: &Row, sample: &'s LogSample) -> Result<Option<&'s LogScore>, String> {
    let scorer = scorer(run)?;
    Ok(sample.scores.iter().find(|score| score.scorer == scorer))
}

fn number(run: &Row, sample: &LogSample, _: &Read) -> Option<f64> {
    score(run, sample).ok()??.number()
}

fn sample(run: &Row, row: &Row, read: &Read) -> Checked {
    let index = field(row, "doc_id").as_u64().ok_or("field `doc_id` is missing or no index")?;
    let sample = read.samples.iter().find(|sample| sample.index == Some(index));
    let sample = sample.ok_or_else(|| format!("the log has no document {index}"))?;
    let of = |error: String| format!("document {index}: {error}");
    if let Some(id) = row.get("id").filter(|id| !id.is_null()) {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        same("id", &sample.id.clone().into(), &id.into()).map_err(of)?;
    }
    same_document(row, sample).map_err(of)?;
    same_target(row, sample).map_err(of)?;
    let score = score(run, sample)?;
    same("score", score.map_or(&Value::Null, |score| &score.value), field(row, "score")).map_err(of)?;
    // A document that a metric did not score has its answer with the filter's other metrics, if it has any.
    let filter = format!(",{}", text(run, "filter")?);
    match score.or_else(|| sample.scores.iter().find(|score| score.scorer.ends_with(&filter))) {
        Some(score) => same_answer(score.answer.as_deref(), field(row, "answer")).map_err(of)?,
        None => same("score", &Value::Null, field(row, "score")).map_err(of)?,
    }
    if let Some(completions) = row.get("completions") {
        same("completions", &sample.completions.clone().into(), completions).map_err(of)?;
    }
    let likelihoods: Vec<f64> = sample.likelihoods.iter().map(|one| one.log_likelihood).collect();
    if let Some(golden) = row.get("loglikelihoods") {
        same("loglikelihoods", &likelihoods.clone().into(), golden).map_err(of)?;
    }
    if let Some(golden) = row.get("answer_index") {
        let best = likelihoods.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let first = likelihoods.iter().position(|value| *value == best);
        same("answer_index", &first.into(), golden).map_err(of)?;
    }
    Ok(())
}

fn aggregate(run: &Row, read: &Read) -> Checked {
    let card = &read.log.card;
    // Found beside the samples.
    if !card.files.contains(&read.folder.join(text(run, "results_file")?)) {
        return Err(format!("the log has not the file {}", field(run, "results_file")));
    }
    let stem = |name: &str| name.trim_end_matches(".gguf").to_owned();
    same("model", &stem(&card.model).into(), &stem(text(run, "model")?).into())?;
    same("task", &card.task.clone().into(), field(run, "task"))?;
    if let Some(name) = run.get("model_name_in_file") {
        same("model_name_in_file", card.model_details.get("model_name").unwrap_or(&Value::Null), name)?;
    }
    if let Some(repeats) = run.get("repeats") {
        same("repeats", &card.repeats.into(), repeats)?;
    }
    if let Some(lines) = run.get("lines_in_samples_file") {
        let file = read.folder.join(text(run, "samples_file")?);
        let written = std::fs::read_to_string(file).map_err(|error| error.to_string())?.lines().count();
        same("lines_in_samples_file", &written.into(), lines)?;
    }
    let scorer = scorer(run)?;
    if !card.scorers.contains(&scorer) {
        return Err(format!("the log has no scorer {scorer}; it has {:?}", card.scorers));
    }
    let Some(reported) = run.get("reported").and_then(Value::as_object) else { return Err("no `reported`".to_owned()) };
    let metric = text(run, "metric")?;
    let of = |name: &str| -> Option<&Reported> {
        card.reported.iter().find(|one| one.scorer == scorer && one.metric == name)
    };
    let value = |name: &str| of(name).map_or(&Value::Null, |one| &one.value);
    same("reported value", value(metric), field(reported, "value"))?;
    same("reported stderr", value(&format!("{metric}_stderr")), field(reported, "stderr"))?;
    if let Some(key) = reported.get("key") {
        same("reported key", &scorer.clone().into(), key)?;
    }
    if let Some(counts) = reported.get("n").filter(|counts| !counts.is_null()) {
        let effective = counts.get("effective").unwrap_or(&Value::Null);
        same("n", &card.planned.into(), effective)?;
        same("n behind the value", &of(metric).and_then(|one| one.samples).into(), effective)?;
    }
    let values: Vec<&LogScore> = read
        .samples
        .iter()
        .map(|sample| score(run, sample))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    if let Some(scalar) = run.get("per_sample_score_is_scalar") {
        let all = values.iter().all(|score| score.value.is_number() || score.value.is_boolean());
        same("per_sample_score_is_scalar", &all.into(), scalar)?;
    }
    if let Some(hashed) = run.get("prompt_hash_is_sha256_of_arg_0") {
        let own = |sample: &LogSample| match (&sample.prompt, &sample.prompt_hash) {
            (Some(LogPrompt::Text(prompt)), Some(hash)) => {
                earnest_digest::hex(&earnest_digest::sha256(prompt.as_bytes())) == *hash
            }
            // The text that was hashed is that of the messages.
            (prompt, hash) => prompt.is_some() && hash.is_some(),
        };
        same("prompt_hash_is_sha256_of_arg_0", &read.samples.iter().all(own).into(), hashed)?;
    }
    let aggregation = card.task_details.get("metric_list").and_then(Value::as_array).into_iter().flatten();
    let aggregation = aggregation.filter(|entry| entry.get("metric").and_then(Value::as_str) == Some(metric));
    let is_mean = aggregation.clone().any(|entry| entry.get("aggregation").and_then(Value::as_str) == Some("mean"));
    let numbers: Vec<f64> = values.iter().filter_map(|score| score.number()).collect();
    match mean(&numbers) {
        Some(mean) if is_mean && numbers.len() == read.samples.len() => {
            close("mean of the samples", mean, field(reported, "value"))
        }
        _ => Ok(()),
    }
}
