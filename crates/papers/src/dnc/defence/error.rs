//! Errors of the trained defence.
use std::path::PathBuf;

use earnest_digest::toml_file::TomlError;
use earnest_eval::EvalError;
use earnest_eval::study::StudyError;
use earnest_tasks::suite::dnc::{Dataset, Kind, Target};
use earnest_train::TrainError;
use earnest_train::experiment::ExperimentError;

/// Reason why the trained defence cannot be run or shown.
#[derive(Debug, thiserror::Error)]
pub enum DefenceError {
    /// The experiment file cannot be used.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        problem: ExperimentProblem,
    },
    /// A file or folder of the experiment cannot be read or written.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A results file that this version cannot read.
    #[error("{}: {problem}", path.display())]
    Results {
        /// The file.
        path: PathBuf,
        problem: ResultsProblem,
    },
    /// The experiment cannot be what its text says.
    #[error(transparent)]
    Experiment(#[from] ExperimentProblem),
    /// A training failed.
    #[error("{model}: {source}")]
    Training {
        /// Name of the model.
        model: String,
        source: Box<TrainError>,
    },
    /// The log of a training cannot be read.
    #[error(transparent)]
    Log(#[from] Box<ExperimentError>),
    /// Questions cannot be asked as the experiment says.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The model, the data or the answers cannot be had.
    #[error(transparent)]
    Eval(#[from] EvalError),
}

/// Defect of an experiment file.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentProblem {
    /// The text is not TOML, or not that of an experiment.
    #[error("{}", .0.sentence())]
    Toml(TomlError),
    #[error("name at least one of kinds and one of seeds")]
    Nothing,
    #[error("kinds or seeds has a value twice")]
    Twice,
    #[error("logic has no defence, neither here nor in the paper: it asks other questions; leave it out of kinds")]
    Logic,
    /// The data set lacks a perturbation.
    #[error("{} has no {kind}; leave it out of kinds", dataset.title())]
    Kind { dataset: Dataset, kind: Kind },
    #[error("splits: ask valid, test or both; the train part is for training")]
    Splits,
    #[error("questions is 0: leave it out to ask all")]
    NoQuestions,
    /// The data set lacks an output.
    #[error("prompt: {} has no {target}; use answer or cot", dataset.title())]
    Target { dataset: Dataset, target: Target },
    /// The prompt cannot be read.
    #[error("prompt: {0}")]
    Prompt(String),
    /// The prompt has none or several names.
    #[error("prompt: {prompt:?} does not name one prompt of {}, e.g. \"raw,equation\"", Target::ALL.map(Target::name).join(", "))]
    NotOnePrompt { prompt: String },
    #[error("prompt: write raw or chat instead of auto")]
    AutoPrompt,
}

/// Defect of a results file.
#[derive(Debug, thiserror::Error)]
pub enum ResultsProblem {
    /// The text is not that of results.
    #[error("not results of `earnest reproduce dnc --run`: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of the format.
    #[error("the format is {found}, but this version of earnest reads format {known}")]
    Format { found: u32, known: u32 },
    /// Outcomes that do not belong to the questions.
    #[error("damaged: {model} has not one of 0, 1, - and ? for each of {questions} questions")]
    Outcomes { model: String, questions: usize },
}
