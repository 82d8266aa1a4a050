//! The comparison for a terminal.
use std::fmt::Write;

use super::ours::{DncComparison, OurTable};
use crate::report::{Align, Table, wrap};
use crate::suite::Interval;
use crate::suite::dnc::published::PublishedTable;

const WRITES: &str = "writing to a String cannot fail";

/// The text for a terminal of so many columns.
pub fn render(comparison: &DncComparison, width: usize) -> String {
    let mut text = format!("{}\n", wrap(comparison.paper, width, "").trim_end());
    for table in &comparison.published {
        text.push_str(&published(table));
    }
    text.push_str("\nTable 12, computed again from Tables 3 and 10 (percentage points; relative in per cent)\n");
    let mut means = columns(&["mean over", "cells", "printed", "absolute", "relative"]);
    for row in &comparison.table_12 {
        means.row(vec![
            row.label.to_owned(),
            row.cells.to_string(),
            format!("{:.2}", row.printed),
            format!("{:+.2}", row.absolute),
            format!("{:+.2}", row.relative),
        ]);
    }
    text.push_str(&means.render());
    if comparison.ours.is_empty() {
        text.push_str(
            "\nThere is no run to hold against this: earnest run dnc --data DIR --model M --prompt equation --kinds all\n",
        );
    }
    let mut last = "";
    for table in &comparison.ours {
        if table.run != last {
            writeln!(text, "\nOurs: {} ({}); per cent with 95 % intervals", table.model, table.run).expect(WRITES);
            for limit in &table.limits {
                text.push_str(&wrap(&format!("Not comparable number by number: the run {limit}."), width, "  "));
            }
            last = &table.run;
        }
        text.push_str(&ours(table));
    }
    text.push_str("\nMissing here\n");
    for missing in &comparison.missing {
        let why = missing.why.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(&wrap(&format!("{}: {why}.", missing.what), width, "* "));
    }
    text.push_str("\nWhat limits the comparison\n");
    for caveat in &comparison.caveats {
        text.push_str(&wrap(caveat, width, "* "));
    }
    text
}

fn columns(names: &[&str]) -> Table {
    let align = |place| if place == 0 { Align::Left } else { Align::Right };
    Table::new(names.iter().enumerate().map(|(place, name)| ((*name).to_owned(), align(place))))
}

fn published(table: &PublishedTable) -> String {
    let mut names = vec!["published"];
    names.extend(table.columns.iter().map(String::as_str));
    let mut text = columns(&names);
    for row in &table.rows {
        let value = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let name = if row.setting == row.name { row.name.clone() } else { format!("{}, {}", row.setting, row.name) };
        text.row([name].into_iter().chain(row.values.iter().map(value)).collect());
    }
    // Some titles say their unit.
    let unit = if table.title.contains("percentage points") { String::new() } else { format!(" ({})", table.unit) };
    format!("\nTable {}: {}{unit}\n{}", table.table, table.title, text.render())
}

fn ours(table: &OurTable) -> String {
    let mut names = vec!["ours", "n"];
    names.extend(table.columns.iter().map(String::as_str));
    let mut text = columns(&names);
    for row in &table.rows {
        let cells = row.values.iter().map(|value| value.as_ref().map_or_else(|| "-".to_owned(), percent));
        text.row([row.name.clone(), row.n.to_string()].into_iter().chain(cells).collect());
    }
    let body: String = text.render().lines().map(|line| format!("  {line}\n")).collect();
    format!("\n  {}\n{body}", table.title)
}

fn percent(value: &Interval) -> String {
    if value.estimate.is_nan() {
        return "-".to_owned();
    }
    format!("{:.1} [{:>5.1}, {:>5.1}]", 100.0 * value.estimate, 100.0 * value.low, 100.0 * value.high)
}
