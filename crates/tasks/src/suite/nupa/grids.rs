//! The summary as figure 2 shows it: a table for every metric, a row a task, a column a range of lengths.
use crate::suite::{Grid, GridCell, GridGroup, GridRow, Interval, Summary, SummaryRow, Unit};

use super::suite::RANGE;
use super::summary::SHORT;
use super::{DigitLimit, LengthRange, MetricName, Representation, Scorer, TASKS, TaskId};

/// Exact match, digit match, dlength by range of lengths; then the digit limits.
pub(super) fn grids(summary: &Summary, scorer: Scorer) -> Vec<Grid> {
    let tasks: Vec<(TaskId, &SummaryRow)> =
        TASKS.iter().filter_map(|&task| Some((task, row(summary, &task.to_string())?))).collect();
    let all = summary.rows.iter().find(|row| row.name == "all" && row.n > 0);
    let mut grids: Vec<Grid> = MetricName::ALL.into_iter().map(|metric| ranges(metric, scorer, &tasks, all)).collect();
    grids.push(limits(&tasks));
    grids
}

fn ranges(metric: MetricName, scorer: Scorer, tasks: &[(TaskId, &SummaryRow)], all: Option<&SummaryRow>) -> Grid {
    let (what, unit) = match metric {
        MetricName::ExactMatch => ("Right, per cent", Unit::Fraction),
        MetricName::DigitMatch => ("Digit match, per cent of the digits", Unit::Fraction),
        MetricName::Dlength => ("Difference in length (dlength), digits", Unit::Digits),
    };
    let title = format!("{what}, by scorer {}", scorer.name());
    let cells = |row: &SummaryRow| {
        let cell = |range: &str| {
            let value = value(row, &format!("{} {range}", metric.name()))?;
            Some(GridCell { value, n: number(row, &format!("n {range}"))? })
        };
        let short = |range| if range == LengthRange::S { cell(SHORT) } else { None };
        LengthRange::ALL.map(|range| short(range).or_else(|| cell(range.name()))).to_vec()
    };
    let columns = LengthRange::ALL.map(|range| range.name().to_string()).to_vec();
    let covariate = Some(RANGE.to_owned());
    Grid { name: metric.name().into(), title, unit, columns, covariate, groups: groups(tasks, all, &cells) }
}

fn limits(tasks: &[(TaskId, &SummaryRow)]) -> Grid {
    let wanted: Vec<(String, String)> = MetricName::ALL
        .into_iter()
        .flat_map(|metric| {
            DigitLimit::ALL.map(|limit| {
                let metric_words = metric.name().replace('_', " ");
                let limit_words = limit.name().replace('_', " ");
                (format!("{} {} contiguous", metric.name(), limit.name()), format!("{metric_words} {limit_words}"))
            })
        })
        .collect();
    let cells = |row: &SummaryRow| {
        let cell = |column: &String| Some(GridCell { value: value(row, column)?, n: row.n });
        wanted.iter().map(|(column, _)| cell(column)).collect()
    };
    Grid {
        name: "digits".into(),
        title: "Up to how many digits every length is well learned, or preserves performance".into(),
        unit: Unit::Reach,
        columns: wanted.iter().map(|(_, heading)| heading.clone()).collect(),
        covariate: None,
        groups: groups(tasks, None, &cells),
    }
}

fn groups(
    tasks: &[(TaskId, &SummaryRow)],
    all: Option<&SummaryRow>,
    cells: &dyn Fn(&SummaryRow) -> Vec<Option<GridCell>>,
) -> Vec<GridGroup> {
    let mut groups = Vec::new();
    for representation in Representation::ALL {
        let own = tasks.iter().filter(|(task, _)| task.representation == representation);
        let rows: Vec<GridRow> = own
            .map(|(task, row)| GridRow {
                name: task.operation.title().into(),
                task: Some(task.to_string()),
                cells: cells(row),
            })
            .collect();
        if !rows.is_empty() {
            groups.push(GridGroup { name: representation.heading().into(), rows });
        }
    }
    // One task needs no sum of itself.
    if let (Some(all), true) = (all, tasks.len() > 1) {
        groups.push(GridGroup {
            name: String::new(),
            rows: vec![GridRow { name: "all".into(), task: None, cells: cells(all) }],
        });
    }
    groups
}

fn row<'a>(summary: &'a Summary, name: &str) -> Option<&'a SummaryRow> {
    summary.rows.iter().find(|row| row.name == name)
}

fn value(row: &SummaryRow, column: &str) -> Option<Interval> {
    row.values.iter().find(|(name, _)| name == column).map(|(_, value)| *value)
}

fn number(row: &SummaryRow, column: &str) -> Option<usize> {
    row.numbers.iter().find(|(name, _)| name == column).map(|(_, number)| *number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, columns: &[(&str, f64)], counts: &[(&str, f64)]) -> SummaryRow {
        let value = |estimate| Interval { estimate, low: 0.0, high: 1.0 };
        SummaryRow {
            name: name.into(),
            n: 9,
            values: columns.iter().map(|(name, estimate)| (name.to_string(), value(*estimate))).collect(),
            numbers: counts.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
        }
    }

    #[test]
    fn tasks_are_grouped_and_short_lengths_are_shown() {
        let columns = [("exact_match S", 0.1), ("exact_match S with omitted lengths", 0.2), ("exact_match XL", 0.3)];
        let counts = [("n S", 4.0), ("n S with omitted lengths", 6.0), ("n XL", 3.0)];
        let rows = ["max_Float_Float_Float", "add_Integer_Integer_Integer", "all"].map(|n| row(n, &columns, &counts));
        let summary = Summary { rows: rows.to_vec(), series: Vec::new(), notes: Vec::new() };
        let found = grids(&summary, Scorer::Strict);
        assert_eq!(
            found.iter().map(|grid| grid.name.as_str()).collect::<Vec<_>>(),
            ["exact_match", "digit_match", "dlength", "digits"]
        );
        let groups: Vec<&str> = found[0].groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(groups, ["Integer", "Float", ""]);
        let cells = &found[0].groups[0].rows[0].cells;
        assert_eq!(
            cells.iter().map(|cell| cell.map(|cell| cell.n)).collect::<Vec<_>>(),
            [Some(6), None, None, Some(3)]
        );
        assert_eq!(cells[0].unwrap().value.estimate, 0.2);
        assert!(found[1].groups[0].rows[0].cells.iter().all(Option::is_none));
    }

    #[test]
    fn an_empty_summary_has_no_rows() {
        let summary = Summary { rows: Vec::new(), series: Vec::new(), notes: Vec::new() };
        assert!(grids(&summary, Scorer::Strict).iter().all(|grid| grid.groups.is_empty()));
    }
}
