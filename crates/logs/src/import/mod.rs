//! Import of other tools' logs, each as a run with the tool's own scores.

mod answers;
mod convert;
mod in_flight;
mod settings;
mod size;
mod write;

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;

pub use answers::Answers;
pub use convert::{Converted, Converter, no_field};
pub use settings::{Chosen, deciding, log_manifest, options, settings, with_own_names};

use crate::{FindOptions, Log, LogError};
use earnest_results::store::{RunRecord, Store};
use earnest_results::{
    LogCard, LogNotice, LogStatus, LogSums, Notice, Origin, Reporter, RunEvent, Status, Teller, Told, Tool, folder,
};
use earnest_tasks::suite::check_size;
use earnest_tasks::suite::log::LogSuite;
use earnest_tasks::suite::task::usual;
use write::{Unwritten, Written};

#[derive(Debug, Clone, Default)]
pub struct LogImportSettings {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// Search and columns; logs and samples that cannot be read are left out with `keep_going`.
    pub find: FindOptions,
    /// Deciding scorer; none for each tool's own.
    pub deciding: Option<String>,
    /// Field of the documents that is the cluster; none for `cluster`, where they have it.
    pub cluster: Option<String>,
    /// File of expected answers, for logs without scores.
    pub answers: Option<PathBuf>,
    /// Results folder.
    pub results: PathBuf,
}

/// Imported logs and their store.
pub struct ImportedLogs {
    pub store: Store,
    pub runs: Vec<ImportedLog>,
    /// Names of runs that have a log of the import already.
    pub known: Vec<String>,
    /// Errors of logs that were left out.
    pub refused: Vec<LogError>,
}

impl ImportedLogs {
    /// Returns true if a log or a sample was left out.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty() || self.runs.iter().any(|run| run.refused > 0)
    }
}

#[derive(Debug)]
pub struct ImportedLog {
    pub run: RunRecord,
    pub tool: Tool,
    /// Documents and samples that were written.
    pub items: usize,
    pub samples: usize,
    /// Samples without a score by the deciding scorer, and those of them that failed in the tool.
    pub without_score: usize,
    pub failed: usize,
    /// Samples that could not be read.
    pub refused: usize,
    /// The first errors of those.
    pub first: Vec<LogError>,
    /// Documents without a label of their cluster, where others have one.
    pub without_label: usize,
}

/// Imports every log in files and folders as a run. A log that was imported before is said and left alone.
///
/// # Errors
/// [`LogError`]: the first log or sample that cannot be read, unless `keep_going` leaves it out. A log is stored whole or not
/// at all.
pub fn import_logs(settings: &LogImportSettings, reporter: &mut dyn Reporter) -> Result<ImportedLogs, LogError> {
    let answers = settings.answers.as_deref().map(Answers::read).transpose()?;
    let mut found = crate::find(&settings.paths, &settings.find)?;
    found.logs.iter_mut().for_each(|log| log.card = with_own_names(&log.card));
    found.notes.into_iter().for_each(|note| reporter.event(&RunEvent::Notice(note)));
    if found.logs.is_empty() && found.refused.is_empty() {
        return Err(nothing_found(&settings.paths));
    }
    let chosen = Chosen {
        deciding: settings.deciding.as_deref(),
        cluster: settings.cluster.as_deref(),
        answers: answers.as_ref(),
    };
    // Names that are wrong for every log are refused before anything is stored.
    for log in &found.logs {
        if let Err(error) = deciding(log, chosen)
            && !settings.find.keep_going
        {
            return Err(error);
        }
    }
    let store = Store::create(&settings.results)?;
    let mut known = Known::default();
    for run in store.runs()? {
        known.add(&run);
    }
    let mut imported = ImportedLogs { store, runs: Vec::new(), known: Vec::new(), refused: found.refused };
    for log in &found.logs {
        match import_log(&imported.store, log, chosen, &mut known, reporter) {
            Ok(Found::New(run)) => imported.runs.push(*run),
            Ok(Found::Known(run)) => imported.known.push(run),
            Err(error) if settings.find.keep_going => imported.refused.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok(imported)
}

/// The error of paths without logs.
pub fn nothing_found(paths: &[PathBuf]) -> LogError {
    let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    LogError::setting(format!("there is no log in {}", named.join(", "))).hint(
        "logs of lm-evaluation-harness need its samples (--log_samples), those of lighteval its details (--save-details); \
         the setting `columns` says what the columns of a plain table are",
    )
}

/// Logs that are stored.
#[derive(Default)]
struct Known {
    /// Runs by the identity of their log.
    runs: HashMap<String, String>,
    /// Runs with what the user chose, by the content of their log.
    choices: HashMap<String, (String, settings::Choices)>,
}

impl Known {
    fn add(&mut self, run: &RunRecord) {
        let settings = &run.manifest.settings;
        if settings.origin() != Origin::Log {
            return;
        }
        let options = &settings.suite_options;
        self.runs.extend(settings::identity(options).map(|identity| (identity, run.manifest.run.clone())));
        let content = settings::content(options);
        self.choices.extend(content.map(|(content, choices)| (content, (run.manifest.run.clone(), choices))));
    }

    /// Returns the run that the log is stored as with other choices of the user, and the names of these.
    fn with_other_choices(&self, options: &Value) -> Option<(String, Vec<String>)> {
        let (content, choices) = settings::content(options)?;
        let (run, others) = self.choices.get(&content)?;
        let differing = choices.iter().zip(others).filter(|(one, other)| one != other);
        Some((run.clone(), differing.map(|((name, _), _)| (*name).to_owned()).collect()))
    }
}

/// Result of the import of one log.
enum Found {
    New(Box<ImportedLog>),
    /// The run that has it.
    Known(String),
}

fn import_log(
    store: &Store,
    log: &Log,
    chosen: Chosen<'_>,
    known: &mut Known,
    reporter: &mut dyn Reporter,
) -> Result<Found, LogError> {
    let card = &log.card;
    let deciding = deciding(log, chosen)?;
    let options = options(card, log.sha256()?, deciding.as_deref(), chosen);
    let identity = settings::identity(&options).unwrap_or_default();
    if let Some(run) = known.runs.get(&identity) {
        return Ok(Found::Known(run.clone()));
    }
    let other = known.with_other_choices(&options);
    let mut samples = repeats(log);
    let (run, mut written) = loop {
        let documents = card.planned.unwrap_or(1).max(1);
        check_size(
            || format!("the log's {documents} documents with {samples} epochs each"),
            &[documents, samples as usize],
        )
        .map_err(|error| LogError::unread(card.files.first().cloned().unwrap_or_default(), error))?;
        let settings = settings(card, options.clone(), samples);
        let mut manifest = log_manifest(card, settings);
        // Another process may be importing the same log.
        let (_lock, name) = match folder::claim_in_turn(store, &manifest.run, &manifest.settings_sha256)? {
            folder::Claimed::Equal(_, run) => return Ok(Found::Known(run.manifest.run)),
            folder::Claimed::New(lock, name) => (lock, name),
        };
        manifest.run.clone_from(&name);
        let converter = Converter {
            run: name,
            card,
            deciding: deciding.as_deref(),
            cluster: chosen.cluster,
            answers: chosen.answers,
        };
        let written = store.atomically(|| -> Result<(RunRecord, Written), Unwritten> {
            let run = store.begin(&manifest, 0)?;
            let written = write::write(store, &run, log, &converter, samples)?;
            if chosen.answers.is_some() && written.with_answer == 0 && written.without_answer > 0 {
                return Err(no_answers(card).into());
            }
            let planned = card.planned.unwrap_or(0).max(written.items) * samples as usize;
            if written.samples == planned && settings::is_whole(card) {
                manifest.status = Status::Finished;
            }
            store.update(run.id, &manifest, planned)?;
            Ok((RunRecord { manifest: manifest.clone(), planned, ..run }, written))
        });
        match written {
            Ok(written) => break written,
            Err(Unwritten::Error(error)) => return Err(error),
            // Known only now: the log is read once to its end, and written again.
            Err(Unwritten::Repeats(least)) => samples = most_repeats(log)?.max(least),
        }
    };
    remarks(log, &run, &written, chosen, reporter);
    if let Some((stored, settings)) = other {
        let run = run.manifest.run.clone();
        reporter.event(&RunEvent::notice(LogNotice::OtherChoices { run, stored, settings }));
    }
    known.add(&run);
    keep_document(store, &run, written.sums.take())?;
    Ok(Found::New(Box::new(ImportedLog {
        run,
        tool: card.tool,
        items: written.items,
        samples: written.samples,
        without_score: written.without_score,
        failed: written.failed,
        without_label: if written.labelled > 0 { written.without_label } else { 0 },
        refused: written.refused.count,
        first: written.refused.first,
    })))
}

/// The error of a file of answers that has none for the log.
pub fn no_answers(card: &LogCard) -> LogError {
    LogError::setting(format!("the file of answers has no id of the log of {} on {}", card.model, card.task))
        .hint("its ids are the custom_id, id or item of the log's rows")
}

/// Stores the document of a finished run with the run.
fn keep_document(store: &Store, run: &RunRecord, sums: Option<LogSums>) -> Result<(), LogError> {
    let Some(sums) = sums.filter(|_| run.manifest.status == Status::Finished) else {
        return Ok(folder::keep_document(store, run, &folder::suite_of(store, run)?)?);
    };
    let suite = LogSuite::of(&run.manifest.settings.suite_options)?;
    let folder = store.path().display().to_string();
    let document = sums.document(folder, run.manifest.clone(), run.planned, &suite);
    Ok(document.keep(store, run)?)
}

/// Number of repeats that are scored each, as far as the log says: most tools score them together. One if it does not say, and more
/// once they are met.
fn repeats(log: &Log) -> u32 {
    match log.card.tool {
        // More are counted, not believed.
        Tool::Inspect => log.card.repeats.filter(|repeats| *repeats <= PLAUSIBLE_REPEATS).unwrap_or(1).max(1),
        Tool::LmEval | Tool::Lighteval | Tool::OpenaiBatch | Tool::Earnest | Tool::Table => 1,
    }
}

/// Repeats that a log is believed to have before its samples were read.
const PLAUSIBLE_REPEATS: u32 = 1000;

/// Returns the largest number of repeats in the samples.
///
/// # Errors
/// A number that is beyond that of all samples: they would be lost among repeats that nobody asked for.
fn most_repeats(log: &Log) -> Result<u32, LogError> {
    let (mut most, mut count) = (1, 0_u64);
    log.samples(&mut |sample| {
        most = most.max(sample.epoch.saturating_add(1));
        count += 1;
        Ok(())
    })?;
    if u64::from(most) > count.max(u64::from(PLAUSIBLE_REPEATS)) {
        let message = format!("a sample is repeat {most}, but the log has {count} samples in all");
        let file = log.card.files.first().cloned().unwrap_or_default();
        return Err(LogError::unread(&file, message).hint("repeats are numbered from 1 for each document"));
    }
    Ok(most)
}

/// Tells what a reader of the results should know.
fn remarks(log: &Log, run: &RunRecord, written: &Written, chosen: Chosen<'_>, reporter: &mut dyn Reporter) {
    let name = || run.manifest.run.clone();
    let card = &log.card;
    for note in &card.notes {
        let told = Told { origin: Teller::Log, run: Some(name()), text: note.clone() };
        reporter.event(&RunEvent::Notice(Notice::Told(told)));
    }
    let mut warn = |notice: LogNotice| reporter.event(&RunEvent::notice(notice));
    match &card.status {
        LogStatus::Failed(reason) => warn(LogNotice::ToolFailed { run: name(), reason: reason.clone() }),
        LogStatus::Cancelled => warn(LogNotice::ToolCancelled { run: name() }),
        LogStatus::Unfinished => warn(LogNotice::ToolUnfinished { run: name() }),
        LogStatus::Finished | LogStatus::Unknown => {}
    }
    if written.renamed > 0 {
        warn(LogNotice::Renamed { run: name(), documents: written.renamed });
    }
    if written.without_prompt > 0 {
        warn(LogNotice::PromptsNotStored { run: name(), documents: written.without_prompt });
    }
    if written.cut_questions > 0 {
        warn(LogNotice::QuestionsCut { run: name(), documents: written.cut_questions });
    }
    if chosen.answers.is_some() && written.without_answer > 0 {
        warn(LogNotice::NoExpectedAnswer { run: name(), completions: written.without_answer });
    }
    if written.labelled > 0 && written.without_label > 0 {
        let field = chosen.cluster.unwrap_or(usual::CLUSTER).to_owned();
        warn(LogNotice::NoClusterLabel { run: name(), field, documents: written.without_label });
    }
    if !written.given.is_empty() {
        for scorer in write::without_scores(card, &written.given) {
            warn(LogNotice::NoScoreBy { run: name(), scorer: scorer.clone() });
        }
    }
    for (scorer, text) in &written.texts {
        warn(LogNotice::TextScores { run: name(), scorer: scorer.clone(), example: text.clone() });
    }
    if card.scorers.is_empty() && chosen.answers.is_none() {
        warn(LogNotice::NoScores { run: name() });
    }
}
