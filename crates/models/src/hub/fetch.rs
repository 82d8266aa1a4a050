//! Fetching a commit: each file is downloaded to its blob, resumed after interruptions, and checked by size and hash.
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::lock::BlobLock;
use super::remote::Remote;
use super::{Cache, Commit, HubError, Listing, RemoteFile, RepoId};
use super::{own, snapshot};
use earnest_digest::DigestCache;

/// Consecutive attempts without a new byte after which a download fails.
const MAX_FRUITLESS_ATTEMPTS: u32 = 5;

/// Progress of a fetch.
#[derive(Debug, Clone, PartialEq)]
pub enum FetchEvent<'a> {
    /// A download starts; `have` bytes are left from an earlier attempt.
    Started { file: &'a RemoteFile, have: u64 },
    /// Bytes of all files that are present by now.
    Progress { done: u64 },
    /// Another process is fetching this file; waiting for it.
    Waiting { file: &'a RemoteFile },
    /// A connection was interrupted and is retried.
    Retrying { file: &'a RemoteFile, what: String },
    /// A file is hashed.
    Checking { file: &'a RemoteFile },
    /// A file in the cache does not have its hash; it is fetched again.
    Damaged { file: &'a RemoteFile },
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FetchReport {
    pub files: usize,
    /// Bytes of all files.
    pub size: u64,
    /// Bytes transferred over the network.
    pub transferred: u64,
    /// Files that were in the cache already, with the right content.
    pub present: usize,
    /// Files resumed from an earlier attempt.
    pub resumed: usize,
    /// Files that were in the cache with wrong content.
    pub repaired: usize,
}

/// Fetches the files of `listing` into the cache.
///
/// # Errors
/// Whatever [`HubError`] stops the first file that cannot be fetched.
pub fn fetch(
    cache: &Cache,
    remote: &Remote,
    repo: &RepoId,
    listing: &Listing,
    digests: &DigestCache,
    progress: &mut dyn FnMut(FetchEvent<'_>),
) -> Result<FetchReport, HubError> {
    let commit = &listing.commit;
    let mut report = FetchReport { files: listing.files.len(), size: listing.size(), ..FetchReport::default() };
    let paths = listing.files.iter().map(|file| file.local_path(repo)).collect::<Result<Vec<_>, _>>()?;
    save_listing(cache, repo, listing)?;
    let mut done = 0;
    for (file, path) in listing.files.iter().zip(paths) {
        let digits = file.hash.digits();
        let blob = cache.blob(repo, digits);
        if let Some(folder) = blob.parent() {
            std::fs::create_dir_all(folder).map_err(|source| HubError::io("create", folder, source))?;
        }
        let lock = BlobLock::acquire(&cache.lock(repo, digits), &file.path, || progress(FetchEvent::Waiting { file }))?;
        if is_valid(&blob, file, digests, progress)? {
            report.present += 1;
        } else {
            if blob.symlink_metadata().is_ok() {
                progress(FetchEvent::Damaged { file });
                report.repaired += 1;
                std::fs::remove_file(&blob).map_err(|source| HubError::io("remove", &blob, source))?;
            }
            let mut download = Download { remote, repo, commit, file, done, report: &mut report, progress };
            download.run(&blob, digests)?;
        }
        done += file.size;
        progress(FetchEvent::Progress { done });
        let folder = path.parent().unwrap_or(Path::new(""));
        own::folders(&cache.repo_folder(repo), &Path::new("snapshots").join(commit.as_str()).join(folder))?;
        snapshot::link_blob(&cache.snapshot(repo, commit).join(&path), &blob, folder.components().count())?;
        drop(lock);
    }
    Ok(report)
}

/// Saves the listing, merged with those of earlier fetches of the commit.
fn save_listing(cache: &Cache, repo: &RepoId, listing: &Listing) -> Result<(), HubError> {
    let mut all = listing.clone();
    for file in cache.listing(repo, &listing.commit).map(|earlier| earlier.files).unwrap_or_default() {
        if !all.files.iter().any(|known| known.path == file.path) {
            all.files.push(file);
        }
    }
    all.files.sort_by(|a, b| a.path.cmp(&b.path));
    own::folders(&cache.repo_folder(repo), Path::new(".earnest"))?;
    let json = serde_json::to_vec_pretty(&all).expect("a listing has string keys only, so it serialises");
    snapshot::write_atomically(&cache.listing_path(repo, &listing.commit), &json)
}

/// True if a blob has the size and hash of its file. A cached digest is trusted.
fn is_valid(
    blob: &Path,
    file: &RemoteFile,
    digests: &DigestCache,
    progress: &mut dyn FnMut(FetchEvent<'_>),
) -> Result<bool, HubError> {
    let Ok(metadata) = std::fs::metadata(blob) else { return Ok(false) };
    if !metadata.is_file() || metadata.len() != file.size {
        return Ok(false);
    }
    if let (super::Hash::Sha256(digits), Some(known)) = (&file.hash, digests.get(blob)) {
        return Ok(known == *digits);
    }
    progress(FetchEvent::Checking { file });
    let actual = file.hash.of_file(blob, |_| {})?;
    if let super::Hash::Sha256(digits) = &actual {
        digests.insert(blob, digits);
    }
    Ok(actual == file.hash)
}

/// The download of one file.
struct Download<'a> {
    remote: &'a Remote,
    repo: &'a RepoId,
    commit: &'a Commit,
    file: &'a RemoteFile,
    /// Bytes of the files before this one.
    done: u64,
    report: &'a mut FetchReport,
    progress: &'a mut dyn FnMut(FetchEvent<'_>),
}

impl Download<'_> {
    /// Downloads to `<blob>.incomplete`, checks the hash, and renames.
    fn run(&mut self, blob: &Path, digests: &DigestCache) -> Result<(), HubError> {
        let partial = blob.with_file_name(format!("{}.incomplete", self.file.hash.digits()));
        let had = std::fs::metadata(&partial).map_or(0, |metadata| metadata.len());
        (self.progress)(FetchEvent::Started { file: self.file, have: had.min(self.file.size) });
        self.complete(&partial)?;
        let mut actual = self.hash(&partial)?;
        if actual != self.file.hash && had > 0 {
            // The start was left by an earlier attempt, perhaps of another program: try once more from the first byte.
            std::fs::remove_file(&partial).map_err(|source| HubError::io("remove", &partial, source))?;
            self.complete(&partial)?;
            actual = self.hash(&partial)?;
        } else if had > 0 {
            self.report.resumed += 1;
        }
        if actual != self.file.hash {
            std::fs::remove_file(&partial).map_err(|source| HubError::io("remove", &partial, source))?;
            return Err(HubError::WrongHash {
                file: self.file.path.clone(),
                algorithm: actual.algorithm(),
                got: actual.digits().to_owned(),
                expected: self.file.hash.digits().to_owned(),
            });
        }
        std::fs::rename(&partial, blob).map_err(|source| HubError::io("write", blob, source))?;
        if let super::Hash::Sha256(digits) = &actual {
            digests.insert(blob, digits);
        }
        Ok(())
    }

    fn hash(&mut self, path: &Path) -> Result<super::Hash, HubError> {
        (self.progress)(FetchEvent::Checking { file: self.file });
        self.file.hash.of_file(path, |_| {})
    }

    /// Downloads until the file has its size, over as many connections as needed.
    fn complete(&mut self, path: &Path) -> Result<(), HubError> {
        let failed = |source| HubError::io("write", path, source);
        let mut out = own::open_alone(path)?;
        let mut have = out.metadata().map_err(failed)?.len();
        if have > self.file.size {
            out.set_len(0).map_err(failed)?;
            have = 0;
        }
        let mut fruitless = 0;
        while have < self.file.size {
            let before = have;
            let what = match self.remote.open(self.repo, self.commit, self.file, have) {
                Ok(body) => {
                    have = body.start;
                    out.set_len(have).map_err(failed)?;
                    self.copy(body.reader, &mut out, &mut have, path)?
                }
                // Temporary failures are retried; refusals are not.
                Err(HubError::Unreachable { what, .. }) => what,
                Err(HubError::Status { status, .. }) if status == 429 || status >= 500 => format!("status {status}"),
                Err(other) => return Err(other),
            };
            if have >= self.file.size {
                break;
            }
            fruitless = if have > before { 0 } else { fruitless + 1 };
            if fruitless >= MAX_FRUITLESS_ATTEMPTS {
                out.sync_all().map_err(failed)?;
                return Err(HubError::Cut {
                    file: self.file.path.clone(),
                    attempts: fruitless,
                    got: have,
                    size: self.file.size,
                    what,
                });
            }
            (self.progress)(FetchEvent::Retrying { file: self.file, what });
            std::thread::sleep(Duration::from_millis(200 << fruitless.min(5)));
        }
        // On disk before the blob gets its final name.
        out.sync_all().map_err(failed)
    }

    /// Copies the response and returns the reason why it ended. A disk error fails the fetch; a network error does not.
    fn copy(
        &mut self,
        mut reader: Box<dyn Read>,
        out: &mut File,
        have: &mut u64,
        path: &Path,
    ) -> Result<String, HubError> {
        let failed = |source| HubError::io("write", path, source);
        out.seek(SeekFrom::Start(*have)).map_err(failed)?;
        let mut piece = vec![0; 1 << 17];
        loop {
            let read = match reader.read(&mut piece) {
                Ok(0) => return Ok("the connection closed early".to_owned()),
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(error.to_string()),
            };
            // Bytes beyond the file's size are dropped; the hash decides about the rest.
            let room = usize::try_from(self.file.size - *have).unwrap_or(usize::MAX).min(read);
            out.write_all(piece.get(..room).unwrap_or_default()).map_err(failed)?;
            *have += room as u64;
            self.report.transferred += room as u64;
            (self.progress)(FetchEvent::Progress { done: self.done + *have });
            if *have >= self.file.size {
                return Ok(String::new());
            }
        }
    }
}
