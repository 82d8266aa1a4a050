//! Errors of experiments.
use std::path::PathBuf;

use earnest_engine::EngineError;
use earnest_engine::cpu::LoadError;
use earnest_models::checkpoint::CheckpointError;

use crate::TrainError;
use crate::toml_place::at;
use earnest_digest::toml_file::TomlError;

/// Reason why an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The experiment file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The experiment file is invalid.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The defect.
        source: ExperimentFileError,
    },
    /// A results folder is damaged or belongs to another experiment.
    #[error("{}: {problem}", path.display())]
    Folder {
        /// The folder, or a file in it.
        path: PathBuf,
        /// The damage or mismatch.
        problem: String,
    },
    /// A training failed.
    #[error("{cell}: {source}")]
    Training {
        /// Name of the training.
        cell: String,
        source: Box<TrainError>,
    },
    /// A trained model could not be evaluated.
    #[error("{cell}: {source}")]
    Evaluation {
        /// Name of the training.
        cell: String,
        source: Box<EvaluationError>,
    },
}

/// Defect of an experiment file.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentFileError {
    /// The text is not TOML, or a top-level key is missing or unknown.
    #[error("{0}")]
    Toml(String),
    /// There are too many questions.
    #[error("{}questions: {count} is more than {most} per task and length", at(*line))]
    Questions {
        /// Line of the key.
        line: Option<usize>,
        /// Questions of the file.
        count: usize,
        /// Most that it may have.
        most: usize,
    },
    /// There is nothing to train or to ask.
    #[error("an experiment needs at least one seed, one [[grid]] and one question")]
    Empty,
    /// A list is longer than an experiment can be.
    #[error("{}{key} has {count} entries, more than {most}", at(*line))]
    TooMany {
        /// Line of the key.
        line: Option<usize>,
        /// Key of the list.
        key: &'static str,
        /// Its length.
        count: usize,
        /// Longest that it may be.
        most: usize,
    },
    /// A seed is listed twice.
    #[error("seed {0} is named twice")]
    RepeatedSeed(u64),
    /// A grid is invalid.
    #[error("{}grid {grid}: {source}", at(*line))]
    Grid {
        /// Line of the key that is wrong, else of the grid.
        line: Option<usize>,
        /// Quoted name of the grid, or its number.
        grid: String,
        /// The defect.
        source: Box<GridError>,
    },
}

impl GridError {
    /// Key of a grid that is wrong, if it is one.
    pub(super) fn key(&self) -> &'static str {
        match self {
            GridError::Settings(TrainError::Setting { setting, .. }) => setting,
            GridError::Criterion(_) => "until",
            GridError::Style(_) => "style",
            GridError::RestartsWithoutCriterion => "restarts",
            GridError::Label(_) => "label",
            GridError::EmptyAxis(axis) | GridError::RepeatedValue { axis, .. } => axis,
            GridError::Lengths(_) | GridError::ManyLengths(_) | GridError::ManyLengthsInAll { .. } => "lengths",
            _ => "name",
        }
    }
}

/// Defect of a grid in an experiment file.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// The criterion is invalid.
    #[error("until: {0}")]
    Criterion(#[from] crate::UnknownCriterion),
    /// The style is invalid.
    #[error("style: {0}")]
    Style(#[from] crate::UnknownStyle),
    /// Restarts have no meaning without a criterion.
    #[error("restarts needs until, the criterion that a training misses")]
    RestartsWithoutCriterion,
    /// A key is missing, unknown or of the wrong type.
    #[error("{}", .0.sentence())]
    Toml(#[from] TomlError),
    /// Two grids have the same name.
    #[error("another grid has this name")]
    RepeatedName,
    /// Two grids have different trainings of the same name.
    #[error("grid {other:?} has another training named {cell}; give this grid a label")]
    NameConflict {
        /// Name of the training.
        cell: String,
        /// Name of the other grid.
        other: String,
    },
    /// The label cannot be part of a folder name.
    #[error("label {0:?}: use only letters, digits, -, _ and ., and do not begin with .")]
    Label(String),
    /// The grids have too many trainings together.
    #[error("with this grid, the file has {trainings} trainings, more than {most}")]
    TooMany {
        /// Trainings so far, those that grids share counted each time.
        trainings: usize,
        /// Most that a file may have.
        most: usize,
    },
    /// An axis is an empty list.
    #[error("{0} is an empty list")]
    EmptyAxis(&'static str),
    /// An axis lists a value twice.
    #[error("{axis}: {value} is named twice")]
    RepeatedValue {
        /// Key of the axis.
        axis: &'static str,
        value: String,
    },
    /// A value of an axis is invalid.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// A list of lengths is invalid.
    #[error("invalid lengths {0:?}; write for instance 1-4,6")]
    Lengths(String),
    /// A list of lengths is too long.
    #[error("lengths and beyond may have up to {0} lengths, repeats counted")]
    ManyLengths(usize),
    /// The trainings have too many lengths together.
    #[error("with this grid, the trainings of the file have {lengths} lengths in all, more than {most}")]
    ManyLengthsInAll {
        /// Lengths so far.
        lengths: usize,
        /// Most that a file may have.
        most: usize,
    },
    /// A length is 0.
    #[error("0 is not a length; lengths begin at 1, for instance 1-4,6")]
    ZeroLength,
    /// Only one of `then` and `then_after` is given.
    #[error("then and then_after must be given together")]
    ThenWithoutAfter,
    /// The settings of a training are invalid.
    #[error(transparent)]
    Settings(#[from] TrainError),
}

/// Invalid value of an axis.
#[derive(Debug, thiserror::Error)]
pub enum AxisError {
    #[error(
        "unknown tokenizer {0:?}; write 1, 2 or 3, 2-random or 3-random, 2-left-to-right or 3-left-to-right, or places"
    )]
    Tokenizer(String),
    /// Unknown positional encoding.
    #[error("unknown positional encoding {0:?}; write rope, nope or alibi")]
    Position(String),
    /// Unknown size.
    #[error("unknown size {0:?}; write one of {names}, or five numbers", names = crate::Size::NAMED.map(|(name, _)| name).join(", "))]
    Size(String),
    /// Five numbers that are not compatible.
    #[error(transparent)]
    Dimensions(#[from] TrainError),
    /// Unknown number format.
    #[error(
        "unknown format {0:?}; write plain, or join with +: one of reversed, reversed-decimals, reversed-each and \
         reversed-total; padded; hinted"
    )]
    Format(String),
}

/// Reason why a trained model cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The questions cannot be generated.
    #[error(transparent)]
    Questions(#[from] TrainError),
    /// The model cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The engine cannot load the model.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The engine failed or rejected a question.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Reason why a results file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The text is not a results file.
    #[error("not a results file of an experiment: {0}")]
    Json(#[from] serde_json::Error),
    /// The file has the format of another version of earnest.
    #[error("the format is {found}, but this version of earnest reads format {expected}")]
    Format {
        /// Format of the file.
        found: u32,
        /// Format that can be read.
        expected: u32,
    },
}
