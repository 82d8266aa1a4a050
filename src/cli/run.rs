//! `earnest run` and `earnest resume`: which run is worked on.
use std::path::Path;

use super::args::{ResultsArgs, ResumeArgs, RunArgs};
use super::engine_choice::{EngineName, Target, enable_thinking};
use super::error::CliError;
use super::models::HubArgs;
use super::printer::Printer;
use super::report::ReportArgs;
use super::session::{self, Decoding, Job, Questions, Which};
use super::{Exit, built_in, catalogue, report, results};
use crate::prompt::{Mode, ModeRequest};
use crate::run::store::{RunLock, RunRecord, Store};
use crate::run::{Plan, RunError, Status};

/// Runs, continues or reports; with `--from` repeats.
pub fn execute(args: &RunArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    if let Some(name) = &args.from {
        let run = repeated(name, &args.session.results, printer)?;
        let job = repeat(&run, args.model.as_deref(), &args.hub)?;
        let (exit, _) = session::execute(job, Which::Repeat(Box::new(run.manifest)), &args.session, quiet, printer)?;
        return Ok(exit);
    }
    if args.limit == Some(0) || args.samples == 0 {
        return Err(CliError::usage("--limit 0 and --samples 0 leave nothing to ask"));
    }
    // Clap asks for one unless --from is given.
    let Some(suite) = &args.suite else {
        return Err(CliError::usage("name a suite, or a run with --from"));
    };
    let prompts = args.prompt.clone().unwrap_or_default();
    let choice = catalogue::choose(suite, &args.items, &prompts)?;
    let first = asks_built_in(args);
    if first && !quiet {
        printer.message(built_in::NOTICE);
    }
    let limit = args.limit.or_else(|| first.then(|| first_limit(args, suite)).flatten());
    if let Some(limit) = limit.filter(|_| args.limit.is_none() && !quiet) {
        printer.message(&format!(
            "asking the first {limit} items, which go round over tasks and lengths; --limit asks others"
        ));
    }
    let prompt = prompts.mode.unwrap_or_else(|| choice.default_mode());
    let job = Job {
        target: Target::of(args, Some(prompt))?,
        thinking: enable_thinking(args.generation.thinking),
        thinking_text: args.generation.thinking_text.into(),
        prompt,
        questions: Questions::Chosen(choice),
        plan: Plan { limit, samples: args.samples, shard: args.shard },
        decoding: Decoding::Asked { args: args.generation.clone(), seed: args.items.seed },
    };
    let which = if args.new { Which::New } else { Which::Continue };
    let (exit, run) = session::execute(job, which, &args.session, quiet, printer)?;
    if first && !args.session.json {
        follow_up(args, suite, run, quiet, printer)?;
    }
    Ok(exit)
}

/// True if the model inside the program is asked because nothing else was named.
fn asks_built_in(args: &RunArgs) -> bool {
    args.model.is_none() && args.target.engine.is_none_or(|engine| engine == EngineName::Native)
}

/// Items that are a first look at a suite: a minute or two, where all of them would be an hour.
fn first_limit(args: &RunArgs, suite: &str) -> Option<usize> {
    let items = &args.items;
    if items.tasks.is_some() || items.lengths.is_some() || items.per_length.is_some() || args.shard.is_some() {
        return None;
    }
    match suite {
        "nupa" => Some(5300),
        "arithmetic-bench" => Some(1600),
        _ => None,
    }
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
        if results::is_there(&folder.folder)? {
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
    let job = repeat(&run, args.model.as_deref(), &args.hub)?;
    let (exit, _) = session::execute(job, Which::Resume(Box::new(run)), &args.session, quiet, printer)?;
    Ok(exit)
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

/// What a stored run asked.
fn repeat(run: &RunRecord, model: Option<&Path>, hub: &HubArgs) -> Result<Job, CliError> {
    let settings = &run.manifest.settings;
    Ok(Job {
        questions: Questions::Stored(catalogue::stored(settings)?),
        plan: run.manifest.plan(),
        target: Target::stored(settings, &run.manifest.model, model, hub)?,
        thinking: settings.enable_thinking,
        thinking_text: settings.thinking_text,
        prompt: match settings.prompt_mode {
            Mode::Chat => ModeRequest::Chat,
            Mode::Raw => ModeRequest::Raw,
        },
        decoding: Decoding::Stored(settings.generation.clone()),
    })
}
