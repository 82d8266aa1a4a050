//! Stored runs for the commands that read them.
use std::path::{Path, PathBuf};

use super::Exit;
use super::error::CliError;
use crate::report::{ReportError, Rows, StoredRows};
use crate::run::store::{RunRecord, Store};
use crate::run::{Manifest, RunFolder, Sample};

/// A run and where its rows are.
pub struct StoredRun {
    pub manifest: Manifest,
    /// The run for people: its folder, or its name in the results folder.
    pub place: String,
    rows: Place,
}

enum Place {
    /// A folder of its own, as earlier versions wrote it.
    Folder(PathBuf),
    Store {
        results: PathBuf,
        record: Box<RunRecord>,
    },
}

impl StoredRun {
    /// The run with this name (or a beginning of it that only one run has) in the results folder, or in a folder of its own.
    pub fn open(results: &Path, name: &str) -> Result<Self, CliError> {
        let folder =
            [PathBuf::from(name), results.join(name)].into_iter().find(|path| path.join("manifest.json").is_file());
        if let Some(path) = folder {
            return Self::folder(&path);
        }
        let store = Store::open(results)?;
        let record = store.run(name)?;
        Ok(Self::record(results, record))
    }

    /// Every run of the results folder.
    pub fn all(results: &Path) -> Result<Vec<Self>, CliError> {
        let mut runs = Vec::new();
        if results.join(crate::run::store::FILE_NAME).is_file() {
            let store = Store::open(results)?;
            runs.extend(store.runs()?.into_iter().map(|record| Self::record(results, record)));
        }
        let entries = std::fs::read_dir(results).map_err(|error| {
            CliError::new(Exit::Results, format!("cannot read {}: {error}", results.display()))
                .help("name the results folder with --results")
        })?;
        let mut folders: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.join("manifest.json").is_file())
            .collect();
        folders.sort();
        for path in folders {
            runs.push(Self::folder(&path)?);
        }
        Ok(runs)
    }

    fn folder(path: &Path) -> Result<Self, CliError> {
        let (parent, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        let folder = RunFolder::locate_exactly(&parent.join(name));
        let missing = || CliError::new(Exit::Results, format!("{} has no manifest", path.display()));
        let manifest = folder.manifest()?.ok_or_else(missing)?;
        Ok(StoredRun { manifest, place: path.display().to_string(), rows: Place::Folder(path.to_owned()) })
    }

    fn record(results: &Path, record: RunRecord) -> Self {
        let place = format!("{} in {}", record.manifest.run, results.display());
        let manifest = record.manifest.clone();
        StoredRun { manifest, place, rows: Place::Store { results: results.to_owned(), record: Box::new(record) } }
    }

    /// All rows in memory.
    pub fn samples(&self) -> Result<Vec<Sample>, ReportError> {
        let mut samples = Vec::new();
        self.walk(&mut |sample| {
            samples.push(sample.clone());
            Ok(())
        })?;
        Ok(samples)
    }
}

impl Rows for StoredRun {
    fn walk(&self, row: &mut dyn FnMut(&Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        match &self.rows {
            Place::Folder(path) => RunFolder::locate_exactly(path).samples()?.walk(row),
            Place::Store { results, record } => {
                let store = Store::open(results)?;
                StoredRows { store: &store, run: record }.walk(row)
            }
        }
    }
}

impl From<ReportError> for CliError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Run(error) => error.into(),
            error => CliError { exit: Exit::Results, message: error.to_string(), help: error.help() },
        }
    }
}

/// Writes a file in one step: beside its place, then renamed, so that an old one stays until the new one is whole. `-` is
/// standard output.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut (dyn std::io::Write + Send)) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    use std::io::Write;
    let failed = |source: std::io::Error| ReportError::Write { path: path.to_owned(), source };
    if path == Path::new("-") {
        let mut out = std::io::BufWriter::new(std::io::stdout());
        write(&mut out)?;
        return out.flush().map_err(failed);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let beside = path.with_file_name(name);
    let attempt = || -> Result<(), ReportError> {
        let file = std::fs::File::create(&beside).map_err(failed)?;
        let mut out = std::io::BufWriter::with_capacity(1 << 18, file);
        write(&mut out)?;
        out.flush().map_err(failed)?;
        std::fs::rename(&beside, path).map_err(failed)
    };
    attempt().inspect_err(|_| {
        std::fs::remove_file(&beside).ok();
    })
}
