//! Hashing a snapshot again.
use std::path::Path;

use serde::Serialize;

use super::{Cache, Commit, Hash, HubError, Listing, RepoId, snapshot};

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// Its bytes have the hash that the hub announced.
    Good,
    Missing,
    WrongSize {
        found: u64,
        expected: u64,
    },
    /// Its bytes have another hash.
    Damaged {
        found: String,
        expected: String,
    },
    /// Nothing says what it should be: a copy without a link to a blob.
    Unknown,
}

/// A file that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub file: String,
    /// Bytes found.
    pub size: u64,
    /// `SHA-256` or `git SHA-1`; none for unknown files.
    pub algorithm: Option<&'static str>,
    /// The digits that were expected.
    pub hash: Option<String>,
    #[serde(flatten)]
    pub state: State,
}

/// Hashes every file of a commit, from the bytes on the disk. What is expected comes from `listing`, else from the names of
/// the blobs; a file that every checkpoint needs and that is not there is missing, whoever fetched the others. `progress` hears the bytes of each piece.
pub fn verify(
    cache: &Cache,
    repo: &RepoId,
    commit: &Commit,
    listing: Option<&Listing>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Checked>, HubError> {
    let folder = cache.snapshot(repo, commit);
    let recorded = cache.listing(repo, commit);
    let listing = listing.or(recorded.as_ref());
    let mut checked = Vec::new();
    let asked = listing.map(|listing| listing.files.as_slice()).unwrap_or_default();
    for file in asked {
        let path = folder.join(file.below(repo)?);
        checked.push(check(&path, file.path.clone(), Some((&file.hash, Some(file.size))), progress)?);
    }
    for below in snapshot::files(&folder) {
        let name = below.to_string_lossy().into_owned();
        if asked.iter().any(|file| file.path == name) {
            continue;
        }
        let path = folder.join(&below);
        let hash = snapshot::blob_name(&path).and_then(|name| Hash::from_etag(&name));
        checked.push(check(&path, name, hash.as_ref().map(|hash| (hash, None)), progress)?);
    }
    for name in snapshot::lacking(&folder) {
        if !checked.iter().any(|known| known.file == name) {
            checked.push(Checked { file: name, size: 0, algorithm: None, hash: None, state: State::Missing });
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
) -> Result<Checked, HubError> {
    let algorithm = expected.map(|(hash, _)| hash.algorithm());
    let hash = expected.map(|(hash, _)| hash.digits().to_owned());
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(Checked { file, size: 0, algorithm, hash, state: State::Missing });
    };
    let size = metadata.len();
    let state = match expected {
        None => State::Unknown,
        Some((_, Some(expected))) if expected != size => State::WrongSize { found: size, expected },
        Some((hash, _)) => {
            let found = hash.of_file(path, progress)?;
            if found == *hash {
                State::Good
            } else {
                State::Damaged { found: found.digits().to_owned(), expected: hash.digits().to_owned() }
            }
        }
    };
    Ok(Checked { file, size, algorithm, hash, state })
}
