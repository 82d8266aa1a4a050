//! The error of logs.
use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use earnest_results::{ResultsError, RunError};
use earnest_rows::{FileError, Problem};
use earnest_tasks::suite::TooManySamples;
use earnest_tasks::suite::registry::OptionError;

/// Failure of reading or importing logs.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// An invalid setting or combination of settings.
    #[error("{0}")]
    Setting(Problem),
    /// A log that cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Results that could not be read or written.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A thread that the system did not start, for want of memory or of processes.
    #[error("cannot {work}: a thread could not be started ({source})")]
    Thread { work: &'static str, source: io::Error },
    /// A thread whose neighbour stopped, and has the reason.
    #[error("the samples are not written")]
    Gone,
}

impl From<RunError> for LogError {
    fn from(error: RunError) -> Self {
        LogError::Results(error.into())
    }
}

impl From<OptionError> for LogError {
    fn from(error: OptionError) -> Self {
        LogError::Results(error.into())
    }
}

impl From<TooManySamples> for LogError {
    fn from(error: TooManySamples) -> Self {
        LogError::setting(error.to_string())
    }
}

impl LogError {
    /// Returns the error of an invalid setting.
    pub fn setting(message: impl Into<String>) -> Self {
        LogError::Setting(Problem::new(message))
    }

    /// Returns the error of results that could not be read or written.
    pub fn results(message: impl Into<String>) -> Self {
        ResultsError::results(message).into()
    }

    /// The error of a thread that the system did not start.
    pub fn thread(work: &'static str, source: io::Error) -> Self {
        LogError::Thread { work, source }
    }

    /// An input file that cannot be read.
    pub fn input(name: impl Display, source: io::Error) -> Self {
        FileError::input(name, source).into()
    }

    /// A line of an input file that cannot be used.
    pub fn line(path: impl Into<PathBuf>, line: usize, reason: impl Display) -> Self {
        FileError::line(path, line, reason).into()
    }

    /// A log that cannot be used.
    pub fn unread(path: impl Into<PathBuf>, reason: impl Display) -> Self {
        FileError::unread(path, reason).into()
    }

    /// A place of a log that cannot be used.
    pub fn unread_at(path: impl Into<PathBuf>, place: impl Display, reason: impl Display) -> Self {
        FileError::unread_at(path, place, reason).into()
    }

    /// Adds a next step to a [`Problem`]; other errors have their own.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            LogError::Setting(problem) => LogError::Setting(problem.hint(hint)),
            LogError::File(error) => LogError::File(error.hint(hint)),
            LogError::Results(error) => LogError::Results(error.hint(hint)),
            other @ (LogError::Thread { .. } | LogError::Gone) => other,
        }
    }

    /// The next step, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            LogError::Setting(problem) => problem.hint.clone(),
            LogError::File(error) => error.help(),
            LogError::Results(error) => error.help(),
            LogError::Gone => None,
            LogError::Thread { .. } => Some("allow more memory or processes (`ulimit -v`, `ulimit -u`)".to_owned()),
        }
    }
}
