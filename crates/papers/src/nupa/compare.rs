//! Comparison of runs with the published tables, cell by cell.
use std::collections::BTreeMap;

use super::PAPER;
use super::document::{
    FigureMetric, NUPA_COMPARISON_FORMAT, NupaCell, NupaComparison, NupaFigure, NupaRun, NupaTable, Quantity,
};
use super::published::{TABLE_3, TABLE_10, caveats, limit_title, rule_following_cells, tables};
use super::run::{EvaluatedRun, Limit, SCORERS};
use crate::nupa::inference_tables::{
    TABLE_3_METHODS, figure_rows, published_digit_limit, published_models, published_range_accuracy,
    published_rule_following,
};
use crate::{Published, Reading, difference, model_key};
use earnest_tasks::suite::nupa::{DigitLimit, LengthRange, MetricName, Scorer, TASKS, TaskId};
use earnest_tasks::suite::{Interval, Summary};

/// Questions per task and length in the authors' evaluation.
const PUBLISHED_PER_LENGTH: usize = 100;

/// The published row of fine-tuning on rules (Table 3).
const RULE_FOLLOWING: &str = "RF CoT";

/// Published row that runs are compared with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReferenceRow {
    /// Row of the run's own model, if the paper has one.
    #[default]
    OwnModel,
    /// This row, whatever the model.
    Named(String),
}

impl ReferenceRow {
    /// The row of this name.
    ///
    /// # Errors
    /// [`UnknownRow`] if the paper has none.
    pub fn named(name: &str) -> Result<Self, UnknownRow> {
        let known: Vec<&str> = published_models().into_iter().chain([RULE_FOLLOWING]).collect();
        match known.iter().find(|known| model_key(known).0 == model_key(name).0) {
            Some(known) => Ok(ReferenceRow::Named((*known).to_owned())),
            None => Err(UnknownRow { name: name.to_owned(), known }),
        }
    }
}

/// The paper has no row of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the paper has no row of {name}; its rows are {}", known.join(", "))]
pub struct UnknownRow {
    pub name: String,
    /// Names of the rows that it has.
    pub known: Vec<&'static str>,
}

/// Summaries by scorer, in the order of [`SCORERS`].
type ByScorer = [(Scorer, Summary); 3];

/// Compares runs with the paper.
pub fn compare(runs: &[EvaluatedRun], reference: &ReferenceRow) -> NupaComparison {
    NupaComparison {
        format: NUPA_COMPARISON_FORMAT,
        paper: PAPER.to_owned(),
        published: tables(),
        runs: runs.iter().map(|run| compare_run(run, reference)).collect(),
        caveats: caveats(),
    }
}

fn compare_run(ours: &EvaluatedRun, reference: &ReferenceRow) -> NupaRun {
    let model = ours.manifest.model.name.clone();
    let (key, quantised) = model_key(&model);
    let own = published_models().into_iter().find(|known| model_key(known).0 == key);
    let row = match reference {
        ReferenceRow::Named(row) => Some(row.as_str()),
        ReferenceRow::OwnModel if ours.direct() => own,
        // The paper fine-tunes one model on rules, so any run that follows rules is compared with that.
        ReferenceRow::OwnModel => Some(RULE_FOLLOWING),
    };
    let mut limits = ours.limits();
    match (reference, row) {
        (ReferenceRow::Named(row), _) if own != Some(row) => {
            limits.push(Limit::Other(format!("evaluates another model than the row {row}")));
        }
        (ReferenceRow::OwnModel, Some(RULE_FOLLOWING)) => {
            let text = format!("evaluates a model that was not fine-tuned on rules, unlike {RULE_FOLLOWING}");
            limits.push(Limit::Other(text));
        }
        _ => {}
    }
    if let (Some(row), Some(suffix)) = (row.filter(|row| own == Some(*row)), quantised) {
        limits.push(Limit::Other(format!("evaluates a quantised model ({suffix}), not {row} itself")));
    }
    let summaries = SCORERS.map(|scorer| (scorer, ours.summary(scorer)));
    // Each cell counts its own lengths.
    let comparable = limits.iter().all(Limit::is_comparable);
    let cells = Cells { ours, summaries: &summaries, comparable };
    let mut tables = Vec::new();
    if let Some(row) = row {
        if ours.direct() && ours.options.shots == 0 && row != RULE_FOLLOWING {
            tables.extend((7..).zip(MetricName::ALL).map(|(table, metric)| cells.limits(table, metric, row)));
        }
        if ours.direct() && matches!(ours.options.shots, 0 | 5) {
            tables.push(cells.ranges(row, ours.options.shots == 5));
        }
        if ours.direct() == (row != RULE_FOLLOWING) && ours.options.shots == 0 {
            tables.push(cells.rule_following(row));
        }
    }
    tables.retain(|table: &NupaTable| !table.cells.is_empty());
    tables.sort_by_key(|table| table.table);
    NupaRun {
        run: ours.manifest.run.clone(),
        row: row.map(str::to_owned),
        model,
        limits: limits.iter().map(Limit::to_string).collect(),
        settings: ours.settings(),
        tables,
        figures: figures(ours, &summaries),
    }
}

struct Cells<'a> {
    ours: &'a EvaluatedRun,
    summaries: &'a ByScorer,
    comparable: bool,
}

impl Cells<'_> {
    /// Tables 7 to 9.
    fn limits(&self, table: u8, metric: MetricName, row: &str) -> NupaTable {
        let mut cells = Vec::new();
        for task in TASKS {
            for limit in DigitLimit::ALL {
                let Some(published) = published_digit_limit(metric, row, task, limit) else { continue };
                let digits = published as f64;
                let value = Interval { estimate: digits, low: digits, high: digits };
                let lengths = 1 + task.longest() - task.shortest_in_reference();
                let published = Published { value, items: PUBLISHED_PER_LENGTH * lengths, doubt: None };
                let column = format!("{} {} published", metric.name(), limit.name());
                let wanted = |length| task.in_reference_range(length);
                cells.extend(self.cell(task, limit.name().to_owned(), Some(published), lengths, wanted, &|summary| {
                    summary_value(summary, task, &column)
                }));
            }
        }
        NupaTable { table, title: limit_title(metric).to_owned(), quantity: Quantity::Digits, cells }
    }

    /// Table 10.
    fn ranges(&self, row: &str, five_shot: bool) -> NupaTable {
        let mut cells = Vec::new();
        for task in TASKS {
            for range in LengthRange::ALL {
                let Some(published) = published_range_accuracy(row, five_shot, task, range) else { continue };
                let inside = |length: usize| {
                    task.in_reference_range(length) && LengthRange::of(length, task.longest()) == Some(range)
                };
                let lengths = (1..=task.longest()).filter(|&length| inside(length)).count();
                let published = Published::new(100.0 * published, PUBLISHED_PER_LENGTH * lengths, None);
                let column = format!("{} {}", MetricName::ExactMatch.name(), range.name());
                cells.extend(self.cell(task, range.name().to_owned(), published, lengths, inside, &|summary| {
                    summary_value(summary, task, &column)
                }));
            }
        }
        NupaTable { table: 10, title: TABLE_10.to_owned(), quantity: Quantity::Accuracy, cells }
    }

    /// Table 3.
    fn rule_following(&self, row: &str) -> NupaTable {
        // This table abbreviates the name of its fine-tuned model.
        let method = if row == "Llama-3.1-8B-ft" { "Llama-8B-ft" } else { row };
        let mut cells = Vec::new();
        for (task, digits) in rule_following_cells().into_iter().filter(|_| TABLE_3_METHODS.contains(&method)) {
            let Some(published) = published_rule_following(method, task, digits) else { continue };
            let published =
                published.exact_match.and_then(|exact| Published::new(100.0 * exact, PUBLISHED_PER_LENGTH, None));
            cells.extend(self.cell(task, digits.to_string(), published, 1, |length| length == digits, &|summary| {
                point(summary, task, digits)
            }));
        }
        NupaTable { table: 3, title: TABLE_3.to_owned(), quantity: Quantity::Accuracy, cells }
    }

    /// A cell of a table; `None` if the run has no samples for it.
    fn cell(
        &self,
        task: TaskId,
        column: String,
        published: Option<Published>,
        published_lengths: usize,
        wanted: impl Fn(usize) -> bool,
        value: &dyn Fn(&Summary) -> Option<Interval>,
    ) -> Option<NupaCell> {
        let (lengths, samples) = self.ours.asked(task, wanted);
        if samples == 0 {
            return None;
        }
        let ours: BTreeMap<String, Interval> = self
            .summaries
            .iter()
            .filter_map(|(scorer, summary)| Some((scorer.name().to_owned(), value(summary)?)))
            .collect();
        let scorer = SCORERS[0].name();
        let difference =
            published.as_ref().zip(ours.get(scorer)).map(|(published, ours)| difference(ours, &published.value));
        let reading = match difference {
            None => Reading::NotPublished,
            Some(_) if !self.comparable || lengths < published_lengths => Reading::NotComparable,
            Some(difference) if difference.low > 0.0 || difference.high < 0.0 => Reading::Differs,
            Some(_) => Reading::NoDifferenceShown,
        };
        let task = task.to_string();
        Some(NupaCell {
            task,
            column,
            published,
            lengths,
            published_lengths,
            samples,
            ours,
            scorer,
            difference,
            reading,
        })
    }
}

fn summary_value(summary: &Summary, task: TaskId, column: &str) -> Option<Interval> {
    let id = task.to_string();
    let row = summary.rows.iter().find(|row| row.name == id)?;
    row.values.iter().find(|(name, _)| name == column).map(|(_, value)| *value)
}

/// Exact match of a task at a length.
fn point(summary: &Summary, task: TaskId, digits: usize) -> Option<Interval> {
    let (id, name) = (task.to_string(), format!("{} by length", MetricName::ExactMatch.name()));
    let curve = summary.series.iter().find(|series| series.task == id && series.name == name)?;
    curve.points.iter().find(|(length, ..)| *length == digits as f64).map(|(.., value)| *value)
}

fn figures(ours: &EvaluatedRun, summaries: &ByScorer) -> Vec<NupaFigure> {
    let kinds: &[(&[u8], FigureMetric)] = match (ours.direct(), ours.options.shots) {
        (true, 0) => {
            &[(&[2, 5], FigureMetric::ExactMatch), (&[6], FigureMetric::DigitMatch), (&[7], FigureMetric::Log2Dlength)]
        }
        (true, 5) => &[(&[8], FigureMetric::ExactMatch)],
        _ => &[],
    };
    let mut all = Vec::new();
    for (scorer, summary) in summaries {
        let rows = figure_rows(summary);
        for (figures, metric) in kinds.iter().filter(|_| !rows.is_empty()) {
            all.push(NupaFigure {
                figures: figures.to_vec(),
                metric: *metric,
                scorer: scorer.name(),
                chosen: *scorer == ours.scorer(),
                rows: rows.clone(),
            });
        }
    }
    all
}
