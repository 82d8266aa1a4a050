//! Import of other tools' logs, each as a run with the tool's own scores.

mod answers;
mod convert;
mod settings;
mod write;

use std::collections::HashMap;
use std::path::PathBuf;

pub use answers::Answers;
pub(crate) use convert::{Converted, Converter, no_field};
pub use settings::card_of;
pub(crate) use settings::{Chosen, log_manifest, options, primary, settings, with_own_names};

use crate::EvalError;
use crate::logs::{self, FindOptions, Log, LogStatus, Tool};
use crate::report::LogSums;
use crate::results;
use crate::run::store::{RunRecord, Store};
use crate::run::{Reporter, RunEvent, Status};
use earnest_tasks::suite::check_size;
use earnest_tasks::suite::log::LogSuite;
use write::{Unwritten, Written};

/// Settings of an import of logs.
#[derive(Debug, Clone, Default)]
pub struct LogImportSettings {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// Search and columns; logs and samples that cannot be read are left out with `keep_going`.
    pub find: FindOptions,
    /// Primary scorer; none for each tool's own.
    pub primary: Option<String>,
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
    pub refused: Vec<EvalError>,
}

impl ImportedLogs {
    /// Returns true if a log or a sample was left out.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty() || self.runs.iter().any(|run| run.refused > 0)
    }
}

/// An imported log.
#[derive(Debug)]
pub struct ImportedLog {
    pub run: RunRecord,
    pub tool: Tool,
    /// Documents and samples that were written.
    pub items: usize,
    pub samples: usize,
    /// Samples that could not be read.
    pub refused: usize,
    /// The first errors of those.
    pub first: Vec<EvalError>,
}

/// Imports every log in files and folders as a run. A log that was imported before is said and left alone.
///
/// # Errors
/// [`EvalError`]: the first log or sample that cannot be read, unless `keep_going` leaves it out. A log is stored whole or not
/// at all.
pub fn import_logs(settings: &LogImportSettings, reporter: &mut dyn Reporter) -> Result<ImportedLogs, EvalError> {
    let answers = settings.answers.as_deref().map(Answers::read).transpose()?;
    let mut found = logs::find(&settings.paths, &settings.find)?;
    found.logs.iter_mut().for_each(|log| log.card = with_own_names(&log.card));
    found.notes.into_iter().for_each(|note| reporter.event(&RunEvent::Message(note)));
    if found.logs.is_empty() && found.refused.is_empty() {
        return Err(nothing_found(&settings.paths));
    }
    let chosen = Chosen {
        primary: settings.primary.as_deref(),
        cluster: settings.cluster.as_deref(),
        answers: answers.as_ref(),
    };
    // Names that are wrong for every log are refused before anything is stored.
    for log in &found.logs {
        if let Err(error) = primary(&log.card, chosen)
            && !settings.find.keep_going
        {
            return Err(error);
        }
    }
    let store = results::create(&settings.results, reporter)?;
    let mut known: HashMap<String, String> = HashMap::new();
    for run in store.runs()? {
        let identity = settings::identity(&run.manifest.settings.suite_options);
        known.extend(identity.map(|identity| (identity, run.manifest.run)));
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
pub(crate) fn nothing_found(paths: &[PathBuf]) -> EvalError {
    let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    EvalError::setting(format!("there is no log in {}", named.join(", "))).hint(
        "logs of lm-evaluation-harness need its samples (--log_samples), those of lighteval its details (--save-details); \
         --columns says what the columns of a plain table are",
    )
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
    known: &mut HashMap<String, String>,
    reporter: &mut dyn Reporter,
) -> Result<Found, EvalError> {
    let card = &log.card;
    let primary = primary(card, chosen)?;
    let options = options(card, log.sha256()?, primary.as_deref(), chosen);
    let identity = settings::identity(&options).unwrap_or_default();
    if let Some(run) = known.get(&identity) {
        return Ok(Found::Known(run.clone()));
    }
    let mut samples = repeats(log);
    let (run, mut written) = loop {
        let documents = card.planned.unwrap_or(1).max(1);
        check_size(
            || format!("the log's {documents} documents with {samples} epochs each"),
            &[documents, samples as usize],
        )
        .map_err(|error| EvalError::log(card.files.first().cloned().unwrap_or_default(), error))?;
        let settings = settings(card, options.clone(), samples);
        let mut manifest = log_manifest(card, settings);
        let (_lock, name) = results::free_name(store, &manifest.run)?;
        manifest.run.clone_from(&name);
        let converter = Converter {
            run: name,
            card,
            primary: primary.as_deref(),
            cluster: chosen.cluster,
            answers: chosen.answers,
        };
        let written = store.atomically(|| -> Result<(RunRecord, Written), Unwritten> {
            let run = store.begin(&manifest, 0)?;
            let written = write::write(store, &run, log, &converter, samples)?;
            let planned = card.planned.unwrap_or(0).max(written.items) * samples as usize;
            if written.samples == planned && settings::is_whole(card) {
                manifest.status = Status::Finished;
            }
            store.update(run.id, &manifest, planned)?;
            Ok((RunRecord { manifest: manifest.clone(), planned: Some(planned), ..run }, written))
        });
        match written {
            Ok(written) => break written,
            Err(Unwritten::Error(error)) => return Err(error),
            // Known only now: the log is read once to its end, and written again.
            Err(Unwritten::Repeats(least)) => samples = most_repeats(log)?.max(least),
        }
    };
    remarks(log, &run, &written, chosen, reporter);
    known.insert(identity, run.manifest.run.clone());
    keep_document(store, &run, written.sums.take())?;
    Ok(Found::New(Box::new(ImportedLog {
        run,
        tool: card.tool,
        items: written.items,
        samples: written.samples,
        refused: written.refused.count,
        first: written.refused.first,
    })))
}

/// Stores the document of a finished run with the run.
fn keep_document(store: &Store, run: &RunRecord, sums: Option<LogSums>) -> Result<(), EvalError> {
    let Some(sums) = sums.filter(|_| run.manifest.status == Status::Finished) else {
        return results::keep_document(store, run, results::suite_of(store, run)?.as_ref());
    };
    let suite = LogSuite::of(&run.manifest.settings.suite_options)?;
    let folder = store.path().display().to_string();
    let document = sums.document(folder, run.manifest.clone(), run.planned.unwrap_or_default(), &suite);
    Ok(document.keep(store, run)?)
}

/// Number of repeats that are scored each, as far as the log says: most tools score them together. One if it does not say, and more
/// once they are met.
fn repeats(log: &Log) -> u32 {
    match log.card.tool {
        Tool::Inspect => log.card.repeats.unwrap_or(1).max(1),
        Tool::LmEval | Tool::Lighteval | Tool::OpenaiBatch | Tool::Earnest | Tool::Table => 1,
    }
}

fn most_repeats(log: &Log) -> Result<u32, EvalError> {
    let mut most = 1;
    log.samples(&mut |sample| {
        most = most.max(sample.epoch.saturating_add(1));
        Ok(())
    })?;
    Ok(most)
}

/// Says what a reader of the results should know.
fn remarks(log: &Log, run: &RunRecord, written: &Written, chosen: Chosen<'_>, reporter: &mut dyn Reporter) {
    let name = &run.manifest.run;
    let card = &log.card;
    let mut warn = |text: String| reporter.event(&RunEvent::Warning(text));
    card.notes.iter().for_each(|note| warn(format!("{name}: {note}")));
    match &card.status {
        LogStatus::Failed(reason) => warn(format!("{name}: the tool stopped with an error: {reason}")),
        LogStatus::Cancelled => warn(format!("{name}: the tool was cancelled")),
        LogStatus::Unfinished => warn(format!("{name}: the tool had not finished")),
        LogStatus::Finished | LogStatus::Unknown => {}
    }
    if written.renamed > 0 {
        warn(format!("{name}: {} documents have the id of an earlier one; they are numbered (ID#2)", written.renamed));
    }
    if chosen.answers.is_some() && written.without_answer > 0 {
        warn(format!("{name}: {} completions have no expected answer and no score", written.without_answer));
    }
    if card.scorers.is_empty() && chosen.answers.is_none() {
        warn(format!("{name}: the log has no scores; --answers FILE reads its completions as answers"));
    }
}
