//! Data that a suite reads from the user's folder: named on the command line, pinned by content in the manifest, and found
//! again when a stored run is read.
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::digest;

/// The variable that says where data lie: of stored runs now, and of new runs of gsm-symbolic without `--data`.
pub const MOVED: &str = "EARNEST_DATA";

/// What [`MOVED`] names, if it is set.
pub fn moved() -> Option<PathBuf> {
    std::env::var_os(MOVED).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where a suite's data are. Suites share it; those without data of their own refuse it.
#[derive(Debug, Clone, Default, Args)]
pub struct DataArgs {
    /// The questions of a suite that has them from you. dnc: a folder; gsm-symbolic: a folder (Apple's repository, or a
    /// snapshot of the dataset apple/GSM-Symbolic) or a file [default: what EARNEST_DATA names, else the dataset in the
    /// Hugging Face cache]
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
}

/// What to do about a folder that is none.
const FOLDER: &str = "name the folder that holds the data; docs/dnc.md says how it looks";

/// A file's bytes and their SHA-256.
pub fn read_pinned(path: &Path) -> Result<(Vec<u8>, String), CliError> {
    let bytes = std::fs::read(path)
        .map_err(|error| CliError::new(Exit::Usage, format!("cannot read {}: {error}", path.display())))?;
    let hash = digest::hex(&digest::sha256(&bytes));
    Ok((bytes, hash))
}

/// The absolute form of a folder, for a manifest.
pub fn absolute(folder: &Path) -> Result<String, CliError> {
    let found = std::fs::canonicalize(folder)
        .map_err(|error| CliError::usage(format!("--data {}: {error}", folder.display())).help(FOLDER))?;
    if !found.is_dir() {
        return Err(CliError::usage(format!("--data {} is no folder", folder.display())).help(FOLDER));
    }
    found.to_str().map(str::to_owned).ok_or_else(|| {
        CliError::usage(format!("--data {}: its name is not UTF-8, and manifests are text", found.display()))
    })
}

/// A stored run's file, if it is still what it was. `EARNEST_DATA` names the folder it was moved to.
pub fn reread_pinned(folder: &str, name: &str, sha256: &str) -> Result<Vec<u8>, CliError> {
    let moved = moved();
    // A file given by itself has an absolute name; moved, it is looked for under its last part.
    let path = match (&moved, Path::new(name).is_absolute()) {
        (Some(moved), true) => moved.join(Path::new(name).file_name().unwrap_or_default()),
        (Some(moved), false) => moved.join(name),
        (None, _) => Path::new(folder).join(name),
    };
    let help = format!(
        "set {MOVED} to the folder that holds the files of this run; `earnest run ... --data DIR` begins a new run"
    );
    let bytes = std::fs::read(&path).map_err(|error| {
        let message = format!("the run's data file {} cannot be read: {error}", path.display());
        CliError::new(Exit::Results, message).help(help.clone())
    })?;
    let now = digest::hex(&digest::sha256(&bytes));
    if now != sha256 {
        let message =
            format!("the run's data file {} has changed: its SHA-256 was {sha256} and is {now}", path.display());
        return Err(CliError::new(Exit::Results, message).help(help));
    }
    Ok(bytes)
}
