//! Where rows come from: a CSV file or stored runs.
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use super::columns::ColumnError;
use super::run_columns::RunColumns;
use crate::cli::args::ResultsArgs;
use crate::cli::stored::StoredRun;
use earnest_eval::report::Rows;
use earnest_eval::run::Status;

/// What a row may be asked for in `--where`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    /// Name of the column.
    pub(super) column: String,
    /// The wanted value.
    pub(super) value: String,
}

impl std::str::FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((column, value)) if !column.trim().is_empty() => {
                Ok(Pair { column: column.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(format!("'{text}' is no COLUMN=VALUE, such as task=gsm")),
        }
    }
}

/// Arguments that say which rows.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// CSV file with a line of column names; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present = "runs", conflicts_with = "runs")]
    file: Option<PathBuf>,
    /// Stored runs instead of a file, by name or by a part of one; their columns are `correct`, the suite's other rules (such
    /// as `strict`), its covariates (such as `variant`, `gamma`, `template`), run, model, task, item, cluster
    #[arg(long = "run", value_name = "RUN,...", value_delimiter = ',')]
    pub(super) runs: Vec<String>,
    /// Only rows with this value in this column, e.g. task=gsm; may be repeated
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(super) only: Vec<Pair>,
    #[command(flatten)]
    results: ResultsArgs,
}

/// Takes a row's fields in the order asked for (empty: missing) and a way to name its place.
pub(super) type EachRow<'r> = dyn FnMut(&[&str], &dyn Fn() -> String) -> Result<(), ColumnError> + 'r;

impl SourceArgs {
    /// The rows of one stored run.
    pub(super) fn of_run(run: &str, only: &[Pair], results: &ResultsArgs) -> SourceArgs {
        SourceArgs { file: None, runs: vec![run.to_owned()], only: only.to_vec(), results: results.clone() }
    }

    /// The rows of a file.
    pub(super) fn of_file(file: &Path) -> SourceArgs {
        let results = ResultsArgs { folder: PathBuf::new() };
        SourceArgs { file: Some(file.to_owned()), runs: Vec::new(), only: Vec::new(), results }
    }

    /// Whether the stored runs were asked questions of different options or seeds.
    pub(super) fn differ_in_questions(&self) -> Result<bool, ColumnError> {
        let open = |name: &String| {
            StoredRun::open(&self.results.folder, name).map_err(|error| ColumnError::Run(Box::new(error.into())))
        };
        let runs = self.runs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let asked = |run: &StoredRun| {
            let settings = &run.manifest.settings;
            (settings.suite.clone(), settings.suite_options.clone())
        };
        Ok(runs.windows(2).any(|pair| asked(&pair[0]) != asked(&pair[1])))
    }

    /// What the rows are from, for messages.
    pub(super) fn name(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => self.runs.join(", "),
        }
    }

    /// Shows every row's fields in these columns, one row at a time; what to know of the source is added to `notes`.
    pub(super) fn walk(
        &self,
        names: &[&str],
        notes: &mut Vec<String>,
        each: &mut EachRow<'_>,
    ) -> Result<(), ColumnError> {
        match &self.file {
            Some(path) if path == Path::new("-") => walk_csv(io::stdin(), path, names, each),
            Some(path) => {
                let file = File::open(path).map_err(|source| ColumnError::Open { path: path.clone(), source })?;
                walk_csv(file, path, names, each)
            }
            None => self.walk_runs(names, notes, each),
        }
    }

    fn walk_runs(&self, names: &[&str], notes: &mut Vec<String>, each: &mut EachRow<'_>) -> Result<(), ColumnError> {
        let folder = &self.results.folder;
        let open =
            |name: &String| StoredRun::open(folder, name).map_err(|error| ColumnError::Run(Box::new(error.into())));
        let runs = self.runs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut columns = RunColumns::new(names);
        for (index, run) in runs.iter().enumerate() {
            let name = &run.manifest.run;
            if runs[..index].iter().any(|other| other.manifest.run == *name) {
                return Err(ColumnError::Twice { run: name.clone() });
            }
            if run.manifest.status != Status::Finished {
                notes.push(format!("{name} is not finished; `earnest resume {name}` continues it"));
            }
            // The walk's own errors and ours are of different kinds.
            let mut stopped = None;
            let walked = run.walk(&mut |sample| {
                if stopped.is_none() {
                    let fields = columns.fields(sample, &run.manifest);
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
        columns.check(&self.name())
    }
}

/// The line of the record that begins at or after this byte of a file. A reader's own count is that before the blank lines and
/// the line feed of a CR LF which it passes over first. None where the file cannot be read again, as standard input cannot.
fn line_at(path: &Path, byte: u64) -> Option<u64> {
    let mut file = BufReader::new(File::open(path).ok().filter(|_| path != Path::new("-"))?);
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

/// Rows of a CSV file, read one at a time.
pub(super) fn walk_csv(
    source: impl Read,
    path: &Path,
    names: &[&str],
    each: &mut EachRow<'_>,
) -> Result<(), ColumnError> {
    let wrap = |source| ColumnError::Csv { path: path.to_owned(), source };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).buffer_capacity(1 << 18).from_reader(source);
    let headers = reader.headers().map_err(wrap)?.clone();
    if headers.is_empty() {
        return Err(ColumnError::Empty { path: path.to_owned() });
    }
    // A byte-order mark is what spreadsheets put before the first name.
    let present: Vec<&str> = headers.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
    let mut positions = Vec::new();
    for name in names {
        let mut found = present.iter().enumerate().filter(|(_, present)| *present == name);
        let Some((position, _)) = found.next() else {
            let mut listed = present.join(", ");
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
        let place = || {
            let start = record.position();
            let line = start.and_then(|start| line_at(path, start.byte()));
            format!("{}, line {}", path.display(), line.unwrap_or_else(|| start.map_or(0, csv::Position::line)))
        };
        each(&fields, &place)?;
    }
    Ok(())
}
