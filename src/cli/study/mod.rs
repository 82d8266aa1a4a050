//! `earnest study`.

mod lines;
mod live;
mod reasons;
mod screen;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;

use super::args::{EngineArgs, ResultsArgs};
use super::error::CliError;
use super::events::Reporters;
use super::interrupt::stop_flag;
use super::models::HubArgs;
use super::offered;
use super::output::{self, output_file};
use super::printer::Printer;
use super::reproduce::device::measured_rate;
use super::sandbox_args::ConfinementArgs;
use super::values::counted;
use super::{Exit, report, results};
use earnest_eval::evaluate::Questions;
use earnest_eval::prompt::Prompter;
use earnest_eval::study::{
    Decision, Estimate, PlannedRun, RunEnd, Sessions, StudyDefinition, StudyOutcome, StudyPlan, StudySettings, Watcher,
};
use earnest_eval::{model, study};
use earnest_report::page::ReportRun;
use earnest_report::study::{MixedModel, StudyResults};
use earnest_results::{Rate, Shard, StoredRun};
use earnest_tasks::suite::registry::Channel;

pub(super) use lines::Lines;
use live::LiveTable;
use reasons::{Reasons, by_text};
pub(super) use screen::plan as cost_table;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest study study.toml --dry-run        the runs in their order, with tokens and time
  earnest study study.toml                  runs what is missing, compares, writes a report
  earnest study study.toml --shard 1/4      one of four parts of every run; `earnest merge` joins them

Runs are named after their settings: the same command continues an interrupted study and uses finished runs, also those \
of `earnest run`. docs/studies.md describes the file.")]
pub struct StudyArgs {
    /// The study file (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Print the runs in their order with an estimate of their cost, and stop
    #[arg(long)]
    pub dry_run: bool,

    /// Measure the rate of models without earlier runs in the results folder, for the estimate; loads each of them
    #[arg(long)]
    pub measure: bool,

    /// Part of every run to execute, e.g. 1/4; `earnest merge` joins the parts, then the study compares
    #[arg(long, value_name = "I/N", help_heading = "Items")]
    pub shard: Option<Shard>,

    #[command(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    pub hub: HubArgs,

    #[command(flatten)]
    pub confinement: ConfinementArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Largest fraction of a run's samples that may fail in this session before the run stops
    #[arg(long, value_name = "FRACTION", help_heading = "Results")]
    pub fail_on_error: Option<f64>,

    /// The HTML report [default: NAME.html in the results folder]
    #[arg(long, short, value_name = "FILE", help_heading = "Results", value_parser = output_file())]
    pub output: Option<PathBuf>,

    /// Print one JSON document instead of the tables
    #[arg(long, help_heading = "Results")]
    pub json: bool,
}

/// Checks, estimates, executes and analyses a study.
pub fn execute(args: &StudyArgs, printer: Printer) -> Result<Exit, CliError> {
    // Said once, not of every model.
    model::checked_name(&args.hub.allow_config)?;
    let definition = StudyDefinition::read(&args.file, &args.engine.settings()?)?;
    let settings = StudySettings {
        results: args.results.folder.clone(),
        hub: args.hub.settings(),
        shard: args.shard,
        fail_on_error: args.fail_on_error,
        host: args.confinement.host(),
        stop: stop_flag(),
    };
    let mut plan = StudyPlan::new(definition, settings)?;
    // The files that the study names have been read now.
    output::check(args.output.as_deref())?;
    let mut sessions = Sessions::default();
    let mut reporters = Reporters::on_terminal(printer);
    plan.ask_alike(&mut sessions, &mut reporters);
    let estimate = Estimate::new(&plan, &mut sessions, &mut reporters);
    drop(reporters);
    let mut estimate = estimate?;
    if args.measure {
        measure_missing(&plan, &mut estimate, printer)?;
    }
    if args.dry_run {
        match args.json {
            true => printer.json(&estimate)?,
            false => printer.result(&screen::plan(&estimate, printer.width()))?,
        }
        return Ok(Exit::Success);
    }
    let mut said = Reasons::default();
    printer.message(&screen::plan(&estimate, printer.known_width().unwrap_or(usize::MAX)));
    // With --quiet the plan is not shown, so that its reasons are still unsaid.
    if !printer.is_quiet() {
        said = Reasons::of(&estimate);
    }
    let outcome = if !printer.is_quiet() && std::io::stderr().is_terminal() {
        run(&plan, sessions, &mut LiveTable::new(printer, &plan, said))
    } else {
        let label = |plan: &StudyPlan, run: PlannedRun| plan.label(run);
        run(&plan, sessions, &mut Lines::new(printer, Box::new(label)).with_results(said))
    };
    finish(args, &plan, outcome, printer)
}

fn run(plan: &StudyPlan, sessions: Sessions, watcher: &mut dyn Watcher) -> StudyOutcome {
    study::execute(plan, sessions, &mut |_, _, _| Ok(Decision::CONTINUE), watcher)
}

/// Measures the rates of the models that no earlier run tells.
///
/// # Errors
/// An interruption; a model that cannot be measured is warned of.
pub(super) fn measure_missing(plan: &StudyPlan, estimate: &mut Estimate, printer: Printer) -> Result<(), CliError> {
    for run in estimate.without_rate() {
        match measure(plan, run, printer) {
            Ok(Some(rate)) => estimate.set_rate(run.model, &rate),
            Ok(None) => {}
            Err(error) if error.exit == Exit::Interrupted => return Err(error),
            Err(error) => printer.warning(&format!("{}: {error}", plan.model(run).name)),
        }
    }
    Ok(())
}

/// Measures the rate of a native model; none for others.
fn measure(plan: &StudyPlan, run: PlannedRun, printer: Printer) -> Result<Option<Rate>, CliError> {
    let Some(located) = plan.native(run) else { return Ok(None) };
    let checkpoint = model::open(located)?;
    let settings = plan.evaluation(run)?;
    let prompter = Prompter::new(&checkpoint, settings.prompt)?;
    let Questions::Chosen(choice) = &settings.questions else { return Ok(None) };
    let suite = choice.suite(Channel::local(prompter.mode()))?;
    Ok(Some(measured_rate(&checkpoint, &settings.engine, &prompter, suite.items.as_ref(), printer)?))
}

/// Analyses and prints the finished runs; the exit code is that of the first failure.
fn finish(args: &StudyArgs, plan: &StudyPlan, mut outcome: StudyOutcome, printer: Printer) -> Result<Exit, CliError> {
    let finished = outcome.finished().count();
    if let Some(ended) = ended(plan, &mut outcome) {
        printer.message(&format!("finished: {finished} of {}", counted(plan.runs.len(), "run")));
        return Err(ended);
    }
    let folder = &plan.settings.results;
    let store = if finished > 0 { Some(results::open(folder, printer)?) } else { None };
    let mut results = StudyResults::new(plan, &outcome, store.as_ref())?;
    let written = match plan.settings.shard {
        None if finished > 0 => {
            let output = args.output.clone().unwrap_or_else(|| results::new_page(folder, &plan.definition.name));
            Some(write_report(plan, &outcome, &output).map(|lines| (output, lines)))
        }
        _ => None,
    };
    if let Some(Ok((output, _))) = &written {
        results.report = Some(output.display().to_string());
    }
    match args.json {
        true => printer.json(&results)?,
        false => printer.result(&screen::results(&results, plan.settings.shard, printer.width()))?,
    }
    if let Some((_, lines)) = written.transpose()? {
        lines.iter().for_each(|line| printer.message(line));
    }
    if let Some(error) = failure(plan, outcome, printer) {
        return Err(error);
    }
    Ok(exit(&results, printer))
}

/// The exit code of a study whose runs are finished, with a sentence for all that it lacks. A model that the answers allow no estimate of
/// is an outcome; one that cannot be fitted at all is a failure.
fn exit(results: &StudyResults, printer: Printer) -> Exit {
    let mut exit = Exit::Success;
    let unanswered: usize = results.runs.iter().filter_map(|run| run.totals).map(|totals| totals.failed).sum();
    if unanswered > 0 {
        let (have, them) = if unanswered == 1 { ("has", "it") } else { ("have", "them") };
        printer.warning(&offered::here(&format!(
            "{} {have} no answer, so the exit code is 1; `earnest samples RUN --wrong` shows {them}, and the same command asks again",
            counted(unanswered, "sample")
        )));
        exit = Exit::FailedSamples;
    }
    for model in &results.mixed_models {
        let formula = &model.formula;
        match &model.outcome {
            MixedModel::Impossible { problem } => {
                printer
                    .warning(&format!("the mixed model {formula} cannot be fitted, so the exit code is 1: {problem}"));
                exit = Exit::FailedSamples;
            }
            found if !found.has_estimate() => {
                printer.remark(&format!("note: the mixed model {formula} has no estimate; the screen says why"));
            }
            _ => {}
        }
    }
    exit
}

/// The error that ended a study before its last run.
pub(super) fn ended(plan: &StudyPlan, outcome: &mut StudyOutcome) -> Option<CliError> {
    if let Some(error) = outcome.ended_by.take() {
        return Some(error.into());
    }
    let left = outcome.runs.iter().any(|(_, end)| matches!(end, RunEnd::NotReached));
    (left && plan.settings.stop.load(Ordering::Relaxed)).then(|| {
        CliError::new(Exit::Interrupted, "interrupted between two runs").help("the same command continues the study")
    })
}

/// The error of an ended study with failed runs, whose reasons were said when they failed. It has the exit code of the first, and its next
/// step if all have the same; others are printed before.
fn failure(plan: &StudyPlan, outcome: StudyOutcome, printer: Printer) -> Option<CliError> {
    let (all, finished) = (outcome.runs.len(), outcome.finished().count());
    let failures = outcome.runs.into_iter().filter_map(|(run, end)| match end {
        RunEnd::Failed(error) => Some((run, CliError::from(error))),
        _ => None,
    });
    let failures: Vec<(PlannedRun, CliError)> = failures.collect();
    let (_, first) = failures.first()?;
    let same = failures.iter().all(|(_, error)| error.help == first.help);
    if !same {
        let helps =
            failures.iter().filter_map(|(run, error)| Some((plan.model(*run).name.as_str(), error.help.as_deref()?)));
        by_text(helps, ": ").iter().for_each(|help| printer.remark(help));
    }
    let help = first.help.clone().filter(|_| same);
    let help = help.unwrap_or_else(|| "the same command runs them again and uses the finished ones".to_owned());
    Some(CliError::new(first.exit, format!("{} of {} did not finish", all - finished, counted(all, "run"))).help(help))
}

/// Writes one page over all finished runs, under their names in the study.
fn write_report(plan: &StudyPlan, outcome: &StudyOutcome, output: &Path) -> Result<Vec<String>, CliError> {
    let mut runs: Vec<ReportRun> = Vec::new();
    for (planned, record) in outcome.finished() {
        let run = ReportRun::of(&StoredRun::open(&plan.settings.results, &record.manifest.run)?)?;
        runs.push(ReportRun { label: plan.label(planned), ..run });
    }
    report::write_runs(runs, output, None)
}
