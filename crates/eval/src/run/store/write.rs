//! Writing samples in batches.
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rusqlite::{ErrorCode, Transaction, TransactionBehavior};

use super::database::{Store, key};
use super::pack::Pack;
use super::row::{self, Encoded};
use crate::run::{RunError, Sample};

/// Rows are written at the latest after so many ...
const BATCH_ROWS: usize = 64;
/// ... or so long after the previous write.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// Rows a transaction where all are at hand (imports, merges). Ten times as many are slower: they leave the processor's
/// caches before they are written.
pub const BULK_ROWS: usize = 1_000;

/// Batches of so many rows are encoded by all processors.
const PARALLEL_ROWS: usize = 256;

/// Writes one run's samples. A batch is one transaction: it is there or it is not, whatever ends the process.
pub struct SampleWriter<'a> {
    store: &'a Store,
    run: i64,
    waiting: Vec<(usize, Sample)>,
    packs: Vec<Pack>,
    batch_rows: usize,
    last_write: Instant,
}

impl<'a> SampleWriter<'a> {
    /// For samples that arrive one by one: small batches, so that little is lost when the process is killed.
    pub(super) fn new(store: &'a Store, run: i64) -> Self {
        SampleWriter {
            store,
            run,
            waiting: Vec::new(),
            packs: Vec::new(),
            batch_rows: BATCH_ROWS,
            last_write: Instant::now(),
        }
    }

    /// Writes at the latest after so many rows; [`BULK_ROWS`] are fast where all rows are at hand.
    pub fn batches_of(self, batch_rows: usize) -> Self {
        SampleWriter { batch_rows: batch_rows.max(1), ..self }
    }

    /// Takes questions with their prompts; they are written with the next batch, before its rows.
    pub(crate) fn push_pack(&mut self, pack: Pack) {
        self.packs.push(pack);
    }

    /// Takes the sample at this place of the plan; it is written with its batch and replaces an earlier row.
    pub fn push(&mut self, place: usize, sample: Sample) -> Result<(), RunError> {
        self.waiting.push((place, sample));
        if self.waiting.len() >= self.batch_rows { self.write() } else { self.write_if_due() }
    }

    /// Writes waiting rows if the last write is long ago.
    pub fn write_if_due(&mut self) -> Result<(), RunError> {
        if !self.waiting.is_empty() && self.last_write.elapsed() >= BATCH_TIME { self.write() } else { Ok(()) }
    }

    /// Writes waiting rows. After an error none of them is in the file and all of them wait for the next call.
    pub fn write(&mut self) -> Result<(), RunError> {
        if self.waiting.is_empty() && self.packs.is_empty() {
            return Ok(());
        }
        let encode = |(_, sample): &(usize, Sample)| Encoded::new(sample);
        // Small batches come from a run, whose engine needs the other processors.
        let encoded: rusqlite::Result<Vec<Encoded>> = if self.waiting.len() < PARALLEL_ROWS {
            self.waiting.iter().map(encode).collect()
        } else {
            self.waiting.par_iter().map(encode).collect()
        };
        let encoded = encoded.map_err(|source| self.store.error("write", source))?;
        let connection = self.store.connection();
        let written = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).and_then(|transaction| {
            for pack in &self.packs {
                self.store.insert_pack(self.run, pack)?;
            }
            let mut samples = connection.prepare_cached(row::INSERT_SAMPLE)?;
            let mut texts = connection.prepare_cached(row::INSERT_TEXT)?;
            for ((place, sample), encoded) in self.waiting.iter().zip(&encoded) {
                let key = key(self.run, *place);
                match row::insert(&mut samples, &mut texts, key, self.run, sample, encoded) {
                    Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                        // Replaced only at its own place: an item at two places is an error.
                        connection.prepare_cached("DELETE FROM samples WHERE key = ?")?.execute([key])?;
                        connection.prepare_cached("DELETE FROM texts WHERE key = ?")?.execute([key])?;
                        row::insert(&mut samples, &mut texts, key, self.run, sample, encoded)?;
                    }
                    outcome => outcome?,
                }
            }
            drop((samples, texts));
            transaction.commit()
        });
        self.last_write = Instant::now();
        written.map_err(|source| self.store.error("write", source))?;
        self.waiting.clear();
        self.packs.clear();
        Ok(())
    }
}
