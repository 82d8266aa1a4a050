//! The comparison as text.
use super::document::{ClaimForm, MARGIN, Section3, Section3Cell, Section3Figure, Section3Finding, XAxis};
use super::fine_tuned::FineTunedResult;
use crate::text::{indent, inside, points, reading};
use earnest_report::{Table, prose, wrap, wrap_lines};
use earnest_results::p_decimals;
use earnest_tasks::suite::Interval;
use earnest_train::experiment::{Metric, SeedMean};

/// Terminal width from which tables show all columns.
const WIDE: usize = 118;

const TITLES: [(u8, &str); 7] = [
    (12, "Table 12: RoPE at the longest learnt length (D8) and the next one (D9)"),
    (13, "Table 13: digit match at 8 digits of integer addition, of a small model and on a small data set"),
    (14, "Table 14: digit match at 8 digits, of a small model (1.3 M parameters)"),
    (15, "Table 15: digit match at 8 digits, on a small data set (1 M samples)"),
    (16, "Table 16: exact match by reversal and padding"),
    (17, "Table 17: exact match by reversal and index hints"),
    (18, "Table 18: exact match and digit limits after fine-tuning with other encodings, tokens and formats"),
];

/// Renders the comparison for a terminal, with all published cells or only those that the experiment has.
pub fn render_section_3(section: &Section3, published: bool, width: usize) -> String {
    let mut text = wrap(&section.paper, width, "");
    let source = format!("Section 3 compared with {}: {}.", section.source, section.title);
    text.push_str(&wrap(&source, width, ""));
    let seeds: Vec<String> = section.seeds.iter().map(u64::to_string).collect();
    let models = format!(
        "{} of {} models trained, seeds {}; {} questions of each task and length.",
        section.models,
        section.planned,
        seeds.join(", "),
        section.questions
    );
    text.push_str(&wrap(&models, width, ""));
    for line in &section.scale {
        text.push_str(&wrap(line, width, "  "));
    }
    if section.models == 0 {
        text.push_str("\nNo trained models to compare. `earnest train experiment` trains them.\n");
    } else {
        text.push_str(&findings(&section.findings, width));
    }
    for (table, title) in TITLES {
        text.push_str(&one_table(section, table, title, published || section.models == 0, width));
    }
    text.push_str(&fine_tuned(&section.fine_tuned, width));
    for figure in section.figures.iter().filter(|figure| figure.x == XAxis::Digits) {
        text.push_str(&by_length(figure, &section.in_train, width));
    }
    let courses = section.figures.iter().filter(|figure| figure.x != XAxis::Digits).count();
    if courses > 0 {
        let note = format!(
            "{courses} figures over questions seen are in the output of the setting `json`; the setting `figures` draws them."
        );
        text.push('\n');
        text.push_str(&prose(&note, width, ""));
    }
    text.push_str("\nLimitations\n");
    for caveat in &section.caveats {
        text.push_str(&prose(caveat, width, "* "));
    }
    wrap_lines(&text, width)
}

/// Formats a mean: shares in per cent, dlength in digits.
fn mean(value: &SeedMean, measured: Metric) -> String {
    let (factor, digits) = if measured == Metric::Dlength { (1.0, 2) } else { (100.0, 1) };
    let error = value.std_err.map_or_else(|| " (1 seed)".to_owned(), |error| format!(" ±{:.digits$}", factor * error));
    format!("{:.digits$}{error}", factor * value.mean)
}

fn findings(findings: &[Section3Finding], width: usize) -> String {
    let mut text = String::new();
    let heading = |form| match form {
        ClaimForm::Better => {
            "Conclusions of the paper that something is better, in per cent, ± standard error over seeds".to_owned()
        }
        ClaimForm::NoWorse => {
            let margin = 100.0 * MARGIN;
            format!("Conclusions of the paper that something is no worse, with a margin of {margin} points")
        }
    };
    for form in [ClaimForm::Better, ClaimForm::NoWorse] {
        let own: Vec<&Section3Finding> = findings.iter().filter(|finding| finding.form == form).collect();
        if !own.is_empty() {
            text.push('\n');
            text.push_str(&wrap(&heading(form), width, ""));
            text.push_str(&claims(&own, width));
        }
    }
    if findings.is_empty() {
        text.push_str("\nThe experiment has no two variants that the paper compares.\n");
    }
    text
}

/// The contrasts of some claims.
fn claims(findings: &[&Section3Finding], width: usize) -> String {
    let mut text = String::new();
    let mut claims: Vec<&str> = Vec::new();
    for finding in findings {
        if !claims.contains(&finding.claim) {
            claims.push(finding.claim);
        }
    }
    for claim in claims {
        let own: Vec<&Section3Finding> = findings.iter().copied().filter(|finding| finding.claim == claim).collect();
        text.push('\n');
        text.push_str(&wrap(&format!("{claim} ({}).", own[0].rests_on), width, ""));
        let mut kinds: Vec<(&str, &str)> = Vec::new();
        for finding in &own {
            let kind = (finding.task.as_str(), finding.among.as_str());
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for (task, among) in kinds {
            text.push_str(&wrap(&format!("{task}; {among}"), width, "  "));
            let rows = own.iter().filter(|finding| (finding.task.as_str(), finding.among.as_str()) == (task, among));
            text.push_str(&contrasts(rows.copied(), width));
        }
    }
    text
}

fn contrasts<'a>(findings: impl Iterator<Item = &'a Section3Finding>, width: usize) -> String {
    let wide = width >= WIDE;
    let mut names = vec!["variants", "lengths", "metric"];
    if wide {
        names.extend(["first", "second"]);
    }
    names.extend(["difference [95 %]", "p", "adjusted", "finding"]);
    let mut table = Table::with_left(3, names);
    for finding in findings {
        let mut row = vec![
            format!("{} - {}", finding.better, finding.than),
            if finding.learnt { "learnt" } else { "longer" }.to_owned(),
            finding.measured.name().to_owned(),
        ];
        if wide {
            row.push(mean(&finding.of_better, finding.measured));
            row.push(mean(&finding.of_other, finding.measured));
        }
        row.push(finding.difference.as_ref().map_or_else(|| "-".to_owned(), points));
        row.extend([finding.p, finding.adjusted_p].map(|p| p.map_or_else(|| "-".to_owned(), p_value)));
        row.push(finding.outcome.label().to_owned());
        table.row(row);
    }
    indent(&table.render_within(inside(width)))
}

/// Formats a p value.
fn p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { p_decimals(p, 3) }
}

fn one_table(section: &Section3, table: u8, title: &str, all: bool, width: usize) -> String {
    let cells: Vec<&Section3Cell> = section.cells.iter().filter(|cell| cell.published.table == table).collect();
    let shown: Vec<&&Section3Cell> = cells.iter().filter(|cell| all || !cell.ours.is_empty()).collect();
    let mut text = format!("\n{title}\n");
    if shown.is_empty() {
        let reason = cells.first().and_then(|cell| cell.reason.as_deref()).unwrap_or("not run");
        let count = cells.len();
        let note = format!("No results of ours: {reason}. The setting `published` shows the paper's {count} numbers.");
        text.push_str(&prose(&note, width, "  "));
        return text;
    }
    let wide = width >= WIDE;
    // Several results for one number need their models' names.
    let models = wide || shown.iter().any(|cell| cell.ours.len() > 1);
    let first = shown[0].reading;
    // One finding for all is a sentence, not a column.
    let readings = shown.iter().any(|cell| cell.reading != first);
    let mut names = vec!["task", "variant", "column", "metric", "published", "ours", "digits"];
    names.extend(models.then_some("model"));
    names.extend(readings.then_some("finding"));
    let mut rows = Table::with_left(4, names);
    for cell in &shown {
        let published = &cell.published;
        let measured = match published.metric {
            "dlength" | "digits" => Metric::Dlength,
            _ => Metric::ExactMatch,
        };
        let value = match (published.metric, published.std_err) {
            ("digits", _) => format!("{:.0}", published.value),
            ("dlength", error) => {
                format!("{:.2}{}", published.value, error.map(|error| format!(" ±{error:.2}")).unwrap_or_default())
            }
            (_, error) => {
                let error = error.map(|error| format!(" ±{:.0}", 100.0 * error)).unwrap_or_default();
                format!("{:.1}{error}", 100.0 * published.value)
            }
        };
        let value = value + if published.doubt.is_some() { "*" } else { "" };
        let head = |first: bool| {
            let of = |text: &str| if first { text.to_owned() } else { String::new() };
            vec![of(&published.task), of(&published.variant), of(&published.column), of(published.metric), of(&value)]
        };
        if cell.ours.is_empty() {
            let mut row = head(true);
            row.extend(["-", "-"].map(str::to_owned));
            row.extend(models.then(|| "-".to_owned()));
            row.extend(readings.then(|| reading(cell.reading).to_owned()));
            rows.row(row);
        }
        for (index, ours) in cell.ours.iter().enumerate() {
            let mut row = head(index == 0);
            row.extend([mean(&ours.value, measured), ours.length.to_string()]);
            row.extend(models.then(|| ours.model.clone()));
            row.extend(readings.then(|| reading(cell.reading).to_owned()));
            rows.row(row);
        }
    }
    text.push_str(&indent(&rows.render_within(inside(width))));
    if !readings {
        let reason =
            shown.iter().find_map(|cell| cell.reason.as_deref()).map_or(String::new(), |why| format!(": {why}"));
        text.push_str(&prose(&format!("{}{reason}.", reading(first)), width, "  "));
    }
    let hidden = cells.len() - shown.len();
    if hidden > 0 {
        let note =
            format!("{hidden} more published numbers without results of ours; the setting `published` shows them.");
        text.push_str(&prose(&note, width, "  "));
    }
    if shown.iter().any(|cell| cell.published.doubt.is_some()) {
        let doubt = shown.iter().find_map(|cell| cell.published.doubt).unwrap_or_default();
        text.push_str(&wrap(&format!("* {doubt}"), width, "  "));
    }
    text
}

/// Formats a share and its interval in per cent.
fn share(value: &Interval) -> String {
    format!("{:.1} [{:.1}, {:.1}]", 100.0 * value.estimate, 100.0 * value.low, 100.0 * value.high)
}

/// Right answers of fine-tuned checkpoints, by length.
fn fine_tuned(results: &[FineTunedResult], width: usize) -> String {
    if results.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    let title = "Ours beside Table 18: right answers by length, and of all trained lengths in per cent with Wilson's interval over questions";
    text.push_str(&wrap(title, width, ""));
    let mut lengths: Vec<usize> = results.iter().flat_map(|one| one.lengths.iter().map(|own| own.length)).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let mut names = ["checkpoint", "variant", "task", "seed", "steps"].map(str::to_owned).to_vec();
    names.extend(lengths.iter().map(|length| format!("{length} digits")));
    names.push("learnt [95 %]".to_owned());
    let mut table = Table::with_left(3, names);
    for one in results {
        let mut row =
            vec![one.model.clone(), one.variant.clone(), one.task.clone(), one.seed.to_string(), one.steps.to_string()];
        row.extend(lengths.iter().map(|length| {
            let own = one.lengths.iter().find(|own| own.length == *length);
            own.map_or_else(|| "-".to_owned(), |own| format!("{}/{}", own.exact, own.questions))
        }));
        row.push(one.learnt.as_ref().map_or_else(|| "-".to_owned(), share));
        table.row(row);
    }
    text.push_str(&indent(&table.render_within(inside(width))));
    text
}

fn by_length(figure: &Section3Figure, in_train: &[usize], width: usize) -> String {
    let numbers: Vec<String> = figure.figures.iter().map(u8::to_string).collect();
    let unit = if figure.measured == Metric::Dlength { "digits" } else { "%" };
    let mut text = format!("\nFigure {}: {}, {unit}\n", numbers.join(" and "), figure.title);
    let mut lengths: Vec<f64> = figure.curves.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x)).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    let mut names = vec!["digits".to_owned()];
    names.extend(figure.curves.iter().map(|curve| curve.label.clone()));
    let mut table = Table::with_left(1, names);
    for length in lengths {
        let dagger = if in_train.contains(&(length as usize)) { "†" } else { "" };
        let mut row = vec![format!("{length:.0}{dagger}")];
        row.extend(figure.curves.iter().map(|curve| {
            let point = curve.points.iter().find(|(x, _)| *x == length);
            point.map_or_else(|| "-".to_owned(), |(_, value)| mean(value, figure.measured))
        }));
        table.row(row);
    }
    text.push_str(&indent(&table.render_within(inside(width))));
    text
}
