//! Errors as the user sees them: what happened, where, and the next step.
use super::Exit;
use crate::prompt::PromptError;
use crate::run::RunError;

/// An error with its exit code and, where there is one, the next step.
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

    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        CliError::new(Exit::Usage, message)
    }

    /// Adds the next step.
    pub fn help(self, help: impl Into<String>) -> Self {
        CliError { help: Some(help.into()), ..self }
    }
}

/// An error and its causes in one line. Many messages end with their cause already; such a cause is not said again.
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
        CliError { exit, message: error.to_string(), help: error.help() }
    }
}

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        let help = match &error {
            PromptError::NoTemplate => "use --prompt raw for a base model",
            PromptError::Template(_) | PromptError::Tokenizer(_) | PromptError::RepeatedBos { .. } => {
                "--prompt raw leaves the chat template out"
            }
        };
        CliError::new(Exit::Model, error.to_string()).help(help)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

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
