//! Labels of runs whose names differ in the digits at the end alone: the settings in which they differ.
use std::collections::BTreeMap;

use serde_json::Value;

use super::manifest::shown;
use super::{Manifest, SettingChange};

/// Settings that a label has at most.
const MOST: usize = 3;

/// Settings that the names of runs tell, digests, which say nothing to people, and what follows from the model.
fn is_left_out(setting: &str) -> bool {
    let last = setting.rsplit('.').next().unwrap_or_default();
    matches!(setting, "suite" | "suite_version" | "weights" | "earnest" | "generation.stop_ids")
        || setting.starts_with("model_files")
        || setting.starts_with("suite_options.log")
        || last == "place"
        || last.contains("sha256")
}

/// Words of a setting of a run; none for a prompt that it does not have.
fn said(name: &str, value: &Value) -> Option<String> {
    // Each of a suite's prompts has its digest under its name.
    if let Some((_, prompt)) = name.split_once("prompt_sha256.") {
        return (!value.is_null()).then(|| format!("prompt {prompt}"));
    }
    let setting = SettingChange { name: name.to_owned(), one: Value::Null, other: Value::Null };
    let is_absent = value.is_null() && setting.value(value) == shown(value);
    Some(if is_absent { format!("no {}", setting.what()) } else { setting.with(value) })
}

/// A label of every run: its suite and model where those differ, then the settings in which it differs from the others, or else when it began.
/// Empty for a run alone.
pub fn labels(runs: &[&Manifest]) -> Vec<String> {
    let [first, others @ ..] = runs else { return Vec::new() };
    // Values by setting and run.
    let mut differing: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (place, run) in others.iter().enumerate() {
        for change in first.settings.changes(&run.settings) {
            if !is_left_out(&change.name) {
                let values = differing.entry(change.name).or_insert_with(|| vec![change.one.clone(); runs.len()]);
                values[place + 1] = change.other;
            }
        }
    }
    // `--seed` is both.
    if differing.contains_key("suite_options.seed") {
        differing.remove("generation.seed");
    }
    let files: Vec<Value> = runs.iter().map(|run| run.model.path.as_str().into()).collect();
    if runs.iter().all(|run| run.settings.is_log()) && files.iter().any(|file| *file != files[0]) {
        differing.insert("log".to_owned(), files);
    }
    let suites = runs.iter().any(|run| run.settings.suite != first.settings.suite);
    let models = runs.iter().any(|run| run.model.name != first.model.name);
    let label = |(place, run): (usize, &&Manifest)| {
        let suite = suites.then(|| run.settings.suite.clone());
        let model = models.then(|| format!("model {}", run.model.name));
        let rest = differing.iter().filter_map(|(name, values)| said(name, &values[place]));
        let parts: Vec<String> = suite.into_iter().chain(model).chain(rest).take(MOST).collect();
        match parts.is_empty() {
            true => format!("begun {}", run.started.trim_end_matches('Z').replace('T', " ")),
            false => parts.join(", "),
        }
    };
    if others.is_empty() {
        return vec![String::new()];
    }
    runs.iter().enumerate().map(label).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_said_in_words() {
        for (name, value, words) in [
            ("suite_options.prompt_sha256.simple-nl", json!("85781abb"), Some("prompt simple-nl")),
            ("suite_options.prompt_sha256.simple-nl", Value::Null, None),
            ("suite_options.profile", json!("paper"), Some("rule paper")),
            ("suite_options.profile", Value::Null, Some("rule the usual one")),
            ("suite_options.cluster", json!("template"), Some("cluster template")),
            ("suite_options.cluster", Value::Null, Some("no cluster")),
            ("suite_options.seed", json!(2), Some("seed 2")),
        ] {
            assert_eq!(said(name, &value).as_deref(), words, "{name} {value}");
        }
        assert!(is_left_out("suite_options.task_file.sha256") && is_left_out("generation.stop_ids"));
        assert!(!is_left_out("suite_options.prompt_sha256.gsm"));
    }
}
