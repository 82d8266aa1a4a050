//! Errors of runs.
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use earnest_engine::EngineError;

use crate::SAMPLE_FORMAT;
use crate::store::{NameProblem, OtherSampleFormat, did_you_mean};
use earnest_tasks::suite::quoted::shortened;

/// Characters of a stranger's name in a message.
const LONGEST_SHOWN: usize = 80;

/// An error that ends a run; rows written before stay valid.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of the results folder could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// A full disk, quota or file size limit.
    #[error("no space left to write {}: {source}", path.display())]
    DiskFull { path: PathBuf, source: io::Error },
    /// Another process is writing the run.
    #[error("another earnest process is writing the run {run}")]
    Locked { run: String },
    /// A run whose name cannot name a file.
    #[error("{} is no name for a run: it {reason}", shortened(run, LONGEST_SHOWN))]
    Name { run: String, reason: NameProblem },
    /// An unreadable manifest.
    #[error("the manifest of {} in {} cannot be read: {reason}", shortened(run, LONGEST_SHOWN), path.display())]
    Manifest { path: PathBuf, run: String, reason: String },
    /// An unreadable part of a run's record.
    #[error("{part} of {run} in {} cannot be read: {reason}", path.display())]
    Unreadable { part: &'static str, path: PathBuf, run: String, reason: String },
    /// The results do not exist.
    #[error("there are no results: {} does not exist", path.display())]
    NoStore { path: PathBuf },
    /// The results file is something else.
    #[error("{} is not a results file of earnest", path.display())]
    NotAStore { path: PathBuf },
    /// Triggers or views in the results file.
    #[error("{} has parts that earnest does not make and that could change results: {}", path.display(), found.join(", "))]
    ForeignCode { path: PathBuf, found: Vec<String> },
    /// A row whose seal does not fit.
    #[error("{row} of {run} was edited in {} after it was written", path.display())]
    Edited { path: PathBuf, run: String, row: String },
    /// A finished run without a row for each sample of its plan.
    #[error("{run} in {} is marked as finished, but has {found} of {planned} rows", path.display())]
    RowsMissing { path: PathBuf, run: String, found: usize, planned: usize },
    /// The results file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Store { action: &'static str, path: PathBuf, source: rusqlite::Error },
    /// No run has this name.
    #[error("there is no run {name}")]
    NoRun { name: String, runs: Vec<String> },
    /// A part of a name, where the whole is needed.
    #[error("there is no run called exactly {name}")]
    NotExact { name: String, run: String },
    /// Several runs match the name.
    #[error("{name} matches {} runs", runs.len())]
    AmbiguousRun {
        name: String,
        runs: Vec<String>,
        /// Differences between them, by run.
        labels: Vec<String>,
    },
    /// A file, or a part of one, of another version.
    #[error("{part} has format {found}; this version of earnest reads format {known}")]
    OtherFormat { part: String, found: u32, known: u32 },
    /// Two items of the suite with one id.
    #[error("the suite has two items with the id {item}")]
    RepeatedItem { item: String },
    /// The engine failed as a whole.
    #[error("the engine failed: {0}")]
    Engine(#[from] EngineError),
    /// The engine reports no events although requests are in flight.
    #[error("the engine lost {0} requests")]
    LostRequests(usize),
    /// The engine answered an unknown request.
    #[error("the engine answered request {0}, which is not in flight")]
    UnknownRequest(u64),
}

impl RunError {
    /// Converts an I/O error; a full disk becomes [`RunError::DiskFull`], whose next step differs.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                RunError::DiskFull { path, source }
            }
            _ => RunError::Io { action, path, source },
        }
    }

    /// Checks the format of a file or of a part of one.
    ///
    /// # Errors
    /// [`RunError::OtherFormat`].
    pub(crate) fn check_format(part: impl FnOnce() -> String, found: u32, known: u32) -> Result<(), Self> {
        match found == known {
            true => Ok(()),
            false => Err(RunError::OtherFormat { part: part(), found, known }),
        }
    }

    /// Converts an error of the results file.
    pub fn store(action: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        if source.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            return RunError::DiskFull { path: path.to_owned(), source: io::ErrorKind::StorageFull.into() };
        }
        let path = path.to_owned();
        if let rusqlite::Error::FromSqlConversionFailure(_, _, reason) = &source
            && let Some(&OtherSampleFormat(found)) = reason.downcast_ref()
        {
            let part = format!("a sample in {}", path.display());
            return RunError::OtherFormat { part, found, known: SAMPLE_FORMAT };
        }
        RunError::Store { action, path, source }
    }

    /// Converts an error of the results file and asks the connection for the system's error: SQLite recognises only some of the
    /// ways in which a disk is full.
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

    /// Returns the next step for the user.
    pub fn help(&self) -> Option<String> {
        match self {
            RunError::DiskFull { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => Some(
                "raise the limit on file sizes (`ulimit -f unlimited`) and repeat the command, which continues after the written \
                 samples"
                    .to_owned(),
            ),
            RunError::DiskFull { .. } => Some(
                "free some space and repeat the command, which continues after the written samples, or choose another folder with \
                 the setting `results`"
                    .to_owned(),
            ),
            RunError::Io { .. } => Some("check the path and its permissions, or choose another with the setting `results`".into()),
            RunError::Locked { .. } => Some("wait until it ends; `earnest run --new` starts a separate run".to_owned()),
            RunError::Name { .. } => Some("choose another folder with the setting `results`".to_owned()),
            RunError::Manifest { .. } => Some(
                "another program has changed it; the folder's other runs are still reached by their whole names (`earnest export RUN`), and \
                 the setting `results` names another folder"
                    .to_owned(),
            ),
            RunError::ForeignCode { .. } => Some(
                "do not use the file unless you know who made them; `DROP TRIGGER`, `DROP VIEW` and `DROP TABLE` in sqlite3 remove them"
                    .to_owned(),
            ),
            RunError::Edited { run, .. } | RunError::RowsMissing { run, .. } => Some(format!(
                "`earnest runs verify {run}` names all such rows; the run can be deleted (`earnest runs delete`) and repeated \
                 (`earnest run --from {run}` first reads its settings)"
            )),
            RunError::Unreadable { .. } => Some("`earnest runs verify` examines the run".to_owned()),
            RunError::NotAStore { .. } => {
                Some("choose another folder with the setting `results`, or move that file out of the way".to_owned())
            }
            RunError::NoStore { .. } => Some("name the folder with the setting `results`; `earnest run` creates one".to_owned()),
            RunError::Store { .. } => {
                Some("check the path and its permissions; `earnest runs verify` examines the file".to_owned())
            }
            RunError::NotExact { run, .. } => {
                Some(format!("did you mean {run}? What cannot be undone needs the whole name"))
            }
            RunError::NoRun { runs, .. } if runs.is_empty() => Some("this folder has no runs yet".to_owned()),
            RunError::NoRun { name, runs } => {
                let near = did_you_mean(name, runs);
                Some(format!("{near}`earnest runs list` lists them; a unique part of a name is enough"))
            }
            RunError::AmbiguousRun { runs, labels, .. } => {
                let named: Vec<String> =
                    runs.iter().zip(labels).map(|(run, label)| format!("{run} ({label})")).collect();
                Some(format!(
                    "give more of the name, its last part is enough if no other has it, or the whole of one: {}; `earnest runs \
                     list` shows when each began and how it ended",
                    named.join(", ")
                ))
            }
            RunError::OtherFormat { found, known, .. } if found > known => {
                Some("update earnest, or choose another folder with the setting `results`".to_owned())
            }
            RunError::OtherFormat { .. } => Some(
                "read it with the earnest that wrote it, or ask the questions again in another folder (the setting `results`)"
                    .to_owned(),
            ),
            RunError::Engine(_) | RunError::LostRequests(_) | RunError::UnknownRequest(_) => {
                Some("repeat the command; it continues after the written samples".to_owned())
            }
            RunError::RepeatedItem { .. } => None,
        }
    }
}
