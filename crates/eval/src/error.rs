//! The error of an evaluation.
use std::io;
use std::path::PathBuf;

use earnest_models::hub::HubError;
use earnest_tasks::suite::registry::OptionError;

use crate::prompt::PromptError;
use crate::report::ReportError;
use crate::run::RunError;

/// A problem in one sentence that names the thing and the place, and the next step where there is one.
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
    /// A setting that has no sense, alone or beside the others.
    #[error("{0}")]
    Setting(Problem),
    /// A checkpoint that cannot be used.
    #[error("{0}")]
    Model(Problem),
    /// An engine that cannot be started or reached.
    #[error("{0}")]
    Engine(Problem),
    /// Results that cannot be read or written.
    #[error("{0}")]
    Results(Problem),
    /// A model reference that names nothing here.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// A prompt that cannot be rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A run that cannot be read, written or continued.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Options of a suite that cannot be used, or data that are not there.
    #[error(transparent)]
    Suite(#[from] OptionError),
    /// A report that cannot be made.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A run that was to be resumed has other settings today.
    #[error("{run} cannot be continued: different now: {}", differences.join(", "))]
    SettingsChanged { run: String, differences: Vec<String> },
    /// Every part of the run is finished, and the parts are not merged.
    #[error("all {of} parts of this run are finished, and not joined")]
    PartsNotMerged {
        of: usize,
        /// The command can begin a new run.
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
    /// Sharded runs that could not be joined, because parts are missing or unfinished.
    #[error("{} not joined, because parts are missing", if *runs == 1 { "1 run is".to_owned() } else { format!("{runs} runs are") })]
    PartsMissing { runs: usize },
    /// More samples failed than the settings allow.
    #[error("{failed} of {planned} samples failed in this session, more than --fail-on-error allows")]
    TooManyFailures { run: String, failed: usize, planned: usize },
}

impl EvalError {
    /// A setting that has no sense.
    pub fn setting(message: impl Into<String>) -> Self {
        EvalError::Setting(Problem { message: message.into(), hint: None })
    }

    /// A checkpoint that cannot be used.
    pub fn model(message: impl Into<String>) -> Self {
        EvalError::Model(Problem { message: message.into(), hint: None })
    }

    /// An engine that cannot be started or reached.
    pub fn engine(message: impl Into<String>) -> Self {
        EvalError::Engine(Problem { message: message.into(), hint: None })
    }

    /// Results that cannot be read or written.
    pub fn results(message: impl Into<String>) -> Self {
        EvalError::Results(Problem { message: message.into(), hint: None })
    }

    /// An input file that cannot be read.
    pub fn input(name: impl std::fmt::Display, source: io::Error) -> Self {
        EvalError::Input { name: name.to_string(), source }
    }

    /// A line of an input file that cannot be used.
    pub fn line(path: impl Into<PathBuf>, line: usize, reason: impl std::fmt::Display) -> Self {
        EvalError::Line { path: path.into(), line, problem: Problem { message: reason.to_string(), hint: None } }
    }

    /// The same with a next step, where it has none of its own.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let EvalError::Setting(problem)
        | EvalError::Model(problem)
        | EvalError::Engine(problem)
        | EvalError::Results(problem)
        | EvalError::Line { problem, .. } = &mut self
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
            | EvalError::Line { problem, .. } => problem.hint.clone(),
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
                Some(format!("`earnest run --from {run}` begins a new run with today's"))
            }
            EvalError::PartsNotMerged { can_repeat, .. } => {
                let new = if *can_repeat { "; --new asks everything again" } else { "" };
                Some(format!("`earnest merge` joins them, then this command shows the whole run{new}"))
            }
            EvalError::Interrupted { run, .. } => {
                Some(format!("the same command continues the run, and so does `earnest resume {run}`"))
            }
            EvalError::TooManyFailures { run, .. } => Some(format!(
                "`earnest samples {run} --failed` shows them; the same command, and `earnest resume {run}`, go on behind those \
                 that failed for good"
            )),
        }
    }
}
