//! Columns of a [`Sample`].
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Generated, SAMPLE_FORMAT, Sample, SampleFailure};
use earnest_engine::Timings;
use earnest_tasks::suite::{FailureClass, Score};

/// Inserts into `samples`.
pub(super) const INSERT_SAMPLE: &str = "INSERT INTO samples (key, run, item, sample, task, cluster, prompt_tokens, \
    budget, max_tokens, finish, completion_tokens, cached_tokens, queued_s, prefill_s, decode_s, correct, \
    verdict_failure, failure_kind, retryable, seal) VALUES (?, ?, ?, ?, ?, ?, ?, \
    ?, ?, ?, ?, ?, ?, ?, ?, ?, \
    ?, ?, ?, ?)";

/// Inserts into `texts`.
pub(super) const INSERT_TEXT: &str = "INSERT INTO texts (key, format, covariates, gold, prompt_sha256, completion, ids, \
    extracted, matchers, metrics, failure_message, evidence, seal) VALUES (?, ?, ?, ?, ?, ?, \
    ?, ?, ?, ?, ?, ?, ?)";

/// Columns of `samples` in the order of its seal.
pub(super) const NARROW: &str = "key, run, item, sample, task, cluster, prompt_tokens, budget, max_tokens, finish, \
    completion_tokens, cached_tokens, queued_s, prefill_s, decode_s, correct, verdict_failure, failure_kind, retryable";

/// Number of columns of [`NARROW`].
pub(super) const NARROW_COUNT: usize = 19;

/// Columns of `texts` after those of `samples` in the order of its seal, which is also that of [`COLUMNS`].
pub(super) const WIDE: &str = "format, covariates, gold, prompt_sha256, completion, ids, extracted, matchers, metrics, \
    failure_message, evidence";

/// Number of columns of [`WIDE`].
pub(super) const WIDE_COUNT: usize = 11;

/// Columns that [`from_row`] reads, in its order. The last one is not sealed with the others.
pub(super) const COLUMNS: &str = "s.key, s.item, s.sample, s.task, s.cluster, s.prompt_tokens, s.budget, s.max_tokens, \
    s.finish, s.cached_tokens, s.queued_s, s.prefill_s, s.decode_s, s.correct, s.verdict_failure, s.failure_kind, \
    s.retryable, t.format, t.covariates, t.gold, t.prompt_sha256, t.completion, t.ids, t.extracted, t.matchers, \
    t.metrics, t.failure_message, t.evidence, s.completion_tokens";

/// Number of [`COLUMNS`] without the last one.
pub(super) const COLUMN_COUNT: usize = 28;

/// Bytes of the texts of a row of [`COLUMNS`].
pub(super) fn text_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    let length = |column: usize| {
        Ok(match row.get_ref(column)? {
            ValueRef::Text(text) | ValueRef::Blob(text) => text.len(),
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        })
    };
    (COLUMN_COUNT - WIDE_COUNT..COLUMN_COUNT).map(length).sum()
}

/// A value stored as JSON text.
struct Json<T>(T);

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Json).map_err(FromSqlError::other)
    }
}

/// A fieldless enum, stored as its JSON string.
pub(super) struct Word<T>(pub(super) T);

/// Returns the string of a fieldless enum.
fn word(value: impl Serialize) -> rusqlite::Result<String> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        Ok(other) => Err(rusqlite::Error::ToSqlConversionFailure(format!("{other} is not a string").into())),
        Err(error) => Err(rusqlite::Error::ToSqlConversionFailure(error.into())),
    }
}

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
            serde::de::IntoDeserializer::into_deserializer(value.as_str()?);
        T::deserialize(word).map(Word).map_err(FromSqlError::other)
    }
}

/// Reads a column of JSON text.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    row.get::<_, Json<T>>(column).map(|Json(value)| value)
}

/// Encodes token ids as LEB128: seven bits per byte, the lowest first, the top bit set in all bytes of an id but the last. Two or
/// three bytes per id instead of four make the file a tenth smaller.
fn ids_to_bytes(ids: &[u32]) -> Vec<u8> {
    // Sized for the worst case and indexed, because growing byte by byte takes three times as long.
    let mut bytes = vec![0; 5 * ids.len()];
    let mut end = 0;
    for &id in ids {
        let mut rest = id;
        while rest >= 0x80 {
            bytes[end] = rest as u8 | 0x80;
            end += 1;
            rest >>= 7;
        }
        bytes[end] = rest as u8;
        end += 1;
    }
    bytes.truncate(end);
    bytes
}

/// Decodes [`ids_to_bytes`].
fn ids_from_bytes(bytes: &[u8]) -> FromSqlResult<Vec<u32>> {
    let mut ids = Vec::with_capacity(bytes.len() / 2);
    let (mut id, mut shift) = (0_u64, 0);
    for &byte in bytes {
        id |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            ids.push(u32::try_from(id).map_err(|_| FromSqlError::other(InvalidIds))?);
            (id, shift) = (0, 0);
        } else if shift > 28 {
            return Err(FromSqlError::other(InvalidIds));
        }
    }
    if shift == 0 { Ok(ids) } else { Err(FromSqlError::other(InvalidIds)) }
}

/// Bytes that are not 32-bit numbers in LEB128.
#[derive(Debug, thiserror::Error)]
#[error("the token ids of a sample are damaged")]
struct InvalidIds;

/// A sample of another version.
#[derive(Debug, thiserror::Error)]
#[error("it has format {0}; this version of earnest reads format {known}", known = SAMPLE_FORMAT)]
pub(crate) struct OtherSampleFormat(pub(crate) u32);

/// Reads a sample's format.
///
/// # Errors
/// [`OtherSampleFormat`].
pub(super) fn format(row: &Row<'_>, column: usize) -> rusqlite::Result<u32> {
    match row.get(column)? {
        SAMPLE_FORMAT => Ok(SAMPLE_FORMAT),
        other => {
            let reason = OtherSampleFormat(other).into();
            Err(rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Integer, reason))
        }
    }
}

/// Converts a count; larger ones than `i64::MAX` do not occur.
fn integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Encoded columns of a sample: JSON, enum strings, packed ids, and the [`seal`] over all columns. Encoding takes a quarter of the
/// time of the insertion and needs no file.
pub(super) struct Encoded {
    finish: Option<String>,
    kind: Option<String>,
    covariates: String,
    scorers: Option<String>,
    metrics: Option<String>,
    evidence: Option<String>,
    ids: Option<Vec<u8>>,
    seal: i64,
}

impl Encoded {
    pub(super) fn new(sample: &Sample) -> rusqlite::Result<Self> {
        let completion = sample.completion.as_ref();
        let score = sample.score.as_ref();
        let evidence = score.filter(|score| !score.evidence.is_empty());
        let mut encoded = Encoded {
            finish: completion.map(|completion| word(completion.finish)).transpose()?,
            kind: sample.failure.as_ref().map(|failure| word(failure.kind)).transpose()?,
            covariates: json_text(&sample.covariates)?,
            scorers: score.map(|score| json_text(&score.scorers)).transpose()?,
            metrics: score.map(|score| json_text(&score.metrics)).transpose()?,
            evidence: evidence.map(|score| json_text(&score.evidence)).transpose()?,
            ids: completion.map(|completion| ids_to_bytes(&completion.ids)),
            seal: 0,
        };
        encoded.seal = seal(encoded.columns(sample));
        Ok(encoded)
    }

    /// Returns the sealed values of [`COLUMNS`], without the key.
    fn columns<'a>(&'a self, sample: &'a Sample) -> [ValueRef<'a>; COLUMN_COUNT - 1] {
        let completion = sample.completion.as_ref();
        let score = sample.score.as_ref();
        let failure = sample.failure.as_ref();
        let timing = |seconds: fn(&Timings) -> f64| real(completion.map(|completion| seconds(&completion.timings)));
        [
            text(Some(&sample.item)),
            ValueRef::Integer(i64::from(sample.sample)),
            text(Some(&sample.task)),
            text(Some(&sample.cluster)),
            ValueRef::Integer(integer(sample.prompt_tokens)),
            ValueRef::Integer(integer(sample.budget)),
            ValueRef::Integer(integer(sample.max_tokens)),
            text(self.finish.as_deref()),
            whole(completion.map(|completion| integer(completion.cached_tokens))),
            timing(|timings| timings.queued_s),
            timing(|timings| timings.prefill_s),
            timing(|timings| timings.decode_s),
            whole(score.map(|score| i64::from(score.correct))),
            text(score.and_then(|score| score.failure.as_ref()).map(FailureClass::as_str)),
            text(self.kind.as_deref()),
            whole(failure.map(|failure| i64::from(failure.retryable))),
            ValueRef::Integer(i64::from(sample.format)),
            text(Some(&self.covariates)),
            text(Some(&sample.gold)),
            text(Some(&sample.prompt_sha256)),
            text(completion.map(|completion| completion.text.as_str())),
            self.ids.as_deref().map_or(ValueRef::Null, ValueRef::Blob),
            text(score.and_then(|score| score.answer.as_deref())),
            text(self.scorers.as_deref()),
            text(self.metrics.as_deref()),
            text(failure.map(|failure| failure.message.as_str())),
            text(self.evidence.as_deref()),
        ]
    }
}

/// Inserts a sample's two rows. Parameters are positional, because looking up thirty names would cost as much as the insertion.
pub(super) fn insert(
    samples: &mut CachedStatement<'_>,
    texts: &mut CachedStatement<'_>,
    key: i64,
    run: i64,
    sample: &Sample,
    encoded: &Encoded,
) -> rusqlite::Result<()> {
    let columns = encoded.columns(sample);
    let tokens = whole(sample.completion.as_ref().map(|completion| integer(completion.tokens())));
    let of_sample = [ValueRef::Integer(key), ValueRef::Integer(run)]
        .into_iter()
        .chain(columns[..8].iter().copied())
        .chain([tokens])
        .chain(columns[8..16].iter().copied());
    let narrow = ValueRef::Integer(seal(of_sample.clone()));
    execute(samples, of_sample.chain([narrow]))?;
    let seal = ValueRef::Integer(encoded.seal);
    execute(texts, [ValueRef::Integer(key)].into_iter().chain(columns[16..].iter().copied()).chain([seal]))
}

fn execute<'a>(
    statement: &mut CachedStatement<'_>,
    values: impl Iterator<Item = ValueRef<'a>>,
) -> rusqlite::Result<()> {
    for (index, value) in values.enumerate() {
        statement.raw_bind_parameter(index + 1, ToSqlOutput::Borrowed(value))?;
    }
    statement.raw_execute().map(drop)
}

fn text(text: Option<&str>) -> ValueRef<'_> {
    text.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()))
}

fn whole(number: Option<i64>) -> ValueRef<'static> {
    number.map_or(ValueRef::Null, ValueRef::Integer)
}

/// Normalises a number as SQLite does: NaN becomes NULL, and zero loses its sign.
fn real(number: Option<f64>) -> ValueRef<'static> {
    number.filter(|number| !number.is_nan()).map_or(ValueRef::Null, |number| ValueRef::Real(number + 0.0))
}

fn json_text(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Returns a digest of a sample's stored columns, in the order of [`COLUMNS`] without the key and the last one: the first eight bytes of SHA-256
/// over type, length and content of each. It detects rows that were edited in the file; it is not a signature.
pub(super) fn seal<'a>(columns: impl IntoIterator<Item = ValueRef<'a>>) -> i64 {
    let mut bytes = Vec::with_capacity(2_048);
    let mut field = |kind: u8, content: &[u8]| {
        bytes.push(kind);
        bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(content);
    };
    for column in columns {
        match column {
            ValueRef::Null => field(0, &[]),
            ValueRef::Integer(number) => field(1, &number.to_le_bytes()),
            ValueRef::Real(number) => field(2, &number.to_bits().to_le_bytes()),
            ValueRef::Text(text) => field(3, text),
            ValueRef::Blob(blob) => field(4, blob),
        }
    }
    let digest = earnest_digest::sha256(&bytes);
    i64::from_le_bytes(std::array::from_fn(|index| digest[index]))
}

/// Returns the seal of the columns from `first` on as they are in the file now.
pub(super) fn seal_from(row: &Row<'_>, first: usize, count: usize) -> rusqlite::Result<i64> {
    let columns = (first..first + count).map(|column| row.get_ref(column)).collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(seal(columns))
}

/// Returns the seal over both tables' columns, from a row that begins with [`NARROW`] and one with [`WIDE`] from `first` on.
pub(super) fn seal_of_both(narrow: &Row<'_>, wide: &Row<'_>, first: usize) -> rusqlite::Result<i64> {
    let mut columns = Vec::with_capacity(COLUMN_COUNT);
    // Without key, run and the number of tokens.
    for column in (2..NARROW_COUNT).filter(|&column| column != 10) {
        columns.push(narrow.get_ref(column)?);
    }
    for column in first..first + WIDE_COUNT {
        columns.push(wide.get_ref(column)?);
    }
    Ok(seal(columns))
}

/// Returns the seal of a row of [`COLUMNS`] as it is in the file now.
pub(super) fn seal_of(row: &Row<'_>) -> rusqlite::Result<i64> {
    seal_from(row, 1, COLUMN_COUNT - 1)
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
            let counted_tokens = if ids.is_empty() { count(COLUMN_COUNT)? } else { 0 };
            Some(Generated {
                text: row.get(21)?,
                ids,
                counted_tokens,
                finish,
                cached_tokens: count(9)?,
                timings: Timings { queued_s: row.get(10)?, prefill_s: row.get(11)?, decode_s: row.get(12)? },
            })
        }
    };
    let score = match row.get::<_, Option<bool>>(13)? {
        None => None,
        Some(correct) => Some(Score {
            correct,
            answer: row.get(23)?,
            scorers: row.get::<_, Json<_>>(24)?.0,
            metrics: row.get::<_, Json<_>>(25)?.0,
            failure: row.get::<_, Option<String>>(14)?.as_deref().map(FailureClass::from),
            evidence: row.get::<_, Option<Json<_>>>(27)?.map(|Json(evidence)| evidence).unwrap_or_default(),
        }),
    };
    let failure = match row.get::<_, Option<Word<_>>>(15)? {
        None => None,
        Some(Word(kind)) => Some(SampleFailure { kind, message: row.get(26)?, retryable: row.get(16)? }),
    };
    let sample = Sample {
        format: format(row, 17)?,
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
        score,
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
        assert_eq!(COLUMNS.split(',').count(), COLUMN_COUNT + 1);
        assert_eq!(NARROW.split(',').count(), NARROW_COUNT);
        assert_eq!(WIDE.split(',').count(), WIDE_COUNT);
    }

    #[test]
    fn seals_tell_columns_apart() {
        let seals = [
            seal([text(Some("ab")), text(Some("c"))]),
            seal([text(Some("a")), text(Some("bc"))]),
            seal([text(Some("ab")), ValueRef::Blob(b"c")]),
            seal([text(Some("ab")), ValueRef::Null]),
            seal([whole(Some(0)), real(Some(0.0))]),
            seal([whole(Some(0)), real(Some(f64::NAN))]),
        ];
        for (index, one) in seals.iter().enumerate() {
            assert!(!seals[..index].contains(one));
        }
    }
}
