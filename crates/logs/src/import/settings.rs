//! Settings and manifest of an imported log.
use std::time::SystemTime;

use serde_json::{Map, Value};

use super::{Answers, Converter};
use crate::{Log, LogError};
use earnest_engine::Sampling;
use earnest_results::{
    Generation, Host, IMPORT_ENGINE, LogCard, LogStatus, MANIFEST_FORMAT, Manifest, Mode, ModelRecord, Parts,
    RunSettings, Status, SystemPlace, Tool, named, timestamp,
};
use earnest_tasks::suite::FINAL;
use earnest_tasks::suite::log::{STORED_KEY, UNKNOWN_VERSION};

/// Key of the digest of the log's samples.
const CONTENT: &str = "sha256";
/// Key of the deciding scorer, as for every suite.
const PRIMARY: &str = "profile";
/// Key of the field that is the cluster.
const CLUSTER: &str = "cluster";
/// Key of the digest of the user's answers.
const ANSWERS: &str = "answers";

/// Marks of scorers and metrics in the columns of exports.
const SCORER: &str = "matcher_";
const METRIC: &str = "metric_";

/// The name that a scorer has in the run, and true for a metric of a run of earnest: in exports its scorers and metrics are marked.
pub(super) fn own_name(tool: Tool, scorer: &str) -> (&str, bool) {
    match tool {
        Tool::Earnest => match (scorer.strip_prefix(SCORER), scorer.strip_prefix(METRIC)) {
            (Some(name), _) => (name, false),
            (None, Some(metric)) => (metric, true),
            (None, None) => (scorer, false),
        },
        _ => (scorer, false),
    }
}

/// A card with the names that the scorers have in the run.
pub fn with_own_names(card: &LogCard) -> LogCard {
    let mut own = card.clone();
    own.scorers.clear();
    for scorer in &card.scorers {
        let name = own_name(card.tool, scorer).0;
        if !own.scorers.iter().any(|known| known == name) {
            own.scorers.push(name.to_owned());
        }
    }
    own
}

/// Choices of the user for a log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chosen<'a> {
    /// Deciding scorer, or a part of its name.
    pub deciding: Option<&'a str>,
    /// Field of the documents that is the cluster.
    pub cluster: Option<&'a str>,
    pub answers: Option<&'a Answers>,
}

/// Returns the deciding scorer: the named one, else the tool's own; the answer reader where the user has the answers.
///
/// # Errors
/// A name that the log does not have, or that may be several scorers.
pub fn deciding(log: &Log, chosen: Chosen<'_>) -> Result<Option<String>, LogError> {
    let card = &log.card;
    let mut names: Vec<&str> = card.scorers.iter().map(String::as_str).collect();
    if names.is_empty() && chosen.answers.is_some() {
        names.push(FINAL);
    }
    let Some(name) = chosen.deciding else { return Ok(names.first().map(|name| (*name).to_owned())) };
    let thing = format!("the log of {} on {}", card.model, card.task);
    named(&thing, name, &names, names.first().copied(), || parts(log)).map(Some)
}

/// Parts of the log's scores.
fn parts(log: &Log) -> Result<Parts, LogError> {
    let converter = Converter { run: String::new(), card: &log.card, deciding: None, cluster: None, answers: None };
    let mut parts = Parts::default();
    log.samples(&mut |sample| {
        parts.add(&converter.convert(sample).sample);
        Ok(())
    })?;
    Ok(parts)
}

/// Options of the suite of a log: the log's card, the digest of its samples, and what the user chose.
pub fn options(card: &LogCard, sha256: String, deciding: Option<&str>, chosen: Chosen<'_>) -> Value {
    let mut options = Map::new();
    options.insert(STORED_KEY.to_owned(), serde_json::to_value(card).unwrap_or_default());
    options.insert(CONTENT.to_owned(), sha256.into());
    for (key, value) in [
        (PRIMARY, deciding),
        (CLUSTER, chosen.cluster),
        (ANSWERS, chosen.answers.map(|answers| answers.sha256.as_str())),
    ] {
        options.extend(value.map(|value| (key.to_owned(), value.into())));
    }
    Value::Object(options)
}

/// Identity of an imported log, whichever version of earnest imported it: the content of its samples, task and model, and the
/// user's choices.
pub(super) fn identity(options: &Value) -> Option<String> {
    let card = options.get(STORED_KEY)?;
    let parts = [card.get("model"), card.get("task")];
    let parts = parts.into_iter().chain([CONTENT, PRIMARY, CLUSTER, ANSWERS].map(|key| options.get(key)));
    Some(Value::from(parts.map(|part| part.cloned().unwrap_or_default()).collect::<Vec<_>>()).to_string())
}

/// A user's choices for a log, by the names of the options.
pub(super) type Choices = [(&'static str, Value); 3];

/// Identity of a log whatever the user chose, and the names of the choices with their values.
pub(super) fn content(options: &Value) -> Option<(String, Choices)> {
    let card = options.get(STORED_KEY)?;
    let option = |key: &str| options.get(key).cloned().unwrap_or_default();
    let parts = [card.get("model").cloned(), card.get("task").cloned(), Some(option(CONTENT))];
    let parts: Vec<Value> = parts.into_iter().map(Option::unwrap_or_default).collect();
    let choices = [("scorer", option(PRIMARY)), ("cluster", option(CLUSTER)), ("answers", option(ANSWERS))];
    Some((Value::from(parts).to_string(), choices))
}

/// Returns the settings of a log. What it does not say is left at values that no screen of a log shows: `log` in the options has
/// what it says of prompts and generation.
pub fn settings(card: &LogCard, options: Value, samples: u32) -> RunSettings {
    RunSettings {
        suite: card.task.clone(),
        suite_version: card.task_version.clone().unwrap_or_else(|| UNKNOWN_VERSION.to_owned()),
        suite_options: options,
        limit: None,
        samples,
        model_files: Vec::new(),
        weights: None,
        pre_tokenizer: None,
        prompt_mode: Mode::Raw,
        system: SystemPlace::Own,
        generation: Generation {
            sampling: Sampling::GREEDY,
            seed: 0,
            stop_ids: Vec::new(),
            max_tokens: None,
            thinking: false,
        },
        enable_thinking: None,
        thinking_text: Default::default(),
        endpoint: None,
        engine: IMPORT_ENGINE.to_owned(),
        until: None,
        earnest: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Returns the manifest of a log, not finished yet.
pub fn log_manifest(card: &LogCard, settings: RunSettings) -> Manifest {
    let now = timestamp(SystemTime::now());
    let started = card.started.as_deref().and_then(utc).unwrap_or_else(|| now.clone());
    let path = card.files.first().map(|file| file.display().to_string()).unwrap_or_default();
    Manifest {
        format: MANIFEST_FORMAT,
        run: settings.run_id(&card.model),
        status: Status::Interrupted,
        shard: None,
        settings_sha256: settings.sha256(),
        settings,
        model: ModelRecord {
            name: card.model.clone(),
            path,
            format: "log".to_owned(),
            architecture: "imported".to_owned(),
            context: 0,
            chat_template_sha256: None,
            pinned: None,
            weights: None,
            allowed_config: Vec::new(),
        },
        first_prompt: None,
        engine: None,
        host: Host::probe(),
        started,
        ended: Some(card.ended.as_deref().and_then(utc).unwrap_or(now)),
        sandbox: None,
        sessions: 1,
        generation_s: 0.0,
        decision: None,
    }
}

/// A time of UTC in the form of manifests; none for other forms.
fn utc(time: &str) -> Option<String> {
    let (head, tail) = (time.get(..19)?, time.get(19..)?);
    let digits = head.bytes().enumerate().all(|(index, byte)| match index {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let zone = tail.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    (digits && matches!(zone, "Z" | "+00:00")).then(|| format!("{head}Z"))
}

/// Returns true if the log is of a run that came to its end, as far as the log says.
pub(super) fn is_whole(card: &LogCard) -> bool {
    matches!(card.status, LogStatus::Finished | LogStatus::Unknown)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A card of lm-evaluation-harness.
    pub(in crate::import) fn card(scorers: &[&str]) -> LogCard {
        serde_json::from_value(serde_json::json!({
            "tool": "lm-eval", "model": "m", "task": "arith", "scorers": scorers, "reported": [],
            "status": {"state": "finished"},
        }))
        .unwrap()
    }

    #[test]
    fn a_log_is_itself_whichever_version_imports_it() {
        let card = card(&["a", "b"]);
        let of = |deciding| options(&card, "ab".into(), deciding, Chosen::default());
        let other = LogCard { notes: vec!["said in another way".into()], ..card.clone() };
        assert_eq!(identity(&of(Some("a"))), identity(&options(&other, "ab".into(), Some("a"), Chosen::default())));
        assert_ne!(identity(&of(Some("a"))), identity(&of(Some("b"))));
        assert_eq!(identity(&serde_json::json!({})), None);
    }

    #[test]
    fn times_of_utc() {
        assert_eq!(utc("2026-11-22T16:35:15.540337Z").as_deref(), Some("2026-11-22T16:35:15Z"));
        assert_eq!(utc("2026-11-22T16:35:15+00:00").as_deref(), Some("2026-11-22T16:35:15Z"));
        for other in ["2026-11-22T16:35:15", "2026-11-22T16:35:15+01:00", "yesterday", ""] {
            assert_eq!(utc(other), None, "{other}");
        }
    }
}
