//! A stored run by name, for readers of whole runs: reports, exports, statistics.
use std::path::{Path, PathBuf};

use earnest_tasks::suite::Item;

use crate::outcomes::{facts, results_of};
use crate::report::page::{QuestionTexts, ReportRun};
use crate::report::{Document, ReportError, Row, Rows, StoredRows};
use crate::run::store::{RunRecord, Store};
use crate::run::{LogNames, Manifest, Sample};
use crate::{EvalError, results};

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
    pub fn open(results: &Path, name: &str) -> Result<Self, EvalError> {
        let store = Store::open(&results_of(results)?)?;
        let record = store.run(name)?;
        store.check_seal(&record)?;
        Ok(Self::new(results, store.results(), record))
    }

    /// Opens every run of the folder.
    pub fn all(results: &Path) -> Result<Vec<Self>, EvalError> {
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

    /// Returns the run's document, as [`results::document`].
    pub fn document(&self) -> Result<Document, EvalError> {
        let document = results::document(&Store::open(&self.results)?, &self.record)?;
        Ok(Document { folder: self.place.clone(), ..document })
    }

    /// Calls `each` with every item, as [`results::each_item`].
    pub fn each_item(&self, each: impl FnMut(Item)) -> Result<(), EvalError> {
        results::each_item(&Store::open(&self.results)?, &self.record, each)
    }

    /// Returns the questions by item, without the chat template.
    pub fn questions(&self) -> Result<QuestionTexts, EvalError> {
        let mut questions = QuestionTexts::default();
        self.each_item(|item| questions.add(item))?;
        Ok(questions)
    }

    /// Returns true if the question of every row is stored.
    pub fn has_questions(&self) -> Result<bool, EvalError> {
        Ok(Store::open(&self.results)?.has_questions(&self.record)?)
    }

    /// Returns the facts about the questions with which an outcome file was written, in place of their texts.
    pub fn question_facts(&self) -> Option<serde_json::Value> {
        facts(&self.results, &self.manifest.run)
    }

    /// Reads all rows into memory.
    pub fn samples(&self) -> Result<Vec<Sample>, ReportError> {
        let mut samples = Vec::new();
        self.walk(&mut |sample| {
            samples.push(sample);
            Ok(())
        })?;
        Ok(samples)
    }

    /// Returns the run as a report shows it.
    ///
    /// # Errors
    /// If the run has no samples.
    pub fn report(&self) -> Result<ReportRun, EvalError> {
        let samples = self.samples()?;
        if samples.is_empty() {
            let message = format!("{} has no samples yet: there is nothing to report", self.place);
            return Err(EvalError::results(message).hint("continue the run with the command that began it"));
        }
        Ok(ReportRun::stored(self.document()?, samples, self.questions()?))
    }
}

impl Rows for StoredRun {
    fn walk(&self, row: &mut dyn FnMut(Sample) -> Result<(), ReportError>) -> Result<(), ReportError> {
        let store = Store::open(&self.results)?;
        StoredRows { store: &store, run: &self.record }.walk(row)
    }

    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), ReportError>) -> Result<(), ReportError> {
        let store = Store::open(&self.results)?;
        StoredRows { store: &store, run: &self.record }.walk_asked(row)
    }

    fn log(&self) -> Option<LogNames> {
        LogNames::of(&self.manifest)
    }
}
