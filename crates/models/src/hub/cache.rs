//! The cache of `huggingface_hub`: `models--org--name/{blobs,snapshots/<commit>}`. Names and paths are those of the crate
//! `hf-hub`; snapshots are found by their commit, so `refs/` is never read.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::lock::BlobLock;
use super::{Commit, Environment, HubError, Listing, RepoId};

/// A folder of cached repositories.
#[derive(Debug, Clone)]
pub struct Cache {
    inner: hf_hub::Cache,
}

/// A commit in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cached {
    pub repo: RepoId,
    pub commit: Commit,
    pub folder: PathBuf,
    /// Files with their content, and those whose content is missing: what was fetched, and what every checkpoint needs.
    pub files: usize,
    pub missing: Vec<String>,
    /// Bytes of the files that are there.
    pub size: u64,
}

/// What a removal did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removed {
    pub files: usize,
    /// Bytes that were freed; blobs that another commit uses stay.
    pub freed: u64,
    pub kept: usize,
    /// Blobs that no commit used.
    pub orphans: usize,
}

impl Cache {
    /// The cache that the environment names.
    pub fn of(environment: &Environment) -> Result<Cache, HubError> {
        environment.cache.clone().map(Cache::at).ok_or(HubError::NoCacheFolder)
    }

    /// The cache in this folder.
    pub fn at(folder: PathBuf) -> Cache {
        Cache { inner: hf_hub::Cache::new(folder) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.inner.path()
    }

    fn repo_name(repo: &RepoId) -> String {
        hf_hub::Repo::model(repo.as_str().to_owned()).folder_name()
    }

    /// `models--org--name`.
    pub fn repo_folder(&self, repo: &RepoId) -> PathBuf {
        self.folder().join(Cache::repo_name(repo))
    }

    /// The folder of a commit, whether it is there or not.
    pub fn snapshot(&self, repo: &RepoId, commit: &Commit) -> PathBuf {
        self.inner.model(repo.as_str().to_owned()).pointer_path(commit.as_str())
    }

    /// A blob, named after its hash.
    pub(super) fn blob(&self, repo: &RepoId, digits: &str) -> PathBuf {
        self.repo_folder(repo).join("blobs").join(digits)
    }

    /// The lock of a blob, where `huggingface_hub` has it.
    pub(super) fn lock(&self, repo: &RepoId, digits: &str) -> PathBuf {
        self.folder().join(".locks").join(Cache::repo_name(repo)).join(format!("{digits}.lock"))
    }

    /// What was asked for of a commit.
    pub(super) fn listing_path(&self, repo: &RepoId, commit: &Commit) -> PathBuf {
        self.repo_folder(repo).join(".earnest").join(format!("{commit}.json"))
    }

    /// The listing, where `earnest` fetched the commit.
    pub fn listing(&self, repo: &RepoId, commit: &Commit) -> Option<Listing> {
        let text = std::fs::read_to_string(self.listing_path(repo, commit)).ok()?;
        serde_json::from_str(&text).ok().filter(|listing: &Listing| listing.commit == *commit)
    }

    /// The commits of a repository that have a snapshot.
    pub fn commits(&self, repo: &RepoId) -> Vec<Commit> {
        let mut commits: Vec<Commit> = names(&self.repo_folder(repo).join("snapshots"))
            .iter()
            .filter_map(|name| Commit::parse(name).ok())
            .collect();
        commits.sort();
        commits
    }

    /// The commits of a dataset (`datasets--org--name`) that have a snapshot, with their folders.
    pub fn dataset_snapshots(&self, repo: &RepoId) -> Vec<(Commit, PathBuf)> {
        let name = hf_hub::Repo::dataset(repo.as_str().to_owned()).folder_name();
        let snapshots = self.folder().join(name).join("snapshots");
        let mut found: Vec<(Commit, PathBuf)> = names(&snapshots)
            .iter()
            .filter_map(|name| Some((Commit::parse(name).ok()?, snapshots.join(name))))
            .collect();
        found.sort();
        found
    }

    /// Every commit of every model repository, complete or not.
    pub fn scan(&self) -> Vec<Cached> {
        let mut found = Vec::new();
        for name in names(self.folder()) {
            let Some(repo) = RepoId::of_folder(&name) else { continue };
            for commit in self.commits(&repo) {
                found.push(self.examine(&repo, &commit));
            }
        }
        found.sort_by(|a, b| (&a.repo, &a.commit).cmp(&(&b.repo, &b.commit)));
        found
    }

    /// What is there of a commit.
    pub fn examine(&self, repo: &RepoId, commit: &Commit) -> Cached {
        let folder = self.snapshot(repo, commit);
        let mut cached = Cached {
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
        let asked = self.listing(repo, commit).map(|listing| listing.files).unwrap_or_default();
        cached.missing.extend(asked.into_iter().map(|file| file.path).filter(|path| !seen.contains(path)));
        // A listing says what was asked for, and there may be none; a checkpoint needs more than nothing.
        let needed = if folder.is_dir() { super::snapshot::lacking(&folder) } else { Vec::new() };
        for file in needed {
            if !cached.missing.contains(&file) {
                cached.missing.push(file);
            }
        }
        cached
    }

    /// Removes a commit, and the blobs that no other commit of the repository uses, with their locks.
    pub fn remove(&self, repo: &RepoId, commit: &Commit) -> Result<Removed, HubError> {
        let folder = self.snapshot(repo, commit);
        let mine = self.blobs_of(&folder);
        let listed = self.listing(repo, commit).map(|listing| listing.files).unwrap_or_default();
        let mut digits: BTreeSet<String> = listed.iter().map(|file| file.hash.digits().to_owned()).collect();
        digits.extend(mine);
        let mut used = BTreeSet::new();
        for other in self.commits(repo).into_iter().filter(|other| other != commit) {
            used.extend(self.blobs_of(&self.snapshot(repo, &other)));
            used.extend(
                self.listing(repo, &other).into_iter().flat_map(|l| l.files).map(|f| f.hash.digits().to_owned()),
            );
        }
        // All locks before the first change, so that a fetch that is at work is told apart and nothing is half removed.
        let mut locks = Vec::new();
        for name in digits.iter().filter(|name| !used.contains(*name)) {
            let path = self.lock(repo, name);
            let lock = BlobLock::attempt(&path)?;
            locks.push(lock.ok_or_else(|| HubError::Busy { file: name.clone(), path: path.clone() })?);
        }
        // Blobs to which no snapshot points: of a fetch that was given up, or of links that somebody removed. Who is fetching one
        // holds its lock until the link is there. What is half fetched may be continued while the repository has other commits.
        let last = self.commits(repo).iter().all(|other| other == commit);
        let mut orphans = Vec::new();
        for name in names(&self.repo_folder(repo).join("blobs")) {
            let whole = name.split('.').next().unwrap_or_default().to_owned();
            if used.contains(&whole) || digits.contains(&whole) || (!last && whole != name) {
                continue;
            }
            if let Some(lock) = BlobLock::attempt(&self.lock(repo, &whole))? {
                locks.push(lock);
                orphans.push(name);
            }
        }
        let files = super::snapshot::files(&folder).len();
        let gone = |path: &Path, result: std::io::Result<()>| match result {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(HubError::io("remove", path, source)),
            _ => Ok(()),
        };
        gone(&folder, std::fs::remove_dir_all(&folder))?;
        let listing = self.listing_path(repo, commit);
        gone(&listing, std::fs::remove_file(&listing))?;
        // Branches that name the commit would name nothing.
        let refs = self.repo_folder(repo).join("refs");
        for name in super::snapshot::files(&refs) {
            let path = refs.join(name);
            if std::fs::read_to_string(&path).is_ok_and(|text| text.trim() == commit.as_str()) {
                gone(&path, std::fs::remove_file(&path))?;
            }
        }
        let mut removed = Removed { files, freed: 0, kept: 0, orphans: orphans.len() };
        for name in &orphans {
            let path = self.blob(repo, name);
            removed.freed += std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            gone(&path, std::fs::remove_file(&path))?;
        }
        for name in &digits {
            if used.contains(name) {
                removed.kept += 1;
                continue;
            }
            for path in [self.blob(repo, name), self.blob(repo, &format!("{name}.incomplete"))] {
                if let Ok(metadata) = std::fs::metadata(&path) {
                    removed.freed += metadata.len();
                    gone(&path, std::fs::remove_file(&path))?;
                }
            }
        }
        for lock in locks {
            lock.remove();
        }
        if let Some(folder) = self.lock(repo, "").parent() {
            // Only if it is empty, and then its parent.
            if std::fs::remove_dir(folder).is_ok() {
                std::fs::remove_dir(self.folder().join(".locks")).ok();
            }
        }
        if self.commits(repo).is_empty() {
            // Only what is empty goes: another program may be fetching a blob that no snapshot uses yet.
            for folder in ["snapshots", ".earnest", "refs", "blobs"] {
                std::fs::remove_dir(self.repo_folder(repo).join(folder)).ok();
            }
            std::fs::remove_dir(self.repo_folder(repo)).ok();
        }
        Ok(removed)
    }

    /// Names of the blobs to which the files of a snapshot point.
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
