//! Columns of stored runs by name: a sample's fields as text.
use earnest_results::{Generated, Manifest, Origin, Sample};
use std::collections::BTreeSet;

use serde_json::Value;

use super::columns::ColumnError;
use earnest_tasks::suite::log::value;

/// Columns that every sample has.
const OWN: [&str; 15] = [
    "run",
    "model",
    "suite",
    "task",
    "item",
    "item_id",
    "sample",
    "cluster",
    "gold",
    "correct",
    "failure",
    "finish",
    "truncated",
    "prompt_tokens",
    "completion_tokens",
];

/// The wanted columns. Covariates, the suite's scores and metrics go by their own names or, if two are the same, by those
/// of `earnest export` (`covariate_...`, `matcher_...`, `metric_...`).
pub(super) struct RunColumns<'w> {
    wanted: &'w [&'w str],
    /// True for columns that some sample had.
    seen: Vec<bool>,
    /// Names of the samples' other columns.
    present: BTreeSet<String>,
    rows: usize,
    buffer: Vec<String>,
}

impl<'w> RunColumns<'w> {
    pub(super) fn new(wanted: &'w [&'w str]) -> Self {
        RunColumns {
            wanted,
            seen: wanted.iter().map(|name| OWN.contains(name)).collect(),
            present: BTreeSet::new(),
            rows: 0,
            buffer: vec![String::new(); wanted.len()],
        }
    }

    /// The wanted fields of a sample; empty if it has none.
    pub(super) fn fields(&mut self, sample: &Sample, manifest: &Manifest) -> Result<Vec<&str>, ColumnError> {
        self.rows += 1;
        let score = sample.score.as_ref();
        let scorers = score.into_iter().flat_map(|score| score.scorers.names().chain(score.metrics.names()));
        let prompt = sample.prompt().map(|_| "prompt");
        for name in prompt.into_iter().chain(sample.covariates.keys().map(String::as_str)).chain(scorers) {
            if !self.present.contains(name) {
                self.present.insert(name.to_owned());
            }
        }
        for (index, name) in self.wanted.iter().enumerate() {
            let found = match own(sample, manifest, name) {
                Some(text) => Some(text),
                None => other(sample, name)?,
            };
            self.seen[index] |= found.is_some();
            self.buffer[index] = found.unwrap_or_default();
        }
        Ok(self.buffer.iter().map(String::as_str).collect())
    }

    /// Checks, after all rows, that every wanted column exists.
    pub(super) fn check(&self, from: &str) -> Result<(), ColumnError> {
        if self.rows == 0 {
            return Err(ColumnError::NoSamples { from: from.to_owned() });
        }
        match self.wanted.iter().zip(&self.seen).find(|(_, seen)| !**seen) {
            None => Ok(()),
            Some((name, _)) => {
                let own = OWN.iter().map(|name| (*name).to_owned());
                let present = own.chain(self.present.iter().cloned()).collect::<Vec<_>>().join(", ");
                Err(ColumnError::Missing { from: from.to_owned(), name: (*name).to_owned(), present })
            }
        }
    }
}

/// A column of [`OWN`].
fn own(sample: &Sample, manifest: &Manifest, name: &str) -> Option<String> {
    let score = sample.score.as_ref();
    let completion = sample.completion.as_ref();
    Some(match name {
        "run" => sample.run.clone(),
        "model" => manifest.model.name.clone(),
        "suite" => sample.suite.clone(),
        "task" => sample.task.clone(),
        "item" => sample.question().to_owned(),
        // One question under several prompts has several.
        "item_id" => sample.item.clone(),
        "prompt" => return sample.prompt().map(str::to_owned),
        "sample" => sample.sample.to_string(),
        "cluster" => sample.cluster.clone(),
        "gold" => sample.gold.clone(),
        // A tool's number as it is: a fraction is neither right nor wrong.
        "correct" if manifest.settings.origin() == Origin::Log => {
            let chosen = manifest.settings.chosen_scorer();
            score
                .zip(chosen)
                .and_then(|(score, chosen)| value(score, chosen))
                .map(|value| value.to_string())
                .unwrap_or_default()
        }
        "correct" => score.map(|score| truth(score.correct)).unwrap_or_default(),
        "failure" => score.and_then(|score| score.failure.as_ref()).map(ToString::to_string).unwrap_or_default(),
        "finish" => completion
            .and_then(|completion| text(&serde_json::to_value(completion.finish).unwrap_or(Value::Null)))
            .unwrap_or_default(),
        "truncated" => completion.map(|_| truth(sample.truncated())).unwrap_or_default(),
        // Unknown in most logs.
        "prompt_tokens" if manifest.settings.origin() == Origin::Log && sample.prompt_tokens == 0 => String::new(),
        "prompt_tokens" => sample.prompt_tokens.to_string(),
        "completion_tokens" => completion
            .map(Generated::tokens)
            .filter(|tokens| *tokens > 0 || manifest.settings.origin() != Origin::Log)
            .map(|tokens| tokens.to_string())
            .unwrap_or_default(),
        _ => return None,
    })
}

/// Returns a covariate, score or metric.
fn other(sample: &Sample, name: &str) -> Result<Option<String>, ColumnError> {
    let score = sample.score.as_ref();
    let covariate = |name: &str| sample.covariates.get(name).and_then(text);
    let scorer = |name: &str| score?.scorers.get(name).map(truth);
    let metric = |name: &str| score?.metrics.get(name).map(|value| value.to_string());
    if let Some(found) = name.strip_prefix("covariate_").and_then(covariate) {
        return Ok(Some(found));
    }
    // Exports name the column of a scorer `matcher_NAME`.
    if let Some(found) = name.strip_prefix("scorer_").or_else(|| name.strip_prefix("matcher_")).and_then(scorer) {
        return Ok(Some(found));
    }
    if let Some(found) = name.strip_prefix("metric_").and_then(metric) {
        return Ok(Some(found));
    }
    let mut found = [("covariate", covariate(name)), ("scorer", scorer(name)), ("metric", metric(name))]
        .into_iter()
        .filter_map(|(kind, value)| Some((kind, value?)));
    match (found.next(), found.next()) {
        (Some((first, _)), Some((second, _))) => Err(ColumnError::Alike { name: name.to_owned(), first, second }),
        (found, _) => Ok(found.map(|(_, value)| value)),
    }
}

fn truth(value: bool) -> String {
    if value { "1" } else { "0" }.to_owned()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(truth(*value)),
        other => Some(other.to_string()),
    }
}
