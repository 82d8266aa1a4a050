//! Comparison of stored runs, the first of which is the baseline.
use std::collections::BTreeSet;

use serde::Serialize;

use crate::EvalError;
use crate::report::{Comparison, Scores, compare, differing_settings, pilot_items};
use crate::results;
use crate::run::store::{Filter, RunRecord, Store};
use crate::run::{Decision, FileRecord, Reporter, RunEvent, RunSettings, shown};
use earnest_stats::design::{VarianceParts, pilot_parts};
use earnest_tasks::suite::task::STORED_KEY;

/// Compares each run with the first one, on the items that both answered or that name an item of the other; warns of everything else in which they differ.
///
/// # Errors
/// If a run is named twice, or the runs are of different suites and no item of one is an item of the other or names one.
pub fn compare_runs(
    store: &Store,
    names: &[String],
    reporter: &mut dyn Reporter,
) -> Result<Vec<Comparison>, EvalError> {
    let mut warn = |text| reporter.event(&RunEvent::Warning(text));
    let comparisons = paired(store, names, &mut warn)?;
    comparisons.iter().filter(|comparison| !comparison.settings.is_empty()).for_each(|comparison| {
        warn(settings_warning(comparison));
    });
    Ok(comparisons)
}

/// Compares each run with the first one; differing settings are in the comparisons, without a warning.
pub(crate) fn paired(
    store: &Store,
    names: &[String],
    mut warn: &mut impl FnMut(String),
) -> Result<Vec<Comparison>, EvalError> {
    let runs = names.iter().map(|name| store.run(name)).collect::<Result<Vec<RunRecord>, _>>()?;
    let Some((baseline, others)) = runs.split_first() else { return Ok(Vec::new()) };
    for other in others {
        check_pair(baseline, other, &mut warn)?;
    }
    let mut scores = runs.iter().map(|run| scores(store, run, &mut warn)).collect::<Result<Vec<Scores>, _>>()?;
    read_questions(store, &runs, &mut scores, &mut warn);
    let names: Vec<String> = runs.iter().map(|run| run.manifest.run.clone()).collect();
    let mut comparisons = compare(&names, &scores);
    for (comparison, run) in comparisons.iter_mut().zip(others) {
        let is_of_other_questions = run.manifest.settings.suite != baseline.manifest.settings.suite;
        if is_of_other_questions && comparison.items == 0 {
            let error = match comparison.different_question {
                0 => nothing_in_common(baseline, run),
                count => EvalError::setting(format!(
                    "{} and {} have {count} ids in common, but under each of them another question",
                    comparison.baseline, comparison.run
                )),
            };
            return Err(
                error.hint("items are paired by id and question, or by the id of the original in a column `pair`")
            );
        }
        comparison.settings = differing_settings(&baseline.manifest, &run.manifest);
        if is_of_other_questions {
            // They only say where the questions are.
            comparison.settings.retain(|change| !change.name.starts_with("suite_options."));
        }
    }
    Ok(comparisons)
}

/// Refuses runs that cannot be compared; warns of models and rules that differ although their names do not.
fn check_pair(baseline: &RunRecord, other: &RunRecord, warn: &mut impl FnMut(String)) -> Result<(), EvalError> {
    let (name, mine) = (&baseline.manifest.run, &baseline.manifest.settings);
    let (other_name, theirs) = (&other.manifest.run, &other.manifest.settings);
    if baseline.id == other.id {
        return Err(EvalError::setting(format!("{name} is named twice: compare two runs")));
    }
    // Questions of the user can be another task's, or perturbed ones.
    let of_user = [mine, theirs].iter().any(|settings| settings.suite_options.get(STORED_KEY).is_some());
    if theirs.suite != mine.suite && !of_user {
        return Err(nothing_in_common(baseline, other));
    }
    let model = &baseline.manifest.model.name;
    if *model == other.manifest.model.name && mine.model_files != theirs.model_files {
        warn(format!(
            "{name} and {other_name} name their models alike ({model}), but the files differ: {}",
            changed_files(&mine.model_files, &theirs.model_files)
        ));
    }
    if theirs.suite == mine.suite && theirs.suite_version != mine.suite_version {
        warn(format!(
            "{name} was scored with version {} of the suite, {other_name} with {}; `earnest score --save` scores them alike",
            mine.suite_version, theirs.suite_version
        ));
    }
    Ok(())
}

fn nothing_in_common(baseline: &RunRecord, other: &RunRecord) -> EvalError {
    let (mine, theirs) = (&baseline.manifest, &other.manifest);
    EvalError::setting(format!(
        "{} is of {} and {} of {}: they have no items in common",
        mine.run, mine.settings.suite, theirs.run, theirs.settings.suite
    ))
}

/// Returns the scores of a run by item, for items of these settings.
pub(crate) fn answers(
    store: &Store,
    run: &RunRecord,
    settings: &RunSettings,
    mut warn: &mut impl FnMut(String),
) -> Result<Scores, EvalError> {
    let mut scores = scores(store, run, &mut warn)?;
    if scores.lacks_questions() && !settings.has_items_of(&run.manifest.settings) {
        results::each_item(store, run, |item| scores.read_question(&item))?;
    }
    Ok(scores)
}

/// A pilot: two runs of the same questions, and how much their differences vary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pilot {
    pub runs: [String; 2],
    pub questions: usize,
    pub templates: usize,
    /// Difference of the second run.
    pub difference: f64,
    pub parts: VarianceParts,
    /// False if every question was asked once: the part of the samples is then in that of the questions.
    pub repeated: bool,
}

/// Returns the pilot of two stored runs; `warn` gets what may make it another's.
///
/// # Errors
/// The runs have no items in common, or all in one cluster.
pub fn pilot(store: &Store, names: [&str; 2], mut warn: &mut impl FnMut(String)) -> Result<Pilot, EvalError> {
    let runs = [store.run(names[0])?, store.run(names[1])?];
    check_pair(&runs[0], &runs[1], &mut warn)?;
    let [first, second] = &runs;
    let mut scores = [scores(store, first, &mut warn)?, scores(store, second, &mut warn)?];
    read_questions(store, &runs, &mut scores, &mut warn);
    let items = pilot_items(&scores[0], &scores[1]);
    let runs = runs.map(|run| run.manifest.run);
    if items.is_empty() {
        return Err(EvalError::setting(format!("{} and {} have no items in common", runs[0], runs[1])));
    }
    let share = |(right, all): (u32, u32)| f64::from(right) / f64::from(all);
    let difference = items.iter().map(|item| share(item.second) - share(item.first)).sum::<f64>() / items.len() as f64;
    let templates = items.iter().map(|item| item.cluster).collect::<BTreeSet<u64>>().len();
    let (parts, repeated) = pilot_parts(&items)
        .map_err(|error| EvalError::setting(format!("{} and {} are no pilot: {error}", runs[0], runs[1])))?;
    Ok(Pilot { runs, questions: items.len(), templates, difference, parts, repeated })
}

fn scores(store: &Store, run: &RunRecord, warn: &mut impl FnMut(String)) -> Result<Scores, EvalError> {
    let mut scores = Scores::with_primary(results::primary_rules(store, run)?);
    scores.has_condition = run.manifest.settings.until.is_some();
    scores.ended_early = run.manifest.decision.as_ref().is_some_and(Decision::is_early);
    for sample in store.samples(run, Filter::default()) {
        scores.add(&sample?);
    }
    if scores.without_score > 0 {
        warn(format!(
            "{} samples of {} have no answer and are in no comparison",
            scores.without_score, run.manifest.run
        ));
    }
    Ok(scores)
}

/// Adds the questions where rows alone do not tell them: runs with different options may have other questions under the same ids.
fn read_questions(store: &Store, runs: &[RunRecord], scores: &mut [Scores], warn: &mut impl FnMut(String)) {
    let Some((baseline, others)) = runs.split_first() else { return };
    let alike = others.iter().all(|run| baseline.manifest.settings.has_items_of(&run.manifest.settings));
    if alike || scores.iter().all(|scores| !scores.lacks_questions()) {
        return;
    }
    for (run, scores) in runs.iter().zip(scores) {
        if let Err(error) = results::each_item(store, run, |item| scores.read_question(&item)) {
            warn(format!(
                "the runs have different options, and the questions of {} cannot be read: its items are compared by id and \
                 expected answer alone: {error}",
                run.manifest.run
            ));
        }
    }
}

/// Names settings in which the runs differ, with both values.
fn settings_warning(comparison: &Comparison) -> String {
    let named = comparison.settings.iter().map(|change| {
        let name = change.name.strip_prefix("suite_options.").unwrap_or(&change.name);
        format!("{name} ({} in A, {} in B)", shown(&change.one), shown(&change.other))
    });
    format!(
        "{} (A) and {} (B) have different settings, so a difference need not be the models': {}",
        comparison.baseline,
        comparison.run,
        named.collect::<Vec<_>>().join(", ")
    )
}

/// Names of files with other content, or in one list only.
fn changed_files(mine: &[FileRecord], theirs: &[FileRecord]) -> String {
    let only = |these: &[FileRecord], those: &[FileRecord]| -> Vec<String> {
        these.iter().filter(|file| !those.contains(file)).map(|file| file.name.clone()).collect()
    };
    let mut names = [only(mine, theirs), only(theirs, mine)].concat();
    names.sort();
    names.dedup();
    names.join(", ")
}
