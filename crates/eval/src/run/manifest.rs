//! Everything needed to repeat a run and to trust its rows.
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::store::Outcome;
use super::{Generation, Plan, Sample, Shard};
use crate::prompt::{Mode, Rendered, SystemPlace};
use earnest_engine::endpoint::Api;
use earnest_engine::{Card, Statistics};
use earnest_models::checkpoint::{WeightFormat, WeightRecord};
use earnest_tasks::suite::ThinkingText;

/// Version of [`Manifest`]'s form. A reader refuses later ones.
pub const MANIFEST_FORMAT: u32 = 1;

/// The engine's name in the settings of a run whose completions were made elsewhere.
pub const IMPORT_ENGINE: &str = "import";

/// What determines the rows of a run. Two runs with equal settings have rows that are equal in all but their timings and
/// `cached_tokens` (how much of a prompt the prefix cache had, which depends on what ran before), so the run's id is a hash
/// of them.
/// Threads, batch sizes, memory limits and caches are not here, because the engine's answers do not depend on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    pub suite: String,
    pub suite_version: String,
    /// The options that determine the items.
    pub suite_options: serde_json::Value,
    /// Most items; none is all.
    pub limit: Option<usize>,
    /// Times each item is asked.
    pub samples: u32,
    /// The checkpoint's files: name and content, wherever they lie.
    pub model_files: Vec<FileRecord>,
    /// How weights are changed at load; none is not at all. A quantised model is another model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightFormat>,
    pub prompt_mode: Mode,
    /// Where the suite's system message goes, if that is not a message of its own.
    #[serde(default, skip_serializing_if = "SystemPlace::is_own")]
    pub system: SystemPlace,
    pub generation: Generation,
    /// What the chat template's variable `enable_thinking` was set to; none leaves it to the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_thinking: Option<bool>,
    /// Whether the scoring sees what the model thought.
    #[serde(default, skip_serializing_if = "ThinkingText::is_stripped")]
    pub thinking_text: ThinkingText,
    /// The endpoint that is asked, if the model runs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointSettings>,
    /// The engine's name.
    pub engine: String,
    /// Version of earnest.
    pub earnest: String,
}

impl RunSettings {
    /// True if the completions were made elsewhere: decoding, budget and stops are then not known, whatever the other fields say.
    pub fn imported(&self) -> bool {
        self.engine == IMPORT_ENGINE
    }

    /// True if the items of two runs of a suite are the same questions under the same ids: their options are equal, whatever
    /// the places where they found files of known content.
    pub fn asks_alike(&self, other: &RunSettings) -> bool {
        let [mut mine, mut theirs] = [&self.suite_options, &other.suite_options].map(Clone::clone);
        for options in [&mut mine, &mut theirs] {
            without_places(options);
            // How answers are read is no part of what is asked.
            if let Value::Object(fields) = options {
                fields.remove("profile");
            }
        }
        self.suite_version == other.suite_version && mine == theirs
    }

    /// What differs from other settings, by name. Nested settings are named one by one, and settings that one side leaves
    /// out too.
    pub fn changes(&self, other: &RunSettings) -> Vec<SettingChange> {
        let value = |settings: &RunSettings| serde_json::to_value(settings).unwrap_or_default();
        let mut changes = Vec::new();
        collect(String::new(), &value(self), &value(other), &mut changes);
        changes
    }

    /// [`RunSettings::changes`] for people who are told that `self` is what was and `other` what is now.
    pub fn differences(&self, other: &RunSettings) -> Vec<String> {
        let words = |change: SettingChange| match change.name.as_str() {
            "model_files" => "the content of the model's files".to_owned(),
            name => format!("{name} ({} before, {} now)", shown(&change.one), shown(&change.other)),
        };
        self.changes(other).into_iter().map(words).collect()
    }

    /// SHA-256 over the settings as JSON. What a suite's options call `place`, where a file of known content was found, is left
    /// out: the same run on another machine is the same run.
    pub fn sha256(&self) -> String {
        let mut settings = self.clone();
        without_places(&mut settings.suite_options);
        let json = serde_json::to_vec(&settings).expect("settings have string keys only, so they serialise");
        earnest_digest::hex(&earnest_digest::sha256(&json))
    }

    /// `<suite>-<model>-<first 8 digits of the hash>`, fit for a file name on any system.
    pub fn run_id(&self, model_name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
        let model: String = model_name.chars().map(plain).take(80).collect();
        format!("{}-{model}-{}", self.suite, &self.sha256()[..8])
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
    /// The field, nested ones with dots: `generation.sampling.temperature`.
    pub name: String,
    /// Both values; null where a side leaves the setting out.
    pub one: Value,
    pub other: Value,
}

/// Leaves of two JSON values that differ. Lists are values of their own.
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

/// A value in a sentence: short, without the quotes of JSON.
pub fn shown(value: &Value) -> String {
    const LONGEST: usize = 40;
    let text = match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= LONGEST { text } else { text.chars().take(LONGEST - 3).chain("...".chars()).collect() }
}

/// An endpoint as far as rows depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointSettings {
    /// Without secrets.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    pub api: Api,
    /// The longest sequence in tokens, where the user says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<usize>,
    /// What answers there, in words, as far as it tells: the server and its version, what the model's name stands for, the fingerprint
    /// of its answers. An upgraded server gives another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// A file by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    pub name: String,
    /// Bytes.
    pub size: u64,
    pub sha256: String,
}

/// Everything about a run but its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_FORMAT`] of the writer.
    pub format: u32,
    /// The run's name.
    pub run: String,
    pub status: Status,
    /// The part of the settings' plan that this run works on; none is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    pub settings: RunSettings,
    /// [`RunSettings::sha256`].
    pub settings_sha256: String,
    pub model: ModelRecord,
    /// The run's first prompt to the token, so that BOS and template can be checked afterwards.
    pub first_prompt: Option<FirstPrompt>,
    /// The engine of the last session.
    pub engine: Option<EngineRecord>,
    /// The machine of the last session.
    pub host: Host,
    /// Start of the first session and end of the last one, RFC 3339 in UTC.
    pub started: String,
    pub ended: Option<String>,
    /// Times the run was started or continued.
    pub sessions: u32,
    /// Seconds of generation of all sessions, loading excluded.
    pub generation_s: f64,
}

impl Manifest {
    /// Which samples the run consists of.
    pub fn plan(&self) -> Plan {
        Plan { limit: self.settings.limit, samples: self.settings.samples, shard: self.shard }
    }

    /// The marker with which every prompt of the run opens the model's thinking, if it does. Completions begin inside the
    /// thinking then, and are scored with the marker before them.
    pub fn opened_thinking(&self) -> Option<&'static str> {
        self.first_prompt.as_ref().and_then(|prompt| earnest_tasks::answer::opened_by(&prompt.text))
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A session is at work, or was killed.
    Running,
    /// A session was stopped by the user or by an error.
    Interrupted,
    /// Every sample of the plan has its row.
    Finished,
}

/// The checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRecord {
    pub name: String,
    /// As given on the command line.
    pub path: String,
    /// `safetensors`, `gguf`, ...
    pub format: String,
    pub architecture: String,
    /// Longest sequence the checkpoint declares, in tokens.
    pub context: usize,
    pub chat_template_sha256: Option<String>,
    /// Where it comes from, if it was named by commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
    /// What of it is quantised, if anything is changed at load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightRecord>,
}

/// A commit of a repository of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    pub repo: String,
    /// 40 hexadecimal digits.
    pub commit: String,
    /// The name in the list of models, if it was named so.
    pub name: Option<String>,
}

/// The first prompt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstPrompt {
    pub item: String,
    pub text: String,
    pub ids: Vec<u32>,
    /// BOS ids at its beginning.
    pub bos: usize,
}

impl FirstPrompt {
    /// Keeps a rendered prompt.
    pub fn new(item: &str, rendered: Rendered) -> Self {
        FirstPrompt { item: item.to_owned(), text: rendered.text, ids: rendered.ids, bos: rendered.bos }
    }
}

/// The engine of a session and what it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineRecord {
    pub card: Card,
    /// The engine's own settings (threads, batch, memory, caches).
    pub options: serde_json::Value,
    /// Seconds to load the weights.
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
    /// Hardware threads this process may use.
    pub threads: usize,
    /// Bytes.
    pub memory: Option<u64>,
}

/// Sums over the rows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Samples that the plan asks for, and those with a row.
    pub planned: usize,
    pub recorded: usize,
    /// Rows without a completion.
    pub failed: usize,
    /// Completions that the token budget ended.
    pub truncated: usize,
    /// Samples whose budget the context had no room for.
    pub clipped: usize,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Prompt tokens read from the prefix cache.
    pub cached_tokens: u64,
}

impl Totals {
    /// Adds a row.
    pub fn add(&mut self, sample: &Sample) {
        let completion = sample.completion.as_ref();
        let counts = completion.map(|completion| (completion.ids.len(), completion.cached_tokens, sample.truncated()));
        self.count(sample.prompt_tokens, sample.clipped(), counts);
    }

    /// Adds a row of which only the outcome was read.
    pub fn add_outcome(&mut self, outcome: &Outcome) {
        let counts = outcome.finish.map(|_| (outcome.tokens, outcome.cached_tokens, outcome.truncated()));
        self.count(outcome.prompt_tokens, outcome.max_tokens < outcome.budget, counts);
    }

    /// `completion`: its tokens, the cached ones of its prompt, whether it was cut; none if the sample failed.
    fn count(&mut self, prompt_tokens: usize, clipped: bool, completion: Option<(usize, usize, bool)>) {
        self.recorded += 1;
        self.prompt_tokens += prompt_tokens as u64;
        let Some((tokens, cached, cut)) = completion else {
            self.failed += 1;
            return;
        };
        self.truncated += usize::from(cut);
        self.clipped += usize::from(clipped);
        self.completion_tokens += tokens as u64;
        self.cached_tokens += cached as u64;
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
