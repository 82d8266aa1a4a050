//! How samples ended, without their texts: what summaries are made of.
use std::collections::HashMap;
use std::sync::Arc;

use super::database::{RunRecord, Store, key};
use super::row::{self, Word};
use crate::engine::FinishReason;
use crate::run::{RunError, SampleFailure};
use crate::suite::Verdict;

/// How a sample ended. Its prompt, completion and token ids stay in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Place in the run's plan.
    pub place: usize,
    pub item: String,
    pub sample: u32,
    pub prompt_tokens: usize,
    /// New tokens that were granted, and that the context had room for.
    pub budget: usize,
    pub max_tokens: usize,
    /// What ended the completion; none if the sample failed.
    pub finish: Option<FinishReason>,
    /// Completion tokens.
    pub tokens: usize,
    pub cached_tokens: usize,
    /// The judgement without the extracted answer. Samples that were judged alike share it, so that the verdicts of a
    /// million samples take little memory.
    pub verdict: Option<Arc<Verdict>>,
    pub failure: Option<SampleFailure>,
}

impl Outcome {
    /// True if the token budget ended the completion.
    pub fn truncated(&self) -> bool {
        self.finish == Some(FinishReason::Length)
    }
}

/// What the verdicts that share a value have in common: correctness, reason, matchers and metrics as they are stored.
type Alike = (bool, String, String, String);

impl Store {
    /// Shows how every sample of a run ended, in the order of the plan. One query; memory does not grow with the rows.
    pub fn outcomes<E: From<RunError>>(
        &self,
        run: &RunRecord,
        mut each: impl FnMut(Outcome) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |source| E::from(self.error("read", source));
        let mut known: HashMap<Alike, Arc<Verdict>> = HashMap::new();
        let mut statement = self
            .connection()
            .prepare_cached(
                "SELECT s.key, s.item, s.sample, s.prompt_tokens, s.budget, s.max_tokens, s.finish, s.completion_tokens, \
                 s.cached_tokens, s.correct, s.verdict_failure, t.matchers, t.metrics, s.failure_kind, s.retryable, \
                 t.failure_message FROM samples s JOIN texts t ON t.key = s.key WHERE s.key >= ? AND s.key < ? \
                 ORDER BY s.key",
            )
            .map_err(failed)?;
        let mut rows = statement.query([key(run.id, 0), key(run.id + 1, 0)]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            each(outcome(row, run.id, &mut known).map_err(failed)?)?;
        }
        Ok(())
    }
}

fn outcome(row: &rusqlite::Row<'_>, run: i64, known: &mut HashMap<Alike, Arc<Verdict>>) -> rusqlite::Result<Outcome> {
    let count = |column: usize| -> rusqlite::Result<usize> {
        Ok(usize::try_from(row.get::<_, Option<i64>>(column)?.unwrap_or(0)).unwrap_or(0))
    };
    let verdict = match row.get::<_, Option<bool>>(9)? {
        None => None,
        Some(correct) => {
            let failure: Option<String> = row.get(10)?;
            let alike = (correct, failure.clone().unwrap_or_default(), row.get(11)?, row.get(12)?);
            Some(match known.get(&alike) {
                Some(verdict) => Arc::clone(verdict),
                None => {
                    let (matchers, metrics) = (row::json(row, 11)?, row::json(row, 12)?);
                    let verdict = Arc::new(Verdict { correct, matchers, metrics, failure, ..Verdict::default() });
                    if known.len() < MOST_KNOWN {
                        known.insert(alike, Arc::clone(&verdict));
                    }
                    verdict
                }
            })
        }
    };
    let failure = match row.get::<_, Option<Word<_>>>(13)? {
        None => None,
        Some(Word(kind)) => Some(SampleFailure { kind, retryable: row.get(14)?, message: row.get(15)? }),
    };
    Ok(Outcome {
        place: usize::try_from(row.get::<_, i64>(0)? - key(run, 0)).unwrap_or(0),
        item: row.get(1)?,
        sample: row.get(2)?,
        prompt_tokens: count(3)?,
        budget: count(4)?,
        max_tokens: count(5)?,
        finish: row.get::<_, Option<Word<_>>>(6)?.map(|Word(finish)| finish),
        tokens: count(7)?,
        cached_tokens: count(8)?,
        verdict,
        failure,
    })
}

/// Most verdicts that are remembered to be shared.
const MOST_KNOWN: usize = 100_000;
