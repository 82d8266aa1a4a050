//! Experiment files of the trained defence: TOML.
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{DefenceError, ExperimentProblem};
use earnest_digest::toml_file;
use earnest_eval::prompt::Prompts;
use earnest_models::checkpoint::Compute;
use earnest_results::ModeRequest;
use earnest_tasks::suite::dnc::{Dataset, Kind, Split, Target};
use earnest_tasks::suite::registry::OptionValues;
use earnest_train::{LoraTraining, PromptForm};

/// The trained defence of one model: one clean training a seed, and a defended one a seed and perturbation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefenceExperiment {
    pub title: String,
    /// Checkpoint that is trained: a path, a name of the list of models, or `org/repo@commit`.
    pub model: String,
    /// Folder of the data set.
    pub data: PathBuf,
    /// Data set of the folder.
    #[serde(default = "asdiv_a")]
    pub dataset: Dataset,
    /// Perturbations that are attacked with and defended against.
    pub kinds: Vec<Kind>,
    /// Seeds of the trainings.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// Prompt of training and asking, as `--prompt` takes it: `raw` or `chat`, and the suite's prompt.
    #[serde(default = "raw_equation")]
    pub prompt: String,
    /// Parts of the data whose questions are asked; the train part is for training.
    #[serde(default = "test_part")]
    pub splits: Vec<Split>,
    /// Number of questions to ask, the first of the parts; none for all.
    #[serde(default)]
    pub questions: Option<usize>,
    /// Worked examples before each question that is asked; training has none.
    #[serde(default)]
    pub demonstrations: usize,
    #[serde(default = "one")]
    pub perturbation_seed: u64,
    /// Arithmetic of the trained models when they are asked; none for f32.
    #[serde(default)]
    pub compute: Option<Compute>,
    /// Folder of the trained models and results [default: the file's name without .toml, beside the file].
    #[serde(default)]
    pub out: Option<PathBuf>,
    /// The trainings, which are the same but for their data.
    #[serde(default)]
    pub training: LoraTraining,
}

fn asdiv_a() -> Dataset {
    Dataset::AsdivA
}
fn one_seed() -> Vec<u64> {
    vec![1]
}
fn one() -> u64 {
    1
}
fn raw_equation() -> String {
    "raw,equation".to_owned()
}
fn test_part() -> Vec<Split> {
    vec![Split::Test]
}

/// A model of the experiment: trained on clean questions, or on those of a perturbation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainedModel {
    /// Perturbation of the training questions; none for the clean model.
    pub kind: Option<Kind>,
    pub seed: u64,
}

impl TrainedModel {
    /// Name of the training questions: `clean`, or the perturbation.
    pub fn questions(&self) -> &'static str {
        self.kind.map_or("clean", Kind::name)
    }

    /// Name in folders and messages, e.g. `noise-1`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.questions(), self.seed)
    }
}

impl DefenceExperiment {
    /// Reads a file; its paths are then relative to the working directory.
    ///
    /// # Errors
    /// [`DefenceError::Folder`], [`DefenceError::File`].
    pub fn read(path: &Path) -> Result<Self, DefenceError> {
        let text = earnest_digest::input::read_text(path, earnest_digest::input::MOST_SETTINGS)
            .map_err(|source| DefenceError::Folder { path: path.to_owned(), source })?;
        let failed = |problem| DefenceError::File { path: path.to_owned(), problem };
        let mut experiment = Self::parse(&text).map_err(failed)?;
        let base = path.parent().unwrap_or(Path::new(""));
        experiment.data = base.join(&experiment.data);
        experiment.out = Some(experiment.out.map_or_else(|| path.with_extension(""), |out| base.join(out)));
        let beside = base.join(&experiment.model);
        if beside.exists() {
            experiment.model = beside.display().to_string();
        }
        Ok(experiment)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// The first defect.
    pub fn parse(text: &str) -> Result<Self, ExperimentProblem> {
        let experiment: DefenceExperiment = toml_file::read(text).map_err(ExperimentProblem::Toml)?;
        experiment.check()?;
        Ok(experiment)
    }

    fn check(&self) -> Result<(), ExperimentProblem> {
        let twice = |count: usize, distinct: usize| count != distinct;
        let mut kinds = self.kinds.clone();
        kinds.sort_unstable();
        kinds.dedup();
        let mut seeds = self.seeds.clone();
        seeds.sort_unstable();
        seeds.dedup();
        if kinds.is_empty() || seeds.is_empty() {
            return Err(ExperimentProblem::Nothing);
        }
        if twice(self.kinds.len(), kinds.len()) || twice(self.seeds.len(), seeds.len()) {
            return Err(ExperimentProblem::Twice);
        }
        if kinds.contains(&Kind::Logic) {
            return Err(ExperimentProblem::Logic);
        }
        let dataset = self.dataset;
        if let Some(&kind) = kinds.iter().find(|kind| !kind.applies_to(dataset)) {
            return Err(ExperimentProblem::Kind { dataset, kind });
        }
        if self.splits.is_empty() || self.splits.contains(&Split::Train) {
            return Err(ExperimentProblem::Splits);
        }
        if self.questions == Some(0) {
            return Err(ExperimentProblem::NoQuestions);
        }
        let target = self.target()?;
        if !target.applies_to(dataset) {
            return Err(ExperimentProblem::Target { dataset, target });
        }
        self.form().map(|_| ())
    }

    fn prompts(&self) -> Result<Prompts, ExperimentProblem> {
        self.prompt.parse::<Prompts>().map_err(ExperimentProblem::Prompt)
    }

    /// Output that is asked for.
    pub(super) fn target(&self) -> Result<Target, ExperimentProblem> {
        let names = self.prompts()?.names;
        let found = match names.as_slice() {
            [name] => Target::ALL.into_iter().find(|target| target.name() == name),
            _ => None,
        };
        found.ok_or_else(|| ExperimentProblem::NotOnePrompt { prompt: self.prompt.clone() })
    }

    pub(super) fn form(&self) -> Result<PromptForm, ExperimentProblem> {
        match self.prompts()?.mode {
            None | Some(ModeRequest::Raw) => Ok(PromptForm::Raw),
            Some(ModeRequest::Chat) => Ok(PromptForm::Chat),
            Some(ModeRequest::Auto) => Err(ExperimentProblem::AutoPrompt),
        }
    }

    /// The models, seed by seed, the clean one first.
    pub fn models(&self) -> Vec<TrainedModel> {
        let of_seed = |seed: u64| {
            let kinds = self.kinds.iter().map(|kind| Some(*kind));
            std::iter::once(None).chain(kinds).map(move |kind| TrainedModel { kind, seed })
        };
        self.seeds.iter().flat_map(|seed| of_seed(*seed)).collect()
    }

    /// Perturbations that a model is asked: the clean one all, a defended one its own.
    pub(super) fn asked(&self, model: TrainedModel) -> Vec<Kind> {
        model.kind.map_or_else(|| self.kinds.clone(), |kind| vec![kind])
    }

    /// Options of the suite without parts and examples.
    pub(super) fn options(&self, kinds: &[Kind], prompts: Vec<String>) -> OptionValues {
        let names: Vec<_> = kinds.iter().map(|kind| kind.name().into()).collect();
        let mut options = OptionValues::new(self.perturbation_seed, prompts)
            .with("data", self.data.as_os_str())
            .with("dataset", self.dataset.name());
        options.set("kinds", names);
        options
    }

    /// The prompts, checked.
    ///
    /// # Errors
    /// As [`DefenceExperiment::parse`].
    pub(super) fn checked_prompts(&self) -> Result<(Prompts, PromptForm), ExperimentProblem> {
        let form = self.form()?;
        let mode = match form {
            PromptForm::Raw => ModeRequest::Raw,
            PromptForm::Chat => ModeRequest::Chat,
        };
        Ok((Prompts { mode: Some(mode), ..self.prompts()? }, form))
    }
}
