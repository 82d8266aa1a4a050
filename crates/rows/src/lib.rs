//! Files of questions: JSON lines, a JSON array, CSV, TSV and Parquet, each also compressed with gzip.
//!
//! Every row is read once to check it. Rows of plain JSON lines stay in their file, of which only the beginnings of rows are kept;
//! rows of other files go as JSON into a temporary file. So memory grows by eight bytes a row.

mod cursor;
mod delimited;
mod error;
mod json;
mod json_array;
mod json_lines;
mod parquet;
mod parquet_file;
mod parquet_rows;
mod paths;
mod refusal;
mod rows;
mod text;
mod time;

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use earnest_digest::input;
use earnest_tasks::suite::registry::{OptionError, RowFile, RowSource, Rows};

pub use error::{FileError, Problem};
pub use parquet_rows::ParquetFile;
pub use paths::{file_named, near_file};
use refusal::{BadRows, Refusal};
use rows::{Index, Kept, Output, Part, Questions, Spool, State, no_room, room, temporary};
use text::{Hashing, content, text, unreadable};
pub use time::timestamp;

/// Format of a file of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// One object a line, or one array of objects: the first character shows which.
    Json,
    Csv,
    Tsv,
    Parquet,
}

const FORMATS: &str = "jsonl, json, csv, tsv or parquet";

impl Format {
    /// The format of this name.
    fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Format::Json,
            "csv" => Format::Csv,
            "tsv" => Format::Tsv,
            "parquet" => Format::Parquet,
            _ => return None,
        })
    }

    /// The format that the ending of a file's name says.
    fn of(name: &str) -> Option<Self> {
        let (name, _) = without_gz(name);
        Format::named(name.rsplit_once('.')?.1)
    }
}

/// A name without `.gz`, and true if it had it.
fn without_gz(name: &str) -> (&str, bool) {
    match name.len().checked_sub(3).and_then(|at| name.split_at_checked(at)) {
        Some((rest, end)) if end.eq_ignore_ascii_case(".gz") => (rest, true),
        _ => (name, false),
    }
}

/// True for a file whose name does not say that it is a table or compressed: JSON lines or a JSON array.
pub fn is_plain_json(path: &Path) -> bool {
    let name = path.to_string_lossy();
    !without_gz(&name).1 && matches!(Format::of(&name), None | Some(Format::Json))
}

/// True for a file whose name says another format than plain CSV: JSON, TSV or Parquet, or anything compressed.
pub fn is_other_than_csv(path: &Path) -> bool {
    let name = path.to_string_lossy();
    Format::of(&name).is_some_and(|format| format != Format::Csv || without_gz(&name).1)
}

/// Reads and checks every row of files of questions.
///
/// # Errors
/// Files that are missing, in another encoding, damaged or without rows; bad rows, unless they are to be skipped. The message
/// names the file, and the line and character.
pub fn read(source: &RowSource) -> Result<Arc<dyn Rows>, OptionError> {
    let format = match &source.format {
        None => None,
        Some(name) => match Format::named(name) {
            None => return Err(OptionError::usage(format!("there is no format {name}: it is one of {FORMATS}"))),
            format => format,
        },
    };
    let (mut bad, mut spool) = (BadRows::default(), Spool::default());
    let mut parts: Vec<Part> = Vec::new();
    for path in paths::expand(&source.paths)? {
        let name = path.display().to_string();
        let first = parts.last().map_or(0, |part| part.first + part.index.len());
        let part = file(&path, &name, (format, &source.columns), first, &mut bad, &mut spool);
        parts.push(part.map_err(|refusal| refusal.of(&name))?);
    }
    if bad.count > 0 && !source.skip_bad_rows {
        return Err(bad.refused());
    }
    if parts.iter().all(|part| part.index.len() == 0) {
        // With what is wrong with the first ones, because all of them are bad.
        return Err(OptionError::usage(format!("no row can be read: {}", bad.sentence())));
    }
    let spool =
        spool.finish().map_err(|refusal| OptionError { help: refusal.help, ..OptionError::usage(refusal.message) })?;
    Ok(Arc::new(Questions::new(parts, spool, bad)))
}

fn file(
    path: &Path,
    name: &str,
    (format, columns): (Option<Format>, &[String]),
    first: usize,
    bad: &mut BadRows,
    spool: &mut Spool,
) -> Result<Part, Refusal> {
    let Some(format) = format.or_else(|| Format::of(name)) else {
        let message = format!("the ending of its name is not that of a known format: {FORMATS}, also with .gz");
        return Err(Refusal::new(message).help("rename the file, or say its format in a task file: format = \"csv\""));
    };
    if !columns.is_empty() && !matches!(format, Format::Csv | Format::Tsv) {
        let message = "its rows name their columns, and the task file names them too";
        return Err(
            Refusal::new(message).help("leave columns out: it is for CSV and TSV without a first line of names")
        );
    }
    let gzip = without_gz(name).1;
    let open = || input::open(path).map_err(|error| Refusal::new(format!("it cannot be read: {error}")));
    let handle = open()?;
    let before = handle.metadata().map_err(unreadable)?;
    let mut hashing = Hashing::new(handle);
    let unit = if format == Format::Parquet { "row" } else { "line" };
    let bad_before = bad.count;
    let (rows, read) = ((first + bad.count) as u64, Rc::clone(&hashing.count));
    let mut output = Output { name, unit, index: Index::default(), bad, spool, rows, of_file: 0, read, spooled: 0 };
    let mut kept = false;
    match format {
        // Pages of Parquet are not in the order in which a stream comes.
        Format::Parquet if gzip || !before.is_file() => {
            let mut copy = temporary()?;
            let mut content = content(&mut hashing, gzip)?;
            copy_all(&mut *content, &mut copy)?;
            parquet::read(copy, &mut output)?;
        }
        Format::Parquet => {
            output.read = Rc::new(Cell::new(before.len()));
            parquet::read(open()?, &mut output)?;
        }
        Format::Csv | Format::Tsv => {
            let separator = if format == Format::Tsv { b'\t' } else { b',' };
            delimited::read(text(content(&mut hashing, gzip)?)?.reader, separator, columns, &mut output)?;
        }
        Format::Json => {
            let text = text(content(&mut hashing, gzip)?)?;
            if text.first == Some(b'[') {
                output.unit = "row";
                json_array::read(text.reader, &mut output)?;
            } else {
                kept = !gzip && before.is_file();
                json_lines::read(text.reader, text.mark, kept, &mut output)?;
            }
        }
    }
    let Output { index, unit, bad, .. } = output;
    if index.len() == 0 && bad.count == bad_before {
        return Err(Refusal::new("the file has no rows"));
    }
    let (sha256, handle) = hashing.finish().map_err(unreadable)?;
    let state = State::of(&before);
    if before.is_file() && State::of(&handle.metadata().map_err(unreadable)?) != state {
        return Err(Refusal::new("the file was changed while it was read; start again"));
    }
    let absolute = std::fs::canonicalize(path).map_err(unreadable)?;
    Ok(Part {
        file: RowFile { path: absolute, sha256, rows: index.len() },
        name: name.to_owned(),
        unit,
        index,
        first,
        kept: kept.then_some(Kept { file: handle, state }),
    })
}

/// Copies a stream into a temporary file.
fn copy_all(content: &mut dyn io::Read, copy: &mut File) -> Result<(), Refusal> {
    let mut piece = vec![0; 1 << 18];
    let (mut copied, most) = (0, room(&std::env::temp_dir()));
    loop {
        let read = match content.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(error)),
        };
        copied += read as u64;
        if copied > most {
            return Err(no_room(&io::Error::other(format!("it has more than {} MB", most / 1_000_000))));
        }
        io::Write::write_all(copy, &piece[..read]).map_err(|error| no_room(&error))?;
    }
}

#[cfg(test)]
mod tests;
