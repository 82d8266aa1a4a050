//! Result tables.
use std::fmt::Write;

use super::WRITES;
use super::format::{interval, percent, plain, sortable};
use crate::page::ReportRun;
use crate::plot::{escape, number};
use earnest_tasks::suite::registry::task_label;
use earnest_tasks::suite::{Grid, Interval, SideBySide, SummaryRow, Unit};

/// Renders the matrix of tasks by models, then the tables of each run.
pub fn tables(runs: &[ReportRun]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.document.summary.rows) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    names.sort_by_key(|name| *name == "all");
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"sortable\" id=\"matrix\"><caption>Accuracy in per cent with 95 % intervals and the number n of answers, tasks by models</caption><thead><tr><th scope=\"col\">task</th>",
    );
    // One column where all models have the same number of answers.
    let counts = |name: &str| -> Vec<usize> {
        let row = |run: &ReportRun| run.document.summary.rows.iter().find(|row| row.name == name).map(|row| row.n);
        let mut counts: Vec<usize> = runs.iter().filter_map(row).collect();
        counts.dedup();
        counts
    };
    let alike = names.iter().all(|name| counts(name).len() == 1);
    if alike {
        html.push_str("<th scope=\"col\" class=\"num\">n</th>");
    }
    for (place, run) in runs.iter().enumerate() {
        let by = run
            .document
            .readings
            .as_ref()
            .map(|readings| format!("<br><small>by scorer {}</small>", escape(&readings.decides())));
        write!(
            html,
            "<th scope=\"col\" class=\"num\" data-run=\"{place}\">{}{}</th>",
            escape(&run.label),
            by.unwrap_or_default()
        )
        .expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for name in names {
        write!(
            html,
            "<tr data-task=\"{0}\"{1}><th scope=\"row\" title=\"{0}\">{2}</th>",
            escape(name),
            total(name),
            breakable(&task_label(name))
        )
        .expect(WRITES);
        if let (true, [n]) = (alike, &counts(name)[..]) {
            write!(html, "<td class=\"num\" data-value=\"{n}\">{n}</td>").expect(WRITES);
        }
        for (place, run) in runs.iter().enumerate() {
            let row = run.document.summary.rows.iter().find(|row| row.name == name);
            match row.and_then(|row| run.document.main_value(row).map(|(_, value)| (row.n, value))) {
                Some((n, value)) => write!(
                    html,
                    "<td class=\"num shaded\" style=\"--v:{}\" data-run=\"{place}\" data-value=\"{}\">{}{}</td>",
                    number(value.estimate.clamp(0.0, 1.0)),
                    sortable(value.estimate),
                    interval(value),
                    if alike { String::new() } else { format!(" <small>n {n}</small>") }
                )
                .expect(WRITES),
                None => write!(html, "<td class=\"num\" data-run=\"{place}\">–</td>").expect(WRITES),
            }
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    for (place, run) in runs.iter().enumerate() {
        let tables = match run.document.grids.as_slice() {
            [] => vec![("All columns".to_owned(), every_column(run))],
            grids => grids.iter().map(|grid| (grid.title.clone(), grid_table(grid))).collect(),
        };
        let mut folded = |open: &str, title: &str, table: &str| {
            let (title, label) = (escape(title), escape(&run.label));
            write!(html, "<details data-run=\"{place}\"{open}><summary>{title}: {label}</summary>{table}</details>")
                .expect(WRITES);
        };
        if let Some(readings) = &run.document.readings {
            let title = format!("How answers were read; {} decides", readings.decides());
            // Open, because the primary rule determines every other number.
            folded(" open", &title, &side_by_side(readings));
        }
        for (title, table) in &tables {
            folded("", title, table);
        }
    }
    html
}

/// Renders all scorers, each compared with the one that decides.
fn side_by_side(readings: &SideBySide) -> String {
    let mut html =
        String::from("<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">scorer</th>");
    let differs = format!("differs from {}", readings.decides());
    for name in ["right, %", "right", "of", &differs, "right alone", "wrong alone"] {
        write!(html, "<th scope=\"col\" class=\"num\">{}</th>", escape(name)).expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for scorer in &readings.scorers {
        let share = scorer.right as f64 / scorer.samples.max(1) as f64;
        write!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"num\" data-value=\"{share}\">{}</td>",
            escape(&scorer.name),
            percent(share)
        )
        .expect(WRITES);
        for count in [scorer.right, scorer.samples] {
            write!(html, "<td class=\"num\" data-value=\"{count}\">{count}</td>").expect(WRITES);
        }
        for count in [scorer.differs(), scorer.alone, scorer.missed] {
            match readings.is_chosen(scorer) {
                true => html.push_str("<td class=\"num\">–</td>"),
                false => {
                    write!(html, "<td class=\"num\" data-value=\"{count}\">{count}</td>").expect(WRITES);
                }
            }
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

/// Renders one of the suite's own tables, with the number of samples behind every cell.
fn grid_table(grid: &Grid) -> String {
    let mut html =
        String::from("<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">task</th>");
    for name in &grid.columns {
        write!(html, "<th scope=\"col\" class=\"num\">{}</th>", escape(name)).expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for group in &grid.groups {
        for row in &group.rows {
            let name = format!("{} {}", row.name, group.name);
            let name = name.trim_end();
            let task = row.task.as_ref().map_or_else(String::new, |task| format!(" data-task=\"{}\"", escape(task)));
            write!(html, "<tr{task}{}><th scope=\"row\">{}</th>", total(name), breakable(name)).expect(WRITES);
            for cell in &row.cells {
                match cell {
                    Some(cell) => write!(
                        html,
                        "<td class=\"num\" data-value=\"{}\">{} <small>n {}</small></td>",
                        sortable(cell.value.estimate),
                        in_unit(grid.unit, &cell.value),
                        cell.n
                    )
                    .expect(WRITES),
                    None => html.push_str("<td class=\"num\">–</td>"),
                }
            }
            html.push_str("</tr>");
        }
    }
    html + "</tbody></table></div>"
}

/// Formats a value with its interval in the unit of a table; unknown bounds are dashes.
fn in_unit(unit: Unit, value: &Interval) -> String {
    let number = |value: f64| match unit {
        _ if !value.is_finite() => "–".to_owned(),
        Unit::Fraction => percent(value),
        Unit::Digits => format!("{value:.1}"),
        Unit::Reach => format!("{value:.0}"),
    };
    if !value.estimate.is_finite() {
        return "–".to_owned();
    }
    format!("{} <small>[{}, {}]</small>", number(value.estimate), number(value.low), number(value.high))
}

/// Renders every column of the summary.
fn every_column(run: &ReportRun) -> String {
    let rows = &run.document.summary.rows;
    let columns = |names: &mut dyn Iterator<Item = &String>| {
        let mut distinct: Vec<String> = Vec::new();
        for name in names {
            if !distinct.contains(name) {
                distinct.push(name.clone());
            }
        }
        distinct
    };
    let values = columns(&mut rows.iter().flat_map(|row| row.values.iter().map(|(name, _)| name)));
    let numbers = columns(&mut rows.iter().flat_map(|row| row.numbers.iter().map(|(name, _)| name)));
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">task</th><th scope=\"col\" class=\"num\">n</th>",
    );
    for name in values.iter().chain(&numbers) {
        write!(html, "<th scope=\"col\" class=\"num\">{}</th>", escape(name)).expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        write!(
            html,
            "<tr data-task=\"{0}\"{2}><th scope=\"row\">{0}</th><td class=\"num\" data-value=\"{1}\">{1}</td>",
            escape(&row.name),
            row.n,
            total(&row.name)
        )
        .expect(WRITES);
        for name in &values {
            match find(row, name) {
                Some(value) => write!(
                    html,
                    "<td class=\"num\" data-value=\"{}\">{}</td>",
                    sortable(value.estimate),
                    interval(value)
                )
                .expect(WRITES),
                None => html.push_str("<td class=\"num\">–</td>"),
            }
        }
        for name in &numbers {
            match row.numbers.iter().find(|(other, _)| other == name) {
                Some((_, value)) => {
                    write!(html, "<td class=\"num\" data-value=\"{}\">{}</td>", sortable(*value), plain(*value))
                        .expect(WRITES)
                }
                None => html.push_str("<td class=\"num\">–</td>"),
            }
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

fn find<'a>(row: &'a SummaryRow, name: &str) -> Option<&'a Interval> {
    row.values.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

/// Escapes a task's name and lets narrow columns break it at underscores.
fn breakable(name: &str) -> String {
    escape(name).replace('_', "_<wbr>")
}

/// Returns the class of the row over all tasks, which stays last in any order.
fn total(name: &str) -> &'static str {
    if name == "all" { " class=\"total\"" } else { "" }
}
