//! Facts of an imported log in its run: the card, in the settings, and the names that its rows lack.
use crate::Origin;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Manifest, RunSettings};

/// Tools and formats whose logs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// EleutherAI's lm-evaluation-harness.
    LmEval,
    /// UK AISI's Inspect.
    Inspect,
    /// Hugging Face's lighteval.
    Lighteval,
    /// OpenAI's batch files, also as vLLM writes them.
    OpenaiBatch,
    /// Exports of earnest.
    Earnest,
    /// A table whose columns the user names.
    Table,
}

impl Tool {
    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Tool::LmEval => "lm-evaluation-harness",
            Tool::Inspect => "Inspect",
            Tool::Lighteval => "lighteval",
            Tool::OpenaiBatch => "OpenAI batch",
            Tool::Earnest => "earnest",
            Tool::Table => "table",
        }
    }

    /// Name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Tool::LmEval => "lm-evaluation-harness",
            Tool::Inspect => "Inspect",
            Tool::Lighteval => "lighteval",
            Tool::OpenaiBatch => "an OpenAI batch file",
            Tool::Earnest => "earnest",
            Tool::Table => "a table",
        }
    }
}

/// Facts of a log that its samples share. Names and settings are the log's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogCard {
    pub tool: Tool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// Files of the log: of samples first, then results and others.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    /// Name of the model as people compare it: the model, not the file or the folder it came from.
    pub model: String,
    /// Everything the log says of the model: arguments, revision, base URL, without secrets.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub model_details: Map<String, Value>,
    pub task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_version: Option<String>,
    /// Hash of the task that the tool computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_hash: Option<String>,
    /// Other settings of the task (data set, prompt template, few-shot seed, filters), as the tool writes them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub task_details: Map<String, Value>,
    /// Number of worked examples in each prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub few_shot: Option<u32>,
    /// Repeats or epochs of each document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// Settings of generation under the tool's own names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub generation: Map<String, Value>,
    /// Scorers in the tool's order, the one that decides in the tool first. A filter and a metric of lm-evaluation-harness are one scorer,
    /// `metric,filter` as in its results.
    pub scorers: Vec<String>,
    /// Aggregates that the tool reported.
    pub reported: Vec<Reported>,
    /// Number of documents that were to be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<usize>,
    pub status: LogStatus,
    /// Start and end as the log says them, RFC 3339 where it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Sentences about this log for people: a missing results file, errored samples, mixed versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl LogCard {
    /// A card of which nothing else is known.
    pub fn new(tool: Tool, model: String, task: String, status: LogStatus) -> Self {
        LogCard {
            tool,
            tool_version: None,
            files: Vec::new(),
            model,
            model_details: Map::new(),
            task,
            task_version: None,
            task_hash: None,
            task_details: Map::new(),
            few_shot: None,
            repeats: None,
            generation: Map::new(),
            scorers: Vec::new(),
            reported: Vec::new(),
            planned: None,
            status,
            started: None,
            ended: None,
            notes: Vec::new(),
        }
    }
}

/// An aggregate as its tool reported it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// Scorer, one of [`LogCard::scorers`] where it scores samples.
    pub scorer: String,
    /// Reduction of repeats (`mean`, `mode`, `pass_at_2`), where the tool names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reducer: Option<String>,
    /// Metric under the tool's own key: `accuracy`, `stderr2`, `exact_match_stderr`.
    pub metric: String,
    /// A number, or what the tool wrote in its place (`"N/A"`).
    pub value: Value,
    /// Number of documents behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
}

/// End of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum LogStatus {
    Finished,
    /// The tool stopped with an error.
    Failed(String),
    Cancelled,
    /// The tool was still running, or died without a word.
    Unfinished,
    /// The format does not say.
    Unknown,
}

/// Returns when a run began. Of a log this is what the log says, and none if it says nothing: the manifest then has the time of the import.
pub fn started(manifest: &Manifest) -> Option<String> {
    if manifest.settings.origin() != Origin::Log {
        return Some(manifest.started.clone());
    }
    let said = card_of(&manifest.settings)?.started?;
    // The manifest has times of UTC in its own form.
    let is_same = said.get(..19).is_some_and(|moment| manifest.started.starts_with(moment));
    Some(if is_same { manifest.started.clone() } else { said })
}

/// Returns the card of an imported log; none for other runs.
pub fn card_of(settings: &RunSettings) -> Option<LogCard> {
    serde_json::from_value(settings.stored_card()?.clone()).ok()
}

/// Facts of an imported log that its rows do not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogNames {
    pub model: String,
    /// Deciding scorer.
    #[serde(rename = "primary", default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// Number of documents that were to be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<usize>,
}

impl LogNames {
    /// The names of a log; none for other runs.
    pub fn of(manifest: &Manifest) -> Option<Self> {
        let chosen = manifest.settings.chosen_scorer().map(str::to_owned);
        let model = manifest.model.name.clone();
        let planned = card_of(&manifest.settings).and_then(|card| card.planned);
        (manifest.settings.origin() == Origin::Log).then_some(LogNames { model, chosen, planned })
    }
}
