//! Cache of digests of large files, valid while size and times are unchanged, so that a model is not hashed before every run.
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{hex, sha256, sha256_file};

/// A folder of digests, one small file for each file that was hashed. Each is written under a temporary name and renamed, so
/// any number of processes may use the folder at once. Losing it costs time only.
#[derive(Debug, Clone)]
pub struct DigestCache {
    folder: Option<PathBuf>,
    /// Smallest file that is cached, in bytes: hashing a smaller one is as fast as the lookup.
    min_size: u64,
}

/// A cached digest and the state of its file when it was computed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// The record's name is a hash of this path.
    path: PathBuf,
    #[serde(rename = "look")]
    stamp: FileStamp,
    sha256: String,
}

/// File metadata that changes whenever the content does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    size: u64,
    /// Time of modification, in nanoseconds since 1970.
    modified: u64,
    /// Time of the last change of content, name or times, in nanoseconds: resetting `modified` changes it. 0 where the system
    /// has none.
    changed: i64,
    /// Inode number; 0 where the system has none.
    inode: u64,
}

/// Smallest age of a file that is cached: a younger one could be written again without a change of its times.
const MIN_AGE: Duration = Duration::from_secs(2);

/// Returns the user's cache: `EARNEST_CACHE`, `XDG_CACHE_HOME/earnest` or `~/.cache/earnest`; none if no home folder is known.
pub fn cache_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("EARNEST_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("earnest")))
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache/earnest")))
}

impl DigestCache {
    /// Opens the cache in [`cache_folder`].
    pub fn for_user() -> DigestCache {
        DigestCache { folder: cache_folder().map(|folder| folder.join("digests")), min_size: 16 << 20 }
    }

    /// Opens the cache in a folder, for files of any size.
    pub fn in_folder(folder: PathBuf) -> DigestCache {
        DigestCache { folder: Some(folder), min_size: 0 }
    }

    /// Returns the SHA-256 of a file, from the cache or computed and cached. `progress` is called with the bytes of each piece, or
    /// once with the file's size if the digest was cached.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn sha256_file(&self, path: &Path, mut progress: impl FnMut(u64)) -> std::io::Result<String> {
        let before = FileStamp::of(path)?;
        if let Some(cached) = self.get(path) {
            progress(before.size);
            return Ok(cached);
        }
        let digest = sha256_file(path, progress)?;
        // The digest of a file that was written meanwhile is not cached.
        if FileStamp::of(path)? == before {
            self.insert(path, &digest);
        }
        Ok(digest)
    }

    /// Returns the cached digest of a file; none if the file has changed since.
    pub fn get(&self, path: &Path) -> Option<String> {
        let path = path.canonicalize().ok()?;
        let text = std::fs::read_to_string(self.record_path(&path)?).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let valid = record.path == path && record.stamp == FileStamp::of(&path).ok()? && record.sha256.len() == 64;
        valid.then_some(record.sha256)
    }

    /// Caches a digest that was just computed. Does nothing if the file is too young or too small, or the folder cannot be
    /// written.
    pub fn insert(&self, path: &Path, sha256: &str) {
        let Ok(path) = path.canonicalize() else { return };
        let (Some(record_path), Ok(stamp)) = (self.record_path(&path), FileStamp::of(&path)) else { return };
        let settled = std::fs::metadata(&path)
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > MIN_AGE));
        if !settled || stamp.size < self.min_size {
            return;
        }
        let record = Record { path, stamp, sha256: sha256.to_owned() };
        // If this fails, the next run hashes the file again.
        drop(write(&record_path, &record));
    }

    fn record_path(&self, path: &Path) -> Option<PathBuf> {
        let name = hex(&sha256(path.as_os_str().as_encoded_bytes()));
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }
}

fn write(path: &Path, record: &Record) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let json = serde_json::to_vec(record).map_err(std::io::Error::other)?;
    let temporary = path.with_extension(format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(&json))
        .and_then(|()| std::fs::rename(&temporary, path))
        .inspect_err(|_| drop(std::fs::remove_file(&temporary)))
}

impl FileStamp {
    fn of(path: &Path) -> std::io::Result<FileStamp> {
        let metadata = std::fs::metadata(path)?;
        let modified =
            metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let (changed, inode) = identity(&metadata);
        Ok(FileStamp { size: metadata.len(), modified, changed, inode })
    }
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> (i64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ctime().wrapping_mul(1_000_000_000).wrapping_add(metadata.ctime_nsec()), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_metadata: &std::fs::Metadata) -> (i64, u64) {
    (0, 0)
}
