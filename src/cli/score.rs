//! `earnest score`: stored completions under today's rules.
use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::ScoreArgs;
use super::{Exit, catalogue, results};
use crate::run::store::{BULK_ROWS, Filter, RunRecord, Store};
use crate::run::{Manifest, SIDE_BY_SIDE, Sample, Stored, judge_all};
use crate::suite::Suite;

/// What changed.
#[derive(Debug, Default, Serialize)]
struct Changes {
    run: String,
    /// The suite's version that the run was scored with, and today's.
    version: String,
    today: String,
    scored: usize,
    correct_before: usize,
    correct_now: usize,
    /// Verdicts that differ in anything: extraction, a matcher, a metric, the reason.
    changed: usize,
    /// Samples that became right, and wrong.
    gained: usize,
    lost: usize,
    /// Matchers and metrics that changed, with the number of samples.
    rules: BTreeMap<String, usize>,
    /// The first changes of right and wrong.
    flips: Vec<Flip>,
    /// The run that keeps the new verdicts.
    saved: Option<String>,
}

#[derive(Debug, Serialize)]
struct Flip {
    item: String,
    sample: u32,
    now_correct: bool,
    extracted_before: Option<String>,
    extracted_now: Option<String>,
}

/// Scores again.
pub fn execute(args: &ScoreArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results, printer)?;
    let run = store.run(&args.run)?;
    let suite = catalogue::stored(&run.manifest.settings)?;
    let mut changes = Changes {
        run: run.manifest.run.clone(),
        version: run.manifest.settings.suite_version.clone(),
        today: suite.version().to_owned(),
        ..Changes::default()
    };
    rescore(&store, &run, suite.as_ref(), |before, after| {
        note(&mut changes, before, after, args.limit);
        Ok(())
    })?;
    if args.save {
        changes.saved = Some(save(&store, &run, suite.as_ref())?);
    }
    if args.json {
        printer.json(&changes)?;
    } else {
        printer.result(&screen(&changes))?;
    }
    Ok(Exit::Success)
}

/// Walks plan and rows side by side; every sample with a completion is judged again. `each` gets them in the plan's order.
fn rescore(
    store: &Store,
    run: &RunRecord,
    suite: &dyn Suite,
    mut each: impl FnMut(&Sample, (usize, Sample)) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let manifest = &run.manifest;
    let mut plan = manifest.plan().walk(suite);
    let mut samples = store.samples(run, Filter::default()).placed();
    loop {
        let mut read = Vec::new();
        for sample in samples.by_ref().take(SIDE_BY_SIDE) {
            let (place, before) = sample?;
            let planned = plan.find(|planned| planned.index >= place);
            let item = planned.filter(|planned| planned.index == place && planned.item.id == before.item);
            let Some(planned) = item else {
                let message =
                    format!("{} has the sample {}, which today's suite does not ask", manifest.run, before.item);
                return Err(CliError::new(Exit::Results, message)
                    .help("the suite's items changed since; only an earlier version can score this run"));
            };
            read.push((place, planned.item, before));
        }
        if read.is_empty() {
            return Ok(());
        }
        let stored: Vec<Stored<'_>> = read
            .iter()
            .filter_map(|(_, item, before)| {
                let completion = before.completion.as_ref()?.text.as_str();
                Some(Stored { item, completion, truncated: before.truncated() })
            })
            .collect();
        let mut verdicts = judge_all(suite, manifest.opened_thinking(), &stored).into_iter();
        for (place, _, before) in &read {
            let mut after = before.clone();
            if before.completion.is_some() {
                after.verdict = verdicts.next();
            }
            each(before, (*place, after))?;
        }
    }
}

fn note(changes: &mut Changes, before: &Sample, (_, after): (usize, Sample), limit: usize) {
    let (Some(old), Some(new)) = (&before.verdict, &after.verdict) else { return };
    changes.scored += 1;
    changes.correct_before += usize::from(old.correct);
    changes.correct_now += usize::from(new.correct);
    changes.changed += usize::from(!old.agrees_with(new));
    for (name, matched) in &new.matchers {
        if old.matchers.get(name) != Some(matched) {
            *changes.rules.entry(name.clone()).or_default() += 1;
        }
    }
    for (name, value) in &new.metrics {
        if old.metrics.get(name) != Some(value) {
            *changes.rules.entry(name.clone()).or_default() += 1;
        }
    }
    if old.correct != new.correct {
        changes.gained += usize::from(new.correct);
        changes.lost += usize::from(old.correct);
        if changes.flips.len() < limit {
            changes.flips.push(Flip {
                item: before.item.clone(),
                sample: before.sample,
                now_correct: new.correct,
                extracted_before: old.extracted.clone(),
                extracted_now: new.extracted.clone(),
            });
        }
    }
}

/// Writes the new verdicts as a run of their own, so that the old ones stay readable.
fn save(store: &Store, run: &RunRecord, suite: &dyn Suite) -> Result<String, CliError> {
    let mut settings = run.manifest.settings.clone();
    settings.suite_version = suite.version().to_owned();
    settings.earnest = env!("CARGO_PKG_VERSION").to_owned();
    let base = format!("{}-scored", run.manifest.run);
    let (_lock, name) = results::free_name(store, &base)?;
    let settings_sha256 = settings.sha256();
    let manifest = Manifest { run: name.clone(), settings, settings_sha256, ..run.manifest.clone() };
    let planned = manifest.plan().len(suite);
    let target = store.begin(&manifest, planned)?;
    let mut writer = store.writer(&target).batches_of(BULK_ROWS);
    rescore(store, run, suite, |_, (place, after)| {
        writer.push(place, Sample { run: name.clone(), ..after }).map_err(CliError::from)
    })?;
    writer.write()?;
    Ok(name)
}

fn screen(changes: &Changes) -> String {
    let share = |count: usize| 100.0 * count as f64 / changes.scored.max(1) as f64;
    let mut text = format!(
        "{}: {} completions, scored with {} {}\n",
        changes.run,
        changes.scored,
        if changes.version == changes.today { "the same version" } else { "version" },
        if changes.version == changes.today {
            changes.version.clone()
        } else {
            format!("{} then, {} now", changes.version, changes.today)
        },
    );
    let mut line = |words: String| writeln!(text, "{words}").expect("writing to a String cannot fail");
    if changes.scored == 0 {
        line("There is nothing to score: the run has no completion.".to_owned());
        return text;
    }
    line(format!("right before   {:>6.1} % ({})", share(changes.correct_before), changes.correct_before));
    line(format!("right now      {:>6.1} % ({})", share(changes.correct_now), changes.correct_now));
    if changes.changed == 0 {
        line("No verdict changed.".to_owned());
    } else {
        line(format!(
            "{} verdicts changed: {} became right, {} became wrong.",
            changes.changed, changes.gained, changes.lost
        ));
        for (rule, count) in &changes.rules {
            line(format!("  {rule}: {count}"));
        }
    }
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    for flip in &changes.flips {
        let now = if flip.now_correct { "right" } else { "wrong" };
        let (before, after) = (shown(&flip.extracted_before), shown(&flip.extracted_now));
        line(format!("  {} is {now} now: extracted {before} before, {after} now", flip.item));
    }
    if let Some(saved) = &changes.saved {
        line(format!("The new verdicts are in the run {saved}."));
    } else if changes.changed > 0 {
        line("--save keeps the new verdicts as a run of their own.".to_owned());
    }
    text
}
