//! Files of a snapshot and their links to blobs.
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Cache, Commit, HubError, RepoId};

/// Depth at which the search for files ends.
const MAX_DEPTH: usize = 8;

/// Returns every file below a folder, dangling links included, as sorted relative paths.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((relative, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&relative)).into_iter().flatten().flatten() {
            let path = relative.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_dir() => {}
                _ => files.push(path),
            }
        }
    }
    files.sort();
    files
}

/// Returns the name of the blob that a file of a snapshot links to.
pub(super) fn blob_name(pointer: &Path) -> Option<String> {
    let target = std::fs::read_link(pointer).ok()?;
    let inside = target.parent()?.file_name()? == "blobs";
    let name = target.file_name()?.to_str()?;
    inside.then(|| name.to_owned())
}

/// Links a file of a snapshot, `depth` folders deep, to its blob; by a hard link or copy where the system lacks symbolic links. The folders
/// are there.
pub(super) fn link_blob(pointer: &Path, blob: &Path, depth: usize) -> Result<(), HubError> {
    let name = blob.file_name().unwrap_or_default();
    // snapshots/<commit>/<depth folders>/file -> blobs/name
    let mut target: PathBuf = std::iter::repeat_n("..", depth + 2).collect();
    target.push("blobs");
    target.push(name);
    if std::fs::read_link(pointer).is_ok_and(|old| old == target) && pointer.exists() {
        return Ok(());
    }
    // A new link is renamed over the old one, so that readers always find a file.
    let temporary = temporary_name(pointer);
    let failed = |source| HubError::io("write", pointer, source);
    // Left over from a process of the same number that was killed.
    std::fs::remove_file(&temporary).ok();
    link(&target, blob, &temporary).map_err(failed)?;
    std::fs::rename(&temporary, pointer).inspect_err(|_| drop(std::fs::remove_file(&temporary))).map_err(failed)
}

#[cfg(unix)]
fn link(target: &Path, _blob: &Path, place: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

/// Symbolic links need a privilege on Windows; a hard link costs no space, a copy does.
#[cfg(not(unix))]
fn link(_target: &Path, blob: &Path, place: &Path) -> std::io::Result<()> {
    std::fs::hard_link(blob, place).or_else(|_| std::fs::copy(blob, place).map(drop))
}

/// Returns a name in the same folder that no other process or thread uses.
fn temporary_name(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// Writes a small file atomically: readers see the old content or the new one, never a part.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    let failed = |source| HubError::io("write", path, source);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| HubError::io("create", folder, source))?;
    }
    let temporary = temporary_name(path);
    // Left over from a process of the same number that was killed. What is made now is new: no link to another file.
    std::fs::remove_file(&temporary).ok();
    let written = std::fs::File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    written.inspect_err(|_| drop(std::fs::remove_file(&temporary))).map_err(failed)
}

impl Cache {
    /// Returns the folder of a commit that has all its files. `given` is the user's reference to the model, for the command in the
    /// error.
    ///
    /// # Errors
    /// [`HubError::NotCached`], [`HubError::MissingFile`], [`HubError::OnlyGguf`].
    pub fn checkpoint_folder(&self, repo: &RepoId, commit: &Commit, given: &str) -> Result<PathBuf, HubError> {
        let folder = self.snapshot(repo, commit);
        let fetch = format!("earnest models fetch {given}");
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
        if let Some(file) = self.inspect(repo, commit).missing.into_iter().next() {
            return Err(missing(file));
        }
        match gguf(&folder) {
            Some(file) if is_gguf_only(&folder) => {
                Err(HubError::OnlyGguf { repo: format!("{repo}@{commit}"), file: folder.join(file) })
            }
            _ => Ok(folder),
        }
    }

    /// Returns the folder of a commit that has at least the files of its tokenizer.
    ///
    /// # Errors
    /// As [`Cache::checkpoint_folder`].
    pub fn tokenizer_folder(&self, repo: &RepoId, commit: &Commit, given: &str) -> Result<PathBuf, HubError> {
        let folder = self.snapshot(repo, commit);
        let is_missing = |name: &&&str| !folder.join(name).is_file();
        match TOKENIZER_FILES.iter().find(is_missing) {
            Some(file) if folder.is_dir() && !is_gguf_only(&folder) => Err(HubError::MissingFile {
                file: (*file).to_owned(),
                repo: repo.to_string(),
                fetch: format!(
                    "earnest models fetch {given} {}",
                    TOKENIZER_FILES.map(|file| format!("--file {file}")).join(" ")
                ),
                folder,
            }),
            Some(_) => self.checkpoint_folder(repo, commit, given),
            None => Ok(folder),
        }
    }
}

/// Files needed to render and tokenise prompts.
const TOKENIZER_FILES: [&str; 2] = ["config.json", "tokenizer.json"];

/// Returns the files that every checkpoint needs and this folder lacks: another program may have fetched only a part. None for
/// a folder of GGUF files, which need no others.
pub(super) fn missing_files(folder: &Path) -> Vec<String> {
    if is_gguf_only(folder) {
        return Vec::new();
    }
    let is_missing = |name: &str| !folder.join(name).is_file();
    let mut missing: Vec<String> =
        TOKENIZER_FILES.iter().filter(|name| is_missing(name)).map(|&name| name.to_owned()).collect();
    if is_missing("model.safetensors") {
        match super::own::read_text(&folder.join(INDEX)) {
            Ok(text) => match shards(&text) {
                // An index without weights.
                named if named.is_empty() => missing.push("model.safetensors".to_owned()),
                named => missing.extend(named.into_iter().filter(|shard| is_missing(shard))),
            },
            // Shards without their index, or no weights at all.
            Err(_) => {
                let shard = |path: &PathBuf| path.to_str().is_some_and(|name| name.starts_with("model-00"));
                let name = if files(folder).iter().any(shard) { INDEX } else { "model.safetensors" };
                missing.push(name.to_owned());
            }
        }
    }
    missing
}

/// The index of shards by tensor.
const INDEX: &str = "model.safetensors.index.json";

/// Returns the first GGUF file of a folder.
fn gguf(folder: &Path) -> Option<PathBuf> {
    files(folder).into_iter().find(|path| path.extension().is_some_and(|ending| ending == "gguf"))
}

/// True if a folder's weights are GGUF files; beside safetensors they are a copy.
fn is_gguf_only(folder: &Path) -> bool {
    let safetensors = |path: &PathBuf| {
        path.extension().is_some_and(|ending| ending == "safetensors") || path.as_path() == Path::new(INDEX)
    };
    gguf(folder).is_some() && !files(folder).iter().any(safetensors)
}

/// Returns the files that an index names; none if it is damaged.
fn shards(index: &str) -> Vec<String> {
    let index: serde_json::Value = serde_json::from_str(index).unwrap_or_default();
    let map = index.get("weight_map").and_then(|map| map.as_object());
    let mut names: Vec<String> =
        map.into_iter().flat_map(|map| map.values()).filter_map(|file| file.as_str().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}
