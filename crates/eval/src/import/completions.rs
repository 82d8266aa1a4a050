//! The file of completions: JSON lines.
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use earnest_digest::input;
use earnest_tasks::suite::MAX_SAMPLES;
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

/// Largest line in bytes: a completion of some million tokens.
const LONGEST: u64 = 16_000_000;

/// Most bytes of all completions, which are held in memory.
const MOST: usize = 16 << 30;

/// Reads all lines with their numbers, from 1; empty lines are skipped.
pub(super) fn read(path: &Path) -> Result<Vec<(usize, CompletionLine)>, EvalError> {
    let failed = |error| EvalError::input(path.display(), error);
    let mut reader = BufReader::new(input::open(path).map_err(failed)?);
    let (mut lines, mut held, mut bytes) = (Vec::new(), 0, Vec::new());
    for number in 0.. {
        bytes.clear();
        // One more for its end.
        reader.by_ref().take(LONGEST + 1).read_until(b'\n', &mut bytes).map_err(failed)?;
        if bytes.is_empty() {
            break;
        }
        let refused = |reason: String| EvalError::line(path, number + 1, reason);
        if bytes.len() as u64 > LONGEST {
            return Err(refused(format!("it has more than {} MB, which is the limit", LONGEST / 1_000_000)));
        }
        held += bytes.len();
        if lines.len() == MAX_SAMPLES || number == 10 * MAX_SAMPLES || held > MOST {
            let limits = format!("{MAX_SAMPLES} completions and {} GiB are the limit", MOST >> 30);
            return Err(refused(format!("there is more than is read: {limits}")));
        }
        let line = std::str::from_utf8(&bytes).map_err(|_| refused("it is not UTF-8".to_owned()))?;
        // Some editors begin a file with a byte order mark.
        let line = if number == 0 { line.trim_start_matches('\u{feff}') } else { line };
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
