//! Recognition of a file's format by its content.
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use super::log::LONGEST_SAMPLE;
use super::scan::Scanner;
use super::unread::{Unread, is_write_out};
use super::zip::Zip;
use super::{exports, inspect, lighteval};
use crate::LogError;
use earnest_rows::ParquetFile;

/// Kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    LmEvalSamples,
    LmEvalResults,
    InspectDocument,
    InspectArchive,
    LightevalDetails,
    LightevalResults,
    /// A file in a layout that is known and not read; a table where its columns are named.
    Unread(Unread, Format),
    BatchRequests,
    BatchResponses,
    Export(Format),
    /// A table, or rows of JSON that nothing else is.
    Table(Format),
    Other,
}

/// Format of a flat file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    Json,
    Csv,
    Tsv,
    Parquet,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "jsonl",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Parquet => "parquet",
        }
    }
}

/// Kind of a file by its content.
pub(super) fn kind(path: &Path) -> Result<Kind, LogError> {
    let head = Scanner::head(path, 4)?;
    if head.starts_with(b"PK\x03\x04") {
        let is_archive = match Zip::open(path) {
            Ok(zip) if inspect::has_header(&zip) => true,
            // Its directory or its header is missing; the name must do.
            _ => path.extension().is_some_and(|end| end == "eval"),
        };
        return Ok(if is_archive { Kind::InspectArchive } else { Kind::Other });
    }
    if head.is_empty() && path.extension().is_some_and(|end| end == "eval") {
        return Ok(Kind::InspectArchive);
    }
    if head == b"PAR1" {
        return Ok(match ParquetFile::open(path) {
            Ok(file) if lighteval::are_details(&file.columns()) => Kind::LightevalDetails,
            Ok(file) if lighteval::are_earlier_details(&file.columns()) => {
                Kind::Unread(Unread::LightevalEarlier, Format::Parquet)
            }
            Ok(file) if exports::are_columns(&file.columns()) => Kind::Export(Format::Parquet),
            Ok(_) if lighteval::is_name_of_details(path) => Kind::Unread(Unread::LightevalUnknown, Format::Parquet),
            Ok(_) => Kind::Table(Format::Parquet),
            // It was cut off; its name must do.
            Err(_) if name_of(path).starts_with("details_") => Kind::LightevalDetails,
            Err(_) => Kind::Table(Format::Parquet),
        });
    }
    let mut scanner = Scanner::open(path)?;
    if scanner.peek()? == Some(b'[') {
        scanner.step(b'[')?;
    }
    if scanner.peek()? != Some(b'{') {
        return table_kind(path);
    }
    scanner.step(b'{')?;
    let mut keys = BTreeSet::new();
    let mut whole = true;
    // A file that was cut off is known by the members that it has.
    while let Ok(Some(key)) = scanner.key() {
        keys.insert(key);
        if let Some(kind) = kind_of(&keys) {
            return Ok(kind);
        }
        if !scanner.skip_short(LONGEST_SAMPLE).unwrap_or(false) || keys.len() > 1000 {
            whole = false;
            break;
        }
    }
    let only = |key: &str| keys.iter().eq([key]);
    Ok(if only("results") && name_of(path).starts_with("results") {
        // The first member that the harness writes.
        Kind::LmEvalResults
    } else if only("config_general") {
        Kind::LightevalResults
    } else if whole && path.extension().is_some_and(|end| end == "jsonl" || end == "ndjson" || end == "json") {
        Kind::Table(Format::Json)
    } else {
        Kind::Other
    })
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// A table of text, by the names of its columns.
fn table_kind(path: &Path) -> Result<Kind, LogError> {
    let format = match path.extension().and_then(OsStr::to_str) {
        Some("csv") => Format::Csv,
        Some("tsv") => Format::Tsv,
        _ => return Ok(Kind::Other),
    };
    let head = Scanner::head(path, 1 << 20)?;
    let line =
        head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let columns: Vec<&str> = line.split([',', '\t']).map(|name| name.trim().trim_matches('"')).collect();
    Ok(if exports::are_columns(&columns) { Kind::Export(format) } else { Kind::Table(format) })
}

/// Kind of a file whose first object has these members.
fn kind_of(keys: &BTreeSet<String>) -> Option<Kind> {
    let has = |key: &str| keys.contains(key);
    let any = |names: &[&str]| names.iter().any(|name| keys.contains(*name));
    if has("doc_id") && any(&["doc", "arguments", "resps", "filtered_resps"]) {
        return Some(Kind::LmEvalSamples);
    }
    if has("doc_id") && is_write_out(keys.iter().map(String::as_str)) {
        return Some(Kind::Unread(Unread::LmEvalWriteOut, Format::Json));
    }
    if has("eval") && any(&["status", "plan", "samples"]) {
        return Some(Kind::InspectDocument);
    }
    // The last is another provider's, and refused by name.
    if has("custom_id") && any(&["response", "error", "result"]) {
        return Some(Kind::BatchResponses);
    }
    if has("custom_id") && any(&["body", "url"]) {
        return Some(Kind::BatchRequests);
    }
    if exports::COLUMNS.iter().all(|column| has(column)) {
        return Some(Kind::Export(Format::Json));
    }
    if has("results") && has("config_general") {
        return Some(Kind::LightevalResults);
    }
    if has("results") && any(&["configs", "versions", "config", "n-shot", "lm_eval_version"]) {
        return Some(Kind::LmEvalResults);
    }
    None
}
