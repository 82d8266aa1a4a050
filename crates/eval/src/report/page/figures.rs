//! Figures of a report.
use std::collections::BTreeMap;

use super::ReportRun;
use super::run::{Paired, latency, paired, paired_model};
use crate::report::plot::{
    Bar, BarGroup, Bars, Curve, CurvePlot, Distribution, Figure, Heat, HeatRow, Histogram, Measure, Shade, Stacked,
    bars, compact, curves, heat, histogram, number, stacked,
};
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

/// Draws every figure for which the runs have data. `legend` draws keys into them, as single files need.
pub fn figures(runs: &[ReportRun], legend: bool) -> Vec<Placed> {
    let mut figures = Vec::new();
    figures.extend(accuracy(runs, legend));
    figures.extend(differences(runs, legend));
    figures.extend(by_length(runs, legend));
    figures.extend(runs.iter().enumerate().flat_map(|(place, run)| heats(run, place)));
    let classes = classes(runs);
    figures.extend(runs.iter().enumerate().map(|(place, run)| outcomes(run, place, &classes)));
    figures.extend(distributions(runs, legend));
    figures
}

fn labels(runs: &[ReportRun]) -> Vec<String> {
    runs.iter().map(|run| run.label.clone()).collect()
}

/// Draws the primary accuracy of every row of the summary, with the runs side by side.
fn accuracy(runs: &[ReportRun], legend: bool) -> Option<Placed> {
    let mut groups: Vec<BarGroup> = Vec::new();
    for (series, run) in runs.iter().enumerate() {
        for row in &run.document.summary.rows {
            let Some((_, value)) = run.document.main_value(row) else { continue };
            let bar = Bar { series, value: *value, significant: None };
            match groups.iter_mut().find(|group| group.label == row.name) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { label: row.name.clone(), bars: vec![bar] }),
            }
        }
    }
    // `all` is the last row of every run; a later run's own tasks must not come after it.
    groups.sort_by_key(|group| group.label == "all");
    let figure = bars(&Bars {
        name: "accuracy-by-task".into(),
        title: "Accuracy by task".into(),
        x_label: "accuracy, %".into(),
        series: labels(runs),
        groups,
        domain: Some((0.0, 1.0)),
        factor: 100.0,
        legend,
    });
    Some(Placed { section: Section::Accuracy, task: None, run: None, figure })
}

/// Draws the paired differences to the first run.
fn differences(runs: &[ReportRun], legend: bool) -> Option<Placed> {
    let (base, rest) = runs.split_first()?;
    let mut groups: Vec<BarGroup> = Vec::new();
    for (series, run) in rest.iter().enumerate().map(|(place, run)| (place + 1, run)) {
        for pair in paired(base, run) {
            // Without a standard error there is no significance; the remarks name such tasks.
            let significant = pair.has_error().then_some(pair.value.low > 0.0 || pair.value.high < 0.0);
            let Paired { task, value, .. } = pair;
            let bar = Bar { series, value, significant };
            match groups.iter_mut().find(|group| group.label == task) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { label: task, bars: vec![bar] }),
            }
        }
    }
    groups.sort_by_key(|group| group.label == "all");
    if groups.is_empty() {
        return None;
    }
    let figure = bars(&Bars {
        name: "difference-to-first".into(),
        title: format!("Difference to {}", base.label),
        x_label: "difference, percentage points".into(),
        series: labels(runs),
        groups,
        domain: None,
        factor: 100.0,
        legend,
    });
    Some(Placed { section: Section::Differences, task: None, run: None, figure })
}

/// Returns the mixed models of the runs beside the first one.
pub fn model_remarks(runs: &[ReportRun]) -> Vec<String> {
    let Some((base, rest)) = runs.split_first() else { return Vec::new() };
    let said = |run: &ReportRun| Some(format!("{}: {}", run.label, paired_model(base, run)?.remark()));
    rest.iter().filter_map(said).collect()
}

/// Returns remarks on tasks without a comparison or a standard error.
pub fn difference_remarks(runs: &[ReportRun]) -> Vec<String> {
    let Some((base, rest)) = runs.split_first() else { return Vec::new() };
    let mut remarks = Vec::new();
    for run in rest {
        let pairs = paired(base, run);
        let mut named = |without: Vec<&str>, why: &str| {
            if !without.is_empty() {
                remarks.push(format!("{}: {why}: {}.", run.label, without.join(", ")));
            }
        };
        let without = |one_cluster: bool| -> Vec<&str> {
            let wanted = |pair: &&Paired| !pair.has_error() && (pair.clusters < 2) == one_cluster;
            pairs.iter().filter(wanted).map(|pair| pair.task.as_str()).collect()
        };
        named(without(true), "no standard error can be estimated from one cluster of items");
        named(without(false), "no standard error can be estimated, because all items differ by the same amount");
        let mut alone: Vec<&str> = Vec::new();
        // Logs of two tools have one task under two names; pairs have that of the first.
        let of_logs = [base, run].iter().any(|run| run.document.manifest.settings.is_log());
        let others = if of_logs && !pairs.is_empty() { Vec::new() } else { run.tasks() };
        for task in base.tasks().into_iter().chain(others) {
            if !alone.contains(&task) && !pairs.iter().any(|pair| pair.task == task) {
                alone.push(task);
            }
        }
        named(alone, "not compared, because no item is in both runs");
    }
    remarks
}

/// Returns the series of the suite's primary rule, which comes first.
fn primary(run: &ReportRun) -> Vec<&Series> {
    let series = &run.document.summary.series;
    let name = series.first().map(|one| one.name.as_str());
    series.iter().filter(|one| Some(one.name.as_str()) == name).collect()
}

/// Returns the series to draw: all for suites with their own tables, else those of the primary rule.
fn drawn(run: &ReportRun) -> Vec<&Series> {
    if run.document.grids.is_empty() { primary(run) } else { run.document.summary.series.iter().collect() }
}

/// Returns the table of the same metric as a series.
fn grid_of<'a>(run: &'a ReportRun, series: &Series) -> Option<&'a Grid> {
    run.document.grids.iter().find(|grid| series.name.strip_suffix(" by length") == Some(grid.name.as_str()))
}

/// Draws a plot per task and metric, with a curve per run.
fn by_length(runs: &[ReportRun], legend: bool) -> Vec<Placed> {
    // Task, metric and plot; the metric is none where it is the primary one.
    let mut plots: Vec<(String, Option<String>, CurvePlot)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let first = run.document.summary.series.first().map(|series| series.name.as_str());
        for series in drawn(run).into_iter().filter(|series| series.points.len() > 1) {
            let grid = grid_of(run, series);
            let further = (first != Some(series.name.as_str()))
                .then(|| grid.map_or_else(|| series.name.clone(), |grid| grid.name.replace('_', " ")));
            let curve = Curve { label: run.label.clone(), series: place, points: series.points.clone() };
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
                (None, _) => (String::new(), compact(&series.task), "accuracy, %".to_owned()),
                (Some(metric), Measure::Share) => {
                    (format!("{metric}-"), format!("{}: {metric}", compact(&series.task)), format!("{metric}, %"))
                }
                (Some(metric), Measure::Amount) => {
                    (format!("{metric}-"), format!("{}: {metric}", compact(&series.task)), metric.clone())
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

/// Draws the suite's own tables as heat maps, or accuracy by task and length without any.
fn heats(run: &ReportRun, place: usize) -> Vec<Placed> {
    let mut grids = run.document.grids.iter().filter_map(|grid| grid_heat(run, place, grid)).collect::<Vec<_>>();
    grids.iter_mut().skip(1).for_each(|further| further.section = Section::MoreHeat);
    if grids.is_empty() { lengths_heat(run, place).into_iter().collect() } else { grids }
}

/// Draws a table of means; tables of limits have no heat map.
fn grid_heat(run: &ReportRun, place: usize, grid: &Grid) -> Option<Placed> {
    let cells = || grid.groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.cells).flatten();
    let shade = match grid.unit {
        Unit::Fraction => Shade::Share,
        Unit::Digits => {
            let values = cells().map(|cell| cell.value.estimate).filter(|value| value.is_finite());
            Shade::ErrorUpTo(values.fold(0.0, f64::max))
        }
        Unit::Reach => return None,
    };
    cells().next()?;
    let rows = grid.groups.iter().flat_map(|group| {
        group.rows.iter().map(|row| {
            let name = format!("{} {}", row.name, group.name).trim_end().to_owned();
            let cells = row.cells.iter().map(|cell| cell.map(|cell| (cell.value.estimate, cell.n))).collect();
            HeatRow { name, task: row.task.clone(), cells }
        })
    });
    let figure = heat(&Heat {
        name: format!("heat-{}-{}", grid.name, run.label),
        title: format!("{}: {}", grid.title, run.label),
        x_label: "range of lengths".into(),
        shade,
        columns: grid.columns.clone(),
        rows: rows.collect(),
    });
    Some(Placed { section: Section::Heat, task: None, run: Some(place), figure })
}

/// Draws accuracy by task and length of a run.
fn lengths_heat(run: &ReportRun, place: usize) -> Option<Placed> {
    let series = primary(run);
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
    let figure = heat(&Heat {
        name: format!("heat-{}", run.label),
        title: format!("Accuracy by task and length: {}", run.label),
        x_label: "length".into(),
        shade: Shade::Share,
        columns: lengths.iter().map(|length| number(*length)).collect(),
        rows: rows.collect(),
    });
    Some(Placed { section: Section::Heat, task: None, run: Some(place), figure })
}

/// Returns the outcomes of all runs, `correct` first, then by frequency, so that each has one colour throughout.
fn classes(runs: &[ReportRun]) -> Vec<String> {
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    let outcomes: Vec<_> = runs.iter().map(ReportRun::outcomes).collect();
    for (name, count) in outcomes.iter().flat_map(|by_task| by_task.values().flatten()) {
        *totals.entry(name).or_default() += count;
    }
    totals.remove("correct");
    let mut others: Vec<(&str, usize)> = totals.into_iter().collect();
    others.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    ["correct"].into_iter().chain(others.into_iter().map(|(name, _)| name)).map(str::to_owned).collect()
}

fn outcomes(run: &ReportRun, place: usize, classes: &[String]) -> Placed {
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
    Placed { section: Section::Outcomes, task: None, run: Some(place), figure }
}

fn distributions(runs: &[ReportRun], legend: bool) -> Vec<Placed> {
    let series = |value: fn(&crate::run::Sample) -> Option<f64>| -> Vec<Distribution> {
        let one = |(series, run): (usize, &ReportRun)| Distribution {
            label: run.label.clone(),
            series,
            values: run.samples.iter().filter_map(value).collect(),
        };
        runs.iter().enumerate().map(one).collect()
    };
    let tokens = |sample: &crate::run::Sample| sample.completion.as_ref().map(|completion| completion.tokens() as f64);
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
