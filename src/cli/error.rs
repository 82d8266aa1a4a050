//! Errors for the user: the problem, its place and the next step.
use super::Exit;
use earnest_eval::EvalError;
use earnest_eval::prompt::PromptError;
use earnest_eval::report::ReportError;
use earnest_eval::run::RunError;
use earnest_eval::study::StudyError;
use earnest_models::hub::HubError;

/// An error with its exit code and, if there is one, the next step.
#[derive(Debug)]
pub struct CliError {
    pub exit: Exit,
    /// One sentence that names the thing and the place; causes follow after colons.
    pub message: String,
    pub help: Option<String>,
}

impl CliError {
    /// An error without a next step.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        CliError { exit, message: message.into(), help: None }
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

/// An error and its causes in one line, without repeating a cause that the message already ends with.
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let next = cause.to_string();
        if text.is_empty() {
            text = next;
        } else if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
    }
    text
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
            RunError::RepeatedItem { .. } | RunError::NoRun { .. } | RunError::AmbiguousRun { .. } => Exit::Usage,
            _ => Exit::Results,
        };
        let help = match &error {
            RunError::AmbiguousRun { name, runs, labels } => {
                Some(candidates(name, runs, labels, std::env::args().skip(1)))
            }
            error => error.help(),
        };
        CliError { exit, message: error.to_string(), help }
    }
}

/// The runs that a name could mean, a line each, as the whole command where the name is an argument of it.
fn candidates(name: &str, runs: &[String], labels: &[String], arguments: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = arguments.collect();
    let plain = |word: &str| {
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+".contains(c);
        if !word.is_empty() && word.chars().all(safe) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let place = words.iter().position(|word| word == name);
    let line = |(run, label): (&String, &String)| match place {
        Some(place) => {
            let replaced = words.iter().enumerate().map(|(at, word)| plain(if at == place { run } else { word }));
            format!("\n  earnest {}  # {label}", replaced.collect::<Vec<_>>().join(" "))
        }
        None => format!("\n  {run}  # {label}"),
    };
    let lines: String = runs.iter().zip(labels).map(line).collect();
    format!(
        "give more of the name, or its last part; `earnest runs list` shows when each began and how it ended{lines}"
    )
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
        CliError { exit, message: error.to_string(), help: error.help() }
    }
}

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        CliError::new(Exit::Model, error.to_string()).help(error.help())
    }
}

impl From<ReportError> for CliError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Run(error) => error.into(),
            error => CliError { exit: Exit::Results, message: error.to_string(), help: error.help() },
        }
    }
}

impl From<EvalError> for CliError {
    fn from(error: EvalError) -> Self {
        let exit = match error {
            EvalError::Hub(error) => return error.into(),
            EvalError::Prompt(error) => return error.into(),
            EvalError::Run(error) => return error.into(),
            EvalError::Report(error) => return error.into(),
            EvalError::Suite(error) => return error.into(),
            EvalError::Setting(_)
            | EvalError::Input { .. }
            | EvalError::Line { .. }
            | EvalError::Log { .. }
            | EvalError::PartsNotMerged { .. } => Exit::Usage,
            EvalError::Model(_) => Exit::Model,
            EvalError::Engine(_) => Exit::Engine,
            EvalError::Results(_) | EvalError::SettingsChanged { .. } | EvalError::PartsMissing { .. } => Exit::Results,
            EvalError::Interrupted { .. } => Exit::Interrupted,
            EvalError::TooManyFailures { .. } => Exit::TooManyFailures,
        };
        CliError { exit, message: error.to_string(), help: error.help() }
    }
}

impl From<StudyError> for CliError {
    fn from(error: StudyError) -> Self {
        let exit = if error.mistakes.iter().all(|mistake| mistake.of_model) { Exit::Model } else { Exit::Usage };
        CliError { exit, message: error.to_string(), help: error.help() }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn candidates_are_commands() {
        let runs = ["nupa-a-12".to_owned(), "nupa-b-34".to_owned()];
        let labels = ["samples 1".to_owned(), "samples 2".to_owned()];
        let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>().into_iter();
        let help = candidates("nupa", &runs, &labels, words("runs|show|nupa|--results|my results"));
        assert!(help.ends_with("\n  earnest runs show nupa-a-12 --results 'my results'  # samples 1\n  earnest runs show nupa-b-34 --results 'my results'  # samples 2"), "{help}");
        let help = candidates("nupa", &runs, &labels, words("compare|other/nupa"));
        assert!(help.ends_with("\n  nupa-a-12  # samples 1\n  nupa-b-34  # samples 2"), "{help}");
        assert!(candidates("a'b", &runs, &labels, words("show|a'b|it's")).contains(r"'it'\''s'"));
    }

    #[test]
    fn a_cause_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot open data.csv: {source}")]
        struct Open {
            source: std::io::Error,
        }
        let open = || Open { source: std::io::Error::other("no such file") };
        assert_eq!(with_causes(&anyhow::Error::new(open())), "cannot open data.csv: no such file");
        let around = Err::<(), _>(open()).context("cannot fit data.csv").unwrap_err();
        assert_eq!(with_causes(&around), "cannot fit data.csv: cannot open data.csv: no such file");
    }
}
