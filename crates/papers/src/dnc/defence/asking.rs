//! Asking a trained model: one run of the suite, gathered as outcomes by question.
use std::collections::BTreeMap;
use std::path::Path;

use super::file::{DefenceExperiment, TrainedModel};
use super::pairs::SUITE;
use super::results::ScorerOutcomes;
use super::runner::DefenceSettings;
use super::{DefenceError, ExperimentProblem};
use crate::dnc::tables::metrics;
use earnest_eval::evaluate::GenerationSettings;
use earnest_eval::model::TrafficSettings;
use earnest_eval::study::{
    Decision, ModelDefinition, ModelReference, Place, PlannedRun, RunEnd, Sessions, StudyDefinition, StudyPlan,
    StudySettings, TaskDefinition, Watcher,
};
use earnest_eval::{EvalError, study};
use earnest_models::checkpoint::WeightFormat;
use earnest_results::store::{Filter, RunRecord, Store};
use earnest_results::suites::LocalHost;
use earnest_results::{Sample, suites};
use earnest_tasks::suite::dnc::{Kind, Split, Target, own_scorer};
use earnest_tasks::suite::registry::{Channel, Mode, OptionValues};
use earnest_tasks::suite::{Score, ThinkingText};
use earnest_train::PromptForm;

/// Outcomes of a model on original and perturbed questions.
pub(super) struct Asked {
    pub(super) questions: Vec<String>,
    pub(super) original: ScorerOutcomes,
    pub(super) perturbed: BTreeMap<Kind, ScorerOutcomes>,
}

/// Asks a model its questions, or gathers the answers that are stored. None if it was stopped.
///
/// # Errors
/// [`DefenceError::Study`], [`DefenceError::Eval`].
pub(super) fn ask(
    experiment: &DefenceExperiment,
    settings: &DefenceSettings,
    model: TrainedModel,
    merged: &Path,
    watcher: &mut dyn Watcher,
) -> Result<Option<Asked>, DefenceError> {
    let kinds = experiment.asked(model);
    let (prompts, form) = experiment.checked_prompts()?;
    let splits: Vec<_> = experiment.splits.iter().map(|split| Split::name(*split).into()).collect();
    let mut options = experiment.options(&kinds, prompts.names.clone());
    options.set("splits", splits);
    if experiment.demonstrations > 0 {
        options = options.with("demonstrations", experiment.demonstrations.to_string());
    }
    let (questions, limit) = questions(experiment, &options, form)?;
    let definition = StudyDefinition {
        name: "defence".to_owned(),
        file: None,
        models: vec![ModelDefinition {
            name: model.name(),
            reference: ModelReference::Native {
                model: merged.to_owned(),
                weights: WeightFormat { compute: experiment.compute, ..WeightFormat::default() },
            },
            engine: settings.engine.clone(),
            traffic: TrafficSettings::default(),
            generation: GenerationSettings::default(),
            thinking_text: ThinkingText::default(),
            allow_config: Vec::new(),
            place: Place::key("model"),
        }],
        tasks: vec![TaskDefinition {
            name: SUITE.to_owned(),
            suite: SUITE.to_owned(),
            options,
            prompts: vec![prompts],
            limit,
            samples: 1,
            seed: experiment.perturbation_seed,
            place: Place::key("data"),
        }],
        compare: Vec::new(),
        mixed_models: Vec::new(),
    };
    let study_settings = StudySettings {
        results: settings.out.join("results"),
        hub: settings.hub.clone(),
        shard: None,
        fail_on_error: None,
        host: LocalHost::default(),
        stop: settings.stop.clone(),
    };
    let plan = StudyPlan::new(definition, study_settings)?;
    let mut gathered = Gathered::new(experiment, &questions)?;
    let mut gather = |_: PlannedRun, store: &Store, record: &RunRecord| {
        for sample in store.samples(record, Filter::default()) {
            gathered.add(&sample?);
        }
        Ok(Decision::CONTINUE)
    };
    let outcome = study::execute(&plan, Sessions::default(), &mut gather, watcher);
    match outcome.ended_by {
        Some(EvalError::Interrupted { .. }) => return Ok(None),
        Some(error) => return Err(error.into()),
        None => {}
    }
    for (_, end) in outcome.runs {
        match end {
            RunEnd::Finished(_) => {}
            RunEnd::Failed(error) => return Err(error.into()),
            RunEnd::ModelFailed | RunEnd::LeftOut | RunEnd::NotReached => return Ok(None),
        }
    }
    let Gathered { original, perturbed, .. } = gathered;
    Ok(Some(Asked { questions, original, perturbed }))
}

/// The questions to ask, in the order of the items, and the number of items that they are.
fn questions(
    experiment: &DefenceExperiment,
    options: &OptionValues,
    form: PromptForm,
) -> Result<(Vec<String>, Option<usize>), DefenceError> {
    let mode = match form {
        PromptForm::Raw => Mode::Raw,
        PromptForm::Chat => Mode::Chat,
    };
    let suite = suites::configure(SUITE, options)
        .map_err(EvalError::from)?
        .suite(Channel::local(mode))
        .map_err(EvalError::from)?;
    let most = experiment.questions.unwrap_or(usize::MAX);
    let mut questions = Vec::new();
    for (index, item) in suite.items.iter().enumerate() {
        if item.task == "original" {
            if questions.len() == most {
                return Ok((questions, Some(index)));
            }
            questions.push(item.cluster.clone());
        }
    }
    Ok((questions, None))
}

/// The letter of a score by a scorer: `1` right, `0` wrong, `?` without one. The scorer's own score counts, also where another scorer
/// is the deciding one and this one read nothing.
pub fn letter(score: Option<&Score>, scorer: &str) -> &'static str {
    match score.and_then(|score| score.scorers.get(scorer)) {
        Some(true) => "1",
        Some(false) => "0",
        None => "?",
    }
}

/// Outcomes while rows are read.
struct Gathered {
    index: BTreeMap<String, usize>,
    /// Metrics of the paper, and the scorers that compute them.
    metrics: Vec<(&'static str, &'static str)>,
    original: ScorerOutcomes,
    perturbed: BTreeMap<Kind, ScorerOutcomes>,
}

impl Gathered {
    fn new(experiment: &DefenceExperiment, questions: &[String]) -> Result<Self, ExperimentProblem> {
        let target: Target = experiment.target()?;
        let metrics: Vec<_> = metrics(experiment.dataset, target)
            .into_iter()
            .map(|(metric, scorer)| {
                (metric, if scorer.is_empty() { own_scorer(experiment.dataset, target) } else { scorer })
            })
            .collect();
        let index = questions.iter().enumerate().map(|(index, question)| (question.clone(), index)).collect();
        let original = metrics.iter().map(|(metric, _)| ((*metric).to_owned(), "?".repeat(questions.len()))).collect();
        Ok(Gathered { index, metrics, original, perturbed: BTreeMap::new() })
    }

    fn add(&mut self, sample: &Sample) {
        let Some(&index) = self.index.get(&sample.cluster) else { return };
        let count = self.index.len();
        let into = match sample.task.parse::<Kind>() {
            Ok(kind) => self.perturbed.entry(kind).or_insert_with(|| {
                self.metrics.iter().map(|(metric, _)| ((*metric).to_owned(), "-".repeat(count))).collect()
            }),
            Err(_) => &mut self.original,
        };
        for (metric, scorer) in &self.metrics {
            let letter = letter(sample.score.as_ref(), scorer);
            if let Some(outcomes) = into.get_mut(*metric) {
                outcomes.replace_range(index..=index, letter);
            }
        }
    }
}
