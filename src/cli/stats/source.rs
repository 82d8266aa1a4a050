//! Source of rows: a file or stored runs.
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use super::columns::ColumnError;
use super::run_columns::RunColumns;
use crate::cli::args::ResultsArgs;
use crate::cli::offered;
use earnest_digest::input;
use earnest_results::{Rows, Status, StoredRun};
use earnest_tasks::suite::quoted::{LONGEST_QUOTED, shortened};
use earnest_tasks::suite::registry::{OptionError, RowSource};
use serde_json::Value;

/// A column and a value, as `--where` and `--reference` take them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) column: String,
    pub(super) value: String,
}

impl std::str::FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((column, value)) if !column.trim().is_empty() => {
                Ok(Pair { column: column.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("'{text}' is not COLUMN=VALUE, e.g. task=gsm")),
        }
    }
}

/// Options that select rows.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// CSV file with a header line, or TSV, JSON lines, JSON or Parquet, also with .gz; `-` reads CSV from standard input
    #[arg(value_name = "FILE", required_unless_present = "runs", conflicts_with = "runs")]
    file: Option<PathBuf>,
    /// Stored runs instead of a file, by name or part of a name; their columns are `correct`, the suite's other scorers (such
    /// as `strict`), its covariates (such as `variant`, `gamma`, `template`), run, model, task, item, cluster
    #[arg(long = "run", value_name = "RUN,...", value_delimiter = ',')]
    pub(super) runs: Vec<String>,
    /// Column and value that rows must have, e.g. task=gsm; may be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(super) only: Vec<Pair>,
    #[command(flatten)]
    results: ResultsArgs,
}

/// Receives a row's fields in the requested order (empty: missing) and a function that names its place.
pub(super) type EachRow<'r> = dyn FnMut(&[&str], &dyn Fn() -> String) -> Result<(), ColumnError> + 'r;

impl SourceArgs {
    /// The source that the options name.
    pub(super) fn source(&self) -> Source<'_> {
        let input = match &self.file {
            Some(file) => Input::File(file),
            None => Input::Runs { names: &self.runs, folder: &self.results.folder },
        };
        Source { input, only: &self.only }
    }
}

/// Rows of a file or of stored runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) input: Input<'a>,
    /// Columns and values that rows must have.
    pub(super) only: &'a [Pair],
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Input<'a> {
    File(&'a Path),
    Runs { names: &'a [String], folder: &'a Path },
}

impl Source<'_> {
    /// True if the stored runs have different suites, suite options or seeds.
    pub(super) fn differ_in_questions(&self) -> Result<bool, ColumnError> {
        let Input::Runs { names, folder } = self.input else { return Ok(false) };
        let runs = open_runs(names, folder)?;
        let asked = |run: &StoredRun| {
            let settings = &run.manifest.settings;
            (settings.suite.clone(), settings.suite_options.clone())
        };
        Ok(runs.windows(2).any(|pair| asked(&pair[0]) != asked(&pair[1])))
    }

    /// The file or the runs, for messages.
    pub(super) fn name(&self) -> String {
        match self.input {
            Input::File(file) => file.display().to_string(),
            Input::Runs { names, .. } => names.join(", "),
        }
    }

    /// Passes every row's fields in these columns to `each`; adds remarks on the source to `notes`.
    pub(super) fn walk(
        &self,
        names: &[&str],
        notes: &mut Vec<String>,
        each: &mut EachRow<'_>,
    ) -> Result<(), ColumnError> {
        match self.input {
            Input::File(path) if path == Path::new("-") => walk_csv(io::stdin(), path, names, each),
            Input::File(path) if earnest_rows::is_other_than_csv(path) => walk_rows(path, names, each),
            Input::File(path) => {
                let file = input::open(path).map_err(|source| ColumnError::Open { path: path.to_owned(), source })?;
                walk_csv(file, path, names, each)
            }
            Input::Runs { names: runs, folder } => {
                let mut columns = RunColumns::new(names);
                walk_runs(&open_runs(runs, folder)?, &mut columns, notes, each)?;
                columns.check(&self.name())
            }
        }
    }
}

fn open_runs(names: &[String], folder: &Path) -> Result<Vec<StoredRun>, ColumnError> {
    let open = |name: &String| StoredRun::open(folder, name).map_err(|error| ColumnError::Run(Box::new(error.into())));
    names.iter().map(open).collect()
}

fn walk_runs(
    runs: &[StoredRun],
    columns: &mut RunColumns<'_>,
    notes: &mut Vec<String>,
    each: &mut EachRow<'_>,
) -> Result<(), ColumnError> {
    for (index, run) in runs.iter().enumerate() {
        let name = &run.manifest.run;
        if runs[..index].iter().any(|other| other.manifest.run == *name) {
            return Err(ColumnError::Twice { run: name.clone() });
        }
        if run.manifest.status != Status::Finished {
            notes.push(offered::here(&format!("{name} is not finished; `earnest resume {name}` continues it")));
        }
        // The walk's errors and those of `each` have different types.
        let mut stopped = None;
        let walked = run.walk(&mut |sample| {
            if stopped.is_none() {
                let fields = columns.fields(&sample, &run.manifest);
                let outcome = fields.and_then(|fields| each(&fields, &|| format!("{name}, item {}", sample.item)));
                stopped = outcome.err();
            }
            Ok(())
        });
        if let Some(error) = stopped {
            return Err(error);
        }
        walked.map_err(|error| ColumnError::Run(Box::new(error.into())))?;
    }
    Ok(())
}

/// Rows of a file of another format than CSV. A row without a column, or with null, has no value there.
fn walk_rows(path: &Path, names: &[&str], each: &mut EachRow<'_>) -> Result<(), ColumnError> {
    let source = RowSource { paths: vec![path.to_owned()], ..RowSource::default() };
    let rows = earnest_rows::read(&source).map_err(ColumnError::Rows)?;
    let mut present = BTreeSet::new();
    for number in 0..rows.len() {
        let row = rows.row(number).map_err(|error| ColumnError::Rows(OptionError::usage(error)))?;
        let field = |name: &&str| match row.values.get(*name) {
            None | Some(Value::Null) => Ok(Cow::Borrowed("")),
            Some(value) => row.text(name).ok_or_else(|| ColumnError::Field {
                place: row.place.clone(),
                column: (*name).to_owned(),
                field: shortened(&value.to_string(), LONGEST_QUOTED),
                expected: "a text, a number or a truth value".to_owned(),
            }),
        };
        let fields = names.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<&str> = fields.iter().map(|field| field.trim()).collect();
        each(&fields, &|| row.place.clone())?;
        for column in row.values.keys().filter(|column| !present.contains(*column)).cloned().collect::<Vec<_>>() {
            present.insert(column);
        }
    }
    match names.iter().find(|name| !present.contains(**name)) {
        None => Ok(()),
        Some(name) => {
            let present: Vec<&str> = present.iter().map(String::as_str).collect();
            let from = path.display().to_string();
            Err(ColumnError::Missing { from, name: (*name).to_owned(), present: listed(&present) })
        }
    }
}

/// The first columns of many, and the number of the others.
fn listed(present: &[&str]) -> String {
    let mut listed = present.iter().take(SHOWN_COLUMNS).copied().collect::<Vec<_>>().join(", ");
    if present.len() > SHOWN_COLUMNS {
        listed.push_str(&format!(" and {} more", present.len() - SHOWN_COLUMNS));
    }
    listed
}

/// Line number of the record that begins at or after this byte of a file. The CSV reader's own count is taken before it skips
/// blank lines and the line feed of a CR LF. None if the file cannot be read again, like standard input.
fn line_at(path: &Path, byte: u64) -> Option<u64> {
    let mut file = BufReader::new(input::open(path).ok().filter(|_| path != Path::new("-"))?);
    let mut line = 1;
    let mut passed = 0;
    loop {
        let buffer = file.fill_buf().ok()?;
        if buffer.is_empty() {
            return Some(line);
        }
        let mut used = 0;
        for &character in buffer {
            if passed >= byte && character != b'\n' && character != b'\r' {
                return Some(line);
            }
            line += u64::from(character == b'\n');
            passed += 1;
            used += 1;
        }
        file.consume(used);
    }
}

/// Columns that an error names.
const SHOWN_COLUMNS: usize = 50;

/// Longest row of a CSV file, in bytes.
const LONGEST_ROW: u64 = 16_000_000;

/// A CSV file whose rows end: the CSV reader takes the rest of a file for a row where a quote is not closed.
struct EndingRows<R> {
    source: R,
    in_quotes: bool,
    /// True after a separator: only there a quote opens a field.
    at_start: bool,
    /// True after a quote that closed a field: another one is a quote in it.
    closed: bool,
    /// Line of the next byte, and bytes of the row so far.
    line: u64,
    length: u64,
}

impl<R: Read> Read for EndingRows<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        for byte in &buffer[..read] {
            self.length += 1;
            let (was_start, was_closed) = (self.at_start, self.closed);
            self.closed = *byte == b'"' && self.in_quotes;
            self.at_start = matches!(byte, b',' | b'\n') && !self.in_quotes;
            match byte {
                b'"' if self.in_quotes => self.in_quotes = false,
                b'"' => self.in_quotes = was_start || was_closed,
                b'\n' => {
                    self.line += 1;
                    self.length = if self.in_quotes { self.length } else { 0 };
                }
                _ => {}
            }
            if self.length > LONGEST_ROW {
                let reason = format!(
                    "the row that goes on in line {} is longer than {} MB, which is the limit (a quote that is not closed?)",
                    self.line,
                    LONGEST_ROW / 1_000_000
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
        }
        Ok(read)
    }
}

/// Rows of a CSV file, read one at a time.
pub(super) fn walk_csv(
    source: impl Read,
    path: &Path,
    names: &[&str],
    each: &mut EachRow<'_>,
) -> Result<(), ColumnError> {
    let wrap = |source| ColumnError::Csv { path: path.to_owned(), source };
    let source = EndingRows { source, in_quotes: false, at_start: true, closed: false, line: 1, length: 0 };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).buffer_capacity(1 << 18).from_reader(source);
    let headers = reader.headers().map_err(wrap)?.clone();
    if headers.is_empty() {
        return Err(ColumnError::Empty { path: path.to_owned() });
    }
    // Spreadsheets put a byte-order mark before the first name.
    let present: Vec<&str> = headers.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
    let mut positions = Vec::new();
    for name in names {
        let mut found = present.iter().enumerate().filter(|(_, present)| *present == name);
        let Some((position, _)) = found.next() else {
            let mut listed = listed(&present);
            if let ([only], true) = (present.as_slice(), listed.contains([';', '\t'])) {
                let separator = if only.contains(';') { "semicolons" } else { "tabs" };
                listed.push_str(&format!(" (one column: the file is separated by {separator}, expected commas)"));
            }
            let from = path.display().to_string();
            return Err(ColumnError::Missing { from, name: (*name).to_owned(), present: listed });
        };
        if found.next().is_some() {
            return Err(ColumnError::Ambiguous { from: path.display().to_string(), name: (*name).to_owned() });
        }
        positions.push(position);
    }
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(wrap)? {
        let fields: Vec<&str> = positions.iter().map(|&position| record.get(position).unwrap_or("")).collect();
        let index = || {
            let start = record.position();
            let line = start.and_then(|start| line_at(path, start.byte()));
            format!("{}, line {}", path.display(), line.unwrap_or_else(|| start.map_or(0, csv::Position::line)))
        };
        each(&fields, &index)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: impl Read) -> Result<usize, String> {
        let mut all = 0;
        let mut each = |_: &[&str], _: &dyn Fn() -> String| {
            all += 1;
            Ok(())
        };
        let walked = walk_csv(text, Path::new("rows.csv"), &["a"], &mut each);
        walked.map(|()| all).map_err(|error| match error {
            ColumnError::Csv { source, .. } => source.to_string(),
            other => other.to_string(),
        })
    }

    #[test]
    fn files_of_other_formats_have_the_columns_of_csv() {
        let folder = tempfile::tempdir().unwrap();
        let walked = |name: &str, text: &str, columns: &[&str]| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let source = Source { input: Input::File(&path), only: &[] };
            let mut rows: Vec<Vec<String>> = Vec::new();
            let mut each = |fields: &[&str], _: &dyn Fn() -> String| {
                rows.push(fields.iter().map(|field| (*field).to_owned()).collect());
                Ok(())
            };
            let walked = source.walk(columns, &mut Vec::new(), &mut each);
            walked.map(|()| rows).map_err(|error| error.to_string())
        };
        let expected = walked("a.csv", "x,y\n1.50, b \n,c\n", &["y", "x"]).unwrap();
        assert_eq!(walked("a.tsv", "x\ty\n1.50\t b \n\tc\n", &["y", "x"]).unwrap(), expected);
        let lines = "{\"x\": 1.50, \"y\": \"b\"}\n{\"y\": \"c\"}\n";
        assert_eq!(walked("a.jsonl", lines, &["y", "x"]).unwrap(), expected);
        let array = "[{\"x\": 1.50, \"y\": \"b\"}, {\"x\": null, \"y\": \"c\"}]";
        assert_eq!(walked("a.json", array, &["y", "x"]).unwrap(), expected);
        let missing = walked("a.jsonl", lines, &["z"]).unwrap_err();
        assert!(missing.ends_with("a.jsonl has no column `z`; its columns are: x, y"), "{missing}");
        let list = walked("b.jsonl", "{\"x\": [1]}\n", &["x"]).unwrap_err();
        assert!(
            list.ends_with("b.jsonl, line 1: column `x` is `[1]`, expected a text, a number or a truth value"),
            "{list}"
        );
    }

    #[test]
    fn a_row_without_an_end_is_refused_and_a_quote_inside_a_field_is_no_beginning() {
        // Quotes in the middle of fields and doubled ones, in more bytes than a row may have.
        let line = "5\" pipe,x\n\"a \"\"b\"\" c\",\"d\ne\"\n";
        let times = LONGEST_ROW as usize / line.len() + 1000;
        let text = format!("a,b\n{}", line.repeat(times));
        assert_eq!(rows(text.as_bytes()), Ok(2 * times));
        for open in ["a,b\n1,2\n\"3,", "a,b\n1,", ""] {
            let error = rows(open.as_bytes().chain(io::repeat(b'x')).take(1 << 26)).unwrap_err();
            assert!(error.contains("longer than 16 MB") && error.contains("in line"), "{error}");
        }
    }
}
