//! The file of completions: JSON lines.
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use crate::EvalError;

/// A completion of one sample, which is named by its item, or by its task and operands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompletionLine {
    #[serde(alias = "id")]
    pub item: Option<String>,
    pub task: Option<String>,
    pub a: Option<String>,
    pub b: Option<String>,
    pub completion: String,
    /// Sample number of the item, from 0.
    #[serde(default)]
    pub sample: u32,
    /// The token budget ended the completion.
    #[serde(default)]
    pub truncated: bool,
}

/// Reads all lines with their numbers, from 1; empty lines are skipped.
pub(super) fn read(path: &Path) -> Result<Vec<(usize, CompletionLine)>, EvalError> {
    let failed = |error| EvalError::input(path.display(), error);
    let mut lines = Vec::new();
    for (number, line) in BufReader::new(File::open(path).map_err(failed)?).lines().enumerate() {
        let line = line.map_err(failed)?;
        // Some editors begin a file with a byte order mark.
        let line = if number == 0 { line.trim_start_matches('\u{feff}') } else { &line };
        if line.trim().is_empty() {
            continue;
        }
        let parsed = serde_json::from_str(line).map_err(|error| {
            EvalError::line(path, number + 1, error).hint("`earnest import --help` shows what a line looks like")
        })?;
        lines.push((number + 1, parsed));
    }
    if lines.is_empty() {
        return Err(EvalError::setting(format!("{} has no completions", path.display())));
    }
    Ok(lines)
}
