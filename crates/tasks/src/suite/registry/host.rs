//! Access to the world outside, which a suite's caller gives it: suites do no I/O themselves.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::OptionError;
use crate::answer::gsm::{CodeOutcome, CodeRunner, Program};

/// Variable that names the folder of data: that of stored runs whose data were moved.
pub const DATA_VARIABLE: &str = "EARNEST_DATA";

/// Files, datasets and programs. By default there are none, which suffices for suites that make their questions themselves.
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
    /// The reason, e.g. that nothing is there.
    fn absolute(&self, _path: &Path) -> Result<PathBuf, String> {
        Err("there are no files here".to_owned())
    }

    /// Content of a file.
    ///
    /// # Errors
    /// The reason.
    fn read(&self, _path: &Path) -> Result<Vec<u8>, String> {
        Err("there are no files here".to_owned())
    }

    /// Files and folders in a folder, by name.
    ///
    /// # Errors
    /// The reason.
    fn list(&self, _folder: &Path) -> Result<Vec<PathBuf>, String> {
        Err("there are no files here".to_owned())
    }

    /// Rows of a Parquet file; columns that are neither text nor integers are left out.
    ///
    /// # Errors
    /// The reason.
    fn parquet_rows(&self, _path: &Path) -> Result<Vec<Map<String, Value>>, String> {
        Err("there are no files here".to_owned())
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
    /// The reason why the revision is not a commit.
    fn commit(&self, revision: &str) -> Result<String, String> {
        Err(format!("{revision}: there is no cache here"))
    }

    /// Runner of model-written programs, in the embedded interpreter or in that file. Nothing is started yet.
    fn programs(&self, _python: Option<&Path>) -> Arc<dyn Programs> {
        Arc::new(NoPrograms)
    }
}

/// A host without files and programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// A runner of programs that starts with the first program, or when it is told to.
pub trait Programs: CodeRunner {
    /// Starts the interpreter now, so that what is wrong with it is known before a model is asked.
    ///
    /// # Errors
    /// If it cannot be started.
    fn start(&self) -> Result<(), OptionError>;
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
