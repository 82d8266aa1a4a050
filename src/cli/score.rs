//! `earnest score`: stored completions under today's rules.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::ScoreArgs;
use super::{Exit, catalogue, results};
use earnest_eval::evaluate::free_name;
use earnest_eval::run::store::{BULK_ROWS, Filter, RunRecord, Store};
use earnest_eval::run::{Manifest, RunSettings, SIDE_BY_SIDE, Sample, Stored, score_completions};
use earnest_tasks::suite::{FINAL, Score, Suite};

/// What changed.
#[derive(Debug, Default, Serialize)]
struct Changes {
    run: String,
    /// The suite's version that the run was scored with, and today's.
    version: String,
    today: String,
    /// The rules that decided then and decide now.
    primary: String,
    primary_now: String,
    scored: usize,
    correct_before: usize,
    correct_now: usize,
    /// Scores that differ in anything that was there before: extraction, a matcher, a metric, the reason.
    changed: usize,
    /// Samples that became right, and wrong.
    gained: usize,
    lost: usize,
    /// Matchers and metrics that changed, with the number of samples.
    rules: BTreeMap<String, usize>,
    /// Matchers that did not exist when the run was scored.
    new_rules: BTreeMap<String, NewRule>,
    /// Metrics that did not.
    new_metrics: BTreeSet<String>,
    /// The first changes of right and wrong.
    flips: Vec<Flip>,
    /// The run that keeps the new scores.
    saved: Option<String>,
}

/// A matcher that is new: samples that it judged, and those that it found right.
#[derive(Debug, Default, Serialize)]
struct NewRule {
    samples: usize,
    right: usize,
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
    let store = results::open(&args.results.folder, printer)?;
    let run = store.run(&args.run)?;
    let then = catalogue::stored(&run.manifest.settings)?;
    let settings = with_profile(&run.manifest.settings, then.as_ref(), args.profile.as_deref())?;
    let primary_then = then.primary().join(" and ");
    let suite = match args.profile {
        Some(_) => catalogue::stored(&settings)?,
        None => then,
    };
    let mut changes = Changes {
        run: run.manifest.run.clone(),
        version: run.manifest.settings.suite_version.clone(),
        today: suite.version().to_owned(),
        primary: primary_then,
        primary_now: suite.primary().join(" and "),
        ..Changes::default()
    };
    rescore(&store, &run, suite.as_ref(), |before, after| {
        note(&mut changes, before, after, args.limit);
        Ok(())
    })?;
    if args.save {
        changes.saved = Some(save(&store, &run, settings, suite.as_ref())?);
    }
    if args.json {
        printer.json(&changes)?;
    } else {
        printer.result(&screen(&changes))?;
    }
    Ok(Exit::Success)
}

/// The settings with another primary rule, if one is named.
fn with_profile(settings: &RunSettings, suite: &dyn Suite, name: Option<&str>) -> Result<RunSettings, CliError> {
    let mut settings = settings.clone();
    let Some(name) = name else { return Ok(settings) };
    catalogue::check_profile(&settings.suite, name, &suite.profiles())?;
    if let serde_json::Value::Object(fields) = &mut settings.suite_options {
        fields.insert("profile".into(), name.into());
        // As the suite spells it: its usual rule is not named.
        let spelt = catalogue::stored(&settings)?.options();
        let serde_json::Value::Object(fields) = &mut settings.suite_options else { return Ok(settings) };
        match spelt.get("profile") {
            Some(profile) => fields.insert("profile".into(), profile.clone()),
            None => fields.remove("profile"),
        };
    }
    Ok(settings)
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
        let mut scores = score_completions(suite, manifest.opened_thinking(), &stored).into_iter();
        for (place, _, before) in &read {
            let mut after = before.clone();
            if before.completion.is_some() {
                after.score = scores.next();
            }
            each(before, (*place, after))?;
        }
    }
}

fn note(changes: &mut Changes, before: &Sample, (_, after): (usize, Sample), limit: usize) {
    let (Some(old), Some(new)) = (&before.score, &after.score) else { return };
    changes.scored += 1;
    changes.correct_before += usize::from(old.correct);
    changes.correct_now += usize::from(new.correct);
    changes.changed += usize::from(changed(old, new, changes.primary == changes.primary_now));
    for (name, matched) in new.rules.iter() {
        match old.rules.get(name) {
            Some(before) if before == matched => {}
            Some(_) => *changes.rules.entry(name.to_owned()).or_default() += 1,
            None => {
                let rule = changes.new_rules.entry(name.to_owned()).or_default();
                rule.samples += 1;
                rule.right += usize::from(matched);
            }
        }
    }
    for (name, value) in new.metrics.iter() {
        match old.metrics.get(name) {
            Some(before) if before == value => {}
            Some(_) => *changes.rules.entry(name.to_owned()).or_default() += 1,
            None => drop(changes.new_metrics.insert(name.to_owned())),
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
                extracted_before: old.answer.clone(),
                extracted_now: new.answer.clone(),
            });
        }
    }
}

/// True if a rule or a metric of before says something else now. What the deciding rule took as the answer is compared only
/// where the same rule decides.
fn changed(old: &Score, new: &Score, same_rule: bool) -> bool {
    let mut known = new.clone();
    known.rules.retain(|name, _| old.rules.contains(name));
    known.metrics.retain(|name, _| old.metrics.contains(name));
    if same_rule { !old.agrees_with(&known) } else { known.rules != old.rules || known.metrics != old.metrics }
}

/// Writes the new scores as a run of their own, so that the old ones stay readable.
fn save(store: &Store, run: &RunRecord, mut settings: RunSettings, suite: &dyn Suite) -> Result<String, CliError> {
    settings.suite_version = suite.version().to_owned();
    settings.earnest = env!("CARGO_PKG_VERSION").to_owned();
    let base = format!("{}-scored", run.manifest.run);
    let (_lock, name) = free_name(store, &base)?;
    let settings_sha256 = settings.sha256();
    let manifest = Manifest { run: name.clone(), settings, settings_sha256, ..run.manifest.clone() };
    let planned = manifest.plan().len(suite);
    let target = store.begin(&manifest, planned)?;
    match store.has_questions(run)? {
        true => store.copy_questions(store, run, &target)?,
        false => store.keep_questions(&target, suite)?,
    }
    let mut writer = store.writer(&target).batches_of(BULK_ROWS);
    rescore(store, run, suite, |_, (place, after)| {
        writer.push(place, Sample { run: name.clone(), ..after }).map_err(CliError::from)
    })?;
    writer.write()?;
    results::conclude(store, &target, suite)?;
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
    let by = |rule: &str| if rule.is_empty() { String::new() } else { format!(" by {rule}") };
    let right =
        |name: &str, count: usize, rule: &str| format!("{name:<14} {:>6.1} % ({count}){}", share(count), by(rule));
    line(right("right before", changes.correct_before, &changes.primary));
    line(right("right now", changes.correct_now, &changes.primary_now));
    for (rule, NewRule { samples, right }) in &changes.new_rules {
        line(format!("new: {rule}, right on {right} of {samples}"));
    }
    if !changes.new_metrics.is_empty() {
        let names: Vec<&str> = changes.new_metrics.iter().map(String::as_str).collect();
        line(format!("new numbers: {}", names.join(", ")));
    }
    let same_rule = changes.primary_now == changes.primary;
    if !same_rule {
        line(format!(
            "{} decides instead of {}: {} became right, {} became wrong.",
            changes.primary_now, changes.primary, changes.gained, changes.lost
        ));
    }
    if changes.changed == 0 {
        line(if same_rule { "No verdict changed.".to_owned() } else { "No rule changed.".to_owned() });
    } else {
        line(match same_rule {
            true => format!(
                "{} verdicts changed: {} became right, {} became wrong.",
                changes.changed, changes.gained, changes.lost
            ),
            false => format!("{} samples on which rules or metrics changed:", changes.changed),
        });
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
    } else if changes.changed > 0 || !changes.new_rules.is_empty() {
        line("--save keeps the new verdicts as a run of their own.".to_owned());
    }
    if changes.new_rules.contains_key(FINAL) && changes.primary_now == changes.primary {
        line(format!("--profile {FINAL} lets the final answer decide what is right."));
    }
    text
}
