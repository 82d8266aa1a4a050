//! The error of an evaluation.
use std::io;
use std::path::PathBuf;

use earnest_logs::LogError;
use earnest_models::hub::HubError;
use earnest_rows::{FileError, Problem};
use earnest_tasks::suite::TooManySamples;
use earnest_tasks::suite::registry::OptionError;

use crate::prompt::PromptError;
use earnest_results::{ResultsError, RowsError, RunError};

/// Failure of an evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// An invalid setting or combination of settings.
    #[error("{0}")]
    Setting(Problem),
    /// An unusable checkpoint.
    #[error("{0}")]
    Model(Problem),
    /// An engine that did not start or cannot be reached.
    #[error("{0}")]
    Engine(Problem),
    /// Results that could not be read or written.
    #[error("{0}")]
    Results(Problem),
    /// A model reference that could not be resolved.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// A prompt that could not be rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A run that could not be read, written or continued.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Invalid options of a suite, or missing data.
    #[error(transparent)]
    Suite(#[from] OptionError),
    /// Rows that could not be handed on.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// The settings differ from those of the run to resume.
    #[error("{run} cannot be continued, because its settings have changed: {}", differences.join(", "))]
    SettingsChanged { run: String, differences: Vec<String> },
    /// Every part of the run is finished, but they are not merged.
    #[error("all {of} parts of this run are finished but not merged")]
    PartsNotMerged {
        of: usize,
        /// True if the command can start a new run instead.
        can_repeat: bool,
    },
    /// The user stopped the session.
    #[error("interrupted: {settled} of {planned} samples are in {}", store.display())]
    Interrupted { run: String, settled: usize, planned: usize, store: PathBuf },
    /// An input file that cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Sharded runs that could not be joined, because parts are missing or unfinished.
    #[error("{} not joined, because parts are missing", if *runs == 1 { "1 run is".to_owned() } else { format!("{runs} runs are") })]
    PartsMissing { runs: usize },
    /// More samples failed than the settings allow.
    #[error("{failed} of {planned} samples failed in this session, more than the setting `fail_on_error` allows")]
    TooManyFailures { run: String, failed: usize, planned: usize },
}

impl From<ResultsError> for EvalError {
    fn from(error: ResultsError) -> Self {
        match error {
            ResultsError::Setting(problem) => EvalError::Setting(problem),
            ResultsError::Results(problem) => EvalError::Results(problem),
            ResultsError::Run(error) => EvalError::Run(error),
            ResultsError::Suite(error) => EvalError::Suite(error),
            ResultsError::Rows(error) => EvalError::Rows(error),
            ResultsError::File(error) => EvalError::File(error),
        }
    }
}

impl From<LogError> for EvalError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Setting(problem) => EvalError::Setting(problem),
            LogError::File(error) => EvalError::File(error),
            LogError::Results(error) => error.into(),
            LogError::Thread { work, source } => EvalError::thread(work, source),
            LogError::Gone => EvalError::results(error.to_string()),
        }
    }
}

impl From<TooManySamples> for EvalError {
    fn from(error: TooManySamples) -> Self {
        EvalError::setting(error.to_string())
    }
}

impl EvalError {
    /// Returns the error of an invalid setting.
    pub fn setting(message: impl Into<String>) -> Self {
        EvalError::Setting(Problem::new(message))
    }

    /// Returns the error of an unusable checkpoint.
    pub fn model(message: impl Into<String>) -> Self {
        EvalError::Model(Problem::new(message))
    }

    /// Returns the error of an engine that did not start or cannot be reached.
    pub fn engine(message: impl Into<String>) -> Self {
        EvalError::Engine(Problem::new(message))
    }

    /// Returns the error of results that could not be read or written.
    pub fn results(message: impl Into<String>) -> Self {
        EvalError::Results(Problem::new(message))
    }

    /// The error of a thread that the system did not start, for want of memory or of processes.
    pub fn thread(work: &str, source: io::Error) -> Self {
        EvalError::engine(format!("cannot {work}: a thread could not be started ({source})"))
            .hint("allow more memory or processes (`ulimit -v`, `ulimit -u`)")
    }

    /// An input file that cannot be read.
    pub fn input(name: impl std::fmt::Display, source: io::Error) -> Self {
        FileError::input(name, source).into()
    }

    /// A line of an input file that cannot be used.
    pub fn line(path: impl Into<PathBuf>, line: usize, reason: impl std::fmt::Display) -> Self {
        FileError::line(path, line, reason).into()
    }

    /// Adds a next step to a [`Problem`]; other errors have their own.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            EvalError::Setting(problem) => EvalError::Setting(problem.hint(hint)),
            EvalError::Model(problem) => EvalError::Model(problem.hint(hint)),
            EvalError::Engine(problem) => EvalError::Engine(problem.hint(hint)),
            EvalError::Results(problem) => EvalError::Results(problem.hint(hint)),
            EvalError::File(error) => EvalError::File(error.hint(hint)),
            other => other,
        }
    }

    /// The next step, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            EvalError::Setting(problem)
            | EvalError::Model(problem)
            | EvalError::Engine(problem)
            | EvalError::Results(problem) => problem.hint.clone(),
            EvalError::File(error) => error.help(),
            EvalError::PartsMissing { .. } => {
                Some("finish the parts (`earnest resume`) or name the folders that have them".to_owned())
            }
            EvalError::Hub(error) => error.help(),
            EvalError::Prompt(error) => Some(error.help().to_owned()),
            EvalError::Run(error) => error.help(),
            EvalError::Suite(error) => error.help.clone(),
            EvalError::Rows(error) => error.help(),
            EvalError::SettingsChanged { run, .. } => {
                Some(format!("`earnest run --from {run}` starts a new run with the current settings"))
            }
            EvalError::PartsNotMerged { can_repeat, .. } => {
                let new = if *can_repeat { "; the setting `new` starts over" } else { "" };
                Some(format!("`earnest merge` merges them; then this command shows the whole run{new}"))
            }
            EvalError::Interrupted { run, .. } => {
                Some(format!("the same command continues the run, and so does `earnest resume {run}`"))
            }
            EvalError::TooManyFailures { run, .. } => Some(format!(
                "`earnest samples {run} --wrong` shows them; the same command, or `earnest resume {run}`, continues without those \
                 that failed permanently"
            )),
        }
    }
}
