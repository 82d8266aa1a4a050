//! Locks of the cache, compatible with those of `huggingface_hub`, so that both may fetch at once.
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::HubError;

/// An exclusive lock on one blob, released when dropped or when the process dies.
#[derive(Debug)]
pub(super) struct BlobLock {
    _file: File,
    path: PathBuf,
}

/// Longest wait for a lock: a large file over a slow connection takes hours.
const MAX_WAIT: Duration = Duration::from_hours(24);

impl BlobLock {
    /// Waits for the lock; `on_wait` is called once if another process holds it.
    pub(super) fn acquire(path: &Path, file: &str, mut on_wait: impl FnMut()) -> Result<BlobLock, HubError> {
        let start = Instant::now();
        let mut waiting = false;
        loop {
            if let Some(lock) = BlobLock::try_acquire(path)? {
                return Ok(lock);
            }
            if !std::mem::replace(&mut waiting, true) {
                on_wait();
            }
            if start.elapsed() > MAX_WAIT {
                return Err(HubError::Busy { file: file.to_owned(), path: path.to_owned() });
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Takes the lock if it is free.
    pub(super) fn try_acquire(path: &Path) -> Result<Option<BlobLock>, HubError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| HubError::io("create", folder, source))?;
        }
        let file = super::own::open(path)?;
        match file.try_lock() {
            // Its previous holder may have removed the file meanwhile; a lock on an unlinked file excludes nobody.
            Ok(()) if !is_linked(&file, path) => BlobLock::try_acquire(path),
            Ok(()) => Ok(Some(BlobLock { _file: file, path: path.to_owned() })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(HubError::io("lock", path, source)),
        }
    }

    /// Releases the lock and removes its file, except on systems where an unlinked file cannot be detected.
    pub(super) fn remove(self) {
        if cfg!(unix) {
            // A file that cannot be removed does no harm.
            std::fs::remove_file(&self.path).ok();
        }
    }
}

/// True if the path still refers to this file.
#[cfg(unix)]
fn is_linked(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata().map(identity), std::fs::symlink_metadata(path).map(identity)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(not(unix))]
fn is_linked(_: &File, _: &Path) -> bool {
    true
}
