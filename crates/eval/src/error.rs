//! The error of an evaluation.
use std::io;
use std::path::PathBuf;

use earnest_models::hub::HubError;
use earnest_rows::FileError;
use earnest_tasks::suite::TooManySamples;
use earnest_tasks::suite::registry::OptionError;

use crate::prompt::PromptError;
use crate::report::ReportError;
use crate::run::RunError;

/// A problem in one sentence, with an optional next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    pub hint: Option<String>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

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
    /// A report that could not be made.
    #[error(transparent)]
    Report(#[from] ReportError),
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
    /// An input file that cannot be read.
    #[error("cannot read {name}: {source}")]
    Input { name: String, source: io::Error },
    /// A line of an input file that cannot be used.
    #[error("{} line {line}: {problem}", path.display())]
    Line { path: PathBuf, line: usize, problem: Problem },
    /// A log of another tool that cannot be used, or a place in it: a sample, an entry, a column.
    #[error("{}{}: {problem}", path.display(), place.as_ref().map_or_else(String::new, |place| format!(", {place}")))]
    Log { path: PathBuf, place: Option<String>, problem: Problem },
    /// Sharded runs that could not be joined, because parts are missing or unfinished.
    #[error("{} not joined, because parts are missing", if *runs == 1 { "1 run is".to_owned() } else { format!("{runs} runs are") })]
    PartsMissing { runs: usize },
    /// More samples failed than the settings allow.
    #[error("{failed} of {planned} samples failed in this session, more than --fail-on-error allows")]
    TooManyFailures { run: String, failed: usize, planned: usize },
}

impl From<FileError> for EvalError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Input { path, source } => EvalError::input(path.display(), source),
            FileError::Unread { path, message, help } => EvalError::log(path, message).hint(help),
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
        EvalError::Setting(Problem { message: message.into(), hint: None })
    }

    /// Returns the error of an unusable checkpoint.
    pub fn model(message: impl Into<String>) -> Self {
        EvalError::Model(Problem { message: message.into(), hint: None })
    }

    /// Returns the error of an engine that did not start or cannot be reached.
    pub fn engine(message: impl Into<String>) -> Self {
        EvalError::Engine(Problem { message: message.into(), hint: None })
    }

    /// Returns the error of results that could not be read or written.
    pub fn results(message: impl Into<String>) -> Self {
        EvalError::Results(Problem { message: message.into(), hint: None })
    }

    /// The error of a thread that the system did not start, for want of memory or of processes.
    pub fn thread(work: &str, source: io::Error) -> Self {
        EvalError::engine(format!("cannot {work}: a thread could not be started ({source})"))
            .hint("allow more memory or processes (`ulimit -v`, `ulimit -u`)")
    }

    /// An input file that cannot be read.
    pub fn input(name: impl std::fmt::Display, source: io::Error) -> Self {
        EvalError::Input { name: name.to_string(), source }
    }

    /// A line of an input file that cannot be used.
    pub fn line(path: impl Into<PathBuf>, line: usize, reason: impl std::fmt::Display) -> Self {
        EvalError::Line { path: path.into(), line, problem: Problem { message: reason.to_string(), hint: None } }
    }

    /// A log that cannot be used.
    pub fn log(path: impl Into<PathBuf>, reason: impl std::fmt::Display) -> Self {
        let problem = Problem { message: reason.to_string(), hint: None };
        EvalError::Log { path: path.into(), place: None, problem }
    }

    /// A place of a log that cannot be used.
    pub fn log_place(path: impl Into<PathBuf>, place: impl std::fmt::Display, reason: impl std::fmt::Display) -> Self {
        let problem = Problem { message: reason.to_string(), hint: None };
        EvalError::Log { path: path.into(), place: Some(place.to_string()), problem }
    }

    /// Adds a next step to a [`Problem`]; other errors have their own.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let EvalError::Setting(problem)
        | EvalError::Model(problem)
        | EvalError::Engine(problem)
        | EvalError::Results(problem)
        | EvalError::Line { problem, .. }
        | EvalError::Log { problem, .. } = &mut self
        {
            problem.hint = Some(hint.into());
        }
        self
    }

    /// The next step, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            EvalError::Setting(problem)
            | EvalError::Model(problem)
            | EvalError::Engine(problem)
            | EvalError::Results(problem)
            | EvalError::Line { problem, .. }
            | EvalError::Log { problem, .. } => problem.hint.clone(),
            EvalError::Input { .. } => None,
            EvalError::PartsMissing { .. } => {
                Some("finish the parts (`earnest resume`) or name the folders that have them".to_owned())
            }
            EvalError::Hub(error) => error.help(),
            EvalError::Prompt(error) => Some(error.help().to_owned()),
            EvalError::Run(error) => error.help(),
            EvalError::Suite(error) => error.help.clone(),
            EvalError::Report(error) => error.help(),
            EvalError::SettingsChanged { run, .. } => {
                Some(format!("`earnest run --from {run}` starts a new run with the current settings"))
            }
            EvalError::PartsNotMerged { can_repeat, .. } => {
                let new = if *can_repeat { "; --new starts over" } else { "" };
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
