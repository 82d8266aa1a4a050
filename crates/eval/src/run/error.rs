//! What can end a run.
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use earnest_engine::EngineError;

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
    #[error("another earnest process is writing the run {run}")]
    Locked { run: String },
    /// A line before the last one is not a sample.
    #[error("{} is damaged at line {line}: {reason}", path.display())]
    Damaged { path: PathBuf, line: usize, reason: String },
    /// A run's manifest is not one.
    #[error("the manifest of {run} in {} cannot be read: {reason}", path.display())]
    Manifest { path: PathBuf, run: String, reason: String },
    /// A part of a run's record is not what it should be.
    #[error("{part} of {run} in {} cannot be read: {reason}", path.display())]
    Unreadable { part: &'static str, path: PathBuf, run: String, reason: String },
    /// There are no results.
    #[error("there are no results: {} does not exist", path.display())]
    NoStore { path: PathBuf },
    /// The file of results is something else.
    #[error("{} is not a file of earnest's results", path.display())]
    NotAStore { path: PathBuf },
    /// The file of results could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Store { action: &'static str, path: PathBuf, source: rusqlite::Error },
    /// No run has this name.
    #[error("there is no run {name}")]
    NoRun { name: String, runs: Vec<String> },
    /// Several runs have a name with this part.
    #[error("{name} can be any of {} runs", runs.len())]
    AmbiguousRun { name: String, runs: Vec<String> },
    /// The file was written by a later version.
    #[error("{} has format {found}; this earnest reads formats up to {known}", path.display())]
    LaterFormat { path: PathBuf, found: u32, known: u32 },
    /// The file was written by an earlier version, and this process may not bring it forward.
    #[error("{} has format {found}, and this earnest, which reads it as format {known}, may not write it", path.display())]
    EarlierFormat { path: PathBuf, found: u32, known: u32 },
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

    /// Names an error of the file of results.
    pub(crate) fn store(action: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        if source.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            return RunError::DiskFull { path: path.to_owned(), source: io::ErrorKind::StorageFull.into() };
        }
        RunError::Store { action, path: path.to_owned(), source }
    }

    /// The same, where the connection can still be asked which error of the system is behind it: SQLite itself tells
    /// only one of the ways in which a disk is full from other errors.
    pub(crate) fn store_on(
        action: &'static str,
        path: &Path,
        source: rusqlite::Error,
        connection: &rusqlite::Connection,
    ) -> Self {
        if source.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
            // SAFETY: the handle is that of an open connection, which the reference keeps alive and on this thread.
            let errno = unsafe { rusqlite::ffi::sqlite3_system_errno(connection.handle()) };
            let system = io::Error::from_raw_os_error(errno);
            if let full @ RunError::DiskFull { .. } = RunError::io(action, path, system) {
                return full;
            }
        }
        RunError::store(action, path, source)
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
            RunError::Locked { .. } => Some("wait until it ends; `earnest run --new` starts a separate run".to_owned()),
            RunError::Damaged { path, line, .. } => Some(format!(
                "delete line {line} of {} and repeat the command to ask that sample again, or start over with --new",
                path.display()
            )),
            RunError::Manifest { .. } | RunError::OtherSettings { .. } => {
                Some("start over with --new, or choose another folder with --results".to_owned())
            }
            RunError::Unreadable { .. } => Some("`earnest runs verify` examines the run".to_owned()),
            RunError::NotAStore { .. } => {
                Some("choose another folder with --results, or move that file out of the way".to_owned())
            }
            RunError::NoStore { .. } => Some("name the folder with --results; `earnest run` creates one".to_owned()),
            RunError::Store { .. } => {
                Some("check the path and its permissions; `earnest runs verify` examines the file".to_owned())
            }
            RunError::NoRun { runs, .. } if runs.is_empty() => Some("this folder has no runs yet".to_owned()),
            RunError::NoRun { .. } => Some("`earnest runs list` names them; a part of a name is enough".to_owned()),
            RunError::AmbiguousRun { runs, .. } => Some(format!("give more of the name: {}", runs.join(", "))),
            RunError::EarlierFormat { .. } => {
                Some("copy the results to a folder that you may write, or let their owner open them once".to_owned())
            }
            RunError::LaterFormat { .. } => Some("update earnest, or choose another folder with --results".to_owned()),
            RunError::Engine(_) | RunError::LostRequests(_) | RunError::UnknownRequest(_) => {
                Some("repeat the command: it continues after the samples that are written".to_owned())
            }
            RunError::RepeatedItem { .. } => None,
        }
    }
}
