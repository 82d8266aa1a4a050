//! Heat maps of tasks by lengths.
use std::fmt::Write;

use super::WRITES;
use super::summary::{key, ranked};
use crate::page::ReportRun;
use crate::page::figures::heats;
use crate::plot::{Figure, Heat, LARGEST, escape, heat_columns, heat_key};

/// Renders the first heat map of every run; of several runs one is shown at a time, chosen without a script.
pub fn heat(runs: &[ReportRun]) -> String {
    let maps = ranked(runs).into_iter();
    let maps = maps.filter_map(|(place, run)| Some((place, run, heats(run).into_iter().next()?)));
    let maps: Vec<(usize, &ReportRun, Heat)> = maps.collect();
    if let [(place, _, only)] = &maps[..] {
        return format!("<div data-run=\"{place}\">{}</div>", drawn(only));
    }
    let mut html = String::new();
    for (nth, (place, run, map)) in maps.iter().enumerate() {
        let checked = if nth == 0 { " checked" } else { "" };
        write!(
            html,
            "<input type=\"radio\" name=\"heat\" id=\"heat-{place}\" data-run=\"{place}\" autocomplete=\"off\"{checked}>\
             <label for=\"heat-{place}\" data-run=\"{place}\">{}{}</label><div class=\"tab\" data-run=\"{place}\">{}</div>",
            key(*place),
            escape(&run.label),
            drawn(map)
        )
        .expect(WRITES);
    }
    if html.is_empty() { html } else { format!("<div class=\"tabs\">{html}</div>") }
}

/// Renders the heat maps of further metrics.
pub fn further_heat(runs: &[ReportRun]) -> String {
    let maps = runs.iter().enumerate().flat_map(|(place, run)| {
        heats(run).into_iter().skip(1).map(move |map| format!("<div data-run=\"{place}\">{}</div>", drawn(&map)))
    });
    maps.collect()
}

/// Width in pixels below which a single panel scrolls.
const LEAST: f64 = 660.0;

fn drawn(map: &Heat) -> String {
    let columns = heat_columns(map);
    // A map of one panel is as wide as the page, and scrolls where that is narrow; one of few lengths is no larger than it reads well.
    let class = if columns.len() == 1 { "heat single scroll" } else { "heat" };
    let panel = |column: &Figure| {
        let (least, most) = (column.width.min(LEAST), LARGEST * column.width);
        let least = if columns.len() == 1 { format!(";min-width:{least:.0}px") } else { String::new() };
        format!("<div style=\"max-width:{most:.0}px{least}\">{}</div>", column.inline())
    };
    let panels: String = columns.iter().map(panel).collect();
    format!(
        "<figure class=\"map\"><figcaption>{}</figcaption><div class=\"{class}\">{panels}</div><div class=\"scale\">{}</div></figure>",
        escape(&map.title),
        heat_key(map).inline()
    )
}
