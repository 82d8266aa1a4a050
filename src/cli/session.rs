//! One session with the engine: finds or begins the run, asks what is missing, reports.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use super::args::{GenerationArgs, SessionArgs};
use super::catalogue::Choice;
use super::error::CliError;
use super::events::Reporters;
use super::printer::Printer;
use super::{Exit, model, results, settings};
use crate::checkpoint::Checkpoint;
use crate::engine::Engine;
use crate::prompt::{ModeRequest, Prompter};
use crate::run::store::{RunLock, RunRecord, Standing, Store};
use crate::run::{
    Ended, EngineRecord, FirstPrompt, Generation, Host, MANIFEST_FORMAT, Manifest, Plan, Reporter, RunError, RunEvent,
    RunSettings, Runner, Stage, Status, timestamp,
};
use crate::stats::{PairedDesign, Rates};
use crate::suite::Suite;

/// The engine that `run` uses.
const ENGINE: &str = "native";

/// What is to be asked of which model.
pub struct Job {
    pub questions: Questions,
    pub plan: Plan,
    pub model: PathBuf,
    pub prompt: ModeRequest,
    pub decoding: Decoding,
}

/// Where the items come from.
pub enum Questions {
    /// As the command line says; some items depend on the prompt mode, which the checkpoint decides.
    Chosen(Choice),
    /// As a manifest says.
    Stored(Box<dyn Suite>),
}

/// How tokens are generated.
pub enum Decoding {
    /// As the command line says, on top of what the checkpoint says.
    Asked { args: GenerationArgs, seed: u64 },
    /// As a manifest says.
    Stored(Generation),
}

/// Which run is worked on.
pub enum Which {
    /// The newest with the same settings, or a new one.
    Continue,
    /// A new one.
    New,
    /// A new one with the settings of this one.
    Repeat(Box<Manifest>),
    /// This one, whose settings must be the same.
    Resume(Box<RunRecord>),
}

/// Everything that is settled before a weight is loaded.
struct Prepared<'a> {
    job: &'a Job,
    suite: &'a dyn Suite,
    checkpoint: &'a Checkpoint,
    prompter: &'a Prompter<'a>,
    settings: RunSettings,
    planned: usize,
}

/// Runs, continues or reports.
pub fn execute(job: Job, which: Which, args: &SessionArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    settings::check_session(args)?;
    let mut reporters = Reporters::new(printer, quiet, args.events.as_deref())?;
    reporters.event(&RunEvent::Preparing(Stage::OpeningCheckpoint));
    let checkpoint = model::open(&job.model)?;
    let prompter = Prompter::new(&checkpoint, job.prompt)?;
    let chosen;
    let suite = match &job.questions {
        Questions::Chosen(choice) => {
            chosen = choice.suite(prompter.mode())?;
            chosen.as_ref()
        }
        Questions::Stored(suite) => suite.as_ref(),
    };
    let settings = settle(&job, suite, &checkpoint, &prompter, &mut reporters)?;
    let planned = job.plan.len(suite);
    let prepared = Prepared { job: &job, suite, checkpoint: &checkpoint, prompter: &prompter, settings, planned };
    let store = results::create(&args.results.folder, printer)?;
    let (lock, name, earlier) = find(&prepared, &store, &which, printer)?;
    let standing = earlier.as_ref().map(|run| store.standing(run)).transpose()?.unwrap_or_default();
    let run = match earlier {
        Some(run) if run.manifest.status == Status::Finished && standing.settled() == planned => {
            reporters.event(&RunEvent::Ended);
            drop(reporters);
            if !quiet {
                let when = run.manifest.ended.as_deref().unwrap_or("an earlier session");
                printer.message(&format!("this run was finished at {when}; --new repeats it"));
            }
            run
        }
        earlier => {
            if !quiet && earlier.is_none() {
                printer.message(&detectable(planned / (job.plan.samples.max(1) as usize)));
            }
            let (run, ended) = generate(args, &prepared, &store, &name, earlier, &standing, reporters)?;
            end(ended, &store, &run, &prepared)?;
            run
        }
    };
    drop(lock);
    let document = results::document(&store, &run)?;
    let failed = document.totals.failed;
    results::present(document, args.json, args.table.metric, printer)?;
    Ok(if failed > 0 { Exit::FailedSamples } else { Exit::Success })
}

fn settle(
    job: &Job,
    suite: &dyn Suite,
    checkpoint: &Checkpoint,
    prompter: &Prompter<'_>,
    reporters: &mut Reporters,
) -> Result<RunSettings, CliError> {
    let generation = match &job.decoding {
        Decoding::Asked { args, seed } => settings::generation(args, *seed, prompter.mode(), model::says(checkpoint))?,
        Decoding::Stored(generation) => generation.clone(),
    };
    let model_files = model::hash_files(checkpoint, |done, total| {
        reporters.event(&RunEvent::Preparing(Stage::HashingFiles { done, total }));
    })?;
    Ok(RunSettings {
        suite: suite.name().to_owned(),
        suite_version: suite.version().to_owned(),
        suite_options: suite.options(),
        limit: job.plan.limit,
        samples: job.plan.samples,
        model_files,
        prompt_mode: prompter.mode(),
        generation,
        engine: ENGINE.to_owned(),
        earnest: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The run to work on and the right to write it: an earlier one, or the name of a new one.
fn find(
    prepared: &Prepared<'_>,
    store: &Store,
    which: &Which,
    printer: Printer,
) -> Result<(RunLock, String, Option<RunRecord>), CliError> {
    let sha256 = prepared.settings.sha256();
    let shard = prepared.job.plan.shard;
    let earlier = match which {
        Which::Resume(run) => {
            if run.manifest.settings_sha256 != sha256 {
                let differences = run.manifest.settings.differences(&prepared.settings).join(", ");
                let message = format!("{} cannot be continued: different now: {differences}", run.manifest.run);
                return Err(CliError::new(Exit::Results, message)
                    .help(format!("`earnest run --from {}` begins a new run with today's", run.manifest.run)));
            }
            Some((**run).clone())
        }
        Which::Continue => store.with_settings(&sha256)?.into_iter().rfind(|run| run.manifest.shard == shard),
        Which::Repeat(manifest) => {
            if manifest.settings_sha256 != sha256 {
                let differences = manifest.settings.differences(&prepared.settings).join(", ");
                printer.warning(&format!("this is no exact repeat of {}: different now: {differences}", manifest.run));
            }
            None
        }
        Which::New => None,
    };
    if let Some(run) = earlier {
        let lock = store.lock(&run.manifest.run)?;
        // Read again: another process may have finished it before the lock was ours.
        let name = run.manifest.run;
        let run = store.exactly(&name)?;
        return Ok((lock, name, run));
    }
    let mut base = prepared.settings.run_id(&model::record(&prepared.job.model, prepared.checkpoint).name);
    if let Some(shard) = shard {
        base = format!("{base}-{}of{}", shard.part, shard.of);
    }
    let (lock, name) = results::free_name(store, &base)?;
    Ok((lock, name, None))
}

/// One session. The manifest says where the run stands at any moment, also after a crash.
fn generate(
    args: &SessionArgs,
    prepared: &Prepared<'_>,
    store: &Store,
    name: &str,
    earlier: Option<RunRecord>,
    standing: &Standing,
    mut reporters: Reporters,
) -> Result<(RunRecord, Ended), CliError> {
    let job = prepared.job;
    let manifest = begin(prepared, name, earlier.as_ref().map(|run| run.manifest.clone()))?;
    let mut run = match earlier {
        Some(run) => RunRecord { manifest, planned: Some(prepared.planned), ..run },
        None => store.begin(&manifest, prepared.planned)?,
    };
    store.update(run.id, &run.manifest, prepared.planned)?;
    reporters.event(&RunEvent::Preparing(Stage::LoadingWeights));
    let options = model::engine_options(&args.engine);
    let described = model::describe_options(&options);
    let loading = Instant::now();
    let mut engine = model::load(prepared.checkpoint, options)?;
    // Not before: until here a signal ends the process at once, as it would any other; nothing is lost yet.
    let stop = stop_on_signal()?;
    let load_s = loading.elapsed().as_secs_f64();
    let record = |engine: &dyn Engine| EngineRecord {
        card: engine.card(),
        options: described.clone(),
        load_s,
        statistics: engine.statistics(),
    };
    run.manifest.engine = Some(record(&engine));
    store.update(run.id, &run.manifest, prepared.planned)?;
    let mut writer = store.writer(&run);
    let runner = Runner {
        run: name,
        suite: prepared.suite,
        plan: job.plan,
        prompter: prepared.prompter,
        generation: &prepared.settings.generation,
        fail_on_error: args.fail_on_error,
        stop: &stop,
    };
    let generating = Instant::now();
    let outcome = runner.run(&mut engine, &mut writer, standing, &mut reporters);
    drop(writer);
    reporters.close();
    let manifest = &mut run.manifest;
    manifest.generation_s += generating.elapsed().as_secs_f64();
    manifest.engine = Some(record(&engine));
    manifest.ended = Some(timestamp(SystemTime::now()));
    manifest.status = if matches!(outcome, Ok(Ended::Finished)) { Status::Finished } else { Status::Interrupted };
    // The first error counts: on a full disk the manifest can not be written either.
    let written = store.update(run.id, &run.manifest, prepared.planned);
    let ended = outcome?;
    written?;
    Ok((run, ended))
}

/// The manifest at the beginning of a session.
fn begin(prepared: &Prepared<'_>, name: &str, earlier: Option<Manifest>) -> Result<Manifest, CliError> {
    // Rendered before the weights are loaded, so that a template that fails does so at once.
    let first = prepared.suite.items().next();
    let first_prompt = first
        .map(|item| prepared.prompter.render(&item.segments).map(|rendered| FirstPrompt::new(&item.id, rendered)))
        .transpose()?;
    let fresh = || Manifest {
        format: MANIFEST_FORMAT,
        run: name.to_owned(),
        status: Status::Running,
        shard: prepared.job.plan.shard,
        settings: prepared.settings.clone(),
        settings_sha256: prepared.settings.sha256(),
        model: model::record(&prepared.job.model, prepared.checkpoint),
        first_prompt,
        engine: None,
        host: Host::probe(),
        started: timestamp(SystemTime::now()),
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

/// What to say of a session that did not finish the run.
fn end(ended: Ended, store: &Store, run: &RunRecord, prepared: &Prepared<'_>) -> Result<(), CliError> {
    let settled = |run| -> Result<usize, RunError> { Ok(store.standing(run)?.settled()) };
    let planned = prepared.planned;
    let help = format!("the same command continues the run, and so does `earnest resume {}`", run.manifest.run);
    match ended {
        Ended::Finished => Ok(()),
        Ended::Stopped => {
            let message =
                format!("interrupted: {} of {planned} samples are in {}", settled(run)?, store.path().display());
            Err(CliError::new(Exit::Interrupted, message).help(help))
        }
        Ended::TooManyFailures { failed } => {
            let message = format!("{failed} of {planned} samples failed, more than --fail-on-error allows");
            let look = format!("`earnest samples {} --failed` shows them; {help}", run.manifest.run);
            Err(CliError::new(Exit::TooManyFailures, message).help(look))
        }
    }
}

/// What a comparison of two runs of so many items can find, said before the time is spent.
fn detectable(items: usize) -> String {
    let design = PairedDesign { discordance: 0.2, cluster_size: 1.0, intracluster: 0.0 };
    match design.detectable_effect(items as f64, Rates::default()) {
        Ok(effect) if effect < design.discordance => format!(
            "{items} items: two models that disagree on 20 % of them are told apart (80 % power, 5 % level) if their \
             accuracies differ by at least {:.1} points",
            100.0 * effect
        ),
        _ => format!(
            "{items} items are too few to tell two models apart that disagree on 20 % of them, whatever their accuracies"
        ),
    }
}
