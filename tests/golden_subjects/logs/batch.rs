//! OpenAI batches: a run is a batch. It has no scores; the scorer that its note states reads the completions.
use std::collections::HashMap;

use earnest_logs::LogSample;
use serde_json::Value;

use super::{Checked, Kind, Read, Row, close, field, same, text};

pub const KIND: Kind = Kind { paths, sample, aggregate, number };

fn paths(run: &Row) -> Result<Vec<String>, String> {
    let mut paths = vec![text(run, "output")?.to_owned()];
    paths.extend(["input", "errors"].iter().filter_map(|name| field(run, name).as_str()).map(str::to_owned));
    Ok(paths)
}

/// Rows of the data by their ids.
fn data(read: &Read) -> Result<HashMap<String, Row>, String> {
    let mut rows = HashMap::new();
    let failed = |error: std::io::Error| error.to_string();
    for entry in std::fs::read_dir(read.folder.join("data")).map_err(failed)? {
        let text = std::fs::read_to_string(entry.map_err(failed)?.path()).map_err(failed)?;
        for line in text.lines() {
            let row: Row = serde_json::from_str(line).map_err(|error| error.to_string())?;
            if let Some(id) = row.get("id").and_then(Value::as_str) {
                rows.insert(id.to_owned(), row);
            }
        }
    }
    Ok(rows)
}

/// The last match of `-?\d[\d,]*`, without commas; none without one.
fn last_number(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut last = None;
    let mut at = 0;
    while at < bytes.len() {
        let start = at + usize::from(bytes[at] == b'-');
        if !bytes.get(start).is_some_and(u8::is_ascii_digit) {
            at += 1;
            continue;
        }
        let end = start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b',').count();
        last = Some(text[at..end].replace(',', ""));
        at = end;
    }
    last
}

fn answers(sample: &LogSample) -> Vec<Option<String>> {
    sample.completions.iter().map(|text| last_number(text)).collect()
}

fn correct(sample: &LogSample, data: &HashMap<String, Row>) -> Option<Vec<u8>> {
    let target = field(data.get(&sample.id)?, "answer");
    let target = target.as_str().map_or_else(|| target.to_string(), str::to_owned);
    Some(answers(sample).iter().map(|answer| u8::from(answer.as_ref() == Some(&target))).collect())
}

fn number(_: &Row, sample: &LogSample, read: &Read) -> Option<f64> {
    let correct = correct(sample, &data(read).ok()?)?;
    super::mean(&correct.into_iter().map(f64::from).collect::<Vec<_>>())
}

fn sample(_: &Row, row: &Row, read: &Read) -> Checked {
    let id = text(row, "custom_id")?;
    let found =
        read.samples.iter().find(|sample| sample.id == id).ok_or_else(|| format!("the log has no request {id}"))?;
    let data = data(read)?;
    let document = data.get(id).ok_or_else(|| format!("the data has no {id}"))?;
    let of = |error: String| format!("request {id}: {error}");
    for name in ["template", "variant"] {
        same(name, field(document, name), field(row, name)).map_err(of)?;
    }
    same("target", field(document, "answer"), field(row, "target")).map_err(of)?;
    same("completions", &found.completions.clone().into(), field(row, "completions")).map_err(of)?;
    let finish = field(row, "finish_reasons").get(0).cloned().unwrap_or(Value::Null);
    same("finish_reasons", &found.finish.clone().into(), &finish).map_err(of)?;
    same("answers", &answers(found).into(), field(row, "answers")).map_err(of)?;
    same("correct", &correct(found, &data).unwrap_or_default().into(), field(row, "correct")).map_err(of)?;
    let error = field(row, "error");
    let message = error.get("message").or_else(|| error.pointer("/error/message")).unwrap_or(error);
    same("error", &found.error.clone().into(), message).map_err(of)?;
    let answered = field(row, "status").as_u64() == Some(200);
    same("status", &found.error.is_none().into(), &answered.into()).map_err(of)
}

fn aggregate(run: &Row, read: &Read) -> Checked {
    let card = &read.log.card;
    let data = data(read)?;
    same("model", &card.model.clone().into(), field(run, "model"))?;
    let failed = read.samples.iter().filter(|sample| sample.error.is_some()).count();
    let most = read.samples.iter().map(|sample| sample.completions.len()).max().unwrap_or(0);
    for (name, computed) in [
        ("endpoint", card.task_details.get("url").cloned().unwrap_or(Value::Null)),
        ("n_requests", card.planned.into()),
        ("n_completed", (read.samples.len() - failed).into()),
        ("n_failed", failed.into()),
        ("n_per_request", most.into()),
    ] {
        if let Some(golden) = run.get(name) {
            same(name, &computed, golden)?;
        }
    }
    let done: Vec<f64> =
        read.samples.iter().filter_map(|sample| correct(sample, &data)).flatten().map(f64::from).collect();
    let mean = super::mean(&done).ok_or("no request was completed")?;
    close("accuracy_last_number_completed_only", mean, field(run, "accuracy_last_number_completed_only"))
}
