//! The results folder as the commands open it.
use std::path::{Path, PathBuf};

use super::catalogue;
use super::error::CliError;
use super::printer::Printer;
use earnest_eval::report::{self, Document};
use earnest_eval::run::store::{FILE_NAME, RunRecord, Store, legacy_folders};
use earnest_eval::run::{Reporter, RunEvent, Status};
use earnest_eval::suites::create_results;
use earnest_tasks::suite::{Item, Suite};

/// True if the folder has results, also of earlier versions.
pub fn is_there(folder: &Path) -> Result<bool, CliError> {
    Ok(folder.join(FILE_NAME).exists() || !legacy_folders(folder)?.is_empty())
}

/// Opens results that must be there.
pub fn open(folder: &Path, printer: Printer) -> Result<Store, CliError> {
    if legacy_folders(folder)?.is_empty() {
        return Ok(Store::open(folder)?);
    }
    create(folder, printer)
}

/// Opens results, which may be new, and takes runs of earlier versions over.
pub fn create(folder: &Path, printer: Printer) -> Result<Store, CliError> {
    Ok(create_results(folder, &mut Messages(printer))?)
}

/// Prints the messages of an operation that has no progress.
struct Messages(Printer);

impl Reporter for Messages {
    fn event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Message(text) => self.0.message(text),
            RunEvent::Warning(text) => self.0.warning(text),
            _ => {}
        }
    }
}

/// A run's document: as it was kept with a finished run, else from its rows, whose texts are not read.
pub fn document(store: &Store, run: &RunRecord) -> Result<Document, CliError> {
    if let Some(kept) = Document::kept(store, run)? {
        return Ok(kept);
    }
    match catalogue::stored(&run.manifest.settings) {
        Ok(suite) => Ok(Document::stored(store, run, suite.as_ref())?),
        Err(error) if store.has_questions(run)? => Ok(Document::without_suite(store, run, &error.message)?),
        Err(error) => Err(error),
    }
}

/// Makes the document of a run, if it is finished, and keeps it with the run.
pub fn conclude(store: &Store, run: &RunRecord, suite: &dyn Suite) -> Result<(), CliError> {
    if run.manifest.status == Status::Finished {
        Document::stored(store, run, suite)?.keep(store, run)?;
    }
    Ok(())
}

/// The suite of a stored run; none, with a warning, where it cannot be had and the run has its questions stored.
pub fn suite(store: &Store, run: &RunRecord, printer: Printer) -> Result<Option<Box<dyn Suite>>, CliError> {
    match catalogue::stored(&run.manifest.settings) {
        Ok(suite) => Ok(Some(suite)),
        Err(error) if store.has_questions(run)? => {
            let name = &run.manifest.run;
            printer.warning(&format!(
                "{name} is held against its stored questions and not judged again: {}",
                error.message
            ));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Shows every question of a run: as stored, or, of versions that stored none, as the suite makes them.
pub fn each_question(store: &Store, run: &RunRecord, mut each: impl FnMut(Item)) -> Result<(), CliError> {
    if store.has_questions(run)? {
        return store.questions(run).all().try_for_each(|stored| {
            each(stored?.item);
            Ok(())
        });
    }
    let suite = catalogue::stored(&run.manifest.settings)?;
    suite.items().take(run.manifest.plan().items(suite.as_ref())).for_each(each);
    Ok(())
}

/// The rules that decide what is right in a run; none where neither this program nor the run knows them.
pub fn primary(store: &Store, run: &RunRecord) -> Result<Vec<String>, CliError> {
    let rules = catalogue::primary(&run.manifest.settings);
    if !rules.is_empty() {
        return Ok(rules);
    }
    let readings = Document::kept(store, run)?.and_then(|kept| kept.readings);
    Ok(readings.map(|readings| readings.primary).unwrap_or_default())
}

/// Prints a document: as JSON whole, as text like [`screen`].
pub fn present(document: Document, json: bool, metric: Option<&str>, printer: Printer) -> Result<(), CliError> {
    if json { printer.json(&document) } else { printer.result(&screen(document, metric, printer)) }
}

/// A document as text with the wanted one of the suite's tables.
pub fn screen(mut document: Document, metric: Option<&str>, printer: Printer) -> String {
    match metric {
        None => document.grids.truncate(1),
        Some("all") => {}
        Some(wanted) => document.grids.retain(|grid| grid.name == wanted),
    }
    report::render(&document, printer.width())
}

/// Where the page of a run is put that the program writes by itself.
pub fn page(folder: &Path, run: &str) -> PathBuf {
    folder.join(format!("{run}.html"))
}
