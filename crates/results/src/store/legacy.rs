//! Results of early versions: a folder per run with `manifest.json` and `samples.jsonl`.
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::BULK_ROWS;
use super::database::Store;
use crate::{Manifest, RunError, SampleKey, read_jsonl};

/// Returns the folders of such runs below a results folder, sorted.
pub fn legacy_folders(results: &Path) -> Result<Vec<PathBuf>, RunError> {
    let entries = match std::fs::read_dir(results) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(RunError::io("read", results, source)),
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("manifest.json").is_file() && path.join("samples.jsonl").is_file())
        .collect();
    folders.sort();
    Ok(folders)
}

impl Store {
    /// Imports such a run and moves its folder to `<results>/taken-over/`. `indices` returns the indices of all samples in the
    /// manifest's plan. Returns the run's name and the number of its rows.
    pub fn import_legacy<E: From<RunError>>(
        &self,
        folder: &Path,
        indices: impl FnOnce(&Manifest) -> Result<HashMap<SampleKey, usize>, E>,
    ) -> Result<(String, usize), E> {
        let path = folder.join("manifest.json");
        let text = earnest_digest::input::read_text(&path, earnest_digest::input::MOST_DOCUMENT)
            .map_err(|source| RunError::io("read", path.as_path(), source))?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let manifest = self.manifest(&name, &text)?;
        let indices = indices(&manifest)?;
        let _lock = self.lock(&manifest.run)?;
        // Rows of an interrupted attempt are overwritten.
        let run = match self.exactly(&manifest.run)? {
            Some(run) if run.manifest.settings_sha256 == manifest.settings_sha256 => run,
            Some(_) => return Err(RunError::OtherSettings { path: path.clone() }.into()),
            None => self.begin(&manifest, indices.len())?,
        };
        let mut writer = self.writer(&run).batches_of(BULK_ROWS);
        let samples = folder.join("samples.jsonl");
        let mut line = 0;
        let end = read_jsonl(&samples, &manifest.run, |sample| {
            line += 1;
            let Some(&index) = indices.get(&sample.key()) else {
                let reason = format!("sample {} of {} is not in the run's plan", sample.sample, sample.item);
                return Err(RunError::Damaged { path: samples.clone(), line, reason });
            };
            writer.push(index, sample)
        })?;
        writer.write()?;
        let aside = self.results().join("taken-over");
        let target = aside.join(&name);
        std::fs::create_dir_all(&aside)
            .and_then(|()| std::fs::rename(folder, &target))
            .map_err(|source| RunError::io("move", folder, source))?;
        Ok((manifest.run, end.rows))
    }
}
