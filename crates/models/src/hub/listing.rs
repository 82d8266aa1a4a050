//! The files of a commit: names, sizes and hashes, as the hub announces them.
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Commit, HubError, RepoId};

/// A file's content by hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hash {
    /// SHA-256 of the bytes: large files.
    Sha256(String),
    /// SHA-1 of git's blob: small files.
    GitSha1(String),
}

impl Hash {
    /// Parses the hash that names a blob of the cache: 64 or 40 hexadecimal digits.
    pub fn from_etag(etag: &str) -> Option<Hash> {
        let hex = etag.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
        match etag.len() {
            64 if hex => Some(Hash::Sha256(etag.to_owned())),
            40 if hex => Some(Hash::GitSha1(etag.to_owned())),
            _ => None,
        }
    }

    /// The digits, which also name the blob in the cache.
    pub fn digits(&self) -> &str {
        match self {
            Hash::Sha256(digits) | Hash::GitSha1(digits) => digits,
        }
    }

    /// The name of the algorithm.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Hash::Sha256(_) => "SHA-256",
            Hash::GitSha1(_) => "git SHA-1",
        }
    }

    /// Hashes a file with the same algorithm; `progress` is called with the bytes of each piece.
    ///
    /// # Errors
    /// [`HubError::Io`].
    pub fn of_file(&self, path: &Path, progress: impl FnMut(u64)) -> Result<Hash, HubError> {
        let failed = |source| HubError::io("read", path, source);
        Ok(match self {
            Hash::Sha256(_) => Hash::Sha256(earnest_digest::sha256_file(path, progress).map_err(failed)?),
            Hash::GitSha1(_) => Hash::GitSha1(earnest_digest::git_blob_sha1_file(path, progress).map_err(failed)?),
        })
    }
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFile {
    /// Path inside the repository, with slashes.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    pub hash: Hash,
}

impl RemoteFile {
    /// Returns the path relative to a snapshot.
    ///
    /// # Errors
    /// [`HubError::UnsafeName`] if it would lead out of the snapshot.
    pub fn local_path(&self, repo: &RepoId) -> Result<PathBuf, HubError> {
        let path = Path::new(&self.path);
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if self.path.is_empty() || !plain || self.path.contains(['\\', '\0', ':']) {
            return Err(HubError::UnsafeName { repo: repo.to_string(), name: self.path.clone() });
        }
        Ok(path.to_owned())
    }
}

/// The requested files of a commit. Written beside the snapshot, so that missing files are known without asking the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    pub repo: String,
    pub commit: Commit,
    pub files: Vec<RemoteFile>,
}

/// Files of a checkpoint besides the weights.
const METADATA: [&str; 8] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "model.safetensors.index.json",
    "LICENSE",
];

impl Listing {
    /// Selects the files that the native engine reads: metadata, and weights as `model*.safetensors`. Copies of the weights in
    /// other formats (`original/`, `consolidated*.safetensors`, `*.bin`, GGUF) are left out.
    ///
    /// # Errors
    /// [`HubError::NoWeights`].
    pub fn for_native(&self) -> Result<Listing, HubError> {
        let weights = |file: &RemoteFile| file.path.starts_with("model") && file.path.ends_with(".safetensors");
        let chosen =
            |file: &&RemoteFile| !file.path.contains('/') && (weights(file) || METADATA.contains(&file.path.as_str()));
        let files: Vec<RemoteFile> = self.files.iter().filter(chosen).cloned().collect();
        if !files.iter().any(weights) {
            let mut endings: Vec<String> = self
                .files
                .iter()
                .filter_map(|file| file.path.rsplit_once('.').map(|(_, ending)| format!(".{ending}")))
                .collect();
            endings.sort();
            endings.dedup();
            let found =
                if endings.is_empty() { "no files".to_owned() } else { format!("files {}", endings.join(", ")) };
            return Err(HubError::NoWeights { repo: self.repo.clone(), revision: self.commit.to_string(), found });
        }
        Ok(Listing { files, ..self.clone() })
    }

    /// Selects the files of a data set: rows as JSON lines or Parquet, and its card with the licence.
    pub fn rows(&self) -> Listing {
        let chosen = |file: &&RemoteFile| {
            [".jsonl", ".parquet"].iter().any(|ending| file.path.ends_with(ending)) || file.path == "README.md"
        };
        Listing { files: self.files.iter().filter(chosen).cloned().collect(), ..self.clone() }
    }

    /// Selects files by name.
    ///
    /// # Errors
    /// [`HubError::NoSuchFile`].
    pub fn only(&self, names: &[String]) -> Result<Listing, HubError> {
        let find = |name: &String| {
            self.files.iter().find(|file| file.path == *name).cloned().ok_or_else(|| HubError::NoSuchFile {
                repo: self.repo.clone(),
                revision: self.commit.to_string(),
                file: name.clone(),
            })
        };
        Ok(Listing { files: names.iter().map(find).collect::<Result<_, _>>()?, ..self.clone() })
    }

    /// Returns the size of all files in bytes.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> RemoteFile {
        RemoteFile { path: path.to_owned(), size: 1, hash: Hash::GitSha1("0".repeat(40)) }
    }

    fn listing(paths: &[&str]) -> Listing {
        Listing {
            repo: "a/b".into(),
            commit: Commit::parse(&"a".repeat(40)).unwrap(),
            files: paths.iter().map(|path| file(path)).collect(),
        }
    }

    #[test]
    fn weights_are_taken_once() {
        let all = listing(&[
            "README.md",
            "config.json",
            "consolidated.safetensors",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "original/model.safetensors",
            "pytorch_model.bin",
            "tokenizer.json",
            "model.gguf",
        ]);
        let names: Vec<String> = all.for_native().unwrap().files.into_iter().map(|file| file.path).collect();
        assert_eq!(
            names,
            [
                "config.json",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
                "tokenizer.json"
            ]
        );
        let none = listing(&["config.json", "pytorch_model.bin"]).for_native().unwrap_err();
        assert!(none.to_string().contains(".bin"), "{none}");
        assert!(all.only(&["missing".into()]).is_err());
        assert_eq!(all.only(&["model.gguf".into()]).unwrap().files.len(), 1);
    }

    #[test]
    fn names_stay_inside_the_snapshot() {
        let repo = RepoId::parse("a/b").unwrap();
        assert_eq!(file("x/y.json").local_path(&repo).unwrap(), PathBuf::from("x/y.json"));
        for wrong in ["", "../x", "/etc/passwd", "a/../../x", "a\\b", "C:x", "./x"] {
            assert!(file(wrong).local_path(&repo).is_err(), "{wrong}");
        }
    }

    #[test]
    fn blobs_are_named_after_their_content() {
        assert!(matches!(Hash::from_etag(&"a".repeat(64)), Some(Hash::Sha256(_))));
        assert!(matches!(Hash::from_etag(&"0".repeat(40)), Some(Hash::GitSha1(_))));
        assert_eq!(Hash::from_etag(&"A".repeat(40)), None);
        assert_eq!(Hash::from_etag("x"), None);
    }
}
