//! Runs against the published tables, cell by cell.
use std::collections::BTreeMap;

use super::PAPER;
use super::document::{NUPA_COMPARISON_FORMAT, NupaCell, NupaComparison, NupaFigure, NupaRun, NupaTable, Quantity};
use super::ours::{Limit, Ours, PROFILES};
use super::published::{TABLE_3, TABLE_10, caveats, limit_title, rule_following_cells, tables};
use crate::{Published, Reading, difference, model_key};
use earnest_tasks::suite::nupa::{
    DigitLimit, LengthRange, MetricName, Profile, TABLE_3_METHODS, TASKS, TaskId, figure_rows, published_digit_limit,
    published_models, published_range_accuracy, published_rule_following,
};
use earnest_tasks::suite::{Interval, Summary};

/// Questions that the authors' evaluation asks of each task and length.
const PUBLISHED_PER_LENGTH: usize = 100;

/// The published row of fine-tuning on rules (Table 3).
const RULE_FOLLOWING: &str = "RF CoT";

/// Which published row runs are held against.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Against {
    /// The row of the run's model, if the paper has one.
    #[default]
    OwnModel,
    /// This row, whatever the model.
    Row(String),
}

impl Against {
    /// A row by name.
    ///
    /// # Errors
    /// The rows that exist, in a sentence, if there is none of this name.
    pub fn row(name: &str) -> Result<Self, String> {
        let known: Vec<&str> = published_models().into_iter().chain([RULE_FOLLOWING]).collect();
        match known.iter().find(|known| model_key(known).0 == model_key(name).0) {
            Some(known) => Ok(Against::Row((*known).to_owned())),
            None => Err(format!("the paper has no row of {name}; its rows are {}", known.join(", "))),
        }
    }
}

/// Summaries by profile, in the order of [`PROFILES`].
type ByProfile = [(Profile, Summary); 3];

/// Holds runs against the paper.
pub fn compare(runs: &[Ours], against: &Against) -> NupaComparison {
    NupaComparison {
        format: NUPA_COMPARISON_FORMAT,
        paper: PAPER.to_owned(),
        published: tables(),
        runs: runs.iter().map(|ours| one(ours, against)).collect(),
        caveats: caveats(),
    }
}

fn one(ours: &Ours, against: &Against) -> NupaRun {
    let model = ours.manifest.model.name.clone();
    let (key, quantised) = model_key(&model);
    let own = published_models().into_iter().find(|known| model_key(known).0 == key);
    let row = match against {
        Against::Row(row) => Some(row.as_str()),
        Against::OwnModel if ours.direct() => own,
        // The paper fine-tunes one model on rules; whatever follows rules is held against that.
        Against::OwnModel => Some(RULE_FOLLOWING),
    };
    let mut limits = ours.limits();
    match (against, row) {
        (Against::Row(row), _) if own != Some(row) => {
            limits.push(Limit::Other(format!("is of another model than the row {row}")));
        }
        (Against::OwnModel, Some(RULE_FOLLOWING)) => {
            let text = format!("is not of a model that was fine-tuned on rules, as {RULE_FOLLOWING} was");
            limits.push(Limit::Other(text));
        }
        _ => {}
    }
    if let (Some(row), Some(suffix)) = (row.filter(|row| own == Some(*row)), quantised) {
        limits.push(Limit::Other(format!("is of a quantised model ({suffix}), not of {row} itself")));
    }
    let summaries = PROFILES.map(|profile| (profile, ours.summary(profile)));
    // Each cell counts its own lengths.
    let comparable = limits.iter().all(Limit::is_comparable);
    let cells = Cells { ours, summaries: &summaries, comparable };
    let mut found = Vec::new();
    if let Some(row) = row {
        if ours.direct() && ours.options.shots == 0 && row != RULE_FOLLOWING {
            found.extend((7..).zip(MetricName::ALL).map(|(table, metric)| cells.limits(table, metric, row)));
        }
        if ours.direct() && matches!(ours.options.shots, 0 | 5) {
            found.push(cells.ranges(row, ours.options.shots == 5));
        }
        if ours.direct() == (row != RULE_FOLLOWING) && ours.options.shots == 0 {
            found.push(cells.rule_following(row));
        }
    }
    found.retain(|table| !table.cells.is_empty());
    found.sort_by_key(|table| table.table);
    NupaRun {
        run: ours.manifest.run.clone(),
        row: row.map(str::to_owned),
        model,
        limits: limits.iter().map(Limit::to_string).collect(),
        settings: ours.settings(),
        tables: found,
        figures: figures(ours, &summaries),
    }
}

struct Cells<'a> {
    ours: &'a Ours,
    summaries: &'a ByProfile,
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
        // The table writes its fine-tuned model shorter than the others do.
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

    /// None where the run asks nothing of it.
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
            .filter_map(|(profile, summary)| Some((profile.name().to_owned(), value(summary)?)))
            .collect();
        let profile = PROFILES[0].name();
        let difference =
            published.as_ref().zip(ours.get(profile)).map(|(published, ours)| difference(ours, &published.value));
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
            profile,
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

fn figures(ours: &Ours, summaries: &ByProfile) -> Vec<NupaFigure> {
    let kinds: &[(&[u8], &'static str)] = match (ours.direct(), ours.options.shots) {
        (true, 0) => &[(&[2, 5], "exact_match"), (&[6], "digit_match"), (&[7], "log2_dlength")],
        (true, 5) => &[(&[8], "exact_match")],
        _ => &[],
    };
    let mut found = Vec::new();
    for (profile, summary) in summaries {
        let rows = figure_rows(summary);
        for (figures, metric) in kinds.iter().filter(|_| !rows.is_empty()) {
            found.push(NupaFigure {
                figures: figures.to_vec(),
                metric,
                profile: profile.name(),
                primary: *profile == ours.profile(),
                rows: rows.clone(),
            });
        }
    }
    found
}
