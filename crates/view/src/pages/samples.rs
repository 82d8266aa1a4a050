//! The samples of a run, filtered by the address, a page at a time.
use earnest_report::marks::{one_line, varying, visible_text};
use earnest_results::{Document, Origin, check_filter, suites, with_commas};

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use earnest_eval::samples::{AskedSample, Selection, count_asked, each_asked};
use earnest_results::store::{Filter, Named, RunRecord, Store};
use earnest_tasks::anatomy::{ErrorClass, of_sample};
use earnest_tasks::suite::FailureClass;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::record;
use super::sample::{Outcome, class, outcome};
use crate::app::{Asks, Page, Parameters, Shared, TEXT};
use crate::failed::Failed;
use crate::limits::{self, OPTIONS, SHORT_TEXT_BYTES};
use crate::shape;
use crate::work::{Asked, Kind};

/// Samples on a page.
const PAGE: usize = 50;

/// Characters of an answer in the list.
const SHOWN: usize = 160;

/// Before the name of a failure class in the address: a class may be called as an outcome is.
const CLASS: &str = "class:";

/// Before the class of an error in the address.
const ERROR: &str = "error:";

/// Filters in the address. Empty values are none, as forms send them.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Wanted {
    pub task: String,
    /// `correct`, `wrong`, `failed`, `cut`, `class:` and a failure class, or `error:` and a class of errors.
    pub outcome: String,
    /// Text in the completion.
    pub q: String,
    /// Text in the question.
    pub question: String,
    /// A covariate and its value, joined by `=`.
    pub covariate: String,
    /// Two scorers that differ, as [`shape::pair`] joins them.
    pub disagree: String,
    /// One of them, and the other, where there are too many for a list of pairs.
    pub scorer: String,
    pub against: String,
    pub item: String,
    pub after: String,
}

impl Parameters for Wanted {
    const TAKE: &'static [(&'static str, &'static str)] = &[
        ("task", TEXT),
        ("outcome", TEXT),
        ("q", TEXT),
        ("question", TEXT),
        ("covariate", "the name of a covariate, = and its value"),
        ("disagree", TEXT),
        ("scorer", TEXT),
        ("against", TEXT),
        ("item", TEXT),
        ("after", TEXT),
    ];
}

impl Wanted {
    /// A search reads the texts or scores of all samples, one after another.
    fn kind(&self) -> Kind {
        let searches = [&self.q, &self.question, &self.disagree, &self.scorer].iter().any(|text| !text.is_empty());
        if searches || self.outcome.starts_with(ERROR) { Kind::Slow } else { Kind::Quick }
    }

    /// True if there is no filter.
    fn is_all(&self) -> bool {
        Wanted { after: String::new(), ..self.clone() }.query("") == "?"
    }

    fn selection(&self, store: &Store, run: &RunRecord) -> Result<Selection, Failed> {
        let question = (!self.question.is_empty()).then(|| self.question.clone());
        Ok(Selection { filter: check_filter(store, run, self.filter()?)?, question })
    }

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
            error if error.starts_with(ERROR) => {
                let class: ErrorClass = error[ERROR.len()..].parse().map_err(|_| {
                    Failed::bad_request(format!("there is no class of errors {:?}", &error[ERROR.len()..]))
                        .hint("`earnest samples --help` has all of them.")
                })?;
                filter.error = Some(class);
            }
            reason => filter.reason = Some(reason.strip_prefix(CLASS).unwrap_or(reason).to_owned()),
        }
        if !self.covariate.is_empty() {
            let (name, value) =
                self.covariate.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
                    Failed::bad_request(format!("{:?} is not a covariate and its value joined by =", self.covariate))
                })?;
            filter.covariates = vec![(name.to_owned(), value.to_owned())];
        }
        if !self.scorer.is_empty() && !self.against.is_empty() {
            filter.disagree = Some([self.scorer.clone(), self.against.clone()]);
        } else if !self.disagree.is_empty() {
            let scorers = shape::both(&self.disagree).ok_or_else(|| {
                Failed::bad_request(format!("{:?} is not two scorers joined by a comma", self.disagree))
            })?;
            filter.disagree = Some(scorers);
        }
        if !self.after.is_empty() {
            let index = self.after.parse().map_err(|_| Failed::bad_request("`after` is not a number"))?;
            filter.after = Some(index);
        }
        Ok(filter)
    }

    /// Returns the address of the list after another index, without the path.
    fn query(&self, after: &str) -> String {
        let fields = [
            ("task", self.task.as_str()),
            ("outcome", &self.outcome),
            ("q", &self.q),
            ("question", &self.question),
            ("covariate", &self.covariate),
            ("disagree", &self.disagree),
            ("scorer", &self.scorer),
            ("against", &self.against),
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
pub(crate) async fn page(State(app): Shared, Path(name): Path<String>, Asks(wanted): Asks<Wanted>) -> Response {
    app.page(wanted.kind(), move |store, asked| {
        let run = record(store, &name)?;
        store.check_seal(&run)?;
        let selection = wanted.selection(store, &run)?;
        let of_log = run.manifest.settings.origin() == Origin::Log;
        let chosen = suites::chosen(&run.manifest.settings);
        let mut lines = Vec::new();
        let mut last = None;
        let (_, more) = each_asked(store, &run, selection, PAGE, |AskedSample { index, sample, question }| {
            last = Some(index);
            asked.check()?;
            let question = question.map(|question| question.item.segments.question).unwrap_or_default();
            let question = limits::text(question, SHORT_TEXT_BYTES);
            lines.push(Line {
                outcome: outcome(&sample, of_log.then_some(chosen.as_slice())),
                question: one_line(&question),
                answer: short(&visible_text(&sample.completion_text(), run.manifest.opened_thinking())),
                gold: short(&sample.gold),
                item: sample.item,
                sample: sample.sample,
                task: sample.task,
            });
            Ok::<(), Failed>(())
        })?;
        let next = last.filter(|_| more).map(|index| wanted.query(&index.to_string()));
        let first = (!wanted.after.is_empty()).then(|| wanted.query(""));
        // What is on one page needs no counting; else the script asks for the number.
        let number = (!more && wanted.after.is_empty()).then_some(lines.len() as u64);
        let counted = number.is_none().then(|| wanted.query(""));
        let covariates = covariates(&super::document(store, &run)?);
        let (tasks, reasons) = (store.all(&run, Named::Task)?, store.all(&run, Named::Reason)?);
        let scorers = store.scorers(&run)?;
        // Too many for a list are written instead, with the first as suggestions.
        let (number_of_tasks, number_of_scorers) = (tasks.len() as u64, scorers.len() as u64);
        let too_many_tasks = tasks.len() > OPTIONS;
        let too_many_scorers = scorers.len() * scorers.len().saturating_sub(1) / 2 > OPTIONS;
        let tasks: Vec<String> = tasks.into_iter().take(OPTIONS).collect();
        let scorers: Vec<String> = scorers.into_iter().take(OPTIONS).collect();
        varying(lines.iter_mut().map(|line| (line.task.as_str(), &mut line.question)).collect());
        // Answers that the budget ended have a line of their own, whatever was in them.
        let classes: Vec<(String, String)> = reasons
            .iter()
            .filter(|reason| reason.as_str() != FailureClass::Truncated.as_str())
            .take(OPTIONS)
            .map(|reason| (format!("{CLASS}{reason}"), class(reason)))
            .collect();
        // A class that both have stands once in the menu.
        let mut errors = errors(store, &run, of_log)?;
        errors.retain(|(_, title)| classes.iter().all(|(_, word)| word != title));
        let title = format!("Samples of {name}");
        let context = json!({"title": title, "run": name, "wanted": wanted, "lines": lines, "next": next, "first": first, "tasks": tasks, "classes": classes, "scorers": scorers, "too_many_tasks": too_many_tasks, "too_many_scorers": too_many_scorers, "number_of_tasks": number_of_tasks, "number": number, "counted": counted, "is_all": wanted.is_all(), "covariates": covariates, "errors": errors, "number_of_scorers": number_of_scorers});
        Ok(Page::new("samples.html", context))
    })
    .await
}

/// Returns the number of samples that the filters of an address select, as JSON.
pub(crate) async fn count(State(app): Shared, Path(name): Path<String>, Asks(wanted): Asks<Wanted>) -> Response {
    let work = move |store: &Store, _: &Asked| -> Result<usize, Failed> {
        let run = record(store, &name)?;
        Ok(count_asked(store, &run, wanted.selection(store, &run)?)?)
    };
    match app.read(Kind::Slow, work).await {
        Ok(count) => Json(json!({"count": count, "text": with_commas(count as u64)})).into_response(),
        Err(failed) => failed.into_response(),
    }
}

/// Covariates with their values that the run's tables and curves have, as the address has them, with their names; those with more values
/// than a list has room for are left out.
fn covariates(document: &Document) -> Vec<(String, Vec<(String, String)>)> {
    let mut lengths: Vec<f64> =
        document.summary.series.iter().flat_map(|one| &one.points).map(|point| point.0).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    lengths.dedup();
    let mut named: Vec<(&str, Vec<String>)> =
        vec![("length", lengths.iter().map(|length| length.to_string()).collect())];
    for grid in &document.grids {
        let Some(name) = grid.covariate.as_deref() else { continue };
        if named.iter().all(|(known, _)| *known != name) {
            let rows = || grid.groups.iter().flat_map(|group| &group.rows);
            let has_data = |index: usize| rows().any(|row| row.cells.get(index).is_some_and(Option::is_some));
            let asked = grid.columns.iter().enumerate().filter(|(index, _)| has_data(*index));
            named.push((name, asked.map(|(_, column)| column.clone()).collect()));
        }
    }
    named.retain(|(_, values)| (2..=OPTIONS).contains(&values.len()));
    let option = |name: &str, value: String| (format!("{name}={value}"), value);
    let group = |(name, values): (&str, Vec<String>)| {
        (name.to_owned(), values.into_iter().map(|value| option(name, value)).collect())
    };
    named.into_iter().map(group).collect()
}

/// Classes of errors as the address has them, with their words; none of runs whose wrong answers have none.
fn errors(store: &Store, run: &RunRecord, of_log: bool) -> Result<Vec<(String, &'static str)>, Failed> {
    let wrong = Filter { correct: Some(false), of_log, ..Filter::default() };
    let Some(first) = store.samples(run, wrong).next().transpose()? else { return Ok(Vec::new()) };
    // Of a log without the answers that were read, every wrong one would have none.
    let score = first.score.as_ref().filter(|score| !of_log || score.answer.is_some());
    let class =
        score.and_then(|score| of_sample(&first.task, &first.covariates, &first.gold, score, first.truncated()));
    let all = ErrorClass::ALL.into_iter().filter(|one| class.is_some() && *one != ErrorClass::Truncated);
    Ok(all.map(|class| (format!("{ERROR}{}", class.name()), class.title())).collect())
}

/// One line of a text, shortened.
fn short(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}
