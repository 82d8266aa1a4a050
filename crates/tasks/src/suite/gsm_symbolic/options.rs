//! Options of the suite.
use serde::{Deserialize, Serialize};

use super::prompt::{Prompt, TrailingSpace};
use super::rows::Set;

/// Most questions drawn from a template of our own: more than enough for any statistics.
pub const MOST_PER_TEMPLATE: usize = 1_000;

/// Source of the questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Files of questions (`gsm-symbolic`).
    Files(Vec<DataFile>),
    /// Our own templates (`gsm-mini`).
    Own { per_template: usize, seed: u64 },
}

/// A file of questions. A run with another content is another run, wherever the file lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Its set; `main` brings `base` with it.
    pub set: Set,
    /// Its place: an absolute path, or `apple/GSM-Symbolic@<commit>/<file>` in the Hugging Face cache. Under this name
    /// it is no part of the settings' hash (`RunSettings::sha256` of stored runs).
    #[serde(alias = "path")]
    pub place: String,
    /// Lower-case hexadecimal.
    pub sha256: String,
}

/// Deciding scorer; the others are reported beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scorer {
    /// The study's own extraction.
    #[default]
    Study,
    /// The same, and no other question begins behind the answer.
    StudyStrict,
    /// The last statement of a final answer.
    Strict,
    /// The last number.
    Flexible,
    /// The answer as a careful person reads it ([`earnest_answer::reader`]).
    Final,
}

impl Scorer {
    /// The names, the default for conversations first.
    pub const NAMES: [&str; 5] = ["final", "study", "study_strict", "strict", "flexible"];

    /// The name of the scorer in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Scorer::Study => "study",
            Scorer::StudyStrict => "study_strict",
            Scorer::Strict => "strict",
            Scorer::Flexible => "flexible",
            Scorer::Final => "final",
        }
    }

    /// True for the study's scorer; it is left out of manifests, so that runs keep their identity.
    pub fn is_study(&self) -> bool {
        *self == Scorer::Study
    }
}

/// Options of the suite; with the questions they determine the items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub source: Source,
    pub prompts: Vec<Prompt>,
    pub sets: Vec<Set>,
    /// Only the first so many questions of a template in each set but `base`.
    pub instances: Option<usize>,
    /// Only these templates.
    pub templates: Option<Vec<u32>>,
    pub trailing_space: TrailingSpace,
    /// The whole prompt is one turn of a conversation: no stop strings, and thinking is not part of the answer.
    pub chat: bool,
    /// The interpreter that runs code, where the prompts ask for code; none is the built-in one.
    #[serde(default)]
    pub python: Option<String>,
    /// The deciding scorer.
    #[serde(rename = "profile", default, skip_serializing_if = "Scorer::is_study")]
    pub scorer: Scorer,
}

/// Error of options that describe no items.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    #[error("no prompt is chosen")]
    NoPrompt,
    #[error("the prompt {0} is named twice")]
    RepeatedPrompt(Prompt),
    #[error("no set of questions is chosen")]
    NoSet,
    #[error("the set {0} is named twice")]
    RepeatedSet(Set),
    #[error("there are no questions of the set {0}")]
    NoRows(Set),
    #[error("0 instances of a template are no questions")]
    NoInstances,
    #[error("{0} questions per template: take 1 to {MOST_PER_TEMPLATE}")]
    PerTemplate(usize),
    #[error("there is no template {template}; the questions have templates {first} to {last}")]
    NoTemplate { template: u32, first: u32, last: u32 },
    #[error("{0}")]
    Draw(#[from] super::drawn::DrawError),
    #[error("{0}")]
    Template(#[from] super::template::TemplateError),
    #[error("{0}")]
    Rows(#[from] super::rows::RowError),
}

impl Options {
    /// All prompts on base and main, as in the study, with questions from here.
    pub fn new(source: Source) -> Self {
        Options {
            source,
            prompts: vec![Prompt::Gsm],
            sets: vec![Set::Base, Set::Main],
            instances: None,
            templates: None,
            trailing_space: TrailingSpace::Keep,
            chat: false,
            python: None,
            scorer: Scorer::default(),
        }
    }

    /// Checks what can be checked without the questions.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), OptionsError> {
        if self.prompts.is_empty() {
            return Err(OptionsError::NoPrompt);
        }
        if let Some(prompt) = repeated(&self.prompts) {
            return Err(OptionsError::RepeatedPrompt(prompt));
        }
        if self.sets.is_empty() {
            return Err(OptionsError::NoSet);
        }
        if let Some(set) = repeated(&self.sets) {
            return Err(OptionsError::RepeatedSet(set));
        }
        if self.instances == Some(0) {
            return Err(OptionsError::NoInstances);
        }
        match &self.source {
            Source::Own { per_template, .. } if !(1..=MOST_PER_TEMPLATE).contains(per_template) => {
                Err(OptionsError::PerTemplate(*per_template))
            }
            _ => Ok(()),
        }
    }

    /// True if some prompt asks for a Python function.
    pub fn asks_for_code(&self) -> bool {
        self.prompts.iter().any(|prompt| prompt.is_code())
    }
}

fn repeated<T: Copy + PartialEq>(items: &[T]) -> Option<T> {
    items.iter().enumerate().find(|(index, item)| items[..*index].contains(item)).map(|(_, item)| *item)
}
