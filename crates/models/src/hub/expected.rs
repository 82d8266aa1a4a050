//! Expected content of files in the cache: before a file is used, it is compared with the name of its blob, which is its hash,
//! or with the listing of its commit.
use std::path::{Path, PathBuf};

use super::{Cache, Commit, Hash, HubError, RepoId};

/// The expected content of a file, according to the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Unknown, because the file is outside the cache.
    OutsideCache,
    /// A hash, and the commit as `org/repo@<commit>` if the path shows it.
    Hash(Hash, Option<String>),
    /// Unknown, because the file is an unlisted copy in the snapshot of this `org/repo@<commit>`.
    Unknown(String),
}

impl Expected {
    /// Determines the expected content from a file's path; the file is not read.
    pub fn of(path: &Path) -> Expected {
        let Some(real) = path.canonicalize().ok() else { return Expected::OutsideCache };
        let place = snapshot(path).or_else(|| std::path::absolute(path).ok().as_deref().and_then(snapshot));
        let place = place.or_else(|| snapshot(&real));
        let named = place.as_ref().map(|place| format!("{}@{}", place.repo, place.commit));
        if let Some(hash) = blob(&real) {
            return Expected::Hash(hash, named);
        }
        let (Some(place), Some(named)) = (place, named) else { return Expected::OutsideCache };
        let listing = Cache::in_folder(place.cache).listing(&place.repo, &place.commit);
        let listed =
            listing.and_then(|listing| listing.files.into_iter().find(|file| Path::new(&file.path) == place.below));
        listed.map_or(Expected::Unknown(named.clone()), |file| Expected::Hash(file.hash, Some(named)))
    }

    /// Compares a file with the expectation. `sha256` returns the file's SHA-256, which the caller may have cached; a git hash is
    /// computed here.
    ///
    /// # Errors
    /// [`HubError::Damaged`] if the hash differs, [`HubError::Io`] if the file cannot be read.
    pub fn check(&self, path: &Path, sha256: impl FnOnce() -> std::io::Result<String>) -> Result<(), HubError> {
        let Expected::Hash(hash, named) = self else { return Ok(()) };
        let found = match hash {
            Hash::Sha256(_) => Hash::Sha256(sha256().map_err(|source| HubError::io("read", path, source))?),
            Hash::GitSha1(_) => hash.of_file(path, |_| ())?,
        };
        if found == *hash {
            return Ok(());
        }
        Err(HubError::Damaged {
            path: path.to_owned(),
            algorithm: hash.algorithm(),
            found: found.digits().to_owned(),
            expected: hash.digits().to_owned(),
            named: named.clone(),
        })
    }
}

/// Returns the hash that names a blob of a cache (`models--org--name/blobs/<digits>`).
fn blob(real: &Path) -> Option<Hash> {
    let blobs = real.parent()?;
    let repository = blobs.parent()?.file_name()?.to_str()?;
    let inside = blobs.file_name()? == "blobs" && repository.starts_with("models--");
    Hash::from_etag(real.file_name()?.to_str()?).filter(|_| inside)
}

/// A path in a cache: `<cache>/models--org--name/snapshots/<commit>/<below>`.
struct Place {
    cache: PathBuf,
    repo: RepoId,
    commit: Commit,
    below: PathBuf,
}

fn snapshot(path: &Path) -> Option<Place> {
    path.ancestors().skip(1).find_map(|folder| {
        let commit = Commit::parse(folder.file_name()?.to_str()?).ok()?;
        let snapshots = folder.parent().filter(|parent| parent.file_name().is_some_and(|name| name == "snapshots"))?;
        let repository = snapshots.parent()?;
        let repo = RepoId::of_folder(repository.file_name()?.to_str()?)?;
        let below = path.strip_prefix(folder).ok()?.to_owned();
        Some(Place { cache: repository.parent()?.to_owned(), repo, commit, below })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn files_are_compared_with_the_hashes_of_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let commit = "a".repeat(40);
        let repository = folder.path().join("models--org--name");
        let (blobs, snapshot) = (repository.join("blobs"), repository.join("snapshots").join(&commit));
        std::fs::create_dir_all(&blobs).unwrap();
        std::fs::create_dir_all(&snapshot).unwrap();
        let digits = earnest_digest::hex(&earnest_digest::sha256(b"weights"));
        std::fs::write(blobs.join(&digits), "weights").unwrap();
        let pointer = snapshot.join("model.safetensors");
        std::os::unix::fs::symlink(Path::new("../../blobs").join(&digits), &pointer).unwrap();
        let sha256 = |path: &Path| earnest_digest::sha256_file(path, |_| ());
        let named = format!("org/name@{commit}");
        let expected = Expected::of(&pointer);
        assert_eq!(expected, Expected::Hash(Hash::Sha256(digits.clone()), Some(named.clone())));
        expected.check(&pointer, || sha256(&pointer)).unwrap();
        // Through a link of the user's, too.
        let link = folder.path().join("mine.safetensors");
        std::os::unix::fs::symlink(&pointer, &link).unwrap();
        assert_eq!(Expected::of(&link), Expected::Hash(Hash::Sha256(digits.clone()), None));
        std::fs::write(blobs.join(&digits), "weightz").unwrap();
        let error = expected.check(&pointer, || sha256(&pointer)).unwrap_err();
        assert!(error.to_string().contains(&digits) && error.help().unwrap().contains(&named), "{error}");
        // A small file, by git's hash: `printf 'hello\n' | git hash-object --stdin`.
        let small = "ce013625030ba8dba906f756967f9e9ca394464a";
        std::fs::write(blobs.join(small), "hello\n").unwrap();
        let config = snapshot.join("config.json");
        std::os::unix::fs::symlink(Path::new("../../blobs").join(small), &config).unwrap();
        Expected::of(&config).check(&config, || unreachable!("its hash is git's")).unwrap();
        // A copy, and a file outside the cache.
        let copy = snapshot.join("tokenizer.json");
        std::fs::write(&copy, "{}").unwrap();
        assert_eq!(Expected::of(&copy), Expected::Unknown(named));
        assert_eq!(Expected::of(&folder.path().join("x")), Expected::OutsideCache);
        let elsewhere = folder.path().join("x");
        std::fs::write(&elsewhere, "x").unwrap();
        assert_eq!(Expected::of(&elsewhere), Expected::OutsideCache);
    }
}
