//! The error of stored results.
use std::io;
use std::path::PathBuf;

use earnest_rows::{FileError, Problem};
use earnest_tasks::suite::registry::OptionError;

use crate::{RowsError, RunError};

/// Failure of what reads or writes stored runs.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// An invalid setting or combination of settings.
    #[error("{0}")]
    Setting(Problem),
    /// Results that could not be read or written.
    #[error("{0}")]
    Results(Problem),
    /// A run that could not be read, written or continued.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Invalid options of a suite, or missing data.
    #[error(transparent)]
    Suite(#[from] OptionError),
    /// Rows that could not be handed on.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// An input file that cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl ResultsError {
    /// Returns the error of an invalid setting.
    pub fn setting(message: impl Into<String>) -> Self {
        ResultsError::Setting(Problem::new(message))
    }

    /// Returns the error of results that could not be read or written.
    pub fn results(message: impl Into<String>) -> Self {
        ResultsError::Results(Problem::new(message))
    }

    /// An input file that cannot be read.
    pub fn input(name: impl std::fmt::Display, source: io::Error) -> Self {
        FileError::input(name, source).into()
    }

    /// An input file that cannot be used.
    pub fn unread(path: impl Into<PathBuf>, reason: impl std::fmt::Display) -> Self {
        FileError::unread(path, reason).into()
    }

    /// A place of an input file that cannot be used.
    pub fn unread_at(path: impl Into<PathBuf>, place: impl std::fmt::Display, reason: impl std::fmt::Display) -> Self {
        FileError::unread_at(path, place, reason).into()
    }

    /// Adds a next step to a [`Problem`]; other errors have their own.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            ResultsError::Setting(problem) => ResultsError::Setting(problem.hint(hint)),
            ResultsError::Results(problem) => ResultsError::Results(problem.hint(hint)),
            ResultsError::File(error) => ResultsError::File(error.hint(hint)),
            other => other,
        }
    }

    /// The next step, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            ResultsError::Setting(problem) | ResultsError::Results(problem) => problem.hint.clone(),
            ResultsError::Run(error) => error.help(),
            ResultsError::Suite(error) => error.help.clone(),
            ResultsError::Rows(error) => error.help(),
            ResultsError::File(error) => error.help(),
        }
    }
}
