//! Figures of a report.
use std::collections::BTreeMap;

use super::ReportRun;
use super::differences::{holds, rows};
use super::run::{RIGHT, latency};
use crate::Comparison;
use crate::plot::{
    Bar, BarGroup, Bars, Curve, CurvePlot, Distribution, Figure, Heat, HeatPanel, HeatRow, Histogram, Measure, Shade,
    Stacked, bars, bars_domain, curves, heat, histogram, number, stacked,
};
use earnest_tasks::suite::registry::task_label;
use earnest_tasks::suite::{Grid, Interval, Series, Unit};

/// A figure and its position in the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub section: Section,
    /// Task of the figure, if it has a single one.
    pub task: Option<String>,
    /// Run of the figure, if it has a single one.
    pub run: Option<usize>,
    pub figure: Figure,
}

/// Sections of the report with figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Accuracy,
    Differences,
    Curves,
    /// Curves of further metrics.
    MoreCurves,
    Heat,
    /// Heat maps of further metrics.
    MoreHeat,
    Outcomes,
    Latency,
}

impl Section {
    /// True for the figures of a run as a whole; the others are of a task or of a further metric each.
    pub fn is_overview(self) -> bool {
        matches!(self, Section::Accuracy | Section::Differences | Section::Heat | Section::Outcomes)
    }
}

/// Draws every figure for which the runs have data. `legend` draws keys into them, as single files need.
pub fn figures(runs: &[ReportRun], comparisons: &[Comparison], legend: bool) -> Vec<Placed> {
    let mut figures = Vec::new();
    figures.extend(accuracy(runs, legend));
    figures.extend(differences(runs, comparisons, legend));
    figures.extend(by_length(runs, legend));
    figures.extend(runs.iter().enumerate().flat_map(|(index, run)| {
        heats(run).into_iter().enumerate().map(move |(further, one)| Placed {
            section: if further > 0 { Section::MoreHeat } else { Section::Heat },
            task: None,
            run: Some(index),
            figure: heat(&one),
        })
    }));
    let classes = classes(runs);
    figures.extend(runs.iter().enumerate().map(|(index, run)| outcomes(run, index, &classes)));
    figures.extend(distributions(runs, legend));
    figures
}

fn labels(runs: &[ReportRun]) -> Vec<String> {
    runs.iter().map(|run| run.label.clone()).collect()
}

/// Largest number of tasks of a figure of bars; more are drawn by groups.
const TOGETHER: usize = 16;

/// Draws the accuracy by the deciding scorer of every row of the summary, with the runs side by side.
fn accuracy(runs: &[ReportRun], legend: bool) -> Vec<Placed> {
    let mut bars: Vec<BarGroup> = Vec::new();
    for (series, run) in runs.iter().enumerate() {
        for row in &run.document.summary.rows {
            let Some((_, value)) = run.document.main_value(row) else { continue };
            add(&mut bars, &row.name, Bar { series, value: *value, significant: None });
        }
    }
    let plot = Bars {
        name: "accuracy-by-task".into(),
        title: "Accuracy by task".into(),
        x_label: "accuracy, %".into(),
        series: labels(runs),
        groups: bars,
        domain: Some((0.0, 1.0)),
        factor: 100.0,
        legend,
    };
    by_group(runs, plot, Section::Accuracy)
}

/// Draws the paired differences to the first run; those that do not hold after Holm's adjustment are hatched.
fn differences(runs: &[ReportRun], comparisons: &[Comparison], legend: bool) -> Vec<Placed> {
    let Some(base) = runs.first() else { return Vec::new() };
    let mut groups: Vec<BarGroup> = Vec::new();
    for comparison in comparisons.iter().filter(|comparison| comparison.overall.shares) {
        let Some(series) = runs.iter().position(|run| run.label == comparison.run) else { continue };
        for one in rows(comparison, base) {
            let (low, high) = one.interval.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            // Without a standard error there is no test, and it may be chance too; the remarks name such tasks.
            let significant = Some(one.interval.is_some() && holds(&one));
            let value = Interval { estimate: one.difference, low, high };
            add(&mut groups, &one.name, Bar { series, value, significant });
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let plot = Bars {
        name: "difference-to-first".into(),
        title: format!("Difference to {}", base.label),
        x_label: "difference, percentage points".into(),
        series: labels(runs),
        domain: Some(bars_domain(&groups)),
        groups,
        factor: 100.0,
        legend,
    };
    by_group(runs, plot, Section::Differences)
}

fn add(groups: &mut Vec<BarGroup>, name: &str, bar: Bar) {
    match groups.iter_mut().find(|group| group.label == name) {
        Some(group) => group.bars.push(bar),
        None => groups.push(BarGroup { label: name.to_owned(), bars: vec![bar] }),
    }
}

/// Draws bars of many tasks as a figure for each group of tasks, on the same axis; the row of all tasks comes last in each.
fn by_group(runs: &[ReportRun], mut plot: Bars, section: Section) -> Vec<Placed> {
    // `all` is the last row of every run; a later run's own tasks must not come after it.
    plot.groups.sort_by_key(|group| group.label == "all");
    let of_tasks = groups(runs);
    let placed = |plot: &Bars| Placed { section, task: None, run: None, figure: bars(plot) };
    if plot.groups.len() <= TOGETHER || of_tasks.len() < 2 {
        return vec![placed(&plot)];
    }
    let group_of = |row: &BarGroup| of_tasks.iter().position(|(_, tasks)| tasks.contains(&row.label));
    let part = |group: Option<usize>, name: &str| {
        let wanted = |row: &&BarGroup| group_of(row) == group && row.label != "all";
        let mut rows: Vec<BarGroup> = plot.groups.iter().filter(wanted).cloned().collect();
        if rows.is_empty() {
            return None;
        }
        // It is of the other groups too.
        let all = plot.groups.iter().filter(|row| row.label == "all").cloned();
        rows.extend(all.map(|row| BarGroup { label: "all groups".to_owned(), ..row }));
        let (name, title) = (format!("{}-{name}", plot.name), format!("{}: {name}", plot.title));
        Some(placed(&Bars { name, title, groups: rows, ..plot.clone() }))
    };
    let named = of_tasks.iter().enumerate().filter_map(|(index, (name, _))| part(Some(index), name));
    named.chain(part(None, "other")).collect()
}

/// Returns the groups of the runs' own tables, in order, with their tasks.
pub(super) fn groups(runs: &[ReportRun]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let every = runs.iter().filter_map(|run| run.document.grids.first()).flat_map(|grid| &grid.groups);
    for group in every.filter(|group| !group.name.is_empty()) {
        let tasks = group.rows.iter().filter_map(|row| row.task.clone());
        match groups.iter_mut().find(|(name, _)| *name == group.name) {
            Some((_, known)) => known.extend(tasks),
            None => groups.push((group.name.clone(), tasks.collect())),
        }
    }
    groups
}

/// Returns the series of the suite's deciding scorer, which comes first.
fn chosen(run: &ReportRun) -> Vec<&Series> {
    let series = &run.document.summary.series;
    let name = series.first().map(|one| one.name.as_str());
    series.iter().filter(|one| Some(one.name.as_str()) == name).collect()
}

/// Returns the series to draw: all for suites with their own tables, else those of the deciding scorer.
fn drawn(run: &ReportRun) -> Vec<&Series> {
    if run.document.grids.is_empty() { chosen(run) } else { run.document.summary.series.iter().collect() }
}

/// Returns the table of the same metric as a series.
fn grid_of<'a>(run: &'a ReportRun, series: &Series) -> Option<&'a Grid> {
    run.document.grids.iter().find(|grid| series.name.strip_suffix(" by length") == Some(grid.name.as_str()))
}

/// Draws a plot per task and metric, with a curve per run.
fn by_length(runs: &[ReportRun], legend: bool) -> Vec<Placed> {
    // Task, metric and plot; the metric is none where it is the main one.
    let mut plots: Vec<(String, Option<String>, CurvePlot)> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let first = run.document.summary.series.first().map(|series| series.name.as_str());
        for series in drawn(run).into_iter().filter(|series| series.points.len() > 1) {
            let grid = grid_of(run, series);
            let further = (first != Some(series.name.as_str()))
                .then(|| grid.map_or_else(|| series.name.clone(), |grid| grid.name.replace('_', " ")));
            let curve = Curve { label: run.label.clone(), series: index, points: series.points.clone() };
            let known = plots.iter_mut().find(|(task, metric, _)| *task == series.task && *metric == further);
            if let Some((_, _, plot)) = known {
                plot.curves.push(curve);
                continue;
            }
            let measure = match grid.map(|grid| grid.unit) {
                Some(Unit::Digits | Unit::Reach) => Measure::Amount,
                Some(Unit::Fraction) | None => Measure::Share,
            };
            let (name, title, y_label) = match (&further, measure) {
                (None, _) => (String::new(), task_label(&series.task).into_owned(), "accuracy, %".to_owned()),
                (Some(metric), Measure::Share) => {
                    (format!("{metric}-"), format!("{}: {metric}", task_label(&series.task)), format!("{metric}, %"))
                }
                (Some(metric), Measure::Amount) => {
                    (format!("{metric}-"), format!("{}: {metric}", task_label(&series.task)), metric.clone())
                }
            };
            let plot = CurvePlot {
                name: format!("by-length-{}{}", name.replace(' ', "-"), series.task),
                title,
                x_label: "length".into(),
                y_label,
                measure,
                curves: vec![curve],
                legend,
            };
            plots.push((series.task.clone(), further, plot));
        }
    }
    let placed = |(task, metric, plot): (String, Option<String>, CurvePlot)| Placed {
        section: if metric.is_none() { Section::Curves } else { Section::MoreCurves },
        task: Some(task),
        run: None,
        figure: curves(&plot),
    };
    plots.into_iter().map(placed).collect()
}

/// Draws the heat map of a run to show first, with cells that are links: `samples` is the address of the run's samples up to the
/// parameters that choose some of them.
pub fn linked_heat(run: &ReportRun, samples: &str) -> Option<Figure> {
    let first = heats(run).into_iter().next()?;
    Some(heat(&Heat { samples: Some(samples.to_owned()), ..first }))
}

/// Returns the suite's own tables as heat maps, or accuracy by task and length without any; the first is the one to show first.
pub(super) fn heats(run: &ReportRun) -> Vec<Heat> {
    let grids: Vec<Heat> = run.document.grids.iter().filter_map(|grid| grid_heat(run, grid)).collect();
    if grids.is_empty() { lengths_heat(run).into_iter().collect() } else { grids }
}

/// Returns a table of means as a heat map with a panel for each group; tables of limits have none.
fn grid_heat(run: &ReportRun, grid: &Grid) -> Option<Heat> {
    let cells = || grid.groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.cells).flatten();
    let shade = match grid.unit {
        Unit::Fraction => Shade::Share,
        Unit::Digits => {
            let values = cells().map(|cell| cell.value.estimate).filter(|value| value.is_finite());
            let most = values.fold(0.0, f64::max);
            // Limits of a profile, of which more is better; elsewhere errors are counted in digits.
            if run.document.manifest.settings.is_adaptive() { Shade::Digits(most) } else { Shade::ErrorUpTo(most) }
        }
        Unit::Reach => return None,
    };
    cells().next()?;
    let panels = grid.groups.iter().map(|group| HeatPanel {
        title: group.name.clone(),
        columns: match shade {
            // The key says that they are limits.
            Shade::Digits(_) => grid.columns.iter().map(|name| name.trim_start_matches("limit ").to_owned()).collect(),
            Shade::Share | Shade::ErrorUpTo(_) => grid.columns.clone(),
        },
        rows: group
            .rows
            .iter()
            .map(|row| HeatRow {
                name: row.name.clone(),
                task: row.task.clone(),
                cells: row.cells.iter().map(|cell| cell.map(|cell| (cell.value.estimate, cell.n))).collect(),
            })
            .collect(),
    });
    Some(Heat {
        name: format!("heat-{}-{}", grid.name, run.label),
        title: format!("{}: {}", grid.title, run.label),
        x_label: if matches!(shade, Shade::Digits(_)) { "limits" } else { "range of lengths" }.into(),
        shade,
        panels: panels.collect(),
        covariate: grid.covariate.clone(),
        samples: None,
    })
}

/// Returns accuracy by task and length of a run.
fn lengths_heat(run: &ReportRun) -> Option<Heat> {
    let series = chosen(run);
    let mut lengths: Vec<f64> = series.iter().flat_map(|one| one.points.iter().map(|point| point.0)).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    lengths.dedup();
    if lengths.len() < 2 {
        return None;
    }
    let cell = |one: &Series, length: f64| {
        let point = one.points.iter().find(|point| point.0 == length);
        point.map(|(_, n, Interval { estimate, .. })| (*estimate, *n))
    };
    let rows = series.iter().map(|one| HeatRow {
        name: one.task.clone(),
        task: Some(one.task.clone()),
        cells: lengths.iter().map(|&length| cell(one, length)).collect(),
    });
    let columns = lengths.iter().map(|length| number(*length)).collect();
    Some(Heat {
        name: format!("heat-{}", run.label),
        title: format!("Accuracy by task and length: {}", run.label),
        x_label: "length".into(),
        shade: Shade::Share,
        panels: vec![HeatPanel { title: String::new(), columns, rows: rows.collect() }],
        covariate: Some("length".into()),
        samples: None,
    })
}

/// Returns the outcomes of all runs, `right` first, then by frequency, so that each has one colour throughout.
fn classes(runs: &[ReportRun]) -> Vec<String> {
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    let outcomes: Vec<_> = runs.iter().map(ReportRun::outcomes).collect();
    for (name, count) in outcomes.iter().flat_map(|by_task| by_task.values().flatten()) {
        *totals.entry(name).or_default() += count;
    }
    totals.remove(RIGHT);
    let mut others: Vec<(&str, usize)> = totals.into_iter().collect();
    others.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    [RIGHT].into_iter().chain(others.into_iter().map(|(name, _)| name)).map(str::to_owned).collect()
}

fn outcomes(run: &ReportRun, index: usize, classes: &[String]) -> Placed {
    let by_task = run.outcomes();
    let rows = run.tasks().into_iter().map(|task| {
        let counts = by_task.get(task);
        let count = |class: &String| counts.and_then(|counts| counts.get(class.as_str())).copied().unwrap_or(0);
        (task.to_owned(), classes.iter().map(count).collect())
    });
    let figure = stacked(&Stacked {
        name: format!("outcomes-{}", run.label),
        title: format!("How answers end: {}", run.label),
        rows: rows.collect(),
        classes: classes.to_vec(),
    });
    Placed { section: Section::Outcomes, task: None, run: Some(index), figure }
}

fn distributions(runs: &[ReportRun], legend: bool) -> Vec<Placed> {
    let series = |value: fn(&earnest_results::Sample) -> Option<f64>| -> Vec<Distribution> {
        let one = |(series, run): (usize, &ReportRun)| Distribution {
            label: run.label.clone(),
            series,
            values: run.samples.iter().filter_map(value).collect(),
        };
        runs.iter().enumerate().map(one).collect()
    };
    let tokens =
        |sample: &earnest_results::Sample| sample.completion.as_ref().map(|completion| completion.tokens() as f64);
    let lengths = series(tokens);
    let latencies = series(latency);
    // Imported completions have neither timings nor token ids, so there may be nothing to draw.
    let timed = latencies.iter().flat_map(|one| &one.values).any(|value| *value > 0.0);
    let counted = lengths.iter().flat_map(|one| &one.values).any(|value| *value > 0.0);
    let plots = [
        timed.then(|| Histogram {
            name: "latency".into(),
            title: "Latency of a sample".into(),
            x_label: "seconds, waiting excluded".into(),
            log: true,
            series: latencies,
            legend,
        }),
        counted.then(|| Histogram {
            name: "tokens".into(),
            title: "Length of a completion".into(),
            x_label: "tokens".into(),
            log: false,
            series: lengths,
            legend,
        }),
    ];
    let placed =
        |plot: Histogram| Placed { section: Section::Latency, task: None, run: None, figure: histogram(&plot) };
    plots.into_iter().flatten().map(placed).collect()
}
