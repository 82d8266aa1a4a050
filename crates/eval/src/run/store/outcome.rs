//! Outcomes of samples, without their texts, for summaries.
use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Row;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;

use super::database::{RunRecord, Store, key};
use super::row::{self, Word};
use crate::run::{RunError, SampleFailure};
use earnest_engine::FinishReason;
use earnest_tasks::suite::{FailureClass, Score, rename_rules};

/// Outcome of a sample, without prompt, completion and token ids.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Place in the run's plan.
    pub place: usize,
    pub item: String,
    pub sample: u32,
    pub task: String,
    pub cluster: String,
    pub prompt_tokens: usize,
    /// Token budget.
    pub budget: usize,
    /// The budget clipped to the context.
    pub max_tokens: usize,
    /// Finish reason; none if the sample failed.
    pub finish: Option<FinishReason>,
    /// Number of completion tokens.
    pub tokens: usize,
    pub cached_tokens: usize,
    /// Score without its answer. Equal scores are shared, so that those of a million samples take little memory.
    pub score: Option<Arc<Score>>,
    pub failure: Option<SampleFailure>,
}

impl Outcome {
    /// True if the token budget ended the completion.
    pub fn truncated(&self) -> bool {
        self.finish == Some(FinishReason::Length)
    }
}

/// Cache of shared scores by correctness, failure class, rules and metrics as stored.
#[derive(Default)]
struct ScoreCache {
    scores: HashMap<String, Arc<Score>>,
    /// Key of the current row, reused to avoid allocations.
    key: String,
}

impl ScoreCache {
    fn score(
        &mut self,
        run: &RunRecord,
        correct: bool,
        failure: Option<&str>,
        text: &Row<'_>,
    ) -> rusqlite::Result<Arc<Score>> {
        self.key.clear();
        self.key.push(if correct { '1' } else { '0' });
        for part in [failure.unwrap_or_default(), text.get_ref(1)?.as_str()?, text.get_ref(2)?.as_str()?] {
            // Neither failure classes nor JSON contain this character.
            self.key.push('\0');
            self.key.push_str(part);
        }
        if let Some(score) = self.scores.get(&self.key) {
            return Ok(Arc::clone(score));
        }
        let (rules, metrics) = (row::json(text, 1)?, row::json(text, 2)?);
        let failure = failure.map(FailureClass::from);
        let mut score = Score { correct, rules, metrics, failure, ..Score::default() };
        let settings = &run.manifest.settings;
        rename_rules(&settings.suite, &settings.suite_version, &mut score);
        let score = Arc::new(score);
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
            .prepare_cached(
                "SELECT key, item, sample, prompt_tokens, budget, max_tokens, finish, completion_tokens, cached_tokens, \
                 correct, verdict_failure, failure_kind, retryable, task, cluster FROM samples WHERE key >= ? AND key < ? ORDER BY key",
            )
            .map_err(failed)?;
        let mut texts = self
            .connection()
            .prepare_cached(
                "SELECT key, matchers, metrics, failure_message FROM texts WHERE key >= ? AND key < ? ORDER BY key",
            )
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
            each(outcome(sample, text, run, &mut cache).map_err(failed)?)?;
        }
        Ok(())
    }
}

fn outcome(row: &Row<'_>, text: &Row<'_>, run: &RunRecord, cache: &mut ScoreCache) -> rusqlite::Result<Outcome> {
    let count = |column: usize| -> rusqlite::Result<usize> {
        Ok(usize::try_from(row.get::<_, Option<i64>>(column)?.unwrap_or(0)).unwrap_or(0))
    };
    let score = match row.get::<_, Option<bool>>(9)? {
        None => None,
        Some(correct) => Some(cache.score(run, correct, row.get_ref(10)?.as_str_or_null()?, text)?),
    };
    let failure = match row.get::<_, Option<Word<_>>>(11)? {
        None => None,
        Some(Word(kind)) => Some(SampleFailure { kind, retryable: row.get(12)?, message: text.get(3)? }),
    };
    Ok(Outcome {
        place: usize::try_from(row.get::<_, i64>(0)? - key(run.id, 0)).unwrap_or(0),
        item: row.get(1)?,
        sample: row.get(2)?,
        task: row.get(13)?,
        cluster: row.get(14)?,
        prompt_tokens: count(3)?,
        budget: count(4)?,
        max_tokens: count(5)?,
        finish: row.get::<_, Option<Word<_>>>(6)?.map(|Word(finish)| finish),
        tokens: count(7)?,
        cached_tokens: count(8)?,
        score,
        failure,
    })
}

/// Limit of cached scores.
const MAX_CACHED_SCORES: usize = 100_000;
