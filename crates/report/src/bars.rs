//! Bars of a run: the tasks of a grid on one screen, a bar for each column, groups side by side.
use std::ops::RangeInclusive;

use super::grid::{fits, text};
use super::{Align, Table};
use earnest_results::Document;
use earnest_tasks::suite::{Grid, GridCell, GridGroup, GridRow, Interval, Series, Unit};

/// Rows from which a grid is too long for a screen.
const LONG: usize = 24;

/// Lines of a grid that is wider than the screen, in parts one below the other, up to which it keeps its numbers.
const FOLDED: usize = 30;

/// Smallest number of samples of a bar that is not printed beside it.
const FEW: usize = 100;

/// Ranges of lengths that have a bar each, where more lengths than that were asked.
const RANGES: [RangeInclusive<usize>; 4] = [1..=3, 4..=10, 11..=30, 31..=usize::MAX];

/// Bars of shares: nothing right, then eighths.
const BARS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Bars of a grid of shares that is long, or wider than the screen and too long in parts; none for one that fits or holds other numbers.
pub(super) fn profile(grid: &Grid, width: usize) -> Option<String> {
    let is_short = named(grid).flat_map(|group| &group.rows).count() < LONG;
    let has_room = || fits(grid, width) || text(grid, width).lines().count() <= FOLDED;
    if grid.unit != Unit::Fraction || is_short && has_room() {
        return None;
    }
    Some(bars_of(grid, usize::MAX))
}

/// Accuracy by task and range of lengths as a grid, of a suite that has none but has curves. They are no part of the document.
pub(super) fn curves(document: &Document) -> Option<Grid> {
    let scorer = &document.main_value(document.summary.rows.last()?)?.0;
    let name = format!("{scorer} accuracy by length");
    let curves: Vec<&Series> = document.summary.series.iter().filter(|series| series.name == name).collect();
    if !document.grids.is_empty() || curves.len() < 2 {
        return None;
    }
    let mut lengths: Vec<usize> =
        curves.iter().flat_map(|series| &series.points).map(|(length, ..)| *length as usize).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let ranges: Vec<RangeInclusive<usize>> = if lengths.len() <= RANGES.len() {
        lengths.iter().map(|&length| length..=length).collect()
    } else {
        let inside = |range: &RangeInclusive<usize>| {
            let mut inside = lengths.iter().copied().filter(|length| range.contains(length));
            let first = inside.next()?;
            Some(first..=inside.next_back().unwrap_or(first))
        };
        RANGES.iter().filter_map(inside).collect()
    };
    let mean = |curves: &[&Series], range: &RangeInclusive<usize>| {
        let points = curves.iter().flat_map(|series| &series.points);
        let points = points.filter(|(length, ..)| range.contains(&(*length as usize)));
        let (right, n) =
            points.fold((0.0, 0), |(right, n), (_, more, value)| (right + value.estimate * *more as f64, n + more));
        (n > 0).then(|| GridCell { value: Interval { estimate: right / n as f64, ..Interval::UNKNOWN }, n })
    };
    let row = |name: &str, curves: &[&Series]| GridRow {
        name: name.to_owned(),
        task: None,
        cells: ranges.iter().map(|range| mean(curves, range)).collect(),
    };
    let tasks = curves.iter().map(|series| row(&series.task, &[*series])).collect();
    let title = |range: &RangeInclusive<usize>| match range.start() == range.end() {
        true => range.start().to_string(),
        false => format!("{}-{}", range.start(), range.end()),
    };
    Some(Grid {
        name: scorer.clone(),
        title: "Right, per cent".into(),
        unit: Unit::Fraction,
        columns: ranges.iter().map(title).collect(),
        covariate: None,
        groups: vec![
            GridGroup { name: "right".into(), rows: tasks },
            GridGroup { name: String::new(), rows: vec![row("all", &curves)] },
        ],
    })
}

/// A grid of shares with a bar for each column; of more tasks than `most`, those with the fewest right answers are a line together,
/// as are those with none.
pub(super) fn bars_of(grid: &Grid, most: usize) -> String {
    let groups: Vec<&GridGroup> = named(grid).collect();
    let rows = || groups.iter().flat_map(|group| &group.rows);
    let used = used(grid);
    let mut names: Vec<&str> = Vec::new();
    for row in rows() {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    let best = |name: &str| {
        let shares = rows().filter(|row| row.name == name).filter_map(|row| share(row, &used));
        shares.fold(f64::NAN, f64::max)
    };
    let (floor, mut shown): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| best(name) == 0.0);
    let mut low: Vec<&str> = Vec::new();
    while shown.len() > most {
        // The last of equals, so that the order of the suite decides.
        let Some((index, _)) =
            shown.iter().enumerate().rev().min_by(|one, other| best(one.1).total_cmp(&best(other.1)))
        else {
            break;
        };
        low.insert(0, shown.remove(index));
    }
    let some = !shown.is_empty();
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
        (1, 1) => " (1 answer each)".to_owned(),
        (least, most) if least == most => format!(" ({least} answers each)"),
        (least, most) => format!(" ({least} to {most} answers each)"),
    };
    let heading = match &columns[..] {
        [only] => format!("A bar for {only}{behind}, and per cent right:\n"),
        _ => format!("Bars for {}{behind}, then all in per cent:\n", columns.join(", ")),
    };
    let mut text = String::new();
    if some {
        text += &heading;
        text += &table.render();
    }
    if let Some(highest) = low.iter().map(|name| best(name)).reduce(f64::max) {
        let most = (100.0 * highest - 1e-9).ceil();
        text += &format!("At most {most:.0} % right: {}\n", low.join(", "));
    }
    if !floor.is_empty() {
        text += &format!("Nothing right: {}\n", floor.join(", "));
    }
    text
}

/// The sums over all tasks, a part a column; none where they are one number.
pub(super) fn bars_below(grid: &Grid) -> Option<String> {
    let rows = grid.groups.iter().filter(|group| group.name.is_empty()).flat_map(|group| &group.rows);
    let all = rows.last()?;
    let parts = used(grid).into_iter().filter_map(|at| Some((at, cell(all, at)?)));
    let parts: Vec<String> = parts
        .map(|(at, cell)| format!("{} ({} % of {})", grid.columns[at], whole(cell.value.estimate), cell.n))
        .collect();
    (parts.len() > 1).then(|| format!("By length: {}", parts.join(", ")))
}

fn named(grid: &Grid) -> impl Iterator<Item = &GridGroup> {
    grid.groups.iter().filter(|group| !group.name.is_empty())
}

/// A share in whole per cent: `<1` for some and `>99` for nearly all, which are neither none nor all.
fn whole(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 1.0 => "<1".to_owned(),
        percent if percent > 99.0 && percent < 100.0 => ">99".to_owned(),
        percent => format!("{percent:.0}"),
    }
}

/// Columns with samples.
fn used(grid: &Grid) -> Vec<usize> {
    let rows = || named(grid).flat_map(|group| &group.rows);
    (0..grid.columns.len()).filter(|&at| rows().any(|row| cell(row, at).is_some())).collect()
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
    let all = share(row, used).map_or_else(String::new, whole);
    format!("{} {all:>3}", used.iter().map(bar).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            covariate: None,
            groups: vec![group("Integer", 1.0), group("Float", 0.0), all],
        }
    }

    #[test]
    fn tasks_are_a_line_each_and_those_at_the_floor_one_together() {
        let text = profile(&grid(12), 100).unwrap();
        assert_eq!(
            text,
            "Bars for S, M, L (4 answers each), then all in per cent:\n\
             \x20    Integer    Float\n\
             ---------------------\n\
             add  █▄   75  ··    0\n\
             sub  █··  33  ···   0\n\
             Nothing right: task2, task3, task4, task5, task6, task7, task8, task9, task10, task11\n"
        );
        let sums = bars_below(&grid(12));
        assert_eq!(sums.as_deref(), Some("By length: S (25 % of 4), M (12 % of 4), L (0 % of 4)"));
    }

    #[test]
    fn tasks_with_nothing_right_need_no_table() {
        let right = row("add", &[0.0, 0.0, 0.0]);
        let groups = vec![GridGroup { name: "Integer".into(), rows: vec![right] }];
        assert_eq!(bars_of(&Grid { groups, ..grid(3) }, 9), "Nothing right: add\n");
    }

    #[test]
    fn the_lowest_tasks_are_a_line_where_there_are_too_many() {
        let text = bars_of(&grid(3), 1);
        assert!(
            text.contains("add  █▄   75") && text.ends_with("At most 34 % right: sub\nNothing right: task2\n"),
            "{text}"
        );
    }

    #[test]
    fn a_single_right_answer_is_not_none() {
        assert_eq!([0.0, 0.001, 0.01, 0.99, 0.999, 1.0].map(whole), ["0", "<1", "1", "99", ">99", "100"]);
        let cell = |right: f64, n| Some(GridCell { value: Interval { estimate: right, low: 0.0, high: 1.0 }, n });
        let of = |name: &str, right: f64| GridRow {
            name: name.into(),
            task: None,
            cells: vec![cell(right, 900), cell(0.0, 900)],
        };
        let groups = vec![
            GridGroup { name: "Integer".into(), rows: vec![of("add", 1.0 / 900.0), of("sub", 2.0 / 900.0)] },
            GridGroup { name: String::new(), rows: vec![of("all", 1.0 / 600.0)] },
        ];
        let grid = Grid { columns: ["S", "XL"].map(String::from).to_vec(), groups, ..grid(3) };
        assert_eq!(bars_below(&grid).as_deref(), Some("By length: S (<1 % of 900), XL (0 % of 900)"));
        let text = bars_of(&grid, 1);
        assert!(text.contains("\u{2581}\u{b7}  <1\n") && text.ends_with("At most 1 % right: add\n"), "{text}");
    }

    #[test]
    fn short_grids_and_other_units_keep_their_table() {
        assert_eq!(profile(&grid(11), 80), None);
        assert_eq!(profile(&Grid { unit: Unit::Digits, ..grid(40) }, 80), None);
    }

    #[test]
    fn a_grid_that_is_wider_than_the_screen_is_bars_unless_its_parts_are_short() {
        let wide = grid(9);
        assert!(profile(&wide, 40).unwrap().starts_with("Bars for S, M, L"), "{:?}", profile(&wide, 40));
        assert_eq!(profile(&Grid { unit: Unit::Digits, ..wide }, 40), None);
        let parts = text(&grid(2), 50);
        assert!(
            parts.contains("100 [  0, 100]    4") && parts.lines().all(|line| line.chars().count() <= 50),
            "{parts}"
        );
        assert!(!fits(&grid(2), 50) && fits(&grid(2), 80));
        assert_eq!(profile(&grid(2), 50), None);
    }
}
