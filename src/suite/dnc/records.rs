//! A file of JSON as rows: one array, JSON lines, or one object. Bytes in, rows out; a row that cannot be read is named.
use serde_json::Value;
use thiserror::Error;

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
    #[error("it holds {0} where rows are expected: a JSON array, or one JSON object a line")]
    Shape(&'static str),
}

/// A row, or why it is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// `line 3` of JSON lines, `row 3` of an array; both count from 1.
    pub place: String,
    pub value: Result<Value, String>,
}

/// A row that was not used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub place: String,
    pub why: String,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Records {
    /// Rows of an array or of JSON lines.
    Rows(Vec<Record>),
    /// One object over several lines (DROP's own form).
    Object(serde_json::Map<String, Value>),
}

/// Takes a file apart. A line that is not UTF-8 or not JSON is a malformed row; an array with an error in it cannot be divided
/// into rows and is refused whole.
///
/// # Errors
/// If there are no rows.
pub fn records(bytes: &[u8]) -> Result<Records, FileError> {
    for (mark, name) in [(&[0xff, 0xfe][..], "UTF-16LE"), (&[0xfe, 0xff], "UTF-16BE")] {
        if bytes.starts_with(mark) {
            return Err(FileError::Encoding(name));
        }
    }
    let bytes = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(bytes);
    let text = || std::str::from_utf8(bytes).map_err(|error| FileError::NotUtf8(error.valid_up_to() + 1));
    let whole = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| FileError::NotJson(error.to_string()));
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(FileError::Empty),
        Some(b'[') => match whole(text()?)? {
            Value::Array(rows) if rows.is_empty() => Err(FileError::Empty),
            Value::Array(rows) => Ok(Records::Rows(
                rows.into_iter()
                    .enumerate()
                    .map(|(at, value)| Record { place: format!("row {}", at + 1), value: Ok(value) })
                    .collect(),
            )),
            _ => Err(FileError::Shape("something else")),
        },
        Some(b'{') => {
            let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let filled = |line: &&[u8]| !line.iter().all(u8::is_ascii_whitespace);
            // One object a line, unless the first line alone is no object: then the whole file is one.
            let first = lines.iter().find(|line| filled(line)).copied().unwrap_or_default();
            let single = lines.iter().filter(|line| filled(line)).count() == 1;
            let first_is_row = std::str::from_utf8(first)
                .is_ok_and(|text| serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok());
            if !first_is_row && let Ok(Value::Object(object)) = text().and_then(whole) {
                return Ok(Records::Object(object));
            }
            if single && let Value::Object(object) = whole(text()?)? {
                // A single line may be a file of one row or DROP's object; the reader of the data set knows its keys.
                return Ok(Records::Object(object));
            }
            let row = |(at, line): (usize, &[u8])| {
                let value = match std::str::from_utf8(line) {
                    Err(error) => Err(format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1)),
                    Ok(text) => serde_json::from_str(text).map_err(|error| format!("not JSON: {error}")),
                };
                Record { place: format!("line {}", at + 1), value }
            };
            Ok(Records::Rows(lines.into_iter().enumerate().filter(|(_, line)| filled(line)).map(row).collect()))
        }
        Some(_) => {
            let text = text()?;
            whole(text).and(Err(FileError::Shape("a single value")))
        }
    }
}

impl Records {
    /// The rows; an object is one row.
    pub fn into_rows(self) -> Vec<Record> {
        match self {
            Records::Rows(rows) => rows,
            Records::Object(object) => vec![Record { place: "row 1".to_owned(), value: Ok(Value::Object(object)) }],
        }
    }
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
        assert_eq!(records(b" \n"), Err(FileError::Empty));
        assert_eq!(records(b"[]"), Err(FileError::Empty));
        assert_eq!(records(b"\xff\xfe[\0"), Err(FileError::Encoding("UTF-16LE")));
        assert_eq!(records(b"[\"\xe9\"]"), Err(FileError::NotUtf8(3)));
        assert!(matches!(records(b"[1,"), Err(FileError::NotJson(_))));
        assert!(matches!(records(b"hello"), Err(FileError::NotJson(_))));
        assert!(matches!(records(b"5"), Err(FileError::Shape(_))));
    }
}
