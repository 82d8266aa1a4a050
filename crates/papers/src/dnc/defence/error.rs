//! Errors of the trained defence.
use std::path::PathBuf;

use earnest_eval::EvalError;
use earnest_eval::study::StudyError;
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
        /// The key and a valid alternative, or the line.
        problem: String,
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
        /// The damage or the other format.
        problem: String,
    },
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
