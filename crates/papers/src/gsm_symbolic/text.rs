//! The study and its plan as text.
use earnest_tasks::counted;

use super::analysis::Analysis;
use super::effect::Effect;
use super::plan::StudyPlan;
use super::remarks::range;
use super::result_table::{Kind, ResultTable};
use super::study::Study;
use crate::gsm_symbolic::published::{Printed, odds_ratios};
use earnest_report::{Align, Table, prose, wrap, wrap_lines};
use earnest_results::{ends, p_decimals};
use earnest_stats::PairedTest;
use earnest_tasks::suite::Interval;

/// Figures shown as text: those whose data are not in a table.
const FIGURES_IN_TEXT: [u8; 4] = [7, 9, 10, 11];

/// Lines of the summary on a terminal.
const LINES: usize = 60;
/// Rows of the summary's table of results that stand there however long the rest is; more are counted.
const ROWS: usize = 4;
/// Rows of the harder sets and of models by formula in the summary; more are counted.
const FEW: usize = 3;
/// Models and prompts up to which the summary says in words what the runs say of each claim; beyond, the counts do.
const SPOKEN: usize = 12;
/// Models whose rows tables have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableModels {
    /// Models that were run.
    Ours,
    /// Also the paper's other models.
    All,
}

/// Renders a summary of the study: a screen of 60 lines for a terminal of 100 columns and more.
pub fn render_summary(study: &Study, width: usize) -> String {
    let head = heading(study, width);
    let mut rest = String::new();
    if !study.analyses.is_empty() {
        rest.push_str(&harder(study, width, FEW));
        rest.push_str(&formulas(study, width));
        if let Some(differs) = study.differs() {
            rest.push_str(&format!("\n{}", wrap(&differs, width, "")));
        }
    }
    rest.push_str(&claims(study, width, study.analyses.len() <= SPOKEN));
    if study.analyses.is_empty() {
        rest.push_str(&selection(study, width));
        let more =
            "The tables: the setting `tables = all`. All tables and figures as a page: the setting `output = FILE`.";
        rest.push_str(&format!("\n{}", prose(more, width, "")));
    } else {
        let more = "Tables 2 to 15: the setting `tables`, with the paper's other models the setting `tables = all`. \
                    Page, figures: the setting `output = FILE`.";
        rest.push_str(&format!("\n{}", prose(more, width, "")));
    }
    let room = LINES.saturating_sub(displayed(&head, width) + displayed(&rest, width));
    let results = if study.analyses.is_empty() { String::new() } else { results(study, width, room) };
    wrap_lines(&(head + &results + &rest), width)
}

/// Lines that a text takes on a terminal of `width` columns.
fn displayed(text: &str, width: usize) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(width.max(1)).max(1)).sum()
}

/// Renders all tables, and the figures whose data they do not have, for a terminal.
pub fn render_tables(study: &Study, models: TableModels, width: usize) -> String {
    let mut text = heading(study, width);
    text.push_str(&harder(study, width, usize::MAX));
    text.push_str(&formulas(study, width));
    text.push_str(&comparability(study, width));
    text.push_str(&selection(study, width));
    text.push_str(&claims(study, width, true));
    let figures = study.figures.iter().filter(|figure| FIGURES_IN_TEXT.contains(&figure.number));
    for table in study.tables.iter().chain(figures) {
        let mut table = table.clone();
        if models == TableModels::Ours {
            table.rows.retain(|row| row.cells.iter().any(|cell| cell.ours.is_some()) || of_model(study, &row.name));
        }
        if !table.rows.is_empty() {
            text.push_str(&result_table(study, &table, width));
        }
    }
    let rest = "The data of Figures 1 to 6 and 8 repeat the tables; they are in the JSON, and the setting `figures` draws them all.";
    text.push_str(&format!("\n{}", prose(rest, width, "")));
    if models == TableModels::All || !study.listing_6.ours.is_empty() {
        text.push_str(&listing(study, width));
    }
    text.push_str("\nDiscrepancies between paper and code, and the choice made here\n");
    for recommendation in &study.recommendations {
        text.push_str(&wrap(recommendation, width, "* "));
    }
    wrap_lines(&text, width)
}

fn of_model(study: &Study, name: &str) -> bool {
    study.analyses.iter().any(|analysis| analysis.model == name)
}

fn heading(study: &Study, width: usize) -> String {
    let mut text = prose(&study.paper, width, "");
    if study.runs.is_empty() {
        text.push('\n');
        text.push_str(&prose(
            "No stored runs to compare; only published values are shown. `earnest reproduce gsm-symbolic --plan` lists the runs \
             that the paper needs, and `earnest reproduce gsm-symbolic --run --models paper` (or small, or NAME=MODEL,...) executes \
             them (the setting `suite = gsm-mini` needs no data).", width,
            ""));
    }
    text
}

/// Renders the models that were run by prompt, in at most `room` lines if that is enough for a few.
fn results(study: &Study, width: usize, room: usize) -> String {
    let printed_ratio =
        |analysis: &Analysis| odds_ratios(analysis.prompt).iter().find(|row| row.model == analysis.model);
    let has_printed = study.analyses.iter().any(|analysis| printed_ratio(analysis).is_some());
    let table = |rows: usize| {
        let mut names = vec!["", "base", "variants", "difference [95 %]", "odds ratio [95 %]", "p", "Holm"];
        names.extend(has_printed.then_some("paper's OR"));
        let mut table = Table::with_left(1, names);
        let mut prompt = None;
        for analysis in study.analyses.iter().take(rows) {
            if prompt != Some(analysis.prompt) {
                prompt = Some(analysis.prompt);
                table.row(vec![format!("{} prompt", analysis.prompt)]);
            }
            let accuracies = &analysis.accuracies;
            let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
            let effect = analysis.glmm1.variant;
            let mut cells = vec![
                format!("  {}", analysis.model),
                share(accuracies.base),
                share(accuracies.variants),
                difference(accuracies),
                effect.map_or_else(|| analysis.glmm1.problem().unwrap_or("-").to_owned(), |at| ratio(&at)),
                effect.map_or_else(|| "-".to_owned(), |at| p_value(at.p)),
                study.holm(analysis).map_or_else(|| "-".to_owned(), p_value),
            ];
            cells.extend(has_printed.then(|| {
                printed_ratio(analysis).map_or_else(|| "-".to_owned(), |row| format!("{:.2}", row.odds_ratio))
            }));
            table.row(cells);
        }
        // A narrow terminal has no room for both accuracies and their difference.
        let least: &[&str] = if width < 100 { &["paper's OR", "base", "variants"] } else { &["paper's OR"] };
        let left_out = table.fit(width, least.iter().copied());
        table.shorten_names(width);
        table.render_within(width) + &left_out_text(&left_out, width)
    };
    let frame = |rows: usize| {
        let title = "Variants against originals, % right (GLMM 1, converged; Holm over the models of a prompt)";
        let mut text = format!("\n{}", wrap(title, width, ""));
        if let Some(identity) = study.identity() {
            text.push_str(&wrap(&identity, width, ""));
        }
        text.push_str(&table(rows));
        let left = study.analyses.len() - rows;
        if left > 0 {
            text.push_str(&prose(&format!("and {left} more: the setting `tables`"), width, ""));
        }
        text + &reach(study, width)
    };
    let all = study.analyses.len();
    let fits = |rows: &usize| displayed(&frame(*rows), width) <= room;
    let rows = (ROWS.min(all)..=all).rev().find(fits).unwrap_or(ROWS.min(all));
    frame(rows)
}

/// Names the columns that a narrow terminal has no room for.
fn left_out_text(columns: &[&str], width: usize) -> String {
    if columns.is_empty() {
        return String::new();
    }
    prose(&format!("A wider terminal and the setting `json` also have: {}.", columns.join(", ")), width, "")
}

/// Renders what the designs could have found.
fn reach(study: &Study, width: usize) -> String {
    let Some(points) = range(study.analyses.iter().filter_map(|analysis| analysis.accuracies.detectable)) else {
        return String::new();
    };
    let is_exact = |analysis: &Analysis| analysis.accuracies.test.is_some_and(|test| test != PairedTest::ClusterT);
    let exact = match study.analyses.iter().any(is_exact) {
        true => " Few right answers are judged exactly instead; benches/results/verdicts.md has what that finds.",
        false => "",
    };
    let text = format!("The t test over templates finds differences of {points} points here with power 80 %.{exact}");
    wrap(&text, width, "")
}

/// A difference in points, with its interval where there is one.
fn difference(accuracies: &super::Accuracies) -> String {
    match (accuracies.difference, accuracies.interval) {
        (_, Some(at)) => with_ends(at),
        (difference, None) => difference.map_or_else(|| "-".to_owned(), |points| format!("{points:+.1}")),
    }
}

/// Points with their interval.
pub(super) fn with_ends(at: Interval) -> String {
    format!("{:+.1} [{}]", at.estimate, ends((at.low, at.high), 0.0, 1, true).join(", "))
}

/// Renders the default mixed model of every model.
fn formulas(study: &Study, width: usize) -> String {
    if study.formulas.is_empty() {
        return String::new();
    }
    let mut table = Table::with_left(1, ["", "rows", "odds ratio [95 %]", "p", "points [95 %]"]);
    for fit in study.formulas.iter().take(FEW) {
        table.row(vec![
            fit.model.clone(),
            fit.rows.to_string(),
            fit.odds_ratio.map_or_else(
                || "no estimate".to_owned(),
                |at| format!("{:.2} [{}]", at.estimate, ends((at.low, at.high), 1.0, 2, false).join(", ")),
            ),
            fit.p.map_or_else(|| "-".to_owned(), p_value),
            fit.points.map_or_else(|| "-".to_owned(), with_ends),
        ]);
    }
    table.shorten_names(width);
    let title = "One mixed model for all prompts of a model, by formula: earnest's default beside the paper's GLMM";
    let mut text = format!("\n{}{}", wrap(title, width, ""), table.render_within(width));
    if study.formulas.len() > FEW {
        text.push_str(&format!("and {} more, on the page\n", study.formulas.len() - FEW));
    }
    text
}

/// Renders the harder sets of the models that were asked them, at most so many rows.
fn harder(study: &Study, width: usize, most: usize) -> String {
    let mut table = Table::with_left(3, HARDER_COLUMNS);
    let rows: Vec<Vec<String>> = harder_rows(study);
    if rows.is_empty() {
        return String::new();
    }
    let left = rows.len().saturating_sub(most);
    for row in rows.into_iter().take(most) {
        table.row(row);
    }
    table.shorten_names(width);
    let title = "Harder sets against the originals of their templates (the paper has none)";
    let mut text = format!("\n{title}\n{}", table.render_within(width));
    if left > 0 {
        text.push_str(&prose(&format!("and {left} more: the setting `tables`"), width, ""));
    }
    text
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
            vec![
                model.clone(),
                prompt.clone(),
                set.clone(),
                accuracies.variant_questions.to_string(),
                share(accuracies.base),
                share(accuracies.variants),
                difference(accuracies),
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
    for note in &notes {
        text.push_str(&wrap(note, width, "* "));
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

/// Renders the counts behind the paper's claims, and in words what the runs say of each conclusion.
fn claims(study: &Study, width: usize, spoken: bool) -> String {
    let names = ["claim", "published", "without artefacts", "ours", "by lme4"];
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
    let left_out = table.fit(width, ["by lme4", "without artefacts"]);
    let mut text = format!("\nThe paper's claims\n{}", table.render_within(width));
    text.push_str(&left_out_text(&left_out, width));
    text.push_str(&wrap(&artefacts(study), width, ""));
    text.push_str(&wrap(&study.pooled.published.says(), width, ""));
    for (conclusion, says) in study.said().into_iter().filter(|_| spoken) {
        text.push_str(&wrap(&format!("{conclusion}: {says}"), width, "* "));
    }
    text
}

/// The counts without artefacts in a sentence, and how to read ours.
pub(super) fn artefacts(study: &Study) -> String {
    let mut text = String::new();
    if let [uncorrected, adjusted, ..] = &study.claims[..] {
        text = format!(
            "Fits that are artefacts of lme4's inner tolerance (gemma-2-2b's) count in the paper: of its {} of {}, {} remain; of the {} \
             after Holm's correction, {}.",
            uncorrected.published,
            uncorrected.of,
            uncorrected.without_artefacts,
            adjusted.published,
            adjusted.without_artefacts
        );
    }
    if !study.analyses.is_empty() {
        text.push_str(" Ours counts the models that were run; no effect shown is not evidence of none.");
    }
    text
}

fn result_table(study: &Study, table: &ResultTable, width: usize) -> String {
    let kind = if table.kind == Kind::Table { "Table" } else { "Figure" };
    let cells = || table.rows.iter().flat_map(|row| &row.cells);
    let has_ours = cells().any(|cell| cell.ours.is_some());
    // Models that the paper does not have need no columns for it.
    let beside = has_ours && cells().any(|cell| cell.published.is_some());
    let series = table.rows.iter().any(|row| row.series.is_some());
    let mut names = vec!["".to_owned()];
    names.extend(series.then(|| "".to_owned()));
    for column in &table.columns {
        if beside {
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
            if beside || !has_ours {
                cells.push(cell.published.map_or_else(|| "-".to_owned(), |value| printed(value, column.decimals)));
            }
            if has_ours {
                cells.push(cell.ours.map_or_else(|| "-".to_owned(), |value| ours(value, column.decimals)));
            }
            if beside {
                let signed = |value: f64| format!("{value:+.*}", column.decimals);
                cells.push(cell.difference.map_or_else(|| "-".to_owned(), signed));
            }
        }
        rows.row(cells);
    }
    let paper = if has_ours && !beside { "; the paper has no row of these models" } else { "" };
    let title = format!("{kind} {}: {}{paper}", table.number, table.title);
    let mut text = format!("\n{}", wrap(&title, width, ""));
    if let Some(identity) = study.identity().filter(|_| has_ours || study.is_in(table)) {
        text.push_str(&wrap(&identity, width, ""));
    }
    text.push_str(&rows.render_within(width));
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

/// A p value with three decimals, as the paper has it.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 { ours(p, 3) } else { p_decimals(p, 3) }
}

/// An odds ratio with its interval.
pub(super) fn ratio(effect: &Effect) -> String {
    let [estimate, low, high] = [effect.estimate, effect.low, effect.high].map(|value| ours(value.exp(), 2));
    let [least, most] = ends((effect.low.exp(), effect.high.exp()), 1.0, 2, false);
    let low = if low.starts_with('<') { low } else { least };
    let high = if high.starts_with('<') { high } else { most };
    format!("{estimate} [{low}, {high}]")
}

fn listing(study: &Study, width: usize) -> String {
    let mut table = Table::with_left(1, ["Listing 6, gemma-2-2b", "optimiser", "intercept", "variant"]);
    for row in &study.listing_6.published {
        let (intercept, variant) = (format!("{:.6}", row.intercept), format!("{:.7}", row.is_variant));
        table.row(vec![row.prompt.to_string(), row.optimiser.clone(), intercept, variant]);
    }
    let mut text = format!("\nAppendix: estimates across optimisers (published)\n{}", table.render_within(width));
    for row in &study.listing_6.ours {
        let mut table = Table::with_left(1, ["objective", "optimiser", "intercept", "variant", "-2 log L"]);
        for end in &row.ends {
            let number = |index: usize| end.coefficients.get(index).map_or_else(String::new, |v| format!("{v:.6}"));
            table.row(vec![
                end.objective.to_owned(),
                end.optimiser.to_owned(),
                number(0),
                number(1),
                format!("{:.5}", end.value),
            ]);
        }
        text.push_str(&format!("\nOurs: {} on {}\n", row.model, row.prompt));
        text.push_str(&table.render_within(width));
        text.push_str(&format!(
            "spread of the variant effect: {:.1e} on lme4's objective, {:.1e} on the converged one\n",
            row.lme4_spread, row.converged_spread
        ));
    }
    text.push_str(&wrap(&study.listing_6.note, width, "  "));
    text
}

/// Renders a plan for a terminal.
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
    let mut text = table.render_within(width);
    let questions: usize = plan.runs.iter().map(|run| run.questions).sum();
    text.push_str(&format!(
        "\n{}, {}, {} {:.1} hours\n",
        counted(plan.runs.len(), "run"),
        counted(questions, "prompt"),
        if plan.assumptions.measured { "about" } else { "at least" },
        plan.hours
    ));
    for note in &plan.notes {
        text.push_str(&prose(note, width, "* "));
    }
    text
}
