//! Manifest of a run: settings, model, engine and host.
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Outcome;
use super::store::check_name;
use super::{Decision, Generation, Plan, Sample, Shard, Until};
use crate::{Mode, SystemPlace};
use earnest_engine::endpoint::Api;
use earnest_engine::{Card, Statistics};
use earnest_models::checkpoint::{WeightFormat, WeightRecord};
use earnest_tasks::suite::ThinkingText;
use earnest_tasks::suite::registry::{self, ProgramsRecord};

/// Format version of [`Manifest`]. Readers refuse others.
pub const MANIFEST_FORMAT: u32 = 1;

/// Engine name in the settings of imported runs.
pub const IMPORT_ENGINE: &str = "import";

/// Settings that determine the rows of a run; its name contains their hash. Runs with equal settings have equal rows except for
/// timings and `cached_tokens` (prompt tokens from the prefix cache, which depend on earlier requests).
/// Threads, batch sizes, memory limits and caches are left out, because answers do not depend on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    pub suite: String,
    pub suite_version: String,
    /// Options that determine the items.
    pub suite_options: serde_json::Value,
    /// Limit of items; none for all.
    pub limit: Option<usize>,
    /// Number of samples per item.
    pub samples: u32,
    /// Condition on which the run ends, if any. Its items come in the order of [`by_cluster`](super::by_cluster).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Files of the checkpoint by name and content.
    pub model_files: Vec<FileRecord>,
    /// Conversion of the weights at load, if any. A quantised model is another model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightFormat>,
    /// Pre-tokenizer of a GGUF file that names none that is known, by the user's name or because its vocabulary leaves no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_tokenizer: Option<String>,
    pub prompt_mode: Mode,
    /// Position of the suite's system message, unless it is a separate message.
    #[serde(default, skip_serializing_if = "SystemPlace::is_own")]
    pub system: SystemPlace,
    pub generation: Generation,
    /// Value of the chat template's variable `enable_thinking`; none for the template's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_thinking: Option<bool>,
    /// Use of the model's thinking in scoring.
    #[serde(default, skip_serializing_if = "ThinkingText::is_stripped")]
    pub thinking_text: ThinkingText,
    /// Endpoint, if the model runs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointSettings>,
    /// Name of the engine.
    pub engine: String,
    /// Version of earnest.
    pub earnest: String,
}

impl RunSettings {
    /// True if earlier answers chose the questions, so that the share of right answers says nothing about the model.
    pub fn is_adaptive(&self) -> bool {
        registry::is_adaptive(&self.suite, &self.suite_options)
    }

    /// True if two runs of a suite have the same questions under the same ids: equal options, except for the places of files of
    /// known content.
    pub fn has_items_of(&self, other: &RunSettings) -> bool {
        let [mut mine, mut theirs] = [&self.suite_options, &other.suite_options].map(Clone::clone);
        for options in [&mut mine, &mut theirs] {
            without_places(options);
            // The scorer affects scoring only.
            if let Value::Object(fields) = options {
                fields.remove("profile");
            }
        }
        self.suite_version == other.suite_version && mine == theirs
    }

    /// Returns the differences from other settings, nested fields one by one, including fields that one side leaves out.
    pub fn changes(&self, other: &RunSettings) -> Vec<SettingChange> {
        let value = |settings: &RunSettings| serde_json::to_value(settings).unwrap_or_default();
        let mut changes = Vec::new();
        collect(String::new(), &value(self), &value(other), &mut changes);
        changes
    }

    /// Prompts for people: `chat` or `raw`. A suite that chooses their form itself has `forms` in its options: one is named as it is there, several are
    /// `screened`.
    pub fn prompts(&self) -> String {
        let forms = self.suite_options.get("forms").and_then(|forms| forms.as_array());
        match forms.map(Vec::as_slice) {
            None | Some([]) => self.prompt_mode.to_string(),
            Some([form]) => form.as_str().map_or_else(|| self.prompt_mode.to_string(), str::to_owned),
            Some(_) => "screened".to_owned(),
        }
    }

    /// Describes [`RunSettings::changes`] from `self` (before) to `other` (now).
    pub fn differences(&self, other: &RunSettings) -> Vec<String> {
        let words = |change: SettingChange| match change.name.as_str() {
            "model_files" => "the content of the model's files".to_owned(),
            name => format!("{name} ({} before, {} now)", change.value(&change.one), change.value(&change.other)),
        };
        self.changes(other).into_iter().map(words).collect()
    }

    /// Returns the SHA-256 over the settings as JSON, without the field `place` of suite options, the path of a file of known
    /// content: the same run on another machine is the same run.
    pub fn sha256(&self) -> String {
        let mut settings = self.clone();
        without_places(&mut settings.suite_options);
        let json = serde_json::to_vec(&settings).expect("settings have string keys only, so they serialise");
        earnest_digest::hex(&earnest_digest::sha256(&json))
    }

    /// Returns `<suite>-<model>-<first 8 digits of the hash>`, a valid file name on any system.
    pub fn run_id(&self, model_name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
        // Other tools' tasks have names such as `gsm8k|5`.
        let suite: String = self.suite.chars().map(plain).take(120).collect();
        // A name that begins with a dot would be hidden, and one with a dash an option.
        let suite = if suite.starts_with(['.', '-']) { format!("_{}", &suite[1..]) } else { suite };
        let model: String = model_name.chars().map(plain).take(80).collect();
        format!("{suite}-{model}-{}", &self.sha256()[..8])
    }
}

fn without_places(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.remove("place");
            fields.values_mut().for_each(without_places);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_places),
        _ => {}
    }
}

/// A setting in which two runs differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingChange {
    /// Field, nested ones with dots: `generation.sampling.temperature`.
    pub name: String,
    /// Value on the first side; null if it is left out.
    pub one: Value,
    /// Value on the other side; null if it is left out.
    pub other: Value,
}

/// Collects the differing leaves of two JSON objects, by their names with dots.
pub fn collect_changes(one: &Value, other: &Value, changes: &mut Vec<SettingChange>) {
    collect(String::new(), one, other, changes);
}

/// Collects the differing leaves of two JSON values. Lists count as leaves.
fn collect(name: String, one: &Value, other: &Value, changes: &mut Vec<SettingChange>) {
    let (Value::Object(mine), Value::Object(theirs)) = (one, other) else {
        if one != other {
            changes.push(SettingChange { name, one: one.clone(), other: other.clone() });
        }
        return;
    };
    let names: BTreeSet<&String> = mine.keys().chain(theirs.keys()).collect();
    for field in names {
        let value = |fields: &Map<String, Value>| fields.get(field).cloned().unwrap_or_default();
        let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
        collect(name, &value(mine), &value(theirs), changes);
    }
}

/// Formats a value for a sentence: shortened, without the quotes of JSON.
pub fn shown(value: &Value) -> String {
    const LONGEST: usize = 40;
    let text = match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => text.clone(),
        // A temperature of 0.7 is kept in single precision, which is 0.699999988079071 in double.
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(value) if f64::from(value as f32) == value => format!("{:?}", value as f32),
            _ => number.to_string(),
        },
        other => other.to_string(),
    };
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST - 3).chain("...".chars()).collect() }
}

/// Properties of an endpoint on which rows depend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointSettings {
    /// URL without secrets.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    pub api: Api,
    /// Context length in tokens, if the user gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<usize>,
    /// Server and version, resolved model name and fingerprint, as far as known. An upgraded server makes another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// A file by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    pub sha256: String,
}

/// Manifest of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_FORMAT`] of the writer.
    pub format: u32,
    /// Name of the run, which names its lock and its page: [`check_name`] holds whoever wrote it.
    #[serde(deserialize_with = "checked_name")]
    pub run: String,
    pub status: Status,
    /// Part of the plan; none for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    pub settings: RunSettings,
    /// [`RunSettings::sha256`].
    pub settings_sha256: String,
    pub model: ModelRecord,
    /// First prompt with its token ids, as evidence of BOS and template.
    pub first_prompt: Option<FirstPrompt>,
    /// Engine of the last session.
    pub engine: Option<EngineRecord>,
    /// Machine of the last session.
    pub host: Host,
    /// Start of the first session, RFC 3339 in UTC.
    pub started: String,
    /// End of the last session.
    pub ended: Option<String>,
    /// Interpreter and confinement of model-written programs, where scoring ran any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<ProgramsRecord>,
    /// Number of sessions.
    pub sessions: u32,
    /// Generation time of all sessions in seconds, without loading.
    pub generation_s: f64,
    /// End of a finished run with a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// Reads the name of a run.
fn checked_name<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    match check_name(&name) {
        Ok(()) => Ok(name),
        Err(reason) => Err(serde::de::Error::custom(format!("the run's name {reason}"))),
    }
}

impl Manifest {
    /// Returns the plan; of a run that ended early, that of its first items.
    pub fn plan(&self) -> Plan {
        let whole = self.whole_plan();
        let stopped = self.decision.as_ref().filter(|decision| decision.is_early());
        Plan { limit: stopped.map(|decision| decision.items).or(whole.limit), ..whole }
    }

    /// Returns the plan as if the run had not ended early.
    pub fn whole_plan(&self) -> Plan {
        Plan { limit: self.settings.limit, samples: self.settings.samples, shard: self.shard }
    }

    /// Returns the marker with which the run's prompts open the thinking, if they do. Completions then start inside the thinking
    /// and are scored with the marker before them.
    pub fn opened_thinking(&self) -> Option<&'static str> {
        self.first_prompt.as_ref().and_then(|prompt| earnest_answer::opened_by(&prompt.text))
    }
}

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A session is running, or was killed.
    Running,
    /// The user or an error stopped the session.
    Interrupted,
    /// Every sample of the plan has a row.
    Finished,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRecord {
    pub name: String,
    /// Path as given on the command line.
    pub path: String,
    /// `safetensors`, `gguf`, ...
    pub format: String,
    pub architecture: String,
    /// Context length that the checkpoint declares, in tokens.
    pub context: usize,
    pub chat_template_sha256: Option<String>,
    /// Repository and commit, if the model was named by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
    /// Converted weights, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightRecord>,
    /// Unknown keys of its configuration that the user let through, and the pre-tokenizer that the user named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_config: Vec<String>,
}

impl ModelRecord {
    /// Returns true for a GGUF file: its format is `gguf` and the name of its quantisation.
    pub fn is_gguf(&self) -> bool {
        self.format.split(' ').next() == Some("gguf")
    }

    /// Name of the quantisation that a folder was published with: its format is `safetensors` and that name.
    pub fn published_quantisation(&self) -> Option<&str> {
        self.format.strip_prefix("safetensors ")
    }
}

/// A commit in a hub repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    pub repo: String,
    /// 40 hexadecimal digits.
    pub commit: String,
    /// Name in the list of models, if it was given.
    pub name: Option<String>,
}

/// The first prompt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstPrompt {
    pub item: String,
    pub text: String,
    pub ids: Vec<u32>,
    /// Number of leading BOS ids.
    pub bos: usize,
}

/// Engine of a session with its counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineRecord {
    pub card: Card,
    /// Engine options (threads, batch, memory, caches).
    pub options: serde_json::Value,
    /// Load time in seconds.
    pub load_s: f64,
    /// Counters of the session.
    pub statistics: Statistics,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub os: String,
    pub arch: String,
    pub cpu: Option<String>,
    /// Hardware threads available to this process.
    pub threads: usize,
    /// Memory in bytes.
    pub memory: Option<u64>,
}

/// Sums over the rows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Number of samples in the plan.
    pub planned: usize,
    /// Number of rows.
    pub recorded: usize,
    /// Number of rows with a failure in place of an answer.
    pub failed: usize,
    /// Number of completions that the token budget ended.
    pub truncated: usize,
    /// Number of samples whose token budget the context clipped.
    pub clipped: usize,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Prompt tokens from the prefix cache.
    pub cached_tokens: u64,
}

impl Totals {
    /// Adds a row.
    pub fn add(&mut self, sample: &Sample) {
        let completion = sample.completion.as_ref();
        let counts = completion.map(|completion| (completion.tokens(), completion.cached_tokens, sample.truncated()));
        self.failed += usize::from(sample.failure.is_some());
        self.count(sample.prompt_tokens, sample.clipped(), counts);
    }

    /// Adds a row by its outcome.
    pub fn add_outcome(&mut self, outcome: &Outcome) {
        let counts = outcome.finish.map(|_| (outcome.tokens, outcome.cached_tokens, outcome.truncated()));
        self.failed += usize::from(outcome.failure.is_some());
        self.count(outcome.prompt_tokens, outcome.max_tokens < outcome.budget, counts);
    }

    /// Adds a row; `completion` is its tokens, cached prompt tokens and truncation, none without a completion.
    fn count(&mut self, prompt_tokens: usize, clipped: bool, completion: Option<(usize, usize, bool)>) {
        self.recorded += 1;
        self.prompt_tokens = self.prompt_tokens.saturating_add(prompt_tokens as u64);
        let Some((tokens, cached, cut)) = completion else { return };
        self.truncated += usize::from(cut);
        self.clipped += usize::from(clipped);
        self.completion_tokens = self.completion_tokens.saturating_add(tokens as u64);
        self.cached_tokens = self.cached_tokens.saturating_add(cached as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_settings_are_named_one_by_one_on_whichever_side_they_stand() {
        let one = serde_json::json!({"a": {"b": 1, "c": [1]}, "only": true, "same": 0});
        let other = serde_json::json!({"a": {"b": 2, "c": [1, 2]}, "new": "x", "same": 0});
        let mut changes = Vec::new();
        collect(String::new(), &one, &other, &mut changes);
        let words: Vec<String> = changes
            .iter()
            .map(|change| format!("{} {} {}", change.name, shown(&change.one), shown(&change.other)))
            .collect();
        assert_eq!(words, ["a.b 1 2", "a.c [1] [1,2]", "new not set x", "only true not set"]);
        assert_eq!(shown(&"y".repeat(50).into()).len(), 40);
    }
}
