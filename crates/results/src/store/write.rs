//! Writing samples in batches.
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rusqlite::{ErrorCode, Transaction};

use super::database::{Store, key};
use super::pack::Pack;
use super::row::Encoded;
use crate::store::row;
use crate::{RunError, Sample};

/// Largest batch in rows.
const BATCH_ROWS: usize = 64;
/// Longest time between two batches.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// Rows per transaction of imports and merges. Ten times as many are slower, because they exceed the processor's caches.
pub const BULK_ROWS: usize = 1_000;

/// Batch size from which rows are encoded in parallel.
const PARALLEL_ROWS: usize = 256;

/// Writer of a run's samples, in batches of one transaction each.
pub struct SampleWriter<'a> {
    store: &'a Store,
    run: i64,
    pending: Vec<(usize, Sample)>,
    packs: Vec<Pack>,
    batch_rows: usize,
    last_write: Instant,
}

impl<'a> SampleWriter<'a> {
    /// Creates a writer with small batches, so that little is lost when the process is killed.
    pub(super) fn new(store: &'a Store, run: i64) -> Self {
        SampleWriter {
            store,
            run,
            pending: Vec::new(),
            packs: Vec::new(),
            batch_rows: BATCH_ROWS,
            last_write: Instant::now(),
        }
    }

    /// Sets the batch size; [`BULK_ROWS`] is fast for rows that are available at once.
    pub fn batches_of(self, batch_rows: usize) -> Self {
        SampleWriter { batch_rows: batch_rows.max(1), ..self }
    }

    /// Adds a pack, which is written before the rows of the next batch.
    pub fn push_pack(&mut self, pack: Pack) {
        self.packs.push(pack);
    }

    /// Adds the sample at this index in the plan; it replaces an earlier row.
    pub fn push(&mut self, index: usize, sample: Sample) -> Result<(), RunError> {
        self.pending.push((index, sample));
        if self.pending.len() >= self.batch_rows { self.write() } else { self.write_if_due() }
    }

    /// Writes pending rows if the last write is long ago.
    pub fn write_if_due(&mut self) -> Result<(), RunError> {
        if !self.pending.is_empty() && self.last_write.elapsed() >= BATCH_TIME { self.write() } else { Ok(()) }
    }

    /// Writes pending rows. After an error none of them is in the file, and all stay pending.
    pub fn write(&mut self) -> Result<(), RunError> {
        if self.pending.is_empty() && self.packs.is_empty() {
            return Ok(());
        }
        let encode = |(_, sample): &(usize, Sample)| Encoded::new(sample);
        // Small batches come from a run, whose engine needs the other cores.
        let encoded: rusqlite::Result<Vec<Encoded>> = if self.pending.len() < PARALLEL_ROWS {
            self.pending.iter().map(encode).collect()
        } else {
            self.pending.par_iter().map(encode).collect()
        };
        let encoded = encoded.map_err(|source| self.store.error("write", source))?;
        let connection = self.store.connection();
        let written = self.store.transaction().and_then(|transaction| {
            for pack in &self.packs {
                self.store.insert_pack(self.run, pack)?;
            }
            let mut samples = connection.prepare_cached(row::INSERT_SAMPLE)?;
            let mut texts = connection.prepare_cached(row::INSERT_TEXT)?;
            for ((index, sample), encoded) in self.pending.iter().zip(&encoded) {
                let key = key(self.run, *index);
                match row::insert(&mut samples, &mut texts, key, self.run, sample, encoded) {
                    Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                        // Replaced only at the same index: an item at two is an error.
                        connection.prepare_cached("DELETE FROM samples WHERE key = ?")?.execute([key])?;
                        connection.prepare_cached("DELETE FROM texts WHERE key = ?")?.execute([key])?;
                        row::insert(&mut samples, &mut texts, key, self.run, sample, encoded)?;
                    }
                    outcome => outcome?,
                }
            }
            drop((samples, texts));
            transaction.map_or(Ok(()), Transaction::commit)
        });
        self.last_write = Instant::now();
        written.map_err(|source| self.store.error("write", source))?;
        self.pending.clear();
        self.packs.clear();
        Ok(())
    }
}
