//! Flat files of samples, of which rows belong to several logs: tables and exports.
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use earnest_tasks::suite::registry::{Row, RowSource, Rows};

use super::fault::LogFault;
use super::log::{Each, FindOptions, Samples};
use super::sample::LogSample;
use crate::LogError;
use earnest_results::LogCard;

/// Rows of a file that were read and checked.
#[derive(Clone)]
pub(super) struct RowsFile {
    pub path: PathBuf,
    rows: Arc<dyn Rows>,
}

impl std::fmt::Debug for RowsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RowsFile").field(&self.path).finish()
    }
}

impl RowsFile {
    /// Reads the rows of a file in a format: `jsonl`, `csv`, `tsv` or `parquet`.
    pub fn read(path: &Path, format: &str, options: &FindOptions) -> Result<Self, LogError> {
        let source = RowSource {
            paths: vec![path.to_owned()],
            format: Some(format.to_owned()),
            skip_bad_rows: options.keep_going,
            columns: Vec::new(),
        };
        let rows = earnest_rows::read(&source).map_err(|mut error| {
            // Its advice names a setting of other commands.
            error.help = error.help.map(|help| help.replace("`skip_bad_rows`", "`keep_going`"));
            LogError::from(error)
        })?;
        Ok(RowsFile { path: path.to_owned(), rows })
    }

    /// Hands on every row with its number.
    pub fn each(&self, each: &mut dyn FnMut(u32, Row) -> Result<(), LogError>) -> Result<(), LogError> {
        for number in 0..self.rows.len() {
            each(u32::try_from(number).unwrap_or(u32::MAX), self.row(number)?)?;
        }
        Ok(())
    }

    fn row(&self, number: usize) -> Result<Row, LogError> {
        self.rows.row(number).map_err(|error| LogError::unread(&self.path, error))
    }

    pub fn error(&self, row: &Row, reason: impl std::fmt::Display) -> LogError {
        let file = self.path.display().to_string();
        let place = row.place.strip_prefix(&file).unwrap_or(&row.place).trim_start_matches(", ");
        LogError::unread_at(&self.path, place, reason)
    }
}

/// Reads a row as a sample.
pub(super) type ReadRow = dyn Fn(&Row, &LogCard) -> Result<LogSample, LogFault> + Send + Sync;

/// The rows of one log.
pub(super) struct Source {
    pub file: RowsFile,
    pub rows: Vec<u32>,
    pub read: Box<ReadRow>,
    /// True if a second row of the same id is a repeat of it.
    pub count_repeats: bool,
    /// Meanings of columns that make the log another one, such as that of originals.
    pub meanings: String,
    /// True for the first log of a file, which has the errors of rows that cannot be read.
    pub first: bool,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("file", &self.file).field("rows", &self.rows.len()).finish()
    }
}

impl Samples for Source {
    fn walk(&self, card: &LogCard, each: Each<'_>) -> Result<(), LogError> {
        if self.first {
            let (count, messages) = self.file.rows.skipped();
            for index in 0..count {
                // The first few are kept with their reasons.
                let said = messages.get(index).map_or("a row cannot be read", String::as_str);
                each(Err(LogError::setting(said)))?;
            }
        }
        let mut repeats: HashMap<String, u32> = HashMap::new();
        for number in &self.rows {
            let row = self.file.row(*number as usize)?;
            let sample = (self.read)(&row, card).map_err(|reason| self.file.error(&row, reason)).map(|mut sample| {
                if self.count_repeats {
                    let repeat = repeats.entry(sample.id.clone()).or_default();
                    sample.epoch = *repeat;
                    *repeat += 1;
                }
                sample
            });
            each(sample)?;
        }
        Ok(())
    }

    fn sha256(&self) -> Result<String, LogError> {
        let mut sum = self.file.rows.files().first().map(|file| file.sha256.clone()).unwrap_or_default();
        // Which rows are of the log.
        let rows: Vec<u8> = self.rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        sum.push_str(&earnest_digest::hex(&earnest_digest::sha256(&rows)));
        sum.push_str(&self.meanings);
        Ok(earnest_digest::hex(&earnest_digest::sha256(sum.as_bytes())))
    }
}
