//! The result of each run, facts and notes.
use earnest_results::{Document, Origin, Status, card_of};
use std::collections::BTreeSet;
use std::fmt::Write;

use super::WRITES;
use super::format::percent;
use crate::Comparison;
use crate::page::ReportRun;
use crate::plot::{STYLES, escape, number};
use crate::text::{sampling, tool, warnings};
use earnest_results::runs::started;
use earnest_tasks::suite::Interval;

/// Renders the main result of every run, the best first.
pub fn headline(runs: &[ReportRun]) -> String {
    // What all results have in common is said once.
    let mut common: Vec<String> = runs.iter().map(what).collect();
    common.dedup();
    let is_common = common.len() == 1 && runs.len() > 1;
    let class = if runs.len() > 4 { "headline many" } else { "headline" };
    let rows: String = ranked(runs).into_iter().map(|(place, run)| row(place, run, runs.len(), !is_common)).collect();
    let common = if is_common { format!("<p class=\"lead\">{}</p>", escape(&common[0])) } else { String::new() };
    format!("<div class=\"{class}\">{rows}</div>{common}")
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

/// Renders when the runs were made, and the verdict of each comparison in the words of `earnest compare`.
pub fn verdicts(runs: &[ReportRun], comparisons: &[Comparison]) -> String {
    // The day is that of the runs, so that a report does not change with the day on which it is written.
    let day = |run: &ReportRun| started(&run.document.manifest)?.get(..10).map(str::to_owned);
    let is_day = |day: &String| day.chars().all(|c| c.is_ascii_digit() || c == '-');
    let days: BTreeSet<String> = runs.iter().filter_map(day).filter(is_day).collect();
    let date = match (days.first(), days.last()) {
        (Some(first), Some(last)) if first != last => format!("Runs of {first} to {last} (UTC)."),
        (Some(day), _) => format!("{} of {day} (UTC).", if runs.len() == 1 { "Run" } else { "Runs" }),
        _ => String::new(),
    };
    let several = comparisons.len() > 1;
    let said = comparisons.iter().map(|one| {
        // Not every verdict names the runs.
        let which = if several { format!("<b>{}</b>: ", escape(&one.run)) } else { String::new() };
        format!("<p class=\"verdict\">{which}{}</p>", escape(&one.conclusion()))
    });
    format!("<p class=\"dim date\">{date}</p>{}", said.collect::<String>())
}

/// Returns the runs with their places, the best first.
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
        // A column named after its rule needs no second mention.
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

/// Renders the key of a run: the marks of its bars and of its curves.
pub fn key(place: usize) -> String {
    format!(
        "<svg class=\"key\" viewBox=\"0 0 34 12\" width=\"34\" height=\"12\" aria-hidden=\"true\"><g class=\"c{}\">\
         <rect class=\"bar\" y=\"1\" width=\"8\" height=\"10\"/><line class=\"curve\" x1=\"12\" y1=\"6\" x2=\"34\" y2=\"6\"/>\
         <circle class=\"dot\" cx=\"23\" cy=\"6\" r=\"3\"/></g></svg>",
        place % STYLES
    )
}

/// Renders the main result of a run with its interval, and what it is if `says_what`.
fn row(place: usize, run: &ReportRun, runs: usize, says_what: bool) -> String {
    let mut said = Vec::new();
    let mut value = "<span class=\"number\">–</span>".to_owned();
    if let Some((_, found)) = main(run) {
        value =
            format!("<span class=\"number\">{} <small>%</small></span>{}", percent(found.estimate), bar(place, found));
        if found.low < found.high {
            said.push(format!("95 % interval {} to {}", percent(found.low), percent(found.high)));
        }
    }
    if run.document.manifest.settings.is_adaptive() {
        said.push(
            "no share of right answers: most questions of a numeracy profile are near the limits of its model, which are below"
                .to_owned(),
        );
    }
    if says_what {
        said.push(escape(&what(run)));
    }
    if place == 0 && runs > 1 {
        said.push("<b>baseline</b>".to_owned());
    }
    if run.document.manifest.status != Status::Finished {
        said.push("<b>not finished: numbers will change</b>".to_owned());
    }
    let key = if runs > 1 { key(place) } else { String::new() };
    format!(
        "<div class=\"run\" data-run=\"{place}\"><h3>{key}{}</h3><p class=\"big\">{value}</p><p class=\"dim\">{}</p></div>",
        escape(&run.label),
        said.join(" · ")
    )
}

/// Draws a share from 0 to 100 % with its interval.
fn bar(place: usize, value: &Interval) -> String {
    let part = |value: f64| number(100.0 * value.clamp(0.0, 1.0));
    let reach = if value.low < value.high {
        let width = number((100.0 * (value.high.min(1.0) - value.low.max(0.0))).max(0.3));
        format!("<rect class=\"reach\" x=\"{}\" y=\"6\" width=\"{width}\" height=\"4\"/>", part(value.low))
    } else {
        String::new()
    };
    format!(
        "<svg class=\"share\" viewBox=\"0 0 100 16\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"none\" width=\"100\" height=\"16\"/>\
         <g class=\"c{}\"><rect class=\"bar\" width=\"{}\" height=\"16\"/></g>{reach}</svg>",
        place % STYLES,
        part(value.estimate)
    )
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
                format!("{}, {}", settings.prompt_mode, sampling(&settings.generation.sampling))
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
pub fn notes(runs: &[ReportRun]) -> String {
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
    if remarks.is_empty() {
        return String::new();
    }
    let mut html = String::from("<ul class=\"notes\">");
    for (note, labels) in remarks {
        let whose =
            if labels.len() == runs.len() { String::new() } else { format!("<b>{}:</b> ", escape(&labels.join(", "))) };
        write!(html, "<li>{whose}{}</li>", escape(&note)).expect(WRITES);
    }
    html + "</ul>"
}
