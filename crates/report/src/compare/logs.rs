//! Comparison of other tools' logs where they lie, without a results folder.
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{check_clusters, check_common, check_numbers, warn_of_originals, warn_of_settings};
use crate::ReportError;
use crate::paired::compare;
use crate::{Comparison, differing_settings};
use earnest_logs::import::{
    Answers, Chosen, Converted, Converter, deciding, log_manifest, no_answers, nothing_found, options, settings,
    with_own_names,
};
use earnest_logs::{FindOptions, Log};
use earnest_results::scores::{CompareSettings, Scores};
use earnest_results::{ComparisonNotice, Manifest, Notice, Reporter, RunEvent};

#[derive(Debug, Clone, Default)]
pub struct CompareLogs {
    /// Files and folders, the baseline first. The logs of each model in a path are one side of the comparison.
    pub paths: Vec<PathBuf>,
    pub find: FindOptions,
    /// File of expected answers, for logs without scores.
    pub answers: Option<PathBuf>,
    pub compare: CompareSettings,
}

#[derive(Debug, Clone, Default)]
pub struct LogComparisons {
    pub comparisons: Vec<Comparison>,
    /// Number of logs and samples that could not be read.
    pub left_out: usize,
}

/// Logs of one model, of a task each.
struct Side {
    name: String,
    logs: Vec<Log>,
}

/// Compares the logs of each model with those of the first one, task by task; warns of everything else in which they differ.
///
/// # Errors
/// Fewer than two models, logs that cannot be read, and no question in common.
pub fn compare_logs(settings: &CompareLogs, reporter: &mut dyn Reporter) -> Result<LogComparisons, ReportError> {
    let mut warn = |notice: Notice| reporter.event(&RunEvent::Notice(notice));
    let answers = settings.answers.as_deref().map(Answers::read).transpose()?;
    let mut sides = Vec::new();
    let mut left_out = 0;
    for path in &settings.paths {
        left_out += add_sides(path, settings, &mut sides, &mut warn)?;
    }
    fold_copies(&mut sides, &mut warn)?;
    distinguish(&mut sides);
    let [baseline, _, ..] = &sides[..] else {
        let only = sides.first().map_or("no model", |side| side.name.as_str());
        return Err(ReportError::setting(format!("there are logs of {only} alone"))
            .hint("name the logs of another model too, or those of one model in two folders"));
    };
    let tasks = common_tasks(&sides, &mut warn)?;
    let chosen = Chosen {
        deciding: settings.compare.chosen.as_deref(),
        cluster: settings.compare.cluster.as_deref(),
        answers: answers.as_ref(),
    };
    let mut scores = Vec::new();
    for side in &sides {
        let (read, refused) = read(side, tasks.as_ref(), chosen, &settings.compare, &mut warn)?;
        scores.push(read);
        left_out += refused;
    }
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    check_numbers(&names, &scores)?;
    check_clusters(&names, &scores, &settings.compare)?;
    let mut comparisons = compare(&names, &scores);
    warn_of_originals(&comparisons, &scores, &mut warn);
    for (comparison, side) in comparisons.iter_mut().zip(&sides[1..]) {
        check_common(comparison, || {
            ReportError::setting(format!("the logs of {} and {} have no question in common", baseline.name, side.name))
        })?;
        for (one, other) in pairs(baseline, side, tasks.as_ref()) {
            for change in differing_settings(&facts(one), &facts(other)) {
                if !comparison.settings.contains(&change) {
                    comparison.settings.push(change);
                }
            }
        }
        warn_of_settings(comparison, &mut warn);
    }
    Ok(LogComparisons { comparisons, left_out })
}

/// Adds the logs of a path, a side for each model; returns the number of logs that could not be read.
fn add_sides(
    path: &PathBuf,
    settings: &CompareLogs,
    sides: &mut Vec<Side>,
    warn: &mut impl FnMut(Notice),
) -> Result<usize, ReportError> {
    // What a table does not say of itself: its file stands for the model.
    let named = FindOptions {
        model: settings.find.model.clone().or_else(|| Some(path.display().to_string())),
        task: settings.find.task.clone().or_else(|| settings.compare.task.clone()),
        ..settings.find.clone()
    };
    let mut found = earnest_logs::find(std::slice::from_ref(path), &named)?;
    found.logs.iter_mut().for_each(|log| log.card = with_own_names(&log.card));
    for error in &found.refused {
        warn(ComparisonNotice::LogLeftOut { problem: error.to_string() }.into());
    }
    let all: BTreeSet<String> = found.logs.iter().map(|log| log.card.task.clone()).collect();
    let begin = sides.len();
    for log in found.logs {
        if settings.compare.task.as_ref().is_some_and(|task| *task != log.card.task) {
            continue;
        }
        let index =
            sides[begin..].iter().position(|side| side.logs.iter().any(|known| known.card.model == log.card.model));
        match index {
            Some(index) => {
                let side = &mut sides[begin + index];
                if side.logs.iter().any(|known| known.card.task == log.card.task) {
                    return Err(ReportError::setting(format!(
                        "{} has two logs of {} on {}",
                        path.display(),
                        log.card.model,
                        log.card.task
                    ))
                    .hint("name the file of the one to compare, or import them"));
                }
                side.logs.push(log);
            }
            None => sides.push(Side { name: log.card.model.clone(), logs: vec![log] }),
        }
    }
    match (&settings.compare.task, sides.len() > begin) {
        (_, true) => Ok(found.refused.len()),
        (Some(task), false) if !all.is_empty() => {
            let tasks: Vec<&str> = all.iter().map(String::as_str).collect();
            Err(ReportError::setting(format!("{} has no log of {task}", path.display()))
                .hint(format!("it has logs of {}", tasks.join(", "))))
        }
        _ => Err(nothing_found(std::slice::from_ref(path)).into()),
    }
}

/// Leaves out sides that have the same logs as an earlier one of the same model: a path named twice, or a copy.
fn fold_copies(sides: &mut Vec<Side>, warn: &mut impl FnMut(Notice)) -> Result<(), ReportError> {
    let mut kept: Vec<(Side, BTreeSet<String>)> = Vec::new();
    for side in sides.drain(..) {
        let may_be_copy = |known: &Side| known.name == side.name && known.logs.len() == side.logs.len();
        // Content is read only where it can be the same.
        let alike: Vec<usize> =
            kept.iter().enumerate().filter(|(_, (known, _))| may_be_copy(known)).map(|(at, _)| at).collect();
        let mut content = BTreeSet::new();
        if !alike.is_empty() {
            content = content_of(&side)?;
            for at in &alike {
                if kept[*at].1.is_empty() {
                    kept[*at].1 = content_of(&kept[*at].0)?;
                }
            }
        }
        match alike.into_iter().find(|at| kept[*at].1 == content) {
            Some(_) => warn(ComparisonNotice::NamedTwice { model: side.name }.into()),
            None => kept.push((side, content)),
        }
    }
    sides.extend(kept.into_iter().map(|(side, _)| side));
    Ok(())
}

/// Task and digest of each log.
fn content_of(side: &Side) -> Result<BTreeSet<String>, ReportError> {
    side.logs.iter().map(|log| Ok(format!("{}\n{}", log.card.task, log.sha256()?))).collect()
}

/// Adds the place of the log to the names of models that are named alike.
fn distinguish(sides: &mut [Side]) {
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    for side in sides {
        if names.iter().filter(|name| **name == side.name).count() > 1
            && let Some(file) = side.logs.first().and_then(|log| log.card.files.first())
        {
            side.name = format!("{} ({})", side.name, file.display());
        }
    }
}

/// Tasks that every side has; none where each side has one log, of whatever name.
fn common_tasks(sides: &[Side], warn: &mut impl FnMut(Notice)) -> Result<Option<BTreeSet<String>>, ReportError> {
    let tasks_of = |side: &Side| side.logs.iter().map(|log| log.card.task.clone()).collect::<BTreeSet<String>>();
    let all: Vec<BTreeSet<String>> = sides.iter().map(tasks_of).collect();
    let common = all.iter().skip(1).fold(all[0].clone(), |common, tasks| &common & tasks);
    if common.is_empty() {
        if sides.iter().all(|side| side.logs.len() == 1) {
            return Ok(None);
        }
        let names: Vec<String> = sides
            .iter()
            .zip(&all)
            .map(|(side, tasks)| format!("{} has {}", side.name, tasks.iter().cloned().collect::<Vec<_>>().join(", ")))
            .collect();
        return Err(ReportError::setting(format!("the logs have no task in common: {}", names.join("; "))).hint(
            "the setting `task` picks the models that have one; two files of two tasks are compared by their questions",
        ));
    }
    for (side, tasks) in sides.iter().zip(&all) {
        let others: Vec<String> = tasks.difference(&common).cloned().collect();
        if !others.is_empty() {
            warn(ComparisonNotice::OwnTasks { model: side.name.clone(), tasks: others }.into());
        }
    }
    Ok(Some(common))
}

/// Logs of two sides that are compared with each other.
fn pairs<'a>(
    one: &'a Side,
    other: &'a Side,
    tasks: Option<&'a BTreeSet<String>>,
) -> impl Iterator<Item = (&'a Log, &'a Log)> {
    let wanted = move |log: &&Log| tasks.is_none_or(|tasks| tasks.contains(&log.card.task));
    one.logs.iter().filter(wanted).filter_map(move |log| {
        let same = |other: &&Log| tasks.is_none() || other.card.task == log.card.task;
        other.logs.iter().find(same).map(|other| (log, other))
    })
}

/// A manifest with what the log says.
fn facts(log: &Log) -> Manifest {
    let options = options(&log.card, String::new(), None, Chosen::default());
    log_manifest(&log.card, settings(&log.card, options, 1))
}

/// Reads the scores of a side.
fn read(
    side: &Side,
    tasks: Option<&BTreeSet<String>>,
    chosen: Chosen<'_>,
    settings: &CompareSettings,
    warn: &mut impl FnMut(Notice),
) -> Result<(Scores, usize), ReportError> {
    let mut left_out = 0;
    let mut scores =
        Scores::default().of_log(side.logs.first().map(|log| log.card.tool)).clustered_by(settings.cluster.clone());
    let wanted: Vec<&Log> =
        side.logs.iter().filter(|log| tasks.is_none_or(|tasks| tasks.contains(&log.card.task))).collect();
    for log in &wanted {
        let card = &log.card;
        let scorer = deciding(log, chosen)?;
        // Ids are those of one task.
        let prefix = if wanted.len() > 1 { format!("{}/", card.task) } else { String::new() };
        scores.next_task(prefix, scorer.clone());
        let run = side.name.clone();
        let converter =
            Converter { run, card, deciding: scorer.as_deref(), cluster: chosen.cluster, answers: chosen.answers };
        let (mut with_answer, mut without_answer) = (0, 0);
        let refused = log.samples(&mut |sample| {
            let Converted { item, sample, .. } = converter.convert(sample);
            let count = if sample.gold.is_empty() { &mut without_answer } else { &mut with_answer };
            *count += 1;
            scores.add(&sample);
            scores.read_question(&item);
            Ok(())
        })?;
        if chosen.answers.is_some() && with_answer == 0 && without_answer > 0 {
            return Err(no_answers(card).into());
        }
        left_out += refused.count;
        if let Some(first) = refused.first.first() {
            let (model, samples, first) = (side.name.clone(), refused.count, first.to_string());
            warn(ComparisonNotice::SamplesLeftOut { model, samples, first }.into());
        }
    }
    scores.normalise_questions();
    if scores.without_score > 0 {
        let (model, samples) = (side.name.clone(), scores.without_score);
        warn(ComparisonNotice::WithoutScore { model, samples }.into());
    }
    Ok((scores, left_out))
}
