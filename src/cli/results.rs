//! The results folder as the commands open it.
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::args::{MetricArg, ResultsArgs};
use super::catalogue;
use super::error::CliError;
use super::printer::Printer;
use crate::report::{self, Document};
use crate::run::RunError;
use crate::run::store::{FILE_NAME, RunLock, RunRecord, Store, legacy_folders};

/// True if the folder has results, also of earlier versions.
pub fn is_there(folder: &Path) -> Result<bool, CliError> {
    Ok(folder.join(FILE_NAME).exists() || !legacy_folders(folder)?.is_empty())
}

/// Opens results that must be there.
pub fn open(args: &ResultsArgs, printer: Printer) -> Result<Store, CliError> {
    let folder = args.folder.as_path();
    if legacy_folders(folder)?.is_empty() {
        return Ok(Store::open(folder)?);
    }
    create(folder, printer)
}

/// Opens results, which may be new, and takes runs of earlier versions over.
pub fn create(folder: &Path, printer: Printer) -> Result<Store, CliError> {
    let store = Store::create(folder)?;
    for run in legacy_folders(folder)? {
        let (name, rows) = store.take_over(&run, |manifest| -> Result<_, CliError> {
            let suite = catalogue::stored(&manifest.settings)?;
            let walk = manifest.plan().walk(suite.as_ref());
            Ok(walk.map(|planned| ((planned.item.id, planned.sample), planned.index)).collect())
        })?;
        printer.message(&format!(
            "took {name} ({rows} samples) over from an earlier version's folder, which is now in {}",
            folder.join("taken-over").display()
        ));
    }
    Ok(store)
}

/// A run's document from its rows, whose texts are not read.
pub fn document(store: &Store, run: &RunRecord) -> Result<Document, CliError> {
    let suite = catalogue::stored(&run.manifest.settings)?;
    Ok(Document::stored(store, run, suite.as_ref())?)
}

/// Prints a document: as JSON whole, as text like [`screen`].
pub fn present(document: Document, json: bool, metric: MetricArg, printer: Printer) -> Result<(), CliError> {
    if json { printer.json(&document) } else { printer.result(&screen(document, metric, printer)) }
}

/// A document as text with the wanted one of the suite's tables.
pub fn screen(mut document: Document, metric: MetricArg, printer: Printer) -> String {
    if metric != MetricArg::All {
        let wanted = metric.to_possible_value();
        document.grids.retain(|grid| wanted.as_ref().is_some_and(|value| value.get_name() == grid.name));
    }
    report::render(&document, printer.width())
}

/// Where the page of a run is put that the program writes by itself.
pub fn page(folder: &Path, run: &str) -> PathBuf {
    folder.join(format!("{run}.html"))
}

/// A name that no run has, `base`, `base.2`, `base.3`, ..., and the right to write it.
pub fn free_name(store: &Store, base: &str) -> Result<(RunLock, String), CliError> {
    for number in 1_usize.. {
        let name = if number == 1 { base.to_owned() } else { format!("{base}.{number}") };
        if store.exactly(&name)?.is_some() {
            continue;
        }
        let lock = match store.lock(&name) {
            Ok(lock) => lock,
            Err(RunError::Locked { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        // Another process may have begun and ended it in between.
        if store.exactly(&name)?.is_none() {
            return Ok((lock, name));
        }
    }
    unreachable!("the numbers do not end")
}
