//! `earnest run` and `earnest resume`.
use earnest_results::suites::LocalHost;
use earnest_results::{ModelRecord, Origin, Plan, Reporter, RunEvent, RunNotice, RunSettings, Shard, Stage, Status};
use std::path::Path;

use super::args::{DeviceList, ResumeArgs, RunArgs, SessionArgs};
use super::catalogue::{self, SuiteCommand};
use super::devices;
use super::error::CliError;
use super::events::Reporters;
use super::interrupt::stop_flag;
use super::models::HubArgs;
use super::printer::Printer;
use super::results_folder::{self, default_results};
use super::run_part::PartSettings;
use super::{Exit, merge, report, results};
use earnest_eval::evaluate::{Decoding, Evaluated, EvaluationSettings, ModelSession, Questions, RunChoice, evaluate};
use earnest_eval::model::{DeviceChoice, ModelSource};
use earnest_models::hub::HubSettings;
use earnest_results::store::{RunLock, RunRecord, Store};

/// Begins, continues or reports a run.
pub fn execute(args: &RunArgs, printer: Printer) -> Result<Exit, CliError> {
    if let Some((option, _)) =
        [("--limit", args.limit == Some(0)), ("--samples", args.samples == 0)].into_iter().find(|none| none.1)
    {
        return Err(CliError::usage(format!("{option} 0 leaves nothing to ask")));
    }
    let Some(SuiteCommand { name: suite, options }) = &args.suite else {
        return Err(CliError::usage("name a SUITE, or a run with --from")
            .help(format!("the suites are {}, or a file of questions", catalogue::names().join(", "))));
    };
    catalogue::check_table(suite, args.session.table.metric.as_deref())?;
    let prompts = args.prompt.clone().unwrap_or_default();
    let chosen = catalogue::choose_on(&args.session.confinement.host(), suite, options, args.seed.seed, &prompts)?;
    let prompt = prompts.mode.unwrap_or_else(|| chosen.default_mode());
    let built_in = args.uses_built_in();
    let mut notices: Vec<RunNotice> = built_in.then_some(RunNotice::BuiltInModel).into_iter().collect();
    let first_look = || catalogue::first_look(suite, options).filter(|_| built_in && args.shard.is_none());
    let limit = args.limit.or_else(first_look);
    if let Some(limit) = limit.filter(|_| args.limit.is_none()) {
        notices.push(RunNotice::FirstItems { limit });
    }
    for note in chosen.choice.notes() {
        printer.remark(&note);
    }
    let settings = EvaluationSettings {
        model: args.model_source(prompt)?,
        thinking: args.generation.thinking.enable_thinking(),
        thinking_text: args.generation.thinking_text,
        prompt,
        questions: Questions::Chosen(chosen.choice),
        plan: Plan { limit, samples: args.samples, shard: args.shard },
        until: args.until.clone(),
        decoding: Decoding::Asked(args.generation.settings(args.seed.seed)),
        results: args.session.results.folder.clone(),
        run: if args.new { RunChoice::New } else { RunChoice::Continue },
        engine: args.session.engine.first_settings()?,
        traffic: args.session.traffic.settings(),
        fail_on_error: args.session.fail_on_error,
        stop: stop_flag(),
    };
    if let Some(DeviceList(devices)) = args.session.engine.devices.as_ref().filter(|list| list.0.len() > 1) {
        return evaluate_on_devices(devices, &settings, args, &notices, printer);
    }
    let end = Ending { built_in, beside: None, page: args.shard.is_none(), notices };
    evaluate_and_show(&settings, &args.session, end, printer)
}

/// Evaluates with one process per device, joins their parts and prints the run's document.
fn evaluate_on_devices(
    devices: &[DeviceChoice],
    settings: &EvaluationSettings,
    args: &RunArgs,
    notices: &[RunNotice],
    printer: Printer,
) -> Result<Exit, CliError> {
    let given = [
        ("--shard", args.shard.is_some()),
        ("--until", args.until.is_some()),
        ("--new", args.new),
        ("--events", args.session.events.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return Err(CliError::usage(format!(
            "{option} cannot be used with --devices, which runs the parts of one run"
        )));
    }
    if !matches!(settings.model, ModelSource::Local { .. }) {
        return Err(CliError::usage("--devices is for --engine native; an endpoint has its own devices"));
    }
    settings.check()?;
    let mut reporters = Reporters::on_terminal(printer);
    let mut model = ModelSession::open(settings)?;
    let store = Store::create(&settings.results)?;
    let survey = model.survey(settings, Some(&store), &mut reporters)?;
    let part = part_settings(args, settings, &survey.settings, model.record(), devices);
    // The file of results is the parts' while they run.
    drop((store, model, reporters));
    if survey.run.is_none() || survey.settled < survey.planned {
        notices.iter().for_each(|notice| printer.message(&notice.to_string()));
        devices::run_parts(devices, &part, &settings.results, printer)?;
        merge::join_run(&settings.results, &survey.settings.sha256(), devices.len(), printer)?;
    }
    evaluate_and_show(settings, &args.session, Ending::default(), printer)
}

/// Settings of the first part of a run on several devices.
fn part_settings(
    args: &RunArgs,
    settings: &EvaluationSettings,
    run: &RunSettings,
    model: ModelRecord,
    devices: &[DeviceChoice],
) -> PartSettings {
    let confinement = &args.session.confinement;
    PartSettings {
        run: run.clone(),
        shard: Shard { part: 1, of: devices.len() },
        model,
        given: args.model.clone().map(Into::into),
        models: args.hub.models.clone().map(Into::into),
        offline: args.hub.offline,
        engine: settings.engine.clone(),
        fail_on_error: settings.fail_on_error,
        unconfined: confinement.unconfined,
        sandbox_command: confinement.sandbox_command.as_ref().map(ToString::to_string),
    }
}

/// Facts that the end of a run needs for its notes and next commands.
struct Ending {
    /// True of the built-in model.
    built_in: bool,
    /// The run of another model that asked the same questions.
    beside: Option<String>,
    /// Whether the run has a page of its own: the parts of a run have none.
    page: bool,
    /// Said before the first question, and not of a run that is finished already.
    notices: Vec<RunNotice>,
}

impl Default for Ending {
    fn default() -> Self {
        Ending { built_in: false, beside: None, page: true, notices: Vec::new() }
    }
}

/// Samples of a run up to which its page is written without being asked for.
const PAGE: usize = 20_000;

/// A run that has just ended.
struct EndedRun<'a> {
    name: &'a str,
    /// Samples with a row.
    recorded: usize,
    /// True if a sample is not right.
    wrong: bool,
    folder: &'a Path,
}

/// Writes the page of a run and suggests the next commands.
fn say_next(ending: &Ending, ended: &EndedRun<'_>, printer: Printer) -> Result<(), CliError> {
    let EndedRun { name: run, recorded, wrong, folder } = *ended;
    // Scripts that evaluate quietly get no page for every run.
    if !ending.page || recorded == 0 || printer.is_quiet() && !ending.built_in {
        return Ok(());
    }
    let output = results::new_page(folder, run);
    let option = results_folder::option(folder);
    let page = if recorded > PAGE {
        format!("page: `earnest report {run}{option}` writes it")
    } else {
        match report::write(&[run.to_owned()], folder, &output, None) {
            Ok(_) => format!("page: {}", output.display()),
            // The run is complete without its page.
            Err(error) => {
                printer.warning(&format!("there is no page: {}", error.message));
                return Ok(());
            }
        }
    };
    let wrong = wrong.then(|| results::wrong_samples(run, &option));
    let other = match &ending.beside {
        Some(one) if one != run => format!("earnest compare {one} {run}{option}"),
        _ if ending.built_in => format!(
            "earnest run --from {run} --model MODEL{option} (the same questions; `earnest models list` names models)"
        ),
        _ => results::compare_with(run, &option),
    };
    printer.follow([page].into_iter().chain(results::next_lines(wrong.into_iter().chain([other]))))
}

/// Says the notices once there is something to ask.
struct Announced<'a> {
    reporters: &'a mut Reporters,
    notices: &'a [RunNotice],
}

impl Reporter for Announced<'_> {
    fn event(&mut self, event: &RunEvent<'_>) {
        if matches!(
            event,
            RunEvent::Preparing(Stage::LoadingWeights | Stage::AskingEndpoint(_)) | RunEvent::Started { .. }
        ) {
            for notice in std::mem::take(&mut self.notices) {
                self.reporters.event(&RunEvent::notice(notice.clone()));
            }
        }
        self.reporters.event(event);
    }
}

/// Repeats the run that `--from` names.
pub fn repeat(name: &str, args: &RunArgs, printer: Printer) -> Result<Exit, CliError> {
    if let Some(suite) = &args.suite {
        let message = format!("--from repeats a run with its own suite and options; it cannot ask {}", suite.name);
        return Err(CliError::usage(message).help(format!("earnest run --from {name}")));
    }
    let folders = [args.session.results.folder.clone(), default_results()];
    let run = results::find_run(name, &folders)?;
    let settings = stored_settings(&run, args.model.as_deref(), &args.hub, &args.session)?;
    let in_folder =
        results::open(&args.session.results.folder, printer).and_then(|store| Ok(store.run(&run.manifest.run)?));
    let beside = args.model.as_ref().and(in_folder.ok()).map(|run| run.manifest.run);
    let settings = EvaluationSettings { run: RunChoice::Repeat(Box::new(run.manifest)), ..settings };
    evaluate_and_show(&settings, &args.session, Ending { beside, ..Ending::default() }, printer)
}

/// Continues a run from its manifest.
pub fn resume(args: &ResumeArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.session.results.folder, printer)?;
    let run = match &args.run {
        Some(name) => store.run(name)?,
        None => match newest_unfinished(&store)? {
            Some(run) => run,
            None => {
                printer.message("nothing to resume: every run is finished or in progress");
                return Ok(Exit::Success);
            }
        },
    };
    if run.manifest.settings.origin() != Origin::Evaluated {
        return Err(CliError::usage(format!("{} was imported and has nothing to resume", run.manifest.run)));
    }
    let settings = stored_settings(&run, args.model.as_deref(), &args.hub, &args.session)?;
    let settings = EvaluationSettings { run: RunChoice::Resume(Box::new(run)), ..settings };
    evaluate_and_show(&settings, &args.session, Ending::default(), printer)
}

/// The unfinished run that was begun last and is not in progress.
fn newest_unfinished(store: &Store) -> Result<Option<RunRecord>, CliError> {
    let mut newest = None;
    for run in store.runs()? {
        let open = run.manifest.status != Status::Finished && run.manifest.settings.origin() == Origin::Evaluated;
        if open && !RunLock::is_taken(store.results(), &run.manifest.run)? {
            newest = Some(run);
        }
    }
    Ok(newest)
}

/// Settings that evaluate a stored run again.
fn stored_settings(
    run: &RunRecord,
    model: Option<&Path>,
    hub: &HubArgs,
    session: &SessionArgs,
) -> Result<EvaluationSettings, CliError> {
    let settings = &run.manifest.settings;
    catalogue::check_table(&settings.suite, session.table.metric.as_deref())?;
    let stored = Stored { run: settings, model: &run.manifest.model, moved: model };
    Ok(EvaluationSettings {
        plan: run.manifest.whole_plan(),
        engine: session.engine.settings()?,
        traffic: session.traffic.settings(),
        fail_on_error: session.fail_on_error,
        ..settings_of(
            &stored,
            &hub.settings(),
            &session.confinement.host_of_stored(session.allow_python.clone()),
            &session.results.folder,
        )?
    })
}

/// Settings and model of a run as they are stored.
pub(super) struct Stored<'a> {
    pub(super) run: &'a RunSettings,
    pub(super) model: &'a ModelRecord,
    /// New path of the model; none for that of the record.
    pub(super) moved: Option<&'a Path>,
}

/// Settings of an evaluation by stored ones, of all items and with the engine's usual limits.
pub(super) fn settings_of(
    stored: &Stored<'_>,
    hub: &HubSettings,
    host: &LocalHost,
    results: &Path,
) -> Result<EvaluationSettings, CliError> {
    let Stored { run, model, moved } = *stored;
    let model = ModelSource::stored(run, model, moved, hub)?;
    Ok(EvaluationSettings {
        until: run.until.clone(),
        thinking: run.enable_thinking,
        thinking_text: run.thinking_text,
        prompt: run.prompt_mode.into(),
        decoding: Decoding::Stored(run.generation.clone()),
        stop: stop_flag(),
        ..EvaluationSettings::new(host.stored(run)?, model, results)
    })
}

/// Evaluates with progress, prints the run's document, and says where its page is and what to do next.
fn evaluate_and_show(
    settings: &EvaluationSettings,
    session: &SessionArgs,
    ending: Ending,
    printer: Printer,
) -> Result<Exit, CliError> {
    // Checked first, so that a refused command leaves no file of events behind.
    settings.check()?;
    let mut reporters = Reporters::new(printer, session.events.as_deref())?;
    let evaluated = evaluate(settings, &mut Announced { reporters: &mut reporters, notices: &ending.notices });
    // The progress display ends before anything else is printed.
    drop(reporters);
    let Evaluated { store, run } = evaluated?;
    let document = results::document(&store, &run)?;
    let (failed, recorded) = (document.totals.failed, document.totals.recorded);
    results::present(document, session.json, session.table.metric.as_deref(), printer)?;
    if !session.json {
        let wrong = results::has_wrong(&store, &run)?;
        // The page opens the results itself.
        drop(store);
        let ended = EndedRun { name: &run.manifest.run, recorded, wrong, folder: &settings.results };
        say_next(&ending, &ended, printer)?;
    }
    Ok(if failed > 0 { Exit::FailedSamples } else { Exit::Success })
}
