//! The error of comparisons, profiles, reports and exports.
use earnest_eval::EvalError;
use earnest_logs::LogError;
use earnest_results::{ResultsError, RowsError, RunError};
use earnest_rows::Problem;
use earnest_tasks::suite::registry::OptionError;

/// Failure of a comparison, a profile, a report or an export of stored runs or logs.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Runs or settings of which it cannot be made.
    #[error("{0}")]
    Setting(Problem),
    /// Results that could not be read.
    #[error(transparent)]
    Results(ResultsError),
    /// Logs that could not be read.
    #[error(transparent)]
    Logs(LogError),
    /// Samples of a run, with their questions, that could not be read.
    #[error(transparent)]
    Evaluation(Box<EvalError>),
    /// Templates of a page that failed.
    #[error("the page cannot be made: {0}")]
    Page(#[from] minijinja::Error),
}

impl From<ResultsError> for ReportError {
    fn from(error: ResultsError) -> Self {
        match error {
            ResultsError::Setting(problem) => ReportError::Setting(problem),
            error => ReportError::Results(error),
        }
    }
}

impl From<RunError> for ReportError {
    fn from(error: RunError) -> Self {
        ReportError::Results(error.into())
    }
}

impl From<RowsError> for ReportError {
    fn from(error: RowsError) -> Self {
        ReportError::Results(error.into())
    }
}

impl From<OptionError> for ReportError {
    fn from(error: OptionError) -> Self {
        ReportError::Results(error.into())
    }
}

impl From<LogError> for ReportError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Setting(problem) => ReportError::Setting(problem),
            LogError::Results(error) => error.into(),
            error => ReportError::Logs(error),
        }
    }
}

impl From<EvalError> for ReportError {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::Setting(problem) => ReportError::Setting(problem),
            error => ReportError::Evaluation(Box::new(error)),
        }
    }
}

impl ReportError {
    /// The error of runs or settings of which it cannot be made.
    pub fn setting(message: impl Into<String>) -> Self {
        ReportError::Setting(Problem::new(message))
    }

    /// The error of results that could not be read.
    pub fn results(message: impl Into<String>) -> Self {
        ReportError::Results(ResultsError::results(message))
    }

    /// The next step, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            ReportError::Setting(problem) => problem.hint.clone(),
            ReportError::Results(error) => error.help(),
            ReportError::Logs(error) => error.help(),
            ReportError::Evaluation(error) => error.help(),
            ReportError::Page(_) => None,
        }
    }

    /// Adds a next step where there is none of its own.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            ReportError::Setting(problem) => ReportError::Setting(problem.hint(hint)),
            ReportError::Results(error) => ReportError::Results(error.hint(hint)),
            ReportError::Logs(error) => ReportError::Logs(error.hint(hint)),
            ReportError::Evaluation(error) => ReportError::Evaluation(Box::new(error.hint(hint))),
            ReportError::Page(error) => ReportError::Page(error),
        }
    }
}
