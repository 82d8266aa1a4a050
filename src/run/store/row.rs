//! A [`Sample`] as columns.
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Row, ToSql, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::Timings;
use crate::run::{Generated, Sample, SampleFailure};
use crate::suite::Verdict;

/// Inserts into `samples`.
pub(super) const INSERT_SAMPLE: &str = "INSERT INTO samples (key, run, item, sample, task, cluster, prompt_tokens, \
    budget, max_tokens, finish, completion_tokens, cached_tokens, queued_s, prefill_s, decode_s, correct, \
    verdict_failure, failure_kind, retryable) VALUES (?, ?, ?, ?, ?, ?, ?, \
    ?, ?, ?, ?, ?, ?, ?, ?, ?, \
    ?, ?, ?)";

/// Inserts into `texts`.
pub(super) const INSERT_TEXT: &str = "INSERT INTO texts (key, format, covariates, gold, prompt_sha256, completion, ids, \
    extracted, matchers, metrics, failure_message, evidence) VALUES (?, ?, ?, ?, ?, \
    ?, ?, ?, ?, ?, ?, ?)";

/// The columns that [`from_row`] reads, in its order.
pub(super) const COLUMNS: &str = "s.key, s.item, s.sample, s.task, s.cluster, s.prompt_tokens, s.budget, s.max_tokens, \
    s.finish, s.cached_tokens, s.queued_s, s.prefill_s, s.decode_s, s.correct, s.verdict_failure, s.failure_kind, \
    s.retryable, t.format, t.covariates, t.gold, t.prompt_sha256, t.completion, t.ids, t.extracted, t.matchers, \
    t.metrics, t.failure_message, t.evidence";

/// Columns in [`COLUMNS`].
pub(super) const COLUMN_COUNT: usize = 28;

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
pub(super) struct Word<T>(pub(super) T);

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

/// A column that holds JSON text.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    row.get::<_, Json<T>>(column).map(|Json(value)| value)
}

/// Token ids as LEB128: seven bits a byte, the lowest first, the top bit set in all bytes of an id but the last. Two or
/// three bytes an id instead of four make a file that is a tenth smaller.
fn ids_to_bytes(ids: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(3 * ids.len());
    for &id in ids {
        let mut rest = id;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes
}

fn ids_from_bytes(bytes: &[u8]) -> FromSqlResult<Vec<u32>> {
    let mut ids = Vec::with_capacity(bytes.len() / 2);
    let (mut id, mut shift) = (0_u64, 0);
    for &byte in bytes {
        id |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            ids.push(u32::try_from(id).map_err(|_| FromSqlError::other(NotIds))?);
            (id, shift) = (0, 0);
        } else if shift > 28 {
            return Err(FromSqlError::other(NotIds));
        }
    }
    if shift == 0 { Ok(ids) } else { Err(FromSqlError::other(NotIds)) }
}

/// Bytes that are no LEB128 numbers of 32 bits.
#[derive(Debug, thiserror::Error)]
#[error("the token ids of a sample are damaged")]
struct NotIds;

/// Counts beyond `i64` do not occur; the clamp keeps the conversion free of panics.
fn integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Writes a sample's two rows. Parameters go by position: looking thirty names up would cost as much as the insertion.
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
    samples.execute(params![
        key,
        run,
        sample.item,
        sample.sample,
        sample.task,
        sample.cluster,
        integer(sample.prompt_tokens),
        integer(sample.budget),
        integer(sample.max_tokens),
        completion.map(|completion| Word(completion.finish)),
        completion.map(|completion| integer(completion.ids.len())),
        completion.map(|completion| integer(completion.cached_tokens)),
        completion.map(|completion| completion.timings.queued_s),
        completion.map(|completion| completion.timings.prefill_s),
        completion.map(|completion| completion.timings.decode_s),
        verdict.map(|verdict| verdict.correct),
        verdict.and_then(|verdict| verdict.failure.as_deref()),
        failure.map(|failure| Word(failure.kind)),
        failure.map(|failure| failure.retryable),
    ])?;
    texts.execute(params![
        key,
        sample.format,
        Json(&sample.covariates),
        sample.gold,
        sample.prompt_sha256,
        completion.map(|completion| completion.text.as_str()),
        completion.map(|completion| ids_to_bytes(&completion.ids)),
        verdict.and_then(|verdict| verdict.extracted.as_deref()),
        verdict.map(|verdict| Json(&verdict.matchers)),
        verdict.map(|verdict| Json(&verdict.metrics)),
        failure.map(|failure| failure.message.as_str()),
        verdict.filter(|verdict| !verdict.evidence.is_empty()).map(|verdict| Json(&verdict.evidence)),
    ])?;
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
            evidence: row.get::<_, Option<Json<_>>>(27)?.map(|Json(evidence)| evidence).unwrap_or_default(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_and_damage_is_noticed() {
        let ids = [0, 1, 127, 128, 16_383, 16_384, 49_151, 262_143, u32::MAX];
        let bytes = ids_to_bytes(&ids);
        assert_eq!(bytes.len(), 3 + 2 * 2 + 3 * 3 + 5);
        assert_eq!(ids_from_bytes(&bytes).unwrap(), ids);
        assert!(ids_from_bytes(&bytes[..bytes.len() - 1]).is_err(), "cut in the middle of an id");
        assert!(ids_from_bytes(&[0xff, 0xff, 0xff, 0xff, 0x1f]).is_err(), "beyond 32 bits");
        assert!(ids_from_bytes(&[0xff; 40]).is_err());
        assert_eq!(ids_from_bytes(&[]).unwrap(), Vec::<u32>::new());
        assert_eq!(COLUMNS.split(',').count(), COLUMN_COUNT);
    }
}
