//! The samples of a run, filtered by the address, a page at a time.
use axum::extract::{Path, Query, State};
use axum::response::Response;
use earnest_eval::run::store::{Filter, Named};
use earnest_eval::samples::{AskedSample, check_filter, each_asked};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::record;
use super::sample::{Outcome, outcome};
use crate::app::{Failed, Page, Shared};
use crate::shape;

/// Samples on a page.
const PAGE: usize = 50;

/// Characters of an answer in the list.
const SHOWN: usize = 160;

/// Characters of the end of a question in the list.
const END: usize = 72;

/// Filters in the address. Empty values are none, as forms send them.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Wanted {
    pub task: String,
    /// `correct`, `wrong`, `unanswered`, `cut`, or a failure class.
    pub outcome: String,
    /// Text in the completion.
    pub q: String,
    /// Two rules that score differently, joined by a comma.
    pub disagree: String,
    pub item: String,
    pub after: String,
}

impl Wanted {
    fn filter(&self) -> Result<Filter, Failed> {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut filter =
            Filter { task: given(&self.task), item: given(&self.item), contains: given(&self.q), ..Filter::default() };
        match self.outcome.as_str() {
            "" => {}
            "correct" => filter.correct = Some(true),
            "wrong" => filter.correct = Some(false),
            "failed" => filter.failed = true,
            "cut" => filter.truncated = true,
            reason => filter.reason = Some(reason.to_owned()),
        }
        if !self.disagree.is_empty() {
            let rules = self.disagree.split_once(',').ok_or_else(|| {
                Failed::bad_request(format!("{:?} is not two rules joined by a comma", self.disagree))
            })?;
            filter.disagree = Some([rules.0.to_owned(), rules.1.to_owned()]);
        }
        if !self.after.is_empty() {
            let place = self.after.parse().map_err(|_| Failed::bad_request("`after` is not a number"))?;
            filter.after = Some(place);
        }
        Ok(filter)
    }

    /// Returns the address of the list after another place, without the path.
    fn query(&self, after: &str) -> String {
        let fields = [
            ("task", self.task.as_str()),
            ("outcome", &self.outcome),
            ("q", &self.q),
            ("disagree", &self.disagree),
            ("item", &self.item),
            ("after", after),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let parts: Vec<String> = given.map(|(name, value)| format!("{name}={}", shape::path_segment(value))).collect();
        format!("?{}", parts.join("&"))
    }
}

/// A line of the list.
#[derive(Serialize)]
struct Line {
    item: String,
    sample: u32,
    task: String,
    question: String,
    answer: String,
    gold: String,
    outcome: Outcome,
}

/// Shows the list.
pub(crate) async fn page(State(app): Shared, Path(name): Path<String>, Query(wanted): Query<Wanted>) -> Response {
    app.page(move |store| {
        let run = record(store, &name)?;
        store.check_seal(&run)?;
        let filter = check_filter(store, &run, wanted.filter()?)?;
        let of_log = run.manifest.settings.is_log();
        let mut lines = Vec::new();
        let mut last = None;
        let (_, more) = each_asked(store, &run, filter, PAGE, |AskedSample { place, sample, question }| {
            last = Some(place);
            let question = question.map(|question| question.item.segments.question).unwrap_or_default();
            lines.push(Line {
                outcome: outcome(&sample, of_log),
                question: end_of(&question),
                answer: short(&sample.completion_text()),
                gold: short(&sample.gold),
                item: sample.item,
                sample: sample.sample,
                task: sample.task,
            });
            Ok::<(), Failed>(())
        })?;
        let next = last.filter(|_| more).map(|place| wanted.query(&place.to_string()));
        let first = (!wanted.after.is_empty()).then(|| wanted.query(""));
        let (tasks, reasons) = (store.all(&run, Named::Task)?, store.all(&run, Named::Reason)?);
        let rules = store.rules(&run)?;
        let title = format!("Samples of {name}");
        let context = json!({"title": title, "run": name, "wanted": wanted, "lines": lines, "next": next, "first": first, "tasks": tasks, "reasons": reasons, "rules": rules});
        Ok(Page::new("samples.html", context))
    })
    .await
}

/// The end of a question in one line, where what is asked stands; beginnings are instructions that many share.
fn end_of(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let characters = line.chars().count();
    match line.char_indices().nth(characters.saturating_sub(END)) {
        Some((start, _)) if characters > END => format!("… {}", &line[start..]),
        _ => line,
    }
}

/// One line of a text, shortened.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}
