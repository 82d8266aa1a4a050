//! Summary cards and notes.
use std::fmt::Write;

use super::WRITES;
use super::format::percent;
use crate::import::card_of;
use crate::report::Document;
use crate::report::page::ReportRun;
use crate::report::plot::escape;
use crate::report::text::{sampling, tool, warnings};
use crate::run::Status;

/// Renders a card for each run and the notes on all of them.
pub fn summary(runs: &[ReportRun]) -> String {
    let cards = runs.iter().enumerate().map(|(place, run)| card(place, run));
    format!("<div class=\"cards\">{}</div>{}", cards.collect::<String>(), notes(runs))
}

/// Renders the main result of a run and the facts behind it.
fn card(place: usize, run: &ReportRun) -> String {
    let mut html = String::new();
    let document = &run.document;
    let all = document.summary.rows.last();
    let main = all.and_then(|row| document.main_value(row));
    write!(
        html,
        "<article class=\"card\" data-run=\"{place}\"><h3><span class=\"swatch s{}\"></span>{}</h3>",
        place % 8,
        escape(&run.label)
    )
    .expect(WRITES);
    if let Some((name, value)) = main {
        // A column named after its rule needs no second mention.
        let by = document.readings.as_ref().filter(|readings| !readings.primary.contains(name));
        let name = by.map_or_else(|| name.clone(), |readings| format!("{name}, read by {}", readings.decides()));
        write!(
            html,
            "<p class=\"big\">{} <small>% {}</small></p><p class=\"dim\">95 % interval {} to {}</p>",
            percent(value.estimate),
            escape(&name),
            percent(value.low),
            percent(value.high)
        )
        .expect(WRITES);
    }
    html.push_str("<dl>");
    for (name, value) in facts(document) {
        write!(html, "<dt>{name}</dt><dd>{}</dd>", escape(&value)).expect(WRITES);
    }
    html.push_str("</dl></article>");
    html
}

/// Facts of a card, by name.
fn facts(document: &Document) -> Vec<(&'static str, String)> {
    let (manifest, totals) = (&document.manifest, &document.totals);
    let settings = &manifest.settings;
    let answered = totals.recorded - totals.failed;
    let mut facts = vec![
        ("suite", format!("{} {}", settings.suite, settings.suite_version)),
        ("samples", format!("{} of {} planned", totals.recorded, totals.planned)),
        (
            "prompts",
            if let Some(card) = card_of(settings) {
                format!("log of {}; scores are the tool's own", tool(&card))
            } else if settings.imported() {
                format!("{}; imported completions", settings.prompt_mode)
            } else {
                format!("{}, {}", settings.prompt_mode, sampling(&settings.generation.sampling))
            },
        ),
        ("no answer", totals.failed.to_string()),
        (
            "cut by the budget",
            format!("{} ({} %)", totals.truncated, percent(totals.truncated as f64 / answered.max(1) as f64)),
        ),
        (
            "tokens",
            // Imported completions have texts, but no token ids.
            if settings.imported() && totals.completion_tokens == 0 {
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
fn notes(runs: &[ReportRun]) -> String {
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
    let mut html = String::from("<h3>Notes on these numbers</h3><ul class=\"notes\">");
    for (note, labels) in remarks {
        let whose =
            if labels.len() == runs.len() { String::new() } else { format!("<b>{}:</b> ", escape(&labels.join(", "))) };
        write!(html, "<li>{whose}{}</li>", escape(&note)).expect(WRITES);
    }
    html + "</ul>"
}
