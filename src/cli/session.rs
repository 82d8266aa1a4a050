//! One session with the engine: finds or begins the run, asks what is missing, reports.
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use super::args::{GenerationArgs, SessionArgs};
use super::catalogue::{Channel, Choice};
use super::engine_choice::{PatienceArgs, Subject, Target};
use super::error::CliError;
use super::events::Reporters;
use super::printer::Printer;
use super::{Exit, results, settings};
use crate::engine::Engine;
use crate::prompt::{ModeRequest, Prompter, SystemPlace};
use crate::run::store::{RunLock, RunRecord, Standing, Store};
use crate::run::{
    Ended, EngineRecord, FileRecord, FirstPrompt, Generation, Host, MANIFEST_FORMAT, Manifest, Plan, Reporter,
    RunError, RunEvent, RunSettings, Runner, Stage, Status, timestamp,
};
use crate::stats::{PairedDesign, Rates};
use crate::suite::{Suite, ThinkingText};

/// What is to be asked of which model.
pub struct Job {
    pub questions: Questions,
    pub plan: Plan,
    pub target: Target,
    /// What the chat template's thinking switch is to be set to.
    pub thinking: Option<bool>,
    /// Whether the scoring sees what the model thought.
    pub thinking_text: ThinkingText,
    pub prompt: ModeRequest,
    pub decoding: Decoding,
}

/// Where the items come from.
pub enum Questions {
    /// As the command line says; some items depend on the prompt mode, which the checkpoint decides.
    Chosen(Box<dyn Choice>),
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
    /// The same for a command that works on several runs and has no `--new`.
    Gather,
    /// A new one.
    New,
    /// A new one with the settings of this one.
    Repeat(Box<Manifest>),
    /// This one, whose settings must be the same.
    Resume(Box<RunRecord>),
}

/// A model that serves several runs: its files are hashed and its weights loaded, or its endpoint reached, at most once, when
/// a run first needs them.
pub struct OpenModel {
    subject: Subject,
    files: Option<Vec<FileRecord>>,
    engine: Option<LoadedEngine>,
}

impl OpenModel {
    /// Opens what a job is to be asked of; loads nothing.
    pub fn open(target: &Target, thinking: Option<bool>, patience: &PatienceArgs) -> Result<Self, CliError> {
        Ok(OpenModel { subject: Subject::open(target, thinking, patience)?, files: None, engine: None })
    }

    /// What a user should know of it before it is asked.
    pub fn warnings(&self) -> Vec<String> {
        self.subject.warnings()
    }
}

/// Weights in memory, or an endpoint that was reached.
struct LoadedEngine {
    engine: Box<dyn Engine>,
    options: serde_json::Value,
    load_s: f64,
}

impl LoadedEngine {
    fn record(&self) -> EngineRecord {
        EngineRecord {
            card: self.engine.card(),
            options: self.options.clone(),
            load_s: self.load_s,
            statistics: self.engine.statistics(),
        }
    }
}

/// Everything that is settled before a weight is loaded.
struct Prepared<'a> {
    job: &'a Job,
    suite: &'a dyn Suite,
    subject: &'a Subject,
    prompter: &'a Prompter<'a>,
    settings: RunSettings,
    planned: usize,
}

/// Runs, continues or reports; also the run's name.
pub fn execute(
    job: Job,
    which: Which,
    args: &SessionArgs,
    quiet: bool,
    printer: Printer,
) -> Result<(Exit, String), CliError> {
    settings::check_session(args)?;
    let mut reporters = Reporters::new(printer, quiet, args.events.as_deref())?;
    reporters.event(&RunEvent::Preparing(Stage::OpeningCheckpoint));
    let mut model = OpenModel::open(&job.target, job.thinking, &args.patience)?;
    for warning in model.warnings() {
        reporters.aside(|| printer.warning(&warning));
    }
    let (store, run) = perform(&job, &mut model, &which, args, quiet, reporters, printer)?;
    let document = results::document(&store, &run)?;
    let failed = document.totals.failed;
    results::present(document, args.json, args.table.metric, printer)?;
    Ok((if failed > 0 { Exit::FailedSamples } else { Exit::Success }, run.manifest.run))
}

/// Runs or continues one run with a model that may already be loaded; an error where the run did not come to its end. A
/// finished run comes back as it is.
pub fn perform(
    job: &Job,
    model: &mut OpenModel,
    which: &Which,
    args: &SessionArgs,
    quiet: bool,
    mut reporters: Reporters,
    printer: Printer,
) -> Result<(Store, RunRecord), CliError> {
    let OpenModel { subject, files, engine } = model;
    let source = subject.source();
    let prompter = Prompter::new(source.as_ref(), job.prompt)?;
    let chosen;
    let suite = match &job.questions {
        Questions::Chosen(choice) => {
            let channel = Channel { mode: prompter.mode(), endpoint: subject.endpoint().is_some() };
            chosen = job.thinking_text.of(choice.suite(channel)?);
            chosen.as_ref()
        }
        Questions::Stored(suite) => suite.as_ref(),
    };
    let settings = settle(job, suite, subject, files, &prompter, &mut reporters)?;
    if !settings.system.is_own() && !quiet {
        reporters.aside(|| printer.message(
            "the chat template takes no system message; its text stands before the first user turn instead, a blank line between",
        ));
    }
    let planned = job.plan.len(suite);
    let prepared = Prepared { job, suite, subject, prompter: &prompter, settings, planned };
    // Not before: a refused command leaves nothing behind.
    let store = reporters.aside(|| results::create(&args.results.folder, printer))?;
    let (lock, name, earlier) = reporters.aside(|| find(&prepared, &store, which, printer))?;
    let standing = earlier.as_ref().map(|run| store.standing(run)).transpose()?.unwrap_or_default();
    let run = match earlier {
        Some(run) if run.manifest.status == Status::Finished && standing.settled() == planned => {
            reporters.event(&RunEvent::Ended(Some(Ended::Finished)));
            drop(reporters);
            if !quiet {
                let when = run.manifest.ended.as_deref().unwrap_or("an earlier session");
                let next = match which {
                    Which::Gather => format!("{} is used", run.manifest.run),
                    _ => "--new repeats it".to_owned(),
                };
                printer.message(&format!("this run was finished at {when}; {next}"));
            }
            run
        }
        earlier => {
            if !quiet && earlier.is_none() {
                let sentence = detectable(suite, &job.plan);
                reporters.aside(|| printer.message(&sentence));
            }
            let (run, ended) =
                generate(args, &prepared, engine, &store, &name, earlier, &standing, reporters, quiet, printer)?;
            end(ended, &store, &run, &prepared)?;
            run
        }
    };
    drop(lock);
    Ok((store, run))
}

fn settle(
    job: &Job,
    suite: &dyn Suite,
    subject: &Subject,
    files: &mut Option<Vec<FileRecord>>,
    prompter: &Prompter<'_>,
    reporters: &mut Reporters,
) -> Result<RunSettings, CliError> {
    let generation = match &job.decoding {
        Decoding::Asked { args, seed } => {
            settings::generation(args, *seed, prompter.mode(), subject.says(args.recommended)?)?
        }
        Decoding::Stored(generation) => generation.clone(),
    };
    let model_files = match files {
        Some(files) => files.clone(),
        None => files
            .insert(subject.hash_files(|done, total| {
                reporters.event(&RunEvent::Preparing(Stage::HashingFiles { done, total }));
            })?)
            .clone(),
    };
    Ok(RunSettings {
        suite: suite.name().to_owned(),
        suite_version: suite.version().to_owned(),
        suite_options: suite.options(),
        limit: job.plan.limit,
        samples: job.plan.samples,
        model_files,
        weights: subject.weights(),
        prompt_mode: prompter.mode(),
        system: if asks_system(suite) { prompter.system() } else { SystemPlace::Own },
        generation,
        enable_thinking: subject.enable_thinking(),
        thinking_text: job.thinking_text,
        endpoint: subject.endpoint(),
        engine: subject.engine().to_owned(),
        earnest: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// True if the suite's prompts have a system message; its items are alike in that.
fn asks_system(suite: &dyn Suite) -> bool {
    suite.items().next().is_some_and(|item| item.segments.system.is_some())
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
        Which::Continue | Which::Gather => {
            let equal = store.with_settings(&sha256)?;
            if shard.is_none() {
                check_parts(&equal, which, printer)?;
            }
            equal.into_iter().rfind(|run| run.manifest.shard == shard)
        }
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
    let mut base = prepared.settings.run_id(&prepared.subject.record().name);
    if let Some(shard) = shard {
        base = format!("{base}-{}of{}", shard.part, shard.of);
    }
    let (lock, name) = results::free_name(store, &base)?;
    Ok((lock, name, None))
}

/// What is asked in parts need not be asked as a whole: refuses where all of it is, warns where some of it is.
fn check_parts(equal: &[RunRecord], which: &Which, printer: Printer) -> Result<(), CliError> {
    let finished = |run: &&RunRecord| run.manifest.status == Status::Finished;
    if equal.iter().filter(finished).any(|run| run.manifest.shard.is_none()) {
        return Ok(());
    }
    let parts: BTreeSet<(usize, usize)> = equal
        .iter()
        .filter(finished)
        .filter_map(|run| run.manifest.shard)
        .map(|shard| (shard.of, shard.part))
        .collect();
    let whole = parts.iter().map(|(of, _)| *of).find(|&of| (1..=of).all(|part| parts.contains(&(of, part))));
    if let Some(of) = whole {
        let new = if matches!(which, Which::Continue) { "; --new asks everything again" } else { "" };
        return Err(CliError::usage(format!("all {of} parts of this run are finished, and not joined"))
            .help(format!("`earnest merge` joins them, then this command shows the whole run{new}")));
    }
    if !parts.is_empty() {
        let names: Vec<String> = parts.iter().map(|(of, part)| format!("{part}/{of}")).collect();
        printer.warning(&format!(
            "finished parts of this run are here ({}); their items are asked again, because this command asks all. --shard asks \
             the other parts",
            names.join(", ")
        ));
    }
    Ok(())
}

/// One session. The manifest says where the run stands at any moment, also after a crash.
#[expect(clippy::too_many_arguments, reason = "what a session needs, each of another owner")]
fn generate(
    args: &SessionArgs,
    prepared: &Prepared<'_>,
    engine: &mut Option<LoadedEngine>,
    store: &Store,
    name: &str,
    earlier: Option<RunRecord>,
    standing: &Standing,
    mut reporters: Reporters,
    quiet: bool,
    printer: Printer,
) -> Result<(RunRecord, Ended), CliError> {
    let job = prepared.job;
    let manifest = begin(prepared, name, earlier.as_ref().map(|run| run.manifest.clone()))?;
    // Before the run has a row: a model that cannot be loaded, or an engine that does not start, leaves no empty run.
    let engine = match engine {
        Some(engine) => engine,
        None => {
            reporters.event(&RunEvent::Preparing(Stage::LoadingWeights));
            let loaded = engine.insert(load(args, prepared.subject)?);
            for note in prepared.subject.notes() {
                reporters.aside(|| printer.warning(&note));
            }
            if !quiet && prepared.subject.on_gpu() {
                let devices = loaded.engine.card().devices.join("; ");
                reporters.aside(|| printer.message(&format!("computing on {devices}")));
            }
            loaded
        }
    };
    let mut run = match earlier {
        Some(run) => RunRecord { manifest, planned: Some(prepared.planned), ..run },
        None => store.begin(&manifest, prepared.planned)?,
    };
    store.update(run.id, &run.manifest, prepared.planned)?;
    // Not before: until here a signal ends the process at once, as it would any other; nothing is lost yet.
    let stop = stop_on_signal()?;
    run.manifest.engine = Some(engine.record());
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
    let outcome = runner.run(engine.engine.as_mut(), &mut writer, standing, &mut reporters);
    drop(writer);
    reporters.close();
    let manifest = &mut run.manifest;
    manifest.generation_s += generating.elapsed().as_secs_f64();
    manifest.engine = Some(engine.record());
    manifest.ended = Some(timestamp(SystemTime::now()));
    manifest.status = if matches!(outcome, Ok(Ended::Finished)) { Status::Finished } else { Status::Interrupted };
    // The first error counts: on a full disk the manifest can not be written either.
    let written = store.update(run.id, &run.manifest, prepared.planned);
    let ended = outcome?;
    written?;
    Ok((run, ended))
}

fn load(args: &SessionArgs, subject: &Subject) -> Result<LoadedEngine, CliError> {
    let loading = Instant::now();
    let (engine, options) = subject.load(&args.engine, &args.patience)?;
    Ok(LoadedEngine { engine, options, load_s: loading.elapsed().as_secs_f64() })
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
        model: prepared.subject.record(),
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

/// The first signal asks the runner to stop, the second ends the process at once. One handler serves all runs of the
/// process: a wish to stop is meant for the runs after this one too.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>, CliError> {
    static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(stop) = STOP.get() {
        return Ok(Arc::clone(stop));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted.code().into());
        }
    })
    .map_err(|error| CliError::new(Exit::Engine, format!("cannot listen for Ctrl-C: {error}")))?;
    Ok(Arc::clone(STOP.get_or_init(|| stop)))
}

/// What to say of a session that did not finish the run.
fn end(ended: Ended, store: &Store, run: &RunRecord, prepared: &Prepared<'_>) -> Result<(), CliError> {
    let settled = |run| -> Result<usize, RunError> { Ok(store.standing(run)?.settled()) };
    let planned = prepared.planned;
    let name = &run.manifest.run;
    let help = format!("the same command continues the run, and so does `earnest resume {name}`");
    match ended {
        Ended::Finished => Ok(()),
        Ended::Stopped => {
            let message =
                format!("interrupted: {} of {planned} samples are in {}", settled(run)?, store.path().display());
            Err(CliError::new(Exit::Interrupted, message).help(help))
        }
        Ended::TooManyFailures { failed } => {
            let message =
                format!("{failed} of {planned} samples failed in this session, more than --fail-on-error allows");
            let look = format!(
                "`earnest samples {name} --failed` shows them; the same command, and `earnest resume {name}`, go on behind those \
                 that failed for good"
            );
            Err(CliError::new(Exit::TooManyFailures, message).help(look))
        }
    }
}

/// What a comparison of two runs of these items can find, said before the time is spent. Items of a cluster are alike, nobody
/// knows beforehand how much: both ends are said.
fn detectable(suite: &dyn Suite, plan: &Plan) -> String {
    let mut sizes: HashMap<String, usize> = HashMap::new();
    for (place, item) in suite.items().take(plan.items(suite)).enumerate() {
        if plan.shard.is_none_or(|shard| shard.has(place)) {
            *sizes.entry(item.cluster).or_default() += 1;
        }
    }
    let items: usize = sizes.values().sum();
    let clusters = sizes.len();
    // Large clusters count for more: a variance has the sum of their squares.
    let cluster_size = sizes.values().map(|size| size * size).sum::<usize>() as f64 / items.max(1) as f64;
    let effect = |intracluster| {
        let design = PairedDesign { discordance: 0.2, cluster_size, intracluster };
        let effect = design.detectable_effect(items as f64, Rates::default()).ok();
        effect.filter(|&effect| effect < design.discordance).map(|effect| format!("{:.1} points", 100.0 * effect))
    };
    let of_clusters = if clusters < items { format!(" in {clusters} clusters") } else { String::new() };
    let Some(apart) = effect(0.0) else {
        return format!(
            "{items} items{of_clusters} are too few to tell two models apart that disagree on 20 % of them, whatever their \
             accuracies"
        );
    };
    let alike = match effect(1.0) {
        _ if clusters == items => String::new(),
        Some(alike) => format!(", or {alike} should items of a cluster differ together"),
        None => ", and not at all should items of a cluster differ together".to_owned(),
    };
    format!(
        "{items} items{of_clusters}: two models that disagree on 20 % of them are told apart (80 % power, 5 % level) if their \
         accuracies differ by at least {apart}{alike}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::arithmetic_bench::{ArithmeticBench, Options};

    #[test]
    fn clusters_are_part_of_what_is_said_to_be_detectable() {
        let options = |lengths: &str, per_length| Options {
            tasks: vec!["add".parse().unwrap()],
            lengths: lengths.parse().unwrap(),
            per_length,
            ..Options::default()
        };
        let said = |options, limit| {
            detectable(&ArithmeticBench::new(options).unwrap(), &Plan { limit, samples: 3, shard: None })
        };
        // A cluster is a task at a length. Each item its own: Connor's formula, by hand.
        let own = said(options("1-100", 1), None);
        assert!(own.starts_with("100 items: two models") && own.contains("at least 12.4 points"), "{own}");
        let few = said(options("11-15", 100), Some(400));
        assert!(few.starts_with("400 items in 5 clusters: ") && few.contains(", and not at all should"), "{few}");
        let many = said(options("1-100", 4), None);
        assert!(many.starts_with("400 items in 100 clusters: ") && many.contains("points, or "), "{many}");
        assert!(said(options("1-2", 2), None).starts_with("4 items in 2 clusters are too few"));
    }
}
