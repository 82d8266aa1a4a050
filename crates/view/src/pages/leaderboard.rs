//! The first page: the runs of every suite, best first, with the ranks that their intervals leave open; models by suites; tasks by runs.
use earnest_results::{Document, Manifest, Origin, SettingChange};
use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::response::Response;
use earnest_report::plot::row_query;
use earnest_report::{differing_settings, own_settings};
use earnest_results::started;
use earnest_results::store::{RunRecord, Store};
use earnest_stats::{Estimate, difference_of_shares};
use earnest_tasks::suite::registry::samples_of_row;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{headline, status};
use crate::app::{Asks, NUMBER, Page, Parameters, Shared, TEXT};
use crate::failed::Failed;
use crate::limits::{CELLS, RUNS, SUITES};
use crate::shape::{Share, path_segment};
use crate::work::{Asked, Kind};

/// Runs of a suite, best first.
#[derive(Serialize)]
struct Board {
    suite: String,
    /// True if a run has no rank.
    unranked: bool,
    runs: Vec<Entry>,
    /// Number of runs that asked the same questions in the same way, for each way that several runs have, with the best run of each.
    alike: Vec<(u64, String)>,
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
    /// Settings that set the run off from others, a few words each.
    labels: Vec<String>,
    status: &'static str,
    started: String,
    recorded: u64,
    planned: u64,
    headline: Option<Share>,
    /// First and last rank that the intervals leave open, among the runs that asked alike; none where it is the only one.
    rank: Option<(u64, u64)>,
    /// Runs that asked alike, itself among them.
    of: u64,
    /// True if earlier answers chose the questions: there is no share to rank by.
    adaptive: bool,
    scorer: String,
    /// Reason for the run not being readable.
    problem: Option<String>,
    #[serde(skip)]
    values: BTreeMap<String, Share>,
    #[serde(skip)]
    order: Vec<String>,
    /// Index of the runs that asked alike.
    #[serde(skip)]
    group: usize,
}

/// A task, with a cell for each run.
#[derive(Serialize)]
struct TaskRow {
    task: String,
    /// Parameters of the address of its samples, which the cells lead to; none where it joins several tasks.
    samples: Option<String>,
    cells: Vec<Option<Share>>,
}

/// A model, with a cell for each suite.
#[derive(Serialize)]
struct ModelRow {
    model: String,
    cells: Vec<Option<ModelCell>>,
}

/// The run of a model that asked most of a suite; of equals one that asked as most runs do, and the newest of these.
#[derive(Serialize)]
struct ModelCell {
    run: String,
    share: Share,
    /// Further runs of the model.
    more: u64,
}

/// Part of the runs, and their order.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Part {
    /// Text in the name of the run, of its model or of its suite.
    q: String,
    suite: String,
    /// `best` (as empty), `newest` or `model`.
    sort: String,
    /// Newer runs that are left out.
    newer: usize,
}

impl Parameters for Part {
    const TAKE: &'static [(&'static str, &'static str)] =
        &[("q", TEXT), ("suite", TEXT), ("sort", "best, newest or model"), ("newer", NUMBER)];
}

impl Part {
    /// Returns the address of the runs after so many newer ones, without the path.
    fn query(&self, newer: usize) -> String {
        let newer = if newer > 0 { newer.to_string() } else { String::new() };
        let fields = [("q", &self.q), ("suite", &self.suite), ("sort", &self.sort), ("newer", &newer)];
        let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let parts: Vec<String> = given.map(|(name, value)| format!("{name}={}", path_segment(value))).collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }
}

/// Order of the runs of a suite.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sort {
    Best,
    Newest,
    Model,
}

/// Shows the runs, the newest [`RUNS`] of them.
pub(crate) async fn page(State(app): Shared, Asks(part): Asks<Part>) -> Response {
    app.page(Kind::Quick, move |store, asked| {
        let sort = match part.sort.as_str() {
            "" | "best" => Sort::Best,
            "newest" => Sort::Newest,
            "model" => Sort::Model,
            other => return Err(Failed::bad_request(format!("runs cannot be sorted by {other:?}: best, newest or model"))),
        };
        let mut runs = store.runs()?;
        let all = runs.len();
        let mut suites: Vec<String> = Vec::new();
        for run in &runs {
            let suite = &run.manifest.settings.suite;
            if !suites.contains(suite) {
                suites.push(suite.clone());
            }
        }
        if !part.suite.is_empty() && !suites.contains(&part.suite) {
            return Err(Failed::not_found(format!("no run of these results is of {}", part.suite)));
        }
        let words = part.q.to_lowercase();
        runs.retain(|run| {
            let manifest = &run.manifest;
            let is_of_suite = part.suite.is_empty() || manifest.settings.suite == part.suite;
            let names = [&manifest.run, &manifest.model.name, &manifest.settings.suite];
            is_of_suite && (words.is_empty() || names.iter().any(|name| name.to_lowercase().contains(&words)))
        });
        let number = runs.len();
        let newer = part.newer.min(number);
        runs.truncate(number - newer);
        let older = runs.len().saturating_sub(RUNS);
        runs.drain(..older);
        let mut cells = CELLS;
        let mut boards: Vec<Board> = Vec::new();
        for suite in &suites {
            let of_suite: Vec<&RunRecord> = runs.iter().filter(|run| run.manifest.settings.suite == *suite).collect();
            if !of_suite.is_empty() {
                boards.push(board(store, suite, &of_suite, sort, asked, &mut cells)?);
            }
        }
        // Runs without a share of right answers have no column.
        let has_shares = |board: &&Board| board.runs.iter().any(|run| run.headline.is_some());
        let scored: Vec<&Board> = boards.iter().filter(has_shares).collect();
        let models = if (2..=SUITES).contains(&scored.len()) { models(&scored) } else { Vec::new() };
        let columns: Vec<&String> = scored.iter().map(|board| &board.suite).collect();
        let shown = runs.len();
        let (next, previous) = (part.query(newer + RUNS), part.query(newer.saturating_sub(RUNS)));
        let further = json!({"number": number as u64, "all": all as u64, "shown": shown as u64, "newer": newer, "older": older as u64, "next": next, "previous": previous});
        Ok(Page::new("leaderboard.html", json!({"title": "Runs", "boards": boards, "models": models, "columns": columns, "suites": suites, "part": part, "further": further})))
    })
    .await
}

/// Items of a run of which another run of the same settings is asked whether it has them.
const PROBES: usize = 16;

/// True if two runs of a suite asked the same questions in the same way, whatever model answered and wherever it ran.
pub(super) fn asks_alike(store: &Store, one: &RunRecord, other: &RunRecord) -> Result<bool, Failed> {
    let settings = [one, other].map(|run| &run.manifest.settings);
    if settings[0].suite_version != settings[1].suite_version
        || differing_settings(&one.manifest, &other.manifest).iter().any(is_of_asking)
    {
        return Ok(false);
    }
    // The settings of what was imported do not say what was asked.
    if settings.iter().all(|settings| settings.origin() == Origin::Evaluated) {
        return Ok(true);
    }
    let (found, equal) = store.expected_alike(one, other, PROBES)?;
    Ok(4 * equal > 3 * found)
}

/// True for settings of what is asked: those of model and engine are left out.
fn is_of_asking(change: &SettingChange) -> bool {
    let part = change.name.split('.').next().unwrap_or_default();
    !matches!(part, "engine" | "endpoint" | "earnest" | "weights" | "system") && change.name != "generation.stop_ids"
}

/// The runs of a suite.
fn board(
    store: &Store,
    suite: &str,
    of_suite: &[&RunRecord],
    sort: Sort,
    asked: &Asked,
    cells: &mut usize,
) -> Result<Board, Failed> {
    // Runs that asked alike, those that most runs are like first.
    let mut groups: Vec<Vec<&RunRecord>> = Vec::new();
    for run in of_suite {
        let mut alike = None;
        for (index, group) in groups.iter().enumerate() {
            if alike.is_none() && asks_alike(store, group[0], run)? {
                alike = Some(index);
            }
        }
        match alike {
            Some(index) => groups[index].push(run),
            None => groups.push(vec![run]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let usual = &groups[0][0].manifest;
    let own: BTreeMap<&str, String> =
        of_suite.iter().map(|run| run.manifest.run.as_str()).zip(super::own_labels(of_suite)).collect();
    let mut runs = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let first = runs.len();
        for run in group {
            asked.check()?;
            let mut entry = entry(store, run);
            entry.labels = labels(run, own.get(run.manifest.run.as_str()), usual);
            (entry.group, entry.of) = (index, group.len() as u64);
            runs.push(entry);
        }
        rank(&mut runs[first..]);
    }
    let value = |entry: &Entry| entry.headline.map_or(f64::NEG_INFINITY, |share| share.value);
    runs.sort_by(|one, other| {
        let by_value = || {
            // A part of the questions does not stand above all of them.
            let order = one.is_partial().cmp(&other.is_partial());
            order.then_with(|| value(other).total_cmp(&value(one)))
        };
        let order = match sort {
            Sort::Best => by_value(),
            Sort::Newest => other.started.cmp(&one.started),
            Sort::Model => one.model.cmp(&other.model).then_with(by_value),
        };
        order.then_with(|| one.run.cmp(&other.run))
    });
    let alike = (0..groups.len()).filter(|index| groups[*index].len() > 1).filter_map(|index| {
        let best = runs.iter().filter(|run| run.group == index && run.problem.is_none() && !run.adaptive);
        let best = best.max_by(|one, other| value(one).total_cmp(&value(other)))?;
        Some((groups[index].len() as u64, best.run.clone()))
    });
    let alike = alike.collect();
    // Options do not change what the rows are.
    let options = &of_suite[0].manifest.settings.suite_options;
    let mut tasks = tasks(&runs, |row| samples_of_row(suite, options, row).map(|row| row_query(&row)));
    let room = *cells / runs.len().max(1);
    let more_tasks = tasks.len().saturating_sub(room) as u64;
    tasks.truncate(room);
    *cells -= tasks.len() * runs.len();
    let unranked = runs.iter().any(|run| run.rank.is_none() && !run.adaptive && run.problem.is_none());
    Ok(Board { suite: suite.to_owned(), unranked, runs, alike, tasks, more_tasks })
}

/// Ranks runs that asked alike, as far as their intervals tell them apart.
fn rank(runs: &mut [Entry]) {
    let estimates: Vec<Option<Estimate>> = runs.iter().map(Entry::estimate).collect();
    let known = estimates.iter().flatten().count();
    for (entry, mine) in runs.iter_mut().zip(&estimates) {
        let Some(mine) = mine.filter(|_| known > 1) else { continue };
        let differences = || estimates.iter().flatten().map(|other| difference_of_shares(mine, *other));
        let better = differences().filter(|(_, high)| *high < 0.0).count();
        let worse = differences().filter(|(low, _)| *low > 0.0).count();
        entry.rank = Some((better as u64 + 1, (known - worse) as u64));
    }
}

/// Settings that set a run off: those in which runs of its model differ, and those in which it asked otherwise than most; then its origin.
fn labels(run: &RunRecord, own: Option<&String>, usual: &Manifest) -> Vec<String> {
    let manifest = &run.manifest;
    let mut labels: Vec<String> = own.into_iter().filter(|own| !own.is_empty()).cloned().collect();
    // Of a profile the questions differ anyway, and the first items of a suite are the same ones.
    let counts = |change: &SettingChange| change.name != "limit" && is_of_asking(change);
    let asked = if manifest.settings.is_adaptive() { Vec::new() } else { own_settings(manifest, usual, counts) };
    for words in asked {
        if labels.iter().all(|known| !known.contains(&words)) {
            labels.push(words);
        }
    }
    if usual.settings.suite_version != manifest.settings.suite_version {
        labels.push(format!("version {}", manifest.settings.suite_version));
    }
    match manifest.settings.origin() {
        Origin::Evaluated => {}
        Origin::Log => labels.push("log".to_owned()),
        _ => labels.push("imported".to_owned()),
    }
    labels
}

/// Models by suites, in the order of the boards; only models that have runs of several.
fn models(boards: &[&Board]) -> Vec<ModelRow> {
    let mut names: Vec<&String> = boards.iter().flat_map(|board| &board.runs).map(|run| &run.model).collect();
    let mut known = BTreeSet::new();
    names.retain(|name| known.insert(*name));
    let row = |model: &String| {
        let cell = |board: &&Board| {
            let mine = || board.runs.iter().filter(|run| run.model == *model && run.headline.is_some());
            let most = mine().max_by(|one, other| {
                // Of as many questions, those that most runs asked.
                let asked = |run: &Entry| (!run.is_partial(), run.recorded, std::cmp::Reverse(run.group));
                asked(one).cmp(&asked(other)).then_with(|| one.started.cmp(&other.started))
            })?;
            Some(ModelCell { run: most.run.clone(), share: most.headline?, more: mine().count() as u64 - 1 })
        };
        ModelRow { model: model.clone(), cells: boards.iter().map(cell).collect() }
    };
    let rows = names.into_iter().map(row);
    rows.filter(|row| row.cells.iter().flatten().count() > 0).collect()
}

impl Entry {
    fn is_partial(&self) -> bool {
        self.planned != self.recorded
    }

    /// The headline of a run that is whole.
    fn estimate(&self) -> Option<Estimate> {
        let Share { value, low, high } = self.headline.filter(|_| !self.is_partial())?;
        [value, low, high].iter().all(|bound| bound.is_finite()).then_some(Estimate { value, low, high })
    }
}

/// A run that cannot be read keeps its row, with the reason.
fn entry(store: &Store, run: &RunRecord) -> Entry {
    let manifest = &run.manifest;
    let mut entry = Entry {
        run: manifest.run.clone(),
        model: manifest.model.name.clone(),
        labels: Vec::new(),
        status: "",
        started: started(manifest)
            .map_or_else(|| "unknown".to_owned(), |time| time.chars().take(16).collect::<String>().replace('T', " ")),
        recorded: 0,
        planned: run.planned as u64,
        headline: None,
        rank: None,
        of: 1,
        adaptive: manifest.settings.is_adaptive(),
        scorer: String::new(),
        problem: None,
        values: BTreeMap::new(),
        order: Vec::new(),
        group: 0,
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

fn values(document: &Document) -> Vec<(String, Share)> {
    let rows = document.summary.rows.iter().filter(|row| row.name != "all");
    let share = |row| {
        let (_, value) = document.main_value(row)?;
        value.estimate.is_finite().then_some(Share { value: value.estimate, low: value.low, high: value.high })
    };
    rows.filter_map(|row| Some((row.name.clone(), share(row)?))).collect()
}

/// Rows of tasks by runs, with the parameters of the addresses of their samples.
fn tasks(runs: &[Entry], samples: impl Fn(&str) -> Option<String>) -> Vec<TaskRow> {
    let mut known = BTreeSet::new();
    let names: Vec<&String> = runs.iter().flat_map(|run| &run.order).filter(|name| known.insert(*name)).collect();
    let cells = |task: &String| runs.iter().map(|run| run.values.get(task).copied()).collect();
    names.into_iter().map(|task| TaskRow { task: task.clone(), samples: samples(task), cells: cells(task) }).collect()
}
