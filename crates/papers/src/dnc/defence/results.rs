//! Results of the trained defence: right and wrong by question, of which all tables are computed. No texts.
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::{DefenceExperiment, TrainedModel};
use super::{DefenceError, ResultsProblem};
use earnest_eval::EvalError;
use earnest_results::RowsError;
use earnest_results::output::write_file;
use earnest_tasks::suite::dnc::{Dataset, Kind, Split, Target};
use earnest_train::LoraTraining;

/// Version of [`DefenceResults`]' JSON format.
pub const DEFENCE_FORMAT: u32 = 1;

/// Name of the results in the experiment's folder.
pub const RESULTS_FILE: &str = "results.json";

/// Outcomes of the models that are finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefenceResults {
    /// [`DEFENCE_FORMAT`].
    pub format: u32,
    pub title: String,
    /// The checkpoint's name.
    pub model: String,
    /// SHA-256 of its files, by name.
    pub files: BTreeMap<String, String>,
    pub dataset: Dataset,
    pub target: Target,
    /// Prompt, as `--prompt` takes it.
    pub prompt: String,
    pub splits: Vec<Split>,
    pub demonstrations: usize,
    /// Perturbations and seeds of the experiment, finished or not.
    pub kinds: Vec<Kind>,
    pub seeds: Vec<u64>,
    pub training: LoraTraining,
    /// Questions in the order of the outcomes.
    pub questions: Vec<String>,
    /// In the order of their trainings.
    pub models: Vec<ModelOutcomes>,
}

/// Outcomes of a trained model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelOutcomes {
    /// Perturbation of the training questions; none for the clean model.
    pub kind: Option<Kind>,
    pub seed: u64,
    /// Training rows, and how many of them are perturbed.
    pub examples: usize,
    pub perturbed_examples: usize,
    /// Seconds of the training's steps.
    pub seconds: f64,
    /// Step of the adapters that were kept: the last with the most exact answers to the held-out rows.
    pub kept_step: u64,
    /// Exact answers to the held-out rows at that step, and their number.
    pub held_out: (usize, usize),
    /// Outcomes on the original questions by the paper's metric.
    pub original: ScorerOutcomes,
    /// The same on perturbed ones.
    pub perturbed: BTreeMap<Kind, ScorerOutcomes>,
}

/// Outcomes by metric, a letter a question: `1` right, `0` wrong, `-` not perturbed because it is not eligible, `?` without an answer.
pub type ScorerOutcomes = BTreeMap<String, String>;

impl ModelOutcomes {
    pub fn model(&self) -> TrainedModel {
        TrainedModel { kind: self.kind, seed: self.seed }
    }
}

impl DefenceResults {
    /// Results of an experiment without models yet.
    pub(super) fn new(
        experiment: &DefenceExperiment,
        target: Target,
        model: String,
        files: BTreeMap<String, String>,
    ) -> Self {
        DefenceResults {
            format: DEFENCE_FORMAT,
            title: experiment.title.clone(),
            model,
            files,
            dataset: experiment.dataset,
            target,
            prompt: experiment.prompt.clone(),
            splits: experiment.splits.clone(),
            demonstrations: experiment.demonstrations,
            kinds: experiment.kinds.clone(),
            seeds: experiment.seeds.clone(),
            training: experiment.training.clone(),
            questions: Vec::new(),
            models: Vec::new(),
        }
    }

    /// Models that are not finished, by name.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for &seed in &self.seeds {
            for kind in std::iter::once(None).chain(self.kinds.iter().map(|kind| Some(*kind))) {
                let model = TrainedModel { kind, seed };
                if self.models.iter().all(|done| done.model() != model) {
                    missing.push(model.name());
                }
            }
        }
        missing
    }

    /// Parses the JSON text and checks that every outcome belongs to a question.
    ///
    /// # Errors
    /// The defect.
    pub fn parse(text: &str) -> Result<Self, ResultsProblem> {
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let Versioned { format } = serde_json::from_str(text)?;
        if format != DEFENCE_FORMAT {
            return Err(ResultsProblem::Format { found: format, known: DEFENCE_FORMAT });
        }
        let results: DefenceResults = serde_json::from_str(text)?;
        for model in &results.models {
            let scorers = model.original.values().chain(model.perturbed.values().flat_map(BTreeMap::values));
            for outcomes in scorers {
                if outcomes.len() != results.questions.len()
                    || !outcomes.bytes().all(|letter| b"01-?".contains(&letter))
                {
                    let (model, questions) = (model.model().name(), results.questions.len());
                    return Err(ResultsProblem::Outcomes { model, questions });
                }
            }
        }
        Ok(results)
    }

    /// Reads a results file, or that of an experiment's folder.
    ///
    /// # Errors
    /// [`DefenceError::Folder`], [`DefenceError::Results`].
    pub fn read(path: &Path) -> Result<Self, DefenceError> {
        let file = if path.is_dir() { path.join(RESULTS_FILE) } else { path.to_owned() };
        let text = earnest_digest::input::read_text(&file, earnest_digest::input::MOST_DOCUMENT)
            .map_err(|source| DefenceError::Folder { path: file.clone(), source })?;
        Self::parse(&text).map_err(|problem| DefenceError::Results { path: file.clone(), problem })
    }

    /// JSON text, with a line a list of outcomes.
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("text, numbers and text keys are JSON");
        format!("{text}\n")
    }

    /// Writes the text in an experiment's folder.
    ///
    /// # Errors
    /// [`DefenceError::Eval`].
    pub(super) fn write(&self, folder: &Path) -> Result<(), DefenceError> {
        write(&folder.join(RESULTS_FILE), &self.to_text())
    }
}

/// Writes a file that appears complete or not at all.
///
/// # Errors
/// [`DefenceError::Eval`].
pub(super) fn write(path: &Path, text: &str) -> Result<(), DefenceError> {
    let failed = |source| RowsError::Write { path: path.to_owned(), source };
    write_file(path, |out| out.write_all(text.as_bytes()).map_err(failed))
        .map_err(|error| EvalError::from(error).into())
}
