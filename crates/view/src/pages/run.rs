//! A run: headline, what it was asked, figures, notes; live while it works.
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use earnest_report::page::{QuestionTexts, ReportRun, Section, figures, linked_heat};
use earnest_report::plot::{Figure, LARGEST};
use earnest_report::{options, warnings};
use earnest_results::store::{RunRecord, Store};
use earnest_tasks::suite::registry::rows_of_tasks;
use earnest_tasks::suite::{SummaryRow, profile};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{headline, record, status};
use crate::app::{Asks, NUMBER, Page, Parameters, Shared};
use crate::failed::Failed;
use crate::limits::{self, DRAWN_POINTS, DRAWN_TASKS, NOTES, OPTIONS, ROWS};
use crate::shape::{Share, path_segment};
use crate::work::{Asked, Kind};

/// A row of the run's table.
#[derive(Serialize)]
struct TaskValue {
    task: String,
    n: u64,
    share: Option<Share>,
    /// The 50 % limit with its interval, in digits, of an adaptive run.
    limit: Option<String>,
    is_total: bool,
    /// It has samples of its own, which a link shows.
    linked: bool,
}

/// A figure.
#[derive(Serialize)]
struct Drawn {
    title: String,
    svg: String,
    wide: bool,
    /// Its cells are links.
    linked: bool,
    /// Width in CSS pixels below which it scrolls on narrow screens, and beyond which it is not enlarged.
    least: f64,
    widest: f64,
}

/// Part of the table of tasks.
#[derive(Deserialize)]
pub(crate) struct Part {
    /// Tasks before it.
    #[serde(default)]
    from: usize,
}

impl Parameters for Part {
    const TAKE: &'static [(&'static str, &'static str)] = &[("from", NUMBER)];
}

/// Shows a run.
pub(crate) async fn page(State(app): Shared, Path(name): Path<String>, Asks(Part { from }): Asks<Part>) -> Response {
    let samples = format!("{}run/{}/samples", app.base, path_segment(&name));
    app.page(Kind::Quick, move |store, _| {
        let run = record(store, &name)?;
        let document = super::document(store, &run)?;
        let (share, scorer) = headline(&document).unzip();
        let adaptive = run.manifest.settings.is_adaptive();
        let settings = &run.manifest.settings;
        let tasks = rows_of_tasks(&settings.suite, &settings.suite_options);
        let number = document.summary.rows.iter().filter(|row| row.name != "all").count();
        let of_task = document.summary.rows.iter().filter(|row| row.name != "all").skip(from).take(ROWS);
        let all = document.summary.rows.iter().filter(|row| row.name == "all");
        let rows: Vec<TaskValue> = of_task
            .chain(all)
            .map(|row| TaskValue {
                task: row.name.clone(),
                n: row.n as u64,
                share: document.main_value(row).map(|(_, value)| Share {
                    value: value.estimate,
                    low: value.low,
                    high: value.high,
                }),
                limit: adaptive.then(|| limit(row)).flatten(),
                is_total: row.name == "all",
                linked: row.name == "all" || tasks.as_ref().is_none_or(|tasks| tasks.contains(&row.name)),
            })
            .collect();
        let facts = facts(&document, status(store, &run)?);
        let mut notes = document.summary.notes.clone();
        notes.extend(warnings(&document));
        notes.iter_mut().for_each(|note| *note = options(note));
        let points: usize = document.summary.series.iter().map(|series| series.points.len()).sum();
        let is_drawn = number <= DRAWN_TASKS && points <= DRAWN_POINTS;
        if !is_drawn {
            notes.insert(0, format!("Figures are drawn here of up to {DRAWN_TASKS} tasks and {DRAWN_POINTS} points; this run has {number} tasks and {points} points: `earnest report` draws them."));
        }
        let (mut notes, more_notes) = limits::first(notes, NOTES, "notes", "`earnest runs show` prints them");
        notes.extend(more_notes);
        let working = status(store, &run)? == "working";
        // Figures of outcomes and latencies need every sample, and are in the report.
        let drawn = is_drawn.then(|| ReportRun::stored(document, Vec::new(), QuestionTexts::default()));
        let shown = |figure: &Figure, wide| Drawn {
            title: figure.title.clone(),
            svg: figure.inline(),
            wide,
            linked: figure.has_links(),
            least: figure.width,
            widest: LARGEST * figure.width,
        };
        let mut drawings: Vec<Drawn> = Vec::new();
        if let Some(drawn) = &drawn {
            drawings.extend(linked_heat(drawn, &format!("{samples}?")).map(|figure| shown(&figure, true)));
            let curves = figures(std::slice::from_ref(drawn), &[], false).into_iter();
            let curves = curves.filter(|placed| placed.section == Section::Curves);
            drawings.extend(curves.map(|placed| shown(&placed.figure, false)));
        }
        let title = format!("{} on {}", run.manifest.settings.suite, run.manifest.model.name);
        let of_suite = |other: &RunRecord| other.manifest.settings.suite == run.manifest.settings.suite;
        let alike: Vec<RunRecord> = store.runs()?.into_iter().filter(of_suite).collect();
        let labels = super::labels(&alike.iter().collect::<Vec<_>>());
        let named = alike.iter().zip(labels).rev();
        let others = named.filter(|(other, _)| other.id != run.id).map(|(other, label)| (other.manifest.run.clone(), label));
        // The newest, in the order in which they were made.
        let (mut others, more_others) = limits::first(others, OPTIONS, "runs", "name one with `earnest compare`");
        others.reverse();
        let before = (from > 0).then(|| from.saturating_sub(ROWS));
        let after = (number > from.saturating_add(ROWS)).then(|| from + ROWS);
        Ok(Page::new(
            "run.html",
            json!({"title": title, "run": name, "share": share, "scorer": scorer, "rows": rows, "facts": facts, "notes": notes, "figures": drawings, "samples": samples, "working": working, "others": others, "more_others": more_others, "adaptive": adaptive, "number": number, "from": from, "before": before, "after": after}),
        ))
    })
    .await
}

/// Returns the 50 % limit of a skill with its interval, in digits; none of a skill without a limit.
fn limit(row: &SummaryRow) -> Option<String> {
    let (_, value) = row.values.iter().find(|(name, _)| name == profile::LIMITS[1])?;
    let digits = |value: f64| if value.is_infinite() { "\u{221e}".to_owned() } else { format!("{value:.1}") };
    (!value.estimate.is_nan())
        .then(|| format!("{} [{}, {}]", digits(value.estimate), digits(value.low), digits(value.high)))
}

/// Facts about a run, by name.
fn facts(document: &earnest_results::Document, status: &str) -> Vec<(&'static str, String)> {
    let (manifest, totals) = (&document.manifest, &document.totals);
    let settings = &manifest.settings;
    let mut facts = vec![
        ("model", manifest.model.name.clone()),
        ("suite", format!("{} {}", settings.suite, settings.suite_version)),
        ("status", status.to_owned()),
        ("samples", format!("{} of {} planned", totals.recorded, totals.planned)),
        ("prompts", settings.prompts()),
        ("no answer", totals.failed.to_string()),
        ("cut off", totals.truncated.to_string()),
        ("started", earnest_results::started(manifest).unwrap_or_else(|| "unknown".to_owned())),
    ];
    if totals.completion_tokens > 0 {
        facts.push(("tokens", totals.completion_tokens.to_string()));
    }
    if manifest.generation_s > 0.0 {
        facts.push(("seconds", format!("{:.2}", manifest.generation_s)));
    }
    facts.push(("settings", manifest.settings_sha256.clone()));
    facts
}

/// Progress of a run.
#[derive(Serialize)]
struct Progress {
    status: &'static str,
    recorded: usize,
    planned: usize,
    accuracy: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// Returns the progress of a run as JSON.
pub(crate) async fn progress(State(app): Shared, Path(name): Path<String>) -> Response {
    let work = move |store: &Store, _: &Asked| -> Result<Progress, Failed> {
        let run = record(store, &name)?;
        let sums = store.aggregate(&run)?;
        let accuracy = sums.accuracy().filter(|_| !run.manifest.settings.is_adaptive());
        Ok(Progress {
            status: status(store, &run)?,
            recorded: sums.totals.recorded,
            planned: run.planned,
            accuracy: accuracy.map(|accuracy| accuracy.value),
            low: accuracy.map(|accuracy| accuracy.low),
            high: accuracy.map(|accuracy| accuracy.high),
        })
    };
    match app.read(Kind::Quick, work).await {
        Ok(progress) => Json(progress).into_response(),
        Err(failed) => failed.into_response(),
    }
}
