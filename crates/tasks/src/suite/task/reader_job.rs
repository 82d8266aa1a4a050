//! The job of the process that takes rows apart, and its messages.
//!
//! The settings are [`Sources`] as JSON. An empty request asks for an error of compiling; another one has a line with what is
//! [`Wanted`], and two lines of JSON a row: the values, and numbers as they are written. The answer has a line of JSON a row, for the first
//! rows at least: a long answer is divided. Rows have lines of their own because JSON bounds the levels of each line.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use earnest_isolation::{Answerer, Ended, Job, on_thread};
use serde_json::{Map, Value};

use super::columns::Problem;
use super::reader::{Compiled, Sources, Taken, Wanted};
use super::template::MAX_LEVELS;
use super::wrong::Wrong;
use crate::suite::registry::Row;

/// Length of an answer, and the time for it, after which the rest is left to the next one.
const ANSWER_BYTES: usize = 4 << 20;
const ANSWER_TIME: Duration = Duration::from_millis(100);

/// Longest that is taken of a row, in bytes; with [`BYTES_PER_BYTE`] for each byte of the row.
const ROW_BYTES: usize = 16 << 20;
const BYTES_PER_BYTE: usize = 16;

/// Taking rows apart by the columns and templates of a task file.
pub(super) static JOB: Job = Job { name: "task-file", begin };

fn begin(settings: &[u8]) -> Answerer {
    let sources: serde_json::Result<Sources> = serde_json::from_slice(settings);
    let mut kept: Option<Result<Compiled, Wrong>> = None;
    Box::new(move |request| {
        // Templates and values are recursed over.
        let answered = on_thread(|| {
            let compile = || {
                let sources = sources.as_ref().map_err(|error| Wrong::new("", error))?;
                Compiled::new(sources)
            };
            match (kept.get_or_insert_with(compile), request) {
                (compiled, []) => json(&compiled.as_ref().map(drop)),
                (Ok(compiled), request) => answer(compiled, request).unwrap_or_default(),
                // Rows are asked for after an answer that there is no error.
                (Err(_), _) => Vec::new(),
            }
        });
        // No line at all where it panicked: the other side says so.
        answered.unwrap_or_else(|panic| format!("panicked: {panic}").into_bytes())
    })
}

/// Answer to a request for rows.
fn answer(compiled: &Compiled, request: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut lines = request.split(|byte| *byte == b'\n');
    let wanted: Wanted = serde_json::from_slice(lines.next().unwrap_or_default())?;
    let begun = Instant::now();
    let mut answer = Vec::new();
    while let (Some(values), Some(written)) = (lines.next(), lines.next()) {
        let bytes = values.len() + written.len();
        let values: Map<String, Value> = serde_json::from_slice(values)?;
        let written: BTreeMap<String, String> = serde_json::from_slice(written)?;
        let taken = compiled.take(&values, &written, wanted, bytes).and_then(shallow);
        let mut line = json(&taken);
        let most = ROW_BYTES + BYTES_PER_BYTE * bytes;
        if line.len() > most {
            let message = format!("its templates write more than {most} bytes");
            line = json(&Err::<Taken, _>(Problem { part: "prompt", message }));
        }
        answer.extend_from_slice(&line);
        answer.push(b'\n');
        if answer.len() > ANSWER_BYTES || begun.elapsed() > ANSWER_TIME {
            break;
        }
    }
    Ok(answer)
}

/// A value of our own as JSON; empty, which is no answer, if it has none.
fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Refuses values that have more levels than can be read again.
fn shallow(taken: Taken) -> Result<Taken, Problem> {
    let deep = |part, value: &Value| match levels(value) > MAX_LEVELS {
        true => Err(Problem { part, message: format!("it has more than {MAX_LEVELS} levels of lists and objects") }),
        false => Ok(()),
    };
    taken.parts.answer.iter().try_for_each(|answer| deep("answer", answer))?;
    taken.parts.covariates.values().try_for_each(|value| deep("covariates", value))?;
    Ok(taken)
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(levels).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn request(rows: &[&Row], wanted: Wanted) -> Vec<u8> {
    let mut request = json(&wanted);
    for row in rows {
        for line in [json(&row.values), json(&row.written)] {
            request.push(b'\n');
            request.extend_from_slice(&line);
        }
    }
    request
}

/// Reads the answer to an empty request: the error of compiling, if there is one.
///
/// # Errors
/// If it is no answer.
pub(super) fn compiled(answer: &[u8]) -> Result<Result<(), Wrong>, Ended> {
    serde_json::from_slice(answer).map_err(|_| unreadable(answer))
}

/// Reads the answer to a request for so many rows: at least one of them.
///
/// # Errors
/// If it is no answer.
pub(super) fn taken(answer: &[u8], rows: usize) -> Result<Vec<Result<Taken, Problem>>, Ended> {
    let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let taken = lines.map(serde_json::from_slice).collect::<Result<Vec<Result<Taken, Problem>>, _>>();
    taken.ok().filter(|taken| (1..=rows).contains(&taken.len())).ok_or_else(|| unreadable(answer))
}

fn unreadable(answer: &[u8]) -> Ended {
    Ended::new(match std::str::from_utf8(answer) {
        Ok(panic) if panic.starts_with("panicked: ") => panic,
        _ => "gave no answer that can be read",
    })
}
