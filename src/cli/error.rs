//! Errors for the user: the problem, its place and the next step.
use std::io::ErrorKind;

use super::Exit;
use earnest_eval::EvalError;
use earnest_eval::prompt::PromptError;
use earnest_eval::study::StudyError;
use earnest_logs::LogError;
use earnest_models::hub::HubError;
use earnest_report::plot::DrawingError;
use earnest_report::{ReportError, keys};
use earnest_results::{ResultsError, RowsError, RunError};

/// An error with its exit code and, if there is one, the next step.
#[derive(Debug)]
pub struct CliError {
    pub exit: Exit,
    /// One sentence that names the thing and the place; causes follow after colons.
    pub message: String,
    pub help: Option<String>,
    /// Runs that a name could mean.
    pub ambiguous: Option<Box<Ambiguous>>,
}

/// A name that several runs have, with what tells them apart.
#[derive(Debug)]
pub struct Ambiguous {
    pub name: String,
    pub runs: Vec<String>,
    pub labels: Vec<String>,
}

impl CliError {
    /// An error without a next step.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        CliError::of(exit, message, None)
    }

    /// An error with its next step, if there is one.
    pub fn of(exit: Exit, message: impl Into<String>, help: Option<String>) -> Self {
        CliError { exit, message: message.into(), help, ambiguous: None }
    }

    /// An invalid command line.
    pub fn usage(message: impl Into<String>) -> Self {
        CliError::new(Exit::Usage, message)
    }

    /// Adds the next step.
    pub fn help(self, help: impl Into<String>) -> Self {
        CliError { help: Some(help.into()), ..self }
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        let exit = match &error {
            RunError::Engine(_) | RunError::LostRequests(_) | RunError::UnknownRequest(_) => Exit::Engine,
            RunError::RepeatedItem { .. }
            | RunError::NoRun { .. }
            | RunError::NotExact { .. }
            | RunError::AmbiguousRun { .. } => Exit::Usage,
            _ => Exit::Results,
        };
        let found = CliError::of(exit, error.to_string(), error.help());
        match error {
            RunError::AmbiguousRun { name, runs, labels } => {
                CliError { ambiguous: Some(Box::new(Ambiguous { name, runs, labels })), ..found }
            }
            _ => found,
        }
    }
}

impl From<HubError> for CliError {
    fn from(error: HubError) -> Self {
        let exit = match &error {
            HubError::NotARepository { .. }
            | HubError::IsAPath { .. }
            | HubError::NotPinned { .. }
            | HubError::NoRevision { .. }
            | HubError::SeveralCommits { .. }
            | HubError::BadEndpoint { .. }
            | HubError::Registry { .. } => Exit::Usage,
            _ => Exit::Model,
        };
        CliError::of(exit, error.to_string(), error.help())
    }
}

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        CliError::new(Exit::Model, error.to_string()).help(error.help())
    }
}

impl From<RowsError> for CliError {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::Run(error) => error.into(),
            RowsError::Write { ref source, .. } if source.kind() == ErrorKind::InvalidInput => {
                CliError::usage(error.to_string()).help("name another file")
            }
            error => CliError::of(Exit::Results, error.to_string(), error.help()),
        }
    }
}

impl From<DrawingError> for CliError {
    fn from(error: DrawingError) -> Self {
        CliError::new(Exit::Results, error.to_string()).help("write it as SVG, which has no limit")
    }
}

impl From<ResultsError> for CliError {
    fn from(error: ResultsError) -> Self {
        EvalError::from(error).into()
    }
}

impl From<LogError> for CliError {
    fn from(error: LogError) -> Self {
        EvalError::from(error).into()
    }
}

impl From<EvalError> for CliError {
    fn from(error: EvalError) -> Self {
        let exit = match error {
            EvalError::Hub(error) => return error.into(),
            EvalError::Prompt(error) => return error.into(),
            EvalError::Run(error) => return error.into(),
            EvalError::Rows(error) => return error.into(),
            EvalError::Suite(error) => return error.into(),
            EvalError::Setting(_) | EvalError::File(_) | EvalError::PartsNotMerged { .. } => Exit::Usage,
            EvalError::Model(_) => Exit::Model,
            EvalError::Engine(_) => Exit::Engine,
            EvalError::Results(_) | EvalError::SettingsChanged { .. } | EvalError::PartsMissing { .. } => Exit::Results,
            EvalError::Interrupted { .. } => Exit::Interrupted,
            EvalError::TooManyFailures { .. } => Exit::TooManyFailures,
        };
        CliError::of(exit, error.to_string(), error.help())
    }
}

impl From<ReportError> for CliError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Setting(problem) => EvalError::Setting(problem).into(),
            ReportError::Results(error) => error.into(),
            ReportError::Logs(error) => error.into(),
            ReportError::Evaluation(error) => (*error).into(),
            ReportError::Page(_) => CliError::new(Exit::Results, error.to_string()),
        }
    }
}

impl From<StudyError> for CliError {
    fn from(error: StudyError) -> Self {
        let exit = if error.mistakes.iter().all(|mistake| mistake.of_model) { Exit::Model } else { Exit::Usage };
        // A study file has keys where a command has options.
        CliError::of(exit, keys(&error.to_string()), error.help().map(|help| keys(&help)))
    }
}
