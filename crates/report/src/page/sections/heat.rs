//! Heat maps of tasks by lengths.
use minijinja::{Value, context};

use super::summary::ranked;
use crate::ReportError;
use crate::markup::{Markup, html, safe};
use crate::page::ReportRun;
use crate::page::figures::heats;
use crate::plot::{Figure, Heat, LARGEST, heat_columns, heat_key};

/// Renders the first heat map of every run; of several runs one is shown at a time, chosen without a script.
pub fn heat(runs: &[ReportRun]) -> Markup {
    let first = |(index, run)| {
        let map = heats(run).into_iter().next()?;
        // A cell leads to its samples, which are in the page.
        Some(placed(index, run, &Heat { samples: Some(format!("#samples?run={index}&")), ..map }))
    };
    let maps = ranked(runs).into_iter().filter_map(first).collect::<Result<Vec<Value>, ReportError>>()?;
    html("heat.html", context!(maps, tabs => true))
}

/// Renders the heat maps of further metrics.
pub fn further_heat(runs: &[ReportRun]) -> Markup {
    let further = |(index, run)| heats(run).into_iter().skip(1).map(move |map| placed(index, run, &map));
    let maps = runs.iter().enumerate().flat_map(further).collect::<Result<Vec<Value>, ReportError>>()?;
    html("heat.html", context!(maps, tabs => false))
}

fn placed(index: usize, run: &ReportRun, map: &Heat) -> Markup {
    Ok(context!(index, label => &run.label, drawn => drawn(map)?))
}

/// Width in pixels below which a single panel scrolls.
const LEAST: f64 = 660.0;

fn drawn(map: &Heat) -> Markup {
    let columns = heat_columns(map);
    // A map of one panel is as wide as the page, and scrolls where that is narrow; one of few lengths is no larger than it reads well.
    let single = columns.len() == 1;
    let panel = |column: &Figure| {
        let (least, most) = (column.width.min(LEAST), LARGEST * column.width);
        let least = if single { format!(";min-width:{least:.0}px") } else { String::new() };
        context!(style => format!("max-width:{most:.0}px{least}"), svg => safe(column.inline()))
    };
    let columns: Vec<Value> = columns.iter().map(panel).collect();
    let linked = map.has_links();
    html("map.html", context!(title => &map.title, linked, single, columns, scale => safe(heat_key(map).inline())))
}
