//! A run's folder: `manifest.json`, `samples.jsonl`, `summary.json` and a lock.
use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{LogEnd, MANIFEST_FORMAT, Manifest, RunError, Sample, SampleKey, SampleLog};

/// The folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Held while this value lives; the system frees it if the process is killed.
    lock: Option<File>,
}

/// What earlier sessions wrote.
#[derive(Debug)]
pub struct Standing {
    /// Samples that have a row. True: the row is a failure worth another try.
    pub rows: HashMap<SampleKey, bool>,
    pub end: LogEnd,
}

impl Standing {
    /// True if the sample must not be asked (again).
    pub fn settles(&self, key: &SampleKey) -> bool {
        self.rows.get(key) == Some(&false)
    }

    /// Samples that need not be asked.
    pub fn settled(&self) -> usize {
        self.rows.values().filter(|&&retry| !retry).count()
    }
}

impl RunFolder {
    /// The newest folder of a run below `results`, or with `fresh` the next one: `<id>`, `<id>.2`, `<id>.3`, ...
    /// Nothing is created.
    pub fn locate(results: &Path, id: &str, fresh: bool) -> Self {
        let name = |number: usize| if number == 1 { id.to_owned() } else { format!("{id}.{number}") };
        let mut next = 1;
        while results.join(name(next)).exists() {
            next += 1;
        }
        let number = if fresh { next } else { next.saturating_sub(1).max(1) };
        RunFolder { path: results.join(name(number)), lock: None }
    }

    /// The run in this folder, whatever it is called.
    pub fn locate_exactly(path: &Path) -> Self {
        RunFolder { path: path.to_owned(), lock: None }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's id: the folder's name.
    pub fn id(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Where the samples are.
    pub fn samples_path(&self) -> PathBuf {
        self.path.join("samples.jsonl")
    }

    /// Where the summary is.
    pub fn summary_path(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    fn manifest_path(&self) -> PathBuf {
        self.path.join("manifest.json")
    }

    /// Creates the folder if need be and makes sure that no other process works in it.
    pub fn lock(&mut self) -> Result<(), RunError> {
        std::fs::create_dir_all(&self.path).map_err(|source| RunError::io("create", self.path.as_path(), source))?;
        let path = self.path.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|source| RunError::io("open", path.as_path(), source))?;
        match file.try_lock() {
            Ok(()) => {
                self.lock = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(RunError::Locked { run: self.id() }),
            Err(TryLockError::Error(source)) => Err(RunError::io("lock", path, source)),
        }
    }

    /// True after [`RunFolder::lock`].
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// The manifest; none if the run never began.
    pub fn manifest(&self) -> Result<Option<Manifest>, RunError> {
        let path = self.manifest_path();
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RunError::io("read", path, source)),
        };
        #[derive(serde::Deserialize)]
        struct Head {
            format: u32,
        }
        let broken = |error: serde_json::Error| RunError::Manifest {
            path: path.clone(),
            run: self.id(),
            reason: error.to_string(),
        };
        let head: Head = serde_json::from_slice(&text).map_err(broken)?;
        if head.format > MANIFEST_FORMAT {
            return Err(RunError::LaterFormat { path, found: head.format, known: MANIFEST_FORMAT });
        }
        serde_json::from_slice(&text).map(Some).map_err(broken)
    }

    /// Writes the manifest.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RunError> {
        self.write_json(&self.manifest_path(), manifest)
    }

    /// Writes the summary.
    pub fn write_summary(&self, summary: &impl Serialize) -> Result<(), RunError> {
        self.write_json(&self.summary_path(), summary)
    }

    /// Replaces a file in one step, so that a reader sees the old one or the new one, never a half.
    fn write_json(&self, path: &Path, value: &impl Serialize) -> Result<(), RunError> {
        let beside = path.with_extension("json.tmp");
        let write = || -> std::io::Result<()> {
            let mut text = serde_json::to_vec_pretty(value)?;
            text.push(b'\n');
            let mut file = File::create(&beside)?;
            file.write_all(&text)?;
            file.sync_data()?;
            std::fs::rename(&beside, path)
        };
        write().map_err(|source| {
            std::fs::remove_file(&beside).ok();
            RunError::io("write", path, source)
        })
    }

    /// Reads which samples have rows.
    pub fn standing(&self) -> Result<Standing, RunError> {
        let mut rows = HashMap::new();
        let end = SampleLog::read(&self.samples_path(), &self.id(), |sample| {
            let retry = sample.failure.as_ref().is_some_and(|failure| failure.retryable);
            rows.insert(sample.key(), retry);
        })?;
        Ok(Standing { rows, end })
    }

    /// Reads all rows, the last one a sample, in the order in which samples appear first.
    pub fn samples(&self) -> Result<Vec<Sample>, RunError> {
        let mut places = HashMap::new();
        let mut samples: Vec<Sample> = Vec::new();
        SampleLog::read(&self.samples_path(), &self.id(), |sample| {
            let place = *places.entry(sample.key()).or_insert(samples.len());
            match samples.get_mut(place) {
                Some(earlier) => *earlier = sample,
                None => samples.push(sample),
            }
        })?;
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_get_folders_of_their_own() {
        let results = tempfile::tempdir().unwrap();
        let at = |fresh| RunFolder::locate(results.path(), "run", fresh);
        assert_eq!(at(false).id(), "run");
        assert_eq!(at(true).id(), "run");
        at(false).lock().unwrap();
        assert_eq!(at(false).id(), "run");
        assert_eq!(at(true).id(), "run.2");
        at(true).lock().unwrap();
        assert_eq!(at(false).id(), "run.2");
    }

    #[test]
    fn two_processes_never_share_a_run() {
        let results = tempfile::tempdir().unwrap();
        let mut one = RunFolder::locate(results.path(), "run", false);
        let mut two = RunFolder::locate(results.path(), "run", false);
        one.lock().unwrap();
        assert!(matches!(two.lock(), Err(RunError::Locked { .. })));
        drop(one);
        two.lock().unwrap();
    }

    #[test]
    fn a_broken_or_later_manifest_is_refused_by_name() {
        let results = tempfile::tempdir().unwrap();
        let mut folder = RunFolder::locate(results.path(), "run", false);
        folder.lock().unwrap();
        assert_eq!(folder.manifest().unwrap(), None);
        std::fs::write(folder.manifest_path(), "{").unwrap();
        assert!(matches!(folder.manifest(), Err(RunError::Manifest { .. })));
        std::fs::write(folder.manifest_path(), r#"{"format": 2, "anything": 1}"#).unwrap();
        assert!(matches!(folder.manifest(), Err(RunError::LaterFormat { found: 2, .. })));
    }
}
