//! The results file and its runs.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::read::{Filter, Samples};
use super::write::SampleWriter;
use super::{RunLock, names, row, schema};
use crate::{MANIFEST_FORMAT, Manifest, Notice, RunError, RunNotice, Status};

/// Columns of a run's row in the order of its seal.
const RUN_COLUMNS: &str = "id, name, settings_sha256, suite, model, status, started, ended, manifest, planned, summary";

/// Number of [`RUN_COLUMNS`].
const RUN_COLUMN_COUNT: usize = 11;

/// Bits of a sample's key for its index in the plan.
const INDEX_BITS: u32 = 32;

/// Index behind the last one that a plan can have.
pub const PLAN_END: usize = 1 << INDEX_BITS;

/// Returns the key of the sample at an index in a run's plan.
pub(super) fn key(run: i64, index: usize) -> i64 {
    (run << INDEX_BITS) + index as i64
}

/// The results of a folder.
///
/// Processes can share a folder: readers never wait, writers wait for each other's transactions, and a run has one writer at a
/// time ([`RunLock`]).
pub struct Store {
    results: PathBuf,
    path: PathBuf,
    connection: Connection,
    /// Receiver of notices about the reading of names.
    listener: Option<Listener>,
}

/// Receiver of a store's notices.
pub type Listener = Box<dyn Fn(&Notice) + Send>;

/// A stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Number of the run in this file.
    pub id: i64,
    pub manifest: Manifest,
    /// Number of samples in the plan.
    pub planned: usize,
    /// True if the row (manifest, summary and the columns of lists) was edited after it was written: its seal does not fit.
    pub edited: bool,
}

/// Progress of a run: the samples of its plan that are settled, that is, have a row without a retryable failure.
#[derive(Debug, Clone, Default)]
pub struct RunProgress {
    /// Flags by index in the plan.
    settled: Vec<bool>,
    count: usize,
    failed: usize,
    scored: usize,
    correct: usize,
    /// Number of items by number of the stored pack.
    packs: BTreeMap<usize, usize>,
}

impl RunProgress {
    /// True if the sample has a row without a retryable failure.
    pub fn is_settled(&self, index: usize) -> bool {
        self.settled.get(index).copied().unwrap_or(false)
    }

    /// Returns the number of settled samples.
    pub fn settled(&self) -> usize {
        self.count
    }

    /// Returns the number of items by number of the stored pack.
    pub fn packs(&self) -> &BTreeMap<usize, usize> {
        &self.packs
    }

    /// Returns the number of settled samples that failed.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// Returns the number of samples with a score.
    pub fn scored(&self) -> usize {
        self.scored
    }

    /// Returns the number of samples scored correct.
    pub fn correct(&self) -> usize {
        self.correct
    }
}

impl Store {
    /// Opens the results of a folder.
    ///
    /// # Errors
    /// No results, or results of another version.
    pub fn open(results: &Path) -> Result<Self, RunError> {
        Self::open_with(results, false)
    }

    /// Opens or creates the results of a folder.
    pub fn create(results: &Path) -> Result<Self, RunError> {
        Self::open_with(results, true)
    }

    fn open_with(results: &Path, create: bool) -> Result<Self, RunError> {
        let (path, connection) = schema::open(results, create)?;
        Ok(Store { results: results.to_owned(), path, connection, listener: None })
    }

    /// Says to a listener how a name was read, where that is not plain.
    pub fn listen(&mut self, listener: Listener) {
        self.listener = Some(listener);
    }

    /// Returns the results folder.
    pub fn results(&self) -> &Path {
        &self.results
    }

    /// Returns the path of the results file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn error(&self, action: &'static str, source: rusqlite::Error) -> RunError {
        RunError::store_on(action, &self.path, source, &self.connection)
    }

    /// Returns all runs, the oldest first.
    pub fn runs(&self) -> Result<Vec<RunRecord>, RunError> {
        self.select("ORDER BY started, id", [])
    }

    /// Returns the run with this name, or the only one that it means. Runs without rows do not count where another
    /// matches.
    pub fn run(&self, name: &str) -> Result<RunRecord, RunError> {
        if let Some(exact) = self.exactly(name)? {
            return Ok(exact);
        }
        let names = self.names()?;
        match &names::meant(name, &names)[..] {
            [only] => self.exactly(only)?.ok_or_else(|| RunError::NoRun { name: name.to_owned(), runs: names.clone() }),
            [] => Err(RunError::NoRun { name: name.to_owned(), runs: names }),
            several => {
                let runs = several.iter().map(|run| self.exactly(run)).collect::<Result<Vec<_>, _>>()?;
                self.only_with_rows(name, runs.into_iter().flatten().collect())
            }
        }
    }

    /// Returns the run of exactly this name, which is never a part of another's.
    ///
    /// # Errors
    /// As [`Store::run`], and [`RunError::NotExact`].
    pub fn run_exactly(&self, name: &str) -> Result<RunRecord, RunError> {
        if let Some(exact) = self.exactly(name)? {
            return Ok(exact);
        }
        let meant = self.run(name)?;
        Err(RunError::NotExact { name: name.to_owned(), run: meant.manifest.run })
    }

    /// The only one of several runs of a name that has rows.
    fn only_with_rows(&self, name: &str, several: Vec<RunRecord>) -> Result<RunRecord, RunError> {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for run in several {
            if self.has_rows(&run)? { with.push(run) } else { without.push(run) }
        }
        if with.len() == 1 {
            if let Some(listener) = &self.listener {
                listener(&Notice::from(RunNotice::ReadAs {
                    name: name.to_owned(),
                    run: with[0].manifest.run.clone(),
                    unanswered: without.into_iter().map(|run| run.manifest.run).collect(),
                }));
            }
            return Ok(with.remove(0));
        }
        let runs = if with.is_empty() { without } else { with };
        let labels = crate::label::labels(&runs.iter().map(|run| &run.manifest).collect::<Vec<_>>());
        let runs = runs.into_iter().map(|run| run.manifest.run).collect();
        Err(RunError::AmbiguousRun { name: name.to_owned(), runs, labels })
    }

    fn has_rows(&self, run: &RunRecord) -> Result<bool, RunError> {
        let read = || -> rusqlite::Result<bool> {
            let sql = "SELECT EXISTS (SELECT 1 FROM samples WHERE key >= ? AND key < ?)";
            self.connection.prepare_cached(sql)?.query_row([key(run.id, 0), key(run.id + 1, 0)], |row| row.get(0))
        };
        read().map_err(|source| self.error("read", source))
    }

    /// Returns the run of exactly this name.
    pub fn exactly(&self, name: &str) -> Result<Option<RunRecord>, RunError> {
        Ok(self.select("WHERE name = ?", [name])?.pop())
    }

    /// Returns the runs with these settings, the oldest first.
    pub fn with_settings(&self, settings_sha256: &str) -> Result<Vec<RunRecord>, RunError> {
        self.select("WHERE settings_sha256 = ? ORDER BY id", [settings_sha256])
    }

    /// Returns the names of all runs, the oldest first.
    pub fn names(&self) -> Result<Vec<String>, RunError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare_cached("SELECT name FROM runs ORDER BY started, id")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(|source| self.error("read", source))
    }

    fn select<P: rusqlite::Params>(&self, rest: &str, parameters: P) -> Result<Vec<RunRecord>, RunError> {
        let read = || -> rusqlite::Result<Vec<_>> {
            let sql = format!("SELECT {RUN_COLUMNS}, seal FROM runs {rest}");
            let mut statement = self.connection.prepare_cached(&sql)?;
            let columns = |row: &Row<'_>| -> rusqlite::Result<_> {
                let seal: Option<i64> = row.get(RUN_COLUMN_COUNT)?;
                let edited = seal != Some(row::seal_from(row, 0, RUN_COLUMN_COUNT)?);
                let id: i64 = row.get(0)?;
                let (name, manifest): (String, String) = (row.get(1)?, row.get(8)?);
                Ok((id, name, manifest, row.get::<_, Option<i64>>(9)?, edited))
            };
            statement.query_map(parameters, columns)?.collect()
        };
        let rows = read().map_err(|source| self.error("read", source))?;
        rows.into_iter()
            .map(|(id, name, manifest, planned, edited)| {
                // Only an edited row has no number, or none that fits.
                let planned = planned.and_then(|planned| usize::try_from(planned).ok()).unwrap_or(0);
                let manifest = self.manifest(&name, &manifest)?;
                if manifest.run != name {
                    let reason = format!("it is of the run {}", manifest.run);
                    return Err(RunError::Manifest { path: self.path.clone(), run: name, reason });
                }
                Ok(RunRecord { id, manifest, planned, edited })
            })
            .collect()
    }

    fn manifest(&self, name: &str, text: &str) -> Result<Manifest, RunError> {
        #[derive(serde::Deserialize)]
        struct Head {
            format: u32,
        }
        let broken = |error: serde_json::Error| RunError::Manifest {
            path: self.path.clone(),
            run: name.to_owned(),
            // The place in the text means nothing to anybody who has not written it.
            reason: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        };
        let head: Head = serde_json::from_str(text).map_err(broken)?;
        let part = || format!("the manifest of {name} in {}", self.path.display());
        RunError::check_format(part, head.format, MANIFEST_FORMAT)?;
        serde_json::from_str(text).map_err(broken)
    }

    /// Writes a new run, whose name must be unused.
    pub fn begin(&self, manifest: &Manifest, planned: usize) -> Result<RunRecord, RunError> {
        let insert = || -> rusqlite::Result<i64> {
            let transaction = self.transaction()?;
            self.connection.execute(
                "INSERT INTO runs (name, settings_sha256, suite, model, status, started, ended, manifest, planned) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    manifest.run,
                    manifest.settings_sha256,
                    manifest.settings.suite,
                    manifest.model.name,
                    word(manifest.status),
                    manifest.started,
                    manifest.ended,
                    json(manifest)?,
                    planned as i64,
                ],
            )?;
            let id = self.connection.last_insert_rowid();
            self.seal_run(id)?;
            transaction.map_or(Ok(()), Transaction::commit)?;
            Ok(id)
        };
        let id = insert().map_err(|source| self.error("write", source))?;
        Ok(RunRecord { id, manifest: manifest.clone(), planned, edited: false })
    }

    /// Writes the seal of a run's row as it is now.
    fn seal_run(&self, id: i64) -> rusqlite::Result<()> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = ?");
        let mut select = self.connection.prepare_cached(&sql)?;
        let seal = select.query_row([id], |row| row::seal_from(row, 0, RUN_COLUMN_COUNT))?;
        self.connection.execute("UPDATE runs SET seal = ? WHERE id = ?", [seal, id]).map(drop)
    }

    /// Checks that a run's row was not edited (its manifest, its summary and the columns of lists), and that a finished run has a
    /// row for each sample of its plan.
    ///
    /// # Errors
    /// [`RunError::Edited`], [`RunError::RowsMissing`].
    pub fn check_seal(&self, run: &RunRecord) -> Result<(), RunError> {
        if run.edited {
            return Err(self.edited(run, "the row of runs with the manifest and the summary".to_owned()));
        }
        if run.manifest.status != Status::Finished {
            return Ok(());
        }
        let (found, planned) = (self.count(run)?, run.planned);
        if found == planned {
            return Ok(());
        }
        Err(RunError::RowsMissing { path: self.path.clone(), run: run.manifest.run.clone(), found, planned })
    }

    pub(super) fn edited(&self, run: &RunRecord, row: String) -> RunError {
        RunError::Edited { path: self.path.clone(), run: run.manifest.run.clone(), row }
    }

    /// Returns the stored summary of a finished run as JSON.
    pub fn summary(&self, run: &RunRecord) -> Result<Option<String>, RunError> {
        let sql = "SELECT summary FROM runs WHERE id = ?";
        let read = self.connection.prepare_cached(sql).and_then(|mut row| row.query_row([run.id], |row| row.get(0)));
        read.map_err(|source| self.error("read", source))
    }

    /// Stores the summary of a finished run as JSON, until the run is continued.
    pub fn keep_summary(&self, run: &RunRecord, json: &str) -> Result<(), RunError> {
        let write = || -> rusqlite::Result<()> {
            let transaction = self.transaction()?;
            let sql = "UPDATE runs SET summary = ? WHERE id = ? AND status = 'finished'";
            self.connection.execute(sql, params![json, run.id])?;
            self.seal_run(run.id)?;
            transaction.map_or(Ok(()), Transaction::commit)
        };
        write().map_err(|source| self.error("write", source))
    }

    /// Updates a run's manifest and the number of samples in its plan. Drops the summary of unfinished runs.
    pub fn update(&self, run: i64, manifest: &Manifest, planned: usize) -> Result<(), RunError> {
        let update = || -> rusqlite::Result<()> {
            let transaction = self.transaction()?;
            self.connection.execute(
                "UPDATE runs SET status = ?1, started = ?2, ended = ?3, manifest = ?4, planned = ?5, \
                 summary = CASE WHEN ?1 = 'finished' THEN summary END WHERE id = ?6",
                params![word(manifest.status), manifest.started, manifest.ended, json(manifest)?, planned as i64, run],
            )?;
            self.seal_run(run)?;
            transaction.map_or(Ok(()), Transaction::commit)
        };
        update().map_err(|source| self.error("write", source))
    }

    /// Deletes a run with its samples.
    ///
    /// # Errors
    /// [`RunError::Locked`] if a process is writing it.
    pub fn delete(&self, run: &RunRecord) -> Result<(), RunError> {
        let _lock = RunLock::take(&self.results, &run.manifest.run)?;
        let delete = || -> rusqlite::Result<()> {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let range = [key(run.id, 0), key(run.id + 1, 0)];
            transaction.execute("DELETE FROM texts WHERE key >= ? AND key < ?", range)?;
            transaction.execute("DELETE FROM samples WHERE key >= ? AND key < ?", range)?;
            transaction.execute("DELETE FROM asked WHERE key >= ? AND key < ?", range)?;
            transaction.execute("DELETE FROM runs WHERE id = ?", [run.id])?;
            self.drop_unused_packs()?;
            transaction.commit()
        };
        delete().map_err(|source| self.error("delete from", source))
    }

    /// Deletes a run's samples from this index in its plan on; the caller has the lock.
    pub fn truncate(&self, run: &RunRecord, index: usize) -> Result<(), RunError> {
        let delete = || -> rusqlite::Result<()> {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let range = [key(run.id, index), key(run.id + 1, 0)];
            transaction.execute("DELETE FROM texts WHERE key >= ? AND key < ?", range)?;
            transaction.execute("DELETE FROM samples WHERE key >= ? AND key < ?", range)?;
            transaction.commit()
        };
        delete().map_err(|source| self.error("delete from", source))
    }

    /// Releases the disk space of deleted runs. Other processes wait.
    pub fn compact(&self) -> Result<(), RunError> {
        self.connection.execute_batch("VACUUM").map_err(|source| self.error("compact", source))
    }

    pub fn progress(&self, run: &RunRecord) -> Result<RunProgress, RunError> {
        let packs = self.packs(run)?;
        let read = move || -> rusqlite::Result<RunProgress> {
            let mut progress = RunProgress { packs, ..RunProgress::default() };
            let mut statement = self
                .connection
                .prepare_cached("SELECT key, correct FROM samples WHERE key >= ? AND key < ? AND retryable IS NOT 1")?;
            let mut rows = statement.query([key(run.id, 0), key(run.id + 1, 0)])?;
            while let Some(row) = rows.next()? {
                let index = usize::try_from(row.get::<_, i64>(0)? - key(run.id, 0)).unwrap_or(0);
                if progress.settled.len() <= index {
                    progress.settled.resize(index + 1, false);
                }
                progress.settled[index] = true;
                progress.count += 1;
                match row.get::<_, Option<bool>>(1)? {
                    None => progress.failed += 1,
                    Some(correct) => {
                        progress.scored += 1;
                        progress.correct += usize::from(correct);
                    }
                }
            }
            Ok(progress)
        };
        read().map_err(|source| self.error("read", source))
    }

    /// Returns the number of a run's rows.
    pub fn count(&self, run: &RunRecord) -> Result<usize, RunError> {
        let sql = "SELECT count(*) FROM samples WHERE key >= ? AND key < ?";
        let read = || -> rusqlite::Result<Option<i64>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_row([key(run.id, 0), key(run.id + 1, 0)], |row| row.get(0)).optional()
        };
        let count = read().map_err(|source| self.error("read", source))?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
    }

    /// Returns the samples of a run that match a filter, in the order of its plan, read lazily.
    pub fn samples(&self, run: &RunRecord, filter: Filter) -> Samples<'_> {
        Samples::new(self, run, filter)
    }

    /// Calls `write` in one transaction: everything that it writes is in the file afterwards, or nothing after an error or a kill.
    pub fn atomically<T, E: From<RunError>>(&self, write: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let failed = |source| E::from(self.error("write", source));
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).map_err(failed)?;
        // Dropped without a commit, it is rolled back.
        let written = write()?;
        transaction.commit().map_err(failed)?;
        Ok(written)
    }

    /// Begins a transaction, unless there is one, of [`Store::atomically`].
    pub(super) fn transaction(&self) -> rusqlite::Result<Option<Transaction<'_>>> {
        match self.connection.is_autocommit() {
            true => Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).map(Some),
            false => Ok(None),
        }
    }

    /// Returns a writer for a run's samples.
    pub fn writer(&self, run: &RunRecord) -> SampleWriter<'_> {
        SampleWriter::new(self, run.id)
    }

    /// Locks a run for writing.
    pub fn lock(&self, run: &str) -> Result<RunLock, RunError> {
        RunLock::take(&self.results, run)
    }
}

fn json(manifest: &Manifest) -> rusqlite::Result<String> {
    serde_json::to_string(manifest).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Returns the status as stored in its column.
pub(super) fn word(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Interrupted => "interrupted",
        Status::Finished => "finished",
    }
}
