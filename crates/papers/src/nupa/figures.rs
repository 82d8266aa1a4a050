//! Figures 2 and 5 to 8 of a run as drawings: bars with intervals, one drawing per representation.
use super::document::{FigureMetric, NupaFigure, NupaRun};
use crate::nupa::inference_tables::FigureRow;
use earnest_report::plot::{Bar, BarGroup, Bars, Figure, bars};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::nupa::{LengthRange, Representation, TaskId};

/// Draws a run's figures by its own scorer, each with the numbers of the paper's figures that it corresponds to.
pub fn figures(run: &NupaRun) -> Vec<(Vec<u8>, Figure)> {
    let mut drawn = Vec::new();
    for figure in run.figures.iter().filter(|figure| figure.chosen) {
        for representation in Representation::ALL {
            let own = |row: &&FigureRow| row.representation == representation.name();
            let rows: Vec<&FigureRow> = figure.rows.iter().filter(own).collect();
            if !rows.is_empty() {
                drawn.push((figure.figures.clone(), draw(run, figure, representation, &rows)));
            }
        }
    }
    drawn
}

/// The numbers of figures in words: `2 and 5`.
pub(super) fn numbers(figures: &[u8]) -> String {
    figures.iter().map(u8::to_string).collect::<Vec<_>>().join(" and ")
}

/// A row's value of the figure's metric.
pub(super) fn value(figure: &NupaFigure, row: &FigureRow) -> Interval {
    match figure.metric {
        FigureMetric::ExactMatch => row.exact_match,
        FigureMetric::DigitMatch => row.digit_match,
        FigureMetric::Log2Dlength => row.log2_dlength,
    }
}

fn draw(run: &NupaRun, figure: &NupaFigure, representation: Representation, rows: &[&FigureRow]) -> Figure {
    let mut groups: Vec<BarGroup> = Vec::new();
    for row in rows {
        let label =
            row.task.parse::<TaskId>().map_or_else(|_| row.task.clone(), |task| task.operation.title().to_owned());
        let series = LengthRange::ALL.iter().position(|range| range.name() == row.range).unwrap_or_default();
        let bar = Bar { series, value: value(figure, row), significant: None };
        match groups.iter_mut().find(|group| group.label == label) {
            Some(group) => group.bars.push(bar),
            None => groups.push(BarGroup { label, bars: vec![bar] }),
        }
    }
    let (metric, unit, domain, factor) = match figure.metric {
        FigureMetric::ExactMatch => ("exact match", ", %", Some((0.0, 1.0)), 100.0),
        FigureMetric::DigitMatch => ("digit match", ", %", Some((0.0, 1.0)), 100.0),
        FigureMetric::Log2Dlength => ("log2(dlength + 1)", "", None, 1.0),
    };
    let name: Vec<String> = figure.figures.iter().map(u8::to_string).collect();
    bars(&Bars {
        name: format!("nupa-figure-{}-{}-{}", name.join("-"), representation.heading().to_lowercase(), run.run),
        title: format!("{metric} on {}, {}", representation.heading(), run.model),
        x_label: format!("{metric}{unit}"),
        series: LengthRange::ALL.map(|range| range.name().to_owned()).to_vec(),
        groups,
        domain,
        factor,
        legend: true,
    })
}
