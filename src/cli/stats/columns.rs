//! Columns of a CSV file, by name.
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file gives no columns.
#[derive(Debug, Error)]
pub enum ColumnError {
    /// It cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// It is not CSV.
    #[error("cannot read {}: {source}", path.display())]
    Csv { path: PathBuf, source: csv::Error },
    /// There is no line of names.
    #[error("{} is empty: expected a first line with column names", path.display())]
    Empty { path: PathBuf },
    /// A column is not there.
    #[error("{} has no column `{name}`; its columns are: {present}", path.display())]
    Missing { path: PathBuf, name: String, present: String },
    /// Two columns have the wanted name.
    #[error("{} has more than one column `{name}`", path.display())]
    Ambiguous { path: PathBuf, name: String },
    /// A field is not a number.
    #[error("{}, line {line}: column `{column}` is `{field}`, expected {expected}", path.display())]
    Field { path: PathBuf, line: u64, column: String, field: String, expected: &'static str },
}

/// How a column is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A finite number.
    Number,
    /// 0 or 1, `true` or `false`.
    Binary,
    /// Any text; becomes the index of its first appearance.
    Label,
}

/// Whether a row with a missing value is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The whole row is left out.
    DropRow,
    /// The value is left out of its column only, so that columns may differ in length.
    DropValue,
}

/// Columns in the order asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Columns {
    /// Values; labels as indices.
    pub(super) values: Vec<Vec<f64>>,
    /// Labels by index, for label columns.
    pub(super) labels: Vec<Vec<String>>,
    /// Data rows in the file.
    pub(super) rows: usize,
    /// Rows left out.
    pub(super) dropped: usize,
    /// Missing values by column name.
    pub(super) missing: BTreeMap<String, usize>,
}

impl Columns {
    /// A label column's indices as group numbers.
    pub(super) fn groups(&self, column: usize) -> Vec<u64> {
        self.values[column].iter().map(|index| *index as u64).collect()
    }
}

/// Fields that count as missing: nothing, and what R, pandas and JSON write.
fn is_missing(field: &str) -> bool {
    matches!(field, "" | "NA" | "na" | "N/A" | "NaN" | "nan" | "null" | "None")
}

/// Reads columns of a file (`-` is standard input) in one pass, keeping only what was asked for.
pub(super) fn read(path: &Path, wanted: &[(&str, Kind)], missing: Missing) -> Result<Columns, ColumnError> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(|source| ColumnError::Open { path: path.to_owned(), source })?)
    };
    read_from(source, path, wanted, missing)
}

fn read_from(
    source: impl Read,
    path: &Path,
    wanted: &[(&str, Kind)],
    missing: Missing,
) -> Result<Columns, ColumnError> {
    let wrap = |source| ColumnError::Csv { path: path.to_owned(), source };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source);
    let headers = reader.headers().map_err(wrap)?.clone();
    if headers.is_empty() {
        return Err(ColumnError::Empty { path: path.to_owned() });
    }
    // A byte-order mark is what spreadsheets put before the first name.
    let names: Vec<&str> = headers.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
    let mut positions = Vec::new();
    for (name, _) in wanted {
        let mut found = names.iter().enumerate().filter(|(_, present)| *present == name);
        let Some((position, _)) = found.next() else {
            let present = names.join(", ");
            return Err(ColumnError::Missing { path: path.to_owned(), name: (*name).to_owned(), present });
        };
        if found.next().is_some() {
            return Err(ColumnError::Ambiguous { path: path.to_owned(), name: (*name).to_owned() });
        }
        positions.push(position);
    }
    let mut columns = Columns {
        values: vec![Vec::new(); wanted.len()],
        labels: vec![Vec::new(); wanted.len()],
        rows: 0,
        dropped: 0,
        missing: BTreeMap::new(),
    };
    let mut index_of: Vec<HashMap<String, usize>> = vec![HashMap::new(); wanted.len()];
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(wrap)? {
        columns.rows += 1;
        let fields: Vec<&str> = positions.iter().map(|&position| record.get(position).unwrap_or("")).collect();
        let mut complete = true;
        for (field, (name, _)) in fields.iter().zip(wanted) {
            if is_missing(field) {
                complete = false;
                *columns.missing.entry((*name).to_owned()).or_default() += 1;
            }
        }
        if !complete && missing == Missing::DropRow {
            columns.dropped += 1;
            continue;
        }
        for (index, (field, (name, kind))) in fields.iter().zip(wanted).enumerate() {
            if is_missing(field) {
                continue;
            }
            let expected = match kind {
                Kind::Number => "a finite number",
                Kind::Binary => "0 or 1",
                Kind::Label => "a label",
            };
            let value = match kind {
                Kind::Number => field.parse().ok().filter(|value: &f64| value.is_finite()),
                Kind::Binary => binary(field),
                Kind::Label => {
                    let known = &mut index_of[index];
                    // Looked up before it is owned: labels repeat far more often than they are new.
                    let label = known.get(*field).copied().unwrap_or_else(|| {
                        let next = known.len();
                        known.insert((*field).to_owned(), next);
                        columns.labels[index].push((*field).to_owned());
                        next
                    });
                    Some(label as f64)
                }
            };
            let Some(value) = value else {
                return Err(ColumnError::Field {
                    path: path.to_owned(),
                    line: record.position().map_or(0, csv::Position::line),
                    column: (*name).to_owned(),
                    field: (*field).to_owned(),
                    expected,
                });
            };
            columns.values[index].push(value);
        }
    }
    Ok(columns)
}

fn binary(field: &str) -> Option<f64> {
    match field.to_ascii_lowercase().as_str() {
        "true" => Some(1.0),
        "false" => Some(0.0),
        text => text.parse().ok().filter(|value| *value == 0.0 || *value == 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, wanted: &[(&str, Kind)], missing: Missing) -> Result<Columns, String> {
        read_from(text.as_bytes(), Path::new("data.csv"), wanted, missing).map_err(|error| error.to_string())
    }

    const WANTED: [(&str, Kind); 3] = [("correct", Kind::Binary), ("gamma", Kind::Number), ("id", Kind::Label)];

    #[test]
    fn columns_are_found_by_name_and_incomplete_rows_dropped() {
        let text = "\u{feff}id,extra,gamma,correct\na,1,0.5,1\nb,2,,0\n\"a\",3, -2e1 ,False\n,4,1,1\n";
        let found = parse(text, &WANTED, Missing::DropRow).unwrap();
        assert_eq!(found.values, [vec![1.0, 0.0], vec![0.5, -20.0], vec![0.0, 0.0]]);
        assert_eq!((found.rows, found.dropped), (4, 2));
        assert_eq!(found.missing, BTreeMap::from([("gamma".to_owned(), 1), ("id".to_owned(), 1)]));
        assert_eq!(found.labels[2], ["a"]);
        let ragged = parse(text, &[("gamma", Kind::Number)], Missing::DropValue).unwrap();
        assert_eq!((ragged.values[0].len(), ragged.dropped), (3, 0));
    }

    #[test]
    fn errors_name_the_place_and_what_was_expected() {
        let wanted = &WANTED;
        let error = |text: &str| parse(text, wanted, Missing::DropRow).unwrap_err();
        assert!(error("").contains("is empty"));
        assert!(error("id,gamma\n").contains("no column `correct`; its columns are: id, gamma"));
        assert!(error("id,gamma,correct,id\n").contains("more than one column `id`"));
        let message = error("id,gamma,correct\na,1,1\nb,1,2\n");
        assert!(message.contains("line 3: column `correct` is `2`, expected 0 or 1"), "{message}");
        assert!(error("id,gamma,correct\na,inf,1\n").contains("`inf`, expected a finite number"));
        assert!(error("id,gamma,correct\na,1\n").contains("data.csv"));
    }
}
