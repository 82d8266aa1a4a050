//! Training rows: the questions of the train part as the suite asks them, clean or perturbed, with their answers in the form of worked
//! examples. All models have a row a question, in one order; a question that a perturbation does not fit is clean for its model too.
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::results::write;
use super::{DefenceError, DefenceExperiment};
use earnest_eval::EvalError;
use earnest_results::suites;
use earnest_tasks::suite::Item;
use earnest_tasks::suite::dnc::{Kind, Split};
use earnest_tasks::suite::registry::{Channel, Mode};
use earnest_train::PromptForm;

/// Name of the suite.
pub(super) const SUITE: &str = "dnc";

pub(super) struct TrainingRows {
    /// JSON lines with `prompt` and `completion`.
    pub(super) text: String,
    pub(super) count: usize,
    /// Rows that are perturbed.
    pub(super) perturbed: usize,
    /// System message of a chat; raw prompts have it in their text.
    pub(super) system: Option<String>,
}

/// Makes the rows of a perturbation, or the clean ones.
///
/// # Errors
/// [`DefenceError::Eval`] if the data are missing or no question is eligible.
pub(super) fn training_rows(experiment: &DefenceExperiment, kind: Option<Kind>) -> Result<TrainingRows, DefenceError> {
    let (prompts, form) = experiment.checked_prompts()?;
    // The clean rows need some perturbation too: a suite without any has no items.
    let kinds = kind.map_or_else(|| experiment.kinds.clone(), |kind| vec![kind]);
    let options = experiment.options(&kinds, prompts.names).with("splits", Split::Train.name());
    let mode = match form {
        PromptForm::Raw => Mode::Raw,
        PromptForm::Chat => Mode::Chat,
    };
    let suite = suites::configure(SUITE, &options)
        .map_err(EvalError::from)?
        .suite(Channel::local(mode))
        .map_err(EvalError::from)?;
    let mut chosen: BTreeMap<String, Item> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for item in suite.items.iter() {
        if item.task == "original" {
            order.push(item.cluster.clone());
            chosen.insert(item.cluster.clone(), item);
        } else if kind.is_some_and(|kind| kind.name() == item.task) {
            chosen.insert(item.cluster.clone(), item);
        }
    }
    let mut rows = TrainingRows { text: String::new(), count: 0, perturbed: 0, system: None };
    for item in order.iter().filter_map(|question| chosen.get(question)) {
        let Some(completion) = suite.scoring.worked_answer(item) else { continue };
        let prompt = item.segments.raw.as_ref().unwrap_or(&item.segments.question);
        let row = json!({"id": item.id, "prompt": prompt, "completion": completion});
        rows.text.push_str(&format!("{row}\n"));
        rows.count += 1;
        rows.perturbed += usize::from(item.task != "original");
        if item.segments.raw.is_none() && rows.system.is_none() {
            rows.system.clone_from(&item.segments.system);
        }
    }
    if rows.count == 0 {
        return Err(
            EvalError::setting("no question of the train part has an equation and an answer to train on").into()
        );
    }
    Ok(rows)
}

/// Writes the rows, unless the file has them already.
///
/// # Errors
/// [`DefenceError::Eval`].
pub(super) fn write_rows(path: &Path, rows: &TrainingRows) -> Result<(), DefenceError> {
    if std::fs::read(path).is_ok_and(|found| found == rows.text.as_bytes()) {
        return Ok(());
    }
    write(path, &rows.text)
}
