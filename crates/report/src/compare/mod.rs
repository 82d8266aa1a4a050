//! Comparison of stored runs, the first of which is the baseline.
mod asked;
mod logs;
mod pilot;

use earnest_results::{ComparisonNotice, FileRecord, Notice, Origin, Reporter, RunEvent, folder};
use earnest_tasks::{agreeing, counted};

use crate::Comparison;
use crate::ReportError;
use crate::paired::{compare, read_alike};
use earnest_logs::import::no_field;
use earnest_results::scores::{CompareSettings, Scores, scores};
use earnest_results::store::{RunRecord, Store};
use earnest_tasks::suite::registry::scores_alike;

pub use asked::{AskedOfBoth, asked_of_both};
pub use logs::{CompareLogs, LogComparisons, compare_logs};
pub use pilot::{Pilot, pilot};

/// Compares each run with the first one, on the items that both answered or that name an item of the other; warns of everything else in which they differ.
///
/// # Errors
/// If a run is named twice, or no item of one run is an item of the other or names one.
pub fn compare_runs(
    store: &Store,
    names: &[String],
    settings: &CompareSettings,
    reporter: &mut dyn Reporter,
) -> Result<Vec<Comparison>, ReportError> {
    let mut warn = |notice| reporter.event(&RunEvent::Notice(notice));
    let comparisons = paired(store, names, settings, &mut warn)?;
    comparisons.iter().for_each(|comparison| warn_of_settings(comparison, &mut warn));
    Ok(comparisons)
}

/// Warns of settings and prompts in which compared runs differ.
pub(crate) fn warn_of_settings(comparison: &Comparison, warn: &mut impl FnMut(Notice)) {
    comparison.caveats().into_iter().for_each(|caveat| warn(caveat.into()));
}

/// Compares each run with the first one; differing settings are in the comparisons, without a warning.
pub(crate) fn paired(
    store: &Store,
    names: &[String],
    settings: &CompareSettings,
    mut warn: &mut impl FnMut(Notice),
) -> Result<Vec<Comparison>, ReportError> {
    let runs = names.iter().map(|name| store.run(name)).collect::<Result<Vec<RunRecord>, _>>()?;
    let Some((baseline, others)) = runs.split_first() else { return Ok(Vec::new()) };
    for other in others {
        check_pair(baseline, other, &mut warn)?;
    }
    let mut scores =
        runs.iter().map(|run| scores(store, run, settings, &mut warn)).collect::<Result<Vec<Scores>, _>>()?;
    read_alike(&mut scores);
    let names: Vec<String> = runs.iter().map(|run| run.manifest.run.clone()).collect();
    check_numbers(&names, &scores)?;
    check_clusters(&names, &scores, settings)?;
    read_questions(store, &runs, &mut scores, &mut warn);
    let mut comparisons = compare(&names, &scores);
    warn_of_originals(&comparisons, &scores, &mut warn);
    for (comparison, run) in comparisons.iter_mut().zip(others) {
        let is_of_other_questions = run.manifest.settings.suite != baseline.manifest.settings.suite;
        check_common(comparison, || nothing_in_common(baseline, run))?;
        comparison.read_settings(&baseline.manifest, &run.manifest);
        if is_of_other_questions {
            // They only say where the questions are.
            comparison.settings.retain(|change| !change.name.starts_with("suite_options."));
        }
    }
    Ok(comparisons)
}

/// Scorer for all of these runs where their own ones differ; none where they are the same, and where none is common to all.
pub(crate) fn common_scorer(store: &Store, runs: &[&RunRecord]) -> Result<Option<String>, ReportError> {
    if runs.iter().any(|run| run.manifest.settings.origin() == Origin::Log) {
        return Ok(None);
    }
    let own = runs.iter().map(|run| folder::chosen_scorers(store, run)).collect::<Result<Vec<_>, _>>()?;
    if own.windows(2).all(|two| two[0] == two[1]) {
        return Ok(None);
    }
    let known = runs.iter().map(|run| store.scorers(run)).collect::<Result<Vec<_>, _>>()?;
    let own: Vec<&[String]> = own.iter().map(Vec::as_slice).collect();
    let all_have = |scorer: &str| known.iter().all(|known| known.iter().any(|one| one == scorer));
    Ok(crate::paired::common_scorer(&own, all_have).map(str::to_owned))
}

/// Warns of comparisons in which items name originals, none of which the other run has.
pub(crate) fn warn_of_originals(comparisons: &[Comparison], scores: &[Scores], warn: &mut impl FnMut(Notice)) {
    let Some((first, others)) = scores.split_first() else { return };
    // In runs that are no logs, items with other ids are other samples of the suite.
    let is_without = |comparison: &Comparison| comparison.of_logs && comparison.by_pair == 0;
    for (comparison, second) in comparisons.iter().zip(others).filter(|(comparison, _)| is_without(comparison)) {
        let (one, other) = (&comparison.baseline, &comparison.run);
        for (name, mine, without, theirs) in [(one, first, other, second), (other, second, one, first)] {
            if let Some((items, original)) = mine.naming_originals(theirs) {
                let (run, other, original) = (name.clone(), without.clone(), original.to_owned());
                warn(ComparisonNotice::OriginalsNotThere { run, other, items, original }.into());
            }
        }
    }
}

/// Refuses a comparison without a pair.
pub(crate) fn check_common(comparison: &Comparison, nothing: impl FnOnce() -> ReportError) -> Result<(), ReportError> {
    if comparison.items > 0 {
        return Ok(());
    }
    let (one, other) = (&comparison.baseline, &comparison.run);
    let error = match (comparison.different_question, comparison.ambiguous) {
        (0, 0) => nothing(),
        (0, ambiguous) => ReportError::setting(format!(
            "{one} and {other} have {} in common, but several items with {}",
            counted(ambiguous, "question"),
            agreeing(ambiguous, "it", "each of them")
        )),
        (count, _) => ReportError::setting(format!(
            "{one} and {other} have {} in common, but under {} another question",
            counted(count, "id"),
            agreeing(count, "it", "each of them")
        )),
    };
    Err(error.hint(match comparison.of_logs {
        true => {
            "items are paired by id and question, by the id of the original (`pair`), or by the question's text; `earnest samples` \
             shows them"
        }
        false => "items are paired by id and question, or by the id of the original in a column `pair`",
    }))
}

/// Refuses runs without scores, and scorers that give no numbers; an object has parts that may be numbers.
pub(crate) fn check_numbers(names: &[String], scores: &[Scores]) -> Result<(), ReportError> {
    let unscored = |scores: &Scores| scores.is_empty() && scores.without_score > 0 && scores.without_number == 0;
    if let Some((name, scores)) = names.iter().zip(scores).find(|(_, scores)| unscored(scores)) {
        let by = if scores.chosen.is_empty() { String::new() } else { format!(" by {}", scores.chosen.join(" and ")) };
        let message = format!("{name} has nothing to compare: none of its samples has a score{by}");
        return Err(ReportError::setting(message).hint(
            "the setting `scorer` names another; `earnest import --answers FILE` scores the completions of a log",
        ));
    }
    let mut without = names.iter().zip(scores).filter(|(_, scores)| scores.is_empty() && scores.without_number > 0);
    let Some((name, scores)) = without.next() else { return Ok(()) };
    let scorer = scores.chosen.join(" and ");
    let parts: Vec<&str> = scores.parts.iter().map(String::as_str).collect();
    Err(match parts.first() {
        Some(first) => {
            ReportError::setting(format!("{name} has no number for `{scorer}`; its parts are {}", parts.join(", ")))
                .hint(format!("the setting `scorer = {first}` compares a part"))
        }
        None => ReportError::setting(format!("{name} has no number for `{scorer}`: its scores are lists or texts"))
            .hint("the setting `scorer` names another; `earnest samples` shows what is stored"),
    })
}

/// Refuses a cluster that no question has. One of two runs is enough: the other's items are paired with its.
pub(crate) fn check_clusters(
    names: &[String],
    scores: &[Scores],
    settings: &CompareSettings,
) -> Result<(), ReportError> {
    let Some(field) = &settings.cluster else { return Ok(()) };
    if scores.iter().any(|scores| !scores.has_no_clusters()) {
        return Ok(());
    }
    let Some((name, first)) = names.iter().zip(scores).find(|(_, scores)| scores.first_without_cluster.is_some())
    else {
        return Ok(());
    };
    let sample = first.first_without_cluster.as_ref();
    let fields: serde_json::Map<String, serde_json::Value> =
        sample.map(|sample| sample.covariates.clone().into_iter().collect()).unwrap_or_default();
    let item = sample.map(|sample| format!("the item {} of {name}", sample.item)).unwrap_or_else(|| name.clone());
    Err(no_field(&item, field, &fields).into())
}

/// Refuses runs that cannot be compared; warns of models and scorers that differ although their names do not.
fn check_pair(baseline: &RunRecord, other: &RunRecord, warn: &mut impl FnMut(Notice)) -> Result<(), ReportError> {
    let (name, mine) = (&baseline.manifest.run, &baseline.manifest.settings);
    let (other_name, theirs) = (&other.manifest.run, &other.manifest.settings);
    if baseline.id == other.id {
        return Err(ReportError::setting(format!("{name} is named twice: compare two runs")));
    }
    // Questions of the user can be another task's, or perturbed ones; those of a log are paired by their texts.
    let of_user = [mine, theirs].iter().any(|settings| settings.asks_own_questions());
    if theirs.suite != mine.suite && !of_user {
        return Err(nothing_in_common(baseline, other));
    }
    let runs = || [name.clone(), other_name.clone()];
    let model = &baseline.manifest.model.name;
    if *model == other.manifest.model.name
        && let (Some(mine), Some(theirs)) = (mine.files_of_model(), theirs.files_of_model())
        && mine != theirs
    {
        let (model, files) = (model.clone(), changed_files(mine, theirs));
        warn(ComparisonNotice::OtherModelFiles { runs: runs(), model, files }.into());
    }
    if mine.is_adaptive() {
        warn(ComparisonNotice::NumeracyProfiles { runs: runs() }.into());
    }
    let of_logs = mine.origin() == Origin::Log || theirs.origin() == Origin::Log;
    let alike = scores_alike(&mine.suite, &mine.suite_version, &theirs.suite_version);
    if theirs.suite == mine.suite && !alike && !of_logs {
        let versions = [mine.suite_version.clone(), theirs.suite_version.clone()];
        warn(ComparisonNotice::OtherSuiteVersion { runs: runs(), versions }.into());
    }
    Ok(())
}

fn nothing_in_common(baseline: &RunRecord, other: &RunRecord) -> ReportError {
    let (mine, theirs) = (&baseline.manifest, &other.manifest);
    ReportError::setting(match mine.settings.suite == theirs.settings.suite {
        true => format!("{} and {} have no items in common", mine.run, theirs.run),
        false => format!(
            "{} is of {} and {} of {}: they have no items in common",
            mine.run, mine.settings.suite, theirs.run, theirs.settings.suite
        ),
    })
}

/// Adds the questions where rows alone do not tell them: runs with different options may have other questions under the same ids.
fn read_questions(store: &Store, runs: &[RunRecord], scores: &mut [Scores], warn: &mut impl FnMut(Notice)) {
    let Some((baseline, others)) = runs.split_first() else { return };
    let alike = others.iter().all(|run| baseline.manifest.settings.has_items_of(&run.manifest.settings));
    let of_logs = runs.iter().any(|run| run.manifest.settings.origin() == Origin::Log);
    if alike && !of_logs || scores.iter().all(|scores| !scores.lacks_questions()) {
        return;
    }
    for (run, scores) in runs.iter().zip(scores) {
        if of_logs {
            scores.forget_operands();
        }
        if let Err(error) = folder::each_item(store, run, |item| scores.read_question(&item)) {
            let (run, reason) = (run.manifest.run.clone(), error.to_string());
            warn(ComparisonNotice::QuestionsUnread { run, reason }.into());
        }
        if of_logs {
            scores.normalise_questions();
        }
    }
}

/// Names of files with other content, or in one list only.
fn changed_files(mine: &[FileRecord], theirs: &[FileRecord]) -> Vec<String> {
    let only = |these: &[FileRecord], those: &[FileRecord]| -> Vec<String> {
        these.iter().filter(|file| !those.contains(file)).map(|file| file.name.clone()).collect()
    };
    let mut names = [only(mine, theirs), only(theirs, mine)].concat();
    names.sort();
    names.dedup();
    names
}
