//! Locks of runs.
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::names::check_name;
use crate::RunError;

/// Exclusive right to write a run: an advisory lock on `locks/<run>.lock`, released on drop and by the system when the process
/// ends.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// Takes the lock.
    ///
    /// # Errors
    /// [`RunError::Locked`] if another process holds it.
    pub fn take(results: &Path, run: &str) -> Result<Self, RunError> {
        // `is_taken` of another process holds the lock for an instant.
        for _ in 0..10 {
            if let Some(lock) = Self::attempt(results, run)? {
                return Ok(lock);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(RunError::Locked { run: run.to_owned() })
    }

    /// True if a process is writing the run.
    pub fn is_taken(results: &Path, run: &str) -> Result<bool, RunError> {
        let path = path(results, run)?;
        // Opened for reading, so that another user's results can be read; unreadable locks count as free.
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
                return Ok(false);
            }
            Err(source) => return Err(RunError::io("open", path, source)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(RunError::io("lock", path, source)),
        }
    }

    fn attempt(results: &Path, run: &str) -> Result<Option<Self>, RunError> {
        let path = path(results, run)?;
        let folder = path.parent().unwrap_or(results);
        // A folder of somebody could have links in these places, which would make files elsewhere.
        for made in [folder, &path] {
            if std::fs::symlink_metadata(made).is_ok_and(|found| found.is_symlink()) {
                let source = std::io::Error::other("it is a symbolic link, which earnest does not follow here");
                return Err(RunError::io("use", made, source));
            }
        }
        std::fs::create_dir_all(folder).map_err(|source| RunError::io("create", folder, source))?;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|source| RunError::io("open", path.as_path(), source))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RunLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(RunError::io("lock", path, source)),
        }
    }
}

/// Path of a run's lock.
///
/// # Errors
/// [`RunError::Name`] for a name that could lead out of the folder.
fn path(results: &Path, run: &str) -> Result<PathBuf, RunError> {
    check_name(run).map_err(|reason| RunError::Name { run: run.to_owned(), reason })?;
    Ok(results.join("locks").join(format!("{run}.lock")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_writers_never_share_a_run() {
        let results = tempfile::tempdir().unwrap();
        assert!(!RunLock::is_taken(results.path(), "a").unwrap());
        let one = RunLock::take(results.path(), "a").unwrap();
        assert!(matches!(RunLock::take(results.path(), "a"), Err(RunError::Locked { run }) if run == "a"));
        assert!(RunLock::is_taken(results.path(), "a").unwrap());
        RunLock::take(results.path(), "b").unwrap();
        drop(one);
        assert!(!RunLock::is_taken(results.path(), "a").unwrap());
        RunLock::take(results.path(), "a").unwrap();
    }
}
