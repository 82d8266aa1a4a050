//! Files of a folder and the folders in it: what is below it, and nothing else.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use crate::LogError;
use earnest_digest::input::{is_of_the_kernel, is_regular};
use earnest_results::{FilesNotice, Notice};

/// Number of files that a notice names.
pub(super) const SHOWN: usize = 3;

/// Files of a folder.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub found: Vec<PathBuf>,
    /// Links that lead out of the folder, or nowhere.
    links: Vec<PathBuf>,
    /// Pipes, devices and files of the kernel.
    others: Vec<PathBuf>,
}

/// Finds the files in a folder and the folders below it, hidden ones excepted. A link is followed where it leads to something below the
/// folder, or in the cache of Hugging Face below the repository's folder, whose snapshots are links; the folder itself may be a link.
///
/// # Errors
/// Folders that cannot be read.
pub(super) fn files(path: &Path) -> Result<Files, LogError> {
    let failed = |path: &Path| {
        let name = path.display().to_string();
        move |error| LogError::input(name, error)
    };
    let root = with_blobs(std::fs::canonicalize(path).map_err(failed(path))?);
    let mut files = Files::default();
    let mut folders = vec![path.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        // A link to a folder above would never end.
        if !seen.insert(std::fs::canonicalize(&folder).map_err(failed(&folder))?) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).map_err(failed(&folder))? {
            let entry = entry.map_err(failed(&folder))?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with('.')) {
                continue;
            }
            let path = entry.path();
            if !is_below(&entry, &root) {
                files.links.push(path);
                continue;
            }
            match std::fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() && !is_of_the_kernel(&metadata) => folders.push(path),
                Ok(metadata) if is_regular(&metadata) => files.found.push(path),
                Ok(_) => files.others.push(path),
                // It was removed meanwhile.
                Err(_) => {}
            }
        }
    }
    Ok(files)
}

/// The repository's folder of a snapshot in the cache of Hugging Face, where the files are that its links lead to; else the folder itself.
fn with_blobs(folder: PathBuf) -> PathBuf {
    let is_repository = |folder: &Path| {
        let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
        ["datasets--", "models--", "spaces--"].iter().any(|kind| name.starts_with(kind))
    };
    folder.ancestors().find(|folder| is_repository(folder)).map(Path::to_owned).unwrap_or(folder)
}

/// True for what is no link, and for a link to something below a folder.
fn is_below(entry: &DirEntry, root: &Path) -> bool {
    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
    !is_link || std::fs::canonicalize(entry.path()).is_ok_and(|target| target.starts_with(root))
}

impl Files {
    /// Notices of what was left out.
    pub fn notes(&self) -> impl Iterator<Item = Notice> {
        let count = |paths: &[PathBuf]| Some(paths.len()).filter(|count| *count > 0);
        let links = count(&self.links).map(|count| FilesNotice::LinksLeftOut { count, first: first(&self.links) });
        let others = count(&self.others).map(|count| FilesNotice::NotRegular { count, first: first(&self.others) });
        links.into_iter().chain(others).map(Notice::from)
    }
}

/// The first names in the order of the alphabet.
fn first(paths: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<&OsStr> = paths.iter().map(|path| path.as_os_str()).collect();
    names.sort_unstable();
    names.into_iter().take(SHOWN).map(|name| name.display().to_string()).collect()
}
