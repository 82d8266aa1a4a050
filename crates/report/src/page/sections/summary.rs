//! The result of each run, facts and notes.
use earnest_results::{Document, Origin, Status, card_of};
use minijinja::{Value, context};
use std::collections::BTreeSet;

use super::format::percent;
use crate::Comparison;
use crate::markup::{Markup, html};
use crate::page::ReportRun;
use crate::page::differences::holds;
use crate::page::run::{RIGHT, outcome};
use crate::text::{sampling, tool, warnings};
use earnest_results::started;
use earnest_tasks::agreeing;
use earnest_tasks::suite::Interval;

/// Renders the title, the verdicts and the main result of every run, the best first.
pub fn results(runs: &[ReportRun], comparisons: &[Comparison]) -> Markup {
    // What all results have in common is said once.
    let mut common: Vec<String> = runs.iter().map(what).collect();
    common.dedup();
    let common = common.pop().filter(|_| common.is_empty() && runs.len() > 1);
    let row = |(index, run)| row(index, run, runs.len(), common.is_none());
    let rows: Vec<Value> = ranked(runs).into_iter().map(row).collect();
    // Not every verdict names the runs. Of many runs the differences are a section of their own.
    let verdicts: Vec<_> = match comparisons.len() {
        0..=VERDICTS => comparisons.iter().map(|one| (one.run.clone(), one.conclusion())).collect(),
        _ => vec![(String::new(), told_apart(runs, comparisons))],
    };
    html("results.html", context!(title => title(runs), date => date(runs), verdicts, rows, common))
}

/// Verdicts that a page begins with.
const VERDICTS: usize = 2;

/// Number of runs that are better and worse than the first one, and of those that are not told apart from it, in a sentence.
fn told_apart(runs: &[ReportRun], comparisons: &[Comparison]) -> String {
    let (held, open): (Vec<&Comparison>, Vec<&Comparison>) = comparisons.iter().partition(|one| holds(&one.overall));
    let better = held.iter().filter(|one| one.overall.difference > 0.0).count();
    let base = runs.first().map_or("the first", |run| run.label.as_str());
    format!(
        "Of {} runs beside {base}, {better} {} better and {} worse, after Holm's adjustment; {} {} not told apart from it. The differences are below.",
        comparisons.len(),
        agreeing(better, "is", "are"),
        held.len() - better,
        open.len(),
        agreeing(open.len(), "is", "are")
    )
}

/// Returns the title of the page: what was asked, and of whom.
pub fn title(runs: &[ReportRun]) -> String {
    let mut suites: Vec<&str> = runs.iter().map(|run| run.document.manifest.settings.suite.as_str()).collect();
    suites.dedup();
    let suites = suites.join(" and ");
    match runs {
        [] => suites,
        [only] => format!("{suites}: {}", only.label),
        [one, other] => format!("{suites}: {} beside {}", other.label, one.label),
        [first, others @ ..] => format!("{suites}: {} runs beside {}", others.len(), first.label),
    }
}

/// Says when the runs were made.
fn date(runs: &[ReportRun]) -> String {
    // The day is that of the runs, so that a report does not change with the day on which it is written.
    let day = |run: &ReportRun| started(&run.document.manifest)?.get(..10).map(str::to_owned);
    let is_day = |day: &String| day.chars().all(|c| c.is_ascii_digit() || c == '-');
    let days: BTreeSet<String> = runs.iter().filter_map(day).filter(is_day).collect();
    match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!("Runs of {first} to {last} (UTC)."),
        (Some(day), _) => format!("{} of {day} (UTC).", if runs.len() == 1 { "Run" } else { "Runs" }),
        _ => String::new(),
    }
}

/// Returns the runs with their indices, the best first.
pub(super) fn ranked(runs: &[ReportRun]) -> Vec<(usize, &ReportRun)> {
    let mut ranked: Vec<(usize, &ReportRun)> = runs.iter().enumerate().collect();
    let estimate = |run: &ReportRun| main(run).map_or(f64::NEG_INFINITY, |(_, value)| value.estimate);
    ranked.sort_by(|(_, one), (_, other)| estimate(other).total_cmp(&estimate(one)));
    ranked
}

/// Says what the main result of a run is and of how many samples.
fn what(run: &ReportRun) -> String {
    let document = &run.document;
    let (settings, totals) = (&document.manifest.settings, &document.totals);
    let name = main(run).map(|(name, _)| {
        // A column named after its scorer needs no second mention.
        let by = document.readings.as_ref().filter(|readings| !readings.chosen.iter().any(|scorer| scorer == name));
        by.map_or_else(|| format!("{name} · "), |readings| format!("{name}, by scorer {} · ", readings.decides()))
    });
    format!(
        "{}{} {}, {} of {} samples",
        name.unwrap_or_default(),
        settings.suite,
        settings.suite_version,
        totals.recorded,
        totals.planned
    )
}

/// Returns the main result of a run and its name.
fn main(run: &ReportRun) -> Option<(&str, &Interval)> {
    let row = run.document.summary.rows.last()?;
    run.document
        .main_value(row)
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(_, value)| value.estimate.is_finite())
}

/// Main result of a run with its interval, and what it is if `says_what`.
fn row(index: usize, run: &ReportRun, runs: usize, says_what: bool) -> Value {
    let found = main(run).map(|(_, found)| found);
    let mut said = Vec::new();
    if let Some(found) = found.filter(|found| found.low < found.high) {
        said.push((format!("95 % interval {} to {}", percent(found.low), percent(found.high)), false));
    }
    if run.document.manifest.settings.is_adaptive() {
        let why = "no share of right answers: most questions of a numeracy profile are near the limits of its model, which are below";
        said.push((why.to_owned(), false));
    }
    if says_what {
        said.push((what(run), false));
    }
    if index == 0 && runs > 1 {
        said.push(("baseline".to_owned(), true));
    }
    if run.document.manifest.status != Status::Finished {
        said.push(("not finished: numbers will change".to_owned(), true));
    }
    let number = found.map(|found| percent(found.estimate));
    let wrong = run.samples.iter().any(|sample| outcome(sample) != RIGHT);
    context!(index, label => &run.label, number, bar => found.map(bar), said, wrong)
}

/// A share with its interval, where it has one.
fn bar(value: &Interval) -> Value {
    let ends = (value.low < value.high).then_some((value.low, value.high));
    let (low, high) = ends.unzip();
    context!(value => value.estimate, low, high)
}

/// Returns the facts behind a result, by name.
pub(super) fn facts(document: &Document) -> Vec<(&'static str, String)> {
    let (manifest, totals) = (&document.manifest, &document.totals);
    let settings = &manifest.settings;
    let answered = totals.recorded - totals.failed;
    let mut facts = vec![
        ("samples", format!("{} of {} planned", totals.recorded, totals.planned)),
        (
            "prompts",
            if let Some(card) = card_of(settings) {
                format!("log of {}; scores are the tool's own", tool(&card))
            } else if settings.origin() != Origin::Evaluated {
                format!("{}; imported completions", settings.prompt_mode)
            } else {
                format!("{}, {}", settings.prompts(), sampling(&settings.generation.sampling))
            },
        ),
        ("no answer", totals.failed.to_string()),
        ("cut off", format!("{} ({} %)", totals.truncated, percent(totals.truncated as f64 / answered.max(1) as f64))),
        (
            "tokens",
            // Imported completions have texts, but no token ids.
            if settings.origin() != Origin::Evaluated && totals.completion_tokens == 0 {
                "not known".to_owned()
            } else {
                totals.completion_tokens.to_string()
            },
        ),
    ];
    if manifest.generation_s > 0.0 {
        let rate = answered as f64 / manifest.generation_s;
        facts.push(("speed", format!("{rate:.2} samples/s over {:.0} s", manifest.generation_s)));
    }
    if manifest.status != Status::Finished {
        facts.push(("status", "not finished: numbers will change".to_owned()));
    }
    facts
}

/// Renders the notes of all runs; a note that several runs share is shown once.
pub fn notes(runs: &[ReportRun]) -> Markup {
    let mut remarks: Vec<(String, Vec<String>)> = Vec::new();
    for run in runs {
        let notes = run.document.summary.notes.iter().cloned().chain(warnings(&run.document));
        for note in notes {
            match remarks.iter_mut().find(|(known, _)| *known == note) {
                Some((_, labels)) => labels.push(run.label.clone()),
                None => remarks.push((note, vec![run.label.clone()])),
            }
        }
    }
    let whose = |labels: Vec<String>| if labels.len() == runs.len() { String::new() } else { labels.join(", ") };
    // Those of all runs first, then run by run.
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (note, labels) in remarks {
        let whose = whose(labels);
        match groups.iter_mut().find(|(known, _)| *known == whose) {
            Some((_, notes)) => notes.push(note),
            None => groups.push((whose, vec![note])),
        }
    }
    groups.sort_by_key(|(whose, _)| !whose.is_empty());
    html("notes.html", context!(groups))
}
