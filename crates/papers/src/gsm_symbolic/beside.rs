//! Figures 1 to 11 with the paper's values beside ours.
use super::drawing::{Drawing, exact};
use super::evaluation::ErrorClass;
use super::numbers::bin_name;
use super::result_table::{Cell, ResultRow, ResultTable};
use super::study::Study;
use crate::gsm_symbolic::published::{Printed, code_errors, nl_error_totals};
use earnest_report::plot::{Bar, BarGroup, Bars, Figure, Forest, ForestRow, Stacked, bars, forest, stacked};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::gsm_symbolic::Prompt;

const OURS: usize = 0;
const PAPER: usize = 1;
const LEVEL: f64 = 0.05;

fn name(number: u8) -> String {
    format!("gsm-symbolic-figure-{number}")
}

fn published(cell: Option<&Cell>) -> Option<f64> {
    cell?.published.and_then(Printed::value)
}

fn ours(cell: Option<&Cell>) -> Option<f64> {
    cell?.ours
}

/// Tests of a row, by a column of p values: ours and the paper's.
fn tests(row: &ResultRow, column: usize) -> (bool, bool) {
    let cell = row.cells.get(column);
    let ours = ours(cell).is_some_and(|p| p < LEVEL);
    (ours, cell.and_then(|cell| cell.published).is_some_and(|p| p.is_below(LEVEL)))
}

/// Draws every figure that has data of the paper or of the runs.
pub(super) fn drawings(study: &Study) -> Vec<Drawing> {
    let mut drawings = Vec::new();
    for figure in &study.figures {
        match figure.number {
            1 | 3..=6 => drawings.extend(effects(study, figure).map(|drawn| (figure.number, drawn))),
            2 => drawings.extend(grouped(figure, &["base", "variants", "difference"], &[0, 1, 2], |_| 3, "per cent")),
            8 => {
                let names = ["variant, GLMM 1", "numbers, GLMM 2", "variant, GLMM 2"];
                drawings.extend(grouped(figure, &names, &[0, 2, 4], |column| column + 1, "log odds"));
            }
            7 => drawings.extend(integers(study, figure)),
            _ => {}
        }
    }
    for (number, code, errors_only, title) in [
        (9, false, false, "answers to variants"),
        (10, true, false, "answers to variants"),
        (11, true, true, "errors other than wrong numbers"),
    ] {
        drawings.extend(failures(study, number, code, errors_only, title));
    }
    drawings
}

/// Figures 1 and 3 to 6: odds ratios, and differences in points.
fn effects(study: &Study, figure: &ResultTable) -> impl Iterator<Item = Figure> {
    let prompt = figure.prompt.map_or("", Prompt::name);
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    for row in &figure.rows {
        let (own, printed) = tests(row, 4);
        let at = |column: usize, of: fn(Option<&Cell>) -> Option<f64>| of(row.cells.get(column));
        let mut add =
            |label: String, series, significant, of: fn(Option<&Cell>) -> Option<f64>, problem: Option<String>| {
                let exp = |column| at(column, of).map_or(f64::NAN, f64::exp);
                let (estimate, low, high) = (exp(0), exp(1), exp(2));
                if estimate.is_finite() || problem.is_some() {
                    rows.push(ForestRow { label, estimate, low, high, significant, problem, series });
                }
            };
        add(row.name.clone(), PAPER, printed, published, None);
        let fit = figure.prompt.and_then(|prompt| study.analysis(&row.name, prompt)).map(|ours| &ours.glmm1);
        let problem = fit.and_then(|fit| fit.problem()).map(str::to_owned);
        add(row.name.clone(), OURS, own, ours, problem);
        let bar = |series, value: Option<f64>, significant| {
            value.map(|value| Bar { series, value: exact(value), significant: Some(significant) })
        };
        let interval = figure.prompt.and_then(|prompt| study.analysis(&row.name, prompt)?.accuracies.interval);
        let own_bar = bar(OURS, at(3, ours), own).map(|bar| Bar {
            value: interval.map_or(bar.value, |found| Interval { estimate: bar.value.estimate, ..found }),
            ..bar
        });
        let bars: Vec<Bar> = [own_bar, bar(PAPER, at(3, published), printed)].into_iter().flatten().collect();
        if !bars.is_empty() {
            groups.push(BarGroup { label: row.name.clone(), bars });
        }
    }
    let series = vec!["ours".to_owned(), "paper".to_owned()];
    let ratios = forest(&Forest {
        name: name(figure.number),
        title: format!("Figure {}: variant effect, {prompt} prompt", figure.number),
        x_label: "odds ratio of variants against base, 95 % interval".into(),
        rows,
        series: series.clone(),
    });
    let differences = bars(&Bars {
        name: format!("{}-difference", name(figure.number)),
        title: format!("Figure {}: difference in accuracy, {prompt} prompt", figure.number),
        x_label: "variants minus base, points".into(),
        series,
        groups,
        domain: None,
        factor: 1.0,
        legend: true,
    });
    [ratios, differences].into_iter()
}

/// Figures 2 and 8, a drawing for each prompt: quantities of some columns, ours and the paper's.
fn grouped(
    figure: &ResultTable,
    names: &[&str],
    columns: &[usize],
    test: fn(usize) -> usize,
    x_label: &str,
) -> Vec<Drawing> {
    let mut drawings = Vec::new();
    for prompt in Prompt::ALL {
        let rows = figure.rows.iter().filter(|row| row.series.as_deref() == Some(prompt.name()));
        let group = |row: &ResultRow| {
            let bar = |(index, column): (usize, &usize)| {
                let (own, printed) = tests(row, test(*column));
                let cell = row.cells.get(*column);
                let bar = |series, value: Option<f64>, significant| {
                    value.map(|value| Bar { series, value: exact(value), significant: Some(significant) })
                };
                [bar(index, ours(cell), own), bar(names.len() + index, published(cell), printed)]
            };
            let bars: Vec<Bar> = columns.iter().enumerate().flat_map(bar).flatten().collect();
            (!bars.is_empty()).then(|| BarGroup { label: row.name.clone(), bars })
        };
        let groups: Vec<BarGroup> = rows.filter_map(group).collect();
        if groups.is_empty() {
            continue;
        }
        let suffix = if prompt == Prompt::Gsm { String::new() } else { format!("-{prompt}") };
        let label = |whose: &'static str| names.iter().map(move |name| format!("{name}, {whose}"));
        let what = if figure.number == 2 { "accuracies" } else { "effects" };
        let plot = Bars {
            name: format!("{}{suffix}", name(figure.number)),
            title: format!("Figure {}: {what}, {prompt} prompt", figure.number),
            x_label: format!("{x_label}; hatched: p of .05 or more"),
            series: label("ours").chain(label("paper")).collect(),
            groups,
            domain: None,
            factor: 1.0,
            legend: true,
        };
        drawings.push((figure.number, bars(&plot)));
    }
    drawings
}

/// Figure 7: shares by size. The paper plots the variants without numbers.
fn integers(study: &Study, figure: &ResultTable) -> Vec<Drawing> {
    let bins: Vec<&ResultRow> = figure.rows.iter().filter(|row| row.series.as_deref() == Some("share")).collect();
    let bar = |series, value: Option<f64>| value.map(|value| Bar { series, value: exact(value), significant: None });
    let groups = bins.iter().enumerate().map(|(bin, row)| BarGroup {
        label: bin_name(bin),
        bars: [bar(0, ours(row.cells.first())), bar(1, published(row.cells.first())), bar(2, ours(row.cells.get(1)))]
            .into_iter()
            .flatten()
            .collect(),
    });
    let shares = bars(&Bars {
        name: name(7),
        title: "Figure 7: integers in the questions".into(),
        x_label: "share of the integers, %".into(),
        series: ["base, ours", "base, paper", "variants, ours"].map(str::to_owned).to_vec(),
        groups: groups.collect(),
        domain: None,
        factor: 1.0,
        legend: true,
    });
    let mut drawings = vec![(7, shares)];
    drawings.extend(super::drawing::cumulative(study, "gsm-symbolic"));
    drawings
}

/// Figures 9 to 11, a drawing for each prompt. Of natural-language prompts the paper prints totals alone.
fn failures(study: &Study, number: u8, code: bool, errors_only: bool, title: &str) -> Vec<Drawing> {
    let counted = |class: ErrorClass| !(errors_only && class == ErrorClass::Wrong);
    let mut drawings = Vec::new();
    for prompt in Prompt::ALL.into_iter().filter(|prompt| prompt.is_code() == code) {
        let mut rows: Vec<(String, Vec<usize>)> = Vec::new();
        let (classes, totals) = (code_errors(prompt), nl_error_totals(prompt));
        let table = study.figures.iter().find(|figure| figure.number == number);
        let mut models: Vec<&str> = Vec::new();
        for row in table.into_iter().flat_map(|table| &table.rows) {
            let of_prompt = row.series.as_deref().is_some_and(|series| series.starts_with(&format!("{prompt}:")));
            if of_prompt && !models.contains(&row.name.as_str()) {
                models.push(&row.name);
            }
        }
        for model in models {
            if let Some(analysis) = study.analysis(model, prompt) {
                let count = |class: ErrorClass| analysis.failures.get(&class).copied().unwrap_or(0);
                let wrong: usize = ErrorClass::ALL.into_iter().map(count).sum();
                let right = if errors_only { 0 } else { analysis.accuracies.variant_questions - wrong };
                let own = ErrorClass::ALL.into_iter().map(|class| if counted(class) { count(class) } else { 0 });
                rows.push((format!("{model} (ours)"), std::iter::once(right).chain(own).chain([0]).collect()));
            }
            let printed = classes.as_ref().and_then(|classes| classes.get(model));
            let (errors, unknown): (Vec<usize>, usize) =
                match (printed, totals.as_ref().and_then(|totals| totals.get(model))) {
                    (Some(found), _) => {
                        let count = |class: ErrorClass| found.get(class.label()).copied().unwrap_or(0);
                        (
                            ErrorClass::ALL
                                .into_iter()
                                .map(|class| if counted(class) { count(class) } else { 0 })
                                .collect(),
                            0,
                        )
                    }
                    (None, Some(total)) => (vec![0; ErrorClass::ALL.len()], *total),
                    (None, None) => continue,
                };
            let all: usize = printed.map_or(unknown, |found| found.values().sum());
            // The paper asks 5,000 variants.
            let right = if errors_only { 0 } else { 5_000_usize.saturating_sub(all) };
            rows.push((model.to_owned(), std::iter::once(right).chain(errors).chain([unknown]).collect()));
        }
        let labels = ["Correct"]
            .into_iter()
            .chain(ErrorClass::ALL.iter().map(|class| class.label()))
            .chain(["Wrong, class not printed"]);
        // The first drawing has the figure's own name.
        let suffix = if drawings.is_empty() { String::new() } else { format!("-{prompt}") };
        let drawn = stacked(&Stacked {
            name: format!("{}{suffix}", name(number)),
            title: format!("Figure {number}: {title}, {prompt}"),
            classes: labels.map(str::to_owned).collect(),
            rows,
        });
        drawings.push((number, drawn));
    }
    drawings
}
