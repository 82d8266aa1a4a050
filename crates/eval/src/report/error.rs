//! What can go wrong between stored rows and a file.
use std::io;
use std::path::PathBuf;

use crate::run::RunError;

/// An error of a report or an export.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The rows could not be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The writer of a format refused something.
    #[error("cannot write the {format} file: {reason}")]
    Format { format: &'static str, reason: String },
    /// There is nothing to write.
    #[error("the run has no rows: there is nothing to export")]
    NoRows,
}

impl ReportError {
    /// The next step, for the user.
    pub fn help(&self) -> Option<String> {
        match self {
            ReportError::Run(error) => error.help(),
            ReportError::Write { .. } => Some("check that the folder exists, may be written and has room".to_owned()),
            ReportError::Format { .. } => {
                Some("try --format jsonl, which writes the rows as they are stored".to_owned())
            }
            ReportError::NoRows => Some("continue the run, or name another one".to_owned()),
        }
    }
}
