//! `earnest run`.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use clap::ValueEnum;

use super::args::{MetricArg, RunArgs};
use super::error::CliError;
use super::printer::Printer;
use super::progress::Progress;
use super::{Exit, catalogue, model, settings};
use crate::checkpoint::Checkpoint;
use crate::engine::Engine;
use crate::prompt::Prompter;
use crate::report::{self, Document};
use crate::run::{
    Ended, EngineRecord, FirstPrompt, Host, MANIFEST_FORMAT, Manifest, Plan, Reporter, RunError, RunEvent, RunFolder,
    RunSettings, Runner, SampleLog, Stage, Standing, Status, timestamp,
};
use crate::suite::Suite;

/// The engine that `run` uses.
const ENGINE: &str = "native";

/// Everything about the run that is settled before a weight is loaded.
struct Prepared<'a> {
    suite: &'a dyn Suite,
    plan: Plan,
    checkpoint: &'a Checkpoint,
    prompter: &'a Prompter<'a>,
    settings: RunSettings,
    folder: RunFolder,
}

/// Runs, continues or reports.
pub fn execute(args: &RunArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    settings::check_engine(&args.engine)?;
    if args.limit == Some(0) || args.samples == 0 {
        return Err(CliError::usage("--limit 0 and --samples 0 leave nothing to ask"));
    }
    let choice = catalogue::choose(&args.suite, &args.items)?;
    let plan = Plan { limit: args.limit, samples: args.samples };
    let mut progress = Progress::new(printer, quiet);
    progress.event(&RunEvent::Preparing(Stage::OpeningCheckpoint));
    let checkpoint = model::open(&args.model.model)?;
    let prompter = Prompter::new(&checkpoint, args.model.prompt.into())?;
    let suite = choice.suite(prompter.mode())?;
    let generation =
        settings::generation(&args.generation, args.items.seed, prompter.mode(), model::says(&checkpoint))?;
    let model_files = model::hash_files(&checkpoint, |done, total| {
        progress.event(&RunEvent::Preparing(Stage::HashingFiles { done, total }));
    })?;
    let settings = RunSettings {
        suite: suite.name().to_owned(),
        suite_version: suite.version().to_owned(),
        suite_options: suite.options(),
        limit: args.limit,
        samples: args.samples,
        model_files,
        prompt_mode: prompter.mode(),
        generation,
        engine: ENGINE.to_owned(),
        earnest: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let name = model::record(&args.model.model, &checkpoint).name;
    let mut folder = RunFolder::locate(&args.results, &settings.run_id(&name), args.new);
    folder.lock()?;
    let earlier = folder.manifest()?;
    if let Some(earlier) = &earlier
        && earlier.settings_sha256 != settings.sha256()
    {
        return Err(RunError::OtherSettings { path: folder.path().to_owned() }.into());
    }
    let standing = folder.standing()?;
    let prepared =
        Prepared { suite: suite.as_ref(), plan, checkpoint: &checkpoint, prompter: &prompter, settings, folder };
    let finished = earlier.as_ref().is_some_and(|manifest| manifest.status == Status::Finished);
    let manifest = match earlier {
        Some(manifest) if finished && standing.settled() == plan.len(suite.as_ref()) => {
            progress.event(&RunEvent::Ended);
            drop(progress);
            if !quiet {
                let when = manifest.ended.as_deref().unwrap_or("an earlier session");
                printer.message(&format!("this run was finished at {when}; --new repeats it"));
            }
            manifest
        }
        earlier => {
            let (manifest, ended) = generate(args, &prepared, earlier, &standing, progress)?;
            if ended == Ended::Stopped {
                return Err(interrupted(&prepared)?);
            }
            manifest
        }
    };
    present(args, &prepared, manifest, printer)
}

/// One session with the engine. The manifest says where the run stands at any moment, also after a crash.
fn generate(
    args: &RunArgs,
    prepared: &Prepared<'_>,
    earlier: Option<Manifest>,
    standing: &Standing,
    mut progress: Progress,
) -> Result<(Manifest, Ended), CliError> {
    let folder = &prepared.folder;
    let mut manifest = begin(args, prepared, earlier)?;
    let stop = stop_on_signal()?;
    folder.write_manifest(&manifest)?;
    progress.event(&RunEvent::Preparing(Stage::LoadingWeights));
    let options = model::engine_options(&args.engine);
    let described = model::describe_options(&options);
    let loading = Instant::now();
    let mut engine = model::load(prepared.checkpoint, options)?;
    let load_s = loading.elapsed().as_secs_f64();
    let record = |engine: &dyn Engine| EngineRecord {
        card: engine.card(),
        options: described.clone(),
        load_s,
        statistics: engine.statistics(),
    };
    manifest.engine = Some(record(&engine));
    folder.write_manifest(&manifest)?;
    let run = folder.id();
    let mut log = SampleLog::append(&folder.samples_path(), standing.end)?;
    let runner = Runner {
        run: &run,
        suite: prepared.suite,
        plan: prepared.plan,
        prompter: prepared.prompter,
        generation: &prepared.settings.generation,
        stop: &stop,
    };
    let generating = Instant::now();
    let outcome = runner.run(&mut engine, &mut log, standing, &mut progress);
    drop(progress);
    manifest.generation_s += generating.elapsed().as_secs_f64();
    manifest.engine = Some(record(&engine));
    manifest.ended = Some(timestamp(SystemTime::now()));
    manifest.status = Status::Interrupted;
    let outcome = outcome.and_then(|ended| {
        if ended == Ended::Finished {
            let walk = prepared.plan.walk(prepared.suite);
            let places = walk.map(|planned| ((planned.item.id, planned.sample), planned.index)).collect();
            SampleLog::arrange(&folder.samples_path(), &run, &places)?;
            manifest.status = Status::Finished;
        }
        Ok(ended)
    });
    // The first error counts: on a full disk the manifest can not be written either.
    let written = folder.write_manifest(&manifest);
    let ended = outcome?;
    written?;
    Ok((manifest, ended))
}

/// The manifest at the beginning of a session.
fn begin(args: &RunArgs, prepared: &Prepared<'_>, earlier: Option<Manifest>) -> Result<Manifest, CliError> {
    // Rendered before the weights are loaded, so that a template that fails does so at once.
    let first = prepared.suite.items().next();
    let first_prompt = first
        .map(|item| prepared.prompter.render(&item.segments).map(|rendered| FirstPrompt::new(&item.id, rendered)))
        .transpose()?;
    let now = timestamp(SystemTime::now());
    let fresh = || Manifest {
        format: MANIFEST_FORMAT,
        run: prepared.folder.id(),
        status: Status::Running,
        settings: prepared.settings.clone(),
        settings_sha256: prepared.settings.sha256(),
        model: model::record(&args.model.model, prepared.checkpoint),
        first_prompt,
        engine: None,
        host: Host::probe(),
        started: now,
        ended: None,
        sessions: 0,
        generation_s: 0.0,
    };
    let manifest = earlier.unwrap_or_else(fresh);
    let sessions = manifest.sessions + 1;
    Ok(Manifest { status: Status::Running, host: Host::probe(), sessions, ..manifest })
}

/// The first signal asks the runner to stop, the second ends the process at once.
fn stop_on_signal() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted.code().into());
        }
    })
    .map_err(|error| CliError::new(Exit::Engine, format!("cannot listen for Ctrl-C: {error}")))?;
    Ok(stop)
}

/// What to say after an interruption.
fn interrupted(prepared: &Prepared<'_>) -> Result<CliError, CliError> {
    let settled = prepared.folder.standing()?.settled();
    let planned = prepared.plan.len(prepared.suite);
    let message = format!("interrupted: {settled} of {planned} samples are in {}", prepared.folder.path().display());
    Ok(CliError::new(Exit::Interrupted, message).help("the same command continues the run"))
}

/// Summarises the rows, stores the summary and prints it.
fn present(args: &RunArgs, prepared: &Prepared<'_>, manifest: Manifest, printer: Printer) -> Result<Exit, CliError> {
    let samples = prepared.folder.samples()?;
    let folder = prepared.folder.path().display().to_string();
    let mut document = Document::new(&folder, manifest, prepared.suite, prepared.plan, &samples);
    prepared.folder.write_summary(&document)?;
    if args.json {
        printer.json(&document)?;
    } else {
        let all = args.metric == MetricArg::All;
        let wanted = args.metric.to_possible_value();
        document.grids.retain(|grid| all || wanted.as_ref().is_some_and(|value| value.get_name() == grid.name));
        printer.result(&report::render(&document, printer.width()))?;
    }
    Ok(if document.totals.failed > 0 { Exit::FailedSamples } else { Exit::Success })
}
