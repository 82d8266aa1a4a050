//! The header of a log: settings, status and aggregates.
use std::fmt::Display;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::fault::{LayoutFault, LogFault};
use super::super::json::{Ordered, add, count, plain};
use super::super::limits::{Scorers, check_figures, check_name, some_of};
use super::super::secrets::{clean, without_secrets};
use crate::LogError;
use earnest_results::{LogCard, LogStatus, Reported, Tool};

/// A log without its samples.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Header {
    /// Version of the format.
    #[serde(default)]
    version: Value,
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub eval: Map<String, Value>,
    #[serde(default)]
    pub plan: Map<String, Value>,
    #[serde(default)]
    pub results: Option<Results>,
    #[serde(default)]
    pub stats: Map<String, Value>,
    #[serde(default)]
    pub error: Value,
    #[serde(default)]
    pub tags: Value,
    #[serde(default)]
    pub metadata: Value,
    #[serde(default)]
    pub invalidated: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Results {
    #[serde(default)]
    total_samples: Option<u64>,
    #[serde(default)]
    completed_samples: Option<u64>,
    #[serde(default)]
    scores: Vec<ScorerResults>,
    /// The only scorer, in version 1, with its metrics beside it.
    #[serde(default)]
    scorer: Option<ScorerResults>,
    #[serde(default)]
    metrics: Ordered<Metric>,
    #[serde(default)]
    headline: Option<Headline>,
}

#[derive(Debug, Clone, Deserialize)]
struct Headline {
    scorer: String,
}

/// Aggregates of a scorer and a reducer; of one key of its values where the name is not the scorer's.
#[derive(Debug, Clone, Deserialize)]
struct ScorerResults {
    name: String,
    #[serde(default)]
    scorer: Option<String>,
    #[serde(default)]
    reducer: Option<String>,
    #[serde(default)]
    scored_samples: Option<usize>,
    #[serde(default)]
    metrics: Ordered<Metric>,
}

#[derive(Debug, Clone, Deserialize)]
struct Metric {
    #[serde(default)]
    value: Value,
}

/// Members of a document that are its header, the results apart.
pub(super) const MEMBERS: [&str; 10] =
    ["version", "status", "eval", "plan", "results", "stats", "error", "tags", "metadata", "invalidated"];

/// Newest version of the format that is read.
const NEWEST: u64 = 2;

/// Checks that results are in a layout of which all scorers are read.
///
/// # Errors
/// The part in another layout.
pub(super) fn check_results(results: &Value) -> Result<(), LayoutFault> {
    let wrong = |what: &str, value: &Value, expected: &'static str| {
        Err(LayoutFault::Kind { what: what.to_owned(), kind: kind_of(value), expected })
    };
    let members = match results {
        Value::Null => return Ok(()),
        Value::Object(members) => members,
        other => return wrong("its `results` are", other, "an object"),
    };
    match members.get("scorer").unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::Object(scorer) if scorer.get("name").is_some_and(Value::is_string) => {}
        Value::Object(_) => {
            return Err(LayoutFault::Without { whose: "its `results.scorer`".to_owned(), member: "name" });
        }
        other => return wrong("its `results.scorer` is", other, "an object with a `name`"),
    }
    match members.get("scores").unwrap_or(&Value::Null) {
        Value::Null | Value::Array(_) => Ok(()),
        other => wrong("its `results.scores` is", other, "a list"),
    }
}

/// Version of the format that a header declares, whatever else is in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Declared {
    pub version: Value,
}

impl Declared {
    /// Refuses a version of the format that is not known.
    pub fn check(&self, path: &Path) -> Result<(), LogError> {
        match &self.version {
            Value::Null => Ok(()),
            version if version.as_u64().is_some_and(|version| (1..=NEWEST).contains(&version)) => Ok(()),
            version => Err(LogError::unread(
                path,
                format!("it is a log of Inspect in version {version} of its format, which is not known; versions 1 and {NEWEST} are read"),
            )
            .hint("a newer earnest may read it; `inspect log convert` writes the version of the Inspect that is installed")),
        }
    }

    /// The error of a log in a layout that is not known: what of it is.
    pub fn unknown(&self, path: &Path, what: impl Display) -> LogError {
        let version = match &self.version {
            Value::Null => "without a version of its format".to_owned(),
            version => format!("in version {version} of its format"),
        };
        LogError::unread(path, format!("it is a log of Inspect {version}, in a layout that is not known: {what}"))
            .hint(AGAIN)
    }
}

/// Next step with such a log.
pub(super) const AGAIN: &str =
    "docs/logs.md has the layouts that are read; `inspect log convert` writes that of the Inspect that is installed";

/// The kind of a value, for a sentence.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl Header {
    /// Version of the format.
    pub fn declared(&self) -> Declared {
        Declared { version: self.version.clone() }
    }

    /// The error of a log whose samples have none of the scores that its results are of.
    pub fn no_scores(&self, path: &Path) -> LogError {
        let scorers: Vec<String> =
            self.reported().iter().map(|one| one.scorer.clone().unwrap_or_else(|| one.name.clone())).collect();
        self.declared().unknown(
            path,
            format!(
                "its results have scores by {}, but none of its samples has `scores`, or `score` as in version 1",
                some_of(scorers.iter())
            ),
        )
    }

    /// True if the results are those of scorers.
    pub fn has_scorers(&self) -> bool {
        !self.reported().is_empty()
    }

    /// Aggregates by scorer.
    fn reported(&self) -> Vec<ScorerResults> {
        let Some(results) = &self.results else { return Vec::new() };
        match &results.scorer {
            Some(only) if results.scores.is_empty() => {
                let metrics = if results.metrics.0.is_empty() { only.metrics.clone() } else { results.metrics.clone() };
                vec![ScorerResults { metrics, ..only.clone() }]
            }
            _ => results.scores.clone(),
        }
    }

    /// Ids of the data set in its order.
    pub fn ids(&self) -> Vec<String> {
        let ids = self.eval.get("dataset").and_then(|dataset| dataset.get("sample_ids")).and_then(Value::as_array);
        ids.into_iter().flatten().map(plain).collect()
    }

    /// Number of samples that were completed, as the log counts them.
    pub fn completed(&self) -> Option<u64> {
        self.results.as_ref()?.completed_samples
    }

    /// The card, without files.
    pub fn card(&self, path: &Path) -> Result<LogCard, LogError> {
        let eval = |key: &str| self.eval.get(key);
        let text = |key: &str| eval(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let Some((model, task)) = text("model").zip(text("task")) else {
            return Err(LogError::unread(path, "the log does not name its model and its task"));
        };
        let status = match self.status.as_deref() {
            Some("success") => LogStatus::Finished,
            Some("error") => {
                let message = self.error.get("message").map(plain).unwrap_or_default();
                LogStatus::Failed(message)
            }
            Some("cancelled") => LogStatus::Cancelled,
            Some("started") => LogStatus::Unfinished,
            _ => LogStatus::Unknown,
        };
        let mut card = LogCard::new(Tool::Inspect, model, task, status);
        card.tool_version = eval("packages").and_then(|packages| packages.get("inspect_ai")).map(plain);
        card.task_version = eval("task_version").filter(|version| !version.is_null()).map(plain);
        for key in ["model_args", "model_base_url", "model_roles", "packages"] {
            add(&mut card.model_details, key, eval(key).map(clean).as_ref());
        }
        let details = &mut card.task_details;
        for key in [
            "task_args",
            "task_file",
            "config",
            "solver",
            "solver_args",
            "scorers",
            "eval_id",
            "run_id",
            "task_id",
            "revision",
        ] {
            add(details, key, eval(key).map(clean).as_ref());
        }
        if let Some(Value::Object(dataset)) = eval("dataset") {
            let mut dataset = without_secrets(dataset);
            // One for every sample.
            dataset.remove("sample_ids");
            add(details, "dataset", Some(&dataset.into()));
        }
        add(details, "steps", self.plan.get("steps").map(clean).as_ref());
        add(details, "tags", Some(&self.tags));
        add(details, "metadata", Some(&clean(&self.metadata)));
        for settings in [eval("model_generate_config"), self.plan.get("config")] {
            for (name, value) in settings.and_then(Value::as_object).map(without_secrets).into_iter().flatten() {
                card.generation.insert(name, value);
            }
        }
        let config = |key: &str| eval("config").and_then(|config| config.get(key));
        card.repeats = count(config("epochs")).and_then(|epochs| u32::try_from(epochs).ok());
        let ids = eval("dataset").and_then(|dataset| dataset.get("sample_ids")).and_then(Value::as_array).map(Vec::len);
        let all = eval("dataset").and_then(|dataset| count(dataset.get("samples")));
        card.planned = ids.or_else(|| all.and_then(|all| usize::try_from(all).ok()));
        let moment =
            |key: &str| self.stats.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        card.started = moment("started_at").or_else(|| text("created"));
        card.ended = moment("completed_at");
        self.scores(&mut card).map_err(|reason| LogError::unread(path, reason))?;
        if let Some(Results { total_samples: Some(total), completed_samples: Some(done), .. }) = &self.results {
            let counts = serde_json::json!({ "total_samples": total, "completed_samples": done });
            card.task_details.insert("counts".to_owned(), counts);
            if done < total {
                card.notes.push(format!("{done} of {total} samples were completed; the tool's figures are over these"));
            }
        }
        if self.invalidated == Some(true) {
            card.notes.push("the log was marked as invalid in the tool".to_owned());
        }
        Ok(card)
    }

    /// Fills in the scorers and what the tool reports of them.
    ///
    /// # Errors
    /// The reason, where there are too many.
    fn scores(&self, card: &mut LogCard) -> Result<(), LogFault> {
        let results = self.results.as_ref();
        let mut scorers = Scorers::default();
        let headline = results.and_then(|results| results.headline.as_ref()).map(|headline| headline.scorer.clone());
        let reported = self.reported();
        let of = |entry: &ScorerResults| entry.scorer.clone().unwrap_or_else(|| entry.name.clone());
        let declared = self.eval.get("scorers").and_then(Value::as_array).into_iter().flatten();
        let declared = declared.filter_map(|scorer| scorer.get("name")).map(|name| {
            let name = plain(name);
            name.rsplit('/').next().unwrap_or_default().to_owned()
        });
        let named = headline.into_iter().chain(reported.iter().map(of));
        // Declared names are those of the code; the log makes them unique, so that they count only where it has no results.
        let named: Vec<String> = if reported.is_empty() { declared.collect() } else { named.collect() };
        named.iter().try_for_each(|name| scorers.add(name))?;
        card.scorers = scorers.into_names();
        check_figures(reported.iter().map(|entry| entry.metrics.0.len()).sum())?;
        for entry in &reported {
            let scorer = of(entry);
            check_name("the name of a scorer of its results", &entry.name)?;
            for (key, metric) in &entry.metrics.0 {
                let metric_name = if entry.name == scorer { key.clone() } else { format!("{}/{key}", entry.name) };
                card.reported.push(Reported {
                    scorer: scorer.clone(),
                    reducer: entry.reducer.clone(),
                    metric: metric_name,
                    value: metric.value.clone(),
                    samples: entry.scored_samples,
                });
            }
        }
        Ok(())
    }
}
