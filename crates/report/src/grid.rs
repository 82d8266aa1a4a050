//! Grids as text.
use super::{Align, Table};
use crate::profile::limit_text;
use earnest_stats::psychometric::Limit;
use earnest_tasks::suite::profile::{LIMITS, skills};
use earnest_tasks::suite::{Grid, GridCell, Interval, Unit};

/// Renders a grid with its title and a heading for each group, in at most `width` columns; empty columns are left out.
pub fn text(grid: &Grid, width: usize) -> String {
    format!("{}\n\n{}", grid.title, table(grid).render_within(width))
}

/// True if a grid has no more columns than that.
pub(super) fn fits(grid: &Grid, width: usize) -> bool {
    table(grid).width() <= width
}

fn table(grid: &Grid) -> Table {
    if grid.columns == LIMITS {
        return limits(grid);
    }
    let rows = || grid.groups.iter().flat_map(|group| &group.rows);
    let cell = |cells: &[Option<GridCell>], index: usize| cells.get(index).copied().flatten();
    let used: Vec<usize> =
        (0..grid.columns.len()).filter(|&index| rows().any(|row| cell(&row.cells, index).is_some())).collect();
    let mut columns = vec![(String::new(), Align::Left)];
    columns.extend(used.iter().map(|&index| (grid.columns[index].clone(), Align::Right)));
    let mut table = Table::new(columns);
    for (index, group) in grid.groups.iter().enumerate() {
        if index > 0 {
            table.rule();
        }
        if !group.name.is_empty() {
            table.row(vec![group.name.clone()]);
        }
        for row in &group.rows {
            let mut cells = vec![if group.name.is_empty() { row.name.clone() } else { format!("  {}", row.name) }];
            let shown = |index| cell(&row.cells, index).map_or_else(String::new, |cell| cell_text(grid.unit, cell));
            cells.extend(used.iter().map(|&index| shown(index)));
            table.row(cells);
        }
    }
    table
}

/// Limits of a profile as its own screen writes them, then the questions behind a row.
fn limits(grid: &Grid) -> Table {
    let heads = grid.columns.iter().map(|column| (column.clone(), Align::Right));
    let heads = [(String::new(), Align::Left)].into_iter().chain(heads);
    let mut table = Table::new(heads.chain([("questions".to_owned(), Align::Right)]));
    for (index, group) in grid.groups.iter().enumerate() {
        if index > 0 {
            table.rule();
        }
        table.row(vec![group.name.clone()]);
        for row in &group.rows {
            let skill = skills().iter().find(|skill| row.task.as_ref() == Some(&skill.task));
            let lengths = skill.map_or((1, usize::MAX), |skill| (skill.shortest, skill.longest));
            let shown = |cell: &Option<GridCell>| match cell {
                Some(GridCell { value: Interval { estimate, low, high }, .. }) => {
                    limit_text(&Limit { level: 0.5, estimate: *estimate, low: *low, high: *high }, lengths)
                }
                None => "no limit".to_owned(),
            };
            let asked = row.cells.iter().flatten().map(|cell| cell.n.to_string()).next().unwrap_or_default();
            let cells = row.cells.iter().map(shown);
            table.row([format!("  {}", row.name)].into_iter().chain(cells).chain([asked]).collect());
        }
    }
    table
}

/// `83 [ 44,  97] 12`: parts of one width, so that columns line up.
fn cell_text(unit: Unit, cell: GridCell) -> String {
    let [estimate, low, high] = [cell.value.estimate, cell.value.low, cell.value.high].map(|value| number(unit, value));
    let width = match unit {
        Unit::Fraction => 3,
        Unit::Digits => 4,
        // Without n, so that six columns fit; all their cells have the same samples.
        Unit::Reach => return format!("{estimate} [{low}-{high}]"),
    };
    format!("{estimate:>width$} [{low:>width$}, {high:>width$}] {:>4}", cell.n)
}

fn number(unit: Unit, value: f64) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    match unit {
        Unit::Fraction => format!("{:.0}", 100.0 * value),
        Unit::Reach => format!("{value:.0}"),
        Unit::Digits if value >= 99.95 => format!("{value:.0}"),
        Unit::Digits => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::{GridGroup, GridRow};

    fn cell(estimate: f64, low: f64, high: f64, n: usize) -> Option<GridCell> {
        Some(GridCell { value: Interval { estimate, low, high }, n })
    }

    fn grid(unit: Unit, rows: Vec<GridRow>) -> Grid {
        let groups = vec![
            GridGroup { name: "Integer".into(), rows },
            GridGroup {
                name: String::new(),
                rows: vec![GridRow { name: "all".into(), task: None, cells: vec![None; 3] }],
            },
        ];
        let columns = ["S", "M", "L"].map(String::from).to_vec();
        Grid {
            name: "exact_match".into(),
            title: "Exact match, per cent".into(),
            unit,
            columns,
            covariate: None,
            groups,
        }
    }

    #[test]
    fn limits_are_written_as_in_a_profile() {
        let row = |name: &str, task: &str, cells| GridRow { name: name.into(), task: Some(task.into()), cells };
        let copied =
            vec![cell(6.32, 5.0, 9.0, 48), cell(0.0, 0.0, 0.0, 48), cell(f64::INFINITY, 18.0, f64::INFINITY, 48)];
        let grid = Grid {
            columns: LIMITS.map(String::from).to_vec(),
            groups: vec![GridGroup {
                name: "Arithmetic-Bench".into(),
                rows: vec![row("copy", "copy", copied), row("reverse", "rev", vec![None; 3])],
            }],
            ..grid(Unit::Digits, Vec::new())
        };
        assert_eq!(
            text(&grid, 80).lines().skip(2).map(str::trim_end).collect::<Vec<_>>(),
            [
                "                      limit     limit",
                "                       90 %      50 %      limit 10 %  questions",
                "----------------------------------------------------------------",
                "Arithmetic-Bench",
                "  copy            6.3 (5-9)        <1  >100 (18->100)         48",
                "  reverse          no limit  no limit        no limit",
            ]
        );
    }

    #[test]
    fn cells_line_up_and_empty_columns_go() {
        let rows = vec![
            GridRow {
                name: "add".into(),
                task: None,
                cells: vec![cell(1.0, 0.96, 1.0, 100), None, cell(0.05, 0.0, 0.24, 6)],
            },
            GridRow { name: "sub".into(), task: None, cells: vec![cell(f64::NAN, 0.0, 1.0, 0)] },
        ];
        assert_eq!(
            text(&grid(Unit::Fraction, rows), 80),
            "Exact match, per cent\n\n\
             \x20                          S                    L\n\
             -------------------------------------------------\n\
             Integer\n\
             \x20 add    100 [ 96, 100]  100    5 [  0,  24]    6\n\
             \x20 sub      - [  0, 100]    0\n\
             -------------------------------------------------\n\
             all\n"
        );
    }

    #[test]
    fn digits_have_a_decimal_and_may_be_unbounded() {
        let rows = vec![GridRow { name: "add".into(), task: None, cells: vec![cell(2.25, 0.0, f64::INFINITY, 1)] }];
        assert!(text(&grid(Unit::Digits, rows), 80).contains(" 2.2 [ 0.0,  inf]    1"));
        assert_eq!(number(Unit::Digits, 1234.5), "1234");
        let reach = GridCell { value: Interval { estimate: 12.0, low: 0.0, high: 100.0 }, n: 9 };
        assert_eq!(cell_text(Unit::Reach, reach), "12 [0-100]");
    }
}
