//! A stored run by name, for readers of whole runs: reports, exports, statistics.
use std::path::{Path, PathBuf};

use earnest_tasks::suite::Item;

use crate::outcomes::{facts, results_of};
use crate::store::{RunRecord, Store};
use crate::{Document, LogNames, Manifest, ResultsError, Row, Rows, RowsError, Sample, StoredRows, folder};

/// A run of a results folder. The store is opened for each read, so that the run can be kept and shared.
pub struct StoredRun {
    pub manifest: Manifest,
    /// Name and folder for messages: `RUN in FOLDER`.
    pub place: String,
    results: PathBuf,
    record: RunRecord,
}

impl StoredRun {
    /// Opens the run with this name, or with a part of it that no other run has.
    pub fn open(results: &Path, name: &str) -> Result<Self, ResultsError> {
        let store = Store::open(&results_of(results)?)?;
        let record = store.run(name)?;
        store.check_seal(&record)?;
        Ok(Self::new(results, store.results(), record))
    }

    /// Opens every run of the folder.
    pub fn all(results: &Path) -> Result<Vec<Self>, ResultsError> {
        let store = Store::open(&results_of(results)?)?;
        let checked = |record: RunRecord| {
            store.check_seal(&record)?;
            Ok(Self::new(results, store.results(), record))
        };
        store.runs()?.into_iter().map(checked).collect()
    }

    /// `named` is the folder as the user gave it.
    fn new(named: &Path, results: &Path, record: RunRecord) -> Self {
        let place = format!("{} in {}", record.manifest.run, named.display());
        StoredRun { manifest: record.manifest.clone(), place, results: results.to_owned(), record }
    }

    /// Returns the run's document, as [`folder::document`].
    pub fn document(&self) -> Result<Document, ResultsError> {
        let document = folder::document(&Store::open(&self.results)?, &self.record)?;
        Ok(Document { folder: self.place.clone(), ..document })
    }

    /// Calls `each` with every item, as [`folder::each_item`].
    pub fn each_item(&self, each: impl FnMut(Item)) -> Result<(), ResultsError> {
        folder::each_item(&Store::open(&self.results)?, &self.record, each)
    }

    /// Returns true if the question of every row is stored.
    pub fn has_questions(&self) -> Result<bool, ResultsError> {
        Ok(Store::open(&self.results)?.has_questions(&self.record)?)
    }

    /// Returns the facts about the questions with which an outcome file was written, in place of their texts.
    pub fn question_facts(&self) -> Option<serde_json::Value> {
        facts(&self.results, &self.manifest.run)
    }

    /// Reads all rows into memory.
    pub fn samples(&self) -> Result<Vec<Sample>, RowsError> {
        let mut samples = Vec::new();
        self.walk(&mut |sample| {
            samples.push(sample);
            Ok(())
        })?;
        Ok(samples)
    }
}

impl Rows for StoredRun {
    fn walk(&self, row: &mut dyn FnMut(Sample) -> Result<(), RowsError>) -> Result<(), RowsError> {
        let store = Store::open(&self.results)?;
        StoredRows { store: &store, run: &self.record }.walk(row)
    }

    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), RowsError>) -> Result<(), RowsError> {
        let store = Store::open(&self.results)?;
        StoredRows { store: &store, run: &self.record }.walk_asked(row)
    }

    fn log(&self) -> Option<LogNames> {
        LogNames::of(&self.manifest)
    }
}
