//! The data of Figures 1 to 11.
use super::analysis::Analysis;
use super::effect::Effect;
use super::evaluation::ErrorClass;
use super::models::paper_figure;
use super::numbers::{NumberDistribution, bin_name};
use super::result_table::{Kind, ResultRow, ResultTable, cells, columns};
use super::study::{find, with_ours};
use super::variant_tables::{class, models_of, remarks};
use crate::gsm_symbolic::published::{
    BASE_BIN_SHARES, DEMONSTRATION_MODELS, NUMBER_BINS, Printed, code_errors, integers_test, nl_error_totals,
    number_effects, odds_ratios, precise_gsm_log_odds, residual_effects, variant_effects,
};
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// All figures, in order.
pub(super) fn figures(analyses: &[Analysis], numbers: Option<&NumberDistribution>) -> Vec<ResultTable> {
    let mut figures = vec![forest(analyses, Prompt::Gsm), accuracies(analyses)];
    figures.extend(Prompt::ALL[1..].iter().map(|prompt| forest(analyses, *prompt)));
    figures.extend([distribution(numbers), effects(analyses)]);
    figures.extend(failures(analyses));
    figures
}

/// The published variant effect in log odds; to six decimals where the notebook shows them.
fn published_log_odds(model: &str, prompt: Prompt) -> Option<f64> {
    let rounded = odds_ratios(prompt).iter().find(|row| row.model == model).map(|row| row.odds_ratio.ln());
    precise_gsm_log_odds(model).filter(|_| prompt == Prompt::Gsm).or(rounded)
}

/// Figures 1 and 3 to 6. Figure 1 is sorted by the strength of the drop; the others keep its order.
fn forest(analyses: &[Analysis], prompt: Prompt) -> ResultTable {
    let columns = columns(&[("log odds ratio", 3), ("95 % from", 2), ("to", 2), ("difference, points", 1), ("p", 3)]);
    let order = |model: &String| {
        let ours = find(analyses, model, Prompt::Gsm).and_then(|ours| ours.glmm1.variant);
        published_log_odds(model, Prompt::Gsm).or(ours.map(|effect| effect.estimate)).unwrap_or(f64::INFINITY)
    };
    let mut models = models_of(analyses, prompt);
    models.sort_by(|left, right| order(left).total_cmp(&order(right)));
    let row = |model: String| {
        let odds = odds_ratios(prompt).iter().find(|row| row.model == model);
        let effect = variant_effects(prompt).iter().find(|row| row.model == model);
        let analysis = find(analyses, &model, prompt);
        let ours = analysis.and_then(|ours| ours.glmm1.variant);
        let log = |value: f64| Printed::Rounded(value.ln());
        let pairs = [
            (published_log_odds(&model, prompt).map(Printed::from), ours.map(|effect| effect.estimate)),
            (odds.map(|row| log(row.ci_low)), ours.map(|effect| effect.low)),
            (odds.map(|row| log(row.ci_high)), ours.map(|effect| effect.high)),
            (effect.map(|row| row.delta.into()), analysis.and_then(|ours| ours.accuracies.difference)),
            (effect.map(|row| row.p), ours.map(|effect| effect.p)),
        ];
        ResultRow {
            cells: cells(&columns, &pairs),
            series: None,
            class: class(ours.as_ref()),
            remarks: remarks(1, &model, prompt, analysis),
            name: model,
        }
    };
    let mut notes = vec!["Published log odds are logarithms of the printed odds ratios and interval ends.".to_owned()];
    if prompt == Prompt::Gsm {
        notes = vec![
            "The caption describes odds ratios and a line at 1; the figure shows log odds and a line at 0. Published log odds have \
             six decimals (from the notebook); interval ends are logarithms of printed ones."
                .to_owned(),
        ];
    }
    ResultTable {
        kind: Kind::Figure,
        number: paper_figure(prompt),
        title: format!("variant effect, {prompt} prompt"),
        prompt: Some(prompt),
        rows: models.into_iter().map(row).collect(),
        columns,
        notes,
    }
}

/// The models of Figures 2 and 8: the paper's six, and ours that the paper lacks.
fn demonstration(analyses: &[Analysis]) -> Vec<String> {
    let ours = analyses.iter().map(|ours| ours.model.as_str());
    with_ours(DEMONSTRATION_MODELS.into_iter(), ours.filter(|model| super::models::paper_order(model) == usize::MAX))
}

/// Rows for each model and prompt that have a published value or one of ours.
fn by_model_and_prompt(
    analyses: &[Analysis],
    glmm: u8,
    line: impl Fn(&str, Prompt, Option<&Analysis>) -> (Vec<super::Cell>, Option<&'static str>),
) -> Vec<ResultRow> {
    let mut rows = Vec::new();
    for model in demonstration(analyses) {
        for prompt in Prompt::ALL {
            let ours = find(analyses, &model, prompt);
            let (cells, class) = line(&model, prompt, ours);
            if cells.iter().all(|cell| cell.published.is_none()) && ours.is_none() {
                continue;
            }
            let remarks = remarks(glmm, &model, prompt, ours);
            rows.push(ResultRow { name: model.clone(), series: Some(prompt.to_string()), cells, class, remarks });
        }
    }
    rows
}

/// Figure 2.
fn accuracies(analyses: &[Analysis]) -> ResultTable {
    let columns = columns(&[("base accuracy", 1), ("variants accuracy", 1), ("difference", 2), ("p", 3)]);
    let rows = by_model_and_prompt(analyses, 1, |model, prompt, ours| {
        let published = variant_effects(prompt).iter().find(|row| row.model == model);
        let pairs = [
            (published.map(|row| row.base_acc.into()), ours.and_then(|ours| ours.accuracies.base)),
            (published.map(|row| row.var_acc.into()), ours.and_then(|ours| ours.accuracies.variants)),
            (published.map(|row| row.delta.into()), ours.and_then(|ours| ours.accuracies.difference)),
            (published.map(|row| row.p), ours.and_then(|ours| ours.glmm1.variant).map(|effect| effect.p)),
        ];
        (cells(&columns, &pairs), ours.and_then(|ours| class(ours.glmm1.variant.as_ref())))
    });
    ResultTable {
        kind: Kind::Figure,
        number: 2,
        title: "accuracies by prompt (hatched where GLMM 1 has p of .05 or more)".to_owned(),
        prompt: None,
        columns,
        rows,
        notes: Vec::new(),
    }
}

/// Figure 8.
fn effects(analyses: &[Analysis]) -> ResultTable {
    let columns = columns(&[
        ("variant log odds, GLMM 1", 2),
        ("p", 3),
        ("number log odds, GLMM 2", 2),
        ("p", 3),
        ("variant log odds, GLMM 2", 2),
        ("p", 3),
    ]);
    let rows = by_model_and_prompt(analyses, 2, |model, prompt, ours| {
        let first = variant_effects(prompt).iter().find(|row| row.model == model);
        let number = number_effects().iter().find(|row| row.model == model).map(|row| row.cell(prompt));
        let residual = residual_effects().iter().find(|row| row.model == model).map(|row| row.cell(prompt));
        let log = |ratio: f64| Printed::Rounded(ratio.ln());
        let estimate = |effect: Option<Effect>| effect.map(|effect| effect.estimate);
        let p = |effect: Option<Effect>| effect.map(|effect| effect.p);
        let one = ours.and_then(|ours| ours.glmm1.variant);
        let (two, three) = (ours.and_then(|ours| ours.glmm2.gamma), ours.and_then(|ours| ours.glmm2.variant));
        let pairs = [
            (published_log_odds(model, prompt).map(Printed::from), estimate(one)),
            (first.map(|row| row.p), p(one)),
            (number.map(|cell| log(cell.odds_ratio)), estimate(two)),
            (number.map(|cell| cell.p), p(two)),
            (residual.map(|cell| log(cell.odds_ratio)), estimate(three)),
            (residual.map(|cell| cell.p), p(three)),
        ];
        (cells(&columns, &pairs), class(one.as_ref()))
    });
    ResultTable {
        kind: Kind::Figure,
        number: 8,
        title: "effects by prompt, log odds (hatched where p is .05 or more)".to_owned(),
        prompt: None,
        columns,
        rows,
        notes: Vec::new(),
    }
}

/// Figure 7.
fn distribution(numbers: Option<&NumberDistribution>) -> ResultTable {
    let shares = columns(&[("base, %", 2), ("variants, %", 2)]);
    let mut rows: Vec<ResultRow> = (0..NUMBER_BINS.len())
        .map(|bin| {
            let pairs = [
                (Some(BASE_BIN_SHARES[bin].into()), numbers.map(|numbers| numbers.base_shares[bin])),
                (None, numbers.map(|numbers| numbers.variant_shares[bin])),
            ];
            ResultRow {
                name: bin_name(bin),
                series: Some("share".to_owned()),
                cells: cells(&shares, &pairs),
                class: None,
                remarks: Vec::new(),
            }
        })
        .collect();
    let published = integers_test();
    let line = |name: &str, decimals, published: f64, ours: Option<f64>| ResultRow {
        name: name.to_owned(),
        series: Some("Kolmogorov-Smirnov".to_owned()),
        cells: vec![super::Cell::new(Some(published.into()), ours, decimals), super::Cell::default()],
        class: None,
        remarks: Vec::new(),
    };
    rows.push(line("D", 4, published.statistic, numbers.and_then(|numbers| numbers.statistic)));
    rows.push(line("p", 7, published.p, numbers.and_then(|numbers| numbers.p)));
    let mut notes = vec![
        "The values of the test are in the first column. Cumulative shares from -5 to 105 are in `numbers` of the JSON. The paper \
         plots the variants without numbers."
            .to_owned(),
    ];
    match numbers {
        Some(numbers) => notes.push(format!(
            "Ours: {} integers of base questions, {} of variants.",
            numbers.base_integers, numbers.variant_integers
        )),
        None => notes.push("Ours needs the questions, and the runs' data are not available.".to_owned()),
    }
    ResultTable {
        kind: Kind::Figure,
        number: 7,
        title: "integers in the questions, shares by size".to_owned(),
        prompt: None,
        columns: shares,
        rows,
        notes,
    }
}

/// Models of Figures 9 to 11: the paper's ten in the order of Table 2, then ours.
fn failure_models(analyses: &[Analysis], prompt: Prompt) -> Vec<String> {
    let ten = |name: &&str| number_effects().iter().any(|row| row.model == **name);
    let order = variant_effects(Prompt::Gsm).iter().map(|row| row.model.as_str()).filter(ten);
    let ours = analyses.iter().filter(|ours| ours.prompt == prompt).map(|ours| ours.model.as_str());
    with_ours(order, ours)
}

/// Figures 9 (counts, natural language), 10 (counts, code) and 11 (shares of errors, code).
fn failures(analyses: &[Analysis]) -> Vec<ResultTable> {
    let counts = |number, code: bool, what: &str| ResultTable {
        kind: Kind::Figure,
        number,
        title: format!("wrong answers to variants by class, {what}"),
        prompt: None,
        columns: columns(&[("answers", 0)]),
        rows: Prompt::ALL
            .into_iter()
            .filter(|prompt| prompt.is_code() == code)
            .flat_map(|prompt| failure_rows(analyses, prompt, false))
            .collect(),
        notes: if code {
            Vec::new()
        } else {
            vec![
                "Published values are the totals on top of the bars; the paper plots their classes without numbers."
                    .to_owned(),
            ]
        },
    };
    let mut shares = counts(11, true, "code prompts, per cent of those other than wrong numbers");
    shares.columns = columns(&[("share, %", 1)]);
    shares.rows = Prompt::ALL
        .into_iter()
        .filter(|prompt| prompt.is_code())
        .flat_map(|prompt| failure_rows(analyses, prompt, true))
        .collect();
    vec![counts(9, false, "natural-language prompts"), counts(10, true, "code prompts"), shares]
}

fn failure_rows(analyses: &[Analysis], prompt: Prompt, shares: bool) -> Vec<ResultRow> {
    let (published, totals) = (code_errors(prompt), nl_error_totals(prompt));
    let mut rows = Vec::new();
    for model in failure_models(analyses, prompt) {
        let analysis = find(analyses, &model, prompt);
        let ours = |class: ErrorClass| analysis.map(|ours| ours.failures.get(&class).copied().unwrap_or(0) as f64);
        let theirs =
            |class: ErrorClass| Some(published.as_ref()?.get(&model)?.get(class.label()).copied().unwrap_or(0) as f64);
        let counted: Vec<ErrorClass> =
            ErrorClass::ALL.into_iter().filter(|class| !(shares && *class == ErrorClass::Wrong)).collect();
        let sum = |of: &dyn Fn(ErrorClass) -> Option<f64>| -> Option<f64> { counted.iter().map(|c| of(*c)).sum() };
        let (our_sum, their_sum) = (sum(&ours), sum(&theirs));
        let scaled = |value: Option<f64>, total: Option<f64>| match shares {
            true => value.zip(total.filter(|total| *total > 0.0)).map(|(value, total)| 100.0 * value / total),
            false => value,
        };
        let mut line = |class: String, published: Option<f64>, ours: Option<f64>| {
            if published.or(ours).is_none() || (published.unwrap_or(0.0) == 0.0 && ours.unwrap_or(0.0) == 0.0) {
                return;
            }
            rows.push(ResultRow {
                name: model.clone(),
                series: Some(format!("{prompt}: {class}")),
                cells: vec![super::Cell::new(published.map(Printed::from), ours, usize::from(shares))],
                class: None,
                remarks: Vec::new(),
            });
        };
        for class in &counted {
            line(class.label().to_owned(), scaled(theirs(*class), their_sum), scaled(ours(*class), our_sum));
        }
        if !shares {
            let printed = totals.as_ref().and_then(|totals| totals.get(&model)).map(|n| *n as f64).or(their_sum);
            line("all".to_owned(), printed, our_sum);
        }
    }
    rows
}
