//! The error of a file that is opened by itself.
use std::io;
use std::path::{Path, PathBuf};

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened.
    #[error("cannot read {}: {source}", path.display())]
    Input { path: PathBuf, source: io::Error },
    /// It is damaged, beyond a limit, or of a kind that is not read.
    #[error("{}: {message}", path.display())]
    Unread { path: PathBuf, message: String, help: String },
}

impl FileError {
    pub(crate) fn unread(path: &Path, message: impl Into<String>, help: &str) -> Self {
        FileError::Unread { path: path.to_owned(), message: message.into(), help: help.to_owned() }
    }
}
