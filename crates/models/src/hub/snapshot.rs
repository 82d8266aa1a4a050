//! Files of a snapshot: what is there, what is missing, how they point to blobs.
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Cache, Commit, HubError, RepoId};

/// Deepest folder that is looked into.
const DEEPEST: usize = 8;

/// Every file below a folder, relative to it, links that lead nowhere included; in the order of names.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((below, depth)) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&below)).into_iter().flatten().flatten() {
            let path = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEEPEST => open.push((path, depth + 1)),
                Ok(kind) if kind.is_dir() => {}
                _ => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// The name of the blob to which a file of a snapshot points.
pub(super) fn blob_name(pointer: &Path) -> Option<String> {
    let target = std::fs::read_link(pointer).ok()?;
    let inside = target.parent()?.file_name()? == "blobs";
    let name = target.file_name()?.to_str()?;
    inside.then(|| name.to_owned())
}

/// Puts a blob at its place in a snapshot: a relative link, where the system has them.
pub(super) fn point(pointer: &Path, blob: &Path, depth: usize) -> Result<(), HubError> {
    if let Some(folder) = pointer.parent() {
        std::fs::create_dir_all(folder).map_err(|source| HubError::io("create", folder, source))?;
    }
    let name = blob.file_name().unwrap_or_default();
    // snapshots/<commit>/<depth folders>/file -> blobs/name
    let mut target: PathBuf = std::iter::repeat_n("..", depth + 2).collect();
    target.push("blobs");
    target.push(name);
    if std::fs::read_link(pointer).is_ok_and(|old| old == target) && pointer.exists() {
        return Ok(());
    }
    // A new link under another name is renamed over the old one: a reader never finds nothing.
    let fresh = beside(pointer);
    let failed = |source| HubError::io("write", pointer, source);
    link(&target, blob, &fresh).map_err(failed)?;
    std::fs::rename(&fresh, pointer).inspect_err(|_| drop(std::fs::remove_file(&fresh))).map_err(failed)
}

#[cfg(unix)]
fn link(target: &Path, _blob: &Path, place: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

/// Links need a privilege elsewhere; a hard link costs no space, a copy does.
#[cfg(not(unix))]
fn link(_target: &Path, blob: &Path, place: &Path) -> std::io::Result<()> {
    std::fs::hard_link(blob, place).or_else(|_| std::fs::copy(blob, place).map(drop))
}

/// A name in the same folder that no other process or thread uses.
fn beside(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// Writes a small file so that a reader finds the old content or the new one, never a part.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    let failed = |source| HubError::io("write", path, source);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| HubError::io("create", folder, source))?;
    }
    let fresh = beside(path);
    let written = std::fs::File::create(&fresh)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&fresh, path));
    written.inspect_err(|_| drop(std::fs::remove_file(&fresh))).map_err(failed)
}

impl Cache {
    /// The folder of a commit, with everything that was asked for. `named` is how the user names the model, for the command
    /// in the error.
    pub fn ready(&self, repo: &RepoId, commit: &Commit, named: &str) -> Result<PathBuf, HubError> {
        let folder = self.snapshot(repo, commit);
        let fetch = format!("earnest models fetch {named}");
        if !folder.is_dir() {
            return Err(HubError::NotCached {
                repo: repo.to_string(),
                commit: commit.to_string(),
                cache: self.folder().to_owned(),
                fetch,
            });
        }
        let missing = |file: String| HubError::MissingFile {
            file,
            repo: repo.to_string(),
            folder: folder.clone(),
            fetch: fetch.clone(),
        };
        if let Some(file) = self.examine(repo, commit).missing.into_iter().next() {
            return Err(missing(file));
        }
        match gguf(&folder) {
            Some(file) if is_gguf_only(&folder) => {
                Err(HubError::OnlyGguf { repo: format!("{repo}@{commit}"), file: folder.join(file) })
            }
            _ => Ok(folder),
        }
    }

    /// The folder of a commit of which only the tokenizer is used: the weights need not be there. What was fetched has to be.
    pub fn ready_to_tokenise(&self, repo: &RepoId, commit: &Commit, named: &str) -> Result<PathBuf, HubError> {
        let folder = self.snapshot(repo, commit);
        let lacks = |name: &&&str| !folder.join(name).is_file();
        match TOKENISING.iter().find(lacks) {
            Some(file) if folder.is_dir() && !is_gguf_only(&folder) => Err(HubError::MissingFile {
                file: (*file).to_owned(),
                repo: repo.to_string(),
                fetch: format!(
                    "earnest models fetch {named} {}",
                    TOKENISING.map(|file| format!("--file {file}")).join(" ")
                ),
                folder,
            }),
            Some(_) => self.ready(repo, commit, named),
            None => Ok(folder),
        }
    }
}

/// What a folder needs to render and tokenise prompts.
const TOKENISING: [&str; 2] = ["config.json", "tokenizer.json"];

/// Files without which a folder is no checkpoint, and which it lacks: another program may have fetched only a part, and what
/// every checkpoint needs is known. None of a folder of GGUF files, which need no other.
pub(super) fn lacking(folder: &Path) -> Vec<String> {
    if is_gguf_only(folder) {
        return Vec::new();
    }
    let lacks = |name: &str| !folder.join(name).is_file();
    let mut missing: Vec<String> = TOKENISING.iter().filter(|name| lacks(name)).map(|&name| name.to_owned()).collect();
    if lacks("model.safetensors") {
        match std::fs::read_to_string(folder.join(INDEX)) {
            Ok(text) => match shards(&text) {
                // It names no weights, so there are none.
                named if named.is_empty() => missing.push("model.safetensors".to_owned()),
                named => missing.extend(named.into_iter().filter(|shard| lacks(shard))),
            },
            // Shards without their index, or nothing.
            Err(_) => {
                let shard = |path: &PathBuf| path.to_str().is_some_and(|name| name.starts_with("model-00"));
                let name = if files(folder).iter().any(shard) { INDEX } else { "model.safetensors" };
                missing.push(name.to_owned());
            }
        }
    }
    missing
}

/// The file that says which shard has which tensor.
const INDEX: &str = "model.safetensors.index.json";

/// The first GGUF file of a folder.
fn gguf(folder: &Path) -> Option<PathBuf> {
    files(folder).into_iter().find(|path| path.extension().is_some_and(|ending| ending == "gguf"))
}

/// True if a folder's weights are GGUF files: beside safetensors they are a copy that nobody needs.
fn is_gguf_only(folder: &Path) -> bool {
    let safetensors = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "safetensors") || path.as_path() == Path::new(INDEX)
    };
    gguf(folder).is_some() && !files(folder).iter().any(safetensors)
}

/// Files that an index names; none of one that is damaged.
fn shards(index: &str) -> Vec<String> {
    let index: serde_json::Value = serde_json::from_str(index).unwrap_or_default();
    let map = index.get("weight_map").and_then(|map| map.as_object());
    let mut names: Vec<String> =
        map.into_iter().flat_map(|map| map.values()).filter_map(|file| file.as_str().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}
