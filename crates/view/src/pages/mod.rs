//! Pages, one module each.
pub(crate) mod compare;
pub(crate) mod differences;
pub(crate) mod leaderboard;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod samples;

use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use earnest_report::plot::Figure;
use earnest_results::store::{RunLock, RunRecord, Store, did_you_mean};
use earnest_results::{Document, Origin, Status, folder};

use crate::failed::Failed;
use crate::shape::Share;

/// Returns a run by its full name.
pub(crate) fn record(store: &Store, name: &str) -> Result<RunRecord, Failed> {
    match store.exactly(name)? {
        Some(run) => Ok(run),
        None => Err(Failed::not_found(format!("there is no run {name} in these results"))
            .hint(&did_you_mean(name, &store.names()?))),
    }
}

/// Returns the status in the words of `runs list`.
pub(crate) fn status(store: &Store, run: &RunRecord) -> Result<&'static str, Failed> {
    Ok(match run.manifest.status {
        Status::Finished => "finished",
        _ if RunLock::is_taken(store.results(), &run.manifest.run)? => "working",
        _ if run.manifest.settings.origin() != Origin::Evaluated => "partial",
        Status::Running | Status::Interrupted => "interrupted",
    })
}

/// Returns names that tell runs apart: their models', with the settings in which runs of one model differ.
pub(crate) fn labels(runs: &[&RunRecord]) -> Vec<String> {
    let own = own_labels(runs);
    let name = |(run, own): (&&RunRecord, String)| match own.is_empty() {
        true => run.manifest.model.name.clone(),
        false => format!("{}, {own}", run.manifest.model.name),
    };
    runs.iter().zip(own).map(name).collect()
}

/// Returns the settings in which each run differs from the others of its model, in words; empty for the only one of a model.
pub(crate) fn own_labels(runs: &[&RunRecord]) -> Vec<String> {
    earnest_results::own_labels(&runs.iter().map(|run| &run.manifest).collect::<Vec<_>>())
}

/// A figure as a file that the browser saves, in light colours.
pub(crate) fn as_file(figure: &Figure) -> Response {
    // The name of a figure is one of a file.
    let disposition = format!("attachment; filename=\"{}.svg\"", figure.name);
    let kind = "image/svg+xml; charset=utf-8";
    ([(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, disposition)], figure.standalone()).into_response()
}

/// Headline of a run: its main value over all tasks, and the scorer that gives it.
pub(crate) fn headline(document: &Document) -> Option<(Share, String)> {
    let all = document.summary.rows.last()?;
    let (name, value) = document.main_value(all)?;
    let scorer = document.readings.as_ref().map_or_else(|| name.clone(), |readings| readings.decides());
    Some((Share { value: value.estimate, low: value.low, high: value.high }, scorer))
}

/// Returns the document of a run, its seal checked.
pub(crate) fn document(store: &Store, run: &RunRecord) -> Result<Document, Failed> {
    Ok(folder::document(store, run)?)
}
