//! Two runs: paired differences by task, the items they answer differently, and one item side by side.
use axum::extract::State;
use axum::response::Response;
use earnest_report::compare::{AskedOfBoth, asked_of_both, compare_runs};
use earnest_report::marks::{Piece, PieceKind, varying};
use earnest_report::plot::Figure;
use earnest_report::{Difference, Flip, comparison_figure, options};
use earnest_results::scores::CompareSettings;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::differences::Warnings;
use super::{record, sample};
use crate::app::{Asks, ITEM, NUMBER, Page, Parameters, RUN, Shared, TEXT, TRUTH};
use crate::failed::Failed;
use crate::limits::{self, DRAWN_TASKS, NOTES, ROWS};
use crate::pages::sample::ByToken;
use crate::text::difference;
use crate::work::{Asked, Kind};
use earnest_results::store::Store;

/// Two runs, and the items that are listed.
#[derive(Deserialize)]
pub(crate) struct Two {
    a: String,
    b: String,
    /// Task of the listed items; empty for all.
    #[serde(default)]
    task: String,
    /// Items of each kind before the listed ones.
    #[serde(default)]
    from: usize,
}

impl Parameters for Two {
    const TAKE: &'static [(&'static str, &'static str)] = &[("a", RUN), ("b", RUN), ("task", TEXT), ("from", NUMBER)];
}

/// Items of each kind on a page.
const PAGE: usize = 25;

/// Items that one run has right and the other wrong, in one direction.
#[derive(Serialize)]
struct Flips {
    title: String,
    /// Number of all.
    number: u64,
    shown: Vec<AskedOfBoth>,
}

/// A row of the differences.
#[derive(Serialize)]
struct Row {
    name: String,
    items: u64,
    a: f64,
    b: f64,
    difference: f64,
    low: Option<f64>,
    high: Option<f64>,
    p: Option<f64>,
    is_total: bool,
}

impl Row {
    /// True of a difference that holds after Holm's adjustment.
    fn holds(&self) -> bool {
        self.p.is_some_and(|p| p < 0.05)
    }

    fn of(found: &Difference, is_total: bool) -> Row {
        Row {
            name: found.name.clone(),
            items: found.items as u64,
            a: found.baseline,
            b: found.run,
            difference: found.difference,
            low: found.interval.map(|interval| interval.0),
            high: found.interval.map(|interval| interval.1),
            p: if is_total { found.p } else { found.p_holm.or(found.p) },
            is_total,
        }
    }
}

/// Shows the comparison of two runs: verdict, figure, the tasks that differ, and the items that were answered differently.
pub(crate) async fn page(State(app): Shared, Asks(Two { a, b, task, from }): Asks<Two>) -> Response {
    app.page(Kind::Slow, move |store, asked| {
        let runs = [record(store, &a)?, record(store, &b)?];
        let models = super::labels(&[&runs[0], &runs[1]]);
        let mut warnings = Warnings::default();
        let names = [a.clone(), b.clone()];
        let compared = compare_runs(store, &names, &CompareSettings::default(), &mut warnings)?;
        asked.check()?;
        let mut found = compared.into_iter().next().ok_or_else(|| Failed::not_found("there is nothing to compare"))?;
        // People know runs by what differs between them.
        (found.baseline, found.run) = (models[0].clone(), models[1].clone());
        let all = Row::of(&found.overall, true);
        const HOW: &str = "`earnest compare` prints all";
        let (of_tasks, more_rows) = limits::first(&found.tasks, ROWS, "tasks", HOW);
        let rows = of_tasks.into_iter().map(|task| Row::of(task, false));
        let (mut differing, rest): (Vec<Row>, Vec<Row>) = rows.partition(Row::holds);
        differing.sort_by(|one, other| other.difference.abs().total_cmp(&one.difference.abs()));
        let warnings: Vec<String> = warnings.0.iter().map(|warning| options(warning)).collect();
        let (mut warnings, more_warnings) = limits::first(warnings, NOTES, "warnings", HOW);
        warnings.extend(more_warnings);
        let model = found.model.as_ref().map(|model| model.remark());
        let (verdict, tests) = (options(&found.conclusion()), found.tests());
        let is_drawn = found.tasks.len() <= DRAWN_TASKS;
        let figure = is_drawn.then(|| comparison_figure(std::slice::from_ref(&found), str::to_owned, false)).flatten();
        let figure = figure.map(|figure| figure.inline());
        if !task.is_empty() && found.flips.iter().all(|flip| flip.task != task) && found.tasks.iter().all(|one| one.name != task) {
            return Err(Failed::not_found(format!("the two runs have no common items of the task {task}")));
        }
        let is_listed = |flip: &&Flip| task.is_empty() || flip.task == task;
        let flips = |is_gain: bool, better: usize| -> Result<(Flips, Vec<&str>), Failed> {
            let mine = || found.flips.iter().filter(is_listed).filter(|flip| (flip.run > flip.baseline) == is_gain);
            let (mut shown, mut tasks) = (Vec::new(), Vec::new());
            for flip in mine().skip(from).take(PAGE) {
                asked.check()?;
                let both = asked_of_both(store, &runs, flip, found.common_scorer())?;
                tasks.extend(both.is_some().then_some(flip.task.as_str()));
                shown.extend(both);
            }
            let title = match found.more() {
                None => format!("{} right, {} wrong", models[better], models[1 - better]),
                Some(more) => format!("{} {more} {}", models[better], models[1 - better]),
            };
            Ok((Flips { title, number: mine().count() as u64, shown }, tasks))
        };
        let [(mut gained, of_gained), (mut lost, of_lost)] = [flips(true, 1)?, flips(false, 0)?];
        let questions = gained.shown.iter_mut().chain(&mut lost.shown).map(|one: &mut AskedOfBoth| &mut one.question);
        varying(of_gained.into_iter().chain(of_lost).zip(questions).collect());
        let flips = [gained, lost];
        let most = flips.iter().map(|flips| flips.number).max().unwrap_or_default();
        let next = (most > (from + PAGE) as u64).then_some(from + PAGE);
        let previous = (from > 0).then(|| from.saturating_sub(PAGE));
        let title = format!("{} and {}", models[0], models[1]);
        let context = json!({"title": title, "a": a, "b": b, "models": models, "all": all, "verdict": verdict, "differing": differing, "rest": rest, "model": model, "tests": tests, "figure": figure, "flips": flips, "task": task, "from": from, "next": next, "previous": previous, "warnings": warnings, "more_rows": more_rows, "items": found.items as u64, "uncommon": found.uncommon()});
        Ok(Page::new("compare.html", context))
    })
    .await
}

/// Returns the figure of a comparison as a file for papers.
pub(crate) async fn figure(State(app): Shared, Asks(Two { a, b, .. }): Asks<Two>) -> Response {
    let work = move |store: &Store, _: &Asked| -> Result<Figure, Failed> {
        let runs = [record(store, &a)?, record(store, &b)?];
        let models = super::labels(&[&runs[0], &runs[1]]);
        let compared = compare_runs(store, &[a, b], &CompareSettings::default(), &mut Warnings::default())?;
        let mut found = compared.into_iter().next().ok_or_else(|| Failed::not_found("there is nothing to compare"))?;
        [found.baseline, found.run] = models.try_into().unwrap_or_default();
        let figure = comparison_figure(std::slice::from_ref(&found), str::to_owned, true);
        figure.ok_or_else(|| Failed::not_found("this comparison has no figure"))
    };
    match app.read(Kind::Slow, work).await {
        Ok(figure) => super::as_file(&figure),
        Err(failed) => app.failure(failed),
    }
}

/// An item of two runs.
#[derive(Deserialize)]
pub(crate) struct OneItem {
    a: String,
    b: String,
    item: String,
    /// Id in the second run, where it has another one.
    #[serde(default)]
    other: String,
    #[serde(default)]
    n: u32,
    /// Number of the second run's sample, where it is another one.
    other_n: Option<u32>,
    /// Only the answers, for the list's side.
    #[serde(default)]
    bare: bool,
}

impl Parameters for OneItem {
    const TAKE: &'static [(&'static str, &'static str)] =
        &[("a", RUN), ("b", RUN), ("item", ITEM), ("other", ITEM), ("n", NUMBER), ("other_n", NUMBER), ("bare", TRUTH)];
}

/// Shows the answers of two runs to one item.
pub(crate) async fn pair(
    State(app): Shared,
    Asks(OneItem { a, b, item, other: there, n, other_n, bare }): Asks<OneItem>,
) -> Response {
    app.page(Kind::Slow, move |store, asked| {
        let [one, other] = [record(store, &a)?, record(store, &b)?];
        let there = if there.is_empty() { &item } else { &there };
        let shown = [
            sample::find(store, &one, &item, n, ByToken::No)?,
            sample::find(store, &other, there, other_n.unwrap_or(n), ByToken::No)?,
        ];
        asked.check()?;
        // Thinking stands before what is compared.
        let part = |shown: &sample::Shown, thinking: bool| -> Vec<Piece> {
            shown.completion.iter().filter(|piece| (piece.kind == PieceKind::Thinking) == thinking).cloned().collect()
        };
        let visible = |shown| part(shown, false).into_iter().map(|piece| piece.text).collect::<String>();
        let compared = difference(&visible(&shown[0]), &visible(&shown[1]));
        let sides: Vec<Vec<Piece>> =
            shown.iter().zip(compared).map(|(shown, pieces)| [part(shown, true), pieces].concat()).collect();
        let models = super::labels(&[&one, &other]);
        let title = format!("{item}: {} and {}", models[0], models[1]);
        Ok(Page::new(
            if bare { "pair_body.html" } else { "pair.html" },
            json!({"title": title, "a": a, "b": b, "item": item, "models": models, "shown": shown, "sides": sides}),
        ))
    })
    .await
}
