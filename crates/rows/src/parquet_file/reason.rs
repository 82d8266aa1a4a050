//! Reasons for a Parquet file not being read, in words.
use parquet::errors::ParquetError;

/// Reason why a file, or a part of it, cannot be read as Parquet: what is damaged, or the limit that it exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Damage(pub String);

/// Hands the reason through the library, whose iterators have its error.
impl From<Damage> for ParquetError {
    fn from(Damage(reason): Damage) -> Self {
        ParquetError::General(reason)
    }
}

/// The message of an error, without the library's name of its kind.
pub(super) fn in_words(error: ParquetError) -> Damage {
    let message = match error {
        ParquetError::General(message) | ParquetError::NYI(message) => message,
        ParquetError::EOF(message) => format!("it ends too early: {message}"),
        ParquetError::IndexOutOfBound(place, count) => format!("it has no part {place}, of {count}"),
        ParquetError::External(cause) => cause.to_string(),
        ParquetError::NeedMoreData(_) | ParquetError::NeedMoreDataRange(_) => "it ends too early".to_owned(),
        other => other.to_string(),
    };
    // Errors of values that the library reads stand in others as texts.
    Damage(KINDS.iter().fold(message, |message, kind| message.replace(kind, "")))
}

/// Names of kinds, as the library writes them.
pub(super) const KINDS: [&str; 4] = ["Parquet error: ", "External: ", "EOF: ", "NYI: "];
