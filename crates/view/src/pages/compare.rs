//! Two runs: paired differences by task, the items they answer differently, and one item side by side.
use axum::extract::State;
use axum::response::Response;
use earnest_report::compare::compare_runs;
use earnest_report::{Difference, comparison_figure, options};
use earnest_results::scores::CompareSettings;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::leaderboard::Warnings;
use super::{record, sample};
use crate::app::{Asks, ITEM, NUMBER, Page, Parameters, RUN, Shared};
use crate::limits::{self, DRAWN_TASKS, ITEMS, NOTES, ROWS};
use crate::text::difference;
use crate::work::Kind;

/// Two runs.
#[derive(Deserialize)]
pub(crate) struct Two {
    a: String,
    b: String,
}

impl Parameters for Two {
    const TAKE: &'static [(&'static str, &'static str)] = &[("a", RUN), ("b", RUN)];
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

/// Shows the comparison of two runs.
pub(crate) async fn page(State(app): Shared, Asks(Two { a, b }): Asks<Two>) -> Response {
    app.page(Kind::Slow, move |store, asked| {
        let (one, other) = (record(store, &a)?, record(store, &b)?);
        let mut warnings = Warnings::default();
        let names = [a.clone(), b.clone()];
        let compared = compare_runs(store, &names, &CompareSettings::default(), &mut warnings)?;
        asked.check()?;
        let found = compared.into_iter().next().ok_or_else(|| crate::failed::Failed::not_found("there is nothing to compare"))?;
        let mut rows = vec![Row::of(&found.overall, true)];
        const HOW: &str = "`earnest compare` prints all";
        let (of_tasks, more_rows) = limits::first(&found.tasks, ROWS, "tasks", HOW);
        rows.extend(of_tasks.into_iter().map(|task| Row::of(task, false)));
        let warnings: Vec<String> = warnings.0.iter().map(|warning| options(warning)).collect();
        let (mut warnings, more_warnings) = limits::first(warnings, NOTES, "warnings", HOW);
        warnings.extend(more_warnings);
        let model = found.model.as_ref().map(|model| model.remark());
        let (other_scorers, tests) = (found.other_scorers(), found.tests());
        let is_drawn = found.tasks.len() <= DRAWN_TASKS;
        let figure = is_drawn.then(|| comparison_figure(std::slice::from_ref(&found), str::to_owned, false)).flatten();
        let figure = figure.map(|figure| figure.inline());
        let gained: Vec<_> = found.flips.iter().filter(|flip| flip.run > flip.baseline).take(ITEMS).collect();
        let lost: Vec<_> = found.flips.iter().filter(|flip| flip.run < flip.baseline).take(ITEMS).collect();
        let models = super::labels([&one, &other].into_iter().map(|run| (run.manifest.model.name.as_str(), run.manifest.run.as_str())));
        let title = format!("{} and {}", models[0], models[1]);
        let (all_gained, all_lost) = (found.gained as u64, found.lost as u64);
        let context = json!({"title": title, "a": a, "b": b, "models": models, "rows": rows, "model": model, "other_scorers": other_scorers, "tests": tests, "figure": figure, "gained": gained, "lost": lost, "all_gained": all_gained, "all_lost": all_lost, "warnings": warnings, "more_rows": more_rows, "items": found.items as u64, "right_or_wrong": found.right_or_wrong});
        Ok(Page::new("compare.html", context))
    })
    .await
}

/// An item of two runs.
#[derive(Deserialize)]
pub(crate) struct OneItem {
    a: String,
    b: String,
    item: String,
    #[serde(default)]
    n: u32,
}

impl Parameters for OneItem {
    const TAKE: &'static [(&'static str, &'static str)] = &[("a", RUN), ("b", RUN), ("item", ITEM), ("n", NUMBER)];
}

/// Shows the answers of two runs to one item.
pub(crate) async fn pair(State(app): Shared, Asks(OneItem { a, b, item, n }): Asks<OneItem>) -> Response {
    app.page(Kind::Slow, move |store, asked| {
        let [one, other] = [record(store, &a)?, record(store, &b)?];
        let shown = [sample::find(store, &one, &item, n, false)?, sample::find(store, &other, &item, n, false)?];
        asked.check()?;
        let sides = difference(&shown[0].text, &shown[1].text);
        let models = super::labels(
            [&one, &other].into_iter().map(|run| (run.manifest.model.name.as_str(), run.manifest.run.as_str())),
        );
        let title = format!("{item}: {} and {}", models[0], models[1]);
        Ok(Page::new(
            "pair.html",
            json!({"title": title, "a": a, "b": b, "item": item, "models": models, "shown": shown, "sides": sides}),
        ))
    })
    .await
}
