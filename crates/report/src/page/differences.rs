//! Paired differences to the first run of a report.
use earnest_results::{Decision, Origin, card_of};
use rayon::prelude::*;

use super::ReportRun;
use crate::paired::{compare, read_alike};
use crate::{Comparison, Difference};
use earnest_results::scores::Scores;

/// Compares the other runs with the first one, as `compare` does, under their labels; tasks are in the first run's order. Runs of other
/// suites and runs without a common item are left out, except that logs are paired by their questions.
pub fn comparisons(runs: &[ReportRun]) -> Vec<Comparison> {
    let Some((base, rest)) = runs.split_first() else { return Vec::new() };
    let suite = |run: &ReportRun| run.document.manifest.settings.suite.clone();
    let is_comparable =
        |run: &&ReportRun| base.origin() == Origin::Log || run.origin() == Origin::Log || suite(run) == suite(base);
    let compared: Vec<&ReportRun> = [base].into_iter().chain(rest.iter().filter(is_comparable)).collect();
    if compared.len() < 2 {
        return Vec::new();
    }
    let names: Vec<String> = compared.iter().map(|run| run.label.clone()).collect();
    let mut scores: Vec<Scores> = compared.par_iter().map(|run| scores(run)).collect();
    read_alike(&mut scores);
    let order = base.tasks();
    let mut found = compare(&names, &scores);
    for (comparison, run) in found.iter_mut().zip(compared.iter().skip(1)) {
        comparison.read_settings(&base.document.manifest, &run.document.manifest);
    }
    found.retain(|comparison| comparison.items > 0);
    for comparison in &mut found {
        comparison.tasks.sort_by_key(|one| order.iter().position(|task| *task == one.name).unwrap_or(usize::MAX));
    }
    found
}

fn scores(run: &ReportRun) -> Scores {
    let settings = &run.document.manifest.settings;
    let chosen = earnest_results::suites::chosen(settings);
    let mut scores = Scores::chosen_by(chosen.clone());
    scores.has_condition = settings.until.is_some();
    scores.ended_early = run.document.manifest.decision.as_ref().is_some_and(Decision::is_early);
    if settings.origin() == Origin::Log {
        scores = scores.of_log(card_of(settings).map(|card| card.tool)).by_scorer(chosen.into_iter().next());
    }
    run.samples.iter().for_each(|sample| scores.add(sample));
    scores.read_texts(|item| run.questions.content(item));
    scores.normalise_questions();
    scores
}

/// Returns the differences of a comparison by task, then that of all items. A comparison of one task has it under its name.
pub(super) fn rows(comparison: &Comparison, base: &ReportRun) -> Vec<Difference> {
    let mut only = comparison.overall.clone();
    only.name = base.tasks().first().map_or("all", |task| task).to_owned();
    let tasks = if comparison.tasks.is_empty() { vec![only] } else { comparison.tasks.clone() };
    tasks.into_iter().chain([comparison.overall.clone()]).collect()
}

/// True for a difference that holds after Holm's adjustment at the 5 % level.
pub(super) fn holds(difference: &Difference) -> bool {
    difference.interval.is_some() && difference.p_holm.is_some_and(|p| p < 0.05)
}

/// Returns the mixed models of the comparisons.
pub(super) fn model_remarks(comparisons: &[Comparison]) -> Vec<String> {
    let said = |one: &Comparison| Some(format!("{}: {}", one.run, one.model.as_ref()?.remark()));
    comparisons.iter().filter_map(said).collect()
}

/// Returns remarks on tasks without a comparison or a standard error.
pub(super) fn remarks(runs: &[ReportRun], comparisons: &[Comparison]) -> Vec<String> {
    let Some((base, rest)) = runs.split_first() else { return Vec::new() };
    let mut remarks = Vec::new();
    for run in rest {
        let comparison = comparisons.iter().find(|one| one.run == run.label);
        let pairs = comparison.map_or_else(Vec::new, |comparison| rows(comparison, base));
        let mut named = |without: Vec<&str>, why: &str| {
            if !without.is_empty() {
                remarks.push(format!("{}: {why}: {}.", run.label, without.join(", ")));
            }
        };
        let without = |one_cluster: bool| -> Vec<&str> {
            let wanted = |pair: &&Difference| pair.interval.is_none() && (pair.clusters < 2) == one_cluster;
            pairs.iter().filter(wanted).map(|pair| pair.name.as_str()).collect()
        };
        named(without(true), "no standard error can be estimated from one cluster of items");
        named(without(false), "no standard error can be estimated, because all items differ by the same amount");
        let mut alone: Vec<&str> = Vec::new();
        // Logs of two tools have one task under two names; pairs have that of the first.
        let of_logs = base.origin() == Origin::Log || run.origin() == Origin::Log;
        let others = if of_logs && !pairs.is_empty() { Vec::new() } else { run.tasks() };
        for task in base.tasks().into_iter().chain(others) {
            if !alone.contains(&task) && !pairs.iter().any(|pair| pair.name == task) {
                alone.push(task);
            }
        }
        named(alone, "not compared, because no item is in both runs");
    }
    remarks
}
