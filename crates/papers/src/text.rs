//! Comparisons and plans as text.
use super::arithmetic_bench::{PublishedCorrelation, Verification};
use super::{ComparedTable, Comparison, Plan, PublishedTable, Reading};
use earnest_report::{Table, percent, prose, wrap, wrap_lines};
use earnest_results::{ends, p_decimals};
use earnest_tasks::suite::Interval;

/// Renders a comparison for a terminal.
pub fn render(comparison: &Comparison, width: usize) -> String {
    let mut text = format!("{}\n", wrap(&comparison.paper, width, "").trim_end());
    text.push_str("Accuracies in per cent; 95 % intervals in brackets.\n");
    for table in &comparison.published {
        text.push_str(&published(table, width));
    }
    text.push_str(&correlations(&comparison.correlations, width));
    if comparison.runs.is_empty() {
        text.push_str(
            "\nNo stored runs to compare. `earnest reproduce arithmetic-bench --plan` lists the runs that the paper needs.\n",
        );
    }
    for run in &comparison.runs {
        text.push_str(&format!("\nOurs: {} ({})\n", run.model, run.run));
        let row = match &run.row {
            Some(row) => format!("The paper's row is {row}."),
            None => "The paper has no row for this model.".to_owned(),
        };
        text.push_str(&wrap(&row, width, "  "));
        for limit in &run.limits {
            text.push_str(&wrap(&format!("Not directly comparable: the run {limit}."), width, "  "));
        }
        for table in comparison.tables.iter().filter(|table| table.run == run.run) {
            text.push_str(&compared(table, width));
        }
        let verified: Vec<&Verification> = comparison.verification.iter().filter(|row| row.run == run.run).collect();
        if !verified.is_empty() {
            text.push_str(&verification(&verified, width));
        }
        for curve in comparison.curves.iter().filter(|curve| curve.run == run.run) {
            text.push_str(&format!("\n  {}\n", curve.title));
            let mut table = Table::with_left(1, ["length", "items", "compat", "boundary"]);
            for point in &curve.points {
                let cell = |scorer: &str| point.ours.get(scorer).map_or_else(|| "-".to_owned(), percent);
                table.row(vec![point.x.to_string(), point.items.to_string(), cell("compat"), cell("boundary")]);
            }
            text.push_str(&indent(&table.render_within(inside(width))));
        }
    }
    text.push_str("\nLimitations\n");
    for caveat in &comparison.caveats {
        text.push_str(&prose(caveat, width, "* "));
    }
    wrap_lines(&text, width)
}

/// Renders a plan for a terminal.
pub fn render_plan(plan: &Plan, width: usize) -> String {
    let mut text = wrap(&plan.paper, width, "");
    text.push('\n');
    let mut names = vec!["model", "tables", "prompts", "characters", "prompt tokens", "new tokens at most"];
    let hours = plan.rows.iter().any(|row| row.most_hours.is_some());
    if hours {
        names.push("hours at most");
    }
    let mut table = Table::with_left(1, names);
    for row in &plan.rows {
        let tables: Vec<String> = row.tables.iter().map(u8::to_string).collect();
        let mut cells = vec![
            row.model.clone(),
            tables.join(" "),
            row.prompts.to_string(),
            row.prompt_characters.to_string(),
            row.prompt_tokens.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string()),
            row.most_new_tokens.to_string(),
        ];
        if hours {
            cells.push(row.most_hours.map_or_else(|| "-".to_owned(), |hours| format!("{hours:.1}")));
        }
        table.row(cells);
    }
    text.push_str(&table.render_within(width));
    text.push('\n');
    for note in &plan.notes {
        text.push_str(&prose(note, width, "* "));
    }
    if plan.rows.iter().all(|row| row.prompt_tokens.is_none()) {
        text.push_str(&prose(
            "The setting `model = PATH` counts prompt tokens with that checkpoint's tokenizer and template.",
            width,
            "* ",
        ));
    }
    text.push_str("\nCommands\n");
    for row in &plan.rows {
        text.push_str(&wrap(&row.command, width, "  "));
    }
    text
}

fn published(table: &PublishedTable, width: usize) -> String {
    let mut names = vec!["published"];
    names.extend(table.columns.iter().map(String::as_str));
    let mut text = Table::with_left(1, names);
    for row in &table.rows {
        let value = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        text.row([row.model.clone()].into_iter().chain(row.values.iter().map(value)).collect());
    }
    format!("\n{}\n{}", table.title, text.render_within(width))
}

/// Correlations of published columns over models.
fn correlations(all: &[PublishedCorrelation], width: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::with_left(2, ["over models", "coefficient", "n", "value", "p"]);
    for PublishedCorrelation { of: [first, second], pearson, spearman } in all {
        for (name, correlation) in [("Pearson", pearson), ("Spearman", spearman)] {
            let value = match correlation.interval {
                Some((low, high)) => format!("{:.2} [{low:.2}, {high:.2}]", correlation.value),
                None => format!("{:.2}", correlation.value),
            };
            let p = if correlation.p < 0.001 { "<0.001".to_owned() } else { p_decimals(correlation.p, 3) };
            table.row(vec![format!("{first} with {second}"), name.to_owned(), correlation.n.to_string(), value, p]);
        }
    }
    format!("\nCorrelations of the published columns\n{}", table.render_within(width))
}

/// Undetected errors of a run by task, in per cent.
fn verification(rows: &[&Verification], width: usize) -> String {
    let names = ["task", "items", "wrong (p)", "both wrong", "p²", "same (q)", "p²q", "undetected"];
    let mut table = Table::with_left(1, names);
    let shown = |share: f64| format!("{:.1}", 100.0 * share);
    let optional = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), shown);
    for row in rows {
        table.row(vec![
            row.task.clone(),
            row.items.to_string(),
            shown(row.wrong),
            shown(row.both_wrong),
            shown(row.wrong * row.wrong),
            optional(row.same),
            optional(row.formula),
            percent(&row.undetected),
        ]);
    }
    format!(
        "\n  Section 3.2: errors that a second sample does not reveal\n{}",
        indent(&table.render_within(inside(width)))
    )
}

fn compared(table: &ComparedTable, width: usize) -> String {
    let mut text = Table::with_left(1, ["task", "items", "published", "compat", "boundary", "difference", "finding"]);
    let mut doubts = Vec::new();
    for cell in &table.cells {
        let ours = |scorer: &str| cell.ours.get(scorer).map_or_else(|| "-".to_owned(), percent);
        let doubt = cell.published.as_ref().and_then(|published| published.doubt.as_ref());
        doubts.extend(doubt.map(|doubt| format!("  * {}: {doubt}\n", cell.column)));
        text.row(vec![
            cell.column.clone(),
            cell.items.to_string(),
            cell.published.as_ref().map_or_else(|| "-".to_owned(), |published| percent(&published.value))
                + if doubt.is_some() { "*" } else { "" },
            ours("compat"),
            ours("boundary"),
            cell.difference.as_ref().map_or_else(|| "-".to_owned(), points),
            reading(cell.reading).to_owned(),
        ]);
    }
    format!("\n  {}\n{}{}", table.title, indent(&text.render_within(inside(width))), doubts.concat())
}

/// Label of a reading in tables.
pub(crate) fn reading(reading: Reading) -> &'static str {
    match reading {
        Reading::NoDifferenceShown => "no difference shown",
        Reading::Differs => "differs",
        Reading::NotPublished => "not published",
        Reading::NotComparable => "not comparable",
        Reading::NotRun => "not run",
    }
}

/// A difference in percentage points with its interval.
pub(crate) fn points(value: &Interval) -> String {
    let ends = ends((100.0 * value.low, 100.0 * value.high), 0.0, 1, true).join(", ");
    format!("{:+.1} [{ends}]", 100.0 * value.estimate)
}

/// Columns inside [`indent`].
pub(crate) fn inside(width: usize) -> usize {
    width.saturating_sub(2)
}

/// Indents every line that is not empty by two columns.
pub(crate) fn indent(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}
