//! `earnest runs`: the runs of a results folder.
use std::fmt::Write;

use serde::Serialize;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::{DeleteArgs, ListArgs, RunsArgs, RunsCommand, ShowRunArgs, VerifyArgs};
use super::{Exit, results};
use earnest_eval::report::{Align, Document, Table, wrap};
use earnest_eval::run::store::{Aggregate, RunLock, RunRecord, Store};
use earnest_eval::run::{Manifest, Status};
use earnest_tasks::suite::Suite;

/// A run as it is listed.
#[derive(Debug, Serialize)]
struct Line {
    run: String,
    /// `finished`, `interrupted`, `working`, or `partial` for an import whose file had not all samples.
    status: &'static str,
    started: String,
    suite: String,
    model: String,
    recorded: usize,
    /// None for runs of an earlier version that were not continued since.
    planned: Option<usize>,
    failed: usize,
    truncated: usize,
    correct: usize,
    judged: usize,
    /// The rules that decide what is right.
    primary: Vec<String>,
    /// Accuracy with its 95 % Wilson interval, and its cluster-robust standard error.
    accuracy: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    standard_error: Option<f64>,
    /// What it cost: tokens of prompts and completions, and seconds of generation times devices; 0 devices of an endpoint count as one.
    prompt_tokens: u64,
    completion_tokens: u64,
    device_seconds: f64,
}

impl Line {
    /// Device-seconds as they are shown; an import has none.
    fn cost(&self) -> String {
        match self.device_seconds {
            seconds if seconds >= 10.0 => format!("{seconds:.1}"),
            seconds if seconds > 0.0 => format!("{seconds:.3}"),
            _ => "-".to_owned(),
        }
    }
}

/// What a run took of its devices: seconds of generation, loading excluded, times devices.
fn device_seconds(manifest: &Manifest) -> f64 {
    let devices = manifest.engine.as_ref().map_or(1, |engine| engine.card.devices.len().max(1));
    manifest.generation_s * devices as f64
}

/// What the list's intervals are.
const INTERVALS: &str = "Intervals are over all samples of a run and allow for clusters of items. `earnest runs show` and reports give the \
                         suite's own, which also know its tasks and lengths and can be narrower.";

/// Runs the subcommand.
pub fn execute(args: &RunsArgs, printer: Printer) -> Result<Exit, CliError> {
    match &args.command {
        RunsCommand::List(args) => list(args, printer),
        RunsCommand::Show(args) => show(args, printer),
        RunsCommand::Delete(args) => delete(args, printer),
        RunsCommand::Verify(args) => verify(args, printer),
    }
}

fn line(store: &Store, run: RunRecord) -> Result<Line, CliError> {
    let found: Aggregate = store.aggregate(&run)?;
    let accuracy = found.accuracy();
    let device_seconds = device_seconds(&run.manifest);
    let primary = results::primary(store, &run)?;
    let status = match run.manifest.status {
        Status::Finished => "finished",
        _ if RunLock::is_taken(store.results(), &run.manifest.run)? => "working",
        _ if run.manifest.settings.imported() => "partial",
        // A killed process could not write that it ended.
        Status::Running | Status::Interrupted => "interrupted",
    };
    Ok(Line {
        primary,
        status,
        started: run.manifest.started,
        suite: run.manifest.settings.suite,
        model: run.manifest.model.name,
        run: run.manifest.run,
        recorded: found.totals.recorded,
        planned: run.planned,
        failed: found.totals.failed,
        truncated: found.totals.truncated,
        correct: found.correct,
        judged: found.judged,
        accuracy: accuracy.map(|accuracy| accuracy.value),
        low: accuracy.map(|accuracy| accuracy.low),
        high: accuracy.map(|accuracy| accuracy.high),
        standard_error: found.standard_error,
        prompt_tokens: found.totals.prompt_tokens,
        completion_tokens: found.totals.completion_tokens,
        device_seconds,
    })
}

fn list(args: &ListArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    let lines = store.runs()?.into_iter().map(|run| line(&store, run)).collect::<Result<Vec<Line>, _>>()?;
    if args.json {
        printer.json(&lines)?;
    } else if lines.is_empty() {
        printer.result(&format!("{} has no runs yet\n", store.path().display()))?;
    } else {
        let head = [
            ("run", Align::Left),
            ("status", Align::Left),
            ("samples", Align::Right),
            ("right %, 95 % interval", Align::Right),
            ("read by", Align::Left),
            ("failed", Align::Right),
            ("cut", Align::Right),
            ("new tokens", Align::Right),
            ("device seconds", Align::Right),
            ("started (UTC)", Align::Left),
        ];
        let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
        for line in &lines {
            table.row(vec![
                line.run.clone(),
                line.status.to_owned(),
                match line.planned {
                    Some(planned) if planned != line.recorded => format!("{}/{planned}", line.recorded),
                    _ => line.recorded.to_string(),
                },
                match (line.accuracy, line.low, line.high) {
                    (Some(value), Some(low), Some(high)) => {
                        format!("{:.1} [{:>4.1}, {:>5.1}]", 100.0 * value, 100.0 * low, 100.0 * high)
                    }
                    _ => "-".to_owned(),
                },
                line.primary.join(", "),
                line.failed.to_string(),
                line.truncated.to_string(),
                line.completion_tokens.to_string(),
                line.cost(),
                line.started.trim_end_matches('Z').replace('T', " "),
            ]);
        }
        let text = table.render();
        let columns = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let fits = printer.known_width().is_none_or(|width| columns <= width);
        let mut text = if fits { text } else { cards(&lines, printer.width()) };
        text.push('\n');
        text += &wrap(INTERVALS, printer.width(), "* ");
        printer.result(&text)?;
    }
    Ok(Exit::Success)
}

/// The list for terminals that are too narrow for its table.
fn cards(lines: &[Line], width: usize) -> String {
    let card = |line: &Line| {
        let samples = match line.planned {
            Some(planned) if planned != line.recorded => format!("{} of {planned} samples", line.recorded),
            _ => format!("{} samples", line.recorded),
        };
        let right = match (line.accuracy, line.low, line.high) {
            (Some(value), Some(low), Some(high)) => {
                let by = match line.primary.is_empty() {
                    true => String::new(),
                    false => format!(" by {}", line.primary.join(", ")),
                };
                format!(", right {:.1} % [{:.1}, {:.1}]{by}", 100.0 * value, 100.0 * low, 100.0 * high)
            }
            _ => String::new(),
        };
        let started = line.started.trim_end_matches('Z').replace('T', " ");
        let cost = match line.device_seconds > 0.0 {
            true => format!(" in {} device-seconds", line.cost()),
            false => String::new(),
        };
        let about = format!(
            "{}, {samples}{right}, {} failed, {} cut, {} new tokens{cost}, started {started}",
            line.status, line.failed, line.truncated, line.completion_tokens
        );
        format!("{}\n{}", line.run, wrap(&about, width, "  "))
    };
    lines.iter().map(card).collect()
}

fn show(args: &ShowRunArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    let run = store.run(&args.run)?;
    let document = results::document(&store, &run)?;
    if args.json {
        printer.json(&document)?;
        return Ok(Exit::Success);
    }
    let totals = document.totals;
    let mut text = results::screen(document, args.table.metric.as_deref(), printer);
    let manifest = &run.manifest;
    let settings = &manifest.settings;
    let files: Vec<String> = settings
        .model_files
        .iter()
        .map(|file| format!("{} sha256:{}", file.name, &file.sha256[..12.min(file.sha256.len())]))
        .collect();
    let mut row =
        |name: &str, value: String| writeln!(text, "{name:<10}{value}").expect("writing to a String cannot fail");
    row("options", settings.suite_options.to_string());
    if let Some(shard) = manifest.shard {
        row("part", shard.to_string());
    }
    row("seed", settings.generation.seed.to_string());
    row("model", manifest.model.path.clone());
    if let Some(pinned) = &manifest.model.pinned {
        row("commit", format!("{}@{}", pinned.repo, pinned.commit));
    }
    if let Some(weights) = &manifest.model.weights {
        row("weights", weights.to_string());
    }
    row("files", files.join(", "));
    if let Some(engine) = &manifest.engine {
        let card = &engine.card;
        row("engine", format!("{} {} on {}", card.engine, card.version, card.devices.join(", ")));
    }
    let host = &manifest.host;
    row("host", format!("{} {}, {}", host.os, host.arch, host.cpu.as_deref().unwrap_or("unknown CPU")));
    if manifest.generation_s > 0.0 {
        let open = if totals.recorded < totals.planned { "; seconds of samples without a row included" } else { "" };
        let tokens = format!("{} prompt tokens and {} generated ones", totals.prompt_tokens, totals.completion_tokens);
        row("cost", format!("{:.3} device-seconds for {tokens}, loading excluded{open}", device_seconds(manifest)));
    }
    row("sessions", manifest.sessions.to_string());
    row("started", manifest.started.clone());
    row("ended", manifest.ended.clone().unwrap_or_else(|| "-".to_owned()));
    row("settings", format!("sha256:{}", manifest.settings_sha256));
    printer.result(&text)?;
    Ok(Exit::Success)
}

fn delete(args: &DeleteArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    // All names are settled before the first run goes.
    let runs = args.runs.iter().map(|name| store.run(name)).collect::<Result<Vec<RunRecord>, _>>()?;
    for run in &runs {
        let rows = store.count(run)?;
        if args.yes {
            store.delete(run)?;
            printer.result(&format!("deleted {} ({rows} samples)\n", run.manifest.run))?;
        } else {
            printer.result(&format!("would delete {} ({rows} samples)\n", run.manifest.run))?;
        }
        let page = results::page(&args.results.folder, &run.manifest.run);
        if page.exists() {
            printer.message(&format!("{} is not deleted: it is a file of its own", page.display()));
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
    let mut faults = store.integrity()?;
    let strays = store.strays()?;
    if strays > 0 {
        faults.push(format!("{strays} rows belong to no run"));
    }
    let mut text = String::new();
    let mut verdict = |name: &str, faults: &[String]| {
        if faults.is_empty() {
            writeln!(text, "ok       {name}").expect("writing to a String cannot fail");
        }
        for fault in faults {
            writeln!(text, "damaged  {name}: {fault}").expect("writing to a String cannot fail");
        }
    };
    verdict(&store.path().display().to_string(), &faults);
    let mut damaged = usize::from(!faults.is_empty());
    let mut old_rules = Vec::new();
    let runs = if args.runs.is_empty() {
        store.runs()?
    } else {
        args.runs.iter().map(|name| store.run(name)).collect::<Result<_, _>>()?
    };
    for run in runs {
        let suite = results::suite(&store, &run, printer)?;
        let mut faults = store.examine(&run, suite.as_deref())?;
        faults.extend(summary_fault(&store, &run, suite.as_deref()));
        damaged += usize::from(!faults.is_empty());
        verdict(&run.manifest.run, &faults);
        let then = &run.manifest.settings.suite_version;
        if let Some(today) = suite.as_ref().map(|suite| suite.version()).filter(|today| then != today) {
            old_rules.push(format!("{} (version {then}; today's is {today})", run.manifest.run));
        }
    }
    text.push('\n');
    text += &wrap(
        "Checked: the file's structure; that every row can be read, is as it was written, is in its run's plan with the expected \
         answer of today's questions, and has the verdict that today's scoring gives its completion; that stored questions are \
         those of the suite, and stored results those of the rows; that the list of runs says what their manifests say. That a model really was asked and said this, `earnest run --from RUN` shows by asking again.",
        printer.width(),
        "",
    );
    if !old_rules.is_empty() {
        let left_out = format!("Not scored again, because the suite's rules changed since: {}.", old_rules.join(", "));
        text += &wrap(&left_out, printer.width(), "");
    }
    printer.result(&text)?;
    if damaged == 0 {
        return Ok(Exit::Success);
    }
    let found = if damaged == 1 { "damage was found in one place" } else { "damage was found in several places" };
    Err(CliError::new(Exit::Results, found).help(
        "a damaged run can be deleted (`earnest runs delete`) and repeated (`earnest run --from` first reads its settings)",
    ))
}

/// What is wrong with the results that were kept with a run; another program may have made them otherwise.
fn summary_fault(store: &Store, run: &RunRecord, suite: Option<&dyn Suite>) -> Option<String> {
    let settings = &run.manifest.settings;
    let kept = match Document::kept(store, run) {
        Ok(kept) => kept?,
        Err(error) => return Some(error.to_string()),
    };
    let same =
        |suite: &&dyn Suite| suite.version() == settings.suite_version && settings.earnest == env!("CARGO_PKG_VERSION");
    let today = Document::stored(store, run, suite.filter(same)?).ok()?;
    // As text, in which NaN equals itself.
    let text = |document: &Document| serde_json::to_string(document).unwrap_or_default();
    (text(&kept) != text(&today)).then(|| "the results that were kept are not those of the rows".to_owned())
}
