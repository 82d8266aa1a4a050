//! A [`Sample`] as columns.
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Row, ToSql, named_params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::Timings;
use crate::run::{Generated, Sample, SampleFailure};
use crate::suite::Verdict;

/// Inserts into `samples`.
pub(super) const INSERT_SAMPLE: &str = "INSERT INTO samples (key, run, item, sample, task, cluster, prompt_tokens, \
    budget, max_tokens, finish, completion_tokens, cached_tokens, queued_s, prefill_s, decode_s, correct, \
    verdict_failure, failure_kind, retryable) VALUES (:key, :run, :item, :sample, :task, :cluster, :prompt_tokens, \
    :budget, :max_tokens, :finish, :completion_tokens, :cached_tokens, :queued_s, :prefill_s, :decode_s, :correct, \
    :verdict_failure, :failure_kind, :retryable)";

/// Inserts into `texts`.
pub(super) const INSERT_TEXT: &str = "INSERT INTO texts (key, format, covariates, gold, prompt_sha256, completion, ids, \
    extracted, matchers, metrics, failure_message) VALUES (:key, :format, :covariates, :gold, :prompt_sha256, \
    :completion, :ids, :extracted, :matchers, :metrics, :failure_message)";

/// The columns that [`from_row`] reads, in its order.
pub(super) const COLUMNS: &str = "s.key, s.item, s.sample, s.task, s.cluster, s.prompt_tokens, s.budget, s.max_tokens, \
    s.finish, s.cached_tokens, s.queued_s, s.prefill_s, s.decode_s, s.correct, s.verdict_failure, s.failure_kind, \
    s.retryable, t.format, t.covariates, t.gold, t.prompt_sha256, t.completion, t.ids, t.extracted, t.matchers, \
    t.metrics, t.failure_message";

/// A value stored as its JSON text.
struct Json<T>(T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text =
            serde_json::to_string(&self.0).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(ToSqlOutput::Owned(Value::Text(text)))
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Json).map_err(FromSqlError::other)
    }
}

/// An enum without fields, stored as the word that it is in JSON.
struct Word<T>(T);

impl<T: Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0) {
            Ok(serde_json::Value::String(word)) => Ok(ToSqlOutput::Owned(Value::Text(word))),
            Ok(other) => Err(rusqlite::Error::ToSqlConversionFailure(format!("{other} is not a word").into())),
            Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.into())),
        }
    }
}

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
            serde::de::IntoDeserializer::into_deserializer(value.as_str()?);
        T::deserialize(word).map(Word).map_err(FromSqlError::other)
    }
}

/// Token ids, each as four little-endian bytes.
fn ids_to_bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

fn ids_from_bytes(bytes: &[u8]) -> FromSqlResult<Vec<u32>> {
    let (words, rest) = bytes.as_chunks::<4>();
    if rest.is_empty() {
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    } else {
        Err(FromSqlError::other(IdsCut(bytes.len())))
    }
}

/// Ids end in the middle of one.
#[derive(Debug, thiserror::Error)]
#[error("token ids take {0} bytes, which is no multiple of four")]
struct IdsCut(usize);

/// Counts beyond `i64` do not occur; the clamp keeps the conversion free of panics.
fn integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Writes a sample's two rows.
pub(super) fn insert(
    samples: &mut CachedStatement<'_>,
    texts: &mut CachedStatement<'_>,
    key: i64,
    run: i64,
    sample: &Sample,
) -> rusqlite::Result<()> {
    let completion = sample.completion.as_ref();
    let verdict = sample.verdict.as_ref();
    let failure = sample.failure.as_ref();
    samples.execute(named_params! {
        ":key": key,
        ":run": run,
        ":item": sample.item,
        ":sample": sample.sample,
        ":task": sample.task,
        ":cluster": sample.cluster,
        ":prompt_tokens": integer(sample.prompt_tokens),
        ":budget": integer(sample.budget),
        ":max_tokens": integer(sample.max_tokens),
        ":finish": completion.map(|completion| Word(completion.finish)),
        ":completion_tokens": completion.map(|completion| integer(completion.ids.len())),
        ":cached_tokens": completion.map(|completion| integer(completion.cached_tokens)),
        ":queued_s": completion.map(|completion| completion.timings.queued_s),
        ":prefill_s": completion.map(|completion| completion.timings.prefill_s),
        ":decode_s": completion.map(|completion| completion.timings.decode_s),
        ":correct": verdict.map(|verdict| verdict.correct),
        ":verdict_failure": verdict.and_then(|verdict| verdict.failure.as_deref()),
        ":failure_kind": failure.map(|failure| Word(failure.kind)),
        ":retryable": failure.map(|failure| failure.retryable),
    })?;
    texts.execute(named_params! {
        ":key": key,
        ":format": sample.format,
        ":covariates": Json(&sample.covariates),
        ":gold": sample.gold,
        ":prompt_sha256": sample.prompt_sha256,
        ":completion": completion.map(|completion| completion.text.as_str()),
        ":ids": completion.map(|completion| ids_to_bytes(&completion.ids)),
        ":extracted": verdict.and_then(|verdict| verdict.extracted.as_deref()),
        ":matchers": verdict.map(|verdict| Json(&verdict.matchers)),
        ":metrics": verdict.map(|verdict| Json(&verdict.metrics)),
        ":failure_message": failure.map(|failure| failure.message.as_str()),
    })?;
    Ok(())
}

/// Reads [`COLUMNS`]: the key and the sample.
pub(super) fn from_row(row: &Row<'_>, run: &str, suite: &str) -> rusqlite::Result<(i64, Sample)> {
    let count = |column: usize| row.get::<_, i64>(column).map(|count| usize::try_from(count).unwrap_or(0));
    let finish: Option<Word<_>> = row.get(8)?;
    let completion = match finish {
        None => None,
        Some(Word(finish)) => {
            let ids = row.get_ref(22)?.as_blob().and_then(ids_from_bytes);
            let ids = ids.map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(22, rusqlite::types::Type::Blob, error.into())
            })?;
            Some(Generated {
                text: row.get(21)?,
                ids,
                finish,
                cached_tokens: count(9)?,
                timings: Timings { queued_s: row.get(10)?, prefill_s: row.get(11)?, decode_s: row.get(12)? },
            })
        }
    };
    let verdict = match row.get::<_, Option<bool>>(13)? {
        None => None,
        Some(correct) => Some(Verdict {
            correct,
            extracted: row.get(23)?,
            matchers: row.get::<_, Json<_>>(24)?.0,
            metrics: row.get::<_, Json<_>>(25)?.0,
            failure: row.get(14)?,
        }),
    };
    let failure = match row.get::<_, Option<Word<_>>>(15)? {
        None => None,
        Some(Word(kind)) => Some(SampleFailure { kind, message: row.get(26)?, retryable: row.get(16)? }),
    };
    let sample = Sample {
        format: row.get(17)?,
        run: run.to_owned(),
        suite: suite.to_owned(),
        item: row.get(1)?,
        sample: row.get(2)?,
        task: row.get(3)?,
        cluster: row.get(4)?,
        covariates: row.get::<_, Json<_>>(18)?.0,
        gold: row.get(19)?,
        prompt_sha256: row.get(20)?,
        prompt_tokens: count(5)?,
        budget: count(6)?,
        max_tokens: count(7)?,
        completion,
        verdict,
        failure,
    };
    Ok((row.get(0)?, sample))
}
