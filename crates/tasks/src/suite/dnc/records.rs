//! A file of JSON as rows: one array, JSON lines, or one object. Bytes in, rows out; a row that cannot be read is named.
use crate::suite::quoted::shortened;
use serde::de::IgnoredAny;
use serde_json::Value;
use thiserror::Error;

use super::problem::ProblemError;
use super::raw_json::{elements, repeated_key};

/// Rows of a file, which are held in memory.
const MOST_ROWS: usize = 1_000_000;

/// Largest row in bytes. A byte of JSON may need 32 in memory.
const LONGEST: usize = 16_000_000;

/// A file has no rows that could be told apart.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FileError {
    #[error("the text is {0}, not UTF-8; `iconv -f {0} -t UTF-8` converts it")]
    Encoding(&'static str),
    #[error("byte {0} is not UTF-8; if the file is Latin-1, `iconv -f LATIN1 -t UTF-8` converts it")]
    NotUtf8(usize),
    #[error("it is no JSON: {0}")]
    NotJson(String),
    #[error("it has no rows")]
    Empty,
    #[error("it has more than {MOST_ROWS} rows, which is the limit")]
    TooMany,
    #[error("it is one object of more than {} MB, which is the limit", LONGEST / 1_000_000)]
    TooLong,
    #[error("it holds {0} where rows are expected: a JSON array, or one JSON object a line")]
    Shape(&'static str),
}

/// Reason for a row not being used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RowError {
    #[error("byte {0} of the line is not UTF-8")]
    NotUtf8(usize),
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("it has more than {} MB, which is the limit", LONGEST / 1_000_000)]
    TooLong,
    #[error("the key {0:?} stands twice")]
    RepeatedKey(String),
    #[error("not a JSON object")]
    NotAnObject,
    #[error("field `{0}` is missing")]
    Missing(String),
    #[error("field `{0}` is not text")]
    NotText(String),
    #[error("field `{0}` is neither a text nor a number")]
    NotTextOrNumber(String),
    #[error("field `{0}` is empty")]
    Empty(String),
    #[error("its {0} is empty")]
    EmptyPart(&'static str),
    #[error(
        "it already has a field `{0}`, which the output needs for itself; the setting `about_field` names another one"
    )]
    AboutTaken(String),
    #[error("it has no question: none of the fields {0}; the setting `question_field` names it")]
    NoQuestion(String),
    #[error("field `{field}` is missing or {wrong}")]
    MissingOr { field: &'static str, wrong: &'static str },
    #[error("{what} {value} is not a number")]
    NotANumber { what: &'static str, value: Value },
    #[error("a paragraph {0}")]
    Paragraph(&'static str),
    #[error("scale {0:?} is unknown")]
    UnknownScale(String),
    #[error("a row is not a list")]
    NotAList,
    #[error("cell {0} is not text")]
    Cell(Value),
    #[error("it has no rows")]
    NoRows,
    #[error("another question has this id too")]
    RepeatedId,
    /// An error of a part, or of a question with an id.
    #[error("{part}: {why}")]
    Within { part: String, why: Box<RowError> },
    #[error(transparent)]
    Contradiction(#[from] ProblemError),
}

impl RowError {
    /// The error with the name of the part, or the id of the question, that has it.
    pub(super) fn within(self, part: impl Into<String>) -> Self {
        RowError::Within { part: part.into(), why: Box::new(self) }
    }
}

/// A row as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<'a> {
    /// `line 3` of JSON lines, `row 3` of an array; both count from 1.
    pub place: String,
    pub value: Result<Value, RowError>,
    /// The row as it is written.
    pub text: &'a str,
}

/// A row that was not used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub place: String,
    pub why: String,
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Records<'a> {
    /// Rows of an array or of JSON lines.
    Rows(Vec<Record<'a>>),
    /// One object, over one line or several (DROP's own form), and as it is written.
    Object(serde_json::Map<String, Value>, &'a str),
}

/// Takes a file apart. A row that is not UTF-8 or not JSON, holds a number beyond what JSON readers hold or a key twice is
/// malformed; an array whose own brackets and commas are wrong cannot be divided into rows and is refused whole.
///
/// # Errors
/// If there are no rows.
pub fn records(bytes: &[u8]) -> Result<Records<'_>, FileError> {
    for (mark, name) in [(&[0xff, 0xfe][..], "UTF-16LE"), (&[0xfe, 0xff], "UTF-16BE")] {
        if bytes.starts_with(mark) {
            return Err(FileError::Encoding(name));
        }
    }
    let bytes = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(bytes);
    let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) else { return Err(FileError::Empty) };
    let text = std::str::from_utf8(bytes).map_err(|error| FileError::NotUtf8(error.valid_up_to() + 1));
    let whole = text.and_then(|text| match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Ok(text),
        Err(error) => Err(FileError::NotJson(error.to_string())),
    });
    match (first, whole) {
        (b'[', Ok(text)) => {
            let rows = elements(text);
            if rows.is_empty() {
                return Err(FileError::Empty);
            }
            if rows.len() > MOST_ROWS {
                return Err(FileError::TooMany);
            }
            let row = |(at, text)| Record { place: format!("row {}", at + 1), value: strict(text), text };
            Ok(Records::Rows(rows.into_iter().enumerate().map(row).collect()))
        }
        (b'{', Ok(text)) if text.len() > LONGEST => Err(FileError::TooLong),
        (b'{', Ok(text)) => match strict(text) {
            Ok(Value::Object(object)) => Ok(Records::Object(object, text)),
            Ok(_) => Err(FileError::Shape("something else")),
            Err(RowError::NotJson(what)) => Err(FileError::NotJson(what)),
            Err(error) => Err(FileError::NotJson(error.to_string())),
        },
        (_, Ok(_)) => Err(FileError::Shape("a single value")),
        _ if bytes.iter().filter(|byte| **byte == b'\n').count() > MOST_ROWS => Err(FileError::TooMany),
        (first, Err(error)) => lines(bytes, *first).ok_or(error),
    }
}

/// JSON lines: none if the lines do not look like rows, so that an array with an error in it is not taken for them.
fn lines(bytes: &[u8], first: u8) -> Option<Records<'_>> {
    let filled = |(_, line): &(usize, &[u8])| !line.iter().all(u8::is_ascii_whitespace);
    let rows: Vec<Record<'_>> = bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(filled)
        .map(|(at, line)| {
            let text = std::str::from_utf8(line).map_err(|error| RowError::NotUtf8(error.valid_up_to() + 1));
            let value = text.clone().and_then(strict);
            Record { place: format!("line {}", at + 1), value, text: text.unwrap_or_default() }
        })
        .collect();
    let objects = rows.iter().filter(|row| matches!(row.value, Ok(Value::Object(_)))).count();
    let enough = if first == b'{' { objects > 0 } else { objects > 0 && 2 * objects >= rows.len() };
    (enough && rows.len() > 1).then_some(Records::Rows(rows))
}

/// One row, with what serde_json passes over in silence.
fn strict(text: &str) -> Result<Value, RowError> {
    if text.len() > LONGEST {
        return Err(RowError::TooLong);
    }
    let value = serde_json::from_str(text).map_err(|error| {
        // The line that it counts is that of the row, not of the file.
        let said = error.to_string();
        let what = said.split(" at line ").next().unwrap_or(&said);
        let place = match error.line() {
            0 | 1 => String::new(),
            line => format!("line {line}, "),
        };
        RowError::NotJson(format!("{what} ({place}character {} of the row)", error.column()))
    })?;
    match repeated_key(text) {
        Some(key) => Err(RowError::RepeatedKey(key)),
        None => Ok(value),
    }
}

impl<'a> Records<'a> {
    /// The rows; an object is one row.
    pub fn into_rows(self) -> Vec<Record<'a>> {
        match self {
            Records::Rows(rows) => rows,
            Records::Object(object, text) => {
                vec![Record { place: "row 1".to_owned(), value: Ok(Value::Object(object)), text }]
            }
        }
    }
}

/// Malformed rows in a sentence: how many, each by name, and the reasons of the first five.
pub fn malformed_rows(rows: &[(String, Malformed)]) -> String {
    let mut text = format!("{} malformed row{}", rows.len(), if rows.len() == 1 { "" } else { "s" });
    for (index, (file, row)) in rows.iter().take(5).enumerate() {
        text.push_str(if index == 0 { ": " } else { "; " });
        text.push_str(&format!("{file}, {}: {}", row.place, shortened(&row.why, 160)));
    }
    if rows.len() > 5 {
        // Every row is named; for the reason of one of these, mend those before it.
        let places: Vec<String> = rows[5..].iter().map(|(file, row)| format!("{file}, {}", row.place)).collect();
        text.push_str(&format!("; and {} more: {}", places.len(), places.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_yields_its_rows_and_names_the_bad_ones() {
        let places = |bytes: &[u8]| -> Vec<(String, bool)> {
            records(bytes).unwrap().into_rows().into_iter().map(|row| (row.place, row.value.is_ok())).collect()
        };
        let of = |list: &[(&str, bool)]| list.iter().map(|(p, ok)| ((*p).to_owned(), *ok)).collect::<Vec<_>>();
        assert_eq!(places(b"[{\"a\":1}, 5]"), of(&[("row 1", true), ("row 2", true)]));
        assert_eq!(
            places(b"\xef\xbb\xbf{\"a\":1}\n\n{\"a\"\n{\"b\":\"\xe9\"}\r\n"),
            of(&[("line 1", true), ("line 3", false), ("line 4", false)])
        );
        assert_eq!(places(b"{\n \"a\": {}\n}"), of(&[("row 1", true)]));
        // A first line that is no row is one bad row, whatever it begins with.
        for first in ["oops", "{\"a\"", "[1,", "5", "\"x\""] {
            let found = places(format!("{first}\n{{\"a\":1}}\n{{\"b\":2}}\n").as_bytes());
            assert_eq!(
                found,
                of(&[("line 1", first == "5" || first == "\"x\""), ("line 2", true), ("line 3", true)]),
                "{first}"
            );
        }
        let broken = b"[\n{\"a\":1},\n{\"a\":2},\n{\"a\":3}\n";
        assert!(matches!(records(broken), Err(FileError::NotJson(_))));
        let whys: Vec<String> = records(b"{\"a\":1,\"a\":2}\n{\"a\":1e400}\n{\"a\" 1}\n{\"a\":1.10}")
            .unwrap()
            .into_rows()
            .into_iter()
            .filter_map(|row| row.value.err().map(|error| error.to_string()))
            .collect();
        assert_eq!(whys[0], "the key \"a\" stands twice");
        assert!(whys[1].starts_with("not JSON: number out of range") && whys[2].contains("expected `:`"), "{whys:?}");
        assert!(whys.len() == 3 && whys.iter().all(|why| !why.contains("line")), "{whys:?}");
        assert_eq!(records(b" \n"), Err(FileError::Empty));
        assert_eq!(records(b"[]"), Err(FileError::Empty));
        assert_eq!(records(b"\xff\xfe[\0"), Err(FileError::Encoding("UTF-16LE")));
        assert_eq!(records(b"[\"\xe9\"]"), Err(FileError::NotUtf8(3)));
        assert!(matches!(records(b"[1,"), Err(FileError::NotJson(_))));
        assert!(matches!(records(b"hello"), Err(FileError::NotJson(_))));
        assert!(matches!(records(b"5"), Err(FileError::Shape(_))));
    }
}
