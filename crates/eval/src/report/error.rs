//! Errors of reports and exports.
use std::io;
use std::path::PathBuf;

use super::plot::DrawingError;
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
    /// The writer of a format failed.
    #[error("cannot write the {format} file: {reason}")]
    Format { format: &'static str, reason: String },
    /// A figure could not be drawn.
    #[error(transparent)]
    Drawing(#[from] DrawingError),
    /// The run is empty.
    #[error("the run has no rows to export")]
    NoRows,
}

impl ReportError {
    /// Returns the next step for the user.
    pub fn help(&self) -> Option<String> {
        match self {
            ReportError::Run(error) => error.help(),
            ReportError::Write { .. } => {
                Some("check that the folder exists and is writable and that the disk has space".to_owned())
            }
            ReportError::Format { .. } => {
                Some("try --format jsonl, which writes the rows as they are stored".to_owned())
            }
            ReportError::Drawing(_) => Some("write it as SVG, which has no limit".to_owned()),
            ReportError::NoRows => Some("continue the run, or name another one".to_owned()),
        }
    }
}
