//! The check of a filter of samples: a filter that selects nothing is an error.
use crate::{Origin, ResultsError, RunError};
use earnest_tasks::suite::registry;

use crate::store::{Filter, Named, RunRecord, Store};

/// Number of names that an error lists.
const SHOWN: usize = 12;

/// Returns the filter with the task's full name. A task, item, reason or scorer that no sample of the run has is an error, because a
/// typing error would select nothing without a word; so is a condition on texts if the samples have none.
pub fn check_filter(store: &Store, run: &RunRecord, filter: Filter) -> Result<Filter, ResultsError> {
    let name = &run.manifest.run;
    let suite = &run.manifest.settings.suite;
    let full_name = |task: &String| -> Result<String, RunError> {
        if store.has(run, Named::Task, task)? {
            return Ok(task.clone());
        }
        let full = registry::find(suite).and_then(|suite| suite.task(task).ok());
        Ok(full.unwrap_or_else(|| task.clone()))
    };
    let task = filter.task.as_ref().map(full_name).transpose()?;
    let named = [
        (Named::Task, "task", task.as_ref()),
        (Named::Item, "item", filter.item.as_ref()),
        (Named::Reason, "reason", filter.reason.as_ref()),
    ];
    for (column, word, value) in named {
        let Some(value) = value else { continue };
        if store.has(run, column, value)? {
            continue;
        }
        let hint = match column {
            Named::Item => "`earnest samples` shows the ids".to_owned(),
            _ => {
                let mut all = store.all(run, column)?;
                if column == Named::Task {
                    all = all.iter().map(|task| registry::task_label(task).into_owned()).collect();
                }
                let more = if all.len() > SHOWN { format!(", and {} more", all.len() - SHOWN) } else { String::new() };
                match all.is_empty() {
                    true => format!("no sample of it has a {word}"),
                    false => format!("it has {}{more}", all[..all.len().min(SHOWN)].join(", ")),
                }
            }
        };
        return Err(ResultsError::setting(format!("no sample of {name} has the {word} {value}")).hint(hint));
    }
    for scorer in filter.disagree.iter().flatten() {
        if !store.has_scorer(run, scorer)? {
            let scorers = store.scorers(run)?;
            let hint = match scorers.is_empty() {
                true => "no sample of it has a score".to_owned(),
                false => {
                    format!("it has {}; `earnest score {name} --save` makes a run with today's", scorers.join(", "))
                }
            };
            return Err(ResultsError::setting(format!("no sample of {name} was scored by {scorer}")).hint(hint));
        }
    }
    for (covariate, value) in &filter.covariates {
        if store.has_covariate(run, covariate, value)? {
            continue;
        }
        let first = store.samples(run, Filter::default()).next().transpose()?;
        let known: Vec<String> = first.into_iter().flat_map(|sample| sample.covariates.into_keys()).collect();
        let hint = match (known.is_empty(), known.contains(covariate)) {
            (true, _) => "its samples have no covariates".to_owned(),
            (false, true) => format!("`earnest samples {name} --json` shows the values"),
            (false, false) => format!("its first sample has {}", known.join(", ")),
        };
        return Err(ResultsError::setting(format!("no sample of {name} has {covariate} = {value}")).hint(hint));
    }
    let needs_texts = match (filter.error, &filter.contains) {
        (Some(_), _) => Some("classes of errors cannot be read from them"),
        (None, Some(_)) => Some("no text can be found in them"),
        (None, None) => None,
    };
    if let Some(therefore) = needs_texts
        && !store.has_completions(run)?
    {
        return Err(no_texts(name, therefore));
    }
    Ok(Filter { task, of_log: run.manifest.settings.origin() == Origin::Log, ..filter })
}

/// The refusal of what needs the texts of a run that has none.
pub fn no_texts(run: &str, therefore: &str) -> ResultsError {
    ResultsError::setting(format!("the samples of {run} hold no texts, so {therefore}")).hint(
        "rows from an outcome file have scores alone; the results folder in which the run was made has the texts too",
    )
}
