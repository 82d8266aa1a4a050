//! Figures 1 to 11 drawn from stored runs.
use super::analysis::Analysis;
use super::effect::Effect;
use super::evaluation::ErrorClass;
use super::models::paper_figure;
use super::numbers::bin_name;
use super::study::{Study, find};
use earnest_report::plot::{
    Bar, BarGroup, Bars, Curve, CurvePlot, Figure, Forest, ForestRow, Measure, Stacked, bars, curves, forest, stacked,
};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Draws the study's figures with the paper's values beside ours, in the paper's order.
pub fn drawings(study: &Study) -> Vec<Figure> {
    drawn(study).into_iter().map(|(_, figure)| figure).collect()
}

/// The same with the numbers of the figures.
pub(super) fn drawn(study: &Study) -> Vec<Drawing> {
    let mut drawings = super::beside::drawings(study);
    drawings.sort_by_key(|(number, _)| *number);
    drawings
}

/// Draws the study's figures of the runs alone, under names that begin with a suite's; those without data are left out.
pub fn drawings_of(study: &Study, suite: &str) -> Vec<Figure> {
    let mut drawings: Vec<Drawing> = Vec::new();
    for prompt in Prompt::ALL {
        drawings.extend(effect_figures(study, prompt, suite));
    }
    drawings.extend(grouped(study, suite));
    drawings.extend(distribution(study, suite));
    drawings.extend(failures(study, suite));
    // In the paper's order; drawings of one figure stay beside each other.
    drawings.sort_by_key(|(number, _)| *number);
    drawings.into_iter().map(|(_, figure)| figure).collect()
}

/// A drawing with the number of its figure in the paper.
pub(super) type Drawing = (u8, Figure);

pub(super) fn exact(value: f64) -> Interval {
    Interval { estimate: value, low: value, high: value }
}

/// The analyses of a prompt in the order of its figure.
fn of_prompt(study: &Study, prompt: Prompt) -> Vec<&Analysis> {
    let order = study.figures.iter().find(|figure| figure.prompt == Some(prompt)).map(|figure| &figure.rows);
    let names = order.into_iter().flatten().map(|row| row.name.as_str());
    names.filter_map(|name| find(&study.analyses, name, prompt)).collect()
}

/// Figures 1 and 3 to 6: odds ratios, and differences in points.
fn effect_figures(study: &Study, prompt: Prompt, suite: &str) -> Vec<Drawing> {
    let analyses = of_prompt(study, prompt);
    if analyses.is_empty() {
        return Vec::new();
    }
    let number = paper_figure(prompt);
    let row = |ours: &&Analysis| {
        let effect = ours.glmm1.variant;
        let of = |value: fn(Effect) -> f64| effect.map_or(f64::NAN, |effect| value(effect).exp());
        ForestRow {
            label: ours.model.clone(),
            estimate: of(|effect| effect.estimate),
            low: of(|effect| effect.low),
            high: of(|effect| effect.high),
            significant: effect.is_some_and(|effect| effect.is_significant()),
            problem: ours.glmm1.problem().map(str::to_owned),
            series: 0,
        }
    };
    let ratios = forest(&Forest {
        name: format!("{suite}-figure-{number}"),
        title: format!("Figure {number}: variant effect, {prompt} prompt"),
        x_label: "odds ratio of GSM-Variants against GSM-Base".into(),
        rows: analyses.iter().map(row).collect(),
        series: Vec::new(),
    });
    let bar = |ours: &&Analysis| {
        let difference = ours.accuracies.difference?;
        let significant = Some(ours.glmm1.variant.is_some_and(|effect| effect.is_significant()));
        let bar = Bar { series: 0, value: exact(difference), significant };
        Some(BarGroup { label: ours.model.clone(), bars: vec![bar] })
    };
    let differences = bars(&Bars {
        name: format!("{suite}-figure-{number}-difference"),
        title: format!("Figure {number}: difference in accuracy, {prompt} prompt"),
        x_label: "variants minus base, points".into(),
        series: vec!["difference".into()],
        groups: analyses.iter().filter_map(bar).collect(),
        domain: None,
        factor: 1.0,
        legend: false,
    });
    vec![(number, ratios), (number, differences)]
}

/// Figures 2 and 8.
fn grouped(study: &Study, suite: &str) -> Vec<Drawing> {
    let shown: Vec<&Analysis> =
        study.figures.iter().find(|figure| figure.number == 2).map_or_else(Vec::new, |figure| {
            let analysis =
                |row: &super::ResultRow| find(&study.analyses, &row.name, row.series.as_deref()?.parse().ok()?);
            figure.rows.iter().filter_map(analysis).collect()
        });
    if shown.is_empty() {
        return Vec::new();
    }
    let group = |ours: &Analysis, bars: Vec<Option<Bar>>| BarGroup {
        label: format!("{} {}", ours.prompt, ours.model),
        bars: bars.into_iter().flatten().collect(),
    };
    let accuracies = |ours: &&Analysis| {
        let significant = Some(ours.glmm1.variant.is_some_and(|effect| effect.is_significant()));
        let values = [ours.accuracies.base, ours.accuracies.variants, ours.accuracies.difference];
        let bar = |(series, value): (usize, &Option<f64>)| Some(Bar { series, value: exact((*value)?), significant });
        group(ours, values.iter().enumerate().map(bar).collect())
    };
    let effects = |ours: &&Analysis| {
        let bar = |(series, effect): (usize, &Option<Effect>)| {
            let effect = (*effect)?;
            let value = Interval { estimate: effect.estimate, low: effect.low, high: effect.high };
            Some(Bar { series, value, significant: Some(effect.is_significant()) })
        };
        let found = [ours.glmm1.variant, ours.glmm2.gamma, ours.glmm2.variant];
        group(ours, found.iter().enumerate().map(bar).collect())
    };
    let plot = |number: u8, title: &str, x_label: &str, series: [&str; 3], groups| {
        let plot = Bars {
            name: format!("{suite}-figure-{number}"),
            title: format!("Figure {number}: {title}"),
            x_label: x_label.into(),
            series: series.map(str::to_owned).to_vec(),
            groups,
            domain: None,
            factor: 1.0,
            legend: true,
        };
        (number, bars(&plot))
    };
    vec![
        plot(
            2,
            "accuracies by prompt",
            "per cent; hatched: p of .05 or more",
            ["base", "variants", "difference"],
            shown.iter().map(accuracies).collect(),
        ),
        plot(
            8,
            "effects by prompt",
            "log odds; hatched: p of .05 or more",
            ["variant, GLMM 1", "numbers, GLMM 2", "variant, GLMM 2"],
            shown.iter().map(effects).collect(),
        ),
    ]
}

/// Figure 7: shares by bin, and cumulative shares.
fn distribution(study: &Study, suite: &str) -> Vec<Drawing> {
    let Some(numbers) = &study.numbers else { return Vec::new() };
    let bar = |series, share: f64| Bar { series, value: exact(share), significant: None };
    let pairs = numbers.base_shares.iter().zip(&numbers.variant_shares).enumerate();
    let shares = bars(&Bars {
        name: format!("{suite}-figure-7"),
        title: "Figure 7: integers in the questions".into(),
        x_label: "share of the integers, %".into(),
        series: vec!["GSM-Base".into(), "GSM-Variants".into()],
        groups: pairs
            .map(|(bin, (base, variants))| BarGroup {
                label: bin_name(bin),
                bars: vec![bar(0, *base), bar(1, *variants)],
            })
            .collect(),
        domain: None,
        factor: 1.0,
        legend: true,
    });
    std::iter::once((7, shares)).chain(cumulative(study, suite)).collect()
}

/// Figure 7: cumulative shares of the runs' questions.
pub(super) fn cumulative(study: &Study, suite: &str) -> Option<Drawing> {
    let numbers = study.numbers.as_ref()?;
    let curve = |label: &str, series, n, of: fn(&(i32, f64, f64)) -> f64| Curve {
        label: label.into(),
        series,
        points: numbers.cumulative.iter().map(|at| (f64::from(at.0), n, exact(of(at) / 100.0))).collect(),
    };
    let drawn = curves(&CurvePlot {
        name: format!("{suite}-figure-7-cumulative"),
        title: "Figure 7: integers in the questions, cumulative".into(),
        x_label: "integer".into(),
        y_label: "cumulative share, %".into(),
        measure: Measure::Share,
        curves: vec![
            curve("GSM-Base", 0, numbers.base_integers, |at| at.1),
            curve("GSM-Variants", 1, numbers.variant_integers, |at| at.2),
        ],
        legend: true,
    });
    Some((7, drawn))
}

/// Figures 9 to 11.
fn failures(study: &Study, suite: &str) -> Vec<Drawing> {
    let figure = |number: u8, code: bool, errors_only: bool, title: &str| {
        // A class keeps its number and colour in all figures, even where it is left out.
        let classes = ErrorClass::ALL;
        let shown = study.analyses.iter().filter(|ours| ours.prompt.is_code() == code);
        let row = |ours: &Analysis| {
            let count = |class: &ErrorClass| match class {
                ErrorClass::Wrong if errors_only => 0,
                class => ours.failures.get(class).copied().unwrap_or(0),
            };
            let wrong: usize = ours.failures.values().sum();
            let right = if errors_only { 0 } else { ours.accuracies.variant_questions - wrong };
            let counts: Vec<usize> = std::iter::once(right).chain(classes.iter().map(count)).collect();
            (format!("{} {}", ours.prompt, ours.model), counts)
        };
        let rows: Vec<(String, Vec<usize>)> = shown.map(row).collect();
        let labels = std::iter::once("Correct").chain(classes.iter().map(|class| class.label()));
        (!rows.is_empty()).then(|| {
            let plot = Stacked {
                name: format!("{suite}-figure-{number}"),
                title: format!("Figure {number}: {title}"),
                classes: labels.map(str::to_owned).collect(),
                rows,
            };
            (number, stacked(&plot))
        })
    };
    [
        figure(9, false, false, "answers to variants, natural-language prompts"),
        figure(10, true, false, "answers to variants, code prompts"),
        figure(11, true, true, "errors other than wrong numbers, code prompts"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
