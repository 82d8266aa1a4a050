//! The study and its plan as text.
use std::fmt::Write;

use super::plan::StudyPlan;
use super::result_table::{Kind, ResultTable};
use super::study::Study;
use crate::text::WRITES;
use earnest_eval::report::{Align, Table, wrap};
use earnest_tasks::suite::gsm_symbolic::published::Printed;

/// Figures shown as text: those whose data are not in a table.
const FIGURES_IN_TEXT: [u8; 4] = [7, 9, 10, 11];

/// Renders the study for a terminal of `width` columns; tables may be wider.
pub fn render_study(study: &Study, width: usize) -> String {
    let mut text = wrap(&study.paper, width, "");
    if study.runs.is_empty() {
        text.push('\n');
        text.push_str(&wrap(
            "No stored runs to compare; only published values are shown. `earnest reproduce gsm-symbolic --plan` lists the runs \
             that the paper needs, and `--run --data DIR --with NAME=MODEL,...` executes them (`--suite gsm-mini` needs no data).",
            width,
            "",
        ));
    }
    for run in &study.runs {
        let prompts: Vec<&str> = run.prompts.iter().map(|prompt| prompt.name()).collect();
        writeln!(text, "\nOurs: {} on {} ({})", run.model, prompts.join(", "), run.run).expect(WRITES);
        for limit in &run.limits {
            text.push_str(&wrap(&format!("Not directly comparable: the run {limit}."), width, "  "));
        }
    }
    text.push_str(&selection(study, width));
    text.push_str(&claims(study));
    for table in &study.tables {
        text.push_str(&result_table(table, width));
    }
    for figure in study.figures.iter().filter(|figure| FIGURES_IN_TEXT.contains(&figure.number)) {
        text.push_str(&result_table(figure, width));
    }
    let rest =
        "The data of Figures 1 to 6 and 8 repeat the tables; they are in the JSON, and --figures draws them all.";
    writeln!(text, "\n{rest}").expect(WRITES);
    text.push_str(&listing(study, width));
    text.push_str("\nDiscrepancies between paper and code, and the choice made here\n");
    for recommendation in &study.recommendations {
        text.push_str(&wrap(recommendation, width, "* "));
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
    let mut remarks: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &table.rows {
        let name = row.series.as_ref().map_or_else(|| row.name.clone(), |series| format!("{} {series}", row.name));
        for remark in &row.remarks {
            match remarks.iter_mut().find(|(known, _)| known == remark) {
                Some((_, names)) => names.push(name.clone()),
                None => remarks.push((remark, vec![name.clone()])),
            }
        }
    }
    for (remark, names) in remarks {
        text.push_str(&wrap(&format!("{}: {remark}.", names.join(", ")), width, "* "));
    }
    for note in &table.notes {
        text.push_str(&wrap(note, width, "  "));
    }
    text
}

fn printed(value: Printed, decimals: usize) -> String {
    match value {
        // An adjusted bound has no digits beyond those of the bound.
        Printed::Below { bound } => format!("<{}", (bound * 1e6).round() / 1e6),
        Printed::Rounded(_) => value.text(decimals),
    }
}

/// Formats as the paper does: values too small for its decimals become a bound.
fn ours(value: f64, decimals: usize) -> String {
    let smallest = 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
    if decimals > 1 && value > 0.0 && value < smallest { format!("<{smallest}") } else { format!("{value:.decimals$}") }
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
