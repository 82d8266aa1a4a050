//! Results of a run as text for a terminal.
use earnest_results::{Document, LogCard, Mode, Origin, Status, card_of, fixed};
use earnest_tasks::{agreeing, counted};
use std::fmt::Write;

use serde_json::Value;

use super::first::first;
use super::wrap::{prose, text_width, wrap};
use super::{Align, Table, grid};
use crate::bars::{bars_below, profile};
use earnest_engine::Sampling;
use earnest_engine::endpoint::NOT_TOLD;
use earnest_tasks::suite::log::Reported;
use earnest_tasks::suite::registry::task_label;
use earnest_tasks::suite::{Interval, ScorerCounts, SideBySide, SummaryRow};

/// Detail of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// 36 lines at most where a width of 80 columns allows it: the headline, bars of the tasks, two notes.
    First,
    /// A long table as bars of its tasks, with all notes.
    Screen,
    /// Every table of the document as it is.
    Tables,
}

/// Renders the results of a run. Prose is wrapped at the width of a line, and tables of a suite are folded.
pub fn render(document: &Document, width: usize, detail: Detail) -> String {
    if detail == Detail::First {
        return first(document, width);
    }
    let mut text: String = heading(document).lines().map(|line| wrap(line, width, "")).collect();
    text.push('\n');
    let mut remarks: Vec<String> = Vec::new();
    let mut hidden: Vec<String> = Vec::new();
    let first = document.grids.first().filter(|_| detail != Detail::Tables);
    let short = first.and_then(|grid| Some((grid, profile(grid, width)?)));
    if let Some(said) = nothing(document) {
        text.push_str(&wrap(&said, width, ""));
    } else if let Some((grid, profile)) = &short {
        text.extend(headline(document).map(|text| wrap(&text, width, "")));
        text.extend(bars_below(grid).map(|text| wrap(&text, width, "")));
        text.push('\n');
        text.extend(profile.lines().map(|text| line(text, width)));
        let (run, option) = (&document.manifest.run, document.results_option());
        remarks.push(format!("With intervals: `earnest runs show {run} --metric {}{option}`.", grid.name));
    } else if document.grids.is_empty() {
        let (table, about, left_out) = results(&document.summary.rows, width);
        hidden = left_out;
        text.push_str(&table);
        if document.summary.rows.iter().any(|row| !row.values.is_empty()) {
            let what = if document.manifest.settings.origin() == Origin::Log { "Shares" } else { "Accuracies" };
            remarks.push(format!("{what} are in per cent, with 95 % intervals in brackets."));
        }
        remarks.extend(about);
    } else {
        let tables: Vec<String> = document.grids.iter().map(|grid| grid::text(grid, width)).collect();
        text.push_str(&tables.join("\n"));
        remarks.push("Brackets are 95 % intervals, a number after them the samples behind the cell.".to_owned());
    }
    if let Some(readings) = document.readings.as_ref().filter(|_| short.is_none()) {
        text.push('\n');
        text.push_str(&side_by_side(readings));
        remarks.push(format!("Answers are scored by {}; the other scorers are for comparison.", readings.decides()));
    }
    if !document.reported.is_empty() {
        text.push('\n');
        text.push_str(&reported(&document.reported));
        remarks.extend(reported_otherwise(document));
    }
    // A note that begins with the name of a hidden column is hidden with it.
    let explains =
        |note: &str, column: &str| note.strip_prefix(column).is_some_and(|rest| rest.starts_with([' ', ',']));
    let notes = document.summary.notes.iter();
    remarks.extend(notes.filter(|note| !hidden.iter().any(|column| explains(note, column))).cloned());
    remarks.extend(warnings(document));
    text.push('\n');
    for remark in &remarks {
        text.push_str(&prose(remark, width, "* "));
    }
    text.push('\n');
    text.push_str(&wrap(&speed(document), width, ""));
    text += &wrap(&format!("Results: {}, run {}", document.folder, document.manifest.run), width, "");
    text
}

/// Says that the tool of a log reports other numbers than its samples give.
pub(super) fn reported_otherwise(document: &Document) -> Option<String> {
    let differing = document.reported.iter().filter(|one| one.differs()).count();
    (differing > 0).then(|| {
        format!(
            "{differing} of the tool's own numbers {} not what its samples give by their mean: samples are missing, or the tool \
             aggregates them otherwise.",
            agreeing(differing, "is", "are")
        )
    })
}

/// A line of prose, wrapped; an empty one stays.
pub(super) fn wrapped(line: &str, width: usize) -> String {
    if line.is_empty() { "\n".to_owned() } else { wrap(line, width, "") }
}

/// A line of a table or of prose around it: the table's is never wider than a screen, and its blanks stay.
pub(super) fn line(text: &str, width: usize) -> String {
    if text.contains("  ") { format!("{text}\n") } else { wrapped(text, width) }
}

/// Share of right answers over all tasks, with the scorers that find another share; none where the suite has no such number.
pub(super) fn headline(document: &Document) -> Option<String> {
    let all = document.overall()?;
    let (name, value) = document.main_value(all)?;
    // A sum over some of the answers, as over the perturbed questions alone, is no share of all.
    let scored = document.readings.as_ref().map_or(all.n, |readings| readings.samples);
    if value.estimate.is_nan() || all.n < scored {
        return None;
    }
    let [estimate, low, high] = [value.estimate, value.low, value.high].map(|value| 100.0 * value);
    let what = match document.readings.is_some() || name == "accuracy" {
        true => format!("{estimate:.1} % right of {} answer{}", all.n, plural(all.n)),
        false => format!("{name} {estimate:.1} % over {} answer{}", all.n, plural(all.n)),
    };
    let mut text = format!("{what}, 95 % interval {low:.1} to {high:.1}");
    if let Some(readings) = &document.readings {
        let share =
            |scorer: &ScorerCounts| format!("{:.1} %", 100.0 * scorer.right as f64 / scorer.samples.max(1) as f64);
        let chosen: Vec<String> =
            readings.scorers.iter().filter(|scorer| readings.is_chosen(scorer)).map(share).collect();
        let others: Vec<String> = readings
            .scorers
            .iter()
            .filter(|scorer| !readings.is_chosen(scorer) && !chosen.contains(&share(scorer)))
            .map(|scorer| format!("{} {}", scorer.name, share(scorer)))
            .collect();
        text += &format!(", by scorer {}", readings.decides());
        if !others.is_empty() {
            text += &format!(" (others: {})", others.join(", "));
        }
    }
    Some(text)
}

/// Returns a sentence in place of an empty table.
pub(super) fn nothing(document: &Document) -> Option<String> {
    let totals = &document.totals;
    let empty = document.summary.rows.iter().all(|row| row.n == 0);
    match totals.recorded {
        0 if empty => Some("No samples are recorded, so there are no results.".to_owned()),
        1 if totals.failed == 1 => Some("The only sample failed, so there are no results.".to_owned()),
        all if all > 0 && totals.failed == all => Some(format!("All {all} samples failed, so there are no results.")),
        _ => None,
    }
}

/// Renders the table of scorers, each compared with the one that decides.
fn side_by_side(readings: &SideBySide) -> String {
    let differs = format!("differs from {}", readings.decides());
    let head = ["scorer", "right", "%", &differs, "right alone", "wrong alone"];
    let mut table = Table::with_left(1, head);
    for scorer in &readings.scorers {
        let right = format!("{}/{}", scorer.right, scorer.samples);
        let share = format!("{:.1}", 100.0 * scorer.right as f64 / scorer.samples.max(1) as f64);
        let mut cells = vec![scorer.name.clone(), right, share];
        if !readings.is_chosen(scorer) {
            cells.extend([scorer.differs(), scorer.alone, scorer.missed].map(|count| count.to_string()));
        }
        table.row(cells);
    }
    table.render()
}

/// Returns the two heading lines: suite, model and generation.
pub(super) fn heading(document: &Document) -> String {
    let manifest = &document.manifest;
    let settings = &manifest.settings;
    let generation = &settings.generation;
    let dtype = manifest.engine.as_ref().map(|engine| engine.card.weights_dtype.as_str());
    let told: Vec<&str> = [Some(manifest.model.architecture.as_str()), dtype]
        .into_iter()
        .flatten()
        .filter(|one| *one != NOT_TOLD)
        .collect();
    let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
    let status = match manifest.status {
        Status::Finished => String::new(),
        Status::Running | Status::Interrupted => {
            format!(" (unfinished: {} of {})", document.totals.recorded, document.totals.planned)
        }
    };
    if let Some(card) = card_of(settings) {
        let samples = match settings.samples {
            1 => String::new(),
            samples => format!(" x {samples} repeats"),
        };
        let planned = document.totals.planned / (settings.samples.max(1) as usize);
        return format!(
            "{} {} on {}{status}\nlog of {}: scores are the tool's own; {planned} document{}{samples}\n",
            settings.suite,
            settings.suite_version,
            manifest.model.name,
            tool(&card),
            plural(planned),
        );
    }
    let asked = if settings.origin() != Origin::Evaluated {
        format!("imported completions, read as answers to {} prompts", settings.prompt_mode)
    } else {
        format!("{} prompts, {}", settings.prompts(), sampling(&generation.sampling))
    };
    format!(
        "{} {} on {}{told}{status}\n{asked}, {} item{} x {} sample{}\n",
        settings.suite,
        settings.suite_version,
        manifest.model.name,
        document.totals.planned / (settings.samples.max(1) as usize),
        plural(document.totals.planned / (settings.samples.max(1) as usize)),
        settings.samples,
        plural(settings.samples as usize),
    )
}

/// Returns the name and version of the tool that wrote a log.
pub(crate) fn tool(card: &LogCard) -> String {
    let version = card.tool_version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    format!("{}{version}", card.tool.title())
}

/// Renders the table of the aggregates that a tool reported, beside those of its samples.
fn reported(all: &[Reported]) -> String {
    let head = ["reported by the tool", "n", "reported", "of its samples", ""];
    let mut table = Table::with_left(1, head);
    let number = |value: f64| format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned();
    for one in all {
        let reducer = one.reducer.as_ref().map_or_else(String::new, |reducer| format!(", {reducer}"));
        let name = match one.metric == one.scorer {
            true => format!("{}{reducer}", one.metric),
            false => format!("{} of {}{reducer}", one.metric, one.scorer),
        };
        let value = match &one.value {
            Value::String(text) => text.clone(),
            other => other.as_f64().map_or_else(|| other.to_string(), number),
        };
        let samples = one.samples.map_or_else(|| "-".to_owned(), |samples| samples.to_string());
        let own = one.recomputed.map_or_else(|| "-".to_owned(), number);
        let mark = if one.differs() { "differs" } else { "" };
        table.row(vec![name, samples, value, own, mark.to_owned()]);
    }
    table.render()
}

/// Describes sampling; settings without effect are left out.
pub fn sampling(sampling: &Sampling) -> String {
    let mut words = if sampling.is_greedy() {
        vec!["greedy".to_owned()]
    } else {
        let mut words = vec![format!("temperature {}", sampling.temperature)];
        words.extend((sampling.top_k > 0).then(|| format!("top-k {}", sampling.top_k)));
        words.extend((sampling.top_p < 1.0).then(|| format!("top-p {}", sampling.top_p)));
        words.extend((sampling.min_p > 0.0).then(|| format!("min-p {}", sampling.min_p)));
        words
    };
    let penalty = sampling.repetition_penalty;
    words.extend((penalty != 1.0).then(|| format!("repetition penalty {penalty}")));
    words.join(" ")
}

/// Renders the table of tasks, with the row over all below a rule. Returns it with remarks on columns that are not shown (all zero,
/// equal to an earlier one, or too wide) and the names of those that did not fit. A number with bounds (`X`, `X, from`, `X, to`) is
/// one column.
pub(super) fn results(rows: &[SummaryRow], width: usize) -> (String, Vec<String>, Vec<String>) {
    let mut columns = vec![
        Column {
            name: "task".to_owned(),
            align: Align::Left,
            cells: rows.iter().map(|row| task_label(&row.name).into_owned()).collect(),
        },
        Column { name: "n".to_owned(), align: Align::Right, cells: rows.iter().map(|row| row.n.to_string()).collect() },
    ];
    let always = columns.len() + 1;
    for name in names(rows.iter().map(|row| row.values.iter().map(|(name, _)| name))) {
        let value =
            |row: &SummaryRow| row.values.iter().find(|(other, _)| *other == name).map(|(_, value)| percent(value));
        let cells = rows.iter().map(|row| value(row).unwrap_or_default()).collect();
        columns.push(Column { name, align: Align::Right, cells });
    }
    let numbers = names(rows.iter().map(|row| row.numbers.iter().map(|(name, _)| name)));
    let bound = |name: &str, end: &str| Some(format!("{name}{end}")).filter(|bound| numbers.contains(bound));
    let is_bound = |name: &str| {
        let whole = name.strip_suffix(FROM).or_else(|| name.strip_suffix(TO));
        whole.is_some_and(|whole| numbers.iter().any(|other| other == whole))
    };
    for name in numbers.iter().filter(|name| !is_bound(name)) {
        let of = |row: &SummaryRow, name: &str| {
            row.numbers.iter().find(|(other, _)| other == name).map(|&(_, number)| number)
        };
        let number = |row: &SummaryRow| of(row, name);
        if let (Some(from), Some(to)) = (bound(name, FROM), bound(name, TO)) {
            let interval = |row: &SummaryRow| {
                let [estimate, low, high] = [number(row)?, of(row, &from)?, of(row, &to)?].map(|number| number / 100.0);
                Some(percent(&Interval { estimate, low, high }))
            };
            let cells = rows.iter().map(|row| interval(row).unwrap_or_default()).collect();
            columns.push(Column { name: name.clone(), align: Align::Right, cells });
            continue;
        }
        if rows.iter().all(|row| number(row).is_none_or(|number| number == 0.0)) {
            continue;
        }
        let (said, scale) = said_as(name);
        let shown = |number: f64| if scale == 1.0 { plain(number) } else { fixed(scale * number, 1) };
        let cells = rows.iter().map(|row| number(row).map_or_else(String::new, shown)).collect();
        columns.push(Column { name: said.to_owned(), align: Align::Right, cells });
    }
    let mut shown: Vec<Column> = Vec::new();
    let mut left_out = Vec::new();
    let mut repeats: Vec<String> = Vec::new();
    let mut taken = 0;
    for column in columns {
        if let Some(earlier) = shown.iter().find(|earlier| earlier.cells == column.cells) {
            repeats.push(format!("{} = {}", column.name, earlier.name));
            continue;
        }
        let needed = column.width() + if shown.is_empty() { 0 } else { 2 };
        if left_out.is_empty() && (shown.len() < always || taken + needed <= width) {
            taken += needed;
            shown.push(column);
        } else {
            left_out.push(column.name);
        }
    }
    let mut table = Table::new(shown.iter().map(|column| (column.name.clone(), column.align)));
    for index in 0..rows.len() {
        if index > 0 && index + 1 == rows.len() {
            table.rule();
        }
        table.row(shown.iter().map(|column| column.cells[index].clone()).collect());
    }
    let mut remarks = Vec::new();
    if !repeats.is_empty() {
        remarks.push(format!("Equal in every row: {}.", repeats.join("; ")));
    }
    if !left_out.is_empty() {
        remarks.push(format!("The setting `json` also has: {}.", left_out.join("; ")));
    }
    (table.render(), remarks, left_out)
}

/// Suffix of the lower bound of a number.
const FROM: &str = ", from";
/// Suffix of the upper bound of a number.
const TO: &str = ", to";

/// A column with one cell per row.
struct Column {
    name: String,
    align: Align,
    cells: Vec<String>,
}

impl Column {
    /// Returns the width: headings wrap between words, cells do not.
    fn width(&self) -> usize {
        let words = self.name.split_whitespace().map(text_width);
        words.chain(self.cells.iter().map(|cell| text_width(cell))).max().unwrap_or(0)
    }
}

/// Returns distinct names in order of first appearance.
fn names<'a>(rows: impl Iterator<Item = impl Iterator<Item = &'a String>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in rows.flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Formats an interval in per cent as `83.3 [43.6,  97.0]`, in fixed widths.
pub fn percent(interval: &Interval) -> String {
    if interval.estimate.is_nan() {
        return "-".to_owned();
    }
    let [estimate, low, high] = [interval.estimate, interval.low, interval.high].map(|value| fixed(100.0 * value, 1));
    format!("{estimate} [{low:>4}, {high:>5}]")
}

/// Heading of a number of a summary's rows, and its factor: a share stands in per cent beside accuracies.
pub(crate) fn said_as(name: &str) -> (&str, f64) {
    if name == "truncated" { ("cut off, %", 100.0) } else { (name, 1.0) }
}

fn plain(number: f64) -> String {
    if !number.is_finite() {
        "-".to_owned()
    } else if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number:.0}")
    } else if number.abs() >= 10.0 {
        fixed(number, 1)
    } else if number.abs() < 0.0005 {
        // `0.000` would be a p value of zero.
        if number > 0.0 { "<0.001".to_owned() } else { ">-0.001".to_owned() }
    } else {
        format!("{number:.3}")
    }
}

/// Returns warnings about truncated, clipped and failed samples.
pub fn warnings(document: &Document) -> Vec<String> {
    let totals = &document.totals;
    let answered = totals.recorded - totals.failed;
    let mut warnings = Vec::new();
    let manifest = &document.manifest;
    if let (Some(until), Some(decision)) = (&manifest.settings.until, &manifest.decision) {
        warnings.push(decision.sentence(until));
        if decision.is_early() {
            warnings.push(
                "All other intervals take the number of items as fixed beforehand, which is not so in a run that its own answers ended: \
                 they are too narrow, and the accuracy is a little off in the direction of the difference."
                    .to_owned(),
            );
        }
    }
    if totals.truncated > 0 {
        warnings.push(format!(
            "{} of {} ({:.1} %) {} cut off by the token budget{}.",
            totals.truncated,
            counted(answered, "completion"),
            100.0 * totals.truncated as f64 / answered.max(1) as f64,
            agreeing(totals.truncated, "was", "were"),
            advice_on_cut(document, totals.truncated as f64 / answered.max(1) as f64),
        ));
    }
    if totals.clipped > 0 {
        warnings.push(format!(
            "{} of {} had less than the suite's token budget, because the model's context is {} tokens \
             (`max_tokens` below `budget`).",
            totals.clipped,
            counted(answered, "sample"),
            document.manifest.model.context,
        ));
    }
    for group in &document.failures {
        warnings.push(format!(
            "{} failed and {} excluded from accuracies. The first, {}: {}.",
            counted(group.count, "sample"),
            agreeing(group.count, "is", "are"),
            group.item,
            group.message,
        ));
    }
    warnings
}

/// Share of completions that are cut from which a model that continues a text is one that does not end its answers.
const NEARLY_ALL: f64 = 0.9;

/// Returns what helps against completions that are cut off, as a sentence's end.
fn advice_on_cut(document: &Document, share: f64) -> &'static str {
    let (manifest, settings) = (&document.manifest, &document.manifest.settings);
    if settings.origin() == Origin::Log {
        return "";
    }
    if settings.prompt_mode == Mode::Chat || settings.origin() != Origin::Evaluated || share < NEARLY_ALL {
        return "; the setting `max_tokens` raises it";
    }
    // Where completions are right although they are cut, the answers stand before the cut: the model writes on, and more tokens only
    // take more time.
    let last = document.summary.rows.last().and_then(|row| document.main_value(row));
    if !last.is_some_and(|(_, value)| value.estimate > 0.0) {
        return "; the setting `max_tokens` raises it, which helps unless the model goes on after its answers (`earnest samples` shows them)";
    }
    match manifest.model.chat_template_sha256 {
        Some(_) => {
            ": asked by raw prompts, the model goes on after its answers, and more tokens would not end them; the setting `prompt = chat` asks it \
             as its chat template does, with which it ends them"
        }
        None => {
            ": the model goes on after its answers, and more tokens would not end them; a model with a chat template ends its own, and \
             the `stop` of a task file ends any"
        }
    }
}

/// Describes time, throughput and prefix cache.
fn speed(document: &Document) -> String {
    let totals = &document.totals;
    let seconds = document.manifest.generation_s;
    let answered = totals.recorded - totals.failed;
    let mut text = format!("{answered} completion{}", plural(answered));
    if totals.completion_tokens > 0 {
        write!(text, " of {} tokens", totals.completion_tokens).expect("writing to a String cannot fail");
    }
    if seconds > 0.0 {
        let rate = |count: f64| count / seconds;
        let (samples, tokens) = (rate(answered as f64), rate(totals.completion_tokens as f64));
        let tokens = if tokens > 0.0 { format!(", {tokens:.0} tokens/s") } else { String::new() };
        write!(text, " in {} s ({samples:.2} samples/s{tokens})", plain(seconds))
            .expect("writing to a String cannot fail");
    }
    // Endpoints that do not report cached tokens may still have a cache.
    let settings = &document.manifest.settings;
    let elsewhere =
        settings.origin() != Origin::Evaluated || matches!(settings.engine.as_str(), "openai" | "mistralrs");
    let reported = totals.cached_tokens > 0 || !elsewhere;
    if totals.prompt_tokens > 0 && !reported {
        write!(text, "; {} prompt tokens", totals.prompt_tokens).expect("writing to a String cannot fail");
    }
    if totals.prompt_tokens > 0 && reported {
        let share = 100.0 * totals.cached_tokens as f64 / totals.prompt_tokens as f64;
        write!(text, "; {share:.0} % of {} prompt tokens came from the prefix cache", totals.prompt_tokens)
            .expect("writing to a String cannot fail");
    }
    text + "."
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_line_up() {
        let interval = |estimate, low, high| Interval { estimate, low, high };
        let row = |name: &str, n, value| SummaryRow {
            name: name.into(),
            n,
            values: vec![("boundary, all lengths".into(), value), ("the same".into(), value)],
            numbers: vec![("zero".into(), 0.0), ("items".into(), n as f64), ("mean tokens".into(), n as f64 + 0.5)],
        };
        let rows = [
            row("add", 6, interval(5.0 / 6.0, 0.436, 0.97)),
            row("mul", 6, interval(0.0, 0.0, 0.39)),
            row("all", 12, interval(f64::NAN, 0.0, 1.0)),
        ];
        let (table, remarks, _) = results(&rows, 80);
        assert_eq!(
            table,
            "               boundary, all    mean\n\
             task   n             lengths  tokens\n\
             ------------------------------------\n\
             add    6  83.3 [43.6,  97.0]   6.500\n\
             mul    6   0.0 [ 0.0,  39.0]   6.500\n\
             ------------------------------------\n\
             all   12                   -    12.5\n"
        );
        assert_eq!(remarks, ["Equal in every row: the same = boundary, all lengths; items = n."]);
        let (narrow, remarks, left_out) = results(&rows, 30);
        assert!(narrow.lines().all(|line| line.chars().count() <= 30), "{narrow}");
        assert_eq!(remarks[1], "The setting `json` also has: mean tokens.");
        assert_eq!(left_out, ["mean tokens"]);
    }

    #[test]
    fn rules_stand_side_by_side() {
        let scorer = |name: &str, right, alone, missed| earnest_tasks::suite::ScorerCounts {
            name: name.into(),
            samples: 45,
            right,
            alone,
            missed,
        };
        let readings = SideBySide {
            chosen: vec!["final".into()],
            samples: 45,
            scorers: vec![scorer("final", 40, 0, 0), scorer("strict", 1, 1, 40)],
            example_echoed: 28,
            only_in_thinking: 0,
            rivals: 0,
        };
        assert_eq!(
            side_by_side(&readings),
            "                     differs\n\
             \u{20}                       from  right  wrong\n\
             scorer  right     %    final  alone  alone\n\
             ------------------------------------------\n\
             final   40/45  88.9\n\
             strict   1/45   2.2       41      1     40\n"
        );
    }

    #[test]
    fn intervals_are_shown_whole_or_not_at_all() {
        let numbers = |low: f64| {
            vec![
                ("p".into(), 0.5),
                ("original".into(), 50.0),
                ("original, from".into(), low),
                ("original, to".into(), 75.0),
            ]
        };
        let row = |name: &str, low| SummaryRow { name: name.into(), n: 6, values: Vec::new(), numbers: numbers(low) };
        let rows = [row("type", 25.0), SummaryRow { numbers: vec![("p".into(), 1.0)], ..row("all", 0.0) }];
        let (table, remarks, left_out) = results(&rows, 80);
        assert_eq!(
            table,
            "task  n      p            original\n\
             ----------------------------------\n\
             type  6  0.500  50.0 [25.0,  75.0]\n\
             ----------------------------------\n\
             all   6      1\n"
        );
        assert!(remarks.is_empty() && left_out.is_empty());
        let (_, remarks, left_out) = results(&rows, 20);
        assert_eq!(remarks, ["The setting `json` also has: original."]);
        assert_eq!(left_out, ["original"]);
    }

    #[test]
    fn sampling_in_words() {
        assert_eq!(sampling(&Sampling::GREEDY), "greedy");
        let sampled = Sampling { temperature: 0.7, top_k: 20, top_p: 0.8, min_p: 0.0, repetition_penalty: 1.1 };
        assert_eq!(super::sampling(&sampled), "temperature 0.7 top-k 20 top-p 0.8 repetition penalty 1.1");
    }
}
