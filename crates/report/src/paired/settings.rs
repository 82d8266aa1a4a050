//! Settings in which compared runs differ.
use earnest_results::{Manifest, Mode, Origin, RunSettings, SettingChange, in_words};

use serde_json::{Map, Value, json};

use super::Comparison;
use earnest_tasks::suite::registry;

impl Comparison {
    /// Notes the settings in which two runs differ, and whether they were asked in two forms.
    pub fn read_settings(&mut self, baseline: &Manifest, run: &Manifest) {
        self.settings = differing_settings(baseline, run);
        self.asked_differently = asked_differently(baseline, run);
    }
}

/// Returns the sentence on runs of which one was asked by its chat template and the other raw. Raw is the form that every model
/// has, so the command asks the first kind again.
fn asked_differently(baseline: &Manifest, run: &Manifest) -> Option<String> {
    let (mine, theirs) = (&baseline.settings, &run.settings);
    if mine.origin() == Origin::Log || theirs.origin() == Origin::Log || mine.prompt_mode == theirs.prompt_mode {
        return None;
    }
    let ([chat, raw], by_chat) = match mine.prompt_mode {
        Mode::Chat => (["A", "B"], baseline),
        Mode::Raw => (["B", "A"], run),
    };
    let mut said = format!(
        "They were asked differently, {chat} by its chat template and {raw} raw, and that alone can make a difference."
    );
    let settings = &by_chat.settings;
    if settings.origin() == Origin::Evaluated {
        // Own questions are in a file that the name does not tell, and an endpoint's model is named by other options.
        let questions = match registry::find(&settings.suite) {
            Some(_) => settings.suite.as_str(),
            None => "FILE",
        };
        let model = match settings.endpoint {
            Some(_) => String::new(),
            None => format!(" --model {}", by_chat.model.path),
        };
        said.push_str(&format!(
            " `earnest run {questions}{model} --prompt raw`, with the other options of {}, asks both alike.",
            by_chat.run
        ));
    }
    Some(said)
}

/// Returns the settings besides the model in which two runs differ. Includes the dtype of the weights as
/// `engine.weights_dtype`; leaves out the suite's version, because stored completions can be scored again. Of another tool's log it has
/// what the tool says of task, prompts and generation.
pub fn differing_settings(baseline: &Manifest, run: &Manifest) -> Vec<SettingChange> {
    let (mine, theirs) = (&baseline.settings, &run.settings);
    if mine.origin() == Origin::Log || theirs.origin() == Origin::Log {
        return of_logs(mine, theirs);
    }
    let one_model = match (mine.files_of_model(), theirs.files_of_model()) {
        (Some(mine), Some(theirs)) => mine == theirs,
        _ => baseline.model.name == run.model.name,
    };
    let mut changes = mine.changes(theirs);
    changes.retain(|change| match change.name.as_str() {
        "suite" | "suite_version" | "model_files" | "endpoint.model" => false,
        // Says when a run ends, not what is asked.
        name if name == "until" || name.starts_with("until.") => false,
        // End-of-sequence ids differ between models anyway.
        "generation.stop_ids" => one_model,
        _ => true,
    });
    let dtype = |manifest: &Manifest| Some(manifest.engine.as_ref()?.card.weights_dtype.clone());
    if let (Some(one), Some(other)) = (dtype(baseline), dtype(run))
        && one != other
    {
        let name = "engine.weights_dtype".to_owned();
        changes.push(SettingChange { name, one: one.into(), other: other.into() });
    }
    changes
}

/// Returns the settings of a run that set it off from another one, with its values in words, by name; `counts` says which settings matter.
pub fn own_settings(mine: &Manifest, other: &Manifest, counts: impl Fn(&SettingChange) -> bool) -> Vec<String> {
    let changes = differing_settings(mine, other).into_iter().filter(|change| counts(change));
    in_words(changes.map(|change| (change.name, change.one)).collect())
}

/// Parts of a log's card that a comparison depends on, besides the model. Versions of tools and hashes of tasks are among them.
const COMPARED: [&str; 9] =
    ["tool", "tool_version", "task", "task_version", "task_hash", "few_shot", "repeats", "generation", "task_details"];

/// Those of them that mean the same in every tool.
const COMMON: [&str; 5] = ["tool", "task", "task_version", "few_shot", "repeats"];

fn of_logs(mine: &RunSettings, theirs: &RunSettings) -> Vec<SettingChange> {
    let (mine, theirs) = (card(mine), card(theirs));
    let compared = if mine.get("tool") == theirs.get("tool") { &COMPARED[..] } else { &COMMON };
    let part = |card: &Map<String, Value>| -> Value {
        compared
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), card.get(*name)?.clone())))
            .collect::<Map<_, _>>()
            .into()
    };
    let mut changes = Vec::new();
    earnest_results::collect_changes(&part(&mine), &part(&theirs), &mut changes);
    // What one of the two does not say is unknown, not different.
    changes.retain(|change| !change.one.is_null() && !change.other.is_null() && !is_of_one_run(&change.name));
    changes
}

/// True for details of a task that are a run's own, whatever it asked: ids that a tool gives each run, and digests of tokens, which are those
/// of the model's tokenizer.
fn is_of_one_run(name: &str) -> bool {
    let Some(detail) = name.strip_prefix("task_details.") else { return false };
    let last = detail.rsplit('.').next().unwrap_or_default();
    (detail.ends_with("_id") && !detail.contains('.')) || (last.starts_with("hash_") && last.ends_with("_tokens"))
}

/// The card of a log, and what corresponds to it in a run of earnest.
fn card(settings: &RunSettings) -> Map<String, Value> {
    match settings.stored_card() {
        Some(Value::Object(card)) => card.clone(),
        _ => {
            let own = json!({
                "tool": "earnest",
                "task": settings.suite,
                "task_version": settings.suite_version,
                "repeats": settings.samples,
            });
            if let Value::Object(own) = own { own } else { Map::new() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_differ_in_what_both_say() {
        let settings = |card: Value| -> RunSettings {
            serde_json::from_value(json!({
                "suite": "t", "suite_version": "1", "suite_options": {"log": card}, "limit": null, "samples": 1,
                "model_files": [], "prompt_mode": "raw", "engine": "import", "earnest": "1",
                "generation": {"sampling": earnest_engine::Sampling::GREEDY, "seed": 0, "stop_ids": [], "max_tokens": null,
                    "thinking": false},
            }))
            .unwrap()
        };
        let one = settings(json!({"tool": "lm-eval", "few_shot": 0, "generation": {"until": ["\n"], "temperature": 0},
            "model": "a", "task_hash": "x"}));
        let other = settings(json!({"tool": "lm-eval", "few_shot": 5, "generation": {"temperature": 0}, "model": "b"}));
        let names = |changes: Vec<SettingChange>| changes.into_iter().map(|change| change.name).collect::<Vec<_>>();
        assert_eq!(names(of_logs(&one, &other)), ["few_shot"]);
        let inspect = settings(json!({"tool": "inspect", "few_shot": 0, "generation": {"temperature": 1}}));
        assert_eq!(names(of_logs(&one, &inspect)), ["tool"]);
        assert!(of_logs(&one, &one).is_empty());
        let of_run = |id: &str, shuffled: bool| {
            settings(json!({"tool": "inspect", "task_details": {"eval_id": id, "dataset": {"shuffled": shuffled}}}))
        };
        assert!(of_logs(&of_run("a", true), &of_run("b", true)).is_empty(), "ids of runs say nothing");
        let of_tokenizer = |tokens: &str, examples: &str| {
            let hashes = json!({"hash_input_tokens": tokens, "hash_examples": examples});
            settings(json!({"tool": "lighteval", "task_details": {"hashes": hashes}}))
        };
        assert!(of_logs(&of_tokenizer("a", "x"), &of_tokenizer("b", "x")).is_empty(), "tokens are the model's");
        assert_eq!(
            names(of_logs(&of_tokenizer("a", "x"), &of_tokenizer("a", "y"))),
            ["task_details.hashes.hash_examples"]
        );
        assert_eq!(names(of_logs(&of_run("a", true), &of_run("b", false))), ["task_details.dataset.shuffled"]);
    }
}
