//! Labels of runs whose names differ in the digits at the end alone: the settings in which they differ.
use crate::{Origin, shown, started};
use std::collections::BTreeMap;

use serde_json::Value;

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
        || last.contains("hash")
}

/// Characters of a path in a label.
const LONGEST_PATH: usize = 40;

/// The end of a long path, which tells files apart.
fn end_of(path: &str) -> String {
    let letters = path.chars().count();
    if letters <= LONGEST_PATH {
        return path.to_owned();
    }
    ['\u{2026}'].into_iter().chain(path.chars().skip(letters - LONGEST_PATH + 1)).collect()
}

/// Words of a setting of a run; none for a prompt that it does not have.
fn said(name: &str, value: &Value) -> Option<String> {
    // Each of a suite's prompts has its digest under its name.
    if let Some((_, prompt)) = name.split_once("prompt_sha256.") {
        return (!value.is_null()).then(|| format!("prompt {prompt}"));
    }
    // A profile's other options follow from them.
    if name == "suite_options.shared" {
        let shared = if value.is_null() { "the numeracy profile" } else { "questions of a comparison" };
        return Some(shared.to_owned());
    }
    if let ("log" | "model", Some(path)) = (name, value.as_str()) {
        return Some(format!("{name} {}", end_of(path)));
    }
    let setting = SettingChange { name: name.to_owned(), one: Value::Null, other: Value::Null };
    let is_absent = value.is_null() && setting.value(value) == shown(value);
    Some(if is_absent { format!("no {}", setting.what()) } else { setting.with(value) })
}

/// A label of every run: its suite and model where those differ, then the settings in which it differs from the others, or else when it began.
/// No two are alike, unless the runs began in the same second with the same settings. Empty for a run alone.
pub fn labels(runs: &[&Manifest]) -> Vec<String> {
    if runs.len() < 2 {
        return vec![String::new(); runs.len()];
    }
    let mut labels = by_settings(runs);
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, label) in labels.iter().enumerate() {
        alike.entry(label.clone()).or_default().push(index);
    }
    for (label, indices) in alike.into_iter().filter(|(label, indices)| indices.len() > 1 || label.is_empty()) {
        let more = match indices.len() {
            // Fewer settings differ between fewer runs, so that those left out above are said.
            2.. if indices.len() < runs.len() => {
                self::labels(&indices.iter().map(|&index| runs[index]).collect::<Vec<_>>())
            }
            _ => indices.iter().map(|&index| begun(runs[index])).collect(),
        };
        for (index, more) in indices.into_iter().zip(more) {
            // A value that is cut short is the same text twice.
            let is_said = label.is_empty() || more.starts_with(&label);
            labels[index] = if is_said { more } else { format!("{label}, {more}") };
        }
    }
    labels
}

/// When the run began. The manifest of a log that does not say so has the time of its import.
fn begun(run: &Manifest) -> String {
    let word = if started(run).as_ref() == Some(&run.started) { "begun" } else { "imported" };
    format!("{word} {}", run.started.trim_end_matches('Z').replace('T', " "))
}

/// A label of every run beside those of the same model; empty for the only one of a model.
pub fn own_labels(runs: &[&Manifest]) -> Vec<String> {
    labels_beside(runs, |run| ("", &run.model.name))
}

/// A label of every run beside those of the same suite and model; empty for the only one of these.
pub(crate) fn labels_in_suites(runs: &[&Manifest]) -> Vec<String> {
    labels_beside(runs, |run| (&run.settings.suite, &run.model.name))
}

fn labels_beside<'a>(runs: &[&'a Manifest], group: impl Fn(&'a Manifest) -> (&'a str, &'a str)) -> Vec<String> {
    let mut alike: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        alike.entry(group(run)).or_default().push(index);
    }
    let mut own = vec![String::new(); runs.len()];
    for indices in alike.into_values() {
        let several: Vec<&Manifest> = indices.iter().map(|&index| runs[index]).collect();
        for (index, label) in indices.into_iter().zip(labels(&several)) {
            own[index] = label;
        }
    }
    own
}

/// Removes the settings that others among them say.
fn drop_what_follows<T>(settings: &mut BTreeMap<String, T>) {
    // The digests of a suite's prompts are named by the prompts.
    if settings.keys().any(|name| name.contains("prompt_sha256.")) {
        settings.remove("suite_options.prompts");
    }
    // `--seed` is both.
    if settings.contains_key("suite_options.seed") {
        settings.remove("generation.seed");
    }
    if settings.contains_key("suite_options.shared") {
        for option in ["forms", "notations", "skills"] {
            settings.remove(&format!("suite_options.{option}"));
        }
    }
}

/// Settings with their values in the words of labels, in the order of their names; without those that say nothing to people.
pub fn in_words(mut settings: BTreeMap<String, Value>) -> Vec<String> {
    settings.retain(|name, _| !is_left_out(name));
    drop_what_follows(&mut settings);
    settings.iter().filter_map(|(name, value)| said(name, value)).collect()
}

/// The first settings in which each of several runs differs from the others; empty where it has none of them.
fn by_settings(runs: &[&Manifest]) -> Vec<String> {
    let [first, others @ ..] = runs else { return Vec::new() };
    // Values by setting and run.
    let mut differing: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (index, run) in others.iter().enumerate() {
        for change in first.settings.changes(&run.settings) {
            if !is_left_out(&change.name) {
                let values = differing.entry(change.name).or_insert_with(|| vec![change.one.clone(); runs.len()]);
                values[index + 1] = change.other;
            }
        }
    }
    drop_what_follows(&mut differing);
    // What a profile was asked in is screened.
    if runs.iter().all(|run| run.settings.is_adaptive()) {
        differing.remove("prompt_mode");
    }
    let suites = runs.iter().any(|run| run.settings.suite != first.settings.suite);
    let models = runs.iter().any(|run| run.model.name != first.model.name);
    let files: Vec<Value> = runs.iter().map(|run| run.model.path.as_str().into()).collect();
    if files.iter().any(|file| *file != files[0]) {
        let others = |run: &&Manifest| run.settings.model_files != first.settings.model_files;
        if runs.iter().all(|run| run.settings.origin() == Origin::Log) {
            differing.insert("log".to_owned(), files);
        } else if !models
            && runs.iter().any(others)
            && runs.iter().all(|run| run.settings.origin() == Origin::Evaluated)
        {
            // Two files of one name.
            differing.insert("model".to_owned(), files);
        }
    }
    let parts: Vec<Value> = runs.iter().map(|run| run.shard.map(|shard| shard.to_string()).into()).collect();
    if parts.iter().any(|part| *part != parts[0]) {
        differing.insert("part".to_owned(), parts);
    }
    let label = |(index, run): (usize, &&Manifest)| {
        let suite = suites.then(|| run.settings.suite.clone());
        let model = models.then(|| format!("model {}", run.model.name));
        let begin: Vec<String> = suite.into_iter().chain(model).collect();
        let rest = telling(&differing, index, MOST.saturating_sub(begin.len()));
        begin.into_iter().chain(rest).collect::<Vec<_>>().join(", ")
    };
    runs.iter().enumerate().map(label).collect()
}

/// Words of the settings that tell a run best from the others, in their order: those whose values it shares with the fewest of them.
fn telling(differing: &BTreeMap<String, Vec<Value>>, run: usize, most: usize) -> Vec<String> {
    let sharing = |values: &[Value]| values.iter().filter(|value| **value == values[run]).count();
    let words = differing.iter().filter_map(|(name, values)| Some((sharing(values), said(name, &values[run])?)));
    let mut words: Vec<(usize, (usize, String))> = words.enumerate().collect();
    words.sort_by_key(|(_, (sharing, _))| *sharing);
    words.truncate(most);
    words.sort_by_key(|(order, _)| *order);
    words.into_iter().map(|(_, (_, words))| words).collect()
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
            ("suite_options.profile", json!("paper"), Some("scorer paper")),
            ("suite_options.profile", Value::Null, Some("scorer the usual one")),
            ("suite_options.cluster", json!("template"), Some("cluster template")),
            ("suite_options.cluster", Value::Null, Some("no cluster")),
            ("suite_options.seed", json!(2), Some("seed 2")),
            ("generation.max_tokens", json!(20), Some("token limit 20")),
            ("generation.max_tokens", Value::Null, Some("no token limit")),
        ] {
            assert_eq!(said(name, &value).as_deref(), words, "{name} {value}");
        }
        let long = format!("/home/{}/one/model.gguf", "folder/".repeat(9));
        let label = said("model", &json!(long)).unwrap();
        assert!(
            label.starts_with("model \u{2026}") && label.ends_with("/one/model.gguf") && label.chars().count() == 46,
            "{label}"
        );
        assert_eq!(said("model", &json!("a/b")).as_deref(), Some("model a/b"));
        assert_eq!(said("part", &json!("1/2")).as_deref(), Some("part 1/2"));
        assert!(is_left_out("suite_options.task_file.sha256") && is_left_out("generation.stop_ids"));
        assert!(!is_left_out("suite_options.prompt_sha256.gsm"));
    }

    #[test]
    fn settings_that_follow_from_others_are_left_out() {
        let settings = [
            ("suite_options.prompt_sha256.simple-nl", json!("85781abb")),
            ("suite_options.prompt_sha256.gsm", Value::Null),
            ("suite_options.prompts", json!(["simple-nl"])),
            ("suite_options.seed", json!(2)),
            ("suite_options.task_file.sha256", json!("00ff")),
            ("task_details.hashes.hash_examples", json!("7d296297")),
            ("generation.seed", json!(2)),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(in_words(BTreeMap::from(settings)), ["prompt simple-nl", "seed 2"]);
    }

    #[test]
    fn a_run_is_told_apart_by_what_is_its_own() {
        let differing = BTreeMap::from([
            ("generation.max_tokens".to_owned(), vec![json!(20), Value::Null, Value::Null, Value::Null]),
            ("generation.sampling.temperature".to_owned(), vec![json!(0.0), json!(0.0), json!(0.5), json!(0.5)]),
            ("limit".to_owned(), vec![json!(5), json!(5), json!(5), json!(2)]),
            ("samples".to_owned(), vec![json!(1), json!(1), json!(1), json!(3)]),
        ]);
        let said = |index, most| telling(&differing, index, most).join(", ");
        assert_eq!(said(3, 3), "temperature 0.5, first 2 items, samples per item 3");
        assert_eq!(said(3, 2), "first 2 items, samples per item 3");
        assert_eq!(said(0, 3), "token limit 20, temperature 0.0, first 5 items");
        assert_eq!(said(1, 4), "no token limit, temperature 0.0, first 5 items, samples per item 1");
        assert_eq!(said(1, 0), "");
    }
}
