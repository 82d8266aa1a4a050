//! The error of rows that are handed on.
use std::io;
use std::path::PathBuf;

use crate::RunError;

/// Rows of a run that could not be read, or written in another form.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The rows could not be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The writer of a format failed.
    #[error("cannot write the {format} file: {reason}")]
    Format { format: &'static str, reason: String },
    /// The run is empty.
    #[error("the run has no rows to export")]
    NoRows,
}

impl RowsError {
    /// Returns the next step for the user.
    pub fn help(&self) -> Option<String> {
        match self {
            RowsError::Run(error) => error.help(),
            RowsError::Write { .. } => {
                Some("check that the folder exists and is writable and that the disk has space".to_owned())
            }
            RowsError::Format { .. } => {
                Some("try the setting `format = jsonl`, which writes the rows as they are stored".to_owned())
            }
            RowsError::NoRows => Some("continue the run, or name another one".to_owned()),
        }
    }
}
