//! `earnest runs`.
use super::values::{card, counted, named};
use std::fmt::Write;

use serde_json::{Map, Value};

use super::error::CliError;
use super::printer::Printer;
use super::result_args::{DeleteArgs, ListArgs, RunsArgs, RunsCommand, ShowRunArgs, VerifyArgs};
use super::{Exit, catalogue, offered, results};
use earnest_report::{Align, Table, percent, wrap};
use earnest_results::runs::{RunEntry, Verification, device_seconds};
use earnest_results::store::RunRecord;
use earnest_results::{LogCard, Manifest, Origin, card_of, runs};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::registry::task_label;

/// Note on the intervals of the list.
const INTERVALS: &str =
    "Intervals are those of the runs' own screens: the suite's over all samples, else robust to clusters of items.";

/// Runs the subcommand.
pub fn execute(args: &RunsArgs, printer: Printer) -> Result<Exit, CliError> {
    match &args.command {
        RunsCommand::List(args) => list(args, printer),
        RunsCommand::Show(args) => show(args, printer),
        RunsCommand::Delete(args) => delete(args, printer),
        RunsCommand::Verify(args) => verify(args, printer),
    }
}

fn list(args: &ListArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    let entries = runs::list(&store)?;
    if args.json {
        printer.json(&entries)?;
    } else if entries.is_empty() {
        printer.result(&format!("{} has no runs yet\n", store.path().display()))?;
    } else {
        let mut text = listed(&entries, printer.known_width(), printer.width());
        text.push('\n');
        text += &wrap(INTERVALS, printer.width(), "* ");
        let adaptive: Vec<&str> =
            entries.iter().filter(|entry| entry.adaptive).map(|entry| entry.run.as_str()).collect();
        if !adaptive.is_empty() {
            let note = format!(
                "{}: most questions of a numeracy profile are near the limits of its model, so that the share of right answers says nothing; \
                 `earnest runs show` has the limits.",
                adaptive.join(", ")
            );
            text += &wrap(&note, printer.width(), "* ");
        }
        printer.result(&text)?;
    }
    Ok(Exit::Success)
}

/// New tokens of a run; unknown for an import.
fn tokens(entry: &RunEntry) -> String {
    if entry.origin != Origin::Evaluated && entry.completion_tokens == 0 {
        "-".to_owned()
    } else {
        entry.completion_tokens.to_string()
    }
}

/// Device-seconds of a run; none for an import.
fn cost(entry: &RunEntry) -> String {
    match entry.device_seconds {
        seconds if seconds >= 10.0 => format!("{seconds:.1}"),
        seconds if seconds > 0.0 => format!("{seconds:.3}"),
        _ => "-".to_owned(),
    }
}

/// Column of the start.
const STARTED: &str = "started (UTC)";

/// Start of a run; that of a log as it says it, without fractions of a second, and local where it names no zone.
fn started(entry: &RunEntry) -> String {
    let Some(started) = &entry.started else { return "unknown".to_owned() };
    let Some((moment, rest)) = started.split_at_checked("2026-11-27T07:00:00".len()) else { return started.clone() };
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let zone = match zone {
        "Z" => "",
        "" => " local",
        zone => zone,
    };
    format!("{}{zone}", moment.replace('T', " "))
}

/// Columns of the list, and those that a narrow terminal leaves out, the least important one first.
const COLUMNS: [(&str, Align); 10] = [
    ("run", Align::Left),
    ("status", Align::Left),
    ("samples", Align::Right),
    ("right %, 95 % interval", Align::Right),
    ("scorer", Align::Left),
    ("failed", Align::Right),
    ("cut", Align::Right),
    ("new tokens", Align::Right),
    ("device seconds", Align::Right),
    (STARTED, Align::Left),
];
const LEFT_OUT: [&str; 5] = ["new tokens", "device seconds", STARTED, "cut", "scorer"];

/// Column of what tells runs of one suite and model apart; only a list that has such runs has it.
const DIFFERENCE: &str = "what differs";

/// Table of the runs with as many columns as fit; entries one below the other where none of its forms fits. A column of zeros is
/// left out before others. What tells runs apart is a column, or stands below each of them where a column of it does not fit.
fn listed(entries: &[RunEntry], known_width: Option<usize>, width: usize) -> String {
    let fits = |table: &Table| known_width.is_none_or(|known| table.width() <= known);
    let plain = table(entries, false, known_width);
    let labels = || entries.iter().filter_map(|entry| entry.label.as_deref());
    let begun =
        |entry: &RunEntry| entry.label.as_ref().is_none_or(|label| *label == format!("begun {}", started(entry)));
    // The column of the start says as much.
    let is_said = plain.has(STARTED) && entries.iter().all(begun);
    if is_said && fits(&plain) {
        return plain.render();
    }
    let with_label = table(entries, true, known_width);
    if labels().next().is_some() && fits(&with_label) {
        return with_label.render();
    }
    if fits(&plain) { with_differences(&plain.render(), entries, width) } else { cards(entries, width) }
}

/// A table of so many columns as fit in a known width.
fn table(entries: &[RunEntry], has_difference: bool, known_width: Option<usize>) -> Table {
    let rows: Vec<Vec<String>> = entries.iter().map(cells).collect();
    let mut columns: Vec<(&str, Align)> = COLUMNS.to_vec();
    if has_difference {
        columns.insert(1, (DIFFERENCE, Align::Left));
    }
    let mut table = Table::new(columns.into_iter().map(|(name, align)| (name.to_owned(), align)));
    for (row, entry) in rows.iter().zip(entries) {
        let mut row = row.clone();
        if has_difference {
            row.insert(1, entry.label.clone().unwrap_or_default());
        }
        table.row(row);
    }
    if let Some(known_width) = known_width {
        let index = |name: &str| COLUMNS.iter().position(|(column, _)| *column == name);
        let zeros = |name: &&str| index(name).is_some_and(|at| rows.iter().all(|row| row[at] == "0"));
        table.fit(known_width, ["failed", "cut"].into_iter().filter(zeros).chain(LEFT_OUT));
    }
    table
}

/// A table with what tells each run apart below its row.
fn with_differences(table: &str, entries: &[RunEntry], width: usize) -> String {
    let heading = table.lines().count() - entries.len();
    let mut text = String::new();
    for (index, line) in table.lines().enumerate() {
        text.push_str(line);
        text.push('\n');
        if let Some(label) = index.checked_sub(heading).and_then(|row| entries[row].label.as_ref()) {
            text += &wrap(label, width, "  ");
        }
    }
    text
}

/// Cells of [`COLUMNS`].
fn cells(entry: &RunEntry) -> Vec<String> {
    vec![
        entry.run.clone(),
        entry.status.to_owned(),
        match entry.planned == entry.recorded {
            true => entry.recorded.to_string(),
            false => format!("{}/{}", entry.recorded, entry.planned),
        },
        match (entry.accuracy, entry.low, entry.high) {
            (Some(value), Some(low), Some(high)) => percent(&Interval { estimate: value, low, high }),
            _ => "-".to_owned(),
        },
        entry.chosen.join(", "),
        entry.failed.to_string(),
        entry.truncated.to_string(),
        tokens(entry),
        cost(entry),
        started(entry),
    ]
}

/// The list for terminals that are too narrow for its table.
fn cards(entries: &[RunEntry], width: usize) -> String {
    let entry_card = |entry: &RunEntry| {
        let samples = match entry.planned == entry.recorded {
            true => counted(entry.recorded, "sample"),
            false => format!("{} of {}", entry.recorded, counted(entry.planned, "sample")),
        };
        let right = match (entry.accuracy, entry.low, entry.high) {
            (Some(value), Some(low), Some(high)) => {
                let by = match entry.chosen.is_empty() {
                    true => String::new(),
                    false => format!(" by {}", entry.chosen.join(", ")),
                };
                format!(", right {:.1} % [{:.1}, {:.1}]{by}", 100.0 * value, 100.0 * low, 100.0 * high)
            }
            _ => String::new(),
        };
        let started = started(entry);
        let cost = match entry.device_seconds > 0.0 {
            true => format!(" in {} device-seconds", cost(entry)),
            false => String::new(),
        };
        let about = format!(
            "{}, {samples}{right}, {} failed, {} cut, {} new tokens{cost}, started {started}",
            entry.status,
            entry.failed,
            entry.truncated,
            tokens(entry)
        );
        card(&entry.run, entry.label.clone().into_iter().chain([about]), width)
    };
    entries.iter().map(entry_card).collect()
}

fn show(args: &ShowRunArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    let run = store.run(&args.run)?;
    catalogue::check_table(&run.manifest.settings.suite, args.table.metric.as_deref())?;
    let document = results::document(&store, &run)?;
    // The stored summary does not show an edit of a row.
    store.aggregate(&run)?;
    if args.json {
        printer.json(&document)?;
        return Ok(Exit::Success);
    }
    let totals = document.totals;
    let mut text = results::screen(document, args.table.metric.as_deref(), printer.width());
    let manifest = &run.manifest;
    let settings = &manifest.settings;
    let files: Vec<String> =
        settings.model_files.iter().map(|file| format!("{} {}", file.name, digest(&file.sha256))).collect();
    let width = printer.known_width();
    let mut row = |name: &str, value: String| text += &named(name, 10, &value, width);
    if let Some(card) = card_of(settings) {
        of_log(&card, &run.manifest, &mut row);
        printer.result(&text)?;
        return Ok(Exit::Success);
    }
    row("options", options(&settings.suite_options));
    if let Some(shard) = manifest.shard {
        row("part", shard.to_string());
    }
    row("seed", settings.generation.seed.to_string());
    row("model", manifest.model.path.clone());
    for (name, value) in supplied(manifest) {
        row(name, value);
    }
    if let Some(pinned) = &manifest.model.pinned {
        row("commit", format!("{}@{}", pinned.repo, pinned.commit));
    }
    if let Some(weights) = &manifest.model.weights {
        row("weights", weights.to_string());
    }
    if !files.is_empty() {
        row("files", files.join(", "));
    }
    if let Some(engine) = &manifest.engine {
        let card = &engine.card;
        row("engine", format!("{} {} on {}", card.engine, card.version, card.devices.join(", ")));
    }
    if let Some(sandbox) = &manifest.sandbox {
        row("sandbox", sandbox.to_string());
    }
    let host = &manifest.host;
    row("host", format!("{} {}, {}", host.os, host.arch, host.cpu.as_deref().unwrap_or("unknown CPU")));
    if manifest.generation_s > 0.0 {
        let open = if totals.recorded < totals.planned { ", including samples without a row" } else { "" };
        // Nothing is generated where given continuations are scored.
        let tokens = match totals.completion_tokens {
            0 => format!("{} prompt tokens", totals.prompt_tokens),
            generated => format!("{} prompt tokens and {generated} generated tokens", totals.prompt_tokens),
        };
        row("cost", format!("{:.3} device-seconds for {tokens}, without loading{open}", device_seconds(manifest)));
    }
    if let Some(until) = &settings.until {
        row("until", until.to_string());
    }
    if let Some(decision) = &manifest.decision {
        row("decided", decision.when.clone());
    }
    row("sessions", manifest.sessions.to_string());
    row("started", manifest.started.clone());
    row("ended", manifest.ended.clone().unwrap_or_else(|| "-".to_owned()));
    row("settings", digest(&manifest.settings_sha256));
    printer.result(&text)?;
    Ok(Exit::Success)
}

/// Rows on what the user or earnest supplied where the model's files say nothing that is known here: the pre-tokenizer, and what
/// `--allow-config` let through.
fn supplied(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let pre_tokenizer = manifest.settings.pre_tokenizer.as_ref();
    let pre_tokenizer = pre_tokenizer.map(|name| ("tokenizer", format!("pre-tokenizer {name}")));
    let allowed = &manifest.model.allowed_config;
    let allowed = (!allowed.is_empty()).then(|| ("allowed", allowed.join(", ")));
    pre_tokenizer.into_iter().chain(allowed).collect()
}

/// The first digits of a SHA-256, as many as tell files apart; `--json` has all of them.
fn digest(sha256: &str) -> String {
    format!("sha256:{}", sha256.chars().take(12).collect::<String>())
}

/// Options of a suite by their names, without the marks of JSON, and with the names of its tasks for people.
fn options(options: &Value) -> String {
    match options {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().map(|(name, value)| format!("{name} {}", option(value))).collect::<Vec<_>>().join("; ")
        }
        Value::Object(_) | Value::Null => "none".to_owned(),
        other => option(other),
    }
}

/// A value of an option.
fn option(value: &Value) -> String {
    let all = |values: Vec<String>| if values.is_empty() { "none".to_owned() } else { values.join(", ") };
    match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) if text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit()) => digest(text),
        Value::String(text) => task_label(text).replace('\n', "\\n").replace('\t', "\\t"),
        Value::Array(values) => match values.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>() {
            Some(numbers) if !numbers.is_empty() => ranges(&numbers),
            _ => all(values.iter().map(option).collect()),
        },
        Value::Object(fields) => {
            format!("({})", all(fields.iter().map(|(name, value)| format!("{name} {}", option(value))).collect()))
        }
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// Numbers with a dash between neighbours: `1-4, 6`.
fn ranges(numbers: &[u64]) -> String {
    let one = |run: &[u64]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(u64::to_string).collect(),
    };
    numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next)).map(one).collect::<Vec<_>>().join(", ")
}

/// Rows of a log: what it says, and what it does not say.
fn of_log(card: &LogCard, manifest: &Manifest, row: &mut impl FnMut(&str, String)) {
    let options = &manifest.settings.suite_options;
    let text = |name: &str| options.get(name).and_then(Value::as_str);
    let unknown = || "unknown".to_owned();
    let list = |fields: &Map<String, Value>| -> String {
        if fields.is_empty() {
            return unknown();
        }
        let one = |(name, value): (&String, &Value)| {
            format!("{name} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        fields.iter().map(one).collect::<Vec<_>>().join(", ").replace('\n', "\\n")
    };
    let version = card.tool_version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    row("tool", format!("{}{version}", card.tool.title()));
    row("scored by", manifest.settings.chosen_scorer().unwrap_or("none").to_owned());
    row("scorers", if card.scorers.is_empty() { "none".to_owned() } else { card.scorers.join("; ") });
    row(
        "cluster",
        text("cluster")
            .map_or_else(|| "the documents' own, if they have one".to_owned(), |field| format!("the field {field}")),
    );
    row("model", list(&card.model_details));
    row("task", card.task_version.as_ref().map_or_else(unknown, |version| format!("version {version}")));
    if let Some(hash) = &card.task_hash {
        row("task hash", hash.clone());
    }
    row("few-shot", card.few_shot.map_or_else(unknown, |shots| shots.to_string()));
    row("repeats", card.repeats.map_or_else(unknown, |repeats| repeats.to_string()));
    row("sampling", list(&card.generation));
    let seed = card.generation.get("seed").or_else(|| card.task_details.get("seed"));
    row("seed", seed.map_or_else(unknown, Value::to_string));
    row("started", card.started.clone().unwrap_or_else(unknown));
    row("ended", card.ended.clone().unwrap_or_else(unknown));
    row("log", manifest.model.path.clone());
    row("content", digest(text("sha256").unwrap_or_default()));
    row("settings", digest(&manifest.settings_sha256));
}

fn delete(args: &DeleteArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    // All names are resolved before the first run is deleted.
    let runs = args.runs.iter().map(|name| store.run_exactly(name)).collect::<Result<Vec<RunRecord>, _>>()?;
    for run in &runs {
        let rows = store.count(run)?;
        if args.yes {
            store.delete(run)?;
            printer.result(&format!("deleted {} ({})\n", run.manifest.run, counted(rows, "sample")))?;
        } else {
            printer.result(&format!("would delete {} ({})\n", run.manifest.run, counted(rows, "sample")))?;
        }
        let page = results::page(&args.results.folder, &run.manifest.run);
        if page.exists() {
            printer.remark(&format!("{} is not deleted: it is a separate file", page.display()));
        }
    }
    if args.yes {
        store.compact()?;
        return Ok(Exit::Success);
    }
    Err(CliError::usage("nothing was deleted").help("add --yes to delete"))
}

fn verify(args: &VerifyArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    let verification = runs::verify(
        &store,
        &args.runs,
        &args.confinement.host_of_stored(args.python.allow_python.clone()),
        &mut results::Messages(printer),
    )?;
    printer.result(&verification_text(&verification, printer.width()))?;
    let found = match verification.damaged() {
        0 => return Ok(Exit::Success),
        1 => "damage was found in one place",
        _ => "damage was found in several places",
    };
    Err(CliError::new(Exit::Results, found).help(
        "a damaged run can be deleted (`earnest runs delete`) and repeated (`earnest run --from` first reads its settings)",
    ))
}

fn verification_text(verification: &Verification, width: usize) -> String {
    let mut text = String::new();
    for check in &verification.checks {
        if check.faults.is_empty() {
            let scored = if verification.without_suite.contains(&check.name) { " (not scored again)" } else { "" };
            writeln!(text, "ok       {}{scored}", check.name).expect("writing to a String cannot fail");
        }
        for fault in &check.faults {
            writeln!(text, "damaged  {}: {fault}", check.name).expect("writing to a String cannot fail");
        }
    }
    text.push('\n');
    if verification.is_of_outcomes {
        let note =
            "Checked: that the outcome files and their rows can be read. They have neither questions nor completions.";
        text += &wrap(note, width, "");
        return text;
    }
    text += &wrap(
        &offered::here(
            "Checked: the file's structure; that every row can be read, is as it was written, is in its run's plan with the expected \
         answer of today's questions, and has the score that today's scorers give its completion; that stored questions are those of \
         the suite, and stored results those of the rows; that the list of runs agrees with their manifests. To check that a model \
         really gave these answers, ask it again: `earnest run --from RUN`.",
        ),
        width,
        "",
    );
    if !verification.without_suite.is_empty() {
        let note = format!(
            "Neither scored again nor compared with the questions and results of their suite, which cannot be built here or whose programs cannot \
             be run as they were then: {}.",
            verification.without_suite.join(", ")
        );
        text += &wrap(&note, width, "");
    }
    if !verification.outdated.is_empty() {
        let runs = verification.outdated.iter();
        let runs: Vec<String> =
            runs.map(|run| format!("{} (version {}; today's is {})", run.run, run.version, run.today)).collect();
        let note = format!("Not scored again, because the suite's scorers have changed since: {}.", runs.join(", "));
        text += &wrap(&note, width, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(run: &str, label: Option<&str>) -> RunEntry {
        RunEntry {
            run: run.into(),
            status: "finished",
            started: Some("2026-01-02T03:04:05Z".into()),
            suite: "nupa".into(),
            model: "m".into(),
            recorded: 20,
            planned: 20,
            failed: 0,
            truncated: 0,
            correct: 10,
            scored: 20,
            chosen: vec!["strict".into()],
            adaptive: false,
            accuracy: Some(0.5),
            low: Some(0.3),
            high: Some(0.7),
            standard_error: None,
            prompt_tokens: 100,
            completion_tokens: 100,
            device_seconds: 12.0,
            label: label.map(str::to_owned),
            origin: Origin::Evaluated,
        }
    }

    #[test]
    fn what_tells_runs_apart_is_a_column_or_below_them() {
        let long = "tasks add_Integer, sub_Integer, max_Integer and a dozen more, temperature 0.7, token limit 128";
        let entries = [
            entry("nupa-earnest-abacus-1.4m-00000001", Some("seed 1")),
            entry("nupa-earnest-abacus-1.4m-00000002", Some("seed 2")),
            entry("arithmetic-bench-other-00000003", None),
        ];
        for width in [None, Some(140), Some(100)] {
            let text = listed(&entries, width, width.unwrap_or(100));
            assert!(text.split("---").next().unwrap().contains("differs"), "{text}");
            let rows: Vec<&str> = text.lines().filter(|line| line.contains("finished")).collect();
            assert!(rows[0].contains("seed 1") && rows[1].contains("seed 2") && !rows[2].contains("seed"), "{text}");
        }
        let text = listed(&entries, Some(80), 80);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let below = |run: &str| lines[lines.iter().position(|line| line.starts_with(run)).unwrap() + 1];
        assert_eq!((below(&entries[0].run), below(&entries[1].run)), ("  seed 1", "  seed 2"));
        assert!(lines.last().unwrap().starts_with("arithmetic-bench-other"), "{text}");
        // Long labels, at every width.
        let entries = [entry("nupa-m-00000001", Some(long)), entry("nupa-m-00000002", Some("seed 2"))];
        for width in [50, 80, 100, 140] {
            let text = listed(&entries, Some(width), width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(long), "{text}");
        }
        // The start is said once where its column has room.
        let entries = ["nupa-m-00000001", "nupa-m-00000001.2"].map(|run| entry(run, Some("begun 2026-01-02 03:04:05")));
        for width in [None, Some(140), Some(80)] {
            let text = listed(&entries, width, 80);
            assert_eq!(text.matches("2026-01-02 03:04:05").count(), 2, "{text}");
            assert_eq!(text.contains("begun"), width == Some(80), "{text}");
        }
        // Nothing to tell apart: no column, and nothing below.
        let entries = [entry("nupa-m-00000001", None)];
        for width in [None, Some(80), Some(140)] {
            let text = listed(&entries, width, 80);
            assert!(!text.contains("differs") && text.trim_end().lines().last().unwrap().starts_with("nupa-m"));
        }
    }

    #[test]
    fn options_are_words() {
        let told = options(&json!({
            "tasks": ["add_Integer", "x"], "seed": 1, "limit": null, "stop": ["\n"], "log": {"a": true, "b": []}, "empty": ""
        }));
        for part in ["seed 1", "limit none", "stop \\n", "log (a true, b none)", "empty \"\""] {
            assert!(told.split("; ").any(|one| one == part), "{part}: {told}");
        }
        assert!(!told.contains(['{', '[', '\n']), "{told}");
        assert_eq!(options(&json!({})), "none");
        assert_eq!(
            options(&json!({"few": [0.5, 1], "lengths": [1, 2, 3, 5, 9, 10]})),
            "few 0.5, 1; lengths 1-3, 5, 9-10"
        );
        assert_eq!(options(&json!({"prompt": {"a": "0f".repeat(32)}})), "prompt (a sha256:0f0f0f0f0f0f)");
        assert_eq!(digest(&"ab".repeat(32)), "sha256:abababababab");
    }
}
