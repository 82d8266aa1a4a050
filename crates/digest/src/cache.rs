//! Digests of large files, kept while size and times stay the same, so that a model is not hashed before every run.
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{hex, sha256, sha256_file};

/// A folder of digests, one small file for each file that was hashed. Each is written under another name and renamed, so
/// any number of processes may use the folder at once. Losing it costs time only.
#[derive(Debug, Clone)]
pub struct DigestCache {
    folder: Option<PathBuf>,
    /// Smaller files are hashed every time: that is as quick as looking their digest up.
    least: u64,
}

/// A digest with what the file looked like then.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// For people; the name of the record is a hash of it.
    path: PathBuf,
    look: Look,
    sha256: String,
}

/// What changes when a file's content does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Look {
    size: u64,
    /// Nanoseconds since 1970.
    modified: u64,
    /// Time of the last change of content, name or times, and number of the file: whoever sets `modified` back changes these.
    /// 0 where the system has none.
    changed: i64,
    inode: u64,
}

/// Younger files are hashed every time: they could be written again without a change of their times.
const SETTLED: Duration = Duration::from_secs(2);

impl DigestCache {
    /// The user's: `EARNEST_CACHE`, `XDG_CACHE_HOME/earnest` or `~/.cache/earnest`.
    pub fn of_user() -> DigestCache {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = variable("EARNEST_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("earnest")))
            .or_else(|| std::env::home_dir().map(|home| home.join(".cache/earnest")));
        DigestCache { folder: folder.map(|folder| folder.join("digests")), least: 16 << 20 }
    }

    /// In this folder, for files of any size.
    pub fn at(folder: PathBuf) -> DigestCache {
        DigestCache { folder: Some(folder), least: 0 }
    }

    /// SHA-256 of a file: the known one, or computed and kept. `progress` hears the bytes as they are done, all at once where
    /// the digest is known.
    pub fn sha256_file(&self, path: &Path, mut progress: impl FnMut(u64)) -> std::io::Result<String> {
        let before = Look::of(path)?;
        if let Some(known) = self.known(path) {
            progress(before.size);
            return Ok(known);
        }
        let found = sha256_file(path, progress)?;
        // A file that was written meanwhile has no digest to keep.
        if Look::of(path)? == before {
            self.remember(path, &found);
        }
        Ok(found)
    }

    /// The digest of a file that has not changed since it was computed.
    pub fn known(&self, path: &Path) -> Option<String> {
        let path = path.canonicalize().ok()?;
        let text = std::fs::read_to_string(self.record(&path)?).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let sound = record.path == path && record.look == Look::of(&path).ok()? && record.sha256.len() == 64;
        sound.then_some(record.sha256)
    }

    /// Keeps a digest that was just computed. Nothing happens where that is not possible, or for files of the last instant.
    pub fn remember(&self, path: &Path, sha256: &str) {
        let Ok(path) = path.canonicalize() else { return };
        let (Some(place), Ok(look)) = (self.record(&path), Look::of(&path)) else { return };
        let settled = std::fs::metadata(&path)
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > SETTLED));
        if !settled || look.size < self.least {
            return;
        }
        let record = Record { path, look, sha256: sha256.to_owned() };
        // The next run hashes again where this fails; that is all.
        drop(write(&place, &record));
    }

    fn record(&self, path: &Path) -> Option<PathBuf> {
        let name = hex(&sha256(path.as_os_str().as_encoded_bytes()));
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }
}

fn write(place: &Path, record: &Record) -> std::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let json = serde_json::to_vec(record).map_err(std::io::Error::other)?;
    let fresh = place.with_extension(format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::File::create(&fresh)
        .and_then(|mut file| file.write_all(&json))
        .and_then(|()| std::fs::rename(&fresh, place))
        .inspect_err(|_| drop(std::fs::remove_file(&fresh)))
}

impl Look {
    fn of(path: &Path) -> std::io::Result<Look> {
        let metadata = std::fs::metadata(path)?;
        let modified =
            metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let (changed, inode) = identity(&metadata);
        Ok(Look { size: metadata.len(), modified, changed, inode })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that looks as if it had been written an hour ago.
    fn old_file(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("weights");
        std::fs::write(&path, text).unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
        path
    }

    fn read_bytes(cache: &DigestCache, path: &Path) -> (String, u64) {
        let mut bytes = 0;
        let digest = cache.sha256_file(path, |n| bytes += n).unwrap();
        (digest, bytes)
    }

    #[test]
    fn a_file_is_hashed_once_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DigestCache::at(folder.path().join("digests"));
        let path = old_file(folder.path(), "one");
        assert_eq!(cache.known(&path), None);
        let first = read_bytes(&cache, &path);
        assert_eq!(first, (hex(&sha256(b"one")), 3));
        assert_eq!(cache.known(&path), Some(first.0.clone()));
        assert_eq!(read_bytes(&cache, &path), first);
        // The same size and, by set_modified, a time of before: the change itself still shows.
        let path = old_file(folder.path(), "two");
        assert_eq!(cache.known(&path), None);
        assert_eq!(read_bytes(&cache, &path).0, hex(&sha256(b"two")));
    }

    #[test]
    fn a_file_of_this_moment_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DigestCache::at(folder.path().join("digests"));
        let path = folder.path().join("fresh");
        std::fs::write(&path, "x").unwrap();
        read_bytes(&cache, &path);
        assert_eq!(cache.known(&path), None);
    }

    #[test]
    fn damaged_and_foreign_records_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DigestCache::at(folder.path().join("digests"));
        let path = old_file(folder.path(), "one");
        read_bytes(&cache, &path);
        let record = cache.record(&path.canonicalize().unwrap()).unwrap();
        for text in ["", "{", r#"{"path":"/x","look":{"size":3,"modified":1,"changed":1,"inode":1},"sha256":"00"}"#] {
            std::fs::write(&record, text).unwrap();
            assert_eq!(cache.known(&path), None);
        }
        // A folder that can not be written: hashed each time.
        std::fs::write(folder.path().join("file"), "").unwrap();
        let blocked = DigestCache::at(folder.path().join("file/below"));
        assert_eq!(read_bytes(&blocked, &path).0, hex(&sha256(b"one")));
        assert_eq!(read_bytes(&DigestCache { folder: None, least: 0 }, &path).0, hex(&sha256(b"one")));
    }

    #[test]
    fn many_may_use_it_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DigestCache::at(folder.path().join("digests"));
        let path = old_file(folder.path(), "shared");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert_eq!(read_bytes(&cache, &path).0, hex(&sha256(b"shared")));
                    }
                });
            }
        });
        let left: Vec<_> = std::fs::read_dir(folder.path().join("digests")).unwrap().collect();
        assert_eq!(left.len(), 1);
    }
}
