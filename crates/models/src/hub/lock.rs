//! Locks of the cache, the same files and the same calls as `huggingface_hub`'s: both may fetch at once.
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::HubError;

/// The right to write one blob, held while this value lives; the system frees it when the process dies.
#[derive(Debug)]
pub(super) struct BlobLock {
    _file: File,
    path: PathBuf,
}

/// Longest time without the lock: a large file on a slow line takes hours.
const PATIENCE: Duration = Duration::from_hours(24);

impl BlobLock {
    /// Waits for the lock; `waiting` is called once if somebody else has it.
    pub(super) fn take(path: &Path, file: &str, mut waiting: impl FnMut()) -> Result<BlobLock, HubError> {
        let start = Instant::now();
        let mut told = false;
        loop {
            if let Some(lock) = BlobLock::attempt(path)? {
                return Ok(lock);
            }
            if !std::mem::replace(&mut told, true) {
                waiting();
            }
            if start.elapsed() > PATIENCE {
                return Err(HubError::Busy { file: file.to_owned(), path: path.to_owned() });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The lock, if nobody has it.
    pub(super) fn attempt(path: &Path) -> Result<Option<BlobLock>, HubError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| HubError::io("create", folder, source))?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|source| HubError::io("open", path, source))?;
        match file.try_lock() {
            // Whoever had it before may have removed it meanwhile; a lock on a file without a name keeps nobody out.
            Ok(()) if !is_still(&file, path) => BlobLock::attempt(path),
            Ok(()) => Ok(Some(BlobLock { _file: file, path: path.to_owned() })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(HubError::io("lock", path, source)),
        }
    }

    /// Frees the lock and removes its file. Where a file that somebody has opened cannot be told from its successor, it stays.
    pub(super) fn remove(self) {
        if cfg!(unix) {
            // It is in nobody's way.
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// True if the path still leads to this file.
#[cfg(unix)]
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata().map(number), std::fs::metadata(path).map(number)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(not(unix))]
fn is_still(_: &File, _: &Path) -> bool {
    true
}
