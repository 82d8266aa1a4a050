//! Facts and samples of a log.
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
}

/// Facts of a log that its samples share. Names and settings are the log's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogCard {
    pub tool: Tool,
    /// Version of the tool.
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
    /// Version of the task.
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
    /// Scorers in the tool's order, the tool's primary one first. A filter and a metric of lm-evaluation-harness are one scorer,
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
    pub(super) fn new(tool: Tool, model: String, task: String, status: LogStatus) -> Self {
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

/// One answer to one document: a repeat or epoch where the tool scores each, else all repeats together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogSample {
    /// Id of the document: its own `id` where it has one, else the tool's index.
    pub id: String,
    /// Index of the document in the tool's data set, where the log has one.
    pub index: Option<u64>,
    /// Repeat, from 0.
    pub epoch: u32,
    /// The document's own fields and metadata.
    pub document: Map<String, Value>,
    /// Id of the document's original; its own for an original, and none where the log does not tell them apart.
    pub original: Option<String>,
    /// The question as text, without few-shot examples where the log has it apart.
    pub question: Option<String>,
    /// The prompt that was sent.
    pub prompt: Option<LogPrompt>,
    /// Choices of a multiple-choice question.
    pub choices: Vec<String>,
    /// Expected answers; the first is the one shown. For multiple choice the text or letter that the tool recorded.
    pub targets: Vec<String>,
    /// Completions; several where the tool scored several repeats together.
    pub completions: Vec<String>,
    /// Log-likelihoods of continuations.
    pub likelihoods: Vec<LogLikelihood>,
    /// Scores in the order of [`LogCard::scorers`]; a scorer without a score of this sample is left out.
    pub scores: Vec<LogScore>,
    /// The sample's error, if it failed.
    pub error: Option<String>,
    /// Reason for the end of generation, in the tool's word (`stop`, `length`).
    pub finish: Option<String>,
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    /// Time of generation in seconds.
    pub seconds: Option<f64>,
    /// Hashes of the document and of the prompt that the tool computed.
    pub document_hash: Option<String>,
    pub prompt_hash: Option<String>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum LogPrompt {
    Text(String),
    /// Role and text of each message.
    Chat(Vec<(String, String)>),
}

/// Log-likelihood of a continuation.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLikelihood {
    pub continuation: Option<String>,
    /// Natural logarithm.
    pub log_likelihood: f64,
    /// True if every token was the most likely one.
    pub greedy: Option<bool>,
}

/// A score of a sample by one scorer.
#[derive(Debug, Clone, PartialEq)]
pub struct LogScore {
    pub scorer: String,
    /// As the tool stored it: a number, `"C"`, a list, an object.
    pub value: Value,
    /// The answer that the scorer read.
    pub answer: Option<String>,
    pub explanation: Option<String>,
}

impl LogScore {
    /// The score as a number: numbers and booleans as they are, `C`, `P`, `I` and `N` of Inspect as 1, 0.5, 0 and 0, as it reads
    /// other texts: `yes` and `true` are 1, `no` and `false` 0, and written numbers what they say. Lists, objects and other texts are
    /// none.
    pub fn number(&self) -> Option<f64> {
        match &self.value {
            Value::Number(number) => number.as_f64(),
            Value::Bool(value) => Some(f64::from(u8::from(*value))),
            Value::String(grade) => match grade.as_str() {
                "C" => Some(1.0),
                "P" => Some(0.5),
                "I" | "N" => Some(0.0),
                text if ["yes", "true"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Some(1.0),
                text if ["no", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Some(0.0),
                text => text.parse().ok().filter(|number: &f64| number.is_finite()),
            },
            _ => None,
        }
    }
}

impl LogSample {
    /// Estimated memory of the sample in bytes: its texts, its document and its scores.
    pub(crate) fn memory(&self) -> usize {
        let prompt = match &self.prompt {
            None => 0,
            Some(LogPrompt::Text(text)) => text.len(),
            Some(LogPrompt::Chat(messages)) => messages.iter().map(|(role, text)| 48 + role.len() + text.len()).sum(),
        };
        self.stored() + self.question.as_ref().map_or(0, String::len) + prompt
    }

    /// Estimated memory of it without its question and its prompt, which are packed and stored once for a document.
    pub(super) fn stored(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let score =
            |score: &LogScore| 200 + memory_of(&score.value) + length(&score.answer) + length(&score.explanation);
        let scores: usize = self.scores.iter().map(score).sum();
        let likelihoods: usize = self.likelihoods.iter().map(|one| 48 + length(&one.continuation)).sum();
        let lists = [&self.completions, &self.choices, &self.targets].into_iter().flatten().map(|text| 24 + text.len());
        let own = self.id.len() + length(&self.error) + length(&self.finish);
        own + scores + likelihoods + memory_of_members(&self.document) + lists.sum::<usize>()
    }
}

/// Estimated memory of the members of an object.
fn memory_of_members(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| 160 + name.len() + memory_of(value)).sum()
}

/// Estimated memory of a value in bytes beside its own place.
pub(crate) fn memory_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(|value| 32 + memory_of(value)).sum(),
        Value::Object(members) => memory_of_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
