//! The first page: runs that asked alike, best first, and tasks by runs.
use earnest_results::{Document, Level, Origin, Reporter, RunEvent, SettingChange};
use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::response::Response;
use earnest_report::compare::compare_runs;
use earnest_report::{differing_settings, own_settings};
use earnest_results::runs::started;
use earnest_results::scores::CompareSettings;
use earnest_results::store::{RunRecord, Store};
use earnest_tasks::suite::registry::rows_of_tasks;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{headline, record, status};
use crate::app::{Asks, NUMBER, Page, Parameters, RUN, Shared};
use crate::failed::Failed;
use crate::limits::{BESIDE, CELLS, RUNS};
use crate::shape::Share;
use crate::work::{Asked, Kind};

/// Runs of a suite that asked the same questions in the same way: only these are ranked with each other.
#[derive(Serialize)]
struct Board {
    suite: String,
    /// Number of boards of the suite.
    boards: usize,
    /// True for the first board of the suite.
    is_first: bool,
    /// Settings in which this board differs from the suite's others.
    settings: String,
    runs: Vec<Entry>,
    /// Names of the runs in the table of tasks.
    labels: Vec<String>,
    /// Tasks by runs, in the order of `runs`.
    tasks: Vec<TaskRow>,
    /// Tasks that the table has no room for.
    more_tasks: u64,
}

/// A run.
#[derive(Serialize)]
struct Entry {
    run: String,
    model: String,
    /// Settings in which the runs of one model differ, to tell them apart.
    details: String,
    status: &'static str,
    started: String,
    recorded: u64,
    planned: u64,
    headline: Option<Share>,
    /// True if earlier answers chose the questions: there is no share to rank by.
    adaptive: bool,
    scorer: String,
    /// Reason for the run not being readable.
    problem: Option<String>,
    #[serde(skip)]
    values: BTreeMap<String, Share>,
    #[serde(skip)]
    order: Vec<String>,
}

/// A task, with a cell for each run.
#[derive(Serialize)]
struct TaskRow {
    task: String,
    /// It has samples of its own, which the cells link to.
    linked: bool,
    cells: Vec<Option<Share>>,
}

/// Part of the runs.
#[derive(Deserialize)]
pub(crate) struct Part {
    /// Newer runs that are left out.
    #[serde(default)]
    newer: usize,
}

impl Parameters for Part {
    const TAKE: &'static [(&'static str, &'static str)] = &[("newer", NUMBER)];
}

/// Shows the runs, the newest [`RUNS`] of them.
pub(crate) async fn page(State(app): Shared, Asks(Part { newer }): Asks<Part>) -> Response {
    app.page(Kind::Quick, move |store, asked| {
        let mut runs = store.runs()?;
        let number = runs.len();
        let newer = newer.min(number);
        runs.truncate(number - newer);
        let older = runs.len().saturating_sub(RUNS);
        runs.drain(..older);
        let mut suites: Vec<(&str, Vec<Vec<&RunRecord>>)> = Vec::new();
        for run in &runs {
            let suite = run.manifest.settings.suite.as_str();
            match suites.iter_mut().find(|(name, _)| *name == suite) {
                Some((_, groups)) => match groups.iter_mut().find(|group| asks_alike(group[0], run)) {
                    Some(group) => group.push(run),
                    None => groups.push(vec![run]),
                },
                None => suites.push((suite, vec![vec![run]])),
            }
        }
        let mut cells = CELLS;
        let mut all: Vec<Board> = Vec::new();
        for (suite, groups) in suites {
            all.extend(boards(store, suite, groups, asked, &mut cells)?);
        }
        let further = json!({"number": number as u64, "shown": runs.len() as u64, "newer": newer, "older": older as u64, "next": newer + RUNS, "previous": newer.saturating_sub(RUNS)});
        Ok(Page::new("leaderboard.html", json!({"title": "Runs", "boards": all, "further": further})))
    })
    .await
}

/// True if two runs of a suite asked the same questions in the same way, whatever model answered and wherever it ran.
fn asks_alike(one: &RunRecord, other: &RunRecord) -> bool {
    one.manifest.settings.suite_version == other.manifest.settings.suite_version
        && !differing_settings(&one.manifest, &other.manifest).iter().any(is_of_asking)
}

/// True for settings of what is asked: those of model and engine are left out.
fn is_of_asking(change: &SettingChange) -> bool {
    let part = change.name.split('.').next().unwrap_or_default();
    !matches!(part, "engine" | "endpoint" | "earnest" | "weights" | "system") && change.name != "generation.stop_ids"
}

/// The boards of a suite, those with most runs first.
fn boards(
    store: &Store,
    suite: &str,
    mut groups: Vec<Vec<&RunRecord>>,
    asked: &Asked,
    cells: &mut usize,
) -> Result<Vec<Board>, Failed> {
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let number = groups.len();
    let settings = |group: &[&RunRecord]| -> String {
        let mine = &group[0].manifest;
        let others = || groups.iter().map(|other| &other[0].manifest);
        let mut words = own_settings(mine, others(), is_of_asking);
        if others().any(|other| other.settings.suite_version != mine.settings.suite_version) {
            words.push(format!("version {}", mine.settings.suite_version));
        }
        words.join(", ")
    };
    let board = |(index, group): (usize, &Vec<&RunRecord>)| {
        let entry = |run: &&RunRecord| asked.check().map(|()| entry(store, run));
        let mut runs = group.iter().map(entry).collect::<Result<Vec<Entry>, Failed>>()?;
        // A part of the questions is not ranked with all of them.
        let value = |entry: &Entry| entry.headline.map_or(f64::NEG_INFINITY, |share| share.value);
        runs.sort_by(|one, other| {
            let order = one.is_partial().cmp(&other.is_partial());
            order.then_with(|| value(other).total_cmp(&value(one))).then_with(|| one.run.cmp(&other.run))
        });
        let mut tasks = tasks(&runs, rows_of_tasks(suite, &group[0].manifest.settings.suite_options).as_ref());
        let room = *cells / runs.len().max(1);
        let more_tasks = tasks.len().saturating_sub(room) as u64;
        tasks.truncate(room);
        *cells -= tasks.len() * runs.len();
        Ok(Board {
            suite: suite.to_owned(),
            boards: number,
            is_first: index == 0,
            settings: settings(group),
            tasks,
            more_tasks,
            labels: super::labels(runs.iter().map(|run| (run.model.as_str(), run.run.as_str()))),
            runs,
        })
    };
    groups.iter().enumerate().map(board).collect()
}

impl Entry {
    fn is_partial(&self) -> bool {
        self.planned != self.recorded
    }
}

/// A run that cannot be read keeps its row, with the reason.
fn entry(store: &Store, run: &RunRecord) -> Entry {
    let manifest = &run.manifest;
    let mut entry = Entry {
        run: manifest.run.clone(),
        model: manifest.model.name.clone(),
        details: details(run),
        status: "",
        started: started(manifest)
            .map_or_else(|| "unknown".to_owned(), |time| time.chars().take(16).collect::<String>().replace('T', " ")),
        recorded: 0,
        planned: run.planned as u64,
        headline: None,
        adaptive: manifest.settings.is_adaptive(),
        scorer: String::new(),
        problem: None,
        values: BTreeMap::new(),
        order: Vec::new(),
    };
    let mut fill = || -> Result<(), Failed> {
        entry.status = status(store, run)?;
        let document = super::document(store, run)?;
        entry.recorded = document.totals.recorded as u64;
        if let Some((share, scorer)) = headline(&document) {
            entry.headline = share.value.is_finite().then_some(share);
            entry.scorer = scorer;
        }
        for (task, share) in values(&document) {
            entry.order.push(task.clone());
            entry.values.insert(task, share);
        }
        Ok(())
    };
    if let Err(failed) = fill() {
        entry.problem = Some(failed.to_string());
    }
    entry
}

/// Weights, prompt and number of samples, as far as they are not the usual ones.
fn details(run: &RunRecord) -> String {
    let settings = &run.manifest.settings;
    let mut details = vec![settings.prompts()];
    if settings.samples > 1 {
        details.push(format!("{} samples", settings.samples));
    }
    if let Some(limit) = settings.limit {
        details.push(format!("limited to {limit} items"));
    }
    if settings.origin() == Origin::Log {
        details = vec!["log".to_owned()];
    } else if settings.origin() != Origin::Evaluated {
        details.push("imported".to_owned());
    }
    details.join(", ")
}

fn values(document: &Document) -> Vec<(String, Share)> {
    let rows = document.summary.rows.iter().filter(|row| row.name != "all");
    let share = |row| {
        let (_, value) = document.main_value(row)?;
        value.estimate.is_finite().then_some(Share { value: value.estimate, low: value.low, high: value.high })
    };
    rows.filter_map(|row| Some((row.name.clone(), share(row)?))).collect()
}

/// Rows of tasks by runs; `with_samples` are those that have samples, where not all have.
fn tasks(runs: &[Entry], with_samples: Option<&BTreeSet<String>>) -> Vec<TaskRow> {
    let mut known = BTreeSet::new();
    let names: Vec<&String> = runs.iter().flat_map(|run| &run.order).filter(|name| known.insert(*name)).collect();
    let cells = |task: &String| runs.iter().map(|run| run.values.get(task).copied()).collect();
    let linked = |task: &String| with_samples.is_none_or(|tasks| tasks.contains(task));
    names.into_iter().map(|task| TaskRow { task: task.clone(), linked: linked(task), cells: cells(task) }).collect()
}

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
pub(crate) async fn differences(State(app): Shared, Asks(ToBase { base }): Asks<ToBase>) -> Response {
    app.page(Kind::Slow, move |store, asked| {
        let base = record(store, &base)?;
        let suite = &base.manifest.settings.suite;
        let is_beside =
            |run: &RunRecord| run.manifest.settings.suite == *suite && run.id != base.id && asks_alike(&base, run);
        let mut others: Vec<RunRecord> = store.runs()?.into_iter().filter(is_beside).collect();
        let left = others.len().saturating_sub(BESIDE) as u64;
        // The newest.
        others.drain(..others.len() - others.len().min(BESIDE));
        let beside = |run: &RunRecord| asked.check().map(|()| beside(store, &base, run));
        let mut rows = others.iter().map(beside).collect::<Result<Vec<Beside>, Failed>>()?;
        holm(&mut rows);
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
fn holm(rows: &mut [Beside]) {
    let mut tested: Vec<&mut f64> = rows.iter_mut().filter_map(|row| row.p.as_mut()).collect();
    tested.sort_by(|one, other| one.total_cmp(other));
    let count = tested.len();
    let mut least: f64 = 0.0;
    for (index, p) in tested.into_iter().enumerate() {
        least = least.max((*p * (count - index) as f64).min(1.0));
        *p = least;
    }
}
