//! A suite's access to files, datasets and programs, supplied by its caller: suites do no I/O themselves.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use earnest_isolation::{Job, Limited};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::OptionError;
use earnest_answer::{CodeOutcome, CodeRunner, Program};

/// Environment variable that names the data folder of stored runs whose data were moved.
pub const DATA_VARIABLE: &str = "EARNEST_DATA";

/// Error of a [`Host`]: the reason alone; the caller adds what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The host has no files.
    #[error("there are no files here")]
    NoFiles,
    /// The host has no cache of datasets.
    #[error("{revision}: there is no cache here")]
    NoCache { revision: String },
    /// Reason given by the file system, a reader or a parser.
    #[error("{0}")]
    Failed(String),
}

impl HostError {
    /// A failure for this reason.
    pub fn failed(reason: impl Display) -> Self {
        HostError::Failed(reason.to_string())
    }
}

/// Files, datasets and programs. By default there are none, which suffices for suites that generate their questions.
pub trait Host {
    /// True for a file that exists.
    fn is_file(&self, _path: &Path) -> bool {
        false
    }

    /// True for a folder that exists.
    fn is_folder(&self, _path: &Path) -> bool {
        false
    }

    /// Absolute form of a path, links followed.
    ///
    /// # Errors
    /// [`HostError`], e.g. if nothing is there.
    fn absolute(&self, _path: &Path) -> Result<PathBuf, HostError> {
        Err(HostError::NoFiles)
    }

    /// Content of a file.
    ///
    /// # Errors
    /// [`HostError`].
    fn read(&self, _path: &Path) -> Result<Vec<u8>, HostError> {
        Err(HostError::NoFiles)
    }

    /// Files and folders in a folder, by name.
    ///
    /// # Errors
    /// [`HostError`].
    fn list(&self, _folder: &Path) -> Result<Vec<PathBuf>, HostError> {
        Err(HostError::NoFiles)
    }

    /// Rows of a Parquet file; columns that are neither text nor integers are left out.
    ///
    /// # Errors
    /// [`HostError`].
    fn parquet_rows(&self, _path: &Path) -> Result<Vec<Map<String, Value>>, HostError> {
        Err(HostError::NoFiles)
    }

    /// Rows of files of questions, checked once from the first to the last.
    ///
    /// # Errors
    /// Those of reading, which name file, line and column.
    fn rows(&self, _source: &RowSource) -> Result<Arc<dyn Rows>, OptionError> {
        Err(OptionError::usage(HostError::NoFiles))
    }

    /// File or folder that [`DATA_VARIABLE`] names.
    fn moved(&self) -> Option<PathBuf> {
        None
    }

    /// Commits of a Hugging Face dataset in the cache, with their folders.
    fn cached_dataset(&self, _dataset: &str) -> Vec<(String, PathBuf)> {
        Vec::new()
    }

    /// Commit that a revision names, in the form of [`Host::cached_dataset`].
    ///
    /// # Errors
    /// [`HostError`] if the revision is not a commit.
    fn commit(&self, revision: &str) -> Result<String, HostError> {
        Err(HostError::NoCache { revision: revision.to_owned() })
    }

    /// Work on untrusted input within limits: by default those that hold in this process; a program that can be a worker gives it
    /// one with so many bytes of memory.
    fn limited(&self, job: &'static Job, settings: Vec<u8>, _memory: u64) -> Limited {
        Limited::here(job, settings)
    }

    /// Runner of model-written programs, in the embedded interpreter or in that file. Nothing is started yet.
    fn programs(&self, _python: Option<&Path>) -> Arc<dyn Programs> {
        Arc::new(NoPrograms)
    }
}

/// Files of questions to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSource {
    /// Files, patterns such as `data/*.jsonl`, or folders' files by pattern, in this order.
    pub paths: Vec<PathBuf>,
    /// `jsonl`, `json`, `csv`, `tsv` or `parquet`; none for what the name's ending says. A name that ends in `.gz` is decompressed in any case.
    pub format: Option<String>,
    /// Columns of a CSV or TSV file without a line of names; empty where the first line names them.
    pub columns: Vec<String>,
    /// Leave unreadable rows out and count them, instead of refusing the file.
    pub skip_bad_rows: bool,
}

/// A file that rows were read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFile {
    /// Absolute path.
    pub path: PathBuf,
    /// SHA-256 of the file as it is on disk.
    pub sha256: String,
    /// Number of its rows.
    pub rows: usize,
}

/// A row of a file of questions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Place for messages, e.g. `questions.jsonl, line 3`.
    pub place: String,
    /// Values by column. A number that 64 bits cannot hold is a text, as it is written.
    pub values: Map<String, Value>,
    /// Numbers as they are written, by column, where a value would be printed otherwise: `1.50`, `1e3`.
    pub written: BTreeMap<String, String>,
}

impl Row {
    /// A column's text, number or truth value as it is written in the file; none for other values.
    pub fn text(&self, column: &str) -> Option<Cow<'_, str>> {
        match self.values.get(column)? {
            Value::String(text) => Some(text.into()),
            Value::Number(number) => Some(match self.written.get(column) {
                Some(written) => written.into(),
                None => number.to_string().into(),
            }),
            Value::Bool(truth) => Some(truth.to_string().into()),
            _ => None,
        }
    }
}

/// Rows of files of questions. Memory does not grow with their text: a row is read when it is asked for.
pub trait Rows: Send + Sync {
    /// Number of rows, of all files together, without blank lines and skipped rows.
    fn len(&self) -> usize;

    /// True without any.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row with this number, from 0.
    ///
    /// # Errors
    /// [`HostError`] if it cannot be read any more.
    fn row(&self, number: usize) -> Result<Row, HostError>;

    /// The files in their order.
    fn files(&self) -> &[RowFile];

    /// Messages about rows that were skipped, at most a few, and their number.
    fn skipped(&self) -> (usize, &[String]);
}

/// A host without files and programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// A runner of programs that starts with the first program, or on request.
pub trait Programs: CodeRunner {
    /// Starts the interpreter now, so that a broken one is reported before the first request.
    ///
    /// # Errors
    /// If it cannot be started, or its programs cannot be confined.
    fn start(&self) -> Result<(), OptionError>;

    /// Interpreter and confinement; none before it is started.
    fn record(&self) -> Option<ProgramsRecord> {
        None
    }
}

/// Interpreter of model-written programs and its confinement, as recorded in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramsRecord {
    /// Name and version of the interpreter.
    pub interpreter: String,
    /// Measures in force: `landlock ABI 7`, `seccomp`, ...
    pub measures: Vec<String>,
    /// Time limit of a program in seconds.
    pub wall_s: f64,
    /// Memory limit of a program in bytes, beyond the interpreter's own.
    pub memory: u64,
    /// The user's command around the interpreter, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Required measures that were missing, with the reasons; programs ran all the same, because the user permitted it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl ProgramsRecord {
    /// True if a required measure was missing.
    pub fn is_unconfined(&self) -> bool {
        !self.missing.is_empty()
    }
}

impl fmt::Display for ProgramsRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProgramsRecord { interpreter, measures, wall_s, memory, command, missing } = self;
        write!(f, "{interpreter}; ")?;
        if !missing.is_empty() {
            write!(f, "UNCONFINED, missing {}; ", missing.join(", "))?;
        }
        if let Some(command) = command {
            write!(f, "in `{command}`; ")?;
        }
        for measure in measures {
            write!(f, "{measure}, ")?;
        }
        write!(f, "{wall_s} s, {} MiB", memory >> 20)
    }
}

struct NoPrograms;

impl CodeRunner for NoPrograms {
    fn run(&self, _: &Program) -> CodeOutcome {
        CodeOutcome::Unavailable("programs cannot be run here".to_owned())
    }
}

impl Programs for NoPrograms {
    fn start(&self) -> Result<(), OptionError> {
        Err(OptionError::programs("programs cannot be run here"))
    }
}
