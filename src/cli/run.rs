//! `earnest run` and `earnest resume`: which run is worked on.
use std::path::Path;

use super::args::{ResultsArgs, ResumeArgs, RunArgs, SessionArgs};
use super::catalogue::{self, AskedSuite};
use super::engine_choice::{EngineName, enable_thinking, model_source};
use super::error::CliError;
use super::events::Reporters;
use super::interrupt::stop_flag;
use super::models::HubArgs;
use super::printer::Printer;
use super::report::ReportArgs;
use super::{Exit, report, results};
use earnest_eval::evaluate::{Decoding, Evaluated, EvaluationSettings, Questions, RunChoice, evaluate};
use earnest_eval::model::ModelSource;
use earnest_eval::run::store::{RunLock, RunRecord, Store};
use earnest_eval::run::{Plan, RunError, Status};

/// The notice of a run that asks the built-in model because no other was named.
const NOTICE: &str = "no --model is named: asking earnest-abacus-1m, the one inside this program. It adds, subtracts, compares, \
                      measures and copies whole numbers of up to 6 digits and knows nothing else: word problems and other \
                      representations are at the floor";

/// Runs, continues or reports; with `--from` repeats.
pub fn execute(args: &RunArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &args.from.run {
        if let Some(suite) = &args.suite {
            let message = format!("--from repeats a run with its own suite and options, not {}", suite.name);
            return Err(CliError::usage(message).help(format!("earnest run --from {name}")));
        }
        let run = repeated(name, &args.session.results, printer)?;
        let settings = repeat(&run, args.model.as_deref(), &args.hub, &args.session)?;
        let settings = EvaluationSettings { run: RunChoice::Repeat(Box::new(run.manifest)), ..settings };
        return Ok(evaluate_and_show(&settings, &args.session, quiet, printer)?.0);
    }
    if args.limit == Some(0) || args.samples == 0 {
        return Err(CliError::usage("--limit 0 and --samples 0 leave nothing to ask"));
    }
    let Some(AskedSuite { name: suite, options }) = &args.suite else {
        return Err(CliError::usage("name a SUITE, or a run with --from")
            .help(format!("the suites are {}", catalogue::names().join(", "))));
    };
    let prompts = args.prompt.clone().unwrap_or_default();
    let chosen = catalogue::choose(suite, options, args.seed.seed, &prompts)?;
    let first = asks_built_in(args);
    if first && !quiet {
        printer.message(NOTICE);
    }
    let look = || catalogue::first_look(suite, options).filter(|_| first && args.shard.is_none());
    let limit = args.limit.or_else(look);
    if let Some(limit) = limit.filter(|_| args.limit.is_none() && !quiet) {
        printer.message(&format!(
            "asking the first {limit} items, which go round over tasks and lengths; --limit asks others"
        ));
    }
    let prompt = prompts.mode.unwrap_or_else(|| chosen.default_mode());
    let settings = EvaluationSettings {
        model: model_source(args, Some(prompt))?,
        thinking: enable_thinking(args.generation.thinking),
        thinking_text: args.generation.thinking_text.into(),
        prompt,
        questions: Questions::Chosen(chosen.choice),
        plan: Plan { limit, samples: args.samples, shard: args.shard },
        decoding: Decoding::Asked(args.generation.settings(args.seed.seed)),
        results: args.session.results.folder.clone(),
        run: if args.new { RunChoice::New } else { RunChoice::Continue },
        engine: args.session.engine.settings()?,
        traffic: args.session.patience.settings(),
        fail_on_error: args.session.fail_on_error,
        stop: stop_flag(),
    };
    let (exit, run) = evaluate_and_show(&settings, &args.session, quiet, printer)?;
    if first && !args.session.json {
        follow_up(args, suite, run, quiet, printer)?;
    }
    Ok(exit)
}

/// True if the model inside the program is asked because nothing else was named.
fn asks_built_in(args: &RunArgs) -> bool {
    args.model.is_none() && args.target.engine.is_none_or(|engine| engine == EngineName::Native)
}

/// After a first look: the page, and what to do next.
fn follow_up(args: &RunArgs, suite: &str, run: String, quiet: bool, printer: Printer) -> Result<(), CliError> {
    let results = args.session.results.folder.clone();
    let output = results::page(&results, &run);
    let written = report::write(&ReportArgs { runs: vec![run], output: output.clone(), svg: None, results })?;
    if quiet {
        return Ok(());
    }
    written.iter().for_each(|line| printer.message(line));
    printer.message(&format!(
        "next: open {}, then ask a model of yours: earnest run {suite} --model MODEL (`earnest models list` names some)",
        output.display()
    ));
    Ok(())
}

/// The run that `--from` names: of the folder before the last `/`, or of --results, or, so that a run can be repeated into a
/// folder of its own, of the usual results folder.
fn repeated(name: &str, results: &ResultsArgs, printer: Printer) -> Result<RunRecord, CliError> {
    if let Some((folder, name)) = name.rsplit_once(['/', std::path::MAIN_SEPARATOR]) {
        let folder = if folder.is_empty() { "/" } else { folder };
        return Ok(results::open(&ResultsArgs { folder: folder.into() }, printer)?.run(name)?);
    }
    let usual = ResultsArgs::usual();
    if usual.folder == results.folder {
        return Ok(results::open(results, printer)?.run(name)?);
    }
    for folder in [results, &usual] {
        if results::exist(&folder.folder)? {
            match results::open(folder, printer)?.run(name) {
                Err(RunError::NoRun { .. }) => {}
                found => return Ok(found?),
            }
        }
    }
    let message = format!("there is no run {name} in {} or {}", results.folder.display(), usual.folder.display());
    Err(CliError::usage(message).help("name the run's folder too: --from FOLDER/RUN"))
}

/// Continues a run from its manifest.
pub fn resume(args: &ResumeArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.session.results, printer)?;
    let run = match &args.run {
        Some(name) => store.run(name)?,
        None => match newest_unfinished(&store)? {
            Some(run) => run,
            None => {
                if !quiet {
                    printer.message("nothing to resume: every run is finished, or being worked on");
                }
                return Ok(Exit::Success);
            }
        },
    };
    if run.manifest.settings.imported() {
        return Err(CliError::usage(format!("{} was imported: there is nothing to ask", run.manifest.run)));
    }
    let settings = repeat(&run, args.model.as_deref(), &args.hub, &args.session)?;
    let settings = EvaluationSettings { run: RunChoice::Resume(Box::new(run)), ..settings };
    Ok(evaluate_and_show(&settings, &args.session, quiet, printer)?.0)
}

fn newest_unfinished(store: &Store) -> Result<Option<RunRecord>, CliError> {
    let mut newest = None;
    for run in store.runs()? {
        let open = run.manifest.status != Status::Finished && !run.manifest.settings.imported();
        if open && !RunLock::is_taken(store.results(), &run.manifest.run)? {
            newest = Some(run);
        }
    }
    Ok(newest)
}

/// The settings of a stored run's evaluation.
fn repeat(
    run: &RunRecord,
    model: Option<&Path>,
    hub: &HubArgs,
    session: &SessionArgs,
) -> Result<EvaluationSettings, CliError> {
    let settings = &run.manifest.settings;
    let model = ModelSource::stored(settings, &run.manifest.model, model, &hub.settings())?;
    Ok(EvaluationSettings {
        plan: run.manifest.plan(),
        thinking: settings.enable_thinking,
        thinking_text: settings.thinking_text,
        prompt: settings.prompt_mode.into(),
        decoding: Decoding::Stored(settings.generation.clone()),
        engine: session.engine.settings()?,
        traffic: session.patience.settings(),
        fail_on_error: session.fail_on_error,
        stop: stop_flag(),
        ..EvaluationSettings::new(catalogue::stored(settings)?, model, &session.results.folder)
    })
}

/// Evaluates, with progress, and prints the run's document; also the run's name.
fn evaluate_and_show(
    settings: &EvaluationSettings,
    session: &SessionArgs,
    quiet: bool,
    printer: Printer,
) -> Result<(Exit, String), CliError> {
    let mut reporters = Reporters::new(printer, quiet, session.events.as_deref())?;
    let evaluated = evaluate(settings, &mut reporters);
    // The progress is out of the way of whatever is printed next.
    drop(reporters);
    let Evaluated { store, run } = evaluated?;
    let document = results::document(&store, &run)?;
    let failed = document.totals.failed;
    results::present(document, session.json, session.table.metric.as_deref(), printer)?;
    Ok((if failed > 0 { Exit::FailedSamples } else { Exit::Success }, run.manifest.run))
}
