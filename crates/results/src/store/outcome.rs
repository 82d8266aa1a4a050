//! Outcomes of samples as they are read.
use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Row;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;

use super::database::{RunRecord, Store, key};
use super::row::Word;
use crate::store::row;
use crate::{Outcome, RunError, SampleFailure};
use earnest_tasks::suite::{FailureClass, Score};

/// Cache of shared scores by correctness, failure class, scorers and metrics as stored.
#[derive(Default)]
struct ScoreCache {
    scores: HashMap<String, Arc<Score>>,
    /// Key of the current row, reused to avoid allocations.
    key: String,
}

impl ScoreCache {
    fn score(&mut self, correct: bool, failure: Option<&str>, text: &Row<'_>) -> rusqlite::Result<Arc<Score>> {
        self.key.clear();
        self.key.push(if correct { '1' } else { '0' });
        for part in [failure.unwrap_or_default(), text.get_ref(8)?.as_str()?, text.get_ref(9)?.as_str()?] {
            // Neither failure classes nor JSON contain this character.
            self.key.push('\0');
            self.key.push_str(part);
        }
        if let Some(score) = self.scores.get(&self.key) {
            return Ok(Arc::clone(score));
        }
        let (scorers, metrics) = (row::json(text, 8)?, row::json(text, 9)?);
        let failure = failure.map(FailureClass::from);
        let score = Arc::new(Score { correct, scorers, metrics, failure, ..Score::default() });
        if self.scores.len() < MAX_CACHED_SCORES {
            self.scores.insert(self.key.clone(), Arc::clone(&score));
        }
        Ok(score)
    }
}

impl Store {
    /// Passes the outcome of every sample of a run to `each`, in the order of the plan. Both tables are scanned once in step (a
    /// join would look up every second row by its key, which takes twice as long), in constant memory.
    pub fn outcomes<E: From<RunError>>(
        &self,
        run: &RunRecord,
        mut each: impl FnMut(Outcome) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |source| E::from(self.error("read", source));
        let range = [key(run.id, 0), key(run.id + 1, 0)];
        let mut cache = ScoreCache::default();
        let mut samples = self
            .connection()
            .prepare_cached(&format!("SELECT {} FROM samples WHERE key >= ? AND key < ? ORDER BY key", row::NARROW))
            .map_err(failed)?;
        let mut texts = self
            .connection()
            .prepare_cached(&format!(
                "SELECT key, {}, seal FROM texts WHERE key >= ? AND key < ? ORDER BY key",
                row::WIDE
            ))
            .map_err(failed)?;
        // The queries overlap, so both see the same state of the file.
        let mut samples = samples.query(range).map_err(failed)?;
        let mut texts = texts.query(range).map_err(failed)?;
        texts.advance().map_err(failed)?;
        while let Some(sample) = samples.next().map_err(failed)? {
            let wanted: i64 = sample.get(0).map_err(failed)?;
            let text = loop {
                let Some(text) = texts.get() else { return Ok(()) };
                let text_key: i64 = text.get(0).map_err(failed)?;
                if text_key >= wanted {
                    break (text_key == wanted).then_some(text);
                }
                texts.advance().map_err(failed)?;
            };
            let Some(text) = text else { continue };
            let seal: Option<i64> = text.get(1 + row::WIDE_COUNT).map_err(failed)?;
            if seal != Some(row::seal_of_both(sample, text, 1).map_err(failed)?) {
                let (item, number): (String, i64) =
                    sample.get(2).and_then(|item| Ok((item, sample.get(3)?))).map_err(failed)?;
                return Err(self.edited(run, format!("sample {number} of {item}")).into());
            }
            each(outcome(sample, text, run, &mut cache).map_err(failed)?)?;
        }
        Ok(())
    }
}

fn outcome(row: &Row<'_>, text: &Row<'_>, run: &RunRecord, cache: &mut ScoreCache) -> rusqlite::Result<Outcome> {
    let count = |column: usize| -> rusqlite::Result<usize> {
        Ok(usize::try_from(row.get::<_, Option<i64>>(column)?.unwrap_or(0)).unwrap_or(0))
    };
    row::format(text, 1)?;
    let score = match row.get::<_, Option<bool>>(15)? {
        None => None,
        Some(correct) => Some(cache.score(correct, row.get_ref(16)?.as_str_or_null()?, text)?),
    };
    let failure = match row.get::<_, Option<Word<_>>>(17)? {
        None => None,
        Some(Word(kind)) => Some(SampleFailure { kind, retryable: row.get(18)?, message: text.get(10)? }),
    };
    Ok(Outcome {
        index: usize::try_from(row.get::<_, i64>(0)? - key(run.id, 0)).unwrap_or(0),
        item: row.get(2)?,
        sample: row.get(3)?,
        task: row.get(4)?,
        cluster: row.get(5)?,
        prompt_tokens: count(6)?,
        budget: count(7)?,
        max_tokens: count(8)?,
        finish: row.get::<_, Option<Word<_>>>(9)?.map(|Word(finish)| finish),
        tokens: count(10)?,
        cached_tokens: count(11)?,
        score,
        failure,
    })
}

/// Limit of cached scores.
const MAX_CACHED_SCORES: usize = 100_000;
