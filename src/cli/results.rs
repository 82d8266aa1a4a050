//! The results folder as the commands open it, and documents as they print them.
use earnest_results::{Document, Level, Origin, Reporter, RunEvent, folder};
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::offered;
use super::printer::Printer;
use earnest_report as report;
use earnest_report::Detail;
use earnest_results::store::{Filter, RunRecord, Store};

pub use earnest_results::folder::{chosen_scorers, document, find_run};

/// Opens existing results.
pub fn open(folder: &Path, printer: Printer) -> Result<Store, CliError> {
    let mut store = folder::open(folder)?;
    store.listen(Box::new(move |notice| printer.remark(&offered::here(&notice.to_string()))));
    Ok(store)
}

/// Prints the messages and warnings of an operation without progress.
pub struct Messages(pub Printer);

impl Reporter for Messages {
    fn event(&mut self, event: &RunEvent<'_>) {
        let RunEvent::Notice(notice) = event else { return };
        let text = offered::here(&notice.to_string());
        match notice.level() {
            Level::Message => self.0.message(&text),
            Level::Warning => self.0.warning(&text),
            // Without a session there is no engine.
            Level::Engine => {}
        }
    }
}

/// Prints the document of a run that has just ended: as JSON, or as the text of [`screen`], without a metric as the first screen.
pub fn present(document: Document, json: bool, metric: Option<&str>, printer: Printer) -> Result<(), CliError> {
    if json {
        return printer.json(&document);
    }
    let text = match metric {
        None => report::render(&document, printer.width(), Detail::First),
        metric => screen(document, metric, printer.width()),
    };
    printer.result(&text)
}

/// A document as text: on about one screen, with the suite's table of this metric, or with all of them.
pub fn screen(mut document: Document, metric: Option<&str>, width: usize) -> String {
    match metric {
        None => document.grids.truncate(1),
        Some("all") => {}
        Some(wanted) => document.grids.retain(|grid| grid.name == wanted),
    }
    let detail = if metric.is_none() { Detail::Screen } else { Detail::Tables };
    report::render(&document, width, detail)
}

/// Path of the report that `earnest run` writes without being asked.
pub fn page(folder: &Path, run: &str) -> PathBuf {
    folder.join(format!("{run}.html"))
}

/// Path of such a report that is about to be written. A link in its place is removed: the folder may be a stranger's, and the link may lead
/// anywhere.
pub fn new_page(folder: &Path, run: &str) -> PathBuf {
    let path = page(folder, run);
    if std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
        // What cannot be removed cannot be replaced either; writing says so.
        std::fs::remove_file(&path).ok();
    }
    path
}

/// True if `earnest samples RUN --wrong` shows something of a run: a wrong answer, or a sample without one.
pub fn has_wrong(store: &Store, run: &RunRecord) -> Result<bool, CliError> {
    let wrong = Filter { failed: true, of_log: run.manifest.settings.origin() == Origin::Log, ..Filter::default() };
    Ok(store.samples(run, wrong).next().transpose()?.is_some())
}

/// The commands that may follow a run, a line each.
pub fn next_lines(commands: impl IntoIterator<Item = String>) -> Vec<String> {
    let begin = |index| if index == 0 { "next: " } else { "      " };
    commands.into_iter().enumerate().map(|(index, command)| format!("{}{command}", begin(index))).collect()
}

/// The command that shows the wrong answers of a run; `option` names its results folder.
pub fn wrong_samples(run: &str, option: &str) -> String {
    format!("earnest samples {run}{option} --wrong")
}

/// The command that compares a run with one of the same questions.
pub fn compare_with(run: &str, option: &str) -> String {
    format!("earnest compare OTHER {run}{option} (OTHER: a run of the same questions)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_command_is_the_next_one() {
        let wrong = wrong_samples("r", " --results x");
        let lines = next_lines([wrong, compare_with("r", "")]);
        assert_eq!(
            lines,
            [
                "next: earnest samples r --results x --wrong",
                "      earnest compare OTHER r (OTHER: a run of the same questions)"
            ]
        );
        assert_eq!(next_lines([]), Vec::<String>::new());
    }
}
