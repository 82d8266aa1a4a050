//! Paired differences of runs that asked alike to one of them.
use axum::extract::State;
use axum::response::Response;
use earnest_report::compare::compare_runs;
use earnest_results::scores::CompareSettings;
use earnest_results::store::{RunRecord, Store};
use earnest_results::{Level, Reporter, RunEvent};
use earnest_stats::holm;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::leaderboard::asks_alike;
use super::record;
use crate::app::{Asks, Page, Parameters, RUN, Shared};
use crate::failed::Failed;
use crate::limits::BESIDE;
use crate::work::Kind;

/// Query of the differences.
#[derive(Deserialize)]
pub(crate) struct ToBase {
    base: String,
}

impl Parameters for ToBase {
    const TAKE: &'static [(&'static str, &'static str)] = &[("base", RUN)];
}

/// Keeps warnings for the page.
#[derive(Default)]
pub(crate) struct Warnings(pub Vec<String>);

impl Reporter for Warnings {
    fn event(&mut self, event: &RunEvent) {
        if let RunEvent::Notice(notice) = event
            && notice.level() == Level::Warning
        {
            self.0.push(notice.to_string());
        }
    }
}

/// A run beside the base.
#[derive(Serialize)]
struct Beside {
    run: String,
    model: String,
    items: u64,
    difference: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    p: Option<f64>,
    /// Reason for there being no difference.
    problem: Option<String>,
}

/// Shows the paired differences of runs that asked alike to one of them, with Holm's adjustment over the runs.
pub(crate) async fn page(State(app): Shared, Asks(ToBase { base }): Asks<ToBase>) -> Response {
    app.page(Kind::Slow, move |store, asked| {
        let base = record(store, &base)?;
        let suite = &base.manifest.settings.suite;
        let mut others = Vec::new();
        for run in store.runs()? {
            if run.manifest.settings.suite == *suite && run.id != base.id && asks_alike(store, &base, &run)? {
                others.push(run);
            }
        }
        let left = others.len().saturating_sub(BESIDE) as u64;
        // The newest.
        others.drain(..others.len() - others.len().min(BESIDE));
        let beside = |run: &RunRecord| asked.check().map(|()| beside(store, &base, run));
        let mut rows = others.iter().map(beside).collect::<Result<Vec<Beside>, Failed>>()?;
        adjust(&mut rows)?;
        rows.sort_by(|one, other| {
            let value = |row: &Beside| row.difference.unwrap_or(f64::NEG_INFINITY);
            value(other).total_cmp(&value(one))
        });
        let title = format!("Differences to {}", base.manifest.run);
        Ok(Page::new(
            "differences.html",
            json!({"title": title, "base_run": base.manifest.run, "suite": suite, "rows": rows, "left": left}),
        ))
    })
    .await
}

fn beside(store: &Store, base: &RunRecord, run: &RunRecord) -> Beside {
    let names = [base, run].map(|run| run.manifest.run.clone());
    let compared = compare_runs(store, &names, &CompareSettings::default(), &mut Warnings::default());
    let (run, model) = (run.manifest.run.clone(), run.manifest.model.name.clone());
    let none = Beside { run, model, items: 0, difference: None, low: None, high: None, p: None, problem: None };
    match compared.map(|mut found| found.pop()) {
        Ok(Some(found)) => Beside {
            items: found.items as u64,
            difference: Some(found.overall.difference),
            low: found.overall.interval.map(|interval| interval.0),
            high: found.overall.interval.map(|interval| interval.1),
            p: found.overall.p,
            ..none
        },
        Ok(None) => none,
        Err(error) => Beside { problem: Some(error.to_string()), ..none },
    }
}

/// Adjusts the p values of a family in place, by Holm's method.
fn adjust(rows: &mut [Beside]) -> Result<(), Failed> {
    let mut tested: Vec<&mut f64> = rows.iter_mut().filter_map(|row| row.p.as_mut()).collect();
    let adjusted = holm(&tested.iter().map(|p| **p).collect::<Vec<_>>());
    let adjusted = adjusted.map_err(|error| Failed::unprocessable(&error, None))?;
    tested.iter_mut().zip(adjusted).for_each(|(p, adjusted)| **p = adjusted);
    Ok(())
}
