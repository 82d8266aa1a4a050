//! The comparison and the plan as text.
use super::document::{FigureMetric, NupaCell, NupaComparison, NupaFigure, NupaRun, NupaTable, Quantity};
use super::figures::{numbers, value};
use super::plan::{NupaPlan, NupaPlanRow};
use crate::text::{indent, inside};
use crate::{PublishedTable, Reading};
use earnest_report::{Table, grid_text, prose, wrap, wrap_lines};
use earnest_tasks::suite::nupa::{LengthRange, Representation, TaskId};
use earnest_tasks::suite::{Grid, GridCell, GridGroup, GridRow, Interval, Unit};

/// Terminal width from which comparisons show all columns.
const WIDE: usize = 118;

/// Terminal width from which comparisons show the columns that are not needed to read a difference.
const MIDDLE: usize = 98;

/// Renders a comparison for a terminal. The published tables are shown on request, or if there are no runs.
pub fn render(comparison: &NupaComparison, published: bool, width: usize) -> String {
    let mut text = wrap(&comparison.paper, width, "");
    if published || comparison.runs.is_empty() {
        for table in &comparison.published {
            text.push_str(&published_table(table, width));
        }
    }
    if comparison.runs.is_empty() {
        text.push_str(
            "\nNo stored runs to compare. `earnest reproduce nupa --plan` lists the runs that the paper needs.\n",
        );
    }
    for run in &comparison.runs {
        text.push_str(&compared_run(run, width));
    }
    text.push_str("\nLimitations\n");
    for caveat in &comparison.caveats {
        text.push_str(&prose(caveat, width, "* "));
    }
    wrap_lines(&text, width)
}

fn compared_run(run: &NupaRun, width: usize) -> String {
    let mut text = format!("\nOurs: {} ({})\n", run.model, run.run);
    let row = match &run.row {
        Some(row) => format!("Compared with the paper's row {row}."),
        None => "The paper has no row for this model; the setting `beside = NAME` compares the run with another row."
            .to_owned(),
    };
    text.push_str(&prose(&row, width, "  "));
    for limit in &run.limits {
        text.push_str(&wrap(&format!("The run {limit}."), width, "  ! "));
    }
    for setting in &run.settings {
        text.push_str(&prose(setting, width, "  - "));
    }
    for table in &run.tables {
        text.push_str(&compared(table, width));
    }
    if run.tables.iter().any(|table| table.cells.iter().any(|cell| cell.reading == Reading::NotComparable)) {
        text.push('\n');
        text.push_str(&wrap(
            "not comp. (not comparable): the run lacks some of the published lengths of that cell, or a line marked ! above \
             other than a limit of items applies. none shown: the interval of the difference includes zero.",
            width,
            "* ",
        ));
    }
    for figure in run.figures.iter().filter(|figure| figure.chosen) {
        text.push_str(&figure_tables(figure, width));
    }
    text
}

/// Models as columns, tasks as rows; as many models side by side as fit.
fn published_table(table: &PublishedTable, width: usize) -> String {
    let mut text = String::new();
    text.push('\n');
    text.push_str(&wrap(&table.title, width, ""));
    let digits = matches!(table.table, 7..=9);
    // The two limits of a task share a cell, as in print.
    let lines: Vec<(String, Vec<usize>)> = if digits {
        let pairs = table.columns.chunks(2).enumerate();
        pairs
            .map(|(index, pair)| {
                (pair[0].rsplit_once(' ').map_or("", |(task, _)| task).to_owned(), vec![2 * index, 2 * index + 1])
            })
            .collect()
    } else {
        table.columns.iter().enumerate().map(|(index, name)| (name.clone(), vec![index])).collect()
    };
    let number = |value: Option<&Option<f64>>| {
        value.copied().flatten().map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
    };
    let first = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0).saturating_sub("Notation".len());
    // The longest word of a heading that breaks at hyphens.
    const MODEL: usize = 11;
    let beside = (width.saturating_sub(first) / MODEL).clamp(1, table.rows.len().max(1));
    for rows in table.rows.chunks(beside) {
        let mut headings = vec!["published".to_owned()];
        // Names of more than a column's width break after their first hyphen.
        headings.extend(rows.iter().map(|row| match row.model.len() {
            0..=8 => row.model.clone(),
            _ => row.model.replacen('-', "- ", 1),
        }));
        let mut shown = Table::with_left(1, headings);
        for (name, indices) in &lines {
            let mut cells = vec![name.clone()];
            cells.extend(
                rows.iter().map(|row| {
                    indices.iter().map(|index| number(row.values.get(*index))).collect::<Vec<_>>().join("/")
                }),
            );
            shown.row(cells);
        }
        text.push('\n');
        text.push_str(&shown.render_within(width));
    }
    text
}

/// One row per cell; a narrow terminal omits the least needed columns.
fn compared(table: &NupaTable, width: usize) -> String {
    const COLUMNS: [(&str, usize); 10] = [
        ("task", 0),
        ("of", 0),
        ("n", 0),
        ("lengths", MIDDLE),
        ("paper's", 0),
        ("ref", 0),
        ("strict", MIDDLE),
        ("paper", WIDE),
        ("difference", 0),
        ("finding", 0),
    ];
    let shown: Vec<usize> = (0..COLUMNS.len()).filter(|&index| width >= COLUMNS[index].1).collect();
    let mut rows = Table::with_left(1, shown.iter().map(|&index| COLUMNS[index].0));
    let (mut same, mut differs) = (0, 0);
    for cell in &table.cells {
        same += usize::from(cell.reading == Reading::NoDifferenceShown);
        differs += usize::from(cell.reading == Reading::Differs);
        let mut line = line(table.quantity, cell, width >= WIDE);
        rows.row(shown.iter().map(|&index| std::mem::take(&mut line[index])).collect());
    }
    let mut text = format!("\n{}", wrap(&table.title, width, "  "));
    text.push_str(&indent(&rows.render_within(inside(width))));
    let other = table.cells.len() - same - differs;
    text.push_str(&wrap(
        &format!(
            "{} cells: {differs} differ, {same} show no difference, {other} are not comparable.",
            table.cells.len()
        ),
        width,
        "  ",
    ));
    text
}

/// A cell's fields in the order of the columns.
fn line(quantity: Quantity, cell: &NupaCell, wide: bool) -> [String; 10] {
    let column = match cell.column.as_str() {
        "well_learned" => "learned",
        "performance_preserving" => "kept",
        other => other,
    };
    let ours =
        |name: &str| cell.ours.get(name).map_or_else(|| "-".to_owned(), |value| number(quantity, value.estimate));
    let published = cell.published.as_ref();
    [
        short(&cell.task),
        column.to_owned(),
        cell.samples.to_string(),
        format!("{}/{}", cell.lengths, cell.published_lengths),
        published.map_or_else(|| "-".to_owned(), |published| number(quantity, published.value.estimate)),
        cell.ours.get("ref").map_or_else(|| "-".to_owned(), |value| interval(quantity, value)),
        ours("strict"),
        ours("paper"),
        cell.difference.as_ref().map_or_else(|| "-".to_owned(), |difference| signed(quantity, difference, wide)),
        reading(cell.reading).to_owned(),
    ]
}

/// Short name of a task for tables.
fn short(task: &str) -> String {
    let name = task.parse::<TaskId>().map_or_else(|_| task.to_owned(), |task| task.short_name());
    name.replace("ScientificNotation", "Scientific")
}

fn reading(reading: Reading) -> &'static str {
    match reading {
        Reading::NoDifferenceShown => "none shown",
        Reading::Differs => "differs",
        Reading::NotPublished => "not published",
        Reading::NotComparable => "not comp.",
        Reading::NotRun => "not run",
    }
}

fn number(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Accuracy => format!("{:.0}", 100.0 * value),
        Quantity::Digits => format!("{value:.0}"),
    }
}

fn interval(quantity: Quantity, value: &Interval) -> String {
    let [estimate, low, high] = [value.estimate, value.low, value.high].map(|value| number(quantity, value));
    format!("{estimate} [{low:>2}, {high:>3}]")
}

fn signed(quantity: Quantity, value: &Interval, wide: bool) -> String {
    let signed = |value: f64| {
        let text = number(quantity, value);
        match text.as_str() {
            "-0" | "0" => "0".to_owned(),
            _ if value > 0.0 => format!("+{text}"),
            _ => text,
        }
    };
    let [estimate, low, high] = [value.estimate, value.low, value.high].map(signed);
    if wide { format!("{estimate} [{low}, {high}]") } else { estimate }
}

/// Renders bars as grids like a run's own; narrow terminals get two ranges at a time.
fn figure_tables(figure: &NupaFigure, width: usize) -> String {
    let (metric, unit) = match figure.metric {
        FigureMetric::ExactMatch => ("exact match, per cent", Unit::Fraction),
        FigureMetric::DigitMatch => ("digit match, per cent", Unit::Fraction),
        FigureMetric::Log2Dlength => ("log2(dlength + 1)", Unit::Digits),
    };
    let plural = if figure.figures.len() > 1 { "s" } else { "" };
    let title = format!("Figure{plural} {}: {metric}, scorer {}", numbers(&figure.figures), figure.scorer);
    let mut text = String::new();
    let beside = if width >= 104 { 4 } else { 2 };
    for ranges in LengthRange::ALL.chunks(beside) {
        let mut groups = Vec::new();
        for representation in Representation::ALL {
            let mut rows: Vec<GridRow> = Vec::new();
            for row in figure.rows.iter().filter(|row| row.representation == representation.name()) {
                let name = row
                    .task
                    .parse::<TaskId>()
                    .map_or_else(|_| row.task.clone(), |task| task.operation.title().to_owned());
                let Some(index) = ranges.iter().position(|range| range.name() == row.range) else { continue };
                let cell = Some(GridCell { value: value(figure, row), n: row.n });
                let at = rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
                    rows.push(GridRow { name, task: Some(row.task.clone()), cells: vec![None; ranges.len()] });
                    rows.len() - 1
                });
                rows[at].cells[index] = cell;
            }
            if !rows.is_empty() {
                groups.push(GridGroup { name: representation.heading().to_owned(), rows });
            }
        }
        if groups.is_empty() {
            continue;
        }
        let columns = ranges.iter().map(|range| range.name().to_owned()).collect();
        let grid = Grid {
            name: figure.metric.name().to_owned(),
            title: title.clone(),
            unit,
            columns,
            covariate: None,
            groups,
        };
        text.push('\n');
        text.extend(
            grid_text(&grid, width.saturating_sub(2))
                .lines()
                .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }),
        );
    }
    text
}

/// Renders a plan for a terminal.
pub fn render_plan(plan: &NupaPlan, width: usize) -> String {
    let mut text = wrap(&plan.paper, width, "");
    text.push('\n');
    let tokens = plan.rows.iter().any(|row| row.prompt_tokens.is_some());
    let mut names = vec!["run", "tables", "figures", "prompts"];
    if tokens {
        names.extend(["prompt tokens", "correct answers"]);
    } else {
        names.push("prompt characters");
    }
    names.push("new tokens at most");
    if plan.rate.is_some() && tokens {
        names.push("hours");
    }
    let mut table = Table::with_left(1, names);
    let list = |numbers: &[u8]| numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    for (number, row) in (1..).zip(&plan.rows) {
        let mut cells =
            vec![format!("{number} {}", row.name), list(&row.tables), list(&row.figures), row.prompts.to_string()];
        match (row.prompt_tokens, row.answer_tokens) {
            (Some(prompt), Some(answer)) => cells.extend([prompt.to_string(), answer.to_string()]),
            _ => cells.push(row.prompt_characters.to_string()),
        }
        cells.push(row.most_new_tokens.to_string());
        cells.extend(row.hours.map(|[few, many]| match [hours(few), hours(many)] {
            [few, many] if few == many => few,
            [few, many] => format!("{few}-{many}"),
        }));
        table.row(cells);
    }
    text.push_str(&table.render_within(width));
    text.push('\n');
    for note in &plan.notes {
        text.push_str(&prose(note, width, "* "));
    }
    let models = wrap(&plan.models.join(", "), width.saturating_sub(22), "");
    text.push_str(&format!("\nModels of the paper: {}\n", models.trim_end()));
    text.push_str("\nCommands\n");
    for (number, row) in (1..).zip(&plan.rows) {
        text.push_str(&command(number, row, width));
    }
    text
}

fn command(number: usize, row: &NupaPlanRow, width: usize) -> String {
    wrap(&row.command, width, &format!("{number:>3} "))
}

/// Hours with about two significant digits.
fn hours(value: f64) -> String {
    if value >= 9.95 {
        format!("{value:.0}")
    } else if value >= 0.095 {
        format!("{value:.1}")
    } else if value >= 0.0095 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}
