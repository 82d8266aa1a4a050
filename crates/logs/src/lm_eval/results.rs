//! The results document: facts and aggregates of every task of a run.
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::fault::LogFault;
use super::super::identity::{arguments, model_name};
use super::super::json::{Ordered, add, count, plain};
use super::super::limits::{MOST_SCORERS, Scorers, check_figures, check_scores};
use super::super::secrets::{clean, without_secrets};
use super::super::time::rfc_3339;
use super::unnamed::Filters;
use crate::LogError;
use earnest_results::{LogCard, LogStatus, Reported, Tool};

/// A results document, of which the parts that are used.
#[derive(Debug, Clone, Default, Deserialize)]
pub(in super::super) struct Results {
    #[serde(default)]
    results: Ordered<Ordered<Value>>,
    #[serde(default)]
    configs: Ordered<Map<String, Value>>,
    #[serde(default)]
    versions: Map<String, Value>,
    #[serde(default, rename = "n-shot")]
    shots: Map<String, Value>,
    #[serde(default, rename = "n-samples")]
    counts: Map<String, Value>,
    #[serde(default)]
    config: Map<String, Value>,
    #[serde(default)]
    task_hashes: Map<String, Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Value of a metric over the documents as one filter left them.
#[derive(Debug)]
pub(super) struct Aggregate {
    pub metric: String,
    pub filter: String,
    pub value: f64,
    /// True for a mean, false for other aggregates; none where the task does not say.
    pub mean: Option<bool>,
}

/// Entries of a task's results that are no metrics.
const FACTS: [&str; 5] = ["alias", "name", "sample_len", "sample_count", "samples"];

impl Results {
    /// Tasks of the run that are no groups.
    pub fn tasks(&self) -> Vec<&str> {
        let mut tasks: Vec<&str> = self.configs.0.iter().map(|(name, _)| name.as_str()).collect();
        if tasks.is_empty() {
            tasks = self.results.0.iter().map(|(name, _)| name.as_str()).collect();
        }
        tasks
    }

    /// True for results of versions before 0.4, which write no samples: tasks without configurations, metrics without filters.
    pub fn is_before_samples(&self) -> bool {
        let mut metrics = self.results.0.iter().flat_map(|(_, entries)| &entries.0).peekable();
        self.configs.0.is_empty()
            && self.shots.is_empty()
            && !self.rest.contains_key("lm_eval_version")
            && metrics.peek().is_some()
            && metrics.all(|(key, _)| !key.contains(','))
    }

    /// Number of documents behind a task's results; none where the document does not say.
    pub fn documents(&self, task: &str) -> Option<u64> {
        let length = self.results.get(task).and_then(|entries| entries.get("sample_len"));
        count(length).or_else(|| self.effective(task))
    }

    /// Number of documents that were asked, without those beyond a limit.
    fn effective(&self, task: &str) -> Option<u64> {
        self.counts.get(task).and_then(|counts| count(counts.get("effective")))
    }

    /// Names of a task's scorers in the run of earnest that was exported, by their keys here; in its order. None of other tools' logs.
    pub fn own_names(&self, task: &str) -> Vec<(String, String)> {
        let names = self.rest.get("earnest_run").and_then(|run| run.get("scorers")?.get(task)?.as_array());
        let pair = |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()));
        names.into_iter().flatten().filter_map(pair).collect()
    }

    /// Filters of a task in the order in which the tool applies them, and their aggregates.
    pub(super) fn filters(&self, task: &str) -> Filters {
        let mut filters = Filters::default();
        let config = self.configs.get(task);
        let list = |name: &str| {
            config.and_then(|config| config.get(name)).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let metrics: Vec<Value> = list("metric_list").into_iter().take(MOST_SCORERS).collect();
        let is_mean = |metric: &str| {
            let of = metrics.iter().find(|one| one.get("metric").and_then(Value::as_str) == Some(metric));
            of.and_then(|of| of.get("aggregation")).and_then(Value::as_str).map(|aggregation| aggregation == "mean")
        };
        for (key, value) in self.results.get(task).map(|entries| entries.0.as_slice()).unwrap_or_default() {
            let Some((metric, filter)) = key.split_once(',').filter(|(metric, _)| !metric.ends_with("_stderr")) else {
                continue;
            };
            if !filters.names.iter().any(|known| known == filter) {
                filters.names.push(filter.to_owned());
            }
            if let Some(value) = value.as_f64() {
                let (metric, mean) = (metric.to_owned(), is_mean(metric));
                filters.aggregates.push(Aggregate { metric, filter: filter.to_owned(), value, mean });
            }
        }
        let listed = list("filter_list");
        let names = listed.iter().filter_map(|filter| filter.get("name")?.as_str());
        let listed: Vec<&str> = names.take(MOST_SCORERS).collect();
        let index = |name: &String| listed.iter().position(|listed| listed == name).unwrap_or(usize::MAX);
        filters.names.sort_by_key(index);
        filters
    }

    /// The card of a task, without files and with all that the document says.
    pub fn card(&self, path: &Path, task: &str, model: Option<&str>) -> Result<LogCard, LogError> {
        let ours = self.rest.contains_key("earnest_run");
        let rest = |key: &str| self.rest.get(key);
        let text = |value: Option<&Value>| value.filter(|value| !value.is_null()).map(plain);
        let config = self.configs.get(task);
        let named = if ours { text(rest("model_name")) } else { None };
        let named = named.or_else(|| model_name(&self.config, rest("model_name")));
        let Some(model) = named.or_else(|| model.map(str::to_owned)) else {
            return Err(
                LogError::unread(path, "it does not name its model").hint("name it: the setting `model_name = NAME`")
            );
        };
        // In files of earnest, documents without a score are not among the effective ones.
        let original = || self.counts.get(task).and_then(|counts| count(counts.get("original")));
        let planned = if ours { original() } else { self.effective(task) };
        let planned = planned.and_then(|planned| usize::try_from(planned).ok());
        let (scorers, reported) = self.figures(path, task, planned)?;
        let mut model_details = self.model_details();
        let (task_details, generation) = self.task_settings(config, &mut model_details);
        let small = |value: Option<u64>| value.and_then(|value| u32::try_from(value).ok());
        let shots = count(self.shots.get(task)).or_else(|| count(config.and_then(|config| config.get("num_fewshot"))));
        let version = if ours { rest("git_hash") } else { rest("lm_eval_version") };
        Ok(LogCard {
            tool: if ours { Tool::Earnest } else { Tool::LmEval },
            tool_version: text(version).map(|version| version.trim_start_matches("earnest ").to_owned()),
            files: Vec::new(),
            model,
            model_details,
            task: task.to_owned(),
            task_version: text(self.versions.get(task)),
            task_hash: text(self.task_hashes.get(task)),
            task_details,
            few_shot: small(shots),
            repeats: small(count(config.and_then(|config| config.get("repeats")))),
            generation,
            scorers,
            reported,
            planned,
            // The document is written at the end.
            status: LogStatus::Finished,
            started: rest("date").and_then(Value::as_f64).and_then(rfc_3339),
            ended: None,
            notes: Vec::new(),
        })
    }

    /// Scorers of a task, and what the document reports of them over so many samples.
    fn figures(
        &self,
        path: &Path,
        task: &str,
        samples: Option<usize>,
    ) -> Result<(Vec<String>, Vec<Reported>), LogError> {
        let mut scorers = Scorers::default();
        let mut reported = Vec::new();
        let names = self.own_names(task);
        let refused = |fault: LogFault| LogError::unread_at(path, format!("the results of {task}"), fault);
        let entries = self.results.get(task).map(|entries| entries.0.as_slice()).unwrap_or_default();
        check_scores(names.len()).map_err(refused)?;
        check_figures(entries.len()).map_err(refused)?;
        for (key, value) in entries {
            if FACTS.contains(&key.as_str()) {
                continue;
            }
            let (metric, filter) =
                key.split_once(',').map_or((key.as_str(), None), |(metric, filter)| (metric, Some(filter)));
            let of = metric.strip_suffix("_stderr").unwrap_or(metric);
            let scorer = filter.map_or_else(|| of.to_owned(), |filter| format!("{of},{filter}"));
            if of == metric {
                scorers.add(&scorer).map_err(refused)?;
            }
            reported.push(Reported { scorer, reducer: None, metric: metric.to_owned(), value: value.clone(), samples });
        }
        if names.is_empty() {
            return Ok((scorers.into_names(), reported));
        }
        for one in &mut reported {
            if let Some((_, name)) = names.iter().find(|(key, _)| *key == one.scorer) {
                one.scorer.clone_from(name);
            }
        }
        Ok((names.into_iter().map(|(_, name)| name).collect(), reported))
    }

    /// Facts of the document about the model, some settings of its tasks among them.
    fn model_details(&self) -> Map<String, Value> {
        let mut details = without_secrets(&self.config);
        // Also where they are written as one text, in which a key would not be seen.
        let arguments = without_secrets(&arguments(self.config.get("model_args").unwrap_or(&Value::Null)));
        details.insert("model_args".to_owned(), arguments.into());
        for key in [
            "model_source",
            "model_name",
            "chat_template_sha",
            "system_instruction",
            "system_instruction_sha",
            "max_length",
            "fewshot_as_multiturn",
            "transformers_version",
            "total_evaluation_time_seconds",
            "earnest_run",
        ] {
            add(&mut details, key, self.rest.get(key).map(clean).as_ref());
        }
        if let Some(Value::Object(run)) = details.get_mut("earnest_run") {
            // One list for every task.
            run.remove("scorers");
        }
        details
    }

    /// Settings of a task, and those of its generation; what the details of the model have of them is taken out.
    fn task_settings(
        &self,
        config: Option<&Map<String, Value>>,
        model_details: &mut Map<String, Value>,
    ) -> (Map<String, Value>, Map<String, Value>) {
        let mut task_details = Map::new();
        let mut generation = Map::new();
        let mut set = |settings: Option<&Value>| {
            for (name, value) in settings.and_then(Value::as_object).into_iter().flatten() {
                generation.insert(name.clone(), clean(value));
            }
        };
        for (name, value) in config.into_iter().flatten() {
            match name.as_str() {
                "generation_kwargs" => set(Some(value)),
                // Repeats the model's arguments.
                "metadata" => {}
                name => add(&mut task_details, name, Some(&clean(value))),
            }
        }
        set(self.config.get("gen_kwargs"));
        for key in ["limit", "random_seed", "numpy_seed", "torch_seed", "fewshot_seed", "bootstrap_iters"] {
            if let Some(value) = model_details.remove(key) {
                add(&mut task_details, key, Some(&value));
            }
        }
        model_details.remove("gen_kwargs");
        (task_details, generation)
    }
}
