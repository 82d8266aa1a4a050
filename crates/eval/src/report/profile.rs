//! Profile of a run: the tasks of a grid on one screen, a bar for each column, groups side by side.
use super::{Align, Table};
use earnest_tasks::suite::{Grid, GridCell, GridGroup, GridRow, Unit};

/// Rows from which a grid is too long for a screen.
const LONG: usize = 24;

/// Samples behind a bar below which their number is said.
const FEW: usize = 100;

/// Bars of shares: nothing right, then eighths.
const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Profile of a long grid of shares; none for a grid that fits a screen or holds other numbers.
pub(super) fn profile(grid: &Grid) -> Option<String> {
    let groups: Vec<&GridGroup> = grid.groups.iter().filter(|group| !group.name.is_empty()).collect();
    let rows = || groups.iter().flat_map(|group| &group.rows);
    if grid.unit != Unit::Fraction || rows().count() < LONG {
        return None;
    }
    let used: Vec<usize> = (0..grid.columns.len()).filter(|&at| rows().any(|row| cell(row, at).is_some())).collect();
    let mut names: Vec<&str> = Vec::new();
    for row in rows() {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    let is_floor = |name: &str| rows().filter(|row| row.name == name).all(|row| share(row, &used) == Some(0.0));
    let (floor, shown): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| is_floor(name));
    let columns: Vec<&str> = used.iter().map(|&at| grid.columns[at].as_str()).collect();
    let mut table = Table::new(
        [(String::new(), Align::Left)].into_iter().chain(groups.iter().map(|group| (group.name.clone(), Align::Right))),
    );
    for name in shown {
        let cells = groups.iter().map(|group| {
            let row = group.rows.iter().find(|row| row.name == name);
            row.map_or_else(String::new, |row| bars(row, &used))
        });
        table.row([name.to_owned()].into_iter().chain(cells).collect());
    }
    let samples = || rows().flat_map(|row| used.iter().filter_map(|&at| Some(cell(row, at)?.n)));
    let (least, most) = (samples().min().unwrap_or(0), samples().max().unwrap_or(0));
    // A bar of few samples is coarse.
    let behind = match (least, most) {
        (least, _) if least >= FEW => String::new(),
        (least, most) if least == most => format!(" ({least} samples a bar)"),
        (least, most) => format!(" ({least} to {most} samples a bar)"),
    };
    let mut text = format!("{}: a bar each for {}{behind}, then all of them\n\n", grid.title, columns.join(", "));
    text += &table.render();
    for row in grid.groups.iter().filter(|group| group.name.is_empty()).flat_map(|group| &group.rows) {
        let parts = used.iter().filter_map(|&at| Some((at, cell(row, at)?)));
        let parts: Vec<String> = parts
            .map(|(at, cell)| format!("{} {:.0} % of {}", grid.columns[at], 100.0 * cell.value.estimate, cell.n))
            .collect();
        text += &format!("\n{}: {}\n", row.name, parts.join(", "));
    }
    if !floor.is_empty() {
        text += &format!("Nothing right: {}\n", floor.join(", "));
    }
    Some(text)
}

fn cell(row: &GridRow, at: usize) -> Option<GridCell> {
    row.cells.get(at).copied().flatten().filter(|cell| cell.n > 0)
}

/// Share over all columns, each sample with the same weight; none without samples.
fn share(row: &GridRow, used: &[usize]) -> Option<f64> {
    let cells = || used.iter().filter_map(|&at| cell(row, at)).filter(|cell| !cell.value.estimate.is_nan());
    let samples: usize = cells().map(|cell| cell.n).sum();
    let right: f64 = cells().map(|cell| cell.value.estimate * cell.n as f64).sum();
    (samples > 0).then(|| right / samples as f64)
}

/// `█▄··  38`: a bar a column, then the share over all in per cent.
fn bars(row: &GridRow, used: &[usize]) -> String {
    let bar = |at: &usize| match cell(row, *at).map(|cell| cell.value.estimate) {
        Some(estimate) if estimate > 0.0 => BARS[(8.0 * estimate).ceil().clamp(1.0, 8.0) as usize],
        Some(0.0) => BARS[0],
        _ => ' ',
    };
    let all = share(row, used).map_or_else(String::new, |share| format!("{:.0}", 100.0 * share));
    format!("{} {all:>3}", used.iter().map(bar).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::Interval;

    fn row(name: &str, estimates: &[f64]) -> GridRow {
        let cell = |&estimate: &f64| {
            Some(GridCell { value: Interval { estimate, low: 0.0, high: 1.0 }, n: usize::from(!estimate.is_nan()) * 4 })
        };
        GridRow { name: name.into(), task: None, cells: estimates.iter().map(cell).collect() }
    }

    fn grid(tasks: usize) -> Grid {
        let group = |name: &str, share: f64| {
            let mut rows = vec![row("add", &[share, share / 2.0, f64::NAN]), row("sub", &[share, 0.0, 0.0])];
            rows.extend((2..tasks).map(|task| row(&format!("task{task}"), &[0.0, 0.0, 0.0])));
            GridGroup { name: name.into(), rows }
        };
        let all = GridGroup { name: String::new(), rows: vec![row("all", &[0.25, 0.125, 0.0])] };
        Grid {
            name: "exact_match".into(),
            title: "Exact match, per cent".into(),
            unit: Unit::Fraction,
            columns: ["S", "M", "L"].map(String::from).to_vec(),
            groups: vec![group("Integer", 1.0), group("Float", 0.0), all],
        }
    }

    #[test]
    fn tasks_are_a_line_each_and_those_at_the_floor_one_together() {
        let text = profile(&grid(12)).unwrap();
        assert_eq!(
            text,
            "Exact match, per cent: a bar each for S, M, L (4 samples a bar), then all of them\n\n\
             \x20    Integer    Float\n\
             ---------------------\n\
             add  █▄   75  ··    0\n\
             sub  █··  33  ···   0\n\n\
             all: S 25 % of 4, M 12 % of 4, L 0 % of 4\n\
             Nothing right: task2, task3, task4, task5, task6, task7, task8, task9, task10, task11\n"
        );
    }

    #[test]
    fn short_grids_and_other_units_keep_their_table() {
        assert_eq!(profile(&grid(11)), None);
        assert_eq!(profile(&Grid { unit: Unit::Digits, ..grid(40) }), None);
    }
}
