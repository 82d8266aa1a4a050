//! Mistakes in a study, all of them at once.
use std::path::{Path, PathBuf};

use crate::EvalError;
use earnest_rows::Problem;

/// A place in a study: the key, and the line if the study was read from a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Key with its tables, e.g. `models.smol.quant`; empty for the whole file.
    pub key: String,
    /// Line from 1.
    pub line: Option<usize>,
}

impl Place {
    /// The place of a study that was not read from a file.
    pub fn key(key: impl Into<String>) -> Self {
        Place { key: key.into(), line: None }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.key.as_str()) {
            (Some(line), "") => write!(f, "line {line}"),
            (Some(line), key) => write!(f, "line {line}, {key}"),
            (None, key) => f.write_str(key),
        }
    }
}

/// A mistake and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub place: Place,
    pub problem: Problem,
    /// True if the study may be right, but a checkpoint cannot be used.
    pub of_model: bool,
}

impl Mistake {
    /// A mistake without a next step.
    pub fn new(place: &Place, message: impl Into<String>) -> Self {
        let problem = Problem { message: message.into(), hint: None };
        Mistake { place: place.clone(), problem, of_model: false }
    }

    /// The error of a part of the evaluation, at this place.
    pub fn of(place: &Place, error: &EvalError) -> Self {
        let problem = Problem { message: error.to_string(), hint: error.help() };
        Mistake { place: place.clone(), problem, of_model: matches!(error, EvalError::Model(_)) }
    }

    /// The mistake with a next step.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Mistake { problem: Problem { hint: Some(hint.into()), ..self.problem }, ..self }
    }
}

/// Mistakes that are shown at once.
const SHOWN: usize = 20;

/// Mistakes in a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyError {
    /// The file; none for a study that was not read from one.
    pub file: Option<PathBuf>,
    /// At least one, in the order of the file.
    pub mistakes: Vec<Mistake>,
}

impl StudyError {
    /// Creates the error of these mistakes, sorted by line.
    pub(super) fn new(file: Option<&Path>, mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| mistake.place.line);
        StudyError { file: file.map(Path::to_owned), mistakes }
    }

    /// The error of these mistakes, if there are any.
    pub(super) fn check(file: Option<&Path>, mistakes: Vec<Mistake>) -> Result<(), Self> {
        if mistakes.is_empty() { Ok(()) } else { Err(Self::new(file, mistakes)) }
    }

    /// The next step of a single mistake; those of several stand in the message.
    pub fn help(&self) -> Option<String> {
        match self.mistakes.as_slice() {
            [only] => only.problem.hint.clone(),
            _ => None,
        }
    }
}

impl std::fmt::Display for StudyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.as_ref().map(|file| file.display().to_string());
        if let [only] = self.mistakes.as_slice() {
            let file = file.map_or_else(String::new, |file| format!("{file} "));
            return write!(f, "{file}{}: {}", only.place, only.problem);
        }
        let file = file.unwrap_or_else(|| "the study".to_owned());
        write!(f, "{file} has {} mistakes", self.mistakes.len())?;
        for mistake in self.mistakes.iter().take(SHOWN) {
            write!(f, "\n  {}: {}", mistake.place, mistake.problem)?;
            if let Some(hint) = &mistake.problem.hint {
                write!(f, " ({hint})")?;
            }
        }
        match self.mistakes.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl std::error::Error for StudyError {}
