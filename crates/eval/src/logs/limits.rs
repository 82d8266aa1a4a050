//! Bounds of what a log may say. They are far from what tools write, and keep a log that was made to do harm from filling memory,
//! screens and the results of others.
use std::collections::{HashMap, HashSet};
use std::io::Write;

use serde_json::{Map, Value};

use super::bounded::is_left_out;
use super::card::{LogCard, LogSample, LogStatus};
use super::find::Log;
use crate::EvalError;

/// Longest name of a model, a task, a scorer or a filter in bytes.
pub(super) const LONGEST_NAME: usize = 1_000;
/// Longest id of a document in bytes; in tables without ids it is the question.
const LONGEST_ID: usize = 100_000;
/// Most scorers of a log. A part of a score that is an object counts as one.
pub(super) const MOST_SCORERS: usize = 1_000;
/// Most figures that a tool reports of a task.
const MOST_FIGURES: usize = 10_000;
/// Most logs of one table or export.
pub(super) const MOST_LOGS: usize = 10_000;
/// Most fields of a document.
const MOST_FIELDS: usize = 1_000;
/// Most bytes of what a reader repeats, such as the answer that all scores of a sample share.
const MOST_COPIED: usize = 128 << 20;
/// Largest score: sums of squares over all samples stay numbers.
const LARGEST_SCORE: f64 = 1e100;
/// Most tokens that a sample is believed to have, and most seconds.
const MOST_TOKENS: u64 = 1_000_000_000;
const MOST_SECONDS: f64 = 1e9;
/// Most bytes of a log's settings, metadata and figures as JSON, which are kept with the run and read by every command on the results.
const MOST_DETAILS: usize = 1 << 20;
/// Most bytes of them over all logs of one search.
pub(super) const MOST_DETAILS_OF_ALL: usize = 128 << 20;
/// Longest text of a version, a time, a reason or a note in bytes.
const LONGEST_TEXT: usize = 2_000;

/// Checks a name.
///
/// # Errors
/// The reason, if it is too long: its length and the limit. `what` says whose it is.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.len() > LONGEST_NAME {
        return Err(format!("{what} has {} bytes; names of up to {LONGEST_NAME} are read", name.len()));
    }
    match is_left_out(name) {
        true => Err(format!("{what} is too long; names of up to {LONGEST_NAME} bytes are read")),
        false => Ok(()),
    }
}

/// Reason for not reading more scorers.
fn too_many_scorers() -> String {
    format!("more than {MOST_SCORERS} scorers, which is how many a log may have")
}

/// Checks the number of scores of one record.
///
/// # Errors
/// The reason with the limit.
pub(super) fn check_scores(count: usize) -> Result<(), String> {
    if count > MOST_SCORERS { Err(format!("it has {}", too_many_scorers())) } else { Ok(()) }
}

/// Checks the number of figures that a tool reports of a task.
///
/// # Errors
/// The reason with the limit.
pub(super) fn check_figures(count: usize) -> Result<(), String> {
    match count > MOST_FIGURES {
        true => Err(format!("its results have {count} figures; up to {MOST_FIGURES} are read")),
        false => Ok(()),
    }
}

/// Most names that a message has, and the longest of them in characters.
const SHOWN: usize = 20;
const SHOWN_LENGTH: usize = 100;

/// The first of some names, for a message.
pub(crate) fn some_of<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let others = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names
        .take(SHOWN)
        .map(|name| match name.chars().nth(SHOWN_LENGTH) {
            Some(_) => name.chars().take(SHOWN_LENGTH).chain("...".chars()).collect(),
            None => name.clone(),
        })
        .collect();
    let shown = shown.join(", ");
    if others == 0 { shown } else { format!("{shown} and {others} others") }
}

/// Checks what a reader repeats: so many copies of so many bytes.
///
/// # Errors
/// The reason with the limit.
pub(super) fn check_copies(what: &str, bytes: usize, count: usize) -> Result<(), String> {
    match bytes.saturating_mul(count) > MOST_COPIED {
        true => Err(format!(
            "{what} of {bytes} bytes would stand {count} times in the results, which may take {} MiB",
            MOST_COPIED >> 20
        )),
        false => Ok(()),
    }
}

/// Names of scorers in their order, each once.
#[derive(Debug, Default)]
pub(super) struct Scorers {
    names: Vec<String>,
    known: HashSet<String>,
}

impl Scorers {
    /// Adds a name, if it is new.
    ///
    /// # Errors
    /// The reason, where there are too many.
    pub fn add(&mut self, name: &str) -> Result<(), String> {
        if self.known.contains(name) {
            return Ok(());
        }
        check_scores(self.names.len() + 1)?;
        check_name("the name of a scorer", name)?;
        self.known.insert(name.to_owned());
        self.names.push(name.to_owned());
        Ok(())
    }

    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// Check of a log's samples, one after another.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Names of scorers that were met, each with the parts of its scores.
    scorers: HashMap<String, HashSet<String>>,
    /// Number of names and parts.
    count: usize,
}

impl Samples {
    /// Checks a sample.
    ///
    /// # Errors
    /// The error names the log's file, the sample and the limit.
    pub fn check(&mut self, card: &LogCard, sample: &mut LogSample) -> Result<(), EvalError> {
        if sample.id.len() > LONGEST_ID {
            let said = format!("an id has {} bytes; ids of up to {LONGEST_ID} are read", sample.id.len());
            let error = self.error(card, sample, said);
            return Err(error.hint("a table without ids has the questions as ids: name a column, `--columns id=...`"));
        }
        self.facts(sample).map_err(|reason| self.error(card, sample, reason))
    }

    fn error(&self, card: &LogCard, sample: &LogSample, reason: String) -> EvalError {
        let file = card.files.first().cloned().unwrap_or_default();
        let id: String = sample.id.chars().take(60).collect();
        EvalError::log_place(file, format!("sample {id}"), reason)
    }

    fn facts(&mut self, sample: &mut LogSample) -> Result<(), String> {
        check_scores(sample.scores.len())?;
        // Other objects are not kept with the run.
        let inner = sample.document.get("covariates").and_then(Value::as_object).map_or(0, Map::len);
        let fields = sample.document.len().max(inner);
        if fields > MOST_FIELDS {
            return Err(format!("its document has {fields} fields; up to {MOST_FIELDS} are read"));
        }
        for score in &sample.scores {
            if !self.scorers.contains_key(&score.scorer) {
                check_name("the name of a scorer", &score.scorer)?;
                self.count += 1;
                self.scorers.insert(score.scorer.clone(), HashSet::new());
            }
            let number = score.number();
            let largest = |number: f64| number.abs() <= LARGEST_SCORE;
            if !number.is_none_or(largest) {
                return Err(beyond(&score.scorer, number.unwrap_or_default()));
            }
            let Some(parts) = score.value.as_object() else { continue };
            let known = self.scorers.entry(score.scorer.clone()).or_default();
            for (part, value) in parts.iter().filter(|(_, value)| value.is_number() || value.is_boolean()) {
                if !known.contains(part) {
                    check_name("the name of a part of a score", part)?;
                    self.count += 1;
                    if self.count > MOST_SCORERS {
                        break;
                    }
                    known.insert(part.clone());
                }
                if let Some(number) = value.as_f64().filter(|number| !largest(*number)) {
                    return Err(beyond(&format!("{}.{part}", score.scorer), number));
                }
            }
        }
        if self.count > MOST_SCORERS {
            return Err(format!("with it, the log has {}", too_many_scorers()));
        }
        for tokens in [&mut sample.prompt_tokens, &mut sample.completion_tokens] {
            if let Some(count) = tokens.filter(|count| *count > MOST_TOKENS) {
                return Err(format!("it has {count} tokens; up to {MOST_TOKENS} are believed"));
            }
        }
        sample.seconds = sample.seconds.filter(|seconds| (0.0..=MOST_SECONDS).contains(seconds));
        Ok(())
    }
}

fn beyond(scorer: &str, number: f64) -> String {
    format!("the score {scorer} is {number:e}; scores from -{LARGEST_SCORE:e} to {LARGEST_SCORE:e} are read")
}

/// Checks the facts of a log, and leaves out what is too long to be kept with its run, which a note then says. `left` is the number of
/// bytes of details that are left to this search.
///
/// # Errors
/// Names that are too long and too many scorers, with the log's file.
pub(super) fn check_log(log: &mut Log, left: &mut usize) -> Result<(), EvalError> {
    let card = &mut log.card;
    check_names(card).map_err(|reason| EvalError::log(card.files.first().cloned().unwrap_or_default(), reason))?;
    let most = MOST_DETAILS.min(*left);
    let mut left_out = Vec::new();
    for (name, text) in [
        ("the tool's version", &mut card.tool_version),
        ("the task's version", &mut card.task_version),
        ("the task's hash", &mut card.task_hash),
        ("the time of its start", &mut card.started),
        ("the time of its end", &mut card.ended),
    ] {
        if text.as_ref().is_some_and(|text| text.len() > LONGEST_TEXT) {
            *text = None;
            left_out.push(name.to_owned());
        }
    }
    if let LogStatus::Failed(reason) = &mut card.status {
        cut(reason);
    }
    card.notes.iter_mut().for_each(cut);
    let kept = trim(card, most, &mut left_out);
    *left -= kept.min(*left);
    if !left_out.is_empty() {
        let mut names = left_out.join(", ");
        cut(&mut names);
        card.notes.push(format!(
            "left out of what is kept of the log's settings and metadata, which may have {} KiB: {names}",
            most >> 10
        ));
    }
    Ok(())
}

fn check_names(card: &LogCard) -> Result<(), String> {
    check_name("the name of its model", &card.model)?;
    check_name("the name of its task", &card.task)?;
    if card.scorers.len() > MOST_SCORERS {
        return Err(format!("it has {}", too_many_scorers()));
    }
    card.scorers.iter().try_for_each(|scorer| check_name("the name of a scorer", scorer))?;
    check_figures(card.reported.len())?;
    card.reported.iter().try_for_each(|one| {
        check_name("the name of a scorer of its results", &one.scorer)?;
        check_name("the name of a metric of its results", &one.metric)?;
        check_name("the name of a reducer of its results", one.reducer.as_deref().unwrap_or_default())
    })
}

/// Leaves out the largest details until the rest fits; returns its bytes.
fn trim(card: &mut LogCard, most: usize, left_out: &mut Vec<String>) -> usize {
    for one in &mut card.reported {
        if length(&one.value) > LONGEST_TEXT {
            one.value = "(left out)".into();
            left_out.push(format!("the figure {} of {}", one.metric, one.scorer));
        }
    }
    let figures = |card: &LogCard| -> usize {
        card.reported.iter().map(|one| one.scorer.len() + one.metric.len() + length(&one.value) + 40).sum()
    };
    let mut kept = figures(card);
    if kept > most {
        card.reported.clear();
        left_out.push("the tool's own figures".to_owned());
        kept = 0;
    }
    let maps = [&mut card.model_details, &mut card.task_details, &mut card.generation];
    let mut sizes: Vec<(usize, usize, String)> = Vec::new();
    for (place, map) in maps.iter().enumerate() {
        let marked = map.iter().filter(|(_, value)| has_left_out(value));
        left_out.extend(marked.map(|(name, _)| format!("a text in {name}")));
        sizes.extend(map.iter().map(|(name, value)| (name.len() + length(value) + 4, place, name.clone())));
    }
    kept += sizes.iter().map(|(size, ..)| size).sum::<usize>();
    sizes.sort_by(|a, b| b.cmp(a));
    for (size, place, name) in sizes {
        if kept <= most {
            break;
        }
        maps[place].remove(&name);
        kept -= size;
        let mut shown = name;
        cut(&mut shown);
        left_out.push(format!("{shown} ({size} bytes)"));
    }
    kept
}

/// True for a value in which a text was left out.
fn has_left_out(value: &Value) -> bool {
    match value {
        Value::String(text) => is_left_out(text),
        Value::Array(values) => values.iter().any(has_left_out),
        Value::Object(members) => members.values().any(has_left_out),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Bytes of a value as JSON.
fn length(value: &Value) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    serde_json::to_writer(&mut count, value).unwrap_or_default();
    count.0
}

/// Cuts a text to the length that is kept.
fn cut(text: &mut String) {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push_str("...");
    }
}
