//! The study and its plan as text.
use std::fmt::Write;

use super::analysis::Analysis;
use super::effect::Effect;
use super::plan::StudyPlan;
use super::result_table::{Kind, ResultTable};
use super::study::Study;
use crate::text::WRITES;
use earnest_eval::report::{Align, Table, wrap};
use earnest_tasks::suite::gsm_symbolic::published::{Printed, odds_ratios};

/// Figures shown as text: those whose data are not in a table.
const FIGURES_IN_TEXT: [u8; 4] = [7, 9, 10, 11];

/// Rows of the summary's table of results; more are counted.
const ROWS: usize = 16;
/// Notes of the summary; more are counted.
const NOTES: usize = 6;

/// Models whose rows tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableModels {
    /// Models that were run.
    Ours,
    /// Also the paper's other models.
    All,
}

/// Renders a summary of the study: about a screen for a terminal of `width` columns; the table of results may be wider.
pub fn render_summary(study: &Study, width: usize) -> String {
    let mut text = heading(study, width);
    if !study.analyses.is_empty() {
        text.push_str(&results(study, width));
        text.push_str(&harder(study));
        text.push_str(&comparability(study, width));
    }
    text.push_str(&claims(study));
    text.push_str(&selection(study, width));
    let rest = if study.analyses.is_empty() {
        "--tables all prints the published Tables 2 to 15; -o FILE writes all tables and figures as a page."
    } else {
        "--tables prints Tables 2 to 15 for these models beside the published values, --tables all for every model of the paper; \
         -o FILE writes a page with all tables and figures."
    };
    format!("{text}\n{}", wrap(rest, width, ""))
}

/// Renders all tables, and the figures whose data they do not have, for a terminal of `width` columns; tables may be wider.
pub fn render_tables(study: &Study, models: TableModels, width: usize) -> String {
    let mut text = heading(study, width);
    text.push_str(&harder(study));
    text.push_str(&comparability(study, width));
    text.push_str(&selection(study, width));
    text.push_str(&claims(study));
    let figures = study.figures.iter().filter(|figure| FIGURES_IN_TEXT.contains(&figure.number));
    for table in study.tables.iter().chain(figures) {
        let mut table = table.clone();
        if models == TableModels::Ours {
            table.rows.retain(|row| row.cells.iter().any(|cell| cell.ours.is_some()) || of_model(study, &row.name));
        }
        if !table.rows.is_empty() {
            text.push_str(&result_table(&table, width));
        }
    }
    let rest =
        "The data of Figures 1 to 6 and 8 repeat the tables; they are in the JSON, and --figures draws them all.";
    writeln!(text, "\n{rest}").expect(WRITES);
    if models == TableModels::All || !study.listing_6.ours.is_empty() {
        text.push_str(&listing(study, width));
    }
    text.push_str("\nDiscrepancies between paper and code, and the choice made here\n");
    for recommendation in &study.recommendations {
        text.push_str(&wrap(recommendation, width, "* "));
    }
    text
}

fn of_model(study: &Study, name: &str) -> bool {
    study.analyses.iter().any(|analysis| analysis.model == name)
}

fn heading(study: &Study, width: usize) -> String {
    let mut text = wrap(&study.paper, width, "");
    if study.runs.is_empty() {
        text.push('\n');
        text.push_str(&wrap(
            "No stored runs to compare; only published values are shown. `earnest reproduce gsm-symbolic --plan` lists the runs \
             that the paper needs, and `--run --models paper` (or small, or NAME=MODEL,...) executes them (`--suite gsm-mini` needs \
             no data).",
            width,
            "",
        ));
    }
    text
}

/// Renders a row for each model and prompt that was run.
fn results(study: &Study, width: usize) -> String {
    let names = [
        "",
        "",
        "questions",
        "base %",
        "variants %",
        "difference [95 %]",
        "odds ratio [95 %]",
        "p",
        "Holm",
        "paper's OR",
    ];
    let mut table = Table::with_left(2, names);
    for analysis in study.analyses.iter().take(ROWS) {
        let accuracies = &analysis.accuracies;
        let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        let difference = match (accuracies.difference, accuracies.interval) {
            (_, Some(at)) => format!("{:+.1} [{:+.1}, {:+.1}]", at.estimate, at.low, at.high),
            (Some(difference), None) => format!("{difference:+.1}"),
            (None, None) => "-".to_owned(),
        };
        let effect = analysis.glmm1.variant;
        let ratio = effect.map_or_else(|| analysis.glmm1.problem().unwrap_or("-").to_owned(), |at| ratio(&at));
        let printed_ratio = odds_ratios(analysis.prompt).iter().find(|row| row.model == analysis.model);
        table.row(vec![
            analysis.model.clone(),
            analysis.prompt.to_string(),
            (accuracies.base_questions + accuracies.variant_questions).to_string(),
            share(accuracies.base),
            share(accuracies.variants),
            difference,
            ratio,
            effect.map_or_else(|| "-".to_owned(), |at| ours(at.p, 3)),
            study.holm(analysis).map_or_else(|| "-".to_owned(), |p| ours(p, 3)),
            printed_ratio.map_or_else(|| "-".to_owned(), |row| format!("{:.2}", row.odds_ratio)),
        ]);
    }
    let mut text = format!(
        "\nVariants against originals (GLMM 1, converged; Holm over the models of a prompt)\n{}",
        table.render()
    );
    if study.analyses.len() > ROWS {
        writeln!(text, "and {} more", study.analyses.len() - ROWS).expect(WRITES);
    }
    let reach = study.analyses.iter().filter_map(|analysis| analysis.accuracies.detectable);
    let (low, high) = reach.fold((f64::INFINITY, 0.0f64), |(low, high), at| (low.min(at), high.max(at)));
    if high > 0.0 {
        text.push_str(&wrap(
            &format!(
                "These designs find differences from {low:.1} points ({high:.1} in the least favourable) with power 80 %; smaller \
                 ones they mostly miss."
            ),
            width,
            "",
        ));
    }
    text
}

/// Renders the harder sets of the models that were asked them.
fn harder(study: &Study) -> String {
    let mut table = Table::with_left(3, HARDER_COLUMNS);
    let rows: Vec<Vec<String>> = harder_rows(study);
    if rows.is_empty() {
        return String::new();
    }
    for row in rows {
        table.row(row);
    }
    format!("\nHarder sets against the originals of their templates (the paper has none)\n{}", table.render())
}

/// Columns of the harder sets.
pub(super) const HARDER_COLUMNS: [&str; 8] =
    ["model", "prompt", "set", "questions", "base %", "set %", "difference [95 %]", "detectable"];

/// Rows of the harder sets: model, prompt and set, then numbers.
pub(super) fn harder_rows(study: &Study) -> Vec<Vec<String>> {
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    let of_analysis = |analysis: &Analysis| {
        let (model, prompt) = (analysis.model.clone(), analysis.prompt.to_string());
        let sets = analysis.harder.iter().map(move |(set, accuracies)| {
            let difference = match (accuracies.difference, accuracies.interval) {
                (_, Some(at)) => format!("{:+.1} [{:+.1}, {:+.1}]", at.estimate, at.low, at.high),
                (difference, None) => difference.map_or_else(|| "-".to_owned(), |points| format!("{points:+.1}")),
            };
            vec![
                model.clone(),
                prompt.clone(),
                set.clone(),
                accuracies.variant_questions.to_string(),
                share(accuracies.base),
                share(accuracies.variants),
                difference,
                share(accuracies.detectable),
            ]
        });
        sets.collect::<Vec<_>>()
    };
    study.analyses.iter().flat_map(of_analysis).collect()
}

/// Renders the identity of the questions and what is not comparable, each with the models that it is said of.
fn comparability(study: &Study, width: usize) -> String {
    let notes = study.comparability();
    if notes.is_empty() {
        return String::new();
    }
    let mut text = "\nQuestions and comparability\n".to_owned();
    for note in notes.iter().take(NOTES) {
        text.push_str(&wrap(note, width, "* "));
    }
    if notes.len() > NOTES {
        writeln!(text, "* and {} more, on the page", notes.len() - NOTES).expect(WRITES);
    }
    text
}

fn selection(study: &Study, width: usize) -> String {
    let list = |models: &[String]| if models.is_empty() { "none".to_owned() } else { models.join(", ") };
    let mut text = "\nModels with a significant drop on the GSM prompt (uncorrected), strongest first\n".to_owned();
    let selection = &study.selection;
    let published =
        [("published", &selection.published), ("published without artefacts", &selection.published_without_artefacts)];
    let ours = [("ours", &selection.ours), ("ours by lme4's defaults", &selection.ours_by_lme4)];
    let ours = ours.into_iter().filter(|_| !study.analyses.is_empty());
    for (name, models) in published.into_iter().chain(ours) {
        text.push_str(&wrap(&format!("{name}: {}", list(models)), width, "  "));
    }
    text
}

fn claims(study: &Study) -> String {
    let names = ["claim", "published", "without artefacts", "ours", "ours by lme4"];
    // Without a fit there is no count of ours.
    let none = study.analyses.is_empty();
    let mut table = Table::with_left(1, if none { names[..3].to_vec() } else { names.to_vec() });
    for claim in &study.claims {
        let mut cells = vec![
            claim.about.clone(),
            format!("{} of {}", claim.published, claim.of),
            claim.without_artefacts.to_string(),
        ];
        if !none {
            let counted = claim.ours_of > 0;
            cells.push(if counted { format!("{} of {}", claim.ours, claim.ours_of) } else { "-".to_owned() });
            cells.push(if counted { claim.ours_by_lme4.to_string() } else { "-".to_owned() });
        }
        table.row(cells);
    }
    format!("\nClaims\n{}", table.render())
}

fn result_table(table: &ResultTable, width: usize) -> String {
    let kind = if table.kind == Kind::Table { "Table" } else { "Figure" };
    let has_ours = table.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.ours.is_some());
    let series = table.rows.iter().any(|row| row.series.is_some());
    let mut names = vec!["".to_owned()];
    names.extend(series.then(|| "".to_owned()));
    for column in &table.columns {
        if has_ours {
            names.extend([format!("{} paper", column.name), "ours".to_owned(), "diff.".to_owned()]);
        } else {
            names.push(column.name.clone());
        }
    }
    let mut rows = Table::with_left(1 + usize::from(series), names);
    for row in &table.rows {
        let mark = if row.remarks.is_empty() { "" } else { "*" };
        let mut cells = vec![format!("{}{mark}", row.name)];
        cells.extend(series.then(|| row.series.clone().unwrap_or_default()));
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            cells.push(cell.published.map_or_else(|| "-".to_owned(), |value| printed(value, column.decimals)));
            if has_ours {
                cells.push(cell.ours.map_or_else(|| "-".to_owned(), |value| ours(value, column.decimals)));
                let signed = |value: f64| format!("{value:+.*}", column.decimals);
                cells.push(cell.difference.map_or_else(|| "-".to_owned(), signed));
            }
        }
        rows.row(cells);
    }
    let mut text = format!("\n{kind} {}: {}\n{}", table.number, table.title, rows.render());
    for remark in table.remarks() {
        text.push_str(&wrap(&remark, width, "* "));
    }
    for note in &table.notes {
        text.push_str(&wrap(note, width, "  "));
    }
    text
}

pub(super) fn printed(value: Printed, decimals: usize) -> String {
    match value {
        // An adjusted bound has no digits beyond those of the bound.
        Printed::Below { bound } => format!("<{}", (bound * 1e6).round() / 1e6),
        Printed::Rounded(_) => value.text(decimals),
    }
}

/// Formats as the paper does: values too small for its decimals become a bound.
pub(super) fn ours(value: f64, decimals: usize) -> String {
    let smallest = 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
    if decimals > 1 && value > 0.0 && value < smallest { format!("<{smallest}") } else { format!("{value:.decimals$}") }
}

/// An odds ratio with its interval.
pub(super) fn ratio(effect: &Effect) -> String {
    let [estimate, low, high] = [effect.estimate, effect.low, effect.high].map(|value| ours(value.exp(), 2));
    format!("{estimate} [{low}, {high}]")
}

fn listing(study: &Study, width: usize) -> String {
    let mut table = Table::with_left(1, ["Listing 6, gemma-2-2b", "optimiser", "intercept", "variant"]);
    for row in &study.listing_6.published {
        let (intercept, variant) = (format!("{:.6}", row.intercept), format!("{:.7}", row.is_variant));
        table.row(vec![row.prompt.to_string(), row.optimiser.clone(), intercept, variant]);
    }
    let mut text = format!("\nAppendix: estimates across optimisers (published)\n{}", table.render());
    for row in &study.listing_6.ours {
        let mut table = Table::with_left(1, ["objective", "optimiser", "intercept", "variant", "-2 log L"]);
        for end in &row.ends {
            let number = |place: usize| end.coefficients.get(place).map_or_else(String::new, |v| format!("{v:.6}"));
            table.row(vec![
                end.objective.to_owned(),
                end.optimiser.to_owned(),
                number(0),
                number(1),
                format!("{:.5}", end.value),
            ]);
        }
        writeln!(text, "\nOurs: {} on {}", row.model, row.prompt).expect(WRITES);
        text.push_str(&table.render());
        writeln!(
            text,
            "spread of the variant effect: {:.1e} on lme4's objective, {:.1e} on the converged one",
            row.lme4_spread, row.converged_spread
        )
        .expect(WRITES);
    }
    text.push_str(&wrap(&study.listing_6.note, width, "  "));
    text
}

/// Renders a plan for a terminal of `width` columns.
pub fn render_plan(plan: &StudyPlan, width: usize) -> String {
    let names = ["phase", "model", "prompt", "prompts", "prompt tokens", "new tokens", "at most", "hours"];
    let align = |name: &str| if name == "model" || name == "prompt" { Align::Left } else { Align::Right };
    let mut table = Table::new(names.map(|name| (name.to_owned(), align(name))));
    for run in &plan.runs {
        table.row(vec![
            run.phase.to_string(),
            run.model.clone(),
            run.prompt.to_string(),
            run.questions.to_string(),
            run.prompt_tokens.to_string(),
            run.new_tokens.to_string(),
            run.most_new_tokens.to_string(),
            format!("{:.3}", run.hours),
        ]);
    }
    let mut text = table.render();
    let questions: usize = plan.runs.iter().map(|run| run.questions).sum();
    writeln!(
        text,
        "\n{} runs, {questions} prompts, {} {:.1} hours",
        plan.runs.len(),
        if plan.assumptions.measured { "about" } else { "at least" },
        plan.hours
    )
    .expect(WRITES);
    for note in &plan.notes {
        text.push_str(&wrap(note, width, "* "));
    }
    text
}
