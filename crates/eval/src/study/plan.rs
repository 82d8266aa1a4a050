//! Plan of a study: its runs in order, checked before a model is loaded.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use earnest_engine::endpoint::Api;
use earnest_models::hub::HubSettings;
use earnest_tasks::suite::registry::OptionValues;

use super::definition::{Dimension, ModelDefinition, ModelReference, StudyDefinition, TaskDefinition};
use super::mistake::{Mistake, Place, StudyError};
use crate::EvalError;
use crate::evaluate::{Decoding, EvaluationSettings, GenerationSettings, Questions, RunChoice};
use crate::model::{Device, LocatedModel, ModelSource};
use crate::prompt::Prompts;
use earnest_results::suites::{ConfiguredSuite, LocalHost};
use earnest_results::{ModeRequest, Plan, Shard};

/// Most models, and most tasks, of a study.
pub(super) const MOST_MODELS: usize = 500;
pub(super) const MOST_TASKS: usize = 500;

/// Most runs: models times tasks times prompts.
const MOST_RUNS: usize = 10_000;

/// Longest name of a model or task, in bytes: names of runs and files are made of them.
const LONGEST_NAME: usize = 200;

/// Settings of a study's execution that its definition leaves open.
#[derive(Debug, Clone)]
pub struct StudySettings {
    /// Folder of results.
    pub results: PathBuf,
    pub hub: HubSettings,
    /// Part of each run to execute; none for all of it.
    pub shard: Option<Shard>,
    /// As [`EvaluationSettings::fail_on_error`].
    pub fail_on_error: Option<f64>,
    /// Host on which model-written programs run.
    pub host: LocalHost,
    /// Stops the study when another thread sets it.
    pub stop: Arc<AtomicBool>,
}

/// A run of a study by its indices in the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlannedRun {
    pub model: usize,
    pub task: usize,
    pub prompt: usize,
}

/// A checked study: all models located, all suites configured, all runs in order.
pub struct StudyPlan {
    pub definition: StudyDefinition,
    pub settings: StudySettings,
    /// By model and then by task and prompt, so that a model is loaded once.
    pub runs: Vec<PlannedRun>,
    /// Sentences on the form of the prompts, where models would be asked in different ones.
    pub notes: Vec<String>,
    /// Indices of tasks and prompts whose models are all asked raw.
    pub(super) asked_raw: Vec<(usize, usize)>,
    /// Sources of the models; none for endpoints, which depend on the prompt.
    sources: Vec<Option<ModelSource>>,
}

impl StudyPlan {
    /// Checks a definition: names, models, suites with their options and data, prompts. Loads and connects to nothing.
    ///
    /// # Errors
    /// All mistakes.
    pub fn new(definition: StudyDefinition, settings: StudySettings) -> Result<Self, StudyError> {
        let mut mistakes = Vec::new();
        check_size(&definition, &mut mistakes);
        // Nothing of a study of any size is opened.
        StudyError::check(definition.file.as_deref(), std::mem::take(&mut mistakes))?;
        check_names(&definition, &mut mistakes);
        let mut sources: Vec<Option<ModelSource>> = Vec::new();
        for model in &definition.models {
            let mut source = locate(model, &hub_of(model, &settings.hub)).unwrap_or_else(|error| {
                mistakes.push(Mistake::of(&model.place, &error));
                None
            });
            if let Some(source) = &mut source {
                sources.iter().flatten().any(|earlier| source.share(earlier));
            }
            sources.push(source);
        }
        for task in &definition.tasks {
            for prompts in &task.prompts {
                match configure(task, prompts, &settings.host) {
                    Ok(configured) => {
                        check_endpoints(&definition, task, mode(prompts, &configured), &settings.hub, &mut mistakes);
                    }
                    Err(error) => mistakes.push(Mistake::of(&task.place, &error)),
                }
            }
        }
        mistakes.dedup();
        StudyError::check(definition.file.as_deref(), mistakes)?;
        let mut runs = Vec::new();
        for model in 0..definition.models.len() {
            for (task, of_task) in definition.tasks.iter().enumerate() {
                runs.extend((0..of_task.prompts.len()).map(|prompt| PlannedRun { model, task, prompt }));
            }
        }
        Ok(StudyPlan { definition, settings, runs, notes: Vec::new(), asked_raw: Vec::new(), sources })
    }

    pub fn model(&self, run: PlannedRun) -> &ModelDefinition {
        &self.definition.models[run.model]
    }

    pub fn task(&self, run: PlannedRun) -> &TaskDefinition {
        &self.definition.tasks[run.task]
    }

    pub fn prompts(&self, run: PlannedRun) -> &Prompts {
        &self.task(run).prompts[run.prompt]
    }

    /// The local model of a run; none for endpoints and other engines.
    pub fn native(&self, run: PlannedRun) -> Option<&LocatedModel> {
        match self.sources[run.model].as_ref()? {
            ModelSource::Local { model, .. } => Some(model),
            _ => None,
        }
    }

    /// Name of a run's task and prompt, e.g. `sums` or `sums, chat`: tasks with one prompt go by their names.
    pub fn column(&self, run: PlannedRun) -> String {
        let task = self.task(run);
        match task.prompts.len() {
            1 => task.name.clone(),
            _ => format!("{}, {}", task.name, self.prompts(run)),
        }
    }

    /// Name of a run for messages, e.g. `small on sums, chat`.
    pub fn label(&self, run: PlannedRun) -> String {
        format!("{} on {}", self.model(run).name, self.column(run))
    }

    /// API of a run's model, if it is an endpoint; runs of one model and API share a session.
    pub(super) fn api(&self, run: PlannedRun) -> Result<Option<Api>, EvalError> {
        match &self.model(run).reference {
            ModelReference::Endpoint(request) => Ok(Some(request.api(self.mode(run)?)?)),
            _ => Ok(None),
        }
    }

    /// Form in which a run's prompts are asked for: that of the study, one for all models, or the suite's.
    pub(super) fn mode(&self, run: PlannedRun) -> Result<ModeRequest, EvalError> {
        let prompts = self.prompts(run);
        match prompts.mode {
            Some(mode) => Ok(mode),
            None if self.asked_raw.contains(&(run.task, run.prompt)) => Ok(ModeRequest::Raw),
            None => Ok(mode(prompts, &configure(self.task(run), prompts, &self.settings.host)?)),
        }
    }

    /// Settings of a run.
    ///
    /// # Errors
    /// If the task's data or the model have gone since the plan was made.
    pub fn evaluation(&self, run: PlannedRun) -> Result<EvaluationSettings, EvalError> {
        let (model, task, prompts) = (self.model(run), self.task(run), self.prompts(run));
        let configured = configure(task, prompts, &self.settings.host)?;
        let prompt = self.mode(run)?;
        let source = match (&model.reference, &self.sources[run.model]) {
            (ModelReference::Endpoint(request), _) => {
                ModelSource::Endpoint(request.source(prompt, &hub_of(model, &self.settings.hub))?)
            }
            (_, Some(source)) => source.clone(),
            (_, None) => return Err(EvalError::setting(format!("{} was not located", model.name))),
        };
        let plan = Plan { limit: task.limit, samples: task.samples, shard: self.settings.shard };
        plan.check_limits()?;
        let generation = GenerationSettings { seed: task.seed, ..model.generation.clone() };
        Ok(EvaluationSettings {
            questions: Questions::Chosen(configured.choice),
            plan,
            until: None,
            model: source,
            prompt,
            thinking: generation.thinking.enable_thinking(),
            thinking_text: model.thinking_text,
            decoding: Decoding::Asked(generation),
            results: self.settings.results.clone(),
            run: RunChoice::Gather,
            engine: model.engine.clone(),
            traffic: model.traffic.clone(),
            fail_on_error: self.settings.fail_on_error,
            stop: Arc::clone(&self.settings.stop),
        })
    }
}

/// Prompt mode: the named one, else the suite's.
fn mode(prompts: &Prompts, configured: &ConfiguredSuite) -> ModeRequest {
    prompts.mode.unwrap_or_else(|| configured.default_mode())
}

fn configure(task: &TaskDefinition, prompts: &Prompts, host: &LocalHost) -> Result<ConfiguredSuite, EvalError> {
    let mut options: OptionValues = task.options.clone();
    options.seed = task.seed;
    options.prompts.clone_from(&prompts.names);
    Ok(host.configure(&task.suite, &options)?)
}

/// Returns the settings for a model of a study: what it allows itself, and what the command allows for all models.
pub fn hub_of(model: &ModelDefinition, hub: &HubSettings) -> HubSettings {
    let shared_config = hub.allow_config.iter().chain(&hub.shared_config).cloned().collect();
    HubSettings { allow_config: model.allow_config.clone(), shared_config, ..hub.clone() }
}

/// Locates a model; none for endpoints.
fn locate(model: &ModelDefinition, hub: &HubSettings) -> Result<Option<ModelSource>, EvalError> {
    Ok(match &model.reference {
        ModelReference::Native { model: path, weights } => {
            let located = LocatedModel::find(path, hub, *weights)?;
            if !located.path().exists() {
                let message = format!("there is no model {}", path.display());
                return Err(EvalError::model(message).hint(
                    "a model is a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder, a GGUF \
                     file or \"built-in\"; paths are relative to the study file",
                ));
            }
            let (device, note) = Device::choose(&model.engine)?;
            Some(ModelSource::Local { model: located, device, note })
        }
        ModelReference::Mistralrs(path) => Some(ModelSource::Mistralrs(LocatedModel::find_for_mistralrs(path, hub)?)),
        ModelReference::Endpoint(_) => None,
    })
}

/// Notes prompts that endpoints cannot take.
fn check_endpoints(
    definition: &StudyDefinition,
    task: &TaskDefinition,
    mode: ModeRequest,
    hub: &HubSettings,
    mistakes: &mut Vec<Mistake>,
) {
    for model in &definition.models {
        if let ModelReference::Endpoint(request) = &model.reference
            && let Err(error) = request.source(mode, &hub_of(model, hub))
        {
            let mut mistake = Mistake::of(&model.place, &error);
            mistake.problem.message = format!("for {}: {}", task.name, mistake.problem.message);
            mistakes.push(mistake);
        }
    }
}

/// Notes numbers and names beyond the limits.
fn check_size(definition: &StudyDefinition, mistakes: &mut Vec<Mistake>) {
    let whole = Place { key: String::new(), line: definition.file.as_ref().map(|_| 1) };
    let prompts: usize = definition.tasks.iter().map(|task| task.prompts.len()).sum();
    let runs = definition.models.len().saturating_mul(prompts);
    let counts = [
        ("models", definition.models.len(), MOST_MODELS),
        ("tasks", definition.tasks.len(), MOST_TASKS),
        ("runs (models times tasks times prompts)", runs, MOST_RUNS),
    ];
    for (what, count, most) in counts {
        if count > most {
            let mistake = Mistake::new(&whole, format!("the study has {count} {what}, more than {most}"));
            mistakes.push(mistake.hint("divide it into several studies"));
            return;
        }
    }
    let models = definition.models.iter().map(|one| ("model", &one.name, one.place.line));
    let tasks = definition.tasks.iter().map(|one| ("task", &one.name, one.place.line));
    for (what, name, line) in models.chain(tasks).filter(|(_, name, _)| name.len() > LONGEST_NAME) {
        let beginning: String = name.chars().take(30).collect();
        let message =
            format!("the name of a {what}, {beginning}..., has {} bytes, more than {LONGEST_NAME}", name.len());
        // The key has the name.
        mistakes.push(Mistake::new(&Place { key: String::new(), line }, message));
    }
}

/// Notes names that are used twice, and tests of names that are not there.
fn check_names(definition: &StudyDefinition, mistakes: &mut Vec<Mistake>) {
    let models: Vec<(&str, &Place)> = definition.models.iter().map(|one| (one.name.as_str(), &one.place)).collect();
    let tasks: Vec<(&str, &Place)> = definition.tasks.iter().map(|one| (one.name.as_str(), &one.place)).collect();
    for (names, what) in [(&models, "model"), (&tasks, "task")] {
        for (index, (name, at)) in names.iter().enumerate() {
            if names[..index].iter().any(|(earlier, _)| earlier == name) {
                mistakes.push(Mistake::new(at, format!("there is another {what} {name}")));
            }
        }
    }
    let names = |known: &[(&str, &Place)]| known.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    let mut prompts: Vec<String> = Vec::new();
    for prompt in definition.tasks.iter().flat_map(|task| &task.prompts) {
        if !prompts.contains(&prompt.to_string()) {
            prompts.push(prompt.to_string());
        }
    }
    let mut check = |place: &Place, key: &str, what: &str, name: &str, known: &[String]| {
        if !known.iter().any(|known| known == name) {
            let mistake = Mistake::new(place, format!("{key}: there is no {what} {name}"));
            mistakes.push(mistake.hint(format!("choose from {}", known.join(", "))));
        }
    };
    for compare in &definition.compare {
        let (what, known) = match compare.between {
            Dimension::Models => ("model", names(&models)),
            Dimension::Tasks => ("task", names(&tasks)),
            Dimension::Prompts => ("prompt", prompts.clone()),
        };
        if let Some(baseline) = &compare.baseline {
            check(&compare.place, "baseline", what, baseline, &known);
        }
        compare.tasks.iter().for_each(|task| check(&compare.place, "tasks", "task", task, &names(&tasks)));
    }
    for model in &definition.mixed_models {
        model.tasks.iter().for_each(|task| check(&model.place, "tasks", "task", task, &names(&tasks)));
        let named = model.references.iter().map(|(column, _)| ("reference", column));
        for (key, column) in named.chain(model.factors.iter().map(|column| ("factors", column))) {
            let Some(formula) = &model.formula else { continue };
            let known: Vec<String> = formula.variables().into_iter().map(str::to_owned).collect();
            check(&model.place, key, "column of the formula", column, &known);
        }
    }
    for compare in &definition.compare {
        let several = match compare.between {
            Dimension::Models => models.len(),
            Dimension::Tasks => tasks.len(),
            Dimension::Prompts => prompts.len(),
        };
        if several < 2 {
            let word = Dimension::NAMES.iter().find(|(_, one)| *one == compare.between).map_or("", |(name, _)| *name);
            mistakes.push(Mistake::new(&compare.place, format!("a comparison between {word} needs two of them")));
        }
    }
}
