//! A run: headline, what it was asked, figures, notes; live while it works.
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use earnest_report::page::{QuestionTexts, ReportRun, Section, figures, linked_heat};
use earnest_report::plot::{Figure, LARGEST, row_query};
use earnest_report::{options, sampling, warnings};
use earnest_results::store::{RunRecord, Store};
use earnest_results::{Document, Origin};
use earnest_tasks::suite::registry::samples_of_row;
use earnest_tasks::suite::{SummaryRow, profile};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{headline, record, status};
use crate::app::{Asks, NUMBER, Page, Parameters, Shared, TEXT};
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
    /// Parameters of the address of its samples; none where it joins several tasks.
    samples: Option<String>,
}

/// A figure.
#[derive(Serialize)]
struct Drawn {
    name: String,
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
        let samples_of = |row: &str| samples_of_row(&settings.suite, &settings.suite_options, row);
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
                samples: match row.name.as_str() {
                    // Where the sum leaves samples out, its link would lead to more of them.
                    "all" => (row.n + document.totals.failed == document.totals.recorded).then(String::new),
                    name => samples_of(name).map(|row| row_query(&row)),
                },
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
        let shown = |(figure, wide): (Figure, bool)| Drawn {
            name: figure.name.clone(),
            title: figure.title.clone(),
            svg: figure.inline(),
            wide,
            linked: figure.has_links(),
            least: figure.width,
            widest: LARGEST * figure.width,
        };
        let drawn = if is_drawn { drawn(document, &format!("{samples}?")) } else { Vec::new() };
        let drawings: Vec<Drawn> = drawn.into_iter().map(shown).collect();
        let title = format!("{} on {}", run.manifest.settings.suite, run.manifest.model.name);
        let of_suite = |other: &RunRecord| other.manifest.settings.suite == run.manifest.settings.suite;
        let alike: Vec<RunRecord> = store.runs()?.into_iter().filter(of_suite).collect();
        let alike_runs: Vec<&RunRecord> = alike.iter().collect();
        let labels = super::labels(&alike_runs);
        // What sets this run off from the others of its model.
        let own = super::own_labels(&alike_runs);
        let own = alike.iter().zip(own).find(|(other, _)| other.id == run.id).map(|(_, own)| own);
        let tags: Vec<String> = own.into_iter().filter(|own| !own.is_empty()).collect();
        let named = alike.iter().zip(labels).rev();
        let others = named.filter(|(other, _)| other.id != run.id).map(|(other, label)| (other.manifest.run.clone(), label));
        // The newest, in the order in which they were made.
        let (mut others, more_others) = limits::first(others, OPTIONS, "runs", "name one with `earnest compare`");
        others.reverse();
        let before = (from > 0).then(|| from.saturating_sub(ROWS));
        let after = (number > from.saturating_add(ROWS)).then(|| from + ROWS);
        Ok(Page::new(
            "run.html",
            json!({"title": title, "tags": tags, "run": name, "share": share, "scorer": scorer, "rows": rows, "facts": facts, "notes": notes, "figures": drawings, "samples": samples, "working": working, "others": others, "more_others": more_others, "adaptive": adaptive, "number": number, "from": from, "before": before, "after": after}),
        ))
    })
    .await
}

/// The figures of a run's page, each true if it is as wide as the page; cells of the heat map lead to `samples`. Those of outcomes and latencies need every sample,
/// and are in the report.
fn drawn(document: Document, samples: &str) -> Vec<(Figure, bool)> {
    let run = ReportRun::stored(document, Vec::new(), QuestionTexts::default());
    let curves = figures(std::slice::from_ref(&run), &[], false).into_iter();
    let curves = curves.filter(|placed| placed.section == Section::Curves).map(|placed| (placed.figure, false));
    linked_heat(&run, samples).map(|figure| (figure, true)).into_iter().chain(curves).collect()
}

/// A figure by its name.
#[derive(Deserialize)]
pub(crate) struct Named {
    name: String,
}

impl Parameters for Named {
    const TAKE: &'static [(&'static str, &'static str)] = &[("name", TEXT)];
}

/// Returns a figure of a run as a file for papers.
pub(crate) async fn figure(State(app): Shared, Path(name): Path<String>, Asks(wanted): Asks<Named>) -> Response {
    let work = move |store: &Store, _: &Asked| -> Result<Figure, Failed> {
        let run = record(store, &name)?;
        let document = ReportRun::stored(super::document(store, &run)?, Vec::new(), QuestionTexts::default());
        let all = figures(std::slice::from_ref(&document), &[], true);
        let found = all.into_iter().map(|placed| placed.figure).find(|figure| figure.name == wanted.name);
        found.ok_or_else(|| Failed::not_found(format!("{name} has no figure {}", wanted.name)))
    };
    match app.read(Kind::Quick, work).await {
        Ok(figure) => super::as_file(&figure),
        Err(failed) => app.failure(failed),
    }
}

/// Returns the 50 % limit of a skill with its interval, in digits; none of a skill without a limit.
fn limit(row: &SummaryRow) -> Option<String> {
    let (_, value) = row.values.iter().find(|(name, _)| name == profile::LIMITS[1])?;
    let digits = |value: f64| if value.is_infinite() { "\u{221e}".to_owned() } else { format!("{value:.1}") };
    (!value.estimate.is_nan())
        .then(|| format!("{} [{}, {}]", digits(value.estimate), digits(value.low), digits(value.high)))
}

/// Facts about a run, by name.
fn facts(document: &Document, status: &str) -> Vec<(&'static str, String)> {
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
    if settings.origin() == Origin::Evaluated {
        facts.push(("sampling", sampling(&settings.generation.sampling)));
        facts.extend(settings.generation.max_tokens.map(|tokens| ("token limit", tokens.to_string())));
    }
    facts.extend(settings.limit.map(|limit| ("items", format!("the first {limit}"))));
    facts.push(("settings", manifest.settings_sha256.chars().take(12).collect()));
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
