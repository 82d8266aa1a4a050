//! Report of a subject on a file.
use std::path::Path;

use serde_json::{Map, Value};

use super::files;

/// The result for one golden file.
pub struct FileReport {
    /// Path relative to the golden folder, with `/`.
    pub file: String,
    pub outcome: Outcome,
}

/// Outcome of checking a file.
pub enum Outcome {
    /// It does not exist.
    Absent,
    /// It was read; `failures` has one line per failing row.
    Checked { total: usize, failures: Vec<String> },
    /// Rows of which a given share must pass; `why` is the reason for a failure.
    Rated { total: usize, failures: Vec<String>, why: Option<String> },
    /// It exists, and not a row of it could be read.
    Unreadable(String),
}

impl FileReport {
    /// A file that does not exist.
    pub fn absent(file: impl Into<String>) -> Self {
        FileReport { file: file.into(), outcome: Outcome::Absent }
    }

    /// A file whose rows were checked, each with its result.
    pub fn checked(file: impl Into<String>, rows: impl IntoIterator<Item = Result<(), String>>) -> Self {
        let mut total = 0;
        let mut failures = Vec::new();
        for row in rows {
            total += 1;
            if let Err(failure) = row {
                failures.push(format!("row {total}: {failure}"));
            }
        }
        FileReport { file: file.into(), outcome: Outcome::Checked { total, failures } }
    }

    /// A file that exists but cannot be read.
    pub fn unreadable(file: impl Into<String>, why: impl std::fmt::Display) -> Self {
        FileReport { file: file.into(), outcome: Outcome::Unreadable(why.to_string()) }
    }

    /// Rows that were read.
    #[allow(dead_code, reason = "for the tests of spoilt files, which share this module")]
    pub fn total(&self) -> usize {
        match &self.outcome {
            Outcome::Checked { total, .. } | Outcome::Rated { total, .. } => *total,
            Outcome::Absent | Outcome::Unreadable(_) => 0,
        }
    }

    /// A line for every row that did not pass, or why the file cannot be read.
    #[allow(dead_code, reason = "for the tests of spoilt files, which share this module")]
    pub fn failures(&self) -> &[String] {
        match &self.outcome {
            Outcome::Checked { failures, .. } | Outcome::Rated { failures, .. } => failures,
            Outcome::Absent => &[],
            Outcome::Unreadable(why) => std::slice::from_ref(why),
        }
    }

    #[allow(dead_code, reason = "for the tests of spoilt files, which share this module")]
    pub fn is_absent(&self) -> bool {
        matches!(self.outcome, Outcome::Absent)
    }

    /// True unless a row failed, the file has no rows, or it cannot be read.
    pub fn passes(&self) -> bool {
        match &self.outcome {
            Outcome::Absent => true,
            Outcome::Checked { total, failures } => *total > 0 && failures.is_empty(),
            Outcome::Rated { total, why, .. } => *total > 0 && why.is_none(),
            Outcome::Unreadable(_) => false,
        }
    }
}

/// Checks a file of JSON objects, one a line. An empty line is a failing row.
pub fn check_json_lines(
    root: &Path,
    file: &str,
    check: impl Fn(&Map<String, Value>) -> Result<(), String>,
) -> FileReport {
    let path = root.join(file);
    if !files::is_there(&path) {
        return FileReport::absent(file);
    }
    match files::read(&path) {
        Err(error) => FileReport::unreadable(file, error),
        Ok(text) => {
            let row = |line: &str| match serde_json::from_str::<Value>(line) {
                Ok(Value::Object(object)) => check(&object),
                Ok(_) => Err("not a JSON object".to_owned()),
                Err(error) => Err(format!("not JSON: {error}")),
            };
            FileReport::checked(file, text.lines().map(row))
        }
    }
}

/// Fails unless an object has exactly these fields.
pub fn require_fields(row: &Map<String, Value>, fields: &[&str]) -> Result<(), String> {
    if let Some(missing) = fields.iter().find(|field| !row.contains_key(**field)) {
        return Err(format!("field `{missing}` is missing"));
    }
    match row.keys().find(|key| !fields.contains(&key.as_str())) {
        Some(unknown) => Err(format!("field `{unknown}` is unknown")),
        None => Ok(()),
    }
}

/// A string field.
pub fn text<'a>(row: &'a Map<String, Value>, field: &str) -> Result<&'a str, String> {
    row.get(field).and_then(Value::as_str).ok_or_else(|| format!("field `{field}` is missing or no string"))
}

/// A boolean field.
pub fn flag(row: &Map<String, Value>, field: &str) -> Result<bool, String> {
    row.get(field).and_then(Value::as_bool).ok_or_else(|| format!("field `{field}` is missing or no boolean"))
}

/// Fails unless the computed value equals the row's.
pub fn require_equal<T: PartialEq + std::fmt::Debug>(what: &str, computed: T, golden: T) -> Result<(), String> {
    if computed == golden { Ok(()) } else { Err(format!("{what}: computed {computed:?}, golden {golden:?}")) }
}
