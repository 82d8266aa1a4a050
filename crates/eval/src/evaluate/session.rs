//! A session with a model: resolves a run's settings, generates missing samples and updates the manifest.
use std::time::{Instant, SystemTime};

use earnest_tasks::suite::Suite;
use earnest_tasks::suite::profile::THINKING;
use earnest_tasks::suite::registry::{Channel, OptionError, ProgramsRecord};

use super::begin::{Claimed, claim};
use super::detectable::detectable;
use super::past::Past;
use super::rounds::Rounds;
use super::survey::SampleTokens;
use super::until::{decider, resolved};
use super::{Decoding, EvaluationSettings, Questions, RunChoice};
use crate::EvalError;
use crate::model::{LoadedEngine, OpenModel};
use crate::prompt::{PromptError, Prompter};
use crate::run::{Decider, Runner};
use earnest_results::store::{RunProgress, RunRecord, Store};
use earnest_results::suites::start_programs;
use earnest_results::{
    Ended, Expected, FileRecord, FirstPrompt, Host, MANIFEST_FORMAT, Manifest, Mode, ModeRequest, ModelNotice,
    ModelRecord, Notice, Plan, Repetition, Reporter, RunEvent, RunNotice, RunSettings, Stage, Status, SystemPlace,
    Until, by_cluster, folder, timestamp,
};

/// A finished run and its store.
pub struct Evaluated {
    pub store: Store,
    pub run: RunRecord,
}

/// Evaluates a model on a suite: starts, continues or repeats a run and stores its rows.
///
/// # Errors
/// [`EvalError`]; [`EvalError::Interrupted`] and [`EvalError::TooManyFailures`] leave a run that can be continued.
pub fn evaluate(settings: &EvaluationSettings, reporter: &mut dyn Reporter) -> Result<Evaluated, EvalError> {
    settings.check()?;
    reporter.event(&RunEvent::Preparing(settings.model.opening()));
    let mut model = ModelSession::open(settings)?;
    for warning in model.warnings() {
        reporter.event(&RunEvent::Notice(warning));
    }
    model.evaluate(settings, reporter)
}

/// A model for several runs: hashes its files and loads its weights, or connects to its endpoint, once, when a run first
/// needs it.
pub struct ModelSession {
    pub(super) model: Box<dyn OpenModel>,
    pub(super) files: Option<Vec<FileRecord>>,
    engine: Option<LoadedEngine>,
}

impl ModelSession {
    /// Opens the model of the settings; loads nothing.
    pub fn open(settings: &EvaluationSettings) -> Result<Self, EvalError> {
        let model = settings.model.open(settings.thinking, &settings.engine, &settings.traffic)?;
        Ok(ModelSession { model, files: None, engine: None })
    }

    /// Returns the record of the model in manifests.
    pub fn record(&self) -> ModelRecord {
        self.model.record()
    }

    /// Returns warnings about the model.
    pub fn warnings(&self) -> Vec<Notice> {
        self.model.warnings()
    }

    /// Returns the form of the prompts that a request comes to for this model.
    ///
    /// # Errors
    /// If a chat template is asked for and the model has none.
    pub(crate) fn form(&self, request: ModeRequest) -> Result<Mode, PromptError> {
        Ok(Prompter::new(self.model.prompt_source().as_ref(), request)?.mode())
    }

    /// Starts or continues a run; returns finished runs as they are.
    ///
    /// # Errors
    /// [`EvalError`], also if the run did not finish.
    pub fn evaluate(
        &mut self,
        settings: &EvaluationSettings,
        reporter: &mut dyn Reporter,
    ) -> Result<Evaluated, EvalError> {
        settings.check()?;
        let ModelSession { model, files, engine } = self;
        let source = model.prompt_source();
        let prompter = Prompter::new(source.as_ref(), settings.prompt)?;
        let suite = &suite(settings, model.as_ref(), &prompter)?;
        if suite.items.iter().next().is_some_and(|item| !item.continuations.is_empty()) {
            model.check_likelihoods()?;
        }
        settings.plan.check(suite)?;
        let most = suite.items.chooser().map(|chooser| chooser.most());
        if most.is_some() {
            check_whole(settings, suite)?;
        }
        let sandbox = start_programs(suite, reporter)?;
        let run_settings = resolve_settings(settings, suite, model.as_ref(), files, &prompter, reporter)?;
        if !run_settings.system.is_own() {
            reporter.event(&RunEvent::notice(ModelNotice::SystemInUserTurn));
        }
        let session = Session {
            evaluation: settings,
            suite,
            model: model.as_ref(),
            prompter: &prompter,
            sandbox,
            planned: most.unwrap_or_else(|| settings.plan.len(suite)),
            chooses: most.is_some(),
            settings: run_settings,
        };
        // Created last, so that a refused command leaves nothing behind.
        let store = Store::create(&settings.results)?;
        let model_name = session.model.record().name;
        let claimed = claim(settings, &session.settings, &model_name, &store, reporter)?;
        let run = session.work(engine, &store, claimed, reporter)?;
        Ok(Evaluated { store, run })
    }
}

/// Everything that is known before the weights are loaded.
struct Session<'a> {
    evaluation: &'a EvaluationSettings,
    suite: &'a Suite,
    model: &'a dyn OpenModel,
    prompter: &'a Prompter<'a>,
    sandbox: Option<ProgramsRecord>,
    settings: RunSettings,
    /// Number of samples; at most so many where the suite chooses them.
    planned: usize,
    /// True if later items depend on the answers to earlier ones.
    chooses: bool,
}

impl Session<'_> {
    /// Finishes a claimed run.
    fn work(
        &self,
        engine: &mut Option<LoadedEngine>,
        store: &Store,
        claimed: Claimed,
        reporter: &mut dyn Reporter,
    ) -> Result<RunRecord, EvalError> {
        let Claimed { lock, name, earlier } = claimed;
        let progress = earlier.as_ref().map(|run| store.progress(run)).transpose()?.unwrap_or_default();
        match earlier {
            Some(run) if run.manifest.status == Status::Finished && progress.settled() == self.settled(&run) => {
                let next = match self.evaluation.run {
                    RunChoice::Gather => Repetition::Used,
                    RunChoice::Resume(_) => Repetition::ByName,
                    _ => Repetition::AsNew,
                };
                let (name, ended) = (run.manifest.run.clone(), run.manifest.ended.clone());
                reporter.event(&RunEvent::notice(RunNotice::AlreadyFinished { run: name, ended, next }));
                reporter.event(&RunEvent::Ended(Some(Ended::Finished)));
                // A process that was killed at the very end has left none.
                if store.summary(&run)?.is_none() {
                    self.keep_document(store, &run)?;
                }
                Ok(run)
            }
            earlier => {
                if earlier.is_none() && !self.chooses {
                    reporter.event(&RunEvent::notice(detectable(self.suite, &self.evaluation.plan)));
                }
                if let Some(expected) = self.expected(store, &progress)? {
                    reporter.event(&RunEvent::Expected(expected));
                }
                let (run, ended) = self.generate(engine, store, &name, earlier, &progress, reporter)?;
                self.check_end(ended, store, &run)?;
                self.keep_document(store, &run)?;
                drop(lock);
                Ok(run)
            }
        }
    }

    /// Returns the time that the samples left take, if an earlier run of the model says it.
    fn expected(&self, store: &Store, progress: &RunProgress) -> Result<Option<Expected>, EvalError> {
        let left = self.planned.saturating_sub(progress.settled());
        let (plan, generation) = (&self.evaluation.plan, &self.settings.generation);
        let context = self.model.record().context;
        let tokens = SampleTokens::of_first(plan, self.suite, self.prompter, generation, context)?;
        let expected = Past::new(Some(store))?.expected(&self.settings, left, &tokens)?;
        // An adaptive suite may ask fewer, and a condition may be met early.
        let fewer = self.chooses || self.settings.until.is_some();
        Ok(expected.map(|expected| Expected { at_most: expected.at_most || fewer, ..expected }))
    }

    /// Stores the summary of a finished run.
    fn keep_document(&self, store: &Store, run: &RunRecord) -> Result<(), EvalError> {
        match self.chooses {
            true => Ok(folder::keep_document(store, run, &folder::suite_of(store, run)?)?),
            false => Ok(folder::keep_document(store, run, self.suite)?),
        }
    }

    /// Number of settled samples of a run that is complete: fewer than planned if it ended early, or its suite chose fewer.
    fn settled(&self, run: &RunRecord) -> usize {
        if self.chooses {
            return run.planned;
        }
        if run.manifest.decision.is_some() { run.manifest.plan().len(self.suite) } else { self.planned }
    }

    /// Returns the decider of a run with a condition, with its rows so far.
    fn decider(
        &self,
        store: &Store,
        earlier: Option<(&RunRecord, &RunProgress)>,
        reporter: &mut dyn Reporter,
    ) -> Result<Option<Decider>, EvalError> {
        let until: Option<&Until> = self.settings.until.as_ref();
        let plan = self.evaluation.plan;
        until.map(|until| decider(until, &self.settings, self.suite, plan, store, earlier, reporter)).transpose()
    }

    /// Generates the missing samples. The manifest is updated before and after, so that it is right even after a crash.
    fn generate(
        &self,
        engine: &mut Option<LoadedEngine>,
        store: &Store,
        name: &str,
        earlier: Option<RunRecord>,
        progress: &RunProgress,
        reporter: &mut dyn Reporter,
    ) -> Result<(RunRecord, Ended), EvalError> {
        let mut decider = self.decider(store, earlier.as_ref().map(|run| (run, progress)), reporter)?;
        let manifest = self.manifest(name, earlier.as_ref().map(|run| run.manifest.clone()))?;
        // Loaded first, so that a failure leaves no empty run.
        let engine = match engine {
            Some(engine) => engine,
            None => engine.insert(self.load(reporter)?),
        };
        let mut run = match earlier {
            Some(run) => RunRecord { manifest, planned: self.planned, ..run },
            None => store.begin(&manifest, self.planned)?,
        };
        run.manifest.engine = Some(engine.record());
        store.update(run.id, &run.manifest, self.planned)?;
        let mut writer = store.writer(&run);
        let runner = Runner {
            run: name,
            suite: self.suite,
            plan: self.evaluation.plan,
            prompter: self.prompter,
            generation: &self.settings.generation,
            fail_on_error: self.evaluation.fail_on_error,
            stop: &self.evaluation.stop,
        };
        let generating = Instant::now();
        let outcome = match self.suite.items.chooser() {
            Some(chooser) => {
                let rounds = Rounds { store, run: &run, runner: &runner, most: self.planned };
                rounds.run(chooser, engine.engine.as_mut(), &mut writer, reporter).map(|(ended, items)| {
                    run.planned = items;
                    ended
                })
            }
            None => runner
                .run_until(decider.as_mut(), engine.engine.as_mut(), &mut writer, progress, reporter)
                .map_err(EvalError::from),
        };
        drop(writer);
        let outcome = match (outcome, self.suite.items.unread()) {
            (Ok(Ended::Finished | Ended::Decided), Some(reason)) => Err(unread_questions(&reason).into()),
            (outcome, _) => outcome,
        };
        let finished = matches!(outcome, Ok(Ended::Finished | Ended::Decided));
        let outcome = match decider.filter(|_| finished) {
            Some(decider) => self.decide(&decider, store, &mut run, reporter).and(outcome),
            None => outcome,
        };
        let manifest = &mut run.manifest;
        manifest.generation_s += generating.elapsed().as_secs_f64();
        manifest.engine = Some(engine.record());
        manifest.ended = Some(timestamp(SystemTime::now()));
        manifest.status = if finished && outcome.is_ok() { Status::Finished } else { Status::Interrupted };
        if !self.chooses {
            run.planned = self.settled(&run);
        }
        // The first error is reported: on a full disk, writing the manifest fails too.
        let written = store.update(run.id, &run.manifest, self.settled(&run));
        let ended = outcome?;
        written?;
        Ok((run, ended))
    }

    /// Writes the decision of a run with a condition into its manifest, and drops the rows of later clusters: which of them came in
    /// depends on their speed.
    fn decide(
        &self,
        decider: &Decider,
        store: &Store,
        run: &mut RunRecord,
        reporter: &mut dyn Reporter,
    ) -> Result<(), EvalError> {
        let decision = decider.decision(timestamp(SystemTime::now()));
        if decision.is_early() {
            store.truncate(run, decision.items * self.evaluation.plan.samples as usize)?;
        }
        if let Some(until) = &self.settings.until {
            let (decision, until) = (Box::new(decision.clone()), until.clone());
            reporter.event(&RunEvent::notice(RunNotice::Decided { decision, until }));
        }
        run.manifest.decision = Some(decision);
        Ok(())
    }

    fn load(&self, reporter: &mut dyn Reporter) -> Result<LoadedEngine, EvalError> {
        reporter.event(&RunEvent::Preparing(match &self.settings.endpoint {
            Some(endpoint) => Stage::AskingEndpoint(endpoint.base_url.clone()),
            None => Stage::LoadingWeights,
        }));
        let mut loaded = LoadedEngine::timed(self.model)?;
        for note in std::mem::take(&mut loaded.notes) {
            reporter.event(&RunEvent::Notice(note));
        }
        if loaded.on_gpu {
            let devices = loaded.engine.card().devices;
            reporter.event(&RunEvent::notice(ModelNotice::ComputingOn { devices }));
        }
        Ok(loaded)
    }

    /// Returns the manifest at the start of a session.
    fn manifest(&self, name: &str, earlier: Option<Manifest>) -> Result<Manifest, EvalError> {
        // Rendered before the weights are loaded, so that a broken template fails at once.
        let first = self.suite.items.iter().next();
        let first_prompt = first
            .map(|item| {
                self.prompter.render(&item.segments).map(|rendered| FirstPrompt {
                    item: item.id.clone(),
                    text: rendered.text,
                    ids: rendered.ids,
                    bos: rendered.bos,
                })
            })
            .transpose()?;
        let fresh = || Manifest {
            format: MANIFEST_FORMAT,
            run: name.to_owned(),
            status: Status::Running,
            shard: self.evaluation.plan.shard,
            settings: self.settings.clone(),
            settings_sha256: self.settings.sha256(),
            model: self.model.record(),
            first_prompt,
            engine: None,
            host: Host::probe(),
            started: timestamp(SystemTime::now()),
            ended: None,
            sandbox: None,
            sessions: 0,
            generation_s: 0.0,
            decision: None,
        };
        let manifest = earlier.unwrap_or_else(fresh);
        let sessions = manifest.sessions + 1;
        let sandbox = self.sandbox.clone().or(manifest.sandbox);
        let host = Host::probe();
        Ok(Manifest { status: Status::Running, host, sandbox, sessions, decision: None, ..manifest })
    }

    /// Returns an error if the session did not finish the run.
    fn check_end(&self, ended: Ended, store: &Store, run: &RunRecord) -> Result<(), EvalError> {
        let name = run.manifest.run.clone();
        match ended {
            Ended::Finished | Ended::Decided => Ok(()),
            Ended::Stopped => Err(EvalError::Interrupted {
                run: name,
                settled: store.progress(run)?.settled(),
                planned: self.planned,
                store: store.path().to_owned(),
            }),
            Ended::TooManyFailures { failed } => {
                Err(EvalError::TooManyFailures { run: name, failed, planned: self.planned })
            }
        }
    }
}

/// Returns the suite of the settings for the channel to this model, in the order of clusters if the run has a condition.
pub(super) fn suite(
    settings: &EvaluationSettings,
    model: &dyn OpenModel,
    prompter: &Prompter<'_>,
) -> Result<Suite, EvalError> {
    let suite = match &settings.questions {
        Questions::Chosen(choice) => {
            let (mode, endpoint) = (prompter.mode(), model.endpoint().is_some());
            choice.suite(Channel { mode, endpoint, thinking: prompter.thinking(), takes: prompter.takes() })?
        }
        Questions::Suite(suite) => suite.clone(),
    };
    // The settings are what the manifest records.
    let suite = Suite { thinking: settings.thinking_text, ..suite };
    Ok(match settings.until {
        Some(_) => by_cluster(&suite, settings.plan.limit, settings.decoding.seed()),
        None => suite,
    })
}

/// The error for questions that end before their number: their file was readable when the run began.
fn unread_questions(reason: &str) -> OptionError {
    OptionError::data(format!("the questions could not be read to their end: {reason}"))
        .help("the same command continues the run when the file is as it was")
}

/// Resolves the settings that identify the run.
pub(super) fn resolve_settings(
    evaluation: &EvaluationSettings,
    suite: &Suite,
    model: &dyn OpenModel,
    files: &mut Option<Vec<FileRecord>>,
    prompter: &Prompter<'_>,
    reporter: &mut dyn Reporter,
) -> Result<RunSettings, EvalError> {
    let generation = match &evaluation.decoding {
        Decoding::Asked(asked) => asked.resolve(prompter.mode(), model.defaults())?,
        Decoding::Stored(generation) => generation.clone(),
    };
    let model_files = match files {
        Some(files) => files.clone(),
        None => files
            .insert(model.hash_files(&mut |done, total| {
                reporter.event(&RunEvent::Preparing(Stage::HashingFiles { done, total }));
            })?)
            .clone(),
    };
    let until = evaluation.until.as_ref();
    let until = until.map(|until| resolved(until, suite, &evaluation.results)).transpose()?;
    Ok(RunSettings {
        suite: suite.scoring.name().to_owned(),
        suite_version: suite.scoring.version().to_owned(),
        suite_options: suite.scoring.options(),
        limit: evaluation.plan.limit,
        samples: evaluation.plan.samples,
        until,
        model_files,
        weights: model.weights(),
        pre_tokenizer: model.pre_tokenizer(),
        prompt_mode: prompter.mode(),
        system: if has_system_message(suite) { prompter.system() } else { SystemPlace::Own },
        generation,
        enable_thinking: model.enable_thinking(),
        thinking_text: evaluation.thinking_text,
        endpoint: model.endpoint(),
        engine: model.engine(),
        earnest: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// True if the suite's prompts have a system message; either all items have one or none, but for suites that mix those of others.
fn has_system_message(suite: &Suite) -> bool {
    let mixed = if suite.items.chooser().is_some() { usize::MAX } else { 1 };
    suite.items.iter().take(mixed).any(|item| item.segments.system.is_some())
}

/// Refuses a part of a run whose suite chooses its items by all answers.
fn check_whole(settings: &EvaluationSettings, suite: &Suite) -> Result<(), EvalError> {
    let max_tokens = match &settings.decoding {
        Decoding::Asked(asked) => asked.max_tokens,
        Decoding::Stored(generation) => generation.max_tokens,
    };
    if max_tokens.is_some() && suite.scoring.options().get(THINKING).is_some() {
        return Err(EvalError::setting(
            "the setting `max_tokens` does not go with the setting `thinking_budgets`, which has limits of its own",
        )
        .hint("leave one of the two out"));
    }
    let Plan { limit, samples, shard } = settings.plan;
    let given = [
        (limit.is_some(), "limit"),
        (samples != 1, "samples"),
        (shard.is_some(), "shard"),
        (settings.until.is_some(), "until"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, setting)) => Err(EvalError::setting(format!(
            "the setting `{setting}` does not go with {}, which chooses its questions by the answers",
            suite.scoring.name()
        ))
        .hint(
            "the setting `budget` limits the questions of each skill, the setting `skills` chooses among the skills",
        )),
        None => Ok(()),
    }
}
