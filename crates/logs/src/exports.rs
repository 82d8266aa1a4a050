//! Exports of earnest as JSON lines, CSV and Parquet; those in the format of lm-evaluation-harness are read as its logs.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use earnest_tasks::suite::Evidence;
use earnest_tasks::suite::registry::Row;
use earnest_tasks::suite::task::TARGETS;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fault::LogFault;
use super::json::{add, count, number, plain};
use super::limits::{MOST_LOGS, check_copies, check_name, check_scores};
use super::log::{FindOptions, Log};
use super::rows::{RowsFile, Source};
use super::sample::{CHOICES, LogPrompt, LogSample, LogScore};
use super::secrets::without_secrets;
use crate::LogError;
use earnest_results::{
    LogCard, LogNames, LogStatus, MANIFEST, MANIFEST_FORMAT, Manifest, SAMPLE_FORMAT, Tool, formula,
};
use earnest_rows::ParquetFile;

/// Columns that every export begins with.
pub(super) const COLUMNS: [&str; 5] = ["run", "suite", "item", "sample", "task"];

/// True for the columns of an export.
pub(super) fn are_columns(columns: &[&str]) -> bool {
    COLUMNS.iter().all(|wanted| columns.contains(wanted))
}

/// The deciding scorer.
const CORRECT: &str = "correct";

/// Facts of a run that a pass over its rows finds.
#[derive(Default)]
struct Run {
    suite: String,
    rows: Vec<u32>,
    scorers: BTreeSet<String>,
    repeats: u64,
    /// Names of a log; none for a run of earnest.
    log: Option<LogNames>,
    /// Limits of new tokens.
    limits: BTreeSet<u64>,
}

/// The logs of an export: one for each run.
pub(super) fn logs(path: &Path, format: &str, options: &FindOptions) -> Result<Vec<Log>, LogError> {
    let manifest = match format {
        "parquet" => ParquetFile::open(path)?.note(MANIFEST),
        _ => None,
    };
    let manifest: Option<Value> = manifest.and_then(|text| serde_json::from_str(&text).ok());
    let written = manifest.as_ref().and_then(|manifest| manifest.get("format")?.as_u64());
    if let Some(format) = written.filter(|format| *format != u64::from(MANIFEST_FORMAT)) {
        return Err(of_other(path, "manifest", format, MANIFEST_FORMAT));
    }
    let of_manifest = manifest.as_ref().and_then(|manifest| {
        let manifest: Manifest = serde_json::from_value(manifest.clone()).ok()?;
        Some((manifest.run.clone(), LogNames::of(&manifest)?))
    });
    let file = RowsFile::read(path, format, options)?;
    let mut runs: BTreeMap<String, Run> = BTreeMap::new();
    // A file with a formula was written with --raw-cells.
    let mut marked = format == "csv";
    file.each(&mut |number, row| {
        marked &= !row.values.values().any(|value| value.as_str().is_some_and(formula::is_formula));
        let Some((run, suite)) = row.text("run").zip(row.text("suite")) else {
            return Err(file.error(&row, "it does not name its run and suite"));
        };
        if let Some(format) = whole(&row, "format").filter(|format| *format != u64::from(SAMPLE_FORMAT)) {
            return Err(of_other(path, "samples", format, SAMPLE_FORMAT));
        }
        if runs.len() == MOST_LOGS && !runs.contains_key(run.as_ref()) {
            return Err(file.error(&row, format!("it is of another run, and a file may have {MOST_LOGS} runs")));
        }
        let known = runs.entry(run.into_owned()).or_default();
        known.suite = suite.into_owned();
        known.rows.push(number);
        known.repeats = known.repeats.max(whole(&row, "sample").unwrap_or(0) + 1);
        known.limits.extend(whole(&row, "max_tokens"));
        if known.log.is_none() {
            known.log = log_names(&row).or_else(|| {
                of_manifest.clone().filter(|(run, _)| row.text("run").as_deref() == Some(run)).map(|(_, log)| log)
            });
        }
        for (name, _) in scores(&row, known.log.as_ref()) {
            if name != CORRECT && !known.scorers.contains(&name) {
                check_name("the name of a scorer", &name).map_err(|reason| file.error(&row, reason))?;
                known.scorers.insert(name);
                check_scores(known.scorers.len()).map_err(|reason| file.error(&row, reason))?;
            }
        }
        Ok(())
    })?;
    let mut logs = Vec::new();
    for (index, (name, run)) in runs.into_iter().enumerate() {
        let manifest = manifest.as_ref().filter(|manifest| manifest.get("run").and_then(Value::as_str) == Some(&name));
        let mut card = card(&name, &run, manifest, options);
        card.files = vec![path.to_owned()];
        let log = run.log;
        let source = Source {
            file: file.clone(),
            rows: run.rows,
            read: match marked {
                true => Box::new(move |row, _| sample(&unmarked(row), log.as_ref())),
                false => Box::new(move |row, _| sample(row, log.as_ref())),
            },
            count_repeats: false,
            meanings: String::new(),
            first: index == 0,
        };
        logs.push(Log { card, source: Box::new(source), keep_going: options.keep_going });
    }
    Ok(logs)
}

/// The error of an export in a format that this version does not know.
fn of_other(path: &Path, what: &str, format: u64, known: u32) -> LogError {
    LogError::unread(
        path,
        format!("it is an export of another earnest, in version {format} of its {what}; version {known} is read"),
    )
    .hint("import it with the earnest that wrote it")
}

fn card(name: &str, run: &Run, manifest: Option<&Value>, options: &FindOptions) -> LogCard {
    let of = |pointer: &str| manifest.and_then(|manifest| manifest.pointer(pointer)).filter(|value| !value.is_null());
    let text = |pointer: &str| of(pointer).map(plain);
    let status = match of("/status").and_then(Value::as_str) {
        Some("finished") => LogStatus::Finished,
        Some(_) => LogStatus::Unfinished,
        None => LogStatus::Unknown,
    };
    // Of a log, the card that was imported.
    let of_log =
        of("/settings/suite_options/log").and_then(|card| serde_json::from_value::<LogCard>(card.clone()).ok());
    if let (Some(card), Some(log)) = (of_log, &run.log) {
        let scorers = scorers_of_log(log, &card.scorers, &run.scorers);
        return LogCard { tool: Tool::Earnest, model: log.model.clone(), scorers, ..card };
    }
    let known = text("/model/name")
        .or_else(|| run.log.as_ref().map(|log| log.model.clone()))
        .or_else(|| options.model.clone())
        .or_else(|| model_of(name, &run.suite));
    let unknown = known.is_none();
    let mut card = LogCard::new(Tool::Earnest, known.unwrap_or_else(|| name.to_owned()), run.suite.clone(), status);
    if unknown {
        card.notes.push(
            "the export does not name the model: it is called by the run's name (the setting `model_name = NAME` names it)"
                .to_owned(),
        );
    }
    card.tool_version = text("/settings/earnest");
    card.task_version = text("/settings/suite_version");
    add(&mut card.task_details, "suite_options", of("/settings/suite_options"));
    add(&mut card.task_details, "run", Some(&name.into()));
    if let Some(Value::Object(model)) = of("/model") {
        card.model_details = without_secrets(model).into_iter().filter(|(_, value)| !value.is_null()).collect();
    }
    if let Some(Value::Object(generation)) = of("/settings/generation") {
        card.generation = generation.clone();
    }
    card.repeats = u32::try_from(run.repeats).ok();
    card.started = text("/started");
    card.ended = text("/ended");
    if let (Some(limit), true, true) = (run.limits.first(), run.limits.len() == 1, card.generation.is_empty()) {
        card.generation.extend((*limit > 0).then(|| ("max_tokens".to_owned(), (*limit).into())));
    }
    card.planned = run.log.as_ref().and_then(|log| log.planned);
    card.scorers = match &run.log {
        Some(log) => scorers_of_log(log, &[], &run.scorers),
        None => std::iter::once(CORRECT.to_owned()).chain(run.scorers.iter().cloned()).collect(),
    };
    card
}

/// Scorers of a log: the deciding one, then those of its card, then those of its rows.
fn scorers_of_log(log: &LogNames, card: &[String], rows: &BTreeSet<String>) -> Vec<String> {
    let mut scorers: Vec<String> = Vec::new();
    for name in log.chosen.iter().chain(card).chain(rows) {
        if !scorers.contains(name) {
            scorers.push(name.clone());
        }
    }
    scorers
}

/// The names of the log that a row is of.
fn log_names(row: &Row) -> Option<LogNames> {
    if let Some(log) = row.values.get("log") {
        return LogNames::deserialize(log).ok();
    }
    let text = |column: &str| row.text(column).filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned);
    let planned = whole(row, "log_planned").and_then(|planned| usize::try_from(planned).ok());
    Some(LogNames { model: text("log_model")?, chosen: text("log_primary"), planned })
}

/// The evidence of a row: readings, explanations and scores that are no numbers.
fn evidence(row: &Row) -> Evidence {
    let nested = row.values.get("verdict").and_then(|score| score.get("evidence"));
    let read = match (nested, row.values.get("evidence")) {
        (Some(evidence), _) => Evidence::deserialize(evidence).ok(),
        (None, Some(Value::String(text))) => serde_json::from_str(text).ok(),
        (None, _) => None,
    };
    read.unwrap_or_default()
}

/// The model in a run's name `SUITE-MODEL-DIGITS`, with a number after it where a name was taken.
fn model_of(run: &str, suite: &str) -> Option<String> {
    let rest = run.strip_prefix(suite)?.strip_prefix('-')?;
    let hash = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (rest, last) = rest.rsplit_once('-')?;
    if hash(last) {
        return Some(rest.to_owned());
    }
    let (rest, before) = rest.rsplit_once('-')?;
    (hash(before) && last.parse::<u32>().is_ok()).then(|| rest.to_owned())
}

/// A row of CSV with the texts that were exported ([`formula::neutral`]).
fn unmarked(row: &Row) -> Row {
    let mut row = row.clone();
    for value in row.values.values_mut() {
        if let Value::String(text) = value
            && formula::original(text) != text
        {
            *text = formula::original(text).to_owned();
        }
    }
    row
}

/// The member of an object of a row of JSON lines, or the column of a flat row.
fn member<'r>(row: &'r Row, object: &str, name: &str, column: &str) -> Option<&'r Value> {
    let value = match row.values.get(object) {
        Some(Value::Object(members)) => members.get(name),
        _ => row.values.get(column),
    };
    value.filter(|value| !value.is_null() && value.as_str() != Some(""))
}

fn whole(row: &Row, column: &str) -> Option<u64> {
    row.values.get(column).and_then(|value| count(Some(value)).or_else(|| value.as_str()?.parse().ok()))
}

fn truth(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        Value::String(text) if text == "true" => Some(true.into()),
        Value::String(text) if text == "false" => Some(false.into()),
        _ => None,
    }
}

/// Scores of a row by scorer: of a log under their own names, with those that are no numbers.
fn scores(row: &Row, log: Option<&LogNames>) -> Vec<(String, Value)> {
    let Some(log) = log else { return own_scores(row) };
    let own = |name: &str| ["matcher_", "metric_"].iter().find_map(|mark| name.strip_prefix(mark)).map(str::to_owned);
    let mut scores: Vec<(String, Value)> =
        own_scores(row).into_iter().filter_map(|(name, value)| Some((own(&name)?, value))).collect();
    let others = evidence(row).values;
    // Their parts come with them.
    scores.retain(|(name, _)| {
        log.chosen.as_ref() == Some(name) || name.split_once('.').is_none_or(|(whole, _)| !others.contains_key(whole))
    });
    scores.extend(others);
    scores
}

/// Scores of a row of a run of earnest: the deciding scorer, the other scorers, the metrics, under the names that flat exports give them.
fn own_scores(row: &Row) -> Vec<(String, Value)> {
    let metric = |value: &Value| number(value).and_then(serde_json::Number::from_f64).map(Value::Number);
    let mut scores = Vec::new();
    if let Some(Value::Object(score)) = row.values.get("verdict") {
        scores.extend(score.get(CORRECT).and_then(truth).map(|value| (CORRECT.to_owned(), value)));
        for (group, prefix) in [("matchers", "matcher_"), ("metrics", "metric_")] {
            for (name, value) in score.get(group).and_then(Value::as_object).into_iter().flatten() {
                let value = if group == "matchers" { truth(value) } else { metric(value) };
                scores.extend(value.map(|value| (format!("{prefix}{name}"), value)));
            }
        }
        return scores;
    }
    scores.extend(row.values.get(CORRECT).and_then(truth).map(|value| (CORRECT.to_owned(), value)));
    for (name, value) in &row.values {
        let value = match name.as_str() {
            name if name.starts_with("matcher_") => truth(value),
            name if name.starts_with("metric_") => metric(value),
            _ => None,
        };
        scores.extend(value.map(|value| (name.clone(), value)));
    }
    scores
}

/// A covariate that is a list, which flat rows have as text.
fn list(name: &str, value: &Value) -> Option<Value> {
    let text = value.as_str().filter(|_| [CHOICES, TARGETS].contains(&name))?;
    serde_json::from_str(text).ok().filter(Value::is_array)
}

fn sample(row: &Row, log: Option<&LogNames>) -> Result<LogSample, LogFault> {
    let text = |column: &str| row.text(column).filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned);
    let Some(id) = text("item") else { return Err(LogFault::NoItem) };
    let completion = |name: &str, column: &str| member(row, "completion", name, column);
    let failure = member(row, "failure", "message", "error").map(plain);
    let nested = row.values.get("completion").is_some_and(Value::is_object);
    // In flat rows an empty completion and none look the same; the end of generation tells them apart.
    let finish = completion("finish", "finish").map(plain);
    let body = match row.values.get("completion") {
        Some(Value::Object(members)) => members.get("text").map(plain),
        Some(Value::String(text)) if finish.is_some() || !text.is_empty() => Some(text.clone()),
        Some(Value::Null) | None if !nested && finish.is_some() => Some(String::new()),
        _ => None,
    };
    let mut document = Map::new();
    for name in ["task", "cluster"] {
        add(&mut document, name, row.values.get(name));
    }
    match row.values.get("covariates").filter(|covariates| covariates.is_object()) {
        Some(covariates) => add(&mut document, "covariates", Some(covariates)),
        None => {
            let own = row.values.iter().filter_map(|(name, value)| Some((name.strip_prefix("covariate_")?, value)));
            let own: Map<_, _> = own
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.to_owned(), list(name, value).unwrap_or_else(|| value.clone())))
                .collect();
            add(&mut document, "covariates", Some(&own.into()));
        }
    }
    let answer = member(row, "verdict", "extracted", "extracted").map(plain);
    let seconds = ["prefill_s", "decode_s"].map(|name| match row.values.get("completion") {
        Some(Value::Object(members)) => members.get("timings").and_then(|timings| timings.get(name)).and_then(number),
        _ => row.values.get(name).and_then(number),
    });
    let tokens = match row.values.get("completion") {
        Some(Value::Object(members)) => {
            let ids = members.get("ids").and_then(Value::as_array).filter(|ids| !ids.is_empty());
            ids.map(|ids| ids.len() as u64).or(members.get("counted_tokens").and_then(Value::as_u64))
        }
        _ => whole(row, "completion_tokens"),
    };
    let mut evidence = if log.is_some() { evidence(row) } else { Evidence::default() };
    let score = |(scorer, value): (String, Value)| {
        let answer = match log {
            Some(log) if log.chosen.as_ref() != Some(&scorer) => evidence.readings.get(&scorer).cloned().flatten(),
            _ => answer.clone(),
        };
        let explanation = evidence.explanations.get(&scorer).cloned();
        LogScore { scorer, value, answer, explanation }
    };
    let scores = scores(row, log);
    check_copies("the answer", answer.as_ref().map_or(0, String::len), scores.len())?;
    let scores = scores.into_iter().map(score).collect();
    Ok(LogSample {
        id,
        epoch: whole(row, "sample").and_then(|sample| u32::try_from(sample).ok()).unwrap_or(0),
        document,
        question: text("question"),
        prompt: text("prompt").map(LogPrompt::Text),
        targets: text("gold").into_iter().collect(),
        completions: body.into_iter().chain(std::mem::take(&mut evidence.repeats)).collect(),
        scores,
        error: failure,
        finish,
        prompt_tokens: whole(row, "prompt_tokens").filter(|tokens| *tokens > 0),
        completion_tokens: tokens,
        seconds: seconds[0].zip(seconds[1]).map(|(prefill, decode)| prefill + decode).filter(|seconds| *seconds > 0.0),
        ..LogSample::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_in_names_of_runs() {
        assert_eq!(model_of("a-b-smol-135-0123abcd", "a-b").as_deref(), Some("smol-135"));
        assert_eq!(model_of("a-b-smol-135-0123abcd-2", "a-b").as_deref(), Some("smol-135"));
        assert_eq!(model_of("my run", "a-b"), None);
    }
}
