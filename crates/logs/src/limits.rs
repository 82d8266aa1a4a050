//! Bounds of what a log may say. They are far from what tools write, and keep a log that was made to do harm from filling memory,
//! screens and the results of others.
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::bounded::is_left_out;
use super::fault::LogFault;
use super::sample::{LogSample, memory_of};
use crate::LogError;
use earnest_results::{LogCard, LogStatus};

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
/// Longest text of a sample in bytes, some two million tokens: a completion, an answer, an explanation. Prompts and questions have
/// limits of their own, where they are packed.
pub(crate) const LONGEST_SAMPLE_TEXT: usize = 8 << 20;
/// Most bytes of a sample without its question and prompt: a thousand completions of 32 kB that were scored together are half of it.
const LARGEST_SAMPLE: usize = 64 << 20;
/// Most bytes that are stored of the samples of one log: so many, and so many for each byte of its files. Texts of models pack to a
/// third or a tenth of their length.
const STORED: u64 = 512 << 20;
const STORED_PER_BYTE: u64 = 200;
/// Longest text of a version, a time, a reason or a note in bytes.
const LONGEST_TEXT: usize = 2_000;

/// Checks a name.
///
/// # Errors
/// The reason, if it is too long: its length and the limit. `what` says whose it is.
pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), LogFault> {
    if name.len() > LONGEST_NAME {
        return Err(LogFault::TooLong { what, bytes: name.len(), kind: "names", most: LONGEST_NAME });
    }
    match is_left_out(name) {
        true => Err(LogFault::LeftOut { what, most: LONGEST_NAME }),
        false => Ok(()),
    }
}

/// Checks the number of scores of one record.
///
/// # Errors
/// The reason with the limit.
pub(super) fn check_scores(count: usize) -> Result<(), LogFault> {
    match count > MOST_SCORERS {
        true => Err(LogFault::Scorers { whose: "it has", most: MOST_SCORERS }),
        false => Ok(()),
    }
}

/// Checks the number of figures that a tool reports of a task.
///
/// # Errors
/// The reason with the limit.
pub(super) fn check_figures(count: usize) -> Result<(), LogFault> {
    match count > MOST_FIGURES {
        true => Err(LogFault::TooMany { whose: "its results have", count, things: "figures", most: MOST_FIGURES }),
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
pub(super) fn check_copies(what: &'static str, bytes: usize, count: usize) -> Result<(), LogFault> {
    match bytes.saturating_mul(count) > MOST_COPIED {
        true => Err(LogFault::Copies { what, bytes, count, mib: MOST_COPIED >> 20 }),
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
    pub fn add(&mut self, name: &str) -> Result<(), LogFault> {
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
    /// Bytes of the samples that were met, without questions and prompts.
    bytes: u64,
    /// Bytes that the samples may have, once it is known.
    most: Option<u64>,
}

impl Samples {
    /// Checks a sample.
    ///
    /// # Errors
    /// The error names the log's file, the sample and the limit.
    pub fn check(&mut self, card: &LogCard, sample: &mut LogSample) -> Result<(), LogError> {
        if sample.id.len() > LONGEST_ID {
            let fault = LogFault::TooLong { what: "an id", bytes: sample.id.len(), kind: "ids", most: LONGEST_ID };
            return Err(self
                .error(card, sample, fault)
                .hint("a table without ids has the questions as ids: name a column, the setting `columns = id=...`"));
        }
        self.facts(sample).and_then(|()| self.texts(card, sample)).map_err(|fault| self.error(card, sample, fault))
    }

    /// Checks the lengths of the sample's texts, its own size, and that of all samples so far.
    fn texts(&mut self, card: &LogCard, sample: &LogSample) -> Result<(), LogFault> {
        let lists =
            [("completion", &sample.completions), ("expected answer", &sample.targets), ("choice", &sample.choices)];
        let lists = lists.into_iter().flat_map(|(what, texts)| texts.iter().map(move |text| (what, text.len())));
        let own = [("error", &sample.error), ("reason of its end", &sample.finish)].into_iter();
        let scores =
            sample.scores.iter().flat_map(|score| [("answer", &score.answer), ("explanation", &score.explanation)]);
        let likelihoods = sample.likelihoods.iter().map(|one| ("continuation", &one.continuation));
        let optional = own.chain(scores).chain(likelihoods);
        let lengths = optional.filter_map(|(what, text)| Some((what, text.as_ref()?.len())));
        let values = sample.scores.iter().map(|score| ("score", memory_of(&score.value)));
        if let Some((what, bytes)) =
            lists.chain(lengths).chain(values).find(|(_, length)| *length > LONGEST_SAMPLE_TEXT)
        {
            return Err(LogFault::LongText { what, bytes, mib: LONGEST_SAMPLE_TEXT >> 20 });
        }
        let size = sample.stored();
        if size > LARGEST_SAMPLE {
            return Err(LogFault::LongTexts { bytes: size, mib: LARGEST_SAMPLE >> 20 });
        }
        self.bytes = self.bytes.saturating_add(size as u64);
        let length = |file: &PathBuf| std::fs::metadata(file).map_or(0, |file| file.len());
        let most = *self.most.get_or_insert_with(|| {
            STORED.saturating_add(card.files.iter().map(length).sum::<u64>().saturating_mul(STORED_PER_BYTE))
        });
        match self.bytes > most {
            true => Err(LogFault::LongSamples { mib: most >> 20, base: STORED >> 20, per_byte: STORED_PER_BYTE }),
            false => Ok(()),
        }
    }

    fn error(&self, card: &LogCard, sample: &LogSample, fault: LogFault) -> LogError {
        let file = card.files.first().cloned().unwrap_or_default();
        let id: String = sample.id.chars().take(60).collect();
        LogError::unread_at(file, format!("sample {id}"), fault)
    }

    fn facts(&mut self, sample: &mut LogSample) -> Result<(), LogFault> {
        check_scores(sample.scores.len())?;
        // Other objects are not kept with the run.
        let inner = sample.document.get("covariates").and_then(Value::as_object).map_or(0, Map::len);
        let count = sample.document.len().max(inner);
        if count > MOST_FIELDS {
            return Err(LogFault::TooMany { whose: "its document has", count, things: "fields", most: MOST_FIELDS });
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
                return Err(beyond(score.scorer.clone(), number.unwrap_or_default()));
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
                    return Err(beyond(format!("{}.{part}", score.scorer), number));
                }
            }
        }
        if self.count > MOST_SCORERS {
            return Err(LogFault::Scorers { whose: "with it, the log has", most: MOST_SCORERS });
        }
        for tokens in [&mut sample.prompt_tokens, &mut sample.completion_tokens] {
            if let Some(count) = tokens.filter(|count| *count > MOST_TOKENS) {
                return Err(LogFault::Tokens { count, most: MOST_TOKENS });
            }
        }
        sample.seconds = sample.seconds.filter(|seconds| (0.0..=MOST_SECONDS).contains(seconds));
        Ok(())
    }
}

fn beyond(scorer: String, number: f64) -> LogFault {
    LogFault::LargeScore { scorer, number, largest: LARGEST_SCORE }
}

/// Checks the facts of a log, and leaves out what is too long to be kept with its run, which a note then says. `left` is the number of
/// bytes of details that are left to this search.
///
/// # Errors
/// Names that are too long and too many scorers, with the log's file.
pub(super) fn check_log(card: &mut LogCard, left: &mut usize) -> Result<(), LogError> {
    check_names(card).map_err(|reason| LogError::unread(card.files.first().cloned().unwrap_or_default(), reason))?;
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

fn check_names(card: &LogCard) -> Result<(), LogFault> {
    check_name("the name of its model", &card.model)?;
    check_name("the name of its task", &card.task)?;
    check_scores(card.scorers.len())?;
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
    for (index, map) in maps.iter().enumerate() {
        let marked = map.iter().filter(|(_, value)| has_left_out(value));
        left_out.extend(marked.map(|(name, _)| format!("a text in {name}")));
        sizes.extend(map.iter().map(|(name, value)| (name.len() + length(value) + 4, index, name.clone())));
    }
    kept += sizes.iter().map(|(size, ..)| size).sum::<usize>();
    sizes.sort_by(|a, b| b.cmp(a));
    for (size, index, name) in sizes {
        if kept <= most {
            break;
        }
        maps[index].remove(&name);
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

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_results::Tool;

    #[test]
    fn the_samples_of_a_log_are_bounded_together() {
        let card = LogCard::new(Tool::Inspect, "m".into(), "t".into(), LogStatus::Finished);
        let mut limits = Samples { bytes: STORED - 3_000, ..Samples::default() };
        let mut sample = LogSample { id: "7".into(), completions: vec!["x".repeat(2_000)], ..LogSample::default() };
        assert!(limits.check(&card, &mut sample).is_ok());
        let error = limits.check(&card, &mut sample).unwrap_err().to_string();
        assert!(error.contains("sample 7: with it, the samples have more than 512 MiB"), "{error}");
        sample.completions = vec!["x".repeat(LONGEST_SAMPLE_TEXT); 9];
        let error = Samples::default().check(&card, &mut sample).unwrap_err().to_string();
        assert!(error.contains("together; up to 64 MiB"), "{error}");
    }
}
