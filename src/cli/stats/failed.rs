//! Errors of statistics as those of the command line.
use std::error::Error;

use super::columns::{ColumnError, Survey};
use super::source::Source;
use crate::cli::Exit;
use crate::cli::error::CliError;
use earnest_stats::mixed::{FormulaError, MixedError};
use earnest_stats::multiplicity::BadPValue;
use earnest_stats::verdict::VerdictError;
use earnest_stats::{CorrelationError, KsError, PowerError};

/// Refuses what a condition does not hold for.
pub(super) fn require<M: Into<String>>(holds: bool, message: impl FnOnce() -> M) -> Result<(), CliError> {
    if holds { Ok(()) } else { Err(CliError::usage(message())) }
}

/// The error of an attempt, with its causes.
pub(super) fn about(attempt: String, error: &dyn Error) -> CliError {
    CliError::usage(joined(attempt, Some(error)))
}

/// The error of a model that cannot be fitted to rows.
pub(super) fn not_fitted(source: &Source<'_>, survey: &Survey, error: &MixedError) -> CliError {
    about(format!("cannot fit {}{}", source.name(), survey.remarks()), error)
}

/// An error of a file that an option names.
pub(super) fn of_option(error: CliError) -> CliError {
    CliError { exit: Exit::Usage, ..error }
}

/// A text and causes in one line, without repeating a cause that the text already ends with.
fn joined(mut text: String, mut cause: Option<&dyn Error>) -> String {
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// An error without an attempt before it.
fn of_causes(error: &dyn Error) -> CliError {
    CliError::usage(joined(error.to_string(), error.source()))
}

impl From<ColumnError> for CliError {
    fn from(error: ColumnError) -> Self {
        match error {
            // The error of a stored run has its own exit code and next step.
            ColumnError::Run(error) => *error,
            error => of_causes(&error),
        }
    }
}

impl From<std::fmt::Error> for CliError {
    fn from(error: std::fmt::Error) -> Self {
        CliError::new(Exit::Results, format!("cannot write the numbers as text: {error}"))
    }
}

macro_rules! with_causes {
    ($($error:ty),*) => {
        $(impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                of_causes(&error)
            }
        })*
    };
}

with_causes!(FormulaError, MixedError, BadPValue, VerdictError, CorrelationError, KsError, PowerError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot open data.csv: {source}")]
        struct Open {
            source: std::io::Error,
        }
        let open = Open { source: std::io::Error::other("no such file") };
        assert_eq!(of_causes(&open).message, "cannot open data.csv: no such file");
        let around = about("cannot fit data.csv".to_owned(), &open);
        assert_eq!(around.message, "cannot fit data.csv: cannot open data.csv: no such file");
    }
}
