//! Scores of a document's samples under the names of lm-evaluation-harness: a filter and a metric each.
use earnest_results::{Manifest, OWN, Origin, Sample, card_of};
use std::collections::BTreeSet;

use serde_json::{Value, json};

use earnest_tasks::suite::Score;

/// Fields of a line that are no metrics.
const FIELDS: [&str; 12] = [
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
    OWN,
];

/// A scorer: the filter and the metric that stand for it, and its name in the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scorer {
    pub filter: String,
    pub metric: String,
    pub name: String,
}

impl Scorer {
    fn new(filter: &str, metric: &str, name: &str) -> Self {
        let metric = if FIELDS.contains(&metric) { format!("{metric}_score") } else { metric.to_owned() };
        Scorer { filter: filter.to_owned(), metric, name: name.to_owned() }
    }

    /// Scorer of another tool's log, by its name there.
    fn of_log(name: &str) -> Self {
        let (metric, filter) = name.split_once(',').unwrap_or((name, "none"));
        Scorer::new(filter, metric, name)
    }

    /// Key in the results, `metric,filter`.
    pub fn key(&self) -> String {
        format!("{},{}", self.metric, self.filter)
    }
}

/// Scorers that every document has, the deciding one first: those of a log. Of a run of earnest they are known by its scores.
pub(super) fn scorers_of(manifest: &Manifest) -> Vec<Scorer> {
    let settings = &manifest.settings;
    if settings.origin() != Origin::Log {
        return vec![Scorer::new("none", "acc", "")];
    }
    let chosen = settings.chosen_scorer().map(str::to_owned);
    let names = chosen.into_iter().chain(card_of(settings).map(|card| card.scorers).unwrap_or_default());
    let mut scorers: Vec<Scorer> = Vec::new();
    for name in names {
        if !scorers.iter().any(|known| known.name == name) {
            scorers.push(Scorer::of_log(&name));
        }
    }
    scorers
}

/// Values of a scorer in every sample of a document; null where it gave none.
pub(super) type Column = (Scorer, Vec<Value>);

/// Returns the scores of a document's samples: those of these scorers, then those of others by name.
pub(super) fn columns(samples: &[&Sample], known: &[Scorer], of_log: bool) -> Vec<Column> {
    let scores: Vec<Vec<(Scorer, Value)>> = samples
        .iter()
        .map(|sample| sample.score.as_ref().map(|score| values(score, of_log)).unwrap_or_default())
        .collect();
    let given: BTreeSet<&Scorer> = scores.iter().flatten().map(|(scorer, _)| scorer).collect();
    let others = given.into_iter().filter(|scorer| !known.contains(scorer));
    let value = |scorer: &Scorer, scores: &[(Scorer, Value)]| {
        scores.iter().find(|(other, _)| other == scorer).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let column = |scorer: &Scorer| (scorer.clone(), scores.iter().map(|scores| value(scorer, scores)).collect());
    known.iter().chain(others).map(column).collect()
}

fn values(score: &Score, of_log: bool) -> Vec<(Scorer, Value)> {
    let right = |right: bool| json!(f64::from(u8::from(right)));
    if of_log {
        let scorers = score.scorers.iter().map(|(name, passed)| (name, right(passed)));
        let metrics = score.metrics.iter().map(|(name, value)| (name, json!(value)));
        let others = score.evidence.values.iter().map(|(name, value)| (name.as_str(), value.clone()));
        return scorers.chain(metrics).chain(others).map(|(name, value)| (Scorer::of_log(name), value)).collect();
    }
    let chosen = (Scorer::new("none", "acc", ""), right(score.correct));
    let scorers = score.scorers.iter().map(|(scorer, passed)| (Scorer::new(scorer, "acc", ""), right(passed)));
    let metrics = score.metrics.iter().map(|(metric, value)| (Scorer::new("none", metric, ""), json!(value)));
    std::iter::once(chosen).chain(scorers).chain(metrics).collect()
}

/// Returns the answer that a scorer read in a sample; of a run of earnest, that of the deciding scorer.
pub(super) fn reading(sample: &Sample, scorer: &Scorer, chosen: Option<&str>, of_log: bool) -> Value {
    let Some(score) = &sample.score else { return Value::Null };
    if !of_log {
        return score.answer.as_deref().unwrap_or("[invalid]").into();
    }
    let own = score.evidence.readings.get(&scorer.name).cloned().flatten();
    let answer = if chosen == Some(scorer.name.as_str()) { score.answer.clone().or(own) } else { own };
    answer.map_or(Value::Null, Value::String)
}
