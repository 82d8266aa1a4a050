//! Result tables.
use minijinja::{Value, context};

use super::format::{cell, count, interval, percent, plain};
use crate::markup::{Markup, html};
use crate::page::ReportRun;
use crate::page::data::covariate;
use crate::plot::{number, row_query};
use crate::text::said_as;
use earnest_tasks::suite::registry::{samples_of_row, task_label};
use earnest_tasks::suite::{Grid, ScorerCounts, SideBySide, SummaryRow, Unit};

/// Renders the matrix of tasks by models, then the tables of each run.
pub fn tables(runs: &[ReportRun]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.document.summary.rows) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    names.sort_by_key(|name| *name == "all");
    // One column where all models have the same number of answers.
    let counts = |name: &str| -> Vec<usize> {
        let mut counts: Vec<usize> = runs.iter().filter_map(|run| Some(summary_row(run, name)?.n)).collect();
        counts.dedup();
        counts
    };
    let alike = names.iter().all(|name| counts(name).len() == 1);
    let covariates: Vec<Option<String>> = runs.iter().map(covariate).collect();
    let matrix = names.iter().map(|&name| {
        let cells = runs.iter().enumerate().map(|(index, run)| {
            let settings = &run.document.manifest.settings;
            // The list of samples knows one covariate of a run.
            let samples = samples_of_row(&settings.suite, &settings.suite_options, name)
                .filter(|row| {
                    name != "all"
                        && row
                            .covariate
                            .as_ref()
                            .is_none_or(|(covariate, _)| covariates[index].as_deref() == Some(covariate))
                })
                .map(|row| format!("#samples?run={index}&{}", row_query(&row)));
            Some(context!(samples, ..shaded(run, summary_row(run, name)?, alike)?))
        });
        let n = counts(name).first().copied();
        context!(name, n, label => task_label(name), cells => cells.collect::<Vec<_>>())
    });
    let shown = runs.iter().map(|run| {
        let by = run.document.readings.as_ref().map(|readings| readings.decides());
        context!(label => &run.label, by, tables => of_run(run))
    });
    html("tables.html", context!(alike, runs => shown.collect::<Vec<_>>(), matrix => matrix.collect::<Vec<_>>()))
}

fn summary_row<'a>(run: &'a ReportRun, name: &str) -> Option<&'a SummaryRow> {
    run.document.summary.rows.iter().find(|row| row.name == name)
}

/// Cell of the main value of a row, shaded by it; the number of answers is in it unless all rows are `alike`.
fn shaded(run: &ReportRun, row: &SummaryRow, alike: bool) -> Option<Value> {
    let (_, value) = run.document.main_value(row)?;
    let shade = number(value.estimate.clamp(0.0, 1.0));
    Some(context!(shade, ..interval(value, (!alike).then_some(row.n), percent)))
}

/// Tables of a run: its scorers, then the suite's own tables or all columns.
fn of_run(run: &ReportRun) -> Vec<Value> {
    let scorers = run.document.readings.as_ref().map(side_by_side);
    let grids = run.document.grids.iter().map(grid_table);
    let columns = run.document.grids.is_empty().then(|| every_column(run));
    scorers.into_iter().chain(grids).chain(columns).collect()
}

/// All scorers, each compared with the deciding one. Open, because the deciding scorer determines every other number.
fn side_by_side(readings: &SideBySide) -> Value {
    let decides = readings.decides();
    let differs = format!("differs from {decides}");
    let columns = ["right, %", "right", "of", &differs, "right alone", "wrong alone"].map(Value::from);
    let row = |scorer: &ScorerCounts| {
        let share = scorer.right as f64 / scorer.samples.max(1) as f64;
        let known = [cell(percent(share), Vec::new(), share), count(scorer.right), count(scorer.samples)].map(Some);
        let compared = [scorer.differs(), scorer.alone, scorer.missed];
        let compared = compared.map(|one| (!readings.is_chosen(scorer)).then(|| count(one)));
        let cells: Vec<Option<Value>> = known.into_iter().chain(compared).collect();
        context!(name => &scorer.name, task => (), cells)
    };
    let rows: Vec<Value> = readings.scorers.iter().map(row).collect();
    let title = format!("How answers were read; {decides} decides");
    context!(title, open => true, what => "scorer", breakable => false, columns, rows)
}

/// One of the suite's own tables, with the number of samples behind every cell.
fn grid_table(grid: &Grid) -> Value {
    let rows = grid.groups.iter().flat_map(|group| {
        group.rows.iter().map(|row| {
            let name = format!("{} {}", row.name, group.name);
            let shown = |value: f64| in_unit(grid.unit, value);
            let cells = row.cells.iter().map(|one| one.map(|one| interval(&one.value, Some(one.n), shown)));
            context!(name => name.trim_end(), task => &row.task, cells => cells.collect::<Vec<_>>())
        })
    });
    let (columns, rows) = (&grid.columns, rows.collect::<Vec<_>>());
    context!(title => &grid.title, open => false, what => "task", breakable => true, columns, rows)
}

/// Formats a value in the unit of a table; an unknown one is a dash.
fn in_unit(unit: Unit, value: f64) -> String {
    match unit {
        _ if !value.is_finite() => "–".to_owned(),
        Unit::Fraction => percent(value),
        Unit::Digits => format!("{value:.1}"),
        Unit::Reach => format!("{value:.0}"),
    }
}

/// Every column of the summary.
fn every_column(run: &ReportRun) -> Value {
    let rows = &run.document.summary.rows;
    let values = distinct(rows.iter().flat_map(|row| row.values.iter().map(|(name, _)| name)));
    let numbers = distinct(rows.iter().flat_map(|row| row.numbers.iter().map(|(name, _)| name)));
    let headings = values.iter().map(|name| name.as_str()).chain(numbers.iter().map(|name| said_as(name).0));
    let columns: Vec<Value> = ["n"].into_iter().chain(headings).map(Value::from).collect();
    let shown = rows.iter().map(|row| {
        let values = values.iter().map(|name| Some(interval(find(&row.values, name)?, None, percent)));
        let numbers = numbers.iter().map(|name| {
            let (value, scale) = (*find(&row.numbers, name)?, said_as(name).1);
            let text = if scale == 1.0 { plain(value) } else { percent(value) };
            Some(cell(text, Vec::new(), scale * value))
        });
        let cells: Vec<Option<Value>> = [Some(count(row.n))].into_iter().chain(values).chain(numbers).collect();
        context!(name => &row.name, task => &row.name, cells)
    });
    let rows: Vec<Value> = shown.collect();
    context!(title => "All columns", open => false, what => "task", breakable => false, columns, rows)
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut distinct: Vec<&String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

fn find<'a, T>(values: &'a [(String, T)], name: &str) -> Option<&'a T> {
    values.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}
