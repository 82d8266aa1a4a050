//! Labels of runs whose names differ in the digits at the end alone: the settings in which they differ.
use std::collections::BTreeMap;

use serde_json::Value;

use super::Manifest;
use super::manifest::shown;

/// Settings that a label has at most.
const MOST: usize = 3;
/// Characters of a value that are shown.
const LONGEST: usize = 40;

/// Settings that the names of runs tell, and digests, which say nothing to people.
fn is_left_out(setting: &str) -> bool {
    let last = setting.rsplit('.').next().unwrap_or_default();
    matches!(setting, "suite" | "suite_version" | "weights" | "earnest")
        || setting.starts_with("model_files")
        || setting.starts_with("suite_options.log")
        || last == "place"
        || last.contains("sha256")
}

/// A setting's name for people.
fn name_of(setting: &str) -> &str {
    match setting.strip_prefix("suite_options.").unwrap_or(setting) {
        "profile" => "scorer",
        name => name,
    }
}

/// A label of every run: the settings in which it differs from the others, or else when it began. None for a run alone.
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
    let files: Vec<Value> = runs.iter().map(|run| run.model.path.as_str().into()).collect();
    if runs.iter().all(|run| run.settings.is_log()) && files.iter().any(|file| *file != files[0]) {
        differing.insert("log".to_owned(), files);
    }
    let label = |(place, run): (usize, &&Manifest)| {
        let one = |(name, values): (&String, &Vec<Value>)| match &values[place] {
            Value::Null => format!("no {}", name_of(name)),
            value => {
                let value = value.as_str().map_or_else(|| shown(value), str::to_owned);
                let short: String = value.chars().take(LONGEST).collect();
                let end = if short.len() < value.len() { "..." } else { "" };
                format!("{} {short}{end}", name_of(name))
            }
        };
        let parts: Vec<String> = differing.iter().take(MOST).map(one).collect();
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
