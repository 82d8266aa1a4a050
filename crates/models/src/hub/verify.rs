//! Verification of a snapshot by hashing its files.
use std::path::Path;

use serde::Serialize;

use super::{Cache, Commit, Hash, HubError, Listing, RepoId, snapshot};

/// Result of verifying a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum FileState {
    /// The file has its expected hash.
    Good,
    /// The file does not exist.
    Missing,
    /// The size in bytes differs.
    WrongSize { found: u64, expected: u64 },
    /// The hash differs.
    Damaged { found: String, expected: String },
    /// The expected hash is not known: a copy instead of a link to a blob.
    Unknown,
}

/// A verified file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedFile {
    pub file: String,
    /// Actual size in bytes.
    pub size: u64,
    /// `SHA-256` or `git SHA-1`; none for unknown files.
    pub algorithm: Option<&'static str>,
    /// The expected digits.
    pub hash: Option<String>,
    #[serde(flatten)]
    pub state: FileState,
}

/// Hashes every file of a commit and compares it with `listing`, else with the recorded listing and the names of the blobs. Files
/// that every checkpoint needs are reported as missing even if no listing has them. `progress` is called with the bytes of each
/// piece.
///
/// # Errors
/// [`HubError::Io`].
pub fn verify(
    cache: &Cache,
    repo: &RepoId,
    commit: &Commit,
    listing: Option<&Listing>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<CheckedFile>, HubError> {
    let folder = cache.snapshot(repo, commit);
    let recorded = cache.listing(repo, commit);
    let listing = listing.or(recorded.as_ref());
    let mut checked = Vec::new();
    let requested = listing.map(|listing| listing.files.as_slice()).unwrap_or_default();
    for file in requested {
        let path = folder.join(file.local_path(repo)?);
        checked.push(check(&path, file.path.clone(), Some((&file.hash, Some(file.size))), progress)?);
    }
    for relative in snapshot::files(&folder) {
        let name = relative.to_string_lossy().into_owned();
        if requested.iter().any(|file| file.path == name) {
            continue;
        }
        let path = folder.join(&relative);
        let hash = snapshot::blob_name(&path).and_then(|name| Hash::from_etag(&name));
        checked.push(check(&path, name, hash.as_ref().map(|hash| (hash, None)), progress)?);
    }
    for name in snapshot::missing_files(&folder) {
        if !checked.iter().any(|known| known.file == name) {
            checked.push(CheckedFile { file: name, size: 0, algorithm: None, hash: None, state: FileState::Missing });
        }
    }
    checked.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(checked)
}

fn check(
    path: &Path,
    file: String,
    expected: Option<(&Hash, Option<u64>)>,
    progress: &mut dyn FnMut(u64),
) -> Result<CheckedFile, HubError> {
    let algorithm = expected.map(|(hash, _)| hash.algorithm());
    let hash = expected.map(|(hash, _)| hash.digits().to_owned());
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(CheckedFile { file, size: 0, algorithm, hash, state: FileState::Missing });
    };
    let size = metadata.len();
    let state = match expected {
        None => FileState::Unknown,
        Some((_, Some(expected))) if expected != size => FileState::WrongSize { found: size, expected },
        Some((hash, _)) => {
            let actual = hash.of_file(path, progress)?;
            if actual == *hash {
                FileState::Good
            } else {
                FileState::Damaged { found: actual.digits().to_owned(), expected: hash.digits().to_owned() }
            }
        }
    };
    Ok(CheckedFile { file, size, algorithm, hash, state })
}
