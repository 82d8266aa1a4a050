//! What can end a run.
use std::io;
use std::path::PathBuf;

use crate::engine::EngineError;

/// An error that ends a run; what was written before stays valid.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of the results folder could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// The disk is full, or a quota or file size limit is reached.
    #[error("no room left to write {}: {source}", path.display())]
    DiskFull { path: PathBuf, source: io::Error },
    /// Another process is at work on the same run.
    #[error("another earnest process is working on the run {}", path.display())]
    Locked { path: PathBuf },
    /// A line before the last one is not a sample.
    #[error("{} is damaged at line {line}: {reason}", path.display())]
    Damaged { path: PathBuf, line: usize, reason: String },
    /// The manifest is not one.
    #[error("{} is not a manifest: {reason}", path.display())]
    Manifest { path: PathBuf, reason: String },
    /// The file was written by a later version.
    #[error("{} has format {found}; this earnest reads formats up to {known}", path.display())]
    LaterFormat { path: PathBuf, found: u32, known: u32 },
    /// The folder's manifest belongs to other settings: two hashes with the same first digits, or an edited file.
    #[error("{} was made with other settings than this run's", path.display())]
    OtherSettings { path: PathBuf },
    /// The suite yields two items with one id.
    #[error("the suite asks {item} twice: ids must be unique")]
    RepeatedItem { item: String },
    /// The engine failed as a whole.
    #[error("the engine failed: {0}")]
    Engine(#[from] EngineError),
    /// The engine says that nothing is in flight although requests are.
    #[error("the engine lost {0} requests")]
    LostRequests(usize),
    /// The engine answered something that was not asked.
    #[error("the engine answered request {0}, which is not in flight")]
    UnknownRequest(u64),
}

impl RunError {
    /// Names an I/O error; a full disk is told apart, because the way out is another one.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                RunError::DiskFull { path, source }
            }
            _ => RunError::Io { action, path, source },
        }
    }

    /// The next step, for the user.
    pub fn help(&self) -> Option<String> {
        match self {
            RunError::DiskFull { .. } => Some(
                "free some space and repeat the command: it continues after the samples that are written, \
                 or choose another folder with --results"
                    .to_owned(),
            ),
            RunError::Io { .. } => Some("check the path and its permissions, or choose another with --results".into()),
            RunError::Locked { .. } => Some("wait until it ends, or start a separate run with --new".to_owned()),
            RunError::Damaged { path, line, .. } => Some(format!(
                "delete line {line} of {} and repeat the command to ask that sample again, or start over with --new",
                path.display()
            )),
            RunError::Manifest { .. } | RunError::OtherSettings { .. } => {
                Some("start over with --new, or move the folder away".to_owned())
            }
            RunError::LaterFormat { .. } => Some("update earnest, or start over with --new".to_owned()),
            RunError::Engine(_) | RunError::LostRequests(_) | RunError::UnknownRequest(_) => {
                Some("repeat the command: it continues after the samples that are written".to_owned())
            }
            RunError::RepeatedItem { .. } => None,
        }
    }
}
