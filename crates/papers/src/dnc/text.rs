//! The comparison as text.
#[cfg(feature = "train")]
use super::defence::render_defence;
use super::run::{DncComparison, RunTable};
use super::tables::ComparedTable;
use crate::dnc::published::PublishedTable;
use crate::text::{indent, inside};
use earnest_report::{Table, percent, prose, wrap, wrap_lines};

/// Renders a comparison for a terminal.
pub fn render(comparison: &DncComparison, width: usize) -> String {
    let mut text = format!("{}\n", wrap(comparison.paper, width, "").trim_end());
    for table in &comparison.published {
        text.push_str(&published(table, width));
    }
    text.push_str("\nTable 12, recomputed from Tables 3 and 10 (percentage points; relative in per cent)\n");
    let mut means = Table::with_left(1, ["mean over", "cells", "printed", "absolute", "relative"]);
    for row in &comparison.table_12 {
        means.row(vec![
            row.label.to_owned(),
            row.cells.to_string(),
            format!("{:.2}", row.printed),
            format!("{:+.2}", row.absolute),
            format!("{:+.2}", row.relative),
        ]);
    }
    text.push_str(&means.render_within(width));
    if comparison.runs.is_empty() {
        text.push_str(
            "\nNo stored runs to compare. Start one: `earnest run dnc --data DIR --model M --prompt equation --kinds all`\n",
        );
    }
    for run in &comparison.runs {
        text.push_str(&format!("\nOurs: {} ({})\n", run.model, run.run));
        for limit in &run.limits {
            text.push_str(&wrap(&format!("Not directly comparable: the run {limit}."), width, "  "));
        }
        for table in comparison.compared.iter().filter(|table| table.run == run.run) {
            text.push_str(&compared(table, width));
        }
        for table in comparison.ours.iter().filter(|table| table.run == run.run) {
            text.push_str(&results(table, width));
        }
    }
    if !comparison.compared.is_empty() {
        text.push('\n');
        for note in [
            "`ours` is on the n eligible pairs, with a 95 % interval; `over all` includes questions that the perturbation leaves \
             unchanged, as in the paper. Each difference is `over all` minus the published value; the paper has no intervals.",
            "A run has no Defense row, because it does not record how its model was trained: the experiment below has them. A run with \
             the setting `demonstrations = K` and the setting `defence` measures adaptation from demonstrations, which is another quantity.",
        ] {
            text.push_str(&prose(&note.split_whitespace().collect::<Vec<_>>().join(" "), width, "* "));
        }
    }
    text.push('\n');
    #[cfg(feature = "train")]
    text.push_str(&render_defence(&comparison.defence, width));
    #[cfg(not(feature = "train"))]
    text.push_str(&wrap(
        "The trained defence is not shown: this earnest was built without its feature `train`.",
        width,
        "",
    ));
    text.push_str("\nNot covered\n");
    for missing in &comparison.missing {
        let why = missing.why.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(&prose(&format!("{}: {why}.", missing.what), width, "* "));
    }
    text.push_str("\nLimitations\n");
    for caveat in &comparison.caveats {
        text.push_str(&wrap(caveat, width, "* "));
    }
    wrap_lines(&text, width)
}

fn published(table: &PublishedTable, width: usize) -> String {
    let mut names = vec!["published"];
    names.extend(table.columns.iter().map(String::as_str));
    let mut text = Table::with_left(1, names);
    for row in &table.rows {
        let value = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let name = if row.setting == row.name { row.name.clone() } else { format!("{}, {}", row.setting, row.name) };
        text.row([name].into_iter().chain(row.values.iter().map(value)).collect());
    }
    let unit = if table.unit_in_title { String::new() } else { format!(" ({})", table.unit) };
    format!("\nTable {}: {}{unit}\n{}", table.table, table.title, text.render_within(width))
}

/// Our values, then for each system the published value and the difference; as many systems side by side as fit.
pub(super) fn compared(table: &ComparedTable, width: usize) -> String {
    const OURS: usize = 56;
    const SYSTEM: usize = 18;
    let mut text = format!("\n{}", wrap(&table.title, width, "  "));
    let systems: Vec<&str> = table
        .rows
        .first()
        .map(|row| row.published.iter().map(|cell| cell.system.as_str()).collect())
        .unwrap_or_default();
    let beside = (width.saturating_sub(OURS) / SYSTEM).max(1);
    let blocks = systems.len().div_ceil(beside).max(1);
    for block in 0..blocks {
        let shown = block * beside..((block + 1) * beside).min(systems.len());
        let mut names = vec!["".to_owned(), "n".to_owned(), "ours".to_owned(), "over all".to_owned()];
        for system in &systems[shown.clone()] {
            names.push((*system).to_owned());
            names.push("difference".to_owned());
        }
        let mut rows = Table::with_left(1, names);
        for row in &table.rows {
            let over_all =
                row.over_all.map_or_else(|| "-".to_owned(), |value| format!("{:.2}", 100.0 * value.estimate));
            let ours = row.ours.as_ref().map_or_else(|| "-".to_owned(), percent);
            let mut cells = vec![row.name.clone(), row.n.to_string(), ours, over_all];
            for cell in &row.published[shown.clone()] {
                cells.push(cell.value.map_or_else(|| "-".to_owned(), |value| format!("{:.2}", 100.0 * value)));
                cells.push(cell.difference.map_or_else(|| "-".to_owned(), |value| format!("{:+.2}", 100.0 * value)));
            }
            rows.row(cells);
        }
        text.push('\n');
        text.push_str(&indent(&rows.render_within(inside(width))));
    }
    text
}

fn results(table: &RunTable, width: usize) -> String {
    let mut names = vec!["ours", "n"];
    names.extend(table.columns.iter().map(String::as_str));
    let mut text = Table::with_left(1, names);
    for row in &table.rows {
        let cells = row.values.iter().map(|value| value.as_ref().map_or_else(|| "-".to_owned(), percent));
        text.row([row.name.clone(), row.n.to_string()].into_iter().chain(cells).collect());
    }
    format!("\n  {}\n{}", table.title, indent(&text.render_within(inside(width))))
}
