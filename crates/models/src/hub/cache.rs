//! The cache of `huggingface_hub`: `models--org--name/{blobs,snapshots/<commit>}`. The crate `hf-hub` gives names and paths;
//! snapshots are located by commit, so `refs/` is never read.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::lock::BlobLock;
use super::{Commit, Environment, Hash, HubError, Listing, RemoteFile, RepoId, own};

/// A folder of cached repositories.
#[derive(Debug, Clone)]
pub struct Cache {
    inner: hf_hub::Cache,
}

/// A commit in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CachedCommit {
    pub repo: RepoId,
    pub commit: Commit,
    pub folder: PathBuf,
    /// Number of files that are present.
    pub files: usize,
    /// Files that were requested, or that every checkpoint needs, and that are missing.
    pub missing: Vec<String>,
    /// Bytes of the files that are present.
    pub size: u64,
}

/// Report of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removal {
    /// Files removed from the snapshot.
    pub files: usize,
    /// Bytes freed.
    pub freed: u64,
    /// Blobs kept because another commit uses them.
    pub kept: usize,
    /// Removed blobs that no commit used.
    pub orphans: usize,
}

impl Cache {
    /// Opens the cache that the environment names.
    ///
    /// # Errors
    /// [`HubError::NoCacheFolder`].
    pub fn from_environment(environment: &Environment) -> Result<Cache, HubError> {
        environment.cache.clone().map(Cache::in_folder).ok_or(HubError::NoCacheFolder)
    }

    /// Opens the cache in a folder.
    pub fn in_folder(folder: PathBuf) -> Cache {
        Cache { inner: hf_hub::Cache::new(folder) }
    }

    /// The cache's folder.
    pub fn folder(&self) -> &Path {
        self.inner.path()
    }

    fn repo_name(repo: &RepoId) -> String {
        match repo.as_str().strip_prefix("datasets/") {
            Some(name) => hf_hub::Repo::dataset(name.to_owned()).folder_name(),
            None => hf_hub::Repo::model(repo.as_str().to_owned()).folder_name(),
        }
    }

    /// The folder of a repository, `models--org--name`.
    pub fn repo_folder(&self, repo: &RepoId) -> PathBuf {
        self.folder().join(Cache::repo_name(repo))
    }

    /// The path of a commit's snapshot, which need not exist.
    pub fn snapshot(&self, repo: &RepoId, commit: &Commit) -> PathBuf {
        self.repo_folder(repo).join("snapshots").join(commit.as_str())
    }

    /// The path of a blob, which is named after its hash.
    pub(super) fn blob(&self, repo: &RepoId, digits: &str) -> PathBuf {
        self.repo_folder(repo).join("blobs").join(digits)
    }

    /// The path of a blob's lock, the same as `huggingface_hub`'s.
    pub(super) fn lock(&self, repo: &RepoId, digits: &str) -> PathBuf {
        self.folder().join(".locks").join(Cache::repo_name(repo)).join(format!("{digits}.lock"))
    }

    /// The path of a commit's listing.
    pub(super) fn listing_path(&self, repo: &RepoId, commit: &Commit) -> PathBuf {
        self.repo_folder(repo).join(".earnest").join(format!("{commit}.json"))
    }

    /// Reads the listing of requested files; none unless `earnest` fetched the commit.
    pub fn listing(&self, repo: &RepoId, commit: &Commit) -> Option<Listing> {
        let text = own::read_text(&self.listing_path(repo, commit)).ok()?;
        // Digits name files below `blobs`, and paths files below the snapshot: neither may lead out of them.
        let is_inside =
            |file: &RemoteFile| Hash::from_etag(file.hash.digits()).is_some() && file.local_path(repo).is_ok();
        let listing: Listing = serde_json::from_str(&text).ok()?;
        (listing.commit == *commit && listing.files.iter().all(is_inside)).then_some(listing)
    }

    /// Returns the commits of a repository that have a snapshot.
    pub fn commits(&self, repo: &RepoId) -> Vec<Commit> {
        let mut commits: Vec<Commit> = names(&self.repo_folder(repo).join("snapshots"))
            .iter()
            .filter_map(|name| Commit::parse(name).ok())
            .collect();
        commits.sort();
        commits
    }

    /// Returns the commits of a dataset (`datasets--org--name`) that have a snapshot, with their folders.
    pub fn dataset_snapshots(&self, repo: &RepoId) -> Vec<(Commit, PathBuf)> {
        let snapshots = self.repo_folder(repo).join("snapshots");
        let mut commits: Vec<(Commit, PathBuf)> = names(&snapshots)
            .iter()
            .filter_map(|name| Some((Commit::parse(name).ok()?, snapshots.join(name))))
            .collect();
        commits.sort();
        commits
    }

    /// Returns the model repositories of the cache.
    pub fn repos(&self) -> Vec<RepoId> {
        names(self.folder()).iter().filter_map(|name| RepoId::of_folder(name)).collect()
    }

    /// Inspects every commit of every model repository, complete or not.
    pub fn scan(&self) -> Vec<CachedCommit> {
        let mut commits = Vec::new();
        for repo in self.repos() {
            for commit in self.commits(&repo) {
                commits.push(self.inspect(&repo, &commit));
            }
        }
        commits.sort_by(|a, b| (&a.repo, &a.commit).cmp(&(&b.repo, &b.commit)));
        commits
    }

    /// Lists the present and missing files of a commit.
    pub fn inspect(&self, repo: &RepoId, commit: &Commit) -> CachedCommit {
        let folder = self.snapshot(repo, commit);
        let mut cached = CachedCommit {
            repo: repo.clone(),
            commit: commit.clone(),
            folder: folder.clone(),
            files: 0,
            missing: vec![],
            size: 0,
        };
        let mut seen = BTreeSet::new();
        for path in super::snapshot::files(&folder) {
            let name = path.to_string_lossy().into_owned();
            match std::fs::metadata(folder.join(&path)) {
                Ok(metadata) => {
                    cached.files += 1;
                    cached.size += metadata.len();
                }
                Err(_) => cached.missing.push(name.clone()),
            }
            seen.insert(name);
        }
        let requested = self.listing(repo, commit).map(|listing| listing.files).unwrap_or_default();
        cached.missing.extend(requested.into_iter().map(|file| file.path).filter(|path| !seen.contains(path)));
        // There may be no listing, or one of a few files; every checkpoint needs some.
        let needed = if folder.is_dir() { super::snapshot::missing_files(&folder) } else { Vec::new() };
        for file in needed {
            if !cached.missing.contains(&file) {
                cached.missing.push(file);
            }
        }
        cached
    }

    /// Removes a commit, and the blobs that no other commit of the repository uses, with their locks.
    ///
    /// # Errors
    /// [`HubError::Busy`] if another process is fetching one of the files, [`HubError::Io`].
    pub fn remove(&self, repo: &RepoId, commit: &Commit) -> Result<Removal, HubError> {
        let folder = self.snapshot(repo, commit);
        let linked = self.blobs_of(&folder);
        let listed = self.listing(repo, commit).map(|listing| listing.files).unwrap_or_default();
        let mut digits: BTreeSet<String> = listed.iter().map(|file| file.hash.digits().to_owned()).collect();
        digits.extend(linked);
        let mut used = BTreeSet::new();
        for other in self.commits(repo).into_iter().filter(|other| other != commit) {
            used.extend(self.blobs_of(&self.snapshot(repo, &other)));
            used.extend(
                self.listing(repo, &other).into_iter().flat_map(|l| l.files).map(|f| f.hash.digits().to_owned()),
            );
        }
        // All locks are taken before the first change, so that nothing is half removed while a fetch runs.
        let mut locks = Vec::new();
        for name in digits.iter().filter(|name| !used.contains(*name)) {
            let path = self.lock(repo, name);
            let lock = BlobLock::try_acquire(&path)?;
            locks.push(lock.ok_or_else(|| HubError::Busy { file: name.clone(), path: path.clone() })?);
        }
        // Blobs that no snapshot uses are left over from abandoned fetches or removed links. A running fetch holds a blob's lock until
        // its link exists. Partial downloads are kept while the repository has other commits, because they can be resumed.
        let last = self.commits(repo).iter().all(|other| other == commit);
        let mut orphans = Vec::new();
        for name in names(&self.repo_folder(repo).join("blobs")) {
            let digest = name.split('.').next().unwrap_or_default().to_owned();
            if used.contains(&digest) || digits.contains(&digest) || (!last && digest != name) {
                continue;
            }
            if let Some(lock) = BlobLock::try_acquire(&self.lock(repo, &digest))? {
                locks.push(lock);
                orphans.push(name);
            }
        }
        let files = super::snapshot::files(&folder).len();
        let ignore_missing = |path: &Path, result: std::io::Result<()>| match result {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(HubError::io("remove", path, source)),
            _ => Ok(()),
        };
        ignore_missing(&folder, std::fs::remove_dir_all(&folder))?;
        let listing = self.listing_path(repo, commit);
        ignore_missing(&listing, std::fs::remove_file(&listing))?;
        // Branches that point to the commit would dangle.
        let refs = self.repo_folder(repo).join("refs");
        for name in super::snapshot::files(&refs) {
            let path = refs.join(name);
            if own::read_text(&path).is_ok_and(|text| text.trim() == commit.as_str()) {
                ignore_missing(&path, std::fs::remove_file(&path))?;
            }
        }
        let mut removal = Removal { files, freed: 0, kept: 0, orphans: orphans.len() };
        for name in &orphans {
            let path = self.blob(repo, name);
            removal.freed += std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            ignore_missing(&path, std::fs::remove_file(&path))?;
        }
        for name in &digits {
            if used.contains(name) {
                removal.kept += 1;
                continue;
            }
            for path in [self.blob(repo, name), self.blob(repo, &format!("{name}.incomplete"))] {
                if let Ok(metadata) = std::fs::metadata(&path) {
                    removal.freed += metadata.len();
                    ignore_missing(&path, std::fs::remove_file(&path))?;
                }
            }
        }
        for lock in locks {
            lock.remove();
        }
        if let Some(folder) = self.lock(repo, "").parent() {
            // Succeeds only if it is empty; then its parent.
            if std::fs::remove_dir(folder).is_ok() {
                std::fs::remove_dir(self.folder().join(".locks")).ok();
            }
        }
        if self.commits(repo).is_empty() {
            // Only empty folders are removed: another program may be fetching a blob that no snapshot uses yet.
            for folder in ["snapshots", ".earnest", "refs", "blobs"] {
                std::fs::remove_dir(self.repo_folder(repo).join(folder)).ok();
            }
            std::fs::remove_dir(self.repo_folder(repo)).ok();
        }
        Ok(removal)
    }

    /// Returns the names of the blobs that a snapshot links to.
    fn blobs_of(&self, folder: &Path) -> BTreeSet<String> {
        super::snapshot::files(folder)
            .iter()
            .filter_map(|path| super::snapshot::blob_name(&folder.join(path)))
            .collect()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
