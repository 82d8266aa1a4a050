//! The error of an input file, and a problem with its next step, for all crates that read files.
use std::fmt::Display;
use std::io;
use std::path::PathBuf;

/// A problem in one sentence, with an optional next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without a next step.
    pub fn new(message: impl Into<String>) -> Self {
        Problem { message: message.into(), hint: None }
    }

    /// The problem with a next step.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Problem { hint: Some(hint.into()), ..self }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// A file that cannot be read or used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened or read.
    #[error("cannot read {name}: {source}")]
    Input { name: String, source: io::Error },
    /// A line of it cannot be used.
    #[error("{} line {line}: {problem}", path.display())]
    Line { path: PathBuf, line: usize, problem: Problem },
    /// It is damaged, beyond a limit, or of a kind that is not read; or a place in it is: a sample, an entry, a column.
    #[error("{}{}: {problem}", path.display(), place.as_ref().map_or_else(String::new, |place| format!(", {place}")))]
    Unread { path: PathBuf, place: Option<String>, problem: Problem },
}

impl FileError {
    /// A file that cannot be opened or read.
    pub fn input(name: impl Display, source: io::Error) -> Self {
        FileError::Input { name: name.to_string(), source }
    }

    /// A line that cannot be used.
    pub fn line(path: impl Into<PathBuf>, line: usize, reason: impl Display) -> Self {
        FileError::Line { path: path.into(), line, problem: Problem::new(reason.to_string()) }
    }

    /// A file that cannot be used.
    pub fn unread(path: impl Into<PathBuf>, reason: impl Display) -> Self {
        FileError::Unread { path: path.into(), place: None, problem: Problem::new(reason.to_string()) }
    }

    /// A place of a file that cannot be used.
    pub fn unread_at(path: impl Into<PathBuf>, place: impl Display, reason: impl Display) -> Self {
        let problem = Problem::new(reason.to_string());
        FileError::Unread { path: path.into(), place: Some(place.to_string()), problem }
    }

    /// Adds a next step; what the system refuses to read has none.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let FileError::Line { problem, .. } | FileError::Unread { problem, .. } = &mut self {
            problem.hint = Some(hint.into());
        }
        self
    }

    /// The next step, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            FileError::Input { .. } => None,
            FileError::Line { problem, .. } | FileError::Unread { problem, .. } => problem.hint.clone(),
        }
    }
}
