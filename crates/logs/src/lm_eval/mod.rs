//! Logs of lm-evaluation-harness: a results document and, for each task, a file of samples with a line for every document and filter.

mod index;
mod line;
mod own;
mod results;
mod unnamed;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::batches::in_order;
use super::fault::LogFault;
use super::json::{is_not_finite, parse, parse_facts, plain};
use super::limits::{Scorers, check_copies, check_scores, some_of};
use super::log::{Each, FindOptions, Log, Samples};
use super::open::read_whole;
use super::records::{Place, Records};
use super::sample::{LogSample, LogScore};
use crate::{LogError, records};
use earnest_results::{LogCard, LogStatus, Tool};

use index::Index;
pub(super) use line::question;
use line::{Key, Line};
pub(super) use results::Results;
use unnamed::Filters;

/// Most readers of a file at once, each with the file open.
const READERS: usize = 24;

/// Samples of a task.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    longest: u64,
    /// Number of documents that the results are about.
    documents: Option<u64>,
    /// Names of scorers in the run of earnest that was exported, by their names here.
    names: HashMap<String, String>,
    /// The task's filters, for lines that name none.
    filters: Filters,
}

/// A results document in its file.
#[derive(Debug)]
pub(super) struct ResultsFile {
    pub path: PathBuf,
    pub results: Results,
}

impl ResultsFile {
    pub fn read(path: &Path, longest: u64) -> Result<Self, LogError> {
        let text = read_whole(path, longest)?;
        let results = parse_facts(&text).map_err(|reason| LogError::unread(path, reason))?;
        Ok(ResultsFile { path: path.to_owned(), results })
    }
}

/// The time of a run in the name of a file, such as `2026-11-22T16-35-15.540337`; it is at the end of the name, or before `_results`
/// and the like in older ones.
pub(super) fn stamp(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let bytes = name.as_bytes();
    let form = b"0000-00-00T00-00-00";
    let fits = |window: &[u8]| {
        window.iter().zip(form).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'-' => matches!(byte, b'-' | b':' | b'_'),
            form => byte == form,
        })
    };
    let start = bytes.windows(form.len()).rposition(fits)?;
    let mut end = start + form.len();
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end += 1 + bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    Some(name[start..end].replace([':', '_'], "-"))
}

/// Task of a file of samples: what its name says between `samples_` and the stamp, else the task of the results that it ends with, else
/// the only one. The results need not have a task that the name says.
fn task_of(path: &Path, results: Option<&Results>) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json")).unwrap_or(name);
    // Of the length of the stamp in the name, whatever stands between its digits.
    let name = match stamp(path) {
        Some(stamp) if name.len() > stamp.len() + 1 && name.is_char_boundary(name.len() - stamp.len()) => {
            name[..name.len() - stamp.len()].trim_end_matches('_')
        }
        _ => name,
    };
    let cut = name.strip_prefix("samples_");
    let tasks = results.map(Results::tasks).unwrap_or_default();
    // Names of files lack the characters that systems forbid.
    let alike = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let known = match cut {
        Some(cut) => match tasks.iter().find(|task| **task == cut) {
            Some(exact) => Some(*exact),
            None => {
                let mut fitting = tasks.iter().filter(|task| alike(task) == alike(cut));
                fitting.next().filter(|_| fitting.next().is_none()).copied()
            }
        },
        None => tasks.iter().filter(|task| name.ends_with(**task)).max_by_key(|task| task.len()).copied(),
    };
    let only = match tasks.as_slice() {
        [task] => Some(*task),
        _ => None,
    };
    known.or(cut.filter(|cut| !cut.is_empty())).or(only).map(str::to_owned)
}

/// The log of a file of samples with its results, if there are any.
pub(super) fn log(path: &Path, results: Option<&ResultsFile>, options: &FindOptions) -> Result<Log, LogError> {
    let of = results.map(|file| &file.results);
    let Some(task) = task_of(path, of).or_else(|| options.task.clone()) else {
        let hint =
            "name the file samples_TASK_TIME.jsonl, as the harness does, or name the task: the setting `task = TASK`";
        return Err(LogError::unread(path, "its name does not say which task it is of").hint(hint));
    };
    let mut card = match results {
        Some(file) => file.results.card(&file.path, &task, options.model.as_deref())?,
        None => {
            let Some(model) = &options.model else {
                let message =
                    "its results file (results_TIME.json of the same time) is missing, and with it the model's name";
                return Err(LogError::unread(path, message).hint(
                    "put it into the same folder, or name the model to import the samples alone: the setting `model_name = NAME`",
                ));
            };
            LogCard::new(Tool::LmEval, model.clone(), task, LogStatus::Unknown)
        }
    };
    card.files = std::iter::once(path.to_owned()).chain(results.map(|file| file.path.clone())).collect();
    let documents = of.and_then(|results| results.documents(&card.task));
    if results.is_none() {
        card.notes.push("the results file is missing: settings and the tool's own figures are unknown".to_owned());
    }
    if let Some(file) = results.filter(|file| !file.results.tasks().contains(&card.task.as_str())) {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        card.notes
            .push(format!("{name} has no results of {}: settings and the tool's own figures are unknown", card.task));
    }
    let names = of.map(|results| results.own_names(&card.task)).unwrap_or_default().into_iter().collect();
    let filters = of.map(|results| results.filters(&card.task)).unwrap_or_default();
    let source = Source { path: path.to_owned(), longest: options.longest, documents, names, filters };
    if card.scorers.is_empty() {
        card.scorers = source.scorers()?;
    } else if card.tool == Tool::LmEval {
        source.check_scores(&card)?;
    }
    Ok(Log { card, source: Box::new(source), keep_going: options.keep_going })
}

/// Name of a scorer of which lines have the metric and the filter. Versions without filters in their lines have one or several in
/// their results.
fn scorer(card: &LogCard, metric: &str, filter: &str) -> String {
    let named = format!("{metric},{filter}");
    if !filter.is_empty() || card.scorers.contains(&named) {
        return named;
    }
    let of_metric = |scorer: &&String| scorer.split(',').next() == Some(metric);
    let mut known = card.scorers.iter().filter(of_metric);
    match (known.next(), known.next()) {
        (Some(only), None) => only.clone(),
        _ => metric.to_owned(),
    }
}

impl Source {
    /// Checks that a line has a metric of the results, be it null; reads up to the first that has.
    ///
    /// # Errors
    /// Lines of which none has one, in words.
    fn check_scores(&self, card: &LogCard) -> Result<(), LogError> {
        let mut records = Records::open(&self.path, self.longest)?;
        let mut found = None;
        while let Some((_, read)) = records.next()? {
            // Walking says what is wrong with a line that is none.
            let Ok(()) = read else { continue };
            let Ok(Key { doc_id, .. }) = parse::<Key>(&records.bytes) else { continue };
            if doc_id.is_null() {
                continue;
            }
            let line = match parse::<Line<false>>(&records.bytes) {
                Ok(line) => line,
                Err(reason) => {
                    found.get_or_insert(format!("its lines are {reason}"));
                    continue;
                }
            };
            let listed = line.metrics.iter().flatten().map(String::as_str);
            let known = card.scorers.iter().filter_map(|scorer| scorer.split(',').next());
            if listed.chain(known).any(|metric| line.rest.contains_key(metric)) {
                return Ok(());
            }
            found.get_or_insert_with(|| {
                format!(
                    "its results have scores by {}, but none of its lines has one of them",
                    some_of(card.scorers.iter())
                )
            });
        }
        let Some(what) = found else { return Ok(()) };
        let version = card.tool_version.as_ref().map_or_else(String::new, |version| format!(" (version {version})"));
        let message = format!("{what}: it is a layout of lm-evaluation-harness's samples that is not known{version}");
        Err(LogError::unread(&self.path, message).hint(
            "docs/logs.md has the layouts that are read; log the samples again with one of those versions, best with 0.4.6 or later",
        ))
    }

    /// Scorers of the lines, where no results name them.
    fn scorers(&self) -> Result<Vec<String>, LogError> {
        let mut records = Records::open(&self.path, self.longest)?;
        let mut scorers = Scorers::default();
        while let Some((place, read)) = records.next()? {
            // Walking says what is wrong with it.
            let Ok(()) = read else { continue };
            let (Ok(key), Ok(line)) = (parse::<Key>(&records.bytes), parse::<Line<false>>(&records.bytes)) else {
                continue;
            };
            // Older versions do not list them: what is left are the metrics.
            let metrics = line.metrics.unwrap_or_else(|| line.rest.keys().cloned().collect());
            for metric in metrics {
                let scorer = match &key.filter {
                    Some(filter) => format!("{metric},{filter}"),
                    None => metric,
                };
                scorers.add(&scorer).map_err(|reason| records.error(place, reason))?;
            }
        }
        Ok(scorers.into_names())
    }
}

/// The scores of a line; one that is no number is left out, with the reason.
fn line_scores<const FULL: bool>(
    card: &LogCard,
    filter: &str,
    line: &mut Line<FULL>,
    left_out: &mut Vec<LogFault>,
) -> Result<Vec<LogScore>, LogFault> {
    let answer = line.answer();
    check_scores(line.metrics.as_ref().map_or(0, Vec::len))?;
    check_members(line)?;
    let metrics = match line.metrics.take() {
        Some(metrics) => metrics,
        // Older versions do not list them.
        None => {
            let known = |metric: &&String| card.scorers.iter().any(|scorer| scorer.split(',').next() == Some(metric));
            line.rest.keys().filter(known).cloned().collect()
        }
    };
    check_scores(metrics.len())?;
    check_copies("the answer", answer.as_ref().map_or(0, String::len), metrics.len())?;
    let mut scores = Vec::with_capacity(metrics.len());
    for metric in metrics {
        let Some(value) = line.rest.remove(&metric).filter(|value| !value.is_null()) else { continue };
        if is_not_finite(&value) {
            left_out.push(LogFault::NoMean { scorer: metric, value: plain(&value) });
            continue;
        }
        let scorer = scorer(card, &metric, filter);
        scores.push(LogScore { scorer, value, answer: answer.clone(), explanation: None });
    }
    Ok(scores)
}

/// Most members of a line: its scores, and what else a task writes.
const MOST_MEMBERS: usize = 10_000;

fn check_members<const FULL: bool>(line: &Line<FULL>) -> Result<(), LogFault> {
    match line.rest.len() > MOST_MEMBERS {
        true => Err(LogFault::Members { count: line.rest.len(), most: MOST_MEMBERS }),
        false => Ok(()),
    }
}

impl Samples for Source {
    fn walk(&self, card: &LogCard, each: Each<'_>) -> Result<(), LogError> {
        let mut index = Index::read(&self.path, self.longest, each)?;
        self.filters.name(&mut index, &self.path, self.longest)?;
        let rolling = card.task_details.get("output_type").and_then(Value::as_str) == Some("loglikelihood_rolling");
        let open = |_| Records::open(&self.path, self.longest);
        // One a filter, because the lines of a filter stand together; a few filters share one where there are many.
        let mut readers = (0..index.filters.len().min(READERS)).map(open).collect::<Result<Vec<_>, _>>()?;
        let list = readers.first().is_some_and(Records::is_list);
        let order: HashMap<&str, usize> =
            card.scorers.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let mut documents = 0..index.documents;
        let next = || {
            let Some(document) = documents.next() else { return Ok(None) };
            let mut lines = Vec::new();
            let mut size = 0;
            for (filter, place) in index.places(document) {
                let records = &mut readers[filter % READERS];
                records.read(place)?;
                size += records.bytes.len() as u64;
                if size > self.longest {
                    let what = "the lines of its document have";
                    let fault = LogFault::Longer { what, length: size, longest: self.longest };
                    return Ok(Some((Err(records.error(place, fault)), 0)));
                }
                lines.push((filter, place, std::mem::take(&mut records.bytes)));
            }
            Ok(Some((Ok(lines), size)))
        };
        let sample = |lines: Result<Vec<(usize, Place, Vec<u8>)>, LogError>| {
            let lines = lines?;
            if card.tool == Tool::Earnest {
                let line =
                    |(filter, place, bytes): (usize, Place, Vec<u8>)| (index.filters[filter].as_str(), place, bytes);
                return own::samples(card, &self.names, index.own_ids, lines.into_iter().map(line))
                    .map(|samples| (samples, Vec::new()))
                    .map_err(|(place, fault)| records::error(&self.path, list, place, fault));
            }
            let mut left_out = Vec::new();
            let mut sample: Option<LogSample> = None;
            let mut scores = Vec::new();
            for (filter, place, bytes) in lines {
                let filter = index.filters[filter].as_str();
                let mut reasons = Vec::new();
                let read = match sample {
                    None => parse::<Line<true>>(&bytes).and_then(|mut line| {
                        let scores = line_scores(card, filter, &mut line, &mut reasons)?;
                        let id = if index.own_ids { super::json::id_text(&line.doc["id"]) } else { None };
                        sample = Some(line.sample(id, rolling));
                        Ok(scores)
                    }),
                    Some(_) => parse::<Line<false>>(&bytes)
                        .and_then(|mut line| line_scores(card, filter, &mut line, &mut reasons)),
                };
                let failed = |fault: LogFault| records::error(&self.path, list, place, fault);
                scores.extend(read.map_err(failed)?);
                left_out.extend(reasons.into_iter().map(failed));
            }
            scores.sort_by_key(|score: &LogScore| order.get(score.scorer.as_str()).copied().unwrap_or(usize::MAX));
            Ok((vec![LogSample { scores, ..sample.unwrap_or_default() }], left_out))
        };
        type Read = Result<(Vec<LogSample>, Vec<LogError>), LogError>;
        in_order(next, sample, |read: Read| match read {
            Ok((samples, left_out)) => {
                left_out.into_iter().try_for_each(|error| each(Err(error)))?;
                samples.into_iter().try_for_each(|sample| each(Ok(sample)))
            }
            Err(error) => each(Err(error)),
        })?;
        // A scorer of a run of earnest need not score every document.
        if index.bad == 0
            && card.tool == Tool::LmEval
            && let Some((filter, lines, most)) = index.uneven()
        {
            let message = format!("it has {lines} lines of the filter {filter}, but {most} of another one");
            each(Err(LogError::unread(&self.path, message).hint("the file was cut off; copy it again")))?;
        }
        match self.documents {
            Some(expected) if index.bad == 0 && (index.documents as u64) < expected => {
                let message =
                    format!("it has {} of the {expected} documents that its results are about", index.documents);
                each(Err(LogError::unread(&self.path, message).hint("the file was cut off; copy it again")))
            }
            _ => Ok(()),
        }
    }

    fn sha256(&self) -> Result<String, LogError> {
        earnest_digest::sha256_file(&self.path, |_| ()).map_err(|error| LogError::input(self.path.display(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_tasks_are_found_in_names() {
        let stamp = |name: &str| stamp(Path::new(name));
        assert_eq!(
            stamp("samples_a_b_2026-11-22T16-35-15.540337.jsonl").as_deref(),
            Some("2026-11-22T16-35-15.540337")
        );
        assert_eq!(stamp("results_2026-11-22T16:35:15.540337.json").as_deref(), Some("2026-11-22T16-35-15.540337"));
        assert_eq!(stamp("results_2026-11-22T16-35-15.json").as_deref(), Some("2026-11-22T16-35-15"));
        assert_eq!(stamp("results.json"), None);
        let task = |name: &str| task_of(Path::new(name), None);
        assert_eq!(task("samples_a_b_2026-11-22T16-35-15.540337.jsonl").as_deref(), Some("a_b"));
        assert_eq!(task("samples_a_b_2026-11-22T16:35:15.jsonl").as_deref(), Some("a_b"));
        assert_eq!(task("other.jsonl"), None);
        let results: Results = parse(br#"{"configs": {"easy": {}, "arc_easy": {}}}"#).unwrap();
        let task = |name: &str| task_of(Path::new(name), Some(&results));
        assert_eq!(task("pretrained__gpt2_arc_easy.jsonl").as_deref(), Some("arc_easy"));
        assert_eq!(task("other.jsonl"), None);
        assert_eq!(task("samples_arc__easy_2026-11-22T16-35-15.jsonl").as_deref(), Some("arc_easy"));
        // The name is not that of another task's results.
        let results: Results = parse(br#"{"configs": {"arith_a": {}}}"#).unwrap();
        let task = |name: &str| task_of(Path::new(name), Some(&results));
        assert_eq!(task("samples_arith_sc_a_2026-11-22T16-35-15.jsonl").as_deref(), Some("arith_sc_a"));
        assert_eq!(task("samples_arith_a_2026-11-22T16-35-15.jsonl").as_deref(), Some("arith_a"));
        assert_eq!(task("samples_2026-11-22T16-35-15.jsonl").as_deref(), Some("arith_a"));
    }
}
